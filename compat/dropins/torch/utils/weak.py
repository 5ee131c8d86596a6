"""torch.utils.weak: a dict that holds its keys weakly and compares them by identity."""

import weakref
from collections.abc import Iterator, MutableMapping


class WeakIdKeyDictionary(MutableMapping):
    """A dict of objects, tensors for example, each of which stays while somebody else holds it."""

    def __init__(self, dict: object = None):
        self._data: dict = {}  # id: (weak reference, value)
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: object) -> object:
        if id(key) not in self._data:
            raise KeyError(key)
        return self._data[id(key)][1]

    def __setitem__(self, key: object, value: object) -> None:
        place, data = id(key), self._data
        self._data[place] = weakref.ref(key, lambda _: data.pop(place, None)), value

    def __delitem__(self, key: object) -> None:
        if self._data.pop(id(key), None) is None:
            raise KeyError(key)

    def __iter__(self) -> Iterator:
        return (key for ref, _ in list(self._data.values()) if (key := ref()) is not None)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return id(key) in self._data


WeakTensorKeyDictionary = WeakIdKeyDictionary

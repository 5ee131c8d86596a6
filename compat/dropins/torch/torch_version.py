"""torch.torch_version: a version that compares as versions do, with strings and tuples too."""

import re


def _key(version: object) -> tuple:
    if isinstance(version, tuple):
        return version
    return tuple(int(part) for part in re.match(r"\d+(\.\d+)*", str(version))[0].split("."))


class TorchVersion(str):
    """A version as a string: "2.13.0" > "2.4", and > (1, 8)."""

    def _compare(self, other: object, holds: object) -> bool:
        ours, theirs = _key(self), _key(other)
        length = max(len(ours), len(theirs))
        return holds(*(key + (0,) * (length - len(key)) for key in (ours, theirs)))

    def __lt__(self, other: object) -> bool:
        return self._compare(other, tuple.__lt__)

    def __le__(self, other: object) -> bool:
        return self._compare(other, tuple.__le__)

    def __gt__(self, other: object) -> bool:
        return self._compare(other, tuple.__gt__)

    def __ge__(self, other: object) -> bool:
        return self._compare(other, tuple.__ge__)

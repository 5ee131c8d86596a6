"""What a file may call: functions that rebuild tensors and containers, and what programs have added."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import dtypes
from ..sparse import sparse_coo_tensor
from ..tensor.access import raw
from ..tensor.pickling import PRIVATE, rebuild
from ..tensor.tensor import Parameter, Tensor
from .limits import BUDGET, LoadError
from .storages import STORAGE_OF, STORAGES, Storage

PLAIN_KEYS = (str, bytes, bool, type(None))
HASH_MODULUS = sys.hash_info.modulus  # an integer below is its hash; greater ones can be chosen to have one hash
CONTAINERS = (list, tuple, dict, set, frozenset, str, bytes)
KEY_DEPTH, KEY_PARTS = 100, 100_000  # of the tuples within a key of a dict or a member of a set
MAX_DIMS = 64  # of NumPy's arrays


class Call:
    """A function that a file may call; nothing in a file can change it."""

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


class Unknown:
    """Placeholder for a global that is not allowed, until all of them have been collected."""


class StorageType(Call):
    """A name such as torch.FloatStorage, which denotes a dtype; a file cannot call it."""


def dtype_of(kind: Any) -> str:
    if type(kind) is not StorageType:
        raise LoadError(f"a storage whose type is a {type(kind).__name__}")
    return str(kind())


def parts_of(value: Any, count: int) -> Any:
    """The value, if it is a tuple of so many parts."""
    if type(value) is not tuple or len(value) != count:
        raise LoadError(f"a {type(value).__name__} where a file has a tuple of {count} values")
    return value


def checked_key(value: Any) -> Any:
    """The value, if hashing it takes bounded time and stack depth: nested tuples can make it run forever or overflow."""
    if type(value) in PLAIN_KEYS or (type(value) is int and abs(value) < HASH_MODULUS):
        return value
    level, parts = [value], 1
    for _ in range(KEY_DEPTH):
        parts += sum(v.bit_length() >> 6 for v in level if isinstance(v, int))
        level = [v for v in level if isinstance(v, tuple | frozenset)]
        if not level:
            break
        parts += sum(map(len, level))
        if parts > KEY_PARTS:
            break
        level = [v for t in level for v in t]
    if level:
        raise LoadError("Weights only load failed. The file has a key of too many tuples within each other")
    budget = BUDGET.get()
    budget.work(parts)
    budget.key(value)
    return value


def checked_elements(array: Any) -> Any:
    """The array; bytes that are neither 0 nor 1 are no truth values."""
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise LoadError("truth values that are neither 0 nor 1")
    return array


def _items(values: Any) -> Any:
    """The values, if they are a container: of a tensor, which can repeat one element for ever, items are not taken."""
    if not isinstance(values, CONTAINERS):
        raise LoadError(f"items of a {type(values).__name__}, which is no container")
    return values


def _tensor(value: Any) -> Any:
    """The value, if it is a tensor."""
    if not isinstance(value, Tensor):
        raise LoadError(f"a {type(value).__name__} where a tensor is needed")
    return value


def storage_key(key: Any) -> str:
    if type(key) is not str:
        raise LoadError(f"a storage whose key is a {type(key).__name__}")
    return key


def _rebuild_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None, metadata: Any = None
) -> Any:
    numbers = (offset, *_items(size), *_items(stride))
    if not isinstance(storage, Storage) or not all(type(n) is int and abs(n) < 1 << 63 for n in numbers):
        raise LoadError("a tensor without a storage, or with sizes that are no integers of 64 bits")
    if len(numbers) > 1 + 2 * MAX_DIMS:
        raise LoadError(f"a tensor of more than {MAX_DIMS} dimensions")
    t = storage.tensor_of(tuple(size), tuple(stride), offset)
    BUDGET.get().made.append(t)
    return t.requires_grad_() if requires_grad is True else t


def _layout(name: Any) -> Any:
    if name != "torch.sparse_coo":
        raise LoadError(f"a tensor of layout {name}, which tapegrad has not")
    return dtypes.sparse_coo


def _rebuild_sparse(layout: Any, parts: Any) -> Any:
    indices, values, size, *coalesced = _items(parts)
    for t in (_tensor(indices), _tensor(values)):  # which may repeat one element of the file
        BUDGET.get().take(4 * (t.numel() + 1) * max(t.element_size(), 8), "a sparse tensor")
    t = sparse_coo_tensor(indices, values, _items(size), is_coalesced=coalesced == [True])

    def settle() -> None:
        t._i = sparse_coo_tensor(indices, values, size)._i

    BUDGET.get().unsettled.append(settle)
    return t


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Any:
    p = Parameter(_tensor(data), requires_grad is True)
    BUDGET.get().made.append(p)
    return _with_state(p, state)


def _rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    if function not in (TORCH[f"torch._utils._rebuild_{name}"] for name in ("tensor_v2", "sparse_tensor", "parameter")):
        raise LoadError("a tensor that something else than a tensor's function makes")
    t = function(*_items(args))
    if kind is not type(t) and isinstance(kind, type) and issubclass(kind, Tensor):
        t = rebuild(kind, raw(t), t.requires_grad, {})
        BUDGET.get().made.append(t)
    return _with_state(t, state)


def _with_state(t: Any, state: Any) -> Any:
    """A tensor with the extra attributes that it was saved with."""
    if isinstance(t, Tensor) and isinstance(state, dict):
        t.__dict__.update(free_attributes(t, state))
    return t


def free_attributes(value: Any, state: dict[Any, Any]) -> dict[str, Any]:
    """What of a state in a file may become attributes: what replaces no method and no field of the engine's."""
    kind = type(value)
    return {k: v for k, v in state.items() if type(k) is str and not hasattr(kind, k) and k not in PRIVATE}


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if encoding != "latin1":
        raise LoadError("bytes written in another encoding than latin1")
    return str.encode(text, "latin1")


def _bytearray(data: Any = b"", encoding: Any = "latin1") -> bytearray:
    return bytearray(data if isinstance(data, bytes) else _encoded(data, encoding))


def _set(items: Any = ()) -> set[Any]:
    return set(map(checked_key, _items(items)))


def _frozenset(items: Any = ()) -> frozenset[Any]:
    return frozenset(map(checked_key, _items(items)))


def _ordered(items: Any = ()) -> Any:
    return OrderedDict(items if isinstance(items, dict) else ((checked_key(k), v) for k, v in map(_items, _items(items))))


def _counter(items: Any = ()) -> Any:
    return Counter(items if isinstance(items, dict) else map(checked_key, _items(items)))


def _size(items: Any = ()) -> Any:
    return dtypes.Size(_items(items))


def _device(kind: Any, index: Any = None) -> Any:
    if type(kind) is not str or type(index) not in (int, type(None)):
        raise LoadError("a device that is not given by its type and index")
    return dtypes.device(kind, index)


def _complex(*parts: Any) -> complex:
    if not all(type(p) in (int, float) for p in parts):
        raise LoadError("a complex number whose parts are no numbers")
    return complex(*parts)


TORCH: dict[str, Any] = {
    "torch._utils._rebuild_tensor": Call(_rebuild_v2),
    "torch._utils._rebuild_tensor_v2": Call(_rebuild_v2),
    "torch._utils._rebuild_sparse_tensor": Call(_rebuild_sparse),
    "torch.serialization._get_layout": Call(_layout),
    "torch._utils._rebuild_parameter": Call(_rebuild_parameter),
    "torch._utils._rebuild_parameter_with_state": Call(_rebuild_parameter),
    "torch._tensor._rebuild_from_type_v2": Call(_rebuild_from_type),
    "torch.Size": Call(_size),
    "torch.device": Call(_device),
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.storage.UntypedStorage": StorageType(lambda: "uint8"),
    **{f"torch.{name}": StorageType(lambda dtype=dtype: dtype) for name, dtype in STORAGES.items()},
    **{f"torch.{name}": getattr(dtypes, "bool_" if name == "bool" else name) for name in STORAGE_OF},
}
HARMLESS: dict[str, Any] = {
    "collections.OrderedDict": Call(_ordered),
    "collections.Counter": Call(_counter),
    "builtins.set": Call(_set),
    "builtins.frozenset": Call(_frozenset),
    "builtins.complex": Call(_complex),
    "builtins.bytearray": Call(_bytearray),
    "_codecs.encode": Call(_encoded),
}
SAFE: dict[str, Any] = {}  # what programs added


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow `load` to use these classes and functions.

    Args:
        safe_globals: a list of classes and functions; a pair (object, "module.name") gives the name in the file.

    Example:
        >>> import fractions
        >>> tg.serialization.add_safe_globals([fractions.Fraction])
        >>> tg.serialization.get_safe_globals()
        [<class 'fractions.Fraction'>]
        >>> tg.serialization.clear_safe_globals()
    """
    for item in safe_globals:
        value, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        SAFE[name] = value


def get_safe_globals() -> list[Any]:
    """The classes and functions that add_safe_globals allowed.

    Example:
        >>> tg.serialization.clear_safe_globals()
        >>> tg.serialization.get_safe_globals()
        []
    """
    return list(SAFE.values())


add_safe_globals.__module__ = "tapegrad.serialization"  # where users find it; under a drop-in its library says where


def clear_safe_globals() -> None:
    """Remove all classes and functions that add_safe_globals allowed.

    Example:
        >>> tg.serialization.clear_safe_globals()
        >>> tg.serialization.get_safe_globals()
        []
    """
    SAFE.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Context manager: inside, `load` may use these classes and functions.

    Args:
        safe_globals: as for add_safe_globals.

    Example:
        >>> import fractions, io
        >>> file = io.BytesIO()
        >>> tg.save(fractions.Fraction(1, 2), file)
        >>> _ = file.seek(0)
        >>> with tg.serialization.safe_globals([fractions.Fraction]):
        ...     tg.load(file)
        Fraction(1, 2)
    """
    before = dict(SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        for name in set(SAFE).difference(before):  # none that others use is missing in between, as after a clear()
            SAFE.pop(name, None)
        SAFE.update(before)


def is_safe(value: Any) -> bool:
    return any(value is v for v in list(SAFE.values()))

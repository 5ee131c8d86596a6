"""What a file may call: functions that rebuild tensors and containers, and what programs have added."""

from __future__ import annotations

import contextlib
import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from .. import dtypes
from ..sparse import sparse_coo_tensor
from ..tensor.access import raw
from ..tensor.pickling import rebuild
from ..tensor.tensor import Parameter, Tensor
from .storages import STORAGE_OF, STORAGES, Storage

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
        raise pickle.UnpicklingError(f"a storage whose type is a {type(kind).__name__}")
    return str(kind())


def checked_key(value: Any) -> Any:
    """The value, if hashing it takes bounded time and stack depth: nested tuples can make it run forever or overflow."""
    level, parts = [value], 0
    for _ in range(KEY_DEPTH):
        level = [v for v in level if isinstance(v, tuple)]
        if not level:
            return value
        parts += sum(map(len, level))
        if parts > KEY_PARTS:
            break
        level = [v for t in level for v in t]
    raise pickle.UnpicklingError("Weights only load failed. The file has a key of too many tuples within each other")


def storage_key(key: Any) -> str:
    if type(key) is not str:
        raise pickle.UnpicklingError(f"a storage whose key is a {type(key).__name__}")
    return key


MADE: ContextVar[list[Any]] = ContextVar("tapegrad_made")
"""The tensors that the running call of `load` has created."""


def _rebuild_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None, metadata: Any = None
) -> Any:
    numbers = (offset, *size, *stride)
    if not isinstance(storage, Storage) or not all(type(n) is int and abs(n) < 1 << 63 for n in numbers):
        raise pickle.UnpicklingError("a tensor without a storage, or with sizes that are no integers of 64 bits")
    if len(numbers) > 1 + 2 * MAX_DIMS:
        raise pickle.UnpicklingError(f"a tensor of more than {MAX_DIMS} dimensions")
    t = storage.tensor_of(tuple(size), tuple(stride), offset)
    MADE.get().append(t)
    return t.requires_grad_() if requires_grad is True else t


def _layout(name: Any) -> Any:
    if name != "torch.sparse_coo":
        raise pickle.UnpicklingError(f"a tensor of layout {name}, which tapegrad has not")
    return dtypes.sparse_coo


def _rebuild_sparse(layout: Any, parts: Any) -> Any:
    indices, values, size, *coalesced = parts
    if not isinstance(indices, Tensor) or not isinstance(values, Tensor):
        raise pickle.UnpicklingError("a sparse tensor whose parts are no tensors")
    return sparse_coo_tensor(indices, values, size, is_coalesced=coalesced == [True])


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Any:
    p = Parameter(data, bool(requires_grad))
    MADE.get().append(p)
    return _with_state(p, state)


def _rebuild_from_type(function: Any, kind: Any, args: Any, state: Any) -> Any:
    if not isinstance(function, Call):
        raise pickle.UnpicklingError("a tensor that something else than a tensor's function makes")
    t = function(*args)
    if kind is not type(t) and isinstance(kind, type) and issubclass(kind, Tensor):
        t = rebuild(kind, raw(t), t.requires_grad, {})
        MADE.get().append(t)
    return _with_state(t, state)


def _with_state(t: Any, state: Any) -> Any:
    """A tensor with the extra attributes that it was saved with."""
    if isinstance(t, Tensor) and isinstance(state, dict):
        t.__dict__.update({k: v for k, v in state.items() if type(k) is str and not hasattr(type(t), k)})
    return t


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError("bytes written in another encoding than latin1")
    return text.encode("latin1")  # type: ignore[no-any-return]


def _bytearray(data: Any = b"", encoding: Any = "latin1") -> bytearray:
    return bytearray(data if isinstance(data, bytes) else _encoded(data, encoding))


def _set(items: Any = ()) -> set[Any]:
    return set(map(checked_key, items))


def _frozenset(items: Any = ()) -> frozenset[Any]:
    return frozenset(map(checked_key, items))


def _ordered(items: Any = ()) -> Any:
    return OrderedDict(items if isinstance(items, dict) else ((checked_key(k), v) for k, v in items))


def _counter(items: Any = ()) -> Any:
    return Counter(items if isinstance(items, dict) else map(checked_key, items))


TORCH: dict[str, Any] = {
    "torch._utils._rebuild_tensor": Call(_rebuild_v2),
    "torch._utils._rebuild_tensor_v2": Call(_rebuild_v2),
    "torch._utils._rebuild_sparse_tensor": Call(_rebuild_sparse),
    "torch.serialization._get_layout": Call(_layout),
    "torch._utils._rebuild_parameter": Call(_rebuild_parameter),
    "torch._utils._rebuild_parameter_with_state": Call(_rebuild_parameter),
    "torch._tensor._rebuild_from_type_v2": Call(_rebuild_from_type),
    "torch.Size": Call(dtypes.Size),
    "torch.device": Call(dtypes.device),
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
    "builtins.complex": Call(complex),
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
        SAFE.clear()
        SAFE.update(before)


def is_safe(value: Any) -> bool:
    return any(value is v for v in SAFE.values())

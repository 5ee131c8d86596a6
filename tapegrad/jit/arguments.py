"""NumPy arrays among the arguments of a traced call: NumPy code that computes with one aborts the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.record import Box
from ..func import tree
from ..programs.tracing import abort_trace
from .effects import swapped

WHAT = "NumPy code that computes with an argument (use tapegrad.as_tensor on it first)"


OF_METADATA = frozenset((  # functions that read no values
    np.broadcast_shapes, np.can_cast, np.iscomplexobj, np.isrealobj, np.may_share_memory, np.ndim, np.result_type, np.shape,
    np.shares_memory, np.size,
))  # fmt: skip


class Watched(np.ndarray):
    """A NumPy argument of a traced call. Tensors take it like any array; other NumPy code that uses it aborts the trace."""

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, Watched):
            abort_trace(WHAT)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Box) for x in inputs):
            return NotImplemented  # the tensor's own method is called next
        abort_trace(WHAT)
        return getattr(ufunc, method)(*map(plain, inputs), **{k: plain(v) for k, v in kwargs.items()})

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(t, Box) for t in types):
            return NotImplemented
        if function not in OF_METADATA:
            abort_trace(WHAT)
        leaves, spec = tree.flatten((args, kwargs))
        args, kwargs = tree.unflatten(spec, [plain(leaf) for leaf in leaves])
        return function(*args, **kwargs)


def _reading(name: str) -> Any:
    """An attribute of arrays that aborts the trace."""

    def get(self: Any) -> Any:
        abort_trace(WHAT)
        return getattr(plain(self), name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return get(self)(*args, **kwargs)

    return call if callable(getattr(np.ndarray, name)) else property(get)


OF_ARRAYS = frozenset((  # attributes that give no value away, and what the class has itself
    "__array_finalize__", "__array_function__", "__array_priority__", "__array_ufunc__", "__array_wrap__", "__class__",
    "__class_getitem__", "__dir__", "__doc__", "__getattribute__", "__init__", "__init_subclass__", "__len__", "__new__",
    "__setattr__", "__delattr__", "__sizeof__", "__subclasshook__", "__hash__", "__buffer__", "device", "dtype", "flags",
    "itemsize", "nbytes", "ndim", "shape", "size", "strides",
))  # fmt: skip
OPERATORS = frozenset((  # which ask __array_ufunc__
    "abs", "add", "and", "divmod", "eq", "floordiv", "ge", "gt", "iadd", "iand", "ifloordiv", "ilshift", "imatmul", "imod",
    "imul", "invert", "ior", "ipow", "irshift", "isub", "itruediv", "ixor", "le", "lshift", "lt", "matmul", "mod", "mul",
    "ne", "neg", "or", "pos", "pow", "radd", "rand", "rdivmod", "rfloordiv", "rlshift", "rmatmul", "rmod", "rmul", "ror",
    "rpow", "rrshift", "rshift", "rsub", "rtruediv", "rxor", "sub", "truediv", "xor",
))  # fmt: skip
for _name in set(dir(np.ndarray)) - OF_ARRAYS - {f"__{name}__" for name in OPERATORS}:
    setattr(Watched, _name, _reading(_name))


Watched.__name__ = Watched.__qualname__ = "ndarray"  # in messages


def plain(a: Any) -> Any:
    """The array itself."""
    if isinstance(a, Watched):
        return np.ndarray.view(a, np.ndarray)
    return tuple([plain(x) for x in a]) if type(a) is tuple else a


def watched(args: Any, kwargs: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """The arguments with watched arrays instead of NumPy's, and (array, watched array) pairs.

    Lists, dicts and records hold the watched arrays themselves until `swapped` puts the others back.
    """
    leaves, _ = tree.flatten((args, kwargs))
    for leaf in leaves:
        if issubclass(type(leaf), np.ndarray) and type(leaf) is not np.ndarray:
            abort_trace(f"a NumPy argument of class {type(leaf).__name__} (give np.asarray of it)")
    pairs = [(leaf, leaf.view(Watched)) for leaf in {id(a): a for a in leaves if type(a) is np.ndarray}.values()]
    stands = {id(a): w for a, w in pairs}
    return swapped(args, stands) if pairs else args, swapped(kwargs, stands) if pairs else kwargs, pairs

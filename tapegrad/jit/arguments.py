"""NumPy arrays among the arguments of a traced call: NumPy code that computes with one aborts the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.record import Box
from ..func import tree
from ..programs.tracing import stops

WHAT = "NumPy code that computes with an argument (use tapegrad.as_tensor on it first)"


class Watched(np.ndarray):
    """A NumPy argument of a traced call. Tensors take it like any array; other NumPy code that uses it aborts the trace."""

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, Watched):
            stops(WHAT)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Box) for x in inputs):
            return NotImplemented  # the tensor's own method is called next
        stops(WHAT)
        return getattr(ufunc, method)(*map(plain, inputs), **{k: plain(v) for k, v in kwargs.items()})

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(t, Box) for t in types):
            return NotImplemented
        stops(WHAT)
        leaves, spec = tree.flatten((args, kwargs))
        args, kwargs = tree.unflatten(spec, [plain(leaf) for leaf in leaves])
        return function(*args, **kwargs)


def _reading(name: str) -> Any:
    inner = getattr(np.ndarray, name)

    def read(self: Any, *args: Any) -> Any:
        stops(WHAT)
        return inner(plain(self), *args)

    return read


for _name in ("__bool__", "__int__", "__float__", "__complex__", "__index__", "__getitem__", "__setitem__", "__iter__",
              "__contains__", "__repr__", "__str__", "__format__", "item", "tolist", "tobytes", "nonzero", "argmax",
              "argmin", "argsort", "searchsorted", "dot", "sort", "fill", "astype", "copy"):  # fmt: skip
    setattr(Watched, _name, _reading(_name))


Watched.__name__ = Watched.__qualname__ = "ndarray"  # in messages


def plain(a: Any) -> Any:
    """The array itself."""
    if isinstance(a, Watched):
        return a.view(np.ndarray)
    return tuple([plain(x) for x in a]) if type(a) is tuple else a


def watched(args: Any, kwargs: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """The arguments with watched arrays instead of NumPy's, and (array, watched array) pairs."""
    leaves, spec = tree.flatten((args, kwargs))
    pairs = [(leaf, leaf.view(Watched)) for leaf in leaves if type(leaf) is np.ndarray]
    if not pairs:
        return args, kwargs, []
    stands = {id(a): w for a, w in pairs}
    args, kwargs = tree.unflatten(spec, [stands.get(id(leaf), leaf) for leaf in leaves])
    return args, kwargs, pairs

"""PyTorch's names on tapegrad."""

import builtins as _builtins
import types as _types
from importlib.util import find_spec

import tapegrad
from tapegrad import compat as _compat
from tapegrad.amp import GradScaler as GradScaler
from tapegrad.dtypes import complex32 as complex32
from tapegrad.dtypes import dtype as _dtype
from tapegrad.dtypes import float8_e4m3fn as float8_e4m3fn
from tapegrad.dtypes import float8_e5m2 as float8_e5m2
from tapegrad.dtypes import layout as _layout

from ._storages import *  # noqa: F403
from ._storages import _of_default_dtype
from .torch_version import TorchVersion as _TorchVersion

__version__ = _TorchVersion("2.13.0+tapegrad")

chalf = complex32
quint8, qint8, qint32, quint4x2, quint2x4 = (  # no tensor has these
    _dtype._make(name, "i" if name[1] == "i" else "u", 4 if name == "qint32" else 1)
    for name in ("quint8", "qint8", "qint32", "quint4x2", "quint2x4")
)
sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged = map(
    _layout, ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
)


class OutOfMemoryError(RuntimeError):
    """A device has no memory left; never raised here."""


def compile(
    model: object = None, *, fullgraph: bool = False, dynamic: object = None, backend: object = "inductor",
    mode: object = None, options: object = None, disable: bool = False, recompile_limit: object = None,
    isolate_recompiles: object = None,
) -> object:  # fmt: skip
    """tapegrad.compile where JAX is installed; the function or module as it is without, and for backends of one's own."""
    compiles = not disable and isinstance(backend, str) and backend not in ("eager", "aot_eager") and find_spec("jax")
    if model is None:
        return lambda fn: compile(fn, fullgraph=fullgraph, backend=backend, disable=disable)
    return tapegrad.compile(model, fullgraph=fullgraph) if compiles else model


def _assert(condition: object, message: str) -> object:
    """Raise an AssertionError unless the condition holds; what overrides functions is asked."""
    from .overrides import handle_torch_function, has_torch_function

    if has_torch_function((condition,)):
        return handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message


def _unique(input: object, sorted: bool = True, return_inverse: bool = False) -> tuple[object, object]:
    """Distinct elements, and the place of each element among them: PyTorch's function behind `unique`."""
    values, places = tapegrad.unique(input, return_inverse=True)
    return values, places if return_inverse else places.new_empty(0)


def _unique2(
    input: object, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[object, object, object]:
    """`_unique`, and how often each element occurs."""
    values, places, counts = tapegrad.unique(input, return_inverse=True, return_counts=True)
    empty = places.new_empty(0)
    return values, places if return_inverse or return_counts else empty, counts if return_counts else empty


def _convert_indices_from_coo_to_csr(input: tapegrad.Tensor, size: int, *, out_int32: bool = False) -> tapegrad.Tensor:
    """Where each of `size` rows begins in a sorted list of row numbers, and where the last one ends."""
    starts = tapegrad.arange(size + 1, dtype=input.dtype)
    return tapegrad.searchsorted(input.contiguous(), starts, out_int32=out_int32)


def _nnpack_available() -> bool:
    return False


def __getattr__(name: str) -> object:
    if name == "Storage":
        return _of_default_dtype()
    if name.removeprefix("_") == "segment_reduce":
        from ._segments import segment_reduce

        return segment_reduce
    if name.startswith("_foreach_"):
        from . import _foreach

        if found := _foreach.function(name.removeprefix("_foreach_")):
            return found
    raise AttributeError(name)


def _build_class(body: object, name: str, /, *bases: object, _build: object = _builtins.__build_class__, **kwargs: object):
    """Python's, for programs' classes: a function of torch that one keeps is no method, as one in C would not be.

    If the class is to have `__torch_function__`, functions are told to ask it.
    """
    own = str(body.__globals__.get("__name__")).startswith("tapegrad.")
    if not own and "__torch_function__" in body.__code__.co_names:
        tapegrad.overrides.enable()
    made = _build(body, name, *bases, **kwargs)
    if not own and isinstance(made, type) and not issubclass(made, tapegrad.Tensor):  # whose methods are such functions
        for attribute, value in list(vars(made).items()):
            if isinstance(value, _types.FunctionType) and _is_of_torch(value):
                setattr(made, attribute, staticmethod(value))
    return made


def _is_of_torch(function: object) -> bool:
    return function in (vars(place).get(function.__name__) for place in (tapegrad, tapegrad.nn.functional))


_builtins.__build_class__ = _build_class
_compat.at_removal("torch", lambda: setattr(_builtins, "__build_class__", _build_class.__kwdefaults__["_build"]))

import torch as torch  # torch.torch is there, too

from .jit import ScriptModule as ScriptModule  # which read what is above
from .library import ops as ops

__all__ = [
    name
    for name, value in globals().items()
    if name[0] != "_" and name not in ("annotations", "Scalar") and not isinstance(value, type(_types))
]

"""NumPy's names, whose functions take boxes."""

import builtins as _builtins

import numpy as _np

import tapegrad.numpy as _tnp
from autograd import tracer as _tracer

_ArrayBox, _boxed, _getval, _holds_box = _tracer.ArrayBox, _tracer.boxed, _tracer.getval, _tracer.holds_box
_with_boxes, _notrace_primitive, _unboxed = _tracer.with_boxes, _tracer.notrace_primitive, _tracer.unboxed

numpy_version = _np.__version__


def _integer(kind):
    """An integer type whose calls take boxes; what they give has no gradient."""
    name = kind.__name__
    return _builtins.type(name, (kind,), {"__new__": _notrace_primitive(kind.__new__), "__module__": "numpy"})


def wrap_namespace(old, new):
    """Put the names of a module's dict into another: functions that take boxes; constants and other types as they are."""
    for name, value in old.items():
        if name.startswith("__"):
            continue
        if isinstance(value, _builtins.type) and value in (_np.int8, _np.int16, _np.int32, _np.int64):
            new[name] = _integer(value)
        elif isinstance(value, _builtins.type | float | int | None):
            new[name] = value
        elif callable(value):
            new[name] = _tracer.named(value)


wrap_namespace(_np.__dict__, globals())


def _made(function):
    """A function that makes an array, on boxes; NumPy's without any."""
    ours = getattr(_tnp, function.__name__)

    def make(*args, **kwargs):
        if not _holds_box((*args, *kwargs.values())):
            return function(*args, **kwargs)
        return _boxed(ours(*_unboxed(args), **_unboxed(kwargs)))

    make.__name__, make.__doc__ = function.__name__, function.__doc__
    return make


array, asarray, full = _made(_np.array), _made(_np.asarray), _made(_np.full)
asanyarray = ascontiguousarray = asarray


def _listed(function):
    """A function of a sequence of arrays that takes any iterable of them."""

    def of_iterable(*args, **kwargs):
        if args and not isinstance(args[0], list | tuple | _np.ndarray):
            args = (list(args[0]), *args[1:])
        return function(*args, **kwargs)

    of_iterable.__name__, of_iterable.__doc__ = function.__name__, function.__doc__
    return of_iterable


concatenate, stack = _listed(_with_boxes(_np.concatenate)), _listed(_with_boxes(_np.stack))
vstack, hstack, dstack = (_listed(_with_boxes(f)) for f in (_np.vstack, _np.hstack, _np.dstack))
column_stack, row_stack = _listed(_with_boxes(_np.column_stack)), vstack


def where(condition, x=None, y=None):
    """NumPy's; of Python's own numbers and lists it gives such."""
    if x is None and y is None:
        return _with_boxes(_np.where)(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    result = _with_boxes(_np.where)(condition, x, y)
    return result if _is_array(condition) or _is_array(x) or _is_array(y) else result.tolist()


def _is_array(x):
    if isinstance(x, list | tuple):
        return next((True for v in x if _is_array(v)), False)
    return isinstance(x, _ArrayBox | _np.ndarray | _np.generic)


class _Joined:
    """`np.r_` or `np.c_`, whose items may be boxes."""

    def __init__(self, numpys, join):
        self.numpys, self.join = numpys, join

    def __getitem__(self, items):
        items = items if isinstance(items, _builtins.tuple) else (items,)
        if not _holds_box(items):
            return self.numpys[items]
        if isinstance(items[0], str):
            raise NotImplementedError(f"the directive {items[0]!r} of r_ and c_ is not recorded")
        return self.join([_np.r_[v] if isinstance(v, slice) else v for v in items])


def _columns(items):
    items = [atleast_1d(v) for v in items]  # noqa: F821 (a name of NumPy)
    return concatenate([v[:, None] if v.ndim == 1 else v for v in items], -1)


r_ = _Joined(_np.r_, lambda items: concatenate([atleast_1d(v) for v in items], 0))  # noqa: F821
c_ = _Joined(_np.c_, _columns)


def concatenate_args(axis, *args):
    """Concatenate, with the arrays as arguments of their own."""
    return concatenate(args, axis)


def array_from_args(array_args, array_kwargs, *args):
    """An array of the arguments."""
    return array(list(args), *array_args, **array_kwargs)


def make_diagonal(D, offset=0, axis1=0, axis2=1):
    """The matrices with these diagonals, for offset=0, axis1=-1, axis2=-2."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal has only offset=0, axis1=-1, axis2=-2")
    return D[..., None] * _np.eye(_np.shape(_getval(D))[-1])


@_notrace_primitive
def metadata(A):
    """(shape, number of dimensions, dtype, whether it is complex)."""
    return _np.shape(A), _np.ndim(A), _np.result_type(A), _np.iscomplexobj(A)

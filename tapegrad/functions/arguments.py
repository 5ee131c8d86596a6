"""Arguments as PyTorch takes them: sizes one by one or as a sequence, NumPy's names, `out`, numbers among tensors."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import dtypes, errors
from ..core import record
from ..core.op import TABLE
from ..core.tape import next_slot
from ..core.warning import warn
from ..kernels.reduce import Dims
from ..kernels.shape import dim_of, dims_of
from .grad_fn_names import set_grad_fn_name

F = TypeVar("F", bound=Callable[..., Any])
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
# By a function that takes more keywords than it was written with: the function as it was written. A call without keywords
# goes there at once, past all that looks for them. Not an attribute: functools.wraps would hand it on.
DIRECT: dict[Callable[..., Any], Callable[..., Any]] = {}


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    for a in args:
        if type(a) is not int:
            return tuple([operator.index(a) for a in args])
    return args


def given(op: str, argument: str, args: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Sizes given one by one, as one sequence, or by name."""
    if named is not None:
        if args:
            raise TypeError(f"{op}() got multiple values for argument '{argument}'")
        args = (named,)
    try:
        return sizes(args)
    except TypeError:
        raise errors.not_sizes(op, argument, args) from None


def dim_within(dim: int, rank: int) -> int:
    """A dimension counted from the front, where a tensor of no dimensions will not do."""
    if not rank:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return dim_of(dim, rank)


PLACED = (("values", "indices"), ("min", "max"))
"""Fields of the results of max, sort and the like: PyTorch casts them to no other dtype of an `out`."""


def check_out(op: str, out: Any, index: int | None = None) -> None:
    """Refuse an `out`, or one of several, that is no tensor."""
    if not isinstance(out, record.Box):
        raise errors.not_an_out(op, out, index)


def in_dtype_of(op: str, out: Any, dtype: Any) -> Any:
    """The dtype in which to compute a sum with `out`: the dtype of `out`.

    Raises:
        TypeError: if `out` is no tensor.
        RuntimeError: if another dtype is asked for.
    """
    if out is None:
        return dtype
    check_out(op, out)
    if dtype is not None and dtypes.to_numpy(dtype) != dtypes.to_numpy(out.dtype):
        raise errors.out_dtype(dtypes.to_numpy(dtype), dtypes.to_numpy(out.dtype), "out")
    return out.dtype


def with_out(function: F) -> F:
    """Let a function take `out`: the tensor to put the result into, or one for each of several results."""
    signature = inspect.signature(function)
    direct = DIRECT.get(function, function)
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is None:
            return function(*args, **kwargs) if kwargs else direct(*args)
        result = function(*args, **kwargs)
        if not isinstance(result, tuple):
            return put_out(name, result, out)
        check_outs(name, out, len(result))
        if getattr(result, "_fields", ()) in PLACED:
            for o, value, field in zip(out, result, result._fields, strict=True):  # type: ignore[attr-defined]
                if o._d.dtype != value._d.dtype:
                    raise errors.out_dtype(value._d.dtype, o._d.dtype, f"{field} output")
        values = [o.resize_as_result_(value) for o, value in zip(out, result, strict=True)]
        return result._make(values) if hasattr(result, "_make") else tuple(values)

    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), keyword])  # type: ignore[attr-defined]
    DIRECT[call] = direct
    return call  # type: ignore[return-value]


def numpy_names(function: F) -> F:
    """Let a function take `axis` and `keepdims` for its `dim` and `keepdim`, as PyTorch's do."""
    signature = inspect.signature(function)
    own = signature.parameters
    names = {other: name for other, name in NUMPY_NAMES.items() if name in own and other not in own}
    direct = DIRECT.get(function, function)
    places = {name: list(own).index(name) for name in names.values()}

    def renamed(count: int, kwargs: dict[str, Any]) -> dict[str, Any]:
        for other, name in names.items():
            if other in kwargs:
                value = kwargs.pop(other)
                if value is not None and (count > places[name] or kwargs.get(name) is not None):
                    raise errors.given_twice(function.__name__, name, other)
                if value is not None or name not in kwargs:
                    kwargs[name] = value
        return kwargs

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return direct(*args)
        for given in kwargs:
            if given in names:
                kwargs = renamed(len(args), kwargs)
                break
        if "keepdim" in kwargs and type(kwargs["keepdim"]) is not bool:
            flag(function.__name__, kwargs["keepdim"])
        return function(*args, **kwargs)

    shown = list(own.values())
    position = next(i for i, p in enumerate(shown) if p.name == "dim")
    if own["dim"].default is inspect.Parameter.empty and all(p.default is not p.empty for p in shown[position + 1 :]):
        shown[position] = shown[position].replace(default=None, annotation="Any")
    for other, name in names.items():
        default = None if name == "dim" else own[name].default
        shown.append(inspect.Parameter(other, inspect.Parameter.KEYWORD_ONLY, default=default, annotation="Any"))
    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    DIRECT[call] = direct
    return call  # type: ignore[return-value]


def showing(**defaults: Any) -> Callable[[F], F]:
    """Show these defaults of a function in whose text they are None, which tells whether an argument was given."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [
            p.replace(default=defaults[p.name], annotation=type(defaults[p.name]).__name__) if p.name in defaults else p
            for p in signature.parameters.values()
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


def either(op: str, name: str, value: Any, other: str, alias: Any) -> Any:
    """An argument given under its own name or NumPy's.

    Raises:
        TypeError: if it is given under both.
    """
    if alias is None:
        return value
    if value is not None:
        raise errors.given_twice(op, name, other)
    return alias


def kept(op: str, keepdim: Any, keepdims: Any) -> bool:
    """Whether reduced dimensions stay, from `keepdim` or `keepdims`."""
    return flag(op, either(op, "keepdim", keepdim, "keepdims", keepdims))


def flag(op: str, keepdim: Any) -> bool:
    """`keepdim`, which must be a bool."""
    if not isinstance(keepdim, bool | np.bool_):
        raise TypeError(f"{op}(): argument 'keepdim' must be bool, not {type(keepdim).__name__}")
    return bool(keepdim)


def with_grad_fn_name(node: str, linked: bool = False) -> Callable[[F], F]:
    """For functions made of several ops: the node of the result, or of the first of several, gets the name of PyTorch's.

    Its inputs are then those of the function, not those of the last op. With `linked`, gradients stay connected with the
    last op's arguments, see `Op.constant_in`.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = next_slot()
            result = function(*args, **kwargs)
            set_grad_fn_name(node, result[0] if isinstance(result, tuple) else result, before, linked)
            return result

        return call  # type: ignore[return-value]

    return decorate


def as_one_node(node: str, before: int, first: Any, second: Any) -> tuple[Any, Any]:
    """Two results as the outputs of one node of that name; `before` is a slot from before they were computed."""
    if first._d.dtype != second._d.dtype:  # of complex numbers: a record gives all its arrays one dtype
        return set_grad_fn_name(node, first), set_grad_fn_name(node, second)
    first, second = TABLE["pair"].call(first, second)
    return set_grad_fn_name(node, first, before), second


def numbers_first(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function take its factors as PyTorch once did: numbers among the tensors, before the one they multiply."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        code = inspect.unwrap(function).__code__
        count = code.co_argcount

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) > count:
                numbers = [a for a in args if not isinstance(a, record.Box)]
                tensors = [a for a in args if isinstance(a, record.Box)]
                if len(tensors) == count and len(numbers) <= len(names):
                    warn(f"This overload of {code.co_name} is deprecated: give the number by name, as {names[-1]}=...")
                    args, kwargs = tuple(tensors), {**dict(zip(names, numbers, strict=False)), **kwargs}
            return function(*args, **kwargs)

        return call

    return decorate


def reduced_dims(x: Any, dim: Any, axis: Any, op: str) -> Dims:
    """`dim` or `axis` counted from the front; None for all."""
    if axis is not None:
        dim = either(op, "dim", dim, "axis", axis)
    if type(dim) is int and 0 <= dim < x._d.ndim:
        return (dim,)
    if dim is None or dim == () or dim == []:
        return None
    try:
        dims = dims_of(dim, x._d.ndim or 1)
    except (IndexError, RuntimeError) as e:
        raise type(e)(f"{e}. In {op}(): argument 'dim'.") from None
    except TypeError:
        raise errors.not_dims(op, dim) from None
    return dims if x._d.ndim else None


def put_out(op: str, result: Any, out: Any) -> Any:
    """A result, written into `out` if one is given.

    Raises:
        TypeError: if `out` is no tensor.
    """
    if out is None:
        return result
    check_out(op, out)
    return out.resize_as_result_(result)


def check_outs(op: str, outs: Any, count: int) -> None:
    """Refuse what is not a tuple or list of `count` tensors."""
    if not isinstance(outs, tuple | list):
        raise errors.not_outs(op, outs)
    if len(outs) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(outs)}. In {op}(out=...).")
    for i, out in enumerate(outs):
        check_out(op, out, i)

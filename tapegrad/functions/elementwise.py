"""Elementwise operations: one derivative expression per argument.

The public functions of the records in `table.elementwise`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core.record import Box, fixed
from ..core.vjp import fixed_like
from ..dtypes import HALF, is_inexact
from ..kernels.shape import shape_of
from ..programs.tracing import leaving
from ..table.define import named
from ..table.elementwise import (
    _add,
    _cast_to,
    _clamp,
    _clamp_max,
    _clamp_min,
    _clamp_tensor,
    _conj_complex,
    _floor_divide,
    _isclose,
    _lerp,
    _nan_to_num,
    _round,
    _round_decimals,
    _sgn,
    _sub,
    _trunc_divide,
    _where,
    div_true,
    mul,
    pow_scalar,
    pow_tensor,
)
from ..table.elementwise import _rsub as _rsub
from ..table.elementwise import radd as radd
from ..table.elementwise import rdiv as rdiv
from ..table.elementwise import rmul as rmul
from ..table.elementwise import rremainder as rremainder
from . import lookup, overrides
from .arguments import numbers_first, put_out, with_grad_fn_name, with_out
from .derived import function_of, operator_of
from .grad_fn_names import set_grad_fn_name
from .operands import SCALARS, common_dtype, foreign, half_in_float32, operand, promoted, refused, tensor, to_dtype

eq, ne, lt, le, gt, ge = map(function_of, ("eq", "ne", "lt", "le", "gt", "ge"))
isnan, isinf, isfinite = map(function_of, ("isnan", "isinf", "isfinite"))
logical_and, logical_or, logical_xor, logical_not = map(
    function_of, ("logical_and", "logical_or", "logical_xor", "logical_not")
)
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = map(
    function_of, ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
)


def round(input: Any, *, decimals: int = 0, out: Any = None) -> Any:
    """Elementwise nearest whole number, or nearest multiple of 10**-decimals; halves to the even one; its derivative is 0.

    Args:
        input: real tensor of any shape; integers are given back.
        decimals: number of decimal places, of floats only; it may be negative.

    Raises:
        NotImplementedError: for complex numbers and bools; for integers with decimals.

    Example:
        >>> tg.round(tg.tensor([0.5, 1.5, -2.7]))
        tensor([ 0.,  2., -3.])
        >>> tg.round(tg.tensor([3.14159]), decimals=2)
        tensor([3.1400])
    """
    x = tensor(input)
    result = _round_decimals(x, int(decimals)) if decimals else _round(x)
    return result if out is None else put_out("round", result, out)


def conj(input: Any) -> Any:
    """Elementwise complex conjugate; a real tensor is given back as it is.

    Args:
        input: tensor of any shape and dtype.

    Derivative:
        input: conj(g)

    Example:
        >>> tg.conj(tg.tensor([1 + 2j, 3.0]))
        tensor([1.-2.j, 3.-0.j])
    """
    return _conj_complex(input if isinstance(input, Box) else tensor(input))


@half_in_float32
def _with_alpha(op: Any, input: Any, other: Any, alpha: Any) -> Any:
    """op(input, alpha * other)."""
    if type(input) in SCALARS and type(other) in SCALARS:
        input = tensor(input)
    x, y = promoted([v if type(v) in SCALARS else tensor(v) for v in (input, other)])
    dtype = next(v._d.dtype for v in (x, y) if isinstance(v, Box))
    if type(alpha) is bool and dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if type(alpha) in (float, complex) and not is_inexact(dtype):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if type(alpha) is complex and dtype.kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return op(x, y * (alpha if dtype.kind != "b" else bool(alpha)))


def _times_value(product: Any, x: Any, value: Any) -> Any:
    """A product times `value`, of which integers take the whole part."""
    dtype = common_dtype([x, product])
    value = int(value) if dtype.kind in "iu" and type(value) is float else value
    return product if value == 1 else mul(to_dtype(product, dtype), value)


@numbers_first("alpha")
def add(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Any:
    """Elementwise input + alpha * other.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; the result has their common dtype.
        alpha: a factor of other, default 1.

    Raises:
        RuntimeError: for shapes that do not broadcast; for an alpha that the dtype cannot hold.

    Example:
        >>> tg.add(tg.tensor([1.0, 2.0]), tg.tensor([[10.0], [20.0]]), alpha=0.5)
        tensor([[ 6.,  7.],
                [11., 12.]])
    """
    if alpha != 1 or alpha is True:
        return put_out("add", _with_alpha(_add, input, other, alpha), out)
    return _add(input, other, out=out)


@numbers_first("alpha")
def sub(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Any:
    """Elementwise input - alpha * other.

    Args:
        input, other: tensors of any dtype but bool, or numbers, which broadcast; the result has their common dtype.
        alpha: a factor of other, default 1.

    Raises:
        RuntimeError: for bools; for shapes that do not broadcast; for an alpha that the dtype cannot hold.

    Example:
        >>> tg.sub(tg.tensor([1.0, 2.0]), 10, alpha=0.5)
        tensor([-4., -3.])
    """
    if (alpha != 1 or alpha is True) and not any(
        [isinstance(v, Box) and v._d.dtype.kind == "b" for v in (input, other)]  # which _sub refuses
    ):
        return put_out("sub", _with_alpha(_sub, input, other, alpha), out)
    return _sub(input, other, out=out)


def rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Elementwise other - alpha * input: sub with its operands exchanged.

    Args:
        input, other: tensors of any dtype but bool, or numbers, which broadcast; the result has their common dtype.
        alpha: a factor of input, default 1.

    Example:
        >>> tg.rsub(tg.tensor([1.0, 2.0]), 10)
        tensor([9., 8.])
    """
    result = sub(other, input, alpha=alpha)
    return set_grad_fn_name("RsubBackward0", result) if isinstance(other, Box) else result


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Elementwise input / other, or rounded to a whole number.

    Args:
        input, other: tensors or numbers, which broadcast; true quotients of integers have the default dtype.
        rounding_mode: None, or "floor" (down) or "trunc" (towards 0): then the derivative is 0.

    Raises:
        RuntimeError: for another mode; for a rounded quotient of integers by 0.

    Example:
        >>> tg.div(tg.tensor([7.0, -7.0]), 2)
        tensor([ 3.5000, -3.5000])
        >>> tg.div(tg.tensor([7.0, -7.0]), 2, rounding_mode="trunc")
        tensor([ 3., -3.])
    """
    if rounding_mode is None:
        return div_true(input, other, out=out)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    result = (_floor_divide if rounding_mode == "floor" else _trunc_divide)(input, other)
    return result if out is None else put_out("div", result, out)


def floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Elementwise floor(input / other), as Python's //; its derivative is 0.

    Args:
        input, other: real tensors or numbers, which broadcast; the result has their common dtype.

    Raises:
        RuntimeError: for integers by 0.
        NotImplementedError: for complex numbers and bools.

    Derivative:
        input: 0
        other: 0

    Example:
        >>> tg.floor_divide(tg.tensor([7, -7]), 2)
        tensor([ 3, -4])
    """
    try:
        result = _floor_divide(input, other)
    except errors.ForeignOperand as e:
        return foreign(e, (input, other), False)
    return result if out is None else put_out("floor_divide", result, out)


floor_divide.operator = named(  # type: ignore[attr-defined]
    operator_of(_floor_divide), "floor_divide", floor_divide.__doc__ or ""
)


def rfloor_divide(other: Any, input: Any) -> Any:
    return floor_divide(input, other)


def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Elementwise input**exponent.

    With exponent 0 the derivative by input is 0 whatever input is; at input 0 that by exponent is 0 for exponents >= 0.

    Args:
        input, exponent: tensors or numbers, which broadcast; the result has their common dtype.

    Raises:
        RuntimeError: for integers to a negative whole number.
        NotImplementedError: for two operands of bools.

    Derivative:
        input: g * conj(where((exponent == 0) & ~isfinite(slope), 0, slope)), where slope = exponent * pow(input, exponent -
            1)
        exponent: g * conj(where((input == 0) & (exponent.real >= 0), 0, result * log(input)))

    Example:
        >>> x = tg.tensor([2.0, 3.0], requires_grad=True)
        >>> tg.pow(x, 3).sum().backward()
        >>> x.grad
        tensor([12., 27.])
    """
    foreign_base = not isinstance(input, Box) and overrides.overrides(type(input))
    result = NotImplemented if foreign_base else _power(input, exponent)
    if result is NotImplemented:
        return refused("pow", (input, exponent))
    return result if out is None else put_out("pow", result, out)


def _power(input: Any, exponent: Any) -> Any:
    """`input ** exponent`."""
    if type(input) in SCALARS:
        return rpow(exponent, input)
    x = tensor(input)
    if isinstance(exponent, np.generic):
        exponent = exponent.item()
    if type(exponent) is bool:
        return pow_scalar(x, int(exponent))
    if type(exponent) is int or type(exponent) is float:
        kind = x._d.dtype.kind
        if is_inexact(x._d.dtype):
            power = pow_scalar(x, exponent)
            return power if exponent != 1 else set_grad_fn_name("PowBackward0", power, linked=True)
        if type(exponent) is int and kind in "iub":
            if exponent < 0:
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            return pow_scalar(promoted([x, exponent])[0], exponent)
    if type(exponent).__module__ != "builtins" and operand(exponent, False) is NotImplemented:
        return refused("pow", (input, exponent), True)
    return pow_tensor(*promoted([x, tensor(exponent) if type(exponent) is not complex else exponent]))


pow.operator = named(_power, "pow", pow.__doc__ or "")  # type: ignore[attr-defined]


def rpow(exponent: Any, base: Any) -> Any:
    """`base ** exponent` for a number as base."""
    y = tensor(exponent)
    if type(base) not in SCALARS:
        return pow_tensor(base, y)
    return pow_tensor(fixed(np.asarray(base, common_dtype([y, base]))), y)


@with_out
def sgn(input: Any) -> Any:
    """Elementwise sign; of complex numbers the direction z / abs(z), and 0 at 0.

    The derivative of the sign is 0; the gradient of the direction is the part of the result's across z, over abs(z); 0 at 0.

    Args:
        input: tensor of any shape and dtype; the result has its dtype.

    Example:
        >>> tg.sgn(tg.tensor([3 + 4j, 0j]))
        tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return _sgn(tensor(input))


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Elementwise min(max(input, min), max): input limited to [min, max]; its derivative is 1 at the bounds.

    Args:
        input: real tensor.
        min, max: numbers, or tensors that broadcast and get the gradient where they are taken; None for no bound.

    Raises:
        RuntimeError: if both bounds are None.
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * ((input >= min) & (input <= max))

    Example:
        >>> x = tg.tensor([-2.0, 0.5, 3.0], requires_grad=True)
        >>> tg.clamp(x, -1, 1)
        tensor([-1.0000,  0.5000,  1.0000], grad_fn=<ClampBackward1>)
        >>> tg.clamp(x, -1, 1).sum().backward()
        >>> x.grad
        tensor([0., 1., 0.])
    """
    if out is not None:
        return put_out("clamp", clamp(input, min, max), out)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    x = tensor(input)
    numbers = (int, float, type(None))
    if type(min) in numbers and type(max) in numbers:
        if x._d.dtype.kind in "biu":
            x = promoted([x, *(b for b in (min, max) if b is not None)])[0]
        if min is None:
            return _clamp_max(x, max)
        return _clamp_min(x, min) if max is None else _clamp(x, min, max)
    bounds = [tensor(b) for b in (min, max) if b is not None]
    dtype = common_dtype([x, *bounds])
    lowest, highest = -math.inf, math.inf
    if not is_inexact(dtype):
        lowest, highest = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    lo = fixed(np.asarray(lowest, dtype)) if min is None else bounds[0]
    hi = fixed(np.asarray(highest, dtype)) if max is None else bounds[-1]
    return _clamp_tensor(*promoted([x, lo, hi]))


@with_out
def clamp_min(input: Any, min: Any) -> Any:
    """Elementwise max(input, min); its derivative is 1 at the bound.

    Args:
        input: real tensor.
        min: a number, or a tensor that broadcasts and gets the gradient where it is taken.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * (input >= min)

    Example:
        >>> tg.clamp_min(tg.tensor([-2.0, 0.5, 3.0]), 0)
        tensor([0.0000, 0.5000, 3.0000])
    """
    return set_grad_fn_name("ClampMinBackward0", clamp(input, min=min))


@with_out
def clamp_max(input: Any, max: Any) -> Any:
    """Elementwise min(input, max); its derivative is 1 at the bound.

    Args:
        input: real tensor.
        max: a number, or a tensor that broadcasts and gets the gradient where it is taken.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * (input <= max)

    Example:
        >>> tg.clamp_max(tg.tensor([-2.0, 0.5, 3.0]), 1)
        tensor([-2.0000,  0.5000,  1.0000])
    """
    return set_grad_fn_name("ClampMaxBackward0", clamp(input, max=max))


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elementwise input where condition is true, else other; the branch not taken has gradient 0.

    A branch that is infinite or nan where it is not taken does no harm, in derivatives of any order.

    Args:
        condition: bool tensor; what is not 0 counts as true.
        input, other: tensors or numbers, which broadcast with condition; the result has their common dtype. Without both,
            the indices of the true elements are given, one tensor a dimension.

    Derivative:
        condition: none
        input: where(condition, g, 0)
        other: where(condition, 0, g)

    Example:
        >>> x = tg.tensor([-1.0, 0.0, 4.0], requires_grad=True)
        >>> tg.where(x > 0, tg.sqrt(x), 0.0).sum().backward()
        >>> x.grad
        tensor([0.0000, 0.0000, 0.2500])
    """
    if out is not None:
        return put_out("where", where(condition, input, other), out)
    c = tensor(condition)
    if isinstance(input, Box) and isinstance(other, Box) and c._d.dtype.kind == "b" and input._d.dtype is other._d.dtype:
        return _where(c, input, other)
    if input is None and other is None:
        if lookup.is_batched(c):
            return tuple(lookup.true_indices(c))
        return tuple([fixed_like(i, c) for i in np.nonzero(leaving(c, lookup.SHAPE))])
    if c._d.dtype.kind != "b":
        c = _cast_to(c, np.dtype(bool))
    x, y = operand(input, True), operand(other, True)
    if not isinstance(x, Box) and not isinstance(y, Box):
        x = tensor(x)  # in the default dtype, not NumPy's
    return _where(c, *promoted([tensor(v) if v is NotImplemented else v for v in (x, y)]))


@with_out
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """Elementwise input + weight * (end - input): from input (weight 0) to end (weight 1).

    Args:
        input, end: tensors of one dtype, which broadcast.
        weight: a number, or a tensor of that dtype, or one without dimensions.

    Raises:
        RuntimeError: for tensors of several dtypes.

    Derivative:
        input: g * conj(1 - weight)
        end: g * conj(weight)
        weight: g * conj(end - input)

    Example:
        >>> tg.lerp(tg.tensor([0.0, 10.0]), tg.tensor([1.0, 20.0]), 0.25)
        tensor([ 0.2500, 12.5000])
    """
    for name, t in (("end", end), ("weight", weight)):
        if isinstance(input, Box) and isinstance(t, Box) and t._d.dtype != input._d.dtype:
            if t is weight and not shape_of(t):
                input, end, weight = promoted([input, tensor(end), t])
                break
            want, got = (errors.c_name(a._d.dtype) for a in (input, t))
            raise RuntimeError(f"expected dtype {want} for `{name}` but got dtype {got}")
    return _lerp(tensor(input), end, weight)


@with_out
@numbers_first("value")
@with_grad_fn_name("AddcmulBackward0")
@half_in_float32
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """Elementwise input + value * tensor1 * tensor2.

    Args:
        input, tensor1, tensor2: tensors, which broadcast.
        value: a factor of the product, default 1.

    Example:
        >>> tg.addcmul(tg.tensor([1.0, 1.0]), tg.tensor([2.0, 3.0]), tg.tensor([4.0, 5.0]), value=0.1)
        tensor([1.8000, 2.5000])
    """
    x, product = tensor(input), mul(tensor(tensor1), tensor2)
    return add(x, _times_value(product, x, value))


@with_out
@numbers_first("value")
@with_grad_fn_name("AddcdivBackward0")
@half_in_float32
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """Elementwise input + value * tensor1 / tensor2.

    Args:
        input, tensor1, tensor2: tensors, which broadcast; not both tensor1 and tensor2 of integers.
        value: a factor of the quotient, default 1.

    Raises:
        RuntimeError: if tensor1 and tensor2 are of integers.

    Example:
        >>> tg.addcdiv(tg.tensor([1.0, 1.0]), tg.tensor([2.0, 3.0]), tg.tensor([4.0, 5.0]), value=0.1)
        tensor([1.0500, 1.0600])
    """
    x, y = tensor(tensor1), tensor(tensor2)
    if not is_inexact(common_dtype([x, y])):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
            "division of tensor1 and tensor2. Convert one of them to a floating point dtype."
        )
    return add(tensor(input), div_true(x, y), alpha=value)


@with_out
def nan_to_num(input: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Elementwise input with nan and infinities replaced by numbers; there its derivative is 0.

    Args:
        input: tensor of any shape and dtype; the result has its dtype.
        nan: in place of nan, default 0.
        posinf, neginf: in place of inf and -inf, by default the dtype's largest and smallest number.

    Derivative:
        input: g * isfinite(input)

    Example:
        >>> tg.nan_to_num(tg.tensor([tg.nan, tg.inf, 1.0]), posinf=9.0)
        tensor([0., 9., 1.])
    """
    x = tensor(input)
    if x._d.dtype in HALF:  # whose extremes are not those of float32, in which it is computed
        limits = dtypes.finfo(dtypes.of(x._d.dtype))
        posinf, neginf = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    return _nan_to_num(x, nan, posinf, neginf)


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Elementwise abs(input - other) <= atol + rtol * abs(other); equal infinities are close.

    Args:
        input, other: tensors of one dtype, which broadcast.
        rtol, atol: the relative and the absolute tolerance, default 1e-5 and 1e-8.
        equal_nan: whether nan is close to nan.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        RuntimeError: for tensors of two dtypes.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isclose(tg.tensor([1.0, 2.0]), tg.tensor([1.000001, 2.1]))
        tensor([ True, False])
    """
    x, y = tensor(input), tensor(other)
    if isinstance(input, Box) and isinstance(other, Box) and x._d.dtype != y._d.dtype:
        raise RuntimeError(f"{errors.dtype_name(x._d.dtype)} did not match {errors.dtype_name(y._d.dtype)}")
    return _isclose(x, y, rtol, atol, equal_nan)


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether isclose holds for every element.

    Args:
        input, other: tensors, which broadcast.
        rtol, atol: the relative and the absolute tolerance, default 1e-5 and 1e-8.
        equal_nan: whether nan is close to nan.

    Returns:
        A bool.

    Raises:
        RuntimeError: for shapes that do not broadcast.

    Example:
        >>> tg.allclose(tg.tensor([1.0, 2.0]), tg.tensor([1.000001, 2.0]))
        True
    """
    x, y = _values("allclose()", input, other)
    try:
        return bool(np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan).all())
    except ValueError as e:
        raise errors.forward_failed("allclose", [x.shape, y.shape], e) from None


def equal(input: Any, other: Any) -> bool:
    """Whether both tensors have one shape and the same elements; nan equals nothing.

    Args:
        input, other: tensors of any shape and dtype.

    Returns:
        A bool.

    Example:
        >>> tg.equal(tg.tensor([1, 2]), tg.tensor([1, 2]))
        True
    """
    return bool(np.array_equal(*_values("equal()", input, other)))


def _values(reader: str, *operands: Any) -> list[Any]:
    return [leaving(tensor(x), reader) for x in operands]

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
    """Elementwise nearest integer, or multiple of 10**-decimals; halves to even; its derivative is 0."""
    x = tensor(input)
    result = _round_decimals(x, int(decimals)) if decimals else _round(x)
    return result if out is None else put_out("round", result, out)


def conj(input: Any) -> Any:
    """Elementwise complex conjugate; a real tensor is given back as it is."""
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
    """Elementwise `input + alpha * other` with broadcasting."""
    if alpha != 1 or alpha is True:
        return put_out("add", _with_alpha(_add, input, other, alpha), out)
    return _add(input, other, out=out)


@numbers_first("alpha")
def sub(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Any:
    """Elementwise `input - alpha * other` with broadcasting."""
    if (alpha != 1 or alpha is True) and not any(
        [isinstance(v, Box) and v._d.dtype.kind == "b" for v in (input, other)]  # which _sub refuses
    ):
        return put_out("sub", _with_alpha(_sub, input, other, alpha), out)
    return _sub(input, other, out=out)


def rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Elementwise `other - alpha * input` with broadcasting."""
    result = sub(other, input, alpha=alpha)
    return set_grad_fn_name("RsubBackward0", result) if isinstance(other, Box) else result


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Elementwise quotient: true division, or rounded by "trunc" or "floor" (then its derivative is 0)."""
    if rounding_mode is None:
        return div_true(input, other, out=out)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    result = (_floor_divide if rounding_mode == "floor" else _trunc_divide)(input, other)
    return result if out is None else put_out("div", result, out)


def floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Elementwise quotient rounded down; its derivative is 0."""
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
    """Elementwise power with broadcasting; a number as exponent takes the cheaper rule k * x**(k-1)."""
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
    """Elementwise sign; for complex input z / |z|, and 0 at 0."""
    return _sgn(tensor(input))


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Each element limited to [min, max], numbers or tensors; its derivative is 1 at the bounds."""
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
    """Each element at least `min`."""
    return set_grad_fn_name("ClampMinBackward0", clamp(input, min=min))


@with_out
def clamp_max(input: Any, max: Any) -> Any:
    """Each element at most `max`."""
    return set_grad_fn_name("ClampMaxBackward0", clamp(input, max=max))


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where condition is true, else other, with broadcasting; the branch not taken has gradient 0.

    With the condition alone: the indices of its true elements, one tensor a dimension.
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
    """input + weight * (end - input) with broadcasting; tensors of one dtype, but for a weight without dimensions."""
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
    """input + value * tensor1 * tensor2 with broadcasting."""
    x, product = tensor(input), mul(tensor(tensor1), tensor2)
    return add(x, _times_value(product, x, value))


@with_out
@numbers_first("value")
@with_grad_fn_name("AddcdivBackward0")
@half_in_float32
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """input + value * tensor1 / tensor2 with broadcasting."""
    x, y = tensor(tensor1), tensor(tensor2)
    if not is_inexact(common_dtype([x, y])):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
            "division of tensor1 and tensor2. Convert one of them to a floating point dtype."
        )
    return add(tensor(input), div_true(x, y), alpha=value)


@with_out
def nan_to_num(input: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """input with nan and infinities replaced (by default by 0 and the dtype's extremes); the derivative there is 0."""
    x = tensor(input)
    if x._d.dtype in HALF:  # whose extremes are not those of float32, in which it is computed
        limits = dtypes.finfo(dtypes.of(x._d.dtype))
        posinf, neginf = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    return _nan_to_num(x, nan, posinf, neginf)


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Elementwise |input - other| <= atol + rtol * |other|."""
    x, y = tensor(input), tensor(other)
    if isinstance(input, Box) and isinstance(other, Box) and x._d.dtype != y._d.dtype:
        raise RuntimeError(f"{errors.dtype_name(x._d.dtype)} did not match {errors.dtype_name(y._d.dtype)}")
    return _isclose(x, y, rtol, atol, equal_nan)


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether isclose holds for every element."""
    x, y = _values("allclose()", input, other)
    try:
        return bool(np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan).all())
    except ValueError as e:
        raise errors.forward_failed("allclose", [x.shape, y.shape], e) from None


def equal(input: Any, other: Any) -> bool:
    """Whether both tensors have one shape and the same elements."""
    return bool(np.array_equal(*_values("equal()", input, other)))


def _values(reader: str, *operands: Any) -> list[Any]:
    return [leaving(tensor(x), reader) for x in operands]

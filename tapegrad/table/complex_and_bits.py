"""Parts of numbers: real and imaginary part, sign and size, mantissa and exponent; whole numbers as bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..kernels.complex_and_bits import _angle_real, _join, _of_pairs, _step, _to_pairs
from . import batching
from .define import binary, define, unary
from .refusals import no_kernel, refused_as
from .samples import complex_and_bits as samples
from .samples.common import PREDICATE, STEPS, joined

define(
    "view_as_real", "linear", _to_pairs, (lambda xp, g, ans, x: xp.view_as_complex(g),),
    jax="elementwise.view_as_real", wide=True,
    batch=batching.last, samples=samples.complex_values,
)  # fmt: skip
define(
    "view_as_complex", "linear", _of_pairs, (lambda xp, g, ans, x: xp.view_as_real(g),),
    jax="elementwise.view_as_complex", wide=True,
    batch=batching.last, samples=samples.VIEW_AS_COMPLEX,
)  # fmt: skip


_complex = define(
    "complex", "linear", _join, (lambda xp, g, ans, x, y: xp.real(g), lambda xp, g, ans, x, y: xp.imag(g)),
    jax="elementwise.complex_of", arity=2,
    wide=True, batch=batching.pointwise, samples=samples.REAL_AND_IMAGINARY,
)  # fmt: skip


_angle_of_real = unary("angle", _angle_real, 0.0, "", integers="keep", samples=joined(PREDICATE, STEPS))


copysign, _ = binary(
    "copysign",
    np.copysign,
    # 0 where input is 0, as abs; other has derivative 0
    (lambda xp, ans, x, y: xp.sign(x) * xp.sign(ans), 0.0),
    """Elementwise abs(input) with the sign of other, that of -0.0 too; at 0 its derivative is 0.

    Args:
        input, other: real tensors or numbers, which broadcast; integers give the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * sign(input) * sign(result)
        other: 0

    Example:
        >>> tg.copysign(tg.tensor([1.0, -2.0]), tg.tensor([-0.0, 3.0]))
        tensor([-1.,  2.])
    """,
    saves=("x ans", ""),
    integers="float",
    refuses=no_kernel("c"),
    samples=samples.COPYSIGN,
)


def _predicate(name: str, forward: Callable[..., Any], doc: str, **fields: Any) -> None:
    define(name, "constant", forward, batch=batching.pointwise, samples=PREDICATE, doc=doc, **fields)


def _signbit(xp: Any, x: Any) -> Any:
    return xp.signbit(x) if x.dtype.kind == "f" else xp.less(x, 0)


def _infinite(xp: Any, x: Any, sign: int) -> Any:
    return x == sign * math.inf if x.dtype.kind == "f" else xp.zeros(x.shape, bool)


_predicate(
    "signbit", _signbit,
    """Elementwise: whether the element carries a minus sign, that of -0.0 included.

    Args:
        input: real tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.signbit(tg.tensor([-1.0, -0.0, 2.0]))
        tensor([ True,  True, False])
    """,
    refuses=refused_as("c", "signbit is not implemented for complex tensors.", NotImplementedError),
)  # fmt: skip
_predicate(
    "isposinf", lambda xp, x: _infinite(xp, x, 1),
    """Elementwise: whether the element is inf.

    Args:
        input: real tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Raises:
        RuntimeError: for complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isposinf(tg.tensor([-tg.inf, 1.0, tg.inf]))
        tensor([False, False,  True])
    """,
    refuses=refused_as("c", "isposinf does not support complex inputs."),
)  # fmt: skip
_predicate(
    "isneginf", lambda xp, x: _infinite(xp, x, -1),
    """Elementwise: whether the element is -inf.

    Args:
        input: real tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Raises:
        RuntimeError: for complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isneginf(tg.tensor([-tg.inf, 1.0, tg.inf]))
        tensor([ True, False, False])
    """,
    refuses=refused_as("c", "isneginf does not support complex inputs."),
)  # fmt: skip
_predicate(
    "isreal",
    lambda xp, x: xp.isreal(x),
    """Elementwise: whether the imaginary part is 0; True for real numbers.

    Args:
        input: tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isreal(tg.tensor([1 + 0j, 1j]))
        tensor([ True, False])
    """,
)

# The mask of input: where it is the larger, where they are equal, and where other is nan (unequal to itself).
NO_EXTREME = {
    name: refused_as("c", f"{name} not implemented for complex tensors.") for name in ("fmax", "fmin")
}  # fmt: skip
fmax, _ = binary(
    "fmax",
    np.fmax,
    (
        lambda xp, ans, x, y: xp.logical_or(xp.ge(x, y), xp.ne(y, y)),
        lambda xp, ans, x, y: xp.logical_not(xp.logical_or(xp.ge(x, y), xp.ne(y, y))),
    ),
    """Elementwise larger value, of a nan and a number the number; at a tie input has all of the derivative.

    Args:
        input, other: real tensors, which broadcast; the result has their common dtype.

    Raises:
        RuntimeError: for complex numbers.

    Derivative:
        input: g * ((input >= other) | (other != other))
        other: g * ~((input >= other) | (other != other))

    Example:
        >>> tg.fmax(tg.tensor([1.0, 5.0]), tg.tensor([3.0, tg.nan]))
        tensor([3., 5.])
    """,
    constant_in="",
    saves="x y",
    refuses=NO_EXTREME["fmax"],
    samples=samples.EXTREMES,
)
fmin, _ = binary(
    "fmin",
    np.fmin,
    (
        lambda xp, ans, x, y: xp.logical_or(xp.le(x, y), xp.ne(y, y)),
        lambda xp, ans, x, y: xp.logical_not(xp.logical_or(xp.le(x, y), xp.ne(y, y))),
    ),
    """Elementwise smaller value, of a nan and a number the number; at a tie input has all of the derivative.

    Args:
        input, other: real tensors, which broadcast; the result has their common dtype.

    Raises:
        RuntimeError: for complex numbers.

    Derivative:
        input: g * ((input <= other) | (other != other))
        other: g * ~((input <= other) | (other != other))

    Example:
        >>> tg.fmin(tg.tensor([1.0, 5.0]), tg.tensor([3.0, tg.nan]))
        tensor([1., 5.])
    """,
    constant_in="",
    saves="x y",
    refuses=NO_EXTREME["fmin"],
    samples=samples.EXTREMES,
)

# ----------------------------------------------------------------------------------------------- mantissa and exponent

NO_FRACTION = no_kernel("cbiu")
frac = unary(
    "frac", lambda xp, x: x - xp.trunc(x), 1.0,
    """Elementwise input - trunc(input): the fractional part, with the sign of input.

    Args:
        input: float tensor of any shape.

    Raises:
        NotImplementedError: for other dtypes.

    Derivative:
        input: g

    Example:
        >>> tg.frac(tg.tensor([1.25, -3.5]))
        tensor([ 0.2500, -0.5000])
    """,
    integers="keep",
    refuses=NO_FRACTION, samples=samples.FRAC,
)  # fmt: skip
nextafter, _ = binary(
    "nextafter",
    np.nextafter,
    (lambda xp, ans, x, y: xp.ne(x, y), 0.0),  # 0 where it stays
    """Elementwise next number of the dtype after input towards other.

    Args:
        input, other: float tensors of one dtype, which broadcast.

    Raises:
        NotImplementedError: for other dtypes.

    Derivative:
        input: g * (input != other)
        other: 0

    Example:
        >>> tg.nextafter(tg.tensor(1.0), tg.tensor(2.0)) - 1
        tensor(1.1921e-07)
    """,
    constant_in="",
    saves=("x y", ""),
    refuses=NO_FRACTION,
    samples=samples.NEXTAFTER,
)


_exponent = define(
    "exponent", "constant", lambda xp, x: xp.asarray(xp.frexp(x)[1], np.int32), batch=batching.pointwise,
    samples=samples.EXPONENT,
)  # fmt: skip
_power_of_two = define(
    "power_of_two", "constant", lambda xp, e, dtype: xp.ldexp(xp.ones((), dtype), e).astype(dtype),
    batch=batching.pointwise, samples=samples.POWER_OF_TWO,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- whole numbers


def _whole(name: str, kernel: str, forward: Callable[..., Any], doc: str) -> None:
    def on_integers(xp: Any, x: Any, y: Any) -> Any:
        dtype = xp.result_type(x, y)
        if dtype.kind not in "iu":
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{errors.dtype_name(dtype)}'")
        return forward(xp, x, y)

    define(
        name, "constant", on_integers, arity=2, batch=batching.pointwise, samples=samples.INTEGER_PAIRS, doc=doc,
    )  # fmt: skip


_whole(
    "gcd",
    "gcd_cpu",
    lambda xp, x, y: xp.gcd(x, y),
    """Elementwise greatest common divisor, >= 0; of 0 and 0 it is 0.

    Args:
        input, other: integer tensors or numbers, which broadcast; the result has their common dtype.

    Raises:
        NotImplementedError: for other dtypes, bool among them.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.gcd(tg.tensor([12, -8]), 18)
        tensor([6, 2])
    """,
)
_whole(
    "lcm",
    "lcm_cpu",
    lambda xp, x, y: xp.lcm(x, y),
    """Elementwise least common multiple, >= 0.

    Args:
        input, other: integer tensors or numbers, which broadcast; the result has their common dtype.

    Raises:
        NotImplementedError: for other dtypes, bool among them.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.lcm(tg.tensor([4, 6]), 10)
        tensor([20, 30])
    """,
)


def _shift(name: str) -> Callable[..., Any]:
    """A shift by as many bits as there are, or by a negative number, moves all bits out, as in PyTorch."""

    def shift(xp: Any, x: Any, y: Any) -> Any:
        dtype = xp.result_type(x, y)
        bits = dtype.itemsize * 8
        inside = (xp.asarray(y) >= 0) & (xp.asarray(y) < bits)
        moved = getattr(xp, name)(x, xp.where(inside, y, 0).astype(dtype))
        gone = xp.zeros((), dtype) if name == "left_shift" else xp.where(xp.less(x, 0), -1, 0).astype(dtype)
        return xp.where(inside, moved, gone)

    return shift


_whole(
    "bitwise_left_shift", "lshift_cpu", _shift("left_shift"),
    """Elementwise input * 2**other: the bits moved to the left; 0 where other is negative or the number of bits or more.

    Args:
        input, other: integer tensors or numbers, which broadcast; the result has their common dtype.

    Raises:
        NotImplementedError: for other dtypes, bool among them.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.bitwise_left_shift(tg.tensor([1, 5]), 2)
        tensor([ 4, 20])
    """
)  # fmt: skip
_whole(
    "bitwise_right_shift", "rshift_cpu", _shift("right_shift"),
    """Elementwise floor(input / 2**other): the bits moved to the right, copies of the sign's following.

    Where other is negative, or the number of bits or more, the result is 0, or -1 for a negative input.

    Args:
        input, other: integer tensors or numbers, which broadcast; the result has their common dtype.

    Raises:
        NotImplementedError: for other dtypes, bool among them.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.bitwise_right_shift(tg.tensor([20, -5]), 2)
        tensor([ 5, -2])
    """
)  # fmt: skip


_heaviside = define(
    "heaviside", "constant", _step, arity=2, batch=batching.pointwise,
    refuses=refused_as("c", "heaviside is not yet implemented for complex tensors."), samples=samples.HEAVISIDE,
)  # fmt: skip

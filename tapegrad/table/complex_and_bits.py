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
    "Elementwise size of input with the sign of other.",
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
    "signbit", _signbit, "Whether each element carries a minus sign, -0.0 included.",
    refuses=refused_as("c", "signbit is not implemented for complex tensors.", NotImplementedError),
)  # fmt: skip
_predicate(
    "isposinf", lambda xp, x: _infinite(xp, x, 1), "Whether each element is +inf.",
    refuses=refused_as("c", "isposinf does not support complex inputs."),
)  # fmt: skip
_predicate(
    "isneginf", lambda xp, x: _infinite(xp, x, -1), "Whether each element is -inf.",
    refuses=refused_as("c", "isneginf does not support complex inputs."),
)  # fmt: skip
_predicate("isreal", lambda xp, x: xp.isreal(x), "Whether each element has an imaginary part of 0.")

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
    "Elementwise larger value, of a nan and a number the number; at a tie input has all of the derivative.",
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
    "Elementwise smaller value, of a nan and a number the number; at a tie input has all of the derivative.",
    constant_in="",
    saves="x y",
    refuses=NO_EXTREME["fmin"],
    samples=samples.EXTREMES,
)

# ----------------------------------------------------------------------------------------------- mantissa and exponent

NO_FRACTION = no_kernel("cbiu")
frac = unary(
    "frac", lambda xp, x: x - xp.trunc(x), 1.0, "Elementwise fractional part, with the sign of input.", integers="keep",
    refuses=NO_FRACTION, samples=samples.FRAC,
)  # fmt: skip
nextafter, _ = binary(
    "nextafter",
    np.nextafter,
    (lambda xp, ans, x, y: xp.ne(x, y), 0.0),  # 0 where it stays
    "Elementwise next number after input towards other.",
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


_whole("gcd", "gcd_cpu", lambda xp, x, y: xp.gcd(x, y), "Elementwise greatest common divisor of integers.")
_whole("lcm", "lcm_cpu", lambda xp, x, y: xp.lcm(x, y), "Elementwise least common multiple of integers.")


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
    "bitwise_left_shift", "lshift_cpu", _shift("left_shift"), "Elementwise input * 2**other of integers."
)  # fmt: skip
_whole(
    "bitwise_right_shift", "rshift_cpu", _shift("right_shift"), "Elementwise input / 2**other of integers, rounded down."
)  # fmt: skip


_heaviside = define(
    "heaviside", "constant", _step, arity=2, batch=batching.pointwise,
    refuses=refused_as("c", "heaviside is not yet implemented for complex tensors."), samples=samples.HEAVISIDE,
)  # fmt: skip

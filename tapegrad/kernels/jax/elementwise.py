"""Elementwise kernels for JAX: what is traced most calls `lax` directly, which costs a third of `jax.numpy`'s wrappers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..activations import GELU_CUBE, GELU_EDGE, GELU_RATE, SHRINK_EDGE, inverse_and_rest, shrink_near
from ..elementwise import scaled_atan2_slope, scaled_hypot_slope

Array = Any
Binary = Callable[[Any, Any], Array]

# ----------------------------------------------------------------------------------------------------- lax where it fits


def fitting(fast: Binary, general: Binary) -> Binary:
    """`fast` of two floating-point arrays of one dtype and shape, or of one and a number; else `general`."""

    def run(x: Any, y: Any) -> Array:
        a, b = getattr(x, "dtype", None), getattr(y, "dtype", None)
        if a is not None and b is not None:
            return fast(x, y) if a == b and x.shape == y.shape and a.kind in "fc" else general(x, y)
        if a is not None and a.kind == "f" and type(y) in (float, int):
            return fast(x, np.asarray(y, a))
        if b is not None and b.kind == "f" and type(x) in (float, int):
            return fast(np.asarray(x, b), y)
        return general(x, y)

    return run


add, subtract, multiply = fitting(lax.add, jnp.add), fitting(lax.sub, jnp.subtract), fitting(lax.mul, jnp.multiply)
divide = fitting(lax.div, jnp.true_divide)
maximum, minimum = fitting(lax.max, jnp.maximum), fitting(lax.min, jnp.minimum)
equal, not_equal = fitting(lax.eq, jnp.equal), fitting(lax.ne, jnp.not_equal)
less, less_equal = fitting(lax.lt, jnp.less), fitting(lax.le, jnp.less_equal)
greater, greater_equal = fitting(lax.gt, jnp.greater), fitting(lax.ge, jnp.greater_equal)


def of_floats(fast: Callable[[Any], Array], general: Callable[[Any], Array]) -> Callable[[Any], Array]:
    return lambda x: fast(x) if x.dtype.kind in "fc" else general(x)


exp, expm1 = of_floats(lax.exp, jnp.exp), of_floats(lax.expm1, jnp.expm1)
log, log1p = of_floats(lax.log, jnp.log), of_floats(lax.log1p, jnp.log1p)
sqrt, tanh = of_floats(lax.sqrt, jnp.sqrt), of_floats(lax.tanh, jnp.tanh)
negative, absolute = of_floats(lax.neg, jnp.negative), of_floats(lax.abs, jnp.abs)
erf, erfc, erfinv = lax.erf, lax.erfc, lax.erf_inv


def identity(x: Array) -> Array:
    return x


def first(x: Array, y: Array) -> Array:
    return x


def where(mask: Array, x: Any, y: Any) -> Array:
    if getattr(x, "shape", None) == getattr(y, "shape", None) == mask.shape and x.dtype == y.dtype:
        return lax.select(mask, x, y)
    return jnp.where(mask, x, y)


# ----------------------------------------------------------------------------------------------------- circular functions
#
# Note [Circular functions]
# XLA's float32 sin, cos and tan on the CPU take eight times as long as these polynomials (Cephes), of an argument reduced by
# three parts of pi/2 (Cody and Waite). From 8192 on the reduction loses digits: an array with such a number goes to XLA's.
REDUCED = 8192.0


def quadrant(x: Array) -> tuple[Array, Array, Array]:
    """n, sin(r) and cos(r) for x = n*pi/2 + r, abs(r) <= pi/4; error 1e-7."""
    f = np.float32
    n = lax.convert_element_type(lax.round(x * f(2 / math.pi), lax.RoundingMethod.TO_NEAREST_EVEN), np.int32)
    k = lax.convert_element_type(n, f)  # never -0.0: x - k keeps the sign of a zero x
    r = ((x - k * f(1.5703125)) - k * f(4.837512969970703125e-4)) - k * f(7.54978995489188216e-8)
    z = r * r
    sine = r + r * z * (f(-1.6666654611e-1) + z * (f(8.3321608736e-3) + z * f(-1.9515295891e-4)))
    sine = lax.select(lax.eq(z, f(0)), r, sine)  # -0.0 + 0.0 would be 0.0
    rest = f(4.166664568298827e-2) + z * (f(-1.388731625493765e-3) + z * f(2.443315711809948e-5))
    return n, sine, f(1) - f(0.5) * z + z * z * rest


def bit(n: Array, mask: int) -> Array:
    return lax.ne(lax.bitwise_and(n, np.int32(mask)), np.int32(0))


def fast_sin(x: Array) -> Array:
    n, sine, cosine = quadrant(x)
    y = lax.select(bit(n, 1), cosine, sine)
    return lax.select(bit(n, 2), -y, y)


def fast_cos(x: Array) -> Array:
    n, sine, cosine = quadrant(x)
    y = lax.select(bit(n, 1), sine, cosine)
    return lax.select(bit(n + np.int32(1), 2), -y, y)


def fast_tan(x: Array) -> Array:
    n, sine, cosine = quadrant(x)
    odd = bit(n, 1)
    return lax.select(odd, -cosine, sine) / lax.select(odd, sine, cosine)


def circular(fast: Callable[[Array], Array], exact: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`fast` on the CPU for float32 arrays of moderate numbers."""

    @jax.jit
    def on_cpu(x: Array) -> Array:
        small = lax.reduce_max(lax.abs(x), range(x.ndim)) < REDUCED  # not so for nan and inf
        return lax.cond(small, fast, exact, x)

    def run(x: Array) -> Array:
        return on_cpu(x) if x.dtype == np.float32 and x.size and jax.default_backend() == "cpu" else exact(x)

    return run


sin, cos, tan = circular(fast_sin, jnp.sin), circular(fast_cos, jnp.cos), circular(fast_tan, jnp.tan)


# ------------------------------------------------------------------------------------------------- sigmoid and its kin


def sigmoid(x: Array) -> Array:
    """1/(1 + exp(-x)), exact in both tails."""
    if x.dtype.kind == "c":
        left = x.real < 0
        e = lax.exp(jnp.where(left, x, -x))
        return jnp.where(left, e, 1) / (1 + e)
    e = lax.exp(-lax.abs(x))
    return jnp.where(x < 0, e, 1) / (1 + e)


def sigmoid_slope(x: Array) -> Array:
    if x.dtype.kind == "c":
        return sigmoid(x) * sigmoid(-x)
    e = lax.exp(-lax.abs(x))
    return e / lax.square(1 + e)


def tanh_slope(x: Array) -> Array:
    e = lax.exp(-2 * lax.abs(x)) if x.dtype.kind != "c" else lax.exp(jnp.where(x.real < 0, 2 * x, -2 * x))
    return 4 * e / lax.square(1 + e)


def tanhshrink(x: Array) -> Array:
    difference = x - lax.tanh(x)
    return difference if x.dtype.kind == "c" else jnp.where(lax.abs(x) < SHRINK_EDGE, shrink_near(jnp, x), difference)


def share(x: Any, y: Any) -> Array:
    return sigmoid(distance(x, y))


def distance(x: Any, y: Any) -> Array:
    """x - y; 0 where they are equal, infinite ones too."""
    return jnp.where(jnp.equal(x, y), 0, jnp.subtract(x, y))


def gated(x: Array, gate: Array) -> Array:
    """x * gate, for a gate that is 0 at -inf."""
    return jnp.where(x == -math.inf, -0.0, x * gate)


def sloped(x: Array, slope: Array) -> Array:
    """A slope that is 0 at -inf and 1 at inf, where its formula is inf * 0."""
    return jnp.where(lax.is_finite(x) | (x != x), slope, jnp.where(x > 0, 1, 0).astype(x.dtype))


def silu(x: Array) -> Array:
    return gated(x, sigmoid(x))


def silu_slope(x: Array) -> Array:
    s = sigmoid(x)
    return sloped(x, s * (1 + x * sigmoid(-x)))


def gelu_tanh(x: Array) -> Array:
    return gated(x, sigmoid(x * (1 + GELU_CUBE * (x * x)) * (2 * GELU_RATE)))


def gelu_tanh_slope(x: Array) -> Array:
    x = jnp.clip(x, -GELU_EDGE, GELU_EDGE)
    square = x * x
    v = x * (1 + GELU_CUBE * square) * (2 * GELU_RATE)
    return sigmoid(v) * (1 + x * sigmoid(-v) * (1 + 3 * GELU_CUBE * square) * (2 * GELU_RATE))


def ndtr(x: Array) -> Array:
    return 0.5 * lax.erfc(x * -math.sqrt(0.5))


def gelu(x: Array) -> Array:
    return gated(x, ndtr(x))


def gelu_slope(x: Array) -> Array:
    return sloped(x, ndtr(x) + x * lax.exp(-0.5 * (x * x)) * (1 / math.sqrt(2 * math.pi)))


def correction(x: Array) -> Array:
    return lax.log1p(lax.exp(-lax.abs(x)))


def logsigmoid(x: Array) -> Array:
    return jnp.minimum(x, 0) - correction(x)


def softplus(x: Array, beta: float, threshold: float) -> Array:
    scaled = x if beta == 1 else x * beta
    value = jnp.maximum(scaled, 0) + correction(scaled)
    return jnp.where(scaled > threshold, x, value if beta == 1 else value * (1 / beta))


def softplus_slope(x: Array, beta: float, threshold: float) -> Array:
    scaled = x if beta == 1 else x * beta
    return jnp.where(scaled > threshold, 1, sigmoid(scaled))


def elu(x: Array, alpha: float) -> Array:
    return jnp.maximum(x, 0) + alpha * lax.expm1(jnp.minimum(x, 0))


def elu_slope(x: Array, alpha: float) -> Array:
    return jnp.where(x > 0, 1, alpha * lax.exp(jnp.minimum(x, 0)))


def by_sign(x: Array, positive: float, other: float) -> Array:
    return jnp.where(x > 0, np.asarray(positive, x.dtype), np.asarray(other, x.dtype))


def hardswish(x: Array) -> Array:
    return jnp.clip(x + 3, 0, 6) * x / 6


def hardswish_slope(x: Array) -> Array:
    return jnp.where(x <= -3, 0, jnp.where(x >= 3, 1, x * (1 / 3) + 0.5))


# --------------------------------------------------------------------------------------------------- quotients and powers


def safe_div(x: Any, y: Any) -> Array:
    return jnp.where(jnp.equal(y, 0), 0, jnp.divide(x, y))


def safe_reciprocal(x: Array) -> Array:
    return jnp.where(x == 0, 0, 1 / x)


def hypot(x: Any, y: Any) -> Array:
    return jnp.hypot(x, y)


def hypot_slope(x: Any, y: Any) -> Array:
    return scaled_hypot_slope(jnp, x, y)


def atan2_slope(x: Any, y: Any) -> Array:
    return scaled_atan2_slope(jnp, x, y)


def atan_slope(x: Array) -> Array:
    if x.dtype.kind == "c":
        return 1 / (x * x + 1)
    w, rest = inverse_and_rest(jnp, x)
    return w * w / rest


def asinh_slope(x: Array) -> Array:
    if x.dtype.kind == "c":
        return 1 / jnp.sqrt(x * x + 1)
    w, rest = inverse_and_rest(jnp, x)
    return w / jnp.sqrt(rest)


def power(x: Any, y: Any) -> Array:
    """Powers; of integers to negative ones what is left of the exact value without its fraction, 0 at base 0."""
    dtype = jnp.result_type(x, y)
    if dtype.kind != "i":
        return jnp.power(x, y)
    inverse = jnp.where(jnp.equal(x, 1), 1, jnp.where(jnp.equal(x, -1), 1 - 2 * (jnp.abs(y) % 2), 0))
    return jnp.where(jnp.less(y, 0), inverse.astype(dtype), jnp.power(x, jnp.maximum(y, 0)))


def log_sum(x: Any, y: Any, add_log: Callable[[Array], Array]) -> Array:
    """The larger plus add_log(minus the distance)."""
    if jnp.result_type(x, y).kind == "c":
        first = jnp.real(x) >= jnp.real(y)
        large, small = jnp.where(first, x, y), jnp.where(first, y, x)
        result = large + add_log(small - large)
        return jnp.where(jnp.isfinite(large), result, large)
    return jnp.maximum(x, y) + add_log(-lax.abs(distance(x, y)))


def logaddexp(x: Any, y: Any) -> Array:
    return log_sum(x, y, lambda d: lax.log1p(lax.exp(d)))


def logaddexp2(x: Any, y: Any) -> Array:
    return log_sum(x, y, lambda d: lax.log1p(jnp.exp2(d)) * (1 / math.log(2)))


def winner(x: Any, y: Any) -> Array:
    """1 where x > y or one is nan, 1/2 where they are equal: never a mask, since a program does not know of ties."""
    larger = jnp.logical_not(jnp.less_equal(x, y))
    return jnp.where(jnp.equal(x, y), 0.5, larger).astype(jnp.result_type(x, y))


def on_whole(function: Binary) -> Binary:
    """A rounding division; of integers by 0 it gives what XLA gives: a program cannot raise."""
    return lambda x, y: function(*jnp.broadcast_arrays(*promoted(x, y)))


def promoted(x: Any, y: Any) -> tuple[Array, Array]:
    dtype = jnp.result_type(x, y)
    return jnp.asarray(x, dtype), jnp.asarray(y, dtype)


def signed_remainder(x: Array, y: Array) -> Array:
    r = jnp.remainder(x, y)
    return jnp.where(r == 0, jnp.copysign(r, y), r) if r.dtype.kind == "f" else r  # a zero has the divisor's sign


def signed_floor_divide(x: Array, y: Array) -> Array:
    r = jnp.floor_divide(x, y)
    if r.dtype.kind != "f":
        return r
    exact = x / y
    r = jnp.where(y == 0, exact, r)  # for which JAX 0.8 gives nan
    return jnp.where(r == 0, jnp.copysign(r, exact), r)  # 0 has the sign of x / y


floor_divide, fmod = on_whole(signed_floor_divide), on_whole(jnp.fmod)
remainder = on_whole(signed_remainder)


def sign(x: Array) -> Array:
    return jnp.where(x == 0, jnp.zeros((), x.dtype), jnp.sign(x)) if x.dtype.kind != "b" else x  # -0.0 has the sign 0.0


def trunc_divide(x: Any, y: Any) -> Array:
    x, y = promoted(x, y)
    return jnp.trunc(x / y) if x.dtype.kind == "f" else lax.div(*jnp.broadcast_arrays(x, y))


def complex_of(x: Array, y: Array) -> Array:
    return lax.complex(*jnp.broadcast_arrays(x, y))


def view_as_complex(x: Array) -> Array:
    return lax.complex(x[..., 0], x[..., 1])


def view_as_real(x: Array) -> Array:
    return jnp.stack((x.real, x.imag), -1)


def strong_mul(g: Any, d: Any) -> Any:
    """g * d, and 0 where g is 0 even if d is not finite: one comparison instead of NumPy's test of the result."""
    product = g * d
    return jnp.where(g == 0, jnp.zeros((), product.dtype), product)

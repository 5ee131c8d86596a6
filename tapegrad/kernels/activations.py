"""Logistic functions, activations and their derivatives, and selection by a mask; they keep the promises of `chunks`."""

import math
from typing import Any

import numpy as np

from .chunks import Array, in_chunks
from .constants import numbers
from .gaussian import _ndtr, ndtr_and_gelu, polynomial
from .numpy import cannot_warn

__all__ = [
    "asinh_slope",
    "atan_slope",
    "by_sign",
    "elu",
    "elu_slope",
    "gelu_erf_slope",
    "gelu_tanh",
    "gelu_tanh_slope",
    "hardswish",
    "hardswish_slope",
    "log1pexp",
    "log_sigmoid",
    "select",
    "sigmoid",
    "sigmoid_slope",
    "silu",
    "silu_slope",
    "softplus",
    "softplus_slope",
    "tanh_slope",
    "tanhshrink",
]

GELU_RATE = math.sqrt(2 / math.pi)
GELU_CUBE = 0.044715
GELU_EDGE = 40.0  # beyond, the slope of the tanh form is 0 or 1
_ZERO, _ONE = numbers(0.0), numbers(1.0)
_GELU_TANH = numbers(1.0, GELU_CUBE, 3 * GELU_CUBE, -2 * GELU_RATE, 2 * GELU_RATE)


# 1/(1 + exp(-x)) is accurate in both tails as long as exp(-x) is finite; the few elements below are redone by
# index.  0.5*tanh(x/2) + 0.5 is no faster and loses the lower tail.

least: Any = np.minimum.reduce  # of a line; nan if that has one
greatest: Any = np.maximum.reduce
_INDEXED = 1 << 13  # elements up to which a search is quicker than a reduction: 0.3 us in place of 0.7


def smallest(x: Array) -> Any:
    """The smallest element of an array; nan if it has one."""
    if 0 < x.size <= _INDEXED and x.flags.c_contiguous:
        return x.item(x.argmin())
    return least(x, axis=None)


def largest(x: Array) -> Any:
    """The largest element of an array; nan if it has one."""
    if 0 < x.size <= _INDEXED and x.flags.c_contiguous:
        return x.item(x.argmax())
    return greatest(x, axis=None)


_EXP_LIMIT = {"f": 88.0, "d": 709.0}  # exp stays finite up to here


def _sigmoid(x: Array, out: Array) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += _ONE[x.dtype.char][0]
    np.reciprocal(out, out=out)
    if not smallest(x) >= -_EXP_LIMIT[x.dtype.char]:  # of nan, too
        far = x < -_EXP_LIMIT[x.dtype.char]
        out[far] = np.exp(x[far])


def _gated(x: Array, exponent: Array, out: Array) -> None:
    """x/(1 + exp(exponent))."""
    np.exp(exponent, out=out)
    out += _ONE[x.dtype.char][0]
    np.divide(x, out, out=out)
    if not largest(exponent) <= _EXP_LIMIT[x.dtype.char]:
        far = exponent > _EXP_LIMIT[x.dtype.char]
        # Two factors, neither of them subnormal; a finite x keeps -inf*0 from being nan.
        root = np.exp(-0.5 * exponent[far].astype(np.float64))
        out[far] = np.maximum(x[far], -1e4) * root * root


def _silu(x: Array, out: Array) -> None:
    _gated(x, -x, out)


def _gelu_tanh(x: Array, out: Array) -> None:
    one, cube, _, falling, _ = _GELU_TANH[x.dtype.char]
    exponent = x * x
    exponent *= cube
    exponent += one
    exponent *= x
    exponent *= falling
    _gated(x, exponent, out)


def _correction(x: Array) -> Array:
    """log1p(exp(-|x|))."""
    correction = np.abs(x)
    np.negative(correction, out=correction)
    np.exp(correction, out=correction)
    return np.log1p(correction, out=correction)


def _log1pexp(x: Array, out: Array) -> None:
    np.maximum(x, _ZERO[x.dtype.char][0], out=out)
    out += _correction(x)


def _log_sigmoid(x: Array, out: Array) -> None:
    np.minimum(x, _ZERO[x.dtype.char][0], out=out)
    out -= _correction(x)


def sigmoid(x: Array) -> Array:
    """1/(1 + exp(-x)); never overflows, underflows gradually.

    Error: float64 2.1 ulp, float32 3.6 ulp.
    """
    return in_chunks(_sigmoid, x)


def silu(x: Array) -> Array:
    """x*sigmoid(x) = x/(1 + exp(-x)); -0.0 at -inf.

    Error: float64 2.4 ulp, float32 3.7 ulp.
    """
    return in_chunks(_silu, x)


def gelu_tanh(x: Array) -> Array:
    """0.5*x*(1 + tanh(v)), v = sqrt(2/pi)*(x + 0.044715*x**3), as x/(1 + exp(-2*v)); -0.0 at -inf.

    No cancellation in the lower tail, but exp magnifies the rounding of v: about 2*|v| ulp there.
    Error: float64 2.6 ulp, float32 3.6 ulp for x > -1.
    """
    return in_chunks(_gelu_tanh, x)


def log1pexp(x: Array) -> Array:
    """log(1 + exp(x)) (softplus) as max(x, 0) + log1p(exp(-|x|)).

    Error: float64 1.4 ulp, float32 3.2 ulp.
    """
    return in_chunks(_log1pexp, x)


def log_sigmoid(x: Array) -> Array:
    """log(1/(1 + exp(-x))) = -log1pexp(-x), with its error."""
    return in_chunks(_log_sigmoid, x)


_NORMAL = {"f": 87.0, "d": 708.0}  # from minus this on 1/(1 + exp(-x)) is not subnormal


def _sigmoid_by_slope(x: Array, slope: Array) -> Array:
    """sigmoid(x), and its derivative into `slope`, where no element is beyond `_NORMAL`."""
    np.negative(x, out=slope)
    np.exp(slope, out=slope)
    value = np.asarray(slope + _ONE[x.dtype.char][0])
    np.reciprocal(value, out=value)
    slope *= value
    slope *= value
    return value


def _sigmoid_slope(x: Array, out: Array) -> None:
    if smallest(x) >= -_NORMAL[x.dtype.char]:
        _sigmoid_by_slope(x, out)
        return
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    square = out + 1
    square *= square
    out /= square


def sigmoid_slope(x: Array) -> Array:
    """The derivative of sigmoid, exp(-x)*sigmoid(x)**2 or exp(-|x|)/(1 + exp(-|x|))**2, exact in both tails."""
    return in_chunks(_sigmoid_slope, x)


def _tanh_slope(x: Array, out: Array) -> None:
    np.cosh(x, out=out)
    np.reciprocal(out, out=out)  # before it is squared: the square would overflow
    out *= out


def tanh_slope(x: Array) -> Array:
    """The derivative of tanh, 1/cosh(x)**2, in both tails; of complex numbers by exp(-2*x) or exp(2*x), the smaller."""
    if x.dtype.kind == "c":
        e = np.exp(np.where(x.real < 0, 2 * x, -2 * x))
        return np.asarray(4 * e / ((1 + e) * (1 + e)), x.dtype)
    if x.size < _FEW:
        r = np.reciprocal(np.cosh(x))
        return np.asarray(r * r)
    return in_chunks(_tanh_slope, x)


def inverse_and_rest(xp: Any, x: Any) -> tuple[Any, Any]:
    """w and 1 + r*r with 1 + x*x = (1 + r*r)/(w*w), none of which overflows."""
    size = xp.abs(x)
    w = 1 / xp.maximum(size, 1)
    rest = xp.minimum(size, 1) * w
    return w, rest * rest + 1


def _is_far(x: Array) -> bool:
    """Whether 1 + x*x may overflow; of nan, too."""
    edge = _FAR[x.dtype.char]
    return not (greatest(x) < edge and least(x) > -edge)


_FAR = {"f": 1e18, "d": 1e150}


def _atan_slope(x: Array, out: Array) -> None:
    if _is_far(x):
        w, rest = inverse_and_rest(np, x)
        np.divide(w * w, rest, out=out)
        return
    np.multiply(x, x, out=out)
    out += 1
    np.reciprocal(out, out=out)


def atan_slope(x: Array) -> Array:
    """1/(1 + x*x)."""
    return 1 / (x * x + 1) if x.dtype.kind == "c" else in_chunks(_atan_slope, x)


def _asinh_slope(x: Array, out: Array) -> None:
    if _is_far(x):
        w, rest = inverse_and_rest(np, x)
        np.divide(w, np.sqrt(rest), out=out)
        return
    np.multiply(x, x, out=out)
    out += 1
    np.sqrt(out, out=out)
    np.reciprocal(out, out=out)


def asinh_slope(x: Array) -> Array:
    """1/sqrt(1 + x*x)."""
    return 1 / np.sqrt(x * x + 1) if x.dtype.kind == "c" else in_chunks(_asinh_slope, x)


# x - tanh(x) = x**3*P(x*x)/Q(x*x) up to |x| = 0.6, where the difference cancels: a convergent of tanh's continued fraction,
# relative error 3e-17.
SHRINK_EDGE = 0.6
_SHRINK = (675675, 45045, 594, 1), (2027025, 945945, 51975, 630, 1)


def shrink_near(xp: Any, x: Any) -> Any:
    square = x * x
    return x * square * polynomial(xp, _SHRINK[0], square) / polynomial(xp, _SHRINK[1], square)


def _tanhshrink(x: Array, out: Array) -> None:
    np.tanh(x, out=out)
    np.subtract(x, out, out=out)
    near = np.abs(x) < SHRINK_EDGE
    if near.any():
        out[:] = select(near, shrink_near(np, x), out)


def tanhshrink(x: Array) -> Array:
    """x - tanh(x), near 0, too."""
    return x - np.tanh(x) if x.dtype.kind == "c" else in_chunks(_tanhshrink, x)


def _gate(exponent: Array, out: Array) -> Array:
    """1/(1 + exp(exponent)) into `out`; gives 1 minus that, without cancellation, in `exponent`."""
    (one,) = _ONE[out.dtype.char]
    np.exp(exponent, out=exponent)
    np.add(exponent, one, out=out)
    np.divide(one, out, out=out)
    exponent *= out
    np.fmin(exponent, one, out=exponent)  # inf*0 is nan
    return exponent


def _silu_slope(x: Array, out: Array) -> None:
    rest = _gate(-x, out)
    rest *= x
    rest += _ONE[x.dtype.char][0]
    out *= rest
    if not least(x) >= -_EXP_LIMIT[x.dtype.char]:
        far = x < -_EXP_LIMIT[x.dtype.char]
        z = np.maximum(x[far], -1e4)
        root = np.exp(0.5 * z.astype(np.float64))
        out[far] = (z + 1) * root * root
    _limits(x, out)


def _limits(x: Array, out: Array) -> None:
    """0 and 1 at the ends, where inf * 0 is nan."""
    if not math.isfinite(float(x.dot(x))):
        out[x == -np.inf] = 0
        out[x == np.inf] = 1


def silu_slope(x: Array) -> Array:
    """s*(1 + x*(1 - s)), s = sigmoid(x), in both tails."""
    return in_chunks(_silu_slope, x)


def _gelu_tanh_slope(x: Array, out: Array) -> None:
    x = x.clip(-GELU_EDGE, GELU_EDGE)
    one, cube, three_cubes, falling, rising = _GELU_TANH[x.dtype.char]
    square = x * x
    rate = square * three_cubes
    rate += one
    square *= cube
    square += one
    square *= x
    square *= falling
    rest = _gate(square, out)
    rate *= x
    rate *= rising
    rest *= rate
    rest += one
    out *= rest


def gelu_tanh_slope(x: Array) -> Array:
    """s*(1 + x*(1 - s)*w), s = sigmoid(v), w = v', v = 2*sqrt(2/pi)*(x + 0.044715*x**3)."""
    return in_chunks(_gelu_tanh_slope, x)


def _gelu_erf_slope(x: Array, out: Array) -> None:
    _ndtr(x, out)
    density = x * x
    density *= -0.5
    np.exp(density, out=density)
    density *= 1 / math.sqrt(2 * math.pi)
    density *= x
    out += density
    _limits(x, out)


def gelu_erf_slope(x: Array) -> Array:
    """Phi(x) + x*phi(x), of the standard normal distribution."""
    return in_chunks(_gelu_erf_slope, x)


def softplus(x: Array, beta: float, threshold: float) -> Array:
    """log(1 + exp(beta*x))/beta; x where beta*x > threshold."""
    scaled = x if beta == 1 else x * beta
    result = log1pexp(scaled)
    if beta != 1:
        result *= 1 / beta
    return _where_beyond(scaled, threshold, result, x)


def softplus_slope(x: Array, beta: float, threshold: float) -> Array:
    """sigmoid(beta*x); 1 where beta*x > threshold."""
    scaled = x if beta == 1 else x * beta
    return _where_beyond(scaled, threshold, sigmoid(scaled), None)


def _where_beyond(x: Array, threshold: float, result: Array, value: Array | None) -> Array:
    """`result` with the value (or 1) where x > threshold, which is rare: `np.where` would cost more than all else."""
    if x.size and not largest(x) <= threshold:
        far = np.greater(x, threshold)
        result[far] = 1 if value is None else value[far]
    return result


# Values with derivatives that follow from the same exponential, of small arrays; None for both where some element is so far
# out that the kernels above take another formula. Both have the bits of those kernels.

Two = tuple[Any, Any]
NEITHER = None, None


def sigmoid_and_slope(x: Array) -> Two:
    if not smallest(x) >= -_NORMAL[x.dtype.char]:
        return NEITHER
    slope = np.empty_like(x)
    return _sigmoid_by_slope(x, slope), slope


def silu_and_slope(x: Array) -> Two:
    if not smallest(x) >= -_NORMAL[x.dtype.char]:
        return NEITHER
    slope = np.negative(x)
    return _gated_and_slope(x, slope, x)


def _gated_and_slope(x: Array, exponent: Array, rate: Array) -> Two:
    """x/(1 + exp(exponent)), and for x*(exponent's derivative) = -rate the derivative."""
    (one,) = _ONE[x.dtype.char]
    np.exp(exponent, out=exponent)
    gate = exponent + one
    value = x / gate
    np.reciprocal(gate, out=gate)
    exponent *= gate
    exponent *= rate
    exponent += one
    exponent *= gate
    return value, exponent


def gelu_tanh_and_slope(x: Array) -> Two:
    one, cube, three_cubes, falling, rising = _GELU_TANH[x.dtype.char]
    exponent = x * x
    rate = exponent * three_cubes
    exponent *= cube
    exponent += one
    exponent *= x
    exponent *= falling
    if not largest(exponent) <= _NORMAL[x.dtype.char]:
        return NEITHER
    rate += one
    rate *= x
    rate *= rising
    return _gated_and_slope(x, exponent, rate)


def gelu_erf_and_slope(x: Array) -> Two:
    line = x.reshape(-1)
    share, value = ndtr_and_gelu(line)
    slope = line * line
    slope *= -0.5
    np.exp(slope, out=slope)
    slope *= 1 / math.sqrt(2 * math.pi)
    slope *= line
    slope += share
    return value.reshape(x.shape), slope.reshape(x.shape)


def elu(x: Array, alpha: float) -> Array:
    """x where x > 0, else alpha*(exp(x) - 1)."""
    result = np.minimum(x, 0, out=np.empty_like(x))
    np.expm1(result, out=result)
    if alpha != 1:
        result *= alpha
    result += np.maximum(x, 0)
    return np.asarray(result)


def elu_slope(x: Array, alpha: float) -> Array:
    """1 where x > 0, else alpha*exp(x)."""
    result = np.minimum(x, 0, out=np.empty_like(x))
    np.exp(result, out=result)
    if alpha != 1:
        result *= by_sign(x, 1, alpha)
    return np.asarray(result)


def hardswish(x: Array) -> Array:
    """x*min(max(x + 3, 0), 6)/6."""
    result = np.asarray(x + 3)
    np.maximum(result, 0, out=result)
    np.minimum(result, 6, out=result)
    result *= x
    result /= 6
    return np.asarray(result)


def hardswish_slope(x: Array) -> Array:
    """x/3 + 1/2 within (-3, 3), else 0 or 1."""
    result = np.asarray(x * (1 / 3))
    result += 0.5
    if x.size and not (least(x, axis=None) > -3 and greatest(x, axis=None) < 3):
        result[x <= -3] = 0
        result[x >= 3] = 1
    return np.asarray(result)


_FEW = 1 << 12
_BITS: dict[int, Any] = {2: np.int16, 4: np.int32, 8: np.int64}


def _all_bits(mask: Array, bits: Any) -> Array:
    """Integers with all bits set where true; widened last, which is cheaper."""
    return np.negative(mask.view(np.int8)).astype(bits)


def by_sign(x: Array, positive: float, other: float) -> Array:
    """One of two numbers, by whether x > 0: by their bits, in half the time of sums of products with masks."""
    if x.size <= 2 * _FEW and x.flags.c_contiguous:
        return np.asarray(np.array([other, positive], x.dtype).take(np.greater(x, 0)))
    if x.dtype.itemsize not in _BITS:
        return np.where(np.greater(x, 0), positive, other).astype(x.dtype)
    bits = _BITS[x.dtype.itemsize]
    a, b = (np.asarray(v, x.dtype).view(bits) for v in (positive, other))
    result = _all_bits(np.asarray(np.greater(x, 0)), bits)
    result &= a ^ b
    result ^= b
    return np.asarray(result.view(x.dtype))


@cannot_warn
def select(mask: Array, x: Array | float, y: Array | float) -> Array:
    """`np.where(mask, x, y)`; of many elements by their bits, as a random mask costs np.where 4 ns an element."""
    like: Any = x if getattr(x, "ndim", 0) else y
    if mask.size < _FEW or getattr(like, "shape", None) != mask.shape or not mask.flags.c_contiguous:
        return np.where(mask, x, y)
    bits = _BITS.get(like.dtype.itemsize) if like.dtype.kind != "c" else None
    a, b = _bits_of(x, like, bits), _bits_of(y, like, bits)
    if a is None or b is None:
        return np.where(mask, x, y)
    result = _all_bits(mask, bits)
    if not a.ndim and not a:
        np.invert(result, out=result)
        result &= b
    elif not b.ndim and not b:
        result &= a
    else:
        result &= a ^ b
        result ^= b
    return np.asarray(result.view(like.dtype))


def _bits_of(a: Array | float, like: Array, bits: Any) -> Array | None:
    """The bits of a number or 0-d array, or of an array that lies in memory as `like` does; None for any other."""
    if isinstance(a, np.ndarray):
        fits = a.dtype == like.dtype and (not a.ndim or (a.shape == like.shape and a.flags.c_contiguous))
        return a.view(bits) if fits and bits is not None else None
    fits = like.dtype.kind == "f" and type(a) in (float, int)
    return np.asarray(a, like.dtype).view(bits) if fits else None


def _exponential_linear(xp: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    return xp.where(x > 0, scale * x, (scale * alpha) * xp.expm1(rate * xp.minimum(x, 0)))

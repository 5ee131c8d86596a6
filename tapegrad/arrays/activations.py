"""Kernels of activations' derivatives, and selection by a mask; they keep the promises of `kernels`."""

import math

import numpy as np

from .kernels import Array, _elementwise, _ndtr, log1pexp, sigmoid

__all__ = [
    "by_sign",
    "gelu_erf_slope",
    "gelu_tanh_slope",
    "select",
    "sigmoid_slope",
    "silu_slope",
    "softplus",
    "softplus_slope",
]

GELU_RATE = math.sqrt(2 / math.pi)
GELU_CUBE = 0.044715


def _sigmoid_slope(x: Array, out: Array) -> None:
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    square = out + 1
    square *= square
    out /= square


def sigmoid_slope(x: Array) -> Array:
    """The derivative of sigmoid, exp(-|x|)/(1 + exp(-|x|))**2, exact in both tails."""
    return _elementwise(_sigmoid_slope, x)


def _gate(exponent: Array) -> Array:
    """1/(1 + exp(exponent)), in place."""
    np.exp(exponent, out=exponent)
    exponent += 1
    return np.divide(1, exponent, out=exponent)


def _silu_slope(x: Array, out: Array) -> None:
    s = _gate(-x)
    np.subtract(1, s, out=out)
    out *= x
    out += 1
    out *= s
    _limits(x, out)


def _limits(x: Array, out: Array) -> None:
    """0 and 1 at the ends, where inf * 0 is nan."""
    if not math.isfinite(float(x.dot(x))):
        out[x == -np.inf] = 0
        out[x == np.inf] = 1


def silu_slope(x: Array) -> Array:
    """s*(1 + x*(1 - s)), s = sigmoid(x)."""
    return _elementwise(_silu_slope, x)


def _gelu_tanh_slope(x: Array, out: Array) -> None:
    square = x * x
    rate = square * (3 * GELU_CUBE)
    rate += 1
    square *= GELU_CUBE
    square += 1
    square *= x
    square *= -2 * GELU_RATE
    s = _gate(square)
    np.subtract(1, s, out=out)
    rate *= x
    rate *= 2 * GELU_RATE
    out *= rate
    out += 1
    out *= s
    _limits(x, out)


def gelu_tanh_slope(x: Array) -> Array:
    """s*(1 + x*(1 - s)*w), s = sigmoid(v), w = v', v = 2*sqrt(2/pi)*(x + 0.044715*x**3)."""
    return _elementwise(_gelu_tanh_slope, x)


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
    return _elementwise(_gelu_erf_slope, x)


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
    far = np.greater(x, threshold)
    if far.any():
        result[far] = 1 if value is None else value[far]
    return result


def by_sign(x: Array, positive: float, other: float) -> Array:
    """One of two numbers, by whether x > 0: as the sum of two products, of which one is 0."""
    mask = np.greater(x, 0)
    result = np.multiply(mask, positive, dtype=x.dtype)
    if other:
        result += np.multiply(~mask, other, dtype=x.dtype)
    return np.asarray(result)


_FEW = 1 << 12
_BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def select(mask: Array, x: Array, y: Array) -> Array:
    """`np.where(mask, x, y)`; of many elements by their bits, as a random mask costs np.where 4 ns an element."""
    if mask.size < _FEW or not all(_plain(a, mask) for a in (x, y)):
        return np.where(mask, x, y)
    dtype = np.result_type(x, y)
    if dtype.itemsize not in _BITS or dtype.kind == "c" or any(getattr(a, "dtype", dtype) != dtype for a in (x, y)):
        return np.where(mask, x, y)
    bits = _BITS[dtype.itemsize]
    a, b = (np.asarray(v, dtype).view(bits) for v in (x, y))
    result = np.negative(mask.view(np.int8), dtype=bits)  # all bits set where true
    if not a.ndim and not a:
        np.invert(result, out=result)
        result &= b
    elif not b.ndim and not b:
        result &= a
    else:
        result &= a ^ b
        result ^= b
    return np.asarray(result.view(dtype))


def _plain(a: Array, mask: Array) -> bool:
    """A number, or an array of the mask's shape, both in row-major order."""
    if not isinstance(a, np.ndarray):
        return isinstance(a, float | int)
    return a.ndim == 0 or (a.shape == mask.shape and a.flags.c_contiguous and mask.flags.c_contiguous)

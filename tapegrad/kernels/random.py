"""PyTorch's CPU random streams on NumPy arrays.

A program seeded here draws the numbers that PyTorch draws on the CPU after ``torch.manual_seed``. Every
formula below was found, or checked, by experiment against PyTorch 2.13.0 on an x86 CPU with AVX2.

The stream
    The source is the 32-bit Mersenne Twister MT19937, seeded by the low 32 bits of the seed as
    ``numpy.random.RandomState`` is. ``r`` is one 32-bit draw, and ``r64 = (first << 32) | second`` is two.

Agreement with PyTorch
    * Bit for bit: raw draws, the generator state, ``uniform``, ``randint``, ``random_ints``, ``randperm``,
      ``bernoulli``, ``bernoulli_array``, ``geometric``, and ``normal`` in float32, float16 and bfloat16.
    * ``normal``, ``log_normal``, ``exponential`` and ``cauchy`` in float64 use NumPy's elementary functions
      where PyTorch uses the C library's, so the last bits can differ (2 units in the last place at most for
      ``normal`` with mean 0 and standard deviation 1). In narrower types, which are rounded from float64, the
      results are equal but for rare roundings.
    * ``poisson``, ``standard_gamma``, ``dirichlet`` and ``binomial`` use the C library's functions in float64, as PyTorch
      does: bit for bit on the same C library, up to the rounding of a sum in ``dirichlet``.
    * ``multinomial`` is equal, except for the order of exactly tied weights without replacement.

Where PyTorch itself differs between machines
    * ``bernoulli`` (hence dropout) and ``exponential`` follow the stream of CPUs that are not Intel's. On
      Intel CPUs, PyTorch builds with MKL may draw these from MKL's own generator, which is not reproduced.
    * ``normal`` in blocks, and the fused multiply-adds of ``uniform`` and ``normal``, follow PyTorch's AVX2
      code, which is used wherever the CPU has AVX2. PyTorch on other CPUs rounds differently: float32 normal
      values differ by about 2e-6 at most.

Arrays are filled in C order. PyTorch fills a non-contiguous tensor in the order of its memory.

One file over 1,000 lines, since it is one generator, loaded with the package, where each module costs time.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import errors
from ..contexts import restoring
from ..core.warning import warn
from ..programs.tracing import abort_trace
from .numpy import silently

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, np.dtype[Any]]
Shape = int | Sequence[int]

_DEFAULT_SEED = 67280421310721  # The seed of a new torch.Generator.
_STATE_WORDS = 624
_WIDE_RANGE = 1 << 28  # randint takes 64-bit draws from this range on.
_BLOCK = 16  # Normal values are made in blocks: 8 radii, 8 angles.
_CHUNK = 512  # Blocks handled at once, so that temporaries stay in the CPU cache.
_MOST_AHEAD = 4096  # Draws made at once for calls to come.
_SMALL = 1024  # A call for more draws takes what is there, and draws no more than it needs.
_MANY = 32  # so many numbers are made at once where it can be
_NO_WORDS, _NO_NORMALS, _NO_CALLS = np.empty(0, np.uint32), np.empty(0, np.float32), np.empty((0, 0), np.float32)
_F32 = np.dtype(np.float32)

_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("key", "<u8", _STATE_WORDS),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("normal_is_valid", "<i4"),
        ("padding", "<i4"),
        ("float_normal", "<f4"),
        ("float_normal_is_valid", "<i4"),
    ]
)


def _float32(*values: float) -> tuple[float, ...]:
    return tuple(float(np.float32(v)) for v in values)


# Minimax polynomials of logf, sinf and cosf in the Cephes library (S. Moshier), highest power first.
_LOG = _float32(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_SIN = _float32(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _float32(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_LN2_LOW, _LN2_HIGH = _float32(-2.12194440e-4, 0.693359375)
_PI_4_PARTS = _float32(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_THIRD, _SQUEEZE = _float32(1.0 / 3.0, 0.0331)  # as PyTorch's gamma numbers have them, in float64 too
_SQRT_HALF_BITS = np.float32(math.sqrt(0.5)).view(np.int32)


def _round32(x: Array) -> Array:
    """Round float64 values to float32 precision, kept in float64."""
    return x.astype(np.float32).astype(np.float64)


def _fma32(a: Array, b: Any, c: Any) -> Array:
    """Fused multiply-add of float32 values kept in float64.

    The product is exact, the sum is rounded to float64 and then to float32; this differs from one rounding
    only for a sum within 2**-29 of the midpoint between two float32 values.
    """
    out = a * b
    out += c
    return _round32(out)


def _horner32(coefficients: Sequence[float], x: Array) -> Array:
    y = _fma32(x, coefficients[0], coefficients[1])
    for c in coefficients[2:]:
        y = _fma32(y, x, c)
    return y


def _log32(u: Array) -> Array:
    """Natural logarithm of positive normal float32 values; the result is kept in float64."""
    bits = u.view(np.int32)
    exponent = (bits - _SQRT_HALF_BITS) >> 23
    x = ((bits - (exponent << 23)).view(np.float32) - np.float32(1)).astype(np.float64)
    e = exponent.astype(np.float64)
    z = _round32(x * x)
    y = _round32(_horner32(_LOG, x) * x)
    y = _fma32(y, z, _round32(e * _LN2_LOW))
    y = _fma32(z, -0.5, y)
    return _fma32(e, _LN2_HIGH, _round32(x + y))


def _cos_sin32(angle: Array) -> tuple[Array, Array]:
    """Cosine and sine of float32 angles in [0, 2 pi]."""
    octant = (angle * np.float32(4 / math.pi)).astype(np.int32)
    octant = (octant + 1) & ~1
    y = octant.astype(np.float64)
    x = angle.astype(np.float64)
    for part in _PI_4_PARTS:
        x = _fma32(y, part, x)
    z = _round32(x * x)
    c = _fma32(_round32(_horner32(_COS, z) * z), z, -0.5 * z)
    cos_part = (c + 1.0).astype(np.float32)
    sin_part = (_round32(_horner32(_SIN, z) * z) * x + x).astype(np.float32)
    swap = (octant & 2) != 0
    cos, sin = np.where(swap, sin_part, cos_part), np.where(swap, cos_part, sin_part)
    cos_bits, sin_bits = cos.view(np.int32), sin.view(np.int32)
    cos_bits ^= ((octant + 2) & 4) << 29
    sin_bits ^= (octant & 4) << 29
    return cos, sin


def _unit32(words: Array, scratch: Array | None = None) -> Array:
    """float32 in [0, 1) of 32-bit draws."""
    out = np.bitwise_and(words, np.uint32(0xFFFFFF), out=scratch).astype(np.float32)
    out *= np.float32(2.0**-24)
    return out


def _box_muller32(blocks: Array, mean: float, std: float) -> None:
    (mean,), (std,) = _float32(mean), _float32(std)
    log = _log32(np.float32(1) - blocks[:, 0]).astype(np.float32)
    radius = np.sqrt(np.float32(-2) * log).astype(np.float64)
    for half, part in enumerate(_cos_sin32(np.float32(2 * math.pi) * blocks[:, 1])):
        blocks[:, half] = _round32(radius * part) * std + mean


def _box_muller64(blocks: Array, mean: float, std: float) -> None:
    radius = np.sqrt(-2.0 * np.log(1.0 - blocks[:, 0]))
    angle = 2.0 * math.pi * blocks[:, 1]
    blocks[:, 0] = _fma64(radius * np.cos(angle), std, mean)
    blocks[:, 1] = _fma64(radius * np.sin(angle), std, mean)


def _box_muller(u: Array, mean: float, std: float) -> None:
    """Turn float32 or float64 uniforms, a multiple of 16, into normal values in place."""
    transform = _box_muller64 if u.dtype == np.float64 else _box_muller32
    blocks = u.reshape(-1, 2, _BLOCK // 2)
    for start in range(0, len(blocks), _CHUNK):
        transform(blocks[start : start + _CHUNK], mean, std)


def _split(x: Any) -> tuple[Any, Any]:
    """Split float64 values into two halves of 26 bits (Dekker)."""
    t = 134217729.0 * x
    high = t - (t - x)
    return high, x - high


def _fma64(a: Array, b: float, c: float) -> Array:
    """Fused multiply-add ``a * b + c`` of float64 values, by error-free transformations."""
    if not max(abs(b), abs(c)) <= 1e290:
        return silently(lambda: a * b + c)
    product: Array = a * b
    if b in (0.0, 1.0) or c == 0.0:
        return product + c
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    rest = total - product
    error += (product - (total - rest)) + (c - rest)
    total += error
    return total


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    return dtype.name == "bfloat16"


def _float_dtype(dtype: npt.DTypeLike, name: str) -> np.dtype[Any]:
    dt = np.dtype(dtype)
    if (dt.kind == "f" and dt.itemsize <= 8) or _is_bfloat16(dt):
        return dt
    raise NotImplementedError(f"{name} is not implemented for dtype {dt}")


def _cast(x: Any, dtype: np.dtype[Any]) -> Array:
    """Convert numbers, to 16-bit types by way of float32 as PyTorch does."""
    if type(x) is np.ndarray and x.dtype is dtype:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.itemsize == 2:
            x = np.asarray(x).astype(np.float32, copy=False)
        return np.asarray(x).astype(dtype, copy=False)


def _significand_bits(dtype: np.dtype[Any]) -> int:
    return 8 if _is_bfloat16(dtype) else {2: 11, 4: 24, 8: 53}[dtype.itemsize]


def _shape(shape: Shape) -> tuple[int, ...]:
    sizes = shape if type(shape) is tuple or isinstance(shape, Sequence) else (shape,)
    dims = tuple(map(operator.index, sizes))
    if dims and min(dims) < 0:  # numbers that were drawn would be taken back
        raise errors.negative_size(dims)
    return dims


def _check(condition: bool, text: str, *facts: object) -> None:
    if not condition:
        raise RuntimeError(text.format(*facts))


@functools.cache
def largest_integer(dtype: np.dtype[Any]) -> int:
    """The largest integer of a dtype, of a floating-point one the largest before which all are exact."""
    if dtype.kind == "b":
        return 1
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else 1 << _significand_bits(dtype)


@functools.cache
def _bounds(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest integer that may be asked for."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return (-65504, 65504) if dtype == np.float16 else (-(1 << 64), 1 << 64)


def _check_bounds(low: int, high: int, dtype: np.dtype[Any]) -> None:
    """Refuse integers in [low, high) that a dtype cannot hold, and warn of those that it cannot tell apart."""
    smallest, largest = _bounds(dtype)
    _check(smallest <= low <= largest, "from is out of bounds for {}", dtype)
    _check(smallest <= high - 1 <= largest, "to - 1 is out of bounds for {}", dtype)
    if dtype.kind in "biu":
        return
    exact = largest_integer(dtype)
    for text, value in (("from", low), ("to - 1", high - 1)):
        if abs(value) > exact:
            warn(
                f"{text} is out of bounds [-{exact}, {exact}]. Due to precision limitations {dtype} can support discrete "
                "uniform distribution only within this range."
            )


def _tiny(dtype: np.dtype[Any]) -> Any:
    """The smallest normal number; of bfloat16 that of float32."""
    return dtype.type(float(np.finfo(np.float32 if _is_bfloat16(dtype) else dtype).tiny))


def _poisson(rate: float, uniform: Callable[[], float]) -> float:
    if rate == 0 or rate == math.inf:
        return rate
    if rate < 10:
        limit, count, product = math.exp(-rate), 0, uniform()
        while product > limit:
            count += 1
            product *= uniform()
        return count
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    edge = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        distance = 0.5 - abs(u)
        count = math.floor((2 * a / distance + b) * u + rate + 0.43)
        if distance >= 0.07 and v <= edge:
            return count
        if count < 0 or (distance < 0.013 and v > distance):
            continue
        left = math.log(v) + math.log(inverse) - math.log(a / (distance * distance) + b)
        if count < 1e300 and left <= -rate + count * log_rate - math.lgamma(count + 1):
            return count


def _gamma(
    shape: float, uniform: Callable[[], float], normal: Callable[[], float], rounded: Callable[[float], float]
) -> float:
    if not shape > 0.0:
        return math.nan if math.isnan(shape) else 0.0
    scale = 1.0
    if shape < 1.0:
        scale = (1.0 - uniform()) ** rounded(1.0 / shape)
        shape = rounded(shape + 1.0)
    d = rounded(shape - _THIRD)
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal()
        y = 1.0 + c * x
        if y <= 0.0:
            continue
        v = y * y * y
        if _gamma_accepts(x, v, 1.0 - uniform(), d):
            return scale * d * v


def _gamma_accepts(x: float, v: float, u: float, d: float) -> bool:
    square = x * x
    return u < 1.0 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v))


def _mapped(function: Callable[[float], float], x: Array) -> Array:
    """A function of the C library's, whose last bits NumPy's need not have, of each element."""
    return np.fromiter(map(function, x.tolist()), np.float64, x.size)


def _binomial(n: float, p: float, uniform: Callable[[], float]) -> float:
    if n <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return n
    if math.isnan(p) or not n < math.inf:
        return math.nan
    if p > 0.5:
        return n - _binomial_below(n, 1.0 - p, uniform)
    return _binomial_below(n, p, uniform)


def _binomial_below(n: float, p: float, uniform: Callable[[], float]) -> float:
    """Successes of n trials of a probability up to 1/2."""
    if n * p < 10.0:
        log, total, count = math.log1p(-p), 0.0, 0.0
        while True:
            u = uniform()
            total += math.ceil(min(math.log(u) / log, n + 1.0)) if u else math.inf
            if total > n:
                return count
            count += 1.0
    trials = _Trials(n, p)
    while True:
        u, v = uniform() - 0.5, uniform()
        distance = 0.5 - abs(u)
        k = math.floor((2.0 * trials.a / distance + trials.b) * u + n * p + 0.5) if distance else -1
        if (distance >= 0.07 and v <= trials.edge) or trials.accept(k, distance, v):
            return float(k)


class _Trials:
    """What Hormann's transformed rejection makes of a number of trials and a probability."""

    def __init__(self, n: float, p: float) -> None:
        self.n, self.deviation, self.ratio = n, math.sqrt(n * p * (1.0 - p)), p / (1.0 - p)
        self.b = 1.15 + 2.53 * self.deviation
        self.a = -0.0873 + 0.0248 * self.b + 0.01 * p
        self.m = math.floor((n + 1.0) * p)
        self.edge, self.alpha = 0.92 - 4.2 / self.b, (2.83 + 5.1 / self.b) * self.deviation

    def accept(self, k: float, distance: float, v: float) -> bool:
        """Whether k is accepted that is not within the squeeze."""
        v *= self.alpha / (self.a / (distance * distance) + self.b) if distance else math.inf
        return 0 <= k <= self.n and (not v or math.log(v) <= self.bound(k))

    def bound(self, k: float) -> float:
        n, m, ratio = self.n, self.m, self.ratio
        bound = (m + 0.5) * math.log((m + 1.0) / (ratio * (n - m + 1.0)))
        bound += (n + 1.0) * math.log((n - m + 1.0) / (n - k + 1.0))
        bound += (k + 0.5) * math.log(ratio * (n - k + 1.0) / (k + 1.0))
        return bound + (_stirling_tail(m) + _stirling_tail(n - m) - _stirling_tail(k) - _stirling_tail(n - k))


def _rejected(draws: Array, wanted: int, n: float, p: float) -> tuple[Array, int]:
    """As many binomial numbers as uniforms give by rejection, two an attempt, and how many of these were used."""
    u, v = draws[::2] - 0.5, draws[1::2]
    distance, trials = 0.5 - np.abs(u), _Trials(n, p)
    with np.errstate(divide="ignore"):
        k = np.where(distance > 0.0, np.floor((2.0 * trials.a / distance + trials.b) * u + n * p + 0.5), -1.0)
    accepted = (distance >= 0.07) & (v <= trials.edge)
    left = np.flatnonzero(~accepted & (k >= 0.0) & (k <= n))
    weighed = v[left] * (trials.alpha / (trials.a / (distance[left] * distance[left]) + trials.b))
    bounds = _mapped(functools.cache(trials.bound), k[left])
    accepted[left] = (weighed == 0.0) | (_mapped(math.log, np.where(weighed > 0.0, weighed, 1.0)) <= bounds)
    kept = np.flatnonzero(accepted)[:wanted]
    return k[kept], 2 * (int(kept[-1]) + 1) if len(kept) == wanted else len(draws)


def _counted(draws: Array, wanted: int, n: float, p: float) -> tuple[Array, int]:
    """The same by counting geometric numbers, one of each uniform, whose sum stays within n."""
    with np.errstate(over="ignore"):
        gaps = np.ceil(_mapped(math.log, np.where(draws > 0.0, draws, 1.0)) / math.log1p(-p))
    sums = np.cumsum(np.where(draws > 0.0, np.minimum(gaps, n + 1.0), n + 1.0))  # whole numbers, so exact
    ends = np.searchsorted(sums, np.concatenate([[0.0], sums[:-1]]) + n, "right").tolist()  # of those that begin there
    found: list[float] = []
    start = 0
    while len(found) < wanted and start < len(ends) and ends[start] < len(ends):
        found.append(float(ends[start] - start))
        start = ends[start] + 1
    return np.array(found), start


def _stirling_tail(k: float) -> float:
    """log(k!) less Stirling's formula for it at k + 1/2: (k + 1/2)*log(k + 1) - (k + 1) + log(2*pi)/2."""
    if k < 10:
        return math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.5 * math.log(2.0 * math.pi))
    square = (k + 1.0) * (k + 1.0)  # may overflow
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)


GENERATORS: weakref.WeakSet[Generator] = weakref.WeakSet()


def release(twister: Any) -> None:
    """In a forked process: release the lock of a RandomState, since a thread that held it does not live on there."""
    twister._bit_generator.lock._at_fork_reinit()


def renew_locks() -> None:
    for generator in tuple(GENERATORS):
        generator._lock = threading.RLock()
        if generator._twister is not None:
            release(generator._twister)


@functools.cache
def renew_locks_in_children() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew_locks)


def entropy() -> int:
    """A seed of 53 bits from the operating system."""
    return int.from_bytes(os.urandom(7), "little") & ((1 << 53) - 1)


Method = TypeVar("Method", bound=Callable[..., Any])


def whole(method: Method) -> Method:
    """Decorator: a call that an exception interrupts, such as Ctrl-C, has not touched the generator."""

    @functools.wraps(method)
    @restoring
    def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if self._kept is not None:  # part of another draw
                return method(self, *args, **kwargs)
            before = self.__dict__.copy()
            try:
                self._kept = []
                result = method(self, *args, **kwargs)
                self._kept = None
                return result
            except BaseException:
                if self._kept:
                    self._stream.set_state(self._kept[0])
                self.__dict__.update(before)
                raise

    return draw  # type: ignore[return-value]


class Generator:
    """A random stream equal to the stream of ``torch.Generator()`` on the CPU.

    Drawing methods take the shape and the NumPy dtype of the array to make. float16 is supported throughout,
    and so is bfloat16 given as the dtype of the ``ml_dtypes`` package. Several threads may draw from one
    generator: each call gets its own stretch of the stream.

    Args:
        device: only ``"cpu"`` is accepted.
    """

    def __init__(self, device: Any = "cpu") -> None:
        own = device is None or str(device).partition(":")[0] == "cpu"
        _check(own, "Generator supports only the device 'cpu', but got '{}'", device)
        self._twister: np.random.RandomState | None = None
        self._ahead, self._used = _NO_WORDS, 0
        self._normals, self._first, self._run = _NO_NORMALS, 0, 0
        self._cut, self._cut_first, self._cut_length, self._calls = _NO_CALLS, 0, 0, 0
        self._kept: list[Any] | None = None  # while numbers are drawn: the twister's state before, if it has moved
        abort_trace("seeding a generator")
        self._restart(_DEFAULT_SEED)

    @functools.cached_property
    def _lock(self) -> Any:
        """Made when it is first taken: a fork concerns no generator before that, and an import leaves no handler."""
        renew_locks_in_children()
        GENERATORS.add(self)
        return self.__dict__.setdefault("_lock", threading.RLock())  # another thread may have been quicker

    @property
    def _stream(self) -> np.random.RandomState:
        """Made at the first draw: importing numpy.random costs a sixth of importing the package."""
        if self._twister is None:
            self._twister = np.random.RandomState(self._seed & 0xFFFFFFFF)
        return self._twister

    def __reduce__(self) -> Any:
        return type(self), (), self.get_state()

    def __setstate__(self, state: Array) -> None:
        self.set_state(state)

    # Seeds and states.

    @whole
    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from a seed and return the generator.

        Seeds in [-2**63, 2**64) are accepted; a negative seed counts as ``2**64 + seed``. Only the low 32
        bits choose the stream (experiment: seeds 5 and 2**32 + 5 give the same draws in PyTorch).
        """
        abort_trace("seeding a generator")
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        value = operator.index(seed)
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError(f"Overflow when unpacking long long. A seed must be in [-2**63, 2**64), but got {value}.")
        with self._lock:
            self._restart(value % (1 << 64))
        return self

    def _restart(self, seed: int) -> None:
        """What manual_seed does, without the lock: for a generator that no other thread has yet."""
        self._seed = seed
        self._forget()
        if self._twister is not None:
            self._keep()
            self._twister.seed(seed & 0xFFFFFFFF)
        self._fresh = True
        self._cached_normal: float | None = None

    def seed(self) -> int:
        """Seed from the operating system's entropy and return the seed, an integer of 53 bits."""
        value = entropy()
        self.manual_seed(value)
        return value

    def initial_seed(self) -> int:
        """The last seed given to the generator, in [0, 2**64)."""
        return self._seed

    @whole
    def get_state(self) -> Array:
        """The state as 5056 bytes (uint8), byte for byte the state of ``torch.Generator.get_state``.

        The layout, little-endian (established by comparing states): seed (u64), draws left before the next
        twist plus one (i32), 1 (i32), position (u64), 624 words (u64 each), three float64 of which the second
        is the cached normal value, a flag (i32) that says whether there is one, and padding.
        """
        with self._lock:
            self._rewind()
            _, key, position, *_ = self._stream.get_state(legacy=True)
            state = np.zeros((), _STATE)
            state["seed"] = self._seed
            state["left"] = _STATE_WORDS + 1 - int(position)
            state["seeded"] = 1
            state["next"] = 0 if self._fresh else position
            state["key"] = key
            if self._cached_normal is not None:
                state["normal_y"] = self._cached_normal
                state["normal_is_valid"] = 1
        return np.frombuffer(state.tobytes(), np.uint8).copy()

    @whole
    def set_state(self, state: npt.ArrayLike) -> None:
        """Continue from a state of :meth:`get_state`, or of a CPU generator of PyTorch."""
        abort_trace("restoring a generator's state")
        data = np.ascontiguousarray(state)
        if data.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, of dtype uint8, but got {data.dtype}")
        size = _STATE.itemsize
        _check(
            data.size == size,
            "Expected a CPUGeneratorImplState of size {} but found the input RNG state size to be {}",
            size,
            data.size,
        )
        fields = data.reshape(-1).view(_STATE)[0]
        left, position = int(fields["left"]), int(fields["next"])
        valid = fields["seeded"] == 1 and 0 < left <= _STATE_WORDS and position <= _STATE_WORDS
        _check(bool(valid), "Invalid mt19937 state")
        with self._lock:
            self._forget()
            self._keep()
            key = fields["key"].astype(np.uint32)
            self._stream.set_state(("MT19937", key, _STATE_WORDS + 1 - left, 0, 0.0))
            self._seed = int(fields["seed"])
            self._fresh = left == 1 and position == 0
            self._cached_normal = float(fields["normal_y"]) if fields["normal_is_valid"] else None

    # Raw draws.

    # A call of NumPy's for a few numbers costs more than the numbers: they are drawn ahead of the calls that want them, and
    # normal numbers are computed ahead as long as calls take them one after the other. What was not taken is given back
    # when the state is looked at.

    def _keep(self) -> None:
        """To be called before the twister moves."""
        if self._kept is not None and not self._kept:
            self._kept.append(self._stream.get_state(legacy=True))

    def _drawn(self, n: int) -> Array:
        self._keep()
        return self._stream._bit_generator.random_raw(n).astype(np.uint32)

    def _forget(self) -> None:
        """Drop what was drawn ahead: the twister goes on from another state."""
        self._ahead, self._used = _NO_WORDS, 0
        self._normals, self._first = _NO_NORMALS, 0
        self._cut, self._cut_first = _NO_CALLS, 0

    def _rewind(self) -> None:
        """Give back what was drawn ahead and not taken."""
        used = self._used
        if used < len(self._ahead):
            self._keep()
            self._stream.set_state(self._before)
            self._drawn(used)
        self._forget()

    def _take(self, n: int, on_loan: bool = False) -> int:
        """Where the next ``n`` draws, at most _MOST_AHEAD, begin in those drawn ahead; on loan some may be given back.

        None but these are drawn at first, or after a look at the state, then twice as many as were used of the last ones.
        """
        start = self._used
        if start + n > len(self._ahead):
            size = max(n, min(2 * start, _MOST_AHEAD))
            self._rewind()
            if size > n or on_loan:
                self._before = self._stream.get_state(legacy=True)
            self._ahead, start = self._drawn(size), 0
        self._used = start + n
        self._fresh = self._fresh and n == 0
        return start

    def _words(self, n: int) -> Array:
        """The next ``n`` 32-bit draws."""
        with self._lock:
            if n <= _SMALL:
                start = self._take(n)
                return self._ahead[start : start + n].copy()
            rest = self._ahead[self._used : self._used + n]
            if len(rest) == n:
                self._used += n
                return rest.copy()
            self._keep()
            self._forget()
            self._fresh = False
            words = self._stream.randint(0, 1 << 32, size=n - len(rest), dtype=np.uint32)
            return np.concatenate([rest, words]) if len(rest) else words

    def _normals32(self, n: int) -> Array:
        """Standard normal float32 values of the next ``n`` draws, few and whole blocks; not to be written to."""
        with self._lock:
            start = self._take(n)
            at = start - self._first
            if at < 0 or at % _BLOCK or at + n > len(self._normals):
                going_on = at == len(self._normals)
                self._run = max(n, min(2 * self._run, (len(self._ahead) - start) // _BLOCK * _BLOCK)) if going_on else n
                self._normals, self._first = _unit32(self._ahead[start : start + self._run]), start
                _box_muller(self._normals, 0.0, 1.0)
                at = 0
            return self._normals[at : at + n]

    def _cut_normals32(self, n: int) -> Array:
        """The same of an incomplete last block, which takes draws of its own; made for several calls of one length."""
        draws, whole = n + _BLOCK, n - n % _BLOCK
        with self._lock:
            start = self._take(draws)
            call, between = divmod(start - self._cut_first, draws)
            known = self._cut_length == n and not between
            if not (known and 0 <= call < len(self._cut)):
                going_on = known and call == len(self._cut)
                self._calls = calls = max(1, min(2 * self._calls, (len(self._ahead) - start) // draws)) if going_on else 1
                uniforms = _unit32(self._ahead[start : start + calls * draws]).reshape(calls, draws)
                values = np.concatenate([uniforms[:, :whole], uniforms[:, n:]], axis=1)
                _box_muller(values, 0.0, 1.0)
                self._cut = np.concatenate([values[:, : n - _BLOCK], values[:, whole:]], axis=1)
                self._cut_first, self._cut_length, call = start, n, 0
            normals: Array = self._cut[call]
            return normals

    def _words64(self, n: int) -> Array:
        """The next ``n`` 64-bit draws, each made of two 32-bit draws, high half first."""
        words = self._words(2 * n)
        out = words[::2].astype(np.uint64)
        out <<= np.uint64(32)
        out |= words[1::2]
        return out

    def _uniform32(self, n: int) -> Array:
        """float32 in [0, 1): ``(r & 0xffffff) * 2**-24``."""
        with self._lock:
            if n > _SMALL:
                words = self._words(n)
                return _unit32(words, words)
            start = self._take(n)
            return _unit32(self._ahead[start : start + n])

    def _integers53(self, n: int) -> Array:
        """The low 53 bits of 64-bit draws."""
        out = self._words64(n)
        out &= np.uint64((1 << 53) - 1)
        return out

    def _uniform64(self, n: int) -> Array:
        """float64 in [0, 1): ``(r64 & (2**53 - 1)) * 2**-53``."""
        out = self._integers53(n).astype(np.float64)
        out *= 2.0**-53
        return out

    def _uniforms_on_loan(self, n: int) -> Array:
        """The same, of no more than _MOST_AHEAD draws: who does not use all of them counts `_used` back."""
        self._used = self._take(2 * n, on_loan=True)
        return self._uniform64(n)

    def _paired_normals(self, n: int) -> Array:
        """Standard normal float64 values made in pairs; the second of a pair may wait for the next call."""
        with self._lock:
            start = int(n > 0 and self._cached_normal is not None)
            pairs = self._uniform64((n - start + 1) // 2 * 2).reshape(-1, 2)
            radius = np.sqrt(-2.0 * np.log1p(-pairs[:, 1]))
            angle = 2.0 * math.pi * pairs[:, 0]
            points = np.empty_like(pairs)
            points[:, 0], points[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
            values = points.reshape(-1)
            if start:
                values = np.concatenate([[self._cached_normal], values])
                self._cached_normal = None
            if len(values) > n:
                self._cached_normal = float(values[-1])
        return values[:n]

    # Continuous distributions.

    @whole
    def uniform(self, shape: Shape, dtype: npt.DTypeLike = np.float32, low: float = 0.0, high: float = 1.0) -> Array:
        """Uniform values in [low, high), as ``torch.rand`` and ``Tensor.uniform_``.

        ``u * (high - low) + low`` with a fused multiply-add, where ``u`` is ``(r & 0xffffff) * 2**-24``
        in float32 and narrower types, computed in float32, and ``(r64 & (2**53 - 1)) * 2**-53`` in float64. A
        value that rounds to ``high`` becomes ``low`` (experiment against PyTorch 2.13 CPU).
        """
        dt, dims = _float_dtype(dtype, "uniform"), _shape(shape)
        if dt is _F32 and low == 0 and high == 1:
            return self._uniform32(math.prod(dims)).reshape(dims)
        bottom, top = _cast(low, dt), _cast(high, dt)
        _check(bool(np.isfinite(bottom) and np.isfinite(top)), "uniform expects finite bounds within {}", dt)
        _check(low <= high, "uniform expects a [from, to) range, but found from={} > to={}", low, high)
        within = bool(np.isfinite(_cast(float(high) - float(low), dt)))
        _check(within, "uniform expects to - from within {}, but found from={} and to={}", dt, low, high)
        n = math.prod(dims)
        if dt.itemsize == 8:
            values = _fma64(self._uniform64(n), high - low, low)
        else:
            values = self._uniform32(n)
            span = np.float32(high) - np.float32(low)
            if low != 0.0:
                values = (values * np.float64(span) + float(np.float32(low))).astype(np.float32)
            elif span != 1.0:
                values *= span
        out = _cast(values, dt)
        too_high = out >= top
        if too_high.any():
            out[too_high] = bottom
        return out.reshape(dims)

    @whole
    def normal(
        self,
        shape: Shape,
        dtype: npt.DTypeLike = np.float32,
        mean: float = 0.0,
        std: float = 1.0,
        *,
        contiguous: bool = True,
    ) -> Array:
        """Normal values, as ``torch.randn`` and ``Tensor.normal_``.

        Fewer than 16 values are made in pairs in float64: from uniforms ``u1, u2`` in the order drawn, the
        radius is ``sqrt(-2 log1p(-u2))`` and the angle ``2 pi u1``; the cosine part is used first, and the
        sine part is kept for the next call that makes values in pairs. From 16 values on, each block of 16
        uniforms of the dtype gives radii ``sqrt(-2 log(1 - u[0:8]))`` and angles ``2 pi u[8:16]``, first the
        8 cosine parts, then the 8 sine parts; if the last block is incomplete, the last 16 values are drawn
        once more. float16 and bfloat16 are float32 values rounded, and skip the draws that an incomplete
        block discards (experiment against PyTorch 2.13 CPU).

        Blocks in float32 take the logarithm, sine and cosine by the single-precision polynomials of the
        Cephes library with fused multiply-adds, which reproduces PyTorch's AVX2 code bit for bit. The fused
        multiply-add is emulated in float64: in one of about 2**29 operations its last bit may differ.

        Args:
            shape: the shape of the result.
            dtype: a floating-point dtype.
            mean: the mean.
            std: the standard deviation, not negative.
            contiguous: False gives the pairwise values that PyTorch gives to a non-contiguous tensor of any
                size, in the order of that tensor's memory.
        """
        dt, dims = _float_dtype(dtype, "normal"), _shape(shape)
        _check(std >= 0.0, "normal expects std >= 0.0, but found std {}", std)
        n = math.prod(dims)
        rest = n % _BLOCK
        if (_BLOCK < n <= _SMALL - _BLOCK if rest else 0 < n <= _SMALL) and dt is _F32 and contiguous:
            values = (self._cut_normals32(n) if rest else self._normals32(n)).reshape(dims)
            if mean == 0 and std == 1:
                return values.copy()
            (mean,), (std,) = _float32(mean), _float32(std)
            return _cast(values.astype(np.float64) * std + mean, dt)
        if n < _BLOCK or not contiguous:
            return _cast(_fma64(self._paired_normals(n), std, mean), dt).reshape(dims)
        return _cast(self._block_normals(n, dt, mean, std), dt).reshape(dims)

    def _block_normals(self, n: int, dtype: np.dtype[Any], mean: float, std: float) -> Array:
        uniform = self._uniform64 if dtype.itemsize == 8 else self._uniform32
        whole = n - n % _BLOCK
        if whole == n:
            values = uniform(n)
            _box_muller(values, mean, std)
            return values
        skipped = n if dtype.itemsize > 2 else whole
        uniforms = uniform(skipped + _BLOCK)
        values = np.concatenate([uniforms[:whole], uniforms[skipped:]])
        _box_muller(values, mean, std)
        return np.concatenate([values[: n - _BLOCK], values[whole:]])

    @whole
    def log_normal(self, shape: Shape, dtype: npt.DTypeLike = np.float32, mean: float = 1.0, std: float = 2.0) -> Array:
        """Log-normal values, as ``Tensor.log_normal_``.

        ``exp`` of normal values made in pairs in float64 whatever their number (experiment against PyTorch
        2.13 CPU).
        """
        dt, dims = _float_dtype(dtype, "log_normal"), _shape(shape)
        _check(std > 0.0, "log_normal expects std > 0.0, but found std={}", std)
        normals = _fma64(self._paired_normals(math.prod(dims)), std, mean)
        with np.errstate(over="ignore"):
            return _cast(np.exp(normals), dt).reshape(dims)

    @whole
    def exponential(self, shape: Shape, dtype: npt.DTypeLike = np.float32, lambd: float = 1.0) -> Array:
        """Exponential values, as ``Tensor.exponential_``.

        ``-1 / lambd * log1p(-u)`` of a float64 uniform ``u`` (experiment against PyTorch 2.13 on a CPU that
        is not Intel's).
        """
        dt, dims = _float_dtype(dtype, "exponential"), _shape(shape)
        _check(lambd > 0.0, "exponential expects lambda > 0.0, but found lambda={}", lambd)
        return _cast(-1.0 / lambd * np.log1p(-self._uniform64(math.prod(dims))), dt).reshape(dims)

    @whole
    def cauchy(self, shape: Shape, dtype: npt.DTypeLike = np.float32, median: float = 0.0, sigma: float = 1.0) -> Array:
        """Cauchy values, as ``Tensor.cauchy_``.

        ``median + sigma * tan(pi * (u - 0.5))`` of a float64 uniform ``u`` (experiment against PyTorch 2.13
        CPU).
        """
        dt, dims = _float_dtype(dtype, "cauchy"), _shape(shape)
        _check(sigma > 0.0, "cauchy expects sigma > 0.0, but found sigma={}", sigma)
        tangent = np.tan(math.pi * (self._uniform64(math.prod(dims)) - 0.5))
        return _cast(_fma64(tangent, sigma, median), dt).reshape(dims)

    # Discrete distributions.

    @whole
    def geometric(self, shape: Shape, dtype: npt.DTypeLike, p: float) -> Array:
        """Numbers of trials up to the first success, as ``Tensor.geometric_``.

        ``ceil(log(u) / log(1 - p))`` of a float64 uniform ``u`` (experiment against PyTorch 2.13 CPU).
        """
        dt, dims = np.dtype(dtype), _shape(shape)
        _check(0.0 < p < 1.0, "geometric expects p to be in (0, 1), but got p={}", p)
        with np.errstate(divide="ignore"):
            trials = np.ceil(np.log(self._uniform64(math.prod(dims))) / math.log(1.0 - p))
        if dt.kind in "iu":
            trials = trials.astype(np.int64)
            return trials.astype(dt).reshape(dims)
        return _cast(trials, _float_dtype(dt, "geometric")).reshape(dims)

    @whole
    def bernoulli(self, shape: Shape, dtype: npt.DTypeLike, p: float) -> Array:
        """Ones with probability ``p``, as ``Tensor.bernoulli_(p)``.

        Dropout with probability ``p`` keeps the elements where ``bernoulli(1 - p)`` is one.
        ``u < p`` of a float64 uniform ``u`` (experiment against PyTorch 2.13 on a CPU that is not Intel's).
        """
        dims = _shape(shape)
        _check(0.0 <= p <= 1.0, "bernoulli expects p to be in [0, 1], but got p={}", p)
        # k * 2**-53 < p for an integer k, without the conversion of k.
        ones = self._integers53(math.prod(dims)) < np.uint64(math.ceil(p * 2.0**53))
        return ones.astype(dtype, copy=False).reshape(dims)

    @whole
    def bernoulli_array(self, p: Array, dtype: npt.DTypeLike | None = None) -> Array:
        """Ones with the probabilities in ``p``, as ``torch.bernoulli(p)`` and ``Tensor.bernoulli_(p)``.

        ``u < p`` of a float64 uniform if ``p`` is float64, of a float32 uniform otherwise (experiment against
        PyTorch 2.13 CPU). The dtype of the result is the dtype of ``p`` by default.
        """
        dt = _float_dtype(p.dtype, "bernoulli_array")
        _check(
            silently(lambda: bool(np.all((p >= 0) & (p <= 1)))), "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
        )
        if dt.itemsize == 8:
            ones = self._uniform64(p.size).reshape(p.shape) < p
        else:
            ones = self._uniform32(p.size).reshape(p.shape) < p.astype(np.float32, copy=False)
        return ones.astype(dt if dtype is None else dtype, copy=False)

    # Draws of which the number is known only as they are made: one element after the other, in float64.

    @contextlib.contextmanager
    def _serial(self, ahead: int) -> Iterator[Callable[[], float]]:
        """A function that draws one float64 uniform; afterwards the stream goes on behind the last one it gave.

        Args:
            ahead: how many to draw at once, at first.
        """
        with self._lock:
            self._rewind()
            state, used = self._stream.get_state(legacy=True), 0

            def uniforms() -> Iterator[float]:
                nonlocal used
                for size in itertools.chain([ahead], itertools.repeat(4096)):
                    for u in self._uniform64(size).tolist():
                        used += 1
                        yield u

            try:
                yield uniforms().__next__
            finally:
                self._forget()
                self._keep()
                self._stream.set_state(state)
                self._words(2 * used)

    def _normal(self, uniform: Callable[[], float]) -> float:
        """A standard normal number, made in pairs as by `_paired_normals`."""
        value = self._cached_normal
        if value is not None:
            self._cached_normal = None
            return value
        angle, radius = 2.0 * math.pi * uniform(), math.sqrt(-2.0 * math.log1p(-uniform()))
        self._cached_normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    @whole
    def poisson(self, rates: Array) -> Array:
        """Poisson numbers, as ``torch.poisson(rates)``: in the order of the rates, one after the other.

        Below a rate of 10 uniforms are multiplied until the product falls below exp(-rate) (Knuth); above, transformed
        rejection with squeeze (Hormann 1993). Both take float64 uniforms (experiment against PyTorch 2.13 CPU).
        """
        flat = rates.astype(np.float64).ravel().tolist()
        with self._serial(4 * len(flat)) as uniform:
            counts = np.array([_poisson(rate, uniform) for rate in flat], np.float64)
        return _cast(counts, _float_dtype(rates.dtype, "poisson")).reshape(rates.shape)

    @whole
    def standard_gamma(self, shapes: Array) -> Array:
        """Gamma numbers of rate 1 of these shapes, as ``torch._standard_gamma``: one after the other, in float64.

        The method of Marsaglia and Tsang (2000), on normal numbers made in pairs and float64 uniforms ``1 - u``; a shape
        below 1 is raised by 1 and the number multiplied by ``(1 - u)**(1/shape)``, whose uniform is drawn first. What
        comes of the shape alone is rounded to the dtype. The result is at least the smallest normal number of the dtype
        (experiment against PyTorch 2.13 CPU).
        """
        dt = _float_dtype(shapes.dtype, "standard_gamma")
        with np.errstate(under="ignore", over="ignore"):
            values = self._gammas(shapes, np.float64 if dt.itemsize == 8 else np.float32)
            return np.asarray(np.maximum(_cast(values, dt), _tiny(dt)))

    def _gammas(self, shapes: Array, kind: type[np.floating[Any]]) -> Array:
        wide = shapes.astype(np.float64).ravel()
        if len(wide) >= _MANY and (wide >= 1.0).all() and np.isfinite(wide).all():
            values = self._many_gammas((wide - _THIRD).astype(kind).astype(np.float64))
        else:
            rounded = float if kind is np.float64 else lambda x: float(kind(x))
            with self._serial(4 * len(wide)) as uniform:
                found = [_gamma(shape, uniform, lambda: self._normal(uniform), rounded) for shape in wide.tolist()]
            values = np.array(found, np.float64)
        return np.asarray(np.maximum(values.reshape(shapes.shape), _tiny(np.dtype(np.float64))))

    # Where it does not depend on the outcome of an attempt which draws the next one takes, many are made at once: for gamma
    # numbers of shapes from 1 on, whose attempts take a normal number and a uniform each (a shape below 1 draws one more
    # before the first attempt, so that a rejection moves all that follow), and for binomial ones of one n and p.

    def _many_gammas(self, d: Array) -> Array:
        """Gamma numbers of the shapes d + 1/3, all at least 1; see `_gamma`."""
        c = 1.0 / np.sqrt(9.0 * d)
        steepest = max(float(c.max()), 1e-300)
        low = -0.999 / steepest  # normal numbers from there on give a positive y, whatever the shape
        most = int(min(0.5 / (0.5 * math.erfc(math.sqrt(0.5) / steepest) + 1e-9), _MOST_AHEAD // 8))  # up to such a one
        scales, slopes = d.tolist(), c.tolist()
        values, done = np.empty(len(d)), 0
        with self._lock:
            while done < len(d):
                if self._cached_normal is not None:  # an attempt alone, then pairs begin
                    x, self._cached_normal = self._cached_normal, None
                    y = 1.0 + slopes[done] * x
                    if y > 0.0 and _gamma_accepts(x, y * y * y, 1.0 - float(self._uniform64(1)[0]), scales[done]):
                        values[done] = scales[done] * (y * y * y)
                        done += 1
                    continue
                pairs = min((len(d) - done) // 2 + 1, most)
                draws = self._uniforms_on_loan(4 * pairs).reshape(-1, 4)
                angles = 2.0 * math.pi * draws[:, 0]
                radii = np.sqrt(-2.0 * _mapped(math.log1p, -draws[:, 1]))
                normals = np.stack([radii * _mapped(math.cos, angles), radii * _mapped(math.sin, angles)], 1).ravel()
                u, square = 1.0 - draws[:, 2:].ravel(), normals * normals
                accepted, broken, rejections = np.ones(len(u), bool), len(u), 0
                doubtful = np.flatnonzero((u >= 1.0 - _SQUEEZE * square * square) | (normals < low))
                for j, x, uniform in zip(doubtful.tolist(), normals[doubtful].tolist(), u[doubtful].tolist(), strict=True):
                    own = done + j - rejections
                    if own >= len(d):
                        break
                    y = 1.0 + slopes[own] * x
                    if y <= 0.0:  # draws no uniform: what follows is not where it was looked for
                        broken = j
                        break
                    if not _gamma_accepts(x, y * y * y, uniform, scales[own]):
                        accepted[j], rejections = False, rejections + 1
                kept = np.flatnonzero(accepted[:broken])[: len(d) - done]
                part = slice(done, done + len(kept))
                cubed = 1.0 + c[part] * normals[kept]
                values[part] = d[part] * (cubed * cubed * cubed)
                done += len(kept)
                end = broken if done < len(d) else int(kept[-1]) + 1  # attempts that were made
                used = 4 * (end // 2) + 3 * (end % 2)
                if end % 2:
                    self._cached_normal = float(normals[end])
                if done < len(d) and broken < len(u):  # and one that took its normal number alone
                    used += 0 if end % 2 else 2
                    self._cached_normal = None if end % 2 else float(normals[end + 1])
                self._used -= 2 * (draws.size - used)
        return values

    @whole
    def dirichlet(self, shapes: Array) -> Array:
        """Points of the simplex, as ``torch._sample_dirichlet``: gamma numbers over their sum along the last dimension.

        All in float64, the quotient then kept between the smallest normal number of the dtype and the largest number
        below 1 (experiment against PyTorch 2.13 CPU).
        """
        dt = _float_dtype(shapes.dtype, "dirichlet")
        with np.errstate(invalid="ignore", under="ignore", over="ignore"):
            values = self._gammas(shapes, np.float64)
            values = _cast(values / values.sum(-1, keepdims=True), dt)
        below = dt.type(1.0 - 2.0 ** -_significand_bits(dt))
        return np.asarray(np.minimum(np.maximum(values, _tiny(dt)), below))

    @whole
    def binomial(self, counts: Array, probabilities: Array) -> Array:
        """Numbers of successes, as ``torch.binomial(counts, probabilities)``, one after the other, in float64.

        Of n trials of probability p <= 1/2, where n*p < 10: the number of geometric numbers ``ceil(log(u)/log1p(-p))``
        whose sum stays within n; else transformed rejection (Hormann 1993, BTRS). Above 1/2 the failures are counted
        (experiment against PyTorch 2.13 CPU).
        """
        dt = _float_dtype(counts.dtype, "binomial")
        n, p = (v.astype(np.float64).ravel() for v in (counts, probabilities))
        if len(n) >= _MANY and (n == n[0]).all() and (p == p[0]).all() and 1.0 <= n[0] < 2.0**30 and 0.0 < p[0] < 1.0:
            values = self._many_binomials(len(n), float(n[0]), float(p[0]))
        else:
            with self._serial(4 * counts.size) as uniform:
                values = np.array(
                    [_binomial(*pair, uniform) for pair in zip(n.tolist(), p.tolist(), strict=True)], np.float64
                )
        return _cast(values, dt).reshape(counts.shape)

    def _many_binomials(self, count: int, n: float, p: float) -> Array:
        """Numbers of successes of n trials each; see `_binomial`."""
        below = 1.0 - p if p > 0.5 else p
        make, each = (_rejected, 3) if n * below >= 10.0 else (_counted, int(n * below) + 2)
        values, done = np.empty(count), 0
        with self._lock:
            while done < count:
                draws = self._uniforms_on_loan(min((each * (count - done) + 64) // 2 * 2, _MOST_AHEAD // 2))
                found, used = make(draws, count - done, n, below)
                self._used -= 2 * (len(draws) - used)
                if not len(found):
                    with self._serial(len(draws)) as uniform:
                        found = np.array([_binomial_below(n, below, uniform)])
                values[done : done + len(found)] = found
                done += len(found)
        return n - values if p > 0.5 else values

    @whole
    def randint(self, shape: Shape, dtype: npt.DTypeLike, low: int, high: int | None) -> Array:
        """Integers in [low, high), as ``torch.randint`` and ``Tensor.random_(low, high)``; None: up to the dtype's largest.

        ``low + r % (high - low)`` for ranges below 2**28, ``low + r64 % (high - low)`` from there on
        (experiment against PyTorch 2.13 CPU).
        """
        dt, dims = np.dtype(dtype), _shape(shape)
        low, high = operator.index(low), largest_integer(dt) + 1 if high is None else operator.index(high)
        _check(low < high, "random_ expects 'from' to be less than 'to', but got from={} >= to={}", low, high)
        if low < -(1 << 63) or high > 1 << 63:
            raise ValueError(f"randint expects bounds within int64, but got from={low}, to={high}")
        _check_bounds(low, high, dt)
        n, span = math.prod(dims), high - low
        if span < _WIDE_RANGE:
            words = self._words(n)
            words %= np.uint32(span)
        else:
            words = self._words64(n)
            if span < 1 << 64:
                words %= np.uint64(span)
        values = words.astype(np.int64)
        if low and span < 1 << 64:
            values += low
        return values.astype(dt, copy=False).reshape(dims)

    @whole
    def random_ints(self, shape: Shape, dtype: npt.DTypeLike = np.int64) -> Array:
        """Integers over the whole range of the dtype from 0 up, as ``Tensor.random_()``.

        ``r64 % 2**63`` for int64, ``r % (max + 1)`` for narrower integers, ``r & 1`` for bool, and modulo
        ``2**d + 1`` for floating-point types with ``d`` significant bits, from ``r64`` for float64 and from
        ``r`` otherwise (experiment against PyTorch 2.13 CPU, which has no uint16, uint32 and uint64).
        """
        dt, dims = np.dtype(dtype), _shape(shape)
        if dt.kind == "b":
            modulus = 2
        elif dt.kind == "i" or dt == np.uint8:
            modulus = int(np.iinfo(dt).max) + 1
        else:
            modulus = (1 << _significand_bits(_float_dtype(dt, "random_ints"))) + 1
        n = math.prod(dims)
        words = self._words64(n) if dt.itemsize == 8 else self._words(n)
        words %= words.dtype.type(modulus)
        return _cast(words, dt).reshape(dims)

    @whole
    def randperm(self, n: int, dtype: npt.DTypeLike = np.int64) -> Array:
        """A permutation of 0 .. n-1, as ``torch.randperm``.

        For i = 0 .. n-2, element i is swapped with element ``i + r % (n - i)`` (experiment against PyTorch
        2.13 CPU, for n up to 10**6).
        """
        dt, n = np.dtype(dtype), operator.index(n)
        _check(n >= 0, "randperm expects n >= 0, but got {}", n)
        _check(n <= 1 << 32, "randperm expects n up to 2**32, but got {}", n)
        if dt.kind in "iu":
            largest = int(np.iinfo(dt).max)
        else:
            largest = 1 << _significand_bits(_float_dtype(dt, "randperm"))
        _check(n - 1 <= largest, "n cannot be greater than {} for dtype {}", largest + 1, dt)
        steps = np.arange(max(n - 1, 0), dtype=np.uint32)
        partners = self._words(len(steps)) % (np.uint32(n) - steps) + steps
        order = list(range(n))
        for i, k in enumerate(partners.tolist()):
            order[i], order[k] = order[k], order[i]
        return _cast(np.array(order, dtype=np.int64), dt)

    @whole
    def multinomial(self, weights: Array, num_samples: int, replacement: bool = False) -> Array:
        """Indices drawn with probabilities proportional to ``weights``, one row per row of weights.

        As ``torch.multinomial`` (experiment against PyTorch 2.13 CPU). Without replacement, or for one
        sample: the positions of the largest ``weights / q``, in decreasing order, where ``q`` are exponential
        values of the dtype of the weights, drawn in the order of their memory.
        With replacement: the first position at which the normalised
        cumulative sum of the row, taken in that dtype (float32 for narrower types), reaches a float64
        uniform. Exact ties without replacement, as between zero weights, go to the lower index; PyTorch gives
        them no fixed order.
        """
        dt = _float_dtype(weights.dtype, "multinomial")
        _check(weights.ndim in (1, 2), "multinomial expects weights of 1 or 2 dimensions")
        _check(num_samples > 0, "cannot sample n_sample <= 0 samples")
        _check(
            replacement or num_samples <= weights.shape[-1],
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
        )
        wide = weights.astype(np.float32) if dt.itemsize == 2 else weights
        _check(bool(np.all(np.isfinite(wide) & (wide >= 0))), "weights contain inf, nan or an element < 0")
        _check(bool(np.all(silently(wide.sum, -1) > 0)), "invalid weights (a sum of probabilities is <= 0)")
        if replacement and num_samples > 1:
            rows = self._multinomial_replacing(np.atleast_2d(wide), num_samples)
            return rows.reshape(*weights.shape[:-1], num_samples)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            turned = weights.ndim == 2 and 0 < weights.strides[0] < weights.strides[1]
            q = self.exponential(weights.shape[::-1], dt).T if turned else self.exponential(weights.shape, dt)
            scores = (weights / q).astype(np.float64)
        order: Array
        if num_samples == 1:
            order = scores.argmax(axis=-1, keepdims=True)
        else:
            order = np.argsort(-scores, axis=-1, kind="stable")[..., :num_samples]
        return order

    def _multinomial_replacing(self, weights: Array, num_samples: int) -> Array:
        cumulative = np.cumsum(weights, axis=1, dtype=weights.dtype)
        cumulative = (cumulative / cumulative[:, -1:]).astype(np.float64)
        uniforms = self._uniform64(len(weights) * num_samples).reshape(len(weights), num_samples)
        return np.stack([np.searchsorted(c, u) for c, u in zip(cumulative, uniforms, strict=True)])

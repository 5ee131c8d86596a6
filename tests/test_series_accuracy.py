"""Taylor mode to order 10 along curves, for every elementwise record, against mpmath at 60 digits."""

import numpy as np
import pytest
from needs_scipy import ABSENT

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE

mp = pytest.importorskip("mpmath").mp
ORDER = 10
ELEMENTS = 2  # of a sample
# whose differences of order 10 cost seconds; the nearest singularity is far beyond the radius
COSTLY = {"airy", "bessel_y", "bessel_k", "bessel_ke", "digamma", "igamma", "igammac", "polygamma", "zeta"}
RADIUS, POINTS = 2.0**-8, 32
ERROR = 1e-13  # relative to the largest coefficient; the worst is 7e-15


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def sech_square(x):
    return mp.sech(x) ** 2


def phi(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def gelu_tanh(x):
    return 2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x**3)


def gelu_tanh_slope(x):
    s = sigmoid(gelu_tanh(x))
    return s + x * s * (1 - s) * 2 * mp.sqrt(2 / mp.pi) * (1 + 3 * mp.mpf(0.044715) * x * x)


def log_ndtr_derivative(x, order):
    r = phi(x) / mp.ncdf(x)
    first = -r * (x + r)
    return (r, first, -first * (x + r) - r * (1 + first))[order - 1]


def bessel_mean(x, order):
    x = abs(x)
    i0, i1, i2 = (mp.besseli(k, x) for k in range(3))
    return mp.exp(-x) * (i0, i0 - i1, mp.mpf(1.5) * i0 - 2 * i1 + i2 / 2)[order]


def sin_ratio(x, order):
    s, c = mp.sin(x), mp.cos(x)
    if not x:
        return (mp.mpf(1), mp.mpf(0), -mp.mpf(1) / 3)[order]
    return (s / x, c / x - s / x**2, -s / x - 2 * c / x**2 + 2 * s / x**3)[order]


def clip(x, low, high):
    x = mp.mpf(low) if low is not None and x < low else x
    return mp.mpf(high) if high is not None and x > high else x


def logit(x, eps):
    z = x if eps is None else clip(x, eps, 1 - mp.mpf(eps))
    return mp.log(z / (1 - z))


def by_sign(positive, negative):
    return lambda x, *params: (positive if x > 0 else negative)(x, *params)


def step(function):
    """Of a function that is constant in pieces: its value, without the noise of differences."""
    return lambda x, *params: mp.mpf(float(function(float(x.real), *params)))


REFERENCE = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "strong_mul": lambda g, d: g * d, "mask_derivative": lambda d, g: d,
    "neg": lambda x: -x, "safe_div": lambda x, y: x / y, "safe_reciprocal": lambda x: 1 / x, "reciprocal": lambda x: 1 / x,
    "remainder": lambda x, y: x - y * mp.floor(x / y), "fmod": lambda x, y: x - y * int(x / y), "pow": lambda x, y: x**y,
    "pow_scalar": lambda x, k: mp.mpf(1) if k == 0 else x**k, "square": lambda x: x * x, "twice": lambda x: 2 * x,
    "sqrt": mp.sqrt, "floor_divide": lambda x, y: mp.floor(x / y), "trunc_divide": lambda x, y: mp.mpf(int(x / y)),
    "replaced": lambda x, y: y, "angle": lambda x: mp.pi if x < 0 else mp.mpf(0),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "rsqrt": lambda x: 1 / mp.sqrt(x), "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x, "expm1": lambda x: mp.exp(x) - 1, "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2), "log10": lambda x: mp.log(x) / mp.log(10), "log1p": lambda x: mp.log(1 + x),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "sinh": mp.sinh,
    "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "atan2": mp.atan2,
    "atan_slope": lambda x: 1 / (1 + x * x), "asinh_slope": lambda x: 1 / mp.sqrt(1 + x * x),
    "tanh_slope": sech_square, "hypot_slope": lambda x, y: x / mp.sqrt(x * x + y * y),
    "atan2_slope": lambda x, y: x / (x * x + y * y),
    "one_minus_square": lambda x: 1 - x * x, "hypot": lambda x, y: mp.sqrt(x * x + y * y),
    "share": lambda x, y: sigmoid(x - y), "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "logaddexp2": lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y) / mp.log(2), "erf": mp.erf, "erfc": mp.erfc,
    "erfinv": mp.erfinv, "ndtr": mp.ncdf, "ndtri": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
    "erfcx": lambda x, k: mp.exp(x * x) * (mp.erfc(x) if k == 0 else mp.exp(-x * x) / mp.sqrt(mp.pi) - x * mp.erfc(x)),
    "log_ndtr": lambda x: mp.log(mp.ncdf(x)), "log_ndtr_derivative": log_ndtr_derivative, "sigmoid": sigmoid,
    "sigmoid_slope": lambda x: sigmoid(x) * sigmoid(-x), "logsigmoid": lambda x: mp.log(sigmoid(x)),
    "softplus": lambda x, b, limit: x if b * x > limit else mp.log(1 + mp.exp(b * x)) / b,
    "softplus_slope": lambda x, b, limit: mp.mpf(1) if b * x > limit else sigmoid(b * x),
    "relu": lambda x: clip(x, 0, None), "leaky_relu": lambda x, k: x if x > 0 else mp.mpf(k) * x,
    "elu": by_sign(lambda x, a: x, lambda x, a: a * (mp.exp(x) - 1)),
    "elu_slope": by_sign(lambda x, a: mp.mpf(1), lambda x, a: a * mp.exp(x)),
    "scaled_elu": by_sign(lambda x, a, s, r: s * x, lambda x, a, s, r: mp.mpf(s * a) * (mp.exp(r * x) - 1)),
    "silu": lambda x: x * sigmoid(x), "silu_slope": lambda x: sigmoid(x) * (1 + x * sigmoid(-x)),
    "gelu": lambda x: x * mp.ncdf(x), "gelu_slope": lambda x: mp.ncdf(x) + x * phi(x),
    "gelu_tanh": lambda x: x * sigmoid(gelu_tanh(x)), "gelu_tanh_slope": gelu_tanh_slope,
    "tanhshrink": lambda x: x - mp.tanh(x), "softsign": lambda x: x / (1 + abs(x)),
    "hardswish": lambda x: x * clip(x + 3, 0, 6) / 6,
    "hardswish_slope": lambda x: mp.mpf(0) if x <= -3 else mp.mpf(1) if x >= 3 else x / 3 + mp.mpf(0.5), "abs": abs,
    "maximum": max, "minimum": min, "fmax": max, "fmin": min, "clamp_min": lambda x, a: clip(x, a, None),
    "clamp_max": lambda x, a: clip(x, None, a), "clamp": lambda x, a, b: min(max(x, a), mp.mpf(b)),
    "clamp_tensor": lambda x, a, b: min(max(x, a), b), "hardtanh": clip, "lerp": lambda x, y, w: x + w * (y - x),
    "nan_to_num": lambda x, *_: x, "exp_diff": lambda x, y: mp.exp(x - y),
    "log_loss": lambda x, y: (y - 1) * mp.log(1 - x) - y * mp.log(x), "copysign": lambda x, y: abs(x) * mp.sign(y),
    "nextafter": lambda x, y: x, "frac": lambda x: x - int(x), "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "digamma": mp.digamma, "polygamma": lambda x, n: mp.polygamma(n, x), "zeta": lambda x, q: mp.zeta(x, q),
    "igamma": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "igammac": lambda a, x: mp.gammainc(a, x, regularized=True),
    "entr": lambda x: -x * mp.log(x), "xlogy": lambda x, y: x * mp.log(y), "xlog1py": lambda x, y: x * mp.log(1 + y),
    "logit": logit, "i0": lambda x: mp.besseli(0, x), "i1": lambda x: mp.besseli(1, x),
    "i0e": lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), "i1e": lambda x: mp.exp(-abs(x)) * mp.besseli(1, x),
    "bessel_ratio": lambda x, n: mp.besseli(n, x) / x**n, "bessel_mean": bessel_mean,
    "bessel_j": lambda x, n: mp.besselj(n, x), "bessel_y": lambda x, n: mp.bessely(n, x),
    "bessel_k": lambda x, n: mp.besselk(n, x), "bessel_ke": lambda x, n: mp.exp(x) * mp.besselk(n, x),
    "airy": lambda x, n: mp.airyai(x, derivative=n), "sin_ratio": sin_ratio,
    **{name: step(f) for name, f in {
        "sign": np.sign, "sgn": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round,
        "round_decimals": lambda x, n: np.round(x, n),
    }.items()},
}  # fmt: skip
NAMES = sorted(n for n, op in TABLE.items() if op.kind == "elementwise" and n not in ABSENT)


def cases(name):
    """One smooth sample for each choice of parameters and dtypes."""
    seen = set()
    for s in testing.samples_of(name):
        key = s.params, tuple([getattr(a, "dtype", None) for a in s.arrays])
        if (
            s.smooth
            and key not in seen
            and all([np.size(a) for a in s.arrays])
            and testing.differentiable(TABLE[name], s.arrays)
        ):
            seen.add(key)
            yield s


def exact(x):
    return mp.mpc(complex(x)) if isinstance(x, complex) else mp.mpf(float(x))


@pytest.mark.parametrize("name", NAMES)
def test_order_10(name):
    op, worst = TABLE[name], 0.0
    for sample in cases(name):
        positions = testing.differentiable(op, sample.arrays)
        rng = testing.generator(op, sample.arrays)
        vs, ws = ([0.25 * testing.random_like(rng, sample.arrays[i]) for i in positions] for _ in "vw")
        series = [[tg.tensor(c) for c in (v, w, *[0 * v] * (ORDER - 2))] for v, w in zip(vs, ws, strict=True)]
        f = testing.as_function(op, sample.arrays, sample.params, positions)
        (value,), (terms,) = tg.func.jet(f, [tg.tensor(sample.arrays[i]) for i in positions], series, factorial_scaled=False)
        got = np.stack([value.numpy(), *[t.numpy() for t in terms]]).reshape(ORDER + 1, -1)
        x0, v, w = ([np.broadcast_to(a, value.shape).ravel() for a in row] for row in (sample.arrays, vs, ws))
        for e in range(min(ELEMENTS, got.shape[1])):
            want = reference(name, sample.params, positions, *[[exact(a[e].item()) for a in row] for row in (x0, v, w)])
            worst = max(worst, error(got[:, e], want))
    assert worst <= ERROR


def reference(name, params, positions, x0, v, w):
    """Coefficients at 60 digits."""

    def on_curve(t):
        xs = list(x0)
        for i, a, b in zip(positions, v, w, strict=True):
            xs[i] = xs[i] + t * a + t * t * b
        assert name in REFERENCE, f"REFERENCE here needs a row for {name}: the function in mpmath"
        return REFERENCE[name](*xs, *params)

    with mp.workdps(60):
        if name not in COSTLY:
            return mp.taylor(on_curve, 0, ORDER)
        ring = [RADIUS * mp.expjpi(mp.mpf(2 * j) / POINTS) for j in range(POINTS)]  # Cauchy's integral formula
        values = [on_curve(t) for t in ring]
        sums = [sum(y / t**k for y, t in zip(values, ring, strict=True)) / POINTS for k in range(ORDER + 1)]
        return [c if any(isinstance(x, mp.mpc) for x in x0) else c.real for c in sums]


def error(got, want):
    largest = max(abs(c) for c in want)
    return float(max(abs(exact(g.item()) - c) for g, c in zip(got, want, strict=True)) / (largest or 1))

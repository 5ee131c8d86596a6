"""Orders 0 to 3 of elementwise functions and normalisers in float64 against mpmath, up to where they leave the range.

The bound is the error of a function that rounds its argument and its result: 4 eps (|f_k| + |x f_k+1|), where f_k is the
k-th derivative, with the sum over the arguments where there are several; plus four units of the smallest subnormal number.
`python compat/accuracy.py` writes the right values that tests/test_accuracy.py reads.
"""

import itertools
import math
import sys
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from test_accuracy import EPS, ORDERS, derivatives, ratio
from test_series_accuracy import REFERENCE

MAX = float(np.finfo(np.float64).max)
SIZES = [
    1e-310, 1e-160, 1e-100, 1e-20, 1e-8, 1e-3, 0.03, 0.1, 0.25, 0.5, 0.7, 0.9, 1.0, 1.19, 1.5, 2.0, 2.5, 3.2, 4.3, 5.0, 6.0,
    8.0, 9.01, 12.0, 15.5, 19.1, 20.8, 25.0, 30.0, 37.0, 38.5, 60.0, 100.0, 200.0, 350.0, 372.0, 500.0, 700.0, 709.7, 720.0,
    745.0, 1e3, 1e5, 1e8, 1e16, 1e20, 1e60, 1e77, 1e100, 1e155, 1e200, 1e300, MAX,
]  # fmt: skip
NEAR_ONE = [s * (1 - 2.0**-k) for k in (2, 5, 20, 40, 53) for s in (1, -1)]
LINE = sorted({*SIZES, *[-x for x in SIZES], *NEAR_ONE})
EDGES = {"asin", "acos", "atanh", "logit", "erfinv", "lgamma", "digamma"}  # with singularities that the points come near to


def within(low, high, least=0.0):
    return [x for x in LINE if low <= x <= high and abs(x) >= least]


def log_gamma(x):
    return mp.loggamma(x) if x > 0 else mp.log(mp.pi / abs(x * mp.sin(mp.pi * x))) - mp.loggamma(-x)


def erfc(x):
    return mp.erfc(x) if abs(x) < 1e4 else mpf(0 if x > 0 else 2)  # mpmath refuses numbers far out


def ndtr(x):
    return erfc(-x / mp.sqrt(2)) / 2


def softplus(x):
    return mp.log(1 + mp.exp(x))


# name: (parameters, points, function); of records and of public functions
ON_LINE = (
    "tanh", "sigmoid", "logsigmoid", "silu", "tanhshrink", "softsign", "atan", "asinh", "exp", "exp2", "expm1", "sinh",
    "cosh", "square", "reciprocal", "cbrt", "abs", "relu", "neg",
)  # fmt: skip
ON_POSITIVE = "sqrt", "rsqrt", "log", "log2", "log10", "log1p", "entr"
UNARY = {
    **{n: ((), LINE, REFERENCE[n]) for n in ON_LINE},
    **{n: ((), within(0, MAX), REFERENCE[n]) for n in ON_POSITIVE},
    **{n: ((), within(-1 + EPS / 2, 1 - EPS / 2), REFERENCE[n]) for n in ("asin", "acos", "atanh")},
    "acosh": ((), within(1.01, MAX), mp.acosh),
    "logit": ((None,), within(1e-100, 1 - EPS / 2), lambda x: mp.log(x / (1 - x))),
    **{n: ((), within(-1e8, 1e8), REFERENCE[n]) for n in ("sin", "cos", "tan")},
    "erf": ((), LINE, lambda x: mp.erf(x) if abs(x) < 1e4 else mp.sign(x)),
    "erfc": ((), LINE, erfc),
    "ndtr": ((), LINE, ndtr),
    "gelu_tanh": ((), LINE, lambda x: REFERENCE["gelu_tanh"](x) if abs(x) < 1e3 else max(x, mpf(0))),
    "gelu": ((), LINE, lambda x: x * ndtr(x)),
    "mish": ((), LINE, lambda x: x * mp.tanh(softplus(x))),
    "softplus": ((1.0, 20.0), within(-MAX, 19.5), lambda x: softplus(x)),
    "elu": ((1.0,), [x for x in LINE if x], lambda x: REFERENCE["elu"](x, 1)),
    "scaled_elu": ((1.7, 1.05, 1.0), [x for x in LINE if x], lambda x: REFERENCE["scaled_elu"](x, 1.7, mpf(1.05), 1)),
    **{f"pow_scalar {k}": ((k,), within(0, MAX, 1e-200), lambda x, k=k: x ** mpf(k)) for k in (-1, 0.5, 1.5, 2, 2.5, 3, 7)},
    "lgamma": ((), [*within(1e-100, MAX), -0.5, -1.46, -2.7, -20.3], log_gamma),
    "digamma": ((), within(1e-100, MAX), mp.digamma),
    "erfcx": ((0,), within(-20, 1e77), lambda x: mp.exp(x * x) * mp.erfc(x)),
    "erfinv": ((), within(-0.99, 0.99, 1e-100), mp.erfinv),
    "ndtri": ((), [*within(0.1, 0.9), 1e-3, 1e-8, 1e-20, 1e-100], lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * p)),
    "log_ndtr": ((), within(-1e16, 37), lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)),
    "sin_ratio": ((0,), within(-1e8, 1e8), lambda x: mp.sin(x) / x if x else mpf(1)),
    **{n: ((), [x for x in within(-700, 700, 1e-20) if abs(x) > 1e-4], REFERENCE[n]) for n in ("i0", "i1", "i0e", "i1e")},
}
SLOW = {"lgamma", "digamma", "i0", "i1", "i0e", "i1e", "erfinv", "ndtri"}  # in mpmath: fewer digits will do
RATIOS = [1e-300, 1e-155, 1e-100, 1e-20, 1e-8, 0.3, 1.0, 3.0, 37.5, 1e8, 1e20, 1e100, 1e155, 1e300]
PLANE = [(x, y) for x in RATIOS for y in RATIOS if 1e-301 < x / y < 1e301] + [
    (-1e-8, 1.0),
    (1.0, -1e-8),
    (-3.0, -1e8),
    (2.0, -5.0),
]
SHIFTS = [0.0, 1e-8, 0.3, 3.0, 37.5, 700.0]
NEARBY = [(s * x, t * y) for x in SHIFTS[::2] for y in SHIFTS for s, t in ((1, 1), (1, -1))]


def log_add(x, y):
    return y + mp.log(1 + mp.exp(x - y))


BINARY = {
    "hypot": (PLANE, REFERENCE["hypot"]),
    "atan2": (PLANE, mp.atan2),
    "logaddexp": (NEARBY, log_add),
    "logaddexp2": (NEARBY, lambda x, y: log_add(x * mp.log(2), y * mp.log(2)) / mp.log(2)),
    "div": ([p for p in PLANE if 1e-100 < abs(p[1]) < 1e100], REFERENCE["div"]),
    "pow": ([(x, y) for x in RATIOS[2:-2] for y in (-2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 8.25)], REFERENCE["pow"]),
    "xlogy": ([(x, y) for x in RATIOS[3:-3] for y in RATIOS[2:-2]], REFERENCE["xlogy"]),
    "xlog1py": ([(x, y) for x in RATIOS[3:-3] for y in (*RATIOS[2:-2], -0.9, -1e-8)], REFERENCE["xlog1py"]),
}
LOGITS = [
    (0.0, -50.0), (-50.0, 0.0), (1.0, 40.0), (700.0, -700.0), (-700.0, -740.0), (0.3, 0.3), (2.0, -3.0, 0.5),
    (0.0, -46.0, -300.0), (100.0, 100.0, -20.0), (30.0, 0.0, 0.0), (0.0, -700.0), (0.0, -1e-3),
]  # fmt: skip
VECTORS = [
    (1e8, 3.0), (1e8, 1.0), (1.0, 1e-8), (3.0, 4.0), (1e8, 3.0, 1.0), (1.0, 1e-8, 1e-12), (1e-30, 1e-22), (1e100, 1e92),
    (1e160, 2e160), (-2.0, 1.0, 1.0), (1e-170, 1e-165),
]  # fmt: skip
NORMALISERS = {
    "logsumexp": (LOGITS, lambda *x: mp.log(sum(mp.exp(v) for v in x))),
    "log_softmax": (LOGITS, lambda *x: -mp.log(sum(mp.exp(v - x[0]) for v in x))),
    "softmax": (LOGITS, lambda *x: 1 / sum(mp.exp(v - x[0]) for v in x)),
    "norm": (VECTORS, lambda *x: mp.sqrt(sum(v * v for v in x))),
}


def differences(values, h):
    a, b, c, d, e = values
    third, fourth = e - 2 * d + 2 * b - a, e - 4 * d + 6 * c - 4 * b + a
    return [c, (d - b) / (2 * h), (d - 2 * c + b) / h**2, third / (2 * h**3), fourth / h**4]


def exact(function, point, bits, more):
    """The partial derivatives up to order 4, by index, from central differences with so many digits that none cancels.

    The step is 2**-bits of the argument.
    """
    n, exponents = len(point), [math.frexp(x)[1] for x in point]
    mp.prec = 6 * n * bits + more + max(max(exponents), -4 * min(exponents), 0)
    xs = [mpf(x) for x in point]
    steps = [(abs(x) or 1) * mpf(2) ** -bits for x in xs]
    grid = np.empty((5,) * n, object)
    for index in itertools.product(range(5), repeat=n):
        grid[index] = mp.re(function(*[x + (i - 2) * h for x, h, i in zip(xs, steps, index, strict=True)]))
    for axis, h in enumerate(steps):
        grid = np.moveaxis(np.array(differences(list(np.moveaxis(grid, axis, 0)), h)), 0, axis)
    mp.prec = 200
    return {index: +grid[index] for index in itertools.product(range(5), repeat=n) if sum(index) <= ORDERS + 1}


SUBNORMAL = "an exponential that is subnormal is multiplied by a large number; the result is below 1e-300"
OVERFLOW = "a factor of the result is infinite though the result is not, or another one is 0; results above 1e150"
ROUNDINGS = "several roundings add up, to less than 6 times the bound"
EQUAL = "differences of two shares of nearly 1/2; the error is below 4 eps of the shares"
# (name, order): where results are beyond the bound, and why; each is still so at some point
KNOWN = {
    **{("silu", k): (lambda x: 708 < abs(x) < 750, SUBNORMAL) for k in (2, 3)},
    **{("ndtr", k): (lambda x: 37 < abs(x) < 39, SUBNORMAL) for k in (2, 3)},
    **{("gelu", k): (lambda x: 37 < abs(x) < 39, SUBNORMAL) for k in (2, 3)},
    **{("mish", k): (lambda x: -750 < x < -708, SUBNORMAL) for k in (0, 1)},
    ("mish", 2): (lambda x: -750 < x < -708 or 355 < x < 375, SUBNORMAL),
    ("mish", 3): (
        lambda x: -750 < x < -708 or 355 < x < 375 or abs(x) < 0.1 or x == MAX,
        f"{SUBNORMAL}; {ROUNDINGS}; nan at max",
    ),
    ("cbrt", 3): (lambda x: abs(x) < 1e-100, f"{OVERFLOW}: nan"),
    **{("erfcx", k): (lambda x: x > 1e7 or abs(x) < 0.1, ROUNDINGS) for k in (1, 3)},
    **{("log_ndtr", k): (lambda x: x < 0.3, ROUNDINGS) for k in (2, 3)},
    ("i0e", 3): (lambda x: 20 < abs(x) < 25, ROUNDINGS),
    **{("i1e", k): (lambda x: abs(x) < 25, ROUNDINGS) for k in (2, 3)},
    ("hypot", 3): (lambda x, y: max(abs(x), abs(y)) < 1e-150, OVERFLOW),
    ("atan2", 3): (lambda x, y: max(abs(x), abs(y)) < 1e-100, OVERFLOW),
    ("norm", 3): (lambda *x: max(x) < 1e-150, OVERFLOW),
    **{
        (n, k): (lambda *x: max(map(abs, x)) < 0.01, EQUAL)
        for n, k in (("logsumexp", 3), ("log_softmax", 3), ("softmax", 2))
    },
}


def cases():
    """(name, parameters, points, function, digits) of everything."""
    for name, (params, points, f) in UNARY.items():
        yield name, params, [(x,) for x in points], f, (110 if name in EDGES else 60, 300 if name in SLOW else 1400)
    for table in (BINARY, NORMALISERS):
        for name, (points, f) in table.items():
            yield name, (), points, f, (50, 2200 if "exp" in name else 900)


def violations(name, params, points, function, digits):
    """(order, point, result, right value, error over the bound) where it is above 1."""
    found = []
    for size in {len(p) for p in points}:
        chosen = [p for p in points if len(p) == size]
        got = derivatives(name, params, chosen)
        for i, point in enumerate(chosen):
            want = exact(function, point, *digits)
            for index, values in got.items():
                r = ratio(float(values[i]), index, point, want)
                if r > 1:
                    found.append((sum(index), point, float(values[i]), want[index], r))
    return found


def write():
    """The right values at a few points of each function, for tests/accuracy.tsv."""
    lines = []
    for name, params, points, f, digits in cases():
        bad = {p for _, p, *_ in violations(name, params, points, f, digits)}
        good = [p for p in points if p not in bad]
        for point in good[:: max(len(good) // 16, 1)]:
            want = exact(f, point, *digits)
            if max([abs(v) for v in want.values()]) > MAX:  # whose bound floats cannot say
                continue
            numbers = [mp.nstr(want[i], 19) for i in sorted(want)]
            lines.append("\t".join([name, repr(params), repr(point), *numbers]))
    (ROOT / "tests" / "accuracy.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["list"]:
        for case in cases():
            for order, point, got, want, r in violations(*case):
                print(case[0], order, point, got, mp.nstr(want, 8), f"{r:.3g}", flush=True)
    else:
        write()

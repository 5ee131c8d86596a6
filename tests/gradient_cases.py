"""Cases of gradients that went wrong in other automatic differentiation libraries.

A case cites the public issues and pull requests that prompted it, says what went wrong there and what is right, and gives
pairs (got, expected). Severity: S1 silently wrong finite number, S2 silent nan or inf, S3 crash, leak, wrong shape or dtype
or an unclear error, S4 a convention to choose.
"""

import math
import warnings

import numpy as np

import tapegrad as T

PT, JX, HI, TG, OF = "pytorch/pytorch", "jax-ml/jax", "HIPS/autograd", "tinygrad/tinygrad", "Oneflow-Inc/oneflow"
CH, MG, TF, MX = "chainer/chainer", "rsokl/MyGrad", "tensorflow/tensorflow", "apache/mxnet"
inf, nan = math.inf, math.nan
f32, f64 = T.float32, T.float64
grad = T.autograd.grad


class Raises:
    """Expected where the call must raise."""


RAISES = Raises()


class Either:
    """Expected where one of two outcomes is right."""

    def __init__(self, *options):
        self.options = options


def registry():
    """A dict of cases by title, and the decorator that enters one."""
    cases = {}

    def case(severity, title, refs, symptom, right):
        def enter(function):
            cases[title] = function
            return function

        return enter

    return cases, case


def attempt(function):
    try:
        return function()
    except Exception as e:
        return e


def leaf(value, dtype=f64):
    return T.tensor(value, dtype=dtype, requires_grad=True)


def con(value, dtype=f64):
    return T.tensor(value, dtype=dtype)


def d1(f, x):
    return grad(f(x), x)[0]


def d2(f, x):
    (g,) = grad(f(x), x, create_graph=True)
    return grad(g, x)[0]


def d3(f, x):
    (g,) = grad(f(x), x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    return grad(h, x)[0]


def number(value):
    return value.detach().numpy() if T.is_tensor(value) else value


def agrees(got, want):
    if isinstance(want, Either):
        return any(agrees(got, option) for option in want.options)
    if isinstance(want, Raises):
        return isinstance(got, Exception)
    if isinstance(got, Exception):
        return False
    if want is None or isinstance(want, bool | T.dtype):
        return got is want or got == want
    if got is None:
        return False
    g, w = np.asarray(number(got), float), np.asarray(want, float)
    return g.shape == w.shape and bool(np.allclose(g, w, rtol=1e-6, atol=1e-12))


def check(case):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = case()
    for got, want in rows:
        assert agrees(got, want), f"got {got!r}, expected {want!r}"

"""Checks of derivatives against finite differences."""

from itertools import product

from autograd.core import make_jvp, make_vjp, vspace
from autograd.wrap_util import get_name, unary_to_nary

TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


def scalar_close(a, b):
    """Whether two numbers agree, absolutely or relatively."""
    return abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL


def make_numerical_jvp(f, x):
    """The derivative of f at x along a vector, by central differences."""
    y = f(x)
    x_vs, y_vs = vspace(x), vspace(y)

    def jvp(v):
        up = f(x_vs.add(x, x_vs.scalar_mul(v, EPS / 2)))
        down = f(x_vs.add(x, x_vs.scalar_mul(v, -EPS / 2)))
        return y_vs.scalar_mul(y_vs.add(up, y_vs.scalar_mul(down, -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f, x):
    """Check the vjp of f at x along random vectors."""
    vjp, y = make_vjp(f, x)
    x_vs, y_vs = vspace(x), vspace(y)
    x_v, y_v = x_vs.randn(), y_vs.randn()
    pulled = x_vs.covector(vjp(y_vs.covector(y_v)))
    assert vspace(pulled) == x_vs
    exact, numeric = x_vs.inner_prod(x_v, pulled), y_vs.inner_prod(y_v, make_numerical_jvp(f, x)(x_v))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"
    )


def check_jvp(f, x):
    """Check the jvp of f at x along a random vector."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x, y):
    """Check that x and y are of one structure and equal along a random vector."""
    x_vs, y_vs = vspace(x), vspace(y)
    assert x_vs == y_vs, f"VSpace mismatch:\nx: {x_vs}\ny: {y_vs}"
    v = x_vs.randn()
    assert scalar_close(x_vs.inner_prod(x, v), x_vs.inner_prod(y, v)), f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(f, x, modes=None, order=2):
    """Check derivatives of f up to an order, in forward ("fwd") and reverse ("rev") mode."""
    modes = ["fwd", "rev"] if modes is None else modes
    assert all(m in ("fwd", "rev") for m in modes)
    for mode, check, name in (("fwd", check_jvp, "jvp"), ("rev", check_vjp, "vjp")):
        if mode not in modes:
            continue
        check(f, x)
        if order > 1:
            v = vspace(x).randn() if mode == "fwd" else vspace(f(x)).randn()
            derivative = _first(f, mode)
            derivative.__name__ = f"{name}_{get_name(f)}"
            check_grads(derivative, (0, 1), modes, order=order - 1)(x, v)


def _first(f, mode):
    return (lambda x, v: make_jvp(f, x)(v)[1]) if mode == "fwd" else (lambda x, v: make_vjp(f, x)[0](v))


def combo_check(fun, *args, **kwargs):
    """`check_grads` for each combination of arguments, which are given as lists of values."""

    def check(*values, **options):
        pairs = [[(k, v) for v in vs] for k, vs in options.items()]
        for given in product(*values):
            for named in product(*pairs):
                check_grads(fun, *args, **kwargs)(*given, **dict(named))

    return check

"""`python -m tests.extreme_values [name ..]`: functions, samplers and solvers over extreme values of each argument.

The cost of a call must follow from the size of what it is given and of what it is asked for, not from the values. Calls
run one after the other in a process of their own, under `-W error` and a limit on its address space; the system kills it
when a call takes more than 5 seconds, and the next process goes on behind that call. A call may give a value or raise one
of `REFUSALS`. What is reported: calls that were killed, that raised anything else (OverflowError, RecursionError, a
warning, ...), that took more than `SLOW` seconds or `MEMORY` bytes; then the slowest call of each case.

Each case is a function of plain numbers and the values that they take, in all combinations; its first call, with the first
of each, is not timed: it imports and fills tables.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import math
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tapegrad as tg
from tapegrad import distributions
from tapegrad.core.op import TABLE

REFUSALS = (
    ValueError,
    TypeError,
    RuntimeError,
    IndexError,
    MemoryError,
    AssertionError,
)  # the last by layers, as in PyTorch
LIMIT = 5.0  # seconds for one call, which other processes may have to share
SLOW = 0.05  # seconds of processor time for one call, of one element
MEMORY = 1 << 28  # bytes that one call may take
ADDRESSES = 4 << 30  # bytes of the process

# ------------------------------------------------------------------------------------------------------------------- values

LARGE = (1e3, 1e8, 2.0**53, 1e18, 3e38, 1e300, sys.float_info.max, math.inf)
SMALL = (0.0, 5e-324, 1e-300, 1e-30, 1e-8)
USUAL = (0.5, 1.0, 1.5, 2.0, 3.0, 3.5, 9.999, 10.0, 30.0, 171.0)
REALS = (*USUAL, *SMALL, *LARGE, *(-x for x in USUAL), *(-x for x in SMALL), *(-x for x in LARGE), math.nan)
FEW = (0.5, 0.0, -0.0, 1.0, -1.0, 2.0, -3.5, 30.0, 1e-300, 1e8, 1e18, -1e18, 1e300, -1e300, math.inf, -math.inf, math.nan)
SHARE = (0.5, 0.0, 5e-324, 1e-18, 0.3, 0.7, 1 - 2.0**-53, 1.0, -1.0, 1e300, math.inf, math.nan)
ORDERS = (1, 0, 2, 3, 10, 100, 170, 171, 1000, 10**6, 2**31, 10**18, -1, -5)
COUNTS = (3, 0, 1, -1, -5, 2**31, 2**40, 10**18, 2**63 - 1)
INTEGERS = (1, 0, -1, 2, 3, 63, 64, 65, 2**31, -(2**31), 10**18, 2**63 - 1, -(2**63))
FLOATS = ("float64", "float32", "float16", "bfloat16")


class Case(NamedTuple):
    name: str
    call: Callable[..., Any]
    values: tuple[Sequence[Any], ...]  # of each argument
    slow: float = SLOW

    def calls(self) -> Iterator[tuple[Any, ...]]:
        return itertools.product(*self.values)


def number(dtype: str, value: Any, grad: bool = False) -> Any:
    """A tensor of one element."""
    t = tg.tensor([value], dtype=getattr(tg, dtype))
    return t.requires_grad_() if grad and t.is_floating_point() else t


def derivatives(results: Any, inputs: Sequence[Any], order: int = 2) -> None:
    """Derivatives of a result up to an order, where they are known."""
    for _ in range(order):
        results = [r for r in results if getattr(r, "requires_grad", False)]
        if not results:
            return
        total = sum((tg.view_as_real(r) if r.is_complex() else r).sum() for r in results)
        try:
            found = tg.autograd.grad(total, [*inputs], create_graph=True, allow_unused=True)
        except NotImplementedError:
            return
        results = [g for g in found if g is not None]


def elementwise(function: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """The call of a function of tensors of one element, with its derivatives."""

    def call(dtype: str, *values: Any) -> None:
        inputs = [number(dtype, v, grad=True) for v in values[:arity]]
        derivatives([function(*inputs, *values[arity:])], inputs)

    return call


# ---------------------------------------------------------------------------------------------------------------- functions


def public(name: str) -> Any:
    return getattr(tg.special, name, None) or getattr(tg, name, None)


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function works on so many tensors of one element."""
    try:
        return isinstance(function(*[number("float64", 0.5)] * count), tg.Tensor)
    except Exception:
        return False


POLYNOMIALS = [name for name in tg.special.__all__ if "polynomial" in name]
APART = {*POLYNOMIALS, "polygamma", "mvlgamma", "multigammaln", "round", "softmax", "log_softmax", "logsumexp"}


def functions() -> Iterator[Case]:
    """Elementwise functions: those of `special` and the public records."""
    names = {*tg.special.__all__, *(n for n, op in TABLE.items() if op.kind == "elementwise" and public(n))} - APART
    for name in sorted(names):
        function = public(name)
        if takes(function, 1):
            yield Case(name, elementwise(function, 1), (FLOATS, REALS))
            complexes = [complex(a, b) for a in FEW for b in FEW]
            yield Case(name + " complex", elementwise(function, 1), (("complex128", "complex64"), complexes))
        elif takes(function, 2):
            yield Case(name, elementwise(function, 2), (FLOATS[:2], REALS, REALS))
            yield Case(name + " half", elementwise(function, 2), (FLOATS[2:], FEW, FEW))
            yield Case(
                name + " integers",
                elementwise(function, 2),
                (("int64", "int32", "uint8"), small_integers(), small_integers()),
            )


def small_integers() -> tuple[int, ...]:
    return tuple(n for n in INTEGERS if 0 <= n < 256)


def orders() -> Iterator[Case]:
    """Functions of an order, degree, dimension or exponent."""
    for name in POLYNOMIALS:
        function = public(name)
        slow = 1.0  # two derivatives of 1000 terms, or of 62 doublings
        yield Case(name, elementwise(function, 1), (FLOATS[:3], FEW, ORDERS), slow)
        yield Case(
            name + " tensor",
            lambda dtype, x, n, f=function: derivatives([f(y := number(dtype, x, True), tg.tensor([n, 2]))], [y]),
            (FLOATS[:1], FEW, ORDERS),
            slow,
        )
        yield Case(
            name + " float",
            lambda dtype, x, n, f=function: f(number(dtype, x), number(dtype, n)),
            (FLOATS, FEW, REALS),
            slow,
        )
    yield Case(
        "polygamma", lambda dtype, x, n: elementwise(lambda x: tg.polygamma(n, x), 1)(dtype, x), (FLOATS, REALS, ORDERS)
    )
    yield Case(
        "mvlgamma", elementwise(tg.mvlgamma, 1), (FLOATS, (*FEW, 1e6), (1, 0, 2, 3, 10, 100, 1000, 10**18, -1, -5)), 1.0
    )
    yield Case(
        "round", elementwise(lambda x, n: tg.round(x, decimals=n), 1), (FLOATS, REALS, (*ORDERS, -300, -1000, -(10**18)))
    )
    for name in ("igamma_shape", "gamma_ratio"):
        if name in TABLE:
            yield Case(name, elementwise(TABLE[name].call, 2), (FLOATS[:2], FEW, FEW, (1, 2, 3, 4)))
    for name in ("erfcx", "bessel_ratio", "bessel_mean", "sin_ratio", "bessel_j", "bessel_y", "bessel_k", "bessel_ke"):
        yield Case(f"{name} of order", elementwise(TABLE[name].call, 1), (FLOATS[:2], REALS, (0, 1, 2, 3, 5, 10, 30, 100)))
    yield Case("pow by number", elementwise(tg.pow, 1), (FLOATS, REALS, (*REALS, *ORDERS)))
    for dtype in ("int64", "int32", "uint8"):
        lowest, highest = tg.iinfo(getattr(tg, dtype)).min, tg.iinfo(getattr(tg, dtype)).max
        fitting = [n for n in (*INTEGERS, 255, -128, 127) if lowest <= n <= highest]
        for name in (
            "pow",
            "gcd",
            "lcm",
            "floor_divide",
            "remainder",
            "fmod",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "ldexp",
        ):
            yield Case(
                f"{name} {dtype}",
                lambda a, b, d=dtype, f=name: getattr(tg, f)(number(d, a), number(d, b)),
                (fitting, fitting),
            )
    for n in (2, 3):
        yield Case(
            f"matrix_power {n}",
            lambda dtype, x, k, n=n: tg.linalg.matrix_power(tg.full((n, n), x, dtype=getattr(tg, dtype)), k),
            (FLOATS[:2], FEW, (*ORDERS, 2**63 - 1, -(2**62))),
        )


# -------------------------------------------------------------------------------------------------------------------- draws


def drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(dtype: str, *values: Any) -> None:
        function(*[number(dtype, v) for v in values])

    return call


def filled(name: str) -> Callable[..., Any]:
    return lambda dtype, *values: getattr(tg.empty(2, dtype=getattr(tg, dtype)), name)(*values)


def draws() -> Iterator[Case]:
    yield Case("poisson", drawn(tg.poisson), (FLOATS, REALS))
    yield Case("binomial", drawn(tg.binomial), (FLOATS[:3], REALS, (*SHARE, 1e-300, 1e-8)))
    yield Case(
        "binomial of many",
        lambda n, p: tg.binomial(tg.full((40,), n, dtype=tg.float64), tg.full((40,), p, dtype=tg.float64)),
        (REALS, (*SHARE, 1e-300, 1e-8)),
    )
    yield Case("poisson of many", lambda x: tg.poisson(tg.full((40,), x, dtype=tg.float64)), (REALS,))
    yield Case("gamma", elementwise(tg._standard_gamma, 1), (FLOATS, REALS))
    yield Case("gamma of many", lambda x: tg._standard_gamma(tg.full((40,), x, dtype=tg.float64)), (REALS,))
    yield Case(
        "dirichlet",
        lambda dtype, a, b: tg._sample_dirichlet(tg.tensor([a, b], dtype=getattr(tg, dtype))),
        (FLOATS[:3], REALS, REALS),
    )
    yield Case("bernoulli", drawn(tg.bernoulli), (FLOATS, REALS))
    yield Case(
        "multinomial",
        lambda dtype, a, b, n, again: tg.multinomial(tg.tensor([a, b], dtype=getattr(tg, dtype)), n, again),
        (FLOATS[:3], FEW, FEW, (1, 2, 0, -5), (False, True)),
    )
    yield Case("normal", drawn(tg.normal), (FLOATS, FEW, FEW))
    for name, count in (
        ("uniform_", 2),
        ("normal_", 2),
        ("cauchy_", 2),
        ("log_normal_", 2),
        ("exponential_", 1),
        ("geometric_", 1),
        ("bernoulli_", 1),
    ):
        yield Case(name, filled(name), (FLOATS, *[REALS] * count))
    every = (*INTEGERS, 0.5, math.inf, math.nan)
    yield Case("random_", filled("random_"), (("int64", "int32", "uint8", "float32", "float16"), every, every))
    yield Case(
        "randint",
        lambda low, high, dtype: tg.randint(low, high, (2,), dtype=getattr(tg, dtype)),
        (every, every, ("int64", "uint8", "float16")),
    )
    bounds = (-2.0, 2.0, 0.0, 1.0, 50.0, 1e18, -1e18, 1e300, -1e300, math.inf, -math.inf, math.nan)
    yield Case(
        "trunc_normal_",
        lambda mean, std, a, b: tg.nn.init.trunc_normal_(tg.empty(2), mean, std, a, b),
        (
            (0.0, 1.0, -30.0, 1e300, math.inf, math.nan),
            (1.0, 0.0, -1.0, 1e-300, 1e-8, 1e18, 1e300, math.inf, math.nan),
            bounds,
            bounds,
        ),
    )


METHODS = ("mean", "mode", "variance", "stddev")


def distribution(kind: Callable[..., Any]) -> Callable[..., Any]:
    """Everything that is asked of a distribution: draws, densities, quantiles, moments, divergences, with derivatives."""

    def call(what: str, value: float, check: bool, *parameters: Any) -> None:
        inputs = [number("float64", p, grad=True) for p in parameters]
        d = kind(*inputs, check)
        if what == "moments":
            results = []
            for name in (*METHODS, "entropy"):
                try:
                    found = getattr(d, name)
                    results.append(found() if name == "entropy" else found)
                except NotImplementedError:
                    pass
        elif what == "draw":
            results = [d.rsample((2,)) if d.has_rsample else d.sample((2,))]
        elif what == "kl":
            results = [distributions.kl_divergence(d, d)]
        else:
            results = [getattr(d, what)(tg.full(d.batch_shape + d.event_shape, value, dtype=tg.float64))]
        derivatives(results, inputs)

    return call


D = distributions
KINDS: dict[str, tuple[int, Callable[..., Any]]] = {
    "Bernoulli": (1, lambda p, c: D.Bernoulli(p, validate_args=c)),
    "Beta": (2, lambda a, b, c: D.Beta(a, b, validate_args=c)),
    "Binomial": (1, lambda p, c: D.Binomial(10, p, validate_args=c)),
    "Categorical": (2, lambda a, b, c: D.Categorical(tg.stack([a, b], -1), validate_args=c)),
    "Cauchy": (2, lambda a, b, c: D.Cauchy(a, b, validate_args=c)),
    "Chi2": (1, lambda a, c: D.Chi2(a, validate_args=c)),
    "ContinuousBernoulli": (1, lambda p, c: D.ContinuousBernoulli(p, validate_args=c)),
    "Dirichlet": (2, lambda a, b, c: D.Dirichlet(tg.stack([a, b], -1), validate_args=c)),
    "Exponential": (1, lambda a, c: D.Exponential(a, validate_args=c)),
    "FisherSnedecor": (2, lambda a, b, c: D.FisherSnedecor(a, b, validate_args=c)),
    "Gamma": (2, lambda a, b, c: D.Gamma(a, b, validate_args=c)),
    "GeneralizedPareto": (2, lambda a, b, c: D.GeneralizedPareto(tg.zeros(1, dtype=tg.float64), a, b, validate_args=c)),
    "Geometric": (1, lambda p, c: D.Geometric(p, validate_args=c)),
    "Gumbel": (2, lambda a, b, c: D.Gumbel(a, b, validate_args=c)),
    "HalfCauchy": (1, lambda a, c: D.HalfCauchy(a, validate_args=c)),
    "HalfNormal": (1, lambda a, c: D.HalfNormal(a, validate_args=c)),
    "InverseGamma": (2, lambda a, b, c: D.InverseGamma(a, b, validate_args=c)),
    "Kumaraswamy": (2, lambda a, b, c: D.Kumaraswamy(a, b, validate_args=c)),
    "LKJCholesky": (1, lambda a, c: D.LKJCholesky(3, a, validate_args=c)),
    "Laplace": (2, lambda a, b, c: D.Laplace(a, b, validate_args=c)),
    "LogNormal": (2, lambda a, b, c: D.LogNormal(a, b, validate_args=c)),
    "LogisticNormal": (2, lambda a, b, c: D.LogisticNormal(tg.stack([a, a], -1), tg.stack([b, b], -1), validate_args=c)),
    "LowRankMultivariateNormal": (2, lambda a, b, c: D.LowRankMultivariateNormal(a, b[:, None], b, validate_args=c)),
    "MixtureSameFamily": (
        2,
        lambda a, b, c: D.MixtureSameFamily(
            D.Categorical(tg.stack([a, a], -1), validate_args=c),
            D.Normal(tg.stack([a, b], -1), tg.stack([b, b], -1), validate_args=c),
            validate_args=c,
        ),
    ),
    "Multinomial": (2, lambda a, b, c: D.Multinomial(5, tg.stack([a, b], -1), validate_args=c)),
    "MultivariateNormal": (2, lambda a, b, c: D.MultivariateNormal(a, b[:, None], validate_args=c)),
    "NegativeBinomial": (2, lambda a, p, c: D.NegativeBinomial(a, p, validate_args=c)),
    "Normal": (2, lambda a, b, c: D.Normal(a, b, validate_args=c)),
    "OneHotCategorical": (2, lambda a, b, c: D.OneHotCategorical(tg.stack([a, b], -1), validate_args=c)),
    "OneHotCategoricalStraightThrough": (
        2,
        lambda a, b, c: D.OneHotCategoricalStraightThrough(tg.stack([a, b], -1), validate_args=c),
    ),
    "Pareto": (2, lambda a, b, c: D.Pareto(a, b, validate_args=c)),
    "Poisson": (1, lambda a, c: D.Poisson(a, validate_args=c)),
    "RelaxedBernoulli": (2, lambda a, p, c: D.RelaxedBernoulli(a, p, validate_args=c)),
    "RelaxedOneHotCategorical": (2, lambda a, b, c: D.RelaxedOneHotCategorical(a, tg.stack([b, b], -1), validate_args=c)),
    "StudentT": (2, lambda a, b, c: D.StudentT(a, b, b, validate_args=c)),
    "Uniform": (2, lambda a, b, c: D.Uniform(a, b, validate_args=c)),
    "VonMises": (2, lambda a, b, c: D.VonMises(a, b, validate_args=c)),
    "Weibull": (2, lambda a, b, c: D.Weibull(a, b, validate_args=c)),
    "Wishart": (2, lambda a, b, c: D.Wishart(a, b[:, None, None] * tg.eye(1, dtype=tg.float64), validate_args=c)),
}
FAMILIES = {"Distribution", "ExponentialFamily", "Independent", "TransformedDistribution"}  # made of others


def distribution_cases() -> Iterator[Case]:
    for name, (count, kind) in KINDS.items():
        asked = distribution(kind)
        values: tuple[Sequence[Any], ...] = [(*SHARE, *FEW), FEW][count - 1]  # type: ignore[assignment]
        parameters = [values] * count
        yield Case(f"{name} draws", asked, (("draw",), (0.0,), (False, True), *parameters))
        yield Case(f"{name} moments", asked, (("moments", "kl"), (0.0,), (False,), *parameters))
        few = [FEW if count == 1 else FEW[::2]] * count
        yield Case(f"{name} densities", asked, (("log_prob", "cdf", "icdf"), FEW, (False,), *few))


# ------------------------------------------------------------------------------------------------------------------ solvers


def minimised(function: Callable[[Any], Any], start: float, lr: float, search: Any, tolerance: float) -> None:
    x = tg.tensor([start, 1.0], dtype=tg.float64, requires_grad=True)
    optimizer = tg.optim.LBFGS([x], lr=lr, line_search_fn=search, tolerance_grad=tolerance, tolerance_change=tolerance)
    calls = 0

    def closure() -> Any:
        nonlocal calls
        calls += 1
        if calls > 60:
            raise SystemError("more evaluations than max_eval and a line search allow")
        optimizer.zero_grad()
        loss = function(x)
        loss.backward()
        return loss

    optimizer.step(closure)


LOSSES: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: (x * x).sum(),
    "falling for ever": lambda x: -(x * x).sum(),
    "exponential": lambda x: x.exp().sum(),
    "logarithm": lambda x: x.log().sum(),
    "kink": lambda x: x.abs().sum(),
    "nan": lambda x: (x * math.nan).sum(),
    "steep": lambda x: (x * 1e300).sum(),
    "waves": lambda x: (x * 1e8).sin().sum(),
}


def matrix(dtype: str, kind: str, a: float) -> Any:
    rows = {
        "diagonal": [[a, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -a]],
        "full": [[a, a, a], [a, a, a], [a, a, a]],
        "one": [[1.0, a, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        "cycle": [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [a, 0.0, 0.0]],
    }[kind]
    return tg.tensor(rows, dtype=getattr(tg, dtype), requires_grad=True)


DECOMPOSITIONS = (
    "eig",
    "eigvals",
    "eigh",
    "eigvalsh",
    "svd",
    "svdvals",
    "qr",
    "lu",
    "inv",
    "pinv",
    "det",
    "slogdet",
    "cholesky",
    "matrix_exp",
    "matrix_rank",
    "cond",
    "matrix_norm",
    "ldl_factor",
    "inv_ex",
    "cholesky_ex",
)


def decomposed(name: str, dtype: str, kind: str, a: float) -> None:
    m = matrix(dtype, kind, a)
    result = getattr(tg.linalg, name)(m)
    derivatives([*result] if isinstance(result, tuple) else [result], [m])


def scheduled(name: str, *numbers: Any) -> None:
    """Steps of a scheduler; its formulas are Python's, as PyTorch's are: ArithmeticError where a setting divides by 0."""
    try:
        run_schedule(name, *numbers)
    except ArithmeticError as error:
        raise ValueError from error


def run_schedule(name: str, *numbers: Any) -> None:
    optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = getattr(tg.optim.lr_scheduler, name)(optimizer, *numbers[:-1])
    for epoch in (None, numbers[-1], None):
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # step(epoch) is deprecated
            scheduler.step(*[] if epoch is None else [epoch])


SCHEDULERS = {
    "StepLR": 2,
    "MultiStepLR": 2,
    "ConstantLR": 2,
    "LinearLR": 3,
    "ExponentialLR": 1,
    "PolynomialLR": 2,
    "CosineAnnealingLR": 2,
    "CosineAnnealingWarmRestarts": 3,
    "CyclicLR": 3,
    "OneCycleLR": 2,
}


def solvers() -> Iterator[Case]:
    for name, loss in LOSSES.items():
        yield Case(
            f"LBFGS {name}",
            lambda *v, f=loss: minimised(f, *v),
            ((0.5, *FEW), (1.0, 1e-300, 1e18, 1e300), (None, "strong_wolfe"), (1e-9, -math.inf, math.nan, 1e300)),
        )
    for name in DECOMPOSITIONS:
        if hasattr(tg.linalg, name):
            yield Case(
                f"linalg.{name}",
                lambda *v, f=name: decomposed(f, *v),
                (("float64", "float32", "complex128"), ("diagonal", "full", "one", "cycle"), REALS),
            )
    yield Case(
        "lobpcg",
        lambda a, n, tol: tg.lobpcg(tg.diag(tg.tensor([a, 1.0, 2.0, 3.0], dtype=tg.float64)), k=1, niter=n, tol=tol),
        (FEW, (None, 10, 10**18, -5, 0), (None, 0.0, -1.0, 1e300, math.nan)),
    )
    lists = {"MultiStepLR": [[3], [10**18], [], [-5, 2**63 - 1]]}
    rates = (1, 0, -1, 2, 1e300, 1e-300, 10**18, 0.5, math.inf, math.nan)
    for name, count in SCHEDULERS.items():
        first = lists.get(name, rates)
        yield Case(
            name,
            lambda *v, f=name: scheduled(f, *v),
            (first, *[rates] * (count - 1), (1, 0, 10**18, 2**62, -5, 0.5, 1e300, math.inf, math.nan)),
        )
    yield Case(
        "clip_grad_norm_", clipped, (REALS, REALS, (2.0, 0.0, 1.0, -3.5, 1e-300, 1e300, math.inf, -math.inf, math.nan))
    )
    for name in ("vector_norm", "norm"):
        yield Case(
            name,
            lambda x, p, f=name: derivatives([getattr(tg.linalg, f)(y := number("float64", x, True), p)], [y]),
            (REALS, REALS),
        )
    yield Case("renorm", lambda x, p, m: tg.renorm(number("float64", x)[None], p, 0, m), (FEW, REALS, FEW))
    yield Case(
        "while_loop",
        lambda x, most: (
            tg.func.while_loop(lambda v: v < 3, lambda v: v + 1, number("float64", x, True), max_steps=most)
            if hasattr(tg.func, "while_loop")
            else None
        ),
        ((0.0, 2.5, 1e300, math.inf, math.nan), (None, 0, 1, 10, 10**18, -1)),
    )


def clipped(g: float, most: float, p: float) -> None:
    x = tg.zeros(1, dtype=tg.float64, requires_grad=True)
    x.grad = number("float64", g)
    tg.nn.utils.clip_grad_norm_([x], most, p)


# -------------------------------------------------------------------------------------------------------------------- sizes


def first_of(things: Any) -> Any:
    return next(iter(things), None)


def ranged(start: Any, end: Any, step: Any) -> Any:
    return tg.arange(start, end, step)


def sizes() -> Iterator[Case]:
    """What is asked for a size, count or position. Results that no memory holds are refused before any is taken."""
    F, x = tg.nn.functional, tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    image, indices, line = tg.ones(1, 1, 4, 4), tg.tensor([0, 1]), tg.arange(6.0)
    of_count: dict[str, Callable[[int], Any]] = {
        "zeros": tg.zeros,
        "ones": tg.ones,
        "empty": tg.empty,
        "rand": tg.rand,
        "randn": tg.randn,
        "eye": tg.eye,
        "randperm": tg.randperm,
        "full": lambda n: tg.full((n,), 1.0),
        "randint": lambda n: tg.randint(0, 3, (n,)),
        "linspace": lambda n: tg.linspace(0, 1, n),
        "logspace": lambda n: tg.logspace(0, 1, n),
        "arange": tg.arange,
        "one_hot": lambda n: F.one_hot(indices, n),
        "one_hot of": lambda n: F.one_hot(tg.tensor([n])),
        "bincount": lambda n: tg.bincount(tg.tensor([n])),
        "bincount minlength": lambda n: tg.bincount(indices, minlength=n),
        "repeat_interleave": lambda n: tg.repeat_interleave(line, n),
        "repeat_interleave of": lambda n: tg.repeat_interleave(tg.tensor([n])),
        "repeat_interleave counts": lambda n: tg.repeat_interleave(line[:2], tg.tensor([n, 1])),
        "repeat": line.repeat,
        "tile": lambda n: tg.tile(line, (n,)),
        "expand": lambda n: tg.ones(1).expand(n) * 1,
        "tril_indices": lambda n: tg.tril_indices(n, n),
        "tril_indices offset": lambda n: tg.tril_indices(3, 3, n),
        "triu_indices": lambda n: tg.triu_indices(n, 2),
        "tril": lambda n: x.tril(n),
        "triu": lambda n: x.triu(n),
        "diag": lambda n: tg.diag(line, n),
        "diagonal": lambda n: x.diagonal(n),
        "diag_embed": lambda n: tg.diag_embed(line, n),
        "diagflat": lambda n: tg.diagflat(line, n),
        "vander": lambda n: tg.linalg.vander(line, N=n) if hasattr(tg.linalg, "vander") else None,
        "combinations": lambda n: tg.combinations(line, n),
        "combinations again": lambda n: tg.combinations(line[:2], n, True),
        "hann_window": tg.hann_window,
        "hamming_window": tg.hamming_window,
        "blackman_window": tg.blackman_window,
        "bartlett_window": tg.bartlett_window,
        "kaiser_window": tg.kaiser_window,
        "histc": lambda n: tg.histc(line, n),
        "roll": lambda n: tg.roll(line, n),
        "rot90": lambda n: tg.rot90(x, n),
        "diff": lambda n: tg.diff(line, n),
        "chunk": lambda n: line.chunk(n),
        "split": lambda n: line.split(n),
        "tensor_split": lambda n: tg.tensor_split(line, n),
        "unfold": lambda n: line.unfold(0, 2, n),
        "unfold size": lambda n: line.unfold(0, n, 1),
        "topk": lambda n: line.topk(n),
        "kthvalue": lambda n: line.kthvalue(n),
        "narrow": lambda n: line.narrow(0, 0, n),
        "narrow start": lambda n: line.narrow(0, n, 1),
        "pad": lambda n: F.pad(line, (n, 0)),
        "pad circular": lambda n: F.pad(image, (n, 0, 0, 0), mode="circular"),
        "pad reflect": lambda n: F.pad(image, (n, 0, 0, 0), mode="reflect"),
        "pad replicate": lambda n: F.pad(image, (n, 0, 0, 0), mode="replicate"),
        "interpolate": lambda n: F.interpolate(image, size=n),
        "interpolate bilinear": lambda n: F.interpolate(image, size=(n, 2), mode="bilinear"),
        "interpolate scale": lambda n: F.interpolate(image, scale_factor=float(n)),
        "fft": lambda n: tg.fft.fft(line, n),
        "rfft": lambda n: tg.fft.rfft(line, n),
        "irfft": lambda n: tg.fft.irfft(line, n),
        "fftfreq": tg.fft.fftfreq,
        "rfftfreq": tg.fft.rfftfreq,
        "stft": lambda n: tg.stft(line, n, 2, return_complex=True),
        "multinomial": lambda n: tg.multinomial(line, n, True),
        "max_pool2d": lambda n: F.max_pool2d(image, n),
        "max_pool2d stride": lambda n: F.max_pool2d(image, 2, n),
        "max_pool2d dilation": lambda n: F.max_pool2d(image, 2, 1, 0, n),
        "max_pool2d padding": lambda n: F.max_pool2d(image, 2, 1, n),
        "avg_pool2d": lambda n: F.avg_pool2d(image, n),
        "avg_pool2d padding": lambda n: F.avg_pool2d(image, 2, 1, n),
        "adaptive_avg_pool2d": lambda n: F.adaptive_avg_pool2d(image, n),
        "adaptive_max_pool2d": lambda n: F.adaptive_max_pool2d(image, n),
        "lp_pool2d": lambda n: F.lp_pool2d(image, 2, n),
        "fold": lambda n: F.fold(tg.ones(1, 4, 4), n, 2),
        "F.unfold": lambda n: F.unfold(image, n),
        "F.unfold padding": lambda n: F.unfold(image, 2, padding=n),
        "F.unfold dilation": lambda n: F.unfold(image, 2, dilation=n),
        "conv2d padding": lambda n: F.conv2d(image, tg.ones(1, 1, 2, 2), padding=n),
        "conv2d stride": lambda n: F.conv2d(image, tg.ones(1, 1, 2, 2), stride=n),
        "conv2d dilation": lambda n: F.conv2d(image, tg.ones(1, 1, 2, 2), dilation=n),
        "conv2d groups": lambda n: F.conv2d(image, tg.ones(1, 1, 2, 2), groups=n),
        "conv_transpose2d padding": lambda n: F.conv_transpose2d(image, tg.ones(1, 1, 2, 2), padding=n),
        "conv_transpose2d stride": lambda n: F.conv_transpose2d(image, tg.ones(1, 1, 2, 2), stride=n),
        "conv_transpose2d dilation": lambda n: F.conv_transpose2d(image, tg.ones(1, 1, 2, 2), dilation=n),
        "pixel_shuffle": lambda n: F.pixel_shuffle(image, n),
        "pixel_unshuffle": lambda n: F.pixel_unshuffle(image, n),
        "channel_shuffle": lambda n: F.channel_shuffle(image, n),
        "affine_grid": lambda n: F.affine_grid(tg.ones(1, 2, 3), [1, 1, n, 2]),
        "group_norm": lambda n: F.group_norm(image, n),
        "local_response_norm": lambda n: F.local_response_norm(image, n),
        "Linear": lambda n: tg.nn.Linear(n, n),
        "Embedding": lambda n: tg.nn.Embedding(n, 8),
        "Embedding dim": lambda n: tg.nn.Embedding(2, n),
        "Conv2d": lambda n: tg.nn.Conv2d(n, n, 3),
        "LSTM": lambda n: tg.nn.LSTM(2, n),
        "GRU": lambda n: tg.nn.GRU(n, 2),
        "LayerNorm": lambda n: tg.nn.LayerNorm(n),
        "BatchNorm1d": tg.nn.BatchNorm1d,
        "GroupNorm": lambda n: tg.nn.GroupNorm(n, n),
        "Bilinear": lambda n: tg.nn.Bilinear(n, 2, 2),
        "MultiheadAttention": lambda n: tg.nn.MultiheadAttention(n, 1),
        "MultiheadAttention heads": lambda n: tg.nn.MultiheadAttention(8, n),
        "index_select": lambda n: line.index_select(0, tg.tensor([n])),
        "take": lambda n: line.take(tg.tensor([n])),
        "as_strided": lambda n: line.as_strided((2,), (n,)),
        "as_strided size": lambda n: line.as_strided((n,), (0,)) * 1,
        "as_strided offset": lambda n: line.as_strided((2,), (1,), n),
        "view": lambda n: line.view(n, -1),
        "reshape": lambda n: line.reshape(n),
        "unflatten": lambda n: line.unflatten(0, (n, 2)),
        "item position": lambda n: line[n],
        "slice": lambda n: line[n:],
        "slice step": lambda n: line[::n],
        "new_zeros": line.new_zeros,
        "resize_": lambda n: tg.ones(2).resize_(n) if hasattr(tg.Tensor, "resize_") else None,
        "movedim": lambda n: x.movedim(0, n),
        "unsqueeze": lambda n: x.unsqueeze(n),
        "sum dim": lambda n: x.sum(n),
        "flatten": lambda n: x.flatten(n),
        "scatter": lambda n: line.scatter(0, tg.tensor([n]), 1.0),
        "svd_lowrank": lambda n: tg.svd_lowrank(x, n) if hasattr(tg, "svd_lowrank") else None,
        "pca_lowrank": lambda n: tg.pca_lowrank(x, n) if hasattr(tg, "pca_lowrank") else None,
        "sequence mask": lambda n: tg.nn.utils.rnn.pack_padded_sequence(tg.ones(3, 1, 2), [n]),
        "pad_packed total": lambda n: tg.nn.utils.rnn.pad_packed_sequence(
            tg.nn.utils.rnn.pack_padded_sequence(tg.ones(3, 1, 2), [3]), total_length=n
        ),
        "parameters_to_vector": lambda n: tg.nn.utils.vector_to_parameters(line, [tg.ones(2)]),
        "sparse": lambda n: (
            tg.sparse_coo_tensor(tg.tensor([[0]]), [1.0], (n,)).to_dense() if hasattr(tg, "sparse_coo_tensor") else None
        ),
        "cosine window": lambda n: tg.signal.windows.cosine(n) if hasattr(tg, "signal") else None,
        "tensor of range": lambda n: tg.zeros(n, n, n),
        "zeros in three": lambda n: tg.zeros(n, 0, n),
        "corr": lambda n: tg.cov(x, correction=n),
        "var": lambda n: x.var(correction=n),
        "quantile": lambda n: line.quantile(float(n)),
        "mixed cat": lambda n: tg.cat([tg.zeros(1).expand(n), line]),
        "stack": lambda n: tg.stack([tg.zeros(1).expand(n)] * 2),
        "meshgrid": lambda n: tg.meshgrid(tg.zeros(1).expand(n), line, indexing="ij"),
        "cdist": lambda n: tg.cdist(tg.zeros(1, 1).expand(n, 1), tg.zeros(1, 1).expand(n, 1)),
        "cartesian_prod": lambda n: tg.cartesian_prod(tg.zeros(1).expand(n), line),
        "outer": lambda n: tg.outer(tg.zeros(1).expand(n), tg.zeros(1).expand(n)),
        "kron": lambda n: tg.kron(tg.zeros(1).expand(n), line),
        "ctc_loss": lambda n: F.ctc_loss(tg.zeros(3, 1, 4), tg.tensor([[1, 2]]), tg.tensor([n]), tg.tensor([2])),
        "max_unpool2d": lambda n: F.max_unpool2d(
            image, tg.arange(16).reshape(1, 1, 4, 4), 2, output_size=(1, 1, n + 5, n + 5)
        ),
        "fractional_max_pool2d": lambda n: (
            F.fractional_max_pool2d(image, 2, output_size=n) if hasattr(F, "fractional_max_pool2d") else None
        ),
        "embedding_bag": lambda n: F.embedding_bag(indices, x, tg.tensor([0, n])) if hasattr(F, "embedding_bag") else None,
        "bucketize": lambda n: tg.bucketize(tg.tensor([n]), tg.tensor([1, 2])),
        "cumsum": lambda n: tg.cumsum(tg.tensor([n, n]), 0),
        "prod": lambda n: tg.tensor([n, n]).prod(),
        "factorial": lambda n: tg.tensor([n, n, n]).cumprod(0),
        "RandomSampler": lambda n: first_of(tg.utils.data.RandomSampler([1, 2, 3], True, n)),
        "RandomSampler once": lambda n: first_of(tg.utils.data.RandomSampler([1, 2, 3], False, n)),
        "RandomSampler of range": lambda n: first_of(tg.utils.data.RandomSampler(range(n))),
        "SequentialSampler": lambda n: first_of(tg.utils.data.SequentialSampler(range(n))),
        "WeightedRandomSampler": lambda n: first_of(tg.utils.data.WeightedRandomSampler([1.0, 2.0], n)),
        "BatchSampler": lambda n: first_of(tg.utils.data.BatchSampler(range(3), n, False)),
        "BatchSampler length": lambda n: len(tg.utils.data.BatchSampler(range(3), n, False)),
        "DataLoader": lambda n: first_of(tg.utils.data.DataLoader(line, batch_size=n)),
        "DataLoader of range": lambda n: first_of(tg.utils.data.DataLoader(range(n), batch_size=2)),
        "DataLoader shuffled": lambda n: first_of(tg.utils.data.DataLoader(range(n), batch_size=2, shuffle=True)),
        "random_split": lambda n: tg.utils.data.random_split(line, [n, 6 - n]),
        "DistributedSampler": lambda n: (
            first_of(tg.utils.data.DistributedSampler(line, num_replicas=n, rank=0))
            if hasattr(tg.utils.data, "DistributedSampler")
            else None
        ),
    }
    for name, function in of_count.items():
        yield Case(f"size: {name}", lambda n, f=function: f(n), (COUNTS,))
    ends = (3, 0.0, 0.5, -1.0, 1e-300, 1e18, -1e18, 1e300, 10**18, 2**63 - 1, -(2**63), math.inf, math.nan)
    yield Case("size: arange of three", ranged, (ends, ends, ends))
    yield Case("size: range of three", lambda *v: tg.range(*v), (ends, ends, ends))
    yield Case("size: linspace of three", tg.linspace, (ends, ends, (3, 0, 1, -1, 10**18)))
    yield Case("size: histc of three", lambda low, high: tg.histc(tg.ones(2), 3, low, high), (ends, ends))
    yield Case("size: quantile of two", lambda v, q: tg.tensor([v, 1.0], dtype=tg.float64).quantile(q), (REALS, REALS))


QUICK = (
    "zeta",
    "polygamma",
    "chebyshev_polynomial_t",
    "laguerre_polynomial_l",
    "binomial",
    "binomial of many",
    "poisson",
    "VonMises draws",
    "trunc_normal_",
    "LBFGS falling for ever",
    "linalg.svdvals",
    "ExponentialLR",
    "size: tensor_split",
    "size: zeros",
    "size: randperm",
    "size: diagonal",
    "size: unfold",
)


def quick() -> Iterator[Case]:
    """Cases that once had no end, or ended in an OverflowError."""
    for group in (orders, draws, solvers, sizes, functions, distribution_cases):
        yield from (case for case in group() if case.name in QUICK)


GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "orders": orders,
    "draws": draws,
    "solvers": solvers,
    "sizes": sizes,
    "functions": functions,
    "distributions": distribution_cases,
}
EVERY = {**GROUPS, "quick": quick}

# ------------------------------------------------------------------------------------------------------------------ running


class Outcome(NamedTuple):
    case: str
    arguments: str
    seconds: float
    text: str  # of what is wrong, or empty: killed, another exception, memory, time


def timed(case: Case, arguments: tuple[Any, ...]) -> tuple[float, str, str]:
    """Seconds of processor time of a call, what it raised that is no refusal, and what it refused."""
    text = refusal = ""
    start = time.process_time()
    try:
        case.call(*arguments)
    except Exception as error:
        refusal = f"{type(error).__name__}: {error}"
        if isinstance(error, RecursionError) or not isinstance(error, REFUSALS):
            text = refusal
    return time.process_time() - start, text, refusal


def run_case(case: Case, every: int, skip: int, report: Callable[[str], None]) -> None:
    """The calls of a case behind the first `skip`, one in `every`; a line is reported before each, and one after."""
    refused = timed(case, tuple(values[0] for values in case.values))[2]
    for k, arguments in enumerate(itertools.islice(case.calls(), 0, None, every)):
        if k < skip:
            continue
        report(f"call\t{k}\t{arguments}")
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds, text, refusal = timed(case, arguments)
        refused = refused and refusal
        if seconds > case.slow:  # or a collection of garbage came between
            seconds = min(seconds, timed(case, arguments)[0])
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if grown > MEMORY:
            text = text or f"takes {grown >> 20} MB"
        if seconds > case.slow:
            text = text or f"takes {seconds * 1e3:.0f} ms"
        report(f"done\t{seconds:.6f}\t{' '.join(text.split())[:200]}")
    signal.setitimer(signal.ITIMER_REAL, 0)
    if refused and every == 1 and not skip:
        report(f"done\t0\tno call gives a value: {refused}")


def child(group: str, names: Sequence[str], every: int, first: int, skip: int) -> None:
    """Runs the cases of a group from the `first` on, in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", UserWarning)  # about arguments, as in PyTorch
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for number_of_case, case in enumerate(EVERY[group]()):
        if number_of_case < first or (names and not any(name in case.name for name in names)):
            continue
        print(f"case\t{number_of_case}\t{case.name}", flush=True)
        run_case(case, every, skip if number_of_case == first else 0, lambda line: print(line, flush=True))


def outcomes(group: str, names: Sequence[str] = (), every: int = 1) -> Iterator[Outcome]:
    """All calls of a group's cases, in processes that are started again behind a call that is killed."""
    first = skip = 0
    while True:
        command = [sys.executable, "-m", "tests.extreme_values", "--child", group, str(every), str(first), str(skip), *names]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            name = arguments = ""
            position, running = first, False
            for line in process.stdout or ():
                what, *rest = line.rstrip("\n").split("\t", 2)
                if what == "case":
                    position, name = int(rest[0]), rest[1]
                    skip = 0 if position != first else skip
                elif what == "call":
                    number_of_call, arguments, running = int(rest[0]), rest[1], True
                elif what == "done":
                    running = False
                    yield Outcome(name, arguments, float(rest[0]), rest[1])
        if not process.returncode:
            return
        if not running:
            raise RuntimeError(f"the process of {group}, {name} failed with {process.returncode} between two calls")
        died = "killed: no end" if process.returncode == -signal.SIGALRM else f"process ended: {process.returncode}"
        yield Outcome(name, arguments, LIMIT, died)
        first, skip = position, number_of_call + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of cases")
    parser.add_argument("--group", action="append", choices=[*EVERY])
    parser.add_argument("--every", type=int, default=1, help="one call in so many")
    parser.add_argument("--shown", type=int, default=4, help="faults shown of each case")
    options = parser.parse_args()
    faults: collections.Counter[str] = collections.Counter()
    slowest: dict[str, Outcome] = {}
    count = 0
    for group in options.group or GROUPS:
        start = time.perf_counter()
        for outcome in outcomes(group, options.names, options.every):
            count += 1
            if outcome.text:
                faults[outcome.case] += 1
                if faults[outcome.case] <= options.shown:
                    print(f"{outcome.case} {outcome.arguments}: {outcome.text}", flush=True)
            if outcome.seconds >= slowest.setdefault(outcome.case, outcome).seconds:
                slowest[outcome.case] = outcome
        print(f"-- {group}: {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{count} calls of {len(slowest)} cases, {sum(faults.values())} at fault: {dict(faults)}")
    for outcome in sorted(slowest.values(), key=lambda o: -o.seconds)[:30]:
        print(f"{outcome.seconds * 1e3:8.2f} ms  {outcome.case} {outcome.arguments}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[6:], *map(int, sys.argv[3:6]))
    else:
        main()

"""The laws of tapegrad.testing: each detects a deliberately wrong record."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, testing
from tapegrad.core import factories
from tapegrad.core.op import TABLE, Op
from tapegrad.func import tree
from tapegrad.levels import taylor
from tapegrad.levels.laplacian import ForwardLaplacian
from tapegrad.table.samples.common import ANALYTIC, COMPARED, POSITIVE, Sample, cases, domain, pairs
from tapegrad.table.samples.reduce import REDUCED

NAME = "deliberately_wrong"
REAL_PAIRS = pairs(numbers=False)
MATRICES = cases(((2, 3), (3, 2), ()))
ROWS = cases(((2, 3), (1,)), ((3, 3), (0,)))
SIDE = {}


@pytest.fixture
def make():
    """Register a throw-away record under a test name."""

    def register(kind, forward, rules, **fields):
        op = Op(NAME, kind, forward, rules, **{"saves": "*", "jax": "host", **fields})
        factories.make(op)
        return op

    yield register
    TABLE.pop(NAME, None)
    SIDE.clear()


def stashing(x):
    SIDE["x"] = x
    return np.sin(x)


def counting(x):
    SIDE["calls"] = SIDE.get("calls", 0) + 1
    return np.sin(x) + SIDE["calls"]


def clobbering(x):
    r = np.exp(x)
    x[...] = r
    return r


def detached_cos(xp, ans, x):
    return np.cos(x._d if hasattr(x, "_d") else x)


def serving_everybody(e, s, g, cot, need, mutable_slots):
    for slot, other in ((e[1], e[6]), (e[2], e[5])):
        if need is None or slot in need:
            cot[slot] = g * other


def noisy(xp, x):
    warnings.warn("not what a forward does", RuntimeWarning, stacklevel=2)
    return xp.sin(x)


# name: (law that catches it, kind, forward, rules, fields)
WRONG = {
    "a rule scaled by 1.001": ("vjp", "elementwise", np.sin, (lambda xp, ans, x: 1.001 * xp.cos(x),), {"samples": ANALYTIC}),
    "a sign": ("vjp", "elementwise", np.cos, (lambda xp, ans, x: xp.sin(x),), {"samples": ANALYTIC}),
    "a dropped factor": ("vjp", "elementwise", lambda x: x**3, (lambda xp, ans, x: x * x,), {"samples": ANALYTIC}),
    "an offset of 1e-6": ("vjp", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x) + 1e-6,), {"samples": ANALYTIC}),
    "swapped arguments": (
        "vjp", "elementwise", np.multiply, (lambda xp, ans, x, y: x, lambda xp, ans, x, y: y),
        {"arity": 2, "samples": REAL_PAIRS},
    ),
    "swapped rules": (
        "vjp", "elementwise", np.divide, (lambda xp, ans, x, y: -ans / y, lambda xp, ans, x, y: 1.0 / y),
        {"arity": 2, "samples": pairs((-2, 2), (0.5, 2.0), numbers=False)},
    ),
    "a transpose that is none": (
        "vjp", "bilinear", np.matmul,
        (lambda xp, g, ans, x, y: xp.matmul(g, xp.mT(y)), lambda xp, g, ans, x, y: xp.mT(xp.matmul(xp.mT(g), x)) * 2.0),
        {"arity": 2, "samples": MATRICES},
    ),
    "a missing conjugation": (
        "vjp", "bilinear", np.matmul,
        (lambda xp, g, ans, x, y: xp.matmul(g, xp.mT(y)), lambda xp, g, ans, x, y: xp.matmul(xp.mT(x), g)),
        {"arity": 2, "samples": cases(((2, 3), (3, 2), ()), complex_too=True)},
    ),
    "an ignored cotangent": (
        "linearity", "general", np.sin, (lambda xp, g, ans, x: xp.cos(x),), {"samples": ANALYTIC},
    ),
    "a cotangent squared": (
        "linearity", "general", np.sin, (lambda xp, g, ans, x: g * g * xp.cos(x),), {"samples": ANALYTIC},
    ),
    "0 times nan": (
        "linearity", "general", np.sqrt, (lambda xp, g, ans, x: g * 0.5 / ans,), {"samples": domain(0.5, 1.0, 0.0)},
    ),
    "a wrong axis": (
        "vjp", "linear", lambda x, dim: np.cumsum(x, dim), (lambda xp, g, ans, x, dim: xp.cumsum(g, 1 - dim, True),),
        {"params": ("dim",), "samples": ROWS},
    ),
    "a wrong direction": (
        "vjp", "linear", lambda x, dim: np.cumsum(x, dim), (lambda xp, g, ans, x, dim: xp.cumsum(g, dim, False),),
        {"params": ("dim",), "samples": ROWS},
    ),
    "a constant where a variable is meant": (
        "second_order", "elementwise", np.sin, (detached_cos,), {"samples": domain(-2.0, 2.0)},
    ),
    "a second order that is wrong alone": (
        "second_order", "elementwise", np.log, (lambda xp, ans, x: half_inverse(x),), {"samples": domain(0.5, 2.0)},
    ),
    "a rule that reads what is not saved": (
        "saves_sufficient", "elementwise", stashing, (lambda xp, ans, x: np.cos(SIDE["x"]),),
        {"saves": "", "samples": ANALYTIC},
    ),
    "an argument saved in vain": (
        "saves_necessary", "elementwise", np.exp, (lambda xp, ans, x: ans * xp.by_sign(x, 1.0, 1.0),),
        {"saves": "x ans", "samples": ANALYTIC},
    ),
    "an answer saved in vain": (
        "saves_necessary", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x) * xp.by_sign(ans, 1.0, 1.0),),
        {"saves": "x ans", "samples": ANALYTIC},
    ),
    "double precision inside": (
        "dtypes", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x) * np.float64(1.0),), {"samples": domain(-2.0, 2.0)},
    ),
    "a result in double precision": (
        "dtypes", "elementwise", lambda x: np.sin(x).astype(np.float64), (lambda xp, ans, x: xp.cos(x),),
        {"samples": domain(-2.0, 2.0)},
    ),
    "a wrong shape": (
        "dtypes", "general", lambda x, dim: np.sum(x, dim), (lambda xp, g, ans, x, dim: xp.expand(g, ans.shape),),
        {"params": ("dim",), "samples": ROWS},
    ),
    "a forward that remembers": (
        "value", "elementwise", counting, (lambda xp, ans, x: xp.cos(x),), {"samples": ANALYTIC},
    ),
    "a forward that writes into its argument": (
        "purity", "elementwise", clobbering, (lambda xp, ans, x: ans,), {"samples": ANALYTIC},
    ),
    "a rule that depends on the mode": (
        "recorded", "elementwise", np.sin,
        (lambda xp, ans, x: xp.cos(x) if isinstance(x, np.ndarray) else xp.cos(x) * (1.0 + 1e-15),), {"samples": ANALYTIC},
    ),
    "a rule that computes outside of the tape": (
        "connected", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x.detach() if hasattr(x, "_d") else x),),
        {"saves": "x", "samples": domain(-2.0, 2.0)},
    ),
    "both rules for one": (
        "only_asked", "general", lambda xs: xs[0] * xs[1],
        (lambda xp, g, ans, xs, wanted: [g * xs[1], g * xs[0]],), {"arity": -1, "samples": cases(((2, 3), (2, 3), ()))},
    ),
    "a backward on raw arrays for what is not tracked": (
        "only_asked", "bilinear", np.multiply, (lambda xp, g, ans, x, y: g * y, lambda xp, g, ans, x, y: g * x),
        {"arity": 2, "saves": ("y", "x"), "raw_backward": serving_everybody, "samples": cases(((2, 3), (2, 3), ()))},
    ),
    "a value that does not broadcast": (
        "broadcasting", "elementwise", lambda x, y: x * y if x.shape == y.shape else x + y,
        (lambda xp, ans, x, y: y, lambda xp, ans, x, y: x), {"arity": 2, "samples": cases(((2, 3), (2, 3), ()))},
    ),
    "a scaled tangent": (
        "jvp", "general", np.sin, (lambda xp, g, ans, x: g * xp.cos(x),),
        {"jvp": lambda xp, ts, ans, x: 1.001 * (ts[0] * xp.cos(x)), "samples": ANALYTIC},
    ),
    "a tangent that is not conjugate to the cotangent": (
        "adjoint", "general", np.sin, (lambda xp, g, ans, x: g * xp.cos(x),),
        {"jvp": lambda xp, ts, ans, x: ts[0] * xp.cos(x), "samples": ANALYTIC},
    ),
    "a tangent in double precision": (
        "adjoint", "general", np.sin, (lambda xp, g, ans, x: g * xp.cos(x),),
        {"jvp": lambda xp, ts, ans, x: ts[0].to(tg.float64) * xp.cos(x), "samples": domain(-2.0, 2.0)},
    ),
    "an affine record that says it is linear": (
        "adjoint", "linear", lambda x: 2 * x + 1, (lambda xp, g, ans, x: 2 * g,), {"samples": domain(-2.0, 2.0)},
    ),
    "a tangent with a constant in it": (
        "mixed_orders", "general", np.sin, (lambda xp, g, ans, x: g * xp.cos(x),),
        {"jvp": lambda xp, ts, ans, x: ts[0] * xp.cos(x).detach(), "samples": domain(-2.0, 2.0)},
    ),
    "a rule that is wrong for series": (
        "taylor", "elementwise", np.sin,
        (lambda xp, ans, x: xp.cos(x) if hasattr(x, "_d") or isinstance(x, np.ndarray) else xp.cos(x) + 1e-6,),
        {"samples": domain(-2.0, 2.0)},
    ),
    "a batch rule along the wrong dimension": (
        "vmap", "linear", lambda x, dim: np.cumsum(x, dim), (lambda xp, g, ans, x, dim: xp.cumsum(g, dim, True),),
        {"params": ("dim",), "samples": ROWS, "batch": lambda op, n, args, batched, params: op.call(*args, *params)},
    ),
    "a batch rule that is not recorded": (
        "vmap", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),),
        {"samples": domain(-2.0, 2.0), "batch": lambda op, n, args, batched, params: op.call(args[0].detach())},
    ),
    "a batch rule for the first argument alone": (
        "vmap", "bilinear", np.matmul,
        (lambda xp, g, ans, x, y: xp.matmul(g, xp.mT(y)), lambda xp, g, ans, x, y: xp.matmul(xp.mT(x), g)),
        {"arity": 2, "samples": MATRICES, "batch": lambda op, n, args, batched, params: op.call(args[0], args[1][0])},
    ),
    "a warning": ("value", "constant", noisy, (), {"samples": POSITIVE}),
    "an exception in the rule": (
        "vjp", "elementwise", np.sin, (lambda xp, ans, x: xp.no_such_op(x),), {"samples": ANALYTIC},
    ),
}  # fmt: skip


def half_inverse(x):
    """1 / x, with a derivative of its own that is half the right one."""
    if not hasattr(x, "_d"):
        return 1.0 / x
    return 0.5 / x + (0.5 / x).detach()


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_record_is_caught(make, fault):
    law, kind, forward, rules, fields = WRONG[fault]
    op = make(kind, forward, rules, **fields)
    with pytest.raises(testing.LawError) as error:
        if law == "saves_necessary":
            testing.saves_necessary(op)
        else:
            testing.check(op, [law])
    assert (error.value.law, error.value.op) == (law, NAME)


def test_each_law_is_tested():
    untested = set(testing.LAWS) - {law for law, *_ in WRONG.values()}
    assert untested == {"third_order", "strong_zero", "laplacian"}  # below


def half_sine(xp, x):
    """sin(x), with a derivative that is half the right one."""
    s = xp.sin(x)
    return 0.5 * s + (0.5 * s).detach() if hasattr(s, "_d") else s


def test_third_order_alone(make):
    inner = Op("wrong_inside", "elementwise", np.cos, (lambda xp, ans, x: -half_sine(xp, x),), saves="x", samples=ANALYTIC)
    factories.make(inner)
    try:
        op = make("elementwise", np.sin, (lambda xp, ans, x: xp.wrong_inside(x),), samples=domain(-2.0, 2.0))
        testing.check(op, ["vjp", "second_order"])
        with pytest.raises(testing.LawError) as error:
            testing.check(op, ["third_order"])
        assert error.value.law == "third_order"
    finally:
        TABLE.pop("wrong_inside")


def test_strong_zero_alone(make):
    """The engine keeps it for local derivatives; a rule that multiplies by the cotangent itself does not."""
    at_zero = domain(0.5, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0)
    right = make("elementwise", np.sqrt, (lambda xp, ans, x: 0.5 / ans,), singular=True, samples=at_zero)
    testing.check(right, ["strong_zero"])
    TABLE.pop(NAME)
    op = make("general", np.sqrt, (lambda xp, g, ans, x: g * (0.5 / ans),), singular=True, samples=at_zero)
    op.kind = "elementwise"  # after its recording function was made
    op.rules = (lambda xp, ans, x: 0.5 / ans,)
    op.raw_backward = unguarded
    with pytest.raises(testing.LawError) as error:
        testing.check(op, ["strong_zero"])
    assert error.value.law == "strong_zero"


def test_laplacian_alone(make):
    """A closed form for the Laplacian of one record that leaves its second derivative out."""
    op = make("elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),), samples=domain(-2.0, 2.0))
    testing.check(op, ["laplacian"])
    closed = Op(
        f"laplace_{NAME}", "general", lambda x, stack: (np.sin(x), np.cos(x) * stack),
        (lambda xp, g, ans, x, stack: None, lambda xp, g, ans, x, stack: None), saves="", arity=2,
        outputs=2, jax="host",
    )  # fmt: skip
    factories.make(closed)
    try:
        with pytest.raises(testing.LawError) as error:
            testing.check(op, ["laplacian"])
        assert error.value.law == "laplacian" and "Laplacian of output 0" in str(error.value)
    finally:
        TABLE.pop(f"laplace_{NAME}")


@pytest.mark.parametrize("law", ["taylor", "laplacian"])
def test_transforms_that_are_not_differentiable(law, monkeypatch):
    """Right values without a history do not pass."""
    wrong = {"taylor": (func, "jet"), "laplacian": (ForwardLaplacian, "laplacian")}
    owner, name = wrong[law]
    right = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args: tree.mapped(lambda t: t if t is None else t.detach(), right(*args)))
    with pytest.raises(testing.LawError, match="derivative of the"):
        testing.check("sin", [law])


def test_series_without_strong_zero(monkeypatch):
    testing.check("sqrt", ["strong_zero"])
    monkeypatch.setattr(taylor, "zero_unmoved", lambda *_: None)
    with pytest.raises(testing.LawError, match="do not move"):
        testing.check("sqrt", ["strong_zero"])


def unguarded(e, s, g, cot, need, mutable_slots):
    cot[e[1]] = g * (0.5 / e[7])


def test_right_records_pass(make):
    op = make("elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),), samples=ANALYTIC)
    testing.check(op)
    TABLE.pop(NAME)
    op = make("constant", np.greater, arity=2, rules=(), samples=COMPARED)
    testing.check(op)


def test_record_without_samples(make):
    op = make("elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),))
    with pytest.raises(testing.LawError, match="has no samples"):
        testing.check(op)


@pytest.mark.counted  # programs, which tg.compile makes with counts alone
@pytest.mark.parametrize(
    ("kernel", "text"),
    [(lambda x: x if x.max() > 0 else -x, "its forward asks for values"), (lambda x: x + 1.0, "differs from the function")],
)
def test_a_record_that_is_wrong_in_a_program_is_detected(make, kernel, text):
    pytest.importorskip("jax")
    op = make("elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),), samples=ANALYTIC, jax=kernel)
    testing.check(op, testing.LAWS)
    with pytest.raises(testing.LawError, match=rf"op {NAME} \(elementwise\) breaks the law compiled: .*{text}"):
        testing.check(op)


def test_a_reduction_without_zero_blocks_is_detected(make):
    def sums_of_squares(x, dims, keepdim):
        return np.sum(x * x, axis=dims, keepdims=keepdim)

    def vjp(xp, g, ans, x, dims, keepdim):
        return 2.0 * xp.conj(x) * xp.spread(g, x.shape, dims, keepdim)

    fields = {"saves": "x", "samples": REDUCED, "params": ("dims", "keepdim")}
    op = make("general", sums_of_squares, (vjp,), zero_blocks="slices", **fields)
    testing.check(op, ["strong_zero"])
    v, unmasked = tg.tensor([[1.0, math.inf], [3.0, 4.0]], requires_grad=True), tg.tensor([False, True])
    tg.where(unmasked, op.call(v, (1,), False), tg.zeros(2)).sum().backward()
    assert v.grad.tolist() == [[0.0, 0.0], [6.0, 8.0]]
    TABLE.pop(NAME)
    with pytest.raises(testing.LawError, match="gradient of a row with inf whose cotangent is 0"):
        testing.check(make("general", sums_of_squares, (vjp,), **fields), ["strong_zero"])


def test_a_record_is_found_while_homes_is_not_current():
    program = "from tapegrad import later; del later.HOME['sin_ratio']; from tapegrad import testing; "
    program += "print(testing.law.record_of('sin_ratio'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "<op sin_ratio: elementwise>\n", done.stderr


def test_plain_pairs_are_samples(make):
    op = make("elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),), samples=lambda: [((np.ones(3),), ())])
    (sample,) = testing.samples_of(op)
    assert isinstance(sample, Sample) and sample.smooth
    testing.check(op, ["vjp"])


def test_value_against_a_reference():
    x = np.linspace(0.1, 1.0, 4)
    testing.LAWS["value"]("expm1", (x,), reference=lambda x: np.exp(x) - 1)
    with pytest.raises(testing.LawError, match="differs from the reference"):
        testing.LAWS["value"]("exp", (x,), reference=lambda x: np.exp(x) * 1.001)


def test_report_repeats(make):
    make("elementwise", np.sin, (lambda xp, ans, x: 1.001 * xp.cos(x),), samples=domain(-2.0, 2.0))
    with pytest.raises(testing.LawError) as error:
        testing.check(NAME, ["vjp"])
    text = str(error.value)
    assert f"op {NAME} (elementwise) breaks the law vjp" in text
    assert "sample: shapes (2, 3), params ()" in text and "got:" in text and "expected:" in text
    line = text.split('python -c "')[1].removesuffix('"')
    with pytest.raises(testing.LawError) as again:
        exec(line, {})
    assert str(again.value) == text


@pytest.mark.parametrize("value", [
    np.array([1.5, np.nan, -np.inf]), np.zeros((0, 2)), np.array(1 + 2j), np.array([True]), (1, (2, None)),
    np.dtype("float32"), slice(0, 2), Ellipsis, 0.1,
])  # fmt: skip
def test_source_text_makes_the_value_again(value):
    scope = {}
    exec(f"from numpy import *; value = {testing.source(value)}", scope)
    made = scope["value"]
    if isinstance(value, np.ndarray):
        np.testing.assert_array_equal(made, value)
        assert (made.shape, made.dtype) == (value.shape, value.dtype)
    else:
        assert made == value


def test_check_grads_accepts_a_right_function():
    x, y = np.linspace(0.5, 1.5, 6).reshape(2, 3), np.linspace(-1.0, 1.0, 3)
    testing.check_grads(lambda x, y: (x.log() * y.sin()).sum(0), (x, y), order=3)
    testing.check_grads(lambda x: [x.exp(), x * x], tg.tensor(x))
    testing.check_grads(lambda z: z * z, np.array([1 + 2j, 0.5j]))


def test_check_grads_on_a_function_that_forgets_a_path():
    def f(x):
        return (x * x.detach()).sum()

    with pytest.raises(testing.LawError, match=r"f: first derivative differs") as error:
        testing.check_grads(f, np.array([1.0, 2.0]))
    assert error.value.law == "check_grads"


def test_check_grads_of_second_order_only():
    def f(x):
        g = (0.5 * x.sin() + 0.5 * x.sin().detach()) * 1.0
        return (g - g.detach()).exp() * 1.0 + (x.sin() - 1.0).detach()

    with pytest.raises(testing.LawError):
        testing.check_grads(f, np.array([0.3, 0.7]))


def test_check_grads_refuses_single_precision():
    with pytest.raises(TypeError, match="float64 or complex128, but input 1 is float32"):
        testing.check_grads(lambda x, y: x * y, (np.ones(2), np.ones(2, np.float32)))


def test_a_rule_that_reads_what_is_not_saved_is_told_the_remedy(make):
    op = make("linear", np.copy, (lambda xp, g, ans, x: xp.reshape(g, x.shape),), saves="", samples=domain(-2.0, 2.0))
    with pytest.raises(testing.LawError, match=r"may read what is not saved: saves= says what its rules read"):
        testing.check(op, ["vjp"])

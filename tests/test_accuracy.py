"""Orders 0 to 3 in float64 at the right values of accuracy.tsv, which compat/accuracy.py computes with mpmath.

The bound is the error of a function that rounds its argument and its result: 4 eps (|f_k| + |x f_k+1|), where f_k is the
k-th derivative.
"""

import ast
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core.op import TABLE

ORDERS = 3
EPS, SUBNORMAL = 2.0**-52, 5e-324
MAX = float(np.finfo(np.float64).max)
RECORD = {
    "mish": tg.nn.functional.mish,
    "logsumexp": lambda *x: tg.logsumexp(tg.stack(x), 0),
    "log_softmax": lambda *x: tg.log_softmax(tg.stack(x), 0)[0],
    "softmax": lambda *x: tg.softmax(tg.stack(x), 0)[0],
    "norm": lambda *x: tg.linalg.norm(tg.stack(x), dim=0),
}


def derivatives(name, params, points):
    """The partial derivatives up to order 3, by index, at all points at once."""
    xs = [tg.tensor(np.array(column), requires_grad=True) for column in zip(*points, strict=True)]
    call = RECORD.get(name) or (lambda *x: TABLE[name.split()[0]].call(*x, *params))
    found = {}

    def descend(t, index, first):
        found[index] = t.detach().numpy()
        if sum(index) == ORDERS:
            return
        for i in range(first, len(xs)):
            (g,) = tg.autograd.grad(t.sum(), xs[i], create_graph=True, allow_unused=True, materialize_grads=True)
            if g.requires_grad:
                descend(g, (*index[:i], index[i] + 1, *index[i + 1 :]), i)
            else:  # constant: the derivatives of higher order are 0
                for rest in itertools.product(range(ORDERS + 1), repeat=len(xs)):
                    deeper = tuple(a + b for a, b in zip(index, rest, strict=True))
                    if rest[i] and sum(deeper) <= ORDERS:
                        found.setdefault(deeper, g.numpy() if sum(rest) == 1 else np.zeros(len(points)))

    value = call(*xs)
    descend(value, (0,) * len(xs), 0)
    return found


def ratio(got, index, point, want):
    """The error of a partial derivative over its bound; 0 where both are beyond the range."""
    exact = want[index]
    bound = abs(exact)
    for i, x in enumerate(point):
        bound += abs(x * want[(*index[:i], index[i] + 1, *index[i + 1 :])])
    bound = 4 * EPS * bound
    if abs(exact) == math.inf:
        return 0.0 if got == exact else math.inf
    if not math.isfinite(got):
        beyond = not math.isnan(got) and (got > 0) == (exact > 0) and abs(exact) + bound > MAX
        return 0.0 if beyond else math.inf
    return float(abs(got - exact) / (bound + 4 * SUBNORMAL))


def rows():
    found = {}
    for line in (Path(__file__).parent / "accuracy.tsv").read_text().splitlines():
        name, params, point, *numbers = line.split("\t")
        point = ast.literal_eval(point)
        indices = [i for i in sorted(itertools.product(range(5), repeat=len(point))) if sum(i) <= ORDERS + 1]
        want = dict(zip(indices, map(float, numbers), strict=True))
        found.setdefault((name, len(point)), (ast.literal_eval(params), []))[1].append((point, want))
    return found


ROWS = rows()


@pytest.mark.parametrize("name, arguments", ROWS)
def test_right_to_order_3(name, arguments):
    params, cases = ROWS[name, arguments]
    got = derivatives(name, params, [point for point, _ in cases])
    wrong = []
    for i, (point, want) in enumerate(cases):
        for index, values in got.items():
            r = ratio(float(values[i]), index, point, want)
            if r > 1.05:  # the right value itself is rounded
                wrong.append((index, point, float(values[i]), want[index], r))
    assert not wrong


def test_the_table_holds_most_functions():
    assert len({name for name, _ in ROWS}) > 50 and sum([len(cases) for _, cases in ROWS.values()]) > 600


def slopes(f, *xs, dtype=tg.float64):
    xs = [tg.tensor(x, dtype=dtype, requires_grad=True) for x in xs]
    return [g.tolist() for g in tg.autograd.grad(f(*xs).sum(), xs)]


def test_float32_tails_and_extremes():
    assert slopes(tg.tanh, [9.01, 20.0], dtype=tg.float32)[0] == pytest.approx([5.9714e-8, 1.69934e-17], rel=1e-4, abs=0)
    (by_y, by_x) = slopes(tg.atan2, [3e-24, 3e20], [4e-24, 4e20], dtype=tg.float32)
    assert by_y == pytest.approx([1.6e23, 1.6e-21], rel=1e-6, abs=0)
    assert by_x == pytest.approx([-1.2e23, -1.2e-21], rel=1e-6, abs=0)
    z = tg.tensor([4e-24 + 3e-24j, 4e20 + 3e20j], requires_grad=True)
    tg.angle(z).sum().backward()
    assert z.grad.tolist() == pytest.approx([-1.2e23 + 1.6e23j, -1.2e-21 + 1.6e-21j], rel=1e-6, abs=0)


def test_forward_modes_keep_the_tail_of_tanh():
    x = tg.tensor(20.0, dtype=tg.float64)
    right = 1.6993417021166355e-17
    assert tg.func.jvp(tg.tanh, (x,), (tg.ones_like(x),))[1].item() == pytest.approx(right, rel=1e-14, abs=0)
    _, (first, second) = tg.func.jet(tg.tanh, (x,), ((tg.ones_like(x), tg.zeros_like(x)),))
    assert first.item() == pytest.approx(right, rel=1e-14, abs=0)
    assert second.item() == pytest.approx(-2 * right, rel=1e-14, abs=0)
    assert tg.func.laplacian(lambda x: tg.tanh(x).sum())(x[None]).item() == pytest.approx(-2 * right, rel=1e-14, abs=0)


def test_values_at_the_ends():
    assert tg.lgamma(tg.tensor([-MAX, MAX], dtype=tg.float64)).tolist() == [math.inf, math.inf]
    assert tg.sinc(tg.tensor([65504.0], dtype=tg.float16)).isfinite().all()
    assert slopes(tg.exp2, [1024.0])[0] == pytest.approx([1.2460659279417838e308], rel=1e-14)
    assert slopes(lambda x: tg.numpy.std(x, axis=()), [1.0, 2.0]) == [[0.0, 0.0]]


def test_mixed_derivative_of_a_power_at_exponent_0():
    x = tg.tensor([2.0, -2.0, 0.0], dtype=tg.float64, requires_grad=True)
    y = tg.zeros(3, dtype=tg.float64, requires_grad=True)
    (slope,) = tg.autograd.grad((x**y).sum(), x, create_graph=True)
    assert slope.tolist() == [0.0, 0.0, 0.0]
    assert tg.autograd.grad(slope.sum(), y)[0].tolist() == [0.5, -0.5, 0.0]


def test_confident_predictions_have_a_gradient():
    x = [[0.0, -50.0, -60.0]]
    label = tg.tensor([0])
    right = [math.exp(-50) + math.exp(-60), math.exp(-50), math.exp(-60)]
    loss = tg.nn.functional.cross_entropy(tg.tensor(x, dtype=tg.float64), label)
    assert loss.item() == pytest.approx(right[0], rel=1e-14, abs=0)
    (g,) = slopes(lambda t: tg.nn.functional.cross_entropy(t, label), x)
    assert g[0] == pytest.approx([-right[0], *right[1:]], rel=1e-14, abs=0)
    (g,) = slopes(lambda t: -tg.log_softmax(t, 1)[0, 0], x)
    assert g[0] == pytest.approx([-right[0], *right[1:]], rel=1e-14, abs=0)


def test_second_derivative_of_a_complex_modulus_at_an_extreme_ratio():
    parts = tg.tensor([1e8, 1.0], dtype=tg.float64, requires_grad=True)
    (g,) = tg.autograd.grad(tg.abs(tg.complex(parts[0], parts[1])), parts, create_graph=True)
    assert tg.autograd.grad(g[0], parts)[0].tolist() == pytest.approx([1e-24, -1e-16], rel=1e-12, abs=0)

"""float16 and bfloat16: computed in float32, rounded once; gradients in the input's dtype."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.nn import functional as F

ml_dtypes = pytest.importorskip("ml_dtypes")
HALF = [tg.float16, tg.bfloat16]
EPS = {tg.float16: 2.0**-10, tg.bfloat16: 2.0**-7}
half = pytest.mark.parametrize("dtype", HALF, ids=str)


def leaf(values, dtype):
    return tg.tensor(values, dtype=dtype, requires_grad=True)


@half
def test_a_python_number_does_not_widen(dtype):
    x = tg.tensor([1.0, 2.0], dtype=dtype)
    for y in (
        x + 2.5,
        2.5 - x,
        x * 3,
        1 / x,
        x**2,
        x**2.5,
        2**x,
        x % 1.5,
        x // 2,
        tg.where(x > 1, x, 0.0),
        tg.clamp(x, 0.5),
    ):
        assert y.dtype is dtype


@half
def test_a_sum_is_rounded_once(dtype):
    ones = tg.ones(5000, dtype=dtype)
    assert ones.sum().item() == tg.tensor(5000.0, dtype=dtype).item()
    assert ones.mean().item() == 1.0
    assert ones.cumsum(0)[-1].item() == tg.tensor(5000.0, dtype=dtype).item()
    row = tg.ones(1, 5000, dtype=dtype)
    assert (row @ row.T).item() == tg.tensor(5000.0, dtype=dtype).item()


def test_an_intermediate_value_may_leave_the_range_of_float16():
    x = leaf([300.0, 400.0], tg.float16)
    norm = x.norm()  # the sum of squares is 250000
    norm.backward()
    assert norm.item() == 500 and x.grad.tolist() == pytest.approx([0.6, 0.8], abs=1e-3)
    y = leaf([6e4, 6e4], tg.float16)
    y.mean().backward()
    assert y.mean().item() == tg.tensor(6e4, dtype=tg.float16).item() and y.grad.tolist() == [0.5, 0.5]


@half
@pytest.mark.parametrize(
    "f",
    [
        tg.exp,
        tg.sigmoid,
        tg.tanh,
        tg.erf,
        tg.log1p,
        lambda x: tg.softmax(x, 0),
        lambda x: tg.logsumexp(x, 0),
        tg.std,
        tg.prod,
    ],
)
def test_values_and_gradients_are_those_of_float32_rounded(f, dtype):
    values = [0.3, -0.7, 1.1, 0.45]
    x = leaf(values, dtype)
    wide = x.detach().float().requires_grad_()
    y, z = f(x), f(wide)
    assert y.dtype is dtype and (y == z.to(dtype)).all()
    y.sum().backward()
    z.sum().backward()
    assert x.grad.dtype is dtype
    assert (x.grad.float() - wide.grad).abs().max().item() <= 8 * EPS[dtype] * wide.grad.abs().max().item() + 2 * EPS[dtype]


@half
def test_second_order(dtype):
    x = leaf([0.5, 1.5], dtype)
    (g,) = tg.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), x)
    assert g.dtype is dtype and h.dtype is dtype and h.tolist() == [3.0, 9.0]


@half
def test_views_share_memory_and_history(dtype):
    x = tg.zeros(2, 3, dtype=dtype)
    x[0].view(3, 1).squeeze()[1] = 5
    assert x[0, 1].item() == 5
    w = leaf([1.0, 2.0], dtype)
    y = w * 1
    y[:1].mul_(3)
    y.sum().backward()
    assert w.grad.tolist() == [3.0, 1.0]


@half
def test_strong_zero(dtype):
    x = leaf([0.0, 4.0], dtype)
    tg.where(x > 0, x.sqrt(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


@half
def test_nodes_carry_the_names_of_the_operations(dtype):
    y = leaf([1.0], dtype) * 2
    assert y.grad_fn.name() == "MulBackward0"
    assert f"dtype={dtype}" in repr(y) and "grad_fn=<MulBackward0>" in repr(y)


def test_bfloat16_leaves_the_library_as_in_pytorch():
    x = tg.tensor([1.0, 2.5], dtype=tg.bfloat16)
    assert x.tolist() == [1.0, 2.5] and type(x[1].item()) is float
    assert repr(x) == "tensor([1.0000, 2.5000], dtype=torch.bfloat16)"
    for call in (x.numpy, lambda: np.asarray(x), x.detach().requires_grad_().detach().numpy):
        with pytest.raises(TypeError, match="^Got unsupported ScalarType BFloat16"):
            call()
    assert x.float().numpy().dtype == np.float32
    assert tg.tensor(np.array([1.5], ml_dtypes.bfloat16)).dtype is tg.bfloat16


def test_mixed_half_precisions_are_float32():
    a, b = leaf([1.0], tg.float16), leaf([2.0], tg.bfloat16)
    c = a * b
    c.sum().backward()
    assert c.dtype is tg.float32 and a.grad.dtype is tg.float16 and b.grad.dtype is tg.bfloat16


def test_nan_to_num_takes_the_extremes_of_the_dtype():
    for dtype in HALF:
        x = tg.tensor([math.inf, -math.inf, math.nan], dtype=dtype)
        assert tg.nan_to_num(x).tolist() == [tg.finfo(dtype).max, tg.finfo(dtype).min, 0.0]


def test_assigned_numbers_are_not_rounded_on_the_way():
    x = tg.zeros(1, dtype=tg.float64)
    for write in (
        lambda: x.fill_(0.1),
        lambda: x.__setitem__(0, 0.1) or x,
        lambda: x.masked_fill(tg.tensor([True]), 0.1),
        lambda: x.index_fill(0, tg.tensor([0]), 0.1),
        lambda: x.scatter(0, tg.tensor([0]), 0.1),
        lambda: tg.full_like(x, 0.1),
    ):
        assert write()[0].item() == 0.1


def test_the_law_sees_an_operation_that_sums_in_half_precision(mutant):
    op = mutant("sum_half", "linear", lambda x: np.add.reduce(x, axis=0), lambda xp, g, ans, x: xp.expand(g, x.shape))
    with pytest.raises(testing.LawError, match="value in"):
        testing.LAWS["dtypes"](op, (np.linspace(0.1, 1.7, 400),))


def test_the_law_sees_an_operation_that_widens(mutant):
    op = mutant("doubled", "linear", lambda x: x * np.float32(2), lambda xp, g, ans, x: g * 2.0)
    with pytest.raises(testing.LawError, match="float16|precision"):
        testing.LAWS["dtypes"](op, (np.linspace(0.1, 1.7, 4),))


@pytest.fixture
def mutant():
    """Makes records of one array that leave the table when the test ends."""
    from tapegrad.core.op import TABLE
    from tapegrad.table.define import define

    made = []

    def make(name, kind, forward, rule):
        define(name, kind, forward, (rule,), saves="x.shape", jax="host")
        made.append(name)
        return TABLE[name]

    yield make
    for name in made:
        del TABLE[name]


@half
@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.adaptive_avg_pool2d(x, 2),
        lambda x: F.interpolate(x, size=(3, 3), mode="bilinear"),
        lambda x: tg.trapezoid(x[0, 0]),
        lambda x: tg.addmm(x[0, 0], x[0, 0], x[0, 0], beta=-3, alpha=0.7),
        lambda x: tg.baddbmm(x[0], x[0], x[0]),
        lambda x: tg.addcmul(x, x, x, value=-0.3),
        lambda x: tg.add(x, x.detach(), alpha=-0.99),
        tg.sinc,
        F.mish,
    ],
)
def test_functions_of_several_steps_are_rounded_once(f, dtype):
    # windows and products that nearly cancel
    values = [
        [1.0, -1.0078125, 3.0, -3.015625],
        [1.015625, -1.0, -3.0, 3.015625],
        [0.3, 7.0, -0.3, 1.0],
        [1.0, -7.0, 0.3, 1.0],
    ]
    x = leaf([[values]], dtype)
    wide = x.detach().float().requires_grad_()
    y, z = f(x), f(wide)
    assert y.dtype is dtype and (y == z.to(dtype)).all()
    (g,), (h,) = tg.autograd.grad(y.sum(), x), tg.autograd.grad(z.sum(), wide)
    assert g.dtype is dtype and (g - h.to(dtype)).abs().max() <= 2 * EPS[dtype] * h.abs().max()

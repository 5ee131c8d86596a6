"""Tensors without elements: shapes, dtypes and gradients; checks of values that there are none of."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn import functional as F

NOTHING = tg.zeros(0, dtype=tg.int64)


@pytest.mark.parametrize(
    "divide",
    [
        lambda x: x // 0,
        lambda x: x % 0,
        lambda x: x.fmod(0),
        lambda x: x.div(0, rounding_mode="floor"),
        lambda x: x.div(0, rounding_mode="trunc"),
        lambda x: tg.remainder(5, x),
        lambda x: x // tg.tensor(0),
        lambda x: x.clone().floor_divide_(0),
    ],
)
def test_no_integer_is_divided_by_zero(divide):
    y = divide(NOTHING)
    assert y.shape == (0,) and y.dtype is tg.int64


def test_layers_without_width():
    rows = nn.Embedding(4, 0)
    y = rows(tg.tensor([1, 2]))
    y.sum().backward()
    assert y.shape == (2, 0) and rows.weight.grad.shape == (4, 0)
    table = nn.Embedding.from_pretrained(tg.arange(6).reshape(3, 2))
    assert table(tg.tensor([1])).tolist() == [[2, 3]] and table.weight.dtype is tg.int64
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        nn.Embedding.from_pretrained(tg.arange(6).reshape(3, 2), freeze=False)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("kind, sizes", [(nn.Conv1d, (7,)), (nn.Conv2d, (5, 6)), (nn.Conv3d, (5, 6, 7))])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_no_channels(kind, sizes, stride):
    layer = kind(0, 33, 3, stride=stride)
    x = tg.ones(2, 0, *sizes, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.shape == (2, 0, *[(n - 3) // stride + 1 for n in sizes])
    assert x.grad.shape == x.shape and layer.weight.grad.shape == layer.weight.shape
    assert layer.bias.grad.tolist() == [0] * 33


@pytest.mark.parametrize("mode, sums", [("sum", [11, 22]), ("mean", [5.5, 11]), ("max", [10, 20])])
def test_indices_behind_the_last_offset_are_in_no_bag(mode, sums):
    table = tg.tensor([[1.0, 2], [10, 20], [100, 200]], requires_grad=True)
    bags = F.embedding_bag(tg.arange(3), table, tg.tensor([0, 2]), mode=mode, include_last_offset=True)
    bags.sum().backward()
    assert bags.tolist() == [sums] and not table.grad[2].any()
    assert F.embedding_bag(tg.arange(3), table, tg.tensor([0]), include_last_offset=True).shape == (0, 2)
    assert F.embedding_bag(tg.arange(3), table, NOTHING).shape == (0, 2)


def test_random_numbers_that_require_grad():
    assert tg.randint(1, 10, (2,), dtype=tg.float32, requires_grad=True).requires_grad
    assert tg.randint_like(tg.ones(2), 5, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        tg.randint(1, 10, (2,), requires_grad=True)


def test_lbfgs_goes_on_at_a_gradient_of_zero():
    x = tg.ones(2, requires_grad=True)
    optimizer = tg.optim.LBFGS([x], tolerance_grad=-np.inf)

    def closure():
        optimizer.zero_grad()
        loss = (x * 0).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0 and x.tolist() == [1, 1]


def test_arguments_as_tensors_and_capsules():
    a, b = tg.ones(2, 3), tg.ones(3, 2)
    for dims in (tg.tensor(1), tg.tensor([[1], [0]])):
        assert tg.tensordot(a, b, dims).tolist() == [[3, 3], [3, 3]]
    assert tg.asarray(np.arange(3.0).__dlpack__()).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "reduction",
    [
        lambda x, d: x.sum(d),
        lambda x, d: x.var(d),
        lambda x, d: x.logsumexp(d),
        lambda x, d: x.max(d),
        lambda x, d: x.cumsum(d),
        lambda x, d: x.norm(dim=d),
        lambda x, d: tg.movedim(x, d, 0),
        lambda x, d: F.normalize(x, dim=d),
    ],
)
def test_a_number_has_no_second_dimension(reduction):
    reduction(tg.tensor(2.0), 0)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)"):
        reduction(tg.tensor(2.0), 1)


def test_writes_at_no_places_have_gradients():
    x, v = tg.ones(4, 3, requires_grad=True), tg.ones(0, 3, requires_grad=True)
    positions = tg.zeros(0, 3, dtype=tg.int64)
    for write in (tg.scatter, tg.scatter_add):
        gx, gv = tg.autograd.grad(write(x, 0, positions, v).sum(), (x, v))
        assert gx.tolist() == [[1, 1, 1]] * 4 and gv.shape == (0, 3)


def test_shapes_without_elements():
    assert tg.unique_consecutive(NOTHING, dim=0).shape == (0,)
    counts = tg.bincount(NOTHING, tg.zeros(0))
    assert counts.shape == (0,) and counts.dtype is tg.int64
    assert tg.trapezoid(tg.zeros(2, 0), tg.zeros(2, 3)).tolist() == [0, 0]
    assert F.pad(tg.zeros(1, 0, 3), (1, 2), "circular").shape == (1, 0, 6)
    with pytest.raises(RuntimeError, match=r"Expected 2D or 3D \(batch mode\) tensor"):
        F.pad(tg.zeros(0, 3), (1, 2), "reflect")
    loss = F.linear_cross_entropy(tg.zeros(3, 0), tg.zeros(4, 0), tg.tensor([0, 1, 2]))
    assert loss.item() == pytest.approx(np.log(4))


def test_arguments_that_do_not_fit_raise():
    with pytest.raises(RuntimeError, match="diff expects the shape of tensor to prepend or append to match"):
        tg.diff(tg.zeros(5, 0), n=0, dim=0, prepend=tg.zeros(1, 5))
    with pytest.raises(
        RuntimeError, match="should have the same shape as the input tensor excluding its innermost dimension"
    ):
        tg.histogramdd(tg.zeros(0, 2), [1, 1], weight=tg.zeros(5))
    lu, pivots = tg.linalg.lu_factor(tg.eye(3))
    with pytest.raises(RuntimeError, match="Number of pivots per batch should be same as the dimension of the matrix"):
        tg.linalg.lu_solve(lu, pivots[:0], tg.ones(3, 1))

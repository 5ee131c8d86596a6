"""Functions on private tensors of one float dtype take a short way: it agrees with the way that everything else takes."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels import accumulate, index, reduce
from tapegrad.kernels.numpy import all_below
from tapegrad.nn import functional as F

ROWS = np.array([[0.5, -1.5, 2.0, 0.25], [3.0, 0.5, -0.5, 1.0], [-2.0, 1.25, 0.75, -0.125]])
POSITIONS = np.array([[2, 0, 1, 1], [0, 0, 2, 1]])
MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])


def positions():
    return tg.tensor(POSITIONS)


CALLS = {
    "gather": lambda x: x.gather(0, positions()),
    "gather along the last": lambda x: x.gather(1, tg.tensor([[3, -1], [0, 0], [2, 1]])),
    "take_along_dim": lambda x: tg.take_along_dim(x, positions(), 0),
    "index_select": lambda x: x.index_select(1, tg.tensor([3, -4, 3])),
    "index_select of int32": lambda x: x.index_select(0, tg.tensor([2, 2], dtype=tg.int32)),
    "index by a tensor": lambda x: x[tg.tensor([2, -1, 0, 2])],
    "embedding": lambda x: F.embedding(positions(), x * 1),
    "embedding with padding": lambda x: F.embedding(positions(), x * 1, padding_idx=0),
    "take": lambda x: x.take(tg.tensor([11, -1, 0, 0])),
    "cat": lambda x: tg.cat([x, x * 2, x], 1),
    "cat of different sizes": lambda x: tg.cat([x, x[:1]], 0),
    "stack": lambda x: tg.stack([x, x * x], 1),
    "max": lambda x: x.max(1)[0],
    "min kept": lambda x: x.min(0, keepdim=True)[0],
    "sort": lambda x: x.sort(1, descending=True)[0],
    "topk": lambda x: x.topk(2, 1)[0],
    "smallest": lambda x: x.topk(3, 0, largest=False)[0],
    "where": lambda x: tg.where(tg.tensor(MASK), x * x, x),
    "where with a number": lambda x: tg.where(tg.tensor(MASK), x * x, 2.0),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, 3),
    "lerp": lambda x: tg.lerp(x, x * x, 0.25),
    "addcmul": lambda x: tg.addcmul(x, x, x, value=2),
    "clamp": lambda x: x.clamp(-1, 1.5) * x,
    "leaky_relu": lambda x: F.leaky_relu(x) * x,
    "relu": lambda x: F.relu(x) * x,
    "sum": lambda x: tg.sum(x * x, 1),
    "cumsum": lambda x: tg.cumsum(x * x, 1),
    "prod": lambda x: tg.prod(x, 1),
    "linear": lambda x: F.linear(x, x[:2], x[0, :2]),
    "mse_loss": lambda x: F.mse_loss(x, x * x),
    "attention": lambda x: F.scaled_dot_product_attention(x, x * 2, x),
    "reshape": lambda x: x.reshape(2, -1) * 2,
    "expand": lambda x: x[:1].expand(5, -1) * 2,
}


def tensors(dtype=np.float64):
    """A private tensor, and one of a block that a view shares, with the view."""
    private = tg.tensor(ROWS.astype(dtype), requires_grad=True)
    shared = tg.tensor(ROWS.astype(dtype), requires_grad=True)
    return private, shared, shared.view(-1)


@pytest.mark.parametrize("name", CALLS)
def test_private_and_shared_tensors_give_the_same(name):
    found = []
    private, shared, view = tensors()
    for x in (private, shared):
        y = CALLS[name](x)
        (g,) = tg.autograd.grad((y * y * y).sum(), x, create_graph=True)
        (h,) = tg.autograd.grad((g * g).sum(), x)
        found.append((y.detach().numpy(), g.detach().numpy(), h.numpy(), type(y.grad_fn).__name__, y.grad_fn.name()))
    assert view.shape == (12,)
    for a, b in zip(*found, strict=True):
        assert a == b if isinstance(a, str) else (a.dtype == b.dtype and np.allclose(a, b, rtol=1e-12, atol=1e-12))


@pytest.mark.parametrize("name", CALLS)
def test_hooks_of_what_is_saved_see_the_short_way(name):
    (x, other, _), packed = tensors(), []

    def pack(t):
        packed.append(t)
        return t

    with tg.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = (CALLS[name](x) ** 2).sum()
    y.backward()
    (CALLS[name](other) ** 2).sum().backward()
    assert packed and np.allclose(x.grad.numpy(), other.grad.numpy(), rtol=1e-12)


WRONG = {
    "gather above": lambda x: x.gather(0, tg.tensor([[3]])),
    "gather below": lambda x: x.gather(0, tg.tensor([[-4]])),
    "gather of another rank": lambda x: x.gather(0, tg.tensor([0])),
    "gather of a larger index": lambda x: x.gather(0, tg.tensor([[0, 0, 0, 0, 0]])),
    "gather by floats": lambda x: x.gather(0, tg.tensor([[0.0]])),
    "index_select": lambda x: x.index_select(0, tg.tensor([0, 5])),
    "embedding": lambda x: F.embedding(tg.tensor([-1]), x * 1),
    "embedding of floats": lambda x: F.embedding(tg.tensor([1.0]), x * 1),
    "cat of other sizes": lambda x: tg.cat([x, x[:, :2]], 0),
    "cat along no dimension": lambda x: tg.cat([x, x], 2),
    "cat of a number": lambda x: tg.cat([x, x.sum()]),
    "stack": lambda x: tg.stack([x, x[:1]]),
    "topk": lambda x: x.topk(7, 1),
    "max": lambda x: x.max(2),
    "compared": lambda x: x < tg.ones(2, 2),
    "added": lambda x: x + tg.ones(2, 2),
    "clamp": lambda x: x.clamp(),
    "where": lambda x: tg.where(tg.tensor(MASK), x, tg.ones(2, 2)),
    "attention": lambda x: F.scaled_dot_product_attention(x, x.double(), x.half()),
    "transpose": lambda x: x.transpose(0, 2),
    "reshape": lambda x: x.reshape(5, -1),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_the_same(name):
    texts = []
    for x in tensors(np.float32)[:2]:
        with pytest.raises(Exception) as caught:
            WRONG[name](x)
        texts.append((caught.type, str(caught.value)))
    assert texts[0] == texts[1]


def test_attention_names_the_dtypes_that_differ():
    x = tg.tensor(ROWS)
    with pytest.raises(RuntimeError, match=r"query\.dtype: double key\.dtype: float and value\.dtype: double instead"):
        F.scaled_dot_product_attention(x, x.float(), x)


def test_comparisons_with_numbers():
    x = tg.tensor([1.0, 2.0, 3.0])
    assert (x < 2).tolist() == [True, False, False] and (x >= 2.5).tolist() == [False, False, True]
    assert (x == 10**30).tolist() == [False] * 3 and (tg.tensor(2.5) > x).tolist() == [True, True, False]
    assert (x > True).tolist() == [False, True, True] and (x.to(tg.int8) < 2.5).tolist() == [True, True, False]
    assert (tg.tensor([0.1]) == 0.1).tolist() == [True]  # the number is rounded to float32
    assert (tg.tensor([2**53 + 1]) > 2**53).tolist() == [True]
    assert (x < float("inf")).dtype is tg.bool and not (x < 2).requires_grad


def test_arithmetic_of_integers():
    i = tg.tensor([1, -2, 3])
    assert (i + 1).tolist() == [2, -1, 4] and (i + 1).dtype is tg.int64 and (2 - i).tolist() == [1, 4, -1]
    assert (i * i).tolist() == [1, 4, 9] and (i + 0.5).dtype is tg.float32 and (i / 2).tolist() == [0.5, -1.0, 1.5]
    small = tg.tensor([100], dtype=tg.int8)
    assert (small + 100).tolist() == [-56] and (small + small).dtype is tg.int8
    assert (i + tg.tensor([True, False, True])).dtype is tg.int64 and (i == tg.tensor([1.0, 2.0, 3.0])).tolist() == [1, 0, 1]
    with pytest.raises(RuntimeError, match="[Ss]ubtraction"):
        tg.tensor([True]) - tg.tensor([False])


def test_truth_of_bytes_is_bytes():
    x = tg.tensor([[0, 2], [0, 0]], dtype=tg.uint8)
    assert x.any().dtype is tg.uint8 and x.any(1).tolist() == [1, 0] and x.all(1).dtype is tg.uint8
    assert (x > 1).any().dtype is tg.bool and x.any(dim=1, keepdim=True).shape == (2, 1)


def test_equal_elements_stay_in_order():
    x = tg.tensor([[1.0, 3.0, 3.0, 0.0, 3.0]])
    assert x.topk(4, 1)[1].tolist() == [[1, 2, 4, 0]] and x.topk(3, 1, largest=False)[1].tolist() == [[3, 0, 1]]
    nan = tg.tensor([1.0, float("nan"), 3.0])
    assert nan.topk(2)[1].tolist() == [1, 2] and nan.sort(descending=True)[1].tolist() == [1, 2, 0]


def test_wrappers_hand_on_keywords_and_out():
    x = tg.tensor(ROWS)
    out = tg.empty(3, dtype=tg.float64)
    assert tg.prod(x, 1, out=out) is out and np.allclose(out.numpy(), ROWS.prod(1))
    assert tg.prod(x, axis=1).tolist() == out.tolist() == tg.prod(x, dim=1).tolist()
    assert tg.amax(x, 1, keepdims=True).shape == (3, 1) and tg.cumsum(x.float(), 1, dtype=tg.float64).dtype is tg.float64
    with tg.autocast("cpu", dtype=tg.float16):
        assert tg.prod(x.half(), 1).dtype is tg.float32


@pytest.mark.parametrize("bad", [-1, 4])
def test_one_pass_finds_what_is_out_of_range(bad):
    for dtype in (np.int64, np.int32, np.int8):
        assert all_below(np.array([[0, 3], [1, 2]], dtype), 4) and not all_below(np.array([0, bad, 1], dtype), 4)
    assert all_below(np.zeros(0, np.int64), 0)


def test_rows_added_by_a_product_are_those_added_one_by_one():
    i, rows = np.array([2, 0, 2, 2, 1]), np.arange(5 * 16.0, dtype=np.float32).reshape(5, 16)
    expected = np.zeros((4, 16), np.float32)
    np.add.at(expected, i, rows)
    assert (accumulate.product_at_rows(4, i, rows) == expected).all()
    rows[0, 3], expected[2, 3] = np.inf, np.inf  # an infinity stays in its row
    assert accumulate.product_at_rows(4, i, rows) is None
    assert (accumulate.add_at_rows(4, i, rows) == expected).all()
    out = np.ones((4, 16), np.float32)
    index.add_into(out, rows, (i - 4 * (i > 1),))
    assert (out == expected + 1).all()


@pytest.mark.parametrize("rows", [3, 8, 40])
def test_a_mask_without_dimensions_is_no_row(rows):
    x = tg.ones(rows, 16, requires_grad=True)
    for mask in (True, False):
        (g,) = tg.autograd.grad(x[tg.tensor(mask)].sum(), x)
        assert (g == float(mask)).all()


def test_places_that_are_kept_cannot_be_written():
    at = np.array([[1, 0, 2]])
    starts = reduce.starts_along(at.shape, (3, 3), 0)
    assert starts is reduce.starts_along((1, 3), (3, 3), 0) and not starts.flags.writeable
    assert reduce.positions_along(at, (3, 3), 0).tolist() == [[3, 1, 8]]
    for n in range(2, 200):
        reduce.starts_along((1, n), (2, n), 0)
    assert len(reduce.KEPT) <= reduce.MOST_KEPT

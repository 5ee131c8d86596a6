"""In which order the elements of results lie in memory; the expectations are PyTorch's."""

import pytest

import tapegrad as tg
from tapegrad.nn import functional as F


def test_random_numbers_fill_a_transposed_tensor_in_the_order_of_its_memory():
    tg.manual_seed(1)
    x = tg.zeros(3, 4).t().uniform_()
    tg.manual_seed(1)
    assert (x == tg.rand(3, 4).t()).all()
    tg.manual_seed(1)
    assert (tg.rand_like(tg.zeros(3, 4).t()) == x).all()
    tg.manual_seed(1)
    assert [round(v, 4) for v in x[0].tolist()] == [0.7576, 0.0293, 0.5695]
    tg.manual_seed(1)
    assert F.dropout(tg.ones(5, 4).t())[0].tolist() == [2, 0, 0, 0, 0]


def test_results_are_contiguous():
    x = tg.arange(9.0).reshape(3, 3)
    assert x[:, [0, 1]].view(-1).tolist() == [0, 1, 3, 4, 6, 7]
    assert tg.stack([x, x], -1).view(-1).shape == (18,) and x.index_select(1, tg.tensor([0, 1])).view(-1).shape == (6,)


@pytest.mark.parametrize("f", [
    lambda x: x.sum(0), lambda x: x.mean(0, keepdim=True), lambda x: x.prod(0), lambda x: x.std(0), lambda x: x.amax(0),
    lambda x: x.amin(0), lambda x: (x > 0).any(0), lambda x: x.logsumexp(0), lambda x: x.norm(dim=0), lambda x: x.cumsum(1),
    lambda x: x.cumprod(1), lambda x: x.cummax(1)[0], lambda x: x.logcumsumexp(1), lambda x: x.softmax(1),
    lambda x: x.log_softmax(0), lambda x: x.roll(1, 0), lambda x: x.repeat(1, 2, 1), lambda x: tg.cat([x, x], 1),
    lambda x: x.scatter(0, tg.zeros(1, 1, 1, dtype=tg.int64), 1.0), lambda x: x.index_add(0, tg.tensor([0]), x[:1]),
    lambda x: (x > 0).nonzero().T, lambda x: x[:1, :1].expand(3, 2, 4).clone(), lambda x: x[:1].expand(3, 3, 4).double(),
    lambda x: tg.zeros_like(x[:1].expand(3, 3, 4)), lambda x: tg.einsum("abc,bd->dac", x, tg.ones(3, 5)),
    lambda x: tg.einsum("abc->ca", x), lambda x: x.expand(2, 2, 3, 4).transpose(0, 1) @ tg.ones(2, 2, 4, 5),
])  # fmt: skip
def test_results_lie_in_order_where_pytorchs_do(f):
    """`view` may follow, whatever the order of the argument in memory was."""
    x = tg.rand(4, 3, 2).permute(2, 1, 0)
    y = f(x)
    assert y.is_contiguous() and y.view(-1).shape == (y.numel(),)
    assert tg.allclose(y, f(x.contiguous()))

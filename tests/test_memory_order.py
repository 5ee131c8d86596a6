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


X = tg.arange(96.0).reshape(2, 3, 4, 4)
KEPT = {
    "conv2d": lambda x: F.conv2d(x, tg.ones(4, 3, 3, 3)),
    "conv2d with a bias": lambda x: F.conv2d(x, tg.ones(4, 3, 3, 3), tg.ones(4), padding=1),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, tg.ones(3, 4, 3, 3)),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "places of max_pool2d": lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "lp_pool2d": lambda x: F.lp_pool2d(x, 2, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "places of adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True)[1],
    "max_unpool2d": lambda x: F.max_unpool2d(x[:, :, :2, :2], tg.tensor([[0, 2], [8, 10]]).expand(2, 3, 2, 2), 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 3),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2),
    "bilinear interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "interpolate by areas": lambda x: F.interpolate(x, size=(1, 3), mode="area"),
    "pad": lambda x: F.pad(x, (1, 1)),
    "replicating pad": lambda x: F.pad(x, (1, 1, 0, 0), mode="replicate"),
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout2d": lambda x: F.dropout2d(x, 0.5),
    "relu": F.relu,
    "clone": lambda x: x.clone(),
    "double": lambda x: x.double(),
}


@pytest.mark.parametrize("function", KEPT.values(), ids=KEPT)
def test_layers_keep_channels_last(function):
    x = X.to(memory_format=tg.channels_last)
    tg.manual_seed(0)
    kept = function(x)
    tg.manual_seed(0)
    plain = function(X)
    assert kept.is_contiguous(memory_format=tg.channels_last) and not kept.is_contiguous()
    assert plain.is_contiguous() and (function in (KEPT["dropout"],) or tg.allclose(kept, plain))


def test_layers_keep_channels_last_of_memory_with_gaps():
    x = tg.arange(192.0).reshape(2, 6, 4, 4).to(memory_format=tg.channels_last)[:, ::2]
    y, positions = F.max_pool2d(x, 2, return_indices=True)
    assert not x.is_contiguous(memory_format=tg.channels_last)
    assert y.stride() == positions.stride() == (12, 1, 6, 3) and y[0, :, 0, 0].tolist() == [5, 37, 69]
    assert F.max_pool2d(tg.ones(2, 3, 4, 8)[:, :, :, ::2], 2).is_contiguous()
    assert F.adaptive_max_pool3d(tg.ones(2, 3, 4, 4, 4).to(memory_format=tg.channels_last_3d), 2).is_contiguous()


def test_channels_last_is_asked_for():
    last = tg.channels_last
    x = X.to(memory_format=last)
    assert x.stride() == X.contiguous(memory_format=last).stride() == X.clone(memory_format=last).stride() == (48, 1, 12, 3)
    assert tg.equal(x, X) and x.contiguous(memory_format=last) is x and x.contiguous().stride() == (48, 16, 4, 1)
    assert (
        x.to(memory_format=tg.contiguous_format).is_contiguous() and X.to(tg.float64, memory_format=last).dtype is tg.float64
    )
    made = tg.empty(2, 3, 4, 4, memory_format=last, requires_grad=True)
    assert made.is_leaf and made.requires_grad and made.is_contiguous(memory_format=last)
    volume = tg.ones(2, 3, 2, 2, 2).to(memory_format=tg.channels_last_3d)
    assert F.max_pool3d(volume, 2, 1).is_contiguous(memory_format=tg.channels_last_3d)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        tg.ones(2).to(memory_format=last)


def test_a_module_in_channels_last():
    module = tg.nn.Sequential(tg.nn.Conv2d(3, 4, 3), tg.nn.BatchNorm2d(4)).to(memory_format=tg.channels_last)
    assert module[0].weight.stride() == (27, 1, 9, 3) and module[0].weight.is_leaf
    assert module(X).is_contiguous(memory_format=tg.channels_last)


def test_gradients_in_channels_last():
    x = X.clone().requires_grad_()
    y = F.conv2d(x.to(memory_format=tg.channels_last), tg.ones(1, 3, 3, 3))
    assert y.grad_fn.name() == "ConvolutionBackward0"
    y.sum().backward()
    plain = X.clone().requires_grad_()
    F.conv2d(plain, tg.ones(1, 3, 3, 3)).sum().backward()
    assert tg.equal(x.grad, plain.grad)

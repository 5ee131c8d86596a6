"""Public functions outside nn.functional, the older tensor types, and methods that query a tensor."""

import inspect
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.nn import functional as F

rng = np.random.default_rng(5)
X, W = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 4))


def leaf(a):
    return tg.tensor(a, dtype=tg.float64, requires_grad=True)


def gradient_of(function, a):
    x = leaf(a)
    y = function(x)
    (g,) = tg.autograd.grad((y * tg.tensor(rng_like(y))).sum(), x)
    return g.numpy()


def rng_like(y):
    return np.random.default_rng(6).standard_normal(y.shape)


SAME = {
    "batch_norm": (
        lambda x: tg.batch_norm(x, tg.ones(3).double(), None, None, None, True, 0.1, 1e-5, False),
        lambda x: F.batch_norm(x, None, None, tg.ones(3).double(), None, True),
    ),
    "instance_norm": (
        lambda x: tg.instance_norm(x, tg.ones(3).double() * 2, None, None, None, True, 0.1, 1e-5, False),
        lambda x: F.instance_norm(x, weight=tg.ones(3).double() * 2),
    ),
    "adaptive_max_pool1d": (lambda x: tg.adaptive_max_pool1d(x, 2)[0], lambda x: F.adaptive_max_pool1d(x, 2)),
    "dropout": (lambda x: tg.dropout(x, 0.4, True), lambda x: F.dropout(x, 0.4)),
    "feature_dropout": (lambda x: tg.feature_dropout(x, 0.4, True), lambda x: F.dropout1d(x, 0.4)),
    "alpha_dropout": (lambda x: tg.alpha_dropout(x, 0.4, True), lambda x: F.alpha_dropout(x, 0.4, True)),
    "native_dropout": (lambda x: tg.native_dropout(x, 0.4, True)[0], lambda x: F.dropout(x, 0.4)),
    "dropout_": (lambda x: tg.dropout_(x.clone(), 0.4, True), lambda x: F.dropout(x, 0.4)),
    "kl_div": (
        lambda x: tg.kl_div(x, x.detach().abs(), 1),
        lambda x: F.kl_div(x, x.detach().abs(), reduction="none").mean(),
    ),
    "hinge_embedding_loss": (
        lambda x: tg.hinge_embedding_loss(x, x.detach().sign(), 0.5, 2),
        lambda x: F.hinge_embedding_loss(x, x.detach().sign(), 0.5, reduction="sum"),
    ),
    "embedding": (
        lambda x: tg.embedding(x[0], tg.tensor([2, 0, 2]), 0),
        lambda x: F.embedding(tg.tensor([2, 0, 2]), x[0], 0),
    ),
    "convolution": (
        lambda x: tg.convolution(x, x[:, :, :2].detach(), None, [2], [1], [1], False, [0], 1),
        lambda x: F.conv1d(x, x[:, :, :2].detach(), None, 2, 1),
    ),
    "clamp_": (lambda x: tg.clamp_(x * 1, -0.5, 0.5), lambda x: x.clamp(-0.5, 0.5)),
    "slice_copy": (lambda x: tg.slice_copy(x, 1, 0, 3, 2), lambda x: x[:, 0:3:2]),
    "resize": (lambda x: x.resize(4, 6), lambda x: x.reshape(4, 6)),
    "nuclear_norm": (lambda x: tg.nuclear_norm(x, (1, 2)), lambda x: tg.linalg.matrix_norm(x, "nuc")),
}


@pytest.mark.parametrize("name", SAME)
def test_same_as(name):
    results = []
    for function in SAME[name]:
        tg.manual_seed(3)
        value = function(tg.tensor(X)).numpy()
        tg.manual_seed(3)
        results.append((value, gradient_of(function, X)))
    np.testing.assert_array_equal(*[value for value, _ in results])
    np.testing.assert_array_equal(*[g for _, g in results])


DIFFERENTIATED = {
    "norm_except_dim": lambda x: tg.norm_except_dim(x, 2, 1),
    "frobenius_norm": lambda x: tg.frobenius_norm(x, (0, 2)),
    "conv_tbc": lambda x: tg.conv_tbc(x, x[:, 0, :, None] * x[:1, 0, None, :2], x[0, 0, :2], 1),
    "affine_grid_generator": lambda x: tg.affine_grid_generator(x[:, :2, :3], (2, 1, 2, 3), True),
    "view_as_complex_copy": lambda x: tg.view_as_complex_copy(x.reshape(3, 4, 2)).abs(),
    "silu of complex numbers": lambda x: tg.view_as_real(F.silu(tg.complex(x[0], x[1]))),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_differentiated(name):
    testing.check_grads(DIFFERENTIATED[name], [X], order=2)


def test_losses_take_a_number_for_the_reduction():
    x, y = tg.tensor(W), tg.tensor(np.sign(W))
    for number, word in enumerate(("none", "mean", "sum")):
        ours = tg.binary_cross_entropy_with_logits(x, y.abs(), None, None, number)
        assert ours.tolist() == F.binary_cross_entropy_with_logits(x, y.abs(), reduction=word).tolist()
    assert tg.hinge_embedding_loss(x, y).shape == (3, 4)
    assert list(inspect.signature(tg.triplet_margin_loss).parameters)[-2:] == ["swap", "reduction"]


def test_functions_in_place_are_the_methods():
    x = tg.tensor([1.0, 4.0])
    assert tg.sqrt_(x) is x and x.tolist() == [1.0, 2.0]
    assert tg.arctan_ is tg.Tensor.arctan_ is tg.Tensor.atan_
    assert not hasattr(tg, "add_") and not hasattr(tg, "absolute_")
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        tg.exp_(leaf([1.0]))


def test_elements_by_a_python_function():
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    row = x[1]
    assert x.apply_(lambda v: 2 * v) is x and row.tolist() == [6.0, 8.0]
    assert x.map_(tg.tensor([1.0, 0.0]), lambda a, b: a * b).tolist() == [[2.0, 0.0], [6.0, 0.0]]
    assert row.map2_(row, tg.ones(2), lambda a, b, c: a + b + c).tolist() == [13.0, 1.0]
    h = leaf([2.0, 3.0])
    y = h * 1
    (y * y).sum()
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\)"):
        y.apply_(abs)
    s = h.detach().clone()
    product = h * s
    s.apply_(lambda v: 0.0)  # what was saved stays
    assert tg.autograd.grad(product.sum(), h)[0].tolist() == [2.0, 3.0]


def test_tensor_types():
    x = tg.DoubleTensor([1, 2])
    assert x.dtype is tg.float64 and isinstance(x, tg.DoubleTensor) and not isinstance(x, tg.FloatTensor)
    assert not isinstance(1.0, tg.FloatTensor)
    assert tg.LongTensor(2, 3).shape == (2, 3) and x.type(tg.IntTensor).dtype is tg.int32
    assert x.type("torch.HalfTensor").dtype is tg.float16 and tg.tensor([1]).new([1.5]).tolist() == [1]
    try:
        tg.set_default_tensor_type("torch.DoubleTensor")
        assert tg.ones(1).dtype is tg.float64
    finally:
        tg.set_default_tensor_type(tg.FloatTensor)
    assert tg.ones(1).dtype is tg.float32
    with pytest.raises(ValueError, match="invalid type"):
        x.type("torch.Foo")
    assert x.type(tg.Tensor).dtype is x.type("torch.Tensor").dtype is tg.float32  # the default dtype
    with pytest.raises(TypeError, match="invalid type object"):
        tg.set_default_tensor_type(tg.Tensor)


def test_tensor_of_a_sequence_of_sizes_or_of_a_tensor():
    assert tg.Tensor((2, 3)).tolist() == [2.0, 3.0] and tg.Tensor(()).shape == (0,)
    assert tg.Tensor(((1, 2), (3, 4))).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert tg.LongTensor((2, 3)).tolist() == [2, 3] and tg.ones(1).new((2.5, 3)).tolist() == [2.5, 3.0]
    assert tg.Tensor((tg.tensor(1.0), 2)).tolist() == [1.0, 2.0]
    for args in ((2, 3), (np.int64(2), 3), (tg.tensor(2), 3), (tg.Size([2, 3]),)):
        assert tg.Tensor(*args).shape == tg.ones(1).new(*args).shape == (2, 3)
    assert tg.Tensor(np.int64(2)).shape == (2,) and tg.Tensor(size=(2, 3)).shape == (2, 3)
    wrong = ((True, "bool"), (2.5, "float"), (np.float64(2.5), "numpy.float64"), (None, "NoneType"), ({}, "dict"))
    for value, kind in wrong:
        with pytest.raises(TypeError, match=rf"new\(\): data must be a sequence \(got {kind}\)"):
            tg.Tensor(value)
    with pytest.raises(TypeError, match="invalid combination"):
        tg.Tensor(1, 2.5)


def test_tensor_of_a_tensor_shares_its_memory():
    x, k = tg.ones(2), tg.tensor([1, 2])
    for alias in (tg.Tensor(x), tg.FloatTensor(x), x.new(x)):
        assert alias is not x
        alias += 1
    assert x.tolist() == [4.0, 4.0] and tg.Tensor(k).dtype is tg.int64
    y = tg.ones(2, requires_grad=True)
    (tg.Tensor(y) * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    for make in (tg.FloatTensor, x.new):
        with pytest.raises(TypeError, match="expected a tensor of torch.float32"):
            make(k)


def test_subclass_of_tensor_prints_its_name():
    class Points(tg.Tensor):
        pass

    x = tg.ones(2, 2)
    p = Points(x)
    p[0, 0] = 5
    assert x[0, 0] == 5 and type(p) is Points
    assert repr(p) == "Points([[5., 1.],\n        [1., 1.]])"


def test_what_a_tensor_is():
    x = tg.ones(2, 3)
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x.t()) and not x.is_set_to(x[:1]) and not x.is_set_to(x.clone())
    assert x.t().dim_order() == (1, 0) and x.get_device() == -1 and x.to_dense() is x
    assert not (x.is_cuda or x.is_meta or x.is_sparse or x.is_quantized or x.is_nested or x.is_mps)
    assert tg.result_type(x, 1j) is tg.complex64 and not tg.can_cast(tg.float32, tg.int64)
    assert tg.get_default_device() == tg.device("cpu") and (tg.pi, tg.newaxis) == (math.pi, None)
    with pytest.raises(RuntimeError, match="no cuda device"):
        tg.set_default_device("cuda")


def test_out_of_scope():
    with pytest.raises(NotImplementedError, match="compressed sparse tensors are out of"):
        tg.ones(2).to_sparse_csr()
    with pytest.raises(AttributeError, match="sparse and quantised tensors are out of"):
        tg.sparse_csr_tensor
    with pytest.raises(RuntimeError, match="linalg.solve"):
        tg.solve(tg.ones(1), tg.ones(1, 1))


def test_geqrf():
    for a in (rng.standard_normal((4, 3)), rng.standard_normal((2, 3, 3)) + 1j, rng.standard_normal((2, 4))):
        packed, tau = tg.geqrf(tg.tensor(a))
        k = min(a.shape[-2:])
        q = tg.linalg.householder_product(packed[..., :k], tau)
        np.testing.assert_allclose((q @ packed.triu()[..., :k, :]).numpy(), a, atol=1e-12)
    with pytest.raises(NotImplementedError, match="use linalg.qr"):
        tg.geqrf(leaf(W))


def test_histogramdd():
    x, weight = tg.tensor(W[:, :2]), tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64)
    hist, edges = tg.histogramdd(x, [2, 3], weight=weight)
    assert hist.shape == (2, 3) and hist.sum() == 6 and [len(e) for e in edges] == [3, 4]
    density = tg.histogramdd(x, 2, range=[-3.0, 3.0, -3.0, 3.0], density=True).hist
    assert density.sum().item() * 9 == pytest.approx(1)
    with pytest.raises(RuntimeError, match="one entry a dimension"):
        tg.histogramdd(x, [2])


def test_integers_add_up_in_int64():
    i = tg.tensor([[1, 2], [3, 4]], dtype=tg.int32)
    assert i.sum_to_size(2, 1).dtype is tg.int64 and i.sum_to_size(2, 2).dtype is tg.int32
    assert tg.einsum("ij->", i).dtype is tg.int64 and tg.einsum("ij,jk->ik", i, i).dtype is tg.int32
    assert tg.einsum("ij,k->i", i, i[0]).tolist() == [9, 21]


def test_integers_take_the_whole_part_of_beta():
    i = tg.tensor([[1, 2], [3, 4]])
    assert tg.addmv(i[0], i, i[0], beta=2.6, alpha=1.9).tolist() == [7, 15]
    with pytest.raises(RuntimeError, match="without overflow"):
        tg.addmv(i[0], i, i[0], beta=math.nan)
    with pytest.raises(RuntimeError, match="argument beta must not be a floating point number"):
        tg.addr(i, i[0], i[0], beta=0.5)
    a, b = tg.tensor([[False, True]]), tg.tensor([True])
    assert tg.addr(a, b, tg.tensor([True, False]), beta=2).tolist() == [[True, True]]


@pytest.mark.parametrize("function", [tg.softmax, tg.log_softmax])
def test_softmax_refuses_integers(function):
    with pytest.raises(NotImplementedError, match="softmax_kernel_impl\" not implemented for 'Int'"):
        function(tg.ones(2, 2, dtype=tg.int32), 0)
    with pytest.raises(NotImplementedError, match="softmax_lastdim_kernel_impl\" not implemented for 'Bool'"):
        function(tg.tensor([True]), 0)
    assert function(tg.ones(0, 2, dtype=tg.int64), 0).dtype is tg.int64
    assert function(tg.tensor([1, 2]), 0, dtype=tg.float64).dtype is tg.float64


def test_the_grid_of_nearest_samples_has_gradient_0():
    grid = leaf(rng.uniform(-2, 2, (1, 2, 2, 2)))
    y = F.grid_sample(tg.tensor(X[None, :1]), grid, "nearest", align_corners=True)
    (g,) = tg.autograd.grad(y.sum(), grid)
    assert g.shape == grid.shape and not g.any()
    broken = grid.detach().clone()
    broken[0, 0, 0, 0] = math.nan
    y = F.grid_sample(tg.tensor(X[None, :1]), broken.requires_grad_(), "nearest", align_corners=True)
    assert not tg.autograd.grad(y.sum(), broken)[0].any()

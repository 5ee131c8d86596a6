"""Faults that testers found in earlier versions, each with the right value; where PyTorch has one, it is PyTorch's."""

import copy
import math
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import leaves
from tapegrad.nn import functional as F

nan, inf = math.nan, math.inf


def leaf(values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def test_a_scalar_bool_index_adds_a_dimension():
    x = tg.arange(3.0)
    x[x.sum() > 0] = 9
    assert x.tolist() == [9, 9, 9]
    x = tg.arange(6.0).reshape(2, 3)
    assert x[True].shape == (1, 2, 3) and x[None, False].shape == (1, 0, 2, 3)
    x = tg.arange(3.0, requires_grad=True)
    y = x[x.sum() > 0]
    y.sum().backward()
    assert y.tolist() == [[0, 1, 2]] and x.grad.tolist() == [1, 1, 1]
    z = tg.tensor(2.0)
    assert z[z > 0].tolist() == [2] and z[z < 0].tolist() == []
    z[z > 0] = 5
    assert z.item() == 5


def test_scalars_take_part_in_indexing_operations():
    x = tg.tensor(2.0)
    assert tg.masked_select(x, x > 0).tolist() == [2]
    assert tg.nonzero(x).shape == (1, 0) and [i.tolist() for i in tg.nonzero(x, as_tuple=True)] == [[0]]
    assert tg.gather(x, 0, tg.tensor(0)).item() == 2 and x.movedim(0, 0).item() == 2 and tg.norm(x, dim=0).item() == 2


def test_division_by_zero():
    for zero in (0, 0.0, np.float64(0)):
        x = leaf([1.0, -2.0])
        y = x / zero
        y.backward(tg.ones_like(y))
        assert y.tolist() == [inf, -inf] and x.grad.tolist() == [inf, inf]
    for divide in (
        lambda x: x // 0,
        lambda x: x % 0,
        lambda x: x.fmod(0),
        lambda x: x.div(0, rounding_mode="floor"),
        lambda x: x // tg.tensor([1, 0]),
    ):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide(tg.tensor([5, 6]))


def test_numbers_that_a_dtype_cannot_hold_are_refused():
    with pytest.raises(TypeError):
        tg.tensor(1j, dtype=tg.float32)
    for value, dtype in ((300, tg.uint8), (-256, tg.uint8), (nan, tg.int64), (1e30, tg.int32)):
        with pytest.raises(RuntimeError, match="without overflow"):
            tg.tensor(value, dtype=dtype)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 4, 2)])
def test_empty_tensors_are_written_in_place(shape):
    x = tg.zeros(*shape)
    x.add_(1).mul_(2).copy_(tg.ones(*shape))
    x[:] = 1
    x += 1
    assert x.shape == shape


def test_copies():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    c = copy.copy(y)
    c.sum().backward()
    assert x.grad.tolist() == [2, 2]
    a = tg.ones(4)
    copy.copy(a)[0] = 5
    assert a.tolist() == [5, 1, 1, 1]
    assert pickle.loads(pickle.dumps(x * 2)).requires_grad
    assert copy.copy(x).is_leaf and copy.copy(x).requires_grad


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


def test_norms():
    x = leaf([0.0, 1.0, 2.0])
    x.norm(0.5).backward()
    assert x.grad.tolist() == pytest.approx([0, 1 + math.sqrt(2), 1 + math.sqrt(0.5)])
    assert tg.zeros(0, 3).norm(3).item() == 0 and tg.zeros(0, 3).norm(3, dim=0).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        tg.ones(2).norm("nuc")


def test_dtypes_of_results():
    assert tg.where(tg.tensor([True]), 1.0, 2.0).dtype == tg.float32
    assert tg.where(tg.tensor([True, False]), tg.tensor([3, 2]), np.float64(2.5)).tolist() == [3, 2.5]
    assert tg.tensor([100, 27], dtype=tg.int8).sum(dtype=tg.int8).dtype == tg.int8


def test_half_precision_normalisations_do_not_overflow():
    x = (tg.arange(300.0) * 8).half()
    assert x.std().item() == 694 and tg.std_mean(x)[0].item() == 694  # their variance would overflow
    assert F.layer_norm(x[None], (300,)).float().std().item() == pytest.approx(1, abs=0.01)
    assert F.batch_norm(x[:, None], None, None, training=True).float().std().item() == pytest.approx(1, abs=0.01)


def test_what_is_not_repeated_by_expand_may_be_written():
    x = tg.ones(2, 3)
    x.expand(1, 2, 3).add_(1)
    a, _ = tg.broadcast_tensors(x, x)
    a += 1
    assert (x == 3).all()


def test_results_are_contiguous():
    x = tg.arange(9.0).reshape(3, 3)
    assert x[:, [0, 1]].view(-1).tolist() == [0, 1, 3, 4, 6, 7]
    assert tg.stack([x, x], -1).view(-1).shape == (18,) and x.index_select(1, tg.tensor([0, 1])).view(-1).shape == (6,)


def test_triangles_are_of_matrices():
    for triangle in (tg.tril, tg.triu):
        with pytest.raises(RuntimeError, match="at least 2 dimensions"):
            triangle(tg.ones(3))


def test_a_list_is_no_tensor():
    for call in (
        lambda: tg.sin([1.0]),
        lambda: tg.mul(tg.ones(2), [1, 2]),
        lambda: tg.nn.Linear(1, 1)([[1.0]]),
        lambda: tg.exp(None),
    ):
        with pytest.raises(TypeError, match="must be Tensor, not"):
            call()
    assert (tg.ones(2) == None) is False  # noqa: E711


@pytest.mark.parametrize(
    "data, dtype",
    [
        ([np.float64(1)], "float64"), ([1.0, np.float64(1)], "float64"), ([np.float16(1), 1], "float16"),
        ([np.int32(1)], "int32"), ([1, np.int32(1)], "int64"), ([np.ones(2), np.zeros(2)], "float64"),
        ([np.ones(2, np.int32), [1, 2]], "int64"), ([[np.float64(1)], [2.0]], "float64"), ([np.bool_(True)], "bool"),
        ([np.complex128(1)], "complex128"), ([1, 2.5], "float32"), ([True, np.float32(2)], "float32"),
    ],
)  # fmt: skip
def test_arrays_in_a_list_keep_their_dtype(data, dtype):
    assert str(tg.tensor(data).dtype) == f"torch.{dtype}"


def test_a_numpy_number_fills_as_a_python_number():
    assert tg.full((2,), np.float64(1)).dtype is tg.float32


@pytest.mark.parametrize("f", [tg.sign, tg.sgn, tg.floor, tg.ceil, tg.round, tg.trunc, np.sign, np.round, np.floor, np.fix])
def test_steps_are_recorded_and_have_derivative_0(f):
    x = tg.tensor([0.5, -1.25], requires_grad=True)
    (g,) = tg.autograd.grad(f(x), x, tg.tensor([np.inf, 1.0]), create_graph=True)
    assert g.tolist() == [0.0, 0.0]


def test_only_inputs():
    x = tg.ones(1, requires_grad=True)
    assert tg.autograd.grad(x * 2, x, only_inputs=True)[0].item() == 2
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        assert tg.autograd.grad(x * 2, x, only_inputs=False)[0].item() == 2


def test_there_is_no_gpu():
    assert not tg.cuda.is_available() and tg.cuda.device_count() == 0


def test_arrays_without_elements_along_the_last_dimension_are_sorted():
    x = leaf(np.zeros((3, 0)))
    for values, index in (x.sort(-1), x.cummax(-1), x.cummin(-1), x.topk(0, -1)):
        assert values.shape == index.shape == (3, 0)
        assert tg.autograd.grad(values.sum(), x)[0].shape == (3, 0)


@pytest.mark.parametrize("p, expected", [(3, inf), (1.5, inf), (0.5, inf), (-1, 0.0)])
def test_norms_of_infinite_elements(p, expected):
    assert tg.linalg.vector_norm(tg.tensor([inf, 0.0, 1.0]), p).item() == expected
    assert tg.linalg.vector_norm(tg.tensor([-inf, -inf]), p).item() == inf


def test_norms_of_subnormal_elements():
    x = leaf([1e-310, 1e-310])
    y = tg.linalg.vector_norm(x, 3.0)
    y.backward()
    assert y.item() == pytest.approx(2 ** (1 / 3) * 1e-310) and x.grad.tolist() == pytest.approx([2 ** (-2 / 3)] * 2)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
@pytest.mark.parametrize("ord", [2, 1, inf, "nuc", "fro"])
def test_norms_of_matrices_without_elements_are_0(shape, ord):
    x = leaf(np.zeros(shape))
    norm = tg.linalg.matrix_norm(x, ord)
    assert norm.shape == shape[:-2] and not norm.any()
    assert tg.autograd.grad(norm.sum(), x)[0].shape == shape


def test_as_strided_counts_in_elements_of_the_tensor_that_it_is_given():
    z = leaf([1.0, 2.0, 3.0, 4.0]) * (1 + 10j)
    part = z.imag[1:]
    assert part.storage_offset() == 3 and part.as_strided((2, 2), (1, 2)).tolist() == [[20, 30], [3, 4]]
    x = leaf([1.0, 2.0, 3.0, 4.0])
    z = x * (1 + 10j)
    z.imag[1:].as_strided((2,), (4,)).mul_(3)
    assert z.tolist() == [1 + 10j, 2 + 60j, 3 + 30j, 4 + 120j]
    z.imag.sum().backward()
    assert x.grad.tolist() == [10, 30, 10, 30]
    x = leaf([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    pairs = tg.view_as_complex(x.reshape(3, 2) * 1.0)
    with pytest.raises(RuntimeError, match="setStorage"):
        pairs.as_strided((2,), (2,), 2)


@pytest.mark.parametrize(
    "turn",
    [
        lambda t: t.unsqueeze_(0), lambda t: t.t_(), lambda t: t.transpose_(0, 1), lambda t: t.squeeze_(),
        lambda t: t.swapaxes_(0, 1), lambda t: t.as_strided_((2, 3), (3, 1)),
    ],
)  # fmt: skip
def test_a_shape_changed_in_place_under_no_grad_keeps_its_history(turn):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = x * 3
    part = y[:]
    for t in (y, part):
        with tg.no_grad():
            turn(t)
        assert t.requires_grad
        assert tg.autograd.grad((t * t).sum(), x, retain_graph=True)[0].tolist() == (18 * x).tolist()


def test_shapes_that_do_not_broadcast():
    a, b = tg.zeros(4, 3), tg.zeros(2)
    for f in (tg.broadcast_tensors, F.cosine_similarity):
        with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match .* b \(2\)"):
            f(a, b)


def test_numbers_of_several_elements():
    for number in (int, float, complex):
        with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
            number(tg.zeros(3))
        assert number(tg.ones(1, 1)) == 1


@pytest.mark.parametrize("f", [tg.fft.fft, tg.fft.ifft, tg.fft.rfft, tg.fft.irfft, tg.fft.hfft, tg.fft.ihfft])
def test_a_transform_of_minus_one_values(f):
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(-1\)"):
        f(tg.ones(3), -1)
    assert tg.fft.fftn(tg.ones(3, 2), s=(-1, 2)).shape == (3, 2)


def test_binary_cross_entropy_refuses_nan():
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(tg.tensor([nan, 0.5]), tg.zeros(2))


def test_class_weights_are_one_for_each_class():
    x, y = leaf([[0.0, 1.0], [2.0, 0.0]]), tg.tensor([1, 0])
    for loss, target in ((F.cross_entropy, y), (F.nll_loss, y), (F.cross_entropy, x.detach())):
        for weight in (tg.ones(3), tg.ones(2, 1)):
            with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 2 classes or no classes"):
                loss(x, target, weight)


def test_a_single_label_may_have_a_dimension():
    x = leaf([0.0, 1.0, 2.0])
    assert F.nll_loss(x, tg.tensor([1])).item() == -1
    assert F.cross_entropy(x, tg.tensor([1])).item() == F.cross_entropy(x, tg.tensor(1)).item()
    with pytest.raises(ValueError, match="1D target must have size 1, but got target size: 2"):
        F.nll_loss(x, tg.tensor([1, 2]))


def test_ctc_loss_without_frames():
    logs = leaf(np.log(np.full((3, 2, 4), 0.25)))
    loss = F.ctc_loss(logs, tg.tensor([[1, 2], [1, 2]]), (0, 0), (0, 2), reduction="none")
    assert loss.tolist() == [0, inf]
    loss[0].backward()
    assert not logs.grad.any()


def test_special_functions_of_numbers_near_the_ends_of_the_range():
    tiny = leaf([-1e-310, -1e-170])
    assert tg.lgamma(tiny).tolist() == pytest.approx([713.8013788281542, 391.4394658089878])
    assert tg.digamma(tiny).tolist() == pytest.approx([inf, 1e170])
    assert tg.special.ndtri(leaf([-1e-310, -1e-17, -0.0])).tolist() == pytest.approx([nan, nan, -inf], nan_ok=True)
    big = leaf([1e300, -1e300, 2001.0])
    assert tg.special.i1(big).tolist() == [inf, -inf, inf]
    assert tg.autograd.grad(tg.i0(big).sum(), big)[0].tolist() == [inf, -inf, inf]


@pytest.mark.parametrize(
    "shape, source",
    [((3, 4), (7,)), ((3, 4), (4, 3)), ((3, 4), (2, 3)), ((2,), (0,)), ((4,), (1, 4)), ((1,), (3,)), ((), (2,))],
)
def test_copy_of_a_shape_that_does_not_fit(shape, source):
    for values in (tg.arange(float(np.prod(source))).reshape(source), tg.ones(source)):
        t = tg.full(shape, 5.0)
        with pytest.raises(RuntimeError, match=r"must match the size|doesn't match the broadcast shape"):
            t.copy_(values)
        assert (t == 5).all()


def test_masks_and_indices_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match .* b \(2\)"):
        tg.masked_scatter(tg.ones(3), tg.ones(2, dtype=tg.bool), tg.ones(3))
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match .* b \(2\)"):
        tg.take_along_dim(tg.ones(3, 1), tg.zeros(2, 1, dtype=tg.int64), 1)


def test_requires_grad_is_a_bool():
    x = tg.ones(2)
    with pytest.raises(TypeError, match="must be bool, not str"):
        x.requires_grad_("x")
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = "x"
    assert not x.requires_grad


def test_a_nan_stays_visible_in_the_gradient():
    x = tg.tensor([math.nan, 1.0, -1.0], requires_grad=True)
    z = tg.tensor([1.0, math.nan, 3.0], requires_grad=True)
    assert tg.autograd.grad(tg.relu(x).sum(), x)[0].tolist() == [1, 1, 0]
    for f, expected in ((tg.maximum, [[1, 1, 0], [1, 1, 1]]), (tg.minimum, [[1, 1, 1], [1, 1, 0]])):
        assert [g.tolist() for g in tg.autograd.grad(f(x, z).sum(), (x, z))] == expected


def test_log_loss_of_certain_predictions_has_a_bounded_gradient():
    x = tg.tensor([1.0, 0.0, 0.0, 1.0], dtype=tg.float64, requires_grad=True)
    y = tg.tensor([0.0, 0.0, 1.0, 1.0], dtype=tg.float64)
    (g,) = tg.autograd.grad(F.binary_cross_entropy(x, y, reduction="sum"), x)
    assert g.tolist() == [1e12, 1, -1e12, -1]


def test_gradient_of_peaked_attention_in_half_precision():
    rng = np.random.default_rng(0)
    arrays = [(rng.standard_normal((1, 4, 6)) * scale).astype(np.float16) for scale in (5, 5, 1)]
    grads = []
    for dtype in (tg.float16, tg.float64):
        q, k, v = (tg.tensor(a, dtype=dtype, requires_grad=True) for a in arrays)
        y = F.scaled_dot_product_attention(q, k, v)
        grads.append(np.concatenate([g.double().numpy() for g in tg.autograd.grad((y * y).sum(), (q, k, v))]))
    assert np.abs(grads[0] - grads[1]).max() < 2e-3 * np.abs(grads[1]).max()


@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_of_no_images(stride):
    x = tg.zeros(0, 2, 5, 6, requires_grad=True)
    w = tg.ones(4, 2, 3, 2, requires_grad=True)
    gs = tg.autograd.grad(F.conv2d(x, w, stride=stride).sum(), (x, w))
    assert gs[0].shape == x.shape and not gs[1].any()


def test_hooks_on_the_arguments_of_a_transformed_function():
    """Ten times the cosine, as in PyTorch, whatever transform is around the gradient."""
    x = np.array([0.1, 0.2])

    def hooked(z):
        z.register_hook(lambda g: g * 10)
        return z.sin().sum()

    grad, want = tg.func.grad(hooked), 10 * np.cos(x)
    np.testing.assert_allclose(grad(x), want)
    np.testing.assert_allclose(tg.func.vjp(hooked, x)[1](1.0)[0], want)
    np.testing.assert_allclose(tg.func.jacrev(hooked)(x), want)
    np.testing.assert_allclose(tg.func.vmap(grad)(x[None])[0], want)
    np.testing.assert_allclose(tg.func.jvp(grad, (x,), (x,))[1], -10 * np.sin(x) * x)
    assert math.isclose(tg.func.grad(hooked)(0.1), 10 * math.cos(0.1))
    assert not leaves.WATCHED_LEAVES


def test_taylor_coefficients_of_numbers_beside_arrays():
    """The second derivative of sin x_0 in each of three sums is - sin x_0; it was counted once."""
    x = np.array([0.1, 0.2, 0.3])

    def f(z):
        return z * 0.5 + z[0].sin()

    want = -math.sin(0.1)
    np.testing.assert_allclose(tg.func.nth_derivative(f, 2)(x), np.full(3, want))
    np.testing.assert_allclose(tg.func.nth_derivative(lambda z: f(z).sum(), 2)(x), 3 * want)
    series = tg.func.jet(lambda z: z[0].sin() - z, (x,), ((np.ones(3), np.zeros(3)),))[1]
    np.testing.assert_allclose(series[1], np.full(3, want))


def test_an_element_of_a_tensor_without_dimensions():
    """The gradient of x[None] beside that of another use of x: one of them was lost."""
    for f in (lambda x: x[None] * x, lambda x: x * x[None][0], lambda x: (x * 1)[...] * x, lambda x: x[None, None] * x):
        x = leaf(0.7)
        f(x).sum().backward()
        assert x.grad.item() == 1.4
        assert tg.func.grad(lambda x, f=f: f(x).sum())(0.7) == 1.4
    x = leaf([0.7, 0.8])
    y = x[0]
    (y[None] * y).sum().backward()
    assert x.grad.tolist() == [1.4, 0.0]


def test_a_linear_map_at_a_tensor_gives_tensors():
    """Of a number too, for which nothing is recorded where the function is linear."""
    f = lambda x: tg.func.linearize(lambda z: 1 - z, x)[1](1.0)  # noqa: E731
    assert tg.func.grad(f)(0.7) == 0.0 and isinstance(f(tg.tensor(0.7)), tg.Tensor) and f(0.7) == -1.0


def test_long_chains_of_views_inside_a_transform():
    """Of 3 z (z + 1), written through a view of a view of a view ..; the recursion limit was met."""

    def f(z):
        y = z.clone()
        v = y
        for _ in range(1100):
            v = v[:]
        v += 1
        v *= z
        return y * 2 + v

    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(tg.func.jvp(f, (x,), (x,))[1], (6 * x + 3) * x)


def test_taylor_mode_through_the_gradient_of_eigenvectors_of_a_tracked_point():
    """Twice by forward mode and by Taylor mode; an operand without derivative went in as a whole series."""
    apart = tg.diag(tg.tensor([0.0, 5.0, 11.0], dtype=tg.float64))
    gradient = tg.func.grad(lambda z: tg.linalg.eigh(tg.outer(z, z) + apart)[1].abs().sum())
    x, one = leaf([0.3, -0.2, 0.9]), tg.ones(3, dtype=tg.float64)

    def slope(f):
        return lambda z: tg.func.jvp(f, (z,), (one,))[1]

    want = slope(slope(gradient))(x).tolist()
    np.testing.assert_allclose(tg.func.nth_derivative(gradient, 2)(x).tolist(), want)


def test_a_layer_on_single_samples_inside_vmap():
    """Its record takes rows: a sample of one dimension is made a row before, not after, it is recorded."""
    rng = np.random.default_rng(0)
    w, b, p = (tg.tensor(rng.normal(size=s)) for s in ((3, 2), (3,), (4, 2)))

    def inner(w, p):
        return tg.func.grad(lambda q: tg.nn.functional.linear(q, w, b).tanh().sum())(p).sum()

    wanted = tg.stack([tg.func.grad(inner)(w, p[i]) for i in range(4)])
    got = tg.func.vmap(tg.func.grad(inner), in_dims=(None, 0))(w, p)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)
    v = w.clone().requires_grad_()
    tg.func.vmap(lambda p: inner(v, p))(p).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), wanted.sum(0).numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "copied", [lambda x: tg.tensor([x, x]), tg.tensor, lambda x: tg.full((2,), x), lambda x: tg.linspace(0, x, 3)]
)
def test_a_copy_of_values_inside_a_transform_warns(copied):
    with pytest.warns(UserWarning, match="carries no gradient"):
        assert tg.func.grad(lambda x: copied(x).sum() + x)(1.0) == 1.0
    with pytest.warns(UserWarning, match="carries no gradient"):
        tg.func.jvp(lambda x: copied(x).sum() + x, (1.0,), (1.0,))


def test_a_copy_keeps_its_class_and_shares_memory():
    p = tg.nn.Parameter(tg.ones(2))
    c = copy.copy(p)
    assert type(c) is tg.nn.Parameter and c is not p and c.requires_grad and c.is_leaf
    with tg.no_grad():
        c.mul_(3)
    assert p.tolist() == [3.0, 3.0]
    (c * 2).sum().backward()
    assert c.grad.tolist() == [2.0, 2.0] and p.grad is None


def test_evenly_spaced_values_are_pytorchs_bit_for_bit():
    def hexed(t):
        return [float.hex(v).replace("0000000p", "p") for v in t.tolist()]

    assert hexed(tg.linspace(0, 1, 4)) == ["0x0.0p+0", "0x1.555556p-2", "0x1.555554p-1", "0x1.000000p+0"]
    third = tg.linspace(-1, 1, 7, dtype=tg.float64)[3:5]
    assert [float.hex(v) for v in third.tolist()] == ["0x1.0000000000000p-54", "0x1.5555555555556p-2"]
    assert hexed(tg.arange(0, 1.7, 0.1))[12:15] == ["0x1.333334p+0", "0x1.4cccccp+0", "0x1.666666p+0"]
    assert tg.logspace(0.1, 4.9, 9, dtype=tg.int64).tolist() == [1, 3, 10, 31, 100, 316, 1000, 3162, 10000]
    assert tg.arange(5.5, dtype=tg.int64).tolist() == [0, 1, 2, 3, 4]


def test_values_leave_for_numpy_where_nothing_is_recorded():
    x = tg.ones(2, requires_grad=True)
    y = x * 2
    with tg.no_grad():
        x.numpy()[0] = 5
        assert type(y.numpy()) is np.ndarray and np.asarray(y).tolist() == [2.0, 2.0] and np.array(x).tolist() == [5.0, 1.0]
    with tg.inference_mode():
        assert x.numpy().tolist() == [5.0, 1.0]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        y.numpy()
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), tg.from_numpy):
        z = (x**2).sum()
    z.backward()
    assert x.grad.tolist() == [10.0, 2.0]


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


def test_a_module_on_the_device_meta_keeps_no_values():
    model = tg.nn.Sequential(tg.nn.Linear(3, 2), tg.nn.BatchNorm1d(2)).eval()
    base, state, x = copy.deepcopy(model).to("meta"), dict(model.state_dict()), tg.ones(1, 3)
    assert base[0].weight.shape == (2, 3) and base[0].weight.isnan().all() and base[0].weight.requires_grad
    assert base[1].num_batches_tracked.dtype is tg.int64
    assert tg.equal(tg.func.functional_call(base, state, (x,)), model(x))
    base.to_empty(device="cpu").load_state_dict(state)
    assert tg.equal(base(x), model(x))
    base = copy.deepcopy(model).to(device="meta")
    base.load_state_dict(state, assign=True)
    assert tg.equal(base(x), model(x))


def test_batch_norm_without_running_statistics():
    model = tg.nn.Sequential(tg.nn.BatchNorm1d(3), tg.nn.InstanceNorm1d(3, track_running_stats=True))
    assert tg.func.replace_all_batch_norm_modules_(model) is model
    assert model[0].running_mean is None and not model[0].track_running_stats
    assert model[1].running_mean is not None and model[1].track_running_stats


def test_blank_lines_of_a_nested_extra_repr_are_empty():
    class Described(tg.nn.Module):
        def extra_repr(self):
            return "a\n\n  b\n"

    assert repr(Described()) == "Described(\n  a\n  \n    b\n  \n)"
    assert repr(tg.nn.Sequential(Described())) == "Sequential(\n  (0): Described(\n    a\n\n      b\n\n  )\n)"

"""A derivative that is constant can be differentiated again, and gives 0, wherever PyTorch's can."""

import pytest

import tapegrad as tg
from tapegrad import nn

F = nn.functional
grad = tg.autograd.grad


def leaf(*values):
    return tg.tensor(list(values), dtype=tg.float64, requires_grad=True)


def image():
    return tg.arange(16.0, dtype=tg.float64).reshape(1, 1, 4, 4).requires_grad_()


LEFT_OF_ZERO = {
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "prelu": lambda x: F.prelu(x, tg.tensor(0.25, dtype=tg.float64)),
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "abs": tg.abs,
    "first power": lambda x: x**1,
    "fmod": lambda x: tg.fmod(3.0, x),
    "remainder": lambda x: 3.0 % x,
    "margin loss": lambda x: F.multi_margin_loss(x, tg.tensor(1)),
    "nll_loss": lambda x: F.nll_loss(x, tg.tensor(1)),
}


@pytest.mark.parametrize("name", LEFT_OF_ZERO)
def test_functions_with_steps_for_derivatives(name):
    x = leaf(-1.5, -0.25, 0.75)
    (g,) = grad(LEFT_OF_ZERO[name](x).sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = grad(g.sum(), x)
    assert h.tolist() == [0.0, 0.0, 0.0]


IMAGES = {
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 3),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 3),
    "fractional_max_pool": lambda x: F.fractional_max_pool2d(x, 2, 2),
    "area": lambda x: F.interpolate(x, size=3, mode="area"),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_pooling_and_padding(name):
    x = image()
    (g,) = grad(IMAGES[name](x).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert h.shape == x.shape and not h.any()


LINEAR = [lambda x: 2 * x, tg.sum, lambda x: x @ tg.ones(2, dtype=tg.float64), lambda x: x.clamp(-1, 1)]


@pytest.mark.parametrize("f", LINEAR)
def test_gradients_of_linear_functions_and_of_choices_do_not_depend_on_x(f):
    x = leaf(0.5, 3.0)
    (g,) = grad(f(x).sum(), x, create_graph=True)
    assert not g.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(g.sum(), x)


def test_every_order_of_a_power_down_to_its_zeroth():
    x = leaf(3.0)
    y, found = x**3, []
    for _ in range(4):
        (y,) = grad(y.sum(), x, create_graph=True)
        found.append((y.item(), y.requires_grad))
    assert found == [(27.0, True), (18.0, True), (6.0, True), (0.0, False)]
    (g,) = grad(tg.square(x), x, create_graph=True)
    (h,) = grad(g, x, create_graph=True)
    assert (h.item(), h.requires_grad, grad(h, x)[0].item()) == (2.0, True, 0.0)


def relu_net():
    """relu(x @ [[1, -1], [2, 1]] + [0.5, 0]) @ [1, 3] + 1."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).to(tg.float64)
    with tg.no_grad():
        net[0].weight.copy_(tg.tensor([[1.0, -1.0], [2.0, 1.0]]))
        net[0].bias.copy_(tg.tensor([0.5, 0.0]))
        net[2].weight.copy_(tg.tensor([[1.0, 3.0]]))
        net[2].bias.copy_(tg.tensor([1.0]))
    return net


def test_a_relu_net_to_the_third_order():
    net, x = relu_net(), leaf(1.0, 1.0)
    (g,) = grad(net(x).sum(), x, create_graph=True)
    assert g.tolist() == [7.0, 2.0]
    (h,) = grad(g[0], x, create_graph=True)
    assert h.tolist() == [0.0, 0.0] and h.requires_grad
    (k,) = grad(h.sum(), x)
    assert k.tolist() == [0.0, 0.0]


def test_a_gradient_penalty_gives_every_parameter_its_gradient():
    net, x = relu_net(), leaf(1.0, 1.0)
    (g,) = grad(net(x).sum(), x, create_graph=True)
    g.sum().backward()
    assert net[0].weight.grad.tolist() == [[1.0, 1.0], [3.0, 3.0]]
    assert net[2].weight.grad.tolist() == [[0.0, 3.0]]
    assert net[0].bias.grad.tolist() == [0.0, 0.0]  # reached with derivative 0
    assert x.grad.tolist() == [0.0, 0.0]
    assert net[2].bias.grad is None  # not reached


def test_hooks_and_retained_gradients_see_the_zeros():
    net, x = relu_net(), leaf(1.0, 1.0)
    before = net[0](x)
    after = before.relu()
    seen = []
    before.register_hook(lambda g: seen.append(g.tolist()))
    after.retain_grad()
    (g,) = grad(net[2](after).sum(), x, create_graph=True)
    after.grad = None
    g.sum().backward()
    assert seen == [[1.0, 3.0], [0.0, 0.0]]
    assert after.grad.tolist() == [0.0, 0.0] and net[0].bias.grad.tolist() == [0.0, 0.0]


def test_inputs_that_are_not_leaves():
    x = leaf(-1.0, 2.0)
    y = x * 3
    (g,) = grad(y.relu().sum(), x, create_graph=True)
    assert grad(g.sum(), y, retain_graph=True)[0].tolist() == [0.0, 0.0]
    g.sum().backward(inputs=[x])
    assert x.grad.tolist() == [0.0, 0.0]


def test_backward_with_create_graph():
    x = leaf(-1.0, 2.0)
    x.relu().sum().backward(create_graph=True)
    assert x.grad.requires_grad
    assert grad(x.grad.sum(), x)[0].tolist() == [0.0, 0.0]
    x.grad = None


def test_inside_transforms():
    x = tg.tensor([-1.0, 2.0], dtype=tg.float64)

    def twice(x):
        (g,) = grad(x.relu().sum(), x, create_graph=True)
        return grad(g.sum(), x, create_graph=True)[0]

    def of_row(row):
        return twice(row.requires_grad_())

    assert tg.func.vjp(twice, x)[1](tg.ones(2, dtype=tg.float64))[0].tolist() == [0.0, 0.0]
    assert tg.func.vmap(of_row)(tg.stack([x, 2 * x])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert tg.func.jvp(of_row, (x.clone(),), (x,))[1].tolist() == [0.0, 0.0]
    assert not tg.func.hessian(lambda x: x.relu().sum())(x).any()


@pytest.mark.parametrize("f, reads", [(tg.exp, True), (tg.neg, False), (lambda x: x.cumsum(2), False)])
def test_zeros_depend_on_what_the_rules_behind_them_read(f, reads):
    x, w, b = image(), tg.ones(1, 1, 2, 2, dtype=tg.float64, requires_grad=True), leaf(0.0)
    (g,) = grad(F.conv2d(f(x), w, b).sum(), b, create_graph=True)
    (zeros,) = grad(g.sum(), x, create_graph=True)
    assert not zeros.any() and zeros.requires_grad == reads


def test_batches_of_cotangents():
    x = leaf(-1.0, 2.0)
    rows = tg.eye(2, dtype=tg.float64)
    (jacobian,) = grad(x.relu(), x, rows, is_grads_batched=True, create_graph=True)
    assert jacobian.tolist() == [[0.0, 0.0], [0.0, 1.0]] and jacobian.requires_grad
    assert grad(jacobian.sum(), x)[0].tolist() == [0.0, 0.0]


def test_saved_tensor_hooks_and_checkpoints():
    x = leaf(-1.0, 2.0)
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.relu()
    for out in (y, tg.utils.checkpoint.checkpoint(F.relu, x, use_reentrant=False)):
        (g,) = grad(out.sum(), x, create_graph=True)
        assert g.tolist() == [0.0, 1.0]
        assert grad(g.sum(), x)[0].tolist() == [0.0, 0.0]


def test_materialized_gradients():
    x, z = leaf(3.0), leaf(1.0)
    g = grad(x**2, (x, z), create_graph=True, materialize_grads=True)[1]
    assert g.tolist() == [0.0] and g.requires_grad
    assert grad(g, z, materialize_grads=True)[0].tolist() == [0.0]
    assert not grad(x**2, (x, z), materialize_grads=True)[1].requires_grad


OUTPUTS = {
    "div floor": lambda x: tg.div(x, 2, rounding_mode="floor"),
    "div trunc": lambda x: tg.div(x, 2, rounding_mode="trunc"),
    "angle": tg.angle,
    "bernoulli": lambda x: tg.bernoulli(x / 10),
    "poisson": tg.poisson,
    "matrix_power": lambda x: tg.linalg.matrix_power(x, 0),
    "householder_product": lambda x: tg.linalg.householder_product(x, tg.zeros(0, dtype=tg.float64)),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_results_that_depend_by_steps(name):
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tg.float64, requires_grad=True)
    y = OUTPUTS[name](x)
    assert y.requires_grad
    (g,) = grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [[0.0, 0.0], [0.0, 0.0]] and not g.requires_grad


def test_residuals_of_least_squares_require_grad():
    a, b = tg.eye(2, dtype=tg.float64, requires_grad=True), tg.ones(2, 1, dtype=tg.float64)
    assert tg.linalg.lstsq(a, b).residuals.requires_grad


@pytest.mark.parametrize("f", [tg.zeros_like, tg.rand_like, lambda x: tg.histc(x, 2)])
def test_results_that_do_not_require_grad(f):
    assert not f(leaf(1.0, 2.0)).requires_grad


def test_first_order_passes_record_nothing_and_keep_nothing():
    x = leaf(-1.0, 2.0)
    tape = tg.tape()
    tape.clear()
    x.relu().sum().backward()
    assert tape.special == 0
    (g,) = grad(x.relu().sum(), x, create_graph=True)
    assert tape.special > 0
    del g
    tape.sweep()
    assert len(tape) == 0

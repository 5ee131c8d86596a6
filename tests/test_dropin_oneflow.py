"""The oneflow drop-in: printed form, names of nodes, error texts, names that only OneFlow has, and its removal."""

import copy
import importlib
import sys

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import compat, dialect
from tapegrad.compat.finder import FINDER


@pytest.fixture
def flow():
    with compat.installed("oneflow", replace=True):
        yield importlib.import_module("oneflow")


def test_printed_form(flow):
    x = flow.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], dtype=oneflow.float32, requires_grad=True)"
    assert repr(x * x) == "tensor([1., 1.], dtype=oneflow.float32, grad_fn=<broadcast_mul_backward>)"
    assert repr(flow.tensor([1, 2])) == "tensor([1, 2], dtype=oneflow.int64)"
    assert repr(flow.tensor([True])) == "tensor([True], dtype=oneflow.bool)"
    assert (repr(x.shape), x.type(), repr(flow.float64)) == ("oneflow.Size([2])", "oneflow.FloatTensor", "oneflow.float64")
    assert repr((x * 2).grad_fn).startswith("<scalar_mul_backward at 0x")
    assert repr(type(x)) == "<class 'oneflow.Tensor'>"
    assert repr(type(flow.nn.Linear(1, 1))) == "<class 'oneflow.nn.modules.linear.Linear'>"
    assert (str(x.device), repr(x.device)) == ("cpu:0", "device(type='cpu', index=0)")
    p = flow.nn.Parameter(flow.ones(1))
    assert repr(p) == "tensor([1.], dtype=oneflow.float32, requires_grad=True)"
    (p * 2).backward()
    assert repr(p) == "tensor([1.], dtype=oneflow.float32, grad_fn=<accumulate_grad>)"
    assert repr(flow.ones(2, 2).max(1)).startswith("oneflow.return_types.max(")


# Each as OneFlow 0.9 builds the function: read in its source, oneflow/core/functional/impl.
NODES = {
    "x + 1": "scalar_add", "1 + x": "scalar_add", "x + x": "add_n", "x + x[0]": "broadcast_add", "x + u": "add_n",
    "x - 1": "scalar_add", "1 - x": "scalar_add", "x - u": "broadcast_sub", "x * 2": "scalar_mul", "2 * x": "scalar_mul",
    "x * u": "broadcast_mul", "x / 2": "scalar_div", "2 / x": "scalar_mul", "x / u": "broadcast_div", "x ** 2": "scalar_pow",
    "x ** x": "broadcast_pow", "flow.pow(x, 2)": "scalar_pow", "flow.square(x)": "square", "x.sum()": "reduce_sum",
    "x.mean()": "scalar_mul", "x.prod()": "reduce_prod", "x.max()": "reduce_max", "x.std()": "sqrt", "-x": "negative",
    "x @ x": "matmul", "x @ x[0]": "matrix_vector_product", "x[None] @ x[None]": "batch_matmul", "x.T": "view::transpose",
    "x.view(4)": "view::reshape", "x.reshape(4)": "view::reshape", "x[0]": "view::as_strided", "x[:1]": "view::slice",
    "x[[0, 1]]": "gather_nd", "x.unsqueeze(0)": "view::unsqueeze", "x.clamp(0, 1)": "clip_by_scalar", "x.relu()": "relu",
    "x.sin()": "sin", "x.softmax(-1)": "softmax", "flow.cat([x, x])": "concat", "flow.stack([x, x])": "stack",
    "x.double()": "cast", "flow.nn.Linear(2, 1)(x)": "broadcast_add", "flow.nn.MSELoss()(x, u)": "scalar_mul",
    "flow.nn.CrossEntropyLoss()(x, flow.tensor([0, 1]))": "broadcast_div", "(x[0, 0] + 1)": "scalar_add",
    "flow.nn.Conv2d(1, 1, 1)(x[None, None])": "bias_add", "flow.nn.Conv2d(1, 1, 1, bias=False)(x[None, None])": "conv2d",
    "flow.nn.functional.max_pool2d(x[None], 2)": "max_pool_2d", "flow.nn.LayerNorm(2)(x)": "layer_norm",
    "flow.nn.BatchNorm1d(2)(x)": "normalization", "flow.nn.functional.elu(x)": "elu",
    "x[0] @ x[0]": "dot",
    "flow.minimum(x, u)": "elementwise_minimum", "flow.nn.functional.logsigmoid(x)": "log_sigmoid",
}  # fmt: skip


@pytest.mark.parametrize("code", NODES)
def test_names_of_nodes(flow, code):
    x, u = flow.ones(2, 2, requires_grad=True), flow.ones(2, 2)
    y = eval(code, {"flow": flow, "x": x, "u": u})
    assert y.grad_fn.name() == f"{NODES[code]}_backward"


def test_a_released_node_keeps_its_name(flow):
    y = (flow.ones(2, requires_grad=True).exp() * 2).sum() * 3
    y.backward()
    assert y.grad_fn.name() == "scalar_mul_backward"


def test_error_texts(flow):
    x = flow.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    text = (
        r"Maybe you try to backward through the node a second time\. Specify retain_graph=True when calling \.backward\(\) "
        r"or autograd\.grad\(\) the first time\. Node broadcast_mul_backward has been released"
    )
    with pytest.raises(flow._oneflow_internal.exception.Exception, match=text):
        y.backward()
    with pytest.raises(RuntimeError, match="Grad can be implicitly created only for scalar outputs. This output has shape"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"out_grad's shape must be same as output's \(\(3,\) vs \(2,\)\)"):
        (x * 2).backward(flow.ones(2))


def test_numpy_of_a_tensor_that_requires_grad(flow):
    x = flow.ones(2, requires_grad=True)
    assert (x * 2).numpy().tolist() == np.asarray(x * 2).tolist() == [2.0, 2.0]


def test_gradients_are_set_to_zeros(flow):
    layer = flow.nn.Linear(2, 1)
    optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
    layer(flow.ones(1, 2)).sum().backward()
    optimizer.zero_grad()
    assert layer.bias.grad.tolist() == [0.0]
    layer.zero_grad(set_to_none=True)
    assert layer.bias.grad is None


def test_names_that_oneflow_alone_has(flow):
    x = flow.tensor([[1.0, -2.0]])
    assert flow.cast(x, flow.int32).dtype is flow.int32
    assert flow.repeat(x, (2, 1)).shape == (2, 2) and flow.gelu(x).shape == (1, 2)
    assert flow.convert_oneflow_dtype_to_numpy_dtype(flow.float64) is np.float64
    assert (flow.env.get_rank(), flow.env.get_world_size(), flow.cuda.is_available()) == (0, 1, False)
    assert (x.is_global, x.is_local, x.is_lazy) == (False, True, False)
    assert x.cast(flow.float64).dtype is flow.float64 and x.silu().shape == x.shape
    functional = importlib.import_module("oneflow.nn.functional")
    np.testing.assert_allclose(functional.quick_gelu(x), x * flow.sigmoid(1.702 * x))
    each = functional.sparse_softmax_cross_entropy(flow.tensor([1]), x)
    np.testing.assert_allclose(each, [np.log1p(np.exp(3.0))], rtol=1e-6)
    optimizer = flow.optim.SGD([flow.zeros(1, requires_grad=True)], lr=2.0)
    schedule = flow.optim.lr_scheduler.CosineDecayLR(optimizer, decay_steps=4, alpha=0.5)
    rates = []
    for _ in range(6):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    expected = [2 * (0.25 * (1 + np.cos(np.pi * min(n / 4, 1))) + 0.5) for n in range(6)]
    np.testing.assert_allclose(rates, expected)


def test_a_graph_runs_eagerly(flow):
    layer = flow.nn.Linear(1, 1, bias=False)
    layer.weight.data.fill_(1.0)

    class Train(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.layer = layer
            self.add_optimizer(flow.optim.SGD(layer.parameters(), lr=0.5))
            self.config.allow_fuse_model_update_ops(True)

        def build(self, x):
            loss = (self.layer(x) ** 2).sum()
            loss.backward()
            return loss, {"x": x}

    step = Train()
    loss, more = step(flow.ones(1, 1))
    assert (loss.item(), loss.requires_grad, more["x"].item(), layer.weight.item()) == (1.0, False, 1.0, 0.0)
    state = copy.deepcopy(step.state_dict())
    layer.weight.data.fill_(5.0)
    step.load_state_dict(state)
    assert layer.weight.item() == 0.0 and list(state) == ["layer", "stepping"]
    assert step.training and step.name == "Train"
    with pytest.raises(NotImplementedError, match="enable_amp: a graph runs eagerly"):
        step.config.enable_amp(True)
    with pytest.raises(NotImplementedError, match="a Graph needs a method build"):
        flow.nn.Graph()()


def test_each_module_is_there(flow):
    listed = [row for row in FINDER.mirrors if row.startswith("oneflow.")]
    assert len(listed) > 40
    for name in listed:
        importlib.import_module(name)


def test_optimizers_take_oneflows_keywords(flow):
    w = flow.ones(2, requires_grad=True)
    group = {"params": [w], "clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0}
    for kind in (flow.optim.SGD, flow.optim.Adam, flow.optim.AdamW):
        optimizer = kind([group], lr=0.1, contiguous_params=True)
        w.grad = flow.tensor([30.0, 40.0])
        optimizer.clip_grad()
        np.testing.assert_allclose(w.grad, [0.6, 0.8], rtol=1e-5)
        optimizer.step()
        assert isinstance(optimizer, flow.optim.Optimizer)
    flow.optim.Adam([w], do_bias_correction=True)


@pytest.mark.parametrize(
    "use,text",
    [
        (lambda flow: flow.ones(1).to_global(), r"Tensor\.to_global\(\): tapegrad has no global tensors"),
        (lambda flow: flow.placement("cpu", [0]), "placement: tapegrad has no global tensors"),
        (lambda flow: flow.sbp.broadcast, "sbp.broadcast: tapegrad has no global tensors"),
        (lambda flow: flow.sbp.split(0), r"sbp.split\(0\): tapegrad has no global tensors"),
        (lambda flow: flow.comm.all_reduce(flow.ones(1)), "tapegrad runs in one process"),
        (lambda flow: flow.nn.OFRecordReader("x"), "tapegrad reads no record files"),
    ],
)
def test_unsupported_names_raise_clear_errors(flow, use, text):
    with pytest.raises(NotImplementedError, match=text):
        use(flow)


def test_a_name_that_is_not_there_names_the_nearest(flow):
    with pytest.raises(AttributeError, match=r"'oneflow' has no attribute 'onse' .*nearest: ones"):
        flow.onse


def test_mock_torch(flow):
    before = sys.modules.get("torch")
    with flow.mock_torch.enable():
        torch = importlib.import_module("torch")
        assert repr(torch.ones(1)) == "tensor([1.], dtype=oneflow.float32)"
        with flow.mock_torch.disable():
            assert sys.modules.get("torch") is before
        assert "torch" in FINDER.roots
    assert sys.modules.get("torch") is before


def test_removal_leaves_nothing_behind():
    before = dict(sys.modules)
    with compat.installed("oneflow", replace=True):
        importlib.import_module("oneflow")
        importlib.import_module("oneflow.nn.functional")
        assert tg.ones(1).is_local and dialect.current.prefix == "oneflow"
    assert dialect.current is dialect.PYTORCH
    x = tg.ones(1, requires_grad=True)
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)" and not hasattr(x, "is_local")
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    x.grad = tg.ones(1)
    tg.optim.SGD([x], lr=0.1).zero_grad()
    assert x.grad is None
    assert tg.Tensor.__module__.startswith("tapegrad")
    assert not [m for m in set(sys.modules) - set(before) if m.startswith("oneflow")]


def test_addmm_takes_alpha_before_beta(flow):
    x = flow.ones(2, 2)
    assert flow.addmm(x, x, x, 4, 1.5).tolist() == x.addmm(x, x, 4, 1.5).tolist() == [[9.5, 9.5]] * 2
    assert flow.addmm(x, x, x, alpha=1.5, beta=4).tolist() == [[7.0, 7.0]] * 2


def first_step(flow, name, **settings):
    x = flow.ones(1, requires_grad=True)
    optimizer = getattr(flow.optim, name)([x], **settings)
    (x * 1).sum().backward()
    optimizer.step()
    return x.item()


# Worked out with the formulas of OneFlow's documentation, from 1 with the gradient 1.
FIRST_STEPS = [
    ("RMSprop", {"lr": 0.1, "alpha": 0.9, "eps": 1e-2}, 1 - 0.1 / 0.11**0.5),
    ("RMSprop", {"lr": 0.1, "alpha": 0.9, "eps": 1e-2, "centered": True}, 1 - 0.1 / 0.1**0.5),  # 0.1 - 0.1**2 + 0.01
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.9}, 0.99),
    ("SGD", {"lr": 0.1, "momentum": 0.9}, 0.9),
    ("Adam", {"lr": 0.1, "do_bias_correction": False}, 1 - 0.1 * 0.1 / (0.001**0.5 + 1e-8)),
    ("AdamW", {"lr": 0.1}, 0.9),  # no weight decay unless told
    ("Adagrad", {}, 0.999),
    ("RMSprop", {}, 1 - 1e-3 / (0.01 + 1e-8) ** 0.5),
]


@pytest.mark.parametrize("name,settings,expected", FIRST_STEPS)
def test_first_steps_of_optimizers(flow, name, settings, expected):
    assert first_step(flow, name, **settings) == pytest.approx(expected, abs=1e-6)


def test_dampening_after_the_first_step(flow):
    x = flow.ones(1, requires_grad=True)
    optimizer = flow.optim.SGD([x], lr=0.1, momentum=0.9, dampening=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        x.sum().backward()
        optimizer.step()
    assert x.item() == pytest.approx(1 - 0.01 - 0.1 * (0.9 * 0.1 + 0.1))


def test_optimizers_say_what_oneflows_say(flow):
    x = flow.ones(1, requires_grad=True)
    with pytest.raises(AssertionError, match="Not support momentum"):
        flow.optim.RMSprop([x], momentum=0.9)
    with pytest.warns(UserWarning, match="To enable clip_grad"):
        flow.optim.SGD([x], lr=0.1).clip_grad()
    from oneflow.nn.optimizer.sgd import SGD

    assert SGD is flow.optim.SGD


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "RMSprop", "Adadelta"])
@pytest.mark.parametrize("in_group", [True, False])
def test_clipping_of_groups(flow, name, in_group):
    x = flow.ones(2, requires_grad=True)
    clip = {"clip_grad_max_norm": 1.0, "clip_grad_norm_type": 1.0}
    kind = getattr(flow.optim, name)
    optimizer = kind([{"params": [x], **clip}]) if in_group else kind([x], **clip)
    (x * flow.tensor([3.0, 1.0])).sum().backward()
    optimizer.clip_grad()
    assert x.grad.tolist() == pytest.approx([0.75, 0.25])


def test_state_of_arrays(flow):
    layer = flow.nn.Linear(1, 1)
    layer.load_state_dict({"weight": np.array([[2.0]], np.float32), "bias": np.array([3.0], np.float32)})
    assert layer(flow.ones(1)).tolist() == [5.0]


def test_complex_numbers(flow):
    x = flow.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    assert x.real().tolist() == [1, 3] and x.imag().tolist() == [2, -1] and type(x.real() + 1) is flow.Tensor
    (x * x).sum().backward()
    assert x.grad.tolist() == [2 - 4j, 6 + 2j]
    y = flow.tensor([1 + 2j], requires_grad=True)
    y.real().sum().backward()
    assert y.grad.tolist() == [1]


def test_elements_by_lists_of_places(flow):
    x, index = flow.arange(6.0).reshape(2, 3), flow.tensor([[0, 1], [1, 2], [0, 1]])
    assert flow.gather_nd(x, index).tolist() == [1, 5, 1] and flow.gather_nd(x, index[:1, :1]).tolist() == [[0, 1, 2]]
    assert flow.scatter_nd(index, flow.tensor([1.0, 2.0, 4.0]), [2, 3]).tolist() == [[0, 5, 0], [0, 0, 2]]
    assert flow.tensor_scatter_nd_update(x, index[:2], flow.tensor([7.0, 8.0])).tolist() == [[0, 7, 2], [3, 4, 8]]
    assert flow.slice(x, [[None, None, None], [0, 3, 2]]).tolist() == [[0, 2], [3, 5]]
    assert flow.slice_update(x, flow.zeros(2, 1), [[0, 2, 1], [1, 2, 1]]) is x and x[:, 1].tolist() == [0, 0]
    column, like = flow.tensor([[1.0], [2.0]]), flow.ones(2, 3)
    assert flow.broadcast_like(column, like).tolist() == [[1, 1, 1], [2, 2, 2]]
    assert flow.broadcast_like(flow.tensor([1.0, 2.0]), like, (1,)).tolist() == [[1, 1, 1], [2, 2, 2]]
    assert flow.in_top_k(flow.tensor([1, 0]), flow.tensor([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), 2).tolist() == [True, True]


def test_names_with_other_arguments(flow):
    assert flow.bernoulli(flow.ones(3), p=0.0).tolist() == [0, 0, 0]
    assert flow.Generator(device="auto").initial_seed() == flow.Generator().initial_seed()
    assert flow.nn.utils.prune.l1_unstructured(flow.nn.Linear(2, 1), "weight", 1).weight.shape == (1, 2)
    parts = flow.nn.common_types._size_2_t.__args__
    assert parts[0] is int and repr(parts[1]) == "typing.Tuple[int, int]"


@pytest.mark.parametrize(
    "cycle,expected", [(False, [1, 0.775, 0.55, 0.325, 0.1, 0.1]), (True, [0.775, 0.775, 0.55, 0.325, 0.1, 0.4375])]
)
def test_polynomial_rates(flow, cycle, expected):  # with cycle OneFlow counts step 0 as step 1
    optimizer = flow.optim.SGD([flow.ones(1)], lr=1.0)
    schedule = flow.optim.lr_scheduler.PolynomialLR(optimizer, 4, 0.1, cycle=cycle)
    rates = []
    for _ in expected:
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx(expected)


def rates_of(flow, make, steps):
    optimizer = flow.optim.SGD([flow.ones(1)], lr=1.0)
    schedule = make(flow.optim.lr_scheduler, optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        schedule.step()
    return rates, schedule


# From 1. A schedule gives the rate from the initial one and the step: chained and delayed ones differ from PyTorch's.
RATES = [
    (lambda s, o: s.WarmUpLR(o, 0.5, 2, "constant"), [0.5, 0.5, 1, 1]),
    (lambda s, o: s.WarmupLR(o, 0.5, 2), [0.5, 0.75, 1, 1]),
    (lambda s, o: s.WarmupLR(s.StepLR(o, 3, 0.5), 0.5, 4), [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25]),
    (lambda s, o: s.WarmupLR(s.StepLR(o, 3, 0.5), 0.5, 2, warmup_prefix=True), [0.5, 0.75, 1, 1, 1, 0.5]),
    (lambda s, o: s.ChainedScheduler([s.StepLR(o, 2, 0.5), s.ExponentialLR(o, 0.1)]), [1, 0.1, 5e-3, 5e-4, 2.5e-5]),
    (lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 9), s.StepLR(o, 2, 0.5)], [3]), [0.1, 0.1, 0.1, 0.5, 0.25]),
    (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 2, 0.0, 0.5, 2), [1, 0.5, 0.5, 0.4267767, 0.25, 0.0732233, 0, 0]),
    (lambda s, o: s.MultiplicativeLR(o, lambda step: 0.5), [1, 0.5, 0.25]),
    (lambda s, o: s.LambdaLR(o, lambda step: step + 1), [1, 2, 3]),
]


@pytest.mark.parametrize("number", range(len(RATES)))
def test_rates_of_schedules(flow, number):
    make, expected = RATES[number]
    rates, schedule = rates_of(flow, make, len(expected))
    assert rates == pytest.approx(expected, abs=1e-7)
    again = rates_of(flow, make, 1)[1]
    again.load_state_dict(schedule.state_dict())
    again.optimizer.load_state_dict(schedule.optimizer.state_dict())
    assert again.last_step == schedule.last_step == len(expected)
    again.step()
    schedule.step()
    assert again.get_last_lr() == schedule.get_last_lr()


def test_rates_of_averaged_weights(flow):
    optimizer = flow.optim.SGD([flow.ones(1)], lr=1.0)
    schedule = flow.optim.swa_utils.SWALR(optimizer, 0.1, anneal_epochs=2, anneal_strategy="linear")
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(3):
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([1, 0.55, 0.1, 0.1])


@pytest.mark.parametrize("decoupled,expected", [(True, 2 - 0.1 * 2 * (1 + 0.5 * 2)), (False, 2 - 0.1 * 2)])
def test_lamb(flow, decoupled, expected):
    x = flow.tensor([2.0], requires_grad=True)
    optimizer = flow.optim.LAMB([x], lr=0.1, weight_decay=0.5, adam_w_mode=decoupled, eps=0.0)
    x.sum().backward()
    optimizer.step()  # Adam's first step is 1; the ratio of the norms is 2
    assert x.item() == pytest.approx(expected)


def test_ftrl(flow):
    x = flow.tensor([2.0], requires_grad=True)
    optimizer = flow.one_embedding.Ftrl([x], lr=0.5, lr_power=0.5, initial_accumulator_value=1.0, lambda1=0.1, beta=1.0)
    x.sum().backward()
    optimizer.step()
    root = 2.0**0.5  # of the sum of squares; z = 1 - (root - 1) / 0.5 * 2
    assert x.item() == pytest.approx((-0.1 - (1 - (root - 1) * 4)) / ((1 + root) / 0.5))


def test_optimizers_without_parameters(flow):
    for kind in (flow.optim.SGD, flow.optim.Adam, flow.optim.LAMB):
        optimizer = kind([])
        optimizer.step()
        assert optimizer.param_groups[0]["params"] == []


def test_settings_of_one_group(flow):
    x, y = flow.ones(1, requires_grad=True), flow.ones(1, requires_grad=True)
    groups = [{"params": [x], "do_bias_correction": False}, {"params": [y]}]
    optimizer = flow.optim.Adam(groups, lr=0.1)
    (x + y).backward()
    optimizer.step()
    assert (x.item(), y.item()) == pytest.approx((1 - 0.01 / (0.001**0.5 + 1e-8), 0.9))


def test_sgd_with_nesterov_and_maximize(flow):
    assert first_step(flow, "SGD", lr=0.1, nesterov=True) == pytest.approx(0.9)
    settings = {"lr": 0.1, "momentum": 0.5, "dampening": 0.5, "nesterov": True}
    assert first_step(flow, "SGD", **settings) == pytest.approx(1 - 0.1 * (1 + 0.5 * 0.5))
    assert first_step(flow, "SGD", lr=0.1, momentum=0.5, weight_decay=0.5, maximize=True) == pytest.approx(1 + 0.1 * 1.5)
    assert first_step(flow, "SGD", lr=0.1, maximize=True) == pytest.approx(0.9)


def test_copies_of_computed_tensors(flow):
    x = flow.ones(4, requires_grad=True)
    parts = copy.deepcopy((x * 2).split(2) + ((x * 3)[:1],))
    assert [p.tolist() for p in parts] == [[2, 2], [2, 2], [3]] and not any(p.requires_grad for p in parts)
    y = x * 2
    first, second = copy.deepcopy([y, y])
    assert first is second and first is not y


def test_values_written_into_parameters(flow):
    layer = flow.nn.Linear(1, 1, bias=False)
    layer.weight.copy_(np.array([[3.0]], np.float32))
    assert layer.weight.tolist() == [[3.0]] and layer.weight.is_leaf and layer.weight.requires_grad


def test_what_a_function_saved(flow):
    class Twice(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            kept.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    kept = []
    x = flow.ones(1, requires_grad=True)
    y = Twice.apply(x)
    assert kept[0]._is_data_valid()
    y.backward()
    assert not kept[0]._is_data_valid()

    class Short(Twice):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    text = r"RuntimeError: function Short returned an incorrect number of gradients \(expected 2, got 1\)"
    with pytest.raises(RuntimeError, match=text):
        Short.apply(x, x).backward()


def test_functions_that_oneflow_alone_has(flow):
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert flow.batch_gather(x, flow.tensor([2, 0])).tolist() == [[5, 6], [1, 2]]
    assert flow.batch_gather(x, flow.tensor([[1], [0], [1]])).tolist() == [[2], [3], [6]]
    assert flow.bernoulli(flow.ones(2), dtype=flow.int64).dtype is flow.int64
    assert flow.masked_select(x, flow.tensor([1, 0], dtype=flow.int8)).tolist() == [1, 3, 5]
    assert flow.nonzero(x > 4, True)[0].tolist() == [2, 2] and (x > 4).nonzero().tolist() == [[2, 0], [2, 1]]
    boxes = flow.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [1.0, 1.0, 3.0, 3.0]])
    assert flow.nms(boxes, flow.tensor([0.1, 0.3, 0.2]), 0.5).tolist() == [1, 2]
    assert flow.roc_auc_score(flow.tensor([0, 0, 1, 1]), flow.tensor([0.1, 0.4, 0.35, 0.8])).tolist() == [0.75]
    assert flow.roc_auc_score(flow.tensor([0, 1]), flow.tensor([0.5, 0.5])).tolist() == [0.5]
    calls, f = flow._C, flow.nn.functional
    assert calls.trunc_divide(x, -2).tolist() == [[0, -1], [-1, -2], [-2, -3]]
    assert calls.bias_add(x, flow.tensor([1.0, 2.0, 3.0]), axis=0)[2].tolist() == [8, 9]
    assert calls.reduce_sum_like(x, flow.ones(1, 2), (0,)).tolist() == [[9, 12]]
    assert calls.reshape_like(x, flow.ones(6)).shape == (6,) and calls.matmul(x, x, transpose_b=True, alpha=2.0).shape == (
        3,
        3,
    )
    assert calls.slice_update(x, flow.zeros(3, 1), [0, 1], [3, 2], [1, 1]).tolist() == [[1, 0], [3, 0], [5, 0]]
    assert calls.fused_mlp(-x, [flow.ones(1, 2)] * 1, [flow.ones(1)], True).tolist() == [[-2], [-6], [-10]]
    assert f.one_hot(flow.tensor([1, 0]), 2, 0.9, -1).tolist() == pytest.approx(np.array([[-1, 0.9], [0.9, -1]]))
    assert f.one_hot(flow.tensor([1])).dtype is flow.int64
    logits = flow.tensor([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]]).log()[:, None]
    decoded, score = f.ctc_greedy_decoder(logits, flow.tensor([4]))
    assert decoded.tolist() == [[0, 0, 0, 0]] and score.item() == pytest.approx(-np.log(0.9 * 0.8 * 0.7 * 0.6))
    assert flow.empty_strided((2, 2), (1, 2), dtype=flow.int32, requires_grad=True).requires_grad is False
    assert flow.char is flow.int8 and flow.jit.script(abs) is abs and flow.nn.Graph.trace(abs) is abs


def test_layers_that_oneflow_alone_has(flow):
    x = flow.arange(6.0).reshape(1, 6, 1, 1)
    assert flow.nn.PixelShuffle(h_upscale_factor=2, w_upscale_factor=3)(x).tolist() == [[[[0, 1, 2], [3, 4, 5]]]]
    assert flow.nn.Dropout(p=1.0)(x, x + 1).tolist() == (x + 1).tolist()
    a, b = (flow.nn.Dropout(generator=flow.Generator().manual_seed(1))(flow.ones(20)) for _ in range(2))
    assert a.tolist() == b.tolist() and set(a.tolist()) == {0.0, 2.0}
    rows = flow.nn.RMSLayerNorm(2, eps=0.0)(flow.tensor([[3.0, 4.0]]))
    assert rows.tolist() == pytest.approx(np.array([[3.0, 4.0]]) / 12.5**0.5)
    cosines = flow.tensor([[0.6, 0.2]])
    arc = flow.nn.CombinedMarginLoss(1.0, 0.5, 0.1)(cosines, flow.tensor([0]))
    assert arc.tolist() == pytest.approx(np.array([[np.cos(np.arccos(0.6) + 0.5) - 0.1, 0.2]]))
    assert flow.nn.CombinedMarginLoss(1.0, 0.0, 0.1)(cosines, flow.tensor([1])).tolist() == pytest.approx(
        np.array([[0.6, 0.1]])
    )


def test_classes_stand_for_what_is_behind_proxies(flow):
    layer = flow.nn.Linear(1, 1)
    assert layer.to(flow.nn.Module) is layer and layer.to(flow.float64).weight.dtype is flow.float64

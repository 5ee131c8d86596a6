"""Names of nodes, as programs print and read them; compat/ has many more, against PyTorch."""

import gc

import pytest

import tapegrad as tg
from tapegrad.nn import functional as F

NAMES = {
    "x[0]": "SelectBackward0", "x[:1]": "SliceBackward0", "x[None]": "UnsqueezeBackward0", "x[...]": "AliasBackward0",
    "x[:]": "SliceBackward0", "x[:, :]": "AliasBackward0", "x[..., :]": "AliasBackward0",
    "x[0, :]": "SelectBackward0", "x[:, :1]": "SliceBackward0", "x[:1, 0]": "SelectBackward0",
    "x[0, None]": "UnsqueezeBackward0",
    "x[x > 1.5]": "IndexBackward0", "x.sum()": "SumBackward0", "x.sum(0)": "SumBackward1", "x.mean(1)": "MeanBackward1",
    "x.max()": "MaxBackward1", "1 - x": "RsubBackward1", "x - 1": "SubBackward0", "2**x": "PowBackward2",
    "x**x": "PowBackward1",
    "x.clamp(min=0)": "ClampBackward1", "x.reshape(4)": "ViewBackward0", "x.t().reshape(4)": "UnsafeViewBackward0",
    "x.unbind()[0]": "UnbindBackward0", "x @ x[0]": "MvBackward0", "x.norm(1)": "LinalgVectorNormBackward0",
    "F.mse_loss(x, x.detach())": "MseLossBackward0", "F.cross_entropy(x, tg.tensor([0, 1]))": "NllLossBackward0",
    "F.layer_norm(x, (2,))": "NativeLayerNormBackward0", "F.linear(x[None], x, x[0])": "ViewBackward0",
    "F.interpolate(x[None, None], scale_factor=2)": "UpsampleNearest2DBackward0",
    "tg.addcmul(x, x, x)": "AddcmulBackward0", "tg.zeros(2, 2).copy_(x)": "torch::autograd::CopyBackwards",
}  # fmt: skip


@pytest.mark.parametrize(("text", "name"), NAMES.items())
def test_name(text, name):
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = eval(text, {"x": x, "tg": tg, "F": F})
    assert y.grad_fn.name() == name
    assert type(y.grad_fn).__name__ == name.rpartition("::")[2]
    assert f"grad_fn=<{name.rpartition('::')[2]}>" in str(y)


def test_a_copy_into_a_tensor_that_has_hooks():
    x, y = tg.ones(2, requires_grad=True), 2 * tg.ones(2, requires_grad=True)
    y.register_hook(lambda g: None)
    y.copy_(x)
    assert y.grad_fn.name() == "torch::autograd::CopyBackwards"
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_copy_into_a_tensor_that_has_views():
    x, whole = tg.ones(2, 2, requires_grad=True), tg.zeros(2, 2)
    row = whole[0]
    whole.copy_(x)
    assert whole.grad_fn.name() == "torch::autograd::CopyBackwards" and row.requires_grad
    row.copy_(2 * x[1])
    assert whole.grad_fn.name() == "torch::autograd::CopySlices"
    whole.sum().backward()
    assert x.grad.tolist() == [[0, 0], [3, 3]]


@pytest.mark.parametrize("text", NAMES)
def test_gradients_pass_through_what_is_renamed(text):
    values = tg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=tg.float64)

    def f(x):
        return eval(text, {"x": x, "tg": tg, "F": F})

    if "detach" not in text and "zeros" not in text:
        assert tg.autograd.gradgradcheck(f, values.clone().requires_grad_())


def test_names_survive_the_release():
    x = tg.ones(3, requires_grad=True)
    y = 2 ** x.clamp(min=0)
    loss = F.mse_loss(y, tg.zeros(3))
    loss.backward()
    assert [str(t).rpartition("<")[2][:-2] for t in (y, loss)] == ["PowBackward2", "MseLossBackward0"]


def test_renaming_keeps_nothing_alive(entries):
    x = tg.ones(3, requires_grad=True)
    for _ in range(100):
        F.mse_loss(x[1:], tg.zeros(2))
    gc.collect()
    assert entries() == 0


def test_numbers_before_tensors():
    x = tg.ones(2)
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        x.add_(-0.5, tg.ones(2))
    assert x.tolist() == [0.5, 0.5]
    with pytest.warns(UserWarning, match="This overload of addmm is deprecated"):
        assert tg.addmm(0.5, tg.ones(1, 1), 2, tg.ones(1, 1), tg.ones(1, 1)).item() == 2.5
    with pytest.raises(TypeError, match="positional argument"):
        tg.add(x, x, x)


def test_inputs_of_functions_of_several_operations():
    """The nodes below are those of the function's inputs, not of the operations it is made of."""
    x, y = tg.rand(4, 3, requires_grad=True), tg.rand(4, 3)
    for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy):
        node = loss(x.sin().abs(), y).grad_fn
        assert [f.name() for f, _ in node.next_functions] == ["AbsBackward0"]
    node = F.mse_loss(x.sin(), x.cos()).grad_fn
    assert [f.name() for f, _ in node.next_functions] == ["SinBackward0", "CosBackward0"]


@pytest.mark.parametrize(
    ("function", "name"),
    [(tg.var_mean, "VarMeanBackward0"), (tg.std_mean, "StdMeanBackward0"), (tg.aminmax, "AminmaxBackward0")],
)
def test_two_results_of_one_function_are_of_one_node(function, name):
    x = tg.tensor([1.0, 4.0, 3.0], dtype=tg.float64, requires_grad=True)
    first, second = function(x.sin())
    node, seen = first.grad_fn, []
    assert node is second.grad_fn and node.name() == name
    assert [f.name() for f, _ in node.next_functions] == ["SinBackward0"]
    node.register_prehook(lambda gs: seen.append([g.item() for g in gs]))
    (first * 2 + second).backward(retain_graph=True)
    assert seen == [[2.0, 1.0]]
    assert tg.autograd.gradgradcheck(lambda t: tuple(function(t)), x)
    rows = tg.func.vmap(function)(tg.stack([x + 1, x]).detach())
    assert [r[1].item() for r in rows] == [t.item() for t in function(x)]


ONE_NODE = {
    "tg.vdot(v, v)": "VdotBackward0", "tg.dot(v, v)": "DotBackward0", "m @ v": "MvBackward0",
    "tg.addcmul(m, m, m)": "AddcmulBackward0", "tg.dist(m, m + 1)": "DistBackward0", "m.repeat(2, 2)": "RepeatBackward0",
    "tg.mvlgamma(m + 9, 3)": "MvlgammaBackward0", "tg.polar(v, v)": "PolarBackward0",
    "tg.block_diag(m, m)": "BlockDiagBackward0", "tg.cdist(m, m, 1.0)": "CdistBackward0",
    "tg.cholesky(m @ m.T)": "CholeskyBackward0",
    "tg.lu_unpack(*tg.linalg.lu_factor(m))[1]": "LuUnpackBackward0", "tg.linalg.eigvalsh(m)": "LinalgEighBackward0",
    "F.interpolate(i, scale_factor=2.0, mode='bilinear')": "UpsampleBilinear2DBackward0",
    "F.pad(i, (1, 1, 1, 1), mode='reflect')": "ReflectionPad2DBackward0",
    "F.grid_sample(i, tg.zeros(1, 2, 2, 2), align_corners=False)": "GridSampler2DBackward0",
    "F.adaptive_max_pool2d(i, 1)": "AdaptiveMaxPool2DBackward0", "tg.expand_copy(v, (2, 2))": "ExpandBackward0_copy",
}  # fmt: skip


@pytest.mark.parametrize(("text", "name"), ONE_NODE.items())
def test_functions_of_several_operations_are_one_node(text, name):
    """Below it are the nodes of what the function was given, at once."""
    m = tg.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    given = {"tg": tg, "F": F, "m": m, "v": m[0], "i": m[None, None]}
    node = eval(text, given).grad_fn
    assert node.name() == name
    below = {f.name().partition("Backward")[0] for f, _ in node.next_functions if f is not None}
    assert below <= {"Select", "Unsqueeze", "torch::autograd::AccumulateGrad", "Add", "Mm", "LinalgLuFactorEx"}


def test_a_function_that_gives_back_what_it_was_given_renames_nothing():
    x = tg.ones(2, 2, requires_grad=True) * 2
    assert tg.masked_select(x, tg.ones(2, 2) > 0).grad_fn.name() == "MaskedSelectBackward0"
    assert tg.block_diag(x).grad_fn is not x.grad_fn and x.grad_fn.name() == "MulBackward0"


def test_a_node_is_one_object_while_it_lives(entries):
    x = tg.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp() + y
    assert y.grad_fn is y.grad_fn and x.grad_fn is None
    below, through = (f for f, _ in z.grad_fn.next_functions)
    assert through is y.grad_fn and below.next_functions[0][0] is y.grad_fn
    assert y.grad_fn.next_functions[0][0] is (x * 3).grad_fn.next_functions[0][0]
    assert {y.grad_fn: 1}[through] == 1
    node = y.grad_fn
    y.sum().backward()
    assert y.grad_fn is node
    y.mul_(2)
    assert y.grad_fn is not node
    values = x.sort()
    assert values[0].grad_fn is values[0].grad_fn
    del x, y, z, below, through, node, values
    gc.collect()
    assert entries() == 0


def test_nodes_of_custom_functions_are_of_a_class_of_their_name():
    class MyFunc(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return (g + h) * float("nan") * ctx.saved_tensors[0]

    x = tg.ones(2, requires_grad=True)
    a, b = MyFunc.apply(x)
    assert type(a.grad_fn).__name__ == a.grad_fn.name() == "MyFuncBackward"
    assert a.grad_fn is b.grad_fn is (a + 1).grad_fn.next_functions[0][0]
    assert "grad_fn=<MyFuncBackward>" in str(a)
    with (
        pytest.warns(UserWarning, match="Error detected in MyFuncBackward"),
        tg.autograd.set_detect_anomaly(True),
        pytest.raises(RuntimeError, match="Function 'MyFuncBackward' returned nan values in its 0th output"),
    ):
        a.sum().backward(retain_graph=True)
    a.sum().backward()
    with pytest.raises(RuntimeError, match="second time.* Node MyFuncBackward has been released"):
        a.sum().backward()

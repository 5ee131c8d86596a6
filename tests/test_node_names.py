"""Names of nodes, as programs print and read them; compat/ has many more, against PyTorch."""

import gc

import pytest

import tapegrad as tg
from tapegrad.nn import functional as F

NAMES = {
    "x[0]": "SelectBackward0", "x[:1]": "SliceBackward0", "x[None]": "UnsqueezeBackward0", "x[...]": "AliasBackward0",
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

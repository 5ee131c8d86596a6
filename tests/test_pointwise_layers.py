"""Activations, losses, distances and the adaptive softmax without PyTorch: closed forms, subclasses, transforms."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn


def close(a, b, tol=1e-6):
    a, b = (x.detach().numpy() if isinstance(x, tg.Tensor) else np.asarray(x) for x in (a, b))
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


X = [-2.0, -0.25, 0.0, 0.25, 2.0]
VALUES = {
    "relu6": (nn.ReLU6(), [0, 0, 0, 0.25, 2]),
    "hardtanh": (nn.Hardtanh(-0.5, 0.1), [-0.5, -0.25, 0, 0.1, 0.1]),
    "hardsigmoid": (nn.Hardsigmoid(), [1 / 6, 2.75 / 6, 0.5, 3.25 / 6, 5 / 6]),
    "hardswish": (nn.Hardswish(), [-2 / 6, -0.25 * 2.75 / 6, 0, 0.25 * 3.25 / 6, 10 / 6]),
    "hardshrink": (nn.Hardshrink(0.5), [-2, 0, 0, 0, 2]),
    "softshrink": (nn.Softshrink(0.5), [-1.5, 0, 0, 0, 1.5]),
    "threshold": (nn.Threshold(0.1, 7), [7, 7, 7, 0.25, 2]),
    "celu": (nn.CELU(2.0), [2 * np.expm1(-1), 2 * np.expm1(-0.125), 0, 0.25, 2]),
    "logsigmoid": (nn.LogSigmoid(), -np.log1p(np.exp(-np.array(X)))),
    "prelu": (nn.PReLU(init=0.5), [-1, -0.125, 0, 0.25, 2]),
    "rrelu": (nn.RReLU(0.25, 0.75).eval(), [-1, -0.125, 0, 0.25, 2]),
    "leaky relu": (nn.LeakyReLU(0.1), [-0.2, -0.025, 0, 0.25, 2]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    layer, expected = VALUES[name]
    close(layer(tg.tensor(X)), expected)


def test_glu_and_softmax2d():
    close(nn.GLU()(tg.tensor([1.0, 3.0, 0.0, 0.0])), [0.5, 1.5])
    close(nn.Softmax2d()(tg.randn(2, 3, 2, 2)).sum(1), np.ones((2, 2, 2)))


def test_in_place_writes_into_the_input():
    for layer in (nn.ReLU(True), nn.Hardtanh(0.0, 6.0, True), nn.ReLU6(inplace=True), nn.Threshold(0.0, 0.0, True)):
        x = tg.tensor(X)
        assert layer(x) is x and not (x < 0).any()


def test_subclasses_with_settings_of_their_own():
    class Steep(nn.LeakyReLU):
        def __init__(self, name):
            super().__init__(0.5)
            self.name = name

    layer = Steep("a")
    assert layer.negative_slope == 0.5 and repr(layer) == "Steep(negative_slope=0.5)"
    close(layer(tg.tensor([-2.0])), [-1.0])

    class Scaled(nn.MSELoss):
        def __init__(self, scale, **kwargs):
            super().__init__(**kwargs)
            self.scale = scale

        def forward(self, input, target):
            return self.scale * super().forward(input, target)

    close(Scaled(3.0, reduction="sum")(tg.ones(2), tg.zeros(2)), 6.0)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"])
def test_copies(how):
    nets = (nn.Hardtanh(-0.5, 0.1), nn.PReLU(3), nn.CrossEntropyLoss(tg.ones(3), ignore_index=2), nn.TripletMarginLoss(2.0),
            nn.AdaptiveLogSoftmaxWithLoss(16, 9, [2, 5]), nn.LinearCrossEntropyLoss(3, 4))  # fmt: skip
    for net in nets:
        copied = how(net)
        assert repr(copied) == repr(net) and list(copied.state_dict()) == list(net.state_dict())
        assert {k: v for k, v in vars(copied).items() if k[0] != "_"} == {k: v for k, v in vars(net).items() if k[0] != "_"}


def test_settings_can_be_changed_later():
    loss = nn.HuberLoss(delta=1.0)
    loss.delta = 2.0
    close(loss(tg.tensor([3.0]), tg.tensor([0.0])), 2 * (3 - 1))
    loss = nn.CrossEntropyLoss()
    loss.weight = tg.tensor([1.0, 3.0])
    close(loss(tg.zeros(2, 2), tg.tensor([0, 1])), np.log(2))
    assert list(loss.state_dict()) == ["weight"]


def test_losses():
    a, b = tg.tensor([[0.0, 0.0], [3.0, 4.0]]), tg.tensor([[0.0, 0.0], [0.0, 0.0]])
    close(nn.PairwiseDistance(eps=0.0)(a, b), [0.0, 5.0])
    close(nn.CosineSimilarity()(tg.tensor([[1.0, 0.0]]), tg.tensor([[1.0, 1.0]])), [np.sqrt(0.5)])
    close(nn.MarginRankingLoss(1.0)(tg.tensor([2.0]), tg.tensor([0.5]), tg.tensor([-1.0])), 2.5)
    close(nn.HingeEmbeddingLoss(3.0)(tg.tensor([1.0, 1.0]), tg.tensor([1.0, -1.0])), 1.5)
    close(nn.TripletMarginLoss(1.0)(a, a, b), 0.5, 1e-5)
    close(nn.SoftMarginLoss()(tg.zeros(3), tg.ones(3)), np.log(2))
    close(nn.PoissonNLLLoss()(tg.zeros(1), tg.tensor([2.0])), 1.0)
    close(nn.GaussianNLLLoss()(tg.zeros(1), tg.tensor([2.0]), tg.tensor([4.0])), 0.5 * (np.log(4) + 1))
    close(nn.CTCLoss()(tg.full((1, 1, 3), -np.log(3.0)), tg.tensor([[1]]), (1,), (1,)), np.log(3))
    with pytest.raises(TypeError, match=r"nn\.CTCLoss\(\)\(input, target\)"):
        nn.CTCLoss(tg.ones(2), tg.ones(2))
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'margn'"):
        nn.TripletMarginLoss(margn=1.0)


def adaptive():
    tg.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(16, 9, [2, 5], div_value=2.0).double()


def test_adaptive_softmax_is_a_distribution_and_the_loss_reads_it():
    net, x, t = adaptive(), tg.randn(7, 16).double(), tg.tensor([0, 1, 2, 4, 5, 8, 3])
    logs = net.log_prob(x)
    close(logs.exp().sum(1), np.ones(7))
    output, loss = net(x, t)
    close(output, logs.gather(1, t.unsqueeze(1)).squeeze(1))
    close(loss, -output.mean())
    assert net(x[0], t[0]).output.shape == () and type(net(x, t))._fields == ("output", "loss")


def test_adaptive_softmax_differentiates_twice_and_under_jvp():
    net, t = adaptive(), tg.tensor([0, 4, 8])
    x = tg.randn(3, 16).double().requires_grad_()
    assert tg.autograd.gradcheck(lambda x: net(x, t).output, x)
    assert tg.autograd.gradgradcheck(lambda x: net(x, t).output, x)
    v = tg.randn(3, 16).double()
    _, along = tg.func.jvp(lambda x: net(x, t).loss, (x.detach(),), (v,))
    (g,) = tg.autograd.grad(net(x, t).loss, x)
    close(along, (g * v).sum())


def test_pytorchs_module_paths():
    code = (
        "from tapegrad.nn.modules.loss import _Loss, _WeightedLoss; import tapegrad.nn.modules.activation as a; "
        "from tapegrad import nn; assert issubclass(nn.NLLLoss, _WeightedLoss) and issubclass(nn.MSELoss, _Loss); "
        "assert a.ReLU is nn.ReLU"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

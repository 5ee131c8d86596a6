"""Gradients where a convention decides: steps, nan, certain predictions."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.nn import functional as F


@pytest.mark.parametrize("f", [tg.sign, tg.sgn, tg.floor, tg.ceil, tg.round, tg.trunc, np.sign, np.round, np.floor, np.fix])
def test_steps_are_recorded_and_have_derivative_0(f):
    x = tg.tensor([0.5, -1.25], requires_grad=True)
    (g,) = tg.autograd.grad(f(x), x, tg.tensor([np.inf, 1.0]), create_graph=True)
    assert g.tolist() == [0.0, 0.0]


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

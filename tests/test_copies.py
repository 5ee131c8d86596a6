"""Copies of tensors and conversions to NumPy: which memory they share, and whether they carry a gradient."""

import copy
import pickle

import numpy as np
import pytest

import tapegrad as tg


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
    assert copy.copy(c).grad is None  # as in PyTorch: memory is shared, the gradient is the tensor's own


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


def test_a_view_that_a_write_into_its_base_made_require_grad_is_no_leaf():
    def view():
        base = tg.zeros(2, 3)
        part = base[0]
        base.add_(tg.ones(3, requires_grad=True))
        return part

    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(view())
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        view().requires_grad = False
    assert not copy.copy(view()).is_leaf

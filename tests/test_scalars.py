"""Functions of Python numbers are differentiated on floats, without arrays, until an array is read."""

import copy
import math
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func
from tapegrad.core.op import TABLE
from tapegrad.core.record import Scalar
from tapegrad.floats import functions

FUNCTIONS = {
    "chain": lambda x: tg.sin(x) * tg.exp(x) + x * x / (2.0 + tg.cos(x)) - tg.log(x) * 3.0,
    "powers": lambda x: x**3 + 2.0**x + x**-1.5 + x**x,
    "reflected": lambda x: 1 - x + (3 - x) / (1 / x) + -x,
    "shared": lambda x: x * x * x + x,
    "others": lambda x: tg.sigmoid(x) + tg.erf(x) * tg.lgamma(x) + tg.atan2(x, 2.0) + tg.sqrt(x) + tg.relu(x),
    "arrays": lambda x: (tg.stack([x, x * 2]) * tg.tensor([1.0, 2.0], dtype=tg.float64)).sum() + x.reshape(1, 1).sum(),
    "numpy": lambda x: np.sin(x) * np.float64(2.0) + np.exp(x).sum(),
    "choice": lambda x: x * 2 if x > 0.5 else x * 3,
    "unused": lambda x: x * 0 + 1.0,
}


def ordinary(f):
    return lambda x: f(tg.tensor(x, dtype=tg.float64))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", [0.3, 0.7, 2.0])
def test_orders_are_those_of_tensors(name, x):
    f = FUNCTIONS[name]
    g, h = f, f
    for _ in range(3):
        g, h = func.grad(g), func.grad(h)
        got = g(x)
        assert type(got) is float
        assert got == pytest.approx(h(tg.tensor(x, dtype=tg.float64)).item(), rel=1e-12, abs=1e-12)


def test_floats_are_what_is_recorded():
    seen = []

    def f(x):
        y = tg.sin(x) * x
        seen.append((type(x), type(y), isinstance(y, tg.Tensor), type(y).__name__))
        return y

    assert func.grad(f)(0.7) == math.cos(0.7) * 0.7 + math.sin(0.7)
    assert seen == [(Scalar, Scalar, True, "Tensor")]


@pytest.mark.parametrize("name", sorted(functions.FUNCTIONS))
def test_functions_of_floats_are_the_records(name):
    op = TABLE[name]
    assert op.kind == "elementwise"
    for x, y in [(0.3, 0.6), (0.9, 0.2)]:
        args = (x, y) if op.arity == 2 or op.params else (x,)
        if name == "acosh":
            args = (x + 1.5,)
        assert functions.FUNCTIONS[name](*args) == pytest.approx(float(op.forward(*map(np.float64, args))), rel=1e-14)


@pytest.mark.parametrize(
    "f, x, value, slope",
    [
        (tg.log, 0.0, -math.inf, math.inf),
        (tg.exp, 1000.0, math.inf, math.inf),
        (lambda x: 1 / x, 0.0, math.inf, -math.inf),
        (tg.sqrt, 0.0, 0.0, math.inf),
        (tg.sqrt, -1.0, math.nan, math.nan),
        (lambda x: tg.where(x > 0, tg.sqrt(x), 0.0), 0.0, 0.0, 0.0),
        (lambda x: tg.log(x) * 0.0 + x, 0.0, math.nan, 1.0),
        (lambda x: x**0.5, 0.0, 0.0, math.inf),
        (lambda x: tg.tanh(x * 1e200 * 1e200), 1.0, 1.0, 0.0),
        (lambda x: tg.abs(x), 0.0, 0.0, 0.0),
    ],
)
def test_where_math_raises(f, x, value, slope):
    with np.errstate(invalid="ignore"):
        got = func.value_and_grad(f)(x)
        np.testing.assert_array_equal(got, (value, slope))
        np.testing.assert_array_equal(func.grad(f)(x), slope)


def test_reading_the_argument_shows_an_ordinary_tensor():
    def f(x):
        assert x.shape == () and x.dtype is tg.float64 and x.requires_grad
        assert "0.7" in repr(x) and float(x.detach()) == 0.7 and len(x.reshape(1)) == 1
        y = x * 2
        assert y.grad_fn.name() == "MulBackward0" and not y.is_leaf
        z = y.clone()
        z += 1
        z.mul_(3)
        assert copy.copy(z).item() == pickle.loads(pickle.dumps(z.detach())).item()
        return z + x.item()

    with pytest.warns(UserWarning, match="gradient"):
        assert func.grad(lambda x: f(x) + float(x))(0.7) == 6.0


def test_captured_tensors_and_enclosing_transforms_are_reached():
    w = tg.tensor(3.0, dtype=tg.float64, requires_grad=True)
    g = func.grad(lambda x: tg.sin(x) * w * x)(0.5)
    assert isinstance(g, tg.Tensor) and g.requires_grad
    g.backward()
    assert w.grad.item() == pytest.approx(math.cos(0.5) * 0.5 + math.sin(0.5), rel=1e-14)
    assert func.grad(lambda a: func.grad(lambda b: a * b * b)(3.0) * a)(2.0) == 24.0  # no confusion of the two
    assert func.grad(lambda a: func.grad(lambda b: a * tg.sin(a) + b)(3.0) * a)(2.0) == 1.0
    assert func.grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert func.grad(lambda d: d["a"] * d["b"][0])({"a": 2.0, "b": [3.0]}) == {"a": 3.0, "b": [2.0]}
    value, aux = func.grad(lambda x: (x * x, x * 3), has_aux=True)(2.0)
    assert (value, float(aux)) == (4.0, 6.0)
    value, pull = func.vjp(lambda x: tg.sin(x) * 2, 0.3)
    assert (value, pull(0.5)) == (math.sin(0.3) * 2, (math.cos(0.3),)) and pull(1.0) == (2 * math.cos(0.3),)
    assert type(func.grad(tg.sin)(np.array(0.3))) is np.ndarray


def test_backward_and_hooks_inside():
    def f(x):
        y = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
        (x * y * y).backward()
        return y.grad * x

    assert func.grad(f)(3.0) == 24.0  # y.grad = 2 x y
    seen = []

    def g(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(g.item()) or g * 10)
        return y * 3

    assert func.grad(g)(1.0) == 60.0 and seen == [3.0]


def test_no_grad_and_detach():
    def f(x):
        with tg.no_grad():
            a = x * x
        return a * x + (x.detach() * x)

    assert func.grad(f)(3.0) == 12.0
    with tg.no_grad():
        assert func.grad(lambda x: x * x)(3.0) == 6.0


@pytest.mark.counted
def test_the_tape_is_left_as_it_was():
    tape = tg.tape()
    tape.clear()
    for _ in range(300):
        func.grad(FUNCTIONS["chain"])(0.7)
    assert len(tape) == 0
    kept = []
    func.grad(lambda x: kept.append(x * 2) or kept[0] * x)(0.7)
    assert len(tape) <= 2 and kept[0].item() == 1.4
    with pytest.raises(ZeroDivisionError):
        func.grad(lambda x: x * (1 / 0))(0.7)
    assert func.grad(lambda x: x * 2)(0.7) == 2.0


def test_numbers_of_complex_tensors():
    assert float(tg.tensor(1.5 + 0j)) == 1.5 and int(tg.tensor(2 + 0j)) == 2 and complex(tg.tensor(1.5j)) == 1.5j
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        float(tg.tensor(1.5j))
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        int(tg.tensor(1.5j))


def test_derivatives_of_numbers_in_anomaly_mode():
    """Which the quick pass of numbers leaves to the general one."""
    with pytest.warns(UserWarning, match="Anomaly Detection"), tg.autograd.detect_anomaly():
        assert tg.func.grad(lambda x: x * x)(3.0) == 6.0
        assert tg.func.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0) == (3.0, 2.0)

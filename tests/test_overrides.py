"""`__torch_function__`: who is asked, with what, and that nobody else pays."""

import operator
import pickle
from typing import ClassVar

import pytest

import tapegrad as tg
from tapegrad import overrides
from tapegrad.nn import functional as F


class Answer:
    """Answers every question with the name of the function, the types and how many arguments there were."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, len(args), kwargs


class Silent:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Reflected:
    def __radd__(self, other):
        return "radd"

    __rmul__ = __rmatmul__ = __rpow__ = __rfloordiv__ = __gt__ = __radd__


def test_a_class_with_torch_dispatch_is_told_that_nothing_asks_it():
    with pytest.warns(UserWarning, match=r"Dispatched.__torch_dispatch__ is never called"):

        class Dispatched(tg.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise AssertionError

    assert (tg.ones(1).as_subclass(Dispatched) + 1).tolist() == [2.0]


@pytest.fixture
def enabled():
    overrides.enable()


BOTH = ["add", "sub", "mul", "div", "matmul", "pow", "floor_divide", "remainder", "eq", "lt", "bitwise_and", "atan2"]


@pytest.mark.parametrize("name", BOTH)
def test_functions_of_two_operands_ask_objects(name):
    function, x, o = getattr(tg, name), tg.ones(2), Answer()
    assert function(x, o) == function(o, x) == (name, (Answer,), 2, None)
    with pytest.raises(TypeError, match=f"no implementation found for 'tapegrad.{name}' on types that implement"):
        function(x, Silent())
    for unknown in (Reflected(), object()):
        with pytest.raises(TypeError, match="object|Reflected"):
            function(x, unknown)


def test_operators_ask_and_leave_the_rest_to_the_other_side():
    x = tg.ones(2)
    assert (x + Answer())[0] == "add" and (x @ Answer())[0] == "matmul" and (x ** Answer())[0] == "pow"
    assert (x == Answer())[0] == "eq" and (x // Answer())[0] == "floor_divide"
    r = Reflected()
    assert x + r == x * r == x @ r == x**r == x // r == (x < r) == "radd"
    assert (x == r) is False and (x != Silent()) is True
    with pytest.raises(TypeError):
        x + Silent()


def test_other_functions_ask_objects_once_enabled():
    with pytest.raises(TypeError, match=r"Its class has __torch_function__: call tapegrad.overrides.enable\(\) first"):
        tg.sum(Answer())
    before = tg.sum
    overrides.enable()
    x, o = tg.ones(2), Answer()
    assert tg.sum(o) == ("sum", (Answer,), 1, None)
    assert tg.sum(input=o, dim=0) == ("sum", (Answer,), 0, {"input": o, "dim": 0})
    assert tg.cat([x, o], 0) == tg.cat((o, x), 0) == ("cat", (Answer,), 2, None)
    assert F.linear(x, o)[0] == "linear" and F.relu(o)[0] == "relu" and tg.linalg.norm(o)[0] == "linalg_norm"
    assert x.add(o)[0] == "add" and x.add_(o)[0] == "add_" and x[o][0] == "__getitem__" and (2 * x @ o)[0] == "matmul"
    assert tg.sum(x) == 2
    with pytest.raises(TypeError, match="no implementation found for 'tapegrad.sum'"):
        tg.sum(Silent())
    overrides.disable()
    assert tg.sum is before


def test_functions_of_special_have_names_of_their_own():
    overrides.enable()
    o = Answer()
    asked = tg.special.erf(o), tg.erf(o), tg.special.psi(o), tg.special.digamma(o), tg.special.softmax(o), tg.softmax(o)
    assert pickle.loads(pickle.dumps(tg.special.erf)) is tg.special.erf
    overrides.disable()
    assert [a[0] for a in asked] == ["special_erf", "erf", "special_psi", "special_digamma", "special_softmax", "softmax"]


class Other(tg.Tensor):
    __torch_function__ = Answer.__torch_function__


def test_equality_asks_what_stands_on_the_right_as_eq():
    overrides.enable()
    x = tg.ones(2)
    asked = x == Answer(), x.as_subclass(Other) == 2, x.as_subclass(Other) == Answer()
    overrides.disable()
    assert [a[0] for a in asked] == ["eq", "__eq__", "__eq__"]


def test_grad_asks_and_gives_the_class_of_the_leaf():
    overrides.enable()
    x = tg.ones(2).as_subclass(Finer).requires_grad_()
    assert type(tg.autograd.grad((x * x).sum(), x)[0]) is Finer
    assert tg.autograd.grad(Answer(), x)[0] == tg.autograd.grad([x], [Answer()])[0] == "grad"
    assert tg.autograd.backward(Answer())[0] == "backward"
    assert pickle.loads(pickle.dumps(tg.autograd.grad)) is tg.autograd.grad
    y = tg.ones(2, requires_grad=True)
    assert type(tg.autograd.grad(y.sum(), y)[0]) is tg.Tensor
    overrides.disable()


class Noted(tg.Tensor):
    asked: ClassVar[list] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.asked.append((func, types))
        return super().__torch_function__(func, types, args, kwargs)


class Finer(Noted):
    pass


@pytest.mark.parametrize(
    "program,names",
    [
        (lambda s: s + 1, ["add"]),
        (lambda s: 1 + s, ["add"]),
        (lambda s: 1 - s, ["__rsub__"]),
        (lambda s: s / 2, ["div"]),
        (lambda s: s % 2, ["remainder"]),
        (lambda s: -s, ["neg"]),
        (lambda s: abs(s), ["abs"]),
        (lambda s: s**2, ["pow"]),
        (lambda s: s @ s, ["matmul"]),
        (lambda s: tg.ones(2, 2) < s, ["gt"]),
        (lambda s: s == s, ["__eq__"]),
        (lambda s: s != s, ["ne"]),
        (lambda s: s.sum(0), ["sum"]),
        (lambda s: tg.sum(s), ["sum"]),
        (lambda s: tg.cat([tg.ones(1, 2), s]), ["cat"]),
        (lambda s: F.softmax(s, 0), ["softmax"]),
        (lambda s: s[0], ["__getitem__"]),
        (lambda s: s.T, ["__get__"]),
        (lambda s: s.add_(1), ["add_"]),
        (lambda s: s.new_zeros(2), ["new_zeros"]),
        (lambda s: tg.zeros_like(s), ["zeros_like"]),
    ],
)
def test_results_are_of_the_subclass(enabled, program, names):
    s = tg.ones(2, 2).as_subclass(Noted)
    Noted.asked.clear()
    result = program(s)
    assert type(result) is Noted and [f.__name__ for f, _ in Noted.asked] == names
    assert all(types == (Noted,) for _, types in Noted.asked)


def test_what_is_no_tensor_or_made_anew_is_not_wrapped(enabled):
    s = tg.ones(2, 2).as_subclass(Noted)
    Noted.asked.clear()
    assert type(tg.tensor(s)) is type(tg.as_tensor([1.0])) is tg.Tensor and not Noted.asked
    assert type(s.shape) is tg.Size and s.dim() == 2 and s.dtype is tg.float32 and type(s.tolist()) is list
    values, positions = s.max(0)
    assert type(values) is type(positions) is Noted and type(s.max(0)).__name__ == "max"
    assert [type(row) for row in s] == [Noted, Noted]


def test_the_function_that_is_asked_about_is_the_public_one(enabled):
    s = tg.ones(2).as_subclass(Noted)
    Noted.asked.clear()
    tg.add(s, 1), s + 1, s.add(1), tg.sum(s), s.sum(), s.shape
    assert [f for f, _ in Noted.asked] == [
        tg.add, tg.Tensor.add, tg.Tensor.add, tg.sum, tg.Tensor.sum, tg.Tensor.shape.__get__,
    ]  # fmt: skip


def test_subclasses_are_asked_before_their_bases(enabled):
    s, finer = tg.ones(2).as_subclass(Noted), tg.ones(2).as_subclass(Finer)
    Noted.asked.clear()
    assert type(s + finer) is type(finer + s) is Finer
    assert [types for _, types in Noted.asked] == [(Finer, Noted)] * 2


def test_gradients_through_a_subclass(enabled):
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    s = w.as_subclass(Noted)
    loss = (s * s * s).sum()
    assert type(loss) is Noted and type(loss.grad_fn).__name__ == "AliasBackward0"
    (g,) = tg.autograd.grad(loss, w, create_graph=True)
    g.sum().backward()
    assert g.tolist() == [3.0, 12.0] and w.grad.tolist() == [6.0, 12.0]


def test_a_subclass_of_parameter_is_not_asked():
    class Weight(tg.nn.Parameter):
        pass

    w = Weight(tg.ones(2))
    assert type(w + 1) is tg.Tensor and not overrides.has_torch_function((w,))


def test_a_subclass_is_found_by_its_definition():
    before = tg.Tensor.sum

    class Named(tg.Tensor):
        pass

    assert tg.Tensor.sum is not before and type(tg.ones(2).as_subclass(Named).sum()) is Named


def test_modes():
    asked = []

    class Note(overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            asked.append((self.name, func.__name__, types))
            return func(*args, **(kwargs or {}))

    with Note("outer"), Note("inner"):
        x = tg.ones(2)
        F.relu(x)
        tg.tensor(1.0)
        with overrides.DisableTorchFunctionSubclass():
            x + 1
        with overrides.DisableTorchFunction():
            x + 1
    x + 1
    functions = ["ones", "relu", "tensor", "add"]
    assert asked == [(mode, name, ()) for name in functions for mode in ("inner", "outer")]
    with overrides.BaseTorchFunctionMode():
        assert (x + 1).sum() == 4


def test_a_mode_is_left_after_an_error():
    class Refuse(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found .* nor in mode"), Refuse():
        tg.ones(2)
    assert tg.ones(2).sum() == 2


def test_helpers(enabled):
    s, o = tg.ones(2).as_subclass(Noted), Answer()
    assert overrides.is_tensor_like(o) and overrides.is_tensor_like(s) and not overrides.is_tensor_like([])
    assert overrides.has_torch_function((1, o)) and overrides.has_torch_function_unary(s)
    assert not overrides.has_torch_function_variadic(tg.ones(2), tg.nn.Parameter(tg.ones(2)))

    def double(x):
        return overrides.handle_torch_function(double, (x,), x) if overrides.has_torch_function_unary(x) else x * 2

    assert double(o) == ("double", (Answer,), 1, None) and double(3) == 6
    with overrides.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function((s,))
        assert type(s + 1) is tg.Tensor


LAYERS = {
    "relu": tg.nn.ReLU(),
    "sigmoid": tg.nn.Sigmoid(),
    "softmax": tg.nn.Softmax(-1),
    "leaky_relu": tg.nn.LeakyReLU(),
    "conv1d": tg.nn.Conv1d(1, 1, 1),
    "max_pool1d": tg.nn.MaxPool1d(2),
    "dropout": tg.nn.Dropout(),
    "linear": tg.nn.Linear(4, 1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_ask(enabled, name):
    assert LAYERS[name](Answer())[0] == name
    assert type(LAYERS[name](tg.ones(1, 4).as_subclass(Noted))) is Noted


def test_layers_of_several_functions_keep_a_subclass(enabled):
    x = tg.ones(3, 2, 4).as_subclass(Noted)
    out, (h, c) = tg.nn.LSTM(4, 4)(x)
    attended, weights = tg.nn.MultiheadAttention(4, 2)(x, x, x)
    loss = tg.nn.MSELoss()(x, tg.zeros(3, 2, 4))
    assert {type(t) for t in (out, h, c, attended, weights, loss, tg.nn.Flatten()(x))} == {Noted}


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
)
def test_an_operator_that_nobody_answers_is_left_to_the_right_side(enabled, name):
    declines = classmethod(lambda cls, function, types, args=(), kwargs=None: NotImplemented)
    right = type("Right", (), {"__torch_function__": declines, f"__r{name}__": lambda self, other: name})()
    x = tg.ones(2, dtype=tg.int64)
    apply = getattr(operator, name if hasattr(operator, name) else f"{name}_")
    assert apply(x, right) == getattr(operator, f"i{name}")(x, right) == name


def test_functions_and_layers_that_hold_them_are_pickled(enabled):
    for function in (F.relu, tg.stack, tg.linalg.norm, tg.special.erf, tg.Tensor.add, tg.Tensor.__mul__, tg.Tensor.sum):
        assert pickle.loads(pickle.dumps(function)) is function
    layer = pickle.loads(pickle.dumps(tg.nn.TransformerDecoderLayer(4, 2, activation=F.relu)))
    assert layer.activation is F.relu
    written = pickle.dumps([F.relu, tg.linalg.norm])
    overrides.disable()
    assert pickle.loads(written) == [F.relu, tg.linalg.norm]

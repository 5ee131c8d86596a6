"""Functional gradients: closed forms, nesting to any order, kinds of arguments, the ambient tape, threads."""

import asyncio
import collections
import dataclasses
import math
import sys
import threading
import typing

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.func import grad, grad_and_value, tree, value_and_grad, vjp


def derivatives(x):
    """x**2 sin x and its derivatives, by the Leibniz rule."""
    s = [math.sin(x + n * math.pi / 2) for n in range(8)]
    return [x * x * s[n] + 2 * n * x * s[n - 1] + n * (n - 1) * s[n - 2] for n in range(8)]


def f(x):
    return tg.sin(x) * x * x


KINDS = {
    "float": lambda v: v,
    "array": np.array,
    "numpy scalar": np.float64,
    "tensor": lambda v: tg.tensor(v, dtype=tg.float64),
    "leaf": lambda v: tg.tensor(v, dtype=tg.float64, requires_grad=True),
    "tracked": lambda v: tg.tensor(v / 2, dtype=tg.float64, requires_grad=True) * 2,
}

# ------------------------------------------------------------------------------------------------------------- nesting


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", range(1, 7))
def test_orders(kind, order):
    g = f
    for _ in range(order):
        g = grad(g)
    x = KINDS[kind](0.7)
    result = g(x)
    assert abs(float(result) - derivatives(0.7)[order]) < 1e-11
    expected = {"float": float, "array": np.ndarray, "numpy scalar": np.float64}.get(kind, tg.Tensor)
    assert type(result) is expected
    if expected is tg.Tensor:
        assert result.requires_grad == (kind in ("leaf", "tracked")) and result.dtype is tg.float64


def test_exponentials_at_any_order():
    g = lambda x: tg.exp(2.0 * x)  # noqa: E731
    for n in range(1, 9):
        g = grad(g)
        assert abs(g(0.3) - 2.0**n * math.exp(0.6)) < 1e-9 * 2.0**n


def test_perturbations_are_not_confused():
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert grad(lambda x: x * grad(lambda y: x * y)(2.0))(3.0) == 6.0
    assert grad(lambda x: grad(lambda y: x * x * y)(x))(3.0) == 6.0
    assert grad(lambda x: grad(lambda x: x * x)(x) * x)(3.0) == 12.0
    assert grad(lambda x: grad(lambda y: grad(lambda z: x * y * z * z)(y))(x))(2.0) == 16.0
    inner = grad(lambda y: y * y)
    assert grad(lambda x: inner(x) + inner(2.0) * x)(5.0) == 6.0


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_nested_closures_to_depth(depth):
    """d/dx_1 .. d/dx_n of the product of squares, each variable captured by the functions below it."""

    def level(n, captured):
        def inner(x):
            return level(n - 1, [*captured, x]) if n > 1 else math.prod([v * v for v in [*captured, x]])

        return grad(inner)(1.0 + n)

    expected = math.prod(2.0 * (1.0 + n) for n in range(1, depth + 1))
    assert abs(level(depth, []) - expected) < 1e-12 * expected


def test_a_tensor_passed_and_captured():
    x = tg.tensor(3.0, requires_grad=True)
    g = grad(lambda a: a * x)(x)
    assert float(g) == 3.0
    g.backward()
    assert float(x.grad) == 1.0
    assert float(grad(lambda a, b: a * a * b, (0, 1))(x, x)[0]) == 18.0


def test_gradient_of_a_gradient_norm():
    """A Hessian-vector product written as the gradient of a dot product."""
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    v = np.array([1.0, -2.0])
    h = grad(lambda x: (grad(lambda y: 0.5 * y @ (tg.tensor(a) @ y))(x) * tg.tensor(v)).sum())
    np.testing.assert_allclose(h(np.array([0.3, 0.4])), a @ v)


# ---------------------------------------------------------------------------------------------------- the ambient tape


def test_inside_a_function_differentiated_by_backward():
    for order in range(1, 5):
        x = tg.tensor(0.7, dtype=tg.float64, requires_grad=True)
        g = f
        for _ in range(order):
            g = grad(g)
        (g(x) * x).backward()
        d = derivatives(0.7)
        assert abs(x.grad.item() - (d[order + 1] * 0.7 + d[order])) < 1e-10


def test_captured_weights_are_reached():
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    g = grad(lambda x: (x * x * w).sum())(tg.tensor([3.0, 4.0]))
    assert g.requires_grad
    (g * g).sum().backward()
    assert w.grad.tolist() == [72.0, 256.0]
    assert grad(lambda x: (x * x).sum() + w.sum())(tg.ones(2)).requires_grad is False
    assert type(grad(lambda t: t * t + w.sum())(3.0)) is float
    assert type(grad(lambda t: t * t * w.sum())(3.0)) is tg.Tensor


def test_sdf_normals_train_the_network():
    net = nn.Sequential(nn.Linear(3, 8), nn.Softplus(beta=100), nn.Linear(8, 1)).double()
    points = tg.randn(5, 3, dtype=tg.float64)
    normals = grad(lambda p: net(p).sum())(points)
    p = points.clone().requires_grad_()
    (reference,) = tg.autograd.grad(net(p).sum(), p, create_graph=True)
    assert (normals == reference).all()
    loss = ((normals.norm(dim=-1) - 1) ** 2).mean()
    ours = tg.autograd.grad(loss, list(net.parameters()), allow_unused=True)
    theirs = tg.autograd.grad(((reference.norm(dim=-1) - 1) ** 2).mean(), list(net.parameters()), allow_unused=True)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None and b is None) or (a == b).all()


def test_no_grad_outside_and_inside():
    x = tg.tensor(0.7, dtype=tg.float64, requires_grad=True)
    with tg.no_grad():
        g = grad(grad(f))(x)
    assert not g.requires_grad and abs(g.item() - derivatives(0.7)[2]) < 1e-12

    def partly(x):
        with tg.no_grad():
            c = x * x
        return c * x

    assert grad(partly)(3.0) == 9.0
    assert tg.is_grad_enabled()


def test_backward_inside_is_recorded():
    def h(x):
        w = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
        (w * w * x).backward()
        return w.grad * x

    assert grad(h)(3.0) == 24.0
    assert grad(grad(h))(3.0) == 8.0

    def k(x):
        w = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
        return tg.autograd.grad(w**3 * x, w)[0] * x

    assert grad(k)(3.0) == 72.0


def test_outputs_come_out_untracked_unless_something_outside_matters():
    x, w = tg.ones(2), tg.ones(2, requires_grad=True)
    value, g = value_and_grad(lambda x: (x * x).sum())(x)
    assert not value.requires_grad and not g.requires_grad
    value, g = value_and_grad(lambda x: (x * w).sum())(x)
    assert value.requires_grad and g.requires_grad
    value.backward()
    assert w.grad.tolist() == [1.0, 1.0]
    _, aux = grad(lambda x: ((x * x).sum(), {"free": x.sin(), "w": w * x, "n": 5, "none": None}), has_aux=True)(x)
    assert not aux["free"].requires_grad and aux["w"].requires_grad and aux["n"] == 5 and aux["none"] is None
    y = tg.ones(2, requires_grad=True)
    _, aux = grad(lambda x: ((x * x).sum(), x * 3), has_aux=True)(y)
    aux.sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]


def test_aux_keeps_its_graph():
    """Entries that something outside still needs survive the transform's own pass."""
    w = tg.tensor(2.0, requires_grad=True)
    _, loss = grad(lambda x: ((y := tg.exp(x * w)), y * y), has_aux=True)(tg.tensor(1.0))
    loss.backward()
    assert abs(w.grad.item() - 2 * math.exp(4)) < 1e-3


def test_writes_inside_do_not_reach_the_argument():
    for make in (lambda: tg.ones(3), lambda: tg.ones(3, requires_grad=True) * 1, lambda: tg.ones(6)[::2]):
        x = make()

        def g(a, x=x):
            b = a * 2
            b[0] = 5.0
            with tg.no_grad():
                x.add_(1.0)
            return (b * a).sum()

        assert grad(g)(x).tolist() == [5.0, 4.0, 4.0]
        assert x.tolist() == [2.0, 2.0, 2.0]


def test_results_do_not_share_memory():
    a, b = np.ones(2), np.ones(2)
    x, y = grad(lambda a, b: (a + b).sum(), (0, 1))(a, b)
    x[0] = 7.0
    assert y.tolist() == [1.0, 1.0] and a.tolist() == [1.0, 1.0]
    out, pull = vjp(lambda a: a.exp(), a)
    out[:] = 0.0
    np.testing.assert_allclose(pull(np.ones(2))[0], np.e)
    ct = np.ones(2)
    (g,) = vjp(lambda a: a, a)[1](ct)
    g[0] = 3.0
    assert ct[0] == 1.0
    a[:] = 9.0
    np.testing.assert_allclose(pull(np.ones(2))[0], np.full(2, np.e))


def test_hooks():
    seen = []

    def g(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(g.item()) or g * 10)
        return y * y

    assert grad(g)(3.0) == 240.0 and seen == [12.0]
    x = tg.tensor(3.0, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    grad(lambda a: a * a)(y).backward()
    assert float(x.grad) == 40.0


# ----------------------------------------------------------------------------------------------------- kinds and trees


class Point(typing.NamedTuple):
    a: typing.Any
    b: typing.Any


@dataclasses.dataclass(frozen=True)
class Layer:
    w: typing.Any
    name: str = "layer"
    size: int = 3


def test_nested_arguments():
    def loss(p, scale):
        return (p["point"].a * p["list"][0]).sum() * scale + p["layer"].w.sum() * p["point"].b

    p = {"point": Point(np.ones(2), 2.0), "list": [np.arange(2.0)], "layer": Layer(tg.ones(3), "first"), "none": None}
    g = grad(loss)(p, 3.0)
    assert g["point"].a.tolist() == [0.0, 3.0] and g["point"].b == 3.0 and type(g["point"]) is Point
    assert g["list"][0].tolist() == [3.0, 3.0] and g["layer"].w.tolist() == [2.0, 2.0, 2.0] and g["layer"].name == "first"
    assert g["none"] is None and p["layer"].w.tolist() == [1.0, 1.0, 1.0]
    both = grad(loss, argnums=(1, 0))(p, 3.0)
    assert both[0] == 1.0 and both[1]["point"].b == 3.0


def test_values_and_aux():
    assert value_and_grad(lambda x: x * x)(3.0) == (9.0, 6.0)
    assert grad_and_value(lambda x: x * x)(3.0) == (6.0, 9.0)
    assert value_and_grad(lambda x: (x * x, "aux"), has_aux=True)(3.0) == ((9.0, "aux"), 6.0)
    assert grad_and_value(lambda x: (x * x, "aux"), has_aux=True)(3.0) == (6.0, (9.0, "aux"))
    assert grad(lambda x, *, k: x**k)(3.0, k=2) == 6.0
    assert grad(lambda x, y: x * y, argnums=-1)(3.0, 4.0) == 3.0
    assert grad(lambda x: x * x)(3) == 6.0 and grad(lambda z: (z * z.conj()).real)(1 + 2j) == 2 + 4j
    assert grad(f).__name__ == "f" and grad(nn.Identity())(2.0) == 1.0


def test_numpy_functions():
    x = np.arange(3.0)
    np.testing.assert_allclose(grad(lambda x: np.sum(np.sin(x) * x))(x), np.cos(x) * x + np.sin(x))
    np.testing.assert_allclose(grad(lambda x: np.sin(x) @ np.cos(x))(x), np.cos(2 * x), atol=1e-15)
    assert grad(lambda x: tg.ones(()).double())(x).tolist() == [0.0, 0.0, 0.0]
    assert grad(lambda x: (x * x).sum())(np.ones(2, np.float32)).dtype == np.float32


def test_floats_are_float64_whatever_the_default():
    assert tg.get_default_dtype() is tg.float32
    assert abs(grad(tg.sin)(0.1) - math.cos(0.1)) < 1e-16


def test_strong_zero_carries_over():
    g = lambda x: tg.where(x > 0, tg.sqrt(x), 0.0).sum()  # noqa: E731
    assert grad(g)(np.zeros(1)).tolist() == [0.0]
    assert grad(lambda x: grad(g)(x).sum())(np.zeros(1)).tolist() == [0.0]


# ----------------------------------------------------------------------------------------------------------------- vjp


def test_vjp():
    (y, s), pull = vjp(lambda a, b: (a * b, a.sum()), np.array([1.0, 2.0]), 3.0)
    assert y.tolist() == [3.0, 6.0] and type(s) is np.float64 and s == 3.0
    for _ in range(2):
        ga, gb = pull((np.ones(2), np.array(1.0)))
        assert ga.tolist() == [4.0, 4.0] and gb == 3.0
    out, pull, aux = vjp(lambda x: (x * 2, "aux"), tg.ones(2), has_aux=True)
    assert aux == "aux" and out.tolist() == [2.0, 2.0] and pull(tg.ones(2))[0].tolist() == [2.0, 2.0]
    assert vjp(lambda x, d: x * 2, tg.ones(2), {"a": tg.ones(1)})[1](tg.ones(2))[1]["a"].tolist() == [0.0]


def test_vjp_is_differentiable():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    v = tg.tensor([3.0, 4.0], requires_grad=True)
    _, pull = vjp(lambda a: a**3, x)
    (g,) = pull(v)
    g.sum().backward()
    assert x.grad.tolist() == [18.0, 48.0] and v.grad.tolist() == [3.0, 12.0]
    _, pull = vjp(lambda a: a**3, x.detach())
    assert pull(v)[0].requires_grad and not pull(v.detach())[0].requires_grad
    hvp = grad(lambda v: (vjp(lambda a: (a**3).sum(), np.array([2.0]))[1](tg.tensor(1.0).double())[0] * v).sum())
    np.testing.assert_allclose(hvp(np.array([1.0])), [12.0])


def test_a_later_write_into_an_output_changes_nothing():
    x = tg.tensor([1.0, 2.0])
    y, pull = vjp(lambda a: a.exp(), x)
    expected = y.tolist()
    y.zero_()
    x.zero_()
    assert pull(tg.ones(2))[0].tolist() == expected


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "act, kind, text",
    [
        (lambda x: grad(lambda x: x)(x), RuntimeError,
         "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with 1 dims. Maybe you "
         "wanted to use the vjp or jacrev APIs instead?"),
        (lambda x: grad(lambda x: 1.0)(x), RuntimeError,
         "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got <class 'float'>"),
        (lambda x: grad(lambda x: x.sum())(x.long()), RuntimeError,
         "only Tensors of floating point dtype can require gradients. This one is of torch.int64: array.astype(float) or"),
        (lambda x: grad(lambda x: x)("a"), ValueError, "Thing passed to transform API must be Tensor, got <class 'str'>"),
        (lambda x: grad(lambda x: x.sum(), argnums=3)(x), RuntimeError, "Got argnum=3, but only 1 positional inputs"),
        (lambda x: grad(lambda x: x.sum(), argnums=())(x), RuntimeError, "argnums must be non-empty"),
        (lambda x: grad(lambda x: x.sum(), argnums=(0, 0))(x), RuntimeError, "argnums elements must be unique, got (0, 0)"),
        (lambda x: grad(lambda x: x.sum(), argnums="a")(x), RuntimeError,
         "argnums must be int or Tuple[int, ...], got: <class 'str'>"),
        (lambda x: grad(lambda x: x.sum(), has_aux=True)(x), RuntimeError,
         "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"),
        (lambda x: grad(lambda x: x.sum() * 1j)(x), RuntimeError,
         "grad can be implicitly created only for real scalar outputs but got"),
        (lambda x: vjp(lambda x: 1.0, x), RuntimeError,
         "vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type <class 'float'>"),
        (lambda x: vjp(lambda x: x > 0, x), RuntimeError,
         "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype"),
        (lambda x: vjp(lambda x: (x, x), x)[1](x), RuntimeError,
         "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
         "cotangents: *, primal output: (*, *)"),
        (lambda x: vjp(lambda x: x, x)[1](tg.ones(2)), RuntimeError,
         "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of torch.Size([3])"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(act, kind, text):
    with pytest.raises(kind) as caught:
        act(tg.ones(3))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "f, x, kind, note",
    [
        (lambda x: np.sum(np.sin(x)), [1.0, 2.0], RuntimeError, "a list of 2 tensors. For one array, pass numpy.array(..)."),
        (lambda x: (x**2).sum(), ([1.0], [2.0]), TypeError, "a tuple of 2 tensors. For one array, pass numpy.array(..)."),
        (lambda x: x.copy().sum(), np.ones(2), AttributeError, "methods are PyTorch's: numpy.copy(x) is NumPy's."),
        (lambda x: x.fill(2), np.ones(2), AttributeError, "methods are PyTorch's: docs/numpy.md says what differs."),
        (lambda x: x.sum() / x.size, np.ones(2), TypeError, "x.size is one, and numpy.size(x) the number of elements."),
        (lambda x: sum(x[i] for i in range(x.size)), np.ones(2), TypeError, "numpy.size(x) the number of elements."),
    ],
)  # fmt: skip
def test_errors_of_code_for_arrays_have_a_remark(f, x, kind, note):
    for transform in (grad, tg.func.hessian, lambda f: grad(grad(f))):
        with pytest.raises(kind) as caught:
            transform(f)(x)
        assert [n.endswith(note) for n in caught.value.__notes__] == [True]


@pytest.mark.parametrize(
    "transform",
    [
        tg.func.jacfwd,
        tg.func.laplacian,
        tg.func.vmap,
        lambda f: tg.func.nth_derivative(f, 2),
        lambda f: lambda x: tg.func.jvp(f, (x,), (x,)),
    ],
)
def test_forward_transforms_have_the_remark(transform):
    with pytest.raises(AttributeError) as caught:
        transform(lambda x: x.astype(float))(np.ones((2, 3)))
    assert [n.endswith("numpy.astype(x) is NumPy's.") for n in caught.value.__notes__] == [True]


def test_a_write_into_the_argument_has_a_remark():
    def doubled(x):
        x *= 2
        return x.sum()

    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad") as caught:
        grad(doubled)(np.ones(2))
    assert caught.value.__notes__[0].endswith("begin with x = numpy.copy(x), or x.clone().")
    assert grad(lambda x: doubled(np.copy(x)))(np.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("f", [lambda x: x[0] + [1], lambda x: x[0].nothing, lambda x: 1 / 0])
def test_other_errors_have_no_remark(f):
    with pytest.raises((TypeError, AttributeError, ZeroDivisionError)) as caught:
        grad(f)([tg.ones(2)])
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    "transform", [grad, tg.func.jacrev, tg.func.jacfwd, tg.func.laplacian, lambda f: tg.func.nth_derivative(f, 2)]
)
def test_a_number_in_place_of_a_tensor_is_explained(transform):
    with pytest.raises(RuntimeError, match=r"float64'>\. It carries no gradient\. float\(x\), x\.item\(\)"):
        transform(lambda x: np.float64(1.0))(np.ones(2))


def test_an_exception_inside_restores_everything():
    with tg.no_grad():
        with pytest.raises(ZeroDivisionError):
            grad(lambda x: 1 / 0)(1.0)
        assert not tg.is_grad_enabled()
    w = tg.tensor(2.0, requires_grad=True)
    (w * w).backward()
    assert not w.grad.requires_grad


# ---------------------------------------------------------------------------------------------- memory, threads, tasks


@pytest.mark.counted
def test_nothing_stays_on_the_tape():
    tg.tape().clear()
    g = grad(grad(grad(f)))
    g(0.7)
    value_and_grad(lambda x: (x.sin() * x).sum())(tg.ones(3))
    assert len(tg.tape()) < 5


def test_the_cost_does_not_grow_with_the_ambient_graph():
    w = tg.tensor(1.0, requires_grad=True)
    for _ in range(2000):
        w = w * 1.0
    visited = []
    reached = sys.modules["tapegrad.core.reverse"].reach

    def counting(slots, tape, floor=0, released=None):
        found = reached(slots, tape, floor, released)
        visited.append(len(found[0]))
        return found

    sys.modules["tapegrad.core.reverse"].reach = counting
    try:
        grad(lambda x: x * x * w)(tg.tensor(2.0))
    finally:
        sys.modules["tapegrad.core.reverse"].reach = reached
    assert max(visited) < 20


def test_threads():
    g3 = grad(grad(grad(f)))
    expected = derivatives(0.7)[3]
    wrong = []

    def work():
        for _ in range(60):
            if abs(g3(0.7) - expected) > 1e-11 or grad(lambda x: x * grad(lambda y: x * y)(2.0))(3.0) != 6.0:
                wrong.append(1)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_a_captured_tensor_of_another_thread():
    w = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
    scaled = w * 3
    box = []
    thread = threading.Thread(target=lambda: box.append(grad(lambda x: x * x * scaled)(tg.tensor(5.0, dtype=tg.float64))))
    thread.start()
    thread.join()
    assert float(box[0]) == 60.0
    box[0].backward()
    assert float(w.grad) == 30.0


def test_tasks():
    async def one(x):
        def g(y):
            return y * y * x

        await asyncio.sleep(0)
        first = grad(g)(x)
        await asyncio.sleep(0)
        return first

    async def every():
        return await asyncio.gather(*[one(float(n)) for n in range(6)])

    assert asyncio.run(every()) == [2.0 * n * n for n in range(6)]


# ---------------------------------------------------------------------------------------------------------------- tree


def test_tree_round_trip():
    cases = [
        1.0, (), [], {}, None, (1.0, [2.0, {"a": 3.0}]), Point(1.0, (2.0,)), collections.OrderedDict(b=1.0, a=2.0),
        collections.defaultdict(list, {"x": 1.0}), Layer(1.0), [Layer([1.0, 2.0])],
    ]  # fmt: skip
    for case in cases:
        leaves, spec = tree.flatten(case)
        back = tree.unflatten(spec, leaves)
        assert back == case and type(back) is type(case)
        assert tree.flatten(case)[1] == spec and hash(spec) == hash(tree.flatten(case)[1])
    assert str(tree.flatten({"a": (1.0,), "b": [2.0, None]})[1]) == "{'a': (*,), 'b': [*, NoneType()]}"
    assert tree.mapped(lambda v: v * 2, {"a": [1.0, 2.0]}) == {"a": [2.0, 4.0]}


def test_a_gradient_that_would_be_lost_at_float_is_warned_of():
    def through_array(x):
        y = np.zeros(2)
        y[0] = x[0] ** 2
        return y.sum() + x.sum()

    for f, x in (
        (through_array, np.array([3.0, 1.0])),
        (lambda x: math.sin(x) * x, 1.0),
        (lambda x: np.float64(x) * x, 3.0),
    ):
        with pytest.warns(UserWarning, match="carries no gradient"):
            tg.func.grad(f)(x)
    assert tg.func.grad(lambda x: x * x.item())(3.0) == 3.0  # a number is meant


def test_what_a_transform_leaves_outside_has_no_history_inside_it():
    x = tg.tensor([1.0, 2.0])
    w = tg.tensor([3.0, 4.0], requires_grad=True)
    s = tg.zeros(())
    base = tg.zeros(2, 2)
    row = base[0]

    def f(z):
        (w * z).sum().backward()
        s.add_(z.sum())
        row.copy_(z)
        return (w.grad * z).sum()

    for transform in (tg.func.grad(f), lambda z: tg.func.vjp(f, z)[1](tg.tensor(1.0))[0], tg.func.jacrev(f)):
        w.grad = None
        s.zero_()
        result = transform(x)
        assert result.tolist() == [2.0, 4.0]  # w.grad is z itself
        assert w.grad.tolist() == [1.0, 2.0] and not w.grad.requires_grad
        assert s.item() == 3.0 and not s.requires_grad
        assert base[0].tolist() == [1.0, 2.0] and not base.requires_grad and not row.requires_grad

    def failing(z):
        f(z)
        raise KeyError

    with pytest.raises(KeyError):
        tg.func.grad(failing)(x)
    assert not w.grad.requires_grad and not s.requires_grad


def test_what_an_inner_transform_wrote_belongs_to_the_outer_one():
    s = tg.zeros(())

    def f(a):
        g = tg.func.grad(lambda b: (s.copy_(a * b * b), a * b)[1])(a)
        return g * s  # s = a^3 seen by the outer transform, g = a

    assert tg.func.grad(f)(tg.tensor(2.0)).item() == 32.0
    assert s.item() == 8.0 and not s.requires_grad

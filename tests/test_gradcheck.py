"""gradcheck, gradgradcheck and check_grads: right functions pass, each kind of wrong one is detected and named."""

import copy
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.autograd import GradcheckError, gradcheck, gradgradcheck
from tapegrad.autograd.gradcheck import random_cotangent
from tapegrad.core import factories
from tapegrad.core.op import TABLE, Op


def leaf(*values, dtype=None):
    return tg.tensor(list(values), dtype=dtype or tg.float64, requires_grad=True)


X = (0.3, -1.2, 2.0)
Z = (0.3 + 0.4j, -1.1 + 0.2j)

# name: (kind, forward, rules); those called wrong_* are
RECORDS = {
    "wrong_sin": ("elementwise", np.sin, [lambda xp, ans, x: 1.01 * xp.cos(x)]),
    "cos_wrong_slope": ("elementwise", np.cos, [lambda xp, ans, x: -1.01 * xp.sin(x)]),
    "wrong_second": ("elementwise", np.sin, [lambda xp, ans, x: xp.cos_wrong_slope(x)]),
    "wrong_third": ("elementwise", np.sin, [lambda xp, ans, x: xp.wrong_cos(x)]),
    "wrong_cos": ("elementwise", np.cos, [lambda xp, ans, x: xp.neg(xp.wrong_second_sin(x))]),
    "wrong_second_sin": ("elementwise", np.sin, [lambda xp, ans, x: xp.cos(x) * 1.01]),
    "no_conjugate": ("general", lambda z: 2j * z, [lambda xp, g, ans, z: 2j * g]),
    "right_turn": ("general", lambda z: 2j * z, [lambda xp, g, ans, z: -2j * g]),
    "not_multiplied": ("general", np.sin, [lambda xp, g, ans, x: xp.cos(x)]),
    "right_double": ("linear", lambda x: 2 * x, [lambda xp, g, ans, x: xp.right_double(g)]),
    "not_linear": ("general", lambda x: 2 * x, [lambda xp, g, ans, x: g + g * g]),
    "cos_wrong_forward": ("general", np.cos, [lambda xp, g, ans, x: -g * xp.sin(x)],
                          {"jvp": lambda xp, ts, ans, x: -1.01 * ts[0] * xp.sin(x)}),
    "wrong_mixed": ("elementwise", np.sin, [lambda xp, ans, x: xp.cos_wrong_forward(x)]),
    "wrong_forward": ("general", np.sin, [lambda xp, g, ans, x: g * xp.conj(xp.cos(x))],
                      {"jvp": lambda xp, ts, ans, x: 1.01 * ts[0] * xp.cos(x)}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def records():
    """The records under their names, as long as a test runs."""
    for name, (kind, forward, rules, *fields) in RECORDS.items():
        factories.make(Op(name, kind, forward, rules, saves="*", jax="host", **(fields[0] if fields else {})))
    yield
    for name in RECORDS:
        TABLE.pop(name)


def of(name):
    return lambda x: TABLE[name].call(x)


BOTH = pytest.mark.parametrize("fast", [False, True])


@BOTH
def test_right_functions_pass(fast):
    x, z = leaf(*X), leaf(*Z, dtype=tg.complex128)
    assert gradcheck(lambda x: (x.sin(), x * x.sum(), x.sum()), x, fast_mode=fast, check_forward_ad=True)
    assert gradcheck(lambda z: (z.exp() * z.conj(), z.abs()), [z], fast_mode=fast, check_forward_ad=True)
    assert gradcheck(of("right_turn"), z, fast_mode=fast)
    assert gradgradcheck(lambda x, z: x[:2].sin() * z * z.conj(), (x, z), fast_mode=fast)
    assert gradgradcheck(lambda x: x.sin() * x.sum(), x, fast_mode=fast, check_fwd_over_rev=True)


@BOTH
def test_a_wrong_gradient(fast):
    x = leaf(*X)
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        gradcheck(of("wrong_sin"), x, fast_mode=fast)
    assert gradcheck(of("wrong_sin"), x, fast_mode=fast, raise_exception=False) is False


def test_a_backward_that_is_not_linear():
    """Right for unit cotangents, so whole Jacobians do not show it; projections do."""
    assert gradcheck(of("not_linear"), leaf(*X))
    assert not gradcheck(of("not_linear"), leaf(*X), fast_mode=True, raise_exception=False)


def test_the_message_shows_both_jacobians():
    with pytest.raises(GradcheckError) as error:
        gradcheck(lambda x, y: (x, of("wrong_sin")(y)), (leaf(1.0), leaf(0.0)))
    assert str(error.value) == (
        "Jacobian mismatch for output 1 with respect to input 1,\nnumerical:tensor([[1.0000]], dtype=torch.float64)\n"
        "analytical:tensor([[1.0100]], dtype=torch.float64)\n"
    )


def test_fast_mode_shows_whole_jacobians_too():
    with pytest.raises(GradcheckError, match=r"(?s)in fast mode.*slow mode:.*Numerical:\n tensor\(\[\[1\..*Analytical:\n"):
        gradcheck(of("wrong_sin"), leaf(0.0), fast_mode=True)


@BOTH
def test_a_wrong_second_derivative(fast):
    x = leaf(*X)
    assert gradcheck(of("wrong_second"), x, fast_mode=fast)
    with pytest.raises(GradcheckError, match="^Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(of("wrong_second"), x, fast_mode=fast)
    assert not gradgradcheck(
        of("wrong_second"), x, fast_mode=fast, check_fwd_over_rev=True, check_rev_over_rev=False,
        check_undefined_grad=False, raise_exception=False,
    )  # fmt: skip


@BOTH
def test_a_forgotten_conjugate(fast):
    with pytest.raises(
        GradcheckError, match="^While considering the imaginary part of complex outputs only, Jacobian mismatch"
    ):
        gradcheck(of("no_conjugate"), leaf(*Z, dtype=tg.complex128), fast_mode=fast)


def test_a_backward_that_is_not_multiplied():
    x = leaf(*X)
    with pytest.raises(GradcheckError, match="^Jacobian mismatch"):
        gradcheck(of("not_multiplied"), x)
    with pytest.raises(GradcheckError, match="^backward not multiplied by grad_output$"):
        gradcheck(lambda x: of("not_multiplied")(x).sum(), leaf(0.5))


@BOTH
def test_a_wrong_forward_derivative(fast):
    x = leaf(*X)
    assert gradcheck(of("wrong_forward"), x, fast_mode=fast)
    with pytest.raises(GradcheckError, match="^Jacobian computed with forward mode mismatch for output 0 with respect to"):
        gradcheck(of("wrong_forward"), x, check_forward_ad=True, fast_mode=fast)


def test_a_wrong_forward_derivative_of_complex_inputs():
    z = leaf(*Z, dtype=tg.complex128)
    text = "^While considering the imaginary part of complex inputs only, Jacobian computed with forward mode mismatch"
    with pytest.raises(GradcheckError, match=text):
        gradcheck(of("wrong_forward"), z, check_forward_ad=True)


class Pair(tg.autograd.Function):
    """(2a, 3b), whose backward counts a missing cotangent as 1."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return a * 2, b * 3

    @staticmethod
    def backward(ctx, g, h):
        return 2 * (tg.ones(1) if g is None else g), 3 * (tg.ones(1) if h is None else h)


class Refuses(Pair):
    """The same, but it fails where a cotangent is missing and the other is 0."""

    @staticmethod
    def backward(ctx, g, h):
        if (g is None) != (h is None) and not (h if g is None else g).any():
            raise RuntimeError("a cotangent is missing")
        return None if g is None else 2 * g, None if h is None else 3 * h


class Invents(Pair):
    """The same, but it gives a gradient there."""

    @staticmethod
    def backward(ctx, g, h):
        if g is None and not h.any():
            return tg.ones(1), 3 * h
        return None if g is None else 2 * g, None if h is None else 3 * h


@pytest.mark.parametrize(("pair", "text"), [
    (Pair, "^Jacobian mismatch for output 0 with respect to input 1"),
    (Refuses, r"^Expected backward function to handle undefined output grads\."),
    (Invents, r"^Expected all input grads to be undefined or zero when all output grads are undefined or zero\."),
])  # fmt: skip
def test_undefined_cotangents(pair, text):
    inputs = (leaf(0.5), leaf(0.7))
    with pytest.raises(GradcheckError, match=text):
        gradcheck(pair.apply, inputs)
    assert gradcheck(pair.apply, inputs, check_undefined_grad=False, raise_exception=False) is (pair is not Pair)


def test_several_outputs_of_which_one_may_be_left_alone():
    assert gradcheck(
        lambda x: tg.linalg.slogdet(x), tg.tensor([[2.0, 0.5], [0.1, 1.0]], dtype=tg.float64, requires_grad=True)
    )
    assert gradcheck(lambda x: x.max(0), leaf(*X))


def test_captured_inputs_are_moved_too():
    layer = tg.nn.Linear(2, 2).double()
    x = leaf(0.5, -1.0)
    assert gradcheck(lambda *_: layer(x).tanh(), (x, *layer.parameters()))
    assert gradgradcheck(lambda *_: layer(x).tanh(), (x, *layer.parameters()))
    with pytest.raises(GradcheckError, match="with respect to input 1"):
        gradcheck(lambda *_: layer(x) * layer.weight.detach().sum(), (x, *layer.parameters()))


def test_inputs_are_restored():
    x, y = leaf(*X), tg.ones(3, dtype=tg.float64)
    before, state = x.detach().clone(), tg.get_rng_state()
    gradcheck(lambda x, y: x.sin() * y, (x, y), check_forward_ad=True)
    gradcheck(lambda x, y: x.sin() * y, (x, y), fast_mode=True)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: x if x[0].item() == X[0] else 1 / 0, x)
    assert tg.equal(x, before) and x.grad is None and x.requires_grad and not y.requires_grad
    assert tg.equal(tg.get_rng_state(), state)


@pytest.mark.parametrize("check, options, following", [
    (gradgradcheck, {}, 0.022325754165649414), (gradgradcheck, {"fast_mode": True}, 0.022325754165649414),
    (gradcheck, {"check_batched_grad": True}, 0.41940832138061523),
])  # fmt: skip
def test_directions_are_drawn_as_in_pytorch(check, options, following):
    """A seeded program that checks before it trains goes on with PyTorch's numbers."""
    x = tg.ones(2, 3, dtype=tg.float64, requires_grad=True)
    tg.manual_seed(0)
    assert check(lambda x: (x**3).sin(), x, **options)
    assert tg.rand(1).item() == following


def test_single_precision_warns_once_an_input():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradcheck(lambda x, y: x.double() * y, (leaf(*X, dtype=tg.float32), leaf(*X)), eps=1e-2, atol=1e-2)
    assert [str(w.message)[:55] for w in caught] == ["Input #0 requires gradient and is not a double precisio"]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("result", [2.0, None, np.ones(3), (1,)])
def test_functions_that_return_no_tensor(result):
    with pytest.raises(TypeError, match="the function must return a Tensor or a tuple of Tensors"):
        gradcheck(lambda x: result, leaf(*X))


def test_batched_derivatives():
    x = leaf(*X)
    assert gradcheck(lambda x: (x.sin(), x * x), x, check_batched_grad=True)
    assert gradgradcheck(lambda x: x.sin(), x, check_batched_grad=True)
    assert gradcheck(lambda x: (x.sin(), x * x), x, check_forward_ad=True, check_batched_forward_grad=True)


def halved(op, n, args, batched, params):
    return op.call(*args) * 0.5


@pytest.mark.parametrize("options", [
    {"check_batched_grad": True}, {"check_forward_ad": True, "check_batched_forward_grad": True},
])  # fmt: skip
def test_a_wrong_batch_rule(options):
    TABLE["right_double"].batch = halved
    f = of("right_double")
    assert gradcheck(f, leaf(*X), check_forward_ad=True)
    with pytest.raises(GradcheckError, match=r"(?s)^For output 0 and input 0:\n.*Got:\ntensor.*Expected:\ntensor"):
        gradcheck(f, leaf(*X), **options)


def test_non_contiguous_cotangents():
    for y in (leaf(*X), leaf(*Z, dtype=tg.complex128), tg.ones(2, 3)):
        for scattered in (False, True):
            g = random_cotangent(y, scattered)
            assert g.shape == y.shape and g.dtype == y.dtype and g.requires_grad and g.is_contiguous() is not scattered
            assert 0 < g.detach().abs().max() < 1.5
    assert gradgradcheck(lambda x: x.sin() * x, leaf(*X), gen_non_contig_grad_outputs=True)


def test_given_cotangents():
    x, g = leaf(*X), tg.ones(3, dtype=tg.float64)
    assert gradgradcheck(lambda x: x.sin(), x, g)
    assert gradgradcheck(lambda x: x.sin(), (x,), (g.requires_grad_(),))


# --------------------------------------------------------------------------------------------------------- check_grads


@pytest.mark.parametrize("modes", [("rev",), ("fwd",), "rev", ("rev", "fwd")])
def test_check_grads_in_every_mode(modes):
    testing.check_grads(lambda x, y: (x.log() * y.sin()).sum(0), (np.array([0.5, 1.5]), np.array([0.3, -0.7])), 3, modes)
    testing.check_grads(lambda z: z * z.conj() * z, np.array(Z), 3, modes)
    testing.check_grads(lambda x: np.sin(x) * x, 0.5, 3, modes)


@pytest.mark.parametrize(("name", "order", "mode"), [
    ("wrong_sin", 1, "rev"), ("wrong_sin", 1, "fwd"), ("wrong_second", 2, "rev"), ("wrong_second", 2, "fwd"),
    ("wrong_third", 3, "rev"), ("wrong_third", 3, "fwd"), ("wrong_forward", 1, "fwd"),
])  # fmt: skip
def test_check_grads_names_order_and_mode(name, order, mode):
    x = np.array(X)
    if order > 1:
        testing.check_grads(of(name), x, order - 1, modes=(mode,))
    path = " over ".join([mode] * order)
    text = (
        f"{('first', 'second', 'third')[order - 1]} derivative differs in mode {path}\\.\\n  got: +[-0-9.]+\\n  expected: "
    )
    with pytest.raises(testing.LawError, match=text) as error:
        testing.check_grads(of(name), x, order, modes=(mode,))
    assert error.value.law == "check_grads"
    got, expected = (float(line.split(":")[1].split()[0]) for line in str(error.value).splitlines()[1:3])
    assert 1e-5 < abs(got - expected) < 0.1


def test_check_grads_of_a_forgotten_conjugate():
    testing.check_grads(of("right_turn"), np.array(Z), 3)
    with pytest.raises(testing.LawError, match="first derivative differs in mode rev"):
        testing.check_grads(of("no_conjugate"), np.array(Z))


def test_check_grads_in_mixed_modes():
    """A rule with another record in its text, whose forward derivative is wrong."""
    testing.check_grads(of("wrong_mixed"), np.array(X), 3, modes=("rev",))
    testing.check_grads(of("wrong_mixed"), np.array(X), 1)
    with pytest.raises(testing.LawError, match="second derivative differs in mode fwd over rev"):
        testing.check_grads(of("wrong_mixed"), np.array(X), 2)


def test_check_grads_of_nested_arguments():
    def f(layers, options, scale):
        return {"y": [(w @ w.T).tanh() * b for w, b in layers], "n": options["n"], "s": scale * scale}

    layers = [(np.array([[0.5, 1.0]]), np.array([0.3])), (np.array([[1.5, -1.0]]), np.array([0.7]))]
    testing.check_grads(f, (layers, {"n": 3, "name": "a"}, 0.5), 2)

    def forgets(layers, options, scale):
        return f([(w, b.detach()) for w, b in layers], options, scale)

    with pytest.raises(testing.LawError, match="forgets: first derivative differs"):
        testing.check_grads(forgets, (copy.deepcopy(layers), {"n": 3}, 0.5), 1)


def test_check_grads_tolerances():
    x = np.array(X)
    testing.check_grads(of("wrong_sin"), x, 1, rtol=0.1)
    testing.check_grads(of("wrong_sin"), x, 1, atol=1.0)
    testing.check_grads(lambda x: x**3, x, 1, eps=1e-6, rtol=1e-6)
    with pytest.raises(testing.LawError):
        testing.check_grads(lambda x: x**3, x, 1, eps=1.0)
    with pytest.raises(testing.LawError):
        testing.check_grads(of("wrong_sin"), x, 1, rtol=1e-4)


def test_check_grads_without_a_tensor_argument():
    with pytest.raises(TypeError, match=r"check_grads\(\): f was given no floating-point tensor"):
        testing.check_grads(lambda n: n, (3,))
    with pytest.raises(TypeError, match=r"check_grads\(\): f returned no floating-point tensor"):
        testing.check_grads(lambda x: x > 0, np.array(X))
    with pytest.raises(ValueError, match="modes are 'rev' and 'fwd'"):
        testing.check_grads(lambda x: x, np.array(X), modes=("reverse",))
    with pytest.raises(TypeError, match="needs inputs of float64 or complex128, but input 1 is float32"):
        testing.check_grads(lambda x, y: x * y, (np.ones(2), np.ones(2, np.float32)))

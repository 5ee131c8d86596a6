"""tg.custom: operations that users define, and the laws that check them."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import custom, func, testing
from tapegrad.autograd import grad
from tapegrad.core.op import TABLE, Op


def close(t, expected):
    np.testing.assert_allclose(t.detach().numpy(), expected, rtol=1e-12, atol=1e-14)


def softsign(**fields):
    return custom.elementwise(
        "softsign", lambda x: x / (1 + np.abs(x)), lambda xp, ans, x: (1 + xp.abs(x)) ** -2.0, doc="x / (1 + |x|).", **fields
    )


def test_elementwise_of_tensors_arrays_and_numbers():
    f = softsign(check=False)
    x = tg.tensor([-1.0, 3.0], requires_grad=True)
    y = f(x)
    assert y.tolist() == [-0.5, 0.75] and y.grad_fn.name() == "SoftsignBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0.25, 0.0625]
    assert f(np.array([1.0])).dtype == tg.float64 and f(1).item() == 0.5 and f(3.0).dtype == tg.float32
    assert f.__name__ == "softsign" and f.__doc__ == "x / (1 + |x|)."
    assert f(tg.tensor([1.0], dtype=tg.float16)).dtype == tg.float16
    with pytest.raises(TypeError):
        f("text")


def test_elementwise_in_every_transform():
    f = softsign(check=False)
    testing.check_grads(f, np.array([0.4, -0.7]), order=3)
    x = tg.tensor([0.5, -0.25], dtype=tg.float64)
    close(func.vmap(func.grad(func.grad(f)))(x), [-2 / 1.5**3, 2 / 1.25**3])
    close(func.jvp(f, (x,), (tg.ones_like(x),))[1], [1 / 1.5**2, 1 / 1.25**2])


def test_several_arguments_and_a_parameter():
    f = custom.elementwise(
        "hypotenuse",
        lambda x, y, scale=1.0: scale * np.sqrt(x * x + y * y),
        lambda xp, ans, x, y, scale: x * scale * scale / ans,
        lambda xp, ans, x, y, scale: y * scale * scale / ans,
    )
    x, y = tg.tensor([[3.0], [6.0]], requires_grad=True), tg.tensor([4.0, 8.0], requires_grad=True)
    z = f(x, y, scale=2.0)
    assert z.shape == (2, 2) and z[0, 0].item() == 10.0
    z.sum().backward()
    expected = [[2 * 3 / 5 + 2 * 3 / math.sqrt(73)], [2 * 6 / math.sqrt(52) + 1.2]]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    assert f(tg.tensor(3.0), 4.0).item() == 5.0 and f(3.0, tg.tensor(4.0), 3.0).item() == 15.0
    with pytest.raises(TypeError, match="missing a required argument"):
        f(x)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        f(x, y, size=1)


def test_three_arguments_of_which_one_is_constant():
    f = custom.elementwise(
        "lerp3",
        lambda a, b, w: a + (b - a) * w,
        lambda xp, ans, a, b, w: 1 - w,
        lambda xp, ans, a, b, w: w,
        None,
        samples=[(np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.array([0.25, 0.5]))],
    )
    a, w = tg.tensor([1.0], requires_grad=True), tg.tensor([0.25], requires_grad=True)
    f(a, 3.0, w).backward()
    assert a.grad.item() == 0.75 and w.grad is None


def test_ufunc_and_number_as_derivative():
    f = custom.elementwise("minus", np.negative, -1.0)
    testing.check_grads(f, np.array([0.4]), order=2)


def test_wrong_derivative_is_named_with_its_numbers():
    with pytest.raises(testing.LawError) as e:
        custom.elementwise("cube", lambda x: x**3, lambda xp, ans, x: 2 * x * x)
    text = str(e.value)
    assert e.value.law == "vjp" and e.value.op == "cube"
    assert text.startswith("elementwise operation 'cube' breaks the law vjp: first derivative\n")
    assert "\n  got:" in text and "\n  expected:" in text and "does not agree with finite differences" in text


@pytest.mark.parametrize(
    "law, forward, derivative",
    [
        ("value", lambda x: x + np.random.rand(), lambda xp, ans, x: xp.ones_like(x)),
        ("second_order", lambda x: x**3, lambda xp, ans, x: x * CONSTANTS(x)),
        ("dtypes", lambda x: x * x, lambda xp, ans, x: x * 2.0 + xp.cast(x * 0.0, np.dtype("f8"))),
    ],
)
def test_other_laws(law, forward, derivative):
    with pytest.raises(testing.LawError) as e:
        custom.elementwise("broken", forward, derivative)
    assert e.value.law == law
    assert custom.HINTS[law] in str(e.value)


def CONSTANTS(x):
    """3 x, hidden from the tape."""
    return 3 * (x.detach() if isinstance(x, tg.Tensor) else x)


def test_a_refused_definition_leaves_the_old_one():
    f = softsign(check=False)
    before = custom._KEYS["softsign"]
    with pytest.raises(testing.LawError):
        custom.elementwise("softsign", lambda x: x * 2, lambda xp, ans, x: 3.0 * xp.ones_like(x))
    assert custom._KEYS["softsign"] == before and f(1.0).item() == 0.5


def test_redefinition_replaces_and_recorded_graphs_stay():
    f = custom.linear("twice", lambda x: 2 * x, lambda g: 2 * g, samples=[np.ones(2)])
    x = tg.tensor([1.0], requires_grad=True)
    y = f(x)
    g = custom.linear("twice", lambda x: 3 * x, lambda g: 3 * g, samples=[np.ones(2)])
    assert grad(y, x)[0].item() == 2.0 and grad(g(x), x)[0].item() == 3.0


def test_names_of_the_table_are_free():
    before = tg.exp, TABLE["exp"]
    f = custom.elementwise("exp", lambda x: x * x, lambda xp, ans, x: 2 * x)
    assert (tg.exp, TABLE["exp"]) == before and f(3.0).item() == 9.0 and "exp" not in vars(custom)


def test_operation_that_is_its_own_derivative():
    f = custom.elementwise(
        "falling",
        lambda x, n=3: np.asarray(x**n if n > 0 else np.ones_like(x) * (n == 0)),
        lambda xp, ans, x, n: n * custom.use(xp, "falling")(x, n - 1),
    )
    x = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
    y = f(x, 3)
    values = []
    for _ in range(4):
        (y,) = grad(y, x, create_graph=True)
        values.append(y.item())
    assert values == [12.0, 12.0, 6.0, 0.0]


# ---------------------------------------------------------------------------------------------------------------- linear


M = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]])


def test_linear_of_a_matrix():
    f = custom.linear("apply_m", lambda x: M @ x, lambda g: M.T @ g, samples=[np.arange(3.0)])
    x = tg.tensor([1.0, 2.0, 3.0], dtype=tg.float64, requires_grad=True)
    testing.check_grads(lambda x: f(x) ** 3, x, order=3)
    close(func.jvp(f, (x,), (tg.tensor([1.0, 0.0, 1.0], dtype=tg.float64),))[1], [1.0, 4.0])
    rows = tg.eye(3, dtype=tg.float64)
    close(func.vmap(f)(rows), M.T)
    close(func.vmap(func.grad(lambda x: f(x).square().sum()))(rows), 2 * (M.T @ M))
    assert f(x.float()).dtype == tg.float32


def test_linear_of_complex_numbers_takes_the_adjoint():
    C = M + 1j * M[::-1]
    z = np.array([1 + 1j, 2.0, -1j])
    f = custom.linear("apply_c", lambda x: C @ x, lambda g: C.conj().T @ g, samples=[z])
    close(f(z), C @ z)
    with pytest.raises(testing.LawError):
        custom.linear("apply_wrong", lambda x: C @ x, lambda g: C.T @ g, samples=[z])


def test_linear_with_a_transpose_in_terms_of_xp():
    f = custom.linear(
        "total",
        lambda x, k: k * x.sum(),
        lambda xp, g, ans, x, k: xp.expand(g * k, x.shape),
        samples=[(np.arange(3.0), 2.0)],
    )
    testing.check_grads(lambda x: f(x, 2.0) ** 2, np.arange(1.0, 4.0), order=2)


def test_wrong_transpose():
    with pytest.raises(testing.LawError, match="linear operation 'bad_transpose' breaks the law vjp"):
        custom.linear("bad_transpose", lambda x: M @ x, lambda g: 2 * M.T @ g, samples=[np.arange(3.0)])


def test_batch_rule():
    calls = []

    def batch(op, n, args, batched, params):
        calls.append(n)
        return args[0] @ tg.from_numpy(M.T)

    f = custom.linear("with_batch", lambda x: M @ x, lambda g: M.T @ g, samples=[np.arange(3.0)], batch=batch)
    calls.clear()
    close(func.vmap(f)(tg.eye(3, dtype=tg.float64)), M.T)
    assert calls == [3]


# --------------------------------------------------------------------------------------------------------------- general


def newton(a):
    x = np.full_like(a, 3.0)
    for _ in range(50):
        x = x - (x**3 - a * x - 1) / (3 * x**2 - a)
    return x


def test_implicit_function():
    f = custom.general("root", newton, lambda xp, g, ans, a: g * ans / (3 * ans**2 - a), samples=[np.array([0.5, 1.0, 2.0])])
    testing.check_grads(f, np.array([0.7, 1.3]), order=3)
    a = tg.tensor([0.7, 1.3], dtype=tg.float64)
    x = newton(a.numpy())
    close(func.jvp(f, (a,), (tg.ones_like(a),))[1], x / (3 * x * x - a.numpy()))
    close(func.vmap(func.grad(f))(a), x / (3 * x * x - a.numpy()))


def test_several_outputs_and_a_jvp():
    pushed = []

    def jvp(xp, tangents, ans, x):
        pushed.append(1)
        (t,) = tangents
        along = xp.sum(t * x, (0,), False)
        return [along / ans[0], 2 * along]

    f = custom.general(
        "norms",
        lambda x: (np.sqrt((x * x).sum()), (x * x).sum()),
        lambda xp, g, ans, x: x * (g[0] / ans[0] + 2 * g[1]),
        outputs=2,
        jvp=jvp,
        samples=[np.array([3.0, 4.0])],
    )
    x = tg.tensor([3.0, 4.0], dtype=tg.float64, requires_grad=True)
    a, b = f(x)
    (a + b).backward()
    close(x.grad, [6.6, 8.8])
    out = func.jvp(f, (x,), (tg.tensor([1.0, 0.0], dtype=tg.float64),))[1]
    assert pushed and [t.item() for t in out] == [0.6, 6.0]


def test_argument_without_a_derivative():
    f = custom.general(
        "double_where",
        lambda x, mask: np.where(mask, 2 * x, x),
        lambda xp, g, ans, x, mask: xp.where(mask, 2 * g, g),
        None,
        samples=[(np.array([1.0, 5.0]), np.array([True, False]))],
    )
    x = tg.tensor([1.0, 5.0], requires_grad=True)
    y = f(x, tg.tensor([True, False]))
    y.sum().backward()
    assert y.tolist() == [2.0, 5.0] and x.grad.tolist() == [2.0, 1.0]


# ---------------------------------------------------------------------------------------------------------------- errors


def test_bad_definitions():
    identity = lambda x: x  # noqa: E731
    with pytest.raises(ValueError, match="needs a derivative for each array argument"):
        custom.elementwise("none", identity)
    with pytest.raises(ValueError, match="must be an identifier, not 'a b'"):
        custom.elementwise("a b", identity, 1.0)
    with pytest.raises(ValueError, match=r"the laws need samples=\[...\] of the arguments of 'no_samples'"):
        custom.general("no_samples", identity, lambda xp, g, ans, x: g)
    with pytest.raises(ValueError, match=r"arguments of 'one_rule' \(y of its forward is no array: it has 1 derivative\)"):
        custom.elementwise("one_rule", lambda x, y: x * y, lambda xp, ans, x, y: y)
    with pytest.raises(TypeError, match="derivative 0 of 'text' must be a Python function, a number or None, not str"):
        custom.elementwise("text", identity, "x")
    with pytest.raises(TypeError, match=r"derivative 0 of 'short' must take 3 arguments, \(xp, ans, \*arrays"):
        custom.elementwise("short", identity, lambda ans, x: x)
    with pytest.raises(TypeError, match="the forward of 'stars' must name its arguments, 1 array first"):
        custom.elementwise("stars", lambda *xs: xs[0], 1.0)
    with pytest.raises(TypeError, match="the forward of 'few' must name its arguments, 2 arrays first"):
        custom.elementwise("few", identity, 1.0, 1.0)
    assert not any(n in custom._KEYS for n in ("none", "no_samples", "text", "short", "stars", "few"))


def test_misspelled_function_is_named():
    with pytest.raises(testing.LawError, match="sinus"):
        custom.elementwise("typo", np.cos, lambda xp, ans, x0: -xp.sinus(x0))


def test_laws_by_name_meet_the_newest_definition():
    custom.elementwise("redefined", np.sin, lambda xp, ans, x: xp.cos(x))
    custom.elementwise("redefined", np.cos, lambda xp, ans, x: xp.sin(x), check=False)
    with pytest.raises(testing.LawError, match="redefined"):
        testing.check("redefined")


def test_two_arguments_and_numbers():
    """A number beside an array is of its dtype: np.sin of a Python number would be a double."""
    f = tg.custom.elementwise(
        "sine_times", lambda x, y: x * np.sin(y), lambda xp, ans, x, y: xp.sin(y), lambda xp, ans, x, y: x * xp.cos(y)
    )
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = f(x, 0.5)
    assert y.dtype is tg.float32
    y.sum().backward()
    assert x.grad.dtype is tg.float32 and x.grad.tolist() == pytest.approx([math.sin(0.5)] * 2)
    testing.check("sine_times")
    with pytest.raises(KeyError, match="no operation 'sine_tims'"):
        testing.check("sine_tims")


# ------------------------------------------------------------------------------------------------ what a record saves


def test_a_record_without_saves_fails_at_definition_and_names_the_remedy():
    with pytest.raises(TypeError, match=r"op unsaved: saves= says what its rules read"):
        Op("unsaved", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),))
    with pytest.raises(TypeError, match=r"op unsaved: saves= names 'y', but its rule takes \('x',\)"):
        Op("unsaved", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),), saves="y")
    with pytest.raises(TypeError, match="op unsaved: 2 texts for 1 rules"):
        Op("unsaved", "elementwise", np.sin, (lambda xp, ans, x: xp.cos(x),), saves=("x", "x"))
    assert "unsaved" not in TABLE


def test_rules_of_any_form_read_what_is_saved():
    """A walrus stores and loads in one instruction on Python 3.13, which decoding of the rule once missed."""
    samples = [(np.array([0.5]), np.array([2.0]))]
    cube = custom.general(
        "walrus_cube", lambda x, y: x * y**2, lambda xp, g, ans, x, y: (c := g * y) * (c * 0.0 + y),
        lambda xp, g, ans, x, y: (c := g * y) * (2.0 * x) + 0.0 * c, samples=samples,
    )  # fmt: skip
    x, y = tg.tensor([3.0], requires_grad=True), tg.tensor([2.0], requires_grad=True)
    gx, gy = tg.autograd.grad(cube(x, y).sum(), (x, y), create_graph=True)
    assert (gx.item(), gy.item()) == (4.0, 12.0)
    assert tg.autograd.grad(gy.sum(), (x, y))[0].item() == 4.0


def test_saves_frees_what_is_not_read():
    kept = custom.elementwise("saving_tanh", np.tanh, lambda xp, ans, x: 1.0 - ans * ans, saves="ans")
    x = tg.tensor([0.5], dtype=tg.float64, requires_grad=True)
    y = kept(x * 1)
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(g.item(), 1 - np.tanh(0.5) ** 2, rtol=1e-15)
    testing.saves_necessary(TABLE["custom.saving_tanh"])


def test_a_jax_kernel_that_is_neither_function_nor_host_is_refused():
    with pytest.raises(TypeError, match='jax= is a function with the forward.s arguments, or "host"'):
        custom.elementwise("named_kernel", lambda x: np.sinh(x), lambda xp, ans, x: xp.cosh(x), jax="elementwise.sinh")

"""The drop-in for HIPS autograd: its functions, boxes, primitives and helpers, on tapegrad's tape."""

import importlib

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import compat


@pytest.fixture(scope="module", autouse=True)
def autograd():
    """The drop-in under autograd's name, while this file runs."""
    with compat.installed("autograd", replace=True):
        yield importlib.import_module("autograd")


@pytest.fixture(scope="module")
def anp(autograd):
    return importlib.import_module("autograd.numpy")


@pytest.fixture(scope="module")
def check(autograd):
    return importlib.import_module("autograd.test_util").check_grads


@pytest.fixture(autouse=True)
def seeded():
    np.random.seed(0)


X = np.array([0.5, -1.0, 2.0])


# ------------------------------------------------------------------------------------------------------------ operators


def test_grad_and_its_relatives(autograd, anp):
    def f(x):
        return anp.sum(anp.sin(x) ** 2)

    g = 2 * np.sin(X) * np.cos(X)
    np.testing.assert_allclose(autograd.grad(f)(X), g)
    value, gradient = autograd.value_and_grad(f)(X)
    assert type(value) is np.float64 and value == np.sum(np.sin(X) ** 2)
    np.testing.assert_allclose(gradient, g)
    np.testing.assert_allclose(autograd.elementwise_grad(anp.tanh)(X), 1 - np.tanh(X) ** 2)
    np.testing.assert_allclose(autograd.deriv(anp.tanh)(X), 1 - np.tanh(X) ** 2)
    np.testing.assert_allclose(autograd.jacobian(anp.tanh)(X), np.diag(1 - np.tanh(X) ** 2))
    np.testing.assert_allclose(autograd.hessian(f)(X), np.diag(2 * np.cos(2 * X)), atol=1e-15)
    np.testing.assert_allclose(autograd.grad(autograd.grad(lambda x: x**4))(2.0), 48.0)
    gradient, more = autograd.grad_and_aux(lambda x: (f(x), x * 2))(X)
    np.testing.assert_allclose(gradient, g)
    np.testing.assert_allclose(more, 2 * X)


def test_argnums_and_names(autograd, anp):
    def f(a, b, c=1.0):
        return anp.sum(a * b**2) * c

    assert autograd.grad(f, 1)(2.0, 3.0) == 12.0
    assert autograd.grad(f, [1, 0])(2.0, 3.0, c=2.0) == (24.0, 18.0)
    assert autograd.grad_named(f, "b")(2.0, 3.0) == 12.0
    assert autograd.grad(f, 1).__name__ == "grad_of_f_wrt_argnum_1"
    assert dict(autograd.multigrad_dict(f)(2.0, 3.0)) == {"a": 9.0, "b": 12.0, "c": 18.0}
    assert dict(autograd.multigrad_dict(lambda x, *more, k: x * more[0] * k)(2.0, 3.0, k=4.0)) == {
        "x": 12.0, "more": (8.0,), "k": 6.0,
    }  # fmt: skip


def test_products_with_vectors(autograd, anp):
    A, v = np.random.randn(4, 3), np.random.randn(3)

    def f(x):
        return anp.tanh(anp.dot(A, x))

    def energy(x):
        return anp.sum(f(x) ** 2)

    jacobian, hessian = autograd.jacobian(f)(X), autograd.hessian(energy)(X)
    np.testing.assert_allclose(autograd.make_jvp(f)(X)(v)[1], jacobian @ v)
    np.testing.assert_allclose(autograd.make_vjp(f)(X)[0](np.ones(4)), jacobian.T @ np.ones(4))
    np.testing.assert_allclose(autograd.make_hvp(energy)(X)[0](v), hessian @ v)
    np.testing.assert_allclose(autograd.hessian_vector_product(energy)(X, v), hessian @ v)
    np.testing.assert_allclose(autograd.vector_jacobian_product(f)(X, np.ones(4)), np.ones(4) @ jacobian)
    np.testing.assert_allclose(autograd.make_ggnvp(f)(X)(v), jacobian.T @ (jacobian @ v))
    reverse = importlib.import_module("autograd.differential_operators").make_jvp_reversemode
    np.testing.assert_allclose(reverse(f)(X)(v), jacobian @ v)


@pytest.mark.parametrize("block", [1, 60, 1000])
def test_jacobians_are_pulled_back_in_blocks(autograd, anp, extend, monkeypatch, block):
    core = importlib.import_module("autograd.core")
    monkeypatch.setattr(core, "BLOCK", block)
    A = np.random.randn(4, 2, 3)
    expected = (1 - np.tanh(A @ X) ** 2)[..., None] * A
    np.testing.assert_allclose(autograd.jacobian(lambda x: anp.tanh(anp.dot(A, x)))(X), expected)
    assert autograd.jacobian(lambda x: x * 2)(X.astype(np.float32)).dtype == np.float32
    tanh = extend.primitive(np.tanh)
    extend.defvjp(tanh, lambda ans, x: lambda g: np.multiply(g, 1 - ans**2, out=np.empty_like(ans)))
    np.testing.assert_allclose(autograd.jacobian(lambda x: tanh(anp.dot(A, x)))(X), expected)
    z = autograd.jacobian(lambda x: anp.real(x * x))(X + 1j)
    np.testing.assert_allclose(z, np.diag(2 * (X + 1j)))


def test_complex_gradients_are_hips_conjugates_of_pytorchs(autograd, anp):
    z = 1.0 + 2.0j
    assert autograd.grad(lambda x: anp.real(x) ** 2 + 3 * anp.imag(x))(z) == 2.0 - 3.0j
    np.testing.assert_allclose(autograd.holomorphic_grad(anp.exp)(z), np.exp(z))
    np.testing.assert_allclose(autograd.make_vjp(anp.exp)(z)[0](1j), 1j * np.exp(z))
    np.testing.assert_allclose(autograd.make_jvp(anp.exp)(z)(1j)[1], 1j * np.exp(z))
    with pytest.warns(UserWarning, match="Input to holomorphic_grad is not complex"):
        autograd.holomorphic_grad(anp.sin)(1.0)
    with pytest.raises(TypeError, match="Grad only applies to real scalar-output functions"):
        autograd.grad(lambda x: x * 1j)(1.0)


def test_containers(autograd, anp):
    def f(p):
        (w, b), more = p["layer"], p["more"]
        return anp.sum(w * 2) + b**2 + sum(anp.sum(m) for m in more)

    p = {"layer": (X, 3.0), "more": [np.ones(2), np.ones((1, 2))], "unused": np.ones(3)}
    g = autograd.grad(f)(p)
    assert type(g["layer"]) is tuple and type(g["more"]) is list and g["layer"][1] == 6.0
    np.testing.assert_array_equal(g["layer"][0], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(g["unused"], np.zeros(3))
    assert autograd.isinstance(p, autograd.dict) and autograd.isinstance([], autograd.list)
    assert autograd.tuple([1, 2]) == (1, 2) and autograd.dict(a=1) == {"a": 1}


@pytest.mark.parametrize("x", [3, [1.0, 2], "a", {"a": 1j, "b": True}])
def test_what_cannot_be_differentiated_by_is_a_type_error(autograd, x):
    with pytest.raises(TypeError):
        autograd.grad(lambda x: 1.0)(x)


def test_an_independent_output_is_warned_of(autograd, anp):
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        np.testing.assert_array_equal(autograd.grad(lambda x: 1.0)(X), np.zeros(3))
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert autograd.make_jvp(lambda x: 2.0)(1.0)(1.0) == (2.0, 0.0)
    with pytest.warns(UserWarning, match="independent"), pytest.raises(TypeError, match="Can't find vector space"):
        autograd.grad(lambda x: anp.allclose(x, 1.0))(X)


def test_gradients_pass_through_closures(autograd, anp, check):
    check(lambda x: x * autograd.grad(lambda y: anp.sin(x * y))(2.0))(1.3)
    check(lambda x: anp.sum(autograd.jacobian(lambda y: anp.sin(x * y))(X)))(1.3)


# ---------------------------------------------------------------------------------------------------------------- boxes


def test_a_box_is_like_an_array(autograd, anp, capsys):
    seen = []

    def f(x):
        box = importlib.import_module("autograd.numpy.numpy_boxes").ArrayBox
        assert type(x) is box and not isinstance(x, np.ndarray) and autograd.isinstance(x, np.ndarray)
        assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((3,), 1, 3, np.dtype(np.float64), 3)
        assert x.T.shape == (3,) and x.std().shape == () and x.reshape(3, 1).transpose(1, 0).shape == (1, 3)
        assert x.astype(np.float32).dtype == np.float32
        np.testing.assert_array_equal(x > 0, [True, False, True])
        assert bool(x[0] > 0) and x.argmax() == 2 and type(x._value) is np.ndarray
        for plain in (anp.floor(x), anp.sign(x), x // 1, anp.isfinite(x), anp.shape(x)):
            assert not isinstance(plain, box)
        assert [v.shape for v in x] == [()] * 3 and x[::-1].shape == (3,) and x[[0, 2]].shape == (2,)
        cube = anp.reshape(anp.outer(x, np.ones(4)), (3, 2, 2))
        assert cube[0, :, [0, 1, 1]].shape == (3, 2) == np.ones((3, 2, 2))[0, :, [0, 1, 1]].shape
        seen.append(x)
        print(x[0])
        return anp.sum(x * np.ones(3) + np.ones(3) @ x) + anp.sum(np.sin(x)) + np.add.reduce(x)

    np.testing.assert_allclose(autograd.grad(f)(X), 5.0 + np.cos(X))
    assert capsys.readouterr().out == "Autograd ArrayBox with value 0.5\n"
    np.testing.assert_array_equal(importlib.import_module("autograd.tracer").getval(seen[0]), X)


def test_a_box_cannot_be_written_into_or_made_a_number(autograd):
    def write(x):
        x[0] = 1.0

    def write_into_an_array(x):
        np.zeros(3)[0] = x[0]

    for f in (write, write_into_an_array, lambda x: float(x[0]), lambda x: int(x[0])):
        with pytest.raises((TypeError, ValueError)):
            autograd.grad(f)(X)


def test_functions_without_boxes_are_numpys(anp):
    assert type(anp.sum(X)) is np.float64 and type(anp.sin(X)) is np.ndarray and anp.where(True, 1, 2) == 1
    assert anp.pi == np.pi and anp.float64 is np.float64 and anp.ndarray is np.ndarray
    assert anp.random.RandomState is np.random.RandomState and anp.int64(3.5) == 3


def test_arrays_are_made_of_boxes(autograd, anp, check):
    check(lambda x: anp.array([[x, 1.0], [x**2, x * 2]]))(1.5)
    check(lambda x: anp.mean([x, x**2]) + anp.sum([x, 1.0]) + anp.linalg.norm([x, x + 2]))(1.5)
    check(lambda x: anp.r_[x, 1.0, x[:2], 0:2] * 2)(X)
    check(lambda x: anp.c_[x, X, anp.array([x, x]).T])(X)
    check(lambda x: anp.full(3, x[0]) + anp.concatenate_args(0, x[:1], x[1:]))(X)
    check(lambda x: anp.make_diagonal(x, axis1=-1, axis2=-2))(X)
    check(lambda x: anp.where(X > 0, x, x**2))(X)
    check(lambda x: anp.stack(v * 2 for v in x) + anp.concatenate(map(anp.atleast_1d, x)) + anp.hstack(x))(X)


def test_an_array_like_of_another_library_may_index(autograd, anp):
    class Series:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

    f = autograd.grad(lambda x: anp.sum(x[Series(X > 0)]) + anp.dot(x, Series(X)))
    np.testing.assert_allclose(f(X), (X > 0) + X)


def test_dtypes(autograd, anp):
    for dtype in (np.float16, np.float32, np.float64):
        assert autograd.grad(lambda x: anp.sum(x**2))(X.astype(dtype)).dtype == dtype
    assert autograd.grad(lambda x: anp.sum(x**2))(X.astype(np.longdouble)).dtype == np.float64
    np.testing.assert_array_equal(autograd.grad(lambda x: anp.sum(x**2))(np.arange(3)), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(autograd.grad(lambda x: anp.sum(x * np.ones(3, np.uint16)))(X), np.ones(3))


def test_matrices_are_read_from_one_triangle(anp, check):
    a = np.random.randn(3, 3)
    for triangle in "LU":
        check(lambda x, t=triangle: anp.linalg.eigh(x, t)[0])(a)
        check(lambda x, t=triangle: anp.linalg.eigh(x, t)[1])(a)
    check(lambda x: anp.linalg.eigvalsh(x))(a)


# ----------------------------------------------------------------------------------------------------------- primitives


@pytest.fixture(scope="module")
def extend(autograd):
    return importlib.import_module("autograd.extend")


def test_a_primitive_with_both_derivatives(anp, check, extend):
    @extend.primitive
    def scaled(x, k, power=2):
        assert type(x) is np.ndarray
        return k * x**power

    extend.defvjp(
        scaled,
        lambda ans, x, k, power=2: lambda g: g * k * power * x ** (power - 1),
        lambda ans, x, k, power=2: lambda g: anp.sum(g * x**power),
    )
    extend.defjvp(
        scaled, lambda g, ans, x, k, power=2: g * k * power * x ** (power - 1), lambda g, ans, x, k, power=2: g * x**power
    )
    check(scaled, (0, 1), order=3)(X, 1.5, power=3)
    check(lambda x: scaled(x, 2.0) * x)(X)


def test_a_primitive_of_complex_numbers_has_hips_convention(anp, check, extend):
    square = extend.primitive(lambda z: z * z)
    extend.defvjp(square, lambda ans, z: lambda g: 2 * g * z)
    extend.defjvp(square, lambda g, ans, z: 2 * g * z)
    check(square)(np.array([1.0 + 2.0j, -0.5j]))


def test_a_primitive_of_containers(autograd, anp, check, extend):
    @extend.primitive
    def total(parts, options):
        return {"sum": parts[0] + parts[1]["b"], "note": options}

    extend.defvjp(total, lambda ans, parts, options: lambda g: [g["sum"], {"b": anp.sum(g["sum"])}])
    check(lambda x, y: total([x, {"b": y}], "text")["sum"] ** 2, (0, 1), modes=["rev"])(X, 2.0)


def test_rules_of_other_forms(autograd, anp, check, extend):
    linear = extend.primitive(lambda x, y: x * y)
    extend.def_linear(linear)
    extend.defvjp_argnums(linear, lambda argnums, ans, args, kwargs: lambda g: [g * args[1 - n] for n in argnums])
    check(linear, (0, 1))(2.0, 3.0)
    extend.defvjp_argnum(linear, lambda n, ans, args, kwargs: lambda g: g * args[1 - n])
    extend.defjvp_argnum(linear, lambda n, g, ans, args, kwargs: g * args[1 - n])
    check(linear, (0, 1))(2.0, 3.0)
    extend.defvjp(linear, lambda ans, x, y: lambda g: g * y, None)
    assert autograd.grad(linear, (0, 1))(2.0, 3.0) == (3.0, 0.0)
    extend.defvjp(linear, lambda ans, x, y: lambda g: g * x, argnums=[1])
    assert autograd.grad(linear, 1)(2.0, 3.0) == 2.0
    extend.defjvp(linear, "same", "same")
    assert autograd.make_jvp(linear)(2.0, 3.0)(1.0) == (6.0, 3.0)


def test_a_sparse_gradient(autograd, anp, extend):
    first = extend.primitive(lambda x: x[0])

    def vjp(ans, x):
        def add(g, total):
            total[0] += g
            return total

        return lambda g: extend.SparseObject(extend.vspace(x), lambda total: add(g, total))

    extend.defvjp(first, vjp)
    np.testing.assert_array_equal(autograd.grad(lambda x: first(x) * 2 + x[1])(X), [2.0, 1.0, 0.0])


def test_primitives_without_derivatives_raise(autograd, anp, extend):
    f = extend.primitive(lambda x, y=1.0: x * y)
    with pytest.raises(NotImplementedError, match="VJP of <lambda> wrt argnums"):
        autograd.grad(f)(1.0)
    with pytest.raises(NotImplementedError, match="JVP of <lambda> wrt argnums"):
        autograd.deriv(f)(1.0)
    extend.defvjp(f, lambda ans, x, y: lambda g: g * y)
    with pytest.raises(NotImplementedError, match="VJP of <lambda> wrt argnum 1 not defined"):
        autograd.grad(f, 1)(1.0, 2.0)
    with pytest.raises(NotImplementedError, match="VJP of roots"):
        autograd.grad(lambda x: anp.sum(anp.real(anp.roots(x))))(X)
    with pytest.raises(TypeError, match="Bad VJP"):
        extend.defvjp(f, "same")


def test_the_rule_of_a_numpy_function_can_be_replaced(autograd, anp, extend):
    rules = importlib.import_module("autograd.core").primitive_vjps
    extend.defvjp(anp.cosh, lambda ans, x: lambda g: g * 100.0)
    assert autograd.grad(anp.cosh)(1.0) == 100.0
    del rules[anp.cosh]
    assert autograd.grad(anp.cosh)(1.0) == np.sinh(1.0)


def test_checkpoint_and_fixed_points(autograd, anp, check):
    check(autograd.checkpoint(lambda x, y: anp.sin(x * y)), (0, 1), modes=["rev"])(X, 2.0)
    fixed_point = importlib.import_module("autograd.misc.fixed_points").fixed_point

    def root(a):
        return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: abs(x - y), 1e-12)

    np.testing.assert_allclose(autograd.grad(root)(2.0), 0.5 / np.sqrt(2.0))
    np.testing.assert_allclose(autograd.grad(autograd.grad(root))(2.0), -0.25 * 2.0**-1.5)


# -------------------------------------------------------------------------------------------------------------- helpers


def test_flatten(autograd, anp, check):
    misc = importlib.import_module("autograd.misc")
    value = (1.0, X, [np.ones((1, 2)), {"b": 2.0, "a": 3.0}], ())
    flat, unflatten = misc.flatten(value)
    np.testing.assert_array_equal(flat, [1.0, *X, 1.0, 1.0, 3.0, 2.0])
    back = unflatten(flat * 2)
    assert back[0] == 2.0 and back[2][1] == {"b": 4.0, "a": 6.0} and back[3] == ()
    check(lambda x: anp.sum(unflatten(x)[1] ** 2))(flat)
    check(lambda x, y: misc.flatten([x, {"k": y}])[0], (0, 1))(X, 2.0)


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimizers_reach_the_minimum(autograd, anp, name):
    optimize = getattr(importlib.import_module("autograd.misc.optimizers"), name)
    seen = []

    def loss(p, i):
        return anp.sum((p["w"] - X) ** 2) + p["b"] ** 2

    p = optimize(
        autograd.grad(loss), {"w": np.zeros(3), "b": 1.0}, lambda p, i, g: seen.append((i, p["b"])), 300, step_size=0.05
    )
    np.testing.assert_allclose(p["w"], X, atol=0.1)
    assert seen[0] == (0, 1.0) and len(seen) == 300


def test_vector_spaces(autograd):
    vspace = importlib.import_module("autograd.core").vspace
    for value in (1.0, X, 1j * X, [1.0, X], {"a": (X, 2j)}):
        vs = vspace(value)
        x = vs.randn()
        assert vs == vspace(vs.zeros()) == vspace(vs.ones()) == vspace(x)
        assert len(list(vs.standard_basis())) == vs.size
        assert vs.inner_prod(x, x) > 0 and vs.inner_prod(x, vs.add(x, vs.scalar_mul(x, -1.0))) == 0.0
    with pytest.raises(TypeError, match="Can't find vector space for value a"):
        vspace("a")


def test_check_grads_finds_a_wrong_rule(autograd, check, extend):
    wrong = extend.primitive(lambda x: x * 2.0)
    extend.defvjp(wrong, lambda ans, x: lambda g: g * 2.001)
    with pytest.raises(AssertionError, match=r"Derivative \(VJP\) check of <lambda> failed"):
        check(wrong, modes=["rev"])(1.0)


def test_unsupported_names_raise_clear_errors(autograd, anp):
    with pytest.raises(AttributeError, match=r"'autograd' has no attribute 'gradd' \(it is tapegrad's; nearest: grad"):
        autograd.gradd
    tracer = importlib.import_module("autograd.tracer")
    with pytest.raises(NotImplementedError, match="records on its own tape"):
        importlib.import_module("autograd.misc.tracers").full_graph(anp.sin, 1.0)
    with pytest.raises(NotImplementedError, match="Mine: there are no traces"):
        type("Mine", (tracer.Node,), {})
    with pytest.raises(NotImplementedError, match="arrays and numbers only, not for set"):
        tracer.Box.register(set)
    assert importlib.import_module("autograd.misc").const_graph(lambda a, b: a + b, 1.0)(2.0) == 3.0


# ---------------------------------------------------------------------------------------------------------------- SciPy


@pytest.fixture(scope="module")
def scipy(autograd):
    pytest.importorskip("scipy")
    return importlib.import_module("autograd.scipy")


P, Q, U = np.array([0.7, 1.5, 3.2]), np.array([2.1, 0.6, 1.4]), np.array([0.2, 0.5, 0.9])
SPECIAL = {
    "beta": (P, Q), "betaln": (P, Q), "gammainc": (P, Q), "gammaincc": (P, Q), "psi": (P,), "digamma": (P,), "gamma": (P,),
    "gammaln": (P,), "rgamma": (P,), "j0": (P,), "j1": (P,), "y0": (P,), "y1": (P,), "i0": (P,), "i1": (P,), "k0": (P,),
    "erf": (P,), "erfc": (P,), "erfinv": (U,), "erfcinv": (U,), "logit": (U,), "expit": (P,), "ndtr": (P,), "ndtri": (U,),
    "log_ndtr": (P,), "xlogy": (P, Q), "logsumexp": (P,), "softmax": (P,), "log_softmax": (P,),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(scipy, check, name):
    values = SPECIAL[name]
    check(getattr(scipy.special, name), tuple(range(len(values))))(*values)


@pytest.mark.parametrize("name", ["jn", "yn", "jv", "iv", "ive", "kv", "betainc", "polygamma", "stdtr"])
def test_special_functions_of_an_order(scipy, check, autograd, name):
    f, n = getattr(scipy.special, name), 1 if name in ("jn", "yn", "polygamma") else 1.5
    args = (1.5, 2.5, U) if name == "betainc" else (n, P)
    check(f, len(args) - 1)(*args)
    if name not in ("polygamma",):
        with pytest.raises(NotImplementedError, match="is not known"):
            autograd.grad(lambda a: f(*args[:-2], a, 0.4))(1.5)


def test_more_special_functions(scipy, check, anp):
    check(lambda x: scipy.special.multigammaln(x, 2))(P + 2.0)
    check(scipy.special.erf)(np.array([0.3 + 0.2j]))
    check(lambda x: scipy.special.logsumexp(x, axis=0, b=Q[:, None], keepdims=True))(np.random.randn(3, 2))
    check(lambda x: scipy.special.gammasgn(x) * x)(P)


STATS = {
    "norm": (("pdf", "cdf", "sf", "logpdf", "logcdf", "logsf"), (P, Q, U)),
    "t": (("pdf", "logpdf"), (P, Q, U, P)),
    "gamma": (("pdf", "logpdf", "cdf"), (P, Q)),
    "beta": (("pdf", "logpdf"), (U, P, Q)),
    "chi2": (("pdf", "logpdf", "cdf"), (P, Q)),
    "dirichlet": (("pdf", "logpdf"), (U / U.sum(), P)),
}


@pytest.mark.parametrize("name", STATS)
def test_distributions(scipy, anp, check, autograd, name):
    ours, theirs = getattr(scipy.stats, name), getattr(importlib.import_module("scipy.stats"), name)
    functions, args = STATS[name]
    by = (1,) if name == "dirichlet" else tuple(range(len(args)))  # SciPy wants x on the simplex
    for f in functions:
        function = getattr(ours, f)
        values = []
        autograd.elementwise_grad(lambda x, f=function: values.append(f(*args[:-1], x)) or anp.sum(values[0]))(args[-1])
        np.testing.assert_allclose(values[0]._value, getattr(theirs, f)(*args), rtol=1e-12)
        check(function, by)(*args)


def test_cdfs_by_some_arguments(scipy, check):
    check(scipy.stats.t.cdf, (0, 2, 3))(P, Q, U, P)
    check(scipy.stats.t.logcdf, (0, 2, 3))(P, Q, U, P)
    check(scipy.stats.beta.cdf, 0)(U, P, Q)
    for f in ("pmf", "logpmf", "cdf"):
        check(getattr(scipy.stats.poisson, f), 1)(np.array([0.0, 2.0, 3.0]), P)


def test_multivariate_normal(scipy, anp, check, autograd):
    a, mean, theirs = np.random.randn(3, 3), np.random.randn(3), importlib.import_module("scipy.stats")
    cov = a @ a.T + np.eye(3)
    ours = scipy.stats.multivariate_normal

    def of(f):
        return lambda x, m, c: f(x, m, 0.5 * (c + c.T))

    for x in (X, np.random.randn(4, 3)):
        for name in ("pdf", "logpdf"):
            check(of(getattr(ours, name)), (0, 1, 2))(x, mean, cov)
            value, _ = autograd.make_vjp(lambda c, n=name, x=x: getattr(ours, n)(x, mean, c))(cov)[::-1]
            np.testing.assert_allclose(value, getattr(theirs.multivariate_normal, name)(x, mean, cov))
    check(lambda c: ours.entropy(mean, 0.5 * (c + c.T)))(cov)
    flat = np.diag([1.0, 2.0, 0.0])
    check(lambda x: ours.logpdf(anp.concatenate([x, mean[2:]]), mean, flat, allow_singular=True))(X[:2])
    with pytest.raises(NotImplementedError, match="singular covariance"):
        autograd.grad(lambda c: ours.logpdf(X, mean, c, allow_singular=True))(cov)


def test_linear_algebra(scipy, anp, check):
    a, b = np.random.randn(3, 3) + 3 * np.eye(3), np.random.randn(3, 2)
    for lower in (False, True):
        for trans in (0, 1):
            check(lambda a, b, t=trans, low=lower: scipy.linalg.solve_triangular(a, b, t, low), (0, 1))(a, b)
    check(scipy.linalg.solve_triangular, (0, 1))(a, b[:, 0])
    check(scipy.linalg.solve_sylvester, (0, 1, 2))(a, np.eye(2), b)
    check(lambda a: scipy.linalg.sqrtm(a @ a.T), modes=["rev"])(a)
    check(scipy.linalg.expm)(a / 4)
    band = np.random.randn(4, 5) + 4 * np.array([0, 1, 0, 0])[:, None]
    for right in (np.random.randn(5), np.random.randn(5, 2)):
        check(lambda ab, b: scipy.linalg.solve_banded((2, 1), ab, b), (0, 1), modes=["rev"])(band, right)


def test_convolution(scipy, check):
    theirs = pytest.importorskip("scipy.signal").convolve
    a, b = np.random.randn(4, 5), np.random.randn(2, 3)
    for mode in ("full", "same", "valid"):
        np.testing.assert_allclose(scipy.signal.convolve(a, b, mode=mode), theirs(a, b, mode))
        check(lambda a, b, m=mode: scipy.signal.convolve(a, b, mode=m), (0, 1), order=1)(a, b)
    np.testing.assert_allclose(scipy.signal.convolve(b, a, mode="valid"), theirs(a, b, "valid"))
    layers = scipy.signal.convolve(np.random.randn(2, 6, 3), np.random.randn(3, 2), axes=([1], [1]), dot_axes=([2], [0]))
    assert layers.shape == (2, 7)
    with pytest.raises(ValueError, match="larger than the other"):
        scipy.signal.convolve(np.ones((2, 3)), np.ones((3, 2)), mode="valid")


def test_odeint(scipy, anp, check):
    def rate(y, t, a, b):
        return -anp.sqrt(t) - y + a - anp.mean((y + b) ** 2)

    def final(y, t, a, b):
        return scipy.integrate.odeint(rate, y, t, (a, b), rtol=1e-10, atol=1e-10)

    check(final, (0, 1, 2, 3), modes=["rev"], order=1)(X, np.linspace(0.1, 0.2, 3), P, Q)


# ----------------------------------------------------------------------------- faults of tapegrad that were found by it


def test_a_pull_made_while_nothing_was_recorded_is_differentiated():
    with tg.no_grad():
        y, pull = tg.func.vjp(lambda x: 3 * x * x, tg.ones(2))
    assert not y.requires_grad
    np.testing.assert_array_equal(tg.func.grad(lambda g: pull(g)[0].sum())(tg.ones(2)), [6.0, 6.0])
    with tg.no_grad():
        assert not pull(tg.ones(2, requires_grad=True))[0].requires_grad


def test_what_is_differentiated_through_a_pull_is_no_tensor_of_a_graph():
    _, pull = tg.func.vjp(lambda x: np.tanh(2 * x) * np.sin(x), np.ones(2))
    assert type(tg.func.grad(lambda g: pull(g)[0].sum())(np.ones(2))) is np.ndarray
    x = tg.ones(2, requires_grad=True)
    _, pull = tg.func.vjp(lambda y: np.tanh(2 * y) * x, np.ones(2))
    assert tg.func.grad(lambda g: pull(g)[0].sum())(np.ones(2)).requires_grad


def test_a_tuple_among_indices_is_a_sequence():
    x = tg.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(x[(0, 2), (1, 1)], [1.0, 7.0])
    np.testing.assert_array_equal(x[:, (0, 2)], x[:, [0, 2]])


def test_the_largest_complex_number_is_numpys():
    a = np.random.randn(3, 4).round() + 1j * np.random.randn(3, 4)
    for f in (np.max, np.min, np.amax, np.amin):
        for axis in (None, 0, (1, 0), -1):
            for keepdims in (False, True):
                np.testing.assert_array_equal(f(tg.tensor(a), axis, keepdims=keepdims), f(a, axis, keepdims=keepdims))
    x = tg.tensor(a, requires_grad=True)
    np.max(x).abs().backward()
    assert np.count_nonzero(x.grad) == 1


def test_eigenvectors_have_the_signs_of_the_triangle_that_is_read():
    a = np.random.randn(4, 4)
    for triangle in "LU":
        for ours, theirs in zip(tg.linalg.eigh(tg.tensor(a), triangle), np.linalg.eigh(a, triangle), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-13)

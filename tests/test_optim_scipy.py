"""optim.scipy.minimize: SciPy's methods with derivatives from tapegrad."""

import subprocess
import sys

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.optim.scipy import WITH_HESSIAN, WITH_PRODUCTS, WITHOUT_GRADIENT, minimize

WITH_GRADIENT = ("cg", "bfgs", "l-bfgs-b", "tnc", "slsqp")
METHODS = (*WITHOUT_GRADIENT, *WITH_GRADIENT, *WITH_PRODUCTS, *WITH_HESSIAN)


@pytest.fixture
def optimize(request):
    if "cobyqa" in request.node.name:
        pytest.importorskip("scipy", "1.14")  # the first with this method
    return pytest.importorskip("scipy.optimize")


def rosen(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def start_of(method):
    return [1.1, 1.2, 1.3] if method == "dogleg" else [-1.2, 1.0, 0.9]  # dogleg asks for a positive definite Hessian


@pytest.mark.parametrize("method", METHODS)
def test_every_method_follows_the_path_of_exact_derivatives(method, optimize):
    evaluated = []

    def fun(x):
        evaluated.append(tuple(x.tolist()))
        return rosen(x)

    options = {"maxfun": 20} if method == "tnc" else {"maxiter": 60}  # tnc's differences of gradients magnify rounding
    got = minimize(fun, tg.tensor(start_of(method), dtype=tg.float64), method=method, options=options)
    derivatives = {} if method in WITHOUT_GRADIENT else {"jac": optimize.rosen_der}
    if method in WITH_PRODUCTS:
        derivatives["hessp"] = optimize.rosen_hess_prod
    if method in WITH_HESSIAN:
        derivatives["hess"] = optimize.rosen_hess
    want = optimize.minimize(optimize.rosen, start_of(method), method=method, options=options, **derivatives)
    assert isinstance(got, optimize.OptimizeResult) and isinstance(got.x, tg.Tensor)
    assert got.x.dtype is tg.float64 and not got.x.requires_grad
    assert (got.status, got.nfev) == (want.status, want.nfev)
    np.testing.assert_allclose(got.x.numpy(), want.x, rtol=1e-5)
    assert len(evaluated) == len(set(evaluated)) <= got.nfev, "evaluated twice at one point"


def test_the_default_method_follows_bounds_and_constraints(optimize):
    x0 = tg.tensor([2.0, 1.0])
    assert "BFGS" not in minimize(rosen, x0, constraints={"type": "ineq", "fun": lambda x: 0.5 - x[0]}).message
    assert minimize(rosen, x0).hess_inv.shape == (2, 2)
    assert minimize(rosen, x0, bounds=(None, 0.5)).x[0] == 0.5


def test_float32_and_containers_come_back(optimize):
    x0 = {
        "a": tg.tensor([[1.0, 2.0]], requires_grad=True),
        "b": [tg.tensor(3.0, dtype=tg.float64), np.array([4.0])],
        "c": 0.5,
    }

    def fun(p, scale):
        assert p["a"].shape == (1, 2) and p["a"].dtype is tg.float32 and p["b"][0].dtype is tg.float64
        return scale * ((p["a"] - 1) ** 2).sum() + (p["b"][0] - p["b"][1].sum()) ** 2 + p["b"][1].sum() ** 2 + p["c"] ** 2

    result = minimize(fun, x0, args=(tg.tensor(2.0),))
    x = result.x
    assert list(x) == ["a", "b", "c"] and type(x["b"]) is list and result.jac.shape == (5,)
    assert x["a"].dtype is tg.float32 and x["a"].is_leaf and not x["a"].requires_grad
    assert type(x["b"][1]) is np.ndarray and type(x["c"]) is float
    np.testing.assert_allclose(
        [*x["a"].reshape(-1).tolist(), float(x["b"][0]), *x["b"][1], x["c"]], [1, 1, 0, 0, 0], atol=1e-4
    )
    assert x0["a"].grad is None and x0["a"].tolist() == [[1.0, 2.0]]


def test_numpy_functions(optimize):
    result = minimize(lambda x: np.sum(np.exp(x) - x), np.array([1.0, -2.0]), method="trust-exact")
    assert type(result.x) is np.ndarray
    np.testing.assert_allclose(result.x, 0, atol=1e-5)


def model():
    tg.manual_seed(0)
    net = tg.nn.Sequential(tg.nn.Linear(1, 8), tg.nn.Tanh(), tg.nn.BatchNorm1d(8), tg.nn.Linear(8, 1))
    net[0].bias.requires_grad_(False)
    x = tg.linspace(-1, 1, 20).reshape(-1, 1)
    return net, lambda net: tg.nn.functional.mse_loss(net(x), x**2 + 0.5 * x)


@pytest.mark.parametrize("method", [None, "newton-cg", "trust-krylov"])
def test_module(method, optimize):
    net, loss = model()
    before, frozen, parameters = loss(net).item(), net[0].bias.clone(), list(net.parameters())
    seen = []
    result = minimize(loss, net, method=method, callback=lambda m: seen.append(loss(m).item()), options={"maxiter": 60})
    assert result.x is net and all(a is b for a, b in zip(parameters, net.parameters(), strict=True))
    assert abs(loss(net).item() - result.fun) < 1e-6 and result.fun < 2e-3 < before
    assert seen[-1] < seen[0] and len(seen) == result.nit
    assert tg.equal(net[0].bias, frozen) and all(p.grad is None and p.is_leaf for p in parameters)


def test_tied_parameters_are_one_unknown(optimize):
    net = tg.nn.Sequential(tg.nn.Linear(2, 2, bias=False), tg.nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    result = minimize(lambda m: ((m(tg.eye(2)) - 4 * tg.eye(2)) ** 2).sum(), net)
    assert result.jac.shape == (4,) and net[1].weight is net[0].weight
    assert tg.allclose(net(tg.eye(2)), 4 * tg.eye(2), atol=1e-3)


def test_bounds(optimize):
    def fun(p):
        return ((p["a"] + 1) ** 2).sum() + ((p["b"] - 3) ** 2).sum()

    x0 = {"a": tg.tensor([0.5, 0.5]), "b": tg.tensor([0.0, 0.0])}
    x = minimize(fun, x0, bounds={"a": (0, None), "b": (None, tg.tensor([1.0, 9.0]))}).x
    assert x["a"].tolist() == [0, 0] and tg.allclose(x["b"], tg.tensor([1.0, 3.0]))
    x = minimize(fun, x0, bounds=optimize.Bounds(0.25, 2)).x
    assert x["a"].tolist() == [0.25, 0.25] and x["b"].tolist() == [2, 2]
    x = minimize(lambda x: ((x - 5) ** 2).sum(), tg.zeros(2), bounds=[(0, 1), (0, 2)]).x
    assert x.tolist() == [1, 2]
    net = tg.nn.Linear(2, 1)
    minimize(lambda m: ((m(tg.eye(2)) + 2) ** 2).sum(), net, bounds={"weight": (-0.5, 0.5)})
    assert net.weight.abs().max() <= 0.5


@pytest.mark.parametrize("method", ["slsqp", "trust-constr", "cobyla", "cobyqa"])
def test_constraints(method, optimize):
    """The point of the unit circle's inside that is nearest to (2, 1), with x >= y ** 2 and x + y <= 1.2 along the way."""
    constraints = [
        {"type": "ineq", "fun": lambda x, r: r - (x**2).sum(), "args": (1.0,)},
        optimize.NonlinearConstraint(lambda x: tg.stack([x[0] - x[1] ** 2, x[1] * x[0]]), [0, -5], np.inf),
        optimize.LinearConstraint(np.ones((1, 2)), -np.inf, 1.2),
    ]
    if method == "slsqp":  # a wrong Jacobian would be seen here
        constraints = constraints[:2]
    result = minimize(lambda x: ((x - tg.tensor([2.0, 1.0])) ** 2).sum(), tg.tensor([0.1, 0.1]).double(), method=method,
                      constraints=constraints)  # fmt: skip
    want = np.array([2, 1]) / 5**0.5 if method == "slsqp" else np.array([0.6 + 0.14**0.5, 0.6 - 0.14**0.5])
    np.testing.assert_allclose(result.x.numpy(), want, atol=2e-3)


def test_callbacks(optimize):
    results, points = [], []
    x0 = tg.tensor([[2.0], [1.0]])
    result = minimize(
        lambda x: rosen(x.reshape(-1)), x0, callback=lambda intermediate_result: results.append(intermediate_result)
    )
    assert len(results) == result.nit and results[-1].x.shape == (2, 1) and tg.equal(results[-1].x, result.x)
    minimize(lambda x: rosen(x.reshape(-1)), x0, callback=points.append, method="cg")
    assert points[0].shape == (2, 1)
    minimize(lambda x: rosen(x.reshape(-1)), x0, callback=lambda x, state: points.append(state.nit), method="trust-constr")
    assert points[-1] > 1

    def stop(x):
        raise StopIteration

    assert minimize(lambda x: rosen(x.reshape(-1)), x0, callback=stop).nit == 1


def test_method_of_ones_own(optimize):
    def newton(fun, x0, jac=None, hessp=None, callback=None, **_):
        x = x0 - np.linalg.solve(np.stack([hessp(x0, e) for e in np.eye(2)]), jac(x0))
        return optimize.OptimizeResult(x=x, fun=fun(x), success=True)

    assert minimize(lambda x: ((x - 3) ** 2).sum() + x[0] * x[1], tg.zeros(2), method=newton).x.tolist() == [2, 2]


def test_inside_no_grad_and_with_gradients_inside(optimize):
    def fun(x):
        y = x**4
        (g,) = tg.autograd.grad(y.sum(), x, create_graph=True) if x.requires_grad else (4 * x**3,)
        return ((g - 4) ** 2).sum()

    with tg.no_grad():
        for method in ("bfgs", "newton-cg"):
            assert tg.allclose(minimize(fun, tg.tensor([2.0]), method=method).x, tg.tensor([1.0]), atol=1e-3)
        assert not tg.is_grad_enabled()


def test_a_linear_function_has_hessian_zero(optimize):
    result = minimize(lambda x: x.sum(), tg.ones(2), method="trust-exact", options={"maxiter": 3})
    assert result.hess.tolist() == [[0, 0], [0, 0]]


class ForwardOnly(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * float("nan")


def nan_where_negative(x):
    return (x - x.log()).sum()


def test_a_list_of_numbers_is_one_array(optimize):
    result = minimize(lambda x: np.sum((x - 1) ** 2), [3, 0], bounds=[(0, 2), (0, 0.5)])
    assert isinstance(result.x, np.ndarray) and np.allclose(result.x, [1, 0.5])
    assert minimize(lambda x: ((x - 1) ** 2).sum(), [[3.0], [0.0]], method="trust-exact").x.shape == (2, 1)
    assert isinstance(minimize(lambda x: (x[0] - 1) ** 2 + x[1].sum() ** 2, [2.0, np.ones(2)]).x, list)


@pytest.mark.parametrize(
    "fun, x0, kind, text",
    [
        (lambda x: x**2, tg.ones(2), RuntimeError, "real tensor of one number, got shape (2,) and dtype torch.float32"),
        (lambda x: (x + 0j).sum(), tg.ones(2), RuntimeError, "of one number, got shape () and dtype torch.complex64"),
        (lambda x: float(x.sum()), tg.ones(2), TypeError, "fun must return a tensor, got float"),
        (lambda x: None, tg.ones(2), TypeError, "fun must return a tensor, got NoneType"),
        (lambda x: tg.tensor(1.0), tg.ones(2), RuntimeError, "element 0 of tensors does not require grad"),
        (lambda x: (x > 0).sum(), tg.ones(2), RuntimeError, "element 0 of tensors does not require grad"),
        (nan_where_negative, tg.tensor([-1.0]), ValueError, "the value at x0 is nan"),
        (lambda x: ForwardOnly.apply(x).sum(), tg.ones(2), ValueError, "the gradient at x0 is nan"),
        (lambda x: x.sum(), tg.tensor([1, 2]), RuntimeError, "only Tensors of floating point"),
        (lambda x: x.abs().sum(), tg.ones(2) + 1j, RuntimeError, "x0 must be real"),
        (lambda x: x.sum(), [], ValueError, "x0 holds no tensor"),
        (lambda x: x.sum(), "start", ValueError, "must be Tensor, got <class 'str'>"),
    ],
)  # fmt: skip
def test_bad_input(fun, x0, kind, text, optimize):
    with pytest.raises(kind) as e:
        minimize(fun, x0)
    assert text in str(e.value)


def test_bad_settings(optimize):
    x0 = [tg.ones(2), tg.ones(3)]

    def fun(x):
        return (x[0] ** 2).sum() + (x[1] ** 2).sum()

    with pytest.raises(ValueError, match="Unknown solver gauss"):
        minimize(fun, x0, method="gauss")
    with pytest.raises(ValueError, match="the structure differs"):
        minimize(fun, x0, bounds=[(0, 1)])
    with pytest.raises(ValueError, match="a pair"):
        minimize(fun, x0, bounds=[(0, 1), 2])
    with pytest.raises(ValueError, match=r"bounds for \['wait'\]"):
        minimize(lambda m: m(tg.ones(1, 2)).sum(), tg.nn.Linear(2, 1), bounds={"wait": (0, 1)})
    with pytest.raises(TypeError, match="leave the jac of a constraint out"):
        minimize(fun, x0, constraints={"type": "eq", "fun": lambda x: x[0][0], "jac": lambda x: x})
    with pytest.raises(TypeError, match="unexpected keyword argument 'jac'"):
        minimize(fun, x0, jac=True)


def test_nan_on_the_way_is_left_to_scipy(optimize):
    result = minimize(nan_where_negative, tg.tensor([5.0], dtype=tg.float64), method="nelder-mead")
    assert abs(result.x.item() - 1) < 1e-3


def test_an_error_of_fun_leaves_the_module_as_it_was(optimize):
    net, loss = model()
    parameters, calls = list(net.parameters()), []

    def fails(m):
        calls.append(0)
        if len(calls) == 3:
            raise KeyError("mine")
        return loss(m)

    with pytest.raises(KeyError, match="mine"):
        minimize(fails, net)
    assert all(a is b for a, b in zip(parameters, net.parameters(), strict=True))


def test_without_scipy():
    code = (
        "import sys; sys.modules['scipy'] = sys.modules['scipy.optimize'] = None; import tapegrad as tg; "
        "tg.optim.scipy.minimize(lambda x: x.sum(), tg.ones(2))"
    )
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert got.stderr.splitlines()[-1] == "ImportError: optim.scipy.minimize needs SciPy: pip install 'tapegrad[scipy]'"

"""Rates of a predator-prey model fitted to data: odeint of autograd.scipy under SciPy's L-BFGS; a fixed point besides."""

import autograd.numpy as np
import autograd.numpy.random as npr
import scipy.optimize
from autograd import grad, value_and_grad
from autograd.builtins import tuple
from autograd.misc.fixed_points import fixed_point
from autograd.scipy.integrate import odeint


def rates(y, t, a, b):
    hares, foxes = y
    return np.array([a[0] * hares - a[1] * hares * foxes, b[0] * hares * foxes - b[1] * foxes])


def simulate(log_rates, times):
    k = np.exp(log_rates)
    return odeint(rates, np.array([1.0, 0.5]), times, tuple((k[:2], k[2:])), rtol=1e-8, atol=1e-8)


npr.seed(1)
times = np.linspace(0.0, 3.0, 5)
true = np.log(np.array([1.1, 0.8, 0.6, 0.9]))
data = simulate(true, times) + 0.01 * npr.randn(5, 2)
objective = value_and_grad(lambda p: np.mean((simulate(p, times) - data) ** 2))
value, g = objective(np.zeros(4))
print(f"start {value:.10g}", g)
result = scipy.optimize.minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B", options={"maxiter": 3})
print(f"end {result.fun:.8g} after {result.nit}", np.round(np.exp(result.x), 5))


def newton_root(a):
    return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: np.abs(x - y), 1e-12)


print("root", newton_root(2.0), grad(newton_root)(2.0), grad(grad(newton_root))(2.0))

"""
A Gaussian process that is told slopes
======================================

Derivatives of a Gaussian process are Gaussian too: the covariance of a value with a slope is the derivative of the
kernel, that of two slopes its mixed second derivative. Here ``tg.func.grad`` makes these from the kernel alone, so that
any kernel can be used. With the slopes known at four points, the fit to a function is far better than with its values
alone.

The derivatives of the squared exponential kernel are known in closed form, which checks them.
"""

import matplotlib.pyplot as plt
import numpy as np

import tapegrad as tg

# %%
# The kernel and its derivatives, of two numbers each; ``vmap`` makes matrices of them.

LENGTH = 0.7


def kernel(s, t):
    return tg.exp(-((s - t) ** 2) / (2 * LENGTH**2))


value_slope = tg.func.grad(kernel, argnums=1)  # cov(f(s), f'(t))
slope_slope = tg.func.grad(value_slope, argnums=0)  # cov(f'(s), f'(t))


def matrix(k, s, t):
    return tg.func.vmap(tg.func.vmap(k, in_dims=(None, 0)), in_dims=(0, None))(s, t)


s, t = np.array([0.3, 1.1]), np.array([-0.2, 0.9, 2.0])
d = s[:, None] - t
exact = np.exp(-(d**2) / (2 * LENGTH**2)) * (1 / LENGTH**2 - d**2 / LENGTH**4)
assert np.abs(matrix(slope_slope, s, t) - exact).max() < 1e-14

# %%
# The joint covariance of values and slopes, and the posterior mean and deviation at new points.


def covariance(s, t):
    """Of (values, slopes) at s with (values, slopes) at t."""
    return np.block(
        [
            [matrix(kernel, s, t), matrix(value_slope, s, t)],
            [matrix(value_slope, t, s).T, matrix(slope_slope, s, t)],
        ]
    )


def fit(x, observed, with_slopes, new):
    """Posterior mean and standard deviation of the values at `new`, (n,) each."""
    n = 2 * len(x) if with_slopes else len(x)
    known = covariance(x, x)[:n, :n] + 1e-10 * np.eye(n)
    cross = covariance(new, x)[: len(new), :n]
    mean = cross @ np.linalg.solve(known, observed[:n])
    variance = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(known, cross.T))
    return mean, np.sqrt(np.maximum(variance, 0))


def f(x):
    return np.sin(2 * x) + 0.3 * x


points = np.array([-2.0, -0.7, 0.8, 2.1])
observed = np.concatenate([f(points), tg.func.elementwise_grad(f)(points)])
new = np.linspace(-3, 3, 200)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
errors = []
for axis, with_slopes in zip(axes, (False, True), strict=True):
    mean, deviation = fit(points, observed, with_slopes, new)
    inside = np.abs(new) < 2
    errors.append(np.abs(mean - f(new))[inside].max())
    axis.plot(new, f(new), "k--", lw=1, label="function")
    axis.plot(new, mean, label="mean")
    axis.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="two deviations")
    axis.plot(points, f(points), "o", color="k")
    axis.set(title=f"{'values and slopes' if with_slopes else 'values'}: largest error {errors[-1]:.3f}", xlabel="x")
axes[0].legend(loc="lower right")
print(f"largest error with values {errors[0]:.3f}, with slopes {errors[1]:.3f}")
assert errors[1] < errors[0] / 5
plt.show()

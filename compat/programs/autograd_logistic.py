"""Logistic regression as HIPS autograd programs write it: gradient, Hessian, Newton's method, a primitive of one's own."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import elementwise_grad, grad, hessian, holomorphic_grad, value_and_grad
from autograd.extend import defvjp, primitive
from autograd.test_util import check_grads


@primitive
def log1pexp(x):
    """log(1 + exp(x)) without overflow."""
    return np.where(x > 0, x, 0.0) + np.log1p(np.exp(-np.abs(x)))


defvjp(log1pexp, lambda ans, x: lambda g: g * (1.0 - np.exp(x - 2 * ans) * np.exp(ans - x)))


def loss(weights, inputs, targets):
    logits = np.dot(inputs, weights["slope"]) + weights["offset"]
    fit = np.mean(log1pexp(logits) - targets * logits)
    return fit + 0.01 * np.sum(weights["slope"] ** 2)


npr.seed(0)
inputs = npr.randn(60, 3)
targets = (np.dot(inputs, np.array([1.0, -2.0, 0.5])) + 0.5 * npr.randn(60) > 0).astype(float)
weights = {"slope": np.zeros(3), "offset": 0.0}
check_grads(lambda s: loss({"slope": s, "offset": 0.1}, inputs, targets), modes=["rev"])(npr.randn(3))
step = value_and_grad(loss)
for i in range(30):
    value, g = step(weights, inputs, targets)
    weights = {k: weights[k] - 1.0 * g[k] for k in weights}
    if i % 10 == 0:
        print(f"descent {i}: {value:.12g}", weights["slope"])

w = np.zeros(3)
for i in range(5):
    of = lambda w: loss({"slope": w, "offset": 0.0}, inputs, targets)  # noqa: E731
    w = w - np.linalg.solve(hessian(of)(w), grad(of)(w))
    print(f"newton {i}: {of(w):.12g}", w)
print("curves:", elementwise_grad(elementwise_grad(np.tanh))(np.linspace(-2.0, 2.0, 5)))
print("holomorphic:", holomorphic_grad(lambda z: np.exp(1j * z) / z)(1.0 + 0.5j))
print("complex:", grad(lambda z: np.abs(z) ** 2 + np.real(z**2))(1.0 + 2.0j))

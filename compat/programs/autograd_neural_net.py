"""A small neural net with nested parameters, fitted by autograd's own optimisers, and its Gauss-Newton products."""

from itertools import pairwise

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import checkpoint, grad, jacobian, make_ggnvp, make_jvp
from autograd.misc import flatten
from autograd.misc.optimizers import adam, rmsprop, sgd
from autograd.scipy.special import logsumexp
from autograd.scipy.stats import norm


def init(scale, sizes, rs):
    return [(scale * rs.randn(m, n), scale * rs.randn(n)) for m, n in pairwise(sizes)]


def predict(params, inputs):
    for w, b in params:
        outputs = np.dot(inputs, w) + b
        inputs = np.tanh(outputs)
    return outputs - logsumexp(outputs, axis=1, keepdims=True)


def log_posterior(params, inputs, targets):
    prior = np.sum(norm.logpdf(flatten(params)[0], 0.0, 2.0))
    return np.sum(predict(params, inputs) * targets) + prior


rs = npr.RandomState(0)
inputs = rs.randn(40, 2)
labels = (inputs[:, 0] * inputs[:, 1] > 0).astype(int) + (inputs[:, 0] > 1)
targets = np.eye(3)[labels]
start = init(0.5, [2, 8, 3], rs)
objective = lambda params, i: -log_posterior(params, inputs, targets) / len(inputs)  # noqa: E731


def show(params, i, g):
    if i % 25 == 0:
        right = np.mean(np.argmax(predict(params, inputs), axis=1) == labels)
        print(f"{i:4d} {objective(params, i):.12g} {right:.4f} {np.linalg.norm(flatten(g)[0]):.10g}")


for optimize, rate in ((adam, 0.05), (sgd, 0.5), (rmsprop, 0.01)):
    print(optimize.__name__)
    params = optimize(grad(objective), start, callback=show, num_iters=60, step_size=rate)
    print("end", objective(params, 0))

flat, unflatten = flatten(params)
outputs = lambda x: predict(unflatten(x), inputs[:3]).ravel()  # noqa: E731
v = rs.randn(len(flat))
print("gauss-newton", make_ggnvp(outputs)(flat)(v)[:4])
print(
    "jvp", make_jvp(outputs)(flat)(v)[1][:4], np.allclose(np.dot(jacobian(outputs)(flat), v), make_jvp(outputs)(flat)(v)[1])
)
print("checkpointed", grad(lambda x: np.sum(checkpoint(np.tanh)(x) ** 2))(v[:4]))

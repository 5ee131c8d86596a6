"""Stochastic optimisers over nested containers of arrays.

grad(x, i) gives the gradient at step i, callback(x, i, g) is called at each step before x moves.
"""

import autograd.numpy as np
from autograd.misc import flatten
from autograd.wrap_util import wraps


def unflatten_optimizer(optimize):
    """An optimiser of flat vectors as one of nested containers."""

    @wraps(optimize)
    def wrapped(grad, x0, callback=None, *args, **kwargs):
        flat, unflatten = flatten(x0)

        def shown(x, i, g):
            callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(lambda x, i: flatten(grad(unflatten(x), i))[0], flat, callback and shown, *args, **kwargs))

    return wrapped


def _steps(grad, x, callback, num_iters, move):
    """x after num_iters steps x + move(gradient, i)."""
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        x = x + move(g, i)
    return x


@unflatten_optimizer
def sgd(grad, x, callback=None, num_iters=200, step_size=0.1, mass=0.9):
    """Gradient descent with momentum."""
    velocity = np.zeros(len(x))

    def move(g, i):
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return step_size * velocity

    return _steps(grad, x, callback, num_iters, move)


@unflatten_optimizer
def rmsprop(grad, x, callback=None, num_iters=100, step_size=0.1, gamma=0.9, eps=10**-8):
    """Steps divided by the root of the mean of past squared gradients."""
    squares = np.ones(len(x))

    def move(g, i):
        nonlocal squares
        squares = squares * gamma + g**2 * (1 - gamma)
        return -step_size * g / (np.sqrt(squares) + eps)

    return _steps(grad, x, callback, num_iters, move)


@unflatten_optimizer
def adam(grad, x, callback=None, num_iters=100, step_size=0.001, b1=0.9, b2=0.999, eps=10**-8):
    """Adam (Kingma and Ba, arXiv:1412.6980)."""
    m, v = np.zeros(len(x)), np.zeros(len(x))

    def move(g, i):
        nonlocal m, v
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * (g**2) + b2 * v
        return -step_size * (m / (1 - b1 ** (i + 1))) / (np.sqrt(v / (1 - b2 ** (i + 1))) + eps)

    return _steps(grad, x, callback, num_iters, move)

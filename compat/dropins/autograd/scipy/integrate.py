"""scipy.integrate.odeint, differentiated by its adjoint equations."""

import scipy.integrate

import autograd.numpy as np
from autograd import make_vjp
from autograd.extend import defvjp_argnums, primitive
from autograd.misc import flatten

odeint = primitive(scipy.integrate.odeint)


def _adjoint(argnums, yt, args, kwargs):
    func, _, t, *rest = args
    func_args = rest[0] if rest else ()
    count, size = np.shape(yt)
    flat_args, unflatten = flatten(func_args)

    def rates(y, t, flat):
        return func(y, t, *unflatten(flat))

    def backwards(state, t, flat):
        """The rates of y and of the gradients by y, t and the arguments."""
        y, by_y = state[:size], state[size : 2 * size]
        pull, rate = make_vjp(rates, (0, 1, 2))(y, t, flat)
        return np.hstack((rate, *pull(-by_y)))

    def vjp(g):
        by_y, by_start, by_args, by_times = g[-1, :], 0.0, np.zeros(np.size(flat_args)), []
        for i in range(count - 1, 0, -1):
            by_times.append(np.dot(func(yt[i, :], t[i], *func_args), g[i, :]))
            by_start = by_start - by_times[-1]
            state = np.hstack((yt[i, :], by_y, by_start, by_args))
            state = odeint(backwards, state, np.array([t[i], t[i - 1]]), (flat_args,), **kwargs)[1]
            by_y, by_start, by_args = state[size : 2 * size] + g[i - 1, :], state[2 * size], state[2 * size + 1 :]
        found = {1: by_y, 2: np.hstack([*by_times, by_start])[::-1], 3: unflatten(by_args)}
        return [found[i] for i in argnums]

    return vjp


defvjp_argnums(odeint, _adjoint)

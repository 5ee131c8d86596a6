"""Helpers for derivatives that programs state themselves."""

import numpy as _np

from autograd.numpy import numpy_wrapper as anp


def unbroadcast(x, target_meta, broadcast_idx=0):
    """A gradient summed to the shape in target_meta (see `metadata`), and made real if that is real."""
    shape, ndim, _, is_complex = target_meta
    while anp.ndim(x) > ndim:
        x = anp.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1:
            x = anp.sum(x, axis=axis, keepdims=True)
    return anp.real(x) if anp.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target, f):
    """f, whose result is summed to the shape of target."""
    target_meta = anp.metadata(target)
    return lambda g: unbroadcast(f(g), target_meta)


def match_complex(target, x):
    """x made complex or real as target is."""
    if anp.iscomplexobj(target) and not anp.iscomplexobj(x):
        return x + 0j
    return anp.real(x) if anp.iscomplexobj(x) and not anp.iscomplexobj(target) else x


def repeat_to_match_shape(g, shape, dtype, axis, keepdims):
    """A gradient of a reduction repeated along what was reduced, and the number of repetitions."""
    if shape == ():
        return g, 1
    axes = tuple(range(len(shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple([a % len(shape) for a in axes])
    kept = tuple([1 if d in axes else n for d, n in enumerate(shape)])
    repeats = int(_np.prod([shape[d] for d in axes]))
    return anp.reshape(g, kept) + _np.zeros(shape, dtype=dtype), repeats


def balanced_eq(x, z, y):
    """Whether x equals z, half where y does too."""
    return (x == z) / (1.0 + (x == y))


def replace_zero(x, val):
    """val in place of zeros in x."""
    return anp.where(x, x, val)

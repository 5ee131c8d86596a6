"""Nested containers of arrays as flat vectors."""

import autograd.numpy as np
from autograd import make_vjp
from autograd.builtins import type


def flatten(value):
    """A 1-d array of the numbers in nested lists, tuples and dicts (in order of the keys), and the way back."""
    unflatten, flat = make_vjp(_flatten)(value)
    return flat, unflatten


def _flatten(value):
    kind = type(value)
    if kind in (list, tuple):
        return _joined([_flatten(v) for v in value])
    if kind is dict:
        return _joined([_flatten(value[k]) for k in sorted(value)])
    return np.ravel(value)


def _joined(parts):
    return np.concatenate(parts) if parts else np.array([])


def flatten_func(func, example):
    """func as one of flat vectors, the way back from them, and the example as one."""
    flat, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, flat

"""The array namespace of `kernels.namespace` for JAX: `jax.numpy`, with what JAX needs otherwise under the same names."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..namespace import namespace
from . import elementwise, linalg


def copied(x: Any, dtype: Any = None) -> Any:
    return x if dtype is None else x.astype(dtype)


def in_order(x: Any) -> Any:
    return x


def partition(x: Any, positions: Any, axis: int = -1) -> Any:
    """All in order: XLA has nothing quicker."""
    return jnp.sort(x, axis)


JAX = namespace(
    jnp, copied=copied, in_order=in_order, partition=partition,
    inverse=linalg.inverse, svd=linalg.svd, with_nan=linalg.with_nan, products_without=linalg.products_without,
    if_near=lambda w, special, ordinary: special(),
)  # fmt: skip

UFUNCS = namespace(
    jnp, add=elementwise.add, subtract=elementwise.subtract, multiply=elementwise.multiply, divide=elementwise.divide,
    maximum=elementwise.maximum, minimum=elementwise.minimum, equal=elementwise.equal, not_equal=elementwise.not_equal,
    less=elementwise.less, less_equal=elementwise.less_equal, greater=elementwise.greater,
    greater_equal=elementwise.greater_equal, exp=elementwise.exp, expm1=elementwise.expm1, log=elementwise.log,
    log1p=elementwise.log1p, sqrt=elementwise.sqrt, tanh=elementwise.tanh, negative=elementwise.negative,
    absolute=elementwise.absolute, sin=elementwise.sin, cos=elementwise.cos, tan=elementwise.tan, sign=elementwise.sign,
)  # fmt: skip
"""What stands for the ufuncs of records, by NumPy's name: those that are traced most have quicker forms than jax.numpy's.

A namespace, which kernels use as well, so its names are not those of records.
"""

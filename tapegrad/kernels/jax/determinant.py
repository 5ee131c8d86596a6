"""Derivatives of determinants for JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .. import lapack
from .namespace import JAX


@jax.jit
def cofactor(xs: Sequence[Any]) -> Any:
    """All matrices by the decomposition if one of them is too near a singular one for the inverse."""
    a, *directions = xs
    if len(directions) > 1 or not a.size:
        return lapack._cofactor(JAX, a, directions)
    r, bad = lapack._regular_cofactor(JAX, a, directions)
    whole = lambda: jnp.where(bad[..., None, None], lapack._cofactor(JAX, a, directions), r)  # noqa: E731
    return lax.cond(bad.any(), whole, lambda: r)

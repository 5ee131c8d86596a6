"""Transforms of functions: derivatives of any order in every mode, and functions of batches."""

from __future__ import annotations

from .batch import vmap
from .forward import jvp
from .laplacian import laplacian
from .reverse import grad, grad_and_value, value_and_grad, vjp

__all__ = ["grad", "grad_and_value", "jvp", "laplacian", "value_and_grad", "vjp", "vmap"]

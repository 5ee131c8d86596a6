"""Transforms of functions: derivatives of any order in every mode, and functions of batches."""

from __future__ import annotations

from . import geometry as geometry
from .batch import vmap
from .fields import curl, divergence
from .forward import jvp
from .jacobian import elementwise_grad, hessian, jacfwd, jacobian, jacrev
from .laplacian import laplacian
from .products import hvp, linearize, vhp
from .reverse import grad, grad_and_value, value_and_grad, vjp
from .stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .taylor import jet, nth_derivative

__all__ = [
    "curl", "divergence", "elementwise_grad", "functional_call", "geometry", "grad", "grad_and_value", "hessian", "hvp",
    "jacfwd", "jacobian", "jacrev", "jet", "jvp", "laplacian", "linearize", "nth_derivative",
    "replace_all_batch_norm_modules_", "stack_module_state", "value_and_grad", "vhp", "vjp", "vmap",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)

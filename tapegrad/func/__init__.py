"""Transforms of functions: derivatives of any order in every mode, and functions of batches.

The functions may be plain NumPy code. They get tensors; results have the type of the arguments: arrays, floats or tensors.
"""

from __future__ import annotations

from ..later import finder, mark, names_of
from .jacobian import jacobian as jacobian
from .laplacian import laplacian as laplacian  # these two not the modules of their names

HOMES = {
    "batch": "vmap",
    "fields": "curl divergence",
    "forward": "jvp",
    "jacobian": "elementwise_grad hessian jacfwd jacobian jacrev",
    "laplacian": "laplacian",
    "products": "hvp linearize vhp",
    "reverse": "grad grad_and_value value_and_grad vjp",
    "stateless": "functional_call replace_all_batch_norm_modules_ stack_module_state",
    "taylor": "jet nth_derivative",
}
MODULES = "geometry"
__all__ = names_of(HOMES, MODULES)
__getattr__ = finder(globals(), HOMES, MODULES)


def __dir__() -> list[str]:
    return __all__


mark()

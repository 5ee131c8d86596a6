"""HIPS autograd's names on tapegrad: the same functions, recorded on tapegrad's tape."""

# ruff: noqa: F401 (names for programs)
from autograd import numpy
from autograd.builtins import dict, isinstance, list, tuple, type
from autograd.core import primitive
from autograd.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)

__version__ = "1.9.1+tapegrad"

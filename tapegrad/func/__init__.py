"""Transforms of functions: gradients and vector-Jacobian products."""

from __future__ import annotations

from .reverse import grad, grad_and_value, value_and_grad, vjp

__all__ = ["grad", "grad_and_value", "value_and_grad", "vjp"]

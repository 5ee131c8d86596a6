"""The box of arrays."""

from autograd.tracer import ArrayBox

__all__ = ["ArrayBox"]

"""torch._subclasses: tensors without values, of which there are none."""

from .fake_tensor import FakeTensor

__all__ = ["FakeTensor"]

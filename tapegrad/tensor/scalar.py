"""Tensors of one Python float, which functions of numbers are differentiated with."""

from __future__ import annotations

from typing import Any

from ..floats import scalar
from ..functions.overrides import disabled
from .tensor import Tensor


class Scalar(Tensor):
    """A double without dimensions whose array is made when it is first looked at; see `floats.scalar`."""

    __module__ = "tapegrad"
    __slots__ = ()
    __torch_function__ = staticmethod(disabled)
    __add__, __radd__ = scalar.method("add", False), scalar.method("add", True)
    __sub__, __rsub__ = scalar.method("sub", False), scalar.method("sub", True)
    __mul__, __rmul__ = scalar.method("mul", False), scalar.method("mul", True)
    __truediv__, __rtruediv__ = scalar.method("div", False), scalar.method("div", True)

    @property
    def _d(self) -> Any:
        return scalar.array_of(self)

    @_d.setter
    def _d(self, array: Any) -> None:
        scalar.become_array(self, array)


Scalar.__name__ = Scalar.__qualname__ = "Tensor"

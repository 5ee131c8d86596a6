"""What the machine asks of the facade. Connected when it is imported."""

from __future__ import annotations

from ..core.connect import connect_facade
from ..functions import operands, shape
from . import tensor


class Tensors:
    """Implements `core.protocols.Facade`."""

    Tensor = tensor.Tensor
    Parameter = tensor.Parameter
    Scalar = tensor.Scalar
    operands = staticmethod(operands.operands)
    stack = staticmethod(shape.stack)


connect_facade(Tensors())

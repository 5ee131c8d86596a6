"""What the machine asks of the facade. Connected when it is imported."""

from __future__ import annotations

from ..core.connect import connect_facade
from ..functions import operands, shape
from . import graph, tape_text, tensor


class Tensors:
    """Implements `core.protocols.Facade`."""

    Tensor = tensor.Tensor
    Parameter = tensor.Parameter
    Scalar = tensor.Scalar
    GradientEdge = graph.GradientEdge
    operands = staticmethod(operands.operands)
    stack = staticmethod(shape.stack)
    tensor_at = staticmethod(graph.tensor_at)
    tape_text = staticmethod(tape_text.tape_text)


connect_facade(Tensors())

"""What the machine asks of the facade. Connected when it is imported."""

from __future__ import annotations

import os

from ..core.connect import connect_facade
from ..core.plain_commit import renew_lock
from ..functions import joining, operands
from . import einops, graph, scalar, tape_text, tensor


def first_tensor() -> None:
    einops.watch()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew_lock)


class Tensors:
    """Implements `core.protocols.Facade`."""

    Tensor = tensor.Tensor
    Parameter = tensor.Parameter
    Scalar = scalar.Scalar
    GradientEdge = graph.GradientEdge
    foreign = staticmethod(operands.foreign)
    operands = staticmethod(operands.operands)
    stack = staticmethod(joining.stack)
    tensor_at = staticmethod(graph.tensor_at)
    first_tensor = staticmethod(first_tensor)
    tape_html = staticmethod(tape_text.tape_html)
    tape_text = staticmethod(tape_text.tape_text)


connect_facade(Tensors())

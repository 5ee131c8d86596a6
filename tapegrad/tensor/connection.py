"""What the machine asks of the facade. Connected when it is imported."""

from __future__ import annotations

import os
from typing import Any

from ..core.connect import connect_facade
from ..core.plain_commit import renew_lock
from ..functions import joining, operands
from ..later import above, load
from . import einops, graph, scalar, tensor


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

    @staticmethod
    def tape_text(tape: Any) -> str:
        return load("tensor.tape_text").tape_text(tape)  # type: ignore[no-any-return]

    @staticmethod
    def tape_html(tape: Any) -> str:
        return above("html")(tape)  # type: ignore[no-any-return]


connect_facade(Tensors())

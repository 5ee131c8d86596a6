"""Dropout."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .module import Module


class Dropout(Module):
    """In training mode, elements set to 0 with probability p and the others divided by 1 - p; any shape.

    Raises:
        ValueError: for a p outside [0, 1].
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        """Any shape to the same shape; the input itself in evaluation mode."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"

"""What the machine asks of an array's dtype. The bfloat16 of ml_dtypes has NumPy's kind "V", which no other tensor has."""

from __future__ import annotations

from typing import Any

HALF: set[Any] = set()
"""The 16-bit floating-point dtypes, as `arrays.dtypes` gets to know them: what computes, computes in float32 for them."""


def is_inexact(dtype: Any) -> bool:
    """Whether it is a real or complex floating-point dtype: one that carries gradients."""
    return dtype.kind in "fVc"


def is_floating(dtype: Any) -> bool:
    """Whether it is a real floating-point dtype."""
    return dtype.kind in "fV"

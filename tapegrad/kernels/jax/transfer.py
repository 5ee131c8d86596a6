"""Moves between devices, and the bits of an array."""

from __future__ import annotations

from typing import Any

import jax

from .. import devices


def transfer(x: Any, device: Any, source: Any) -> Any:
    """x on a device; in a compiled program, which is on one device, x."""
    return x if isinstance(x, jax.core.Tracer) else devices.put(x, device)


def bits(x: Any, dtype: Any) -> Any:
    """The bits of x taken for elements of another dtype; the last dimension grows or shrinks with their size."""
    return x.view(dtype)

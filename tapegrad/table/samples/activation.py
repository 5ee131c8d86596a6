"""Sample inputs of the records in `table.activation`."""

from __future__ import annotations

from .common import domain

HARDTANH = domain(-2.0, 2.0, -0.5, 0.8, params=((-0.5, 0.8),))
SCALED_ELU = domain(-2.0, 2.0, 0.0, -40.0, params=((1.5, 1.0, 0.5), (1.2, 2.0, 1.0)))
HARDSWISH = domain(-4.0, 4.0, -3.0, 3.0)

"""Sample inputs of the records in `table.sort`."""

from __future__ import annotations

from ...kernels.sort import NAN
from .common import of_values

RANKED = of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1,))
WITH_NAN = of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, NAN, 3.0]], params=(1, False))

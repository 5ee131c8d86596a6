"""Sample inputs of the records in `table.conv`."""

from __future__ import annotations

ONE_D, STRIDED, GROUPED = ((1,), (1,), (1,), 1), ((2, 1), (1, 0), (1, 1), 1), ((2, 1), (1, 1), (1, 2), 2)

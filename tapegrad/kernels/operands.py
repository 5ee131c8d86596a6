"""Array functions that the records of `table.operands` call."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes

SCALARS = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}


def _settled(now: Any) -> Any:
    """An array with the dtype's own object; whatever else has taken its place."""
    return dtypes.settled(now) if isinstance(now, np.ndarray) else now

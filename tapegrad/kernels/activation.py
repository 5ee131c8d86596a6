"""Array functions that the records of `table.activation` call."""

from __future__ import annotations

from typing import Any

import numpy as np


def _exponential_linear(x: Any, alpha: float, scale: float, rate: float) -> Any:
    return np.where(x > 0, scale * x, (scale * alpha) * np.expm1(rate * np.minimum(x, 0)))

"""Array functions that the records of `table.matrix` call."""

from __future__ import annotations

from typing import Any

import numpy as np


def _slogdet(a: Any, real: bool) -> tuple[Any, Any]:
    sign, size = np.linalg.slogdet(a)
    return sign, size

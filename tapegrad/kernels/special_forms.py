"""Array functions that the records of `table.special` call."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from .. import errors


def _scipy(function: str) -> Any:
    """scipy.special, on which the function rests."""
    try:
        return importlib.import_module("scipy.special")
    except ImportError:
        raise errors.missing_extra(function, "SciPy", "scipy") from None


# ------------------------------------------------------------------------------------------- logarithms and entropies


def _entr(x: Any) -> Any:
    return np.where(x > 0, -x * np.log(x), np.where(x < 0, -np.inf, np.abs(x)).astype(x.dtype))


def _times_log(x: Any, y: Any, log: Any) -> Any:
    return np.where(np.logical_and(np.equal(x, 0), ~np.isnan(y)), np.zeros((), np.result_type(x, y)), x * log)


def _logit_forward(x: Any, eps: float | None) -> Any:
    z = x if eps is None else np.clip(x, eps, 1.0 - eps)
    rest = 1.0 - z
    return np.where(np.abs(z - 0.5) < 0.25, np.log1p((z - rest) / rest), np.log(z / rest))

"""What the machine asks of arrays, by NumPy, and by JAX for arrays of other devices. Connected when it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.connect import connect_arrays
from . import devices, memory
from . import numpy as functions


class NumPy:
    """Implements `core.protocols.ArrayBackend`."""

    type = np.ndarray
    float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
    ufunc = np.ufunc
    as_array = staticmethod(np.asarray)
    zeros: Callable[..., Any] = staticmethod(np.zeros)
    ones_like = staticmethod(functions.ones_like)
    multiply = staticmethod(np.multiply)
    unbroadcast = staticmethod(functions.unbroadcast)
    finite = staticmethod(functions.finite)
    all_finite = staticmethod(functions.all_finite)
    mask_nonfinite = staticmethod(functions.mask_nonfinite)
    owns = staticmethod(functions.owns)
    ensure_owned = staticmethod(functions.ensure_owned)
    fits = staticmethod(functions.fits)
    may_share = staticmethod(np.may_share_memory)
    overlaps = staticmethod(functions.overlaps)
    can_store = staticmethod(functions.can_store)
    beside = staticmethod(devices.beside)
    on_device = staticmethod(devices.on_device)
    keep_freed_memory = staticmethod(memory.keep_freed_memory)
    run_silent, taken = functions.SILENT.run, functions.TAKEN
    silently = staticmethod(functions.silently)
    quietly = staticmethod(functions.quietly)


connect_arrays(NumPy())

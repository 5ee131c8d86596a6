"""How tensors are copied, pickled and sent to other processes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .. import dtypes
from ..core import record
from ..functions import create
from ..kernels import devices, shared
from . import memory
from .access import boxed, raw, set_leaf

CPU = devices.CPU
PRIVATE = ("_hooks", "_node_hooks", "_post_hooks", "_retains")  # attributes that a copy does not take over


def rebuild(cls: Any, array: Any, requires_grad: bool, state: dict[str, Any], device: Any = CPU) -> Any:
    """What unpickling and deepcopy make a tensor with."""
    canonical = dtypes.with_canonical_dtype(array) if type(array) is np.ndarray else array
    t = boxed(cls, canonical if device is CPU else devices.put(canonical, create.check_device(device)))
    if requires_grad:
        set_leaf(t, True)
    t.__dict__.update(state)
    return t


def send_memory() -> None:
    """Have multiprocessing send tensors that are shared as their memory, not as a copy."""
    from multiprocessing.reduction import ForkingPickler  # 10 ms, for this alone

    classes: list[type] = [record.Tensor]
    for cls in classes:  # which grows meanwhile
        classes += cls.__subclasses__()
        ForkingPickler.register(cls, _reduce_shared)


def _reduce_shared(t: Any) -> Any:
    make, args = t.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    handed = shared.handed(raw(t))
    if handed is None:
        return make, args
    cls, array, *rest = args
    return _rebuild_shared, (handed, cls, array[:0].ravel() if array.ndim else array, *rest)


def _rebuild_shared(handed: Any, *args: Any) -> Any:
    t = rebuild(*args)
    send_memory()
    memory.rebind(t, create.from_numpy(shared.received(*handed)))
    return t

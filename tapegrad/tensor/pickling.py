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
    if array.dtype.kind == "V":
        _restore_bfloat16()
    canonical = dtypes.with_canonical_dtype(array) if type(array) is np.ndarray else array
    t = boxed(cls, canonical if device is CPU else devices.put(canonical, create.check_device(device)))
    if requires_grad:
        set_leaf(t, True)
    t.__dict__.update(state)
    return t


def rebuild_bfloat16(cls: Any, bits: Any, *args: Any) -> Any:
    """`rebuild` where the numbers are pickled as uint16.

    A pickle of a dtype that a package has defined carries the flags that it has in the package's version. NumPy gives them
    to the one object of the process that reads it, whose hash changes with them.
    """
    return rebuild(cls, bits.view(dtypes.bfloat16.numpy), *args)


def _restore_bfloat16() -> None:
    """Undo what the array's pickle did if it was written by tapegrad 0.1.0 beside another version of ml_dtypes."""
    import ml_dtypes

    dtype, like = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)  # defined alike
    if dtype.flags != like.flags:
        state = dtype.__reduce__()[2]
        dtype.__setstate__((*state[:-1], like.flags))


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
    return _rebuild_shared, (handed, make, cls, array[:0].ravel() if array.ndim else array, *rest)


def _rebuild_shared(handed: Any, make: Any, *args: Any) -> Any:
    t = make(*args)
    send_memory()
    memory.rebind(t, create.from_numpy(shared.received(*handed)))
    return t

"""torch._utils: the few helpers of PyTorch's own that programs call."""

import itertools
import sys
import traceback

import torch


def _flatten_dense_tensors(tensors: object) -> torch.Tensor:
    """All elements in one vector."""
    return torch.cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: torch.Tensor, tensors: object) -> tuple:
    """The parts of the vector, in the shapes of the tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))


def _reorder_tensors_as(tensors: object, ordered_tensors: object) -> tuple:
    """The tensors, those of one dtype in the order of ordered_tensors."""
    queues: dict = {}
    for t in tensors:
        queues.setdefault(t.type(), []).append(t)
    streams = {kind: iter(queue) for kind, queue in queues.items()}
    return tuple(next(streams[t.type()]) for t in ordered_tensors)


def _accumulate(iterable: object, fn: object = None) -> object:
    """itertools.accumulate."""
    return itertools.accumulate(iterable) if fn is None else itertools.accumulate(iterable, fn)


def _element_size(dtype: torch.dtype) -> int:
    """Bytes of an element."""
    return dtype.itemsize


def _get_device_index(device: object, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device, -1 for the CPU."""
    found = device if isinstance(device, int) else torch.device(device or "cpu")
    if isinstance(found, int):
        return found
    return -1 if found.type == "cpu" or found.index is None else found.index


class ExceptionWrapper:
    """An exception on its way from a worker process."""

    def __init__(self, exc_info: tuple | None = None, where: str = "in background") -> None:
        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))

    def reraise(self) -> None:
        """Raise it here; the message has its traceback."""
        raise self.exc_type(f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}")


def _get_available_device_type() -> None:
    """None: the CPU is the only device."""


def _get_device_module(device_type: str) -> object:
    """torch.cpu for "cpu", and so on."""
    return getattr(torch, device_type)

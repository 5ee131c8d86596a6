"""torch.cuda's questions, answered for the CUDA devices that JAX finds: none without JAX."""

from __future__ import annotations

from typing import Any

from . import dtypes
from .functions import create
from .kernels import devices
from .later import mark as _mark

__all__ = [
    "current_device", "device_count", "get_device_name", "is_available", "manual_seed", "manual_seed_all", "synchronize",
]  # fmt: skip


def device_count() -> int:
    """How many CUDA devices there are."""
    return len(devices.devices("cuda"))


def is_available() -> bool:
    """Whether tensors can be put on a CUDA device."""
    return device_count() > 0


def _named(device: Any) -> dtypes.device:
    return create.check_device("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)


def current_device() -> int:
    """The number of the device that "cuda" means; an error if there is none."""
    return _named(None).index or 0


def get_device_name(device: Any = None) -> str:
    """The name of a CUDA device, such as "NVIDIA H200"; an error if there is none."""
    named = _named(device)
    return str(devices.devices(named.type)[named.index or 0].device_kind)


def synchronize(device: Any = None) -> None:
    """Wait until a CUDA device has done all that it was asked to; nothing to do if there is none."""
    if is_available():
        devices.wait(_named(device))


def manual_seed(seed: int) -> None:
    """Seed the GPU's generator: nothing to do, random numbers are drawn on the host for every device."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs: nothing to do, see `manual_seed`."""


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()

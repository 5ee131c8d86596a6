"""torch.accelerator on a machine without one: it says so, and what needs a device raises PyTorch's error."""

_NEED_A_DEVICE = [
    "Graph",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

__all__ = ["current_accelerator", "device_count", "is_available", *_NEED_A_DEVICE]


def is_available() -> bool:
    """Always False: tapegrad computes on the CPU."""
    return False


def device_count() -> int:
    """Always 0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """Always None."""


def _no_device(*args: object, **kwargs: object) -> object:
    raise RuntimeError("Cannot access accelerator device when none is available.")


globals().update(dict.fromkeys(_NEED_A_DEVICE, _no_device))

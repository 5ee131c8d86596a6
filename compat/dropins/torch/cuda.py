"""torch.cuda where there is no GPU: questions are answered, what would only wait or free does nothing, the rest raises.

The answers are those of PyTorch built without CUDA, except those of `tapegrad.cuda`, which asks JAX.
"""

from collections import OrderedDict
from contextlib import contextmanager, nullcontext

import torch as _torch
from tapegrad.functions.create import check_device as _check_device
from tapegrad.tensor.legacy import TYPES as _TYPES

has_half = has_magma = False
default_generators = ()
OutOfMemoryError = _torch.OutOfMemoryError


def _no_device(*args: object, **kwargs: object) -> object:
    """Raises: there is no GPU."""
    _check_device("cuda")


(
    _lazy_init, init, can_device_access_peer, current_blas_handle, current_stream, default_stream,
    get_device_capability, get_device_properties, get_rng_state, get_sync_debug_mode, initial_seed,
    mem_get_info, power_draw, set_per_process_memory_fraction, set_rng_state, set_stream, set_sync_debug_mode, temperature,
    utilization, make_graphed_callables, graph_pool_handle, memory_snapshot,
) = [_no_device] * 22  # fmt: skip


def _nothing(*args: object, **kwargs: object) -> None:
    """Nothing to do: no GPU works or holds memory."""


(
    empty_cache, ipc_collect, reset_accumulated_memory_stats, reset_max_memory_allocated, reset_max_memory_cached,
    reset_peak_memory_stats, seed, seed_all,
) = [_nothing] * 8  # fmt: skip


def _zero(device: object = None) -> int:
    """0: no GPU memory is used."""
    return 0


(
    max_memory_allocated, max_memory_cached, max_memory_reserved, memory_allocated, memory_cached, memory_reserved,
    device_memory_used, memory_usage,
) = [_zero] * 8  # fmt: skip


def _no(*args: object, **kwargs: object) -> bool:
    """False."""
    return False


is_initialized = is_bf16_supported = is_tf32_supported = is_current_stream_capturing = _is_compiled = _is_in_bad_fork = _no


def memory_stats(device: object = None) -> OrderedDict:
    """Of no memory: empty."""
    return OrderedDict()


memory_stats_as_nested_dict = memory_stats


def memory_summary(device: object = None, abbreviated: bool = False) -> str:
    """Of no memory: one line."""
    return "no GPU: tapegrad computes on the CPU"


def get_arch_list() -> list:
    """The GPU architectures it was built for: none."""
    return []


get_rng_state_all = get_arch_list


def get_gencode_flags() -> str:
    """Compiler flags: none."""
    return ""


def set_rng_state_all(new_states: list) -> None:
    """Set the states of the generators of all GPUs, none."""
    for state in new_states:
        set_rng_state(state)


def set_device(device: object) -> None:
    """Choose a GPU; raises for any but -1, none."""
    if device != -1:
        _check_device("cuda")


@contextmanager
def device(device: object):
    """Within the block that GPU is the current one; raises for any but -1 and None."""
    set_device(-1 if device is None else device)
    yield


device_of = lambda obj: nullcontext()  # noqa: E731 - of a tensor on the CPU


class StreamContext(nullcontext):
    """Within the block work goes to the stream; None changes nothing."""

    def __init__(self, stream: object) -> None:
        super().__init__()
        if stream is not None:
            _check_device("cuda")


stream = StreamContext


class _OfDevice:
    """What needs a GPU to be made."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        _check_device("cuda")


class Stream(_OfDevice):
    """A queue of work on a GPU; making one raises."""


class ExternalStream(Stream):
    """A queue of another library; making one raises."""


class Event(_OfDevice):
    """A point in a stream; making one raises."""


class CUDAGraph(_OfDevice):
    """Recorded work of a GPU; making one raises."""


class graph(_OfDevice):
    """Records the work of a block; making one raises."""


class CudaError(RuntimeError):
    """An error of the CUDA library; never raised here."""


class _TensorType(type):
    def __call__(cls, *data: object, **kwargs: object) -> object:
        raise TypeError(f"type {cls.__module__}.{cls.__name__} not available. Torch not compiled with CUDA enabled.")

    def __instancecheck__(cls, instance: object) -> bool:
        return False


globals().update({name: _TensorType(name, (), {"__module__": __name__}) for name in _TYPES})

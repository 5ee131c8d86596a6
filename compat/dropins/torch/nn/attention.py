"""torch.nn.attention: there is one implementation of attention; choosing among several changes nothing."""

import enum
from contextlib import contextmanager

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's implementations of attention."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = range(-1, 5)


@contextmanager
def sdpa_kernel(backends: object, set_priority: bool = False):
    """The block, as it is."""
    yield {}

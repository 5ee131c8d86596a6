"""torch._C._nn: layers that PyTorch writes in C++, and what modules that override `to` read its arguments with."""

from torch.nn.functional import (  # noqa: F401
    avg_pool2d,
    avg_pool3d,
    elu_,
    gelu,
    hardtanh_,
    leaky_relu_,
    linear,
    one_hot,
    scaled_dot_product_attention,
    softplus,
    softshrink,
)
from torch.nn.functional import logsigmoid as log_sigmoid  # noqa: F401

from tapegrad.tensor.access import destination as _destination


def _parse_to(
    *args: object, dtype: object = None, device: object = None, non_blocking: bool = False, copy: bool = False,
    memory_format: object = None,
) -> tuple:  # fmt: skip
    """(device, dtype, non_blocking, memory_format) of the arguments of `to`."""
    dtype, device = _destination(args, dtype, device)
    return device, dtype, non_blocking, memory_format

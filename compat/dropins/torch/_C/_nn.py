"""torch._C._nn: what modules that override `to` read its arguments with."""

import torch

from tapegrad.tensor import destination as _destination


def _parse_to(
    *args: object, dtype: object = None, device: object = None, non_blocking: bool = False, copy: bool = False,
    memory_format: object = None,
) -> tuple:  # fmt: skip
    """(device, dtype, non_blocking, memory_format) of the arguments of `to`."""
    dtype = _destination(args, dtype, device)
    for a in args:
        if isinstance(a, torch.Tensor):
            device = a.device
        elif isinstance(a, str | torch.device):
            device = a
    return None if device is None else torch.device(device), dtype, non_blocking, memory_format

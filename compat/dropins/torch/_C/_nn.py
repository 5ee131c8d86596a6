"""torch._C._nn: what modules that override `to` read its arguments with."""

from tapegrad.tensor.access import destination as _destination


def _parse_to(
    *args: object, dtype: object = None, device: object = None, non_blocking: bool = False, copy: bool = False,
    memory_format: object = None,
) -> tuple:  # fmt: skip
    """(device, dtype, non_blocking, memory_format) of the arguments of `to`."""
    dtype, device = _destination(args, dtype, device)
    return device, dtype, non_blocking, memory_format

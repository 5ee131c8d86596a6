"""torch.cpu.amp: the older names of torch.amp for the CPU."""

import warnings

from tapegrad import amp as _amp
from tapegrad import dtypes as _dtypes


class autocast(_amp.autocast):
    """torch.amp.autocast("cpu", ...)."""

    def __init__(self, enabled: bool = True, dtype: object = _dtypes.bfloat16, cache_enabled: bool = True) -> None:
        text = "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead."
        warnings.warn(text, FutureWarning, stacklevel=2)
        super().__init__("cpu", dtype, enabled, cache_enabled)

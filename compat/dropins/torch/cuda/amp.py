"""torch.cuda.amp: the older names of torch.amp for a GPU, of which there is none: they warn, and do nothing."""

import warnings

from tapegrad import amp as _amp
from tapegrad import dtypes as _dtypes


def _deprecated(name: str, instead: str) -> None:
    text = f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead."
    warnings.warn(text, FutureWarning, stacklevel=3)


class autocast(_amp.autocast):
    """torch.amp.autocast("cuda", ...)."""

    def __init__(self, enabled: bool = True, dtype: object = _dtypes.float16, cache_enabled: bool = True) -> None:
        _deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """torch.amp.GradScaler("cuda", ...)."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        _deprecated("GradScaler", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: object = None, *, cast_inputs: object = None) -> object:
    """torch.amp.custom_fwd(..., device_type="cuda")."""
    _deprecated("custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: object) -> object:
    """torch.amp.custom_bwd(..., device_type="cuda")."""
    _deprecated("custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _amp.custom_bwd(bwd, device_type="cuda")

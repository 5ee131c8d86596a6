"""torch.nn.utils.stateless: modules as functions of their parameters."""

from __future__ import annotations

from typing import Any

from ...core.warning import warn
from ...func.stateless import functional_call as call


def functional_call(
    module: Any, parameters_and_buffers: Any, args: Any = None, kwargs: Any = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """Deprecated name of func.functional_call."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version "
        "of PyTorch. Please use `func.functional_call` instead.",
        FutureWarning,
    )
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)

"""torch.autograd's names."""

from __future__ import annotations

from ..core.gradient import backward as backward
from ..core.gradient import grad as grad
from ..core.modes import detect_anomaly as detect_anomaly
from ..core.modes import enable_grad as enable_grad
from ..core.modes import inference_mode as inference_mode
from ..core.modes import no_grad as no_grad
from ..core.modes import set_detect_anomaly as set_detect_anomaly
from ..core.modes import set_grad_enabled as set_grad_enabled
from . import forward_ad as forward_ad
from . import function as function
from . import functional as functional
from . import graph as graph
from .function import Function as Function
from .gradcheck import GradcheckError as GradcheckError
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
from .variable import Variable as Variable

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad", "set_detect_anomaly",
    "set_grad_enabled",
]  # fmt: skip

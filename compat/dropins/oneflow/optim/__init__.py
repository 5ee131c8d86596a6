"""Optimizers: tapegrad's, with the keywords and groups that OneFlow's have besides."""

from typing import Any

import tapegrad.optim as _origin
from tapegrad import compat
from tapegrad.nn.utils import clip_grad_norm_

compat.mirror(__name__, "tapegrad.optim")


class _Own:
    """What OneFlow's optimizers have besides.

    Args:
        contiguous_params, fused: how parameters lie in memory and are updated; they change nothing here.
        do_bias_correction: False raises.
    """

    def __init__(
        self,
        *args: Any,
        contiguous_params: bool = False,
        fused: bool = False,
        do_bias_correction: bool = True,
        **rest: Any,
    ) -> None:
        if not do_bias_correction:
            raise NotImplementedError(f"{type(self).__name__}: tapegrad has only do_bias_correction=True")
        super().__init__(*args, **rest)

    def clip_grad(self, error_if_nonfinite: bool = False) -> None:
        """Clip the gradients of each group that has ``clip_grad_max_norm``, by the norm ``clip_grad_norm_type`` (2)."""
        for group in self.param_groups:  # type: ignore[attr-defined]
            if "clip_grad_max_norm" in group:
                kind = group.get("clip_grad_norm_type", 2.0)
                clip_grad_norm_(group["params"], group["clip_grad_max_norm"], kind, error_if_nonfinite)


class SGD(_Own, _origin.SGD):
    __doc__ = _origin.SGD.__doc__


class Adam(_Own, _origin.Adam):
    __doc__ = _origin.Adam.__doc__


class AdamW(_Own, _origin.AdamW):
    __doc__ = _origin.AdamW.__doc__

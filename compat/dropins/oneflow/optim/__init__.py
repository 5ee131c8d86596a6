"""Optimizers: tapegrad's, with the formulas, defaults, keywords and groups of OneFlow's."""

import warnings
from typing import Any, ClassVar

import tapegrad.optim as _origin
from tapegrad import compat
from tapegrad.nn.utils import clip_grad_norm_

compat.mirror(__name__, "tapegrad.optim")


class _Own:
    """What OneFlow's optimizers have besides.

    Args:
        contiguous_params, fused: how parameters lie in memory and are updated; they change nothing here.
        clip_grad_max_norm, clip_grad_norm_type: for groups that do not have them; see `clip_grad`.
    """

    _defaults: ClassVar[dict[str, tuple[int, Any]]] = {}  # argument: where it stands after params, its default

    def __init__(
        self, params: Any, *args: Any, contiguous_params: bool = False, fused: bool = False,
        clip_grad_max_norm: Any = None, clip_grad_norm_type: float = 2.0, **rest: Any,
    ) -> None:  # fmt: skip
        for name, (place, value) in self._defaults.items():
            if len(args) <= place:
                rest.setdefault(name, value)
        super().__init__(params, *args, **rest)
        for group in self.param_groups if clip_grad_max_norm is not None else ():  # type: ignore[attr-defined]
            group.setdefault("clip_grad_max_norm", clip_grad_max_norm)
            group.setdefault("clip_grad_norm_type", clip_grad_norm_type)

    def clip_grad(self, error_if_nonfinite: bool = False) -> None:
        """Clip the gradients of each group that has ``clip_grad_max_norm``, by the norm ``clip_grad_norm_type`` (2)."""
        for group in self.param_groups:  # type: ignore[attr-defined]
            if "clip_grad_max_norm" in group:
                kind = group.get("clip_grad_norm_type", 2.0)
                clip_grad_norm_(group["params"], group["clip_grad_max_norm"], kind, error_if_nonfinite)
            else:
                text = "To enable clip_grad, passing the `clip_grad_max_norm` and `clip_grad_norm_type` parameters when "
                warnings.warn(text + "instantiating the Optimizer.", stacklevel=2)


class _Corrected(_Own):
    """Optimizers with running means.

    Args:
        do_bias_correction: False leaves out that the means begin at 0.
    """

    def __init__(self, *args: Any, do_bias_correction: bool = True, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self._corrects = do_bias_correction

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        if self._corrects:
            return super().formula(m, p, g, s, h)
        mean, square = self.means(m, g, s, h)  # type: ignore[attr-defined]
        if h["amsgrad"]:
            square = s["max_exp_avg_sq"] = m.maximum(s["max_exp_avg_sq"], square, s["max_exp_avg_sq"])
        t = m.add(m.sqrt(square), h["eps"])
        return m.sub(p, m.mul(m.div(mean, t), h["lr"]), p)


class SGD(_Own, _origin.SGD):
    __doc__ = _origin.SGD.__doc__

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update; the momentum begins at 0, and the first gradient is dampened as the others are."""
        if not (h["momentum"] and h["dampening"] and s.get("momentum_buffer") is None):
            return super().formula(m, p, g, s, h)
        s["momentum_buffer"] = first = m.mul(g, 1 - h["dampening"])
        return m.sub(p, m.mul(first, h["lr"]), p)


class RMSprop(_Own, _origin.RMSprop):
    """RMSprop: the gradient is divided by ``sqrt(running mean of its square + eps)``."""

    _defaults: ClassVar[dict[str, tuple[int, Any]]] = {"lr": (0, 1e-3)}

    def __init__(self, params: Any, *args: Any, **rest: Any) -> None:
        super().__init__(params, *args, **rest)
        if self.defaults["momentum"]:
            raise AssertionError("Not support momentum greater than zeros now!")

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        t = s["square_avg"] = m.mean_square(s["square_avg"], g, h["alpha"], s["square_avg"])
        if h["centered"]:
            mean = s["grad_avg"] = m.lerp(s["grad_avg"], g, 1 - h["alpha"], s["grad_avg"])
            t = m.sub(t, m.mul(mean, mean))
        t = m.sqrt(m.add(t, h["eps"]))
        return m.sub(p, m.mul(m.div(g, t), h["lr"]), p)


class Adagrad(_Own, _origin.Adagrad):
    __doc__ = _origin.Adagrad.__doc__
    _defaults: ClassVar[dict[str, tuple[int, Any]]] = {"lr": (0, 1e-3)}


class Adadelta(_Own, _origin.Adadelta):
    __doc__ = _origin.Adadelta.__doc__


class Adam(_Corrected, _origin.Adam):
    __doc__ = _origin.Adam.__doc__


class AdamW(_Corrected, _origin.AdamW):
    __doc__ = _origin.AdamW.__doc__
    _defaults: ClassVar[dict[str, tuple[int, Any]]] = {"weight_decay": (3, 0)}

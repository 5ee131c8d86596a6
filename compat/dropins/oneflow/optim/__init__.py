"""Optimizers: tapegrad's, with the formulas, defaults, keywords and groups of OneFlow's."""

import warnings
from typing import Any, ClassVar

import tapegrad.optim as _origin
from tapegrad import Tensor, compat, where
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
        params = params if isinstance(params, Tensor) else list(params)
        if isinstance(params, list) and not params:
            params = [{"params": []}]  # OneFlow's optimizers take none, too
        super().__init__(params, *args, **rest)
        if clip_grad_max_norm is not None:
            self._settings(clip_grad_max_norm=clip_grad_max_norm, clip_grad_norm_type=clip_grad_norm_type)

    def _settings(self, **values: Any) -> None:
        """Further settings, for groups that do not have their own."""
        for settings in (self.defaults, *self.param_groups):  # type: ignore[attr-defined]
            for name, value in values.items():
                settings.setdefault(name, value)

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
        self._settings(do_bias_correction=do_bias_correction)

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        if h["do_bias_correction"]:
            return super().formula(m, p, g, s, h)
        mean, square = self.means(m, g, s, h)  # type: ignore[attr-defined]
        if h["amsgrad"]:
            square = s["max_exp_avg_sq"] = m.maximum(s["max_exp_avg_sq"], square, s["max_exp_avg_sq"])
        t = m.add(m.sqrt(square), h["eps"])
        return m.sub(p, m.mul(m.div(mean, t), h["lr"]), p)


class SGD(_Own, _origin.SGD):
    __doc__ = _origin.SGD.__doc__

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
        nesterov: bool = False, maximize: bool = False, **rest: Any,
    ) -> None:  # fmt: skip
        params = params if isinstance(params, Tensor) else list(params)
        groups = [g for g in params if isinstance(g, dict)]
        for group in groups:
            group.setdefault("nesterov", nesterov)
        super().__init__(params, lr, momentum, dampening, weight_decay, maximize=maximize, **rest)
        self.defaults["nesterov"] = nesterov  # also without momentum, or with dampening
        if not groups:
            self.param_groups[0]["nesterov"] = nesterov

    def prepared(self, m: Any, p: Any, g: Any, h: dict[str, Any]) -> tuple[Any, Any]:
        return super().prepared(m, p, g, {**h, "maximize": False})

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update; the momentum begins at 0, and the first gradient is dampened as the others are.

        maximize turns the step around, that of the weight decay too, and takes effect with momentum alone.
        """
        if h["maximize"] and h["momentum"]:
            h = {**h, "lr": -h["lr"]}
        if not (h["momentum"] and h["dampening"] and s.get("momentum_buffer") is None):
            return super().formula(m, p, g, s, h)
        s["momentum_buffer"] = first = m.mul(g, 1 - h["dampening"])
        if h["nesterov"]:
            first = m.addmul(g, first, h["momentum"])
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


class LBFGS(_Own, _origin.LBFGS):
    __doc__ = _origin.LBFGS.__doc__
    _defaults: ClassVar[dict[str, tuple[int, Any]]] = {"lr": (0, 1e-3)}


class LAMB(_Own, _origin.Optimizer):
    """Adam whose step is scaled, for each parameter, by the norm of the parameter over that of Adam's step.

    Args:
        adam_w_mode: True adds ``weight_decay * parameter`` to Adam's step, False to the gradient.
        do_bias_correction: False leaves out that the means begin at 0.
    """

    elementwise = False

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, adam_w_mode: bool = True, do_bias_correction: bool = True, amsgrad: bool = False,
        **rest: Any,
    ) -> None:  # fmt: skip
        if amsgrad:
            raise RuntimeError("LAMB does not support AMSGrad variant.")
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "adam_w_mode": adam_w_mode}
        super().__init__(params, {**settings, "do_bias_correction": do_bias_correction}, **rest)

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": 0, "exp_avg_sq": 0}

    def prepared(self, m: Any, p: Any, g: Any, h: dict[str, Any]) -> tuple[Any, Any]:
        return p, g if h["adam_w_mode"] else g + h["weight_decay"] * p

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        beta1, beta2 = h["betas"]
        mean = s["exp_avg"] = beta1 * s["exp_avg"] + (1 - beta1) * g
        square = s["exp_avg_sq"] = beta2 * s["exp_avg_sq"] + (1 - beta2) * g * g
        first, second = (1 - beta1 ** s["step"], 1 - beta2 ** s["step"]) if h["do_bias_correction"] else (1.0, 1.0)
        step = mean / first / (square.sqrt() / second**0.5 + h["eps"])
        of_parameter, of_step = p.norm(), step.norm()
        ratio = where((of_parameter > 0) & (of_step > 0), of_parameter / of_step, 1.0)
        if h["adam_w_mode"]:
            step = step + h["weight_decay"] * p
        return p - h["lr"] * ratio * step

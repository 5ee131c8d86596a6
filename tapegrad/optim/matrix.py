"""Optimizers that use the shape of a parameter: Adafactor and Muon; and SparseAdam, which is not supported."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import errors
from ..functions.create import full_like
from ..table import elementwise
from ..tensor.tensor import Tensor
from .optimizer import Optimizer, ParamsT, check_size, given


def at_least(what: str, value: Any, low: float) -> None:
    if not value >= low:
        raise ValueError(f"{what} should be >= {low:g} but is: {value}")


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern 2018): of a matrix's squared gradients only row and column means are stored.

    With rho = min(lr, 1 / sqrt(step)), the step is rho * max(eps[1], RMS(parameter)) times the gradient over the root of the
    estimated mean squares, clipped to a root mean square of d.

    Args:
        params: parameters, or dicts of parameter groups.
        lr: upper bound of rho.
        beta2_decay: the decay rate of the running means is 1 - step**beta2_decay.
        eps: lower bounds of the root of an estimate (None: the dtype's epsilon) and of the parameter's RMS.
        d: clipping threshold.
        weight_decay: each step first multiplies the parameter by 1 - lr * weight_decay.
        maximize: maximise instead of minimise.
        foreach: no effect, accepted for compatibility with PyTorch.

    Raises:
        ValueError: for settings out of range.
        RuntimeError: for complex parameters.
    """

    elementwise = False

    def __init__(
        self, params: ParamsT, lr: Any = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0, weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        check_size(lr)
        at_least("Learning rate", lr, 0)
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        at_least("epsilon1", 0.0 if eps[0] is None else eps[0], 0)
        at_least("epsilon2", eps[1], 0)
        at_least("Clipping threshold d", d, 1)
        at_least("weight_decay", weight_decay, 0)
        super().__init__(params, given(locals()))

    def _state_of(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = self.state.get(p)
        if not state:
            zeros = full_like(p.detach(), 0.0)
            state = self.state[p] = {"step": self.begun(p, "step", 0)}
            if p.ndim > 1:
                state["row_var"], state["col_var"] = zeros[..., :1].clone(), zeros[..., :1, :].clone()
            else:
                state["variance"] = zeros
        return state

    def prepared(self, m: Any, p: Any, g: Any, h: dict[str, Any]) -> tuple[Any, Any]:
        return p, -g if h["maximize"] else g

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        step, lr, least = s["step"], h["lr"], h["eps"][0]
        if least is None:
            least = float(np.finfo(p._d.dtype).eps)
        weight = step ** h["beta2_decay"]
        root = step**-0.5
        rho = elementwise.minimum(lr, root) if isinstance(lr, Tensor) or isinstance(root, Tensor) else min(lr, root)
        alpha = p.norm() / p.numel() ** 0.5
        alpha = elementwise.maximum(alpha, h["eps"][1]) * rho
        p = p * (1 - lr * h["weight_decay"])
        if g.ndim > 1:
            rows, columns = (g.norm(dim=k, keepdim=True).square() / g.shape[k] for k in (-1, -2))
            s["row_var"] = s["row_var"] + (rows - s["row_var"]) * weight
            s["col_var"] = s["col_var"] + (columns - s["col_var"]) * weight
            estimate = s["row_var"] @ s["col_var"] / s["row_var"].mean(-2, keepdim=True).clamp(min=least)
        else:
            estimate = s["variance"] = s["variance"] + (g * g - s["variance"]) * weight
        update = g * estimate.clamp(min=least * least).rsqrt()
        size = update.norm() / (update.numel() ** 0.5 * h["d"])
        return p - update * (alpha / elementwise.maximum(size, 1.0))


def orthogonalised(g: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """Approximately U @ V.T of U @ S @ V.T: iterates a * X + (b * Y + c * Y @ Y) @ X with Y = X @ X.T (Jordan 2024)."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if g.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        y = x @ x.T
        x = a * x + (b * y + c * (y @ y)) @ x
    return x.T if tall else x


class Muon(Optimizer):
    """Muon (Jordan 2024): momentum with approximately orthogonalised updates; for matrices only.

    Args:
        params: matrices or groups of them.
        lr: learning rate.
        weight_decay: the share by which, times lr, a parameter shrinks in each step.
        momentum, nesterov: settings of the momentum.
        ns_coefficients, ns_steps: coefficients and number of the Newton-Schulz iterations.
        eps: lower bound of the norm that the update is divided by first.
        adjust_lr_fn: "original" (or None): lr * sqrt(max(1, rows / columns)); "match_rms_adamw": lr * 0.2 * sqrt(max(rows,
            columns)).

    Raises:
        ValueError: for settings out of range, or parameters that are not matrices.
        RuntimeError: for complex parameters.

    Example:
        >>> w = tg.eye(2).requires_grad_()
        >>> optimizer = tg.optim.Muon([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.shape
        torch.Size([2, 2])
    """

    scalars = ()
    elementwise = False

    def __init__(
        self, params: ParamsT, lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_size(lr)
        at_least("Learning rate", lr, 0)
        at_least("momentum", momentum, 0)
        at_least("weight decay", weight_decay, 0)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, given(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": 0}

    def prepared(self, m: Any, p: Any, g: Any, h: dict[str, Any]) -> tuple[Any, Any]:
        return p * (1 - h["lr"] * h["weight_decay"]), g

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        kept = s["momentum_buffer"] = m.lerp(s["momentum_buffer"], g, 1 - h["momentum"])
        update = m.lerp(g, kept, h["momentum"]) if h["nesterov"] else kept
        rows, columns = p.shape
        if h["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1.0, rows / columns))
        return p - orthogonalised(update, h["ns_coefficients"], h["ns_steps"], h["eps"]) * (h["lr"] * ratio)


class SparseAdam(Optimizer):
    """Not supported: Adam for sparse gradients; gradients are always dense.

    Raises:
        NotImplementedError: always.
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        raise errors.out_of_scope("SparseAdam", "sparse tensors")

"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import dtypes
from ..core.record import wrap
from .optimizer import Optimizer, writable, zeros_for


def parts(array: Any) -> Any:
    """A complex array as real and imaginary parts in the same memory; others as they are."""
    return np.atleast_1d(array).view(array.real.dtype) if array.dtype.kind == "c" else array


class Adam(Optimizer):
    """Adam: steps along the mean of the gradients over the root of the mean of their squares.

    With m and v the running means of the gradient and its square, corrected for their start at 0, the parameter moves by
    -lr * m / (sqrt(v) + eps).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay of the running means.
        eps: added to the root.
        weight_decay: share of the parameter added to the gradient.
        amsgrad: divide by the largest v so far.
        maximize: ascend instead.
        decoupled_weight_decay: shrink the parameter by lr * weight_decay instead of changing the gradient (AdamW).
        foreach, capturable, differentiable, fused: kept for PyTorch's programs; differentiable must be False.

    Raises:
        ValueError: for settings out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: Any = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: Any = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _state_of(self, p: Any, amsgrad: bool) -> dict[str, Any]:
        """The parameter's "step", "exp_avg", "exp_avg_sq" and, with amsgrad, "max_exp_avg_sq"."""
        state = self.state[p]
        if not state:
            wide = dtypes.get_default_dtype() is dtypes.float64
            state["step"] = wrap(np.zeros((), np.float64 if wide else np.float32))
            state["exp_avg"], state["exp_avg_sq"] = zeros_for(p), zeros_for(p)
            if amsgrad:
                state["max_exp_avg_sq"] = zeros_for(p)
        return state

    def update(self, p: Any, g: Any, group: dict[str, Any]) -> None:
        """One step of one parameter."""
        state = self._state_of(p, group["amsgrad"])
        count = writable(state["step"])
        count += 1
        step = float(count)
        lr, (beta1, beta2) = float(group["lr"]), map(float, group["betas"])
        array, g = parts(writable(p)), parts(g)
        temporary = self.scratch(array)
        g = self._decayed(array, g, group, lr, temporary)
        mean, square = parts(writable(state["exp_avg"])), parts(writable(state["exp_avg_sq"]))
        np.subtract(g, mean, out=temporary)
        temporary *= 1 - beta1
        mean += temporary
        np.multiply(g, g, out=temporary)
        temporary *= 1 - beta2
        square *= beta2
        square += temporary
        if group["amsgrad"]:
            largest = parts(writable(state["max_exp_avg_sq"]))
            square = np.maximum(largest, square, out=largest)
        np.sqrt(square, out=temporary)
        temporary /= math.sqrt(1 - beta2**step)
        temporary += group["eps"]
        np.divide(mean, temporary, out=temporary)
        temporary *= lr / (1 - beta1**step)
        array -= temporary

    def _decayed(self, array: Any, g: Any, group: dict[str, Any], lr: float, temporary: Any) -> Any:
        """The gradient with its sign and weight decay; with decoupled decay the parameter is shrunk here."""
        decay = float(group["weight_decay"])
        if decay and group["decoupled_weight_decay"]:
            array *= 1 - lr * decay
            decay = 0.0
        if not decay and not group["maximize"]:
            return g
        result = self.scratch(array, 1)
        np.multiply(array, decay, out=temporary)
        return (np.subtract if group["maximize"] else np.add)(temporary, g, out=result)


class AdamW(Adam):
    """Adam that shrinks the parameter by lr * weight_decay before each step instead of changing the gradient.

    Args:
        params: parameters or groups of them.
        lr, betas, eps, amsgrad, maximize: as of Adam.
        weight_decay: the share by which, times lr, a parameter shrinks in each step.

    Raises:
        ValueError: for settings out of range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: Any = None,
        capturable: bool = False, differentiable: bool = False, fused: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

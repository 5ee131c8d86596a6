"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.record import wrap
from .optimizer import Optimizer, writable


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    With d the gradient plus weight_decay times the parameter, b = momentum * b + (1 - dampening) * d (at first b = d);
    the parameter moves by -lr * b, with nesterov by -lr * (d + momentum * b).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        momentum, dampening, weight_decay, nesterov: as above.
        maximize: ascend instead.
        foreach, differentiable, fused: kept for PyTorch's programs; differentiable must be False.

    Raises:
        ValueError: for negative settings, or nesterov without momentum or with dampening.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: Any = None, differentiable: bool = False,
        fused: Any = None,
    ) -> None:  # fmt: skip
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def update(self, p: Any, g: Any, group: dict[str, Any]) -> None:
        """One step of one parameter; its "momentum_buffer" is kept in the state."""
        lr = float(group["lr"])
        array = writable(p)
        temporary = self.scratch(array)
        direction = g
        if group["weight_decay"] or group["maximize"]:
            direction = self.scratch(array, 1)
            np.multiply(array, group["weight_decay"], out=temporary)
            (np.subtract if group["maximize"] else np.add)(temporary, g, out=direction)
        if group["momentum"]:
            direction = self._with_momentum(p, direction, group, temporary)
        np.multiply(direction, lr, out=temporary)
        np.subtract(array, temporary, out=array)

    def _with_momentum(self, p: Any, direction: Any, group: dict[str, Any], temporary: Any) -> Any:
        momentum = group["momentum"]
        state = self.state[p]
        kept = state.get("momentum_buffer")
        if kept is None:
            buffer = direction.copy()
            state["momentum_buffer"] = wrap(buffer)
        else:
            buffer = writable(kept)
            buffer *= momentum
            if group["dampening"]:
                np.multiply(direction, 1 - group["dampening"], out=temporary)
                buffer += temporary
            else:
                buffer += direction
        if not group["nesterov"]:
            return buffer
        np.multiply(buffer, momentum, out=temporary)
        temporary += direction
        return temporary

"""Of OneFlow's embedding tables, which are larger than one process, the optimizer that is made for them."""

from typing import Any

from oneflow.optim import _Own
from tapegrad import where
from tapegrad.optim import Optimizer


class Ftrl(_Own, Optimizer):
    """Follow the regularised leader: the parameter is the minimum of the linear losses so far and of two penalties.

    Args:
        lr_power: the power of the sum of squared gradients to which rates fall.
        initial_accumulator_value: where that sum begins.
        lambda1, lambda2: the penalties on absolute values and on squares.
        beta: what is added to the power of the sum.
    """

    elementwise = False

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.0, lr_power: float = -0.5,
        initial_accumulator_value: float = 0.1, lambda1: float = 0.0, lambda2: float = 0.0, beta: float = 0.0, **rest: Any,
    ) -> None:  # fmt: skip
        settings = {"lr": lr, "weight_decay": weight_decay, "lr_power": lr_power, "lambda1": lambda1, "lambda2": lambda2}
        super().__init__(params, {**settings, "beta": beta, "initial_accumulator_value": initial_accumulator_value}, **rest)

    def start(self, group: dict[str, Any]) -> dict[str, Any]:
        return {"accumulator_value": group["initial_accumulator_value"], "z": 0}

    def formula(self, m: Any, p: Any, g: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        """The update."""
        before = s["accumulator_value"]
        after = s["accumulator_value"] = before + g * g
        powered = after ** h["lr_power"]
        z = s["z"] = s["z"] + g - (powered - before ** h["lr_power"]) / h["lr"] * p
        moved = (z.sign() * h["lambda1"] - z) / ((h["beta"] + powered) / h["lr"] + h["lambda2"])
        return where(z.abs() < h["lambda1"], 0.0, moved)

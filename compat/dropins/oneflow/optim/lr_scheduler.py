"""Schedules of learning rates: tapegrad's, and what OneFlow alone has."""

import math

from tapegrad import compat
from tapegrad.optim.lr_scheduler import LambdaLR, LRScheduler

compat.mirror(__name__, "tapegrad.optim.lr_scheduler")


class CosineDecayLR(LambdaLR):
    """The rate falls along half a cosine over decay_steps steps to alpha times its initial value, and stays there."""

    def __init__(self, optimizer: object, decay_steps: int, alpha: float = 0.0, last_step: int = -1, verbose: bool = False):
        if decay_steps <= 0:
            raise AssertionError(f"decay_steps must greater than zero, but got {decay_steps}")

        def factor(step: int) -> float:
            done = min(step / decay_steps, 1.0)
            return (1 - alpha) * 0.5 * (1 + math.cos(math.pi * done)) + alpha

        super().__init__(optimizer, factor, last_step)


class PolynomialLR(LRScheduler):
    """From the initial rate to end_learning_rate in a number of steps, as ``(1 - step / steps) ** power``.

    With cycle the number of steps is doubled, trebled ... when it is over.
    """

    def __init__(
        self, optimizer: object, steps: int, end_learning_rate: float = 0.0001, power: float = 1.0, cycle: bool = False,
        last_step: int = -1, verbose: bool = False,
    ):  # fmt: skip
        if steps <= 0:
            raise AssertionError(f"steps must greater than zero, but got {steps}")
        self.steps, self.end, self.power, self.cycle = steps, end_learning_rate, power, cycle
        super().__init__(optimizer, last_step)

    def get_lr(self) -> list[float]:
        step, steps = self.last_epoch, self.steps
        if self.cycle:
            steps *= max(1, math.ceil(step / steps))
        factor = (1 - min(step, steps) / steps) ** self.power
        return [(base - self.end) * factor + self.end for base in self.base_lrs]

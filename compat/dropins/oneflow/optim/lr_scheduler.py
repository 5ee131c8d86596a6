"""Schedules of learning rates: tapegrad's, and what OneFlow alone has."""

import math

from tapegrad import compat
from tapegrad.optim.lr_scheduler import LambdaLR

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

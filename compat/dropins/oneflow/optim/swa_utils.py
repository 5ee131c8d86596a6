"""Averages of weights over the steps: tapegrad's, with OneFlow's schedule."""

import math
from typing import Any

from oneflow.optim.lr_scheduler import LRScheduler
from tapegrad import compat

compat.mirror(__name__, "tapegrad.optim.swa_utils")


class SWALR(LRScheduler):
    """Goes from the present rate to swa_lr in anneal_epochs steps, along half a cosine or a line, and stays there."""

    def __init__(
        self, optimizer: Any, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, list | tuple) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise ValueError(
                f"swa_lr must have the same length as optimizer.param_groups: swa_lr has {len(rates)}, "
                f"optimizer.param_groups has {len(groups)}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _done(self, step: int) -> float:
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def step(self) -> None:
        self.last_step += 1
        step = self.last_step if self.anneal_epochs else max(1, self.last_step)
        before, now = self._done(step - 1), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        self.update_lrs(rates)

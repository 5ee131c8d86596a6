"""Learning rates that follow a schedule."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from .optimizer import Optimizer


class LRScheduler:
    """Base of schedulers: sets the learning rate of every group of an optimizer; a subclass defines `get_lr`.

    Call `step()` after the optimizer's. The first learning rates are set at once.

    Args:
        optimizer: whose groups' "lr" is set.
        last_epoch: number of the last step when resuming; -1 to start.

    Raises:
        TypeError: if the first argument is no optimizer.
        KeyError: when resuming groups that no scheduler has started.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0"
                )
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr: list[float] = []
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """The learning rates of step `last_epoch`, one a group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The learning rates set last, one a group."""
        return self._last_lr

    def current(self) -> list[float]:
        """The learning rates that the groups have, as numbers."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step and set its learning rates; with `epoch` to that step, by the closed form if there is one."""
        if self._step_count == 1 and not self.optimizer.stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should "
                "call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            values = self.get_lr()
        else:
            self.last_epoch = epoch
            values = getattr(self, "_get_closed_form_lr", self.get_lr)()
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(value)
            else:
                group["lr"] = value
        self._last_lr = self.current()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_is_initial")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state that state_dict gave."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial learning rate times lr_lambda(step); one function, or a list of one a group.

    Raises:
        ValueError: for a list of another length than the groups.
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """As of the base; of lr_lambdas only the attributes of callable objects, not functions, are kept."""
        state = super().state_dict()
        plain = types.FunctionType
        state["lr_lambdas"] = [None if isinstance(f, plain) else f.__dict__.copy() for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state that state_dict gave; functions stay as they are."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                f.__dict__.update(attributes)


class StepLR(LRScheduler):
    """The learning rate times gamma every step_size steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self.current()
        return [lr * self.gamma for lr in self.current()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The learning rate times gamma every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self.current() if self._is_initial else [lr * self.gamma for lr in self.current()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the initial learning rate down half a cosine to eta_min in T_max steps, and up again.

    The rates are found from those of the step before, so that other schedulers may act on them too.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, n, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self.current()
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if (t - 1 - n) % (2 * n) == 0:
            rise = (1 - math.cos(math.pi / n)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self.current(), strict=True)]
        ratio = (1 + math.cos(math.pi * t / n)) / (1 + math.cos(math.pi * (t - 1) / n))
        return [ratio * (lr - low) + low for lr in self.current()]

    def _get_closed_form_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

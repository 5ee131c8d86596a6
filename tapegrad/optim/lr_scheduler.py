"""Learning-rate schedulers.

`get_lr` computes the next rates from the present ones, so that several schedulers can act on one optimizer, or in closed
form from the initial ones; `_get_closed_form_lr`, if defined, gives those of any step.
"""

from __future__ import annotations

import contextlib
import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..tensor.tensor import Tensor
from .optimizer import Optimizer, _to_scalar

Rates = list[float | Tensor]
__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
ORDER = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
    "used instead of the new chainable form, where available. Please open an issue if you are unable to replicate your use "
    "case: https://github.com/pytorch/pytorch/issues/new/choose."
)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _settings(optimizer: Optimizer, key: str) -> Rates:
    """A setting of each group; tensors are copied."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def _set(group: dict[str, Any], key: str, value: Any) -> None:
    """Set a group's setting; a tensor takes the value in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(_to_scalar(value))
    else:
        group[key] = value


def _format_param(name: str, optimizer: Optimizer, param: Any) -> Rates:
    """One value per group: a list of the right length, or one value repeated."""
    count = len(optimizer.param_groups)
    if not isinstance(param, list | tuple):
        param = [param] * count
    elif len(param) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(param)} values, param_groups has "
            f"{count}."
        )
    return [_copied(p) for p in param]


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _attributes(function: Any) -> dict[str, Any] | None:
    """The part of a function that a state dict stores: the attributes of a callable object."""
    return None if function is None or isinstance(function, types.FunctionType) else function.__dict__.copy()


def _rise(t: float, n: float = 1.0) -> float:
    """1 + cos(pi t / n): from 2 at t = 0 to 0 at t = n."""
    return 1 + math.cos(math.pi * t / n)


class LRScheduler:
    """Base of schedulers: sets the learning rate of every group of an optimizer; a subclass defines `get_lr`.

    Call `step()` after the optimizer's. The constructor sets the initial learning rates.

    Args:
        optimizer: optimizer whose groups' "lr" is set.
        last_epoch: index of the last step, when resuming; -1 to start.

    Raises:
        TypeError: if the first argument is not an optimizer.
        KeyError: when resuming, if the groups have no "initial_lr".
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _transient: tuple[str, ...] = ("optimizer",)  # attributes that a state dict omits

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0.\n"
                    "This typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = _settings(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        if not optimizer._scheduled:
            optimizer._scheduled, optimizer._opt_called = True, False
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        try:
            self._is_initial = True
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> Rates:
        """The learning rates of step `last_epoch`, one per group."""
        raise NotImplementedError

    def get_last_lr(self) -> Rates:
        """The learning rates set last, one per group."""
        return self._last_lr

    def _present(self) -> Rates:
        """The present learning rates of the groups."""
        return _settings(self.optimizer, "lr")

    def _scaled(self, factor: float) -> Rates:
        """The groups' learning rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next step, or of step `epoch`, by the closed form if there is one."""
        if self._step_count == 1:
            if not getattr(self.optimizer.step, "hooked", False):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                    f"{ORDER}",
                    UserWarning, stacklevel=2,
                )  # fmt: skip
            elif not self.optimizer._opt_called:
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                    "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to "
                    "do this will result in PyTorch skipping the first value of the learning rate schedule. See more "
                    f"details at {ORDER}",
                    UserWarning, stacklevel=2,
                )  # fmt: skip
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        with _enable_get_lr_call(self):
            values = (closed or self.get_lr)()
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            _set(group, "lr", value)
        self._last_lr: Rates = self._present()

    def __init_subclass__(cls) -> None:
        """Make direct calls of `get_lr` warn, as PyTorch's do."""
        super().__init_subclass__()
        own = cls.__dict__.get("get_lr")
        if own is not None and cls.__module__.startswith(str(__package__)):
            setattr(cls, "get_lr", _warning(own))  # noqa: B010  mypy

    def state_dict(self) -> dict[str, Any]:
        """The state: all attributes except the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in self._transient}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by state_dict."""
        self.__dict__.update(state_dict)


@contextlib.contextmanager
def _enable_get_lr_call(o: LRScheduler) -> Iterator[LRScheduler]:
    """Context in which calls of `get_lr` do not warn."""
    try:
        o._get_lr_called_within_step = True
        yield o
    finally:
        o._get_lr_called_within_step = False


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=3
        )


def _warning(get_lr: Callable[[Any], Rates]) -> Callable[[Any], Rates]:
    def warned(self: Any) -> Rates:
        _warn_get_lr_called_within_step(self)
        return get_lr(self)

    warned.__doc__ = LRScheduler.get_lr.__doc__
    return warned


_LRScheduler = LRScheduler


class _ByFunctions(LRScheduler):
    """Base of schedulers with a function of the step for each group; a state dict stores the functions' attributes."""

    _transient = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """As in the base class; of lr_lambdas only the attributes of callable objects are stored."""
        return super().state_dict() | {"lr_lambdas": [_attributes(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by state_dict; functions are unchanged."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                f.__dict__.update(attributes)


class LambdaLR(_ByFunctions):
    """The initial learning rate times lr_lambda(step); one function, or a list with one per group.

    Raises:
        ValueError: if the list's length is not the number of groups.

    Example:
        >>> optimizer = tg.optim.SGD([tg.zeros(2, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> Rates:
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """Multiplies the learning rate by lr_lambda(step) in every step; one function, or a list with one per group.

    Raises:
        ValueError: if the list's length is not the number of groups.
        TypeError: if an lr_lambda is not callable.
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        for f in lr_lambda if isinstance(lr_lambda, list | tuple) else [lr_lambda]:
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> Rates:
        if self._is_initial:
            return self._present()
        groups = self.optimizer.param_groups
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, groups, strict=True)]


class StepLR(LRScheduler):
    """Multiplies the learning rate by gamma every step_size steps.

    Example:
        >>> optimizer = tg.optim.SGD([tg.zeros(2, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(optimizer.param_groups[0]["lr"])
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._present()
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> Rates:
        return [base * float(self.gamma) ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by gamma at each milestone."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self.last_epoch not in self.milestones:
            return self._present()
        return self._scaled(float(self.gamma) ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * float(self.gamma) ** passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiplies the learning rate by factor until step total_iters.

    Raises:
        ValueError: for a factor outside [0, 1].
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._present() if self.last_epoch != self.total_iters else self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> Rates:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiplies the learning rate by a factor that changes linearly from start_factor to end_factor in total_iters steps.

    Raises:
        ValueError: for factors outside [0, 1].
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        rise = self.end_factor - self.start_factor
        return self._scaled(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> Rates:
        rise = self.end_factor - self.start_factor
        factor = self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by gamma in every step.

    Example:
        >>> optimizer = tg.optim.SGD([tg.zeros(2, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        return self._present() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> Rates:
        return [base * float(self.gamma) ** self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial learning rate times (1 - step / total_iters)**power until step total_iters."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        t, n = self.last_epoch, self.total_iters
        if self._is_initial or t > n:
            return self._present()
        return self._scaled(((1.0 - t / n) / (1.0 - (t - 1) / n)) ** self.power)

    def _get_closed_form_lr(self) -> Rates:
        factor = (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [base * factor for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Cosine annealing (Loshchilov and Hutter 2017): from the initial learning rate to eta_min in T_max steps, and back.

    Rates are computed from those of the previous step, so that other schedulers can act on them as well.

    Example:
        >>> optimizer = tg.optim.SGD([tg.zeros(2, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.8536, 0.5, 0.1464, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        t, n, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if (t - 1 - n) % (2 * n) == 0:
            rise = 1 - math.cos(math.pi / n)
            return [lr + (base - low) * rise / 2 for base, lr in zip(self.base_lrs, self._present(), strict=True)]
        return [_rise(t, n) / _rise(t - 1, n) * (lr - low) + low for lr in self._present()]

    def _get_closed_form_lr(self) -> Rates:
        return [self.eta_min + (base - self.eta_min) * _rise(self.last_epoch, self.T_max) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing from the initial learning rate to eta_min in T_0 steps; each restart takes T_mult times as many.

    `step(epoch)` accepts fractions of an epoch (Loshchilov and Hutter 2017).

    Raises:
        ValueError: for counts that are not positive integers, or an eta_min that is not a number.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        share = _rise(self.T_cur, self.T_i)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Advance to the next step, or to the given one."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch) - 1
        self._update_lr()


class _Together(LRScheduler):
    """Base of schedulers that combine others."""

    _transient = ("optimizer", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _check(self, optimizer: Any, schedulers: Sequence[Any], what: str) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler{what}, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not (optimizer or schedulers[0].optimizer):
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer or schedulers[0].optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """As in the base class, with the states of the schedulers."""
        return super().state_dict() | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by state_dict."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Together):
    """Runs schedulers one after another, switching to the next at each milestone.

    Raises:
        ValueError: without schedulers, for schedulers of another optimizer, or for a wrong number of milestones.

    Example:
        >>> optimizer = tg.optim.SGD([tg.zeros(2, requires_grad=True)], lr=1.0)
        >>> schedules = tg.optim.lr_scheduler
        >>> warmup = schedules.LinearLR(optimizer, 0.5, total_iters=2)
        >>> scheduler = schedules.SequentialLR(optimizer, [warmup, schedules.ExponentialLR(optimizer, 0.9)], [2])
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._check(optimizer, schedulers, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            _set(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Undo the first step of all contained schedulers."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for scheduler in sched._schedulers:
                self.recursive_undo(scheduler)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Step the active scheduler; at a milestone the next one becomes active."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Together):
    """Applies several schedulers in every step.

    Raises:
        ValueError: without schedulers, or for schedulers of several optimizers.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._check(optimizer, schedulers, " to be chained")
        self._schedulers = schedulers
        self.optimizer = optimizer or schedulers[0].optimizer
        self._last_lr = _settings(schedulers[-1].optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Step all schedulers."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _settings(self._schedulers[-1].optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by factor when a metric has not improved for more than `patience` steps.

    Args:
        optimizer: optimizer whose learning rates are set.
        mode: "min" or "max": whether smaller or larger values are better.
        factor: factor below 1.
        patience: number of steps without improvement to wait.
        threshold, threshold_mode: minimum improvement, "rel"ative or "abs"olute.
        cooldown: steps after a reduction that are ignored.
        min_lr: lower bound of the learning rate; one number, or one per group.
        eps: smallest change of a rate that is applied.

    Raises:
        ValueError: for unknown modes, a factor of 1 or more, or a min_lr of wrong length.
        TypeError: if the first argument is not an optimizer.

    Example:
        >>> optimizer = tg.optim.SGD([tg.zeros(2, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (1.0, 1.0, 1.0):
        ...     scheduler.step(loss)
        >>> scheduler.get_last_lr()
        [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: list[float] | float = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        self.factor, self.optimizer = factor, optimizer
        n = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        self.default_min_lr = None if several else min_lr
        self.min_lrs: list[Any] = list(min_lr) if isinstance(min_lr, list | tuple) else [min_lr] * n
        if len(self.min_lrs) != n:
            raise ValueError(f"expected {n} min_lrs, got {len(self.min_lrs)}")
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._present()
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in {"min", "max"}:
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def _reset(self) -> None:
        """Reset the counters and the best metric."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Process the metric of a step, and reduce the rates if it has stopped improving."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._present()

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when `ReduceLROnPlateau` "
                    f"was initialized ({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. "
                    "Please modify the `min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for low, group in zip(self.min_lrs, groups, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                _set(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether the cooldown after a reduction is active."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        if self.mode == "min":
            return a < (best * (1.0 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold)
        return a > (best * (self.threshold + 1.0) if self.threshold_mode == "rel" else best + self.threshold)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by state_dict."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


class _WithMomentum(LRScheduler):
    """Base of schedulers that change the momentum, or beta1, inversely to the learning rate."""

    def _init_momentum(self, optimizer: Optimizer, base: Any, highest: Any, start: bool) -> tuple[Rates, Rates]:
        """Check and set the groups' initial momenta; returns their base and maximum values."""
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        pairs = _format_param("base_momentum", optimizer, base), _format_param("max_momentum", optimizer, highest)
        if start:
            for low, high, group in zip(*pairs, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return pairs

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Cycles of the learning rate from base_lr to max_lr and back (Smith 2017); the momentum varies inversely.

    Args:
        optimizer: optimizer whose learning rates are set.
        base_lr, max_lr: bounds of the rate; one number, or one per group.
        step_size_up, step_size_down: steps of the two halves of a cycle; step_size_down defaults to step_size_up.
        mode: "triangular", "triangular2" (amplitude halved each cycle) or "exp_range" (amplitude times gamma**step).
        gamma: base of "exp_range".
        scale_fn, scale_mode: factor of the amplitude instead of a mode: a function of "cycle" or of the step
            ("iterations").
        cycle_momentum, base_momentum, max_momentum: whether the momentum varies, and its bounds.
        last_epoch: index of the last step, when resuming.

    Raises:
        ValueError: for an unknown mode, or an optimizer without momentum.
        TypeError: if the first argument is not an optimizer.
    """

    _transient = ("optimizer", "_scale_fn_custom")

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._init_momentum(
                optimizer, base_momentum, max_momentum, last_epoch == -1
            )
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _set(group, "lr", lr)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Factor of the amplitude in cycle (or step) x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(1 / 2.0 ** (x - 1) if self.mode == "triangular2" else float(self.gamma) ** x)

    def get_lr(self) -> Rates:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ends = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in ends:
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """As in the base class; of scale_fn only the attributes of a callable object are stored."""
        return super().state_dict() | {"_scale_fn_custom": _attributes(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state from state_dict; scale_fn is unchanged."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class OneCycleLR(_WithMomentum):
    """1cycle policy (Smith and Topin 2017): the rate rises to max_lr, then falls; the momentum varies inversely.

    Args:
        optimizer: optimizer whose learning rates are set.
        max_lr: the peak; one number, or one per group.
        total_steps: length of the cycle; or epochs and steps_per_epoch.
        pct_start: fraction of the cycle in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum, base_momentum, max_momentum: whether the momentum varies, and its bounds.
        div_factor, final_div_factor: the initial rate is max_lr / div_factor, the final one that / final_div_factor.
        three_phase: fall to the initial rate first, then to the final one.
        last_epoch: index of the last step, when resuming.

    Raises:
        ValueError: without a length, for settings out of range, for more steps than the length, or for an optimizer without
            momentum.
        TypeError: if the first argument is not an optimizer.

    Example:
        >>> optimizer = tg.optim.SGD([tg.zeros(2, requires_grad=True)], lr=1.0)
        >>> scheduler = tg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        >>> round(scheduler.get_last_lr()[0], 4)
        0.04
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        counts = {"total_steps": total_steps}
        if total_steps is None:
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, count in counts.items():
            if not isinstance(count, int) or count <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {count}")
        self.total_steps = math.prod(counts.values())  # type: ignore[arg-type]
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(pct_start * self.total_steps, three_phase)
        max_lrs = _format_param("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._init_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for peak, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"], group["max_lr"] = peak / div_factor, peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def _phases(self, rise: float, three_phase: bool) -> list[dict[str, Any]]:
        """For each phase its last step and the settings between which rate and momentum are interpolated."""
        up = (rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        back = (2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        last = (self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
        down = (self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        return [dict(zip(names, phase, strict=True)) for phase in ((up, back, last) if three_phase else (up, down))]

    def _between(self, group: dict[str, Any], start: str, end: str, share: float) -> Any:
        a, b = group[start], group[end]
        if self._anneal_func_type == "linear":
            return (b - a) * share + a
        return b + (a - b) / 2.0 * _rise(share)

    def get_lr(self) -> Rates:
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(f"Tried to step {t} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            if t <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share = (t - begin) / (phase["end_step"] - begin)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, self._between(group, phase["start_momentum"], phase["end_momentum"], share))
        return [self._between(group, phase["start_lr"], phase["end_lr"], share) for group in groups]


def __dir__() -> list[str]:
    return sorted(__all__)

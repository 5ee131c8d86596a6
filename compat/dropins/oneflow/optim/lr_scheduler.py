"""Schedules of learning rates as OneFlow has them: each gives the rate at a step from the initial rate, ``get_lr``.

Those of PyTorch that OneFlow has not are tapegrad's.
"""

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Any

from oneflow.optim import Optimizer
from tapegrad import compat
from tapegrad.optim.lr_scheduler import ReduceLROnPlateau as _Plateau

compat.mirror(__name__, "tapegrad.optim.lr_scheduler")


def _require(condition: bool, text: str, error: type[Exception] = ValueError) -> None:
    if not condition:
        raise error(text)


class LRScheduler:
    """Base class of schedules; a subclass defines ``get_lr(base_lr, step)``.

    Args:
        optimizer: whose groups get the rates.
        last_step: the last step that was made; -1 at the beginning.
        verbose: print each rate that is set.

    Attributes:
        base_lrs: the initial rate of each group.
    """

    def __init__(self, optimizer: Any, last_step: int = -1, verbose: bool = False) -> None:
        _require(isinstance(optimizer, Optimizer), f"{type(optimizer).__name__} is not an Optimizer object", TypeError)
        self.optimizer, self.last_step, self.verbose = optimizer, last_step, verbose
        self.base_lrs = self._initial()
        self.step()

    def _initial(self) -> list[float]:
        for i, group in enumerate(self.optimizer.param_groups):
            if self.last_step == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        return [group["initial_lr"] for group in self.optimizer.param_groups]

    def get_lr(self, base_lr: float, step: int) -> float:
        """The rate at a step."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self) -> None:
        """Go to the next step."""
        self.last_step += 1
        self.update_lrs([self.get_lr(base, self.last_step) for base in self.base_lrs])

    def update_lrs(self, lrs: Sequence[float]) -> None:
        """Set the rate of each group."""
        for i, (group, lr) in enumerate(zip(self.optimizer.param_groups, lrs, strict=False)):
            group["lr"] = lr
            if self.verbose:
                print(f"Last step {self.last_step} of {type(self)} adjusting learning rate of param_groups[{i}] to {lr:.5f}")
        self._last_lr = list(lrs)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of schedules inside, and of functions that are objects, their own."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "schedulers", "lr_lambdas")}
        if hasattr(self, "schedulers"):
            state["schedulers"] = [s.state_dict() for s in self.schedulers]
        if hasattr(self, "lr_lambdas"):
            state["lr_lambdas"] = [None if isinstance(f, type(_require)) else {**f.__dict__} for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k not in ("schedulers", "lr_lambdas")})
        for own, state in zip(getattr(self, "schedulers", ()), state_dict.get("schedulers", ()), strict=True):
            own.load_state_dict(state)
        for own, state in zip(getattr(self, "lr_lambdas", ()), state_dict.get("lr_lambdas", ()), strict=True):
            if state is not None:
                own.__dict__.update(state)


class ConstantLR(LRScheduler):
    """The initial rate times factor for total_iters steps, then the initial rate."""

    def __init__(
        self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_step: int = -1, verbose: bool = False
    ):
        _require(0 <= factor <= 1, "Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return base_lr * self.factor if step < self.total_iters else base_lr


class LinearLR(LRScheduler):
    """The factor of the initial rate goes from start_factor to end_factor in total_iters steps, along a line."""

    def __init__(
        self, optimizer: Any, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_step: int = -1, verbose: bool = False,
    ):  # fmt: skip
        _require(0 <= start_factor <= 1, "Starting multiplicative factor expected to be between 0 and 1.")
        _require(0 <= end_factor <= 1, "Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        done = step / self.total_iters if step < self.total_iters else 1.0
        return base_lr * (self.start_factor + (self.end_factor - self.start_factor) * done)


class StepLR(LRScheduler):
    """The rate is multiplied with gamma every step_size steps."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_step: int = -1, verbose: bool = False):
        _require(step_size > 0, f"step_size must greater than zero, but got {step_size}", AssertionError)
        _require(gamma > 0, f"gamma must greater than zero, but got {gamma}", AssertionError)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return base_lr * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate is multiplied with gamma at each of the milestones."""

    def __init__(
        self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_step: int = -1, verbose: bool = False
    ):
        rising = all(a < b for a, b in itertools.pairwise(milestones))
        _require(rising, f"values in `list` milestone must be increasing, but got {milestones}", AssertionError)
        _require(gamma > 0, f"gamma must greater than zero, but got {gamma}", AssertionError)
        self.milestones, self.gamma = milestones, gamma
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return base_lr * self.gamma ** bisect.bisect_right(self.milestones, step)


class ExponentialLR(LRScheduler):
    """The rate is multiplied with gamma at each step."""

    def __init__(self, optimizer: Any, gamma: float, last_step: int = -1, verbose: bool = False):
        _require(gamma > 0, f"'gamma' must be greater than zero, but got {gamma}")
        self.gamma = gamma
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return base_lr * self.gamma**step


class CosineDecayLR(LRScheduler):
    """The rate falls along half a cosine over decay_steps steps to alpha times its initial value, and stays there."""

    def __init__(self, optimizer: Any, decay_steps: int, alpha: float = 0.0, last_step: int = -1, verbose: bool = False):
        _require(decay_steps > 0, f"decay_steps must greater than zero, but got {decay_steps}", AssertionError)
        self.decay_steps, self.alpha = decay_steps, alpha
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        cosine = math.cos(math.pi * min(step / self.decay_steps, 1.0))
        return base_lr * ((1 - self.alpha) * 0.5 * (1 + cosine) + self.alpha)


class CosineAnnealingLR(LRScheduler):
    """The rate goes along a cosine between its initial value and eta_min, which it reaches after T_max steps."""

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_step: int = -1, verbose: bool = False):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return self.eta_min + (base_lr - self.eta_min) * 0.5 * (1 + math.cos(math.pi * step / self.T_max))


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to eta_min, again and again.

    Args:
        T_0: the length of the first half cosine.
        T_mult: the factor from one length to the next.
        decay_rate: the factor from one initial rate to the next.
        restart_limit: after so many half cosines the rate stays eta_min; 0 for no limit.
    """

    def __init__(
        self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, decay_rate: float = 1.0,
        restart_limit: int = 0, last_step: int = -1, verbose: bool = False,
    ):  # fmt: skip
        _require(isinstance(T_0, int) and T_0 > 0, f"Expected positive integer T_0, but got {T_0}")
        _require(isinstance(T_mult, int) and T_mult >= 1, f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.decay_rate, self.restart_limit = decay_rate, restart_limit
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        cycle, length = 0, self.T_0
        if self.T_mult == 1:
            cycle, step = divmod(step, length)
        while step >= length:
            cycle, step, length = cycle + 1, step - length, length * self.T_mult
        if self.restart_limit and cycle >= self.restart_limit:
            return self.eta_min
        top = base_lr * self.decay_rate**cycle
        return self.eta_min + (top - self.eta_min) * 0.5 * (1 + math.cos(math.pi * step / length))


class PolynomialLR(LRScheduler):
    """From the initial rate to end_learning_rate in decay_batch steps, as ``(1 - step / decay_batch) ** power``.

    With cycle the number of steps is doubled, trebled ... when it is over, and step 0 counts as step 1.
    """

    def __init__(
        self, optimizer: Any, decay_batch: int, end_learning_rate: float = 0.0001, power: float = 1.0, cycle: bool = False,
        last_step: int = -1, verbose: bool = False,
    ):  # fmt: skip
        _require(decay_batch > 0, f"decay_batch must greater than zero, but got {decay_batch}", AssertionError)
        self.max_decay_steps, self.end_learning_rate, self.power, self.cycle = decay_batch, end_learning_rate, power, cycle
        super().__init__(optimizer, last_step, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        steps = self.max_decay_steps
        if self.cycle:
            step = max(step, 1)
            steps *= math.ceil(step / steps)
        left = 1 - min(step, steps) / steps
        return (base_lr - self.end_learning_rate) * left**self.power + self.end_learning_rate


class _OfFunctions(LRScheduler):
    def __init__(self, optimizer: Any, lr_lambda: Any, last_step: int = -1, verbose: bool = False):
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        given = len(self.lr_lambdas)
        _require(given == groups, f"Expected {groups} lr_lambdas, but got {given}", self._error)
        super().__init__(optimizer, last_step, verbose)


class LambdaLR(_OfFunctions):
    """The initial rate times ``lr_lambda(step)``, of one function or one for each group."""

    _error: type[Exception] = AssertionError

    def step(self) -> None:
        self.last_step += 1
        self.update_lrs([base * f(self.last_step) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)])


class MultiplicativeLR(_OfFunctions):
    """At each step the rate is multiplied with ``lr_lambda(step)``."""

    _error: type[Exception] = ValueError

    def step(self) -> None:
        self.last_step += 1
        rates = [group["lr"] for group in self.optimizer.param_groups]
        if self.last_step > 0:
            rates = [lr * f(self.last_step) for lr, f in zip(rates, self.lr_lambdas, strict=True)]
        self.update_lrs(rates)


def _same_optimizer(schedulers: Sequence[LRScheduler], optimizer: Any, text: str) -> None:
    for i, scheduler in enumerate(schedulers):
        _require(scheduler.optimizer is optimizer, text.format(i))


class ChainedScheduler(LRScheduler):
    """Each schedule takes the rate that the one before gives for its initial one."""

    def __init__(self, schedulers: Sequence[LRScheduler]):
        several = isinstance(schedulers, list | tuple) and all(isinstance(s, LRScheduler) for s in schedulers)
        _require(several, "ChainedScheduler expects a list of schedulers")
        _require(len(schedulers) > 0, "length of list of schedulers must be greater than 0")
        text = (
            "ChainedScheduler expects all schedulers to belong to the same optimizer, but got schedulers at index 0 and {} "
        )
        _same_optimizer(schedulers, schedulers[0].optimizer, text + "to be different")
        self.schedulers = list(schedulers)
        super().__init__(schedulers[0].optimizer)

    def step(self) -> None:
        self.last_step += 1
        rates = list(self.schedulers[0].base_lrs)
        for scheduler in self.schedulers:
            rates = [scheduler.get_lr(lr, self.last_step) for lr in rates]
            scheduler.last_step = self.last_step
        self.update_lrs(rates)


class SequentialLR(LRScheduler):
    """One schedule after the other, changing at the milestones.

    Args:
        interval_rescaling: whether a schedule counts its steps from its milestone; one bool, or one for each milestone.
    """

    def __init__(
        self, optimizer: Any, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
        interval_rescaling: Sequence[bool] | bool = False, last_step: int = -1, verbose: bool = False,
    ):  # fmt: skip
        n, m = len(schedulers), len(milestones)
        _require(n > 0, "Sequential Schedulers expects at least one scheduler")
        text = "Sequential Schedulers expects all schedulers to belong to the same optimizer, but got schedulers at index "
        _same_optimizer(schedulers, optimizer, text + "{} to be different than the optimizer passed in.")
        _require(
            m == n - 1,
            "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
            f"points, but got number of schedulers {n} and the number of milestones to be equal to {m}",
        )
        rescaled = [interval_rescaling] * m if isinstance(interval_rescaling, bool) else list(interval_rescaling)
        _require(
            len(rescaled) == m,
            "'interval_rescaling' expects a bool or a list of bool with length be equal to the number of milestones, but "
            f"got number of milestones {m} and the length of list of interval_rescaling {len(rescaled)}",
        )
        self.schedulers, self.milestones, self.interval_rescaling = list(schedulers), list(milestones), rescaled
        super().__init__(optimizer, last_step, verbose)

    def step(self) -> None:
        self.last_step += 1
        which = bisect.bisect_right(self.milestones, self.last_step)
        rescaled = which > 0 and self.interval_rescaling[which - 1]
        now = self.schedulers[which]
        now.last_step = self.last_step - self.milestones[which - 1] if rescaled else self.last_step
        self.update_lrs([now.get_lr(base, now.last_step) for base in self.base_lrs])


class WarmupLR(SequentialLR):
    """Smaller rates for the first steps of an optimizer, or of a schedule.

    Args:
        warmup_factor: the factor of the first step.
        warmup_iters: the number of steps.
        warmup_method: "linear" or "constant".
        warmup_prefix: whether the schedule begins when the first steps are over, at its step 0; else it counts them, and a
            linear warm-up ends at the rate that it then has.
    """

    def __init__(
        self, scheduler_or_optimizer: Any, warmup_factor: float = 1 / 3, warmup_iters: int = 5,
        warmup_method: str = "linear", warmup_prefix: bool = False, last_step: int = -1, verbose: bool = False,
    ):  # fmt: skip
        _require(
            isinstance(scheduler_or_optimizer, LRScheduler | Optimizer),
            "'scheduler_or_optimizer' must be a LRScheduler or an Optimizer, but got " + str(type(scheduler_or_optimizer)),
        )
        known = warmup_method in ("linear", "constant")
        _require(known, f"'warmup_method' must be 'linear' or 'constant', but got {warmup_method}")
        after = scheduler_or_optimizer if isinstance(scheduler_or_optimizer, LRScheduler) else None
        text = "When 'scheduler_or_optimizer' is an optimizer warmup_iters can't be equal to 0"
        _require(after is not None or warmup_iters > 0, text)
        self.warmup_factor, self.warmup_iters, self.warmup_method = warmup_factor, warmup_iters, warmup_method
        self.warmup_prefix = warmup_prefix
        optimizer = scheduler_or_optimizer if after is None else after.optimizer
        self.optimizer, self.last_step = optimizer, last_step
        self.base_lrs = self._initial()
        first: list[LRScheduler] = []
        if warmup_iters > 0 and warmup_method == "constant":
            first = [ConstantLR(optimizer, warmup_factor, warmup_iters, last_step, verbose)]
        elif warmup_iters > 0:
            first = [LinearLR(optimizer, warmup_factor, self._end(after), warmup_iters, last_step, verbose)]
        both = [*first, *([] if after is None else [after])]
        super().__init__(optimizer, both, [warmup_iters] * (len(both) - 1), warmup_prefix, last_step, verbose)

    def _end(self, after: LRScheduler | None) -> float:
        """The factor at which the warm-up meets the schedule."""
        if after is None or self.warmup_prefix:
            return 1.0
        base = self.base_lrs[0]
        text = "The param_groups in optimizer have different warmup configs, please use different optimizers."
        _require(all(math.isclose(b, base, rel_tol=1e-5, abs_tol=1e-8) for b in self.base_lrs), text)
        return after.get_lr(base, self.warmup_iters) / base


WarmUpLR = WarmupLR


class ReduceLROnPlateau(_Plateau):
    __doc__ = _Plateau.__doc__

    def __init__(self, *args: Any, verbose: bool = False, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.verbose = verbose

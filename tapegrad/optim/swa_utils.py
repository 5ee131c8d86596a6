"""Averages of a model's parameters during training (SWA, EMA)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from ..functions.create import tensor
from ..functions.elementwise import where
from ..modes import no_grad
from ..nn.module import Module
from ..nn.norm import _BatchNorm
from ..programs.tracing import unless_traced
from .lr_scheduler import LRScheduler, _format_param
from .optimizer import Optimizer

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """The averaging function f(averaged, current, count) = decay * averaged + (1 - decay) * current.

    Raises:
        ValueError: for a decay outside [0, 1].

    Example:
        >>> average = tg.optim.swa_utils.get_ema_avg_fn(0.9)
        >>> average(tg.tensor(1.0), tg.tensor(2.0), 1)
        tensor(1.1000)
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """The averaging function f(averaged, current, number averaged so far) that gives the mean.

    Example:
        >>> average = tg.optim.swa_utils.get_swa_avg_fn()
        >>> average(tg.tensor(1.0), tg.tensor(4.0), 2)  # the mean of three: 1, 1, 4
        tensor(2.)
    """

    @no_grad()
    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _of_lists(average: Callable[..., Any], name: str) -> Callable[..., None]:
    """An averaging function for lists of parameters, in place."""

    @no_grad()
    def update(averaged_params: Any, current_params: Any, num_averaged: Any) -> None:
        for averaged, current in zip(averaged_params, current_params, strict=True):
            averaged.copy_(average(averaged, current, num_averaged))

    update.__name__ = name
    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Like get_ema_avg_fn, for lists of parameters, in place.

    Raises:
        ValueError: for a decay outside [0, 1].

    Example:
        >>> averaged = [tg.tensor(1.0)]
        >>> tg.optim.swa_utils.get_ema_multi_avg_fn(0.9)(averaged, [tg.tensor(2.0)], 1)
        >>> averaged
        [tensor(1.1000)]
    """
    return _of_lists(get_ema_avg_fn(decay), "ema_update")


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """Like get_swa_avg_fn, for lists of parameters, in place.

    Example:
        >>> averaged = [tg.tensor(1.0)]
        >>> tg.optim.swa_utils.get_swa_multi_avg_fn()(averaged, [tg.tensor(4.0)], 2)
        >>> averaged
        [tensor(2.)]
    """
    return _of_lists(get_swa_avg_fn(), "swa_update")


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's: the mean, or a custom average.

    Attributes:
        module: the copy.
        n_averaged: number of updates.

    Args:
        model: the model.
        device: device of the copy.
        avg_fn: f(averaged, current, number averaged so far) returns the new average of a parameter.
        multi_avg_fn: the same for lists of parameters, in place.
        use_buffers: average the buffers too; otherwise they are copied from the model.

    Raises:
        AssertionError: if both avg_fn and multi_avg_fn are given.

    Example:
        >>> net = tg.nn.Linear(1, 1)
        >>> averaged = tg.optim.swa_utils.AveragedModel(net)
        >>> averaged.update_parameters(net)
        >>> tg.equal(averaged.module.weight, net.weight)
        True
    """

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the copy."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Update the averages with the model's parameters."""
        pairs = [
            (mine.detach(), theirs.detach())
            for mine, theirs in zip(
                _averaged(self.module, self.use_buffers), _averaged(model, self.use_buffers), strict=False
            )
        ]
        first = self.n_averaged == 0
        users = [f for f in (self.avg_fn, self.multi_avg_fn) if f is not None and f.__module__ != __name__]
        known = bool(first) if users else unless_traced(first)  # a user's function is not called at the first update
        if not known:
            self._average(pairs)
        if known is None or known:
            for mine, theirs in pairs:
                mine.copy_(theirs if known else where(first, theirs, mine))
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(theirs.detach())
        self.n_averaged += 1

    def _average(self, pairs: Any) -> None:
        if self.avg_fn is not None:
            for mine, theirs in pairs:
                mine.copy_(self.avg_fn(mine, theirs, self.n_averaged))
        elif pairs:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(*map(list, zip(*pairs, strict=True)), self.n_averaged)


def _averaged(model: Module, buffers: bool) -> Iterable[Any]:
    return itertools.chain(model.parameters(), model.buffers()) if buffers else model.parameters()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch norm layers, by one pass over the batches.

    Args:
        loader: iterable of batches; the model's input is the batch, or its first element if it is a tuple or list.
        model: the model.
        device: device to which inputs are moved.

    Example:
        >>> net = tg.nn.BatchNorm1d(1)
        >>> tg.optim.swa_utils.update_bn([tg.tensor([[1.0], [3.0]])], net)
        >>> net.running_mean
        tensor([2.])
    """
    layers = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    was_training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    for batch in loader:
        x = batch[0] if isinstance(batch, list | tuple) else batch
        model(x if device is None else x.to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rate to swa_lr in anneal_epochs steps and keeps it there.

    Args:
        optimizer: optimizer whose learning rates are set.
        swa_lr: final rate; one number, or one per group.
        anneal_epochs: number of steps.
        anneal_strategy: "cos" or "linear".
        last_epoch: index of the last step, when resuming.

    Raises:
        ValueError: for an unknown strategy or a negative number of steps.
    """

    _transient = ("optimizer", "anneal_func")

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        rates = _format_param("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """Interpolation weight after a fraction t of the steps."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self.anneal_func(max(0, min(1, t / max(1, self.anneal_epochs)))) for t in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates


def __dir__() -> list[str]:
    return sorted(__all__)

"""Losses as modules: nn.L1Loss()(input, target)."""

from __future__ import annotations

from typing import Any

from ..ops.loss import legacy_reduction
from ..tensor import Tensor
from . import functional as F
from .module import Module


class Loss(Module):
    """Base of losses: how the losses of the elements are reduced.

    Args:
        size_average, reduce: PyTorch's old names; use reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        TypeError: if a tensor is given: the constructor takes settings, the call takes the tensors.
    """

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        if any(isinstance(a, Tensor) for a in (size_average, reduce, reduction)):
            name = type(self).__name__
            raise TypeError(f"{name}() takes settings, not tensors: the loss of two tensors is nn.{name}()(input, target)")
        if size_average is not None or reduce is not None:
            reduction = legacy_reduction(size_average, reduce)
        self.reduction = reduction


class WeightedLoss(Loss):
    """Base of losses with a weight, kept as a buffer."""

    def __init__(self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(Loss):
    """|input - target|, its mean, sum, or ("none") each."""

    def forward(self, input: Any, target: Any) -> Any:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(Loss):
    """(input - target)**2, its mean, sum, or ("none") each."""

    def forward(self, input: Any, target: Any) -> Any:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """(input - target)**2 / (2 beta) where the difference is below beta, else |input - target| - beta / 2."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """(input - target)**2 / 2 where the difference is below delta, else delta * (|input - target| - delta / 2)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return F.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(Loss):
    """target * (log(target) - input), for input of log probabilities; "batchmean" gives the divergence.

    Args:
        log_target: whether target holds log probabilities, too.
    """

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(WeightedLoss):
    """Cross entropy of targets in [0, 1] against probabilities.

    Args:
        weight: factor of each element's loss, broadcast.
    """

    def forward(self, input: Any, target: Any) -> Any:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """Cross entropy of targets in [0, 1] against sigmoid(input).

    Args:
        weight: factor of each element's loss, broadcast.
        pos_weight: factor of the positive part, broadcast.
    """

    def __init__(
        self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class NLLLoss(WeightedLoss):
    """-input at the target class, for input of log probabilities.

    Args:
        weight: (C,), factor of each class.
        ignore_index: targets of this value do not count.
    """

    def __init__(
        self, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        """(N, C, ...) and int64 (N, ...) to a 0-dim tensor, or with "none" to (N, ...)."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(WeightedLoss):
    """NLLLoss of log_softmax(input), for input of unnormalised log probabilities.

    Args:
        weight: (C,), factor of each class.
        ignore_index: class indices of this value do not count.
        label_smoothing: share of the uniform distribution mixed into the target, in [0, 1].
    """

    def __init__(
        self, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        """(N, C, ...) and class indices (N, ...), or probabilities (N, C, ...), to a 0-dim tensor or (N, ...)."""
        return F.cross_entropy(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip

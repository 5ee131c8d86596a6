"""Losses as modules: nn.L1Loss()(input, target)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.warning import warn
from ..functions.loss import legacy_reduction
from ..tensor.tensor import Tensor
from . import functional as F
from .distance import PairwiseDistance
from .linear import Linear
from .settings import Functional, settings

BUFFERS = ("weight", "pos_weight")


class _Loss(Functional):
    """Base of the losses.

    Args:
        size_average, reduce: deprecated; use reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        TypeError: if the constructor is given a tensor: it takes settings, the call takes the tensors.
    """

    @settings
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None: ...

    def _keep(self, values: dict[str, Any]) -> None:
        if any([isinstance(v, Tensor) for name, v in values.items() if name not in BUFFERS]):
            name = type(self).__name__
            raise TypeError(f"{name}() takes settings, not tensors: the loss of two tensors is nn.{name}()(input, target)")
        old = values.pop("size_average", None), values.pop("reduce", None)
        if old != (None, None):
            values["reduction"] = legacy_reduction(*old)
        for name in [name for name in BUFFERS if name in values]:
            self.register_buffer(name, values.pop(name))
        super()._keep(values)


class _WeightedLoss(_Loss):
    """Base of losses with a weight, kept as a buffer."""

    @settings
    def __init__(
        self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None: ...


class OfTarget(Functional):
    """Base of losses of an input and a target."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return self._of(input, target)


class OfLabels(Functional):
    """Base of losses of scores and class indices."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """(N, C) or (C,) and int64 (N,) or () to a 0-dim tensor, or with "none" to the target's shape."""
        return self._of(input, target)


class OfTwo(Functional):
    """Base of losses of two inputs and a target of 1 and -1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape, and a target, to a 0-dim tensor, or with "none" to the target's shape."""
        return self._of(input1, input2, target)


class OfTriplet(Functional):
    """Base of losses of an anchor, a positive and a negative sample."""

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three tensors of shape (N, D) or (D,) to a 0-dim tensor, or with "none" to (N,) or ()."""
        return self._of(anchor, positive, negative)

    def _check_margin(self) -> None:
        if self.margin <= 0:
            raise ValueError(f"{type(self).__name__}: expected margin to be greater than 0, got {self.margin} instead")


# ------------------------------------------------------------------------------------------------------- of elements


class L1Loss(OfTarget, _Loss, function=F.l1_loss):
    """abs(input - target), reduced by mean, sum or not at all ("none").

    Example:
        >>> tg.nn.L1Loss()(tg.tensor([1.0, 2.0]), tg.tensor([0.0, 2.0]))
        tensor(0.5000)
    """


class MSELoss(OfTarget, _Loss, function=F.mse_loss):
    """(input - target)**2, reduced by mean, sum or not at all ("none").

    Example:
        >>> tg.nn.MSELoss()(tg.tensor([1.0, 2.0]), tg.tensor([0.0, 2.0]))
        tensor(0.5000)
    """


class SmoothL1Loss(OfTarget, _Loss, function=F.smooth_l1_loss):
    """d**2 / (2 * beta) where d = abs(input - target) is below beta, else d - beta / 2.

    Example:
        >>> tg.nn.SmoothL1Loss()(tg.tensor([3.0]), tg.tensor([0.0]))
        tensor(2.5000)
    """

    @settings
    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0) -> None: ...


class HuberLoss(OfTarget, _Loss, function=F.huber_loss):
    """d**2 / 2 where d = abs(input - target) is below delta, else delta * (d - delta / 2).

    Example:
        >>> tg.nn.HuberLoss()(tg.tensor([3.0]), tg.tensor([0.0]))
        tensor(2.5000)
    """

    @settings
    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, float | int):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")


class PoissonNLLLoss(_Loss, function=F.poisson_nll_loss):
    """Negative log likelihood of counts under a Poisson distribution of rate exp(input), or input.

    Args:
        log_input: whether the input is the logarithm of the rate.
        full: add Stirling's approximation of log(target!) for targets above 1.
        eps: added to the rate before the logarithm, if log_input=False.

    Example:
        >>> tg.nn.PoissonNLLLoss()(tg.zeros(2), tg.ones(2))
        tensor(1.)
    """

    @settings
    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8,
        reduce: Any = None, reduction: str = "mean",
    ) -> None: ...  # fmt: skip

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape to a 0-dim tensor, or with "none" to that shape."""
        return self._of(log_input, target)


class GaussianNLLLoss(_Loss, function=F.gaussian_nll_loss):
    """Negative log likelihood of target under a normal distribution of mean input and variance var.

    Args:
        full: add the constant log(2 pi) / 2.
        eps: lower bound of the variance.

    Example:
        >>> tg.nn.GaussianNLLLoss()(tg.zeros(2), tg.ones(2), tg.ones(2))
        tensor(0.5000)
    """

    @settings
    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None: ...

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        """Two tensors of one shape and a variance: a number, of that shape, or of that without the last size."""
        return self._of(input, target, var)


class KLDivLoss(OfTarget, _Loss, function=F.kl_div):
    """target * (log(target) - input), for input of log probabilities; "batchmean" gives the divergence.

    Args:
        log_target: whether target holds log probabilities as well.

    Example:
        >>> p, q = tg.tensor([[0.25, 0.75]]), tg.tensor([[0.5, 0.5]])
        >>> tg.nn.KLDivLoss(reduction="batchmean")(q.log(), p)
        tensor(0.1308)
    """

    @settings
    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
    ) -> None: ...


class BCELoss(OfTarget, _WeightedLoss, function=F.binary_cross_entropy):
    """Cross entropy of targets in [0, 1] against probabilities.

    Args:
        weight: factor of each element's loss, broadcast.

    Example:
        >>> tg.nn.BCELoss()(tg.tensor([0.5, 0.5]), tg.tensor([0.0, 1.0]))
        tensor(0.6931)
    """


class BCEWithLogitsLoss(OfTarget, _Loss, function=F.binary_cross_entropy_with_logits):
    """Cross entropy of targets in [0, 1] against sigmoid(input).

    Args:
        weight: factor of each element's loss, broadcast.
        pos_weight: factor of the positive part, broadcast.

    Example:
        >>> tg.nn.BCEWithLogitsLoss()(tg.tensor([0.0, 0.0]), tg.tensor([0.0, 1.0]))
        tensor(0.6931)
    """

    @settings
    def __init__(
        self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None: ...  # fmt: skip


class SoftMarginLoss(OfTarget, _Loss, function=F.soft_margin_loss):
    """log(1 + exp(-target * input)) for targets 1 and -1."""


class HingeEmbeddingLoss(OfTarget, _Loss, function=F.hinge_embedding_loss):
    """input where target is 1, max(0, margin - input) where it is -1."""

    @settings
    def __init__(
        self, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None: ...


# -------------------------------------------------------------------------------------------------------- of classes


class NLLLoss(OfLabels, _WeightedLoss, function=F.nll_loss):
    """-input at the target class, for input of log probabilities.

    Args:
        weight: (C,), factor of each class.
        ignore_index: targets with this value are ignored.

    Example:
        >>> tg.nn.NLLLoss()(tg.zeros(2, 4).log_softmax(1), tg.tensor([0, 3]))
        tensor(1.3863)
    """

    @settings
    def __init__(
        self, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean",
    ) -> None: ...  # fmt: skip


class NLLLoss2d(NLLLoss):
    """Deprecated name of NLLLoss for images."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn("`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement", FutureWarning)
        super().__init__(*args, **kwargs)


class CrossEntropyLoss(OfLabels, _WeightedLoss, function=F.cross_entropy):
    """NLLLoss of log_softmax(input) for logits; targets are class indices or probabilities.

    Args:
        weight: (C,), factor of each class.
        ignore_index: class indices with this value are ignored.
        label_smoothing: weight in [0, 1] of the uniform distribution mixed into the target.

    Example:
        >>> logits = tg.zeros(2, 4, requires_grad=True)
        >>> loss = tg.nn.CrossEntropyLoss()(logits, tg.tensor([0, 3]))
        >>> loss.backward()
        >>> logits.grad
        tensor([[-0.3750,  0.1250,  0.1250,  0.1250],
                [ 0.1250,  0.1250,  0.1250, -0.3750]])
    """

    @settings
    def __init__(
        self, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
        reduction: str = "mean", label_smoothing: float = 0.0,
    ) -> None: ...  # fmt: skip


class LinearCrossEntropyLoss(_WeightedLoss):
    """CrossEntropyLoss of a linear layer's output.

    Args:
        in_features: size of the input's last dimension.
        num_classes: number of classes C.
        out_features: sizes of the additional dimensions of the loss.
        bias: whether the linear layer has a bias.
        weight: (C,), factor of each class.
        ignore_index: class indices with this value are ignored.
        label_smoothing: weight in [0, 1] of the uniform distribution mixed into the target.
        options: PyTorch's settings for splitting the work; no effect.

    Raises:
        RuntimeError: for a weight of another size or a label_smoothing outside [0, 1].
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Any = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
    ) -> None:  # fmt: skip
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0.0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """(N, in_features), and a target as of CrossEntropyLoss for logits (N, C, *out_features)."""
        linear, sizes = self.linear, (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input, linear.weight.reshape(*sizes, linear.in_features), target, weight=self.weight,
            linear_bias=None if linear.bias is None else linear.bias.reshape(*sizes), reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        names = ("num_classes", "out_features", "bias", "reduction", "ignore_index", "label_smoothing", "options")
        values = {**self.__dict__, "bias": self.linear.bias is not None}
        return f"in_features={self.linear.in_features}, " + ", ".join([f"{name}={values[name]}" for name in names])


class MultiMarginLoss(OfLabels, _WeightedLoss, function=F.multi_margin_loss):
    """Mean over the other classes of max(0, margin - input at the target + input at the class)**p.

    Args:
        p: 1 or 2.
        weight: (C,), factor of each class.

    Raises:
        ValueError: for another p, or a weight that is not 1-D.
    """

    @settings
    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, size_average: Any = None, reduce: Any = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")


class MultiLabelMarginLoss(OfLabels, _Loss, function=F.multilabel_margin_loss):
    """Mean over classes of the sum over target classes of max(0, 1 - input at the target + input at the class).

    The targets of a row are the class indices before the first negative one.
    """


class MultiLabelSoftMarginLoss(OfTarget, _WeightedLoss, function=F.multilabel_soft_margin_loss):
    """Mean over classes of the cross entropy of targets in [0, 1] against sigmoid(input).

    Args:
        weight: (C,), factor of each class.
    """


# ------------------------------------------------------------------------------------------------------ of embeddings


class CosineEmbeddingLoss(OfTwo, _Loss, function=F.cosine_embedding_loss):
    """1 - cos(input1, input2) where target is 1, max(0, cos(input1, input2) - margin) where it is -1.

    Example:
        >>> tg.nn.CosineEmbeddingLoss()(tg.tensor([[1.0, 0.0]]), tg.tensor([[0.0, 1.0]]), tg.tensor([1]))
        tensor(1.)
    """

    @settings
    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None: ...


class MarginRankingLoss(OfTwo, _Loss, function=F.margin_ranking_loss):
    """max(0, margin - target * (input1 - input2)): target 1 where input1 should be larger, else -1.

    Example:
        >>> tg.nn.MarginRankingLoss(margin=1.0)(tg.tensor([1.0]), tg.tensor([2.0]), tg.tensor([1.0]))
        tensor(2.)
    """

    @settings
    def __init__(
        self, margin: float = 0.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None: ...


class TripletMarginLoss(OfTriplet, _Loss, function=F.triplet_margin_loss):
    """max(0, margin + distance(anchor, positive) - distance(anchor, negative)), the distance a p-norm.

    Args:
        eps: added to the differences.
        swap: use the distance of positive and negative if it is smaller than from anchor to negative.

    Raises:
        ValueError: for a margin that is not positive.

    Example:
        >>> tg.nn.TripletMarginLoss()(tg.zeros(1, 2), tg.tensor([[3.0, 4.0]]), tg.tensor([[0.0, 5.5]]))
        tensor(0.5000)
    """

    @settings
    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, size_average: Any = None,
        reduce: Any = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._check_margin()


class TripletMarginWithDistanceLoss(OfTriplet, _Loss, function=F.triplet_margin_with_distance_loss):
    """TripletMarginLoss with a custom distance.

    Args:
        distance_function: function of two tensors; None: PairwiseDistance().
        swap: use the distance of positive and negative if it is smaller than from anchor to negative.

    Raises:
        ValueError: for a margin that is not positive.
    """

    @settings
    def __init__(
        self, *, distance_function: Callable[[Any, Any], Any] | None = None, margin: float = 1.0, swap: bool = False,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        self._check_margin()
        if distance_function is None:
            self.distance_function: Callable[[Any, Any], Any] = PairwiseDistance()


# ------------------------------------------------------------------------------------------------------- of sequences


class CTCLoss(_Loss, function=F.ctc_loss):
    """Connectionist temporal classification: negative log likelihood of label sequences (Graves et al. 2006).

    Args:
        blank: index of the blank class.
        reduction: "mean" (each loss divided by its target's length, then the mean), "sum" or "none".
        zero_infinity: replace infinite losses (target too long) and their gradients by 0.

    Example:
        >>> logs = tg.zeros(3, 1, 2).log_softmax(2)
        >>> tg.nn.CTCLoss()(logs, tg.tensor([[1]]), (3,), (1,))
        tensor(0.2877)
    """

    @settings
    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None: ...

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """(T, N, C) or (T, C), targets (N, S) or in one dimension, lengths (N,), to a 0-dim tensor, or (N,)."""
        return self._of(log_probs, targets, input_lengths, target_lengths)

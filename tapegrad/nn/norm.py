"""Normalising layers."""

from __future__ import annotations

from typing import Any

from ..ops import create
from ..tensor import Parameter
from . import functional as F
from . import init
from .module import Module


class BatchNorm(Module):
    """Base of the batch normalisations: each channel scaled to mean 0 and variance 1, over the batch or as tracked.

    Args:
        num_features: number of channels C, dimension 1 of the input.
        eps: added to the variance.
        momentum: share of a batch in the running statistics; None: their plain average over all batches.
        affine: whether there are a weight and (with bias) a bias of shape (C,).
        track_running_stats: whether running statistics are kept for evaluation mode.
    """

    _version = 2

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, present in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(
                name, Parameter(create.empty(num_features, dtype=dtype, device=device)) if present else None
            )
        tracked = track_running_stats
        self.register_buffer("running_mean", create.zeros(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", create.ones(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", create.tensor(0) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Running mean 0, running variance 1, no batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Running statistics, weight and bias as at the start."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        raise NotImplementedError

    def forward(self, input: Any) -> Any:
        """(N, C, ...) to the same shape; updates the running statistics in training mode."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        updating = self.training and self.track_running_stats
        if updating and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = updating or not self.training
        return F.batch_norm(
            input, self.running_mean if keep else None, self.running_var if keep else None, self.weight, self.bias,
            use_batch, momentum, self.eps,
        )  # fmt: skip

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """State of before version 2 has no count of batches."""
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L): each channel scaled to mean 0 and variance 1; arguments as BatchNorm.

    Raises:
        ValueError: for an input of another rank, or of a single value a channel in training mode.
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class LayerNorm(Module):
    """The last dimensions scaled to mean 0 and variance 1, then by a weight and a bias.

    Args:
        normalized_shape: sizes of these dimensions, or one size for the last.
        eps: added to the variance.
        elementwise_affine: whether there are a weight and (with bias) a bias of this shape.
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        for name, present in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(
                name, Parameter(create.empty(self.normalized_shape, dtype=dtype, device=device)) if present else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        """(..., *normalized_shape) to the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )

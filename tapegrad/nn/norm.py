"""Normalising layers."""

from __future__ import annotations

from typing import Any

from ..core.record import running_trace
from ..core.warning import warn
from ..functions import create
from ..functions.normalize import move
from ..tensor.tensor import Parameter, Tensor
from . import functional as F
from . import init
from .linear import affine, repeated
from .module import Module, shown


def scaled(module: Any, sizes: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
    """Register a weight and a bias of these sizes, or None."""
    for name, present in (("weight", weight), ("bias", bias)):
        value = Parameter(create.empty(sizes, dtype=dtype, device=device)) if present else None
        module.register_parameter(name, value)


def neutral(module: Any) -> None:
    """Set a layer's weight to 1 and its bias to 0, if it has them."""
    for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
        if module._parameters.get(name) is not None:
            fill(module._parameters[name])


class _NormBase(Module):
    """Base of batch and instance normalisations: weight, bias and running statistics of each channel."""

    _version = 2
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool, device: Any,
        dtype: Any, bias: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        scaled(self, num_features, affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", create.zeros(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("running_var", create.ones(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("num_batches_tracked", create.tensor(0, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running mean to 0, the running variance to 1 and the count of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Reset running statistics, weight and bias."""
        self.reset_running_stats()
        neutral(self)

    def _check_input_dim(self, input: Any) -> None:
        raise NotImplementedError

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """A state dict before version 2 has no num_batches_tracked."""
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def extra_repr(self) -> str:
        settings = shown(self, "eps", "momentum", "affine")
        has_bias = self.bias is not None
        return f"{self.num_features}, {settings}, bias={has_bias}, track_running_stats={self.track_running_stats}"


class _BatchNorm(_NormBase):
    """Base of the batch normalisations; see BatchNorm2d."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) to the same shape; updates the running statistics in training mode."""
        self._check_input_dim(input)
        mean, var, training = self.running_mean, self.running_var, self.training
        seen = self.num_batches_tracked if training and self.track_running_stats else None
        momentum: Any = self.momentum
        if momentum is None:
            momentum = 0.0 if seen is None else 1.0 / ((seen.double() if running_trace() is not None else float(seen)) + 1.0)
        if training and not self.track_running_stats:
            mean = var = None
        use_batch = training or (mean is None and var is None)
        result = F.batch_norm(input, mean, var, *affine(self), use_batch, momentum, self.eps)
        if seen is not None:
            move(seen, 1, 1, 1)
        return result


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L); arguments as BatchNorm2d.

    Example:
        >>> tg.nn.BatchNorm1d(1)(tg.tensor([[1.0], [3.0]])).detach()
        tensor([[-1.0000],
                [ 1.0000]])
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (N, C, H, W): each channel scaled to mean 0 and variance 1.

    Mean and variance are those of the batch in training mode, the running statistics in evaluation mode.

    Attributes:
        running_mean, running_var: (C,), the variance unbiased; None without track_running_stats.
        num_batches_tracked: number of batches seen.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None: the average over all batches.
        affine: whether there are a weight and (with bias) a bias of shape (C,).
        track_running_stats: whether running statistics are kept; without them those of the batch are always used.

    Raises:
        ValueError: for an input of another rank, or with one value per channel in training mode.
        RuntimeError: for another number of channels; under vmap, where each sample would update the statistics.

    Example:
        >>> layer = tg.nn.BatchNorm2d(3)
        >>> layer(tg.ones(2, 3, 4, 4)).shape, layer.running_mean
        (torch.Size([2, 3, 4, 4]), tensor([0.1000, 0.1000, 0.1000]))
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (N, C, D, H, W); arguments as BatchNorm2d."""

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, ...) over all processes, of which there is one; arguments as BatchNorm2d."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The module with every batch norm replaced by a SyncBatchNorm with the same state."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                bias=module.bias is not None,
            )  # fmt: skip
            result._parameters.update(module._parameters)
            result._buffers.update(module._buffers)
            result.training = module.training
        for name, child in list(module.named_children()):
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_NormBase):
    """Base of the instance normalisations; see InstanceNorm2d."""

    _dims: int

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _check_input_dim(self, input: Any) -> None:
        least = self._dims + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *sizes) or (C, *sizes) to the same shape; updates the running statistics in training mode."""
        self._check_input_dim(input)
        dim = input.dim() - self._dims - 1
        if input.shape[dim] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{input.shape[dim]}."
                )
            warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False"
            )
        result = F.instance_norm(
            input if dim else input.unsqueeze(0), self.running_mean, self.running_var, *affine(self),
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return result if dim else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L); arguments as InstanceNorm2d."""

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W): each channel of each image scaled to mean 0 and variance 1.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics.
        affine: whether there are a weight and (with bias) a bias of shape (C,).
        track_running_stats: whether running statistics are kept, for evaluation mode.

    Raises:
        ValueError: for an input of another rank, with one value per channel in training mode, or, with affine, with
            another number of channels.

    Example:
        >>> tg.nn.InstanceNorm2d(1)(tg.tensor([[[[1.0, 3.0]]]]))
        tensor([[[[-1.0000,  1.0000]]]])
    """

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes (N, C, D, H, W) or (C, D, H, W); arguments as InstanceNorm2d."""

    _dims = 3


class GroupNorm(Module):
    """Group normalisation: each group of channels of each sample is scaled to mean 0 and variance 1.

    Args:
        num_groups: number of groups.
        num_channels: number of channels C, dimension 1 of the input.
        eps: added to the variance.
        affine: whether there are a weight and (with bias) a bias of shape (C,).

    Raises:
        ValueError: if num_groups does not divide num_channels.

    Example:
        >>> tg.nn.GroupNorm(2, 4)(tg.tensor([[1.0, 3.0, 10.0, 30.0]])).detach()
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_groups == 0 or num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        scaled(self, num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weight to 1 and the bias to 0."""
        neutral(self)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) to the same shape."""
        return F.group_norm(input, self.num_groups, *affine(self), self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, {shown(self, 'eps', 'affine')}, bias={self.bias is not None}"


class LayerNorm(Module):
    """Layer normalisation: the last dimensions are scaled to mean 0 and variance 1, then by a weight and a bias.

    Args:
        normalized_shape: sizes of these dimensions, or the size of the last one.
        eps: added to the variance.
        elementwise_affine: whether there are a weight and (with bias) a bias of this shape.

    Example:
        >>> tg.nn.LayerNorm(2)(tg.tensor([[1.0, 3.0], [10.0, 30.0]])).detach()
        tensor([[-1.0000,  1.0000],
                [-1.0000,  1.0000]])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = repeated(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        scaled(self, self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weight to 1 and the bias to 0."""
        neutral(self)

    def forward(self, input: Tensor) -> Tensor:
        """(..., *normalized_shape) to the same shape."""
        return F.layer_norm(input, self.normalized_shape, *affine(self), self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, {shown(self, 'eps', 'elementwise_affine')}, bias={self.bias is not None}"


class RMSNorm(Module):
    """RMS normalisation: the last dimensions are divided by their root mean square, then multiplied by a weight.

    Args:
        normalized_shape: sizes of these dimensions, or the size of the last one.
        eps: added to the mean square; None: the machine epsilon of the input's dtype.
        elementwise_affine: whether there is a weight of this shape.

    Example:
        >>> tg.nn.RMSNorm(2)(tg.tensor([[1.0, 7.0]])).detach()
        tensor([[0.2000, 1.4000]])
    """

    weight: Parameter | None

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = repeated(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = Parameter(create.empty(self.normalized_shape, dtype=dtype, device=device)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weight to 1."""
        neutral(self)

    def forward(self, x: Tensor) -> Tensor:
        """(..., *normalized_shape) to the same shape."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, {shown(self, 'eps', 'elementwise_affine')}"


class _ResponseNorm(Module):
    """Base of the local response normalisations."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def extra_repr(self) -> str:
        return f"{self.size}, {shown(self, 'alpha', 'beta', 'k')}"


class LocalResponseNorm(_ResponseNorm):
    """input over (k + alpha * mean of the squares of `size` neighbouring channels) ** beta."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, ...) to the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """input over (k + alpha / size * sum of the squares of the channels at most (size - 1) // 2 away) ** beta."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) to the same shape."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels = 2 * ((self.size - 1) // 2) + 1
        return F.local_response_norm(input, channels, self.alpha * channels / self.size, self.beta, self.k)

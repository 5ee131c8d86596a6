"""Functions whose arguments on the page are not those of nn.functional: fewer, in another order, a number for a word."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import dtypes, errors
from ..kernels.shape import shape_of
from ..table.define import named
from . import conv, create, embed, loss, matrix, normalize, pool, reduce, resample, shape
from . import dropout as drops
from .operands import tensor

# ------------------------------------------------------------------------------------------------------------- dropout


def _dropout(name: str, doc: str, drop: Callable[..., Any], channels: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function and its in-place form."""

    def form(inplace: bool) -> Callable[..., Any]:
        def function(input: Any, p: float, train: bool) -> Any:
            drops.check_probability(p, RuntimeError)
            return drops.in_training(drop, input, p, train, inplace, channels)

        return named(function, name + "_" * inplace, doc + " This tensor itself is changed." * inplace)

    return form(False), form(True)


DROPPED = "set to 0 with probability p, the others divided by 1 - p; the input itself unless train."
SATURATED = "set to selu(-inf) with probability p, then all scaled and shifted; the input itself unless train."
dropout, dropout_ = _dropout("dropout", f"Elements {DROPPED}", drops.dropped, False)
feature_dropout, feature_dropout_ = _dropout("feature_dropout", f"Whole channels {DROPPED}", drops.dropped, True)
alpha_dropout, alpha_dropout_ = _dropout("alpha_dropout", f"Elements {SATURATED}", drops.alpha_dropped, False)
feature_alpha_dropout, feature_alpha_dropout_ = _dropout(
    "feature_alpha_dropout", f"Whole channels {SATURATED}", drops.alpha_dropped, True
)


def native_dropout(input: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """(dropout(input, p, train), the mask of the elements that are kept)."""
    x = tensor(input)
    if train is False or not x._d.size:
        return x.clone(), create.ones(shape_of(x), dtype=dtypes.bool_, device=x.device)
    mask = drops.keep_mask(x, p, False)
    return x * (mask * (1.0 / (1.0 - p) if p < 1.0 else 0.0)), mask.bool()


# -------------------------------------------------------------------------------------------------------------- losses

REDUCTIONS = ("none", "mean", "sum")
LOSSES = {
    "binary_cross_entropy_with_logits": ("input", "target", "weight", "pos_weight", "reduction"),
    "cosine_embedding_loss": ("input1", "input2", "target", "margin", "reduction"),
    "ctc_loss": ("log_probs", "targets", "input_lengths", "target_lengths", "blank", "reduction", "zero_infinity"),
    "hinge_embedding_loss": ("input", "target", "margin", "reduction"),
    "margin_ranking_loss": ("input1", "input2", "target", "margin", "reduction"),
    "poisson_nll_loss": ("input", "target", "log_input", "full", "eps", "reduction"),
    "triplet_margin_loss": ("anchor", "positive", "negative", "margin", "p", "eps", "swap", "reduction"),
}
"""The order of each loss's arguments; `reduction` is a number here, and none unless given: PyTorch takes it so."""


def _loss(name: str) -> Callable[..., Any]:
    function = getattr(loss, name)
    given = inspect.signature(function).parameters
    order = [given[n] if n != "reduction" else given[n].replace(default=0, annotation="int") for n in LOSSES[name]]
    signature = inspect.Signature(order, return_annotation="Any")

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(**bound.arguments | {"reduction": REDUCTIONS[bound.arguments["reduction"]]})

    call.__signature__ = signature  # type: ignore[attr-defined]
    return named(call, name, f"nn.functional.{name} with the reduction as a number: 0 none, 1 mean, 2 sum.")


binary_cross_entropy_with_logits = _loss("binary_cross_entropy_with_logits")
cosine_embedding_loss = _loss("cosine_embedding_loss")
ctc_loss = _loss("ctc_loss")
hinge_embedding_loss = _loss("hinge_embedding_loss")
margin_ranking_loss = _loss("margin_ranking_loss")
poisson_nll_loss = _loss("poisson_nll_loss")
triplet_margin_loss = _loss("triplet_margin_loss")


def kl_div(input: Any, target: Any, reduction: int = 0, *, log_target: bool = False) -> Any:
    """nn.functional.kl_div with the reduction as a number: 0 none, 1 mean, 2 sum."""
    return loss.reduced(loss.divergences(input, target, log_target), REDUCTIONS[reduction])


# -------------------------------------------------------------------------------------------------------------- layers


def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float,
    cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """nn.functional.batch_norm, weight and bias first; cudnn_enabled is of no effect."""
    return normalize.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """nn.functional.instance_norm, weight and bias first; cudnn_enabled is of no effect."""
    return normalize.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """nn.functional.embedding, weight first; a negative padding_idx stands for none."""
    padding = padding_idx if padding_idx >= 0 else None
    return embed.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq)


MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Rows of weight over bags of indices, as nn.functional.embedding_bag, with what PyTorch's backward pass reads.

    Args:
        mode: 0 for sums, 1 for means, 2 for maxima.

    Returns:
        The rows; the bag of each index, empty for sums without padding_idx; the number of indices in each bag, zeros for
        sums; the index that each maximum is of, or these numbers again.

    Raises:
        RuntimeError: for a mode, shapes, dtypes, offsets or an index that do not fit.
    """
    w, x, starts = tensor(weight), tensor(indices), tensor(offsets)
    if len(shape_of(x)) not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {len(shape_of(x))}")
    if len(shape_of(starts)) != 1:
        raise errors.offsets_rank(len(shape_of(starts)))
    if len(shape_of(w)) != 2:
        raise RuntimeError(errors.embedding_rank(len(shape_of(w))))
    if mode not in (0, 1, 2):
        raise RuntimeError(f"`mode` must be sum, mean, or max, as 0, 1 or 2; got {mode}")
    factors = None if per_sample_weights is None else tensor(per_sample_weights)
    if factors is not None and mode:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    if factors is not None and factors._d.size != x._d.size:
        raise RuntimeError(
            f"embedding_bag: expected as many per_sample_weights as indices, {x._d.size}, got {factors._d.size}"
        )
    bags = embed.bags_by_offset(x, starts, include_last_offset)
    rows, found = embed.over_bags(w, x, bags, scale_grad_by_freq, MODES[mode], factors, padding_idx)
    whole = dtypes.promote_types(x.dtype, starts.dtype)
    if mode == 0:
        of_index = bags[0].to(whole) if padding_idx is not None else create.empty(0, dtype=whole)
        return rows, of_index, *(create.zeros_like(starts, dtype=whole) for _ in range(2))
    own = x.reshape(-1)
    counted = create.ones_like(own) if padding_idx is None else own.ne(padding_idx % shape_of(w)[0])
    sizes = create.zeros(bags[2], dtype=whole).index_add(0, bags[0], counted.to(whole))[: bags[1]]
    if mode == 1:
        return rows, bags[0].to(whole), sizes, sizes.clone()
    winners = own[found.clamp_min(0)] * (found >= 0) if own._d.size else create.zeros_like(found)
    return rows, bags[0].to(whole), sizes, winners.to(whole)


def _embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int = -1,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """embedding_bag, where a negative padding_idx stands for none."""
    padding = None if padding_idx < 0 else padding_idx
    return embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    )


_embedding_bag_forward_only = _embedding_bag


def embedding_renorm_(input: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Rows of input at the indices scaled down to a norm of max_norm, where it is larger, in place."""
    rank = len(shape_of(input))
    if rank != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {rank}-dimensional tensor for argument #1 'self' (while checking "
            "arguments for embedding_renorm_)"
        )
    embed.limit_norms(input, tensor(indices), max_norm, norm_type)
    return input


def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Any, Any]:
    """(nn.functional.adaptive_max_pool1d, the positions of the maxima)."""
    return pool.adaptive_max_pool1d(input, output_size, return_indices=True)  # type: ignore[no-any-return]


def affine_grid_generator(theta: Any, size: Any, align_corners: bool) -> Any:
    """nn.functional.affine_grid."""
    return resample.affine_grid(theta, size, align_corners)


def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Any:  # fmt: skip
    """conv1d, conv2d or conv3d, by the dimensions of weight, or their transposes."""
    dims = len(shape_of(weight)) - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(f"Expected a weight of 3, 4 or 5 dimensions, but got size {list(shape_of(weight))}")
    if transposed:
        transposes = (conv.conv_transpose1d, conv.conv_transpose2d, conv.conv_transpose3d)
        return transposes[dims - 1](input, weight, bias, stride, padding, output_padding, groups, dilation)
    return (conv.conv1d, conv.conv2d, conv.conv3d)[dims - 1](input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """conv1d of (time, batch, channels) with weight (width, channels, outputs) and bias (outputs,)."""
    x, w = tensor(input), tensor(weight)
    if len(shape_of(x)) != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if len(shape_of(w)) != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    return conv.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)


# --------------------------------------------------------------------------------------------------------------- norms


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The `pow`-norm over all dimensions but one, which are kept with size 1; dim -1: over all dimensions."""
    x = tensor(v)
    rank = len(shape_of(x))
    if dim == -1:
        return reduce.norm(x, pow)
    if dim not in (0, rank - 1):
        return shape.transpose(norm_except_dim(shape.transpose(x, 0, dim), pow, 0), 0, dim)
    return reduce.norm(x, pow, [d for d in range(rank) if d != dim], True)


def frobenius_norm(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """Square root of the sum of squares over the given dimensions."""
    return matrix.linalg_vector_norm(input, 2, dim, keepdim)


def nuclear_norm(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Sum of the singular values of the matrices in two dimensions, the only ones unless given."""
    if dim is None and len(shape_of(tensor(input))) != 2:
        raise RuntimeError(f"linalg.matrix_norm: The input tensor must be a matrix, got {len(shape_of(tensor(input)))}")
    return matrix.linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


# ------------------------------------------------------------------------------------- what PyTorch has taken out itself


def _removed(name: str, advice: str) -> Callable[..., Any]:
    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {advice}")

    return named(function, name, "Raises: PyTorch has removed this function. " + advice)


eig = _removed("eig", "`torch.linalg.eig` returns complex tensors: use it, or linalg.eigvals.")
lstsq = _removed("lstsq", "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`: its arguments are reversed.")
solve = _removed("solve", "`torch.solve` is deprecated in favor of `torch.linalg.solve`: its arguments are reversed.")
symeig = _removed("symeig", "Use linalg.eigh, or linalg.eigvalsh, which read the lower triangle.")
matrix_rank = _removed("matrix_rank", "Use linalg.matrix_rank.")

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

        text = f"{name}() written into input; returns it.\n\n{inspect.cleandoc(doc)}" if inplace else doc
        return named(function, name + "_" * inplace, text)

    return form(False), form(True)


dropout, dropout_ = _dropout(
    "dropout",
    """Elements set to 0 with probability p, the others divided by 1 - p.

    Args:
        input: float tensor of any shape.
        p: the probability, in [0, 1].
        train: False gives input itself.

    Raises:
        RuntimeError: for another p.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.dropout(tg.ones(5), 0.5, True)
        tensor([0., 0., 2., 0., 0.])
    """,
    drops.dropped,
    False,
)
feature_dropout, feature_dropout_ = _dropout(
    "feature_dropout",
    """Whole channels set to 0 with probability p, the others divided by 1 - p.

    Args:
        input: float tensor of shape (batch, channels, ..).
        p: the probability, in [0, 1].
        train: False gives input itself.

    Raises:
        RuntimeError: for another p.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.feature_dropout(tg.ones(1, 3, 2), 0.5, True)
        tensor([[[0., 0.],
                 [0., 0.],
                 [2., 2.]]])
    """,
    drops.dropped,
    True,
)
alpha_dropout, alpha_dropout_ = _dropout(
    "alpha_dropout",
    """Elements set to selu(-inf) with probability p, then all scaled and shifted, so that mean 0 and variance 1 stay.

    Args:
        input: float tensor of any shape.
        p: the probability, in [0, 1].
        train: False gives input itself.

    Raises:
        RuntimeError: for another p.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.alpha_dropout(tg.ones(5), 0.5, True)
        tensor([-0.7792, -0.7792,  1.6656, -0.7792, -0.7792])
    """,
    drops.alpha_dropped,
    False,
)
feature_alpha_dropout, feature_alpha_dropout_ = _dropout(
    "feature_alpha_dropout",
    """Whole channels set to selu(-inf) with probability p, then all scaled and shifted, so that mean 0 and variance 1 stay.

    Args:
        input: float tensor of shape (batch, channels, ..).
        p: the probability, in [0, 1].
        train: False gives input itself.

    Raises:
        RuntimeError: for another p.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.feature_alpha_dropout(tg.ones(1, 3, 2), 0.5, True)
        tensor([[[-0.7792, -0.7792],
                 [-0.7792, -0.7792],
                 [ 1.6656,  1.6656]]])
    """,
    drops.alpha_dropped,
    True,
)


def native_dropout(input: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """dropout(input, p, train) with the mask of the elements that are kept.

    Args:
        input: float tensor of any shape.
        p: the probability with which an element is set to 0.
        train: False gives a copy of input and a mask of True.

    Returns:
        (result, mask), the mask a bool tensor of input's shape.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.native_dropout(tg.ones(4), 0.5, True)
        (tensor([0., 0., 2., 0.]), tensor([False, False,  True, False]))
    """
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


def _loss(name: str, doc: str) -> Callable[..., Any]:
    function = getattr(loss, name)
    given = inspect.signature(function).parameters
    order = [given[n] if n != "reduction" else given[n].replace(default=0, annotation="int") for n in LOSSES[name]]
    signature = inspect.Signature(order, return_annotation="Any")

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(**bound.arguments | {"reduction": REDUCTIONS[bound.arguments["reduction"]]})

    call.__signature__ = signature  # type: ignore[attr-defined]
    return named(call, name, doc)


binary_cross_entropy_with_logits = _loss(
    "binary_cross_entropy_with_logits",
    """nn.functional.binary_cross_entropy_with_logits, its reduction a number.

    Args:
        input, target, weight, pos_weight: as of that function.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> tg.binary_cross_entropy_with_logits(tg.tensor([0.0, 2.0]), tg.tensor([1.0, 0.0]))
        tensor([0.6931, 2.1269])
    """,
)
cosine_embedding_loss = _loss(
    "cosine_embedding_loss",
    """nn.functional.cosine_embedding_loss, its reduction a number.

    Args:
        input1, input2, target, margin: as of that function.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> tg.cosine_embedding_loss(tg.tensor([[1.0, 0.0]]), tg.tensor([[1.0, 1.0]]), tg.tensor([1]))
        tensor([0.2929])
    """,
)
ctc_loss = _loss(
    "ctc_loss",
    """nn.functional.ctc_loss, its reduction a number.

    Args:
        log_probs, targets, input_lengths, target_lengths, blank, zero_infinity: as of that function.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> log_probs = tg.log_softmax(tg.zeros(4, 1, 3), dim=2)
        >>> tg.ctc_loss(log_probs, tg.tensor([[1, 2]]), (4,), (2,))
        tensor([1.6864])
    """,
)
hinge_embedding_loss = _loss(
    "hinge_embedding_loss",
    """nn.functional.hinge_embedding_loss, its reduction a number.

    Args:
        input, target, margin: as of that function.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> tg.hinge_embedding_loss(tg.tensor([0.5, 0.25]), tg.tensor([1.0, -1.0]))
        tensor([0.5000, 0.7500])
    """,
)
margin_ranking_loss = _loss(
    "margin_ranking_loss",
    """nn.functional.margin_ranking_loss, its reduction a number.

    Args:
        input1, input2, target, margin: as of that function.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> tg.margin_ranking_loss(tg.tensor([0.5, 2.0]), tg.tensor([1.0, 1.0]), tg.tensor([1.0, 1.0]))
        tensor([0.5000, 0.0000])
    """,
)
poisson_nll_loss = _loss(
    "poisson_nll_loss",
    """nn.functional.poisson_nll_loss, its reduction a number.

    Args:
        input, target, log_input, full, eps: as of that function, without defaults.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> tg.poisson_nll_loss(tg.tensor([0.0, 1.0]), tg.tensor([1.0, 2.0]), True, False, 1e-8, 1)
        tensor(0.8591)
    """,
)
triplet_margin_loss = _loss(
    "triplet_margin_loss",
    """nn.functional.triplet_margin_loss, its reduction a number.

    Args:
        anchor, positive, negative, margin, p, eps, swap: as of that function.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> tg.triplet_margin_loss(tg.zeros(1, 2), tg.ones(1, 2), tg.tensor([[2.0, 0.0]]))
        tensor([0.4142])
    """,
)


def kl_div(input: Any, target: Any, reduction: int = 0, *, log_target: bool = False) -> Any:
    """nn.functional.kl_div, its reduction a number.

    Args:
        input, target, log_target: as of that function.
        reduction: 0 for none (the default), 1 for the mean, 2 for the sum.

    Example:
        >>> p = tg.tensor([0.5, 0.5])
        >>> tg.kl_div(tg.tensor([0.25, 0.75]).log(), p, 2)
        tensor(0.1438)
    """
    return loss.reduced(loss.divergences(input, target, log_target), REDUCTIONS[reduction])


# -------------------------------------------------------------------------------------------------------------- layers


def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float,
    cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """nn.functional.batch_norm, weight and bias first.

    Args:
        input, weight, bias, running_mean, running_var, training, momentum, eps: as of that function.
        cudnn_enabled: of no effect.

    Example:
        >>> x = tg.tensor([[1.0], [3.0]])
        >>> tg.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    return normalize.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """nn.functional.instance_norm, weight and bias first.

    Args:
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps: as of that function.
        cudnn_enabled: of no effect.

    Example:
        >>> x = tg.tensor([[[1.0, 3.0]]])
        >>> tg.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
        tensor([[[-1.0000,  1.0000]]])
    """
    return normalize.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """nn.functional.embedding, weight first: the rows of weight at the indices.

    Args:
        weight: tensor of shape (rows, size).
        indices: integer tensor of any shape.
        padding_idx: a row without gradient; none if negative.
        scale_grad_by_freq: divide gradients by how often their index occurs.
        sparse: of no effect.

    Example:
        >>> tg.embedding(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1, 0, 1]))
        tensor([[3., 4.],
                [1., 2.],
                [3., 4.]])
    """
    padding = padding_idx if padding_idx >= 0 else None
    return embed.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq)


MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Rows of weight over bags of indices, as nn.functional.embedding_bag, with what PyTorch's backward pass reads.

    Args:
        weight, indices, offsets, per_sample_weights, include_last_offset, padding_idx: as of that function.
        scale_grad_by_freq: divide gradients by how often their index occurs.
        mode: 0 for sums, 1 for means, 2 for maxima.
        sparse: of no effect.

    Returns:
        The rows; the bag of each index, empty for sums without padding_idx; the number of indices in each bag, zeros for
        sums; the index that each maximum is of, or these numbers again.

    Raises:
        RuntimeError: for a mode, shapes, dtypes, offsets or an index that do not fit.

    Example:
        >>> weight = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> tg.embedding_bag(weight, tg.tensor([0, 1, 1]), tg.tensor([0, 2]))[0]
        tensor([[4., 6.],
                [3., 4.]])
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
    """Rows of input at the indices scaled down to a norm of max_norm, where it is larger, in place; returns input.

    Args:
        input: float tensor of shape (rows, size).
        indices: integer tensor.
        max_norm: the largest norm.
        norm_type: the order of the norm.

    Raises:
        RuntimeError: for an input of another number of dimensions.

    Example:
        >>> w = tg.tensor([[3.0, 4.0], [30.0, 40.0]])
        >>> tg.embedding_renorm_(w, tg.tensor([0]), 1.0, 2.0)
        tensor([[ 0.6000,  0.8000],
                [30.0000, 40.0000]])
    """
    rank = len(shape_of(input))
    if rank != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {rank}-dimensional tensor for argument #1 'self' (while checking "
            "arguments for embedding_renorm_)"
        )
    embed.limit_norms(input, tensor(indices), max_norm, norm_type)
    return input


def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Any, Any]:
    """nn.functional.adaptive_max_pool1d with the positions of the maxima.

    Args:
        input, output_size: as of that function.

    Returns:
        (maxima, positions).

    Example:
        >>> tg.adaptive_max_pool1d(tg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return pool.adaptive_max_pool1d(input, output_size, return_indices=True)  # type: ignore[no-any-return]


def affine_grid_generator(theta: Any, size: Any, align_corners: bool) -> Any:
    """nn.functional.affine_grid, without a default for align_corners.

    Args:
        theta, size, align_corners: as of that function.

    Example:
        >>> theta = tg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> tg.affine_grid_generator(theta, (1, 1, 1, 2), False)
        tensor([[[[-0.5000,  0.0000],
                  [ 0.5000,  0.0000]]]])
    """
    return resample.affine_grid(theta, size, align_corners)


def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Any:  # fmt: skip
    """conv1d, conv2d or conv3d, by the dimensions of weight, or their transposes.

    Args:
        input, weight, bias, stride, padding, dilation, groups: as of these functions.
        transposed: whether the transpose is meant.
        output_padding: as of conv_transpose1d; else of no effect.

    Raises:
        RuntimeError: for a weight that has not 3, 4 or 5 dimensions.

    Example:
        >>> x, w = tg.tensor([[[1.0, 2.0, 4.0]]]), tg.tensor([[[-1.0, 1.0]]])
        >>> tg.convolution(x, w, None, (1,), (0,), (1,), False, (0,), 1)
        tensor([[[1., 2.]]])
    """
    dims = len(shape_of(weight)) - 2
    if dims not in (1, 2, 3):
        raise RuntimeError(f"Expected a weight of 3, 4 or 5 dimensions, but got size {list(shape_of(weight))}")
    if transposed:
        transposes = (conv.conv_transpose1d, conv.conv_transpose2d, conv.conv_transpose3d)
        return transposes[dims - 1](input, weight, bias, stride, padding, output_padding, groups, dilation)
    return (conv.conv1d, conv.conv2d, conv.conv3d)[dims - 1](input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """conv1d of input in the order time, batch, channels.

    Args:
        input: tensor of shape (time, batch, channels).
        weight: tensor of shape (width, channels, outputs).
        bias: tensor of shape (outputs,).
        pad: zeros added at both ends, default 0.

    Returns:
        A tensor of shape (time + 2 * pad - width + 1, batch, outputs).

    Raises:
        RuntimeError: for an input or weight that has not 3 dimensions.

    Example:
        >>> x, w = tg.tensor([1.0, 2.0, 4.0]).reshape(3, 1, 1), tg.tensor([-1.0, 1.0]).reshape(2, 1, 1)
        >>> tg.conv_tbc(x, w, tg.zeros(1)).flatten()
        tensor([1., 2.])
    """
    x, w = tensor(input), tensor(weight)
    if len(shape_of(x)) != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if len(shape_of(w)) != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    return conv.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)


# --------------------------------------------------------------------------------------------------------------- norms


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The `pow`-norm over all dimensions but one, which are kept with size 1.

    Args:
        v: float or complex tensor.
        pow: the order of the norm, default 2.
        dim: the dimension that is left, default 0; -1 for none: the norm of all.

    Example:
        >>> tg.norm_except_dim(tg.tensor([[3.0, 4.0], [6.0, 8.0]]))
        tensor([[ 5.],
                [10.]])
    """
    x = tensor(v)
    rank = len(shape_of(x))
    if dim == -1:
        return reduce.norm(x, pow)
    if dim not in (0, rank - 1):
        return shape.transpose(norm_except_dim(shape.transpose(x, 0, dim), pow, 0), 0, dim)
    return reduce.norm(x, pow, [d for d in range(rank) if d != dim], True)


def frobenius_norm(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """Square root of the sum of squares over the given dimensions.

    Args:
        input: float or complex tensor.
        dim: a dimension or several.
        keepdim: keep the reduced dimensions, with size 1.

    Example:
        >>> tg.frobenius_norm(tg.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
        tensor([ 5., 10.])
    """
    return matrix.linalg_vector_norm(input, 2, dim, keepdim)


def nuclear_norm(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Sum of the singular values of the matrices in two dimensions.

    Args:
        input: float or complex tensor; a matrix unless dim is given.
        dim: the two dimensions.
        keepdim: keep the reduced dimensions, with size 1.

    Raises:
        RuntimeError: for another number of dimensions without dim.

    Example:
        >>> tg.nuclear_norm(tg.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(7.)
    """
    if dim is None and len(shape_of(tensor(input))) != 2:
        raise RuntimeError(f"linalg.matrix_norm: The input tensor must be a matrix, got {len(shape_of(tensor(input)))}")
    return matrix.linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


# ------------------------------------------------------------------------------------- what PyTorch has taken out itself


def _removed(name: str, advice: str) -> Callable[..., Any]:
    def function(input: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {advice}")

    return named(
        function,
        name,
        f"""Removed by PyTorch. {advice}

    Raises:
        RuntimeError: always.

    Example:
        >>> tg.{name}(tg.eye(2))
        Traceback (most recent call last):
            ...
        RuntimeError: This function was deprecated since version 1.9 and is now removed. ...
    """,
    )


eig = _removed("eig", "`torch.linalg.eig` returns complex tensors: use it, or linalg.eigvals.")
lstsq = _removed("lstsq", "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`: its arguments are reversed.")
solve = _removed("solve", "`torch.solve` is deprecated in favor of `torch.linalg.solve`: its arguments are reversed.")
symeig = _removed("symeig", "Use linalg.eigh, or linalg.eigvalsh, which read the lower triangle.")
matrix_rank = _removed("matrix_rank", "Use linalg.matrix_rank.")

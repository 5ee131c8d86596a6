"""Functions that OneFlow alone has, or whose arguments it takes in another order than PyTorch."""

from collections.abc import Sequence
from typing import Any

import tapegrad as tg
from tapegrad import Tensor
from tapegrad.nn import functional


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, alpha: float = 1, beta: float = 1) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``."""
    return tg.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def cast(input: Tensor, dtype: Any) -> Tensor:
    """The tensor in another dtype."""
    return input.to(dtype)


def _positions(index: Tensor) -> tuple[Tensor, ...]:
    return tuple(index.long().unbind(-1))


def gather_nd(input: Tensor, index: Tensor) -> Tensor:
    """The elements, or parts, of input at the places that the rows of index name."""
    return input[_positions(index)]


def scatter_nd(index: Tensor, update: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of a shape with update added at the places that the rows of index name."""
    return tg.zeros(tuple(shape), dtype=update.dtype).index_put(_positions(index), update, accumulate=True)


def tensor_scatter_nd_update(tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The tensor with updates in the places that the rows of indices name."""
    return tensor.index_put(_positions(indices), updates)


def _slices(slice_tup_list: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(slice(*bounds) for bounds in slice_tup_list)


def slice_(input: Tensor, slice_tup_list: Sequence[Sequence[Any]]) -> Tensor:
    """``input[start:stop:step, ...]`` for (start, stop, step) of each dimension."""
    return input[_slices(slice_tup_list)]


def slice_update(input: Tensor, update: Tensor, slice_tup_list: Sequence[Sequence[Any]]) -> Tensor:
    """Write update into ``input[start:stop:step, ...]``; gives input."""
    input[_slices(slice_tup_list)] = update
    return input


def broadcast_like(x: Tensor, like_tensor: Tensor, broadcast_axes: Sequence[int] = ()) -> Tensor:
    """The tensor in the shape of another one; broadcast_axes are the dimensions of that which it lacks."""
    if x.ndim < like_tensor.ndim:
        for axis in sorted(axis % like_tensor.ndim for axis in broadcast_axes):
            x = x.unsqueeze(axis)
    return x.expand(like_tensor.shape)


def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Whether the class that targets names is among the k most probable of each row."""
    chosen = predictions.gather(1, targets.long()[:, None])
    return (predictions > chosen).sum(1) < k


def batch_gather(input: Tensor, indices: Tensor) -> Tensor:
    """Parts of input along the last dimension that indices have; the dimensions before that are the batch."""
    dim = indices.ndim - 1
    index = indices.long().reshape(tuple(indices.shape) + (1,) * (input.ndim - indices.ndim))
    return input.gather(dim, index.expand(*indices.shape, *input.shape[indices.ndim :]))


def bernoulli(input: Tensor, p: float | None = None, *, dtype: Any = tg.float32, generator: Any = None) -> Tensor:
    """Zeros and ones of a dtype, one with the probabilities in input, or with probability p."""
    if p is not None:
        input = tg.full_like(input, p)
    return tg.bernoulli(input, generator=generator).to(dtype)


def empty_strided(size: Any, stride: Any, *, requires_grad: bool = False, dtype: Any = None, **rest: Any) -> Tensor:
    """A tensor of a size and strides; integers do not require grad, whatever is asked."""
    made = tg.empty_strided(size, stride, dtype=dtype, **rest)
    return made.requires_grad_(requires_grad and (made.is_floating_point() or made.is_complex()))


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where mask, of any dtype, is not 0."""
    return tg.masked_select(input, mask.bool())


def nonzero(input: Tensor, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0: as the rows of a matrix, or a tensor for each dimension."""
    return tg.nonzero(input, as_tuple=as_tuple)


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes (left, top, right, bottom) to keep, by falling score: those that overlap a better one by more go."""
    order = scores.argsort(descending=True)
    sides = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        low, high = tg.maximum(boxes[order, :2], boxes[best, :2]), tg.minimum(boxes[order, 2:], boxes[best, 2:])
        common = (high - low).clamp(min=0).prod(1)
        order = order[common / (sides[order] + sides[best] - common) <= iou_threshold]
    return tg.stack(kept) if kept else order


def roc_auc_score(label: Tensor, pred: Tensor) -> Tensor:
    """How probable a positive example has the higher prediction than a negative one; equal ones count half."""
    positive = label.reshape(-1) != 0
    pred = pred.reshape(-1).double()
    levels = pred.sort().values
    below, upto = (tg.searchsorted(levels, pred, right=right) for right in (False, True))
    ranks = (below + upto + 1) / 2.0
    n = positive.sum()
    area = ranks[positive].sum() - n * (n + 1) / 2
    return (area / (n * (len(pred) - n))).float().reshape(1)


def trunc_divide(input: Tensor, other: Any) -> Tensor:
    """The quotient without its fraction."""
    return tg.div(input, other, rounding_mode="trunc")


def bias_add(x: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """bias added along a dimension."""
    return x + bias.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])


def reshape_like(input: Tensor, like: Tensor) -> Tensor:
    """The elements in the shape of like."""
    return input.reshape(like.shape)


def reduce_sum_like(input: Tensor, like: Tensor, axis: Sequence[int]) -> Tensor:
    """Sums over dimensions, in the shape of like."""
    return input.sum(tuple(axis)).reshape(like.shape) if len(axis) else input


def gelu_with_approximate(x: Tensor, approximate: str = "none") -> Tensor:
    """gelu, exact or with tanh."""
    return functional.gelu(x, approximate=approximate)


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Any = None, *, addend: Any = None
) -> Tensor:
    """dropout with a random stream of its own, plus addend."""
    result = (
        functional.dropout(input, p, training, inplace) if generator is None else _dropped(input, p, training, generator)
    )
    return result if addend is None else result + addend


def _dropped(x: Tensor, p: float, training: bool, generator: Any) -> Tensor:
    if not training or p == 0:
        return x
    kept = tg.empty_like(x).bernoulli_(1 - p, generator=generator)
    return x * kept if p == 1 else x * kept / (1 - p)


def one_hot(input: Tensor, num_classes: int = -1, on_value: float = 1, off_value: float = 0) -> Tensor:
    """on_value where a class is meant, off_value elsewhere; floating-point if one of them is."""
    chosen = functional.one_hot(input, num_classes)
    if (on_value, off_value) == (1, 0):
        return chosen if isinstance(on_value, int) and isinstance(off_value, int) else chosen.float()
    return tg.where(chosen.bool(), on_value, off_value)


def ctc_greedy_decoder(log_probs: Tensor, input_lengths: Tensor, merge_repeated: bool = True) -> tuple[Tensor, Tensor]:
    """The most probable class at each time, without blanks (the last class) and repetitions, and their -sum of log_probs."""
    time, batch, classes = log_probs.shape
    values, best = log_probs.max(2)
    within = tg.arange(time)[:, None] < input_lengths
    said = within & (best != classes - 1)
    if merge_repeated:
        said[1:] &= best[1:] != best[:-1]
    decoded = tg.zeros(batch, time, dtype=input_lengths.dtype)
    for b in range(batch):
        found = best[said[:, b], b]
        decoded[b, : len(found)] = found.to(decoded.dtype)
    return decoded, -(values * within).sum(0)[:, None]


def combined_margin_loss(x: Tensor, label: Tensor, m1: float, m2: float, m3: float) -> Tensor:
    """The cosines x, with ``cos(m1 * t + m2) - m3`` in place of ``cos(t)`` for the class that label names."""
    chosen = functional.one_hot(label.long(), x.shape[1]).bool()
    if m1 == 1.0 and m2 == 0.0:
        return tg.where(chosen, x - m3, x)
    return tg.where(chosen, (tg.where(chosen, x, 0.0).acos() * m1 + m2).cos() - m3, x)


def rms_layer_norm(hidden_states: Tensor, weight: Tensor, variance_epsilon: float = 1e-6) -> Tensor:
    """The rows over the root of their mean square, computed in float32, times weight."""
    scale = (hidden_states.float().square().mean(-1, keepdim=True) + variance_epsilon).rsqrt()
    return weight * (hidden_states * scale).to(weight.dtype)


def square_relu(input: Tensor) -> Tensor:
    """``relu(input) ** 2``."""
    return input.relu().square()


class Generator(tg.Generator):
    """A random stream; the device "auto" is the CPU."""

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__("cpu" if device in ("auto", None) else device)


def matmul(input: Tensor, other: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0) -> Tensor:
    """The product of matrices, transposed first where that is said, times alpha."""
    product = tg.matmul(input.mT if transpose_a else input, other.mT if transpose_b else other)
    return product if alpha == 1.0 else product * alpha


def fused_matmul_bias(
    x: Tensor, weight: Tensor, bias: Tensor, _add_to_output: Any = None, alpha: float = 1.0, beta: float = 1.0
) -> Tensor:
    """``alpha * x @ weight.T + bias``, plus beta times what is to be added."""
    result = alpha * functional.linear(x, weight) + bias
    return result if _add_to_output is None else result + beta * _add_to_output


def fused_mlp(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], skip_final_activation: bool) -> Tensor:
    """Linear layers, each followed by relu; the last one only if it is not to be skipped."""
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True), 1):
        x = functional.linear(x, weight, bias)
        if i < len(weights) or not skip_final_activation:
            x = x.relu()
    return x

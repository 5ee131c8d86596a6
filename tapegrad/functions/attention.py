"""Attention, and the bilinear form: the public functions of the records in `table.attention`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from ..core.record import fixed
from ..core.vjp import fixed_like
from ..core.warning import warn
from ..dtypes import HALF
from ..kernels.shape import shape_of
from ..table.attention import _attend_to
from . import casting, create, shape
from .activation import softmax
from .arguments import with_grad_fn_name
from .dropout import dropout
from .einsum import einsum
from .index import repeat_interleave
from .joining import cat, chunk
from .linalg import linear, matmul
from .operands import floating, of_one_dtype, tensor, to_dtype
from .reduce import amax, mean

F32 = np.dtype(np.float32)

# --------------------------------------------------------------------------------------------------- public functions


def _check_attention(q: Any, k: Any, v: Any, mask: Any, is_causal: bool) -> None:
    dtype = q._d.dtype
    if k._d.dtype != dtype or v._d.dtype != dtype:
        kinds = [errors.dtype_name(t._d.dtype).lower() for t in (q, k, v)]
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{kinds[0]} key.dtype: {kinds[1]} and value.dtype: {kinds[2]} instead."
        )
    ranks = [len(shape_of(t)) for t in (q, k, v)]
    if min(ranks) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{ranks[0]} key.dim: {ranks[1]} and value.dim: {ranks[2]} instead."
        )
    if mask is None:
        return
    kind = mask._d.dtype
    if kind.kind != "b" and kind not in (F32, dtype):
        name = {"int64": "long int"}.get(kind.name, errors.dtype_name(kind).lower())
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{name} and  query.dtype: {errors.dtype_name(dtype).lower()} instead."
        )
    if is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")


def _closing(mask: Any, true: float, false: float, dtype: Any) -> Any:
    """One of two numbers for each element of a bool mask."""
    return TABLE["where"].call(mask, fixed(np.array(true, dtype)), false)


def _repeated(q: Any, x: Any) -> Any:
    """Heads of a key or value shared by several heads of the query."""
    return repeat_interleave(x, shape_of(q)[-3] // shape_of(x)[-3], -3)


@with_grad_fn_name("UnsafeViewBackward0")
@casting.in_16_bits
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value, for each batch and head.

    Rows that the mask closes wholly give 0, and get gradient 0.

    Args:
        query: (..., H, L, E).
        key: (..., H, S, E).
        value: (..., H, S, V).
        attn_mask: bool (true: attend) or of query's dtype (added), broadcast to (..., L, S).
        dropout_p: probability with which weights are dropped (whether training or not).
        is_causal: position i attends to the positions up to i.
        scale: 1 / sqrt(E) by default.
        enable_gqa: key and value may have fewer heads, of which several of the query's share one.

    Returns:
        A tensor (..., H, L, V).

    Raises:
        RuntimeError: for dtypes or shapes that do not fit, or a mask together with is_causal.

    Example:
        >>> q = k = tg.zeros(1, 1, 3, 2)  # all weights equal
        >>> v = tg.tensor([1.0, 3.0, 8.0]).reshape(1, 1, 3, 1)
        >>> tg.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).flatten()
        tensor([1., 2., 4.])
    """
    q, k, v = floating(query, "softmax_lastdim_kernel_impl"), tensor(key), tensor(value)
    mask = None if attn_mask is None else tensor(attn_mask)
    _check_attention(q, k, v, mask, is_causal)
    half = q._d.dtype
    if half in HALF:  # weights kept in 16 bits would spoil the gradient: it is a difference of nearly equal numbers
        q, k, v = (to_dtype(t, F32) for t in (q, k, v))
        mask = to_dtype(mask, F32) if mask is not None and mask._d.dtype == half else mask
        wide = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal, scale, enable_gqa)
        return to_dtype(wide, half)
    if enable_gqa:
        if shape_of(q)[-3] % shape_of(k)[-3] or shape_of(q)[-3] % shape_of(v)[-3]:
            raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
        k, v = _repeated(q, k), _repeated(q, v)
    size = shape_of(q)[-1]
    factor = (1.0 / math.sqrt(size) if size else 1.0) if scale is None else scale
    if is_causal:
        mask = fixed_like(np.tri(shape_of(q)[-2], shape_of(k)[-2], dtype=bool), q)
    if mask is not None and mask._d.dtype.kind == "b":
        mask = _closing(mask, 0.0, -math.inf, q._d.dtype)
    out, weights = _attend_to([q * factor, k, v, 0.0 if mask is None else mask])
    if not dropout_p:
        return out
    return matmul(dropout(TABLE["contiguous"].call(TABLE["mT"].call(weights)), dropout_p), v)


@casting.as_given
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1 @ weight[k] @ input2 + bias[k] for each k.

    Args:
        input1: (..., I).
        input2: (..., J).
        weight: (K, I, J).
        bias: (K,) or None.

    Returns:
        A tensor (..., K).

    Raises:
        RuntimeError: for shapes that do not fit.

    Example:
        >>> a, b, w = tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]), tg.eye(2).reshape(1, 2, 2)
        >>> tg.nn.functional.bilinear(a, b, w)  # a @ b
        tensor([11.])
    """
    a, b, w = tensor(input1), tensor(input2), tensor(weight)
    of_one_dtype("All tensors must have the same dtype, but got", a, b, w, *([] if bias is None else [tensor(bias)]))
    x, y, sizes = shape_of(a), shape_of(b), shape_of(w)
    if len(x) != len(y):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(x)} and {len(y)}")
    for d, (m, n) in enumerate(zip(x[:-1], y[:-1], strict=True)):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {d}: got {m} and {n}")
    for i, (given, n) in enumerate(zip((x[-1], y[-1]), sizes[1:], strict=True)):
        if given != n:
            raise RuntimeError(f"bilinear(): input{i + 1} size does not match weight size: got {given} but expected {n}")
    if bias is not None and shape_of(tensor(bias))[0] != sizes[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {shape_of(tensor(bias))[0]} but expected {sizes[0]}"
        )
    result = einsum("...i,kij,...j->...k", a, w, b)
    return result if bias is None else result + bias


# -------------------------------------------------------------------------------------------------- multi-head attention


def _check_heads(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> bool:
    """Whether the inputs have a batch dimension."""
    rank = len(shape_of(query))
    if rank not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    ranks = [len(shape_of(key)), len(shape_of(value))]
    if ranks != [rank, rank]:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {ranks[0]}-D and {ranks[1]}-D tensors "
            "respectively"
        )
    if padding is not None and len(shape_of(padding)) != rank - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{len(shape_of(padding))}-D tensor instead"
        )
    if mask is not None:
        sizes = shape_of(mask)
        if len(sizes) not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {len(sizes)}-D tensor instead"
            )
        expected = (heads, shape_of(query)[0], shape_of(key)[0])
        if rank == 2 and len(sizes) == 3 and sizes != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {errors.size(sizes)}")
    return rank == 3


def _added_mask(mask: Any, name: str, dtype: Any) -> Any:
    """A mask to add: -inf where a bool one is true."""
    if mask is None:
        return None
    kind = mask._d.dtype.kind
    if kind not in "bfV":
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask if kind != "b" else _closing(mask, -math.inf, 0.0, dtype)


def added_masks(padding: Any, mask: Any, names: tuple[str, str], dtype: Any) -> tuple[Any, Any]:
    """Both masks to add; a warning, by their names, where only one of them is bool."""
    padding, mask = (None if t is None else tensor(t) for t in (padding, mask))
    if padding is not None and mask is not None and padding._d.dtype != mask._d.dtype:
        warn(f"Support for mismatched {names[0]} and {names[1]} is deprecated. Use same type for both instead.")
    return _added_mask(padding, names[0], dtype), _added_mask(mask, names[1], dtype)


def _projected(
    xs: list[Any], alike: tuple[bool, bool], weight: Any, weights: Sequence[Any], bias: Any, separate: bool
) -> Any:
    """Query, key and value through linear maps, given as one weight or as three; `alike`: key is query, value is key."""
    if separate:
        for x, w, of in zip(xs, weights, ("query", "key", "value"), strict=True):
            if w is None:
                raise AssertionError(f"use_separate_proj_weight is True but {of[0]}_proj_weight is None")
            expected = shape_of(xs[0])[-1], shape_of(x)[-1]
            if shape_of(w) != expected:
                raise AssertionError(f"expecting {of} weights shape of {expected}, but got {errors.size(shape_of(w))}")
    elif weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    elif alike[0] and alike[1]:
        return chunk(linear(xs[0], weight, bias), 3, -1)
    parts = weights if separate else chunk(weight, 3, 0)
    biases = (None,) * 3 if bias is None else chunk(bias, 3, 0)
    return [linear(x, w, b) for x, w, b in zip(xs, parts, biases, strict=True)]


def _more_positions(mask: Any) -> Any:
    """A mask for one position more, which is open."""
    if mask is None:
        return None
    return cat([mask, create.zeros(*shape_of(mask)[:-1], 1, dtype=mask.dtype, device=mask.device)], -1)


def _static(given: Any, name: str, heads: int, size: int) -> Any:
    x = tensor(given)
    for at, expected in ((0, heads), (2, size)):
        if shape_of(x)[at] != expected:
            raise AssertionError(f"expecting {name}.size({at}) of {expected}, but got {shape_of(x)[at]}")
    return x


def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any,
    training: bool = True, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Attention by num_heads heads between linear maps (Vaswani et al. 2017); nn.MultiheadAttention calls it.

    Args:
        query: (L, N, E) or (L, E); the output has its shape.
        key, value: (S, N, ..) or (S, ..).
        embed_dim_to_check: E.
        num_heads: number of heads, which divides E.
        in_proj_weight, in_proj_bias: (3 E, E) and (3 E,): the maps of query, key and value.
        bias_k, bias_v: (1, 1, E): a position more for key and value; or None.
        add_zero_attn: one more position, of zeros.
        dropout_p: probability with which weights are dropped, if training.
        out_proj_weight, out_proj_bias: (E, E) and (E,): the map of the heads' results.
        training: whether weights are dropped.
        key_padding_mask: (N, S), positions that are closed (bool), or what is added.
        need_weights: return the weights, (N, L, S) averaged over the heads, or (N, num_heads, L, S).
        attn_mask: (L, S) or (N * num_heads, L, S), likewise.
        use_separate_proj_weight: take q_proj_weight, k_proj_weight and v_proj_weight.
        static_k, static_v: keys and values of (N * num_heads, S, E / num_heads) in place of the mapped ones.
        average_attn_weights: whether the returned weights are averaged over the heads.
        is_causal: a hint that attn_mask is causal.

    Returns:
        (output, weights), the weights None unless need_weights.

    Raises:
        AssertionError, RuntimeError: for shapes that do not fit.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> x, maps = tg.randn(5, 1, 4), (tg.randn(12, 4), tg.zeros(12))
        >>> y, w = tg.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 4, 2, *maps, None, None, False, 0.0, tg.eye(4), tg.zeros(4)
        ... )
        >>> y.shape, w.shape, tg.allclose(w.sum(-1), tg.ones(1, 5))
        (torch.Size([5, 1, 4]), torch.Size([1, 5, 5]), True)
    """
    alike = key is query, value is key
    query, key, value = (tensor(t) for t in (query, key, value))
    padding, mask = (None if t is None else tensor(t) for t in (key_padding_mask, attn_mask))
    batched = _check_heads(query, key, value, padding, mask, num_heads)
    if not batched:
        query, key, value = (shape.unsqueeze(t, 1) for t in (query, key, value))
        padding = None if padding is None else shape.unsqueeze(padding, 0)
    length, batch, width = shape_of(query)
    size, heads = width // num_heads, batch * num_heads
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    causal = is_causal and padding is None and not need_weights  # the hint is taken at its word
    mask = None if causal else mask
    padding, mask = added_masks(padding, mask, ("key_padding_mask", "attn_mask"), query._d.dtype)
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if size * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight and shape_of(key)[:2] != shape_of(value)[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {errors.size(shape_of(key)[:2])} do not match value's "
            f"{errors.size(shape_of(value)[:2])}"
        )
    if not use_separate_proj_weight and shape_of(key) != shape_of(value):
        raise AssertionError(
            f"key shape {errors.size(shape_of(key))} does not match value shape {errors.size(shape_of(value))}"
        )
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _projected([query, key, value], alike, in_proj_weight, weights, in_proj_bias, use_separate_proj_weight)
    if mask is not None:
        sizes = shape_of(mask)
        expected = (length, shape_of(key)[0]) if len(sizes) == 2 else (heads, length, shape_of(key)[0])
        if sizes != expected:
            raise RuntimeError(
                f"The shape of the {len(sizes)}D attn_mask is {errors.size(sizes)}, but should be {expected}."
            )
        mask = mask if len(sizes) == 2 else shape.reshape(mask, (batch, num_heads, *sizes[1:]))
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_v", "bias_k") if bias_k is None else ("bias_k", "bias_v")
        raise AssertionError(f"{given} is set but {missing} is None")
    if bias_k is not None:
        for name, fixed in (("key", static_k), ("value", static_v)):
            if fixed is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        k, v = (cat([t, shape.broadcast_to(tensor(b), (1, batch, width))], 0) for t, b in ((k, bias_k), (v, bias_v)))
        mask, padding = _more_positions(mask), _more_positions(padding)

    def by_head(x: Any) -> Any:
        return shape.permute(shape.reshape(x, (shape_of(x)[0], batch, num_heads, size)), (1, 2, 0, 3))

    def fixed_by_head(x: Any, name: str) -> Any:
        x = _static(x, name, heads, size)
        return shape.reshape(x, (batch, num_heads, *shape_of(x)[1:]))

    q = by_head(q)
    k = by_head(k) if static_k is None else fixed_by_head(static_k, "static_k")
    v = by_head(v) if static_v is None else fixed_by_head(static_v, "static_v")
    if add_zero_attn:
        k, v = (cat([t, create.zeros(batch, num_heads, 1, size, dtype=t.dtype, device=t.device)], 2) for t in (k, v))
        mask, padding = _more_positions(mask), _more_positions(padding)
    positions = shape_of(k)[2]
    if padding is not None:
        for d, expected_size in enumerate((batch, positions)):
            if shape_of(padding)[d] != expected_size:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{d}] to be {expected_size}, but got {shape_of(padding)[d]}"
                )
        closed = shape.reshape(padding, (batch, 1, 1, positions))
        mask = closed if mask is None else mask + closed
    attended, used = _attend(q, k, v, mask, dropout_p if training else 0.0, causal, need_weights)
    joined = shape.reshape(shape.permute(attended, (2, 0, 1, 3)), (length, batch, width))
    output = linear(joined, out_proj_weight, out_proj_bias)
    if need_weights and average_attn_weights:
        used = mean(used, 1)
    if not batched:
        output = shape.squeeze(output, 1)
        used = shape.squeeze(used, 0) if need_weights else None
    return output, used


def _attend(q: Any, k: Any, v: Any, mask: Any, dropout_p: float, causal: bool, need_weights: bool) -> tuple[Any, Any]:
    """Attended values (N, heads, L, E / heads), and the weights where they are needed."""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, dropout_p, causal), None
    scores = matmul(q * math.sqrt(1.0 / shape_of(q)[-1]), TABLE["mT"].call(k))
    weights = dropout(softmax(scores, -1) if mask is None else _open_weights(scores + mask), dropout_p)
    return matmul(weights, v), weights


def _open_weights(scores: Any) -> Any:
    """softmax of rows; 0 in those that are wholly masked, as scaled_dot_product_attention has it."""
    if not shape_of(scores)[-1]:
        return softmax(scores, -1)
    closed = TABLE["eq"].call(amax(scores.detach(), -1, True), -math.inf)
    return TABLE["where"].call(closed, 0.0, softmax(scores, -1))

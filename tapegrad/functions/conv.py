"""Convolutions: three bilinear records, each the derivative of one trilinear form by one of its arguments.

The public functions of the records in `table.conv`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from .. import errors
from ..core.op import TABLE
from ..core.record import Box
from ..kernels.shape import shape_of
from ..table.conv import Sizes, _conv, _conv_bias, _conv_input, _conv_transpose_bias
from ..table.define import named
from . import casting
from .memory_format import in_format_of
from .operands import operand, tensor

# ------------------------------------------------------------------------------------------------------------ arguments


def integers(name: str, argument: str, value: Any) -> Sizes:
    """One integer, or a sequence of them."""
    try:
        return tuple([operator.index(v) for v in ((value,) if hasattr(value, "__index__") else value)])
    except TypeError:
        raise TypeError(f"{name}(): argument '{argument}' must be tuple of ints, not {type(value).__name__}") from None


def expanded(name: str, argument: str, value: Any, count: int) -> Sizes:
    """One integer for all dimensions, or one for each."""
    sizes = integers(name, argument, value)
    if len(sizes) not in (1, count):
        raise RuntimeError(
            f"expected {argument} to be a single integer value or a list of {count} values to match the convolution "
            f"dimensions, but got {argument}={list(sizes)}"
        )
    return sizes * count if len(sizes) == 1 else sizes


def tensors(name: str, **given: Any) -> list[Any]:
    """Arguments that must be tensors (or arrays)."""
    for i, (argument, t) in enumerate(given.items()):
        if not isinstance(operand(t, False), Box):
            raise TypeError(f"{name}(): argument '{argument}' (position {i + 1}) must be Tensor, not {type(t).__name__}")
    return [tensor(t) for t in given.values()]


def _check_dtypes(name: str, x: Any, w: Any, b: Any) -> None:
    if b is not None and b._d.dtype != x._d.dtype:
        a, c = (errors.c_name(t._d.dtype) for t in (x, b))
        raise RuntimeError(f"Input type ({a}) and bias type ({c}) should be the same")
    if x._d.dtype != w._d.dtype:
        a, c = (f"torch.{errors.dtype_name(t._d.dtype)}Tensor" for t in (x, w))
        raise RuntimeError(
            f"Input type ({a}) and weight type ({c}) should be the same or input should be a MKLDNN tensor and weight is a "
            "dense tensor"
        )
    if x._d.dtype.kind == "b":
        raise NotImplementedError(f"\"slow_{name}_cpu\" not implemented for 'Bool'")


def _check_channels(a: Sizes, c: Sizes, groups: int, transposed: bool) -> None:
    if c[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(c)} instead"
        )
    if c[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"[{list(c)}] instead"
        )
    wanted = c[0] if transposed else c[1] * groups
    if a[1] != wanted:
        given = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {given}, weight of size {list(c)}, expected input{list(a)} to have {wanted} channels, but got {a[1]} "
            "channels instead"
        )


def _check_bias(b: Any, w: Any, filters: int, transposed: bool) -> None:
    if b is not None and shape_of(b) != (filters,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(shape_of(w))}, expected bias to be "
            f"1-dimensional with {filters} elements, but got bias of size {list(shape_of(b))} instead"
        )


def _check_positive(groups: int, stride: Sizes, dilation: Sizes, **not_negative: Sizes) -> None:
    for argument, sizes in not_negative.items():
        if min(sizes) < 0:
            raise RuntimeError(f"negative {argument} is not supported")
    for argument, sizes in (("stride", stride), ("dilation", dilation), ("groups", (groups,))):
        if min(sizes) <= 0:
            raise RuntimeError(f"non-positive {argument} is not supported")


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def batched(name: str, x: Any, dims: int) -> Any:
    """The input with a batch dimension, for (C, *sizes) or (N, C, *sizes)."""
    shape = shape_of(x)
    if len(shape) == dims + 1:
        return TABLE["reshape"].call(x, (1, *shape))
    if len(shape) != dims + 2:
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(shape)}"
        )
    return x


def _like(result: Any, input: Any) -> Any:
    """The result without the batch dimension that the input did not have."""
    shape = shape_of(result)
    return result if len(shape) == len(shape_of(input)) else TABLE["reshape"].call(result, shape[1:])


def _run(plain: Any, biased: Any, x: Any, w: Any, b: Any, *params: Any) -> Any:
    return plain(x, w, *params) if b is None else biased(x, w, b, *params)


def _padded(name: str, padding: Any, sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Sizes, Sizes]:
    """Elements before the input, and sizes of the output."""
    reach = tuple([d * (k - 1) for k, d in zip(kernel, dilation, strict=True)])
    if padding == "same":
        if set(stride) != {1}:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        return tuple([r // 2 for r in reach]), sizes
    if isinstance(padding, str):
        if padding != "valid":
            raise RuntimeError(f"Invalid padding string: {padding!r}")
        padding = 0
    before = expanded(name, "padding", padding, len(sizes))
    if min(before) < 0:
        raise RuntimeError("negative padding is not supported")
    whole = [n + 2 * p for n, p in zip(sizes, before, strict=True)]
    if any(n <= r for n, r in zip(whole, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_by(whole)}). Kernel size: ({_by([r + 1 for r in reach])}). "
            "Kernel size can't be greater than actual input size"
        )
    return before, tuple([(n - r - 1) // s + 1 for n, r, s in zip(whole, reach, stride, strict=True)])


def _checked(name: str, dims: int, input: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any, Any]:
    """input, batched input, weight and bias (or None) as tensors."""
    if casting.OPEN:
        input, weight, bias = casting.lowered(input, weight, bias)
    x, w, *rest = tensors(name, input=input, weight=weight, **({} if bias is None else {"bias": bias}))
    b = rest[0] if rest else None
    whole = batched(name, x, dims)
    if prod(shape_of(w)[2:]) < 1:
        raise RuntimeError(f"{name}(): kernel sizes must be positive, but got weight of size {list(shape_of(w))}")
    return x, whole, w, b


SIZES = ("stride", "padding", "dilation")


def _settled(name: str, argument: str, value: Any) -> Any:
    """An argument for sizes as it can be a key: a number, a tuple of them, or a word."""
    if type(value) is int or isinstance(value, str):
        return value
    return operator.index(value) if hasattr(value, "__index__") else integers(name, argument, value)


@lru_cache(maxsize=1024)
def _geometry(
    name: str, x: Sizes, w: Sizes, stride: Any, padding: Any, dilation: Any, groups: int, dims: int
) -> tuple[Sizes, Sizes, Sizes, Sizes, int]:
    """Checked parameters of the records: sizes of the output, stride, elements before the input, dilation, groups."""
    stride, dilation = (_sizes_for(name, n, v, dims, w[2:]) for n, v in (("stride", stride), ("dilation", dilation)))
    _check_positive(groups, stride, dilation)
    _check_channels(x, w, groups, False)
    before, sizes = _padded(name, padding, x[2:], w[2:], stride, dilation)
    return sizes, stride, before, dilation, groups


def _convolution(dims: int) -> Callable[..., Any]:
    name = f"conv{dims}d"

    def conv(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        x, whole, w, b = _checked(name, dims, input, weight, bias)
        given = [_settled(name, n, v) for n, v in zip(SIZES, (stride, padding, dilation), strict=True)]
        geometry = _geometry(name, shape_of(whole), shape_of(w), *given, groups, dims)
        _check_bias(b, w, shape_of(w)[0], False)
        _check_dtypes(name, whole, w, b)
        result = _run(_conv, _conv_bias, whole, w, b, *geometry)
        if not shape_of(whole)[1]:  # PyTorch's result has no channels where the input has none
            result = TABLE["index"].call(result, (slice(None), slice(0, 0), Ellipsis))
        result = _like(result, x)
        return in_format_of(result, "ConvolutionBackward0", x, w) if dims > 1 else result

    return named(conv, name, f"""{dims}-D cross-correlation of input by weight, plus bias.

    Output [n, o, i] is the sum over c and k of weight[o, c, k] * input[n, c, i * stride + k * dilation], in each dimension.

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes.
        weight: (O, C / groups, *kernel), of input's dtype.
        bias: (O,), added to each output channel.
        stride: steps between windows; it and the following: one int, or one for each size.
        padding: zeros added on both sides, "valid" (none) or "same" (output sizes equal input sizes; stride 1 only).
        dilation: distance in the input between elements of a window.
        groups: number of groups of channels, each with its own part of weight.

    Returns:
        A tensor (N, O, *sizes) or (O, *sizes) with (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for
        each size.

    Raises:
        RuntimeError: for shapes, dtypes or sizes that do not fit.

    Example:
        >>> x = tg.tensor([1.0, 2.0, 4.0, 8.0]).reshape(1, {", ".join(["1"] * dims)}, 4)
        >>> w = tg.tensor([-1.0, 1.0]).reshape(1, {", ".join(["1"] * dims)}, 2)
        >>> tg.nn.functional.conv{dims}d(x, w)
        tensor({"[" * (dims + 2)}1., 2., 4.{"]" * (dims + 2)})
    """)  # fmt: skip


def _sizes_for(name: str, argument: str, value: Any, dims: int, kernel: Sizes) -> Sizes:
    """A size for each dimension of the kernel; PyTorch's error for a kernel of another rank."""
    return expanded(name, argument, (value,) * dims if hasattr(value, "__index__") else value, len(kernel))


SIDES = ("depth", "height", "width")


def _transposed(dims: int) -> Callable[..., Any]:
    name = f"conv_transpose{dims}d"

    def conv_transpose(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        x, whole, w, b = _checked(name, dims, input, weight, bias)
        kernel = shape_of(w)[2:]
        given = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
        stride, padding, output_padding, dilation = (_sizes_for(name, n, v, dims, kernel) for n, v in given.items())
        _check_positive(groups, stride, dilation, padding=padding, output_padding=output_padding)
        _check_channels(shape_of(whole), shape_of(w), groups, True)
        _check_bias(b, w, shape_of(w)[1] * groups, True)
        if any(o >= max(s, d) for o, s, d in zip(output_padding, stride, dilation, strict=True)):
            got = (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                + " ".join([f"{n}_{side}: {v}" for n, vs in got for side, v in zip(SIDES[-dims:], vs, strict=True)])
            )
        before = shape_of(whole)[2:]
        sizes = tuple([
            (n - 1) * s - 2 * p + d * (k - 1) + o + 1
            for n, s, p, d, k, o in zip(before, stride, padding, dilation, kernel, output_padding, strict=True)
        ])  # fmt: skip
        if min(sizes) < 0:
            raise RuntimeError(
                f"Given input size per channel: ({_by(before)}). Calculated output size per channel: ({_by(sizes)}). Output "
                "size is too small"
            )
        _check_dtypes(name, whole, w, b)
        result = _like(_run(_conv_input, _conv_transpose_bias, whole, w, b, sizes, stride, padding, dilation, groups), x)
        return in_format_of(result, "ConvolutionBackward0", x, w) if dims > 1 else result

    return named(conv_transpose, name, f"""{dims}-D transposed convolution: the derivative of conv{dims}d by its input.

    Each element of input adds itself times weight to the output, at windows `stride` apart.

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes.
        weight: (C, O / groups, *kernel), of input's dtype.
        bias: (O,), added to each output channel.
        stride: steps between windows of the output; it and the following: one int, or one for each size.
        padding: elements cut off on both sides of the output.
        output_padding: elements added at the end of each output dimension, to tell apart the sizes that conv{dims}d
            with this stride takes to the input's.
        groups: number of groups of channels, each with its own part of weight.
        dilation: distance in the output between elements of a window.

    Returns:
        A tensor (N, O, *sizes) or (O, *sizes) with
        (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1 for each size.

    Raises:
        RuntimeError: for shapes, dtypes or sizes that do not fit.

    Example:
        >>> x = tg.tensor([1.0, 2.0]).reshape(1, {", ".join(["1"] * dims)}, 2)
        >>> w = tg.tensor([1.0, 10.0, 100.0]).reshape(1, {", ".join(["1"] * dims)}, 3)
        >>> tg.nn.functional.conv_transpose{dims}d(x, w)
        tensor({"[" * (dims + 2)}  1.,  12., 120., 200.{"]" * (dims + 2)})
    """)  # fmt: skip


conv1d, conv2d, conv3d = (_convolution(dims) for dims in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed(dims) for dims in (1, 2, 3))

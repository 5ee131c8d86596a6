"""Pooling over windows of images (N, C, *sizes), and windows as columns (unfold, fold).

The public functions of the records in `table.pool`.
"""

from __future__ import annotations

import builtins
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from ..core.tape import next_slot
from ..core.vjp import fixed_like
from ..kernels.pool import Array, Sizes
from ..kernels.resample import adaptive_windows
from ..kernels.shape import shape_of
from ..programs.tracing import examined
from ..table.define import named
from ..table.pool import _best, _folded, _maximum, _positions, _unfolded
from . import casting, create, index, lookup
from .arguments import dim_within, with_grad_fn_name
from .conv import integers, tensors
from .grad_fn_names import set_grad_fn_name
from .memory_format import in_format_of
from .operands import to_dtype
from .resample import adaptive_mean, means

# ----------------------------------------------------------------------------------------------------------- arguments

COUNTS = {2: "two", 3: "three"}
OMITTED = {"stride": "either be omitted, a single int,", "dilation": "be either a single int,"}


def _expanded(name: str, argument: str, value: Any, dims: int) -> Sizes:
    sizes = integers(name, argument, value)
    if len(sizes) not in (1, dims):
        if dims == 1:
            if name == "max_pool1d":
                raise RuntimeError(
                    f"{name}() {argument} must be an int, list of ints or tuple of ints of size 1 but got size {len(sizes)}"
                )
            raise RuntimeError(f"{name}() argument '{argument}' should contain one int (got {len(sizes)})")
        how = OMITTED.get(argument, "either be a single int,")
        raise RuntimeError(f"{name}: {argument} must {how} or a tuple of {COUNTS[dims]} ints")
    return sizes * dims if len(sizes) == 1 else sizes


def _stride(name: str, stride: Any, kernel: Sizes) -> Sizes:
    omitted = stride is None or (not hasattr(stride, "__index__") and not len(stride))
    return kernel if omitted else _expanded(name, "stride", stride, len(kernel))


def _check_numbers(name: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
    if name == "max_pool1d":
        for argument, sizes in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
            if sizes[0] <= 0:
                raise RuntimeError(f"{name}() {argument} must be greater than zero, but got {sizes[0]}")
        if padding[0] < 0:
            raise RuntimeError(f"{name}() padding must be non-negative, but got {padding[0]}")
        if padding[0] > ((kernel[0] - 1) * dilation[0] + 1) // 2:
            raise RuntimeError(
                f"{name}() padding should be at most half of kernel size, but got padding={padding[0]} and "
                f"kernel_size={kernel[0]}"
            )
        return
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    if builtins.min(dilation) <= 0:
        named_sizes = " ".join([f"dilation{c}: {d}" for c, d in zip("THW"[-len(dilation) :], dilation, strict=True)])
        raise RuntimeError(f"dilation should be greater than zero, but got {named_sizes}")
    for argument, sizes in (("kernel size", kernel), ("stride", stride)):
        if builtins.min(sizes) <= 0:
            raise RuntimeError(f"{argument} should be greater than zero, but got {list(sizes)}")
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
            )


def _refused(name: str, x: Any, kinds: str) -> None:
    if x._d.dtype.kind in kinds:
        got = errors.dtype_name(x._d.dtype)
        raise NotImplementedError(f"\"{name}\" not implemented for '{got}'")


def _check_rank(name: str, x: Any, dims: int) -> None:
    """(C, *sizes) or (N, C, *sizes), empty at most in N."""
    shape = shape_of(x)
    if len(shape) not in (dims + 1, dims + 2):
        if name in ("avg_pool2d", "lp_pool2d"):
            dim_within(-3, len(shape))  # what PyTorch looks at first
        if name in ("avg_pool1d", "lp_pool1d"):
            raise _not_of_one_dim("avg_pool1d", shape)
        if dims > 1 and name not in ("avg_pool2d", "lp_pool2d"):
            raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    if len(shape) not in (dims + 1, dims + 2) or 0 in shape[-dims - 1 :]:
        prefix = "max_pool1d: " if name == "max_pool1d" else ""
        raise RuntimeError(
            f"{prefix}Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(shape)}"
        )


def _sizes(name: str, x: Any, ceil: bool, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """Sizes of the output. With ceil the last window may reach over the end, but not begin there."""
    before, result = shape_of(x)[-len(kernel) :], []
    for n, k, s, p, d in zip(before, kernel, stride, padding, dilation, strict=True):
        m = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil else 0)) // s + 1
        result.append(m - 1 if ceil and (m - 1) * s >= n + p else m)
    if builtins.min(result) < 1:
        if name == "max_pool1d":
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {result[0]}")
        one = (1,) if len(kernel) == 1 else ()
        shapes = [(shape_of(x)[-len(kernel) - 1], *one, *s) for s in (before, result)]
        given, got = ("x".join(map(str, s)) for s in shapes)
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({got}). Output size is too small")
    return tuple(result)


# ---------------------------------------------------------------------------------------------------- maxima and means


MAX_POOL_NODES = {1: "SqueezeBackward1", 2: "MaxPool2DWithIndicesBackward0", 3: "MaxPool3DWithIndicesBackward0"}


def _ones(dims: int) -> str:
    """The sizes before the last one, in examples."""
    return "1, " * (dims - 1)


def _pairs(dims: int) -> str:
    """Windows of two elements of a line, in examples."""
    return f"({_ones(dims)}2)" if dims > 1 else "2"


def _max_pooling(dims: int) -> Callable[..., Any]:
    name = f"max_pool{dims}d"

    def max_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        (x,) = tensors(name, input=input)
        kernel = _expanded(name, "kernel_size", kernel_size, dims)
        windows = (
            kernel, _stride(name, stride, kernel), _expanded(name, "padding", padding, dims),
            _expanded(name, "dilation", dilation, dims),
        )  # fmt: skip
        _check_numbers(name, *windows)
        _check_rank(name, x, dims)
        sizes = _sizes(name, x, ceil_mode, *windows)
        _refused(name, x, "bc")
        y = set_grad_fn_name(MAX_POOL_NODES[dims], _maximum(x, sizes, *windows))
        if not return_indices:
            return in_format_of(y, MAX_POOL_NODES[dims], x)
        positions = _positions(x.detach(), y.detach(), sizes, *windows)
        return in_format_of(y, MAX_POOL_NODES[dims], x), in_format_of(positions, "", x)

    return named(max_pool, name, f"""Maxima over windows of (N, C, *sizes) or (C, *sizes), {dims}-D.

    The gradient goes to the maximum, the first one of equal ones.

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes, not bool or complex.
        kernel_size: sizes of a window; it and the following: one int, or one for each size.
        stride: steps between windows; the kernel size by default.
        padding: elements, none of which is ever the maximum, added on both sides; at most half the kernel size.
        dilation: distance between elements of a window.
        ceil_mode: keep a last window that reaches over the end.
        return_indices: also give the maxima's positions in the flat image, as int64.

    Returns:
        A tensor of input's dtype, or (maxima, positions).

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> x = tg.tensor([1.0, 5.0, 2.0, 3.0]).reshape(1, {_ones(dims)}4).requires_grad_()
        >>> tg.nn.functional.max_pool{dims}d(x, {_pairs(dims)}).sum().backward()
        >>> x.grad.flatten()
        tensor([0., 1., 0., 1.])
    """)  # fmt: skip


max_pool1d, max_pool2d, max_pool3d = (_max_pooling(dims) for dims in (1, 2, 3))


def _with_indices(function: Callable[..., Any], arguments: str) -> Callable[..., Any]:
    signature, name = inspect.signature(function), function.__name__

    def with_indices(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        return function(**{**bound.arguments, "return_indices": True})

    with_indices.__signature__ = signature  # type: ignore[attr-defined]
    doc = f"""(maxima, their positions in the flat image): {name} with return_indices.

    The arguments are those of {name}; the positions are int64.

    Example:
        >>> x = tg.tensor([1.0, 5.0, 2.0, 3.0]).reshape(1, {_ones(int(name[-2]))}4)
        >>> maxima, positions = tg.nn.functional.{name}_with_indices(x, {arguments})
        >>> maxima.flatten(), positions.flatten()
        (tensor([5., 3.]), tensor([1, 3]))
    """
    return named(with_indices, f"{name}_with_indices", doc)


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _with_indices(f, _pairs(d)) for d, f in enumerate((max_pool1d, max_pool2d, max_pool3d), 1)
)


def _averaged(
    name: str, input: Any, dims: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool,
    divisor: int | None,
) -> Any:  # fmt: skip
    (x,) = tensors(name, input=input)
    kernel = _expanded(name, "kernel_size", kernel_size, dims)
    steps, pads, ones = _stride(name, stride, kernel), _expanded(name, "padding", padding, dims), (1,) * dims
    _check_numbers(name, kernel, steps, pads, ones)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    _check_rank(name, x, dims)
    sizes = _sizes(name, x, ceil_mode, kernel, steps, pads, ones)
    dtype = x._d.dtype
    if dtype != np.int64:
        _refused(name, x, "biuc")
    x = to_dtype(x, np.dtype(np.float64)) if dtype.kind == "i" else x
    specs, counts = [], []
    for n, m, k, s, p in zip(shape_of(x)[-dims:], sizes, kernel, steps, pads, strict=True):
        specs.append(("window", n, m, k, s, p))
        counts.append(_window_sizes(n, m, k, s, p, include))
    if divisor:
        counts = [np.full(m, float(divisor) if d == 0 else 1.0) for d, m in enumerate(sizes)]
    y = means(x, specs, counts)
    y = in_format_of(y, "AvgPool2DBackward0", x) if dims == 2 else y
    return to_dtype(TABLE["trunc"].call(y), dtype) if dtype.kind == "i" else y


def _window_sizes(n: int, m: int, kernel: int, stride: int, padding: int, include: bool) -> Array:
    """Numbers of elements in the windows, with those of the pads if they count."""
    first = np.arange(m) * stride - padding
    if include:
        return np.asarray((first + kernel).clip(None, n + padding) - first)
    return np.asarray((first + kernel).clip(None, n) - first.clip(0, None))


@with_grad_fn_name("SqueezeBackward1", linked=True)
def avg_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Means over windows of (N, C, L) or (C, L).

    Args:
        input: (N, C, L) or (C, L), floating-point or int64.
        kernel_size, stride, padding, ceil_mode, count_include_pad: as for avg_pool2d, one int each.

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> x = tg.tensor([[1.0, 5.0, 2.0, 4.0]])
        >>> tg.nn.functional.avg_pool1d(x, 2)
        tensor([[3., 3.]])
        >>> tg.nn.functional.avg_pool1d(x, 2, stride=1, padding=1)
        tensor([[0.5000, 3.0000, 3.5000, 3.0000, 2.0000]])
    """
    return _averaged("avg_pool1d", input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@with_grad_fn_name("AvgPool2DBackward0", linked=True)
def avg_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Means over windows of (N, C, H, W) or (C, H, W).

    Args:
        input: (N, C, H, W) or (C, H, W), floating-point or int64.
        kernel_size: sizes of a window; it and the following: one int, or one for each size.
        stride: steps between windows; the kernel size by default.
        padding: zeros added on both sides; at most half the kernel size.
        ceil_mode: keep a last window that reaches over the end.
        count_include_pad: whether added zeros count as elements.
        divisor_override: what the sums are divided by, instead of the number of elements.

    Returns:
        A tensor of input's dtype.

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> tg.nn.functional.avg_pool2d(tg.arange(16.0).reshape(1, 4, 4), 2)
        tensor([[[ 2.5000,  4.5000],
                 [10.5000, 12.5000]]])
    """
    return _averaged("avg_pool2d", input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@with_grad_fn_name("AvgPool3DBackward0", linked=True)
@casting.in_float32
def avg_pool3d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Means over windows of (N, C, D, H, W) or (C, D, H, W).

    Args:
        input: (N, C, D, H, W) or (C, D, H, W), floating-point or int64.
        kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: as for avg_pool2d.

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> tg.nn.functional.avg_pool3d(tg.arange(8.0).reshape(1, 2, 2, 2), 2)
        tensor([[[[3.5000]]]])
    """
    return _averaged("avg_pool3d", input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _power_mean(name: str, input: Any, dims: int, p: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    (x,) = tensors(name, input=input)
    count = math.prod(_expanded(name, "kernel_size", kernel_size, dims))
    means = _averaged(name, x**p, dims, kernel_size, stride, 0, ceil_mode, True, None)
    # the power's derivative at 0 is infinite: 0 there, as for a norm
    zero = means == 0.0
    roots = (TABLE["where"].call(zero, 1.0, means) * float(count)) ** (1.0 / p)
    return set_grad_fn_name("PowBackward0", TABLE["where"].call(zero, 0.0, roots))


def _power_pooling(dims: int) -> Callable[..., Any]:
    name = f"lp_pool{dims}d"

    def lp_pool(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        return _power_mean(name, input, dims, norm_type, kernel_size, stride, ceil_mode)

    return named(lp_pool, name, f"""(sum of input**norm_type)**(1 / norm_type) over windows, {dims}-D.

    A window that reaches over the end (ceil_mode) is scaled up to a whole one. The derivative at a window of zeros is 0.

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes.
        norm_type: the power, not 0; the elements are taken without abs.
        kernel_size: sizes of a window; it and stride: one int, or one for each size.
        stride: steps between windows; the kernel size by default.
        ceil_mode: keep a last window that reaches over the end.

    Example:
        >>> x = tg.tensor([3.0, 4.0, 0.0, 1.0]).reshape(1, {_ones(dims)}4)
        >>> tg.nn.functional.lp_pool{dims}d(x, 2.0, {_pairs(dims)}).flatten()
        tensor([5., 1.])
    """)  # fmt: skip


lp_pool1d, lp_pool2d, lp_pool3d = (_power_pooling(dims) for dims in (1, 2, 3))

# ------------------------------------------------------------------------------------------- given numbers of windows


def _not_of_one_dim(name: str, shape: Sizes) -> RuntimeError:
    return RuntimeError(
        f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1 'self' (while checking "
        f"arguments for {name})"
    )


def _target(name: str, x: Any, output_size: Any, dims: int, mean: bool) -> Sizes:
    shape = shape_of(x)
    if len(shape) not in (dims + 1, dims + 2):
        if dims == 1:
            raise _not_of_one_dim(name, shape)
        colon = "" if mean else ":"
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(shape)}")
    before = shape[-dims:]
    given = output_size
    if dims > 1:
        given = (output_size,) * dims if output_size is None or hasattr(output_size, "__index__") else tuple(output_size)
        if len(given) != dims:
            how = f": output_size must be {dims}" if mean else f"(): internal error: output_size.size() must be {dims}"
            raise RuntimeError(name + how)
        given = [n if m is None else m for n, m in zip(before, given, strict=True)]
    sizes = _expanded(name, "output_size", given, dims)
    if builtins.min(sizes) < 0:
        wanted = ", ".join(map(str, sizes))
        if mean:
            raise RuntimeError(
                f"{name}: elements of output_size must be greater than or equal to 0 but received {{{wanted}}}"
            )
        raise errors.negative_size([*shape[:-dims], *sizes])
    first = 1 if dims == 3 or not mean else len(shape) - dims  # means of 1-D and 2-D may have no channels
    if 0 in shape[first:] and not (mean and set(sizes) == {1}):  # the mean of nothing is nan
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(shape)} "
            f"with dimension {first + shape[first:].index(0)} being empty"
        )
    _refused(name, x, "biuc")
    if math.prod((*shape[:-dims], *sizes)) > sys.maxsize // x._d.itemsize:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={[*shape[:-dims], *sizes]}. In {name}().")
    return sizes


def _adaptive_mean(dims: int) -> Callable[..., Any]:
    name = f"adaptive_avg_pool{dims}d"

    def adaptive_avg_pool(input: Any, output_size: Any) -> Any:
        (x,) = tensors(name, input=input)
        sizes = _target(name, x, output_size, dims, True)
        before = next_slot()
        y = adaptive_mean(x, sizes)
        y = in_format_of(y, "MeanBackward1", x) if dims == 2 else y
        if dims == 1:
            return set_grad_fn_name("SqueezeBackward1", y, linked=sizes != (1,))
        return y if set(sizes) == {1} else set_grad_fn_name(f"AdaptiveAvgPool{dims}DBackward0", y, before, linked=True)

    return named(adaptive_avg_pool, name, f"""Means over output_size windows that cover (N, C, *sizes) evenly, {dims}-D.

    Window i of m along a size n reaches from floor(i * n / m) to ceil((i + 1) * n / m).

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes, floating-point.
        output_size: numbers of windows: one int, or one for each size; None (in 2-D and 3-D) keeps the input's.

    Returns:
        A tensor (N, C, *output_size) or (C, *output_size).

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> x = tg.tensor([1.0, 5.0, 2.0, 4.0]).reshape(1, {_ones(dims)}4)
        >>> tg.nn.functional.adaptive_avg_pool{dims}d(x, {_pairs(dims)}).flatten()
        tensor([3., 3.])
    """)  # fmt: skip


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_mean(dims) for dims in (1, 2, 3))


def _of_windows(x: Any, indices: Sequence[Any]) -> tuple[Any, Any]:
    """Maxima of windows, and their places in the flat image.

    The windows are products of indices, each (.., windows, elements) along one of the last dimensions. Leading dimensions of
    the indices are those of x.
    """
    won = _best(x, lookup.with_arrays(indices))
    lead = shape_of(x)[: -len(indices)]
    line, positions = (TABLE["reshape"].call(t, (*lead, math.prod(t._d.shape[len(lead) :]))) for t in (x, won))
    maxima = TABLE["reshape"].call(index.gather(line, len(lead), positions), won._d.shape)
    return maxima, won


def _covering(n: int, m: int) -> Array:
    """Indices of adaptive windows, short ones filled with their last."""
    first, last = adaptive_windows(n, m)
    index = first[:, None] + np.arange(int((last - first).max(initial=1)))
    return np.asarray(np.minimum(index, last[:, None] - 1))


def _adaptive_maximum(dims: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{dims}d"

    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        (x,) = tensors(name, input=input)
        sizes = _target(name, x, output_size, dims, False)
        windows = [fixed_like(_covering(n, m), x) for n, m in zip(shape_of(x)[-dims:], sizes, strict=True)]
        before = next_slot()
        y, positions = _of_windows(x, windows)
        node = "SqueezeBackward1" if dims == 1 else f"AdaptiveMaxPool{dims}DBackward0"
        y = set_grad_fn_name(node, y, None if dims == 1 else before, linked=True)
        if dims == 2:
            y, positions = in_format_of(y, node, x), in_format_of(positions, "", x)
        return (y, positions) if return_indices else y

    return named(adaptive_max_pool, name, f"""Maxima over output_size windows that cover (N, C, *sizes) evenly, {dims}-D.

    Window i of m along a size n reaches from floor(i * n / m) to ceil((i + 1) * n / m). The gradient goes to the maximum,
    the first one of equal ones.

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes, floating-point.
        output_size: numbers of windows: one int, or one for each size; None (in 2-D and 3-D) keeps the input's.
        return_indices: also give the maxima's positions in the flat image, as int64.

    Returns:
        A tensor (N, C, *output_size) or (C, *output_size), or (maxima, positions).

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> x = tg.tensor([1.0, 5.0, 2.0, 4.0]).reshape(1, {_ones(dims)}4)
        >>> tg.nn.functional.adaptive_max_pool{dims}d(x, {_pairs(dims)}).flatten()
        tensor([5., 4.])
    """)  # fmt: skip


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_maximum(dims) for dims in (1, 2, 3))
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = (
    _with_indices(f, _pairs(d)) for d, f in enumerate((adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d), 1)
)


def _fractional_starts(sample: Any, n: int, m: int, kernel: int) -> Any:
    """Starts of m windows at pseudo-random distances (B. Graham, Fractional Max-Pooling, 2014), for samples in [0, 1)."""
    whole = np.dtype(np.int64)
    sample = sample[..., None]
    step = (n - kernel) / (m - 1) if m > 1 else 0.0
    i = fixed_like(np.arange(m, dtype=sample._d.dtype), sample)
    starts = to_dtype((i + sample) * step, whole) - to_dtype(sample * step, whole)
    return TABLE["where"].call(fixed_like(np.arange(m) == m - 1, sample), n - kernel, starts)


def _one_or_each(name: str, argument: str, value: Any, dims: int) -> Sizes:
    sizes = integers(name, argument, value)
    if not hasattr(value, "__index__") and len(sizes) != dims:
        raise RuntimeError(
            f"{name}: {argument} must either be a single Int or tuple of {'three ' * (dims == 3)}Ints; it has {len(sizes)}"
        )
    return sizes * (dims // len(sizes))


def _fractional(dims: int) -> Callable[..., Any]:
    name = f"fractional_max_pool{dims}d"
    sides = ("time", "height", "width")[-dims:]

    @with_grad_fn_name(f"FractionalMaxPool{dims}DBackward0")
    def fractional_max_pool(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        (x,) = tensors(name, input=input)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        shape = shape_of(x)
        if len(shape) not in (dims + 1, dims + 2):
            raise IndexError(f"{name}: Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(shape)}")
        kernel = _one_or_each(name, "kernel_size", kernel_size, dims)
        if output_size is None:
            ratios = (output_ratio,) * dims if isinstance(output_ratio, float) else tuple(output_ratio)
            output_size = [int(n * r) for n, r in zip(shape[-dims:], ratios, strict=True)]
        sizes = _one_or_each(name, "output_size", output_size, dims)
        if builtins.min(kernel) < 1:
            raise RuntimeError(f"{name}: kernel_size should be greater than zero, but got {list(kernel)}")
        lead = (*((1,) if len(shape) == dims + 1 else shape[:1]), shape[-dims - 1])
        samples = _samples(x, lead, dims, _random_samples)[: lead[0]].reshape(*shape[:-dims], dims)
        if 0 in shape[-dims - 1 :]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                f"dimension {len(shape) - dims - 1 + shape[-dims - 1 :].index(0)} being empty."
            )
        windows = []
        for k, (n, m, size, side) in enumerate(zip(shape[-dims:], sizes, kernel, sides, strict=True)):
            if m + size - 1 > n:
                raise RuntimeError(f"{name}(): pool {side} {size} too large relative to input {side} {n}")
            # samples stand in order of (width, height), but (time, height, width)
            starts = _fractional_starts(samples[..., 1 - k if dims == 2 else k], n, m, size)
            windows.append(starts[..., None] + fixed_like(np.arange(size), x))
        y, positions = _of_windows(x, windows)
        set_grad_fn_name(f"FractionalMaxPool{dims}DBackward0", y, linked=True)
        return (y, positions) if return_indices else y

    return named(fractional_max_pool, name, f"""Maxima over windows at pseudo-random positions (Graham 2014), {dims}-D.

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes.
        kernel_size: sizes of a window: one int, or one for each size.
        output_size: numbers of windows: one int, or one for each size.
        output_ratio: in place of output_size, that part of the input's sizes: a float, or one for each size.
        return_indices: also give the maxima's positions in the flat image, as int64.
        _random_samples: (N, C, {dims}) numbers in [0, 1) that choose the windows; drawn if None.

    Returns:
        A tensor (N, C, *output_size) or (C, *output_size), or (maxima, positions).

    Raises:
        ValueError: without output_size and output_ratio.
        IndexError, RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> x = tg.tensor([1.0, 5.0, 2.0, 4.0]).reshape(1, {_ones(dims)}4)
        >>> tg.nn.functional.fractional_max_pool{dims}d(x, {_pairs(dims)}, {_pairs(dims)}).flatten()
        tensor([5., 4.])
    """)  # fmt: skip


def _samples(x: Any, lead: Sizes, dims: int, given: Any) -> Any:
    if given is None:
        given = create.rand(*lead, dims, dtype=x.dtype, device=x.device)
    if given._d.dtype != x._d.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    sizes = shape_of(given)
    if len(sizes) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(sizes)}")
    if sizes[0] < lead[0]:
        raise RuntimeError(
            f"Expect _random_samples.size(0) no less then input batch size. It is {sizes[0]}, the batch size {lead[0]}."
        )
    if sizes[1] != lead[1]:
        raise RuntimeError(
            f"Expect _random_samples.size(1) equals to input channel size. It is {sizes[1]}, the channel size {lead[1]}."
        )
    if sizes[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {sizes[2]}.")
    if lookup.is_batched(given):
        raise given._d.level.need_loop()
    return given.detach()


fractional_max_pool2d, fractional_max_pool3d = (_fractional(dims) for dims in (2, 3))
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = (
    _with_indices(f, f"{_pairs(d)}, output_size={_pairs(d)}")
    for d, f in ((2, fractional_max_pool2d), (3, fractional_max_pool3d))
)

# --------------------------------------------------------------------------------------------------- maxima put back


def _unpooled_sizes(x: Any, kernel: Sizes, stride: Sizes, padding: Sizes, output_size: Any) -> Sizes:
    dims = len(kernel)
    before = shape_of(x)[-dims:]
    default = tuple([(n - 1) * s + k - 2 * p for n, k, s, p in zip(before, kernel, stride, padding, strict=True)])
    if output_size is None:
        return default
    sizes = tuple(output_size)
    if len(sizes) == dims + 2:
        sizes = sizes[2:]
    if len(sizes) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(sizes)}'"
        )
    for d, (m, n, s) in enumerate(zip(sizes, default, stride, strict=True)):
        if not n - s < m < n + s:
            raise ValueError(f'invalid output_size "{sizes}" (dim {d} must be between {n - s} and {n + s})')
    return tuple([int(m) for m in sizes])


def _unpooling(dims: int) -> Callable[..., Any]:
    name = f"max_unpool{dims}d"
    internal = f"max_unpooling{builtins.max(dims, 2)}d"

    def max_unpool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        x, positions = tensors(name, input=input, indices=indices)
        shape = shape_of(x)
        if positions._d.dtype != np.int64:
            raise RuntimeError(f"elements in indices should be type int64 but got: {errors.dtype_name(positions._d.dtype)}")
        if len(shape) not in (dims + 1, dims + 2):
            extra = 1 if dims == 1 else 0
            raise RuntimeError(
                f"Input to {internal} should be a {dims + 1 + extra}d or {dims + 2 + extra}d Tensor, but got a tensor "
                f"with {len(shape) + extra} dimensions."
            )
        if shape_of(positions) != shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
                f"with shape: {list(shape_of(positions))}"
            )
        if 0 in shape[-dims - 1 :]:
            raise RuntimeError(
                f"{internal}_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but got "
                f"{list(shape)} with dimension {len(shape) - dims - 1 + shape[-dims - 1 :].index(0)} being empty."
            )
        kernel = _expanded(name, "kernel_size", kernel_size, dims)
        pads = _expanded(name, "padding", padding, dims)
        sizes = _unpooled_sizes(x, kernel, _stride(name, stride, kernel), pads, output_size)
        size = math.prod(sizes)
        values = examined(positions)
        wrong = values[(values < 0) | (values >= size)]
        if wrong.size:
            volume = "x".join(map(str, sizes if dims > 1 else (*sizes, 1)))
            raise RuntimeError(f"Found an invalid max index: {wrong[0]} (output volumes are of size {volume})")
        before = next_slot()
        lead = math.prod(shape[:-dims])
        line = TABLE["reshape"].call(x, (x._d.size,))
        rows = TABLE["reshape"].call(positions, (lead, math.prod(shape[-dims:])))
        flat = TABLE["reshape"].call(rows + fixed_like(np.arange(lead)[:, None] * size, x), (x._d.size,))
        if lookup.is_batched(flat):
            put = lookup.write(create.zeros(lead * size, dtype=x.dtype, device=x.device), line, (flat,), "put")
        else:
            put = TABLE["write_zeros"].call(line, (lead * size,), lookup.with_arrays((flat,)))
        y = TABLE["reshape"].call(put, (*shape[:-dims], *sizes))
        node = "SqueezeBackward1" if dims == 1 else f"MaxUnpool{dims}DBackward0"
        y = set_grad_fn_name(node, y, None if dims == 1 else before)
        return in_format_of(y, node, x) if dims == 2 else y

    return named(max_unpool, name, f"""The maxima back at their places, other elements 0, {dims}-D.

    Args:
        input: (N, C, *sizes) or (C, *sizes) with {dims} sizes: maxima.
        indices: positions in the flat image, from max_pool{dims}d; of several values for one position the last stays.
        kernel_size, stride, padding: those of the pooling.
        output_size: sizes of the image, where the pooling's stride leaves them open.

    Returns:
        A tensor of input's dtype with (size - 1) * stride + kernel_size - 2 * padding for each size, or output_size.

    Raises:
        ValueError, RuntimeError: for sizes, shapes and indices that do not fit.

    Example:
        >>> x = tg.tensor([1.0, 5.0, 2.0, 3.0]).reshape(1, {_ones(dims)}4)
        >>> maxima, positions = tg.nn.functional.max_pool{dims}d(x, {_pairs(dims)}, return_indices=True)
        >>> tg.nn.functional.max_unpool{dims}d(maxima, positions, {_pairs(dims)}).flatten()
        tensor([0., 5., 0., 3.])
    """)  # fmt: skip


max_unpool1d, max_unpool2d, max_unpool3d = (_unpooling(dims) for dims in (1, 2, 3))

# ------------------------------------------------------------------------------------------------ windows as columns


def _blocks(name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Sizes, ...]:
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    sizes = {}
    for argument, value in given.items():
        sizes[argument] = integers(name, argument, value)
        if len(sizes[argument]) not in (1, 2):
            raise RuntimeError(f"It is expected {argument} equals to 2, but got size {len(sizes[argument])}")
        sizes[argument] *= 2 // len(sizes[argument])
        h, w = sizes[argument]
        shown, side = {"kernel_size": ("kernel size", "kernel"), "padding": ("padding", "pad")}.get(
            argument, (argument,) * 2
        )
        low = argument != "padding"
        if builtins.min(h, w) < low:
            wanted = "greater than zero" if low else "non-negative"
            raise RuntimeError(f"{shown} should be {wanted}, but got {side}_height: {h} {side}_width: {w}")
    return sizes["kernel_size"], sizes["stride"], sizes["padding"], sizes["dilation"]


def _block_counts(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    dims = zip(sizes, kernel, stride, padding, dilation, strict=True)
    return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in dims])


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Windows of (N, C, H, W) or (C, H, W) as columns: (N, C * elements of a window, number of windows).

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: sizes of a window; it and the following: one int, or a pair.
        dilation: distance between elements of a window.
        padding: zeros added on both sides.
        stride: steps between windows.

    Returns:
        A tensor (N, C * elements of a window, windows), or without N.

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> tg.nn.functional.unfold(tg.arange(6.0).reshape(1, 2, 3), 2)
        tensor([[0., 1.],
                [1., 2.],
                [3., 4.],
                [4., 5.]])
    """
    (x,) = tensors("unfold", input=input)
    shape = shape_of(x)
    windows = _blocks("unfold", kernel_size, dilation, padding, stride)
    if len(shape) < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got 2)")
    if len(shape) > 4 or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
            f"got: {list(shape)}"
        )
    kernel, _, pads, steps = windows
    counts = _block_counts(shape[-2:], *windows)
    if builtins.min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {shape[-2:]}, kernel_size={kernel}, dilation={steps}, padding={pads}, "
            f"calculated shape of the array of sliding blocks as {counts}, but its components must be at least one."
        )
    whole = TABLE["reshape"].call(x, (-1, *shape[-3:])) if len(shape) == 3 else x
    columns = _unfolded(whole, shape[-2:], counts, *windows)
    return columns if len(shape) == 4 else TABLE["reshape"].call(columns, shape_of(columns)[1:])


def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Columns (N, C * elements of a window, windows) added up at their places, (N, C, *output_size): unfold's transpose.

    Args:
        input: (N, C * elements of a window, windows), or without N.
        output_size: (H, W).
        kernel_size, dilation, padding, stride: those of unfold.

    Returns:
        A tensor (N, C, H, W), or without N.

    Raises:
        RuntimeError: for sizes and shapes that do not fit.

    Example:
        >>> columns = tg.nn.functional.unfold(tg.ones(1, 2, 3), 2)
        >>> tg.nn.functional.fold(columns, (2, 3), 2)  # in how many windows each element is
        tensor([[[1., 2., 1.],
                 [1., 2., 1.]]])
    """
    (x,) = tensors("fold", input=input)
    shape = shape_of(x)
    windows = _blocks("fold", kernel_size, dilation, padding, stride)
    sizes = integers("fold", "output_size", output_size)
    if len(sizes) not in (1, 2):
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(sizes)}")
    sizes *= 2 // len(sizes)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )
    kernel, steps, pads, spread = windows
    rows = len(shape) - 2
    if shape[-2] % math.prod(kernel):
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[rows]} and kernel_size={kernel}."
        )
    counts = _block_counts(sizes, *windows)
    if math.prod(counts) != shape[-1] or builtins.min(counts) < 1:
        raise RuntimeError(
            f"Given output_size={sizes}, kernel_size={kernel}, dilation={spread}, padding={pads}, stride={steps}, expected "
            f"size of input's dimension 2 to match the calculated number of sliding blocks {counts[0]} * {counts[1]} = "
            f"{math.prod(counts)}, but got input.size(2)={shape[-1]}."
        )
    whole = x if rows else TABLE["reshape"].call(x, (1, *shape))
    image = _folded(whole, sizes, counts, *windows)
    return image if rows else TABLE["reshape"].call(image, shape_of(image)[1:])

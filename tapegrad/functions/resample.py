"""Interpolation, padding and sampling of images (N, C, *sizes).

The public functions of the records in `table.resample`.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from ..core.record import Box, fixed, wrap
from ..core.tape import next_slot
from ..core.vjp import fixed_like
from ..core.warning import warn
from ..dtypes import is_floating
from ..kernels.numpy import quiet
from ..kernels.resample import Array, Spec, adaptive_windows, cubic_weights
from ..kernels.shape import shape_of
from ..programs.tracing import unless_traced
from . import casting, lookup
from .arguments import with_grad_fn_name
from .conv import integers, tensors
from .grad_fn_names import set_grad_fn_name
from .memory_format import in_format_of
from .operands import half_in_float32, tensor, to_dtype
from .shape import apart, constant_pad_nd, pad_widths

ALIGNMENT = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)

Sizes = tuple[int, ...]


def resample(x: Any, axis: int, *spec: Any) -> Any:
    return TABLE["resample"].call(x, axis, spec, False)


# -------------------------------------------------------------------------------------------------------------- padding


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """input with elements added around it, or taken away.

    Args:
        input: tensor of any dtype.
        pad: number of elements before and after, for the last dimension, then the last but one, and so on; negative numbers
            take elements away.
        mode: "constant" (default), "reflect" (without the edge), "replicate" (the edge) or "circular"; the last three pad
            the last 1 to 3 dimensions of an input with one or two dimensions more.
        value: what "constant" adds, 0 by default.

    Raises:
        RuntimeError: for an odd number of pads, more than there are dimensions, or pads that the mode cannot fill.
        NotImplementedError: for another mode, or one that does not pad so many dimensions.

    Example:
        >>> x = tg.tensor([[1.0, 2.0, 3.0]])
        >>> tg.nn.functional.pad(x, (1, 1))
        tensor([[0., 1., 2., 3., 0.]])
        >>> tg.nn.functional.pad(x, (2, 1), mode="reflect")
        tensor([[3., 2., 1., 2., 3., 2.]])
    """
    (x,) = tensors("pad", input=input)
    shape, given = shape_of(x), integers("pad", "pad", pad)
    if len(given) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(given) > 2 * len(shape):
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(given)} and input of dimension {len(shape)}"
        )
    if mode == "constant":
        return constant_pad_nd(x, given, 0 if value is None else value)
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if not 1 <= len(shape) - len(given) // 2 <= 2 or len(given) > 6:
        raise NotImplementedError(f"Padding size {len(given)} is not supported for {len(shape)}D input tensor.")
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    widths = pad_widths(given, len(shape))
    _check_fillable(mode, shape, widths)
    if casting.OPEN and casting.current() is not None:
        x = casting.cast(x, casting.F32)
    start = next_slot()
    for axis, (n, (before, after)) in enumerate(zip(shape, widths, strict=True)):
        if before or after:
            x = resample(x, axis, "beyond", n, n + before + after, before, mode)
    if x is input:
        x = TABLE["clone"].call(x)
    if widths:
        name = {"reflect": "ReflectionPad{}DBackward0", "replicate": "ReplicationPad{}DBackward0"}
        node = name.get(mode, "torch::autograd::CopySlices").format(len(given) // 2)
        set_grad_fn_name(node, x, start, linked=mode in name)
        if mode == "replicate" or (mode == "reflect" and len(given) == 6):
            return in_format_of(x, node, input)
    return x


def _check_fillable(mode: str, shape: Sizes, widths: Sequence[tuple[int, int]]) -> None:
    rank = sum(w != (0, 0) for w in widths)
    if mode != "circular" and 0 in shape[len(shape) > rank + 1 :]:
        raise RuntimeError(
            f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    for axis in range(len(shape) - 1, -1, -1):
        n, (b, a) = shape[axis], widths[axis]
        if mode == "circular":
            if b > n or a > n:
                raise errors.circular_padding()
            if n + b + a <= 0 and (b or a):
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
        elif mode == "reflect" and (b >= n or a >= n) and (b or a):
            number = 4 + 2 * (len(shape) - 1 - axis)
            raise RuntimeError(
                f"Argument #{number}: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({b}, {a}) at dimension {axis} of input {list(shape)}"
            )
        if n + b + a <= 0 and (b or a):
            side = "WHD"[len(shape) - 1 - axis]
            raise RuntimeError(f"input ({side}: {n}) is too small. Calculated output {side}: {n + b + a}")


# -------------------------------------------------------------------------------------------------------- interpolation

MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
CORNERED = ("linear", "bilinear", "bicubic", "trilinear")
NODES = {
    "nearest": "Nearest", "nearest-exact": "NearestExact", "linear": "Linear", "bilinear": "Bilinear", "bicubic": "Bicubic",
    "trilinear": "Trilinear",
}  # fmt: skip
RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def _target(x: Any, size: Any, scale_factor: Any, recompute: Any) -> tuple[Sizes, list[float | None]]:
    """Output sizes, and the scales where they were given and count."""
    sizes = shape_of(x)[2:]
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if isinstance(size, list | tuple) and len(size) != len(sizes):
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(sizes)} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "output size in (o1, o2, ...,oK) format."
            )
        target = integers("interpolate", "size", size)
        return target * (len(sizes) if len(target) == 1 else 1), [None] * len(sizes)
    if isinstance(scale_factor, list | tuple):
        if len(scale_factor) != len(sizes):
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(sizes)} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, "
                "C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
            )
        scales = [float(s) for s in scale_factor]
    else:
        scales = [float(scale_factor)] * len(sizes)
    target = tuple([math.floor(n * s) for n, s in zip(sizes, scales, strict=True)])
    return target, [None] * len(sizes) if recompute else list(scales)


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """The image (N, C, *sizes) resized to other sizes, or by factors.

    Args:
        input: float or uint8 tensor of 3 to 5 dimensions.
        size: output sizes, a number or one for each dimension.
        scale_factor: in place of size; a given value also sets the step between samples (unless recompute_scale_factor).
        mode: "nearest" (default), "nearest-exact", "linear" (1-D), "bilinear" and "bicubic" (2-D), "trilinear" (3-D) or
            "area".
        align_corners: whether the corner elements' centres, not the corners of the images, coincide; default False.
        recompute_scale_factor: whether the step follows from the sizes, in place of the given factor.
        antialias: widen the kernel where the image shrinks ("bilinear" and "bicubic").

    Returns:
        Tensor (N, C, *sizes) of input's dtype.

    Raises:
        ValueError, NotImplementedError, RuntimeError: for arguments that do not go together or sizes below 1.

    Example:
        >>> x = tg.tensor([[[0.0, 10.0]]])
        >>> tg.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
        tensor([[[ 0.,  5., 10.]]])
    """
    (x,) = tensors("interpolate", input=input)
    rank = len(shape_of(x))
    if align_corners is not None and mode not in CORNERED:
        raise ValueError(f"align_corners option can only be set with the interpolating modes: {' | '.join(CORNERED)}")
    known = mode in ("nearest", "nearest-exact", "area", *RANKS)
    if rank not in (3, 4, 5) or not known or (mode == "bicubic" and rank != 4):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: {MODES} (got {mode})"
        )
    sizes, scales = _target(x, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and rank == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if RANKS.get(mode, rank) != rank:
        raise NotImplementedError(f"Got {rank}D input, but {mode} mode needs {RANKS[mode]}D input")
    if mode == "area":
        y, node = adaptive_mean(x, sizes), f"AdaptiveAvgPool{rank - 2}DBackward0"
        if set(sizes) != {1}:
            y = set_grad_fn_name(node if rank > 3 else "SqueezeBackward1", y, linked=True)
        return in_format_of(y, node, x) if rank == 4 else y
    _check_image(x, sizes)
    before = next_slot()
    y = _interpolated(x, sizes, scales, mode, bool(align_corners), antialias)
    node = f"Upsample{NODES[mode]}{rank - 2}D{'Aa' * antialias}Backward0"
    return in_format_of(set_grad_fn_name(node, y, before), node, x)


@half_in_float32
def _interpolated(x: Any, sizes: Sizes, scales: Sequence[float | None], mode: str, align: bool, antialias: bool) -> Any:
    dtype = x._d.dtype
    rounds = dtype.kind in "iu" and not mode.startswith("nearest")
    if rounds:
        x = to_dtype(x, np.dtype(np.float32))
    for axis in range(len(sizes) + 1, 1, -1):
        n, m, scale = shape_of(x)[axis], sizes[axis - 2], scales[axis - 2]
        if mode.startswith("nearest"):
            x = resample(x, axis, "nearest", n, m, mode != "nearest", scale, dtype != np.float64)
        elif mode == "bicubic" and not antialias:
            x = resample(x, axis, "cubic", n, m, align, scale)
        elif n != m:  # a scale that leaves the size as it is changes nothing, as in PyTorch
            args = (align, scale, mode == "bicubic") if antialias else (align, scale)
            x = resample(x, axis, "smooth" if antialias else "linear", n, m, *args)
        if rounds:  # as PyTorch does between the dimensions, too
            x = TABLE["clamp"].call(TABLE["floor"].call(x + 0.5), 0, 255)
    return to_dtype(x, dtype) if rounds else x


def _check_image(x: Any, sizes: Sizes) -> None:
    shape = shape_of(x)
    dims = len(sizes)
    if builtins.min(*shape[2:], *sizes) <= 0:
        names = "DHW"[-dims:]
        given, wanted = (", ".join([f"{c}: {n}" for c, n in zip(names, s, strict=True)]) for s in (shape[2:], sizes))
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({given}) and output ({wanted})")
    if not shape[1]:
        raise RuntimeError(f"Non-empty {dims + 2}D data tensor expected but got a tensor with sizes {list(shape)}")
    if x._d.dtype.kind in "iub" and x._d.dtype != np.uint8:
        got = errors.dtype_name(x._d.dtype)
        raise NotImplementedError(f"\"compute_indices_weights\" not implemented for '{got}'")


@half_in_float32
def adaptive_mean(x: Any, sizes: Sizes) -> Any:
    """Means over windows that cover the last dimensions as evenly as possible."""
    before = shape_of(x)[-len(sizes) :]
    if set(sizes) == {1}:
        return TABLE["mean"].call(x, tuple(range(len(shape_of(x)) - len(sizes), len(shape_of(x)))), True)
    bounds = [adaptive_windows(n, m) for n, m in zip(before, sizes, strict=True)]
    specs = [("adaptive", n, m) for n, m in zip(before, sizes, strict=True)]
    return means(x, specs, [last - first for first, last in bounds])


@half_in_float32
def means(x: Any, specs: Sequence[Spec], counts: Sequence[Array]) -> Any:
    """Sums along the last dimensions over the products of counts, one array for each dimension."""
    start = len(shape_of(x)) - len(specs)
    for axis, spec in enumerate(specs, start):
        x = resample(x, axis, *spec)
    count: Any = functools.reduce(np.multiply.outer, counts)
    if not count.size or (count == count.flat[0]).all():
        return x / float(count.flat[0] if count.size else 1)
    return x / fixed_like(count.astype(x._d.dtype), x)


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """`interpolate` under its old name, with a warning.

    Args:
        input: float or uint8 tensor (N, C, *sizes).
        size: output sizes, a number or one for each dimension.
        scale_factor: in place of size.
        mode: as in `interpolate`, default "nearest".
        align_corners: whether the corner elements' centres, not the corners of the images, coincide; default False.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     y = tg.nn.functional.upsample(tg.tensor([[[0.0, 10.0]]]), scale_factor=2)
        >>> y
        tensor([[[ 0.,  0., 10., 10.]]])
    """
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """The image (N, C, *sizes) resized: `interpolate` with mode "nearest".

    Args:
        input: float or uint8 tensor of 3 to 5 dimensions.
        size: output sizes, a number or one for each dimension.
        scale_factor: in place of size.

    Example:
        >>> tg.nn.functional.upsample_nearest(tg.tensor([[[0.0, 10.0]]]), scale_factor=2)
        tensor([[[ 0.,  0., 10., 10.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """The image (N, C, H, W) resized: `interpolate` with mode "bilinear" and aligned corners.

    Args:
        input: float or uint8 tensor of 4 dimensions.
        size: output sizes, a number or one for each dimension.
        scale_factor: in place of size.

    Example:
        >>> tg.nn.functional.upsample_bilinear(tg.tensor([[[[0.0, 10.0]]]]), size=(1, 3))
        tensor([[[[ 0.,  5., 10.]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def _upsample_bilinear2d_aa(
    input: Any, output_size: Any, align_corners: bool, scales_h: float | None = None, scales_w: float | None = None, *,
    scale_factors: Any = None,
) -> Any:  # fmt: skip
    x = tensor(input)
    sizes, scales = _target(x, output_size, scale_factors, False)
    _check_image(x, sizes)
    given = [scales_h or scales[0], scales_w or scales[1]]
    return _interpolated(x, sizes, given, "bilinear", align_corners, True)


# ------------------------------------------------------------------------------------------------- sampling at a grid


def _unnormalized(position: Any, n: int, align_corners: bool) -> Any:
    """Positions in [-1, 1] as positions in [0, n - 1], or in [-0.5, n - 0.5] where corners of elements are meant."""
    return (position + 1.0) * (0.5 * (n - 1)) if align_corners else ((position + 1.0) * float(n) - 1.0) * 0.5


def _limited(position: Any, n: int) -> Any:
    """Positions moved to the nearest in [0, n - 1]; no gradient at the limits and beyond."""
    outside = TABLE["logical_or"].call(position <= 0.0, position >= float(n - 1))
    return TABLE["where"].call(outside, TABLE["clamp"].call(position.detach(), 0.0, float(n - 1)), position)


def _reflected(position: Any, n: int, align_corners: bool) -> Any:
    """Positions mirrored at the first and last element's centre, or outer edge."""
    low, span = (0.0, n - 1) if align_corners else (-0.5, n)
    if not span:
        return position * 0.0
    away = TABLE["abs"].call(position - low)
    turns = TABLE["floor"].call(away.detach() * (1.0 / span))
    rest = away - turns * float(span)
    odd = TABLE["remainder"].call(turns, 2.0) == 1.0
    return TABLE["where"].call(odd, float(span) - rest, rest) + low


def _moved_inside(position: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    if padding_mode == "zeros":
        return position
    return _limited(_reflected(position, n, align_corners) if padding_mode == "reflection" else position, n)


def _element(rows: Any, batch: Array, positions: Sequence[Array], sizes: Sequence[int], zeros: bool) -> Any:
    """The channels (P, C) of P elements, from rows (N * elements, C); 0 outside where `zeros`."""
    inside: Any = True
    index: Any = fixed_like(batch, rows) if isinstance(positions[0], Box) else batch
    for position, n in zip(positions, sizes, strict=True):
        inside = inside & (position >= 0) & (position < n)
        index = index * n + position.clip(0, n - 1)
    if isinstance(index, Box):
        varies = lookup.is_batched(index)
        values = lookup.read(rows, (index,)) if varies else TABLE["index"].call(rows, lookup.with_arrays((index,)))
        inside = TABLE["reshape"].call(inside, (*inside._d.shape, 1))
        return TABLE["where"].call(inside, values, 0.0) if zeros else values
    values = TABLE["index"].call(rows, (index,))
    return TABLE["where"].call(fixed_like(inside[:, None], rows), values, 0.0) if zeros and not inside.all() else values


@quiet
def _whole(position: Any) -> Any:
    """Rounded positions as integers; nan and huge ones count as far outside."""
    near = np.where(np.abs(position) < 2**30, position, -(2.0**30))
    return to_dtype(near, np.dtype(np.int64)) if isinstance(near, Box) else near.astype(np.intp)


def _values(position: Any) -> Any:
    """The array of a tensor; where its values are not known, inside a vmap or a trace, the tensor without history."""
    known = None if lookup.is_batched(position) else unless_traced(position)
    return position.detach() if known is None else known


def _constant(a: Any) -> Any:
    return a if isinstance(a, Box) else wrap(a)


def _sampled(x: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool) -> Any:
    """x (N, C, *sizes) at the positions of a grid (N, *out, dims), whose last dimension counts from x's last one."""
    n, c, *sizes = shape_of(x)
    out, dims = shape_of(grid)[1:-1], len(sizes)
    zeros = padding_mode == "zeros"
    flat = TABLE["reshape"].call(grid, (n * math.prod(out), dims))
    given = [TABLE["index"].call(flat, (Ellipsis, dims - 1 - d)) for d in range(dims)]
    positions = [_unnormalized(p, n, align_corners) for p, n in zip(given, sizes, strict=True)]
    if mode != "bicubic":
        positions = [_moved_inside(p, n, padding_mode, align_corners) for p, n in zip(positions, sizes, strict=True)]
    rows = TABLE["reshape"].call(TABLE["permute"].call(x, (0, *range(2, dims + 2), 1)), (n * math.prod(sizes), c))
    batch = np.repeat(np.arange(n), math.prod(out))
    total: Any = None
    for at, weight in _neighbours(positions, mode):
        if mode == "bicubic" and not zeros:
            centres = [to_dtype(_constant(p), x._d.dtype) for p in at]
            inside = [_moved_inside(p, n, padding_mode, align_corners) for p, n in zip(centres, sizes, strict=True)]
            at = [_whole(np.rint(_values(p))) for p in inside]
        part = _element(rows, batch, at, sizes, zeros)
        part = part * TABLE["reshape"].call(weight, (len(batch), 1))
        total = part if total is None else total + part
    image = TABLE["permute"].call(TABLE["reshape"].call(total, (n, *out, c)), (0, len(out) + 1, *range(1, len(out) + 1)))
    return TABLE["contiguous"].call(image)


def _neighbours(positions: Sequence[Any], mode: str) -> Any:
    """The elements around each position, as integers one array a dimension, and their weights."""
    if mode == "nearest":
        # A weight of 1 whose derivative is 0: the grid's gradient is 0, not absent.
        yield [_whole(np.rint(_values(p))) for p in positions], TABLE["where"].call(fixed(np.False_), positions[0], 1.0)
        return
    below = [np.floor(_values(p)) for p in positions]
    bases, past = [_whole(b) for b in below], [p - _constant(b) for p, b in zip(positions, below, strict=True)]
    weights = [cubic_weights(t) if mode == "bicubic" else [1.0 - t, t] for t in past]
    first = -1 if mode == "bicubic" else 0
    for choice in np.ndindex(*[len(w) for w in weights]):
        at = [b + (first + k) for b, k in zip(bases, choice, strict=True)]
        yield at, math.prod([w[k] for w, k in zip(weights, choice, strict=True)])


GRID_MODES, GRID_PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """The image at the positions of a grid.

    Args:
        input: float tensor (N, C, H, W) or (N, C, D, H, W).
        grid: tensor (N, *out, 2 or 3) of input's dtype, positions (x, y) or (x, y, z) where -1 and 1 are the image's ends.
        mode: "bilinear" (default), "nearest" or (2-D only) "bicubic".
        padding_mode: what is outside: "zeros" (default), "border" (the nearest element) or "reflection".
        align_corners: whether -1 and 1 are the centres of the outermost elements, or their outer edges (by default, with a
            warning).

    Returns:
        Tensor (N, C, *out); the gradient by the grid is 0 for "nearest", and across the border.

    Raises:
        ValueError: for unknown modes.
        RuntimeError: for shapes and dtypes that do not fit.

    Example:
        >>> image = tg.tensor([[[[0.0, 10.0]]]])
        >>> grid = tg.tensor([[[[-1.0, 0.0], [0.0, 0.0], [0.5, 0.0]]]])
        >>> tg.nn.functional.grid_sample(image, grid, align_corners=True)
        tensor([[[[0.0000, 5.0000, 7.5000]]]])
    """
    name = "nn.functional.grid_sample()"
    if mode not in GRID_MODES:
        raise ValueError(f"{name}: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in GRID_PADDINGS:
        raise ValueError(
            f"{name}: expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warn(ALIGNMENT)
    return _grid_sampler(input, grid, mode, padding_mode, bool(align_corners))


def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """`nn.functional.grid_sample` with its modes as numbers.

    Args:
        input: float tensor (N, C, H, W) or (N, C, D, H, W).
        grid: tensor (N, *out, 2 or 3) of input's dtype, positions where -1 and 1 are the image's ends.
        interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.
        padding_mode: 0 zeros, 1 border, 2 reflection.
        align_corners: whether -1 and 1 are the centres of the outermost elements.

    Returns:
        Tensor (N, C, *out).

    Raises:
        RuntimeError: for shapes and dtypes that do not fit.

    Example:
        >>> image = tg.tensor([[[[0.0, 10.0]]]])
        >>> tg.grid_sampler(image, tg.tensor([[[[0.5, 0.0]]]]), 0, 0, True)
        tensor([[[[7.5000]]]])
    """
    return _grid_sampler(input, grid, GRID_MODES[interpolation_mode], GRID_PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


@casting.in_float32
@half_in_float32
def _grid_sampler(input: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool) -> Any:
    x, g = tensors("grid_sampler", input=input, grid=grid)
    a, b = shape_of(x), shape_of(g)
    if a[:1] != b[:1]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(a)} and grid with sizes {list(b)}"
        )
    if len(a) not in (4, 5) or len(a) != len(b):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(a)} and grid with sizes {list(b)}"
        )
    if b[-1] != len(a) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(a) - 2} in last dimension, but got grid with sizes {list(b)}"
        )
    for d, n in enumerate(a[2:], 2):
        if not n:
            raise RuntimeError(
                f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(a)} with "
                f"dimension {d} being empty"
            )
    if mode == "bicubic" and len(a) != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x._d.dtype != g._d.dtype:
        raise RuntimeError(f"expected scalar type {errors.dtype_name(x._d.dtype)} but found {errors.dtype_name(g._d.dtype)}")
    if not is_floating(x._d.dtype):
        got = errors.dtype_name(x._d.dtype)
        raise NotImplementedError(f"\"grid_sampler_{len(a) - 2}d_cpu_kernel_impl\" not implemented for '{got}'")
    before = next_slot()
    return set_grad_fn_name(
        f"GridSampler{len(shape_of(x)) - 2}DBackward0", _sampled(x, g, mode, padding_mode, align_corners), before
    )


@with_grad_fn_name("AffineGridGeneratorBackward0")
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Grid for `grid_sample` from affine maps: at each output position p, theta @ (p, 1).

    Args:
        theta: float tensor (N, 2, 3) or (N, 3, 4).
        size: output size (N, C, H, W) or (N, C, D, H, W).
        align_corners: whether -1 and 1 are the centres of the outermost elements, or their outer edges (by default, with a
            warning).

    Returns:
        Tensor (N, H, W, 2) or (N, D, H, W, 3).

    Raises:
        ValueError, NotImplementedError, RuntimeError: for shapes that do not fit.

    Example:
        >>> theta = tg.tensor([[[2.0, 0.0, 0.5], [0.0, 1.0, 0.0]]])
        >>> tg.nn.functional.affine_grid(theta, (1, 1, 1, 3), align_corners=True)
        tensor([[[[-1.5000,  0.0000],
                  [ 0.5000,  0.0000],
                  [ 2.5000,  0.0000]]]])
    """
    (t,) = tensors("affine_grid", theta=theta)
    shape, size = shape_of(t), tuple(integers("affine_grid", "size", size))
    if not is_floating(t._d.dtype):
        raise ValueError(f"Expected theta to have floating point type, but got {t.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    if len(shape) != 3 or shape[1:] != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got "
            f"{errors.size(shape)}."
        )
    if align_corners is None:
        warn(ALIGNMENT)
    if builtins.min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if shape[0] != size[0]:
        raise errors.batch2_sizes([size[0], dims + 1], [shape[0], dims + 1])
    points = [_ends(n, bool(align_corners)) for n in size[2:]]
    base = np.stack([*np.meshgrid(*points, indexing="ij")[::-1], np.ones(size[2:])], -1).reshape(-1, dims + 1)
    flat = TABLE["matmul"].call(fixed_like(base.astype(t._d.dtype), t), TABLE["mT"].call(t))
    return TABLE["reshape"].call(flat, (size[0], *size[2:], dims))


def _ends(n: int, align_corners: bool) -> Array:
    if n <= 1:
        return np.zeros(n)
    reach = 1.0 if align_corners else (n - 1) / n
    return np.linspace(-reach, reach, n)


# ------------------------------------------------------------------------------------------ channels moved into space


def _arranged(x: Any, shape: Sizes, dims: Sizes, result: Sizes) -> Any:
    moved = TABLE["permute"].call(TABLE["reshape"].call(x, shape), dims)
    return apart(TABLE["reshape"].call(moved, result), x)


def _check_factor(name: str, argument: str, x: Any, factor: int) -> Sizes:
    shape = shape_of(x)
    if len(shape) < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")
    return shape


@with_grad_fn_name("PixelShuffleBackward0")
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """(*, C r r, H, W) as (*, C, H r, W r), for the factor r: blocks of channels become blocks of pixels.

    Args:
        input: tensor of at least three dimensions.
        upscale_factor: r, a positive integer.

    Raises:
        RuntimeError: if r * r does not divide the number of channels.

    Example:
        >>> tg.pixel_shuffle(tg.arange(4).reshape(4, 1, 1), 2)
        tensor([[[0, 1],
                 [2, 3]]])
    """
    (x,) = tensors("pixel_shuffle", input=input)
    r = upscale_factor
    *batch, c, h, w = _check_factor("pixel_shuffle", "upscale_factor", x, r)
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    k = len(batch)
    dims = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return _arranged(x, (*batch, c // (r * r), r, r, h, w), dims, (*batch, c // (r * r), h * r, w * r))


@with_grad_fn_name("PixelUnshuffleBackward0")
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """(*, C, H r, W r) as (*, C r r, H, W), for the factor r: the inverse of `pixel_shuffle`.

    Args:
        input: tensor of at least three dimensions.
        downscale_factor: r, a positive integer.

    Raises:
        RuntimeError: if r does not divide height and width.

    Example:
        >>> tg.pixel_unshuffle(tg.tensor([[[1, 2], [3, 4]]]), 2).flatten()
        tensor([1, 2, 3, 4])
    """
    (x,) = tensors("pixel_unshuffle", input=input)
    r = downscale_factor
    *batch, c, h, w = _check_factor("pixel_unshuffle", "downscale_factor", x, r)
    for side, position, n in (("height", -2, h), ("width", -1, w)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {side} to be divisible by downscale_factor, but input.size({position})={n} is not "
                f"divisible by {r}"
            )
    k = len(batch)
    dims = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return _arranged(x, (*batch, c, h // r, r, w // r, r), dims, (*batch, c * r * r, h // r, w // r))


@with_grad_fn_name("ChannelShuffleBackward0")
def channel_shuffle(input: Any, groups: int) -> Any:
    """(N, C, *) with the channels of the groups taken in turn.

    Args:
        input: tensor of more than two dimensions.
        groups: number of groups, which divides C.

    Returns:
        A copy of input's shape; channel i of group g becomes channel i * groups + g.

    Raises:
        RuntimeError: if groups does not divide C.

    Example:
        >>> tg.channel_shuffle(tg.arange(6).reshape(1, 6, 1), 2).flatten()
        tensor([0, 3, 1, 4, 2, 5])
    """
    (x,) = tensors("channel_shuffle", input=input)
    shape = shape_of(x)
    if len(shape) <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, c, *rest = shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return _arranged(x, (n, groups, c // groups, *rest), (0, 2, 1, *range(3, 3 + len(rest))), shape)

"""Summaries made of the table's operations: covariances, histograms, differences and sums along a grid, distances."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from ..core.record import Box
from ..core.vjp import fixed_like
from ..core.warning import warn
from ..kernels.shape import dim_of, part_along
from ..programs.tracing import examined, leaving, unless_traced
from . import casting
from .arguments import dim_within, numpy_names, with_grad_fn_name, with_out
from .joining import cat
from .linalg import matmul
from .operands import half_in_float32, promoted, tensor
from .reduce import cumsum, norm, sum
from .results import result
from .shape import diagonal, squeeze, transpose, unsqueeze

# ---------------------------------------------------------------------------------------------------------- covariances


def _observation_weights(name: str, weights: Any, x: Any) -> Any:
    """Weights of the observations in the columns of x, or None."""
    if weights is None:
        return None
    w = tensor(weights)
    if w._d.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w._d.ndim} dimensions"
        )
    whole = w._d.dtype.kind in "iu"
    if whole != (name == "fweights") or w._d.dtype.kind in "bc":
        kind = "integral" if name == "fweights" else "floating point"
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {errors.dtype_name(w._d.dtype)} dtype"
        )
    count = x._d.shape[1]
    if w._d.size != count:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                           f"{w._d.size} != {count}")  # fmt: skip
    if (examined(w) < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return TABLE["reshape"].call(w, (count,))


@casting.as_given
@half_in_float32
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Covariance matrix of the rows of input, whose columns are observations; of one row, or a vector, its variance.

    Args:
        input: tensor of shape (variables, observations), or (observations,); integers are computed in the default dtype.
        correction: subtracted from the number of observations that the sum is divided by, default 1.
        fweights: how often each observation was made: an integer tensor of shape (observations,).
        aweights: the importance of each observation: a float tensor of shape (observations,).

    Returns:
        A tensor of shape (variables, variables), or without dimensions.

    Raises:
        RuntimeError: for more dimensions; for weights that are negative, sum to 0, or are of another kind or number.

    Example:
        >>> tg.cov(tg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    return _covariances("cov", input, correction, fweights, aweights)


def _covariances(name: str, input: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    x = promoted([tensor(input)], integers_to_float=True)[0]
    if x._d.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {x._d.ndim} dimensions"
        )
    if x._d.ndim < 2:
        x = TABLE["reshape"].call(x, (1, x._d.size))
    often = _observation_weights("fweights", fweights, x)
    important = _observation_weights("aweights", aweights, x)
    w = often if important is None else important if often is None else often * important
    if w is None:
        total: Any = x._d.shape[1]
        centred = x - TABLE["mean"].call(x, (1,), True)
    else:
        total = sum(w)
        if not (examined(total) != 0).all():
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        centred = x - sum(x * w, 1, True) / total
    divisor: Any = total - correction
    if correction and important is not None:
        divisor = total - correction * sum(w * important) / total
    known = unless_traced(divisor) if isinstance(divisor, Box) else divisor
    if known is None or np.any(known <= 0):
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        divisor = TABLE["where"].call(TABLE["gt"].call(divisor, 0), divisor, 0.0) if isinstance(divisor, Box) else 0
    weighted = centred if w is None else centred * w
    return squeeze(matmul(weighted, TABLE["conj"].call(transpose(centred, 0, 1))) / tensor(divisor))


@half_in_float32
def corrcoef(input: Any) -> Any:
    """Correlation coefficients of the rows of input, whose columns are observations: covariances over standard deviations.

    Args:
        input: tensor of shape (variables, observations), or (observations,); integers are computed in the default dtype.

    Returns:
        A tensor of shape (variables, variables), or without dimensions, limited to [-1, 1].

    Raises:
        RuntimeError: for more dimensions.

    Example:
        >>> tg.corrcoef(tg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    c = _covariances("corrcoef", input, 1, None, None)
    if not c._d.ndim:
        return c / c
    deviation = TABLE["sqrt"].call(diagonal(c).real)
    r = c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0)
    if r._d.dtype.kind != "c":
        return TABLE["clamp"].call(r, -1.0, 1.0)
    clamp, wide = TABLE["clamp"].call, TABLE["to_complex"].call
    return wide(clamp(r.real, -1.0, 1.0)) + 1j * wide(clamp(r.imag, -1.0, 1.0))


# ----------------------------------------------------------------------------------------------------------- histograms


def _bounds(name: str, x: Any, low: float, high: float) -> tuple[float, float]:
    """The range of a histogram: of the elements, if none is given."""
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.{name}: max must be larger than min")
    around = 1 if name == "histc" else 0.5  # of equal elements
    return (low - around, high + around) if low == high else (low, high)


def _real_values(name: str, input: Any) -> Any:
    given = tensor(input)
    x = leaving(given, f"{name}(), which NumPy counts")
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{errors.dtype_name(x.dtype)}'")
    return x


def _some_bins(bins: Any) -> int:
    if bins < 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    return operator.index(bins)


@with_out
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Number of elements in each of `bins` equal parts of [min, max]; others are not counted. The gradient stops here.

    Args:
        input: float tensor of any shape.
        bins: number of parts, default 100.
        min, max: the range; where both are equal (the default) that of the elements.

    Returns:
        A tensor of shape (bins,) and input's dtype.

    Raises:
        RuntimeError: for a range that is not finite or empty; for bins below 1.
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.histc(tg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
        tensor([0., 2., 1., 0.])
    """
    x = _real_values("histogram", input)
    count = _some_bins(bins)
    low, high = _bounds("histc", x, min, max)
    counts, _ = np.histogram(x.astype(np.float64), count, (low, high))
    return fixed_like(counts.astype(x.dtype), tensor(input))


def _given_edges(x: Any, bins: Any) -> Any:
    edges = leaving(tensor(bins), "bins that are a tensor")
    if edges.dtype != x.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{errors.dtype_name(x.dtype)} and bins with dtype {errors.dtype_name(edges.dtype)}"
        )
    if not edges.size:
        raise RuntimeError("torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements")
    return edges.astype(np.float64)


@with_out
def histogram(input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Number, or total weight, of the elements in each bin. The gradient stops here.

    Args:
        input: float tensor of any shape.
        bins: number of equal bins over `range`, or a tensor of increasing edges.
        range: (low, high); by default that of the elements.
        weight: tensor of input's shape.
        density: divide by the total and the widths, so that the integral is 1.

    Returns:
        A named tuple (hist, bin_edges) of tensors of shape (bins,) and (bins + 1,).

    Raises:
        RuntimeError: for a range that is not finite or empty; for bins below 1 or of another dtype.
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.histogram(tg.tensor([1.0, 2.0, 1.0]), bins=3, range=(0.0, 3.0)).hist
        tensor([0., 2., 1.])
    """
    x = _real_values("histogram", input)
    wide = x.astype(np.float64)
    if isinstance(bins, int):
        low, high = _bounds("histogram", x, *(range or (0, 0)))
        edges: Any = np.linspace(low, high, _some_bins(bins) + 1)
    else:
        edges = _given_edges(x, bins)
    weights = None if weight is None else leaving(tensor(weight), "weights that are a tensor").reshape(-1)
    hist, _ = np.histogram(wide.reshape(-1), edges, weights=weights, density=density)
    return result("histogram", *[fixed_like(a.astype(x.dtype), tensor(input)) for a in (hist, edges)])


def histogramdd(input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Number, or total weight, of the points in each bin of D dimensions. The gradient stops here.

    Args:
        input: float tensor of shape (.., D), one point a row.
        bins: a number of equal bins, one number a dimension, or a tensor of increasing edges a dimension.
        range: the bounds of each dimension, 2 * D numbers; by default those of the points.
        weight: tensor of shape (..), the weight of each point.
        density: divide by the total and the volumes, so that the integral is 1.

    Returns:
        A named tuple (hist, bin_edges): a tensor of D dimensions and a tuple of D tensors.

    Raises:
        RuntimeError: for shapes, bins or a range that do not fit.
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.histogramdd(tg.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), bins=[2, 2]).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    x = _real_values("histogramdd", input)
    if x.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    points = x.reshape(-1, x.shape[-1])
    each = [bins] * x.shape[-1] if isinstance(bins, int) else list(bins)
    if len(each) != x.shape[-1]:
        raise RuntimeError(
            "torch.histogramdd: if bins is a sequence, it must have one entry a dimension, but got "
            f"{len(each)} for an innermost dimension of size {x.shape[-1]}"
        )
    edges = []
    for d, own in enumerate(each):
        if isinstance(own, int):
            low, high = _bounds("histogramdd", points[:, d], *((0, 0) if range is None else range[2 * d : 2 * d + 2]))
            edges.append(np.linspace(low, high, _some_bins(own) + 1))
        else:
            edges.append(_given_edges(x, own))
    index, inside = np.zeros(len(points), np.intp), np.ones(len(points), bool)
    for column, e in zip(points.T, edges, strict=True):
        inside &= (column >= e[0]) & (column <= e[-1])
        index = index * (len(e) - 1) + np.minimum(np.searchsorted(e, column, "right") - 1, len(e) - 2)
    weights = None if weight is None else leaving(tensor(weight), "weights that are a tensor")
    if weights is not None and weights.shape != x.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
            f"its innermost dimension, but got input with shape {list(x.shape)} and weight with shape {list(weights.shape)}"
        )
    weights = None if weights is None else weights.reshape(-1)[inside]
    sizes = [len(e) - 1 for e in edges]
    hist = np.bincount(index[inside], weights, math.prod(sizes)).reshape(sizes)
    if density:
        hist = hist / hist.sum() / functools.reduce(np.multiply.outer, [np.diff(e) for e in edges])
    hist, *edges = (fixed_like(a.astype(x.dtype), tensor(input)) for a in (hist, *edges))
    return result("histogramdd", hist, tuple(edges))


# ------------------------------------------------------------------------------------------------- sums along a grid


def _neighbours(x: Any, dim: int) -> tuple[Any, Any]:
    """All elements along dim but the last, and all but the first."""
    return part_along(x, dim, None, -1), part_along(x, dim, 1, None)


def _panels(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Any, int]:
    """Twice the areas of the trapezoids between neighbouring samples, and the dimension they lie along."""
    y = tensor(y)
    if "b" in (y._d.dtype.kind, "" if x is None else tensor(x)._d.dtype.kind):
        given = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {given}, but bool is not supported")
    d = dim_within(dim, y._d.ndim)
    if not y._d.shape[d] and name == "trapezoid":
        return y, d
    before, after = _neighbours(y, d)
    if x is None:
        return (before + after) * (1 if dx is None else dx), d
    if dx is not None:
        raise TypeError(f"{name}() takes x or dx, not both")
    x = tensor(x)
    rank = y._d.ndim
    if x._d.ndim == 1:
        if x._d.size != y._d.shape[d]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = TABLE["reshape"].call(x, [-1 if i == d else 1 for i in range(rank)])
    elif x._d.ndim < rank:
        x = TABLE["reshape"].call(x, (*[1] * (rank - x._d.ndim), *x._d.shape))
    left, right = _neighbours(x, d)
    return (before + after) * (right - left), d


@numpy_names
@half_in_float32
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Integral along dim by the trapezoid rule: sum((y[1:] + y[:-1]) * steps) / 2.

    Args:
        y: tensor of the samples.
        x: their positions: a vector, or a tensor that broadcasts with y.
        dx: their distance, in place of x; default 1.
        dim: the dimension to integrate along, default the last.

    Raises:
        RuntimeError: for bools, or an x of another size.
        TypeError: if x and dx are given.

    Example:
        >>> tg.trapezoid(tg.tensor([0.0, 1.0, 4.0]), dx=0.5)
        tensor(1.5000)
    """
    panels, d = _panels("trapezoid", y, x, dx, dim)
    return sum(panels, d) / 2


@numpy_names
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The older name of trapezoid: the integral along dim by the trapezoid rule.

    Args:
        y, x, dx, dim: as of trapezoid.

    Example:
        >>> tg.trapz(tg.tensor([0.0, 1.0, 4.0]), tg.tensor([0.0, 1.0, 2.0]))
        tensor(3.)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


@numpy_names
@half_in_float32
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """Integrals along dim up to each sample but the first, by the trapezoid rule.

    Args:
        y: tensor of the samples.
        x: their positions: a vector, or a tensor that broadcasts with y.
        dx: their distance, in place of x; default 1.
        dim: the dimension to integrate along, default the last.

    Returns:
        A tensor of y's shape, along dim one less.

    Raises:
        RuntimeError: for bools, or an x of another size.
        TypeError: if x and dx are given.

    Example:
        >>> tg.cumulative_trapezoid(tg.tensor([0.0, 1.0, 4.0]))
        tensor([0.5000, 3.0000])
    """
    panels, d = _panels("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(panels, d) / 2


@with_out
@numpy_names
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """n-th differences of neighbours along dim: input[1:] - input[:-1], n times.

    Args:
        input: tensor of any dtype; of bools it is their exclusive or.
        n: how often, default 1; 0 gives a copy.
        dim: the dimension, default the last.
        prepend, append: tensors to put before and after input along dim first, if n > 0.

    Raises:
        RuntimeError: for a 0-dim input, a negative n, or shapes that do not fit.

    Example:
        >>> tg.diff(tg.tensor([1.0, 4.0, 9.0, 16.0]), n=2)
        tensor([2., 2.])
    """
    x = tensor(input)
    if not x._d.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    d = dim_of(dim, x._d.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    others = [None if other is None else tensor(other) for other in (prepend, append)]
    for other in others:
        if other is not None and other._d.ndim != x._d.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i, (size, own) in enumerate(zip(() if other is None else other._d.shape, x._d.shape, strict=False)):
            if size != own and i != d:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({i}) = {own}, but got tensor.size({i}) = {size}"
                )
    if not n:
        return TABLE["clone"].call(x)
    parts = [part for part in (others[0], x, others[1]) if part is not None]
    x = cat(parts, d) if len(parts) > 1 else x
    for _ in range(n if n < x._d.shape[d] else x._d.shape[d]):
        before, after = _neighbours(x, d)
        x = TABLE["logical_xor"].call(after, before) if x._d.dtype.kind == "b" else after - before
    return x


def _spacings(x: Any, spacing: Any, dim: Any) -> tuple[list[int], list[Any]]:
    """Dimensions to differentiate along, and for each the distance of the samples or their places."""
    rank = x._d.ndim
    if isinstance(dim, int):
        dim = [dim]
    each = isinstance(spacing, Sequence)
    if dim is None:
        dims = list(range(rank))
    else:
        dims = [dim_of(d, rank) for d in dim]
        if len(set(dims)) < len(dims):
            twice = next(d for d in dims if dims.count(d) > 1)
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    steps = list(spacing) if each else [1 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims):
        got = "an unspecified dim argument" if dim is None else f"a dim argument of length {len(dims)}"
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
            f"length, but got a spacing argument of length {len(steps)} and {got}."
        )
    return dims, steps


def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """Derivatives of samples along dimensions by differences of neighbours, of second order within.

    This is numpy.gradient; gradients of functions are tg.func.grad and tg.autograd.grad.

    Args:
        input: tensor of the samples; integers are computed in the default dtype.
        spacing: distance of the samples (1); or one for each dimension; or for each the samples' positions, as a tensor.
        dim: the dimensions to differentiate along, default all.
        edge_order: order of the one-sided differences at both ends, 1 or 2.

    Returns:
        A tuple of tensors of input's shape, one for each dimension.

    Raises:
        RuntimeError: for another edge_order, too few samples, or spacings and dimensions that do not fit.

    Example:
        >>> tg.gradient(tg.tensor([0.0, 1.0, 4.0, 9.0]), spacing=1.0, edge_order=2)
        (tensor([0., 2., 4., 6.]),)
    """
    x = tensor(input)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims, steps = _spacings(x, spacing, dim)
    if any(x._d.shape[d] <= edge_order for d in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    x = promoted([x], integers_to_float=True)[0]
    return tuple([_slope(x, d, step, edge_order) for d, step in zip(dims, steps, strict=True)])


def _slope(x: Any, d: int, step: Any, edge_order: int) -> Any:
    n = x._d.shape[d]
    positions = isinstance(step, Box | np.ndarray) and (step._d if isinstance(step, Box) else step).ndim == 1
    if positions:
        step = tensor(step)
        if step._d.size != n:
            raise RuntimeError(
                f"torch.gradient expected each tensor to have the same size as the dimension it belongs to, but got "
                f"{step._d.size} places for a size of {n}"
            )
        column = TABLE["reshape"].call(step, [-1 if i == d else 1 for i in range(x._d.ndim)])
        before, after = _neighbours(column, d)
        step = after - before  # (n - 1) distances

    def at(start: int | None, stop: int | None) -> Any:
        return part_along(x, d, start, stop)

    def distance(position: int) -> Any:
        return part_along(step, d, position, position + 1 or None) if positions else step

    before, after = (distance(0), distance(0)) if not positions else _neighbours(step, d)
    first, last = distance(0), distance(-1)
    slopes = (at(1, None) - at(None, -1)) / step  # between neighbours
    left, right = _neighbours(slopes, d)
    within = (left * after + right * before) / (before + after)
    begin, end = part_along(slopes, d, None, 1), part_along(slopes, d, -1, None)
    if edge_order == 2:
        # a parabola through three samples: the outer slope, less half of its change
        second, one_before = distance(1), distance(-2)
        begin = begin - first * (part_along(slopes, d, 1, 2) - begin) / (first + second)
        end = end + last * (end - part_along(slopes, d, -2, -1)) / (last + one_before)
    return cat([begin, within, end], d)


# ------------------------------------------------------------------------------------------------------------ distances


@with_grad_fn_name("DistBackward0")
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """p-norm of input - other, over all elements; where they are equal its derivative is 0.

    Args:
        input, other: float or complex tensors, which broadcast.
        p: the order of the norm, default 2; 0, inf and -inf as of norm.

    Returns:
        A real tensor without dimensions.

    Example:
        >>> tg.dist(tg.tensor([1.0, 2.0]), tg.tensor([4.0, 6.0]))
        tensor(5.)
    """
    return norm(tensor(input) - tensor(other), float(p))


@with_out
@with_grad_fn_name("RenormBackward0")
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Any:
    """Each slice along dim whose p-norm exceeds maxnorm is scaled down to that norm.

    Args:
        input: float or complex tensor of at least 2 dimensions.
        p: the order of the norm, > 0.
        dim: the dimension whose slices are meant.
        maxnorm: the largest norm, >= 0.

    Raises:
        RuntimeError: for an order, norm or input outside these limits.

    Example:
        >>> tg.renorm(tg.tensor([[3.0, 4.0], [0.3, 0.4]]), p=2, dim=0, maxnorm=1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    x = tensor(input)
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if x._d.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x._d.ndim} dimensions")
    d = dim_of(dim, x._d.ndim)
    size = norm(x, float(p), [i for i in range(x._d.ndim) if i != d], True)
    return x * TABLE["where"].call(size > maxnorm, maxnorm / (size + 1e-7), 1.0)

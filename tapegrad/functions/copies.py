"""What PyTorch has as copies instead of views, and with a part written over."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

from ..core.op import TABLE
from ..core.tape import next_slot
from ..kernels.shape import _follow, _view, dim_of, shape_of
from .arguments import check_outs, numpy_names, put_out, sizes, with_out
from .grad_fn_names import set_grad_fn_name
from .joining import (
    split,
    split_with_sizes,
    unbind,
)
from .operands import form_of, tensor, to_dtype
from .shape import (
    _selected,
    as_strided,
    detach,
    diagonal,
    expand,
    memory_order,
    narrow,
    permute,
    select,
    squeeze,
    t,
    transpose,
    unfold,
    unsqueeze,
    view,
)


def _with_part(name: str, input: Any, src: Any, chain: tuple[Any, ...]) -> Any:
    x = tensor(input)
    v = to_dtype(tensor(src), x._d.dtype)
    part = _follow(form_of(x._d), chain).shape
    if shape_of(v) != part:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(shape_of(v))}, slice size = "
            f"{list(part)}"
        )
    return TABLE[name].call(x, v, chain)


@numpy_names
@with_out
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """A copy of input with src in place of one slice along `dim`.

    Args:
        input: tensor of at least one dimension.
        src: tensor of the slice's shape; it takes input's dtype.
        dim: the dimension.
        index: the position of the slice; negative ones count from the end.

    Returns:
        A tensor of input's shape and dtype; both input and src get gradients.

    Raises:
        RuntimeError: if src has another shape.
        IndexError: if the index is out of range.

    Example:
        >>> tg.select_scatter(tg.zeros(2, 3), tg.tensor([1.0, 2.0]), 1, 0)
        tensor([[1., 0., 0.],
                [2., 0., 0.]])
    """
    return _with_part("select_scatter", input, src, (("index", (_selected(tensor(input), dim, index),)),))


@numpy_names
@with_out
def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """A copy of input with src in place of the elements start, start + step, .. before end along `dim`.

    Args:
        input: tensor of at least one dimension.
        src: tensor of the slice's shape; it takes input's dtype.
        dim: the dimension, default 0.
        start, end: bounds as in Python's slices, default all.
        step: a positive integer, default 1.

    Returns:
        A tensor of input's shape and dtype; both input and src get gradients.

    Raises:
        RuntimeError: if src has another shape, or the step is not positive.

    Example:
        >>> tg.slice_scatter(tg.zeros(5), tg.tensor([1.0, 2.0]), 0, 1, 3)
        tensor([0., 1., 2., 0., 0.])
    """
    d = dim_of(dim, len(shape_of(tensor(input))))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return _with_part("slice_scatter", input, src, (("index", ((*(slice(None),) * d, slice(start, end, step), Ellipsis),)),))


@with_out
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy of input with src in place of a diagonal.

    Args:
        input: tensor of at least two dimensions.
        src: tensor of the shape of diagonal(input, offset, dim1, dim2); it takes input's dtype.
        offset: which diagonal: 0 (default) the main one, above it positive, below it negative.
        dim1, dim2: the dimensions of rows and columns, default 0 and 1.

    Returns:
        A tensor of input's shape and dtype; both input and src get gradients.

    Raises:
        RuntimeError: if src has another shape.

    Example:
        >>> tg.diagonal_scatter(tg.zeros(2, 2), tg.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]])
    """
    rank = len(shape_of(tensor(input)))
    return _with_part("diagonal_scatter", input, src, (("diagonal", (offset, dim_of(dim1, rank), dim_of(dim2, rank))),))


@with_out
def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A copy of input with src in place of the elements that as_strided(input, size, stride, storage_offset) would show.

    Args:
        input: tensor of any shape and dtype.
        src: tensor of the given sizes; it takes input's dtype.
        size: the sizes, as a sequence.
        stride: for each dimension the step from one element to the next, in elements.
        storage_offset: the first element's position, default 0.

    Returns:
        A tensor of input's shape and dtype; both input and src get gradients.

    Raises:
        RuntimeError: if src has another shape, or the view would leave input.

    Example:
        >>> tg.as_strided_scatter(tg.zeros(4), tg.tensor([1.0, 2.0]), (2,), (2,), 1)
        tensor([0., 1., 0., 2.])
    """
    x = tensor(input)
    order = memory_order(x._d) if shape_of(x) else ()
    chain = (("as_strided", (sizes((size,)), sizes((stride,)), operator.index(storage_offset or 0), order)),)
    as_strided(TABLE["contiguous"].call(x), size, stride, storage_offset or 0)  # checks the sizes
    return _with_part("as_strided_scatter", x, src, chain)


def copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of views with copies for them; an underscore before its name is dropped."""
    name = function.__name__.removeprefix("_")

    @functools.wraps(function)
    def copy(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        before = next_slot()
        result = function(*args, **kwargs)
        if isinstance(result, tuple):
            copies = tuple([TABLE["clone"].call(r) for r in result])
            if out is not None:
                check_outs(name, out, len(copies))
                for target, r in zip(out, copies, strict=True):
                    target.resize_as_result_(r)
                return None
            return copies
        view = result.grad_fn
        result = TABLE["clone"].call(result)
        if view is not None:
            set_grad_fn_name(f"{view.name()}_copy", result, before)
        return put_out(name, result, out)

    signature = inspect.signature(function)
    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    copy.__signature__ = signature.replace(parameters=[*signature.parameters.values(), keyword])  # type: ignore[attr-defined]
    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__module__ = "tapegrad"
    copy.__doc__ = f"A copy of what {name}() shows.\n\n{inspect.cleandoc(function.__doc__ or '')}"
    return copy


def _alias(input: Any) -> Any:
    """Another tensor on the same memory.

    Args:
        input: tensor of any shape and dtype.

    Example:
        >>> tg.alias_copy(tg.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    return _view(tensor(input), "alias")


def _slice(input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """A view of the elements start, start + step, .. before end along dim.

    Args:
        input: tensor of any shape and dtype.
        dim: the dimension to slice, default the first.
        start, end: the first index and the one after the last; None for the ends, counted from the end if negative.
        step: the distance of the indices, default 1.

    Example:
        >>> tg.slice_copy(tg.tensor([0.0, 1.0, 2.0, 3.0]), 0, 1, None, 2)
        tensor([1., 3.])
    """
    x = tensor(input)
    return x[(slice(None),) * dim_of(dim, len(shape_of(x))) + (slice(start, end, step),)]


alias_copy = copied(_alias)
as_strided_copy = copied(as_strided)
diagonal_copy = copied(diagonal)
expand_copy = copied(expand)
narrow_copy = copied(narrow)
permute_copy = copied(permute)
select_copy = copied(select)
split_copy = copied(split)
split_with_sizes_copy = copied(split_with_sizes)
squeeze_copy = copied(squeeze)
t_copy = copied(t)
transpose_copy = copied(transpose)
slice_copy = copied(_slice)
unbind_copy = copied(unbind)
unfold_copy = copied(unfold)
unsqueeze_copy = copied(unsqueeze)
view_copy = copied(view)
detach_copy = copied(detach)

"""vmap: a function of single samples, run on a whole batch at once."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.batch import Batch, NeedLoop
from ..core.record import Box
from ..ops import shape
from . import tree
from .reverse import converted, operand_of, plain_kind


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that maps func over a dimension of its arguments.

    Where func asks for the value of a single sample (`if x > 0`, `x.item()`, `float(x)`), the samples run one after the
    other, with a warning that names the line.

    Args:
        func: takes tensors without the mapped dimension; returns a tensor or nested tensors.
        in_dims: dimension of each argument to map over, or None for one that all samples share: an int for all, or nested
            like the arguments.
        out_dims: where the mapped dimension is put in the outputs: an int for all, or nested like the outputs.
        randomness: what random numbers drawn inside are: "different" or "same" for the samples, or an "error".
        chunk_size: run at most so many samples at once.

    Returns:
        A function of func's arguments with the mapped dimension. Arrays give arrays.

    Raises:
        ValueError: if no argument is mapped, for dimensions out of range, or mapped sizes that differ or are 0.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten((args, kwargs))
        given = tree.flatten(args)[0]
        dims = spread(in_dims, args, "in_dims") + [
            0 if isinstance(x, tree.LEAF_TYPES) else None for x in leaves[len(given) :]
        ]
        dims = [checked_dim(x, d) for x, d in zip(leaves, dims, strict=True)]
        if all(d is None for d in dims):
            raise ValueError(
                f"vmap(f, in_dims={in_dims}, ...)(<inputs>): at least one input must be a tensor to vmap over; got in_dims "
                "None everywhere"
            )
        fronts = [x if d is None else moved(operand_of(x), d, 0) for x, d in zip(leaves, dims, strict=True)]
        sizes = [x._d.shape[0] for x, d in zip(fronts, dims, strict=True) if d is not None]
        if any(n != sizes[0] for n in sizes):
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
                "dimension"
            )
        n = sizes[0]
        if not n:
            raise ValueError(f"vmap: the mapped dimension has size 0; f would never be called (in_dims={in_dims})")
        run = functools.partial(run_batch, func, spec, [d is not None for d in dims], randomness)
        step = chunk_size or n
        parts = [run([x if d is None else x[i : i + step] for x, d in zip(fronts, dims, strict=True)], min(step, n - i))
                 for i in range(0, n, step)] if step < n else [run(fronts, n)]  # fmt: skip
        outs, out_spec = parts[0]
        if len(parts) > 1:
            outs = [shape.cat(list(column)) for column in zip(*[p[0] for p in parts], strict=True)]
        places = spread(out_dims, tree.unflatten(out_spec, outs), "out_dims")
        kind = plain_kind([x for x, d in zip(leaves, dims, strict=True) if d is not None])
        outs = [y if d is None else moved(y, 0, d) for y, d in zip(outs, places, strict=True)]
        return tree.unflatten(out_spec, [converted(y, kind) for y in outs])

    return mapped


def run_batch(
    func: Callable[..., Any], spec: tree.Spec, batched: list[bool], randomness: str, leaves: list[Any], n: int
) -> tuple[list[Any], tree.Spec]:
    """Outputs of all samples, stacked in front, and their structure."""
    level = Batch(n, randomness)
    try:
        with level:
            lifted = [level.lift(x, True) if b else x for x, b in zip(leaves, batched, strict=True)]
            args, kwargs = tree.unflatten(spec, lifted)
            del lifted
            result = func(*args, **kwargs)
            del args, kwargs
            if level.place is not None:  # the signal was swallowed on its way
                raise NeedLoop(level)
            outs, out_spec = tree.flatten(result)
            del result
            outs = [level.physical(checked_output(y)) for y in outs]
            level.check_written()
        return outs, out_spec
    except NeedLoop as signal:
        if signal.level is not level:
            raise
    level.roll_back()
    assert level.place is not None
    warnings.warn_explicit(errors.vmap_loop(), UserWarning, *level.place)
    return run_loop(func, spec, batched, leaves, n)


def moved(x: Any, source: int, destination: int) -> Any:
    return x if source == destination else shape.movedim(x, source, destination)


def run_loop(
    func: Callable[..., Any], spec: tree.Spec, batched: list[bool], leaves: list[Any], n: int
) -> tuple[list[Any], tree.Spec]:
    """The samples one after the other."""
    rows = []
    for i in range(n):
        args, kwargs = tree.unflatten(spec, [x[i] if b else x for x, b in zip(leaves, batched, strict=True)])
        outs, out_spec = tree.flatten(func(*args, **kwargs))
        rows.append([checked_output(y) for y in outs])
    return [shape.stack(list(column)) for column in zip(*rows, strict=True)], out_spec


def checked_output(y: Any) -> Any:
    if not isinstance(y, Box):
        raise ValueError(f"vmap: `f` must only return Tensors, got type {type(y)}")
    return y


def checked_dim(x: Any, d: Any) -> int | None:
    """A mapped dimension counted from the front, checked against its argument."""
    if d is None:
        return None
    if not isinstance(d, int):
        raise ValueError(f"vmap: Got in_dim={d!r} for an input, expected an int or None")
    if not isinstance(x, Box) and not hasattr(x, "ndim"):
        raise ValueError(
            f"vmap: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor arguments, "
            "please use None as the respective in_dim"
        )
    rank = x.ndim
    if not -rank <= d < rank:
        raise ValueError(
            f"vmap: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {rank} so expected in_dim to "
            f"satisfy -{rank} <= in_dim < {rank}."
        )
    return d % rank


def spread(dims: Any, structure: Any, name: str) -> list[Any]:
    """One entry a leaf from dims that are given for all, or nested like (the upper part of) a structure."""
    leaves, spec = tree.flatten(structure)
    if dims is None or isinstance(dims, int):
        return [dims if isinstance(x, tree.LEAF_TYPES) or name == "out_dims" else None for x in leaves]
    children = tree.children_of(structure)
    given = tree.children_of(dims)
    if spec is tree.LEAF or given is None or children is None or len(given[1]) != len(children[1]):
        raise ValueError(
            f"vmap: {name} is not compatible with the structure of the {'inputs' if name == 'in_dims' else 'outputs'}: {name} "
            f"has structure {tree.flatten(dims)[1]} but they have {spec}"
        )
    return [d for part, child in zip(given[1], children[1], strict=True) for d in spread(part, child, name)]

"""vmap: runs a function of single samples on a whole batch at once."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .. import errors
from ..contexts import restoring
from ..core import alias
from ..core.op import TABLE, Op
from ..core.record import Box
from ..core.state import RECORDING, is_recording, restore_recording, set_recording
from ..functions import shape
from ..functions.joining import cat, stack
from ..levels.draws import SampleLoop
from ..levels.level import DETACH, LevelState, write_back
from ..levels.vmap import Batch, NeedLoop
from ..programs.tracing import examined
from ..table.batching import BatchedParams
from . import tree
from .reverse import common_class, converted, operand_of

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    func: Callable[P, R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """Vectorise func over a dimension of its arguments (the batch dimension).

    If func reads the value of a single sample (`if x > 0`, `x.item()`, `float(x)`), it runs sample by sample instead, with a
    warning that names the line.

    Args:
        func: takes tensors without the mapped dimension; returns a tensor or nested tensors. Keyword arguments are passed
            unmapped.
        in_dims: batch dimension of each argument, or None if it is shared by all samples: one int for all arguments, or
            nested like the arguments.
        out_dims: batch dimension of each output, or None if it is shared by all samples: one int for all outputs, or nested
            like the outputs.
        randomness: whether random numbers drawn inside are "different" or the "same" for the samples, or an "error".
        chunk_size: maximum number of samples to run at once.

    Returns:
        A function of func's arguments with a batch dimension. For array arguments it returns arrays.

    Raises:
        ValueError: if no argument is mapped, for dimensions out of range or not nested like the arguments or outputs, for
            batch sizes that differ, or for an output that is not a tensor.

    Example:
        >>> x, y = tg.arange(6.0).reshape(3, 2), tg.ones(2)
        >>> tg.func.vmap(tg.dot, in_dims=(0, None))(x, y)
        tensor([1., 5., 9.])
        >>> tg.func.vmap(tg.func.grad(lambda row: (row**3).sum()))(x)  # the gradient of each sample
        tensor([[ 0.,  3.],
                [12., 27.],
                [48., 75.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    name = getattr(func, "__name__", repr(func))
    if not all([d is None or isinstance(d, int) for d in tree.flatten(out_dims)[0]]):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )

    @functools.wraps(func, updated=())
    @restoring
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten(args)
        dims = mapped_dims(name, in_dims, args, leaves, spec)
        fronts = [x if d is None else moved(operand_of(x), d, 0) for x, d in zip(leaves, dims, strict=True)]
        n = batch_size([x._d.shape[0] for x, d in zip(fronts, dims, strict=True) if d is not None], in_dims)
        batched = [d is not None for d in dims]
        call = functools.partial(func, **kwargs) if kwargs else func
        step = chunk_size or n
        parts = []
        with contextlib.nullcontext() if step >= n else SampleLoop(randomness) as loop:
            for i in range(0, n, step) if n else (0,):
                if loop is not None:
                    loop.restart()
                part = [x[i : i + step] if b and step < n else x for x, b in zip(fronts, batched, strict=True)]
                parts.append(run_batch(call, spec, batched, randomness, part, min(step, n - i), out_dims, name))
        outs, out_spec, result_dims = parts[0]
        if len(parts) > 1:
            columns = zip(*[p[0] for p in parts], strict=True)
            outs = [concatenated_chunks(c, d, name, step) for c, d in zip(columns, result_dims, strict=True)]
        cls = common_class([x for x, b in zip(leaves, batched, strict=True) if b])
        given = {(id(x), d): leaf for x, d, leaf in zip(fronts, dims, leaves, strict=True) if isinstance(leaf, Box)}
        outs = [
            given[id(y), d] if (id(y), d) in given else converted(y if d is None else moved(y, 0, d), cls)
            for y, d in zip(outs, result_dims, strict=True)
        ]
        return tree.unflatten(out_spec, outs)

    return mapped


def mapped_dims(name: str, in_dims: Any, args: Any, leaves: list[Any], spec: tree.Spec) -> list[int | None]:
    """The batch dimension of each leaf of the arguments, checked and nonnegative."""
    api = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"{api}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    dims = broadcast_dims(in_dims, args)
    if dims is None:
        raise ValueError(
            f"{api}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree.flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    return [checked_dim(x, d, api) for x, d in zip(leaves, dims, strict=True)]


def batch_size(sizes: list[int], in_dims: Any) -> int:
    """The batch size."""
    if not sizes:
        raise ValueError(f"vmap: Expected at least one Tensor to vmap over; got in_dims={in_dims}, None everywhere")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return sizes[0]


@restoring
def run_batch(
    func: Callable[..., Any],
    spec: tree.Spec,
    batched: list[bool],
    randomness: str,
    leaves: list[Any],
    n: int,
    out_dims: Any = 0,
    name: str = "f",
) -> tuple[list[Any], tree.Spec, list[Any]]:
    """Outputs of all samples, batch dimension first unless their out_dim is None; their structure; their out_dims."""
    level = Batch(n, randomness)
    try:
        with level:
            wrapped = [level.wrap(x, True) if b else x for x, b in zip(leaves, batched, strict=True)]
            result = func(*tree.unflatten(spec, wrapped))
            if level.asked_at is not None:  # func caught the signal
                raise NeedLoop(level)
            outs, out_spec = tree.flatten(result)
            result_dims = output_dims(out_dims, result, out_spec, name)
            del result
            origins = [None if d is None else origin(y, wrapped, batched) for y, d in zip(outs, result_dims, strict=True)]
            outs = [stacked(level, y, d, name) for y, d in zip(outs, result_dims, strict=True)]
            writes = level.writes(leaves, wrapped)
            del wrapped
            level.check_written()
        write_back(writes)
        outs = [y if o is None else on_memory_of(leaves[o[0]], o[1], n, y) for y, o in zip(outs, origins, strict=True)]
        return outs, out_spec, result_dims
    except NeedLoop as signal:
        if signal.level is not level:
            raise
    except Exception:
        if level.asked_at is None:
            raise  # an error of func itself, not a consequence of the signal
    level.roll_back()
    assert level.asked_at is not None
    if not n:
        raise errors.no_sample()
    warnings.warn_explicit(errors.vmap_loop(), UserWarning, *level.asked_at)
    with SampleLoop(randomness) as loop:
        columns, out_spec, result_dims = run_loop(func, spec, batched, leaves, n, out_dims, name, loop)
        outs = [stacked_samples(c, d, name, level.asked_at) for c, d in zip(columns, result_dims, strict=True)]
        return outs, out_spec, result_dims


def origin(y: Any, wrapped: list[Any], batched: list[bool]) -> tuple[int, list[Any]] | None:
    """Which batched argument an output is or looks at, and through which views; None if it looks at none."""
    views: list[Any] = []
    while isinstance(y, Box) and type(y._st) is LevelState and y._st.base is not None:
        y, op, params, _ = y._st.base
        views.append((op, params))
    i = next((i for i, x in enumerate(wrapped) if x is y and batched[i]), None)
    return None if i is None or not all([isinstance(op, Op) or op is DETACH for op, _ in views]) else (i, views[::-1])


def on_memory_of(x: Any, views: list[Any], n: int, y: Any) -> Any:
    """An output, batch dimension first, as a view of the argument at which it looks: a write into one shows in the other."""
    previous = RECORDING.get()
    try:
        set_recording(is_recording() and has_history(y))
        for op, params in views:
            if op is DETACH:
                x = alias.detached(x)
                continue
            steps = op.batch.steps(n, x._d.shape[1:], params) if isinstance(op.batch, BatchedParams) else [(None, params)]
            for name, own in steps:
                x = alias.view(x, op if name is None else TABLE[name], *own)
        return x
    finally:
        restore_recording(previous)


def has_history(t: Any) -> bool:
    """Whether a tensor, or one below it, depends on what requires grad."""
    while not t._s and type(t._st) is LevelState:
        t = t._st.primal
    return bool(t._s)


def stacked(level: Batch, y: Any, dim: int | None, name: str) -> Any:
    """An output with the batch dimension first; unchanged if its out_dim is None."""
    if dim is not None:
        return level.physical(checked_output(y, name))
    primal, batched = level.unwrap(y)
    if batched:
        raise shared_differs(name)
    return primal


def shared_differs(name: str) -> ValueError:
    return ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")


def moved(x: Any, source: int, destination: int) -> Any:
    return x if source == destination else shape.movedim(x, source, destination)


def run_loop(
    func: Callable[..., Any],
    spec: tree.Spec,
    batched: list[bool],
    leaves: list[Any],
    n: int,
    out_dims: Any,
    name: str,
    loop: SampleLoop,
) -> tuple[list[Any], tree.Spec, list[Any]]:
    """Run the samples one by one: the outputs, of each what the samples give."""
    rows = []
    for i in range(n):
        loop.restart()
        result = func(*tree.unflatten(spec, [x[i] if b else x for x, b in zip(leaves, batched, strict=True)]))
        outs, out_spec = tree.flatten(result)
        result_dims = output_dims(out_dims, result, out_spec, name)
        rows.append([y if d is None else checked_output(y, name) for y, d in zip(outs, result_dims, strict=True)])
    return list(zip(*rows, strict=True)), out_spec, result_dims


def stacked_samples(column: Sequence[Any], dim: int | None, name: str, asked_at: tuple[str, int]) -> Any:
    """An output, batch dimension first unless its out_dim is None, from those of the samples."""
    if dim is None:
        return common(column, name)
    for i, y in enumerate(column):
        if y._d.shape != column[0]._d.shape:
            raise errors.vmap_shapes(name, column[0]._d.shape, i, y._d.shape, asked_at)
    return stack(list(column))


def concatenated_chunks(column: Sequence[Any], dim: int | None, name: str, step: int) -> Any:
    """An output, batch dimension first unless its out_dim is None, from those of the chunks, of `step` samples each."""
    if dim is None:
        return column[0]
    for i, y in enumerate(column):
        if y._d.shape[1:] != column[0]._d.shape[1:]:
            raise errors.vmap_shapes(name, column[0]._d.shape[1:], i * step, y._d.shape[1:])
    return cat(list(column))


def common(column: Sequence[Any], name: str) -> Any:
    """The value shared by all samples."""
    first = column[0]
    for y in column[1:]:
        if y is not first and not (np.array_equal(examined(y), examined(first)) if isinstance(y, Box) else y == first):
            raise shared_differs(name)
    return first


def checked_output(y: Any, name: str) -> Any:
    if not isinstance(y, Box):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    return y


def checked_dim(x: Any, d: Any, api: str) -> int | None:
    """A batch dimension, made nonnegative and checked against its argument."""
    if d is None:
        return None
    if not isinstance(d, int):
        raise ValueError(f"{api}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None.")
    if not isinstance(x, Box | np.ndarray):
        raise ValueError(
            f"{api}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
            "arguments, please use None as the respective in_dim"
        )
    rank: int = x.ndim  # type: ignore[union-attr]
    if not -rank <= d < rank:
        raise ValueError(
            f"{api}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {rank} so expected in_dim "
            f"to satisfy -{rank} <= in_dim < {rank}."
        )
    return d % rank


def broadcast_dims(dims: Any, structure: Any) -> list[Any] | None:
    """One entry per leaf, from dims given as one int or nested like a prefix of the structure; None if they do not match."""
    children = None if isinstance(structure, tree.LEAF_TYPES) else tree.children_of(structure)
    if children is not None and type(dims) is type(structure) and type(dims) in tree.REGISTERED:
        return broadcast_dims(list(tree.REGISTERED[type(dims)][0](dims)[0]), children[1])
    if not isinstance(dims, tuple | list | dict):
        return [dims] * len(tree.flatten(structure)[0])
    if children is None or len(dims) != len(children[1]):
        return None
    if type(dims) is not type(structure) and (type(dims) is not tuple or isinstance(structure, list | dict)):
        return None
    if isinstance(dims, dict) and isinstance(structure, dict) and dims.keys() != structure.keys():
        return None
    given = [dims[k] for k in structure] if isinstance(dims, dict) else dims
    result: list[Any] = []
    for part, child in zip(given, children[1], strict=True):
        found = broadcast_dims(part, child)
        if found is None:
            return None
        result += found
    return result


def alone(out_dims: Any, result: Any) -> bool:
    """Whether a tuple of one dim stands for that of a single tensor."""
    return isinstance(result, Box) and type(out_dims) is tuple and len(out_dims) == 1


def holds_none(dims: Any, structure: Any) -> bool:
    """Whether None stands where dims, nested like the structure, want a tensor."""
    if structure is None or dims is None:
        return dims is not None
    if isinstance(structure, tree.LEAF_TYPES) or (children := tree.children_of(structure)) is None:
        return False
    if not isinstance(dims, tuple | list | dict):
        return any([holds_none(dims, child) for child in children[1]])
    given = [dims[k] for k in structure] if isinstance(dims, dict) else dims
    return any([holds_none(part, child) for part, child in zip(given, children[1], strict=True)])


def output_dims(out_dims: Any, result: Any, spec: tree.Spec, name: str) -> list[Any]:
    """The batch dimension of each leaf of the outputs."""
    result_dims = broadcast_dims(out_dims[0] if alone(out_dims, result) else out_dims, result)
    if result_dims is not None:
        if holds_none(out_dims, result):
            checked_output(None, name)
        return result_dims
    raise ValueError(
        f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
        f"out_dims has structure {tree.flatten(out_dims)[1]} but outputs has structure {spec}."
    )

"""Jacobians and Hessians, by one batched reverse or forward pass over all directions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from ..contexts import restoring
from ..core.level import LEVEL
from ..core.record import Box, running_trace, wrap
from ..core.state import is_recording
from ..core.vjp import arrays, bottom, fixed_like, zeros_like
from ..functions import shape
from ..functions.joining import cat
from ..levels.forward import Dual
from ..levels.level import write_back
from . import tree
from .batch import run_batch
from .forward import JVP, moving_primals
from .reverse import (
    Inputs,
    checked_outputs,
    common_class,
    converted,
    parts_of,
    regrouped,
    replaced,
    result_class,
    split_aux,
)

P = ParamSpec("P")
A = TypeVar("A")
Argnums = int | tuple[int, ...]


def refuse_complex(tensors: list[Any], api: str, what: str) -> None:
    for i, t in enumerate(tensors):
        if t._d.dtype.kind == "c":
            raise RuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def unit_vectors(start: int, stop: int, total: int, like: Any) -> Any:
    """Unit vectors start .. stop of the tensor's space, in its shape and dtype, stacked in front."""
    return fixed_like(np.eye(stop - start, total, start, like._d.dtype).reshape(stop - start, *like._d.shape), like)


def batched(function: Callable[..., list[Any]], rows: list[Any], n: int, randomness: str = "error") -> list[Any]:
    """Outputs of a function of samples for a batch of them."""
    return run_batch(function, tree.flatten(tuple(rows))[1], [True] * len(rows), randomness, rows, n)[0]


def vjps(inputs: Inputs, y: Any, chunk_size: int | None) -> list[Any]:
    """Jacobian of one output by every input, the output's shape first; None where it does not depend on one."""
    if y._d.size == 1:
        rows = [tensor(g) for g in inputs.vjp([y], [None], True)]
        return [None if g is None else shape.reshape(g, (*y._d.shape, *g._d.shape)) for g in rows]
    reached: list[bool] = []

    def vjp_fn(cotangent: Any) -> list[Any]:
        got = inputs.vjp([y], [cotangent], True)
        reached[:] = [g is not None for g in got]
        return [tensor(g) for g in got if g is not None]

    total = y._d.size
    step = chunk_size or total or 1
    ranges = [(i, min(i + step, total)) for i in range(0, total, step)]
    chunks = [batched(vjp_fn, [unit_vectors(i, j, total, y)], j - i) for i, j in ranges]
    columns = iter([c[0] if len(c) == 1 else cat(list(c)) for c in zip(*chunks, strict=True)])
    rows = [next(columns) if r else None for r in reached] or [None] * len(inputs.tensors)
    return [None if g is None else shape.reshape(g, (*y._d.shape, *g._d.shape[1:])) for g in rows]


def tensor(g: Any) -> Any:
    """A cotangent as a tensor."""
    return g if g is None or isinstance(g, Box) else wrap(arrays.ensure_owned(g))


def arranged(rows: list[list[Any]], out_spec: tree.Spec, parts: list[tuple[list[Any], tree.Spec]], single: bool) -> Any:
    """The Jacobians of every output by every leaf in the outputs' structure, each in the arguments' structure."""
    blocks = [regrouped(parts, row) for row in rows]
    return tree.unflatten(out_spec, [block[0] if single else tuple(block) for block in blocks])


def in_reverse(
    func: Callable[..., Any], argnums: Any, has_aux: bool, chunk_size: int | None, args: Any, kwargs: Any, tall: bool = False
) -> tuple[Any, Any]:
    """(Jacobian, aux) by one batched replay for each output. With `tall`, None for it if forward mode takes fewer passes."""
    parts, positions = parts_of(argnums, args)
    inputs = Inputs([leaf for leaves, _ in parts for leaf in leaves])
    refuse_complex(inputs.tensors, "jacrev", "inputs")
    given = replaced(args, positions, regrouped(parts, inputs.tensors))
    result, aux = split_aux(inputs.call(func, given, kwargs), has_aux, "jacrev(f, ...)")
    del given
    outputs, out_spec = checked_outputs(result)
    if tall and sum([t._d.size for t in inputs.tensors]) < sum([y._d.size for y in outputs]):
        return None, None
    refuse_complex(outputs, "jacrev", "outputs")
    aux = tree.mapped(inputs.output, aux) if has_aux else None
    rows = []
    for y in outputs:
        row = []
        for x, t, block in zip(inputs.leaves, inputs.tensors, vjps(inputs, y, chunk_size), strict=True):
            if block is None:
                block = zeros_like(t, (*y._d.shape, *t._d.shape))
            row.append(converted(inputs.for_caller(block), result_class(x)))
        rows.append(row)
    inputs.finish()
    return arranged(rows, out_spec, parts, not isinstance(argnums, tuple)), aux


@overload
def jacrev(
    func: Callable[P, tuple[Any, A]], argnums: Argnums = 0, *, has_aux: Literal[True], chunk_size: int | None = None
) -> Callable[P, tuple[Any, A]]: ...
@overload
def jacrev(
    func: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, Any]: ...
def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of func in reverse mode, all rows in one batched backward pass.

    Args:
        func: takes tensors; returns a tensor or nested tensors.
        argnums: position of the argument to differentiate by, or a tuple of them.
        has_aux: func returns (output, aux); the result is then (Jacobian, aux).
        chunk_size: maximum number of rows computed at once, to save memory.

    Returns:
        A function of func's arguments. Its result has the structure of the output, and in the place of each tensor the
        structure of the argument (a tuple of them for a tuple of argnums), with shapes (*output.shape, *argument.shape).
        Arrays and numbers give arrays and numbers.

    Raises:
        RuntimeError: for complex or integer arguments and outputs, or argnums out of range.
        ValueError: for an argument that is not a number, array or tensor.

    Example:
        >>> a = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> tg.func.jacrev(lambda x: a @ x)(tg.ones(2))
        tensor([[1., 2.],
                [3., 4.]])
    """
    if chunk_size is not None and chunk_size < 1:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        result, aux = in_reverse(func, argnums, has_aux, chunk_size, args, kwargs)
        return (result, aux) if has_aux else result

    return jacobian


@restoring
def in_forward(
    func: Callable[..., Any],
    argnums: Any,
    has_aux: bool,
    randomness: str,
    args: Any,
    kwargs: Any,
    respects_no_grad: bool = False,
) -> tuple[Any, Any]:
    """(Jacobian, aux) by one forward pass with a batch of tangents.

    With `respects_no_grad` values made under no_grad are constant.
    """
    parts, positions = parts_of(argnums, args)
    leaves = [leaf for part, _ in parts for leaf in part]
    inputs = moving_primals(leaves)
    refuse_complex(inputs, "jacfwd", "inputs")
    sizes = [x._d.size for x in inputs]
    n = sum(sizes)
    outer = LEVEL.get()
    values: list[Any] = []
    writes: list[tuple[Any, Any]] = []
    others, others_spec = tree.flatten(([a for i, a in enumerate(args) if i not in positions], kwargs))
    out_spec, aux = tree.LEAF, None

    def push(*tangents: Any) -> list[Any]:
        nonlocal out_spec, aux
        here = LEVEL.get()
        with Dual(respects_no_grad and is_recording()) as level:
            level.name = "jacfwd"
            duals = [level.wrap(x, t) for x, t in zip(inputs, tangents, strict=True)]
            fixed = [level.wrap(x, None) if isinstance(x, Box) else x for x in others]
            rest, named = tree.unflatten(others_spec, fixed)
            given = [rest.pop(0) if i not in positions else None for i in range(len(args))]
            result, aux = split_aux(
                func(*replaced(given, positions, regrouped(parts, duals)), **named), has_aux, "jacfwd(f, ...)"
            )
            outputs, out_spec = checked_outputs(result, JVP)
            aux = tree.mapped(lambda a: first_sample(level.unwrap(a)[0], here, outer), aux) if has_aux else None
            pairs = [level.unwrap(y) for y in outputs]
            values[:] = [zeros_like(y) for y in outputs]
            found = level.writes([*inputs, *others], [*duals, *fixed])
            writes[:] = [(x, first_sample(value, here, outer)) for x, value in found]
            del result, outputs, duals, fixed, rest, named
            level.check_written()
        return [zero if t is None else t for zero, (_, t) in zip(values, pairs, strict=True)]

    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    basis = [
        fixed_like(np.eye(n, size, -start, x._d.dtype).reshape(n, *x._d.shape), x)
        for x, size, start in zip(inputs, sizes, starts, strict=True)
    ]
    rows = []
    for columns in batched(push, basis, n, randomness):
        row = []
        for x, t, size, start in zip(leaves, inputs, sizes, starts, strict=True):
            block = shape.movedim(columns[start : start + size], 0, -1)
            row.append(converted(shape.reshape(block, (*block._d.shape[:-1], *t._d.shape)), result_class(x)))
        rows.append(row)
    write_back(writes)
    aux = tree.mapped(lambda a: converted(a, common_class(leaves)), aux) if has_aux else None
    return arranged(rows, out_spec, parts, not isinstance(argnums, tuple)), aux


def first_sample(t: Any, here: Any, outer: Any) -> Any:
    """A tensor without the level `here` that was opened inside `outer`: of a batch, its first sample."""
    if here is outer or not isinstance(t, Box):
        return t
    primal, batched = here.unwrap(t)
    return primal[0] if batched else primal


@overload
def jacfwd(
    func: Callable[P, tuple[Any, A]], argnums: Argnums = 0, *, has_aux: Literal[True], randomness: str = "error"
) -> Callable[P, tuple[Any, A]]: ...
@overload
def jacfwd(
    func: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[P, Any]: ...
def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of func in forward mode, all columns in one batched pass.

    Args:
        func, argnums, has_aux: see `jacrev`. Values that func computes under `no_grad` are differentiated too.
        randomness: treatment of random numbers drawn inside; see `vmap`.

    Returns:
        A function of func's arguments; see `jacrev`.

    Raises:
        RuntimeError: for complex or integer arguments and outputs, or argnums out of range.
        ValueError: for an argument that is not a number, array or tensor.

    Example:
        >>> tg.func.jacfwd(lambda x: tg.stack([x.sum(), x.prod(), x[0]]))(tg.tensor([2.0, 3.0]))
        tensor([[1., 1.],
                [3., 2.],
                [1., 0.]])
    """

    @functools.wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        result, aux = in_forward(func, argnums, has_aux, randomness, args, kwargs)
        return (result, aux) if has_aux else result

    return jacobian


def jacobian(f: Callable[P, Any], argnums: Argnums = 0, *, argnum: int | None = None) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of f in the mode that needs fewer passes.

    Forward mode is used if there are more outputs than inputs; f is then called twice. Values computed under `no_grad` are
    constants in either mode. See `jacrev` for the result.

    Args:
        f: takes tensors; returns a tensor or nested tensors.
        argnums: position of the argument to differentiate by, or a tuple of them.
        argnum: alias of argnums.

    Returns:
        A function of f's arguments; see `jacrev`.

    Example:
        >>> tg.func.jacobian(lambda x: x[0] * x)(tg.tensor([2.0, 3.0]))
        tensor([[4., 0.],
                [3., 2.]])
    """
    chosen = argnums if argnum is None else argnum

    @functools.wraps(f, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        result, _ = in_reverse(f, chosen, False, None, args, kwargs, True)
        return in_forward(f, chosen, False, "same", args, kwargs, True)[0] if result is None else result

    return jacobian


@overload
def hessian(
    func: Callable[P, tuple[Any, A]], argnums: Argnums = 0, *, has_aux: Literal[True]
) -> Callable[P, tuple[Any, A]]: ...
@overload
def hessian(func: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False) -> Callable[P, Any]: ...
def hessian(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Hessian of func: the gradient in reverse mode, differentiated in forward mode.

    Args:
        func: takes tensors; returns a tensor, usually of one element, or nested tensors.
        argnums: position of the argument to differentiate by, or a tuple of them.
        has_aux: func returns (output, aux); the result is then (Hessian, aux).

    Returns:
        A function of func's arguments that returns the Jacobian of the Jacobian, see `jacrev`, of shape
        (*output.shape, *argument.shape, *argument.shape). With a tuple of argnums, a tuple of tuples of blocks. Values that
        func computes under `no_grad` are constants for the gradient, but not for its derivative. Where the result is not
        finite, but is by a backward pass through the recorded gradient (as of equal eigenvalues), it is that; func is then
        called twice.

    Example:
        >>> tg.func.hessian(lambda x: x[0] ** 2 * x[1])(tg.tensor([1.0, 2.0]))
        tensor([[4., 2.],
                [2., 0.]])
    """
    gradient = jacrev(func, argnums, has_aux=has_aux)

    @functools.wraps(func, updated=())
    def hessian(*args: Any, **kwargs: Any) -> Any:
        found = in_forward(gradient, argnums, has_aux, "same", args, kwargs)
        if running_trace() is None and not all_finite(found[0]):  # as where eigenvalues are equal
            again = in_reverse(gradient, argnums, has_aux, None, args, kwargs)
            found = again if all_finite(again[0]) else found
        return found if has_aux else found[0]

    return hessian


def all_finite(result: Any) -> bool:
    return all([arrays.finite(bottom(t) if isinstance(t, Box) else t) for t in tree.flatten(result)[0]])


def elementwise_grad(f: Callable[P, Any], argnums: Argnums = 0, *, argnum: int | None = None) -> Callable[P, Any]:
    """Return a function that computes the gradient of f's summed output: the derivative of an elementwise f.

    Args:
        f: takes tensors; returns a tensor of any shape.
        argnums: position of the argument to differentiate by, or a tuple of them.
        argnum: alias of argnums.

    Returns:
        A function of f's arguments that returns the gradient, of the argument's shape, or a tuple for a tuple of argnums.

    Example:
        >>> tg.func.elementwise_grad(tg.sin)(tg.tensor([0.0, 1.0]))
        tensor([1.0000, 0.5403])
    """
    chosen = argnums if argnum is None else argnum

    @functools.wraps(f, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        parts, positions = parts_of(chosen, args)
        inputs = Inputs([leaf for leaves, _ in parts for leaf in leaves])
        outputs, _ = checked_outputs(inputs.call(f, replaced(args, positions, regrouped(parts, inputs.tensors)), kwargs))
        gradients = regrouped(parts, inputs.gradients(outputs, [None] * len(outputs), False))
        inputs.finish()
        return tuple(gradients) if isinstance(chosen, tuple) else gradients[0]

    return gradient

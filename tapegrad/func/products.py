"""Products of Hessians and Jacobians with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import dtypes, errors
from ..contexts import restoring
from ..core.level import LEVEL
from ..core.state import RECORDING, restore_recording, set_recording
from ..core.vjp import fixed_like
from ..functions import create
from ..levels.diff_inputs import DiffInputs
from ..levels.forward import Linearize
from ..levels.level import write_back
from . import tree
from .forward import jvp, tangent_of
from .jacobian import tensor
from .reverse import as_primal, checked_outputs, common_class, converted, differentiate, operand_of, vjp

R = TypeVar("R")
T = TypeVar("T")


def hvp(f: Callable[..., R], primals: T, tangents: T) -> tuple[R, T]:
    """The value of a scalar function and a Hessian-vector product, by forward mode over the gradient.

    Args:
        f: takes the primals as tensors and returns a 0-dim tensor.
        primals: a tuple of arguments; or one tensor, array or number.
        tangents: the vector, of the primals' structure and shapes.

    Returns:
        (value, product), the product in the structure of the primals.

    Raises:
        RuntimeError: if f does not return a real tensor of one element, or for tangents that do not match the primals.

    Example:
        >>> x, v = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0])
        >>> tg.func.hvp(lambda x: (x**3).sum(), x, v)
        (tensor(9.), tensor([ 6., 12.]))
    """
    xs, vs, single = as_tuples(primals, tangents)
    (_, value), (product, _) = jvp(lambda *args: gradients(f, args), xs, vs)
    return value, product[0] if single else product


def vhp(f: Callable[..., R], primals: T, tangents: T) -> tuple[R, T]:
    """The value of a scalar function and a vector-Hessian product, by reverse mode over the gradient; see `hvp`.

    Args:
        f, primals, tangents: as for `hvp`.

    Example:
        >>> x, v = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0])
        >>> tg.func.vhp(lambda x: (x**3).sum(), x, v)
        (tensor(9.), tensor([ 6., 12.]))
    """
    xs, vs, single = as_tuples(primals, tangents)
    _, vjp_fn, value = vjp(lambda *args: gradients(f, args), *xs, has_aux=True)
    product: Any = vjp_fn(vs)
    return converted(value, common_class(tree.flatten(xs)[0])), product[0] if single else product


def as_tuples(primals: Any, tangents: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], bool]:
    """Primals and tangents as tuples, and whether one was given by itself."""
    return (primals, tangents, False) if isinstance(primals, tuple) else ((primals,), (tangents,), True)


def gradients(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    """(gradients by every argument, value) of a scalar function."""
    g, value, _ = differentiate(f, tuple(range(len(args))), False, args, {}, True)
    return g, value


@restoring
def linearize(func: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., R]]:
    """Evaluate func at the primals, and return its derivative there as a linear function that does not run func again.

    A forward pass records the linear map of tangents, which is then transposed twice.

    Args:
        func: takes the primals as tensors and returns a tensor or nested tensors.
        primals: tensors, arrays, numbers, or nested containers of them.

    Returns:
        (output, jvp_fn). jvp_fn(*tangents), with tangents of the primals' structure and shapes, gives the output's tangent.

    Raises:
        RuntimeError: if an output is not a floating-point tensor; from jvp_fn, for tangents that do not match the primals.

    Example:
        >>> y, derivative = tg.func.linearize(tg.sin, tg.tensor(0.0))
        >>> derivative(tg.tensor(2.0))
        tensor(2.)
    """
    leaves, spec = tree.flatten(primals)
    inputs = [as_primal(x) for x in leaves]
    outer = LEVEL.get()
    tangents = DiffInputs([ones_like(x) for x in inputs], outer)
    with Linearize() as level:
        duals = [level.wrap(x, t) for x, t in zip(inputs, tangents.tensors, strict=True)]
        result = func(*tree.unflatten(spec, duals))
        outputs, out_spec = checked_outputs(result)
        pairs = [level.unwrap(y) for y in outputs]
        writes = level.writes(inputs, duals)
        del result, outputs, duals
        level.check_written()
    write_back(writes)
    cls = common_class(leaves)
    value = tree.unflatten(out_spec, [converted(y, cls) for y, _ in pairs])
    moves = [t is not None and t._s != 0 for _, t in pairs]
    cotangents = DiffInputs([ones_like(t) for (_, t), move in zip(pairs, moves, strict=True) if move], outer)
    previous = RECORDING.get()
    try:
        set_recording(True)
        rows = tangents.vjp([t for (_, t), move in zip(pairs, moves, strict=True) if move], cotangents.tensors, False)
    finally:
        restore_recording(previous)
    reached, rows = [g is not None for g in rows], [g for g in rows if g is not None]
    forms = [{"size": y._d.shape, "dtype": dtypes.of(y._d.dtype), "device": y.device} for y, _ in pairs]
    del pairs

    def jvp_fn(*directions: Any) -> Any:
        given, got_spec = tree.flatten(directions)
        cls = common_class([*leaves, *given])
        if got_spec != spec:
            raise RuntimeError(f"Expected the tangents {got_spec} to have the same argspec as the primals {spec}")
        given = [operand_of(t) for t in given]
        for i, (x, t) in enumerate(zip(inputs, given, strict=True)):
            if t._d.shape != x._d.shape:
                raise errors.linearized_tangent(i, t._d.shape, x._d.shape)
        vs = [tangent_of(x, t) for x, t in zip(inputs, given, strict=True)]
        got = iter(cotangents.vjp(list(rows), [v for v, r in zip(vs, reached, strict=True) if r], True))
        outs = [tensor(next(got)) if move else None for move in moves]
        outs = [create.zeros(**form) if t is None else t for t, form in zip(outs, forms, strict=True)]
        return tree.unflatten(out_spec, [converted(t, cls) for t in outs])

    return value, jvp_fn


def ones_like(t: Any) -> Any:
    """Untracked ones of a tensor's shape and dtype. With zeros, strong zero would hide infinite derivatives."""
    return fixed_like(np.ones(t._d.shape, t._d.dtype), t)

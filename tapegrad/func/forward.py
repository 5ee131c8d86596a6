"""Jacobian-vector products in forward mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from .. import errors
from ..contexts import restoring
from ..core.record import Box
from ..core.vjp import zeros_like
from ..dtypes import is_inexact
from ..levels.forward import Dual
from ..levels.level import write_back
from . import tree
from .reverse import as_primal, common_class, converted, operand_of, split_aux

A = TypeVar("A")
R = TypeVar("R")
JVP = "jvp(f, primals, tangents)"


@overload
def jvp(
    func: Callable[..., R],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    func: Callable[..., tuple[R, A]],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
@restoring
def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Evaluate func at the primals and its derivative along the tangents, in one forward pass.

    What func writes into its arguments goes to the primals; the tangents stay.

    Args:
        func: takes the primals as tensors and returns a tensor or nested tensors.
        primals: tensors, ndarrays, numbers, or nested containers of them.
        tangents: the tangents, of the primals' structure and shapes.
        strict: raise if an output does not depend on the primals, instead of a zero tangent.
        has_aux: func returns (output, aux).

    Returns:
        (output, tangent of the output) or (output, tangent, aux), of the output's structure.

    Raises:
        RuntimeError: for tangents that do not match the primals, or with `strict` for an independent output.
        ValueError: for a primal that is not a number, array or tensor.

    Example:
        >>> x, v = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 0.0])
        >>> tg.func.jvp(lambda x: x**3, (x,), (v,))
        (tensor([1., 8.]), tensor([3., 0.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals). Got {type(primals)}"
        )
    xs, spec = tree.flatten(primals)
    if not xs:
        raise RuntimeError(f"{JVP}: Expected primals to contain at least one Tensor.")
    ts, tangent_spec = tree.flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of "
            f"3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {tangent_spec}"
        )
    inputs = moving_primals(xs)
    directions = [tangent_of(x, t) for x, t in zip(inputs, ts, strict=True)]
    with Dual() as level:
        duals = [level.wrap(x, t) for x, t in zip(inputs, directions, strict=True)]
        result, aux = split_aux(func(*tree.unflatten(spec, duals)), has_aux, JVP)
        outputs, out_spec = tree.flatten(result)
        if not outputs:
            raise errors.empty_output(JVP, result)
        cls = common_class(xs)
        pairs = [parts(level, y, strict) for y in outputs]
        aux = tree.mapped(lambda a: level.unwrap(a)[0], aux) if has_aux else None
        writes = level.writes(inputs, duals)
        del result, outputs, duals
        level.check_written()
    write_back(writes)
    value = tree.unflatten(out_spec, [converted(y, cls) for y, _ in pairs])
    tangent = tree.unflatten(out_spec, [converted(t, cls) for _, t in pairs])
    return (value, tangent, tree.mapped(lambda a: converted(a, cls), aux)) if has_aux else (value, tangent)


def moving_primals(leaves: list[Any]) -> list[Any]:
    """The tensors that stand for leaves in forward mode."""
    for x in leaves:
        if isinstance(x, Box) and not is_inexact(x._d.dtype):
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")  # type: ignore[attr-defined]
    return [as_primal(x) for x in leaves]


def tangent_of(x: Any, t: Any) -> Any:
    """A tangent as a tensor, checked to have its primal's shape, in its dtype."""
    t = operand_of(t)
    if t._d.shape != x._d.shape:
        raise errors.tangent_size(x._d.shape, t._d.shape)
    return t if t._d.dtype == x._d.dtype else t.to(x.dtype)


def parts(level: Dual, y: Any, strict: bool) -> tuple[Any, Any]:
    """Primal and tangent of an output."""
    if not isinstance(y, Box):
        raise errors.not_tensor_output(JVP, y)
    value, tangent = level.unwrap(y)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
                "with strict=True."
            )
        tangent = zeros_like(value)
    return value, tangent

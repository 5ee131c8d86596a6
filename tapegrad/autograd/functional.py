"""Derivatives of functions in PyTorch's older functional form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.gradient import grad
from ..core.modes import enable_grad
from ..ops import create, shape
from ..tensor import Tensor


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """Jacobian of func at inputs: for an output of shape (m..) and an input of shape (n..), a tensor of shape (m.., n..).

    Args:
        func: takes the inputs as tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: record the computation, so that the Jacobian can be differentiated.
        strict: raise if an output does not depend on an input, instead of giving zeros.

    Returns:
        A tensor, or for tuples of outputs (inputs) a tuple over outputs (of tuples over inputs).

    Raises:
        RuntimeError: with strict, for an output independent of an input.
    """
    single_input = isinstance(inputs, Tensor)
    given = (inputs,) if single_input else tuple(inputs)
    with enable_grad():
        xs = [x.clone() if create_graph and x.requires_grad else x.detach().clone().requires_grad_() for x in given]
        outputs = func(*xs)
        single_output = isinstance(outputs, Tensor)
        rows = tuple(_rows(i, y, xs, create_graph, strict) for i, y in enumerate((outputs,) if single_output else outputs))
    per_output = tuple(r[0] if single_input else r for r in rows)
    return per_output[0] if single_output else per_output


def _rows(i: int, y: Any, xs: list[Any], create_graph: bool, strict: bool) -> tuple[Any, ...]:
    """Jacobian of one output: one backward pass an element."""
    if not y.requires_grad:
        if strict:
            raise errors.strict_constant(i)
        return tuple(create.zeros((*y.shape, *x.shape), dtype=x.dtype) for x in xs)
    columns: list[list[Any]] = [[] for _ in xs]
    flat = shape.reshape(y, -1)
    for k in range(y.numel()):
        gs = grad(flat[k], xs, retain_graph=True, create_graph=create_graph, allow_unused=True)
        for j, (column, g, x) in enumerate(zip(columns, gs, xs, strict=True)):
            if g is None and strict:
                raise errors.strict_independent(i, j)
            column.append(create.zeros_like(x) if g is None else g)
    return tuple(
        shape.reshape(shape.stack(column), (*y.shape, *x.shape))
        if column
        else create.zeros((*y.shape, *x.shape), dtype=x.dtype)
        for column, x in zip(columns, xs, strict=True)
    )

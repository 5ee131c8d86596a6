"""A record in a compiled program: the law that needs JAX."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..core.gradient import grad
from ..core.op import FlatIndex, Op
from ..core.record import fixed
from ..jit import compile
from ..refcount import WHY_NOT
from .law import LawError, record_of, samples_of
from .running import call, cotangents_for, differentiable, generator, leaf, wrap_copy

TRIES = 5  # the first call is traced, the next compares; a program that differs is made again three times before it counts


def compiled(op: Op | str) -> None:
    """The record and its first-order gradient run in a program of XLA and give what they give eagerly, on one sample.

    Without JAX nothing is compiled.

    Raises:
        LawError: with the error of the trace, of the compilation or of the comparison.
    """
    op = record_of(op)
    if find_spec("jax") is None or WHY_NOT:  # nothing is compiled then
        return
    samples = samples_of(op)
    arrays, params, _ = next((s for s in samples if s.smooth and differentiable(op, s.arrays)), samples[0])
    moving, params = differentiable(op, arrays), _constants(params)
    rng = generator(op, arrays)

    def outputs_and_gradients(xs: list[Any], seeds: list[Any]) -> tuple[Any, Any]:
        xs = [x.detach().requires_grad_() if i in moving else x for i, x in enumerate(xs)]
        ys = call(op, xs, params)
        pairs = [(y, g) for y, g in zip(ys[: op.differentiable], seeds, strict=False) if y is not None and y.requires_grad]
        outputs, given = [y for y, _ in pairs], [g for _, g in pairs]
        found = grad(outputs, [xs[i] for i in moving], given, allow_unused=True) if pairs else ()
        return [None if y is None else y.detach() for y in ys], found

    program = compile(outputs_and_gradients, fullgraph=True)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", RuntimeWarning)
            for _ in range(TRIES):
                program([leaf(a, False) for a in arrays], [wrap_copy(g) for g in cotangents_for(op, arrays, params, rng)])
    except Exception as e:
        text = f"op {op.name} ({op.kind}) breaks the law compiled: {type(e).__name__}: {e}"
        raise LawError("compiled", op.name, text) from e


def _constants(params: Any) -> Any:
    """Parameters with arrays that a trace takes for constants."""
    if isinstance(params, tuple | list):
        return type(params)([_constants(p) for p in params])
    if isinstance(params, FlatIndex):
        return FlatIndex(_constants(params.at))
    return fixed(params)._d if isinstance(params, np.ndarray) else params

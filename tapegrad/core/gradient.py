"""`backward()`: the whole of a first-order pass where nothing special is asked for; the rest is in `general_gradient`."""

from __future__ import annotations

from typing import Any

from . import general_gradient, leaves, plain_commit
from .box import Box, device_array_types
from .general_gradient import grad as grad
from .level import LEVEL
from .plain_commit import WATCHED_LEAVES, is_plain, leaf_of
from .plain_pass import Pass
from .protocols import arrays
from .state import ANOMALY, TRANSFORMING, current_tape
from .tape import BYTE_SLACK, Tape
from .vjp import GUARDED, LARGE, PLAIN

Tensor: type[Box] = Box
traces = 0  # traces that run now, in all threads


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add the gradient of the tensors' sum, weighted by grad_tensors, to the `.grad` of the leaves (or of `inputs`).

    Inside a function that is being differentiated by `func.grad` or `func.vjp` the computation is recorded.
    """
    if type(tensors) is Tensor and tensors._st is None and grad_tensors is None and inputs is None and not create_graph:
        y, tape = tensors._d, current_tape()
        if tensors._s and y.size == 1 and y.dtype.kind == "f" and is_unwatched(tape):
            walk = Pass([(tensors._s, arrays.ones_like(y))], tape)
            walk.order = sorted(walk.found, reverse=True)
            if not walk.homes and not (walk.order and walk.order[-1] <= tape.special):
                finish(walk, bool(retain_graph))
                return
    general_gradient.backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def is_unwatched(tape: Tape) -> bool:
    """Whether a pass meets no hook, trace, level, transform, anomaly mode or other device."""
    return not (
        traces
        or device_array_types
        or WATCHED_LEAVES
        or tape.hook_refs
        or ANOMALY.get()[0]
        or LEVEL.get() is not None
        or TRANSFORMING.get() is not None
    )


def finish(walk: Pass, retain: bool) -> None:
    """Run the pass, release its entries unless they are retained, and commit the gradients."""
    tape = walk.tape
    heavy = tape.bytes > 0 or tape.bytes_limit > BYTE_SLACK
    warnings = arrays.silence()
    try:
        finals = walk.visit(LARGE if heavy else PLAIN)
        if not arrays.all_finite(finals.values()):
            finals = walk.visit(GUARDED)
    finally:
        arrays.unsilence(warnings)
    if not retain:
        walk.release()
    with plain_commit.ACCUMULATING:
        pairs = [(leaf, g) for s, g in finals.items() if (leaf := leaf_of(s)) is not None]
        if all([is_plain(getattr(leaf, "_g", None)) for leaf, _ in pairs]):
            plain_commit.commit(pairs)
        else:
            leaves.accumulate(pairs, False)

"""`backward()`: the whole of a first-order pass where nothing special is asked for; the rest is in `general_gradient`."""

from __future__ import annotations

from typing import Any

from . import general_gradient, leaves, plain_commit
from .box import Box, device_array_types
from .general_gradient import grad as grad
from .level import LEVEL
from .plain_commit import WATCHED_LEAVES, leaf_of
from .plain_pass import release, walk
from .protocols import arrays
from .state import ANOMALY, TRANSFORMING, current_tape
from .tape import BYTE_SLACK, Tape
from .vjp import GUARDED, LARGE, PLAIN

Tensor: type[Box] = Box
traces = 0  # traces that run now, in all threads


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add the gradient of the tensors' sum, weighted by grad_tensors, to the leaves; `autograd` has its public text."""
    plain = type(tensors) is Tensor and tensors._st is None and grad_tensors is None and inputs is None and not create_graph
    if not plain or not backward_plainly(tensors, bool(retain_graph)):
        general_gradient.backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def is_unwatched(tape: Tape) -> bool:
    """Whether a pass meets no hook, trace, level, transform, anomaly mode or other device."""
    watched = traces or device_array_types or WATCHED_LEAVES or tape.hook_refs or ANOMALY.get()[0]
    return not watched and LEVEL.get() is None and TRANSFORMING.get() is None


def finite_walk(root: int, y: Any, tape: Tape) -> tuple[dict[int, Any], list[int]] | None:
    """`walk` by plain rules, or where a gradient is then not finite, by guarded ones."""
    heavy = tape.bytes > 0 or tape.bytes_limit > BYTE_SLACK
    done = walk(root, arrays.ones_like(y), tape, LARGE if heavy else PLAIN)
    finite = done is None or arrays.all_finite(done[0].values())
    return done if finite else walk(root, arrays.ones_like(y), tape, GUARDED)


def backward_plainly(t: Any, retain: bool) -> bool:
    """Add the gradient of a tensor of one element to the leaves, and release the entries unless they are retained.

    False where that takes more than a walk down the tape; then nothing has been done.
    """
    y, tape = t._d, current_tape()
    if not (t._s and y.size == 1 and y.dtype.kind == "f" and is_unwatched(tape)):
        return False
    done = arrays.quietly(finite_walk, t._s, y, tape)
    if done is None:
        return False
    gradients, order = done
    if not retain:
        release(order, tape, {}, True)
    with plain_commit.ACCUMULATING:
        if not plain_commit.commit(gradients):
            leaves.accumulate([(leaf, g) for s, g in gradients.items() if (leaf := leaf_of(s)) is not None])
    return True

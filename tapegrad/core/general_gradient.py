"""Reverse differentiation of tensors: argument checks, seeds, what becomes of the cotangents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import errors
from ..stack import is_deep, on_new_stack
from .alias import save, sync_only
from .leaves import accumulate, alias_tensor, commit, leaf_of
from .level import LEVEL, level_of
from .protocols import facade, levels
from .record import Box, functional, wrap
from .reverse import BackwardPass
from .slot_hooks import retain as retain_grad
from .state import TASK, TRANSFORMING, is_recording
from .vjp import arrays, fixed_like, zeros_like
from .warning import warn

Tensor: type[Box] = Box
ndarray: Any = type(None)
traces = 0  # traces that run now, in all threads


def as_list(value: Any) -> list[Any]:
    """A list, tuple, generator or other series as a list; a tensor, or what will be refused as one, in a list of its own."""
    if type(value) is list or type(value) is tuple:
        return list(value)
    if value is None or isinstance(value, (Box, facade.GradientEdge)):
        return [value]
    single = isinstance(value, str) or hasattr(value, "__array_interface__") or not isinstance(value, Iterable)
    return [value] if single else list(value)


def tensor_of(function: str, value: Any, output: bool = False) -> Any:
    """The tensor that a gradient edge stands for, as an output or an input; nothing else stands for one."""
    if not isinstance(value, facade.GradientEdge):
        raise errors.bad_input(function, type(value).__name__)
    return facade.tensor_at(value, output)


def seed(function: str, i: int, output: Any, cotangent: Any, record: bool) -> tuple[int, Any]:
    """(slot, cotangent) of an output, checked and converted to its dtype: an array; a tensor if recorded or at a level."""
    if type(output) is type(cotangent) is Tensor and output._st is cotangent._st is None and not record and not traces:
        y, g = output._d, cotangent._d
        if output._s and type(y) is type(g) is ndarray and y.dtype is g.dtype and y.shape == g.shape:
            return output._s, g
    if not isinstance(output, Box):
        output = tensor_of("backward", output, True)
    sync_only(output) if output._st is not None else None
    if cotangent is not None and not isinstance(cotangent, Box):
        raise errors.cotangent_type(type(cotangent).__name__)
    y = output._outline if cotangent is None else output._d
    if cotangent is None and y.size != 1:
        raise errors.not_scalar(y.shape) if output.requires_grad else errors.no_grad_fn(i, is_recording())
    while not output._s and (level := level_of(output)) is not None:
        output = level.captured_primal(output, function)
        cotangent = None if cotangent is None else level.captured_primal(cotangent, "")
    y = output._outline if cotangent is None else output._d
    if not output._s:
        raise errors.no_grad_fn(i, is_recording())
    if cotangent is None:
        if y.dtype.kind == "c":
            raise errors.not_real(y.dtype)
        g = arrays.ones_like(y)
        return output._s, fixed_like(g, output) if record or functional(y) or level_of(output) is not None else g
    sync_only(cotangent) if cotangent._st is not None else None
    if cotangent._d.shape != y.shape:
        raise errors.cotangent_shape(i, cotangent._d.shape, y.shape)
    if (cotangent._d.dtype.kind == "c") != (y.dtype.kind == "c"):
        raise errors.cotangent_complex(i, cotangent._d.dtype, y.dtype)
    if record or functional(y) or level_of(output) is not None or level_of(cotangent) is not None:
        return output._s, cotangent if cotangent._d.dtype == y.dtype else cotangent.to(y.dtype)
    g = save(cotangent)
    return output._s, g if g.dtype == y.dtype else arrays.silently(g.astype, y.dtype)


def seeds(function: str, outputs: list[Any], cotangents: list[Any], record: bool) -> list[tuple[int, Any]]:
    if len(cotangents) == 1 and cotangents[0] is None:
        cotangents = [None] * len(outputs)
    if len(cotangents) != len(outputs):
        raise errors.cotangent_count(len(cotangents), len(outputs))
    roots = [seed(function, i, y, g, record) for i, (y, g) in enumerate(zip(outputs, cotangents, strict=True))]
    if any([isinstance(g, Box) for _, g in roots]):
        return [(s, g if isinstance(g, Box) else wrap(g)) for s, g in roots]
    return roots


def is_deeply_nested() -> bool:
    """Whether passes run in hooks of passes, so deep that the next needs another stack; levels are known in one thread."""
    return TASK.get() is not None and LEVEL.get() is None and is_deep()


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """What `gradient.backward` leaves to be done in general."""
    if is_deeply_nested():
        return on_new_stack(backward, tensors, grad_tensors, retain_graph, create_graph, inputs)
    transforming = TRANSFORMING.get() is not None
    retain = transforming or (create_graph if retain_graph is None else retain_graph)
    create_graph = create_graph or transforming
    wanted = None if inputs is None else as_list(inputs)
    if wanted is not None:
        if not wanted:
            raise errors.empty_inputs("backward")
        wanted = [input_of("backward", i, t) for i, t in enumerate(wanted)]
    roots = seeds("backward", as_list(tensors), as_list(grad_tensors), create_graph)
    slots = None if wanted is None else {t._s for t in wanted}
    walk = BackwardPass(roots, slots, create_graph, retain, runs_inputs=True)
    for t in wanted or ():
        if t._s > 0:
            retain_grad(t)
    finals = walk.run()
    levels.fill(finals, walk.zeros, map(leaf_of, walk.zeros) if wanted is None else wanted)
    accumulate([(t, finals[t._s]) for t in wanted or () if t._s > 0 and t._s in walk.zeros])
    commit({s: g for s, g in finals.items() if s < 0}, create_graph)
    if walk.task is not None:
        walk.task.finish()


def input_of(function: str, i: int, t: Any, allow_untracked: bool = False) -> Any:
    if not isinstance(t, Box):
        t = tensor_of(function, t)
    sync_only(t) if t._st is not None else None
    if not t._s and not allow_untracked:
        raise errors.input_untracked(i)
    return t


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:  # fmt: skip
    """Gradient of the outputs' sum, weighted by grad_outputs, with respect to the inputs; `autograd` has its public text."""
    if isinstance(inputs, dict):
        values = grad(outputs, list(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
                      is_grads_batched, materialize_grads)  # fmt: skip
        return dict(zip(inputs, values, strict=True))
    if not only_inputs:
        warn(errors.NOT_ONLY_INPUTS, FutureWarning)
    if materialize_grads and allow_unused is False:
        raise errors.materialize_conflict()
    unused_ok = bool(allow_unused) or materialize_grads
    wanted = as_list(inputs)
    if not wanted:
        raise errors.empty_inputs("grad")
    wanted = [input_of("grad", i, t, unused_ok) for i, t in enumerate(wanted)]
    transforming = TRANSFORMING.get() is not None
    retain = transforming or (create_graph if retain_graph is None else retain_graph)
    create_graph = create_graph or transforming
    ys, gs = as_list(outputs), as_list(grad_outputs)
    if is_grads_batched:
        return levels.batched_gradient(ys, wanted, gs, retain, create_graph, unused_ok, materialize_grads)
    return gradient(ys, wanted, gs, retain, create_graph, unused_ok, materialize_grads)


def gradient(
    ys: list[Any], wanted: list[Any], gs: list[Any], retain: bool, record: bool, unused_ok: bool, materialize: bool
) -> tuple[Any, ...]:
    if is_deeply_nested():
        return on_new_stack(gradient, ys, wanted, gs, retain, record, unused_ok, materialize)
    roots = seeds("grad", ys, gs, record)
    required = None if unused_ok else [t._s for t in wanted]
    walk = BackwardPass(roots, {t._s for t in wanted if t._s}, record, retain, required)
    finals = walk.run()
    levels.fill(finals, walk.zeros, wanted)
    result: list[Any] = []
    for t in wanted:
        g = finals.get(t._s) if t._s else None
        if g is not None:
            result.append(alias_tensor(g) if isinstance(g, Box) else wrap(arrays.ensure_owned(g)))
        elif materialize:
            zeros = zeros_like(t)
            result.append(zeros.requires_grad_() if record and TRANSFORMING.get() is None else zeros)
        else:
            result.append(None)
    if walk.task is not None:
        walk.task.finish()
    return tuple(result)

"""Control flow on tensors: `cond`, `while_loop` and `scan`.

The body is traced while it runs once; the loop is then one operation, whose derivative is a loop again. A body that cannot
be traced, since it reads tensor values, draws random numbers or writes into tensors from outside, runs as a Python loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from .. import errors
from ..contexts import restoring
from ..core.leaves import alias_tensor
from ..core.level import LEVEL, level_of
from ..core.record import Box, running_trace
from ..core.vjp import TENSOR_XP, zeros_like
from ..functions.joining import stack
from ..functions.operands import tensor
from ..levels.diff_inputs import synced
from ..levels.vmap import Batch, representative
from ..programs.subprogram import SubProgram, SubTrace, slot_hooks_of
from ..table import control
from . import tree

R = TypeVar("R")
Flat = Callable[[Sequence[Any]], list[Any]]
SHORT = 32  # up to that many steps, a Python loop costs less than tracing the body


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Scan f over the first dimension of xs with a carry, and stack the results.

    Equivalent to `for x in xs: carry, y = f(carry, x); ys.append(y)`, as one entry of the tape and one loop of a compiled
    program, with derivatives of any order in both modes. Only the carry is saved at each step; the rest is recomputed in the
    backward pass.

    Args:
        f: takes (carry, x) and returns (carry, y). The carry keeps structure, shapes and dtypes. It runs once, and
            captured tensors, such as parameters of a module, receive gradients too; if it cannot be traced (it reads tensor
            values, draws random numbers, writes into tensors from outside or stores one there) it runs once per step.
        init: the first carry: a tensor, a number or nested containers of them.
        xs: nested containers of tensors to scan along the first dimension; with None, f receives None for x.
        length: number of steps; required without xs.
        reverse: start with the last row; each y has the position of its x.

    Returns:
        (carry, ys), the final carry, and the ys stacked along a new first dimension.

    Raises:
        ValueError: for rows of different lengths, or a carry that changes.

    Example:
        >>> def f(total, x):
        ...     return total + x, total * x
        >>> tg.scan(f, tg.tensor(0.0), tg.tensor([1.0, 2.0, 3.0]))
        (tensor(6.), tensor([0., 2., 9.]))
    """
    carry, spec = leaves_of(init)
    rows, rows_spec = leaves_of(xs)
    n = length_of(rows, length)
    structure: list[tree.Spec] = []

    def step(tensors: Sequence[Any]) -> list[Any]:
        c, x = tensors[: len(carry)], tensors[len(carry) :]
        result = f(tree.unflatten(spec, list(c)), tree.unflatten(rows_spec, list(x)))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(f"tg.scan: f must return a pair (carry, y), got {type(result).__name__}")
        after = checked_carry("scan", carry, spec, result[0])
        ys, ys_spec = returned(result[1])
        structure[:] = [ys_spec]
        return [*after, *ys]

    order = range(n - 1, -1, -1) if reverse else range(n)
    if 0 < n <= SHORT and running_trace() is None and LEVEL.get() is None:
        final, ys = python_loop(step, carry, rows, order)
        return tree.unflatten(spec, final), tree.unflatten(structure[0], ys)
    traced = TracedBody(step, [*carry, *(rows_at(rows, order[0]) if n else [zeros_like(x, x._d.shape[1:]) for x in rows])])
    if traced.subprogram is None:
        if not n:
            raise ValueError(f"tg.scan: the results of a loop without steps are not known: its body has {traced.reason}")
        final, ys = python_loop(step, carry, rows, order, traced.results)
    else:
        final, ys = scanned(traced, carry, rows, n, reverse)
    return tree.unflatten(spec, final), tree.unflatten(structure[0], ys)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., R], carried_inputs: Any, max_steps: int | None = None
) -> R:
    """A loop that continues while a condition on its carry holds.

    In an eager function it is an ordinary Python loop, with gradients of any order. In a compiled one it is one operation,
    which has forward-mode derivatives of any order, and with `max_steps` reverse-mode ones too.

    Args:
        cond_fn: takes the carry (the items of a tuple as arguments) and returns a bool, or a tensor of one bool.
        body_fn: takes the carry and returns the next one, of the same structure, shapes and dtypes.
        carried_inputs: the initial carry: a tuple of tensors, numbers or nested containers; or a single one of these.
        max_steps: maximum number of steps; the loop then ends even if the condition still holds.

    Returns:
        The final carry.

    Raises:
        ValueError: if the carry changes in structure, shape or dtype.
        RuntimeError: in a backward pass through a traced loop without max_steps.

    Example:
        >>> x = tg.tensor(3.0, requires_grad=True)
        >>> y = tg.while_loop(lambda v: v < 100, lambda v: v * v, x)
        >>> y.backward()
        >>> y, x.grad  # x**8 and its derivative
        (tensor(6561., grad_fn=<MulBackward0>), tensor(17496.))
    """
    carry, spec = leaves_of(carried_inputs)

    def called(function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
        given = tree.unflatten(spec, list(tensors))
        return function(*given) if isinstance(given, tuple) else function(given)

    def test(tensors: Sequence[Any]) -> list[Any]:
        return [alias_tensor(predicate("while_loop", called(cond_fn, tensors)))]

    def step(tensors: Sequence[Any]) -> list[Any]:
        return checked_carry("while_loop", carry, spec, called(body_fn, tensors))

    def ended(leaves: list[Any]) -> R:
        carried: R = tree.unflatten(spec, leaves)
        return carried

    if not must_trace(carry):
        return ended(python_while(test, step, [alias_tensor(c) for c in carry], max_steps))
    if max_steps is not None:
        final, _ = scan(lambda c, _: (_chosen(test(c)[0], step, list, c), None), carry, None, max_steps)
        return ended(final)
    condition, body = TracedBody(test, carry), TracedBody(step, carry)
    if condition.subprogram is None or body.subprogram is None:
        return ended(python_while(test, step, carry, None, condition, body))
    operands = [*carry, *condition.captures, *body.captures]
    final = control.while_loop(operands, condition.subprogram, body.subprogram, len(carry), len(condition.captures))
    return ended(final[:-1])


def cond(pred: Any, true_fn: Callable[..., R], false_fn: Callable[..., R], operands: Any = ()) -> R:
    """The result of one of two functions, chosen by a predicate.

    In an eager function only the chosen one runs. In a compiled one, and in `vmap` where the samples' predicates differ,
    both are traced and computed. The branch not taken contributes exactly zero gradient.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn, false_fn: take the operands; both return results of the same structure, shapes and dtypes.
        operands: a tuple of arguments: tensors, numbers or nested containers of them.

    Raises:
        ValueError: for a predicate of several elements, or if both are traced and their results differ in structure,
            shape or dtype.

    Example:
        >>> x = tg.tensor(3.0, requires_grad=True)
        >>> tg.cond(x > 0, lambda x: x * x, lambda x: -x, (x,)).backward()
        >>> x.grad
        tensor(6.)
    """
    if not isinstance(pred, Box):
        return (true_fn if pred else false_fn)(*operands)
    pred = predicate("cond", pred)
    leaves, spec = leaves_of(tuple(operands))
    if running_trace() is None and not is_batched(pred):
        return (true_fn if bool(pred) else false_fn)(*operands)
    found: dict[int, tree.Spec] = {}

    def branch(i: int, function: Callable[..., Any]) -> Flat:
        def run(tensors: Sequence[Any]) -> list[Any]:
            results, found[i] = returned(function(*tree.unflatten(spec, list(tensors))))
            if found[i] != found.get(0, found[i]):
                raise errors.branches_differ("structure", "", found[0], found[i])
            return results

        return run

    results = _chosen(pred, branch(0, true_fn), branch(1, false_fn), leaves)
    chosen: R = tree.unflatten(next(iter(found.values())), results)
    return chosen


def _chosen(pred: Any, true: Flat, false: Flat, leaves: Sequence[Any]) -> list[Any]:
    """The results of one of two functions of leaves."""
    if running_trace() is None and not is_batched(pred):
        return (true if bool(pred) else false)(leaves)
    first, second = TracedBody(true, leaves), TracedBody(false, leaves)
    if first.subprogram is None or second.subprogram is None:
        taken, run = (first, true) if bool(pred) else (second, false)
        return run(leaves) if taken.results is None else taken.results
    check_alike(first.subprogram, second.subprogram)
    a = first.subprogram.taking(len(leaves) + len(first.captures), second.captures)
    b = second.subprogram.taking(len(leaves), first.captures)
    return control.cond(TENSOR_XP, [pred, *leaves, *first.captures, *second.captures], a, b)


# --------------------------------------------------------------------------------------------- traced, or a Python loop


class TracedBody:
    """A function of tensors, traced while it runs once.

    Attributes:
        subprogram: its trace; None if it cannot be traced.
        captures: tensors that it uses besides its operands: further operands of the sub-program.
        results: results of this run; None if it ran on example values.
        wrote: whether it wrote into tensors from outside.
        reason: why it cannot be traced.
    """

    @restoring
    def __init__(self, function: Flat, operands: Sequence[Any]) -> None:
        program_only = LEVEL.get() is not None or any([level_of(t) is not None for t in operands])
        for t in operands:
            synced(t)
        with SubTrace(running_trace(), program_only) as body:
            if program_only:
                given = [body.given(representative(t)) for t in operands]
            else:
                given = [body.given(t._d, t._s, slot_hooks_of(t) or None) for t in operands]
            results = function(given)
        del given
        body.check_effects(results)
        self.subprogram = body.finish(results)
        self.captures = [capture.tensor for capture in body.tensors]
        self.wrote, self.reason = body.wrote, None if body.aborted is None else body.aborted[0]
        if program_only and self.wrote:
            raise errors.body_writes()
        self.results = None if program_only else [body.for_caller(t) for t in results]


def must_trace(leaves: Sequence[Any]) -> bool:
    """Whether a loop with a condition has to be traced, since values may not be available."""
    return running_trace() is not None or any([is_batched(t) for t in leaves]) or is_inside(LEVEL.get())


def is_batched(t: Any) -> bool:
    return is_inside(level_of(t))


def is_inside(level: Any) -> bool:
    """Whether a level is a vmap, or inside one."""
    while level is not None:
        if isinstance(level, Batch):
            return True
        level = level.outer
    return False


def scanned(
    traced: TracedBody, carry: list[Any], rows: list[Any], length: int, reverse: bool
) -> tuple[list[Any], list[Any]]:
    """Final carry and rows of a loop whose body was traced."""
    body, held = traced.subprogram, len(carry)
    assert body is not None
    outputs = len(body.metas)
    if not outputs:
        return [], []
    operands, history = [*carry, *rows, *traced.captures], (-1,) * held
    if running_trace() is not None or control.keeps_history(TENSOR_XP, operands):
        body, history = control.with_history(body, held)
    found = control.scan(TENSOR_XP, operands, body, held, len(rows), length, reverse, history)
    return found[:held], found[held:outputs]


def python_loop(
    step: Flat, carry: list[Any], rows: list[Any], order: range, first: list[Any] | None = None
) -> tuple[list[Any], list[Any]]:
    """The same by a Python loop; `first`: results of the first step if that has run."""
    columns: list[list[Any]] = []
    for i in order:
        results = step([alias_tensor(t) for t in (*carry, *rows_at(rows, i))]) if first is None else first
        first = None
        carry = results[: len(carry)]
        columns = columns or [[] for _ in results[len(carry) :]]
        for column, y in zip(columns, results[len(carry) :], strict=True):
            column.append(y)
    return carry, [stack(column if order.step > 0 else column[::-1]) for column in columns]


def python_while(
    test: Flat,
    step: Flat,
    carry: list[Any],
    most: int | None,
    tested: TracedBody | None = None,
    stepped: TracedBody | None = None,
) -> list[Any]:
    """The loop in Python; `tested`, `stepped`: the first test and the first step if those have run."""
    going = tested.results if tested is not None else None
    after = stepped.results if stepped is not None else None
    steps = 0
    while most is None or steps < most:
        if not bool((test(carry) if going is None else going)[0]):
            if after is not None and stepped is not None and stepped.wrote:
                raise errors.body_writes()
            break
        carry = step(carry) if after is None else after
        going = after = None
        steps += 1
    return carry


# -------------------------------------------------------------------------------------------------------------- checks


def leaves_of(value: Any) -> tuple[list[Any], tree.Spec]:
    """Leaves of a tree, as tensors."""
    leaves, spec = tree.flatten(value)
    return [synced(tensor(leaf)) for leaf in leaves], spec


def returned(value: Any) -> tuple[list[Any], tree.Spec]:
    """Leaves of a function's result, as new tensors, so that the originals are freed unless the function stored them."""
    leaves, spec = leaves_of(value)
    leaves = [alias_tensor(t) for t in leaves]
    return leaves, tree.flatten(tree.unflatten(spec, leaves))[1]


def predicate(function: str, value: Any) -> Any:
    """A condition as a 0-dim bool tensor."""
    t = tensor(value)
    if t._d.size != 1:
        raise ValueError(f"tg.{function}: the condition must be a bool or of one element, got shape {tuple(t._d.shape)}")
    t = t if not t._d.ndim else TENSOR_XP.reshape(t, ())
    return t if t._d.dtype.kind == "b" else TENSOR_XP.ne(t, 0)


def length_of(rows: list[Any], length: int | None) -> int:
    """The number of steps over rows of one length."""
    if isinstance(length, Box):
        raise TypeError("tg.scan: length must be an int, got a tensor; use tg.while_loop for a computed number of steps")
    if any([not x._d.ndim for x in rows]):
        raise ValueError("tg.scan: xs must have a first dimension to scan over, got a 0-dim tensor")
    sizes = {x._d.shape[0] for x in rows} | ({length} if length is not None else set())
    if len(sizes) != 1:
        what = f"got lengths {sorted(sizes)} in xs and length" if sizes else "got neither xs nor length"
        raise ValueError(f"tg.scan: the number of steps must be told once, {what}")
    return sizes.pop()


def rows_at(rows: list[Any], i: int) -> list[Any]:
    return [TENSOR_XP.index(x, (i, Ellipsis)) for x in rows]


def checked_carry(function: str, before: list[Any], spec: tree.Spec, result: Any) -> list[Any]:
    """Leaves of the next carry, checked to match the previous one."""
    after, got = returned(result)
    if got != spec:
        raise errors.carry_changed(function, "the structure", "s", spec, got)
    for a, b, path in zip(before, after, paths(spec), strict=True):
        if a._d.shape != b._d.shape:
            raise errors.carry_changed(function, "the shape", path, tuple(a._d.shape), tuple(b._d.shape))
        if a._d.dtype != b._d.dtype:
            raise errors.carry_changed(function, "the dtype", path, a.dtype, b.dtype)
    return after


def check_alike(true: SubProgram, false: SubProgram) -> None:
    """Raise unless two branches return the same shapes and dtypes."""
    for i, (a, b) in enumerate(zip(true.metas, false.metas, strict=True)):
        if a[0] != b[0]:
            raise errors.branches_differ("shape", f" number {i}", a[0], b[0])
        if a[1] != b[1]:
            raise errors.branches_differ("dtype", f" number {i}", a[1], b[1])


def paths(spec: tree.Spec, at: str = "") -> Iterator[str]:
    """The path of each leaf of a tree, as a Python expression."""
    if spec.cls is None:
        yield at
        return
    keys = range(len(spec.children)) if isinstance(spec.keys, int) else spec.keys
    for key, child in zip(keys, spec.children, strict=True):
        is_item = isinstance(spec.keys, int) or issubclass(spec.cls, dict)
        yield from paths(child, f"{at}[{key!r}]" if is_item else f"{at}.{key}")

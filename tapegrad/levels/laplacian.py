"""Forward Laplacian: values, gradients and Laplacians with respect to a point, carried through a function together.

Of y(x_1..x_d) a tensor of the level carries y and the stack T = [J_1, .., J_d, L]: the derivatives of y along the d
directions and its Laplacian (R. Li, H. Ye, D. Jiang et al., A computational framework for neural network-based variational
Monte Carlo with Forward Laplacian, Nature Machine Intelligence 6 (2024) 209-219). With y' = f(y): J' = f'(y) J and
L' = f'(y) L + f''(y) sum_i J_i J_i. A linear op acts on the whole stack at once.

The last dimension of T may be all that is there: of a point's own coordinates the stack is the same for all points, and it
stays small until the first nonlinear op.
"""

from __future__ import annotations

from typing import Any

from ..core.op import TABLE, Op
from ..core.record import Box
from ..core.state import is_recording
from ..core.vjp import TENSOR_XP, arrays, fixed_like, zeros_like
from .forward import Dual, replaced, tangents_of, total
from .level import Level
from .taylor import Taylor
from .vmap import Batch, padded, rank, run_batched


class ForwardLaplacian(Level):
    """Every tensor of the level carries its gradient and Laplacian; a payload is the stack T, or None for a constant.

    Attributes:
        directions: number of coordinates.
        respects_no_grad: whether recording was on when it was opened, so that no_grad inside makes constants.
    """

    name = "laplacian"

    def __init__(self, directions: int) -> None:
        super().__init__()
        self.directions = directions
        self.respects_no_grad = is_recording()

    def point(self, x: Any) -> Any:
        """The points, of shape (.., d), as a tensor of the level."""
        d = self.directions
        stack = arrays.zeros((d + 1, d), x._d.dtype)
        for i in range(d):
            stack[i, i] = 1
        return self.wrap(x, TENSOR_XP.reshape(fixed_like(stack, x), (d + 1, *(1,) * (x._d.ndim - 1), d)))

    def laplacian(self, y: Any) -> tuple[Any, Any]:
        """(value, Laplacian) of a tensor; the second is None if it does not depend on the point."""
        value, stack = self.unwrap(y)
        if stack is None:
            return value, None
        last = stack.last() if type(stack) is LazyStack else TENSOR_XP.index(stack, (self.directions, Ellipsis))
        return value, whole(last, value._d.shape)

    def apply(self, op: Op, primals: list[Any], stacks: list[Any], params: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        if self.respects_no_grad and not is_recording():
            stacks = [None] * len(stacks)
        if any([type(p) is LazyStack for p in stacks]):
            if op.rules == (1.0, 1.0) and None in stacks:  # a sum with a bias: the stack is as it was
                at = 0 if stacks[1] is None else 1
                if rank(primals[1 - at], False) <= primals[at]._d.ndim:
                    return [(op.call(*primals), stacks[at])]
            stacks = [p.whole() if type(p) is LazyStack else p for p in stacks]
        closed = TABLE.get(f"laplace_{op.name}")
        if closed is not None and stacks[0] is not None and is_real(primals[0]):
            return [closed.call(*primals, *stacks)]
        out = op.on(primals, params)
        outs = out if op.outputs > 1 else (out,)
        rules = op.rules * len(primals) if op.arity < 0 and not op.joint else op.rules
        stacks = [None if rule is None else p for rule, p in zip(rules, stacks, strict=True)]
        active = [i for i, p in enumerate(stacks) if p is not None]
        if op.kind == "constant" or not active:
            return [(o, None) for o in outs]
        if op.kind == "elementwise":
            found = self.elementwise(op, primals, stacks, active, outs[0], params)
        elif op.kind == "linear" or (op.kind == "bilinear" and len(active) == 1):
            found = self.on_stack(op, primals, stacks, active, params)
        elif op.kind == "bilinear":
            found = [self.product(op, primals, stacks, params)]
        elif all([is_linear(op, i, active) for i in active]):
            found = self.affine(op, primals, stacks, outs, params)
        else:
            found = self.by_directions(op, primals, stacks, outs, params)
        return list(zip(outs, found, strict=True))

    def elementwise(
        self, op: Op, primals: list[Any], stacks: list[Any], active: list[int], out: Any, params: tuple[Any, ...]
    ) -> list[Any]:
        if all([is_linear(op, i, active) for i in active]):
            slopes = [(i, slope(op, i, out, primals, params)) for i in active]
            return [total([scaled(padded(stacks[i], out._d.ndim, True), d) for i, d in slopes])]
        if len(active) == 1 and is_real(primals[active[0]]):  # of complex numbers some are not holomorphic, as abs
            return [self.composed(op, primals, active[0], out, stacks[active[0]], params)]
        if op.name == "mul":  # of which the others' derivatives are made
            return [self.product(op, primals, stacks, params)]
        return self.by_directions(op, primals, stacks, (out,), params)

    def on_stack(
        self, op: Op, primals: list[Any], stacks: list[Any], active: list[int], params: tuple[Any, ...]
    ) -> list[Any]:
        """An op that is linear in its active operands."""
        n = self.directions + 1
        if is_matrix_product(op, primals, active):
            return [LazyStack(stacks[0], lambda t: run_batched(op, t._d.shape[0], [t, primals[1]], [True, False], params))]
        args: list[Any] = []
        for i, (x, t) in enumerate(zip(primals, stacks, strict=True)):
            if t is not None:
                args.append(whole(t, (n, *x._d.shape)))
            elif op.kind == "linear" and op.rules[i if op.arity > 0 else 0] is not None and isinstance(x, Box):
                args.append(zeros_like(x, (n, *x._d.shape)))
            else:
                args.append(x)
        marked = [a is not x for a, x in zip(args, primals, strict=True)]
        out = run_batched(op, n, args, marked, params)
        return list(out) if op.outputs > 1 else [out]

    def affine(self, op: Op, primals: list[Any], stacks: list[Any], outs: Any, params: tuple[Any, ...]) -> list[Any]:
        """A general op whose derivative does not depend on its active operands: its forward derivative, of the stack."""
        n = self.directions + 1
        given = [None if t is None else whole(t, (n, *x._d.shape)) for x, t in zip(primals, stacks, strict=True)]
        with Batch(n, "same") as batch:
            moving = [None if t is None else batch.wrap(t, True) for t in given]
            found = tangents_of(op, primals, moving, outs, params, batch)
            return [None if t is None else batch.physical(t) for t in found]

    def product(self, op: Op, primals: list[Any], stacks: list[Any], params: tuple[Any, ...]) -> Any:
        """L(u v) = v Lu + u Lv + 2 sum_i u_i v_i."""
        n = self.directions + 1
        (u, v), (s, t) = primals, stacks
        s, t = whole(s, (n, *u._d.shape)), whole(t, (n, *v._d.shape))
        both = run_batched(op, n, [s, v], [True, False], params) + run_batched(op, n, [u, t], [False, True], params)
        cross = run_batched(op, n - 1, [gradient(s), gradient(t)], [True, True], params)
        return TENSOR_XP.index_add(both, 2.0 * TENSOR_XP.sum(cross, (0,), False), (n - 1, Ellipsis))

    def composed(self, op: Op, args: list[Any], i: int, ans: Any, stack: Any, params: tuple[Any, ...]) -> Any:
        """An elementwise op of which one operand is active, by its first and second derivative."""
        rule: Any = op.rules[i]
        d1 = rule(TENSOR_XP, ans, *args, *params)
        if not isinstance(d1, Box):
            return stack * d1
        x = args[i]
        with Dual() as level:
            one = fixed_like(arrays.ones_like(x._d), x)
            moving = rule(TENSOR_XP, level.wrap(ans, d1), *replaced(args, i, level.wrap(x, one)), *params)
            d2 = level.unwrap(moving)[1] if isinstance(moving, Box) else None
        stack = padded(stack, ans._d.ndim, True)
        return stack * d1 if d2 is None else TABLE["laplace_chain"].call([d1, d2, stack])

    def by_directions(self, op: Op, primals: list[Any], stacks: list[Any], outs: Any, params: tuple[Any, ...]) -> list[Any]:
        """Any op: twice the second Taylor coefficients along the directions, and the derivative along the Laplacians."""
        n = self.directions
        stacks = [None if t is None else whole(t, (n + 1, *x._d.shape)) for x, t in zip(primals, stacks, strict=True)]
        ends = [None if t is None else TENSOR_XP.index(t, (n, Ellipsis)) for t in stacks]
        slopes = tangents_of(op, primals, ends, outs, params, self.outer)
        with Batch(n, "same") as batch, Taylor(2) as level:
            curves = [
                x if t is None else level.wrap_series([x, batch.wrap(gradient(t), True), None])
                for x, t in zip(primals, stacks, strict=True)
            ]
            moved = op.on(curves, params)
            orders = [
                [None if c is None else batch.physical(c) for c in (level.coefficient(y, 1), level.coefficient(y, 2))]
                for y in (moved if op.outputs > 1 else (moved,))
            ]
        found: list[Any] = []
        for y, (first, second), slope in zip(outs, orders, slopes, strict=True):
            if first is None and second is None and slope is None:
                found.append(None)
                continue
            terms = [slope] if slope is not None else []
            if second is not None:
                terms.append(2.0 * TENSOR_XP.sum(second, (0,), False))
            last = total(terms) if terms else zeros_like(y)
            if first is None:
                first = zeros_like(y, (n, *y._d.shape))
            found.append(TENSOR_XP.cat([first, TENSOR_XP.reshape(last, (1, *last._d.shape))], 0))
        return found


class LazyStack:
    """The stack of a layer: made when it is asked for, since of the last layer's only the Laplacian is."""

    __slots__ = ("made", "push", "stack")

    def __init__(self, stack: Any, push: Any) -> None:
        self.stack, self.push, self.made = stack, push, None

    def whole(self) -> Any:
        if self.made is None:
            self.made = self.push(self.stack)
        return self.made

    def last(self) -> Any:
        n = self.stack._d.shape[0]
        return TENSOR_XP.index(self.push(TENSOR_XP.index(self.stack, (slice(n - 1, n), Ellipsis))), (0, Ellipsis))


def is_matrix_product(op: Op, primals: list[Any], active: list[int]) -> bool:
    """Whether it is as a layer: a product with a matrix that does not depend on the point."""
    return op.kind == "bilinear" and active == [0] and primals[1]._d.ndim == 2


def scaled(t: Any, d: Any) -> Any:
    return t if isinstance(d, int | float) and d == 1 else t * d


def whole(t: Any, shape: tuple[int, ...]) -> Any:
    """The tensor in its full shape."""
    return t if t._d.shape == shape else TENSOR_XP.expand(t, shape)


def is_real(t: Any) -> bool:
    return t._d.dtype.kind != "c"  # type: ignore[no-any-return]


def gradient(stack: Any) -> Any:
    return TENSOR_XP.index(stack, (slice(0, stack._d.shape[0] - 1), Ellipsis))


def is_linear(op: Op, i: int, active: list[int]) -> bool:
    """Whether the derivative by an operand is constant while only the active ones change."""
    if op.arity < 0 or op.joint:
        return False
    reads, ans, *_ = op.saved[i]
    return not (ans or reads.intersection(active))


def slope(op: Op, i: int, ans: Any, args: list[Any], params: tuple[Any, ...]) -> Any:
    rule = op.rules[i]
    return rule(TENSOR_XP, ans, *args, *params) if callable(rule) else rule

"""L-BFGS (Nocedal and Wright, Numerical Optimization, algorithms 7.4, 7.5, 3.5 and 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsFloat, TypeVar

from ..functions.complex_and_bits import view_as_real
from ..functions.joining import cat
from ..modes import enable_grad, no_grad
from ..programs.tracing import part
from .optimizer import Optimizer, ParamsT, _to_scalar, check_lr, given

R = TypeVar("R", bound=SupportsFloat)
CURVATURE = 1e-10  # pairs with less curvature are not stored


class Point:
    """A step length, with the value, gradient and slope there."""

    __slots__ = ("f", "g", "slope", "t")

    def __init__(self, t: Any, f: float, g: Any, slope: Any) -> None:
        self.t, self.f, self.g, self.slope = t, f, g, slope


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> Any:
    """Minimiser, within the bounds, of the cubic with the given values and slopes at two points."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    middle = (low + high) / 2.0
    if x1 == x2:
        return middle
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return middle
    d2 = square**0.5
    if x1 <= x2:
        left, right, a, b = x1, x2, g2 + d2 - d1, g2 - g1 + 2 * d2
    else:
        left, right, a, b = x2, x1, g1 + d2 - d1, g1 - g2 + 2 * d2
    share = a / b if b else math.copysign(math.inf, a)  # 0 on a line, which falls up to a bound
    least = right - (right - left) * share
    return min(max(least, low), high)


def _between(a: Point, b: Point, bounds: Any = None) -> Any:
    return _cubic_interpolate(a.t, a.f, a.slope, b.t, b.f, b.slope, bounds)


def _strong_wolfe(
    obj_func: Callable[..., Any], x: Any, t: Any, d: Any, f: float, g: Any, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
    tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Any, Any, int]:  # fmt: skip
    """A step length that satisfies the strong Wolfe conditions.

    Args:
        obj_func: value and gradient at x + t * d, given x, t and d.
        x, t, d: start, first step length and direction.
        f, g, gtd: value, gradient and slope at the start.
        c1, c2: constants of the conditions: decrease and curvature.
        tolerance_change: length below which brackets are not refined.
        max_ls: maximum number of evaluations after the first.

    Returns:
        Value, gradient and step length found, and the number of evaluations.
    """

    def at(t: Any) -> Point:
        value, gradient = obj_func(x, t, d)
        return Point(t, value, gradient, float(gradient.dot(d)))

    def too_high(point: Point) -> bool:
        return bool(point.f > f + c1 * point.t * gtd)

    def flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -c2 * gtd)

    start = previous = Point(0, f, g.clone(), gtd)
    now = at(t)
    count = 0
    while count < max_ls:
        if too_high(now) or (count > 1 and now.f >= previous.f):
            break
        if flat(now):
            return now.f, now.g, now.t, count + 1
        if now.slope >= 0:
            break
        further = _between(previous, now, (now.t + 0.01 * (now.t - previous.t), now.t * 10))
        previous, now = now, at(further)
        count += 1
    ends = [start if count == max_ls else previous, now]
    low = 0 if ends[0].f <= ends[1].f else 1
    stuck = done = False
    while not done and count < max_ls:
        if abs(ends[1].t - ends[0].t) * d.abs().max() < tolerance_change:
            break
        t, stuck = _inside(_between(*ends), ends, stuck)
        now = at(t)
        count += 1
        if too_high(now) or now.f >= ends[low].f:
            ends[1 - low] = now
            low = 0 if ends[0].f <= ends[1].f else 1
        else:
            done = flat(now)
            if not done and now.slope * (ends[1 - low].t - ends[low].t) >= 0:
                ends[1 - low] = ends[low]
            ends[low] = now
    best = ends[low]
    return best.f, best.g, best.t, count + 1


def _inside(t: Any, ends: list[Point], stuck: bool) -> tuple[Any, bool]:
    """(trial length, whether it is near an end of the bracket); a second one in a row near an end is moved inwards."""
    low, high = sorted((ends[0].t, ends[1].t))
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if not stuck and low < t < high:
        return t, True
    return (high - margin if abs(t - high) < abs(t - low) else low + margin), False


class LBFGS(Optimizer):
    """L-BFGS: the gradient is multiplied by an inverse Hessian estimated from the last steps.

    `step(closure)` calls the closure several times; it must clear the gradients, compute the loss with gradients and return
    it. There is one parameter group.

    Args:
        params: parameters.
        lr: step length, or with a line search the first one tried.
        max_iter: maximum number of iterations per step.
        max_eval: maximum number of evaluations per step; default 5/4 of max_iter.
        tolerance_grad: stop when the largest element of the gradient is at most this.
        tolerance_change: stop when loss and parameters change by less than this.
        history_size: number of steps kept for the estimate.
        line_search_fn: None, or "strong_wolfe".

    Raises:
        ValueError: for a negative lr or several groups.
        RuntimeError: for another line search.

    Example:
        >>> w = tg.tensor([3.0, -2.0], requires_grad=True)
        >>> optimizer = tg.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 1) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> w.detach()
        tensor([1.0000, 1.0000])
    """

    def __init__(
        self, params: ParamsT, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, given(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _gradient(self) -> Any:
        """The gradients of all parameters as one vector of real numbers."""
        parts = []
        for p in self.param_groups[0]["params"]:
            g = p._g if getattr(p, "_g", None) is not None else p.detach() * 0
            parts.append((view_as_real(g) if g.is_complex() else g).detach().reshape(-1))
        return cat(parts)

    def _move(self, t: Any, d: Any) -> None:
        """Add t * d to the parameters."""
        start = 0
        for p in self.param_groups[0]["params"]:
            real = view_as_real(p) if p.is_complex() else p
            end = start + real.numel()
            real.add_(d[start:end].reshape(real.shape), alpha=t)
            start = end

    def _evaluate(self, closure: Callable[[], Any], x: list[Any], t: Any, d: Any) -> tuple[float, Any]:
        """Loss and gradient at x + t * d; the parameters are x again afterwards."""
        self._move(t, d)
        loss = float(closure())
        g = self._gradient()
        for p, value in zip(self.param_groups[0]["params"], x, strict=True):
            p.copy_(value)
        return loss, g

    @no_grad()
    def step(self, closure: Callable[[], R]) -> R:  # type: ignore[override]
        """Run up to max_iter iterations.

        Args:
            closure: clears the gradients, computes the loss with gradients, and returns it.

        Returns:
            The loss before the step.
        """
        closure = enable_grad()(part(closure))
        group = self.param_groups[0]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        lr = float(_to_scalar(group["lr"]))
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, g = float(first), self._gradient()
        state["func_evals"] += 1
        evaluations = 1
        if g.abs().max() <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction(state, g, group["history_size"])
            previous, state["prev_flat_grad"], state["prev_loss"] = loss, g.clone(), loss
            t = state["t"] = lr if state["n_iter"] > 1 else lr / max(1.0, float(g.abs().sum()))
            slope = float(g.dot(d))
            if slope > -group["tolerance_change"]:
                break
            tried = 0
            if search is not None:
                x = [p.clone() for p in group["params"]]
                loss, g, t, tried = _strong_wolfe(
                    lambda x, t, d: self._evaluate(closure, x, t, d), x, t, d, loss, g, slope,
                    max_ls=group["max_eval"] - evaluations,
                )  # fmt: skip
                self._move(t, d)
                state["t"] = t
            else:
                self._move(t, d)
                if iteration < group["max_iter"]:
                    loss, g, tried = float(closure()), self._gradient(), 1
            evaluations += tried
            state["func_evals"] += tried
            change = float(d.abs().max()) * abs(t)
            if (
                iteration == group["max_iter"] or evaluations >= group["max_eval"]
                or g.abs().max() <= group["tolerance_grad"] or change <= group["tolerance_change"]
                or abs(loss - previous) < group["tolerance_change"]
            ):  # fmt: skip
                break
        return first

    def _direction(self, state: dict[str, Any], g: Any, history: int) -> Any:
        """Update the history in the state and return the next direction."""
        if state["n_iter"] == 1:
            state.update(d=g.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return state["d"]
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = g - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        ys = float(y.dot(s))
        yy = float(y.dot(y))
        if ys > CURVATURE and yy > 0:
            for kept, new in ((dirs, y), (steps, s), (ro, 1.0 / ys)):
                if len(kept) == history:
                    kept.pop(0)
                kept.append(new)
            state["H_diag"] = ys / yy
        d = g.neg()
        weights = []
        for y, s, r in zip(reversed(dirs), reversed(steps), reversed(ro), strict=True):
            weights.append(float(s.dot(d)) * r)
            d.add_(y, alpha=-weights[-1])
        d.mul_(state["H_diag"])
        for y, s, r, weight in zip(dirs, steps, ro, reversed(weights), strict=True):
            d.add_(s, alpha=weight - float(y.dot(d)) * r)
        state["d"] = d
        return d

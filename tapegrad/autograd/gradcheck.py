"""gradcheck and gradgradcheck: compare derivatives with finite differences.

Jacobians are arrays of shape (input elements, output elements). A complex output is checked as two real functions, its
imaginary and its real part; of a complex input z = x + iy the derivative of a real function s is ds/dx + i ds/dy. In forward
mode it is the inputs that are split so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.gradient import grad
from ..core.level import level_of
from ..core.record import wrap
from ..core.warning import warn
from ..functions import create
from ..functions.complex_and_bits import view_as_real
from ..functions.joining import stack
from ..tensor.tensor import Tensor
from . import forward_ad
from .functional import batched, is_inexact, push

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

RANDOM_IN_BATCH = (
    "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations outside of vmap "
    "as a workaround"
)
Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` for a wrong derivative."""


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def differentiable(outputs: Any) -> tuple[Any, ...]:
    """The outputs that require grad."""
    for y in as_tuple(outputs):
        if not isinstance(y, Tensor):
            raise TypeError(f"gradcheck: the function must return a Tensor or a tuple of Tensors, but got {type(y)}")
    return tuple([y for y in as_tuple(outputs) if y.requires_grad])


def tracked(inputs: Sequence[Any]) -> list[int]:
    """Positions of the inputs that are checked: tensors that require grad."""
    return [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]


def random_unit(rng: np.random.Generator, t: Any) -> Array:
    """A random vector of length 1 without negative elements, real, one element for each of a tensor's."""
    v = rng.random(t.numel())
    unit: Array = (v / max(float(np.linalg.norm(v)), 1e-300)).astype(t._d.real.dtype)
    return unit


def values(t: Any) -> Array:
    """A copy of a tensor's array."""
    return np.array(t.detach().numpy())


def undefined_text(text: str) -> str:
    return f"{text} A gradient that is not there counts as zero. check_undefined_grad=False leaves this check out."


# ------------------------------------------------------------------------------------------------------ one comparison


@dataclass
class Check:
    """The check of one function whose outputs (in forward mode: inputs) are real.

    Attributes:
        func, inputs: the function and what it is called with; tensors among them that require grad are checked.
        eps, rtol, atol, nondet_tol, check_grad_dtypes: as `gradcheck`'s.
        forward: whether derivatives are those of forward mode.
        split: positions of what was complex, among the differentiable outputs (in forward mode among the checked inputs).
        part: the part of these that is looked at, "real" or "imaginary".
        found: what the function returned, if it has been called already.
    """

    func: Function
    inputs: tuple[Any, ...]
    eps: float
    rtol: float
    atol: float
    nondet_tol: float
    check_grad_dtypes: bool
    forward: bool = False
    split: Sequence[int] = ()
    part: str = "real"
    found: Any = None
    positions: list[int] = field(init=False)
    kept: list[int] = field(init=False)
    outputs: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.positions = tracked(self.inputs)
        every = as_tuple(self.func(*self.inputs) if self.found is None else self.found)
        self.outputs = differentiable(every)
        self.kept = [k for k, y in enumerate(every) if y.requires_grad] or list(range(len(every)))

    @property
    def leaves(self) -> list[Any]:
        return [self.inputs[i] for i in self.positions]

    def run(self, fast: bool) -> None:
        """Compare, by whole Jacobians or (fast) by random projections of them."""
        if not self.outputs:
            self.constant(fast)
        elif fast:
            self.projections()
        else:
            self.jacobians()

    # Numerical

    def moved(self, i: int, delta: Any) -> list[Array]:
        """The function's outputs after adding delta to input i, in place: the function may have captured it."""
        entry = self.inputs[i].data
        original = entry.clone()
        try:
            entry.copy_(wrap(np.asarray(values(original) + delta)))
            ys = as_tuple(self.func(*self.inputs))
            return [values(ys[k]) for k in self.kept]
        finally:
            entry.copy_(original)

    def difference(self, i: int, direction: Array, text: str = "") -> list[Array]:
        """Central difference of the outputs along a direction of input i, flat."""
        step = (direction * self.eps).reshape(self.inputs[i].shape)
        before, after = self.moved(i, -step), self.moved(i, step)
        for a, b in zip(before, after, strict=True):
            for what in ("shape", "dtype"):
                was, now = getattr(wrap(a), what), getattr(wrap(b), what)
                if was != now:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed {text}by "
                        f"{self.eps}, but got: {what}s {was} and {now}."
                    )
        pairs = [(a * 1.0, b * 1.0) if a.dtype.kind in "biu" else (a, b) for a, b in zip(before, after, strict=True)]
        return [((b - a) / (2 * self.eps)).reshape(-1) for a, b in pairs]

    def slopes(self, i: int, real: Array, imaginary: Array, text: str = "") -> list[Array]:
        """Derivative of the outputs along a direction of input i; of a complex input ds/dx + i ds/dy."""
        dx = self.difference(i, real, text)
        if not self.inputs[i].is_complex():
            return dx
        return [a + 1j * b for a, b in zip(dx, self.difference(i, 1j * imaginary, text), strict=True)]

    def numerical(self, i: int) -> list[Array]:
        """Jacobians of every output by input i."""
        x = self.inputs[i]
        units = np.eye(x.numel(), dtype=x._d.real.dtype)
        rows = [self.slopes(i, e, e, f"on index {index} ") for e, index in zip(units, np.ndindex(*x.shape), strict=True)]
        if not rows:
            return [np.zeros((0, y.numel())) for y in self.outputs]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    # Analytical

    def vjp(self, y: Any, g: Array) -> list[Array]:
        """One pass backward: the cotangents of the inputs, flat, zeros where there is none."""
        seed = wrap(g.astype(y._d.dtype).reshape(y.shape))
        gs = grad(y, self.leaves, seed, retain_graph=True, allow_unused=True)
        for x, t in zip(self.leaves, gs, strict=True):
            if t is not None and t.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            if t is not None and t.dtype != x.dtype and self.check_grad_dtypes:
                raise GradcheckError("Gradient has dtype mismatch")
        flat = [np.zeros(x.shape, x._d.dtype) if t is None else values(t) for x, t in zip(self.leaves, gs, strict=True)]
        return [t.reshape(-1) for t in flat]

    def reverse(self, y: Any, cotangents: Array) -> list[Array]:
        """Jacobians of an output by every input, times the given cotangents; computed twice."""
        first, second = [
            [np.stack(c, -1) if c else np.zeros((x.numel(), 0)) for c, x in zip(columns, self.leaves, strict=True)]
            for columns in [
                list(zip(*[self.vjp(y, g) for g in cotangents], strict=True)) or [()] * len(self.positions) for _ in "12"
            ]
        ]
        for a, b in zip(first, second, strict=True):
            if a.size and np.abs(a - b).max() > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                    "different values, although analytical gradient matches numerical gradient. The tolerance for "
                    f"nondeterminism was {self.nondet_tol}. nondet_tol= raises it."
                )
        return first

    def pushed(self, j: int, directions: Array) -> list[Array]:
        """Derivatives of every output along directions of the j-th checked input, in forward mode, one a row."""
        positions, xs = self.positions, [x.detach() for x in self.leaves]
        still = [create.zeros_like(x) for x in xs]

        def f(*given: Any) -> tuple[Any, ...]:
            args = [x.detach() if isinstance(x, Tensor) else x for x in self.inputs]
            for i, x in zip(positions, given, strict=True):
                args[i] = x
            ys = as_tuple(self.func(*args))
            return tuple([ys[k] for k in self.kept if is_inexact(ys[k])])

        rows = []
        for d in directions:
            ts = [*still[:j], wrap(d.astype(xs[j]._d.dtype).reshape(xs[j].shape)), *still[j + 1 :]]
            with forward_ad.dual_level():
                duals = [
                    forward_ad.unpack_dual(y) for y in f(*[forward_ad.make_dual(x, t) for x, t in zip(xs, ts, strict=True)])
                ]
            tangents = [create.zeros_like(y) if t is None else t for y, t in duals]
            for (y, _), t in zip(duals, tangents, strict=True):
                if self.check_grad_dtypes and y.is_complex() != t.is_complex():
                    raise GradcheckError("Forward AD gradient has dtype mismatch.")
            rows.append([values(t).reshape(-1) for t in tangents])
        return [np.stack(c) for c in zip(*rows, strict=True)] or [np.zeros((0, y.numel())) for y in self.outputs]

    def analytical(self, k: int, j: int) -> Array:
        """The Jacobian of output k by the j-th checked input."""
        if self.forward:
            return self.pushed(j, np.eye(self.leaves[j].numel()))[k]
        return self.reverse(self.outputs[k], np.eye(self.outputs[k].numel()))[j]

    # Comparisons

    def constant(self, fast: bool) -> None:
        """Where no output requires grad, the numerical derivative is 0."""
        rng = np.random.default_rng(0)
        for i, x in zip(self.positions, self.leaves, strict=True):
            u = random_unit(rng, x)
            found = self.slopes(i, u, u) if fast else self.numerical(i)
            if any(np.abs(n).max(initial=0.0) > (self.nondet_tol if fast else 0) for n in found):
                raise GradcheckError("Numerical gradient for function expected to be zero")

    def jacobians(self) -> None:
        numerical = [self.numerical(i) for i in self.positions]
        if self.forward:
            pushed = [self.pushed(j, np.eye(x.numel())) for j, x in enumerate(self.leaves)]
        for k, y in enumerate(self.outputs):
            found = [p[k] for p in pushed] if self.forward else self.reverse(y, np.eye(y.numel()))
            for j, (a, n) in enumerate(zip(found, [rows[k] for rows in numerical], strict=True)):
                if not self.close(a, n, self.atol):
                    raise GradcheckError(self.mismatch(k, j, a, n))

    def projections(self) -> None:
        """v' J u for random v and u; in forward mode J u. The tolerance is for an error of atol in each element."""
        rng = np.random.default_rng(0)
        us = [(random_unit(rng, x), random_unit(rng, x)) for x in self.leaves]
        vs = [None if self.forward else random_unit(rng, y) for y in self.outputs]
        found: list[Any] = [self.pushed(j, u[None]) if self.forward else None for j, (u, _) in enumerate(us)]
        vjp = [[] if v is None else self.reverse(y, v[None]) for y, v in zip(self.outputs, vs, strict=True)]
        for j, (i, (u, w)) in enumerate(zip(self.positions, us, strict=True)):
            size = float(u.sum() + (w.sum() if self.inputs[i].is_complex() else 0))
            for k, (n, v) in enumerate(zip(self.slopes(i, u, w), vs, strict=True)):
                if v is None:
                    a, atol = found[j][k].reshape(-1), self.atol * size
                else:
                    g = vjp[k][j].reshape(-1)
                    a = g.real @ u + 1j * (g.imag @ w) if self.inputs[i].is_complex() else g @ u
                    n, atol = v @ n, self.atol * size * float(v.sum())
                if not self.close(a, n, atol):
                    raise GradcheckError(self.mismatch(k, j, a, n) + self.slow_text(k, j))

    def close(self, a: Any, n: Any, atol: float) -> bool:
        return np.shape(a) == np.shape(n) and bool(np.allclose(a, n, self.rtol, atol))

    def mismatch(self, k: int, j: int, a: Any, n: Any) -> str:
        """Text for output k and the j-th checked input."""
        prefix = ""
        if (j if self.forward else k) in self.split:
            side = "inputs" if self.forward else "outputs"
            prefix = f"While considering the {self.part} part of complex {side} only, "
        mode = "computed with forward mode " if self.forward else ""
        return (
            f"{prefix}Jacobian {mode}mismatch for output {k} with respect to input {j},\n"
            f"numerical:{wrap(np.asarray(n))}\nanalytical:{wrap(np.asarray(a))}\n"
        )

    def slow_text(self, k: int, j: int) -> str:
        """What the whole Jacobians are, where projections of them differ."""
        n, a = self.numerical(self.positions[j])[k], self.analytical(k, j)
        text = (
            "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode. Below, we "
            "recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {wrap(n)}\nAnalytical:\n{wrap(a)}\n\n"
            f"The max per-element difference (slow mode) is: {np.abs(n - a).max(initial=0.0)}.\n"
        )
        if self.close(a, n, self.atol):
            text += "Fast gradcheck failed but element-wise differences are small. fast_mode=False would have passed.\n"
        return text


# ------------------------------------------------------------------------------------------- complex inputs and outputs


def output_part(func: Function, name: str) -> Function:
    """The function with the real or imaginary part of its complex outputs."""

    def f(*inputs: Any) -> tuple[Any, ...]:
        return tuple([getattr(y, name) if y.is_complex() else y for y in as_tuple(func(*inputs))])

    return f


def input_part(func: Function, inputs: tuple[Any, ...], name: str) -> tuple[Function, tuple[Any, ...]]:
    """The function of the real or imaginary parts of its complex inputs, the others held, and these parts."""
    held = {i: x.detach() for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.is_complex()}
    parts = list(inputs)
    for i, z in held.items():
        parts[i] = getattr(z, name).clone().requires_grad_(inputs[i].requires_grad)

    def f(*given: Any) -> Any:
        full = list(given)
        for i, z in held.items():
            full[i] = given[i] + z.imag * 1j if name == "real" else z.real + given[i] * 1j
        return func(*full)

    return f, tuple(parts)


def run_checks(
    func: Function, inputs: tuple[Any, ...], outputs: tuple[Any, ...], backward: bool, forward: bool, fast: bool,
    undefined: bool, options: dict[str, Any],
) -> None:  # fmt: skip
    """Numbers against numbers, in each mode and for each part of what is complex."""
    if backward:
        positions = [k for k, y in enumerate(differentiable(outputs)) if y.is_complex()]
        if any(y.is_complex() for y in outputs):
            Check(output_part(func, "imag"), inputs, **options, split=positions, part="imaginary").run(fast)
            Check(output_part(func, "real"), inputs, **options, split=positions).run(fast)
        else:
            Check(func, inputs, **options, found=outputs).run(fast)
    if forward:
        positions = [j for j, i in enumerate(tracked(inputs)) if inputs[i].is_complex()]
        cases = [(func, inputs, "real")]
        if any(isinstance(x, Tensor) and x.is_complex() for x in inputs):
            cases = [(*input_part(func, inputs, name), part) for name, part in (("imag", "imaginary"), ("real", "real"))]
        for f, xs, part in cases:
            Check(f, xs, **options, forward=True, split=positions, part=part).run(fast)
        for f, xs, _ in cases if undefined else ():
            undefined_tangents(f, xs)


# -------------------------------------------------------------------------------------------------------- other checks


def undefined_tangents(func: Function, inputs: tuple[Any, ...]) -> None:
    """An input without a tangent counts as one with tangent 0."""
    rng = np.random.default_rng(0)
    us = {i: wrap(random_unit(rng, inputs[i]).reshape(inputs[i].shape)) for i in tracked(inputs)}

    def tangents(ts: dict[int, Any]) -> Sequence[Any]:
        def f(*given: Any) -> tuple[Any, ...]:
            args = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
            for i, x in zip(ts, given, strict=True):
                args[i] = x
            return tuple([y for y in as_tuple(func(*args)) if is_inexact(y)])

        return push(f, [inputs[i].detach() for i in ts], list(ts.values()))[1] if ts else ()

    for i, u in us.items():
        with_zero = tangents({**us, i: create.zeros_like(u)})
        without = tangents({k: t for k, t in us.items() if k != i})
        for k, (a, b) in enumerate(zip(with_zero, without, strict=False)):
            if not np.allclose(values(a), values(b), 1e-5, 1e-8):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {k} when input: {inputs[i]} has an undefined "
                    f"tangent value. Got: {b} but expected: {a}"
                )


def batched_gradients(output: Any, k: int, leaves: list[Any]) -> None:
    """Two passes backward at once give what they give one by one."""
    gs = [create.randn_like(output) for _ in range(2)]
    options: dict[str, Any] = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
    rows = [grad(output, leaves, g, **options) for g in gs]
    compare_batched(lambda: batched(lambda g: grad(output, leaves, g, **options), stack(gs)), rows, lambda j: (k, j))


def batched_tangents(func: Function, inputs: tuple[Any, ...]) -> None:
    """Two derivatives in forward mode at once are what they are one by one."""
    for j, i in enumerate(tracked(inputs)):
        x = inputs[i].detach()

        def f(x: Any, i: int = i) -> tuple[Any, ...]:
            args = [a.detach() if isinstance(a, Tensor) else a for a in inputs]
            return tuple([y for y in as_tuple(func(*args[:i], x, *args[i + 1 :])) if is_inexact(y)])

        def column(t: Any, f: Function = f, x: Any = x) -> tuple[Any, ...]:
            return push(f, (x,), (t,))[1]

        ts = [create.randn_like(x) for _ in range(2)]
        compare_batched(lambda f=column, ts=ts: batched(f, stack(ts)), [column(t) for t in ts], lambda k, j=j: (k, j))  # type: ignore[misc]


def compare_batched(run: Callable[[], Any], rows: list[Any], name: Callable[[int], tuple[int, int]]) -> None:
    """What `run` gives against the rows stacked; name(n) is the (output, input) of the n-th result."""
    try:
        results = run()
    except RuntimeError as e:  # PyTorch's text on randomness: there is no flag to set here
        text = RANDOM_IN_BATCH if "randomness" in str(e) else e
        raise GradcheckError(f"While computing batched gradients, got: {text}") from e
    for n, (got, *want) in enumerate(zip(results, *rows, strict=True)):
        expected = stack(want)
        if got.shape != expected.shape or not np.allclose(values(got), values(expected), 1e-5, 1e-8):
            k, j = name(n)
            raise GradcheckError(
                f"For output {k} and input {j}:\n\nBatched gradients differ.\n\nGot:\n{got}\n\nExpected:\n{expected}"
            )


def zero_cotangents(outputs: Sequence[Any], leaves: list[Any]) -> Any:
    """Gradients for cotangents that are 0."""
    return grad(outputs, leaves, [create.zeros_like(y) for y in outputs], retain_graph=True, allow_unused=True)


def multiplied(outputs: Sequence[Any], leaves: list[Any]) -> None:
    """Gradients for cotangents that are 0 are 0, and fit their inputs."""
    for g, x in zip(zero_cotangents(outputs, leaves), leaves, strict=True):
        if g is None:
            continue
        if values(g).any():
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def undefined_gradients(func: Function, inputs: tuple[Any, ...], leaves: list[Any]) -> None:
    """With several outputs, one may get no cotangent at all."""
    for k in range(len(differentiable(func(*inputs)))):
        outputs = differentiable(func(*inputs))
        given = [y for i, y in enumerate(outputs) if i != k]
        if not given:
            return
        try:
            gs = zero_cotangents(given, leaves)
        except (RuntimeError, TypeError, AttributeError) as e:
            text = "Expected backward function to handle undefined output grads."
            raise GradcheckError(undefined_text(text)) from e
        if any(g is not None and values(g).any() for g in gs):
            text = "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            raise GradcheckError(undefined_text(text))


def check_inputs(inputs: tuple[Any, ...]) -> None:
    positions = tracked(inputs)
    if not positions:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for i in positions:
        x = inputs[i]
        if x._d.dtype not in (np.float64, np.complex128):
            warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
                "likely fail if all the inputs are not of double precision floating point or complex. "
            )
        if any(step == 0 and n > 1 for step, n in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to "
                "be able to compute the numerical gradients correctly. You should call .contiguous on the input before "
                "passing it to gradcheck."
            )


# ---------------------------------------------------------------------------------------------------------- public


def gradcheck(
    func: Function, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None,
) -> bool:  # fmt: skip
    """Compare the gradients of a function of tensors with finite differences, element by element.

    Complex outputs are checked as two real functions, the real and the imaginary part. The inputs are perturbed in place and
    restored, so captured tensors can be given as inputs too. Random numbers of the checks are the same every time and do not
    advance the library's generator. Use double-precision inputs, away from kinks of the function.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; tensors in it that require grad are checked, others and other values are passed on.
        eps: step of the differences.
        atol: absolute tolerance.
        rtol: tolerance relative to the numerical value.
        raise_exception: raise if the check fails, instead of returning False.
        nondet_tol: allowed difference between two backward passes with the same cotangent.
        check_undefined_grad: check that an undefined cotangent is treated as zero.
        check_grad_dtypes: check that gradients have their inputs' dtypes.
        check_batched_grad: compare batched backward passes (`is_grads_batched`) with single ones.
        check_batched_forward_grad: the same in forward mode.
        check_forward_ad: check the derivatives of forward mode.
        check_backward_ad: check the gradients of reverse mode.
        fast_mode: compare random projections of the Jacobians instead of all their elements.
        masked: no effect; gradients are dense.

    Returns:
        True if all checks pass.

    Raises:
        GradcheckError: for the first wrong derivative, with both values, if `raise_exception`.
        ValueError: if no input requires grad.
        RuntimeError: for an input whose elements share memory.
        AssertionError: for mutually exclusive checks.

    Example:
        >>> x = tg.tensor([0.5, 1.5], dtype=tg.float64, requires_grad=True)
        >>> tg.autograd.gradcheck(lambda x: x.sin() * x, (x,))
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    options = {"eps": eps, "rtol": rtol, "atol": atol, "nondet_tol": nondet_tol, "check_grad_dtypes": check_grad_dtypes}
    given = as_tuple(inputs)
    try:
        check_inputs(given)
        every = as_tuple(func(*given))
        outputs = differentiable(every)
        run_checks(func, given, every, check_backward_ad, check_forward_ad, fast_mode, check_undefined_grad, options)
        if check_batched_forward_grad:
            batched_tangents(func, given)
        if check_backward_ad and outputs:
            leaves = [given[i] for i in tracked(given)]
            for k, y in enumerate(outputs if check_batched_grad else ()):
                batched_gradients(y, k, leaves)
            multiplied(outputs, leaves)
            if check_undefined_grad:
                undefined_gradients(func, given, leaves)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Compare second derivatives with finite differences of gradients: `gradcheck` of func's vector-Jacobian product.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; tensors in it that require grad are checked.
        grad_outputs: the cotangents, a tensor or a tuple, also checked if they require grad; random by default.
        gen_non_contig_grad_outputs: make the random cotangents non-contiguous.
        check_fwd_over_rev: check forward mode over reverse mode.
        check_rev_over_rev: check reverse mode over reverse mode.
        eps, atol, rtol, raise_exception, nondet_tol, fast_mode, masked: as for `gradcheck`.
        check_undefined_grad, check_grad_dtypes, check_batched_grad: as for `gradcheck`.

    Returns:
        True if all checks pass.

    Raises:
        GradcheckError: for the first wrong derivative, with both values, if `raise_exception`.
        ValueError: if no input requires grad.
        AssertionError: for mutually exclusive checks.

    Example:
        >>> x = tg.tensor([0.5, 1.5], dtype=tg.float64, requires_grad=True)
        >>> tg.autograd.gradgradcheck(lambda x: x.sin() * x, (x,))
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, wanted in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if wanted and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        cotangents = tuple([random_cotangent(y, gen_non_contig_grad_outputs) for y in differentiable(func(*given))])
    else:
        cotangents = as_tuple(grad_outputs)
    count, moving = len(given), tracked((*given, *cotangents))

    def vjp(*args: Any) -> tuple[Any, ...]:
        full = [leaf_again(x) if i in moving else x for i, x in enumerate(args)]
        wanted = [full[i] for i in moving if i < count]
        gs = grad(differentiable(func(*full[:count])), wanted, full[count:], create_graph=True, allow_unused=True)
        return tuple([g for g in gs if g is not None])

    return gradcheck(
        vjp, (*given, *cotangents), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip


def leaf_again(x: Any) -> Any:
    """A tensor to differentiate by: itself, or above the level of forward mode a leaf of its value."""
    return x if x.requires_grad and level_of(x) is None else x.clone().requires_grad_()


def random_cotangent(y: Any, scattered: bool) -> Any:
    """A random leaf of an output's shape and dtype, between -1 and 1; scattered: not contiguous."""
    sizes = list(y.shape)
    gaps = scattered and math.prod(sizes) > 1
    if gaps:
        sizes[-1] *= 2
    t = create.empty(sizes, dtype=y.dtype)
    (view_as_real(t) if t.is_complex() else t).uniform_(-1, 1)
    return (t[..., 1::2] if gaps else t).requires_grad_()

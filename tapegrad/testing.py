"""Laws that every record of the op table obeys, for the library's own operations and for users' custom ones.

A law is a function of (op, arrays, params) that raises `LawError` where it is broken; `op` is a record or its name:

    from tapegrad import testing
    testing.check(op)                                # every law on every sample of a record
    testing.vjp("mul", (np.ones(3), np.ones(3)))     # one law on one input
    testing.check_grads(f, inputs, order=2)          # derivatives of any function of tensors

Cotangents and directions are random but fixed by the op's name and the input's shapes, so a failure repeats. Finite
differences are taken in float64, with step 1 where the record is linear or bilinear (they are exact there).
"""

from __future__ import annotations

import contextlib
import math
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

from . import dtypes as kinds
from . import dtypes as tapegrad_dtypes
from . import func
from .comparison import assert_allclose as assert_allclose
from .comparison import assert_close as assert_close
from .comparison import make_tensor as make_tensor
from .core import vjp as rules
from .core.entry import NUMBER, is_output, source_slot
from .core.gradient import grad
from .core.op import SAVES_REMEDY, TABLE, Op
from .core.record import wrap
from .core.state import current_tape
from .func import tree
from .levels.laplacian import ForwardLaplacian
from .programs.subprogram import SubProgram
from .table.samples.common import Sample as Sample
from .tensor.tensor import Tensor

__all__ = [
    "LAWS", "LawError", "Sample", "assert_allclose", "assert_close", "check", "check_grads", "make_tensor", "samples_of",
    "saves_necessary",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Law = Callable[..., None]
LAWS: dict[str, Law] = {}

ROUNDING = 1e-12  # of exact differences, relative to the sum of the terms' sizes
DIFFERENCES = 1e-7  # of extrapolated differences: what remains of 16 digits after dividing by the step
ADJOINT = MIXED = 1e-10  # of derivatives of two modes, relative to the sum of the terms' sizes
SERIES = 1e-9  # of derivatives of two modes, relative to the largest element


class LawError(AssertionError):
    """A law does not hold.

    Attributes:
        law: the law's name.
        op: the record's name.
    """

    def __init__(self, law: str, op: str, text: str) -> None:
        super().__init__(text)
        self.law, self.op = law, op


class _Broken(Exception):
    """What a law found: a sentence and the two values that should agree."""

    def __init__(self, text: str, left: Any = None, right: Any = None) -> None:
        super().__init__(text)
        self.text, self.left, self.right = text, left, right


# ------------------------------------------------------------------------------------------------ records and samples


def record_of(op: Op | str) -> Op:
    """The record itself, or the one of that name in the table or of `custom`; KeyError if there is none."""
    if not isinstance(op, str):
        return op
    found = TABLE.get(op) or TABLE.get(f"custom.{op}")
    if found is None:
        raise KeyError(f"no operation {op!r}: neither in the table nor defined by tapegrad.custom")
    return found


def samples_of(op: Op | str) -> list[Sample]:
    """The record's samples; plain (arrays, params) pairs count as smooth."""
    op = record_of(op)
    if op.samples is None:
        raise LawError("samples", op.name, f"op {op.name} has no samples: give its record samples=<callable>")
    return [s if isinstance(s, Sample) else Sample(*s) for s in op.samples()]


def check(op: Op | str, laws: Iterable[str] | None = None) -> None:
    """Every law (or the named ones) on every sample of a record.

    Raises:
        LawError: for the first law that is broken, with the sample, both values and a line that repeats it.
    """
    op = record_of(op)
    names = list(LAWS if laws is None else laws)
    samples = samples_of(op)
    for name in names:
        for sample in applicable(name, samples, op.kind):
            LAWS[name](op, sample.arrays, sample.params)
    if laws is None:
        saves_necessary(op)


DIFFERENTIATING = ("vjp", "second_order", "third_order", "jvp", "mixed_orders", "taylor", "laplacian")


def applicable(law: str, samples: Sequence[Sample], kind: str) -> Iterator[Sample]:
    """The samples a law runs on: finite differences only where the record is smooth, third order on the first of these.

    Of a linear record that is not smooth somewhere, a convention hides part of the gradient (an embedding's padding row).
    """
    if law not in DIFFERENTIATING and (law, kind) != ("adjoint", "linear"):
        yield from samples
        return
    smooth = [s for s in samples if s.smooth]
    yield from smooth[:1] if law == "third_order" else smooth


def law(function: Law) -> Law:
    """Make a function a law: what goes wrong in it becomes a LawError that names op, sample and law."""

    @wraps(function)
    def run(op: Op | str, arrays: Sequence[Any], params: Sequence[Any] = (), **options: Any) -> None:
        op, arrays, params = record_of(op), tuple(arrays), tuple(params)
        try:
            function(op, arrays, params, **options)
        except _Broken as e:
            raise LawError(function.__name__, op.name, report(op, function.__name__, arrays, params, e)) from None
        except Exception as e:
            remedy = f"\n  a rule may read what is not saved: {SAVES_REMEDY}" if "NoneType" in str(e) else ""
            failure = _Broken(f"raised {type(e).__name__}: {e}{remedy}")
            raise LawError(function.__name__, op.name, report(op, function.__name__, arrays, params, failure)) from e

    LAWS[function.__name__] = run
    return run


def report(op: Op, name: str, arrays: tuple[Any, ...], params: tuple[Any, ...], e: _Broken) -> str:
    """Text of a LawError."""
    inputs = ", ".join(source(a) for a in arrays) + ("," if len(arrays) == 1 else "")
    called = f"testing.LAWS['{name}']('{op.name}', ({inputs}), {source(params)})"
    line = f"from numpy import *; from tapegrad import testing; {called}"
    shapes = ", ".join(str(np.shape(a)) for a in arrays)
    lines = [f"op {op.name} ({op.kind}) breaks the law {name}: {e.text}", f"  sample: shapes {shapes}, params {params}"]
    if e.left is not None or e.right is not None:
        lines += [f"  got:      {e.left}", f"  expected: {e.right}"]
    return "\n".join([*lines, f'  repeat:   python -c "{line}"'])


def source(value: Any) -> str:
    """Python text that makes the value again, after `from numpy import *`."""
    if isinstance(value, tuple):
        return "(" + "".join(source(v) + ", " for v in value) + ")"
    if isinstance(value, np.ndarray):
        if not value.size:
            return f"zeros({value.shape}, '{value.dtype}')"
        return f"array({value.tolist()}, '{value.dtype}')"
    if isinstance(value, np.dtype):
        return f"dtype('{value}')"
    return repr(value)


# ----------------------------------------------------------------------------------------------------- running a record


def generator(op: Op, arrays: Sequence[Any]) -> np.random.Generator:
    shapes = [n for a in arrays for n in (len(np.shape(a)), *np.shape(a))]
    return np.random.default_rng([zlib.crc32(op.name.encode()), *shapes])


def is_inexact(a: Any) -> bool:
    return getattr(a, "dtype", None) is not None and kinds.is_inexact(a.dtype)


def differentiable(op: Op, arrays: Sequence[Any]) -> list[int]:
    """Positions of the arguments that take part in gradients."""
    if op.kind == "constant":
        return []
    rules = op.rules * len(arrays) if op.arity < 0 else op.rules
    return [i for i, a in enumerate(arrays) if is_inexact(a) and isinstance(a, np.ndarray) and rules[i] is not None]


def leaf(a: Any, tracked: bool) -> Any:
    """A tensor on memory of its own; Python numbers as they are."""
    if not isinstance(a, np.ndarray):
        return a
    t = wrap_copy(a)
    return t.requires_grad_() if tracked else t


def wrap_copy(a: Array) -> Any:
    return wrap(np.array(a, order="K"))


def call(op: Op, xs: Sequence[Any], params: Sequence[Any]) -> tuple[Any, ...]:
    """All outputs of the recording call, as a tuple."""
    out = op.call(list(xs), *params) if op.arity < 0 else op.call(*xs, *params)
    return tuple(out) if op.outputs > 1 else (out,)


def forward(op: Op, arrays: Sequence[Any], params: Sequence[Any]) -> tuple[Any, ...]:
    """All outputs of the raw forward, as a tuple of arrays."""
    run = rules.arrays.quiet(op.forward)
    out = run(list(arrays), *params) if op.arity < 0 else run(*arrays, *params)
    return tuple(np.asarray(o) for o in (out if op.outputs > 1 else (out,)))


def random_like(rng: np.random.Generator, a: Any) -> Any:
    """Normal values of the array's shape and dtype, complex ones for complex."""
    shape, dtype = np.shape(a), a.dtype
    values = rng.standard_normal(shape)
    return np.asarray(values + 1j * rng.standard_normal(shape) if dtype.kind == "c" else values, dtype)


def cotangents_for(op: Op, arrays: Sequence[Any], params: Sequence[Any], rng: np.random.Generator) -> list[Array]:
    return [random_like(rng, y) for y in forward(op, arrays, params)[: op.differentiable] if is_inexact(y)]


def pull(
    op: Op, arrays: Sequence[Any], params: Sequence[Any], gs: Sequence[Array], *, wanted: Sequence[int] | None = None,
    record: bool = False, before: Callable[[list[Any], tuple[Any, ...]], None] | None = None,
) -> list[Any]:  # fmt: skip
    """Cotangents of the wanted arguments, as arrays; None for an argument that the result does not depend on.

    `before(xs, ys)` runs between the forward and the replay.
    """
    indices = differentiable(op, arrays) if wanted is None else list(wanted)
    xs = [leaf(a, i in indices) for i, a in enumerate(arrays)]
    ys = call(op, xs, params)
    tracked = [(y, g) for y, g in zip(ys[: op.differentiable], gs, strict=False) if y.requires_grad]
    if not tracked or not indices:
        return [None] * len(indices)
    if before is not None:
        before(xs, ys)
    outputs, seeds = zip(*tracked, strict=True)
    given = [wrap_copy(g) for g in seeds]
    result = grad(list(outputs), [xs[i] for i in indices], given, create_graph=record, allow_unused=True)
    return [None if r is None else r._d for r in result]


def same(a: Any, b: Any) -> bool:
    """Equal bits, up to the sign of zero and the payload of nan."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=is_inexact(a)))


def show(a: Any) -> Any:
    return a if a is None else f"{a.dtype}{list(a.shape)} {a.tolist()}"


def inner(a: Sequence[Any], b: Sequence[Any]) -> tuple[float, float]:
    """Real inner product of two lists of arrays, and the sum of the sizes of its terms."""
    terms = [(np.conj(x) * y).real for x, y in zip(a, b, strict=True) if x is not None]
    return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)


# --------------------------------------------------------------------------------------------------------- derivatives


def difference(phi: Callable[[float], float], step_of_one: float | None) -> float:
    """phi'(0): by one central difference with the given step, or extrapolated from halved steps (Ridders' method)."""
    if step_of_one is not None:
        return 0.5 * (phi(step_of_one) - phi(-step_of_one)) / step_of_one
    step, best, error = 2.0**-4, math.nan, math.inf
    previous: list[float] = []
    for _ in range(9):
        row = [(phi(step) - phi(-step)) / (2 * step)]
        for k, old in enumerate(previous):
            row.append(row[k] + (row[k] - old) / (4.0 ** (k + 1) - 1))
        for k in range(1, len(row)):
            now = max(abs(row[k] - row[k - 1]), abs(row[k] - previous[k - 1]))
            if now < error:
                best, error = row[k], now
        step, previous = step / 2, row
    return best


Function = Callable[..., tuple[Any, ...]]
Tolerances = tuple[float | None, float | None, float | None]  # absolute, relative, step


def check_direction(
    f: Function, xs: list[Array], rng: np.random.Generator, exact: bool, text: str, mode: str = "rev",
    tolerances: Tolerances = (None, None, None),
) -> None:  # fmt: skip
    """The derivative of <w, f(x + t v)> at t = 0, in the given mode, against finite differences."""
    atol, rtol, eps = tolerances
    ws = [random_like(rng, y._d) for y in f(*[leaf(x, True) for x in xs])]
    vs = [random_like(rng, x) for x in xs]
    analytic, size = pulled_along(f, xs, ws, vs) if mode == "rev" else pushed_along(f, xs, ws, vs)

    def phi(t: float) -> float:
        moved = [leaf(np.asarray(x + t * v), True) for x, v in zip(xs, vs, strict=True)]
        return inner(ws, [y._d for y in f(*moved)])[0]

    with np.errstate(all="ignore"):
        numeric = difference(phi, 1.0 if exact else eps)
    allowed = (ROUNDING if exact else DIFFERENCES) * max(size, abs(numeric), 1e-3)
    if atol is not None or rtol is not None:
        allowed = (atol or 0.0) + (rtol or 0.0) * abs(numeric)
    if not abs(analytic - numeric) <= allowed:
        raise _Broken(text, analytic, f"{numeric} (finite differences in a random direction)")


def pulled_along(f: Function, xs: list[Array], ws: list[Array], vs: list[Array]) -> tuple[float, float]:
    """<g, v> for the cotangents g of the reverse replay, and the sum of the sizes of its terms."""
    leaves = [leaf(x, True) for x in xs]
    tracked = [(y, wrap_copy(w)) for y, w in zip(f(*leaves), ws, strict=True) if y.requires_grad]
    gs: list[Any] = [None] * len(xs)
    if tracked:
        outputs, seeds = zip(*tracked, strict=True)
        gs = [None if g is None else g._d for g in grad(list(outputs), leaves, list(seeds), allow_unused=True)]
    return inner(gs, vs)


def pushed_along(f: Function, xs: list[Array], ws: list[Array], vs: list[Array]) -> tuple[float, float]:
    """<w, t> for the tangents t of forward mode, and the sum of the sizes of its terms."""
    _, ts = func.jvp(f, tuple([leaf(x, False) for x in xs]), tuple([wrap_copy(v) for v in vs]))
    return inner(ws, [t.detach()._d for t in ts])


def derivative_of(f: Function, count: int) -> Function:
    """The recorded vjp as a function of f's arguments and one cotangent for each output."""

    def pulled(*arguments: Any) -> tuple[Any, ...]:
        xs, gs = arguments[:count], arguments[count:]
        ys = f(*xs)
        tracked = [(y, g) for y, g in zip(ys, gs, strict=True) if y.requires_grad]
        if not tracked:
            return tuple(wrap_copy(np.zeros_like(x._d)) for x in xs)
        outputs, seeds = zip(*tracked, strict=True)
        return grad(list(outputs), list(xs), list(seeds), create_graph=True, materialize_grads=True)  # type: ignore[no-any-return]

    return pulled


ORDERS = ("first", "second", "third", "fourth")


def check_orders(f: Function, xs: list[Array], rng: np.random.Generator, exact: bool, orders: Sequence[int]) -> None:
    """The derivatives of f of the given orders, each as the first derivative of the recorded vjp below it."""
    for order in range(1, max(orders) + 1):
        if order in orders:
            name = ORDERS[order - 1] if order <= len(ORDERS) else f"{order}th"
            check_direction(f, xs, rng, exact, f"{name} derivative")
        if order < max(orders):
            ys = f(*[leaf(x, True) for x in xs])
            f, xs = derivative_of(f, len(xs)), xs + [random_like(rng, y._d) for y in ys]


def as_function(op: Op, arrays: Sequence[Any], params: Sequence[Any], indices: Sequence[int]) -> Function:
    """The record as a function of its differentiable arguments, to its differentiable outputs."""

    def f(*xs: Any) -> tuple[Any, ...]:
        full: list[Any] = [leaf(a, False) for a in arrays]
        for i, x in zip(indices, xs, strict=True):
            full[i] = x
        return tuple(y for y in call(op, full, params)[: op.differentiable] if is_inexact(y._d))

    return f


def record_orders(op: Op, arrays: Sequence[Any], params: Sequence[Any], orders: Sequence[int]) -> None:
    indices = differentiable(op, arrays)
    if not indices:
        return
    wide = [a.astype(np.result_type(a, np.float64)) if is_inexact(a) else a for a in arrays]
    exact = op.kind in ("linear", "bilinear")
    f = as_function(op, wide, params, indices)
    check_orders(f, [wide[i] for i in indices], generator(op, arrays), exact, orders)


def check_nested(
    f: Function, xs: list[Array], rng: np.random.Generator, order: int, modes: Sequence[str], tolerances: Tolerances,
    path: str = "", done: int = 0,
) -> None:  # fmt: skip
    """The derivatives of f up to an order in every nesting of modes, each as the first derivative of the one below it."""
    for mode in modes:
        here = f"{mode} over {path}" if path else mode
        name = ORDERS[done] if done < len(ORDERS) else f"{done + 1}th"
        check_direction(f, xs, rng, False, f"{name} derivative differs in mode {here}", mode, tolerances)
        if order > done + 1:
            ys = f(*[leaf(x, True) for x in xs])
            more = [random_like(rng, y._d) for y in ys] if mode == "rev" else [random_like(rng, x) for x in xs]
            derivative = cotangent_of if mode == "rev" else tangent_of
            check_nested(derivative(f, len(xs)), xs + more, rng, order, modes, tolerances, here, done + 1)


def cotangent_of(f: Function, count: int) -> Function:
    """The derivative in reverse mode as a function of f's arguments and one cotangent for each output."""
    return lambda *arguments: func.vjp(f, *arguments[:count])[1](arguments[count:])


def tangent_of(f: Function, count: int) -> Function:
    """The derivative in forward mode as a function of f's arguments and one tangent for each of them."""
    return lambda *arguments: func.jvp(f, arguments[:count], arguments[count:])[1]


def check_grads(
    f: Callable[..., Any], args: Any, order: int = 2, modes: Sequence[str] = ("rev", "fwd"), atol: float | None = None,
    rtol: float | None = None, eps: float | None = None, *, seed: int = 0,
) -> None:  # fmt: skip
    """Compare the derivatives of a function of tensors, up to an order, with finite differences in random directions.

    Derivatives of higher order are checked in every nesting of the modes, each against differences of the one below it.

    Args:
        f: takes the arguments, arrays and floating-point numbers among them as tensors; returns tensors, nested or not.
        args: a tensor or array, or a sequence of arguments, which may be nested tuples, lists, dicts and dataclasses; all
            tensors and arrays of float64 or complex128 and Python floats in them are checked.
        order: highest order of the derivatives that are compared.
        modes: "rev" for gradients, "fwd" for derivatives of forward mode, or both.
        atol: absolute tolerance. By default 1e-7 of the sum of the terms' sizes.
        rtol: tolerance relative to the finite difference.
        eps: step of the finite differences. By default they are extrapolated from several.
        seed: of the random cotangents and directions.

    Raises:
        TypeError: for inputs of a lower precision, in which finite differences mean nothing, or nothing to differentiate.
        ValueError: for another mode.
        LawError: where a derivative differs; its `law` is "check_grads".
    """
    modes = [modes] if isinstance(modes, str) else list(modes)
    if not modes or not set(modes) <= {"rev", "fwd"}:
        raise ValueError(f"check_grads(): modes are 'rev' and 'fwd', but got {modes}")
    single = isinstance(args, Tensor | np.ndarray | float | complex)
    leaves, spec = tree.flatten((args,) if single else tuple(args))
    places = [i for i, x in enumerate(leaves) if is_inexact(getattr(x, "_d", x)) or isinstance(x, float | complex)]
    xs = [np.array(x.detach().numpy() if isinstance(x, Tensor) else x) for x in (leaves[i] for i in places)]
    for i, x in zip(places, xs, strict=True):
        if x.dtype not in (np.float64, np.complex128):
            raise TypeError(f"check_grads() needs inputs of float64 or complex128, but input {i} is {x.dtype}: use double()")

    def function(*ts: Any) -> tuple[Any, ...]:
        full = list(leaves)
        for i, t in zip(places, ts, strict=True):
            full[i] = t
        return tuple([y for y in tree.flatten(f(*tree.unflatten(spec, full)))[0] if is_inexact(getattr(y, "_d", None))])

    if not xs or not function(*[leaf(x, True) for x in xs]):
        raise TypeError(f"check_grads(): f {'returned' if xs else 'was given'} no floating-point tensor")
    name = getattr(f, "__name__", type(f).__name__)
    try:
        check_nested(function, xs, np.random.default_rng(seed), order, modes, (atol, rtol, eps))
    except _Broken as e:
        inputs_text = ", ".join(source(x) for x in xs)
        text = f"{name}: {e.text}.\n  got:      {e.left}\n  expected: {e.right}\n  inputs:   {inputs_text}"
        raise LawError("check_grads", name, text) from None


# ---------------------------------------------------------------------------------------------------------------- laws


@law
def value(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...], reference: Callable[..., Any] | None = None) -> None:
    """The recording call gives the raw forward's value, without a warning; it equals the reference where one is given."""
    raw = forward(op, arrays, params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ys = call(op, [leaf(a, i in differentiable(op, arrays)) for i, a in enumerate(arrays)], params)
    for y, r in zip(ys, raw, strict=True):
        if not same(y._d, r):
            raise _Broken("the recorded value differs from the raw forward", show(y._d), show(r))
    if reference is None:
        return
    expected = reference(list(arrays), *params) if op.arity < 0 else reference(*arrays, *params)
    for r, e in zip(raw, expected if op.outputs > 1 else (expected,), strict=True):
        if not np.allclose(r, e, rtol=1e-12, atol=1e-14, equal_nan=True) or r.shape != np.shape(e):
            raise _Broken("the value differs from the reference", show(r), show(np.asarray(e)))


@law
def vjp(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The reverse rule against finite differences of the forward."""
    record_orders(op, arrays, params, (1,))


@law
def second_order(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The reverse rule of the recorded reverse rule against finite differences of the latter."""
    record_orders(op, arrays, params, (2,))


@law
def third_order(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The same once more."""
    record_orders(op, arrays, params, (3,))


@law
def linearity(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The cotangent is pulled back linearly: 0 gives exactly 0, whatever the local derivative; -2g gives -2 times g's."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    base = pull(op, arrays, params, gs)
    scaled = pull(op, arrays, params, [-2 * g for g in gs])
    zero = pull(op, arrays, params, [0 * g for g in gs])
    for b, s, z in zip(base, scaled, zero, strict=True):
        if b is None:
            continue
        if z is None or z.any():
            raise _Broken("a cotangent of 0 is not pulled back to 0", show(z), "zeros")
        if not same(s, -2 * b):
            raise _Broken("the cotangent -2g is not pulled back to -2 times g's", show(s), show(-2 * b))


@law
def strong_zero(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """An elementwise op sends no gradient to elements whose cotangent is 0, though the local derivative be inf or nan.

    Nor does it make a tangent, or a coefficient of a series, of elements that do not move.
    """
    if op.kind != "elementwise":
        return
    full = np.broadcast_shapes(*[np.shape(a) for a in arrays])
    wide = [np.array(np.broadcast_to(a, full)) if isinstance(a, np.ndarray) else a for a in arrays]
    rng = generator(op, arrays)
    gs = cotangents_for(op, wide, params, rng)
    for g in gs:
        dead: Any = rng.random(g.shape) < 0.5
        g[dead] = 0
        for record in (False, True):
            for t in pull(op, wide, params, [g], record=record):
                if t is not None and np.any(t[dead]):
                    raise _Broken("gradient where the cotangent is 0", show(t), f"0 where {dead.tolist()}")
        f, xs = widened(op, wide, params)
        vs = [np.asarray(np.where(dead, 0, random_like(rng, x)), x.dtype) for x in xs]
        series = [[wrap_copy(v), wrap_copy(2 * v)] for v in vs]
        pushed = func.jvp(f, tuple(map(wrap_copy, xs)), tuple(map(wrap_copy, vs)))[1]
        for t in [*pushed, *func.jet(f, tuple(map(wrap_copy, xs)), series)[1][0]]:
            if np.any(t._d[dead]):
                raise _Broken("tangent where the operands do not move", show(t._d), f"0 where {dead.tolist()}")


@law
def dtypes(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """In every precision each cotangent has its argument's shape and dtype, and the value its arguments' precision.

    float16 (and bfloat16 where ml_dtypes is there) gives float32's value, rounded once, and its gradient up to the rounding
    of what was saved.
    """
    for bits in (32, 64):
        cast = [_narrow(a, bits) for a in arrays]
        rng = generator(op, arrays)
        gs = cotangents_for(op, cast, params, rng)
        for g in gs:
            chosen = any(isinstance(p, np.dtype) for p in params) or not any(is_inexact(a) for a in cast)
            if not chosen and g.real.dtype.itemsize * 8 != bits:
                raise _Broken("the value's precision is not its arguments'", g.dtype, f"{bits} bits")
        for record in (False, True):
            for i, t in zip(differentiable(op, cast), pull(op, cast, params, gs, record=record), strict=True):
                if t is not None and (t.shape, t.dtype) != (cast[i].shape, cast[i].dtype):
                    left, right = f"{t.dtype}{list(t.shape)}", f"{cast[i].dtype}{list(cast[i].shape)}"
                    raise _Broken(f"cotangent of argument {i}, {'recorded' if record else 'raw'}", left, right)
    if not any(isinstance(a, np.ndarray) and a.dtype.kind == "c" for a in arrays):
        for half in (
            () if any(isinstance(p, SubProgram) for p in params) else half_dtypes()
        ):  # a sub-program rounds at each of its steps
            _half_precision(op, arrays, params, half)


def half_dtypes() -> Iterator[np.dtype[Any]]:
    """The 16-bit floating-point dtypes that can be stored here."""
    yield np.dtype(np.float16)
    with contextlib.suppress(ImportError):
        yield tapegrad_dtypes.bfloat16.numpy


HALF_ROUNDINGS = 8  # of a gradient: those of the saved answer, of the argument, and of intermediate sums


def _half_precision(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...], half: np.dtype[Any]) -> None:
    chosen = any(isinstance(p, np.dtype) for p in params)
    small = [a.astype(half) if is_inexact(a) else a for a in arrays]
    wide = [a.astype(np.float32) if is_inexact(a) else a for a in small]
    with np.errstate(all="ignore"):
        values = [y._d for y in call(op, [leaf(a, False) for a in small], params)]
        expected = [y._d for y in call(op, [leaf(a, False) for a in wide], params)]
        for y, want in zip(values, expected, strict=True):
            rounds = want.dtype == np.float32 and not chosen and any(is_inexact(a) for a in small)
            rounded = want.astype(half) if rounds else want
            if not same(y, rounded):
                raise _Broken(f"value in {half}", show(y), show(rounded))
        gs = [random_like(generator(op, arrays), y) for y in values[: op.differentiable] if is_inexact(y)]
        wants = pull(op, wide, params, [g.astype(np.float32) if g.dtype == half else g for g in gs])
        for record in (False, True):
            for i, t, want in zip(differentiable(op, small), pull(op, small, params, gs, record=record), wants, strict=True):
                if (t is None) != (want is None) or (t is not None and (t.shape, t.dtype) != (want.shape, half)):
                    raise _Broken(
                        f"cotangent of argument {i} in {half}, {'recorded' if record else 'raw'}", show(t), show(want)
                    )
                if t is not None and not _within_roundings(t, want.astype(half)):
                    raise _Broken(
                        f"cotangent of argument {i} in {half}, {'recorded' if record else 'raw'}", show(t), show(want)
                    )


def _within_roundings(t: Array, want: Array) -> bool:
    """Whether 16-bit values agree up to HALF_ROUNDINGS of the largest finite one."""
    a, b = t.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    size = np.abs(b[finite]).max(initial=0.0)
    eps = tapegrad_dtypes.finfo(tapegrad_dtypes.of(t.dtype)).eps
    return bool((np.abs(a - b)[finite] <= HALF_ROUNDINGS * eps * size).all() and same(a[~finite], b[~finite]))


def _narrow(a: Any, bits: int) -> Any:
    if not is_inexact(a):
        return a
    return a.astype(f"c{bits // 4}" if a.dtype.kind == "c" else f"f{bits // 8}")


@law
def purity(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """Forward and rule leave their operands alone (they are read-only here) and give the same bits again."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    frozen = [np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in arrays]
    for a in (*frozen, *gs):
        if isinstance(a, np.ndarray):
            a.flags.writeable = False

    def run(record: bool) -> list[Any]:
        indices = differentiable(op, arrays)
        xs = [_frozen_leaf(a, i in indices) for i, a in enumerate(frozen)]
        ys = call(op, xs, params)
        seeds = [(y, g) for y, g in zip(ys[: op.differentiable], gs, strict=False) if y.requires_grad]
        result: Sequence[Any] = ()
        if seeds:
            given = [_frozen_leaf(g, False) for _, g in seeds]
            result = grad([y for y, _ in seeds], [xs[i] for i in indices], given, create_graph=record, allow_unused=True)
        return [t if t is None else np.array(t._d) for t in (*ys, *result)]

    first = run(False)
    for again in (run(False), run(True)):
        for a, b in zip(again, first, strict=True):
            if not same(a, b):
                raise _Broken("a second run gives another result", show(a), show(b))
    for a, f in zip(arrays, frozen, strict=True):
        if isinstance(a, np.ndarray) and not same(a, f):
            raise _Broken("an operand was changed", show(f), show(a))


def _frozen_leaf(a: Any, tracked: bool) -> Any:
    if not isinstance(a, np.ndarray):
        return a
    t = wrap(a)
    return t.requires_grad_() if tracked else t


@law
def saves_sufficient(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """What the record does not save may be overwritten after the forward: the derivative stays as it was."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    indices = differentiable(op, arrays)
    for wanted in [indices, *([i] for i in indices if len(indices) > 1)]:
        read, keeps_ans = saved(op, wanted, len(arrays))
        expected = pull(op, arrays, params, gs, wanted=wanted)

        def spoil(xs: list[Any], ys: tuple[Any, ...], read: set[int] = read, keeps_ans: bool = keeps_ans) -> None:
            kept = [x._d for i, x in enumerate(xs) if i in read and isinstance(x, Tensor)]
            kept += [y._d for y in ys if keeps_ans]
            for i, x in enumerate(xs):
                if i not in read and isinstance(x, Tensor):
                    poison(x._d, kept)
            if not keeps_ans:
                for y in ys:
                    poison(y._d, kept)

        for got, want in zip(pull(op, arrays, params, gs, wanted=wanted, before=spoil), expected, strict=True):
            if not same(got, want):
                raise _Broken(f"the rule reads what is not saved (tracked: {wanted})", show(got), show(want))


def saved(op: Op, wanted: Sequence[int], count: int) -> tuple[set[int], bool]:
    """Arguments that the record saves when the wanted ones are tracked, and whether it saves the answer."""
    if op.arity < 0:
        indices, keeps_ans = op.save_for[0]
        return set(range(count)) if indices else set(), keeps_ans
    return set().union(*[op.save_for[i][0] for i in wanted]), any(op.save_for[i][1] for i in wanted)


def poison(a: Any, kept: Sequence[Any]) -> bool:
    """Fill an array with nan, unless it shares memory with one to keep; whether that was done."""
    if not is_inexact(a) or not a.flags.writeable or any(np.may_share_memory(a, k) for k in kept):
        return False
    a[...] = np.nan
    return True


@law
def recorded(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The recorded replay gives the raw one's bits."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    indices = differentiable(op, arrays)
    raw, again = pull(op, arrays, params, gs), pull(op, arrays, params, gs, record=True)
    for i, r, t in zip(indices, raw, again, strict=True):
        if not same(t, r):
            raise _Broken(f"argument {i}: the recorded cotangent differs from the raw one", show(t), show(r))


@law
def only_asked(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """Asking for one argument's cotangent never runs another's rule."""
    gs = cotangents_for(op, arrays, params, generator(op, arrays))
    indices = differentiable(op, arrays)
    if len(indices) < 2 or not gs:
        return
    xs = [leaf(a, i in indices) for i, a in enumerate(arrays)]
    y = call(op, xs, params)[0]
    tape = current_tape()
    slot, entry = y._s, tape[y._s]
    if is_output(entry):
        slot = source_slot(entry)
        entry = tape[slot]
    for i in indices:
        ran: list[int] = []
        backward = _watched(op, entry[NUMBER], ran)
        got: dict[int, Any] = {}
        with np.errstate(all="ignore"):
            backward(entry, slot, gs[0] if op.outputs == 1 else {0: gs[0]}, got, {xs[i]._s}, set())
        if set(got) - {xs[i]._s} or set(ran) - {i}:
            others = sorted(set(ran) - {i} | {j for j in indices if j != i and xs[j]._s in got})
            raise _Broken(f"asked for argument {i} alone", f"rules of {others} ran", "no other")


def _watched(op: Op, number: int, ran: list[int]) -> Any:
    """A backward of the record whose rules note that they ran."""

    def noted(i: int, rule: Any) -> Any:
        def run(*args: Any) -> Any:
            if op.arity < 0 or op.joint:
                result = rule(*args)
                ran.extend(j for j, (t, want) in enumerate(zip(result, args[-1], strict=True)) if t is not None and not want)
                return result
            ran.append(i)
            return rule(*args)

        return run if callable(rule) else rule

    own = op.rules
    op.rules = tuple(noted(i, r) for i, r in enumerate(own))
    try:
        return rules.ReplayKind(rules.make_backward).backward_of(number)
    finally:
        op.rules = own


@law
def broadcasting(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """A broadcast argument of an elementwise op has the value of its copies, and the sum of their cotangents."""
    if op.kind != "elementwise" or op.arity < 2 or not all(isinstance(a, np.ndarray) for a in arrays):
        return
    full = np.broadcast_shapes(*[a.shape for a in arrays])
    if not full or 0 in full:
        return
    for i in differentiable(op, arrays):
        for small in _smaller(arrays[i]):
            narrow = [small if j == i else a for j, a in enumerate(arrays)]
            wide = [np.array(np.broadcast_to(a, np.broadcast_shapes(*[n.shape for n in narrow]))) for a in narrow]
            y, z = forward(op, narrow, params)[0], forward(op, wide, params)[0]
            if not same(y, z):
                raise _Broken(f"value with argument {i} of shape {small.shape}", show(y), show(z))
            gs = cotangents_for(op, wide, params, generator(op, arrays))
            got = pull(op, narrow, params, gs)
            for j, t, w in zip(differentiable(op, wide), got, pull(op, wide, params, gs), strict=True):
                if t is None and w is None:
                    continue
                expected = rules.arrays.unbroadcast(w, narrow[j].shape)
                if t.shape != expected.shape or not np.allclose(t, expected, rtol=1e-12, atol=1e-12, equal_nan=True):
                    raise _Broken(f"cotangent of argument {j}, argument {i} of shape {small.shape}", show(t), show(expected))


def _smaller(a: Array) -> Iterator[Array]:
    """The array with its sizes cut to 1: the last, the first, all, and as a 0-d array."""
    if a.ndim:
        yield a[..., :1]
        yield a[:1]
        yield a[:1, ..., :1] if a.ndim > 1 else a[:1]
    yield np.array(a.reshape(-1)[0])


# ------------------------------------------------------------------------------------------------ laws of the transforms


def widened(op: Op, arrays: Sequence[Any], params: Sequence[Any]) -> tuple[Function, list[Array]]:
    """The record as a function of its differentiable arguments, and these in double precision."""
    indices = differentiable(op, arrays)
    wide = [_narrow(a, 64) for a in arrays]
    return as_function(op, wide, params, indices), [wide[i] for i in indices]


def agree(got: Any, want: Any, tight: float) -> bool:
    """Whether arrays agree, relative to the largest finite element, shape and dtype included."""
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return False
    finite = np.abs(want[np.isfinite(want)])
    allowed = tight * max(1.0, float(finite.max(initial=0.0)))
    return bool(np.allclose(got, want, 0.0, allowed, equal_nan=is_inexact(want)))


@law
def jvp(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The tangents of forward mode against finite differences of the forward."""
    f, xs = widened(op, arrays, params)
    if xs:
        exact = op.kind in ("linear", "bilinear")
        check_direction(f, xs, generator(op, arrays), exact, "derivative in forward mode", "fwd")


@law
def adjoint(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """Forward and reverse mode are each other's transposes: <J v, w> = <v, J' w>, for each argument alone.

    Tangents have their output's shape and dtype, in every precision, and are made without a warning.
    """
    for bits in (32, 64):
        cast = [_narrow(a, bits) for a in arrays]
        rng = generator(op, arrays)
        ws = cotangents_for(op, cast, params, rng)
        for i in differentiable(op, cast):
            v = random_like(rng, cast[i])
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ys, ts = func.jvp(as_function(op, cast, params, [i]), (leaf(cast[i], False),), (wrap_copy(v),))
            for y, t in zip(ys, ts, strict=True):
                if (y._d.shape, y._d.dtype) != (t._d.shape, t._d.dtype):
                    text = f"tangent of an output by argument {i}"
                    raise _Broken(text, f"{t._d.dtype}{list(t._d.shape)}", f"{y._d.dtype}{list(y._d.shape)}")
            with np.errstate(all="ignore"):
                left, size = inner([t._d for t in ts], ws)
                right, other = inner(pull(op, cast, params, ws, wanted=[i]), [v])
            single = any(a.real.dtype == np.float32 for a in (v, *ws))
            allowed = (1e-4 if single else ADJOINT) * max(size, other, 1.0)
            singular = not math.isfinite(left) and not math.isfinite(right)
            if not singular and not abs(left - right) <= allowed:
                raise _Broken(f"<J v, w> for argument {i}", left, f"{right} (<v, J' w>)")


@law
def mixed_orders(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The second derivative in two directions is the same in all four nestings of forward and reverse mode."""
    f, xs = widened(op, arrays, params)
    if not xs:
        return
    rng = generator(op, arrays)
    us, vs = ([random_like(rng, x) for x in xs] for _ in "uv")
    ws = [random_like(rng, y._d) for y in f(*map(wrap_copy, xs))]
    ps, ts, gs = (tuple(map(wrap_copy, values)) for values in (xs, vs, ws))

    def pulled(*ps: Any) -> Any:
        return func.vjp(f, *ps)[1](gs)

    def pushed(*ps: Any) -> Any:
        return func.jvp(f, ps, ts)[1]

    results = {
        "reverse over reverse": (us, func.vjp(pulled, *ps)[1](ts)),
        "forward over reverse": (us, func.jvp(pulled, ps, ts)[1]),
        "reverse over forward": (us, func.vjp(pushed, *ps)[1](gs)),
        "forward over forward": (ws, func.jvp(pushed, ps, tuple(map(wrap_copy, us)))[1]),
    }
    first = None
    for nesting, (a, b) in results.items():
        value, size = inner(a, [t.detach()._d for t in b])
        if first is None:
            first = value
        elif not abs(value - first) <= MIXED * max(size, abs(first), 1.0):
            raise _Broken(f"second derivative, {nesting}", value, f"{first} (reverse over reverse)")


ORDER = 4


@law
def taylor(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The derivatives of orders 1 to 4 along a curve x + t v + t**2 w in Taylor mode are those of nested forward mode.

    Tensors of the tape give the same, and forward and reverse mode through them agree.
    """
    f, xs = widened(op, arrays, params)
    if not xs:
        return
    rng = generator(op, arrays)
    vs, ws = ([0.5 * random_like(rng, x) for x in xs] for _ in "vw")
    nothing = [np.zeros_like(x) for x in xs]
    series = [[v, 2 * w, *[z] * (ORDER - 2)] for v, w, z in zip(vs, ws, nothing, strict=True)]

    def curve(*ts: Any, order: int = ORDER) -> Any:
        return func.jet(f, ts, [[wrap_copy(c) for c in s[:order]] for s in series])[1]

    terms = curve(*map(wrap_copy, xs))

    def along(t: Any) -> list[Any]:
        return [f(*[wrap_copy(x) + t * wrap_copy(v) + t * t * wrap_copy(w) for x, v, w in zip(xs, vs, ws, strict=True)])]

    derivatives: Callable[[Any], list[Any]] = along
    for _ in range(ORDER):
        derivatives = _with_next(derivatives)
    nested = derivatives(wrap_copy(np.array(0.0)))
    for i, columns in enumerate(terms):
        for k, c in enumerate(columns, 1):
            got, want = c.detach()._d, nested[k][i].detach()._d
            if not agree(got, want, SERIES):
                raise _Broken(f"derivative of order {k} of output {i} along a curve", show(got), show(want))
    for other, columns in zip(curve(*[leaf(x, True) for x in xs]), terms, strict=True):
        for t, c in zip(other, columns, strict=True):
            if not agree(t.detach()._d, c._d, SERIES):
                raise _Broken("derivative along a curve of tracked tensors", show(t.detach()._d), show(c._d))
    exact = op.kind in ("linear", "bilinear")
    _check_adjoint("second derivative along a curve", lambda *ts: tuple([c[1] for c in curve(*ts, order=2)]), xs, rng, exact)


def _check_adjoint(text: str, f: Function, xs: Sequence[Array], rng: np.random.Generator, exact: bool) -> None:
    """Reverse mode of a function of tensors agrees with finite differences, and forward mode with it."""
    check_direction(f, list(xs), rng, exact, f"derivative of the {text}")
    ps = tuple(map(wrap_copy, xs))
    vs = [random_like(rng, x) for x in xs]
    ys, ts = func.jvp(f, ps, tuple(map(wrap_copy, vs)))
    ws = [random_like(rng, y._d) for y in ys]
    left, size = inner([t.detach()._d for t in ts], ws)
    right, other = inner([g.detach()._d for g in func.vjp(f, *ps)[1](tuple(map(wrap_copy, ws)))], vs)
    if not abs(left - right) <= MIXED * max(size, other, 1.0):
        raise _Broken(f"derivative of the {text}", left, f"{right} (reverse mode)")


def _with_next(derivatives: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """A function that gives a list of derivatives, and one order more."""

    def further(t: Any) -> list[Any]:
        values, tangents = func.jvp(derivatives, (t,), (wrap_copy(np.array(1.0)),))
        return [*values, tangents[-1]]

    return further


DIRECTIONS = 3


@law
def laplacian(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """The forward Laplacian by the coordinates of x + sum_i p_i v_i is the sum of the second derivatives along the v_i."""
    f, xs = widened(op, arrays, params)
    if not xs:
        return
    rng = generator(op, arrays)
    vs = [[random_like(rng, x) for x in xs] for _ in range(DIRECTIONS)]
    ps = tuple(map(wrap_copy, xs))

    def pairs(*ps: Any) -> list[tuple[Any, Any]]:
        with ForwardLaplacian(DIRECTIONS) as level:
            point = level.point(wrap_copy(np.zeros(DIRECTIONS)))
            moved = [x + sum([point[i] * wrap_copy(v[k]) for i, v in enumerate(vs)]) for k, x in enumerate(ps)]
            return [level.laplacian(y) for y in f(*moved)]

    got = pairs(*ps)
    seconds = [func.jet(f, ps, [[wrap_copy(v), wrap_copy(np.zeros_like(v))] for v in along])[1] for along in vs]
    for i, (value, found) in enumerate(got):
        want = sum(s[i][1].detach()._d for s in seconds)
        result = np.zeros_like(value._d) if found is None else found._d
        if not agree(result, np.asarray(want, value._d.dtype), SERIES):
            raise _Broken(f"Laplacian of output {i}", show(result), show(want))
    exact = op.kind in ("linear", "bilinear")
    _check_adjoint("Laplacian", lambda *ps: tuple([y * 0.0 if t is None else t for y, t in pairs(*ps)]), xs, rng, exact)


SAMPLES = 2


def _subsets(places: Sequence[int]) -> list[tuple[int, ...]]:
    """Sets of arguments to map over: all of up to three; of more, the whole, each alone, and all but each one."""
    whole = tuple(places)
    alone = [(p,) for p in places]
    but_one = [tuple([q for q in places if q != p]) for p in places] if len(places) > 2 else []
    return [s for s in dict.fromkeys([whole, *alone, *but_one]) if s]


def _copies(a: Array) -> Array:
    """Arrays like a, in front: scaled, or shuffled where they hold whole numbers or booleans."""
    rows = [a * (1 - i / 16) if is_inexact(a) else np.roll(a, i, -1) if a.ndim else a for i in range(SAMPLES)]
    return np.stack(rows).astype(a.dtype)


def _same_as_loop(
    text: str, f: Callable[..., Any], mapped: Callable[..., Any], args: Any, chosen: tuple[int, ...] = ()
) -> None:
    """f on each sample gives what `mapped` gives on all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = tree.flatten(mapped(*args))[0]
        rows = [tree.flatten(f(*tree.mapped(lambda t: t[k], args)))[0] for k in range(SAMPLES)]  # noqa: B023
    for i, (y, *parts) in enumerate(zip(got, *rows, strict=True)):
        want = np.stack([t.detach()._d for t in parts])
        if not agree(y.detach()._d, want, SERIES):
            where = f" over arguments {chosen}" if chosen else ""
            raise _Broken(f"{text}{where}, output {i}", show(y.detach()._d), f"{show(want)} (a loop)")


@law
def vmap(op: Op, arrays: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    """vmap over any of the arguments is a loop; so are vmap of reverse and forward mode, and forward mode of vmap."""
    places = [i for i, a in enumerate(arrays) if isinstance(a, np.ndarray)]

    for chosen in _subsets(places):

        def value(*xs: Any, chosen: tuple[int, ...] = chosen) -> tuple[Any, ...]:
            given = [leaf(a, False) for a in arrays]
            for i, x in zip(chosen, xs, strict=True):
                given[i] = x
            return call(op, given, params)

        _same_as_loop("vmap", value, func.vmap(value), tuple([leaf(_copies(arrays[i]), False) for i in chosen]), chosen)
    moving = differentiable(op, arrays)
    if not moving:
        return
    fixed = [leaf(_copies(arrays[i]), False) for i in places]
    xs = tuple([fixed[places.index(i)] for i in moving])

    def smooth(fixed: Sequence[Any], *xs: Any) -> tuple[Any, ...]:
        full: list[Any] = list(arrays)
        for i, t in zip((*places, *moving), (*fixed, *xs), strict=True):
            full[i] = t
        return tuple([y for y in call(op, full, params)[: op.differentiable] if is_inexact(y._d)])

    def pulled(fixed: Any, xs: Any, gs: Any) -> Any:
        return func.vjp(lambda *ts: smooth(fixed, *ts), *xs)[1](gs)

    def pushed(fixed: Any, xs: Any, ts: Any) -> Any:
        return func.jvp(lambda *ts: smooth(fixed, *ts), xs, ts)[1]

    rng = generator(op, arrays)
    ts = tuple([wrap_copy(random_like(rng, x._d)) for x in xs])
    ys = smooth([x[0] for x in fixed], *[x[0] for x in xs])
    gs = tuple([wrap_copy(np.stack([random_like(rng, y._d) for _ in range(SAMPLES)])) for y in ys])
    _same_as_loop("vmap of reverse mode", pulled, func.vmap(pulled), (fixed, xs, gs))
    _same_as_loop("vmap of forward mode", pushed, func.vmap(pushed), (fixed, xs, ts))
    _same_as_loop(
        "forward mode of vmap", pushed,
        lambda fixed, xs, ts: func.jvp(lambda *ts: func.vmap(smooth)(fixed, *ts), xs, ts)[1], (fixed, xs, ts),
    )  # fmt: skip


def saves_necessary(op: Op | str) -> None:
    """Everything that a record saves changes its derivative on some sample: nothing is kept in vain.

    Raises:
        LawError: names the argument (or the answer) that is saved and not needed.
    """
    op = record_of(op)
    if op.saves_all:
        return
    unproved: set[tuple[int, str | int]] = set()
    for i in range(1 if op.arity < 0 or op.joint else len(op.rules)):
        read, keeps_ans = op.save_for[i]
        unproved |= {(i, j) for j in read} | ({(i, "ans")} if keeps_ans else set())
    for arrays, params, _ in samples_of(op):
        gs = cotangents_for(op, arrays, params, generator(op, arrays))
        for i, what in sorted(unproved, key=str):
            wanted = differentiable(op, arrays) if op.arity < 0 or op.joint else [i]
            if set(wanted) <= set(differentiable(op, arrays)) and _needs(op, arrays, params, gs, wanted, what):
                unproved.discard((i, what))
    if unproved:
        i, what = min(unproved, key=str)
        name = "the answer" if what == "ans" else f"argument {what}"
        text = f"op {op.name} saves {name} for the rule of argument {i}, but overwriting it changes nothing on any sample"
        raise LawError("saves_necessary", op.name, text)


def _needs(
    op: Op, arrays: Sequence[Any], params: Sequence[Any], gs: Sequence[Array], wanted: list[int], what: str | int
) -> bool:
    """Whether the derivative changes when one saved array is overwritten (integers and masks are needed by nature)."""
    values = forward(op, arrays, params)
    last = max(op.keeps)
    target = values[last] if what == "ans" else arrays[what]  # type: ignore[index]
    if not is_inexact(target):
        return True

    def spoil(xs: list[Any], ys: tuple[Any, ...]) -> None:
        for t in [ys[last]] if what == "ans" else xs if op.arity < 0 else [xs[what]]:  # type: ignore[index]
            if hasattr(t, "_d"):
                poison(t._d, ())

    before = pull(op, arrays, params, gs, wanted=wanted)
    after = pull(op, arrays, params, gs, wanted=wanted, before=spoil)
    return any(not same(a, b) for a, b in zip(after, before, strict=True))


def __dir__() -> list[str]:
    return sorted(__all__)

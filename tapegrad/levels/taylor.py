"""Taylor mode: the values of a level are truncated power series in one parameter t, on which the records' rules run.

With y = f(x), y' = d(y, x) x': the rule d runs on series, and the k-th coefficient follows from lower ones,
k y_k = sum_j j x_j d_(k-j) (A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 13). Coefficients come on
demand, since a rule may read the answer whose coefficients it makes, and sin and cos read each other's. Within one
operation equal calls are one series: this closes sin -> cos -> sin into a loop and makes the work quadratic in the order.

Coefficients are arrays (numbers where a tensor has no dimensions) while nothing below the level is recorded or at a level;
else tensors; None is zero. The vjp of a general op without `jvp` is transposed, order by order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core import vjp as rules
from ..core.op import TABLE, Op
from ..core.record import Box, functional, running_trace, wrap
from ..core.state import is_recording
from ..core.vjp import RAW_XP, TENSOR_XP, arrays, bottom
from ..dtypes import is_inexact
from ..floats.functions import ERRORS, FUNCTIONS
from .forward import any_in_slices, tangents_of
from .level import Level

Coefficient = Any
Gen = Callable[[int], Coefficient]
PRODUCTS = "mul", "strong_mul"  # elementwise, but no chain rule: what the chain rule itself multiplies with


class Series:
    """A power series: coefficients from order 0 on, those not yet known by `gen`. Calls and operators are the table's."""

    __slots__ = ("c", "gen", "steps", "xp")
    __array_ufunc__ = None  # so that arrays leave operators to it

    def __init__(self, xp: Any, c: list[Coefficient], gen: Gen | None = None) -> None:
        self.xp, self.c, self.gen = xp, c, gen
        self.steps: list[Coefficient] = [None]

    def get(self, k: int) -> Coefficient:
        c = self.c
        while len(c) <= k:
            c.append(None if self.gen is None else self.gen(len(c)))
        return c[k]

    def step(self, k: int) -> Coefficient:
        """k times coefficient k."""
        steps = self.steps
        while len(steps) <= k:
            j = len(steps)
            v = self.get(j)
            steps.append(v if v is None or j == 1 else v * float(j))
        return steps[k]

    @property
    def shape(self) -> tuple[int, ...]:
        return coefficient_shape(self.c[0])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        c0 = self.c[0]
        return c0._d.dtype if isinstance(c0, Box) else getattr(c0, "dtype", arrays.float64)

    @property
    def real(self) -> Any:
        return self.xp.run(TABLE["real"], [self], ()) if self.dtype.kind == "c" else self

    def __neg__(self) -> Any:
        return self.xp.run(TABLE["neg"], [self], ())

    def __pow__(self, exponent: Any) -> Any:
        if isinstance(exponent, int | float):
            return self.xp.run(TABLE["pow_scalar"], [self], (exponent,))
        return self.xp.run(TABLE["pow"], [self, exponent], ())


def _operator(name: str, swapped: bool) -> Callable[[Series, Any], Any]:
    def run(self: Series, other: Any) -> Any:
        return self.xp.run(TABLE[name], [other, self] if swapped else [self, other], ())

    return run


for _symbol, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("matmul", "matmul")):
    setattr(Series, f"__{_symbol}__", _operator(_name, False))
    setattr(Series, f"__r{_symbol}__", _operator(_name, True))
for _name in ("lt", "gt", "le", "ge", "eq", "ne"):
    setattr(Series, f"__{_name}__", _operator(_name, False))


class SeriesNamespace:
    """One operation of a function in series arithmetic, with what its rules call: their `xp`.

    Attributes:
        order: of the last coefficient.
        raw: whether coefficients are arrays and numbers; else tensors.
        outer: the level around the Taylor level.
    """

    def __init__(self, order: int, raw: bool, outer: Level | None) -> None:
        self.order, self.raw, self.outer = order, raw, outer
        self.memo: dict[Any, tuple[Any, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        op = TABLE[name]

        def call(*args: Any) -> Any:
            if op.arity < 0:
                return self.run(op, list(args[0]), args[1:])
            return self.run(op, list(args[: op.arity]), args[op.arity :])

        setattr(self, name, call)
        return call

    def call(self, op: Op, args: list[Any], params: tuple[Any, ...]) -> Any:
        """The op on coefficients of one order."""
        if not self.raw:
            return op.on(args, params)
        if all([type(a) is float for a in args]):
            function = FUNCTIONS.get(op.name)
            if function is not None:
                try:
                    return function(*args, *params)
                except ERRORS:
                    pass
            args = [arrays.as_array(a) for a in args]
        elif op.arity > 0 and type(op.forward) is not arrays.ufunc and float in map(type, args):
            args = as_arrays(args)
        r = op.forward(args, *params) if op.arity < 0 else op.forward(*args, *params)
        return tuple([number(x) for x in r]) if op.outputs > 1 else number(r)

    def run(self, op: Op, args: list[Any], params: tuple[Any, ...]) -> Any:
        """The op on series and constants: a series, or a constant if no argument is one; a tuple for several outputs."""
        # No tensor comes here, whose dtype has the table choose between the two records.
        if op.name == "sgn" and type(args[0]) is Series and args[0].dtype.kind == "c":
            op = TABLE["sgn_complex"]
        try:
            key: Any = (op.name, tuple([a if type(a) is float or type(a) is int else id(a) for a in args]), params)
            hit = self.memo.get(key)
        except TypeError:  # a parameter that cannot be hashed
            key, hit = object(), None
        if hit is None:
            hit = self.memo[key] = (self.series(op, args, params), args)  # the arguments are kept, so that ids stay theirs
        return hit[0]

    def series(self, op: Op, args: list[Any], params: tuple[Any, ...]) -> Any:
        firsts = [a.c[0] if type(a) is Series else a for a in args]
        out = self.call(op, firsts, params)
        rules = op.rules * len(args) if op.arity < 0 and not op.joint else op.rules
        active = [type(a) is Series and rule is not None for a, rule in zip(args, rules, strict=True)]
        if op.kind == "constant" or not any(active):
            return out
        if op.kind == "elementwise" and op.name not in PRODUCTS:
            result = Series(self, [out])
            result.gen = self.integrated(op, args, active, result, params)
        elif op.kind == "linear":
            result = Series(self, [out], self.linear(op, args, active, params))
        elif op.kind in ("bilinear", "elementwise"):
            result = Series(self, [out], self.products(op, args, active, params))
        else:
            return self.general(op, args, active, out, params)
        return result

    def linear(self, op: Op, args: list[Any], active: list[bool], params: tuple[Any, ...]) -> Gen:
        def gen(k: int) -> Coefficient:
            cs = [a.get(k) if on else a.c[0] if type(a) is Series else a for a, on in zip(args, active, strict=True)]
            if all(c is None for c, on in zip(cs, active, strict=True) if on):
                return None
            filled = [
                zeros_like(a.c[0] if type(a) is Series else a) if (c is None if on else rule is not None) else c
                for c, a, on, rule in zip(cs, args, active, op.rules * (len(args) if op.arity < 0 else 1), strict=True)
            ]
            return self.call(op, filled, params)

        return gen

    def products(self, op: Op, args: list[Any], active: list[bool], params: tuple[Any, ...]) -> Gen:
        a, b = args

        def product(u: Any, v: Any) -> Any:
            if op.name == "strong_mul":
                return u * self.call(TABLE["mask_derivative"], [v, a.c[0] if type(a) is Series else a], ())
            return u * v if op.name == "mul" else self.call(op, [u, v], params)

        def gen(k: int) -> Coefficient:
            if not active[1]:
                u = a.get(k)
                return None if u is None else product(u, b)
            if not active[0]:
                v = b.get(k)
                return None if v is None else product(a, v)
            acc = None
            for j in range(k + 1):
                u, v = a.get(j), b.get(k - j)
                if u is not None and v is not None:
                    term = product(u, v)
                    acc = term if acc is None else acc + term
            return acc

        return gen

    def integrated(self, op: Op, args: list[Any], active: list[bool], out: Series, params: tuple[Any, ...]) -> Gen:
        """Coefficients of an elementwise op from those of its local derivatives."""
        local: list[Any] = [None] * len(args)

        def gen(k: int) -> Coefficient:
            acc = plain = None
            for i, rule in enumerate(op.rules):
                if not active[i]:
                    continue
                if local[i] is None:
                    local[i] = rule(self, out, *args, *params) if callable(rule) else rule
                d, x = local[i], args[i]
                if type(d) is not Series:
                    v = x.get(k)
                    if v is None or (type(d) is float and d == 0.0):
                        continue
                    term = v if type(d) is float and d == 1.0 else v * d
                    plain = term if plain is None else plain + term
                    continue
                x.step(k)
                d.get(k - 1)
                for v, q in zip(x.steps[1 : k + 1], d.c[k - 1 :: -1], strict=True):
                    if v is not None and q is not None:
                        acc = v * q if acc is None else acc + v * q
            if acc is not None and k > 1:
                acc = acc * (1.0 / k)
            acc = plain if acc is None else acc if plain is None else acc + plain
            return acc if acc is None or type(acc) is type(out.c[0]) is float else self.whole(acc, out)

        return gen

    def whole(self, c: Coefficient, out: Series) -> Coefficient:
        """A coefficient in the series' shape (of broadcast operands, one alone may vary), real if the series is."""
        if out.dtype.kind != "c" and Series(self, [c]).dtype.kind == "c":
            c = self.call(TABLE["real"], [c], ())
        shape = coefficient_shape(out.c[0])
        if coefficient_shape(c) == shape:
            return c
        return TABLE["expand"].forward(arrays.as_array(c), shape) if self.raw else TENSOR_XP.expand(c, shape)

    def general(self, op: Op, args: list[Any], active: list[bool], out: Any, params: tuple[Any, ...]) -> Any:
        """y' = jvp(x, x'; y), in series arithmetic where the record has a jvp that runs on series."""
        outs = out if op.outputs > 1 else (out,)
        results = [Series(self, [o]) for o in outs]
        if callable(coefficient := op.series):
            xp = RAW_XP if self.raw else TENSOR_XP
            results[0].gen = lambda k: coefficient(xp, k, *args, *params)
            return results[0]
        if op.jvp is not None and op.series:
            gens = self.by_jvp(op, args, active, results, params)
        else:
            gens = self.by_transposing(op, args, active, results, params)
        for i, r in enumerate(results):
            r.gen = gens(i) if i < op.differentiable else None
        return tuple(results) if op.outputs > 1 else results[0]

    def by_jvp(
        self, op: Op, args: list[Any], active: list[bool], results: list[Series], params: tuple[Any, ...]
    ) -> Callable[[int], Gen]:
        tangents: list[Any] = []

        def first() -> None:
            # Not before the first coefficient is asked for: this asks for the arguments', which may be on their way.
            moving: list[Any] = [None] * len(args)
            for i, on in enumerate(active):
                if on:
                    x = args[i]
                    c1 = x.get(1)
                    c1 = zeros_like(x.c[0]) if c1 is None else c1
                    moving[i] = Series(self, [c1], lambda k, x=x: x.step(k + 1))  # type: ignore[misc]
            # what is not differentiated, such as places, is constant
            several = [r if i < op.differentiable else r.c[0] for i, r in enumerate(results)]
            answers: Any = several if op.outputs > 1 else results[0]
            assert op.jvp is not None
            t = op.jvp(self, moving, answers, *((args,) if op.arity < 0 else args), *params)
            tangents.extend(t if op.outputs > 1 else [t])

        def of(i: int) -> Gen:
            def gen(k: int) -> Coefficient:
                if not tangents:
                    first()
                t = tangents[i] if i < len(tangents) else None
                q = t.get(k - 1) if type(t) is Series else t if k == 1 else None
                return None if q is None else self.whole(q * (1.0 / k), results[i])

            return gen

        return of

    def by_transposing(
        self, op: Op, args: list[Any], active: list[bool], results: list[Series], params: tuple[Any, ...]
    ) -> Callable[[int], Gen]:
        """Coefficient k from a Taylor level of order k - 1, on which the vjp of the op is transposed."""
        known: dict[int, list[Any]] = {}

        def at(k: int) -> list[Any]:
            if k not in known:
                with Taylor(k - 1) as level:
                    taken = [level.wrap_series(a.c[:k]) if type(a) is Series and [a.get(k)] else tensor_of(a) for a in args]
                    moves = zip(args, active, strict=True)
                    steps = [[a.step(j) for j in range(1, k + 1)] if on else [None] for a, on in moves]
                    moving = [level.wrap_series(c) if any(x is not None for x in c) else None for c in steps]
                    answers = [level.wrap_series([r.get(j) for j in range(k)]) for r in results]
                    ts = tangents_of(op, taken, moving, answers, params, level)
                    known[k] = [None if t is None else level.coefficient(t, k - 1) for t in ts]
            return known[k]

        def of(i: int) -> Gen:
            def gen(k: int) -> Coefficient:
                q = at(k)[i]
                if q is None:
                    return None
                q = q * (1.0 / k)
                return number(q._d) if self.raw else q

            return gen

        return of


class Taylor(Level):
    """Every tensor of the level is a series in t; a payload is a Series whose first coefficient is the tensor below.

    Attributes:
        order: of the last coefficient.
    """

    name = "jet"

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order
        self.respects_no_grad = is_recording()

    def wrap_series(self, coefficients: list[Coefficient]) -> Any:
        """A tensor of the level from coefficients from order 0 on."""
        if coefficients[0] is None:
            coefficients = [zeros_like(next(c for c in coefficients if c is not None)), *coefficients[1:]]
        c0 = tensor_of(coefficients[0])
        if is_plain(c0):
            coefficients = [None if c is None else number(c._d if is_bare(c) else c) for c in (c0, *coefficients[1:])]
        return self.wrap(c0, Series(None, coefficients))

    def coefficient(self, t: Any, k: int) -> Any:
        """Coefficient of a tensor as a tensor; None for zero."""
        primal, of_level = self.unwrap(t)
        if k == 0:
            return primal
        c = of_level.c[k] if of_level is not None and k < len(of_level.c) else None
        return None if c is None else tensor_of(c)

    def apply(self, op: Op, primals: list[Any], series: list[Any], params: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        raw = all([is_plain(t) for t in primals]) and all([p is None or type_raw(p) for p in series])
        xp = SeriesNamespace(self.order, raw, self.outer)
        args = [operand(t, p, raw, xp) for t, p in zip(primals, series, strict=True)]
        out = xp.run(op, args, params)
        outs = out if op.outputs > 1 else (out,)
        for r in outs:
            if type(r) is Series:
                r.get(self.order)
                if op.kind == "elementwise" or op.zero_blocks == "slices":
                    zero_unmoved(op, args, r, params, RAW_XP if raw else TENSOR_XP)
        for r, _ in xp.memo.values():
            for s in r if type(r) is tuple else (r,):
                if type(s) is Series:
                    s.gen = s.xp = None
        xp.memo.clear()  # its operands die now, not when the garbage collector finds the cycle through xp
        return [
            (tensor_of(r.c[0]), r if any(c is not None for c in r.c[1:]) else None)
            if type(r) is Series
            else (tensor_of(r), None)
            for r in outs
        ]


def bottom_of(c: Any) -> Any:
    return bottom(c) if isinstance(c, Box) else c


def zero_unmoved(op: Op, args: list[Any], r: Series, params: tuple[Any, ...], xp: Any) -> None:
    """Give a result 0 for coefficients that are not finite where no operand moves: strong zero, as in forward mode."""
    last = next((c for c in r.c[:0:-1] if c is not None), 0.0)
    if math.isfinite(last) if type(last) is float else running_trace() is None and arrays.finite(bottom_of(last)):
        return
    moves: Any = None
    for c in [c for a in args if type(a) is Series for c in a.c[1:] if c is not None]:
        m = xp.ne(c, 0.0)
        moves = m if moves is None else xp.logical_or(moves, m)
    if moves is None:
        return
    if op.zero_blocks == "slices":
        moves = any_in_slices(xp, op, moves, params)
    keep = [c if c is None else xp.logical_or(moves, xp.isfinite(c)) for c in r.c[1:]]
    r.c[1:] = [
        c if c is None else number(xp.where(m, c if isinstance(c, Box) else arrays.as_array(c), 0.0))
        for m, c in zip(keep, r.c[1:], strict=True)
    ]
    r.steps = [None]


def operand(t: Any, known: Any, raw: bool, xp: SeriesNamespace) -> Any:
    """An operand in series arithmetic: a series, or a constant."""
    if known is None:
        return number(t._d) if raw and isinstance(t, Box) else t
    if not raw:
        return Series(xp, [t, *[None if v is None else tensor_of(v) for v in known.c[1:]]])
    series = Series(xp, known.c)
    series.steps = known.steps
    return series


def is_plain(t: Any) -> bool:
    """Whether only the tensor's array counts: nothing is recorded, traced or promoted, and the tensor is at no level."""
    if not isinstance(t, Box):
        return True
    return t._st is None and not t._s and t._d.dtype.char in "fdFD?lq" and not functional(t._d)


def is_bare(c: Any) -> bool:
    return isinstance(c, Box) and is_plain(c)


def type_raw(series: Series) -> bool:
    return not any([isinstance(c, Box) for c in series.c])


def number(x: Any) -> Any:
    """A double of no dimensions as a Python number, whose arithmetic takes a tenth of the time."""
    if isinstance(x, Box):
        return x
    return x if getattr(x, "ndim", 1) or x.dtype.char != "d" else float(x)


def as_arrays(args: list[Any]) -> list[Any]:
    """Numbers that stand beside arrays as arrays, of the dtype of these."""
    found = [a.dtype for a in args if hasattr(a, "dtype") and is_inexact(a.dtype)]
    dtype = found[0] if found else arrays.float64
    return [arrays.as_array(a).astype(dtype) if type(a) is float else a for a in args]


def tensor_of(c: Any) -> Any:
    return c if isinstance(c, Box) else wrap(arrays.as_array(c))


def coefficient_shape(c: Any) -> tuple[int, ...]:
    return c._d.shape if isinstance(c, Box) else getattr(c, "shape", ())


def zeros_like(c: Any) -> Any:
    if isinstance(c, Box):
        return rules.zeros_like(c)
    return arrays.zeros(c.shape, c.dtype) if hasattr(c, "shape") else 0.0

"""Traces in which a tensor's array is a decoy: of the right shape, dtype and steps in memory, but of arbitrary values.

Only operations of the table, and `programs.tracing`, see the values themselves. What a function reads past them is the
decoy's, so two traces with other decoys, or with other values, give other programs, results or errors.
"""

import contextlib
from unittest import mock

import numpy as np

import tapegrad as tg
from tapegrad.core import alias, record
from tapegrad.core.op import FlatIndex, Op
from tapegrad.functions import shared_views
from tapegrad.programs import tracing
from tapegrad.programs.program import Ref
from tapegrad.programs.subprogram import SubProgram
from tapegrad.programs.trace import Trace
from tapegrad.utils import checkpoint


def filled(a, seed):
    """An array like another, with values that have nothing to do with it."""
    new = np.empty_like(a, subok=False)
    kind = a.dtype.kind
    if seed < 3:
        new[...] = a if seed == 0 or (seed == 2 and kind not in "fc") else 0 if seed == 1 else np.nan
        return new
    rng = np.random.default_rng(seed)
    if kind in "fc":
        new[...] = 5 * rng.standard_normal(a.shape)
        if kind == "c":
            new.imag[...] = rng.standard_normal(a.shape)
    elif kind == "b":
        new[...] = True
    else:
        new[...] = rng.integers(1, 4, a.shape)
    return new


class Decoys:
    """The arrays for which decoys stand, by the decoy's id; `seed` chooses the values of decoys."""

    def __init__(self, seed):
        self.seed, self.real, self.kept, self.made = seed, {}, [], 0

    def stand(self, decoy, real):
        self.real[id(decoy)] = real
        self.kept.append(decoy)
        return decoy

    def decoy(self, real):
        self.made += 1
        return self.stand(filled(real, self.seed if self.seed < 3 else self.seed + self.made), real)

    def of(self, value):
        """A value with the arrays for which decoys stand."""
        if isinstance(value, np.ndarray):
            found = self.real.get(id(value))
            base = value.base
            while found is None and isinstance(base, np.ndarray):
                at = self.real.get(id(base))
                if at is not None:
                    found = self.same_part(value, base, at)
                base = base.base
            return value if found is None else found
        if type(value) in (tuple, list):
            return type(value)([self.of(v) for v in value])
        return FlatIndex(self.of(value.at)) if type(value) is FlatIndex else value

    @staticmethod
    def same_part(value, base, at):
        """The part of `at` that lies as `value`, a view, does in `base`."""
        if value.shape == base.shape and value.strides == base.strides:
            return at
        return None

    def covers(self, value):
        """Whether a decoy is among nested values."""
        if isinstance(value, np.ndarray):
            return self.of(value) is not value
        if type(value) in (tuple, list):
            return any([self.covers(v) for v in value])
        return type(value) is FlatIndex and self.covers(value.at)

    def result(self, r, op, xs, params):
        """What a tensor holds for an operation's result."""
        if isinstance(r, tuple):
            return tuple([self.result(part, op, xs, params) for part in r])
        if not self.covers(xs) and not self.covers(params):
            return r
        r = np.asarray(r)
        real = [a for a in self.of(list(xs)) if isinstance(a, np.ndarray)]
        for x in xs:
            if isinstance(x, np.ndarray) and self.of(x) is r:
                return x
        if r.size and op.outputs == 1 and any([np.may_share_memory(r, a) for a in real]):
            known = self.of(params)  # a view lies where it does
            seen = op.forward(list(xs), *known) if op.arity < 0 else op.forward(*xs, *known)
            return self.stand(seen, r)
        return self.decoy(r)

    @contextlib.contextmanager
    def hidden(self, tensors):
        """Decoys in tensors, while it runs."""
        before = [(t, t._d) for t in tensors]
        for t, a in before:
            t._d = self.decoy(a)
        try:
            yield
        finally:
            for t, a in before:
                t._d = a

    @contextlib.contextmanager
    def running(self):
        forward_of, same, draw = record.forward_of, Trace.same, Trace.draw

        def run(op, arrays, params, half):
            r = forward_of(op, self.of(arrays), self.of(params), half)
            return self.result(r, op, arrays, params)

        def quiet(op, xs, params):
            r = op.forward(*self.of(xs), *self.of(params))
            y = self.result(r, op, xs, params)
            if (trace := record.running_trace()) is not None:
                trace.record_instruction(op, (None,) * len(xs), xs, params, (y,))
            return y

        def known(trace, array, other):
            if self.of(other) is not other and self.of(array) is array:
                self.stand(array, self.of(other))
            same(trace, array, other)

        def drawn(trace, make):
            return draw(trace, lambda: self.decoy(np.asarray(make())))

        with contextlib.ExitStack() as stack:
            for module in (record, alias, shared_views, checkpoint):
                stack.enter_context(mock.patch.object(module, "on_arrays", quiet))
            stack.enter_context(mock.patch.object(record, "forward_of", run))
            stack.enter_context(mock.patch.object(Trace, "same", known))
            stack.enter_context(mock.patch.object(Trace, "draw", drawn))
            stack.enter_context(mock.patch.object(tracing, "on_host", self.of))
            yield


def shown(value, trace=None):
    """A value of a program or a result, in a form that can be compared."""
    if isinstance(value, tg.Tensor):
        alias.sync(value)
        chain = [(op.name, shown(params, trace)) for op, params in getattr(value._st, "chain", ())]
        return "tensor", trace.number_of(value, value._d), value.requires_grad, type(value).__name__, chain
    if isinstance(value, Ref):
        return value
    if isinstance(value, np.ndarray) and trace is not None and id(value) in trace.numbers:
        return trace.numbers[id(value)]
    if isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, str(value.dtype), value.shape, value.tobytes()
    if type(value) in (tuple, list):
        return [shown(v, trace) for v in value]
    if isinstance(value, dict):
        return [(repr(k), shown(v, trace)) for k, v in value.items()]
    if isinstance(value, tuple | list):
        return [type(value).__name__, *[shown(v, trace) for v in value]]
    if isinstance(value, Op):
        return value.name
    if isinstance(value, SubProgram):
        return program(value.program)
    if type(value) is FlatIndex:
        return "flat", shown(value.at, trace)
    if isinstance(value, int | float | complex | str | bytes | type(None) | slice | type(...) | np.dtype | tg.dtype):
        return type(value).__name__, repr(value)
    return type(value).__name__


def program(p):
    """A program, in a form that can be compared."""
    code = [(i.op.name, shown(i.operands), shown(i.params), i.results, i.nondiff_operands) for i in p.code]
    constants = {n: shown(a) for n, a in p.constants.items()}
    inputs = [(s.number, s.what, shown(s.meta)) for s in p.inputs]
    return {"arguments": p.arguments, "inputs": inputs, "constants": constants, "code": code, "results": shown(p.results)}


def numbers_in(value):
    """The numbers of the tensors among shown results."""
    if type(value) is tuple and value and value[0] == "tensor":
        yield value[1]
    elif type(value) in (tuple, list):
        for v in value:
            yield from numbers_in(v)


def traced(function, arrays, seed, state=(), grad=False):
    """What a trace of function(*tensors) with decoys comes to: ("program", ..), ("stops", why, ..) or ("raises", ..)."""
    decoys = Decoys(seed)
    with decoys.running():
        tensors = [tg.tensor(np.array(a)) for a in arrays]
        given = [t for t in tensors if isinstance(t, tg.Tensor)]
        if grad:
            for t in given:
                t.requires_grad_(t.is_floating_point() or t.is_complex())
        with decoys.hidden([*given, *state]):
            trace = Trace(strict=True)
            try:
                with trace:
                    for t in given:
                        trace.argument(t._d)
                    result = function(*tensors)
                    results = shown(result, trace)
                    written = [trace.numbers.get(id(t._d), -1) for t in [*given, *state]]
            except Exception as e:
                if trace.aborted is not None:
                    return "stops", trace.aborted[0], trace.aborted[1]
                return "raises", type(e).__name__, str(e), e
    if trace.aborted is not None:
        return "stops", trace.aborted[0], trace.aborted[1]
    if trace.unfit is not None:
        return "stops", trace.unfit, None
    wanted = [Ref(n) for n in [*numbers_in(results), *written] if n >= 0]
    return "program", program(trace.program.pruned(wanted)), results


def difference(a, b, path=""):
    """The first place where two outcomes differ; None."""
    if type(a) is not type(b):
        return f"{path}: {a!r:.200} / {b!r:.200}"
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return f"{path}: {sorted(a.keys() ^ b.keys())}"
        return next((d for k in a if (d := difference(a[k], b[k], f"{path}[{k}]"))), None)
    if isinstance(a, tuple | list):
        found = next(
            (d for i, (x, y) in enumerate(zip(a, b, strict=False)) if (d := difference(x, y, f"{path}[{i}]"))), None
        )
        return found or (
            f"{path}: {len(a)} / {len(b)} items: {a[len(b) :]}{b[len(a) :]}"[:400] if len(a) != len(b) else None
        )
    return None if a == b else f"{path}: {a!r:.200} / {b!r:.200}"


def leak(function, arrays, others=None, state=(), grad=False):
    """How traces of a function on some arrays, and on others, differ; None if they do not."""
    given = [(seed, arrays) for seed in (0, 1, 2, 100_000)] + ([] if others is None else [(200_000, others)])
    runs = []
    for seed, values in given:
        tg.manual_seed(0)
        runs.append(traced(function, values, seed, state, grad))
    if others is not None and runs[-1][0] != "program":  # other values may be an error
        runs.pop()
    return next((d for r in runs[1:] if (d := apart(runs[0], r))), None)


def apart(a, b):
    """How two traces differ."""
    if a[0] == b[0] == "stops":
        return None
    if a[0] == b[0] == "raises":
        return None if a[1] == b[1] else f"raises {a[1:3]} / {b[1:3]}"
    if a[0] != b[0]:
        return f"{a[0]} / {b[0]}: {[r[1:3] for r in (a, b) if r[0] != 'program']}"
    return difference(a, b)

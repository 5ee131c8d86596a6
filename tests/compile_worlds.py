"""Programs that keep state, run eagerly and compiled, and all that can be seen after each of their calls.

A program is a source text with a function `build(wrap)` that makes its state, wraps the function that is to be compiled and
returns (arguments, call, between, state): what call i is given, as a dict; the call; what happens after it; and what can be
reached. It is loaded from a file, so that its source is at hand, in two worlds that begin alike. Each world is described
after every call: values, dtypes, flags, classes, `.grad`, hooks, containers, which objects are one object and which share
memory, random streams, modes and exceptions. In the end the last results are differentiated, to second order, and all
tensors are written to, so that shared memory shows. Values of floats are equal within TOLERANCE, everything else exactly.
"""

import collections
import contextlib
import dataclasses
import importlib.util
import itertools
import pathlib
import random
import re
import tempfile
import types
import warnings
import zlib

import jax
import numpy as np

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.core import alias
from tapegrad.core.record import box, peek_data
from tapegrad.dtypes import HALF
from tapegrad.jit import lower
from tapegrad.jit.compiled import Compiled
from tapegrad.programs.subprogram import on_tensors

TOLERANCE = {4: 1e-4, 8: 1e-8}  # by the bytes of a real number; of the largest value of an array, or of 1
MOST_SOURCES, MOST_RESULTS = 8, 3  # that are differentiated
COUNTER = itertools.count()


def load(text, folder):
    """The text as a module with a file of its own."""
    name = f"program_{next(COUNTER)}"
    path = pathlib.Path(folder, f"{name}.py")
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digest(value):
    return f"{zlib.crc32(repr(value).encode()):08x}"


class Picture:
    """What is reached from a value, as a list of (path, text or array or float)."""

    def __init__(self, value):
        self.facts = []
        self.tensors = {}  # path by tensor
        self._paths = {}  # by id
        self._alive = []
        self._look(value, "")
        shared = collections.defaultdict(list)
        for path, t in self.tensors.items():
            if type(t._st) is alias.Alias:
                shared[id(t._st.store)].append(path)
        self.facts += [("shared memory", "; ".join(sorted(", ".join(p) for p in shared.values() if len(p) > 1)))]
        self.facts += [
            ("random numbers", digest(tg.get_rng_state().numpy().tobytes())),
            ("Python's random numbers", digest(random.getstate())),
            ("NumPy's random numbers", digest((np.random.get_state()[1].tobytes(), np.random.get_state()[2:]))),
            ("modes", f"{tg.is_grad_enabled()} {tg.is_inference_mode_enabled()} {tg.get_default_dtype()}"),
        ]

    def _add(self, path, fact):
        self.facts.append((path, fact))

    def _look(self, value, path):
        if value is None or isinstance(value, bool | int | str | bytes | tg.dtype | type | np.dtype):
            self._add(path, f"{type(value).__name__} {value!r}")
        elif isinstance(value, float | complex | np.generic):
            self._add(path, type(value).__name__)
            self._add(path, np.asarray(value))
        elif id(value) in self._paths:
            self._add(path, f"is {self._paths[id(value)]}")
        else:
            self._paths[id(value)] = path
            self._alive.append(value)
            self._inside(value, path)

    def _inside(self, value, path):
        if isinstance(value, tg.Tensor):
            self._tensor(value, path)
        elif isinstance(value, np.ndarray):
            self._add(path, f"{type(value).__name__} {value.dtype} {value.shape}")
            self._add(path, value.copy())
        elif isinstance(value, tg.Generator):
            self._add(path, digest(value.get_state().numpy().tobytes()))
        elif isinstance(value, dict):
            self._add(path, f"{type(value).__name__} of {[k for k in value if isinstance(k, str | int)]}, {len(value)}")
            for i, (key, item) in enumerate(value.items()):
                if not isinstance(key, str | int):
                    self._look(key, f"{path}.key{i}")
                self._look(item, f"{path}[{key!r}]" if isinstance(key, str | int) else f"{path}[key{i}]")
        elif isinstance(value, list | tuple | collections.deque):
            self._add(path, f"{type(value).__name__} of {len(value)}")
            for i, item in enumerate(value):
                self._look(item, f"{path}[{i}]")
        elif isinstance(value, set | frozenset):
            self._add(path, f"{type(value).__name__} {sorted(map(repr, value))}")
        elif isinstance(value, BaseException):
            text = re.sub(r"\S*program_\d+\.py", "FILE", str(value).replace("_orig_mod: ", ""))
            self._add(path, f"{type(value).__name__}: {text}")
        elif isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType | Compiled):
            self._add(path, f"function {value.__name__}")
        else:
            self._object(value, path)

    def _object(self, value, path):
        self._add(path, type(value).__name__)
        if isinstance(value, tg.amp.GradScaler):
            self._look(value.state_dict(), path)
            return
        ours = type(value).__module__.startswith("tapegrad") and not isinstance(value, nn.Module)
        ours = ours or isinstance(value, optim.Optimizer)
        for name, item in getattr(value, "__dict__", {}).items():
            if ours and name.startswith("_"):  # of an optimizer or scheduler
                continue
            if name.endswith("_hooks") and isinstance(item, dict):  # their keys count all hooks of the process
                self._add(f"{path}.{name}", f"{len(item)} hooks")
            else:
                self._look(item, f"{path}.{name}")

    def _tensor(self, t, path):
        if t._st is not None:
            alias.sync_only(t)
        self.tensors[path] = t
        hooks = len(getattr(t, "_hooks", None) or ()), len(getattr(t, "_post_hooks", None) or ())
        flags = [f for f in ("requires_grad", "is_leaf", "retains_grad") if getattr(t, f)]
        self._add(path, f"{type(t).__name__} {t.dtype} {tuple(t.shape)} {flags} hooks {hooks}")
        self._add(path, np.array(peek_data(t)))
        if (g := getattr(t, "_g", None)) is not None:
            self._look(g, f"{path}.grad")
        else:
            self._add(f"{path}.grad", "None")
        for name, item in getattr(t, "__dict__", {}).items():
            if not name.startswith("_"):
                self._look(item, f"{path}.{name}")


def difference(a, b):
    """The first fact in which two lists of facts differ, as text; None."""
    for (path, x), (other, y) in zip(a, b, strict=False):
        if path != other:
            return f"{path} is there eagerly, {other} compiled"
        if isinstance(x, np.ndarray):
            if (what := unequal(x, y)) is not None:
                return f"{path}: {what}"
        elif x != y:
            return f"{path}: eagerly {x}, compiled {y}"
    return None if len(a) == len(b) else f"{len(a)} facts eagerly, {len(b)} compiled"


def unequal(x, y):
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"eagerly {x.dtype} {x.shape}, compiled {y.dtype} {y.shape}"
    tolerance = TOLERANCE.get(x.real.dtype.itemsize, 0.0) if x.dtype.kind in "fc" else 0.0
    if x.dtype.kind not in "fc":
        return None if np.array_equal(x, y) else f"eagerly {x.tolist()}, compiled {y.tolist()}"
    finite = np.isfinite(x)
    size = max(1.0, np.abs(x[finite]).max(initial=0.0))
    if np.array_equal(np.where(finite, 0, x), np.where(np.isfinite(y), 0, y), equal_nan=True) and np.all(
        np.abs(x[finite] - y[finite]) <= tolerance * size
    ):
        return None
    return f"eagerly {x.tolist()}, compiled {y.tolist()}"


def tensors_in(value):
    return list(Picture(value).tensors.values())


def differentiated(result, world):
    """Gradients of a result's tensors by what they may depend on, of first and second order, or why there are none."""
    roots = [t for t in tensors_in(result) if t.requires_grad and t.dtype.is_floating_point][:MOST_RESULTS]
    sources = [t for t in tensors_in(world) if t.requires_grad][:MOST_SOURCES]
    found = []
    for root in roots:
        try:
            first = tg.autograd.grad((root * root).sum(), sources, create_graph=True, retain_graph=True, allow_unused=True)
            found.append(first)
            total = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
            if isinstance(total, tg.Tensor):
                found.append(tg.autograd.grad(total, sources, retain_graph=True, allow_unused=True))
        except RuntimeError as e:
            found.append(f"RuntimeError: {str(e)[:40]}")
    return found


def written(world):
    """Write another number into each tensor and array; what shares memory then differs from what does not."""
    for i, t in enumerate(tensors_in(world)):
        with tg.no_grad(), contextlib.suppress(RuntimeError, ValueError):
            t.detach().add_(i + 1)


class Interpreted(lower.Executable):
    """Runs a program's instructions on NumPy: what crosses the boundary of a call shows without XLA's compilation."""

    def __init__(self, program, donated, kept, placement):
        self.program, self.numbers, self.donated = program, [*donated, *kept], len(donated)
        self.seconds = 0.0, 0.0
        self.shardings = [jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])] * len(program.results)

    def run(self, given, kept):
        arrays = [np.asarray(a) for a in (*given, *kept)]
        for n, a in zip(self.numbers, arrays, strict=True):
            if (a.shape, a.dtype) != self.program.metas[n]:
                raise TypeError(f"{a.dtype}{a.shape} for {self.program.metas[n]}")
        environment = dict(zip(self.numbers, arrays, strict=True)) | self.program.constants
        with np.errstate(all="ignore"):
            found = self.program.run(environment, on_numpy)
        found = [lower.to_jax(np.asarray(a)) for a in found]
        for a in given:
            a.delete()
        return found


def on_numpy(instruction, operands, params):
    op = instruction.op
    if op.wide and any(getattr(a, "dtype", None) in HALF for a in operands):  # which tensors compute in 32 bits
        with tg.no_grad():
            found = on_tensors(instruction, [box(a, 0) if isinstance(a, np.ndarray) else a for a in operands], params)
        return tuple([t._d for t in found]) if op.outputs > 1 else found._d
    return op.forward(*([operands] if op.arity < 0 else operands), *params)


@contextlib.contextmanager
def interpreted(on=True):
    """Programs made inside are interpreted."""
    before = lower.Executable
    lower.Executable = Interpreted if on else before
    try:
        yield
    finally:
        lower.Executable = before


@contextlib.contextmanager
def restored():
    """Modes and random streams are afterwards what they were; two worlds begin alike."""
    before = tg.is_grad_enabled(), tg.get_default_dtype(), tg.get_rng_state(), random.getstate(), np.random.get_state()
    tg.manual_seed(0), random.seed(0), np.random.seed(0)
    try:
        yield
    finally:
        tg.set_grad_enabled(before[0]), tg.set_default_dtype(before[1]), tg.set_rng_state(before[2])
        random.setstate(before[3]), np.random.set_state(before[4])


def pictures(build, wrap, calls):
    """(when, facts) of the program's world after each call and in the end."""
    with restored():
        arguments, call, between, state = build(wrap)
        kept = collections.deque(maxlen=2)
        for i in range(calls):
            given = arguments(i)
            try:
                result = call(given)
            except Exception as e:
                result = e.with_traceback(None)
            kept.append((given, result))
            yield f"call {i}", Picture({"result": result, "given": given, "state": state(), "kept": list(kept)}).facts
            try:
                after = between(i, result)
            except Exception as e:
                after = e.with_traceback(None)
            world = {"result": result, "given": given, "after": after, "state": state(), "kept": list(kept)}
            del result, given
        yield "afterwards", Picture(world).facts
        yield "differentiated", Picture({"gradients": differentiated(world["result"], world), "world": world}).facts
        written(world)
        yield "written", Picture(world).facts


@dataclasses.dataclass
class Report:
    """What became of a program.

    Attributes:
        difference: the first one between the worlds, as text; None.
        raised: errors of the eager calls that the program does not raise itself: it is none that people would run.
        ran: how many calls ran as programs.
        fell_back: the warnings that say why calls run eagerly.
    """

    difference: str | None
    raised: list[str]
    ran: int
    fell_back: list[str]

    @property
    def compiled(self):
        return self.ran > 0 and not self.fell_back

    def __str__(self):
        state = "equal" if self.difference is None else f"DIFFERENT {self.difference}"
        return f"{state}; {'compiled' if self.compiled else 'eager'} {' | '.join(self.fell_back)}"


def compared(text, calls=5):
    """Run a program, given as its text, in both worlds."""
    with tempfile.TemporaryDirectory() as folder:
        return worlds(lambda: load(text, folder).build, calls)


def worlds(made, calls):
    """Run in both worlds a program whose `build` is made for each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = list(pictures(made(), lambda function: function, calls))
        before = tg.compile.stats()["calls"]
        got = list(pictures(made(), tg.compile, calls))
        ran = int(tg.compile.stats()["calls"] - before)
    raised = [f for _, a in expected for p, f in a if p == "['result']" and isinstance(f, str) and "Error: " in f]
    found = None
    for (when, a), (_, b) in zip(expected, got, strict=True):
        if (what := difference(a, b)) is not None:
            found = f"{when}: {what}"
            break
    messages = [str(w.message) for w in caught]
    fell_back = [m for m in messages if "runs eagerly" in m or "run eagerly" in m]
    return Report(found, [e for e in raised if "stop" not in e], ran, fell_back)

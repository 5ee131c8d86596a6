"""Exceptions at any instruction: programs are interrupted, and what they leave behind is compared with what was there.

    python -m tests.interrupts --runs 2000 [--seed 0] [--program NAME] [--every K]

An exception is raised before a random one of the instructions that the package executes in a program (opcode tracing), or
from another thread at a random time (`PyThreadState_SetAsyncExc`), and so where CPython raises KeyboardInterrupt. Afterwards

- every mode is what it was: the context variables, the default dtype, the dialect, the number of traces;
- what the program was about is wholly old or wholly new: each `.grad`, each parameter with its optimizer's state, the state
  of a generator, a file under its name, and no lock is held;
- a fresh run gives the numbers of the first one, bit for bit;
- the tape is empty again once the program's objects are gone, and memory does not grow over the runs.
"""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import ctypes
import dis
import gc
import math
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings
from collections import Counter

import numpy as np

import tapegrad as tg
from tapegrad import dialect, dtypes, slots
from tapegrad.core import plain_commit, record, state
from tapegrad.levels import diff_inputs

PACKAGE = os.path.dirname(tg.__file__) + os.sep


class Injected(KeyboardInterrupt):
    """What is raised: as Ctrl-C, no Exception."""


# ------------------------------------------------------------------------------------------------------------- injection


class Tracer:
    """Counts the instructions that run in code of the package, and raises before the k-th of them, once.

    Attributes:
        where: the stack at which it raised, from the innermost function of the package on: (file, line, function, opcode).
        leaves_with: whether that was where a `with` statement, done, is about to call `__exit__`.
    """

    def __init__(self, k: int = 0, folder: str = PACKAGE) -> None:
        self.k, self.folder, self.count, self.where = k, folder, 0, None
        self.leaves_with, self.process = False, os.getpid()

    def call(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(self.folder):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.instruction

    def instruction(self, frame, event, _):
        if event == "opcode":
            self.count += 1
            if self.count == self.k and os.getpid() == self.process:  # a forked one traces as well
                self.where = stack_of(frame, self.folder)
                self.leaves_with = leaves_with(frame)
                if self.leaves_with and frame.f_code is slots.slot_of.__code__:
                    slots.LOCK.release()  # before a signal can come
                sys.settrace(None)
                raise Injected
        return self.instruction

    def run(self, function):
        """Whether the function was interrupted; an exception that was swallowed counts as none."""
        sys.settrace(self.call)
        try:
            function()
        except Injected:
            return True
        finally:
            sys.settrace(None)
        return False


def stack_of(frame, folder):
    found = []
    while frame is not None and frame.f_code.co_filename.startswith(folder):
        code = frame.f_code
        op = dis.opname[code.co_code[frame.f_lasti]]
        found.append((os.path.relpath(code.co_filename, folder), frame.f_lineno, code.co_qualname, op))
        frame = frame.f_back
    return found


def leaves_with(frame):
    """Whether a frame is between the end of the body of a `with` and its call of `__exit__`, where nothing is covered.

    CPython looks for signals at jumps back, at the begin of functions and after calls, none of which is there.
    """
    code = list(dis.get_instructions(frame.f_code))
    i = next(i for i, instruction in enumerate(code) if instruction.offset == frame.f_lasti)
    nones = [k for k in range(len(code) - 3) if all(c.opname == "LOAD_CONST" and c.argval is None for c in code[k : k + 3])]
    ends = [(k, next(j for j in range(k + 3, len(code)) if code[j].opname == "CALL")) for k in nones]
    return any(k <= i <= j <= k + 4 for k, j in ends)


def interrupted_after(seconds, function):
    """The same from another thread, so many seconds after the start."""
    ident, lock = threading.get_ident(), threading.Lock()
    begun = over = arrived = False

    def interrupt():
        while not begun:  # rather than to wait, which takes longer than a run
            pass
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
        with lock:
            if not over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Injected))

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        begun = True
        function()
    except Injected:
        arrived = True
    try:
        with lock:
            over = True
        for _ in range(10):  # one that is under way arrives here
            pass
    except Injected:
        over = True
    thread.join()
    return arrived


@contextlib.contextmanager
def swallowing():
    """Inside, nothing is printed where Python drops the exception, as it does in callbacks of weak references."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda dropped: None if isinstance(dropped.exc_value, Injected) else before(dropped)
    try:
        yield
    finally:
        sys.unraisablehook = before


# --------------------------------------------------------------------------------------------------------- what was there


def context():
    """What the context variables of this thread hold: all of them, whoever made them."""
    found = dict(contextvars.copy_context().items())
    found[state.RECORDING] = "off" if state.RECORDING.get() is None else "on"
    for variable in (state.TAPE, state.TASK):  # the last pass, which is over, stays there
        found.pop(variable, None)
    return found


def default_of(variable):
    try:
        return contextvars.Context().run(variable.get)
    except LookupError:
        return None


def world():
    """Everything outside of contexts that a program may not leave changed."""
    return {
        "grad": tg.is_grad_enabled(),
        "inference": tg.is_inference_mode_enabled(),
        "anomaly": tg.is_anomaly_enabled(),
        "default dtype": tg.get_default_dtype(),
        "default device": dtypes.DEFAULT.get(),
        "dialect": dialect.current,
        "traces": (record.traces, record.F32),
        "running": frozenset(diff_inputs.RUNNING),
        "call site": tg.tape().forward_call_site,
        "leaves' lock": plain_commit.ACCUMULATING._is_owned(),
        "NumPy's warnings": tuple(np.geterr().items()),
        "warning filters": len(warnings.filters),
        "threads": threading.active_count(),
    }


def differences(before, after):
    """What differs between two of (world, context)."""
    found = [f"{k}: {v!r} became {after[0][k]!r}" for k, v in before[0].items() if after[0][k] != v]
    for variable in before[1].keys() | after[1].keys():
        old, new = (c.get(variable, default_of(variable)) for c in (before[1], after[1]))
        if old is not new and variable.name != "numpy.ufunc.extobj" and not equal(old, new):
            found.append(f"{variable.name}: {old!r} became {new!r}")
    return found


def exists(pid):
    """Whether a process is there; `is_alive` stays wrong where an exception has come between its wait and its answer."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def equal(a, b):
    return type(a) is type(b) and isinstance(a, (bool, str, tuple)) and a == b


# ------------------------------------------------------------------------------------------------------------- programs


VALUES = np.random.default_rng(0).normal(size=40_000)


def leaves(*shapes):
    sizes = np.cumsum([0, *map(math.prod, shapes)]) % VALUES.size
    values = [np.resize(VALUES[start:], shape) for start, shape in zip(sizes, shapes, strict=False)]
    return [tg.tensor(v, requires_grad=True) for v in values]


class Program:
    """`start` makes what is needed; `run` is interrupted; `problems` says what is then half-done; `numbers` are its results.

    Attributes:
        runs_in: seconds of a run, measured.
        instructions: of a run, counted.
    """

    runs_in = 0.0
    instructions = 0

    def start(self):
        pass

    def run(self):
        raise NotImplementedError

    def numbers(self):
        return [np.asarray(t.detach().numpy()).tobytes() for t in self.results]

    def problems(self):
        return []

    def end(self):
        self.__dict__.clear()


class Forward(Program):
    def start(self):
        self.x, self.w, self.b = leaves((4, 5), (5, 3), (3,))

    def run(self):
        h = tg.tanh(self.x @ self.w + self.b)
        z = tg.cat([h, h.exp()], 1).view(2, 12)
        z = tg.softmax(z.t()[1:], 0) / (h.sum() ** 2 + 1)
        n = h.clone()
        n[1] = 2.0
        n.mul_(h)
        self.results = [z, n, tg.where(h > 0, h.sqrt(), 0.0).mean(), tg.nn.functional.layer_norm(h, (3,))]


class Backward(Program):
    def start(self):
        self.leaves = leaves((4, 5), (5, 3), (3,))
        self.old = [tg.ones_like(t) for t in self.leaves[:2]] + [None]
        for t, g in zip(self.leaves, self.old, strict=True):
            t.grad = None if g is None else g.clone()
        x, w, b = self.leaves
        self.loss = (tg.tanh(x @ w + b).exp() * b).sum()

    def run(self):
        self.loss.backward()
        self.results = [t.grad for t in self.leaves]

    def problems(self):
        new = [np.frombuffer(a) for a in self.expected] if hasattr(self, "expected") else None
        found = []
        for i, (t, old) in enumerate(zip(self.leaves, self.old, strict=True)):
            g = None if t.grad is None else t.grad.numpy().ravel()
            is_old = g is None if old is None else g is not None and np.array_equal(g, old.numpy().ravel())
            if not is_old and not (g is not None and np.array_equal(g, new[i])):
                found.append(f"the gradient of leaf {i} is half-done")
            found += ["old"] if is_old else ["new"]
        states = {f for f in found if f in ("old", "new")}
        found = [f for f in found if f not in ("old", "new")]
        return found if len(states) < 2 else [*found, "some gradients are old, others new"]


class General(Backward):
    """A pass of several outputs into `inputs`, with retain_graph."""

    def run(self):
        tg.autograd.backward([self.loss, self.loss * 2.0], inputs=self.leaves, retain_graph=True)
        self.results = [t.grad for t in self.leaves]


class CreateGraph(Program):
    def start(self):
        self.x, self.w = leaves((4, 5), (5, 3))

    def run(self):
        x, w = self.x, self.w
        g, h = tg.autograd.grad((x @ w).sin().sum() + (w**3).sum(), (x, w), create_graph=True)
        (k,) = tg.autograd.grad((g**2).sum() + (h**2).sum(), x, create_graph=True, materialize_grads=True)
        self.results = [g, h, k, *tg.autograd.grad(k.sum() + h.sum(), (x, w))]


class Hooks(Backward):
    def start(self):
        super().start()
        x, w, b = self.leaves
        h = tg.tanh(x @ w + b)
        h.register_hook(lambda g: g * 2.0)
        h.retain_grad()
        h.grad_fn.register_prehook(lambda gs: gs)
        b.register_hook(lambda g: g + 0.0 * tg.ones(3).sum())
        self.h, self.loss = h, (h.exp() * b).sum()


class Vmap(Program):
    def start(self):
        tg.manual_seed(0)
        self.x, self.w = leaves((4, 5), (5, 3))

    def run(self):
        def f(v):
            return (tg.func.grad(lambda u: (u @ self.w).sin().sum())(v) * v).sum()

        def branches(v):
            return v * 2.0 if v.sum() > 0 else v.exp()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            looped = tg.func.vmap(branches)(self.x)
        drawn = tg.func.vmap(lambda v: v + tg.rand(5), randomness="different")(self.x)
        self.results = [tg.func.vmap(f)(self.x), looped, drawn * 0.0, tg.func.jacrev(f)(self.x[0])]


class Jvp(Program):
    def start(self):
        self.x, self.w = leaves((4, 5), (5, 3))

    def run(self):
        def f(x):
            return tg.softmax((x @ self.w).sin(), 1)

        y, t = tg.func.jvp(f, (self.x,), (tg.ones_like(self.x),))
        h = tg.func.hessian(lambda u: (u @ self.w).sin().prod())(self.x[0])
        _, push = tg.func.linearize(f, self.x)
        self.results = [y, t, h, push(self.x), tg.func.jacfwd(f)(self.x)]


def step_of(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


class CompileTrace(Program):
    def start(self):
        tg.manual_seed(0)
        self.model = tg.nn.Sequential(tg.nn.Linear(5, 4), tg.nn.Tanh(), tg.nn.Linear(4, 1))
        self.optimizer = tg.optim.SGD(self.model.parameters(), lr=0.1)
        self.step = tg.compile(step_of(self.model, self.optimizer))
        self.x = tg.ones(3, 5)

    def run(self):
        self.results = [self.step(self.x), *self.model.parameters()]


class CompileDispatch(CompileTrace):
    made = None

    def start(self):
        if type(self).made is None:
            super().start()
            for scale in (1.0, 2.0, 3.0):
                self.step(self.x * scale)
            type(self).made = self.model, self.optimizer, self.step, self.x
        self.model, self.optimizer, self.step, self.x = self.made
        tg.manual_seed(1)
        for p in self.model.parameters():
            tg.nn.init.ones_(p)
            p.grad = None


class Optimizers(Program):
    kinds = tg.optim.SGD, tg.optim.Adam, tg.optim.AdamW, tg.optim.RMSprop
    made = 0

    def start(self):
        self.sets = []
        for kind in self.kinds:
            params = leaves((3,), (2, 3), (40_000,))
            optimizer = kind(params, lr=0.1, **({"momentum": 0.9} if kind is tg.optim.SGD else {}))
            for i in range(2):
                for p in params:
                    p.grad = tg.full_like(p, 0.5 + i)
                if not i:
                    optimizer.step()
            self.sets.append((params, optimizer))
        self.before = self.states()

    def states(self):
        """Of each parameter: its values and its state's."""
        return [
            (p.detach().numpy().tobytes(), *[v.numpy().tobytes() for v in o.state[p].values()])
            for ps, o in self.sets
            for p in ps
        ]

    def run(self):
        for _, optimizer in self.sets:
            optimizer.step()
        self.results = []

    def numbers(self):
        return self.states()

    def problems(self):
        found = []
        for i, (now, old, new) in enumerate(zip(self.states(), self.before, self.expected, strict=True)):
            if now not in (old, new):
                found.append(f"parameter {i % 3} of {self.kinds[i // 3].__name__} and its state are half-updated")
        return found + [f"{type(o).__name__} still steps" for _, o in self.sets if o._stepping]


class Rows(tg.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return tg.full((3,), float(i)), i


class Loader(Program):
    def start(self):
        self.generator = tg.Generator().manual_seed(3)
        self.loader = tg.utils.data.DataLoader(Rows(), 2, shuffle=True, generator=self.generator)

    def run(self):
        self.results = [t for _ in range(2) for x, i in self.loader for t in (x, i)]


class LoaderWithWorkers(Program):
    def start(self):
        self.generator = tg.Generator().manual_seed(3)
        self.loader = tg.utils.data.DataLoader(Rows(), 2, shuffle=True, generator=self.generator, num_workers=1)

    def run(self):
        self.results = [t for x, i in self.loader for t in (x, i)]


class Save(Program):
    folder = None

    def start(self):
        self.path = pathlib.Path(self.folder) / "state.pt"
        self.old, self.new = ({"w": tg.full((50,), v), "n": [1, tg.ones(2)]} for v in (1.0, 2.0))
        tg.save(self.old, self.path)
        self.bytes = self.path.read_bytes()

    def run(self):
        tg.save(self.new, self.path)
        self.results = [tg.load(self.path)["w"]]

    def problems(self):
        found = []
        now = self.path.read_bytes()
        if now != self.bytes and not bool((tg.load(self.path)["w"] == 2).all()):
            found.append("the file is neither the old nor the new one")
        return found + [f"{p.name} is left" for p in self.path.parent.iterdir() if p != self.path]


class Draws(Program):
    methods = (
        lambda g: tg.rand(5, generator=g),
        lambda g: tg.randn(5, generator=g),
        lambda g: tg.randn(40, generator=g),
        lambda g: tg.randn(5, dtype=tg.float64, generator=g),
        lambda g: tg.rand(300, dtype=tg.float64, generator=g),
        lambda g: tg.rand(70_000, generator=g),
        lambda g: tg.randperm(9, generator=g),
        lambda g: tg.randint(0, 5, (3,), generator=g),
        lambda g: tg.poisson(tg.full((3,), 4.0), generator=g),
        lambda g: tg.bernoulli(tg.full((3,), 0.5), generator=g),
        lambda g: tg.multinomial(tg.ones(5), 3, generator=g),
        lambda g: tg.zeros(7).exponential_(generator=g),
        lambda g: tg.zeros(20).normal_(generator=g),
    )

    def start(self):
        self.generator = tg.Generator().manual_seed(5)
        self.results = []

    def run(self):
        for draw in self.methods:
            self.results.append(draw(self.generator))

    def problems(self):
        """The next draw is the one that would have come next, or the one that was interrupted again."""
        at = len(self.results)
        now = self.generator.get_state().numpy()
        allowed = []
        other = tg.Generator().manual_seed(5)
        for i, draw in enumerate(self.methods):
            if i == at:
                allowed.append(other.get_state().numpy())
            draw(other)
            if i == at:
                allowed.append(other.get_state().numpy())
        same = not allowed or any(follow(now, s) for s in allowed)
        return [] if same else [f"the generator is between two states, in draw {at}"]


def follow(a, b):
    """Whether two states of generators give the same numbers."""
    one, other = tg.Generator(), tg.Generator()
    one.set_state(tg.tensor(a))
    other.set_state(tg.tensor(b))
    return all(bool((draw(one) == draw(other)).all()) for draw in (Draws.methods[3], Draws.methods[4]))


# ---------------------------------------------------------------------------------------------------- modes by `with`

CONTROL = """
from contextvars import ContextVar
STATE = ContextVar("state", default=True)
class Control:
    def __enter__(self):
        self.before = STATE.get()
        STATE.set(False)
        return self
    def __exit__(self, *_):
        STATE.set(self.before)
"""
FIVE_LINES: dict = {"__name__": "five_lines"}
exec(compile(CONTROL, "/five_lines/control.py", "exec"), FIVE_LINES)
MODES = {
    "no_grad": tg.no_grad,
    "enable_grad": tg.enable_grad,
    "inference_mode": tg.inference_mode,
    "detect_anomaly": tg.autograd.detect_anomaly,
    "autocast": lambda: tg.autocast("cpu", tg.float16),
    "dual_level": tg.autograd.forward_ad.dual_level,
    "saved_tensors_hooks": lambda: tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    "device": lambda: tg.device("cpu"),
}


def windows(make, folder=PACKAGE):
    """The instructions at which an exception leaves a mode entered by `with` behind: (function, opcode), in order."""

    def run(tracer):
        """Whether the mode is left behind."""
        block = make()

        def enter_and_leave():
            with block:
                pass

        def swept():
            tg.tape().sweep()
            tg.ones(1, requires_grad=True).exp()  # for no_grad to sweep

        before = context()
        Tracer(0, folder).run(swept)  # CPython 3.13 forgets to trace a function that has run untraced since
        tracer.run(enter_and_leave)
        return differences(({}, before), ({}, context()))

    def traced(k=0):
        tracer = Tracer(k, folder)
        return contextvars.copy_context().run(run, tracer), tracer

    found, k, count = [], 0, 1
    while k < count:
        k += 1
        traced()  # CPython 3.13 traces instructions from a function's second traced call on, and anew after a raise
        count = traced()[1].count
        left, tracer = traced(k)
        if left and tracer.where is not None:
            found.append((tracer.where[0][2], tracer.where[0][3]))
    return found


def control_windows():
    return windows(FIVE_LINES["Control"], "/five_lines/")


PROGRAMS = {
    "forward": Forward,
    "backward": Backward,
    "general": General,
    "create_graph": CreateGraph,
    "hooks": Hooks,
    "vmap": Vmap,
    "jvp": Jvp,
    "optimizers": Optimizers,
    "loader": Loader,
    "workers": LoaderWithWorkers,  # before what imports JAX, whose threads no fork takes along
    "save": Save,
    "draws": Draws,
    "trace": CompileTrace,
    "dispatch": CompileDispatch,
}


# ------------------------------------------------------------------------------------------------------------------- runs


LOCK_LEFT = "leaves' lock: False became True"


class Harness:
    """Interrupts one program, again and again.

    Attributes:
        faults: (where, what) of each run that left something behind.
        windows: the same, where a lock was left at the end of its `with`: what no signal can do; see `leaves_with`.
        memory: bytes that Python held when a fourth of the runs were done.
        interrupted: runs in which the exception arrived; in the others it was swallowed or came too late.
    """

    def __init__(self, program):
        self.make = program
        self.faults, self.windows, self.interrupted, self.runs, self.memory = [], [], 0, 0, 0
        self.reference, seconds = self.fresh(), 0.0
        for _ in range(3):  # what is made once is made now
            begun = time.perf_counter()
            assert self.fresh() == self.reference, f"{program.__name__} gives other numbers at another run"
            seconds = time.perf_counter() - begun
        self.seconds = seconds
        for _ in range(2):  # from CPython 3.12 on, instructions are traced from a function's second traced call on
            counter, p = Tracer(), self.started()
            counter.run(p.run)
            p.end()
        self.instructions = counter.count
        self.collect()
        self.entries = len(tg.tape())

    def started(self):
        p = self.make()
        p.start()
        p.expected = getattr(self, "reference", None)
        return p

    def fresh(self):
        p = self.started()
        try:
            p.run()
            return p.numbers()
        finally:
            p.end()

    def collect(self):
        gc.collect()
        tg.tape().sweep()

    def at(self, k):
        """Interrupt before the k-th instruction."""
        tracer, p = Tracer(k), self.started()
        self.check(lambda: tracer.run(p.run), [p], lambda: tracer.where, lambda: tracer.leaves_with)

    def after(self, seconds):
        """Interrupt from another thread, in one of several runs."""
        running = []

        def run_on():
            for _ in range(1000):
                running.clear()
                p = self.started()
                running.append(p)
                p.run()

        self.check(lambda: interrupted_after(seconds, run_on), running, lambda: [("", 0, f"after {seconds:.6f} s", "")])

    def check(self, interrupt, running, where, leaves_with=lambda: False):
        """What an interrupted run has left; `running` has the program that it interrupts."""
        self.runs += 1
        gc.collect()
        before = world(), context()
        arrived = interrupt()
        self.interrupted += arrived
        found = differences(before, (world(), context()))
        if found:
            self.restore(before[1])
        if leaves_with() and found in ([LOCK_LEFT], []):
            self.windows += [(where(), f) for f in found]
            found = []
        while running:
            p = running.pop()
            found += p.problems() if arrived else []
            p.end()
            del p
        gc.collect()
        for child in multiprocessing.active_children():
            child.join(5)  # its socket is closed, which it sees
            if exists(child.pid):
                found.append("a process is left")
                child.kill()
                child.join()
        try:
            if self.fresh() != self.reference:
                found.append("a fresh run gives other numbers")
        except Exception as e:  # whatever a later run says is a fault of this one
            found.append(f"a fresh run fails: {type(e).__name__}: {e}")
        self.collect()
        if len(tg.tape()) > self.entries:
            found.append(f"{len(tg.tape())} entries are left on the tape")
            tg.tape().clear()
        self.faults += [(where(), f) for f in found]

    @staticmethod
    def restore(before):
        """Go on as if nothing had leaked, so that later runs show their own faults."""
        for variable in contextvars.copy_context():
            if variable is state.RECORDING:
                variable.set(state.recorder())
            elif variable not in (state.TAPE, state.TASK):
                variable.set(before.get(variable, default_of(variable)))
        diff_inputs.RUNNING.clear()
        while plain_commit.ACCUMULATING._is_owned():
            plain_commit.ACCUMULATING.release()
        tg.tape().forward_call_site = None


def interrupt(name, runs, seed, asynchronous=True):
    """The harness after so many runs of a program, of which a third are interrupted from another thread."""
    gc.collect()
    gc.freeze()  # what is there already need not be looked through again
    with swallowing():
        draws, harness = random.Random(f"{name} {seed}"), Harness(PROGRAMS[name])
        for i in range(runs):
            if i == runs // 4:
                gc.collect()
                harness.memory = tracemalloc.get_traced_memory()[0]
            if asynchronous and i % 3 == 2:
                harness.after(draws.random() * (0.003 + 2 * harness.seconds))
            else:
                harness.at(draws.randint(1, harness.instructions))
        gc.unfreeze()
        return harness


def share(name):
    """Of the runs: those that compile take longest."""
    return 0.2 if name == "trace" else 1.0


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.interrupts", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=2000, help="in all programs together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", choices=sorted(PROGRAMS), help="only this one")
    options = parser.parse_args()
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # compiling takes most of the time
    names = [options.program] if options.program else list(PROGRAMS)
    sys.setswitchinterval(1e-5)
    failed = 0
    print(f"{'program':<14}{'instructions':>13}{'runs':>7}{'arrived':>9}{'faults':>8}{'MB':>7}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as Save.folder:
        for name in names:
            begun = time.perf_counter()
            tracemalloc.start()
            h = interrupt(name, math.ceil(options.runs * share(name) / sum(map(share, names))), options.seed)
            gc.collect()
            grown = (tracemalloc.get_traced_memory()[0] - h.memory) / 1e6
            tracemalloc.stop()
            seconds = time.perf_counter() - begun
            print(
                f"{name:<14}{h.instructions:>13}{h.runs:>7}{h.interrupted:>9}{len(h.faults):>8}{grown:>7.2f}{seconds:>9.1f}",
                flush=True,
            )
            for (stack, what), n in Counter((str((w or [])[:4]), f) for w, f in h.faults + h.windows).most_common(12):
                print(f"    {n} x {what}\n        {stack}")
            failed += len(h.faults)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

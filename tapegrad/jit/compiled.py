"""Compiled functions: the cache of programs by call key, and when a call is traced again or runs eagerly."""

from __future__ import annotations

import functools
import linecache
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from .. import dtypes, errors
from ..contexts import restoring
from ..core import alias, record
from ..core.level import LEVEL
from ..core.record import Box, peek_data
from ..core.state import ANOMALY, PACKING, RECORDING, TRACE
from ..func import tree
from ..functions import casting
from ..nn.module import Module
from ..tensor.methods import methods
from . import STATISTICS, pending
from .compiled_program import CompiledProgram
from .effects import Written, code_of, written_arguments
from .explain import explained
from .inputs import Stale, Unverified
from .keys import WRITTEN, hidden, is_dead, leaf_names, listed, named, nearest, signature_of, static_key, without_values
from .lower import default_placement
from .mesh import Layout
from .parts import Parts
from .traced_call import TracedCall
from .transfer import PENDING, TENSOR, jax_type
from .verify import Outline, Values, first_difference, wrong_number
from .writes import argument_at

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
methods()  # no class that a trace looks at changes from now on
MOST_PROGRAMS = 8  # programs kept for one specialization
MOST_FAILURES = 3  # traces in a row that cannot be used, after which the function runs eagerly
MOST_VALUES = 8  # executables that differ only in values of arguments that are no arrays
MOST_SPECIALIZATIONS = 64  # of a function; the oldest is dropped
CHECK = "TAPEGRAD_COMPILE_CHECK"  # the environment variable for `check`
MANY_TRACES = 16  # with so many there is a warning
OWN = frozenset(("function", "__copy__", "__deepcopy__"))  # attributes that are never the function's
# What copies and files leave out
NOT_COPIED = frozenset(("changing", "only_written", "specializations", "lock", "too_many", "traces", "unsettled", "varying"))
NOTHING: dict[int, Any] = {}


class Specialization:
    """The programs for calls of one key: of equal shapes, dtypes, static arguments and modes.

    Attributes:
        why: in what its key differs from those before.
        programs: the latest first.
        failures: traces in a row that could not be used.
        differences: programs that the call after the traced one did not give again.
        changed: what the last of these changed; see `TracedCall`.
        eager: why such calls run eagerly; None.
        parts: if they run eagerly, but for parts that are compiled; None.
        history: why there was each trace.
    """

    def __init__(self, why: str, eager: str | None = None) -> None:
        self.why = why
        self.programs: list[CompiledProgram] = []
        self.failures = self.differences = 0
        self.changed: Any = None
        self.eager = eager
        self.parts: Parts | None = None
        self.history: list[str] = []

    def discard(self, program: CompiledProgram | None) -> None:
        """Keep a program no longer, if it is still kept."""
        self.programs = [other for other in self.programs if other is not program]  # the other list may be in use


class Compiled(Generic[P, R]):
    """A function that runs as compiled programs; see `compile`."""

    def __init__(
        self, function: Callable[P, R], *, static_argnames: Any = (), donate: bool = True, fullgraph: bool = False,
        debug_nans: bool = False, mesh: Any = None, shard: Any = None, check: int | None = None,
    ) -> None:  # fmt: skip
        self.function = function
        self.interval = interval_of(check)
        self.asked = False  # for a comparison at this call
        self.static = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self.donate, self.fullgraph, self.debug_nans = donate, fullgraph, debug_nans
        if shard and mesh is None:
            raise errors.shard_without_mesh()
        self.layout = None if mesh is None else Layout(signature_of(function), mesh, shard)
        functools.update_wrapper(self, function, updated=())
        self._begin()

    def _begin(self) -> None:
        """Start with an empty cache."""
        self.specializations: dict[Any, Specialization] = {}
        self.too_many: set[Any] = set()  # keys without values, of which there are too many
        self.varying: set[tuple[int, Any]] = set()  # settings that have changed: see `Trace.varying`
        self.changing: set[tuple[Any, Any]] = set()  # plain numbers that calls have changed: see `TracedCall.counted`
        self.traces = 0
        self.only_written: Written | None = None
        self.unsettled = 0  # traces in a row whose program is not for the next call with the same arguments
        self.lock = threading.RLock()

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: Compiled[Concatenate[Any, Q], R], instance: object, owner: Any = None) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @restoring
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if runs_eagerly():
            return self.function(*args, **kwargs)
        tensors, key = self._key(args, kwargs)
        if tensors is None:
            return self.function(*args, **kwargs)
        with self.lock:
            specialization = self.specializations.get(key) or self._specialize(key, args, kwargs)
            if specialization.eager is None:
                return self._run(specialization, args, kwargs, tensors)  # type: ignore[no-any-return]
        STATISTICS.add(eager_calls=1)
        if specialization.parts is not None:
            with specialization.parts:
                return self.function(*args, **kwargs)
        return self.function(*args, **kwargs)  # without the lock: it may call others that call this one

    def _specialize(self, key: Any, args: Any, kwargs: Any) -> Specialization:
        """The specialization for a new key; eager if too many keys differ from it only in values that are no arrays."""
        args, kwargs = self._roots(args, kwargs)
        names = leaf_names(self.function, args, kwargs, self._written(args, kwargs))
        why = listed(nearest(list(self.specializations), key, names)) if self.specializations else "the first call"
        for dead in list(filter(is_dead, self.specializations)):
            del self.specializations[dead]
        like = without_values(key, len(names))
        others = [k for k in self.specializations if k[0] == key[0] and without_values(k, len(names)) == like]
        of_others = [self.specializations[k].programs for k in others]
        distinct = len({id(p.executable) for programs in of_others for p in programs}) + of_others.count([])
        many = MOST_VALUES if distinct >= MOST_VALUES else len(others) // MOST_SPECIALIZATIONS * MOST_SPECIALIZATIONS
        if like != key and many and not self.fullgraph:
            if like not in self.too_many:
                self.too_many.add(like)
                warn(errors.many_values(named(self.function), many, why))
            eager = f"{many} programs differ only in values of arguments that are no arrays: {why}"
            return Specialization(why, eager)
        is_new = self.unsettled >= MOST_FAILURES and all([k[0] != key[0] for k in self.specializations])
        specialization = self.specializations[key] = Specialization(why)
        if is_new:
            specialization.eager = "it changes the structure of its arguments"
        if len(self.specializations) > MOST_SPECIALIZATIONS:
            del self.specializations[next(iter(self.specializations))]
        return specialization

    def _run(self, specialization: Specialization, args: Any, kwargs: Any, tensors: list[Any]) -> Any:
        reasons = []
        for program in specialization.programs:
            containers = program.containers(self._roots(args, kwargs)) if program.paths else ()
            found = program.failed_guard(tensors, containers)
            if found is None:
                try:
                    result = program(tensors, containers, self._is_due(program))
                except Stale as e:
                    found = str(e)
                except Unverified:
                    break
                else:
                    STATISTICS.add(calls=1)
                    return result
            reasons.append(found)
        else:
            why = reasons[0] if reasons else specialization.why  # that of the latest program
            return self._trace(specialization, args, kwargs, tensors, why)
        return self._verify(specialization, program, args, kwargs, tensors)

    def _is_due(self, program: CompiledProgram) -> bool:
        """Whether the function itself is to run next to the program."""
        interval = self.interval
        if interval is None:
            return self.asked or not program.verified
        return self.asked or (interval > 0 and (not program.verified or program.calls % interval == 0))

    def check(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Call the function itself, run its program on copies next to it, and print the first difference.

        Returns:
            Whether they agree: results, written state, gradients and side effects; floats within the tolerance that
            docs/compile.md states. False also for a function that runs eagerly, and says why.
        """
        with self.lock:
            tensors, key = self._key(args, kwargs)
            found = None if tensors is None else self.specializations.get(key) or self._specialize(key, args, kwargs)
            if found is not None and found.eager is None:
                try:
                    self.asked = True
                    self._run(found, args, kwargs, tensors)
                finally:
                    self.asked = False
            else:
                self.function(*args, **kwargs)
        why = "it is called inside a transform" if found is None else found.eager
        if why is None and found is not None and not found.programs:
            why = found.why
        name = named(self.function)
        print(f"the program of {name} and the function agree" if why is None else f"{name} runs eagerly: {why}")
        return why is None

    def explain(self, *args: Any, **kwargs: Any) -> None:
        """Call the function and print what its program for such arguments is; without arguments print all there are.

        First a summary, with XLA's estimate of operations and memory; then why it was traced, the program as a Wengert list,
        and what it reads and writes besides arguments and results.
        """
        specializations = list(self.specializations.values())
        if args or kwargs:
            self(*args, **kwargs)
            tensors, key = self._key(args, kwargs)
            if tensors is None:
                print("inside a transform the function itself runs")
                return
            specializations = [self.specializations.get(key) or self._specialize(key, args, kwargs)]
        print(explained(named(self.function), specializations))

    def __getattr__(self, name: str) -> Any:
        if name in OWN:
            raise AttributeError(name)
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return f"<compiled {named(self.function)}>"

    # -------------------------------------------------------------------------------------------------- copies and files

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A decorated function of a module by its name, as functions are; anything else without its programs."""
        name = getattr(self, "__qualname__", "")
        if name and found_at(self.__module__, name) is self:
            return name
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in NOT_COPIED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"interval": interval_of(None), "asked": False} | state)  # files of 0.1.0 have neither
        self._begin()

    # ------------------------------------------------------------------------------------------------------- arguments

    def _key(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Arrays among the arguments, and the key of the call in the cache; (None, None) inside a transform."""
        leaves: list[Any] = args
        spec: Any = len(args)
        written: Any = ()
        besides: list[Any] = []
        if self.static or kwargs or not all([issubclass(type(a), Box) for a in args]):
            leaves, spec, written, besides = self._flat(args, kwargs)
        tensors: list[Any] = []
        modes = RECORDING.get() is None, casting.current(), dtypes.get_default_dtype(), dtypes.DEFAULT.get()
        parts: list[Any] = [spec, modes]
        for leaf in leaves:
            cls: Any = type(leaf)
            if issubclass(cls, Box):
                if leaf._st is not None:
                    if alias.has_level(leaf):
                        return None, None
                    alias.sync_only(leaf)
                array = peek_data(leaf)
                on_device = pending.is_on_device(leaf)
                layout = array.sharding if on_device else layout_of(array)
                part = array.shape, array.dtype, (leaf._s > 0) - (leaf._s < 0), layout
                parts.append(part if cls is TENSOR or cls is PENDING else (*part, getattr(cls, "_pending_of", cls)))
                tensors.append(leaf)
            elif issubclass(cls, record.ndarray):
                shape, dtype, layout = leaf.shape, leaf.dtype, layout_of(leaf)
                parts.append((shape, dtype) if cls is record.ndarray and not layout else (shape, dtype, 0, layout, cls))
                tensors.append(leaf)
            elif id(leaf) in written:
                parts.append((type(leaf), WRITTEN))
            else:
                parts.append(static_key(leaf))
        parts += besides
        if len(tensors) > 1 and (len({id(t) for t in tensors}) < len(tensors) or sharing(tensors)):
            parts.append(tuple([[id(t) for t in tensors].index(id(t)) for t in tensors]))
            parts.append(sharing(tensors))
        return tensors, tuple(parts)

    def _roots(self, args: Any, kwargs: Any) -> Any:
        """Arguments that are not static, as (args, kwargs)."""
        return self._bound(args, kwargs)[0] if self.static else (args, kwargs)

    def _written(self, args: Any, kwargs: Any) -> dict[int, Any]:
        """The containers among the arguments that the function only writes, by id."""
        if self.only_written is None or self.only_written.code is not code_of(self.function)[0]:
            self.only_written = Written(self.function)
        return written_arguments(self.only_written, args, kwargs) if self.only_written.parameters else NOTHING

    def _flat(self, args: Any, kwargs: Any) -> tuple[list[Any], Any, dict[int, Any], list[Any]]:
        """Leaves and structure of the arguments, the containers that are only written, and keys of what else they hold."""
        fixed: dict[str, Any] = {}
        if self.static:
            (args, kwargs), fixed = self._bound(args, kwargs)
        written = self._written(args, kwargs)
        for name, value in fixed.items():
            try:
                hash(value)
            except TypeError:
                raise errors.unhashable_static(name, type(value).__name__) from None
        leaves, spec = tree.flatten((args, kwargs), written)
        besides = [static_key(v) for value in (*args, *kwargs.values()) for _, v in hidden("", value, written)]
        if not self.static:
            return leaves, spec, written, besides
        return leaves, (spec, tuple([(name, static_key(v)) for name, v in fixed.items()])), written, besides

    def _bound(self, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Arguments by name, as (args, kwargs), and apart from them those that are static."""
        bound = signature_of(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        for name in set(self.static) - bound.signature.parameters.keys():
            raise errors.unknown_static(name, bound.signature)
        fixed = {name: bound.arguments.pop(name) for name in self.static if name in bound.arguments}
        return ((), dict(bound.arguments)), fixed

    # --------------------------------------------------------------------------------------------------------- tracing

    def _trace(self, specialization: Specialization, args: Any, kwargs: Any, tensors: list[Any], why: str) -> Any:
        arguments = [] if self.layout is None else self.layout.of_arguments(args, kwargs, tensors)
        call = self._traced(args, kwargs, tensors, self.varying, self.changing)
        STATISTICS.add(traces=1)
        specialization.history.append(why)
        program = None
        if not self._is_usable(specialization, call):
            pass
        elif self.unsettled >= MOST_FAILURES and self._key(args, kwargs)[1] not in self.specializations:
            specialization.eager = "it changes the structure of its arguments"  # as it has done at each call
        else:
            program = self._add(specialization, call, arguments)
            self._settle(specialization, program, args, kwargs)
        if program is None or program.is_new:
            self.traces += 1
            if self.traces == MANY_TRACES:
                warn(errors.many_traces(named(self.function), MANY_TRACES, why))
        return call.result

    def _add(self, specialization: Specialization, call: TracedCall, arguments: list[Any]) -> CompiledProgram:
        """Make the program of a traced call."""
        layout = self.layout
        placement = default_placement(call.arrays) if layout is None else layout.of_program(arguments, call)
        program = CompiledProgram(self, call, placement)
        STATISTICS.add(programs=1)
        if program.is_new:
            lowering, compiling = program.executable.seconds
            STATISTICS.add(lower_seconds=lowering, compile_seconds=compiling)
        program.call_at_end(functools.partial(drop, weakref.ref(specialization), weakref.ref(program)))
        specialization.programs.insert(0, program)
        del specialization.programs[MOST_PROGRAMS:]
        if self.interval != 0 and (what := wrong_number(program, Values(call))) is not None:
            self._differs(specialization, what)
        return program

    def _traced(self, args: Any, kwargs: Any, tensors: list[Any], varying: Any, changing: Any) -> TracedCall:
        began = time.perf_counter()
        roots = self._roots(args, kwargs)
        written = self._written(*roots)
        call = TracedCall(self.function, args, kwargs, tensors, self.fullgraph, varying, roots, written, changing)
        STATISTICS.add(trace_seconds=time.perf_counter() - began)
        if self.debug_nans and call.trace.aborted is None:
            call.check_nans()
        return call

    def _is_usable(self, specialization: Specialization, call: TracedCall) -> bool:
        """Whether a program can do what a traced call did; with too many that cannot, the function runs eagerly."""
        if call.trace.in_parts and not self.fullgraph:
            specialization.eager, specialization.parts = "an optimizer that looks at values", Parts(self._part)
        elif call.trace.aborted is not None:
            self._fall_back(specialization, *call.trace.aborted)
        elif call.reason is not None:
            self.changing |= call.counted
            specialization.failures += call.trace.unfit is None  # else the next call may do
            again = call.changed is not None and call.changed == specialization.changed  # it will always do so
            specialization.changed = call.changed
            specialization.why = f"no program could be made of the call before: {call.reason}"
            if specialization.failures >= MOST_FAILURES or (self.fullgraph and again):
                self._refuse(specialization, call.reason)
        else:
            specialization.failures = 0
            return True
        return False

    def _verify(self, specialization: Specialization, program: CompiledProgram, args: Any, kwargs: Any, tensors: Any) -> Any:
        """Call the function, traced, and compare the program with it; see `verify`."""
        arguments = [] if self.layout is None else self.layout.of_arguments(args, kwargs, tensors)
        call = self._traced(args, kwargs, tensors, program.given_varying, program.given_changing)
        STATISTICS.add(calls=1, verified_calls=1)
        program.calls += 1
        if not self._is_usable(specialization, call):
            specialization.discard(program)
            return call.result
        what, known = first_difference(program.outline, Outline(call))
        if what is None and (what := wrong_number(program, values := Values(call, known))) is None:
            program.verified = True
            program.watch.release(values)
        elif program.verified or specialization.differences >= MOST_FAILURES:
            self._differs(specialization, what)
        else:  # the tracing call may have found things as no later one does
            specialization.differences += 1
            specialization.discard(program)
            self._add(specialization, call, arguments)
        return call.result

    def _differs(self, specialization: Specialization, what: str) -> None:
        """Let the function run eagerly.

        Raises:
            RuntimeError: with `check` or `fullgraph`.
        """
        specialization.programs.clear()
        reason = f"the program of {named(self.function)} differs from the function: {what}"
        if self.interval:
            raise errors.not_traceable(reason)
        self._refuse(specialization, reason)

    def _settle(self, specialization: Specialization, program: CompiledProgram, args: Any, kwargs: Any) -> None:
        """Run eagerly what changes its arguments at each call such that each would need a program of its own."""
        first = len(program.program.arguments)
        changed = [effect.at - first for effect in program.effects if type(effect.at) is int]
        if not changed:
            return
        containers = program.containers(self._roots(args, kwargs))
        found = program.failed_container(containers)
        if found is None and self.specializations.get(self._key(args, kwargs)[1]) is not specialization:
            found = "an argument has another structure"
        self.unsettled = 0 if found is None else self.unsettled + 1
        if self.unsettled >= MOST_FAILURES:
            name = argument_at(self.function, program.paths[changed[0]], containers[changed[0]])
            self._refuse(specialization, errors.unsettled(name, found))

    def _part(self, function: Any) -> Any:
        return Compiled(function, donate=self.donate, debug_nans=self.debug_nans, check=self.interval)

    def _fall_back(self, specialization: Specialization, what: str, location: tuple[str, int]) -> None:
        error = errors.trace_aborted(what, location, linecache.getline(*location).strip())
        if self.fullgraph:  # the function has caught it
            raise error
        specialization.eager = what
        warn(f"{error} {named(self.function)} runs eagerly for such arguments.")

    def _refuse(self, specialization: Specialization, reason: str) -> None:
        if self.fullgraph:
            raise errors.not_traceable(reason)
        specialization.eager = reason
        warn(f"{errors.not_traceable(reason)} {named(self.function)} runs eagerly for such arguments.")


def drop(specialization: Any, program: Any) -> None:
    """Forget a program that an object which is gone belonged to."""
    owner, gone = specialization(), program()
    if owner is not None:
        owner.discard(gone)
    if gone is not None:
        gone.end()  # results of it may keep it alive


def layout_of(array: Any) -> Any:
    """The strides of an array of NumPy, as text, that is not in row-major order; False of others."""
    if type(array) is jax_type or array.flags.c_contiguous:
        return False
    return f"strides {array.strides}"


def interval_of(check: int | None) -> int | None:
    """After how many calls a program is compared again; None where that is not set."""
    return check if check is not None or CHECK not in os.environ else int(os.environ[CHECK])


def runs_eagerly() -> bool:
    """Whether the function itself is to run: inside a trace or a transform, and where each operation is watched."""
    traced = record.traces and TRACE.get() is not None
    return bool(traced) or LEVEL.get() is not None or bool(PACKING.get()) or ANOMALY.get()[0]


class OptimizedModule(Module, Generic[P, R]):
    """A module whose calls are compiled; all else comes from the module itself, `_orig_mod`."""

    def __init__(self, module: Module, **options: Any) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module, **options)

    @property
    def training(self) -> bool:
        """The module's own mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._compiled(*args, **kwargs)  # type: ignore[no-any-return]

    def explain(self, *args: Any, **kwargs: Any) -> None:
        """See `Compiled.explain`."""
        self._compiled.explain(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in OWN:
                raise
            return getattr(self.__dict__["_modules"]["_orig_mod"], name)


def found_at(module: str, name: str) -> Any:
    """What a module has under a dotted name; None."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def sharing(tensors: list[Any]) -> tuple[Any, ...]:
    """Which arguments are views of one memory block, and how; nothing if no two are."""
    aliases = [t._st for t in tensors if isinstance(t, Box) and type(t._st) is alias.Alias]
    stores = [id(a.store) for a in aliases]
    if len(set(stores)) == len(stores):
        return ()
    return tuple([(stores.index(id(a.store)), str([(op.name, params) for op, params in a.chain])) for a in aliases])


def warn(message: str) -> None:
    """A warning at the line of the nearest frame outside the package."""
    level = 1
    frame: Any = record.getframe(0)
    while frame is not None and record.MARK in frame.f_globals:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)

"""Numbered levels: how operations run inside vmap, forward, Taylor and Laplacian transforms.

A tensor at a level carries a `LevelState`: the level, the tensor below it, and what the level knows besides (whether it is
batched, a tangent, a series). Its `_d` is the array at the bottom, so shapes, dtypes and primal values can be read; of a
batched tensor it is a `SampleArray`, which has the shape of one sample and refuses to show values. `record.slow` finds such
tensors among operands, takes the highest of their levels, and lets it run the op by calls of the table on the tensors below:
so levels nest in any order.

Each level owns a reverse layer above it, to which the slots of its tensors belong. Entries there save tensors; their rules
run on tensors and are recorded in the layers below. Order: base layer < level 1 < its layer < level 2 < ...
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..core import alias, record
from ..core.entry import answer_of, general_entry, output_entry, saved_of
from ..core.level import LEVEL, layer_of, level_of
from ..core.op import GENERAL, GENERAL_HALF, TABLE, Op
from ..core.record import Box, TensorState, box, getframe, half_of, new, recording, slow, user_call_site
from ..core.slot_hooks import retain
from ..core.state import TRACE, TRANSFORMING, is_recording
from ..core.tape import HEAVY, next_slot
from ..core.vjp import arrays
from ..core.vjp import bottom as bottom
from ..dtypes import is_inexact

_ids = itertools.count(1)


class LevelState(TensorState):
    """The state of a tensor at a level.

    Attributes:
        primal: the tensor of the levels below.
        payload: what the level knows besides: whether it is batched, a tangent, a series; None for a constant.
        base: of a view, the tensor it looks at, the op with its parameters (or what has `call` and `write` instead), and the
            state of that tensor from which it was taken.
        given: of what a user has made a dual, and nothing has written into, the tangent as it was given, and its version.
    """

    __slots__ = ("base", "given", "level", "payload", "primal")

    def __init__(self, level: Level, primal: Any, payload: Any, slot_hooks: Any = None) -> None:
        self.level, self.primal, self.payload, self.slot_hooks = level, primal, payload, slot_hooks
        self.base: tuple[Any, Any, tuple[Any, ...], Any] | None = None

    @staticmethod
    def run(op: Op, operands: tuple[Any, ...], params: tuple[Any, ...] = ()) -> Any:
        """What recording functions call with a tensor of a level: `slow`, or less where nothing is to be promoted."""
        if op.refuses is not None and op.kind != "elementwise":
            return slow(op, operands, params)
        dtype = None
        for t in operands:
            if not isinstance(t, Box):
                if type(t) is not float:
                    return slow(op, operands, params)
                continue
            st = t._st
            if st is not None and (type(st) is not LevelState or st.base is not None):
                return slow(op, operands, params)
            dt = t._d.dtype
            if (dtype is not None and dt is not dtype) or (dt is not record.F32 and dt is not record.F64):
                return slow(op, operands, params)
            dtype = dt
        return run_at_level(op, operands, params)


class Level:
    """A running transform.

    A subclass defines `apply`, which runs an op on primals and payloads. By the methods after it the subclass says what else
    depends on its payloads: what stands for an array, what is left of a detached tensor, what a write without history keeps,
    and what a reverse pass that began inside does with tensors and gradients of the layers below.

    Attributes:
        name: of the transform, for messages.
        outer: the level inside which it was opened.
        written: tensors of lower levels that were promoted to this one, with what they were before.
        blocks: memory blocks that were written, whose tensors are promoted when they are next used.
        undo: how to take back what was done inside, by what it was done to.
        respects_no_grad: whether what no_grad covers inside is constant; only if recording was on when it was opened.
        shares_outer_layer: whether it records in the layer around it, and its tensors are plain ones once it is closed.
        has_detached: whether what is detached from a tensor has no derivative at the level.
    """

    name = "transform"
    respects_no_grad = False
    shares_outer_layer = False
    has_detached = True

    def __init__(self) -> None:
        self.id = next(_ids)
        self.outer = LEVEL.get()
        self.closed = False
        self.undo: dict[Any, Callable[[], None]] = {}
        self.written: list[tuple[weakref.ref[Any], tuple[Any, int, Any], bool]] = []
        self.blocks: list[weakref.ref[Any]] = []

    def __enter__(self) -> Any:
        self._previous = LEVEL.get(), TRANSFORMING.get()
        LEVEL.set(self)
        TRANSFORMING.set(None)
        return self

    def __exit__(self, _: object, error: BaseException | None, *rest: object) -> None:
        self.close()
        TRANSFORMING.set(self._previous[1])
        LEVEL.set(self._previous[0])
        if error is not None:
            errors.add_remark(error)

    def abandoned(self) -> None:
        """It no longer stands for the innermost level: close it, and those around it that are left as well."""
        level = self
        while level is not None and level is not LEVEL.get():
            level.close()
            level = level.outer

    def roll_back(self) -> None:
        """Take back writes, accumulated gradients and random draws made inside."""
        for undo in self.undo.values():
            undo()
        self.undo.clear()

    def close(self) -> None:
        """End the level; tensors that were promoted to it are again what they were."""
        self.closed = True
        for block in self.blocks:
            if (store := block()) is not None:
                store.promoted = None
        for ref, (array, slot, state), _ in self.written:
            t = ref()
            if t is not None:
                t._d, t._s, t._st = array, slot, state
        self.clear()

    def writes(self, originals: Sequence[Any], tensors: Sequence[Any]) -> list[tuple[Any, Any]]:
        """(original, new value) where a function wrote into one of the tensors that the level made of the originals."""
        pairs = [(x, self.unwrap(t)[0]) for x, t in zip(originals, tensors, strict=True) if isinstance(x, Box)]
        return [(x, value) for x, value in pairs if value is not x]

    def clear(self) -> None:
        """Drop what the level knew of tensors: entries of its layer hold it, and what it holds holds entries."""
        self.blocks.clear()
        self.written.clear()
        self.undo.clear()

    def check_written(self) -> None:
        """RuntimeError if a tensor that outlives the transform was written by it. To be called before `close`."""
        before = -1
        while before != len(self.written):  # what a view was before holds what it looks at
            before = len(self.written)
            self.written = [w for w in self.written if w[0]() is not None]
        if any(write for _, _, write in self.written) or any(block() is not None for block in self.blocks):
            raise self.captured_write()

    def captured_write(self) -> RuntimeError:
        """The error for a tensor from outside into which the function wrote what depends on its arguments."""
        return errors.captured_write(self.name)

    def wrap(self, primal: Any, payload: Any, slot: int = 0, slot_hooks: Any = None) -> Any:
        """A tensor at this level."""
        a = self.array(primal, payload)
        if payload is not None and a.nbytes >= HEAVY:
            arrays.keep_freed_memory()
        return boxed(a, slot, LevelState(self, primal, payload, slot_hooks))

    def unwrap(self, t: Any) -> tuple[Any, Any]:
        """(tensor below, payload) of an operand; payload None: a constant at this level."""
        st = t._st if isinstance(t, Box) else None
        if type(st) is alias.Alias and st.store.promoted is not None:
            promote_alias(t)
            st = t._st
        if type(st) is LevelState and st.base is not None:
            refresh(t)
            st = t._st
        return (st.primal, st.payload) if type(st) is LevelState and st.level is self else (t, None)

    # ------------------------------------------------------------------------------------------ what subclasses define

    def apply(self, op: Op, primals: list[Any], payloads: list[Any], params: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        """Run an op: (tensor below, payload) of each of its outputs."""
        raise NotImplementedError

    def array(self, primal: Any, payload: Any) -> Any:
        """What stands for the array of a tensor of this level."""
        return primal._d

    def detached_payload(self, payload: Any) -> Any:
        """The payload of a detached tensor."""
        return None

    def detached_primal(self, primal: Any) -> Any:
        """The tensor below a detached tensor."""
        return detached(primal)

    def value_read(self, t: Any) -> None:
        """The value of a tensor of this level leaves the library, as an array or a number."""
        primal = self.unwrap(t)[0]
        if (below := level_of(primal)) is not None:
            below.value_read(primal)

    def merge_write(
        self, primal: Any, payload: Any, old_primal: Any, old_payload: Any, constant: bool
    ) -> tuple[Any, Any, Any]:
        """(primal, payload, old primal) of a tensor that is written without history: the old primal has the history to keep.

        Args:
            constant: whether the written value is one at all levels, as `.data =` makes it.
        """
        keep = constant or (self.respects_no_grad and not is_recording())
        return primal, old_payload if keep else payload, old_primal

    def captured_primal(self, t: Any, function: str) -> Any:
        """What the layer below has recorded of a tensor that this level's layer has not, for a reverse pass."""
        if function == "grad":
            raise errors.captured_input(self.name)
        return self.unwrap(t)[0]

    def outer_gradient(self, t: Any) -> Any:
        """A gradient of this level as it is added to a leaf outside."""
        return self.unwrap(t)[0]

    def refuse_shared(self) -> None:
        """A value of this level was written into a tensor that shares memory with others outside."""
        raise self.captured_write()

    def register(self, t: Any) -> None:
        """A tensor of this level was made; called where the level shares the layer around it."""
        raise NotImplementedError


def write_back(writes: list[tuple[Any, Any]]) -> None:
    """Give the caller's tensors what a function wrote into its arguments. To be called once the level is closed."""
    for x, value in writes:
        if x._d.shape == value._d.shape:
            x.copy_(value)
        else:
            x.set_(value)


def boxed(array: Any, slot: int, state: Any) -> Any:
    out = new(record.Tensor)
    out._d, out._s, out._st = array, slot, state
    if state.level.shares_outer_layer:
        state.level.register(out)
    return out


def relabelled(t: Any, slot: int) -> Any:
    """A tensor of the same value under another slot, with the hooks that t keeps alive."""
    st = t._st
    if type(st) is LevelState:
        return boxed(t._d, slot, LevelState(st.level, st.primal, st.payload, st.slot_hooks))
    out = box(alias.save(t), slot)
    if st is not None and st.slot_hooks is not None:
        out._st = TensorState(st.slot_hooks)
    return out


def linked(t: Any, entry: Any, link: Callable[[int], int]) -> Any:
    """A tensor of the same value whose slot in the layer of an entry `link` makes of its slot there.

    What an entry saved tells its layer: arrays in the base layer, tensors in that of a level, the one that runs if they are
    of none. If a level runs and it saved nothing, t is given back as it is.
    """
    if LEVEL.get() is None and t._st is None:
        return box(t._d, link(t._s))
    held = [v for v in (*saved_of(entry), answer_of(entry)) if hasattr(v, "dtype")]
    if not held:
        return t if LEVEL.get() is not None else relabelled(t, link(t._s))
    if not isinstance(held[0], Box):
        return linked_in(None, t, link)
    found = [level for v in held if (level := level_of(v)) is not None]
    return linked_in(layer_of(max(found, key=lambda level: level.id, default=LEVEL.get())), t, link)


def linked_in(layer: Level | None, t: Any, link: Callable[[int], int]) -> Any:
    level = level_of(t)
    if layer_of(level) is layer:
        return relabelled(t, link(t._s))
    if level is None or (layer is not None and level.id < layer.id):
        return promoted(t, layer, link(0))
    return boxed(t._d, t._s, LevelState(level, linked_in(layer, t._st.primal, link), t._st.payload, t._st.slot_hooks))


def promoted(t: Any, level: Level | None, slot: int) -> Any:
    """A tensor of the same value in the layer of a level (None: the base layer), under a slot of that layer."""
    if level is None or level_of(t) is level:
        return relabelled(t, slot)
    return level.wrap(relabelled(t, t._s), None, slot)


def promote_in_place(t: Any, level: Level, write: bool) -> None:
    """Make a tensor of a lower level one of this level, until it closes."""
    alias.sync(t)
    if write and type(t._st) is alias.Alias:
        promote_block(t, level)
        return
    level.written.append((weakref.ref(t), (t._d, t._s, t._st), write))
    up = level.wrap(relabelled(t, t._s), None)
    if type(t._st) is LevelState:
        up._st.base = t._st.base
        VIEWS[id(t)] = t
    t._d, t._s, t._st = up._d, 0, up._st


def promote_block(t: Any, level: Level) -> None:
    """Promote the memory block of a tensor, and the tensor; the others on the block follow when they are next used."""
    a = t._st
    store = a.store
    if len(a.chain) != len(a.hchain) or store.exported():
        level.refuse_shared()
    store.promoted = level.wrap(box(store.root, a.hist.slot), None), a.hist
    store.move(store.root, store.uncounted)  # no tensor is up to date
    level.blocks.append(weakref.ref(store))
    promote_alias(t)


def promote_alias(t: Any) -> None:
    """Make a tensor on a block that was promoted a view of what stands for the block."""
    a = t._st
    root, hist = a.store.promoted
    level = root._st.level
    out = root
    if a.hist is not hist:
        if a.hist.slot or not level.has_detached:
            level.refuse_shared()
        out = detached_view(root)
    for op, params in a.chain or ((TABLE["alias"], ()),):
        out = view(out, op, params)
    level.written.append((weakref.ref(t), (t._d, t._s, a), True))
    t._d, t._s, t._st = out._d, out._s, out._st


def depth_of(op: Op, tensors: Sequence[Any]) -> Level:
    """The highest level among operands, which runs the op."""
    top: Any = None
    for t in tensors:
        st = t._st if isinstance(t, Box) else None
        if type(st) is LevelState and (top is None or st.level.id > top.id):
            top = st.level
    return top  # type: ignore[no-any-return]


def run_at_level(op: Op, tensors: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """Run and record an op of which some operand is at a level."""
    if (
        record.traces
        and (trace := TRACE.get()) is not None
        and (plain := trace.outer_level_placeholders(tensors)) is not None
    ):
        return op.on(plain, params)
    top = depth_of(op, tensors)
    if top.closed:
        if not top.shares_outer_layer:
            raise errors.escaped(top.name)
        opened = [top.unwrap(t)[0] for t in tensors]
        return op.on(opened, params)
    pairs = [top.unwrap(t) for t in tensors]
    constant = top.respects_no_grad and not is_recording()
    payloads = [None if constant else p[1] for p in pairs]
    results = arrays.quietly(top.apply, op, [p[0] for p in pairs], payloads, params)
    outs = tuple([top.wrap(primal, payload) for primal, payload in results])
    layer = layer_of(top)
    slots = tuple([t._s if isinstance(t, Box) and layer_of(level_of(t)) is layer else 0 for t in tensors])
    if any(slots) and op.kind != "constant":
        tape = recording()
        if tape is not None:
            record_at_level(op, tape, tensors, slots, outs, params)
    return outs if op.outputs > 1 else outs[0]


def record_at_level(
    op: Op, tape: Any, tensors: Sequence[Any], slots: tuple[int, ...], outs: tuple[Any, ...], params: tuple[Any, ...]
) -> None:
    """The entry of an op in a level's reverse layer: as `record.slow` makes it, with tensors for arrays."""
    saved, keep_ans = record.saved(op, list(tensors), [saved_operand(t) for t in tensors], slots)
    call_site = user_call_site(getframe(2), tape)
    half = half_of([t._d for t in tensors if isinstance(t, Box)]) if op.wide else None
    number, dtype = (op.id + GENERAL, outs[0]._d.dtype) if half is None else (op.id + GENERAL_HALF, half)
    shapes = tuple([t._d.shape if isinstance(t, Box) else () for t in tensors])
    slot_hooks = None
    for t in tensors:
        if isinstance(t, Box) and t._st is not None:
            slot_hooks = alias.union(slot_hooks, t._st.slot_hooks)
    s = next_slot()
    answers: Any = None
    if op.outputs > 1:
        if keep_ans:
            answers = tuple([relabelled(o, 0) if i in op.saved_outputs else None for i, o in enumerate(outs)])
        meta: Any = tuple([(o._d.shape, o._d.dtype) for o in outs])
        tape[s] = general_entry(number, slots, call_site, saved, answers, dtype, shapes, params, meta)
        for i, o in enumerate(outs[: op.differentiable]):
            if is_inexact(o._d.dtype):
                o._s = j = next_slot()
                tape[j] = output_entry(s, call_site, i)
                o._st.slot_hooks = slot_hooks
    else:
        answers = relabelled(outs[0], 0) if keep_ans else None
        tape[s] = general_entry(number, slots, call_site, saved, answers, dtype, shapes, params, outs[0]._d.shape)
        outs[0]._s = s
        outs[0]._st.slot_hooks = slot_hooks
    nbytes = sum([bottom(o).nbytes for o in outs])
    if nbytes >= HEAVY:
        tape.heavy(nbytes)
    if s > tape.limit:
        tape.due(s)


def saved_operand(t: Any) -> Any:
    """An operand as an entry saves it: with its slot, and apart from later writes."""
    return relabelled(t, t._s) if isinstance(t, Box) else t


# ---------------------------------------------------------------------------------------------------- views and writes


VIEWS: weakref.WeakValueDictionary[int, Box] = weakref.WeakValueDictionary()  # by id: tensors that look at others


def view(t: Any, op: Any, params: tuple[Any, ...]) -> Any:
    """The result of a view op: a write into it goes to t as well, and a later write into t shows in it."""
    out = op.call(t, *params)
    if type(out._st) is LevelState:
        out._st.base = t, op, params, t._st
        VIEWS[id(out)] = out
    return out


def look_at(was: Any, t: Any) -> None:
    """Have the views of t, which is turned into one of them, look at what it was."""
    for ref in VIEWS.valuerefs():
        view = ref()
        base = getattr(getattr(view, "_st", None), "base", None)
        if base is not None and base[0] is t:
            view._st.base = (was, *base[1:])  # type: ignore[union-attr]
    VIEWS[id(was)], VIEWS[id(t)] = was, t


def refresh(t: Any) -> None:
    """Bring a view up to date with the tensor it looks at."""
    views = []
    while type(t._st) is LevelState and t._st.base is not None:
        views.append(t)
        t = t._st.base[0]
    if views:
        alias.sync_only(t)
    for t in reversed(views):
        base, op, params, stamp = t._st.base
        if type(base._st) is LevelState and base._st is stamp:  # a plain tensor does not tell of a write
            continue
        out = op.call(base, *params)
        slot_hooks = t._st.slot_hooks
        t._d, t._s, t._st = out._d, out._s, out._st
        if type(t._st) is LevelState:
            t._st.base = base, op, params, base._st
            t._st.slot_hooks = alias.union(t._st.slot_hooks, slot_hooks)


def assign(t: Any, result: Any, constant: bool = False) -> Any:
    """Give t the value and history of a result of its shape and dtype, where one of them is at a level; returns t.

    Where nothing is recorded t keeps its history; with `constant` its derivatives at all levels, too.
    """
    written = [(t, put(t, result, constant))]
    while (base := written[-1][1]) is not None:
        origin, op, params, _ = base
        value = relabelled(written[-1][0], written[-1][0]._s)
        if isinstance(op, Op):
            whole = TABLE["overwrite"].call(origin, value, ((op.name, params),))
        else:
            whole = op.write(origin, value, *params)
            constant = constant or op is DETACH
        written.append((origin, put(origin, whole, constant)))
    for view, base in reversed(written):
        if base is not None:
            view._st.base = (*base[:3], base[0]._st)
        if getattr(view, "_retains", 0):
            retain(view)
    return t


def put(t: Any, result: Any, constant: bool) -> Any:
    """Give t the value and history of a result, as `assign`, and nothing to what it looks at; returns what that is."""
    target, source = level_of(t), level_of(result)
    if source is not None and (target is None or source.id > target.id):
        promote_in_place(t, source, True)
        target = source
    base = t._st.base
    up = promoted(result, target, result._s if layer_of(source) is layer_of(target) else 0)
    if constant or not is_recording():
        up = with_history(up, t, constant)
    t._d, t._s, t._st = up._d, up._s, up._st
    return base


def with_history(new: Any, old: Any, constant: bool) -> Any:
    """A value under the slots that another tensor of its shape has in the layers, at the higher of their levels."""
    top = depth_of(TABLE["alias"], (new, old))
    if top is None:
        return relabelled(new, old._s)
    (primal, payload), (old_primal, old_payload) = top.unwrap(new), top.unwrap(old)
    primal, payload, old_primal = top.merge_write(primal, payload, old_primal, old_payload, constant)
    slot, slot_hooks = (old._s, old._st.slot_hooks) if level_of(old) is top else (0, None)
    return top.wrap(with_history(primal, old_primal, constant), payload, slot, slot_hooks)


def detached(t: Any) -> Any:
    """The value without history and without derivative at any level."""
    if type(t._st) is not LevelState:
        return alias.detached(t)
    st = t._st
    return st.level.wrap(st.level.detached_primal(st.primal), st.level.detached_payload(st.payload))


class Detach:
    """Stands for the op of a detached tensor: what is written into it goes to the tensor it looks at, as a value."""

    @staticmethod
    def call(t: Any) -> Any:
        return detached(t)

    @staticmethod
    def write(_: Any, value: Any) -> Any:
        return value


DETACH = Detach()


def detached_view(t: Any) -> Any:
    """The memory of a tensor without history and without derivative at any level."""
    refresh(t)
    base = t._st.base
    return view(t if base is None or base[1] is not DETACH else base[0], DETACH, ())

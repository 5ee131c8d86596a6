"""Whatever several threads share is listed, with the reason for which it is safe; see shared_state.py.

A new module-level container that functions change, a new cache, a new `global` fails the first test until it is looked at:
is a test followed by a change one step, is a loop over it a loop over a copy, does `+=` lose a count, can two threads make
two objects of what has to be one?
"""

import ast
import functools
import itertools

import pytest
import shared_state

pytestmark = pytest.mark.exhaustive  # reads the whole package

AT_IMPORT = "filled while modules are imported, each by one thread"
UNCHANGED = "handed on, never changed"
ONE_STEP = "changed by single operations of dict, set or list, in any order; loops run over copies"
EQUAL = "what two threads make of the same is equal, and either may be kept"
SWITCH = "for the whole process: one assignment, read once by each operation"
COUNTER = "next() of itertools.count is one operation"
NEW_NUMBER = "set to the next number of a counter: not to one that was seen before"
OWN_LOCK = "its methods hold a lock of its own"

# A lock: all changes stand in a `with` of it, or in the functions named, whose callers hold it.
SAFE = {
    "contexts.py:MODES": AT_IMPORT,
    "functions/casting.py:OPEN": ONE_STEP,
    "utils/data/_utils/worker.py:WORKERS": ONE_STEP,
    "core/plain_commit.py:ACCUMULATING": "set in a forked child, which has one thread",
    "core/record.py:make_box": "set before the first tensor is made; a second thread's preparations do no harm",
    "__init__.py:globals()": ONE_STEP,
    "core/box.py:device_array_types": ONE_STEP,
    "core/plain_commit.py:LEAVES": ONE_STEP,
    "core/plain_commit.py:WATCHED_LEAVES": ONE_STEP,
    "core/hooks.py:MULTI": ONE_STEP,
    "core/tape.py:TAPES": ONE_STEP,
    "floats/scalar.py:BACKWARD": EQUAL,
    "floats/scalar.py:CALLS": EQUAL,
    "func/laplacian.py:CHECKED": ONE_STEP,
    "functions/derived.py:FOUND": "setdefault: all get the first",
    "functions/results.py:TYPES": "setdefault: all get the first",
    "functions/settings.py:_state": SWITCH,
    "io/rebuild.py:SAFE": ONE_STEP,
    "io/reader.py:Restricted.dispatch": AT_IMPORT,
    "later.py:above": EQUAL,
    "optim/scipy.py:point": "a cache of one call of minimize",
    "kernels/special.py:_erfcx_table": EQUAL,
    "jit/pending.py:DEVICE_ARRAYS": ONE_STEP,
    "jit/sharing.py:EXECUTABLES": EQUAL,
    "kernels/jax/eager.py:PROGRAMS": EQUAL,
    "kernels/numpy.py:_ONE": EQUAL,
    "kernels/random.py:GENERATORS": ONE_STEP,
    "kernels/reduce.py:KEPT": EQUAL,
    "levels/diff_inputs.py:RUNNING": ONE_STEP,
    "levels/level.py:VIEWS": ONE_STEP,
    "distributions/distribution.py:Distribution._validate_args": SWITCH,
    "dtypes.py:HALF": ONE_STEP,
    "dtypes.py:_BY_NUMPY": ONE_STEP,
    "dtypes.py:_default": SWITCH,
    "dialect.py:current": SWITCH,
    "tensor/printing.py:_options": SWITCH,
    "nn/hooks.py:EVERYWHERE": ONE_STEP,
    "optim/optimizer.py:_global_optimizer_post_hooks": ONE_STEP,
    "optim/optimizer.py:_global_optimizer_pre_hooks": ONE_STEP,
    "nn/module.py:Module.changes": NEW_NUMBER,
    "tensor/graph.py:RemovableHandle.changes": NEW_NUMBER,
    "compat/finder.py:FINDER": "changed by compat/install.py, behind its lock",
    "compat/module_names.py:_assigned": "changed while a drop-in is imported, installed or removed",
    "compat/module_names.py:_claimed": "changed while a drop-in is imported, installed or removed",
    "compat/module_names.py:_first": "changed while a drop-in is imported, installed or removed",
    "custom.py:_KEYS": ONE_STEP,
    "utils/data/_utils/worker.py:_worker_info": "set in a worker process before it starts a thread",
    "utils/data/_utils/collate.py:default_collate_fn_map": UNCHANGED,
    "viz/profiling.py:TIMERS": OWN_LOCK,
    "functions/create.py:default_generator": OWN_LOCK,
    "distributions/constraint_registry.py:biject_to": ONE_STEP,
    "distributions/constraint_registry.py:transform_to": ONE_STEP,
    "distributions/transforms.py:identity_transform": UNCHANGED,
    **dict.fromkeys(
        (
            "functions/arguments.py:DIRECT", "numpy/arguments.py:FUNCTIONS", "numpy/arguments.py:LATER",
            "testing/law.py:LAWS",
        ),
        AT_IMPORT,
    ),
    **dict.fromkeys(
        (
            "io/rebuild.py:HARMLESS", "io/rebuild.py:TORCH", "jit/compiled.py:NOTHING", "jit/guards.py:NOTHING",
            "numpy/ufuncs.py:UFUNCS", "overrides.py:__all__",
            "table/samples/attention.py:CLOSED", "viz/drawing.py:DARK_FILLS", "viz/drawing.py:DARK_LINES",
            "viz/drawing.py:FILLS", "viz/drawing.py:LINES",
        ),
        UNCHANGED,
    ),
    **dict.fromkeys(("levels/level.py:_ids", "tensor/graph.py:CHANGES", "tensor/graph.py:HOOK_IDS"), COUNTER),
    **dict.fromkeys(
        [f"core/vjp.py:{kind}" for kind in (
            "DETACHED", "GUARDED", "GUARDED_DETACHED", "GUARDED_RECORDED", "PLAIN_RECORDED", "TRACED", "TRACED_RECORDED",
        )],
        EQUAL,
    ),
    # functools.cache keeps itself in order; a function may run twice for the same arguments
    **dict.fromkeys(
        (
            "core/record.py:saved_of_op", "dtypes.py:_promote", "functions/conv.py:_geometry", "functions/einsum.py:plan",
            "functions/einsum.py:_tensordot_plan", "functions/grad_fn_names.py:renamed_op", "functions/names.py:lines_of",
            "io/writer.py:named", "jit/guards.py:names_in", "jit/numbers.py:calls_of", "jit/source.py:_parsed",
            "jit/uses.py:parents_of", "jit/uses.py:written_names", "jit/uses.py:written_parameters",
            "kernels/accumulate.py:_csc_array", "kernels/constants.py:_counted", "kernels/constants.py:_ones",
            "kernels/constants.py:_starts", "kernels/convolution.py:layout", "kernels/convolution.py:phases",
            "kernels/cumsum.py:_block", "kernels/cumsum.py:_triangle", "kernels/devices.py:device_of",
            "kernels/devices.py:devices", "kernels/devices.py:library", "kernels/fft.py:_library",
            "kernels/gaussian.py:_erf_table", "kernels/gaussian.py:_erfc_table", "kernels/gaussian.py:_erfinv_table",
            "kernels/gaussian.py:_ndtr_table", "kernels/jax/forwards.py:forward", "kernels/lapack.py:scipy_lapack",
            "kernels/memory.py:keep_freed_memory", "kernels/numpy.py:_kept_ones", "kernels/pool.py:_taps",
            "kernels/random.py:_bounds", "kernels/random.py:largest_integer",
            "kernels/random.py:renew_locks_in_children", "kernels/recurrent.py:_signs", "kernels/resample.py:_taps",
            "table/control.py:_variant", "table/linalg.py:_linear_by_rules", "table/linalg.py:_matmul_by_rules",
            "table/shape.py:_triangle", "tensor/methods.py:_in_place",
        ),
        EQUAL,
    ),
    "jit/pending.py:pending_class_of": "made_once: all get one object",
    "tensor/graph.py:kind_of": "made_once: all get one object",
}  # fmt: skip
BEHIND = {  # a lock, and the functions that are called with it
    "core/op.py:BY_ID": ("core/op.py:NUMBERING",),
    "custom.py:_COUNTS": ("custom.py:_LOCK",),
    "slots.py:TOKENS": ("slots.py:LOCK",),
    "kernels/shared.py:_blocks": ("kernels/shared.py:_LOCK",),
    "distributions/kl.py:_KL_REGISTRY": ("distributions/kl.py:_LOCK",),
    "distributions/kl.py:_KL_MEMOIZE": ("distributions/kl.py:_LOCK",),
    "tensor/graph.py:NODES": ("core/plain_commit.py:ACCUMULATING",),
    "tensor/overriding.py:_undo": ("tensor/overriding.py:_LOCK", "replace"),
    "tensor/overriding.py:PLAIN": ("tensor/overriding.py:_LOCK",),
    "functions/overrides.py:PUBLIC": ("tensor/overriding.py:_LOCK", "_ask_in_namespaces", "_ask_in_class"),
    "compat/install.py:_replaced": ("compat/install.py:_LOCK", "_install", "_remove"),
    "compat/install.py:_undo": ("compat/install.py:_LOCK", "_install", "_remove", "at_removal"),
    "jit/pending.py:PENDING_CLASSES": ("later.py:lock", "pending_class_of"),
}


def test_what_threads_share_is_listed():
    found = shared_state.found()
    assert not SAFE.keys() & BEHIND.keys()
    assert sorted(found - SAFE.keys() - BEHIND.keys()) == [], "shared by threads: is it safe?"
    assert sorted((SAFE.keys() | BEHIND.keys()) - found) == [], "no longer shared"


def ancestors(node):
    while (node := getattr(node, "parent", None)) is not None:
        yield node


def is_guarded(node, lock, called_with_it):
    """Whether a node stands in a `with` of the lock, or in a function that is called while it is held."""
    return any(
        (isinstance(a, ast.With) and any(shared_state.called(i.context_expr) == lock for i in a.items))
        or (isinstance(a, shared_state.FUNCTIONS) and a.name in called_with_it)
        for a in ancestors(node)
    )


def stored(file, name):
    """Nodes in functions that assign a global."""
    return [n for n in file.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name and n.inside]


@pytest.mark.parametrize("key", BEHIND)
def test_changes_stand_behind_the_lock(key):
    place, name = key.split(":")
    (home, lock), called_with_it = BEHIND[key][0].split(":"), BEHIND[key][1:]
    changes = 0
    for file in shared_state.files():
        if file.name == home:
            made = [n for n in file.nodes if isinstance(n, ast.Assign) and shared_state.called(n.targets[0]) == lock]
            assert made and all(shared_state.called(n.value) in ("Lock", "RLock") for n in made)
        nodes = [n for n in file.looks_up(name, "", file.name == place) if shared_state.is_changed(n)]
        for node in itertools.chain(nodes, stored(file, name) if file.name == place else ()):
            changes += 1
            assert is_guarded(node, lock, called_with_it), f"{file.name}:{node.lineno} changes {name} without {lock}"
    assert changes


@pytest.mark.parametrize(
    "text",
    [
        "TABLE = {}\ndef f(): TABLE[1] = 2",
        "TABLE = {}\ndef f(): TABLE.setdefault(1, 2)",
        "TABLE = {}\ndef f(): g(TABLE)",
        "N = 0\ndef f():\n    global N\n    N += 1",
        "import functools\n@functools.cache\ndef f(x): return x",
        "class C:\n    seen = []\n    def f(self): self.seen.append(1)",
        "class C:\n    n = 0\ndef f(): C.n += 1",
        "class C:\n    def f(self): self.n = 1\nONE = C()",
        "def f(x, seen=[]): seen.append(x)",
        "import weakref\nLIVE = weakref.WeakSet()\ndef f(x): LIVE.add(x)",
        "def f(): globals()['x'] = 1",
    ],
)
def test_what_changes_is_found(monkeypatch, tmp_path, text):
    (tmp_path / "m.py").write_text(text)
    monkeypatch.setattr(shared_state, "ROOT", tmp_path)
    for cached in (shared_state.files, shared_state.classes):
        monkeypatch.setattr(shared_state, cached.__name__, functools.cache(cached.__wrapped__))
    assert len(shared_state.found()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "TABLE = {1: 2}\ndef f(x): return TABLE[x], TABLE.get(x), x in TABLE, sorted(TABLE)",
        "TABLE = {}\nTABLE[1] = 2",
        "def f():\n    found = {}\n    found[1] = 2\n    return found",
        "class C:\n    def f(self): return self.n\nONE = C()",
    ],
)
def test_what_does_not_change_is_not(monkeypatch, tmp_path, text):
    (tmp_path / "m.py").write_text(text)
    monkeypatch.setattr(shared_state, "ROOT", tmp_path)
    for cached in (shared_state.files, shared_state.classes):
        monkeypatch.setattr(shared_state, cached.__name__, functools.cache(cached.__wrapped__))
    assert shared_state.found() == set()

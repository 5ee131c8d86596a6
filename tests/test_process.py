"""What `import tapegrad`, the first tensor and the first large array change in the process: what is here, nothing else."""

import os
import subprocess
import sys
import textwrap

import pytest

STATE = """
import atexit, builtins, codecs, contextvars, copyreg, gc, importlib.metadata, json, locale, logging, multiprocessing, os
import random, signal, sys, sysconfig, threading, time, warnings
from multiprocessing import spawn
import numpy as np
import numpy.random

forks = []
register_at_fork = getattr(os, "register_at_fork", None)
if register_at_fork is not None:
    os.register_at_fork = lambda **handlers: (forks.append(sorted(handlers)), register_at_fork(**handlers))

def state():
    return {
        "warnings": [str(f) for f in warnings.filters], "showwarning": repr(warnings.showwarning),
        "geterr": np.geterr(), "errcall": repr(np.geterrcall()), "bufsize": np.getbufsize(),
        "print": str(np.get_printoptions()), "numpy random": str(np.random.get_state()), "random": repr(random.getstate()),
        "meta_path": [type(f).__qualname__ if not isinstance(f, type) else f.__qualname__ for f in sys.meta_path],
        "path_hooks": [repr(h) for h in sys.path_hooks], "path": list(sys.path),
        "hooks": [repr(h) for h in (sys.excepthook, sys.displayhook, sys.breakpointhook, sys.unraisablehook,
                                    threading.excepthook, builtins.__import__)],
        "tracing": [repr(f()) for f in (sys.gettrace, sys.getprofile, sys.getdlopenflags, sys.get_asyncgen_hooks)],
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits(), threading.stack_size()],
        "collector": [gc.get_threshold(), gc.isenabled(), gc.get_freeze_count(), gc.get_debug(), len(gc.callbacks)],
        "signals": {int(s): repr(signal.getsignal(s)) for s in signal.valid_signals()},
        "threads": [t.name for t in threading.enumerate()], "processes": len(multiprocessing.active_children()),
        "environment": dict(os.environ), "directory": os.getcwd(), "arguments": list(sys.argv), "zone": time.tzname,
        "context": {v.name: repr(x) for v, x in contextvars.copy_context().items()},
        "builtins": {n: id(v) for n, v in vars(builtins).items()}, "copyreg": sorted(map(str, copyreg.dispatch_table)),
        "locale": locale.setlocale(locale.LC_ALL), "at exit": atexit._ncallbacks(), "forks": list(forks),
        "loggers": [logging.root.level, len(logging.root.handlers), sorted(logging.Logger.manager.loggerDict)],
        "spawn": repr(spawn.get_preparation_data), "start method": multiprocessing.get_start_method(allow_none=True),
        "streams": [id(f) for f in (sys.stdin, sys.stdout, sys.stderr)],
    }

def changed(before):
    after = state()
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}
"""


def run(program):
    command = [sys.executable, "-c", STATE + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_an_import_changes_nothing():
    run("""
        before = state()
        import tapegrad
        import tapegrad.distributions, tapegrad.jit, tapegrad.testing, tapegrad.compat, tapegrad.utils.data
        assert not changed(before), changed(before)
        """)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("warnings.filterwarnings('ignore', module='nobody')", "warnings"), ("np.seterr(over='ignore')", "geterr"),
        ("sys.meta_path.append(object())", "meta_path"), ("os.register_at_fork(before=print)", "forks"),
        ("atexit.register(int)", "at exit"), ("gc.set_threshold(7)", "collector"), ("np.random.seed(5)", "numpy random"),
        ("sys.excepthook = print", "hooks"), ("os.environ['NOBODY'] = '1'", "environment"),
    ],
)  # fmt: skip
def test_the_state_shows_what_an_import_may_change(change, name):
    if "fork" in change and not hasattr(os, "register_at_fork"):
        pytest.skip("no fork")
    run(f"""
        before = state()
        {change}
        assert {name!r} in changed(before)
        """)


def test_the_first_tensor_waits_for_einops_and_forks_alone():
    run("""
        before = state()
        import tapegrad as tg
        x = tg.ones(3)
        (x * x).sum()
        difference = changed(before)
        assert set(difference) <= {"meta_path", "forks"} and "meta_path" in difference, difference
        old, new = difference["meta_path"]
        assert new == ["_OnImport", *old]  # see tensor/einops.py
        """)


@pytest.mark.exhaustive
def test_nothing_waits_for_einops_once_it_is_imported():
    pytest.importorskip("einops")
    for first, second in (("import tapegrad as tg", "import einops"), ("import einops", "import tapegrad as tg")):
        run(f"""
            import importlib.util
            before = sys.meta_path[:]
            {first}
            {second}
            assert einops.rearrange(tg.ones(2, 3), "a b -> b a").shape == (3, 2)
            assert sys.meta_path == before
            """)
    run("""
        before = sys.meta_path[:]
        import tapegrad as tg
        x = tg.ones(2, 3)
        import einops
        assert einops.rearrange(x, "a b -> b a").shape == (3, 2)
        assert sys.meta_path == before
        """)


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no fork")
def test_fork_handlers_come_with_the_first_tensor_and_the_first_draw():
    run("""
        import tapegrad as tg
        tg.no_grad()
        assert not forks
        for _ in range(2):
            x = tg.ones(3, requires_grad=True)
            (x * x).sum().backward()
            assert forks == [["after_in_child"]]
        for _ in range(2):
            tg.rand(3), tg.Generator().manual_seed(1)
            assert forks == [["after_in_child"]] * 2
        """)


def test_operations_are_silent_and_leave_numpy_as_it_was():
    run("""
        import threading
        import tapegrad as tg
        warnings.simplefilter("error")
        set_by_caller = np.geterr()

        def overflow():
            big = tg.tensor([3e38, 0.0], requires_grad=True)
            y = (big * 10 + big.exp() - big.exp()).sum() + (big / 0).mean() + big.log().sum() + (big @ big)
            y.backward()
            assert np.geterr() == set_by_caller

        for _ in range(3):
            overflow()
        for warning in (lambda: np.float32([3e38]) * np.float32(10), lambda: np.ones(1) / 0):
            try:
                warning()
            except RuntimeWarning:
                continue
            raise AssertionError("NumPy's own warnings are off")
        """)


def test_two_threads_compute_at_once():
    """NumPy is silent in one context, in which only one thread can be: the others take the slow path."""
    run("""
        import threading
        import tapegrad as tg
        warnings.simplefilter("error")
        sys.setswitchinterval(1e-6)
        x = tg.linspace(-3e38, 3e38, 1 << 16)
        want, failures = (x * x.exp() + (x / 0).sin()).sum(0, keepdim=True).numpy(), []

        def compute():
            try:
                for _ in range(30):
                    np.testing.assert_array_equal((x * x.exp() + (x / 0).sin()).sum(0, keepdim=True).numpy(), want)
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=compute) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures, failures
        """)


MAPPED = """
import ctypes

class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

mallinfo = ctypes.CDLL("libc.so.6").mallinfo2
mallinfo.restype = Info
held = []

def is_mapped():
    # Whether a block of 8 MB comes from a map of its own, which goes back to the system when it is freed.
    before = mallinfo().hblks
    held.append(np.empty(8 << 20, np.uint8))
    return mallinfo().hblks > before

import tapegrad as tg
assert is_mapped()
x = tg.ones(1000, requires_grad=True)
(x * x).sum().backward()
assert is_mapped()
"""
RECORDED = "(tg.ones(100, 1, requires_grad=True) * tg.ones(1000)).sum()"
LEAF = "tg.ones(100, 1000, requires_grad=True)"
TRANSFORMED = "tg.func.laplacian(lambda x: (x @ tg.ones(2, 100)).sin())(tg.ones(1000, 2))"
glibc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")


@pytest.mark.every(2)
@glibc
@pytest.mark.parametrize("first", [RECORDED, LEAF, TRANSFORMED])
def test_freed_memory_is_kept_from_the_first_large_array_on(first):
    if run('import ctypes; print(hasattr(ctypes.CDLL(None), "mallinfo2"))') == ["False"]:
        pytest.skip("no mallinfo2 to see it by")
    run(f"{MAPPED}\n{first}\nassert not is_mapped()")
    run(f"import os\nos.environ['TAPEGRAD_KEEP_MEMORY'] = '0'\n{MAPPED}\n{first}\nassert is_mapped()")


def test_python_code_that_interrupts_an_operation_has_the_context_of_the_caller():
    """Signal handlers and finalisers run between two instructions, also of a kernel."""
    run("""
        import signal
        if not hasattr(signal, "setitimer"):
            raise SystemExit
        import tapegrad as tg
        of_caller, seen = contextvars.ContextVar("of_caller", default="lost"), set()
        of_caller.set("kept")
        a, image, weight = tg.rand(20, 20), tg.rand(1, 2, 8, 8), tg.rand(3, 2, 3, 3)
        signal.signal(signal.SIGALRM, lambda *_: seen.add((of_caller.get(), tg.is_grad_enabled())))
        with tg.no_grad():
            signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
            for _ in range(300):
                tg.nn.functional.gelu(a), tg.nn.functional.conv2d(image, weight), a.cumsum(0), a.var(0)
            signal.setitimer(signal.ITIMER_REAL, 0, 0)
        assert seen == {("kept", False)}, seen
        """)


def test_casts_and_checks_are_silent():
    run("""
        import tapegrad as tg
        warnings.simplefilter("error")
        big = tg.tensor([300.0], dtype=tg.float16, requires_grad=True)
        (big * big * big).sum().backward()
        zeros = tg.zeros(2, dtype=tg.float16)
        zeros[0] = 1e30
        zeros.fill_(1e30)
        (tg.ones(2, requires_grad=True) * 1).backward(tg.tensor([1e300, 1.0], dtype=tg.float64))
        image, grid = tg.ones(1, 1, 2, 2).half(), tg.full((1, 2, 2, 2), 6e4).half()
        tg.nn.functional.grid_sample(image, grid, align_corners=False)
        tg.multinomial(tg.tensor([3e38, 3e38, 3e38]), 1)
        """)


# ------------------------------------------------------------------------------- what is imported when first asked for


def test_an_import_loads_the_tensor_and_its_arithmetic_alone():
    """Nor what Python's library has for what is rare: each of these takes milliseconds."""
    run("""
        import tapegrad as tg
        ours = {m for m in sys.modules if m.startswith("tapegrad.") and sys.modules[m].__spec__ is not None}
        assert len(ours) <= 125, len(ours)
        assert not ours & {f"tapegrad.{name}" for name in
                           ("nn", "optim", "autograd", "func", "numpy", "io", "jit", "utils", "sparse", "testing")}
        x = tg.tensor([1.0, 2.0], requires_grad=True)
        (x.sin() * x).sum().backward()
        assert "tapegrad.nn" not in sys.modules
        assert tg.nn.functional.relu is sys.modules["tapegrad.nn.functional"].relu
        """)
    done = subprocess.run(
        [sys.executable, "-c", "import sys, numpy; old = {*sys.modules}; import tapegrad; print(*{*sys.modules} - old)"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert not set(done.stdout.split()) & {
        "fractions",
        "decimal",
        "statistics",
        "tempfile",
        "shutil",
        "numpy.typing",
        "random",
    }


def test_names_that_are_imported_later_are_there_from_the_beginning():
    run("""
        import tapegrad as tg
        assert {"nn", "vmap", "sin", "sin_", "svd", "load", "Size", "testing"} <= set(dir(tg))
        assert "sin" not in vars(tg) and tg.sin is tg.sin and "sin" in vars(tg)
        names = {}
        exec("from tapegrad import *", names)
        assert names["svd"] is tg.svd and names["nn"] is tg.nn and names["stack"] is tg.stack
        for name, text in [
            ("nothing", "module 'tapegrad' has no attribute 'nothing'"), ("sparse_csr_tensor", "out of"),
            ("grad", "'tapegrad' has no attribute 'grad'; there is tapegrad.func.grad"),
            ("gelu", "'tapegrad' has no attribute 'gelu'; there is tapegrad.nn.functional.gelu"),
        ]:
            try:
                getattr(tg, name)
            except AttributeError as e:
                assert text in str(e), e
            else:
                raise AssertionError(name)
        import inspect, pickle
        assert pickle.loads(pickle.dumps(tg.linalg.svd)) is tg.linalg.svd
        found = pickle.loads(b"\\x80\\x04\\x8c\\x08tapegrad\\x8c\\x0fTensor.addcmul_\\x93.")
        assert found is tg.Tensor.addcmul_
        assert list(inspect.signature(tg.Tensor.clamp_).parameters) == ["input", "min", "max"]
        """)


def test_the_place_of_a_call_is_the_users_line_also_right_after_an_import():
    run("""
        import tapegrad as tg
        x = tg.ones(2, 2, requires_grad=True)
        results = tg.nn.functional.gelu(x), tg.linalg.svd(x)[1], tg.trapezoid(x), tg.masked.sum(x)
        lines = str(tg.tape()).splitlines()
        assert lines and all(line.rsplit("  ", 1)[1].startswith("<string>:") for line in lines), lines
        """)


def test_threads_that_ask_at_once_get_the_same():
    run("""
        import tapegrad as tg
        sys.setswitchinterval(1e-6)
        names = ["svd", "conv2d", "erfinv", "sort", "cumsum", "einsum", "logsumexp", "gather", "trapezoid", "lgamma"]
        methods = ["svd", "erfinv_", "sort", "cumsum_", "logsumexp", "gather", "index_add_", "clamp_", "__iadd__"]
        begin, found, wrong = threading.Barrier(8), [], []

        def ask(k):
            try:
                begin.wait()
                mine = {n: getattr(tg, n) for n in names[k:] + names[:k]}
                mine |= {f"x.{n}": getattr(tg.Tensor, n) for n in methods[k:] + methods[:k]}
                x = tg.full((3, 3), 0.25, requires_grad=True)
                y = tg.erfinv(x).cumsum(0).logsumexp(1).sum() + tg.linalg.det(x + tg.eye(3)) + tg.special.i0(x).sum()
                y.backward()
                found.append((mine, x.grad.tolist()))
            except BaseException as e:
                wrong.append(e)

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert not wrong, wrong
        for mine, grad in found:
            assert all(mine[n] is found[0][0][n] for n in mine) and grad == found[0][1]
        """)


def test_an_import_that_failed_is_made_again():
    run("""
        import tapegrad as tg
        from tapegrad.core.op import TABLE
        from tapegrad.table import define
        made, whole = define.define, []

        def interrupted(name, *args, **kwargs):
            if name == "conv_bias" and not whole:
                whole.append(name)
                raise KeyboardInterrupt
            return made(name, *args, **kwargs)

        define.define = interrupted
        try:
            TABLE["conv"]
        except KeyboardInterrupt:
            pass
        assert whole and "tapegrad.table.conv" not in sys.modules
        assert TABLE["conv"].name == "conv" and tg.conv1d(tg.ones(1, 1, 3), tg.ones(1, 1, 2)).tolist() == [[[2.0, 2.0]]]
        """)


def test_each_record_is_made_by_the_module_that_the_list_names():
    run("""
        import tapegrad as tg
        from tapegrad.core.op import TABLE
        from tapegrad.later import HOME
        assert len(TABLE.made) < len(HOME)
        assert all(TABLE[name].name == name for name in HOME)
        assert all(TABLE.made[name][1]["__name__"] == f"tapegrad.{home}" for name, home in HOME.items())
        assert set(TABLE) == set(HOME) and len(TABLE) == len(HOME) and TABLE.get("nothing") is None
        """)


@pytest.mark.parametrize("first", ["", "import tapegrad.sparse, tapegrad.optim.lr_scheduler, tapegrad.nn.utils.rnn"])
def test_every_module_that_is_imported_later_counts_as_ours(first):
    """However it is imported: frames of ours are skipped where a call is placed, and a trace does not look into them."""
    run(f"""
        import importlib, pkgutil
        {first}
        import tapegrad as tg
        from tapegrad.later import MARK
        from tapegrad.nn.linear import Linear
        for name in ("nn.modules.loss", "optim.sgd", "autograd.functional", "func.taylor", "utils.data", "numpy.fft", "io",
                     "amp", "cuda", "custom", "masked", "sparse", "overrides", "jit", "programs.trace", "levels.laplacian",
                     "functions.fft", "table.fft", "kernels.fft", "distributions.beta", "testing.law", "nn.utils.prune"):
            importlib.import_module(f"tapegrad.{{name}}")
        ours = {{m: v for m, v in list(sys.modules.items()) if m.split(".")[0] == "tapegrad" and v.__spec__ is not None}}
        assert not [m for m, v in ours.items() if MARK not in vars(v)], [m for m, v in ours.items() if MARK not in vars(v)]
        """)

"""What `import tapegrad` and the first large array change in the process: what is written here, and nothing else."""

import subprocess
import sys
import textwrap

import pytest

STATE = """
import atexit, builtins, contextvars, copyreg, gc, json, locale, logging, os, random, signal, sys, threading, warnings
import numpy as np

def state():
    return {
        "warnings": [str(f) for f in warnings.filters], "showwarning": repr(warnings.showwarning),
        "geterr": np.geterr(), "errcall": repr(np.geterrcall()), "bufsize": np.getbufsize(),
        "print": str(np.get_printoptions()), "numpy random": str(np.random.get_state()), "random": repr(random.getstate()),
        "meta_path": [type(f).__qualname__ if not isinstance(f, type) else f.__qualname__ for f in sys.meta_path],
        "path_hooks": [repr(h) for h in sys.path_hooks], "path": sys.path,
        "hooks": [repr(h) for h in (sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook)],
        "tracing": [repr(f()) for f in (sys.gettrace, sys.getprofile, sys.getdlopenflags, sys.get_asyncgen_hooks)],
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits(), threading.stack_size()],
        "collector": [gc.get_threshold(), gc.isenabled(), gc.get_freeze_count(), gc.get_debug(), len(gc.callbacks)],
        "signals": {int(s): repr(signal.getsignal(s)) for s in signal.valid_signals()},
        "threads": threading.active_count(), "environment": dict(os.environ), "directory": os.getcwd(),
        "context": {v.name: repr(x) for v, x in contextvars.copy_context().items()},
        "builtins": sorted(vars(builtins)), "copyreg": len(copyreg.dispatch_table),
        "locale": locale.setlocale(locale.LC_ALL),
        "loggers": [logging.root.level, len(logging.root.handlers), sorted(logging.Logger.manager.loggerDict)],
    }
"""


def run(program):
    command = [sys.executable, "-c", STATE + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_an_import_changes_nothing_but_one_filter_of_warnings_and_one_finder():
    run("""
        before = state()
        import tapegrad
        after = state()
        added = after["warnings"].pop(0)
        assert "RuntimeWarning" in added and "tapegrad" in added, added  # see kernels/numpy.py
        assert after["meta_path"].pop(0) == "_OnImport"  # see tensor/einops.py
        assert after["meta_path"].pop() == "Finder"  # see moved.py
        for name in before:
            assert before[name] == after[name], (name, before[name], after[name])
        """)


def test_the_finder_is_there_only_until_einops_is_imported():
    pytest.importorskip("einops")
    run("""
        before = state()["meta_path"]
        import tapegrad
        import einops
        assert state()["meta_path"] == [*before, "Finder"]
        """)
    run("""
        import einops
        before = state()["meta_path"]
        import tapegrad
        assert state()["meta_path"] == [*before, "Finder"]
        """)


def test_the_filter_concerns_only_what_the_package_computes():
    run("""
        import tapegrad as tg
        with warnings.catch_warnings(record=True) as caught:
            big = tg.tensor([3e38])
            (big * 10 + big.exp() - big.exp()).sum()
        assert not caught
        with warnings.catch_warnings(record=True) as caught:
            np.float32([3e38]) * np.float32(10)
        assert len(caught) == 1
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
glibc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")


@glibc
@pytest.mark.parametrize("first", [RECORDED, LEAF])
def test_freed_memory_is_kept_from_the_first_large_array_on(first):
    if run('import ctypes; print(hasattr(ctypes.CDLL(None), "mallinfo2"))') == ["False"]:
        pytest.skip("no mallinfo2 to see it by")
    run(f"{MAPPED}\n{first}\nassert not is_mapped()")
    run(f"import os\nos.environ['TAPEGRAD_KEEP_MEMORY'] = '0'\n{MAPPED}\n{first}\nassert is_mapped()")

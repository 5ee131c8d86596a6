"""Checks that every test restores the library's state: modes, default dtype, operations, and a tape that can be emptied.

`--all` runs every test. Without it, what repeats a law over every record is thinned out: tests marked `exhaustive` (a law's
second dtype, an order that another test has) are deselected, of tests marked `every(n)` one in n runs, and tests that take
the fixture `exhaustive` run on one sample of each record. Laws on NumPy still meet every record, but those of Taylor mode
and the forward Laplacian, which meet every third; compiled, or on a device of JAX, a part of them. Programs are then
compiled without most of XLA's optimizations, which take longer than the tests themselves. `--rest`, for .ci/run, runs what
a run without `--all` leaves out, and compiled programs again.
"""

import collections
import gc
import os

import pytest

import tapegrad as tg
from tapegrad import refcount
from tapegrad.core import state
from tapegrad.core.op import TABLE
from tapegrad.tensor import overriding

OPTIMIZED = ("test_compile.py", "test_compile_laws.py", "test_compile_programs.py")  # which look at what XLA makes


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="also the repetitions of laws over every record: dtypes, samples")
    parser.addoption("--rest", action="store_true", help="what --all runs otherwise or in addition")


def runs_repetitions(config):
    return config.getoption("--all") or config.getoption("--rest")


def pytest_configure(config):
    if not runs_repetitions(config):
        os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # before JAX is imported, and in processes of tests


def pytest_runtest_setup(item):
    if refcount.WHY_NOT and item.get_closest_marker("counted"):
        pytest.skip(f"asks for reference counts: {refcount.WHY_NOT}")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all"):
        return
    seen = collections.Counter()
    chosen = {item for item in items if is_chosen(item, seen)}
    if config.getoption("--rest"):
        again = {i for i in chosen if "exhaustive" in i.fixturenames or i.path.name in OPTIMIZED}
        chosen = {*items} - chosen | again
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def is_chosen(item, seen):
    """Whether a test runs without --all; `seen` counts the tests of each function."""
    if item.get_closest_marker("exhaustive"):
        return False
    every = item.get_closest_marker("every")
    if every is None:
        return True
    k = seen[item.parent, item.function]
    seen[item.parent, item.function] += 1
    return k % every.args[0] == 0


def pytest_terminal_summary(terminalreporter, config):
    if not runs_repetitions(config):
        terminalreporter.write_line("laws over every record in one dtype and order, some on one sample: --all runs the rest")


@pytest.fixture(scope="session")
def exhaustive(pytestconfig):
    """Whether laws over every record run on all samples."""
    return runs_repetitions(pytestconfig)


@pytest.fixture(autouse=True)
def sealed():
    before = (tg.is_grad_enabled(), tg.is_inference_mode_enabled(), tg.get_default_dtype(), state.ANOMALY.get())
    operations = set(TABLE)
    overriding.disable()  # subclasses of Tensor have all functions ask `__torch_function__`
    yield
    overriding.disable()
    for name in set(TABLE) - operations:
        del TABLE[name]
    after = (tg.is_grad_enabled(), tg.is_inference_mode_enabled(), tg.get_default_dtype(), state.ANOMALY.get())
    assert after == before, f"the test left another mode behind: {after} for {before}"
    tape = tg.tape()
    tape.sweep()
    if len(tape) > 10_000:
        gc.collect()
        tape.sweep()
    assert len(tape) <= 10_000, f"{len(tape)} entries are still alive on the tape"


@pytest.fixture
def entries():
    """Counts the entries on the tape beyond those that other tests left alive."""
    gc.collect()
    tape = tg.tape()
    tape.sweep()
    before = len(tape)

    def count():
        tape.sweep()
        return len(tape) - before

    return count

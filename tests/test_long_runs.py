"""The loops of tests/long_runs.py: some hundred steps leave no bytes behind. Thousands, resident sizes, times: by hand."""

import gc
import tracemalloc

import long_runs
import numpy as np
import pytest

import tapegrad as tg

STEPS, LEAK = 20, 16  # bytes a step, the size of an object


@pytest.fixture
def tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.collect()


def left_by_a_step(step):
    """Bytes: the least over several stretches of steps, since caches are filled now and then."""
    sizes = long_runs.sizes_of(step, STEPS * long_runs.TENTHS, long_runs.traced_bytes)
    return min(np.diff(sizes)) / STEPS


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n != "mlp")) for n in long_runs.PROGRAMS]
)
def test_steps_leave_nothing(name, tracing):
    if name == "compiled":
        pytest.importorskip("jax")
    assert left_by_a_step(long_runs.PROGRAMS[name]()) < LEAK


def leaking(what):
    kept, w = [], tg.ones(4, requires_grad=True)

    def step():
        kept.append(what(w))

    return step


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", [lambda w: w * 2.0, lambda w: object(), lambda w: np.zeros(1)])
def test_a_leak_is_found(what, tracing):
    assert left_by_a_step(leaking(what)) >= LEAK


@pytest.mark.parametrize("name", ["traced", "resident", "descriptors", "last", None])
def test_what_grows_is_named(name):
    found = {"traced": 100.0, "resident": 0.0, "descriptors": 0.0, "low": 90.0, "high": 120.0, "last": 100.0}
    if name is not None:
        found[name] = 1e6
    assert long_runs.faults(found) == [name] * (name is not None)


def test_growth_and_flatness():
    assert long_runs.growth([10, 20, 30, 40], 100) == pytest.approx(100.0)
    assert abs(long_runs.growth([5, 9, 5, 9, 5, 9, 5], 100)) < 1e-6
    times = np.repeat(np.arange(1.0, 11.0), 100) * 1e-6
    assert long_runs.flatness(times) == pytest.approx({"low": 2.0, "high": 2.0, "last": 10.0})

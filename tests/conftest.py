"""Every test leaves the library as it found it: modes, default dtype, operations, and a tape that can be emptied."""

import gc

import pytest

import tapegrad as tg
from tapegrad.core import state
from tapegrad.core.op import TABLE


@pytest.fixture(autouse=True)
def sealed():
    before = (tg.is_grad_enabled(), tg.is_inference_mode_enabled(), tg.get_default_dtype(), state.ANOMALY.get())
    operations = set(TABLE)
    yield
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

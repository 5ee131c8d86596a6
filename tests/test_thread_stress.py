"""The programs of thread_stress.py, a few times each."""

import pytest
import thread_stress


@pytest.mark.parametrize("program", thread_stress.QUICK, ids=lambda program: program.__name__)
def test_threads_at_once(program):
    for _ in range(2):
        program()


@pytest.mark.exhaustive
@pytest.mark.parametrize("program", thread_stress.SLOW, ids=lambda program: program.__name__)
def test_processes_and_compilation(program):
    if program is thread_stress.compiled_by_all:
        pytest.importorskip("jax")
    program()

"""The rows of everyday.tsv with the torch drop-in; compat/ runs the same rows with PyTorch."""

import importlib

import pytest
from everyday import rows, run, same

from tapegrad import compat


@pytest.fixture(scope="module")
def torch():
    with compat.installed("torch", replace=True):
        yield importlib.import_module("torch")


@pytest.mark.parametrize(("program", "expected"), [row[:2] for row in rows()])
def test_program(torch, program, expected):
    if "bfloat16" in program or "autocast('cpu')" in program:
        pytest.importorskip("ml_dtypes")
    got = run(torch, program)
    assert same(got, expected)

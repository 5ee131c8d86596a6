"""The rows of tests/everyday.tsv: PyTorch gives what they say it does."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
from everyday import rows, run, same


@pytest.mark.parametrize(("program", "ours", "theirs"), rows())
def test_program(program, ours, theirs):
    got = run(torch, program)
    assert same(got, theirs or ours)
    assert theirs != ours

"""The other libraries' side of docs/comparison.md: a program that no longer prints what the page shows fails."""

import multiprocessing
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
from comparison import QUESTIONS, agrees, run

OTHERS = [(name, library) for name, programs in QUESTIONS.items() for library in programs if library != "tapegrad"]
os.environ["DEV"] = "PYTHON"  # tinygrad's device that needs no compiler; read when it is imported


@pytest.mark.parametrize(("question", "library"), OTHERS, ids=lambda text: text)
def test_prints_what_the_page_shows(question, library):
    pytest.importorskip(library)
    code, expected = QUESTIONS[question][library]
    if "compile" not in code:
        assert agrees(run(code), expected)
        return
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # torch.compile changes torch.nn and torch.distributions
        assert agrees(pool.apply(run, (code,)), expected)

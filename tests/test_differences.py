"""tapegrad's side of each difference from PyTorch, and that docs/differences.md lists it."""

import pathlib

import differences
import pytest

import tapegrad

PAGE = (pathlib.Path(__file__).parent.parent / "docs" / "differences.md").read_text()


@pytest.mark.parametrize("title,code,ours,torchs", differences.ROWS, ids=[r[0] for r in differences.ROWS])
def test_ours(title, code, ours, torchs):
    got = differences.run(code, tapegrad)
    if "needs SciPy" in got:
        pytest.importorskip("scipy")
    assert got.startswith(ours) if "Error: " in ours else got == ours
    assert title in PAGE

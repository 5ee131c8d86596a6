"""PyTorch's side of each difference: an entry that no longer differs fails."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
import differences


@pytest.fixture(autouse=True)
def every_warning():
    """Also those that PyTorch gives but once in a process."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.parametrize("title,code,ours,torchs", differences.ROWS, ids=[r[0] for r in differences.ROWS])
def test_torch_differs(title, code, ours, torchs):
    got = differences.run(code, torch)
    assert got.startswith(torchs)
    assert not (got.startswith(ours) if "Error: " in ours else got == ours)

"""PyTorch's own sample inputs in forward and Taylor mode (forward.py), row by row, strictly."""

import forward
import opinfo
import pytest
import torch
from test_opinfo import MISSING

FLOOR = 522  # rows whose every sample agrees
TRIANGLE = "the triangle that is not read has no part in the tangent; in PyTorch's it has"
MASKED = "a row that is masked out as a whole has tangent 0; PyTorch's is nan"
# Rows whose tangents are not PyTorch's; ours agree with the reverse mode.
REASONS = {
    "cholesky_inverse": "PyTorch's tangent is off by 1e-5, as finite differences show",
    "logcumsumexp": "PyTorch's tangent is off by 1e-6, as finite differences show",
    "triangular_solve": TRIANGLE,
    **dict.fromkeys(
        ("masked.mean", "masked.softmax", "masked.log_softmax", "masked.softmin", "masked.logaddexp", "masked.logsumexp"),
        MASKED,
    ),
    "cov": "weights in float32: PyTorch rounds the tangent to single precision",
    "as_strided:partial_views": "inside a transform an argument's memory is its own elements alone, not the block around it",
}
# Rows that are there to raise
REFUSED = {
    "chalf": "NumPy has no complex numbers of half precision",
    "to_sparse": "dense dimensions of sparse tensors are out of scope",
    "max_pool2d_with_indices_backward": "one of PyTorch's kernels, not a public operation",
}
ROWS = [row for row in opinfo.rows() if row.title not in MISSING]


@pytest.fixture(autouse=True)
def one_thread():
    """Of indices that occur twice, as max_unpool's may, the last is written last on one thread only."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("row", opinfo.some(ROWS), ids=lambda row: row.title)
def test_row(row):
    found = forward.examine(row)
    assert found is not None
    quantities = {quantity for _, _, quantity in found}
    if row.title in REFUSED:
        assert quantities == {"error"}, found
    elif row.title == "as_strided:partial_views":
        assert quantities == {"jvp", "error"}, found
    else:
        assert quantities == ({"jvp"} if row.title in REASONS else set()), found


def test_covered_rows():
    assert len([row for row in ROWS if row.title not in REASONS | REFUSED]) >= FLOOR
    assert {*REASONS, *REFUSED} <= {row.title for row in ROWS}

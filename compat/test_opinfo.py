"""PyTorch's own sample inputs (compat/opinfo.py), row by row; every exception is named here with its reason, strictly."""

import opinfo
import pytest

FLOOR = 420  # rows whose every sample agrees in value, vjp and second-order vjp
# Rows that are not there; the value is the reason.
MISSING: dict[str, str] = {}
# Row: {(dtype, sample, quantity)} that differ, and why.
DIFFERENT: dict[str, tuple[set[tuple[str, int, str]], str]] = {}
ROWS = opinfo.rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_row(row):
    found = opinfo.examine(row)
    if row.title in MISSING:
        assert found is None, "this row is there now: take it off MISSING"
        return
    assert found is not None, "missing"
    known = DIFFERENT.get(row.title, (set(), ""))[0]
    assert {k: text for k, text in found.items() if k not in known} == {}
    assert known <= set(found), "these no longer differ"


def test_covered_rows():
    covered = [row.title for row in ROWS if row.title not in MISSING and row.title not in DIFFERENT]
    print(f"{len(covered)} of {len(ROWS)} rows agree in every sample; {len(DIFFERENT)} differ on purpose; {len(MISSING)} are missing")
    assert len(covered) >= FLOOR
    assert {*MISSING, *DIFFERENT} <= {row.title for row in ROWS}

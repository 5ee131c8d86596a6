"""Derivatives of orders 0 to 3 against mpmath (accuracy.py), and the list of where they are beyond the bound, strictly."""

import accuracy
import pytest

CASES = {case[0]: case for case in accuracy.cases()}


@pytest.mark.parametrize("name", CASES)
def test_right_to_order_3(name):
    seen, wrong = set(), []
    for order, point, got, want, r in accuracy.violations(*CASES[name]):
        known = accuracy.KNOWN.get((name, order))
        if known and known[0](*point):
            seen.add(order)
        else:
            wrong.append((order, point, got, float(want), r))
    assert not wrong
    listed = {order for n, order in accuracy.KNOWN if n == name}
    assert listed == seen, f"KNOWN has entries that no longer differ: orders {listed - seen}"

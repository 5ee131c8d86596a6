"""Sample inputs of the records in `table.curve`."""

from __future__ import annotations

from .common import cases

SUM_OF_PRODUCTS = cases(((4, 2, 3), (4, 2, 3), ()), ((3, 1, 2), (3, 4, 2), ()))
LAPLACE_CHAIN = cases(((2, 3), (2, 3), (4, 2, 3), ()), ((3,), (3,), (3, 1), ()))
LAPLACE_OF_FUNCTION = cases(((2, 3), (4, 2, 3), ()), ((2, 3), (3, 1, 3), ()))

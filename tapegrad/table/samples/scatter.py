"""Sample inputs of the records in `table.scatter`."""

from __future__ import annotations

import numpy as np

from .common import cases, joined, of_values

TWICE = (np.array([0, 2, 2, 1, 0]),)
SCATTERED = joined(
    cases(((4,), (5,), (TWICE,)), ((3,), (0,), ((np.zeros(0, np.int64),),))),
    of_values([1.0, 5.0, 2.0, 0.0], [1.0, 2.0, 2.0, 6.0, 0.5], params=(TWICE,)),
    of_values([float("nan"), 5.0, 2.0, 0.0], [1.0, 2.0, float("nan"), 6.0, 0.5], params=(TWICE,)),
)
TIE = of_values([1.0, 2.0, float("nan")], [1.0, 3.0, float("nan")])

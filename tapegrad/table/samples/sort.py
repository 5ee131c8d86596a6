"""Sample inputs of the records in `table.sort`."""

from __future__ import annotations

from ...kernels.sort import NAN
from .common import cases, joined, of_values

RANKED = of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1,))
WITH_NAN = of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, NAN, 3.0]], params=(1, False))
SORT = joined(
    cases(((2, 3), (1, False, True)), ((4, 2), (0, True, True)), ((0, 2), (0, False, False))),
    cases(((99,), (0, True, False)), smooth=False),
    of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, True, True)),
)
ARGSORT = of_values([[2.0, 1.0, 2.0, 0.0]], params=(1, True, True))
TOPK = cases(((2, 5), (2, 1, True)), ((4, 2), (3, 0, False)), ((3,), (3, 0, True)), ((3,), (0, 0, True)))
RUNNING_EXTREMES = joined(cases(((5,), (0,)), ((2, 4), (1,)), ((0, 2), (0,))), RANKED)
MEDIAN = joined(
    cases(((5,), (None, False)), ((2, 3), (None, False)), ((), (None, False))),
    of_values([1.0, 2.0, 2.0, 3.0], params=(None, False)),
)
MEDIAN_DIM = joined(
    cases(((2, 3), (1, False)), ((4, 2), (0, True))),
    of_values([[2.0, 1.0, 2.0, 0.0], [NAN, 1.0, -1.0, 3.0]], params=(1, False)),
)
NANMEDIAN = joined(
    cases(((5,), (None, False)), ((2, 3), (None, False))),
    of_values([1.0, NAN, 2.0, 2.0, 3.0], params=(None, False)),
)
NANMEDIAN_DIM = joined(cases(((2, 3), (1, False)), ((4, 2), (0, True))), WITH_NAN)
KTHVALUE = joined(
    cases(((2, 5), (1, False, 2)), ((4, 2), (0, True, 4)), ((0, 3), (1, False, 1))),
    of_values([[2.0, 1.0, 3.0], [NAN, 1.0, 2.0]], params=(1, False, 3)),
)
MODE = joined(
    cases(((2, 3), (1, False)), ((4, 2), (0, True))),
    of_values([[2.0, 1.0, 2.0, 1.0], [3.0, 1.0, 2.0, 3.0]], params=(1, False)),
)

"""Sample inputs of the records in `table.index`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.op import FlatIndex
from ...kernels.index import _index
from .common import Sample, complex_uniform, uniform


def _reads() -> Iterator[Sample]:
    twice, table = np.array([0, 2, 2, -1]), np.array([[0, 1], [1, 3]])
    yield Sample((uniform((4,)),), ((twice,),))
    yield Sample((uniform((4, 3)),), ((twice,),))
    yield Sample((uniform((3, 4)),), ((slice(None), table),))
    yield Sample((uniform((3, 4)),), ((np.array([0, 2]), np.array([1, 1])),))
    yield Sample((uniform((2, 3, 4)),), ((np.array([0, 1]), slice(None), np.array([3, 0])),))
    yield Sample((uniform((3, 4)),), ((slice(0, 3, 2), None, 1, Ellipsis),))
    yield Sample((uniform((4,)),), ((1,),))
    yield Sample((uniform((3,)),), ((np.zeros(0, np.int64),),))
    yield Sample((complex_uniform((4, 2)),), ((twice,),))
    yield Sample((uniform((3, 2)),), (FlatIndex(np.array([[0, 4], [4, 5]])),))


def _scattered() -> Iterator[Sample]:
    for (x,), (index,), _ in _reads():
        yield Sample((uniform(_index(x, index).shape).astype(x.dtype),), (x.shape, index))


def _searched() -> Iterator[Sample]:
    edges, values = np.array([[0.0, 1.0, 1.0, 3.0], [0.5, 1.0, 2.0, 4.0]]), np.array([[1.0, -1.0], [3.5, 5.0]])
    yield Sample((edges, values), ("left",))
    yield Sample((edges[0], values), ("right",))
    yield Sample((edges[0], np.array(1.0)), ("right",))

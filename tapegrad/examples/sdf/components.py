"""Connected parts of triangle meshes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Array = npt.NDArray[Any]


def linked(pairs: Array, n: int) -> tuple[int, Array]:
    """How many groups pairs (k, 2) of numbers below n join them to, and the group of each (n,)."""
    rows, columns = pairs.T
    count, label = connected_components(coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)), directed=False)
    return int(count), label


def face_components(faces: Array) -> tuple[int, Array]:
    """How many parts, connected by vertices, faces (m, 3) make, and the part of each face (m,)."""
    _, faces = np.unique(faces, return_inverse=True)
    faces = faces.reshape(-1, 3)
    if not len(faces):
        return 0, np.zeros(0, dtype=np.intp)
    count, label = linked(np.concatenate([faces[:, :2], faces[:, 1:]]), int(faces.max()) + 1)
    return count, label[faces[:, 0]]

"""Sample inputs of the records in `table.control`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.vjp import TENSOR_XP
from ...programs.derivatives import Tensors
from ...programs.subprogram import traced_alone
from .common import Sample, uniform

# -------------------------------------------------------------------------------------------------------------- records


def scan() -> Iterator[Sample]:
    h, w, x = uniform((1, 3), seed=1), uniform((3, 3), -0.5, 0.5, 2), uniform((4, 1, 3), seed=3)

    def step(h: Any, x: Any, w: Any) -> Tensors:
        new = TENSOR_XP.tanh(TENSOR_XP.matmul(h, w) + x)
        return [new, new * h, h]

    body = traced_alone([h, x[0], w], step)
    for reverse in (False, True):
        yield Sample((h, x, w), (body, 1, 1, 4, reverse, (2,)))


def while_loop() -> Iterator[Sample]:
    x, w = np.array([0.3, 0.2]), np.array([1.7, 1.4])
    condition = traced_alone([x], lambda x: [TENSOR_XP.lt(TENSOR_XP.sum(x, (0,), False), 3.0)])
    body = traced_alone([x, w], lambda x, w: [x * w + TENSOR_XP.sin(x)])
    yield Sample((x, w), (condition, body, 1, 0))


def cond() -> Iterator[Sample]:
    x, w = uniform((2, 3)), uniform((3,), seed=4)
    true = traced_alone([x, w], lambda x, w: [TENSOR_XP.sin(x) * w, TENSOR_XP.exp(w)])
    false = traced_alone([x, w], lambda x, w: [x * x, w * w])
    for pred in (True, False):
        yield Sample((np.array(pred), x, w), (true, false))


def plain() -> Iterator[Sample]:
    yield Sample((uniform((2, 3)),))

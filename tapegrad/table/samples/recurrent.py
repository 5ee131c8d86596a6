"""Sample inputs of the records in `table.recurrent`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .common import Sample, Samples, joined, uniform


def layers(gates: int, states: tuple[int, ...], others: tuple[Any, ...], *params: Any) -> Samples:
    """Equal lengths and others, in both directions, for the given widths and further arguments (a shape, or a number)."""

    def samples() -> Iterator[Sample]:
        for sizes, reverse in (((2, 2, 2), False), ((3, 2, 1), False), ((3, 1, 1), True), ((2,), True)):
            shapes = [(sum(sizes), gates), *[(sizes[0], width) for width in states], *others]
            arrays = [s if isinstance(s, float) else uniform(s, -1.0, 1.0, i) for i, s in enumerate(shapes)]
            yield Sample(tuple(arrays), (sizes, reverse, *params))

    return samples


LSTM_LAYER = joined(layers(8, (2, 2), ((8, 2), 1.0)), layers(8, (1, 2), ((8, 1), (1, 2))))
GRU_LAYER = joined(layers(6, (2,), ((6, 2), (6,))), layers(6, (2,), ((6, 2), 0.0)))
RNN_LAYER = joined(layers(2, (2,), ((2, 2),), False), layers(2, (2,), ((2, 2),), True))

"""Sample inputs of records: callables that make nothing until a law of `tapegrad.testing` asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]


class Sample(NamedTuple):
    """One input of a record.

    Attributes:
        arrays: the arrays (a Python number where the record takes one).
        params: the parameters that follow them.
        smooth: the record is differentiable here, so that finite differences mean something; False at kinks, ties and
            singular points, where the record's convention decides.
    """

    arrays: tuple[Any, ...]
    params: tuple[Any, ...] = ()
    smooth: bool = True


Samples = Callable[[], Iterator[Sample]]

SHAPES: tuple[Shape, ...] = ((2, 3), (), (0, 2))
PAIRS: tuple[tuple[Shape, Shape], ...] = (
    ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), ()), ((0, 3), (1, 3)),
)  # fmt: skip


def uniform(shape: Shape, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    """Float64 values that depend on the arguments only."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def complex_uniform(shape: Shape, seed: int = 0) -> Any:
    """Complex values of modulus around 1, off the negative real axis, where the usual branch cuts lie."""
    return uniform(shape, 0.3, 1.2, seed) + 1j * uniform(shape, -0.9, 0.9, seed + 1)


def domain(
    low: float, high: float, *special: float, complex_too: bool = False, params: Sequence[tuple[Any, ...]] = ((),)
) -> Samples:
    """Inputs of a record of one array: values in (low, high), and the special points as one sample."""

    def samples() -> Iterator[Sample]:
        for p in params:
            for shape in SHAPES:
                yield Sample((uniform(shape, low, high),), p)
            yield Sample((uniform((3, 4), low, high).T[::2],), p)
            if special:
                yield Sample((np.array(special),), p, smooth=False)
            if complex_too:
                yield Sample((complex_uniform((2, 3)),), p)

    return samples


def pairs(
    a: tuple[float, float] = (-2.0, 2.0),
    b: tuple[float, float] = (-2.0, 2.0),
    *special: tuple[float, float],
    numbers: bool = True,
    complex_too: bool = False,
) -> Samples:
    """Inputs of a record of two arrays that broadcast, from the two intervals.

    With `numbers` also an array and a number. The special points are pairs of values.
    """

    def samples() -> Iterator[Sample]:
        for shape, other in PAIRS:
            yield Sample((uniform(shape, *a), uniform(other, *b, seed=5)))
        if numbers:
            yield Sample((uniform((2, 3), *a), 0.25 * b[0] + 0.75 * b[1]))
            yield Sample((0.25 * a[0] + 0.75 * a[1], uniform((2, 3), *b)))
        if special:
            x, y = np.array(special).T
            yield Sample((x.copy(), y.copy()), smooth=False)
        if complex_too:
            yield Sample((complex_uniform((2, 3)), complex_uniform((3,), 7)))

    return samples


def cases(*items: tuple[Any, ...], complex_too: bool = False, smooth: bool = True) -> Samples:
    """Inputs of given shapes: each item is (shape, .., params); with complex_too the first is made complex as well."""

    def samples() -> Iterator[Sample]:
        for *shapes, params in items:
            yield Sample(tuple([uniform(s, seed=i) for i, s in enumerate(shapes)]), params, smooth)
        if complex_too:
            *shapes, params = items[0]
            yield Sample(tuple([complex_uniform(s, 3 * i) for i, s in enumerate(shapes)]), params, smooth)

    return samples


def joined(*parts: Samples) -> Samples:
    """The inputs of several callables, one after the other."""

    def samples() -> Iterator[Sample]:
        for part in parts:
            yield from part()

    return samples


def of_values(*arrays: Sequence[Any] | float, params: tuple[Any, ...] = (), smooth: bool = False) -> Samples:
    """One sample of given values: ties, zeros, masked rows."""

    def samples() -> Iterator[Sample]:
        yield Sample(tuple([np.array(a) for a in arrays]), params, smooth)

    return samples


REAL = domain(-2.0, 2.0, 0.0, -0.0, 1.0)
ANALYTIC = domain(-2.0, 2.0, 0.0, -0.0, 1.0, complex_too=True)
POSITIVE = domain(0.2, 3.0, 0.0, 1.0, -1.0, complex_too=True)
UNIT = domain(-0.9, 0.9, 0.0, 1.0, -1.0, complex_too=True)
STEPS = joined(of_values([[-1.6, -0.7], [0.6, 2.7]], smooth=True), of_values([-0.5, 0.0, 0.5, 1.0, 1.5]))
INTEGRAL = of_values([[-1.6, -0.5, 0.0], [0.5, 1.5, 2.7]])
PREDICATE = of_values([[0.0, 1.0, float("nan")], [float("inf"), -1.0, float("-inf")]])
COMPARED = of_values([[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]], [1.0, 1.0, 0.5])
LOGICAL = of_values([[True, False], [True, False]], [True, False])

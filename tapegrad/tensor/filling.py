"""Methods that fill a tensor with random numbers, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.op import TABLE
from ..core.record import Box
from ..functions import create
from ..functions.inplace import check_writable
from .access import memory_order, overwrite, part_of_tensor, raw

if TYPE_CHECKING:
    from .tensor import Tensor


@part_of_tensor
class Filling(Box):
    """The part of Tensor that fills it."""

    __slots__ = ()

    def _drawn(self, name: str, draw: Callable[[tuple[Any, ...]], Any]) -> Tensor:
        """Overwrite with the tensor draw(shape), filled in the order of its memory, as in PyTorch."""
        check_writable(self, name, False)
        a = raw(self)
        if type(a) is np.ndarray and a.flags.c_contiguous:
            return overwrite(self, draw(a.shape))  # type: ignore[no-any-return]
        order = memory_order(a)
        drawn = draw(tuple([a.shape[d] for d in order]))
        back = tuple(np.argsort(order).tolist())
        return overwrite(self, drawn if back == tuple(range(a.ndim)) else TABLE["permute"].call(drawn, back))  # type: ignore[no-any-return]

    def _draws(self, method: str, *args: Any, generator: Any) -> Tensor:
        """Overwrite with numbers of this dtype from a stream."""
        dtype = raw(self).dtype
        return self._drawn(
            method,
            lambda shape: create.drawn(lambda g, full: getattr(g, method)(full, dtype, *args), shape, generator, self),
        )

    def uniform_(self, from_: Any = 0.0, to: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite with uniform numbers in [from_, to)."""
        a = raw(self)
        return self._drawn(
            "uniform", lambda shape: create.draw("uniform", shape, a.dtype, from_, to, generator=generator, target=self)
        )

    def normal_(self, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite with normal numbers of a mean and standard deviation."""
        a = raw(self)
        kind = {"generator": generator, "target": self, "contiguous": create.memory_of(self)[0].flags.c_contiguous}
        return self._drawn("normal", lambda shape: create.draw("normal", shape, a.dtype, mean, std, **kind))

    def random_(self, *bounds: Any, generator: Any = None) -> Tensor:
        """Overwrite with integers: random_() over the dtype's range from 0 up, random_(to), random_(from, to).

        With None as the second bound up to the dtype's largest (2**24 in float32, 2**53 in float64).
        """
        if raw(self).dtype.kind == "c":
            raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
        if not bounds:
            return self._draws("random_ints", generator=generator)
        return self._draws("randint", *(bounds if len(bounds) == 2 else (0, bounds[0])), generator=generator)

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Overwrite with 1 at probability p (a number, or a tensor of this shape), else 0."""
        if not isinstance(p, Box):
            return self._draws("bernoulli", p, generator=generator)
        a = raw(self)
        order = memory_order(a)
        p = TABLE["permute"].call(TABLE["expand"].call(p, a.shape), order) if order else p
        return self._drawn(
            "bernoulli",
            lambda shape: create.drawn_from(lambda g, given: g.bernoulli_array(given, a.dtype), p, generator, self),
        )

    def exponential_(self, lambd: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite with exponential numbers of rate lambd."""
        return self._draws("exponential", lambd, generator=generator)

    def log_normal_(self, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Tensor:
        """Overwrite with exp of normal numbers of a mean and standard deviation."""
        return self._draws("log_normal", mean, std, generator=generator)

    def cauchy_(self, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite with Cauchy numbers of a median and half width."""
        return self._draws("cauchy", median, sigma, generator=generator)

    def geometric_(self, p: Any, *, generator: Any = None) -> Tensor:
        """Overwrite with the number of trials up to the first success of probability p."""
        return self._draws("geometric", p, generator=generator)

"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from .. import special
from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .functions import drawn_from, stack
from .utils import lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Von Mises distribution of an angle; values and loc are taken modulo 2 pi.

    Args:
        loc: an angle in radians.
        concentration: inverse spread around loc.

    Example:
        >>> d = tg.distributions.VonMises(0.0, 1.0)
        >>> d.log_prob(tg.tensor(0.0))
        tensor(-1.0738)
    """

    loc: Tensor
    concentration: Tensor
    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, concentration=concentration)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        try:
            return super().expand(batch_shape, _instance)
        except NotImplementedError:
            loc, concentration = (t.expand(batch_shape) for t in (self.loc, self.concentration))
            return type(self)(loc, concentration, validate_args=self._validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_i0 = special.i0e(self.concentration).log() + self.concentration
        return self.concentration * (value - self.loc).cos() - math.log(2 * math.pi) - log_i0

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples in [-pi, pi), by the method of Best and Fisher (1979) in float64."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            both = stack([self.loc.double().expand(shape), self.concentration.double().expand(shape)], -1)
            return drawn_from(_angles, both).to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        """Circular mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """Circular variance."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)


def _angles(generator: Any, both: Any) -> Any:
    """Angles for pairs (loc, concentration) by rejection from a wrapped Cauchy distribution; each try draws all elements."""
    loc, k = both[..., 0], both[..., 1]
    with np.errstate(all="ignore"):
        open_ = (k > 0) & (k < np.inf)
        k = np.maximum(k, 1e-300)
        h = np.hypot(1, 2 * k)
        above, r = (1 + 1 / (h + 2 * k)) / (2 * k), (1 + h) / (2 * k)  # r - 1, which keeps its digits, and r
        x = np.where(open_, 0.0, np.nan)
        while open_.any():
            u1, u2, u3 = generator.uniform((3, *k.shape), np.float64)
            z = np.cos(math.pi * u1)
            c = k * above * ((r + 1) / (above + (1 + z)))  # k * (r - cosine)
            accepted = (c * (2 - c) - u2 > 0) | (np.log(c / u2) + 1 - c >= 0)
            angle = 2 * np.arctan2(np.sqrt(above * (1 - z)), np.sqrt((r + 1) * (1 + z)))
            x = np.where(accepted, np.sign(u3 - 0.5) * angle, x)
            open_ &= ~accepted
        return np.mod(x + math.pi + loc, 2 * math.pi) - math.pi

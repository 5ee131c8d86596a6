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
        tau = 1 + np.sqrt(1 + 4 * k * k)
        rho = (tau - np.sqrt(2 * tau)) / (2 * k)
        r = np.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))
        open_ = (k > 0) & (k < np.inf)
        x = np.where(open_, 0.0, np.nan)
        while open_.any():
            u1, u2, u3 = generator.uniform((3, *k.shape), np.float64)
            z = np.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = (c * (2 - c) - u2 > 0) | (np.log(c / u2) + 1 - c >= 0)
            x = np.where(accepted, np.sign(u3 - 0.5) * np.arccos(f), x)
            open_ &= ~accepted
    return np.mod(x + math.pi + loc, 2 * math.pi) - math.pi

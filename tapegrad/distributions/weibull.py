"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .exponential import Exponential
from .functions import ones_like
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull distribution: cdf 1 - exp(-(x / scale) ** concentration).

    Args:
        scale: scale.
        concentration: shape parameter.

    Example:
        >>> d = tg.distributions.Weibull(1.0, 2.0)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-0.3069), tensor(0.8862))
    """

    scale: Tensor
    concentration: Tensor
    arg_constraints: ClassVar[Any] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args)

    @property
    def concentration_reciprocal(self) -> Tensor:
        """1 / concentration."""
        return self.concentration.reciprocal()

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        rising = (1 - self.concentration_reciprocal).clamp(min=0)  # 0 if the density is decreasing
        return self.scale * rising**self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * ((1 + 2 * r).lgamma().exp() - (2 * (1 + r).lgamma()).exp())

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1

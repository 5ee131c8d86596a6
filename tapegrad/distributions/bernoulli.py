"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .distribution import ProbsOrLogits
from .exp_family import ExponentialFamily
from .functions import arange, binary_cross_entropy_with_logits, draw_bernoulli, where
from .utils import broadcast_all, log1pexp

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """Bernoulli distribution: 1 with probability probs, 0 with 1 - probs.

    Args:
        probs: probability of 1.
        logits: log odds of probs, as an alternative.

    Example:
        >>> d = tg.distributions.Bernoulli(0.25)
        >>> d.log_prob(tg.tensor([1.0, 0.0])), d.mean
        (tensor([-1.3863, -0.2877]), tensor(0.2500))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take_either(probs, logits).shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return draw_bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(2, dtype=self._param.dtype), expand)

    @property
    def _natural_params(self) -> Any:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return log1pexp(x)

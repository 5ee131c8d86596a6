"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..dtypes import Size
from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .functions import where
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Multinomial distribution: counts of K categories in independent draws.

    Args:
        total_count: number of draws (int).
        probs: (..., K), unnormalised probabilities.
        logits: (..., K), unnormalised log probabilities, as an alternative.

    Example:
        >>> d = tg.distributions.Multinomial(4, tg.tensor([0.5, 0.5]))
        >>> d.log_prob(tg.tensor([2.0, 2.0])), d.mean
        (tensor(-0.9808), tensor([2., 2.]))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        self._binomial = Binomial(total_count, self.probs)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """Log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """Shape of the probabilities."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count,)) + Size(sample_shape)).movedim(0, -1)
            counts = drawn.new_zeros(self._extended_shape(sample_shape))
            return counts.scatter_add(-1, drawn, drawn.new_ones(drawn.shape)).to(self.probs.dtype)

    def entropy(self) -> Tensor:
        n, counts = self.total_count, self._binomial.enumerate_support(False)[1:]
        spread = self._binomial.log_prob(counts).exp() * (counts + 1).lgamma()
        return n * self._categorical.entropy() - math.lgamma(n + 1) + spread.sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        certain = (value == 0) & (logits == -math.inf)
        powers = (where(certain, 0.0, logits) * value).sum(-1)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + powers

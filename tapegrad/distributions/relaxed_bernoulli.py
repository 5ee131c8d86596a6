"""Relaxed Bernoulli distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .distribution import ProbsOrLogits
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs, drawn

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """Distribution of the log odds of RelaxedBernoulli samples (Maddison, Mnih and Teh, arXiv:1611.00712).

    Args:
        temperature: relaxation temperature; values approach 0 and 1 as it goes to 0.
        probs: probability of 1.
        logits: log odds of probs, as an alternative.
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(self._take_either(probs, logits).shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(drawn("uniform", probs, shape))
        result: Tensor = (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature
        return result

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        result: Tensor = self.temperature.log() + diff - 2 * diff.exp().log1p()
        return result


class RelaxedBernoulli(TransformedDistribution):
    """Continuous relaxation of Bernoulli on (0, 1), with differentiable samples; see LogitRelaxedBernoulli.

    Args:
        temperature: relaxation temperature; values approach 0 and 1 as it goes to 0.
        probs: probability of 1.
        logits: log odds of probs, as an alternative.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> x = tg.distributions.RelaxedBernoulli(0.5, probs=tg.tensor(0.5)).rsample()
        >>> 0.0 < x.item() < 1.0
        True
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)

    @property
    def temperature(self) -> Tensor:
        """Relaxation temperature."""
        result: Tensor = self.base_dist.temperature
        return result

    @property
    def logits(self) -> Tensor:
        """Log odds."""
        result: Tensor = self.base_dist.logits
        return result

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        result: Tensor = self.base_dist.probs
        return result

"""Relaxed categorical distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .functions import full_like
from .one_hot_categorical import OfCategorical
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs, drawn

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OfCategorical):
    """Distribution of the logarithm of RelaxedOneHotCategorical samples (Maddison, Mnih and Teh, arXiv:1611.00712).

    Args:
        temperature: relaxation temperature; samples approach one-hot vectors as it goes to 0.
        probs: (..., K), unnormalised probabilities.
        logits: (..., K), unnormalised log probabilities, as an alternative.
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (self.temperature,) = broadcast_all(temperature)
        self._take_categorical(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = clamp_probs(drawn("uniform", self.logits, self._extended_shape(sample_shape)))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        result: Tensor = scores - scores.logsumexp(-1, keepdim=True)
        return result

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scale = full_like(self.temperature, float(k)).lgamma() + (k - 1) * self.temperature.log()
        score = logits - value.mul(self.temperature)
        result: Tensor = (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale
        return result


class RelaxedOneHotCategorical(TransformedDistribution):
    """Continuous relaxation of OneHotCategorical on the simplex, with differentiable samples.

    Args:
        temperature: relaxation temperature; samples approach one-hot vectors as it goes to 0.
        probs: (..., K), unnormalised probabilities.
        logits: (..., K), unnormalised log probabilities, as an alternative.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.distributions.RelaxedOneHotCategorical(0.5, probs=tg.tensor([0.25, 0.75])).rsample().sum()
        tensor(1.)
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def temperature(self) -> Tensor:
        """Relaxation temperature."""
        result: Tensor = self.base_dist.temperature
        return result

    @property
    def logits(self) -> Tensor:
        """Log probabilities."""
        result: Tensor = self.base_dist.logits
        return result

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        result: Tensor = self.base_dist.probs
        return result

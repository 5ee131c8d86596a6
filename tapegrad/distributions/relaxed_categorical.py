"""Relaxed categorical distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from ..functions.create import full_like
from . import constraints
from .one_hot_categorical import OfCategorical
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs, drawn

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OfCategorical):
    """The logarithms of RelaxedOneHotCategorical (C. Maddison, A. Mnih and Y. W. Teh, arXiv:1611.00712).

    Args:
        temperature: how far from one-hot the vectors are.
        probs: (.., K), probabilities up to a factor.
        logits: (.., K), their logarithms up to a constant, instead.
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (self.temperature,) = broadcast_all(temperature)
        self._take_categorical(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = clamp_probs(drawn("uniform", self.logits, self._extended_shape(sample_shape)))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        k = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scale = full_like(self.temperature, float(k)).lgamma() + (k - 1) * self.temperature.log()
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A distribution on the simplex that tends to OneHotCategorical as its temperature goes to 0, with samples that have a
    gradient.

    Args:
        temperature: how far from one-hot the vectors are.
        probs: (.., K), probabilities up to a factor.
        logits: (.., K), their logarithms up to a constant, instead.
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def temperature(self) -> Any:
        """How far from one-hot the vectors are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self.base_dist.probs

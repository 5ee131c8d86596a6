"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any, ClassVar

from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .functions import log_softmax

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Mixture distribution: a Categorical selects the component.

    Args:
        mixture_distribution: Categorical over the components.
        component_distribution: the components; its last batch dimension indexes them.

    Raises:
        ValueError: if their batch shapes do not match.

    Example:
        >>> d = tg.distributions
        >>> mixture = d.MixtureSameFamily(d.Categorical(tg.ones(2)), d.Normal(tg.tensor([-1.0, 1.0]), 1.0))
        >>> mixture.log_prob(tg.tensor(0.0)), mixture.variance
        (tensor(-1.4189), tensor(2.))
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape
        count = mixture_distribution.logits.shape[-1]
        if not batch:
            raise ValueError("`component_distribution` needs a batch dimension that counts the components")
        for a, b in zip(reversed(mixed), reversed(batch[:-1]), strict=False):
            if a != b and 1 not in (a, b):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch[:-1]})"
                )
        if count != batch[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({batch[-1]})"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def mixture_distribution(self) -> Any:
        """Categorical over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        """Probabilities of the components, with trailing dimensions for the event."""
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self._event_shape))

    def _mixed(self, values: Any) -> Tensor:
        result: Tensor = (self._weights() * values).sum(-1 - len(self._event_shape))
        return result

    @property
    def mean(self) -> Tensor:
        return self._mixed(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        means = self._component_distribution.mean
        centre = self.mean.unsqueeze(-1 - len(self._event_shape))
        return self._mixed(self._component_distribution.variance) + self._mixed((means - centre).pow(2))

    def cdf(self, value: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._padded(value)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        weights = log_softmax(self._mixture_distribution.logits, -1)
        return (self._component_distribution.log_prob(self._padded(value)) + weights).logsumexp(-1)

    def _padded(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - len(self._event_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            dim = chosen.dim()
            chosen = chosen.reshape(*chosen.shape, *[1] * (values.dim() - dim))
            return values.gather(dim, chosen.expand(*values.shape[:dim], 1, *self._event_shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"

"""Categorical distributions over one-hot vectors."""

from __future__ import annotations

from typing import Any, ClassVar

from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .functions import eye, one_hot

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OfCategorical(Distribution):
    """Base of distributions over vectors that store a Categorical."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def _take_categorical(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self._categorical = Categorical(probs, logits)
        Distribution.__init__(self, self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Log probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """Shape of the probabilities."""
        return self._categorical.param_shape


class OneHotCategorical(OfCategorical):
    """Categorical distribution over one-hot vectors of K elements.

    Args:
        probs: (..., K), unnormalised probabilities.
        logits: (..., K), unnormalised log probabilities, as an alternative.

    Example:
        >>> d = tg.distributions.OneHotCategorical(probs=tg.tensor([0.25, 0.75]))
        >>> d.log_prob(tg.tensor([0.0, 1.0]))
        tensor(-0.2877)
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_categorical(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self._categorical.mode, self.event_shape[0]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return one_hot(self._categorical.sample(sample_shape), self.event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(eye(self.event_shape[0], dtype=self._param.dtype), expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical with straight-through samples: they have the gradient of probs (Bengio et al., arXiv:1308.3432).

    Example:
        >>> _ = tg.manual_seed(0)
        >>> p = tg.tensor([0.25, 0.75], requires_grad=True)
        >>> tg.distributions.OneHotCategoricalStraightThrough(probs=p).rsample().detach()
        tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())

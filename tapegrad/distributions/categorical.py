"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import dtypes
from ..functions.shape import broadcast_tensors
from ..modes import no_grad
from ..tensor import Tensor
from . import constraints
from .distribution import ProbsOrLogits
from .functions import arange, full, multinomial

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """Categorical distribution over 0 .. K-1.

    Args:
        probs: (..., K), unnormalised probabilities; stored normalised.
        logits: (..., K), unnormalised log probabilities, as an alternative; stored normalised.

    Example:
        >>> d = tg.distributions.Categorical(probs=tg.tensor([0.25, 0.75]))
        >>> d.log_prob(tg.tensor(1)), d.entropy()
        (tensor(-0.2877), tensor(0.5623))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        param = self._take_either(probs, logits)
        if param.dim() < 1:
            name = "probs" if logits is None else "logits"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = param / param.sum(-1, keepdim=True)
        else:
            self.logits = param - param.logsumexp(-1, keepdim=True)
        self._num_events = param.shape[-1]
        super().__init__(param.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            rows = self.probs.reshape(-1, self._num_events)
            count = math.prod(sample_shape)
            return multinomial(rows, count, True).T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        result: Tensor = logits.gather(-1, value[..., :1]).squeeze(-1)
        return result

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=dtypes.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(self._num_events, dtype=dtypes.int64), expand)

"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import dtypes
from ..modes import no_grad
from ..programs.tracing import leaving
from ..tensor.tensor import Tensor
from . import constraints
from .distribution import ProbsOrLogits
from .functions import arange, binomial, logsigmoid
from .utils import broadcast_all

__all__ = ["Binomial"]


class Trials(ProbsOrLogits):
    """Base of families of independent trials, given by total_count and by the probability or log odds of success."""

    total_count: Tensor

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_either(probs, logits)
        name = "probs" if logits is None else "logits"
        if isinstance(total_count, Tensor) and not total_count.is_floating_point():
            total_count = total_count.to(dtypes.get_default_dtype())  # keeps a float for probs from becoming integer
        total_count, param = broadcast_all(total_count, probs if logits is None else logits)
        setattr(self, name, param)
        self.total_count = total_count.to(param.dtype)
        super().__init__(param.size(), validate_args=validate_args)


class Binomial(Trials):
    """Number of successes in independent trials.

    Args:
        total_count: number of trials.
        probs: probability of success.
        logits: log odds of success, as an alternative.

    Example:
        >>> d = tg.distributions.Binomial(4, 0.5)
        >>> d.log_prob(tg.tensor(2.0)), d.mean
        (tensor(-0.9808), tensor(2.))
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return value * self.logits + n * logsigmoid(-self.logits) + ways

    def _same_count(self, what: str) -> int:
        """The number of trials, which must be the same for all; raises NotImplementedError otherwise."""
        counts = leaving(self.total_count, "the number of trials", whole=True)
        if counts.min() != counts.max():
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return int(counts.max())

    def entropy(self) -> Tensor:
        self._same_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._same_count("enumerate_support")
        return self._enumerated(arange(1 + count, dtype=self._param.dtype), expand)

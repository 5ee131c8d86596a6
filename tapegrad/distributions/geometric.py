"""The geometric distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import special
from ..modes import no_grad
from ..programs.tracing import examined
from ..tensor import Tensor
from . import constraints
from .distribution import ProbsOrLogits, described
from .functions import binary_cross_entropy_with_logits, zeros_like
from .utils import drawn, tiny_of

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """Geometric distribution: number of failures before the first success.

    Args:
        probs: probability of success, in (0, 1].
        logits: log odds of probs, as an alternative.

    Example:
        >>> d = tg.distributions.Geometric(0.25)
        >>> d.log_prob(tg.tensor(2.0)), d.mean
        (tensor(-1.9617), tensor(3.))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take_either(probs, logits).shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not constraints.holds(constraints.positive, self.probs):
            values = examined(self.probs)
            raise ValueError(
                f"Expected parameter probs ({described(self.probs)}) of distribution {self!r} to be positive but found "
                f"invalid values:\n{self.probs.new_tensor(values[values <= 0])}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = drawn("uniform", self.probs, self._extended_shape(sample_shape), tiny_of(self.probs), 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return special.xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs

"""The continuous Bernoulli distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .distribution import ProbsOrLogits
from .exp_family import ExponentialFamily
from .functions import binary_cross_entropy_with_logits, where
from .utils import atanh_rest, broadcast_all, clamp_probs, drawn, expm1_ratio, log1p_ratio, log1pexp

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Continuous Bernoulli distribution: density proportional to probs**x * (1 - probs)**(1 - x) on [0, 1].

    G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli", NeurIPS 2019.

    Args:
        probs: the parameter, in (0, 1).
        logits: log odds of probs, as an alternative.
        lims: no effect; the formulas are accurate at and near 1/2.

    Example:
        >>> d = tg.distributions.ContinuousBernoulli(0.25)
        >>> d.log_prob(tg.tensor(0.5)), d.mean
        (tensor(-0.0498), tensor(0.4102))
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: Any = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        shape = self._take_either(probs, logits).shape
        self._lims = lims
        if probs is not None:
            checked = self._validate_args if validate_args is None else validate_args
            if checked and not constraints.holds(constraints.unit_interval, self.probs):
                raise ValueError(f"The parameter probs has invalid values. They must be in [0, 1]:\n{self.probs}")
            self.probs = clamp_probs(self.probs)
        super().__init__(shape, validate_args=validate_args)

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """u = 1 - 2*probs, r = atanh(u) / u and (r - 1) / u**2.

        The normaliser is 2*r, the mean 1/2 - u * (r - 1)/u**2 / (2*r), the variance 1/4 - (r**2 - 1)/u**2 / (4*r**2).
        """
        u = 1 - 2 * self.probs
        near = u.abs() < 0.2
        inside, outside = where(near, u, 0.0), where(near, 0.2, u)
        rest = atanh_rest(inside)
        far = -0.5 * where(near, 0.0, self.logits) / outside
        ratio = where(near, 1 + inside * inside * rest, far)
        return u, ratio, where(near, rest, (ratio - 1) / (outside * outside))

    def _cont_bern_log_norm(self) -> Tensor:
        """Logarithm of the normaliser 2*atanh(1 - 2*probs) / (1 - 2*probs)."""
        return (2 * self._parts()[1]).log()

    def _beyond(self) -> tuple[Tensor, Tensor]:
        """Mask of large |logits|, for which mean and variance are computed from 1/logits, and the logits there."""
        beyond = self.logits.abs() > 4
        return beyond, where(beyond, self.logits, 4.0)

    def _end_mean(self, logits: Tensor) -> Tensor:
        """The mean for log odds far from 0."""
        return logits.sigmoid() / (0.5 * logits).tanh() - 1 / logits

    @property
    def mean(self) -> Tensor:
        u, ratio, rest = self._parts()
        beyond, logits = self._beyond()
        return where(beyond, self._end_mean(logits), 0.5 - u * rest / (2 * ratio))

    @property
    def variance(self) -> Tensor:
        _, ratio, rest = self._parts()
        beyond, logits = self._beyond()
        middle = 0.25 - rest / ratio * (1 + 1 / ratio) / 4
        return where(
            beyond, (1 / logits) ** 2 - logits.sigmoid() * (-logits).sigmoid() / logits.mul(0.5).tanh() ** 2, middle
        )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(drawn("uniform", self.probs, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return self._cont_bern_log_norm() - binary_cross_entropy_with_logits(logits, value, reduction="none")

    def _mirrored(self, value: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Mask of positive log odds, with value and log odds mirrored there so that no exponential overflows."""
        above = self.logits > 0
        return above, where(above, -self.logits, self.logits), where(above, 1 - value, value)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        above, logits, x = self._mirrored(value.clamp(0, 1))
        result = x * expm1_ratio(logits * x) / expm1_ratio(logits)
        return where(above, 1 - result, result)

    def icdf(self, value: Tensor) -> Tensor:
        above, logits, u = self._mirrored(value)
        share = u * expm1_ratio(logits)
        x = share * log1p_ratio(u * logits.expm1())
        x = x.clamp(max=1)  # infinite at 1 if exp(logits) underflows against 1
        return where(above, 1 - x, x)

    def entropy(self) -> Tensor:
        beyond, logits = self._beyond()
        below = -logits.abs()  # the entropy equals that of the mirrored distribution, which is computed without cancellation
        far = -self._end_mean(below) * below + log1pexp(below)
        middle = -self.mean * self.logits + log1pexp(where(beyond, 0.0, self.logits))
        return where(beyond, far, middle) - self._cont_bern_log_norm()

    @property
    def _natural_params(self) -> Any:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        above = x > 0
        return where(above, x, 0.0) + expm1_ratio(where(above, -x, x)).log()

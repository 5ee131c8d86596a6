"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ..tensor import Tensor
from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Chi-squared distribution: Gamma(df / 2, 1 / 2).

    Args:
        df: degrees of freedom.

    Example:
        >>> d = tg.distributions.Chi2(3.0)
        >>> d.log_prob(tg.tensor(1.0)), d.mean
        (tensor(-1.4189), tensor(3.))
    """

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new.concentration, new.rate = (t.expand(new.batch_shape) for t in (self.concentration, self.rate))
        return new

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2

"""The multivariate normal distribution with low-rank plus diagonal covariance."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import linalg
from ..functions.shape import broadcast_tensors
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .functions import diag_embed, eye
from .multivariate_normal import _batch_mahalanobis, _batch_mv, half_log_det
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _one_more(x: Tensor) -> Tensor:
    """Square matrices plus the identity matrix."""
    return x + eye(x.shape[-1], dtype=x.dtype)


class LowRankMultivariateNormal(Distribution):
    """Multivariate normal distribution with covariance W W^T + D, W having few columns and D diagonal.

    Computations use the Cholesky factor of C = I + W^T D^-1 W, of size rank x rank: by Woodbury's identity
    (W W^T + D)^-1 = D^-1 - D^-1 W C^-1 W^T D^-1, and its determinant is |C| |D|.

    Args:
        loc: (..., n), mean.
        cov_factor: (..., n, rank), W.
        cov_diag: (..., n), the diagonal of D.

    Example:
        >>> d = tg.distributions.LowRankMultivariateNormal(tg.zeros(2), tg.tensor([[1.0], [0.0]]), tg.ones(2))
        >>> d.covariance_matrix
        tensor([[2., 0.],
                [0., 1.]])
    """

    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor
    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            wide = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from None
        self.loc, self.cov_factor, self.cov_diag = wide[0][..., 0], wide[1], wide[2][..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = linalg.cholesky(_one_more(self._weighted @ cov_factor))
        super().__init__(self.loc.shape[:-1], event_shape, validate_args)

    @property
    def _weighted(self) -> Tensor:
        """W^T D^-1."""
        result: Tensor = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        return result

    @property
    def _log_det(self) -> Tensor:
        result: Tensor = 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)
        return result

    def _mahalanobis(self, x: Tensor) -> Tensor:
        """x . (W W^T + D)^-1 x."""
        inner = _batch_mahalanobis(self._capacitance_tril, _batch_mv(self._weighted, x))
        result: Tensor = (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1) - inner
        return result

    @property
    def _reduced(self) -> Tensor:
        """A with (W W^T + D)^-1 = D^-1 - A^T A."""
        return linalg.solve_triangular(self._capacitance_tril, self._weighted, upper=False)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """Expected squared distance from the mean."""
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        result: Tensor = variance.expand(self._batch_shape + self._event_shape)
        return result

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + 2 * self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance: D^1/2 times that of I + D^-1/2 W W^T D^-1/2."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._expanded(root * linalg.cholesky(_one_more(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        return self._expanded(factor @ factor.mT + diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Inverse of the covariance matrix."""
        reduced = self._reduced
        return self._expanded(diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - reduced.mT @ reduced)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape, rank = self._extended_shape(sample_shape), self.cov_factor.shape[-1:]
        common, own = (_standard_normal(s, self.loc.dtype) for s in (shape[:-1] + rank, shape))
        result: Tensor = (
            self.loc + _batch_mv(self._unbroadcasted_cov_factor, common) + self._unbroadcasted_cov_diag.sqrt() * own
        )
        return result

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = self._mahalanobis(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det + distance)

    def entropy(self) -> Tensor:
        spread = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (spread + self._log_det)).expand(self._batch_shape)

"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import dtypes, linalg
from ..functions.properties import broadcast_shapes
from ..modes import no_grad
from ..programs.tracing import examined, leaving
from ..tensor.tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .functions import arange, cholesky_solve, diag_embed, mvlgamma, tensor, where
from .multivariate_normal import GivenByMatrix, half_log_det
from .utils import _standard_normal, vec_to_tril_matrix

__all__ = ["Wishart"]


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of mvlgamma."""
    return (x.unsqueeze(-1) - arange(p, dtype=x.dtype) / 2).digamma().sum(-1)


class Wishart(GivenByMatrix, ExponentialFamily):
    """Distribution of the sum of df outer products x x^T, x normal with mean 0.

    Args:
        df: degrees of freedom, above p - 1 for matrices of size p.
        covariance_matrix: (..., p, p), covariance of x.
        precision_matrix: inverse of the covariance matrix, as an alternative.
        scale_tril: Cholesky factor of the covariance matrix, as an alternative; saves the factorisation.

    Example:
        >>> d = tg.distributions.Wishart(3.0, tg.eye(2))
        >>> d.log_prob(tg.eye(2)), d.mean
        (tensor(-3.5310), tensor([[3., 0.],
                [0., 3.]]))
    """

    df: Tensor
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        """Constraint of each parameter, by name."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        one = self._the_one(covariance_matrix, precision_matrix, scale_tril)
        if one is None:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = one
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        p = matrix.shape[-1]
        freedom = df if isinstance(df, Tensor) else tensor(df, dtype=matrix.dtype)
        if examined(freedom <= p - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
        batch_shape = broadcast_shapes(matrix.shape[:-2], freedom.shape)
        self.df = freedom.expand(batch_shape)
        setattr(self, name, matrix.expand(*batch_shape, -1, -1))
        if examined(freedom < p).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2
            )
        super().__init__(batch_shape, matrix.shape[-2:], validate_args)
        self._factorise(name, matrix)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - arange(p, dtype=matrix.dtype))

    @property
    def _size(self) -> int:
        return self._event_shape[-1]

    @property
    def _wide_df(self) -> Tensor:
        return self.df[..., None, None]

    @property
    def mean(self) -> Tensor:
        return self._wide_df * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._wide_df - self._size - 1
        return where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._wide_df * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Any:
        """L A A^T L^T, A lower triangular with chi numbers on the diagonal and normal ones below it (Bartlett)."""
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        factor = diag_embed(roots.clamp(min=dtypes.finfo(roots.dtype).eps))
        p = self._size
        if p > 1:
            noise = _standard_normal((*sample_shape, *self._batch_shape, p * (p - 1) // 2), roots.dtype)
            factor = factor + vec_to_tril_matrix(noise, -1)
        factor = self._unbroadcasted_scale_tril @ factor
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int = 10) -> Tensor:
        """Reparameterised samples.

        Args:
            sample_shape: shape of the batch of independent samples.
            max_try_correction: maximum number of times that singular matrices are drawn again.
        """
        with no_grad():
            self._bartlett_sampling(sample_shape)  # PyTorch discards its first draw
        sample: Tensor = self._bartlett_sampling(sample_shape)
        for _ in range(max_try_correction):
            valid = self.support.check(sample)
            if leaving(valid, "whether a draw is singular", whole=True).all():
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            sample = where(valid[..., None, None], sample, self._bartlett_sampling(sample_shape))
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p, factor = self._size, self._unbroadcasted_scale_tril
        scale = p * math.log(2) / 2 + half_log_det(factor)
        size = (self.df - p - 1) / 2 * linalg.slogdet(value).logabsdet
        trace = cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        return size - trace / 2 - self.df * scale - mvlgamma(self.df / 2, p)

    def entropy(self) -> Tensor:
        p, half = self._size, self.df / 2
        scale = p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril)
        result: Tensor = (p + 1) * scale + mvlgamma(half, p) - (self.df - p - 1) / 2 * _mvdigamma(half, p) + half * p
        return result

    @property
    def _natural_params(self) -> Any:
        return -self.precision_matrix / 2, (self.df - self._size - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._size
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + mvlgamma(half, p)

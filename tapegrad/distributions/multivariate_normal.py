"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import linalg
from ..functions.properties import broadcast_shapes
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .functions import cholesky_inverse, eye
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Batched matrix-vector product; batch dimensions broadcast."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """x . M^-1 x for M = L L^T; batch dimensions of x that L lacks become columns of one linear system."""
    batch, outer = bx.shape[:-1], bx.dim() - bL.dim() + 1
    columns = bx.reshape(-1, *bx.shape[outer:]).movedim(0, -1)
    return linalg.solve_triangular(bL, columns, upper=False).pow(2).sum(-2).movedim(-1, 0).reshape(batch)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of P^-1: with J the reversal of the order, P = U U^T for U = J chol(J P J) J."""
    upper = linalg.cholesky(P.flip((-2, -1))).flip((-2, -1))
    return linalg.solve_triangular(upper.mT, eye(P.shape[-1], dtype=P.dtype), upper=False)


def half_log_det(scale_tril: Tensor) -> Tensor:
    """Half the logarithm of the determinant of L L^T."""
    return scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class GivenByMatrix(Distribution):
    """Base of families given by a covariance matrix, a precision matrix or a Cholesky factor of the covariance."""

    _unbroadcasted_scale_tril: Tensor

    @staticmethod
    def _the_one(covariance_matrix: Any, precision_matrix: Any, scale_tril: Any) -> tuple[str, Any] | None:
        """Name and value of the matrix that is given; None unless exactly one is."""
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        found = [(name, value) for name, value in given.items() if value is not None]
        return found[0] if len(found) == 1 else None

    def _factorise(self, name: str, matrix: Any) -> None:
        if name == "covariance_matrix":
            matrix = linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = _precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(*self._batch_shape, *matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Cholesky factor of the covariance."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Covariance matrix."""
        return self._expanded(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Inverse of the covariance matrix."""
        return self._expanded(cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(GivenByMatrix):
    """Multivariate normal distribution of vectors of size n.

    Args:
        loc: (..., n), mean.
        covariance_matrix: (..., n, n), positive definite.
        precision_matrix: inverse of the covariance matrix, as an alternative.
        scale_tril: Cholesky factor of the covariance matrix, as an alternative; saves the factorisation.

    Example:
        >>> d = tg.distributions.MultivariateNormal(tg.zeros(2), tg.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> d.log_prob(tg.ones(2)), d.variance
        (tensor(-2.7205), tensor([2.0000, 2.0000]))
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        one = self._the_one(covariance_matrix, precision_matrix, scale_tril)
        if one is None:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = one
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(*batch_shape, -1, -1))
        self.loc = loc.expand(*batch_shape, -1)
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args)
        self._factorise(name, matrix)

    @property
    def mean(self) -> Tensor:
        result: Tensor = self.loc
        return result

    @property
    def mode(self) -> Tensor:
        result: Tensor = self.loc
        return result

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype)
        result: Tensor = self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)
        return result

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        spread = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (spread + half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)

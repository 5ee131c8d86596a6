"""NumPy's linear algebra on tensors (numpy.linalg): NumPy's signatures and conventions, recorded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import linalg as torch_linalg
from ..core.record import wrap
from ..errors import LinAlgError as LinAlgError
from ..functions import elementwise, reduce, shape
from ..functions import linalg as products
from ..functions.operands import promoted
from ..programs.tracing import leaving
from ..table import elementwise as elementwise_records
from ..tensor import Tensor
from ..tensor.access import raw
from . import routines
from .arguments import FUNCTIONS, NO, _axes, _floating, _keepdims_shape, _merged, _raw_index, _tensor, _tensors, override

if TYPE_CHECKING:
    from .._methods import EigenvaluesEigenvectors, SignLogabsdet

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def _matrix(a: Any) -> Any:
    return _floating(_tensor(a))


def _pair(a: Any, b: Any) -> Any:
    return promoted(_tensors((a, b)), integers_to_float=True)


@override(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    """Cholesky factor of positive definite Hermitian matrices: a = L @ L.mH, or a = U.mH @ U."""
    return torch_linalg.cholesky(_matrix(a), upper=upper)


@override(np.linalg.det)
def det(a: Any) -> Tensor:
    """Determinants of square matrices."""
    return torch_linalg.det(_matrix(a))


@override(np.linalg.slogdet)
def slogdet(a: Any) -> SignLogabsdet:
    """Sign and logarithm of the absolute value of determinants."""
    return torch_linalg.slogdet(_matrix(a))


@override(np.linalg.inv)
def inv(a: Any) -> Tensor:
    """Inverses of square matrices."""
    return torch_linalg.inv(_matrix(a))


def _largest(a: Any, rcond: Any, rtol: Any, default: Any) -> Any:
    """The relative bound of the singular values that count."""
    if rcond is not None:
        return rcond
    if rtol is NO:
        return default
    return max(raw(a).shape[-2:]) * float(np.finfo(raw(a).dtype).eps) if rtol is None else rtol


@override(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NO) -> Tensor:
    """Pseudo-inverses; singular values below rcond times the largest count as 0."""
    x = _matrix(a)
    return torch_linalg.pinv(x, rtol=_largest(x, rcond, rtol, 1e-15), hermitian=hermitian)


@override(np.linalg.solve)
def solve(a: Any, b: Any) -> Tensor:
    """x with a @ x = b; b holds one vector, or matrices."""
    x, y = _pair(a, b)
    if raw(y).ndim == 1:
        return torch_linalg.solve(x, shape.unsqueeze(y, -1)).squeeze(-1)
    return torch_linalg.solve(x, y)


@override(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """(x, sums of squared residuals, rank of a, singular values of a) of the least-squares problem a @ x = b."""
    x, y = _pair(a, b)
    m, n = raw(x).shape
    u, s, vh = torch_linalg.svd(x, full_matrices=False)
    bound = np.finfo(raw(x).dtype).eps * max(m, n) if rcond is None else rcond
    values = leaving(s, "lstsq(): the shape of its parts depends on the rank")
    rank = int((values > bound * values.max(initial=0.0)).sum())
    column = shape.unsqueeze(y, -1) if raw(y).ndim == 1 else y
    projected = products.matmul(elementwise.conj(shape.transpose(u, 0, 1))[:rank], column)
    solution = products.matmul(
        elementwise.conj(shape.transpose(vh, 0, 1))[:, :rank], projected / shape.unsqueeze(s[:rank], -1)
    )
    miss = column - products.matmul(x, solution)
    squares = reduce.sum(elementwise_records.square(elementwise_records.abs(miss)), 0)
    residuals = squares if rank == n and m > n else wrap(np.zeros(0, values.dtype))
    return (shape.squeeze(solution, -1) if raw(y).ndim == 1 else solution), residuals, rank, s


ALWAYS_COMPLEX = np.lib.NumpyVersion(np.__version__) >= "2.5.0"


def _real_if_real(a: Any, values: Any, *vectors: Any) -> tuple[Any, ...]:
    """Eigenvalues (and eigenvectors), without imaginary parts where a real matrix has none: NumPy's convention until 2.5."""
    if ALWAYS_COMPLEX:
        return values, *vectors
    if _tensor(a).is_complex() or leaving(values, "eigenvalues, whose dtype NumPy chooses by their values").imag.any():
        return values, *vectors
    return tuple([v.real for v in (values, *vectors)])


@override(np.linalg.eig)
def eig(a: Any) -> EigenvaluesEigenvectors:
    """Eigenvalues and right eigenvectors of square matrices; real ones of real matrices are real, before NumPy 2.5."""
    result: Any = torch_linalg.eig(_matrix(a))
    made: EigenvaluesEigenvectors = result._make(_real_if_real(a, *result))
    return made


@override(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> EigenvaluesEigenvectors:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
    return torch_linalg.eigh(_matrix(a), UPLO)


@override(np.linalg.eigvals)
def eigvals(a: Any) -> Tensor:
    """Eigenvalues of square matrices; real ones of a real matrix are real, before NumPy 2.5."""
    values: Tensor = _real_if_real(a, torch_linalg.eigvals(_matrix(a)))[0]
    return values


@override(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices, ascending."""
    return torch_linalg.eigvalsh(_matrix(a), UPLO)


@override(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """(U, S, Vh) with a = (U * S) @ Vh; the singular values alone without compute_uv."""
    if hermitian:
        raise TypeError("numpy.linalg.svd does not support hermitian=True for tensors: take numpy.linalg.eigh")
    return torch_linalg.svd(_matrix(a), full_matrices) if compute_uv else torch_linalg.svdvals(_matrix(a))


@override(np.linalg.svdvals)
def svdvals(x: Any, /) -> Tensor:
    """Singular values, descending."""
    return torch_linalg.svdvals(_matrix(x))


@override(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """(Q, R) with a = Q @ R; R alone with mode="r"."""
    if mode == "raw":
        raise TypeError("numpy.linalg.qr does not support mode='raw' for tensors")
    result = torch_linalg.qr(_matrix(a), mode)
    return result[1] if mode == "r" else result


@override(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Tensor:
    """Square matrices to an integer power."""
    x = _tensor(a)
    return torch_linalg.matrix_power(x if n >= 0 else _floating(x), n)


@override(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """Number of singular values above a bound; it has no gradient."""
    values = leaving(_matrix(A), "numpy.linalg.matrix_rank")
    tol, rtol = _raw_index(tol), _raw_index(rtol)
    rank: Tensor = wrap(np.asarray(np.linalg.matrix_rank(values, tol, hermitian, rtol=rtol)))
    return rank


@override(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Tensor:
    """Product of several matrices in the cheapest order."""
    if out is not None:
        raise TypeError("numpy.linalg.multi_dot does not support out= for tensors")
    return torch_linalg.multi_dot(promoted(_tensors(arrays)))


@override(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Tensor:
    """Condition numbers."""
    return torch_linalg.cond(_matrix(x), p)


@override(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a linear map between its last and its first `ind` dimensions."""
    return torch_linalg.tensorinv(_matrix(a), ind)


@override(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """x with tensordot(a, x, x.ndim) = b."""
    x, y = _pair(a, b)
    return torch_linalg.tensorsolve(x, y, dims=axes)


def _length(t: Any, order: Any, axes: Any, keepdims: bool) -> Tensor:
    result: Tensor = reduce.norm(t, order, axes, keepdims)
    return result


@override(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Norms of vectors or matrices, or of all elements."""
    t = _floating(_tensor(x))
    rank = raw(t).ndim
    if axis is None and (ord is None or (rank == 2 and ord in ("f", "fro"))):
        return _length(t, 2, None, keepdims)
    axes = _axes(axis, rank)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return _length(t, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if ord in (None, "fro", "f"):
        return _length(t, 2, axes, keepdims)
    if ord not in (1, -1, 2, -2, math.inf, -math.inf, "nuc"):
        raise ValueError("Invalid norm order for matrices.")
    return torch_linalg.matrix_norm(t, ord, axes, keepdims)


@override(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of the matrices in the last two dimensions."""
    return norm(x, ord, (-2, -1), keepdims)


@override(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Norms of the vectors along the given axes, taken as one."""
    t = _floating(_tensor(x))
    axes = _axes(axis, raw(t).ndim)
    if not raw(t).ndim:
        return norm(shape.reshape(t, 1), ord, 0)
    result = norm(_merged(t, axes), ord, -1)
    made: Tensor = shape.reshape(result, _keepdims_shape(t, axes)) if keepdims else result
    return made


@override(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Diagonals of the matrices in the last two dimensions."""
    made: Tensor = FUNCTIONS[np.diagonal](_tensor(x), offset, -2, -1)
    return made


@override(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sums of the diagonals of the matrices in the last two dimensions."""
    made: Tensor = FUNCTIONS[np.trace](_tensor(x), offset, -2, -1, dtype)
    return made


@override(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Vector products along an axis of size 3."""
    made: Tensor = FUNCTIONS[np.cross](x1, x2, axis=axis)
    return made


@override(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Tensor:
    """Outer product of two vectors."""
    x, y = _tensors((x1, x2))
    if raw(x).ndim != 1 or raw(y).ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={raw(x).ndim} and x2.ndim={raw(y).ndim}."
        )
    made: Tensor = FUNCTIONS[np.outer](x, y)
    return made


@override(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Matrix products, broadcast over the dimensions before the last two."""
    made: Tensor = products.matmul(*promoted(_tensors((x1, x2))))
    return made


@override(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Products of vectors along an axis, the first conjugated."""
    made: Tensor = routines._vecdot(x1, x2, axis)
    return made


@override(np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Tensor:
    """The last two dimensions exchanged."""
    made: Tensor = shape.transpose(x, -2, -1)
    return made


@override(np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """Sum of products over the given axes of both."""
    made: Tensor = FUNCTIONS[np.tensordot](x1, x2, axes)
    return made

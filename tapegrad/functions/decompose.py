"""Factorisations of matrices: cholesky, qr, lu, eigh, eig, svd.

The public functions of the records in `table.decompose`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core.alias import slot_of
from ..core.op import TABLE
from ..core.record import running_trace
from ..core.state import is_recording
from ..core.tape import next_slot
from ..core.vjp import fixed_like
from ..kernels import lapack
from ..kernels.decompose import _hermitian_part
from ..kernels.shape import shape_of
from ..programs.tracing import examined, leaving, unless_traced
from ..table.decompose import _cholesky, _eig_op, _eigh, _eigvals, _eigvalsh, _lu, _qr, _svd_op, _svdvals
from ..table.spectrum import _polar_factor
from . import casting
from .arguments import as_one_node, with_grad_fn_name, with_out
from .elementwise import conj
from .operands import tensor
from .results import result
from .shape import transpose, tril, triu

# ---------------------------------------------------------------------------------------------------- argument handling


def matrices(name: str, x: Any, argument: str = "A") -> Any:
    """The argument as a tensor of matrices of a dtype that LAPACK has."""
    x = tensor(x)
    if len(shape_of(x)) < 2:
        raise errors.not_matrices(name, argument)
    return inexact(name, x)


def inexact(name: str, x: Any) -> Any:
    kind = x._d.dtype.kind
    if kind in "biu":
        raise errors.not_inexact(name, x._d.dtype)
    if x._d.dtype.itemsize < 4:
        raise errors.low_precision(name, x._d.dtype)
    return x


def squares(name: str, x: Any, argument: str = "A") -> Any:
    x = matrices(name, x, argument)
    m, n = shape_of(x)[-2:]
    if m != n:
        raise errors.not_square(name, argument, m, n)
    return x


def mh(x: Any) -> Any:
    """Conjugate transpose of a tensor's matrices."""
    return conj(transpose(x, -2, -1))


def hermitian(a: Any, lower: bool) -> Any:
    """The Hermitian matrix in a triangle; its gradient is spread over both triangles, as PyTorch's."""
    known = unless_traced(a)
    if known is not None and np.array_equal(known, lapack.mh(known)):
        return a
    part = tril(a) if lower else triu(a)
    own = part.detach()
    mirrored = own + mh(tril(own, -1) if lower else triu(own, 1))
    half = (a + mh(a)) * 0.5
    return half + (mirrored - half).detach()


def infos_of(a: Any, fine: bool, find: Callable[[], Any]) -> Any:
    """An info for each matrix: 0 where all are fine."""
    return np.zeros(shape_of(a)[:-2], np.int32) if fine else find()


def info_of(infos: Any, a: Any, zero_pivot: Callable[[], Any]) -> Any:
    """The infos of matrices as a tensor; while a function is traced, that of a program which finds a zero pivot itself."""
    return fixed_like(np.asarray(infos, np.int32), a) if running_trace() is None else zero_pivot()


def first_zero_pivot(packed: Any) -> Any:
    """The position, from 1 on, of the first 0 on the diagonals of LU factors; 0 if there is none."""
    last = packed._d.ndim - 2
    regular = TABLE["ne"].call(TABLE["diagonal"].call(packed, 0, last, last + 1), 0)
    count = TABLE["sum"].call(TABLE["cumprod"].call(TABLE["cast"].call(regular, np.dtype(np.int32)), last), (last,), False)
    info = TABLE["where"].call(TABLE["eq"].call(count, regular._d.shape[-1]), 0, count + 1)
    return TABLE["cast"].call(info, np.dtype(np.int32))


def batch_element(infos: Any) -> tuple[int | None, int]:
    """The first matrix of a batch (None: there is no batch) with an info, and that."""
    flat = infos.reshape(-1)
    i = int(np.flatnonzero(flat)[0])
    return (i if infos.ndim else None), int(flat[i])


# Where a derivative may be wanted the vectors are computed at once, which it needs.


def eigvalsh_of(a: Any) -> Any:
    return _eigh(a, False)[0] if is_recorded(a) else _eigvalsh(a)


def eigvals_of(a: Any) -> Any:
    real = a._d.dtype.kind != "c"
    return _eig_op(a, real, False)[0] if is_recorded(a) else _eigvals(a, real)


def svdvals_of(a: Any) -> Any:
    return _svd_op(a, False)[1] if is_recorded(a) else _svdvals(a)


def nuclear_norm_of(a: Any) -> Any:
    if is_recorded(a) or (a._st is not None and a._st.level is not None):
        return _polar_factor(a)[0]
    return TABLE["sum"].call(_svdvals(a), (a._d.ndim - 2,), False)


def is_recorded(a: Any) -> bool:
    return a._s != 0 and is_recording()


# ------------------------------------------------------------------------------------------------------------- cholesky


@with_out
def linalg_cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor of A = L L^H, or of A = U^H U, and whether there is one, without an error.

    Only one triangle of A is read; the gradient is spread over both.

    Args:
        A: Hermitian matrices (.., n, n), float or complex, of 32 bits or more.
        upper: whether the factor is U, default False.
        check_errors: whether to raise where there is no factor.

    Returns:
        (L, info): the factor, nan where info is not 0, and int32 info (..): 0, or the first leading minor that is not
        positive definite.

    Raises:
        RuntimeError: for matrices that are not square, integers, or 16-bit numbers.

    Example:
        >>> tg.linalg.cholesky_ex(tg.tensor([[4.0, 2.0], [2.0, -5.0]])).info
        tensor(2, dtype=torch.int32)
    """
    return _factored("linalg.cholesky_ex", A, upper, check_errors)


def _factored(name: str, A: Any, upper: bool, check_errors: bool) -> Any:
    a = squares(name, A)
    factor = _cholesky(hermitian(a, not upper))
    infos = infos_of(
        a,
        np.isfinite(examined(factor)).all(),
        lambda: lapack.first_bad_minor(_hermitian_part(examined(hermitian(a.detach(), not upper), False))),
    )
    if check_errors and infos.any():
        raise errors.not_positive_definite(name, *batch_element(infos))
    if not check_errors:
        leaving(factor, f"{name}(), whose info LAPACK tells")
    return result("linalg_cholesky_ex", mh(factor) if upper else factor, fixed_like(np.asarray(infos, np.int32), a))


@with_out
@casting.in_float32
@with_grad_fn_name("LinalgCholeskyExBackward0")
def linalg_cholesky(A: Any, *, upper: bool = False) -> Any:
    """The lower triangular L of A = L L^H (or the upper U of A = U^H U) of Hermitian positive definite matrices.

    Only one triangle of A is read; the gradient is spread over both.

    Args:
        A: Hermitian matrices (.., n, n), float or complex, of 32 bits or more.
        upper: whether the factor is U, default False.

    Returns:
        Tensor of A's shape and dtype.

    Raises:
        LinAlgError: for a matrix that is not positive definite.
        RuntimeError: for matrices that are not square, integers, or 16-bit numbers.

    Example:
        >>> tg.linalg.cholesky(tg.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    return _factored("linalg.cholesky", A, upper, True)[0]


@with_out
@casting.in_float32
@with_grad_fn_name("CholeskyBackward0")
def cholesky(input: Any, upper: bool = False) -> Any:
    """`linalg.cholesky` under its older name: L of input = L L^H, or U of input = U^H U.

    Args:
        input: Hermitian positive definite matrices (.., n, n), float or complex, of 32 bits or more.
        upper: whether the factor is U, default False.

    Returns:
        Tensor of input's shape and dtype.

    Raises:
        LinAlgError: for a matrix that is not positive definite.

    Example:
        >>> tg.cholesky(tg.tensor([[4.0, 2.0], [2.0, 5.0]]), upper=True)
        tensor([[2., 1.],
                [0., 2.]])
    """
    return _factored("cholesky", input, upper, True)[0]


# ------------------------------------------------------------------------------------------------------------------- qr


def _qr_of(a: Any) -> tuple[Any, Any]:
    """Reduced factors; of wide matrices by their first columns, on which alone Q depends."""
    m, n = shape_of(a)[-2:]
    if m >= n:
        return _qr(a, "reduced")  # type: ignore[no-any-return]
    q, r = _qr(a[..., :m], "reduced")
    return q, TABLE["cat"].call([r, mh(q) @ a[..., m:]], len(shape_of(a)) - 1)


@with_out
@casting.in_float32
def linalg_qr(A: Any, mode: str = "reduced") -> Any:
    """(Q, R) with A = Q R, the columns of Q orthonormal and R upper triangular.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        mode: "reduced" (default; Q has min(m, n) columns), "complete" (m columns), or "r" (R alone, Q is empty).

    Raises:
        RuntimeError: for integers, 16-bit numbers or another mode; in a backward pass through mode "complete" with more rows
            than columns, where Q is not unique.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> Q, R = tg.linalg.qr(A)
        >>> tg.allclose(Q @ R, A, atol=1e-5), tg.allclose(Q.T @ Q, tg.eye(2), atol=1e-5)
        (True, True)
    """
    a = matrices("linalg.qr", A)
    m, n = shape_of(a)[-2:]
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    q, r = _qr(a, mode) if mode == "complete" and m > n else _qr_of(a)
    return result("linalg_qr", fixed_like(np.zeros((0,), a._d.dtype), a) if mode == "r" else q, r)


@with_out
@casting.in_float32
def qr(input: Any, some: bool = True) -> Any:
    """`linalg.qr` under its older name: (Q, R) with input = Q R.

    Args:
        input: matrices (.., m, n), float or complex, of 32 bits or more.
        some: whether Q has min(m, n) columns (default), else m.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> Q, R = tg.qr(A)
        >>> Q.shape, R.shape
        (torch.Size([3, 2]), torch.Size([2, 2]))
    """
    return result("qr", *linalg_qr(input, "reduced" if some else "complete"))


@with_out
def geqrf(input: Any) -> Any:
    """R of A = Q R, and the reflections of which Q is the product, in one matrix.

    Args:
        input: matrices (.., m, n), float or complex, of 32 bits or more.

    Returns:
        (a, tau): R in and above the diagonal of a, and below it the reflections, as `orgqr` and `ormqr` take them.

    Raises:
        NotImplementedError: for a tensor that requires grad, which linalg.qr can differentiate.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> a, tau = tg.geqrf(A)
        >>> tg.allclose(tg.orgqr(a, tau) @ a.triu(), A, atol=1e-5)
        True
    """
    x = matrices("geqrf", input)
    if is_recording() and slot_of(x):
        raise NotImplementedError("the derivative for 'geqrf' is not implemented: use linalg.qr.")
    raw, tau = np.linalg.qr(leaving(x, "geqrf(), which LAPACK computes"), mode="raw")
    return result("geqrf", fixed_like(raw.swapaxes(-2, -1), x), fixed_like(tau, x))


# ------------------------------------------------------------------------------------------------------------------- lu


def _pivoted(name: str, A: Any, pivot: bool) -> tuple[Any, Any]:
    a = tensor(A)
    if len(shape_of(a)) < 2:
        raise errors.not_matrices_of_size(name, shape_of(a))
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")
    return _lu(inexact(name, a))  # type: ignore[no-any-return]


@with_out
def linalg_lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Both factors of A = P L U in one matrix, without an error for a singular one.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        pivot: True; there is no factorization without exchange of rows.
        check_errors: whether to raise where info is not 0.

    Returns:
        (LU, pivots, info): U in and above the diagonal and L below it; the row exchanged at each step, int32, from 1; and
        int32 info (..): 0, or the first zero pivot, from 1.

    Raises:
        RuntimeError: for integers, 16-bit numbers, or pivot=False.

    Example:
        >>> tg.linalg.lu_factor_ex(tg.tensor([[1.0, 2.0], [2.0, 4.0]])).info
        tensor(2, dtype=torch.int32)
    """
    return _factored_lu("torch.linalg.lu_factor_ex", A, pivot, check_errors)


def _factored_lu(name: str, A: Any, pivot: bool, check_errors: bool) -> Any:
    packed, pivots = _pivoted(name.removeprefix("torch."), A, pivot)
    fine = bool(np.diagonal(examined(packed), 0, -2, -1).all())
    infos = infos_of(packed, fine, lambda: lapack.first_zero_pivot(examined(packed, False)))
    if check_errors and infos.any():
        raise errors.zero_pivot(name, *batch_element(infos))
    return result("linalg_lu_factor_ex", packed, pivots, info_of(infos, packed, lambda: first_zero_pivot(packed.detach())))


@with_out
@casting.in_float32
def linalg_lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """Both factors of A = P L U in one matrix, as `linalg.lu_solve` and `lu_unpack` take them.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        pivot: True; there is no factorization without exchange of rows.

    Returns:
        (LU, pivots): U in and above the diagonal and L below it; the row exchanged at each step, int32, from 1.

    Raises:
        RuntimeError: if a diagonal element of U is 0; for integers, 16-bit numbers, or pivot=False.

    Example:
        >>> LU, pivots = tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [4.0, 4.0]]))
        >>> LU, pivots
        (tensor([[4.0000, 4.0000],
                [0.2500, 1.0000]]), tensor([2, 2], dtype=torch.int32))
    """
    return result("linalg_lu_factor", *_factored_lu("torch.linalg.lu_factor", A, pivot, True)[:2])


@with_out
@casting.in_float32
def lu(input: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """`linalg.lu_factor_ex` under its older name: both factors in one matrix.

    Args:
        input: matrices (.., m, n), float or complex, of 32 bits or more.
        pivot: True; there is no factorization without exchange of rows.
        get_infos: whether to give the infos too.

    Returns:
        (LU, pivots), or (LU, pivots, infos).

    Example:
        >>> LU, pivots = tg.lu(tg.tensor([[1.0, 2.0], [4.0, 4.0]]))
        >>> LU
        tensor([[4.0000, 4.0000],
                [0.2500, 1.0000]])
    """
    packed, pivots, info = _factored_lu("torch.lu", input, pivot, False)
    return (packed, pivots, info) if get_infos else (packed, pivots)


def _parts(node: str, before: int, packed: Any) -> tuple[Any, Any]:
    m, n = shape_of(packed)[-2:]
    k = min(m, n)
    one = fixed_like(np.eye(m, k, dtype=packed._d.dtype), packed)
    return as_one_node(node, before, tril(packed[..., :k], -1) + one, triu(packed[..., :k, :]))


@with_out
def linalg_lu(A: Any, *, pivot: bool = True) -> Any:
    """(P, L, U) with A = P L U: a permutation, a unit lower and an upper triangular matrix.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        pivot: True; there is no factorization without exchange of rows.

    Returns:
        P (.., m, m), L (.., m, k) and U (.., k, n) with k = min(m, n).

    Raises:
        RuntimeError: for integers, 16-bit numbers, or pivot=False.

    Example:
        >>> P, L, U = tg.linalg.lu(tg.tensor([[1.0, 2.0], [4.0, 4.0]]))
        >>> P @ L @ U
        tensor([[1., 2.],
                [4., 4.]])
    """
    before = next_slot()
    packed, pivots = _pivoted("linalg.lu", A, pivot)
    return result("linalg_lu", TABLE["lu_permutation"].call([packed, pivots]), *_parts("LinalgLuBackward0", before, packed))


@with_out
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """(P, L, U) of the packed factors that `linalg.lu_factor` gives.

    Args:
        LU_data: both factors in one matrix, (.., m, n).
        LU_pivots: int32 tensor of the rows exchanged at each step, from 1.
        unpack_data: False leaves L and U empty.
        unpack_pivots: False leaves P empty.

    Raises:
        RuntimeError: for pivots that are not int32.

    Example:
        >>> P, L, U = tg.lu_unpack(*tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [4.0, 4.0]])))
        >>> L, U
        (tensor([[1.0000, 0.0000],
                [0.2500, 1.0000]]), tensor([[4., 4.],
                [0., 1.]]))
    """
    packed, pivots = tensor(LU_data), tensor(LU_pivots)
    if unpack_pivots and pivots._d.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this function is "
            "intended to be used with the output produced by linalg.lu_factor"
        )
    empty = fixed_like(np.zeros((0,), packed._d.dtype), packed)
    p = TABLE["lu_permutation"].call([packed, pivots]) if unpack_pivots else empty
    return result("lu_unpack", p, *(_parts("LuUnpackBackward0", next_slot(), packed) if unpack_data else (empty, empty)))


# ------------------------------------------------------------------------------------------------- eigenvalues and svd


def _is_lower(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "L"


@with_out
@casting.in_float32
@with_grad_fn_name("LinalgEighBackward0")
def linalg_eigh(A: Any, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices, read from one triangle; eigenvalues ascend.

    Where eigenvalues repeat the gradient is finite for losses that do not depend on the choice of vectors, as far as the
    cotangents tell it (see `table.decompose`), else nan.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.
        UPLO: the triangle, "L" (default) or "U".

    Returns:
        Real eigenvalues (.., n) and eigenvectors (.., n, n) in columns, of norm 1.

    Raises:
        RuntimeError: for matrices that are not square, integers, 16-bit numbers or another UPLO; in a backward pass, if the
            loss depends on the phase of complex vectors.

    Example:
        >>> values, vectors = tg.linalg.eigh(tg.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> values.round(decimals=4)
        tensor([1., 3.])
    """
    lower = _is_lower(UPLO)
    return result("linalg_eigh", *_eigh(hermitian(squares("linalg.eigh", A), lower), not lower))


@with_out
@casting.in_float32
@with_grad_fn_name("LinalgEighBackward0")
def linalg_eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices, read from one triangle, ascending.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.
        UPLO: the triangle, "L" (default) or "U".

    Returns:
        Real tensor (.., n).

    Raises:
        RuntimeError: for matrices that are not square, integers, 16-bit numbers, or another UPLO.

    Example:
        >>> tg.linalg.eigvalsh(tg.tensor([[2.0, 1.0], [1.0, 2.0]])).round(decimals=4)
        tensor([1., 3.])
    """
    return eigvalsh_of(hermitian(squares("linalg.eigvalsh", A), _is_lower(UPLO)))


def _finite(name: str, A: Any) -> Any:
    a = squares(name, A)
    if not np.isfinite(examined(a)).all():
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")
    return a


def _decomposed(A: Any, full: bool) -> Any:
    a = matrices("linalg.svd", A)
    if not np.isfinite(examined(a)).all():
        raise errors.svd_failed(batch_element(~np.isfinite(examined(a, False)).all((-2, -1)))[0])
    return _svd_op(a, full)


@with_out
@casting.in_float32
def linalg_eig(A: Any) -> Any:
    """(eigenvalues, eigenvectors) of square matrices, complex; the vectors have norm 1.

    Args:
        A: finite matrices (.., n, n), float or complex, of 32 bits or more.

    Returns:
        Eigenvalues (.., n), in no order, and eigenvectors (.., n, n) in columns.

    Raises:
        RuntimeError: for matrices that are not square or not finite, integers, or 16-bit numbers; in a backward pass, if the
            loss depends on the phase of the vectors.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> values, vectors = tg.linalg.eig(A)
        >>> tg.allclose(A + 0j, vectors @ tg.diag(values) @ tg.linalg.inv(vectors), atol=1e-5)
        True
    """
    a = _finite("linalg.eig", A)
    return result("linalg_eig", *_eig_op(a, a._d.dtype.kind != "c", True))


@with_out
def linalg_eigvals(A: Any) -> Any:
    """Eigenvalues of square matrices, complex, in no order.

    Args:
        A: finite matrices (.., n, n), float or complex, of 32 bits or more.

    Returns:
        Complex tensor (.., n).

    Raises:
        RuntimeError: for matrices that are not square or not finite, integers, or 16-bit numbers.

    Example:
        >>> tg.linalg.eigvals(tg.tensor([[1.0, 2.0], [3.0, 4.0]])).prod().real.round(decimals=4)
        tensor(-2.)
    """
    return eigvals_of(_finite("linalg.eigvals", A))


@with_out
@casting.in_float32
def linalg_svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """(U, S, Vh) with A = U diag(S) Vh; singular values descend.

    Where singular values repeat or are 0 the gradient is finite for losses that do not depend on the choice of vectors, as
    far as the cotangents tell it (see `table.decompose`), else nan.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        full_matrices: whether U is (.., m, m) and Vh (.., n, n), default; else (.., m, k) and (.., k, n), k = min(m, n).
        driver: has no effect; it is for other devices.

    Raises:
        LinAlgError: for matrices that are not finite.
        RuntimeError: for integers and 16-bit numbers; in a backward pass, if the loss depends on the phase of complex
            vectors.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> U, S, Vh = tg.linalg.svd(A, full_matrices=False)
        >>> tg.allclose(U @ tg.diag(S) @ Vh, A, atol=1e-5)
        True
    """
    return result("linalg_svd", *_decomposed(A, full_matrices))


@with_out
@casting.in_float32
def linalg_svdvals(A: Any, *, driver: str | None = None) -> Any:
    """Singular values of matrices, descending.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        driver: has no effect; it is for other devices.

    Returns:
        Real tensor (.., min(m, n)).

    Raises:
        RuntimeError: for integers and 16-bit numbers.

    Example:
        >>> tg.linalg.svdvals(tg.tensor([[3.0, 0.0], [0.0, 4.0]])).round(decimals=4)
        tensor([4., 3.])
    """
    return svdvals_of(matrices("linalg.svdvals", A))


@with_out
@casting.in_float32
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """`linalg.svd` under its older name: (U, S, V) with input = U diag(S) V^H.

    Args:
        input: matrices (.., m, n), float or complex, of 32 bits or more.
        some: whether U and V have min(m, n) columns (default), else m and n.
        compute_uv: False leaves U and V 0.

    Raises:
        LinAlgError: for matrices that are not finite.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> U, S, V = tg.svd(A)
        >>> tg.allclose(U @ tg.diag(S) @ V.T, A, atol=1e-5)
        True
    """
    if compute_uv:
        u, s, vh = _decomposed(input, not some)
        return result("svd", u, s, mh(vh))
    a = matrices("linalg.svd", input)
    *batch, m, n = shape_of(a)
    zeros = [fixed_like(np.zeros((*batch, k, k), a._d.dtype), a) for k in (m, n)]
    return result("svd", zeros[0], svdvals_of(a), zeros[1])

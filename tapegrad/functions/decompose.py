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
    """(L, info): the factor of A = L L^H, or of A = U^H U, and the first leading minor that is not positive definite.

    Where info is not 0 the factor is nan. Only one triangle of A is read; the gradient is spread over both.
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

    Raises:
        LinAlgError: for a matrix that is not positive definite.
    """
    return _factored("linalg.cholesky", A, upper, True)[0]


@with_out
@casting.in_float32
@with_grad_fn_name("CholeskyBackward0")
def cholesky(input: Any, upper: bool = False) -> Any:
    """linalg.cholesky under its older name."""
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
        mode: "reduced" (Q has min(m, n) columns), "complete" (m columns), or "r" (R alone, Q is empty).

    Raises:
        RuntimeError: in a backward pass through mode "complete" with more rows than columns, where Q is not unique.
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
    """linalg.qr under its older name: reduced, or complete for some=False."""
    return result("qr", *linalg_qr(input, "reduced" if some else "complete"))


@with_out
def geqrf(input: Any) -> Any:
    """(a, tau): R in and above the diagonal of a, and below it the reflections of which Q is the product (orgqr).

    Raises:
        NotImplementedError: for a tensor that requires grad, which linalg.qr can differentiate.
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
    """(LU, pivots, info): both factors in one matrix, the row exchanged at each step (from 1), the first zero pivot or 0."""
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
    """(LU, pivots) of A = P L U, as lu_solve and lu_unpack take them.

    Raises:
        RuntimeError: if a diagonal element of U is 0.
    """
    return result("linalg_lu_factor", *_factored_lu("torch.linalg.lu_factor", A, pivot, True)[:2])


@with_out
@casting.in_float32
def lu(input: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """linalg.lu_factor_ex under its older name, with the infos for get_infos."""
    packed, pivots, info = _factored_lu("torch.lu", input, pivot, False)
    return (packed, pivots, info) if get_infos else (packed, pivots)


def _parts(node: str, before: int, packed: Any) -> tuple[Any, Any]:
    m, n = shape_of(packed)[-2:]
    k = min(m, n)
    one = fixed_like(np.eye(m, k, dtype=packed._d.dtype), packed)
    return as_one_node(node, before, tril(packed[..., :k], -1) + one, triu(packed[..., :k, :]))


@with_out
def linalg_lu(A: Any, *, pivot: bool = True) -> Any:
    """(P, L, U) with A = P L U: a permutation, a unit lower and an upper triangular matrix."""
    before = next_slot()
    packed, pivots = _pivoted("linalg.lu", A, pivot)
    return result("linalg_lu", TABLE["lu_permutation"].call([packed, pivots]), *_parts("LinalgLuBackward0", before, packed))


@with_out
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """(P, L, U) of the packed factors that linalg.lu_factor gives; what is not asked for is empty."""
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

    Raises:
        RuntimeError: in a backward pass, if the loss depends on the phase of complex vectors.
    """
    lower = _is_lower(UPLO)
    return result("linalg_eigh", *_eigh(hermitian(squares("linalg.eigh", A), lower), not lower))


@with_out
@casting.in_float32
@with_grad_fn_name("LinalgEighBackward0")
def linalg_eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices, read from one triangle, ascending."""
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
    """(eigenvalues, eigenvectors) of square matrices, complex; the vectors have norm 1."""
    a = _finite("linalg.eig", A)
    return result("linalg_eig", *_eig_op(a, a._d.dtype.kind != "c", True))


@with_out
def linalg_eigvals(A: Any) -> Any:
    """Eigenvalues of square matrices, complex."""
    return eigvals_of(_finite("linalg.eigvals", A))


@with_out
@casting.in_float32
def linalg_svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """(U, S, Vh) with A = U diag(S) Vh; singular values descend.

    Where singular values repeat or are 0 the gradient is finite for losses that do not depend on the choice of vectors, as
    far as the cotangents tell it (see `table.decompose`), else nan. `driver` is for other devices.

    Raises:
        LinAlgError: for matrices that are not finite.
        RuntimeError: in a backward pass, if the loss depends on the phase of complex vectors.
    """
    return result("linalg_svd", *_decomposed(A, full_matrices))


@with_out
@casting.in_float32
def linalg_svdvals(A: Any, *, driver: str | None = None) -> Any:
    """Singular values, descending."""
    return svdvals_of(matrices("linalg.svdvals", A))


@with_out
@casting.in_float32
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """(U, S, V) with input = U diag(S) V^H; reduced for some=True. Without compute_uv U and V are 0."""
    if compute_uv:
        u, s, vh = _decomposed(input, not some)
        return result("svd", u, s, mh(vh))
    a = matrices("linalg.svd", input)
    *batch, m, n = shape_of(a)
    zeros = [fixed_like(np.zeros((*batch, k, k), a._d.dtype), a) for k in (m, n)]
    return result("svd", zeros[0], svdvals_of(a), zeros[1])

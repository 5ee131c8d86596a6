"""Functions of matrices: solvers, inverses, determinants, exponential, norms; composed of records and factorisations.

The public functions of the records in `table.matrix`. One file over 1,000 lines, since half of it is their texts.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from .. import dtypes, errors
from ..core.op import TABLE
from ..core.record import Box, functional
from ..core.vjp import fixed_like
from ..dtypes import HALF
from ..kernels import lapack
from ..kernels.shape import dim_of, shape_of
from ..levels.level import bottom
from ..programs.tracing import examined, leaving, unless_traced
from ..table.matrix import _det, _inverse, _matrix_exp, _pinv, _rank, _slogdet_op, _solve, _solve_triangular
from . import casting, reduce
from .arguments import reduced_dims, with_grad_fn_name, with_out
from .create import randn
from .decompose import (
    batch_element,
    cholesky,
    first_zero_pivot,
    info_of,
    infos_of,
    is_recorded,
    linalg_eigh,
    linalg_eigvalsh,
    linalg_qr,
    linalg_svd,
    linalg_svdvals,
    matrices,
    mh,
    nuclear_norm_of,
    squares,
)
from .decompose import hermitian as mirrored
from .elementwise import conj
from .operands import form_of, tensor, to_dtype
from .results import result
from .shape import broadcast_to, flip, movedim, reshape, transpose, tril, unsqueeze

# ------------------------------------------------------------------------------------------------------------- solvers


def _same_dtype(name: str, a: Any, b: Any) -> None:
    if a._d.dtype != b._d.dtype:
        raise errors.different_dtypes(name, a._d.dtype, b._d.dtype)


def _is_vector(a: Any, b: Any) -> bool:
    """Whether the right side is one vector for each matrix."""
    return len(shape_of(b)) == 1 or (len(shape_of(a)) - 1 == len(shape_of(b)) and shape_of(b) == shape_of(a)[:-1])


def _solved(name: str, A: Any, B: Any, left: bool, check_errors: bool) -> tuple[Any, Any]:
    a, b = squares(name, A), tensor(B)
    _same_dtype(name, a, b)
    vector = _is_vector(a, b)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve "
            "is equivalent to B / A.squeeze(-1)"
        )
    b = unsqueeze(b, -1) if vector else b
    _check_equation(name, a, b, left)
    x = _solution(a, b) if left else transpose(_solution(transpose(a, -2, -1), transpose(b, -2, -1)), -2, -1)
    fine = (x._d.size or not a._d.size) and np.isfinite(examined(x)).all()
    infos = infos_of(a, fine, lambda: lapack.first_zero_pivot(lapack.lu(examined(a, False))[0]))
    if check_errors and infos.any():
        raise errors.singular_solve("torch." + name, batch_element(infos)[0])
    return (reshape(x, shape_of(x)[:-1]) if vector else x), _pivot_info(infos, a)


def _pivot_info(infos: Any, a: Any) -> Any:
    return info_of(infos, a, lambda: first_zero_pivot(TABLE["lu_factor"].call(a.detach())[0]))


def _solution(a: Any, b: Any) -> Any:
    recorded = (is_recorded(a) or is_recorded(b)) and not functional(a._d) and bottom(a) is a._d
    return _solve([a, b], lapack.factors(a._d, b._d) if recorded else None)  # the factors spare the backward pass its own


def _check_equation(name: str, a: Any, b: Any, left: bool) -> None:
    if len(shape_of(b)) < 2:
        raise errors.not_matrices(name, "B")
    if shape_of(b)[-2 if left else -1] != shape_of(a)[-1]:
        raise errors.incompatible_equation(name, "AX = B" if left else "XA = B", shape_of(a), shape_of(b))
    batches = shape_of(a)[:-2], shape_of(b)[:-2]
    try:
        np.broadcast_shapes(*batches)
    except ValueError:
        raise errors.broadcast_mismatch(name, *batches) from None


@with_out
@casting.in_float32
@with_grad_fn_name("LinalgSolveExBackward0")
def linalg_solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """X of A X = B (or of X A = B for left=False) for square A.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.
        B: tensor (.., n, k) of A's dtype, or one vector (n,) or (.., n) for each matrix; batches broadcast.
        left: False solves X A = B, with B (.., k, n).

    Returns:
        X in B's shape, batches broadcast.

    Raises:
        LinAlgError: for a singular matrix.
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> A = tg.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
        >>> x = tg.linalg.solve(A, tg.tensor([1.0, 2.0]))
        >>> x.sum().backward()
        >>> x.detach(), A.grad
        (tensor([0.5000, 0.5000]), tensor([[-0.2500, -0.2500],
                [-0.1250, -0.1250]]))
    """
    return _solved("linalg.solve", A, B, left, True)[0]


@with_out
@with_grad_fn_name("LinalgSolveExBackward0")
def linalg_solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """X as `linalg.solve` gives it, and whether there is one, without an error.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.
        B: tensor (.., n, k) of A's dtype, or one vector for each matrix.
        left: False solves X A = B.
        check_errors: whether to raise where info is not 0.

    Returns:
        (result, info): X, not finite for a singular matrix, and int32 info (..): 0, or the first zero pivot, from 1.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> tg.linalg.solve_ex(tg.tensor([[1.0, 2.0], [2.0, 4.0]]), tg.ones(2)).info
        tensor(2, dtype=torch.int32)
    """
    return result("linalg_solve_ex", *_solved("linalg.solve_ex", A, B, left, check_errors))


@with_out
def linalg_solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """X of A X = B (or of X A = B for left=False) for a triangle of A; the other triangle is not read.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.
        B: tensor (.., n, k) of A's dtype; batches broadcast.
        upper: whether it is the upper triangle.
        left: False solves X A = B, with B (.., k, n).
        unitriangular: whether the diagonal counts as 1 and is not read, default False.

    Returns:
        X in B's shape, batches broadcast; not finite where the diagonal has a 0.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> A = tg.tensor([[2.0, 1.0], [0.0, 4.0]])
        >>> tg.linalg.solve_triangular(A, tg.tensor([[3.0], [4.0]]), upper=True)
        tensor([[1.],
                [1.]])
    """
    name = "linalg.solve_triangular"
    a, b = squares(name, A), tensor(B)
    _same_dtype(name, a, b)
    _check_equation(name, a, b, left)
    if left:
        return _solve_triangular([a, b], upper, unitriangular)
    return transpose(_solve_triangular([transpose(a, -2, -1), transpose(b, -2, -1)], not upper, unitriangular), -2, -1)


@with_out
@casting.in_float32
@with_grad_fn_name("TriangularSolveBackward0")
def triangular_solve(input: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    """(solution, A) of A X = input (or of A^T X = input) for a triangle of A: `linalg.solve_triangular`, older.

    Args:
        input: tensor (.., n, k).
        A: matrices (.., n, n) of input's dtype; batches broadcast.
        upper: whether it is the upper triangle, default True.
        transpose: whether to solve A^T X = input.
        unitriangular: whether the diagonal counts as 1.

    Returns:
        (solution, cloned_coefficient): X, and a copy of A.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> A = tg.tensor([[2.0, 1.0], [0.0, 4.0]])
        >>> tg.triangular_solve(tg.tensor([[3.0], [4.0]]), A).solution
        tensor([[1.],
                [1.]])
    """
    b, a = tensor(input), tensor(A)
    for which, x in (("b", b), ("A", a)):
        if len(shape_of(x)) < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {which} to have at least 2 dimensions, but it has {len(shape_of(x))} "
                "dimensions instead"
            )
    own = TABLE["mT"].call(a) if transpose else a
    x = linalg_solve_triangular(own, b, upper=upper != transpose, unitriangular=unitriangular)
    return result("triangular_solve", x, TABLE["clone"].call(a))


@with_out
@casting.in_float32
@with_grad_fn_name("CholeskySolveBackward0")
def cholesky_solve(input: Any, L: Any, upper: bool = False) -> Any:
    """X of A X = input, for the Cholesky factor L of A = L L^H (or U with A = U^H U).

    Args:
        input: tensor (.., n, k).
        L: triangular matrices (.., n, n) of input's dtype; batches broadcast.
        upper: whether the factor is U, default False.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> L = tg.linalg.cholesky(tg.tensor([[4.0, 0.0], [0.0, 1.0]]))
        >>> tg.cholesky_solve(tg.tensor([[8.0], [3.0]]), L)
        tensor([[2.],
                [3.]])
    """
    b, factor = tensor(input), tensor(L)
    for which, x in (("b", b), ("u", factor)):
        if len(shape_of(x)) < 2:
            raise RuntimeError(f"{which} should have at least 2 dimensions, but has {len(shape_of(x))} dimensions instead")
    first, second = (mh(factor), factor) if upper else (factor, mh(factor))
    factor = squares("cholesky_solve", factor)
    _same_dtype("cholesky_solve", factor, b)
    _check_equation("cholesky_solve", factor, b, True)
    return _solve([second, _solve([first, b], lapack.LOWER)], lapack.UPPER)


def lobpcg(
    A: Any, k: int | None = None, B: Any = None, X: Any = None, n: int | None = None, iK: Any = None,
    niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None,
    tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The k largest (or smallest) eigenvalues of A x = lambda B x and their vectors, by the whole decomposition.

    Args:
        A: symmetric matrices (.., n, n), float.
        k: number of eigenvalues, by default X's columns, or 1.
        B: positive definite matrices of A's shape, by default the identity.
        X: tensor whose last size is k; its values do not matter.
        largest: False gives the smallest, default True.
        n, iK, niter, tol, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams: what steers PyTorch's iteration has
            no effect.

    Returns:
        (eigenvalues, eigenvectors): (.., k), the largest (or smallest) first, and (.., n, k) in columns.

    Raises:
        ValueError: if k is not between 1 and n.

    Example:
        >>> values, vectors = tg.lobpcg(tg.diag(tg.tensor([1.0, 5.0, 3.0])), k=2)
        >>> values.round(decimals=4)
        tensor([5., 3.])
    """
    a = squares("lobpcg", A.to_dense())
    rank = shape_of(a)[-1]
    count = k if k is not None else 1 if X is None else shape_of(X)[-1]
    if not 0 < count <= rank:
        raise ValueError(f"lobpcg: the number of eigenpairs k={count} must be between 1 and {rank}, the size of A")
    if B is not None:
        factor = cholesky(B.to_dense())
        half = linalg_solve_triangular(factor, a, upper=False)
        a = linalg_solve_triangular(factor, mh(half), upper=False)
    values, vectors = linalg_eigh(a)
    first = 0 if largest is False else rank - count
    values, vectors = values[..., first : first + count], vectors[..., first : first + count]
    if largest is not False:
        values, vectors = flip(values, (-1,)), flip(vectors, (-1,))
    return values, vectors if B is None else linalg_solve_triangular(mh(factor), vectors, upper=True)


@with_out
@with_grad_fn_name("CholeskyInverseBackward0")
def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """Inverse of A for its Cholesky factor L, A = L L^H (or U, A = U^H U).

    Args:
        input: triangular matrices (.., n, n), float or complex, of 32 bits or more.
        upper: whether the factor is U, default False.

    Example:
        >>> L = tg.linalg.cholesky(tg.tensor([[4.0, 0.0], [0.0, 1.0]]))
        >>> tg.cholesky_inverse(L)
        tensor([[0.2500, 0.0000],
                [0.0000, 1.0000]])
    """
    factor = squares("cholesky_inverse", input)
    one = fixed_like(np.eye(shape_of(factor)[-1], dtype=factor._d.dtype), factor)
    return cholesky_solve(broadcast_to(one, shape_of(factor)), factor, upper)


@with_out
@with_grad_fn_name("LinalgLuSolveBackward0")
def linalg_lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """X of A X = B (X A = B for left=False; A^H in place of A for adjoint) by the factors that `linalg.lu_factor` gives.

    Args:
        LU: both factors of A in one matrix, (.., n, n).
        pivots: int32 tensor (.., n) of the rows exchanged at each step, from 1.
        B: tensor (.., n, k) of LU's dtype; batches broadcast.
        left: False solves X A = B, with B (.., k, n).
        adjoint: whether A^H stands in place of A.

    Raises:
        RuntimeError: for sizes that do not fit, different dtypes, or pivots that are not int32.

    Example:
        >>> LU, pivots = tg.linalg.lu_factor(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        >>> tg.linalg.lu_solve(LU, pivots, tg.tensor([[1.0], [2.0]]))
        tensor([[0.5000],
                [0.5000]])
    """
    name = "linalg.lu_solve"
    packed, b = squares(name, LU, "LU"), tensor(B)
    _same_dtype(name, packed, b)
    _check_equation(name, packed, b, left)
    if not left:  # X A = B is A^H X^H = B^H
        return mh(linalg_lu_solve(packed, pivots, mh(b), adjoint=not adjoint))
    if tensor(pivots)._d.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    if shape_of(tensor(pivots))[-1:] != shape_of(packed)[-1:]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    p = TABLE["lu_permutation"].call([packed, tensor(pivots)])
    if adjoint:
        y = _solve_triangular([mh(packed), b], False, False)
        return p @ _solve_triangular([mh(packed), y], True, True)
    y = _solve_triangular([packed, mh(p) @ b], False, True)
    return _solve_triangular([packed, y], True, False)


@with_out
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """X of A X = input by the factors that `linalg.lu_factor` gives: `linalg.lu_solve` under its older name.

    Args:
        input: tensor (.., n, k).
        LU_data: both factors of A in one matrix, (.., n, n).
        LU_pivots: int32 tensor (.., n) of the rows exchanged at each step, from 1.

    Example:
        >>> LU, pivots = tg.linalg.lu_factor(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        >>> tg.lu_solve(tg.tensor([[1.0], [2.0]]), LU, pivots)
        tensor([[0.5000],
                [0.5000]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, input)


def _inverted(name: str, A: Any, check_errors: bool) -> tuple[Any, Any]:
    a = squares(name, A)
    x = _inverse(a)
    infos = infos_of(a, np.isfinite(examined(x)).all(), lambda: lapack.first_zero_pivot(lapack.lu(examined(a, False))[0]))
    if check_errors and infos.any():
        raise errors.singular_inverse(name, *batch_element(infos))
    return x, _pivot_info(infos, a)


@with_out
@casting.in_float32
def linalg_inv(A: Any) -> Any:
    """Inverse of square matrices.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.

    Raises:
        LinAlgError: for a singular matrix.
        RuntimeError: for matrices that are not square, integers, or 16-bit numbers.

    Example:
        >>> tg.linalg.inv(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return _inverted("linalg.inv", A, True)[0]


@with_out
@casting.in_float32
def inverse(input: Any) -> Any:
    """Inverse of square matrices: `linalg.inv`.

    Args:
        input: matrices (.., n, n), float or complex, of 32 bits or more.

    Raises:
        LinAlgError: for a singular matrix.

    Derivative:
        input: -matmul(matmul(adjoint(result), g), adjoint(result))

    Example:
        >>> tg.inverse(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return _inverted("linalg.inv", input, True)[0]


@with_out
def linalg_inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """Inverse of square matrices, and whether there is one, without an error.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.
        check_errors: whether to raise where info is not 0.

    Returns:
        (inverse, info): the inverse, not finite for a singular matrix, and int32 info (..): 0, or the first zero pivot, from
        1.

    Raises:
        RuntimeError: for matrices that are not square, integers, or 16-bit numbers.

    Example:
        >>> tg.linalg.inv_ex(tg.tensor([[1.0, 2.0], [2.0, 4.0]])).info
        tensor(2, dtype=torch.int32)
    """
    return result("linalg_inv_ex", *_inverted("linalg.inv_ex", A, check_errors))


def _tolerance(value: Any) -> Any:
    """A tolerance beside singular values: a number, or a number for each matrix."""
    return leaving(value, "a tolerance that is a tensor")[..., None] if isinstance(value, Box) else value


def _tolerances(a: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """atol and rtol, which is by default that of rounding unless atol is positive."""
    absolute: Any = 0.0 if atol is None else _tolerance(atol)
    if rtol is not None:
        return absolute, _tolerance(rtol)
    eps = float(np.finfo(a._d.dtype).eps) * max(shape_of(a)[-2:])
    if isinstance(atol, Box):
        return absolute, np.where(absolute > 0, 0.0, eps).astype(absolute.dtype)
    return absolute, 0.0 if absolute > 0 else eps


@with_out
@with_grad_fn_name("LinalgPinvBackward0")
def linalg_pinv(A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """Pseudo-inverse of matrices: singular values up to max(atol, rtol * the largest) count as 0.

    The derivative is that along matrices of the same rank.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        rcond: an older name of rtol.
        hermitian: whether A is Hermitian, of which only the lower triangle is read.
        atol: a number or a tensor of one for each matrix, default 0.
        rtol: likewise; default max(m, n) * eps of the dtype, or 0 with an atol above 0.

    Returns:
        Tensor (.., n, m).

    Raises:
        RuntimeError: for integers, 16-bit numbers, or a vector.

    Example:
        >>> tg.linalg.pinv(tg.tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 4.0]])).shape
        torch.Size([2, 3])
    """
    a = tensor(A)
    if len(shape_of(a)) < 2 or a._d.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.pinv({errors.dtype_name(a._d.dtype)}{{{list(shape_of(a))}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    own = mirrored(squares("linalg.pinv", a), True) if hermitian else a
    each = [shape_of(v) for v in (atol, rcond if rtol is None else rtol) if isinstance(v, Box)]
    if each:  # a tolerance for each matrix
        *batch, m, n = shape_of(own)
        own = broadcast_to(own, (*np.broadcast_shapes(tuple(batch), *each), m, n))
    return _pinv(own, *_tolerances(a, atol, rcond if rtol is None else rtol), hermitian)


def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """Pseudo-inverse of matrices: `linalg.pinv` with a relative tolerance.

    Args:
        input: matrices (.., m, n), float or complex, of 32 bits or more.
        rcond: singular values up to rcond times the largest count as 0, default 1e-15.

    Returns:
        Tensor (.., n, m).

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> tg.allclose(tg.pinverse(A) @ A, tg.eye(2), atol=1e-4)
        True
    """
    return linalg_pinv(input, rtol=rcond)


@with_out
def linalg_matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """Number of singular values above max(atol, rtol * the largest).

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        tol: an older name of atol, with rtol 0.
        hermitian: whether A is Hermitian, of which only the lower triangle is read.
        atol: a number or a tensor of one for each matrix, default 0.
        rtol: likewise; default max(m, n) * eps of the dtype, or 0 with an atol above 0.

    Returns:
        int64 tensor (..), without gradient.

    Raises:
        RuntimeError: for integers, 16-bit numbers, or a vector.

    Example:
        >>> tg.linalg.matrix_rank(tg.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    name = "torch.linalg.matrix_rank"
    a = matrices(name, A, "input").detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    s = linalg_eigvalsh(a) if hermitian else linalg_svdvals(a)
    return _rank(s, *_tolerances(a, atol, rtol))


@with_out
@casting.in_float32
@with_grad_fn_name("LinalgLstsqBackward0")
def linalg_lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Least squares: X that minimizes the norm of A X - B, that of least norm where there are several.

    Residuals are given for more rows than columns and full rank, singular values for the drivers "gelsd" and "gelss", the
    rank for all but "gels"; what is not given is empty.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        B: tensor (.., m, k) of A's dtype, or (.., m), one vector for each matrix.
        rcond: singular values up to rcond times the largest count as 0 (by default those of rounding).
        driver: "gelsy" (the default), "gelsd", "gelss" or "gels" (for full rank).

    Returns:
        (solution, residuals, rank, singular_values): (.., n, k), the squared norms (.., k), (..) and (.., min(m, n)).

    Raises:
        RuntimeError: for sizes that do not fit, different dtypes, or another driver.

    Example:
        >>> A = tg.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> B = tg.tensor([[1.0], [3.0], [5.0]])
        >>> tg.linalg.lstsq(A, B).solution.round(decimals=4)
        tensor([[1.],
                [2.]])
    """
    name = "torch.linalg.lstsq"
    driver = "gelsy" if driver is None else driver
    if driver not in ("gelsy", "gelsd", "gelss", "gels"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    a, b = matrices(name, A, "input"), tensor(B)
    _same_dtype(name, a, b)
    vector = len(shape_of(a)) - 1 == len(shape_of(b)) and shape_of(a)[:-1] == shape_of(b)
    b2 = unsqueeze(b, -1) if vector else b
    m, n = shape_of(a)[-2:]
    if len(shape_of(b2)) < 2 or shape_of(b2)[-2] != m:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({'-1' if vector else '-2'})")
    atol, rtol = _tolerances(a, None, rcond)
    x = _pinv(a, atol, rtol, False) @ b2
    s = linalg_svdvals(a.detach())
    rank = _rank(s, atol, rtol)
    empty = fixed_like(np.zeros((0,), s._d.dtype), s)
    residuals = reshape(TABLE["real"].call(x) if x._d.dtype.kind == "c" else x, (-1,))[:0]
    if m > n and (
        driver == "gels"
        or (driver != "gelsy" and (leaving(rank, "lstsq(): the shape of the residuals depends on the rank") == n).all())
    ):
        r = a @ x - b2
        residuals = reduce.sum(TABLE["real"].call(r * conj(r)) if r._d.dtype.kind == "c" else r * r, -2)
    return result(
        "linalg_lstsq", reshape(x, shape_of(x)[:-1]) if vector else x, residuals,
        fixed_like(np.zeros((0,), np.int64), s) if driver == "gels" else rank,
        s if driver in ("gelsd", "gelss") else empty,
    )  # fmt: skip


@with_out
def linalg_tensorinv(A: Any, ind: int = 2) -> Any:
    """Inverse of A as a map from its last dimensions to its first `ind`: tensordot(tensorinv(A, ind), A, ind) is 1.

    Args:
        A: tensor, float or complex, whose first `ind` sizes have the product of the others.
        ind: number of dimensions, default 2.

    Returns:
        Tensor of A's last sizes, followed by its first `ind`.

    Raises:
        RuntimeError: if the products differ, or ind is not positive.
        LinAlgError: if the map is singular.

    Example:
        >>> A = tg.eye(6).reshape(2, 3, 6)
        >>> tg.linalg.tensorinv(A, ind=2).shape
        torch.Size([6, 2, 3])
    """
    a = tensor(A)
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, last = shape_of(a)[:ind], shape_of(a)[ind:]
    m, n = math.prod(first), math.prod(last)
    if m != n:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {n} != {m}"
        )
    return reshape(linalg_inv(reshape(a, (m, n))), (*last, *first))


@with_out
def linalg_tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """X of tensordot(A, X, X.ndim) = B.

    Args:
        A: tensor, float or complex, of sizes B.shape + X.shape, whose products are equal.
        B: tensor of A's dtype.
        dims: dimensions of A that are moved to its end first.

    Raises:
        RuntimeError: if the products differ.
        LinAlgError: if A is singular.

    Example:
        >>> A = tg.eye(6).reshape(2, 3, 6)
        >>> tg.linalg.tensorsolve(A, tg.ones(2, 3)).shape
        torch.Size([6])
    """
    a, b = tensor(A), tensor(B)
    if dims is not None:
        moved = (dims,) if isinstance(dims, int) else tuple(dims)
        a = movedim(a, moved, tuple(range(len(shape_of(a)) - len(moved), len(shape_of(a)))))
    own = shape_of(a)[len(shape_of(b)) :]
    m, n = math.prod(shape_of(a)[: len(shape_of(b))]), math.prod(own)
    if m != n:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
            f"got {n} != {m}"
        )
    return reshape(linalg_solve(reshape(a, (m, n)), reshape(b, (m,))), own)


# -------------------------------------------------------------------------------------------------------- determinants


@with_out
def linalg_det(A: Any) -> Any:
    """Determinant of square matrices; its derivatives are the exact cofactors, at any rank and to any order.

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.

    Returns:
        Tensor (..) of A's dtype.

    Raises:
        RuntimeError: for matrices that are not square, integers, or 16-bit numbers.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 6.0]], requires_grad=True)
        >>> tg.linalg.det(A).backward()
        >>> A.grad
        tensor([[ 6., -3.],
                [-2.,  1.]])
    """
    return _det(squares("linalg.det", A))


@with_out
def det(input: Any) -> Any:
    """Determinant of square matrices: `linalg.det`.

    Args:
        input: matrices (.., n, n), float or complex, of 32 bits or more.

    Returns:
        Tensor (..) of input's dtype.

    Derivative:
        input: column(g) * conj(cofactor([input])), where column: x with two dimensions of size 1 behind; cofactor:
            cofactors: det(x) * inverse(x).mT, of singular matrices too

    Example:
        >>> tg.det(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor(8.)
    """
    return _det(squares("linalg.det", input))


def _sign_and_size(name: str, A: Any) -> Any:
    a = squares(name, A)
    return _slogdet_op(a, a._d.dtype.kind != "c")


@with_out
def linalg_slogdet(A: Any) -> Any:
    """Sign and logarithm of the size of the determinant of square matrices: det = sign * exp(logabsdet).

    Args:
        A: matrices (.., n, n), float or complex, of 32 bits or more.

    Returns:
        (sign, logabsdet), each (..); of complex matrices sign has norm 1, of singular ones they are 0 and -inf.

    Raises:
        RuntimeError: for matrices that are not square, integers, or 16-bit numbers.

    Example:
        >>> tg.linalg.slogdet(tg.tensor([[0.0, 1.0], [1.0, 0.0]]))
        torch.return_types.linalg_slogdet(
        sign=tensor(-1.),
        logabsdet=tensor(0.))
    """
    return result("linalg_slogdet", *_sign_and_size("linalg.slogdet", A))


@with_out
def slogdet(input: Any) -> Any:
    """Sign and logarithm of the size of the determinant of square matrices: `linalg.slogdet`.

    Args:
        input: matrices (.., n, n), float or complex, of 32 bits or more.

    Returns:
        (sign, logabsdet), each (..).

    Example:
        >>> tg.slogdet(tg.tensor([[0.0, 1.0], [1.0, 0.0]]))
        torch.return_types.slogdet(
        sign=tensor(-1.),
        logabsdet=tensor(0.))
    """
    return result("slogdet", *_sign_and_size("linalg.slogdet", input))


def logdet(input: Any) -> Any:
    """Logarithm of the determinant of square matrices; nan where a real one is negative, -inf where it is 0.

    Args:
        input: matrices (.., n, n), float or complex, of 32 bits or more.

    Returns:
        Tensor (..) of input's dtype.

    Raises:
        RuntimeError: for matrices that are not square, integers, or 16-bit numbers.

    Example:
        >>> A = tg.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
        >>> tg.logdet(A).backward()
        >>> A.grad
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    sign, size = _sign_and_size("logdet", input)
    return TABLE["log"].call(sign) + size


# ---------------------------------------------------------------------------------------------------- matrix functions


def matrix_exp(input: Any) -> Any:
    """Exponential of square matrices, the sum of A^k / k!: `linalg.matrix_exp`.

    Args:
        input: float or complex matrices (.., n, n).

    Returns:
        Tensor of input's shape and dtype.

    Raises:
        RuntimeError: for matrices that are not square, or integers.

    Derivative:
        input: matrix_exp_derivative([adjoint(input), g]), where matrix_exp_derivative: derivative of matrix_exp at the first
            matrix in the direction of the second

    Example:
        >>> tg.matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return linalg_matrix_exp(input)


def linalg_matrix_exp(A: Any) -> Any:
    """Exponential of square matrices: the sum of A^k / k!.

    Args:
        A: float or complex matrices (.., n, n).

    Returns:
        Tensor of A's shape and dtype.

    Raises:
        RuntimeError: for matrices that are not square, or integers.

    Example:
        >>> tg.linalg.matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    a = tensor(A)
    half = a._d.dtype if a._d.dtype in HALF else None
    r = _matrix_exp(squares("linalg.matrix_exp", a if half is None else to_dtype(a, np.dtype(np.float32))))
    return r if half is None else to_dtype(r, half)


@with_out
def linalg_matrix_power(A: Any, n: int) -> Any:
    """A to an integer power, by squarings; of the inverse for n < 0.

    Args:
        A: matrices (.., n, n) of any dtype; float or complex for a negative power.
        n: an integer.

    Raises:
        LinAlgError: for a singular matrix and a negative power.
        RuntimeError: for matrices that are not square.

    Example:
        >>> tg.linalg.matrix_power(tg.tensor([[1, 1], [1, 0]]), 10)
        tensor([[89, 55],
                [55, 34]])
    """
    a = tensor(A)
    if len(shape_of(a)) < 2:
        raise errors.not_matrices("linalg.matrix_power", "A")
    if shape_of(a)[-2] != shape_of(a)[-1]:
        raise errors.not_square("linalg.matrix_power", "A", *shape_of(a)[-2:])
    n = operator.index(n)
    if n == 0:
        one = np.broadcast_to(np.eye(shape_of(a)[-1], dtype=a._d.dtype), shape_of(a))
        return TABLE["replaced"].call(a, fixed_like(one.copy(), a))
    if n < 0:
        a, n = linalg_inv(a), -n
    power = None
    while True:
        if n & 1:
            power = a if power is None else power @ a
        n >>= 1
        if not n:
            return TABLE["clone"].call(power) if power is a else power
        a = a @ a


@with_out
def matrix_power(input: Any, n: int) -> Any:
    """input to an integer power: `linalg.matrix_power`.

    Args:
        input: matrices (.., n, n) of any dtype; float or complex for a negative power.
        n: an integer.

    Example:
        >>> tg.matrix_power(tg.tensor([[1, 1], [1, 0]]), 10)
        tensor([[89, 55],
                [55, 34]])
    """
    return linalg_matrix_power(input, n)


# --------------------------------------------------------------------------------------------------------------- norms


@with_out
def linalg_vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """sum(abs(x) ** ord) ** (1 / ord) over the given dimensions, or all.

    The derivative at 0 is 0, for every order.

    Args:
        x: float or complex tensor of any shape.
        ord: a number, default 2; inf and -inf are the largest and the smallest size, 0 the number of elements that are not
            0.
        dim: a dimension or a tuple of them, default all.
        keepdim: whether the dimensions stay, of size 1.
        dtype: what the elements are converted to first.

    Returns:
        Real tensor.

    Raises:
        RuntimeError: for integers, or orders without a value for no elements.
        TypeError: if ord is no number.

    Example:
        >>> x = tg.tensor([3.0, 4.0], requires_grad=True)
        >>> tg.linalg.vector_norm(x).backward()
        >>> x.grad
        tensor([0.6000, 0.8000])
    """
    if isinstance(ord, str):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    x = tensor(x)
    dims = reduced_dims(x, dim, None, "linalg_vector_norm")
    count = math.prod(shape_of(x) if dims is None else [shape_of(x)[d] for d in dims])
    if not count and (ord < 0 or ord == math.inf):
        raise errors.norm_of_nothing(f"{float(ord):g}")
    return reduce.norm(x, ord, dim, keepdim, dtype=dtype)


def _matrix_dims(x: Any, dim: Any) -> tuple[int, int]:
    rank = len(shape_of(x))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise errors.matrix_norm_dims(dims)
    a, b = (dim_of(d, rank) for d in dims)
    if a == b:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    return a, b


def _largest(x: Any, dim: int) -> Any:
    """amax of numbers that are not negative; of none, 0."""
    return reduce.amax(x, dim) if shape_of(x)[dim] else reduce.sum(x, dim)


@with_out
def linalg_matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Norm of matrices: Frobenius, nuclear, or one that `ord` names.

    Args:
        A: float or complex tensor of two or more dimensions.
        ord: "fro" (default), "nuc", or the largest row sum, column sum or singular value for inf, 1, 2; the smallest for
            -inf, -1, -2.
        dim: the dimensions of rows and columns, default the last two.
        keepdim: whether the dimensions stay, of size 1.
        dtype: what the elements are converted to first.

    Returns:
        Real tensor.

    Raises:
        RuntimeError: for integers, or another order.

    Example:
        >>> tg.linalg.matrix_norm(tg.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
        tensor(6.)
    """
    a = tensor(A)
    low = a._d.dtype in HALF and ord not in (2, -2, "nuc")  # these need no singular values
    a = matrices("linalg.matrix_norm", to_dtype(a, np.dtype(np.float32)) if low else a)
    if low and dtype is None:
        return to_dtype(linalg_matrix_norm(a, ord, dim, keepdim), tensor(A)._d.dtype)
    if dtype is not None:
        a = to_dtype(a, reduce.wider("linalg.matrix_norm", tensor(A)._d.dtype, dtypes.to_numpy(dtype)))
    rows, columns = _matrix_dims(a, dim)
    if ord not in ("fro", "nuc") and (isinstance(ord, str) or abs(ord) not in (1, 2, math.inf)):
        raise errors.matrix_norm_order(ord)
    if ord == "fro":
        return reduce.norm(a, 2, (rows, columns), keepdim)
    if ord == "nuc":
        r = nuclear_norm_of(movedim(a, (rows, columns), (-2, -1)))
    elif abs(ord) == 2:
        s = linalg_svdvals(movedim(a, (rows, columns), (-2, -1)))
        r = _largest(s, -1) if ord > 0 else reduce.amin(s, -1)
    else:
        along, over = (columns, rows) if abs(ord) == math.inf else (rows, columns)
        sums = reduce.norm(a, 1, along)
        pick = _largest if ord > 0 else reduce.amin
        r = pick(sums, over - (over > along))
    if not keepdim:
        return r
    return reshape(r, tuple([1 if d in (rows, columns) else n for d, n in enumerate(shape_of(a))]))


@with_out
def linalg_norm(input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Vector norm for one dimension, matrix norm for two; without ord the 2-norm of all elements.

    Args:
        input: float or complex tensor.
        ord: of `linalg.vector_norm` or `linalg.matrix_norm`.
        dim: one dimension, or two; without it and with ord the tensor is a vector or a matrix.
        keepdim: whether the dimensions stay, of size 1.
        dtype: what the elements are converted to first.

    Returns:
        Real tensor.

    Raises:
        RuntimeError: for integers, another order, or more dimensions with an ord and without `dim`.

    Example:
        >>> tg.linalg.norm(tg.tensor([[3.0, 0.0], [0.0, 4.0]])), tg.linalg.norm(tg.tensor([3.0, -4.0]), 1)
        (tensor(5.), tensor(7.))
    """
    x = tensor(input)
    rank = len(shape_of(x))
    dims = dim if dim is None or isinstance(dim, int) else tuple(dim)
    if ord is None:
        return linalg_vector_norm(x, 2, dims, keepdim, dtype=dtype)
    if dims is None and rank not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {rank}D.")
    two = rank == 2 if dims is None else not isinstance(dims, int) and len(dims) == 2
    if two or isinstance(ord, str):
        return linalg_matrix_norm(x, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype)
    return linalg_vector_norm(x, ord, dims, keepdim, dtype=dtype)


@with_out
def linalg_cond(A: Any, p: Any = None) -> Any:
    """Condition number norm(A, p) * norm(inv(A), p), inf for singular A; from the singular values for p None, 2 and -2.

    Args:
        A: matrices (.., n, n), or (.., m, n) for p None, 2 and -2; float or complex, of 32 bits or more.
        p: None (2), or an order of `linalg.matrix_norm`.

    Returns:
        Real tensor (..).

    Raises:
        RuntimeError: for integers, 16-bit numbers, or another order.

    Example:
        >>> tg.linalg.cond(tg.tensor([[2.0, 0.0], [0.0, 4.0]]), 1)
        tensor(2.)
    """
    a = matrices("linalg.cond", A)
    if p is None or p == 2 or p == -2:
        if not shape_of(a)[-1] * shape_of(a)[-2]:
            return fixed_like(np.zeros(shape_of(a)[:-2], form_of(a._d).real.dtype), a)
        s = linalg_svdvals(a)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    a = squares("linalg.cond", a)
    if not shape_of(a)[-1]:
        return fixed_like(np.zeros(shape_of(a)[:-2], form_of(a._d).real.dtype), a)
    x, infos = _inverted("linalg.cond", a, False)
    singular = TABLE["ne"].call(infos, 0)
    r = linalg_matrix_norm(a, p) * linalg_matrix_norm(x, p)
    known = unless_traced(singular)
    return TABLE["where"].call(singular, math.inf, r) if known is None or known.any() else r


# -------------------------------------------------------------------------------------------- reflections, low rank


def _check_reflections(name: str, a: Any, tau: Any) -> None:
    """The scalars of the reflections in the columns of a."""
    if tau._d.dtype != a._d.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {errors.dtype_name(tau._d.dtype)} does not match input dtype {errors.dtype_name(a._d.dtype)}"
        )
    if shape_of(tau)[:-1] != shape_of(a)[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(shape_of(tau)[:-1])}"
        )


@with_out
@with_grad_fn_name("LinalgHouseholderProductBackward0")
def linalg_householder_product(A: Any, tau: Any) -> Any:
    """The first n columns of the product of the reflections 1 - tau_i v_i v_i^H, as `geqrf` gives them.

    v_i is 1 in row i, column i of A below that, and 0 above.

    Args:
        A: matrices (.., m, n), m >= n, float or complex, of 32 bits or more.
        tau: tensor (.., k) of A's dtype, k <= n.

    Returns:
        Tensor (.., m, n).

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> a, tau = tg.geqrf(A)
        >>> tg.allclose(tg.linalg.householder_product(a, tau) @ a.triu(), A, atol=1e-5)
        True
    """
    name = "torch.linalg.householder_product"
    a, t = matrices(name, A, "input"), tensor(tau)
    *batch, m, n = shape_of(a)
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < shape_of(t)[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_reflections(name, a, t)
    one = fixed_like(np.broadcast_to(np.eye(m, n, dtype=a._d.dtype), (*batch, m, n)).copy(), a)
    if not shape_of(t)[-1]:
        return TABLE["replaced"].call(a, one)
    return _reflected(a, t, one, range(shape_of(t)[-1] - 1, -1, -1), False)


def _reflected(a: Any, tau: Any, x: Any, order: range, adjoint: bool) -> Any:
    """x after the reflections, from the left, in the given order."""
    m = shape_of(a)[-2]
    below = tril(a, -1)
    for i in order:
        unit = np.zeros((m, 1), a._d.dtype)
        unit[i] = 1
        v = below[..., i : i + 1] + fixed_like(unit, a)
        t = tau[..., i : i + 1]
        x = x - (v * unsqueeze(conj(t) if adjoint else t, -1)) @ (mh(v) @ x)
    return x


@with_out
def orgqr(input: Any, tau: Any) -> Any:
    """Q of the reflections that `geqrf` gives: `linalg.householder_product`.

    Args:
        input: matrices (.., m, n), m >= n, float or complex, of 32 bits or more.
        tau: tensor (.., k) of input's dtype, k <= n.

    Returns:
        Tensor (.., m, n).

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> a, tau = tg.geqrf(A)
        >>> tg.allclose(tg.orgqr(a, tau) @ a.triu(), A, atol=1e-5)
        True
    """
    return linalg_householder_product(input, tau)


@with_out
@with_grad_fn_name("OrmqrBackward0")
def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    """Q @ other (or other @ Q for left=False), for Q of the reflections that `geqrf` gives; Q^H for transpose.

    Args:
        input: matrices (.., m, n), float or complex, of 32 bits or more.
        tau: tensor (.., k) of input's dtype.
        other: tensor (.., m, p), or (.., p, m) for left=False.
        left: whether Q stands on the left, default True.
        transpose: whether Q^H stands in place of Q.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> A = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> a, tau = tg.geqrf(A)
        >>> tg.allclose(tg.ormqr(a, tau, a.triu()), A, atol=1e-5)
        True
    """
    a, t, x = matrices("torch.ormqr", input, "input"), tensor(tau), tensor(other)
    side = "-2" if left else "-1"
    if shape_of(x)[int(side)] < shape_of(t)[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if shape_of(t)[-1] != min(shape_of(x)[int(side)], shape_of(a)[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _check_reflections("torch.ormqr", a, t)
    if shape_of(x)[:-2] != shape_of(a)[:-2]:
        batch = list(shape_of(x)[:-2])
        raise RuntimeError(
            f"torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got {batch}"
        )
    if not left:  # X Q is (Q^H X^H)^H
        return mh(ormqr(a, t, mh(x), True, not transpose))
    steps = range(shape_of(t)[-1])
    return _reflected(a, t, x, steps if transpose else steps[::-1], transpose)


def _sketch(n: int, q: int, dtype: Any) -> Any:
    """Normal numbers; complex ones drawn as PyTorch does."""
    if dtype.kind == "f":
        return randn(n, q, dtype=dtypes.of(dtype))
    parts = randn(n, q, 2, dtype=dtypes.of(np.empty(0, dtype).real.dtype))
    return TABLE["view_as_complex"].call(parts) * math.sqrt(0.5)


def _range(a: Any, q: int, niter: int) -> Any:
    """An orthonormal basis of nearly the range of a (Halko, Martinsson and Tropp, 2009, algorithm 4.4)."""
    basis = linalg_qr(a @ _sketch(shape_of(a)[-1], q, a._d.dtype))[0]
    for _ in range(niter):
        basis = linalg_qr(mh(a) @ basis)[0]
        basis = linalg_qr(a @ basis)[0]
    return basis


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """(U, S, V) of nearly the q largest singular values of A (or of A - M), by random projection: A ~ U diag(S) V^H.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more.
        q: number of singular values, default 6.
        niter: number of subspace iterations, default 2.
        M: a matrix that broadcasts to A's shape.

    Returns:
        U (.., m, q), S (.., q) and V (.., n, q).

    Raises:
        ValueError: if q is larger than m or n.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> U, S, V = tg.svd_lowrank(tg.diag(tg.tensor([1.0, 5.0, 3.0])), q=2)
        >>> S.round(decimals=2)
        tensor([5., 3.])
    """
    a, q, niter = matrices("svd_lowrank", A), 6 if q is None else q, 2 if niter is None else niter
    a = a if M is None else a - broadcast_to(tensor(M), shape_of(a))
    m, n = shape_of(a)[-2:]
    _check_rank(q, m, n)
    tall = a if m >= n else mh(a)
    basis = _range(tall, q, niter)
    u, s, vh = linalg_svd(mh(basis) @ tall, False)
    u, v = basis @ u, mh(vh)
    return (u, s, v) if m >= n else (v, s, u)


def _check_rank(q: int, m: int, n: int) -> None:
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """`svd_lowrank` of A with its columns' means taken off: the principal directions are V's columns.

    Args:
        A: matrices (.., m, n), float or complex, of 32 bits or more: m samples of n variables.
        q: number of directions, default min(6, m, n).
        center: whether the means are taken off, default True.
        niter: number of subspace iterations, default 2.

    Returns:
        U (.., m, q), S (.., q) and V (.., n, q).

    Raises:
        ValueError: if q is larger than m or n, or niter negative.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> x = tg.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
        >>> U, S, V = tg.pca_lowrank(x, q=1)
        >>> (V[1] / V[0]).round(decimals=2)
        tensor([2.])
    """
    a = matrices("pca_lowrank", A)
    m, n = shape_of(a)[-2:]
    if q is None:
        q = min(6, m, n)
    _check_rank(q, m, n)
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(a - reduce.mean(a, -2, True) if center else a, q, niter)

"""Linear algebra on raw arrays, batched, over NumPy's LAPACK: what NumPy lacks, and its functions without its exceptions.

Where NumPy raises because one matrix of a batch is singular, the functions here give that matrix the infinities and nans
that LAPACK leaves behind, and whoever wants an error asks for the reason afterwards.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

BLOCK = 32  # columns that an LU factorisation eliminates before it updates the rest by one product


def mh(x: Any) -> Any:
    """Conjugate transpose."""
    return x.swapaxes(-1, -2).conj()


def set_diagonal(x: Any, value: Any) -> Any:
    """x with a value written on the diagonals of its matrices, in place."""
    i = np.arange(min(x.shape[-2:]))
    x[..., i, i] = value
    return x


def matrix_by_matrix(function: Callable[..., Any], arrays: Sequence[Any], otherwise: Callable[..., Any]) -> Any:
    """A function of matrices on each matrix of a batch; `otherwise` where NumPy raises."""
    batch = np.broadcast_shapes(*[a.shape[:-2] for a in arrays])
    wide = [np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in arrays]
    results = []
    for index in np.ndindex(*batch):
        own = [a[index] for a in wide]
        try:
            results.append(function(*own))
        except np.linalg.LinAlgError:
            results.append(otherwise(*own))
    if not isinstance(results[0], tuple):
        return np.stack(results).reshape(*batch, *results[0].shape)
    return tuple([np.stack(parts).reshape(*batch, *parts[0].shape) for parts in zip(*results, strict=True)])


def with_nan(function: Callable[..., Any], x: Any) -> Any:
    """A function of matrices; nan for those on which NumPy raises and for those that are not finite."""

    def otherwise(a: Any) -> Any:
        result = function(np.eye(*a.shape, dtype=a.dtype))
        parts = [np.full_like(r, np.nan) for r in (result if isinstance(result, tuple) else (result,))]
        return tuple(parts) if isinstance(result, tuple) else parts[0]

    bad = ~np.isfinite(x).all((-2, -1))
    given = np.where(bad[..., None, None], np.eye(*x.shape[-2:], dtype=x.dtype), x) if bad.any() else x
    try:
        result = function(given)
    except np.linalg.LinAlgError:
        result = matrix_by_matrix(function, [given], otherwise)
    result = tuple(result) if isinstance(result, tuple) else result
    for part in result if isinstance(result, tuple) else (result,):
        if bad.any():
            part[bad] = np.nan
    return result


# --------------------------------------------------------------------------------------------------------------- SciPy

WORTH = 16  # rows from which LAPACK through SciPy, called matrix by matrix, gains on NumPy


@functools.cache
def scipy_lapack() -> Any:
    """SciPy's LAPACK, which solves by given factors; None without SciPy."""
    try:
        return importlib.import_module("scipy.linalg.lapack")
    except ImportError:
        return None


def routines(a: Any, *names: str) -> Any:
    """LAPACK routines for an array's dtype; None if they are not there or gain nothing."""
    if a.shape[-1] < WORTH or a.shape[-2] < WORTH or not math.prod(a.shape) or scipy_lapack() is None:
        return None
    letter = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[a.dtype.str[1:]]
    return [getattr(scipy_lapack(), letter + name) for name in names]


class Factors:
    """LU factorisations of the transposes of square matrices, to solve by again: a x = b, or a^H x = b."""

    __slots__ = ("adjoint", "lus")

    def __init__(self, lus: list[tuple[Any, Any]], adjoint: bool = False) -> None:
        self.lus, self.adjoint = lus, adjoint

    def turned(self) -> Factors:
        return Factors(self.lus, not self.adjoint)

    def solve(self, a: Any, b: Any) -> Any:
        getrs = routines(self.lus[0][0], "getrs")[0]
        out = np.empty_like(b, order="C")
        given = b.conj() if self.adjoint else b
        rows = out.reshape(-1, *b.shape[-2:])
        for i, (x, (packed, pivots)) in enumerate(zip(given.reshape(rows.shape), self.lus, strict=True)):
            rows[i] = getrs(packed, pivots, x, 0 if self.adjoint else 1)[0]
        return np.conjugate(out, out) if self.adjoint else out


class Triangle:
    """What is known of a matrix that has one triangle: the other is not read, but has a derivative."""

    __slots__ = ("upper",)

    def __init__(self, upper: bool) -> None:
        self.upper = upper

    def turned(self) -> Triangle:
        return LOWER if self.upper else UPPER

    def solve(self, a: Any, b: Any) -> Any:
        return solve_triangular(a, b, self.upper, False)


LOWER, UPPER = Triangle(False), Triangle(True)


def factors(a: Any, b: Any) -> Factors | None:
    """Factors of regular matrices with which to solve a x = b and a^H x = b; None where they gain nothing."""
    found = routines(a, "getrf")
    if found is None or a.shape[:-2] != b.shape[:-2]:
        return None
    lus = []
    for x in a.reshape(-1, *a.shape[-2:]):
        packed, pivots, info = found[0](x.T)  # its order of memory is LAPACK's
        if info:
            return None
        lus.append((packed, pivots))
    return Factors(lus)


# ------------------------------------------------------------------------------------------------------------- solving


def solve(a: Any, b: Any, known: Factors | Triangle | None = None) -> Any:
    """x of a x = b; what divisions by zero leave where a is singular. `known` spares the factorisation."""
    if known is not None:
        return known.solve(a, b)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return matrix_by_matrix(np.linalg.solve, [a, b], _solve_singular)


def inverse(x: Any) -> Any:
    """x^-1; what divisions by zero leave where x is singular."""
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return matrix_by_matrix(np.linalg.inv, [x], lambda a: _solve_singular(a, np.eye(len(a), dtype=a.dtype)))


def _solve_singular(a: Any, b: Any) -> Any:
    packed, pivots = lu(a)
    y = solve_triangular(packed, np.take_along_axis(b, permutation(pivots, len(a))[:, None], 0), False, True)
    return solve_triangular(packed, y, True, False)


def solve_triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """x of a x = b for one triangle of a; of an upper triangle LAPACK's LU is the back substitution itself."""
    found = routines(a, "trtrs")
    if found is not None and a.shape[:-2] == b.shape[:-2]:
        out = np.empty_like(b)
        for i in np.ndindex(b.shape[:-2]):
            # of the transpose, which has the order of memory that LAPACK wants
            out[i], info = found[0](a[i].T, b[i], upper, 1, unit)
            if info:
                break
        else:
            return out
    if not upper:
        turned = solve_triangular(np.flip(a, (-2, -1)), np.flip(b, -2), True, unit)
        return np.ascontiguousarray(np.flip(turned, -2))
    a = np.triu(a)
    if unit:
        set_diagonal(a, 1)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return _substitute(a, b)


@np.errstate(all="ignore")
def _substitute(a: Any, b: Any) -> Any:
    n = a.shape[-1]
    x = np.array(np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), n, b.shape[-1])))
    for i in range(n - 1, -1, -1):
        rest = a[..., None, i, i + 1 :] @ x[..., i + 1 :, :]
        x[..., i, :] = (x[..., i, :] - rest[..., 0, :]) / a[..., i, i, None]
    return x


# ------------------------------------------------------------------------------------------------------ factorisations


def lu(x: Any) -> tuple[Any, Any]:
    """L and U packed in one matrix, and the row that each step exchanged (from 1): partial pivoting, in blocks.

    By LAPACK where SciPy is there.
    """
    *batch, m, n = x.shape
    k = min(m, n)
    found = routines(x, "getrf")
    if found is not None:
        packed, order = np.empty_like(x), np.empty((*batch, k), np.int32)
        for i in np.ndindex(*batch):
            packed[i], order[i], _ = found[0](x[i])
        return packed, order + 1
    a = np.array(x).reshape(math.prod(batch), m, n)
    pivots = np.zeros((len(a), k), np.int32)
    for start in range(0, k, BLOCK):
        stop = min(start + BLOCK, k)
        for j in range(start, stop):
            _eliminate(a, pivots, j, stop)
        right = a[:, start:stop, stop:]
        right[...] = solve_triangular(a[:, start:stop, start:stop], right, False, True)
        a[:, stop:, stop:] -= a[:, stop:, start:stop] @ right
    return a.reshape(x.shape), (pivots + 1).reshape(*batch, k)


@np.errstate(all="ignore")
def _eliminate(a: Any, pivots: Any, j: int, stop: int) -> None:
    """Step j: bring the largest element of column j up, and clear below it; columns from `stop` on wait for their block."""
    column = a[:, j:, j]
    rows = np.arange(len(a))
    size = np.abs(column) if a.dtype.kind == "f" else np.abs(column.real) + np.abs(column.imag)  # as LAPACK's izamax
    p = pivots[:, j] = j + size.argmax(-1)
    a[rows, p], a[:, j] = a[:, j].copy(), a[rows, p]
    pivot = a[:, j, j, None]
    a[:, j + 1 :, j] /= np.where(pivot == 0, 1, pivot)
    a[:, j + 1 :, j + 1 : stop] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 : stop]


def permutation(pivots: Any, m: int) -> Any:
    """The order of rows that a factorisation's exchanges lead to: (p x)[i] = x[order[i]]."""
    *batch, k = pivots.shape
    steps = pivots.reshape(math.prod(batch), k) - 1
    order = np.tile(np.arange(m), (len(steps), 1))
    rows = np.arange(len(steps))
    for j in range(k):
        p = steps[:, j]
        order[rows, p], order[:, j] = order[:, j].copy(), order[rows, p]
    return order.reshape(*batch, m)


def permutation_matrix(pivots: Any, m: int, dtype: Any) -> Any:
    """P of x = P L U."""
    return np.eye(m, dtype=dtype)[permutation(pivots, m)].swapaxes(-1, -2)


def first_zero_pivot(packed: Any) -> Any:
    """The number (from 1) of the first zero on the diagonal of U; 0 if there is none."""
    zero = np.diagonal(packed, 0, -2, -1) == 0
    return np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32) if zero.shape[-1] else _no_info(packed)


def _no_info(x: Any) -> Any:
    return np.zeros(x.shape[:-2], np.int32)


def cholesky(x: Any) -> Any:
    """Lower factor of the Hermitian matrices in the lower triangles; nan where they are not positive definite."""
    return with_nan(np.linalg.cholesky, x)


def first_bad_minor(x: Any) -> Any:
    """The order of the first leading minor that is not positive definite; 0 if all are."""

    def order(a: Any) -> Any:
        for n in range(1, len(a) + 1):
            if not np.isfinite(cholesky(a[:n, :n])).all():
                return np.full((1, 1), n, np.int32)
        return np.zeros((1, 1), np.int32)

    if not x.size:
        return _no_info(x)
    return matrix_by_matrix(order, [x], order)[..., 0, 0]


def pinv(xp: Any, x: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """Pseudo-inverse without the singular values at most max(atol, rtol * the largest)."""
    if hermitian:
        w, v = xp.with_nan(xp.linalg.eigh, x)
        return (v * _nonzero_inverse(xp, w, atol, rtol)[..., None, :]) @ mh(v)
    u, s, vh = xp.svd(x, False)
    return mh(vh) @ (_nonzero_inverse(xp, s, atol, rtol)[..., None] * mh(u))


def svd(x: Any, full: bool) -> Any:
    """The singular value decomposition, reduced or full; nan for matrices that are not finite."""
    return with_nan(lambda a: tuple(np.linalg.svd(a, full_matrices=full)), x)


def svdvals(x: Any) -> Any:
    """Singular values; nan for matrices that are not finite."""
    return with_nan(lambda a: np.linalg.svd(a, compute_uv=False), x)


def is_nonzero(xp: Any, s: Any, atol: Any, rtol: Any) -> Any:
    """Which singular values (or eigenvalues) count as not zero."""
    size = xp.abs(s)
    return size > xp.maximum(atol, rtol * size.max(-1, keepdims=True, initial=0)).astype(size.dtype)


def _nonzero_inverse(xp: Any, s: Any, atol: Any, rtol: Any) -> Any:
    there = is_nonzero(xp, s, atol, rtol)
    return xp.where(there, 1 / xp.where(there, s, 1), 0)


# --------------------------------------------------------------------------------------------------- matrix functions

# Coefficients of the [13/13] Pade approximant of exp, and the norm up to which it is exact to rounding in float64
# (Higham, The scaling and squaring method for the matrix exponential revisited, 2005).
PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
    670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
PADE_RADIUS = 5.371920351148152


Parts = list[Any]  # a matrix x + sum of t_i e_i, .. with t_i^2 = 0: the factor of each product of t's, by bit mask


def _times(x: Parts, y: Parts) -> Parts:
    r: Parts = [None] * len(x)
    for i, p in enumerate(x):
        for j, q in enumerate(y):
            if p is not None and q is not None and not i & j:
                r[i | j] = p @ q if r[i | j] is None else r[i | j] + p @ q
    return r


def _sum(*terms: tuple[Any, Parts]) -> Parts:
    """Linear combination: pairs of a factor and a matrix."""
    columns = zip(*[[None if p is None else c * p for p in x] for c, x in terms], strict=True)
    return [functools.reduce(lambda p, q: q if p is None else p if q is None else p + q, column) for column in columns]


def _quotient(x: Parts, y: Parts) -> Parts:
    """x^-1 y, part by part."""
    inv = inverse(x[0])
    r: Parts = [None] * len(x)
    for i, p in enumerate(y):
        for j in range(1, i + 1):
            if j & i == j and x[j] is not None and r[i ^ j] is not None:
                p = -x[j] @ r[i ^ j] if p is None else p - x[j] @ r[i ^ j]
        r[i] = None if p is None else inv @ p
    return r


@np.errstate(all="ignore")
def matrix_exp(xs: Sequence[Any]) -> Any:
    """Exponential of xs[0], differentiated in the directions xs[1:], one after the other.

    The Pade approximant of the matrix halved s times, squared s times, in arithmetic with t_i^2 = 0; in double precision,
    since the approximant's denominator is ill-conditioned for float32.
    """
    x, *directions = [a.astype(np.result_type(a, np.float64)) for a in xs]
    if not x.size:
        return xs[0].copy()
    norm = np.abs(x).sum(-2).max(-1)
    halvings = np.ceil(np.log2(np.maximum(np.where(np.isfinite(norm), norm, 0) / PADE_RADIUS, 1)))[..., None, None]
    scale = np.exp2(-halvings)
    a: Parts = [None] * 2 ** len(directions)
    a[0] = x * scale
    for k, e in enumerate(directions):
        a[2**k] = e * scale
    one: Parts = [np.eye(x.shape[-1], dtype=x.dtype), *[None] * (len(a) - 1)]
    a2 = _times(a, a)
    a4 = _times(a2, a2)
    a6 = _times(a4, a2)
    c = [b / PADE[0] for b in PADE]
    high, low = _sum((c[13], a6), (c[11], a4), (c[9], a2)), _sum((c[7], a6), (c[5], a4), (c[3], a2), (c[1], one))
    odd = _times(a, _sum((1, _times(a6, high)), (1, low)))
    high, low = _sum((c[12], a6), (c[10], a4), (c[8], a2)), _sum((c[6], a6), (c[4], a4), (c[2], a2), (c[0], one))
    even = _sum((1, _times(a6, high)), (1, low))
    r = _quotient(_sum((1, even), (-1, odd)), _sum((1, even), (1, odd)))
    for i in range(int(halvings.max())):
        r = [np.where(halvings > i, p, q) for p, q in zip(_times(r, r), r, strict=True)]
    return r[-1].astype(xs[0].dtype)


def cofactor(xp: Any, xs: Sequence[Any]) -> Any:
    """Cofactor matrix of xs[0] (the derivative of its determinant), differentiated in the directions xs[1:].

    With k directions the result M has <M, E> = D^(k+1) det(A)[E1, .., Ek, E]. For A = U S V^H that is a sum over the
    permutations of k + 1 distinct positions, each weighted by the product of all other singular values: no division, so that
    it is exact at any rank.
    """
    a, *directions = xs
    if len(directions) > 1 or not a.size:
        return _cofactor(xp, a, directions)
    r, bad = _regular_cofactor(xp, a, directions)
    if bad.any():
        r[bad] = _cofactor(xp, a[bad], [e[bad] for e in directions])
    return r


def _cofactor(xp: Any, a: Any, directions: Sequence[Any]) -> Any:
    u, s, vh = xp.svd(a, False)
    phase = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    turned = [mh(u) @ e @ mh(vh) for e in directions]
    k = len(turned)
    weights = xp.products_without(s, k + 1)
    positions = "abcdefghijklmnopqrstuvwxyz"[: k + 1]
    total = xp.zeros_like(a)
    for order in itertools.permutations(range(k + 1)):
        even = sum(p > q for p, q in itertools.combinations(order, 2)) % 2 == 0
        terms = [f"...{positions[i]}{positions[order[i]]}" for i in range(k)]
        fixed = order[k] == k
        output = positions[k] if fixed else positions[k] + positions[order[k]]
        part = xp.einsum(f"{','.join(['...' + positions, *terms])}->...{output}", weights, *turned, optimize=k > 1)
        part = xp.where(np.eye(a.shape[-1], dtype=bool), part[..., None], 0) if fixed else part
        total = total + (part if even else -part)
    return phase * (u.conj() @ total @ vh.conj())


@np.errstate(all="ignore")
def _regular_cofactor(xp: Any, a: Any, directions: Sequence[Any]) -> tuple[Any, Any]:
    """The same for at most one direction by the inverse, and where a matrix is too near a singular one for that."""
    inv = xp.inverse(a)
    condition = xp.abs(a).sum(-1).max(-1) * xp.abs(inv).sum(-1).max(-1)
    det, h = xp.linalg.det(a)[..., None, None], inv.swapaxes(-1, -2)
    r = det * h
    if directions:
        e = directions[0]
        r = xp.trace(inv @ e, axis1=-2, axis2=-1)[..., None, None] * r - det * (h @ e.swapaxes(-1, -2) @ h)
    return r, ~(condition < np.finfo(a.dtype).eps ** -0.5)


def products_without(s: Any, k: int) -> Any:
    """p[.., i1, .., ik]: the product of all elements of s but those at k distinct positions; 0 where positions coincide."""
    n = s.shape[-1]
    between = np.ones((*s.shape[:-1], n + 1, n + 1), s.dtype)  # [a, b]: the product of s[a:b]
    for a in range(n):
        between[..., a, a + 1 :] = np.multiply.accumulate(s[..., a:], axis=-1)
    positions = np.sort(np.indices((n,) * k), axis=0)
    result = between[..., 0, positions[0]]
    for low, high in itertools.pairwise(positions):
        result = result * between[..., low + 1, high]
    return np.where((np.diff(positions, axis=0) > 0).all(0), result * between[..., positions[-1] + 1, n], 0).astype(s.dtype)


# ------------------------------------------------------------------------------------------- quotients of the spectrum


@np.errstate(all="ignore")
def inverse_gaps(xp: Any, w: Any, numerator: Any, rest: Any, gw: Any, sign: float, turns: bool) -> Any:
    """1 / (w_j + sign * w_i), by which the rules of eigh and svd multiply a numerator; see `table.decompose` on gauges.

    Where the gap is 0 to rounding: 0 if the cotangents show that the loss does not depend on the choice of vectors there
    nor on how the values part, else nan.

    Args:
        w: eigenvalues or singular values.
        numerator, rest: antisymmetric and symmetric part of the cotangent in the basis of the vectors.
        gw: cotangent of w.
        sign: -1 or 1.
        turns: the numerator is that of a tangent of the vectors, which has no limit there.
    """
    gap = w[..., None, :] + sign * w[..., :, None]
    if not gap.size:
        return gap
    rounding = 8 * math.sqrt(w.shape[-1]) * np.finfo(w.dtype).eps
    dims = (-2, -1)
    scale = xp.abs(w).max(-1)[..., None, None]
    size = xp.maximum(xp.abs(numerator).max(dims), xp.abs(rest).max(dims))[..., None, None]
    slope = xp.abs(gw).max(-1)[..., None, None]
    slope = xp.where(scale > 0, xp.maximum(slope, size / scale), slope)
    own = xp.abs(xp.diagonal(rest, 0, -2, -1))
    larger = xp.maximum(xp.abs(gw)[..., None, :], xp.abs(gw)[..., :, None])
    gauge_free = xp.abs(numerator) <= rounding * size
    level = xp.abs(gw[..., None, :] - gw[..., :, None]) <= rounding * slope
    flat = larger <= rounding * slope
    uncoupled = xp.abs(rest) <= rounding * size
    used = own[..., None, :] + own[..., :, None] > rounding * size
    near = xp.abs(gap) <= rounding * scale
    known = gauge_free & level & ((flat & uncoupled) | (used & (flat | uncoupled))) | (size == 0)
    r = xp.where(near & known, 0, xp.where(near & (gauge_free | (gap == 0) | turns), np.nan, 1 / gap)).astype(w.dtype)
    return xp.where(np.eye(w.shape[-1], dtype=bool), 0, r) if sign < 0 else r


@np.errstate(all="ignore")
def inverse_sizes(xp: Any, s: Any, x: Any) -> Any:
    """1 / s_j, by which the rule of svd multiplies the columns of x; where s_j is 0 to rounding, 0 if the column is, too."""
    if not x.size:
        return xp.zeros_like(s)
    rounding = 8 * math.sqrt(max(x.shape[-2:])) * np.finfo(s.dtype).eps
    column = xp.abs(x).max(-2)
    empty = column <= rounding * column.max(-1, keepdims=True)
    near = s <= rounding * s.max(-1, keepdims=True)
    return xp.where(near & empty, 0, xp.where(s == 0, np.nan, 1 / s)).astype(s.dtype)

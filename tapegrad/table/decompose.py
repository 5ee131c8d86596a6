"""Factorisations of matrices: cholesky, qr, lu, eigh, eig, svd.

Signs, phases and the basis of an eigenspace are a choice that LAPACK makes (a gauge). A derivative exists where the loss
does not depend on it. Vectors contribute (antisymmetric part of V^H gV)_ij / (w_j - w_i); of repeated values the numerator
of such a loss is 0 as well. There the rules take the quotient as 0 if the cotangents show that it is: vectors are used only
through the projector on their space (the values' cotangents are 0), or the loss depends on the values alone, or it does
not couple the two vectors. Otherwise the quotient depends on what the cotangents do not tell (a function f(A) made of
U f(w) U^H needs f'(w) times the coupling), and the gradient is nan, as it is for a loss that depends on the gauge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import lapack
from ..kernels.decompose import (
    EIG_PHASE,
    EIGH_PHASE,
    SVD_PHASE,
    _eig,
    _eigh_forward,
    _eigvals_forward,
    _hermitian_part,
    _largest,
    _phase_free,
    _qr_forward,
)  # fmt: skip
from . import batching
from .define import define
from .samples import decompose as samples


def mh_of(xp: Any, x: Any) -> Any:
    """adjoint(x), of an operand of a rule."""
    return xp.conj(xp.mT(x))


def row(xp: Any, x: Any) -> Any:
    """Vectors as matrices of one row."""
    return xp.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def on_diagonal(xp: Any, x: Any) -> Any:
    """Vectors on the diagonals of matrices."""
    r, n = len(x.shape), x.shape[-1]
    return xp.diagonal_embed(x, (*x.shape, n), 0, r - 1, r)


def diagonal_of(xp: Any, x: Any) -> Any:
    r = len(x.shape)
    return xp.diagonal(x, 0, r - 2, r - 1)


# --------------------------------------------------------------------------------------------------- parts of the rules


def _d_gaps(xp: Any, g: Any, ans: Any, w: Any, numerator: Any, rest: Any, gw: Any, sign: float, turns: bool) -> Any:
    t = -g * xp.conj(ans * ans)
    return xp.sum(t, (len(t.shape) - 2,), False) + sign * xp.sum(t, (len(t.shape) - 1,), False)


def _j_gaps(xp: Any, ts: Any, ans: Any, *args: Any) -> Any:
    t, sign = row(xp, ts[0]), args[-2]
    return -(ans * ans) * (t + sign * xp.mT(t))


define(
    "inverse_gaps", "general", lapack.inverse_gaps, (_d_gaps, None, None, None),
    saves=("ans", "", "", ""), arity=4, singular=True,
    jvp=_j_gaps, batch=batching.last, samples=samples.spectra,
)  # fmt: skip
define(
    "inverse_sizes", "general", lapack.inverse_sizes, (lambda xp, g, ans, s, x: -g * ans * ans, None),
    saves=("ans", ""), arity=2,
    singular=True, batch=batching.last, jvp=lambda xp, ts, ans, s, x: -(ans * ans) * ts[0], samples=samples.sizes,
)  # fmt: skip


# a cotangent of vectors, of a loss that does not depend on their phases: k holds it in the vectors' own basis
define(
    "phase_free", "linear", _phase_free, (lambda xp, g, ans, x, k, text: g, None),
    jax="linalg.phase_free", arity=2,
    batch=batching.last, samples=samples.PHASE_FREE,
)  # fmt: skip

# ------------------------------------------------------------------------------------------------------------- records


def _mirrored(xp: Any, k: Any, lower: bool) -> Any:
    """A strict triangle, its conjugate transpose, and the real part of the diagonal."""
    t = xp.tril(k, -1) if lower else xp.triu(k, 1)
    r = len(k.shape)
    return t + mh_of(xp, t) + on_diagonal(xp, xp.diagonal((k + mh_of(xp, k)) * 0.5, 0, r - 2, r - 1))


def divided_by_upper(xp: Any, x: Any, r: Any, unit: bool = False) -> Any:
    """x R^-H."""
    return mh_of(xp, xp.solve_triangular([r, mh_of(xp, x)], True, unit))


def _d_cholesky(xp: Any, g: Any, ans: Any, a: Any) -> Any:
    h = mh_of(xp, ans)
    left = xp.solve_triangular([h, _mirrored(xp, xp.matmul(h, xp.tril(g, 0)), True)], True, False)
    return divided_by_upper(xp, left, h) * 0.5


def _d_qr(xp: Any, gs: Any, ans: Any, a: Any, mode: str) -> Any:
    if mode == "complete":
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    gq, gr = gs
    q, r = ans
    if gr is None:
        k = -xp.matmul(mh_of(xp, q), gq)
    else:
        k = xp.matmul(gr, mh_of(xp, r))
        k = k if gq is None else k - xp.matmul(mh_of(xp, q), gq)
    inner = xp.matmul(q, _mirrored(xp, k, False))
    return divided_by_upper(xp, inner if gq is None else gq + inner, r)


def _d_lu(xp: Any, gs: Any, ans: Any, a: Any) -> Any:
    g, (packed, pivots) = gs[0], ans
    m, n = packed.shape[-2:]
    k = min(m, n)

    def block(x: Any, below: bool, right: bool) -> Any:
        return xp.index(x, (Ellipsis, slice(k, None) if below else slice(k), slice(k, None) if right else slice(k)))

    own, gown = block(packed, False, False), block(g, False, False)
    gl, gu = xp.tril(gown, -1), xp.triu(gown, 0)
    from_l = xp.matmul(mh_of(xp, xp.tril(own, -1)), gl) + gl
    from_u = xp.matmul(gu, mh_of(xp, xp.triu(own, 0)))
    if n > k:
        from_l = from_l - xp.matmul(block(g, False, True), mh_of(xp, block(packed, False, True)))
    if m > k:
        from_u = from_u - xp.matmul(mh_of(xp, block(packed, True, False)), block(g, True, False))
    top = divided_by_upper(xp, xp.tril(from_l, -1) + xp.triu(from_u, 0), own)
    if n > k:
        top = xp.cat([top, block(g, False, True)], len(top.shape) - 1)
    top = xp.solve_triangular([mh_of(xp, own), top], True, True)
    if m > k:
        top = xp.cat([top, divided_by_upper(xp, block(g, True, False), own)], len(top.shape) - 2)
    return xp.matmul(xp.lu_permutation([packed, pivots]), top)


def _d_eigh(xp: Any, gs: Any, ans: Any, a: Any, upper: bool) -> Any:
    gw, gv = gs
    w, v = ans
    if gv is None:
        return xp.spectral(w, v, gw)
    k = xp.matmul(mh_of(xp, v), gv)
    k = xp.phase_free(k, k, EIGH_PHASE)
    h, slopes, values = mh_of(xp, k), w * 0.0, None
    if gw is not None:
        k, slopes, values = xp.parted(w, k, gv, gv, gw, True)  # see `table.spectrum`
        h = mh_of(xp, k)
    inner = (k - h) * xp.inverse_gaps(w, k - h, k + h, slopes, -1.0, False) * 0.5
    inner = xp.matmul(v, inner if values is None else inner + values)
    return xp.matmul(inner, mh_of(xp, v))


def _spectral(xp: Any, inner: Any, v: Any, real: bool) -> Any:
    """V^-H inner V^H."""
    h = mh_of(xp, v)
    return _real_part(xp, xp.solve([h, xp.matmul(inner, h)], None), real)


def _real_part(xp: Any, x: Any, real: bool) -> Any:
    return xp.real(x) if real else x


def _d_eig(xp: Any, gs: Any, ans: Any, a: Any, real: bool, checked: bool) -> Any:
    gw, gv = gs
    w, v = ans
    if gv is None:
        return _real_part(xp, xp.similar(w, v, gw), real)
    h, slopes, values = mh_of(xp, v), w * 0.0, None
    k = xp.matmul(h, gv)
    if gw is not None:
        k, slopes, values = xp.parted(w, k, gv, gv, gw, False)
    k = xp.phase_free(k, k, EIG_PHASE) if checked else k
    own = row(xp, diagonal_of(xp, k))
    # LAPACK scales vectors to norm 1 and their largest element to a real number
    turned = xp.safe_div(xp.to_complex(xp.largest(v)), v) * xp.to_complex(xp.imag(own))
    k = k - xp.matmul(h, turned * 1j + v * xp.to_complex(xp.real(own)))
    inner = k * xp.conj(xp.inverse_gaps(w, k, k * 0.0, slopes, -1.0, False))
    return _spectral(xp, inner if values is None else inner + values, v, real)


def _d_eigvalsh(xp: Any, g: Any, ans: Any, a: Any) -> Any:
    w, v = xp.eigh(a, False)
    return xp.spectral(w, v, g)


def _d_eigvals(xp: Any, g: Any, ans: Any, a: Any, real: bool) -> Any:
    w, v = xp.eig(a, real, False)
    return _real_part(xp, xp.similar(w, v, g), real)


def _d_svdvals(xp: Any, g: Any, ans: Any, a: Any) -> Any:
    u, s, vh = xp.svd(a, False)
    return xp.singular(s, u, vh, g)


def _beyond(xp: Any, g: Any, u: Any, k: int, own: Any) -> Any:
    """What a cotangent of singular vectors holds outside their space: by the other columns of u, where it has them."""
    if u.shape[-1] == k:
        return g - xp.matmul(u, own)
    first, others = (Ellipsis, slice(k)), (Ellipsis, slice(k, None))
    coupling = xp.matmul(mh_of(xp, xp.index(u, others)), xp.index(g, first))
    back = xp.matmul(mh_of(xp, xp.index(u, first)), xp.index(g, others))
    return xp.matmul(xp.index(u, others), coupling - mh_of(xp, back))


def _d_svd(xp: Any, gs: Any, ans: Any, a: Any, full: bool) -> Any:
    (gu, gw, gvh), (u, s, vh) = gs, ans
    k, v = s.shape[-1], mh_of(xp, vh)
    first = (Ellipsis, slice(k))
    u1 = xp.index(u, first) if u.shape[-1] > k else u
    v1 = xp.index(v, first) if v.shape[-1] > k else v
    if gu is None and gvh is None:
        return xp.singular(s, u1, mh_of(xp, v1), gw)
    zero = (u if gu is None else v) * 0.0 if gu is None or gvh is None else None
    gu = zero if gu is None else gu
    gv = zero if gvh is None else mh_of(xp, gvh)
    ku = xp.matmul(mh_of(xp, u1), xp.index(gu, first))
    kv = xp.matmul(mh_of(xp, v1), xp.index(gv, first))
    both = xp.phase_free(ku + kv, ku + kv, SVD_PHASE)
    slopes, values = s * 0.0, None
    if gw is not None:
        given = xp.index(gu, first), xp.index(gv, first)
        both, slopes, values = xp.parted(s, both, *given, xp.resolved(s, both, *given, gw), True)
    inner = 0.0
    for t, sign in ((both, -1.0), (ku - kv, 1.0)):
        h = mh_of(xp, t)
        inner = inner + (t - h) * xp.inverse_gaps(s, t - h, t + h, slopes, sign, False)
    inner = inner * 0.5 if values is None else inner * 0.5 + values
    left = xp.matmul(u1, inner)
    if u.shape[-2] > k:
        beyond = _beyond(xp, gu, u, k, ku)
        left = left + beyond * row(xp, xp.inverse_sizes(s, beyond))
    t = xp.matmul(left, mh_of(xp, v1))
    if v.shape[-2] > k:
        beyond = _beyond(xp, gv, v, k, kv)
        t = t + xp.matmul(u1, mh_of(xp, beyond * row(xp, xp.inverse_sizes(s, beyond))))
    return t


# ------------------------------------------------------------------------------------------------- derivatives forwards


def _j_cholesky(xp: Any, ts: Any, ans: Any, a: Any) -> Any:
    t = (ts[0] + mh_of(xp, ts[0])) * 0.5
    half = mh_of(xp, xp.solve_triangular([ans, t], False, False))
    k = xp.tril(xp.solve_triangular([ans, half], False, False), 0)
    return xp.matmul(ans, k - on_diagonal(xp, diagonal_of(xp, k)) * 0.5)


def _j_qr(xp: Any, ts: Any, ans: Any, a: Any, mode: str) -> list[Any]:
    if mode == "complete":
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    q, r = ans
    t = mh_of(xp, xp.solve_triangular([mh_of(xp, r), mh_of(xp, ts[0])], False, False))  # ts[0] R^-1
    k = xp.matmul(mh_of(xp, q), t)
    below = xp.tril(k, -1)
    own = diagonal_of(xp, k)
    turn = below - mh_of(xp, below) + on_diagonal(xp, (own - xp.conj(own)) * 0.5)  # R keeps a real diagonal
    return [t + xp.matmul(q, turn - k), xp.matmul(k - turn, r)]


def _columns_product(xp: Any, u: Any, x: Any) -> Any:
    """u_i^H x_i for the columns."""
    return xp.sum(xp.conj(u) * x, (len(u.shape) - 2,), False)


def _j_eigh(xp: Any, ts: Any, ans: Any, a: Any, upper: bool) -> list[Any]:
    w, v = ans
    k = xp.matmul(mh_of(xp, v), xp.matmul((ts[0] + mh_of(xp, ts[0])) * 0.5, v))
    gaps = xp.inverse_gaps(w, k, k * 0.0, w * 0.0, -1.0, True)
    return [xp.real(diagonal_of(xp, k)), xp.matmul(v, k * gaps)]


def _j_eigvalsh(xp: Any, ts: Any, ans: Any, a: Any) -> Any:
    v = xp.eigh(a, False)[1]
    return xp.real(_columns_product(xp, v, xp.matmul((ts[0] + mh_of(xp, ts[0])) * 0.5, v)))


def _j_eigvals(xp: Any, ts: Any, ans: Any, a: Any, real: bool) -> Any:
    v = xp.eig(a, real, False)[1]
    t = xp.to_complex(ts[0]) if real else ts[0]
    return diagonal_of(xp, xp.solve([v, xp.matmul(t, v)], None))


def _j_eig(xp: Any, ts: Any, ans: Any, a: Any, real: bool, checked: bool) -> list[Any]:
    w, v = ans
    k = xp.solve([v, xp.matmul(xp.to_complex(ts[0]) if real else ts[0], v)], None)
    t = xp.matmul(v, k * xp.inverse_gaps(w, k, k * 0.0, w * 0.0, -1.0, True))
    # what keeps the norm 1 and the largest element real
    length = xp.to_complex(xp.real(_columns_product(xp, v, t)))
    largest = xp.sum(xp.to_complex(xp.largest(v)) * xp.safe_div(t, v), (len(v.shape) - 2,), False)
    return [diagonal_of(xp, k), t - v * row(xp, length + xp.to_complex(xp.imag(largest)) * 1j)]


def _j_svd(xp: Any, ts: Any, ans: Any, a: Any, full: bool) -> list[Any]:
    (u, s, vh), t = ans, ts[0]
    k, v = s.shape[-1], mh_of(xp, vh)
    first, others = (Ellipsis, slice(k)), (Ellipsis, slice(k, None))
    u1, v1 = xp.index(u, first), xp.index(v, first)
    tv, tu = xp.matmul(t, v1), xp.matmul(mh_of(xp, t), u1)
    own = xp.matmul(mh_of(xp, u1), tv)
    both, apart = own + mh_of(xp, own), own - mh_of(xp, own)
    both = both * xp.inverse_gaps(s, both, both * 0.0, s * 0.0, -1.0, True) * 0.5
    apart = apart * xp.inverse_gaps(s, apart, apart * 0.0, s * 0.0, 1.0, True) * 0.5
    turned = []
    for x, x1, inner, push in (
        (u, u1, both + apart, tv - xp.matmul(u1, own)),
        (v, v1, both - apart, tu - xp.matmul(v1, mh_of(xp, own))),
    ):
        r = xp.matmul(x1, inner)
        if x.shape[-2] > k:
            beyond = push * row(xp, xp.inverse_sizes(s, push))
            r = r + beyond
            if x.shape[-1] > k:
                rest = xp.index(x, others)
                r = xp.cat([r, -xp.matmul(x1, xp.matmul(mh_of(xp, beyond), rest))], len(x.shape) - 1)
        turned.append(r)
    return [turned[0], xp.real(diagonal_of(xp, own)), mh_of(xp, turned[1])]


def _j_svdvals(xp: Any, ts: Any, ans: Any, a: Any) -> Any:
    u, _, vh = xp.svd(a, False)
    return xp.real(_columns_product(xp, u, xp.matmul(ts[0], mh_of(xp, vh))))


_cholesky = define(
    "cholesky", "general", lambda a: lapack.cholesky(_hermitian_part(a)), (_d_cholesky,), jax="linalg.cholesky", saves="ans",
    singular=True, zero_blocks="matrices", display="LinalgCholeskyEx", jvp=_j_cholesky,
    batch=batching.leading, samples=samples.definite,
)  # fmt: skip
_qr = define(
    "qr", "general", _qr_forward, (_d_qr,),
    jax="linalg.qr", saves="ans", outputs=2,
    singular=True, zero_blocks="matrices", display="LinalgQr", jvp=_j_qr,
    batch=batching.leading, samples=samples.TALL,
)  # fmt: skip
_lu = define(
    "lu_factor", "general", lapack.lu, (_d_lu,), jax="linalg.lu", saves="ans", outputs=2, differentiable=1,
    singular=True, zero_blocks="matrices", display="LinalgLuFactorEx", batch=batching.leading, samples=samples.ANY_SHAPE,
)  # fmt: skip
define(
    "lu_permutation", "constant",
    lambda xs: lapack.permutation_matrix(xs[1], xs[0].shape[-2], xs[0].dtype), jax="linalg.lu_permutation", arity=-1,
    batch=batching.last, samples=samples.LU_PERMUTATION,
)  # fmt: skip
_eigh = define(
    "eigh", "general", _eigh_forward, (_d_eigh,), jax="linalg.hermitian_eigh", saves="ans", outputs=2,
    singular=True, zero_blocks="matrices", display="LinalgEigh",
    jvp=_j_eigh, batch=batching.leading, samples=samples.with_triangle,
)  # fmt: skip
define("largest", "constant", _largest, jax="linalg.largest", batch=batching.leading, samples=samples.LARGEST)
_eig_op = define(
    "eig", "general", _eig, (_d_eig,), jax="host", saves="ans", outputs=2,
    singular=True, zero_blocks="matrices",
    display="LinalgEig", jvp=_j_eig, batch=batching.leading, samples=samples.EIG,
)  # fmt: skip
_svd_op = define(
    "svd", "general", lapack.svd, (_d_svd,), jax="linalg.svd", saves="ans", outputs=3,
    singular=True, zero_blocks="matrices",
    display="LinalgSvd", jvp=_j_svd, batch=batching.leading, samples=samples.DECOMPOSED,
)  # fmt: skip

_eigvalsh = define(
    "eigvalsh", "general", lambda a: lapack.with_nan(np.linalg.eigvalsh, _hermitian_part(a)), (_d_eigvalsh,),
    jax="linalg.eigvalsh", saves="a",
    singular=True, zero_blocks="matrices", display="LinalgEigh", jvp=_j_eigvalsh, batch=batching.leading,
    samples=samples.symmetric,
)  # fmt: skip
_eigvals = define(
    "eigvals", "general", _eigvals_forward, (_d_eigvals,), saves="a",
    singular=True, zero_blocks="matrices", display="LinalgEig", jvp=_j_eigvals, batch=batching.leading,
    samples=samples.EIGVALS,
)  # fmt: skip
_svdvals = define(
    "svdvals", "general", lapack.svdvals, (_d_svdvals,), jax="linalg.svdvals", saves="a",
    singular=True, zero_blocks="matrices", display="LinalgSvd", jvp=_j_svdvals, batch=batching.leading,
    samples=samples.ANY_SHAPE,
)  # fmt: skip

"""Factorisations of matrices: cholesky, qr, lu, eigh, eig, svd.

Signs, phases and the basis of an eigenspace are a choice that LAPACK makes (a gauge). A derivative exists where the loss
does not depend on it. Vectors contribute (antisymmetric part of V^H gV)_ij / (w_j - w_i); of repeated values the numerator
of such a loss is 0 as well. There the rules take the quotient as 0 if the cotangents show that it is: vectors are used only
through the projector on their space (the values' cotangents are 0), or the loss depends on the values alone, or it does
not couple the two vectors. Otherwise the quotient depends on what the cotangents do not tell (a function f(A) made of
U f(w) U^H needs f'(w) times the coupling), and the gradient is nan, as it is for a loss that depends on the gauge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import errors
from ..arrays import lapack
from ..arrays.devices import host, values_of
from ..core.alias import slot_of
from ..core.op import TABLE
from ..core.record import running_trace
from ..core.rules import fixed_like
from ..core.state import is_recording
from ..core.trace import reads
from . import batching, casting
from .define import define
from .elementwise import conj
from .operands import tensor
from .results import result
from .samples import Sample, cases, complex_uniform, joined, of_values, uniform
from .shape import shape_of, transpose, tril, triu, with_out

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


def mh_of(xp: Any, x: Any) -> Any:
    """The same in a rule."""
    return xp.conj(xp.mT(x))


def row(xp: Any, x: Any) -> Any:
    """Vectors as matrices of one row."""
    return xp.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def on_diagonal(xp: Any, x: Any) -> Any:
    """Vectors on the diagonals of matrices."""
    r, n = len(x.shape), x.shape[-1]
    return xp.diagonal_embed(x, (*x.shape, n), 0, r - 1, r)


def hermitian(a: Any, lower: bool) -> Any:
    """The Hermitian matrix in a triangle; its gradient is spread over both triangles, as PyTorch's."""
    raw = values_of(a)
    if running_trace() is None and np.array_equal(raw, lapack.mh(raw)):
        return a
    part = tril(a) if lower else triu(a)
    own = part.detach()
    mirrored = own + mh(tril(own, -1) if lower else triu(own, 1))
    half = (a + mh(a)) * 0.5
    return half + (mirrored - half).detach()


def _hermitian_part(x: Any) -> Any:
    return (x + lapack.mh(x)) * x.real.dtype.type(0.5)


def infos_of(a: Any, fine: bool, find: Callable[[], Any]) -> Any:
    """An info for each matrix: 0 where all are fine."""
    return np.zeros(shape_of(a)[:-2], np.int32) if fine else find()


def info_of(infos: Any, a: Any, zero_pivot: Callable[[], Any]) -> Any:
    """The infos of matrices as a tensor; while a function is traced, that of a program which finds a zero pivot itself."""
    return fixed_like(np.asarray(infos, np.int32), a) if running_trace() is None else zero_pivot()


def first_zero_pivot(packed: Any) -> Any:
    """The place, from 1 on, of the first 0 on the diagonals of LU factors; 0 if there is none."""
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


# --------------------------------------------------------------------------------------------------- parts of the rules


def _d_gaps(xp: Any, g: Any, ans: Any, w: Any, numerator: Any, rest: Any, gw: Any, sign: float) -> Any:
    t = -g * xp.conj(ans * ans)
    return xp.sum(t, (len(t.shape) - 2,), False) + sign * xp.sum(t, (len(t.shape) - 1,), False)


def _j_gaps(xp: Any, ts: Any, ans: Any, *args: Any) -> Any:
    t, sign = row(xp, ts[0]), args[-1]
    return -(ans * ans) * (t + sign * xp.mT(t))


def _spectra() -> Iterator[Sample]:
    w, k = uniform((3,), 0.5, 2.0), uniform((3, 3))
    yield Sample((w, k - k.T, k + k.T, uniform((3,), seed=2)), (-1.0,))
    yield Sample((w, k - k.T, k + k.T, uniform((3,), seed=2)), (1.0,))
    yield Sample((uniform((2, 2)), uniform((2, 2, 2)), uniform((2, 2, 2), seed=1), uniform((2, 2), seed=2)), (-1.0,))
    yield Sample(
        (complex_uniform((3,)), complex_uniform((3, 3)), complex_uniform((3, 3), 1), complex_uniform((3,), 2)), (-1.0,)
    )


def _sizes() -> Iterator[Sample]:
    yield Sample((uniform((3,), 0.5, 2.0), uniform((4, 3))))
    yield Sample((uniform((2, 2), 0.5, 2.0), complex_uniform((2, 3, 2))))


define(
    "inverse_gaps", "general", lapack.inverse_gaps, (_d_gaps, None, None, None), arity=4, params=("sign",), singular=True,
    jvp=_j_gaps, batch=batching.last, samples=_spectra,
)  # fmt: skip
define(
    "inverse_sizes", "general", lapack.inverse_sizes, (lambda xp, g, ans, s, x: -g * ans * ans, None), arity=2,
    singular=True, batch=batching.last, jvp=lambda xp, ts, ans, s, x: -(ans * ans) * ts[0], samples=_sizes,
)  # fmt: skip


def _phase_free(g: Any, k: Any, text: str) -> Any:
    if k.dtype.kind == "c" and not np.allclose(np.diagonal(k, 0, -2, -1).imag, 0, rtol=1e-2, atol=1e-2, equal_nan=True):
        raise RuntimeError(text)
    return g


PHASE = (
    "{} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function depends on this "
    "{} ill-defined."
)
EIGH_PHASE = PHASE.format("linalg_eigh_backward: The eigenvectors", "quantity, so it is")
EIG_PHASE = PHASE.format("linalg_eig_backward: The eigenvectors", "quantity, so it is")
SVD_PHASE = PHASE.format("svd_backward: The singular vectors", "phase term, making it")

# a cotangent of vectors, of a loss that does not depend on their phases: k holds it in the vectors' own basis
define(
    "phase_free", "linear", _phase_free, (lambda xp, g, ans, x, k, text: g, None), arity=2, params=("text",),
    batch=batching.last, samples=cases(((2, 2), (2, 2), (SVD_PHASE,))),
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


def _qr_forward(a: Any, mode: str) -> tuple[Any, Any]:
    return tuple(np.linalg.qr(a, mode=mode))  # type: ignore[call-overload]


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


def _eigh_forward(a: Any, upper: bool) -> tuple[Any, ...]:
    # a is Hermitian, but the signs of LAPACK's vectors are those of the triangle that it reads
    w, v = lapack.with_nan(lambda x: np.linalg.eigh(x, "U" if upper else "L"), _hermitian_part(a))
    return w, v


def _d_eigh(xp: Any, gs: Any, ans: Any, a: Any, upper: bool) -> Any:
    gw, gv = gs
    w, v = ans
    if gv is None:
        return xp.matmul(v * row(xp, gw), mh_of(xp, v))
    k = xp.matmul(mh_of(xp, v), gv)
    k = xp.phase_free(k, k, EIGH_PHASE)
    h = mh_of(xp, k)
    gaps = xp.inverse_gaps(w, k - h, k + h, w * 0.0 if gw is None else gw, -1.0)
    inner = (k - h) * gaps * 0.5
    inner = xp.matmul(v, inner)
    return xp.matmul(inner if gw is None else inner + v * row(xp, gw), mh_of(xp, v))


def _eig(a: Any, real: bool, checked: bool) -> tuple[Any, ...]:
    return tuple([r.astype(np.result_type(a, np.complex64), copy=False) for r in lapack.with_nan(np.linalg.eig, a)])


def _spectral(xp: Any, inner: Any, v: Any, real: bool) -> Any:
    """V^-H inner V^H."""
    h = mh_of(xp, v)
    t = xp.solve([h, xp.matmul(inner, h)], None)
    return xp.real(t) if real else t


def _largest(v: Any) -> Any:
    """1 at the largest element of each column, 0 elsewhere."""
    r = np.zeros(v.shape, v.real.dtype)
    if v.size:
        np.put_along_axis(r, (v.real**2 + v.imag**2).argmax(-2)[..., None, :], 1, -2)
    return r


def _d_eig(xp: Any, gs: Any, ans: Any, a: Any, real: bool, checked: bool) -> Any:
    gw, gv = gs
    w, v = ans
    if gv is None:
        return _spectral(xp, on_diagonal(xp, gw), v, real)
    h, r = mh_of(xp, v), len(v.shape)
    k = xp.matmul(h, gv)
    gv = xp.phase_free(gv, k, EIG_PHASE) if checked else gv
    own = row(xp, xp.diagonal(k, 0, r - 2, r - 1))
    # LAPACK scales vectors to norm 1 and their largest element to a real number
    turned = xp.safe_div(xp.to_complex(xp.largest(v)), v) * xp.to_complex(xp.imag(own))
    k = xp.matmul(h, gv - turned * 1j - v * xp.to_complex(xp.real(own)))
    gaps = xp.inverse_gaps(w, k, k * 0.0, w * 0.0 if gw is None else gw, -1.0)
    inner = k * xp.conj(gaps)
    return _spectral(xp, inner if gw is None else inner + on_diagonal(xp, gw), v, real)


def _d_eigvalsh(xp: Any, g: Any, ans: Any, a: Any) -> Any:
    v = xp.eigh(a, False)[1]
    return xp.matmul(v * row(xp, g), mh_of(xp, v))


def _eigvals_forward(a: Any, real: bool) -> Any:
    return lapack.with_nan(np.linalg.eigvals, a).astype(np.result_type(a, np.complex64), copy=False)


def _d_eigvals(xp: Any, g: Any, ans: Any, a: Any, real: bool) -> Any:
    return _spectral(xp, on_diagonal(xp, g), xp.eig(a, real, False)[1], real)


def _d_svdvals(xp: Any, g: Any, ans: Any, a: Any) -> Any:
    u, _, vh = xp.svd(a, False)
    return xp.matmul(u * row(xp, g), vh)


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
        return xp.matmul(u1 * row(xp, gw), mh_of(xp, v1))
    zero = (u if gu is None else v) * 0.0 if gu is None or gvh is None else None
    gu = zero if gu is None else gu
    gv = zero if gvh is None else mh_of(xp, gvh)
    ku = xp.matmul(mh_of(xp, u1), xp.index(gu, first))
    kv = xp.matmul(mh_of(xp, v1), xp.index(gv, first))
    both = xp.phase_free(ku + kv, ku + kv, SVD_PHASE)
    slopes = s * 0.0 if gw is None else gw
    inner = 0.0
    for t, sign in ((both, -1.0), (ku - kv, 1.0)):
        h = mh_of(xp, t)
        inner = inner + (t - h) * xp.inverse_gaps(s, t - h, t + h, slopes, sign)
    left = xp.matmul(u1, inner * 0.5)
    left = left if gw is None else left + u1 * row(xp, gw)
    if u.shape[-2] > k:
        beyond = _beyond(xp, gu, u, k, ku)
        left = left + beyond * row(xp, xp.inverse_sizes(s, beyond))
    t = xp.matmul(left, mh_of(xp, v1))
    if v.shape[-2] > k:
        beyond = _beyond(xp, gv, v, k, kv)
        t = t + xp.matmul(u1, mh_of(xp, beyond * row(xp, xp.inverse_sizes(s, beyond))))
    return t


# ------------------------------------------------------------------------------------------------- derivatives forwards


def diagonal_of(xp: Any, x: Any) -> Any:
    r = len(x.shape)
    return xp.diagonal(x, 0, r - 2, r - 1)


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
    gaps = xp.inverse_gaps(w, k, k * 0.0, w * 0.0, -1.0)
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
    t = xp.matmul(v, k * xp.inverse_gaps(w, k, k * 0.0, w * 0.0, -1.0))
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
    both = both * xp.inverse_gaps(s, both, both * 0.0, s * 0.0, -1.0) * 0.5
    apart = apart * xp.inverse_gaps(s, apart, apart * 0.0, s * 0.0, 1.0) * 0.5
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


def _definite() -> Iterator[Sample]:
    for shape in ((3, 3), (2, 2, 2), (0, 0), (2, 1, 1)):
        x = uniform(shape)
        yield Sample((x @ lapack.mh(x) + np.eye(shape[-1]),))
    x = complex_uniform((3, 3))
    yield Sample((x @ lapack.mh(x) + np.eye(3),))


def _symmetric() -> Iterator[Sample]:
    for (x,), _, _ in _definite():
        if x.dtype.kind == "f":
            yield Sample((x - 2 * np.eye(x.shape[-1]),))
    yield Sample((np.diag([1.0, 1.0, 2.0]),), (), False)


def _with_triangle() -> Iterator[Sample]:
    for sample in _symmetric():
        yield sample._replace(params=(len(sample.arrays[0]) == 2,))


def regular(*params: Any, real: tuple[Any, ...] | None = None) -> Any:
    """Square matrices, well conditioned; `real` are the parameters of real ones where they differ."""

    def samples() -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2), (0, 0), (1, 1)):
            yield Sample((uniform(shape) + 2 * np.eye(shape[-1]),), params if real is None else real)
        yield Sample((complex_uniform((3, 3)) + np.eye(3),), params)

    return samples


TALL = joined(regular("reduced"), cases(((4, 2), ("reduced",)), ((2, 3, 2), ("reduced",)), complex_too=True))
ANY_SHAPE = joined(
    regular(), cases(((4, 2), ()), ((2, 3, 2), ()), ((2, 4), ()), ((0, 2), ()), ((2, 0), ()), complex_too=True)
)
DECOMPOSED = joined(
    cases(((3, 3), (False,)), ((3, 2), (True,)), ((2, 3), (True,)), ((4, 2), (False,)), ((2, 2, 3), (False,))),
    of_values([[2.0, 0.0], [0.0, 2.0]], params=(False,)),
)
_cholesky = define(
    "cholesky", "general", lambda a: lapack.cholesky(_hermitian_part(a)), (_d_cholesky,),
    singular=True, matrices=True, display="LinalgCholeskyEx", jvp=_j_cholesky,
    batch=batching.leading, samples=_definite,
)  # fmt: skip
_qr = define(
    "qr", "general", _qr_forward, (_d_qr,), outputs=2, differentiable=2, absent=True, params=("mode",),
    singular=True, matrices=True, display="LinalgQr", jvp=_j_qr,
    batch=batching.leading, samples=TALL,
)  # fmt: skip
_lu = define(
    "lu_factor", "general", lapack.lu, (_d_lu,), outputs=2,
    singular=True, matrices=True, display="LinalgLuFactorEx", batch=batching.leading, samples=ANY_SHAPE,
)  # fmt: skip
define(
    "lu_permutation", "constant",
    lambda xs: lapack.permutation_matrix(xs[1], xs[0].shape[-2], xs[0].dtype), arity=-1,
    batch=batching.last, samples=of_values([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [2, 3]),
)  # fmt: skip
_eigh = define(
    "eigh", "general", _eigh_forward, (_d_eigh,), outputs=2, params=("upper",),
    differentiable=2, absent=True, singular=True, matrices=True, display="LinalgEigh",
    jvp=_j_eigh, batch=batching.leading, samples=_with_triangle,
)  # fmt: skip
define("largest", "constant", _largest, batch=batching.leading, samples=of_values([[1.0, 3.0], [-2.0, 0.0]]))
_eig_op = define(
    "eig", "general", _eig, (_d_eig,), outputs=2, differentiable=2, absent=True,
    singular=True, matrices=True, params=("real", "checked"),
    display="LinalgEig", jvp=_j_eig, batch=batching.leading, samples=regular(False, False, real=(True, False)),
)  # fmt: skip
_svd_op = define(
    "svd", "general", lapack.svd, (_d_svd,), outputs=3, differentiable=3, absent=True,
    singular=True, matrices=True, params=("full",),
    display="LinalgSvd", jvp=_j_svd, batch=batching.leading, samples=DECOMPOSED,
)  # fmt: skip

_eigvalsh = define(
    "eigvalsh", "general", lambda a: lapack.with_nan(np.linalg.eigvalsh, _hermitian_part(a)), (_d_eigvalsh,),
    singular=True, matrices=True, display="LinalgEigh", jvp=_j_eigvalsh, batch=batching.leading,
    samples=_symmetric,
)  # fmt: skip
_eigvals = define(
    "eigvals", "general", _eigvals_forward, (_d_eigvals,), params=("real",),
    singular=True, matrices=True, display="LinalgEig", jvp=_j_eigvals, batch=batching.leading,
    samples=regular(False, real=(True,)),
)  # fmt: skip
_svdvals = define(
    "svdvals", "general", lapack.svdvals, (_d_svdvals,),
    singular=True, matrices=True, display="LinalgSvd", jvp=_j_svdvals, batch=batching.leading,
    samples=ANY_SHAPE,
)  # fmt: skip


# Where a derivative may be wanted the vectors are computed at once, which it needs.


def eigvalsh_of(a: Any) -> Any:
    return _eigh(a, False)[0] if is_recorded(a) else _eigvalsh(a)


def eigvals_of(a: Any) -> Any:
    real = a._d.dtype.kind != "c"
    return _eig_op(a, real, False)[0] if is_recorded(a) else _eigvals(a, real)


def svdvals_of(a: Any) -> Any:
    return _svd_op(a, False)[1] if is_recorded(a) else _svdvals(a)


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
        np.isfinite(values_of(factor)).all(),
        lambda: lapack.first_bad_minor(_hermitian_part(host(hermitian(a.detach(), not upper)._d))),
    )
    if check_errors and infos.any():
        raise errors.not_positive_definite(name, *batch_element(infos))
    if not check_errors:
        reads(factor, f"{name}(), whose info LAPACK tells")
    return result("linalg_cholesky_ex", mh(factor) if upper else factor, fixed_like(np.asarray(infos, np.int32), a))


@with_out
@casting.in_float32
def linalg_cholesky(A: Any, *, upper: bool = False) -> Any:
    """The lower triangular L of A = L L^H (or the upper U of A = U^H U) of Hermitian positive definite matrices.

    Raises:
        LinAlgError: for a matrix that is not positive definite.
    """
    return _factored("linalg.cholesky", A, upper, True)[0]


@with_out
@casting.in_float32
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
    reads(x, "geqrf(), which LAPACK computes")
    raw, tau = np.linalg.qr(host(x._d), mode="raw")
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
    fine = bool(np.diagonal(values_of(packed), 0, -2, -1).all())
    infos = infos_of(packed, fine, lambda: lapack.first_zero_pivot(host(packed._d)))
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


def _parts(packed: Any) -> tuple[Any, Any]:
    m, n = shape_of(packed)[-2:]
    k = min(m, n)
    one = fixed_like(np.eye(m, k, dtype=packed._d.dtype), packed)
    return tril(packed[..., :k], -1) + one, triu(packed[..., :k, :])


@with_out
def linalg_lu(A: Any, *, pivot: bool = True) -> Any:
    """(P, L, U) with A = P L U: a permutation, a unit lower and an upper triangular matrix."""
    packed, pivots = _pivoted("linalg.lu", A, pivot)
    return result("linalg_lu", TABLE["lu_permutation"].call([packed, pivots]), *_parts(packed))


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
    return result("lu_unpack", p, *(_parts(packed) if unpack_data else (empty, empty)))


# ------------------------------------------------------------------------------------------------- eigenvalues and svd


def _is_lower(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "L"


@with_out
@casting.in_float32
def linalg_eigh(A: Any, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices, read from one triangle; eigenvalues ascend.

    Where eigenvalues repeat the gradient is finite for losses that do not depend on the choice of vectors, as far as the
    cotangents tell it (see `ops.decompose`), else nan.

    Raises:
        RuntimeError: in a backward pass, if the loss depends on the phase of complex vectors.
    """
    lower = _is_lower(UPLO)
    return result("linalg_eigh", *_eigh(hermitian(squares("linalg.eigh", A), lower), not lower))


@with_out
@casting.in_float32
def linalg_eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices, read from one triangle, ascending."""
    return eigvalsh_of(hermitian(squares("linalg.eigvalsh", A), _is_lower(UPLO)))


def _finite(name: str, A: Any) -> Any:
    a = squares(name, A)
    if not np.isfinite(values_of(a)).all():
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")
    return a


def _decomposed(A: Any, full: bool) -> Any:
    a = matrices("linalg.svd", A)
    if not np.isfinite(values_of(a)).all():
        raise errors.svd_failed(batch_element(~np.isfinite(host(a._d)).all((-2, -1)))[0])
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
    far as the cotangents tell it (see `ops.decompose`), else nan. `driver` is for other devices.

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

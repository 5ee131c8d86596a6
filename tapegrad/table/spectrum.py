"""Functions of singular values and eigenvalues whose derivatives do not divide by the gaps between these.

A function of the spectrum is smooth where values repeat, the vectors are not. What is stated through the matrix itself (the
polar factor, the equation P X + X P = C) has sums of values in its denominators, and is exact there to any order.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from ..kernels import spectrum
from . import batching
from .decompose import diagonal_of, mh_of, on_diagonal, row
from .define import define
from .samples import spectrum as samples


def own_of(xp: Any, x: Any) -> Any:
    """The Hermitian part."""
    return (x + mh_of(xp, x)) * 0.5


def _d_sylvester_p(xp: Any, g: Any, ans: Any, p: Any, c: Any) -> Any:
    t, h = xp.sylvester(p, g), mh_of(xp, ans)
    return -own_of(xp, xp.matmul(t, h) + xp.matmul(h, t))


def _j_sylvester(xp: Any, ts: Any, ans: Any, p: Any, c: Any) -> Any:
    tp, t = ts
    if tp is not None:
        tp = own_of(xp, tp)
        push = xp.matmul(tp, ans) + xp.matmul(ans, tp)
        t = -push if t is None else t - push
    return xp.sylvester(p, t)


define(
    "sylvester", "general", spectrum.sylvester, (_d_sylvester_p, lambda xp, g, ans, p, c: xp.sylvester(p, g)),
    saves=("p ans", "p"), arity=2, singular=True, zero_blocks="matrices", jvp=_j_sylvester, batch=batching.leading,
    samples=samples.sylvester,
)  # fmt: skip


def _apart(xp: Any, x: Any) -> Any:
    """The part that changes sign under the conjugate transpose."""
    return (x - mh_of(xp, x)) * 0.5


def _turned(xp: Any, w: Any, a: Any, t: Any) -> Any:
    """The derivative of the polar factor w of a, of at least as many rows as columns, along t; it is its own transpose.

    With P = w^H a: w X for P X + X P = w^H t - t^H w within the space of w, and t P^-1 beyond it.
    """
    h = mh_of(xp, w)
    p, own = own_of(xp, xp.matmul(h, a)), xp.matmul(h, t)
    r = xp.matmul(w, xp.sylvester(p, _apart(xp, own))) * 2.0
    if a.shape[-2] == a.shape[-1]:
        return r
    return r + mh_of(xp, xp.solve([p, mh_of(xp, t - xp.matmul(w, own))], None))


def _turn(xp: Any, w: Any, a: Any, t: Any) -> Any:
    if a.shape[-2] >= a.shape[-1]:
        return _turned(xp, w, a, t)
    return mh_of(xp, _turned(xp, mh_of(xp, w), mh_of(xp, a), mh_of(xp, t)))


def _column(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (*x.shape, 1, 1))


def _d_polar_factor(xp: Any, gs: Any, ans: Any, a: Any) -> Any:
    g, gw = gs
    t = None if gw is None else _turn(xp, ans[1], a, gw)
    if g is None:
        return t
    own = _column(xp, g) * ans[1]
    return own if t is None else own + t


def _j_polar_factor(xp: Any, ts: Any, ans: Any, a: Any) -> list[Any]:
    (t,), w = ts, ans[1]
    r = len(t.shape)
    return [xp.real(xp.sum(xp.conj(w) * t, (r - 2, r - 1), False)), _turn(xp, w, a, t)]


# the sum of the singular values and the polar factor, which is its derivative: smooth at full rank, whatever repeats; at a
# singular value of 0 the factor is LAPACK's choice
_polar_factor = define(
    "polar_factor", "general", spectrum.polar_factor, (_d_polar_factor,), saves="a ans[1]", outputs=2, singular=True,
    zero_blocks="matrices", display="SumBackward1", jvp=_j_polar_factor, batch=batching.leading,
    samples=samples.polar_factor,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- functions of the values
# The gradient of f(values) is V diag(g) V^H with g = df/dw. Its derivative weights the coupling k_ij of two vectors by
# (g_j - g_i) / (w_j - w_i), of which nothing is left where values repeat. The limit f_ii - f_ij is known to the history of
# g alone, which maps a vector of sum 0 within such a cluster to its product with that number. So the rule sends the size of
# the coupling times a fixed pattern into g, and the coupling along with the vectors: on the Hermitian part of V^H gV, which
# their derivative does not read. There it bears a mark, by which the rules of eigh, svd and eigvals know it from what a loss
# of the vectors leaves there, and from a sum of couplings, whose parts have slopes of their own. What the mark does not
# tell, and third derivatives in clusters, is nan. At a singular value of 0 some couplings have the weight g / s: there the
# result is nan unless the history of g says that f has no second derivative.


define(
    "refused", "general", spectrum.refused,
    (None, None, lambda xp, g, ans, w, gw, x, columns: xp.refused(w, gw, g, columns)), saves=("", "", "w gw"), arity=3,
    batch=batching.last, jvp=lambda xp, ts, ans, w, gw, x, columns: xp.refused(w, gw, ts[2], columns),
    samples=samples.refused,
)  # fmt: skip
define(
    "probe", "general", spectrum.probe,
    (None, None, lambda xp, g, ans, w, gw, k: xp.refused(w, gw, on_diagonal(xp, g), False)),
    saves=("", "", "w gw"), arity=3, singular=True, batch=batching.last,
    jvp=lambda xp, ts, ans, w, gw, k: None if ts[2] is None else diagonal_of(xp, xp.refused(w, gw, ts[2], False)),
    samples=samples.with_matrix,
)  # fmt: skip


def _d_marked(xp: Any, g: Any, ans: Any, w: Any, gw: Any, v: Any, k: Any, plain: Any, kind: str) -> Any:
    return xp.refused(w, gw, g, True)


def _j_marked(xp: Any, ts: Any, ans: Any, w: Any, gw: Any, v: Any, k: Any, plain: Any, kind: str) -> Any:
    return None if ts[4] is None else xp.refused(w, gw, ts[4], True)


define(
    "marked", "general", spectrum.marked, (None, None, None, None, _d_marked), saves=("", "", "", "", "w gw"), arity=5,
    singular=True, batch=batching.last, jvp=_j_marked, samples=samples.marked,
)  # fmt: skip
define("is_unmarked", "constant", spectrum.is_unmarked, arity=4, batch=batching.last, samples=samples.couplings)
define(
    "unmarked", "general", spectrum.unmarked,
    (None, None, None, None, lambda xp, g, ans, w, k, x, y, r, hermitian: xp.unmarked(w, k, x, y, g, hermitian)),
    saves=("", "", "", "", "w k x y"), arity=5, batch=batching.last,
    jvp=lambda xp, ts, ans, w, k, x, y, r, hermitian: xp.unmarked(w, k, x, y, ts[4], hermitian), samples=samples.with_slopes,
)  # fmt: skip


def _d_parted_k(xp: Any, gs: Any, ans: Any, w: Any, k: Any, x: Any, y: Any, r: Any, hermitian: bool) -> Any:
    return None if gs[0] is None else gs[0] * xp.is_unmarked(w, k, x, y, hermitian)


def _d_parted_r(xp: Any, gs: Any, ans: Any, w: Any, k: Any, x: Any, y: Any, r: Any, hermitian: bool) -> Any:
    _, slopes, values = gs
    t = None
    if values is not None:
        t = xp.unmarked(w, k, x, y, diagonal_of(xp, values), hermitian)
        t = xp.real(t) if hermitian else t
    if slopes is None:
        return t
    own = slopes * diagonal_of(xp, xp.is_unmarked(w, k, x, y, hermitian))
    return own if t is None else own + t


def _j_parted(xp: Any, ts: Any, ans: Any, w: Any, k: Any, x: Any, y: Any, r: Any, hermitian: bool) -> list[Any]:
    left, tr = xp.is_unmarked(w, k, x, y, hermitian), ts[4]
    tk = None if ts[1] is None else ts[1] * left
    if tr is None:
        return [tk, None, None]
    values = on_diagonal(xp, xp.unmarked(w, k, x, y, tr, hermitian))
    return [tk, tr * diagonal_of(xp, left), values + ans[2] * 0.0 if hermitian else values]  # in the dtype of k


define(
    "parted", "general", spectrum.parted, (None, _d_parted_k, None, None, _d_parted_r),
    saves=("", "w k x y", "", "", "w k x y"), constant_in="", arity=5, outputs=3, singular=True,
    batch=batching.last, jvp=_j_parted,
    samples=samples.with_slopes,
)  # fmt: skip


define("unresolved", "constant", spectrum.unresolved, arity=7, batch=batching.last, samples=samples.unresolved)
define(
    "resolved", "general", spectrum.resolved,
    (None, None, None, None, lambda xp, g, ans, s, k, x, y, r: xp.resolved(s, k, x, y, g)),
    saves=("", "", "", "", "s k x y"), arity=5, batch=batching.last,
    jvp=lambda xp, ts, ans, s, k, x, y, r: None if ts[4] is None else xp.resolved(s, k, x, y, ts[4]),
    samples=samples.resolved,
)  # fmt: skip


def _refused_turn(xp: Any, w: Any, g: Any, v: Any, turn: Any, t: Any) -> Any:
    """A tangent of vectors, nan where it turns those of a cluster: its limit is lost with the gap."""
    return t + xp.matmul(v, xp.refused(w, g, turn, False) - turn)


def _d_spectral(xp: Any, t: Any, ans: Any, w: Any, v: Any, g: Any, wanted: list[bool]) -> list[Any]:
    push = xp.matmul(t + mh_of(xp, t), v)
    k = xp.matmul(mh_of(xp, v), push) * 0.5
    return [
        None,
        xp.marked(w, g, v, k, push * row(xp, g), "hermitian") if wanted[1] else None,
        xp.real(xp.probe(w, g, k)) if wanted[2] else None,
    ]


def _j_spectral(xp: Any, ts: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    _, tv, tg = ts
    h = mh_of(xp, v)
    r = None if tg is None else xp.matmul(v * row(xp, tg), h)
    if tv is None:
        return r
    half = xp.matmul(_refused_turn(xp, w, g, v, xp.matmul(h, tv), tv) * row(xp, g), h)
    both = half + mh_of(xp, half)
    return both if r is None else r + both


define(
    "spectral", "general", spectrum.spectral, (_d_spectral,), saves="w v g", arity=3, batch=batching.last, jvp=_j_spectral,
    samples=samples.hermitian,
)  # fmt: skip


def _d_singular(xp: Any, t: Any, ans: Any, s: Any, u: Any, vh: Any, g: Any, wanted: list[bool]) -> list[Any]:
    v, weights = mh_of(xp, vh), row(xp, g)
    push, pull = xp.matmul(t, v), xp.matmul(mh_of(xp, t), u)
    k = xp.matmul(mh_of(xp, u), push)
    lost = xp.unresolved(s, g, u, v, push, pull, k)
    return [
        None,
        xp.marked(s, g, u, k, push * weights, "singular") + u * row(xp, lost) if wanted[1] else None,
        mh_of(xp, xp.marked(s, g, v, mh_of(xp, k), pull * weights, "singular") + v * row(xp, lost)) if wanted[2] else None,
        xp.real(xp.probe(s, g, own_of(xp, k))) + lost if wanted[3] else None,
    ]


def _j_singular(xp: Any, ts: Any, ans: Any, s: Any, u: Any, vh: Any, g: Any) -> Any:
    _, tu, tvh, tg = ts
    parts = [] if tg is None else [xp.matmul(u * row(xp, tg), vh)]
    if tu is not None:
        turn = xp.matmul(mh_of(xp, u), tu)
        parts.append(xp.matmul(_refused_turn(xp, s, g, u, turn, tu) * row(xp, g), vh))
    if tvh is not None:
        v, tv = mh_of(xp, vh), mh_of(xp, tvh)
        tv = _refused_turn(xp, s, g, v, xp.matmul(vh, tv), tv)
        parts.append(xp.matmul(u * row(xp, g), mh_of(xp, tv)))
    return functools.reduce(operator.add, parts) if parts else None


define(
    "singular", "general", spectrum.singular, (_d_singular,), saves="s u vh g", arity=4, batch=batching.last,
    jvp=_j_singular, samples=samples.singular,
)  # fmt: skip


def _d_similar(xp: Any, t: Any, ans: Any, w: Any, v: Any, g: Any, wanted: list[bool]) -> list[Any]:
    back = mh_of(xp, xp.solve([v, t], None))  # t^H V^-H
    k = xp.matmul(mh_of(xp, v), back)
    return [
        None,
        xp.marked(w, g, v, k, back * row(xp, g) - xp.matmul(ans, back), "similar") if wanted[1] else None,
        xp.conj(xp.probe(w, g, k)) if wanted[2] else None,
    ]


def _j_similar(xp: Any, ts: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    _, tv, tg = ts
    t = None if tg is None else mh_of(xp, v * row(xp, xp.conj(tg)))
    if tv is not None:
        tv = _refused_turn(xp, w, g, v, xp.solve([v, tv], None), tv)
        push = mh_of(xp, tv * row(xp, xp.conj(g))) - xp.matmul(mh_of(xp, tv), ans)
        t = push if t is None else t + push
    return None if t is None else xp.solve([mh_of(xp, v), t], None)


define(
    "similar", "general", spectrum.similar, (_d_similar,), saves="w v g ans", arity=3, singular=True, batch=batching.last,
    jvp=_j_similar, samples=samples.similar,
)  # fmt: skip

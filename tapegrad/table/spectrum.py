"""Functions of singular values and eigenvalues whose derivatives do not divide by the gaps between these.

A function of the spectrum is smooth where values repeat, the vectors are not. What is stated through the matrix itself (the
polar factor, the equation P X + X P = C) has sums of values in its denominators, and is exact there to any order.
"""

from __future__ import annotations

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


def _d_polar(xp: Any, gs: Any, ans: Any, a: Any) -> Any:
    g, gw = gs
    t = None if gw is None else _turn(xp, ans[1], a, gw)
    if g is None:
        return t
    own = _column(xp, g) * ans[1]
    return own if t is None else own + t


def _j_polar(xp: Any, ts: Any, ans: Any, a: Any) -> list[Any]:
    (t,), w = ts, ans[1]
    r = len(t.shape)
    return [xp.real(xp.sum(xp.conj(w) * t, (r - 2, r - 1), False)), _turn(xp, w, a, t)]


# the sum of the singular values and the polar factor, which is its derivative: smooth at full rank, whatever repeats; at a
# singular value of 0 the factor is LAPACK's choice
_polar = define(
    "polar", "general", spectrum.polar, (_d_polar,), saves="a ans[1]", outputs=2, singular=True, zero_blocks="matrices",
    display="SumBackward1", jvp=_j_polar, batch=batching.leading, samples=samples.polar,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- functions of the values
# The gradient of f(values) is V diag(g) V^H with g = df/dw. Its derivative weights the coupling k_ij of two vectors by
# (g_j - g_i) / (w_j - w_i), of which nothing is left where values repeat. The limit f_ii - f_ij is known to the history of
# g alone, which maps a vector of sum 0 within such a cluster to its product with that number. So the rule sends the size of
# the coupling times a fixed pattern into g, and the coupling along with the vectors: on the Hermitian part of V^H gV, which
# their derivative does not read. There it bears a mark, by which the rules of eigh, svd and eigvals know it from what a loss
# of the vectors leaves there, and from a sum of couplings, whose parts have slopes of their own. What the mark does not
# tell, and third derivatives in clusters, is nan.


def _beside(xp: Any, g: Any, w: Any, gw: Any) -> Any:
    """The columns of clusters, beside the clusters."""
    return xp.refused(w, gw, g) * (1.0 - row(xp, xp.single(w, gw)))


define(
    "refused", "general", spectrum.refused, (None, None, lambda xp, g, ans, w, gw, x: xp.refused(w, gw, g)),
    saves=("", "", "w gw"), arity=3, batch=batching.last, jvp=lambda xp, ts, ans, w, gw, x: xp.refused(w, gw, ts[2]),
    samples=samples.with_matrix,
)  # fmt: skip
define("single", "constant", spectrum.single, arity=2, batch=batching.last, samples=samples.values_and_slopes)
define(
    "carried", "general", spectrum.carried, (None, None, None, lambda xp, g, ans, w, gw, k, x: _beside(xp, g, w, gw)),
    saves=("", "", "", "w gw"), arity=4, singular=True, batch=batching.last,
    jvp=lambda xp, ts, ans, w, gw, k, x: None if ts[3] is None else _beside(xp, ts[3], w, gw), samples=samples.with_two,
)  # fmt: skip
define(
    "probe", "general", spectrum.probe,
    (None, None, lambda xp, g, ans, w, gw, k: xp.refused(w, gw, on_diagonal(xp, g))),
    saves=("", "", "w gw"), arity=3, singular=True, batch=batching.last,
    jvp=lambda xp, ts, ans, w, gw, k: None if ts[2] is None else diagonal_of(xp, xp.refused(w, gw, ts[2])),
    samples=samples.with_matrix,
)  # fmt: skip
define("uncarried", "constant", spectrum.uncarried, arity=4, batch=batching.last, samples=samples.couplings)
define(
    "unmarked", "general", spectrum.unmarked,
    (None, None, None, None, lambda xp, g, ans, w, k, x, y, r: xp.unmarked(w, k, x, y, g)),
    saves=("", "", "", "", "w k x y"), arity=5, batch=batching.last,
    jvp=lambda xp, ts, ans, w, k, x, y, r: xp.unmarked(w, k, x, y, ts[4]), samples=samples.with_slopes,
)  # fmt: skip


def _d_restored(xp: Any, g: Any, ans: Any, w: Any, k: Any, x: Any, y: Any, r: Any, real: bool) -> Any:
    t = xp.unmarked(w, k, x, y, diagonal_of(xp, g))
    return xp.real(t) if real else t


def _j_restored(xp: Any, ts: Any, ans: Any, w: Any, k: Any, x: Any, y: Any, r: Any, real: bool) -> Any:
    if ts[4] is None:
        return None
    t = on_diagonal(xp, xp.unmarked(w, k, x, y, ts[4]))
    return t + ans * 0.0 if real else t  # the dtype of what is carried


define(
    "restored", "general", spectrum.restored, (None, None, None, None, _d_restored), saves=("", "", "", "", "w k x y"),
    arity=5, singular=True, batch=batching.last, jvp=_j_restored, samples=samples.restored,
)  # fmt: skip


def _coupling(xp: Any, t: Any, v: Any) -> Any:
    return xp.matmul(mh_of(xp, v), xp.matmul(t, v))


def _refused_turn(xp: Any, w: Any, g: Any, v: Any, inverse: Any, t: Any) -> Any:
    """A tangent of vectors, nan where it turns those of a cluster: its limit is lost with the gap."""
    turn = xp.matmul(inverse, t)
    return t + xp.matmul(v, xp.refused(w, g, turn) - turn)


def _d_spectral_v(xp: Any, t: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    own, weights = t + mh_of(xp, t), row(xp, g)
    k = _coupling(xp, own, v)
    return xp.matmul(own, v) * weights * row(xp, xp.single(w, g)) + xp.matmul(v, xp.carried(w, g, k * 0.5, k * weights))


def _d_spectral_g(xp: Any, t: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    return xp.real(xp.probe(w, g, own_of(xp, _coupling(xp, t, v))))


def _j_spectral(xp: Any, ts: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    _, tv, tg = ts
    r = None if tg is None else xp.matmul(v * row(xp, tg), mh_of(xp, v))
    if tv is None:
        return r
    h = mh_of(xp, v)
    half = xp.matmul(_refused_turn(xp, w, g, v, h, tv) * row(xp, g), h)
    both = half + mh_of(xp, half)
    return both if r is None else r + both


define(
    "spectral", "general", spectrum.spectral, (None, _d_spectral_v, _d_spectral_g), saves=("", "w v g", "w v g"), arity=3,
    batch=batching.last, jvp=_j_spectral, samples=samples.hermitian,
)  # fmt: skip


def _d_singular_u(xp: Any, t: Any, ans: Any, s: Any, u: Any, vh: Any, g: Any) -> Any:
    return _d_vectors(xp, t, s, u, mh_of(xp, vh), g)


def _d_singular_vh(xp: Any, t: Any, ans: Any, s: Any, u: Any, vh: Any, g: Any) -> Any:
    return mh_of(xp, _d_vectors(xp, mh_of(xp, t), s, mh_of(xp, vh), u, g))


def _d_vectors(xp: Any, t: Any, s: Any, u: Any, v: Any, g: Any) -> Any:
    """Cotangent of the vectors u."""
    push, weights = xp.matmul(t, v), row(xp, g)
    k = xp.matmul(mh_of(xp, u), push)
    own = own_of(xp, k)
    couplings = (k - own) * weights * (1.0 - row(xp, xp.single(s, g))) + xp.carried(s, g, own, own * weights * 2.0) * 0.5
    r = push * weights * row(xp, xp.single(s, g)) + xp.matmul(u, couplings)
    if u.shape[-2] == u.shape[-1]:
        return r
    beyond = (push - xp.matmul(u, k)) * weights * (1.0 - row(xp, xp.single(s, g)))
    return r + beyond - xp.matmul(u, xp.matmul(mh_of(xp, u), beyond))  # twice: rounding must not look like a coupling


def _d_singular_g(xp: Any, t: Any, ans: Any, s: Any, u: Any, vh: Any, g: Any) -> Any:
    k = xp.matmul(mh_of(xp, u), xp.matmul(t, mh_of(xp, vh)))
    return xp.real(xp.probe(s, g, own_of(xp, k)))


def _j_singular(xp: Any, ts: Any, ans: Any, s: Any, u: Any, vh: Any, g: Any) -> Any:
    _, tu, tvh, tg = ts
    parts = [] if tg is None else [xp.matmul(u * row(xp, tg), vh)]
    if tu is not None:
        parts.append(xp.matmul(_refused_turn(xp, s, g, u, mh_of(xp, u), tu) * row(xp, g), vh))
    if tvh is not None:
        tv = _refused_turn(xp, s, g, mh_of(xp, vh), vh, mh_of(xp, tvh))
        parts.append(xp.matmul(u * row(xp, g), mh_of(xp, tv)))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


define(
    "singular", "general", spectrum.singular, (None, _d_singular_u, _d_singular_vh, _d_singular_g),
    saves=("", "s u vh g", "s u vh g", "s u vh g"), arity=4, batch=batching.last, jvp=_j_singular, samples=samples.singular,
)  # fmt: skip


def _d_similar_v(xp: Any, t: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    h, weights = mh_of(xp, v), row(xp, g)
    back = mh_of(xp, xp.solve([v, t], None))  # t^H V^-H
    k = xp.matmul(h, back)
    plain = back * weights - xp.matmul(ans, back)
    couplings = xp.carried(w, g, k, k * weights - mh_of(xp, row(xp, xp.conj(g))) * k)
    return plain * row(xp, xp.single(w, g)) + xp.solve([h, couplings], None)


def _d_similar_g(xp: Any, t: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    k = xp.matmul(mh_of(xp, v), mh_of(xp, xp.solve([v, t], None)))
    return xp.conj(xp.probe(w, g, k))


def _j_similar(xp: Any, ts: Any, ans: Any, w: Any, v: Any, g: Any) -> Any:
    _, tv, tg = ts
    t = None if tg is None else mh_of(xp, v * row(xp, xp.conj(tg)))
    if tv is not None:
        turn = xp.solve([v, tv], None)
        tv = tv + xp.matmul(v, xp.refused(w, g, turn) - turn)
        push = mh_of(xp, tv * row(xp, xp.conj(g))) - xp.matmul(mh_of(xp, tv), ans)
        t = push if t is None else t + push
    return xp.solve([mh_of(xp, v), t], None)


define(
    "similar", "general", spectrum.similar, (None, _d_similar_v, _d_similar_g), saves=("", "ans w v g", "w v g"), arity=3,
    singular=True, batch=batching.last, jvp=_j_similar, samples=samples.similar,
)  # fmt: skip

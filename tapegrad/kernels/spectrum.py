"""Array functions of spectra that the records of `table.spectrum` call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .lapack import mh


def hermitian_part(x: Any) -> Any:
    return (x + mh(x)) * x.real.dtype.type(0.5)


def polar_factor(xp: Any, a: Any) -> tuple[Any, Any]:
    """The sum of the singular values, and U V^H."""
    u, s, vh = xp.svd(a, False)
    return xp.asarray(s.sum(-1)), u @ vh


@np.errstate(all="ignore")
def sylvester(xp: Any, p: Any, c: Any) -> Any:
    """X of P X + X P = C, P the Hermitian part of p; an element of C that is 0 between eigenvectors of sum 0 gives 0."""
    w, v = xp.with_nan(xp.linalg.eigh, hermitian_part(p))
    k = mh(v) @ c @ v
    return v @ xp.where(k == 0, 0, k / (w[..., :, None] + w[..., None, :])) @ mh(v)


# ------------------------------------------------------------------------------------------------------ repeated values

NEAR = 2 / 3  # values are one value if they agree in this part of their digits, and cotangents are level in a half of them
MARK = math.pi  # the diagonal of what is carried, in units of its size: no other loss has this mark by chance


def clusters(xp: Any, w: Any) -> Any:
    """Which pairs of values are equal to rounding, if they are so to the same others; nan equals everything."""
    gap = xp.abs(w[..., :, None] - w[..., None, :])
    near = xp.logical_not(gap > _bound(xp, w)[..., None, None])
    one = near.astype(np.float32)
    closed = ((one @ one > 0) == near).all(-1)
    return near & closed[..., :, None] & closed[..., None, :] & ~np.eye(w.shape[-1], dtype=bool)


def _bound(xp: Any, w: Any) -> Any:
    return np.finfo(w.dtype).eps ** NEAR * xp.abs(w).max(-1, initial=0)


def if_near(w: Any, special: Callable[[], Any], ordinary: Callable[[], Any]) -> Any:
    """What `special` gives, or `ordinary`, which is the same if no two values are near."""
    if w.dtype.kind == "c":
        gap = np.abs(w[..., :, None] - w[..., None, :]) + np.where(np.eye(w.shape[-1], dtype=bool), np.inf, 0)
        apart = gap > _bound(np, w)[..., None, None]
    else:
        apart = np.diff(np.sort(w)) > _bound(np, w)[..., None]
    return ordinary() if apart.all() else special()


def _level(xp: Any, w: Any, g: Any) -> Any:
    """The clusters within which g is constant to rounding, of itself or of the slopes that a loss of order 1 has."""
    pairs, size = clusters(xp, w), xp.abs(g)
    scale = xp.abs(w).max(-1, initial=0)[..., None, None]
    usual = xp.where(scale > 0, 1 / xp.where(scale > 0, scale, 1), 0)
    bound = math.sqrt(np.finfo(g.dtype).eps) * xp.maximum(xp.maximum(size[..., :, None], size[..., None, :]), usual)
    uneven = (pairs & ~(xp.abs(g[..., :, None] - g[..., None, :]) <= bound)).any(-1)
    uneven = uneven | (pairs & uneven[..., None, :]).any(-1)
    return pairs & ~uneven[..., None]


def _diagonal(xp: Any, x: Any) -> Any:
    return xp.diagonal(x, 0, -2, -1)


def _on_diagonal(xp: Any, x: Any) -> Any:
    return xp.where(np.eye(x.shape[-1], dtype=bool), x[..., None, :], 0)


def _summed(xp: Any, one: Any, x: Any) -> Any:
    return (one.astype(x.dtype) @ x[..., None])[..., 0]


def _parts(xp: Any, pairs: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Of a matrix within clusters: where that is, the mean of the diagonal, what deviates from it, and the size of that.

    The size has a sign that changes with that of the matrix.
    """
    own = pairs | (np.eye(x.shape[-1], dtype=bool) & pairs.any(-1)[..., None])
    mean = _summed(xp, own, _diagonal(xp, x)) / xp.maximum(own.sum(-1), 1).astype(x.real.dtype)
    rest = xp.where(own, x, 0) - _on_diagonal(xp, mean)
    n = x.shape[-1]
    weighted = (rest * np.sqrt(np.arange(2, n * n + 2)).reshape(n, n).astype(rest.dtype)).sum(-1).real
    size = xp.sqrt(_summed(xp, own, (rest.real**2 + rest.imag**2).sum(-1)))
    return own, mean, rest, xp.where(_summed(xp, own, weighted) < 0, -size, size)


def _pattern(xp: Any, own: Any, dtype: Any) -> Any:
    """Numbers of sum 0 and norm 1 in each cluster."""
    rank, n = (own & np.tri(own.shape[-1], k=-1, dtype=bool)).sum(-1), own.sum(-1)
    return ((rank - (n - 1) / 2) / xp.sqrt(xp.maximum(n * (n * n - 1) / 12, 0.5))).astype(dtype)


def _noise(xp: Any, x: Any) -> Any:
    return 64 * max(x.shape[-2:]) * np.finfo(x.dtype).eps * xp.abs(x).max((-2, -1), initial=0)[..., None]


def _couplings(xp: Any, w: Any, g: Any, k: Any) -> tuple[Any, Any, Any, Any]:
    """The parts of k within level clusters; what is nothing but rounding is 0."""
    own, mean, rest, size = _parts(xp, _level(xp, w, g), k)
    some = xp.abs(size) > _noise(xp, k)
    return own, mean, xp.where(some[..., None], rest, 0), xp.where(some, size, 0)


def marked(xp: Any, w: Any, g: Any, v: Any, k: Any, plain: Any, kind: str) -> Any:
    """A cotangent of vectors, in the columns of clusters that which carries the couplings k in place of the plain one.

    Within clusters these are k less its mean diagonal, and MARK times the size of that on the diagonal.
    """
    return xp.if_near(w, lambda: _marked(xp, w, g, v, k, plain, kind), lambda: plain)


def _marked(xp: Any, w: Any, g: Any, v: Any, k: Any, plain: Any, kind: str) -> Any:
    coupling = k if kind == "similar" else hermitian_part(k)
    own, _, rest, size = _couplings(xp, w, g, coupling)
    mark = rest + _on_diagonal(xp, size * MARK)
    columns, weights = own.any(-1)[..., None, :], g[..., None, :]
    if kind == "similar":
        carried = xp.inverse(mh(v)) @ xp.where(own, mark, k * weights - g[..., :, None] * k)
    elif kind == "hermitian":
        carried = v @ xp.where(own, mark, k * weights * 2)
    else:
        beyond = plain - v @ (k * weights)
        beyond = beyond - v @ (mh(v) @ beyond) if v.shape[-2] > v.shape[-1] else xp.zeros_like(beyond)
        carried = beyond + v @ xp.where(own, mark * 0.5 + (k - coupling) * weights, k * weights)
    return xp.where(columns, carried, plain).astype(plain.dtype)


def probe(xp: Any, w: Any, g: Any, k: Any) -> Any:
    """The diagonal of k; in clusters its mean, and the size of what deviates from it times a pattern; nan where g is."""

    def special() -> Any:
        own, mean, _, size = _couplings(xp, w, g, k)
        return xp.where(own.any(-1), mean + size * _pattern(xp, own, size.dtype), _diagonal(xp, k)).astype(k.dtype)

    return xp.where(xp.isnan(g), np.nan, xp.if_near(w, special, lambda: _diagonal(xp, k))).astype(k.dtype)


def refused(xp: Any, w: Any, g: Any, x: Any, columns: bool) -> Any:
    """x, nan in clusters, or their columns, where it is not 0."""

    def special() -> Any:
        pairs = _level(xp, w, g)
        inside = pairs | (np.eye(w.shape[-1], dtype=bool) & pairs.any(-1)[..., None])
        return xp.where((pairs.any(-1)[..., None, :] if columns else inside) & (x != 0), np.nan, x).astype(x.dtype)

    return xp.if_near(w, special, lambda: x)


def _told(xp: Any, w: Any, k: Any, x: Any, y: Any) -> tuple[Any, ...]:
    """The clusters in which k holds nothing but what `marked` made, or 0, and its parts; noise is that of x and y."""
    own, mean, rest, size = _parts(xp, clusters(xp, w), k)
    noise = xp.maximum(_noise(xp, x), _noise(xp, y))
    told = own.any(-1) & (xp.abs(mean - MARK * size) <= noise)
    return told, told & (xp.abs(size) > noise), own, rest, size, own.any(-1) & (xp.abs(mean) > noise)


def is_unmarked(xp: Any, w: Any, k: Any, x: Any, y: Any, hermitian: bool) -> Any:
    """0 where k holds what `marked` made, 1 elsewhere; unless that is a Hermitian part, nan for what several passes made."""

    def special() -> Any:
        told, _, own, _, _, some = _told(xp, w, hermitian_part(k) if hermitian else k, x, y)
        rest = 1 if hermitian else xp.where(own & (some & ~told)[..., None], np.nan, 1)
        return xp.where(own & told[..., None], 0, rest).astype(w.real.dtype)

    return xp.if_near(w, special, lambda: xp.ones(k.shape, w.real.dtype))


@np.errstate(all="ignore")
def parted(xp: Any, w: Any, k: Any, x: Any, y: Any, r: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """What is left of k and r without what `marked` made, and the matrix that this and r give.

    r on the diagonal, and in marked clusters the mean of r there, and what k carries times the slope of r on the pattern.
    """

    def special() -> Any:
        _, whole, own, rest, size, _ = _told(xp, w, hermitian_part(k) if hermitian else k, x, y)
        left, one = is_unmarked(xp, w, k, x, y, hermitian), r.astype(k.dtype)
        slope = _summed(xp, own, one * _pattern(xp, own, size.dtype)) / xp.where(whole, size, 1)
        mean = _summed(xp, own, one) / xp.maximum(own.sum(-1), 1)
        inside = xp.where(whole[..., None], slope[..., None] * rest, 0)
        values = inside + _on_diagonal(xp, xp.where(whole, mean, one))
        unmarked = xp.where(left == 0, 0, k * left)
        return unmarked.astype(k.dtype), (r * _diagonal(xp, left)).astype(r.dtype), values.astype(k.dtype)

    return xp.if_near(w, special, lambda: (k, r, _on_diagonal(xp, r).astype(k.dtype)))  # type: ignore[no-any-return]


def unmarked(xp: Any, w: Any, k: Any, x: Any, y: Any, r: Any, hermitian: bool) -> Any:
    """r, nan in marked clusters where it is not 0."""

    def special() -> Any:
        whole = _told(xp, w, hermitian_part(k) if hermitian else k, x, y)[1]
        return xp.where(whole & (r != 0), np.nan, r).astype(r.dtype)

    return xp.if_near(w, special, lambda: r)


def _zero(xp: Any, s: Any) -> Any:
    return s <= _bound(xp, s)[..., None]


def _with_zero(xp: Any, s: Any) -> Any:
    return xp.concatenate([s, xp.zeros((*s.shape[:-1], 1), s.dtype)], -1)


def unresolved(xp: Any, s: Any, g: Any, u: Any, v: Any, push: Any, pull: Any, k: Any) -> Any:
    """At singular values of 0 without slope, the size of the couplings whose weight is g / s, which is lost there; else 0.

    They are those beyond the space of u and v, and the antisymmetric part of k among vectors of 0.
    """

    def special() -> Any:
        zero = _zero(xp, s)
        flat = xp.abs(g) <= math.sqrt(np.finfo(g.dtype).eps) * xp.abs(g).max(-1, keepdims=True, initial=0)
        turn = xp.where(zero[..., :, None] & zero[..., None, :], k - mh(k), 0)
        beyond = push - u @ k, pull - v @ mh(k)
        size = xp.sqrt(sum((xp.abs(x) ** 2).sum(-2) for x in (turn, *beyond)))
        some = zero & flat & (size > xp.maximum(_noise(xp, push), _noise(xp, pull)))
        return xp.where(some, size, 0).astype(s.dtype)

    return xp.if_near(_with_zero(xp, s), special, lambda: xp.zeros_like(s))


def resolved(xp: Any, s: Any, k: Any, x: Any, y: Any, r: Any) -> Any:
    """r, nan at singular values of 0 if it is not 0 and the diagonal of k tells of an unresolved coupling."""

    def special() -> Any:
        size, scale = xp.abs(_diagonal(xp, k).real), xp.abs(s).max(-1, keepdims=True, initial=0)
        noise = 64 * np.finfo(s.dtype).eps * size
        lost = _zero(xp, s) & (size > xp.maximum(_noise(xp, x), _noise(xp, y))) & (xp.abs(r) * scale**2 > noise)
        return xp.where(lost, np.nan, r).astype(r.dtype)

    return xp.if_near(_with_zero(xp, s), special, lambda: r)


def spectral(xp: Any, w: Any, v: Any, g: Any) -> Any:
    """V diag(g) V^H."""
    return (v * g[..., None, :]) @ mh(v)


def singular(xp: Any, s: Any, u: Any, vh: Any, g: Any) -> Any:
    """U diag(g) V^H."""
    return (u * g[..., None, :]) @ vh


def similar(xp: Any, w: Any, v: Any, g: Any) -> Any:
    """V^-H diag(g) V^H."""
    h = mh(v)
    return xp.inverse(h) @ (g[..., :, None] * h)

"""Buckets: many small parameters updated as one array.

A call of a NumPy function costs as much as 1,000 elements, so parameters with equal settings, dtype and counters are updated
together. Their state is stored in flat arrays, of which the state tensors are views; parameters and gradients are gathered
before the formula and the parameters scattered after it, since they may be replaced at any time. Each step checks that no
state tensor has been replaced or shares its memory with others; otherwise the buckets are rebuilt from the tensors.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core import alias
from ..core.record import wrap
from ..refcount import WHY_NOT, counts
from ..tensor.access import raw

SMALL = 1 << 15  # largest parameter, in elements, that gains from a bucket
MOST = 1 << 19  # largest bucket, in elements: its arrays fit into the cache
Member = tuple[Any, dict[str, Any]]


def private(t: Any) -> bool:
    """Whether a tensor shares memory with no other, is outside transforms and has no hooks."""
    if t._st is not None:
        alias.sync(t)
    return t._st is None


def key_of(p: Any, state: dict[str, Any], scalars: tuple[str, ...]) -> Any:
    """Key that parameters of one bucket share; None if a parameter must be updated alone."""
    a = raw(p)
    if not private(p) or type(a) is not np.ndarray or a.dtype.char not in "fd" or not 0 < a.size <= SMALL:
        return None
    key: list[Any] = [a.dtype]
    for name, t in state.items():
        b = getattr(t, "_d", None)
        if b is None or not private(t) or t._s or b.shape != (() if name in scalars else a.shape):
            return None
        if name in scalars:
            if b.dtype.char not in "fd":
                return None
            key.append((name, b.dtype, b.item()))
        elif b.dtype is not a.dtype:
            return None
        else:
            key.append(name)
    return tuple(key)


class Bucket:
    """Parameters that are updated together, with their flat state."""

    def __init__(self, members: list[Member], scalars: tuple[str, ...]) -> None:
        self.members = members
        self.p = np.concatenate([p._d for p, _ in members], axis=None)
        self.g = np.empty_like(self.p)
        self.views = self.split(self.p)
        self.flat = {name: np.concatenate([s[name]._d for _, s in members], axis=None) for name in members[0][1]}
        self.counters = [name for name in self.flat if name in scalars]
        # each state tensor's dict and name, and its view of the flat array
        self.kept: list[tuple[dict[str, Any], str, Any, Any]] = []
        for name in self.flat:
            self.lay_out(name, self.flat[name])
        self.held = self.holders()

    def lay_out(self, name: str, flat: Any) -> None:
        """Make the state tensors of a name views of the flat array."""
        parts = [i.reshape(()) for i in np.split(flat, flat.size)] if name in self.counters else self.split(flat)
        for (_, s), part in zip(self.members, parts, strict=True):
            s[name]._d = part
            self.kept.append((s, name, s[name], part))

    def split(self, flat: Any) -> list[Any]:
        """Views of a flat array in the parameters' shapes."""
        ends = np.cumsum([p._d.size for p, _ in self.members]).tolist()
        return [flat[end - p._d.size : end].reshape(p._d.shape) for end, (p, _) in zip(ends, self.members, strict=True)]

    def holders(self) -> list[int]:
        """Reference counts of the state's views and of the flat arrays."""
        return counts([k[3] for k in self.kept]) + counts(list(self.flat.values()))

    def fits(self, state: dict[Any, dict[str, Any]]) -> bool:
        """Whether parameters and state are unchanged since the bucket's last step."""
        return self.intact(state) and self.holders() == self.held

    def intact(self, state: dict[Any, dict[str, Any]]) -> bool:
        for (p, s), view in zip(self.members, self.views, strict=True):
            found = state.get(p)
            if (found is not s and (found or s)) or len(s) != len(self.flat) or not private(p):
                return False
            if p._d.dtype is not view.dtype or p._d.shape != view.shape:
                return False
        for s, name, t, part in self.kept:
            if name not in s or s[name] is not t or t._d is not part or t._st is not None or t._s:
                return False
        return all([(self.flat[name][0] == self.flat[name]).all() for name in self.counters])

    def step(self, optimizer: Any, h: dict[str, Any]) -> None:
        """Note the optimizer's formula, and what then becomes of the parameters and their state."""
        np.concatenate([p._d for p, _ in self.members], axis=None, out=self.p)
        np.concatenate([raw(p._g) for p, _ in self.members], axis=None, out=self.g)
        s = {name: flat[0] if name in self.counters else flat for name, flat in self.flat.items()}
        m = optimizer._arrays
        m.begin(self.p)
        new = optimizer.updated(m, self.p, self.g, s, h)
        if new is not self.p:
            m.set(self.p, ..., new)
        for name in self.counters:
            m.set(self.flat[name], ..., s[name])
        for name in s.keys() - self.flat.keys():
            for (p, state), part in zip(self.members, self.split(s[name]), strict=True):
                m.set(optimizer.state, p, state)
                m.set(state, name, wrap(part))
        for (p, _), part in zip(self.members, self.views, strict=True):
            if alias.is_sole_owner(p):
                m.set(p._d, ..., part)
            else:
                m.operations.append(partial(setattr, p, "_d", m.copy(part)))


class Plan:
    """Which parameters of a group are updated in buckets and which alone.

    Attributes:
        names: required names of the state.
        twice: whether a parameter is among them twice, and updated twice.
    """

    def __init__(self, members: list[Member], scalars: tuple[str, ...], names: list[str]) -> None:
        self.ready = [id(p) for p, _ in members]
        self.members, self.names = members, names
        self.single: list[Any] = []
        self.buckets: list[Bucket] = []
        found: dict[Any, list[Member]] = {}
        self.twice = len(set(self.ready)) < len(self.ready)
        for p, state in members:
            key = None if WHY_NOT or self.twice or has_level(p._g) else key_of(p, state, scalars)
            if key is None:
                self.single.append(p)
            else:
                found.setdefault(key, []).append((p, state))
        for together in found.values():
            for part in cut(together):
                if len(part) == 1:
                    self.single.append(part[0][0])
                else:
                    self.buckets.append(Bucket(part, scalars))

    def fits(self, state: dict[Any, dict[str, Any]], ready: list[Any], names: list[str]) -> bool:
        """Whether the plan is valid for the parameters that have gradients now."""
        if names != self.names or [id(p) for p in ready] != self.ready or any([has_level(p._g) for p in ready]):
            return False
        return all([bucket.fits(state) for bucket in self.buckets])


def has_level(t: Any) -> bool:
    return t._st is not None and alias.has_level(t)


def cut(members: list[Member]) -> list[list[Member]]:
    """Split members into lists of at most MOST elements each."""
    parts: list[list[Member]] = [[]]
    size = 0
    for p, state in members:
        size += p._d.size
        if size > MOST:
            parts.append([])
            size = p._d.size
        parts[-1].append((p, state))
    return parts

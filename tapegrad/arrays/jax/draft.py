"""JAX arrays that the text of a NumPy kernel may write into.

A `Draft` holds a JAX array and takes another one where NumPy would change the memory: `out *= 2`, `np.exp(x, out=x)`,
`out[...] = x`. Parts picked by a mask (`far = (x > 2).nonzero()[0]`, then `out[far] = f(x[far])`) are computed of all elements,
and the mask chooses: shapes do not depend on values. For the same reason a question whether a part is empty has one answer,
"no", and whether all elements are alike, "no": in the kernels that are read so both only save work.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import kernels, special
from .derive import STANDS_FOR, Reading


class Chosen:
    """The indices of the elements where a mask is true."""

    size = 1

    def __init__(self, mask: Any) -> None:
        self.mask = mask


class Draft:
    """An array of a text that writes into arrays; results of operators and NumPy's functions are drafts, too."""

    __array_ufunc__ = None
    strides = (1,)
    nbytes = 1

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.value, name)
        return on_drafts(found) if callable(found) and name != "dtype" else drafted(found)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Chosen) or is_mask(index):
            return Draft(self.value)  # all elements: what is done with the others is not kept
        return Draft(self.value[plain(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        value = plain(value)
        if isinstance(index, Chosen) or is_mask(index):
            mask = index.mask if isinstance(index, Chosen) else plain(index)
            mask = mask.reshape(mask.shape + (1,) * (self.value.ndim - mask.ndim))
            self.value = jnp.where(mask, value, self.value).astype(self.value.dtype)
        elif index is Ellipsis:
            self.value = jnp.broadcast_to(value, self.value.shape).astype(self.value.dtype)
        else:
            self.value = self.value.at[plain(index)].set(value)

    def nonzero(self) -> tuple[Chosen]:
        return (Chosen(self.value),)

    def any(self, *args: Any, **kwargs: Any) -> Any:
        return Draft(self.value.any(*args, **kwargs)) if args or kwargs else True

    def all(self, *args: Any, **kwargs: Any) -> Any:
        return Draft(self.value.all(*args, **kwargs)) if args or kwargs else False

"""A namespace whose arrays can be written to, for kernels that write into arrays as NumPy's do.

A `Draft` holds a JAX array and takes another one where NumPy would change the memory: `out *= 2`, `xp.exp(x, out=x)`,
`out[...] = x`. Of parts picked by a mask (`far = (x > 2).nonzero()[0]`, then `out[far] = f(x[far])`) f is computed of all
elements, and the mask chooses: shapes do not depend on values. For the same reason the question whether there is any such
element has the answer yes, and whether all are such, no: in these kernels both only save work. What is written into a part
that is neither picked by a mask nor assigned to (`part = out[:1]; part += x`) is lost.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..namespace import namespace
from . import elementwise


class Chosen:
    """The indices of the elements where a mask is true."""

    size = 1

    def __init__(self, mask: Any) -> None:
        self.mask = mask


class Draft:
    """An array of a text that writes into arrays; results of operators and NumPy's functions are drafts, too."""

    __array_ufunc__ = None  # NumPy's arrays and scalars leave operators to the draft

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.value, name)
        return drafting(found) if callable(found) and name != "dtype" else drafted(found)

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


def is_mask(index: Any) -> bool:
    return getattr(index, "dtype", None) == np.bool


def plain(value: Any) -> Any:
    """The JAX array of a draft, also in tuples and lists; anything else as it is."""
    if isinstance(value, Draft):
        return value.value
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def drafted(value: Any) -> Any:
    if isinstance(value, jax.Array):
        return Draft(value)
    return type(value)(map(drafted, value)) if type(value) in (tuple, list) else value


def drafting(function: Callable[..., Any]) -> Callable[..., Any]:
    """One of JAX's functions with NumPy's `out` and `where`, on drafts and to drafts."""

    def run(*args: Any, out: Draft | None = None, where: Any = True, **kwargs: Any) -> Any:
        result = function(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
        if out is None:
            return drafted(result)
        chosen = result if where is True else jnp.where(plain(where), result, out.value)
        out.value = jnp.broadcast_to(chosen, out.value.shape).astype(out.value.dtype)
        return out

    return run


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(draft: Draft, other: Any) -> Draft:
        draft.value = function(draft.value, plain(other)).astype(draft.value.dtype)
        return draft

    return run


def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda draft, other: Draft(function(plain(other), draft.value))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    _function = getattr(operator, f"__{_name}__")
    setattr(Draft, f"__{_name}__", drafting(_function))
    setattr(Draft, f"__r{_name}__", reflected(_function))
    setattr(Draft, f"__i{_name}__", in_place(_function))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "abs", "invert"):
    setattr(Draft, f"__{_name}__", drafting(getattr(operator, f"__{_name}__")))


def as_array(x: Any, dtype: Any = None) -> Any:
    return x if isinstance(x, Draft) and dtype in (None, x.dtype) else drafted(jnp.asarray(plain(x), dtype))


def in_chunks(kernel: Callable[[Draft, Draft], None], x: Draft) -> Draft:
    """The whole array as one chunk."""
    out = Draft(jnp.zeros_like(x.value))
    kernel(x, out)
    return out


def by_part(x: Any, near: Draft, inside: Callable[[Any], Draft], outside: Callable[[Any], Draft]) -> Draft:
    """Both functions run on all elements, and the mask chooses."""
    return Draft(jnp.where(near.value, inside(x).value, outside(x).value))


def in_columns(function: Callable[..., Draft], arguments: Sequence[Any], *params: int) -> Draft:
    """function(columns, *params) in float64 of arrays that broadcast, all at once."""
    arrays = [jnp.asarray(plain(v)) for v in arguments]
    wide = jnp.broadcast_arrays(*[a.astype(jnp.float64) for a in arrays])
    columns = function(*[Draft(a.reshape(-1, 1)) for a in wide], *params).value
    return Draft(columns[:, 0].reshape(wide[0].shape).astype(jnp.result_type(*arrays)))


def most(x: Any, bound: int) -> int:
    return bound


DRAFTS = namespace(
    jnp, drafting, asarray=as_array, by_part=by_part, in_chunks=in_chunks, in_columns=in_columns, most=most,
    erfinv=drafting(elementwise.erfinv), ndtr=drafting(elementwise.ndtr),
)  # fmt: skip


def on_drafts(kernel: Callable[..., Any], arity: int) -> Callable[..., Any]:
    """A kernel that takes a namespace first as a function on JAX's arrays; compiled, since it has many steps."""

    @functools.partial(jax.jit, inline=True, static_argnums=0)
    def compiled(params: tuple[Any, ...], *arrays: Any) -> Any:
        return plain(kernel(DRAFTS, *map(Draft, arrays), *params))

    return lambda *operands: compiled(operands[arity:], *operands[:arity])

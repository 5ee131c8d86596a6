"""Convolutions: three bilinear records, each the derivative of one trilinear form by one of its arguments.

`kernels.convolution` states the form. Its derivatives are these records again, so they are right at every order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels import convolution
from ..kernels.convolution import _biased
from . import batching
from .define import define
from .samples import conv as samples

Sizes = tuple[int, ...]
GEOMETRY = ("sizes", "stride", "padding", "dilation", "groups")


def _forward_of(name: str) -> Callable[..., Any]:
    """The derivative of a convolution with a bias, forwards."""

    def jvp(xp: Any, ts: Any, ans: Any, x: Any, w: Any, b: Any, *params: Any) -> Any:
        run = getattr(xp, name)
        parts = [run(a, c, *params) for a, c in ((ts[0], w), (x, ts[1])) if a is not None and c is not None]
        if ts[2] is not None:
            parts.append(xp.reshape(ts[2], (1, *ts[2].shape, *(1,) * (len(ans.shape) - 2))))
            parts = parts if len(parts) > 1 else [xp.expand(parts[0], ans.shape)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    return jvp


def _but_channels(rank: int) -> Sizes:
    return (0, *range(2, rank))


_conv = define(
    "conv", "bilinear", convolution.conv,
    (lambda xp, g, ans, x, w, sizes, *rest: xp.conv_input(g, xp.conj(w), x.shape[2:], *rest),
     lambda xp, g, ans, x, w, sizes, *rest: xp.conv_weight(xp.conj(x), g, w.shape[2:], *rest)),
     jax="windows.conv", saves=("w x.shape", "x w.shape"),
    arity=2, params=GEOMETRY, display="Convolution", batch=batching.convolution("x", "w", "y"), samples=samples.CONV,
)  # fmt: skip
_conv_input = define(
    "conv_input", "bilinear", convolution.conv_input,
    (lambda xp, g, ans, y, w, sizes, *rest: xp.conv(g, xp.conj(w), y.shape[2:], *rest),
     lambda xp, g, ans, y, w, sizes, *rest: xp.conv_weight(g, xp.conj(y), w.shape[2:], *rest)),
     jax="windows.conv_input", saves=("w y.shape", "y w.shape"),
    arity=2, params=GEOMETRY, display="Convolution", batch=batching.convolution("y", "w", "x"), samples=samples.CONV_INPUT,
)  # fmt: skip
define(
    "conv_weight", "bilinear", convolution.conv_weight,
    (lambda xp, g, ans, x, y, sizes, *rest: xp.conv_input(xp.conj(y), g, x.shape[2:], *rest),
     lambda xp, g, ans, x, y, sizes, *rest: xp.conv(xp.conj(x), g, y.shape[2:], *rest)),
     jax="windows.conv_weight", saves=("y x.shape", "x y.shape"),
    arity=2, params=GEOMETRY, display="Convolution", batch=batching.convolution("x", "y", "w"), samples=samples.CONV_WEIGHT,
)  # fmt: skip
# The same with a bias, added in place.
_conv_bias = define(
    "conv_bias", "general", _biased(convolution.conv),
    (lambda xp, g, ans, x, w, b, sizes, *rest: xp.conv_input(g, xp.conj(w), x.shape[2:], *rest),
     lambda xp, g, ans, x, w, b, sizes, *rest: xp.conv_weight(xp.conj(x), g, w.shape[2:], *rest),
     lambda xp, g, ans, x, w, b, sizes, *rest: xp.sum(g, _but_channels(len(g.shape)), False)),
     jax="windows.conv_bias", saves=("w x.shape", "x w.shape", ""), constant_in=("", "", "x w"),
    arity=3, params=GEOMETRY, display="Convolution", batch=batching.convolution("x", "w", "y"),
    jvp=_forward_of("conv"), samples=samples.CONV_BIAS,
)  # fmt: skip
_conv_transpose_bias = define(
    "conv_transpose_bias", "general", _biased(convolution.conv_input),
    (lambda xp, g, ans, y, w, b, sizes, *rest: xp.conv(g, xp.conj(w), y.shape[2:], *rest),
     lambda xp, g, ans, y, w, b, sizes, *rest: xp.conv_weight(g, xp.conj(y), w.shape[2:], *rest),
     lambda xp, g, ans, y, w, b, sizes, *rest: xp.sum(g, _but_channels(len(g.shape)), False)),
     jax="windows.conv_transpose_bias", saves=("w y.shape", "y w.shape", ""), constant_in=("", "", "y w"),
    arity=3, params=GEOMETRY, display="Convolution", batch=batching.convolution("y", "w", "x"),
    jvp=_forward_of("conv_input"), samples=samples.CONV_TRANSPOSE_BIAS,
)  # fmt: skip

"""Records of activation functions."""

from __future__ import annotations

from ..kernels import activations
from ..kernels.activations import _exponential_linear
from .define import define, unary
from .samples import activation as samples
from .samples.common import ANALYTIC, REAL

# ------------------------------------------------------------------------------------------------------------- records

_hardtanh = define(
    "hardtanh",
    "elementwise",
    lambda xp, x, lo, hi: xp.clip(x, lo, hi),
    # 0 at both limits
    (lambda xp, ans, x, lo, hi: xp.logical_not(xp.logical_or(xp.le(x, lo), xp.ge(x, hi))),),
    saves="x",
    constant_in="x",
    params=("min_val", "max_val"),
    samples=samples.HARDTANH,
)


# elu of a scaled argument, scaled: celu and selu
_scaled_elu = define(
    "scaled_elu",
    "elementwise",
    _exponential_linear,
    (
        lambda xp, ans, x, alpha, scale, rate: xp.where(
            xp.gt(x, 0.0), scale, (alpha * scale * rate) * xp.exp(-rate * xp.relu(-x))
        ),
    ),
    saves="x",
    params=("alpha", "scale", "input_scale"),
    samples=samples.SCALED_ELU,
)
_softsign = unary(
    "softsign",
    lambda xp, x: x / (xp.abs(x) + 1.0),
    lambda xp, ans, x: xp.square(xp.reciprocal(xp.abs(x) + 1.0)),
    "",
    saves="x",
    display="Div",
    samples=REAL,
)
tanhshrink = unary(
    "tanhshrink",
    activations.tanhshrink,
    lambda xp, ans, x: xp.square(xp.tanh(x)),
    """Elementwise input - tanh(input); it and its derivative are exact near 0, where the difference would lose its digits.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(square(tanh(input)))

    Example:
        >>> tg.nn.functional.tanhshrink(tg.tensor([0.0, 1.0, 1e-3]))
        tensor([0.0000e+00, 2.3841e-01, 3.3333e-10])
    """,
    jax="elementwise.tanhshrink",
    saves="x",
    display="Sub",
    samples=ANALYTIC,
)


_hardswish = unary(
    "hardswish",
    activations.hardswish,
    lambda xp, ans, x: xp.hardswish_slope(x),
    "",
    jax="elementwise.hardswish",
    saves="x",
    samples=samples.HARDSWISH,
)
unary(
    "hardswish_slope", activations.hardswish_slope,
    lambda xp, ans, x: xp.by_sign(3.0 - xp.abs(x), 1.0 / 3.0, 0.0),
    """Elementwise 0 up to -3, 1 from 3 on, and input / 3 + 1 / 2 between.""",
    jax="elementwise.hardswish_slope", constant_in="", saves="x", samples=samples.HARDSWISH,
)  # fmt: skip

"""Activation functions under the names and signatures of torch.nn.functional.

The public functions of the records in `table.activation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from ..core.warning import warn
from ..kernels.shape import dim_of, shape_of
from ..modes import no_grad
from ..table import elementwise as elementwise_records
from ..table.activation import _hardswish, _hardtanh, _scaled_elu, _softsign
from . import casting, create, elementwise, reduce
from .arguments import with_grad_fn_name
from .grad_fn_names import set_grad_fn_name
from .inplace import run_in_place
from .operands import floating, half_in_float32, number_fits, of_one_dtype, tensor


def applied(name: str, function: Callable[..., Any], input: Any, inplace: bool, *args: Any) -> Any:
    """function(input, *args), written into input where asked to."""
    if inplace:
        return run_in_place(input, name, function, None, args, {})
    return function(input, *args)


# --------------------------------------------------------------------------------------------------- piecewise linear


def relu(input: Any, inplace: bool = False) -> Any:
    """max(input, 0); its derivative at 0 is 0."""
    return applied("relu", elementwise_records.relu, input, True) if inplace else elementwise_records.relu(input)


def _leaky_relu(x: Any, negative_slope: float) -> Any:
    return TABLE["leaky_relu"].call(tensor(x), float(negative_slope))


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """input where positive, else negative_slope * input."""
    return applied("leaky_relu", _leaky_relu, input, True, negative_slope) if inplace else _leaky_relu(input, negative_slope)


@with_grad_fn_name("ThresholdBackward0", linked=True)
def _threshold(x: Any, threshold: float, value: float) -> Any:
    x = floating(x, "threshold_cpu", "c")
    return elementwise.where(elementwise.le(x, threshold), value, x)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """input where it is above threshold, else value."""
    x = tensor(input)
    if x._d.dtype.kind in "iu":
        number_fits(value, x._d.dtype)
        threshold, value = int(threshold), int(value)
    return applied("threshold", _threshold, x, inplace, threshold, value)


def _limited(x: Any, min_val: float, max_val: float) -> Any:
    x = tensor(x)
    if x._d.dtype.kind in "biuc":
        return elementwise.clamp(x, int(min_val), int(max_val))
    return _hardtanh(x, min_val, max_val)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """input limited to [min_val, max_val]; its derivative is 0 at both limits and beyond.

    Raises:
        ValueError: if min_val is greater than max_val.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return applied("hardtanh", _limited, input, inplace, min_val, max_val)


def relu6(input: Any, inplace: bool = False) -> Any:
    """input limited to [0, 6]; its derivative is 0 at both limits."""
    return applied("relu6", _limited, input, inplace, 0.0, 6.0)


@with_grad_fn_name("HardsigmoidBackward0", linked=True)
def _hardsigmoid(x: Any) -> Any:
    return _limited(floating(x, "hardsigmoid_cpu") + 3.0, 0.0, 6.0) / 6.0


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """relu6(input + 3) / 6."""
    return applied("hardsigmoid", _hardsigmoid, input, inplace)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """input * relu6(input + 3) / 6."""
    return applied("hardswish", _hardswish, floating(input, "hardswish_cpu"), inplace)


@with_grad_fn_name("HardshrinkBackward0", linked=True)
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """input where it is outside [-lambd, lambd], else 0."""
    x = floating(input, "hardshrink_cpu")
    inside = elementwise.logical_and(elementwise.ge(x, -lambd), elementwise.le(x, lambd))
    return elementwise.where(inside, 0.0, x)


@with_grad_fn_name("SoftshrinkBackward0", linked=True)
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """input moved by lambd towards 0, and 0 in [-lambd, lambd].

    Raises:
        RuntimeError: for a negative lambd.
    """
    x = floating(input, "softshrink_check")
    if lambd < 0:
        top, kind = np.finfo(x._d.dtype).max, errors.dtype_name(x._d.dtype)
        raise RuntimeError(f"lambda must be in range [0, {top:g}] for input dtype {kind}, but found {lambd:g}")
    return x - elementwise.clamp(x, -lambd, lambd)


@with_grad_fn_name("PreluKernelBackward0", linked=True)
@casting.in_16_bits
def prelu(input: Any, weight: Any) -> Any:
    """input where positive, else weight * input; weight has one element, or one for each channel (dimension 1).

    Raises:
        RuntimeError: for a weight of another size.
    """
    x, w = floating(input, "prelu_cpu"), tensor(weight)
    of_one_dtype("prelu: Type promoting not supported. Got", x, w)
    sizes, count = shape_of(x), shape_of(w)
    if len(count) > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {len(count)}")
    if count and count[0] != 1:
        if not sizes:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = sizes[1] if len(sizes) > 1 else 1
        if count[0] != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count[0]} and channel "
                f"size = {channels}."
            )
        w = TABLE["reshape"].call(w, (count[0],) + (1,) * (len(sizes) - 2))
    elif count:
        w = TABLE["reshape"].call(w, ())
    return elementwise.where(elementwise.gt(x, 0.0), x, w * x)


def _rrelu(x: Any, lower: float, upper: float, training: bool) -> Any:
    if not training:
        return _leaky_relu(floating(x, "leaky_relu_cpu"), (lower + upper) / 2)
    x = floating(x, "rrelu_with_noise_out_cpu")

    def slopes(generator: Any, values: Any) -> Any:
        negative = values <= 0
        drawn = np.ones(values.shape, values.dtype)
        drawn[negative] = generator.uniform(int(negative.sum()), np.float64, lower, upper)
        return drawn

    return set_grad_fn_name("RreluWithNoiseBackward0", x * create.drawn_from(slopes, x), linked=True)


def rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Any:
    """input where positive, else input times a slope: drawn from [lower, upper) if training, else their middle.

    Raises:
        RuntimeError: if lower is greater than upper.
    """
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return applied("rrelu", _rrelu, input, inplace, lower, upper, training)


# ---------------------------------------------------------------------------------------------------------- smooth ones


def _elu(x: Any, alpha: float) -> Any:
    return TABLE["elu"].call(tensor(x), float(alpha))


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """input where positive, else alpha * (exp(input) - 1)."""
    return applied("elu", _elu, input, inplace, alpha)


@with_grad_fn_name("CeluBackward0")
def _celu(x: Any, alpha: float) -> Any:
    return _scaled_elu(floating(x, "elu_cpu"), float(alpha), 1.0, 1.0 / alpha)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """input where positive, else alpha * (exp(input / alpha) - 1).

    Raises:
        RuntimeError: for alpha 0.
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return applied("celu", _celu, input, inplace, alpha)


# Klambauer et al. 2017: with these, normal inputs keep mean 0 and variance 1
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@with_grad_fn_name("EluBackward0")
def _selu(x: Any) -> Any:
    return _scaled_elu(floating(x, "elu_cpu"), SELU_ALPHA, SELU_SCALE, 1.0)


def selu(input: Any, inplace: bool = False) -> Any:
    """elu with the alpha and scale that keep normal inputs normal (Klambauer et al. 2017)."""
    return applied("selu", _selu, input, inplace)


def _silu(x: Any) -> Any:
    x = tensor(x)
    return x * elementwise_records.sigmoid(x) if x._d.dtype.kind == "c" else elementwise_records.silu(x)


def silu(input: Any, inplace: bool = False) -> Any:
    """input * sigmoid(input)."""
    return applied("silu", _silu, input, inplace)


@with_grad_fn_name("MishBackward0")
@half_in_float32
def _mish(x: Any) -> Any:
    return x * elementwise_records.tanh(elementwise_records._softplus(x, 1.0, math.inf))


def mish(input: Any, inplace: bool = False) -> Any:
    """input * tanh(softplus(input))."""
    return applied("mish", _mish, floating(input, "mish_cpu"), inplace)


def gelu(input: Any, approximate: str = "none") -> Any:
    """input times the normal distribution function; approximate="tanh" takes the tanh form."""
    if approximate == "none":
        return TABLE["gelu"].call(input)
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return TABLE["gelu_tanh"].call(input)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta * input)) / beta; the identity where beta * input > threshold, as in PyTorch."""
    return TABLE["softplus"].call(tensor(input), float(beta), float(threshold))


def sigmoid(input: Any) -> Any:
    """The logistic function 1 / (1 + exp(-input))."""
    return elementwise_records.sigmoid(input)


def tanh(input: Any) -> Any:
    """Hyperbolic tangent."""
    return elementwise_records.tanh(input)


def softsign(input: Any) -> Any:
    """input / (1 + |input|)."""
    x = tensor(input)
    return x / (elementwise_records.abs(x) + 1) if x.is_complex() else _softsign(x)


@with_grad_fn_name("GluBackward0")
def glu(input: Any, dim: int = -1) -> Any:
    """First half of input along dim times the sigmoid of the second.

    Raises:
        RuntimeError: for a dimension of odd size, or a 0-dim input.
    """
    x = tensor(input)
    sizes = shape_of(x)
    if not sizes:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    d = dim_of(dim, len(sizes))
    if sizes[d] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {d} is size {sizes[d]}")
    x, middle = floating(x, "glu_cpu"), sizes[d] // 2
    before, part = (slice(None),) * d, TABLE["split"].call  # no view: a tensor that shares its memory takes longer
    a, b = (part(x, (*before, half, ...)) for half in (slice(middle), slice(middle, None)))
    return a * elementwise_records.sigmoid(b)


# --------------------------------------------------------------------------------------------------------- along a row


def _dim(name: str, input: Any, dim: int | None) -> int:
    if dim is not None:
        return dim
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if len(shape_of(tensor(input))) in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """exp(input) / sum(exp(input)) along dim."""
    return reduce.softmax(input, _dim("softmax", input, dim), dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax of -input along dim."""
    return reduce.softmax(-tensor(input), _dim("softmin", input, dim), dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """log(softmax(input)) along dim, without cancellation."""
    return reduce.log_softmax(input, _dim("log_softmax", input, dim), dtype)


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """A sample of the Gumbel softmax distribution (Jang et al. 2017) along dim.

    Args:
        logits: unnormalised log probabilities.
        tau: temperature.
        hard: one-hot value, with the gradient of the soft sample.
        eps: of no effect.
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    x = tensor(logits)
    with no_grad():
        noise = -elementwise_records.log(create.empty_like(x).exponential_())
    soft = reduce.softmax((x + noise) / tau, dim)
    if not hard:
        return soft
    values = soft.detach() if shape_of(x) else soft.detach().reshape(1)
    one_hot = create.zeros_like(values).scatter(dim, reduce.argmax(values, dim, True), 1.0)
    return one_hot.reshape(shape_of(x)) - soft.detach() + soft


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """Gradient of softmax along dim from the gradient of its output."""
    g, y = tensor(grad_output), tensor(output)
    return y * (g - reduce.sum(g * y, dim, keepdim=True))


# ----------------------------------------------------------------------------------------------------------- in place


def relu_(input: Any) -> Any:
    """relu written into input."""
    return relu(input, True)


def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Any:
    """leaky_relu written into input."""
    return leaky_relu(input, negative_slope, True)


def threshold_(input: Any, threshold: float, value: float) -> Any:
    """threshold written into input."""
    return applied("threshold", _threshold, input, True, threshold, value)


def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """hardtanh written into input."""
    return hardtanh(input, min_val, max_val, True)


def rrelu_(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Any:
    """rrelu written into input."""
    return rrelu(input, lower, upper, training, True)


def elu_(input: Any, alpha: float = 1.0) -> Any:
    """elu written into input."""
    return elu(input, alpha, True)


def celu_(input: Any, alpha: float = 1.0) -> Any:
    """celu written into input."""
    return celu(input, alpha, True)


def selu_(input: Any) -> Any:
    """selu written into input."""
    return selu(input, True)

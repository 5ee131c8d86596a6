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
    """Elementwise max(input, 0); its derivative at 0 is 0.

    Args:
        input: float or integer tensor of any shape; the result has its dtype.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for complex numbers.
        RuntimeError: for bools.

    Derivative:
        input: g * (result != 0)

    Example:
        >>> tg.nn.functional.relu(tg.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return applied("relu", elementwise_records.relu, input, True) if inplace else elementwise_records.relu(input)


def _leaky_relu(x: Any, negative_slope: float) -> Any:
    return TABLE["leaky_relu"].call(tensor(x), float(negative_slope))


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Elementwise input where it is positive, else negative_slope * input; at 0 the derivative is negative_slope.

    Args:
        input: float tensor of any shape; the result has its dtype.
        negative_slope: a number, default 0.01.
        inplace: write the result into input.

    Derivative:
        input: g * where(input > 0, 1, negative_slope)

    Example:
        >>> tg.nn.functional.leaky_relu(tg.tensor([-1.0, 0.0, 2.0]), 0.1)
        tensor([-0.1000,  0.0000,  2.0000])
    """
    return applied("leaky_relu", _leaky_relu, input, True, negative_slope) if inplace else _leaky_relu(input, negative_slope)


@with_grad_fn_name("ThresholdBackward0", linked=True)
def _threshold(x: Any, threshold: float, value: float) -> Any:
    x = floating(x, "threshold_cpu", "c")
    return elementwise.where(elementwise.le(x, threshold), value, x)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Elementwise input where it is above threshold, else value; the derivative is 1 above the threshold, else 0.

    Args:
        input: real tensor of any shape; the result has its dtype.
        threshold, value: numbers.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for complex numbers.

    Example:
        >>> tg.nn.functional.threshold(tg.tensor([0.1, 0.5, 2.0]), 0.5, -1.0)
        tensor([-1., -1.,  2.])
    """
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
    """Elementwise min(max(input, min_val), max_val); its derivative is 0 at both limits and beyond.

    Args:
        input: real tensor of any shape.
        min_val, max_val: the limits, default -1 and 1.
        inplace: write the result into input.

    Raises:
        ValueError: if min_val is greater than max_val.
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * ~((input <= min_val) | (input >= max_val))

    Example:
        >>> tg.nn.functional.hardtanh(tg.tensor([-3.0, 0.5, 1.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return applied("hardtanh", _limited, input, inplace, min_val, max_val)


def relu6(input: Any, inplace: bool = False) -> Any:
    """Elementwise min(max(input, 0), 6); its derivative is 0 at both limits.

    Args:
        input: real tensor of any shape.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for complex numbers.

    Example:
        >>> tg.nn.functional.relu6(tg.tensor([-3.0, 0.5, 7.0]))
        tensor([0.0000, 0.5000, 6.0000])
    """
    return applied("relu6", _limited, input, inplace, 0.0, 6.0)


@with_grad_fn_name("HardsigmoidBackward0", linked=True)
def _hardsigmoid(x: Any) -> Any:
    return _limited(floating(x, "hardsigmoid_cpu") + 3.0, 0.0, 6.0) / 6.0


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """Elementwise relu6(input + 3) / 6: sigmoid in three straight parts; its derivative is 0 at -3 and 3.

    Args:
        input: float tensor of any shape; the result has its dtype.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.hardsigmoid(tg.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """
    return applied("hardsigmoid", _hardsigmoid, input, inplace)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """Elementwise input * relu6(input + 3) / 6.

    Args:
        input: float tensor of any shape; the result has its dtype.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for other dtypes.

    Derivative:
        input: g * hardswish_slope(input), where hardswish_slope: 0 up to -3, 1 from 3 on, and input / 3 + 1 / 2 between

    Example:
        >>> tg.nn.functional.hardswish(tg.tensor([-4.0, -1.0, 2.0]))
        tensor([-0.0000, -0.3333,  1.6667])
    """
    return applied("hardswish", _hardswish, floating(input, "hardswish_cpu"), inplace)


@with_grad_fn_name("HardshrinkBackward0", linked=True)
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Elementwise input where it is outside [-lambd, lambd], else 0; there its derivative is 0.

    Args:
        input: float tensor of any shape; the result has its dtype.
        lambd: a number, default 0.5.

    Raises:
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.hardshrink(tg.tensor([-0.6, 0.2, 0.5]))
        tensor([-0.6000,  0.0000,  0.0000])
    """
    x = floating(input, "hardshrink_cpu")
    inside = elementwise.logical_and(elementwise.ge(x, -lambd), elementwise.le(x, lambd))
    return elementwise.where(inside, 0.0, x)


@with_grad_fn_name("SoftshrinkBackward0", linked=True)
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Elementwise input moved by lambd towards 0, and 0 in [-lambd, lambd]; there its derivative is 0.

    Args:
        input: float tensor of any shape; the result has its dtype.
        lambd: a number >= 0, default 0.5.

    Raises:
        RuntimeError: for a negative lambd.
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.softshrink(tg.tensor([-0.75, 0.2, 1.0]))
        tensor([-0.2500,  0.0000,  0.5000])
    """
    x = floating(input, "softshrink_check")
    if lambd < 0:
        top, kind = np.finfo(x._d.dtype).max, errors.dtype_name(x._d.dtype)
        raise RuntimeError(f"lambda must be in range [0, {top:g}] for input dtype {kind}, but found {lambd:g}")
    return x - elementwise.clamp(x, -lambd, lambd)


@with_grad_fn_name("PreluKernelBackward0", linked=True)
@casting.in_16_bits
def prelu(input: Any, weight: Any) -> Any:
    """Elementwise input where it is positive, else weight * input.

    Args:
        input: float tensor of any shape.
        weight: tensor of input's dtype with one element, or with one for each channel (dimension 1 of input).

    Raises:
        RuntimeError: for a weight of another size or dtype.
        NotImplementedError: for other dtypes.

    Example:
        >>> w = tg.tensor([0.25], requires_grad=True)
        >>> tg.nn.functional.prelu(tg.tensor([-2.0, 3.0]), w).sum().backward()
        >>> w.grad
        tensor([-2.])
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
    """Elementwise input where it is positive, else input times a slope: if training a random one, else (lower + upper) / 2.

    Args:
        input: float tensor of any shape.
        lower, upper: the slopes are drawn from [lower, upper), default [1/8, 1/3).
        training: whether to draw slopes.
        inplace: write the result into input.

    Raises:
        RuntimeError: if lower is greater than upper.
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.rrelu(tg.tensor([-24.0, 3.0]))
        tensor([-5.5000,  3.0000])
    """
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return applied("rrelu", _rrelu, input, inplace, lower, upper, training)


# ---------------------------------------------------------------------------------------------------------- smooth ones


def _elu(x: Any, alpha: float) -> Any:
    return TABLE["elu"].call(tensor(x), float(alpha))


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Elementwise input where it is positive, else alpha * (exp(input) - 1).

    At 0 the derivative is alpha.

    Args:
        input: float tensor of any shape; the result has its dtype.
        alpha: a number, default 1.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for other dtypes.

    Derivative:
        input: g * where(input > 0, 1, alpha * exp(input))

    Example:
        >>> tg.nn.functional.elu(tg.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """
    return applied("elu", _elu, input, inplace, alpha)


@with_grad_fn_name("CeluBackward0")
def _celu(x: Any, alpha: float) -> Any:
    return _scaled_elu(floating(x, "elu_cpu"), float(alpha), 1.0, 1.0 / alpha)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Elementwise input where it is positive, else alpha * (exp(input / alpha) - 1); its derivative is 1 at 0.

    Args:
        input: float tensor of any shape; the result has its dtype.
        alpha: a number but 0, default 1.
        inplace: write the result into input.

    Raises:
        RuntimeError: for alpha 0.
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.celu(tg.tensor([-1.0, 0.0, 2.0]), alpha=2.0)
        tensor([-0.7869,  0.0000,  2.0000])
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
    """Elementwise scale * (input where it is positive, else alpha * (exp(input) - 1)).

    With scale 1.0507 and alpha 1.6733 normal inputs keep mean 0 and variance 1 (Klambauer et al. 2017).

    Args:
        input: float tensor of any shape; the result has its dtype.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.selu(tg.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """
    return applied("selu", _selu, input, inplace)


def _silu(x: Any) -> Any:
    x = tensor(x)
    return x * elementwise_records.sigmoid(x) if x._d.dtype.kind == "c" else elementwise_records.silu(x)


def silu(input: Any, inplace: bool = False) -> Any:
    """Elementwise input * sigmoid(input), also called swish.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.
        inplace: write the result into input.

    Derivative:
        input: g * conj(sigmoid(input) * (1 + input * sigmoid(-input)))

    Example:
        >>> tg.nn.functional.silu(tg.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """
    return applied("silu", _silu, input, inplace)


@with_grad_fn_name("MishBackward0")
@half_in_float32
def _mish(x: Any) -> Any:
    return x * elementwise_records.tanh(elementwise_records._softplus(x, 1.0, math.inf))


def mish(input: Any, inplace: bool = False) -> Any:
    """Elementwise input * tanh(log(1 + exp(input))).

    Args:
        input: float tensor of any shape; the result has its dtype.
        inplace: write the result into input.

    Raises:
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.mish(tg.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """
    return applied("mish", _mish, floating(input, "mish_cpu"), inplace)


def gelu(input: Any, approximate: str = "none") -> Any:
    """Elementwise input * ndtr(input), of the standard normal distribution function ndtr.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.
        approximate: "none", or "tanh" for input / 2 * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input**3))).

    Raises:
        RuntimeError: for another approximation.
        TypeError: for complex numbers.

    Example:
        >>> tg.nn.functional.gelu(tg.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1587,  0.0000,  1.9545])
        >>> tg.nn.functional.gelu(tg.tensor([-1.0, 0.0, 2.0]), approximate="tanh")
        tensor([-0.1588,  0.0000,  1.9546])
    """
    if approximate == "none":
        return TABLE["gelu"].call(input)
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return TABLE["gelu_tanh"].call(input)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Elementwise log(1 + exp(beta * input)) / beta, without overflow: a smooth form of relu.

    Where beta * input > threshold it is input itself, with derivative 1, as in PyTorch.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.
        beta: a number > 0, default 1: the larger, the closer to relu.
        threshold: a number, default 20; inf for no threshold.

    Raises:
        TypeError: for complex numbers.

    Derivative:
        input: g * where(beta * input > threshold, 1, sigmoid(beta * input))

    Example:
        >>> tg.softplus(tg.tensor([0.0, 1.0]))
        tensor([0.6931, 1.3133])
        >>> tg.func.grad(tg.softplus)(tg.tensor(0.0))
        tensor(0.5000)
    """
    return TABLE["softplus"].call(tensor(input), float(beta), float(threshold))


def sigmoid(input: Any) -> Any:
    """Elementwise logistic function 1 / (1 + exp(-input)), exact in both tails.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(sigmoid(input) * sigmoid(-input))

    Example:
        >>> tg.nn.functional.sigmoid(tg.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """
    return elementwise_records.sigmoid(input)


def tanh(input: Any) -> Any:
    """Elementwise hyperbolic tangent, in (-1, 1); its derivatives keep their digits where it is nearly 1.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / cosh(input)**2)

    Example:
        >>> tg.nn.functional.tanh(tg.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """
    return elementwise_records.tanh(input)


def softsign(input: Any) -> Any:
    """Elementwise input / (1 + abs(input)).

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Example:
        >>> tg.nn.functional.softsign(tg.tensor([-1.0, 0.0, 3.0]))
        tensor([-0.5000,  0.0000,  0.7500])
    """
    x = tensor(input)
    return x / (elementwise_records.abs(x) + 1) if x.is_complex() else _softsign(x)


@with_grad_fn_name("GluBackward0")
def glu(input: Any, dim: int = -1) -> Any:
    """The first half of input along dim times the sigmoid of the second half.

    Args:
        input: float tensor of even size along dim; the result has half that size.
        dim: the dimension to halve, default the last.

    Raises:
        RuntimeError: for a dimension of odd size, or a 0-dim input.
        NotImplementedError: for other dtypes.

    Example:
        >>> tg.nn.functional.glu(tg.tensor([1.0, 2.0, 0.0, 100.0]))
        tensor([0.5000, 2.0000])
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
    """exp(input) / sum(exp(input)) along dim, without overflow.

    Args:
        input: float tensor.
        dim: the dimension along which the results sum to 1; None (deprecated): 0 or 1, by the number of dimensions.
        dtype: compute in this dtype; integers need one.

    Raises:
        NotImplementedError: for integers and complex numbers without a dtype.
        IndexError: for a dim that input lacks.

    Derivative:
        input: result * (g - sum(result * g, (dim,), True))

    Example:
        >>> tg.nn.functional.softmax(tg.tensor([1.0, 2.0, 1000.0]), dim=0)
        tensor([0., 0., 1.])
        >>> tg.nn.functional.softmax(tg.tensor([[0.0, 1.0], [2.0, 2.0]]), dim=1)
        tensor([[0.2689, 0.7311],
                [0.5000, 0.5000]])
    """
    return reduce.softmax(input, _dim("softmax", input, dim), dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """exp(-input) / sum(exp(-input)) along dim: softmax of -input.

    Args:
        input: float tensor.
        dim: the dimension along which the results sum to 1; None (deprecated): 0 or 1, by the number of dimensions.
        dtype: compute in this dtype; integers need one.

    Raises:
        NotImplementedError: for integers and complex numbers without a dtype.
        IndexError: for a dim that input lacks.

    Example:
        >>> tg.nn.functional.softmin(tg.tensor([[0.0, 1.0], [2.0, 2.0]]), dim=1)
        tensor([[0.7311, 0.2689],
                [0.5000, 0.5000]])
    """
    return reduce.softmax(-tensor(input), _dim("softmin", input, dim), dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """input - log(sum(exp(input))) along dim: the logarithm of softmax, without overflow or cancellation.

    Args:
        input: float tensor.
        dim: the dimension along which the exponentials of the results sum to 1; None (deprecated): 0 or 1, by the number of
            dimensions.
        dtype: compute in this dtype; integers need one.

    Raises:
        NotImplementedError: for integers and complex numbers without a dtype.
        IndexError: for a dim that input lacks.

    Derivative:
        input: g - exp(result) * sum(g, (dim,), True)

    Example:
        >>> tg.nn.functional.log_softmax(tg.tensor([1.0, 2.0, 1000.0]), dim=0)
        tensor([-999., -998.,    0.])
    """
    return reduce.log_softmax(input, _dim("log_softmax", input, dim), dtype)


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """A sample of the Gumbel softmax distribution (Jang et al. 2017): softmax((logits + noise) / tau) along dim.

    Args:
        logits: float tensor of unnormalised log probabilities.
        tau: the temperature: the smaller, the closer to one-hot samples. Default 1.
        hard: give one-hot samples, with the gradient of the soft ones.
        eps: of no effect; deprecated.
        dim: the dimension of the categories, default the last.

    Raises:
        NotImplementedError: for other dtypes.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> tg.nn.functional.gumbel_softmax(tg.tensor([0.0, 0.0, 5.0]), hard=True)
        tensor([0., 0., 1.])
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
    """relu(input) written into input; returns it.

    Args:
        input: as of relu; not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([-1.0, 2.0])
        >>> tg.nn.functional.relu_(x) is x, x
        (True, tensor([0., 2.]))
    """
    return relu(input, True)


def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Any:
    """leaky_relu(input, negative_slope) written into input; returns it.

    Args:
        input, negative_slope: as of leaky_relu; input is not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([-1.0, 2.0])
        >>> tg.nn.functional.leaky_relu_(x, 0.5) is x, x
        (True, tensor([-0.5000,  2.0000]))
    """
    return leaky_relu(input, negative_slope, True)


def threshold_(input: Any, threshold: float, value: float) -> Any:
    """threshold(input, threshold, value) written into input; returns it.

    Args:
        input, threshold, value: as of threshold; input is not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([0.1, 2.0])
        >>> tg.nn.functional.threshold_(x, 0.5, -1.0) is x, x
        (True, tensor([-1.,  2.]))
    """
    return applied("threshold", _threshold, input, True, threshold, value)


def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """hardtanh(input, min_val, max_val) written into input; returns it.

    Args:
        input, min_val, max_val: as of hardtanh; input is not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([-3.0, 0.5])
        >>> tg.nn.functional.hardtanh_(x) is x, x
        (True, tensor([-1.0000,  0.5000]))
    """
    return hardtanh(input, min_val, max_val, True)


def rrelu_(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Any:
    """rrelu(input, lower, upper, training) written into input; returns it.

    Args:
        input, lower, upper, training: as of rrelu; input is not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([-24.0, 3.0])
        >>> tg.nn.functional.rrelu_(x) is x, x
        (True, tensor([-5.5000,  3.0000]))
    """
    return rrelu(input, lower, upper, training, True)


def elu_(input: Any, alpha: float = 1.0) -> Any:
    """elu(input, alpha) written into input; returns it.

    Args:
        input, alpha: as of elu; input is not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([-1.0, 2.0])
        >>> tg.nn.functional.elu_(x) is x, x
        (True, tensor([-0.6321,  2.0000]))
    """
    return elu(input, alpha, True)


def celu_(input: Any, alpha: float = 1.0) -> Any:
    """celu(input, alpha) written into input; returns it.

    Args:
        input, alpha: as of celu; input is not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([-1.0, 2.0])
        >>> tg.nn.functional.celu_(x) is x, x
        (True, tensor([-0.6321,  2.0000]))
    """
    return celu(input, alpha, True)


def selu_(input: Any) -> Any:
    """selu(input) written into input; returns it.

    Args:
        input: as of selu; not a leaf that requires grad.

    Example:
        >>> x = tg.tensor([-1.0, 2.0])
        >>> tg.nn.functional.selu_(x) is x, x
        (True, tensor([-1.1113,  2.1014]))
    """
    return selu(input, True)

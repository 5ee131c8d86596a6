"""Elementwise operations: one derivative expression per argument.

One file over 1,000 lines, since each record holds the docstring of the public function that follows from it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import errors
from ..core import record
from ..core.op import TABLE
from ..core.plain_vjp import RAW_XP, add
from ..core.record import running_trace
from ..dtypes import is_inexact
from ..kernels import activations, devices, gaussian
from ..kernels.elementwise import (
    _at_decimals,
    _atan2_slope,
    _cast,
    _conj,
    _hypot,
    _hypot_slope,
    _keeping_integers,
    _pow_scalar,
    _power,
    _safe_div,
    _strong,
    _truncated,
    _whole,
)
from ..kernels.numpy import cannot_warn, copied
from ..kernels.special import log_sum_exp, log_sum_exp2, share, sigmoid_any
from ..levels import links
from . import batching
from .define import binary, define, unary
from .refusals import Refusal, each, no_kernel, refused_any, refused_as
from .samples import elementwise as samples
from .samples.common import (
    ANALYTIC,
    COMPARED,
    INTEGRAL,
    LOGICAL,
    POSITIVE,
    PREDICATE,
    REAL,
    STEPS,
    UNIT,
)

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
ONE_OVER_SQRT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)

# ----------------------------------------------------------------------------------------------------- comparisons
# Constant: no gradient flows. Rules use them as masks (bool times a cotangent keeps the cotangent's dtype).


def _comparison(name: str, forward: Any, doc: str) -> None:
    define(
        name, "constant", forward, arity=2, refuses=None if name in ("eq", "ne") else no_kernel("c"),
        batch=batching.pointwise, samples=COMPARED, doc=doc,
    )  # fmt: skip


_comparison(
    "eq",
    np.equal,
    """Elementwise input == other; nan equals nothing.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; they are compared in their common dtype.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.eq(tg.tensor([1, 2, 3]), 2)
        tensor([False,  True, False])
    """,
)
_comparison(
    "ne",
    np.not_equal,
    """Elementwise input != other; nan differs from everything.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; they are compared in their common dtype.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.ne(tg.tensor([1, 2, 3]), 2)
        tensor([ True, False,  True])
    """,
)
_comparison(
    "lt",
    np.less,
    """Elementwise input < other; False where either is nan.

    Args:
        input, other: real tensors or numbers, which broadcast; they are compared in their common dtype.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.lt(tg.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
    """,
)
_comparison(
    "le",
    np.less_equal,
    """Elementwise input <= other; False where either is nan.

    Args:
        input, other: real tensors or numbers, which broadcast; they are compared in their common dtype.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.le(tg.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
    """,
)
_comparison(
    "gt",
    np.greater,
    """Elementwise input > other; False where either is nan.

    Args:
        input, other: real tensors or numbers, which broadcast; they are compared in their common dtype.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.gt(tg.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
    """,
)
_comparison(
    "ge",
    np.greater_equal,
    """Elementwise input >= other; False where either is nan.

    Args:
        input, other: real tensors or numbers, which broadcast; they are compared in their common dtype.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.ge(tg.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
    """,
)


def _on_bits(name: str) -> Any:
    """A bitwise forward; it refuses floating-point operands, which come by every path."""

    def run(xp: Any, *operands: Any) -> Any:
        try:
            return getattr(xp, name)(*operands)
        except TypeError:
            dtype = xp.result_type(*operands)
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{errors.dtype_name(dtype)}'") from None

    return run


def _real_only(name: str) -> Refusal:
    complex_input = refused_as("c", f"{name} is not supported for complex inputs", NotImplementedError)
    return each(complex_input, no_kernel("b", f"{name}_vml_cpu"))


NO_SIGN = refused_as(
    "c",
    "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    NotImplementedError,
)
NO_MINUS = each(
    refused_as(
        "b",
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
        "instead.",
    ),
    refused_any(
        "b",
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.",
    ),
)
NO_NEGATION = refused_as(
    "b",
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead.",
)
NO_CLAMP = refused_as("c", "clamp is not supported for complex types", NotImplementedError)

# Steps: the derivative is 0, at the jumps too, as in PyTorch.

sign = unary(
    "sign", lambda x: np.sign(x) if x.dtype.kind != "b" else x.copy(), 0.0,
    """Elementwise sign: -1, 0 or 1; its derivative is 0, at 0 too.

    Args:
        input: real tensor of any shape and dtype; the result has its dtype.

    Raises:
        NotImplementedError: for complex numbers, of which sgn gives the direction.

    Derivative:
        input: 0

    Example:
        >>> tg.sign(tg.tensor([-2.5, 0.0, 3.0]))
        tensor([-1.,  0.,  1.])
    """,
    jax="elementwise.sign", integers="keep", refuses=NO_SIGN, samples=STEPS,
)  # fmt: skip
floor = unary(
    "floor", _keeping_integers("floor"), 0.0,
    """Elementwise largest whole number not above input; its derivative is 0, at the jumps too.

    Args:
        input: real tensor of any shape; of integers it gives the values themselves.

    Raises:
        NotImplementedError: for complex numbers and bools.

    Derivative:
        input: 0

    Example:
        >>> tg.floor(tg.tensor([-1.5, 0.5, 2.0]))
        tensor([-2.,  0.,  2.])
    """,
    integers="keep", refuses=_real_only("floor"), samples=STEPS,
)  # fmt: skip
ceil = unary(
    "ceil", _keeping_integers("ceil"), 0.0,
    """Elementwise smallest whole number not below input; its derivative is 0, at the jumps too.

    Args:
        input: real tensor of any shape; of integers it gives the values themselves.

    Raises:
        NotImplementedError: for complex numbers and bools.

    Derivative:
        input: 0

    Example:
        >>> tg.ceil(tg.tensor([-1.5, 0.5, 2.0]))
        tensor([-1.,  1.,  2.])
    """,
    integers="keep", refuses=_real_only("ceil"), samples=STEPS,
)  # fmt: skip
trunc = unary(
    "trunc", _keeping_integers("trunc"), 0.0,
    """Elementwise whole part, rounded towards 0; its derivative is 0, at the jumps too.

    Args:
        input: real tensor of any shape; of integers it gives the values themselves.

    Raises:
        NotImplementedError: for complex numbers and bools.

    Derivative:
        input: 0

    Example:
        >>> tg.trunc(tg.tensor([-1.5, 0.5, 2.0]))
        tensor([-1.,  0.,  2.])
    """,
    integers="keep",
    refuses=_real_only("trunc"), samples=STEPS,
)  # fmt: skip
_round = define(
    "round", "elementwise", _keeping_integers("rint"), (0.0,), refuses=no_kernel("cb", "round_vml_cpu"), samples=STEPS
)


_round_decimals = define(
    "round_decimals", "elementwise", _at_decimals, (0.0,), display="Round",
    refuses=no_kernel("cbiu", "round_cpu"), samples=samples.ROUND_DECIMALS,
)  # fmt: skip


def _predicate(name: str, forward: Any, doc: str, samples: Any) -> None:
    define(name, "constant", forward, batch=batching.pointwise, samples=samples, doc=doc)


_predicate(
    "isnan",
    np.isnan,
    """Elementwise: whether the element is nan, of a complex number either part.

    Args:
        input: tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isnan(tg.tensor([1.0, tg.nan, tg.inf]))
        tensor([False,  True, False])
    """,
    PREDICATE,
)
_predicate(
    "isinf",
    np.isinf,
    """Elementwise: whether the element is inf or -inf, of a complex number either part.

    Args:
        input: tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isinf(tg.tensor([1.0, tg.nan, -tg.inf]))
        tensor([False, False,  True])
    """,
    PREDICATE,
)
_predicate(
    "isfinite",
    np.isfinite,
    """Elementwise: whether the element is neither nan nor infinite, of a complex number both parts.

    Args:
        input: tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.isfinite(tg.tensor([1.0, tg.nan, tg.inf]))
        tensor([ True, False, False])
    """,
    PREDICATE,
)
_predicate(
    "logical_not",
    np.logical_not,
    """Elementwise negation: True where input is 0.

    Args:
        input: tensor of any shape and dtype.

    Returns:
        A bool tensor of input's shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.logical_not(tg.tensor([0.0, 2.0, tg.nan]))
        tensor([ True, False, False])
    """,
    INTEGRAL,
)
_predicate(
    "bitwise_not", _on_bits("bitwise_not"),
    """Elementwise negation of each bit, -input - 1 for signed integers; of bools the logical negation.

    Args:
        input: integer or bool tensor of any shape; the result has its dtype.

    Raises:
        NotImplementedError: for floating-point or complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.bitwise_not(tg.tensor([0, 5, -1]))
        tensor([-1, -6,  0])
    """,
    samples.BITWISE_NOT,
)  # fmt: skip


def _logical(name: str, forward: Any, doc: str) -> None:
    define(name, "constant", forward, arity=2, batch=batching.pointwise, samples=LOGICAL, doc=doc)


_logical(
    "logical_and",
    np.logical_and,
    """Elementwise: whether input and other are both true.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; what is not 0 counts as true.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.logical_and(tg.tensor([True, True, False]), tg.tensor([2, 0, 1]))
        tensor([ True, False, False])
    """,
)
_logical(
    "logical_or",
    np.logical_or,
    """Elementwise: whether input or other is true, or both.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; what is not 0 counts as true.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.logical_or(tg.tensor([True, False, False]), tg.tensor([2, 0, 1]))
        tensor([ True, False,  True])
    """,
)
_logical(
    "logical_xor",
    np.logical_xor,
    """Elementwise: whether exactly one of input and other is true.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; what is not 0 counts as true.

    Returns:
        A bool tensor of the broadcast shape.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.logical_xor(tg.tensor([True, False, False]), tg.tensor([2, 0, 1]))
        tensor([False, False,  True])
    """,
)
_logical(
    "bitwise_and",
    _on_bits("bitwise_and"),
    """Elementwise: the bits that input and other both have; of bools the logical `and`.

    Args:
        input, other: integer or bool tensors, or numbers, which broadcast.

    Raises:
        NotImplementedError: for floating-point or complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.bitwise_and(tg.tensor([5, 6]), 3)
        tensor([1, 2])
    """,
)
_logical(
    "bitwise_or",
    _on_bits("bitwise_or"),
    """Elementwise: the bits that input or other has; of bools the logical `or`.

    Args:
        input, other: integer or bool tensors, or numbers, which broadcast.

    Raises:
        NotImplementedError: for floating-point or complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.bitwise_or(tg.tensor([5, 6]), 3)
        tensor([7, 7])
    """,
)
_logical(
    "bitwise_xor",
    _on_bits("bitwise_xor"),
    """Elementwise: the bits that exactly one of input and other has; of bools the logical `xor`.

    Args:
        input, other: integer or bool tensors, or numbers, which broadcast.

    Raises:
        NotImplementedError: for floating-point or complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.bitwise_xor(tg.tensor([5, 6]), 3)
        tensor([6, 5])
    """,
)

# -------------------------------------------------------------------------------------------------------- strong zero
# Products of cotangents g and local derivatives d in traced passes, which cannot look at values: 0 where g is exactly 0.


def _unmasked(xp: Any, d: Any, g: Any) -> Any:
    return xp.logical_or(xp.ne(g, 0.0), xp.isfinite(d))


def _strong_tangent(xp: Any, tangents: Any, ans: Any, g: Any, d: Any) -> Any:
    """Where g is 0, a change of d that is not finite counts as little as d itself."""
    of_g, of_d = tangents
    terms = [] if of_g is None else [xp.strong_mul(of_g, xp.mask_derivative(d, g))]
    terms += [] if of_d is None else [xp.strong_mul(g, of_d)]
    return sum(terms[1:], terms[0])


binary(
    "strong_mul", _strong, (lambda xp, ans, g, d: xp.mask_derivative(d, g), lambda xp, ans, g, d: g),
    "Elementwise input * other; 0 where input is exactly 0.",
    jax="elementwise.strong_mul", saves=("g d", "g"), display="Mul", samples=samples.at_zero, singular=True,
    jvp=_strong_tangent,
)  # fmt: skip
binary(
    "mask_derivative", lambda xp, d, g: xp.where(xp.logical_or(xp.not_equal(g, 0), xp.isfinite(d)), d, 0),
    (lambda xp, ans, d, g: _unmasked(xp, d, g), None),
    "d, and 0 where it is not finite and g is exactly 0.",
    constant_in="", saves=("d g", ""), display="Where", samples=samples.mask_derivative,
)  # fmt: skip


_to_integers = define(
    "cast_whole", "constant", _cast, params=("dtype",), batch=batching.last, samples=samples.CAST_WHOLE,
)  # fmt: skip
# Of an inexact dtype; else cast_whole, which has no derivative.
_cast_to = define(
    "cast", "linear", _cast, (lambda xp, g, ans, x, dtype, source: xp.cast(g, source),),
    around=lambda recorded: lambda x, dtype, source=None: (
        recorded(x, dtype, x._d.dtype) if is_inexact(dtype) else _to_integers(x, dtype)
    ),
    display="ToCopy", batch=batching.last, samples=samples.casts,
)  # fmt: skip


define(
    "transfer", "linear", lambda x, device, source: devices.put(x, device),
    (lambda xp, g, ans, x, device, source: xp.transfer(g, source, device),),
    jax="transfer.transfer",
    around=lambda recorded: lambda x, *params: record.slow(TABLE["transfer"], (x,), params),
    display="ToCopy", batch=batching.last, samples=samples.moves,
)  # fmt: skip


clone = define(
    "clone", "linear", copied, (lambda xp, g, ans, x: g,), jax="elementwise.identity", batch=batching.last, samples=ANALYTIC
)
define(
    "contiguous", "linear", lambda x: np.array(x, order="C"), (lambda xp, g, ans, x: g,),
    jax="elementwise.identity", display="Clone",
    batch=batching.last, samples=ANALYTIC,
)  # fmt: skip
alias = define("alias", "linear", lambda xp, x: x, (lambda xp, g, ans, x: g,), batch=batching.last, samples=ANALYTIC)
# y in place of x, on which it depends by steps: numbers drawn with x as their probabilities
binary("replaced", lambda xp, x, y: xp.where(True, y, x), (0.0, 1.0), "", samples=samples.REPLACED)
# x, connected with y: see `levels.links`
define(
    "link", "linear", lambda x, y: x, (lambda xp, g, ans, x, y: g, None), arity=2, batch=batching.last,
    raw_backward=links.pass_on, jax="elementwise.first", samples=samples.LINKED,
)  # fmt: skip


def _of_complex(recorded: Any) -> Any:
    """Real tensors are given back as they are: rules of bilinear ops conjugate the other operand always."""
    return lambda x: recorded(x) if x._d.dtype.kind == "c" else x


_conj_complex = define(
    "conj", "linear", _conj, (lambda xp, g, ans, x: xp.conj(g),), around=_of_complex, batch=batching.last, samples=ANALYTIC
)
define(
    "real", "linear", lambda xp, x: x.real, (lambda xp, g, ans, x: xp.to_complex(g),), around=_of_complex,
    batch=batching.last, samples=samples.COMPLEX,
)  # fmt: skip
define(
    "imag", "linear", lambda xp, x: x.imag, (lambda xp, g, ans, x: xp.to_complex(g) * 1j,), batch=batching.last,
    samples=samples.COMPLEX,
)  # fmt: skip
define(
    "to_complex", "linear", lambda xp, x: x.astype(xp.result_type(x, np.complex64)), (lambda xp, g, ans, x: xp.real(g),),
    wide=True, display="ToCopy", batch=batching.last, samples=REAL,
)  # fmt: skip

# -------------------------------------------------------------------------------------------------------- arithmetic

_add, radd = binary("add", np.add, (1.0, 1.0), "", samples=samples.SUMS)
_sub, _rsub = binary(
    "sub", np.subtract, (1.0, -1.0), "", refuses=NO_MINUS, samples=samples.SUMS,
    display=lambda e: "RsubBackward1" if e.number == 0 else "SubBackward0",
)  # fmt: skip
mul, rmul = binary(
    "mul",
    np.multiply,
    (lambda xp, ans, x, y: y, lambda xp, ans, x, y: x),
    """Elementwise input * other.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; the result has their common dtype.

    Derivative:
        input: g * conj(other)
        other: g * conj(input)

    Example:
        >>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> tg.mul(x, x).sum().backward()
        >>> x.grad
        tensor([2., 4., 6.])
    """,
    saves=("y", "x"),
    samples=samples.SUMS,
)


def _inverse(y: Any) -> Any:
    """1 / y; for a number, which Python does not divide by 0, as NumPy does."""
    if (type(y) is float or type(y) is int) and y == 0:
        return math.copysign(math.inf, y)
    return 1.0 / y


div_true, rdiv = binary(
    "div",
    np.true_divide,
    (lambda xp, ans, x, y: _inverse(y), lambda xp, ans, x, y: -ans / y),
    "Elementwise true quotient with broadcasting.",
    saves=("y", "y ans"),
    display=lambda e: "MulBackward0" if e.number == 0 else "DivBackward0",  # of a number: by the reciprocal
    singular=True,
    integers="float",
    samples=samples.QUOTIENTS,
)
neg = unary(
    "neg",
    np.negative,
    -1.0,
    """Elementwise -input.

    Args:
        input: tensor of any shape and dtype but bool; the result has its dtype.

    Raises:
        RuntimeError: for bools, of which logical_not gives the negation.

    Derivative:
        input: -g

    Example:
        >>> tg.neg(tg.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """,
    integers="keep",
    refuses=NO_NEGATION,
)


# x / y with 0 where y == 0: the convention of norm, hypot and atan2 at the origin.
safe_div, _ = binary(
    "safe_div",
    _safe_div,
    (lambda xp, ans, x, y: xp.safe_reciprocal(y), lambda xp, ans, x, y: -ans * xp.safe_reciprocal(y)),
    "Elementwise quotient, 0 where the divisor is 0.",
    jax="elementwise.safe_div",
    saves=("y", "y ans"),
    integers="float",
    samples=samples.ARRAY_QUOTIENTS,
)
safe_reciprocal = unary(
    "safe_reciprocal",
    lambda x: _safe_div(x.dtype.type(1), x),
    lambda xp, ans, x: -ans * ans,
    "Elementwise 1 / input, 0 where input is 0.",
    jax="elementwise.safe_reciprocal",
    saves="ans",
    samples=POSITIVE,
)


_floor_divide, _ = binary(
    "floor_divide", _whole(np.floor_divide), (0.0, 0.0), "", jax="elementwise.floor_divide", display="DivBackward1",
    refuses=no_kernel("cb", "div_floor_cpu"), samples=samples.WHOLE_QUOTIENTS,
)  # fmt: skip
_trunc_divide, _ = binary(
    "trunc_divide", _whole(_truncated), (0.0, 0.0),
    """Elementwise trunc(input / other); its derivative is 0.""",
    jax="elementwise.trunc_divide", display="DivBackward1",
    refuses=no_kernel("cb", "div_trunc_cpu"), samples=samples.WHOLE_QUOTIENTS,
)  # fmt: skip


remainder, rremainder = binary(
    "remainder",
    _whole(np.remainder),
    (1.0, lambda xp, ans, x, y: -xp.floor_divide(x, y)),
    """Elementwise input - floor(input / other) * other: the remainder with the sign of other, as Python's %.

    Args:
        input, other: real tensors or numbers, which broadcast; the result has their common dtype. By 0.0 it is nan.

    Raises:
        RuntimeError: for an integer 0 as the divisor.
        NotImplementedError: for complex numbers and bools.

    Derivative:
        input: g
        other: -g * floor_divide(input, other)

    Example:
        >>> tg.remainder(tg.tensor([-3.0, 5.0]), 2)
        tensor([1., 1.])
        >>> tg.fmod(tg.tensor([-3.0, 5.0]), 2)
        tensor([-1.,  1.])
    """,
    jax="elementwise.remainder",
    saves=("", "x y"),
    display=lambda e: "RemainderBackward1" if e.number is None else "RemainderBackward0",
    refuses=no_kernel("cb"),
    samples=samples.REMAINDERS,
)
fmod, _ = binary(
    "fmod",
    _whole(np.fmod),
    (1.0, lambda xp, ans, x, y: -xp.trunc_divide(x, y)),
    """Elementwise input - trunc(input / other) * other: the remainder with the sign of input, as C's fmod.

    Args:
        input, other: real tensors or numbers, which broadcast; the result has their common dtype. By 0.0 it is nan.

    Raises:
        RuntimeError: for an integer 0 as the divisor.
        NotImplementedError: for complex numbers and bools.

    Derivative:
        input: g
        other: -g * trunc(input / other)

    Example:
        >>> tg.fmod(tg.tensor([-3.0, 5.0]), 2)
        tensor([-1.,  1.])
        >>> tg.remainder(tg.tensor([-3.0, 5.0]), 2)
        tensor([1., 1.])
    """,
    jax="elementwise.fmod",
    saves=("", "x y"),
    refuses=no_kernel("cb"),
    samples=samples.REMAINDERS,
)


def _d_pow_scalar(xp: Any, ans: Any, x: Any, k: Any) -> Any:
    if k == 0:
        return xp.lt(xp.abs(x), 0.0)  # False as the choices are that not even an infinite cotangent passes
    if k == 1:
        return 1.0
    if k == 2:
        return xp.twice(x)
    return k * xp.pow_scalar(x, k - 1)


pow_scalar = define(
    "pow_scalar", "elementwise", _pow_scalar, (_d_pow_scalar,),
    constant_in="", saves="x", params=("exponent",), display="Pow", singular=True, samples=samples.POW_SCALAR,
)  # fmt: skip


def _d_pow(xp: Any, ans: Any, x: Any, y: Any) -> Any:
    """0 at exponent 0 whatever the base, as in PyTorch; but not cut off from y there, since d/dy of it is 1 / x."""
    slope = y * xp.pow(x, y - 1.0)
    return xp.where(xp.logical_and(xp.eq(y, 0.0), xp.logical_not(xp.isfinite(slope))), 0.0, slope)


pow_tensor, _ = binary(
    "pow",
    _power,
    (
        _d_pow,
        # 0 at base 0 for exponents >= 0, as in PyTorch
        lambda xp, ans, x, y: xp.where(xp.logical_and(xp.eq(x, 0.0), xp.ge(y.real, 0.0)), 0.0, ans * xp.log(x)),
    ),
    "",
    jax="elementwise.power",
    saves=("x y", "x y ans"),
    display=lambda e: "PowBackward1" if e.shapes[0] else "PowBackward2",
    singular=True,
    refuses=no_kernel("b", "pow"),
    samples=samples.POWERS,
)


# The derivative of a square, whose own is connected with x, as PyTorch's 2 * x**0 is.
unary(
    "twice",
    lambda xp, x: 2.0 * x,
    lambda xp, ans, x: 2.0,
    """Elementwise 2 * input.""",
    constant_in="x",
    saves="",
    integers="keep",
    display="Mul",
)
square = unary(
    "square",
    lambda xp, x: xp.square(x) if x.dtype.kind != "b" else x.astype(np.int64),
    lambda xp, ans, x: xp.twice(x),
    """Elementwise input**2.

    Args:
        input: tensor of any shape and dtype; the result has its dtype, of bools int64.

    Derivative:
        input: g * conj(2 * input)

    Example:
        >>> tg.square(tg.tensor([1.0, -3.0]))
        tensor([1., 9.])
    """,
    saves="x",
    integers="keep",
    display="Pow",
)
sqrt = unary(
    "sqrt", np.sqrt, lambda xp, ans, x: 0.5 / ans,
    """Elementwise square root; nan for negative real numbers, its derivative at 0 is inf.

    A gradient of exactly 0 stays 0 there: where(x > 0, sqrt(x), 0) has gradient 0 at 0, not nan.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(0.5 / result)

    Example:
        >>> x = tg.tensor([4.0, 0.0], requires_grad=True)
        >>> tg.where(x > 0, tg.sqrt(x), 0.0).sum().backward()
        >>> x.grad
        tensor([0.2500, 0.0000])
    """,
    saves="ans", singular=True, samples=POSITIVE,
)  # fmt: skip
_cbrt = unary(  # NumPy's; PyTorch has no such function
    "cbrt", np.cbrt, lambda xp, ans, x: (1.0 / 3.0) / (ans * ans), "Elementwise cube root; its derivative at 0 is inf.",
    saves="ans",
    singular=True, samples=samples.CBRT,
)  # fmt: skip
rsqrt = unary(
    "rsqrt",
    lambda xp, x: 1.0 / xp.sqrt(x),
    lambda xp, ans, x: -0.5 * ans * ans * ans,
    """Elementwise 1 / sqrt(input); inf at 0, nan for negative real numbers.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(-0.5 * result * result * result)

    Example:
        >>> tg.rsqrt(tg.tensor([4.0, 0.25]))
        tensor([0.5000, 2.0000])
    """,
    saves="ans",
    singular=True,
    samples=POSITIVE,
)
reciprocal = unary(
    "reciprocal",
    lambda xp, x: 1.0 / x,
    lambda xp, ans, x: -ans * ans,
    """Elementwise 1 / input; inf at 0.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(-result * result)

    Example:
        >>> tg.reciprocal(tg.tensor([4.0, -0.5]))
        tensor([ 0.2500, -2.0000])
    """,
    saves="ans",
    singular=True,
    samples=POSITIVE,
)

# ------------------------------------------------------------------------------------- exponentials and trigonometry

exp = unary(
    "exp",
    np.exp,
    lambda xp, ans, x: ans,
    """Elementwise exponential function e**input.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(result)

    Example:
        >>> tg.exp(tg.tensor([0.0, 1.0, -tg.inf]))
        tensor([1.0000, 2.7183, 0.0000])
        >>> tg.func.grad(tg.exp)(tg.tensor(2.0))
        tensor(7.3891)
    """,
    saves="ans",
    singular=True,
)
exp2 = unary(  # of x - 1, since the slope is finite a little beyond the last finite value
    "exp2", np.exp2, lambda xp, ans, x: xp.exp2(x - 1.0) * (2.0 * math.log(2.0)),
    """Elementwise 2**input.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(exp2(input - 1) * (2 * log(2)))

    Example:
        >>> tg.exp2(tg.tensor([0.0, 3.0, -1.0]))
        tensor([1.0000, 8.0000, 0.5000])
    """,
    saves="x",
    singular=True,
)  # fmt: skip
expm1 = unary(
    "expm1",
    np.expm1,
    lambda xp, ans, x: xp.exp(x),
    """Elementwise exp(input) - 1, exact near 0, where the difference would lose its digits.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(exp(input))

    Example:
        >>> tg.expm1(tg.tensor([0.0, 1e-10]))
        tensor([0.0000e+00, 1.0000e-10])
    """,
    saves="x",
    singular=True,
)
log = unary(
    "log",
    np.log,
    lambda xp, ans, x: 1.0 / x,
    """Elementwise natural logarithm; -inf at 0, nan for negative real numbers.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / input)

    Example:
        >>> tg.log(tg.tensor([1.0, 10.0, 0.0]))
        tensor([0.0000, 2.3026,   -inf])
    """,
    saves="x",
    singular=True,
    samples=POSITIVE,
)
log2 = unary(
    "log2", np.log2, lambda xp, ans, x: (1.0 / math.log(2.0)) / x,
    """Elementwise logarithm to base 2; -inf at 0, nan for negative real numbers.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / log(2) / input)

    Example:
        >>> tg.log2(tg.tensor([1.0, 10.0, 0.0]))
        tensor([0.0000, 3.3219,   -inf])
    """,
    saves="x", singular=True, samples=POSITIVE,
)  # fmt: skip
log10 = unary(
    "log10", np.log10, lambda xp, ans, x: (1.0 / math.log(10.0)) / x,
    """Elementwise logarithm to base 10; -inf at 0, nan for negative real numbers.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / log(10) / input)

    Example:
        >>> tg.log10(tg.tensor([1.0, 50.0, 0.0]))
        tensor([0.0000, 1.6990,   -inf])
    """,
    saves="x", singular=True, samples=POSITIVE,
)  # fmt: skip
log1p = unary(
    "log1p", np.log1p, lambda xp, ans, x: 1.0 / (1.0 + x),
    """Elementwise log(1 + input), exact near 0, where the sum would lose its digits; -inf at -1, nan below.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / (1 + input))

    Example:
        >>> tg.log1p(tg.tensor([0.0, 1e-10]))
        tensor([0.0000e+00, 1.0000e-10])
    """,
    saves="x", singular=True,
    display="Log1P", samples=POSITIVE,
)  # fmt: skip
sin = unary(
    "sin",
    np.sin,
    lambda xp, ans, x: xp.cos(x),
    """Elementwise sine of an angle in radians.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(cos(input))

    Example:
        >>> tg.sin(tg.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8415])
    """,
    saves="x",
)
cos = unary(
    "cos",
    np.cos,
    lambda xp, ans, x: -xp.sin(x),
    """Elementwise cosine of an angle in radians.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: -g * conj(sin(input))

    Example:
        >>> tg.cos(tg.tensor([0.0, 1.0]))
        tensor([1.0000, 0.5403])
    """,
    saves="x",
)
tan = unary(
    "tan",
    np.tan,
    lambda xp, ans, x: ans * ans + 1.0,
    """Elementwise tangent of an angle in radians.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(result * result + 1)

    Example:
        >>> tg.tan(tg.tensor([0.0, 1.0]))
        tensor([0.0000, 1.5574])
    """,
    saves="ans",
    singular=True,
)
# exact near 1, and with one factor in its derivative: no inf - inf at 1 in the second order of asin
unary(
    "one_minus_square", lambda xp, x: (1.0 - x) * (1.0 + x), lambda xp, ans, x: -2.0 * x, "Elementwise 1 - input**2.",
    saves="x",
)  # fmt: skip
asin = unary(
    "asin", np.arcsin, lambda xp, ans, x: xp.rsqrt(xp.one_minus_square(x)),
    """Elementwise arc sine in radians, in [-pi/2, pi/2]; nan outside [-1, 1], its derivative at -1 and 1 is inf.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(rsqrt(1 - input**2))

    Example:
        >>> tg.asin(tg.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5236, 1.5708])
    """,
    saves="x", singular=True, samples=UNIT,
)  # fmt: skip
acos = unary(
    "acos", np.arccos, lambda xp, ans, x: -xp.rsqrt(xp.one_minus_square(x)),
    """Elementwise arc cosine in radians, in [0, pi]; nan outside [-1, 1], its derivative at -1 and 1 is -inf.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: -g * conj(rsqrt(1 - input**2))

    Example:
        >>> tg.acos(tg.tensor([1.0, 0.5, -1.0]))
        tensor([0.0000, 1.0472, 3.1416])
    """,
    saves="x", singular=True, samples=UNIT,
)  # fmt: skip
atan = unary(
    "atan",
    np.arctan,
    lambda xp, ans, x: xp.atan_slope(x),
    """Elementwise arc tangent in radians, in (-pi/2, pi/2).

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / (1 + input**2))

    Example:
        >>> tg.atan(tg.tensor([0.0, 1.0, tg.inf]))
        tensor([0.0000, 0.7854, 1.5708])
    """,
    saves="x",
)
unary(
    "atan_slope", activations.atan_slope, lambda xp, ans, x: -2.0 * (x * ans) * ans,
    "Elementwise 1 / (1 + input**2); no derivative overflows on its way.", jax="elementwise.atan_slope", saves="x ans",
)  # fmt: skip
sinh = unary(
    "sinh",
    np.sinh,
    lambda xp, ans, x: xp.cosh(x),
    """Elementwise hyperbolic sine (exp(input) - exp(-input)) / 2.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(cosh(input))

    Example:
        >>> tg.sinh(tg.tensor([0.0, 1.0]))
        tensor([0.0000, 1.1752])
    """,
    saves="x",
    singular=True,
)
cosh = unary(
    "cosh",
    np.cosh,
    lambda xp, ans, x: xp.sinh(x),
    """Elementwise hyperbolic cosine (exp(input) + exp(-input)) / 2.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(sinh(input))

    Example:
        >>> tg.cosh(tg.tensor([0.0, 1.0]))
        tensor([1.0000, 1.5431])
    """,
    saves="x",
    singular=True,
)
# 1 - tanh(x)**2 would lose the tails: from x = 20 on it is 0
tanh = unary(
    "tanh",
    np.tanh,
    lambda xp, ans, x: xp.tanh_slope(x),
    """Elementwise hyperbolic tangent, in (-1, 1); its derivatives keep their digits where it is nearly 1.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / cosh(input)**2)

    Example:
        >>> tg.tanh(tg.tensor([0.0, 1.0, -20.0]))
        tensor([ 0.0000,  0.7616, -1.0000])
        >>> tg.func.grad(tg.tanh)(tg.tensor(20.0))
        tensor(1.6993e-17)
    """,
    saves="x",
)
unary(
    "tanh_slope", activations.tanh_slope, lambda xp, ans, x: -2.0 * ans * xp.tanh(x), "Elementwise 1 / cosh(input)**2.",
    jax="elementwise.tanh_slope", saves="x ans",
)  # fmt: skip
asinh = unary(
    "asinh",
    np.arcsinh,
    lambda xp, ans, x: xp.asinh_slope(x),
    """Elementwise inverse hyperbolic sine log(input + sqrt(input**2 + 1)).

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / sqrt(1 + input**2))

    Example:
        >>> tg.asinh(tg.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8814])
    """,
    saves="x",
)
unary(
    "asinh_slope", activations.asinh_slope, lambda xp, ans, x: -(x * ans) * ans * ans,
    "Elementwise 1 / sqrt(1 + input**2); no derivative overflows on its way.", jax="elementwise.asinh_slope", saves="x ans",
)  # fmt: skip
acosh = unary(
    "acosh", np.arccosh, lambda xp, ans, x: xp.rsqrt(x - 1.0) * xp.rsqrt(x + 1.0),
    """Elementwise inverse hyperbolic cosine log(input + sqrt(input**2 - 1)); nan below 1, its derivative at 1 is inf.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(rsqrt(input - 1) * rsqrt(input + 1))

    Example:
        >>> tg.acosh(tg.tensor([1.0, 2.0]))
        tensor([0.0000, 1.3170])
    """,
    saves="x", singular=True, samples=samples.ACOSH,
)  # fmt: skip
atanh = unary(
    "atanh", np.arctanh, lambda xp, ans, x: 1.0 / xp.one_minus_square(x),
    """Elementwise inverse hyperbolic tangent log((1 + input) / (1 - input)) / 2; nan outside [-1, 1], infinite at -1 and 1.

    Args:
        input: float tensor, or complex for the principal value; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(1 / (1 - input**2))

    Example:
        >>> tg.atanh(tg.tensor([0.0, 0.5]))
        tensor([0.0000, 0.5493])
    """,
    saves="x",
    singular=True, samples=UNIT,
)  # fmt: skip
atan2, _ = binary(
    "atan2",
    np.arctan2,
    # 0 at the origin, as in PyTorch
    (lambda xp, ans, x, y: xp.atan2_slope(y, x), lambda xp, ans, x, y: -xp.atan2_slope(x, y)),
    """Elementwise angle of the point (x=other, y=input), in [-pi, pi].

    At the origin both derivatives are 0.

    Args:
        input, other: float tensors or numbers, which broadcast; integers are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * other / (other**2 + input**2)
        other: -g * input / (input**2 + other**2)

    Example:
        >>> tg.atan2(tg.tensor([1.0, -1.0]), tg.tensor([0.0, -1.0]))
        tensor([ 1.5708, -2.3562])
    """,
    saves="x y",
    integers="float",
    refuses=no_kernel("c"),
    samples=samples.AROUND_ORIGIN,
)


hypot, _ = binary(
    "hypot",
    _hypot,
    # 0 at the origin, as norm
    (lambda xp, ans, x, y: xp.hypot_slope(x, y), lambda xp, ans, x, y: xp.hypot_slope(y, x)),
    """Elementwise sqrt(input**2 + other**2), whose squares do not overflow.

    At the origin both derivatives are 0.

    Args:
        input, other: float tensors or numbers, which broadcast; integers are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * input / hypot(input, other)
        other: g * other / hypot(other, input)

    Example:
        >>> tg.hypot(tg.tensor([3.0, 3e30]), tg.tensor([4.0, 4e30]))
        tensor([5.0000e+00, 5.0000e+30])
    """,
    jax="elementwise.hypot",
    saves="x y",
    integers="float",
    refuses=no_kernel("c"),
    samples=samples.AROUND_ORIGIN,
)


# x / hypot(x, y). Its derivatives are products: 1 - (x / hypot)**2 would lose all digits where y is much smaller.
binary(
    "hypot_slope",
    _hypot_slope,
    (
        lambda xp, ans, x, y: xp.hypot_slope(y, x) * xp.safe_div(xp.hypot_slope(y, x), xp.hypot(x, y)),
        lambda xp, ans, x, y: -ans * xp.safe_div(xp.hypot_slope(y, x), xp.hypot(x, y)),
    ),
    """Elementwise input / hypot(input, other); 0 at the origin.""",
    jax="elementwise.hypot_slope",
    saves=("x y", "x y ans"),
    integers="float",
    samples=samples.AROUND_ORIGIN,
)


def _over_square(xp: Any, part: Any, x: Any, y: Any) -> Any:
    h = xp.hypot(x, y)  # twice, since its square may overflow
    return xp.safe_div(xp.safe_div(part, h), h)


def _d_atan2_slope(xp: Any, ans: Any, x: Any, y: Any) -> Any:
    a, b = xp.hypot_slope(x, y), xp.hypot_slope(y, x)
    return _over_square(xp, b * b - a * a, x, y)


# x / (x**2 + y**2)
binary(
    "atan2_slope",
    _atan2_slope,
    (
        _d_atan2_slope,
        lambda xp, ans, x, y: -2.0 * _over_square(xp, xp.hypot_slope(x, y) * xp.hypot_slope(y, x), x, y),
    ),
    """Elementwise input / (input**2 + other**2); 0 at the origin.""",
    jax="elementwise.atan2_slope",
    saves="x y",
    integers="float",
    samples=samples.AROUND_ORIGIN,
)


def _distance(xp: Any, x: Any, y: Any) -> Any:
    """x - y; 0 of equal infinities."""
    d = x - y
    return xp.where(xp.isnan(d), 0.0, d)


# exp(x) / (exp(x) + exp(y)): 1/2 where they are equal, infinite ones too
binary(
    "share",
    share,
    (
        lambda xp, ans, x, y: xp.sigmoid_slope(_distance(xp, x, y)),
        lambda xp, ans, x, y: -xp.sigmoid_slope(_distance(xp, x, y)),
    ),
    """Elementwise exp(input) / (exp(input) + exp(other)); 1/2 where they are equal, infinite ones too.""",
    jax="elementwise.share",
    saves="x y",
    samples=samples.SHARE,
)
logaddexp, _ = binary(
    "logaddexp",
    log_sum_exp,
    (lambda xp, ans, x, y: xp.share(x, y), lambda xp, ans, x, y: xp.share(y, x)),
    """Elementwise log(exp(input) + exp(other)), without overflow; of equal operands each has derivative 1/2.

    Args:
        input, other: float or complex tensors, which broadcast.

    Raises:
        NotImplementedError: for integers and bools.

    Derivative:
        input: g * conj(exp(input) / (exp(input) + exp(other)))
        other: g * conj(exp(other) / (exp(other) + exp(input)))

    Example:
        >>> tg.logaddexp(tg.tensor([0.0, 1000.0]), tg.tensor([0.0, 1000.0]))
        tensor([6.9315e-01, 1.0007e+03])
    """,
    jax="elementwise.logaddexp",
    saves="x y",
    refuses=no_kernel("biu"),
    samples=samples.LOGADDEXP,
)
LOG_2 = math.log(2.0)
logaddexp2, _ = binary(
    "logaddexp2",
    log_sum_exp2,
    (lambda xp, ans, x, y: xp.share(x * LOG_2, y * LOG_2), lambda xp, ans, x, y: xp.share(y * LOG_2, x * LOG_2)),
    """Elementwise log2(2**input + 2**other), without overflow; of equal operands each has derivative 1/2.

    Args:
        input, other: float tensors, which broadcast.

    Raises:
        NotImplementedError: for other dtypes.

    Derivative:
        input: g * exp(input * log(2)) / (exp(input * log(2)) + exp(other * log(2)))
        other: g * exp(other * log(2)) / (exp(other * log(2)) + exp(input * log(2)))

    Example:
        >>> tg.logaddexp2(tg.tensor([0.0, 1000.0]), tg.tensor([0.0, 1000.0]))
        tensor([1.0000e+00, 1.0010e+03])
    """,
    jax="elementwise.logaddexp2",
    saves="x y",
    refuses=no_kernel("biuc"),
    samples=samples.LOGADDEXP2,
)


def _bell(xp: Any, x: Any, rate: float = 1.0) -> Any:
    """exp(-rate * x**2), with a square that stays finite: beyond it the exponential is 0."""
    return xp.exp(-rate * xp.clamp_max(x * x, 1600.0))


erf = unary(
    "erf",
    gaussian.erf,
    lambda xp, ans, x: TWO_OVER_SQRT_PI * _bell(xp, x),
    """Elementwise error function: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to input.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: g * 2 / sqrt(pi) * exp(-input**2)

    Example:
        >>> tg.erf(tg.tensor([0.0, 0.5, 3.0]))
        tensor([0.0000, 0.5205, 1.0000])
    """,
    jax="elementwise.erf",
    saves="x",
    refuses=no_kernel("c", "erf_vml_cpu"),
    samples=REAL,
)
erfc = unary(
    "erfc", gaussian.erfc, lambda xp, ans, x: -TWO_OVER_SQRT_PI * _bell(xp, x),
    """Elementwise 1 - erf(input), with all digits where that is nearly 0.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        NotImplementedError: for complex numbers.

    Derivative:
        input: -g * 2 / sqrt(pi) * exp(-input**2)

    Example:
        >>> tg.erfc(tg.tensor([0.0, 5.0]))
        tensor([1.0000e+00, 1.5375e-12])
    """,
    jax="elementwise.erfc", saves="x", refuses=no_kernel("c", "erfc_vml_cpu"), samples=REAL,
)  # fmt: skip
ndtr = unary(
    "ndtr", gaussian.ndtr, lambda xp, ans, x: ONE_OVER_SQRT_TWO_PI * _bell(xp, x, 0.5),
    """Elementwise distribution function of the standard normal: (1 + erf(input / sqrt(2))) / 2, exact in both tails.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        TypeError: for complex numbers.

    Derivative:
        input: g / sqrt(2 * pi) * exp(-0.5 * input**2)

    Example:
        >>> tg.special.ndtr(tg.tensor([0.0, 1.96, -10.0]))
        tensor([5.0000e-01, 9.7500e-01, 7.6199e-24])
    """,
    jax="elementwise.ndtr", saves="x", display="MulBackward1", samples=REAL,
)  # fmt: skip
sigmoid = unary(
    "sigmoid",
    sigmoid_any,
    lambda xp, ans, x: xp.sigmoid_slope(x),
    """Elementwise logistic function 1 / (1 + exp(-input)), exact in both tails.

    Args:
        input: float or complex tensor of any shape; integers and bools are computed in the default dtype.

    Derivative:
        input: g * conj(sigmoid(input) * sigmoid(-input))

    Example:
        >>> tg.sigmoid(tg.tensor([0.0, 2.0, -30.0]))
        tensor([5.0000e-01, 8.8080e-01, 9.3576e-14])
    """,
    jax="elementwise.sigmoid",
    slope=activations.sigmoid_and_slope,
    saves="x",
    samples=REAL,
)
unary(
    "sigmoid_slope",
    lambda x: activations.sigmoid_slope(x) if x.dtype.kind != "c" else sigmoid_any(x) * sigmoid_any(-x),
    lambda xp, ans, x: -ans * xp.tanh(0.5 * x),
    """Elementwise sigmoid(input) * sigmoid(-input).""",
    jax="elementwise.sigmoid_slope",
    saves="x ans",
)
_softplus = define(
    "softplus",
    "elementwise",
    activations.softplus,
    (lambda xp, ans, x, beta, threshold: xp.softplus_slope(x, beta, threshold),),
    jax="elementwise.softplus",
    saves="x",
    integers="float",
    samples=samples.SOFTPLUS,
)
# 1 beyond the threshold, where softplus is the identity
define(
    "softplus_slope",
    "elementwise",
    activations.softplus_slope,
    (lambda xp, ans, x, beta, threshold: xp.where(xp.gt(x * beta, threshold), 0.0, beta * xp.sigmoid_slope(x * beta)),),
    jax="elementwise.softplus_slope",
    saves="x",
    samples=samples.SOFTPLUS,
    doc="""Elementwise where(beta * input > threshold, 1, sigmoid(beta * input)).""",
)


logsigmoid = unary(
    "logsigmoid",
    activations.log_sigmoid,
    lambda xp, ans, x: xp.sigmoid(-x),
    """Elementwise log(sigmoid(input)) = -log(1 + exp(-input)), without overflow.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        TypeError: for complex numbers.

    Derivative:
        input: g * sigmoid(-input)

    Example:
        >>> tg.nn.functional.logsigmoid(tg.tensor([0.0, 2.0, -1000.0]))
        tensor([-6.9315e-01, -1.2693e-01, -1.0000e+03])
    """,
    jax="elementwise.logsigmoid",
    saves="x",
    display="LogSigmoid",
    samples=REAL,
)
relu = unary(
    "relu", cannot_warn(lambda xp, x: xp.maximum(x, 0)),
    lambda xp, ans, x: xp.ne(ans, 0.0),  # a nan passes its gradient on
    """Elementwise max(input, 0); its derivative at 0 is 0.

    Args:
        input: float or integer tensor of any shape; the result has its dtype.

    Raises:
        NotImplementedError: for complex numbers.
        RuntimeError: for bools.

    Derivative:
        input: g * (result != 0)

    Example:
        >>> x = tg.tensor([-1.0, 0.0, 2.0], requires_grad=True)
        >>> tg.relu(x).sum().backward()
        >>> x.grad
        tensor([0., 0., 1.])
    """,
    saves="ans", constant_in="ans", integers="keep", samples=REAL,
    refuses=each(NO_CLAMP, refused_as("b", "Boolean inputs not supported for relu")),
)  # fmt: skip
# a where x > 0, b elsewhere, in x's dtype: the derivative of piecewise linear activations
by_sign = define(
    "by_sign", "constant", activations.by_sign,
    jax="elementwise.by_sign", params=("a", "b"), batch=batching.pointwise, samples=samples.BY_SIGN,
    doc="""Elementwise where(input > 0, a, b).""",
)  # fmt: skip
_leaky_relu = define(
    "leaky_relu",
    "elementwise",
    lambda xp, x, slope: xp.maximum(x, x * slope) if 0 < slope <= 1 else xp.where(x > 0, x, x * slope),
    (lambda xp, ans, x, slope: xp.by_sign(x, 1.0, slope),),
    saves="x",
    constant_in="x",
    params=("negative_slope",),
    samples=samples.LEAKY_RELU,
)


_elu = define(
    "elu",
    "elementwise",
    activations.elu,
    (lambda xp, ans, x, alpha: xp.elu_slope(x, alpha),),
    jax="elementwise.elu",
    saves="x",
    refuses=no_kernel("biuc", "elu_cpu"),
    samples=samples.ELU,
)
define(
    "elu_slope", "elementwise", activations.elu_slope, (lambda xp, ans, x, alpha: xp.where(xp.ge(x, 0.0), 0.0, ans),),
    jax="elementwise.elu_slope", saves="x ans",
    samples=samples.ELU_SLOPE,
    doc="""Elementwise where(input > 0, 1, alpha * exp(input)).""",
)  # fmt: skip


silu = unary(
    "silu",
    activations.silu,
    lambda xp, ans, x: xp.silu_slope(x),
    "Elementwise input * sigmoid(input).",
    jax="elementwise.silu",
    slope=activations.silu_and_slope,
    saves="x",
    samples=REAL,
)


unary(
    "silu_slope", activations.silu_slope, lambda xp, ans, x: xp.sigmoid_slope(x) * (2.0 - x * xp.tanh(0.5 * x)),
    """Elementwise sigmoid(input) * (1 + input * sigmoid(-input)).""",
    jax="elementwise.silu_slope", saves="x", samples=REAL,
)  # fmt: skip
_gelu = unary(
    "gelu",
    gaussian.gelu_erf,
    lambda xp, ans, x: xp.gelu_slope(x),
    "",
    jax="elementwise.gelu",
    slope=activations.gelu_erf_and_slope,
    saves="x",
    samples=REAL,
)
unary(
    "gelu_slope",
    activations.gelu_erf_slope,
    lambda xp, ans, x: _bell(xp, x, 0.5) * (2.0 - xp.clamp_max(x * x, 1600.0)) * ONE_OVER_SQRT_TWO_PI,
    """Elementwise ndtr(input) + input * exp(-input**2 / 2) / sqrt(2 * pi).""",
    jax="elementwise.gelu_slope",
    saves="x",
    samples=REAL,
)
_gelu_tanh = unary(
    "gelu_tanh",
    activations.gelu_tanh,
    lambda xp, ans, x: xp.gelu_tanh_slope(x),
    "",
    jax="elementwise.gelu_tanh",
    slope=activations.gelu_tanh_and_slope,
    saves="x",
    display="Gelu",
    samples=REAL,
)


def _d_gelu_tanh_slope(xp: Any, ans: Any, x: Any) -> Any:
    x = xp.clamp(x, -activations.GELU_EDGE, activations.GELU_EDGE)
    square = x * x * activations.GELU_CUBE
    v = x * (square + 1.0) * (2.0 * activations.GELU_RATE)
    w = (square * 3.0 + 1.0) * (2.0 * activations.GELU_RATE)
    bend = x * (12.0 * activations.GELU_RATE * activations.GELU_CUBE)
    return xp.sigmoid_slope(v) * (2.0 * w + x * (bend - xp.tanh(0.5 * v) * (w * w)))


unary(
    "gelu_tanh_slope",
    activations.gelu_tanh_slope,
    _d_gelu_tanh_slope,
    "",
    jax="elementwise.gelu_tanh_slope",
    saves="x",
    samples=REAL,
)


# conj: the engine conjugates local derivatives, and the gradient of |z| is z / |z|
abs = unary(
    "abs", np.absolute, lambda xp, ans, x: xp.conj(xp.sgn(x)),
    """Elementwise absolute value; its derivative at 0 is 0.

    Args:
        input: tensor of any shape and dtype but bool; the result has its dtype, of complex numbers that of their parts.

    Raises:
        NotImplementedError: for bools.

    Derivative:
        input: g * sgn(input)

    Example:
        >>> tg.abs(tg.tensor([-1.5, 2.0]))
        tensor([1.5000, 2.0000])
        >>> tg.abs(tg.tensor([3 + 4j]))
        tensor([5.])
    """,
    saves="x",
    integers="keep", refuses=no_kernel("b"),
)  # fmt: skip


def _across(xp: Any, t: Any, ans: Any, x: Any) -> Any:
    return xp.safe_div(ans * 1j * xp.imag(t * xp.conj(ans)), xp.abs(x))


_direction = define(
    "sgn_complex", "general", np.sign,
    # what of g is across z, over |z|; 0 at the origin
    (lambda xp, g, ans, x: _across(xp, g, ans, x),), saves="x ans", jvp=lambda xp, ts, ans, x: _across(xp, ts[0], ans, x),
    display="Sgn", batch=batching.pointwise, samples=samples.SGN_COMPLEX,
)  # fmt: skip
# Of real numbers; for complex ones sgn_complex.
_sgn = define(
    "sgn", "elementwise", np.sign, (0.0,), samples=STEPS,
    around=lambda recorded: lambda x: {"c": _direction, "b": sign}.get(x._d.dtype.kind, recorded)(x),
)  # fmt: skip

# -------------------------------------------------------------------------------------------------- selection by value


def _winner(x: Any, y: Any) -> Any:
    """1 where x > y, 1/2 where equal: a mask unless there are ties, so that nothing infinite reaches the loser.

    1 for both where one is nan, as in PyTorch: the nan stays visible.
    """
    larger = np.logical_not(np.less_equal(x, y))
    tied = np.equal(x, y)
    plain = not tied.any() and running_trace() is None  # a program is for values with ties, too
    return larger if plain else (larger + 0.5 * tied).astype(np.result_type(x, y))


define(
    "winner",
    "constant",
    _winner,
    jax="elementwise.winner",
    arity=2,
    batch=batching.pointwise,
    samples=COMPARED,
    doc="""Elementwise (1 + sign(input - other)) / 2; 1 where one is nan.""",
)
maximum, _ = binary(
    "maximum",
    np.maximum,
    (lambda xp, ans, x, y: xp.winner(x, y), lambda xp, ans, x, y: xp.winner(y, x)),
    """Elementwise larger value, nan where either is nan; at a tie each side has derivative 1/2.

    Args:
        input, other: real tensors, which broadcast; the result has their common dtype.

    Raises:
        RuntimeError: for complex numbers.

    Derivative:
        input: g * (1 + sign(input - other)) / 2
        other: g * (1 + sign(other - input)) / 2

    Example:
        >>> tg.maximum(tg.tensor([1.0, 5.0]), tg.tensor([3.0, tg.nan]))
        tensor([3., nan])
    """,
    constant_in="",
    saves="x y",
    refuses=refused_as("c", "maximum not implemented for complex tensors."),
    samples=samples.TIED,
)
minimum, _ = binary(
    "minimum",
    np.minimum,
    (lambda xp, ans, x, y: xp.winner(y, x), lambda xp, ans, x, y: xp.winner(x, y)),
    """Elementwise smaller value, nan where either is nan; at a tie each side has derivative 1/2.

    Args:
        input, other: real tensors, which broadcast; the result has their common dtype.

    Raises:
        RuntimeError: for complex numbers.

    Derivative:
        input: g * (1 + sign(other - input)) / 2
        other: g * (1 + sign(input - other)) / 2

    Example:
        >>> tg.minimum(tg.tensor([1.0, 5.0]), tg.tensor([3.0, tg.nan]))
        tensor([1., nan])
    """,
    constant_in="",
    saves="x y",
    refuses=refused_as("c", "minimum not implemented for complex tensors."),
    samples=samples.TIED,
)
# A clamp has derivative 1 at its bounds.
_clamp_min = define(
    "clamp_min", "elementwise", lambda xp, x, lo: xp.maximum(x, lo), (lambda xp, ans, x, lo: xp.ge(x, lo),),
    constant_in="", saves="x", params=("min",),
    display="ClampBackward1", refuses=NO_CLAMP, samples=samples.ONE_BOUND,
)  # fmt: skip
_clamp_max = define(
    "clamp_max", "elementwise", lambda xp, x, hi: xp.minimum(x, hi), (lambda xp, ans, x, hi: xp.le(x, hi),),
    constant_in="", saves="x", params=("max",),
    display="ClampBackward1", refuses=NO_CLAMP, samples=samples.ONE_BOUND,
)  # fmt: skip
_clamp = define(
    "clamp",
    "elementwise",
    lambda xp, x, lo, hi: xp.minimum(xp.maximum(x, lo), hi),
    (lambda xp, ans, x, lo, hi: xp.logical_and(xp.ge(x, lo), xp.le(x, hi)),),
    constant_in="",
    saves="x",
    params=("min", "max"),
    display="ClampBackward1",
    refuses=NO_CLAMP,
    samples=samples.CLAMP,
)
_clamp_tensor = define(
    "clamp_tensor",
    "elementwise",
    lambda xp, x, lo, hi: xp.minimum(xp.maximum(x, lo), hi),
    (
        lambda xp, ans, x, lo, hi: xp.logical_and(xp.ge(x, lo), xp.le(x, hi)),
        lambda xp, ans, x, lo, hi: xp.logical_and(xp.lt(x, lo), xp.lt(lo, hi)),
        lambda xp, ans, x, lo, hi: xp.logical_or(xp.gt(x, hi), xp.gt(lo, hi)),
    ),
    constant_in="",
    saves="x lo hi",
    arity=3,
    display="Clamp",
    refuses=NO_CLAMP,
    samples=samples.CLAMP_TENSOR,
)


def _where_backward(e: Any, s: int, g: Any, cot: dict[int, Any], need: Any, mutable_slots: set[int]) -> None:
    (_, a, b), (mask, _, _), (_, x_shape, y_shape) = e[1], e[4], e[7]
    if a and (need is None or a in need):
        t = activations.select(mask, g, 0.0)
        add(cot, a, t if t.shape == x_shape else RAW_XP.sum_to(t, x_shape), mutable_slots)
    if b and (need is None or b in need):
        t = activations.select(mask, 0.0, g)
        add(cot, b, t if t.shape == y_shape else RAW_XP.sum_to(t, y_shape), mutable_slots)


_where = define(
    "where",
    "linear",
    activations.select,
    (None, lambda xp, g, ans, c, x, y: xp.where(c, g, 0.0), lambda xp, g, ans, c, x, y: xp.where(c, 0.0, g)),
    jax="elementwise.where",
    saves=("", "c", "c"),
    arity=3,
    wide=True,
    raw_backward=_where_backward,
    batch=batching.pointwise,
    samples=samples.selections,
)


_lerp = define(
    "lerp",
    "elementwise",
    lambda xp, x, y, w: x + w * (y - x),
    (lambda xp, ans, x, y, w: 1.0 - w, lambda xp, ans, x, y, w: w, lambda xp, ans, x, y, w: y - x),
    saves=("w", "w", "x y"),
    arity=3,
    display=lambda e: "LerpBackward1" if e.number is None else "LerpBackward0",
    samples=samples.LERP,
)


_nan_to_num = define(
    "nan_to_num",
    "elementwise",
    lambda xp, x, nan, posinf, neginf: xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    (lambda xp, ans, x, nan, posinf, neginf: xp.isfinite(x),),
    constant_in="",
    saves="x",
    samples=samples.NAN_TO_NUM,
)


_isclose = define(
    "isclose", "constant", lambda xp, x, y, rtol, atol, equal_nan: xp.isclose(x, y, rtol, atol, equal_nan), arity=2,
    batch=batching.pointwise, samples=samples.ISCLOSE,
)  # fmt: skip

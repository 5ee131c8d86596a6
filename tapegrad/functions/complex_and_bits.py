"""Parts of numbers: real and imaginary part, sign and size, mantissa and exponent; whole numbers as bits.

The public functions of the records in `table.complex_and_bits`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..core import alias
from ..core.op import TABLE
from ..core.record import Box
from ..core.tape import next_slot
from ..dtypes import is_floating
from ..kernels.complex_and_bits import _holds_pairs
from ..table import elementwise as elementwise_records
from ..table.complex_and_bits import _angle_of_real, _complex, _exponent, _heaviside, _power_of_two
from ..table.define import named
from . import casting, elementwise, shared_views
from .arguments import with_grad_fn_name, with_out
from .copies import copied
from .derived import function_of
from .grad_fn_names import set_grad_fn_name
from .operands import SCALARS, form_of, tensor, to_dtype
from .results import result

signbit, isneginf, isposinf, gcd, lcm, bitwise_left_shift, bitwise_right_shift = map(
    function_of, ("signbit", "isneginf", "isposinf", "gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift")
)

# ----------------------------------------------------------------------------------------------------- complex numbers


def real(input: Any) -> Any:
    """The real part of input: a view of a complex tensor, on the same memory; a real tensor is given back as it is.

    Args:
        input: tensor of any shape and dtype.

    Derivative:
        input: see tapegrad/table/elementwise.py, record real

    Example:
        >>> tg.real(tg.tensor([1 + 2j, 3.0]))
        tensor([1., 3.])
    """
    x = tensor(input)
    return alias.view(x, TABLE["real"]) if x._d.dtype.kind == "c" else x


def imag(input: Any) -> Any:
    """The imaginary part of a complex tensor: a view, on the same memory.

    Args:
        input: complex tensor of any shape.

    Raises:
        RuntimeError: for a real tensor.

    Derivative:
        input: see tapegrad/table/elementwise.py, record imag

    Example:
        >>> tg.imag(tg.tensor([1 + 2j, 3.0]))
        tensor([2., 0.])
    """
    x = tensor(input)
    if x._d.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return alias.view(x, TABLE["imag"])


def view_as_real(input: Any) -> Any:
    """A complex tensor as a real one of shape (*input.shape, 2): a view, real and imaginary parts along its last dimension.

    Args:
        input: complex tensor of any shape.

    Raises:
        RuntimeError: for a real tensor.

    Derivative:
        input: view_as_complex(g)

    Example:
        >>> tg.view_as_real(tg.tensor([1 + 2j, 3.0]))
        tensor([[1., 2.],
                [3., 0.]])
    """
    x = tensor(input)
    if x._d.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return alias.view(x, TABLE["view_as_real"])


view_as_real_copy = copied(view_as_real)


@casting.in_float32
def view_as_complex(input: Any) -> Any:
    """A real tensor of shape (.., 2) as a complex one of shape (..): a view, on the same memory.

    Args:
        input: float tensor whose last dimension has size 2: real and imaginary parts.

    Raises:
        RuntimeError: for other sizes, dtypes, or steps in memory that do not allow it.
        TypeError: for 16-bit floats, of which NumPy has no complex numbers.

    Derivative:
        input: view_as_real(g)

    Example:
        >>> tg.view_as_complex(tg.tensor([[1.0, 2.0], [3.0, 0.0]]))
        tensor([1.+2.j, 3.+0.j])
    """
    x = tensor(input)
    a = form_of(x._d) if x._st is None or not isinstance(x._d, np.ndarray) else shared_views.layers(x)[0]
    if not is_floating(a.dtype):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{errors.dtype_name(a.dtype)}"
        )
    if not a.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if a.dtype.itemsize == 2:
        raise TypeError("view_as_complex() of 16-bit floats needs complex32, which NumPy does not have: use .float() first")
    if a.size and not _holds_pairs(a):
        if a.strides[-1] != a.itemsize:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return alias.view(x, TABLE["view_as_complex"])


view_as_complex_copy = copied(view_as_complex)


def _two_reals(x: Any, y: Any) -> tuple[Any, Any]:
    x, y = tensor(x), tensor(y)
    if is_floating(x._d.dtype) and x._d.dtype == y._d.dtype:
        return x, y
    a, b = (errors.dtype_name(t._d.dtype) for t in (x, y))
    if not (is_floating(x._d.dtype) and is_floating(y._d.dtype)):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {a} and {b}")
    raise RuntimeError(f"Expected object of scalar type {a} but got scalar type {b} for second argument")


@with_out
def complex(real: Any, imag: Any) -> Any:
    """Elementwise real + 1j * imag.

    Args:
        real, imag: float tensors of one dtype, which broadcast.

    Returns:
        A complex64 tensor of float16 and float32, else complex128.

    Raises:
        RuntimeError: for other dtypes, or two.

    Derivative:
        real: real(g)
        imag: imag(g)

    Example:
        >>> tg.complex(tg.tensor([1.0, 3.0]), tg.tensor([2.0, 0.0]))
        tensor([1.+2.j, 3.+0.j])
    """
    return _complex(*_two_reals(real, imag))


@with_out
@casting.in_float32
@with_grad_fn_name("PolarBackward0")
def polar(abs: Any, angle: Any) -> Any:
    """Elementwise abs * (cos(angle) + 1j * sin(angle)): complex numbers from absolute value and angle in radians.

    Args:
        abs, angle: float tensors of one dtype, which broadcast.

    Returns:
        A complex64 tensor of float16 and float32, else complex128.

    Raises:
        RuntimeError: for other dtypes, or two.

    Example:
        >>> tg.polar(tg.tensor([1.0, 2.0]), tg.tensor([0.0, 1.0]))
        tensor([1.0000+0.0000j, 1.0806+1.6829j])
    """
    r, phi = _two_reals(abs, angle)
    parts = _complex(r * elementwise_records.cos(phi), r * elementwise_records.sin(phi))
    return set_grad_fn_name("PolarBackward0", parts, linked=True)


@with_out
def conj_physical(input: Any) -> Any:
    """Elementwise complex conjugate; a real tensor is given back as it is. The same as conj, which copies as well here.

    Args:
        input: tensor of any shape and dtype.

    Example:
        >>> tg.conj_physical(tg.tensor([1 + 2j, 3.0]))
        tensor([1.-2.j, 3.-0.j])
    """
    return elementwise.conj(input)


def resolve_conj(input: Any) -> Any:
    """The tensor itself: no conjugation is pending here, as it can be in PyTorch.

    Args:
        input: tensor of any shape and dtype.

    Example:
        >>> x = tg.tensor([1 + 2j])
        >>> tg.resolve_conj(x) is x
        True
    """
    return tensor(input)


def resolve_neg(input: Any) -> Any:
    """The tensor itself: no negation is pending here, as it can be in PyTorch.

    Args:
        input: tensor of any shape and dtype.

    Example:
        >>> x = tg.tensor([1.0])
        >>> tg.resolve_neg(x) is x
        True
    """
    return tensor(input)


def is_conj(input: Any) -> bool:
    """Whether a conjugation is pending: always False here, where conj computes at once.

    Args:
        input: tensor of any shape and dtype.

    Example:
        >>> tg.is_conj(tg.tensor([1 + 2j]).conj())
        False
    """
    return False


def is_neg(input: Any) -> bool:
    """Whether a negation is pending: always False here.

    Args:
        input: tensor of any shape and dtype.

    Example:
        >>> tg.is_neg(tg.tensor([1 + 2j]).conj().imag)
        False
    """
    return False


@with_out
def angle(input: Any) -> Any:
    """Elementwise argument of a complex number, atan2(imag, real), in [-pi, pi].

    Of real numbers it is pi for negative ones, else 0, with derivative 0; nan stays nan. At 0 the derivative is 0.

    Args:
        input: tensor of any shape and dtype; of integers and bools the result has the default dtype.

    Example:
        >>> tg.angle(tg.tensor([1.0, 1j, -1 - 1j]))
        tensor([ 0.0000,  1.5708, -2.3562])
    """
    x = tensor(input)
    return elementwise_records.atan2(imag(x), real(x)) if x._d.dtype.kind == "c" else _angle_of_real(x)


# ------------------------------------------------------------------------------------------------------- sign and size


def positive(input: Any) -> Any:
    """The tensor itself, as +input gives it.

    Args:
        input: tensor of any shape and dtype but bool.

    Raises:
        RuntimeError: for bools.

    Example:
        >>> x = tg.tensor([1.0, -2.0])
        >>> tg.positive(x) is x
        True
    """
    x = tensor(input)
    if x._d.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return x


def _degrees(name: str, node: str, factor: float, doc: str) -> Callable[..., Any]:
    def function(input: Any) -> Any:
        x = tensor(input)
        if x._d.dtype.kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return set_grad_fn_name(node, elementwise_records.mul(x, factor))

    return with_out(named(function, name, doc))


deg2rad = _degrees(
    "deg2rad",
    "Deg2RadBackward0",
    math.pi / 180.0,
    """Elementwise input * pi / 180: the angle in radians of one in degrees.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        RuntimeError: for complex numbers.

    Example:
        >>> tg.deg2rad(tg.tensor([90.0, -180.0]))
        tensor([ 1.5708, -3.1416])
    """,
)
rad2deg = _degrees(
    "rad2deg",
    "Rad2DegBackward0",
    180.0 / math.pi,
    """Elementwise input * 180 / pi: the angle in degrees of one in radians.

    Args:
        input: float tensor of any shape; integers and bools are computed in the default dtype.

    Raises:
        RuntimeError: for complex numbers.

    Example:
        >>> tg.rad2deg(tg.tensor([1.0, -2.0]))
        tensor([  57.2958, -114.5916])
    """,
)


@with_out
def frexp(input: Any) -> Any:
    """Elementwise (mantissa, exponent) with input = mantissa * 2**exponent, the size of the mantissa 0 or in [0.5, 1).

    Args:
        input: float tensor of any shape.

    Returns:
        A named tuple: mantissa of input's dtype, exponent in int32. The gradient flows through mantissa.

    Raises:
        RuntimeError: for other dtypes.

    Example:
        >>> tg.frexp(tg.tensor([8.0, -0.75]))
        torch.return_types.frexp(
        mantissa=tensor([ 0.5000, -0.7500]),
        exponent=tensor([4, 0], dtype=torch.int32))
    """
    x = tensor(input)
    if not is_floating(x._d.dtype):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    before = next_slot()
    exponent = _exponent(x)
    half = elementwise.floor_divide(exponent, 2)  # so that neither power of 2 overflows
    powers = [_power_of_two(half - exponent, x._d.dtype), _power_of_two(-half, x._d.dtype)]
    return result("frexp", set_grad_fn_name("FrexpBackward0", x * powers[0] * powers[1], before), exponent)


@with_out
@with_grad_fn_name("LdexpBackward0")
def ldexp(input: Any, other: Any) -> Any:
    """Elementwise input * 2**other.

    Args:
        input, other: tensors of any dtype or numbers, which broadcast; with an integer other a float input keeps its dtype.

    Example:
        >>> tg.ldexp(tg.tensor([1.5, -1.0]), tg.tensor([3, -1]))
        tensor([12.0000, -0.5000])
    """
    x, power = tensor(input), elementwise.rpow(tensor(other), 2.0)
    result = elementwise_records.mul(x, power)
    floats = x._d.dtype.kind in "fV" and tensor(other)._d.dtype.kind in "biu"
    return to_dtype(result, x._d.dtype) if floats else result


@with_out
def float_power(input: Any, exponent: Any) -> Any:
    """Elementwise input**exponent, computed in float64, or in complex128 if an operand is complex.

    Args:
        input, exponent: tensors of any dtype or numbers, which broadcast.

    Returns:
        A float64 or complex128 tensor.

    Example:
        >>> tg.float_power(tg.tensor([2, 3]), -1)
        tensor([0.5000, 0.3333], dtype=torch.float64)
    """
    given = [a if type(a) in SCALARS else tensor(a) for a in (input, exponent)]
    kinds = [a._d.dtype.kind if isinstance(a, Box) else np.asarray(a).dtype.kind for a in given]
    dtype = np.dtype(np.complex128 if "c" in kinds else np.float64)
    return elementwise.pow(*[TABLE["cast"].call(a, dtype) if isinstance(a, Box) else a for a in given])


@with_out
def heaviside(input: Any, values: Any) -> Any:
    """Elementwise step: 0 where input is negative, 1 where positive, `values` where 0; the gradient is 0 for both.

    Args:
        input, values: real tensors of one dtype, which broadcast.

    Raises:
        RuntimeError: for two dtypes, or complex numbers.

    Derivative:
        none: the gradient stops here

    Example:
        >>> tg.heaviside(tg.tensor([-1.0, 0.0, 2.0]), tg.tensor(0.5))
        tensor([0.0000, 0.5000, 1.0000])
    """
    x, v = tensor(input), tensor(values)
    if x._d.dtype != v._d.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return _heaviside(x, v)


def itself(input: Any) -> Any:
    return input


def rbitwise_left_shift(other: Any, input: Any) -> Any:
    return bitwise_left_shift(input, other)


def rbitwise_right_shift(other: Any, input: Any) -> Any:
    return bitwise_right_shift(input, other)

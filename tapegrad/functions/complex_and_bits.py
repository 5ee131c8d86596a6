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
    """The real part, a view; a real tensor is given back as it is."""
    x = tensor(input)
    return alias.view(x, TABLE["real"]) if x._d.dtype.kind == "c" else x


def imag(input: Any) -> Any:
    """The imaginary part of a complex tensor, a view.

    Raises:
        RuntimeError: for a real tensor.
    """
    x = tensor(input)
    if x._d.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return alias.view(x, TABLE["imag"])


def view_as_real(input: Any) -> Any:
    """A complex tensor as a real one, a view: the parts along a last dimension of size 2."""
    x = tensor(input)
    if x._d.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return alias.view(x, TABLE["view_as_real"])


view_as_real_copy = copied(view_as_real)


@casting.in_float32
def view_as_complex(input: Any) -> Any:
    """A real tensor whose last dimension has size 2 as a complex one, a view.

    Raises:
        RuntimeError: for other sizes, dtypes, or steps in memory that do not allow it.
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
    """The complex tensor of two parts of one real dtype, which broadcast."""
    return _complex(*_two_reals(real, imag))


@with_out
@casting.in_float32
@with_grad_fn_name("PolarBackward0")
def polar(abs: Any, angle: Any) -> Any:
    """The complex tensor abs * (cos(angle) + 1j * sin(angle)), of tensors of one real dtype."""
    r, phi = _two_reals(abs, angle)
    parts = _complex(r * elementwise_records.cos(phi), r * elementwise_records.sin(phi))
    return set_grad_fn_name("PolarBackward0", parts, linked=True)


@with_out
def conj_physical(input: Any) -> Any:
    """Elementwise complex conjugate (conj copies as well here); a real tensor is given back as it is."""
    return elementwise.conj(input)


def resolve_conj(input: Any) -> Any:
    """The tensor itself: no conjugation is pending here."""
    return tensor(input)


def resolve_neg(input: Any) -> Any:
    """The tensor itself: no negation is pending here."""
    return tensor(input)


def is_conj(input: Any) -> bool:
    """Whether a conjugation is pending: never."""
    return False


def is_neg(input: Any) -> bool:
    """Whether a negation is pending: never."""
    return False


@with_out
def angle(input: Any) -> Any:
    """Elementwise argument of a complex number; pi for negative and 0 for other real ones, with derivative 0."""
    x = tensor(input)
    return elementwise_records.atan2(imag(x), real(x)) if x._d.dtype.kind == "c" else _angle_of_real(x)


# ------------------------------------------------------------------------------------------------------- sign and size


def positive(input: Any) -> Any:
    """The tensor itself."""
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


deg2rad = _degrees("deg2rad", "Deg2RadBackward0", math.pi / 180.0, "Elementwise angle in radians of one in degrees.")
rad2deg = _degrees("rad2deg", "Rad2DegBackward0", 180.0 / math.pi, "Elementwise angle in degrees of one in radians.")


@with_out
def frexp(input: Any) -> Any:
    """(mantissa, exponent) with input = mantissa * 2**exponent, mantissa of size 0 or in [0.5, 1); exponent is int32."""
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
    """Elementwise input * 2**other."""
    x, power = tensor(input), elementwise.rpow(tensor(other), 2.0)
    result = elementwise_records.mul(x, power)
    floats = x._d.dtype.kind in "fV" and tensor(other)._d.dtype.kind in "biu"
    return to_dtype(result, x._d.dtype) if floats else result


@with_out
def float_power(input: Any, exponent: Any) -> Any:
    """Elementwise power, computed in float64, or in complex128 if an operand is complex."""
    given = [a if type(a) in SCALARS else tensor(a) for a in (input, exponent)]
    kinds = [a._d.dtype.kind if isinstance(a, Box) else np.asarray(a).dtype.kind for a in given]
    dtype = np.dtype(np.complex128 if "c" in kinds else np.float64)
    return elementwise.pow(*[TABLE["cast"].call(a, dtype) if isinstance(a, Box) else a for a in given])


@with_out
def heaviside(input: Any, values: Any) -> Any:
    """Elementwise 0 where input is negative, 1 where positive, `values` where 0; its derivative is 0."""
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

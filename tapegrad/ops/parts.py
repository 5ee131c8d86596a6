"""Parts of numbers: real and imaginary part, sign and size, mantissa and exponent; whole numbers as bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import errors
from ..arrays import dtypes
from ..core import alias
from ..core.kinds import is_floating
from ..core.op import TABLE
from ..core.record import Box, titled
from . import batching, casting, elementwise
from .define import binary, define, named, unary
from .operands import SCALARS, no_kernel, refused_as, tensor
from .results import result
from .samples import PREDICATE, Sample, cases, complex_uniform, of_values, pairs
from .shape import copied, form_of, with_out

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


def _to_pairs(x: Any) -> Any:
    return x[..., None].view(x.real.dtype)


def _of_pairs(x: Any) -> Any:
    dtype = np.result_type(x, np.complex64)
    if not x.size:
        return np.empty(x.shape[:-1], dtype)
    if not _holds_pairs(x):
        x = np.ascontiguousarray(x)
    return x.view(dtype)[..., 0]


def _holds_pairs(x: Any) -> bool:
    """Whether complex numbers lie where x has pairs."""
    return x.strides[-1] == x.itemsize and not any(s % (2 * x.itemsize) for s in x.strides[:-1])


def _complex_samples() -> Iterator[Sample]:
    yield Sample((complex_uniform((2, 3)),))
    yield Sample((np.array(0.3 - 2.0j),))


define(
    "view_as_real", "linear", _to_pairs, (lambda xp, g, ans, x: xp.view_as_complex(g),), wide=True,
    batch=batching.last, samples=_complex_samples,
)  # fmt: skip
define(
    "view_as_complex", "linear", _of_pairs, (lambda xp, g, ans, x: xp.view_as_real(g),), wide=True,
    batch=batching.last, samples=cases(((3, 2), ()), ((2,), ()), ((2, 3, 2), ())),
)  # fmt: skip


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
    a = form_of(x._d) if x._st is None or not isinstance(x._d, np.ndarray) else alias.layers(x)[0]
    if not is_floating(a.dtype):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{errors.dtype_name(a.dtype)}"
        )
    if not a.ndim or a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if a.dtype.itemsize == 2:
        raise TypeError("view_as_complex() of 16-bit floats needs complex32, which NumPy does not have: use .float() first")
    if a.size and not _holds_pairs(a):
        if a.strides[-1] != a.itemsize:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return alias.view(x, TABLE["view_as_complex"])


view_as_complex_copy = copied(view_as_complex)


def _join(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


_complex = define(
    "complex", "linear", _join, (lambda xp, g, ans, x, y: xp.real(g), lambda xp, g, ans, x, y: xp.imag(g)), arity=2,
    wide=True, batch=batching.pointwise,
    samples=cases(((2, 3), (2, 3), ()), ((2, 1), (3,), ()), ((), (2,), ()), ((0,), (1,), ())),
)  # fmt: skip


def _two_reals(x: Any, y: Any) -> tuple[Any, Any]:
    x, y = tensor(x), tensor(y)
    a, b = (errors.dtype_name(t._d.dtype) for t in (x, y))
    if not (is_floating(x._d.dtype) and is_floating(y._d.dtype)):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {a} and {b}")
    if a != b:
        raise RuntimeError(f"Expected object of scalar type {a} but got scalar type {b} for second argument")
    return x, y


@with_out
def complex(real: Any, imag: Any) -> Any:
    """The complex tensor of two parts of one real dtype, which broadcast."""
    return _complex(*_two_reals(real, imag))


@with_out
@casting.in_float32
def polar(abs: Any, angle: Any) -> Any:
    """The complex tensor abs * (cos(angle) + 1j * sin(angle)), of tensors of one real dtype."""
    r, phi = _two_reals(abs, angle)
    return _complex(r * elementwise.cos(phi), r * elementwise.sin(phi))


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


def _angle_real(x: Any) -> Any:
    dtype = x.dtype if x.dtype.kind == "f" else dtypes.get_default_dtype().numpy
    return np.where(np.isnan(x), x, np.where(x < 0, math.pi, 0.0)).astype(dtype)


_angle_of_real = define("angle", "constant", _angle_real, batch=batching.pointwise, samples=PREDICATE)


@with_out
def angle(input: Any) -> Any:
    """Elementwise argument of a complex number; pi for negative and 0 for other real ones, with derivative 0."""
    x = tensor(input)
    return elementwise.atan2(imag(x), real(x)) if x._d.dtype.kind == "c" else _angle_of_real(x)


# ------------------------------------------------------------------------------------------------------- sign and size


def positive(input: Any) -> Any:
    """The tensor itself."""
    x = tensor(input)
    if x._d.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return x


copysign, _ = binary(
    "copysign",
    np.copysign,
    # 0 where input is 0, as abs; other has derivative 0
    (lambda xp, ans, x, y: xp.sign(x) * xp.sign(ans), 0.0),
    "Elementwise size of input with the sign of other.",
    integers="float",
    refuses=no_kernel("c"),
    samples=pairs((-2.0, 2.0), (0.3, 2.0), (0.0, -1.0), (1.0, -0.0), (-1.0, 0.0)),
)


def _predicate(name: str, forward: Callable[..., Any], doc: str, **fields: Any) -> Callable[..., Any]:
    call = define(name, "constant", forward, batch=batching.pointwise, samples=PREDICATE, **fields)

    def function(input: Any) -> Any:
        return call(tensor(input))

    return with_out(named(function, name, doc))


def _signbit(x: Any) -> Any:
    return np.signbit(x) if x.dtype.kind == "f" else np.less(x, 0)


def _infinite(x: Any, sign: int) -> Any:
    return x == sign * math.inf if x.dtype.kind == "f" else np.zeros(x.shape, bool)


signbit = _predicate(
    "signbit", _signbit, "Whether each element carries a minus sign, -0.0 included.",
    refuses=refused_as("c", "signbit is not implemented for complex tensors.", NotImplementedError),
)  # fmt: skip
isposinf = _predicate(
    "isposinf", lambda x: _infinite(x, 1), "Whether each element is +inf.",
    refuses=refused_as("c", "isposinf does not support complex inputs."),
)  # fmt: skip
isneginf = _predicate(
    "isneginf", lambda x: _infinite(x, -1), "Whether each element is -inf.",
    refuses=refused_as("c", "isneginf does not support complex inputs."),
)  # fmt: skip
isreal = _predicate("isreal", np.isreal, "Whether each element has an imaginary part of 0.")

# The mask of input: where it is the larger, where they are equal, and where other is nan (unequal to itself).
NO_EXTREME = {
    name: refused_as("c", f"{name} not implemented for complex tensors.") for name in ("fmax", "fmin")
}  # fmt: skip
EXTREMES = pairs((-2.0, 2.0), (-2.0, 2.0), (1.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (2.0, 1.0))
fmax, _ = binary(
    "fmax",
    np.fmax,
    (
        lambda xp, ans, x, y: xp.logical_or(xp.ge(x, y), xp.ne(y, y)),
        lambda xp, ans, x, y: xp.logical_not(xp.logical_or(xp.ge(x, y), xp.ne(y, y))),
    ),
    "Elementwise larger value, of a nan and a number the number; at a tie input has all of the derivative.",
    refuses=NO_EXTREME["fmax"],
    samples=EXTREMES,
)
fmin, _ = binary(
    "fmin",
    np.fmin,
    (
        lambda xp, ans, x, y: xp.logical_or(xp.le(x, y), xp.ne(y, y)),
        lambda xp, ans, x, y: xp.logical_not(xp.logical_or(xp.le(x, y), xp.ne(y, y))),
    ),
    "Elementwise smaller value, of a nan and a number the number; at a tie input has all of the derivative.",
    refuses=NO_EXTREME["fmin"],
    samples=EXTREMES,
)


def _degrees(name: str, node: str, factor: float, doc: str) -> Callable[..., Any]:
    def function(input: Any) -> Any:
        x = tensor(input)
        if x._d.dtype.kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return titled(node, elementwise.mul(x, factor))

    return with_out(named(function, name, doc))


deg2rad = _degrees("deg2rad", "Deg2RadBackward0", math.pi / 180.0, "Elementwise angle in radians of one in degrees.")
rad2deg = _degrees("rad2deg", "Rad2DegBackward0", 180.0 / math.pi, "Elementwise angle in degrees of one in radians.")

# ----------------------------------------------------------------------------------------------- mantissa and exponent

NO_FRACTION = no_kernel("cbiu")
frac = unary(
    "frac", lambda x: x - np.trunc(x), 1.0, "Elementwise fractional part, with the sign of input.", integers="keep",
    refuses=NO_FRACTION, samples=of_values([[-1.6, -0.5, 2.2], [0.3, 1.5, 2.7]], smooth=True),
)  # fmt: skip
nextafter, _ = binary(
    "nextafter",
    np.nextafter,
    (lambda xp, ans, x, y: xp.ne(x, y), 0.0),  # 0 where it stays
    "Elementwise next number after input towards other.",
    refuses=NO_FRACTION,
    samples=pairs((-2.0, 2.0), (3.0, 4.0), (1.0, 1.0), numbers=False),
)


_exponent = define(
    "exponent", "constant", lambda x: np.asarray(np.frexp(x)[1], np.int32), batch=batching.pointwise,
    samples=of_values([0.0, 0.75, -6.0, math.inf]),
)  # fmt: skip
_power_of_two = define(
    "power_of_two", "constant", lambda e, dtype: np.ldexp(np.ones((), dtype), e).astype(dtype), params=("dtype",),
    batch=batching.pointwise, samples=of_values([-3, 0, 5], params=(np.dtype(np.float64),)),
)  # fmt: skip


@with_out
def frexp(input: Any) -> Any:
    """(mantissa, exponent) with input = mantissa * 2**exponent, mantissa of size 0 or in [0.5, 1); exponent is int32."""
    x = tensor(input)
    if not is_floating(x._d.dtype):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    exponent = _exponent(x)
    half = elementwise.floor_divide(exponent, 2)  # so that neither power of 2 overflows
    powers = [_power_of_two(half - exponent, x._d.dtype), _power_of_two(-half, x._d.dtype)]
    return result("frexp", x * powers[0] * powers[1], exponent)


@with_out
def ldexp(input: Any, other: Any) -> Any:
    """Elementwise input * 2**other."""
    return elementwise.mul(tensor(input), elementwise.rpow(tensor(other), 2.0))


@with_out
def float_power(input: Any, exponent: Any) -> Any:
    """Elementwise power, computed in float64, or in complex128 if an operand is complex."""
    given = [a if type(a) in SCALARS else tensor(a) for a in (input, exponent)]
    kinds = [a._d.dtype.kind if isinstance(a, Box) else np.asarray(a).dtype.kind for a in given]
    dtype = np.dtype(np.complex128 if "c" in kinds else np.float64)
    return elementwise.pow(*[TABLE["cast"].call(a, dtype) if isinstance(a, Box) else a for a in given])


# ------------------------------------------------------------------------------------------------------- whole numbers


def _whole(name: str, kernel: str, forward: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def on_integers(x: Any, y: Any) -> Any:
        dtype = np.result_type(x, y)
        if dtype.kind not in "iu":
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{errors.dtype_name(dtype)}'")
        return forward(x, y)

    call = define(
        name, "constant", on_integers, arity=2, batch=batching.pointwise,
        samples=of_values([[4, 6, 0], [-4, 7, 3]], [1, 2, 3]),
    )  # fmt: skip

    def function(input: Any, other: Any) -> Any:
        return call(input, other)

    return with_out(named(function, name, doc))


gcd = _whole("gcd", "gcd_cpu", np.gcd, "Elementwise greatest common divisor of integers.")
lcm = _whole("lcm", "lcm_cpu", np.lcm, "Elementwise least common multiple of integers.")


def _shift(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A shift by as many bits as there are, or by a negative number, moves all bits out, as in PyTorch."""

    def shift(x: Any, y: Any) -> Any:
        dtype = np.result_type(x, y)
        bits = dtype.itemsize * 8
        inside = (np.asarray(y) >= 0) & (np.asarray(y) < bits)
        moved = forward(x, np.where(inside, y, 0).astype(dtype))
        gone = np.zeros((), dtype) if forward is np.left_shift else np.where(np.less(x, 0), -1, 0).astype(dtype)
        return np.where(inside, moved, gone)

    return shift


bitwise_left_shift = _whole(
    "bitwise_left_shift", "lshift_cpu", _shift(np.left_shift), "Elementwise input * 2**other of integers."
)  # fmt: skip
bitwise_right_shift = _whole(
    "bitwise_right_shift", "rshift_cpu", _shift(np.right_shift), "Elementwise input / 2**other of integers, rounded down."
)  # fmt: skip


def _step(x: Any, values: Any) -> Any:
    return np.where(np.equal(x, 0), values, np.greater(x, 0).astype(values.dtype))


_heaviside = define(
    "heaviside", "constant", _step, arity=2, batch=batching.pointwise,
    refuses=refused_as("c", "heaviside is not yet implemented for complex tensors."),
    samples=of_values([[-1.0, 0.0, 2.0]], [0.5, 0.25, 1.0]),
)  # fmt: skip


@with_out
def heaviside(input: Any, values: Any) -> Any:
    """Elementwise 0 where input is negative, 1 where positive, `values` where 0; its derivative is 0."""
    x, v = tensor(input), tensor(values)
    if x._d.dtype != v._d.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return _heaviside(x, v)

"""Data types, PyTorch's type promotion, and the value classes ``Size``, ``device``, ``finfo``, ``iinfo``."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, ClassVar, Final, Self, SupportsIndex, overload

import numpy as np

from . import dialect, errors

NumpyDType = np.dtype[Any]

HALF: set[Any] = set()
"""The 16-bit floating-point dtypes that are known so far: what computes, computes in float32 for them."""


def is_inexact(dtype: Any) -> bool:
    """Whether a NumPy dtype is real or complex floating-point: one that carries gradients.

    The bfloat16 of ml_dtypes has NumPy's kind "V", which no other tensor has.
    """
    return dtype.kind in "fVc"


def is_floating(dtype: Any) -> bool:
    """Whether a NumPy dtype is real floating-point."""
    return dtype.kind in "fV"


# ----------------------------------------------------------------------------------------------------
# The dtypes

_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)
_CATEGORY: Final = {"b": _BOOL, "u": _INTEGER, "i": _INTEGER, "f": _FLOAT, "c": _COMPLEX}


class dtype:
    """The data type of a tensor: one of a fixed set of objects, compared by identity.

    Attributes:
        is_floating_point: whether it is a real floating-point type.
        is_complex: whether it is a complex type.
        is_signed: whether it can hold negative numbers.
        itemsize: the bytes of one element.
    """

    __slots__ = ("_category", "_name", "_numpy", "is_complex", "is_floating_point", "is_signed", "itemsize")

    _category: builtins.int
    _name: str
    _numpy: NumpyDType | None
    is_complex: bool
    is_floating_point: bool
    is_signed: bool
    itemsize: builtins.int

    def __init__(self) -> None:
        raise TypeError(f"cannot create '{dialect.current.prefix}.dtype' instances")

    @classmethod
    def _make(cls, name: str, kind: str, itemsize: builtins.int) -> dtype:
        self = object.__new__(cls)
        self._name = name
        self._category = _CATEGORY[kind]
        self._numpy = np.dtype(name) if hasattr(np, name) else None
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self.is_signed = kind in "ifc"
        self.itemsize = itemsize
        return self

    @property
    def numpy(self) -> NumpyDType:
        """The NumPy dtype that stores it; for ``bfloat16`` this needs the package ``ml_dtypes``."""
        if self._numpy is None and self is not bfloat16:
            raise TypeError(f"{self} is here by name alone: no tensor has this dtype")
        if self._numpy is None:
            self._numpy = _numpy_bfloat16()
        return self._numpy

    @property
    def type(self) -> builtins.type[np.generic]:
        """NumPy's type of one number, as of a NumPy dtype; SciPy asks for it."""
        return self.numpy.type

    def to_real(self) -> dtype:
        """Return the type of the real part: ``complex64`` gives ``float32``; a real type gives itself."""
        if not self.is_complex:
            return self
        return float32 if self is complex64 else float64

    def to_complex(self) -> dtype:
        """Return the complex type for this precision; 16-bit floating-point types give ``complex64``."""
        if self._category < _FLOAT:
            raise RuntimeError(f"Unknown Complex ScalarType for {_SCALAR_TYPE[self._name]}")
        if self.is_complex:
            return self
        return complex128 if self is float64 else complex64

    def __repr__(self) -> str:
        return f"{dialect.current.prefix}.{self._name}"

    def __reduce__(self) -> Any:
        return _constant, ("bool_" if self is bool_ else self._name,)


def _constant(name: str) -> Any:
    """The dtype or layout of that name: pickle and copy give back the same object."""
    return globals()[name]


_SCALAR_TYPE: Final = {
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool",
}  # fmt: skip

float64 = double = dtype._make("float64", "f", 8)
float32 = dtype._make("float32", "f", 4)
float16 = half = dtype._make("float16", "f", 2)
bfloat16 = dtype._make("bfloat16", "f", 2)
complex64 = cfloat = dtype._make("complex64", "c", 8)
complex128 = cdouble = dtype._make("complex128", "c", 16)
int64 = long = dtype._make("int64", "i", 8)
int32 = dtype._make("int32", "i", 4)
int16 = short = dtype._make("int16", "i", 2)
int8 = dtype._make("int8", "i", 1)
uint8 = dtype._make("uint8", "u", 1)
uint16, uint32, uint64 = (dtype._make(f"uint{8 * n}", "u", n) for n in (2, 4, 8))  # to store and to convert
bool_ = dtype._make("bool", "b", 1)

# No tensor has these; programs ask for their names and limits.
float8_e4m3fn = dtype._make("float8_e4m3fn", "f", 1)
float8_e5m2 = dtype._make("float8_e5m2", "f", 1)
complex32 = dtype._make("complex32", "c", 4)

# The module's `float` and `int` are dtypes; the Python types are `builtins.float` and `builtins.int` here.
float = float32
int = int32

_ALL: Final = (
    float64, float32, float16, bfloat16, complex64, complex128, int64, int32, int16, int8, uint64, uint32,
    uint16, uint8, bool_,
)  # fmt: skip
_PYTHON_TYPES: Final = (builtins.float, builtins.int, bool, complex)
_BY_NUMPY: Final[dict[NumpyDType, dtype]] = {d.numpy: d for d in _ALL if d is not bfloat16}
HALF.add(float16.numpy)


def _numpy_bfloat16() -> NumpyDType:
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(
            'bfloat16 needs the package ml_dtypes: install it with pip install "tapegrad[bfloat16]"'
        ) from error
    numpy_dtype: NumpyDType = np.dtype(ml_dtypes.bfloat16)
    _BY_NUMPY[numpy_dtype] = bfloat16
    HALF.add(numpy_dtype)
    return numpy_dtype


def of(np_dtype: NumpyDType) -> dtype:
    """Return the dtype that a NumPy dtype stores; TypeError where there is none."""
    try:
        return _BY_NUMPY[np_dtype]
    except KeyError:
        return _of_unregistered(np_dtype)


def with_canonical_dtype(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, with the one object that stands for its dtype here: arrays that were pickled have another.

    Raises:
        TypeError: for a dtype that tensors do not have.
    """
    own = of(array.dtype).numpy
    return array if array.dtype is own else array.view(own)


def _of_unregistered(np_dtype: NumpyDType) -> dtype:
    if np_dtype.name == "bfloat16" and np_dtype == bfloat16.numpy:
        return bfloat16
    if np_dtype.newbyteorder("=") in _BY_NUMPY:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Convert it first: a.astype(a.dtype.newbyteorder('='))"
        )
    found = f"{np_dtype.type.__module__}.{np_dtype.type.__name__}"
    names = ", ".join(d._name for d in _ALL if d is not bool_)
    raise TypeError(f"can't convert np.ndarray of type {found}. The only supported types are: {names}, and bool.")


def is_dtype(d: object) -> bool:
    """Whether d names a dtype where no array type's name can stand: a dtype, a NumPy dtype, or a Python number type."""
    return isinstance(d, dtype | np.dtype) or (isinstance(d, type) and d in _PYTHON_TYPES)


def to_numpy(d: Any) -> NumpyDType:
    """Return the NumPy dtype for a dtype, a NumPy dtype or scalar type, or a Python number type.

    As in PyTorch, Python's float, int, bool and complex stand for float64, int64, bool and complex128.
    """
    if isinstance(d, dtype):
        return d.numpy
    if isinstance(d, np.dtype):
        return of(d).numpy
    if isinstance(d, type) and (d in _PYTHON_TYPES or issubclass(d, np.generic)):
        return of(np.dtype(d)).numpy
    raise TypeError(f"argument 'dtype' must be {dialect.current.prefix}.dtype, not {type(d).__name__}")


# ----------------------------------------------------------------------------------------------------
# The default dtype

_default = float32


def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become, float32 unless set_default_dtype changed it.

    Example:
        >>> tg.get_default_dtype()
        torch.float32
    """
    return _default


def set_default_dtype(d: dtype, /) -> None:
    """Set the dtype that Python floats become, and with it the complex type of Python complex numbers.

    Args:
        d: a floating-point dtype.

    Raises:
        TypeError: for any other.

    Example:
        >>> tg.set_default_dtype(tg.float64)
        >>> tg.tensor(1.0).dtype, tg.tensor(1j).dtype
        (torch.float64, torch.complex128)
        >>> tg.set_default_dtype(tg.float32)
    """
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    to_numpy(d)  # bfloat16 without ml_dtypes must fail here, not at the first Python float
    _default = d


# ----------------------------------------------------------------------------------------------------
# Promotion

PYTHON, ZERO_DIM, DIM = range(3)
"""The ranks of an operand in promotion: a Python scalar, a 0-d tensor, a tensor with dimensions."""


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype that holds both; an integer never widens a floating-point type.

    Args:
        type1, type2: dtypes.

    Example:
        >>> tg.promote_types(tg.int64, tg.float16), tg.promote_types(tg.uint8, tg.int8)
        (torch.float16, torch.int16)
    """
    type1 = _as_dtype(type1, "promote_types", "type1")
    type2 = _as_dtype(type2, "promote_types", "type2", 2)
    if type1 is type2:
        return type1
    low, high = sorted((type1, type2), key=lambda d: d._category)
    if low._category < _FLOAT <= high._category:
        return high
    if not {type1, type2}.isdisjoint((uint16, uint32, uint64)):
        raise errors.no_unsigned_promotion(type1._name, type2._name)
    # Beside another type bfloat16 acts as float32; ml_dtypes itself knows no common type with float16.
    a, b = (float32 if d is bfloat16 else d for d in (low, high))
    return of(np.promote_types(a.numpy, b.numpy))


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether values of a dtype may be written into another: no complex into real, nor real into whole numbers.

    Args:
        from_, to: dtypes.

    Example:
        >>> tg.can_cast(tg.float64, tg.int64), tg.can_cast(tg.int64, tg.float16)
        (False, True)
    """
    return _as_dtype(from_, "can_cast", "from_")._category <= _as_dtype(to, "can_cast", "to", 2)._category


def promote(dt_a: NumpyDType, rank_a: builtins.int, dt_b: NumpyDType, rank_b: builtins.int) -> NumpyDType:
    """Return the dtype of a binary operation over (dtype, rank) operands; see ``result_type``."""
    return _promote(dt_a, rank_a, dt_b, rank_b, _default)


def result_type(*operands: tuple[NumpyDType, builtins.int]) -> NumpyDType:
    """Return the dtype of an operation over (dtype, rank) operands, by PyTorch's rules.

    A rank is DIM for a tensor with dimensions, ZERO_DIM for a 0-d tensor, PYTHON for a Python scalar.
    Categories are ordered bool < integer < floating point < complex. The operands of the highest category
    decide; among those the ones of the highest rank do, except that a complex operand beside floating-point
    ones of higher rank makes these complex in their own precision. A Python float counts as the default
    dtype, a Python complex number as the complex type of the default dtype's precision.
    """
    return _result_type(operands, _default)


@functools.cache
def _promote(dt_a: NumpyDType, rank_a: builtins.int, dt_b: NumpyDType, rank_b: builtins.int, default: dtype) -> NumpyDType:
    return _result_type(((dt_a, rank_a), (dt_b, rank_b)), default)


def _result_type(operands: Iterable[tuple[NumpyDType, builtins.int]], default: dtype) -> NumpyDType:
    by_rank: dict[builtins.int, dtype] = {}
    for np_dtype, rank in operands:
        d = of(np_dtype)
        if rank == PYTHON:
            d = _of_python_scalar(d, default)
        by_rank[rank] = promote_types(by_rank.get(rank, d), d)
    ascending = (by_rank[rank] for rank in sorted(by_rank))
    return functools.reduce(_combine_ranks, ascending).numpy


def _of_python_scalar(d: dtype, default: dtype) -> dtype:
    if d.is_complex:
        return default.to_complex()
    return default if d.is_floating_point else d


def _combine_ranks(lower: dtype, higher: dtype) -> dtype:
    if higher._category >= lower._category:
        return higher
    return higher.to_complex() if higher.is_floating_point else lower


# ----------------------------------------------------------------------------------------------------
# finfo and iinfo


class _TypeInfo:
    """Equality and attributes common to ``finfo`` and ``iinfo``."""

    __slots__ = ("bits", "dtype")

    bits: builtins.int
    dtype: str

    def __eq__(self, other: object) -> bool:
        return self.dtype == other.dtype if isinstance(other, _TypeInfo) else NotImplemented

    def __hash__(self) -> builtins.int:
        return hash(self.dtype)


def _as_dtype(d: object, caller: str, argument: str = "type", position: builtins.int = 1) -> dtype:
    if not is_dtype(d) or isinstance(d, np.dtype):
        raise TypeError(
            f"{caller}(): argument {argument!r} (position {position}) must be {dialect.current.prefix}.dtype, not "
            f"{type(d).__name__}"
        )
    return d if isinstance(d, dtype) else of(to_numpy(d))


_MANTISSA_BITS: Final = {float8_e4m3fn: 3, float8_e5m2: 2, float16: 10, bfloat16: 7, float32: 23, float64: 52}
_MAX_EXPONENT: Final = {float8_e4m3fn: 7, float8_e5m2: 15, float16: 15, bfloat16: 127, float32: 127, float64: 1023}


class finfo(_TypeInfo):
    """The limits of a floating-point type, of a complex type's parts, or of the default dtype if not given.

    Attributes:
        bits: the bits of one number.
        eps: the distance from 1 to the next number.
        max: the largest finite number.
        min: the smallest finite number, ``-max``.
        tiny, smallest_normal: the smallest positive number of full precision.
        resolution: the decimal resolution.
        dtype: the type's name as a string.

    Example:
        >>> tg.finfo(tg.float32).eps
        1.1920928955078125e-07
    """

    __slots__ = ("eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        if type is None:
            type = _default
        type = _as_dtype(type, "finfo")
        real = type.to_real()
        if not real.is_floating_point:
            raise TypeError(
                f"{dialect.current.prefix}.finfo() requires a floating point input type. "
                f"Use {dialect.current.prefix}.iinfo to handle '{dialect.current.prefix}.finfo'"
            )
        mantissa, exponent = _MANTISSA_BITS[real], _MAX_EXPONENT[real]
        self.dtype = real._name
        self.bits = 8 * real.itemsize
        self.eps = math.ldexp(1.0, -mantissa)
        self.max = 448.0 if real is float8_e4m3fn else math.ldexp(2.0 - self.eps, exponent)  # which has no inf
        self.min = -self.max
        self.tiny = self.smallest_normal = math.ldexp(1.0, 1 - exponent)
        digits = math.floor(mantissa * math.log10(2.0))
        self.resolution = builtins.float(f"1e-{digits}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_TypeInfo):
    """The limits of an integer type.

    Attributes:
        bits: the bits of one number.
        max: the largest number.
        min: the smallest number.
        dtype: the type's name as a string.

    Example:
        >>> tg.iinfo(tg.int8).max
        127
    """

    __slots__ = ("max", "min")

    def __init__(self, type: dtype) -> None:
        type = _as_dtype(type, "iinfo")
        if type is bool_:
            raise TypeError(f"{type} is not supported by {dialect.current.prefix}.iinfo")
        if type._category != _INTEGER:
            raise TypeError(
                f"{dialect.current.prefix}.iinfo() requires an integer input type. "
                f"Use {dialect.current.prefix}.finfo to handle '{dialect.current.prefix}.iinfo'"
            )
        limits = np.iinfo(type.numpy)
        self.dtype = type._name
        self.bits = limits.bits
        self.min, self.max = builtins.int(limits.min), builtins.int(limits.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# ----------------------------------------------------------------------------------------------------
# Size


class Size(tuple[builtins.int, ...]):
    """The shape of a tensor: a tuple of ints that prints as ``torch.Size([2, 3])`` and counts its elements.

    It is made from an iterable of integers; slices, sums and repetitions of it are sizes too.

    Example:
        >>> tg.Size([2, 3]).numel()
        6
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[SupportsIndex] = (), /) -> Self:
        items = tuple(iterable)
        try:
            return tuple.__new__(cls, map(operator.index, items))
        except TypeError:
            raise TypeError(_size_error(items)) from None

    def numel(self) -> builtins.int:
        """Return the number of elements of a tensor of this size."""
        return math.prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> builtins.int: ...
    @overload
    def __getitem__(self, key: slice, /) -> Size: ...
    def __getitem__(self, key: Any, /) -> Any:
        item = tuple.__getitem__(self, key)
        return tuple.__new__(Size, item) if isinstance(key, slice) else item

    def __add__(self, other: tuple[builtins.int, ...], /) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[builtins.int, ...], /) -> Size:
        return Size(tuple.__add__(other, self))

    def __mul__(self, times: SupportsIndex, /) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{dialect.current.prefix}.Size([{', '.join(map(repr, self))}])"


def _size_error(items: tuple[object, ...]) -> str:
    position, culprit = next((i, x) for i, x in enumerate(items) if not hasattr(x, "__index__"))
    return f"{dialect.current.prefix}.Size() takes an iterable of 'int' (item {position} is '{type(culprit).__name__}')"


# ----------------------------------------------------------------------------------------------------
# layouts and formats


class layout:
    """How a tensor's elements lie in memory: `strided`, or `sparse_coo` as indices and values."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"{dialect.current.prefix}.{self._name}"

    def __reduce__(self) -> Any:
        return _constant, (self._name,)


class memory_format(layout):
    """An order of a tensor's elements in memory: row-major, or with the channels (dimension 1) innermost."""

    __slots__ = ()


strided, sparse_coo = layout("strided"), layout("sparse_coo")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


# ----------------------------------------------------------------------------------------------------
# device

_DEVICE_TYPES: Final = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
    "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_JAX_TYPES: Final = "jax", "tpu"
_JAX_PLATFORM: Final = re.compile(r"jax:(cpu|cuda|tpu)(?=:|$)")
_DEVICE_STRING: Final = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")


class device:
    """Where a tensor lives: a type and perhaps an index, as in ``device("cpu")`` or ``device("cuda", 1)``.

    Every device that PyTorch names can be written, and JAX's as ``"jax"``, ``"jax:cpu:0"``, ``"jax:cuda:0"`` or ``"tpu"``.
    Tensors are on the CPU, or on the devices that JAX finds; see `kernels.devices`.

    Example:
        >>> tg.device("cpu"), tg.device("cuda", 1).index
        (device(type='cpu'), 1)
    """

    __slots__ = ("_index", "_type")

    _index: builtins.int | None
    _type: str
    _resolve: ClassVar[Callable[..., Any]]  # the device that is meant, with its number; handed in by `kernels.devices`

    def __init__(self, type: str | device | builtins.int, index: builtins.int | None = None) -> None:
        if isinstance(type, device):
            self._type, self._index = type.type, type.index
        elif isinstance(type, str):
            self._type, self._index = _parse_device(type, index)
        elif isinstance(type, builtins.int):
            _require_index(type)
            self._type, self._index = "cuda", type
            try:
                self._resolve()
            except RuntimeError:
                raise RuntimeError("Cannot access accelerator device when none is available.") from None
        else:
            raise TypeError(_device_error(type))

    @property
    def type(self) -> str:
        """The kind of device, such as ``"cpu"``."""
        return self._type

    @property
    def index(self) -> builtins.int | None:
        """The device's number among those of its type, or None."""
        return self._index

    def __enter__(self) -> Self:
        """Within a with block new tensors are on it; an error if it is not there."""
        DEFAULT.set((*DEFAULT.get(), self._resolve()))
        return self

    def __exit__(self, *_: object) -> None:
        before = None
        try:
            before = DEFAULT.get()[:-1]
            DEFAULT.set(before)
        except BaseException:  # Ctrl-C
            DEFAULT.set(DEFAULT.get()[:-1] if before is None else before)
            raise

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self._type == other._type and self._index == other._index

    def __hash__(self) -> builtins.int:
        return hash((self._type, self._index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self._type, self._index)

    def __str__(self) -> str:
        index = dialect.current.index if self._index is None else self._index
        return self._type if index is None else f"{self._type}:{index}"

    def __repr__(self) -> str:
        index = dialect.current.index if self._index is None else self._index
        return f"device(type='{self._type}'{'' if index is None else f', index={index}'})"


def _parse_device(text: str, index: builtins.int | None) -> tuple[str, builtins.int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    platform = _JAX_PLATFORM.match(text)
    if platform is not None:  # "jax:cuda:1" is "cuda:1", and "jax:cpu:0" is "jax:0"
        text = text.removeprefix("jax:") if platform[1] != "cpu" else "jax" + (text[platform.end() :] or ":0")
    match = _DEVICE_STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, own_index = match.groups()
    if kind not in _DEVICE_TYPES and kind not in _JAX_TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_DEVICE_TYPES)} device type at start of device string: {kind}")
    if index is None:
        return kind, None if own_index is None else builtins.int(own_index)
    _require_index(index)
    if own_index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {text}")
    return kind, index


def _require_index(index: builtins.int) -> None:
    if index < 0:
        raise RuntimeError("Device index must not be negative")


def _device_error(found: object) -> str:
    return (
        f"device() received an invalid combination of arguments - got ({type(found).__name__}), "
        f"but expected one of: ({dialect.current.prefix}.device device), (str type, int index = -1)"
    )


CPU: Final = device("cpu")
DEFAULT: ContextVar[tuple[device, ...]] = ContextVar("tapegrad_device", default=(CPU,))
"""Where new tensors are: the last counts; the first is that of `set_default_device`."""

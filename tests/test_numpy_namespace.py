"""`tapegrad.numpy`: NumPy's functions under NumPy's names, and the names of the array API standard."""

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.numpy as tnp
from tapegrad.numpy.arguments import FUNCTIONS, name_of
from tapegrad.numpy.ufuncs import UFUNCS

# The functions of the Python array API standard, version 2024.12.
STANDARD = [
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "negative",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
    "linalg.cholesky",
    "linalg.cross",
    "linalg.det",
    "linalg.diagonal",
    "linalg.eigh",
    "linalg.eigvalsh",
    "linalg.inv",
    "linalg.matmul",
    "linalg.matrix_norm",
    "linalg.matrix_power",
    "linalg.matrix_rank",
    "linalg.matrix_transpose",
    "linalg.outer",
    "linalg.pinv",
    "linalg.qr",
    "linalg.slogdet",
    "linalg.solve",
    "linalg.svd",
    "linalg.svdvals",
    "linalg.tensordot",
    "linalg.trace",
    "linalg.vecdot",
    "linalg.vector_norm",
    "fft.fft",
    "fft.ifft",
    "fft.fftn",
    "fft.ifftn",
    "fft.rfft",
    "fft.irfft",
    "fft.rfftn",
    "fft.irfftn",
    "fft.hfft",
    "fft.ihfft",
    "fft.fftfreq",
    "fft.rfftfreq",
    "fft.fftshift",
    "fft.ifftshift",
    "e",
    "inf",
    "nan",
    "newaxis",
    "pi",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def find(name):
    value = tnp
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", STANDARD)
def test_the_standard_has_it(name):
    value = find(name)
    assert not callable(value) or isinstance(value, type) or value.__doc__ or isinstance(value, tg.dtype)


@pytest.mark.parametrize("function", [*FUNCTIONS, *UFUNCS], ids=name_of)
def test_every_recorded_function_has_its_name(function):
    assert callable(find(name_of(function).removeprefix("numpy.")))


def test_numbers_become_what_they_are_in_numpy():
    for value, dtype in ((1.5, tg.float64), (2, tg.int64), ([1.0, 2], tg.float64), (1j, tg.complex128), ([True], tg.bool)):
        assert tnp.array(value).dtype is dtype
    assert tnp.sin([1.0, 2.0]).dtype is tg.float64 and tnp.linalg.det([[2.0, 0.0], [0.0, 3.0]]).dtype is tg.float64
    assert tnp.sin(tg.ones(2)).dtype is tg.float32
    for made in (tnp.zeros(2), tnp.ones((2, 1)), tnp.eye(2), tnp.linspace(0, 1, 3), tnp.full(2, 0.5), tnp.tri(2)):
        assert made.dtype is tg.float64
    assert tnp.zeros(2, np.float32).dtype is tg.float32 and tnp.ones(2, tnp.int8).dtype is tg.int8
    assert tnp.arange(3).dtype is tg.int64 and tnp.arange(0.0, 1.0, 0.5).tolist() == [0.0, 0.5]


def test_everything_is_recorded():
    x = tg.tensor([1.0, 2.0], dtype=tg.float64, requires_grad=True)
    y = tnp.array([x[0] * 3.0, 1.0, x[1]])
    z = tnp.sum(tnp.concat([y, tnp.full(2, x[0])]) ** 2) + tnp.fft.ifft(tnp.fft.fft(x)).real[1]
    z.backward()
    assert x.grad.tolist() == [22.0, 5.0]


def test_arrays_give_tensors():
    a = np.arange(6.0).reshape(2, 3)
    for result in (tnp.sum(a, axis=0), tnp.flip(a), tnp.where(a > 1, a, 0.0), tnp.stack([a, a]), tnp.einsum("ij->i", a)):
        assert isinstance(result, tg.Tensor)
    assert tnp.take([4, 5, 6], tnp.array([2, 0])).tolist() == [6, 4]


def test_copies():
    a = np.zeros(2)
    shared, copied = tnp.asarray(a), tnp.array(a)
    a[0] = 1
    assert shared.tolist() == [1.0, 0.0] and copied.tolist() == [0.0, 0.0]
    x = tg.ones(2)
    assert tnp.asarray(x) is x and tnp.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        tnp.asarray(x, tg.float64, copy=False)


def test_a_tensor_names_its_namespace():
    x = tg.ones(2)
    assert x.__array_namespace__() is tnp and x.__array_namespace__(api_version="2023.12") is tnp
    with pytest.raises(ValueError, match="no array API of version '2099.12'"):
        x.__array_namespace__(api_version="2099.12")
    info = tnp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is tg.float64 and x.device in info.devices()
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert x.to_device(x.device) is x


def test_dtypes():
    assert tnp.isdtype(tg.float32, "real floating") and tnp.isdtype(tnp.int8, ("bool", "integral"))
    assert not tnp.isdtype(tg.float32, "complex floating") and tnp.isdtype(tg.int32, tg.int32)
    with pytest.raises(ValueError, match="unknown kind"):
        tnp.isdtype(tg.int8, "quantised")
    assert tnp.result_type(tg.int8, tg.float32) is tg.float32 and tnp.result_type(tg.ones(2), 1.5) is tg.float32
    assert tnp.can_cast(tg.int8, tg.int16) and not tnp.can_cast(tg.ones(1), tg.int64)
    assert tnp.finfo(tg.complex64).dtype is tg.float32 and tnp.finfo(tg.float64).eps == 2.0**-52
    assert tnp.iinfo(tg.ones(1, dtype=tg.int16)).max == 32767


def test_dlpack_shares_memory():
    x = tg.arange(3.0)
    a, y = np.from_dlpack(x), tnp.from_dlpack(np.arange(3.0))
    x[0] = 7
    assert a.tolist() == [7.0, 1.0, 2.0] and y.dtype is tg.float64
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(tg.ones(1, requires_grad=True))


def test_sort_takes_the_names_of_the_standard():
    x = tg.tensor([2.0, 3.0, 1.0, 3.0], requires_grad=True)
    y = tnp.sort(x, descending=True)
    assert y.tolist() == [3.0, 3.0, 2.0, 1.0] and tnp.argsort(x, descending=True).tolist() == [1, 3, 0, 2]
    (y * tnp.arange(4)).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 3.0, 1.0]

"""Data types, promotion, Size, device, finfo and iinfo, against literal expectations."""

import array
import copy
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import dialect, dtypes
from tapegrad.dtypes import DIM, PYTHON, ZERO_DIM

REAL = ["float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool"]
NAMES = [*REAL, "complex64", "complex128"]
ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}


def by_name(name):
    return dtypes.bool_ if name == "bool" else getattr(dtypes, name)


@pytest.fixture
def keep_default_dtype():
    before = dtypes.get_default_dtype()
    yield
    dtypes.set_default_dtype(before)


@pytest.fixture
def without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(dtypes.bfloat16, "_numpy", None)


# The dtypes


@pytest.mark.parametrize("name", NAMES)
def test_repr_and_str(name):
    assert repr(by_name(name)) == str(by_name(name)) == f"torch.{name}"


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases(alias, name):
    assert getattr(dtypes, alias) is by_name(name)


def test_prefix_changes_dtypes_and_sizes():
    before = dialect.speak(dialect.Dialect(prefix="oneflow"))
    try:
        assert repr(dtypes.float32) == "oneflow.float32"
        assert repr(dtypes.Size([2])) == "oneflow.Size([2])"
    finally:
        assert dialect.speak(before).prefix == "oneflow"
    assert repr(dtypes.float32) == "torch.float32"


@pytest.mark.parametrize("name", NAMES)
def test_pickle_and_copy_give_the_same_object(name):
    d = by_name(name)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(d, protocol)) is d
    assert copy.copy(d) is d
    assert copy.deepcopy([d])[0] is d


def test_no_new_dtypes_and_no_new_attributes():
    with pytest.raises(TypeError, match=r"cannot create 'torch\.dtype' instances"):
        dtypes.dtype()
    with pytest.raises(AttributeError):
        dtypes.float32.note = 1


@pytest.mark.parametrize(
    ("names", "floating", "complex_", "signed"),
    [
        ("float16 bfloat16 float32 float64", True, False, True),
        ("complex64 complex128", False, True, True),
        ("int8 int16 int32 int64", False, False, True),
        ("uint8 bool", False, False, False),
    ],
)
def test_flags(names, floating, complex_, signed):
    for d in map(by_name, names.split()):
        assert (d.is_floating_point, d.is_complex, d.is_signed) == (floating, complex_, signed)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "bfloat16"])
def test_numpy_and_back(name):
    d = by_name(name)
    assert d.numpy == np.dtype(name)
    assert d.itemsize == d.numpy.itemsize
    assert dtypes.of(d.numpy) is d


def test_bfloat16_through_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numpy_dtype = np.dtype(ml_dtypes.bfloat16)
    assert dtypes.of(numpy_dtype) is dtypes.bfloat16
    assert dtypes.bfloat16.numpy == numpy_dtype
    assert dtypes.bfloat16.itemsize == 2


def test_bfloat16_array_is_known_before_bfloat16_was_used():
    pytest.importorskip("ml_dtypes")
    program = "import ml_dtypes, numpy as np; from tapegrad import dtypes;print(dtypes.of(np.dtype(ml_dtypes.bfloat16)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "torch.bfloat16\n"


def test_bfloat16_without_ml_dtypes(without_ml_dtypes):
    with pytest.raises(ImportError, match=r'pip install "tapegrad\[bfloat16\]"'):
        dtypes.to_numpy(dtypes.bfloat16)
    with pytest.raises(ImportError, match="ml_dtypes"):
        dtypes.set_default_dtype(dtypes.bfloat16)
    assert dtypes.get_default_dtype() is dtypes.float32
    assert dtypes.promote_types(dtypes.bfloat16, dtypes.float16) is dtypes.float32
    assert dtypes.finfo(dtypes.bfloat16).eps == 2**-7


def test_ml_dtypes_is_not_imported_unasked():
    program = "import sys; import tapegrad.dtypes; print('ml_dtypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("np_dtype", "found"),
    [
        (object, "numpy.object_"),
        (np.longdouble, "numpy.longdouble"),
        (np.clongdouble, "numpy.clongdouble"),
        ([("x", "f4")], "numpy.void"),
        ("U3", "numpy.str_"),
        ("M8[s]", "numpy.datetime64"),
    ],
)
def test_unsupported_numpy_dtypes(np_dtype, found):
    with pytest.raises(TypeError) as error:
        dtypes.of(np.dtype(np_dtype))
    assert str(error.value) == (
        f"can't convert np.ndarray of type {found}. The only supported types are: float64, float32, float16, "
        "bfloat16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
    )


def test_foreign_byte_order():
    foreign = np.dtype(np.float64).newbyteorder()
    with pytest.raises(ValueError, match="byte order different from the native byte order"):
        dtypes.of(foreign)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (dtypes.float32, "float32"),
        (np.dtype("int16"), "int16"),
        (np.float16, "float16"),
        (np.bool_, "bool"),
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
        (complex, "complex128"),
    ],
)
def test_to_numpy(given, expected):
    assert dtypes.to_numpy(given) == np.dtype(expected)
    assert str(tg.ones(2).to(given).dtype) == f"torch.{expected}"


@pytest.mark.parametrize("given", [None, "float32", 3, str, object, np.zeros(2), np.longdouble])
def test_to_numpy_refuses(given):
    with pytest.raises(TypeError):
        dtypes.to_numpy(given)


def test_to_real_and_to_complex():
    assert dtypes.complex64.to_real() is dtypes.float32
    assert dtypes.complex128.to_real() is dtypes.float64
    assert dtypes.int8.to_real() is dtypes.int8
    assert dtypes.float32.to_complex() is dtypes.float16.to_complex() is dtypes.complex64
    assert dtypes.float64.to_complex() is dtypes.complex128.to_complex() is dtypes.complex128
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Char"):
        dtypes.int8.to_complex()


# The default dtype


def test_default_dtype(keep_default_dtype):
    assert dtypes.get_default_dtype() is dtypes.float32
    dtypes.set_default_dtype(dtypes.float64)
    assert dtypes.get_default_dtype() is dtypes.float64


@pytest.mark.parametrize("d", [dtypes.int32, dtypes.bool_, dtypes.complex64])
def test_default_dtype_must_be_floating(d):
    with pytest.raises(TypeError, match="^only floating-point types are supported as the default type$"):
        dtypes.set_default_dtype(d)


@pytest.mark.parametrize("d", [float, np.float32, "float32", None])
def test_default_dtype_must_be_a_dtype(d):
    with pytest.raises(TypeError, match="^invalid dtype object: only floating-point types are supported"):
        dtypes.set_default_dtype(d)


# Promotion


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("bool", "bool", "bool"),
        ("bool", "uint8", "uint8"),
        ("uint8", "int8", "int16"),
        ("uint8", "int64", "int64"),
        ("int32", "int64", "int64"),
        ("int64", "float16", "float16"),
        ("int64", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("bfloat16", "float64", "float64"),
        ("bfloat16", "complex64", "complex64"),
        ("float64", "complex64", "complex128"),
        ("int64", "complex64", "complex64"),
    ],
)
def test_promote_types(a, b, expected):
    assert dtypes.promote_types(by_name(a), by_name(b)) is by_name(expected)
    assert dtypes.promote_types(by_name(b), by_name(a)) is by_name(expected)


def test_promote_types_refuses_other_objects():
    with pytest.raises(TypeError, match=r"argument 'type2' \(position 2\) must be torch\.dtype, not str"):
        dtypes.promote_types(dtypes.int8, "int8")


@pytest.mark.parametrize(
    ("a", "rank_a", "b", "rank_b", "expected"),
    [
        ("float32", DIM, "float64", DIM, "float64"),
        ("float32", DIM, "float64", ZERO_DIM, "float32"),
        ("float16", DIM, "float64", PYTHON, "float16"),
        ("int8", DIM, "int64", ZERO_DIM, "int8"),
        ("int8", ZERO_DIM, "int64", PYTHON, "int8"),
        ("int64", DIM, "float16", ZERO_DIM, "float16"),
        ("int64", DIM, "float64", PYTHON, "float32"),
        ("bool", DIM, "int64", PYTHON, "int64"),
        ("uint8", DIM, "bool", PYTHON, "uint8"),
        ("float64", DIM, "complex64", ZERO_DIM, "complex128"),
        ("float32", DIM, "complex128", ZERO_DIM, "complex64"),
        ("float32", DIM, "complex128", PYTHON, "complex64"),
        ("float16", DIM, "complex128", PYTHON, "complex64"),
        ("int64", DIM, "complex128", PYTHON, "complex64"),
        ("complex64", DIM, "float64", ZERO_DIM, "complex64"),
        ("int64", PYTHON, "float64", PYTHON, "float32"),
    ],
)
def test_promote(a, rank_a, b, rank_b, expected):
    dt_a, dt_b = np.dtype(a), np.dtype(b)
    assert dtypes.promote(dt_a, rank_a, dt_b, rank_b) == np.dtype(expected)
    assert dtypes.promote(dt_b, rank_b, dt_a, rank_a) == np.dtype(expected)


def test_promotion_follows_the_default_dtype(keep_default_dtype):
    integers, python_float, python_complex = np.dtype("int64"), np.dtype("float64"), np.dtype("complex128")
    for name, complex_name in (("float32", "complex64"), ("float64", "complex128"), ("float16", "complex64")):
        dtypes.set_default_dtype(by_name(name))
        assert dtypes.promote(integers, DIM, python_float, PYTHON) == np.dtype(name)
        assert dtypes.promote(integers, DIM, python_complex, PYTHON) == np.dtype(complex_name)


def test_promotion_under_the_default_bfloat16(keep_default_dtype):
    pytest.importorskip("ml_dtypes")
    dtypes.set_default_dtype(dtypes.bfloat16)
    integers = np.dtype("int64")
    assert dtypes.of(dtypes.promote(integers, DIM, np.dtype("float64"), PYTHON)) is dtypes.bfloat16
    assert dtypes.of(dtypes.promote(integers, DIM, np.dtype("complex128"), PYTHON)) is dtypes.complex64


def test_result_type_of_many_operands():
    int8, float16, float64 = np.dtype("int8"), np.dtype("float16"), np.dtype("float64")
    assert dtypes.result_type((int8, DIM)) == int8
    assert dtypes.result_type((int8, DIM), (float16, ZERO_DIM), (float64, PYTHON)) == float16
    assert dtypes.result_type((int8, DIM), (float16, ZERO_DIM), (float64, DIM)) == float64


# finfo and iinfo


def test_finfo():
    info = dtypes.finfo(dtypes.float32)
    assert repr(info) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    )
    assert info == dtypes.finfo() == dtypes.finfo(dtypes.complex64) != dtypes.finfo(dtypes.float64)
    assert hash(info) == hash(dtypes.finfo())
    with pytest.raises(TypeError, match="requires a floating point input type"):
        dtypes.finfo(dtypes.int32)
    with pytest.raises(TypeError, match=r"finfo\(\): argument 'type' \(position 1\) must be torch.dtype, not float"):
        dtypes.finfo(1.0)


def test_number_types_of_python_stand_for_dtypes():
    assert dtypes.finfo(float) == dtypes.finfo(complex) == dtypes.finfo(dtypes.float64)
    assert dtypes.iinfo(int) == dtypes.iinfo(dtypes.int64)
    assert dtypes.promote_types(float, dtypes.int32) is dtypes.float64 and not dtypes.can_cast(float, dtypes.int32)
    x = tg.ones(2)
    assert x.to(float).dtype is tg.float64 and x.to(int).dtype is tg.int64 and x.double().view(int).dtype is tg.int64
    assert tg.nn.Linear(1, 1).to(float).weight.dtype is tg.float64
    with pytest.raises(TypeError, match=r"can_cast\(\): argument 'to' \(position 2\) must be torch.dtype, not int"):
        dtypes.can_cast(dtypes.int32, 1)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo_equals_numpys(name):
    ours, numpys = dtypes.finfo(by_name(name)), np.finfo(name)
    for attribute in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(ours, attribute) == getattr(numpys, attribute)


def test_iinfo():
    info = dtypes.iinfo(dtypes.int16)
    assert (info.bits, info.min, info.max, info.dtype) == (16, -32768, 32767, "int16")
    assert repr(dtypes.iinfo(dtypes.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    with pytest.raises(TypeError, match="requires an integer input type"):
        dtypes.iinfo(dtypes.float32)
    with pytest.raises(TypeError, match=r"torch\.bool is not supported by torch\.iinfo"):
        dtypes.iinfo(dtypes.bool_)


# Size


def test_size():
    size = dtypes.Size([2, 3])
    assert repr(size) == str(size) == f"{size}" == "torch.Size([2, 3])"
    assert repr(dtypes.Size()) == "torch.Size([])"
    assert size == (2, 3)
    assert hash(size) == hash((2, 3))
    assert size.numel() == 6
    assert dtypes.Size().numel() == 1
    assert dtypes.Size([0, 5]).numel() == 0


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda s: s[:1], (2,)),
        (lambda s: s[::-1], (3, 2)),
        (lambda s: s + s, (2, 3, 2, 3)),
        (lambda s: s + (4,), (2, 3, 4)),
        (lambda s: (4,) + s, (4, 2, 3)),
        (lambda s: s * 2, (2, 3, 2, 3)),
        (lambda s: 2 * s, (2, 3, 2, 3)),
        (copy.deepcopy, (2, 3)),
        (lambda s: pickle.loads(pickle.dumps(s)), (2, 3)),
    ],
)
def test_size_operations_return_sizes(make, expected):
    result = make(dtypes.Size([2, 3]))
    assert type(result) is dtypes.Size
    assert result == expected


def test_size_items_become_ints():
    size = dtypes.Size([np.int64(3), True])
    assert repr(size) == "torch.Size([3, 1])"
    assert [type(n) for n in size] == [int, int]
    assert size[0] == 3


def test_size_refusals():
    with pytest.raises(TypeError, match=r"^torch\.Size\(\) takes an iterable of 'int' \(item 1 is 'float'\)$"):
        dtypes.Size([2, 3.0])
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        dtypes.Size(3)
    with pytest.raises(TypeError):
        dtypes.Size([2]) + [3]


# device


@pytest.mark.parametrize(
    ("args", "kind", "index", "text", "shown"),
    [
        (("cpu",), "cpu", None, "cpu", "device(type='cpu')"),
        (("cpu:0",), "cpu", 0, "cpu:0", "device(type='cpu', index=0)"),
        (("cuda",), "cuda", None, "cuda", "device(type='cuda')"),
        (("cuda:1",), "cuda", 1, "cuda:1", "device(type='cuda', index=1)"),
        (("cuda", 2), "cuda", 2, "cuda:2", "device(type='cuda', index=2)"),
        ((dtypes.device("mps"),), "mps", None, "mps", "device(type='mps')"),
    ],
)
def test_device(args, kind, index, text, shown):
    d = dtypes.device(*args)
    assert (d.type, d.index, str(d), repr(d)) == (kind, index, text, shown)
    assert pickle.loads(pickle.dumps(d)) == copy.deepcopy(d) == d


def test_device_equality_and_hash():
    device = dtypes.device
    assert device("cpu") == device("cpu")
    assert hash(device("cpu")) == hash(device("cpu"))
    assert device("cpu") != device("cpu:0")
    assert device("cpu") != "cpu"
    assert device(type="cuda", index=1) == device("cuda:1")


def test_device_cannot_be_changed():
    with pytest.raises(AttributeError):
        dtypes.device("cpu").type = "cuda"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("gpu",),
            "Expected one of cpu, cuda, .*, privateuseone device type at start of device string: gpu$",
        ),
        (("CPU",), "Expected one of cpu, .* device string: CPU$"),
        (("",), "Device string must not be empty$"),
        (("cuda:x",), "Invalid device string: 'cuda:x'$"),
        (("cuda:-1",), "Invalid device string: 'cuda:-1'$"),
        (("cuda:01",), "Invalid device string: 'cuda:01'$"),
        (("cpu", -1), "Device index must not be negative$"),
        (
            ("cuda:1", 1),
            r"type \(string\) must not include an index because index was passed explicitly: cuda:1$",
        ),
        ((0,), "Cannot access accelerator device when none is available"),
        ((-1,), "Device index must not be negative"),
    ],
)
def test_bad_devices(args, message):
    with pytest.raises(RuntimeError, match="^" + message):
        dtypes.device(*args)


def test_device_of_another_type():
    with pytest.raises(TypeError, match=r"invalid combination of arguments - got \(float\)"):
        dtypes.device(3.0)


def test_arrays_and_tensors_that_were_pickled_have_an_ordinary_dtype():
    """NumPy gives an unpickled array a dtype object of its own, equal to the usual one but not the same."""
    array = pickle.loads(pickle.dumps(np.ones((2, 2))))
    assert array.dtype is not np.dtype(np.float64)
    w = tg.ones(2, 2, dtype=tg.float64)
    for t in (tg.from_numpy(array), tg.tensor(array), tg.as_tensor(array), array, pickle.loads(pickle.dumps(w))):
        assert (w @ t).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert np.shares_memory(tg.from_numpy(array).numpy(), array)


def test_wider_unsigned_integers_are_kept_and_converted(tmp_path):
    x = tg.from_numpy(np.array([1, 65535], np.uint16))
    assert str(x) == "tensor([    1, 65535], dtype=torch.uint16)" and x.type() == "torch.UInt16Tensor"
    assert x.int().tolist() == [1, 65535] and x.view(tg.int16).tolist() == [1, -1] and x.sum().dtype is tg.int64
    assert (x + tg.ones(2)).dtype is tg.float32 and (x * x).dtype is tg.uint16
    assert tg.tensor([2**63], dtype=tg.uint64).tolist() == [2**63] and tg.iinfo(tg.uint32).max == 2**32 - 1
    with pytest.raises(RuntimeError, match="is not supported, attempted to promote UInt16 and Long"):
        x + tg.tensor([1])
    with pytest.raises(TypeError, match="files have no tensors of torch.uint16"):
        tg.save(x, tmp_path / "x")


def test_integers_beyond_64_bits_are_bools_or_floats_where_that_is_wanted():
    large = 2**65
    assert tg.tensor([large, 0, float("nan"), 1 - large], dtype=tg.bool).tolist() == [True, False, True, True]
    assert tg.tensor([large, 1.0]).tolist() == [2.0**65, 1.0]
    assert tg.tensor([large], dtype=tg.complex64).tolist() == [2.0**65 + 0j]
    assert tg.tensor([0j, 1e-323j, 1 + 2j], dtype=tg.bool).tolist() == [False, True, True]
    with pytest.raises(OverflowError, match="int too large to convert to float"):
        tg.tensor([10**400], dtype=tg.float64)
    for make in (lambda: tg.tensor(2**63), lambda: tg.tensor([2**63]), lambda: tg.full((2,), 2**63)):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            make()
    assert tg.tensor([2**63, 1], dtype=tg.uint64).tolist() == [2**63, 1]


def test_buffers():
    numbers = array.array("i", [1, 2, 3])
    t = tg.asarray(numbers, dtype=tg.int32)
    t[0] = 9
    assert numbers.tolist() == [9, 2, 3]
    assert tg.asarray(bytearray(b"abcd"), dtype=tg.int16, copy=True).tolist() == [25185, 25699]
    assert tg.asarray(memoryview(np.ones((2, 2))), dtype=tg.float64).shape == (4,)
    assert tg.tensor(numbers).dtype is tg.int64 and tg.asarray(numbers).tolist() == [9, 2, 3]
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Double' into dtype 'Float'"):
        tg.asarray(np.ones(2), dtype=tg.float32, copy=False)


def test_a_sequence_that_gives_no_items_has_no_shape():
    class Sequence:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            raise TypeError

    with pytest.raises(ValueError, match="could not determine the shape of object type 'Sequence'"):
        tg.tensor(Sequence())


def test_full_refuses_numbers_that_become_infinite():
    large = [(1e300, tg.float32), (2**40, tg.float16), (1e300, None), (1e300j, tg.complex64)]
    large += [(1e300, tg.bfloat16)] if find_spec("ml_dtypes") else []
    for value, dtype in large:
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            tg.full((2,), value, dtype=dtype)
    assert tg.full((1,), float("inf")).tolist() == [float("inf")]
    assert tg.full((1,), 1e300, dtype=tg.float64).tolist() == [1e300]
    assert tg.full((1,), 1e300, dtype=tg.bool).tolist() == [True]

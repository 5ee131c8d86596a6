"""Data types and promotion against PyTorch."""

import itertools

import numpy as np
import pytest

from tapegrad.arrays import dtypes

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
NAMES = [*FLOATS, *INTEGERS, "bool"]
ALIASES = ["half", "float", "double", "cfloat", "cdouble", "short", "int", "long"]
PYTHON_SCALARS = {"bool": True, "int64": 1, "float64": 1.0, "complex128": 1j}
DEFAULTS = ["float32", "float64", "float16", "bfloat16"]


def ours(name):
    return dtypes.bool_ if name == "bool" else getattr(dtypes, name)


def expected_name(torch_dtype):
    # NumPy has no 32-bit complex type: complex64 takes the place of PyTorch's complex32.
    return "complex64" if torch_dtype is torch.complex32 else str(torch_dtype).removeprefix("torch.")


def message(call):
    """Return the type and the first sentence of the error that a call raises."""
    with pytest.raises((TypeError, RuntimeError)) as error:
        call()
    return error.type, str(error.value).split("\n")[0]


@pytest.fixture
def set_default():
    def set_both(name):
        torch.set_default_dtype(getattr(torch, name))
        dtypes.set_default_dtype(ours(name))

    yield set_both
    set_both("float32")


def operands():
    """Yield (NumPy dtype, rank, PyTorch operand) for every dtype and rank."""
    for name in NAMES:
        torch_dtype = getattr(torch, name)
        yield ours(name).numpy, dtypes.DIM, torch.ones(1, dtype=torch_dtype)
        yield ours(name).numpy, dtypes.ZERO_DIM, torch.ones((), dtype=torch_dtype)
    for name, scalar in PYTHON_SCALARS.items():
        yield np.dtype(name), dtypes.PYTHON, scalar


@pytest.mark.parametrize("name", NAMES + ALIASES)
def test_attributes(name):
    a, b = ours(name), getattr(torch, name)
    assert repr(a) == repr(b)
    for attribute in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        assert getattr(a, attribute) == getattr(b, attribute)
    assert repr(a.to_real()) == repr(b.to_real())
    if a.is_floating_point or a.is_complex:
        assert repr(a.to_complex()) == f"torch.{expected_name(b.to_complex())}"
    else:
        assert message(a.to_complex) == message(b.to_complex)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NAMES, NAMES)))
def test_promote_types(a, b):
    expected = torch.promote_types(getattr(torch, a), getattr(torch, b))
    assert dtypes.promote_types(ours(a), ours(b)) is ours(expected_name(expected))


@pytest.mark.parametrize("default", DEFAULTS)
def test_promote_every_pair_of_dtype_and_rank(default, set_default):
    set_default(default)
    wrong = []
    for (dt_a, rank_a, a), (dt_b, rank_b, b) in itertools.product(operands(), operands()):
        got = dtypes.of(dtypes.promote(dt_a, rank_a, dt_b, rank_b))
        expected = ours(expected_name(torch.result_type(a, b)))
        if got is not expected:
            wrong.append((dt_a, rank_a, dt_b, rank_b, got, expected))
    assert wrong == []


def test_result_type_of_three_operands():
    rng = np.random.default_rng(0)
    pool = [(dt, rank, t.to("meta")) for dt, rank, t in operands() if rank != dtypes.PYTHON]
    for _ in range(500):
        chosen = [pool[i] for i in rng.integers(len(pool), size=3)]
        expected = torch.addcmul(*(t for _, _, t in chosen)).dtype
        got = dtypes.result_type(*((dt, rank) for dt, rank, _ in chosen))
        assert dtypes.of(got) is ours(expected_name(expected))


@pytest.mark.parametrize("name", FLOATS)
def test_finfo(name):
    a, b = dtypes.finfo(ours(name)), torch.finfo(getattr(torch, name))
    assert repr(a) == repr(b)
    for attribute in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
        assert getattr(a, attribute) == getattr(b, attribute)


@pytest.mark.parametrize("name", INTEGERS)
def test_iinfo(name):
    a, b = dtypes.iinfo(ours(name)), torch.iinfo(getattr(torch, name))
    assert repr(a) == repr(b)
    for attribute in ("bits", "max", "min", "dtype"):
        assert getattr(a, attribute) == getattr(b, attribute)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.finfo(t.int32),
        lambda t: t.finfo(t.bool),
        lambda t: t.finfo(3),
        lambda t: t.iinfo(t.float32),
        lambda t: t.iinfo(t.complex64),
        lambda t: t.iinfo(t.bool),
        lambda t: t.set_default_dtype(t.int32),
        lambda t: t.set_default_dtype(t.complex64),
        lambda t: t.set_default_dtype(float),
        lambda t: t.set_default_dtype("float32"),
        lambda t: t.promote_types(t.int8, "x"),
        lambda t: t.promote_types(1, t.int8),
        lambda t: t.dtype(),
        lambda t: t.Size(["a"]),
        lambda t: t.Size([2, 2.0]),
        lambda t: t.Size(3),
    ],
)
def test_error_texts(call, monkeypatch):
    monkeypatch.setattr(dtypes, "bool", dtypes.bool_, raising=False)
    assert message(lambda: call(dtypes)) == message(lambda: call(torch))


DEVICES = [
    ("cpu",), ("cpu:0",), ("cpu:1",), ("cuda",), ("cuda:1",), ("cuda:127",), ("meta",), ("mps",), ("xla",),
    ("foo",), ("CPU",), ("gpu",), ("",), ("cuda:",), ("cuda:x",), ("cuda:-1",), ("cuda:01",), ("cuda:1:2",),
    ("cuda", 1), (":1",), ("cuda 1",), ("cuda:1", 1), ("cpu", -1), ("cuda", -2), (-1,), (3.0,), (None,),
]  # fmt: skip


@pytest.mark.parametrize("args", DEVICES)
def test_device(args):
    try:
        expected = torch.device(*args)
    except (RuntimeError, TypeError):
        kind, text = message(lambda: torch.device(*args))
        got_kind, got_text = message(lambda: dtypes.device(*args))
        assert got_kind is kind
        assert got_text.startswith(text)
    else:
        got = dtypes.device(*args)
        assert (repr(got), str(got)) == (repr(expected), str(expected))
        assert (got.type, got.index) == (expected.type, expected.index)


SIZES = [
    lambda t: t.Size(),
    lambda t: t.Size([2, 3]),
    lambda t: t.Size(range(2)),
    lambda t: t.Size([True, -1]),
    lambda t: t.Size([2, 3])[:1],
    lambda t: t.Size([2, 3])[-1],
    lambda t: t.Size([2, 3]) + (1,),
    lambda t: (1,) + t.Size([2, 3]),
    lambda t: t.Size([2]) + t.Size([3]),
    lambda t: t.Size([2, 3]) * 2,
    lambda t: 2 * t.Size([2, 3]),
    lambda t: t.Size([2, 3]).numel(),
    lambda t: t.Size([]).numel(),
]


@pytest.mark.parametrize("make", SIZES)
def test_size(make):
    assert repr(make(dtypes)) == repr(make(torch))


# Differences: a test fails when PyTorch no longer does otherwise.


def test_pytorch_has_a_32_bit_complex_type():
    assert torch.result_type(torch.ones(1, dtype=torch.float16), 1j) is torch.complex32
    assert torch.float16.to_complex() is torch.complex32
    assert dtypes.float16.to_complex() is dtypes.complex64


def test_pytorch_wraps_device_indices_around():
    assert torch.device("cuda:300").index != 300
    assert dtypes.device("cuda:300").index == 300


def test_foreign_byte_order():
    foreign = np.zeros(2, np.dtype("float64").newbyteorder())
    with pytest.raises(ValueError, match="^given numpy array has byte order different") as error:
        torch.from_numpy(foreign)
    with pytest.raises(ValueError, match="^" + str(error.value).split(".")[0]):
        dtypes.of(foreign.dtype)

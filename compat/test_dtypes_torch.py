"""Data types and promotion against PyTorch."""

import itertools
import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import dtypes

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


# Results: every operation over every pair of {tensor, 0-d tensor, Python number} x dtype

VALUES = {"a": [3, 1, 2], "b": [2, 1, 3]}
NUMBERS = {"bool": True, "int": 2, "float": 2.5, "complex": 1.5 + 1j}
OPERANDS = [*itertools.product(NAMES, ("tensor", "0-d")), *[(name, "number") for name in NUMBERS]]

BINARY = {
    "+": lambda lib, a, b: a + b,
    "-": lambda lib, a, b: a - b,
    "*": lambda lib, a, b: a * b,
    "/": lambda lib, a, b: a / b,
    "**": lambda lib, a, b: a**b,
    "//": lambda lib, a, b: a // b,
    "%": lambda lib, a, b: a % b,
    "==": lambda lib, a, b: a == b,
    "!=": lambda lib, a, b: a != b,
    "<": lambda lib, a, b: a < b,
    "<=": lambda lib, a, b: a <= b,
    ">": lambda lib, a, b: a > b,
    ">=": lambda lib, a, b: a >= b,
    "&": lambda lib, a, b: a & b,
    "|": lambda lib, a, b: a | b,
    "^": lambda lib, a, b: a ^ b,
    **{
        name: lambda lib, a, b, name=name: getattr(lib, name)(a, b)
        for name in (
            "add", "sub", "mul", "div", "pow", "remainder", "fmod", "floor_divide", "maximum", "minimum", "atan2", "hypot",
            "logical_and", "logical_or", "logical_xor", "matmul", "isclose", "eq", "lt",
        )
    },
    "div floor": lambda lib, a, b: lib.div(a, b, rounding_mode="floor"),
    "div trunc": lambda lib, a, b: lib.div(a, b, rounding_mode="trunc"),
    "add alpha": lambda lib, a, b: lib.add(a, b, alpha=2),
    "where": lambda lib, a, b: lib.where(lib.tensor([True, False, True]), a, b),
    "masked_fill": lambda lib, a, b: lib.masked_fill(a, lib.tensor([True, False, True]), b),
    "cat": lambda lib, a, b: lib.cat([a, b]),
    "stack": lambda lib, a, b: lib.stack([a, b]),
    "lerp": lambda lib, a, b: lib.lerp(a, b, 0.5),
    "addcmul": lambda lib, a, b: lib.addcmul(a, b, b),
    "clamp": lambda lib, a, b: lib.clamp(a, min=b),
}  # fmt: skip
IN_PLACE = {
    **{
        f"{name}_": lambda lib, a, b, name=name: getattr(a, f"{name}_")(b)
        for name in ("add", "sub", "mul", "div", "pow", "floor_divide", "remainder", "eq", "lt", "logical_and", "copy")
    },
    "x[0] =": lambda lib, a, b: a.__setitem__(0, b) or a,
    "x[...] =": lambda lib, a, b: a.__setitem__(..., b) or a,
}
# PyTorch has no kernel there; ours computes.
COMPUTED = {
    "hypot": {*INTEGERS, "bool"},
    "lerp": {*INTEGERS, "bool"},
    "matmul": {"bool"},
    "addcmul": {"bool"},
    "clamp": {"bool"},
}
# An imaginary part is not dropped by an assignment, as it is in PyTorch; copy_ drops it, as its name says.
REFUSED = {"x[0] =", "x[...] ="}


def operand_of(lib, name, rank, which):
    if rank == "number":
        return NUMBERS[name]
    values = [bool(v - 1) if name == "bool" else v for v in VALUES[which]]
    t = lib.tensor(values if rank == "tensor" else values[0])
    return t.to(lib.bool if name == "bool" else getattr(lib, name))


def outcome(call, *args):
    """(dtype, values) of a result, or (the exception's class, its text)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(*args)
        except Exception as error:
            return type(error), str(error).split("\n")[0]
        if result is NotImplemented:
            return TypeError, "NotImplemented"
        return str(result.dtype), result.tolist()


def is_error(found):
    return isinstance(found[0], type)


def same_outcome(got, want):
    if is_error(want) or is_error(got):
        return is_error(want) and is_error(got) and issubclass(got[0], want[0])
    return got[0] == want[0] and np.allclose(got[1], want[1], rtol=2e-2, equal_nan=True)


def excused(name, a, b, got, want, used):
    """Whether an outcome may differ: what is always so, or what a table above lists (then it is noted in `used`)."""
    if "ComplexHalf" in str(want[1]) or want[0] == "torch.complex32":
        return True  # NumPy has no 32-bit complex type
    if want[0] is TypeError and "number" in (a[1], b[1]):
        return True  # a number where PyTorch wants a tensor: taken, or refused for another reason
    if is_error(want) and "not implemented for" in want[1] and not is_error(got):
        kinds = COMPUTED.get(name, set())
        used.add(name)
        return a[0] in kinds and b[0] in {*kinds, *NUMBERS}
    if name in REFUSED and is_error(got) and b[0].startswith("complex"):
        used.add(name)
        return True
    return False


@pytest.mark.parametrize("name", [*BINARY, *IN_PLACE])
def test_every_pair_of_operands(name):
    call = BINARY.get(name) or IN_PLACE[name]
    wrong, used = [], set()
    for a, b in itertools.product(OPERANDS, OPERANDS):
        if a[1] == "number" and (b[1] == "number" or name in IN_PLACE):
            continue
        want = outcome(call, torch, operand_of(torch, *a, "a"), operand_of(torch, *b, "b"))
        got = outcome(call, tg, operand_of(tg, *a, "a"), operand_of(tg, *b, "b"))
        if not same_outcome(got, want) and not excused(name, a, b, got, want, used):
            wrong.append((a, b, got, want))
    assert not wrong, f"{len(wrong)} differ, the first: {wrong[0]}"
    assert (name in used) == (name in COMPUTED or name in REFUSED), "listed as different, but is not"


def first_of(result):
    return result[0] if isinstance(result, tuple) else result


UNARY = {
    **{
        name: lambda lib, x, name=name: getattr(lib, name)(x)
        for name in (
            "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2",
            "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_not", "bitwise_not",
            "neg", "reciprocal", "relu", "round", "rsqrt", "sign", "sgn", "sin", "sinh", "sqrt", "square", "tan", "tanh",
            "trunc", "nan_to_num", "sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "std", "var",
            "median", "all", "any", "argsort", "count_nonzero",
        )
    },
    "cumsum": lambda lib, x: lib.cumsum(x, 0),
    "cumprod": lambda lib, x: lib.cumprod(x, 0),
    "cummax": lambda lib, x: first_of(lib.cummax(x, 0)),
    "cummin": lambda lib, x: first_of(lib.cummin(x, 0)),
    "max dim": lambda lib, x: first_of(lib.max(x, 0)),
    "median dim": lambda lib, x: first_of(lib.median(x, 0)),
    "sort": lambda lib, x: first_of(lib.sort(x)),
    "topk": lambda lib, x: first_of(lib.topk(x, 2)),
    "clamp": lambda lib, x: lib.clamp(x, 1, 2),
    "exp_": lambda lib, x: x.exp_(),
    "floor_": lambda lib, x: x.floor_(),
    "sigmoid_": lambda lib, x: x.sigmoid_() if not x.is_complex() else x,
    "requires_grad": lambda lib, x: x.requires_grad_(),
    "item": lambda lib, x: lib.tensor(x[0].item()),
    "double": lambda lib, x: x.double() if not x.is_complex() else x,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_every_dtype(name):
    wrong = []
    for dtype in NAMES:
        want = outcome(UNARY[name], torch, operand_of(torch, dtype, "tensor", "a"))
        got = outcome(UNARY[name], tg, operand_of(tg, dtype, "tensor", "a"))
        if not same_outcome(got, want):
            wrong.append((dtype, got, want))
    assert not wrong


# A Python number that an element cannot hold

FILLS = {
    "fill_": lambda lib, x, v: x.fill_(v),
    "masked_fill": lambda lib, x, v: x.masked_fill(lib.tensor([True]), v),
    "x[0] =": lambda lib, x, v: x.__setitem__(0, v) or x,
    "+": lambda lib, x, v: x + v,
    "==": lambda lib, x, v: x == v,
    "tensor": lambda lib, x, v: lib.tensor(v, dtype=x.dtype),
}
EXTREMES = [300, -1, 2.5, 1e300, float("inf"), float("nan"), 70000.0, 1 + 1j]


@pytest.mark.parametrize("name", FILLS)
def test_numbers_out_of_range(name):
    wrong = []
    for dtype, value in itertools.product(NAMES, EXTREMES):
        if isinstance(value, complex) and (name == "+" or dtype == "bool"):
            continue
        if name == "+" and dtype.startswith("complex") and not abs(value) < 1e30:
            continue  # PyTorch's imaginary part is nan: it multiplies by alpha=1
        want, got = (
            outcome(FILLS[name], lib, lib.zeros(1, dtype=lib.bool if dtype == "bool" else getattr(lib, dtype)), value)
            for lib in (torch, tg)
        )
        overflows = dtype in ("float16", "bfloat16") and is_error(want) and not is_error(got)
        if not same_outcome(got, want) and not (overflows and name == "masked_fill"):  # inf, as fill_ and x[0] = give
            wrong.append((dtype, value, got, want))
    assert not wrong

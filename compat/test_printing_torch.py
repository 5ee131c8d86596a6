"""The printed form of arrays against PyTorch, on seeded arrays of many shapes, magnitudes and dtypes."""

import itertools

import numpy as np
import pytest

from tapegrad import dtypes
from tapegrad.tensor import printing

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

SHAPES = [
    (), (1,), (3,), (17,), (100,), (1000,), (1001,), (0,), (2, 3), (7, 5), (40, 30), (3, 400), (400, 3),
    (2, 2000), (0, 4), (3, 1, 2), (2, 0, 3), (7, 1, 200), (2, 2, 2, 2), (5, 6, 7, 8), (1, 1, 1, 1, 1),
]  # fmt: skip
REAL = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "int8", "bool"]
NAMES = [*REAL, "complex64", "complex128"]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0]


def floats(rng, shape):
    """Return floats: whole, quarters, of one magnitude, of many; some with special values."""
    normal = rng.standard_normal(shape)
    kinds = [
        lambda: normal * 10.0 ** rng.integers(-12, 12),
        lambda: normal * 10.0 ** rng.integers(-3, 4, shape),
        lambda: np.round(normal * 10.0 ** rng.integers(0, 10)),
        lambda: np.round(normal * 20) / 4,
        lambda: np.abs(normal) + 1,
    ]
    values = kinds[rng.integers(len(kinds))]()
    if rng.random() < 0.3:
        values = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), values)
    return np.array(values)


def tensor(rng, shape, name):
    dtype = getattr(torch, name)
    if dtype.is_complex:
        return torch.complex(torch.from_numpy(floats(rng, shape)), torch.from_numpy(floats(rng, shape))).to(dtype)
    if dtype.is_floating_point:
        return torch.from_numpy(floats(rng, shape)).to(dtype)
    if name == "bool":
        return torch.from_numpy(np.array(rng.random(shape) < rng.choice([0.5, 1.0])))
    low, high = (-(10 ** int(rng.integers(1, 18))), 10**17) if name == "int64" else (0, 100)
    return torch.from_numpy(np.array(rng.integers(low, high, shape))).to(dtype)


def to_array(t):
    t = t.detach()
    if t.dtype is torch.bfloat16:
        return t.float().numpy().astype(dtypes.bfloat16.numpy)
    return t.numpy()


def ours(t, *suffixes):
    a = to_array(t)
    default = dtypes.get_default_dtype().numpy
    if printing.needs_dtype_suffix(a.dtype, default, empty=a.size == 0):
        suffixes = (f"dtype={dtypes.of(a.dtype)}", *suffixes)
    return printing.tensor_repr(a, suffixes=list(suffixes))


def tracked(t, name):
    """Return the tensor as the result of an operation whose backward has the given name."""
    methods = {"forward": lambda ctx, x: x.clone(), "backward": lambda ctx, g: g}
    function = type(name, (torch.autograd.Function,), {k: staticmethod(f) for k, f in methods.items()})
    return function.apply(t.requires_grad_())


@pytest.fixture
def set_options():
    def set_both(**options):
        torch.set_printoptions(**options)
        printing.set_printoptions(**options)

    set_both(profile="default")
    yield set_both
    set_both(profile="default")


@pytest.mark.parametrize(("shape", "name"), list(itertools.product(SHAPES, NAMES)))
def test_print(shape, name, set_options):
    rng = np.random.default_rng([NAMES.index(name), SHAPES.index(shape)])
    for _ in range(4):
        t = tensor(rng, shape, name)
        assert ours(t) == repr(t)
        assert ours(t.mT if t.ndim > 1 else t) == repr(t.mT if t.ndim > 1 else t)


@pytest.mark.parametrize("seed", range(200))
def test_print_under_options(seed, set_options):
    rng = np.random.default_rng(seed)
    set_options(
        precision=int(rng.integers(0, 8)),
        linewidth=int(rng.integers(10, 140)),
        edgeitems=int(rng.integers(0, 5)),
        threshold=int(rng.choice([0, 5, 100, 1000])),
        sci_mode=[None, True, False][rng.integers(3)],
    )
    t = tensor(rng, SHAPES[rng.integers(len(SHAPES))], NAMES[rng.integers(len(NAMES))])
    assert ours(t) == repr(t)


@pytest.mark.parametrize("profile", ["default", "short", "full"])
def test_profiles(profile, set_options):
    set_options(profile=profile)
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        t = tensor(rng, shape, "float32")
        assert ours(t) == repr(t)


@pytest.mark.parametrize("length", range(1, 70))
@pytest.mark.parametrize(("shape", "name"), [((3,), "float32"), ((2, 6), "float64"), ((0, 3), "float16")])
def test_suffixes_wrap_at_the_same_length(shape, name, length, set_options):
    t = tensor(np.random.default_rng(length), shape, name).requires_grad_()
    assert ours(t, "requires_grad=True") == repr(t)
    function = "F" * length
    assert ours(t, f"grad_fn=<{function}Backward>") == repr(tracked(t, function))


@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(2,), (0,), (0, 2)])
def test_dtype_suffix_follows_the_default(default, shape, set_options):
    try:
        torch.set_default_dtype(getattr(torch, default))
        dtypes.set_default_dtype(getattr(dtypes, default))
        for name in NAMES:
            t = torch.ones(shape, dtype=getattr(torch, name))
            assert ours(t) == repr(t)
    finally:
        torch.set_default_dtype(torch.float32)
        dtypes.set_default_dtype(dtypes.float32)


def test_pytorch_ignores_an_unknown_profile(set_options):
    torch.set_printoptions(profile="long")
    with pytest.raises(ValueError, match="profile"):
        printing.set_printoptions(profile="long")

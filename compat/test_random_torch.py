"""The random streams of tapegrad.kernels.random against PyTorch on the CPU."""

from __future__ import annotations

import importlib
import pickle
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegrad import compat
from tapegrad.functions import create
from tapegrad.kernels import random as tr

torch = pytest.importorskip("torch")

SEEDS = [0, 1, 42, 2**31 + 7, 2**32 - 1, 2**32 + 5, -1, -(2**63), 2**64 - 1]
SIZES = [0, 1, 2, 5, 15, 16, 17, 31, 32, 33, 100, 1000, 4099, 70001]
DTYPES: list[tuple[Any, Any]] = [
    (np.float32, torch.float32),
    (np.float64, torch.float64),
    (np.float16, torch.float16),
]
try:
    import ml_dtypes
except ImportError:
    pass
else:
    DTYPES.append((ml_dtypes.bfloat16, torch.bfloat16))


def _on_intel() -> bool:
    try:
        with open("/proc/cpuinfo") as f:
            return "GenuineIntel" in f.read()
    except OSError:
        return "Intel" in platform.processor()


needs_stream_bernoulli = pytest.mark.skipif(
    _on_intel() and torch.backends.mkl.is_available(),
    reason="PyTorch draws from MKL's generator on Intel CPUs",
)
needs_avx2 = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="PyTorch rounds differently without AVX2",
)
dtypes = pytest.mark.parametrize(("np_dtype", "torch_dtype"), DTYPES, ids=lambda d: getattr(d, "__name__", str(d)))


def numpy_of(t: Any) -> Any:
    return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if t.dtype == torch.bfloat16 else t.numpy()


def pair(seed: int) -> tuple[tr.Generator, Any]:
    return tr.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)


def assert_same(ours: Any, theirs: Any) -> None:
    expected = numpy_of(theirs)
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    np.testing.assert_array_equal(ours.astype(np.float64), expected.astype(np.float64))


def assert_same_state(g: tr.Generator, t: Any) -> None:
    np.testing.assert_array_equal(g.get_state(), t.get_state().numpy())


def assert_close(ours: Any, theirs: Any, rtol: float, allowed: float) -> None:
    """Equal up to ``rtol``, and different at all in at most the fraction ``allowed`` of the elements."""
    expected = numpy_of(theirs)
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    a, b = ours.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    assert np.count_nonzero(a != b) <= max(2, allowed * a.size)


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_and_states(seed: int) -> None:
    g, t = pair(seed)
    assert g.initial_seed() == t.initial_seed()
    assert_same_state(g, t)
    for n in (1, 622, 1, 1, 2000):
        assert_same(g.randint(n, np.int64, 0, 1000), torch.randint(0, 1000, (n,), generator=t))
        assert_same_state(g, t)


def test_default_seed_and_bad_seeds() -> None:
    assert tr.Generator().initial_seed() == torch.Generator().initial_seed()
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError):
            torch.Generator().manual_seed(seed)
        with pytest.raises(ValueError):
            tr.Generator().manual_seed(seed)


def test_states_are_exchanged() -> None:
    g, t = pair(3)
    torch.randn(7, generator=t)
    torch.rand(700, generator=t)
    g.set_state(t.get_state().numpy())
    assert_same_state(g, t)
    assert_same(g.normal(5), torch.randn(5, generator=t))
    g.uniform(11)
    t.set_state(torch.from_numpy(g.get_state()))
    assert_same(g.normal(4), torch.randn(4, generator=t))
    assert_same_state(pickle.loads(pickle.dumps(g)), t)


@needs_avx2
@dtypes
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 0.37), (-0.3, 1.7), (-3.0, -1.7), (2.0, 2.0), (1e3, 1e3 + 0.25)])
def test_uniform(np_dtype: Any, torch_dtype: Any, bounds: tuple[float, float]) -> None:
    for seed in SEEDS[:4]:
        g, t = pair(seed)
        for n in SIZES:
            theirs = torch.empty(n, dtype=torch_dtype).uniform_(*bounds, generator=t)
            assert_same(g.uniform(n, np_dtype, *bounds), theirs)
        assert_same_state(g, t)


@needs_avx2
@dtypes
@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.5, 1.7), (-3.0, 0.02), (2.0, 0.0)])
def test_normal(np_dtype: Any, torch_dtype: Any, mean: float, std: float) -> None:
    for seed in SEEDS[:6]:
        g, t = pair(seed)
        for n in SIZES:
            theirs = torch.empty(n, dtype=torch_dtype).normal_(mean, std, generator=t)
            ours = g.normal(n, np_dtype, mean, std)
            if np_dtype == np.float64:
                assert_close(ours, theirs, 2e-15, 0.05)
            elif n < 16:
                assert_close(ours, theirs, 1e-3 if np.dtype(np_dtype).itemsize == 2 else 1e-7, 0.0)
            else:
                assert_same(ours, theirs)
        state, expected = g.get_state(), t.get_state().numpy()
        np.testing.assert_array_equal(state[:5016], expected[:5016])
        cached, expected_cached = (s[5024:5032].view(np.float64)[0] for s in (state, expected))
        assert cached == pytest.approx(expected_cached, rel=1e-15)
        np.testing.assert_array_equal(state[5032:], expected[5032:])


@needs_avx2
def test_normal_float32_is_bit_exact() -> None:
    for seed in range(4):
        g, t = pair(seed)
        ours, theirs = g.normal(1 << 20), torch.randn(1 << 20, generator=t).numpy()
        np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32))


def test_normal_non_contiguous() -> None:
    g, t = pair(5)
    theirs = torch.empty(8, 6).t().normal_(0.5, 2.0, generator=t)
    assert_close(g.normal((8, 6), np.float32, 0.5, 2.0, contiguous=False).T, theirs, 1e-7, 0.0)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 2),
        (0, 10),
        (-7, 1),
        (0, 2**28 - 1),
        (0, 2**28),
        (5, 3 * 10**9),
        (0, 2**32),
        (-5, 2**33),
        (-(2**63), 2**63 - 1),
    ],
)
def test_randint(low: int, high: int) -> None:
    for seed in SEEDS:
        g, t = pair(seed)
        for n in (0, 1, 1000):
            assert_same(g.randint((n, 2), np.int64, low, high), torch.randint(low, high, (n, 2), generator=t))
        assert_same_state(g, t)


INT_NAMES = ["int64", "int32", "int16", "int8", "uint8"]


@pytest.mark.parametrize("name", [*INT_NAMES, "bool", "float16", "float32", "float64", "uint16", "uint32", "uint64"])
def test_randint_dtypes(name: str) -> None:
    g, t = pair(8)
    high = 2 if name == "bool" else 100
    theirs = torch.randint(0, high, (1000,), dtype=getattr(torch, name), generator=t)
    assert_same(g.randint(1000, name, 0, high), theirs)


@pytest.mark.parametrize("name", [*INT_NAMES, "bool", "float16", "float32", "float64"])
def test_random_ints(name: str) -> None:
    for seed in SEEDS:
        g, t = pair(seed)
        theirs = torch.empty(1000, dtype=getattr(torch, name)).random_(generator=t)
        assert_same(g.random_ints(1000, name), theirs)
        assert_same_state(g, t)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 127, 1000, 100_000])
def test_randperm(n: int) -> None:
    for seed in SEEDS:
        g, t = pair(seed)
        assert_same(g.randperm(n), torch.randperm(n, generator=t))
        assert_same_state(g, t)
    for name in INT_NAMES[1:] if n < 128 else ["int32", "float32"]:
        assert_same(g.randperm(n, name), torch.randperm(n, dtype=getattr(torch, name), generator=t))


@needs_stream_bernoulli
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1 / 3, 1.0, 1e-17, 1 - 2**-53])
def test_bernoulli(p: float) -> None:
    for seed in SEEDS:
        g, t = pair(seed)
        for name in ("float32", "bool", "int64", "float16"):
            theirs = torch.empty(10, 101, dtype=getattr(torch, name)).bernoulli_(p, generator=t)
            assert_same(g.bernoulli((10, 101), name, p), theirs)
        assert_same_state(g, t)


@needs_stream_bernoulli
def test_dropout() -> None:
    for seed in range(10):
        torch.manual_seed(seed)
        create.manual_seed(seed)
        kept = torch.nn.functional.dropout(torch.ones(50, 50), 0.3) != 0
        assert_same(create.default_generator.bernoulli((50, 50), np.bool_, 1 - 0.3), kept)
        assert_same_state(create.default_generator, torch.random.default_generator)


@dtypes
def test_bernoulli_array(np_dtype: Any, torch_dtype: Any) -> None:
    for seed in SEEDS:
        g, t = pair(seed)
        p = torch.rand(30, 101, dtype=torch_dtype)
        assert_same(g.bernoulli_array(numpy_of(p)), torch.bernoulli(p, generator=t))
        into = torch.empty(30, 101, dtype=torch.int64).bernoulli_(p, generator=t)
        assert_same(g.bernoulli_array(numpy_of(p), np.int64), into)
        assert_same_state(g, t)


Draw = Callable[[tr.Generator, Any], Any]
CONTINUOUS: dict[str, tuple[Draw, Callable[[Any, Any], Any]]] = {
    "exponential": (lambda g, d: g.exponential(5001, d, 1.7), lambda e, t: e.exponential_(1.7, generator=t)),
    "cauchy": (lambda g, d: g.cauchy(5001, d, 0.5, 1.7), lambda e, t: e.cauchy_(0.5, 1.7, generator=t)),
    "log_normal": (
        lambda g, d: g.log_normal(5001, d, 0.5, 0.7),
        lambda e, t: e.log_normal_(0.5, 0.7, generator=t),
    ),
}


@needs_stream_bernoulli
@dtypes
@pytest.mark.parametrize("name", list(CONTINUOUS))
def test_continuous(np_dtype: Any, torch_dtype: Any, name: str) -> None:
    ours, theirs = CONTINUOUS[name]
    rtol, allowed = {2: (8e-3, 0.0), 4: (1.2e-7, 0.0), 8: (1e-11, 0.3)}[np.dtype(np_dtype).itemsize]
    for seed in SEEDS:
        g, t = pair(seed)
        a, b = ours(g, np_dtype), theirs(torch.empty(5001, dtype=torch_dtype), t)
        assert_close(a, b, rtol, allowed)
        np.testing.assert_array_equal(g.get_state()[:5016], t.get_state().numpy()[:5016])


@pytest.mark.parametrize("name", [*INT_NAMES[:2], "float16", "float32", "float64"])
@pytest.mark.parametrize("p", [0.01, 0.3, 0.999])
def test_geometric(name: str, p: float) -> None:
    for seed in SEEDS:
        g, t = pair(seed)
        theirs = torch.empty(5001, dtype=getattr(torch, name)).geometric_(p, generator=t)
        assert_same(g.geometric(5001, name, p), theirs)
        assert_same_state(g, t)


@needs_stream_bernoulli
@dtypes
@pytest.mark.parametrize("shape", [(50,), (7, 50)])
def test_multinomial(np_dtype: Any, torch_dtype: Any, shape: tuple[int, ...]) -> None:
    for seed in SEEDS:
        g, t = pair(seed)
        weights = torch.rand(*shape, dtype=torch_dtype) + 0.01
        for samples, replacement in ((1, False), (1, True), (30, True), (200, True), (5, False)):
            theirs = torch.multinomial(weights, samples, replacement, generator=t)
            ours = g.multinomial(numpy_of(weights), samples, replacement)
            if samples == 5 and np.dtype(np_dtype).itemsize == 2:
                assert np.count_nonzero(ours != theirs.numpy()) <= 4  # Scores of 16 bits are sometimes tied.
            else:
                assert_same(ours, theirs)
        assert_same_state(g, t)


@needs_avx2
@needs_stream_bernoulli
def test_interleaved_calls() -> None:
    calls: list[tuple[Draw, Draw]] = [
        (lambda g, n: g.uniform(n), lambda t, n: torch.rand(n, generator=t)),
        (lambda g, n: g.uniform(n, np.float64), lambda t, n: torch.rand(n, dtype=torch.float64, generator=t)),
        (lambda g, n: g.normal(n), lambda t, n: torch.randn(n, generator=t)),
        (lambda g, n: g.normal(n % 16), lambda t, n: torch.randn(n % 16, generator=t)),
        (lambda g, n: g.normal(n, np.float16), lambda t, n: torch.randn(n, dtype=torch.float16, generator=t)),
        (lambda g, n: g.randint(n, np.int64, 0, 9), lambda t, n: torch.randint(0, 9, (n,), generator=t)),
        (
            lambda g, n: g.randint(n, np.int64, 0, 2**40),
            lambda t, n: torch.randint(0, 2**40, (n,), generator=t),
        ),
        (lambda g, n: g.randperm(n), lambda t, n: torch.randperm(n, generator=t)),
        (
            lambda g, n: g.bernoulli(n, np.float32, 0.3),
            lambda t, n: torch.empty(n).bernoulli_(0.3, generator=t),
        ),
        (lambda g, n: g.exponential(n), lambda t, n: torch.empty(n).exponential_(generator=t)),
        (lambda g, n: g.log_normal(n), lambda t, n: torch.empty(n).log_normal_(generator=t)),
    ]
    choose = np.random.default_rng(0)
    for seed in range(20):
        g, t = pair(seed)
        for _ in range(100):
            ours, theirs = calls[choose.integers(len(calls))]
            n = int(choose.integers(60))
            assert_close(ours(g, n), theirs(t, n), 1e-3, 0.0)
        np.testing.assert_array_equal(g.get_state()[:5016], t.get_state().numpy()[:5016])


def test_module_functions() -> None:
    create.manual_seed(-3)
    torch.manual_seed(-3)
    assert create.initial_seed() == torch.initial_seed()
    np.testing.assert_array_equal(create.get_rng_state(), torch.get_rng_state().numpy())
    with create.fork_rng():
        create.default_generator.uniform(5)
    assert_same(create.default_generator.uniform(5), torch.rand(5))


def test_refusals() -> None:
    g, t = pair(0)
    wrong: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: g.uniform(3, np.float32, 1, 0), lambda: torch.empty(3).uniform_(1, 0, generator=t)),
        (
            lambda: g.uniform(3, np.float16, 0, 1e9),
            lambda: torch.empty(3).half().uniform_(0, 1e9, generator=t),
        ),
        (lambda: g.normal(3, np.float32, 0, -1), lambda: torch.empty(3).normal_(0, -1, generator=t)),
        (lambda: g.normal(3, np.int64), lambda: torch.empty(3).long().normal_(generator=t)),
        (lambda: g.exponential(3, np.float32, 0), lambda: torch.empty(3).exponential_(0, generator=t)),
        (lambda: g.cauchy(3, np.float32, 0, 0), lambda: torch.empty(3).cauchy_(0, 0, generator=t)),
        (lambda: g.log_normal(3, np.float32, 0, 0), lambda: torch.empty(3).log_normal_(0, 0, generator=t)),
        (lambda: g.geometric(3, np.float32, 1), lambda: torch.empty(3).geometric_(1, generator=t)),
        (lambda: g.geometric(3, np.bool_, 0.5), lambda: torch.empty(3).bool().geometric_(0.5, generator=t)),
        (lambda: g.bernoulli(3, np.float32, 1.5), lambda: torch.empty(3).bernoulli_(1.5, generator=t)),
        (lambda: g.randint(3, np.int64, 5, 5), lambda: torch.randint(5, 5, (3,), generator=t)),
        (lambda: g.randint(3, np.int8, 0, 300), lambda: torch.empty(3).char().random_(0, 300, generator=t)),
        (lambda: g.randint(3, np.uint8, -1, 3), lambda: torch.empty(3).byte().random_(-1, 3, generator=t)),
        (lambda: g.randperm(300, np.uint8), lambda: torch.randperm(300, dtype=torch.uint8, generator=t)),
        (
            lambda: g.randperm(2050, np.float16),
            lambda: torch.randperm(2050, dtype=torch.float16, generator=t),
        ),
        (lambda: g.randperm(2, np.bool_), lambda: torch.randperm(2, dtype=torch.bool, generator=t)),
        (lambda: g.multinomial(np.zeros(3), 1), lambda: torch.multinomial(torch.zeros(3), 1, generator=t)),
        (lambda: g.multinomial(np.ones(3), 4), lambda: torch.multinomial(torch.ones(3), 4, generator=t)),
        (lambda: g.multinomial(-np.ones(3), 1), lambda: torch.multinomial(-torch.ones(3), 1, generator=t)),
        (lambda: g.set_state(np.zeros(9, np.uint8)), lambda: t.set_state(torch.zeros(9, dtype=torch.uint8))),
        (
            lambda: g.set_state(np.zeros(5056, np.uint8)),
            lambda: t.set_state(torch.zeros(5056, dtype=torch.uint8)),
        ),
        (lambda: tr.Generator("foo"), lambda: torch.Generator("foo")),
    ]
    for ours, theirs in wrong:
        with pytest.raises(RuntimeError):
            theirs()
        with pytest.raises(RuntimeError):
            ours()
    with pytest.raises(TypeError):
        t.set_state(torch.zeros(5056))
    with pytest.raises(TypeError):
        g.set_state(np.zeros(5056))


@pytest.mark.parametrize("dimension", [1, 3, 50])
@pytest.mark.parametrize("settings", [{}, {"scramble": True, "seed": 5}, {"scramble": True, "seed": 0}])
def test_sobol_points(dimension, settings):
    def points(library):
        engine = importlib.import_module(f"{library.__name__}.quasirandom").SobolEngine(dimension, **settings)
        drawn = [engine.draw(5), engine.draw(4), engine.fast_forward(7).draw(3, dtype=library.float64)]
        return [t.tolist() for t in (*drawn, engine.reset().draw(3, dtype=library.float64), engine.sobolstate)]

    with compat.installed("torch", replace=True):
        ours = points(importlib.import_module("torch"))
    assert ours == points(torch)

"""The random streams; the expected numbers were produced by PyTorch 2.13.0 on an x86 CPU with AVX2."""

from __future__ import annotations

import copy
import hashlib
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.functions import create
from tapegrad.kernels import random as tr


def seeded(seed: int = 1234) -> tr.Generator:
    return tr.Generator().manual_seed(seed)


def digest(a: Any) -> str:
    return hashlib.sha256(a.tobytes()).hexdigest()


def close(a: Any, expected: Any) -> None:
    np.testing.assert_allclose(a, expected, rtol=1e-14 if a.dtype == np.float64 else 1e-7)


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, [0.9700530018065531, 0.707819864399788, 0.45938294312745087]),
        (-1, [0.9503951604874923, 0.5600645841090078, 0.9442999488455328]),
        (2**32 + 5, [0.6420150066280941, 0.2597579151763153, 0.36082761942715424]),
        (5, [0.6420150066280941, 0.2597579151763153, 0.36082761942715424]),
    ],
)
def test_seeds(seed: int, expected: list[float]) -> None:
    g = seeded(seed)
    assert g.initial_seed() == seed % 2**64
    assert g.uniform(3, np.float64).tolist() == expected


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_out_of_range(seed: int) -> None:
    with pytest.raises(ValueError, match="seed must be in"):
        seeded(seed)


def test_seed_from_entropy() -> None:
    g = tr.Generator()
    assert g.initial_seed() == 67280421310721
    seeds = {g.seed() for _ in range(5)}
    assert len(seeds) == 5
    assert g.initial_seed() in seeds


def test_uniform() -> None:
    g = seeded()
    assert g.uniform(4).tolist() == [
        0.028979241847991943,
        0.4018985629081726,
        0.25984418392181396,
        0.3666413426399231,
    ]
    assert g.uniform(3, np.float64).tolist() == [0.46640616040796923, 0.41437948768611854, 0.3904494574879519]
    assert g.uniform(4, np.float32, -0.3, 1.7).tolist() == [
        1.267416000366211,
        0.8261263966560364,
        1.2497010231018066,
        1.3416051864624023,
    ]
    assert g.uniform(4, np.float16, -0.3, 1.7).tolist() == [
        0.258544921875,
        1.0634765625,
        0.267333984375,
        1.013671875,
    ]


def test_uniform_never_reaches_the_upper_bound() -> None:
    values = seeded().uniform(100_000, np.float16)
    assert values.max() == 1 - 2**-11
    assert set(seeded().uniform(1000, np.float32, 1e6, 1e6 + 0.125).tolist()) == {1e6, 1e6 + 0.0625}


def test_normal_in_pairs() -> None:
    g = seeded()
    close(
        g.normal(5),
        [0.0461304634809494, 0.4024028182029724, -1.0115290880203247, 0.2167382389307022, -0.612273097038269],
    )
    close(g.normal(2), [0.5036107301712036, 0.23096680641174316])
    close(g.normal(1, np.float64), [0.6930773457385613])


RANDN_16 = [
    [-0.1117185652256012, -0.49659010767936707, 0.16307370364665985, -0.8816877603530884],
    [0.05390019342303276, 0.668373703956604, -0.05965760722756386, -0.46749794483184814],
    [-0.21525293588638306, 0.8839616179466248, -0.7584168910980225, -0.3688679039478302],
    [-0.3423936069011688, -1.4019718170166016, 0.3206479847431183, -1.021857500076294],
]
RANDN_19_TAIL = [
    [-1.6023621559143066, 0.2890971899032593, 0.4898708462715149, -0.38527461886405945],
    [-0.7120345830917358, 0.6369126439094543, -0.7140800952911377, -1.0831243991851807],
    [0.24625207483768463, -1.3248119354248047, 0.6969805359840393, -0.6630538702011108],
    [1.215756893157959, -2.5273351669311523, 1.477784276008606, -0.16962362825870514],
]
RANDN_19_HALF = [
    [-0.1116943359375, -0.49658203125, 0.1630859375, 0.798828125, -0.09228515625, -0.705078125],
    [-1.6025390625, 0.2890625, 0.489990234375, -0.38525390625, -0.7119140625, -0.170654296875],
    [-1.458984375, 0.220703125, 0.2462158203125, -1.3251953125, 0.69677734375, -0.6630859375],
]
RANDN_16_DOUBLE = [
    [-0.0883100793877292, 0.34204875400356316, 0.41116805645419313, 1.005114995835244],
    [-0.11174330920430504, -0.5987938786445167, -0.09817979302170232, -0.35112135115822063],
    [0.7209026457458274, -0.21693018164685232, -1.0426799548429555, 0.2447660583645158],
    [-0.9887265803798617, -0.5195652303746121, 0.658528704399398, 0.6406369273293672],
]


def test_normal_in_blocks() -> None:
    assert seeded().normal((4, 4)).tolist() == RANDN_16
    close(seeded().normal((4, 4), np.float64), RANDN_16_DOUBLE)
    assert digest(seeded(3).normal(100_000)) == "0ddbd0050481c5b55997a7f3b07615ab01bcdcf2bc770fcbda658e64c1968d18"


def test_normal_with_an_incomplete_block() -> None:
    g = seeded()
    values = g.normal(19)
    assert values[:3].tolist() == RANDN_16[0][:3]
    assert values[3:].reshape(4, 4).tolist() == RANDN_19_TAIL
    assert g.randint(3, np.int64, 0, 1000).tolist() == [365, 58, 606]


def test_normal_half_skips_discarded_draws() -> None:
    g = seeded()
    values = g.normal(19, np.float16)
    assert values[:18].reshape(3, 6).tolist() == RANDN_19_HALF
    assert values[18] == 1.2158203125
    assert g.randint(3, np.int64, 0, 1000).tolist() == [744, 627, 52]


def test_normal_moments_and_pairwise_option() -> None:
    values = seeded().normal(200_000, np.float64, 2.0, 3.0)
    assert abs(values.mean() - 2) < 0.03
    assert abs(values.std() - 3) < 0.03
    g = seeded()
    np.testing.assert_array_equal(seeded().normal(30, contiguous=False), np.concatenate([g.normal(10) for _ in range(3)]))


def test_randint() -> None:
    g = seeded()
    assert g.randint(10, np.int64, -5, 5).tolist() == [0, -4, 1, 0, 1, -1, -3, 0, 0, 4]
    assert g.randint(3, np.int64, 0, 2**28).tolist() == [110109929, 47325214, 11437214]
    assert g.randint(2, np.int64, -(2**63), 2**63 - 1).tolist() == [8451179437892312956, 6934733198248850806]
    assert g.randint(3, np.int64, 0, 2**28 - 1).tolist() == [194636223, 55437432, 4274040]


def test_random_ints() -> None:
    g = seeded()
    assert g.random_ints(2).tolist() == [3532910284440527571, 2252509165406510133]
    assert g.random_ints(4, np.int8).tolist() == [76, 116, 24, 121]
    assert g.random_ints(3, np.float32).tolist() == [11304392.0, 5560789.0, 13148370.0]
    assert g.random_ints(6, np.bool_).tolist() == [True, False, False, True, False, False]


def test_randperm() -> None:
    assert seeded().randperm(10).tolist() == [5, 4, 8, 2, 6, 9, 1, 7, 0, 3]
    assert digest(seeded(3).randperm(1000)) == "f0818b66bc03445e582de8d794b57de19b7cb3974937ffaae01a27da5b4df7fe"
    assert seeded().randperm(0).shape == (0,)
    assert np.array_equal(np.sort(seeded().randperm(50_000, np.int32)), np.arange(50_000))


def test_bernoulli() -> None:
    g = seeded()
    assert g.bernoulli(12, np.float32, 0.3).tolist() == [1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1]
    assert g.bernoulli_array(np.full(8, 0.5, np.float32)).tolist() == [0, 0, 1, 1, 0, 1, 0, 1]
    assert g.bernoulli_array(np.full(8, 0.5)).tolist() == [1, 1, 0, 0, 1, 1, 1, 1]
    assert g.bernoulli_array(np.array([[0.0, 1.0]]), np.bool_).tolist() == [[False, True]]


def test_other_distributions() -> None:
    g = seeded()
    close(
        g.exponential(4, np.float32, 2.0),
        [0.13187482953071594, 0.041014011949300766, 0.31406015157699585, 0.26754164695739746],
    )
    close(
        g.cauchy(4, np.float32, 0.5, 2.0),
        [-0.21685586869716644, -1.266988754272461, -2.274627685546875, -1.708921194076538],
    )
    close(g.log_normal(3, np.float32, 0.0, 0.5), [0.8750884532928467, 2.9719934463500977, 1.0523951053619385])
    assert g.geometric(6, np.int64, 0.3).tolist() == [1, 2, 4, 4, 4, 5]


def test_multinomial() -> None:
    g = seeded()
    weights = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    assert g.multinomial(weights, 8, True).tolist() == [1, 0, 2, 2, 2, 1, 1, 1]
    assert g.multinomial(weights, 3).tolist() == [3, 0, 2]
    assert g.multinomial(weights.reshape(2, 2), 1).tolist() == [[1], [1]]


def test_interleaved_calls() -> None:
    g = seeded()
    close(g.normal(3), [0.0461304634809494, 0.4024028182029724, -1.0115290880203247])
    assert g.uniform(2).tolist() == [0.6738061308860779, 0.33146196603775024]
    assert g.randperm(4).tolist() == [3, 2, 1, 0]
    assert g.normal(17)[-2:].tolist() == [1.8408576250076294, -1.0174322128295898]
    close(g.normal(2), [0.2167382389307022, -0.22851154208183289])
    assert g.randint(3, np.int64, 0, 100).tolist() == [9, 23, 83]
    assert g.bernoulli(8, np.float32, 0.5).tolist() == [1, 1, 1, 0, 1, 1, 1, 0]
    close(g.exponential(2), [0.4414218068122864, 0.015251101925969124])
    close(g.normal(1, np.float64), [0.3081061236962997])
    assert g.uniform(1).tolist() == [0.9454936385154724]


@pytest.mark.parametrize("shape", [(), 0, (0, 3), (2, 3), [2, 3]])
def test_shapes(shape: Any) -> None:
    g = seeded()
    expected = np.zeros(shape).shape
    for values in (
        g.uniform(shape),
        g.normal(shape),
        g.normal(shape, np.float64),
        g.randint(shape, np.int64, 0, 9),
        g.random_ints(shape),
        g.bernoulli(shape, np.bool_, 0.5),
        g.exponential(shape),
        g.geometric(shape, np.float32, 0.5),
    ):
        assert values.shape == expected


def test_empty_draws_leave_the_state() -> None:
    g = seeded()
    g.normal(1)
    before = g.get_state()
    g.normal(0)
    g.uniform(0)
    g.randperm(1)
    np.testing.assert_array_equal(g.get_state(), before)


def test_state_bytes() -> None:
    g = seeded(5)
    assert digest(g.get_state()) == "f4ef6f460154679cfe881f5d260e16f8ed904898fabc025c755a71e2692eb75c"
    g.uniform(700)
    g.normal(3)
    state = g.get_state()
    assert state.dtype == np.uint8
    assert state.shape == (5056,)
    assert state[:24].tolist() == [5, 0, 0, 0, 0, 0, 0, 0, 29, 2, 0, 0, 1, 0, 0, 0, 84, 0, 0, 0, 0, 0, 0, 0]
    assert state[5024:5032].view("<f8")[0] == pytest.approx(2.786234751017805, rel=1e-14)
    assert state[5032:].tolist() == [0] * 8 + [1] + [0] * 15


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 2000])
def test_states_are_restored(drawn: int) -> None:
    g = seeded(9)
    g.uniform(drawn)
    g.normal(3)
    state = g.get_state()
    expected = [g.normal(4), g.uniform(5, np.float64), g.randperm(6)]
    for other in (tr.Generator(), g, pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        other.set_state(state)
        np.testing.assert_array_equal(other.get_state(), state)
        for e, a in zip(expected, [other.normal(4), other.uniform(5, np.float64), other.randperm(6)], strict=True):
            np.testing.assert_array_equal(a, e)


def test_bad_states_are_refused() -> None:
    g = seeded()
    before = g.get_state()
    with pytest.raises(
        RuntimeError, match="Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 10"
    ):
        g.set_state(np.zeros(10, np.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        g.set_state(np.zeros(5056, np.uint8))
    with pytest.raises(TypeError, match="uint8"):
        g.set_state(np.zeros(5056))
    np.testing.assert_array_equal(g.get_state(), before)


def test_module_functions_and_fork() -> None:
    assert create.manual_seed(1234) is create.default_generator
    assert create.initial_seed() == 1234
    state = create.get_rng_state()
    first = create.default_generator.uniform(3)
    create.set_rng_state(state)
    with create.fork_rng():
        create.seed()
        create.default_generator.normal(3)
    np.testing.assert_array_equal(create.get_rng_state(), state)
    with pytest.raises(ZeroDivisionError), create.fork_rng(devices=[]):
        create.default_generator.normal(3)
        raise ZeroDivisionError
    with create.fork_rng(enabled=False):
        np.testing.assert_array_equal(create.default_generator.uniform(3), first)
    assert not np.array_equal(create.get_rng_state(), state)


def test_numpy_global_stream_is_untouched() -> None:
    np.random.seed(3)
    before = np.random.get_state(legacy=False)
    g = tr.Generator()
    g.seed()
    g.normal(100)
    after = np.random.get_state(legacy=False)
    np.testing.assert_equal(after, before)


def test_threads_share_a_generator() -> None:
    g, n, calls = seeded(), 37, 200
    drawn: list[list[Any]] = [[], [], [], []]

    def draw(out: list[Any]) -> None:
        for _ in range(calls):
            out.append(g.uniform(n, np.float64))

    threads = [threading.Thread(target=draw, args=(out,)) for out in drawn]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expected = seeded().uniform((len(drawn) * calls, n), np.float64)
    got = np.array([a for out in drawn for a in out])
    np.testing.assert_array_equal(got[np.lexsort(got.T)], expected[np.lexsort(expected.T)])


def test_threads_share_cached_normals() -> None:
    g, calls = seeded(), 300
    drawn: list[list[Any]] = [[], [], [], []]

    def draw(out: list[Any]) -> None:
        for _ in range(calls):
            out.append(g.normal(3, np.float64))

    threads = [threading.Thread(target=draw, args=(out,)) for out in drawn]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    expected = seeded().normal(len(drawn) * calls * 3, np.float64, contiguous=False)
    np.testing.assert_allclose(np.sort(np.ravel(drawn)), np.sort(expected), rtol=1e-12)


def test_refusals() -> None:
    g = seeded()
    with pytest.raises(RuntimeError, match="only the device 'cpu'"):
        tr.Generator("cuda")
    with pytest.raises(NotImplementedError, match="normal is not implemented for dtype int64"):
        g.normal(3, np.int64)
    with pytest.raises(NotImplementedError, match="random_ints is not implemented for dtype uint32"):
        g.random_ints(3, np.uint32)
    with pytest.raises(RuntimeError, match="std >= 0"):
        g.normal(3, np.float32, 0.0, -1.0)
    with pytest.raises(RuntimeError, match="found from=1"):
        g.uniform(3, np.float32, 1.0, 0.0)
    with pytest.raises(RuntimeError, match="finite bounds"):
        g.uniform(3, np.float16, 0.0, 1e9)
    with pytest.raises(RuntimeError, match="less than 'to'"):
        g.randint(3, np.int64, 5, 5)
    with pytest.raises(RuntimeError, match="out of bounds for int8"):
        g.randint(3, np.int8, 0, 300)
    with pytest.raises(ValueError, match="within int64"):
        g.randint(3, np.int64, 0, 2**63 + 1)
    with pytest.raises(RuntimeError, match="p to be in"):
        g.bernoulli(3, np.float32, 1.5)
    with pytest.raises(RuntimeError, match="Expected p_in"):
        g.bernoulli_array(np.array([0.5, np.nan]))
    with pytest.raises(RuntimeError, match="greater than 256"):
        g.randperm(300, np.uint8)
    with pytest.raises(RuntimeError, match="sum of probabilities"):
        g.multinomial(np.zeros(3), 1)
    with pytest.raises(RuntimeError, match="without replacement"):
        g.multinomial(np.ones(3), 4)


@pytest.mark.parametrize("sizes", [-1, -5, (2, -3), (-2, -3), (0, -1)])
def test_a_negative_size_takes_no_numbers_back(sizes: Any) -> None:
    g, untouched = seeded(), seeded()
    g.uniform(2), untouched.uniform(2)
    for draw in (
        g.uniform, g.normal, g.log_normal, g.exponential, g.cauchy, g.random_ints, lambda n: g.randint(n, np.int64, 0, 3),
        lambda n: g.geometric(n, np.int64, 0.5), lambda n: g.bernoulli(n, np.float32, 0.5),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="Trying to create tensor with negative dimension"):
            draw(sizes)
    with pytest.raises(RuntimeError, match=r"negative dimension -1: \[-1\]"):
        tg.randint(0, 3, (-1,))
    assert g.uniform(2).tolist() == untouched.uniform(2).tolist()


def test_a_device_that_is_not_there_costs_no_numbers() -> None:
    for draw in (tg.rand, tg.randn, lambda n, **k: tg.randint(5, (n,), **k), tg.randperm):
        tg.manual_seed(3)
        with pytest.raises(RuntimeError, match="no cuda device"):
            draw(4, device="cuda")
        after = tg.rand(1)
        tg.manual_seed(3)
        assert tg.rand(1) == after


def test_integers_up_to_the_largest_of_a_dtype() -> None:
    """Values of PyTorch 2.13; None as the second bound stands for the dtype's largest integer."""
    for dtype, low, values in (
        (tg.int64, -5, [900450186894289445, 3969543146641149110, 1895649597198586609, 827948490035658077]),
        (tg.int8, -128, [44, -81, -11, 64]),
        (tg.int64, -(2**63), [-8322921849960486353, -5253828890213626688, -7327722439656189189, -8395423546819117721]),
        (tg.float32, -5, [8324959.0, 12887712.0, 1483302.0, 2213803.0]),
    ):
        tg.manual_seed(0)
        assert tg.empty(4, dtype=dtype).random_(low, None).tolist() == values
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-16777216, 16777216\]"):
        tg.empty(3).random_(0, 2**40)
    with pytest.raises(RuntimeError, match="random_ expects 'from' to be less than 'to', but got from=5 >= to=5"):
        tg.empty(3).random_(5, 5)
    with pytest.raises(RuntimeError, match="only integral, floating-point and boolean types"):
        tg.randint(6, (3,), dtype=tg.complex64)


def test_bernoulli_of_one_probability():
    x = tg.ones(1000, dtype=tg.float64)
    drawn = tg.bernoulli(x, 0.25)
    assert drawn.shape == x.shape and drawn.dtype is tg.float64 and 200 < drawn.sum() < 300
    assert tg.bernoulli(x, 0.0).sum() == 0 and tg.bernoulli(x, p=1).sum() == 1000


def test_multinomial_of_expanded_weights():
    """As PyTorch: the numbers of the tensor in row-major order."""
    weights = tg.arange(1.0, 7.0)
    tg.manual_seed(0)
    drawn = tg.multinomial(weights.expand(4, 6), 3)
    tg.manual_seed(0)
    assert drawn.tolist() == tg.multinomial(weights.expand(4, 6).clone(), 3).tolist()
    assert drawn.tolist() == [[2, 4, 5], [5, 3, 4], [5, 4, 3], [4, 2, 5]]


DRAWS = {
    "uniform": lambda g, n: g.uniform(n), "uniform of float64": lambda g, n: g.uniform(n, np.float64),
    "uniform between bounds": lambda g, n: g.uniform(n, np.float32, -1.0, 2.5), "normal": lambda g, n: g.normal(n),
    "normal, scaled": lambda g, n: g.normal(n, np.float32, 0.5, 2.0),
    "normal of float64": lambda g, n: g.normal(n, np.float64),
    "normal in pairs": lambda g, n: g.normal(n, contiguous=False), "half": lambda g, n: g.normal(n, np.float16),
    "bernoulli": lambda g, n: g.bernoulli(n, np.float32, 0.3), "randint": lambda g, n: g.randint(n, np.int64, -3, 1 << 20),
    "randperm": lambda g, n: g.randperm(n), "state": lambda g, n: g.get_state(),
    "restored": lambda g, n: np.array(g.set_state(g.get_state()) is None),
    "poisson": lambda g, n: g.poisson(np.full(n % 50, 3.0)), "gamma": lambda g, n: g.standard_gamma(np.full(n % 50, 0.7)),
    "seeded": lambda g, n: np.array(g.manual_seed(n) is g),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_numbers_drawn_ahead_are_those_drawn_one_call_at_a_time(seed: int, monkeypatch: Any) -> None:
    """Any draws after each other, and the state after each, as of a generator that draws nothing ahead."""
    choice = np.random.default_rng(seed)
    ours, second = seeded(seed), seeded(seed)
    runs = ["normal"] * 12 + ["uniform"] * 4  # the same again and again, as in training, now and then something else
    for k in range(250):
        name = str(choice.choice(runs if k % 50 < 40 else [*DRAWS]))
        n = int(choice.choice([128, 128, 64, 16, 100, 100, 3, 4096, 5000] if k % 50 >= 20 else [100 if seed % 2 else 128]))
        drawn = DRAWS[name](ours, n)
        with monkeypatch.context() as patch:
            patch.setattr(tr, "_SMALL", 0)
            expected = DRAWS[name](second, n)
        assert drawn.dtype == expected.dtype and drawn.tobytes() == expected.tobytes(), (k, name, n)
        drawn[...] = 0  # what is given belongs to the caller
    assert ours.get_state().tobytes() == second.get_state().tobytes()


@pytest.mark.parametrize("shape", [(8, 16), (10, 10)])
def test_most_numbers_of_small_calls_are_drawn_ahead(shape: tuple[int, ...], monkeypatch: Any) -> None:
    g, calls = seeded(), []
    transform = tr._box_muller32
    monkeypatch.setattr(tr, "_box_muller32", lambda *args: calls.append(1) or transform(*args))
    for _ in range(256):
        g.normal(shape)
    assert len(calls) <= 24
    monkeypatch.setattr(g, "_drawn", None)
    assert g.uniform(16).shape == (16,)


@pytest.mark.parametrize("size", [32, 1500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_gamma_and_binomial_numbers_at_once_are_those_one_after_the_other(
    size: int, dtype: Any, monkeypatch: Any
) -> None:
    """Also after a normal number that waits, and where an attempt of shape 1 ends without a uniform."""
    rng = np.random.default_rng(size)
    cases = [(lambda g, a: g.standard_gamma(a), (np.full(size, a),)) for a in (1.0, 2.5, 1000.0)]
    cases.append((lambda g, a: g.standard_gamma(a), (1.0 + rng.exponential(2.0, size),)))
    pairs = [(1, 0.5), (9, 0.3), (40, 0.75), (100, 0.3), (1000, 0.9), (10**6, 1e-7)]
    cases += [(lambda g, n, p: g.binomial(n, p), (np.full(size, float(n)), np.full(size, p))) for n, p in pairs]
    for k, (draw, given) in enumerate(cases):
        given = tuple([a.astype(dtype) for a in given])
        ours, second = seeded(size + k), seeded(size + k)
        for g in (ours, second):
            g.normal(k % 3, contiguous=False)
        drawn = draw(ours, *given)
        with monkeypatch.context() as patch:
            patch.setattr(tr, "_MANY", size + 1)
            assert drawn.tobytes() == draw(second, *given).tobytes()
        assert ours.get_state().tobytes() == second.get_state().tobytes()
        assert ours.normal(1).tobytes() == second.normal(1).tobytes()


@pytest.mark.parametrize("given", [(1j, 1.0, (2,)), (0.0, 1j, (2,)), (tg.zeros(2), 1j), (1j, tg.ones(2)), (0.0, 1.0)])
def test_normal_takes_real_numbers_and_numbers_alone_with_a_size(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="complex" if complex in map(type, given) else "takes a size"):
        tg.normal(*given)


@pytest.mark.parametrize("given", [(0.0, -1.0, (2,)), (tg.zeros(2), -1.0), (0.0, tg.tensor([1.0, -1.0]))])
def test_normal_refuses_a_negative_deviation(given: tuple[Any, ...]) -> None:
    with pytest.raises(RuntimeError, match="normal expects .*std >= 0.0"):
        tg.normal(*given)

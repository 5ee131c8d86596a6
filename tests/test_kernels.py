"""Kernels against values of 40 digits, against identities and against plain NumPy references."""

import math
import threading

import numpy as np
import pytest

from tapegrad.kernels import accumulate, activations, cumsum, gaussian, linalg, loss, reduce, softmax


def kernel_of(name):
    return next(getattr(m, name) for m in (activations, gaussian, softmax, cumsum, accumulate) if hasattr(m, name))


# Correctly rounded values, made with mpmath at 40 digits: tails, subnormals, ends of tables, worst cases.
REFERENCE = {
    "erf": [
        (5e-324, 5e-324),
        (1e-310, 1.1283791670955e-310),
        (2.2250738585072014e-308, 2.5107269871883543e-308),
        (1e-20, 1.1283791670955125e-20),
        (1e-08, 1.1283791670955126e-08),
        (0.00048828125, 0.0005509663463964843),
        (0.00075, 0.0008462842166433408),
        (0.01, 0.011283415555849618),
        (0.1, 0.1124629160182849),
        (-0.25, -0.27632639016823696),
        (0.4769362762044699, 0.5),
        (-0.75, -0.7111556336535151),
        (1.0, 0.8427007929497149),
        (1.5, 0.9661051464753108),
        (-2.0, -0.9953222650189527),
        (2.9, 0.9999589021219005),
        (3.7, 0.9999998328489421),
        (-5.0, -0.9999999999984626),
        (5.8, 0.9999999999999998),
        (5.921587195794508, 1.0),
        (6.5, 1.0),
        (30.0, 1.0),
    ],
    "erfc": [
        (-30.0, 2.0),
        (-6.1, 2.0),
        (-3.3, 1.9999969422902035),
        (-1.0, 1.8427007929497148),
        (-1e-09, 1.0000000011283792),
        (1e-20, 1.0),
        (0.1, 0.887537083981715),
        (0.5, 0.4795001221869535),
        (0.9, 0.20309178757716786),
        (1.3, 0.06599205505934755),
        (1.7, 0.01620954140922544),
        (1.99951171875, 0.004687836142892109),
        (2.0, 0.004677734981047266),
        (2.0000000000000004, 0.004677734981047257),
        (2.05, 0.00374190395554313),
        (2.96, 2.8382317006905874e-05),
        (4.1, 6.700027654084918e-09),
        (7.7, 1.2942740067717136e-27),
        (12.3, 9.029925149482068e-68),
        (20.1, 9.735977140428878e-178),
        (25.0, 8.300172571196523e-274),
        (26.5, 2.2109076642637343e-307),
        (26.6, 1.088512588544227e-309),
        (27.0, 5.23705e-319),
        (27.2, 1e-323),
        (27.226, 5e-324),
        (27.3, 0.0),
    ],
    "ndtr": [
        (-38.6, 0.0),
        (-38.46, 5e-324),
        (-38.0, 2.88542835e-316),
        (-37.6, 1.074811249587044e-309),
        (-37.5, 4.605353009581955e-308),
        (-29.007, 2.6846678497042232e-185),
        (-20.0, 2.7536241186062337e-89),
        (-11.1, 6.27219439321705e-29),
        (-5.5, 1.8989562465887718e-08),
        (-3.4956, 0.00023649858921050065),
        (-2.7500000000000004, 0.0029797632350545525),
        (-2.75, 0.002979763235054557),
        (-2.0, 0.02275013194817921),
        (-1.0, 0.15865525393145705),
        (-0.3, 0.3820885778110474),
        (-1e-12, 0.49999999999960104),
        (1e-20, 0.5),
        (0.5, 0.6914624612740131),
        (1.0, 0.8413447460685429),
        (2.2, 0.9860965524865014),
        (4.4, 0.9999945874560923),
        (7.0, 0.9999999999987201),
        (8.2, 0.9999999999999999),
        (8.6, 1.0),
        (40.0, 1.0),
    ],
    "gelu_erf": [
        (-38.7, -0.0),
        (-38.4, -2.535e-321),
        (-37.7, -9.36273961974653e-310),
        (-37.5, -1.7270073785932332e-306),
        (-29.007, -7.78741603163704e-184),
        (-20.0, -5.507248237212468e-88),
        (-9.3, -6.530724343610712e-20),
        (-5.5, -1.0444259356238245e-07),
        (-2.7500000000000004, -0.00819434889640002),
        (-2.75, -0.008194348896400031),
        (-1.8458857166514022, -0.05990711434564669),
        (-1.0, -0.15865525393145705),
        (-0.3, -0.1146265733433142),
        (-1e-12, -4.99999999999601e-13),
        (1e-300, 5e-301),
        (1e-20, 5e-21),
        (0.002, 0.0010015957680577603),
        (0.5, 0.34573123063700656),
        (1.0, 0.8413447460685429),
        (2.2, 2.1694124154703034),
        (4.4, 4.399976184806807),
        (8.2, 8.199999999999998),
        (30.0, 30.0),
    ],
    "erfinv": [
        (5e-324, 5e-324),
        (1e-310, 8.8622692545277e-311),
        (1e-300, 8.86226925452758e-301),
        (1e-20, 8.86226925452758e-21),
        (1.691364366002434e-05, 1.4989326420149504e-05),
        (0.000366, 0.00032435906609085217),
        (0.01, 0.008862501280950598),
        (0.1, 0.08885599049425769),
        (-0.3, -0.2724627147267543),
        (0.5, 0.4769362762044699),
        (0.7, 0.7328690779592167),
        (-0.75, -0.8134198475976185),
        (0.7500000000000001, 0.8134198475976188),
        (0.8, 0.9061938024368233),
        (0.9, 1.1630871536766743),
        (0.99, 1.8213863677184494),
        (-0.999, -2.3267537655135246),
        (0.999999, 3.458910737275499),
        (0.9999999999, 4.572824958544925),
        (0.9999999999999991, 5.686128441310391),
        (-0.9999999999999998, -5.805018683193453),
        (0.9999999999999999, 5.8635847487551676),
    ],
    "sigmoid": [
        (-745.5, 0.0),
        (-745.0, 5e-324),
        (-720.0, 2.0322308024e-313),
        (-709.5, 7.38014831401258e-309),
        (-709.0, 1.216780750623423e-308),
        (-708.0, 3.307553003638408e-308),
        (-300.0, 5.148200222412013e-131),
        (-80.0, 1.8048513878454153e-35),
        (-36.7, 1.1518409493076095e-16),
        (-10.0, 4.5397868702434395e-05),
        (-2.5, 0.07585818002124355),
        (-0.02088114779113872, 0.4947799027240864),
        (-1e-10, 0.499999999975),
        (1e-17, 0.5),
        (0.3, 0.574442516811659),
        (1.0, 0.7310585786300049),
        (5.0, 0.9933071490757152),
        (20.0, 0.9999999979388464),
        (36.0, 0.9999999999999998),
        (37.5, 1.0),
        (800.0, 1.0),
    ],
    "silu": [
        (-760.0, -0.0),
        (-750.0, -1.5e-323),
        (-745.0, -2.105e-321),
        (-712.384729311176, -2.9373633335163684e-307),
        (-709.5, -5.236215228791926e-306),
        (-709.0, -8.62697552192007e-306),
        (-300.0, -1.5444600667236042e-128),
        (-80.0, -1.4438811102763322e-33),
        (-10.0, -0.00045397868702434395),
        (-1.278464542761074, -0.2784645427610738),
        (-0.3, -0.1276672449565023),
        (-1e-10, -4.9999999997500004e-11),
        (1e-300, 5e-301),
        (1e-17, 5e-18),
        (0.3, 0.17233275504349768),
        (1.0, 0.7310585786300049),
        (5.0, 4.966535745378576),
        (20.0, 19.99999995877693),
        (37.5, 37.5),
        (800.0, 800.0),
    ],
    "gelu_tanh": [
        (-1.0, -0.1588080093917233),
        (-0.5, -0.15428599017485609),
        (-1e-09, -4.999999996010577e-10),
        (1e-300, 5e-301),
        (0.01, 0.005039893559855573),
        (0.5, 0.34571400982514394),
        (1.0, 0.8411919906082767),
        (2.0, 1.954597694087775),
        (3.0, 2.996362607918227),
        (5.0, 4.999999770820381),
        (20.0, 20.0),
        (1e200, 1e200),
    ],
    "log1pexp": [
        (-745.5, 0.0),
        (-745.0, 5e-324),
        (-720.0, 2.0322308024e-313),
        (-300.0, 5.148200222412013e-131),
        (-80.0, 1.8048513878454153e-35),
        (-37.0, 8.533047625744066e-17),
        (-10.0, 4.539889921686465e-05),
        (-1.339904953448487, 0.23259518935835305),
        (-0.1, 0.6443966600735709),
        (-1e-17, 0.6931471805599453),
        (1e-05, 0.6931521805724453),
        (0.7, 1.103186048885458),
        (3.0, 3.048587351573742),
        (10.0, 10.000045398899218),
        (36.0, 36.0),
        (40.0, 40.0),
        (10000.0, 10000.0),
        (1e300, 1e300),
    ],
}
BOUND = {"sigmoid": 2.5, "log1pexp": 2.5}  # ulp; 4 for the rest

ELEMENTWISE = [
    "erf",
    "erfc",
    "erfinv",
    "gelu_erf",
    "gelu_tanh",
    "log1pexp",
    "log_sigmoid",
    "ndtr",
    "sigmoid",
    "silu",
]
INF, NAN = math.inf, math.nan
pytestmark = pytest.mark.filterwarnings("error")


def ulps(result, exact):
    """The error of `result` in units in the last place of `exact`, rounded to the dtype of `result`."""
    wide = np.asarray(exact, np.float64)
    unit = np.spacing(np.abs(wide).astype(result.dtype)).astype(np.float64)
    return np.abs(result.astype(np.float64) - wide) / unit


def bits(x):
    return np.asarray(x).view(np.int64).tolist()


@pytest.mark.parametrize("name", REFERENCE)
def test_float64_against_exact_values(name):
    x, exact = np.array(REFERENCE[name]).T
    result = kernel_of(name)(x)
    error = np.where(result == exact, 0, ulps(result, exact))
    assert error.max() <= BOUND.get(name, 4.0), list(zip(x[error > 1], error[error > 1], strict=True))


RANGE32 = {
    "erf": (-4.5, 4.5),
    "erfc": (-4.5, 10.2),
    "erfinv": (-1, 1),
    "gelu_erf": (-14.5, 6),
    "gelu_tanh": (-1, 6),
    "log1pexp": (-104, 20),
    "log_sigmoid": (-20, 104),
    "ndtr": (-14.5, 6),
    "sigmoid": (-104, 20),
    "silu": (-108, 20),
}
BOUND32 = {"erf": 2, "erfc": 2, "ndtr": 2, "erfinv": 1, "gelu_erf": 3}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_float32_against_float64(name):
    rng = np.random.default_rng(0)
    low, high = RANGE32[name]
    small = rng.choice([-1, 1], 50_000) * 10.0 ** rng.uniform(-40, 0, 50_000)
    x = np.concatenate((rng.uniform(low, high, 400_000), small[small >= low])).astype(np.float32)
    x = x[np.abs(x) < 1] if name == "erfinv" else x
    result = kernel_of(name)(x)
    exact = kernel_of(name)(x.astype(np.float64))
    assert result.dtype == np.float32
    # Where NumPy's own float32 exp and log1p set the bound, 5 leaves room for other processors.
    assert ulps(result, exact).max() <= BOUND32.get(name, 5)


SPECIAL = {
    "erf": [(-INF, -1.0), (INF, 1.0), (0.0, 0.0), (-0.0, -0.0)],
    "erfc": [(-INF, 2.0), (INF, 0.0), (0.0, 1.0), (-0.0, 1.0)],
    "erfinv": [(-1.0, -INF), (1.0, INF), (0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-2.0, NAN), (INF, NAN)],
    "gelu_erf": [(-INF, -0.0), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (-1e300, -0.0)],
    "gelu_tanh": [(-INF, -0.0), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (-1e300, -0.0)],
    "log1pexp": [(-INF, 0.0), (INF, INF), (0.0, math.log(2))],
    "log_sigmoid": [(-INF, -INF), (INF, 0.0), (0.0, -math.log(2))],
    "ndtr": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (-0.0, 0.5)],
    "sigmoid": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (-1e300, 0.0), (1e300, 1.0)],
    "silu": [(-INF, -0.0), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (-1e300, -0.0)],
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(name, dtype):
    with np.errstate(over="ignore"):
        x = np.array([NAN, *(x for x, _ in SPECIAL[name])]).astype(dtype)
    result = kernel_of(name)(x)
    expected = np.array([NAN, *(y for _, y in SPECIAL[name])]).astype(dtype)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    known = ~np.isnan(expected)
    np.testing.assert_allclose(result[known], expected[known], rtol=3 * np.finfo(dtype).eps)
    if name != "log_sigmoid":
        np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_no_floating_point_error_leaves_a_kernel(dtype):
    limits = np.finfo(dtype)
    x = np.array([INF, -INF, NAN, limits.max, -limits.max, limits.tiny, -30, 30, -1, 1, 0, 2], dtype)
    repeated = np.zeros(len(x), np.int64)
    with np.errstate(all="raise"):
        for name in ELEMENTWISE:
            kernel_of(name)(x)
        for name in ("softmax", "log_softmax", "logsumexp", "cumsum"):
            kernel_of(name)(x, 0)
        accumulate.add_at_flat(1, repeated, x)
        accumulate.add_at_rows(1, repeated, x[:, None])


def layouts():
    x = np.random.default_rng(0).uniform(-0.9, 0.9, (4, 6, 5))
    yield "0-d", x[0, 0, 0].reshape(())
    yield "empty", x[:0]
    yield "empty inside", x[:, :0]
    yield "C", x
    yield "Fortran", x.copy(order="F")
    yield "permuted", x.transpose(1, 2, 0)
    yield "sliced", x[::2, 1:, ::-1]
    yield "broadcast", np.broadcast_to(x[:, :1], (4, 3, 5))
    yield "swapped bytes", x.astype(">f8")
    yield "unaligned", np.frombuffer(b"\0" + x.tobytes(), offset=1).reshape(x.shape)
    yield "several chunks", np.random.default_rng(1).uniform(-0.9, 0.9, (300, 301)).T


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_layouts(name):
    kernel = kernel_of(name)
    for label, x in layouts():
        result = kernel(x)
        one_by_one = [kernel(np.array([v])).item() for v in x.reshape(-1)[:500].tolist()]
        assert result.shape == x.shape and result.dtype == x.dtype, label
        assert result.reshape(-1)[:500].tolist() == one_by_one, label
        assert not np.shares_memory(result, x), label


def test_dense_arrays_keep_their_memory_order():
    x = np.zeros((2, 3, 4)).transpose(2, 0, 1)
    assert activations.sigmoid(x).strides == x.strides
    assert activations.sigmoid(x[::2]).flags.c_contiguous


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_float16_is_float32_rounded_once(name):
    with np.errstate(all="ignore"):
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        expected = kernel_of(name)(x.astype(np.float32)).astype(np.float16)
    result = kernel_of(name)(x)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", [*ELEMENTWISE, "softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("dtype", [np.int64, np.bool, np.complex128])
def test_other_dtypes_are_refused(name, dtype):
    arguments = (0,) if "softmax" in name or name == "logsumexp" else ()
    with pytest.raises(TypeError, match="float16, float32 or float64"):
        kernel_of(name)(np.ones(3, dtype), *arguments)


def test_gaussian_identities():
    x = np.linspace(-8, 8, 100_001)
    one = np.ones_like(x)
    assert ulps(gaussian.erf(x) + gaussian.erfc(x), one).max() <= 3
    assert ulps(gaussian.ndtr(x) + gaussian.ndtr(-x), one).max() <= 3
    assert bits(gaussian.erf(-x)) == bits(-gaussian.erf(x))
    np.testing.assert_allclose(gaussian.gelu_erf(x), x * gaussian.ndtr(x), rtol=2e-15)
    far = np.linspace(-37, 0, 10_001)
    np.testing.assert_allclose(gaussian.ndtr(far), 0.5 * gaussian.erfc(-far / math.sqrt(2)), rtol=4e-13, atol=1e-300)


def test_erf_and_erfc_are_those_of_the_standard_library():
    x = np.random.default_rng(0).uniform(-6, 6, 50_000)
    assert ulps(gaussian.erf(x), [math.erf(v) for v in x]).max() <= 4
    x = np.random.default_rng(1).uniform(-6, 27.3, 50_000)
    assert ulps(gaussian.erfc(x), [math.erfc(v) for v in x]).max() <= 5


def test_erfinv_inverts_erf_and_erfc():
    y = np.random.default_rng(0).uniform(-0.75, 0.75, 100_000)
    assert ulps(gaussian.erf(gaussian.erfinv(y)), y).max() <= 6
    q = 10.0 ** np.random.default_rng(1).uniform(-15.9, -0.7, 100_000)
    q = 1 - (1 - q)
    x = gaussian.erfinv(1 - q)
    assert (np.abs(gaussian.erfc(x) / q - 1) / (1 + 2 * x * x)).max() < 1e-15
    assert bits(gaussian.erfinv(-y)) == bits(-gaussian.erfinv(y))


def test_results_grow_with_the_argument():
    for name, low, high, slack in (("erf", -6, 6, 4), ("ndtr", -38, 8, 8), ("sigmoid", -40, 40, 4)):
        result = kernel_of(name)(np.linspace(low, high, 1_000_001))
        assert (np.diff(result) >= -slack * np.spacing(np.abs(result[1:]))).all(), name


def test_logistic_identities():
    x = np.linspace(-700, 700, 100_001)
    np.testing.assert_allclose(activations.silu(x), x * activations.sigmoid(x), rtol=2e-15)
    np.testing.assert_allclose(activations.log_sigmoid(x), -activations.log1pexp(-x), rtol=0)
    np.testing.assert_allclose(activations.log1pexp(x) - activations.log1pexp(-x), x, rtol=1e-15)
    np.testing.assert_allclose(np.exp(activations.log_sigmoid(x)), activations.sigmoid(x), rtol=1e-12)
    v = np.linspace(-4, 4, 10_001)
    tanh = np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v))
    np.testing.assert_allclose(activations.gelu_tanh(v), 0.5 * v * (1 + tanh), rtol=1e-10, atol=1e-15)


def test_threads_agree_on_the_tables():
    gaussian._ndtr_table.cache_clear()
    x = np.linspace(-5, 5, 1001)
    results = []
    threads = [threading.Thread(target=lambda: results.append(gaussian.ndtr(x))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(bits(result) == bits(results[0]) for result in results)


# ----- Softmax ----------------------------------------------------------------------------------------------

SHAPES = [
    ((3,), 0),
    ((7, 5), 1),
    ((7, 5), 0),
    ((2, 3, 4), 1),
    ((2000, 10), -1),
    ((50, 8, 32), -1),
    ((9, 100), 1),
]
SHAPES += [((4, 1024), 1), ((2, 3000), 1), ((300, 40), 0), ((1000, 9), 0), ((10_000, 1), 1)]


def exact_softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    total = np.apply_along_axis(math.fsum, axis, e)
    return e / np.expand_dims(total, axis), x.max(axis) + np.log(total)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.1, 3.0, 60.0])
def test_softmax_family(shape, axis, dtype, scale):
    x = (np.random.default_rng(0).normal(size=shape) * scale).astype(dtype)
    expected, log_total = exact_softmax(x.astype(np.float64), axis)
    eps = np.finfo(dtype).eps
    for layout in (x, x.copy(order="F"), x[::-1][::-1]):
        result = softmax.softmax(layout, axis)
        assert result.dtype == dtype and result.shape == shape
        np.testing.assert_allclose(result, expected, rtol=0, atol=12 * eps)
        result = softmax.log_softmax(layout, axis)
        assert result.dtype == dtype and result.shape == shape
        exact = x.astype(np.float64) - np.expand_dims(log_total, axis)
        np.testing.assert_allclose(result, exact, rtol=0, atol=3 * eps * max(1, np.abs(exact).max()))
        for keepdims in (False, True):
            result = softmax.logsumexp(layout, axis, keepdims=keepdims)
            assert result.dtype == dtype
            exact = np.expand_dims(log_total, axis) if keepdims else log_total
            assert result.shape == exact.shape
            np.testing.assert_allclose(result, exact, rtol=3 * eps, atol=3 * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("repeats", [1, 3000])  # 3000 rows take the way through columns
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_of_infinite_rows(dtype, repeats, axis):
    rows = [[-INF, -INF, -INF], [-INF, 1, -INF], [1, INF, 2], [1, NAN, 2], [INF, INF, -INF], [3e38, -3e38, 0]]
    shares = [[NAN] * 3, [0, 1, 0], [NAN] * 3, [NAN] * 3, [NAN] * 3, [1, 0, 0]]
    logs = [[NAN] * 3, [-INF, 0, -INF], [NAN] * 3, [NAN] * 3, [NAN] * 3, [0, -6e38, -3e38]]
    totals = [-INF, 1, INF, NAN, INF, 3e38]

    def laid_out(table):
        with np.errstate(over="ignore"):
            array = np.repeat(np.array(table).astype(dtype), repeats, axis=0)
        return array.T if axis == 0 and array.ndim == 2 else array

    x = laid_out(rows)
    np.testing.assert_array_equal(softmax.softmax(x, axis), laid_out(shares))
    np.testing.assert_array_equal(softmax.log_softmax(x, axis), laid_out(logs))
    np.testing.assert_array_equal(softmax.logsumexp(x, axis), laid_out(totals))


ABOVE = [-200.0, -10.5, -9.0, 0.0, 5.0, 29.0, 31.0, 200.0]  # on either side of where a shift is left out


@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("gap", [0.0, 4.0, 9.0, 25.0])  # between one element and the rest of its row
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shares_of_wide_rows_are_exact_beside_one_that_has_nearly_all(above, gap, axis, dtype):
    rng, eps = np.random.default_rng(0), np.finfo(dtype).eps
    x, label = rng.normal(size=(5, 100)), rng.integers(0, 100, (5, 1))
    np.put_along_axis(x, label, x.max(1, keepdims=True) + gap, 1)
    absent = 1, int(label[1, 0] + 1) % 100
    x[absent] = -INF
    x = (x + (above - x.max())).astype(dtype)
    wide = x.astype(np.longdouble)
    distance = wide - np.take_along_axis(wide, label, 1)
    rest = np.exp(distance)
    np.put_along_axis(rest, label, 0, 1)
    exact = distance - np.log1p(rest.sum(1, keepdims=True))
    given, places = (x, label) if axis else (np.ascontiguousarray(x.T), label.T)
    result = softmax.log_softmax(given, axis)
    nll, p = loss._negative_log_probability(given, places, axis)
    result, nll, p = (a if axis else a.T for a in (result, nll, p))
    assert result[absent] == -INF and p[absent] == 0
    finite = np.isfinite(exact)
    scale = np.abs(exact).max(1, keepdims=True, where=finite, initial=0)
    error = np.abs(np.subtract(result, exact, where=finite, out=np.zeros_like(exact)))
    assert (error <= 2 * eps * scale).all()
    at_label = np.take_along_axis(exact, label, 1)
    bound = (8 + gap / 2) * eps  # the difference of two elements is rounded before its exponential is taken
    np.testing.assert_allclose(np.take_along_axis(result, label, 1), at_label, rtol=bound)
    np.testing.assert_allclose(nll, -at_label, rtol=bound)
    np.testing.assert_allclose(p, np.exp(exact), rtol=40 * eps, atol=0)


def test_softmax_of_empty_and_0d_arrays():
    for shape, axis in (((3, 0), 1), ((0, 3), 1), ((3, 0), 0), ((0,), 0)):
        assert softmax.softmax(np.zeros(shape), axis).shape == shape
        assert softmax.log_softmax(np.zeros(shape), axis).shape == shape
    assert softmax.logsumexp(np.zeros((3, 0)), 1).tolist() == [-INF] * 3
    assert softmax.logsumexp(np.zeros((0, 3)), 1).shape == (0,)
    for axis in (0, -1):
        assert softmax.softmax(np.array(5.0), axis).tolist() == 1.0
        assert softmax.log_softmax(np.array(5.0), axis).shape == ()
        assert softmax.logsumexp(np.array(5.0), axis, keepdims=True).shape == ()
    with pytest.raises(np.exceptions.AxisError):
        softmax.softmax(np.zeros((2, 3)), 2)


def test_logsumexp_over_several_axes():
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    for axes in ((0, 2), (1, -1), (0, 1, 2)):
        expected = np.log(np.exp(x).sum(axes, keepdims=True))
        np.testing.assert_allclose(softmax.logsumexp(x, axes, keepdims=True), expected, rtol=1e-14)
        np.testing.assert_allclose(softmax.logsumexp(x, axes), expected.squeeze(axes), rtol=1e-14)


# ----- Cumulative sum ---------------------------------------------------------------------------------------

CUMSUM = [
    ((5,), 0),
    ((4, 6), 0),
    ((4, 6), 1),
    ((90, 96), 1),
    ((90, 97), 1),
    ((9, 1100), -1),
    ((20_000,), 0),
    ((3, 4111), 1),
]
CUMSUM += [
    ((7, 600), 0),
    ((3, 5, 700), 1),
    ((700, 3), 0),
    ((30, 20, 30), 1),
    ((9000, 16), 1),
    ((9000, 15), 1),
]


@pytest.mark.parametrize(("shape", "axis"), CUMSUM)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.complex64, np.complex128])
def test_cumsum_of_whole_numbers_is_exact(shape, axis, dtype):
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    for layout in (x, x.copy(order="F"), x[..., ::-1][..., ::-1]):
        result = cumsum.cumsum(layout, axis)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.cumsum(x, axis))
        backwards = cumsum.cumsum(layout, axis, reverse=True)
        np.testing.assert_array_equal(backwards, np.flip(np.cumsum(np.flip(x, axis), axis), axis))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cumsum_is_more_accurate_than_numpy_on_long_rows(dtype):
    x = np.random.default_rng(0).normal(size=(4, 50_000)).astype(dtype)
    exact = np.array([[math.fsum(row[: i + 1]) for i in range(0, row.size, 997)] for row in x.astype(np.float64)])
    error, plain = (np.abs(total[:, ::997] - exact).max() for total in (cumsum.cumsum(x, 1), np.cumsum(x, 1)))
    assert error < plain
    assert error < 40 * np.finfo(dtype).eps * np.abs(exact).max()


@pytest.mark.parametrize(("shape", "axis"), [((600, 600), 0), ((600, 600), 1), ((6, 5000), 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cumsum_of_infinite_rows(shape, axis, dtype):
    big = float(np.finfo(dtype).max)
    x = np.ones(shape, dtype)
    x[1, 3], x[2, 40], x[3, [5, 50]], x[4, 599] = INF, NAN, (INF, -INF), -INF
    x[5, 10:13] = big, big, -big
    with np.errstate(all="ignore"):
        expected = np.cumsum(x, axis)
        backwards = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
    np.testing.assert_array_equal(cumsum.cumsum(x, axis), expected)
    np.testing.assert_array_equal(cumsum.cumsum(x, axis, reverse=True), backwards)


def test_cumsum_of_empty_0d_and_float16_arrays():
    assert cumsum.cumsum(np.array(3.0), 0).tolist() == 3.0
    for shape in ((0,), (3, 0), (0, 3), (0, 1000)):
        for axis in range(len(shape)):
            assert cumsum.cumsum(np.zeros(shape), axis).shape == shape
    x = np.full(5000, 0.1, np.float16)
    result = cumsum.cumsum(x, 0)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, np.cumsum(x.astype(np.float32)).astype(np.float16))
    assert cumsum.cumsum(np.full(4, 60_000, np.float16), 0).tolist() == [60_000, INF, INF, INF]
    with pytest.raises(np.exceptions.AxisError):
        cumsum.cumsum(np.zeros((2, 3)), 2)


# ----- Scattered sums ---------------------------------------------------------------------------------------

SCATTER = [np.float32, np.float64, np.complex64, np.complex128, np.int32, np.int64]


@pytest.mark.parametrize("dtype", SCATTER)
def test_add_at_flat(dtype):
    rng = np.random.default_rng(0)
    index, values = rng.integers(0, 50, (30, 40)), rng.integers(-9, 9, (30, 40)).astype(dtype)
    expected = np.zeros(60, dtype)
    for i, v in zip(index.ravel(), values.ravel(), strict=True):
        expected[i] += v
    for way in (index, index.astype(np.int32), index.astype(np.uint8)):
        result = accumulate.add_at_flat(60, way, values)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)
    assert accumulate.add_at_flat(3, index[:0, 0], values[:0, 0]).tolist() == [0, 0, 0]


def test_add_at_flat_rounds_in_the_dtype():
    assert accumulate.add_at_flat(1, np.array([0, 0]), np.array([2**24, 1], np.float32)).tolist() == [2**24]
    half = accumulate.add_at_flat(1, np.zeros(4, int), np.array([2048, 1, 1, 0], np.float16))
    assert half.dtype == np.float16 and half.tolist() == [2050]


def heavy_tailed(rng, n, m):
    return np.minimum((n * rng.random(m) ** 6).astype(np.int64), n - 1)


ROWS = {
    "distinct": lambda rng: (500, rng.permutation(500)[:300], 20),
    "few": lambda rng: (10, rng.integers(0, 10, 100), 16),
    "narrow": lambda rng: (100, rng.integers(0, 100, 30_000), 3),
    "layers": lambda rng: (1000, rng.integers(0, 1000, 4000), 64),
    "large table": lambda rng: (200_000, rng.integers(0, 200_000, 5000) // 7 * 7, 32),
    "heavy tail": lambda rng: (3000, heavy_tailed(rng, 3000, 8000), 16),
    "one group": lambda rng: (5, np.full(5000, 3), 17),
    "two groups": lambda rng: (70_000, np.where(rng.random(5000) < 0.3, 69_999, 4), 17),
    "no rows": lambda rng: (4, np.zeros(0, np.int64), 3),
    "no columns": lambda rng: (4, np.array([1, 1]), 0),
}


@pytest.mark.every(2)
@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize("dtype", SCATTER)
def test_add_at_rows(case, dtype):
    rng = np.random.default_rng(0)
    n, index, width = ROWS[case](rng)
    rows = rng.integers(-9, 9, (len(index), width)).astype(dtype)
    expected = np.zeros((n, width), dtype)
    np.add.at(expected, index, rows)
    for layout in (rows, rows.copy(order="F"), np.repeat(rows, 2, axis=0)[::2]):
        result = accumulate.add_at_rows(n, index, layout)
        assert result.dtype == dtype and result.flags.c_contiguous
        np.testing.assert_array_equal(result, expected)


def test_add_at_rows_in_float16():
    rows = np.array([[2048], [1], [1]], np.float16)
    assert accumulate.add_at_rows(2, np.array([1, 1, 1]), rows).tolist() == [[0], [2050]]


@pytest.mark.parametrize("index", [[-1], [3], [0, 3, 1]])
def test_add_at_rows_refuses_indices_outside(index):
    with pytest.raises(IndexError, match="out of range for 3 rows"):
        accumulate.add_at_rows(3, np.array(index), np.ones((len(index), 2)))


def test_stable_order_of_wide_indices():
    rng = np.random.default_rng(0)
    for n in (1, 10, 1 << 16, (1 << 16) + 1, 1 << 20, 1 << 33):
        index = rng.integers(0, n, 5000) // 3
        np.testing.assert_array_equal(accumulate._stable_order(index, n), np.argsort(index, kind="stable"))


def test_results_made_in_parts_own_their_memory():
    """Views are copied before they are handed out as gradients, and before they are written to."""
    x, y = np.ones((60, 20, 300), np.float32), np.ones((300, 7), np.float32)
    results = [f(x, 2) for f in (softmax.softmax, softmax.log_softmax, cumsum.cumsum)]
    results += [f(x, x, (2,)) for f in (reduce._centred, reduce._centred_transposed)]
    results += [linalg._matmul_forward(x, y), linalg._linear_forward(x, y.T, y[0])]
    assert all(r.flags.owndata and r.flags.c_contiguous for r in results)

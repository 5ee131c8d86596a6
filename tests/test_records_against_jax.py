"""Elementwise and reduction records against JAX in float64: values and gradients on the smooth samples."""

import numpy as np
import pytest

import tapegrad  # noqa: F401  (fills the table)
from tapegrad import testing
from tapegrad.core.op import TABLE

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax, special, jnn = jax.lax, jax.scipy.special, jax.nn

FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def over(function):
    return lambda x, dims, keepdim: function(x, axis=dims, keepdims=keepdim)


def deviation(function):
    return lambda x, dims, correction, keepdim: function(x, axis=dims, ddof=correction, keepdims=keepdim)


def derivative(function, order):
    """The derivative of an elementwise function of that order."""
    for _ in range(order):
        function = (lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1])(function)
    return function


def erfcx(x):
    return jnp.exp(x * x) * special.erfc(x)


def bessel_ratio(x, order):
    zero, one = special.i0(x), special.i1(x) / x
    return (zero, one, (zero - 2 * one) / x**2)[order]


def bessel_mean(x, order):
    """(-1)**order times the derivative of exp(-x)*I(0) at abs(x)."""
    zero, one = special.i0e(x), special.i1e(jnp.abs(x))
    return (zero, zero - one, 2 * (zero - one) - one / jnp.abs(x))[order]


def gelu_tanh(x):
    return jnn.gelu(x, approximate=True)


NUMPY_NAMES = """
    abs add ceil cos cosh exp exp2 expm1 floor floor_divide fmod hypot log log10 log1p log2 logaddexp maximum minimum
    remainder reciprocal sign sin sinh sqrt square tan tanh trunc where
"""


def convolved(x, w, sizes, stride, padding, dilation, groups):
    dims = zip(x.shape[2:], w.shape[2:], sizes, stride, padding, dilation, strict=True)
    around = [(p, (m - 1) * s + d * (k - 1) + 1 - n - p) for n, k, m, s, p, d in dims]
    return lax.conv_general_dilated(x, w, stride, around, rhs_dilation=dilation, feature_group_count=groups)


COUNTERPARTS = {
    **{name: getattr(jnp, name) for name in NUMPY_NAMES.split()},
    **{name: getattr(jnp, "arc" + name[1:]) for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")},
    "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.true_divide, "neg": jnp.negative, "pow": jnp.power,
    "pow_scalar": lambda x, k: x**k, "rsqrt": lax.rsqrt, "round": jnp.round, "round_decimals": jnp.round, "sgn": jnp.sign,
    **{name: getattr(jnp, name) for name in ("cbrt", "copysign", "fmax", "fmin", "logaddexp2")},
    **{name: getattr(special, name) for name in ("digamma", "entr", "erfinv", "log_ndtr", "ndtri")},
    **{name: getattr(special, name) for name in ("i0", "i0e", "i1", "i1e")},
    "lgamma": special.gammaln, "igamma": special.gammainc, "igammac": special.gammaincc, "zeta": special.zeta,
    "xlogy": special.xlogy, "xlog1py": special.xlog1py, "polygamma": lambda x, n: special.polygamma(n, x),
    "logit": lambda x, eps: special.logit(x if eps is None else jnp.clip(x, eps, 1 - eps)),
    "erfcx": lambda x, order: (jnp.pi**-0.5 - x * erfcx(x)) if order else erfcx(x),
    "frac": lambda x: x - jnp.trunc(x), "share": lambda x, y: jnn.sigmoid(x - y), "bessel_ratio": bessel_ratio,
    "bessel_mean": bessel_mean,
    "gelu_tanh": gelu_tanh, "gelu_tanh_slope": derivative(gelu_tanh, 1), "sigmoid_slope": derivative(jnn.sigmoid, 1),
    "gelu_slope": derivative(lambda x: jnn.gelu(x, approximate=False), 1), "silu_slope": derivative(jnn.silu, 1),
    "hardswish": jnn.hard_swish, "hardswish_slope": derivative(jnn.hard_swish, 1),
    "elu_slope": lambda x, alpha: jnp.where(x > 0, 1.0, alpha * jnp.exp(jnp.minimum(x, 0))),
    "softplus_slope": lambda x, beta, threshold: jnp.where(x * beta > threshold, 1.0, jnn.sigmoid(x * beta)),
    "log_ndtr_derivative": lambda x, order: derivative(special.log_ndtr, order)(x),
    "sin_ratio": lambda x, order: derivative(lambda x: jnp.sin(x) / x, order)(x),
    "sgn_complex": lambda z: z / jnp.abs(z), "atan_slope": lambda x: 1 / (1 + x * x),
    "asinh_slope": lambda x: 1 / jnp.sqrt(1 + x * x), "tanh_slope": lambda x: 1 / jnp.cosh(x) ** 2,
    "hypot_slope": lambda x, y: x / jnp.hypot(x, y), "atan2_slope": lambda x, y: x / (x * x + y * y),
    "erf": special.erf, "erfc": special.erfc, "ndtr": special.ndtr, "sigmoid": jnn.sigmoid, "logsigmoid": jnn.log_sigmoid,
    "log_loss": lambda x, y: -(y * jnp.log(x) + (1 - y) * jnp.log1p(-x)),
    "relu": jnn.relu, "silu": jnn.silu, "gelu": lambda x: jnn.gelu(x, approximate=False), "elu": jnn.elu,
    "leaky_relu": jnn.leaky_relu, "hardtanh": jnp.clip, "softsign": jnn.soft_sign, "tanhshrink": lambda x: x - jnp.tanh(x),
    "scaled_elu": lambda x, alpha, scale, rate: scale * jnn.elu(rate * x, alpha) * jnp.where(x > 0, 1 / rate, 1.0),
    "clamp": jnp.clip, "clamp_min": jnp.maximum, "clamp_max": jnp.minimum,
    "clamp_tensor": jnp.clip, "lerp": lambda x, y, w: x + w * (y - x),
    "nan_to_num": lambda x, nan, posinf, neginf: jnp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    "softplus": lambda x, beta, threshold: jnp.where(x * beta > threshold, x, jnn.softplus(x * beta) / beta),
    "conv": convolved, "conj": jnp.conj, "real": jnp.real, "imag": jnp.imag,
    "sum": over(jnp.sum), "mean": over(jnp.mean), "amax": over(jnp.max), "amin": over(jnp.min),
    "var": deviation(jnp.var), "std": deviation(jnp.std), "norm": over(lambda x, axis, keepdims: jnp.sqrt(
        jnp.sum(jnp.abs(x) ** 2, axis=axis, keepdims=keepdims))),
    "logsumexp": over(special.logsumexp), "softmax": jnn.softmax, "log_softmax": jnn.log_softmax,
    "prod": lambda x, dim, keepdim: jnp.prod(x, axis=dim, keepdims=keepdim), "cumprod": jnp.cumprod,
    "cumsum": lambda x, dim, reverse: lax.cumsum(x, dim, reverse),
    "cummax": lambda x, dim: lax.cummax(x, dim), "cummin": lambda x, dim: lax.cummin(x, dim),
    "logcumsumexp": lax.cumlogsumexp,
    "twice": lambda x: 2.0 * x, "replaced": lambda x, y: jnp.where(True, y, x), "angle": jnp.angle,
    "trunc_divide": lambda x, y: jnp.trunc(x / y),
    "fft_c2c": lambda x, dims, inverse, norm: (jnp.fft.ifftn if inverse else jnp.fft.fftn)(x, axes=dims, norm=norm),
    "fft_r2c": lambda x, dim, norm: jnp.fft.rfft(x, axis=dim, norm=norm),
    "fft_c2r": lambda x, dim, n, norm: jnp.fft.irfft(x, n, axis=dim, norm=norm),
    "max_dim": lambda x, dim, keepdim: jnp.max(x, axis=dim, keepdims=keepdim), "pair": lambda x, y: x,
    "min_dim": lambda x, dim, keepdim: jnp.min(x, axis=dim, keepdims=keepdim),
    "sort": lambda x, dim, descending, stable: jnp.sort(x, axis=dim, descending=descending, stable=stable),
    "cholesky": jnp.linalg.cholesky, "det": jnp.linalg.det, "eigvalsh": jnp.linalg.eigvalsh, "inverse": jnp.linalg.inv,
    "matrix_exp": jax.scipy.linalg.expm, "pinv": lambda x, atol, rtol, hermitian: jnp.linalg.pinv(x),
    "solve": lambda a, b, known: jnp.linalg.solve(a, b), "svdvals": lambda x: jnp.linalg.svd(x, compute_uv=False),
}  # fmt: skip


def test_names():
    assert set(COUNTERPARTS) <= set(TABLE)
    own = {n: op for n, op in TABLE.items() if not n.startswith("custom.")}  # others: of drop-ins, made at their import
    missing = {n for n, op in own.items() if op.kind == "elementwise"} - set(COUNTERPARTS)
    not_in_jax = {"airy", "bessel_j", "bessel_k", "bessel_ke", "bessel_y", "nextafter"}
    parts_of_rules = {"exp_diff", "mask_derivative", "one_minus_square", "safe_div", "safe_reciprocal", "strong_mul"}
    wanted = missing - not_in_jax - parts_of_rules
    assert not wanted, f'COUNTERPARTS here needs rows, as "sinc2": lambda x: jnp.sinc(x / np.pi) ** 2, for {wanted}'
    assert missing - not_in_jax == parts_of_rules


def smooth_samples(name):
    """At most three, and a complex one: JAX compiles each shape anew."""
    samples = [s for s in testing.samples_of(name) if s.smooth or TABLE[name].kind == "constant"]
    samples = [s for s in samples if all(np.size(a) for a in s.arrays)]
    return samples[:3] + [s for s in samples[3:] if any(np.iscomplexobj(a) for a in s.arrays)]


def jax_derivatives(function, sample, indices, xs, g):
    """Value and cotangents of the arguments."""

    def f(*xs):
        full = list(sample.arrays)
        for i, x in zip(indices, xs, strict=True):
            full[i] = x
        return function(*full, *sample.params)

    value, pull = jax.vjp(f, *xs)
    # JAX's cotangents are the conjugates of PyTorch's
    return value, [] if g is None else [jnp.conj(t) for t in pull(jnp.conj(g))]


def seed_of(op, sample):
    """A random cotangent, if the record has a derivative there."""
    if not testing.differentiable(op, sample.arrays):
        return None
    return testing.cotangents_for(op, sample.arrays, sample.params, testing.generator(op, sample.arrays))[0]


@pytest.mark.every(4)
@pytest.mark.parametrize("name", sorted(COUNTERPARTS))
def test_record_agrees(name, exhaustive):
    op, function, samples = TABLE[name], COUNTERPARTS[name], smooth_samples(name)[: None if exhaustive else 1]
    indices = [testing.differentiable(op, s.arrays) for s in samples]
    seeds = [seed_of(op, s) for s in samples]

    def every(arrays, seeds):
        """Of all samples in one program: compiling takes the time."""
        cases = zip(samples, indices, arrays, seeds, strict=True)
        return [jax_derivatives(function, s, positions, xs, g) for s, positions, xs, g in cases]

    arrays = [[s.arrays[i] for i in positions] for s, positions in zip(samples, indices, strict=True)]
    results = jax.jit(every).lower(arrays, seeds).compile(FAST)(arrays, seeds)
    for sample, g, (expected, gradients) in zip(samples, seeds, results, strict=True):
        np.testing.assert_allclose(testing.forward(op, sample.arrays, sample.params)[0], expected, rtol=1e-10, atol=1e-12)
        if g is None:
            continue
        for ours, theirs in zip(testing.vjp_of(op, sample.arrays, sample.params, [g]), gradients, strict=True):
            np.testing.assert_allclose(np.zeros_like(theirs) if ours is None else ours, theirs, rtol=1e-9, atol=1e-12)

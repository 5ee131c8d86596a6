"""Elementwise and reduction records against JAX in float64: values and gradients on the smooth samples."""

import numpy as np
import pytest

import tapegrad  # noqa: F401  (fills the table)
from tapegrad import testing
from tapegrad.core.op import TABLE

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax, special, jnn = jax.lax, jax.scipy.special, jax.nn


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


NUMPY_NAMES = """
    abs add ceil cos cosh exp exp2 expm1 floor floor_divide fmod hypot log log10 log1p log2 logaddexp maximum minimum
    remainder reciprocal sign sin sinh sqrt square tan tanh trunc where
"""
COUNTERPARTS = {
    **{name: getattr(jnp, name) for name in NUMPY_NAMES.split()},
    **{name: getattr(jnp, "arc" + name[1:]) for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")},
    "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.true_divide, "neg": jnp.negative, "pow": jnp.power,
    "pow_scalar": lambda x, k: x**k, "rsqrt": lax.rsqrt, "round": jnp.round, "sgn": jnp.sign,
    "sgn_complex": lambda z: z / jnp.abs(z),
    "erf": special.erf, "erfc": special.erfc, "ndtr": special.ndtr, "sigmoid": jnn.sigmoid, "logsigmoid": jnn.log_sigmoid,
    "relu": jnn.relu, "silu": jnn.silu, "gelu": lambda x: jnn.gelu(x, approximate=False), "elu": jnn.elu,
    "leaky_relu": jnn.leaky_relu, "clamp": jnp.clip, "clamp_min": jnp.maximum, "clamp_max": jnp.minimum,
    "clamp_tensor": jnp.clip, "lerp": lambda x, y, w: x + w * (y - x),
    "nan_to_num": lambda x, nan, posinf, neginf: jnp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    "softplus": lambda x, beta, threshold: jnp.where(x * beta > threshold, x, jnn.softplus(x * beta) / beta),
    "conj": jnp.conj, "real": jnp.real, "imag": jnp.imag,
    "sum": over(jnp.sum), "mean": over(jnp.mean), "amax": over(jnp.max), "amin": over(jnp.min),
    "var": deviation(jnp.var), "std": deviation(jnp.std), "norm": over(lambda x, axis, keepdims: jnp.sqrt(
        jnp.sum(jnp.abs(x) ** 2, axis=axis, keepdims=keepdims))),
    "logsumexp": over(special.logsumexp), "softmax": jnn.softmax, "log_softmax": jnn.log_softmax,
    "prod": lambda x, dim, keepdim: jnp.prod(x, axis=dim, keepdims=keepdim), "cumprod": jnp.cumprod,
    "cumsum": lambda x, dim, reverse: lax.cumsum(x, dim, reverse),
    "cummax": lambda x, dim: lax.cummax(x, dim), "cummin": lambda x, dim: lax.cummin(x, dim),
    "max_dim": lambda x, dim, keepdim: jnp.max(x, axis=dim, keepdims=keepdim),
    "min_dim": lambda x, dim, keepdim: jnp.min(x, axis=dim, keepdims=keepdim),
    "sort": lambda x, dim, descending: jnp.sort(x, axis=dim, descending=descending),
}  # fmt: skip


def test_names():
    assert set(COUNTERPARTS) <= set(TABLE)
    missing = {n for n, op in TABLE.items() if op.kind == "elementwise"} - set(COUNTERPARTS)
    assert missing == {"one_minus_square", "safe_div", "safe_reciprocal"}  # parts of rules


def smooth_samples(name):
    """At most three, and a complex one: JAX compiles each shape anew."""
    samples = [s for s in testing.samples_of(name) if s.smooth or TABLE[name].kind == "constant"]
    samples = [s for s in samples if all(np.size(a) for a in s.arrays)]
    return samples[:3] + [s for s in samples[3:] if any(np.iscomplexobj(a) for a in s.arrays)]


def jax_derivatives(function, sample, indices, g):
    """Value and cotangents of the arguments, in one compilation."""

    @jax.jit
    def run(xs, g):
        def f(*xs):
            full = list(sample.arrays)
            for i, x in zip(indices, xs, strict=True):
                full[i] = x
            return function(*full, *sample.params)

        value, pull = jax.vjp(f, *xs)
        # JAX's cotangents are the conjugates of PyTorch's
        return value, [] if g is None else [jnp.conj(t) for t in pull(jnp.conj(g))]

    return run([sample.arrays[i] for i in indices], g)


@pytest.mark.parametrize("name", sorted(COUNTERPARTS))
def test_record_agrees(name):
    op, function = TABLE[name], COUNTERPARTS[name]
    for sample in smooth_samples(name):
        indices = testing.differentiable(op, sample.arrays)
        rng = testing.generator(op, sample.arrays)
        g = testing.cotangents_for(op, sample.arrays, sample.params, rng)[0] if indices else None
        expected, gradients = jax_derivatives(function, sample, indices, g)
        np.testing.assert_allclose(testing.forward(op, sample.arrays, sample.params)[0], expected, rtol=1e-10, atol=1e-12)
        if not indices:
            continue
        for ours, theirs in zip(testing.pull(op, sample.arrays, sample.params, [g]), gradients, strict=True):
            np.testing.assert_allclose(np.zeros_like(theirs) if ours is None else ours, theirs, rtol=1e-9, atol=1e-12)

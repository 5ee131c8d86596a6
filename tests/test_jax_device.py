"""Tensors on JAX's devices, here JAX's CPU: each record on tensors against NumPy's, to second order, and the facade."""

import copy
import io
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE

jax = pytest.importorskip("jax")

RECORDS = sorted(name for name in TABLE if not name.startswith("custom."))
TOLERANCE = {32: 2e-5, 64: 1e-11}


@pytest.fixture(scope="module", autouse=True)
def quick_compiler():
    """Every eager call of a new shape compiles: what XLA's optimiser does is not at stake here."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


# --------------------------------------------------------------------------------------------------------- the table's law


def placed(a, device, tracked=False):
    if not isinstance(a, np.ndarray):
        return a
    return tg.tensor(a, device=device).requires_grad_(tracked)


def orders(op, arrays, params, device, highest):
    """The outputs, and the gradients of the inputs by random cotangents, of order 1 up to the highest; None without."""
    rng = testing.generator(op, arrays)
    indices = testing.differentiable(op, arrays)
    xs = [placed(a, device, i in indices) for i, a in enumerate(arrays)]
    ys = testing.call(op, xs, params)
    found = [list(ys)]
    outputs = [y for y in ys[: op.differentiable] if y.requires_grad]
    for _ in range(highest):
        outputs = [y for y in outputs if y is not None and y.requires_grad]
        if not outputs:
            break
        seeds = [placed(testing.random_like(rng, y.detach().cpu().numpy()), device) for y in outputs]
        leaves = [xs[i] for i in indices]
        outputs = tg.autograd.grad(outputs, leaves, seeds, create_graph=True, allow_unused=True)
        found.append(list(outputs))
    return found


def check_close(got, want, bits):
    assert (got is None) == (want is None)
    if got is None:
        return
    assert got.device == tg.device("jax:0") and got.dtype is want.dtype and got.shape == want.shape
    got, want = got.detach().cpu().numpy(), want.detach().numpy()
    size = np.abs(want[np.isfinite(want)]).max(initial=0.0) if want.dtype.kind in "fc" else 0
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[bits], atol=TOLERANCE[bits] * size)


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("name", RECORDS)
def test_record_on_a_device(name, bits):
    op = TABLE[name]
    samples = testing.samples_of(name)
    sample = next((s for s in samples if s.smooth and testing.differentiable(op, s.arrays)), samples[0])
    arrays = [testing._narrow(a, bits) for a in sample.arrays]
    highest = 2 if bits == 64 else 1
    for got, want in zip(*[orders(op, arrays, sample.params, d, highest) for d in ("jax", "cpu")], strict=True):
        for g, w in zip(got, want, strict=True):
            check_close(g, w, bits)

"""JAX's forward of every record against NumPy's: eagerly and compiled, with the user's 64-bit flag off and on."""

import importlib

import numpy as np
import pytest

from tapegrad import testing
from tapegrad.arrays.numpy import quiet
from tapegrad.core.kinds import is_inexact
from tapegrad.core.op import TABLE
from tapegrad.core.record import half_of, narrowed, widened

jax = pytest.importorskip("jax")
jnp = jax.numpy
backend = importlib.import_module("tapegrad.arrays.jax")

RECORDS = sorted(name for name in TABLE if not name.startswith("custom."))
ELEMENTWISE = [name for name in RECORDS if TABLE[name].kind == "elementwise"]
BY_TIES = {"tie_share", "winner"}
"""NumPy's result is a mask unless there are ties; a program always holds shares."""
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
TOLERANCE = {
    np.dtype(np.float32): 5e-6,
    np.dtype(np.float64): 1e-12,
    jnp.dtype("bfloat16"): 8e-3,
    np.dtype(np.float16): 1e-3,
}


def samples_in(name, bits):
    """The record's samples in 32 or 64 bits."""
    return [(tuple([testing._narrow(a, bits) for a in s.arrays]), s.params) for s in testing.samples_of(name)]


def numpy_forward(op, arrays, params):
    """What the recording call computes, as a tuple."""
    half = half_of(list(arrays)) if op.wide else None
    used = arrays if half is None else [widened(a) for a in arrays]
    result = quiet(op.forward)(list(used), *params) if op.arity < 0 else quiet(op.forward)(*used, *params)
    results = [np.asarray(r) for r in (result if op.outputs > 1 else (result,))]
    return tuple(results if half is None else [narrowed(r, half) for r in results])


def likes(op, wants):
    like = tuple([jax.ShapeDtypeStruct(w.shape, w.dtype) for w in wants])
    return like if op.outputs > 1 else like[0]


def run(op, samples, wants, arrays):
    """The record on every sample; `arrays` stand for the NumPy arrays among the operands, one after the other."""
    arrays, results = iter(arrays), []
    for (operands, params), want in zip(samples, wants, strict=True):
        operands = [next(arrays) if isinstance(a, np.ndarray) else a for a in operands]
        result = backend.call(op, operands, params, likes(op, want))
        results.append(result if op.outputs > 1 else (result,))
    return results


def check_same(name, got, want, params):
    assert isinstance(got, jax.Array)
    assert got.shape == want.shape, (params, got.shape, want.shape)
    assert got.dtype == want.dtype or name in BY_TIES, (params, got.dtype, want.dtype)
    assert not got.weak_type
    got = np.asarray(got)
    if not is_inexact(want.dtype if name not in BY_TIES else got.dtype):
        np.testing.assert_array_equal(got, want, err_msg=str(params))
        return
    tolerance = TOLERANCE[got.real.dtype]
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    finite = np.abs(want[np.isfinite(want)])
    size = finite.max() if finite.size else 0.0
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * size, err_msg=str(params))


def check(name, samples, compiled=True):
    """All samples in one program, since JAX compiles each shape anew."""
    op = TABLE[name]
    wants = [numpy_forward(op, *sample) for sample in samples]
    with jax.enable_x64(True):
        arrays = [jnp.array(a) for operands, _ in samples for a in operands if isinstance(a, np.ndarray)]
        program = lambda arrays: run(op, samples, wants, arrays)  # noqa: E731
        results = jax.jit(program).lower(arrays).compile(FAST)(arrays) if compiled else program(arrays)
    for (_, params), got, want in zip(samples, results, wants, strict=True):
        for g, w in zip(got, want, strict=True):
            check_same(name, g, w, params)


def alternating(name):
    """Every sample, in 32 and 64 bits by turns, with each first one in both: compiling is what takes the time."""
    narrow, wide = samples_in(name, 32), samples_in(name, 64)
    return narrow[:1] + [pair[i % 2] for i, pair in enumerate(zip(wide, narrow, strict=True))]


@pytest.mark.parametrize("name", [name for name in RECORDS if name not in backend.DYNAMIC])
def test_compiled(name):
    check(name, alternating(name))


@pytest.mark.parametrize("name", RECORDS)
def test_eager(name):
    check(name, samples_in(name, 32)[:1], compiled=False)

"""JAX's compiled forwards against NumPy's on the samples that test_compile_laws leaves out, at special points, in 16 bits.

And with the user's 64-bit flag on; eagerly the records run in test_jax_device.
"""

import functools
import importlib
import inspect

import numpy as np
import pytest
import test_compile_laws as laws

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE, Op
from tapegrad.core.record import half_of, narrowed, widened
from tapegrad.dtypes import is_inexact
from tapegrad.kernels.namespace import NUMPY
from tapegrad.kernels.numpy import quiet
from tapegrad.table.define import define

jax = pytest.importorskip("jax")
jnp = jax.numpy
backend, draft, forwards, host, namespace = (
    importlib.import_module(f"tapegrad.kernels.jax{part}") for part in ("", ".draft", ".forwards", ".host", ".namespace")
)

RECORDS = sorted(name for name in TABLE if not name.startswith("custom."))
ELEMENTWISE = [name for name in RECORDS if TABLE[name].kind == "elementwise"]
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
TOLERANCE = {
    np.dtype(np.float32): 5e-6,
    np.dtype(np.float64): 1e-12,
    jnp.dtype("bfloat16"): 8e-3,
    np.dtype(np.float16): 1e-3,
}


def samples_in(name, bits):
    """The record's samples in 32 or 64 bits."""
    return [(tuple([testing.narrowed(a, bits) for a in s.arrays]), s.params) for s in testing.samples_of(name)]


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
    assert got.dtype == want.dtype or name in laws.BY_TIES, (params, got.dtype, want.dtype)
    assert not got.weak_type
    got = np.asarray(got)
    if not is_inexact(want.dtype if name not in laws.BY_TIES else got.dtype):
        np.testing.assert_array_equal(got, want, err_msg=str(params))
        return
    tolerance = TOLERANCE[got.real.dtype]
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    finite = np.abs(want[np.isfinite(want)])
    size = finite.max() if finite.size else 0.0
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * size, err_msg=str(params))


def check(samples, compiled=True):
    """Samples of records, by name, all in one program: JAX compiles each shape anew."""
    wants = {name: [numpy_forward(TABLE[name], *s) for s in of] for name, of in samples.items()}
    with jax.enable_x64(True):
        arrays = {
            name: [jnp.array(a) for operands, _ in of for a in operands if isinstance(a, np.ndarray)]
            for name, of in samples.items()
        }
        program = lambda arrays: {n: run(TABLE[n], samples[n], wants[n], arrays[n]) for n in samples}  # noqa: E731
        results = jax.jit(program).lower(arrays).compile(FAST)(arrays) if compiled else program(arrays)
    for name, of in samples.items():
        for (_, params), got, want in zip(of, results[name], wants[name], strict=True):
            for g, w in zip(got, want, strict=True):
                check_same(name, g, w, params)


def kind_of(name, sample):
    """What decides which code runs: parameters, dtypes, a special point; ranks and order, but of elementwise records."""
    arrays = [a for a in sample.arrays if isinstance(a, np.ndarray)]
    numbers = [a.dtype.kind if isinstance(a, np.ndarray) else type(a).__name__ for a in sample.arrays]
    ranks = [(a.ndim, a.size == 0) for a in arrays]
    operands = sorted(numbers) if TABLE[name].kind == "elementwise" else (numbers, ranks)
    return repr((sample.params, operands, None if sample.smooth else sample.arrays))


def chosen(name):
    """One sample of each kind that test_compile_laws leaves out, in 64 and 32 bits by turns: compiling takes time."""
    kinds = {}
    for i, sample in enumerate(testing.samples_of(name)):
        kinds.setdefault(kind_of(name, sample), i)
    for sample in [laws.sample_of(name, bits) for bits in (64, 32)]:
        kinds.pop(kind_of(name, sample), None)
    both = samples_in(name, 64), samples_in(name, 32)
    return [both[turn % 2][i] for turn, i in enumerate(kinds.values())]


COMPILED = [name for name in RECORDS if chosen(name)]
MANY = 24


@pytest.mark.exhaustive
@pytest.mark.parametrize("names", [COMPILED[i : i + MANY] for i in range(0, len(COMPILED), MANY)], ids=laws.first_and_last)
def test_compiled(names):
    check({name: chosen(name) for name in names})


@pytest.mark.parametrize("compiled", [False, True])
def test_a_users_function(compiled):
    check({"function": samples_in("function", 32)}, compiled)


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 40.0, -40.0, -100.0, 9000.0, 1e30]
PLAIN = [n for n in ELEMENTWISE if not testing.samples_of(n)[0].params and TABLE[n].jax not in ("host", "draft")]


UNSIGNED = {"strong_mul"}  # a product with 0 is 0.0


@pytest.mark.every(2)
@pytest.mark.parametrize("bits", [32, 64])
def test_special_points(bits):
    """nan, infinities, zeros with their sign, and tails of records without parameters, in one program."""
    dtype = np.dtype(f"float{bits}")
    x = np.array(SPECIAL, dtype)
    columns = [x, x[::-1].copy(), np.roll(x, 3)]
    wants = {n: numpy_forward(TABLE[n], columns[: TABLE[n].arity], ()) for n in PLAIN}
    with jax.enable_x64(True):
        program = jax.jit(lambda *columns: {n: backend.call(TABLE[n], columns[: TABLE[n].arity], ()) for n in PLAIN})
        results = program.lower(*columns).compile(FAST)(*columns)
    wrong = {}
    for name, (want,) in wants.items():
        got = np.asarray(results[name])
        if not is_inexact(want.dtype):
            same = got == want
        else:
            same = np.isclose(got, want, rtol=4 * TOLERANCE[dtype], atol=0, equal_nan=True)
            same |= (np.abs(want) < np.finfo(dtype).tiny) & (np.abs(got) <= np.finfo(dtype).tiny)  # XLA flushes to zero
            same &= (name in UNSIGNED) | (want != 0) | (got != 0) | (np.signbit(got) == np.signbit(want))
        if not same.all():
            wrong[name] = [(float(c), g, w) for c, g, w, s in zip(x, got, want, same, strict=True) if not s]
    assert not wrong


HALVES = ("add", "amax", "cat", "clone", "cumsum", "exp", "matmul", "mean", "mul", "softmax", "where")


@pytest.mark.parametrize("name", HALVES)
def test_half_precision(name):
    """Records that compute do so in float32, and round once; others move elements as they are."""
    for dtype in testing.half_dtypes():
        arrays, params = samples_in(name, 64)[0]
        narrow = tuple([a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in arrays])
        check({name: [(narrow, params)]}, compiled=False)


@pytest.mark.parametrize("name", ["add", "digamma", "sin", "sum"])
def test_with_the_users_flag_on(name):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        check({name: samples_in(name, 64)[:1]})
    finally:
        jax.config.update("jax_enable_x64", before)


def accepted(function):
    """How many arguments a function takes, at least and at most; None where its signature does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in positional), len(positional)


@pytest.mark.parametrize("name", RECORDS)
def test_what_runs_on_jax_is_found_and_takes_the_same_arguments(name):
    op = TABLE[name]
    numpys, jaxs = accepted(op.forward), accepted(forwards.forward(op))
    if None not in (numpys, jaxs) and op.jax not in (None, "host", "draft"):
        assert jaxs[0] <= numpys[1] and numpys[0] <= jaxs[1]
        assert jaxs[1] >= abs(op.arity if op.arity > 0 else 1) + len(op.params)


def test_a_record_that_says_nothing_of_jax_fails_at_definition_and_names_the_remedy():
    with pytest.raises(TypeError, match=r"op custom.mute: nothing says what runs on JAX: .*first parameter, xp,.*jax="):
        Op("custom.mute", "elementwise", lambda x: x, (1.0,))
    assert "custom.mute" not in TABLE


def would_do(name, forward):
    """Whether a forward can be traced on every sample and gives what NumPy's does."""
    op = TABLE[name]
    for arrays, params in samples_in(name, 64) + samples_in(name, 32):
        want = numpy_forward(op, arrays, params)
        operands = (list(arrays), *params) if op.arity < 0 else (*arrays, *params)
        with jax.enable_x64(True):
            run, traced = host.in_arrays(forward, jax.tree.map(as_jax, operands))
            try:
                got = jax.tree.leaves(jax.jit(run)(*traced))
            except Exception:  # whatever the kernel asks of a tracer
                return False
        if not all(
            g.dtype == w.dtype and np.allclose(g, w, rtol=1e-4, equal_nan=True) for g, w in zip(got, want, strict=True)
        ):
            return False
    return True


def as_jax(a):
    return jnp.array(a) if isinstance(a, np.ndarray) else a


def kernel_of(op):
    """A record's forward as a function of a namespace."""
    return getattr(op.forward, "__func__", lambda xp, *args: op.forward(*args))


@pytest.mark.parametrize("name", sorted(n for n in RECORDS if TABLE[n].jax == "host"))
def test_records_run_on_the_host_only_where_they_must(name):
    op = TABLE[name]
    assert not would_do(name, functools.partial(kernel_of(op), namespace.JAX))
    assert op.arity < 0 or not would_do(name, draft.on_drafts(kernel_of(op), op.arity))


@pytest.mark.parametrize("name", sorted(n for n in RECORDS if TABLE[n].jax == "draft"))
def test_kernels_run_on_drafts_only_where_they_must(name):
    assert not would_do(name, functools.partial(kernel_of(TABLE[name]), namespace.JAX))


def test_the_namespaces_have_the_same_names():
    both = [{n for n in vars(x) if not n.startswith("_")} for x in (NUMPY, namespace.JAX, draft.DRAFTS)]
    ours = {n for names in both for n in names if not hasattr(np, n)}
    assert ours == {
        "by_part", "copied", "erfinv", "if_near", "in_chunks", "in_columns", "in_order", "inverse", "most", "ndtr",
        "products_without", "svd", "with_nan",
    }  # fmt: skip
    assert ours <= both[0] and ours <= both[1] | both[2]


def test_a_host_record_needs_to_be_told_its_result():
    with pytest.raises(RuntimeError, match=r"zeta\(\) runs on the host"):
        jax.jit(lambda q: backend.call(TABLE["zeta"], (2.0, q), ()))(jnp.ones(3))


SCALE = 3.0


def on_the_host(x):
    return np.tanh(x) * SCALE


def on_the_namespace(xp, x):
    return xp.tanh(x) * SCALE


def on_jax(x):
    return jnp.tanh(x) * SCALE


def writing(x):
    out = np.zeros_like(x)
    part = out[...]
    part += np.tanh(x) * SCALE
    return out


@pytest.mark.counted  # programs, which tg.compile makes with counts alone
@pytest.mark.parametrize("forward, given, called_back", [
    (on_the_host, None, True), (writing, None, True), (on_the_namespace, None, False), (on_the_host, on_jax, False),
    (on_the_namespace, "host", True),
])  # fmt: skip
def test_what_runs_of_a_users_operation(forward, given, called_back):
    slope = lambda xp, ans, x: SCALE * (1.0 - xp.tanh(x) ** 2)  # noqa: E731
    op = tg.custom.elementwise("scaled_tanh", forward, slope, jax=given)
    x = np.array([0.5, -2.0])

    def gradient(x):
        x = x.detach().requires_grad_()
        y = op(x)
        return y.detach(), tg.autograd.grad((y * y).sum(), x)[0]

    program = tg.compile(gradient, fullgraph=True)
    for shift in (0.0, 1.0):
        y, g = program(tg.tensor(x + shift))
        want = SCALE * np.tanh(x + shift)
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-14)
        np.testing.assert_allclose(g.numpy(), 2 * want * SCALE * (1 - np.tanh(x + shift) ** 2), rtol=1e-12)
    (specialization,) = program.specializations.values()
    assert ("callback" in specialization.programs[0].executable.compiled.as_text()) is called_back


@pytest.mark.counted
@pytest.mark.parametrize(
    "forward", [lambda xp, x: x * 2 if (x > 0).all() else x * 3, lambda xp, x: np.cumsum(np.asarray(x))]
)
def test_a_users_forward_that_asks_for_values_is_told_of_the_host(forward):
    op = tg.custom.elementwise("asking", forward, 2.0, check=False)
    with pytest.raises(TypeError, match=r'custom.asking.*: its forward asks for values.*jax="host"'):
        tg.compile(op, fullgraph=True)(tg.ones(3))


def test_a_new_record_on_the_namespace_compiles_with_nothing_else_done():
    call = define("custom.new", "elementwise", lambda xp, x: xp.sinh(x) / 2, (lambda xp, ans, x: xp.cosh(x) / 2,), saves="x")
    program = tg.compile(lambda x: call(x) * 2, fullgraph=True)
    for x in (tg.tensor([0.5, 1.0]), tg.tensor([0.25, -3.0])):
        np.testing.assert_allclose(program(x).numpy(), np.sinh(x.numpy()), rtol=1e-6)


def test_circular_functions_in_float32():
    """Note [Circular functions]: 1e-7 up to 8192, and XLA's own beyond."""
    x = np.concatenate([np.linspace(-s, s, 20001) for s in (4.0, 300.0, 8190.0)]).astype(np.float32)
    far = np.append(x, np.float32([1e5, 3e20]))
    for name, function in (("sin", np.sin), ("cos", np.cos)):
        for points in (x, far):
            with jax.enable_x64(True):
                got = np.asarray(backend.call(TABLE[name], (jnp.array(points),), ()))
            assert got.dtype == np.float32
            assert np.abs(got - function(points.astype(np.float64))).max() < 1.1e-7

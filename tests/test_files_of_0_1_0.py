"""Files written by tapegrad 0.1.0 are read: checkpoints, pickles of every public class, operations of tapegrad.custom.

The files lie in data/v0_1_0, with the script that wrote them on 0.1.0.
"""

import importlib
import importlib.util
import json
import math
import pathlib
import pickle
import warnings
import zipfile

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import func, nn, optim
from tapegrad.optim import lr_scheduler

HERE = pathlib.Path(__file__).parent / "data" / "v0_1_0"
WRITTEN = zipfile.ZipFile(HERE / "pickles.zip")
NAMES = [name.removesuffix(".pkl") for name in WRITTEN.namelist()]
TEXTS = json.loads((HERE / "expected.json").read_text())
GLOBALS = [line.split("\t") for line in (HERE / "globals.tsv").read_text().splitlines()]
NEEDS = {
    "values/bfloat16": "ml_dtypes", "values/jax device": "jax", "values/compiled": "jax", "values/compiled function": "jax",
}  # fmt: skip

WITHOUT_VALUES = {"values/generator", "values/uninitialized parameter", "values/uninitialized buffer"}


@pytest.fixture(scope="module")
def expected():
    with np.load(HERE / "expected.npz") as arrays:
        return dict(arrays)


@pytest.fixture(autouse=True)
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return pickle.loads(WRITTEN.read(f"{name}.pkl"))


def group(name):
    return [n for n in NAMES if n.startswith(f"{name}/")]


def arrays_of(value):
    """The tensors in a result, as arrays."""
    if isinstance(value, tg.Tensor):
        t = value.detach()
        return [(t.to_dense() if t.is_sparse else t.float() if t.dtype is tg.bfloat16 else t).numpy()]
    if isinstance(value, dict):
        value = list(value.values())
    return [a for v in value for a in arrays_of(v)] if isinstance(value, list | tuple) else []


def check(expected, name, value, rtol=1e-12):
    """The tensors of a result are those that 0.1.0 computed."""
    want = [a for key, a in expected.items() if key.startswith(f"{name}/out")]
    got = arrays_of(value)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol if g.dtype.itemsize == 8 else 1e-5, atol=1e-6, strict=True)


def inputs_of(expected, name):
    return [tg.tensor(a) for key, a in expected.items() if key.startswith(f"{name}/in")]


# ------------------------------------------------------------------------------------------------------------- pickles


def test_the_archive_is_whole():
    counts = {kind: len(group(kind)) for kind in ("modules", "optimizers", "schedulers", "distributions", "transforms")}
    assert counts == {"modules": 171, "optimizers": 14, "schedulers": 13, "distributions": 41, "transforms": 18}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_printed_form(name):
    assert repr(read(name)) == TEXTS[name]


@pytest.mark.parametrize("flags", [64, 80], ids=["ml_dtypes 0.6", "ml_dtypes 0.5"])
def test_a_pickle_changes_nothing_about_bfloat16(flags):
    """Its dtype is one object for the process, to which NumPy gives the flags in the file: they change its hash."""
    own = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    before = hash(own), own.flags
    written = WRITTEN.read("values/bfloat16.pkl")
    state = b"K\x02K\x02K%ct"  # size, alignment, flags
    assert written.count(state % 64) == 1
    t = pickle.loads(written.replace(state % 64, state % flags))
    assert (hash(own), own.flags) == before
    assert t.dtype is (t + 1).dtype is tg.bfloat16 and t.tolist() == [0.5, 1.0, 2.0]
    again = pickle.dumps(t)
    assert b"ml_dtypes" not in again and tg.equal(pickle.loads(again), t)


@pytest.mark.parametrize("name", group("modules"))
def test_module(name, expected):
    module = read(name)
    inputs = inputs_of(expected, name)
    if inputs:
        check(expected, name, module(*inputs))
    assert repr(pickle.loads(pickle.dumps(module))) == repr(module)


def set_gradients(parameters):
    for p in parameters:
        p.grad = p.detach() * 0.5 + 0.25


@pytest.mark.parametrize("name", group("optimizers"))
def test_optimizer(name, expected):
    """The step after those that 0.1.0 took."""
    read_back = read(name)
    if not isinstance(read_back["optimizer"], optim.LBFGS):
        set_gradients(read_back["parameters"])
        read_back["optimizer"].step()
    check(expected, name, read_back["parameters"])


@pytest.mark.parametrize("name", group("schedulers"))
def test_schedule(name, expected):
    """The rates of the steps after those that 0.1.0 took."""
    optimizer, schedule = read(name).values()
    rates = []
    for _ in range(4):
        set_gradients(optimizer.param_groups[0]["params"])
        optimizer.step()
        schedule.step(*([1.0] if isinstance(schedule, lr_scheduler.ReduceLROnPlateau) else []))
        rates.append(optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(rates, expected[f"{name}/out0"], rtol=1e-12)


@pytest.mark.parametrize("name", group("distributions"))
def test_distribution(name, expected):
    check(expected, name, read(name).log_prob(*inputs_of(expected, name)))


@pytest.mark.parametrize("name", group("transforms"))
def test_transform(name, expected):
    check(expected, name, read(name)(*inputs_of(expected, name)))


@pytest.mark.parametrize("name", [n for n in group("values") if n not in WITHOUT_VALUES])
def test_value(name, expected):
    check(expected, name, read(name))


def test_flags_of_tensors():
    leaf, parameter, frozen = (read(f"values/{name}") for name in ("leaf", "parameter", "frozen parameter"))
    assert leaf.requires_grad and leaf.is_leaf and type(leaf) is tg.Tensor
    assert parameter.requires_grad and not frozen.requires_grad and type(parameter) is type(frozen) is nn.Parameter
    assert read("values/parameter with attributes").note == "kept"
    (g,) = tg.autograd.grad((leaf**2).sum(), leaf)
    assert g.tolist() == [-1.25, 0.5]
    lazy = read("values/uninitialized parameter")
    lazy.materialize((2, 3))
    assert type(lazy) is nn.Parameter and lazy.dtype is tg.float64 and lazy.requires_grad


def test_constants_are_the_same_objects():
    a, b, c, d, *layouts = read("values/dtypes")
    assert (a, b, c, d) == (tg.float32, tg.int64, tg.bool, tg.complex128)
    assert layouts == [tg.strided, tg.sparse_coo, tg.contiguous_format, tg.channels_last]
    assert a is tg.float32 and layouts[0] is tg.strided
    assert read("values/size") == (2, 3) and type(read("values/size")) is tg.Size


def test_functions_are_the_same_objects():
    F, init = nn.functional, nn.init
    assert read("values/functions") == [tg.sin, tg.matmul, F.relu, F.gelu, init.zeros_, tg.linalg.norm, tg.no_grad]


def test_generator(expected):
    g = read("values/generator")
    got = [tg.randn(5, generator=g), tg.randperm(9, generator=g)]
    check(expected, "values/generator", got)


def test_containers_of_data():
    assert [t.item() for t in read("values/dataset")[1][0]] == [-0.25, 0.625]
    assert len(read("values/dataset")) == 4 and len(read("values/subset")) == 2 and len(read("values/concatenated")) == 5
    assert [x.shape for (x,) in read("values/loader")] == [(2,), (2,)]
    assert list(read("values/batches")) == [[1, 2]] and list(read("values/sampler")) == [0, 1, 2]
    assert read("values/scaler").get_scale() == 8.0
    packed = read("values/packed")
    assert packed.batch_sizes.tolist() == [2, 2, 1, 1] and packed.data.shape == (6, 3)
    assert tuple(read("values/maximum")._fields) == ("values", "indices")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
def test_compiled():
    x = tg.ones(3, 4)
    net = read("values/compiled")
    np.testing.assert_allclose(net(x).detach(), net._orig_mod(x).detach(), rtol=1e-6)
    np.testing.assert_allclose(read("values/compiled function")(x), x.sin(), rtol=1e-6)


@pytest.mark.parametrize("module", sorted({row[0] for row in GLOBALS}))
def test_where_a_pickle_looks_for_names(module):
    """A pickle names classes and functions by the module that 0.1.0 had them in."""
    for name, public in [row[1:] for row in GLOBALS if row[0] == module]:
        page, _, own = public.rpartition(".")
        found = pickle.loads(f"c{module}\n{name}\n.".encode()) if "." not in name else nested(module, name)
        assert found is getattr(importlib.import_module(page), own), name


def nested(module, name):
    return pickle.loads(b"\x80\x04" + b"".join(b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, name)) + b"\x93.")


# --------------------------------------------------------------------------------------------------------------- files


def numbers(*shape, first=0):
    """What write.py fills tensors with: multiples of 1/8."""
    return (np.arange(first, first + math.prod(shape)).reshape(shape) * 7 % 11 - 5) / 8


@pytest.mark.parametrize("file", ["tensors.pt", "tensors_legacy.pt"])
def test_tensors_of_a_file(file):
    c = tg.load(HERE / file)
    for name, t in c["dtypes"].items():
        assert str(t.dtype) == name
        np.testing.assert_array_equal(t.numpy().astype(complex), [0, 1, 1 if t.dtype is tg.bool else 2])
    block, row, turned = c["shared"].values()
    np.testing.assert_array_equal(block, numbers(3, 4))
    row[:] = 9.0
    assert block[1].tolist() == [9.0] * 4 and turned[:, 1].tolist() == [9.0] * 4 and turned.stride() == (1, 4)
    p = c["parameter"]
    assert type(p) is nn.Parameter and p.requires_grad and p.note == "kept" and c["same"][0] is c["same"][1] is p
    np.testing.assert_array_equal(p.detach(), numbers(2, 3))
    assert c["leaf"].requires_grad and c["leaf"].tolist() == [-0.625, 0.25]
    assert c["scalar"].item() == 1.5 and c["empty"].shape == (0, 3)
    assert (c["size"], c["dtype"], c["device"]) == (tg.Size([2, 3]), tg.float16, tg.device("cpu"))
    assert c["plain"] == [1, 2.5, None, True, "text", b"b", 1j]
    assert c["sparse"].to_dense().tolist() == [[0.0, 1.5], [0.0, 0.0], [2.5, 0.0]]


def model():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


def test_a_checkpoint():
    c = tg.load(HERE / "checkpoint.pt")
    net = model()
    net.load_state_dict(c["model"])
    optimizer = optim.Adam(net.parameters(), lr=1.0)
    schedule = lr_scheduler.StepLR(optimizer, 2)
    optimizer.load_state_dict(c["optimizer"]), schedule.load_state_dict(c["scheduler"])
    # the first step of Adam moves by the rate, against the gradient's sign
    start = [numbers(*p.shape, first=i) for i, p in enumerate(net.parameters())]
    for p, before in zip(net.parameters(), start, strict=True):
        np.testing.assert_allclose(p.detach(), before - 0.125 * np.sign(before * 0.5 + 0.25), rtol=1e-6)
        np.testing.assert_allclose(optimizer.state[p]["exp_avg"], 0.1 * (before * 0.5 + 0.25), rtol=1e-5)
        assert optimizer.state[p]["step"].item() == 1.0
    assert optimizer.param_groups[0]["lr"] == 0.125 and schedule.last_epoch == 1 and c["epoch"] == 1
    tg.set_rng_state(c["random"])
    drawn = tg.rand(3)
    tg.manual_seed(3)
    assert tg.equal(drawn, tg.rand(3))


def test_a_whole_module():
    net = tg.load(HERE / "module.pt", weights_only=False)
    net2 = model()
    net2.load_state_dict(tg.load(HERE / "checkpoint.pt")["model"])
    assert tg.equal(net(tg.ones(4, 2)), net2(tg.ones(4, 2))) and repr(net) == repr(net2)


@pytest.mark.parametrize("file", ["weights.safetensors", "arrays.npz"])
def test_named_arrays(file):
    if file.endswith("safetensors"):
        pytest.importorskip("safetensors")
    c = tg.load(HERE / file)
    assert sorted(c) == ["a.weight", "half", "whole"]
    np.testing.assert_array_equal(c["a.weight"], numbers(2, 3).astype(np.float32))
    assert c["half"].dtype is tg.float16 and c["half"].tolist() == [-0.625, 0.25] and c["whole"].tolist() == [0, 1, 2]


# ------------------------------------------------------------------------------------------------ tapegrad.custom of 0.1.0

M = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]])
SAMPLE, PAIR = np.array([0.5, 1.0, 2.0]), (np.array([0.5, 1.5]), np.array([2.0, -1.0]))


def solve(a):
    x = np.full_like(a, 3.0)
    for _ in range(50):
        x = x - (x**3 - a * x - 1) / (3 * x**2 - a)
    return x


def assigns(xp, g, ans, x, w):
    """Reads some arguments only after others were stored."""
    c = g
    first, second = c, w
    w = None
    for factor in (second,):
        c = first * factor
    return c


def unused_branch(xp, g, ans, x, w):
    if w is None:
        return ans
    scaled = [t * x for t in (g,)]
    return scaled[0]


def through_a_helper(xp, g, x):
    return g * xp.cos(x)


def norms_jvp(xp, tangents, ans, x):
    (t,) = tangents
    along = xp.sum(t * x, (0,), False)
    return [along / ans[0], 2 * along]


CUSTOM = {  # kind, forward, rules, fields, a function with the same values
    "squareplus": (
        "elementwise", lambda x, b=4.0: (x + np.sqrt(x * x + b)) / 2, [lambda xp, ans, x, b: ans / xp.sqrt(x * x + b)], {},
        lambda x: (x + (x * x + 4).sqrt()) / 2,
    ),
    "softsign": (
        "elementwise", lambda x: x / (1 + np.abs(x)), [lambda xp, ans, x: 1 / (1 + xp.abs(x)) ** 2], {},
        lambda x: x / (1 + x.abs()),
    ),
    "exponential": ("elementwise", lambda x: np.exp(x), [lambda xp, ans, x: ans], {}, lambda x: x.exp()),
    "minus": ("elementwise", np.negative, [-1.0], {}, lambda x: -x),
    "sine_times": (
        "elementwise", lambda x, y: x * np.sin(y), [lambda xp, ans, x, y: xp.sin(y), lambda xp, ans, x, y: x * xp.cos(y)],
        {"samples": [PAIR]}, lambda x, y: x * y.sin(),
    ),
    "kept": (
        "elementwise", lambda x: np.sin(x), [lambda xp, ans, x: (c := xp.cos(x)) * 1.0 + 0.0 * c], {}, lambda x: x.sin(),
    ),
    "constant_second": (
        "elementwise", lambda a, b: a + 0 * b, [lambda xp, ans, a, b: 1.0, None], {"samples": [PAIR]},
        lambda a, b: a + 0 * b,
    ),
    "apply_m": ("linear", lambda x: M @ x, [lambda g: M.T @ g], {"samples": [SAMPLE]}, lambda x: tg.tensor(M) @ x),
    "total": (
        "linear", lambda x: x.sum(), [lambda xp, g, ans, x: xp.expand(g, x.shape)], {"samples": [SAMPLE]}, lambda x: x.sum(),
    ),
    "with_batch": (
        "linear", lambda x: M @ x, [lambda g: M.T @ g],
        {"samples": [SAMPLE], "batch": lambda op, n, args, batched, params: args[0] @ tg.from_numpy(M.T)},
        lambda x: tg.tensor(M) @ x,
    ),
    "root": (
        "general", solve, [lambda xp, g, ans, a: g * ans / (3 * ans**2 - a)], {"samples": [SAMPLE]}, lambda a: newton(a),
    ),
    "product": (
        "general", lambda x, w: x * w,
        [lambda xp, g, ans, x, w: (c := g) * w, lambda xp, g, ans, x, w: (c := g) * x + 0 * c],  # noqa: F841
        {"samples": [PAIR]}, lambda x, w: x * w,
    ),
    "product_by_statements": (
        "general", lambda x, w: x * w, [assigns, unused_branch], {"samples": [PAIR]}, lambda x, w: x * w,
    ),
    "sine": (
        "general", np.sin, [lambda xp, g, ans, x: through_a_helper(xp, g, x)], {"samples": [SAMPLE]}, lambda x: x.sin(),
    ),
    "norms": (
        "general", lambda x: (np.sqrt((x * x).sum()), (x * x).sum()), [lambda xp, g, ans, x: x * (g[0] / ans[0] + 2 * g[1])],
        {"outputs": 2, "jvp": norms_jvp, "samples": [SAMPLE]}, lambda x: ((x * x).sum().sqrt(), (x * x).sum()),
    ),
    "double_where": (
        "general", lambda x, w: np.where(w > 0, 2 * x, x), [lambda xp, g, ans, x, w: xp.where(w > 0, 2 * g, g), None],
        {"samples": [PAIR]}, lambda x, w: tg.where(w > 0, 2 * x, x),
    ),
}  # fmt: skip


def newton(a):
    x = tg.full_like(a, 3.0)
    for _ in range(50):
        x = x - (x**3 - a * x - 1) / (3 * x**2 - a)
    return x


def twice(f, xs):
    """Values, gradients of a sum of cubes, and gradients of these."""
    leaves = [tg.tensor(x, requires_grad=True) for x in xs]
    values = f(*leaves)
    loss = sum((v**3).sum() for v in (values if isinstance(values, tuple) else (values,)))
    first = [tg.zeros_like(x) if g is None else g for x, g in zip(
        leaves, tg.autograd.grad(loss, leaves, create_graph=True, allow_unused=True), strict=True)]  # fmt: skip
    second = tg.autograd.grad(sum((g**2).sum() for g in first), leaves, allow_unused=True)
    return arrays_of([values, *first, *[tg.zeros_like(x) if g is None else g for x, g in zip(leaves, second, strict=True)]])


@pytest.mark.every(2)
@pytest.mark.parametrize("name", CUSTOM)
def test_custom_operation(name):
    kind, forward, rules, fields, same = CUSTOM[name]
    f = getattr(tg.custom, kind)(name, forward, *rules, **fields)
    given = fields.get("samples", [SAMPLE - 0.75])[0]
    given = given if isinstance(given, tuple) else (given,)
    for got, want in zip(twice(f, given), twice(same, given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    xs = tuple(tg.tensor(x) for x in given)
    pushed, want = (func.jvp(g, xs, tuple(tg.ones_like(x) for x in xs))[1] for g in (f, same))
    for a, b in zip(arrays_of([pushed]), arrays_of([want]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    rows = [tg.stack([x, 2 * x]) for x in xs]
    for a, b in zip(arrays_of([func.vmap(f)(*rows)]), arrays_of([func.vmap(same)(*rows)]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_custom_operation_that_is_its_own_derivative():
    f = tg.custom.elementwise(
        "falling",
        lambda x, n=3: np.asarray(x**n if n > 0 else np.ones_like(x) * (n == 0)),
        lambda xp, ans, x, n: n * tg.custom.use(xp, "falling")(x, n - 1),
    )
    x = tg.tensor(2.0, dtype=tg.float64, requires_grad=True)
    (first,) = tg.autograd.grad(f(x, 3), x, create_graph=True)
    assert first.item() == 12.0 and tg.autograd.grad(first, x)[0].item() == 12.0

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

RECORDS = sorted(name for name in TABLE if not name.startswith("custom.") and name not in ("function", "transfer"))
"""All but a user's own function, whose sample holds tensors of the CPU, and the move between devices, tested below."""
TOLERANCE = {32: 2e-5, 64: 1e-11}


@pytest.fixture(scope="module", autouse=True)
def quick_compiler():
    """Every eager call of a new shape compiles: what XLA's optimiser does is not at stake here."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


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


def sample_of(name, bits):
    """(arrays, params) of a sample where the record is smooth, if there is one, in 32 or 64 bits."""
    samples = testing.samples_of(name)
    sample = next((s for s in samples if s.smooth and testing.differentiable(TABLE[name], s.arrays)), samples[0])
    return [testing.narrowed(a, bits) for a in sample.arrays], sample.params


def check_close(got, want, tolerance, device="jax:0"):
    assert (got is None) == (want is None)
    if got is None:
        return
    assert str(got.device) == device and got.dtype is want.dtype and got.shape == want.shape
    got, want = got.detach().cpu().numpy(), want.detach().numpy()
    size = np.abs(want[np.isfinite(want)]).max(initial=0.0) if want.dtype.kind in "fc" else 0
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * size)


@pytest.mark.parametrize("bits", [pytest.param(64, marks=pytest.mark.exhaustive), 32])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] if i % 6 else []) for i, n in enumerate(RECORDS)]
)
def test_record_on_a_device(name, bits, exhaustive):
    """Without --all every sixth record, and values alone: test_compile_laws runs all of them on JAX, with gradients."""
    op, (arrays, params) = TABLE[name], sample_of(name, bits)
    highest = (2 if bits == 64 else 1) if exhaustive else 0  # the rules' text is the same for both
    for got, want in zip(*[orders(op, arrays, params, d, highest) for d in ("jax", "cpu")], strict=True):
        for g, w in zip(got, want, strict=True):
            check_close(g, w, TOLERANCE[bits])


# --------------------------------------------------------------------------------------------------------------- moving


@pytest.mark.parametrize("flag", [False, True])
def test_float64_stays_float64_and_the_setting_stays(flag):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", flag)
    try:
        x = tg.tensor([1 / 3, 2 / 3], dtype=tg.float64, device="jax", requires_grad=True)
        y = (x.sin() * 3.1 + 1).sum()
        y.backward()
        assert (y.dtype, x.grad.dtype, jax.config.jax_enable_x64) == (tg.float64, tg.float64, flag)
        np.testing.assert_allclose(x.grad.cpu(), 3.1 * np.cos([1 / 3, 2 / 3]), rtol=1e-15)
        assert tg.arange(3, device="jax").sum().dtype is tg.int64
    finally:
        jax.config.update("jax_enable_x64", before)


def test_a_move_is_an_operation():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x.to("jax")
    assert y.device == tg.device("jax", 0) and y.grad_fn.name() == "ToCopyBackward0" and y.to("jax:0") is y
    (g,) = tg.autograd.grad((y**3).sum().cpu(), x, create_graph=True)
    assert g.device == tg.device("cpu")
    (h,) = tg.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h, [6.0, 12.0])
    z = y.to("cpu", tg.float64)
    assert (z.device.type, z.dtype, x.to(y).device.type) == ("cpu", tg.float64, "jax")
    assert x.cpu() is x and not y.is_cpu and not y.is_cuda and y.get_device() == 0


def test_memory_that_numpy_can_write_is_copied():
    block = np.zeros(64)
    aligned = block[(-block.ctypes.data % 64) // 8 :][:8]
    t = tg.from_numpy(aligned).to("jax")
    u = tg.tensor(aligned, device="jax")
    aligned[:] = 7
    assert t.tolist() == u.tolist() == [0.0] * 8


@pytest.mark.parametrize(
    ("text", "shown"), [("jax", "jax"), ("jax:1", "jax:1"), ("jax:cpu:1", "jax:1"), ("jax:cuda:1", "cuda:1"), ("tpu", "tpu")]
)
def test_names_of_devices(text, shown):
    assert str(tg.device(text)) == shown


def test_devices_that_are_not_there():
    for kind in ("tpu", "meta", *(() if tg.cuda.is_available() else ("cuda", "cuda:1"))):
        with pytest.raises(RuntimeError, match=f"no {kind[:4].rstrip(':')}\\w* device is available"):
            tg.ones(2, device=kind)
    with pytest.raises(RuntimeError, match="invalid device ordinal: there is no jax:99"):
        tg.ones(2).to("jax:99")


def test_without_jax(monkeypatch):
    from tapegrad.kernels import devices

    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    monkeypatch.delitem(__import__("sys").modules, "jax")
    devices.library.cache_clear(), devices.devices.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"the device 'jax' needs JAX: pip install 'tapegrad\[jax\]'"):
            tg.ones(2, device="jax")
        with pytest.raises(RuntimeError, match="no cuda device is available"):
            tg.ones(2).cuda()
        assert not tg.cuda.is_available() and tg.cuda.device_count() == 0
    finally:
        devices.library.cache_clear(), devices.devices.cache_clear()


MIXED = "Expected all tensors to be on the same device, but found at least two devices, jax:0 and cpu!"


@pytest.mark.parametrize(
    "mix",
    [lambda x, y: x + y, lambda x, y: y + x, lambda x, y: x @ y, lambda x, y: tg.cat([x, y]),
     lambda x, y: tg.nn.functional.linear(x, y[None]), lambda x, y: x.mul_(y), lambda x, y: tg.where(y > 0, x, x)],
)  # fmt: skip
def test_two_devices_do_not_mix(mix):
    with pytest.raises(RuntimeError, match=MIXED):
        mix(tg.ones(2, device="jax"), tg.ones(2))


def test_numbers_and_0_dim_tensors_mix_with_any_device():
    x = tg.ones(2, device="jax")
    for y in (2 * x, x + tg.tensor(1.0), tg.tensor(3.0) - x, x + np.ones(2, np.float32), x * np.float64(2), x / x._d * 2):
        assert y.device.type == "jax" and y.dtype is tg.float32 and y.tolist() == [2.0, 2.0]
    x[0] = tg.tensor([5.0])
    x.copy_(tg.ones(2) * 4)
    assert x.tolist() == [4.0, 4.0] and x.device.type == "jax"


def test_values_leave_when_asked():
    x = tg.tensor([[1.5, 2.0]], device="jax")
    for read in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="can't convert jax:0 device type tensor to numpy. Use Tensor.cpu"):
            read()
    assert x.tolist() == [[1.5, 2.0]] and x[0, 0].item() == 1.5 and float(x.sum()) == 3.5 and x.numpy(force=True)[0, 1] == 2
    assert repr(x) == "tensor([[1.5000, 2.0000]], device='jax:0')"
    assert repr(x.double().requires_grad_()) == (
        "tensor([[1.5000, 2.0000]], device='jax:0', dtype=torch.float64,\n       requires_grad=True)"
    )
    assert (x.stride(), x.is_contiguous(), x.T.stride(), x.storage_offset(), x.nbytes) == ((2, 1), True, (1, 1), 0, 8)
    assert x.data_ptr() == x.detach().data_ptr() != x.clone().add_(1).data_ptr()


def test_arrays_of_jax():
    with jax.enable_x64(True):
        a = jax.numpy.arange(3.0)
    t = tg.asarray(a)
    assert t.device.type == "jax" and t._d is a and tg.tensor(a).dtype is tg.float64 and tg.tensor(a, device="cpu").is_cpu
    assert tg.from_dlpack(a).is_cpu and tg.from_dlpack(a).tolist() == [0.0, 1.0, 2.0]
    assert jax.numpy.from_dlpack(t).tolist() == jax.numpy.from_dlpack(tg.ones(3).cumsum(0) - 1).tolist() == [0.0, 1.0, 2.0]
    x = tg.ones(3, dtype=tg.float64, device="jax", requires_grad=True)
    (x * a).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0] and tg.func.grad(lambda x: (x**2).sum())(a).tolist() == [0.0, 2.0, 4.0]


def test_default_device():
    with tg.device("jax"):
        made = [
            tg.ones(2),
            tg.tensor([1]),
            tg.randn(2),
            tg.arange(3),
            tg.eye(2),
            tg.Tensor([1.0]),
            tg.nn.Linear(2, 2).weight,
        ]
        assert tg.get_default_device() == tg.device("jax:0") and {str(t.device) for t in made} == {"jax:0"}
        with tg.device("cpu"):
            assert tg.ones(2).is_cpu
    assert tg.ones(2).is_cpu
    tg.set_default_device("jax")
    try:
        assert tg.ones(2).device.type == "jax" and tg.zeros(2, device="cpu").is_cpu
    finally:
        tg.set_default_device(None)
    assert tg.get_default_device() == tg.device("cpu")


def test_one_stream_of_random_numbers():
    def draws(device):
        tg.manual_seed(3)
        x = tg.rand(4, device=device)
        made = [x.clone(), tg.randn_like(x), x.normal_(), tg.bernoulli(x.sigmoid()), tg.dropout(x, 0.5, True)]
        made += [tg.randperm(5, device=device), tg.multinomial(x.exp(), 2), tg.nn.Linear(2, 2, device=device).bias]
        return [t.tolist() for t in made]

    assert draws("jax") == draws("cpu")


def test_files_pickles_and_copies(tmp_path):
    x = tg.tensor([1.0, 2.0], device="jax", requires_grad=True)
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert made.device == x.device and made.tolist() == [1.0, 2.0] and made.requires_grad
    model = tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.BatchNorm1d(2)).to("jax")
    file = io.BytesIO()
    tg.save(model.state_dict(), file)
    for to in (None, "cpu", "jax", {"cpu": "jax"}):
        file.seek(0)
        state = tg.load(file, map_location=to)
        where = "jax" if to not in (None, "cpu") else "cpu"
        assert {t.device.type for t in state.values()} == {where}
        np.testing.assert_array_equal(state["0.weight"].cpu(), model[0].weight.detach().cpu())
        model.load_state_dict(state)
        assert {t.device.type for t in model.state_dict().values()} == {"jax"}


def test_training_resumes_on_the_device():
    model = tg.nn.Linear(2, 1).to("jax")
    optimizer = tg.optim.Adam(model.parameters(), lr=0.1)
    x = tg.ones(4, 2, device="jax")

    def step():
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        return model.weight.tolist()

    step()
    file = io.BytesIO()
    tg.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    after = step()
    for to in (None, "cpu", "jax"):
        file.seek(0)
        state = tg.load(file, map_location=to)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        moments = optimizer.state[model.weight]
        assert {moments["exp_avg"].device.type, moments["exp_avg_sq"].device.type} == {"jax"}
        assert step() == after
    model.to("cpu")
    optimizer.load_state_dict(state["optimizer"])
    assert optimizer.state[model.weight]["exp_avg"].device.type == "cpu"


# -------------------------------------------------------------------------------------------------- writing and training


OVERLAPPING = {
    "expand": lambda x: x[:1].expand(3), "as_strided": lambda x: x.as_strided((3,), (0,)),
    "unfold": lambda x: x.unfold(0, 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("view", OVERLAPPING.values(), ids=OVERLAPPING)
def test_what_shows_an_element_twice_is_not_written(view):
    x = tg.ones(4, device="jax")
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        view(x).add_(1.0)
    assert x.as_strided((2, 2), (2, 1)).add_(1.0).tolist() == [[2.0, 2.0], [2.0, 2.0]] and x.tolist() == [2.0] * 4


def test_writes_show_in_views():
    x = tg.zeros(2, 3, device="jax")
    row, column, flat = x[0], x[:, 1], x.view(6)
    row += 1
    column[1] = 5
    flat[2] = 7
    x.T[0].mul_(10)
    assert x.tolist() == [[10.0, 1.0, 7.0], [0.0, 5.0, 0.0]] and flat.tolist() == [10.0, 1.0, 7.0, 0.0, 5.0, 0.0]
    assert row.tolist() == [10.0, 1.0, 7.0] and column.tolist() == [1.0, 5.0]


@pytest.mark.exhaustive
def test_gradients_through_writes():
    def f(x):
        h = x * 2
        h[0] = h[1] ** 2
        h[:, 1] *= x[0, 0]
        h.add_(x).clamp_(max=9)
        return (h**2).sum()

    x = tg.tensor([[0.5, -1.0], [2.0, 0.3]], dtype=tg.float64)
    for derivative in (tg.func.grad(f), tg.func.hessian(f)):
        np.testing.assert_allclose(derivative(x.to("jax")).cpu(), derivative(x), rtol=1e-13)


@pytest.mark.parametrize("index", [5, (0, 5), ([0, 5],), -3])
def test_indices_out_of_bounds_raise(index):
    x = tg.ones(2, 3, device="jax")
    with pytest.raises(IndexError, match="out of bounds"):
        x[index]
    with pytest.raises(IndexError, match="out of bounds"):
        x[index] = 0


@pytest.mark.exhaustive
def test_transforms():
    def f(x):
        return (x.tanh() @ x).exp()

    x = tg.linspace(-1, 1, 6, dtype=tg.float64).view(2, 3)
    mapped = [tg.func.vmap(t(f)) for t in (tg.func.grad, tg.func.hessian, tg.func.laplacian)]
    for transform in (*mapped, lambda x: tg.func.jvp(tg.cos, (x,), (x,))[1], lambda x: tg.func.jacfwd(f)(x[0])):
        got = transform(x.to("jax"))
        assert got.device.type == "jax"
        np.testing.assert_allclose(got.cpu(), transform(x), rtol=1e-12)


OPTIMIZERS = [
    (tg.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}), (tg.optim.Adam, {"lr": 0.05, "amsgrad": True}),
    (tg.optim.AdamW, {"lr": 0.05}), (tg.optim.RMSprop, {"lr": 0.01, "centered": True}), (tg.optim.LBFGS, {"max_iter": 3}),
]  # fmt: skip


def train(device, make, settings):
    tg.manual_seed(0)
    model = tg.nn.Sequential(
        tg.nn.Conv2d(1, 2, 3, bias=False),
        tg.nn.BatchNorm2d(2),
        tg.nn.ReLU(),
        tg.nn.Flatten(),
        tg.nn.Dropout(0.2),
        tg.nn.Linear(8, 3),
    ).to(device)
    x, target = tg.randn(5, 1, 4, 4).to(device), tg.tensor([0, 1, 2, 1, 0], device=device)
    optimizer = make(model.parameters(), **settings)

    def closure():
        optimizer.zero_grad()
        loss = tg.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        return loss

    losses = [optimizer.step(closure) for _ in range(3)]
    assert all(t.device == x.device for p in model.parameters() for t in (p, p.grad))
    return [loss.item() for loss in losses], [t.detach().cpu().numpy() for t in model.state_dict().values()]


@pytest.mark.every(8)
@pytest.mark.parametrize(("make", "settings"), OPTIMIZERS, ids=lambda v: getattr(v, "__name__", None))
def test_training_is_the_same(make, settings):
    (got, state), (want, wanted) = train("jax", make, settings), train("cpu", make, settings)
    np.testing.assert_allclose(got, want, rtol=2e-4)
    for a, b in zip(state, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


@pytest.mark.exhaustive
def test_a_recurrent_layer_and_a_double_backward():
    def penalty(device):
        tg.manual_seed(1)
        model, x = tg.nn.LSTM(2, 3).to(device), tg.randn(4, 2, 2).to(device).requires_grad_()
        (g,) = tg.autograd.grad(model(x)[0].sum(), x, create_graph=True)
        ((g**2).sum() + model(x)[0].mean()).backward()
        return [p.grad.cpu() for p in model.parameters()]

    for got, want in zip(penalty("jax"), penalty("cpu"), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_hooks_and_gradients_are_on_the_device():
    x = tg.ones(2, device="jax", requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.device) or g * 2)
    held = (y := x * 3).sum()
    y.retain_grad()
    held.backward(retain_graph=True)
    held.backward()
    assert seen == [x.device] * 2 and x.grad.tolist() == [12.0, 12.0] and y.grad.device == x.device
    assert tg.autograd.grad(x.sum(), [y], allow_unused=True, materialize_grads=True)[0].device == x.device

"""The laws, training and compiled steps on a CUDA device; skipped where JAX finds none."""

import numpy as np
import pytest
import test_jax_device as laws

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE

jax = pytest.importorskip("jax")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not tg.cuda.is_available(), reason="JAX finds no CUDA device")]
RECORDS = laws.RECORDS[::4]
TOLERANCE = {32: 1e-4, 64: 1e-10}


def test_questions_about_devices():
    assert tg.cuda.device_count() >= 1 and tg.cuda.current_device() == 0 and tg.cuda.get_device_name()
    x = tg.ones(2, 3).cuda()
    assert x.is_cuda and x.device == tg.device("cuda", 0) and tg.device(0) == x.device and x.get_device() == 0
    assert repr(x[0]) == "tensor([1., 1., 1.], device='cuda:0')" and tg.ones(1, device="jax").is_cuda
    tg.cuda.synchronize()
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu!"):
        x + tg.ones(2, 3)
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and jax:0!"):
        x + tg.ones(2, 3, device="jax:0")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        x.to(f"cuda:{tg.cuda.device_count()}")


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("name", RECORDS)
def test_record_on_cuda(name, bits):
    op = TABLE[name]
    arrays, params = laws.sample_of(name, bits)
    for got, want in zip(*[laws.orders(op, arrays, params, d, 2) for d in ("cuda", "cpu")], strict=True):
        for g, w in zip(got, want, strict=True):
            laws.check_close(g, w, TOLERANCE[bits], "cuda:0")


def test_single_precision_is_not_rounded_further():
    a, b = (testing.random_like(np.random.default_rng(i), np.empty((64, 64), np.float32)) for i in (0, 1))
    got = tg.tensor(a, device="cuda") @ tg.tensor(b, device="cuda")
    np.testing.assert_allclose(got.cpu(), a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("make", "settings"), laws.OPTIMIZERS, ids=lambda v: getattr(v, "__name__", None))
def test_training_is_the_same(make, settings):
    (got, state), (want, wanted) = laws.train("cuda", make, settings), laws.train("cpu", make, settings)
    np.testing.assert_allclose(got, want, rtol=1e-3)
    for a, b in zip(state, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=5e-3, atol=5e-4)


def eikonal(device, compiled):
    """Losses of steps with a double backward: the gradient of a distance field is to have length 1."""
    tg.manual_seed(0)
    model = tg.nn.Sequential(tg.nn.Linear(3, 32), tg.nn.Softplus(beta=10), tg.nn.Linear(32, 1)).to(device)
    optimizer, points = tg.optim.Adam(model.parameters(), lr=1e-2), tg.randn(64, 3).to(device)

    def step(x):
        x = x.detach().requires_grad_()
        optimizer.zero_grad()
        y = model(x)
        (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
        loss = (y**2).mean() + ((g.norm(dim=1) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = tg.compile(step) if compiled else step
    return [run(points).item() for _ in range(10)]


@pytest.mark.parametrize("compiled", [False, True])
def test_steps_with_a_double_backward(compiled):
    np.testing.assert_allclose(eikonal("cuda", compiled), eikonal("cpu", False), rtol=1e-3)

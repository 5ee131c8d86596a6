"""torch.amp: autocast, GradScaler, and the decorators for custom functions."""

import threading

import pytest

import tapegrad as tg
from tapegrad import amp, nn
from tapegrad.nn import functional as F
from tapegrad.utils.checkpoint import checkpoint

HALF = {"device_type": "cpu", "dtype": tg.float16}


def test_products_run_in_16_bits_and_losses_in_float32():
    x, w, b = tg.ones(2, 3), tg.ones(4, 3, requires_grad=True), tg.ones(4)
    with tg.autocast(**HALF):
        y = F.linear(x, w, b)
        loss = F.mse_loss(y, tg.zeros(2, 4))
        assert [(x @ w.t()).dtype, (x + 1).dtype, w.mv(x[0]).dtype] == [tg.float16, tg.float32, tg.float32]
    assert (y.dtype, loss.dtype) == (tg.float16, tg.float32)
    loss.backward()
    assert w.grad.dtype is tg.float32 and w.grad.tolist() == [[2.0] * 3] * 4
    assert (x @ w.t()).dtype is tg.float32


def test_float64_is_not_cast():
    x = tg.ones(2, 2, dtype=tg.float64)
    with tg.autocast(**HALF):
        assert (x @ x).dtype is tg.float64 and F.mse_loss(x, x).dtype is tg.float64


@pytest.mark.parametrize(("layer", "dtype"), [(nn.LSTM, tg.float16), (nn.RNN, tg.float16), (nn.GRU, tg.float32)])
def test_recurrent_layers(layer, dtype):
    m = layer(3, 4)
    with tg.autocast(**HALF):
        for x in (tg.ones(2, 1, 3), tg.ones(2, 1, 3, dtype=tg.float16)):
            assert m(x)[0].dtype is dtype


def test_attention_and_einsum():
    q = tg.ones(1, 2, 3, 4)
    with tg.autocast(**HALF):
        assert F.scaled_dot_product_attention(q, q, q).dtype is tg.float16
        assert tg.einsum("bhse,bhte->bhst", q, q).dtype is tg.float16
        assert nn.Conv2d(2, 2, 3)(tg.ones(1, 2, 4, 4)).dtype is tg.float16
        assert F.softmax(q, -1).dtype is tg.float32


def test_contexts_nest_and_end():
    x = tg.ones(2, 2)
    with tg.autocast(**HALF):
        with tg.autocast("cpu", enabled=False):
            assert (x @ x).dtype is tg.float32 and not tg.is_autocast_enabled("cpu")
        assert (x @ x).dtype is tg.float16 and tg.get_autocast_dtype("cpu") is tg.float16
    with pytest.raises(ZeroDivisionError), tg.autocast(**HALF):
        _ = 1 / 0
    assert (x @ x).dtype is tg.float32 and not tg.is_autocast_cpu_enabled()


def test_autocast_does_not_reach_other_threads():
    found = []
    with tg.autocast(**HALF):
        t = threading.Thread(target=lambda: found.append((tg.ones(1, 1) @ tg.ones(1, 1)).dtype))
        t.start()
        t.join()
    assert found == [tg.float32]


def test_a_checkpoint_recomputes_in_the_same_dtypes():
    w = tg.ones(2, 2, requires_grad=True)
    with tg.autocast(**HALF):
        y = checkpoint(lambda x: (x @ w) * x, tg.ones(2, 2), use_reentrant=False)
    y.sum().backward()
    assert w.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_decorator():
    assert tg.autocast(**HALF)(lambda x: x @ x)(tg.ones(1, 1)).dtype is tg.float16
    with pytest.raises(TypeError, match="requires a callable"):
        tg.autocast(**HALF)(3)


def test_without_a_gpu_it_warns_and_does_nothing():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        context = tg.autocast("cuda")
    with context:
        assert (tg.ones(1, 1) @ tg.ones(1, 1)).dtype is tg.float32 and not tg.is_autocast_enabled()
    with pytest.warns(UserWarning, match="GradScaler is enabled, but CUDA is not available"):
        scaler = amp.GradScaler()
    loss = tg.ones(1)
    assert scaler.scale(loss) is loss and scaler.state_dict() == {} and scaler.get_scale() == 1.0
    stepped = []
    scaler.step(type("O", (), {"step": lambda self: stepped.append(1)})())
    scaler.update()
    assert stepped == [1]


def test_wrong_arguments_are_refused():
    with pytest.warns(UserWarning, match="CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently"):
        tg.autocast("cpu", tg.float32)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'tpu'"):
        tg.autocast("tpu")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tg.autocast(tg.float16)


class Product(tg.autograd.Function):
    @staticmethod
    @amp.custom_fwd(device_type="cpu", cast_inputs=tg.float32)
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g @ y.mT, x.mT @ g


def test_custom_functions():
    x = tg.ones(2, 2, requires_grad=True)
    with tg.autocast(**HALF):
        y = Product.apply(x.half(), x)
    assert y.dtype is tg.float32
    y.sum().backward()
    assert x.grad.dtype is tg.float32 and x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def training(scale):
    p = nn.Parameter(tg.ones(2))
    return p, tg.optim.SGD([p], lr=0.1), amp.GradScaler("cpu", init_scale=scale, growth_interval=2)


def test_scaler_steps_on_unscaled_gradients_and_grows():
    p, optimizer, scaler = training(8.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale((p * 2).sum()).backward()
        assert p.grad.tolist() == [2 * scaler.get_scale()] * 2
        scaler.step(optimizer)
        scaler.update()
    assert p.tolist() == pytest.approx([0.6, 0.6]) and scaler.get_scale() == 16.0


def test_scaler_skips_steps_that_overflowed():
    p, optimizer, scaler = training(8.0)
    scaler.scale((p * float("inf")).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [1.0, 1.0] and scaler.get_scale() == 4.0
    other = amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()


@pytest.mark.parametrize(
    ("program", "error", "text"),
    [
        (lambda o, s: s.step(o), AssertionError, "Attempted step but _scale is None"),
        (lambda o, s: (s.scale(tg.ones(1)), s.update()), AssertionError, "No inf checks were recorded prior to update"),
        (
            lambda o, s: (s.scale(tg.ones(1)), s.step(o), s.step(o)),
            RuntimeError,
            "been called since the last update",
        ),
        (lambda o, s: (s.scale(tg.ones(1)), s.unscale_(o), s.unscale_(o)), RuntimeError, "already been called on this"),
        (lambda o, s: (s.scale(tg.ones(1)), s.step(o, closure=abs)), RuntimeError, "Closure use is not currently supported"),
        (lambda o, s: s.load_state_dict({}), RuntimeError, "The source state dict is empty"),
        (lambda o, s: s.scale(3), ValueError, "outputs must be a Tensor"),
        (lambda o, s: amp.GradScaler("cpu", growth_factor=1.0), AssertionError, "must be > 1.0"),
    ],
)
def test_scaler_errors(program, error, text):
    _, optimizer, scaler = training(2.0)
    with pytest.raises(error, match=text):
        program(optimizer, scaler)

"""Layers that convolve, pool, normalise, drop, look up, pad and reshape: closed forms, transforms, state, errors."""

import copy
import pickle

import numpy as np
import pytest

import tapegrad as tg

nn = tg.nn


def sample(*shape, seed=0):
    return tg.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def close(t, expected, tol=1e-12):
    np.testing.assert_allclose(np.asarray(t.detach()), expected, rtol=tol, atol=tol)


# ---------------------------------------------------------------------------------------------------------- convolutions


def test_seeded_initialisation_is_pytorchs():
    """The numbers are PyTorch 2.13's."""
    uniform = [-0.49573648, -0.394430637, -0.214157522, -0.47304517, -0.0283856392, -0.439883709]
    expected = (
        (lambda: nn.Conv1d(2, 1, 2), uniform[:5]),
        (lambda: nn.ConvTranspose1d(1, 2, 2), uniform),
        (lambda: nn.Embedding(2, 2, padding_idx=0), [0, 0, 0.0889780968, -0.613718033]),
        (lambda: nn.Bilinear(2, 1, 1), [-0.701077223, -0.557809174, -0.302864462]),
    )
    for make, numbers in expected:
        tg.manual_seed(3)
        drawn = np.concatenate([np.asarray(p.detach()).reshape(-1) for p in make().parameters()])
        np.testing.assert_allclose(drawn, numbers, rtol=2e-7)


def correlated(x, w, stride, dilation):
    """The definition of a 2-D convolution without padding, element by element."""
    kernel = w.shape[2:]
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)]
    out = np.zeros((len(x), len(w), *sizes))
    for i, j in np.ndindex(*sizes):
        for a, b in np.ndindex(*kernel):
            part = x[:, :, i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]]
            out[:, :, i, j] += part @ w[:, :, a, b].T
    return out


MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [(1, 2), "same", "valid"])
def test_conv2d_by_its_definition(mode, padding):
    stride = (1, 1) if padding == "same" else (2, 1)
    net = nn.Conv2d(2, 3, (3, 2), stride, padding, (1, 2), padding_mode=mode).double()
    x = sample(2, 2, 6, 7)
    widths = {"same": ((1, 1), (1, 1)), "valid": ((0, 0), (0, 0))}.get(padding, ((1, 1), (2, 2)))
    whole = np.pad(x.numpy(force=True), ((0, 0), (0, 0), *widths), MODES[mode])
    expected = correlated(whole, net.weight.numpy(force=True), stride, (1, 2))
    close(net(x), expected + net.bias.numpy(force=True)[:, None, None])
    close(net(x[0]), expected[0] + net.bias.numpy(force=True)[:, None, None])


def test_groups_are_convolutions_side_by_side():
    net, x = nn.Conv1d(4, 6, 3, groups=2, bias=False).double(), sample(2, 4, 8)
    halves = [tg.nn.functional.conv1d(x[:, 2 * i : 2 * i + 2], net.weight[3 * i : 3 * i + 3]) for i in range(2)]
    close(net(x), tg.cat(halves, 1).numpy(force=True))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_transposed_convolution_is_the_transpose(dims):
    """<conv(x), y> = <x, conv_transpose(y)>, the output size chosen by output_size."""
    sizes = (7, 6, 5)[:dims]
    there = getattr(nn, f"Conv{dims}d")(2, 3, 3, stride=2, padding=1, bias=False).double()
    back = getattr(nn, f"ConvTranspose{dims}d")(3, 2, 3, stride=2, padding=1, bias=False).double()
    back.weight.data = there.weight.data
    x = sample(2, 2, *sizes)
    y = sample(*there(x).shape, seed=1)
    image = back(y, output_size=x.shape)
    assert image.shape == x.shape
    close((there(x) * y).sum(), (x * image).sum().item())
    close(back(y[0], output_size=sizes), image[0].numpy(force=True))


def test_padding_of_a_convolution_as_nn_functional_pad_takes_it():
    assert nn.Conv2d(1, 1, (3, 2), padding=(1, 0))._reversed_padding_repeated_twice == (0, 0, 1, 1)
    assert nn.Conv2d(1, 1, (3, 4), padding="same")._reversed_padding_repeated_twice == [1, 2, 1, 1]


# --------------------------------------------------------------------------------------------------------------- pooling


def test_pooling_of_a_ramp():
    x = tg.arange(24.0, dtype=tg.float64).reshape(1, 1, 4, 6)
    close(nn.MaxPool2d(2)(x), [[[[7, 9, 11], [19, 21, 23]]]])
    close(nn.AvgPool2d((2, 3), stride=(2, 3))(x), [[[[4, 7], [16, 19]]]])
    close(nn.AvgPool2d(2, padding=1, count_include_pad=False)(x)[0, 0, 0], [0, 1.5, 3.5, 5])
    close(nn.AvgPool2d(2, divisor_override=1)(x)[0, 0, 0], [14, 22, 30])
    close(nn.LPPool2d(1, 2)(x)[0, 0, 0], [14, 22, 30])
    close(nn.AdaptiveAvgPool2d((1, None))(x)[0, 0, 0], [9, 10, 11, 12, 13, 14])
    close(nn.AdaptiveMaxPool2d(1)(x), [[[[23]]]])
    values, positions = nn.AdaptiveMaxPool1d(2, return_indices=True)(x[0, 0])
    close(values[0], [2, 5])
    close(positions[0], [2, 5])
    close(nn.MaxPool2d(3, 2, ceil_mode=True)(x), [[[[14, 16, 17], [20, 22, 23]]]])


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_puts_maxima_back(dims):
    x = sample(2, 3, *(5, 4, 6)[:dims])
    y, positions = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)(x)
    image = getattr(nn, f"MaxUnpool{dims}d")(2)(y, positions, output_size=x.shape).numpy(force=True)
    kept = image != 0
    np.testing.assert_array_equal(image[kept], x.numpy(force=True)[kept])
    assert kept.sum() == y.numel()


def test_fractional_pooling_with_given_samples():
    """With samples 0 the windows begin at i * (n - kernel) / (m - 1), rounded down."""
    x = tg.arange(7.0).reshape(1, 1, 1, 7).expand(1, 1, 7, 7)
    net = nn.FractionalMaxPool2d(2, output_size=(3, 4), _random_samples=tg.zeros(1, 1, 2))
    close(net(x)[0, 0], [[1, 2, 4, 6]] * 3)
    assert list(net.state_dict()) == ["_random_samples"]


# --------------------------------------------------------------------------------------------------------- normalisation


def test_batch_norm_statistics():
    net, x = nn.BatchNorm2d(3, eps=0.1, momentum=0.3).double(), sample(4, 3, 5, 2)
    with tg.no_grad():
        net.weight.copy_(tg.tensor([1.0, 2.0, 3.0]))
        net.bias.copy_(tg.tensor([3.0, 2.0, 1.0]))
    a = x.numpy(force=True)
    mean, var = a.mean((0, 2, 3)), a.var((0, 2, 3))
    scale, bias = np.array([1.0, 2, 3]), np.array([3.0, 2, 1])

    def normalised(mean, var):
        return ((a.swapaxes(1, 3) - mean) / np.sqrt(var + 0.1) * scale + bias).swapaxes(1, 3)

    close(net(x), normalised(mean, var))
    running = 0.3 * mean, 0.7 + 0.3 * var * 40 / 39
    close(net.running_mean, running[0])
    close(net.running_var, running[1])
    assert net.num_batches_tracked.item() == 1
    close(net.eval()(x), normalised(*running))
    assert net.num_batches_tracked.item() == 1


def test_batch_norm_average_over_all_batches():
    net, xs = nn.BatchNorm1d(2, momentum=None).double(), [sample(5, 2, seed=i).detach() for i in range(3)]
    for x in xs:
        net(x)
    close(net.running_mean, np.mean([x.numpy().mean(0) for x in xs], 0))
    close(net.running_var, np.mean([x.numpy().var(0, ddof=1) for x in xs], 0))
    net.reset_running_stats()
    assert net.running_var.tolist() == [1, 1] and net.num_batches_tracked.item() == 0


def test_saved_statistics_outlive_the_next_batch():
    """What the tape holds of the running statistics does not change under it."""
    net, x = nn.BatchNorm1d(2).double(), sample(5, 2)
    net(x)
    y = net.eval()(x)
    before = 1 / np.sqrt(net.running_var.numpy().copy() + net.eps)
    net.train()(3 * x)
    (g,) = tg.autograd.grad(y.sum(), x)
    close(g, np.broadcast_to(before, (5, 2)))


def test_aliases_of_the_running_statistics_follow():
    """As in PyTorch the tensors of a state_dict, detached ones and NumPy arrays share the memory of the buffers."""
    net, x = nn.BatchNorm1d(2, momentum=0.5).double(), sample(5, 2)
    state, seen, array = net.state_dict(), net.num_batches_tracked.detach(), net.running_mean.numpy()
    y = net.eval()(x)  # the tape holds the statistics of before
    for _ in range(2):
        net.train()(x)
    expected = 0.75 * x.numpy(force=True).mean(0)
    for t in (state["running_mean"], net.running_mean, tg.from_numpy(array)):
        close(t, expected)
    assert seen.item() == state["num_batches_tracked"].item() == net.num_batches_tracked.item() == 2
    (g,) = tg.autograd.grad(y.sum(), x)
    close(g, np.full((5, 2), 1 / np.sqrt(1 + net.eps)))


def test_a_refused_batch_changes_nothing():
    net = nn.BatchNorm1d(3)
    for bad in (tg.ones(1, 3), tg.ones(2, 4), tg.ones(2, 3, 4, 5), tg.ones(2, 3, dtype=tg.float64)):
        with pytest.raises((ValueError, RuntimeError)):
            net(bad)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor"):
        tg.func.vmap(net)(tg.randn(5, 4, 3))
    assert net.num_batches_tracked.item() == 0
    assert net.running_mean.tolist() == [0, 0, 0] and net.running_var.tolist() == [1, 1, 1]


def test_batch_norm_inside_transforms():
    """grad and jvp see the batch's statistics and move the running ones once a call."""
    x, v = sample(5, 2).detach(), sample(5, 2, seed=1).detach()
    net, free = nn.BatchNorm1d(2).double(), nn.BatchNorm1d(2, track_running_stats=False).double()
    mean = x.numpy().mean(0)
    for run in (lambda n: tg.func.grad(lambda t: n(t).pow(3).sum())(x), lambda n: tg.func.jvp(n, (x,), (v,))[1]):
        net.reset_running_stats()
        close(run(net), run(free).numpy(force=True))
        close(net.running_mean, 0.1 * mean)
        assert net.num_batches_tracked.item() == 1
    batches = tg.stack([x, v])
    close(tg.func.vmap(free)(batches), tg.stack([free(x), free(v)]).numpy(force=True))
    close(tg.func.vmap(net.eval())(batches), tg.stack([net(x), net(v)]).numpy(force=True))


def test_instance_norm_statistics():
    net, x = nn.InstanceNorm1d(3, affine=True, track_running_stats=True).double(), sample(4, 3, 6)
    a = x.numpy(force=True)
    expected = (a - a.mean(2, keepdims=True)) / np.sqrt(a.var(2, keepdims=True) + 1e-5)
    close(net(x), expected)
    close(net.running_mean, 0.1 * a.mean((0, 2)))
    close(net.running_var, 0.9 + 0.1 * a.var(2, ddof=1).mean(0))
    close(net(x[0]), expected[0])
    assert net.num_batches_tracked.item() == 0  # as in PyTorch
    net.eval()
    shift, scale = net.running_mean.numpy(), np.sqrt(net.running_var.numpy() + 1e-5)
    close(net(x), (a - shift[:, None]) / scale[:, None])


def test_group_and_layer_and_rms_norm():
    x = sample(3, 4, 5)
    a = x.numpy(force=True).reshape(3, 2, 10)
    groups = (a - a.mean(2, keepdims=True)) / np.sqrt(a.var(2, keepdims=True) + 0.1)
    close(nn.GroupNorm(2, 4, eps=0.1).double()(x), groups.reshape(3, 4, 5))
    whole = x.numpy(force=True)
    centred = (whole - whole.mean((1, 2), keepdims=True)) / np.sqrt(whole.var((1, 2), keepdims=True) + 1e-5)
    close(nn.LayerNorm((4, 5), bias=False).double()(x), centred)
    net = nn.RMSNorm(5).double()
    with tg.no_grad():
        net.weight.fill_(2)
    close(net(x), 2 * whole / np.sqrt((whole**2).mean(2, keepdims=True) + np.finfo(float).eps))
    close(nn.RMSNorm(5, eps=3.0).double()(x), whole / np.sqrt((whole**2).mean(2, keepdims=True) + 3.0))


def test_response_norms():
    x = sample(2, 7, 3, 2)
    a = x.numpy(force=True)
    for size in (1, 3, 5):
        near = [range(max(c - size // 2, 0), min(c + size // 2 + 1, 7)) for c in range(7)]
        sums = np.stack([sum(a[:, i] ** 2 for i in channels) for channels in near], 1)
        expected = a / (2 + 0.5 / size * sums) ** 0.75
        close(nn.LocalResponseNorm(size, 0.5, 0.75, 2)(x), expected)
        close(nn.CrossMapLRN2d(size, 0.5, 0.75, 2)(x), expected)
    close(nn.CrossMapLRN2d(4, 0.5, 1, 0)(x)[:, 3], a[:, 3] / (0.5 / 4 * (a[:, 2:5] ** 2).sum(1)))


@pytest.mark.parametrize("make", [
    lambda: nn.BatchNorm1d(4), lambda: nn.InstanceNorm1d(4, affine=True), lambda: nn.GroupNorm(2, 4),
    lambda: nn.LayerNorm(6),
], ids=["batch", "instance", "group", "layer"])  # fmt: skip
def test_normalisations_refuse_mixed_dtypes(make):
    x = tg.ones(2, 4, 6)
    with pytest.raises(RuntimeError, match="all inputs must share same datatype"):
        make()(x.double())
    with pytest.raises(RuntimeError, match="expect parameter to have scalar type of Float"):
        make().double()(x)
    assert make()(x.half()).dtype == tg.float16


def test_rms_norm_keeps_the_input_dtype():
    assert tg.nn.functional.rms_norm(tg.ones(2, 3), (3,), tg.ones(3, dtype=tg.float64)).dtype == tg.float32


def test_converted_batch_norms():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3).eval()))
    old = net[1][0]
    assert nn.SyncBatchNorm.convert_sync_batchnorm(net) is net
    new = net[1][0]
    assert type(new) is nn.SyncBatchNorm and not new.training
    assert new.weight is old.weight and new.running_mean is old.running_mean
    assert isinstance(new, type(old).__mro__[1])


def test_old_state_has_no_count_of_batches():
    old = nn.Sequential(nn.BatchNorm2d(2), nn.InstanceNorm2d(2, track_running_stats=True)).state_dict()
    for i in "01":
        del old[f"{i}.num_batches_tracked"], old._metadata[i]["version"]
    net = nn.Sequential(nn.BatchNorm2d(2), nn.InstanceNorm2d(2, track_running_stats=True))
    net[0].num_batches_tracked.fill_(3)
    net.load_state_dict(old)
    assert net[0].num_batches_tracked.item() == 3
    old._metadata["0"]["version"] = 2
    with pytest.raises(RuntimeError, match='Missing key.*"0.num_batches_tracked"'):
        net.load_state_dict(old)


# --------------------------------------------------------------------------------------------------------------- dropout


def test_dropouts_scale_what_they_keep():
    tg.manual_seed(0)
    x = tg.ones(50, 40)
    y = nn.Dropout(0.25)(x)
    assert set(np.unique(y.numpy())) == {0, np.float32(1 / 0.75)} and 0.2 < (y == 0).float().mean() < 0.3
    for dims, inner in ((1, (5,)), (2, (2, 3)), (3, (2, 1, 2))):
        net = getattr(nn, f"Dropout{dims}d")(0.5)
        x = tg.ones(8, 9, *inner)
        y = net(x).reshape(72, -1)
        assert (y == y[:, :1]).all() and {0.0, 2.0} == set(y[:, 0].tolist())
        assert net.eval()(x) is x
    unbatched = nn.Dropout1d(0.5)(tg.ones(30, 4))
    assert (unbatched == unbatched[:, :1]).all() and 0 < (unbatched == 0).sum() < 120


def test_alpha_dropout_keeps_mean_and_variance():
    tg.manual_seed(0)
    x = tg.randn(400, 500)
    for net in (nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)):
        y = net(x)
        assert abs(y.mean()) < 0.02 and abs(y.var() - 1) < 0.02
        assert net.eval()(x) is x


# ---------------------------------------------------------------------------------------------------------------- tables


def test_embedding():
    net = nn.Embedding(4, 3, padding_idx=-2)
    assert net.padding_idx == 2 and net.weight[2].tolist() == [0, 0, 0] and (net.weight[0] != 0).all()
    net(tg.tensor([[1, 2], [2, 1]])).sum().backward()
    assert net.weight.grad.tolist() == [[0] * 3, [2] * 3, [0] * 3, [0] * 3]
    assert net(tg.zeros(2, 0, dtype=tg.int64)).shape == (2, 0, 3)


def test_embedding_limits_norms_of_rows_in_use():
    net = nn.Embedding.from_pretrained(tg.tensor([[3.0, 4.0], [3.0, 4.0], [0.3, 0.4]]), max_norm=1.0)
    close(net(tg.tensor([0, 2])), [[0.6, 0.8], [0.3, 0.4]], 1e-6)
    close(net.weight, [[0.6, 0.8], [3, 4], [0.3, 0.4]], 1e-6)
    assert not net.weight.requires_grad and not list(p for p in net.parameters() if p.requires_grad)


def test_embedding_bags():
    table = tg.arange(8.0).reshape(4, 2)
    index, offsets = tg.tensor([3, 1, 2, 2]), tg.tensor([0, 2, 2])
    rows = table.numpy()[[3, 1, 2, 2]]
    for mode, reduce in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        net = nn.EmbeddingBag.from_pretrained(table, mode=mode)
        close(net(index, offsets), [reduce(rows[:2], 0), [0, 0], reduce(rows[2:], 0)])
        close(net(index.reshape(2, 2)), [reduce(rows[:2], 0), reduce(rows[2:], 0)])
    weighted = nn.EmbeddingBag.from_pretrained(table, mode="sum", padding_idx=1, freeze=False)
    factors = tg.tensor([1.0, 10.0, 2.0, 3.0], requires_grad=True)
    y = weighted(index, offsets, factors)
    close(y, [rows[0], [0, 0], 5 * rows[2]])
    y.sum().backward()
    close(factors.grad, [13, 0, 9, 9])
    close(weighted.weight.grad, [[0, 0], [0, 0], [5, 5], [1, 1]])
    ends = nn.EmbeddingBag.from_pretrained(table, mode="sum", include_last_offset=True)
    close(ends(index, tg.tensor([0, 1, 4])), [rows[0], rows[1:].sum(0)])


# ------------------------------------------------------------------------------------------------- padding and reshaping


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_pads(dims):
    x = sample(2, 3, *(4, 5, 3)[:dims])
    sides = (1, 2, 0, 1, 2, 1)[: 2 * dims]
    widths = [(0, 0), (0, 0), *((sides[2 * d], sides[2 * d + 1]) for d in reversed(range(dims)))]
    for name, mode, args in (
        ("Zero", "constant", ()), ("Constant", "constant", (1.5,)), ("Reflection", "reflect", ()),
        ("Replication", "edge", ()), ("Circular", "wrap", ()),
    ):  # fmt: skip
        kind = getattr(nn, f"{name}Pad{dims}d")
        fill = {"constant_values": args[0]} if args else {}
        close(kind(sides, *args)(x), np.pad(x.numpy(force=True), widths, mode, **fill))
        close(kind(1, *args)(x[0]), np.pad(x[0].numpy(force=True), [(0, 0)] + [(1, 1)] * dims, mode, **fill))


def test_reshaping_layers_undo_each_other():
    x = sample(2, 8, 4, 6)
    for there, back in (
        (nn.Flatten(), nn.Unflatten(1, (8, 4, 6))), (nn.PixelShuffle(2), nn.PixelUnshuffle(2)),
        (nn.ChannelShuffle(2), nn.ChannelShuffle(4)), (nn.Unfold(2, stride=2), nn.Fold((4, 6), 2, stride=2)),
    ):  # fmt: skip
        close(back(there(x)), x.numpy(force=True))


def test_upsampling():
    x = tg.tensor([[[[0.0, 2.0], [4.0, 6.0]]]])
    close(nn.Upsample(scale_factor=2)(x)[0, 0, :, 0], [0, 0, 4, 4])
    close(nn.UpsamplingNearest2d(size=(2, 4))(x)[0, 0, 0], [0, 0, 2, 2])
    close(nn.UpsamplingBilinear2d(scale_factor=1.5)(x)[0, 0], [[0, 1, 2], [2, 3, 4], [4, 5, 6]])
    close(nn.Upsample(size=3, mode="bilinear", align_corners=True)(x)[0, 0, 1], [2, 3, 4])


def test_bilinear():
    net, x, y = nn.Bilinear(3, 4, 2).double(), sample(5, 3), sample(5, 4, seed=1)
    expected = np.einsum("ni,kij,nj->nk", *(t.numpy(force=True) for t in (x, net.weight, y)))
    close(net(x, y), expected + net.bias.numpy(force=True))


def test_data_parallel_calls_its_module():
    inner = nn.Linear(3, 2)
    net = nn.DataParallel(inner, device_ids=[0])
    x = tg.ones(4, 3)
    assert list(net.state_dict()) == ["module.weight", "module.bias"] and net.module is inner
    close(net(input=x), inner(x).numpy(force=True))


# ------------------------------------------------------------------------------------------------------ all layers alike

# Layers, the shape of an unbatched input that vmap may run them on, and whether samples are independent.
LAYERS = {
    "conv": (lambda: nn.Conv2d(2, 2, 2, padding=1, padding_mode="circular"), (2, 3, 3)),
    "conv1d": (lambda: nn.Conv1d(2, 2, 2, groups=2, padding="same", dilation=2), (2, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 2, 2, stride=2, output_padding=1), (2, 2, 2)),
    "max": (lambda: nn.MaxPool2d(2, 1), (2, 3, 3)),
    "average": (lambda: nn.AvgPool2d(2, padding=1), (2, 3, 3)),
    "power": (lambda: nn.LPPool1d(2, 2), (2, 4)),
    "adaptive": (lambda: nn.AdaptiveMaxPool2d(2), (1, 3, 3)),
    "fractional": (
        lambda: nn.FractionalMaxPool2d(2, 2, _random_samples=tg.full((1, 1, 2), 0.4, dtype=tg.float64)),
        (1, 4, 4),
    ),
    "instance": (lambda: nn.InstanceNorm1d(2, affine=True), (2, 3)),
    "layer": (lambda: nn.LayerNorm(3), (2, 3)),
    "rms": (lambda: nn.RMSNorm(3), (2, 3)),
    "response": (lambda: nn.LocalResponseNorm(2), (1, 3, 2)),
    "reflection": (lambda: nn.ReflectionPad1d(1), (2, 3)),
    "fold": (lambda: nn.Sequential(nn.Unfold(2), nn.Fold((3, 3), 2)), (1, 3, 3)),
    "shuffle": (lambda: nn.PixelShuffle(2), (4, 2, 1)),
    "parallel": (lambda: nn.DataParallel(nn.Linear(3, 2)), (3,)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_derivatives_to_second_order(name):
    make, shape = LAYERS[name]
    net, x = make().double(), sample(*shape)
    values = [p.detach().requires_grad_() for p in net.parameters()]
    names = [n for n, _ in net.named_parameters()]

    def run(x, *values):
        return tg.func.functional_call(net, dict(zip(names, values, strict=True)), (x,))

    assert tg.autograd.gradcheck(run, (x, *values), check_forward_ad=True)
    assert tg.autograd.gradgradcheck(run, (x, *values))


@pytest.mark.parametrize("name", LAYERS)
def test_vmap_is_a_loop(name):
    make, shape = LAYERS[name]
    net, xs = make().double(), sample(3, *shape).detach()
    close(tg.func.vmap(net)(xs), tg.stack([net(x) for x in xs]).numpy(force=True))
    grad = tg.func.grad(lambda x: net(x).pow(2).sum())
    close(tg.func.vmap(grad)(xs), tg.stack([grad(x) for x in xs]).numpy(force=True))


@pytest.mark.parametrize("name", LAYERS)
def test_copies_and_pickles(name):
    make, shape = LAYERS[name]
    net, x = make().double(), sample(*shape)
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        close(copied(x), net(x).numpy(force=True))
        assert repr(copied) == repr(net)


def test_per_sample_gradients_of_a_small_network():
    net = nn.Sequential(nn.Conv2d(1, 2, 2), nn.GroupNorm(1, 2), nn.MaxPool2d(2), nn.Flatten(0), nn.Linear(2, 3)).double()
    params = {k: v.detach() for k, v in net.named_parameters()}
    xs = sample(4, 1, 3, 3).detach()
    grad = tg.func.grad(lambda p, x: tg.func.functional_call(net, p, (x,)).square().sum())
    together = tg.func.vmap(grad, in_dims=(None, 0))(params, xs)
    for i, x in enumerate(xs):
        for key, g in grad(params, x).items():
            close(together[key][i], g.numpy())


def test_repeated_arguments_may_be_any_sequence():
    assert nn.Conv2d(1, 1, [3, 2], stride=tg.Size([1, 2])).kernel_size == (3, 2)
    assert nn.MaxUnpool2d(2).stride == (2, 2) and nn.AvgPool1d(2).kernel_size == (2,)
    assert nn.MaxPool2d(2).kernel_size == 2 and nn.LayerNorm([2, 3]).normalized_shape == (2, 3)


BAD = [
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
    (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible by groups"),
    (lambda: nn.Conv2d(3, 4, 3, padding="full"), ValueError, "Invalid padding string 'full'"),
    (lambda: nn.Conv2d(3, 4, 3, padding_mode="wrap"), ValueError, "padding_mode must be one of"),
    (lambda: nn.Conv2d(3, 4, 3)(tg.ones(2, 4, 5, 5)), RuntimeError, r"to have 3 channels, but got 4 channels instead"),
    (lambda: nn.Conv2d(3, 4, 3)(tg.ones(4, 5)), RuntimeError, r"Expected 3D \(unbatched\) or 4D \(batched\) input"),
    (lambda: nn.ConvTranspose1d(1, 1, 3, padding_mode="circular"), ValueError, 'Only "zeros" padding mode'),
    (lambda: nn.ConvTranspose1d(1, 1, 3, 2)(tg.ones(1, 1, 3), [9]), ValueError, r"valid sizes range from \[7\] to \[8\]"),
    (lambda: nn.FractionalMaxPool2d(2), ValueError, "either an output size, or a pooling ratio"),
    (lambda: nn.FractionalMaxPool3d(2, output_ratio=(0.5, 0.5, 1)), ValueError, "output_ratio must be between 0 and 1"),
    (lambda: nn.GroupNorm(0, 4), ValueError, r"num_channels \(4\) must be divisible by num_groups \(0\)"),
    (lambda: nn.GroupNorm(3, 4), ValueError, r"num_channels \(4\) must be divisible by num_groups \(3\)"),
    (lambda: nn.BatchNorm2d(3)(tg.ones(2, 3)), ValueError, r"expected 4D input \(got 2D input\)"),
    (lambda: nn.Dropout3d(1.5), ValueError, "dropout probability has to be between 0 and 1"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda: nn.Embedding(3, 2)(tg.tensor([3])), IndexError, "index out of range in self"),
    (lambda: nn.Unflatten(1, 6), TypeError, "unflattened_size must be a tuple of ints, but found type int"),
    (lambda: nn.Bilinear(0, 1, 1), ValueError, "in1_features must be > 0"),
    (lambda: nn.CircularPad2d(1)(tg.ones(3, 3)), ValueError, r"expected 3D or 4D input \(got 2D input\)"),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD, ids=[text[:30] for _, _, text in BAD])
def test_errors(case):
    act, kind, text = case
    with pytest.raises(kind, match=text):
        act()


@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 4)])
def test_batch_norm_without_a_momentum_leaves_the_running_statistics(shape):
    mean, var = tg.zeros(2).double(), tg.ones(2).double()
    nn.functional.batch_norm(sample(*shape) * 1.0, mean, var, training=True, momentum=None)
    assert mean.tolist() == [0.0, 0.0] and var.tolist() == [1.0, 1.0]

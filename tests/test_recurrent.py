"""Recurrent layers, packed sequences, attention and Transformers, against their formulas."""

import copy
import math
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.autograd import gradcheck, gradgradcheck
from tapegrad.nn.utils import rnn
from tapegrad.programs.trace import Trace


@pytest.fixture(autouse=True)
def in_double():
    tg.set_default_dtype(tg.float64)
    tg.manual_seed(0)
    yield
    tg.set_default_dtype(tg.float32)


def near(a, b, tol=1e-11):
    np.testing.assert_allclose(a.numpy(force=True), b.numpy(force=True), rtol=tol, atol=tol)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def steps_of(net, x, h, c, reverse=False, layer=0):
    """(T, features) through a layer by its formula: the states after each step."""
    end = f"_l{layer}{'_reverse' * reverse}"
    w, u, b, d = (getattr(net, n + end).numpy(force=True) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    out = []
    for row in x[::-1] if reverse else x:
        a, s = w @ row + b, u @ h + d
        if net.mode == "LSTM":
            i, f, g, o = np.split(a + s, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        elif net.mode == "GRU":
            (ar, az, an), (sr, sz, sn) = np.split(a, 3), np.split(s, 3)
            z = sigmoid(az + sz)
            h = (1 - z) * np.tanh(an + sigmoid(ar + sr) * sn) + z * h
        else:
            h = np.tanh(a + s) if net.mode == "RNN_TANH" else np.maximum(a + s, 0)
        out.append((h, c))
    return out[::-1] if reverse else out


KINDS = [(nn.RNN, {}), (nn.RNN, {"nonlinearity": "relu"}), (nn.LSTM, {}), (nn.GRU, {})]


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_formula(kind, options):
    net = kind(3, 4, num_layers=2, bidirectional=True, **options)
    x = tg.randn(5, 3)
    out, finals = net(x)
    h, c = finals if kind is nn.LSTM else (finals, None)
    below, zero = x.numpy(), np.zeros(4)
    for layer in range(2):
        forward, backward = steps_of(net, below, zero, zero, False, layer), steps_of(net, below, zero, zero, True, layer)
        below = np.array([np.concatenate([a[0], b[0]]) for a, b in zip(forward, backward, strict=True)])
        np.testing.assert_allclose(h[2 * layer].numpy(force=True), forward[-1][0], atol=1e-14)
        np.testing.assert_allclose(h[2 * layer + 1].numpy(force=True), backward[0][0], atol=1e-14)
        if c is not None:
            np.testing.assert_allclose(c[2 * layer + 1].numpy(force=True), backward[0][1], atol=1e-14)
    np.testing.assert_allclose(out.numpy(force=True), below, atol=1e-14)


@pytest.mark.parametrize(("kind", "options"), [*KINDS, (nn.LSTM, {"proj_size": 2})])
@pytest.mark.parametrize("lengths", [[4, 4], [1, 4, 2]])
def test_packed_is_one_by_one(kind, options, lengths):
    """Each sequence of a packed batch is as if it were alone, gradients included."""
    net = kind(3, 4, num_layers=2, bidirectional=True, **options)
    rows = [tg.randn(n, 3).requires_grad_() for n in lengths]
    out, finals = net(rnn.pack_sequence(rows, enforce_sorted=False))
    got = rnn.unpack_sequence(out)
    finals = finals if kind is nn.LSTM else (finals,)
    loss = sum((y * y).sum() for y in got) + sum((s * s).sum() for s in finals)
    gs = tg.autograd.grad(loss, [*rows, *net.parameters()])
    alone = [net(x) for x in rows]
    total = 0
    for i, (y, states) in enumerate(alone):
        near(got[i], y)
        states = states if kind is nn.LSTM else (states,)
        for s, final in zip(states, finals, strict=True):
            near(final[:, i], s)
        total = total + (y * y).sum() + sum((s * s).sum() for s in states)
    for a, b in zip(gs, tg.autograd.grad(total, [*rows, *net.parameters()]), strict=True):
        near(a, b)


@pytest.mark.parametrize(("kind", "options"), [*KINDS, (nn.LSTM, {"proj_size": 1})])
def test_derivatives(kind, options):
    """First and second derivatives by finite differences, w.r.t. input, states and all weights."""
    net = kind(2, 3, **options)
    names = [n for n, _ in net.named_parameters()]
    batch, pair = rnn.pack_padded_sequence(tg.randn(3, 2, 2), [3, 2]), kind is nn.LSTM
    width = options.get("proj_size", 3)
    states = [tg.randn(1, 2, width), tg.randn(1, 2, 3)][: 1 + pair]

    def run(data, *rest):
        states, weights = rest[: 1 + pair], dict(zip(names, rest[1 + pair :], strict=True))
        hx = tuple(states) if pair else states[0]
        out, _ = tg.func.functional_call(net, weights, (rnn.PackedSequence(data, batch.batch_sizes), hx))
        return out.data

    given = [t.detach().requires_grad_() for t in (batch.data, *states, *net.parameters())]
    assert gradcheck(run, given, fast_mode=True)
    assert gradgradcheck(run, given, fast_mode=True)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_transforms(kind, options):
    """vmap over inputs and over weights, jvp, and gradients per sample."""
    net = kind(2, 3, **options)
    weights = {n: p.detach() for n, p in net.named_parameters()}

    def loss(w, x):
        return (tg.func.functional_call(net, w, (x,))[0] ** 2).sum()

    x = tg.randn(5, 4, 2)
    each = tg.func.vmap(tg.func.grad(loss), (None, 0))(weights, x)
    alone = [tg.func.grad(loss)(weights, row) for row in x]
    for name in weights:
        near(each[name], tg.stack([a[name] for a in alone]))
    several = {n: tg.stack([w, 2 * w]) for n, w in weights.items()}
    both = tg.func.vmap(loss, (0, None))(several, x[0])
    near(both[1], loss({n: 2 * w for n, w in weights.items()}, x[0]))
    t = tg.randn(4, 2)
    _, forward = tg.func.jvp(lambda y: loss(weights, y), (x[0],), (t,))
    near(forward, (tg.func.grad(loss, 1)(weights, x[0]) * t).sum())


def test_cell_is_a_step():
    for layer, cell in (
        (nn.LSTM(2, 3), nn.LSTMCell(2, 3)),
        (nn.GRU(2, 3), nn.GRUCell(2, 3)),
        (nn.RNN(2, 3), nn.RNNCell(2, 3)),
    ):
        cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
        x, hx = tg.randn(4, 5, 2), None
        out, finals = layer(x)
        for row, expected in zip(x, out, strict=True):
            hx = cell(row, hx)
            near(hx[0] if isinstance(hx, tuple) else hx, expected)
        for state, final in zip(
            hx if isinstance(hx, tuple) else (hx,), finals if isinstance(hx, tuple) else (finals,), strict=True
        ):
            near(state, final[0])


def test_copies_and_state():
    net = nn.LSTM(2, 3, 2, dropout=0.5, proj_size=2)
    x = tg.randn(4, 2)
    expected = net.eval()(x)[0]
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        near(other(x)[0], expected)
        other.weight_ih_l0.data.zero_()
    near(net(x)[0], expected)
    other = nn.LSTM(2, 3, 2, dropout=0.5, proj_size=2).eval()
    other.load_state_dict(net.state_dict())
    near(other(x)[0], expected)


def test_a_long_layer_takes_few_entries(entries):
    out, last = nn.GRU(2, 3)(tg.randn(200, 2))
    assert 0 < entries() < 20
    del out, last
    assert entries() == 0


TRACED = [
    *[(kind, options, None) for kind, options in KINDS],
    pytest.param(nn.RNN, {"bidirectional": True}, [5, 3, 3, 1], marks=pytest.mark.exhaustive),
    (nn.GRU, {"bidirectional": True}, [5, 3, 3, 1]),
    pytest.param(nn.LSTM, {"bidirectional": True, "proj_size": 1}, [5, 3, 3, 1], marks=pytest.mark.exhaustive),
    (nn.LSTM, {"num_layers": 2, "dropout": 0.3, "batch_first": True, "bias": False}, None),
]


def twice_differentiated(net, lengths):
    """Loss, gradients and gradients of their squares, of sequences that are packed if lengths are given."""

    def function(x):
        x = x.detach().requires_grad_()
        out, finals = net(x if lengths is None else rnn.pack_padded_sequence(x, lengths))
        out = out if lengths is None else out.data
        finals = finals if isinstance(finals, tuple) else (finals,)
        given = [x, *net.parameters()]
        loss = (out**2).sum() + sum((s**3).sum() for s in finals)
        first = tg.autograd.grad(loss, given, create_graph=True)
        return [loss, *first, *tg.autograd.grad(sum((g**2).sum() for g in first), given)]

    return function


@pytest.mark.every(3)
@pytest.mark.parametrize(("kind", "options", "lengths"), TRACED)
def test_compiled_is_eager(kind, options, lengths):
    """The derivatives of traced layers are loops, with the numbers of the eager ones."""
    pytest.importorskip("jax")
    function = twice_differentiated(kind(3, 2, **options), lengths)
    compiled = tg.compile(function, fullgraph=True)
    for i in range(2):
        x = tg.randn(5, 4, 3)
        tg.manual_seed(i)
        expected = function(x)
        tg.manual_seed(i)
        for a, b in zip(compiled(x), expected, strict=True):
            near(a, b, 1e-10)


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("packed", [False, True])
def test_program_of_a_long_layer_is_short(kind, options, packed):
    net = kind(3, 2, bidirectional=True, **options)

    def operations(steps):
        function = twice_differentiated(net, [steps, steps - 1] if packed else None)
        x = tg.randn(steps, 2, 3)
        with Trace(strict=True) as trace:
            trace.argument(x._d)
            function(x)
        return len(trace.program.code)

    assert operations(5) == operations(50)


def test_traced_layer_has_no_derivative_where_none_is_asked():
    """Nothing infinite in one sequence reaches another, nor its own cotangents of zero."""
    pytest.importorskip("jax")
    net, x = nn.LSTM(3, 2), tg.randn(5, 4, 3)
    x[2, 0, 1] = math.inf
    gradient = tg.func.grad(lambda x: (net(x)[0][:, 1:] ** 2).sum())
    compiled, expected = tg.compile(gradient, fullgraph=True), gradient(x)
    for _ in range(2):
        near(compiled(x), expected, 1e-10)
    assert not expected[:, 0].any() and expected.isfinite().all()


def test_empty_batch():
    out, (h, c) = nn.LSTM(2, 3)(tg.zeros(4, 0, 2))
    assert out.shape == (4, 0, 3) and h.shape == c.shape == (1, 0, 3)


def test_empty_batch_compiled():
    pytest.importorskip("jax")
    net = nn.GRU(2, 3)
    gradient = tg.compile(tg.func.grad(lambda x: net(x)[0].sum()), fullgraph=True)
    for _ in range(2):
        assert gradient(tg.zeros(4, 0, 2)).shape == (4, 0, 2)


def test_dtypes_are_not_mixed():
    for net in (nn.LSTM(2, 3), nn.GRU(2, 3)):
        h = tg.zeros(1, 1, 3).float()
        with pytest.raises(RuntimeError, match="mat1 and mat2 must have the same dtype, but got Float and Double"):
            net(tg.zeros(4, 1, 2), (h, h) if isinstance(net, nn.LSTM) else h)
    with pytest.raises(RuntimeError, match="mat1 and mat2 must have the same dtype, but got Half and Double"):
        nn.Linear(2, 3)(tg.zeros(4, 2).half())
    with pytest.raises(RuntimeError, match="self and mat2 must have the same dtype, but got Float and Double"):
        nn.functional.linear(tg.zeros(4, 2), tg.zeros(3, 2), tg.zeros(3).float())


def test_half():
    net, x = nn.LSTM(2, 3), tg.randn(4, 2)
    expected = net(x)[0]
    out = net.half()(x.half())[0]
    assert out.dtype == tg.float16
    near(out, expected, 5e-3)
    out.sum().backward()
    assert net.weight_hh_l0.grad.dtype == tg.float16


def test_lengths_beyond_the_input():
    """PyTorch gives batch_sizes that do not fit the data."""
    with pytest.raises(RuntimeError, match="Expected lengths of at most 3"):
        rnn.pack_padded_sequence(tg.zeros(3, 2), [4, 1])


def test_packing_leaves_an_array_free():
    """Positions kept by the tape are not those that the caller can change."""
    x, lengths = tg.randn(3, 2).requires_grad_(), tg.tensor([3, 1])
    y = rnn.pack_padded_sequence(x, lengths).data
    lengths.fill_(2)
    (g,) = tg.autograd.grad(y.sum(), x)
    near(g, tg.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]]))


# ----------------------------------------------------------------------------------------------------------- attention


def test_attention_formula():
    net = nn.MultiheadAttention(6, 2, kdim=4, vdim=5)
    q, k, v = tg.randn(3, 6), tg.randn(4, 4), tg.randn(4, 5)
    closed = tg.tensor([False, False, True, False])
    out, weights = net(q, k, v, key_padding_mask=closed, average_attn_weights=False)
    maps = [getattr(net, f"{n}_proj_weight").numpy(force=True) for n in "qkv"]
    a, b, c = ((t.numpy() @ w.T).reshape(-1, 2, 3).swapaxes(0, 1) for t, w in zip((q, k, v), maps, strict=True))
    scores = np.exp(a @ b.swapaxes(1, 2) / np.sqrt(3)) * ~closed.numpy()
    expected = scores / scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(weights.numpy(force=True), expected, atol=1e-14)
    heads = (expected @ c).swapaxes(0, 1).reshape(3, 6)
    np.testing.assert_allclose(out.numpy(force=True), heads @ net.out_proj.weight.numpy(force=True).T, atol=1e-14)


TRI = np.tri(5, 6, dtype=bool)
MASKS = {
    "causal": np.where(TRI, 0.0, -np.inf),
    "large and negative": np.where(TRI, 0.0, -1e9),
    "all large and negative": np.full((5, 6), -1e9),
    "large": np.where(TRI, 300.0, 0.0),
    "at the edge": np.where(TRI, 25.0, -25.0),
    "beyond the edge": np.where(TRI, 60.0, -60.0),
}


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masks_of_any_size(name, scale, dtype):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((n, 4)).astype(dtype) for n in (5, 6, 6))
    mask = MASKS[name].astype(dtype)
    got = nn.functional.scaled_dot_product_attention(*(tg.tensor(t) for t in (q * dtype(scale), k, v)), tg.tensor(mask))
    scores = (q * scale).astype(float) @ k.T.astype(float) / 2
    scores = (scores.astype(dtype) + mask).astype(float)  # what a sum of 1e9 and a score rounds to
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v
    tol = (1e-12 if dtype is np.float64 else 1e-5) * scale
    np.testing.assert_allclose(got.numpy(), expected, rtol=tol, atol=tol)


@pytest.mark.parametrize("causal", [None, True])
def test_causal_encoder(causal):
    """No position feels a later one."""
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)
    x = tg.randn(1, 4, 8).requires_grad_()
    out = net(x, nn.Transformer.generate_square_subsequent_mask(4), is_causal=causal)
    for i in range(4):
        (g,) = tg.autograd.grad((out[0, i] ** 2).sum(), x, retain_graph=True)
        assert (g[0, i + 1 :] == 0).all() and (g[0, : i + 1].abs().sum(1) > 0).all()


def test_padding_does_not_affect_results():
    net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
    src, tgt = tg.randn(4, 2, 8), tg.randn(3, 2, 8)
    closed = tg.tensor([[False, False, False, True], [False] * 4])
    out = net(src, tgt, src_key_padding_mask=closed, memory_key_padding_mask=closed)
    short = net(src[:3, :1], tgt[:, :1])
    near(out[:, :1], short)


def test_fully_masked_row_gives_no_nan_gradient():
    net = nn.MultiheadAttention(4, 2)
    x = tg.randn(3, 4).requires_grad_()
    mask = tg.tensor([[True, True, True], [False, True, True], [False, False, True]])
    out, _ = net(x, x, x, attn_mask=mask, need_weights=False)
    (g,) = tg.autograd.grad(out[1:].sum(), x)
    assert g.isfinite().all()


@pytest.mark.parametrize("kind", ["padding", "bool", "float", "one head"])
@pytest.mark.parametrize("averaged", [True, False])
def test_attention_weights_of_a_masked_position_are_0(averaged, kind):
    """As without need_weights: the output there is the bias, and every gradient is finite and the same."""
    tg.manual_seed(0)
    net = nn.MultiheadAttention(4, 2, batch_first=True)
    closed = tg.tensor([[True] * 3, [False] * 3, [False] * 3])
    mask = {
        "padding": {"key_padding_mask": closed[:2]},
        "bool": {"attn_mask": closed},
        "float": {"attn_mask": tg.zeros(3, 3).masked_fill(closed, -np.inf)},
        "one head": {"attn_mask": tg.stack([closed, ~tg.eye(3).bool()] * 2)},
    }[kind]
    results = []
    for needed in (True, False):
        x = tg.randn(2, 3, 4, generator=tg.Generator().manual_seed(1)).requires_grad_()
        out, weights = net(x, x, x, need_weights=needed, average_attn_weights=averaged, **mask)
        results.append([out, *tg.autograd.grad((out * out).sum(), [x, *net.parameters()])])
        if needed:
            sums = weights.sum(-1).detach().numpy()
            assert set(np.round(sums, 5).ravel()) <= {0.0, 0.5, 1.0} and (sums < 0.9).any()
    for a, b in zip(*results, strict=True):
        assert np.isfinite(a.detach().numpy()).all()
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-5)


def test_transformer_derivatives():
    net = nn.TransformerDecoderLayer(4, 2, 5, dropout=0.0, activation="gelu")
    x, y = tg.randn(2, 1, 4).requires_grad_(), tg.randn(3, 1, 4).requires_grad_()
    assert gradcheck(net, (x, y), fast_mode=True)
    assert gradgradcheck(net, (x, y), fast_mode=True)


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 5)
    net = nn.TransformerEncoder(layer, 2)
    a, b = (one.linear1.weight for one in net.layers)
    assert a is not b and a is not layer.linear1.weight
    near(a, b)
    assert len(list(net.parameters())) == 2 * len(list(layer.parameters()))


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_other_weights_for_a_pass(kind):
    """A program puts tensors in the place of the parameters, and gradients flow through them to what made them."""
    net = kind(2, 3)
    x = tg.randn(4, 1, 2)
    before = net(x)[0]
    net._flat_weights = [2 * p for p in net.parameters()]
    changed = net(x)[0]
    assert not tg.allclose(before, changed)
    changed.sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in net.parameters())
    net.weight_ih_l0 = nn.Parameter(net.weight_ih_l0.detach().clone())  # by its name: the parameters are used again
    assert tg.equal(net(x)[0], before)
    net._flat_weights = [2 * p for p in net.parameters()]
    assert tg.allclose(net.double()(x.double())[0], before.double(), atol=1e-5)


def test_transformer_learns_to_copy():
    tg.manual_seed(0)
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 1)
    embed, head = nn.Embedding(5, 16), nn.Linear(16, 5)
    positions = nn.Parameter(tg.randn(6, 16) * 0.1)
    optimizer = tg.optim.Adam([*net.parameters(), *embed.parameters(), *head.parameters(), positions], lr=1e-2)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    for _ in range(120):
        x = tg.randint(0, 5, (16, 6))
        logits = head(net(embed(x) + positions, mask))
        loss = nn.functional.cross_entropy(logits[:, 1:].reshape(-1, 5), x[:, :-1].reshape(-1))  # the one before
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2

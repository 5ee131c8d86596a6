"""Recurrent layers, packed sequences, attention and Transformers against PyTorch's."""

import re
import warnings

import numpy as np
import pytest
from layers import BOTH, Case, array, check, close, signature, tensors, torch

import tapegrad as tg

SDPBackend, sdpa_kernel = torch.nn.attention.SDPBackend, torch.nn.attention.sdpa_kernel
X = (5, 3, 4)


def layer(kind, *args, x=X, orders=2, **kwargs):
    return Case(lambda m: getattr(m.nn, kind)(*args, **kwargs), (x,), orders=orders)


def from_states(kind, *shapes, x=X, **kwargs):
    """A layer from initial states of given shapes."""
    pair = len(shapes) == 2
    return Case(
        lambda m: getattr(m.nn, kind)(4, 6, **kwargs), (x, *shapes),
        lambda net, x, *states: net(x, tuple(states) if pair else states[0]),
    )  # fmt: skip


def packed(kind, lengths, *shapes, **kwargs):
    """A layer on packed sequences; what is padded again, the packed data and the final states."""

    def call(net, x, *states):
        m = tg if isinstance(x, tg.Tensor) else torch
        rows = m.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        hx = (tuple(states) if len(states) == 2 else states[0],) if states else ()
        out, finals = net(rows, *hx)
        return out.data, *m.nn.utils.rnn.pad_packed_sequence(out), finals

    return Case(lambda m: getattr(m.nn, kind)(4, 6, **kwargs), ((5, len(lengths), 4), *shapes), call)


def cell(kind, *shapes, **kwargs):
    """Three steps of a cell, from initial states if shapes are given."""

    def call(net, x, *states):
        hx = None if not states else tuple(states) if len(states) == 2 else states[0]
        for row in x:
            hx = net(row, hx)
        return hx

    x = (3, *shapes[0][:-1], 4) if shapes else (3, 2, 4)
    return Case(lambda m: getattr(m.nn, kind)(4, 6, **kwargs), (x, *shapes), call)


def attention(*shapes, call=lambda net, *args: net(*args), make=(), orders=2, **kwargs):
    return Case(lambda m: m.nn.MultiheadAttention(8, 2, *make, **kwargs), shapes, call, orders=orders)


def causal(m, size=5):
    return m.nn.Transformer.generate_square_subsequent_mask(size)


def library(t):
    return tg if isinstance(t, tg.Tensor) else torch


def padding(t, n=3, length=5, dtype=None):
    """The last positions of the second and third sequence closed, as bool or as numbers of t's dtype."""
    m = library(t)
    closed = np.arange(length) >= np.array([length, length - 1, length - 3])[:n, None]
    return m.tensor(closed) if dtype is None else m.tensor(np.where(closed, -np.inf, 0.0)).to(t.dtype)


Q, K, V, S = (5, 3, 8), (4, 3, 8), (4, 3, 8), (5, 3, 8)
WIDE = dict(dim_feedforward=10, dropout=0.0)
DROPS = dict(dim_feedforward=10, dropout=0.3)


def encoder_layer(call=lambda net, x: net(x), x=S, **kwargs):
    return Case(lambda m: m.nn.TransformerEncoderLayer(8, 2, **(WIDE | kwargs)), (x,), call)


def decoder_layer(call=lambda net, x, y: net(x, y), **kwargs):
    return Case(lambda m: m.nn.TransformerDecoderLayer(8, 2, **(WIDE | kwargs)), (Q, K), call)


def encoder(call=lambda net, x: net(x), norm=False, x=S, **kwargs):
    return Case(
        lambda m: m.nn.TransformerEncoder(
            m.nn.TransformerEncoderLayer(8, 2, **(WIDE | kwargs)), 2, m.nn.LayerNorm(8) if norm else None
        ),
        (x,), call,
    )  # fmt: skip


def transformer(call=lambda net, x, y: net(x, y), x=Q, y=K, **kwargs):
    return Case(lambda m: m.nn.Transformer(8, 2, 1, 2, **(WIDE | kwargs)), (x, y), call)


CASES = {
    # layers
    "RNN": layer("RNN", 4, 6),
    "RNN relu": layer("RNN", 4, 6, nonlinearity="relu"),
    "RNN positional": layer("RNN", 4, 6, 2, "relu", False, True, 0.0, True),
    "RNN of states": from_states("RNN", (1, 3, 6)),
    "LSTM": layer("LSTM", 4, 6),
    "LSTM unbatched": layer("LSTM", 4, 6, x=(5, 4)),
    "LSTM one step": layer("LSTM", 4, 6, x=(1, 3, 4)),
    "LSTM no bias": layer("LSTM", 4, 6, bias=False),
    "LSTM deep": layer("LSTM", 4, 6, num_layers=3, batch_first=True),
    "LSTM both ways": layer("LSTM", 4, 6, 2, bidirectional=True),
    "LSTM dropout": layer("LSTM", 4, 6, num_layers=3, dropout=0.4, bidirectional=True),
    "LSTM dropout batch first": layer("LSTM", 4, 6, num_layers=2, dropout=0.4, batch_first=True),
    "LSTM projected": layer("LSTM", 4, 6, num_layers=2, proj_size=3, bidirectional=True),
    "LSTM projected, no bias": layer("LSTM", 4, 6, bias=False, proj_size=2),
    "LSTM of states": from_states("LSTM", (4, 3, 6), (4, 3, 6), num_layers=2, bidirectional=True),
    "LSTM of projected states": from_states("LSTM", (1, 3, 2), (1, 3, 6), proj_size=2),
    "LSTM of unbatched states": from_states("LSTM", (1, 6), (1, 6), x=(5, 4)),
    "GRU": layer("GRU", 4, 6),
    "GRU no bias": layer("GRU", 4, 6, bias=False, x=(5, 4)),
    "GRU both ways": layer("GRU", 4, 6, 2, batch_first=True, dropout=0.2, bidirectional=True),
    "GRU of states": from_states("GRU", (2, 3, 6), num_layers=2),
    "GRU of unbatched states": from_states("GRU", (1, 6), x=(5, 4), batch_first=True),
    # packed
    "RNN packed": packed("RNN", [2, 5, 3]),
    "LSTM packed": packed("LSTM", [5, 5, 2], num_layers=2, bidirectional=True),
    "LSTM packed of states": packed("LSTM", [2, 5, 3, 3], (2, 4, 6), (2, 4, 6), bidirectional=True),
    "LSTM packed, projected": packed("LSTM", [1, 5, 3], proj_size=2, bidirectional=True),
    "LSTM packed, dropout": packed("LSTM", [2, 4, 5], num_layers=2, dropout=0.5),
    "GRU packed": packed("GRU", [2, 4, 3], bidirectional=True),
    "GRU packed of states": packed("GRU", [2, 4, 3], (1, 3, 6)),
    # cells
    "RNNCell": cell("RNNCell"),
    "RNNCell relu": cell("RNNCell", (2, 6), bias=False, nonlinearity="relu"),
    "LSTMCell": cell("LSTMCell"),
    "LSTMCell of states": cell("LSTMCell", (2, 6), (2, 6)),
    "LSTMCell unbatched": cell("LSTMCell", (6,), (6,), bias=False),
    "GRUCell": cell("GRUCell"),
    "GRUCell unbatched": cell("GRUCell", (6,)),
    # attention
    "attention": attention(Q, K, V),
    "self-attention": attention(Q, call=lambda net, x: net(x, x, x)),
    "self-attention batch first": attention(Q, call=lambda net, x: net(x, x, x), batch_first=True),
    "attention keys are values": attention(Q, K, call=lambda net, x, y: net(x, y, y, average_attn_weights=False)),
    "attention unbatched": attention((5, 8), (4, 8), (4, 8), batch_first=True),
    "attention no weights": attention(Q, K, V, call=lambda net, *t: net(*t, need_weights=False), bias=False),
    "attention other widths": attention(Q, (4, 3, 6), (4, 3, 5), kdim=6, vdim=5),
    "attention extra positions": attention(Q, K, V, add_bias_kv=True, add_zero_attn=True),
    "attention extra, masked": attention(
        Q,
        call=lambda net, x: net(x, x, x, key_padding_mask=padding(x), attn_mask=causal(library(x)).to(x.dtype)),
        add_bias_kv=True,
        add_zero_attn=True,
        kdim=8,
    ),
    "attention dropout": attention(Q, K, V, make=(0.4,)),
    "attention dropout, no weights": attention(Q, call=lambda net, x: net(x, x, x, need_weights=False), make=(0.4,)),
    "attention causal": attention(
        Q, call=lambda net, x: net(x, x, x, attn_mask=causal(library(x)), need_weights=False, is_causal=True)
    ),
    "attention by head": attention(
        Q, call=lambda net, x: net(x, x, x, attn_mask=causal(library(x)).to(x.dtype).repeat(6, 1, 1)), batch_first=False
    ),
    "attention padding": attention(Q, call=lambda net, x: net(x, x, x, key_padding_mask=padding(x))),
    "attention padding of numbers": attention(Q, call=lambda net, x: net(x, x, x, padding(x, dtype=float))),
    # Transformers
    "encoder layer": encoder_layer(),
    "encoder layer gelu, norm first": encoder_layer(activation="gelu", norm_first=True, layer_norm_eps=1e-3),
    "encoder layer dropout": encoder_layer(**DROPS),
    "encoder layer no bias": encoder_layer(bias=False, batch_first=True, activation=abs),
    "encoder layer unbatched": encoder_layer(x=(5, 8)),
    "encoder layer masked": encoder_layer(
        lambda net, x: net(x, causal(library(x)) == -np.inf, src_key_padding_mask=padding(x)),
    ),
    "decoder layer": decoder_layer(),
    "decoder layer norm first": decoder_layer(norm_first=True, **DROPS),
    "decoder layer masked": decoder_layer(
        lambda net, x, y: net(x, y, causal(library(x)), memory_key_padding_mask=padding(y, length=4), tgt_is_causal=True)
    ),
    "encoder": encoder(),
    "encoder dropout, norm": encoder(norm=True, batch_first=True, **DROPS),
    "encoder causal": encoder(lambda net, x: net(x, causal(library(x)), is_causal=True)),
    "encoder found causal": encoder(lambda net, x: net(x, causal(library(x)))),
    "encoder padding": encoder(lambda net, x: net(x, src_key_padding_mask=padding(x))),
    "transformer": transformer(),
    "transformer dropout": transformer(norm_first=True, activation="gelu", **DROPS),
    "transformer unbatched": transformer(x=(5, 8), y=(4, 8), bias=False),
    "transformer masked": transformer(
        lambda net, x, y: net(
            x, y, tgt_mask=causal(library(x), 4), src_key_padding_mask=padding(x), memory_key_padding_mask=padding(x)
        ),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_layer(name):
    with sdpa_kernel(SDPBackend.MATH):  # the other one has no second derivative
        check(CASES[name])


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.nn.TransformerEncoder(m.nn.TransformerEncoderLayer(8, 2, 10, batch_first=True), 2),
        lambda m: m.nn.TransformerEncoder(m.nn.TransformerEncoderLayer(8, 2, 10, norm_first=True), 2),
        lambda m: m.nn.MultiheadAttention(8, 2, batch_first=True),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_evaluation_without_gradients(make):
    """PyTorch has another way there, with the same numbers."""
    got = []
    for m in BOTH:
        m.manual_seed(0)
        net = make(m).eval()
        x = m.tensor(np.random.default_rng(0).standard_normal((3, 5, 8)).astype(np.float32))
        with m.no_grad():
            got.append(list(tensors(net(x) if hasattr(net, "layers") else net(x, x, x))))
    for a, b in zip(*got, strict=True):
        close(a, b, 2e-5, "output")


def arrays_of(value):
    """A packed sequence or tensors as arrays, None as it is."""
    if value is None:
        return None
    if isinstance(value, tuple | list):
        return [arrays_of(v) for v in value]
    return array(value)


def numbers(m, *shape):
    return m.tensor(np.random.default_rng(0).standard_normal(shape))


SEQUENCES = (4, 2, 3)
PACKING = {
    "pack": lambda m, u: u.pack_padded_sequence(numbers(m, 4, 3, 2), [4, 2, 1]),
    "pack flat": lambda m, u: u.pack_padded_sequence(numbers(m, 4, 3), m.tensor([4, 2, 1])),
    "pack unsorted": lambda m, u: u.pack_padded_sequence(numbers(m, 3, 4, 2), [2, 2, 4], True, False),
    "pack integers": lambda m, u: u.pack_padded_sequence(m.arange(12).view(4, 3), m.tensor([4.9, 2.0, 1.0])),
    "pack sequence": lambda m, u: u.pack_sequence([numbers(m, n, 2) for n in SEQUENCES], enforce_sorted=False),
    "pad": lambda m, u: u.pad_sequence([numbers(m, n, 2) for n in SEQUENCES]),
    "pad left": lambda m, u: u.pad_sequence([numbers(m, n) for n in SEQUENCES], True, -1.0, "left"),
    "pad dtypes": lambda m, u: u.pad_sequence([numbers(m, n).to(d) for n, d in ((2, m.float32), (3, m.float64))]),
    "pad rows": lambda m, u: u.pad_sequence(numbers(m, 2, 3), batch_first=True),
    "unpad": lambda m, u: u.unpad_sequence(numbers(m, 4, 3, 2), m.tensor([4, 2, 3])),
    "unpack": lambda m, u: u.unpack_sequence(u.pack_sequence([numbers(m, n, 2) for n in SEQUENCES], False)),
    "pad packed": lambda m, u: u.pad_packed_sequence(
        u.pack_sequence([numbers(m, n, 2) for n in SEQUENCES], False), True, 7.0, 6
    ),
    "invert": lambda m, u: u.invert_permutation(m.tensor([2, 0, 3, 1])),
    "of a pair": lambda m, u: u.PackedSequence((numbers(m, 3), m.tensor([2, 1])), sorted_indices=m.tensor([1, 0])),
    "to": lambda m, u: u.pack_sequence([numbers(m, n) for n in SEQUENCES], False).to(m.float32),
    "long": lambda m, u: u.pack_sequence([numbers(m, n) for n in SEQUENCES], False).long(),
}


@pytest.mark.parametrize("name", PACKING)
def test_packing(name):
    theirs, ours = (PACKING[name](m, m.nn.utils.rnn) for m in BOTH)
    assert repr(ours) == repr(theirs)
    a, b = arrays_of(theirs), arrays_of(ours)
    np.testing.assert_equal(b, a)


def test_gradients_of_packing():
    got = []
    for m in BOTH:
        u = m.nn.utils.rnn
        x = numbers(m, 4, 3, 2).requires_grad_()
        y, _ = u.pad_packed_sequence(u.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False))
        z = u.pad_sequence([x[:2, 0], x[:, 1], x[:1, 2]])
        got.append(m.autograd.grad((y * numbers(m, *y.shape)).sum() + (z * z).sum(), x)[0])
    close(*got, 1e-14, "gradient")


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_functions(kind):
    got = []
    for m in BOTH:
        gates = {"lstm": 4, "gru": 3}.get(kind, 1) * 5
        weights = [numbers(m, *s) * 0.3 for s in ((gates, 4), (gates, 5), (gates,), (gates,))]
        h, x = numbers(m, 3, 5), numbers(m, 6, 3, 4)
        hx = (h, h * 0.5) if kind == "lstm" else h
        step = getattr(m, f"{kind}_cell")(x[0], hx, *weights), getattr(m, f"{kind}_cell")(x[0], hx, *weights[:2])
        hx = tuple(s[None] for s in hx) if kind == "lstm" else hx[None]
        layer = getattr(m, kind)(x, hx, weights, True, 1, 0.0, True, False, False)
        first = getattr(m, kind)(x, hx, weights[:2], False, 1, 0.0, True, False, batch_first=False)
        rows = getattr(m, kind)(x.reshape(18, 4)[:6], m.tensor([3, 2, 1]), hx, weights, True, 1, 0.0, True, False)
        got.append(list(tensors([step, layer, first, rows])))
    assert len(got[0]) == len(got[1])
    for a, b in zip(*got, strict=True):
        close(a, b, 1e-12, kind)


NAMES = [
    "RNNBase", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention", "Transformer", "TransformerEncoder",
    "TransformerDecoder", "TransformerEncoderLayer", "TransformerDecoderLayer",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    theirs, ours = (getattr(m.nn, name) for m in BOTH)
    methods = ("__init__",) if name in ("RNNBase", "RNNCellBase") else ("__init__", "forward")
    for a, b in [(getattr(theirs, f), getattr(ours, f)) for f in methods]:
        plain = [[(n, d if not callable(d) else d.__name__) for n, d in signature(f)] for f in (a, b)]
        assert plain[0] == plain[1]


def test_names_of_packing():
    """Public names of torch.nn.utils.rnn are there; the others are imports of its file."""
    own = {n for n in torch.nn.utils.rnn.__all__}
    assert own == set(tg.nn.utils.rnn.__all__)
    for name in own - {"PackedSequence"}:
        assert signature(getattr(tg.nn.utils.rnn, name)) == signature(getattr(torch.nn.utils.rnn, name)), name
    methods = {n for n in vars(torch.nn.utils.rnn.PackedSequence) if not n.startswith("_")}
    assert methods <= set(dir(tg.nn.utils.rnn.PackedSequence))


def test_attributes():
    theirs, ours = (m.nn.LSTM(4, 6, 2, bidirectional=True, proj_size=3) for m in BOTH)
    assert ours._flat_weights_names == theirs._flat_weights_names
    assert [[tuple(w.shape) for w in ws] for ws in ours.all_weights] == [
        [tuple(w.shape) for w in ws] for ws in theirs.all_weights
    ]
    assert ours.flatten_parameters() is None
    for net in (m.nn.MultiheadAttention(4, 2, kdim=3) for m in BOTH):
        assert net.in_proj_weight is None and net.bias_k is None and net.head_dim == 2 and not net._qkv_same_embed_dim


def test_merged_masks():
    got = []
    for m in BOTH:
        net = m.nn.MultiheadAttention(8, 2)
        x, mask = numbers(m, 3, 5, 8), causal(m).double()
        pads = m.where(padding(x), -np.inf, 0.0).double()
        calls = [(mask, pads), (mask.repeat(6, 1, 1), pads), (mask, None), (None, pads), (None, None)]
        got.append([net.merge_masks(*c, x) for c in calls])
    for (a, kind), (b, own) in zip(*got, strict=True):
        assert own == kind
        if a is None:
            assert b is None
        else:
            np.testing.assert_array_equal(array(b), array(a))


def zeros(m, *shape):
    return m.zeros(*shape)


ERRORS = {
    "no step": lambda m: m.nn.LSTM(4, 5)(zeros(m, 0, 2, 4)),
    "hidden": lambda m: m.nn.LSTM(4, 5)(zeros(m, 3, 2, 4), (zeros(m, 1, 3, 5), zeros(m, 1, 2, 5))),
    "cell": lambda m: m.nn.LSTM(4, 5)(zeros(m, 3, 2, 4), (zeros(m, 1, 2, 5), zeros(m, 1, 2, 6))),
    "rank of states": lambda m: m.nn.LSTM(4, 5)(zeros(m, 3, 2, 4), (zeros(m, 2, 5), zeros(m, 1, 2, 5))),
    "rank of unbatched states": lambda m: m.nn.LSTM(4, 5)(zeros(m, 3, 4), (zeros(m, 1, 2, 5), zeros(m, 1, 2, 5))),
    "rank of hx": lambda m: m.nn.GRU(4, 5)(zeros(m, 3, 2, 4), zeros(m, 2, 5)),
    "rank of unbatched hx": lambda m: m.nn.RNN(4, 5)(zeros(m, 3, 4), zeros(m, 1, 2, 5)),
    "hx": lambda m: m.nn.GRU(4, 5)(zeros(m, 3, 2, 4), zeros(m, 1, 3, 5)),
    "width": lambda m: m.nn.GRU(4, 5)(zeros(m, 3, 2, 3)),
    "rank": lambda m: m.nn.GRU(4, 5)(zeros(m, 3)),
    "rank of RNN": lambda m: m.nn.RNN(4, 5)(zeros(m, 3)),
    "dtype": lambda m: m.nn.GRU(4, 5)(zeros(m, 3, 2, 4).double()),
    "integers": lambda m: m.nn.GRU(4, 5)(zeros(m, 3, 2, 4).long()),
    "packed width": lambda m: m.nn.GRU(1, 5)(m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2, 4), [3, 2])),
    "packed rank": lambda m: m.nn.GRU(4, 5)(m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2), [3, 2])),
    "packed hx": lambda m: m.nn.GRU(4, 5)(m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2, 4), [3, 2]), zeros(m, 1, 3, 5)),
    "cell width": lambda m: m.nn.GRUCell(4, 5)(zeros(m, 2, 3)),
    "cell batch": lambda m: m.nn.GRUCell(4, 5)(zeros(m, 2, 4), zeros(m, 3, 5)),
    "cell state": lambda m: m.nn.LSTMCell(4, 5)(zeros(m, 2, 4), (zeros(m, 2, 5), zeros(m, 2, 6))),
    "cell one state": lambda m: m.nn.LSTMCell(4, 5)(zeros(m, 2, 4), (zeros(m, 2, 5),)),
    "cell rank": lambda m: m.nn.GRUCell(4, 5)(zeros(m, 2, 2, 4)),
    "cell rank of hx": lambda m: m.nn.RNNCell(4, 5)(zeros(m, 2, 4), zeros(m, 1, 2, 5)),
    "cell rank of states": lambda m: m.nn.LSTMCell(4, 5)(zeros(m, 2, 4), (zeros(m, 2, 5), zeros(m, 1, 2, 5))),
    "cell dtype": lambda m: m.nn.GRUCell(4, 5)(zeros(m, 2, 4).double()),
    "dtype of hx": lambda m: m.nn.GRU(4, 5)(zeros(m, 3, 2, 4), zeros(m, 1, 2, 5).half()),
    "cell dtype of hx": lambda m: m.nn.LSTMCell(4, 5)(zeros(m, 2, 4), [zeros(m, 2, 5).double()] * 2),
    "dtype of a linear map": lambda m: m.nn.Linear(4, 5)(zeros(m, 2, 4).half()),
    "dtype of a bias": lambda m: m.nn.functional.linear(zeros(m, 2, 4), zeros(m, 5, 4), zeros(m, 5).double()),
    "dtype without bias": lambda m: m.nn.Linear(4, 5, bias=False)(zeros(m, 2, 4).long()),
    "cell nonlinearity": lambda m: m.nn.RNNCell(4, 5, nonlinearity="x")(zeros(m, 2, 4)),
    "nonlinearity": lambda m: m.nn.RNN(4, 5, nonlinearity="x"),
    "dropout": lambda m: m.nn.LSTM(4, 5, dropout=2.0),
    "bool dropout": lambda m: m.nn.LSTM(4, 5, dropout=True),
    "keyword": lambda m: m.nn.LSTM(4, 5, foo=True),
    "missing": lambda m: m.nn.LSTM(4),
    "float size": lambda m: m.nn.LSTM(4, 5.0),
    "no input": lambda m: m.nn.LSTM(0, 5),
    "no layer": lambda m: m.nn.LSTM(4, 5, 0),
    "bias": lambda m: m.nn.LSTM(4, 5, bias=1),
    "projection": lambda m: m.nn.LSTM(4, 5, proj_size=7),
    "negative projection": lambda m: m.nn.LSTM(4, 5, proj_size=-7),
    "projected GRU": lambda m: m.nn.GRU(4, 5, proj_size=2),
    "mode": lambda m: m.nn.RNNBase("X", 4, 5),
    "unsorted": lambda m: m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2, 4), [1, 2]),
    "no element": lambda m: m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2, 4), [2, 0]),
    "count of lengths": lambda m: m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2, 4), [2, 2, 1]),
    "rank of lengths": lambda m: m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2), [[3, 2]]),
    "rank of padded": lambda m: m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3), [3]),
    "empty": lambda m: m.nn.utils.rnn.pack_padded_sequence(zeros(m, 0, 2), [0, 0]),
    "unsorted sequences": lambda m: m.nn.utils.rnn.pack_sequence([zeros(m, 2), zeros(m, 3)]),
    "no sequence": lambda m: m.nn.utils.rnn.pad_sequence([]),
    "differing sequences": lambda m: m.nn.utils.rnn.pad_sequence([zeros(m, 2, 3), zeros(m, 3, 4)]),
    "no iterable": lambda m: m.nn.utils.rnn.pad_sequence(3),
    "no tensors": lambda m: m.nn.utils.rnn.pad_sequence([1]),
    "side": lambda m: m.nn.utils.rnn.pad_sequence([zeros(m, 2)], padding_side="up"),
    "total": lambda m: m.nn.utils.rnn.pad_packed_sequence(
        m.nn.utils.rnn.pack_padded_sequence(zeros(m, 3, 2), [3, 2]), total_length=2
    ),
    "no pair": lambda m: m.nn.utils.rnn.PackedSequence(zeros(m, 3)),
    "heads": lambda m: m.nn.MultiheadAttention(5, 2),
    "no heads": lambda m: m.nn.MultiheadAttention(4, 0),
    "ranks": lambda m: m.nn.MultiheadAttention(4, 2)(zeros(m, 2, 4), zeros(m, 3, 2, 4), zeros(m, 3, 2, 4)),
    "hint": lambda m: m.nn.MultiheadAttention(4, 2)(*[zeros(m, 3, 2, 4)] * 3, is_causal=True),
    "mask": lambda m: m.nn.MultiheadAttention(4, 2)(*[zeros(m, 3, 2, 4)] * 3, attn_mask=zeros(m, 2, 2)),
    "mask of integers": lambda m: m.nn.MultiheadAttention(4, 2)(*[zeros(m, 3, 2, 4)] * 3, attn_mask=zeros(m, 3, 3).int()),
    "padding": lambda m: m.nn.MultiheadAttention(4, 2)(*[zeros(m, 3, 2, 4)] * 3, zeros(m, 3, 3)),
    "padding length": lambda m: m.nn.MultiheadAttention(4, 2)(*[zeros(m, 3, 2, 4)] * 3, zeros(m, 2, 4)),
    "key width": lambda m: m.nn.MultiheadAttention(4, 2, kdim=3)(*[zeros(m, 3, 2, 4)] * 3),
    "value length": lambda m: m.nn.MultiheadAttention(4, 2)(zeros(m, 3, 2, 4), zeros(m, 3, 2, 4), zeros(m, 2, 2, 4)),
    "query width": lambda m: m.nn.MultiheadAttention(4, 2)(zeros(m, 3, 2, 6), *[zeros(m, 3, 2, 4)] * 2),
    "activation": lambda m: m.nn.TransformerEncoderLayer(4, 2, 8, activation="x"),
    "batches": lambda m: m.nn.Transformer(4, 2, 1, 1, 8)(zeros(m, 3, 2, 4), zeros(m, 3, 1, 4)),
    "features": lambda m: m.nn.Transformer(4, 2, 1, 1, 8)(zeros(m, 3, 2, 4), zeros(m, 3, 2, 6)),
    "source mask": lambda m: m.nn.TransformerEncoderLayer(4, 2, 8)(zeros(m, 3, 2, 4), zeros(m, 3, 3).int()),
    "source padding": lambda m: m.nn.TransformerEncoderLayer(4, 2, 8)(zeros(m, 3, 2, 4), None, zeros(m, 2, 3).int()),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    """The same type and first sentence."""
    caught = []
    for m in BOTH:
        with pytest.raises(Exception) as e:
            ERRORS[name](m)
        caught.append((e.type.__name__, re.split(r"\.\s|\n", str(e.value))[0].rstrip(".")))
    assert caught[1] == caught[0]


@pytest.mark.parametrize(
    "run",
    [
        lambda m: m.nn.LSTM(4, 5, dropout=0.5),
        lambda m: m.nn.TransformerEncoderLayer(4, 2, 8)(zeros(m, 3, 2, 4), zeros(m, 3, 3), zeros(m, 2, 3).bool()),
        lambda m: m.nn.MultiheadAttention(4, 2)(*[zeros(m, 3, 2, 4)] * 3, zeros(m, 2, 3).bool(), True, zeros(m, 3, 3)),
    ],
)
def test_warning(run):
    texts = []
    for m in BOTH:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(m)
        texts.append([str(w.message) for w in caught])
    assert texts[1] == texts[0] != []

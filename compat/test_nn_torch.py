"""Layers against PyTorch: from one seed the same parameters, outputs, two orders of derivatives, printed form and state."""

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
BOTH = (torch, tg)


def array(t):
    return np.array(t.detach().numpy())


def close(a, b, tol=5e-6):
    a, b = array(a), array(b)
    np.testing.assert_allclose(b, a, rtol=tol, atol=tol * max(1.0, float(np.abs(a).max(initial=0))))


# A model, its input shape; drawn after manual_seed(0).
MODELS = {
    "linear": (lambda nn: nn.Linear(3, 4), (5, 3)),
    "linear without bias": (lambda nn: nn.Linear(3, 4, bias=False), (2, 5, 3)),
    "linear of a vector": (lambda nn: nn.Linear(3, 4), (3,)),
    "large linear": (lambda nn: nn.Linear(100, 70), (9, 100)),
    "sdf": (lambda nn: nn.Sequential(nn.Linear(3, 16), nn.Softplus(beta=100), nn.Linear(16, 1)), (8, 3)),
    "tanh": (lambda nn: nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Sigmoid(), nn.Linear(8, 2)), (4, 3)),
    "smooth": (lambda nn: nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2)), (4, 3)),
    "gelu tanh": (lambda nn: nn.GELU("tanh"), (4, 3)),
    "kinks": (lambda nn: nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.1), nn.Linear(8, 8), nn.ELU(), nn.ReLU()), (4, 3)),
    "batch norm": (lambda nn: nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5)), (6, 3)),
    "batch norm of sequences": (lambda nn: nn.BatchNorm1d(3, momentum=None), (4, 3, 5)),
    "batch norm without affine": (lambda nn: nn.BatchNorm1d(3, affine=False, track_running_stats=False), (4, 3)),
    "batch norm in eval": (lambda nn: nn.BatchNorm1d(3).eval(), (4, 3)),
    "layer norm": (lambda nn: nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5)), (6, 3)),
    "layer norm of two": (lambda nn: nn.LayerNorm((2, 3), bias=False), (4, 2, 3)),
    "dropout": (lambda nn: nn.Sequential(nn.Linear(3, 50), nn.Dropout(0.3)), (6, 3)),
    "softmax": (lambda nn: nn.Sequential(nn.Linear(3, 5), nn.Softmax(dim=-1)), (6, 3)),
    "log softmax": (lambda nn: nn.Sequential(nn.Flatten(), nn.LogSoftmax(dim=1)), (6, 3, 2)),
}


def derivatives(m, name):
    """Everything that a model gives in float64: output, gradients, and gradients of a norm of the gradient."""
    make, shape = MODELS[name]
    m.manual_seed(0)
    net = make(m.nn).double()
    x = m.randn(*shape, dtype=m.float64, requires_grad=True)
    y = net(x)
    weight = m.randn(*y.shape, dtype=m.float64)
    (g,) = m.autograd.grad((y * weight).sum(), x, create_graph=True)
    loss = (g * g).sum() + (y * y).mean()
    loss.backward()
    params = list(net.parameters())
    return [*params, y, g, loss, x.grad, *[p.grad for p in params], *net.buffers()], net


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    theirs, their_net = derivatives(torch, name)
    ours, our_net = derivatives(tg, name)
    for a, b in zip(theirs, ours, strict=True):
        if a is None:
            assert b is None or not b.any()
        else:
            assert tuple(a.shape) == tuple(b.shape) and str(a.dtype) == str(b.dtype)
            close(a, b, 1e-10)
    assert repr(their_net) == repr(our_net)
    assert list(their_net.state_dict()) == list(our_net.state_dict())


@pytest.mark.parametrize("name", MODELS)
def test_initial_parameters_bit_for_bit(name):
    nets = []
    for m in BOTH:
        m.manual_seed(12)
        nets.append(MODELS[name][0](m.nn))
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert (array(a) == array(b)).all()


@pytest.mark.parametrize("shape", [(7, 5), (3, 4, 5), (40, 30)])
@pytest.mark.parametrize(
    "init",
    [
        lambda i, w: i.xavier_uniform_(w, gain=2.0), lambda i, w: i.xavier_normal_(w),
        lambda i, w: i.kaiming_uniform_(w, a=0.5),
        lambda i, w: i.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), lambda i, w: i.uniform_(w, -2, 3),
        lambda i, w: i.normal_(w, 1, 2), lambda i, w: i.constant_(w, 4),
    ],
)  # fmt: skip
def test_initialisers(shape, init):
    drawn = []
    for m in BOTH:
        m.manual_seed(4)
        drawn.append(array(init(m.nn.init, m.empty(*shape))))
    np.testing.assert_allclose(drawn[1], drawn[0], rtol=2e-7)


@pytest.mark.parametrize("name", ["tanh", "relu", "leaky_relu", "selu", "linear", "sigmoid", "conv2d"])
def test_gains(name):
    assert torch.nn.init.calculate_gain(name) == tg.nn.init.calculate_gain(name)


DRAWS = {
    "uniform": lambda t: t.uniform_(-1, 2), "normal": lambda t: t.normal_(1, 2), "random": lambda t: t.random_(),
    "random to": lambda t: t.random_(7), "random range": lambda t: t.random_(3, 9), "bernoulli": lambda t: t.bernoulli_(0.3),
    "exponential": lambda t: t.exponential_(2), "log normal": lambda t: t.log_normal_(0.5, 0.3),
    "cauchy": lambda t: t.cauchy_(1, 2), "geometric": lambda t: t.geometric_(0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_methods(name, dtype):
    drawn = []
    for m in BOTH:
        m.manual_seed(9)
        drawn.append(array(DRAWS[name](m.empty(33, dtype=getattr(m, dtype)))))
    np.testing.assert_allclose(drawn[1], drawn[0], rtol=1e-6)


def test_a_transposed_tensor_is_filled_as_pytorch_does():
    drawn = []
    for m in BOTH:
        m.manual_seed(9)
        drawn.append(m.empty(4, 5).bernoulli_(m.full((4, 5), 0.5)))
    assert (array(drawn[0]) == array(drawn[1])).all()


LOSSES = {
    "l1": (lambda m, x, t: m.nn.L1Loss()(x, t), "real"),
    "l1 none": (lambda m, x, t: m.nn.L1Loss(reduction="none")(x, t), "real"),
    "mse": (lambda m, x, t: m.nn.MSELoss(reduction="sum")(x, t), "real"),
    "mse weight": (lambda m, x, t: m.nn.functional.mse_loss(x, t, weight=t * t), "real"),
    "bce": (lambda m, x, t: m.nn.BCEWithLogitsLoss()(x, t.sigmoid()), "real"),
    "bce weight": (lambda m, x, t: m.nn.BCEWithLogitsLoss(weight=t.exp(), pos_weight=t[0].exp())(x, t.sigmoid()), "real"),
    "ce": (lambda m, x, t: m.nn.CrossEntropyLoss()(x, t), "class"),
    "ce weight": (lambda m, x, t: m.nn.CrossEntropyLoss(weight=m.arange(1.0, 5.0), label_smoothing=0.2)(x, t), "class"),
    "ce none": (lambda m, x, t: m.nn.CrossEntropyLoss(reduction="none", label_smoothing=0.2)(x, t), "class"),
    "ce sum ignoring": (lambda m, x, t: m.nn.CrossEntropyLoss(reduction="sum", ignore_index=1)(x, t), "class"),
    "ce mean ignoring": (lambda m, x, t: m.nn.CrossEntropyLoss(ignore_index=2, label_smoothing=0.3)(x, t), "class"),
    "ce probabilities": (
        lambda m, x, t: m.nn.CrossEntropyLoss(weight=m.arange(1.0, 5.0), label_smoothing=0.1)(x, t.softmax(1)), "real",
    ),
    "smooth l1": (lambda m, x, t: m.nn.SmoothL1Loss(beta=0.7)(x, t), "real"),
    "smooth l1 of beta 0": (lambda m, x, t: m.nn.SmoothL1Loss(beta=0.0, reduction="sum")(x, t), "real"),
    "huber": (lambda m, x, t: m.nn.HuberLoss(delta=1.3, reduction="none")(x, t), "real"),
    "kl": (lambda m, x, t: m.nn.KLDivLoss(reduction="batchmean")(x.log_softmax(1), t.softmax(1)), "real"),
    "kl of 0": (lambda m, x, t: m.nn.KLDivLoss(reduction="sum")(x.log_softmax(1), t.relu()), "real"),
    "kl log target": (
        lambda m, x, t: m.nn.KLDivLoss(reduction="none", log_target=True)(x.log_softmax(1), t.log_softmax(1)), "real",
    ),
    "bce of probabilities": (lambda m, x, t: m.nn.BCELoss()(x.sigmoid(), t.sigmoid()), "real"),
    "weighted bce of probabilities": (lambda m, x, t: m.nn.BCELoss(t.exp())(x.sigmoid(), t.sigmoid()), "real"),
    "cosine": (lambda m, x, t: m.nn.functional.cosine_similarity(x, t), "real"),
    "cosine of two shapes": (lambda m, x, t: m.nn.functional.cosine_similarity(x, t[:1], dim=-1), "real"),
    "distance": (lambda m, x, t: m.nn.functional.pairwise_distance(x, t), "real"),
    "distance 1": (lambda m, x, t: m.nn.functional.pairwise_distance(x, t, p=3.0, keepdim=True), "real"),
    "softmin": (lambda m, x, t: m.nn.Softmin(dim=1)(x) * t, "real"),
    "hardtanh": (lambda m, x, t: m.nn.Hardtanh(-0.5, 0.8)(x * x) * t, "real"),
    "mish": (lambda m, x, t: m.nn.Mish()(x) * t, "real"),
    "softsign": (lambda m, x, t: m.nn.Softsign()(x) * t, "real"),
    "tanhshrink": (lambda m, x, t: m.nn.Tanhshrink()(x) * t, "real"),
    "pad": (lambda m, x, t: m.nn.functional.pad(x * x, (1, -1, -2, 3), value=2.0) ** 2, "real"),
    "nll": (lambda m, x, t: m.nn.NLLLoss(weight=m.arange(1.0, 5.0))(x.log_softmax(1), t), "class"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 2)])
def test_losses(name, shape):
    make, kind = LOSSES[name]
    if name == "bce weight" and len(shape) == 3:
        shape = (6, 4)
    values = []
    for m in BOTH:
        m.manual_seed(1)
        x = m.randn(*shape, requires_grad=True)
        t = m.randn(*shape) if kind == "real" else m.randint(0, 4, (shape[0], *shape[2:]))
        loss = make(m, x, t)
        (g,) = m.autograd.grad((loss * loss).sum(), x, create_graph=True)
        (g * g).sum().backward()
        values.append([loss, g, x.grad])
    for a, b in zip(*values, strict=True):
        close(a, b, 2e-5)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, float("inf")])
def test_clipping(norm):
    results = []
    for m in BOTH:
        m.manual_seed(0)
        ps = [m.randn(3, 4, requires_grad=True), m.randn(5, requires_grad=True)]
        for p in ps:
            p.grad = m.randn(*p.shape)
        total = m.nn.utils.clip_grad_norm_(ps, 1.0, norm)
        results.append([total, *[p.grad for p in ps]])
    for a, b in zip(*results, strict=True):
        close(a, b)


def test_normalize():
    for kwargs in ({}, {"p": 1.0, "dim": 0}, {"p": 3, "dim": -1}):
        values = []
        for m in BOTH:
            m.manual_seed(3)
            x = m.randn(4, 3, requires_grad=True)
            y = m.nn.functional.normalize(x, **kwargs)
            (y**3).sum().backward()
            values.append((y, x.grad))
        for a, b in zip(*values, strict=True):
            close(a, b)


# Functions of nn.functional beyond PyTorch's own sample inputs: streams of random numbers, options, in-place forms.
# The program gets the library, its functions, and tensors of the given shapes; "long" is an index below 4.
FUNCTIONS = {
    "rrelu": (lambda m, F, x: F.rrelu(x, 0.1, 0.6, training=True), (7, 5)),
    "gumbel softmax": (lambda m, F, x: F.gumbel_softmax(x, 0.7), (7, 5)),
    "hard gumbel softmax": (lambda m, F, x: F.gumbel_softmax(x, 0.7, hard=True, dim=0), (7, 5)),
    "dropout": (lambda m, F, x: F.dropout(x, 0.3), (7, 5)),
    "dropout of a transpose": (lambda m, F, x: F.dropout(x.t(), 0.3), (7, 5)),
    "dropout of all": (lambda m, F, x: F.dropout(x, 1.0), (7, 5)),
    "dropout1d": (lambda m, F, x: F.dropout1d(x, 0.3), (7, 5, 2)),
    "dropout1d of one": (lambda m, F, x: F.dropout1d(x, 0.3), (7, 5)),
    "dropout2d": (lambda m, F, x: F.dropout2d(x, 0.3), (7, 5, 2, 3)),
    "dropout2d of sequences": (lambda m, F, x: F.dropout2d(x, 0.3), (7, 5, 2)),
    "dropout3d": (lambda m, F, x: F.dropout3d(x, 0.3), (2, 5, 2, 3, 2)),
    "dropout3d of one": (lambda m, F, x: F.dropout3d(x, 0.3), (5, 2, 3, 2)),
    "alpha dropout": (lambda m, F, x: F.alpha_dropout(x, 0.3, training=True), (7, 5)),
    "alpha dropout of all": (lambda m, F, x: F.alpha_dropout(x, 1.0, training=True), (7, 5)),
    "feature alpha dropout": (lambda m, F, x: F.feature_alpha_dropout(x, 0.3, training=True), (7, 5, 2)),
    "in place": (lambda m, F, x: F.threshold_(F.dropout(x * 2, 0.2, inplace=True), -1.0, 0.3), (7, 5)),
    "selu in place": (lambda m, F, x: F.selu_(x * 2) + F.celu_(x * 3, 0.7) + F.elu_(x * 1) + F.rrelu_(x * 1), (7, 5)),
    "hardtanh of prelu": (lambda m, F, x: F.hardtanh_(F.prelu(x, x[0]), -0.3, 0.9), (7, 5)),
    "batch norm": (lambda m, F, x: F.batch_norm(x, m.zeros(5), m.ones(5), training=True, momentum=0.3), (7, 5, 3)),
    "tracked batch norm": (lambda m, F, x, w, b: tracked(m, F, x, w, b), (7, 5, 3), (5,), (5,)),
    "instance norm by running statistics": (
        lambda m, F, x: F.instance_norm(x, m.arange(5.0), m.arange(1.0, 6.0), use_input_stats=False), (7, 5, 3),
    ),
    "normalize to the largest": (lambda m, F, x: F.normalize(x, float("inf"), dim=0), (7, 5)),
    "cross entropy without some": (lambda m, F, x, y: F.cross_entropy(x, y, ignore_index=2), (9, 4), (9, "long")),
    "cross entropy of one": (lambda m, F, x, y: F.cross_entropy(x, y), (4,), ("long",)),
    "cross entropy of volumes": (
        lambda m, F, x, y: F.cross_entropy(x, y, m.arange(1.0, 5.0), reduction="none", label_smoothing=0.1),
        (2, 4, 3, 2), (2, 3, 2, "long"),
    ),
    "ctc of flat targets": (
        lambda m, F, x, y: F.ctc_loss(x.log_softmax(2), y.clamp(min=1), (6, 5), (3, 2), zero_infinity=True),
        (6, 2, 4), (5, "long"),
    ),
    "ctc of one": (
        lambda m, F, x, y: F.ctc_loss(x.log_softmax(1), y.clamp(max=2), m.tensor(6), m.tensor(3), 3, "none"),
        (6, 4), (3, "long"),
    ),
    "embedding with padding": (
        lambda m, F, y, w: F.embedding(y, w, padding_idx=-3, scale_grad_by_freq=True), (9, "long"), (4, 3),
    ),
    "embedding of limited norm": (
        lambda m, F, y, w: F.embedding(y, w * 1, max_norm=0.7, norm_type=1.0), (2, 3, "long"), (4, 3),
    ),
    "bags with a last offset": (
        lambda m, F, y, w: F.embedding_bag(y, w, m.tensor([0, 4, 9]), include_last_offset=True, padding_idx=1),
        (9, "long"), (4, 3),
    ),
    "largest of bags": (lambda m, F, y, w: F.embedding_bag(y, w, mode="max", padding_idx=0), (5, 3, "long"), (4, 3)),
    "attention with dropout": (
        lambda m, F, q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.4), (2, 5, 4), (2, 3, 4), (2, 3, 4),
    ),
    "heads of several sizes": (
        lambda m, F, q, k, v, a, b, c, o: F.multi_head_attention_forward(
            q, k, v, 4, 2, None, None, None, None, True, 0.3, o, None, use_separate_proj_weight=True, q_proj_weight=a,
            k_proj_weight=b, v_proj_weight=c, average_attn_weights=False,
        )[0], (3, 2, 4), (5, 2, 3), (5, 2, 2), (4, 4), (4, 3), (4, 2), (4, 4),
    ),
    "heads with more positions": (
        lambda m, F, x, w, b, k, v, o: F.multi_head_attention_forward(
            x, x, x, 4, 2, w, b, k, v, True, 0.0, o, b[:4], attn_mask=m.ones(3, 3).tril() < 0.5, need_weights=False,
            key_padding_mask=m.arange(3).expand(2, 3) > 1,
        )[0], (3, 2, 4), (12, 4), (12,), (1, 1, 4), (1, 1, 4), (4, 4),
    ),
}  # fmt: skip


def tracked(m, F, x, w, b):
    mean, var = m.arange(5.0), m.arange(1.0, 6.0)
    F.batch_norm(x, mean, var, w, b, training=True, momentum=0.3)
    return F.batch_norm(x, mean, var, w, b)


@pytest.mark.filterwarnings("ignore:dropout2d|Support for mismatched:UserWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    program, *shapes = FUNCTIONS[name]
    rng = np.random.default_rng(5)
    arrays = [
        rng.integers(0, 4, s[:-1]) if s and s[-1] == "long" else rng.standard_normal(s).astype(np.float32) for s in shapes
    ]
    values = []
    for m in BOTH:
        xs = [m.tensor(a) for a in arrays]
        leaves = [x.requires_grad_() for x in xs if x.is_floating_point()]
        m.manual_seed(3)
        y = program(m, m.nn.functional, *xs)
        g = m.tensor(np.random.default_rng(6).standard_normal(tuple(y.shape)).astype(np.float32))
        gs = m.autograd.grad(y, leaves, g, allow_unused=True)
        values.append([y, *[m.zeros_like(x) if t is None else t for x, t in zip(leaves, gs, strict=True)]])
    for a, b in zip(*values, strict=True):
        assert b.dtype is getattr(tg, str(a.dtype).removeprefix("torch."))
        close(a, b)


WARNINGS = [
    lambda m: m.nn.functional.softmax(m.ones(2, 3)),
    lambda m: m.nn.functional.kl_div(m.ones(2), m.ones(2)),
    lambda m: m.nn.functional.mse_loss(m.ones(2), m.ones(1)),
    lambda m: m.nn.functional.l1_loss(m.ones(2), m.ones(2), reduce=False),
    lambda m: m.nn.functional.gumbel_softmax(m.ones(2, 3), eps=1e-9),
    lambda m: m.nn.functional.dropout2d(m.ones(2, 3, 4)),
    lambda m: m.nn.functional.dropout3d(m.ones(2, 3)),
]


@pytest.mark.parametrize("number", range(len(WARNINGS)))
def test_warning_texts(number):
    caught = []
    for m in BOTH:
        with pytest.warns(UserWarning) as record:
            WARNINGS[number](m)
        caught.append([str(w.message) for w in record])
    assert caught[1] == caught[0]


ERRORS = [
    lambda m: m.nn.Linear(2, 2).load_state_dict({"weight": m.ones(3, 2), "foo": m.ones(1)}),
    lambda m: m.nn.Sequential(m.nn.Linear(2, 2)).load_state_dict(
        {"0.weight": m.ones(2, 2), "0.x.y": m.ones(1), "1.b": m.ones(1)}
    ),
    lambda m: m.nn.Linear(2, 2).load_state_dict({"weight": 3, "bias": m.ones(2)}),
    lambda m: setattr(m.nn.Linear(2, 2), "weight", m.ones(2, 2)),
    lambda m: setattr(m.nn.Linear(2, 2), "bias", 3.0),
    lambda m: setattr(m.nn.Sequential(m.nn.ReLU()), "0", m.ones(2)),
    lambda m: setattr(m.nn.BatchNorm1d(2), "running_mean", "x"),
    lambda m: m.nn.ReLU().register_buffer("a.b", None),
    lambda m: m.nn.ReLU().register_buffer("", None),
    lambda m: m.nn.ReLU().register_buffer("training", None),
    lambda m: m.nn.ReLU().register_buffer(3, None),
    lambda m: m.nn.ReLU().register_parameter("a", m.ones(2)),
    lambda m: m.nn.ReLU().register_parameter("a.b", None),
    lambda m: m.nn.ReLU().add_module("a", 3),
    lambda m: m.nn.ReLU().add_module("a.b", None),
    lambda m: m.nn.ReLU().foo,
    lambda m: m.nn.ReLU().get_submodule("a.b"),
    lambda m: m.nn.ReLU().get_parameter("w"),
    lambda m: m.nn.BatchNorm1d(3).get_buffer("weight"),
    lambda m: m.nn.Module()(1),
    lambda m: m.nn.ReLU().train(1),
    lambda m: m.nn.Module(3),
    lambda m: m.nn.Module(a=3),
    lambda m: m.nn.ReLU().to(m.int64),
    lambda m: m.nn.BatchNorm1d(3)(m.ones(1, 3)),
    lambda m: m.nn.BatchNorm1d(3)(m.ones(3)),
    lambda m: m.nn.Dropout(2),
    lambda m: m.nn.LayerNorm(3)(m.ones(2, 4)),
    lambda m: m.nn.CrossEntropyLoss()(m.ones(2, 3), m.tensor([0, 5])),
    lambda m: m.nn.CrossEntropyLoss()(m.ones(2, 3), m.tensor([0])),
    lambda m: m.nn.BCEWithLogitsLoss()(m.ones(2, 3), m.ones(2)),
    lambda m: m.nn.MSELoss(reduction="x")(m.ones(2), m.ones(2)),
    lambda m: m.nn.BatchNorm1d(3)(m.ones(2, 4)),
    lambda m: m.nn.BatchNorm1d(3).eval()(m.ones(2, 4)),
    lambda m: m.nn.BatchNorm1d(3, track_running_stats=False)(m.ones(2, 4)),
    lambda m: m.nn.CrossEntropyLoss()(m.ones(2, 3), m.tensor([0.0, 1.0])),
    lambda m: m.nn.CrossEntropyLoss()(m.ones(2, 3), m.ones(2, 4)),
    lambda m: m.nn.CrossEntropyLoss()(m.ones(2, 3), m.ones(1, 3)),
    lambda m: m.nn.CrossEntropyLoss()(m.ones(3), m.tensor(1.0)),
    lambda m: m.nn.BCELoss()(m.ones(2), m.ones(3)),
    lambda m: m.nn.BCELoss()(m.ones(2) * 2, m.ones(2)),
    lambda m: m.nn.HuberLoss(delta=0.0)(m.ones(2), m.ones(2)),
    lambda m: m.nn.SmoothL1Loss(beta=-1.0)(m.ones(2), m.ones(2)),
    lambda m: m.nn.functional.pad(m.ones(2), (1,)),
    lambda m: m.nn.functional.pad(m.ones(2), (1, 1, 1, 1)),
    lambda m: m.nn.functional.prelu(m.ones(2, 3), m.ones(2)),
    lambda m: m.nn.functional.prelu(m.ones(()), m.ones(2)),
    lambda m: m.nn.functional.glu(m.ones(3)),
    lambda m: m.nn.functional.glu(m.ones(())),
    lambda m: m.nn.functional.softshrink(m.ones(2), -1),
    lambda m: m.nn.functional.celu(m.ones(2), 0),
    lambda m: m.nn.functional.rrelu(m.ones(2), 2, 1),
    lambda m: m.nn.functional.hardtanh(m.ones(2), 2, 1),
    lambda m: m.nn.functional.dropout1d(m.ones(2)),
    lambda m: m.nn.functional.dropout(m.ones(2), 2),
    lambda m: m.nn.functional.feature_alpha_dropout(m.ones(2), 0.5, True),
    lambda m: m.nn.functional.batch_norm(m.ones(3), None, None, training=True),
    lambda m: m.nn.functional.batch_norm(m.ones(()), None, None, training=True),
    lambda m: m.nn.functional.batch_norm(m.ones(3), m.ones(3), m.ones(3)),
    lambda m: m.nn.functional.batch_norm(m.ones(2, 3), None, None),
    lambda m: m.nn.functional.batch_norm(m.ones(2, 3), None, None, m.ones(2), training=True),
    lambda m: m.nn.functional.instance_norm(m.ones(3, 2)),
    lambda m: m.nn.functional.instance_norm(m.ones(1, 3, 2), use_input_stats=False),
    lambda m: m.nn.functional.group_norm(m.ones(2, 3, 4), 2),
    lambda m: m.nn.functional.group_norm(m.ones(2, 4, 4), 2, m.ones(3)),
    lambda m: m.nn.functional.group_norm(m.ones(2), 2),
    lambda m: m.nn.functional.group_norm(m.ones(1, 1), 1),
    lambda m: m.nn.functional.layer_norm(m.ones(2, 3), (3,), m.ones(2)),
    lambda m: m.nn.functional.layer_norm(m.ones(2, 3), ()),
    lambda m: m.nn.functional.layer_norm(m.ones(2, 3), 3),
    lambda m: m.nn.functional.layer_norm(m.ones(2, 3), (2, 2)),
    lambda m: m.nn.functional.rms_norm(m.ones(2, 3), (2,)),
    lambda m: m.nn.functional.nll_loss(m.ones(2, 3), m.tensor([0, 3])),
    lambda m: m.nn.functional.nll_loss(m.ones(2, 3), m.tensor([[0], [1]])),
    lambda m: m.nn.functional.poisson_nll_loss(m.ones(2), m.ones(2), reduction="x"),
    lambda m: m.nn.functional.gaussian_nll_loss(m.ones(2), m.ones(2), -m.ones(2)),
    lambda m: m.nn.functional.gaussian_nll_loss(m.ones(2), m.ones(2), m.ones(3)),
    lambda m: m.nn.functional.margin_ranking_loss(m.ones(2), m.ones(2, 1), m.ones(2)),
    lambda m: m.nn.functional.cosine_embedding_loss(m.ones(2), m.ones(2), m.ones(2)),
    lambda m: m.nn.functional.cosine_embedding_loss(m.ones(2, 3), m.ones(2, 3), m.ones(2, 1)),
    lambda m: m.nn.functional.multi_margin_loss(m.ones(2, 3), m.tensor([0, 3])),
    lambda m: m.nn.functional.multi_margin_loss(m.ones(2, 3), m.tensor([0, 1]), 3),
    lambda m: m.nn.functional.multi_margin_loss(m.ones(2, 3), m.tensor([0])),
    lambda m: m.nn.functional.multilabel_margin_loss(m.ones(2, 3), m.ones(2, 2).long()),
    lambda m: m.nn.functional.multilabel_margin_loss(m.ones(2, 3), m.ones(2, 3).long() * 3),
    lambda m: m.nn.functional.triplet_margin_loss(m.ones(2, 3), m.ones(2, 3), m.ones(2, 3), margin=0.0),
    lambda m: m.nn.functional.triplet_margin_with_distance_loss(m.ones(2, 3), m.ones(3), m.ones(2, 3)),
    lambda m: m.nn.functional.pdist(m.ones(3)),
    lambda m: m.nn.functional.ctc_loss(m.zeros(2, 1, 3), m.ones(1, 1).long(), (2,), (1,), blank=5),
    lambda m: m.nn.functional.ctc_loss(m.zeros(2, 1, 3), m.ones(1, 1).long(), (2, 2), (1,)),
    lambda m: m.nn.functional.ctc_loss(m.zeros(2, 1, 3), m.ones(1, 1).long(), (3,), (1,)),
    lambda m: m.nn.functional.linear_cross_entropy(m.ones(2, 3), m.ones(4, 2), m.ones(2).long()),
    lambda m: m.nn.functional.embedding(m.tensor([3]), m.ones(3, 2)),
    lambda m: m.nn.functional.embedding(m.tensor([1]), m.ones(3)),
    lambda m: m.nn.functional.embedding(m.tensor([1]), m.ones(3, 2), padding_idx=3),
    lambda m: m.nn.functional.embedding_bag(m.tensor([1]), m.ones(3, 2)),
    lambda m: m.nn.functional.embedding_bag(m.tensor([1]), m.ones(3, 2), m.tensor([1])),
    lambda m: m.nn.functional.embedding_bag(m.tensor([[1]]), m.ones(3, 2), m.tensor([0])),
    lambda m: m.nn.functional.embedding_bag(m.tensor([[1]]), m.ones(3, 2), mode="x"),
    lambda m: m.nn.functional.embedding_bag(m.tensor([[1]]), m.ones(3, 2), per_sample_weights=m.ones(1, 1)),
    lambda m: m.nn.functional.one_hot(m.tensor([3]), 3),
    lambda m: m.nn.functional.bilinear(m.ones(2, 3), m.ones(2, 4), m.ones(5, 2, 4)),
    lambda m: m.nn.functional.bilinear(m.ones(2, 3), m.ones(3, 4), m.ones(5, 3, 4)),
    lambda m: m.nn.functional.scaled_dot_product_attention(*[m.ones(2, 3)] * 3, m.ones(2, 2), is_causal=True),
    lambda m: m.nn.functional.scaled_dot_product_attention(m.ones(2, 3), m.ones(2, 3), m.ones(2, 3).double()),
    lambda m: m.nn.functional.scaled_dot_product_attention(m.ones(3), m.ones(3), m.ones(3)),
    lambda m: m.nn.functional.scaled_dot_product_attention(*[m.ones(2, 3)] * 3, m.ones(2, 2).long()),
    lambda m: m.nn.functional.multi_head_attention_forward(
        *[m.ones(2, 1, 3)] * 3, 3, 2, m.ones(9, 3), None, None, None, False, 0.0, m.ones(3, 3), None
    ),
    lambda m: m.nn.functional.multi_head_attention_forward(
        m.ones(2, 1, 4), m.ones(2, 4), m.ones(2, 4), 4, 2, m.ones(12, 4), None, None, None, False, 0.0, m.ones(4, 4), None
    ),
    lambda m: m.nn.functional.binary_cross_entropy_with_logits(m.ones(2), m.ones(3)),
    lambda m: m.nn.functional.layer_norm(m.ones(2, 3).long(), (3,)),
    lambda m: m.nn.functional.batch_norm(m.ones(2, 3).long(), None, None, training=True),
    lambda m: m.ones(2)[5],
    lambda m: m.ones(2, 3)[:, -4],
    lambda m: m.ones(2)[0, 0],
    lambda m: m.tensor(1.0)[0],
    lambda m: m.ones(4).reshape(-1, -1),
    lambda m: m.ones(4).view(-1, -1),
    lambda m: m.cat(m.ones(2), m.ones(2)),
    lambda m: m.stack(m.ones(2)),
    lambda m: m.ones(2.0),
    lambda m: m.zeros("a"),
    lambda m: m.randn(2, 2.0),
    lambda m: m.empty([2.5]),
    lambda m: m.nn.Sequential(m.nn.ReLU())[3],
    lambda m: m.nn.ModuleList(3),
    lambda m: m.nn.ModuleList([m.nn.ReLU()]).extend(3),
    lambda m: m.nn.ParameterList(3),
    lambda m: m.nn.ParameterList()(1),
    lambda m: m.nn.Sequential() + 3,
    lambda m: m.nn.init.calculate_gain("x"),
    lambda m: m.nn.init.xavier_uniform_(m.empty(2)),
    lambda m: m.nn.init.kaiming_uniform_(m.empty(2, 2), mode="x"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_error_texts(number):
    caught = []
    for m in BOTH:
        with pytest.raises(Exception) as info:
            ERRORS[number](m)
        text = str(info.value).replace("tapegrad.nn.container", "").split("\nIn layer ")[0]
        caught.append((type(info.value).__name__, text.split(". ")[0]))
    assert caught[1] == caught[0]

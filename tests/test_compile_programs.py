"""Training programs of every kind, compiled and eager: the same losses, parameters, buffers, optimizer and random state.

Each program is a function of `wrap`, which makes its step: eagerly the step itself, else `tg.compile(step, fullgraph=True)`.
It returns what runs step i, and the modules, optimizers and tensors whose state is compared after the last step.

One file over 1,000 lines, since it is one law over a list of whole programs.
"""

import contextlib
import copy
import io
import itertools
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.nn import functional as F

jax = pytest.importorskip("jax")

grad = tg.autograd.grad
TOLERANCE = {4: 1e-5, 8: 1e-10}  # by the bytes of a real number
BOTH = (tg.float32, tg.float64)
PROGRAMS = {}


def program(*dtypes, steps=20, traces=1):
    """Register a program; `traces`: how often each of its compiled functions is traced at most.

    With --all, programs in both dtypes and of 20 steps are compiled as for users; the others without most of XLA's
    optimizations, which take longer than the steps.
    """

    def register(build):
        for dtype in dtypes:
            PROGRAMS[f"{build.__name__}-{str(dtype).split('.')[-1]}"] = build, dtype, steps, traces, dtypes != BOTH
        return build

    return register


def arrays_of(value, name=""):
    """(name, array or number) of everything in nested results, modules, optimizers and tensors, gradients included."""
    if isinstance(value, tg.Tensor):
        yield name, value.detach().clone()
        yield f"{name}.requires_grad", value.requires_grad
        if value.is_leaf and value.grad is not None:
            yield f"{name}.grad", value.grad.detach().clone()
    elif isinstance(value, nn.Module):
        for key, t in [*value.named_parameters(), *value.named_buffers()]:
            yield from arrays_of(t, f"{name}.{key}")
    elif isinstance(value, optim.Optimizer):
        yield from arrays_of(value.state_dict(), f"{name}.{type(value).__name__}")
    elif isinstance(value, tg.Generator):
        yield name, value.get_state()
    elif isinstance(value, dict):
        for key, v in value.items():
            yield from arrays_of(v, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for i, v in enumerate(value):
            yield from arrays_of(v, f"{name}[{i}]")
    else:
        yield name, value


def history(build, steps, wrap):
    """What the program returned at each step, then its state and the random state."""
    tg.manual_seed(0)
    run, owners = build(wrap)
    found = [(f"step {i}{name}", v) for i in range(steps) for name, v in arrays_of(run(i))]
    found += arrays_of(owners, "after")
    return [*found, ("random state", tg.get_rng_state())]


@contextlib.contextmanager
def quickly(quick=True):
    """XLA compiles with few optimizations."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", before or quick)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


def same(name, got, expected):
    """Equal in type, dtype and shape; floating-point values within the tolerance of the dtype, by the largest one."""
    if not isinstance(expected, tg.Tensor):
        assert type(got) is type(expected) and got == expected, f"{name}: {got} for {expected}"
        return
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
    if expected.dtype == tg.bfloat16:
        got, expected = got.float(), expected.float()
    a, b = got.resolve_conj().numpy(), expected.resolve_conj().numpy()
    if b.dtype.kind not in "fc":
        assert np.array_equal(a, b), name
        return
    off, size = np.abs(a - b).max(initial=0), np.abs(b).max(initial=0)
    assert off <= TOLERANCE[b.real.dtype.itemsize] * size, f"{name}: off by {off / size:.1e}"


# ------------------------------------------------------------------------------------------------- higher-order programs


def mlp(*sizes, activation=nn.Tanh):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


@program(*BOTH)
def signed_distance(wrap):
    """The loss of signed distances: surface, eikonal and normal loss; the learning rate falls."""

    class Sine(nn.Module):
        def __init__(self, n_in, n_out, frequency):
            super().__init__()
            self.frequency = frequency
            self.linear = nn.Linear(n_in, n_out)

        def forward(self, x):
            return (self.frequency * self.linear(x)).sin()

    class DistanceField(nn.Module):
        def __init__(self):
            super().__init__()
            self.correction = nn.Sequential(Sine(3, 16, 3.0), Sine(16, 16, 3.0), nn.Linear(16, 1))

        def forward(self, x):
            return (x.square().sum(dim=1, keepdim=True) + 0.01) ** 0.5 + self.correction(x)

    model = DistanceField()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    @wrap
    def step(surface, normals, others):
        points = tg.cat([surface, others]).requires_grad_()
        distance = model(points)
        (gradient,) = grad(distance.sum(), points, create_graph=True)
        on_surface = distance[: len(surface)].abs().mean()
        eikonal = ((gradient.norm(dim=1) - 1) ** 2).mean()
        normal = (gradient[: len(surface)] - normals).norm(dim=1).mean()
        loss = 10 * on_surface + 2 * eikonal + normal
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), eikonal.detach()

    def run(i):
        optimizer.param_groups[0]["lr"] = 1e-3 * 0.9**i
        normals = F.normalize(tg.randn(12, 3), dim=1)
        return step(0.5 * normals, normals, 2 * tg.rand(10, 3) - 1)

    return run, [model, optimizer]


@program(tg.float32, traces=2)
def softplus_distance(wrap):
    """README: normals of a Softplus(beta=100) network; the points are a tensor of outside."""
    points = tg.rand(32, 3).requires_grad_()
    sdf = nn.Sequential(nn.Linear(3, 16), nn.Softplus(beta=100), nn.Linear(16, 1))
    optimizer = optim.Adam(sdf.parameters(), lr=1e-3)

    @wrap
    def step():
        optimizer.zero_grad()
        (normals,) = grad(sdf(points).sum(), points, create_graph=True)
        eikonal = ((normals.norm(dim=-1) - 1) ** 2).mean()
        eikonal.backward()
        optimizer.step()
        return eikonal.detach()

    return lambda i: step(), [sdf, optimizer, points]


@program(*BOTH)
def burgers(wrap):
    """u_t + u u_x = nu u_xx, with initial and boundary values."""
    net = mlp(2, 16, 16, 1)
    optimizer = optim.Adam(net.parameters(), lr=1e-3)
    nu = 0.01 / np.pi

    @wrap
    def step(x, t, x0):
        x, t = x.requires_grad_(), t.requires_grad_()
        u = net(tg.cat([x, t], dim=1))
        ones = tg.ones_like(u)
        u_x = grad(u, x, ones, create_graph=True)[0]
        u_t = grad(u, t, ones, create_graph=True)[0]
        u_xx = grad(u_x, x, ones, create_graph=True)[0]
        residual = (u_t + u * u_x - nu * u_xx).square().mean()
        start = F.mse_loss(net(tg.cat([x0, tg.zeros_like(x0)], dim=1)), -tg.sin(np.pi * x0))
        loss = residual + start
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return lambda i: step(2 * tg.rand(24, 1) - 1, tg.rand(24, 1), 2 * tg.rand(8, 1) - 1).detach(), [net, optimizer]


@program(*BOTH)
def wgan_gp(wrap):
    """A critic with a gradient penalty at random points between real and generated samples, and a generator's step."""
    critic, generator = mlp(2, 16, 1, activation=nn.LeakyReLU), mlp(4, 16, 2, activation=nn.ReLU)
    critic_optimizer = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    generator_optimizer = optim.RMSprop(generator.parameters(), lr=1e-4)

    @wrap
    def critic_step(real):
        critic_optimizer.zero_grad()
        fake = generator(tg.randn(len(real), 4)).detach()
        mix = tg.rand(len(real), 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_(True)
        (gradient,) = grad(
            critic(between), between, grad_outputs=tg.ones(len(real), 1), create_graph=True, retain_graph=True
        )
        penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        loss.backward()
        critic_optimizer.step()
        return loss.detach(), penalty.detach()

    @wrap
    def generator_step(z):
        generator_optimizer.zero_grad()
        loss = -critic(generator(z)).mean()
        loss.backward()
        generator_optimizer.step()
        return loss.detach()

    def run(i):
        return critic_step(tg.randn(16, 2) + 2), generator_step(tg.randn(16, 4)) if i % 2 else None

    return run, [critic, generator, critic_optimizer, generator_optimizer]


@program(*BOTH)
def maml(wrap):
    """Three inner steps on functional weights, differentiated through."""
    weights = [0.5 * tg.randn(1, 16), tg.zeros(16), 0.2 * tg.randn(16, 1), tg.zeros(1)]
    for w in weights:
        w.requires_grad_()
    optimizer = optim.Adam(weights, lr=1e-3)

    def net(x, w):
        return tg.tanh(x @ w[0] + w[1]) @ w[2] + w[3]

    @wrap
    def step(xs, ys, xq, yq):
        outer = 0.0
        for x, y, x2, y2 in zip(xs, ys, xq, yq, strict=True):
            fast = weights
            for _ in range(3):
                inner = F.mse_loss(net(x, fast), y)
                fast = [w - 0.05 * g for w, g in zip(fast, grad(inner, fast, create_graph=True), strict=True)]
            outer = outer + F.mse_loss(net(x2, fast), y2)
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()
        return outer.detach()

    def run(i):
        amplitude, phase = tg.rand(2, 1, 1) + 0.5, tg.rand(2, 1, 1)
        xs, xq = 4 * tg.rand(2, 8, 1) - 2, 4 * tg.rand(2, 8, 1) - 2
        return step(xs, amplitude * tg.sin(xs + phase), xq, amplitude * tg.sin(xq + phase))

    return run, [weights, optimizer]


@program(*BOTH)
def force_field(wrap):
    """Energies of pair distances; forces are their gradients, and the loss holds both."""
    net = mlp(1, 16, 1, activation=nn.SiLU)
    optimizer = optim.Adam(net.parameters(), lr=1e-3)
    i, j = np.triu_indices(5, 1)

    def energy(positions):
        distance = (positions[:, i] - positions[:, j]).square().sum(-1).sqrt()
        return net(distance[..., None]).sum((1, 2))

    @wrap
    def step(positions, energies, forces):
        positions.requires_grad_(True)
        e = energy(positions)
        f = -grad(e.sum(), positions, create_graph=True)[0]
        loss = F.mse_loss(e, energies) + 10 * F.mse_loss(f, forces)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), e.detach(), f.detach()

    return lambda i: step(tg.randn(4, 5, 3), tg.randn(4), tg.randn(4, 5, 3)), [net, optimizer]


@program(*BOTH)
def euler_beam(wrap):
    """u'''' = q with clamped ends."""
    net = mlp(1, 16, 1)
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    def derivative(y, x):
        return grad(y.sum(), x, create_graph=True)[0]

    @wrap
    def step(x):
        ends = tg.tensor([[0.0], [1.0]], requires_grad=True)
        u = net(x)
        u4 = u
        for _ in range(4):
            u4 = derivative(u4, x)
        at_ends = net(ends)
        loss = (u4 - 1).square().mean() + at_ends.square().sum() + derivative(at_ends, ends).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return lambda i: step(tg.rand(16, 1).requires_grad_()), [net, optimizer]


@program(*BOTH)
def newton_cg(wrap):
    """Newton's direction by five steps of conjugate gradients on Hessian-vector products."""
    net = mlp(2, 6, 1)
    parameters = list(net.parameters())
    x, y = tg.randn(20, 2), tg.randn(20, 1)

    def dot(a, b):
        return sum((u * v).sum() for u, v in zip(a, b, strict=True))

    @wrap
    def step():
        loss = F.mse_loss(net(x), y) + 0.5 * sum(p.square().sum() for p in parameters)
        gradients = grad(loss, parameters, create_graph=True)

        def product(v):
            return grad(dot(gradients, v), parameters, retain_graph=True)

        r = [-g.detach() for g in gradients]
        p, s, rr = r, [tg.zeros_like(q) for q in parameters], dot(r, r)
        for _ in range(5):
            hp = product(p)
            alpha = rr / dot(p, hp)
            s = [a + alpha * b for a, b in zip(s, p, strict=True)]
            r = [a - alpha * b for a, b in zip(r, hp, strict=True)]
            new = dot(r, r)
            p = [a + new / rr * b for a, b in zip(r, p, strict=True)]
            rr = new
        with tg.no_grad():
            for q, d in zip(parameters, s, strict=True):
                q += 0.3 * d
        return loss.detach()

    return lambda i: step(), [net]


# ---------------------------------------------------------------------------------------------------------------- layers


def trained(model, loss_of, optimizer, wrap):
    """A plain training step."""

    @wrap
    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        return loss

    return lambda *batch: step(*batch).detach()


def cross_entropy(model, x, y):
    return F.cross_entropy(model(x), y)


def labels(n, classes):
    return tg.randint(0, classes, (n,))


@program(*BOTH, traces=2)
def batchnorm_dropout(wrap):
    model = nn.Sequential(nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 4))
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    step = trained(model, cross_entropy, optimizer, wrap)

    def run(i):
        loss = step(tg.randn(16, 6), labels(16, 4))
        scheduler.step()
        return loss, scheduler.get_last_lr()

    return run, [model, optimizer]


@program(*BOTH)
def language_model(wrap):
    """Embedding, LSTM, next-token loss; the hidden state goes from step to step."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 6)
            self.lstm = nn.LSTM(6, 8, batch_first=True)
            self.head = nn.Linear(8, 11)

        def forward(self, tokens, state):
            y, state = self.lstm(self.embed(tokens), state)
            return self.head(y), state

    model = Model()
    optimizer = optim.Adam(model.parameters(), lr=1e-2)

    @wrap
    def step(tokens, h, c):
        optimizer.zero_grad()
        logits, (h, c) = model(tokens[:, :-1], (h, c))
        loss = F.cross_entropy(logits.reshape(-1, 11), tokens[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss.detach(), h.detach(), c.detach()

    state = [tg.zeros(1, 3, 8), tg.zeros(1, 3, 8)]

    def run(i):
        loss, *state[:] = step(tg.randint(0, 11, (3, 6)), *state)
        return loss

    return run, [model, optimizer, state]


@program(tg.float64)
def gru_sequence(wrap):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.head = nn.GRU(2, 8, bidirectional=True), nn.Linear(16, 1)

        def forward(self, x):
            return self.head(self.gru(x)[0][-1])

    model = Model()
    step = trained(model, lambda m, x, y: F.l1_loss(m(x), y), optim.Adagrad(model.parameters(), lr=0.05), wrap)
    return lambda i: step(tg.randn(6, 4, 2), tg.randn(4, 1)), [model]


@program(tg.float64)
@program(tg.float32)
def transformer_block(wrap):
    block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, activation="gelu")
    head = nn.Linear(8, 3)
    model = nn.Sequential(block, head)
    # The bias of the keys has no gradient but rounding, which the usual eps would make steps of.
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, weight_decay=0.1)

    def loss_of(model, x, y):
        return F.cross_entropy(model(x).mean(1), y, label_smoothing=0.1)

    step = trained(model, loss_of, optimizer, wrap)
    return lambda i: step(tg.randn(4, 5, 8), labels(4, 3)), [model, optimizer]


@program(tg.float64)
@program(tg.float32)
def convolutions(wrap):
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, stride=2), nn.GroupNorm(2, 4), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    optimizer = optim.NAdam(model.parameters(), lr=2e-3)
    step = trained(model, cross_entropy, optimizer, wrap)
    return lambda i: step(tg.randn(4, 1, 10, 10), labels(4, 3)), [model, optimizer]


# ------------------------------------------------------------------------------------------------------ ways of training


@program(tg.float64, traces=2)
def gradient_accumulation(wrap):
    model = mlp(3, 8, 1)
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9, centered=True)

    @wrap
    def accumulate(x):
        loss = model(x).square().mean() / 4
        loss.backward()
        return loss.detach()

    @wrap
    def update():
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    def run(i):
        loss = accumulate(tg.randn(5, 3))
        if i % 4 == 3:
            update()
        return loss

    return run, [model, optimizer]


@program(tg.float64)
def clipping(wrap):
    """By value and by norm, the norm returned."""
    model = mlp(3, 8, 1)
    optimizer = optim.Adadelta(model.parameters())

    @wrap
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.02)
        optimizer.step()
        return loss.detach(), norm

    return lambda i: step(tg.randn(5, 3)), [model, optimizer]


OPTIMIZERS = {
    "AdamW": {"amsgrad": True}, "RMSprop": {"alpha": 0.9}, "Adagrad": {"lr_decay": 0.01}, "NAdam": {}, "RAdam": {},
    "Adamax": {}, "ASGD": {"lr": 0.01, "t0": 5}, "Rprop": {}, "SGD": {"lr": 0.01, "momentum": 0.9, "nesterov": True},
}  # fmt: skip


@program(tg.float64, traces=2)
@program(tg.float32, steps=8, traces=2)
def every_optimizer(wrap):
    """One step moves nine copies of a model, each by its own optimizer."""
    first = mlp(3, 4, 1)
    models = [copy.deepcopy(first) for _ in OPTIMIZERS]
    optimizers = [getattr(optim, k)(m.parameters(), **v) for m, (k, v) in zip(models, OPTIMIZERS.items(), strict=True)]

    @wrap
    def step(x):
        losses = []
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

    return lambda i: step(tg.randn(5, 3)), [models, optimizers]


@program(tg.float64)
def two_optimizers(wrap):
    """A generator's and a discriminator's step in one function."""
    generator, critic = mlp(2, 8, 2), mlp(2, 8, 1)
    g_optimizer, c_optimizer = optim.Adam(generator.parameters(), lr=2e-3), optim.SGD(critic.parameters(), lr=0.05)

    @wrap
    def step(real):
        fake = generator(tg.randn(len(real), 2))
        ones, zeros = tg.ones(len(real), 1), tg.zeros(len(real), 1)
        c_optimizer.zero_grad()
        c_loss = F.binary_cross_entropy_with_logits(critic(real), ones)
        c_loss = c_loss + F.binary_cross_entropy_with_logits(critic(fake.detach()), zeros)
        c_loss.backward()
        c_optimizer.step()
        g_optimizer.zero_grad()
        g_loss = F.binary_cross_entropy_with_logits(critic(fake), ones)
        g_loss.backward()
        g_optimizer.step()
        return c_loss.detach(), g_loss.detach()

    return lambda i: step(tg.randn(6, 2) + 1), [generator, critic, g_optimizer, c_optimizer]


@program(tg.float64)
def moving_average(wrap):
    """EMA weights by hand and by AveragedModel; groups with and without weight decay."""
    model = mlp(3, 8, 1)
    teacher = copy.deepcopy(model).requires_grad_(False)
    averaged = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9))
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0, "lr": 0.02}]
    optimizer = optim.AdamW(groups, lr=0.01)

    @wrap
    def step(x):
        optimizer.zero_grad()
        with tg.no_grad():
            target = teacher(x)
        loss = F.mse_loss(model(x), target + 1)
        loss.backward()
        optimizer.step()
        with tg.no_grad():
            for slow, fast in zip(teacher.parameters(), model.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)
        return loss.detach()

    def run(i):
        loss = step(tg.randn(5, 3))
        averaged.update_parameters(model)
        return loss

    return run, [model, teacher, averaged, optimizer]


@program(tg.float64)
def evaluated(wrap):
    """The same weights under no_grad, in a compiled function of their own; the model's mode changes between."""
    model = nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
    step = trained(model, lambda m, x: m(x).square().mean(), optim.SGD(model.parameters(), lr=0.1), wrap)
    held_out = tg.randn(4, 3)

    @wrap
    def validate(x):
        with tg.no_grad():
            return model(x)

    @wrap
    @tg.no_grad()
    def decorated(x):
        return model(x).sum()

    def run(i):
        model.train()
        loss = step(tg.randn(6, 3))
        model.eval()
        found = validate(held_out), decorated(held_out)
        with tg.no_grad():
            return loss, found, decorated(held_out)

    return run, [model]


@program(tg.float64)
def inference(wrap):
    model = mlp(3, 8, 1)

    @wrap
    def predict(x):
        return model(x)

    def run(i):
        with tg.no_grad():
            for p in model.parameters():
                p.add_(0.01)
        with tg.inference_mode():
            return predict(tg.randn(2, 3))

    return run, [model]


# ------------------------------------------------------------------------------------------------------------ transforms


@program(tg.float64)
def per_sample_gradients(wrap):
    """vmap(grad(loss)) over samples, clipped one by one, summed."""
    model = mlp(3, 6, 1)

    @wrap
    def step(x, y):
        weights = {k: p.detach() for k, p in model.named_parameters()}

        def loss(weights, x, y):
            return F.mse_loss(tg.func.functional_call(model, weights, (x[None],)), y[None])

        gradients = tg.func.vmap(tg.func.grad(loss), in_dims=(None, 0, 0))(weights, x, y)
        norms = sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()
        scale = (1 / norms).clamp(max=1.0)
        with tg.no_grad():
            for k, p in model.named_parameters():
                p -= 0.05 * tg.einsum("i,i...->...", scale, gradients[k])
        return norms

    return lambda i: step(tg.randn(5, 3), tg.randn(5, 1)), [model]


@program(tg.float64)
def laplacian(wrap):
    """Poisson's equation by the forward Laplacian, trained."""
    net = mlp(2, 8, 1)
    optimizer = optim.Adam(net.parameters(), lr=1e-2)

    @wrap
    def step(x):
        optimizer.zero_grad()
        lap = tg.func.laplacian(lambda p: net(p[None]).squeeze())
        loss = tg.func.vmap(lambda p: (lap(p) - 1) ** 2)(x).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return lambda i: step(tg.rand(6, 2)), [net, optimizer]


@program(tg.float64)
def functional_weights(wrap):
    """functional_call with value_and_grad; the weights are arguments and results."""
    model = mlp(2, 6, 1)

    @wrap
    def step(weights, x):
        def loss(w):
            return tg.func.functional_call(model, w, (x,)).square().mean()

        gradients, value = tg.func.grad_and_value(loss)(weights)
        hessian = tg.func.hessian(loss)(weights)["2.bias"]["2.bias"]
        return {k: w - 0.1 * gradients[k] for k, w in weights.items()}, value, hessian

    held = [OrderedDict((k, p.detach().clone()) for k, p in model.named_parameters())]

    def run(i):
        held[0], value, hessian = step(held[0], tg.randn(4, 2))
        return value, hessian, type(held[0]).__name__

    return run, [held, model]


@program(tg.float64, traces=2)
def jacobians(wrap):
    """jvp, jacrev, jacfwd and hessian inside, all of functions of captured parameters."""
    net = mlp(2, 5, 2)
    w = tg.randn(2, requires_grad=True)

    @wrap
    def step(x):
        def f(v):
            return net(v * w)

        value, tangent = tg.func.jvp(f, (x,), (tg.ones(2),))
        jacobian = tg.func.jacrev(f)(x)
        hessian = tg.func.jacfwd(tg.func.jacrev(f))(x)
        loss = value.sum() + tangent.square().sum() + jacobian.square().sum() + hessian.square().sum()
        loss.backward()
        with tg.no_grad():
            w.sub_(0.01 * w.grad)
        w.grad = None
        return loss.detach(), jacobian.detach(), hessian.detach()

    return lambda i: step(tg.randn(2)), [net, w]


# ----------------------------------------------------------------------------------------------------------- the autograd


@program(tg.float64)
def checkpointed(wrap):
    first, second = mlp(3, 8, 8), mlp(8, 8, 1)
    optimizer = optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)

    @wrap
    def step(x):
        optimizer.zero_grad()
        h = tg.utils.checkpoint.checkpoint(lambda v: F.dropout(first(v), 0.2).tanh(), x, use_reentrant=False)
        loss = second(h).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return lambda i: step(tg.randn(4, 3)), [first, second, optimizer]


@program(tg.float64, traces=2)
def custom_functions(wrap):
    """An autograd.Function whose backward is differentiated, and operations made by tg.custom."""

    class Cubed(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return scale * x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * ctx.scale * g * x**2, None

    hill = tg.custom.elementwise("hill", lambda x: np.exp(-x * x), lambda xp, ans, x: -2 * x * ans)
    difference = np.diag(np.ones(3), 1) - np.eye(4)
    slope = tg.custom.linear("slope", lambda u: difference @ u, lambda g: difference.T @ g, samples=[np.arange(4.0)])
    w = tg.randn(4, requires_grad=True)

    @wrap
    def step(x):
        y = Cubed.apply(w * x, 0.5).sum() + slope(hill(w * x)).square().sum()
        (g,) = grad(y, w, create_graph=True)
        (y + g.square().sum()).backward()
        with tg.no_grad():
            w.sub_(0.01 * w.grad)
            w.grad.zero_()
        return y.detach(), g.detach()

    return lambda i: step(0.3 * tg.randn(4)), [w]


@program(tg.float64, traces=2)
def several_backwards(wrap):
    """retain_graph, backward(create_graph=True) twice, backward of two roots with given cotangents."""
    w = tg.randn(3, requires_grad=True)
    v = tg.randn(3, requires_grad=True)

    @wrap
    def step(x):
        a, b = (w * x).sin().sum(), (w * v * x).exp().sum()
        a.backward(retain_graph=True)
        tg.autograd.backward([a, b], [tg.tensor(0.5, dtype=a.dtype), tg.ones_like(b)])
        first = w.grad.clone()
        w.grad = v.grad = None
        loss = (w * v).tanh().sum()
        loss.backward(create_graph=True)
        penalty = w.grad.square().sum() + v.grad.square().sum()
        w.grad = v.grad = None
        penalty.backward()
        with tg.no_grad():
            w.sub_(0.05 * w.grad)
            v.sub_(0.05 * v.grad)
        return first, penalty.detach()

    return lambda i: step(tg.randn(3)), [w, v]


@program(tg.float64, traces=2)
def written_in_place(wrap):
    """Buffers filled row by row, views written through, masks, scatter and gather by traced indices."""
    table = tg.zeros(6, 3)
    counts = tg.zeros(6, dtype=tg.int64)
    w = tg.randn(3, requires_grad=True)

    @wrap
    def step(x, index):
        rows = tg.zeros(4, 3)
        for k in range(4):
            rows[k] = tg.tanh(w * x[k]) + (rows[k - 1] if k else 0)
        rows[:, 0].mul_(2.0)
        rows = tg.where(rows > 0.5, rows * 0.5, rows)
        rows.masked_fill_(x > 1.5, 0.1)
        loss = rows.square().sum()
        loss.backward()
        with tg.no_grad():
            w.sub_(0.01 * w.grad)
            w.grad.zero_()
            table.index_add_(0, index, rows)
            table[index[0]] += 1.0
            counts[index] += 1
            counts.t()[0] = counts.sum()
        return loss.detach(), table[index].clone()

    return lambda i: step(tg.randn(4, 3), tg.randint(0, 6, (4,))), [table, counts, w]


@program(tg.float64)
def complex_parameters(wrap):
    w = tg.randn(4, dtype=tg.complex128, requires_grad=True)
    optimizer = optim.Adam([w], lr=0.01)

    @wrap
    def step(x):
        optimizer.zero_grad()
        y = tg.fft.ifft(tg.fft.fft(x * w) * w.conj())
        loss = (y * y.conj()).real.sum() + y.abs().sum()
        loss.backward()
        optimizer.step()
        return loss.detach(), y.detach()

    return lambda i: step(tg.randn(4, dtype=tg.complex128)), [w, optimizer]


# ------------------------------------------------------------------------------------------------- compiled beside eager


@program(tg.float64, traces=2)
def touched_between(wrap):
    """Parameters read, rewritten, loaded, copied and pickled between the steps."""
    model = mlp(3, 6, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    step = trained(model, lambda m, x: m(x).square().mean(), optimizer, wrap)
    best = {k: t.clone() for k, t in model.state_dict().items()}

    def run(i):
        loss = step(tg.randn(5, 3))
        found = [tg.tensor(p.detach().numpy()) for p in model.parameters()] if i % 2 else None
        if i % 5 == 1:
            with tg.no_grad():
                model[0].weight.mul_(0.9)
                model[2].bias.data = model[2].bias.data + 0.1
        if i % 5 == 2:
            copied, state = copy.deepcopy(model), copy.deepcopy(optimizer.state_dict())
            found = list(arrays_of([copied, state]))
        if i % 5 == 3:
            model.load_state_dict(best)
        if i == 13:  # its state is other tensors now
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        if i % 5 == 4:
            again = pickle.loads(pickle.dumps(model))
            file = io.BytesIO()
            tg.save(model.state_dict(), file)
            file.seek(0)
            found = [*arrays_of(again), *arrays_of(tg.load(file))]
        return loss, found

    return run, [model, optimizer, best]


@program(tg.float64, traces=2)
def eager_steps_between(wrap):
    """Every third step is an eager one of the same function, on the same optimizer."""
    model = nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.Dropout(0.1), nn.Linear(6, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = wrap(step)
    return lambda i: (step if i % 3 == 1 else compiled)(tg.randn(5, 3)), [model, optimizer]


@program(tg.float64)
def eager_backward(wrap):
    """The model alone is compiled, loss and backward are eager; twice differentiated by the points."""
    model = mlp(3, 8, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    field = wrap(lambda x: model(x))

    def run(i):
        x = tg.randn(5, 3, requires_grad=True)
        y = field(x)
        (n,) = grad(y.sum(), x, create_graph=True)
        loss = ((n.norm(dim=1) - 1) ** 2).mean() + y.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), y.requires_grad, n.detach(), x.grad.detach()

    return run, [model, optimizer]


@program(tg.float64, steps=5)
def results_kept(wrap):
    """State, gradients, views and arguments returned by each step and looked at after the last one."""
    w, b = tg.randn(3, requires_grad=True), tg.zeros(3)
    kept = []

    @wrap
    def step(x):
        w.grad = None
        loss = (w * x).sin().sum()
        loss.backward()
        with tg.no_grad():
            w.sub_(0.1 * w.grad)
            b.add_(w)
        copied = w.detach().clone()
        views = b, b[0], b.view(3, 1)
        return {"loss": loss.detach(), "w": w.detach(), "b": views, "g": w.grad, "x": x, "again": [copied, copied]}

    def run(i):
        kept.append(step(tg.randn(3)))
        kept[-1]["b"] = tuple(t.clone() for t in kept[-1]["b"])
        return kept[-1]["loss"]

    return run, [kept, w, b]


@program(tg.float64, steps=8)
def own_generator(wrap):
    """Draws from two generators, and from one that another compiled function uses too."""
    g, h = tg.Generator().manual_seed(1), tg.Generator().manual_seed(2)

    @wrap
    def both(x):
        return x * tg.rand(3, generator=g) + tg.randn(3, generator=h) + tg.randperm(3, generator=g) + tg.rand(3)

    @wrap
    def one(x):
        return tg.bernoulli(x.sigmoid() * 0 + 0.5, generator=g) if False else x + tg.randint(0, 9, (3,), generator=g)

    return lambda i: (both(tg.ones(3)), one(tg.ones(3)), tg.rand(2, generator=g)), [g, h]


@program(tg.float64, steps=8)
def tied_and_normed(wrap):
    """A head tied to the embedding, weight_norm and spectral_norm."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight
            self.middle = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
            self.last = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))

        def forward(self, tokens):
            return self.head(self.last(self.middle(self.embed(tokens)).tanh()))

    model = Model()
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    step = trained(model, cross_entropy, optimizer, wrap)
    return lambda i: step(tg.randint(0, 7, (6,)), labels(6, 7)), [model, optimizer]


@program(tg.float64, steps=10)
def trainer(wrap):
    """Methods, a dict of data, keywords, batches of two sizes, one of them compiled first."""

    class Trainer:
        def __init__(self):
            self.model = mlp(3, 4, 1)
            self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
            self.scale = 2.0

        def loss(self, batch):
            return self.scale * F.mse_loss(self.model(batch["x"]), batch["y"])

        def step(self, batch, clip=None):
            self.optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), clip)
            self.optimizer.step()
            return {"loss": loss.detach(), "size": len(batch["x"])}

    t = Trainer()
    step = wrap(t.step)

    def run(i):
        n = 2 if i % 3 == 2 else 4
        return step({"x": tg.randn(n, 3), "y": tg.randn(n, 1)}, **({"clip": 0.5} if i % 2 else {}))

    return run, [t.model]


@program(tg.float64, steps=12, traces=8)
def changed_between(wrap):
    """Layers frozen, a parameter replaced, a group added, settings changed, another activation."""
    model = mlp(3, 4, 1)
    optimizer = optim.SGD(model[0].parameters(), lr=0.1)
    step = trained(model, lambda m, x: (m(x) - 1).square().mean(), optimizer, wrap)

    def run(i):
        if i == 3:
            model[0].bias.requires_grad_(False)
        if i == 5:
            model[2].weight = nn.Parameter(model[2].weight.detach() * 2)
            optimizer.add_param_group({"params": model[2].parameters(), "lr": 0.05})
        if i == 7:
            optimizer.param_groups[1]["weight_decay"] = 0.1
        if i == 9:
            model[1] = nn.Softplus()
        return step(tg.randn(4, 3))

    return run, [model, optimizer]


@program(tg.float64, steps=4)
def several_inputs_and_outputs(wrap):
    """A compiled function in the middle of an eager graph: one input depends on the other; differentiated twice."""
    w, v = tg.full((3,), 0.1, requires_grad=True), tg.randn(3, requires_grad=True)
    f = wrap(lambda x, y: ((x * v).sin() * y, (x + y).sum()))

    def run(i):
        x = (w * 2).exp()
        a, b = f(x, x * 3)
        (g,) = grad(a.sum() * b, w, create_graph=True)
        (h,) = grad(g.square().sum(), v, retain_graph=True)
        (a.sum() * b).backward()
        return g.detach(), h

    return run, [w, v]


@program(tg.float64, steps=4)
def results_unused(wrap):
    """Tensors on which only unused results depend get no gradient, not zeros; weights change before the backward pass."""
    layer = nn.Linear(3, 4)
    f = wrap(lambda x: (layer(x), x**2, x.detach() * 3))

    @wrap
    def shrink():
        with tg.no_grad():
            layer.weight.mul_(0.9)

    def run(i):
        x = tg.randn(2, 3, requires_grad=True)
        a, b, c = f(x)
        shrink()
        (b.sum() if i % 2 else a.square().sum()).backward()
        found = x.grad, layer.weight.grad, c.requires_grad, a.detach()
        layer.zero_grad()
        return found

    return run, [layer]


@program(tg.float64, steps=4, traces=2)
def modes(wrap):
    """no_grad and enable_grad inside, called under both."""
    w = tg.ones(3, requires_grad=True)

    @wrap
    def f(x):
        with tg.no_grad():
            a = (w * x).sum()
        with tg.enable_grad():
            b = (w * x).square().sum()
        return a, b, (w * x).sum(), tg.is_grad_enabled()

    def run(i):
        with tg.set_grad_enabled(i % 2 == 0):
            return f(tg.randn(3))

    return run, [w]


@program(tg.float64, steps=4)
def higher_orders(wrap):
    """Derivatives of order 0 to 4 of a compiled function, by the tape and by transforms; compiled inside compiled."""
    w = tg.randn(3)
    f = wrap(lambda x: (x.sin() * x**2 * w).sum())
    both = wrap(lambda x: (f(x), tg.func.grad(f)(x), tg.func.hessian(f)(x)))

    def run(i):
        x = tg.randn(3, requires_grad=True)
        found = [f(x)]
        for _ in range(4):
            found += grad(found[-1].sum(), x, create_graph=True)
        p = tg.randn(3)
        by_func = tg.func.grad(f)(p), tg.func.hessian(f)(p), tg.func.jvp(f, (p,), (p,)), tg.func.vmap(f)(tg.stack([p, -p]))
        return [y.detach() for y in found], by_func, both(p)

    return run, [w]


@program(tg.float64, steps=6)
def module_compiled(wrap):
    """A module with BatchNorm and Dropout is compiled, the rest of the step is eager."""
    inner = nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.Dropout(0.2), nn.Linear(6, 1))
    model = wrap(inner)
    optimizer = optim.SGD(inner.parameters(), lr=0.1, momentum=0.5)

    def run(i):
        optimizer.zero_grad()
        x = tg.randn(5, 3, requires_grad=True)
        y = model(x)
        loss = y.square().mean() + grad(y.sum(), x, create_graph=True)[0].square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return run, [inner, optimizer]


@program(tg.float64, steps=6, traces=2)
def cyclic_momentum(wrap):
    """OneCycleLR changes the learning rate and beta1 at each step."""
    model = mlp(3, 4, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
    step = trained(model, lambda m, x: m(x).square().mean(), optimizer, wrap)

    def run(i):
        loss = step(tg.randn(4, 3))
        scheduler.step()
        return loss

    return run, [model, optimizer]


@program(tg.float64, steps=8, traces=3)
def gradient_scaler(wrap):
    w = tg.randn(3, requires_grad=True)
    optimizer, scaler = optim.SGD([w], lr=0.1, momentum=0.5), tg.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    @wrap
    def step(x):
        optimizer.zero_grad()
        loss = (w * x).square().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach().clamp(max=1e3)

    return lambda i: (step(tg.randn(3) * (1e300 if i == 4 else 1)), scaler.get_scale()), [w, optimizer]


@program(tg.float64, steps=6, traces=2)
def hooks(wrap):
    """Hooks on tensors, parameters, modules, gradients and the optimizer, which compute and keep nothing."""
    model = mlp(3, 4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model[0].weight.register_hook(lambda g: g.clamp(-0.05, 0.05))
    model[2].bias.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(0.5), None)[1])
    model[0].register_forward_hook(lambda m, args, out: out * 1.5)
    model[2].register_forward_pre_hook(lambda m, args: (args[0] + 0.1,))
    model[1].register_full_backward_hook(lambda m, g_in, g_out: (2 * g_in[0],))

    def loss_of(m, x):
        h = m(x)
        h.register_hook(lambda g: g * 0.9)
        return h.square().mean()

    step = trained(model, loss_of, optimizer, wrap)
    return lambda i: step(tg.randn(4, 3)), [model]


@program(tg.float64, steps=6, traces=3)
def counts_in_python(wrap):
    w, box = tg.randn(3), {"calls": 0, "losses": []}

    @wrap
    def step(x):
        box["calls"] += 1
        w.add_(x, alpha=box["calls"])
        box["losses"].append(w.sum())
        return w.mean()

    return lambda i: step(tg.randn(3)), [w, box]


@program(tg.float32, steps=8)
def autocast(wrap):
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.05)

    @wrap
    def step(x):
        optimizer.zero_grad()
        with tg.autocast("cpu", dtype=tg.bfloat16):
            y = model(x)
            loss = y.float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach(), y.detach()

    return lambda i: step(tg.randn(4, 3)), [model]


LONG = {
    "autocast", "batchnorm_dropout", "burgers", "complex_parameters", "convolutions", "custom_functions", "euler_beam",
    "force_field", "gru_sequence", "jacobians", "language_model", "moving_average", "newton_cg", "per_sample_gradients",
    "softplus_distance", "tied_and_normed", "trainer", "transformer_block", "two_optimizers", "wgan_gp",
}  # fmt: skip
"""Programs that take XLA long, each of layers, orders and steps that a shorter one has, too."""


def marks(name):
    """A program in float32 repeats the one in float64, if there is one."""
    repeated = name.endswith("-float32") and name.replace("32", "64") in PROGRAMS
    return [pytest.mark.exhaustive] if repeated or name.split("-")[0] in LONG else []


@pytest.mark.every(3)
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in PROGRAMS])
def test_compiled_equals_eager(name):
    build, dtype, steps, traces, quick = PROGRAMS[name]
    compiled = []

    def wrap(function):
        made = tg.compile(function, fullgraph=True)
        compiled.append(made.__dict__.get("_compiled", made))
        return made

    default = tg.get_default_dtype()
    tg.set_default_dtype(dtype)
    try:
        expected = history(build, steps, lambda function: function)
        with quickly(quick):
            got = history(build, steps, wrap)
    finally:
        tg.set_default_dtype(default)
    for c in compiled:
        for specialization in c.specializations.values():
            assert len(specialization.history) <= traces, specialization.history
    assert [name for name, _ in got] == [name for name, _ in expected]
    for (name, a), (_, b) in zip(got, expected, strict=True):
        same(name, a, b)


# ------------------------------------------------------------------------------------- what no program can do: eager again


FALLBACKS = {}


def falls_back(build):
    FALLBACKS[build.__name__] = build
    return build


@falls_back
def reads_a_value(wrap):
    w = tg.randn(3, requires_grad=True)
    log = []

    @wrap
    def step(x):
        loss = (w * x).square().sum()
        loss.backward()
        with tg.no_grad():
            w.sub_(w.grad, alpha=0.1 if loss.item() < 2 else 0.01)
        w.grad = None
        log.append(float(loss))
        return loss.detach()

    return lambda i: step(tg.randn(3)), [w, log]


@falls_back
def scheduler_inside(wrap):
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    @wrap
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach(), optimizer.param_groups[0]["lr"]

    return lambda i: step(tg.randn(4, 2)), [model, scheduler.state_dict()]


@falls_back
def hooks_that_keep(wrap):
    w, seen = tg.randn(3, requires_grad=True), []
    w.register_hook(lambda g: seen.append(g.sum()))

    @wrap
    def step(x):
        w.grad = None
        loss = (w * x).square().sum()
        loss.backward()
        return loss.detach()

    return lambda i: step(tg.randn(3)), [w, seen]


@falls_back
def shapes_by_values(wrap):
    w = tg.randn(3, requires_grad=True)

    @wrap
    def step(x):
        chosen = x[x > 0]
        w.grad = None
        loss = (w.sum() * chosen).square().sum() + tg.unique(chosen.round()).sum()
        loss.backward()
        return loss.detach(), chosen

    return lambda i: step(tg.randn(6)), [w]


@falls_back
def numpy_inside(wrap):
    w = tg.randn(3)
    total = np.zeros(3)

    @wrap
    def step(x):
        nonlocal total
        total += x.numpy()
        w.add_(tg.from_numpy(np.cumsum(x.numpy())))
        return w.sum()

    return lambda i: step(tg.randn(3)), [w, tg.from_numpy(total)]


@falls_back
def python_randomness(wrap):
    w = tg.ones(3)
    rng = np.random.default_rng(0)

    @wrap
    def step(x):
        w.mul_(float(rng.uniform()))
        return (w * x).sum()

    return lambda i: step(tg.randn(3)), [w]


@pytest.mark.parametrize("name", FALLBACKS)
def test_falls_back_to_eager(name):
    """Without fullgraph such a function gives the same results, effects happen once a call, and a warning says why."""
    tg.manual_seed(0)
    expected = history(FALLBACKS[name], 6, lambda function: function)
    with pytest.warns(UserWarning, match="runs eagerly") as warned, quickly():
        got = history(FALLBACKS[name], 6, tg.compile)
    assert len([w for w in warned if "runs eagerly" in str(w.message)]) == 1
    assert [name for name, _ in got] == [name for name, _ in expected]
    for (name, a), (_, b) in zip(got, expected, strict=True):
        same(name, a, b)


@pytest.mark.parametrize("name", FALLBACKS)
def test_fullgraph_refuses(name):
    with pytest.raises(RuntimeError, match="cannot be compiled|tapegrad.compile"):
        history(FALLBACKS[name], 6, lambda function: tg.compile(function, fullgraph=True))

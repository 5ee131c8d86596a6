"""Training scripts as people write them, in small: compiled they leave the world that they leave eagerly; none falls back.

Each script is a function of `wrap`, which makes its step; it returns what runs step i, and what is compared besides results.
"""

import collections
import copy
import itertools
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.nn import functional as F

pytest.importorskip("jax")
from compile_worlds import interpreted, worlds

grad = tg.autograd.grad
SCRIPTS = {}


def script(steps=4, exhaustive=False):
    def register(function):
        SCRIPTS[function.__name__] = function, steps, [pytest.mark.exhaustive] * exhaustive
        return function

    return register


def data(i, *shape):
    """The same numbers for step i in each world."""
    return tg.tensor(np.random.default_rng(i).standard_normal(shape), dtype=tg.float64)


def mlp(*sizes, activation=nn.Tanh):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b, dtype=tg.float64), activation()]
    return nn.Sequential(*layers[:-1])


class Sine(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out, dtype=tg.float64)

    def forward(self, x):
        return tg.sin(5.0 * self.linear(x))


@script(steps=4)
def pinn_with_lbfgs(wrap):
    """Burgers' equation: the closure is compiled, the line search runs eagerly."""
    net = mlp(2, 6, 1)
    optimizer = optim.LBFGS(net.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    points, history = data(0, 8, 2), []

    @wrap
    def closure():
        optimizer.zero_grad()
        z = points.clone().requires_grad_(True)
        u = net(z)
        du = grad(u.sum(), z, create_graph=True)[0]
        uxx = grad(du[:, 0].sum(), z, create_graph=True)[0][:, 0]
        residual = du[:, 1] + u[:, 0] * du[:, 0] - 0.01 * uxx
        loss = residual.square().mean() + (u + tg.sin(math.pi * z[:, :1])).square().mean()
        loss.backward()
        return loss

    def step(i):
        loss = optimizer.step(closure)
        history.append(loss.item())
        return history[-1]

    return step, {"net": net, "history": history, "points": points}


@script(steps=4)
def pinn_with_lbfgs_inside(wrap):
    """The whole step is wrapped: what it calls with values, the optimizer, runs eagerly, and the closure compiled."""
    net = mlp(2, 6, 1)
    optimizer = optim.LBFGS(net.parameters(), lr=0.5, max_iter=3)

    def residual(z):
        u = net(z)
        (du,) = grad(u.sum(), z, create_graph=True)
        return du[:, 1] + u[:, 0] * du[:, 0]

    @wrap
    def step(points):
        def closure():
            optimizer.zero_grad()
            z = points.clone().requires_grad_(True)
            loss = residual(z).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return lambda i: step(data(i // 2, 8, 2)).item(), {"net": net}


@script(exhaustive=True)
def siren_with_laplacian(wrap):
    net = nn.Sequential(Sine(2, 8), Sine(8, 8), nn.Linear(8, 1, dtype=tg.float64))
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    def forward(coords):
        coords = coords.clone().detach().requires_grad_(True)
        return net(coords), coords

    def laplace(y, x):
        (g,) = grad(y, x, tg.ones_like(y), create_graph=True)
        div = 0.0
        for i in range(g.shape[-1]):
            div += grad(g[..., i], x, tg.ones_like(g[..., i]), create_graph=True)[0][..., i : i + 1]
        return div

    @wrap
    def step(coords, target):
        out, x = forward(coords)
        loss = (laplace(out, x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = []

    def run(i):
        losses.append(step(data(i, 6, 2), data(i + 9, 6, 1)).item())

    return run, {"net": net, "optimizer": optimizer, "losses": losses}


@script()
def siren_differentiated_outside(wrap):
    """The model's (output, coords) are differentiated outside, as in SIREN's notebook."""
    net = nn.Sequential(Sine(2, 8), nn.Linear(8, 1, dtype=tg.float64))
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    @wrap
    def model(coords):
        coords = coords.clone().detach().requires_grad_(True)
        return net(coords), coords

    def step(i):
        out, coords = model(data(i, 6, 2))
        (g,) = grad(out.sum(), coords, create_graph=True)
        loss = (g - data(i + 9, 6, 2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, {"net": net, "optimizer": optimizer}


@script()
def wgan_gp(wrap):
    G, D = mlp(2, 8, 2, activation=nn.ReLU), mlp(2, 8, 1, activation=nn.LeakyReLU)
    opt_g, opt_d = (
        optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9)),
        optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9)),
    )
    errors = {"d": [], "g": []}

    def gradient_penalty(real, fake):
        alpha = tg.rand(real.size(0), 1, dtype=tg.float64)
        mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        scores = D(mixed)
        (g,) = grad(outputs=scores, inputs=mixed, grad_outputs=tg.ones_like(scores), create_graph=True, retain_graph=True)
        return ((g.norm(2, dim=1) - 1) ** 2).mean()

    @wrap
    def critic_step(real):
        opt_d.zero_grad()
        fake = G(tg.randn(real.size(0), 2, dtype=tg.float64)).detach()
        loss = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(real, fake)
        loss.backward()
        opt_d.step()
        return loss.item()

    @wrap
    def generator_step(n):
        opt_g.zero_grad()
        loss = -D(G(tg.randn(n, 2, dtype=tg.float64))).mean()
        loss.backward()
        opt_g.step()
        return loss.item()

    def step(i):
        for k in range(2):
            errors["d"].append(critic_step(data(2 * i + k, 6, 2)))
        errors["g"].append(generator_step(6))

    return step, {"G": G, "D": D, "opt_g": opt_g, "opt_d": opt_d, "errors": errors}


@script(exhaustive=True)
def neural_ode(wrap):
    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = mlp(2, 8, 2)
            self.evaluations = 0

        def forward(self, t, y):
            self.evaluations += 1
            return self.net(y**3)

    func = Field()
    optimizer = optim.RMSprop(func.parameters(), lr=1e-2)

    def rk4(y, t0, t1):
        h = t1 - t0
        k1 = func(t0, y)
        k2 = func(t0 + h / 2, y + h / 2 * k1)
        k3 = func(t0 + h / 2, y + h / 2 * k2)
        k4 = func(t1, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @wrap
    def step(y0, times, target):
        optimizer.zero_grad()
        ys = [y0]
        for a, b in itertools.pairwise(times):
            ys.append(rk4(ys[-1], a, b))
        loss = (tg.stack(ys) - target).abs().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    times = tg.linspace(0.0, 1.0, 4, dtype=tg.float64)
    return lambda i: step(data(i, 3, 2), times, data(i + 9, 4, 3, 2)), {"func": func, "optimizer": optimizer}


@script(exhaustive=True)
def hamiltonian_net(wrap):
    class HNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.energy = mlp(2, 8, 1)

        def forward(self, x):
            return self.energy(x)

        def time_derivative(self, x):
            (dH,) = grad(self(x).sum(), x, create_graph=True)
            q, p = dH.split(1, dim=-1)
            return tg.cat([p, -q], dim=-1)

    model = HNN()
    optimizer = optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    stats = {"train_loss": [], "test_loss": []}

    @wrap
    def train_step(x, dxdt):
        loss = F.mse_loss(model.time_derivative(x), dxdt)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    @wrap
    def evaluate(x, dxdt):
        return F.mse_loss(model.time_derivative(x), dxdt).item()

    def step(i):
        x = data(i, 5, 2).requires_grad_()
        stats["train_loss"].append(train_step(x, data(i + 9, 5, 2)).item())
        stats["test_loss"].append(evaluate(x, data(i + 9, 5, 2)))

    return step, {"model": model, "optimizer": optimizer, "stats": stats}


@script(exhaustive=True)
def volume_rendering(wrap):
    """NeRF: positional encoding, stratified samples along rays, transmittance by cumprod."""
    net = mlp(12, 16, 4, activation=nn.ReLU)
    optimizer = optim.Adam(net.parameters(), lr=5e-3)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    psnrs = []

    def encode(x):
        return tg.cat([f(2.0**k * x) for k in range(2) for f in (tg.sin, tg.cos)], -1)

    def render(origins, directions, n=6):
        t = tg.linspace(0.5, 2.0, n, dtype=tg.float64).expand(origins.shape[0], n)
        t = t + tg.rand(t.shape, dtype=tg.float64) * (1.5 / n)
        points = origins[:, None, :] + directions[:, None, :] * t[..., None]
        raw = net(encode(points))
        rgb, sigma = tg.sigmoid(raw[..., :3]), F.relu(raw[..., 3])
        delta = tg.cat([t[:, 1:] - t[:, :-1], tg.full_like(t[:, :1], 1e10)], -1)
        alpha = 1 - tg.exp(-sigma * delta)
        weights = alpha * tg.cumprod(tg.cat([tg.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return (weights[..., None] * rgb).sum(-2), (weights * t).sum(-1)

    @wrap
    def step(origins, directions, target):
        rgb, depth = render(origins, F.normalize(directions, dim=-1))
        loss = F.mse_loss(rgb, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        psnr = -10.0 * tg.log10(loss.detach())
        return {"loss": loss.detach(), "psnr": psnr, "depth": depth.detach()}

    def run(i):
        out = step(data(i, 4, 3), data(i + 9, 4, 3), data(i + 20, 4, 3).sigmoid())
        psnrs.append(out["psnr"].item())
        scheduler.step()
        return out

    return run, {"net": net, "optimizer": optimizer, "psnrs": psnrs}


@script(exhaustive=True)
def molecular_dynamics(wrap):
    """Velocity Verlet in a Lennard-Jones box; forces are gradients of the energy, positions are written in place."""
    positions, velocities = data(0, 4, 3) * 2, data(1, 4, 3) * 0.1
    state = {"forces": tg.zeros(4, 3, dtype=tg.float64), "step": 0}
    trajectory = []
    rows, columns = np.triu_indices(4, 1)
    first, second = tg.tensor(rows), tg.tensor(columns)

    def energy(r):
        d = r[first] - r[second]
        inverse = 1.0 / ((d * d).sum(-1) + 0.5) ** 3
        return (4 * (inverse**2 - inverse)).sum()

    def force(r):
        r = r.detach().requires_grad_()
        e = energy(r)
        return -grad(e, r)[0], e.detach()

    @wrap
    def step(dt):
        velocities.add_(state["forces"], alpha=0.5 * dt)
        positions.add_(velocities, alpha=dt)
        forces, potential = force(positions)
        state["forces"] = forces
        velocities.add_(forces, alpha=0.5 * dt)
        state["step"] += 1
        kinetic = 0.5 * velocities.square().sum()
        return potential + kinetic

    def run(i):
        energy = step(0.01)
        trajectory.append(positions.clone())
        return energy.item()

    return run, {"positions": positions, "velocities": velocities, "state": state, "trajectory": trajectory}


@script(exhaustive=True)
def diffusion_with_ema(wrap):
    T = 10
    betas = tg.linspace(1e-4, 0.2, T, dtype=tg.float64)
    alphas = tg.cumprod(1 - betas, 0)

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Embedding(T, 4, dtype=tg.float64)
            self.net = mlp(6, 8, 2, activation=nn.SiLU)

        def forward(self, x, t):
            return self.net(tg.cat([x, self.time(t)], -1))

    class EMA:
        def __init__(self, model, decay):
            self.decay, self.step = decay, 0
            self.shadow = {k: v.detach().clone() for k, v in model.named_parameters()}

        @tg.no_grad()
        def update(self, model):
            for k, v in model.named_parameters():
                self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)
            self.step += 1

    model = Denoiser()
    averaged, reference = EMA(model, 0.9), copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    @wrap
    def train_step(x0):
        t = tg.randint(0, T, (x0.shape[0],))
        noise = tg.randn_like(x0)
        a = alphas[t][:, None]
        x = a.sqrt() * x0 + (1 - a).sqrt() * noise
        loss = F.mse_loss(model(x, t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        averaged.update(model)
        for p, q in zip(reference.parameters(), model.parameters(), strict=True):
            p.data.mul_(0.9).add_(q.data, alpha=0.1)
        return loss.item()

    @wrap
    @tg.no_grad()
    def sample(n):
        x = tg.randn(n, 2, dtype=tg.float64)
        for k in reversed(range(3)):
            t = tg.full((n,), k, dtype=tg.long)
            e = reference(x, t)
            x = (x - betas[k] / (1 - alphas[k]).sqrt() * e) / (1 - betas[k]).sqrt()
            if k > 0:
                x = x + betas[k].sqrt() * tg.randn_like(x)
        return x

    def step(i):
        return train_step(data(i, 6, 2)), sample(2)

    return step, {"model": model, "averaged": averaged, "reference": reference, "optimizer": optimizer}


class Attention(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(n, 3 * n), nn.Linear(n, n), heads
        self.register_buffer("mask", tg.tril(tg.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, x):
        B, L, C = x.size()
        q, k, v = (z.view(B, L, self.heads, C // self.heads).transpose(1, 2) for z in self.qkv(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :L, :L] == 0, float("-inf")).softmax(-1)
        return self.out((att @ v).transpose(1, 2).contiguous().view(B, L, C))


class GPT(nn.Module):
    def __init__(self, vocabulary=7, n=8, heads=2, p=0.1):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocabulary, n), nn.Embedding(8, n)
        self.attention, self.norm, self.drop = Attention(n, heads), nn.LayerNorm(n), nn.Dropout(p)
        self.mlp = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
        self.head = nn.Linear(n, vocabulary, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, ids, targets=None):
        x = self.drop(self.tok(ids) + self.pos(tg.arange(ids.size(1))))
        x = x + self.attention(self.norm(x))
        x = x + self.mlp(self.norm(x))
        logits = self.head(x)
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss


@script(steps=6, exhaustive=True)
def gpt_with_accumulation_and_clipping(wrap):
    model = GPT().to(tg.float64)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    losses = []

    @wrap
    def micro_step(ids, targets, update):
        _, loss = model(ids, targets)
        loss = loss / 2
        loss.backward()
        if update:
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss.item(), norm
        return loss.item(), None

    def step(i):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 + i) / 6
        ids = tg.tensor(np.random.default_rng(i).integers(0, 7, (2, 6)))
        loss, norm = micro_step(ids, ids.roll(-1, 1), i % 2 == 1)
        losses.append(loss)
        return norm

    return step, {"model": model, "optimizer": optimizer, "losses": losses}


@script(exhaustive=True)
def maml(wrap):
    net = mlp(1, 6, 1)
    optimizer = optim.Adam(net.parameters(), lr=1e-3)

    def forward(x, weights):
        x = tg.tanh(F.linear(x, weights["0.weight"], weights["0.bias"]))
        return F.linear(x, weights["2.weight"], weights["2.bias"])

    @wrap
    def meta_step(tasks):
        optimizer.zero_grad()
        meta_loss = 0.0
        for xs, ys, xq, yq in tasks:
            weights = dict(net.named_parameters())
            for _ in range(2):
                loss = F.mse_loss(forward(xs, weights), ys)
                grads = grad(loss, weights.values(), create_graph=True)
                weights = {k: w - 0.1 * g for (k, w), g in zip(weights.items(), grads, strict=True)}
            meta_loss = meta_loss + F.mse_loss(forward(xq, weights), yq)
        meta_loss = meta_loss / len(tasks)
        meta_loss.backward()
        optimizer.step()
        return meta_loss.item()

    def step(i):
        x = data(i, 4, 4, 1)
        return meta_step([(x[0], x[1].sin(), x[2], x[3].sin()), (x[1], x[2], x[3], x[0])])

    return step, {"net": net, "optimizer": optimizer}


@script()
def reptile(wrap):
    """The inner loop trains a copy of the model, which is made at each step."""
    model = mlp(1, 6, 1)

    @wrap
    def meta_step(x, y):
        inner = copy.deepcopy(model)
        optimizer = optim.SGD(inner.parameters(), lr=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.mse_loss(inner(x), y)
            loss.backward()
            optimizer.step()
        with tg.no_grad():
            for p, q in zip(model.parameters(), inner.parameters(), strict=True):
                p.add_(q - p, alpha=0.5)
        return loss.detach()

    return lambda i: meta_step(data(i, 5, 1), data(i, 5, 1).sin()), {"model": model}


@script(exhaustive=True)
def reptile_by_state_dict(wrap):
    """The weights are kept and put back by state dicts, as in the paper's own program."""
    model = mlp(1, 6, 1)
    losses = []

    def train_on(x, y):
        model.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.05 * p.grad.data
        return loss

    train_on = wrap(train_on)

    def step(i):
        before = copy.deepcopy(model.state_dict())
        for k in range(3):
            losses.append(train_on(data(i + k, 5, 1), data(i + k, 5, 1).sin()).item())
        after = model.state_dict()
        model.load_state_dict({k: before[k] + (after[k] - before[k]) * 0.3 for k in before})

    return step, {"model": model, "losses": losses}


@script(steps=6)
def trainer_class(wrap):
    class Trainer:
        def __init__(self, model):
            self.model, self.optimizer = model, optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            self.it, self.metrics, self.history = 0, {}, collections.deque(maxlen=4)
            self.best = float("inf")
            self.train_step = wrap(self.train_step)

        def train_step(self, batch):
            self.model.train()
            self.optimizer.zero_grad()
            out = self.model(batch["x"])
            loss = F.mse_loss(out, batch["y"])
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.it += 1
            self.metrics["loss"] = loss.item()
            self.metrics["out"] = out.detach()
            self.history.append(loss)
            return loss

        def fit(self, batch):
            loss = self.train_step(batch).item()
            self.best = min(self.best, loss)
            return self.best

    trainer = Trainer(mlp(3, 6, 1))
    return lambda i: trainer.fit({"x": data(i, 4, 3), "y": data(i, 4, 1), "name": "train"}), {"trainer": trainer}


@script()
def truncated_bptt(wrap):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(2, 4, batch_first=True, dtype=tg.float64), nn.Linear(4, 2, dtype=tg.float64)

        def forward(self, x, state):
            y, state = self.rnn(x, state)
            return self.head(y), state

    def detach(state):
        return [s.detach() for s in state]

    model = Model()
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    hidden = [tg.zeros(1, 3, 4, dtype=tg.float64), tg.zeros(1, 3, 4, dtype=tg.float64)]
    total = {"loss": 0.0}

    @wrap
    def step(x, y):
        nonlocal hidden
        hidden = detach(hidden)
        out, hidden = model(x, hidden)
        loss = F.mse_loss(out, y)
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss.detach()

    def run(i):
        total["loss"] += step(data(i, 3, 5, 2), data(i + 9, 3, 5, 2)).item()

    return run, {"model": model, "optimizer": optimizer, "total": total, "hidden": lambda: hidden}


@script(steps=9)
def mixed_precision_with_scaler(wrap):
    """The scale grows every second step; batches overflow, before a program is made, too, and their steps are skipped."""
    model = nn.Linear(3, 1)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    scaler = tg.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scales = []

    @wrap
    def step(x, y):
        optimizer.zero_grad()
        with tg.amp.autocast("cpu", dtype=tg.bfloat16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    def run(i):
        x = data(i, 4, 3).float()
        y = data(i, 4, 1).float()
        y[0] += math.inf if i in (0, 1, 2, 6) else 0.0  # whatever the order of sums, the gradients overflow
        step(x, y)
        scales.append(scaler.get_scale())

    return run, {"model": model, "optimizer": optimizer, "scaler": scaler, "scales": scales}


def cases():
    """Each script, interpreted; every third with XLA, too."""
    for i, (name, (_, _, marks)) in enumerate(SCRIPTS.items()):
        yield pytest.param(name, False, marks=marks, id=f"{name}-interpreted")
        if i % 3 == 0:
            yield pytest.param(name, True, marks=pytest.mark.exhaustive, id=f"{name}-xla")


@pytest.mark.parametrize(("name", "on_xla"), list(cases()))
def test_script_compiles_and_leaves_the_same_world(name, on_xla):
    function, steps, _ = SCRIPTS[name]

    def build(wrap):
        step, kept = function(wrap)
        return (
            lambda i: {"i": i}, lambda given: step(given["i"]), lambda i, result: None,
            lambda: {k: v() if k == "hidden" else v for k, v in kept.items()},
        )  # fmt: skip

    with interpreted(not on_xla):
        report = worlds(lambda: build, steps)
    assert report.raised == []
    assert report.difference is None
    assert report.compiled, report.fell_back

"""Compiled training steps: ours, hand-written `jax.jit` steps with the same outputs, and PyTorch's eager ones."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

Task = Callable[[], Any]


def layers_of(width: int) -> list[tuple[int, int]]:
    return [(3, width), (width, width), (width, width), (width, 1)]


def sdf(L: Any, points: int, width: int) -> Callable[[Any], Any]:
    """A step of Adam on |grad f| and f: MLP 3-H-H-H-1 with sin, differentiated twice."""
    L.manual_seed(0)
    nn = L.nn
    linears = [nn.Linear(i, o) for i, o in layers_of(width)]
    parameters = [p for linear in linears for p in linear.parameters()]
    optimizer = L.optim.Adam(parameters, lr=1e-3)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        x = x.detach().requires_grad_()
        h = x
        for linear in linears[:-1]:
            h = linear(h).sin()
        f = linears[-1](h)
        (g,) = L.autograd.grad(f.sum(), x, create_graph=True)
        loss = ((g.norm(dim=1) - 1) ** 2).mean() + f.abs().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def maml(L: Any, points: int, width: int) -> Callable[[Any], Any]:
    """Three inner steps of gradient descent on 8 tasks, and the outer gradient through them, with Adam."""
    L.manual_seed(0)
    tasks, rate = 8, 0.1
    weights = [L.nn.Parameter(L.randn(i, o) * i**-0.5) for i, o in [(1, width), (width, width), (width, 1)]]
    optimizer = L.optim.Adam(weights, lr=1e-3)
    x, y = L.randn(tasks, points, 1), L.randn(tasks, points, 1)

    def net(ws: Any, x: Any) -> Any:
        for w in ws[:-1]:
            x = L.tanh(x @ w)
        return x @ ws[-1]

    def step(scale: Any) -> Any:
        optimizer.zero_grad()
        total = 0.0
        for k in range(tasks):
            ws = list(weights)
            for _ in range(3):
                loss = ((net(ws, x[k]) - y[k] * scale) ** 2).mean()
                grads = L.autograd.grad(loss, ws, create_graph=True)
                ws = [w - rate * g for w, g in zip(ws, grads, strict=True)]
            total = total + ((net(ws, x[k]) - y[k]) ** 2).mean()
        total.backward()
        optimizer.step()
        return total.detach()

    return step


def beam(L: Any, points: int, width: int) -> Callable[[Any], Any]:
    """An Euler-Bernoulli beam: the residual u'''' - q of an MLP 1-H-H-1 with tanh, with Adam."""
    L.manual_seed(0)
    linears = [L.nn.Linear(1, width), L.nn.Linear(width, width), L.nn.Linear(width, 1)]
    optimizer = L.optim.Adam([p for linear in linears for p in linear.parameters()], lr=1e-3)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        x = x.detach().requires_grad_()
        u = L.tanh(linears[0](x))
        u = linears[2](L.tanh(linears[1](u)))
        for _ in range(4):
            (u,) = L.autograd.grad(u.sum(), x, create_graph=True)
        loss = ((u - 1.0) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def in_cube(L: Any, points: int) -> Any:
    return L.rand(points, 3) * 2 - 1


PROGRAMS: dict[str, tuple[Any, Any, int, int]] = {  # step, its argument, points, width
    "SDF 64x64": (sdf, in_cube, 64, 64),
    "SDF 1024x128": (sdf, in_cube, 1024, 128),
    "SDF 4096x256": (sdf, in_cube, 4096, 256),
    "MAML, 8 tasks, 3 steps": (maml, lambda L, n: L.ones(()), 20, 40),
    "beam, 4th derivative": (beam, lambda L, n: L.rand(n, 1), 256, 64),
}


BARS: dict[str, dict[str, float]] = {  # of the compiled step's time over the other's
    "SDF 64x64": {"jax": 0.9, "torch": 0.45},
    "SDF 1024x128": {"jax": 0.6, "torch": 0.8},
    "SDF 4096x256": {"jax": 0.7, "torch": 1.0},
    "MAML, 8 tasks, 3 steps": {"torch": 0.3},
    "beam, 4th derivative": {"torch": 0.4},
    "outer tape": {"jax": 1.1},
}


def eager(L: Any, name: str) -> Task:
    make, draw, points, width = PROGRAMS[name]
    step, x = make(L, points, width), draw(L, points)
    return lambda: step(x)


def ours(L: Any, name: str) -> Task:
    """The compiled step; each call waits for its result, as the others do."""
    make, draw, points, width = PROGRAMS[name]
    step, x = L.compile(make(L, points, width), fullgraph=True), draw(L, points)
    return lambda: step(x).numpy()


def outer(L: Any) -> Task:
    """Value and gradient of a compiled loss on the caller's tape: MLP 128-256-256-1 with tanh, 1024 points."""
    L.manual_seed(0)
    net = L.nn.Sequential(
        L.nn.Linear(128, 256), L.nn.Tanh(), L.nn.Linear(256, 256), L.nn.Tanh(), L.nn.Linear(256, 1)
    )  # fmt: skip
    loss, x = L.compile(lambda x: (net(x) ** 2).mean(), fullgraph=True), L.randn(1024, 128)

    def run() -> Any:
        for p in net.parameters():
            p.grad = None
        value = loss(x)
        value.backward()
        return [p.grad.numpy() for p in net.parameters()]

    return run


def outer_by_hand() -> Task:
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    sizes = [(128, 256), (256, 256), (256, 1)]
    params = [(jax.random.normal(k, (o, i)) * i**-0.5, jnp.zeros(o)) for k, (i, o) in zip(keys, sizes, strict=False)]
    x = jax.random.normal(keys[3], (1024, 128))

    def loss(params: Any, x: Any) -> Any:
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w.T + b)
        w, b = params[-1]
        return ((x @ w.T + b) ** 2).mean()

    jitted = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.block_until_ready(jitted(params, x))


def dispatch(L: Any) -> dict[str, float]:
    """Microseconds of a call with 20 captured tensors that it rewrites, and of the executable alone, in turn."""
    tensors = [L.zeros(16, 16) for _ in range(20)]

    def add(x: Any) -> None:
        for t in tensors:
            t.add_(x)

    compiled, x = L.compile(add, fullgraph=True), L.ones(16, 16)
    for _ in range(300):
        compiled(x)
    (specialization,) = compiled.specializations.values()
    program = specialization.programs[0]
    arrays = [jax_copy(t) for t in tensors]
    one = [jax_copy(x)]

    def bare() -> None:
        arrays[:] = program.run(arrays, one)

    times: dict[str, list[float]] = {"call": [], "executable": []}
    for _ in range(41):
        for name, task in (("call", lambda: compiled(x)), ("executable", bare)):
            start = time.perf_counter()
            for _ in range(200):
                task()
            times[name].append((time.perf_counter() - start) / 200 * 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


def jax_copy(t: Any) -> Any:
    import jax.numpy as jnp

    return jnp.array(t.numpy())


def stages(L: Any, name: str) -> dict[str, float]:
    """Seconds of tracing and lowering, and bytes of memory, of both SDF programs, after one of each has been made."""
    by_hand(name).jitted.lower(*by_hand(name).arguments)  # type: ignore[attr-defined]
    ours(L, name)()
    make, draw, points, width = PROGRAMS[name]
    step, x = make(L, points, width), draw(L, points)
    start = time.perf_counter()
    step(x)
    eager_seconds = time.perf_counter() - start
    compiled = L.compile(step, fullgraph=True)
    before = L.compile.stats()
    compiled(x)
    after = L.compile.stats()
    traced = after["trace_seconds"] - before["trace_seconds"] - eager_seconds
    (specialization,) = compiled.specializations.values()
    cost = specialization.programs[0].executable.cost()
    hand = by_hand(name)
    start = time.perf_counter()
    lowered = hand.jitted.lower(*hand.arguments)  # type: ignore[attr-defined]
    seconds = time.perf_counter() - start
    memory = lowered.compile().memory_analysis()
    sizes = [getattr(memory, f"{k}_size_in_bytes") for k in ("argument", "output", "temp", "alias")]
    own = [cost[f"{k} bytes"] for k in ("argument", "output", "temp", "alias")]
    return {
        "trace and lower, ours": max(traced, 0.0) + after["lower_seconds"] - before["lower_seconds"],
        "trace and lower, JAX's": seconds,
        "bytes, ours": sum(own[:3]) - own[3],
        "bytes, JAX's": sum(sizes[:3]) - sizes[3],
    }


def by_hand(name: str) -> Task:
    """The SDF step in JAX: the same updates, and the same outputs: parameters, gradients, moments, a count for each."""
    import jax
    import jax.numpy as jnp

    _, _, points, width = PROGRAMS[name]
    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    sizes = layers_of(width)
    params = [(jax.random.normal(k, (o, i)) * i**-0.5, jnp.zeros(o)) for k, (i, o) in zip(keys, sizes, strict=False)]
    x = jax.random.uniform(keys[4], (points, 3)) * 2 - 1

    def net(params: Any, x: Any) -> Any:
        for w, b in params[:-1]:
            x = jnp.sin(x @ w.T + b)
        w, b = params[-1]
        return x @ w.T + b

    def loss(params: Any, x: Any) -> Any:
        g = jax.grad(lambda x: net(params, x).sum())(x)
        return ((jnp.sqrt((g * g).sum(1)) - 1) ** 2).mean() + jnp.abs(net(params, x)).mean()

    def step(params: Any, m: Any, v: Any, counts: Any, x: Any, lr: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x)
        counts = jax.tree.map(lambda t: t + 1, counts)
        m = jax.tree.map(lambda a, g: a + 0.1 * (g - a), m, grads)
        v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)

        def update(p: Any, m: Any, v: Any, t: Any) -> Any:
            root = jnp.sqrt(1 - 0.999**t)
            return p - lr * root / (1 - 0.9**t) * m / (jnp.sqrt(v) + 1e-8 * root)

        return jax.tree.map(update, params, m, v, counts), m, v, counts, grads, value

    jitted = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = [params, zeros, jax.tree.map(jnp.zeros_like, params), jax.tree.map(lambda p: jnp.zeros(()), params)]
    rate = jnp.asarray(1e-3)

    def run() -> Any:
        *state[:], _, value = jitted(*state, x, rate)
        return value.block_until_ready()

    run.jitted, run.arguments = jitted, (*state, x, rate)  # type: ignore[attr-defined]
    return run


# ------------------------------------------------------------------------------------------------------- first calls

WIDTHS = {"HNN": [2, 64, 64, 1], "SIREN, Laplacian": [2, 64, 64, 64, 1], "RK4, 40 steps": [2, 32, 2]}


def first_call(L: Any, name: str) -> dict[str, float]:
    """Seconds of the first two calls of a compiled loss with the gradients of all parameters."""
    L.compile(lambda x: (x * 2).sum())(L.ones(3))
    L.manual_seed(0)
    layers = [L.nn.Linear(i, o) for i, o in itertools.pairwise(WIDTHS[name])]
    parameters = [p for layer in layers for p in layer.parameters()]
    act = L.sin if name.startswith("SIREN") else L.tanh

    def net(x: Any) -> Any:
        for layer in layers[:-1]:
            x = act(layer(x))
        return layers[-1](x)

    def hnn(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (g,) = L.autograd.grad(net(x).sum(), x, create_graph=True)
        field = L.stack([g[:, 1], -g[:, 0]], dim=1)
        return ((field - x.flip(1)) ** 2).mean()

    def siren(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (g,) = L.autograd.grad(net(x).sum(), x, create_graph=True)
        second = [L.autograd.grad(g[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(2)]
        return ((second[0] + second[1] - 1) ** 2).mean()

    def rk4(x: Any) -> Any:
        h = 0.05
        for _ in range(40):
            a = net(x)
            b = net(x + h / 2 * a)
            c = net(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + net(x + h * c))
        return (x**2).mean()

    loss = {"HNN": hnn, "SIREN, Laplacian": siren, "RK4, 40 steps": rk4}[name]

    def step(x: Any) -> Any:
        value = loss(x)
        return value, L.autograd.grad(value, parameters, allow_unused=True)  # the last bias of HNN

    compiled = L.compile(step, fullgraph=True)
    found = {}
    for call in ("first call", "second call", "third call"):
        x = L.rand(128, 2)
        start = time.perf_counter()
        compiled(x)[0].item()
        found[call] = time.perf_counter() - start
    return found


def first_call_by_hand(name: str) -> dict[str, float]:
    import jax
    import jax.numpy as jnp

    jax.jit(lambda x: (x * 2).sum())(jnp.ones(3))
    sizes = list(itertools.pairwise(WIDTHS[name]))
    keys = jax.random.split(jax.random.PRNGKey(0), len(sizes))
    params = [(jax.random.normal(k, (o, i)) * i**-0.5, jnp.zeros(o)) for k, (i, o) in zip(keys, sizes, strict=True)]
    act = jnp.sin if name.startswith("SIREN") else jnp.tanh

    def net(params: Any, x: Any) -> Any:
        for w, b in params[:-1]:
            x = act(x @ w.T + b)
        w, b = params[-1]
        return x @ w.T + b

    def hnn(params: Any, x: Any) -> Any:
        g = jax.grad(lambda x: net(params, x).sum())(x)
        return ((jnp.stack([g[:, 1], -g[:, 0]], axis=1) - x[:, ::-1]) ** 2).mean()

    def siren(params: Any, x: Any) -> Any:
        def second(x: Any, i: int) -> Any:
            return jax.grad(lambda x: jax.grad(lambda x: net(params, x).sum())(x)[:, i].sum())(x)[:, i]

        return ((second(x, 0) + second(x, 1) - 1) ** 2).mean()

    def rk4(params: Any, x: Any) -> Any:
        h = 0.05
        for _ in range(40):
            a = net(params, x)
            b = net(params, x + h / 2 * a)
            c = net(params, x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + net(params, x + h * c))
        return (x**2).mean()

    loss = {"HNN": hnn, "SIREN, Laplacian": siren, "RK4, 40 steps": rk4}[name]
    jitted, x = jax.jit(jax.value_and_grad(loss)), jax.random.uniform(keys[0], (128, 2))
    start = time.perf_counter()
    jax.block_until_ready(jitted(params, x))
    return {"first call": time.perf_counter() - start}

"""Transforms of functions, one library a process: derivatives of order 2 and more, and of scalars."""

from __future__ import annotations

import importlib
import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

Task = Callable[[], Any]
POINTS = 2000
NETS = {"3-64-64-64-1": (3, 3), "10-64-64-1": (10, 2), "50-64-64-1": (50, 2)}
# name: (library compared with, ratio aimed at)
BARS: dict[str, list[tuple[str, float]]] = {
    **{f"laplacian {n}": [("torch", 0.55 if n.startswith("3-") else 0.5), ("jax", 1.2)] for n in NETS},
    "vmap(laplacian) 3-64-64-64-1": [("torch", 0.55)],
    **{f"pinn step {n}": [("torch", 0.7)] for n in NETS},
    "6th derivative of a scalar": [("torch", 0.02)],
    "hessian 100": [("torch", 0.4)],
    "jacrev 50 -> 200": [("torch", 0.7)],
    "jacobian 50 -> 200": [("torch", 0.4)],
    "grad of 10 scalar operations": [("autograd", 0.15), ("torch", 0.1)],
}


def network(hidden: int, tanh: Any) -> Any:
    def net(x: Any, p: Any) -> Any:
        for i in range(0, 2 * hidden, 2):
            x = tanh(x @ p[i] + p[i + 1])
        return x @ p[-2] + p[-1]

    return net


def parameters(d: int, hidden: int) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(0)
    sizes = [d] + [64] * hidden + [1]
    p: list[Any] = []
    for a, b in itertools.pairwise(sizes):
        p += [(rng.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32), (rng.normal(size=b) * 0.1).astype(np.float32)]
    return p, rng.normal(size=(POINTS, d)).astype(np.float32)


def scalar_chain(m: Any) -> Any:
    def f(x: Any) -> Any:
        for _ in range(5):
            x = m.exp(-(m.sin(x) * 1.1 + 0.2) * 0.3)
        return x

    return f


def ten_operations(m: Any) -> Any:
    def f(x: Any) -> Any:
        a = m.sin(x) * m.exp(x)
        b = a + x * x
        return m.log(b) + m.tanh(a) * 2.0 - b

    return f


def double_backward(torch: Any, net: Any, p: Any, x: Any, record: bool) -> Any:
    """PyTorch's fastest Laplacian: d second passes over the summed gradient."""
    x = x.clone().requires_grad_(True)
    (g,) = torch.autograd.grad(net(x, p).sum(), x, create_graph=True)
    total: Any = 0
    for i in range(x.shape[1]):
        (h,) = torch.autograd.grad(g[:, i].sum(), x, create_graph=record, retain_graph=True)
        total = total + h[:, i]
    return total


def squared_mean(library: Any, laplacian: Any, p: Any) -> Task:
    def step() -> Any:
        leaves = [a.clone().requires_grad_(True) for a in p]
        value = laplacian(leaves)
        (value * value).mean().backward()
        return leaves

    return step


def least_squares(m: Any, matrix: Any, b: Any) -> Any:
    def f(x: Any) -> Any:
        y = matrix @ x
        return 0.5 * ((y - b) ** 2).sum() + m.logsumexp(y, 0)

    return f


def of_torch() -> dict[str, Task]:
    import torch
    from torch import func

    torch.set_num_threads(2)
    tasks: dict[str, Task] = {}
    for name, (d, hidden) in NETS.items():
        p, x = parameters(d, hidden)
        tp, tx, net = [torch.tensor(a) for a in p], torch.tensor(x), network(hidden, torch.tanh)
        tasks[f"laplacian {name}"] = lambda net=net, p=tp, x=tx: double_backward(torch, net, p, x, False)
        tasks[f"pinn step {name}"] = squared_mean(
            torch, lambda p, net=net, x=tx: double_backward(torch, net, p, x, True), tp
        )
    tasks["vmap(laplacian) 3-64-64-64-1"] = tasks["laplacian 3-64-64-64-1"]
    chain = scalar_chain(torch)

    def sixth() -> Any:
        x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        y = chain(x)
        for _ in range(6):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
        return y

    tasks["6th derivative of a scalar"] = sixth
    tasks.update(matrices(torch, torch.from_numpy, func))
    tasks["jacobian 50 -> 200"] = tasks["jacrev 50 -> 200"]
    x = torch.tensor(0.7, dtype=torch.float64)
    derivative = func.grad(ten_operations(torch))
    tasks["grad of 10 scalar operations"] = lambda: derivative(x)
    return tasks


def matrices(m: Any, tensor: Any, func: Any) -> dict[str, Task]:
    rng = np.random.default_rng(1)
    x = tensor(rng.normal(size=100))
    hessian = func.hessian(least_squares(m, tensor(rng.normal(size=(120, 100)) / 10), tensor(rng.normal(size=120))))
    w, z = tensor(rng.normal(size=(200, 50)) / 7), tensor(rng.normal(size=50))

    def layer(z: Any) -> Any:
        return m.sin(m.tanh(w @ z))

    found: dict[str, Task] = {"hessian 100": lambda: hessian(x), "jacrev 50 -> 200": lambda: func.jacrev(layer)(z)}
    if hasattr(func, "jacobian"):
        found["jacobian 50 -> 200"] = lambda: func.jacobian(layer)(z)
    return found


def of_tapegrad() -> dict[str, Task]:
    import tapegrad as tg

    tasks: dict[str, Task] = {}
    for name, (d, hidden) in NETS.items():
        p, x = parameters(d, hidden)
        tp, tx, net = [tg.tensor(a) for a in p], tg.tensor(x), network(hidden, tg.tanh)
        laplacian = tg.func.laplacian(net)
        tasks[f"laplacian {name}"] = lambda f=laplacian, p=tp, x=tx: f(x, p)
        tasks[f"pinn step {name}"] = squared_mean(tg, lambda p, f=laplacian, x=tx: f(x, p), tp)
        if name == "3-64-64-64-1":
            of_rows = tg.func.vmap(laplacian, in_dims=(0, None))
            tasks[f"vmap(laplacian) {name}"] = lambda f=of_rows, p=tp, x=tx: f(x, p)
    sixth = tg.func.nth_derivative(scalar_chain(tg), 6)
    tasks["6th derivative of a scalar"] = lambda: sixth(0.3)
    for n in (4, 10):
        on_scalar, x = tg.func.nth_derivative(scalar_chain(tg), n), tg.rand(10000, dtype=tg.float64)
        tasks[f"order {n} of a scalar"] = lambda f=on_scalar: f(0.3)
        tasks[f"order {n} of 10000 numbers"] = lambda f=on_scalar, x=x: f(x)
    tasks.update(matrices(tg, tg.from_numpy, tg.func))
    derivative = tg.func.grad(ten_operations(tg))
    tasks["grad of 10 scalar operations"] = lambda: derivative(0.7)
    return tasks


def of_jax() -> dict[str, Task]:
    import jax
    from jax import numpy as jnp

    tasks: dict[str, Task] = {}
    for name, (d, hidden) in NETS.items():
        p, x = parameters(d, hidden)
        net = network(hidden, jnp.tanh)

        def trace(x: Any, p: Any, net: Any = net) -> Any:
            return jax.vmap(lambda q: jnp.trace(jax.hessian(lambda z: net(z, p)[0])(q)))(x)

        compiled, jp, jx = jax.jit(trace), [jnp.asarray(a) for a in p], jnp.asarray(x)
        tasks[f"laplacian {name}"] = lambda f=compiled, x=jx, p=jp: f(x, p).block_until_ready()
    return tasks


def of_autograd() -> dict[str, Task]:
    autograd, m = importlib.import_module("autograd"), importlib.import_module("autograd.numpy")
    derivative = autograd.grad(ten_operations(m))
    return {"grad of 10 scalar operations": lambda: derivative(0.7)}


TASKS = {"torch": of_torch, "tapegrad": of_tapegrad, "jax": of_jax, "autograd": of_autograd}


def peak(library: str) -> dict[str, float]:
    """MB at the peak of a PINN step: all arrays (tapegrad), or the storages that the graph saved (PyTorch)."""
    steps = {name: task for name, task in TASKS[library]().items() if name.startswith("pinn")}
    return {name: (saved_storages if library == "torch" else traced)(task) / 2**20 for name, task in steps.items()}


def traced(step: Task) -> float:
    step()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    step()
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return highest - before


def saved_storages(step: Task) -> float:
    import torch

    sizes: dict[int, list[int]] = {}  # address of a storage: bytes, number of saved tensors on it
    highest = 0

    class Kept:
        def __init__(self, t: Any) -> None:
            nonlocal highest
            self.tensor, storage = t, t.untyped_storage()
            self.address = storage.data_ptr()
            sizes.setdefault(self.address, [storage.nbytes(), 0])[1] += 1
            highest = max(highest, sum(n for n, _ in sizes.values()))

        def __del__(self) -> None:
            entry = sizes[self.address]
            entry[1] -= 1
            if not entry[1]:
                del sizes[self.address]

    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        step()
    return highest


def measured(library: str, part: str = "") -> dict[str, float]:
    """Median seconds of a call of each task with `part` in its name: eleven blocks, idle threads asleep before."""
    found = {}
    for name, task in TASKS[library]().items():
        if part not in name:
            continue
        task()
        start = time.perf_counter()
        task()
        calls = max(1, int(0.004 / (time.perf_counter() - start)))
        time.sleep(0.25)
        times = []
        for _ in range(11):
            start = time.perf_counter()
            for _ in range(calls):
                task()
            times.append((time.perf_counter() - start) / calls)
        found[name] = statistics.median(times)
    return found

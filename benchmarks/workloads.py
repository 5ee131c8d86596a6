"""Programs that run on PyTorch and tapegrad alike: `L` is the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Task = Callable[[], Any]


def tiny(L: Any, length: int = 20) -> dict[str, Task]:
    """Tensors of 3 floats, a chain of `length` multiplications and as many additions."""
    a = L.tensor([0.1, 0.2, 0.3], requires_grad=True)
    b = L.tensor([1.1, 0.9, 1.2], requires_grad=True)

    def chain() -> Any:
        x = a
        for _ in range(length):
            x = x * b
            x = x + a
        return x

    def no_grad() -> None:
        with L.no_grad():
            chain()

    def backward() -> None:
        a.grad = b.grad = None
        chain().sum().backward()

    def second() -> None:
        (g,) = L.autograd.grad(chain().sum(), a, create_graph=True)
        L.autograd.grad(g.sum(), b)

    constant = b.detach()

    def constant_factors() -> None:
        x = a * a
        for _ in range(length):
            x = x * constant
            x = x + constant
        (g,) = L.autograd.grad(x.sum(), a, create_graph=True)
        L.autograd.grad(g.sum(), a)

    return {
        "forward": chain, "no_grad": no_grad, "forward+backward": backward, "second order": second,
        "second order, constant factors": constant_factors,
    }  # fmt: skip


def mlp(L: Any, width: int = 8, layers: int = 4, batch: int = 8) -> dict[str, Task]:
    """A training step of an MLP of `layers` linear layers: forward, backward, gradients cleared."""
    L.manual_seed(0)
    nn = L.nn
    parts: list[Any] = []
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), nn.Tanh()]
    net = nn.Sequential(*parts, nn.Linear(width, width))
    x, y = L.randn(batch, width), L.randn(batch, width)
    loss_function = nn.MSELoss()

    def step() -> None:
        net.zero_grad()
        loss_function(net(x), y).backward()

    return {"mlp step": step}


def raw_mlp(L: Any, width: int = 8, layers: int = 4, batch: int = 8) -> dict[str, Task]:
    """Products with `layers` matrices, tanh after each, and the gradients of all."""
    L.manual_seed(0)
    weights = [(L.randn(width, width) * width**-0.5).requires_grad_() for _ in range(layers)]
    x = L.randn(batch, width)

    def step() -> None:
        h = x
        for w in weights:
            w.grad = None
            h = (h @ w).tanh()
        h.sum().backward()

    return {"raw mlp": step}


def views(L: Any) -> dict[str, tuple[Task, Task]]:
    """An operation on a tensor of (8, 16) with a living view, and the same on a private one; all are recorded."""
    leaf, w, b = L.randn(8, 16, requires_grad=True), L.randn(16, 16, requires_grad=True), L.zeros(16, requires_grad=True)
    private, shared = leaf * 1.0, leaf * 1.0
    living = shared[0]
    operations: dict[str, Callable[[Any], Any]] = {
        "mul": lambda x: x * x,
        "add a leaf": lambda x: x + leaf,
        "exp": lambda x: x.exp(),
        "matmul": lambda x: x @ w,
        "linear": lambda x: L.nn.functional.linear(x, w, b),
        "sum": lambda x: x.sum(1),
    }

    def pair(f: Callable[[Any], Any]) -> tuple[Task, Task]:
        return lambda: (f(shared), living)[0], lambda: f(private)

    return {name: pair(f) for name, f in operations.items()}


def eikonal(L: Any, points: int, width: int) -> Task:
    """MLP 3-H-H-H-1 with sin; loss on |grad f| and f; gradient of all weights."""
    L.manual_seed(0)
    sizes = [(3, width), (width, width), (width, width), (width, 1)]
    weights = [(L.randn(o, i) * (1.5 / i**0.5)).detach().requires_grad_() for i, o in sizes]
    biases = [L.zeros(o, requires_grad=True) for _, o in sizes]
    x = (L.rand(points, 3) * 2 - 1).detach().requires_grad_()
    linear = L.nn.functional.linear

    def step() -> Any:
        h = x
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = linear(h, w, b).sin()
        f = linear(h, weights[-1], biases[-1])
        (g,) = L.autograd.grad(f.sum(), x, create_graph=True)
        loss = ((g.norm(dim=1) - 1) ** 2).mean() + f.abs().mean()
        for p in (*weights, *biases):
            p.grad = None
        loss.backward()
        return loss

    return step

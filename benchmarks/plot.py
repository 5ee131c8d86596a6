"""`python -m benchmarks plot`: docs/performance.svg, a training step from small to large sizes, and its numbers.

The step: an MLP of three square layers with tanh on 64 rows, the mean of its squares, and the gradients of all weights.
Each library runs in a process of its own; every point is the least of several processes in turn. Needs matplotlib; PyTorch,
JAX and HIPS autograd are left out where they are not installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .clocks import Task, in_turn, timed

WIDTHS = [8 << i for i in range(9)]
ROWS, LAYERS = 64, 3
FORMS = {  # form: its library, label, colour
    "tapegrad": ("tapegrad", "tapegrad", "#d1495b"),
    "torch": ("torch", "PyTorch", "#e58a1f"),
    "jit": ("jax", "jax.jit", "#2e7d5b"),
    "jax": ("jax", "JAX, eager", "#76b39d"),
    "autograd": ("autograd", "HIPS autograd", "#8a6fb0"),
    "numpy": ("numpy", "NumPy by hand", "#4a5666"),
}
SVG = pathlib.Path(__file__).parents[1] / "docs" / "performance.svg"


def arrays(width: int) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((width, width), np.float32) * np.float32(width**-0.5) for _ in range(LAYERS)]
    return weights, rng.standard_normal((ROWS, width), np.float32)


def loss(m: Any) -> Callable[..., Any]:
    def f(weights: Any, x: Any) -> Any:
        for w in weights:
            x = m.tanh(x @ w)
        return (x * x).mean()

    return f


def with_backward(L: Any) -> Callable[[int], Task]:
    def make(width: int) -> Task:
        weights, x = arrays(width)
        ws, tx, f = [L.tensor(w, requires_grad=True) for w in weights], L.tensor(x), loss(L)

        def step() -> None:
            for w in ws:
                w.grad = None
            f(ws, tx).backward()

        return step

    return make


def with_grad(grad: Any, m: Any, wait: Any = lambda g: g, array: Any = lambda a: a) -> Callable[[int], Task]:
    gradient = grad(loss(m))

    def make(width: int) -> Task:
        weights, x = arrays(width)
        ws, tx = [array(w) for w in weights], array(x)
        return lambda: wait(gradient(ws, tx))

    return make


def by_hand(width: int) -> Task:
    weights, x = arrays(width)

    def step() -> Any:
        hs = [x]
        for w in weights:
            h = hs[-1] @ w
            hs.append(np.tanh(h, out=h))
        (hs[-1] * hs[-1]).mean()
        g, gradients = hs[-1] * np.float32(2 / hs[-1].size), []
        for w, a, h in zip(reversed(weights), hs[-2::-1], hs[:0:-1], strict=True):
            slope = h * h
            g *= np.subtract(1, slope, out=slope)
            gradients.append(a.T @ g)
            if a is not x:
                g = g @ w.T
        return gradients

    return step


def maker(form: str) -> Callable[[int], Task]:
    if form == "numpy":
        return by_hand
    library = importlib.import_module(FORMS[form][0])
    if form in ("jax", "jit"):
        m = importlib.import_module("jax.numpy")
        grad = library.grad if form == "jax" else lambda f: library.jit(library.grad(f))
        return with_grad(grad, m, library.block_until_ready, m.asarray)
    if form == "autograd":
        return with_grad(library.grad, importlib.import_module("autograd.numpy"))
    return with_backward(library)


def measured(form: str) -> list[float]:
    """Microseconds of a step at each width."""
    make = maker(form)
    return [timed(make(width), spent=0.25) * 1e6 for width in WIDTHS]


def draw(rounds: int = 3) -> None:
    sides = {k: (v[0], "curve", k) for k, v in FORMS.items() if importlib.util.find_spec(v[0])}
    times = {k: np.min(found, axis=0) for k, found in in_turn(sides, rounds).items()}
    print(f"{'us a step, width':16s}" + "".join([f"{w:10d}" for w in WIDTHS]))
    for form, found in times.items():
        print(f"{FORMS[form][1]:16s}" + "".join([f"{t:10.1f}" for t in found]))
    write(times)
    print(SVG)


def write(times: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "performance", "font.family": "sans-serif", "font.size": 10})
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure, axes = pyplot.subplots(figsize=(7.6, 4.6), layout="constrained")
    for form, found in times.items():
        _, label, colour = FORMS[form]
        axes.plot(WIDTHS, found / times["numpy"], label=label, color=colour, marker="o", markersize=4,
                  linewidth=2.4 if form == "tapegrad" else 1.5, linestyle="--" if form == "numpy" else "-")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=f"width of the layers ({ROWS} rows)", ylabel="time over NumPy by hand",
             title=f"A step of an MLP: forward and backward, {LAYERS} layers")  # fmt: skip
    axes.set_xticks(WIDTHS, [str(w) for w in WIDTHS])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks([v for v in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100) if v < 2 * max(map(max, axes_values(times)))])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(SVG, metadata={"Date": None})


def axes_values(times: dict[str, Any]) -> list[Any]:
    return [found / times["numpy"] for found in times.values()]

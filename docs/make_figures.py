"""Draws the figures of the pages: `python docs/make_figures.py`. A test keeps them current."""

from __future__ import annotations

import pathlib

import tapegrad as tg

HERE = pathlib.Path(__file__).parent


def gradient_graph() -> str:
    """The graph of a recorded gradient, for how_it_works.md."""
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    total = (x * x).sin().sum()
    (gradient,) = tg.autograd.grad(total, x, create_graph=True)
    return tg.viz.graph([total, gradient], params={"x": x, "total": total, "gradient": gradient}).svg(graphviz=False)


def module_graph() -> str:
    """A network and its layers, for seeing.md."""
    tg.manual_seed(0)
    net = tg.nn.Sequential(tg.nn.Linear(3, 8), tg.nn.Tanh(), tg.nn.Linear(8, 1))
    x = tg.randn(4, 3)
    return tg.viz.graph(lambda: {"loss": net(x).square().mean()}, params=net).svg(graphviz=False)


FIGURES = {"gradient_graph.svg": gradient_graph, "module_graph.svg": module_graph}


if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (HERE / name).write_text(draw(), encoding="utf-8")

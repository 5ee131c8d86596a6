"""The network: points of shape (n, 3) to distances of shape (n, 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import tapegrad as tg
from tapegrad import Tensor, nn

Array = npt.NDArray[Any]

CHUNK = 8192  # points at once where nothing is learnt: fits the cache


class Sine(nn.Module):
    """A linear layer followed by a sine: sin(frequency * (x W^T + b)).

    Sines have smooth derivatives of any order, which suits a loss made of derivatives. The weights start at the scale that
    keeps the distribution of activations the same from layer to layer (Sitzmann et al., 2020).
    """

    def __init__(self, n_in: int, n_out: int, frequency: float, first: bool = False) -> None:
        super().__init__()
        self.frequency = frequency
        self.linear = nn.Linear(n_in, n_out)
        bound = 1 / n_in if first else math.sqrt(6 / n_in) / frequency
        self.linear.weight = nn.Parameter(bound * (2 * tg.rand(n_out, n_in) - 1))

    def forward(self, x: Tensor) -> Tensor:
        return (self.frequency * self.linear(x)).sin()


class DistanceField(nn.Module):
    """The distance from a sphere plus a correction learnt by a network of sines, which is small at first."""

    def __init__(self, width: int = 128, frequency: float = 30.0, hidden_layers: int = 3) -> None:
        super().__init__()
        self.width, self.frequency, self.hidden_layers = width, frequency, hidden_layers
        layers: list[nn.Module] = [Sine(3, width, frequency, first=True)]
        layers += [Sine(width, width, frequency / 2) for _ in range(hidden_layers - 1)]
        last = nn.Linear(width, 1)
        last.weight = nn.Parameter(0.1 * last.weight.detach())
        self.correction = nn.Sequential(*layers, last)

    def forward(self, x: Tensor) -> Tensor:
        from_origin = (x.square().sum(dim=-1, keepdim=True) + 0.01) ** 0.5  # 0.01 rounds the tip of the cone
        return from_origin - 0.4 + self.correction(x)


def value_and_gradient(model: nn.Module, points: Tensor, create_graph: bool = False) -> tuple[Tensor, Tensor]:
    """f of shape (n, 1) and its gradient with respect to the points, of shape (n, 3).

    Row i of f depends on point i alone, so the gradient of the sum holds the gradients of all rows.
    """
    points = points.detach().requires_grad_()
    f = model(points)
    (gradient,) = tg.autograd.grad(f.sum(), points, create_graph=create_graph)
    return f, gradient


def in_chunks(function: Callable[[Tensor], Tensor], points: Array, device: str = "cpu") -> Array:
    """`function` (tensor to tensor) applied to an array (n, 3) piece by piece."""
    pieces = [points[i : i + CHUNK].astype(np.float32) for i in range(0, max(len(points), 1), CHUNK)]
    return np.concatenate([function(tg.from_numpy(piece).to(device)).detach().cpu().numpy() for piece in pieces])


def device_of(model: nn.Module) -> str:
    return str(next(model.parameters()).device)


def distances(model: nn.Module, points: Array) -> Array:
    """f at an array of points (n, 3), without recording anything: array (n,)."""
    with tg.no_grad():
        return np.asarray(in_chunks(model, points, device_of(model))[:, 0])


def gradients(model: nn.Module, points: Array) -> Array:
    """The gradient of f at an array of points (n, 3): array (n, 3)."""
    return in_chunks(lambda p: value_and_gradient(model, p)[1], points, device_of(model))


def on_surface(model: nn.Module, points: Array, steps: int = 2) -> Array:
    """Points (n, 3) near the surface, moved onto it by Newton's steps along the gradient."""
    for _ in range(steps):
        f, g = distances(model, points), gradients(model, points)
        points = points - np.clip(f / np.maximum(np.square(g).sum(axis=1), 0.25), -0.02, 0.02)[:, None] * g
    return points

# pyright: strict
"""A program as users write it, for mypy --strict and pyright; a type that becomes Any fails. test_types runs it, too."""

from __future__ import annotations

import tempfile
from typing import Any, assert_type

import tapegrad as tg
from tapegrad import Tensor, func, nn
from tapegrad.autograd.function import FunctionCtx
from tapegrad.utils.data import DataLoader, TensorDataset


class Cube(tg.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, scale: float = 1.0) -> Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx: FunctionCtx, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g * ctx.scale, None


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(2, width), nn.Linear(width, 1)

    def forward(self, x: Tensor, slope: float = 1.0) -> Tensor:
        return assert_type(self.outer(Cube.apply(self.inner(x).tanh(), slope)), Tensor)[..., 0]


net = Net(8)
optimizer = tg.optim.Adam(net.parameters(), lr=1e-2)


@tg.compile
def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


@tg.no_grad
def error(x: Tensor, y: Tensor) -> float:
    return (net(x, slope=1.0) - y).abs().max().item()


@tg.no_grad()
def predict(points: Tensor) -> Tensor:
    return net(points)


def total(points: Tensor, slope: float = 1.0) -> Tensor:
    return net(points, slope).sum()


points = tg.rand(32, 2)
data = TensorDataset(points, points[:, 0] * points[:, 1])
for batch in DataLoader(data, batch_size=16, shuffle=True):
    x, y = assert_type(batch, list[Tensor])
    assert_type(step(x, y), Tensor)
step.explain()
assert_type(tg.compile.stats()["programs"], float)
assert_type(tg.compile(net, fullgraph=True)(points), Tensor)
assert_type(tg.compile(fullgraph=True)(predict)(points), Tensor)
assert_type(error(*data.tensors), float)
assert_type(predict(points), Tensor)
assert_type(nn.Sequential(net.inner, nn.Tanh())(points), Tensor)
assert_type(func.grad(total)(points, slope=2.0), Tensor)
assert_type(net.inner.weight, nn.Parameter)
assert_type(net.inner.weight.grad, Tensor | None)
assert_type(points[0, 1:], Tensor)
assert_type(points.shape, tg.Size)
assert_type(points.max(1).indices, Tensor)
assert_type(tg.autograd.grad(net(points).sum(), [net.inner.weight]), tuple[Tensor, ...])
unused = tg.autograd.grad(points.requires_grad_().sum(), [points, net.inner.weight], allow_unused=True)
assert_type(unused, tuple[Tensor | None, ...])
with tempfile.TemporaryFile() as file:
    tg.save(net.state_dict(), file)
    file.seek(0)
    saved: dict[str, Any] = tg.load(file)
assert_type(net.load_state_dict(saved).missing_keys, list[str])
with tg.inference_mode(), tg.set_grad_enabled(True):
    assert_type(net(points).T.dtype, tg.dtype)

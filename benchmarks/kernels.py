"""Operations at the sizes of docs/performance.md: forward and backward, second order, peak memory; `L` is the library.

A row: name, the bar for tapegrad's time over PyTorch's, the function, and the shapes of the tensors that require gradient.
Further arguments (indices, targets) are made by the functions of `EXTRA`, named by the row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Task = Callable[[], Any]


class Kernel(NamedTuple):
    name: str
    bar: float
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    extra: str = ""


def integers(high: int, *shape: int) -> Any:
    return np.random.default_rng(3).integers(0, high, shape)


EXTRA: dict[str, Callable[[], Any]] = {
    "rows of 10,000": lambda: integers(10_000, 50_000),
    "rows of 128": lambda: integers(128, 2000),
    "labels": lambda: integers(1000, 1000),
    "places": lambda: integers(1000, 1000, 1000),
    "rows of 100": lambda: integers(100, 32),
    "rows of 64": lambda: integers(64, 32),
    "rows of 16": lambda: integers(16, 32),
    "rows of 8": lambda: integers(8, 32),
    "mask 100": lambda: integers(2, 100, 64).astype(bool),
    "mask 8": lambda: integers(2, 8, 16).astype(bool),
    "places 100": lambda: integers(100, 100, 64),
    "places 8": lambda: integers(8, 8, 16),
}

F = "nn.functional"
LARGE = [
    Kernel("matmul 512", 1.0, lambda L, a, b: a @ b, ((512, 512), (512, 512))),
    Kernel("conv 1x1", 1.0, lambda L, x, w: L.nn.functional.conv2d(x, w), ((8, 16, 32, 32), (32, 16, 1, 1))),
    Kernel("conv 3x3", 2.5, lambda L, x, w: L.nn.functional.conv2d(x, w, padding=1), ((8, 16, 32, 32), (32, 16, 3, 3))),
    Kernel("conv 5x5", 2.2, lambda L, x, w: L.nn.functional.conv2d(x, w, padding=2), ((8, 16, 32, 32), (32, 16, 5, 5))),
    Kernel(
        "conv 3x3 stride 2", 2.0, lambda L, x, w: L.nn.functional.conv2d(x, w, stride=2, padding=1),
        ((8, 16, 32, 32), (32, 16, 3, 3)),
    ),
    Kernel("max_pool 2x2", 1.0, lambda L, x: L.nn.functional.max_pool2d(x, 2), ((64, 32, 28, 28),)),
    Kernel("sort 1000x1000", 1.0, lambda L, x: L.sort(x, -1)[0], ((1000, 1000),)),
    Kernel("einsum bij,bjk->bik", 1.3, lambda L, a, b: L.einsum("bij,bjk->bik", a, b), ((16, 64, 64), (16, 64, 64))),
    Kernel("einsum bhqd,bhkd->bhqk", 1.3, lambda L, a, b: L.einsum("bhqd,bhkd->bhqk", a, b),
           ((2, 4, 128, 32), (2, 4, 128, 32))),
    Kernel("einsum bsd,dhk->bshk", 1.3, lambda L, a, b: L.einsum("bsd,dhk->bshk", a, b), ((8, 64, 64), (64, 4, 16))),
    Kernel(
        "attention 4x8x128x32", 1.3, lambda L, q, k, v: L.nn.functional.scaled_dot_product_attention(q, k, v),
        ((4, 8, 128, 32),) * 3,
    ),
    Kernel("index_add 50k into 10k x 64", 1.3, lambda L, x, v, i: L.index_add(x, 0, i, v), ((10_000, 64), (50_000, 64)),
           "rows of 10,000"),
    Kernel("embedding 50k into 10k x 64", 0.5, lambda L, w, i: L.nn.functional.embedding(i, w), ((10_000, 64),),
           "rows of 10,000"),
    Kernel("embedding 2000 into 128 x 64", 0.5, lambda L, w, i: L.nn.functional.embedding(i, w), ((128, 64),),
           "rows of 128"),
    Kernel("cumsum along the first axis", 1.2, lambda L, x: x.cumsum(0), ((1000, 1000),)),
    Kernel("cumsum along the last axis", 2.3, lambda L, x: x.cumsum(1), ((1000, 1000),)),
    Kernel(
        "batch_norm 64x32x28x28", 1.6,
        lambda L, x, w, b: L.nn.functional.batch_norm(x, None, None, w, b, training=True), ((64, 32, 28, 28), (32,), (32,)),
    ),
    Kernel("layer_norm 1000x1000", 4.0, lambda L, x, w, b: L.nn.functional.layer_norm(x, (1000,), w, b),
           ((1000, 1000), (1000,), (1000,))),
    Kernel("cross_entropy 1000x1000", 2.0, lambda L, x, t: L.nn.functional.cross_entropy(x, t), ((1000, 1000),), "labels"),
    Kernel("softmax 1000x1000", 4.0, lambda L, x: L.softmax(x, 1), ((1000, 1000),)),
    Kernel("log_softmax 1000x1000", 4.0, lambda L, x: L.log_softmax(x, 1), ((1000, 1000),)),
    Kernel("softplus 1e6", 2.1, lambda L, x: L.nn.functional.softplus(x), ((1000, 1000),)),
    Kernel("gelu tanh 1e6", 2.1, lambda L, x: L.nn.functional.gelu(x, approximate="tanh"), ((1000, 1000),)),
    Kernel("sigmoid 1e6", 2.5, lambda L, x: L.sigmoid(x), ((1000, 1000),)),
    Kernel("fft 64x1024", 2.0, lambda L, x: L.fft.fft(x), ((64, 1024),)),
    Kernel("svd 32 of 64x64", 1.6, lambda L, x: L.linalg.svd(x)[1], ((32, 64, 64),)),
    Kernel("eigh 32 of 64x64", 2.0, lambda L, x: L.linalg.eigh(x + x.mT)[0], ((32, 64, 64),)),
    Kernel("solve 32 of 64x64", 1.7, lambda L, a, b: L.linalg.solve(a, b), ((32, 64, 64), (32, 64, 8))),
]  # fmt: skip

# forward and backward of small operations over PyTorch's time, for (100, 64) and for (8, 16)
SMALL_BARS: dict[str, tuple[float, float]] = {
    "layer_norm": (1.7, 1.7), "log_softmax": (1.7, 1.4), "softmax": (1.5, 1.3), "cross_entropy": (1.5, 1.5),
    "gather": (1.3, 1.3), "embedding": (1.3, 1.3), "cat": (1.2, 1.2), "expand": (1.2, 1.2), "sigmoid": (1.1, 1.0),
    "F.silu": (1.1, 1.0), "F.gelu tanh": (1.0, 1.35), "max with dim": (0.8, 0.8), "where": (0.8, 0.8), "stack": (0.8, 0.8),
    "x[i]": (0.8, 0.8),
}  # fmt: skip
ANY_SMALL = 1.8  # the bar of the other ones


def _small(rows: int, columns: int, size: int) -> list[Kernel]:
    """Elementwise, reduction, shape, index and product ops on tensors of `rows` and `columns`, the size of that number."""
    one = ((rows, columns),)
    two = one * 2
    picks, labels, mask = f"rows of {rows}", f"rows of {columns}", f"mask {rows}"
    functions: list[tuple[Any, ...]] = [(name, functools.partial(_named, name), one) for name in (
        "exp", "sin", "cos", "tanh", "sigmoid", "sqrt", "log1p", "abs", "square", "neg", "relu", "reciprocal", "erf",
        "expm1",
    )]  # fmt: skip
    functions += [(name, functools.partial(_named, name), two) for name in (
        "add", "sub", "mul", "div", "maximum", "atan2", "hypot", "pow", "logaddexp",
    )]  # fmt: skip
    functions += [
        (f"F.{name}", functools.partial(_named, f"{F}.{name}"), one)
        for name in ("softplus", "gelu", "silu", "elu", "leaky_relu", "logsigmoid", "hardswish", "mish")
    ]
    for name in ("sum", "mean", "amax", "prod", "var", "std", "logsumexp", "cumsum", "softmax", "log_softmax"):
        functions.append((name, functools.partial(_along, name), one))
    heads = (4, rows // 4, columns)
    functions += [
        ("F.gelu tanh", lambda L, x: L.nn.functional.gelu(x, approximate="tanh"), one),
        ("max with dim", lambda L, x: x.max(1)[0], one),
        ("norm", lambda L, x: x.norm(), one),
        ("sum of all", lambda L, x: x.sum(), one),
        ("sort", lambda L, x: x.sort(1)[0], one),
        ("topk", lambda L, x: x.topk(5, 1)[0], one),
        ("reshape", lambda L, x: x.reshape(columns, rows), one),
        ("transpose", lambda L, x: x.t(), one),
        ("unsqueeze", lambda L, x: x.unsqueeze(0), one),
        ("expand", lambda L, x: x.expand(rows, columns), ((1, columns),)),
        ("cat", lambda L, x, y: L.cat([x, y], 1), two),
        ("stack", lambda L, x, y: L.stack([x, y]), two),
        ("split", lambda L, x: x.split(columns // 2, 1)[0], one),
        ("flip", lambda L, x: x.flip(0), one),
        ("roll", lambda L, x: x.roll(3, 0), one),
        ("tril", lambda L, x: x.tril(), ((columns, columns),)),
        ("repeat", lambda L, x: x.repeat(2, 1), one),
        ("x[i]", lambda L, x: x[3], one),
        ("slice", lambda L, x: x[2 : rows // 2], one),
        ("index by a tensor", lambda L, x, i: x[i], one, picks),
        ("index_select", lambda L, x, i: x.index_select(0, i), one, picks),
        ("embedding", lambda L, w, i: L.nn.functional.embedding(i, w), one, picks),
        ("gather", lambda L, x, i: x.gather(0, i), one, f"places {rows}"),
        ("where", lambda L, x, y, m: L.where(m, x, y), two, mask),
        ("masked_fill", lambda L, x, m: x.masked_fill(m, 0.0), one, mask),
        ("matmul", lambda L, a, b: a @ b, ((columns, columns), (columns, columns))),
        ("bmm", lambda L, a, b: L.bmm(a, b), ((8, 16, 16), (8, 16, 16))),
        ("linear", lambda L, x, w, b: L.nn.functional.linear(x, w, b), ((32, columns), (columns, columns), (columns,))),
        ("einsum ij,jk", lambda L, a, b: L.einsum("ij,jk->ik", a, b), ((columns, columns), (columns, columns))),
        ("outer", lambda L, a, b: L.outer(a, b), ((columns,), (columns,))),
        ("layer_norm", lambda L, x, w, b: L.nn.functional.layer_norm(x, (columns,), w, b), (*one, (columns,), (columns,))),
        ("attention", lambda L, q, k, v: L.nn.functional.scaled_dot_product_attention(q, k, v), (heads,) * 3),
        ("mse_loss", lambda L, x, y: L.nn.functional.mse_loss(x, y), two),
        ("cross_entropy", lambda L, x, i: L.nn.functional.cross_entropy(x, i), ((32, columns),), labels),
    ]
    bars = {name: SMALL_BARS.get(name, (ANY_SMALL,) * 2)[size] for name, *_ in functions}
    return [Kernel(name, bars[name], *others) for name, *others in functions]


def _named(name: str, L: Any, *xs: Any) -> Any:
    return functools.reduce(getattr, name.split("."), L)(*xs)


def _along(name: str, L: Any, x: Any) -> Any:
    return getattr(L, name)(x, 1)


TIMES = {"small": 10, "smallest": 10, "large": 1}  # applications in one backward pass: a graph, whose fixed cost they share
SIZES = {"large": LARGE, "small": _small(100, 64, 0), "smallest": _small(8, 16, 1)}
BY_NAME = {f"{size} {k.name}": k for size, rows in SIZES.items() for k in rows}


def of_size(size: str) -> list[str]:
    return [name for name in BY_NAME if name.split()[0] == size]


def inputs(L: Any, kernel: Kernel) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    xs = [L.tensor(rng.random(s, np.float32) + 0.1 if i == 0 else rng.standard_normal(s, np.float32) * 0.5 + 0.1)
          for i, s in enumerate(kernel.shapes)]  # fmt: skip
    extra = [L.tensor(EXTRA[kernel.extra]())] if kernel.extra else []
    return [x.requires_grad_() for x in xs], extra


def random_like(L: Any, t: Any, seed: int) -> Any:
    values = np.random.default_rng(seed).standard_normal((2, *t.shape), np.float32)
    return L.tensor(values[0] + 1j * values[1] if t.is_complex() else values[0])


def first_order(L: Any, kernel: Kernel, times: int = 1) -> Task:
    """The operation `times` times, each result with a random cotangent, and one backward pass."""
    xs, extra = inputs(L, kernel)
    gs = [random_like(L, kernel.function(L, *xs, *extra), 1)] * times

    def step() -> Any:
        return L.autograd.grad([kernel.function(L, *xs, *extra) for _ in range(times)], xs, gs)

    return step


def second_order(L: Any, kernel: Kernel, times: int = 1) -> Task:
    """The same with create_graph, then a backward pass through that."""
    xs, extra = inputs(L, kernel)
    g = random_like(L, kernel.function(L, *xs, *extra), 1).requires_grad_()
    ds = [random_like(L, x, 2) for x in xs]

    def step() -> Any:
        ys = [kernel.function(L, *xs, *extra) for _ in range(times)]
        gs = L.autograd.grad(ys, xs, [g] * times, create_graph=True)
        return L.autograd.grad(gs, [*xs, g], ds, allow_unused=True)

    return step

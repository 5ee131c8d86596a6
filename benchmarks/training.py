"""Whole training steps, as programs write them: `L` is the library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

Task = Callable[[], Any]


def loader(L: Any, samples: int, shape: tuple[int, ...], batch: int) -> Any:
    """Shuffled batches of images and labels of ten classes."""
    data = importlib.import_module(f"{L.__name__}.utils.data")
    L.manual_seed(0)
    images, labels = L.randn(samples, *shape), L.randint(0, 10, (samples,))
    return data.DataLoader(data.TensorDataset(images, labels), batch_size=batch, shuffle=True)


def classifier(L: Any, samples: int = 6400, batch: int = 64) -> Task:
    """An epoch of an MLP 784-128-64-10 on synthetic images of 28 x 28, with Adam."""
    nn = L.nn
    batches = loader(L, samples, (1, 28, 28), batch)
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )  # fmt: skip
    optimizer, loss_function = L.optim.Adam(net.parameters(), lr=1e-3), nn.CrossEntropyLoss()

    def epoch() -> None:
        for images, labels in batches:
            optimizer.zero_grad()
            loss = loss_function(net(images), labels)
            loss.backward()
            optimizer.step()

    return epoch


def convolutional(L: Any, batch: int = 64) -> Task:
    """A step of two convolutions and two linear layers on images of 28 x 28, with dropout and Adadelta.

    The layers are those of pytorch/examples/mnist.
    """
    nn, F = L.nn, L.nn.functional
    L.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10), nn.LogSoftmax(dim=1),
    )  # fmt: skip
    optimizer = L.optim.Adadelta(net.parameters(), lr=1.0)
    images, labels = L.randn(batch, 1, 28, 28), L.randint(0, 10, (batch,))

    def step() -> None:
        optimizer.zero_grad()
        F.nll_loss(net(images), labels).backward()
        optimizer.step()

    return step


def causal_block(L: Any, block: int, width: int, heads: int) -> Any:
    """The class of a pre-norm block with causal attention written out; the layers are those of karpathy/makemore."""
    nn, F = L.nn, L.nn.functional

    class Attention(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.expand, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("mask", L.tril(L.ones(block, block)).view(1, 1, block, block))

        def forward(self, x: Any) -> Any:
            b, t, c = x.size()
            q, k, v = (p.view(b, t, heads, c // heads).transpose(1, 2) for p in self.expand(x).split(width, dim=2))
            weights = (q @ k.transpose(-2, -1)) * (c // heads) ** -0.5
            weights = weights.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
            y = F.softmax(weights, dim=-1) @ v
            return self.project(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.expand, self.project = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            h = self.expand(self.norm2(x))
            h = 0.5 * h * (1.0 + L.tanh(0.7978845608028654 * (h + 0.044715 * L.pow(h, 3.0))))
            return x + self.project(h)

    return Block


def transformer(L: Any, batch: int = 32, block: int = 16, width: int = 64, heads: int = 4, layers: int = 2) -> Task:
    """A step of a causal transformer over 27 characters, AdamW; the size of karpathy/makemore."""
    nn, F = L.nn, L.nn.functional
    Block = causal_block(L, block, width, heads)
    vocabulary = 27

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, index: Any) -> Any:
            x = self.tokens(index) + self.positions(L.arange(index.size(1)).unsqueeze(0))
            for layer in self.blocks:
                x = layer(x)
            return self.head(self.norm(x))

    L.manual_seed(0)
    model = Model()
    optimizer = L.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8)
    x, y = L.randint(0, vocabulary, (batch, block)), L.randint(0, vocabulary, (batch, block))

    def step() -> None:
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, vocabulary), y.view(-1), ignore_index=-1)
        model.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def gradients(L: Any, net: Any, x: Any) -> Task:
    """Forward and backward of a module with a random cotangent."""
    result = net(x)
    g = L.randn(*(result[0] if isinstance(result, tuple) else result).shape)

    def step() -> None:
        net.zero_grad()
        result = net(x)
        L.autograd.backward(result[0] if isinstance(result, tuple) else result, g)

    return step


def lstm(L: Any) -> Task:
    L.manual_seed(0)
    return gradients(L, L.nn.LSTM(64, 64, batch_first=True), L.randn(32, 16, 64))


def encoder_layer(L: Any) -> Task:
    L.manual_seed(0)
    return gradients(L, L.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True), L.randn(32, 16, 64))


def one_causal_block(L: Any) -> Task:
    L.manual_seed(0)
    return gradients(L, causal_block(L, 16, 64, 4)(), L.randn(8, 16, 64))


LAYERS: dict[str, tuple[float, Callable[[Any], Task]]] = {
    "LSTM, 32 sequences of 16, width 64": (1.0, lstm),
    "TransformerEncoderLayer, 32 x 16 x 64": (1.0, encoder_layer),
    "causal block, 8 x 16 x 64": (1.0, one_causal_block),
}
PROGRAMS: dict[str, tuple[float, Callable[[Any], Task]]] = {
    "MLP classifier, epoch of 100 batches of 64": (0.75, classifier),
    "2-layer char transformer, step": (1.0, transformer),
    "CNN of examples/mnist, step": (1.5, convolutional),
}

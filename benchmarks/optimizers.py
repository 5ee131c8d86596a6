"""A step of an optimizer, without the gradients' computation: `L` is the library."""

from __future__ import annotations

import time
from typing import Any

# name: the bar for tapegrad's time over PyTorch's, the optimizer, number and shape of the parameters, steps that are timed
STEPS: dict[str, tuple[float, str, int, tuple[int, ...], int]] = {
    "Adam, 100 of 64x64": (0.4, "Adam", 100, (64, 64), 50),
    "Adam, 100 of 64": (0.25, "Adam", 100, (64,), 100),
    "Adam, one of 1e6": (1.8, "Adam", 1, (1000, 1000), 50),
    "SGD with momentum, 100 of 64x64": (1.0, "SGD", 100, (64, 64), 100),
}


def measured(L: Any, rounds: int = 5) -> dict[str, float]:
    """Seconds a step: the least of several rounds."""
    found = {}
    for name, (_, kind, count, shape, calls) in STEPS.items():
        parameters = [L.randn(*shape).requires_grad_() for _ in range(count)]
        for p in parameters:
            p.grad = L.randn(*shape)
        optimizer = getattr(L.optim, kind)(parameters, lr=1e-3, **({"momentum": 0.9} if kind == "SGD" else {}))
        times = []
        for _ in range(rounds):
            optimizer.step()
            start = time.perf_counter()
            for _ in range(calls):
                optimizer.step()
            times.append((time.perf_counter() - start) / calls)
        found[name] = min(times)
    return found

"""One library in a process of its own: `python -m benchmarks.child LIBRARY WHAT ARGS`, prints JSON."""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from . import compiled as steps
from . import floors, limits, plot, workloads
from . import kernels as registry
from . import optimizers as updates
from . import training as programs
from . import transforms as functional
from .clocks import paired, seconds, timed


def tiny(L: Any, name: str) -> float:
    """Median seconds of one task of tiny operations."""
    return timed(workloads.tiny(L)[name], spent=1.0)


def eikonal(L: Any, points: str, width: str, calls: str) -> float:
    """Median seconds of a step."""
    step = workloads.eikonal(L, int(points), int(width))
    step()
    return statistics.median(seconds(step, int(calls)) for _ in range(7))


def memory(L: Any, points: str, width: str) -> float:
    """Highest resident size during ten steps over the size before the first, in MB (Linux)."""
    workloads.eikonal(L, 8, 8)()
    step = workloads.eikonal(L, int(points), int(width))
    return peak(L, lambda: step, 10)


def kernels(L: Any, size: str, order: str) -> dict[str, float]:
    """Median seconds of one application of each kernel of `size`: its first or second order."""
    make = {"1": registry.first_order, "2": registry.second_order}[order]
    found: dict[str, float] = {}
    for name in registry.of_size(size):
        try:
            found[name] = timed(make(L, registry.BY_NAME[name], registry.TIMES[size])) / registry.TIMES[size]
        except (AttributeError, NotImplementedError, RuntimeError) as e:
            print(name, type(e).__name__, str(e)[:100], file=sys.stderr)
    return found


def training(L: Any, name: str, spent: str = "2") -> float:
    """Median seconds of a step or epoch of one program."""
    return timed(programs.PROGRAMS[name][1](L), spent=float(spent))


def program_memory(L: Any, name: str) -> float:
    """Highest resident size during three steps or epochs over the size before the program is made, in MB (Linux)."""
    make = (programs.PROGRAMS | programs.LAYERS)[name][1]
    return peak(L, lambda: make(L), 3)


def compiled(L: Any, what: str, name: str) -> float:
    """Median seconds of a step: compiled, eager, or (with the library jax) written by hand."""
    if what == "outer":
        step = steps.outer_by_hand() if L.__name__ == "jax" else steps.outer(L)
    elif L.__name__ == "jax":
        step = steps.by_hand(name)
    else:
        step = {"compiled": steps.ours, "eager": steps.eager}[what](L, name)
    for _ in range(10):  # traced, compiled, and run by the program a few times
        step()
    return timed(step, spent=2.0)


def compiled_stages(L: Any, name: str) -> dict[str, float]:
    return steps.stages(L, name)


def first_call(L: Any, name: str) -> dict[str, float]:
    return steps.first_call_by_hand(name) if L.__name__ == "jax" else steps.first_call(L, name)


def compiled_dispatch(L: Any) -> dict[str, float]:
    return steps.dispatch(L)


def kernel_memory(L: Any, name: str) -> float:
    """Highest resident size during five calls over the size before the inputs are made, in MB (Linux)."""
    return peak(L, lambda: registry.first_order(L, registry.BY_NAME[name]), 5)


def peak(L: Any, make: Callable[[], Callable[[], Any]], calls: int) -> float:
    small = L.rand(8, 8, requires_grad=True)
    L.softmax(small @ small, 1).exp().sum().backward()  # threads and libraries are loaded at the first pass
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # the peak starts anew: a child begins with its parent's
    before = status("VmRSS")
    step = make()
    for _ in range(calls):
        step()
    return (status("VmHWM") - before) / 1024


def status(field: str) -> int:
    """A field of /proc/self/status, in KB."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field + ":"))


def scaling(L: Any) -> dict[str, str]:
    """Chains of 50,000 and 400,000 ops; a small gradient beside 100,000 live entries; a buffer filled row by row."""
    out: dict[str, str] = {}
    per_op, freed = {}, {}
    for n in (50_000, 400_000):
        best, best_free = 1e9, 1e9
        for _ in range(3):
            x = y = L.tensor([1.0, 2.0, 3.0], requires_grad=True)
            start = time.perf_counter()
            for _ in range(n // 2):
                y = y * 0.999
                y = y + 0.001
            y.sum().backward()
            best = min(best, time.perf_counter() - start)
            y = x
            for _ in range(n // 2):
                y = y * 0.999
                y = y + 0.001
            start = time.perf_counter()
            del y
            L.tape().sweep()
            best_free = min(best_free, time.perf_counter() - start)
        per_op[n], freed[n] = best / n * 1e6, best_free / n * 1e6
    out["chain, us an op at 50,000 and 400,000"] = (
        f"{per_op[50_000]:.2f} {per_op[400_000]:.2f} ratio {per_op[400_000] / per_op[50_000]:.2f}"
    )
    out["freeing, us an op"] = f"{freed[50_000]:.3f} {freed[400_000]:.3f} ratio {freed[400_000] / freed[50_000]:.2f}"
    y = L.tensor([1.0], requires_grad=True)
    for _ in range(100_000):
        y = y * 1.0
    a = L.tensor([1.0], requires_grad=True)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        L.autograd.grad((a * 2.0).sum(), a)
        times.append(time.perf_counter() - start)
    out["2-op gradient beside 100,000 live entries, us"] = (
        f"{statistics.median(times) * 1e6:.0f}, longest {max(times) * 1e6:.0f}"
    )
    del y
    for rows in (1000, 4000):
        out[f"filling ({rows}, 64) by rows and back, us a row"] = f"{fill(L, rows) / rows * 1e6:.1f}"
        out[f"recurrence of {rows} steps through a buffer and back, us a step"] = f"{recur(L, rows) / rows * 1e6:.1f}"
    return out


def fill(L: Any, rows: int) -> float:
    w = L.ones(64, requires_grad=True)
    start = time.perf_counter()
    buffer = L.zeros(rows, 64)
    for i in range(rows):
        buffer[i] = w * float(i)
    (buffer * buffer).sum().backward()
    return time.perf_counter() - start


def recur(L: Any, steps: int) -> float:
    W = (L.eye(8) * 0.5).requires_grad_()
    start = time.perf_counter()
    h = L.zeros(steps + 1, 8)
    h[0] = L.ones(8)
    for t in range(steps):
        h[t + 1] = (h[t] @ W).tanh()
    h[steps].sum().backward()
    return time.perf_counter() - start


def optimizers(L: Any) -> dict[str, float]:
    return updates.measured(L)


def transforms(L: Any, part: str = "") -> dict[str, float]:
    return functional.measured(L.__name__, part)


def transform_memory(L: Any) -> dict[str, float]:
    return functional.peak(L.__name__)


def beside_torch(L: Any) -> dict[str, list[float]]:
    return limits.beside_torch(L)


def beside_floors(L: Any) -> dict[str, list[float]]:
    return limits.beside_floors(L)


def beside_private(L: Any) -> dict[str, list[float]]:
    return {name: list(paired(*tasks)) for name, tasks in workloads.views(L).items()}


def eikonal_products(L: Any, points: str, width: str) -> list[float]:
    """Seconds of a step, and of its matrix products alone."""
    sizes = int(points), int(width)
    return list(paired(workloads.eikonal(L, *sizes), floors.eikonal_products(*sizes), spent=3.0))


def curve(L: Any, form: str) -> list[float]:
    return plot.measured(form)


if __name__ == "__main__":
    library, what, *args = sys.argv[1:]
    print(json.dumps(globals()[what](importlib.import_module(library), *args)))

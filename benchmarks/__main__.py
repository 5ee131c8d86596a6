"""`python -m benchmarks [name ..]`: the figures of docs/performance.md; `--help` lists the names.

Needs PyTorch beside tapegrad. Tiny operations alternate in one process, in random order; larger work runs in alternating
processes, since idle thread pools of one library disturb the other and tapegrad's allocator setting would help both.
Each figure is the median of several rounds; ratios are tapegrad's time over PyTorch's.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from typing import Any

from . import compiled as steps
from . import kernels as registry
from . import limits as figures
from . import optimizers as updates
from . import plot as curves
from . import training as programs
from . import transforms as functional
from . import workloads
from .clocks import child, in_turn, seconds
from .limits import EIKONAL


def libraries() -> tuple[Any, Any]:
    import torch

    import tapegrad

    torch.set_num_threads(1)
    return torch, tapegrad


def alternate(make: Callable[[Any], dict[str, Callable[[], Any]]], calls: int, rounds: int = 31) -> None:
    """Rounds of both libraries' tasks in random order, in this process, PyTorch on one thread."""
    tasks = [make(library) for library in libraries()]
    for name in tasks[0]:
        ratios, ours, theirs = [], [], []
        for task in tasks:
            seconds(task[name], calls)
        for _ in range(rounds):
            times = {}
            for i in random.sample((0, 1), 2):
                times[i] = seconds(tasks[i][name], calls)
            ratios.append(times[1] / times[0])
            theirs.append(times[0] * 1e6)
            ours.append(times[1] * 1e6)
        print(f"{name:20s} torch {statistics.median(theirs):9.2f} us   tapegrad {statistics.median(ours):9.2f} us   "
              f"ratio {statistics.median(ratios):.3f}")  # fmt: skip


def tiny() -> None:
    alternate(workloads.tiny, 40)


def mlp() -> None:
    alternate(workloads.mlp, 40)


def eikonal(rounds: int = 5) -> None:
    for points, width, calls in EIKONAL:
        results = in_turn({k: (k, "eikonal", points, width, calls) for k in ("torch", "tapegrad")}, rounds)
        torch, ours = (statistics.median(results[k]) * 1e3 for k in ("torch", "tapegrad"))
        ratio = statistics.median(b / a for a, b in zip(results["torch"], results["tapegrad"], strict=True))
        print(f"eikonal {points}x{width}: torch {torch:.2f} ms   tapegrad {ours:.2f} ms   ratio {ratio:.3f}")


def memory() -> None:
    for points, width, _ in EIKONAL:
        torch, ours = (statistics.median(child(k, "memory", points, width) for _ in range(3)) for k in ("torch", "tapegrad"))
        print(f"eikonal {points}x{width} peak: torch {torch:.1f} MB   tapegrad {ours:.1f} MB   ratio {ours / torch:.3f}")


def scaling() -> None:
    for name, value in child("tapegrad", "scaling").items():
        print(f"{name}: {value}")


def startup() -> None:
    numpy, ours, touched = figures.import_times()
    print(f"import numpy {numpy:.0f} ms   import tapegrad {ours:.0f} ms   over numpy {ours - numpy:.0f} ms   "
          f"nn, optim and autograd touched: {touched - ours:.0f} ms more")  # fmt: skip


def limits() -> None:
    figures.table()


def extremes() -> None:
    from . import extremes as calls

    calls.table()


def plot() -> None:
    curves.draw()


def kernels(rounds: int = 5) -> None:
    """Forward and backward of each operation against its bar, and its second order over its own first."""
    for size in ("small", "large"):
        times: dict[tuple[str, str], list[dict[str, float]]] = {}
        for _ in range(rounds):
            for library in random.sample(("torch", "tapegrad"), 2):
                times.setdefault((library, "1"), []).append(child(library, "kernels", size, "1"))
        times["tapegrad", "2"] = [child("tapegrad", "kernels", size, "2")]
        for name, kernel in registry.BY_NAME.items():
            columns = [[found[name] for found in times[key] if name in found] for key in times]
            if name.split()[0] == size and all(columns):
                medians = {key: statistics.median(column) for key, column in zip(times, columns, strict=True)}
                torch, ours, second = (medians[key] for key in (("torch", "1"), ("tapegrad", "1"), ("tapegrad", "2")))
                over = "" if ours / torch <= kernel.bar else "  above the bar"
                print(f"{name:38s} torch {torch * 1e6:9.1f} us   tapegrad {ours * 1e6:9.1f} us   ratio {ours / torch:5.2f}"
                      f" (bar {kernel.bar})   second order {second / ours:4.1f} x{over}")  # fmt: skip


def kernel_memory() -> None:
    """Peak memory of each large operation, each in a process of its own."""
    for name in registry.of_size("large"):
        runs = {k: [child(k, "kernel_memory", name) for _ in range(3)] for k in ("torch", "tapegrad")}
        torch, ours = (statistics.median(found) for found in runs.values())
        print(f"{name:38s} peak: torch {torch:6.1f} MB   tapegrad {ours:6.1f} MB")


def transforms(rounds: int = 5) -> None:
    """Higher derivatives against PyTorch, compiled JAX and HIPS autograd, in processes in turn."""
    times: dict[str, list[dict[str, float]]] = {library: [] for library in functional.TASKS}
    for _ in range(rounds):
        for library, found in times.items():
            found.append(child(library, "transforms"))
    medians = {k: {n: statistics.median(f[n] for f in found) for n in found[0]} for k, found in times.items()}
    for name, ours in medians["tapegrad"].items():
        texts = []
        for library, bar in functional.BARS.get(name, []):
            theirs = medians[library][name]
            mark = "" if ours / theirs <= bar else " above the bar"
            texts.append(f"{library} {theirs * 1e3:9.3f} ms ratio {ours / theirs:6.3f} (bar {bar}){mark}")
        print(f"{name:32s} tapegrad {ours * 1e3:9.3f} ms   {'   '.join(texts)}")


def training(rounds: int = 5) -> None:
    """Steps and epochs of whole programs, in processes in turn."""
    for name, (bar, _) in programs.PROGRAMS.items():
        times = in_turn({library: (library, "training", name) for library in ("torch", "tapegrad")}, rounds)
        torch, ours = (statistics.median(times[library]) * 1e3 for library in ("torch", "tapegrad"))
        over = "" if ours / torch <= bar else "  above the bar"
        print(f"{name:44s} torch {torch:8.2f} ms   tapegrad {ours:8.2f} ms   ratio {ours / torch:.3f} (bar {bar}){over}")


def compiled(rounds: int = 5) -> None:
    """Compiled steps against hand-written jax.jit ones and PyTorch's eager ones, in processes in turn."""
    for name in [*steps.PROGRAMS, "outer tape"]:
        what = "outer" if name == "outer tape" else "compiled"
        sides = {"compiled": ("tapegrad", what), "jax": ("jax", what), "torch": ("torch", "eager")}
        sides = {k: v for k, v in sides.items() if k in steps.BARS[name] or k == "compiled"}
        times = in_turn({side: (library, "compiled", form, name) for side, (library, form) in sides.items()}, rounds)
        found = {side: statistics.median(t) * 1e3 for side, t in times.items()}
        texts = []
        for side, bar in steps.BARS[name].items():
            ratio = statistics.median(a / b for a, b in zip(times["compiled"], times[side], strict=True))
            over = "" if ratio <= bar else " above the bar"
            texts.append(f"{side} {found[side]:8.3f} ms ratio {ratio:.3f} (bar {bar}){over}")
        print(f"{name:24s} compiled {found['compiled']:8.3f} ms   {'   '.join(texts)}")
    rows = [child("tapegrad", "compiled_dispatch") for _ in range(rounds)]
    calls = statistics.median(row["call"] - row["executable"] for row in rows)
    print(f"call with 20 captured tensors: {calls:.1f} us over the executable's "
          f"{statistics.median(row['executable'] for row in rows):.1f} us (bar 15)")  # fmt: skip
    for name in ("SDF 64x64", "SDF 1024x128", "SDF 4096x256"):
        rows = [child("tapegrad", "compiled_stages", name) for _ in range(3)]
        for what, bar in (("trace and lower", 1.8), ("bytes", 1.1)):
            ours, theirs = (statistics.median(row[f"{what}, {side}"] for row in rows) for side in ("ours", "JAX's"))
            print(f"{name:24s} {what}: ours {ours:.4g}   JAX's {theirs:.4g}   ratio {ours / theirs:.3f} (bar {bar})")


def first_calls(rounds: int = 5) -> None:
    """First calls of compiled functions (trace, compile, verification) against jax.jit's, in processes in turn."""
    for name in steps.WIDTHS:
        times: dict[str, list[dict[str, float]]] = {"tapegrad": [], "jax": []}
        for _ in range(rounds):
            for library in random.sample(list(times), 2):
                times[library].append(child(library, "first_call", name))
        theirs = statistics.median(found["first call"] for found in times["jax"])
        ours = {k: statistics.median(found[k] for found in times["tapegrad"]) for k in times["tapegrad"][0]}
        texts = ", ".join([f"{k} {seconds:.3f} s" for k, seconds in ours.items()])
        print(f"{name:24s} {texts}; jax {theirs:.3f} s   ratio {ours['first call'] / theirs:.2f} (bar 1.5)")


def optimizers(rounds: int = 5) -> None:
    """A step of an optimizer, in processes in turn."""
    times: dict[str, list[dict[str, float]]] = {"torch": [], "tapegrad": []}
    for _ in range(rounds):
        for library in random.sample(("torch", "tapegrad"), 2):
            times[library].append(child(library, "optimizers"))
    for name, (bar, *_) in updates.STEPS.items():
        torch, ours = (statistics.median(found[name] for found in times[k]) * 1e6 for k in ("torch", "tapegrad"))
        over = "" if ours / torch <= bar else "  above the bar"
        print(f"{name:34s} torch {torch:8.0f} us   tapegrad {ours:8.0f} us   ratio {ours / torch:.3f} (bar {bar}){over}")


def transform_memory() -> None:
    """Peak memory of a PINN step: all of tapegrad's arrays against what PyTorch's graph saved."""
    ours, theirs = (child(library, "transform_memory") for library in ("tapegrad", "torch"))
    for name, size in ours.items():
        print(f"{name:32s} tapegrad {size:6.1f} MB   torch {theirs[name]:6.1f} MB   ratio {size / theirs[name]:.2f}")


ALL = {
    f.__name__: f
    for f in (
        tiny,
        mlp,
        eikonal,
        memory,
        scaling,
        startup,
        kernels,
        kernel_memory,
        transforms,
        transform_memory,
        training,
        optimizers,
        compiled,
        first_calls,
    )
}
OTHERS = {f.__name__: f for f in (limits, extremes, plot)}  # run when they are named

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(ALL), choices=[*ALL, *OTHERS, []])
    for name in parser.parse_args().names:
        print(f"-- {name}")
        (ALL | OTHERS)[name]()

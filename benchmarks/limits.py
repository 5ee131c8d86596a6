"""`python -m benchmarks limits`: every figure that has a limit, beside it, printed and written into docs/performance.md.

It takes five to seven minutes.

Small programs alternate in blocks in one process, both libraries on one thread; larger ones in processes in turn, each with
all of its threads. NumPy floors and products alone share a process and its threads with tapegrad.
"""

from __future__ import annotations

import concurrent.futures
import functools
import operator
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import floors, kernels, training, transforms, workloads
from .clocks import child, in_turn, paired

SHAPES = {"small": (100, 64), "smallest": (8, 16)}
EIKONAL = ((64, 64, 400), (1024, 128, 60), (4096, 256, 10))
TINY = {
    "no_grad": 0.68,
    "forward+backward": 0.48,
    "second order": 0.69,
    "second order, constant factors": 0.6,
    "raw mlp": 0.48,
}
EIKONAL_BARS = {64: 0.6, 1024: 0.85, 4096: 0.85}
READING = 1.3  # x[i] without grad, of PyTorch's
SHARED = 2.2  # on a tensor with a living view, of a private one
FLOOR = 1.15  # of a NumPy floor, or of the products alone
IMPORT = {"import tapegrad": 45.0, "nn, optim and autograd touched": 40.0}


class Row(NamedTuple):
    name: str
    ours: float
    other: float
    limit: float
    unit: str = "us"
    difference: bool = False  # ours minus the other, rather than the ratio

    @property
    def value(self) -> float:
        return self.ours - self.other if self.difference else self.ours / self.other

    def __str__(self) -> str:
        over = "" if self.value <= self.limit else "  above"
        sizes = f"{self.ours:11.2f} {self.other:11.2f} {self.unit}"
        return f"{self.name:58s} {sizes}   {self.value:7.3f}   limit {self.limit:5.2f}{over}"

    def cells(self) -> str:
        """The value, bold where it is above its limit, and the limit, as cells of a table."""
        value = f"{self.value:.2f}" if self.value <= self.limit else f"**{self.value:.2f}**"
        return f"{value} | {self.limit:.2f}"


def beside_torch(L: Any) -> dict[str, list[float]]:
    """Seconds of small programs on tapegrad and on PyTorch, which alternate in this process (on one thread)."""
    import torch

    torch.set_num_threads(1)
    found = {}

    def compare(name: str, tasks: list[Any], times: int = 1, spent: float = 0.25) -> None:
        found[name] = [s / times for s in paired(*tasks, spent=spent)]

    chains = [workloads.tiny(library) | workloads.raw_mlp(library) for library in (L, torch)]
    for name in TINY:
        compare(name, [tasks[name] for tasks in chains], spent=1.5)
    for name, kernel in kernels.BY_NAME.items():
        if kernel not in kernels.LARGE:
            times = kernels.TIMES[name.split()[0]]
            compare(name, [kernels.first_order(library, kernel, times) for library in (L, torch)], times)
    for shape in SHAPES.values():
        tensors = [library.randn(*shape) for library in (L, torch)]
        compare(f"x[i] of {shape} without grad", [functools.partial(operator.getitem, x, 3) for x in tensors])
    for name, (_, make) in training.LAYERS.items():
        compare(name, [make(library) for library in (L, torch)], spent=2.0)
    networks = [transforms.TASKS[library]() for library in ("tapegrad", "torch")]
    torch.set_num_threads(1)
    for name in LAPLACIANS:
        compare(f"{name}, one process", [tasks[name] for tasks in networks], spent=1.5)
    return found


LAPLACIANS = ("laplacian 3-64-64-64-1", "vmap(laplacian) 3-64-64-64-1")


def beside_floors(L: Any) -> dict[str, list[float]]:
    """Seconds of the large operations, and of their NumPy floors."""
    return {k.name: list(paired(kernels.first_order(L, k), floors.task(L, k), spent=0.7)) for k in kernels.LARGE}


def limit_of(name: str) -> float:
    if name in kernels.BY_NAME:
        return kernels.BY_NAME[name].bar
    if name in training.LAYERS:
        return training.LAYERS[name][0]
    if name.startswith("x[i]"):
        return READING
    return transforms.BARS[name.split(",")[0]][0][1] if "laplacian" in name else TINY[name]


def small_programs() -> Iterator[Row]:
    """tapegrad and PyTorch, one thread each"""
    for name, (ours, torch) in child("tapegrad", "beside_torch", threads=1).items():
        size, _, operation = name.partition(" ")
        shown = f"{SHAPES[size]} {operation}" if name in kernels.BY_NAME else name
        yield Row(shown, ours * 1e6, torch * 1e6, limit_of(name))


def shared_memory() -> Iterator[Row]:
    """on a tensor with a living view, and on a private one"""
    for name, (shared, private) in child("tapegrad", "beside_private", threads=1).items():
        yield Row(name, shared * 1e6, private * 1e6, SHARED)


def larger_programs(rounds: int = 3) -> Iterator[Row]:
    """tapegrad and PyTorch, in processes in turn"""
    tasks: list[tuple[str, float, tuple[Any, ...]]] = [
        (f"eikonal {points}x{width}", EIKONAL_BARS[points], ("eikonal", points, width, calls))
        for points, width, calls in EIKONAL
    ]
    tasks += [(name, bar, ("training", name, 1)) for name, (bar, _) in training.PROGRAMS.items()]
    for name, bar, task in tasks:
        times = in_turn({library: (library, *task) for library in ("tapegrad", "torch")}, rounds)
        ours, torch = (statistics.median(found) * 1e3 for found in times.values())
        yield Row(name, ours, torch, bar, "ms")
    found = {library: child(library, "transforms", "laplacian 3-") for library in ("tapegrad", "torch")}
    found = {k: v | child(k, "transforms", "vmap") for k, v in found.items()}
    for name in LAPLACIANS:
        yield Row(name, *(found[k][name] * 1e3 for k in ("tapegrad", "torch")), transforms.BARS[name][0][1], "ms")


def large_operations() -> Iterator[Row]:
    """tapegrad, and its NumPy floor or its matrix products alone"""
    for name, (ours, floor) in child("tapegrad", "beside_floors").items():
        yield Row(name, ours * 1e6, floor * 1e6, FLOOR)
    for points, width, _ in EIKONAL[1:]:
        ours, products = child("tapegrad", "eikonal_products", points, width)
        yield Row(f"eikonal {points}x{width} of its products", ours * 1e3, products * 1e3, FLOOR, "ms")


def import_times(rounds: int = 20) -> list[float]:
    """Milliseconds of processes that import NumPy, tapegrad too, and its nn, optim and autograd: medians, in turn."""
    programs = ("import numpy", "import tapegrad", "import tapegrad as tg; tg.nn.Linear, tg.optim.Adam, tg.autograd.grad")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times: list[list[float]] = [[] for _ in programs]
    for i in range(rounds + 1):
        for program, found in zip(programs, times, strict=True):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, env=environment)
            if i:  # the first round writes the bytecode
                found.append((time.perf_counter() - start) * 1e3)
    return [statistics.median(found) for found in times]


def imports() -> Iterator[Row]:
    """milliseconds more than NumPy alone, or than tapegrad alone"""
    numpy, ours, touched = import_times()
    for name, a, b in (("import tapegrad", ours, numpy), ("nn, optim and autograd touched", touched, ours)):
        yield Row(name, a, b, IMPORT[name], "ms", difference=True)


def peaks() -> Iterator[Row]:
    """peak memory of tapegrad and PyTorch, a process each"""
    tasks: list[tuple[str, tuple[Any, ...]]] = [
        (f"eikonal {points}x{width}", ("memory", points, width)) for points, width, _ in EIKONAL
    ]
    tasks += [(name, ("kernel_memory", name)) for name in kernels.of_size("large")]
    tasks += [(name, ("program_memory", name)) for name in (*training.PROGRAMS, *training.LAYERS)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        sides = [[pool.submit(child, k, *task) for k in ("tapegrad", "torch")] for _, task in tasks]
        for (name, _), runs in zip(tasks, sides, strict=True):
            yield Row(name, *(run.result() for run in runs), 1.0, "MB")


PARTS = (small_programs, shared_memory, larger_programs, large_operations, imports, peaks)
PAGE = pathlib.Path(__file__).parents[1] / "docs" / "performance.md"
RULER = "|---|---|---|---|---|"
SECTION = re.compile(r"(?<=<!-- limits -->\n).*?(?=<!-- end of limits -->)", re.S)


def markdown(rows: dict[str, list[Row]]) -> str:
    """The rows of each part, by its heading, as tables; operations at two shapes share a line."""
    lines = [f"One run on {cpu()}, {os.cpu_count()} cores, Python {platform.python_version()}. Above the limit is bold.\n"]
    for heading, found in rows.items():
        shapes = {f"{shape} ": {} for shape in SHAPES.values()}
        for row in found:
            for prefix, by_name in shapes.items():
                if row.name.startswith(prefix):
                    by_name[row.name.removeprefix(prefix)] = row
        first, second = shapes.values()
        if first:
            lines += [f"Forward and backward, ten in a graph; {heading}:\n"]
            lines += [
                f"| operation | {' | limit | '.join(str(s) for s in SHAPES.values())} | limit |",
                "|---|---|---|---|---|",
            ]
            lines += [f"| {name} | {row.cells()} | {second[name].cells()} |" for name, row in first.items()] + [""]
        others = [row for row in found if not row.name.startswith(tuple(shapes))]
        lines += [f"Figures: {heading}.\n", "| | the first | the second | | limit |", RULER]
        lines += [f"| {r.name} | {size(r.ours)} {r.unit} | {size(r.other)} {r.unit} | {r.cells()} |" for r in others] + [""]
    return "\n".join(lines)


def size(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def cpu() -> str:
    """The processor's name, as the operating system gives it."""
    info = pathlib.Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", info.read_text(), flags=re.M) if info.is_file() else []
    return names[0] if names else platform.processor() or platform.machine()


def table() -> None:
    rows: dict[str, list[Row]] = {}
    for part in PARTS:
        heading = str(part.__doc__)
        print(f"-- {heading}")
        rows[heading] = []
        for row in part():
            print(row, flush=True)
            rows[heading].append(row)
    print(sum(row.value > row.limit for found in rows.values() for row in found), "above their limit")
    text = markdown(rows)
    PAGE.write_text(SECTION.sub(lambda _: text, PAGE.read_text()))

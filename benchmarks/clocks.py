"""How the benchmarks read the clock: one task in blocks, two in turn in one process, or each in a process of its own."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Task = Callable[[], Any]


def seconds(task: Task, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        task()
    return (time.perf_counter() - start) / calls


def calls_in(task: Task, spent: float) -> int:
    """How many calls take `spent` seconds, at least 1; the first call is not counted."""
    task()
    return max(1, int(spent / seconds(task, 1)))


def timed(step: Task, spent: float = 0.15, rounds: int = 7) -> float:
    """Median over rounds of the seconds of a call, in blocks that fill `spent` seconds together."""
    calls = calls_in(step, spent / rounds)
    times = []
    for _ in range(rounds):
        time.sleep(0.01)
        times.append(seconds(step, calls))
    return statistics.median(times)


def paired(ours: Task, theirs: Task, spent: float = 0.4, rounds: int = 25) -> tuple[float, float]:
    """Seconds of a call of each: the lower quartile of blocks in random turn, which fill `spent` seconds together."""
    tasks = (ours, theirs)
    calls = [calls_in(task, spent / rounds / 2) for task in tasks]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for i in random.sample((0, 1), 2):
            times[i].append(seconds(tasks[i], calls[i]))
    a, b = (statistics.quantiles(found, n=4)[0] for found in times)
    return a, b


def child(library: str, what: str, *args: Any, threads: int | None = None) -> Any:
    """Run `what` on one library in a process of its own; returns what it printed as JSON."""
    command = [sys.executable, "-m", "benchmarks.child", library, what, *map(str, args)]
    environment = os.environ | ({f"{k}_NUM_THREADS": str(threads) for k in ("OPENBLAS", "OMP", "MKL")} if threads else {})
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)


def in_turn(sides: dict[str, tuple[Any, ...]], rounds: int) -> dict[str, list[float]]:
    """What `child` returns for the arguments of each side, in rounds of all sides in random order."""
    found: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side in random.sample(list(sides), len(sides)):
            found[side].append(child(*sides[side]))
    return found

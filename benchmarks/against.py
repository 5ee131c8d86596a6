"""`python -m benchmarks.against CHECKOUT`: this checkout's times over another's, by the same programs.

Both run in processes in turn, in changing order; each figure is the median of several rounds, beside the range that the
rounds of one checkout span: a difference inside it means nothing.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import tapegrad

from . import compiled, training, workloads
from .limits import EIKONAL

HERE = pathlib.Path(__file__).parents[1]
CHILD = (
    "import sys, runpy, tapegrad; sys.path[0] = sys.argv.pop(1); runpy.run_module('benchmarks.child', run_name='__main__')"
)
"""Imports tapegrad from the working directory, and the programs from this checkout."""


def tasks() -> list[tuple[str, ...]]:
    tiny = [("tiny", name) for name in workloads.tiny(tapegrad)]
    eikonal = [("eikonal", *map(str, sizes)) for sizes in EIKONAL]
    steps = [("compiled", "compiled", name) for name in compiled.PROGRAMS]
    return [*tiny, *eikonal, *[("training", name) for name in training.PROGRAMS], *steps]


def seconds(checkout: pathlib.Path, task: tuple[str, ...]) -> float:
    command = [sys.executable, "-c", CHILD, str(HERE), "tapegrad", *task]
    return float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=checkout).stdout))


def compare(other: pathlib.Path, rounds: int) -> None:
    for task in tasks():
        times: dict[pathlib.Path, list[float]] = {HERE: [], other: []}
        for i in range(rounds):
            for checkout in (HERE, other) if i % 2 else (other, HERE):
                times[checkout].append(seconds(checkout, task) * 1e3)
        texts = [f"{statistics.median(t):.4g} ms ({min(t):.4g} to {max(t):.4g})" for t in times.values()]
        ratio = statistics.median(times[HERE]) / statistics.median(times[other])
        print(f"{' '.join(task):52s} this {texts[0]}   other {texts[1]}   ratio {ratio:.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    compare(arguments.checkout.resolve(), arguments.rounds)

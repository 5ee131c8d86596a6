"""`python -m benchmarks.peers`: the figures of docs/comparison.md, of each library that is installed.

A chain of 20 multiplications and 20 additions of 3 floats, forward and backward, without a compiler; the time of an import;
and what the library and what it requires take on disk. Each library runs in a process of its own, in random order, on one
thread; figures are medians.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from packaging.requirements import Requirement

from .clocks import Task, timed
from .workloads import tiny

LIBRARIES = ("tapegrad", "torch", "jax", "autograd", "mygrad")
START, FACTOR = (0.1, 0.2, 0.3), (1.1, 0.9, 1.2)
HERE = pathlib.Path(__file__).parents[1]


def chain(a: Any, b: Any, length: int = 20) -> Any:
    x = a
    for _ in range(length):
        x = x * b
        x = x + a
    return x.sum()


def imperative(library: Any) -> Task:
    return tiny(library)["forward+backward"]


def of_jax(jax: Any) -> Task:
    gradient = jax.grad(chain, argnums=(0, 1))
    operands = [jax.numpy.array(v) for v in (START, FACTOR)]
    return lambda: jax.block_until_ready(gradient(*operands))


def of_autograd(autograd: Any) -> Task:
    np = importlib.import_module("autograd.numpy")
    gradient = autograd.grad(lambda a, b: np.sum(chain(a, b)), (0, 1))
    operands = [np.array(v) for v in (START, FACTOR)]
    return lambda: gradient(*operands)


def of_mygrad(mygrad: Any) -> Task:
    a, b = (mygrad.tensor(v) for v in (START, FACTOR))
    return lambda: chain(a, b).backward()


TASKS: dict[str, Callable[[Any], Task]] = {
    "tapegrad": imperative, "torch": imperative, "jax": of_jax, "autograd": of_autograd, "mygrad": of_mygrad,
}  # fmt: skip


def measure(name: str) -> dict[str, float]:
    start = time.process_time()
    library = importlib.import_module(name)
    imported = time.process_time() - start
    return {"import": imported, "chain": timed(TASKS[name](library))}


def required(name: str, seen: set[str]) -> set[str]:
    """The distribution and those that it requires here, without extras."""
    seen.add(name)
    for requirement in map(Requirement, importlib.metadata.requires(name) or ()):
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and requirement.name not in seen:
            required(requirement.name, seen)
    return seen


def megabytes(name: str) -> float:
    """What the distribution's files take, compiled bytecode excepted."""
    if name == "tapegrad":
        files = [*(HERE / "tapegrad").rglob("*"), *(HERE / "compat" / "dropins").rglob("*")]
    else:
        files = [pathlib.Path(str(f.locate())) for f in importlib.metadata.files(name) or ()]
    return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc") / 1e6


def main(rounds: int = 7) -> None:
    present = [name for name in LIBRARIES if importlib.util.find_spec(name)]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in present}
    environment = os.environ | {f"{k}_NUM_THREADS": "1" for k in ("OPENBLAS", "OMP", "MKL")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # imports are those of an installed package
    for _ in range(rounds):
        for name in random.sample(present, len(present)):
            command = [sys.executable, "-m", "benchmarks.peers", name]
            found[name].append(json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout))
    for name, all_found in found.items():
        needs = {"tapegrad", "numpy"} if name == "tapegrad" else required(name, set())
        chain, imported = (statistics.median(f[what] for f in all_found) for what in ("chain", "import"))
        print(
            f"{name:9s} chain {chain * 1e6:7.0f} us   import {imported * 1e3:5.0f} ms   itself {megabytes(name):6.1f} MB",
            end="",
        )
        print(f"   with {', '.join(sorted(needs - {name}))} {sum(map(megabytes, needs)):6.1f} MB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()

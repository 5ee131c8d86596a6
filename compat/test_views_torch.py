"""Views and writes in place against PyTorch; where it refuses ("modified by an inplace operation"), finite differences."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parents[1] / "tests"))
programs = pytest.importorskip("view_programs")
X, W, run, error = programs.X, programs.W, programs.run, programs.error

REFUSED = {
    "reshape_view", "self_mul", "saved_then_mutated", "exp_then_mutated", "view_saved_then_base_mutated",
    "detach_write_after_save", "buffer_reused", "write_through_transpose_and_reshape", "interleaved_row_views",
    "view_before_and_after_write", "setitem_from_own_view",
    "scatter_reduce_in_place",
}  # fmt: skip


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(name):
    function = programs.PROGRAMS[name]
    assert error(run(tg, function, X, W, 0), run(torch, function, X, W, 0)) < 1e-14
    for order in (1, 2):
        if name in REFUSED:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                run(torch, function, X, W, order)
        else:
            assert error(run(tg, function, X, W, order), run(torch, function, X, W, order)) < 1e-13


STEPS = [
    "index", "T", "reshape", "mul_", "add_", "sin_", "put", "copy_", "mul", "sin", "clone", "mul_broadcast_", "zero_",
    "put_mask", "select", "imul", "detach", "write_detached", "drop", "diagonal", "windows", "index_add_", "index_fill_",
    "scatter_add_", "narrow",
]  # fmt: skip


def random_program(seed, length, aliases=None):
    """A program of random views, writes and reads; `aliases` ("numpy" or "detach") is how detached memory is written."""
    choose = random.Random(seed)
    names = STEPS if aliases or seed % 3 == 0 else [name for name in STEPS if name != "detach"]
    steps = [(choose.choice(names), choose.random(), choose.random(), choose.random()) for _ in range(length)]

    def program(lib, x, w):
        pool, detached, total = [x * w], [], 0.0
        for op, a, b, c in steps:
            t, u = pool[int(a * len(pool))], pool[int(b * len(pool))]
            shape = tuple(t.shape)
            rows = shape[0] if shape else 0
            same = tuple(u.shape) == shape
            if op == "index" and rows > 1:
                k = int(c * (rows - 1))
                pool.append(t[k : k + 2])
            elif op == "select" and rows:
                pool.append(t[int(c * rows)])
            elif op == "T" and len(shape) == 2:
                pool.append(t.T)
            elif op == "reshape" and len(shape) == 2 and t.is_contiguous():
                pool.append(t.reshape(shape[0] * shape[1]) if c < 0.5 else t[...])
            elif op == "mul_":
                t.mul_((u if u is not t else u.clone()) if same else 0.5 + c)
            elif op == "mul_broadcast_" and shape:
                t.mul_(w[:1] * (0.6 + c))
            elif op == "imul":
                t *= 1.0 + c
            elif op == "add_":
                t.add_((u.clone() if c < 0.7 else u.clone().sin()) if same else c)
            elif op == "sin_":
                t.sin_()
            elif op == "zero_" and rows > 1 and c < 0.4:
                t[0].zero_()
            elif op == "put" and rows:
                t[int(c * rows)] = w[0] * c + u.sum() * 0.1
            elif op == "put_mask" and len(shape) == 1:
                t[lib.tensor([i % 2 == 0 for i in range(rows)], dtype=lib.bool)] = w[1] * c
            elif op == "diagonal" and len(shape) == 2:
                pool.append(t.diagonal())
            elif op == "windows" and rows > 1:
                pool.append(t.unfold(0, 2, 2))
            elif op == "narrow" and len(shape) > 1 and shape[1] > 1:
                pool.append(t.narrow(1, int(c * (shape[1] - 1)), 2))
            elif op == "index_add_" and rows:
                k = int(c * rows)
                t.index_add_(0, lib.tensor([k, k]), t.clone()[[k, 0]].sin())
            elif op == "index_fill_" and rows:
                t.index_fill_(0, lib.tensor([int(c * rows)]), c)
            elif op == "scatter_add_" and len(shape) == 1 and rows:
                t.scatter_add_(0, lib.tensor([0, rows - 1, 0]), w[:3] * c)
            elif op == "copy_" and same and u is not t:
                t.copy_(u.clone() * c)
            elif op == "mul" and same:
                pool.append(t * u)
            elif op == "sin":
                total = total + (t.sin() * t).sum()
            elif op == "clone":
                pool.append(t.clone())
            elif op in ("write_detached", "detach") and detached and aliases == "numpy" and c < 0.7:
                n = detached[-1].numpy()
                n[...] *= 0.9
            elif op in ("write_detached", "detach") and detached and aliases == "detach" and c < 0.7:
                detached[-1].mul_(0.9)
            elif op == "detach" and not (aliases and detached and c < 0.7):
                detached.append(t.detach())
                total = total + (t * detached[-1] * c).sum()
            elif op == "drop" and len(pool) > 2:
                pool.pop(int(c * len(pool)))
            if len(pool) > 7:
                pool.pop(0)
        for t in pool:
            total = total + (t * t).sum() * 0.05
        return total

    program.has_constants = any(op == "detach" for op, *_ in steps)
    return program


def compare(seed):
    """None, or why the program is of no use."""
    program = random_program(seed, 14)
    try:
        expected = run(torch, program, X, W, 0)
    except RuntimeError:  # it reads and writes overlapping memory
        return "refused"
    if not np.isfinite(expected[0]).all() or np.abs(expected[0]).max() > 1e3:
        return "large"
    assert error(run(tg, program, X, W, 0), expected) < 1e-10
    for order in (1, 2):
        got = run(tg, program, X, W, order)
        try:
            expected, tolerance = run(torch, program, X, W, order), 1e-8
        except RuntimeError:
            if program.has_constants:
                return "no oracle"
            expected, tolerance = programs.finite_differences(tg, program, order), 1e-4
        assert error(got, expected) < tolerance, order
    return None


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_random_programs(start):
    outcomes = [compare(seed) for seed in range(start, start + 50)]
    assert outcomes.count(None) > 15


def compare_aliases(seed):
    """A write through a NumPy alias changes values and gradients as the same write through the detached tensor does."""
    by_numpy, by_detach = (random_program(seed, 18, kind) for kind in ("numpy", "detach"))
    try:
        values = run(torch, by_numpy, X, W, 0)
    except RuntimeError:
        return "refused"
    if not np.isfinite(values[0]).all() or np.abs(values[0]).max() > 1e6:
        return "large"
    assert error(run(tg, by_numpy, X, W, 0), values) < 1e-10
    for order in (0, 1, 2):
        for a, b in zip(run(tg, by_numpy, X, W, order), run(tg, by_detach, X, W, order), strict=True):
            assert np.allclose(a, b, rtol=1e-9)
    return None


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_writes_through_numpy_equal_writes_through_detach(start):
    outcomes = [compare_aliases(seed) for seed in range(start, start + 50)]
    assert outcomes.count(None) > 15


if __name__ == "__main__":
    for check in (compare, compare_aliases):
        tally = {}
        for seed in range(int(sys.argv[1]), int(sys.argv[2])):
            try:
                outcome = check(seed)
            except Exception as e:
                outcome = f"seed {seed}: {type(e).__name__}: {e}"
            tally[outcome] = tally.get(outcome, 0) + 1
        print(check.__name__, tally)

"""Where reference counts are not relied on: the same numbers, flat memory, no quadratic writes, one warning.

`TAPEGRAD_REFERENCE_COUNTS=0 python -m pytest` runs any other test that way.
"""

import os
import subprocess
import sys

import pytest


def output_of(program, *options, **variables):
    command = [sys.executable, *options, "-c", program]
    env = {**os.environ, "TAPEGRAD_REFERENCE_COUNTS": "0", **variables}
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_the_warning_is_one_line():
    said = output_of("import tapegrad as tg; tg.ones(2)")
    assert said.count("RuntimeWarning") == 1
    assert "TAPEGRAD_REFERENCE_COUNTS is 0" in said


PROGRAMS = {
    "gradients": """
x = tg.tensor([1.0, 2.0], dtype=tg.float64, requires_grad=True)
(g,) = tg.autograd.grad((x**3).sum(), x, create_graph=True)
(h,) = tg.autograd.grad(g.sum(), x)
print(g.tolist(), h.tolist())
""",
    "writes": """
x = tg.tensor([2.0, 3.0], dtype=tg.float64, requires_grad=True)
y = x * x
z = y * y
y.mul_(10)  # z has saved what y was
z.sum().backward()
b = tg.zeros(4, 2, dtype=tg.float64)
row = b[1]
b[0] = x
row.add_(b[0])
saved = (b * b).sum()
b.zero_()
saved.backward()
print(y.tolist(), row.tolist(), x.grad.tolist())
""",
    "hooks": """
x = tg.tensor([2.0], requires_grad=True)
y = x * 3
y.register_hook(lambda g: g * 10)
z = y * 2
del y
z.backward()
print(x.grad.tolist())
""",
    "threads": """
import threading
x, got = tg.tensor([2.0], dtype=tg.float64, requires_grad=True), []
def work():
    for _ in range(50):
        y = x**3
        (g,) = tg.autograd.grad(y, x, create_graph=True)
        got.append(tg.autograd.grad(g, x)[0].item())
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(set(got), len(got))
""",
}
EXPECTED = {
    "gradients": "[3.0, 12.0] [6.0, 12.0]",
    "writes": "[40.0, 90.0] [0.0, 0.0] [40.0, 120.0]",
    "hooks": "[60.0]",
    "threads": "{12.0} 200",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("counts", ["1", "0"])
def test_numbers_are_the_same(name, counts):
    said = output_of("import tapegrad as tg" + PROGRAMS[name], "-W", "ignore", TAPEGRAD_REFERENCE_COUNTS=counts)
    assert said.strip() == EXPECTED[name]


def test_what_is_dead_leaves_the_tape():
    said = output_of(
        """
import gc, weakref
import tapegrad as tg
x = tg.ones(2, requires_grad=True)
for _ in range(5000):
    y = (x * x).sin().sum()
print(len(tg.tape()) < 1000)
y.backward()
del y
h = x * 2.0
h.register_hook(h.__rmul__)  # a hook that captures its own tensor
ref = weakref.ref(h)
del h
gc.collect()
tg.tape().sweep()
print(ref(), len(tg.tape()))
""",
        "-W",
        "ignore",
    )
    assert said.split("\n")[:2] == ["True", "None 0"]


def test_rows_are_filled_without_copies():
    said = output_of(
        """
import tapegrad as tg
b, h = tg.zeros(100, 64), tg.ones(64, requires_grad=True)
b[0] = h
moved = b[0].data_ptr()
for i in range(1, 100):
    b[i] = b[i - 1] * h
print(b[0].data_ptr() == moved)
b.sum().backward()
print(h.grad[0].item())
""",
        "-W",
        "ignore",
    )
    assert said.split() == ["True", str(float(sum(range(1, 101))))]


def test_compiled_functions_run_eagerly():
    pytest.importorskip("jax")
    said = output_of(
        """
import tapegrad as tg
f = tg.compile(lambda x: (x * x).sum())
print([f(tg.tensor([2.0 + i])).item() for i in range(3)])
""",
    )
    assert "[4.0, 9.0, 16.0]" in said
    assert "runs eagerly" in said or "eager" in said

"""Training loops of thousands of steps: whether memory and time per step stay as they are.

`python -m tests.long_runs [name ..] [--steps 10000]` runs each program twice, in processes of its own: a quarter of the
steps with tracemalloc, which sees every byte that Python and NumPy hold, and takes four times as long; all steps without,
for the resident size and the processor time of each step. It prints a row for each and fails where one grows. Resident
sizes and descriptors are read on Linux only.
"""

import argparse
import gc
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np

import tapegrad as tg
from tapegrad import nn, optim
from tapegrad.core.tape import TAPES

TENTHS, WARM, SLOWER = 10, 3, 4
MOST_TRACED, MOST_RESIDENT, MOST_DESCRIPTORS = 512.0, 32768.0, 0.1  # growth per 1000 steps: bytes, bytes, files
PROGRAMS = {}


def program(make):
    """A function that prepares a loop and returns its step."""
    PROGRAMS[make.__name__] = make
    return make


def network(*sizes):
    tg.manual_seed(0)
    layers = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


@program
def mlp():
    net = network(8, 32, 32, 4)
    updates = optim.Adam(net.parameters(), lr=1e-3)

    def step():
        x = tg.randn(16, 8)
        updates.zero_grad()
        loss = nn.functional.cross_entropy(net(x), x.argmax(1) % 4)
        loss.backward()
        updates.step()
        return loss.item()

    return step


@program
def lstm():
    tg.manual_seed(0)
    cells, head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 4)
    parameters = [*cells.parameters(), *head.parameters()]
    updates = optim.SGD(parameters, lr=0.01, momentum=0.9)
    state = None

    def step():
        nonlocal state
        x = tg.randn(4, 8, 4)
        updates.zero_grad(set_to_none=False)
        h, after = cells(x, state)
        state = [s.detach() for s in after]
        ((head(h) - x.cumsum(1)) ** 2).mean().backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        updates.step()

    return step


@program
def convolution():
    tg.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
    updates = optim.AdamW(net.parameters())

    def step():
        x = tg.randn(4, 1, 8, 8)
        loss = nn.functional.cross_entropy(net(x), x.sum((1, 2, 3)).long() % 3)
        updates.zero_grad()
        loss.backward()
        updates.step()

    return step


@program
def gradient_penalty():
    net = network(2, 16, 16, 1)
    updates = optim.Adam(net.parameters())

    def step():
        x = tg.randn(16, 2, requires_grad=True)
        (g,) = tg.autograd.grad(net(x).sum(), x, create_graph=True)
        updates.zero_grad()
        (((g * g).sum(1) - 1) ** 2).mean().backward()
        updates.step()

    return step


@program
def recorded_gradients():
    """`.grad` with a history of its own, and hessian-vector products of it."""
    net = network(2, 8, 1)
    parameters = list(net.parameters())

    def step():
        net(tg.randn(8, 2)).exp().sum().backward(create_graph=True)
        total = sum((p.grad**2).sum() for p in parameters if p.grad is not None)
        tg.autograd.grad(total, parameters, allow_unused=True)
        net.zero_grad()

    return step


@program
def hooks():
    """Of tensors, nodes, leaves, modules and saved tensors; some refer to their own tensor, some are removed."""
    net = network(4, 8, 8, 1)
    norms = {}
    for k, p in enumerate(net.parameters()):
        p.register_post_accumulate_grad_hook(lambda p, k=k: norms.__setitem__(k, float(p.grad.norm())))
    net[0].register_full_backward_hook(lambda module, inputs, outputs: None)

    def step():
        x = tg.randn(8, 4, requires_grad=True)
        handle = net[2].register_forward_hook(lambda module, inputs, output: output * 1.0)
        with tg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), tg.from_numpy):
            y = net[:2](x)
        y.register_hook(lambda g: g * (1.0 + 0 * y.detach()))
        y.retain_grad()
        z = net[2:](y)
        z.grad_fn.register_prehook(lambda gs: None)
        removed = z.register_hook(lambda g: None)
        removed.remove()
        z.sum().backward()
        handle.remove()
        net.zero_grad()

    return step


@program
def custom_function():
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.itself = ctx
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    w = tg.ones(8, requires_grad=True)

    def step():
        y = Square.apply(w * 1.5)
        (g,) = tg.autograd.grad((y * y).sum(), w, create_graph=True)
        (g * g).sum().backward()
        w.grad = None
        Square.apply(w)  # never differentiated

    return step


@program
def views_and_writes():
    kept = tg.zeros(16)
    w = tg.linspace(0.1, 0.9, 4).requires_grad_()

    def step():
        buffer = tg.zeros(6, 4)
        buffer[0] = w
        for k in range(5):
            buffer[k + 1] = (buffer[k] * w).tanh()
        rows = buffer.unbind(0)
        rows[-1].mul_(w)
        kept[4:8] = rows[-1].detach()
        kept.numpy()[:4] += 0.001
        alias = buffer.detach().numpy()
        loss = (buffer * buffer).sum() + (kept[2:6] * w).sum()
        alias[...] = 0.0
        loss.backward()
        with tg.no_grad():
            w.sub_(0.001 * w.grad)
            w.clamp_(0.1, 0.9)
        w.data.mul_(1.0)
        w.grad = None

    return step


@program
def forward_alone():
    """Recorded and never differentiated, with and without no_grad; each result refers to the one before."""
    net = network(4, 16, 4)
    x = tg.randn(8, 4)

    def step():
        nonlocal x
        net(x).sum()
        with tg.no_grad():
            x = net(x)

    return step


@program
def transforms():
    net = network(3, 8, 1)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters, x):
        return tg.func.functional_call(net, parameters, (x,)).sum()

    gradients = tg.func.vmap(tg.func.grad(loss), in_dims=(None, 0))

    def step():
        x = tg.randn(4, 3)
        gradients(parameters, x)
        tg.func.jvp(lambda x: loss(parameters, x), (x,), (x,))
        tg.func.hessian(lambda x: (x**3).sum())(x[0])

    return step


@program
def threads():
    """A thread for each step, the result of which is differentiated after the thread has ended."""
    w = tg.ones(4, requires_grad=True)

    def step():
        results = []
        thread = threading.Thread(target=lambda: results.append((w * 2.0).exp()))
        thread.start()
        thread.join()
        results[0].sum().backward()
        w.grad = None

    return step


@program
def compiled():
    net = network(4, 16, 1)
    updates = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    @tg.compile
    def run(x):
        updates.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        updates.step()
        return loss

    def step():
        return run(tg.randn(8, 4)).item()

    return step


class Numbers(tg.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, k):
        return np.full(4, k, np.float32), k % 3


@program
def data_loader():
    """Batches of two processes, which end and are started anew after 250 steps."""
    net = network(4, 8, 3)
    loader = tg.utils.data.DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))

    def step():
        x, y = next(batches)
        net.zero_grad()
        nn.functional.cross_entropy(net(x / 1000), y).backward()

    return step


# ------------------------------------------------------------------------------------------------------- measurements


def traced_bytes():
    """What is alive: what is dead waits on the tapes for the next sweep, and CPython caches names, up to bounds."""
    gc.collect()
    (sys._clear_internal_caches if hasattr(sys, "_clear_internal_caches") else sys._clear_type_cache)()
    for tape in tuple(TAPES):
        tape._sweep()
    tg.tape().sweep()
    return tracemalloc.get_traced_memory()[0]


def resident_bytes():
    gc.collect()
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def growth(samples, steps_between):
    """Growth per 1000 steps: the slope of a straight line through the samples."""
    return float(np.polyfit(np.arange(len(samples)), samples, 1)[0]) * 1000 / steps_between


def sizes_of(step, steps, size):
    """`size()` at the end of each tenth of the steps, but the first three, in which caches are filled."""
    found = []
    for _ in range(TENTHS):
        for _ in range(steps // TENTHS):
            step()
        found.append(size())
    return found[WARM:]


def traced(name, steps):
    """Growth of what tracemalloc sees."""
    tracemalloc.start()
    return {"traced": growth(sizes_of(PROGRAMS[name](), steps, traced_bytes), steps // TENTHS)}


def timed(name, steps):
    """Growth of the resident size, and processor time of the steps."""
    step, times = PROGRAMS[name](), np.zeros(steps)
    at = iter(range(steps))

    def timed_step():
        start = time.thread_time()
        step()
        times[next(at)] = time.thread_time() - start

    found = sizes_of(timed_step, steps, lambda: (resident_bytes(), descriptors()))
    resident, files = zip(*found, strict=True)
    return {
        "resident": growth(resident, steps // TENTHS),
        "descriptors": growth(files, steps // TENTHS),
        **flatness(times),
    }


def flatness(times):
    """Microseconds: the spread of steps in the second tenth (5th and 95th percentile), and the median of the last."""
    second, last = (np.array_split(times, TENTHS)[k] * 1e6 for k in (1, -1))
    low, high = np.percentile(second, [5, 95])
    return {"low": float(low), "high": float(high), "last": float(np.median(last))}


def faults(found):
    """What grows."""
    limits = {"traced": MOST_TRACED, "resident": MOST_RESIDENT, "descriptors": MOST_DESCRIPTORS, "last": found["high"]}
    return [name for name, limit in limits.items() if found[name] > limit]


def row(name, found):
    text = (
        f"{name:20s} {found['traced']:8.0f} B {found['resident'] / 1024:8.1f} KB {found['descriptors']:6.2f}"
        f" {found['low']:8.0f} .. {found['high']:<8.0f} {found['last']:8.0f}"
    )
    wrong = faults(found)
    return text + f"   grows: {', '.join(wrong)}" * bool(wrong)


def in_process(measure, name, steps):
    command = [sys.executable, "-m", "tests.long_runs", name, "--steps", str(steps), "--measure", measure]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*PROGRAMS, []])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--measure", choices=["traced", "timed"], help="in this process, printed as JSON")
    options = parser.parse_args()
    if options.measure is not None:
        measure = {"traced": traced, "timed": timed}[options.measure]
        print(json.dumps(measure(options.names[0], options.steps)))
        return 0
    print(f"{'growth per 1000 steps:':20s}     traced    resident  files    us a step in the second tenth, and in the last")
    wrong = 0
    for name in options.names or PROGRAMS:
        found = in_process("traced", name, options.steps // SLOWER) | in_process("timed", name, options.steps)
        wrong += bool(faults(found))
        print(row(name, found), flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())

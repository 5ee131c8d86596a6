"""Programs that sixteen threads run at once, switched every microsecond; each asserts what comes out.

`python -m tests.thread_stress --runs 200` runs them that often and says how many runs failed; tests/test_thread_stress.py
runs each a few times.
"""

import argparse
import contextlib
import fractions
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings

import numpy as np

import tapegrad as tg

N = 16


@contextlib.contextmanager
def short_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(function, count=N):
    """What function(i) gives on each of so many threads, which begin at the same moment."""
    start = threading.Barrier(count)
    results, errors = [None] * count, []

    def run(i):
        try:
            start.wait(60)
            results[i] = function(i)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    with short_switches():
        for t in threads:
            t.start()
        for t in threads:
            t.join(120)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def leaf(*values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


def nested_gradients():
    """x**4 w, its derivatives of three orders by .backward, grad of grad, vmap of grad, jvp, hessian."""
    w = leaf(3.0)

    def work(i):
        a = float(i + 1)
        x = leaf(a)
        (g,) = tg.autograd.grad((x**4 * w).sum(), x, create_graph=True)
        (h,) = tg.autograd.grad(g.sum(), x, create_graph=True)
        (third,) = tg.autograd.grad(h.sum(), x)
        assert (g.item(), h.item(), third.item()) == (12 * a**3, 36 * a**2, 72 * a)

        def cube(x):
            return x**3

        t = tg.tensor(a, dtype=tg.float64)
        assert tg.func.grad(tg.func.grad(cube))(t).item() == 6 * a
        points = tg.tensor([a, 2 * a, 3 * a], dtype=tg.float64)
        assert tg.func.vmap(tg.func.grad(cube))(points).tolist() == [3 * p**2 for p in (a, 2 * a, 3 * a)]
        assert tg.func.jvp(tg.func.grad(cube), (t,), (tg.ones_like(t),))[1].item() == 6 * a
        assert tg.func.hessian(lambda v: (v**3).sum())(points).tolist() == np.diag(6 * points.numpy()).tolist()

    together(work)


def shared_parameters():
    """One layer, called and differentiated by all: `.grad` is the sum."""
    layer = tg.nn.Linear(3, 2, dtype=tg.float64)
    with tg.no_grad():
        layer.weight.fill_(1.0)
    rounds = 8

    def work(i):
        x = tg.full((4, 3), float(i), dtype=tg.float64)
        for _ in range(rounds):
            layer(x).sum().backward()

    together(work)
    assert layer.weight.grad.tolist() == [[4.0 * rounds * sum(range(N))] * 3] * 2
    assert layer.bias.grad.tolist() == [4.0 * rounds * N] * 2


def first_hooks():
    """All register the first hooks of a leaf, of a result and of its node; all of them run."""
    x = leaf(2.0)
    y = x * 3.0
    ran = []

    def work(i):
        x.register_hook(lambda g: ran.append(("leaf", i)))
        x.register_post_accumulate_grad_hook(lambda t: ran.append(("post", i)))
        y.register_hook(lambda g: ran.append(("result", i)))
        y.grad_fn.register_hook(lambda inputs, outputs: ran.append(("node", i)))

    together(work)
    y.backward()
    assert sorted(ran) == sorted((kind, i) for kind in ("leaf", "post", "result", "node") for i in range(N))
    assert x.grad.item() == 3.0


def hooks_come_and_go():
    """Half of the threads add and remove hooks on a shared module and leaf, the others run it forward and backward."""
    layer = tg.nn.Linear(2, 2, dtype=tg.float64)
    x = leaf(1.0, 2.0)
    expected = layer.weight.detach().sum(0).tolist()

    def work(i):
        for _ in range(20):
            if i % 2:
                handles = [
                    layer.register_forward_hook(lambda m, a, r: r * 1.0),
                    layer.register_full_backward_hook(lambda m, gi, go: None),
                    tg.nn.module.register_module_forward_pre_hook(lambda m, a: None),
                    layer.weight.register_hook(lambda g: g * 1.0),
                    x.register_hook(lambda g: g * 1.0),
                ]
                for handle in handles:
                    handle.remove()
            else:
                own = x.detach().requires_grad_()
                (g,) = tg.autograd.grad(layer(own).sum() + x.sum(), own)
                assert g.tolist() == expected

    together(work)
    assert not layer._forward_hooks and not layer._backward_hooks and not layer.weight._hooks


def foreign_replay():
    """A graph on one thread's tape is run backward by the others, while its owner records and sweeps."""
    x = leaf(2.0)
    y = x
    for _ in range(20):
        y = y * 1.0 + x
    done = threading.Event()

    def work(i):
        if i == 0:
            while not done.is_set():
                (x * 1.0).sum()
                tg.tape().sweep()
            return 21.0
        try:
            return tg.autograd.grad(y, x, retain_graph=True)[0].item()
        finally:
            finished.append(i)
            if len(finished) == N - 1:
                done.set()

    finished = []
    assert together(work) == [21.0] * N


def swept_by_the_owner():
    """Each thread sweeps its tape while the next one differentiates what stands on it."""
    made = [None] * N
    meet = threading.Barrier(N)

    def work(i):
        x = leaf(1.0 + i)
        made[i] = x, (x * x * x).sum()
        meet.wait(60)
        for _ in range(5):
            tg.tape().sweep()
            other, z = made[(i + 1) % N]
            (g,) = tg.autograd.grad(z, other, create_graph=True)
            tg.tape().sweep()
            assert tg.autograd.grad(g, other, retain_graph=True)[0].item() == 6.0 * (1.0 + (i + 1) % N)

    together(work)


def records():
    """Operations of one name defined by all: each has its own derivative, at once and later."""

    def work(i):
        return tg.custom.linear("stressed", lambda x, k: x * k, lambda xp, g, ans, x, k: g * k, check=False, saves="")

    operations = together(work)
    for i, op in enumerate(operations):
        x = leaf(2.0)
        assert tg.autograd.grad(op(x, i + 1.0), x)[0].item() == i + 1.0


def one_object_each():
    """grad_fn, the class of a node, the type of a result and a kernel's record are one object for all threads."""
    x = leaf(1.0, 2.0)
    y = x * x
    from tapegrad.functions import results

    results.TYPES.clear()
    nodes = together(lambda i: y.grad_fn)
    assert all(n is nodes[0] for n in nodes)
    found = together(lambda i: (type((x.detach().requires_grad_() * 2.0).tanh().grad_fn), type(tg.max(x.detach(), 0))))
    assert len(set(found)) == 1


def leaves_at_once():
    """requires_grad_() of one tensor by all: it is one leaf."""
    x = tg.ones(3, dtype=tg.float64)
    results = together(lambda i: (x.requires_grad_() * float(i)).sum())
    for r in results:
        r.backward()
    assert x.grad.tolist() == [float(sum(range(N)))] * 3


def views():
    """Views that all take of one tensor show what is written into it afterwards, and the tensor what is written there."""
    base = tg.zeros(N, 2, dtype=tg.float64)

    def work(i):
        for _ in range(20):
            view = base[i]
            base + 1.0
            other = base.detach()
        return view, other

    kept = together(work)
    base.add_(1.0)
    for i, (view, other) in enumerate(kept):
        assert view.tolist() == [1.0, 1.0] and other[i].tolist() == [1.0, 1.0]
    for view, _ in kept:
        view.mul_(2.0)
    assert base.tolist() == [[2.0, 2.0]] * N


def files():
    """All save and load, into memory and one folder, and allow a class while they do."""
    state = {"w": tg.arange(6.0).reshape(2, 3), "half": fractions.Fraction(1, 2)}
    with tempfile.TemporaryDirectory() as folder:

        def work(i):
            path = os.path.join(folder, f"{i % 4}.pt")
            for target in (io.BytesIO(), os.path.join(folder, f"own{i}.pt")):
                tg.save(state["w"], target)
                if isinstance(target, io.BytesIO):
                    target.seek(0)
                assert tg.load(target).tolist() == state["w"].tolist()
            tg.save(state["w"], path)  # four threads write one file: it is whole whenever it is read
            assert tg.load(path).tolist() == state["w"].tolist()

        together(work)


def loaders():
    """A DataLoader on each thread."""
    data = tg.utils.data.TensorDataset(tg.arange(12.0))

    def work(i):
        loader = tg.utils.data.DataLoader(data, batch_size=5, shuffle=True)
        seen = sorted(v for _ in range(2) for (batch,) in loader for v in batch.tolist())
        assert seen == sorted([float(v) for v in range(12)] * 2)

    together(work)


def worker_processes():
    """DataLoaders with a worker process on four threads."""
    data = tg.utils.data.TensorDataset(tg.arange(6.0))

    def work(i):
        loader = tg.utils.data.DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="spawn")
        assert [batch.tolist() for (batch,) in loader] == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0]]

    together(work, 4)


def generators():
    """All draw from one generator: together they get the numbers that one thread would."""
    generator = tg.Generator().manual_seed(3)
    drawn = together(lambda i: [tg.rand(5, generator=generator).tolist() for _ in range(10)])
    rows = sorted(tuple(row) for rows in drawn for row in rows)
    generator.manual_seed(3)
    assert rows == sorted(tuple(tg.rand(5, generator=generator).tolist()) for _ in range(10 * N))


def divergences():
    """Half of the threads register rules for kl_divergence, the others ask for some: a new rule is used at once."""
    d = tg.distributions
    classes = [type(f"Own{i}", (d.Normal,), {}) for i in range(N)]
    try:

        def work(i):
            if i % 2:
                for k in range(10):
                    d.register_kl(classes[i], classes[i])(lambda p, q, k=k: tg.tensor(float(k)))
                    assert d.kl_divergence(classes[i](0.0, 1.0), classes[i](0.0, 1.0)).item() == k
            else:
                for _ in range(10):
                    assert d.kl_divergence(classes[i](1.0, 1.0), d.Normal(0.0, 1.0)).item() == 0.5

        together(work)
    finally:
        for c in classes:
            d.kl._KL_REGISTRY.pop((c, c), None)
        d.kl._KL_MEMOIZE.clear()


def optimizers():
    """Each trains a model of its own, and all get what one thread gets."""

    def train(i):
        x = leaf(float(i), -float(i))
        optimizer = tg.optim.Adam([x], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            ((x - 1.0) ** 2).sum().backward()
            optimizer.step()
        return x.tolist()

    assert together(train) == [train(i) for i in range(N)]


def modes():
    """no_grad, inference and autocast of half of the threads do not reach the others."""

    def work(i):
        x = leaf(2.0)
        for _ in range(20):
            if i % 2:
                with tg.no_grad(), tg.autocast("cpu", dtype=tg.float16):
                    assert not (x * x).requires_grad
            else:
                assert (x * x).requires_grad and not tg.is_autocast_enabled("cpu")

    together(work)


def compiled_by_all():
    """One compiled function, first called by all at once, and two that share a parameter; needs JAX."""
    w = leaf(2.0, 3.0)

    def loss(x):
        return (w * x * x).sum()

    one, other = tg.compile(loss), tg.compile(lambda x: tg.autograd.grad(loss(x), x, create_graph=True)[0].sum())

    def work(i):
        x = leaf(1.0 + i, 2.0)
        for k in range(3):
            f = one if (i + k) % 2 else other
            y = f(x)
            assert y.item() == (2.0 * (1.0 + i) ** 2 + 12.0 if f is one else 4.0 * (1.0 + i) + 12.0)
            assert tg.autograd.grad(y, x)[0].tolist() == ([4.0 * (1.0 + i), 12.0] if f is one else [4.0, 6.0])

    together(work, 4)


IMPORTS = """
import sys, threading
sys.setswitchinterval(1e-6)
import numpy as np
import tapegrad as tg
start, errors = threading.Barrier(16), []
def work(i):
    try:
        start.wait(60)
        x = tg.tensor([1.0, 2.0], dtype=tg.float64, requires_grad=True)
        y = tg.nn.functional.gelu(x).sum() if i % 4 == 0 else tg.linalg.norm(x) if i % 4 == 1 else np.sin(x).sum()
        y = y + tg.special.erf(x).sum() + tg.fft.rfft(x).abs().sum()
        (g,) = tg.autograd.grad(y, x, create_graph=True)
        g.sum().backward()
        tg.optim.SGD([x], lr=0.1).step()
        tg.distributions.Normal(0.0, 1.0).log_prob(x)
        tg.func.vmap(tg.func.grad(lambda v: v**2))(x.detach())
        [getattr(tg, name) for name in ("save", "utils", "random", "amp", "summary", "masked", "sparse")]
        assert tg.nn.Linear(2, 2).double()(x).shape == (2,)
        list(tg.core.op.TABLE) if i == 3 else None
    except BaseException as e:
        import traceback
        errors.append(traceback.format_exc())
threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
for t in threads: t.start()
for t in threads: t.join(100)
print(*errors)
assert not any(t.is_alive() for t in threads), "a thread hangs"
assert len({id(m) for n, m in sys.modules.items() if n == "tapegrad.nn.functional"}) == 1
"""


def lazy_imports():
    """What is imported when first touched, first touched by all in a fresh process."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", IMPORTS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.strip() == "", done.stdout + done.stderr


QUICK = (
    nested_gradients, shared_parameters, first_hooks, hooks_come_and_go, foreign_replay, swept_by_the_owner, records,
    one_object_each, leaves_at_once, views, files, loaders, generators, divergences, optimizers, modes,
)  # fmt: skip
SLOW = (lazy_imports, worker_processes, compiled_by_all)  # processes, compilation


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="names of programs; by default all")
    options = parser.parse_args()
    failed = 0
    for program in (*QUICK, *SLOW):
        if options.only and program.__name__ not in options.only:
            continue
        if program is compiled_by_all and importlib.util.find_spec("jax") is None:
            print(f"{program.__name__:20} skipped: no JAX")
            continue
        began, failures = time.perf_counter(), []
        for _ in range(options.runs):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    program()
            except BaseException:
                failures.append(traceback.format_exc())
        failed += bool(failures)
        took = time.perf_counter() - began
        print(f"{program.__name__:20} {options.runs} runs, {len(failures)} failed, {took:.0f} s", flush=True)
        for text in failures[:1]:
            print(text, flush=True)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()

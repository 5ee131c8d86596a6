"""What the tape keeps and for how long, and its printed form."""

import contextlib
import gc
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import factories, reverse
from tapegrad.core.entry import saved_arrays
from tapegrad.core.op import TABLE, Op
from tapegrad.core.tape import TAPES

SECOND = "Trying to backward through the graph a second time"


def leaf(*values):
    return tg.tensor(values, dtype=tg.float64, requires_grad=True)


@contextlib.contextmanager
def without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture(autouse=True)
def swept():
    tg.tape().sweep()


# ------------------------------------------------------------------------------------------------------- what is visited


def test_a_small_gradient_beside_a_large_live_graph_visits_its_own_entries(monkeypatch):
    x = leaf(1.0)
    chain = x
    for _ in range(100_000):
        chain = chain + 1.0
    y = x * x
    z = y.sum()
    visited = []
    reach = reverse.reach

    def counting(*args, **kwargs):
        found, homes = reach(*args, **kwargs)
        visited.append(len(found))
        return found, homes

    monkeypatch.setattr(reverse, "reach", counting)
    tg.tape().sweep()
    sweeps = []
    monkeypatch.setattr(type(tg.tape()), "_sweep", lambda self: sweeps.append(len(self)))
    for _ in range(20):
        tg.autograd.grad(z, x, retain_graph=True)
    tg.autograd.grad(z, x)
    assert visited == [2] * 21 and sweeps == []


@pytest.mark.parametrize("also", [False, True])
def test_a_pass_is_followed_by_a_sweep_if_it_left_out_what_was_recorded(monkeypatch, also):
    """Of what a pass has released nothing is left that is large; what it did not visit may be dead."""
    x, tape = tg.ones(100, 100, requires_grad=True), tg.tape()
    tape.clear()  # of what other tests keep alive
    sweeps, sweep = [], type(tape)._sweep
    monkeypatch.setattr(type(tape), "_sweep", lambda self: (sweeps.append(len(self)), sweep(self)))
    for _ in range(10):
        if also:
            x.exp()
        y = (x * x).sum()
        y.backward()
        assert [a for e in tape.values() for a in saved_arrays(e)] == [] and tape.bytes == 0
    assert len(sweeps) == (10 if also else 0) and len(tape) <= 20


def test_sweeps_are_amortised(monkeypatch):
    """Entries visited by sweeps stay in proportion to entries recorded, with a large live graph and without."""
    tape, visited = tg.tape(), []
    sweep = type(tape)._sweep
    monkeypatch.setattr(type(tape), "_sweep", lambda self: (visited.append(len(self)), sweep(self)))
    x = leaf(1.0)
    for live in (0, 20_000):
        chain = x
        for _ in range(live):
            chain = chain + 1.0
        visited.clear()
        for _ in range(50_000):
            x * 2.0
        assert sum(visited) < 4 * (50_000 + live)
        assert len(tape) < 2 * live + 1000


@pytest.mark.every(2)
def test_deep_chain_records_replays_and_dies_without_recursion(entries):
    x = leaf(1.0)
    y = x
    for _ in range(400_000):
        y = y + 1.0
    (g,) = tg.autograd.grad(y, x, retain_graph=True)
    assert g.item() == 1.0
    y.backward()
    assert x.grad.item() == 1.0
    del y
    assert entries() == 0


def test_deep_chain_that_is_never_replayed_dies_without_recursion(entries):
    y = leaf(1.0)
    for _ in range(400_000):
        y = y * 1.0
    del y
    assert entries() == 0


def test_deep_recorded_replay():
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y * 1.0
    (g,) = tg.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), x)
    assert g.item() == h.item() == 2.0


# ------------------------------------------------------------------------------------------------------------- memory


def network(width=256, depth=8):
    weights = [tg.randn(width).requires_grad_() for _ in range(depth)]

    def run(x):
        for w in weights:
            x = tg.tanh(x * w)
        return x

    return run


def traced(function):
    """Bytes that are still held after a call, and the peak."""
    gc.collect()
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


@pytest.mark.every(3)
@pytest.mark.parametrize(("rows", "width"), [(512, 64), (60, 128), (1, 16)])
def test_forward_passes_without_backward_run_in_flat_memory(rows, width):
    net, x = network(width), tg.randn(rows, width)
    _, once = traced(lambda: net(x))
    tg.tape().sweep()

    def many():
        for _ in range(200):
            net(x)

    _, peak = traced(many)
    assert peak < 2 * once + (16 << 20) + (1 << 20)


def test_copies_of_array_operands_count_as_memory():
    """`data @ w` keeps a copy of the array: the results alone do not tell what the tape holds."""
    data, w = np.ones((500, 500)), tg.ones(500, 1, dtype=tg.float64, requires_grad=True)

    def many():
        for _ in range(100):
            data @ w

    _, peak = traced(many)
    assert peak < 2 * data.nbytes + (16 << 20)


def test_memory_is_back_after_a_result_died_and_one_operation_ran_under_no_grad():
    net, x = network(64), tg.randn(2048, 64)

    def run():
        y = net(x)
        del y
        with tg.no_grad():
            x * 1.0

    held, peak = traced(run)
    assert held < 200_000 < peak


def test_memory_is_back_after_backward():
    net, x = network(64), tg.randn(2048, 64)

    def run():
        y = net(x)
        y.backward(tg.ones(2048, 64), inputs=[leaf_of_net])

    leaf_of_net = x.requires_grad_()
    net(x).sum().backward()
    held, _ = traced(run)
    assert held < 1 << 20


@pytest.mark.every(2)
@pytest.mark.parametrize("size", [4, 80])
def test_second_order_steps_do_not_grow(size, entries):
    w = tg.randn(size, size, dtype=tg.float64).requires_grad_()

    def steps(n):
        for _ in range(n):
            w.grad = None
            tg.tanh(w * w).sum().backward(create_graph=True)
            (w.grad * w.grad).sum()
        w.grad = None
        tg.tape().sweep()

    with without_collector():
        steps(20)
        held, _ = traced(lambda: steps(500 if size == 4 else 30))
    assert held < 200_000
    assert entries() == 0


def test_no_reference_cycles():
    x = leaf(1.0, 2.0)
    with without_collector():
        y = (x * 2.0).exp()
        y.register_hook(lambda g: g * 1.0)
        z = (y * y[0:1]).sum()
        (g,) = tg.autograd.grad(z, x, create_graph=True)
        g.sum().backward()
        refs = [weakref.ref(t) for t in (y, z, g)]
        saved = weakref.ref(y.detach().numpy().base or y.detach())
        node = z.grad_fn
        del y, z, g, node
        assert [r() for r in refs] == [None] * 3 and saved() is None
        r = weakref.ref(x)
        del x
        assert r() is None


def test_backward_with_create_graph_makes_no_cycle_between_leaf_and_gradient():
    with without_collector():
        x = leaf(1.0, 2.0)
        (x * x).sum().backward(create_graph=True)
        r = weakref.ref(x)
        assert x.grad.requires_grad
        del x
        assert r() is None


# ------------------------------------------------------------------------------------------------------------- the sweep


def test_sweep_on_the_first_operations_of_a_process():
    code = """
import tapegrad as tg
x = tg.ones(2, requires_grad=True)
keep = x * 2.0
dead = [keep * float(i) for i in range(5)]
assert len(tg.tape()) == 6, len(tg.tape())
del dead
tg.tape().sweep()
assert len(tg.tape()) == 1, len(tg.tape())
del keep
tg.tape().sweep()
assert len(tg.tape()) == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("first", ["tg.ones(200, 200)", "tg.ones(2)"])
def test_the_first_operation_of_a_thread(first):
    code = f"""
import threading
import tapegrad as tg
def run():
    x = {first}.requires_grad_()
    (x * 2.0).sum().backward()
    assert float(x.grad.flatten()[0]) == 2.0
    done.append(1)
done = []
for _ in range(2):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
run()
assert len(done) == 3
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tapes_of_ended_threads_are_swept_and_forgotten():
    results = []
    thread = threading.Thread(target=lambda: results.append(leaf(1.0) * 2.0))
    thread.start()
    thread.join()
    home = next(t for t in TAPES if results[0]._s in t)
    del thread
    results.clear()
    tg.tape().sweep()
    tg.tape().sweep()
    x = leaf(1.0)
    for _ in range(2000):
        x * 2.0
    assert len(home) == 0
    r = weakref.ref(home)
    del home
    tg.tape().sweep()
    assert r() is None


# ------------------------------------------------------------------------------------------- retaining and releasing


def test_second_backward_is_refused_before_anything_is_accumulated():
    x, w = leaf(2.0), leaf(3.0)
    y = x * x
    z = (y * w).sum()
    z.backward()
    with pytest.raises(RuntimeError, match=SECOND):
        z.backward()
    assert x.grad.item() == 12.0 and w.grad.item() == 4.0
    other = (x * 2.0 + y * w).sum()
    with pytest.raises(RuntimeError, match=SECOND):
        other.backward()
    assert x.grad.item() == 12.0


def test_the_error_names_the_released_operation_and_its_line():
    x = leaf(2.0)
    y = x.exp()
    y.backward()
    line = test_the_error_names_the_released_operation_and_its_line.__code__.co_firstlineno + 2
    with pytest.raises(RuntimeError, match=rf"Node ExpBackward0 has been released. Recorded at .*test_tape.py:{line}\."):
        y.backward()


def test_retain_graph_keeps_everything():
    x = leaf(2.0)
    y = (x * x).exp().sum()
    for _ in range(3):
        y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == pytest.approx(4 * 4 * np.exp(4.0))
    with pytest.raises(RuntimeError, match=SECOND):
        y.backward()


def test_graph_released_through_a_shared_part():
    x = leaf(2.0)
    trunk = x.exp()
    left, right = (trunk * 2.0).sum(), (trunk * 3.0).sum()
    left.backward()
    with pytest.raises(RuntimeError, match=SECOND):
        right.backward()


def test_entries_that_saved_nothing_serve_two_passes():
    x = leaf(2.0)
    h = x + 1.0
    (h * h).sum().backward()
    (h * h).sum().backward()
    assert x.grad.item() == 12.0


@pytest.fixture
def sincos():
    op = Op(
        "sincos", "general", lambda x: (np.sin(x), np.cos(x)),
        (lambda xp, g, ans, x: g[0] * ans[1] - g[1] * ans[0],), saves="ans", outputs=2, zero_filled=True, jax="host",
    )  # fmt: skip
    factories.make(op)
    yield op.call
    del TABLE["sincos"]


@pytest.mark.parametrize("n", [1, 10_000])
def test_gradients_of_several_outputs(sincos, n):
    x = tg.full((n,), 0.3, dtype=tg.float64).requires_grad_()
    sine, cosine = np.sin(0.3), np.cos(0.3)
    s, c = sincos(x)
    (g,) = tg.autograd.grad((s * c).sum(), x, create_graph=True)
    assert g[0].item() == pytest.approx(cosine**2 - sine**2)
    assert tg.autograd.grad(g.sum(), x)[0][0].item() == pytest.approx(-4 * sine * cosine)
    c = sincos(x)[1]
    c.sum().backward()
    assert x.grad[0].item() == pytest.approx(-sine)
    with pytest.raises(RuntimeError, match=SECOND):
        c.sum().backward()
    s, c = sincos(x)
    log = []
    c.register_hook(lambda g: log.append(g[0].item()))
    by_x, by_s, by_c = tg.autograd.grad((s * 2.0 + c * 3.0).sum(), [x, s, c])
    assert by_x[0].item() == pytest.approx(2 * cosine - 3 * sine)
    assert by_s[0].item() == 2.0 and by_c[0].item() == 3.0 and log == [3.0]


def test_liveness_of_several_outputs(sincos):
    tg.tape().clear()
    x = leaf(0.3)
    s, c = sincos(x)
    line = test_liveness_of_several_outputs.__code__.co_firstlineno + 3
    del s
    tg.tape().sweep()
    printed = str(tg.tape()).split("\n")
    where = f"test_tape.py:{line}"
    assert printed == [f"v2 = sincos(leaf1)  float64[1], float64[1]  16 B  {where}", f"v3 = v2[1]  {where}"]
    del c
    tg.tape().sweep()
    assert len(tg.tape()) == 0


def test_values_with_indices():
    x = leaf(3.0, 1.0, 2.0)
    values, indices = tg.max(x, 0)
    assert indices.item() == 0 and not indices.requires_grad
    (g,) = tg.autograd.grad(values * values, x, create_graph=True)
    assert g.tolist() == [6.0, 0.0, 0.0]
    assert tg.autograd.grad(g.sum(), x)[0].tolist() == [2.0, 0.0, 0.0]


def test_a_leaf_that_died_gets_no_gradient_and_is_no_error():
    x, w = leaf(2.0), leaf(3.0)
    y = (x * w).sum()
    del w
    y.backward()
    assert x.grad.item() == 3.0


def test_released_arrays_are_freed_at_once():
    x = tg.ones(1000, requires_grad=True)
    h = x * 2.0
    y = h.exp()
    array = weakref.ref(y.detach().numpy())
    held = weakref.ref(h._d)
    z = (y * h).sum()
    del h, y
    assert held() is not None
    z.backward()
    assert held() is None and array() is None


# ----------------------------------------------------------------------------------------------------- the printed tape


def test_printed_tape():
    tg.tape().clear()
    x = tg.ones(1024, 3, requires_grad=True)
    y = x * x
    z = y.sum()
    line = test_printed_tape.__code__.co_firstlineno + 3
    assert str(tg.tape()).split("\n") == [
        f"v2 = mul(leaf1, leaf1)  float32[1024, 3]  12 KB  test_tape.py:{line}",
        f"v3 = sum(v2)  float32[]  4 B  test_tape.py:{line + 1}",
    ]
    z.backward()
    assert str(tg.tape()) == (
        f"v1 = mul, released  test_tape.py:{line}\nv2 = sum(v1)  float32[]  4 B  test_tape.py:{line + 1}"
    )
    assert len(tg.tape()) == 2 and repr(tg.tape()) == "<tape with 2 entries>"


def test_empty_tape():
    tg.tape().clear()
    assert str(tg.tape()) == "(empty tape)" and repr(tg.tape()) == "<tape with 0 entries>"


def test_a_cleared_tape_differentiates_nothing_recorded_before():
    x = leaf(2.0)
    y = x * x
    tg.tape().clear()
    assert len(tg.tape()) == 0
    with pytest.raises(RuntimeError, match=SECOND):
        y.backward()
    (x * x).backward()
    assert x.grad.item() == 4.0


RECORDED = {
    "x * x": lambda x: x * x, "x * number": lambda x: x * 2.0, "number - x": lambda x: 2.0 - x, "-x": lambda x: -x,
    "array": lambda x: x * np.ones(2), "untracked": lambda x: tg.ones(2) * x, "relu": lambda x: x.relu(),
    "sum": lambda x: x.sum(), "cat": lambda x: tg.cat([x, x]), "where": lambda x: tg.where(x > 0, x, 1.0),
    "view": lambda x: x[:1], "expit": lambda x: tg.special.expit(x),
}  # fmt: skip


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
def test_entries_are_counted_once_slots_pass_the_limit(recorded, monkeypatch):
    tape, x, asked = tg.tape(), leaf(1.0, 2.0), []
    recorded(x)
    monkeypatch.setattr(type(tape), "due", lambda self, slot: asked.append(slot))
    monkeypatch.setattr(tape, "limit", (x * 1.0)._s + 1)
    asked.clear()
    y = recorded(x)
    assert y._s == tape.limit and asked == []
    y = recorded(x)
    assert asked == [y._s]

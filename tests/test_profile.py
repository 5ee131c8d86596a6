"""`tg.profile`: what it counts, by which line, and that it leaves everything as it was."""

import asyncio
import inspect
import json
import threading

import numpy as np
import pytest
from needs_scipy import ABSENT

import tapegrad as tg
from tapegrad import testing
from tapegrad.core import alias, plain_record, record, vjp
from tapegrad.core.op import TABLE
from tapegrad.functions import inplace
from tapegrad.optim.optimizer import Optimizer
from tapegrad.viz import profiling


def counts(p):
    """Forward and backward calls by operation."""
    found = {}
    for row in p.rows:
        a, b = found.get(row.operation, (0, 0))
        found[row.operation] = a + row.calls, b + row.backward_calls
    return found


def state():
    """What a profile replaces while it is open."""
    held = [cell.cell_contents for op in TABLE.all().values() for cell in profiling.cells_of(op)]
    tables = [v.table for v in vars(vjp).values() if isinstance(v, vjp.ReplayKind)]
    others = record.forward_of, alias.on_arrays, inplace.functional, Optimizer._step_in_place
    return held, [id(table) for table in tables], others, record.traces, alias.traces, plain_record.F32


@pytest.fixture(autouse=True)
def restored():
    before = state()
    yield
    assert state() == before and profiling.TIMERS.open == 0 and profiling.ACTIVE.get() == ()
    assert profiling.RUNNING.called == []


def line_after(start, text):
    """The number of the first line of this file after `start` that has a text."""
    lines = inspect.getsource(inspect.getmodule(line_after)).splitlines()
    return next(i for i, line in enumerate(lines, 1) if i > start and text in line)


def test_operations_are_counted_by_line_forward_and_backward():
    x = tg.ones(4, 3, requires_grad=True)
    here = inspect.currentframe().f_lineno
    with tg.profile() as p:
        for _ in range(5):
            y = x.sin() * 2.0
            loss = y.sum()
            loss.backward()
    rows = {row.operation: row for row in p.rows}
    assert counts(p) == {"sin": (5, 5), "mul": (5, 5), "sum": (5, 5)}
    assert (rows["sin"].file, rows["sin"].line) == (__file__, line_after(here, "x.sin()"))
    assert rows["sum"].line == line_after(here, "y.sum()") and rows["mul"].line == rows["sin"].line
    assert (rows["sin"].nbytes, rows["sum"].nbytes) == (5 * 48, 5 * 4)
    assert all(row.forward > 0 and row.backward > 0 for row in p.rows)
    assert sum([row.total for row in p.rows]) < p.elapsed


def test_times_of_a_recorded_gradient_count_once():
    x = tg.randn(300, 300, requires_grad=True)
    with tg.profile() as p:
        (g,) = tg.autograd.grad((x @ x).tanh().sum(), x, create_graph=True)
        (g * g).sum().backward()
    found = counts(p)
    assert found["matmul"] == (3, 4) and found["tanh"] == found["tanh_slope"] == (
        1,
        1,
    )  # each of the three products, the first one twice
    assert sum([row.total for row in p.rows]) < p.elapsed
    forward = next(row for row in p.rows if row.operation == "matmul")
    assert forward.calls == 3  # under the line of the product that was differentiated


def test_every_record_is_counted(exhaustive):
    """Whatever shortcut its recording function has; a Function runs operations, which are counted."""
    missing = set()
    present = {n: op for n, op in TABLE.all().items() if n not in ABSENT}
    records = sorted(present.items())[:: 1 if exhaustive else 4] + [("function", TABLE["function"])]
    with tg.profile():  # the timers are put in place once
        for name, op in records:
            for sample in testing.samples_of(op):  # the first may be nothing to do, as `conj` of real numbers
                with tg.profile() as p:
                    testing.call(op, [testing.leaf(a, False) for a in sample.arrays], sample.params)
                if op.name in counts(p):
                    break
            else:
                missing.add(name)
    assert missing == {"function"}


def test_small_layers_with_shortcuts_are_counted():
    x = tg.randn(4, 8, requires_grad=True)
    with tg.profile() as p:
        h = tg.nn.functional.layer_norm(x, (8,)).softmax(-1)
        loss = tg.nn.functional.cross_entropy(h.sigmoid(), tg.tensor([0, 1, 2, 3]))
        loss.backward()
    assert {"softmax", "sigmoid"} <= {row.operation for row in p.rows if row.calls == 1 and row.backward_calls == 1}


def test_views_writes_and_steps_of_optimizers_are_counted():
    w = tg.nn.Parameter(tg.ones(6))
    adam = tg.optim.Adam([w])
    with tg.profile() as p:
        w.reshape(2, 3)[0].sum().backward()
        adam.step()
        with tg.no_grad():
            w.mul_(0.5)
    assert {"reshape", "index", "Adam.step", "mul"} <= set(counts(p)) and w[0].item() < 0.5


def test_values_and_gradients_are_those_without_a_profile():
    def step():
        tg.manual_seed(0)
        net = tg.nn.Sequential(tg.nn.Linear(3, 40), tg.nn.Tanh(), tg.nn.Linear(40, 1))
        x = tg.randn(50, 3, requires_grad=True)
        (g,) = tg.autograd.grad(net(x).sum(), x, create_graph=True)
        loss = ((g.norm(dim=1) - 1) ** 2).mean()
        loss.backward()
        return [loss.detach().numpy().copy(), *[p.grad.numpy().copy() for p in net.parameters() if p.grad is not None]]

    expected = step()
    with tg.profile():
        got = step()
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_profiles_nest_and_can_be_opened_again():
    x = tg.ones(3)
    with tg.profile() as outer:
        x.sin()
        with tg.profile() as inner:
            x.cos()
        x.sin()
    assert counts(outer) == {"sin": (2, 0), "cos": (1, 0)} and counts(inner) == {"cos": (1, 0)}
    with inner:
        x.cos()
        with pytest.raises(RuntimeError, match="open already"):
            inner.__enter__()
    assert counts(inner) == {"cos": (2, 0)}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_leaves_everything_as_it_was(error):
    x = tg.ones(3, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda g: (_ for _ in ()).throw(error("hook")))
    with pytest.raises(error), tg.profile() as p:
        (y * 2.0).sum().backward()
    with pytest.raises(RuntimeError), tg.profile() as q:
        x @ tg.ones(4)
    assert counts(p)["mul"] == (1, 1) and q.rows == []
    with tg.profile() as r:
        x.sin()
    assert counts(r) == {"sin": (1, 0)}


def test_other_threads_and_tasks_are_not_counted():
    x = tg.ones(3, requires_grad=True)
    inside, done = threading.Event(), threading.Event()
    profiles = []

    def work():
        inside.wait(10)
        x.cos().sum().backward()
        with tg.profile() as own:
            x.tan()
        profiles.append(own)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with tg.profile() as p:
        inside.set()
        assert done.wait(10)
        x.sin()
    thread.join()
    assert counts(p) == {"sin": (1, 0)} and counts(profiles[0]) == {"tan": (1, 0)}

    async def measured(function):
        with tg.profile() as p:
            function()
            await asyncio.sleep(0)
            function()
            await asyncio.sleep(0)
        return p

    async def both():
        return await asyncio.gather(measured(x.sin), measured(x.cos))

    first, second = asyncio.run(both())
    assert counts(first) == {"sin": (2, 0)} and counts(second) == {"cos": (2, 0)}


def test_many_threads_open_and_close_profiles():
    failures = []

    def work():
        try:
            x = tg.ones(3, requires_grad=True)
            for _ in range(8):
                with tg.profile() as p:
                    x.sin().sum().backward()
                assert counts(p) == {"sin": (1, 1), "sum": (1, 1)}
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


def test_the_table_is_sorted_and_cut():
    x = tg.ones(1000, requires_grad=True)
    with tg.profile() as p:
        for _ in range(3):
            x.sin()
        x.cos().sum().backward()
    assert p.table(sort_by="calls").splitlines()[2].startswith("sin ")
    assert p.table(sort_by="bytes").splitlines()[2].startswith("sin ")
    by_line = [line.split()[0] for line in p.table(sort_by="line").splitlines()[2:5]]
    assert by_line[0] == "sin"
    backward = [row.operation for row in sorted(p.rows, key=lambda row: -row.backward)]
    assert [line.split()[0] for line in p.table(sort_by="backward", row_limit=-1).splitlines()[2:5]] == backward
    assert p.table(row_limit=1).splitlines()[-1] == "2 more rows: row_limit=-1 shows all"
    head = ["operation", "line", "calls", "forward", "backward", "total", "share", "bytes", "code"]
    assert str(p).splitlines()[0].split() == head
    assert [row.total for row in p.rows] == sorted([row.total for row in p.rows], reverse=True)
    with pytest.raises(ValueError, match="sort_by='speed' is none of total, forward"):
        p.table(sort_by="speed")


def test_a_chrome_trace_has_every_run_within_the_block(tmp_path, monkeypatch):
    x = tg.ones(3, requires_grad=True)
    with tg.profile() as p:
        tg.autograd.grad(x.sin().sum(), x, create_graph=True)
    p.export_chrome_trace(tmp_path / "trace.json")
    made = json.loads((tmp_path / "trace.json").read_text())
    events = [e for e in made["traceEvents"] if e["ph"] == "X"]
    assert len(events) == sum([row.calls + row.backward_calls for row in p.rows])
    (outer,) = [e for e in events if (e["name"], e["cat"]) == ("sin", "backward")]
    (cos,) = [e for e in events if e["name"] == "cos"]
    assert outer["ts"] <= cos["ts"] and cos["ts"] + cos["dur"] <= outer["ts"] + outer["dur"]
    assert cos["args"] == {"line": f"test_profile.py:{p.rows[0].line}", "bytes": 12} and made["otherData"]["dropped"] == 0
    (named,) = [e for e in made["traceEvents"] if e["ph"] == "M"]
    assert (named["name"], named["args"]) == ("thread_name", {"name": threading.current_thread().name})
    assert {e["tid"] for e in made["traceEvents"]} == {threading.get_native_id()} and threading.get_native_id() < 2**32
    monkeypatch.setattr(profiling, "MOST_EVENTS", 1)
    with tg.profile() as short:
        x.sin().cos()
    short.export_chrome_trace(tmp_path / "short.json")
    assert json.loads((tmp_path / "short.json").read_text())["otherData"]["dropped"] == 1
    assert counts(short) == {"sin": (1, 0), "cos": (1, 0)}


@pytest.mark.exhaustive
def test_compiled_functions_are_made_and_run_within_a_profile():
    pytest.importorskip("jax")
    compiled = tg.compile(lambda x: (x.sin() * x).sum())
    with tg.profile() as p:
        values = [compiled(tg.full((3,), float(i))).item() for i in range(4)]
    assert values == pytest.approx([3 * np.sin(i) * i for i in range(4)], rel=1e-6, abs=1e-7)
    assert compiled.traces == 1 and "sin" in counts(p)
    compiled(tg.ones(3))
    assert compiled.traces == 1


def test_times_have_units():
    assert [profiling.time_text(s) for s in (0.0, 1.5e-6, 0.012, 2.0)] == ["0 us", "1.5 us", "12 ms", "2 s"]

"""Threads, tasks, copied contexts and forked processes: right gradients, separate modes, no leak of tapes."""

import asyncio
import contextlib
import contextvars
import gc
import multiprocessing
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core.tape import TAPES
from tapegrad.tensor import graph

N = 4


def leaf(value=2.0, n=1):
    return tg.full((n,), value, dtype=tg.float64).requires_grad_()


@contextlib.contextmanager
def short_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_thread(function, *args):
    """What a function returns on a new thread that has ended by then."""
    result = []

    def run():
        try:
            result.append(function(*args))
        except BaseException as e:
            result.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert result, "the thread hangs"
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]


def in_threads(function, count=N):
    """A function of the thread's number on several threads at once."""
    with ThreadPoolExecutor(count) as pool:
        return [f.result(60) for f in [pool.submit(function, i) for i in range(count)]]


def second_order(seed):
    """Wrong results among some second-order gradients of x**3 * w."""
    wrong = 0
    for k in range(500):
        a = 1.0 + (seed * 7 + k) % 11
        x, w = leaf(a), leaf(3.0)
        (g,) = tg.autograd.grad((x * x * x * w).sum(), x, create_graph=True)
        (h,) = tg.autograd.grad(g.sum(), x, retain_graph=True)
        (m,) = tg.autograd.grad(g.sum(), w)
        wrong += g.item() != 9 * a * a or h.item() != 18 * a or m.item() != 3 * a * a
    return wrong


def test_second_order_gradients_on_several_threads():
    with short_switches():
        assert in_threads(second_order) == [0] * N


def test_second_order_gradients_on_threads_that_share_one_tape():
    leaf() * 2.0  # the context that is copied brings this thread's tape
    contexts = [contextvars.copy_context() for _ in range(N)]
    with short_switches():
        assert in_threads(lambda i: contexts[i].run(second_order, i)) == [0] * N


def test_result_of_a_thread_that_has_ended():
    x = leaf()
    y = in_thread(lambda: (x * x).exp())
    gc.collect()
    tg.tape().sweep()
    (g,) = tg.autograd.grad((y * x).sum(), x, create_graph=True)
    assert g.item() == pytest.approx(9 * np.exp(4.0))
    assert tg.autograd.grad(g.sum(), x)[0].item() == pytest.approx(44 * np.exp(4.0))


def test_result_of_a_thread_used_on_a_third():
    x = leaf()
    y = in_thread(lambda: x * x)
    z = in_thread(lambda: y * x)
    in_thread(lambda: z.backward())
    assert x.grad.item() == 12.0


def test_the_owner_sweeps_while_another_thread_replays():
    """The owner records and sweeps all the time; the other thread differentiates what the owner has made."""
    x = leaf(1.5)
    results, wrong, stop = queue.Queue(8), [], threading.Event()

    def replay():
        while not stop.is_set() or not results.empty():
            with contextlib.suppress(queue.Empty):
                y = results.get(timeout=0.05)
                g = tg.autograd.grad(y, x)[0].item()
                if g != pytest.approx(16 * 1.5**15):
                    wrong.append(g)

    with short_switches():
        thread = threading.Thread(target=replay)
        thread.start()
        try:
            for _ in range(300):
                y = x
                for _ in range(4):
                    y = y * y
                results.put(y)
                del y
                tg.tape().sweep()
        finally:
            stop.set()
            thread.join(60)
    assert not wrong


@pytest.mark.parametrize("n", [1, 10_000])
def test_threads_go_back_through_a_shared_trunk(n):
    x = leaf(1.5, n)
    trunk = (x * x).exp()
    heads = [(trunk * float(i + 1)).sum() for i in range(N)]

    def back(i):
        for _ in range(20):
            heads[i].backward(retain_graph=True)

    with short_switches():
        in_threads(back)
    expected = 20 * sum(range(1, N + 1)) * 3.0 * np.exp(1.5**2)
    assert np.allclose(x.grad.numpy(), expected)


def test_gradients_that_threads_add_to_one_leaf_are_all_there():
    w = leaf(1.0, 50_000)

    def back(i):
        for _ in range(50):
            (w * float(i + 1)).sum().backward()

    with short_switches():
        in_threads(back)
    assert w.grad.numpy().tolist() == [50.0 * sum(range(1, N + 1))] * 50_000


def test_threads_record_and_sweep_on_one_tape():
    leaf() * 2.0
    contexts = [contextvars.copy_context() for _ in range(N)]

    def work(i):
        assert tg.tape() is shared
        x, wrong = leaf(1.0 + i), 0
        for k in range(300):
            y = x * float(k)
            y.register_hook(lambda g: g * 2.0)
            z = (y * x).sum()
            if k % 10 == 0:
                tg.tape().sweep()
            with tg.no_grad():
                x * 1.0
            wrong += tg.autograd.grad(z, x)[0].item() != 3 * k * (1.0 + i)
        return wrong

    shared = tg.tape()
    with short_switches():
        assert in_threads(lambda i: contexts[i].run(work, i)) == [0] * N
    shared.sweep()
    assert len(shared) == 0


def test_a_tape_that_a_copied_context_still_uses_is_not_forgotten():
    """Its thread has ended and it is empty for now: what is recorded on it later must still be found from elsewhere."""
    context = in_thread(lambda: (leaf() * 2.0, contextvars.copy_context())[1])
    x = leaf()
    tg.tape().sweep()
    gc.collect()
    tg.tape().sweep()
    y = context.run(lambda: x * x)
    assert y._s not in tg.tape()
    assert tg.autograd.grad(y, x)[0].item() == 4.0


# ----------------------------------------------------------------------------------------------------------------- modes


def test_modes_of_a_thread_are_its_own():
    with tg.no_grad():
        assert in_thread(tg.is_grad_enabled)
        x = leaf()
        assert in_thread(lambda: (x * x).requires_grad)
        assert not (x * x).requires_grad
    in_thread(lambda: tg.set_grad_enabled(False))
    assert tg.is_grad_enabled()


def test_a_mode_entered_on_one_thread_and_left_on_another_does_not_bring_its_tape():
    leaf() * 2.0
    block = tg.no_grad()
    block.__enter__()

    def leave():
        block.__exit__(None, None, None)
        x = leaf()
        y = x * x
        return tg.is_grad_enabled(), y._s in tg.tape(), tg.autograd.grad(y, x)[0].item()

    try:
        assert in_thread(leave) == (True, True, 4.0)
    finally:
        tg.set_grad_enabled(True)


def test_a_task_that_holds_no_grad_does_not_switch_its_siblings_off():
    x = leaf()

    async def holder(entered, leave):
        with tg.no_grad():
            entered.set()
            await leave.wait()
            return (x * x).requires_grad

    async def sibling(entered, leave):
        await entered.wait()
        result = (x * x).requires_grad
        leave.set()
        await asyncio.sleep(0)
        return result and tg.is_grad_enabled()

    async def main():
        entered, leave = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(holder(entered, leave), sibling(entered, leave))

    assert asyncio.run(main()) == [False, True]
    assert tg.is_grad_enabled()


def test_modes_left_from_another_task():
    async def main():
        block = tg.no_grad()

        async def enter():
            block.__enter__()
            return tg.is_grad_enabled()

        async def leave():
            block.__exit__(None, None, None)
            return tg.is_grad_enabled()

        return await asyncio.create_task(enter()), await asyncio.create_task(leave()), tg.is_grad_enabled()

    assert asyncio.run(main()) == (False, True, True)


def test_tasks_of_a_thread_share_its_tape():
    """A tape for each task would stay for as long as the thread lives."""

    def run():
        async def task():
            x = leaf()
            (x * x).sum().backward()
            return tg.tape()

        async def main():
            return await asyncio.gather(*[asyncio.create_task(task()) for _ in range(50)])

        before = len(TAPES)
        tapes = asyncio.run(main())
        return len({id(t) for t in tapes}), len(TAPES) - before

    assert in_thread(run) == (1, 1)


def test_recording_in_a_worker_of_asyncio():
    x = leaf()

    async def main():
        return await asyncio.gather(*[asyncio.to_thread(lambda: (x * x * x).sum()) for _ in range(N)])

    for y in asyncio.run(main()):
        y.backward()
    assert x.grad.item() == 12.0 * N


# ------------------------------------------------------------------------------------------------------------- decorators


@tg.no_grad()
def plain():
    return tg.is_grad_enabled()


@tg.no_grad
def bare():
    """Its text."""
    return tg.is_grad_enabled()


def test_decorated_functions():
    assert not plain() and not bare() and tg.is_grad_enabled()
    assert bare.__name__ == "bare" and bare.__doc__ == "Its text."

    @tg.enable_grad()
    def on():
        return tg.is_grad_enabled()

    @tg.set_grad_enabled(False)
    def off():
        return tg.is_grad_enabled()

    @tg.inference_mode()
    def inference():
        return tg.is_grad_enabled(), tg.is_inference_mode_enabled()

    with tg.no_grad():
        assert on() and not tg.is_grad_enabled()
    assert tg.is_grad_enabled() and not off() and inference() == (False, True) and tg.is_grad_enabled()


def test_decorated_recursion_and_exceptions():
    @tg.no_grad()
    def down(k):
        assert not tg.is_grad_enabled()
        if not k:
            raise KeyError
        down(k - 1)

    with pytest.raises(KeyError):
        down(5)
    assert tg.is_grad_enabled()


def test_decorated_generators():
    seen = []

    @tg.no_grad()
    def numbers():
        try:
            sent = yield tg.is_grad_enabled()
            seen.append((sent, tg.is_grad_enabled()))
            try:
                yield
            except ValueError:
                seen.append(("thrown", tg.is_grad_enabled()))
            yield 3
        finally:
            seen.append(("closed", tg.is_grad_enabled()))

    g = numbers()
    assert next(g) is False and tg.is_grad_enabled()
    g.send("hello")
    assert tg.is_grad_enabled() and g.throw(ValueError()) == 3 and tg.is_grad_enabled()
    g.close()
    assert seen == [("hello", False), ("thrown", False), ("closed", False)] and tg.is_grad_enabled()

    @tg.no_grad()
    def returning():
        yield 1
        return "end"

    def outer():
        result = yield from returning()
        yield result

    assert list(outer()) == [1, "end"]


def test_decorated_coroutines():
    @tg.no_grad()
    async def off():
        first = tg.is_grad_enabled()
        await asyncio.sleep(0)
        return first, tg.is_grad_enabled()

    async def main():
        task = asyncio.create_task(off())
        await asyncio.sleep(0)
        return tg.is_grad_enabled(), await task, await off(), tg.is_grad_enabled()

    assert asyncio.run(main()) == (True, (False, False), (False, False), True)


def test_a_decorated_coroutine_driven_by_hand_does_not_switch_its_driver_off():
    @tg.no_grad()
    async def off():
        await asyncio.sleep(0)
        return tg.is_grad_enabled()

    coroutine = off()
    coroutine.send(None)
    assert tg.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    assert stop.value.value is False and tg.is_grad_enabled()


def test_decorated_async_generators():
    @tg.no_grad()
    async def numbers():
        for i in range(3):
            await asyncio.sleep(0)
            yield i, tg.is_grad_enabled()

    async def main():
        return [(i, inside, tg.is_grad_enabled()) async for i, inside in numbers()]

    assert asyncio.run(main()) == [(i, False, True) for i in range(3)]


def test_a_decorated_class_is_made_inside():
    with pytest.warns(FutureWarning, match="^Decorating classes is deprecated"):

        @tg.no_grad()
        class Model:
            def __init__(self):
                self.inside = tg.is_grad_enabled()

            def method(self):
                return tg.is_grad_enabled()

    model = Model()
    assert not model.inside and model.method()


# ------------------------------------------------------------------------------------------------------------------- fork


def forked(send, y, x):
    try:
        w = leaf(3.0)
        (w * w).sum().backward()
        g = tg.autograd.grad(y.sum(), x)[0].item()
        other = in_thread(lambda: tg.autograd.grad((w * w).sum(), w)[0].item())
        send.send((w.grad.item(), g, other, tg.is_grad_enabled()))
    except BaseException as e:
        send.send(repr(e))


@pytest.mark.skipif(not hasattr(sys, "getswitchinterval") or sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_recording_after_fork():
    x = leaf()
    y = x * x
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(False)
    process = context.Process(target=forked, args=(send, y, x))
    process.start()
    assert receive.poll(30), "the child hangs"
    assert receive.recv() == (6.0, 4.0, 6.0, True)
    process.join(30)
    assert tg.autograd.grad(y.sum(), x)[0].item() == 4.0


def test_first_hooks_of_a_node_from_two_threads(monkeypatch):
    """Neither takes the place of the other, which was made meanwhile."""

    class Slow(graph.NodeHooks):
        __slots__ = ()

        def __init__(self):
            time.sleep(0.02)
            super().__init__()

    monkeypatch.setattr(graph, "NodeHooks", Slow)
    y, ran = 2 * tg.ones(2, requires_grad=True), []
    node = y.grad_fn
    threads = [threading.Thread(target=node.register_hook, args=(lambda *_, i=i: ran.append(i),)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    y.sum().backward()
    assert sorted(ran) == [0, 1]

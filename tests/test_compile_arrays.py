"""NumPy arrays that leave a compiled function by `numpy()`: a program gives new ones where eager calls give new memory.

Each case is a function of a wrapper that returns what call k gives; eagerly and compiled the same has to come out, also
after the caller has written into the arrays. COMPILED run as programs, EAGER do not, for the reason that they name.
"""

import types
import warnings

import numpy as np
import pytest

import tapegrad as tg

pytest.importorskip("jax")
from compile_worlds import interpreted

COMPILED, EAGER = {}, {}


def compiled(make):
    COMPILED[make.__name__] = make
    return make


def eager(reason):
    def add(make):
        EAGER[make.__name__] = make, reason
        return make

    return add


def x(k):
    return tg.tensor([1.0, 2.0]) * (k + 1)


def weight():
    return tg.tensor([3.0, 5.0], requires_grad=True)


def shown(value):
    if isinstance(value, np.ndarray):
        return value.tolist(), str(value.dtype), value.flags.writeable, value.flags.c_contiguous
    if isinstance(value, tg.Tensor):
        return value.tolist(), value.requires_grad
    return [shown(v) for v in value] if isinstance(value, list | tuple) else value


def run(make, wrap):
    call = make(wrap)
    return [shown(call(k)) for k in range(5)]


@compiled
def a_returned_array(wrap):
    w = weight()
    step = wrap(lambda x: (x * w).detach().numpy())

    def call(k):
        a = step(x(k))
        a += 1
        return a

    return call


@compiled
def arrays_among_results(wrap):
    w = weight()

    @wrap
    def step(x):
        h = x * w
        found = {}
        a = h.detach().numpy()
        w.grad = None
        h.square().sum().backward()
        count = (x > 2).numpy(force=True)
        found["again"] = a
        found["loss"] = h.sum().detach().numpy()
        found["count"] = count
        return a, found, h.sum().item()

    def call(k):
        a, others, number = step(x(k))
        a[0] = -1.0
        return a, others["loss"], others["again"] is a, others["count"], number, w.grad

    return call


@compiled
def arrays_in_what_is_only_written(wrap):
    w, logs, metrics = weight(), [], {}
    trainer = types.SimpleNamespace(last=None)

    @wrap
    def step(x):
        h = (x * w).detach()
        logs.append(h.sin().numpy())
        metrics["h"] = h.numpy()
        trainer.last = h.cos().numpy()
        return x.sum()

    def call(k):
        step(x(k))
        logs[0] += 1
        return logs, metrics["h"], trainer.last

    return call


@eager("shares memory with a tensor")
def an_array_and_its_tensor(wrap):
    def step(x):
        h = x * 2
        return h, h.numpy()

    step = wrap(step)

    def call(k):
        h, a = step(x(k))
        a[0] = 9.0
        return h, a

    return call


@eager("shares memory with a tensor")
def an_array_and_a_kept_tensor(wrap):
    state = types.SimpleNamespace(h=tg.zeros(2))

    def step(x):
        state.h = x * 2
        return state.h.detach().numpy()

    step = wrap(step)

    def call(k):
        step(x(k))[0] = 9.0
        return state.h

    return call


@eager("shares memory with a tensor")
def an_array_of_an_argument(wrap):
    step = wrap(lambda x: x.detach().numpy())

    def call(k):
        t = x(k)
        step(t)[0] = 9.0
        return t

    return call


@eager("numpy()")
def an_array_of_a_parameter(wrap):
    w = weight()
    step = wrap(lambda x: (w.detach().numpy(), x * 2))

    def call(k):
        step(x(k))[0][0] += 1
        return w

    return call


@eager("numpy()")
def an_array_of_a_numpy_argument(wrap):
    given = np.ones(2)
    step = wrap(lambda a: tg.from_numpy(a).numpy())

    def call(k):
        step(given)[0] += 1
        return given

    return call


@eager("numpy()")
def two_arrays_of_one_memory(wrap):
    def step(x):
        h = x * 2
        return h.numpy(), h.numpy()

    step = wrap(step)

    def call(k):
        a, b = step(x(k))
        a[0] = 9.0
        return b

    return call


@eager("numpy()")
def an_array_in_another_order(wrap):
    step = wrap(lambda x: (x[:, None] * tg.ones(2, 3)).T.numpy())
    return lambda k: step(x(k))


@eager("a write into memory")
def an_array_that_is_written_through_its_tensor(wrap):
    def step(x):
        h = x * 2
        a = h.numpy()
        h.add_(1)
        return a

    step = wrap(step)
    return lambda k: step(x(k))


@eager("numpy()")
def an_array_that_numpy_computes_with(wrap):
    step = wrap(lambda x: (x * 2).numpy() * 2)
    return lambda k: step(x(k))


@eager("numpy()")
def an_array_that_is_written_into(wrap):
    def step(x):
        a = (x * 2).numpy()
        a[0] = 9.0
        return a

    step = wrap(step)
    return lambda k: step(x(k))


@eager("numpy()")
def an_array_in_a_pair_that_is_written_into(wrap):
    def made(x):
        return (x * 2).numpy(), 1

    def step(x):
        a, _ = made(x)
        a.sort()
        return a

    step = wrap(step)
    return lambda k: step(x(k))


@eager("numpy()")
def an_array_that_is_added_to_another(wrap):
    state = types.SimpleNamespace(total=np.zeros(2, np.float32))

    def step(x):
        state.total += (x * 2).numpy()
        return x * 2

    step, first = wrap(step), state.total

    def call(k):
        step(x(k))
        return first

    return call


@eager("an array is stored where the function may read it")
def an_array_that_the_next_call_reads(wrap):
    metrics = {}

    def step(x):
        y = x * 2 + tg.from_numpy(metrics["h"]) if "h" in metrics else x * 2
        metrics["h"] = (x * 3).numpy()
        return y

    step = wrap(step)
    return lambda k: step(x(k))


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name):
    expected, before = run(COMPILED[name], lambda f: f), tg.compile.stats()["calls"]
    with warnings.catch_warnings(), interpreted():
        warnings.simplefilter("error")
        assert run(COMPILED[name], tg.compile) == expected
    assert tg.compile.stats()["calls"] - before >= 3


@pytest.mark.parametrize("name", EAGER)
def test_eager(name):
    make, reason = EAGER[name]
    expected = run(make, lambda f: f)
    with pytest.warns(UserWarning, match="runs eagerly") as caught:
        assert run(make, tg.compile) == expected
    assert reason in str(caught[0].message)


def test_a_program_of_xla_gives_a_new_array_at_each_call():
    step = tg.compile(lambda x: (x.double() * 2).numpy())
    found = [step(x(k)) for k in range(4)]
    found[2] += 1
    assert [a.tolist() for a in found] == [[2.0, 4.0], [4.0, 8.0], [7.0, 13.0], [8.0, 16.0]]
    assert all(a.dtype == np.float64 and a.flags.writeable and a.flags.c_contiguous for a in found)

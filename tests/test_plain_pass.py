"""`backward()` that walks down the tape and the general pass: the same gradients, errors and remains on the tape."""

import threading

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import general_gradient, gradient, plain_pass, reach, record, reverse
from tapegrad.core.entry import FIRST, inputs_of, is_released


def leaf(*values, dtype=tg.float32):
    return tg.tensor(values, dtype=dtype, requires_grad=True)


@pytest.fixture(autouse=True)
def no_device_arrays(monkeypatch):
    """Once a test has used JAX's arrays, every pass of the process looks for them."""
    monkeypatch.setattr(gradient, "device_array_types", set())


def relu_chain(a, b):
    x = a
    for _ in range(3):
        x = (x * b).relu() + a
    return x.sum()


def shared(a, b):
    t = (a * a).exp()
    return ((t + b) * (t - b) / (b * b + 1.0)).mean()


def products(a, b):
    w = a.unsqueeze(0) * b.unsqueeze(1)
    return (w @ w.T @ w).tanh().pow(2).sum()


def outputs(a, b):
    x, y, z = (a * b).unbind()
    return x * y + z.sin() * x


def living(a, b):
    h = a * b
    k = h.exp()
    return (k * h).sum(), h, k


def saves_nothing(a, b):
    h = a + b
    return (h + a).sum(), h


def zero_at_root(a, b):
    return tg.where(a > 100.0, (a - a).sqrt(), b).sum()


def infinite(a, b):
    return ((a - a).sqrt() * b).sum()


def indexed(a, b):
    return (a[1:] * b[[0, 0]]).sum() + a[0] ** 2


def of_one_element(a, b):
    return (a * b).sum(0, keepdim=True)


PROGRAMS = [
    relu_chain, shared, products, outputs, living, saves_nothing, zero_at_root, infinite, indexed, of_one_element,
]  # fmt: skip


def remains(tape, start):
    """What is left of the entries since `start`: whether released, and the places of what they read."""
    positions = {s: i for i, s in enumerate(s for s in tape if s > start)}
    return [
        (is_released(e), sorted({positions.get(i, i if i < 0 else None) for i in inputs_of(e) if i}, key=str))
        for s, e in tape.items() if s > start
    ]  # fmt: skip


def run(backward, program, a, b):
    tape = tg.tape()
    tape.clear()
    a.grad, b.grad = tg.ones_like(a), None
    start = (a * 1.0)._s
    result = program(a, b)
    y = result[0] if type(result) is tuple else result
    backward(y)
    grads = [None if t.grad is None else t.grad.numpy().copy() for t in (a, b)]
    return grads, remains(tape, start), [t.grad_fn.name() for t in (result if type(result) is tuple else [result])]


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_walk_and_the_general_pass_agree(program, dtype, monkeypatch):
    a, b = leaf(0.5, -1.25, 2.0, dtype=dtype), leaf(1.5, 0.75, -0.5, dtype=dtype)
    walked, walk = [], plain_pass.walk

    def spy(*args):
        done = walk(*args)
        walked.append(done is not None)
        return done

    monkeypatch.setattr(gradient, "walk", spy)
    ours = run(lambda y: y.backward(), program, a, b)
    assert walked and all(walked)
    general = run(general_gradient.backward, program, a, b)
    for g, h in zip(ours[0], general[0], strict=True):
        assert (g is None and h is None) or (g.dtype == h.dtype and g.tobytes() == h.tobytes())
    assert ours[1:] == general[1:]


def test_a_pass_that_finds_released_entries_adds_nothing():
    a, b = leaf(2.0), leaf(3.0)
    h = a * b
    h.sum().backward()
    a.grad = b.grad = None
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        (h * b + b).sum().backward()
    assert a.grad is None and b.grad is None


def test_the_walk_and_the_general_pass_name_the_same_released_entry():
    x = leaf(1.0, 2.0)
    a, b = x.exp(), x.tanh()
    (a + b).sum().backward()
    for backward in (lambda y: y.backward(), general_gradient.backward):
        with pytest.raises(RuntimeError, match="Node TanhBackward0 has been released"):
            backward((a * 1.0 + b).sum())


def test_a_root_far_below_the_newest_entries_is_searched_once(monkeypatch):
    """Each rule runs once: what is pending after the newest entries, and many of another graph, is searched."""
    a = leaf(2.0)
    old = a * a
    others = [(a * float(i)) for i in range(1000)]
    y = (old * old).sum()
    calls, visit = [], plain_pass.visit

    def spy(slots, entries, cot, order, *rest):
        far = visit(slots, entries, cot, order, *rest)
        calls.append(len(order))
        return far

    monkeypatch.setattr(plain_pass, "visit", spy)
    y.backward()
    assert calls == [2, 2, 3] and a.grad.tolist() == [32.0] and len(others) == 1000


def test_entries_of_another_thread_are_visited_by_the_general_pass():
    a, made = leaf(2.0), []
    worker = threading.Thread(target=lambda: made.append(a * a))
    worker.start()
    worker.join()
    (made[0] * a).sum().backward()
    assert a.grad.tolist() == [12.0]


def test_saved_tensors_are_unpacked_once():
    a, unpacked = leaf(3.0), []
    with tg.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: unpacked.append(1) or t):
        h = a * a
    (h * 2.0).exp().log().sum().backward()
    assert a.grad.tolist() == [12.0] and len(unpacked) == 2


def test_a_rule_without_a_cotangent_leaves_its_argument_to_the_general_pass():
    """What the argument depends on is released all the same."""

    def rule(xp, g, ans, x, y):
        return g * y

    from tapegrad.core.factories import make
    from tapegrad.core.op import TABLE, Op

    op = Op("half_blind", "general", np.multiply, (rule, lambda xp, g, ans, x, y: None), saves="y")
    try:
        make(op)
    finally:
        del TABLE["half_blind"]
    a, b = leaf(3.0), leaf(2.0)
    h = b * b
    op.call(a, h).sum().backward()
    assert a.grad.tolist() == [4.0] and b.grad is None
    with pytest.raises(RuntimeError, match="second time"):
        h.sum().backward()


def test_a_failed_rule_leaves_gradients_and_tape_alone(monkeypatch):
    a = leaf(1.0)
    y = (a * a).sum()
    before = len(tg.tape())

    def failing(*args):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(plain_pass, "visit", failing)
        with pytest.raises(MemoryError):
            y.backward()
    assert a.grad is None and len(tg.tape()) == before
    y.backward()
    assert a.grad.tolist() == [2.0]


FACTORS = np.array([0.5, -1.25, 3.0])
LATE = {  # where nothing that is tracked is read at first
    "constant factors": lambda a, c: ((a * a * c + c) / 3.0 - 1.0).sum(),
    "sums of parts": lambda a, c: (t := a * a, (t * c + t * 2.0 - t).reshape(3, 1).expand(3, 2).mean())[1],
    "broadcasting": lambda a, c: ((a * a * a).unsqueeze(0) * c.unsqueeze(1)).sum(),
    "relu": lambda a, c: (((a * a) * c).relu() * c).sum(),
    "linear": lambda a, c: (a * c).sum(),
}


@pytest.mark.parametrize("name", LATE)
def test_a_recorded_pass_that_begins_on_arrays_gives_what_one_on_tensors_does(name, monkeypatch):
    monkeypatch.setattr(record, "device_array_types", set())
    runs = []

    def orders():
        a, c = leaf(0.3, -2.0, 1.7, dtype=tg.float64), tg.tensor(FACTORS)
        (g,) = tg.autograd.grad(LATE[name](a, c), a, create_graph=True)
        found = [g]
        if g.requires_grad:
            found += tg.autograd.grad((g * g).sum(), a, create_graph=True)
        return [(t.requires_grad, t.detach().numpy().tobytes()) for t in found]

    def counted(order, found, cot, need):
        left = visit_bare(order, found, cot, need)
        runs.append(len(found) if left is None else sum(s > left for s in found))
        return left

    visit_bare = reverse.visit_bare
    monkeypatch.setattr(reverse, "visit_bare", counted)
    got = orders()
    assert runs[0] >= 2
    monkeypatch.setattr(reverse, "visit_bare", lambda order, *_: next(order))
    assert got == orders()


def test_a_grad_that_shares_memory_is_added_to_where_the_memory_is():
    x = tg.tensor([2.0], requires_grad=True)
    shared = tg.zeros(1)
    x.grad = shared.detach()
    kept = shared * x
    shared.add_(1)  # moves the block, since an entry holds the old one
    (x * 3).sum().backward()
    assert x.grad.tolist() == shared.tolist() == [4.0]
    kept.sum().backward()
    assert x.grad.tolist() == shared.tolist() == [4.0]


def test_no_write_into_a_gradient_of_ones_reaches_later_passes():
    x = tg.tensor(2.0, requires_grad=True)
    x.backward()
    seen = x.grad.detach().numpy()
    x.backward()
    assert x.grad.item() == seen == 2.0
    y = tg.zeros(2, requires_grad=True)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("grad", [lambda: tg.ones(()).expand(3), lambda: tg.ones(4).as_strided((3,), (0,))])
def test_a_grad_that_shows_an_element_twice_is_not_added_to(grad):
    x = tg.zeros(3, requires_grad=True)
    x.grad = kept = grad()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        (x * tg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == kept.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("entries", range(2708, 2732, 3))
def test_rules_that_record_change_the_tape_under_the_walk(entries):
    """CPython's iterators of a dict look at its length alone: one that was rebuilt meanwhile was read out of bounds.

    Near 2730 entries its table is full, and is rebuilt for the few that are alive.
    """
    tg.tape().clear()
    w = tg.full((3,), 0.5, requires_grad=True)
    dropped = [w * 2.0 for _ in range(entries)]
    del dropped
    tg.tape().sweep()
    rows = tg.full((40, 3), 0.5)
    tg.scan(lambda c, x: ((c * x).sin(), c), w * 2.0, rows)[0].sum().backward()  # the rule traces the body's derivative
    c, slope = 1.0, 2.0
    for _ in range(40):
        c, slope = np.sin(c * 0.5), slope * 0.5 * np.cos(c * 0.5)
    np.testing.assert_allclose(w.grad.numpy(), slope, rtol=1e-4)


def test_operations_on_numbers_are_recorded_in_the_plain_layout():
    x = leaf(1.0, 2.0)
    for y in (x - 2.5, 2.5 - x, x - 2, 2 - x, 2.5 / x, 2 / x, x * 2.5, 2.5 * x, x - x, x.exp()):
        assert type(reach.find(y._s)[1][FIRST]) is int

"""Operations on tensors that share memory: the quick way is the slow one, and no later write changes what was saved."""

import contextlib
import random

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.core import alias
from tapegrad.core.alias import Alias, Store

F = tg.nn.functional
X = np.random.default_rng(0).uniform(0.5, 1.5, (4, 4, 4))


def leaf(k=0):
    return tg.tensor(X[::-1] + k, requires_grad=True)


OPERATIONS = {
    "exp": lambda a, b: a.exp(),
    "tanh": lambda a, b: a.tanh(),
    "mul": lambda a, b: a * b,
    "mul_itself": lambda a, b: a * a,
    "div": lambda a, b: a / b,
    "radd": lambda a, b: 1.0 + a,
    "rdiv": lambda a, b: 2.0 / a,
    "pow": lambda a, b: a**3,
    "number": lambda a, b: a * 2,
    "integer_array": lambda a, b: a * tg.tensor([1, 2, 3, 4]),
    "array": lambda a, b: a * X[0],
    "sum": lambda a, b: a.sum(0) * b,
    "mean": lambda a, b: (a * b).mean(-1),
    "matmul": lambda a, b: a @ b,
    "linear": lambda a, b: F.linear(a, b, b[0]),
    "where": lambda a, b: tg.where(a > 1, a * b, b),
    "stack": lambda a, b: tg.stack([a, b, a]) * b,
    "cat": lambda a, b: tg.cat([a, b], -1) ** 2,
    "max": lambda a, b: a.max(-1).values * b[..., 0],
    "softmax": lambda a, b: a.softmax(-1) * b,
    "layer_norm": lambda a, b: F.layer_norm(a, (4,), b[0], b[1]),
    "einsum": lambda a, b: tg.einsum("ij,jk->ki", a, b),
    "half": lambda a, b: (a.to(tg.float16) * b.to(tg.float16)).to(tg.float64),
    "reshape": lambda a, b: (a.reshape(-1) * b.reshape(-1)).exp(),
    "compare": lambda a, b: (a > b).to(tg.float64) * a,
}
PARTS = {  # of a block of shape (4, 4, 4): large and small ones, and the whole
    "row": lambda x: x[1],
    "last": lambda x: x[-1],
    "chunk": lambda x: x.chunk(2)[1][0],
    "unbind": lambda x: x.unbind(1)[2],
    "transposed": lambda x: x.transpose(0, 2)[1],
    "of_matrix": lambda x: x.view(8, 8)[2:6, ::2],
    "diagonal": lambda x: x.diagonal(),
    "strided": lambda x: x.as_strided((4, 4), (4, 1), 8),
    "windows": lambda x: x.unfold(0, 4, 1)[0, 2],
    "rows": lambda x: x[:2].view(8, 4)[::2],
}


def parts_of(name, block):
    a = PARTS[name](block)
    return a, PARTS[name](block.flip(0) * 1.0)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_quick_way_gives_what_the_slow_one_gives(name, monkeypatch):
    def run():
        found = []
        for part in ("row", "of_matrix"):
            x = leaf()
            a, b = parts_of(part, x * 1.0)
            y = OPERATIONS[name](a, b)
            (g,) = tg.autograd.grad((y * y).sum(), x, create_graph=True)
            (h,) = tg.autograd.grad((g * g).sum(), x)
            with tg.no_grad():
                free = OPERATIONS[name](a, b)
            found += [y, g, h, free, OPERATIONS[name](a.detach(), b)]
        return [(t.dtype, t.shape, t.requires_grad, type(t.grad_fn).__name__, t.tolist()) for t in found]

    quick = run()
    monkeypatch.setattr(Alias, "private", lambda self, op, t: None)
    assert quick == run()


WRITES = {
    "view": lambda block, a: a.mul_(0.0),
    "block": lambda block, a: block.zero_(),
    "sibling": lambda block, a: block.view(-1).fill_(7.0),
    "part": lambda block, a: block.__setitem__(slice(None), 3.0),
    "row": lambda block, a: [block.__setitem__(i, 3.0) for i in range(4)],
    "data": lambda block, a: block.data.zero_(),
    "detached": lambda block, a: a.detach().add_(5.0),
    "array": lambda block, a: block.detach().numpy().fill(0.0),
    "array_of_view": lambda block, a: a.detach().numpy().fill(0.0),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "part", [pytest.param(p, marks=() if p in ("row", "of_matrix", "rows") else pytest.mark.exhaustive) for p in PARTS]
)
def test_a_later_write_changes_no_gradient(part, write):
    for name in ("exp", "mul", "mul_itself", "matmul", "div", "linear", "layer_norm"):
        gradients = []
        for written in (False, True):
            x = leaf()
            block = x * 1.0
            a, b = parts_of(part, block)
            y = OPERATIONS[name](a, b) * a
            if written:
                with tg.no_grad():
                    WRITES[write](block, a)
            (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
            gradients += [g.tolist(), tg.autograd.grad(g.sum(), x)[0].tolist()]
        assert gradients[:2] == gradients[2:], name


@pytest.mark.counted
@pytest.mark.parametrize("part", PARTS)
def test_what_an_operation_saved_is_held_until_it_is_released(part):
    x = leaf()
    block = x * 1.0
    store = block.detach()._st.store
    views = [PARTS[part](block), PARTS[part](block).detach(), block.data, block.detach(), PARTS[part](block.detach())]
    counted = part != "windows"  # whose array comes from as_strided
    assert not counted or not store.is_held()
    y = block * block
    assert store.is_held()
    y.sum().backward()
    del y
    assert not counted or not store.is_held()
    copy = views[0].exp()
    views[-1].exp()
    assert not counted or not store.is_held()
    w = leaf()[0]
    y = views[0] * w  # a small part is copied instead
    assert store.is_held() is (views[0]._d.nbytes > store.small or not counted)
    del copy, y, store
    last = views[0]
    views.clear()
    block * 1.0
    assert block._st is not None
    del last
    block * 1.0
    assert block._st is None


@pytest.mark.counted
def test_a_part_of_up_to_an_eighth_of_its_block_is_copied_when_it_is_saved():
    """So that a write into the block need not copy all of it; a larger part is held."""
    block, w = tg.ones(16, 4, requires_grad=True) * 1.0, tg.ones(4, requires_grad=True)
    for rows, held in ((1, False), (2, False), (3, True)):
        part = block[:rows]
        y = part * w
        assert part._st.store.is_held() is held, rows
        del y


@pytest.mark.counted
def test_a_write_copies_a_block_that_is_held_once_and_another_not_at_all(monkeypatch):
    moves = []
    unshare = Store.unshare
    monkeypatch.setattr(Store, "unshare", lambda self: (moves.append(1), unshare(self)))
    x = leaf()
    block = x * 1.0
    first, second = block[:2], block[2:]
    for _ in range(3):
        with tg.no_grad():
            first.add_(1.0)
            block[3] = 0.0
            second.data.mul_(2.0)
        block + 1.0, first + second, first @ second
        tg.tape().sweep()
    assert moves == []
    kept = first * first
    for _ in range(3):
        with tg.no_grad():
            second.add_(1.0)
            first.zero_()
    assert moves == [1]
    assert tg.autograd.grad(kept.sum(), x)[0][:2].tolist() == (2 * (X[::-1][:2] + 3)).tolist()


def test_arrays_that_numpy_code_holds_stay_those_of_the_tensor():
    t = tg.tensor(X.copy())
    one, two = t.numpy(), t[1].numpy()
    w = tg.ones(4, 4, dtype=tg.float64, requires_grad=True)
    y = w * t[1]
    two[:] = 5.0
    one[0] = 3.0
    assert t[1].unique().tolist() == [5.0] and t[0].unique().tolist() == [3.0]
    assert t.numpy()[1].tolist() == two.tolist()
    y.sum().backward()
    assert w.grad.tolist() == X[1].tolist()


def test_hooks_and_retained_gradients_of_shared_tensors_go_by_version():
    x = leaf()
    block = x * 1.0
    row = block[1]
    row.retain_grad()
    seen = []
    row.register_hook(lambda g: seen.append(g.sum().item()))
    y = row * 2.0
    block[1] = 3.0
    z = block[1] * 5.0
    (y.sum() + z.sum()).backward()
    assert seen == [32.0] and row.grad.unique().tolist() == [2.0]
    assert x.grad[1].unique().tolist() == [2.0] and x.grad[0].unique().tolist() == [0.0]


@pytest.mark.parametrize("index", [1, -1, slice(1, 3), slice(None)])
@pytest.mark.parametrize("shared", [False, True])
def test_a_plain_write_is_what_the_general_way_does(index, shared):
    results = []
    for plain in (True, False):
        x = leaf()
        block = x * 1.0
        view = block[0] if shared else None
        v = tg.full((4, 4), 2.0, dtype=tg.float64, requires_grad=True)
        block[index if plain else (index, slice(None))] = v[0, 0]
        if type(index) is int:
            block[index if plain else (index, slice(None))] = v
        block[index if plain else (index, slice(None))] = 2.5
        block[index if plain else (index, slice(None))] = v[2]
        block[index if plain else (index, slice(None))] *= 3.0
        results.append((block.tolist(), block._version, block.grad_fn.name(), view is None or view.tolist()))
        results[-1] += tuple(g.tolist() for g in tg.autograd.grad((block * block).sum(), (x, v)))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "index, size, error, text",
    [
        (9, 4, IndexError, "index 9 is out of bounds for dimension 0 with size 4"),
        (0, 3, RuntimeError, "shape mismatch: value tensor cannot be broadcast to indexing result"),
        (slice(0, 2), 5, RuntimeError, "shape mismatch: value tensor cannot be broadcast to indexing result"),
    ],
)
def test_a_plain_write_that_fails_writes_nothing(index, size, error, text):
    block = leaf() * 1.0
    with pytest.raises(error, match=text):
        block[index] = tg.ones(size, dtype=tg.float64)
    assert block.tolist() == X[::-1].tolist()


@pytest.mark.counted
def test_the_last_tensor_of_a_block_is_private_from_its_next_operation_on():
    x = leaf()
    last = (x * 2.0)[-1]
    y = last * last
    assert last._st is None
    y.sum().backward()
    assert x.grad[-1].tolist() == (8 * X[0]).tolist() and x.grad[0].abs().sum() == 0


def random_program(seed):
    """Values and gradients, first and second, of a program of views, operations and writes chosen by a seed."""
    chosen = random.Random(seed)
    x = leaf()
    tensors, results, kept = [x * 1.0], [], []
    for _ in range(30):
        t = chosen.choice(tensors)
        other = chosen.choice(tensors)
        step = chosen.randrange(12)
        if step < 4:
            views = [lambda: t[chosen.randrange(-1, 1)], lambda: t.transpose(0, -1), lambda: t.detach(), lambda: t.data,
                     lambda: t[..., ::2], lambda: t.view(t.shape), lambda: t.unbind(0)[-1], lambda: t.squeeze(),
                     lambda: t.diagonal(), lambda: t.chunk(2)[0]]  # fmt: skip
            with contextlib.suppress(IndexError, RuntimeError):  # a tensor of too few dimensions
                tensors.append(chosen.choice(views)())
        elif step < 8:
            b = other if other.shape == t.shape else t
            results.append(chosen.choice([lambda: t * b, lambda: t.exp(), lambda: t + b, lambda: (t - 3.0).tanh() * t])())
            if chosen.random() < 0.3:
                tensors.append(results[-1])
        elif step < 11:
            number = chosen.uniform(0.5, 1.5)
            with tg.set_grad_enabled(chosen.random() < 0.5):
                write = [lambda: t.mul_(number), lambda: t.__setitem__(..., other[(0,) * other.ndim] * number),
                         lambda: t.__setitem__(0, number), lambda: t.data.add_(number),
                         lambda: t.detach().numpy().__setitem__(..., number),
                         lambda: kept.append(t.detach().numpy())]  # fmt: skip
                with contextlib.suppress(IndexError, RuntimeError):  # one number, or a view made under no_grad
                    chosen.choice(write)()
        elif len(tensors) > 3:
            del tensors[chosen.randrange(len(tensors))]
        kept[:-1] = []
    total = sum([(r * r).sum() for r in (x, *results, *tensors)])
    (g,) = tg.autograd.grad(total, x, create_graph=True)
    (h,) = tg.autograd.grad((g * g).sum(), x, allow_unused=True) if g.requires_grad else (None,)
    return repr([t.tolist() for t in (*tensors, *results, g)]), None if h is None else repr(h.tolist())


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 400), marks=pytest.mark.exhaustive)], ids=["few", "many"]
)
def test_random_programs_are_those_in_which_all_that_is_saved_is_copied(seeds, monkeypatch):
    found = [random_program(seed) for seed in seeds]
    monkeypatch.setattr(Alias, "private", lambda self, op, t: None)
    monkeypatch.setattr(Alias, "saved_array", lambda self, t: t._d.copy(order="K"))
    for seed, result in zip(seeds, found, strict=True):
        assert result == random_program(seed), seed


def test_writes_into_memory_that_repeats_are_refused_though_numpy_may_write():
    repeated = np.lib.stride_tricks.as_strided(np.arange(2.0), (3, 2), (0, 8))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        tg.from_numpy(repeated).add_(1)


def test_what_is_known_of_exported_arrays_stays_small():
    t = tg.zeros(3)
    for _ in range(500):
        t.numpy()
    store = t._st.store
    assert len(store.exports) <= alias.FEW + 1
    held = [t.numpy() for _ in range(500)]
    assert len(held) <= len(store.exports) <= 500 + alias.FEW + 1 and store.most >= 500

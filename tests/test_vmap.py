"""vmap: indices that differ between samples, random draws, writes, and the rollback of a batched run that has to loop."""

import warnings

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.nn.functional as F
from tapegrad.func import grad, hessian, jvp, vmap

D, LONG = tg.float64, tg.int64
N = 3
RNG = np.random.default_rng(1)
LOOPS = "ignore:vmap. this line asks:UserWarning"


def real(*shape):
    return tg.tensor(RNG.normal(size=(N, *shape)))


def whole(high, *shape, low=0):
    return tg.tensor(RNG.integers(low, high, (N, *shape)))


def looped(f, args, dims=0):
    """f for each sample, stacked: no vmap involved."""
    dims = dims if isinstance(dims, tuple) else (dims,) * len(args)
    rows = [f(*[a if d is None else a[i].clone() for a, d in zip(args, dims, strict=True)]) for i in range(N)]
    return tg.stack(rows)


def same(f, *args, dims=0):
    """vmap without a loop (pytest makes its warning an error) gives what a loop gives."""
    got = vmap(f, dims)(*args)
    expected = looped(f, args, dims)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.detach(), expected.detach(), rtol=1e-12)


def gradients_agree(f, *args, dims=0):
    """So do the gradients by the floating-point arguments."""
    positions = tuple(i for i, a in enumerate(args) if a.is_floating_point())
    g = grad(lambda *a: (f(*a) * tg.arange(1.0, f(*a).numel() + 1).to(D).reshape(f(*a).shape)).sum(), argnums=positions)
    for k in range(len(positions)):
        same(lambda *a, k=k: g(*a)[k], *args, dims=dims)


# -------------------------------------------------------------------------------------------------------------- indices

X, V = real(3, 4), real(4)
K, J = whole(3, low=-3), whole(4, 5, low=-4)
READS = {
    "number": (lambda x, i: x[i], X, K),
    "number behind a slice": (lambda x, i: x[1:, i], X, K),
    "number behind a step": (lambda x, i: x[::-1, i], X, K),
    "vector": (lambda x, j: x[:, j], X, J),
    "two numbers": (lambda x, i, k: x[i, k], X, K, whole(4)),
    "numbers of both kinds": (lambda x, j: x[1, j], X, J),
    "arrays of both kinds": (lambda x, j: x[np.array([[0], [2]]), j], X, J),
    "apart": (lambda x, i, j: x[i, :, None, j], real(3, 2, 4), K, J),
    "new dimension": (lambda x, j: x[None, :, j, None], X, J),
    "ellipsis": (lambda x, j: x[..., j], X, J),
    "first of many": (lambda x, i: x[i, ...], real(3, 2, 2), K),
    "table": (lambda x, j: x[j], V, whole(4, 2, 3)),
    "gather": (lambda x, j: x.gather(1, j), X, whole(4, 2, 3)),
    "take_along_dim": (lambda x, j: tg.take_along_dim(x, j, 1), X, whole(4, 1, 3, low=-4)),
    "take_along_dim, flat": (lambda x, j: tg.take_along_dim(x, j), X, whole(12, 5)),
    "take": (lambda x, j: x.take(j), X, whole(12, 2, 2, low=-12)),
    "index_select": (lambda x, j: x.index_select(1, j), X, whole(4, 5)),
    "select": (lambda x, i: tg.index_select(x, 0, i).squeeze(0), X, whole(3)),
    "embedding": (F.embedding, whole(3, 2), X),
    "nll_loss": (lambda x, i: F.nll_loss(F.log_softmax(x, 1), i), X, whole(4, 3)),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i, reduction="none"), X, whole(4, 3)),
    "cross_entropy of one": (lambda x, i: F.cross_entropy(x, i), V, whole(4)),
    "max_unpool": (lambda x, j: F.max_unpool1d(x, j, 2), real(1, 2), tg.tensor([[[0, 2]], [[1, 3]], [[3, 0]]])),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), real(1, 2, 3, 3), real(1, 2, 2, 2) / 3),
}


@pytest.mark.parametrize("name", READS)
def test_reading(name):
    f, *args = READS[name]
    same(f, *args)
    gradients_agree(f, *args)
    for k in range(len(args)):
        dims = tuple(None if i == k else 0 for i in range(len(args)))
        if any(d == 0 for d in dims):
            one = [a[0] if d is None else a for a, d in zip(args, dims, strict=True)]
            same(f, *one, dims=dims)
            gradients_agree(f, *one, dims=dims)


def set_item(index):
    def f(x, v, *more):
        x = x.clone()
        x[index(*more)] = v
        return x

    return f


WRITES = {
    "number": (set_item(lambda i: i), X, V, K),
    "vector": (set_item(lambda j: (slice(None), j)), X, real(3, 1), J),
    "the last stays": (set_item(lambda j: j), V, real(5), J),
    "apart": (set_item(lambda i, j: (i, slice(1, None), j)), real(3, 2, 4), real(1, 5), K, J),
    "behind a step": (set_item(lambda i: (slice(None, None, -1), i)), X, real(3), K),
    "mask and one value": (set_item(lambda m: m), X, real(), X > 0),
    "mask and a row": (set_item(lambda m: m), X, V, X[:, :, 0] > 0),
    "index_put": (lambda x, v, j: x.index_put((j,), v, accumulate=True), V, real(5), J),
    "scatter": (lambda x, v, j: x.scatter(1, j, v), X, real(2, 3), whole(4, 2, 3)),
    "scatter_add": (lambda x, v, j: x.scatter_add(1, j, v), X, real(2, 3), whole(4, 2, 3)),
    "index_add": (lambda x, v, j: x.index_add(1, j, v, alpha=2), X, real(3, 5), whole(4, 5)),
    "index_copy": (lambda x, v, j: x.index_copy(1, j, v), X, real(3, 5), whole(4, 5)),
    "index_fill": (lambda x, v, j: x.index_fill(1, j, v), X, real(), whole(4, 2)),
    "put": (lambda x, v, j: x.put(j, v), X, real(5), whole(12, 5, low=-12)),
    "masked_fill": (lambda x, v, m: x.masked_fill(m, v), X, real(), X > 0),
    "scatter_reduce": (lambda x, v, j: x.scatter_reduce(1, j, v, "mean"), X, real(2, 3), whole(4, 2, 3)),
    "scatter_amax": (lambda x, v, j: x.scatter_reduce(1, j, v, "amax"), X, real(2, 3), whole(4, 2, 3)),
    "without self": (lambda x, v, j: x.scatter_reduce(1, j, v, "amin", include_self=False), X, real(2, 3), whole(4, 2, 3)),
    "index_reduce": (lambda x, v, j: x.index_reduce(0, j, v, "amin"), X, real(2, 4), whole(3, 2)),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing(name):
    f, *args = WRITES[name]
    same(f, *args)
    gradients_agree(f, *args)
    for dims in ((None, 0), (0, None), (None, None)):
        dims += (0,) * (len(args) - 2)
        one = [a[0] if d is None else a for a, d in zip(args, dims, strict=True)]
        same(f, *one, dims=dims)
        gradients_agree(f, *one, dims=dims)


MASKS = tg.tensor([[True, False, True, False], [False, True, True, False], [True, True, False, False]])


def test_masks_with_as_many_elements_in_each_sample():
    same(lambda x, m: x[m], V, MASKS)
    gradients_agree(lambda x, m: x[m], V, MASKS)
    same(lambda x, m: x[:, m], X, MASKS)
    same(lambda m: m.nonzero(), MASKS)
    same(lambda m: tg.where(m)[0], MASKS)
    same(lambda x, m: tg.masked_select(x, m), V, MASKS)
    same(set_item(lambda m: m), V, real(2), MASKS)
    same(lambda x, m, v: x.masked_scatter(m, v), V, MASKS, real(3))


def test_masks_with_other_numbers_of_elements_loop():
    x = tg.arange(6.0).reshape(3, 2)
    with pytest.warns(UserWarning, match="this line asks for the value of a single sample"):
        got = vmap(lambda v: v[v > 2].sum())(x)
    assert got.tolist() == [0.0, 3.0, 9.0]


def test_results_of_other_shapes_name_the_function_and_the_line():
    x = tg.tensor([[1.0, -1.0], [1.0, 2.0]])

    def chosen(v):
        return v[v > 0], v.nonzero()

    line = chosen.__code__.co_firstlineno + 1
    text = rf"vmap\(chosen, ...\): .* \[1\] of sample 0 and \[2\] of sample 1: .*test_vmap.py:{line}\. tg.where"
    with pytest.warns(UserWarning, match="single sample"), pytest.raises(RuntimeError, match=text):
        vmap(chosen)(x)
    with pytest.raises(RuntimeError, match=r"vmap\(chosen, ...\): .* \[1\] of sample 0 and \[2\] of sample 1: "):
        vmap(chosen, chunk_size=1)(x)


def test_indices_out_of_range():
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3. In indexing on a tensor"):
        vmap(lambda i: tg.zeros(3)[i])(tg.tensor([0, 3]))
    with pytest.raises(IndexError, match="index -4 is out of bounds for dimension 0 with size 3"):
        vmap(lambda i: tg.zeros(3).index_fill(0, i, 1.0))(tg.tensor([0, -4]))


def test_nested():
    x, i = real(2, 4), whole(4, 2)
    for f in (lambda row, k: row[k], lambda row, k: row.index_fill(0, k, 7.0)):
        got = vmap(vmap(f))(x, i)
        assert got.tolist() == tg.stack([tg.stack([f(x[a, b], i[a, b]) for b in range(2)]) for a in range(N)]).tolist()
    rows = vmap(lambda row: vmap(lambda k: row[k])(tg.tensor([3, 0])))(X[:, 0])
    assert rows.tolist() == X[:, 0, [3, 0]].tolist()
    rows = vmap(lambda k: vmap(lambda row: row[k])(X[0]))(tg.tensor([3, 0]))
    assert rows.tolist() == X[0][:, [3, 0]].T.tolist()


def test_higher_derivatives():
    """Of x[k] * sum of x**2: rows and columns of 2 x_k, 2 x, 2 x_j e_k."""
    k = tg.tensor([0, 3, 1])
    got = vmap(hessian(lambda x, k: x[k] * (x * x).sum()))(V, k)
    for h, x, i in zip(got, V, k.tolist(), strict=True):
        expected = 2 * x[i] * tg.eye(4, dtype=D)
        expected[i] += 2 * x
        expected[:, i] += 2 * x
        np.testing.assert_allclose(h, expected)
    value, tangent = jvp(lambda x: vmap(lambda row, i: row[i] ** 2)(x, k), (V,), (2 * V,))
    np.testing.assert_allclose(tangent, 4 * value)


def test_per_sample_gradients_of_a_classifier():
    """(softmax - one_hot) x^T of each sample, without a loop."""
    w, x, y = real(4)[:3], real(3), whole(3)
    got = vmap(grad(lambda w, x, y: F.cross_entropy(x @ w, y)), (None, 0, 0))(w, x, y)
    p = tg.softmax(x @ w, 1)
    p[tg.arange(N), y] -= 1
    np.testing.assert_allclose(got, x[:, :, None] * p[:, None, :], rtol=1e-12)


# ----------------------------------------------------------------------------------------------------------- randomness

T = tg.zeros(N, 2)
DRAWS = {
    "rand": lambda t: t + tg.rand(2),
    "randn": lambda t: t + tg.randn(2),
    "randint": lambda t: tg.randint(1000, (2,)) + t,
    "randperm": lambda t: tg.randperm(50) + t[0],
    "rand_like": lambda t: tg.rand_like(t),
    "uniform_": lambda t: tg.zeros(2).uniform_(),
    "normal_": lambda t: t.clone().normal_(),
    "bernoulli_": lambda t: tg.zeros(64).bernoulli_() + t[0],
    "exponential_": lambda t: tg.zeros(2).exponential_(),
    "random_": lambda t: tg.zeros(2, dtype=LONG).random_(),
    "dropout": lambda t: F.dropout(tg.ones(64) + t[0]),
    "complex": lambda t: tg.randn(2, dtype=tg.complex128) + t,
    "bernoulli": lambda t: t[0] + tg.bernoulli(tg.full((64,), 0.5)),
    "poisson": lambda t: t + tg.poisson(tg.full((2,), 1e6)),
    "normal": lambda t: t + tg.normal(tg.zeros(2), tg.ones(2)),
}
FROM_VALUES = {  # of which samples differ
    "bernoulli": lambda t: tg.bernoulli(t[0] + tg.full((64,), 0.5)),
    "bernoulli_": lambda t: tg.zeros(64).bernoulli_(t[0] + tg.full((64,), 0.5)),
    "poisson": lambda t: tg.poisson(t + tg.full((2,), 1e6)),
    "multinomial": lambda t: tg.multinomial(t[0] + tg.ones(4, 64), 2),
    "mean": lambda t: tg.normal(t, tg.ones(2)),
    "deviation": lambda t: tg.normal(tg.zeros(2), t.exp()),
    "gamma": lambda t: tg._standard_gamma(t + 1.0),
    "dirichlet": lambda t: tg._sample_dirichlet(t + 1.0),
    "binomial": lambda t: tg.binomial(tg.full((64,), 9.0), t[0] + 0.5),
    "rrelu": lambda t: F.rrelu(t - 1.0, training=True),
}
REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
    "flags on vmap or perform the randomness operation out of vmap"
)


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name):
    f = DRAWS[name]
    with pytest.raises(RuntimeError) as e:
        vmap(f)(T)
    assert str(e.value) == REFUSED
    tg.manual_seed(3)
    one = f(T[0])
    after = tg.rand(1)
    tg.manual_seed(3)
    shared = vmap(f, randomness="same")(T)
    assert all(row.tolist() == one.tolist() for row in shared)
    assert tg.rand(1) == after
    own = vmap(f, randomness="different")(T)
    assert own.shape == shared.shape
    assert len({str(row.tolist()) for row in own}) == N


@pytest.mark.parametrize("name", FROM_VALUES)
def test_draws_from_values(name):
    f = FROM_VALUES[name]
    with pytest.raises(RuntimeError) as e:
        vmap(f)(T)
    assert str(e.value) == REFUSED
    with pytest.raises(RuntimeError, match="Vmap does not currently support same randomness with a batched tensor input"):
        vmap(f, randomness="same")(T)
    own = vmap(f, randomness="different")(T)
    assert len({str(row.tolist()) for row in own}) == N


def test_fills_of_one_tensor_for_all_samples():
    """Refused if the tensor is the caller's; one made inside becomes a batch."""
    for fill in (lambda t: t.uniform_(), lambda t: t.bernoulli_(tg.full((2,), 0.5)), lambda t: t.random_(9)):
        with pytest.raises(RuntimeError, match="vmap: Cannot ask for different inplace randomness on an unbatched tensor"):
            vmap(lambda t, _: fill(t), (None, 0), randomness="different")(tg.zeros(2), T)
    with pytest.raises(RuntimeError, match="`other` in extra_args that has more elements than `self`"):
        vmap(lambda t, p: t.bernoulli_(p), (None, 0), randomness="different")(tg.zeros(2), T)


def test_fills_from_values_follow_the_memory_of_the_batch():
    """As PyTorch: the numbers of one call on the batch."""
    p = tg.full((3, 4), 0.5)
    for in_dim in (0, 1):
        x = tg.zeros(3, 4)
        tg.manual_seed(0)
        got = vmap(lambda t, p: t.bernoulli_(p), in_dim, randomness="different")(x, p)
        tg.manual_seed(0)
        whole = tg.zeros(3, 4).movedim(in_dim, 0)
        assert got.tolist() == whole.bernoulli_(p.movedim(in_dim, 0)).tolist() == x.movedim(in_dim, 0).tolist()


def test_one_draw_for_the_batch():
    """As PyTorch: the numbers of a draw of the batch's shape."""
    tg.manual_seed(0)
    got = vmap(lambda t: tg.rand(2) + t, randomness="different")(T)
    nested = vmap(vmap(lambda t: tg.rand(()) + t, randomness="same"), randomness="different")(T)
    both = vmap(vmap(lambda t: tg.rand(()) + t, randomness="different"), randomness="different")(T)
    inner = vmap(vmap(lambda t: tg.rand(()) + t, randomness="different"), randomness="same")(T)
    tg.manual_seed(0)
    assert got.tolist() == tg.rand(N, 2).tolist()
    assert nested.tolist() == tg.rand(N, 1).expand(N, 2).tolist()
    assert both.tolist() == tg.rand(N, 2).tolist()
    assert inner.tolist() == tg.rand(2).expand(N, 2).tolist()
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(vmap(lambda t: tg.rand(()) + t, randomness="different"))(T)


def test_probabilities_of_samples():
    """Draws that depend on values: 0 and 1 decide, whatever is shared."""
    p = tg.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    drawn = {"randomness": "different"}
    assert vmap(tg.bernoulli, **drawn)(p).tolist() == p.tolist()
    assert vmap(lambda q: tg.zeros(2).bernoulli_(q), **drawn)(p).tolist() == p.tolist()
    assert vmap(vmap(tg.bernoulli, **drawn), **drawn)(p).tolist() == p.tolist()
    shared = vmap(lambda _: vmap(tg.bernoulli, **drawn)(p), randomness="same")(T)
    assert shared.tolist() == [p.tolist()] * N
    assert vmap(lambda q: tg.multinomial(q, 1), **drawn)(p[:2]).tolist() == [[1], [0]]


def test_draws_in_a_generator_of_the_user():
    g = tg.Generator().manual_seed(7)
    got = vmap(lambda t: tg.rand(2, generator=g) + t, randomness="different")(T)
    g.manual_seed(7)
    assert got.tolist() == tg.rand(N, 2, generator=g).tolist()


def test_draws_in_chunks():
    shared = vmap(lambda t: tg.rand(2) + t, randomness="same", chunk_size=2)(T)
    assert len({str(row.tolist()) for row in shared}) == 1
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda t: tg.rand(2) + t, chunk_size=2)(T)


# ------------------------------------------------------------------------------------------------- attempts taken back

S = tg.arange(1.0, 7.0).reshape(N, 2)


@pytest.mark.filterwarnings(LOOPS)
def test_draws_of_a_loop():
    g = tg.Generator()

    def f(v):
        r = tg.rand(2) + tg.randn(2, generator=g)
        return v * r if v[0] > 2 else v + r

    tg.manual_seed(1), g.manual_seed(2)
    got = vmap(f, randomness="different")(S)
    after = tg.rand(1), tg.rand(1, generator=g)
    tg.manual_seed(1), g.manual_seed(2)
    assert got.tolist() == tg.stack([f(v) for v in S]).tolist()
    assert (tg.rand(1), tg.rand(1, generator=g)) == after

    def same_each_time(v):
        tg.manual_seed(1), g.manual_seed(2)
        return f(v)

    tg.manual_seed(1), g.manual_seed(2)
    got = vmap(f, randomness="same")(S)
    assert got.tolist() == tg.stack([same_each_time(v) for v in S]).tolist()
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda v: v + tg.rand(2) if v[0] > 2 else v)(S)


def quiet_error(v):
    try:
        return float(v[0])
    except Exception:
        return -1.0


def swallowed(v):
    try:
        return float(v[0])
    except:  # noqa: E722
        return -1.0


def renamed(v):
    try:
        return float(v[0])
    except BaseException:
        raise ValueError("no number") from None


@pytest.mark.filterwarnings(LOOPS)
@pytest.mark.parametrize("value", [quiet_error, swallowed, renamed])
def test_functions_that_catch_the_signal(value):
    assert vmap(lambda v: v * value(v))(S).tolist() == (S * S[:, :1]).tolist()


@pytest.mark.filterwarnings(LOOPS)
def test_errors_of_the_function_itself_stay():
    def f(v):
        if v[0] > 2:
            raise ValueError("too large")
        return v

    with pytest.raises(ValueError, match="too large"):
        vmap(f)(S)


@pytest.mark.filterwarnings(LOOPS)
def test_gradients_are_taken_back():
    w = tg.ones(2, requires_grad=True)

    def f(v):
        (w * v).sum().backward()
        return v * 2 if v[0] > 2 else v

    vmap(f)(S)
    assert w.grad.tolist() == S.sum(0).tolist()
    vmap(f)(S)
    assert w.grad.tolist() == (2 * S.sum(0)).tolist()


def test_gradients_of_samples_are_added_up_in_a_captured_leaf():
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    vmap(lambda v: w.backward(v) or v)(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert w.grad.tolist() == [4.0, 6.0]


def test_a_constant_result_is_one_memory_for_all_samples():
    rows = vmap(lambda x: tg.ones(2))(tg.ones(3))
    assert rows.tolist() == [[1.0, 1.0]] * 3
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        rows.add_(1.0)


def count_into(t):
    def f(v):
        t.add_(1.0)
        return v * 2 if v[0] > 2 else v

    return f


def count_into_part(t):
    def f(v):
        t[:1].add_(1.0)
        assert t[0] >= 1
        return v * 2 if v[0] > 2 else v

    return f


def count_by_index(t):
    def f(v):
        t[0] = t[0] + 1.0
        return v * 2 if v[0] > 2 else v

    return f


@pytest.mark.filterwarnings(LOOPS)
@pytest.mark.parametrize("count", [count_into, count_into_part, count_by_index])
@pytest.mark.parametrize("shared", [False, True])
def test_writes_are_taken_back(count, shared):
    t = tg.zeros(2)
    array = t.numpy() if shared else None
    views = [t.detach(), t[:1]] if shared else []
    vmap(count(t))(S)
    assert t[0] == 3.0
    assert all(v[0] == 3.0 for v in views)
    assert array is None or array[0] == 3.0


@pytest.mark.filterwarnings(LOOPS)
def test_shapes_are_taken_back():
    t = tg.arange(6.0).reshape(2, 3).clone()

    def f(v):
        t.t_()
        return v * 2 if v[0] > 2 else v

    vmap(f)(S)
    assert t.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.mark.filterwarnings(LOOPS)
def test_histories_are_taken_back():
    """What the aborted attempt added to a captured tensor is not in its gradient."""
    w = tg.tensor(2.0, requires_grad=True)
    t = tg.zeros(2)

    def f(v):
        t[:1].add_(w)
        return v * 2 if v[0] > 2 else v

    vmap(f)(S)
    assert t.tolist() == [6.0, 0.0]
    (g,) = tg.autograd.grad(t.sum(), w)
    assert g == 3.0


def test_what_the_tape_holds_is_not_restored_over():
    w = tg.ones(2, requires_grad=True)
    t = tg.zeros(2)
    part = t[:1]
    part.add_(2.0)
    y = (w * t).sum()  # saves t
    with pytest.warns(UserWarning, match="this line asks"):
        vmap(count_into_part(t))(S)
    assert (t.tolist(), part.tolist()) == ([5.0, 0.0], [5.0])
    part.add_(1.0)
    (g,) = tg.autograd.grad(y, w)
    assert g.tolist() == [2.0, 0.0]


@pytest.mark.filterwarnings(LOOPS)
def test_an_inner_attempt_is_taken_back_alone():
    calls = tg.zeros(1)

    def inner(s):
        calls.add_(1.0)
        return s * 2 if s > 2 else s

    got = vmap(lambda v: vmap(inner)(tg.tensor([1.0, 5.0])) + v)(S)
    assert got.tolist() == (S + tg.tensor([1.0, 10.0])).tolist()
    assert calls == 2.0


# --------------------------------------------------------------------------------------------------------------- writes


def filled(v):
    x = tg.empty(4, 2)
    for j in range(4):
        x[j] = v * j
    return x


def through_a_view(v):
    x = tg.zeros(3, 2)
    row = x[1]
    row.add_(v)
    x[0] += row
    return x


def recurrence(v):
    h = tg.zeros(3, 2)
    for j in range(2):
        h[j + 1] = tg.tanh(h[j] + v)
    return h


def in_turn(v):
    x = v.clone()
    x[0] = x[1] * 2
    x.mul_(v)
    x.masked_fill_(x > 20, 1.0)
    return x.clamp_(max=15.0)


@pytest.mark.parametrize("f", [filled, through_a_view, recurrence, in_turn])
def test_writes_into_own_tensors(f):
    same(f, S)
    gradients_agree(f, S.to(tg.float32))


def doubled_without_record(w):
    with tg.no_grad():
        w.mul_(2.0)


def row_doubled_without_record(w):
    with tg.no_grad():
        w[0] = w[0] * 2


def view_doubled_without_record(w):
    with tg.no_grad():
        w[1:].copy_(w[1:] * 2)


def data_doubled(w):
    w.data.mul_(2.0)


def row_of_detached_doubled(w):
    w.detach()[0].mul_(2.0)


def data_replaced(w):
    w.data = w.data * 2


UNRECORDED = [
    doubled_without_record, row_doubled_without_record, view_doubled_without_record, data_doubled, row_of_detached_doubled,
    data_replaced,
]  # fmt: skip


@pytest.mark.parametrize("write", UNRECORDED)
def test_writes_that_are_not_recorded_leave_the_history(write):
    def f(w):
        v = w * 1
        write(v)
        return (v * v).sum()

    w = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    alone = tg.func.grad(f)(w)
    assert alone.abs().min() > 0
    assert tg.equal(vmap(tg.func.grad(f))(w[None])[0], alone)
    assert tg.equal(tg.func.grad(lambda ws: vmap(f)(ws).sum())(w[None])[0], alone)
    x = w[None].clone().requires_grad_()
    vmap(f)(x).sum().backward()
    assert tg.equal(x.grad[0], alone)


@pytest.mark.parametrize("write", [data_doubled, row_of_detached_doubled])
def test_writes_through_a_detached_tensor_leave_the_tangent(write):
    def f(w):
        v = w * 1
        write(v)
        return v * v

    w = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    value, tangent = tg.func.jvp(f, (w,), (tg.ones(2, 2),))
    assert tg.equal(tangent, 2 * value.sqrt())
    assert tg.equal(vmap(lambda w: tg.func.jvp(f, (w,), (tg.ones(2, 2),))[1])(w[None])[0], tangent)


def test_a_detached_view_shows_later_writes():
    def f(w):
        v = w * 1
        row = v[0]
        v.mul_(2.0)
        seen = row.detach()
        again = seen.detach()
        v.mul_(2.0)
        again.add_(1.0)
        return v, seen, again

    w = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    for alone, batched in zip(f(w), vmap(f)(w[None]), strict=True):
        assert tg.equal(alone, batched[0])


def test_a_returned_view_shows_later_writes():
    def f(w):
        v = w * 1
        row = v[0]
        part = row[:1]
        v.mul_(2.0)
        row.add_(1.0)
        v.mul_(2.0)
        return row, part

    def first(w):
        v = w * 1
        x = v[0, 0]
        v.mul_(3.0)
        return x

    w = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    row, part = vmap(f)(w[None])
    assert row.tolist() == [[6.0, 10.0]] and part.tolist() == [[6.0]]
    value, tangent = tg.func.jvp(first, (w,), (tg.ones(2, 2),))
    assert value.item() == tangent.item() == 3.0
    for derivative in (tg.func.grad, tg.func.jacfwd):
        assert vmap(derivative(first))(w[None]).tolist() == [[[3.0, 0.0], [0.0, 0.0]]]


def test_unrecorded_writes_of_samples_into_a_captured_tensor():
    w = tg.tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        v = w * 1
        with tg.no_grad():
            v.mul_(x)
        return (v * v).sum()

    vmap(f)(tg.tensor([2.0, 3.0])).sum().backward()
    assert w.grad.tolist() == [10.0, 20.0]


@pytest.mark.parametrize("transform", ["grad", "jvp"])
def test_rows_limited_in_norm_have_derivatives(transform):
    index, w = tg.tensor([0, 2]), tg.tensor([[1.0, 2.0], [0.1, 0.2], [3.0, 4.0]])

    def f(w):
        return (tg.nn.functional.embedding(index, w, max_norm=0.5) ** 2).sum()

    def g(w):
        return tg.func.grad(f)(w).sum() if transform == "grad" else tg.func.jvp(f, (w,), (tg.ones(3, 2),))[1]

    used = w[index] / w[index].norm(dim=1, keepdim=True) / 2
    close = dict(rtol=1e-5, atol=1e-6)
    assert tg.allclose(g(w.clone()), 2 * used.sum(), **close) and tg.allclose(vmap(g)(w[None])[0], 2 * used.sum(), **close)


def write_through(v, i):
    x = tg.zeros(3, 2).double()
    row = x[i]
    row.add_(v)
    x.mul_(2.0)
    row.mul_(v)
    x[i] += row
    return x + row


def look_later(v, i):
    x = v.clone()
    row = x[i]
    x.mul_(x)
    part = row[1:]
    part.mul_(3.0)
    return x * row


def look_at_a_plain_tensor(v, i):
    x = tg.ones(3, 2).double()
    row = x[i]
    x.mul_(2.0)
    y = row * v
    x[0] = 5.0
    return y + row


@pytest.mark.parametrize("f", [write_through, look_later, look_at_a_plain_tensor])
def test_what_a_number_shows_is_a_view(f):
    v = real(2, 2) if f is look_later else real(2)
    i = whole(2) if f is look_later else whole(3)
    same(f, v, i)
    gradients_agree(f, v, i)


def test_what_an_array_shows_is_a_copy():
    def f(v, j):
        part = v[j]
        part.mul_(2.0)
        return v + part.sum()

    same(f, V, J)


@pytest.mark.parametrize(
    "write",
    [
        lambda t, v: t.add_(v), lambda t, v: t[:1].add_(v[0]), lambda t, v: t.__setitem__(0, v[0]),
        lambda t, v: t.__setitem__(v[0].long() % 2, 1.0), lambda t, v: t.__setitem__(v > 2, 1.0), lambda t, v: t.copy_(v),
        lambda t, v: t.index_fill_(0, v[:1].long() % 2, 1.0),
    ],
)  # fmt: skip
def test_captured_tensors_are_not_written(write):
    t = tg.zeros(2)

    def f(v):
        write(t, v)
        return v

    with pytest.raises(RuntimeError, match="vmap: a tensor from outside the function was written in place"):
        vmap(f)(S)
    assert t.tolist() == [0.0, 0.0]


def test_the_warning_names_the_line():
    def f(v):
        return v * 2 if v[0] > 2 else v

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vmap(f)(S)
    (w,) = caught
    assert (w.filename, w.lineno) == (__file__, f.__code__.co_firstlineno + 1)


@pytest.mark.parametrize("turn", ["t_", "transpose_", "swapaxes_", "unsqueeze_", "squeeze_"])
def test_a_tensor_that_becomes_its_own_view(turn):
    arguments = {"transpose_": (0, 1), "swapaxes_": (0, 1), "unsqueeze_": (0,)}.get(turn, ())

    def whole(x):
        y = x * 2.0
        getattr(y, turn)(*arguments)
        y.mul_(3.0)
        return (y * y).sum()

    def part(x):
        y = x * 1.0
        w = y[0]
        getattr(w, turn)(*arguments)
        w.mul_(3.0)
        return (y * y).sum()

    x = tg.arange(24.0).reshape(2, 2, 2, 3) + 1.0
    assert vmap(grad(whole))(x[:, 0]).tolist() == (72.0 * x[:, 0]).tolist()
    factor = tg.tensor([18.0, 2.0]).reshape(2, 1, 1)
    assert vmap(grad(part))(x).tolist() == (factor * x).tolist()
    assert jvp(whole, (x[0, 0],), (x[0, 1],))[1].item() == pytest.approx((72.0 * x[0, 0] * x[0, 1]).sum().item())


@pytest.mark.parametrize("turn", [lambda t: t.t_(), lambda t: t.unsqueeze_(0), lambda t: t.t_().unsqueeze_(1)])
def test_views_keep_what_they_show_of_a_tensor_that_becomes_its_own_view(turn):
    def f(x):
        y = x * 2.0
        row, all_of_it = y[:1], y[:]
        corner = row[0, 0]
        turn(all_of_it)
        turn(y)
        all_of_it.add_(1.0)
        row.mul_(3.0)
        return (row * row).sum() + y.sum() * corner

    x = tg.arange(6.0, dtype=tg.float64).reshape(2, 3)
    expected, slope = (9.0 + 81.0 + 225.0) + 54.0 * 3.0, tg.autograd.grad(f(leaf := x.clone().requires_grad_()), leaf)[0]
    assert f(x).item() == expected and slope[1].tolist() == [6.0] * 3
    assert vmap(f)(tg.stack([x, x])).tolist() == [expected] * 2
    value, derivative = jvp(f, (x,), (x,))
    assert value.item() == expected and derivative.item() == (slope * x).sum().item()
    assert grad(f)(x).tolist() == slope.tolist() and vmap(grad(f))(tg.stack([x, x]))[1].tolist() == slope.tolist()


def test_a_tensor_that_becomes_a_view_of_its_own_view():
    x = tg.arange(12.0).reshape(2, 2, 3)
    assert (
        vmap(lambda x: (x * 2.0).resize_(2, 2).mul_(3.0))(x).tolist()
        == (6.0 * x).reshape(2, 6)[:, :4].reshape(2, 2, 2).tolist()
    )


DRAWN = {  # on PyTorch 2.13, from seed 0
    "rand_like(x)": [[0.4963, 0.132], [0.7682, 0.3074], [0.0885, 0.6341]],
    "rand_like(x.exp())": [[0.4963, 0.132], [0.7682, 0.3074], [0.0885, 0.6341]],
    "empty_like(x).exponential_()": [[3.5083, 2.5351], [1.2304, 1.0357], [0.615, 1.5661]],
    "zeros_like(x).uniform_(0.0, 2.0)": [[0.9925, 0.2641], [1.5364, 0.6148], [0.177, 1.2682]],
    "randn_like(x)": [[1.541, 0.5684], [-0.2934, -1.0845], [-2.1788, -1.3986]],
    "randint_like(x, 10)": [[4.0, 0.0], [9.0, 3.0], [3.0, 9.0]],
    "bernoulli(x / 2)": [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]],
    "nn.functional.dropout(x)": [[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]],
    "rand(2)": [[0.4963, 0.7682], [0.0885, 0.132], [0.3074, 0.6341]],
}


@pytest.mark.parametrize("expression", DRAWN)
def test_draws_follow_the_memory_of_the_batch(expression):
    draw = vmap(lambda x: eval("tg." + expression, {"tg": tg, "x": x}), in_dims=1, randomness="different")
    tg.manual_seed(0)
    np.testing.assert_allclose(draw(tg.ones(2, 3)).numpy(), DRAWN[expression], atol=6e-5)


def test_draws_follow_the_memory_of_nested_batches():
    inner = vmap(tg.rand_like, in_dims=1, randomness="different")
    tg.manual_seed(0)
    flat = tg.rand(2, 3, 2)
    tg.manual_seed(0)
    drawn = vmap(inner, in_dims=2, randomness="different")(tg.ones(2, 3, 2))
    assert drawn.equal(flat.permute(2, 1, 0))


def test_draws_outside_vmap_follow_the_memory():
    x = tg.ones(2, 3)
    tg.manual_seed(0)
    assert tg.randint_like(x.t(), 10).tolist() == [[4.0, 0.0], [9.0, 3.0], [3.0, 9.0]]
    weights = tg.tensor([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    tg.manual_seed(0)
    assert tg.multinomial(weights.t(), 1).tolist() == [[1], [2], [1], [2]]


# ------------------------------------------------------------------------------------------------------- shared memory

X = tg.arange(24.0).reshape(3, 2, 4)
LOOKS = {
    "argument": lambda x: x,
    "transpose": lambda x: x.mT,
    "row": lambda x: x[0],
    "slice": lambda x: x[:, 1::2],
    "expand": lambda x: x.expand(2, 2, 4)[0],
    "reshape": lambda x: x.reshape(2, 2, 2),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "diagonal": lambda x: x.diagonal(),
    "permute": lambda x: x.permute(1, 0),
    "split": lambda x: x.split(1)[1],
    "unbind": lambda x: x.unbind(0)[1],
    "detached": lambda x: x.detach()[0],
    "inner": lambda x: vmap(lambda r: r[1:])(x),
    "inner columns": lambda x: vmap(lambda r: r[:1], in_dims=1)(x),
}
COPIES = {
    "clone": lambda x: x.clone(),
    "product": lambda x: x * 1.0,
    "flip": lambda x: x.flip(0),
    "columns in order": lambda x: x.mT.contiguous(),
    "reshaped columns": lambda x: x.mT.reshape(-1),
}


@pytest.mark.parametrize("dims", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("name", [*LOOKS, *COPIES])
def test_outputs_share_memory_as_without_vmap(name, dims):
    source, destination = dims
    x = X.clone().movedim(0, source).contiguous()
    f = LOOKS.get(name) or COPIES[name]
    out = vmap(f, source, destination)(x)
    written = out.clone() - 1.0
    out.fill_(-1.0)
    rows = [row.clone() for row in X]
    for row in rows:
        f(row).fill_(-1.0)
    assert x.movedim(source, 0).tolist() == tg.stack(rows).tolist()
    assert (written + 1.0).tolist() == tg.stack([f(row) for row in X], destination).tolist()


def test_the_argument_itself_is_returned():
    x = X.clone()
    assert vmap(lambda t: t.mul_(2.0))(x) is x and x.tolist() == (2.0 * X).tolist()
    assert vmap(vmap(lambda t: t.neg_()))(x) is x
    assert vmap(lambda t: t, 1, 1)(x) is x and vmap(lambda t: t, 0, 1)(x)._base is x


def test_a_shared_output_keeps_its_history():
    x = X.clone().requires_grad_()

    def f(t):
        with tg.no_grad():
            quiet = t[1]
        return t[0], quiet, t.detach()

    row, quiet, detached = vmap(f)(x)
    assert (row.requires_grad, quiet.requires_grad, detached.requires_grad) == (True, False, False)
    (g,) = tg.autograd.grad((row * row).sum(), x)
    assert g[:, 0].tolist() == (2.0 * X[:, 0]).tolist() and not g[:, 1].any()


def test_one_value_written_into_all_samples():
    y = tg.zeros(3, 2)
    vmap(tg.Tensor.copy_, (1, None))(y, tg.tensor([1.0, 2.0, 3.0]))
    assert y.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert vmap(lambda t, v: t.fill_(v), (1, None))(y, tg.tensor(4.0)).tolist() == [[4.0] * 3] * 2
    assert y.tolist() == [[4.0, 4.0]] * 3


def test_strides_of_a_sample_are_those_in_the_batch():
    def seen(t):
        steps.append((t.stride(), t.is_contiguous()))
        return t

    steps = []
    for in_dim in (0, 1, 2):
        vmap(seen, in_dim)(tg.ones(2, 3, 4))
    vmap(vmap(seen, 1))(tg.ones(2, 3, 4))
    vmap(seen)(tg.ones(2, 0, 3))
    assert steps == [((4, 1), True), ((12, 1), False), ((12, 4), False), ((4,), False), ((3, 1), True)]
    with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's size and stride"):
        vmap(lambda t: t.view(8), 1)(tg.ones(2, 3, 4))


@pytest.mark.parametrize("whole", [False, True])
def test_a_tensor_made_inside_may_be_written_and_returned_in_a_tuple(whole):
    def f(x, y):
        x = x.clone()
        part = x[0]
        (x if whole else part).copy_(y)
        return part, {"x": [x]}

    values = tg.tensor([5.0, 6.0])
    got = vmap(f, (None, 0))(tg.zeros(2, 2), X[:2, 0, :2])
    assert got[0].tolist() == X[:2, 0, :2].tolist()
    (part, x), (tangent, moved) = jvp(lambda y: f(tg.zeros(2, 2), y), (values,), (2.0 * values,))
    assert part.tolist() == [5.0, 6.0] and tangent.tolist() == [10.0, 12.0]
    assert x["x"][0].tolist() == [[5.0, 6.0], [5.0, 6.0] if whole else [0.0, 0.0]]
    assert moved["x"][0].tolist() == [[10.0, 12.0], [10.0, 12.0] if whole else [0.0, 0.0]]


def test_a_view_of_a_batch_written_with_tangents_tells_its_base():
    """The tensor and its view belong to vmap, what is written into the view to jvp inside it."""

    def f(x, y):
        x = x.clone()
        row = x[0]
        row.copy_(y)
        return row, x

    x, y = tg.arange(12.0).reshape(3, 2, 2), -tg.arange(6.0).reshape(3, 2)
    (row, whole), (row_t, whole_t) = vmap(lambda x, y: jvp(lambda v: f(x, v), (y,), (10.0 * y,)))(x, y)
    assert row.tolist() == y.tolist() and row_t.tolist() == (10.0 * y).tolist()
    assert whole.tolist() == tg.stack([y, x[:, 1]], 1).tolist()
    assert whole_t.tolist() == tg.stack([10.0 * y, tg.zeros(3, 2)], 1).tolist()


def test_shared_fills_draw_as_for_one_sample_in_row_major_order():
    x = tg.ones(20, 3)
    tg.manual_seed(0)
    drawn = vmap(lambda t: t.normal_(), 1, randomness="same")(x)
    tg.manual_seed(0)
    assert drawn.tolist() == [tg.ones(20).normal_().tolist()] * 3


def test_rows_of_an_exchanged_batch_are_one_product():
    """A batch along the second dimension is multiplied as it lies in memory."""
    rng = np.random.default_rng(0)
    x, w = tg.tensor(rng.normal(size=(3, 5, 4))), tg.tensor(rng.normal(size=(4, 6)))
    np.testing.assert_allclose(vmap(lambda a: a @ w, in_dims=1, out_dims=1)(x).numpy(), (x @ w).numpy())
    got = vmap(lambda a: tg.nn.functional.linear(a, w.T), in_dims=1)(x)
    np.testing.assert_allclose(got.numpy(), (x @ w).numpy().swapaxes(0, 1))


def test_the_form_of_a_sample():
    """Bytes and strides are those of a sample, negative strides included."""
    seen = []

    def f(a):
        seen.append((a._d.nbytes, a.is_contiguous(), a.stride()))
        return a * 2

    x = np.arange(24.0).reshape(2, 3, 4)
    vmap(f)(tg.tensor(x))
    vmap(f)(tg.as_tensor(x[:, ::-1]))
    assert seen[0] == (96, True, (4, 1)) and seen[1][0] == 96
    assert vmap(lambda a: tg.as_tensor(np.flip(a, 0)) * 2)(tg.tensor(x)).tolist() == (x[:, ::-1] * 2).tolist()


def test_a_value_of_all_samples_is_written_into_a_sample_without_recording():
    def f(x):
        y = x * 2
        with tg.no_grad():
            y.copy_(tg.tensor([5.0, 6.0]))
        assert y.shape == (2,)
        return y

    assert vmap(f)(tg.ones(3, 2)).tolist() == [[5.0, 6.0]] * 3

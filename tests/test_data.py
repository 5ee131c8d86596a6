"""Datasets, samplers, DataLoader and its processes. Numbers of random order are PyTorch 2.13's for the same seeds."""

from __future__ import annotations

import collections
import copy
import gc
import multiprocessing
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from multiprocessing import resource_tracker

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.utils import data
from tapegrad.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset
from tapegrad.utils.data._utils import fetch

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]


@pytest.fixture(autouse=True)
def in_time():
    """A test that hangs fails, and none leaves a process or a file descriptor behind."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_):
        raise TimeoutError("the test hangs")  # which must not be taken for a worker's silence

    method = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)  # so that datasets may be local classes
    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 40)
    resource_tracker.ensure_running()  # that of multiprocessing stays once something was spawned
    before = descriptors()
    try:
        yield
        if multiprocessing.active_children() or descriptors() > before:
            gc.collect()
        assert not multiprocessing.active_children()
        assert descriptors() <= before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        multiprocessing.set_start_method(method, force=True)


def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def lists(loader):
    return [b.tolist() for b in loader]


class Squares(Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i * i


class Count(IterableDataset):
    def __init__(self, n=10):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(self.n)) if info is None else iter(range(info.id, self.n, info.num_workers))


class CountWithLength(Count):
    def __len__(self):
        return self.n


class Failing(Squares):
    def __init__(self, error, at=5):
        super().__init__(8)
        self.error, self.at = error, at

    def __getitem__(self, i):
        if i == self.at:
            raise self.error
        return i


class Dying(Squares):
    def __init__(self, way):
        super().__init__(8)
        self.way = way

    def __getitem__(self, i):
        if i == 5:
            os._exit(3) if self.way == "exit" else os.kill(os.getpid(), signal.SIGKILL)
        return i


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(60)


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


# ------------------------------------------------------------------------------------------------------------- datasets


def test_datasets():
    x, y = tg.arange(4.0), tg.arange(4)
    pairs = TensorDataset(x, y)
    assert len(pairs) == 4 and [v.item() for v in pairs[2]] == [2.0, 2]
    both = pairs + TensorDataset(-x, -y)
    assert isinstance(both, data.ConcatDataset) and both.cumulative_sizes == [4, 8]
    assert [both[i][1].item() for i in (3, 4, 7, -1, -8)] == [3, 0, -3, -3, 0]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        both[-9]
    stream = Count(2) + CountWithLength(3)
    assert isinstance(stream, data.ChainDataset) and list(stream) == [0, 1, 0, 1, 2]
    assert len(data.ChainDataset([CountWithLength(3), CountWithLength(4)])) == 7
    part = Subset(pairs, [3, 1])
    assert len(part) == 2 and part[1][1].item() == 1 and part[[0, 1]][1].tolist() == [3, 1]
    assert [s[1].item() for s in part.__getitems__([1, 0])] == [1, 3]
    stacked = data.StackDataset(a=pairs, b=Squares(4))
    assert stacked[3]["b"] == 9 and stacked.__getitems__([1, 2])[1]["b"] == 4
    assert data.StackDataset(Squares(3), Squares(3))[2] == (4, 4)
    assert Dataset[int] and issubclass(data.ChainDataset, IterableDataset)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Dataset()[0], NotImplementedError, "Subclasses of Dataset should implement __getitem__."),
        (lambda: len(Dataset()), TypeError, r"object of type 'Dataset' has no len\(\)"),
        (lambda: IterableDataset(), TypeError, "Can't instantiate abstract class IterableDataset"),
        (lambda: TensorDataset(tg.ones(2), tg.ones(3)), AssertionError, "Size mismatch between tensors"),
        (lambda: data.StackDataset(Squares(2), Squares(3)), ValueError, "Size mismatch between datasets"),
        (lambda: data.StackDataset(), ValueError, "At least one dataset should be passed"),
        (lambda: data.StackDataset(Squares(), a=Squares()), ValueError, "Supported either ``tuple``- "),
        (lambda: data.ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
        (lambda: data.ConcatDataset([Count()]), AssertionError, "ConcatDataset does not support IterableDataset"),
        (lambda: list(data.ChainDataset([Squares()])), AssertionError, "ChainDataset only supports IterableDataset"),
        (lambda: data.random_split(Squares(), [3, 3]), ValueError, "Sum of input lengths does not equal the length"),
        (lambda: data.random_split(Squares(), [1.5, -0.5]), ValueError, "Fraction at index 0 is not between 0 and 1"),
    ],
)
def test_wrong_datasets(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_random_split():
    parts = data.random_split(range(10), [0.33, 0.33, 0.34], tg.Generator().manual_seed(0))
    assert [p.indices for p in parts] == [[4, 1, 7, 5], [3, 9, 0], [8, 6, 2]]
    with pytest.warns(UserWarning, match="Length of split at index 0 is 0. This might result in an empty dataset."):
        parts = data.random_split(range(1), [0.0, 1.0])
    assert [len(p) for p in parts] == [0, 1]
    tg.manual_seed(0)
    assert sorted(i for p in data.random_split(range(7), [3, 4]) for i in p.indices) == list(range(7))


# ------------------------------------------------------------------------------------------------------------- samplers


def seed0():
    return tg.Generator().manual_seed(0)


def test_samplers():
    draw = list(data.RandomSampler(range(3), True, 40, seed0()))
    assert draw[:20] == [2, 0, 2, 0, 1, 0, 1, 1, 1, 0, 2, 2, 0, 0, 1, 2, 0, 0, 2, 0] and len(draw) == 40
    assert list(data.RandomSampler(range(3), num_samples=8, generator=seed0())) == [2, 0, 1, 2, 1, 0, 1, 2]
    assert list(data.SubsetRandomSampler([3, 4, 5], seed0())) == [5, 3, 4]
    assert list(data.WeightedRandomSampler([3, 4, 5], 4, generator=seed0())) == [2, 2, 1, 2]
    assert list(data.SequentialSampler("abc")) == [0, 1, 2]
    for drop, batches in ((False, [[0, 1, 2], [3, 4, 5], [6]]), (True, [[0, 1, 2], [3, 4, 5]])):
        sampler = data.BatchSampler(range(7), 3, drop)
        assert list(sampler) == batches and len(sampler) == len(batches)


def test_distributed_sampler():
    parts = [list(data.DistributedSampler(range(11), 3, r)) for r in range(3)]
    assert parts == [[10, 3, 2, 7], [0, 5, 1, 6], [4, 8, 9, 10]]
    plain = [list(data.DistributedSampler(range(11), 3, r, shuffle=False, drop_last=True)) for r in range(3)]
    assert plain == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert [list(data.DistributedSampler(range(2), 7, r, shuffle=False)) for r in range(3)] == [[0], [1], [0]]
    sampler = data.DistributedSampler(range(11), 3, 0)
    sampler.set_epoch(1)
    assert list(sampler) != parts[0] and len(sampler) == 4


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: data.RandomSampler([1], 1), TypeError, "replacement should be a boolean value, but got replacement=1"),
        (
            lambda: data.RandomSampler([]),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=0",
        ),
        (lambda: data.WeightedRandomSampler([1], True), ValueError, "num_samples should be a positive integer value"),
        (lambda: data.WeightedRandomSampler([[1]], 2), ValueError, "weights should be a 1d sequence but given weights have"),
        (lambda: list(data.WeightedRandomSampler([1.0], 2, False)), RuntimeError, "cannot sample n_sample > prob_dist.size"),
        (lambda: data.BatchSampler([1], 2.0, False), ValueError, "batch_size should be a positive integer value, but got"),
        (lambda: data.BatchSampler([1], 2, 1), ValueError, "drop_last should be a boolean value, but got drop_last=1"),
        (lambda: data.DistributedSampler([1]), ValueError, "Default process group has not been initialized"),
        (lambda: data.DistributedSampler([1], 2, 2), ValueError, r"Invalid rank 2, rank should be in the interval \[0, 1\]"),
        (lambda: iter(data.Sampler()), NotImplementedError, "Sampler should implement __iter__."),
    ],
)
def test_wrong_samplers(make, error, text):
    with pytest.raises(error, match=text):
        make()


# -------------------------------------------------------------------------------------------------------------- collate

Pair = collections.namedtuple("Pair", "a b")


def test_collate():
    collate = data.default_collate
    for batch, dtype in (([1, 2], tg.int64), ([1.0, 2], tg.float64), ([True, False], tg.bool), ([np.int8(1)], tg.int8)):
        assert collate(batch).dtype is dtype
    assert collate([np.zeros(2), np.ones(2)]).tolist() == [[0, 0], [1, 1]]
    assert collate([tg.ones(2), tg.zeros(2, dtype=tg.int64)]).dtype is tg.float32
    nested = collate([{"a": [1, (2.0, "x")]}, {"a": [3, (4.0, "y")]}])
    assert nested["a"][0].tolist() == [1, 3] and nested["a"][1][0].tolist() == [2.0, 4.0]
    assert nested["a"][1][1] == ("x", "y")
    pair = collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert type(pair) is Pair and pair.a.tolist() == [1, 3]
    assert type(collate([(1,), (2,)])) is list
    ordered = collate([collections.OrderedDict(a=1)])
    assert type(ordered) is collections.OrderedDict
    x = tg.ones(2, requires_grad=True)
    collate([x, 2 * x]).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    rows = tg.arange(6.0).view(3, 2)
    assert collate([rows[0], rows[2]]).tolist() == [[0, 1], [4, 5]]


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        (
            [None],
            TypeError,
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class",
        ),
        ([np.array("a")], TypeError, "numbers, dicts or lists; found <U1"),
        ([[1], [2, 3]], RuntimeError, "each element in list of batch should be of equal size"),
        (
            [tg.ones(2), tg.ones(3)],
            RuntimeError,
            r"stack expects each tensor to be equal size, but got \[2\] at entry 0",
        ),
        ([{"a": 1}, {"b": 2}], KeyError, "a"),
        ([2**70], ValueError, "Overflow when unpacking long long"),
        ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
        ([tg.ones(2), None], TypeError, "expected Tensor as element 1 in argument 0, but got NoneType"),
        ([(tg.ones(2), 0), ("x", 1)], TypeError, "expected Tensor as element 1 in argument 0, but got str"),
    ],
)
def test_wrong_batches(batch, error, text):
    with pytest.raises(error, match=text):
        data.default_collate(batch)


def test_convert_and_own_types():
    got = data.default_convert({"a": np.ones(1), "b": [np.float32(2), "x", None], "c": np.array(["x"])})
    assert got["a"].tolist() == [1.0] and got["b"][0].item() == 2.0 and got["b"][1:] == ["x", None]
    assert isinstance(got["c"], np.ndarray)
    from tapegrad.utils.data._utils.collate import collate

    def total(batch, *, collate_fn_map=None):
        return sum(batch)

    assert collate([(1, 2), (3, 4)], collate_fn_map={int: total}) == [4, 6]


# ----------------------------------------------------------------------------------------------------------- DataLoader


def test_loader():
    loader = DataLoader(Squares(7), 3)
    assert len(loader) == 3 and lists(loader) == lists(loader) == [[0, 1, 4], [9, 16, 25], [36]]
    assert lists(DataLoader(Squares(7), 3, drop_last=True)) == [[0, 1, 4], [9, 16, 25]]
    assert list(DataLoader(Squares(3), None)) == [0, 1, 4]
    assert list(DataLoader(Squares(3), None, collate_fn=str)) == ["0", "1", "4"]
    assert lists(DataLoader(Squares(9), batch_sampler=[[3, 1], [2]])) == [[9, 1], [4]]
    assert lists(DataLoader(Squares(9), 2, sampler=[8, 7, 6])) == [[64, 49], [36]]
    assert lists(DataLoader(Count(5), 2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Count(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(2), None)) == [0, 1]
    assert list(DataLoader([], 2)) == []
    assert len(DataLoader(CountWithLength(5), 2)) == 3 and len(DataLoader(CountWithLength(5), 2, drop_last=True)) == 2


@pytest.mark.parametrize(
    ("options", "order", "after"),
    [
        ({}, [[0, 1, 2], [3, 4, 5], [6]], 506137267392),
        ({"shuffle": True}, [[0, 4, 1], [5, 2, 6], [3]], 291447657211),
        pytest.param({"num_workers": 1}, [[0, 1, 2], [3, 4, 5], [6]], 506137267392, marks=posix),
        pytest.param({"shuffle": True, "num_workers": 2}, [[0, 4, 1], [5, 2, 6], [3]], 291447657211, marks=posix),
    ],
)
def test_order_and_draws_of_a_pass(options, order, after):
    tg.manual_seed(0)
    assert lists(DataLoader(list(range(7)), 3, **options)) == order
    assert tg.randint(2**40, (1,)).item() == after


def test_generator_of_a_loader():
    tg.manual_seed(0)
    g = tg.Generator().manual_seed(3)
    loader = DataLoader(list(range(7)), 3, shuffle=True, generator=g)
    assert lists(loader) == [[3, 4, 2], [0, 1, 6], [5]] and loader.sampler.generator is g
    assert tg.randint(2**40, (1,)).item() == 741280623151
    assert tg.randint(2**40, (1,), generator=g).item() == 593770158997


class Rows(TensorDataset):
    """Fetched one by one, being a class of its own."""


@pytest.mark.parametrize(
    "wrap", [lambda d: d, lambda d: Subset(d, [5, 3, 2, 9, 0, -1]), lambda d: Subset(d, np.arange(7)[::-1])]
)
def test_fetching_at_once_is_fetching_one_by_one(wrap):
    x, y = tg.randn(10, 3), tg.arange(10)
    assert fetch.gathered(wrap(TensorDataset(x, y)), [0, 1]) is not None
    for tensors in ((x, y), (x[:, 1:], y), (x,), (tg.from_numpy(np.ones((10, 2))), y)):
        fast, slow = wrap(TensorDataset(*tensors)), wrap(Rows(*tensors))
        for a, b in zip(DataLoader(fast, 4), DataLoader(slow, 4), strict=True):
            assert type(a) is type(b) is list
            for s, t in zip(a, b, strict=True):
                assert s.dtype is t.dtype and s.shape == t.shape and s.tolist() == t.tolist() and s.is_contiguous()
                s.add_(1)  # no batch shows the dataset's memory
    assert y.tolist() == list(range(10))


def test_fetching_at_once_keeps_gradients_and_errors():
    w = tg.ones(4, 2, requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(w), 2)))
    batch.sum().backward()
    assert w.grad.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    with pytest.raises(IndexError):
        list(DataLoader(TensorDataset(tg.ones(3)), batch_sampler=[[0, 3]]))
    with pytest.raises(IndexError):
        list(DataLoader(Subset(TensorDataset(tg.ones(3)), [0]), batch_sampler=[[0, 1]]))
    (batch,) = next(iter(DataLoader(TensorDataset(tg.arange(5)), batch_sampler=[[slice(0, 2), slice(2, 4)]])))
    assert batch.tolist() == [[0, 1], [2, 3]]
    summed = DataLoader(TensorDataset(tg.arange(4)), 2, collate_fn=lambda samples: sum(s.item() for (s,) in samples))
    assert list(summed) == [1, 5]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative; use num_workers=0 to disable"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing"),
        ({"prefetch_factor": -1, "num_workers": 1}, ValueError, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"shuffle": True, "sampler": [1]}, ValueError, "sampler option is mutually exclusive with shuffle"),
        (
            {"batch_sampler": [[1]], "batch_size": 3},
            ValueError,
            "batch_sampler option is mutually exclusive with batch_size",
        ),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching and is"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"multiprocessing_context": "fork"}, ValueError, "multiprocessing_context can only be used with multi-process"),
        ({"multiprocessing_context": "no", "num_workers": 1}, ValueError, "should specify a valid start method in"),
        ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "should be a valid context object or a string"),
    ],
)
def test_wrong_options(options, error, text):
    with pytest.raises(error, match=text):
        DataLoader(Squares(), **options)


def test_wrong_options_of_streams():
    for name, value in (("shuffle", True), ("sampler", [1]), ("batch_sampler", [[1]])):
        text = f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}="
        with pytest.raises(ValueError, match=text):
            DataLoader(Count(), **{name: value})
    with pytest.raises(TypeError, match="has no len"):
        len(DataLoader(Count()))
    with pytest.raises(ValueError, match="num_samples should be a positive integer value"):
        DataLoader([], shuffle=True)


def test_attributes_that_are_fixed():
    loader = DataLoader(Squares())
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, 1)
    loader.collate_fn = len
    assert list(loader) == [1] * 10
    for it in (iter(loader), DataLoader(Squares())):
        if it is not loader and isinstance(it, DataLoader):
            assert lists(pickle.loads(pickle.dumps(it))) == lists(it)
        else:
            with pytest.raises(NotImplementedError, match="cannot be pickled"):
                pickle.dumps(it)


def test_warnings():
    loader = DataLoader(Count(), pin_memory=True)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        iter(loader)
    with pytest.warns(UserWarning, match="This DataLoader will create 5000 worker processes in total. Our suggested max"):
        DataLoader(Squares(), num_workers=5000)

    class Short(Count):
        def __len__(self):
            return 2

    loader = DataLoader(Short(3), 1)
    list(loader)  # nobody has asked for the length
    len(loader)
    with pytest.warns(UserWarning, match=r"was reported to be 2\(when accessing len\(dataloader\)\), but 3 samples have"):
        list(loader)
    with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed to `cumulative_sizes`"):
        assert data.ConcatDataset([Squares(3)]).cummulative_sizes == [3]


# -------------------------------------------------------------------------------------------------------------- workers


@posix
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("batch_size", [2, None])
def test_workers_give_what_the_process_itself_gives(persistent, batch_size):
    x, y = tg.randn(11, 3), tg.arange(11)
    for dataset in (TensorDataset(x, y), Rows(x, y), Subset(Rows(x, y), range(7))):
        own = [[t.tolist() for t in b] for b in DataLoader(dataset, batch_size)]
        loader = DataLoader(dataset, batch_size, num_workers=2, persistent_workers=persistent)
        for _ in range(2):
            assert [[t.tolist() for t in b] for b in loader] == own
    stream = DataLoader(Count(9), batch_size, num_workers=2, persistent_workers=persistent)
    for _ in range(2):
        got = lists(stream) if batch_size else list(stream)
        assert got == ([[0, 2], [1, 3], [4, 6], [5, 7], [8]] if batch_size else list(range(9)))


class Uneven(IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(10 * info.id, 10 * info.id + (3, 7)[info.id]))


@posix
def test_a_worker_whose_stream_ends_early():
    assert lists(DataLoader(Uneven(), 2, num_workers=2)) == [[0, 1], [10, 11], [2], [12, 13], [14, 15], [16]]
    assert list(DataLoader(Uneven(), None, num_workers=2)) == [0, 10, 1, 11, 2, 12, 13, 14, 15, 16]
    assert lists(DataLoader(Uneven(), 2, num_workers=2, drop_last=True)) == [[0, 1], [10, 11], [12, 13], [14, 15]]


class Draws(Squares):
    def __getitem__(self, i):
        info = data.get_worker_info()
        return i, random.random(), tg.rand(()).item(), np.random.rand(), info.id, info.seed, info.num_workers


@posix
def test_seeds_of_workers():
    before = random.getstate(), np.random.get_state()[1].tolist()
    tg.manual_seed(5)
    first = next(iter(DataLoader(Draws(8), 2, shuffle=True, num_workers=2)))
    assert [v.tolist() for v in first] == [
        [4, 6],
        [0.9732059885921714, 0.09916814881074121],
        [0.7106006741523743, 0.34830594062805176],
        [0.48524966518109036, 0.24756875093656816],
        [0, 0],
        [4095051218741643470, 4095051218741643470],
        [2, 2],
    ]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert data.get_worker_info() is None


@posix
def test_persistent_workers_go_on_in_their_stream():
    tg.manual_seed(0)
    loader = DataLoader(Draws(6), 2, shuffle=True, num_workers=2, persistent_workers=True)
    passes = [[(b[0].tolist(), b[2].tolist()) for b in loader] for _ in range(2)]
    assert passes[0][0] == ([0, 4], [0.7821398973464966, 0.053598999977111816])
    assert passes[1][0] == ([5, 0], [0.5241790413856506, 0.19871777296066284])
    assert tg.randint(2**40, (1,)).item() == 841157541223
    loader = DataLoader(Squares(6), 2, num_workers=2, persistent_workers=True)
    begun = iter(loader)
    next(begun)
    again = iter(loader)
    assert again is begun and lists(again) == [[0, 1], [4, 9], [16, 25]]  # the pass that was begun is forgotten


def name_worker(i):
    random.name = f"worker {i}"


@posix
def test_a_persistent_worker_that_died_between_passes():
    loader = DataLoader(Squares(6), 3, num_workers=2, persistent_workers=True)
    first = lists(loader)
    process = loader._iterator._workers[1].process
    process.kill()
    process.join(10)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        lists(loader)
    assert lists(loader) == first  # with new workers
    with pytest.raises(AssertionError):
        iter(DataLoader(Squares(), num_workers=1, prefetch_factor=0))


class Names(Squares):
    def __getitem__(self, i):
        return random.name


@posix
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ways_to_start(method):
    loader = DataLoader(Names(2), None, num_workers=1, worker_init_fn=name_worker, multiprocessing_context=method)
    assert list(loader) == ["worker 0", "worker 0"] and not hasattr(random, "name")


@posix
def test_large_batches_and_indices():
    """Neither side waits for the other when both have more to say than a socket holds."""
    loader = DataLoader(Squares(200_000), 50_000, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert sum(map(len, loader)) == 200_000
    block = np.arange(3_000_000)
    for got in DataLoader([block, block + 1, block + 2, block + 3], None, num_workers=1):
        assert got[-1] - got[0] == 2_999_999


class Reused(Squares):
    """Gives one array again and again."""

    def __init__(self):
        super().__init__(6)
        self.array = np.zeros(3)

    def __getitem__(self, i):
        self.array += 1
        return self.array


@posix
def test_samples_are_as_they_were_when_fetched():
    assert [a[0].item() for a in DataLoader(Reused(), None, num_workers=1, prefetch_factor=6)] == [1, 2, 3, 4, 5, 6]


@posix
def test_what_workers_can_send():
    samples = [
        tg.ones(2, dtype=tg.float16), tg.ones(0, 3), tg.ones(3, 2).T, tg.tensor(1 + 2j), tg.nn.Parameter(tg.ones(2)),
        tg.ones(2, requires_grad=True), {"a": [None, "x"]}, Pair(1, tg.ones(1)), tg.Generator().manual_seed(4), tg.float64,
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ]  # fmt: skip
    got = list(DataLoader(samples, None, num_workers=1, collate_fn=copy.copy))
    for a, b in zip(samples, got, strict=True):
        assert type(a) is type(b)
        if isinstance(a, tg.Tensor):
            assert a.dtype is b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
            assert a.requires_grad is b.requires_grad and b.is_leaf
            if not b.requires_grad:
                b.add_(1)
    assert got[6] == {"a": [None, "x"]} and got[7].b.tolist() == [1.0] and got[8].initial_seed() == 4
    assert got[9] is tg.float64 and got[10].tolist() == samples[10].tolist()


class Tracked(Squares):
    def __getitem__(self, i):
        return tg.ones(2, requires_grad=True) * i


@posix
def test_a_sample_with_a_history_is_refused_by_workers():
    with pytest.raises(RuntimeError, match=r"Caught RuntimeError in DataLoader worker process 0.[\s\S]*Cowardly refusing"):
        list(DataLoader(Tracked(), 2, num_workers=1))
    with pytest.raises(Exception, match="Caught .* in DataLoader worker process 0.[^$]*lambda"):
        list(DataLoader(Squares(2), None, num_workers=1, collate_fn=lambda i: lambda: i))


@posix
@pytest.mark.parametrize("in_order", [True, False])
def test_order_of_answers(in_order):
    class FirstIsLate(Squares):
        def __getitem__(self, i):
            time.sleep(0.3 * (i == 0))
            return i

    got = list(DataLoader(FirstIsLate(6), None, num_workers=2, in_order=in_order))
    assert sorted(got) == list(range(6)) and (got == list(range(6))) is in_order


# --------------------------------------------------------------------------------------------------- what can go wrong


@posix
@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("hi"), ValueError, "Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent"),
        (KeyError("k"), KeyError, "Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent"),
        (TwoArguments(1, 2), RuntimeError, "Caught TwoArguments in DataLoader worker process 0.\nOriginal Traceback"),
        (IndexError("x"), IndexError, "Caught IndexError in DataLoader worker process 0.\nOriginal Traceback"),
        (FileNotFoundError(2, "no", "f"), FileNotFoundError, "Caught FileNotFoundError in DataLoader worker process 0."),
    ],
    ids=lambda v: type(v).__name__,
)
def test_an_error_in_the_dataset(error, kind, text):
    it = iter(DataLoader(Failing(error), 2, num_workers=1))
    assert [next(it).tolist(), next(it).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(kind) as caught:
        next(it)
    assert text in str(caught.value) and "raise self.error" in str(caught.value)
    assert next(it).tolist() == [6, 7]  # iteration can go on
    with pytest.raises(StopIteration):
        next(it)


def wrong_start(i):
    raise ValueError("at the start")


class NoStream(IterableDataset):
    def __iter__(self):
        raise ValueError("no stream")


@posix
def test_errors_before_the_first_sample():
    with pytest.raises(ValueError, match=r"Caught ValueError in DataLoader worker process 0.[\s\S]*at the start"):
        list(DataLoader(Squares(), num_workers=1, worker_init_fn=wrong_start))
    with pytest.raises(ValueError, match=r"Caught ValueError in DataLoader worker process 0.[\s\S]*no stream"):
        list(DataLoader(NoStream(), num_workers=1))

    class Local(Exception):
        pass

    with pytest.raises(RuntimeError, match="Caught Local in DataLoader worker process 0."):
        list(DataLoader(Failing(Local()), num_workers=1))
    loader = DataLoader(Squares(), num_workers=1, multiprocessing_context="spawn", collate_fn=lambda b: b)
    with pytest.raises(Exception, match="Can't (pickle|get) local object"):  # as the version of Python says it
        iter(loader)


@posix
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(("way", "how"), [("exit", "with exit code 3"), ("kill", "killed by signal 9")])
def test_a_worker_that_dies(way, how, in_order):
    start = time.monotonic()
    it = iter(DataLoader(Dying(way), 2, num_workers=2, in_order=in_order))
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly,? {how}"):
        list(it)
    assert time.monotonic() - start < 5
    with pytest.raises(RuntimeError, match="were stopped by an error"):
        next(it)


@posix
@pytest.mark.parametrize("in_order", [True, False])
def test_timeout(in_order, monkeypatch):
    monkeypatch.setattr("tapegrad.utils.data._utils.worker.MP_STATUS_CHECK_INTERVAL", 0.2)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=0.3, in_order=in_order))


@posix
def test_leaving_early():
    for persistent in (False, True):
        loader = DataLoader(Squares(1000), 2, num_workers=2, persistent_workers=persistent)
        for batch in loader:
            assert batch.tolist() == [0, 1]
            break
    it = iter(DataLoader(Squares(1000), 2, num_workers=2))
    next(it)
    children = multiprocessing.active_children()
    assert len(children) >= 2
    del it, loader
    gc.collect()
    assert not multiprocessing.active_children()


@posix
def test_persistent_workers_end_with_their_loader_and_iterator():
    gc.disable()
    try:
        loader = DataLoader(range(8), num_workers=1, persistent_workers=True)
        iterator = iter(loader)
        next(iterator)
        process = iterator._workers[0].process.pid
        del loader
        next(iterator)
        del iterator
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    finally:
        gc.enable()


def test_loaders_that_are_left_while_others_run(monkeypatch):
    terminated, terminate = [], multiprocessing.process.BaseProcess.terminate
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "terminate", lambda p: terminated.append(p.pid) or terminate(p))
    first, second = (iter(DataLoader(Squares(100), num_workers=2)) for _ in range(2))
    next(first), next(second)
    del first  # whose sockets the workers of the second inherited
    gc.collect()
    assert not terminated and len(multiprocessing.active_children()) == 2
    assert sum(map(len, second)) == 99


@posix
def test_loaders_that_are_collected_while_another_stops():
    """The first workers to stop bring in multiprocessing.connection: a collection within that import stops others."""
    done = program("""if True:
        import gc, tapegrad as tg
        from tapegrad.utils.data import DataLoader

        class Wrong(list):
            def __getitem__(self, i):
                raise ValueError

        gc.disable()
        last = iter(DataLoader([1] * 9, num_workers=1))
        next(last)
        for _ in range(3):
            try:
                next(iter(DataLoader(Wrong([1]), num_workers=1)))
            except ValueError:
                pass
        gc.set_threshold(gc.get_count()[0] + 100)
        gc.enable()
        del last
    """)
    assert not done.stderr and not done.returncode


@posix
def test_a_timeout_of_the_program():
    """An exception from a signal handler comes through while a worker is waited for."""
    import tapegrad.utils.data._utils.worker as worker

    previous, worker.MP_STATUS_CHECK_INTERVAL = worker.MP_STATUS_CHECK_INTERVAL, 0.2
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(TimeoutError, match="the test hangs"):
            list(DataLoader(Slow(), num_workers=1))
    finally:
        worker.MP_STATUS_CHECK_INTERVAL = previous


@posix
def test_an_interrupt():
    it = iter(DataLoader(Squares(100), num_workers=1))
    next(it)
    os.kill(it._workers[0].process.pid, signal.SIGINT)  # as a terminal does
    assert sum(map(len, it)) == 99
    it = iter(DataLoader(Slow(), num_workers=1))
    import tapegrad.utils.data._utils.worker as worker

    previous, worker.MP_STATUS_CHECK_INTERVAL = worker.MP_STATUS_CHECK_INTERVAL, 0.2
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start deaf to it
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            next(it)
    finally:
        signal.signal(signal.SIGINT, handler)
        worker.MP_STATUS_CHECK_INTERVAL = previous
    assert not multiprocessing.active_children()


def program(code):
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=30)


@posix
def test_workers_end_with_their_parent():
    code = """
        import os, signal, sys, time
        import tapegrad.utils.data._utils.worker as worker
        from tapegrad.utils.data import DataLoader
        worker.MP_STATUS_CHECK_INTERVAL = 0.2
        it = iter(DataLoader(list(range(100)), num_workers=2))
        next(it)
        print(*[w.process.pid for w in it._workers], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=30
    )
    pids = [int(p) for p in run.stdout.split()]
    assert len(pids) == 2, run.stderr
    deadline = time.monotonic() + 10
    while pids and time.monotonic() < deadline:
        pids = [p for p in pids if running(p)]
        time.sleep(0.05)
    assert not pids


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@posix
def test_a_program_that_ends_amid_a_pass():
    code = (
        "from tapegrad.utils.data import DataLoader\nit = iter(DataLoader(list(range(100)), num_workers=2))\nprint(next(it))"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=30)
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "tensor([0])", "")


# ----------------------------------------------------------------------------------------------- tapes, threads, locks


class Recording(Squares):
    def __init__(self, parameter, loss):
        super().__init__(4)
        self.parameter, self.loss = parameter, loss

    def __getitem__(self, i):
        entries = len(tg.tape())
        x = tg.tensor([float(i)], requires_grad=True)
        (x * x * self.parameter.detach()).sum().backward()
        return entries, x.grad.item(), tg.is_grad_enabled()


@posix
def test_workers_begin_with_an_empty_tape():
    w = tg.tensor([3.0], requires_grad=True)
    loss = (w * w).sum()
    assert len(tg.tape())
    got = [list(DataLoader(Recording(w, loss), None, num_workers=1))]
    with tg.no_grad():
        got.append(DataLoader(Squares(1), None, num_workers=1, collate_fn=lambda _: tg.is_grad_enabled()))
        assert list(got.pop()) == [False]
    assert [v[1:] for v in got[0]] == [[6.0 * i, True] for i in range(4)] and got[0][0][0] == 0
    loss.backward()
    assert w.grad.item() == 6.0

    def f(x):  # within a transform too
        return x * sum(list(DataLoader(Plain(4), None, num_workers=1)))

    assert tg.func.grad(f)(tg.tensor(2.0)).item() == 14.0
    assert tg.func.vmap(f)(tg.ones(2)).tolist() == [14.0, 14.0]


class Plain(Squares):
    def __getitem__(self, i):
        return (tg.tensor(float(i)) ** 2 + 0 * tg.rand(())).item()


@posix
def test_forking_while_threads_draw():
    """No lock that a thread of the parent held at the fork is waited for in a worker."""
    stop, g = threading.Event(), tg.Generator()
    locks = [tg.default_generator._lock, g._lock, np.random.mtrand._rand._bit_generator.lock]
    tg.rand(1), tg.rand(1, generator=g)
    locks += [tg.default_generator._twister._bit_generator.lock, g._twister._bit_generator.lock]

    def hold():
        for lock in locks:
            lock.acquire()
        held.set()
        stop.wait()
        for lock in reversed(locks):
            lock.release()

    held = threading.Event()
    loader = DataLoader(
        Squares(4), None, num_workers=1, collate_fn=lambda i: (np.random.rand(), tg.rand(1), tg.rand(1, generator=g))
    )
    seed = tg.utils.data.dataloader.random_seed
    thread = threading.Thread(target=hold)
    tg.utils.data.dataloader.random_seed = lambda _: 7  # the parent cannot draw while the locks are held
    try:
        thread.start()
        held.wait(10)
        assert len(list(loader)) == 4
    finally:
        stop.set()
        thread.join(10)
        tg.utils.data.dataloader.random_seed = seed


@posix
def test_reading_in_a_thread_while_this_one_trains():
    x, y = tg.randn(64, 3), tg.randn(64)
    batches = []

    def read():
        for workers in (0, 1):
            batches.extend(DataLoader(TensorDataset(x, y), 8, num_workers=workers))

    reader = threading.Thread(target=read)
    w = tg.zeros(3, requires_grad=True)
    reader.start()
    while reader.is_alive():
        ((x @ w - y) ** 2).mean().backward()
    reader.join(20)
    assert tg.cat([b[0] for b in batches]).tolist() == tg.cat([x, x]).tolist() and w.grad is not None


# ------------------------------------------------------------------------------------------------- pickles, generators


def child(conn, *objects):
    t, p, g, layer = objects
    conn.send((t + 1, p, tg.rand(2, generator=g), layer))


@posix
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_objects_in_another_process(method):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    g = tg.Generator().manual_seed(3)
    tg.rand(5, generator=g)
    layer = tg.nn.Linear(2, 2)
    process = context.Process(target=child, args=(theirs, tg.arange(3.0)[1:], tg.nn.Parameter(tg.ones(2)), g, layer))
    process.start()
    theirs.close()
    assert ours.poll(30)
    t, p, drawn, copied = ours.recv()
    process.join(10)
    ours.close()
    process.close()
    assert t.tolist() == [2.0, 3.0] and type(p) is tg.nn.Parameter and p.requires_grad and p.is_leaf
    assert drawn.tolist() == tg.rand(2, generator=g).tolist()
    assert copied.weight.tolist() == layer.weight.tolist()


def test_generators():
    g = tg.Generator(device=tg.device("cpu"))
    assert g.manual_seed(5) is g and g.initial_seed() == 5 and str(g.device) == "cpu"
    assert tg.manual_seed(3) is tg.default_generator and tg.initial_seed() == 3 and tg.random.initial_seed() == 3
    tg.rand(3, generator=g)
    for other in (g.clone_state(), copy.deepcopy(g), *[pickle.loads(pickle.dumps(g, k)) for k in range(6)]):
        assert type(other) is tg.Generator and other is not g and other.get_state().tolist() == g.get_state().tolist()
        assert tg.randn(20, generator=other).tolist() == tg.randn(20, generator=g.clone_state()).tolist()
    with pytest.raises(RuntimeError, match="manual_seed expected a long, but got float"):
        g.manual_seed(1.5)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        tg.manual_seed(2**64)
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        tg.set_rng_state(tg.ones(3))
    with pytest.raises(
        RuntimeError, match="Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size"
    ):
        tg.random.set_rng_state(tg.ones(3, dtype=tg.uint8))
    with pytest.raises(RuntimeError):
        tg.Generator("cuda")


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: tg.rand(2, generator=g), lambda g: tg.randn(2, generator=g), lambda g: tg.randperm(3, generator=g),
        lambda g: tg.randint(3, (2,), generator=g), lambda g: tg.normal(0.0, 1.0, (2,), generator=g),
        lambda g: tg.normal(tg.zeros(2), 1.0, generator=g), lambda g: tg.bernoulli(tg.full((9,), 0.5), generator=g),
        lambda g: tg.multinomial(tg.ones(9), 3, generator=g), lambda g: tg.poisson(tg.ones(9), g),
        lambda g: tg.empty(2).uniform_(generator=g), lambda g: tg.empty(2).random_(generator=g),
        lambda g: tg.rand_like(tg.ones(2), generator=g), lambda g: tg.randn_like(tg.ones(2), generator=g),
        lambda g: tg.randint_like(tg.ones(9), 5, generator=g), lambda g: tg.empty(2).exponential_(generator=g),
    ],
)  # fmt: skip
def test_a_generator_is_used_and_nothing_else_is(draw):
    before = tg.get_rng_state().tolist()
    a, b = draw(tg.Generator().manual_seed(8)), draw(tg.Generator().manual_seed(8))
    assert a.tolist() == b.tolist() and tg.get_rng_state().tolist() == before
    with pytest.raises(TypeError, match="argument 'generator' must be torch.Generator, not int"):
        draw(3)


def test_fork_rng():
    tg.manual_seed(1)
    with tg.random.fork_rng(devices=[]):
        inside = tg.rand(2).tolist()
    with pytest.raises(KeyError), tg.random.fork_rng(devices=range(0), enabled=True, device_type="cuda"):
        tg.rand(1)
        raise KeyError
    assert tg.rand(2).tolist() == inside
    tg.manual_seed(1)
    with tg.random.fork_rng(enabled=False):
        assert tg.rand(2).tolist() == inside
    assert tg.rand(2).tolist() != inside
    tg.manual_seed(4)
    tg.cuda.manual_seed(5), tg.cuda.manual_seed_all(5)  # as programs do that seed everything
    assert tg.initial_seed() == 4
    with pytest.raises(RuntimeError, match="no cuda device is available"), tg.random.fork_rng(devices=[0]):
        pass


def test_the_package_is_loaded_on_first_use():
    code = (
        "import sys, tapegrad as tg\n"
        "bad = {'multiprocessing', 'queue', 'tapegrad.utils.data'} & set(sys.modules); assert not bad, bad\n"
        "tg.utils.data.DataLoader\n"
        "bad = {'multiprocessing', 'socket'} & set(sys.modules); assert not bad, bad\n"
        "from tapegrad.utils.data.dataloader import default_collate, DataLoader\n"
        "from tapegrad.utils.data.dataset import Dataset, random_split\n"
        "from tapegrad.utils.data.sampler import Sampler\n"
        "from tapegrad.utils.data.distributed import DistributedSampler\n"
        "from tapegrad.utils.data._utils.collate import default_collate_fn_map\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DataLoader(Squares()).num_workers == 0


@posix
def test_the_sockets_of_workers_have_no_name_and_are_not_inherited_by_programs():
    iterator = iter(DataLoader([1, 2, 3], num_workers=1))
    (worker,) = iterator._workers
    assert (
        worker.sock.family == socket.AF_UNIX and worker.sock.getsockname() in ("", b"") and not worker.sock.get_inheritable()
    )
    assert [b.tolist() for b in iterator] == [[1], [2], [3]]

"""utils.data and random against PyTorch: names, signatures, order, random numbers, batches, errors and warnings."""

import collections
import importlib
import inspect
import pickle
import random
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
DATAPIPES = {
    "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
    "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled",
}  # fmt: skip
MISSING = {
    "": DATAPIPES,  # pipelines that PyTorch itself no longer develops
    ".dataset": set(),
    ".sampler": set(),
    ".dataloader": set(),
    ".distributed": set(),
}


def package(L, path=""):
    return importlib.import_module(f"{L.__name__}.utils.data{path}")


# ------------------------------------------------------------------------------------------------- names and signatures


@pytest.mark.parametrize("path", MISSING)
def test_names(path):
    theirs, ours = package(torch, path), package(tg, path)
    names = set(theirs.__all__)
    assert {n for n in names if not hasattr(ours, n)} == MISSING[path]
    assert set(ours.__all__) == names - MISSING[path]


def test_names_of_random():
    missing = {"thread_safe_generator"}  # of the threads that a DataLoader may have instead of processes there
    assert {n for n in torch.random.__all__ if not hasattr(tg.random, n)} == missing
    methods = {"get_offset", "graphsafe_get_state", "graphsafe_set_state", "set_offset"}  # of generators on accelerators
    assert {n for n in dir(torch.Generator) if n[0] != "_" and not hasattr(tg.Generator, n)} == methods


@pytest.mark.parametrize("name", sorted(set(torch.utils.data.__all__) - DATAPIPES - {"_DatasetKind"}))
def test_signatures(name):
    theirs, ours = (inspect.signature(getattr(package(L), name)) for L in (torch, tg))

    def shape(signature):
        plain = (int, float, str, bool, type(None))
        return [(p.name, p.kind, p.default if isinstance(p.default, plain) else None) for p in signature.parameters.values()]

    assert shape(ours) == shape(theirs)


# --------------------------------------------------------------------------------------------------------- programs


class Pair(collections.namedtuple("Pair", "a b")):
    __slots__ = ()


def plain(v):
    """A value of either library as plain Python, with the dtypes and types in it."""
    if hasattr(v, "requires_grad"):
        return [str(v.dtype), v.requires_grad, v.tolist()]
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    if isinstance(v, list | tuple):
        return [type(v).__name__, *map(plain, v)]
    return v


def outcome(program, L):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        L.manual_seed(11)
        random.seed(3)
        np.random.seed(4)
        try:
            result = plain(program(L, package(L)))
        except Exception as e:
            result = [type(e).__name__, str(e).split(". ")[0].rstrip(".")]
    told = [(w.category.__name__, str(w.message).split(" object at ")[0].split(". ")[0]) for w in caught]
    return result, told, L.get_rng_state().tolist(), random.random(), np.random.rand()


def same(program):
    ours, theirs = outcome(program, tg), outcome(program, torch)
    assert ours == theirs


def stream(D, n, with_length=None):
    class Stream(D.IterableDataset):
        def __iter__(self):
            info = D.get_worker_info()
            return iter(range(n) if info is None else range(info.id * 100, info.id * 100 + n + info.id))

    if with_length is not None:
        Stream.__len__ = lambda self: with_length
    return Stream()


SAMPLERS = {
    "random": lambda L, D: [list(D.RandomSampler(range(n))) for n in (1, 2, 7, 100)],
    "replacement": lambda L, D: [list(D.RandomSampler(range(n), True)) for n in (1, 7, 31, 32, 33, 100)],
    "more": lambda L, D: [list(D.RandomSampler(range(5), num_samples=n)) for n in (1, 4, 5, 6, 10, 13)],
    "subset": lambda L, D: [list(D.SubsetRandomSampler(range(3, n))) for n in (4, 20)],
    "weighted": lambda L, D: [list(D.WeightedRandomSampler([1.0, 2, 0, 5], n)) for n in (1, 3, 50)],
    "weighted without": lambda L, D: list(D.WeightedRandomSampler(L.arange(1, 9), 4, False)),
    "distributed": lambda L, D: [
        list(D.DistributedSampler(range(n), k, k - 1, shuffle, seed, last))
        for n in (1, 9, 12) for k in (1, 4) for shuffle in (True, False) for seed in (0, 7) for last in (True, False)
    ],
    "split": lambda L, D: [
        [p.indices for p in D.random_split(range(11), s)] for s in ([5, 6], [0.1, 0.9], [0.25] * 4, [11])
    ],
    "empty split": lambda L, D: [len(p) for p in D.random_split(range(2), [0.2, 0.8, 0.0])],
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    same(SAMPLERS[name])


@pytest.mark.parametrize("kind", ["RandomSampler", "SubsetRandomSampler"])
@pytest.mark.parametrize(
    "options", [{}, {"replacement": True}, {"num_samples": 13}, {"replacement": True, "num_samples": 70}]
)
def test_samplers_with_a_generator(kind, options):
    def program(L, D):
        g = L.Generator().manual_seed(2**40 + 3)
        chosen = options if kind == "RandomSampler" else {}
        sampler = getattr(D, kind)(range(6), generator=g, **chosen)
        return [list(sampler), list(sampler), g.get_state().tolist()]

    same(program)


LOADERS = [
    {}, {"shuffle": True}, {"shuffle": True, "drop_last": True}, {"batch_size": None}, {"batch_size": 4, "num_workers": 1},
    {"shuffle": True, "num_workers": 2}, {"batch_size": None, "shuffle": True, "num_workers": 2},
    {"batch_sampler": [[3, 1], [2]], "batch_size": 1}, {"shuffle": True, "num_workers": 2, "persistent_workers": True},
    {"num_workers": 2, "prefetch_factor": 1}, {"sampler": [5, 5, 1]},
]  # fmt: skip


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("options", LOADERS, ids=str)
def test_loaders(options, given):
    """Order, batches, and the random numbers that a sample draws in a worker or in this process."""

    def program(L, D):
        class Augmented(D.Dataset):
            def __len__(self):
                return 7

            def __getitem__(self, i):
                info = D.get_worker_info()
                seed = 0 if info is None else info.seed
                return i, random.random(), L.randn(2), np.random.rand(), seed, str(i), {"x": [L.tensor(i), i / 2]}

        g = L.Generator().manual_seed(77) if given else None
        loader = D.DataLoader(Augmented(), **{"batch_size": 3, "generator": g, **options})
        passes = [list(loader) for _ in range(2)]
        return [passes, len(loader), g.get_state().tolist() if given else 0]

    same(program)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("length", [None, 4, 50])
@pytest.mark.parametrize("options", [{}, {"batch_size": None}, {"drop_last": True}], ids=str)
def test_streams(workers, length, options):
    def program(L, D):
        loader = D.DataLoader(stream(D, 7, length), **{"batch_size": 3, "num_workers": workers, **options})
        counted = len(loader) if length is not None else None
        return [counted, list(loader), list(loader)]

    same(program)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1])
def test_numpy_seeds_of_workers(seed):
    from tapegrad.utils.data._utils import worker

    np.random.seed(torch.utils.data._utils.worker._generate_state(seed, 3))
    theirs = np.random.rand(3).tolist()
    worker._seed_all(seed, 3)
    assert np.random.rand(3).tolist() == theirs
    torch.manual_seed(seed + 3)
    assert tg.get_rng_state().tolist() == torch.get_rng_state().tolist()


def test_fetching_at_once():
    def program(L, D):
        x, y = L.randn(10, 4), L.arange(10)
        return [
            list(D.DataLoader(d, 4, shuffle=True))
            for d in (D.TensorDataset(x, y), D.TensorDataset(x), D.Subset(D.TensorDataset(x, y), [3, 1, -1]))
        ]

    same(program)


class Sequence(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return len(self.items)


class OwnList(list):
    pass


BATCHES = {
    "ints": lambda L: [1, 2], "floats": lambda L: [1.0, 2], "mixed": lambda L: [1, 2.5], "bools": lambda L: [True, False],
    "complex": lambda L: [1j], "none": lambda L: [None], "texts": lambda L: ["a", "b"], "bytes": lambda L: [b"a"],
    "arrays": lambda L: [np.ones(2), np.zeros(2)], "float32s": lambda L: [np.float32(1), np.float32(2)],
    "float64s": lambda L: [np.float64(1)], "int8s": lambda L: [np.int8(3)], "numpy bools": lambda L: [np.bool_(True)],
    "0-dim": lambda L: [np.array(1.5)], "text array": lambda L: [np.array("a")], "objects": lambda L: [np.array([None])],
    "numpy text": lambda L: [np.str_("a")], "shapes": lambda L: [L.ones(2), L.ones(3)],
    "dtypes": lambda L: [L.ones(2), L.ones(2, dtype=L.int64)], "tracked": lambda L: [L.ones(2, requires_grad=True)],
    "views": lambda L: [*L.arange(6).view(2, 3).T], "dicts": lambda L: [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    "ordered": lambda L: [collections.OrderedDict(b=1, a=2)], "default": lambda L: [collections.defaultdict(list, a=1)],
    "missing": lambda L: [{"a": 1}, {"b": 2}], "named": lambda L: [Pair(1, 2.0), Pair(3, 4.0)],
    "tuples": lambda L: [(1, 2.0), (3, 4.0)], "lists": lambda L: [[1, 2.0], [3, 4.0]], "own": lambda L: [OwnList([1, 2])],
    "sequence": lambda L: [list(Sequence(1, 2))], "lengths": lambda L: [[1], [2, 3]], "empty": lambda L: [],
    "ranges": lambda L: [range(3), range(3)], "sizes": lambda L: [L.ones(2, 3).shape], "set": lambda L: [{1}],
    "large": lambda L: [2**70], "no items": lambda L: [(), ()], "deep": lambda L: [{"a": [1, (2.0, "x")]}] * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_collate_and_convert(name):
    same(lambda L, D: D.default_collate(BATCHES[name](L)))
    same(lambda L, D: D.default_convert(BATCHES[name](L)))


MISTAKES = {
    "abstract": lambda L, D: D.IterableDataset(),
    "no item": lambda L, D: D.Dataset()[0],
    "no length": lambda L, D: len(D.Dataset()),
    "tensors": lambda L, D: D.TensorDataset(L.ones(2), L.ones(3)),
    "stack": lambda L, D: D.StackDataset([1], [1, 2]),
    "stack of none": lambda L, D: D.StackDataset(),
    "stack of both": lambda L, D: D.StackDataset([1], a=[1]),
    "concat": lambda L, D: D.ConcatDataset([]),
    "concat streams": lambda L, D: D.ConcatDataset([stream(D, 2)]),
    "negative": lambda L, D: D.ConcatDataset([[1, 2]])[-3],
    "spelling": lambda L, D: D.ConcatDataset([[1, 2]]).cummulative_sizes,
    "chain": lambda L, D: list(D.ChainDataset([[1]])),
    "split": lambda L, D: D.random_split(range(4), [1, 2]),
    "fraction": lambda L, D: D.random_split(range(4), [1.5, -0.5]),
    "replacement": lambda L, D: D.RandomSampler([1], 1),
    "samples": lambda L, D: D.RandomSampler([1], num_samples=1.5),
    "nothing": lambda L, D: D.DataLoader([], shuffle=True),
    "weights": lambda L, D: D.WeightedRandomSampler([[1.0]], 1),
    "weights replacement": lambda L, D: D.WeightedRandomSampler([1.0], 1, 1),
    "too many": lambda L, D: list(D.WeightedRandomSampler([1.0], 2, False)),
    "batch": lambda L, D: D.BatchSampler([1], True, False),
    "last": lambda L, D: D.BatchSampler([1], 1, 0),
    "group": lambda L, D: D.DistributedSampler([1]),
    "rank": lambda L, D: D.DistributedSampler([1], 2, 2),
    "workers": lambda L, D: D.DataLoader([1], num_workers=-1),
    "many workers": lambda L, D: len(D.DataLoader([1], num_workers=500)),
    "timeout": lambda L, D: D.DataLoader([1], timeout=-1),
    "prefetch": lambda L, D: D.DataLoader([1], prefetch_factor=2),
    "prefetch less": lambda L, D: D.DataLoader([1], num_workers=1, prefetch_factor=-2),
    "persistent": lambda L, D: D.DataLoader([1], persistent_workers=True),
    "shuffled stream": lambda L, D: D.DataLoader(stream(D, 2), shuffle=True),
    "sampled stream": lambda L, D: D.DataLoader(stream(D, 2), sampler=[1]),
    "batched stream": lambda L, D: D.DataLoader(stream(D, 2), batch_sampler=[[1]]),
    "stream's length": lambda L, D: len(D.DataLoader(stream(D, 2), 2)),
    "both": lambda L, D: D.DataLoader([1], shuffle=True, sampler=[0]),
    "batch sampler": lambda L, D: D.DataLoader([1], batch_sampler=[[0]], drop_last=True),
    "no batches": lambda L, D: D.DataLoader([1], batch_size=None, drop_last=True),
    "context": lambda L, D: D.DataLoader([1], multiprocessing_context="fork"),
    "context's name": lambda L, D: D.DataLoader([1], num_workers=1, multiprocessing_context="x"),
    "context's type": lambda L, D: D.DataLoader([1], num_workers=1, multiprocessing_context=3),
    "fixed": lambda L, D: setattr(D.DataLoader([1]), "batch_size", 2),
    "pinned": lambda L, D: len(list(D.DataLoader([1], pin_memory=True))),
    "pinned where": lambda L, D: len(list(D.DataLoader([1], pin_memory=True, pin_memory_device="cuda"))),
    "index": lambda L, D: list(D.DataLoader([1, 2], sampler=[2])),
    "pickled": lambda L, D: pickle.dumps(iter(D.DataLoader([1]))),
    "no length to sample": lambda L, D: D.DataLoader(lambda: 0, shuffle=True),
    "seed's type": lambda L, D: L.Generator().manual_seed(1.5),
    "seed's text": lambda L, D: L.manual_seed("a"),
    "large seed": lambda L, D: L.Generator().manual_seed(2**64),
    "low seed": lambda L, D: L.manual_seed(-(2**63) - 1),
    "state's size": lambda L, D: L.set_rng_state(L.ones(3, dtype=L.uint8)),
    "state": lambda L, D: L.set_rng_state(L.zeros(5056, dtype=L.uint8)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    same(MISTAKES[name])


@pytest.mark.parametrize(
    "error", [ValueError("hi"), KeyError("k"), IndexError("x"), UnicodeDecodeError("a", b"b", 0, 1, "c")]
)
def test_errors_in_workers(error):
    def program(L, D):
        class Failing(D.Dataset):
            def __len__(self):
                return 6

            def __getitem__(self, i):
                if i == 2:
                    raise error
                return i

        it, seen = iter(D.DataLoader(Failing(), 2, num_workers=2)), []
        while len(seen) < 5:
            try:
                seen.append(next(it))
            except StopIteration:
                break
            except Exception as e:
                seen.append([type(e).__name__, str(e).split("\n")[0]])
        return seen

    same(program)


# ----------------------------------------------------------------------------------------------------------- generators


GENERATORS = {
    "seeds": lambda L, D: [L.Generator().manual_seed(s).initial_seed() for s in (0, 5, -1, -(2**63), 2**64 - 1)],
    "float seed": lambda L, D: L.manual_seed(1.7).initial_seed(),
    "tensor seed": lambda L, D: L.manual_seed(L.tensor(4)).initial_seed(),
    "default": lambda L, D: [L.manual_seed(3) is L.default_generator, L.initial_seed(), L.Generator().initial_seed()],
    "device": lambda L, D: [str(L.Generator(device=d).device) for d in ("cpu", L.device("cpu"), None)],
    "clone": lambda L, D: [L.rand(3), L.rand(3, generator=L.default_generator.clone_state()), L.rand(3)],
    "pickle": lambda L, D: [L.randn(3), L.randn(3, generator=pickle.loads(pickle.dumps(L.default_generator))), L.randn(3)],
    "draws": lambda L, D: (lambda g: [
        L.rand(3, generator=g), L.randn(17, generator=g), L.randn(3, generator=g), L.randperm(9, generator=g),
        L.randint(2, 50, (4,), generator=g), L.normal(1.0, 2.0, (3,), generator=g),
        L.bernoulli(L.full((9,), 0.4), generator=g),
        L.multinomial(L.arange(1.0, 9.0), 4, generator=g), L.poisson(L.arange(5.0), g), L.rand_like(L.ones(3), generator=g),
        L.randn_like(L.ones(3), generator=g), L.randint_like(L.ones(3), 9, generator=g), L.empty(3).uniform_(generator=g),
        L.empty(3, dtype=L.int64).random_(generator=g), L.empty(3).bernoulli_(0.5, generator=g), g.get_state().tolist(),
    ])(L.Generator().manual_seed(12)),
}  # fmt: skip


@pytest.mark.parametrize("name", GENERATORS)
def test_generators(name):
    same(GENERATORS[name])


@pytest.mark.parametrize("options", [{}, {"devices": []}, {"enabled": False}, {"devices": [], "enabled": True}])
def test_fork_rng(options):
    def program(L, D):
        out = [L.rand(1)]
        with L.random.fork_rng(**options):
            L.manual_seed(5)
            out.append(L.randn(3))
        try:
            with L.random.fork_rng(**options):
                out.append(L.randn(3))
                raise ValueError
        except ValueError:
            out.append(L.randn(3))
        return out

    same(program)


def test_states_are_exchanged():
    torch.manual_seed(3)
    torch.randn(5)
    tg.set_rng_state(tg.from_numpy(torch.get_rng_state().numpy()))
    assert tg.randn(4).tolist() == torch.randn(4).tolist()
    tg.randn(3)
    torch.random.set_rng_state(torch.from_numpy(tg.random.get_rng_state().numpy()))
    assert torch.rand(4).tolist() == tg.rand(4).tolist()
    assert tg.get_rng_state().tolist() == torch.get_rng_state().tolist()

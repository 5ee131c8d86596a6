"""DataLoader: batches of a dataset, loaded in this process or by worker processes."""

from __future__ import annotations

import copy
import itertools
import os
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, cast, overload

import numpy as np

from ...core.state import is_recording
from ...functions.create import random_seed
from ...tensor.tensor import Tensor
from ._utils import worker as processes
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.worker import get_worker_info
from .dataset import IterableDataset, Samples
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

if TYPE_CHECKING:  # a default of a type variable is Python 3.13's; type checkers know it from typing_extensions
    from typing import Generic, Protocol

    from typing_extensions import TypeVar

    T = TypeVar("T")
    K = TypeVar("K")
    N = TypeVar("N", bound="NamedSample")
    T_co = TypeVar("T_co", covariant=True)
    B_co = TypeVar("B_co", covariant=True, default=Any)

    class Loader(Generic[T_co, B_co]):
        """Of samples T and batches B."""

    class Unknown:
        """Only a sample of type Any counts as one of these."""

    class Collated:
        """Stands for the batch type of default_collate, which follows from the type of samples."""

    class Converted:
        """Stands for the type of single samples after default_convert."""

    class NamedSample(Protocol):
        """A named tuple."""

        def _asdict(self) -> dict[str, Any]: ...

    Value = Tensor | float | np.ndarray[Any, Any] | np.number[Any]
else:

    class Loader:
        __class_getitem__ = classmethod(types.GenericAlias)


class _DatasetKind:
    """How a dataset is read: by index or as a stream."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler[None]):
    """The indices of a stream: an endless sequence of None."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Loader["T_co", "B_co"]):
    """Iterates over batches of a dataset; each `iter()` starts a new pass.

    A pass draws the base seed of the workers from the generator; worker i seeds `random`, NumPy and tapegrad from it and i.
    With shuffle=True it also draws the seed of the permutation. Order and random numbers equal PyTorch's for the same seed.

    Args:
        dataset: a Dataset, an IterableDataset, or anything with `__getitem__` and `__len__`.
        batch_size: samples per batch; None: single samples instead of batches.
        shuffle: draw a new permutation for each pass.
        sampler: iterable of indices, instead of shuffle.
        batch_sampler: iterable of lists of indices, instead of batch_size, shuffle, sampler and drop_last.
        num_workers: number of worker processes; 0: load in this process.
        collate_fn: combines a list of samples into a batch (default: default_collate; default_convert without batches).
        pin_memory, pin_memory_device: no effect except a warning.
        drop_last: omit an incomplete last batch.
        timeout: seconds to wait for a worker; 0: no limit while it is alive.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: start method: a context of multiprocessing or its name ("fork", "spawn", ...).
        generator: draws the seeds of the workers and of the permutation; None: the default generator.
        prefetch_factor: number of batches that each worker loads in advance (default 2).
        persistent_workers: keep the workers, and their copies of the dataset, between passes.
        in_order: return batches in the sampler's order; False: as they become ready.

    Raises:
        ValueError: for mutually exclusive arguments.
        RuntimeError: while iterating, if a worker dies or times out. An exception in a worker is re-raised with its type.

    Example:
        >>> data = tg.utils.data.TensorDataset(tg.arange(5.0), tg.arange(5))
        >>> for x, y in tg.utils.data.DataLoader(data, batch_size=2):
        ...     print(x, y)
        tensor([0., 1.]) tensor([0, 1])
        tensor([2., 3.]) tensor([2, 3])
        tensor([4.]) tensor([4])
    """

    _iterator: Any = None
    _initialized = False

    @overload
    def __init__(
        self: DataLoader[T, Converted], dataset: Samples[T], batch_size: None, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: None = None, num_workers: int = 0, collate_fn: None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: DataLoader[T, Collated], dataset: Samples[T], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0, collate_fn: None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, dataset: Samples[T_co], batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, *, collate_fn: Callable[[Any], B_co], pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None, generator: Any = None, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None: ...  # fmt: skip
    def __init__(
        self: Any, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Any = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        streams = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if streams else _DatasetKind.Map
        if streams:
            given = {"sampler": sampler, "batch_sampler": batch_sampler}
            wrong = [("shuffle", shuffle)] if shuffle else [(k, v) for k, v in given.items() if v is not None]
            for name, value in wrong:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if streams:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(self.dataset, generator=generator) if shuffle else SequentialSampler(self.dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._reported_length: int | None = None  # of a stream, set by len(loader)
        self._initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, attr: str, val: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self._initialized and attr in fixed:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self) -> Any:
        """The context that starts workers; None: multiprocessing's default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            import multiprocessing
            from multiprocessing.context import BaseContext

            if not self.num_workers:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(value, str):
                methods = multiprocessing.get_all_start_methods()
                if value not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={value!r}"
                    )
                value = multiprocessing.get_context(value)
            if not isinstance(value, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={value}"
                )
        self._context = value

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_iterator"}

    @overload
    def __iter__(self: DataLoader[Unknown, Collated]) -> Iterator[Any]: ...
    @overload
    def __iter__(self: DataLoader[Value, Collated]) -> Iterator[Tensor]: ...
    @overload
    def __iter__(self: DataLoader[N, Collated]) -> Iterator[N]: ...
    @overload
    def __iter__(self: DataLoader[tuple[Value, ...], Collated]) -> Iterator[list[Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[dict[K, Tensor], Collated]) -> Iterator[dict[K, Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[Any, Collated] | DataLoader[Any, Converted]) -> Iterator[Any]: ...
    @overload
    def __iter__(self) -> Iterator[B_co]: ...
    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            return _SingleProcessDataLoaderIter(self)
        if self.persistent_workers and self._iterator is not None and self._iterator._workers:
            self._iterator._reset(self)
            return cast(Iterator[Any], self._iterator)
        self.check_worker_number_rationality()
        iterator = _MultiProcessingDataLoaderIter(self)
        if self.persistent_workers:
            self._iterator = iterator
        return iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._reported_length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are to be more workers than processors."""
        if not self.num_workers:
            return
        has_affinity = hasattr(os, "sched_getaffinity")
        processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or self.num_workers
        if self.num_workers > processors:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
                f"worker in current system is {processors}, which is smaller than what this DataLoader is going to create. "
                "More workers than processors get in each other's way.",
                UserWarning,
                stacklevel=3,
            )


class _BaseDataLoaderIter:
    """One pass of a DataLoader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        # the loader refers to the iterator of persistent workers: a reference back would be a cycle, left to the collector
        self._loader = copy.copy(loader) if loader.persistent_workers else loader
        if loader.pin_memory:
            if loader.pin_memory_device:
                warnings.warn(
                    "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                    f"ignore pin_memory_device='{loader.pin_memory_device}'.",
                    UserWarning,
                    stacklevel=3,
                )
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
                UserWarning,
                stacklevel=3,
            )
        self._fetcher = _MapDatasetFetcher if loader._dataset_kind == _DatasetKind.Map else _IterableDatasetFetcher
        self._base_seed = random_seed(loader.generator)
        self._begin()

    def _begin(self) -> None:
        self._indices = iter(self._loader._index_sampler)
        self._num_yielded = 0
        self._reported_length = self._loader._reported_length

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        if self._reported_length is not None and self._num_yielded > self._reported_length:
            self._warn_of_length()
        return data

    def _warn_of_length(self) -> None:
        loader = self._loader
        text = (
            f"Length of IterableDataset {loader.dataset} was reported to be {self._reported_length}(when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if loader.num_workers:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
                "replica at each worker. Each worker reads the whole stream unless it is divided by get_worker_info()."
            )
        warnings.warn(text, UserWarning, stacklevel=3)

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._samples = self._fetcher(loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)

    def _next_data(self) -> Any:
        return self._samples.fetch(next(self._indices))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A pass with worker processes. Tasks are assigned round-robin; each worker answers in order."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError("prefetch_factor should be positive: nothing is read without")
        self._workers: list[processes.Worker] = []
        self._numbers = itertools.count()
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        self._broken = False
        self._stop = weakref.finalize(self, processes.stop, self._workers, os.getpid())
        job = processes.Job(
            self._fetcher, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last,
            loader.num_workers, loader.worker_init_fn, is_recording(),
        )  # fmt: skip
        try:
            processes.start(self._workers, loader.multiprocessing_context, job, self._base_seed)
            self._prefetch()
        except BaseException:
            self._shutdown_workers()
            raise

    def _reset(self, loader: DataLoader[Any]) -> None:
        """Start a new pass with the same workers; late answers to the previous pass are skipped."""
        self._loader = copy.copy(loader)
        self._begin()
        try:
            for w in self._workers:
                w.active, w.pending = True, 0
                w.send((None, None))
            self._prefetch()
        except BaseException:
            self._shutdown_workers()
            raise

    def _prefetch(self) -> None:
        self._tasks: deque[tuple[int, processes.Worker]] = deque()
        self._turns = itertools.cycle(self._workers)
        self._ahead: int = self._loader.prefetch_factor  # type: ignore[assignment]
        for _ in range(self._ahead * len(self._workers)):
            self._put()

    def _put(self) -> None:
        """Send the next task, if any, to the next worker."""
        free = (
            w for w in itertools.islice(self._turns, len(self._workers))
            if w.active and (self._in_order or w.pending < self._ahead)
        )  # fmt: skip
        worker = next(free, None)
        if worker is None:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        number = next(self._numbers)
        worker.send((number, index))
        worker.pending += 1
        self._tasks.append((number, worker))

    def _take(self) -> tuple[str, Any, processes.Worker] | None:
        """The answer to the next task, or with in_order=False to any finished task; None when all tasks are done."""
        self._tasks = deque([task for task in self._tasks if task[1].active])
        if not self._tasks:
            return None
        place = 0
        if not self._in_order:
            candidates = [w for _, w in self._tasks]
            ready = processes.first_ready(list(dict.fromkeys(candidates)), self._timeout)
            place = candidates.index(ready)
        number, worker = self._tasks[place]
        del self._tasks[place]
        answered = -1
        while answered != number:  # answers to an earlier pass are skipped
            answered, status, result = worker.receive(self._timeout)
        worker.pending -= 1
        return status, result, worker

    def _next_data(self) -> Any:
        if self._broken:
            raise RuntimeError("the workers of this DataLoader iterator were stopped by an error: begin a new iteration")
        while True:
            try:
                taken = self._take()
                if taken is not None:
                    status, result, worker = taken
                    worker.active = status != processes.END
                    self._put()
            except BaseException:
                self._broken = True
                self._shutdown_workers()
                raise
            if taken is None:
                if not self._loader.persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if status == processes.ERROR:
                result.reraise()
            if status == processes.DATA:
                return result

    def _shutdown_workers(self) -> None:
        self._stop()

"""Datasets: by index, as a stream, and combinations."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, Protocol, TypeVar, cast

from ...functions.create import default_generator, randperm
from ...tensor.tensor import Tensor

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split",
]  # fmt: skip

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index (or any key). A subclass defines `__getitem__`, and `__len__` for the samplers that need it.

    A subclass may define `__getitems__(indices)`, which returns a list of samples; DataLoader calls it if present.
    `a + b` is a ConcatDataset.

    Example:
        >>> class Squares(tg.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, i):
        ...         return i * i
        >>> list(tg.utils.data.DataLoader(Squares(), batch_size=2))
        [tensor([0, 1]), tensor([4, 9])]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> Any:
        return ConcatDataset([self, other])


class Samples(Protocol[T_co]):
    """Protocol for type checkers: a dataset, a list, or anything else with samples by index."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples as a stream: a subclass defines `__iter__`.

    Each worker process of a DataLoader iterates over its own copy: use `get_worker_info()` in `__iter__` to divide the work.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]: ...

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is the tuple (t[i] for each tensor t); all tensors have the same size(0).

    Example:
        >>> data = tg.utils.data.TensorDataset(tg.arange(4.0), tg.tensor([0, 1, 0, 1]))
        >>> len(data), data[1]
        (4, (tensor(1.), tensor(1)))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([t[index] for t in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].size(0)


def items_of(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """Samples of a dataset, by one `__getitems__` call if it has that method."""
    fetch = getattr(dataset, "__getitems__", None)
    return fetch(indices) if callable(fetch) else [dataset[i] for i in indices]


class StackDataset(Dataset[Any]):
    """Sample i is a tuple (of datasets given by position) or a dict (given by name) of the datasets' samples i."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both types "
                "are given."
            )
        self.datasets: Any = args or kwargs
        if not self.datasets:
            raise ValueError("At least one dataset should be passed")
        parts = list(self._parts())
        self._length = len(parts[0])
        if any(len(d) != self._length for d in parts):
            raise ValueError("Size mismatch between datasets")

    def _parts(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, values: Iterable[Any]) -> Any:
        return dict(zip(self.datasets, values, strict=True)) if isinstance(self.datasets, dict) else tuple(values)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([d[index] for d in self._parts()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [items_of(d, indices) for d in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}")
        return [self._sample(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Concatenation of datasets. `cumulative_sizes[k]` is the total length of the first k + 1."""

    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Running sums of the lengths."""
        return list(itertools.accumulate(map(len, sequence)))

    def __init__(self, datasets: Iterable[Samples[T_co]]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        place = bisect.bisect_right(self.cumulative_sizes, idx)
        sample: T_co = self.datasets[place][idx - (self.cumulative_sizes[place - 1] if place else 0)]
        return sample

    @property
    def cummulative_sizes(self) -> list[int]:
        """Deprecated spelling of cumulative_sizes."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Concatenation of streams."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self) -> Iterator[Any]:
        for d in self._streams():
            yield from d

    def __len__(self) -> int:
        return sum(map(len, self._streams()))


class Subset(Dataset[T_co]):
    """A subset of a dataset: sample i is the dataset's sample indices[i].

    Example:
        >>> list(tg.utils.data.Subset(["a", "b", "c"], [2, 0]))
        ['c', 'a']
    """

    dataset: Any
    indices: Any  # a sequence, an array or a tensor of integers

    def __init__(self, dataset: Samples[T_co], indices: Any) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        sample: T_co = self.dataset[[self.indices[i] for i in idx] if isinstance(idx, list) else self.indices[idx]]
        return sample

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return items_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Samples[T], lengths: Sequence[float], generator: Any = default_generator) -> list[Subset[T]]:
    """Split a dataset at random into disjoint subsets.

    Args:
        dataset: the dataset to split; must have a length.
        lengths: lengths of the subsets; or fractions that sum to 1, which are rounded down, the remaining samples being
            distributed round-robin.
        generator: draws the permutation.

    Raises:
        ValueError: if a fraction is not in [0, 1] or the lengths do not add up to the dataset's.

    Example:
        >>> _ = tg.manual_seed(0)
        >>> train, test = tg.utils.data.random_split(range(10), [0.8, 0.2])
        >>> len(train), list(test)
        (8, [6, 2])
    """
    total, sizes = len(cast(Sized, dataset)), list(lengths)
    if sum(sizes) <= 1 and math.isclose(sum(sizes), 1):
        for i, fraction in enumerate(sizes):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(total * fraction) for fraction in sizes]
        for i in range(total - int(sum(sizes))):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if not size:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", UserWarning, stacklevel=2
                )
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order, ends = randperm(total, generator=generator).tolist(), itertools.accumulate(map(int, sizes))
    return [Subset(dataset, order[end - int(size) : end]) for end, size in zip(ends, sizes, strict=True)]

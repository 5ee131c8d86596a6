"""Fetches samples or batches from a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.record import running_trace, wrap
from ....programs.tracing import leaving
from ....tensor.tensor import Tensor
from ..dataset import Subset, TensorDataset, items_of
from . import collate


def gathered(dataset: Any, indices: Any) -> list[Any] | None:
    """default_collate of a TensorDataset's samples by indexing each tensor once; None if the result might differ."""
    if type(indices) is not list:
        return None
    while type(dataset) is Subset:
        indices, dataset = [dataset.indices[i] for i in indices], dataset.dataset
    if type(dataset) is not TensorDataset or collate.default_collate_fn_map.get(Tensor) is not collate.collate_tensor_fn:
        return None
    if running_trace() is not None or not all(map(collate.plain, dataset.tensors)):
        return None
    if any(k is not int and not issubclass(k, np.integer) for k in set(map(type, indices))):
        return None
    rows = np.array(indices)
    try:
        return [wrap(leaving(t, "items of a dataset").take(rows, 0)) for t in dataset.tensors]
    except IndexError:
        return None  # indexing single samples raises the right error


class _MapDatasetFetcher:
    """Fetches by index."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn

    def fetch(self, index: Any) -> Any:
        """The batch of a list of indices, or one sample without automatic batches."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self.collate_fn is collate.default_collate:
            try:
                batch = gathered(self.dataset, index)
            except (IndexError, TypeError):  # the general path below raises the right error
                batch = None
            if batch is not None:
                return batch
        return self.collate_fn(items_of(self.dataset, index))


class _IterableDatasetFetcher:
    """Fetches from a stream; raises StopIteration at its end."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> None:
        self.samples = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next batch, of as many samples as the index has items, or the next sample."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.samples))
        batch: list[Any] = []
        for _ in index:
            try:
                batch.append(next(self.samples))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.collate_fn(batch)

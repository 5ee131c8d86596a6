"""The sampler for programs of several processes, each of which uses its own part of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from ...functions.create import Generator, randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index from `rank` on, of a permutation that is the same in all processes.

    Args:
        dataset: the dataset to sample; only its length is used.
        num_replicas, rank: number of processes, and the index of this one; both are required, since process groups
            are not supported.
        shuffle: permute with the seed plus the epoch (see set_epoch).
        seed: must be the same in all processes.
        drop_last: drop samples beyond a multiple of num_replicas; otherwise samples are repeated up to the next multiple.
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group. There are no "
                "process groups here: give num_replicas and rank."
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else -(-size // num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        indices: Any = range(size)
        if self.shuffle:
            indices = randperm(size, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        return iter([indices[i % size] for i in range(self.rank, self.total_size, self.num_replicas)])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the permutation of the next iteration."""
        self.epoch = epoch

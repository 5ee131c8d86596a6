"""Adaptive softmax: softmax over many classes, with rare classes in clusters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..functions.joining import cat
from ..tensor.tensor import Tensor
from . import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    """Result of AdaptiveLogSoftmaxWithLoss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over classes sorted by frequency, with rare classes in clusters (Grave et al. 2017).

    The head scores the frequent classes and the clusters; each cluster scores its classes through a smaller hidden layer.

    Args:
        in_features: size of the input's last dimension.
        n_classes: number of classes.
        cutoffs: first class of each cluster, ascending.
        div_value: the hidden layer of cluster i has in_features // div_value ** (i + 1) units.
        head_bias: whether the head has a bias.

    Raises:
        ValueError: for cutoffs that are not ascending integers from 1 to n_classes - 1.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        ascending = all(a < b for a, b in itertools.pairwise([0, *cutoffs, n_classes]))
        if not ascending or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
                "is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            hidden = int(in_features // div_value ** (i + 1))
            first = Linear(in_features, hidden, bias=False, **made)
            self.tail.append(Sequential(first, Linear(hidden, high - low, bias=False, **made)))

    def reset_parameters(self) -> None:
        """Reinitialise all weights."""
        clusters: list[Any] = list(self.tail)
        for layer in (self.head, *[layer for cluster in clusters for layer in cluster]):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """(N, in_features) and int64 (N,), or (in_features,) and (), to (output, loss).

        The output is the log probability of each target, the loss the mean of the negated outputs.

        Raises:
            RuntimeError: for shapes that do not match, or a target outside [0, n_classes).
        """
        self._check(input_, target_)
        input, target = (input_, target_) if target_.dim() else (input_.unsqueeze(0), target_.unsqueeze(0))
        cluster: Any = sum([(target >= low).long() for low in self.cutoffs[:-1]])  # 0: in the shortlist
        position = (cluster + (self.shortlist_size - 1)).where(cluster > 0, target)
        output = F.log_softmax(self.head(input), 1).gather(1, position.unsqueeze(1)).squeeze(1)
        for i, (low, tail) in enumerate(zip(self.cutoffs, self.tail, strict=False)):
            rows = (cluster == i + 1).nonzero().squeeze(1)
            if rows.numel():
                logs = F.log_softmax(tail(input.index_select(0, rows)), 1)
                output = output.index_add(0, rows, logs.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1))
        return _ASMoutput(output if target_.dim() else output.squeeze(0), -output.mean())

    def _check(self, input: Any, target: Any) -> None:
        rank, size = target.dim(), input.size()
        if rank > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != rank + 1:
            raise RuntimeError(f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with size {size}")
        if target.numel() and not (target.min().item() >= 0 and target.max().item() < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )

    def _all_logs(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, 1)
        clusters = [F.log_softmax(tail(input), 1) for tail in self.tail]
        n = self.shortlist_size
        result: Tensor = cat([head[:, :n], *[logs + head[:, n + i : n + i + 1] for i, logs in enumerate(clusters)]], 1)
        return result

    def log_prob(self, input: Tensor) -> Tensor:
        """(N, in_features) to log probabilities (N, n_classes)."""
        return self._all_logs(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """(N, in_features) to the most probable classes (N,); a cluster is evaluated only for rows whose head selects it."""
        scores = self.head(input)
        best = scores.argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel():
            best[rows] = self._all_logs(input[rows], scores[rows]).argmax(1)
        return best

"""Embeddings: tables of vectors looked up by index."""

from __future__ import annotations

from typing import Any

from ..functions import create
from ..modes import no_grad
from ..tensor.tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module


class _Table(Module):
    """Base of Embedding and EmbeddingBag."""

    _padding = "padding_idx"  # its name in error texts

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, max_norm: float | None, norm_type: float,
        scale_grad_by_freq: bool, sparse: bool, weight: Any, freeze: bool, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError(f"{self._padding} must be within num_embeddings")
        if weight is not None and tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        table = create.empty(num_embeddings, embedding_dim, dtype=dtype, device=device) if weight is None else weight
        self.weight = Parameter(table, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    @classmethod
    def _of(cls: Any, embeddings: Any, **settings: Any) -> Any:
        """A layer with a given table."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return cls(*embeddings.shape, _weight=embeddings, **settings)

    def reset_parameters(self) -> None:
        """Reinitialise the table; the padding row is set to zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _shown(self, **usual: Any) -> str:
        """The sizes, and the settings that differ from their defaults."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        return ", ".join(parts + [f"{k}={getattr(self, k)!r}" for k, v in usual.items() if getattr(self, k) != v])


class Embedding(_Table):
    """Looks up rows of a table: indices (...) give vectors (..., D).

    Attributes:
        weight: (V, D), initialised with standard normal numbers.

    Args:
        num_embeddings: number of rows V; indices are in [0, V).
        embedding_dim: size D of a row.
        padding_idx: index of a row that is initialised to zeros and gets no gradient.
        max_norm: rows with a larger norm_type-norm are scaled down to it, in place, before they are used.
        norm_type: order of that norm.
        scale_grad_by_freq: divide the gradient of a row by the number of its occurrences in the input.
        sparse: no effect; gradients are dense.

    Raises:
        AssertionError: if padding_idx is out of range.

    Example:
        >>> table = tg.nn.Embedding.from_pretrained(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> table(tg.tensor([1, 0, 1]))
        tensor([[3., 4.],
                [1., 2.],
                [3., 4.]])
    """

    _padding = "Padding_idx"

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, _freeze,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """Indices (...) to rows (..., D)."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Any:  # fmt: skip
        """An Embedding of a given table (V, D), constant unless freeze=False; other arguments as Embedding."""
        return cls._of(
            embeddings, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse, _freeze=freeze,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return self._shown(padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, sparse=False)


class EmbeddingBag(_Table):
    """Sum, mean or maximum over bags of rows of a table.

    Attributes:
        weight: (V, D), initialised with standard normal numbers.

    Args:
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse: as in Embedding.
        mode: "sum", "mean" or "max".
        include_last_offset: whether the last offset is the length of the input.
        padding_idx: index that is skipped; its row is initialised to zeros.

    Raises:
        AssertionError: if padding_idx is out of range.

    Example:
        >>> bag = tg.nn.EmbeddingBag.from_pretrained(tg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> bag(tg.tensor([[0, 1]]))  # the mean
        tensor([[2., 3.]])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight, False,
            device, dtype,
        )  # fmt: skip
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Indices (B, n), or (N,) with offsets (B,) of the bags, to (B, D).

        Args:
            per_sample_weights: factors of the rows, of input's shape; only for mode "sum".
        """
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:  # fmt: skip
        """An EmbeddingBag of a given table (V, D), constant unless freeze=False; other arguments as EmbeddingBag."""
        layer = cls._of(
            embeddings, max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode,
            sparse=sparse, include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip
        layer.weight.requires_grad = not freeze
        return layer

    def extra_repr(self) -> str:
        return self._shown(max_norm=None, norm_type=2, scale_grad_by_freq=False, mode=None, padding_idx=None)

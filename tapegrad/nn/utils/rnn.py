"""Sequences of different lengths in one tensor: padded, or packed step by step for recurrent layers."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes, errors
from ...core.record import fixed
from ...functions import create, shape, sort
from ...functions.joining import cat, unbind
from ...tensor.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences packed step by step: the first elements of all sequences, then the second elements, and so on.

    Created by `pack_padded_sequence` and `pack_sequence`; accepted and returned by recurrent layers.

    Attributes:
        data: (sum of the lengths, ...).
        batch_sizes: int64 (T,), number of sequences with an element at each step.
        sorted_indices: order of the sequences by decreasing length; None if they were already sorted.
        unsorted_indices: the inverse permutation.

    Example:
        >>> packed = tg.nn.utils.rnn.pack_sequence([tg.tensor([1, 2, 3]), tg.tensor([4, 5])])
        >>> isinstance(packed, tg.nn.utils.rnn.PackedSequence), packed.data
        (True, tensor([1, 4, 2, 5, 3]))
    """

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        """Also called as PackedSequence((data, batch_sizes), sorted_indices=...)."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences with data.to(...); self if that changes nothing."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences on the CPU."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences on a CUDA device; raises RuntimeError if there is none."""
        return self.to(*args, **{**kwargs, "device": "cuda"})

    def double(self) -> PackedSequence:
        """Data in float64."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        """Data in float32."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        """Data in float16."""
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        """Data in int64."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        """Data in int32."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        """Data in int16."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        """Data in int8."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        """Data in uint8."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False

    def is_pinned(self) -> bool:
        """False."""
        return False

    def pin_memory(self) -> PackedSequence:
        """Return self: memory is not pinned."""
        return self


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation (int64, (N,)); None for None.

    Example:
        >>> tg.nn.utils.rnn.invert_permutation(tg.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    return None if permutation is None else sort.argsort(permutation)


def _positions(sizes: Any, steps: int, columns: Any, batch_first: bool) -> Any:
    """Flat indices of packed rows in a padded batch; `columns`: position of each sequence in the batch."""
    step = np.repeat(np.arange(len(sizes)), sizes)
    column = np.concatenate([columns[:n] for n in sizes])
    return column * steps + step if batch_first else step * len(columns) + column


def _placed(data: Any, positions: Any, size: tuple[int, int], value: Any) -> Tensor:
    """(*size, ...) filled with a value, with the rows of data at the flat indices of the first two dimensions."""
    rest = tuple(data.shape[1:])
    filled = create.full((size[0] * size[1], *rest), value, dtype=data.dtype, device=data.device)
    placed: Tensor = filled.index_copy(0, fixed(positions), data)
    return placed.reshape(*size, *rest)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch of sequences.

    Args:
        input: (T, B, ...), or (B, T, ...) with batch_first.
        lengths: length of each sequence, from 1 to T: a list or a 1-D tensor.
        enforce_sorted: require decreasing lengths; if False, the sequences are sorted here.

    Returns:
        A PackedSequence. Its `data` has the steps of all sequences, (sum(lengths), ...), `batch_sizes` how many sequences
        each step has.

    Raises:
        RuntimeError: for lengths that do not match the input.

    Example:
        >>> padded = tg.tensor([[1, 4], [2, 5], [3, 0]])  # two sequences, of lengths 3 and 2
        >>> packed = tg.nn.utils.rnn.pack_padded_sequence(padded, [3, 2])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """
    if not isinstance(lengths, Tensor):
        lengths = create.as_tensor(lengths, dtype=dtypes.int64)
    if lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D cpu "
            f"{lengths.type().split('.')[-1].removesuffix('Tensor')} tensor"
        )
    steps, n = (input.size(1), input.size(0)) if batch_first else (input.size(0), input.size(1))
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    count = np.array(lengths.to(dtypes.int64).tolist(), np.int64)
    if len(count) != n:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(count)} (batch_size={n})")
    order = None if enforce_sorted else np.argsort(-count, kind="stable")
    count = count if order is None else count[order]
    if (count <= 0).any():
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if (np.diff(count) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
            "need ONNX exportability."
        )
    if count[0] > steps:
        raise RuntimeError(f"Expected lengths of at most {steps}, the padded length, but got {count[0]}")
    sizes = (count[:, None] > np.arange(count[0])).sum(0)
    positions = _positions(sizes, steps, np.arange(n) if order is None else order, batch_first)
    data = input.reshape(steps * n, *input.shape[2:])[fixed(positions)]
    return PackedSequence(data, fixed(sizes), None if order is None else fixed(order))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: builtins.float = 0.0,
    total_length: builtins.int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(padded batch, lengths int64) of packed sequences, in the order before packing.

    Args:
        sequence: a PackedSequence.
        batch_first: return (B, T, ...) instead of (T, B, ...).
        padding_value: value of the padding.
        total_length: T; at least the length of the longest sequence, which is the default.

    Raises:
        ValueError: if total_length is too small.

    Example:
        >>> packed = tg.nn.utils.rnn.pack_sequence([tg.tensor([1, 2, 3]), tg.tensor([4, 5])])
        >>> tg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    sizes = np.array(sequence.batch_sizes.tolist(), np.int64)
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    n = builtins.int(sizes[0])
    count = (sizes[:, None] > np.arange(n)).sum(0)
    columns = np.arange(n)
    if sequence.unsorted_indices is not None:
        back = np.array(sequence.unsorted_indices.tolist())
        count, columns = count[back], np.argsort(back)
    positions = _positions(sizes, steps, columns, batch_first)
    padded = _placed(sequence.data, positions, (n, steps) if batch_first else (steps, n), padding_value)
    return padded, fixed(count)


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: builtins.float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad sequences (L_i, ...) to the longest and stack them: (T, B, ...), or (B, T, ...) with batch_first.

    Args:
        sequences: tensors (L_i, ...).
        batch_first: return (B, T, ...) instead of (T, B, ...).
        padding_value: value of the padding.
        padding_side: "right" or "left".

    Raises:
        RuntimeError: for an empty list, or sequences whose sizes differ beyond the first dimension.

    Example:
        >>> tg.nn.utils.rnn.pad_sequence([tg.tensor([1, 2, 3]), tg.tensor([4, 5])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 5, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    rows = list(unbind(sequences)) if isinstance(sequences, Tensor) else list(sequences)
    for i, x in enumerate(rows):
        if not isinstance(x, Tensor):
            raise errors.no_tensor_in_list(i, x)
    if not rows:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for x in rows[1:]:
        for d, (a, b) in enumerate(zip(rows[0].shape[1:], x.shape[1:], strict=False)):
            if a != b:
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {d + 1}"
                )
    count = np.array([x.size(0) for x in rows])
    steps, n = builtins.int(count.max()), len(rows)
    sequence = np.repeat(np.arange(n), count)
    step = np.concatenate([np.arange(k) for k in count])
    step = step + (steps - count)[sequence] if padding_side == "left" else step
    positions = sequence * steps + step if batch_first else step * n + sequence
    data = cat([x.to(rows[0].dtype) for x in rows], 0)
    return _placed(data, positions, (n, steps) if batch_first else (steps, n), padding_value)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch (T, B, ...), or (B, T, ...) with batch_first, without padding.

    Args:
        padded_sequences: (T, B, ...), or (B, T, ...) with batch_first.
        lengths: length of each sequence.
        batch_first: see above.

    Example:
        >>> padded = tg.tensor([[1, 2, 3], [4, 5, 0]])
        >>> tg.nn.utils.rnn.unpad_sequence(padded, tg.tensor([3, 2]), batch_first=True)
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    rows = padded_sequences if batch_first else shape.transpose(padded_sequences, 0, 1)
    return [row[: builtins.int(n)].clone() for row, n in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L_i, ...); see `pack_padded_sequence`.

    Args:
        sequences: tensors (L_i, ...).
        enforce_sorted: require decreasing lengths; if False, the sequences are sorted here.

    Returns:
        A PackedSequence.

    Example:
        >>> packed = tg.nn.utils.rnn.pack_sequence([tg.tensor([1, 2, 3]), tg.tensor([4, 5])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """
    rows = list(sequences)
    return pack_padded_sequence(pad_sequence(rows), [x.size(0) for x in rows], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The packed sequences as a list, in the order before packing.

    Args:
        packed_sequences: a PackedSequence.

    Example:
        >>> packed = tg.nn.utils.rnn.pack_sequence([tg.tensor([1, 2, 3]), tg.tensor([4, 5])])
        >>> tg.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)

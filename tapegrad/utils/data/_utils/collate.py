"""Collation: batches from lists of samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ....core import alias
from ....core.record import running_trace, wrap
from ....dtypes import float64
from ....functions.create import as_tensor, tensor
from ....functions.joining import stack
from ....tensor.access import raw
from ....tensor.tensor import Tensor

ERROR = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def numeric(array: Any) -> bool:
    return array.dtype.kind not in "SaUO"


def plain(t: Any) -> bool:
    """Whether a tensor is just its array: untracked, outside transforms, and not of a subclass."""
    return type(t) is Tensor and (t._st is None or not alias.has_level(t)) and not t.requires_grad


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like_mapping(value: Any, items: dict[Any, Any]) -> Any:
    """A mapping of value's type with other values, or a dict if that type cannot be constructed this way."""
    try:
        if isinstance(value, MutableMapping):
            clone = copy.copy(value)
            clone.update(items)
            return clone
        return type(value)(items)
    except TypeError:
        return items


def _like_sequence(value: Any, items: list[Any]) -> Any:
    """A sequence of value's type with other items, or a list if that type cannot be constructed this way."""
    try:
        if isinstance(value, MutableSequence):
            clone = copy.copy(value)
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(value)(items)
    except TypeError:
        return items


def default_convert(data: Any) -> Any:
    """Convert arrays, also inside mappings and sequences, to tensors that share memory; other values are unchanged.

    Args:
        data: arrays, tensors, and containers of them.

    Example:
        >>> tg.utils.data.default_convert({"x": np.array([1, 2]), "name": "a"})
        {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, Tensor | str | bytes):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return as_tensor(data) if numeric(data) else data
    if isinstance(data, Mapping):
        return _like_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if _is_namedtuple(data):
        return type(data)(*[default_convert(v) for v in data])
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence):
        return _like_sequence(data, [default_convert(v) for v in data])
    return data


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Combine samples of equal structure into a batch.

    Args:
        batch: the samples.
        collate_fn_map: functions by type, or by tuple of types, of the first sample: the exact type, else the first that it
            is an instance of. Each is called as f(batch, collate_fn_map=...).

    Raises:
        TypeError: for samples of a type that is neither in the map nor a mapping or sequence.
        RuntimeError: for sequences of different lengths.
    """
    first = batch[0]
    functions = collate_fn_map or {}
    kind = type(first)
    function = functions.get(kind) or next((f for k, f in functions.items() if isinstance(first, k)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        columns = {k: collate([sample[k] for sample in batch], collate_fn_map=collate_fn_map) for k in first}
        return _like_mapping(first, columns)
    if not isinstance(first, Sequence):
        raise TypeError(ERROR.format(kind))
    if not _is_namedtuple(first) and any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    items = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
    if _is_namedtuple(first):
        return kind(*items)
    return items if isinstance(first, tuple) else _like_sequence(first, items)


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Tensors of equal shape, stacked."""
    arrays = [] if running_trace() is not None else [raw(t) for t in batch if plain(t)]
    first: Any = arrays[0] if arrays else None
    if len(arrays) < len(batch) or any([a.shape != first.shape or a.dtype != first.dtype for a in arrays]):
        return stack(batch, 0)
    joined = np.empty((len(arrays), *first.shape), first.dtype)
    for i, a in enumerate(arrays):
        joined[i] = a
    return wrap(joined)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Arrays of equal shape, as one tensor."""
    if not numeric(batch[0]):
        raise TypeError(ERROR.format(batch[0].dtype))
    return collate([as_tensor(a) for a in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """NumPy scalars, as a tensor of their dtype."""
    return as_tensor(np.array(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Python floats, as a float64 tensor."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Python integers, as an int64 tensor; bools as a bool one."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Strings, as a list."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Combine samples into a batch: tensors, arrays and numbers are stacked along a new first dimension, strings listed.

    Mappings, named tuples and sequences are collated per item; a tuple becomes a list.

    Raises:
        TypeError: for samples of other types.

    Example:
        >>> tg.utils.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
        {'x': tensor([1., 2.], dtype=torch.float64), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)

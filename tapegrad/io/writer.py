"""A pickler that writes tensors as PyTorch does: calls of `torch._utils._rebuild_tensor_v2` on storages."""

from __future__ import annotations

import functools
import io
import pickle
from collections import OrderedDict
from typing import Any

from .. import dtypes
from ..nn.module import Table
from ..programs.tracing import leaving
from ..tensor.pickling import PRIVATE
from ..tensor.tensor import Parameter, Tensor
from .storages import STORAGE_OF, Blocks

_PicklerBase: Any = pickle._Pickler  # that in C cannot be told what an opcode may do
PLAIN = frozenset((str, int, float, bool, type(None), tuple, list, dict, OrderedDict))  # what most values of a file are


class Name:
    """A global that the pickle refers to by name only: "torch FloatStorage"."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        raise TypeError(f"{self.module}.{self.name} is but a name")


named = functools.cache(Name)  # one object for each, which the pickle writes once


class Stored:
    """A storage reference of the pickle."""

    def __init__(self, kind: Name, key: int, count: int) -> None:
        self.kind, self.key, self.count = kind, key, count


def _rebuilder(name: str) -> Name:
    return named("torch._utils", f"_rebuild_{name}")


class Writer(_PicklerBase):  # type: ignore[misc]
    """A pickler that writes tensors, sizes, dtypes and devices as PyTorch does.

    Without `blocks` it only collects the arrays of the tensors, in `arrays`.
    """

    def __init__(self, file: Any, protocol: int, blocks: Blocks | None, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self.blocks, self.legacy = blocks, legacy
        self.arrays: list[Any] = []

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if type(obj) in PLAIN or id(obj) in self.memo:
            super().save(obj, save_persistent_id)
        elif type(obj) is Name:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            self.memoize(obj)
        elif isinstance(obj, dtypes.dtype):
            self.save(named("torch", obj._name))
        elif type(obj) is dtypes.Size:
            self.save_reduce(named("torch", "Size"), (tuple(obj),), obj=obj)
        elif type(obj) is dtypes.device:
            self.save_reduce(named("torch", "device"), tuple(v for v in (obj.type, obj.index) if v is not None), obj=obj)
        elif isinstance(obj, dtypes.layout):
            self.save_reduce(named("torch.serialization", "_get_layout"), (f"torch.{obj._name}",), obj=obj)
        elif isinstance(obj, Tensor):
            self.save_reduce(*self.form(obj), obj=obj)
        elif type(obj) is Table:
            self.save_dict(obj)
        else:
            super().save(obj, save_persistent_id)

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is not Stored:
            return None
        return ("storage", obj.kind, str(obj.key), "cpu", obj.count, *((None,) if self.legacy else ()))

    def form(self, t: Any) -> tuple[Name, tuple[Any, ...]]:
        """The function and arguments that rebuild a tensor."""
        if t.is_sparse:
            return _rebuilder("sparse_tensor"), (t.layout, (t._indices(), t._values(), t.shape, t.is_coalesced()))
        function, args = self.plain_form(t)
        attributes = {k: v for k, v in t.__dict__.items() if k not in PRIVATE}
        hooks: Any = OrderedDict()
        if isinstance(t, Parameter):
            data = Rebuilt(function, args)
            if attributes:
                return _rebuilder("parameter_with_state"), (data, t.requires_grad, hooks, attributes)
            return _rebuilder("parameter"), (data, t.requires_grad, hooks)
        kind = type(t)
        if attributes or (kind is not Tensor and kind.__name__ != "Tensor"):
            written = named("torch", "Tensor") if kind.__name__ == "Tensor" else kind
            return named("torch._tensor", "_rebuild_from_type_v2"), (function, written, args, attributes)
        return function, args

    def plain_form(self, t: Any) -> tuple[Name, tuple[Any, ...]]:
        array = leaving(t, "saving")
        self.arrays.append(array)
        key, count, offset, array = (0, 0, 0, array) if self.blocks is None else self.blocks.span_of(array)
        strides = tuple([s // array.itemsize for s in array.strides]) if array.size else tuple(t.stride())
        tracked = t.requires_grad and not isinstance(t, Parameter)
        if t.dtype._name not in STORAGE_OF:
            raise TypeError(f"files have no tensors of {t.dtype}: convert it first, with .to(dtype)")
        storage = Stored(named("torch", STORAGE_OF[t.dtype._name]), key, count)
        return _rebuilder("tensor_v2"), (storage, offset, array.shape, strides, tracked, OrderedDict())


class Rebuilt:
    """A call nested in the arguments of another call."""

    def __init__(self, function: Name, args: tuple[Any, ...]) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


def dumped(obj: Any, protocol: int, legacy: bool = False) -> tuple[bytes, list[Any]]:
    """The pickle of an object, and its storages: (array, bytes) by key."""
    survey = Writer(io.BytesIO(), protocol, None)
    survey.dump(obj)
    file, blocks = io.BytesIO(), Blocks(survey.arrays)
    Writer(file, protocol, blocks, legacy).dump(obj)
    return file.getvalue(), blocks.contents

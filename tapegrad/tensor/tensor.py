"""The facade: PyTorch's Tensor around a slot of the tape. Its operations come from the table of public names: `methods`.

One file over 1,000 lines, since it is one class: what PyTorch's has besides operations, a few lines a member.
"""

from __future__ import annotations

import builtins
import copy
import math
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, overload

import numpy as np

from .. import dialect, dtypes, errors
from ..core import alias, gradient, record
from ..core import inplace as writes
from ..core.op import TABLE
from ..core.record import Box
from ..core.slot_hooks import retain
from ..core.state import TRACE, is_recording
from ..core.vjp import bottom, fixed_like
from ..core.warning import warn
from ..functions import (
    create,
    elementwise,
    index,
    operands,
    overrides,
    shape,
    shared_views,
)  # fmt: skip
from ..functions import memory_format as formats
from ..functions.arguments import given
from ..functions.grad_fn_names import set_grad_fn_name
from ..functions.inplace import check_writable
from ..functions.joining import unbind
from ..kernels import devices, shared
from ..kernels import shape as shape_kernels
from ..programs.tracing import changes, grad_accessed, leaving, leaving_array, leaving_number, same
from . import graph as node
from . import memory, overriding
from . import storage as storages
from .access import boxed, destination, only_element, overwrite, raw, real_element, refuse_device, refuse_recorded, set_leaf
from .filling import Filling
from .legacy import TensorType, legacy_alias, legacy_array, legacy_tensor, type_named
from .methods import TableMethods
from .pickling import PRIVATE, rebuild, rebuild_bfloat16, send_memory
from .printing import tensor_text
from .protocols import Protocols

if TYPE_CHECKING:
    import numpy.typing as npt

CPU = devices.CPU
T = TypeVar("T", bound="Tensor")


class Tensor(Filling, Protocols, TableMethods):
    """A multidimensional array that records the operations on it.

    `Tensor(data)` copies a sequence into the default dtype, `Tensor(2, 3)` has that size, `Tensor(t)` shares the memory of
    t; `tensor(data)` is the usual way to make one.
    """

    __module__ = "tapegrad"
    __array_priority__ = 1000
    _is_parameter = False

    def __new__(
        cls, *data: Any, size: Any = None, device: Any = None, requires_grad: bool = False, dtype: Any = None
    ) -> Self:
        to = create.check_device(device)
        if len(data) == 1 and isinstance(data[0], Tensor):
            t = legacy_alias(cls, data[0] if dtype is None else data[0].to(dtype))
        elif cls is record.Tensor and to is CPU and len(data) == 1 and isinstance(data[0], np.ndarray):
            t = create.copied(data[0], dtype or dtypes.get_default_dtype())
        else:
            array = legacy_array(data, dtype or dtypes.get_default_dtype(), size)
            t = boxed(cls, array if to is CPU else devices.put(array, to))
        if requires_grad:
            t.requires_grad_()
        return t  # type: ignore[no-any-return]

    def __init__(self, *data: Any, **_: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if overrides.overrides(cls):
            overriding.enable()
        if "__torch_dispatch__" in vars(cls):
            warn(errors.dispatch_unasked(cls.__name__))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a public function gives if a tensor of this subclass is among its arguments: its result, of the subclass."""
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        result = overrides.disabled(func, types, args, kwargs)
        return result if overriding.is_stored(func) else overriding.converted(result, cls)

    # ------------------------------------------------------------------------------------------------ what it is

    @property
    def shape(self) -> dtypes.Size:
        """Sizes of the dimensions."""
        return tuple.__new__(dtypes.Size, raw(self).shape)

    @overload
    def size(self, dim: None = None) -> dtypes.Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> dtypes.Size | int:
        """The shape, or one size of it."""
        if dim is None:
            return self.shape
        s = raw(self).shape
        return s[shape_kernels.dim_of(dim, len(s))]  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return raw(self).ndim  # type: ignore[no-any-return]

    def dim(self) -> int:
        """Number of dimensions."""
        return raw(self).ndim  # type: ignore[no-any-return]

    ndimension = dim

    def numel(self) -> int:
        """Number of elements."""
        return raw(self).size  # type: ignore[no-any-return]

    nelement = numel

    @property
    def dtype(self) -> dtypes.dtype:
        """Element type."""
        return dtypes.of(raw(self).dtype)

    @property
    def device(self) -> dtypes.device:
        """Where the elements are."""
        a = raw(self)
        return CPU if type(a) is np.ndarray else devices.of(bottom(self))

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return raw(self).itemsize  # type: ignore[no-any-return]

    def element_size(self) -> int:
        """Bytes of one element."""
        return raw(self).itemsize  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return raw(self).nbytes  # type: ignore[no-any-return]

    @property
    def strides(self) -> tuple[int, ...]:
        """NumPy's strides, in bytes."""
        return operands.form_of(raw(self)).strides  # type: ignore[no-any-return]

    # Kinds of tensors that do not exist here
    is_ipu = is_maia = is_meta = is_mkldnn = is_mps = is_mtia = is_nested = is_quantized = False
    is_sparse = is_sparse_csr = is_vulkan = is_xla = is_xpu = False

    @property
    def layout(self) -> dtypes.layout:
        return dtypes.strided

    def is_floating_point(self) -> bool:
        """Whether the dtype is a real floating-point one."""
        return dtypes.is_floating(raw(self).dtype)

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return raw(self).dtype.kind == "c"  # type: ignore[no-any-return]

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        """Whether elements lie in row-major order without gaps; with channels_last in its order (channels innermost)."""
        a, rank = (
            operands.form_of(raw(self)),
            formats.rank_of(memory_format),
        )
        if rank is not None:
            return a.ndim == rank and bool(np.moveaxis(a, 1, -1).flags.c_contiguous)
        return a.flags.c_contiguous  # type: ignore[no-any-return]

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Steps in memory, in elements."""
        steps = shape.steps_of(raw(self))
        return steps if dim is None else steps[dim]

    def storage_offset(self) -> int:
        """Elements between the beginning of the memory block and the first element."""
        return shape.offset_of(self)

    def is_nonzero(self) -> bool:
        """Whether the one element is not 0."""
        return builtins.bool(self)

    def is_same_size(self, other: Any) -> bool:
        """Whether the other tensor has this shape."""
        return raw(self).shape == raw(other).shape  # type: ignore[no-any-return]

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return raw(self).dtype.kind not in "bu"

    def is_set_to(self, tensor: Any) -> bool:
        """Whether the other tensor shows the same memory in the same way."""
        one, other = shared_views.layers(self), shared_views.layers(tensor)
        return (
            one[2] is other[2]
            and self.stride() == tensor.stride()
            and raw(self).shape == raw(tensor).shape
            and (self.storage_offset() == tensor.storage_offset())
        )

    def is_pinned(self, device: Any = None) -> bool:
        """Whether it lies in pinned memory: never."""
        return False

    def is_shared(self) -> bool:
        """Whether it lies in memory that processes share; see share_memory_."""
        return type(raw(self)) is np.ndarray and shared.block_of(raw(self)) is not None

    def share_memory_(self) -> Self:
        """Move into memory that processes share: those forked from now on, and those that `multiprocessing` sends it to."""
        if raw(self).size and not self.is_shared():
            memory.rebind(self, create.from_numpy(shared.copied(leaving(self, "share_memory_()"))))
            send_memory()
        return self

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """The dimensions from the largest step in memory to the smallest."""
        return tuple(shape.memory_order(operands.form_of(raw(self))))

    def dense_dim(self) -> int:
        """Number of dimensions that are dense: all."""
        return raw(self).ndim  # type: ignore[no-any-return]

    def sparse_dim(self) -> int:
        """Number of dimensions that are sparse: 0."""
        return 0

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
        """Itself, in another dtype if one is given: every tensor is dense."""
        return self if dtype is None else self.to(dtype)

    @property
    def is_cpu(self) -> builtins.bool:
        """Whether it is on the CPU, as an array of NumPy."""
        return self.device is CPU

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether it is on a CUDA device."""
        return self.device.type == "cuda"

    def data_ptr(self) -> int:
        """Address of the first element."""
        return devices.address(raw(self))

    const_data_ptr = data_ptr

    def storage(self) -> storages.TypedStorage:
        """The whole memory block that it looks at, in elements of its dtype."""
        return storages.block_of(self)

    def untyped_storage(self) -> storages.UntypedStorage:
        """The whole memory block that it looks at, in bytes."""
        return storages.block_of(self).untyped()

    def set_(self, source: Any = None, storage_offset: Any = 0, size: Any = None, stride: Any = None) -> Tensor:
        """Look at the memory of a tensor or a storage from now on; without one, at none. Returns the tensor."""
        if source is None:
            source = create.empty(0, dtype=self.dtype)
        if source.dtype is not self.dtype:
            raise RuntimeError(f"set_() needs memory of {self.dtype}, not of {source.dtype}")
        memory.rebind(self, storages.on_storage(source, storage_offset, size, stride))
        return self

    def as_subclass(self, cls: builtins.type[T]) -> T:
        """Another tensor of a subclass, on this memory and with this history."""
        if not (isinstance(cls, builtins.type) and issubclass(cls, Tensor)):
            raise TypeError(f"as_subclass(): {cls!r} is no subclass of Tensor")
        view: Any = self[...]
        view.__class__ = cls
        return view  # type: ignore[no-any-return]

    @staticmethod
    def _make_subclass(cls: builtins.type[T], data: Any, require_grad: builtins.bool = False) -> T:
        """A tensor of a subclass on the memory of data, without its history: what the subclass's `__new__` may give."""
        t = Box.__new__(cls)
        t._d, t._s, t._st = None, 0, None
        memory.rebind(t, data)
        if require_grad:
            overrides.disabled(Tensor.requires_grad_, (), (t,))
        return t

    def module_load(self, other: Any, assign: Any = False) -> Tensor:
        """What Module.load_state_dict puts in this tensor's place: itself with the other's values, or (assign) the other."""
        return other.detach() if assign else self.copy_(other).detach()

    def is_inference(self) -> bool:
        """Whether it can only be used for inference: no, tensors made under inference_mode are like any others."""
        return False

    def is_distributed(self) -> bool:
        """Whether it lies on several machines: no."""
        return False

    name = None

    @property
    def _version(self) -> int:
        """How often the memory was written in place: one count for a tensor, its views and what was detached from it."""
        return memory.version(self)

    @property
    def _base(self) -> Tensor | None:
        """The tensor of which it is a view, or None; None too if that is gone and no other view of it is left."""
        return memory.base_of(self)  # type: ignore[no-any-return]

    @property
    def _cdata(self) -> int:
        return id(self)  # as the address of PyTorch's object: programs ask whether two are the same tensor

    def _is_view(self) -> builtins.bool:
        """Whether it is a view of another tensor, its `_base`."""
        return self._base is not None

    @property
    def output_nr(self) -> int:
        """Which output of its grad_fn it is."""
        return node.output_number(self._s) if self.grad_fn is not None else 0

    @property
    def volatile(self) -> builtins.bool:
        warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
        return False

    # --------------------------------------------------------------------------------------------------- autograd

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        if record.traces and (trace := TRACE.get()) is not None:
            trace.guard_on_metadata(self)
        if self._st is not None:
            alias.sync_only(self)
            return self._s != 0 or (self._st is not None and self._st.level is not None and self._st.primal.requires_grad)
        return self._s != 0

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if alias.slot_of(self) > 0 and not value:
            raise errors.non_leaf_requires_grad()
        if value and not dtypes.is_inexact(raw(self).dtype):
            raise errors.only_float_grad_setter()
        set_leaf(self, value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise errors.not_deletable("requires_grad")

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Switch recording of operations on this leaf on or off; returns the tensor itself."""
        if type(requires_grad) is not bool:
            got = type(requires_grad).__name__
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {got}")
        if self._st is not None:
            alias.sync_only(self)
        if self._s > 0:
            if not requires_grad:
                raise errors.non_leaf_requires_grad()
            return self
        if requires_grad and not dtypes.is_inexact(self._d.dtype):
            raise errors.only_float_grad()
        set_leaf(self, requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it."""
        if self._st is not None:
            alias.sync_only(self)
            self._st.used(self)
        return self._s <= 0

    @property
    def grad_fn(self) -> node.Node | None:
        """The recorded operation that made it; None for a leaf."""
        if self._st is not None:
            alias.sync_only(self)
            self._st.used(self)
        return node.grad_fn_of(self) if self._s > 0 else None

    @property
    def _grad_fn(self) -> node.Node | None:
        """`grad_fn` under the name by which PyTorch's own code asks for it."""
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise errors.not_deletable("_grad_fn")

    @property
    def _backward_hooks(self) -> dict[int, Callable[[Any], Any]] | None:
        """The hooks of a leaf, or None."""
        return getattr(self, "_hooks", None)

    @_backward_hooks.setter
    def _backward_hooks(self, value: dict[int, Callable[[Any], Any]] | None) -> None:
        node.set_hooks(self, value)

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise errors.not_deletable("_backward_hooks")

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf, or of a tensor with retain_grad(); None before any backward."""
        grad_accessed(self, True)
        try:
            g = self._g
        except AttributeError:
            g = None
        if g is None and self._s > 0 and not self.retains_grad:
            warnings.warn(errors.NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return g  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                cls = type(value)
                name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"
                raise errors.grad_type(name)
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad: assign a clone() of it")
            if raw(value).shape != raw(self).shape:
                raise errors.grad_size(value.shape, self.shape)
            if value._d.dtype != self._d.dtype:
                raise errors.grad_dtype(str(value.dtype), str(self.dtype))
        grad_accessed(self, False)
        self._g = value

    @grad.deleter
    def grad(self) -> None:
        grad_accessed(self, False)
        self._g = None

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Add the gradient of this tensor to the `.grad` of the leaves it depends on.

        Args:
            gradient: cotangent of this tensor's shape; may be left out for one element.
            retain_graph: keep saved arrays for another pass (default: the value of create_graph).
            create_graph: record the computation of the gradients, so that they can be differentiated again.
            inputs: tensors to accumulate into instead of all leaves.

        Raises:
            RuntimeError: if nothing was recorded for it, if it has several elements and no gradient is given, or if saved
                arrays have been released by an earlier pass.
        """
        gradient_backward(self, gradient, retain_graph, create_graph, inputs)

    def retain_grad(self) -> None:
        """Keep the gradient of this computed tensor in `.grad` when a backward pass comes through it."""
        if not self.requires_grad:
            raise errors.retain_untracked()
        changes(self)
        if self._s > 0:
            retain(self)

    @property
    def retains_grad(self) -> bool:
        """Whether retain_grad() was called on this computed tensor."""
        return getattr(self, "_retains", 0) != 0

    def register_hook(self, hook: Callable[[Any], Any]) -> node.RemovableHandle:
        """Call hook(grad) when this tensor's gradient is computed; what it returns, if not None, replaces the gradient."""
        if self._st is not None:
            alias.sync_only(self)
        return node.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> node.RemovableHandle:
        """Call hook(leaf) after this leaf's gradient was accumulated."""
        return node.register_post_accumulate_grad_hook(self, hook)

    def detach(self) -> Tensor:
        """The same memory without history."""
        return alias.detached(self)  # type: ignore[no-any-return]

    def detach_(self) -> Tensor:
        """Forget the history of this tensor, which becomes a leaf that does not require grad; returns itself.

        Raises:
            RuntimeError: for a view.

        Example:
            >>> y = tg.ones(2, requires_grad=True) * 2
            >>> tg.detach_(y)
            tensor([2., 2.])
        """
        if type(self._st) is alias.Alias and self._st.hchain and self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        changes(self)
        memory.restart(self, 0)
        if alias.has_level(self):  # views of it, which look at its state, keep the derivative that they have
            state, bare = self._st, alias.detached(self)._st
            state.primal, state.payload = bare.primal, bare.payload
        return self

    @property
    def data(self) -> Tensor:
        """The values, untracked, in the same memory."""
        return memory.without_version(alias.detached(self))  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.requires_grad and not dtypes.is_inexact(raw(value).dtype):
            raise errors.data_dtype()
        memory.rebind(self, value)

    @data.deleter
    def data(self) -> None:
        raise errors.not_deletable("data")

    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A recorded copy."""
        return shape.clone(self, memory_format=memory_format)  # type: ignore[no-any-return]

    def contiguous(self, *, memory_format: Any = None) -> Tensor:
        """Itself if its memory is in row-major order, or that of the memory format, else a copy that is."""
        if formats.rank_of(memory_format) is not None:
            return formats.with_format(self, memory_format)  # type: ignore[no-any-return]
        if self.is_contiguous():
            return self
        return TABLE["contiguous"].call(self)  # type: ignore[no-any-return]

    # --------------------------------------------------------------------------------------------- to Python and NumPy

    def item(self) -> int | float | bool:
        """The value of a one-element tensor as a Python number."""
        if (number := leaving_number(self)) is not None:
            return number  # type: ignore[no-any-return]
        a = leaving(self, "item()")
        if a.size != 1:
            raise errors.not_scalar_item(a.size)
        return a.item()  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """Nested lists of Python numbers; a bare number for a 0-dim tensor."""
        return leaving(self, "tolist()").tolist()

    def numpy(self, *, force: bool = False) -> npt.NDArray[Any]:
        """An ndarray that shares memory, both ways; force=True detaches first.

        Raises:
            RuntimeError: for a tensor that requires grad, where operations are recorded (not inside `no_grad`).
        """
        left = leaving_array(self)
        if not force:
            refuse_recorded(self)
            refuse_device(self)
        if self.dtype is dtypes.bfloat16:
            raise errors.numpy_of_bfloat16()
        if not self.is_cpu:
            return self.detach().cpu().numpy()
        array = memory.export(alias.detached(self) if self.requires_grad else self, left is not None)
        if left is not None:
            left(array)
        return array  # type: ignore[no-any-return]

    def to_numpy(self) -> npt.NDArray[Any]:
        """`numpy()` under the name by which matplotlib and data frames ask for an array."""
        return self.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        a = leaving(self, "conversion to a NumPy array")
        refuse_recorded(self)
        refuse_device(self)
        if self.dtype is dtypes.bfloat16:
            raise errors.numpy_of_bfloat16()
        if dtype is not None and dtype != a.dtype:
            return a.astype(dtype)  # type: ignore[no-any-return]
        return a.copy() if copy else self.numpy(force=True)

    def __bool__(self) -> bool:
        a = leaving(self, "bool()")
        if a.size != 1:
            raise errors.ambiguous_bool(a.size)
        return bool(a.item())

    def __int__(self) -> int:
        return int(real_element(self, "int64_t"))

    def __float__(self) -> float:
        create.warn_of_lost_gradient(self)
        return float(real_element(self, "double"))

    def __complex__(self) -> complex:
        create.warn_of_lost_gradient(self)
        return complex(only_element(self))

    def __index__(self) -> int:
        a = leaving(self, "use as an index")
        if a.dtype.kind not in "iub" or a.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return operator.index(a.item())

    def __len__(self) -> int:
        a = raw(self)
        if not a.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(a)

    def __iter__(self) -> Iterator[Any]:
        if not raw(self).ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(unbind(self))

    def __reversed__(self) -> Tensor:
        return shape.flip(self, 0) if raw(self).ndim else self

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, Box | int | float | complex | np.generic):
            cls = builtins.type(value)
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {cls}.")
        return bool((self == value).any())

    def __repr__(self) -> str:
        return tensor_text(self)

    def __format__(self, spec: str) -> str:
        if not raw(self).ndim:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    __hash__ = object.__hash__

    if TYPE_CHECKING:

        def __getitem__(self, key: Any) -> Tensor: ...

    else:  # a call less
        __getitem__ = index.getitem

    def __setitem__(self, key: Any, value: Any) -> None:
        index.setitem(self, key, value)

    def __delitem__(self, key: Any) -> NoReturn:
        raise TypeError("Tensor does not support deleting items")

    def __dir__(self) -> list[str]:
        return sorted((set(dir(type(self))) | set(self.__dict__)) - set(Box.__slots__[1:]))

    # --------------------------------------------------------------------------------------------------- dtype, device

    def to(
        self, *args: Any, dtype: Any = None, device: Any = None, non_blocking: builtins.bool = False,
        copy: builtins.bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        """In another dtype or on another device (a dtype, a device, or a tensor to follow); itself if nothing changes."""
        if memory_format is not None:
            whole = self.to(*args, dtype=dtype, device=device, copy=copy)
            return formats.with_format(whole, memory_format)  # type: ignore[no-any-return]
        dtype, device = destination(args, dtype, device)
        target = raw(self).dtype if dtype is None else dtypes.to_numpy(dtype)
        moved = self
        if device is not None and (own := self.device) != device:
            moved = TABLE["transfer"].call(self, device, own)
        if target == self._d.dtype:
            return set_grad_fn_name("ToCopyBackward0", self.clone()) if copy and moved is self else moved
        return TABLE["cast"].call(moved, target)  # type: ignore[no-any-return]

    @overload
    def type(self, dtype: None = None) -> str: ...
    @overload
    def type(self, dtype: dtypes.dtype | str | builtins.type[Any] | TensorType) -> Tensor: ...
    def type(self, dtype: Any = None) -> Any:
        """The tensor's PyTorch type name, or the tensor in another dtype: one itself, or its type or the type's name."""
        if dtype is None:
            return f"{dialect.current.prefix}.{errors.dtype_name(raw(self).dtype)}Tensor"
        return self.to(dtype if isinstance(dtype, dtypes.dtype | np.dtype) else type_named(dtype).dtype)

    def type_as(self, other: Any) -> Tensor:
        """In other's dtype, on its device."""
        return self.to(other.dtype, device=other.device)

    def float(self, *, memory_format: Any = None) -> Tensor:
        """In float32."""
        return self.to(dtypes.float32)

    def double(self, *, memory_format: Any = None) -> Tensor:
        """In float64."""
        return self.to(dtypes.float64)

    def half(self, *, memory_format: Any = None) -> Tensor:
        """In float16."""
        return self.to(dtypes.float16)

    def bfloat16(self, *, memory_format: Any = None) -> Tensor:
        """In bfloat16, which needs ml_dtypes."""
        return self.to(dtypes.bfloat16)

    def cfloat(self, *, memory_format: Any = None) -> Tensor:
        """In complex64."""
        return self.to(dtypes.complex64)

    def cdouble(self, *, memory_format: Any = None) -> Tensor:
        """In complex128."""
        return self.to(dtypes.complex128)

    def int(self, *, memory_format: Any = None) -> Tensor:
        """In int32."""
        return self.to(dtypes.int32)

    def long(self, *, memory_format: Any = None) -> Tensor:
        """In int64."""
        return self.to(dtypes.int64)

    def short(self, *, memory_format: Any = None) -> Tensor:
        """In int16."""
        return self.to(dtypes.int16)

    def char(self, *, memory_format: Any = None) -> Tensor:
        """In int8."""
        return self.to(dtypes.int8)

    def byte(self, *, memory_format: Any = None) -> Tensor:
        """In uint8."""
        return self.to(dtypes.uint8)

    def bool(self, *, memory_format: Any = None) -> Tensor:
        """In bool: whether each element is not zero."""
        return self.to(dtypes.bool_)

    def chalf(self, *, memory_format: Any = None) -> NoReturn:
        """In complex32; raises, since NumPy has no such dtype."""
        raise TypeError("chalf() needs complex32, which NumPy does not have: use .cfloat()")

    def cpu(self) -> Tensor:
        """On the CPU; itself if it is there."""
        return self.to(CPU)

    def pin_memory(self, device: Any = None) -> NoReturn:
        """In pinned memory; raises, since there is no accelerator here."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def cuda(self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None) -> Tensor:
        """On a CUDA device; an error if JAX finds none."""
        return self.to("cuda" if device is None else device)

    # -------------------------------------------------------------------------------------------- new tensors like this

    def new(self, *data: Any, device: Any = None) -> Tensor:
        """Tensor(*data) in this dtype: of a sequence, of sizes, or on the memory of a tensor."""
        return legacy_tensor(data, self.dtype).to(create.home(self, device))  # type: ignore[no-any-return]

    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Tensor:
        """A new leaf of the data, in this dtype."""
        return create.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)  # type: ignore[no-any-return]

    def new_zeros(
        self, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: Any = False,
        layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """Zeros of the given sizes, in this dtype."""
        return create.zeros(  # type: ignore[no-any-return]
            *sizes, size=size, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad, layout=layout
        )

    def new_ones(
        self, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: Any = False,
        layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """Ones of the given sizes, in this dtype."""
        return create.ones(  # type: ignore[no-any-return]
            *sizes, size=size, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad, layout=layout
        )

    def new_empty(
        self, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: Any = False,
        layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """Uninitialised memory of the given sizes, in this dtype."""
        return create.empty(  # type: ignore[no-any-return]
            *sizes, size=size, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad, layout=layout
        )

    def new_empty_strided(
        self, size: Any, stride: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False
    ) -> Tensor:
        """Uninitialised memory with the given sizes and steps, in this dtype."""
        return create.empty_strided(size, stride, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)  # type: ignore[no-any-return]

    def new_full(
        self, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False,
        layout: Any = None,
    ) -> Tensor:  # fmt: skip
        """The value repeated to the given sizes, in this dtype."""
        return create.full(  # type: ignore[no-any-return]
            size, fill_value, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad, layout=layout
        )

    # ------------------------------------------------------------------------------------------------------- in place

    def resize_as_result_(self, result: Any) -> Tensor:
        """Take a result given by `out=`: its values, and its shape if that differs."""
        check_writable(self, "out=", is_recording() and (alias.slot_of(self) != 0 or alias.slot_of(result) != 0))
        if raw(self).shape != raw(result).shape:
            if self._d.size:
                warn(errors.out_resized(self._d.shape, result._d.shape))
            self.resize_(result._d.shape)
        if type(self._d) is np.ndarray and not record.functional(self._d):
            alias.alias_of(self)  # so that the result goes into the memory that it has
        return writes.assign(self, result, "out")  # type: ignore[no-any-return]

    def copy_(self, other: Any, non_blocking: Any = False) -> Tensor:
        """Overwrite with other's values, broadcast and converted to this dtype."""
        return self._overwrite(other, "copy")

    def _overwrite(self, other: Any, name: str) -> Tensor:
        source = other
        if not isinstance(other, Box):  # of a complex number the real part is kept, as of a tensor
            source = create.tensor(other) if type(other) is complex else operands.filling(other, raw(self).dtype)
        if record.functional(raw(self)) or record.functional(raw(source)):
            source = source.to(self.device)
        check_writable(self, name, is_recording() and (alias.slot_of(self) != 0 or alias.slot_of(source) != 0))
        if raw(source).dtype != raw(self).dtype:
            source = TABLE["cast"].call(source, self._d.dtype)
        if source._d.shape != self._d.shape:
            try:
                full = np.broadcast_shapes(self._d.shape, source._d.shape)
            except ValueError:
                raise errors.broadcast_mismatch("copy_", self._d.shape, source._d.shape) from None
            if full != self._d.shape:
                raise errors.inplace_shape("copy", self._d.shape, full)
            source = TABLE["expand"].call(source, full)
        return overwrite(self, source)  # type: ignore[no-any-return]

    def fill_(self, value: Any) -> Tensor:
        """Overwrite every element with a number or a 0-dim tensor."""
        if getattr(value, "ndim", 0):
            raise errors.fill_value(value.ndim)
        return self._overwrite(operands.filling(value, raw(self).dtype), "fill")

    def zero_(self) -> Tensor:
        """Overwrite every element with 0."""
        return self._overwrite(0, "zero")

    zeros_ = zero_

    def resize_(self, *sizes: Any, memory_format: Any = None) -> Tensor:
        """Take other sizes, in place: the memory's first elements stay, what is added is not initialised."""
        target = given("resize_", "size", sizes)
        if (n := math.prod(target)) >= 1 << 63:
            raise RuntimeError(f"numel: integer multiplication overflow. In resize_() to {list(target)}.")
        create.checked_size(target)
        if self.requires_grad:
            raise errors.resize_tracked()
        a = operands.form_of(raw(self))
        steps = formats.steps_in(target, memory_format)
        if a.shape == target and (memory_format is None or shape.steps_of(a) == steps):
            return self
        at, held, on_host = 0, a.size, type(self._d) is np.ndarray  # others have no steps
        if on_host:
            own, _, block = shared_views.layers(self)
            at, held = shape.offset_in(own, block, a.itemsize)
        if at + n > held:
            line = np.empty(at + n, a.dtype)
            if held:
                old = storages.block_of(self)._line if on_host else self.reshape(-1)
                line[:held] = leaving(old, "resize_() to more elements")
            memory.rebind(self, fixed_like(line, self))
        if on_host or memory_format is not None or not a.flags.c_contiguous:
            return memory.become(self, shape.as_strided(self, target, steps, at), "resize_")  # type: ignore[no-any-return]
        part = shape.view(self, raw(self).size)[:n]
        return memory.become(self, shape.view(part, target), "resize_")  # type: ignore[no-any-return]

    def resize(self, *sizes: Any) -> Tensor:
        """The elements in another shape. PyTorch prefers reshape."""
        target = create.checked_size(given("resize", "size", sizes))
        a = raw(self)
        if math.prod(target) != a.size:
            raise errors.resize_count(target, a.shape)
        return shape.reshape(self, target)  # type: ignore[no-any-return]

    def resize_as(self, tensor: Any) -> Tensor:
        """The elements in another tensor's shape."""
        return self.resize(*raw(tensor).shape)

    def _each(self, name: str, callable: Callable[..., Any], *others: Any) -> Tensor:
        """Overwrite each element x with callable(x, *elements of the others, broadcast to this shape)."""
        if self.requires_grad:
            raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
        if not self.is_cpu:
            raise TypeError(f"{name} is only implemented on CPU tensors")
        for other in others:
            if raw(other).dtype != raw(self).dtype:
                raise TypeError(f"{name}: expected {self.type()} for 'other' (got {other.type()})")
        check_writable(self, name, False)
        reader = f"{name}(), which calls a Python function on elements"
        a = leaving(self, reader)
        arrays = [a, *[np.broadcast_to(leaving(other, reader), a.shape) for other in others]]
        values = [callable(*elements) for elements in zip(*[v.reshape(-1).tolist() for v in arrays], strict=True)]
        return overwrite(self, record.wrap(np.array(values, a.dtype).reshape(a.shape)))  # type: ignore[no-any-return]

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Overwrite each element with callable(element): slow, and not recorded."""
        return self._each("apply_", callable)

    def map_(self, tensor: Any, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Overwrite each element with callable(element, tensor's element): slow, and not recorded."""
        return self._each("map_", callable, tensor)

    def map2_(self, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Overwrite each element with callable(element, x's element, y's element): slow, and not recorded."""
        return self._each("map2_", callable, x, y)

    def fill_diagonal_(self, fill_value: Any, wrap: Any = False) -> Tensor:
        """Overwrite the main diagonal with a number, in place; with wrap again after each full turn of a tall matrix."""
        a = raw(self)
        if a.ndim < 2:
            raise RuntimeError("dimensions must larger than 1")
        if a.ndim > 2 and len(set(a.shape)) > 1:
            raise RuntimeError("all dimensions of input must be of equal length")
        rows = np.arange(a.shape[0] if wrap and a.ndim == 2 else min(a.shape))
        place = rows % (a.shape[1] + 1) if wrap and a.ndim == 2 else rows
        rows, place = rows[place < a.shape[1]], place[place < a.shape[1]]
        self[(rows, *[place] * (a.ndim - 1))] = fill_value
        return self

    def resize_as_(self, other: Any, *, memory_format: Any = None) -> Tensor:
        """resize_ to other's shape, and with preserve_format to its order in memory.

        Args:
            other: the tensor whose shape is taken.
            memory_format: tg.preserve_format for other's order in memory.

        Returns:
            This tensor.

        Example:
            >>> x = tg.arange(6.0)
            >>> tg.resize_as_(x, tg.zeros(2, 2))
            tensor([[0., 1.],
                    [2., 3.]])
        """
        if str(memory_format) == "torch.preserve_format":
            memory_format = formats.format_of(raw(other))
        return self.resize_(raw(other).shape, memory_format=memory_format)

    def bernoulli(self, p: Any = None, *, generator: Any = None) -> Tensor:
        """1 with the probability given by each element, or with probability p, else 0."""
        return create.bernoulli(self, p, generator=generator)  # type: ignore[no-any-return]

    def multinomial(self, num_samples: Any, replacement: Any = False, *, generator: Any = None) -> Tensor:
        """Indices drawn with probabilities proportional to the rows."""
        return create.multinomial(self, num_samples, replacement, generator=generator)  # type: ignore[no-any-return]

    def where(self, condition: Any, other: Any) -> Tensor:
        """This tensor's elements where the condition holds, else the other's."""
        return elementwise.where(condition, self, other)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------- copying and pickling

    def __copy__(self) -> Self:
        if alias.slot_of(self) > 0:
            return alias.view(self, TABLE["alias"])  # type: ignore[no-any-return]
        shared = alias.detached(self)
        t = Box.__new__(type(self))
        t._d, t._s, t._st = shared._d, 0, shared._st
        t.requires_grad_(self._s < 0)
        t.__dict__.update({k: v for k, v in self.__dict__.items() if k not in PRIVATE})
        return t

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:  # type: ignore[valid-type]
        if alias.slot_of(self) > 0:
            raise errors.deepcopy_non_leaf()
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        array = devices.copied(raw(self))
        same(array, self)
        t = rebuild(type(self), array, self._s < 0, {})
        memo[id(self)] = t
        g = getattr(self, "_g", None)
        if g is not None and not isinstance(self, Parameter):  # whose copies have no gradient in PyTorch
            t._g = g.__deepcopy__(memo) if g._s <= 0 else g.detach().clone()
        t.__dict__.update(copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in PRIVATE}, memo))
        return t  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in PRIVATE}
        array = np.ascontiguousarray(leaving(self, "pickling")).reshape(self._d.shape)
        rest = self._s != 0, state, *([] if self.is_cpu else [self.device])
        if array.dtype.kind == "V":  # bfloat16
            return rebuild_bfloat16, (type(self), array.view(np.uint16), *rest)
        return rebuild, (type(self), array, *rest)

    # --------------------------------------------------------------------------------------------------- other libraries

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        """A capsule of the array for libraries that read DLPack; they share its memory."""
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        leaving(self, "export to another library")
        given = {"max_version": max_version, "dl_device": dl_device, "copy": copy}  # which NumPy 2.0 does not know
        if not self.is_cpu:
            return raw(self).__dlpack__(stream=stream, **given)
        return memory.export(self).__dlpack__(stream=stream, **{k: v for k, v in given.items() if v is not None})

    def __dlpack_device__(self) -> builtins.tuple[builtins.int, builtins.int]:
        """The device in DLPack's terms."""
        return raw(self).__dlpack_device__()  # type: ignore[no-any-return]

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """On a device; itself if it is there."""
        return self.to(device)

    # ------------------------------------------------------------------------------------------------- sizes as methods

    @property
    def T(self) -> Tensor:
        """Dimensions in reverse order."""
        return alias.view(self, TABLE["permute"], tuple(range(raw(self).ndim))[::-1])  # type: ignore[no-any-return]

    @property
    def mT(self) -> Tensor:
        """The last two dimensions exchanged."""
        if self.ndim == 1:
            raise errors.no_matrix_property("mT", 1)
        if not self.ndim:
            return self
        return shape.transpose(self, -2, -1)  # type: ignore[no-any-return]

    @property
    def H(self) -> Tensor:
        """Conjugate transpose of a matrix."""
        if self.ndim not in (0, 2):
            raise errors.not_a_matrix("H", self.ndim)
        return shape.adjoint(self)  # type: ignore[no-any-return]

    @property
    def mH(self) -> Tensor:
        """The last two dimensions exchanged, complex values conjugated."""
        if self.ndim == 1:
            raise errors.no_matrix_property("mH", 1)
        return shape.adjoint(self)  # type: ignore[no-any-return]

    @property
    def real(self) -> Tensor:
        """Real part, a view; assigning to it writes into the tensor."""
        from ..functions import complex_and_bits  # rare

        return complex_and_bits.real(self)  # type: ignore[no-any-return]

    @real.setter
    def real(self, value: Any) -> None:
        put_part(self.real, value)

    @property
    def imag(self) -> Tensor:
        """Imaginary part, a view; assigning to it writes into the tensor."""
        from ..functions import complex_and_bits

        return complex_and_bits.imag(self)  # type: ignore[no-any-return]

    @imag.setter
    def imag(self, value: Any) -> None:
        put_part(self.imag, value)


def put_part(part: Tensor, value: Any) -> None:
    """Write a value assigned to the real or imaginary part."""
    if not isinstance(value, Box | builtins.int | builtins.float | complex):
        raise TypeError(f"can't assign a {type(value).__name__} to a {part.type()}")
    part.copy_(value)


def is_inference(input: Tensor) -> bool:
    """Whether a tensor can only be used for inference: no, those made under inference_mode are like any others.

    Example:
        >>> with tg.inference_mode():
        ...     x = tg.ones(2)
        >>> tg.is_inference(x)
        False
    """
    return False


gradient_backward = gradient.backward


class Parameter(Tensor):
    """A tensor that is a module's parameter: it requires grad unless told otherwise.

    Args:
        data: the tensor whose memory it shares.
        requires_grad: whether it is a leaf that collects a gradient.
    """

    __module__ = "tapegrad.nn"
    __torch_function__ = staticmethod(overrides.disabled)
    _is_parameter = True

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = create.empty(0)
        if not isinstance(data, Tensor):
            data = create.tensor(data)
        t: Any = data.data
        t.__class__ = cls
        if requires_grad:
            t.requires_grad_()
        return t  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return dialect.current.parameter + tensor_text(self)

"""Parameters and buffers, also those whose shape is not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.record import Box
from ..functions import create
from ..tensor.access import raw
from ..tensor.tensor import Parameter as Parameter
from ..tensor.tensor import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class BufferType(type):
    """A Buffer is a Tensor with a mark."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=BufferType):
    """A tensor that becomes a module's buffer where it is assigned to an attribute of it.

    Args:
        data: the tensor whose memory it shares.
        persistent: whether it is part of the module's state_dict.
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        data = create.empty(0) if data is None else data
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent, t._is_buffer = persistent, True
        return t


class Uninitialized:
    """Base of parameters and buffers without a shape: they have a dtype and can be materialized, no more.

    Attributes:
        cls_to_become: the class once it has a shape.
    """

    cls_to_become: type[Any]
    _like: Any  # an empty tensor of its dtype

    @property
    def _d(self) -> Any:
        raise ValueError(
            f"Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    @property
    def shape(self) -> Any:
        """Raises RuntimeError: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> Any:
        """The dtype that it will have."""
        return self._like.dtype

    @property
    def device(self) -> Any:
        """The device that it will be on."""
        return self._like.device

    @property
    def requires_grad(self) -> bool:
        """Whether it will require grad."""
        return self._wanted

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._wanted = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Whether it will require grad; returns itself."""
        self._wanted = requires_grad
        return self

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give it a shape: from now on it is an ordinary parameter or buffer, of arbitrary values."""
        wanted = self._wanted
        value = create.empty(shape, device=self.device if device is None else device, dtype=dtype or self.dtype)
        del self._like, self._wanted
        self.__class__ = self.cls_to_become
        self._d, self._st = raw(value), value._st
        self.requires_grad_(wanted)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        kind, args = self.__reduce_ex__(4)
        return memo.setdefault(id(self), kind(*args))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._wanted, None, self.dtype)


def unshaped(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    t = Box.__new__(cls)
    t._s, t._st = 0, None
    t._like = create.empty(0, device=device, dtype=dtype)
    t._wanted = requires_grad
    return t


class UninitializedParameter(Uninitialized, Parameter):
    """A parameter whose shape is not known yet.

    Args:
        requires_grad: whether it will require grad.
        device, dtype: those it will have.
    """

    __module__ = "tapegrad.nn.parameter"
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return unshaped(cls, requires_grad, device, dtype)


class UninitializedBuffer(Uninitialized, Tensor):
    """A buffer whose shape is not known yet; arguments as of UninitializedParameter, and whether it is saved."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> Any:
        t = unshaped(cls, requires_grad, device, dtype)
        t.persistent, t._is_buffer = persistent, True
        return t


def way_back(t: Any) -> Callable[[], None]:
    """What makes a parameter or buffer again what it is now: one without a shape."""
    kind, like, wanted = type(t), t._like, t._wanted

    def back() -> None:
        t.requires_grad_(False)
        t.__class__ = kind
        t._like, t._wanted = like, wanted

    return back


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, Uninitialized)


def __dir__() -> list[str]:
    return sorted(__all__)

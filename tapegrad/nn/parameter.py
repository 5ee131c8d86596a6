"""Parameters and buffers, including uninitialised ones, whose shape is not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.record import Box
from ..functions import create
from ..functions.overrides import disabled
from ..tensor.access import raw
from ..tensor.tensor import Parameter as Parameter
from ..tensor.tensor import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class BufferType(type):
    """isinstance(t, Buffer) holds for tensors marked as buffers."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=BufferType):
    """A tensor that becomes a buffer when it is assigned to an attribute of a module.

    Args:
        data: the tensor whose memory it shares.
        persistent: whether it is part of the module's state_dict.

    Example:
        >>> module = tg.nn.Module()
        >>> module.mean = tg.nn.Buffer(tg.zeros(2))
        >>> module.state_dict()["mean"]
        tensor([0., 0.])
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        data = create.empty(0) if data is None else data
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent, t._is_buffer = persistent, True
        return t


class Uninitialized:
    """Base of uninitialised parameters and buffers: they have a dtype and a device, and can only be materialised.

    Attributes:
        cls_to_become: the class after materialize().
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
        """Raises RuntimeError: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> Any:
        """The dtype of the materialised tensor."""
        return self._like.dtype

    @property
    def device(self) -> Any:
        """The device of the materialised tensor."""
        return self._like.device

    @property
    def requires_grad(self) -> bool:
        """Whether the materialised tensor requires grad."""
        return self._wanted

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._wanted = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether the materialised tensor requires grad; returns self."""
        self._wanted = requires_grad
        return self

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Set the shape: it becomes an ordinary parameter or buffer with uninitialised values."""
        wanted = self._wanted
        value = create.empty(shape, device=self.device if device is None else device, dtype=dtype or self.dtype)
        del self._like, self._wanted
        self.__class__ = self.cls_to_become
        self._d, self._st = raw(value), value._st
        self.requires_grad_(wanted)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        cls, args = self.__reduce_ex__(4)
        return memo.setdefault(id(self), cls(*args))

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
        requires_grad: whether the materialised parameter requires grad.
        device, dtype: its device and dtype.
    """

    __module__ = "tapegrad.nn.parameter"
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return unshaped(cls, requires_grad, device, dtype)


class UninitializedBuffer(Uninitialized, Tensor):
    """A buffer whose shape is not known yet; arguments as for UninitializedParameter, and `persistent`."""

    cls_to_become = Tensor
    __torch_function__ = staticmethod(disabled)

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> Any:
        t = unshaped(cls, requires_grad, device, dtype)
        t.persistent, t._is_buffer = persistent, True
        return t


def way_back(t: Any) -> Callable[[], None]:
    """A function that makes a materialised parameter or buffer uninitialised again."""
    cls, like, wanted = type(t), t._like, t._wanted

    def back() -> None:
        t.requires_grad_(False)
        t.__class__ = cls
        t._like, t._wanted = like, wanted

    return back


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet, as those of lazy layers before their first call.

    Args:
        param: a parameter, a buffer or another tensor.

    Example:
        >>> layer = tg.nn.LazyLinear(2)
        >>> tg.nn.parameter.is_lazy(layer.weight)
        True
    """
    return isinstance(param, Uninitialized)


def __dir__() -> list[str]:
    return sorted(__all__)

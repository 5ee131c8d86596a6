"""torch.autograd.Variable, the wrapper of tensors before PyTorch 0.4."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..core.state import TASK
from ..tensor.tensor import Tensor

__all__ = ["Variable"]


class Engine:
    """What runs backward passes, as far as programs ask it."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Call a function once the backward pass that runs now, and the hooks of its leaves, are done.

        Raises:
            RuntimeError: outside hooks and derivatives that a pass calls.
        """
        task = TASK.get()
        if task is None or task.callbacks is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        task.callbacks.append(callback)


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Tensor)


class Variable(metaclass=_Meta):
    """A tensor on the memory of another, without its history: `Variable(t)` is `t.detach()`. Every tensor is a Variable.

    Args:
        data: the tensor; None for an empty one.
        requires_grad: whether it requires grad.
        volatile: no effect except a warning.

    Raises:
        TypeError: if data is not a tensor.
    """

    _execution_engine = Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile:
            text = "volatile was removed and now has no effect. Use `with torch.no_grad():` instead."
            warnings.warn(text, UserWarning, stacklevel=2)
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)

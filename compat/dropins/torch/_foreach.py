"""torch._foreach_*: an operation on each tensor of a list, as a loop."""

from collections.abc import Callable
from typing import Any

import torch

_OTHER = {"norm": torch.linalg.vector_norm, "max": torch.amax}
_SCALED = ("addcdiv", "addcmul")  # their last argument, one number or one for each tensor, is called value


def function(name: str) -> Callable[..., Any] | None:
    """The function of a name such as "add_", which works on a list of tensors in place; None if there is none."""
    operation = _OTHER.get(name) or getattr(torch.Tensor, name, None)
    if operation is None:
        return None

    def foreach(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        lists = [v for v in (tensors, *args, *kwargs.values()) if isinstance(v, list | tuple)]
        results = []
        for i in range(len(lists[0])):
            ours, named = [_part(v, i) for v in args], {k: _part(v, i) for k, v in kwargs.items()}
            results.append(_call(name, operation, _part(tensors, i), ours, named))
        return None if name.endswith("_") else tuple(results)

    return foreach


def _part(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, list | tuple) else value


def _call(name: str, operation: Callable[..., Any], first: Any, args: list, kwargs: dict) -> Any:
    if name.rstrip("_") in _SCALED:
        value = kwargs.pop("scalars", None) or (args.pop() if len(args) > 2 else kwargs.pop("value", 1))
        return operation(first, *args, value=float(value), **kwargs)
    if not isinstance(first, torch.Tensor):  # _foreach_pow of one number
        return getattr(torch, name)(first, *args, **kwargs)
    return operation(first, *args, **kwargs)

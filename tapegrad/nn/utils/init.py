"""Construction of modules without initialisation."""

from __future__ import annotations

import inspect
from typing import Any

from ...functions import create
from ..module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Create a module with uninitialised parameters and buffers, without drawing random numbers.

    Args:
        module_cls: the class of the module.
        args, kwargs: arguments of the class; `device` may be among them.

    Returns:
        The module.

    Raises:
        RuntimeError: if the class is not a Module or has no argument `device`.

    Example:
        >>> layer = tg.nn.utils.skip_init(tg.nn.Linear, 2, 3)
        >>> layer.weight.shape
        torch.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with create.fork_rng():
        module: Any = module_cls(*args, **kwargs)
    return module.to_empty(device=kwargs.get("device", "cpu"))

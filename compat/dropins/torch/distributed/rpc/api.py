"""torch.distributed.rpc.api: a decorator that programs use as they are imported."""

from collections.abc import Callable
from functools import wraps


def _require_initialized(func: Callable) -> Callable:
    """A function that raises: there is no agent for calls to other processes."""

    @wraps(func)
    def wrapper(*args: object, **kwargs: object) -> object:
        raise RuntimeError(
            "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first; tapegrad has no such processes"
        )

    return wrapper

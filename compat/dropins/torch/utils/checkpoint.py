"""torch.utils.checkpoint, with PyTorch's warning where use_reentrant is left out."""

import functools as _functools
import warnings as _warnings

import tapegrad.utils.checkpoint as _own


def _warned(function: object) -> object:
    @_functools.wraps(function)
    def run(*args: object, use_reentrant: bool | None = None, **kwargs: object) -> object:
        if use_reentrant is None:
            _warnings.warn(
                f"torch.utils.checkpoint.{function.__name__}: the use_reentrant parameter should be passed explicitly. It "
                "has no effect here: both values behave as use_reentrant=False. PyTorch warns, too, and one day will raise.",
                UserWarning,
                stacklevel=2,
            )
        return function(*args, use_reentrant=use_reentrant, **kwargs)

    return run


checkpoint, checkpoint_sequential = _warned(_own.checkpoint), _warned(_own.checkpoint_sequential)

"""torch.nn.utils.stateless: modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.warning import warn
from ...func.stateless import check_names, swapped, untied
from ...func.stateless import functional_call as call


def functional_call(
    module: Any, parameters_and_buffers: Any, args: Any = None, kwargs: Any = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """Deprecated name of func.functional_call."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version "
        "of PyTorch. Please use `func.functional_call` instead.",
        FutureWarning,
    )
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


@contextmanager
def _reparametrize_module(
    module: Any, parameters_and_buffers: dict[str, Any], *, tie_weights: bool = False, strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:  # fmt: skip
    """A block in which a module has these parameters and buffers in place of its own."""
    named = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    values = untied(parameters_and_buffers, named) if tie_weights else dict(parameters_and_buffers)
    if strict:
        check_names(values, named, module)
    with swapped(module, values, parameters_and_buffers):
        yield

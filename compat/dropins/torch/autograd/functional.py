"""torch.autograd.functional, with the private helpers that programs import for Jacobians of outputs they have already."""

from typing import Any

import tapegrad as tg
from tapegrad.autograd.functional import as_tensors as _as_tensors


def _as_tuple(inp: Any, arg_name: str = "", fn_name: str = "") -> tuple[bool, tuple[Any, ...]]:
    return _as_tensors(inp, arg_name, fn_name)


def _grad_postprocess(inputs: Any, create_graph: bool) -> tuple[Any, ...]:
    """A nested tuple of tensors, detached unless they are to be differentiated."""
    if create_graph:
        return tuple(inputs)
    return tuple([t.detach() if isinstance(t, tg.Tensor) else _grad_postprocess(t, False) for t in inputs])


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """Undo _as_tuple: for outputs, or for outputs and inputs."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    if not inner:
        res = tuple([row[0] for row in res])
    return res if outer else res[0]


def _construct_standard_basis_for(tensors: tuple[Any, ...], tensor_numels: tuple[int, ...]) -> tuple[Any, ...]:
    """The rows of the unit matrix over all elements of all tensors, cut by tensor: (total, numel) each, in its dtype."""
    columns = tg.eye(sum(tensor_numels)).split(tensor_numels, 1)
    return tuple([part.to(t.dtype) for part, t in zip(columns, tensors, strict=True)])

"""Shapes and dtypes of the results of a graph's nodes, found by running it."""

from typing import Any, NamedTuple

import torch
from torch.fx.interpreter import Interpreter
from torch.fx.node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What a pass notes of a tensor."""

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


class ShapeProp(Interpreter):
    """Runs a graph and notes in `node.meta["tensor_meta"]` what each node's tensors are."""

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)

        def of(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(), None, False, {})
            return value

        if isinstance(result, (torch.Tensor, tuple, list, dict)):
            n.meta["tensor_meta"] = map_aggregate(result, of)
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        return super().run(*args)

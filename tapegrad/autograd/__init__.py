"""Backward passes, custom functions, hooks and forward mode; the names of torch.autograd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ..later import mark as _mark
from ..modes import detect_anomaly as detect_anomaly
from ..modes import enable_grad as enable_grad
from ..modes import inference_mode as inference_mode
from ..modes import no_grad as no_grad
from ..modes import set_detect_anomaly as set_detect_anomaly
from ..modes import set_grad_enabled as set_grad_enabled
from . import forward_ad as forward_ad
from . import function as function
from . import functional as functional
from . import graph as graph
from .function import Function as Function
from .gradcheck import GradcheckError as GradcheckError
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
from .variable import Variable as Variable

if TYPE_CHECKING:
    from ..tensor import Tensor

    K = TypeVar("K")
    Edge = Tensor | graph.GradientEdge
    Edges = Edge | Sequence[Edge] | Iterator[Edge] | ValuesView[Edge]
    Cotangents = Tensor | Sequence[Tensor | None] | Iterator[Tensor | None] | None

    def backward(
        tensors: Edges, grad_tensors: Cotangents = None, retain_graph: bool | None = None, create_graph: bool = False,
        inputs: Edges | None = None,
    ) -> None: ...  # fmt: skip
    @overload
    def grad(
        outputs: Edges, inputs: Edges, grad_outputs: Cotangents = None, retain_graph: bool | None = None,
        create_graph: bool = False, only_inputs: bool = True, allow_unused: Literal[False] | None = None,
        is_grads_batched: bool = False, materialize_grads: bool = False,
    ) -> tuple[Tensor, ...]: ...  # fmt: skip
    @overload
    def grad(
        outputs: Edges, inputs: Edges, grad_outputs: Cotangents = None, retain_graph: bool | None = None,
        create_graph: bool = False, only_inputs: bool = True, *, allow_unused: bool, is_grads_batched: bool = False,
        materialize_grads: Literal[True],
    ) -> tuple[Tensor, ...]: ...  # fmt: skip
    @overload
    def grad(
        outputs: Edges, inputs: Edges, grad_outputs: Cotangents = None, retain_graph: bool | None = None,
        create_graph: bool = False, only_inputs: bool = True, *, allow_unused: bool, is_grads_batched: bool = False,
        materialize_grads: bool = False,
    ) -> tuple[Tensor | None, ...]: ...  # fmt: skip
    @overload
    def grad(
        outputs: Edges, inputs: dict[K, Tensor], grad_outputs: Cotangents = None, retain_graph: bool | None = None,
        create_graph: bool = False, only_inputs: bool = True, allow_unused: Literal[False] | None = None,
        is_grads_batched: bool = False, materialize_grads: bool = False,
    ) -> dict[K, Tensor]: ...  # fmt: skip
    @overload
    def grad(
        outputs: Edges, inputs: dict[K, Tensor], grad_outputs: Cotangents = None, retain_graph: bool | None = None,
        create_graph: bool = False, only_inputs: bool = True, *, allow_unused: bool, is_grads_batched: bool = False,
        materialize_grads: bool = False,
    ) -> dict[K, Tensor | None]: ...  # fmt: skip
    def grad(*args: Any, **kwargs: Any) -> Any: ...
else:
    from ..core.gradient import backward, grad

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad", "set_detect_anomaly",
    "set_grad_enabled",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()

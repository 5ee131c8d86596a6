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

    backward.__doc__ = """Add the gradient of the tensors' sum, weighted by grad_tensors, to the `.grad` of leaves.

    Inside a function that is being differentiated by `func.grad` or `func.vjp` the computation is recorded.

    Args:
        tensors: a tensor or a sequence of them; gradient edges stand for tensors, here and in the inputs.
        grad_tensors: cotangents of the tensors' shapes; None for tensors of one element.
        retain_graph: keep saved arrays for another pass (default: the value of create_graph).
        create_graph: record the computation of the gradients, so that they can be differentiated again.
        inputs: a tensor or a sequence of them, leaves or not, to accumulate into instead of all leaves.

    Raises:
        RuntimeError: for a tensor that was not recorded, a cotangent of another shape, or a graph whose saved arrays have
            been released.

    Example:
        >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> tg.autograd.backward([x * x, 3 * x], [tg.ones(2), tg.ones(2)])
        >>> x.grad
        tensor([5., 7.])
    """
    grad.__doc__ = """Gradient of the outputs' sum, weighted by grad_outputs, by the inputs; `.grad` is left alone.

    Args:
        outputs: a tensor or a sequence of them; gradient edges stand for tensors, here and in the inputs.
        inputs: a tensor, a sequence of them, or a dict of them; leaves or not.
        grad_outputs: cotangents of the outputs' shapes; None for outputs of one element.
        retain_graph: keep saved arrays for another pass (default: the value of create_graph).
        create_graph: record the computation of the gradient, so that it can be differentiated again.
        only_inputs: of no effect, False gives a warning: `.grad` of other leaves is left alone.
        allow_unused: give None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: grad_outputs carry a leading batch dimension; so does the result.
        materialize_grads: zeros instead of None for unused inputs.

    Returns:
        A tuple of tensors in the order of the inputs, or a dict for a dict.

    Raises:
        RuntimeError: for an output that was not recorded, a cotangent of another shape, an unused input, or a graph whose
            saved arrays have been released.

    Example:
        >>> x = tg.tensor(2.0, requires_grad=True)
        >>> (g,) = tg.autograd.grad(x**4, x, create_graph=True)
        >>> tg.autograd.grad(g, x)  # the second derivative
        (tensor(48.),)
    """

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad", "set_detect_anomaly",
    "set_grad_enabled",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()

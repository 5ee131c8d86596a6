"""What OneFlow's tensors have besides. Global ones, spread over devices and processes, are not there: a tensor says so."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oneflow._functions import addmm, broadcast_like, masked_select, nonzero
from tapegrad import Tensor, from_numpy, imag, no_grad, ones_like, real
from tapegrad.nn import functional, init
from tapegrad.overrides import _disabled_torch_function_impl as disabled


def refuse(what: str) -> NotImplementedError:
    return NotImplementedError(f"{what}: tapegrad has no global tensors, every tensor is local, in one process")


class placement:
    """Where a global tensor lies: raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise refuse("oneflow.placement")


def _to_local(self: Tensor) -> Tensor:
    raise refuse("Tensor.to_local()")


def _to_global(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    raise refuse("Tensor.to_global()")


def _backward(
    self: Tensor, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Tensor.backward, also of one complex number: it starts with 1 as for a real one."""
    if gradient is None and self.is_complex() and self.numel() == 1:
        gradient = ones_like(self)
    _of_real(self, gradient, retain_graph, create_graph, inputs)


_of_real = Tensor.backward


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy; of a computed tensor that of its values, without its history."""
    if self.is_leaf:
        return _of_leaf(self, memo)
    if id(self) not in memo:
        memo[id(self)] = _of_leaf(self.detach(), {})
    return memo[id(self)]  # type: ignore[no-any-return]


_of_leaf = Tensor.__deepcopy__


def _copy(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """copy_, also of an array, and into a leaf that requires grad, which then has other values."""
    if isinstance(other, np.ndarray):
        other = from_numpy(other)
    if self.is_leaf and self.requires_grad:
        with no_grad():
            return _into(self, other, non_blocking)
    return _into(self, other, non_blocking)


_into = Tensor.copy_


def is_data_valid(self: Any) -> bool:
    """Whether what a Function saved is still there."""
    try:
        self.saved_tensors
    except RuntimeError:
        return False
    return True


class Part(Tensor):
    """The real or imaginary part, which OneFlow's programs call: ``x.real()``."""

    __module__ = "oneflow"
    __torch_function__ = staticmethod(disabled)

    def __call__(self) -> Tensor:
        return self


Part.__name__ = Part.__qualname__ = "Tensor"


def of_arrays(load: Callable[..., Any]) -> Callable[..., Any]:
    """load_state_dict, also of NumPy's arrays."""

    @functools.wraps(load)
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state_dict, Mapping):
            state_dict = {k: from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in state_dict.items()}
        return load(self, state_dict, *args, **kwargs)

    return load_state_dict


def of_proxies(to: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """``to``, which in a graph also gives what stands behind a proxy, for its class; here there are no proxies."""

    @functools.wraps(to)
    def own(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self if args == (kind,) else to(self, *args, **kwargs)

    return own


FUNCTIONS = ("gelu", "mish", "selu", "silu", "softplus", "softsign")  # in OneFlow methods, too
INITIALISERS = ("kaiming_normal_", "kaiming_uniform_", "orthogonal_", "trunc_normal_", "xavier_normal_", "xavier_uniform_")

# Of Tensor, while the drop-in is there.
METHODS = {
    **{name: getattr(functional, name) for name in FUNCTIONS},
    **{name: getattr(init, name) for name in INITIALISERS},
    "__deepcopy__": _deepcopy,
    "addmm": addmm,
    "backward": _backward,
    "broadcast_like": broadcast_like,
    "cast": Tensor.to,
    "contiguous_": lambda self: self.set_(self.contiguous()) if not self.is_contiguous() else self,
    "copy_": _copy,
    "masked_select": masked_select,
    "nonzero": nonzero,
    "imag": property(lambda self: imag(self).as_subclass(Part), doc="The imaginary part, a view."),
    "real": property(lambda self: real(self).as_subclass(Part), doc="The real part, a view."),
    "is_global": property(lambda self: False, doc="Whether the tensor is spread over devices: False."),
    "is_local": property(lambda self: True, doc="Whether the tensor is of this process alone: True."),
    "is_lazy": property(lambda self: False, doc="Whether the tensor is of a graph that is being built: False."),
    "is_eager": property(lambda self: True, doc="Whether the tensor has its values: True."),
    "to_global": _to_global,
    "local_to_global": _to_global,
    "global_to_global": _to_global,
    "to_local": _to_local,
    "to_consistent": _to_global,
}

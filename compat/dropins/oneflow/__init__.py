"""OneFlow's names on tapegrad. Tensors print as OneFlow's do, with ``dtype=oneflow.float32``; errors are in its words."""

import types as _types

import tapegrad as _tapegrad
from tapegrad import Tensor, compat
from tapegrad import dialect as _dialect

compat.mirror(__name__, "tapegrad")
FUNCTIONAL = ("adaptive_avg_pool?d", "gelu", "mish", "pad", "selu", "silu", "softplus", "softshrink", "softsign")
compat.mirror(__name__, "tapegrad.nn.functional", FUNCTIONAL)

from . import _functions, _nodes, sbp  # noqa: F401
from ._functions import (  # noqa: F401
    Generator,
    addmm,
    batch_gather,
    bernoulli,
    broadcast_like,
    cast,
    empty_strided,
    gather_nd,
    in_top_k,
    masked_select,
    nms,
    nonzero,
    roc_auc_score,
    scatter_nd,
    slice_update,
    square_relu,
    tensor_scatter_nd_update,
)
from ._tensors import METHODS, is_data_valid, of_arrays, of_proxies, placement  # noqa: F401
from .nn.functional import quick_gelu  # noqa: F401

__version__ = "0.9.0+tapegrad"

_before = _dialect.speak(
    _dialect.Dialect(
        prefix="oneflow",
        every_dtype=True,
        index=0,
        parameter="",
        leaves_show_node=True,
        numpy_detaches=True,
        node=_nodes.name,
        node_form="<{} at {}>",
        leaf=("accumulate_grad", "accumulate_grad"),
        texts={
            "second_backward": "Maybe you try to backward through the node a second time. Specify retain_graph=True when "
            "calling .backward() or autograd.grad() the first time.",
            "not_scalar": "Check failed: IsScalarTensor(*outputs.at(i)) Grad can be implicitly created only for scalar "
            "outputs",
            "gradient_count": "RuntimeError: function {function} returned an incorrect number of gradients "
            "(expected {expected}, got {got})",
            "cotangent_shape": "out_grad's shape must be same as output's ({output} vs {gradient})",
        },
    )
)
compat.at_removal("oneflow", lambda: _dialect.speak(_before))


def _change(cls: type, name: str, value: object) -> None:
    """Set an attribute of a class of tapegrad's as long as the drop-in is there."""
    before = vars(cls).get(name)
    setattr(cls, name, value)
    compat.at_removal("oneflow", lambda: setattr(cls, name, before) if before else delattr(cls, name))


for _name, _method in METHODS.items():
    _change(Tensor, _name, _method)
_change(_tapegrad.autograd.context.FunctionCtx, "_is_data_valid", is_data_valid)
_change(_tapegrad.nn.Module, "load_state_dict", of_arrays(_tapegrad.nn.Module.load_state_dict))
_change(_tapegrad.nn.Module, "to", of_proxies(_tapegrad.nn.Module.to, _tapegrad.nn.Module))

# OneFlow sets gradients to zeros where PyTorch drops them.
for _class in (_tapegrad.optim.Optimizer, _tapegrad.nn.Module):
    _defaults = _class.zero_grad.__defaults__
    _class.zero_grad.__defaults__ = (False,)
    compat.at_removal("oneflow", lambda f=_class.zero_grad, d=_defaults: setattr(f, "__defaults__", d))

# What OneFlow has as functions and PyTorch as methods.
for _name in (
    "contiguous", "div_", "erfinv_", "expand", "index_add_", "masked_fill_", "new_empty", "new_full", "new_ones",
    "new_zeros", "repeat", "view",
):  # fmt: skip
    globals()[_name] = getattr(Tensor, _name)
globals()["slice"] = _functions.slice_
char = _tapegrad.int8


def convert_oneflow_dtype_to_numpy_dtype(oneflow_dtype: object) -> object:
    """The NumPy type of a dtype."""
    return oneflow_dtype.numpy.type  # type: ignore[attr-defined]


# OneFlow raises its own class where PyTorch raises RuntimeError; programs name it in `except`.
_oneflow_internal = _types.SimpleNamespace(exception=_types.SimpleNamespace(Exception=RuntimeError))

"""The functions that OneFlow's layers call."""

from collections.abc import Sequence

from oneflow._functions import (  # noqa: F401
    batch_gather,
    bernoulli,
    bias_add,
    broadcast_like,
    cast,
    combined_margin_loss,
    ctc_greedy_decoder,
    dropout,
    fused_matmul_bias,
    fused_mlp,
    gather_nd,
    gelu_with_approximate,
    in_top_k,
    masked_select,
    matmul,
    nms,
    nonzero,
    one_hot,
    reduce_sum_like,
    reshape_like,
    rms_layer_norm,
    roc_auc_score,
    scatter_nd,
    square_relu,
    trunc_divide,
)  # fmt: skip
from oneflow._functions import (
    slice_update as _slice_update,
)
from oneflow.nn.functional import quick_gelu  # noqa: F401
from tapegrad import Tensor, compat

compat.mirror(__name__, "tapegrad")
compat.mirror(__name__, "tapegrad.nn.functional")


def slice_update(
    ref: Tensor, value: Tensor, start: Sequence[int], stop: Sequence[int], step: Sequence[int], inplace: bool = False
) -> Tensor:
    """ref with value in ``ref[start:stop:step, ...]``."""
    return _slice_update(ref if inplace else ref.clone(), value, list(zip(start, stop, step, strict=True)))

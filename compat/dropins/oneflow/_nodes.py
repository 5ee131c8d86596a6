"""The names that OneFlow 0.9 gives the nodes of its graph: the type of the operation that it runs, then ``_backward``."""

from tapegrad.dialect import Recorded

# Of operations that OneFlow calls otherwise, or makes of others: then the last of those gives the name.
TYPES = {
    "linear": "broadcast_add", "mean": "scalar_mul", "sum": "reduce_sum", "product_sum": "reduce_sum", "prod": "reduce_prod",
    "amax": "reduce_max", "amin": "reduce_min", "max_dim": "reduce_max", "min_dim": "reduce_min", "logsumexp": "add_n",
    "logaddexp": "add_n", "std": "sqrt", "neg": "negative", "pow_scalar": "scalar_pow", "logsigmoid": "log_sigmoid",
    "clamp": "clip_by_scalar", "clamp_min": "clip_by_scalar_min", "clamp_max": "clip_by_scalar_max",
    "gelu_tanh": "fast_gelu", "cat": "concat", "topk": "top_k", "sort": "dim_gather", "gather": "dim_gather",
    "take_along_dim": "dim_gather", "index_select": "gather", "masked_select": "gather_nd", "constant_pad": "pad",
    "standardize": "normalization", "inverse": "inv", "windows": "view::unfold_tensor",
    "im2col": "unfold", "col2im": "fold", "contiguous": "to_contiguous", "clone": "identity", "overwrite": "slice_update",
    "median_dim": "median_with_indices", "conv_bias": "bias_add", "conv_transpose_bias": "bias_add",
}  # fmt: skip
# Of operations of two tensors: of equal shapes, and of shapes that broadcast.
TWO_TENSORS = {
    "add": ("add_n", "broadcast_add"), "sub": ("broadcast_sub",) * 2, "mul": ("broadcast_mul",) * 2,
    "div": ("broadcast_div",) * 2, "pow": ("broadcast_pow",) * 2, "maximum": ("elementwise_maximum", "broadcast_maximum"),
    "minimum": ("elementwise_minimum", "broadcast_minimum"),
}  # fmt: skip
# With a Python number on the right, and on the left.
NUMBER = {
    "add": ("scalar_add", "scalar_add"), "sub": ("scalar_add", "scalar_add"), "mul": ("scalar_mul", "scalar_mul"),
    "div": ("scalar_div", "scalar_mul"), "pow": ("scalar_pow", "scalar_reverse_pow"), "fmod": ("scalar_fmod",) * 2,
}  # fmt: skip
VIEWS = {
    "reshape": "reshape", "view": "reshape", "unsqueeze": "unsqueeze", "squeeze": "squeeze", "expand": "expand",
    "permute": "transpose", "transpose": "transpose", "t": "transpose", "mT": "transpose", "diagonal": "diagonal",
    "as_strided": "as_strided",
}  # fmt: skip

# Of functions that tapegrad makes of several operations and PyTorch names as one, by that name without "Backward0".
WHOLE = {
    "AdaptiveAvgPool2D": "adaptive_avg_pool2d", "AdaptiveAvgPool3D": "adaptive_avg_pool3d", "AvgPool2D": "avg_pool_2d",
    "AvgPool3D": "avg_pool_3d", "Bmm": "batch_matmul", "Celu": "celu", "Dot": "dot", "Elu": "elu",
    "Hardshrink": "hardshrink", "Hardsigmoid": "hardsigmoid", "MaskedFill": "masked_fill",
    "MaxPool2DWithIndices": "max_pool_2d", "MaxPool3DWithIndices": "max_pool_3d", "Mish": "mish",
    "Mv": "matrix_vector_product", "NativeBatchNorm": "normalization", "NativeGroupNorm": "group_norm",
    "NativeLayerNorm": "layer_norm", "PreluKernel": "prelu", "Softshrink": "softshrink", "Threshold": "threshold",
}  # fmt: skip
LOSSES = ("cross_entropy_total", "nll_total")  # a sum of losses over a divisor
CONVOLUTIONS = {"conv": "conv", "conv_input": "deconv"}


def name(made: Recorded) -> str:
    """OneFlow's name of the node that an operation made."""
    return f"{_type(made)}_backward"


def _type(made: Recorded) -> str:
    op = made.op
    whole = str(made.display).removesuffix("Backward0")
    if whole in WHOLE:
        return WHOLE[whole]
    if op in LOSSES:
        return "broadcast_div" if made.params[0] != 1 else "reduce_sum"
    if whole == "NllLoss" and op == "mean":
        return "broadcast_div"
    if made.number is not None and op in NUMBER:
        return NUMBER[op][1 - made.number]
    if op in TWO_TENSORS:
        broadcast = len({s for s in made.shapes if s is not None}) > 1
        return TWO_TENSORS[op][broadcast]
    if op in VIEWS:
        return f"view::{VIEWS[op]}"
    if op == "matmul":
        return _matmul([len(s) for s in made.shapes if s is not None])
    if op in CONVOLUTIONS and made.shapes:
        return f"{CONVOLUTIONS[op]}{len(made.shapes[0]) - 2}d"
    if op == "index":
        return _index(made.params[0] if made.params else ())
    return TYPES.get(op, op)


def _matmul(ranks: list[int]) -> str:
    if len(ranks) == 2 and ranks[0] == ranks[1] > 2:
        return "batch_matmul"
    return "matmul" if max(ranks, default=2) <= 2 else "broadcast_matmul"


def _index(key: object) -> str:
    parts = [k for k in (key if isinstance(key, tuple) else (key,)) if k is not Ellipsis]
    if any(hasattr(k, "shape") for k in parts):
        return "gather_nd"
    return "view::as_strided" if parts and isinstance(parts[0], int) and len(parts) == 1 else "view::slice"

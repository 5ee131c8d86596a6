"""tapegrad: gradients of any order for NumPy, recorded on a Wengert tape. Names follow PyTorch."""

from __future__ import annotations

import importlib as _importlib
import types as _types
from builtins import bool as _bool

from . import autograd as autograd
from . import func as func
from . import nn as nn
from . import numpy as numpy
from . import optim as optim
from .arrays.dtypes import Size as Size
from .arrays.dtypes import (
    bfloat16,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    long,
    short,
    uint8,
)
from .arrays.dtypes import bool_ as bool
from .arrays.dtypes import device as device
from .arrays.dtypes import dtype as dtype
from .arrays.dtypes import finfo as finfo
from .arrays.dtypes import float as float
from .arrays.dtypes import get_default_dtype as get_default_dtype
from .arrays.dtypes import iinfo as iinfo
from .arrays.dtypes import int as int
from .arrays.dtypes import promote_types as promote_types
from .arrays.dtypes import set_default_dtype as set_default_dtype
from .core.modes import enable_grad as enable_grad
from .core.modes import inference_mode as inference_mode
from .core.modes import is_anomaly_enabled as is_anomaly_enabled
from .core.modes import is_grad_enabled as is_grad_enabled
from .core.modes import is_inference_mode_enabled as is_inference_mode_enabled
from .core.modes import no_grad as no_grad
from .core.modes import set_grad_enabled as set_grad_enabled
from .core.modes import tape as tape
from .core.record import mark_package as _mark_package
from .ops.create import (
    Generator,
    arange,
    as_tensor,
    asarray,
    bernoulli,
    default_generator,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    get_rng_state,
    initial_seed,
    linspace,
    manual_seed,
    multinomial,
    normal,
    ones,
    ones_like,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
    tensor,
    zeros,
    zeros_like,
)  # fmt: skip
from .ops.einsum import einsum, tensordot
from .ops.elementwise import (
    abs,
    acos,
    acosh,
    add,
    addcdiv,
    addcmul,
    allclose,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    ceil,
    clamp,
    clamp_max,
    clamp_min,
    conj,
    cos,
    cosh,
    div,
    eq,
    equal,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmod,
    ge,
    gt,
    hypot,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    lerp,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    maximum,
    minimum,
    mul,
    nan_to_num,
    ne,
    neg,
    pow,
    reciprocal,
    relu,
    remainder,
    round,
    rsqrt,
    sgn,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    tan,
    tanh,
    trunc,
    where,
)  # fmt: skip
from .ops.index import (
    gather,
    index_add,
    index_fill,
    index_put,
    index_select,
    masked_fill,
    masked_select,
    nonzero,
    repeat_interleave,
    scatter,
    scatter_add,
    take_along_dim,
)  # fmt: skip
from .ops.linalg import addmm, bmm, cross, dot, kron, matmul, mm, mv, outer, trace
from .ops.reduce import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumprod,
    cumsum,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    norm,
    prod,
    softmax,
    std,
    std_mean,
    sum,
    var,
    var_mean,
)  # fmt: skip
from .ops.shape import (
    broadcast_tensors,
    broadcast_to,
    cat,
    chunk,
    diag,
    diag_embed,
    diagonal,
    flatten,
    flip,
    meshgrid,
    movedim,
    narrow,
    permute,
    ravel,
    reshape,
    roll,
    select,
    split,
    squeeze,
    stack,
    t,
    tile,
    transpose,
    tril,
    triu,
    unbind,
    unflatten,
    unsqueeze,
)  # fmt: skip
from .ops.sort import argsort, cummax, cummin, median, sort, topk
from .printing import set_printoptions as set_printoptions
from .tensor import Tensor as Tensor

__version__ = "0.1.0"

multiply, subtract, divide, true_divide, negative, absolute, clip = mul, sub, div, div, neg, abs, clamp
concat = concatenate = cat
arcsin, arccos, arctan, arctan2, arcsinh, arccosh, arctanh = asin, acos, atan, atan2, asinh, acosh, atanh
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
moveaxis, swapaxes, swapdims = movedim, transpose, transpose


def is_tensor(obj: object) -> _bool:
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


def __getattr__(name: str) -> _types.ModuleType:
    if name == "testing":  # for tests only: loaded on first use
        return _importlib.import_module(".testing", __name__)
    raise AttributeError(f"module 'tapegrad' has no attribute {name!r}")


_mark_package(__name__)

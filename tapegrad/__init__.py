"""tapegrad: gradients of any order for NumPy, recorded on a Wengert tape. Names follow PyTorch."""

from __future__ import annotations

import importlib as _importlib
import types as _types
from builtins import bool as _bool
from math import e, inf, nan, pi

from . import amp as amp
from . import autograd as autograd
from . import cuda as cuda
from . import custom as custom
from . import fft as fft
from . import func as func
from . import linalg as linalg
from . import masked as masked
from . import nn as nn
from . import numpy as numpy
from . import optim as optim
from . import random as random
from . import serialization as serialization
from . import sparse as sparse
from . import special as special
from . import utils as utils
from .amp import (
    autocast,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
)  # fmt: skip
from .core.modes import enable_grad as enable_grad
from .core.modes import inference_mode as inference_mode
from .core.modes import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .core.modes import is_anomaly_enabled as is_anomaly_enabled
from .core.modes import is_grad_enabled as is_grad_enabled
from .core.modes import is_inference_mode_enabled as is_inference_mode_enabled
from .core.modes import no_grad as no_grad
from .core.modes import set_anomaly_enabled as set_anomaly_enabled
from .core.modes import set_grad_enabled as set_grad_enabled
from .core.modes import tape as tape
from .core.record import mark_package as _mark_package
from .dtypes import Size as Size
from .dtypes import (
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
    uint16,
    uint32,
    uint64,
)
from .dtypes import bool_ as bool
from .dtypes import can_cast as can_cast
from .dtypes import channels_last as channels_last
from .dtypes import channels_last_3d as channels_last_3d
from .dtypes import contiguous_format as contiguous_format
from .dtypes import device as device
from .dtypes import dtype as dtype
from .dtypes import finfo as finfo
from .dtypes import float as float
from .dtypes import get_default_dtype as get_default_dtype
from .dtypes import iinfo as iinfo
from .dtypes import int as int
from .dtypes import layout as layout
from .dtypes import memory_format as memory_format
from .dtypes import preserve_format as preserve_format
from .dtypes import promote_types as promote_types
from .dtypes import set_default_dtype as set_default_dtype
from .dtypes import sparse_coo as sparse_coo
from .dtypes import strided as strided
from .func import vmap as vmap
from .func.control import cond as cond
from .func.control import scan as scan
from .func.control import while_loop as while_loop
from .functions.activation import _softmax_backward_data as _softmax_backward_data
from .functions.activation import celu, celu_, hardshrink, prelu, relu_, rrelu, rrelu_, selu, selu_, threshold, threshold_
from .functions.attention import bilinear
from .functions.conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .functions.create import (
    Generator,
    arange,
    as_tensor,
    asarray,
    bernoulli,
    default_generator,
    empty,
    empty_like,
    empty_permuted,
    empty_strided,
    eye,
    from_dlpack,
    from_numpy,
    frombuffer,
    full,
    full_like,
    get_default_device,
    get_rng_state,
    initial_seed,
    linspace,
    logspace,
    manual_seed,
    multinomial,
    normal,
    ones,
    ones_like,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    range,
    scalar_tensor,
    seed,
    set_default_device,
    set_rng_state,
    tensor,
    to_dlpack,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)
from .functions.decompose import cholesky, geqrf, lu, lu_unpack, qr, svd
from .functions.dropout import native_dropout_backward
from .functions.einsum import einsum, tensordot
from .functions.elementwise import (
    addcdiv,
    addcmul,
    allclose,
    clamp,
    clamp_max,
    clamp_min,
    conj,
    div,
    equal,
    floor_divide,
    isclose,
    lerp,
    nan_to_num,
    pow,
    round,
    rsub,
    sgn,
    sub,
    where,
)
from .functions.index import (
    argwhere,
    bincount,
    bucketize,
    fill,
    fill_,
    gather,
    index_add,
    index_copy,
    index_fill,
    index_put,
    index_select,
    isin,
    masked_fill,
    masked_scatter,
    masked_select,
    nonzero,
    nonzero_static,
    put,
    repeat_interleave,
    searchsorted,
    take,
    take_along_dim,
    unravel_index,
    zero_,
)
from .functions.linalg import (
    addbmm,
    addmm,
    addmv,
    addr,
    baddbmm,
    bmm,
    cdist,
    chain_matmul,
    cross,
    dot,
    ger,
    inner,
    kron,
    matmul,
    mm,
    mv,
    outer,
    pdist,
    trace,
    vander,
    vdot,
)
from .functions.matrix import (
    cholesky_inverse,
    cholesky_solve,
    det,
    inverse,
    logdet,
    lu_solve,
    matrix_exp,
    matrix_power,
    orgqr,
    ormqr,
    pca_lowrank,
    pinverse,
    slogdet,
    svd_lowrank,
    triangular_solve,
)
from .functions.native import (
    adaptive_max_pool1d,
    affine_grid_generator,
    alpha_dropout,
    alpha_dropout_,
    batch_norm,
    binary_cross_entropy_with_logits,
    conv_tbc,
    convolution,
    cosine_embedding_loss,
    ctc_loss,
    dropout,
    dropout_,
    eig,
    embedding,
    embedding_renorm_,
    feature_alpha_dropout,
    feature_alpha_dropout_,
    feature_dropout,
    feature_dropout_,
    frobenius_norm,
    hinge_embedding_loss,
    instance_norm,
    kl_div,
    lstsq,
    margin_ranking_loss,
    matrix_rank,
    native_dropout,
    norm_except_dim,
    nuclear_norm,
    poisson_nll_loss,
    solve,
    symeig,
    triplet_margin_loss,
)
from .functions.normalize import _batch_norm_with_update as _batch_norm_with_update
from .functions.normalize import _native_batch_norm_legit as _native_batch_norm_legit
from .functions.normalize import (
    cosine_similarity,
    group_norm,
    layer_norm,
    native_batch_norm,
    native_group_norm,
    native_layer_norm,
    pairwise_distance,
    rms_norm,
)
from .functions.parts import (
    angle,
    complex,
    conj_physical,
    deg2rad,
    float_power,
    frexp,
    heaviside,
    imag,
    is_conj,
    is_neg,
    ldexp,
    polar,
    positive,
    rad2deg,
    real,
    resolve_conj,
    resolve_neg,
    view_as_complex,
    view_as_complex_copy,
    view_as_real,
    view_as_real_copy,
)
from .functions.pool import adaptive_avg_pool1d, avg_pool1d, max_pool1d, max_pool1d_with_indices, max_pool2d, max_pool3d
from .functions.recurrent import gru, gru_cell, lstm, lstm_cell, rnn_relu, rnn_relu_cell, rnn_tanh, rnn_tanh_cell
from .functions.reduce import (
    all,
    amax,
    amin,
    aminmax,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumprod,
    cumsum,
    log_softmax,
    logcumsumexp,
    logsumexp,
    max,
    min,
    nanmean,
    nansum,
    norm,
    prod,
    softmax,
    std,
    std_mean,
    sum,
    var,
    var_mean,
)
from .functions.resample import (
    _upsample_bilinear2d_aa,
    channel_shuffle,
    grid_sampler,
    grid_sampler_2d,
    grid_sampler_3d,
    pixel_shuffle,
    pixel_unshuffle,
)
from .functions.sampling import _dirichlet_grad as _dirichlet_grad
from .functions.sampling import _sample_dirichlet as _sample_dirichlet
from .functions.sampling import _standard_gamma as _standard_gamma
from .functions.sampling import _standard_gamma_grad as _standard_gamma_grad
from .functions.sampling import binomial as binomial
from .functions.scatter import index_reduce, scatter, scatter_add, scatter_reduce
from .functions.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_num_threads,
    set_warn_always,
    use_deterministic_algorithms,
)
from .functions.shape import (
    adjoint,
    alias_copy,
    as_strided,
    as_strided_copy,
    as_strided_scatter,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    broadcast_to,
    cartesian_prod,
    cat,
    chunk,
    clone,
    column_stack,
    combinations,
    constant_pad_nd,
    detach,
    detach_copy,
    diag,
    diag_embed,
    diagflat,
    diagonal_copy,
    diagonal_scatter,
    dsplit,
    dstack,
    expand_copy,
    flatten,
    flip,
    fliplr,
    flipud,
    get_device,
    hsplit,
    hstack,
    is_complex,
    is_floating_point,
    is_nonzero,
    is_same_size,
    is_signed,
    meshgrid,
    moveaxis,
    movedim,
    narrow,
    narrow_copy,
    permute,
    permute_copy,
    ravel,
    result_type,
    roll,
    rot90,
    select,
    select_copy,
    select_scatter,
    slice_copy,
    slice_scatter,
    split,
    split_copy,
    split_with_sizes,
    split_with_sizes_copy,
    squeeze,
    squeeze_copy,
    stack,
    swapaxes,
    swapdims,
    t,
    t_copy,
    tensor_split,
    tile,
    transpose,
    transpose_copy,
    tril,
    triu,
    unbind,
    unbind_copy,
    unflatten,
    unfold_copy,
    unsafe_chunk,
    unsafe_split,
    unsafe_split_with_sizes,
    unsqueeze,
    unsqueeze_copy,
    view_copy,
    vsplit,
    vstack,
)
from .functions.signal import bartlett_window, blackman_window, hamming_window, hann_window, istft, kaiser_window, stft
from .functions.sort import (
    argsort,
    cummax,
    cummin,
    kthvalue,
    median,
    mode,
    msort,
    nanmedian,
    nanquantile,
    quantile,
    sort,
    topk,
    unique,
    unique_consecutive,
)
from .functions.special import igamma, igammac, logit, mvlgamma, polygamma, sinc, xlogy
from .functions.statistics import (
    corrcoef,
    cov,
    cumulative_trapezoid,
    diff,
    dist,
    gradient,
    histc,
    histogram,
    histogramdd,
    renorm,
    trapezoid,
    trapz,
)
from .io import load as load
from .io import save as save
from .jit import compile as compile
from .moved import stand_in as _stand_in
from .nn.module import typename as typename
from .sparse import sparse_coo_tensor as sparse_coo_tensor
from .table.elementwise import (
    abs,
    acos,
    acosh,
    add,
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
    cos,
    cosh,
    eq,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    fmod,
    ge,
    gt,
    hypot,
    isfinite,
    isinf,
    isnan,
    le,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    reciprocal,
    relu,
    remainder,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from .table.parts import (
    bitwise_left_shift,
    bitwise_right_shift,
    copysign,
    fmax,
    fmin,
    frac,
    gcd,
    isneginf,
    isposinf,
    isreal,
    lcm,
    nextafter,
    signbit,
)
from .table.reduce import mean
from .table.shape import diagonal, numel, reshape
from .table.special import digamma, erfinv, i0, lgamma
from .tensor.printing import set_printoptions as set_printoptions
from .tensor.storage import TypedStorage as TypedStorage
from .tensor.storage import UntypedStorage as UntypedStorage
from .tensor.tensor import FUNCTIONS_IN_PLACE as _FUNCTIONS_IN_PLACE
from .tensor.tensor import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    set_default_tensor_type,
)
from .tensor.tensor import Tensor as Tensor

__version__ = "0.1.0"

multiply, subtract, divide, true_divide, negative, absolute, clip = mul, sub, div, div, neg, abs, clamp
concat = concatenate = cat
spmm = mm
newaxis = None
row_stack = vstack
native_channel_shuffle = channel_shuffle
arcsin, arccos, arctan, arctan2, arcsinh, arccosh, arctanh = asin, acos, atan, atan2, asinh, acosh, atanh
greater, greater_equal, less, less_equal, not_equal, fix = gt, ge, lt, le, ne, trunc

globals().update(_FUNCTIONS_IN_PLACE)
newaxis = None


def is_tensor(obj: object) -> _bool:
    """Whether obj is a Tensor."""
    return isinstance(obj, Tensor)


def is_inference(input: Tensor) -> _bool:
    """Whether a tensor can only be used for inference: no, those made under inference_mode are like any others."""
    return False


def is_storage(obj: object) -> _bool:
    """Whether obj is a storage."""
    return isinstance(obj, TypedStorage | UntypedStorage)


_ON_FIRST_USE = ("compat", "distributions", "testing")
_MODULES = (
    "amp", "autograd", "cuda", "custom", "fft", "func", "linalg", "masked", "nn", "numpy", "optim", "random",
    "serialization", "sparse", "special", "utils", *_ON_FIRST_USE,
)  # fmt: skip


def __getattr__(name: str) -> _types.ModuleType:
    if name in _ON_FIRST_USE:
        return _importlib.import_module(f".{name}", __name__)
    if name.startswith(("quantize", "sparse_")):
        raise AttributeError(f"{name}: compressed sparse and quantised tensors are out of tapegrad's scope.")
    raise AttributeError(f"module 'tapegrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    names = {n for n, v in globals().items() if not n.startswith("_") and not isinstance(v, _types.ModuleType)}
    return sorted({*names, *_MODULES, "__version__"} - {"annotations"})


_stand_in()
_mark_package(__name__)

"""The table of public names: one line for each name of a function.

A line stands under the module of `functions/` that has the function, and says

    name                   forms
    name = function        forms, where the function has another name there

What has no function there follows from the record of its name: see `derived`. The forms:

    tg                     tapegrad.name
    linalg special fft     tapegrad.linalg.name, ...
    functional             tapegrad.nn.functional.name
    Tensor                 the method x.name(...)
    Tensor_                the method x.name_(...), which writes the result into x
    view_                  the method x.name_(...), which makes x that view of itself
    tg_                    tapegrad.name_(x, ...), the in-place method as a function
    x+y  y+x  x+=y  -x ..  the operator; x+=y is the in-place method

Methods of Tensor that are no operations stand in the class, and public names that are no functions of tensors in
`tapegrad/__init__.py`. After a change: `python -m tapegrad._stubs` and `python docs/make_reference.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..later import load
from . import derived

NAMES = """
activation:
    celu                                tg functional
    celu_                               tg functional
    elu                                 functional
    elu_                                functional
    gelu                                functional
    glu                                 functional
    gumbel_softmax                      functional
    hardshrink                          tg Tensor functional
    hardsigmoid                         functional
    hardswish                           functional
    hardtanh                            functional
    hardtanh_                           functional
    leaky_relu                          functional
    leaky_relu_                         functional
    log_softmax                         functional
    mish                                functional
    prelu                               tg Tensor functional
    relu                                functional
    relu_                               tg functional
    relu6                               functional
    rrelu                               tg functional
    rrelu_                              tg functional
    selu                                tg functional
    selu_                               tg functional
    sigmoid                             functional
    silu                                functional
    softmax                             functional
    _softmax_backward_data              tg
    softmin                             functional
    softplus                            tg functional
    softshrink                          functional
    softsign                            functional
    tanh                                functional
    tanhshrink                          functional
    threshold                           tg functional
    threshold_                          tg functional

attention:
    bilinear                            tg functional
    multi_head_attention_forward        functional
    scaled_dot_product_attention        functional

complex_and_bits:
    angle                               tg Tensor
    bitwise_left_shift                  tg Tensor Tensor_ x<<y x<<=y
    bitwise_right_shift                 tg Tensor Tensor_ x>>y x>>=y
    complex                             tg
    conj_physical                       tg tg_ Tensor Tensor_
    copysign                            tg Tensor Tensor_
    deg2rad                             tg tg_ Tensor Tensor_
    float_power                         tg Tensor Tensor_
    fmax                                tg Tensor
    fmin                                tg Tensor
    frac                                tg tg_ Tensor Tensor_
    frexp                               tg Tensor
    gcd                                 tg tg_ Tensor Tensor_
    heaviside                           tg Tensor Tensor_
    imag                                tg
    is_conj                             tg Tensor
    is_neg                              tg Tensor
    isneginf                            tg Tensor
    isposinf                            tg Tensor
    isreal                              tg Tensor
    itself                              +x
    lcm                                 tg tg_ Tensor Tensor_
    ldexp                               tg tg_ Tensor Tensor_
    nextafter                           tg Tensor Tensor_
    polar                               tg
    positive                            tg Tensor
    rad2deg                             tg tg_ Tensor Tensor_
    rbitwise_left_shift                 y<<x
    rbitwise_right_shift                y>>x
    real                                tg
    resolve_conj                        tg Tensor
    resolve_neg                         tg Tensor
    signbit                             tg Tensor
    view_as_complex                     tg
    view_as_complex_copy                tg
    view_as_real                        tg
    view_as_real_copy                   tg

conv:
    conv1d                              tg functional
    conv2d                              tg functional
    conv3d                              tg functional
    conv_transpose1d                    tg functional
    conv_transpose2d                    tg functional
    conv_transpose3d                    tg functional

copies:
    alias_copy                          tg
    as_strided_copy                     tg
    as_strided_scatter                  tg Tensor
    detach_copy                         tg
    diagonal_copy                       tg
    diagonal_scatter                    tg Tensor
    expand_copy                         tg
    narrow_copy                         tg Tensor
    permute_copy                        tg
    select_copy                         tg
    select_scatter                      tg Tensor
    slice_copy                          tg
    slice_scatter                       tg Tensor
    split_copy                          tg
    split_with_sizes_copy               tg
    squeeze_copy                        tg
    t_copy                              tg
    transpose_copy                      tg
    unbind_copy                         tg
    unfold_copy                         tg
    unsqueeze_copy                      tg
    view_copy                           tg

create:
    arange                              tg
    as_tensor                           tg
    bernoulli                           tg
    empty                               tg
    empty_like                          tg
    empty_permuted                      tg
    empty_strided                       tg
    eye                                 tg
    from_numpy                          tg
    full                                tg
    full_like                           tg
    get_default_device                  tg
    get_rng_state                       tg
    initial_seed                        tg
    linspace                            tg
    logspace                            tg
    manual_seed                         tg
    multinomial                         tg
    normal                              tg
    ones                                tg
    ones_like                           tg
    poisson                             tg
    rand                                tg
    rand_like                           tg
    randint                             tg
    randint_like                        tg
    randn                               tg
    randn_like                          tg
    randperm                            tg
    range                               tg
    scalar_tensor                       tg
    seed                                tg
    set_default_device                  tg
    set_rng_state                       tg
    tensor                              tg
    tril_indices                        tg
    triu_indices                        tg
    zeros                               tg
    zeros_like                          tg

decompose:
    cholesky                            tg Tensor
    cholesky = linalg_cholesky          linalg
    cholesky_ex = linalg_cholesky_ex    linalg
    eig = linalg_eig                    linalg
    eigh = linalg_eigh                  linalg
    eigvals = linalg_eigvals            linalg
    eigvalsh = linalg_eigvalsh          linalg
    geqrf                               tg Tensor
    lu = linalg_lu                      linalg
    lu                                  tg Tensor
    lu_factor = linalg_lu_factor        linalg
    lu_factor_ex = linalg_lu_factor_ex  linalg
    lu_unpack                           tg
    qr = linalg_qr                      linalg
    qr                                  tg Tensor
    svd = linalg_svd                    linalg
    svd                                 tg Tensor
    svdvals = linalg_svdvals            linalg

dropout:
    alpha_dropout                       functional
    dropout                             functional
    dropout1d                           functional
    dropout2d                           functional
    dropout3d                           functional
    feature_alpha_dropout               functional
    native_dropout_backward             tg

einsum:
    einsum                              tg
    tensordot                           tg

elementwise:
    abs                                 tg tg_ Tensor Tensor_ abs(x)
    absolute = abs                      tg Tensor Tensor_
    acos                                tg tg_ Tensor Tensor_
    acosh                               tg tg_ Tensor Tensor_
    _add                                x+y
    add                                 tg Tensor Tensor_ x+=y
    addcdiv                             tg Tensor Tensor_
    addcmul                             tg Tensor Tensor_
    allclose                            tg Tensor
    arccos = acos                       tg tg_ Tensor Tensor_
    arccosh = acosh                     tg tg_ Tensor Tensor_
    arcsin = asin                       tg tg_ Tensor Tensor_
    arcsinh = asinh                     tg tg_ Tensor Tensor_
    arctan = atan                       tg tg_ Tensor Tensor_
    arctan2 = atan2                     tg Tensor Tensor_
    arctanh = atanh                     tg tg_ Tensor Tensor_
    asin                                tg tg_ Tensor Tensor_
    asinh                               tg tg_ Tensor Tensor_
    atan                                tg tg_ Tensor Tensor_
    atan2                               tg Tensor Tensor_
    atanh                               tg tg_ Tensor Tensor_
    bitwise_and                         tg Tensor Tensor_ x&y y&x x&=y
    bitwise_not                         tg Tensor Tensor_ ~x
    bitwise_or                          tg Tensor Tensor_ x|y y|x x|=y
    bitwise_xor                         tg Tensor Tensor_ x^y y^x x^=y
    ceil                                tg tg_ Tensor Tensor_
    clamp                               tg tg_ Tensor Tensor_
    clamp_max                           tg tg_ Tensor Tensor_
    clamp_min                           tg tg_ Tensor Tensor_
    clip = clamp                        tg tg_ Tensor Tensor_
    conj                                tg Tensor
    cos                                 tg tg_ Tensor Tensor_
    cosh                                tg tg_ Tensor Tensor_
    div                                 tg Tensor Tensor_ x/=y
    div_true                            x/y
    divide = div                        tg Tensor Tensor_
    eq                                  tg Tensor Tensor_ x==y
    equal                               tg Tensor
    erf                                 tg tg_ Tensor Tensor_ special
    erfc                                tg tg_ Tensor Tensor_ special
    exp                                 tg tg_ Tensor Tensor_
    exp2                                tg tg_ Tensor Tensor_ special
    expit = sigmoid                     special
    expm1                               tg tg_ Tensor Tensor_ special
    fix = trunc                         tg tg_ Tensor Tensor_
    floor                               tg tg_ Tensor Tensor_
    floor_divide                        tg Tensor Tensor_ x//y x//=y
    fmod                                tg Tensor Tensor_
    ge                                  tg Tensor Tensor_ x>=y
    greater = gt                        tg Tensor Tensor_
    greater_equal = ge                  tg Tensor Tensor_
    gt                                  tg Tensor Tensor_ x>y
    hypot                               tg Tensor Tensor_
    isclose                             tg Tensor
    isfinite                            tg Tensor
    isinf                               tg Tensor
    isnan                               tg Tensor
    le                                  tg Tensor Tensor_ x<=y
    lerp                                tg Tensor Tensor_
    less = lt                           tg Tensor Tensor_
    less_equal = le                     tg Tensor Tensor_
    log                                 tg tg_ Tensor Tensor_
    log10                               tg tg_ Tensor Tensor_
    log1p                               tg tg_ Tensor Tensor_ special
    log2                                tg tg_ Tensor Tensor_
    logaddexp                           tg Tensor
    logaddexp2                          tg Tensor
    logical_and                         tg Tensor Tensor_
    logical_not                         tg Tensor Tensor_
    logical_or                          tg Tensor Tensor_
    logical_xor                         tg Tensor Tensor_
    logsigmoid                          functional
    lt                                  tg Tensor Tensor_ x<y
    maximum                             tg Tensor
    minimum                             tg Tensor
    mul                                 tg Tensor Tensor_ x*y x*=y
    multiply = mul                      tg Tensor Tensor_
    nan_to_num                          tg tg_ Tensor Tensor_
    ndtr                                special
    ne                                  tg Tensor Tensor_ x!=y
    neg                                 tg tg_ Tensor Tensor_ -x
    negative = neg                      tg tg_ Tensor Tensor_
    not_equal = ne                      tg Tensor Tensor_
    pow                                 tg Tensor Tensor_ x**y x**=y
    radd                                y+x
    rdiv                                y/x
    __rdiv__ = rdiv                     Tensor
    reciprocal                          tg tg_ Tensor Tensor_
    relu                                tg Tensor Tensor_
    remainder                           tg Tensor Tensor_ x%y x%=y
    rfloor_divide                       y//x
    rmul                                y*x
    round                               tg tg_ Tensor Tensor_ special
    rpow                                y**x
    rremainder                          y%x
    rsqrt                               tg tg_ Tensor Tensor_
    _rsub                               y-x
    rsub                                tg
    sgn                                 tg Tensor Tensor_
    sigmoid                             tg tg_ Tensor Tensor_ special
    sign                                tg Tensor Tensor_
    sin                                 tg tg_ Tensor Tensor_
    sinh                                tg tg_ Tensor Tensor_
    sqrt                                tg tg_ Tensor Tensor_
    square                              tg tg_ Tensor Tensor_
    _sub                                x-y
    sub                                 tg Tensor Tensor_ x-=y
    subtract = sub                      tg Tensor Tensor_
    tan                                 tg tg_ Tensor Tensor_
    tanh                                tg tg_ Tensor Tensor_
    true_divide = div                   tg Tensor Tensor_
    trunc                               tg tg_ Tensor Tensor_
    where                               tg

embed:
    embedding                           functional
    embedding_bag                       functional
    one_hot                             functional

exchange:
    asarray                             tg
    from_dlpack                         tg
    from_file                           tg
    frombuffer                          tg
    to_dlpack                           tg

fft:
    fft                                 fft
    fft2                                fft
    fftfreq                             fft
    fftn                                fft
    fftshift                            fft
    hfft                                fft
    hfft2                               fft
    hfftn                               fft
    ifft                                fft
    ifft2                               fft
    ifftn                               fft
    ifftshift                           fft
    ihfft                               fft
    ihfft2                              fft
    ihfftn                              fft
    irfft                               fft
    irfft2                              fft
    irfftn                              fft
    rfft                                fft
    rfft2                               fft
    rfftfreq                            fft
    rfftn                               fft

index:
    argwhere                            tg Tensor
    bincount                            tg Tensor
    bucketize                           tg
    fill                                tg
    fill_                               tg
    gather                              tg Tensor
    index_add                           tg Tensor Tensor_
    index_copy                          tg Tensor Tensor_
    index_fill                          tg Tensor Tensor_
    index_put                           tg tg_ Tensor Tensor_
    index_select                        tg Tensor
    isin                                tg
    masked_fill                         tg Tensor Tensor_
    masked_scatter                      tg Tensor Tensor_
    masked_select                       tg Tensor
    nonzero                             tg Tensor
    nonzero_static                      tg Tensor
    put                                 tg Tensor Tensor_
    repeat_interleave                   tg Tensor
    searchsorted                        tg
    take                                tg Tensor
    take_along_dim                      tg Tensor
    unravel_index                       tg
    zero_                               tg

joining:
    atleast_1d                          tg
    atleast_2d                          tg
    atleast_3d                          tg
    block_diag                          tg
    cartesian_prod                      tg
    cat                                 tg
    chunk                               tg Tensor
    column_stack                        tg
    combinations                        tg
    concat = cat                        tg
    concatenate = cat                   tg
    dsplit                              tg Tensor
    dstack                              tg
    hsplit                              tg Tensor
    hstack                              tg
    meshgrid                            tg
    row_stack = vstack                  tg
    split                               tg Tensor
    split_with_sizes                    tg Tensor
    stack                               tg
    tensor_split                        tg Tensor
    unbind                              tg Tensor
    unsafe_chunk                        tg Tensor
    unsafe_split                        tg Tensor
    unsafe_split_with_sizes             tg Tensor
    vsplit                              tg Tensor
    vstack                              tg

linalg:
    addbmm                              tg Tensor Tensor_
    addmm                               tg Tensor Tensor_
    addmv                               tg tg_ Tensor Tensor_
    addr                                tg Tensor Tensor_
    baddbmm                             tg Tensor Tensor_
    bmm                                 tg Tensor
    cdist                               tg
    chain_matmul                        tg
    cross                               tg Tensor
    cross = linalg_cross                linalg
    diagonal = linalg_diagonal          linalg
    dot                                 tg Tensor
    dsmm = mm                           tg
    ger                                 tg Tensor
    inner                               tg Tensor
    kron                                tg Tensor
    linear                              functional
    matmul = linalg_matmul              linalg
    matmul                              tg Tensor x@y
    mm                                  tg Tensor
    multi_dot = linalg_multi_dot        linalg
    mv                                  tg Tensor
    outer                               tg Tensor
    pdist                               tg functional
    rmatmul                             y@x
    spmm = mm                           tg
    trace                               tg Tensor
    vander = linalg_vander              linalg
    vander                              tg
    vdot                                tg Tensor
    vecdot = linalg_vecdot              linalg

loss:
    binary_cross_entropy                functional
    binary_cross_entropy_with_logits    functional
    cosine_embedding_loss               functional
    cross_entropy                       functional
    ctc_loss                            functional
    gaussian_nll_loss                   functional
    hinge_embedding_loss                functional
    huber_loss                          functional
    kl_div                              functional
    l1_loss                             functional
    linear_cross_entropy                functional
    margin_ranking_loss                 functional
    mse_loss                            functional
    multi_margin_loss                   functional
    multilabel_margin_loss              functional
    multilabel_soft_margin_loss         functional
    nll_loss                            functional
    poisson_nll_loss                    functional
    smooth_l1_loss                      functional
    soft_margin_loss                    functional
    triplet_margin_loss                 functional
    triplet_margin_with_distance_loss   functional

matrix:
    cholesky_inverse                    tg Tensor
    cholesky_solve                      tg Tensor
    cond = linalg_cond                  linalg
    det                                 tg Tensor
    det = linalg_det                    linalg
    householder_product = linalg_householder_product linalg
    inv = linalg_inv                    linalg
    inv_ex = linalg_inv_ex              linalg
    inverse                             tg Tensor
    lobpcg                              tg
    logdet                              tg Tensor
    lstsq = linalg_lstsq                linalg
    lu_solve = linalg_lu_solve          linalg
    lu_solve                            tg Tensor
    matrix_exp = linalg_matrix_exp      linalg
    matrix_exp                          tg Tensor
    matrix_norm = linalg_matrix_norm    linalg
    matrix_power = linalg_matrix_power  linalg
    matrix_power                        tg Tensor
    matrix_rank = linalg_matrix_rank    linalg
    norm = linalg_norm                  linalg
    orgqr                               tg Tensor
    ormqr                               tg Tensor
    pca_lowrank                         tg
    pinv = linalg_pinv                  linalg
    pinverse                            tg Tensor
    slogdet = linalg_slogdet            linalg
    slogdet                             tg Tensor
    solve = linalg_solve                linalg
    solve_ex = linalg_solve_ex          linalg
    solve_triangular = linalg_solve_triangular linalg
    svd_lowrank                         tg
    tensorinv = linalg_tensorinv        linalg
    tensorsolve = linalg_tensorsolve    linalg
    triangular_solve                    tg Tensor
    vector_norm = linalg_vector_norm    linalg

native:
    adaptive_max_pool1d                 tg
    affine_grid_generator               tg
    alpha_dropout                       tg
    alpha_dropout_                      tg
    batch_norm                          tg
    binary_cross_entropy_with_logits    tg
    conv_tbc                            tg functional
    convolution                         tg
    cosine_embedding_loss               tg
    ctc_loss                            tg
    dropout                             tg
    dropout_                            tg
    eig                                 tg Tensor
    embedding                           tg
    embedding_bag                       tg
    _embedding_bag                      tg
    _embedding_bag_forward_only         tg
    embedding_renorm_                   tg
    feature_alpha_dropout               tg
    feature_alpha_dropout_              tg
    feature_dropout                     tg
    feature_dropout_                    tg
    frobenius_norm                      tg
    hinge_embedding_loss                tg
    instance_norm                       tg
    kl_div                              tg
    lstsq                               tg Tensor
    margin_ranking_loss                 tg
    matrix_rank                         tg
    native_dropout                      tg
    norm_except_dim                     tg
    nuclear_norm                        tg
    poisson_nll_loss                    tg
    solve                               tg Tensor
    symeig                              tg Tensor
    triplet_margin_loss                 tg

normalize:
    batch_norm                          functional
    _batch_norm_with_update             tg
    cosine_similarity                   tg functional
    group_norm                          tg functional
    instance_norm                       functional
    layer_norm                          tg functional
    local_response_norm                 functional
    native_batch_norm                   tg
    _native_batch_norm_legit            tg
    native_group_norm                   tg
    native_layer_norm                   tg
    normalize                           functional
    pairwise_distance                   tg functional
    rms_norm                            tg functional

pool:
    adaptive_avg_pool1d                 tg functional
    adaptive_avg_pool2d                 functional
    adaptive_avg_pool3d                 functional
    adaptive_max_pool1d                 functional
    adaptive_max_pool1d_with_indices    functional
    adaptive_max_pool2d                 functional
    adaptive_max_pool2d_with_indices    functional
    adaptive_max_pool3d                 functional
    adaptive_max_pool3d_with_indices    functional
    avg_pool1d                          tg functional
    avg_pool2d                          functional
    avg_pool3d                          functional
    fold                                functional
    fractional_max_pool2d               functional
    fractional_max_pool2d_with_indices  functional
    fractional_max_pool3d               functional
    fractional_max_pool3d_with_indices  functional
    lp_pool1d                           functional
    lp_pool2d                           functional
    lp_pool3d                           functional
    max_pool1d                          tg functional
    max_pool1d_with_indices             tg functional
    max_pool2d                          tg functional
    max_pool2d_with_indices             functional
    max_pool3d                          tg functional
    max_pool3d_with_indices             functional
    max_unpool1d                        functional
    max_unpool2d                        functional
    max_unpool3d                        functional
    unfold                              functional

properties:
    broadcast_shapes                    tg
    get_device                          tg Tensor
    is_complex                          tg
    is_floating_point                   tg
    is_nonzero                          tg
    is_same_size                        tg
    is_signed                           tg
    numel                               tg
    result_type                         tg

recurrent:
    gru                                 tg
    gru_cell                            tg
    lstm                                tg
    lstm_cell                           tg
    rnn_relu                            tg
    rnn_relu_cell                       tg
    rnn_tanh                            tg
    rnn_tanh_cell                       tg

reduce:
    all                                 tg Tensor
    amax                                tg Tensor
    amin                                tg Tensor
    aminmax                             tg Tensor
    any                                 tg Tensor
    argmax                              tg Tensor
    argmin                              tg Tensor
    count_nonzero                       tg Tensor
    cumprod                             tg Tensor Tensor_
    cumsum                              tg Tensor Tensor_
    log_softmax                         tg Tensor special
    logcumsumexp                        tg Tensor
    logsumexp                           tg Tensor special
    max                                 tg Tensor
    mean                                tg Tensor
    min                                 tg Tensor
    nanmean                             tg Tensor
    nansum                              tg Tensor
    norm                                tg Tensor
    prod                                tg Tensor
    softmax                             tg Tensor special
    std                                 tg Tensor
    std_mean                            tg
    sum                                 tg Tensor
    var                                 tg Tensor
    var_mean                            tg

resample:
    affine_grid                         functional
    channel_shuffle                     tg functional
    grid_sample                         functional
    grid_sampler                        tg
    grid_sampler_2d                     tg
    grid_sampler_3d                     tg
    interpolate                         functional
    native_channel_shuffle = channel_shuffle tg functional
    pad                                 functional
    pixel_shuffle                       tg functional
    pixel_unshuffle                     tg functional
    upsample                            functional
    upsample_bilinear                   functional
    _upsample_bilinear2d_aa             tg
    upsample_nearest                    functional

sampling:
    binomial                            tg
    _dirichlet_grad                     tg
    _sample_dirichlet                   tg
    _standard_gamma                     tg
    _standard_gamma_grad                tg

scatter:
    index_reduce                        tg Tensor Tensor_
    scatter                             tg Tensor Tensor_
    scatter_add                         tg Tensor Tensor_
    scatter_reduce                      tg Tensor Tensor_

settings:
    are_deterministic_algorithms_enabled tg
    get_deterministic_debug_mode        tg
    get_float32_matmul_precision        tg
    get_num_interop_threads             tg
    get_num_threads                     tg
    is_deterministic_algorithms_warn_only_enabled tg
    is_warn_always_enabled              tg
    set_deterministic_debug_mode        tg
    set_float32_matmul_precision        tg
    set_flush_denormal                  tg
    set_num_interop_threads             tg
    set_num_threads                     tg
    set_warn_always                     tg
    use_deterministic_algorithms        tg

shape:
    adjoint                             tg Tensor
    as_strided                          tg tg_ Tensor view_
    broadcast_tensors                   tg
    broadcast_to                        tg Tensor
    clone                               tg
    constant_pad_nd                     tg
    detach                              tg tg_
    diag                                tg Tensor
    diag_embed                          tg Tensor
    diagflat                            tg Tensor
    diagonal                            tg Tensor
    expand                              Tensor
    expand_as                           Tensor
    flatten                             tg Tensor
    flip                                tg Tensor
    fliplr                              tg Tensor
    flipud                              tg Tensor
    moveaxis                            tg Tensor
    movedim                             tg Tensor
    narrow                              tg Tensor
    permute                             tg Tensor
    ravel                               tg Tensor
    repeat                              Tensor
    reshape                             tg Tensor
    reshape_as                          Tensor
    resize_as                           tg_
    roll                                tg Tensor
    rot90                               tg Tensor
    select                              tg Tensor
    squeeze                             tg Tensor view_
    sum_to_size                         Tensor
    swapaxes                            tg Tensor view_
    swapdims                            tg Tensor view_
    t                                   tg Tensor view_
    tile                                tg Tensor
    transpose                           tg Tensor view_
    tril                                tg Tensor Tensor_
    triu                                tg Tensor Tensor_
    unflatten                           tg Tensor
    unfold                              Tensor
    unsqueeze                           tg Tensor view_
    view                                Tensor
    view_as                             Tensor

signal:
    bartlett_window                     tg
    blackman_window                     tg
    hamming_window                      tg
    hann_window                         tg
    istft                               tg Tensor
    kaiser_window                       tg
    stft                                tg Tensor

sort:
    argsort                             tg Tensor
    cummax                              tg Tensor
    cummin                              tg Tensor
    kthvalue                            tg Tensor
    median                              tg Tensor
    mode                                tg Tensor
    msort                               tg Tensor
    nanmedian                           tg Tensor
    nanquantile                         tg Tensor
    quantile                            tg Tensor
    sort                                tg Tensor
    topk                                tg Tensor
    unique                              tg Tensor
    unique_consecutive                  tg Tensor

special:
    airy_ai                             special
    bessel_j0                           special
    bessel_j1                           special
    bessel_y0                           special
    bessel_y1                           special
    chebyshev_polynomial_t              special
    chebyshev_polynomial_u              special
    chebyshev_polynomial_v              special
    chebyshev_polynomial_w              special
    digamma                             tg Tensor Tensor_ special
    entr                                special
    erfcx                               special
    erfinv                              tg Tensor Tensor_ special
    gammainc = igamma                   special
    gammaincc = igammac                 special
    gammaln = lgamma                    special
    hermite_polynomial_h                special
    hermite_polynomial_he               special
    i0                                  tg tg_ Tensor Tensor_ special
    i0e                                 special
    i1                                  special
    i1e                                 special
    igamma                              tg Tensor Tensor_ special
    igammac                             tg Tensor Tensor_ special
    laguerre_polynomial_l               special
    legendre_polynomial_p               special
    lgamma                              tg Tensor Tensor_ special
    log_ndtr                            special
    logit                               tg tg_ Tensor Tensor_ special
    modified_bessel_i0 = i0             special
    modified_bessel_i1 = i1             special
    modified_bessel_k0                  special
    modified_bessel_k1                  special
    multigammaln = mvlgamma             special
    mvlgamma                            tg Tensor Tensor_ special
    ndtri                               special
    polygamma                           tg special
    polygamma = polygamma_of            Tensor Tensor_
    psi = digamma                       special
    scaled_modified_bessel_k0           special
    scaled_modified_bessel_k1           special
    shifted_chebyshev_polynomial_t      special
    shifted_chebyshev_polynomial_u      special
    shifted_chebyshev_polynomial_v      special
    shifted_chebyshev_polynomial_w      special
    sinc                                tg tg_ Tensor Tensor_ special
    spherical_bessel_j0                 special
    xlog1py                             special
    xlogy                               tg tg_ Tensor Tensor_ special
    zeta                                special

statistics:
    corrcoef                            tg Tensor
    cov                                 tg Tensor
    cumulative_trapezoid                tg
    diff                                tg Tensor
    dist                                tg Tensor
    gradient                            tg
    histc                               tg Tensor
    histogram                           tg Tensor
    histogramdd                         tg
    renorm                              tg Tensor Tensor_
    trapezoid                           tg
    trapz                               tg
"""

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
OPERATORS = {
    **{f"x{symbol}y": f"__{name}__" for name, symbol in SYMBOLS.items()},
    **{f"y{symbol}x": f"__r{name}__" for name, symbol in SYMBOLS.items()},
    "x==y": "__eq__", "x!=y": "__ne__", "x<y": "__lt__", "x<=y": "__le__", "x>y": "__gt__", "x>=y": "__ge__",
    "-x": "__neg__", "+x": "__pos__", "~x": "__invert__", "abs(x)": "__abs__",
}  # fmt: skip
IN_PLACE_OPERATORS = {f"x{symbol}=y": f"__i{name}__" for name, symbol in SYMBOLS.items()}
FORMS = {
    "tg", "tg_", "linalg", "special", "fft", "functional", "Tensor", "Tensor_", "view_", *OPERATORS, *IN_PLACE_OPERATORS,
}  # fmt: skip


class Line(NamedTuple):
    """A line of the table."""

    name: str
    function: str
    family: str
    forms: tuple[str, ...]

    def resolve(self) -> Callable[..., Any]:
        """The function."""
        module = load(f"functions.{self.family}")
        return getattr(module, self.function, None) or derived.function_of(self.function)


def read(text: str) -> list[Line]:
    """The lines of a table.

    Raises:
        ValueError: for a line without a form, or with one that is not known.
    """
    lines = []
    family = ""
    for words in filter(None, map(str.split, text.splitlines())):
        if words[0].endswith(":"):
            family = words[0].removesuffix(":")
            continue
        function = words[2] if words[1:2] == ["="] else words[0]
        forms = words[3:] if words[1:2] == ["="] else words[1:]
        if not forms or not FORMS.issuperset(forms):
            raise ValueError(f"table of public names: {' '.join(words)}: no such form, or none")
        lines.append(Line(words[0], function, family, tuple(forms)))
    return lines


LINES = read(NAMES)
NAMESPACES = {"tg": "tapegrad", "functional": "tapegrad.nn.functional"} | {
    form: f"tapegrad.{form}" for form in ("linalg", "special", "fft")
}


def at(form: str) -> list[Line]:
    """The lines of a form."""
    return [line for line in LINES if form in line.forms]


@functools.cache
def lines_of(form: str) -> dict[str, Line]:
    """The lines of a form by their names, in alphabetical order."""
    return {line.name: line for line in sorted(at(form))}


def namespace(form: str) -> dict[str, Callable[..., Any]]:
    """The functions of a namespace by their names, in alphabetical order."""
    return {name: line.resolve() for name, line in lines_of(form).items()}


def elsewhere(name: str) -> str:
    """Where a name is that was looked for in another namespace, as the end of an error's text."""
    places = [f"{place}.{name}" for form, place in NAMESPACES.items() if name in lines_of(form)]
    return f"; there is {' and '.join(places)}" if places else ""


def finder(form: str, page: dict[str, Any]) -> Callable[[str], Any]:
    """The `__getattr__` of a module that shows a namespace: it finds a function and keeps it on the module's page."""
    lines = lines_of(form)

    def find(name: str) -> Any:
        if name not in lines:
            raise AttributeError(f"module {page['__name__']!r} has no attribute {name!r}{elsewhere(name)}")
        return page.setdefault(name, lines[name].resolve())

    find.__module__ = page["__name__"]
    return find

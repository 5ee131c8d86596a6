"""Every record with a PyTorch counterpart against it: value, vjp and second-order vjp on the record's samples.

`DIFFERENCES` names what differs on purpose; an entry that no longer differs fails.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE, FlatIndex
from tapegrad.core.record import wrap

RTOL, ATOL = 1e-9, 1e-11  # sums in another order, and special functions of 1e-12
DTYPES = {np.dtype(n): getattr(torch, n) for n in ("float32", "float64", "complex64", "complex128")}


def same_name(*names, module=torch):
    return {name: getattr(module, name) for name in names}


def index_of(index):
    return tuple(torch.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)


def flat_positions(shape, index):
    positions = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return torch.tensor(index.at if isinstance(index, FlatIndex) else positions[index])


def added(x, v, index):
    positions = flat_positions(x.shape, index)
    return x.reshape(-1).index_add(0, positions.reshape(-1), v.broadcast_to(positions.shape).reshape(-1)).reshape(x.shape)


def written(x, v, index):
    # the last of several values written to one place stays
    positions = flat_positions(x.shape, index).reshape(-1)
    v = v.broadcast_to(flat_positions(x.shape, index).shape).reshape(-1)
    last = {int(p): k for k, p in enumerate(positions)}
    kept = torch.tensor(list(last.values()), dtype=torch.int64)
    return x.reshape(-1).index_put((positions[kept],), v[kept]).reshape(x.shape)


def over(function):
    """A reduction whose dims may be None."""
    return lambda x, dims, keepdim: function(x, dim=tuple(range(x.ndim)) if dims is None else dims, keepdim=keepdim)


def deviation(function):
    return lambda x, dims, correction, keepdim: function(x, dim=dims, correction=correction, keepdim=keepdim)


def read(x, index):
    return x.reshape(-1)[torch.from_numpy(index.at)] if isinstance(index, FlatIndex) else x[index_of(index)]


def reshaped(x, shape):
    return x.reshape(shape)


def permuted(x, dims):
    return x.permute(dims)


def first(function):
    return lambda *arguments: function(*arguments)[0]


TORCH_NAMES = """
    abs acos acosh add angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor ceil clone complex copysign cos cosh diagonal digamma div eq erf erfc erfinv exp exp2
    expm1 flip floor fmax fmin fmod frac gcd ge gt heaviside hypot i0 imag isfinite isinf isnan
    isneginf isposinf isreal lcm le lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor logit lt matmul maximum minimum mul nan_to_num ne neg nextafter pow real reciprocal relu remainder roll
    round rsqrt sgn sigmoid sign signbit sin sinh sqrt square sub tan tanh tril triu trunc view_as_complex view_as_real
    where xlogy
"""
SPECIAL_NAMES = "entr i0e i1 i1e log_ndtr ndtr ndtri xlog1py zeta"
COUNTERPARTS = {
    **same_name(*TORCH_NAMES.split()),
    **same_name("elu", "gelu", "leaky_relu", "linear", "logsigmoid", "silu", "softplus", module=F),
    "sgn_complex": torch.sgn,
    **same_name("hardswish", "hardtanh", "softsign", "tanhshrink", module=F),
    "scaled_elu": lambda x, alpha, scale, rate: torch.where(x > 0, scale * x, scale * F.elu(rate * x, alpha)),
    "embedding": lambda w, index, padding: F.embedding(index, w, padding),
    "add_rows": lambda g, index, rows, padding: added_rows(g, index, rows, padding),
    "cross_entropy": lambda x, label, dim: (
        F.cross_entropy(x, label.squeeze(dim), reduction="none").unsqueeze(dim),
        x.softmax(dim),
    ),
    "nll_total": lambda x, label, divisor: F.nll_loss(x, label.squeeze(1), reduction="sum") / divisor,
    "cross_entropy_total": lambda x, label, divisor: F.cross_entropy(x, label.squeeze(1), reduction="sum") / divisor,
    **same_name(*SPECIAL_NAMES.split(), module=torch.special),
    "polygamma": lambda x, n: torch.polygamma(n, x),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "igamma": lambda a, x: torch.igamma(a.detach(), x),
    "igammac": lambda a, x: torch.igammac(a.detach(), x),
    "erfcx": lambda x, order: math.pi**-0.5 - x * torch.special.erfcx(x) if order else torch.special.erfcx(x),
    "round_decimals": lambda x, decimals: torch.round(x, decimals=decimals),
    "conj": lambda x: x.conj().resolve_conj(),
    "contiguous": torch.Tensor.contiguous,
    "cast": lambda x, dtype: (x.real if x.is_complex() and dtype.kind != "c" else x).to(DTYPES[dtype]),
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"),  # torch.floor_divide has no derivative
    "pow_scalar": torch.pow,
    "clamp": torch.clamp,
    "clamp_tensor": torch.clamp,
    "clamp_min": torch.clamp_min,
    "clamp_max": torch.clamp_max,
    "sum_to": lambda x, shape: x.sum_to_size(shape),
    "expand": torch.broadcast_to,
    **dict.fromkeys(("reshape", "view", "unsqueeze", "squeeze"), reshaped),
    **dict.fromkeys(("permute", "transpose", "t"), permuted),
    "mT": lambda x: x.mT,
    "diagonal_embed": lambda x, shape, offset, dim1, dim2: torch.diag_embed(x, offset, dim1, dim2),
    "cat": lambda xs, dim: torch.cat(xs, dim),
    "stack": lambda xs, dim: torch.stack(xs, dim),
    **dict.fromkeys(("index", "gather", "index_select", "take", "take_along_dim", "masked_select"), read),
    **dict.fromkeys(("split", "split_with_sizes", "unbind"), read),
    "index_zeros": lambda g, shape, index: added(torch.zeros(shape, dtype=g.dtype), g, index),
    **dict.fromkeys(("index_add", "scatter_add"), added),
    **dict.fromkeys(("index_put", "scatter", "index_copy", "index_fill", "put", "masked_scatter"), written),
    "scatter_amax": lambda x, v, index: x.scatter_reduce(0, torch.from_numpy(index[0]), v, "amax"),
    "scatter_amin": lambda x, v, index: x.scatter_reduce(0, torch.from_numpy(index[0]), v, "amin"),
    "take_along": lambda x, index, dim: torch.take_along_dim(x, index, dim),
    **dict.fromkeys(
        ("scatter_sum", "scatter_zeros"),
        lambda g, index, shape, dim: torch.zeros(shape, dtype=g.dtype).scatter_add(dim, index, g),
    ),
    "spread": lambda x, shape, dims, keepdim: (
        x if dims is None or keepdim else x.reshape([1 if d in dims else n for d, n in enumerate(shape)])
    ).broadcast_to(shape),
    "sum": over(torch.sum),
    "mean": over(torch.mean),
    "amax": over(torch.amax),
    "amin": over(torch.amin),
    "logsumexp": over(torch.logsumexp),
    "norm": lambda x, dims, keepdim: torch.linalg.vector_norm(x, dim=dims, keepdim=keepdim),
    "var": deviation(torch.var),
    "std": deviation(torch.std),
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "max_dim": torch.max,
    "min_dim": torch.min,
    "cumprod": torch.cumprod,
    "cumsum": lambda x, dim, reverse: torch.cumsum(x.flip(dim), dim).flip(dim) if reverse else torch.cumsum(x, dim),
    "prod": torch.prod,
    "isclose": torch.isclose,
    "isin": lambda x, tests, unique, invert: torch.isin(x, tests, assume_unique=unique, invert=invert),
    "searchsorted": lambda rows, values, side: torch.searchsorted(rows, values, side=side),
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "all": torch.all,
    "any": torch.any,
    "count_nonzero": torch.count_nonzero,
    "sort": lambda x, dim, descending, stable: torch.sort(x, dim=dim, descending=descending, stable=stable),
    "argsort": lambda x, dim, descending, stable: torch.argsort(x, dim=dim, descending=descending, stable=stable),
    "topk": torch.topk,
    "cummax": torch.cummax,
    "logcumsumexp": torch.logcumsumexp,
    "kthvalue": lambda x, dim, keepdim, k: torch.kthvalue(x, k, dim, keepdim),
    "mode": torch.mode,
    "nanmedian": lambda x, dims, keepdim: torch.nanmedian(x),
    "nanmedian_dim": torch.nanmedian,
    "fft_c2c": lambda x, dims, inverse, norm: (torch.fft.ifftn if inverse else torch.fft.fftn)(x, dim=dims, norm=norm),
    "fft_r2c": lambda x, dim, norm: torch.fft.rfft(x, dim=dim, norm=norm),
    "fft_c2r": lambda x, dim, n, norm: torch.fft.irfft(x, n, dim, norm),
    "frames": lambda x, count, size, step: x.unfold(-1, size, step)[..., :count, :],
    "cummin": torch.cummin,
    "median": lambda x, dims, keepdim: torch.median(x),
    "median_dim": torch.median,
    **dict.fromkeys(
        ("overwrite", "select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter"),
        lambda base, value, chain: overwritten(base, value),
    ),
    "as_strided": lambda x, size, stride, offset, order: (
        x.permute(order).clone(memory_format=torch.contiguous_format).as_strided(size, stride, offset)
    ),
    "windows": torch.Tensor.unfold,
    "windows_sum": torch.ops.aten.unfold_backward,
    "cdist": lambda x, y, by_product: torch.linalg.vector_norm(x[..., :, None, :] - y[..., None, :, :], dim=-1),
    "cholesky": lambda a: torch.linalg.cholesky((a + a.mH) / 2),
    "qr": torch.linalg.qr,
    "lu_factor": torch.linalg.lu_factor,
    "eigh": lambda a, upper: aligned(
        torch.linalg.eigh((a + a.mH) / 2, "LU"[upper]), np.linalg.eigh(a.detach().numpy(), "LU"[upper])
    ),
    "eigvalsh": lambda a: torch.linalg.eigvalsh((a + a.mH) / 2),
    "eigvals": lambda a, real: torch.linalg.eigvals(a),
    "svd": lambda a, full: aligned(torch.linalg.svd(a, full), np.linalg.svd(a.detach().numpy(), full)),
    "svdvals": torch.linalg.svdvals,
    "solve": lambda xs, known: torch.linalg.solve(*xs),
    "solve_triangular": lambda xs, upper, unit: torch.linalg.solve_triangular(*xs, upper=upper, unitriangular=unit),
    "inverse": torch.inverse,
    "pinv": lambda a, atol, rtol, hermitian: torch.linalg.pinv(a, atol=atol, rtol=rtol, hermitian=hermitian),
    "matrix_exp": torch.matrix_exp,
    "det": torch.det,
    "slogdet": lambda a, real: torch.linalg.slogdet(a),
    "conv": lambda x, w, sizes, *rest: convolved(x, w, None, sizes, *rest),
    "conv_bias": lambda x, w, b, sizes, *rest: convolved(x, w, b, sizes, *rest),
    "conv_input": lambda y, w, *rest: transposed(y, w, None, *rest),
    "conv_transpose_bias": lambda y, w, b, *rest: transposed(y, w, b, *rest),
    "max_pool": lambda x, sizes, *windows: getattr(F, f"max_pool{len(sizes)}d")(x, *windows),
    "im2col": lambda x, before, sizes, kernel, stride, *rest: F.unfold(x, kernel, *rest[::-1], stride),
    "col2im": lambda x, before, sizes, kernel, stride, *rest: F.fold(x, before, kernel, *rest[::-1], stride),
    "constant_pad": lambda x, widths, value: F.pad(x, [n for pair in widths[::-1] for n in pair], value=value),
}


def aligned(theirs, ours):
    """Factors with each vector's sign as in ours: which one LAPACK gives differs between its builds."""
    theirs, ours = list(theirs), [torch.tensor(x) for x in ours]
    vectors = 1 if len(ours) == 2 else 0
    signs = torch.sign((theirs[vectors].detach() * ours[vectors]).sum(-2))
    theirs[vectors] = theirs[vectors] * signs[..., None, :]
    if len(ours) == 3:
        more = torch.sign((theirs[2].detach() * ours[2]).sum(-1))
        theirs[2] = theirs[2] * more[..., :, None]
    return tuple(theirs)


def convolved(x, w, b, sizes, *rest):
    return getattr(F, f"conv{len(sizes)}d")(x, w, b, *rest)


def transposed(y, w, b, sizes, stride, padding, dilation, groups):
    dims = zip(sizes, y.shape[2:], w.shape[2:], stride, padding, dilation, strict=True)
    more = [m - ((n - 1) * s - 2 * p + d * (k - 1) + 1) for m, n, k, s, p, d in dims]
    return getattr(F, f"conv_transpose{len(sizes)}d")(y, w, b, stride, padding, more, groups, dilation)


def overwritten(base, value):
    out = base.clone()
    out.T[0:2] = value
    return out


def added_rows(g, index, rows, padding):
    total = torch.zeros(rows, g.shape[-1], dtype=g.dtype).index_add(0, index.reshape(-1), g.reshape(-1, g.shape[-1]))
    return total if padding is None else total.index_fill(0, torch.tensor([padding]), 0)


# Parts of rules, which PyTorch does not have.
INTERNAL = {
    "barrier", "cond", "mask_derivative", "scan", "stop_gradient", "strong_mul", "transfer", "while",
    "across_vector", "airy", "alias", "amax_rows", "amin_rows", "asinh_slope", "atan2_slope", "atan_slope",
    "attention", "bessel_j", "bessel_k", "bessel_ke", "bessel_mean", "bessel_ratio", "bessel_y", "beta_ratio", "by_sign",
    "cast_whole", "cbrt", "centred", "centred_transposed", "cofactor", "conv_weight", "cross_entropy_back", "dot_along",
    "eig", "elu_slope", "exp_diff", "exp_shares", "exponent", "function", "gamma_path", "gamma_ratio", "gelu_slope",
    "gelu_tanh_slope", "gru_layer", "guard_matrices", "guard_slices", "hardswish_slope", "hypot_slope", "igamma_shape",
    "inverse_gaps", "inverse_sizes", "laplace_chain", "laplace_sigmoid", "laplace_sin", "laplace_tanh", "largest",
    "linear_scan", "log_loss", "log_ndtr_derivative", "lstm_layer", "lu_permutation", "matrix_exp_derivative",
    "norm_scale", "one_minus_square", "overlap_add", "pair", "phase_free", "pool_pick", "pool_positions", "pool_route",
    "power_of_two",
    "prod_others", "product_sum", "put_rows", "rank", "resample", "rnn_layer", "safe_div",
    "safe_reciprocal", "share",
    "shift", "sigmoid_slope", "silu_slope", "simplex_path", "sin_ratio", "softplus_slope",
    "standardize", "standardize_back", "sum_of_products",
    "is_last", "strided_sum", "tanh_slope", "tie", "tie_share", "to_complex",
    "true_positions", "unit_vector", "weigh_inner", "weighted_difference",
    "window_best", "winner", "without_part",
    "write_zeros", "written_part", "zero_at", "zero_rows",
    "is_unmarked", "link", "marked", "parted", "polar_factor", "probe", "refused", "replaced", "resolved", "similar",
    "singular", "spectral", "sylvester", "twice", "unmarked", "unresolved",
}  # fmt: skip

# (record, sample, quantity): why it differs.
ORIGIN = "0 at the origin to any order; PyTorch's second order is nan there"
NAN_PLACE = "the cotangent of a nan goes to the nan; PyTorch counts no element as equal to it and divides by 0"
DEAD_TERM = "a term of -inf has the gradient 0 where the whole sum is -inf as well; PyTorch's is nan"
BEYOND = "PyTorch ignores cotangents of the singular vectors beyond the reduced form"
DIFFERENCES = {
    ("embedding", 1, "second order"): "PyTorch's double backward fails for an empty index",
    ("embedding", 3, "second order"): "PyTorch's double backward fails for an empty index",
    **{("svd", k, quantity): BEYOND for k in (1, 2) for quantity in ("vjp", "second order")},
    ("cdist", 3, "second order"): ORIGIN,
    ("cdist", 4, "second order"): ORIGIN,
    ("det", 6, "second order"): "the cofactors' derivatives are exact at any rank; PyTorch's are nan two below the full one",
    ("scatter_amax", 3, "vjp"): NAN_PLACE,
    ("scatter_amax", 3, "second order"): NAN_PLACE,
    ("scatter_amin", 3, "vjp"): NAN_PLACE,
    ("scatter_amin", 3, "second order"): NAN_PLACE,
    ("amax", 3, "vjp"): NAN_PLACE,
    ("amax", 3, "second order"): NAN_PLACE,
    ("amin", 3, "vjp"): NAN_PLACE,
    ("amin", 3, "second order"): NAN_PLACE,
    ("atan2", 8, "second order"): ORIGIN,
    ("hypot", 8, "vjp"): "0 at the origin; PyTorch's first order is nan",
    ("hypot", 8, "second order"): ORIGIN,
    ("logcumsumexp", 4, "vjp"): DEAD_TERM,
    ("logcumsumexp", 4, "second order"): DEAD_TERM,
    ("logsumexp", 6, "vjp"): DEAD_TERM,
    ("logsumexp", 6, "second order"): DEAD_TERM,
    ("norm", 7, "second order"): ORIGIN,
    ("i0e", 4, "second order"): "0 at the kink, as of abs; PyTorch keeps the part of I(0)",
    ("copysign", 8, "second order"): "0 at 0, as in the first order; PyTorch's is nan",
    ("erfcx", 9, "second order"): "exact in the tail, where PyTorch's formula cancels",
    ("log_ndtr", 4, "vjp"): "exact in the tail, where PyTorch is off by 5e-9",
    ("log_ndtr", 4, "second order"): "exact in the tail, where PyTorch's formula cancels",
    ("logit", 4, "second order"): "outside [0, 1] the derivative is nan whatever the cotangent; PyTorch's is then constant",
    **{
        (name, 6, quantity): "derivative 1/2 of equal infinities; PyTorch's is nan"
        for name in ("logaddexp", "logaddexp2")
        for quantity in ("vjp", "second order")
    },
    **{
        (name, 6, quantity): "by the second argument 0 where both are at the edge, as by the first; PyTorch's is nan"
        for name in ("xlogy", "xlog1py")
        for quantity in ("vjp", "second order")
    },
    **{
        (name, k, quantity): "the derivative by the first argument, which PyTorch lacks"
        for name in ("igamma", "igammac")
        for k in (0, 1, 2, 3, 4, 6)
        for quantity in ("vjp", "second order")
    },
    ("sgn_complex", 1, "second order"): ORIGIN,
    ("std", 4, "second order"): ORIGIN,
    ("pow", 6, "second order"): "the second derivative by the exponent is 0 at base 0, as the first; PyTorch's is nan",
    ("softplus", 9, "second order"): "at the threshold itself the value is the logarithm, and so are the derivatives",
}


def run_ours(op, sample, seeds, directions):
    indices = testing.differentiable(op, sample.arrays)
    xs = [testing.leaf(a, i in indices) for i, a in enumerate(sample.arrays)]
    wanted = [xs[i] for i in indices]
    ys = testing.call(op, xs, sample.params)
    cotangents = [wrap(s).requires_grad_() for s in seeds]
    return derivatives(tg.autograd.grad, ys, wanted, cotangents, [wrap(d) for d in directions])


def run_torch(function, op, sample, seeds, directions):
    indices = testing.differentiable(op, sample.arrays)
    xs = [torch.tensor(a) for a in sample.arrays]
    wanted = [xs[i].requires_grad_() for i in indices]
    ys = function(xs, *sample.params) if op.arity < 0 else function(*xs, *sample.params)
    ys = ys if isinstance(ys, tuple) else (ys,)
    seeds = [torch.tensor(s, requires_grad=True) for s in seeds]
    return derivatives(torch.autograd.grad, ys, wanted, seeds, [torch.tensor(d) for d in directions])


def derivatives(grad, ys, wanted, seeds, directions):
    """Values, vjp at the seeds, and the gradient of <directions, vjp>, with respect to arguments and seeds."""
    result = {"value": list(ys), "vjp": [], "second order": []}
    tracked = [(y, s) for y, s in zip(ys, seeds, strict=False) if y.requires_grad]
    if tracked:
        outputs, cotangents = zip(*tracked, strict=True)
        gs = grad(outputs, wanted, cotangents, create_graph=True, allow_unused=True)
        result["vjp"] = list(gs)
        total = sum((d.conj() * g).real.sum() for d, g in zip(directions, gs, strict=True) if g is not None)
        if getattr(total, "requires_grad", False):
            try:
                result["second order"] = list(grad(total, [*wanted, *cotangents], allow_unused=True))
            except RuntimeError as e:
                result["second order"] = str(e)
    return result


def number(t):
    if isinstance(t, torch.Tensor):
        t = t.detach().resolve_conj()
        return np.zeros(t.shape, str(t.dtype).removeprefix("torch.")) if t._is_zerotensor() else t.numpy()
    return t if t is None else t._d


def differs(ours, theirs):
    """What differs between two lists of arrays, in words; an absent gradient counts as 0."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return f"{ours} for {theirs}"
    n = max(len(ours), len(theirs))
    ours, theirs = ([number(t) for t in ts] + [None] * (n - len(ts)) for ts in (ours, theirs))
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a is None and b is None:
            continue
        a, b = (np.zeros_like(b) if a is None else a), (np.zeros_like(a) if b is None else b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{i}: {a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
        if not np.allclose(a, b, rtol=RTOL, atol=ATOL, equal_nan=a.dtype.kind in "fc"):
            return f"{i}: {a.tolist()} for {b.tolist()}"
    return None


def found_differences(name):
    """{(record, sample, quantity): what differs} of all samples."""
    op = TABLE[name]
    found = {}
    for k, sample in enumerate(testing.samples_of(op)):
        rng = testing.generator(op, sample.arrays)
        seeds = testing.cotangents_for(op, sample.arrays, sample.params, rng)
        directions = [testing.random_like(rng, sample.arrays[i]) for i in testing.differentiable(op, sample.arrays)]
        with np.errstate(all="ignore"):
            ours = run_ours(op, sample, seeds, directions)
            theirs = run_torch(COUNTERPARTS[name], op, sample, seeds, directions)
        for quantity in ours:
            text = differs(ours[quantity], theirs[quantity])
            if text:
                found[name, k, quantity] = text
    return found


def test_every_record_has_a_counterpart_or_is_internal():
    missing = set(TABLE) - set(COUNTERPARTS) - INTERNAL
    assert not missing, f"COUNTERPARTS here needs rows for {missing}, or INTERNAL their names where PyTorch has none"
    assert set(COUNTERPARTS) | INTERNAL == set(TABLE)
    assert not set(COUNTERPARTS) & INTERNAL
    for name in INTERNAL - {"eig", "cond"}:  # torch.eig only raises; torch.cond takes functions
        assert not any(hasattr(owner, name) for owner in (torch, torch.Tensor, F)), f"{name} has a counterpart"


@pytest.mark.parametrize("name", sorted(COUNTERPARTS))
def test_record_agrees(name):
    found = found_differences(name)
    known = {key for key in DIFFERENCES if key[0] == name}
    assert set(found) - known == set(), found
    assert known - set(found) == set(), "these no longer differ"


@pytest.mark.parametrize("name", sorted(COUNTERPARTS))
def test_single_precision_shapes_and_dtypes(name):
    op = TABLE[name]
    for sample in testing.samples_of(op):
        if any(isinstance(p, np.dtype) for p in sample.params):
            continue
        arrays = tuple(testing.narrowed(a, 32) for a in sample.arrays)
        narrow = testing.Sample(arrays, sample.params, sample.smooth)
        rng = testing.generator(op, arrays)
        seeds = testing.cotangents_for(op, arrays, sample.params, rng)
        directions = [testing.random_like(rng, arrays[i]) for i in testing.differentiable(op, arrays)]
        with np.errstate(all="ignore"):
            ours = run_ours(op, narrow, seeds, directions)
            theirs = run_torch(COUNTERPARTS[name], op, narrow, seeds, directions)
        for quantity in ("value", "vjp"):
            for a, b in zip(map(number, ours[quantity]), map(number, theirs[quantity]), strict=True):
                if a is not None and b is not None:
                    assert (a.shape, a.dtype) == (b.shape, b.dtype), (quantity, sample)


# ----------------------------------------------------------------------------- functions made of records, on both libraries

FUNCTIONS = {
    "sort": lambda L, x: L.sort(x, dim=0)[0],
    "sort descending": lambda L, x: L.sort(x, 1, descending=True)[0],
    "topk": lambda L, x: L.topk(x, 2, dim=1)[0],
    "topk smallest": lambda L, x: L.topk(x, 2, dim=0, largest=False)[0],
    "cummax": lambda L, x: L.cummax(x, 1)[0],
    "cummin": lambda L, x: L.cummin(x, 0)[0],
    "median": lambda L, x: L.median(x),
    "median along": lambda L, x: x.median(0, keepdim=True)[0],
    "var_mean": lambda L, x: L.stack(L.var_mean(x, 1)),
    "std_mean": lambda L, x: L.stack(L.std_mean(x)),
    "repeat_interleave": lambda L, x: L.repeat_interleave(x, 2, dim=1),
    "repeat_interleave counts": lambda L, x: L.repeat_interleave(x, L.tensor([1, 0, 2]), dim=0),
    "repeat_interleave flat": lambda L, x: x.repeat_interleave(3),
    "index_fill": lambda L, x: L.index_fill(x, 1, L.tensor([0, 0]), 5.0),
    "meshgrid": lambda L, x: L.meshgrid(x[0], x[1], indexing="xy")[0] * L.meshgrid(x[0], x[1], indexing="xy")[1],
    "norm 3": lambda L, x: L.norm(x, 3, dim=1),
    "norm 1": lambda L, x: L.norm(x, 1),
    "prod": lambda L, x: x.prod(),
    "einsum": lambda L, x: L.einsum("ij,kj,k->i", x, x, x[:, 0]),
    "tensordot": lambda L, x: L.tensordot(x, x, dims=([1], [1])),
    "kron": lambda L, x: L.kron(x, x),
    "cross": lambda L, x: L.cross(x[:, :3], x[:, 1:4], dim=1),
    "trace": lambda L, x: L.trace(x),
    "addcmul": lambda L, x: L.addcmul(x, x, x[0], value=0.5),
    "addcdiv": lambda L, x: L.addcdiv(x, x[0], x, value=0.5),
    "logaddexp": lambda L, x: L.logaddexp(x, x * x),
    "nan_to_num": lambda L, x: L.nan_to_num(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_agrees(name):
    a = np.random.default_rng(7).standard_normal((3, 4))
    results = []
    for library in (tg, torch):
        x = library.tensor(a, requires_grad=True)
        y = FUNCTIONS[name](library, x)
        w = library.tensor(np.random.default_rng(8).standard_normal(tuple(y.shape)))
        (g,) = library.autograd.grad(y, x, w, create_graph=True)
        total = (g * g).sum()
        h = library.autograd.grad(total, x, allow_unused=True)[0] if total.requires_grad else None
        results.append([y, g, library.zeros_like(x) if h is None else h])
    assert differs(*results) is None


@pytest.mark.parametrize("values", [[2.0, 1.0, 2.0, 0.0], [np.nan, 1.0, 3.0, np.nan], 3.0])
@pytest.mark.parametrize("name", ["sort", "argsort", "cummax", "cummin", "median", "max", "min"])
def test_indices_agree(name, values):
    results = []
    for library in (tg, torch):
        r = getattr(library, name)(library.tensor(values), 0)
        results.append([number(t) for t in (r if isinstance(r, tuple) else (r,))])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)

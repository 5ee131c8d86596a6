"""Every record with a PyTorch counterpart against it: value, vjp and second-order vjp on the record's samples.

`DIFFERENCES` names what differs on purpose; an entry that no longer differs fails.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tapegrad as tg
from tapegrad import testing
from tapegrad.core.op import TABLE
from tapegrad.core.record import wrap

RTOL, ATOL = 1e-9, 1e-11  # sums in another order, and special functions of 1e-12
DTYPES = {np.dtype(n): getattr(torch, n) for n in ("float32", "float64", "complex64", "complex128")}


def same_name(*names, module=torch):
    return {name: getattr(module, name) for name in names}


def index_of(index):
    return tuple(torch.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)


def flat_places(shape, index):
    return torch.tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape)[index])


def added(x, v, index):
    places = flat_places(x.shape, index)
    return x.reshape(-1).index_add(0, places.reshape(-1), v.broadcast_to(places.shape).reshape(-1)).reshape(x.shape)


def written(x, v, index):
    # the last of several values written to one place stays
    places = flat_places(x.shape, index).reshape(-1)
    v = v.broadcast_to(flat_places(x.shape, index).shape).reshape(-1)
    last = {int(p): k for k, p in enumerate(places)}
    kept = torch.tensor(list(last.values()), dtype=torch.int64)
    return x.reshape(-1).index_put((places[kept],), v[kept]).reshape(x.shape)


def over(function):
    """A reduction whose dims may be None."""
    return lambda x, dims, keepdim: function(x, dim=tuple(range(x.ndim)) if dims is None else dims, keepdim=keepdim)


def deviation(function):
    return lambda x, dims, correction, keepdim: function(x, dim=dims, correction=correction, keepdim=keepdim)


def read(x, index):
    return x[index_of(index)]


def reshaped(x, shape):
    return x.reshape(shape)


def permuted(x, dims):
    return x.permute(dims)


def first(function):
    return lambda *arguments: function(*arguments)[0]


TORCH_NAMES = """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil clone cos cosh
    diagonal div eq erf erfc exp exp2 expm1 flip floor floor_divide fmod ge gt hypot imag isfinite isinf isnan le lerp log
    log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor lt matmul maximum minimum mul nan_to_num ne
    neg pow real reciprocal relu remainder roll round rsqrt sgn sigmoid sign sin sinh sqrt square sub tan tanh tril triu
    trunc where
"""
COUNTERPARTS = {
    **same_name(*TORCH_NAMES.split()),
    **same_name("elu", "gelu", "leaky_relu", "linear", "logsigmoid", "silu", "softplus", module=F),
    "sgn_complex": torch.sgn,
    "ndtr": torch.special.ndtr,
    "conj": lambda x: x.conj().resolve_conj(),
    "contiguous": torch.Tensor.contiguous,
    "cast": lambda x, dtype: (x.real if x.is_complex() and dtype.kind != "c" else x).to(DTYPES[dtype]),
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
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
    **dict.fromkeys(("index", "gather", "index_select", "take_along_dim", "masked_select"), read),
    "index_zeros": lambda g, shape, index: added(torch.zeros(shape, dtype=g.dtype), g, index),
    **dict.fromkeys(("index_add", "scatter_add"), added),
    **dict.fromkeys(("index_put", "scatter"), written),
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
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "all": torch.all,
    "any": torch.any,
    "count_nonzero": torch.count_nonzero,
    "sort": lambda x, dim, descending: torch.sort(x, dim=dim, descending=descending, stable=True),
    "argsort": lambda x, dim, descending: torch.argsort(x, dim=dim, descending=descending, stable=True),
    "topk": torch.topk,
    "cummax": torch.cummax,
    "cummin": torch.cummin,
    "median": lambda x, dims, keepdim: torch.median(x),
    "median_dim": torch.median,
    "overwrite": lambda base, value, chain: overwritten(base, value),
}


def overwritten(base, value):
    out = base.clone()
    out.T[0:2] = value
    return out


# Parts of rules, which PyTorch does not have.
INTERNAL = {
    "alias", "by_sign", "linear_scan", "one_minus_square", "region", "safe_div", "safe_reciprocal", "shift", "tie_share",
    "to_complex", "winner", "write_zeros", "written_part", "zero_at",
}  # fmt: skip

# (record, sample, quantity): why it differs.
ORIGIN = "0 at the origin to any order; PyTorch's second order is nan there"
NAN_PLACE = "the cotangent of a nan goes to the nan; PyTorch counts no element as equal to it and divides by 0"
DIFFERENCES = {
    ("amax", 3, "vjp"): NAN_PLACE,
    ("amax", 3, "second order"): NAN_PLACE,
    ("amin", 3, "vjp"): NAN_PLACE,
    ("amin", 3, "second order"): NAN_PLACE,
    ("atan2", 8, "second order"): ORIGIN,
    ("hypot", 8, "vjp"): "0 at the origin; PyTorch's first order is nan",
    ("hypot", 8, "second order"): ORIGIN,
    ("norm", 7, "second order"): ORIGIN,
    ("sgn_complex", 1, "second order"): ORIGIN,
    ("std", 4, "second order"): ORIGIN,
    ("logaddexp", 6, "second order"): "0 far from the diagonal; PyTorch's formula overflows",
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
    assert set(COUNTERPARTS) | INTERNAL == set(TABLE)
    assert not set(COUNTERPARTS) & INTERNAL
    for name in INTERNAL:
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
        arrays = tuple(testing._narrow(a, 32) for a in sample.arrays)
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

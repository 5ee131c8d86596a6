"""Dtypes of results, or that an operation raises: PyTorch's sample inputs and a list of calls in all dtypes and their pairs.

What differs is listed, strictly: an entry that no longer differs fails.
"""

import itertools
import math
import re
import warnings

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
pytest.importorskip("ml_dtypes")
from opinfo import some
from variations import DTYPES, described, differ, differences, in_dtypes, kind_of, operations, outcome

# x has the first dtype, v the second; m is a mask, i an index
CALLS = """
    put(x, m, v[:3]) ; put(x, m, v[:1]) ; put(x, m, v[0]) ; put(x, i, v[:3]) ; put(x, i, v[0]) ; put(x, [0, 2, 3], v[:3])
    put(x.repeat(2, 1), (slice(None), i), v[:3]) ; put(x, 0, v[0]) ; put(x, L.tensor(0), v[0])
    put(x, slice(0, 3), v[:3]) ; put(x, Ellipsis, v) ; put(x, None, v) ; put(x, True, v) ; put(x, L.tensor(True), v)
    x.index_put_((i,), v[:3]) ; x.index_put((i,), v[:3]) ; x.index_put_((i,), v[0])
    x.index_put_((i,), v[:3], accumulate=True) ; x.scatter_(0, i, v[:3]) ; x.scatter(0, i, v[:3])
    x.scatter_(0, i, v[:3], reduce="add") ; x.scatter_add_(0, i, v[:3]) ; x.scatter_reduce_(0, i, v[:3], "amax")
    x.scatter_reduce_(0, i, v[:3], "sum") ; x.masked_scatter_(m, v) ; x.masked_scatter(m, v) ; x.masked_fill_(m, v[0])
    x.masked_fill(m, v[0]) ; x.copy_(v) ; x.fill_(v[0]) ; x.index_add_(0, i, v[:3]) ; x.index_add(0, i, v[:3])
    x.index_copy_(0, i, v[:3]) ; x.index_fill_(0, i, v[0]) ; x.index_reduce_(0, i, v[:3], "amax") ; x.put_(i, v[:3])
    x.put_(i, v[:3], accumulate=True) ; x.add_(v) ; x.mul_(v) ; x.div_(v) ; x.sub_(v) ; x.add_(v[0]) ; x.pow_(v)
    x.floor_divide_(v.abs()+1) ; x.remainder_(v) ; x.atan2_(v) ; x.lerp_(v, 0.5) ; x.lerp_(x.clone(), v)
    x.addcmul_(v, v) ; x.addcdiv_(v, v) ; x.addcmul_(x, v) ; x.eq_(v) ; x.logical_and_(v) ; x.bitwise_and_(v)
    x.bitwise_left_shift_(v) ; x.clamp_(v) ; x.clamp_min_(v) ; x.clamp_(min=v, max=v) ; x.copysign_(v) ; x.hypot_(v)
    x.fmod_(v) ; x.gcd_(v) ; x.xlogy_(v) ; x.exp_() ; x.sqrt_() ; x.cumsum_(0) ; x.cumprod_(0)
    x.cumsum_(0, dtype=v.dtype) ; x.cumprod_(0, dtype=v.dtype) ; x.cumsum(0, dtype=v.dtype) ; x.cumprod(0, dtype=v.dtype)
    x.sum(0, dtype=v.dtype) ; x.prod(0, dtype=v.dtype) ; x.mean(0, dtype=v.dtype) ; x.sum(dtype=v.dtype)
    x.prod(dtype=v.dtype) ; x.mean(dtype=v.dtype) ; x.nansum(0, dtype=v.dtype) ; x.nanmean(0, dtype=v.dtype)
    L.linalg.vector_norm(x, dtype=v.dtype) ; L.norm(x, dtype=v.dtype) ; L.linalg.norm(x, dtype=v.dtype)
    L.linalg.matrix_norm(x.repeat(2, 1), dtype=v.dtype) ; x.softmax(0, dtype=v.dtype) ; x.log_softmax(0, dtype=v.dtype)
    F.softmax(x, 0, dtype=v.dtype) ; F.softmin(x, 0, dtype=v.dtype) ; L.special.softmax(x, 0, dtype=v.dtype)
    L.special.log_softmax(x, 0, dtype=v.dtype) ; L.zeros_like(x, dtype=v.dtype) ; L.full_like(x, 1, dtype=v.dtype)
    L.arange(3, dtype=v.dtype) ; L.linspace(0, 1, 3, dtype=v.dtype) ; L.logspace(0, 1, 3, dtype=v.dtype)
    L.eye(3, dtype=v.dtype) ; L.full((2, ), 1.5, dtype=v.dtype) ; L.full((2, ), True, dtype=v.dtype)
    L.randn(3, dtype=v.dtype) ; L.rand(3, dtype=v.dtype) ; L.randint(3, (2, ), dtype=v.dtype)
    L.randperm(3, dtype=v.dtype) ; L.randn_like(x, dtype=v.dtype) ; L.rand_like(x, dtype=v.dtype)
    L.randint_like(x, 3, dtype=v.dtype) ; L.hann_window(3, dtype=v.dtype) ; L.kaiser_window(3, dtype=v.dtype)
    L.bartlett_window(3, dtype=v.dtype) ; L.hamming_window(3, dtype=v.dtype) ; L.blackman_window(3, dtype=v.dtype)
    L.fft.fftfreq(3, dtype=v.dtype) ; L.fft.rfftfreq(3, dtype=v.dtype) ; L.tril_indices(3, 3, dtype=v.dtype)
    L.empty(3, dtype=v.dtype) ; L.scalar_tensor(1.5, dtype=v.dtype) ; L.tensor([1.5], dtype=v.dtype)
    L.tensor([1j], dtype=v.dtype) ; L.as_tensor(x, dtype=v.dtype) ; L.asarray(x, dtype=v.dtype)
    L.range(0, 3, dtype=v.dtype) ; L.vander(x) ; x.new_full((2, ), 1.5, dtype=v.dtype)
    x.new_tensor([1.5], dtype=v.dtype) ; x.to(v.dtype) ; x.type(v.dtype) ; x.type_as(v)
    L.zeros(16, dtype=x.dtype).view(v.dtype) ; x.to(v) ; x.uniform_() ; x.normal_() ; x.random_(2) ; x.bernoulli_(0.5)
    x.bernoulli_(v.abs().clamp(0, 1)) ; x.exponential_() ; x.cauchy_() ; x.log_normal_() ; x.geometric_(0.5)
    x.fill_(1.5) ; x.fill_(1j) ; x.fill_(nan) ; put(x, 0, 1.5) ; put(x, slice(None), 1.5) ; put(x, m, 1.5)
    put(x, i, 1.5) ; put(x, m, 1j) ; put(x, 0, 1j) ; put(x, 0, 300) ; put(x, m, 300) ; x.add_(1.5) ; x.mul_(1j)
    x.add_(True) ; x.sub_(True) ; x.add(v, alpha=1.5) ; x.add(v, alpha=True) ; x.sub(v, alpha=2) ; x.masked_fill_(m, 1.5)
    x.masked_fill_(m, 1j) ; x.masked_fill(m, 300) ; x.index_fill_(0, i, 1.5) ; x.index_fill_(0, i, 1j)
    x.scatter_(0, i, 1.5) ; x.scatter_(0, i, 1j) ; x.scatter_(0, i, 300) ; L.cat([x, v]) ; L.cat([x[:0], v])
    L.cat([x[:0], v[:0]]) ; L.cat([x[:0], v.repeat(2, 1)]) ; L.stack([x, v]) ; L.hstack([x, v]) ; L.vstack([x, v])
    L.block_diag(x, v) ; L.column_stack([x, v]) ; L.dstack([x, v]) ; L.hstack([x[:0], v]) ; L.cartesian_prod(x, v)
    L.meshgrid(x, v, indexing='ij') ; L.broadcast_tensors(x, v) ; L.where(m, x, v[0]) ; L.where(m, x, v)
    L.where(m, x, 1.5) ; L.where(m, 1, 1.5) ; L.select_scatter(x, v[0], 0, 0) ; L.slice_scatter(x, v[:2], 0, 0, 2)
    L.diagonal_scatter(x.repeat(5, 1), v) ; L.as_strided_scatter(x, v[:2], (2, ), (1, )) ; L.bucketize(x, v.sort()[0])
    L.searchsorted(v.sort()[0], x) ; L.isin(x, v) ; L.repeat_interleave(x, v) ; L.bincount(x, v) ; L.histc(x)
    L.tensor(L.equal(x, v)) ; F.one_hot(x) ; L.lerp(x, x, v) ; L.lerp(x, v, 0.5) ; x.dot(v) ; L.vdot(x, v) ; x.outer(v)
    L.kron(x, v) ; L.linalg.cross(x[:3], v[:3]) ; x.repeat(5, 1).mv(v) ; x.repeat(5, 1).mm(v.repeat(5, 1)) ; x@v
    L.einsum('i, j->ij', x, v) ; L.einsum('i, i->', x, v) ; L.tensordot(x, v, 1)
    x.repeat(1, 5, 1).bmm(v.repeat(1, 5, 1)) ; F.linear(x, v) ; L.addr(x.repeat(5, 1), v, v) ; L.ger(x, v)
    L.cdist(x[None], v[None]) ; L.dist(x, v) ; L.chain_matmul(x.repeat(5, 1), v.repeat(5, 1))
    L.linalg.multi_dot([x.repeat(5, 1), v.repeat(5, 1)]) ; L.linalg.solve(L.eye(5, dtype=x.dtype), v)
    L.zeros(1, dtype=L.result_type(x, v[0])) ; L.tensor(L.can_cast(x.dtype, v.dtype)) ; x.set_(v)
    (setattr(x, 'data', v), x)[1] ; (setattr(x, 'grad', v), x)[1] ; x.resize_as_(v) ; x.expand_as(v) ; L.maximum(x, v)
    L.nextafter(x, v) ; L.ldexp(x, v) ; L.polar(x, v) ; L.complex(x, v) ; L.heaviside(x, v) ; L.float_power(x, v)
    L.true_divide(x, v) ; L.rsub(x, v) ; 1.5-x ; x**0.5 ; 2**x ; x//2 ; x//2.0 ; x/2 ; x%2 ; x%2.5 ; x+1j ; True+x ; x&1
    x<<1 ; x==1.5 ; ~x ; -x ; abs(x) ; x**-1 ; L.trapezoid(x, dx=0.5) ; x.clamp(0.5, 1.5) ; x.clamp(0, 1)
    x.round(decimals=1) ; x.nan_to_num() ; x.std() ; L.var_mean(x) ; x.median() ; x.quantile(0.5) ; x.quantile(v[0])
    x.mode() ; x.aminmax() ; x.argmax() ; x.all() ; x.any() ; x.any(0) ; x.logcumsumexp(0) ; x.logsumexp(0)
    x.count_nonzero() ; L.cov(x, fweights=v) ; L.cov(x, aweights=v) ; F.mse_loss(x, v) ; F.l1_loss(x, v) ; F.kl_div(x, v)
    F.cross_entropy(x.repeat(2, 1), L.tensor([0, 1]), weight=v) ; F.cross_entropy(x.repeat(2, 1), v.repeat(2, 1))
    F.binary_cross_entropy(x.clamp(0, 1), v.clamp(0, 1)) ; F.binary_cross_entropy_with_logits(x, v)
    F.binary_cross_entropy_with_logits(x, x, pos_weight=v) ; F.layer_norm(x, (5, ), v) ; F.rms_norm(x, (5, ), v)
    F.group_norm(x[None], 1, v) ; F.batch_norm(x.repeat(2, 1), v, v.abs()+v, training=False)
    F.embedding(L.tensor([1]), x[:, None]) ; F.embedding(x, L.zeros(300, 2))
    F.embedding_bag(x.abs(), L.zeros(300, 2), v.abs()*0) ; F.pad(x, (1, 1), value=1.5)
    F.conv1d(x[None, None], v[None, None, :2]) ; F.prelu(x, v[:1]) ; F.glu(x[:4]) ; F.dropout(x, 0.5)
    F.normalize(x, dim=0) ; F.cosine_similarity(x, v, dim=0) ; x.unfold(0, 2, 1) ; F.gumbel_softmax(x)
    F.interpolate(x[None, None], size=3) ; F.avg_pool1d(x[None], 2) ; F.max_pool1d(x[None], 2)
    F.adaptive_avg_pool1d(x[None], 2) ; F.lp_pool1d(x[None], 2.0, 2) ; F.local_response_norm(x[None, :, None], 2)
    F.scaled_dot_product_attention(x[None], v[None], v[None])
    F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], v.repeat(5, 1))
"""
CALLED = [text.strip() for text in re.split(r" ; |\n", CALLS.strip())]

KNOWN = {
    "result": {
        "the statistics beside the result stay in float32": [
            "native_group_norm", "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit",
            "_batch_norm_with_update",
        ],
        "b / a of two tensors; PyTorch's takes the reciprocal of a first": ["__rdiv__"],
        "integers are not cut off": ["nn.functional.hinge_embedding_loss"],
        "PyTorch's is bool": ["masked.logaddexp"],
    },
    "refused": {
        "assigning a complex value to real elements raises an error": [
            "put(x, m, v[:1])", "put(x, m, v[0])", "put(x, 0, v[0])", "put(x, L.tensor(0), v[0])",
            "put(x, slice(0, 3), v[:3])", "put(x, Ellipsis, v)", "put(x, None, v)", "put(x, True, v)",
        ],
        "NumPy has no complex32": ["view_as_complex"],
        "dtypes are checked although there are no elements": [
            "cholesky", "lu_solve", "svd", "linalg.det", "linalg.cholesky", "linalg.cholesky_ex", "linalg.eigh",
            "linalg.eigvalsh",
            "linalg.lu_solve", "linalg.solve_triangular", "linalg.pinv:singular", "linalg.svd", "linalg.svdvals", "gather",
            "nn.functional.adaptive_avg_pool1d",
        ],
        "of a number PyTorch has the largest, though complex numbers have none": ["cummax", "cummin", "masked.median"],
        "all operands must have one dtype": [
            "nn.functional.linear_cross_entropy:chunked", "nn.functional.linear_cross_entropy:chunked_none",
            "nn.functional.conv_transpose1d", "nn.functional.conv_transpose2d", "nn.functional.conv3d",
        ],
        "running statistics of bools": ["nn.functional.instance_norm"],
        "logarithm of the sigmoid of complex numbers": ["nn.functional.soft_margin_loss"],
        "indices that are no integers": ["nn.functional.embedding_bag"],
    },
    "accepted": {
        "operands of several dtypes are promoted": [
            "allclose", "_softmax_backward_data", "nn.functional.embedding_bag", "nn.functional.instance_norm",
            "nn.functional.multi_head_attention_forward", "nn.functional.gaussian_nll_loss", "L.einsum('i, i->', x, v)",
        ],
        "other dtypes of indices, labels and conditions are accepted": [
            "index_fill", "index_copy", "put", "take", "narrow", "where",
            "nn.functional.one_hot", "F.one_hot(x)", "F.embedding_bag(x.abs(), L.zeros(300, 2), v.abs()*0)",
            "nn.functional.nll_loss", "nn.functional.cross_entropy", "nn.functional.multilabel_margin_loss",
            *[f"nn.functional.linear_cross_entropy{v}" for v in ("", ":chunked", ":chunked_none")],
        ],
        "bools, integers, 16-bit floats and complex numbers are accepted": [
            "complex", "polar", "L.complex(x, v)", "L.polar(x, v)", "gradient", "isin", "L.isin(x, v)", "linalg.vander",
            "nanmean",
            "nn.functional.margin_ranking_loss", "nn.functional.tanhshrink", "nn.functional.pdist",
            "nn.functional.poisson_nll_loss", "pinverse", "linalg.pinv", "linalg.pinv:singular",
            *[f"mvlgamma:mvlgamma_p_{p}" for p in (1, 3, 5)],
            *[f"masked.{name}" for name in ("amax", "amin", "var", "std", "logaddexp", "logsumexp")],
            "x.nanmean(0, dtype=v.dtype)",
        ],
    },
}  # fmt: skip


def put(x, key, value):
    x[key] = value
    return x


def call(library, text, a, b):
    """What a call gives for two dtypes: [(dtype, shape)], or the text of the error."""
    x, v = (library.tensor(values, dtype=getattr(library, d)) for values, d in (([0, 1, 1, 0, 1], a), ([1, 1, 0, 1, 1], b)))
    names = {"L": library, "F": library.nn.functional, "x": x, "v": v, "put": put, "nan": math.nan, "abs": abs}
    names |= {"m": library.tensor([True, False, True, True, False]), "i": library.tensor([0, 2, 3])}
    result = outcome(eval, text, names)
    if isinstance(result, str):
        return result
    return described(result if isinstance(result, tuple | list) else [result])


def call_differences(text):
    """{kind: (dtypes, PyTorch's outcome, ours)} of the first pair of dtypes that differs so."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in itertools.product(DTYPES, DTYPES):
            theirs, got = (call(library, text, a, b) for library in (torch, tg))
            if differ(theirs, got) and (kind := kind_of(theirs, got)):
                found.setdefault(kind, (a, b, theirs, got))
    return found


def known(title):
    return {kind for kind, titles in KNOWN.items() for names in titles.values() if title in names}


@pytest.mark.parametrize("text", CALLED)
def test_calls(text):
    found = call_differences(text)
    assert found.keys() == known(text), found


OPERATIONS = operations()


@pytest.mark.parametrize("title", some(OPERATIONS))
def test_samples(title):
    found = differences(OPERATIONS[title], in_dtypes)
    assert found.keys() == known(title), found


def test_known_differences_are_of_what_is_run():
    assert {name for titles in KNOWN.values() for names in titles.values() for name in names} <= {*CALLED, *OPERATIONS}

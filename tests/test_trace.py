"""The law of traces: the program noted while a function runs on some inputs gives on others what the function gives there.

`law` traces, replays with the NumPy forwards and compares; it returns why the trace had to stop, or None.
"""

import csv
import importlib
import math
import pathlib
import warnings

import everyday
import numpy as np
import pytest
import view_programs
from test_distributions import CONTINUOUS, family
from test_layers import LAYERS
from test_optim import ADAFACTOR, CASES

import tapegrad as tg
from tapegrad import compat, func, nn, optim, testing
from tapegrad.core import alias, record
from tapegrad.core.op import TABLE, Places
from tapegrad.core.program import Ref
from tapegrad.core.trace import Trace

F, L, D = nn.functional, tg.linalg, tg.float64
RNG = np.random.default_rng(0)


def flat(value):
    """The tensors in nested results, in order."""
    if isinstance(value, tg.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [t for v in value for t in flat(v)] if isinstance(value, list | tuple | type({}.values())) else []


def array(t):
    return np.array(t.detach().numpy())


def close(got, wanted):
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind in "fc" and wanted.size:
        eps = float(np.finfo(wanted.dtype).eps)
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(got, wanted, rtol=1e3 * eps, atol=1e3 * eps * float(scale))
    else:
        np.testing.assert_array_equal(got, wanted)


def interpreted(instruction, operands, params):
    half = record.half_of(operands) if instruction.op.wide else None
    return record.forward_of(instruction.op, operands, params, half)


class Replay:
    """A traced call, and what it does to state, to be run again."""

    def __init__(self, function, tensors):
        with Trace() as trace:
            for t in tensors:
                trace.argument(t._d)
            self.outputs = flat(function(*tensors))
            results = [self._result(trace, t) for t in self.outputs if trace.stopped is None]
            states = [] if trace.stopped else list(trace.captured.values())
            self.writes = [(c.owner(), Ref(trace.numbers[id(now)])) for c in states if (now := c.now()) is not c.array]
        self.stopped, self.trace, self.count = trace.stopped, trace, len(results)
        if trace.stopped is None:
            self.program = trace.program.pruned([*results, *[ref for _, ref in self.writes]])

    @staticmethod
    def _result(trace, t):
        alias.sync(t)
        return Ref(trace.number_of(t, t._d))

    def __call__(self, *arrays):
        environment = dict(zip(self.program.arguments, arrays, strict=True)) | self.program.constants
        states = {c.source.number: c.now() for c in self.trace.captured.values()}
        for s in self.program.sources:
            value = states.get(s.number) if s.number in states else s.read()
            environment[s.number] = value if isinstance(value, np.ndarray) else np.asarray(value, s.meta[1])
        found = self.program.run(environment, interpreted)
        for (owner, _), value in zip(self.writes, found[self.count :], strict=True):
            if isinstance(owner, alias.Store):
                owner.replace((), np.array(value))
            else:
                with tg.no_grad():
                    alias.assign(owner, record.wrap(np.array(value)), "")
        return found[: self.count]


def law(function, given, others):
    """Why a trace of function(*tensors) on some arrays stops; else its program gives on others what the function gives."""
    tg.manual_seed(0)
    wanted = [array(t) for t in flat(function(*map(tg.tensor, others)))]
    tg.manual_seed(0)
    plain = [array(t) for t in flat(function(*map(tg.tensor, given)))]
    tg.manual_seed(0)
    replay = Replay(function, [tg.tensor(a) for a in given])
    for t, a in zip(replay.outputs, plain, strict=True):
        close(array(t), a)
    if replay.stopped is not None:
        return replay.stopped[0]
    tg.manual_seed(0)
    for got, a in zip(replay(*map(np.array, others)), wanted, strict=True):
        close(np.asarray(got), a)
    return None


def moved(a, k=1):
    """Another array of the kind: its elements elsewhere, and a little smaller."""
    return np.roll(a if a.dtype.kind in "biu" else a * (1 - k / 16), k)


def shrunk(a):
    """Another array of the kind, of the same form (symmetric, increasing, ..)."""
    return a if a.dtype.kind in "biu" else a * (1 + 1 / 16)


def holds(function, *given):
    """The law for the first inputs of the kind that the function takes."""
    for change in (moved, shrunk):
        others = [change(a) for a in given]
        try:
            function(*map(tg.tensor, others))
        except (RuntimeError, ValueError, IndexError):
            continue
        return law(function, given, others)
    raise AssertionError("no other inputs")


def derived(function, order):
    """function(*xs) with vjps of up to that order, for seeds made of the results."""

    def run(*xs):
        xs = [x.detach().requires_grad_(x.is_floating_point() or x.is_complex()) for x in xs]
        results = [flat(function(*xs))]
        for k in range(order):
            ys = [y for y in results[-1] if y.requires_grad]
            leaves = [x for x in xs if x.requires_grad]
            if not ys or not leaves:
                break
            seeds = [y.detach().cos() for y in ys]
            gs = tg.autograd.grad(ys, leaves, seeds, create_graph=k + 1 < order, allow_unused=True, retain_graph=True)
            results.append([tg.zeros_like(x) if g is None else g for g, x in zip(gs, leaves, strict=True)])
        return results

    return run


# -------------------------------------------------------------------------------------------------------------- records

NOT_HERE = {"function", "while", "scan", "cond"}  # Python code of the user's; bodies, which test_control.py traces


@pytest.mark.parametrize("name", sorted(set(TABLE) - NOT_HERE))
def test_record(name):
    """Each record with its derivatives, which the traced reverse passes run as records, too."""
    op = TABLE[name]
    samples = [s for s in testing.samples_of(op) if any(isinstance(a, np.ndarray) for a in s.arrays)]
    smooth = [s for s in samples if s.smooth]
    for order, sample in ((2, (smooth or samples)[0]), (1, samples[-1])):
        places = [i for i, a in enumerate(sample.arrays) if isinstance(a, np.ndarray)]

        def call(*xs, sample=sample, places=places):
            arguments = list(sample.arrays)
            for i, x in zip(places, xs, strict=True):
                arguments[i] = x
            return testing.call(op, arguments, as_constants(sample.params))

        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            assert holds(derived(call, order), *[sample.arrays[i] for i in places]) is None


def as_constants(params):
    """Parameters with arrays that a trace takes for constants."""
    if isinstance(params, tuple | list):
        return type(params)([as_constants(p) for p in params])
    if isinstance(params, Places):
        return Places(as_constants(params.at))
    return record.fixed(params)._d if isinstance(params, np.ndarray) else params


# ------------------------------------------------------------------------------------------------------------ functions

X, Y = RNG.uniform(0.2, 0.9, (4, 4)), RNG.uniform(0.2, 0.9, (4, 4))
I, M = RNG.integers(0, 4, (4, 4)), RNG.uniform(size=(4, 4)) < 0.5
S = X @ X.T + 2 * np.eye(4)
GIVEN = {"x": X, "y": Y, "i": I, "m": M, "s": S, "v": X[0], "w": Y[0], "j": I[0], "k": np.array([0, 2, 1, 3]), "z": X + 1j * Y,
         "b": np.stack([S, S + 1]), "c": RNG.normal(size=(2, 3, 6, 6)), "h": X.astype(np.float32), "t": RNG.normal(size=(2, 3, 4))}  # fmt: skip
# Calls of the functions of api_ops.tsv (how often public programs use them) on GIVEN: in the names of `tg`.
CALLS = """
cat([x, y]); stack([x, y], 1); sum(x, 0); x.to(tg.float32); mean(x); x.unsqueeze(1); x.view(2, 8); x.detach() * y
zeros_like(x) + x; x.max(); x.max(1); max(x, y); x.reshape(-1); pow(x, y); x ** 2; 2 ** x; x.squeeze(); abs(x); exp(x); x.clone()
sqrt(x); x.flatten(); x.numel() * x; x.expand(2, 4, 4); x + y; add(x, y, alpha=2); x.float(); x.requires_grad_() * y
clamp(x, 0.3, 0.7); clamp(x, min=y); clamp(x, max=y); x.clamp_(0.3); min(x, 1); x.transpose(0, 1); all(m); all(m, 1); eye(4) + x
x.t(); norm(x); norm(x, 1, 1); norm(x, 0); norm(x, 'nuc'); x.mul(y); x.mul_(y); x.repeat(2, 1); ones_like(x) * x; sigmoid(x)
diag(x); diag(v); relu(x - 0.5); x.split(2); x.split([1, 3], 1); x @ y; matmul(b, x); linspace(0, 1, 4) + v; log(x); cos(x)
any(m); any(m, 0); tanh(x); sin(x); x.T.contiguous(); randn_like(x) * x; rand_like(x) + x; x.permute(1, 0); x.view_as(y)
softmax(x, 1); sign(x - 0.5); sort(x); sort(x, 0, descending=True); x.expand_as(b); x / y; x // 0.3; einsum('ij,jk->ik', x, y)
einsum('bij,ij->b', b, x); where(m, x, y); where(x > y, x, 0.0); x.clone().fill_(2.0) + x; x.clone().zero_() + x; x.long()
x.double(); diagonal(x); dot(v, w); tril(x); triu(x, 1); flip(x, [0]); prod(x); prod(x, 1); linalg.qr(x); x == y
nn.functional.softplus(x); x - y; rsub(x, y); std(x); std(x, 1); linalg.eigh(s)[0]; argmax(x); argmax(x, 1); inverse(s)
linalg.inv(b); linalg.solve(s, v); cholesky(s); x.type_as(h); isnan(x); isfinite(x); x.new_zeros(4, 4) + x
logsumexp(x, 1); index_select(x, 0, j); linalg.solve_triangular(s, x, upper=True); square(x)
nn.functional.cross_entropy(x, j); nn.functional.cross_entropy(x, j, label_smoothing=0.1, weight=v)
nn.functional.cross_entropy(x, j, ignore_index=1); nn.functional.cross_entropy(x, y); log1p(x); full_like(x, 2.0) * x; svd(x)[1]
linalg.svd(x)[1]; argsort(x); mm(x, y); clamp_min(x, 0.5); clamp_max(x, 0.5); reciprocal(x); nn.functional.pad(x, (1, 1))
nn.functional.pad(t, (1, 1), mode='reflect'); nn.functional.pad(t, (1, 1), mode='circular'); meshgrid(v, w, indexing='ij')
cumsum(x, 0); masked_fill(x, m, 0.0); x.masked_fill_(m, 2.0); outer(v, w); nn.functional.linear(x, y, v)
scatter(x, 1, i, y); scatter(x, 1, i, 2.0); scatter(x, 0, i, y, reduce='multiply'); x > y; log_softmax(x, 1); x.new_ones(4) * x
addcmul(x, y, x); x < y; var(x); var_mean(x, 1); chunk(x, 2); repeat_interleave(x, 2, 0); repeat_interleave(x, 2); bmm(b, b)
topk(x, 2); argmin(x, 0); isclose(x, y); trace(x); logdet(s); x.uniform_() + y; x.normal_(); cholesky_solve(x, s)
x.new_full((2,), 3.0) * x.sum(); nn.functional.max_pool2d(c, 2); tan(x); nn.functional.one_hot(i, 5); acos(x); mv(x, v)
narrow(x, 0, 1, 2); neg(x); scatter_add(x, 0, i, y); isinf(x); addcdiv(x, x, y); x.bool(); nn.functional.nll_loss(x, j)
floor(4 * x); linalg.eigvalsh(s); cdist(x, y); cdist(x, y, 1.0); x.select(0, 1); atan2(x, y); erf(x); h.half(); h.bfloat16().float()
x.reshape_as(b[0]); nn.functional.conv2d(c, c[:, :, :2, :2]); atan(x); nn.functional.dropout(x, 0.5); tril_indices(4, 4)[0] * v.sum()
nn.functional.elu(x - 0.5); conj(z); lgamma(x); x.unbind(0); round(3 * x); sinh(x); tile(x, (2,)); median(x); median(x, 1)
masked_scatter(x, m, y); det(s); linalg.slogdet(s); slogdet(s); rsqrt(x); expm1(x); x <= y; nn.functional.conv1d(t, t[:, :, :2])
nn.functional.interpolate(c, scale_factor=2, mode='bilinear'); nn.functional.interpolate(c, (4, 5)); roll(x, 1, 0)
nn.functional.interpolate(c, scale_factor=0.5, mode='area'); amax(x, 1); amin(x); x.int(); linalg.lstsq(x, y).solution; m & ~m
logical_and(m, x > 0.5); nn.functional.batch_norm(x, None, None, training=True); nn.functional.binary_cross_entropy(x, y)
tensordot(x, y, 1); m | (x > 0.5); cartesian_prod(v, w); kron(x, y); nn.functional.mse_loss(x, y)
nn.functional.binary_cross_entropy_with_logits(x, y); movedim(b, 0, 2); broadcast_tensors(x, v); x >= y; log10(x)
nan_to_num(x / (x - x)); x.unflatten(0, (2, 2)); cov(x); cov(x, aweights=v); corrcoef(x); x.byte(); as_strided(x, (2, 2), (1, 2)); addr(x, v, w)
count_nonzero(m); fft.fft(x); fft.rfft(x); fft.irfft(z); fft.ifft(z); flipud(x); hstack([x, y]); vstack([x, y])
linalg.vector_norm(x, 3); nn.functional.leaky_relu(x - 0.5); x != y; asin(x); ceil(x); concat([x, y], 1); ger(v, w)
minimum(x, y); maximum(x, y); nextafter(x, y); nn.functional.avg_pool2d(c, 3, 2, 1, count_include_pad=False)
nn.functional.avg_pool2d(c, 2, ceil_mode=True, stride=4); nn.functional.adaptive_avg_pool2d(c, 4)
nn.functional.adaptive_max_pool2d(c, 4); nn.functional.conv3d(c[None], c[None, :, :, :2, :2].transpose(1, 2)[:, :2])
nn.functional.scaled_dot_product_attention(b, b, b); nn.functional.scaled_dot_product_attention(b, b, b, is_causal=True)
nn.functional.scaled_dot_product_attention(b, b, b, m, 0.5); remainder(x, 0.3); searchsorted(sort(v)[0], x); view_as_complex(x.view(4, 2, 2))
view_as_real(z); pinverse(x); linalg.pinv(x, rtol=1e-3); logaddexp(x, y); clip(x, 0.3); lerp(x, y, 0.3)
nn.functional.cosine_similarity(x, y); nn.functional.layer_norm(x, (4,)); nn.functional.selu(x); nn.functional.silu(x)
x.unfold(0, 2, 1); nn.functional.unfold(c, 2); broadcast_to(v, (4, 4)); erfinv(x); linalg.matrix_exp(x); inner(x, y); index_add(x, 0, j, y)
x.index_add_(0, k, y); x.adjoint(); column_stack([v, w]); linalg.matrix_norm(x); linalg.matrix_norm(s, 2); fmod(x, 0.3)
quantile(x, 0.3); quantile(x, v, 0); nanquantile(x, 0.3); nanmean(x); dist(x, y); erfc(x); x.exponential_(); x.put(j, v)
x.put_(k, v, accumulate=True); x.random_(9); atleast_1d(v); atleast_2d(v); cosh(x); logit(x); x.ravel(); addmm(x, x, y)
block_diag(x, y); complex(x, y); cumulative_trapezoid(x); trapz(x, y); imag(z); real(z); linalg.vecdot(x, y); linalg.lu_factor(x)
lu_solve(x, *linalg.lu_factor(s)); linalg.lu(x); lu_unpack(*linalg.lu_factor(s)); mvlgamma(x + 3, 2); nn.functional.glu(x)
nn.functional.logsigmoid(x); nn.functional.normalize(x); nn.functional.normalize(x, 0.0); nn.functional.smooth_l1_loss(x, y)
trapezoid(x); absolute(x); addmv(v, x, w); diff(x); index_put(x, (j,), y); index_put(x, (j, k), v, accumulate=True); isneginf(x)
isposinf(x); kthvalue(x, 2); logical_not(m); swapaxes(x, 0, 1); arccos(x); arcsin(x); arctan(x); baddbmm(b, b, b); i & 3
cholesky_inverse(s); copysign(x, y - 0.5); hypot(x, y); linalg.eigvals(x).abs(); linalg.matrix_rank(x); linalg.multi_dot([x, y, x])
linalg.matrix_power(x, 3); linalg.matrix_power(x, 0); nn.functional.bilinear(v, w, b); nn.functional.celu(x)
nn.functional.conv_transpose2d(c, c[:, :, :2, :2].transpose(0, 1)[:, :2].transpose(0, 1)[:, :, :2]) if False else x
nn.functional.gelu(x); nn.functional.kl_div(x.log(), y); nn.functional.max_pool1d(t, 2); polar(x, y); special.expit(x)
triangular_solve(x, s); linalg.cond(s); linalg.cond(s, 1); linalg.householder_product(x, v); ormqr(x, v, y); svd_lowrank(x, 2)[1]
pca_lowrank(x, 2)[1]; x[1]; x[1:3, ::2]; x[j]; x[:, j]; x[j, k]; x[j[0]]; x[i[0, 0], 1:]; x[None, ..., 0]; x[[0, 2]]; x[-j]
x.scatter_reduce(0, i, y, 'amax'); x.scatter_reduce(0, i, y, 'prod'); x.scatter_reduce(0, i, y, 'mean', include_self=False)
x.index_reduce(0, j, y, 'amin'); x.index_reduce(0, j, y, 'prod'); gather(x, 1, i); take(x, j); take_along_dim(x, i, 1)
x.index_fill(0, j, 2.0); x.index_copy(0, k, y); gradient(v); combinations(v); vander(v); nn.functional.pdist(x)
nn.functional.embedding(i, x); nn.functional.embedding(i, x, scale_grad_by_freq=True); nn.functional.embedding(i, x, max_norm=0.5)
nn.functional.embedding_bag(i, x); nn.functional.embedding_bag(i, x, mode='max', padding_idx=1)
nn.functional.embedding_bag(j, x, k.sort()[0], mode='sum', per_sample_weights=v); nn.functional.grid_sample(c, c[:, :2].permute(0, 2, 3, 1))
nn.functional.grid_sample(c, c[:, :2].permute(0, 2, 3, 1), 'bicubic', 'reflection'); nn.functional.affine_grid(t[:, :2, :3], (2, 1, 3, 3))
nn.functional.max_unpool2d(*nn.functional.max_pool2d(c, 2, return_indices=True), 2)
nn.functional.fractional_max_pool2d(c, 2, 3); nn.functional.gumbel_softmax(x); nn.functional.gumbel_softmax(x, hard=True)
nn.functional.multilabel_margin_loss(x, i - 1); nn.functional.multi_margin_loss(x, j); nn.functional.gaussian_nll_loss(x, y, x)
nn.functional.ctc_loss(x[:, None].log_softmax(2), j[None, :2], (4,), (2,)); nn.functional.ctc_loss(b.log_softmax(2).transpose(0, 1), i[:2, :2], j[:2] + 1, k[1:3])
stft(x.ravel(), 4, return_complex=True, window=v); istft(stft(x.ravel(), 4, return_complex=True, window=v), 4, window=v)
nn.functional.rrelu(x - 0.5); nn.functional.alpha_dropout(x, 0.5, True); nn.functional.feature_alpha_dropout(c, 0.5, True)
normal(x, y); randn(4) * x; rand(4) + x; randint(0, 9, (4,)) * x; randperm(4) + x; normal(0.0, 1.0, (4,)) * x; x.geometric_(0.3)
x.cauchy_(); x.log_normal_(); x.bernoulli_(0.3); empty(4, 4).bernoulli_(0.5) * x; sum(tg.tensor([1.0, 2.0]) * v[:2])
x.triu_(); x.t_() * 1; x.copy_(y); x.data.mul_(2) + x; x.clamp_(min=y); add(x, y, out=empty_like(x)); x.index_fill_(0, j, 1.0)
x.scatter_add_(0, i, y); x.masked_scatter_(m, y); x.index_put_((j,), y); x.relu_(); special.chebyshev_polynomial_t(x, 3); i.bool() & m
x.real * 1; bitwise_and(i, 3); isin(i, j); bucketize(x, v.sort()[0]); unravel_index(j, (2, 2)); x.sum_to_size(1, 4); heaviside(x, y)
"""
# Functions whose results depend on values in ways that no program can follow, and what the trace says.
STOPS = {
    "x.sum().item() * x": "item()", "x.tolist(); x": "tolist()", "tg.tensor(x.numpy())": "numpy()", "x[0, 0].item() * x": "item()",
    "x if x.sum() > 0 else y": "bool()", "nonzero(m)": "nonzero()", "argwhere(m)": "nonzero()", "x[m]": "a mask as an index",
    "masked_select(x, m)": "a mask as an index", "unique(i)": "unique()", "unique_consecutive(i)": "unique_consecutive()",
    "repeat_interleave(x, j, 0)": "repeat_interleave()", "bincount(j)": "bincount()", "where(m)": "a mask as an index",
    "bernoulli(x)": "random numbers", "multinomial(x, 2)": "random numbers", "poisson(x)": "random numbers",
    "nn.functional.rrelu(x, training=True)": "random numbers", "nn.functional.one_hot(i)": "one_hot()", "histc(x, 4)": "histogram()",
    "linalg.cholesky_ex(s)": "linalg.cholesky_ex()", "x.to_sparse().values()": "to_sparse()", "x[j[0]:]": "use as an index",
    "full_like(x, x[0, 0])": "full_like()", "linspace(0, x[0, 0], 4)": "item()", "manual_seed(0).initial_seed() * x": "seeding",
    "allclose(x, y) * x": "allclose()", "equal(x, y) * x": "equal()", "str(x)": "printing", "tg.tensor([x[0, 0], x[0, 1]])": "tensor()",
    "linalg.lstsq(b[0, :, :2], x, driver='gelsd').residuals": "lstsq()", "tensor_split(x, k[1:2])": "tolist()", "geqrf(x)": "geqrf()",
}  # fmt: skip
NAMES = {**vars(tg), "tg": tg, "True": True, "False": False}


def call_of(text):
    """A function of the arrays of GIVEN that a call names, and these."""
    code = compile(text.split("; ")[-1], text, "eval")
    names = [n for n in code.co_names if n in GIVEN]

    def call(*xs):
        found = {**NAMES, **dict(zip(names, [x.clone() if x.is_leaf else x for x in xs], strict=True))}
        for before in text.split("; ")[:-1]:
            eval(before, found)
        return eval(code, found)

    return call, [GIVEN[n] for n in names]


CALLS = [call.strip() for line in CALLS.strip().splitlines() for call in line.split("; ")]


@pytest.mark.parametrize("text", CALLS)
def test_function(text):
    call, given = call_of(text)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert holds(derived(call, 2), *given) is None


@pytest.mark.parametrize("text", STOPS)
def test_what_stops_a_trace(text):
    call, given = call_of(text)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        replay = Replay(call, [tg.tensor(a) for a in given])
    assert replay.stopped is not None
    reason, (file, line) = replay.stopped
    assert STOPS[text] in reason
    assert line > 0

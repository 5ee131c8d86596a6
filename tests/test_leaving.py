"""Values leave tensors through `programs.tracing` alone: a trace that reads them by another way would make them constants.

The law, `leak`, traces a function with decoys in the tensors: whatever reads values past the operations of the table makes
two traces differ. A trace may stop instead.
"""

import array
import ast
import copy
import io
import json
import math
import operator
import pathlib
import pickle
import random
import re
import warnings

import numpy as np
import pytest
from decoys import leak, traced
from numpy_cases import FFT, LINALG, ROUTINES, Out, Refused
from test_trace import MODULES, NOT_HERE, as_constants, call_of, calls, derived, flat, shrunk

import tapegrad as tg
from tapegrad import distributions as dist
from tapegrad import func, nn, optim
from tapegrad.core import record
from tapegrad.core.op import TABLE
from tapegrad.distributions import constraints, transforms
from tapegrad.func import tree
from tapegrad.nn import functional as F
from tapegrad.nn.utils import rnn
from tapegrad.programs.tracing import examined

X, V = np.array([[0.5, 1.5, 2.5], [3.5, 4.5, 0.25]]), np.array([0.3, 1.2, 2.1])
AT, K, MASK, ONE, N = np.array([0, 2, 1]), np.array(1), np.array([True, False, True]), np.array(2.0), np.array([2, 1, 2])
S = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 1.5]])


def saved(obj):
    file = io.BytesIO()
    tg.save(obj, file)
    return file.tell()


def stale(read):
    """Reads a view of a constant that has been written over."""

    def run(x):
        z = tg.zeros(2, 3)
        v = z.view(3, 2)
        z.add_(x)
        return read(v)

    return run


def written_by_numpy(x):
    a = np.zeros((2, 3))
    t = tg.from_numpy(a)
    a[:] = x.detach().numpy()
    return t * 2


class Twice(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return tg.as_tensor(np.asarray(x.detach()) * 2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Branching(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.up = bool((x.detach() > 1).all())
        return x * 2 if ctx.up else x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 2 if ctx.up else g * 3


WEIGHTS = nn.Linear(3, 3).double()
AVERAGE = optim.swa_utils.AveragedModel(WEIGHTS)


def averaging(x):
    AVERAGE.update_parameters(WEIGHTS)
    return AVERAGE(x)


def stepped(make, clip=False):
    """A step of an optimizer, the second one, and its state."""
    p = nn.Parameter(tg.tensor(X))
    opt = make([p])

    def step(x):
        opt.zero_grad()
        (p * p * x).sum().backward()
        if clip:
            nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
        opt.step()
        return p.detach() * 1

    step(tg.tensor(X))
    return step, [p, *[t for t in opt.state[p].values() if isinstance(t, tg.Tensor)]]


def scaled():
    p = nn.Parameter(tg.tensor(X))
    opt, scaler = optim.SGD([p], 0.1), tg.amp.GradScaler("cpu", init_scale=4.0)

    def step(x):
        opt.zero_grad()
        scaler.scale((p * p * x).sum()).backward()
        scaler.step(opt)
        scaler.update()
        return p.detach() * 1

    return step, [p, scaler._scale, scaler._growth_tracker]


def closed():
    p = nn.Parameter(tg.tensor(X))
    opt = optim.LBFGS([p], max_iter=2)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    def step(x):
        opt.step(closure)
        return p.detach() * 1

    return step, [p]


def plateaus():
    opt = optim.SGD([nn.Parameter(tg.ones(1))], 0.1)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)

    def step(x):
        for k in range(3):
            schedule.step(x.sum() * k)
        return x * opt.param_groups[0]["lr"]

    return step, []


def masked_dense(x):
    (x * 1).to_sparse()
    return x


PYTHON = {
    "item": (lambda x: x[0, 0].item(), X),
    "float": (lambda x: float(x[0, 0]), X),
    "int": (lambda x: int(x[0, 0]), X),
    "complex": (lambda x: complex(x[0, 0]), X),
    "bool": (lambda x: bool(x[0, 0]), X),
    "index": (lambda k: [1, 2, 3][k], K),
    "operator.index": (lambda k: operator.index(k), K),
    "range": (lambda k: list(range(k)), K),
    "floor": (lambda x: math.floor(x[0, 0]), X),
    "ceil": (lambda x: math.ceil(x[0, 0]), X),
    "abs": (lambda x: abs(x), X),
    "not": (lambda x: not x[0, 0], X),
    "and": (lambda x: x[0, 0] and 3, X),
    "in": (lambda x: 2.5 in x, X),
    "in a list": (lambda x: x[0, 0] in [1.0, 2.0], X),
    "index of a list": (lambda x: [1.0, 2.0, x[0, 0]].index(x[0, 0]), X),
    "count": (lambda x: [1.0, 0.5].count(x[0, 0]), X),
    "list equality": (lambda x: [x[0, 0]] == [0.5], X),
    "sorted": (lambda v: sorted(v), V),
    "min": (lambda v: min(v), V),
    "max": (lambda v: max(v), V),
    "sum": (lambda v: sum(v), V),
    "max by": (lambda v: max([1, 2], key=lambda k: v[k]), V),
    "any": (lambda v: any(v), V),
    "all": (lambda v: all(v), V),
    "filter": (lambda v: list(filter(None, v)), V),
    "enumerate": (lambda v: [(i, t) for i, t in enumerate(v)], V),
    "str": (str, X),
    "repr": (repr, X),
    "format": (lambda x: f"{x[0, 0]:.2f}", X),
    "format, all": (lambda x: f"{x}", X),
    "percent": (lambda x: f"{x[0, 0]:.2f}", X),
    "repr of a list": (lambda x: repr([x]), X),
    "hash": (lambda x: hash(x) == hash(x), X),
    "as a key": (lambda x: {x: 1}[x], X),
    "set": (lambda x: len({x, x}), X),
    "tolist": (lambda x: x.tolist(), X),
    "numpy": (lambda x: x.numpy(), X),
    "to_numpy": (lambda x: x.to_numpy(), X),
    "numpy, forced": (lambda x: x.numpy(force=True), X),
    "list": (lambda v: list(v), V),
    "json": (lambda x: json.dumps(x.tolist()), X),
    "math.sqrt": (lambda x: math.sqrt(x[0, 0]), X),
    "math.isclose": (lambda x: math.isclose(x[0, 0], 0.0), X),
    "math.fsum": (lambda v: math.fsum(v), V),
    "math.dist": (lambda v: math.dist(v, v), V),
    "math.comb": (lambda k: math.comb(4, k), K),
    "random.Random": (lambda x: random.Random(x[0, 0].item()).random(), X),
    "random.randrange": (lambda k: random.Random(0).randrange(k), K),
    "random.choices": (lambda v: random.Random(0).choices(range(3), v), V),
    "copy": (lambda x: copy.copy(x), X),
    "deepcopy": (lambda x: copy.deepcopy(x) * 2, X),
    "pickle": (lambda x: pickle.dumps(x), X),
    "pickle of a list": (lambda x: pickle.dumps({"x": [x]}), X),
    "save": (saved, X),
    "save of a dict": (lambda x: saved({"x": x}), X),
    "dlpack": (lambda x: np.from_dlpack(x), X),
    "from_dlpack": (lambda x: tg.from_dlpack(x), X),
    "memoryview": (lambda x: memoryview(x.numpy()), X),
    "bytes": (lambda k: bytes(k), K),
    "bytearray": (lambda i: bytearray(i), AT),
    "array": (lambda v: array.array("d", v), V),
    "storage": (lambda x: x.storage()[0], X),
    "untyped storage": (lambda x: bytes(x.untyped_storage()), X),
    "storage to list": (lambda x: x.storage().tolist(), X),
    "data_ptr": (lambda x: x.data_ptr() == x.data_ptr(), X),
    "stale tolist": (stale(lambda v: v.tolist()), X),
    "stale bool": (stale(lambda v: bool(v[0, 0] > 0)), X),
    "stale repr": (stale(repr), X),
    "stale numpy": (stale(np.asarray), X),
    "stale mask": (stale(lambda v: tg.nonzero(v)), X),
    "apply_": (lambda x: (x * 1).apply_(lambda e: e + 1), X),
    "map_": (lambda x: (x * 1).map_(x, lambda a, b: a + b), X),
    "map2_": (lambda x: (x * 1).map2_(x, x, lambda a, b, c: a + b + c), X),
    "resize_": (lambda x: (x * 1).resize_(3, 3), X),
    "share_memory_": (lambda x: (x * 1).share_memory_() * 2, X),
    "NumPy's memory": (written_by_numpy, X),
    "is_nonzero": (lambda x: x[0, 0].is_nonzero(), X),
    "equal": (lambda x: tg.equal(x, x), X),
    "allclose": (lambda x: tg.allclose(x, x), X),
    "is_same_size": (lambda x: x.is_same_size(x), X),
    "testing": (lambda x: tg.testing.assert_close(x, x), X),
    "match": (lambda x: {0.5: 1}.get(x[0, 0].item()), X),
    "Function with NumPy": (lambda x: Twice.apply(x) * 1, X),
    "Function that branches": (lambda x: Branching.apply(x) * 1, X),
}
GIVEN = {
    "slice": (lambda x, k: x[:, k:], X, K),
    "slice, end": (lambda x, k: x[:, :k], X, K),
    "slice, step": (lambda x, k: x[:, ::k], X, K),
    "a number": (lambda x, k: x[k], X, K),
    "two numbers": (lambda x, k: x[k, k], X, K),
    "an index": (lambda x, i: x[:, i], X, AT),
    "number and array": (lambda x, k, i: x[k, i], X, K, AT),
    "mask": (lambda x, m: x[:, m], X, MASK),
    "0-dim mask": (lambda x, m: x[m[0]], X, MASK),
    "uint8": (lambda x, m: x[:, m], X, MASK.astype(np.uint8)),
    "list with tensors": (lambda x, k: x[:, [0, k]], X, K),
    "nested list": (lambda x, k: x[[[0, k]]], X, K),
    "set a number": (lambda x, k: operator.setitem(y := x * 1, k, 0.0) or y, X, K),
    "set an index": (lambda x, i: operator.setitem(y := x * 1, (slice(None), i), 0.0) or y, X, AT),
    "set a mask": (lambda x, m: operator.setitem(y := x * 1, (slice(None), m), 0.0) or y, X, MASK),
    "set a mask to values": (lambda x, m: operator.setitem(y := x * 1, (slice(None), m), x[:, :2]) or y, X, MASK),
    "set a slice": (lambda x, k: operator.setitem(y := x * 1, (slice(None), slice(k, None)), 0.0) or y, X, K),
    "set to a value": (lambda x, o: operator.setitem(y := x * 1, 0, o) or y, X, ONE),
    "full": (lambda x, o: tg.full((3,), o), X, ONE),
    "full, dtype": (lambda x, o: tg.full((3,), o, dtype=tg.int64), X, ONE),
    "full_like": (lambda x, o: tg.full_like(x, o), X, ONE),
    "new_full": (lambda x, o: x.new_full((2,), o), X, ONE),
    "new_tensor": (lambda x, o: x.new_tensor(o), X, ONE),
    "tensor": (lambda x: tg.tensor(x) * 2, X),
    "tensor of tensors": (lambda x: tg.tensor([x[0, 0], 1.0]), X),
    "as_tensor": (lambda x: tg.as_tensor([x[0, 0]]), X),
    "scalar_tensor": (lambda o: tg.scalar_tensor(o), ONE),
    "asarray": (lambda x: tg.asarray(x, copy=True), X),
    "fill_": (lambda x, o: (x * 1).fill_(o), X, ONE),
    "masked_fill": (lambda x, m, o: x.masked_fill(m, o), X, MASK, ONE),
    "zeros": (lambda k: tg.zeros(k), K),
    "zeros of two": (lambda k: tg.zeros(2, k), K),
    "ones": (lambda k: tg.ones((k,)), K),
    "rand": (lambda k: tg.rand(k), K),
    "eye": (lambda k: tg.eye(k), K),
    "arange": (lambda k: tg.arange(k), K),
    "arange of floats": (lambda o: tg.arange(0.0, o, 0.5), ONE),
    "linspace": (lambda o: tg.linspace(0, o, 3), ONE),
    "logspace": (lambda o: tg.logspace(0, o, 3), ONE),
    "linspace, steps": (lambda k: tg.linspace(0, 1, k + 1), K),
    "randperm": (lambda k: tg.randperm(k + 2), K),
    "randint": (lambda k: tg.randint(k, (2,)), K),
    "manual_seed": (lambda k: tg.manual_seed(k) and tg.rand(2), K),
    "generator": (lambda k: tg.rand(2, generator=tg.Generator().manual_seed(k)), K),
    "normal": (lambda v: tg.normal(v, v), V),
    "bernoulli": (lambda v: tg.bernoulli(v / 4), V),
    "poisson": (tg.poisson, V),
    "multinomial": (lambda v: tg.multinomial(v, 2), V),
    "uniform_": (lambda x, o: (x * 1).uniform_(0.0, o), X, ONE),
    "normal_": (lambda x, o: (x * 1).normal_(o, 1.0), X, ONE),
    "dropout": (lambda x, o: F.dropout(x, o / 4), X, ONE),
    "reshape": (lambda x, k: x.reshape(k + 1, 3), X, K),
    "view": (lambda x, k: x.view(k * 2, 3), X, K),
    "expand": (lambda x, k: x[:1].expand(k + 1, 3), X, K),
    "repeat": (lambda x, k: x.repeat(k, 1), X, K),
    "tile": (lambda x, k: x.tile((k,)), X, K),
    "narrow": (lambda x, k: x.narrow(1, k, 1), X, K),
    "select": (lambda x, k: x.select(1, k), X, K),
    "split": (lambda x, k: x.split(k, 1), X, K),
    "chunk": (lambda x, k: x.chunk(k, 1), X, K),
    "tensor_split": (lambda x, n: x.tensor_split(n, 1), X, np.array([1, 2])),
    "roll": (lambda x, k: x.roll(k, 1), X, K),
    "flip": (lambda x, k: x.flip(k), X, K),
    "transpose": (lambda x, k: x.transpose(0, k), X, K),
    "permute": (lambda x, k: x.permute(k, 0), X, K),
    "movedim": (lambda x, k: x.movedim(k, 0), X, K),
    "unsqueeze": (lambda x, k: x.unsqueeze(k), X, K),
    "squeeze": (lambda x, k: x[:, :1].squeeze(k), X, K),
    "diagonal": (lambda x, k: x.diagonal(k), X, K),
    "diag": (lambda v, k: v.diag(k), V, K),
    "sum over": (lambda x, k: x.sum(k), X, K),
    "topk": (lambda x, k: x.topk(k), X, K),
    "kthvalue": (lambda x, k: x.kthvalue(k + 1), X, K),
    "cumsum": (lambda x, k: x.cumsum(k), X, K),
    "sort": (lambda x, k: x.sort(k), X, K),
    "one_hot": (lambda i: F.one_hot(i), AT),
    "one_hot, classes": (lambda i: F.one_hot(i, 4), AT),
    "bincount": (lambda i: tg.bincount(i), AT),
    "repeat_interleave": (lambda x, n: x.repeat_interleave(n, 1), X, N),
    "pad": (lambda x, k: F.pad(x, (k, 0)), X, K),
    "clamp": (lambda x, o: x.clamp(max=o), X, ONE),
    "pow": (lambda x, o: x**o, X, ONE),
    "add, alpha": (lambda x, o: tg.add(x, x, alpha=o), X, ONE),
    "addcmul, value": (lambda x, o: tg.addcmul(x, x, x, value=o), X, ONE),
    "lerp": (lambda x, o: tg.lerp(x, x * 2, o), X, ONE),
    "norm, p": (lambda x, o: x.norm(o), X, ONE),
    "vector_norm": (lambda x, o: tg.linalg.vector_norm(x, o), X, ONE),
    "quantile": (lambda x, o: x.quantile(o / 4), X, ONE),
    "histc": (lambda x, o: tg.histc(x, 3, 0, o), X, ONE),
    "histogram, bins": (lambda b: tg.histogram(tg.tensor([0.5, 1.5]).double(), b), V),
    "histogram, weight": (lambda w: tg.histogram(tg.tensor([0.5, 1.5, 2.5]).double(), 3, weight=w), V),
    "histogramdd": (lambda b: tg.histogramdd(tg.ones(2, 1).double(), [b]), V),
    "tensordot": (lambda x, k: tg.tensordot(x, x.mT, k), X, K),
    "rot90": (lambda x, k: x.rot90(k), X, K),
    "matrix_power": (lambda s, k: tg.linalg.matrix_power(s, k), S, K),
    "pinv": (lambda s, o: tg.linalg.pinv(s, o / 10), S, ONE),
    "matrix_rank": (lambda s: tg.linalg.matrix_rank(s), S),
    "matrix_rank, tol": (lambda s, o: tg.linalg.matrix_rank(s, atol=o / 10), S, ONE),
    "lstsq": (lambda s: tg.linalg.lstsq(s, s), S),
    "cond": (lambda s: tg.linalg.cond(s, 1), S),
    "inv_ex": (lambda s: tg.linalg.inv_ex(s), S),
    "cholesky_ex": (lambda s: tg.linalg.cholesky_ex(s), S),
    "eigvals": (lambda s: tg.linalg.eigvals(s), S),
    "interpolate": (lambda x, o: F.interpolate(x[None], scale_factor=o), X, ONE),
    "softmax": (lambda x, k: x.softmax(k), X, K),
    "celu": (lambda x, o: F.celu(x, o), X, ONE),
    "elu": (lambda x, o: F.elu(x, o), X, ONE),
    "leaky_relu": (lambda x, o: F.leaky_relu(x, o), X, ONE),
    "threshold": (lambda x, o: F.threshold(x, o, 0.0), X, ONE),
    "huber": (lambda x, o: F.huber_loss(x, x * 2, delta=o), X, ONE),
    "smooth_l1": (lambda x, o: F.smooth_l1_loss(x, x * 2, beta=o), X, ONE),
    "gaussian nll": (lambda x: F.gaussian_nll_loss(x, x * 2, x), X),
    "triplet": (lambda x, o: F.triplet_margin_loss(x, x * 2, x * 3, o), X, ONE),
    "cross_entropy": (lambda x, i: F.cross_entropy(x.mT, i * 0), X, AT),
    "bce": (lambda v: F.binary_cross_entropy(v / 4, v / 4), V),
    "embedding": (lambda x, i: F.embedding(i * 0, x), X, AT),
    "embedding_bag": (lambda x, i: F.embedding_bag(i * 0, x, tg.tensor([0, 2])), X, AT),
    "embedding, renormalised": (lambda x, i: F.embedding(i * 0, x * 1, max_norm=1.0), X, AT),
    "pack": (lambda x, n: rnn.pack_padded_sequence(x[..., None], n, enforce_sorted=False).data, X, np.array([2, 1, 2])),
    "unpad": (lambda x, n: rnn.unpad_sequence(x, n), X, np.array([2, 1, 2])),
    "pad_sequence": (lambda x: rnn.pad_sequence([x[0], x[1]]), X),
    "sequence mask": (lambda n: tg.arange(3) < n[:, None], N),
    "cov": (lambda x, n: tg.cov(x, fweights=n), X, N),
    "corrcoef": (tg.corrcoef, X),
    "sparse": (lambda i, v: tg.sparse_coo_tensor(i[None], v, (3,)).to_dense(), AT, V),
    "coalesce": (lambda v: tg.sparse_coo_tensor([[0, 0, 1]], v, (3,)).coalesce().to_dense(), V),
    "to_sparse": (masked_dense, X),
    "unique": (tg.unique, V),
    "masked_select": (lambda x, m: x.masked_select(m), X, MASK),
    "isin": (lambda v: tg.isin(v, v), V),
    "searchsorted": (lambda v: tg.searchsorted(v, v), V),
    "bucketize": (lambda x, v: tg.bucketize(x, v), X, V),
    "take": (lambda x, i: x.take(i), X, AT),
    "gather": (lambda x, i: x.gather(1, i[None]), X, AT),
    "index_add": (lambda x, i: x.index_add(1, i, x), X, AT),
    "index_fill": (lambda x, i, o: x.index_fill(1, i, o), X, AT, ONE),
    "scatter": (lambda x, i: x.scatter(1, i[None], 1.0), X, AT),
    "put": (lambda x, i: x.put(i, x[0]), X, AT),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(1, i[None], x, "prod"), X, AT),
    "cdist, p": (lambda x, o: tg.cdist(x, x, o), X, ONE),
    "chebyshev": (lambda x, i: tg.special.chebyshev_polynomial_t(x, i), X, AT),
    "polygamma": (lambda x, k: tg.special.polygamma(k, x), X, K),
    "mvlgamma": (lambda x, k: tg.mvlgamma(x + 2, k), X, K),
    "istft": (lambda x: tg.istft(tg.stft(x.reshape(-1), 4, return_complex=True), 4), np.arange(12.0)),
    "diff": (lambda x, k: x.diff(k), X, K),
    "gradient": (lambda x, o: tg.gradient(x, spacing=o, dim=1), X, ONE),
    "trapezoid": (lambda x, o: tg.trapezoid(x, dx=o), X, ONE),
    "svd_lowrank": (lambda s: tg.svd_lowrank(s, 2), S),
    "cond branch": (lambda x: tg.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,)), X),
    "while": (lambda x: tg.while_loop(lambda x: (x < 9).all(), lambda x: x * 2, x), X),
    "scan": (lambda x: tg.scan(lambda c, v: (c + v, c * v), x[0], x), X),
    "scan with a branch": (lambda x: tg.scan(lambda c, v: (c + v if c.sum() > 0 else c, c), x[0], x), X),
    "clip by a tensor": (lambda x, o: nn.utils.clip_grad_norm_([x], o), X, ONE),
    "ModuleList": (lambda k, x: nn.ModuleList([nn.ReLU(), nn.Tanh()])[k](x), K, X),
}
DISTRIBUTIONS = {
    "Normal": lambda v: dist.Normal(v, v),
    "Uniform": lambda v: dist.Uniform(v, v + 9),
    "Gamma": lambda v: dist.Gamma(v, v),
    "Beta": lambda v: dist.Beta(v, v),
    "Categorical": lambda v: dist.Categorical(v),
    "Bernoulli": lambda v: dist.Bernoulli(v / 4),
    "Binomial": lambda v: dist.Binomial(tg.tensor(3), v / 4),
    "Binomial, counts": lambda v: dist.Binomial(v.round() + 1, v / 4),
    "Poisson": lambda v: dist.Poisson(v),
    "Geometric": lambda v: dist.Geometric(v / 4),
    "Dirichlet": lambda v: dist.Dirichlet(v),
    "Multinomial": lambda v: dist.Multinomial(3, v),
    "OneHot": lambda v: dist.OneHotCategorical(v),
    "ContinuousBernoulli": lambda v: dist.ContinuousBernoulli(v / 4),
    "NegativeBinomial": lambda v: dist.NegativeBinomial(v, v / 4),
    "MultivariateNormal": lambda v: dist.MultivariateNormal(v, tg.diag(v)),
    "Wishart": lambda v: dist.Wishart(v[2] + 3, tg.diag(v)),
    "LKJ": lambda v: dist.LKJCholesky(3, v),
    "VonMises": lambda v: dist.VonMises(v, v),
    "Weibull": lambda v: dist.Weibull(v, v),
    "Mixture": lambda v: dist.MixtureSameFamily(dist.Categorical(v), dist.Normal(v, v)),
    "Independent": lambda v: dist.Independent(dist.Normal(v, v), 1),
    "StudentT": lambda v: dist.StudentT(v),
    "Relaxed": lambda v: dist.RelaxedBernoulli(v[0], v / 4),
    "Pareto": lambda v: dist.Pareto(v, v),
    "Transformed": lambda v: dist.TransformedDistribution(dist.Normal(v, v), [transforms.ExpTransform()]),
    "GeneralizedPareto": lambda v: dist.GeneralizedPareto(v, v, v),
    "LowRank": lambda v: dist.LowRankMultivariateNormal(v, v[:, None], v),
}
ASKED = {
    "sample": lambda d: d.sample((2,)),
    "rsample": lambda d: d.rsample((2,)),
    "log_prob": lambda d: d.log_prob(d.sample()),
    "entropy": lambda d: d.entropy(),
    "mean": lambda d: (d.mean, d.variance),
    "cdf": lambda d: d.cdf(d.sample()),
    "icdf": lambda d: d.icdf(tg.full_like(d.mean, 0.5)),
    "enumerate": lambda d: d.enumerate_support(),
    "repr": repr,
    "expand": lambda d: d.expand((2, *d.batch_shape)).log_prob(d.sample()),
    "kl": lambda d: dist.kl_divergence(d, d),
    "support": lambda d: d.support.check(d.sample()),
    "mode": lambda d: d.mode,
}
CONSTRAINTS = {
    "real": constraints.real,
    "positive": constraints.positive,
    "simplex": constraints.simplex,
    "integers": constraints.integer_interval(0, 3),
    "symmetric": constraints.symmetric,
    "positive definite": constraints.positive_definite,
    "lower": constraints.lower_cholesky,
    "semidefinite": constraints.positive_semidefinite,
    "corr": constraints.corr_cholesky,
    "one hot": constraints.one_hot,
}
TRANSFORMS = {
    "jvp": lambda x: func.jvp(lambda x: tg.where(x > 0, x.sqrt(), 0.0), (x,), (x.cos(),)),
    "jvp of rows": lambda x: func.jvp(lambda x: x.softmax(-1), (x,), (x * 0,)),
    "jet": lambda x: func.jet(lambda x: tg.where(x > 0, x.sqrt(), 0.0), (x,), ((x.cos(), x),)),
    "laplacian": lambda x: func.laplacian(lambda x: tg.where(x > 0, x.sqrt(), 0.0).sum(-1))(x),
    "grad": lambda x: func.grad(lambda x: tg.where(x > 0, x.sqrt(), 0.0).sum())(x),
    "hessian": lambda x: func.hessian(lambda x: tg.where(x > 0, x.sqrt(), 0.0).sum())(x),
    "a number's gradient": lambda x: func.grad(lambda c: (x * c).sum())(0.5),
    "an array's gradient": lambda x: func.grad(lambda c: (x * c).sum())(np.ones((2, 3))),
    "vmap": lambda x: func.vmap(lambda v: v.sort()[0])(x),
    "vmap, value": lambda x: func.vmap(lambda v: v.sum().item())(x),
    "vmap, index": lambda x: func.vmap(lambda v: v[(v > 1).sum()])(x),
    "vmap, mask": lambda x: func.vmap(lambda v: v[v > 1])(x),
    "vmap, common": lambda x: func.vmap(lambda v: (v, x), out_dims=(0, None))(x),
    "jvp of a Function": lambda x: func.jvp(Branching.apply, (x,), (x,)),
    "forward mode": lambda x: forward_mode(x),
    "checkpoint": lambda x: tg.utils.checkpoint.checkpoint(tg.sin, x, use_reentrant=False),
    "gradcheck": lambda x: tg.autograd.gradcheck(tg.sin, (x.detach().requires_grad_(),)),
}


def forward_mode(x):
    with tg.autograd.forward_ad.dual_level():
        dual = tg.autograd.forward_ad.make_dual(x, x * 2)
        z = x * 1
        v = z.view(-1)
        z.mul_(dual)
        y = tg.autograd.forward_ad.unpack_dual(dual.sqrt())
    return y.primal, y.tangent, v * 2


STEPS = {
    "SGD": lambda: stepped(lambda ps: optim.SGD(ps, 0.1, momentum=0.9, nesterov=True), True),
    "SGD, a tensor": lambda: stepped(lambda ps: optim.SGD(ps, lr=tg.tensor(0.1))),
    "Adam": lambda: stepped(lambda ps: optim.Adam(ps, 0.1, amsgrad=True)),
    "Adam, a tensor": lambda: stepped(lambda ps: optim.Adam(ps, tg.tensor(0.1))),
    "AdamW": lambda: stepped(lambda ps: optim.AdamW(ps, 0.1, maximize=True)),
    "Adafactor": lambda: stepped(lambda ps: optim.Adafactor(ps)),
    "Rprop": lambda: stepped(lambda ps: optim.Rprop(ps)),
    "RMSprop": lambda: stepped(lambda ps: optim.RMSprop(ps, centered=True)),
    "Adagrad": lambda: stepped(optim.Adagrad),
    "NAdam": lambda: stepped(optim.NAdam),
    "RAdam": lambda: stepped(optim.RAdam),
    "ASGD": lambda: stepped(optim.ASGD),
    "Adamax": lambda: stepped(optim.Adamax),
    "Adadelta": lambda: stepped(optim.Adadelta),
    "GradScaler": scaled,
    "LBFGS": closed,
    "ReduceLROnPlateau": plateaus,
}

# What a trace must not stop at: what does not depend on values, and values of constants.
FREE = {
    "shape": (lambda x: x * x.shape[0] * x.size(1) * len(x) * x.numel() * x.ndim, X),
    "dtype": (lambda x: x * 2 if x.dtype is tg.float64 and x.is_floating_point() and not x.is_complex() else x, X),
    "flags": (lambda x: x * 2 if x.requires_grad or x.is_leaf or x.is_cpu or x.device.type == "cpu" else x, X),
    "layout": (lambda x: x * x.stride(0) * x.storage_offset() if x.is_contiguous() else x, X),
    "strides": (lambda x: x.as_strided((2, 2), x.stride()), X),
    "identity": (lambda x: {x: x * 2}[x], X),
    "iteration": (lambda x: sum(t for t in x), X),
    "unpacking": (lambda x: (lambda a, b: a * b)(*x), X),
    "constants": (lambda x: x * tg.ones(3).sum().item() * tg.arange(3)[1].item() * len(tg.tensor([1, 0]).nonzero()), X),
    "constant masks": (lambda x: x[:, tg.tensor([True, False, True])] * x[:, tg.ones(3) > 0][:, :2], X),
    "a constant's view": (lambda x: x * tg.ones(2, 3).view(-1)[0].item(), X),
    "deepcopy": (lambda x: copy.deepcopy(x) * 2, X),
    "full": (lambda x, o: x * tg.full((3,), o), X, ONE),
    "full_like": (lambda x, o: tg.full_like(x, o, dtype=tg.float32), X, ONE),
    "tensor of tensors": (lambda x: tg.tensor([[x[0, 0], 1], [2.0, x[0, 1]]]), X),
    "tensor of rows": (lambda x: tg.as_tensor([x[0], x[1]]), X),
    "average of a model": (averaging, X),
    "new tensor": (lambda x: tg.tensor(x, dtype=tg.float32) * 2, X),
    "index": (lambda x, k: x[:, k], X, K),
    "checks": (lambda v, i: F.binary_cross_entropy(v / 4, v / 4) + F.embedding(i, v[:, None]).sum(), V, AT),
    "NumPy": (lambda x: np.sin(x) + np.mean(x, axis=0) + np.nanmean(x) + np.where(x > 1, x, 0), X),
}


def quietly(f, *args, **kwargs):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return leak(f, *args, **kwargs)


NUMPY = {**FFT, **LINALG, **ROUTINES}


def of_numpy(value):
    return getattr(value, "__name__", "")


@pytest.mark.parametrize("name", [*PYTHON, *GIVEN])
def test_python_code(name):
    function, *arrays = (PYTHON | GIVEN)[name]
    assert quietly(function, arrays, [shrunk(a) for a in arrays]) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert traced(function, arrays, 0)[0] != "raises"


@pytest.mark.counted
@pytest.mark.parametrize("name", FREE)
def test_what_stops_no_trace(name):
    function, *arrays = FREE[name]
    assert quietly(function, arrays) is None
    assert traced(function, arrays, 0)[0] == "program"


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name):
    assert quietly(TRANSFORMS[name], [X], [shrunk(X)]) is None


@pytest.mark.parametrize("name", STEPS)
def test_step(name):
    step, state = STEPS[name]()
    assert quietly(step, [X], state=state) is None


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraint(name):
    assert quietly(CONSTRAINTS[name].check, [S], [S * 2]) is None


@pytest.mark.every(20)
@pytest.mark.parametrize("name, ask", [(name, ask) for name in DISTRIBUTIONS for ask in ASKED])
def test_distribution(name, ask):
    assert quietly(lambda v: ASKED[ask](DISTRIBUTIONS[name](v)), [V], [shrunk(V)]) is None


@pytest.mark.every(8)
@pytest.mark.parametrize("name", MODULES)
def test_layer(name):
    make, shape = MODULES[name]
    net = make().double()
    x = np.random.default_rng(0).normal(size=shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net(tg.tensor(x))
    state = [t for t in (*net.parameters(), *net.buffers()) if t._st is None]
    assert quietly(net, [x], [shrunk(x)], state) is None


@pytest.mark.every(16)
@pytest.mark.parametrize("text", [text for text, _ in calls()])
def test_call(text):
    if "bfloat16" in text:
        pytest.importorskip("ml_dtypes")
    call, given = call_of(text)
    assert quietly(derived(call, 1), given, [shrunk(a) for a in given]) is None


def directions(call):
    """Forward mode and Taylor mode of a call's results that are floats."""

    def run(*xs):
        moving = [i for i, x in enumerate(xs) if x.is_floating_point()]

        def moved(*given):
            results = call(*[given[moving.index(i)] if i in moving else x for i, x in enumerate(xs)])
            return [t for t in flat(results) if t.is_floating_point()]

        given = tuple([xs[i] for i in moving])
        if not given:
            return ()
        return func.jvp(moved, given, given), func.jet(moved, given, [(x, x) for x in given])

    return run


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(set(TABLE) - NOT_HERE))
def test_record(name):
    op = TABLE[name]
    samples = [s for s in tg.testing.samples_of(op) if any(isinstance(a, np.ndarray) for a in s.arrays)]
    for sample in samples[:: max(len(samples) - 1, 1)]:
        positions = [i for i, a in enumerate(sample.arrays) if isinstance(a, np.ndarray)]

        def call(*xs, sample=sample, positions=positions):
            arguments = list(sample.arrays)
            for i, x in zip(positions, xs, strict=True):
                arguments[i] = x
            return tg.testing.call(op, arguments, as_constants(sample.params))

        given = [sample.arrays[i] for i in positions]
        for function in (derived(call, 2), directions(call), lambda *xs, call=call: func.vmap(call)(*[x[None] for x in xs])):
            assert quietly(function, given) is None


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", [text for text, _ in calls()])
def test_call_in_transforms(text):
    if "bfloat16" in text:
        pytest.importorskip("ml_dtypes")
    call, given = call_of(text)
    for function in (derived(call, 2), directions(call)):
        assert quietly(function, given) is None


@pytest.mark.every(12)
@pytest.mark.parametrize("function, case", [(f, c) for f, cases in NUMPY.items() for c in cases], ids=of_numpy)
def test_numpy_function(function, case):
    args, kwargs = case
    leaves, spec = tree.flatten((args, {k: v for k, v in kwargs.items() if not isinstance(v, Out | Refused)}))
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc"]

    def call(*tensors):
        given = dict(zip(positions, tensors, strict=True))
        args, kwargs = tree.unflatten(spec, [given.get(i, leaf) for i, leaf in enumerate(leaves)])
        return function(*args, **kwargs)

    arrays = [leaves[i] for i in positions]
    assert quietly(call, arrays, [shrunk(a) for a in arrays]) is None


def test_the_law_finds_leaks():
    for leaking in (
        lambda x: x * float(x._d[0, 0]),
        lambda x: x * 2 if np.isfinite(x._d).all() else x,
        lambda x: x * record.fixed(x._d * 2),
        lambda x: x[:, int(x.argmax()._d) % 3],
        lambda x: x * examined(x).sum().item(),
    ):
        assert quietly(leaking, [X], [X * 2]) is not None


def half_power(x):
    return tg.where(x > 0, x * x.sqrt(), 0.0).sum()


def derivatives(x):
    """Of what has no derivative at 0; and what a view shows after a dual level."""
    one = tg.ones(2)
    root = func.jvp(lambda x: tg.where(x > 0, x.sqrt(), 0.0), (x,), (one,))
    return root, func.hessian(half_power)(x), func.jet(func.grad(half_power), (x,), ([one, one],)), forward_mode(x)[2]


def test_results_of_programs():
    """What a program would take from the tracing call: the place of a view, a number, a flag, that all is finite."""
    pytest.importorskip("jax")
    rows = tg.arange(6.0).reshape(3, 2)
    for function, arguments in (
        (lambda i: rows[i], [tg.tensor(k) for k in (0, 0, 2)]),
        (lambda t: t * (2 if np.allclose(t, 2.0) else 3), [tg.tensor(k) for k in (2.0, 3.0)]),
        (lambda t: (tg.full((2,), t), derivatives(t.expand(2))), [tg.tensor(k) for k in (1.0, -1.0)]),
    ):
        compiled = tg.compile(function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for given in arguments:
                for got, wanted in zip(flat(compiled(given)), flat(function(given)), strict=True):
                    tg.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-6)


# Rooms that stand for the machine: they run operations, or (optim) update arrays where no trace runs.
MACHINE = {"core", "floats", "levels", "programs", "kernels", "table", "jit", "optim", "testing", "compat"}
FORM = {  # what is asked of an array and does not depend on its values
    "shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags", "real", "level", "copy", "reshape",
    "__dlpack__", "__dlpack_device__",
}  # fmt: skip
USED = re.compile(r"(\._d\b|\b(raw|bottom|peek_data)\([^()]*\))(?!\.(shape|dtype|ndim|size)\b)")  # more than its form
PASSED_ON = (ast.IfExp, ast.List, ast.ListComp, ast.GeneratorExp, ast.Starred)
READERS = {"bool", "int", "float", "complex", "host", "list", "sorted", "any", "all", "min", "max", "sum"}


def is_array_of_tensor(node):
    """Whether an expression is a tensor's array, taken past `programs.tracing`."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") in ("raw", "bottom", "peek_data")
    return isinstance(node, ast.Attribute) and node.attr == "_d" and isinstance(node.ctx, ast.Load)


def looks_at_values(node, parent):
    """Whether what is done with a tensor's array depends on its values."""
    if isinstance(parent, ast.Attribute):
        return parent.attr not in FORM
    if isinstance(parent, ast.Compare):
        return not all(isinstance(o, ast.Is | ast.IsNot) for o in parent.ops)
    if isinstance(parent, ast.Call) and parent.func is not node:
        of_numpy = isinstance(parent.func, ast.Attribute) and getattr(parent.func.value, "id", "") == "np"
        return getattr(parent.func, "id", "") in READERS or (of_numpy and parent.func.attr != "may_share_memory")
    return isinstance(parent, ast.BinOp | ast.UnaryOp | ast.BoolOp) or (
        isinstance(parent, ast.Subscript) and parent.value is node
    )


def reads(text):
    """Lines of a module where code looks at the values of a tensor's array."""
    inside = {}  # what parts of lists and conditional expressions are in
    for parent in ast.walk(ast.parse(text)):
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, PASSED_ON):
                inside[node] = parent
            elif is_array_of_tensor(node):
                outer, around = node, parent
                while around in inside:
                    outer, around = around, inside[around]
                if looks_at_values(outer, around):
                    yield node.lineno


def test_code_looks_at_the_form_of_arrays_alone():
    root = pathlib.Path(tg.__file__).parent
    paths = [p for p in root.rglob("*.py") if p.relative_to(root).parts[0].removesuffix(".py") not in MACHINE]
    texts = {p: p.read_text() for p in paths if "_dropins" not in p.parts}
    found = [(p, n) for p, text in texts.items() if USED.search(text) for n in reads(text)]
    assert not found, "use programs.tracing.leaving, examined or unless_traced"
    for text in ("np.sin(t._d)", "t._d.any()", "raw(t)[0]", "t._d > 1", "bool(raw(t))", "np.stack([t._d for t in ts])"):
        assert list(reads(text)) == [1]
    for text in ("t._d.shape", "t._d is x", "call(t._d)", "t._d.flags.owndata", "type(t._d)"):
        assert not list(reads(text))

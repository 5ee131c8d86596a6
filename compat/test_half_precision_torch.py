"""16-bit floats: errors against float64 are at most twice PyTorch's, of values element by element, of gradients overall."""

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

PROGRAMS = """
    x: x.sum() | [(4096,)]
    x: x.sum(0) | [(512, 8)]
    x: x.sum(1) | [(8, 512)]
    x: x.mean(-1) | [(8, 512)]
    x: x.nansum(1) | [(8, 512)]
    x: x.nanmean(1) | [(8, 512)]
    x: (1+x/8).prod(1) | [(8, 64)]
    x: x.cumsum(1) | [(4, 512)]
    x: x.cumsum(0) | [(512, 4)]
    x: (1+x/8).cumprod(1) | [(4, 64)]
    x: x.logcumsumexp(1) | [(4, 256)]
    x: (x+3).var(1) | [(8, 256)]
    x: (x+3).std(1) | [(8, 256)]
    x: L.var_mean(x+3, 1)[1] | [(8, 256)]
    x: x.norm(dim=1) | [(8, 256)]
    x: x.norm(1, dim=1) | [(8, 256)]
    x: x.norm(3, dim=1) | [(8, 256)]
    x: L.linalg.vector_norm(x, 2, 1) | [(8, 256)]
    x: x.logsumexp(1) | [(8, 256)]
    x: x.softmax(1) | [(8, 256)]
    x: x.log_softmax(1) | [(8, 256)]
    x: F.softmin(x, 1) | [(8, 256)]
    x: F.avg_pool1d(x, 16) | [(2, 3, 128)]
    x: F.avg_pool2d(x, 8) | [(2, 3, 32, 32)]
    x: F.avg_pool2d(x, 8, 3, 2) | [(2, 3, 32, 32)]
    x: F.avg_pool3d(x, 4) | [(1, 2, 8, 8, 8)]
    x: F.adaptive_avg_pool1d(x, 5) | [(2, 3, 128)]
    x: F.adaptive_avg_pool2d(x, 3) | [(2, 3, 32, 32)]
    x: F.adaptive_avg_pool3d(x, 3) | [(1, 2, 8, 8, 8)]
    x: F.lp_pool2d(x, 2, 8) | [(2, 3, 32, 32)]
    x: F.lp_pool1d(x, 2, 8) | [(2, 3, 32)]
    x: F.max_pool2d(x, 3) | [(2, 3, 32, 32)]
    x, w: F.conv1d(x, w) | [(2, 16, 64), (8, 16, 5)]
    x, w: F.conv2d(x, w) | [(2, 16, 16, 16), (8, 16, 3, 3)]
    x, w: F.conv2d(x, w, stride=2, padding=1) | [(2, 16, 16, 16), (8, 16, 3, 3)]
    x, w: F.conv2d(x, w, groups=4) | [(2, 16, 16, 16), (8, 4, 3, 3)]
    x, w: F.conv3d(x, w) | [(1, 8, 8, 8, 8), (4, 8, 3, 3, 3)]
    x, w: F.conv_transpose2d(x, w, stride=2) | [(2, 16, 8, 8), (16, 8, 3, 3)]
    x, w: F.conv_transpose1d(x, w) | [(2, 16, 8), (16, 8, 3)]
    x: F.layer_norm(x+3, (256, )) | [(8, 256)]
    x, w, b: F.layer_norm(x+3, (256, ), w, b) | [(8, 256), (256,), (256,)]
    x: F.rms_norm(x, (256, )) | [(8, 256)]
    x: F.group_norm(x+3, 2) | [(2, 8, 64)]
    x: F.batch_norm(x+3, None, None, training=True) | [(16, 8, 16)]
    x: F.instance_norm(x+3) | [(4, 8, 64)]
    x: F.local_response_norm(x, 5) | [(2, 16, 8, 8)]
    x: F.normalize(x, dim=1) | [(8, 256)]
    x, y: F.mse_loss(x, y) | [(64, 64), (64, 64)]
    x, y: F.mse_loss(x, y, reduction="sum") | [(64, 64), (64, 64)]
    x, y: F.l1_loss(x, y) | [(64, 64), (64, 64)]
    x, y: F.smooth_l1_loss(x, y) | [(64, 64), (64, 64)]
    x, y: F.huber_loss(x, y) | [(64, 64), (64, 64)]
    x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()) | [(64, 64), (64, 64)]
    x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()) | [(64, 64), (64, 64)]
    x: F.cross_entropy(x, L.arange(64)) | [(64, 64)]
    x: F.cross_entropy(x, L.arange(64), label_smoothing=0.1) | [(64, 64)]
    x, y: F.cross_entropy(x, y.softmax(1)) | [(64, 64), (64, 64)]
    x: F.nll_loss(x, L.arange(64)) | [(64, 64)]
    x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean") | [(64, 64), (64, 64)]
    x, y: F.cosine_embedding_loss(x, y, L.ones(64)) | [(64, 64), (64, 64)]
    x, y, z: F.triplet_margin_loss(x, y, z) | [(64, 64)]*3
    x: F.hinge_embedding_loss(x, L.ones(64, 64).to(x.dtype)) | [(64, 64)]
    x, y: F.margin_ranking_loss(x, y, L.ones(64, 64).to(x.dtype)) | [(64, 64), (64, 64)]
    x: F.multi_margin_loss(x, L.arange(64)) | [(64, 64)]
    x, y: F.multilabel_soft_margin_loss(x, (y>0).to(x.dtype)) | [(64, 64), (64, 64)]
    x, y: F.poisson_nll_loss(x, y.abs()) | [(64, 64), (64, 64)]
    x, y: F.gaussian_nll_loss(x, y, y.abs()+1) | [(64, 64), (64, 64)]
    x, y: x@y | [(32, 256), (256, 32)]
    x, y: x@y | [(32, 256), (256,)]
    x, y: x.bmm(y) | [(4, 32, 128), (4, 128, 32)]
    x, y: x.dot(y) | [(1024,), (1024,)]
    a, x, y: L.addmm(a, x, y) | [(32, 32), (32, 256), (256, 32)]
    x, w, b: F.linear(x, w, b) | [(32, 256), (32, 256), (32,)]
    x, y: L.einsum("ij, kj->ik", x, y) | [(32, 256), (32, 256)]
    q, k, v: F.scaled_dot_product_attention(q, k, v) | [(2, 32, 16)]*3
    x, y, w: F.bilinear(x, y, w) | [(8, 16), (8, 16), (4, 16, 16)]
    a, x, y: L.baddbmm(a, x, y) | [(4, 32, 32), (4, 32, 128), (4, 128, 32)]
    x, y: L.tensordot(x, y, 1) | [(32, 256), (256, 32)]
    a, x, y: L.addmv(a, x, y) | [(32,), (32, 256), (256,)]
    a, x, y: L.addbmm(a, x, y) | [(32, 32), (4, 32, 128), (4, 128, 32)]
    x, y: L.inner(x, y) | [(8, 256), (8, 256)]
    x, y: L.linalg.vecdot(x, y) | [(8, 256), (8, 256)]
    x, y: L.cdist(x, y) | [(8, 64), (8, 64)]
    x, y: F.pairwise_distance(x, y) | [(8, 64), (8, 64)]
    x, y: F.cosine_similarity(x, y) | [(8, 256), (8, 256)]
    x, y: L.kron(x, y) | [(8, 8), (8, 8)]
    x, y: L.dist(x, y) | [(512,), (512,)]
    x: L.trapezoid(x) | [(8, 256)]
    x: L.cov(x) | [(4, 128)]
    x: L.corrcoef(x) | [(4, 128)]
    x, v: x.index_add(0, L.zeros(256, dtype=L.int64), v) | [(4, 8), (256, 8)]
    x, v: x.scatter_add(0, L.zeros(256, 8, dtype=L.int64), v) | [(4, 8), (256, 8)]
    x, v: x.scatter_reduce(0, L.zeros(256, 8, dtype=L.int64), v, "mean") | [(4, 8), (256, 8)]
    x, v: x.index_put((L.zeros(256, dtype=L.int64), ), v, accumulate=True) | [(4, 8), (256, 8)]
    w: F.embedding_bag(L.arange(256).reshape(2, 128), w, mode="sum") | [(256, 8)]
    w: F.embedding_bag(L.arange(256).reshape(2, 128), w) | [(256, 8)]
    x, v: x.index_reduce(0, L.zeros(64, dtype=L.int64), v, "mean") | [(4, 8), (64, 8)]
    x: x[L.zeros(256, dtype=L.int64)] | [(4, 8)]
    x: x.expand(512, 8)*1 | [(8,)]
    x: F.interpolate(x, scale_factor=2.5, mode="bilinear") | [(1, 3, 16, 16)]
    x: F.interpolate(x, scale_factor=2.5, mode="bicubic") | [(1, 3, 16, 16)]
    x: F.interpolate(x, size=5, mode="area") | [(1, 3, 16, 16)]
    x, g: F.grid_sample(x, g.tanh()) | [(1, 3, 16, 16), (1, 8, 8, 2)]
    x: F.fold(x, (16, 16), 5, padding=2) | [(1, 75, 256)]
    x: F.unfold(x, 5, padding=2) | [(1, 3, 16, 16)]
    x: F.glu(x) | [(8, 64)]
    x, y, z: L.addcmul(x, y, z, value=0.3) | [(64,)]*3
    x, y: L.lerp(x, y, 0.3) | [(64,)]*2
    x: x.renorm(2, 0, 1.0) | [(8, 64)]
    x, y: L.logaddexp(x, y) | [(64,)]*2
    x: L.std_mean(x+3, 1)[0] | [(8, 256)]
    x: x.diff() | [(64,)]
    x: F.gelu(x) | [(256,)]
    x: F.mish(x) | [(256,)]
    x: F.silu(x) | [(256,)]
    x: F.softplus(x) | [(256,)]
    x: F.logsigmoid(x) | [(256,)]
    x: F.hardswish(x) | [(256,)]
    x: F.selu(x) | [(256,)]
    x: F.elu(x) | [(256,)]
    x: L.sinc(x) | [(256,)]
    x: L.expm1(x) | [(256,)]
    x: x.abs()**2.5 | [(256,)]
    x, y: L.atan2(x, y) | [(256,)]*2
    x, y: L.hypot(x, y) | [(256,)]*2
    x: L.logit(x.sigmoid()) | [(256,)]
    x, w: F.relu(x@w).sum(1) | [(8, 64), (64, 256)]
"""
# Gradients through a sigmoid that saturates: PyTorch's two roundings cancel, ours is the exact derivative of each step
KNOWN = {("x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid())", "bfloat16")}
SMALL = 1e-3  # elements below this part of the largest count as that


def rounded(seed, shape, dtype):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape) * 0.8).to(dtype).double().numpy()


def run(library, text, arrays, dtype):
    """The value and the gradients for a random cotangent, in float64."""
    program = eval("lambda " + text, {"L": library, "F": library.nn.functional})
    xs = [library.tensor(a).to(dtype).requires_grad_() for a in arrays]
    y = program(*xs)
    g = library.tensor(rounded(5, tuple(y.shape), torch.bfloat16)).to(y.dtype)
    found = library.autograd.grad(y, xs, g, allow_unused=True, materialize_grads=True)
    return [t.detach().double().numpy() for t in (y, *found)]


def errors(results, exact):
    """Of the value element by element, of gradients against the largest element."""
    scales = [np.maximum(np.abs(a), SMALL * np.abs(a).max()) if i == 0 else np.abs(a).max() for i, a in enumerate(exact)]
    return [(np.abs(r - a) / np.maximum(s, 1e-30)).max() for r, a, s in zip(results, exact, scales, strict=True)]


@pytest.mark.filterwarnings("ignore:index_reduce", "ignore:Default grid_sample")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("row", PROGRAMS.strip().split("\n"))
def test_programs(row, dtype):
    text, shapes = (part.strip() for part in row.split(" | "))
    theirs, eps = getattr(torch, dtype), torch.finfo(getattr(torch, dtype)).eps
    arrays = [rounded(i, shape, theirs) for i, shape in enumerate(eval(shapes))]
    exact = run(torch, text, arrays, torch.float64)
    got = errors(run(tg, text, arrays, getattr(tg, dtype)), exact)
    try:
        allowed = errors(run(torch, text, arrays, theirs), exact)
    except NotImplementedError:  # PyTorch has no kernel
        allowed = [2 * eps] * len(got)
    within = all(a <= max(2 * b, eps) for a, b in zip(got, allowed, strict=True))
    assert within != ((text, dtype) in KNOWN), [(float(a / eps), float(b / eps)) for a, b in zip(got, allowed, strict=True)]

"""What runs in which dtype inside autocast on the CPU, against PyTorch; what differs is listed, strictly."""

import warnings

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

EXPRESSIONS = (
    """
F.linear(x,m) ; F.linear(x,m,v) ; x@m ; x@v ; L.mm(x,m) ; L.mv(m,v) ; v.dot(v) ; L.bmm(b,b.mT) ; L.addmm(x,x,m)
L.addmv(v,m,v) ; L.baddbmm(c,b,b.mT) ; L.addbmm(c[0],b,b.mT) ; L.einsum('ij,jk->ik',x,m) ; L.linalg.vecdot(x,x)
L.matmul(b,m) ; L.outer(v,v) ; L.tensordot(x,m,1) ; L.chain_matmul(x,m) ; L.linalg.multi_dot([x,m]) ; L.inner(x,x)
L.kron(x,x) ; F.bilinear(x,x,w) ; F.conv1d(seq,k1) ; F.conv2d(im,k2) ; F.conv3d(vol,k3) ; F.conv_transpose2d(im,k2)
F.conv_transpose1d(seq,k1) ; F.scaled_dot_product_attention(b,b,b) ; LSTM(b)[0] ; GRU(b)[0] ; RNN(b)[0] ; LC(x)[0] ; GC(x)
MHA(b,b,b)[0] ; TE(b) ; F.mse_loss(x,x*2) ; F.l1_loss(x,x*2) ; F.smooth_l1_loss(x,x*2) ; F.huber_loss(x,x*2)
F.binary_cross_entropy(x.sigmoid(),x.sigmoid()) ; F.binary_cross_entropy_with_logits(x,x.sigmoid())
F.cross_entropy(x,lab) ; F.nll_loss(x,lab) ; F.kl_div(x,x) ; F.cosine_embedding_loss(x,x,o)
F.hinge_embedding_loss(x,x.sign()) ; F.margin_ranking_loss(x,x,x.sign()) ; F.triplet_margin_loss(x,x+1,x*2)
F.poisson_nll_loss(x,x) ; F.gaussian_nll_loss(x,x,x) ; F.soft_margin_loss(x,x.sign()) ; F.multi_margin_loss(x,lab)
F.multilabel_soft_margin_loss(x,x.sigmoid()) ; F.multilabel_margin_loss(x,L.zeros(3,4).long())
F.ctc_loss(lp,L.tensor([[1,2]]),[5],[2]) ; x.exp() ; x.log() ; x.pow(2) ; 2**x ; x.softmax(1) ; x.log_softmax(1)
F.softmin(x,1) ; F.layer_norm(x,(4,)) ; F.batch_norm(im,None,None,training=True) ; F.group_norm(im,1)
F.instance_norm(im) ; x.sum() ; x.mean() ; x.norm() ; x.prod() ; x.cumsum(0) ; x.cumprod(0) ; x.var() ; x.std()
x.logsumexp(0) ; x.dist(x*2) ; L.cdist(x,x) ; L.pdist(x) ; F.cosine_similarity(x,x) ; F.normalize(x) ; F.gelu(x)
F.relu(x) ; F.softplus(x) ; x.sigmoid() ; x.tanh() ; x+x ; x*2 ; L.cat([x,y]) ; L.stack([x,y]) ; x+y ; x*y
L.addcmul(x,x,y) ; L.where(x>0,x,y) ; L.atan2(x,y) ; x.index_copy(0,lab,y) ; F.max_pool2d(im,2)
F.avg_pool2d(im,2) ; F.avg_pool3d(vol,2) ; F.adaptive_avg_pool2d(im,2) ; F.interpolate(im,scale_factor=2)
F.interpolate(im,scale_factor=2,mode='bilinear') ; F.grid_sample(im,gr) ; F.embedding(lab,m) ; F.pad(x,(1,1))
F.pad(im,(1,1,1,1),mode='reflect') ; F.dropout(x) ; L.trace(m) ; L.inverse(m) ; L.linalg.inv(m) ; L.det(m)
L.linalg.solve(m,v) ; L.linalg.norm(m) ; L.linalg.svd(m)[1] ; L.linalg.eigh(m)[0]
L.linalg.cholesky(m@m.T.float()+4*L.eye(4)) ; L.linalg.qr(m)[0] ; L.linalg.pinv(m) ; L.linalg.matrix_norm(m)
L.linalg.vector_norm(m) ; L.linalg.det(m) ; L.linalg.lstsq(m,m)[0] ; L.linalg.matrix_power(m,2) ; L.matrix_exp(m)
L.fft.fft(v) ; L.fft.rfft(v) ; L.quantile(x,.5) ; L.polar(x,x) ; L.view_as_complex(x.view(3,2,2))
x.renorm(2,0,1.) ; L.logdet(m) ; L.slogdet(m)[1] ; L.cross(x[:,:3],x[:,:3],dim=1) ; L.erfinv(x/9) ; x.rsqrt()
x.acos() ; x.tan() ; L.stft(vv,4,return_complex=True,window=L.ones(4)) ; L.histc(x) ; L.bucketize(x,v)
F.local_response_norm(im,2) ; F.rms_norm(x,(4,)) ; L.triu(m) ; F.glu(x) ; F.prelu(x,v[:1]) ; L.dot(v,v)
F.unfold(im,2) ; L.svd(m)[1] ; L.lu(m)[0] ; L.linalg.lu(m)[1] ; L.cholesky_solve(m,m) ; L.triangular_solve(m,m)[0]
""".strip()
    .replace("\n", " ; ")
    .split(" ; ")
)
KNOWN = {
    'float32': {
        'x.index_copy(0,lab,y)': ('RuntimeError', 'torch.float32'),
        'L.linalg.pinv(m)': ('torch.float32', 'torch.bfloat16'),
    },
    'bfloat16': {
        'GRU(b)[0]': ('torch.float32', 'torch.bfloat16'),
        'LC(x)[0]': ('torch.float32', 'torch.bfloat16'),
        'GC(x)': ('torch.float32', 'torch.bfloat16'),
        'L.pdist(x)': ('torch.float32', 'NotImplementedError'),
        'x.index_copy(0,lab,y)': ('RuntimeError', 'torch.float32'),
        'L.det(m)': ('RuntimeError', 'NotImplementedError'),
        'L.linalg.det(m)': ('RuntimeError', 'NotImplementedError'),
        'L.linalg.lu(m)[1]': ('RuntimeError', 'NotImplementedError'),
    },
}  # fmt: skip


def operands(L, dtype):
    """Inputs in a dtype; y is of another, as operands are that are promoted."""
    x, m, v = L.ones(3, 4) * 0.5, L.eye(4) * 2, L.full((4,), 0.5)
    b, c, w = L.full((2, 3, 4), 0.5), L.ones(2, 3, 3), L.ones(2, 4, 4)
    seq, im, vol = L.ones(1, 2, 6), L.ones(1, 2, 6, 6), L.ones(1, 2, 4, 4, 4)
    k1, k2, k3, gr = L.ones(2, 2, 3), L.ones(2, 2, 3, 3), L.ones(2, 2, 3, 3, 3), L.zeros(1, 2, 2, 2)
    lp, vv, o = L.zeros(5, 1, 4).log_softmax(2), L.ones(16), L.ones(3)
    found = {name: t.to(dtype) for name, t in locals().items() if isinstance(t, L.Tensor)}
    nn = L.nn
    layers = {
        "LSTM": nn.LSTM(4, 5), "GRU": nn.GRU(4, 5), "RNN": nn.RNN(4, 5), "LC": nn.LSTMCell(4, 5), "GC": nn.GRUCell(4, 5),
        "MHA": nn.MultiheadAttention(4, 2), "TE": nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
    }  # fmt: skip
    other = L.bfloat16 if dtype is L.float32 else L.float32
    names = {"L": L, "F": nn.functional, "lab": L.tensor([0, 1, 2]), "y": found["x"].to(other)}
    return {**found, **layers, **names}


def dtypes(L, dtype):
    """The dtype of each expression's result, or the type of its error."""
    given, found = operands(L, dtype), {}
    for text in EXPRESSIONS:
        with warnings.catch_warnings(), L.autocast("cpu", dtype=L.bfloat16):
            warnings.simplefilter("ignore")
            try:
                found[text] = str(eval(text, given).dtype)
            except (RuntimeError, ValueError, NotImplementedError) as error:
                found[text] = type(error).__name__
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dtypes(dtype):
    ours, theirs = dtypes(tg, getattr(tg, dtype)), dtypes(torch, getattr(torch, dtype))
    different = {text: (ours[text], theirs[text]) for text in ours if ours[text] != theirs[text]}
    assert different == KNOWN.get(dtype, {})

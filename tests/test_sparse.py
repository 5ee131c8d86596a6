"""Sparse tensors: every operation gives what the dense tensor gives, gradients reach the values, writing is refused."""

import copy
import io
import pickle

import numpy as np
import pytest

import tapegrad as tg

INDEX = [[2, 0, 2, 1], [0, 2, 0, 1]]  # out of order; (2, 0) twice
SHAPE = (3, 4)


def sparse(values=(1.0, 2.0, 4.0, -3.0), **kwargs):
    return tg.sparse_coo_tensor(INDEX, values, SHAPE, **kwargs)


def dense(values=(1.0, 2.0, 4.0, -3.0)):
    full = np.zeros(SHAPE, np.float32)
    np.add.at(full, tuple(INDEX), values)
    return tg.tensor(full)


def same(a, b):
    return a.shape == b.shape and a.dtype is b.dtype and np.allclose(a.to_dense().detach().numpy(), b.detach().numpy())


SPARSE_RESULTS = {
    "coalesce": lambda s, tr: s.coalesce() if s.is_sparse else s,
    "t": lambda s, tr: s.t(),
    "T": lambda s, tr: s.T,
    "permute": lambda s, tr: s.permute(1, 0),
    "transpose": lambda s, tr: s.transpose(0, -1),
    "neg": lambda s, tr: -s,
    "scaled": lambda s, tr: 2 * s * 3.0 / 4,
    "times dense": lambda s, tr: s * tg.arange(4.0),
    "dense times": lambda s, tr: tg.arange(4.0) * s,
    "times itself": lambda s, tr: s * s,
    "sum of two": lambda s, tr: s + s,
    "difference": lambda s, tr: s.sub(s, alpha=2),
    "rows": lambda s, tr: s.sum(1),
    "columns, kept": lambda s, tr: s.sum(0, keepdim=True),
    "to": lambda s, tr: s.to(tg.float64),
    "double": lambda s, tr: s.double(),
    "clone": lambda s, tr: s.clone().detach().cpu(),
    "itself": lambda s, tr: s @ s.t(),
    "data": lambda s, tr: s.data,
    "copy": lambda s, tr: copy.deepcopy(s.detach()),
    "pickle": lambda s, tr: pickle.loads(pickle.dumps(s.detach())),
}
DENSE_RESULTS = {
    "mm": lambda s, tr: tg.mm(s, tr),
    "spmm": lambda s, tr: tg.spmm(s, tr),
    "matmul": lambda s, tr: tg.matmul(s, tr),
    "@": lambda s, tr: s @ tr,
    "@ parameter": lambda s, tr: s @ tg.nn.Parameter(tr),
    "sparse.mm": lambda s, tr: tg.sparse.mm(s, tr),
    "vector": lambda s, tr: s @ tr[:, 0],
    "mv": lambda s, tr: tg.mv(s, tr[:, 0]),
    "after": lambda s, tr: tr @ s,
    "after a vector": lambda s, tr: tr[0] @ s,
    "addmm": lambda s, tr: tg.addmm(tg.ones(3, 3), s, tr, beta=0.5, alpha=2),
    "sparse.addmm": lambda s, tr: tg.sparse.addmm(tg.ones(3, 3), s, tr),
    "sum": lambda s, tr: s.sum(),
    "dense plus": lambda s, tr: tg.ones(SHAPE) + s,
    "plus dense": lambda s, tr: s + tg.ones(SHAPE),
    "minus": lambda s, tr: 1 - s,
    "sin": lambda s, tr: tg.sin(s),
    "cat": lambda s, tr: tg.cat([s, s]),
    "row": lambda s, tr: s[0],
    "reshape": lambda s, tr: s.reshape(2, 6),
    "bmm": lambda s, tr: tg.bmm(tg.stack([s, s]), tg.stack([tr, tr])),
    "linear": lambda s, tr: tg.nn.functional.linear(s, tr.t()),
    "power": lambda s, tr: s**2,
    "mean": lambda s, tr: s.mean(),
}
MATRIX = tg.arange(12.0).reshape(4, 3) - 3


@pytest.mark.parametrize("name", SPARSE_RESULTS)
def test_sparse_results(name):
    f = SPARSE_RESULTS[name]
    result = f(sparse(), MATRIX)
    assert result.is_sparse and result.layout is tg.sparse_coo
    assert same(result, f(dense(), MATRIX))
    assert gradient(f, sparse) == pytest.approx(gradient(f, dense_of), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", DENSE_RESULTS)
def test_dense_results(name):
    f = DENSE_RESULTS[name]
    result = f(sparse(), MATRIX)
    assert not result.is_sparse
    assert same(result, f(dense(), MATRIX))
    assert gradient(f, sparse) == pytest.approx(gradient(f, dense_of), rel=1e-4, abs=1e-4)


def test_matrices_of_a_sparse_batch_are_transposed():
    s = tg.sparse_coo_tensor([[0, 0, 1], [0, 1, 0], [1, 2, 3]], tg.tensor([1.0, 2.0, 3.0]), (2, 3, 5))
    for t in (s.mT, s.transpose(-1, -2), s.swapaxes(1, 2)):
        assert t.is_sparse and t.shape == (2, 5, 3) and t.to_dense().equal(s.to_dense().mT)
    with pytest.raises(RuntimeError, match=r"t\(\) expects a tensor with <= 2 sparse"):
        s.t()


def dense_of(values):
    rows, columns = tg.tensor(INDEX)
    return tg.zeros(SHAPE).index_put((rows, columns), values, accumulate=True)


def gradient(f, make):
    """First and second derivatives of a sum by the values; the sum itself where nothing is recorded."""
    v = tg.tensor([1.0, 2.0, 4.0, -3.0], requires_grad=True)
    result = f(make(v), MATRIX).to_dense()
    total = (result**3).sum() / 100
    if not total.requires_grad:
        return [total.item()]
    (first,) = tg.autograd.grad(total, v, create_graph=True)
    (second,) = tg.autograd.grad((first * tg.arange(4.0)).sum(), v)
    return first.tolist() + second.tolist()


def test_gradient_of_the_dense_operand_and_transforms():
    w = MATRIX.clone().requires_grad_()
    (sparse() @ w).pow(2).sum().backward()
    x = MATRIX.clone().requires_grad_()
    (dense() @ x).pow(2).sum().backward()
    assert np.allclose(w.grad.numpy(), x.grad.numpy())
    v = tg.tensor([1.0, 2.0, 4.0, -3.0])
    product, tangent = tg.func.jvp(lambda v: sparse(v) @ MATRIX, (v,), (tg.ones(4),))
    assert same(product, dense() @ MATRIX) and same(tangent, dense([1.0] * 4) @ MATRIX)
    assert same(tg.func.vmap(lambda v: sparse(v) @ MATRIX)(tg.stack([v, v])), tg.stack([dense() @ MATRIX] * 2))
    assert tg.func.hessian(lambda v: (sparse(v) ** 2).sum())(v).tolist() == [
        [2, 0, 2, 0], [0, 2, 0, 0], [2, 0, 2, 0], [0, 0, 0, 2]
    ]  # fmt: skip


def test_gradients_are_recorded_though_the_dense_tensor_was_first_made_without():
    v = tg.ones(4, requires_grad=True)
    s = sparse(v)
    with tg.no_grad():
        assert not tg.sin(s).requires_grad
    tg.sin(s).sum().backward()
    assert v.grad is not None
    assert s.requires_grad and not s.is_leaf and s.grad_fn.name() == "SparseCooTensorWithDimsAndTensorsBackward0"


def test_what_it_is():
    s = sparse()
    assert isinstance(s, tg.Tensor) and tg.is_tensor(s) and s.is_sparse
    assert s.shape == s.size() == SHAPE and s.size(1) == 4 and len(s) == 3 and s.dim() == s.ndim == 2 and s.numel() == 12
    assert (s._nnz(), s.sparse_dim(), s.dense_dim(), s.is_coalesced()) == (4, 2, 0, False)
    assert s._indices().tolist() == INDEX and s._values().tolist() == [1, 2, 4, -3]
    c = s.coalesce()
    assert c.is_coalesced() and c.coalesce() is c and c.indices().tolist() == [[0, 1, 2], [2, 1, 0]]
    assert c.values().tolist() == [2, -3, 5] and c.float() is c and c.to_sparse() is c
    assert tg.sparse_coo_tensor((2, 3)).to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert tg.sparse_coo_tensor([[1], [2]], [1]).shape == (2, 3)
    assert tg.sparse_coo_tensor(np.array(INDEX, np.int32), tg.ones(4), SHAPE, dtype=tg.int64).dtype is tg.int64
    assert tg.tensor(3.0).to_sparse().to_dense().item() == 3.0
    assert tg.ones(SHAPE).sparse_mask(c)._values().tolist() == [1, 1, 1]
    module = tg.nn.Module()
    module.register_buffer("adjacency", s)
    assert module.double().adjacency.dtype is tg.float64 and module.adjacency.is_sparse


def test_printed_form():
    assert repr(sparse().coalesce()) == (
        "tensor(indices=tensor([[0, 1, 2],\n                       [2, 1, 0]]),\n       values=tensor([ 2., -3.,  5.]),\n"
        "       size=(3, 4), nnz=3, layout=torch.sparse_coo)"
    )
    assert repr(tg.sparse_coo_tensor((2, 3), dtype=tg.float64)) == (
        "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, dtype=torch.float64, layout=torch.sparse_coo)"
    )
    assert repr(sparse(tg.ones(4, requires_grad=True))).endswith(
        "layout=torch.sparse_coo,\n       grad_fn=<SparseCooTensorWithDimsAndTensorsBackward0>)"
    )


def test_softmax_over_the_stored_elements():
    s = sparse()
    full = np.where(dense().numpy() == 0, -np.inf, dense().numpy())
    for dim in (0, 1):
        e = np.exp(full - np.max(full, axis=dim, keepdims=True, initial=-99))
        expected = e / np.maximum(e.sum(axis=dim, keepdims=True), 1e-30)
        assert np.allclose(tg.sparse.softmax(s, dim).to_dense().numpy(), expected)
        assert np.allclose(tg.sparse.log_softmax(s, dim)._values().exp(), expected[dense().numpy() != 0])
    assert tg.sparse.sum(s).item() == 4 and tg.sparse.sum(s, [0]).to_dense().tolist() == [5, -3, 2, 0]


def test_files():
    file = io.BytesIO()
    tg.save({"adjacency": sparse()}, file)
    file.seek(0)
    loaded = tg.load(file)["adjacency"]
    assert repr(loaded) == repr(sparse())


@pytest.mark.parametrize(
    "write",
    [
        lambda s: s.add_(1), lambda s: s.mul_(2), lambda s: s.zero_(), lambda s: s[0].add_(1), lambda s: s.data.zero_(),
        lambda s: s.reshape(-1).mul_(2), lambda s: s.__setitem__(0, 1.0), lambda s: tg.add(s, 1, out=s),
        lambda s: s.index_add_(0, tg.tensor([0]), tg.ones(1, 4)), lambda s: s.requires_grad_(), lambda s: s.resize_(3),
    ],
)  # fmt: skip
def test_writing_is_refused_and_changes_nothing(write):
    s = sparse()
    with pytest.raises((NotImplementedError, RuntimeError)):
        write(s)
    assert same(s, dense()) and same(s + 0, dense()) and s._values().tolist() == [1, 2, 4, -3]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda s: s.indices(), RuntimeError, "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"),
        (lambda s: s.values(), RuntimeError, "Cannot get values on an uncoalesced tensor"),
        (lambda s: tg.ones(2).coalesce(), RuntimeError, "coalesce expected sparse coordinate tensor layout but got Strided"),
        (lambda s: tg.ones(2).values(), RuntimeError, "values expected sparse tensor layout but got Strided"),
        (lambda s: tg.sparse.sum(tg.ones(2)), RuntimeError, "expected sparse coordinate tensor layout"),
        (lambda s: s.numpy(), TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."),
        (lambda s: tg.mm(s, tg.ones(2, 2)), RuntimeError, "(3x4 and 2x2)"),
        (lambda s: tg.ones(2, 2) @ s, RuntimeError, "(2x2 and 3x4)"),
        (lambda s: s @ tg.ones(4, 2).double(), RuntimeError, "dtype"),
        (lambda s: tg.sparse_coo_tensor([0, 1], [1.0, 2.0], (2,)), RuntimeError, "indices must be sparse_dim x nnz"),
        (lambda s: tg.sparse_coo_tensor(INDEX, [1.0], SHAPE), RuntimeError, "nnz from indices: 4, nnz from values: 1"),
        (lambda s: tg.sparse_coo_tensor(INDEX, tg.ones(4), (3,)), RuntimeError, "len(size) = 1, sparse_dim = 2"),
        (lambda s: tg.sparse_coo_tensor(INDEX, tg.ones(4), (3, 2)), RuntimeError, "for dim 1, size is 2 but found index 2"),
        (lambda s: tg.sparse_coo_tensor([[-1]], [1.0], (3,)), RuntimeError, "found negative index -1 for dim 0"),
        (lambda s: tg.sparse_coo_tensor([[0]], tg.ones(1, 2), (3, 2)), NotImplementedError, "dense dimensions"),
        (lambda s: tg.sparse_coo_tensor([[0]], [1.0], (3,), requires_grad=True), NotImplementedError, "let its values"),
        (lambda s: tg.ones(2, 2).to_sparse(1), NotImplementedError, "out of tapegrad's scope"),
        (lambda s: tg.ones(2, 2).to_sparse_csr(), NotImplementedError, "compressed sparse tensors are out of"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call(sparse())
    assert text in str(caught.value)

"""Sparse tensors in coordinate (COO) form, under the names of torch.sparse: the part that graph networks need.

A sparse tensor is its indices, an integer array of shape (dimensions, elements), and its values, a tensor that may require
grad. Products with dense matrices, sums, scaling and transposing work on these, with PyTorch's results; every other
operation runs on the dense tensor and returns a dense result, so values never depend on the storage format. In-place writes,
dense dimensions and the compressed formats (csr, csc, bsr, bsc) are not supported.
"""

# mypy: disable-error-code="override, assignment, misc"
# The methods here take no out= and no axis=, which those of dense tensors do.

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self

import numpy as np

from . import dtypes, errors
from .core import alias
from .core.record import Box
from .functions import create, linalg
from .functions.grad_fn_names import set_grad_fn_name
from .functions.joining import cat
from .functions.operands import tensor
from .functions.overrides import disabled
from .later import mark as _mark
from .programs.tracing import leaving
from .tensor import printing
from .tensor.access import raw
from .tensor.printing import dtype_suffix, history_suffix
from .tensor.tensor import Tensor

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sparse_coo_tensor", "sum"]


class SparseTensor(Tensor):
    """A tensor of which only some elements are stored; made by `sparse_coo_tensor` and `Tensor.to_sparse`."""

    __module__ = "tapegrad"
    __torch_function__ = staticmethod(disabled)
    is_sparse = True
    layout = dtypes.sparse_coo
    _i: Any  # (dimensions, elements), int64; elements of one position are added
    _v: Tensor
    _size: dtypes.Size
    _sorted: bool  # coalesced: in row-major order, no two of one position
    _made: Any  # the dense tensor, once an operation needed it

    def __new__(cls, indices: Any, values: Any, size: Iterable[int], coalesced: bool = False) -> Self:
        t = Box.__new__(cls)
        t._i, t._v, t._size, t._sorted, t._made = indices, values, dtypes.Size(size), coalesced, None
        return t

    # What dense operations read: the array, slot and state of the dense tensor.

    def _dense(self) -> Any:
        if self._made is None or (self._v.requires_grad and not self._made.requires_grad):  # made under no_grad
            self._made = self.to_dense()
            alias.sync(self._made)
            self._made._d.flags.writeable = False
        return self._made

    @property
    def _d(self) -> Any:
        return self._dense()._d

    @_d.setter
    def _d(self, array: Any) -> None:
        raise errors.sparse_in_place()

    @property
    def _s(self) -> Any:
        return self._dense()._s if self._v.requires_grad else 0

    @_s.setter
    def _s(self, slot: int) -> None:
        raise errors.sparse_in_place()

    @property
    def _st(self) -> Any:
        state = self._v._st
        lone = state is None or (state.level is None and state.slot_hooks is None)
        return None if lone else self._dense()._st

    @_st.setter
    def _st(self, state: Any) -> None:
        """Never stored: a sparse tensor cannot be written in place, so it has no views to update."""

    def _overwrite(self, other: Any, name: str) -> NoReturn:
        raise errors.sparse_in_place()

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
        """The dense tensor with the same elements."""
        flat = create.zeros(math.prod(self._size), dtype=self.dtype).index_add(0, self._positions(), self._v)
        dense: Tensor = flat.reshape(self._size)
        return dense if dtype is None else dense.to(dtype)

    def _positions(self) -> Any:
        """Flat indices of the elements in the dense tensor."""
        i = self._i
        return create.tensor(np.ravel_multi_index(tuple(i), self._size) if len(i) else np.zeros(i.shape[1], np.int64))

    def _with(self, values: Any) -> SparseTensor:
        """The same indices with other values."""
        return self if values is self._v else SparseTensor(self._i, values, self._size, self._sorted)

    # ---------------------------------------------------------------------------------------------------- what it is

    @property
    def shape(self) -> dtypes.Size:
        return self._size

    def size(self, dim: int | None = None) -> Any:
        return self._size if dim is None else self._size[dim]

    @property
    def ndim(self) -> int:
        return len(self._size)

    def dim(self) -> int:
        return len(self._size)

    def sparse_dim(self) -> int:
        """Number of sparse dimensions: all dimensions are sparse."""
        return len(self._size)

    def dense_dim(self) -> int:
        """Number of dense dimensions: 0."""
        return 0

    def numel(self) -> int:
        return math.prod(self._size)

    def __len__(self) -> int:
        return self._size[0]

    @property
    def dtype(self) -> dtypes.dtype:
        return self._v.dtype

    @property
    def requires_grad(self) -> bool:
        return self._v.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Raise NotImplementedError unless nothing changes: set requires_grad on the values instead."""
        if requires_grad != self._v.requires_grad:
            raise errors.sparse_leaf()
        return self

    @property
    def grad_fn(self) -> Any:
        """The node of the operation that created the values."""
        return self._v.grad_fn

    @property
    def data(self) -> SparseTensor:
        """The same elements, detached."""
        result: SparseTensor = self.detach()
        return result

    @property
    def is_leaf(self) -> bool:
        return not self.requires_grad

    def is_coalesced(self) -> bool:
        """Whether the indices are sorted in row-major order without duplicates."""
        return self._sorted

    def _nnz(self) -> int:
        return int(self._i.shape[1])

    def _indices(self) -> Tensor:
        result: Tensor = create.tensor(self._i)
        return result

    def _values(self) -> Tensor:
        return self._v.detach()

    def indices(self) -> Tensor:
        """Indices of a coalesced tensor, int64 of shape (ndim, nnz)."""
        if not self._sorted:
            raise errors.uncoalesced("indices")
        result: Tensor = create.tensor(self._i)
        return result

    def values(self) -> Tensor:
        """Values of a coalesced tensor, shape (nnz,)."""
        if not self._sorted:
            raise errors.uncoalesced("values")
        result: Tensor = set_grad_fn_name("ValuesBackward0", self._v.view_as(self._v))
        return result

    def __repr__(self) -> str:
        def part(name: str, a: Any) -> str:
            size = ["size=(0,)"] if a.shape == (0,) else []
            return f"{name}={printing.tensor_repr(a, suffixes=size, column=len(f'tensor({name}='))}"

        text = f"tensor({part('indices', self._i)},\n       {part('values', leaving(self._v, 'printing'))}"
        suffixes = [f"size={tuple(self._size)}", f"nnz={self._nnz()}", *dtype_suffix(self._v), f"layout={self.layout}"]
        return printing.with_suffixes(text, suffixes + history_suffix(self._v), 7, new_line=True)

    # --------------------------------------------------------------------------------------------------- other tensors

    def numpy(self, *, force: bool = False) -> Any:
        """Raise TypeError: NumPy arrays are dense."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def to_sparse(self, *args: Any, **kwargs: Any) -> Any:
        """Itself."""
        return self

    to_sparse_coo = to_sparse

    def coalesce(self) -> SparseTensor:
        """Sort the indices in row-major order and sum the values of duplicates."""
        if self._sorted:
            return self
        known = leaving(self._positions(), "coalesce(): the number of elements depends on values")
        positions, order, inverse = np.unique(known, return_index=True, return_inverse=True)
        if len(positions) == self._nnz():
            values = self._v[create.tensor(order)]
        else:
            values = create.zeros(len(positions), dtype=self.dtype).index_add(0, create.tensor(inverse), self._v)
        return SparseTensor(self._i[:, order], set_grad_fn_name("CoalesceBackward0", values), self._size, True)

    def permute(self, *dims: Any) -> SparseTensor:
        """Dimensions in another order."""
        dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        order = [d % self.ndim for d in dims]
        return SparseTensor(self._i[order], self._v, [self._size[d] for d in order])

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two dimensions exchanged."""
        order = list(range(self.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return self.permute(order)

    swapaxes = swapdims = transpose

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        if self.ndim > 2:
            given = f"{self.ndim} sparse and 0 dense dimensions"
            raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {given}")
        turned: SparseTensor = self.T
        return turned

    T = property(lambda self: self.permute(range(self.ndim)[::-1]))
    mT = property(lambda self: self.transpose(-2, -1))

    def sum(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        """Sum of all elements, or a sparse tensor of sums over the given dimensions."""
        values = self._v if dtype is None else self._v.to(dtype)
        gone = {d % self.ndim for d in ([dim] if isinstance(dim, int) else dim or range(self.ndim))}
        if len(gone) == self.ndim and not keepdim:
            return values.sum()
        if keepdim:
            positions = np.where([[d in gone] for d in range(self.ndim)], 0, self._i)
            return SparseTensor(positions, values, [1 if d in gone else n for d, n in enumerate(self._size)]).coalesce()
        kept = [d for d in range(self.ndim) if d not in gone]
        return SparseTensor(self._i[kept], values, [self._size[d] for d in kept]).coalesce()

    def mul(self, other: Any) -> Any:
        """Elementwise product with a number or a tensor of the same shape."""
        factor = tensor(other)
        one = self.coalesce() if isinstance(factor, SparseTensor) else self
        if not factor.ndim:
            return one._with(one._v * other)
        return one._with(one._v * factor.broadcast_to(self._size).reshape(-1)[one._positions()])

    __mul__ = __rmul__ = multiply = mul

    def div(self, other: Any, *, rounding_mode: Any = None) -> Any:
        """Each element divided by a number."""
        if rounding_mode is not None or tensor(other).ndim:
            return self._dense().div(other, rounding_mode=rounding_mode)
        return self._with(self._v / other)

    __truediv__ = divide = div

    def add(self, other: Any, *, alpha: Any = 1) -> Any:
        """The sum: sparse with another sparse tensor of its shape, dense with a dense one."""
        if not isinstance(other, SparseTensor) or other._size != self._size:
            return self._dense().add(other, alpha=alpha)
        values = cat([self._v, other._v if alpha == 1 else other._v * alpha])
        return SparseTensor(np.hstack([self._i, other._i]), values, self._size).coalesce()

    __add__ = add

    def sub(self, other: Any, *, alpha: Any = 1) -> Any:
        """The difference; sparse or dense as for add."""
        return self.add(other, alpha=-alpha)

    __sub__ = subtract = sub

    def neg(self) -> SparseTensor:
        """Elementwise negation."""
        return self._with(-self._v)

    __neg__ = negative = neg

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._with(self._v.__deepcopy__(memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self._i, self._v, tuple(self._size), self._sorted)

    # --------------------------------------------------------------------------------------------------------- products

    def _times(self, other: Any) -> Any:
        """self @ other for a dense vector or matrix (dense result) or a sparse matrix (sparse result)."""
        y = tensor(other)
        if self.ndim != 2 or y.ndim not in (1, 2):
            return linalg.matmul(self._dense(), y)
        if y.shape[0] != self._size[1]:
            raise errors.matmul_mismatch("mm", self._size, y.shape)
        if y.dtype is not self.dtype:
            raise errors.dtype_mismatch("mm", raw(self._v).dtype, raw(y).dtype)
        if isinstance(y, SparseTensor):
            return self._times(y._dense()).to_sparse()
        rows, columns = (create.tensor(i) for i in self._i)
        parts = y[columns] * (self._v if y.ndim == 1 else self._v[:, None])
        product = create.zeros(self._size[0], *y.shape[1:], dtype=self.dtype).index_add(0, rows, parts)
        return set_grad_fn_name("MvBackward0" if y.ndim == 1 else "MmBackward0", product)

    def _after(self, other: Any) -> Any:
        """other @ self."""
        x = tensor(other)
        if self.ndim != 2 or x.ndim not in (1, 2):
            return linalg.matmul(x, self._dense())
        if x.shape[-1] != self._size[0]:
            raise errors.matmul_mismatch("mm", x.shape, self._size)
        return self.t()._times(x.t()).t()


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"


def _rebuilt(*parts: Any) -> Any:
    return SparseTensor(*parts)


def _elementwise(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._with(getattr(self._v, name)(*args, **kwargs))

    method.__doc__ = getattr(Tensor, name).__doc__
    return method


for _name in ("bfloat16", "bool", "clone", "contiguous", "cpu", "detach", "double", "float", "half", "int", "long", "short",
              "to", "type_as"):  # fmt: skip
    setattr(SparseTensor, _name, _elementwise(_name))


def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """A sparse tensor with the given values at the given indices.

    Args:
        indices: integers of shape (ndim, nnz); a size alone, in their place, gives a tensor without elements.
        values: the elements, shape (nnz,); differentiable. Values at equal indices are summed.
        size: the shape; by default the smallest that contains the indices.
        dtype: dtype of the result; by default the dtype of the values.
        device: only 'cpu'.
        pin_memory, check_invariants: no effect; the indices are always checked.
        requires_grad: not supported: set it on the values instead.
        is_coalesced: states that the indices are sorted in row-major order without duplicates.

    Raises:
        RuntimeError: if the indices do not match the values or the size.
        NotImplementedError: for values of more than one dimension, or requires_grad.

    Example:
        >>> s = tg.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [1.0, 2.0, 3.0], (2, 3))
        >>> s.to_dense()
        tensor([[0., 0., 1.],
                [5., 0., 0.]])
    """
    if not create.check_device(device).type == "cpu":
        raise NotImplementedError("sparse tensors are on the CPU: give device='cpu'")
    if requires_grad:
        raise errors.sparse_leaf()
    if values is None:
        size, indices = indices, np.zeros((len(indices), 0), np.int64)
        values = create.zeros(0, dtype=dtype)
    i = np.array(leaving(indices, "indices of a sparse tensor") if isinstance(indices, Tensor) else indices).astype(np.int64)
    v = values if isinstance(values, Tensor) else create.tensor(values)
    v = v if dtype is None else v.to(dtype)
    if i.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(i.shape)}")
    if v.ndim != 1:
        raise errors.out_of_scope("sparse_coo_tensor", "dense dimensions of sparse tensors")
    if len(v) != i.shape[1]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {i.shape[1]}, nnz from values: {len(v)}"
        )
    size = tuple(size) if size is not None else tuple((i.max(1) + 1).tolist() if i.size else [0] * len(i))
    if len(size) != len(i):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {len(i)}, "
            "dense_dim = 0"
        )
    for dim, (row, n) in enumerate(zip(i, size, strict=True)):
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {row.min()} for dim {dim}")
        if row.size and row.max() >= n:
            raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {n} but found index {row.max()}")
    named = set_grad_fn_name("SparseCooTensorWithDimsAndTensorsBackward0", v.view_as(v))
    return SparseTensor(i, named, size, bool(is_coalesced))


def to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
              dense_dim: int | None = None) -> SparseTensor:  # fmt: skip
    """The nonzero elements as a sparse tensor in coordinate form; every dimension is sparse."""
    if sparse_dim not in (None, self.ndim) or dense_dim or blocksize or layout not in (None, SparseTensor.layout):
        raise errors.out_of_scope("to_sparse", "dense dimensions and compressed forms of sparse tensors")
    known = leaving(self, "to_sparse(): the number of elements depends on values")
    i = np.array(np.nonzero(np.atleast_1d(known)))[: self.ndim]
    flat = np.ravel_multi_index(tuple(i), self.shape) if self.ndim else np.flatnonzero(known)
    i = i if self.ndim else np.zeros((0, len(flat)), np.int64)
    values = set_grad_fn_name("ToSparseBackward1", self.reshape(-1)[create.tensor(flat)])
    return SparseTensor(i, values, self.shape, True)


def sparse_mask(self: Any, mask: Any) -> SparseTensor:
    """The elements at the indices of a sparse tensor, as a sparse tensor."""
    result: SparseTensor = mask._with(self.broadcast_to(mask.shape).reshape(-1)[mask._positions()])
    return result


def mm(mat1: Any, mat2: Any) -> Tensor:
    """Product of a sparse and a dense matrix (or of any two matrices), differentiable in the values and the dense matrix.

    Args:
        mat1: (n, m), sparse.
        mat2: (m, p), dense.

    Returns:
        A dense tensor (n, p).

    Example:
        >>> v = tg.tensor([2.0, 3.0], requires_grad=True)
        >>> s = tg.sparse_coo_tensor([[0, 1], [1, 0]], v)
        >>> tg.sparse.mm(s, tg.tensor([[1.0], [10.0]])).sum().backward()
        >>> v.grad
        tensor([10.,  1.])
    """
    result: Tensor = linalg.mm(mat1, mat2)
    return result


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2) with a sparse matrix mat1.

    Args:
        mat: (n, p), dense.
        mat1: (n, m), sparse.
        mat2: (m, p), dense.
        beta, alpha: numbers.

    Returns:
        A dense tensor (n, p).

    Example:
        >>> s = tg.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0])
        >>> tg.sparse.addmm(tg.ones(2, 2), s, tg.eye(2))
        tensor([[1., 3.],
                [4., 1.]])
    """
    result: Tensor = linalg.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)
    return result


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Tensor:
    """Sum of all elements of a sparse tensor, or a sparse tensor of sums over the given dimensions.

    Args:
        input: a sparse tensor.
        dim: a dimension or a tuple of them; None: all.
        dtype: of the result.

    Example:
        >>> s = tg.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0])
        >>> tg.sparse.sum(s), tg.sparse.sum(s, 0).to_dense()
        (tensor(5.), tensor([3., 2.]))
    """
    if not input.is_sparse:
        raise errors.not_sparse("coalesce")
    result: Tensor = input.sum(dim, dtype=dtype)
    return result


def _normalized(name: str, input: Any, dim: int, dtype: Any) -> SparseTensor:
    if not input.is_sparse:
        raise errors.not_sparse(name)
    x = input.coalesce() if dtype is None else input.coalesce().to(dtype)
    empty = create.full((x.numel(),), -math.inf, dtype=x.dtype)
    full = empty.index_copy(0, x._positions(), x._v).reshape(x.shape)
    result: SparseTensor = x._with(getattr(full, name)(dim).reshape(-1)[x._positions()])
    return result


def softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Softmax along dim over the stored elements; the others stay 0.

    Args:
        input: a sparse tensor.
        dim: a dimension.
        dtype: cast to it first.

    Returns:
        A sparse tensor of input's shape.

    Example:
        >>> s = tg.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
        >>> tg.sparse.softmax(s, 1).to_dense()
        tensor([[0.5000, 0.0000, 0.5000]])
    """
    return _normalized("softmax", input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Log-softmax along dim over the stored elements; the others count as log(0).

    Args:
        input: a sparse tensor.
        dim: a dimension.
        dtype: cast to it first.

    Returns:
        A sparse tensor of input's shape.

    Example:
        >>> s = tg.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
        >>> tg.sparse.log_softmax(s, 1).values()
        tensor([-0.6931, -0.6931])
    """
    return _normalized("log_softmax", input, dim, dtype)


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()

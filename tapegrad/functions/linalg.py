"""Products of vectors and matrices, and distances: the public functions of the records in `table.linalg`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .. import errors
from ..core import record
from ..core.op import TABLE
from ..core.record import Box, fixed
from ..core.tape import next_slot
from ..core.vjp import fixed_like
from ..dtypes import is_floating, is_inexact
from ..kernels.shape import dim_of, shape_of
from ..table.define import named
from ..table.elementwise import mul
from ..table.linalg import _cdist_op, _linear, _matmul, _one_dtype
from . import casting, reduce
from .arguments import numbers_first, numpy_names, put_out, with_grad_fn_name, with_out
from .einsum import tensordot
from .elementwise import add, conj, sub
from .grad_fn_names import set_grad_fn_name
from .joining import cat
from .operands import half_in_float32, number_fits, of_one_dtype, operand, promoted_in_full, refused, tensor
from .shape import broadcast_to, diagonal, expand, flip, reshape, unsqueeze

SAME_DTYPE = "self and mat2 must have the same dtype, but got"


def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """Matrix product over the last two dimensions, the others broadcast: `input @ other`.

    A vector on the left counts as a row, one on the right as a column, and the dimension is taken away again.

    Args:
        input: tensor (.., n, k) or vector (k,).
        other: tensor (.., k, m) or vector (k,) of the same dtype.

    Returns:
        A tensor (.., n, m), without n or m for a vector, of their dtype.

    Raises:
        RuntimeError: for 0-dim operands, sizes that do not fit, or different dtypes.

    Derivative:
        input: matmul(g, conj(transpose(other, -2, -1)))
        other: see tapegrad/table/linalg.py, record matmul

    Example:
        >>> a = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> y = tg.matmul(a, tg.tensor([1.0, 10.0]))
        >>> y.sum().backward()
        >>> y.detach(), a.grad
        (tensor([21., 43.]), tensor([[ 1., 10.],
                [ 1., 10.]]))
    """
    result = _product(input, other)
    if result is NotImplemented:
        return refused("matmul", (input, other))
    return result if out is None else put_out("matmul", result, out)


def _product(input: Any, other: Any) -> Any:
    """`input @ other`."""
    if casting.OPEN:
        input, other = casting.lowered(input, other)
    kinds = record.Tensor, record.Parameter
    if type(input) in kinds and type(other) in kinds and input._st is None and other._st is None:
        x, y = input._d, other._d
        if x.ndim == 2 == y.ndim and x.dtype is y.dtype and x.shape[1] == y.shape[0]:
            return _matmul(input, other)
    x, y = operand(input, True), operand(other, True)
    if x is NotImplemented or y is NotImplemented:
        return refused("matmul", (input, other), True)
    x, y = tensor(x), tensor(y)
    if x.is_sparse or y.is_sparse:
        return x._times(y) if x.is_sparse else y._after(x)
    a, b = x._d.shape, y._d.shape
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    if x._d.dtype is not y._d.dtype:
        raise errors.dtype_mismatch("matmul", x._d.dtype, y._d.dtype)
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise errors.matmul_mismatch("matmul", a, b)
    before = 0
    if len(a) == 1 or len(b) == 1:
        before = next_slot()
        x = x if len(a) > 1 else reshape(x, (1, a[0]))
        y = y if len(b) > 1 else reshape(y, (b[0], 1))
    try:
        r = _matmul(x, y)
    except ValueError:
        raise errors.matmul_mismatch("matmul", a, b) from None
    if len(a) > 1 and len(b) > 1:
        return r
    shape = r._d.shape
    shape = shape[:-1] if len(b) == 1 else shape
    if len(a) == 1:
        shape = (*shape[:-1], *shape[len(shape) :]) if len(b) == 1 else (*shape[:-2], shape[-1])
    return set_grad_fn_name("MvBackward0" if shape else "DotBackward0", reshape(r, shape), before)


matmul.operator = named(_product, "matmul", matmul.__doc__ or "")  # type: ignore[attr-defined]


def rmatmul(other: Any, input: Any) -> Any:
    """`input @ other` for an operand on the left that is no tensor."""
    return matmul(input, other)


def _ranked(name: str, x: Any, rank: int, argument: str = "self") -> Any:
    x = tensor(x)
    if len(shape_of(x)) != rank:
        raise RuntimeError(f"{name}: Expected {rank}-D argument {argument}, but got {len(shape_of(x))}-D")
    return x


def _matrix(x: Any, argument: str) -> Any:
    x = tensor(x)
    if x.ndim != 2:
        raise RuntimeError(f"{argument} must be a matrix")
    return x


def _same(name: str, x: Any, y: Any) -> None:
    if x._d.dtype is not y._d.dtype:
        raise errors.dtype_mismatch(name, x._d.dtype, y._d.dtype)


@with_out
def mm(input: Any, mat2: Any) -> Any:
    """Product of two matrices.

    Args:
        input: matrix (n, k).
        mat2: matrix (k, m) of the same dtype.

    Returns:
        Matrix (n, m).

    Raises:
        RuntimeError: for other numbers of dimensions, sizes that do not fit, or different dtypes.

    Example:
        >>> tg.mm(tg.tensor([[1, 2], [3, 4]]), tg.tensor([[0, 1], [1, 0]]))
        tensor([[2, 1],
                [4, 3]])
    """
    x, y = _matrix(input, "self"), _matrix(mat2, "mat2")
    if x.shape[1] != y.shape[0]:
        raise errors.matmul_mismatch("mm", x.shape, y.shape)
    return matmul(x, y)


@with_out
@with_grad_fn_name("BmmBackward0")
def bmm(input: Any, mat2: Any) -> Any:
    """Products of two batches of matrices.

    Args:
        input: tensor (b, n, k).
        mat2: tensor (b, k, m) of the same dtype.

    Returns:
        Tensor (b, n, m).

    Raises:
        RuntimeError: for other numbers of dimensions, sizes that do not fit, or different dtypes.

    Example:
        >>> tg.bmm(tg.ones(10, 2, 3), tg.ones(10, 3, 4)).shape
        torch.Size([10, 2, 4])
    """
    x, y = tensor(input), tensor(mat2)
    for i, t in enumerate((x, y)):
        if len(shape_of(t)) != 3:
            raise RuntimeError(f"batch{i + 1} must be a 3D tensor")
    (b, _, k), found = shape_of(x), list(shape_of(y)[:2])
    if [b, k] != found:
        raise errors.batch2_sizes([b, k], found)
    return matmul(x, y)


def _vector_product(x: Any, y: Any, of: str) -> Any:
    if x.shape[1:] != y.shape:
        (m, n), k = x.shape, y.shape[0]
        raise RuntimeError(f"size mismatch, got {of} ({m}), mat ({m}x{n}), vec ({k})")
    return matmul(x, y)


@with_out
@casting.as_given
def mv(input: Any, vec: Any) -> Any:
    """Product of a matrix and a vector.

    Args:
        input: matrix (n, k).
        vec: vector (k,) of the same dtype.

    Returns:
        Vector (n,).

    Raises:
        RuntimeError: for other numbers of dimensions, sizes that do not fit, or different dtypes.

    Example:
        >>> tg.mv(tg.tensor([[1, 2], [3, 4]]), tg.tensor([1, 10]))
        tensor([21, 43])
    """
    x, y = tensor(input), tensor(vec)
    if (x.ndim, y.ndim) != (2, 1):
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {y.ndim}. In mv().")
    return _vector_product(x, y, "input")


def _inner(name: str, x: Any, y: Any) -> Any:
    x, y = tensor(x), tensor(y)
    a, b = shape_of(x), shape_of(y)
    if (len(a), len(b)) != (1, 1):
        raise RuntimeError(f"1D tensors expected, but got {len(a)}D and {len(b)}D tensors. In {name}().")
    if x._d.dtype is not y._d.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found {errors.dtype_name(x._d.dtype)} and "
            f"{errors.dtype_name(y._d.dtype)}"
        )
    if a != b:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(a)} and src {list(b)} to have the same number of elements, "
            f"but got {a[0]} and {b[0]} elements respectively. In {name}()."
        )
    return matmul(x, y)


@with_out
@casting.as_given
def dot(input: Any, tensor: Any) -> Any:
    """Inner product of two vectors, without conjugation: sum(input * tensor).

    Args:
        input, tensor: vectors of one length and dtype.

    Returns:
        0-dim tensor of their dtype.

    Raises:
        RuntimeError: for other numbers of dimensions, lengths or dtypes.

    Example:
        >>> tg.dot(tg.tensor([1, 2]), tg.tensor([3, 4]))
        tensor(11)
    """
    return _inner("dot", input, tensor)


@with_out
@casting.as_given
@with_grad_fn_name("VdotBackward0")
def vdot(input: Any, other: Any) -> Any:
    """Inner product of two vectors, the first one conjugated: sum(conj(input) * other).

    Args:
        input, other: vectors of one length and dtype.

    Returns:
        0-dim tensor of their dtype.

    Raises:
        RuntimeError: for other numbers of dimensions, lengths or dtypes.

    Example:
        >>> tg.vdot(tg.tensor([1j, 2.0]), tg.tensor([1j, 1.0]))
        tensor(3.+0.j)
    """
    return _inner("vdot", conj(input), other)


@with_out
def outer(input: Any, vec2: Any) -> Any:
    """Outer product of two vectors: input[:, None] * vec2.

    Args:
        input: vector (n,).
        vec2: vector (m,).

    Returns:
        Matrix (n, m) of their common dtype.

    Raises:
        RuntimeError: for other numbers of dimensions.

    Example:
        >>> tg.outer(tg.tensor([1, 2]), tg.tensor([3, 4, 5]))
        tensor([[ 3,  4,  5],
                [ 6,  8, 10]])
    """
    return _outer("outer", input, vec2, ("self", "vec2"))


def _outer(name: str, x: Any, y: Any, arguments: tuple[str, str]) -> Any:
    x, y = _ranked(name, x, 1, arguments[0]), _ranked(name, y, 1, arguments[1])
    return mul(TABLE["reshape"].call(x, (x._d.size, 1)), y)


ger = outer


@with_out
@casting.in_16_bits
def inner(input: Any, other: Any) -> Any:
    """Sums of products over the last dimension of both; with a 0-dim operand, their product.

    Args:
        input: tensor (.., k).
        other: tensor (.., k).

    Returns:
        Tensor of input's shape without the last dimension, followed by other's without the last.

    Raises:
        RuntimeError: if the last sizes or the dtypes differ.

    Example:
        >>> tg.inner(tg.tensor([[1, 2], [3, 4]]), tg.tensor([1, 10]))
        tensor([21, 43])
    """
    x, y = tensor(input), tensor(other)
    a, b = shape_of(x), shape_of(y)
    if not a or not b:
        return mul(x, y)
    if a[-1] != b[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a)} and {list(b)}"
        )
    return tensordot(x, y, ([-1], [-1]))


@with_out
@casting.in_16_bits
def linalg_vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Sums of conj(x) * y along a dimension, the others broadcast.

    Args:
        x, y: float or complex tensors of one dtype.
        dim: the dimension, default the last.

    Raises:
        RuntimeError: for integers, different dtypes, or sizes that do not fit.

    Example:
        >>> tg.linalg.vecdot(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 10.0]))
        tensor([21., 43.])
    """
    x, y = tensor(x), tensor(y)
    if not is_inexact(x._d.dtype):
        raise errors.not_inexact("linalg.vecdot", x._d.dtype)
    if len(shape_of(x)) == len(shape_of(y)) == 1:
        return vdot(x, y)
    _same("linalg.vecdot", x, y)
    return reduce.sum(mul(conj(x), y), dim)


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.T + bias.

    Args:
        input: tensor (.., n).
        weight: matrix (m, n), or vector (n,) for one output without a dimension.
        bias: vector (m,), or None (default).

    Returns:
        Tensor (.., m) of their common dtype.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Derivative:
        input: matmul(g, conj(weight))
        weight: matmul(transpose(flat(g), -2, -1), conj(flat(input))), where flat: x with all dimensions but the last as one
        bias: g

    Example:
        >>> weight = tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> tg.nn.functional.linear(tg.tensor([1.0, 10.0]), weight, tg.ones(3))
        tensor([22., 44., 66.])
    """
    if casting.OPEN:
        input, weight, bias = casting.lowered(input, weight, bias)
    if bias is None and type(input) is record.Tensor and isinstance(weight, record.Parameter):
        x, w = input._d, weight._d
        if len(x.shape) > 1 and len(w.shape) == 2 and x.shape[-1] == w.shape[1] and x.dtype is w.dtype:
            return _matmul(input, TABLE["mT"].call(weight))
    if bias is None or (isinstance(input, Box) and input._d.ndim < 2):
        return _checked_linear(input, weight, bias)
    try:
        return _linear(input, weight, bias)
    except (ValueError, AttributeError, TypeError, RuntimeError):
        pass  # the checks below name the error, or sort out what the fast way does not take
    return _checked_linear(input, weight, bias)


def _checked_linear(input: Any, weight: Any, bias: Any) -> Any:
    for i, t in enumerate((input, weight)):
        if operand(t, False) is NotImplemented:
            raise errors.not_a_tensor("linear", i, type(t).__name__)
    x, w = tensor(input), tensor(weight)
    a, b = shape_of(x), shape_of(w)
    if len(b) == 1 and a and a[-1] == b[0]:  # one output, and no dimension for it
        if bias is not None:
            raise RuntimeError("mat2 must be a matrix, got 1-D tensor. In linear(): a weight without outputs takes no bias.")
        return matmul(x, w)
    if not a or len(b) != 2 or a[-1] != b[1]:
        raise errors.matmul_mismatch("linear", a if len(a) == 2 else (int(np.prod(a[:-1])), *a[-1:]), b[::-1])
    if bias is None:
        _same("linear", x, w)
        product = matmul(x, TABLE["mT"].call(w))
        return product if len(a) > 1 else set_grad_fn_name("SqueezeBackward4", product)
    bias = tensor(bias)
    _one_dtype("linear", None, [t._d.dtype for t in (x, w, bias)])
    if shape_of(bias) != b[:1]:
        bias = broadcast_to(bias, (math.prod(a[:-1]), b[0]))
        return matmul(x, TABLE["mT"].call(w)) + reshape(bias, (*a[:-1], b[0]))
    if len(a) == 1:
        return reshape(_linear(reshape(x, (1, a[0])), w, bias), b[:1])
    return _linear(x, w, bias)


def _plus(input: Any, product: Any, beta: float, alpha: float) -> Any:
    """beta * input + alpha * product; the input is not read for beta 0. Integers take the whole part of beta and alpha."""
    dtype = product._d.dtype
    if dtype.kind in "biu":
        number_fits(beta, dtype)
        number_fits(alpha, dtype)
        whole = bool if dtype.kind == "b" else int
        beta, alpha = whole(beta), whole(alpha)
    scaled = product if alpha == 1 else mul(product, alpha)
    if beta == 0:
        return scaled
    x = tensor(input)
    if shape_of(x) != shape_of(product):
        x = expand(x, shape_of(product))
    return add(mul(x, beta) if beta != 1 else x, scaled)


@with_out
@with_grad_fn_name("AddmmBackward0")
@numbers_first("beta", "alpha")
@casting.in_16_bits
@half_in_float32
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2).

    Args:
        input: tensor that expands to (n, m); not read for beta = 0.
        mat1: matrix (n, k).
        mat2: matrix (k, m), all of one dtype.
        beta, alpha: numbers, default 1.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> tg.addmm(tg.ones(2), tg.eye(2), tg.tensor([[1.0, 2.0], [3.0, 4.0]]), alpha=10)
        tensor([[11., 21.],
                [31., 41.]])
    """
    x, y = _matrix(mat1, "mat1"), _matrix(mat2, "mat2")
    if x.shape[1] != y.shape[0]:
        raise errors.matmul_mismatch("addmm", x.shape, y.shape)
    of_one_dtype(SAME_DTYPE, tensor(input), y)
    return _plus(input, matmul(x, y), beta, alpha)


@with_out
@with_grad_fn_name("AddmvBackward0")
@numbers_first("beta", "alpha")
@casting.as_given
@half_in_float32
def addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * (mat @ vec).

    Args:
        input: tensor that expands to (n,); not read for beta = 0.
        mat: matrix (n, k).
        vec: vector (k,), all of one dtype.
        beta, alpha: numbers, default 1.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> tg.addmv(tg.ones(2), tg.tensor([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 10.0]))
        tensor([22., 44.])
    """
    x, y = tensor(mat), tensor(vec)
    ranks = len(shape_of(tensor(input))), len(shape_of(x)), len(shape_of(y))
    if ranks[1:] != (2, 1) or ranks[0] > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {', '.join(str(r) for r in ranks)}")
    of_one_dtype("addmv input tensors must have the same dtype, but got", tensor(input), x, y)
    return _plus(input, _vector_product(x, y, "input"), beta, alpha)


@with_out
@with_grad_fn_name("AddrBackward0")
@numbers_first("beta", "alpha")
def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * outer(vec1, vec2); of bools, "or" and "and".

    Args:
        input: tensor that expands to (n, m); not read for beta = 0.
        vec1: vector (n,).
        vec2: vector (m,).
        beta, alpha: numbers, default 1.

    Raises:
        RuntimeError: for sizes that do not fit, or factors that are no integers with integer vectors.

    Example:
        >>> tg.addr(tg.zeros(2, 2), tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    product = _outer("addr", vec1, vec2, ("vec1", "vec2"))
    if product._d.dtype.kind in "biu":
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, float):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    return _plus(input, product, beta, alpha)


@with_out
@with_grad_fn_name("BaddbmmBackward0")
@numbers_first("beta", "alpha")
@casting.in_16_bits
@half_in_float32
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * bmm(batch1, batch2).

    Args:
        input: tensor that expands to (b, n, m); not read for beta = 0.
        batch1: tensor (b, n, k).
        batch2: tensor (b, k, m), all of one dtype.
        beta, alpha: numbers, default 1.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> tg.baddbmm(tg.ones(2), tg.ones(1, 2, 3), tg.ones(1, 3, 2)).sum()
        tensor(16.)
    """
    product = bmm(batch1, batch2)
    of_one_dtype("Input dtypes must be the same, but got", tensor(input), product)
    return _plus(input, product, beta, alpha)


@with_out
@with_grad_fn_name("AddbmmBackward0")
@numbers_first("beta", "alpha")
@casting.in_16_bits
@half_in_float32
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * the sum of bmm(batch1, batch2) over the batch.

    Args:
        input: tensor that expands to (n, m); not read for beta = 0.
        batch1: tensor (b, n, k).
        batch2: tensor (b, k, m), all of one dtype.
        beta, alpha: numbers, default 1.

    Raises:
        RuntimeError: for sizes that do not fit, or different dtypes.

    Example:
        >>> tg.addbmm(tg.zeros(2), tg.ones(5, 2, 3), tg.ones(5, 3, 2))
        tensor([[15., 15.],
                [15., 15.]])
    """
    bmm_shapes = shape_of(tensor(batch1)), shape_of(tensor(batch2))
    if [len(s) for s in bmm_shapes] != [3, 3] or bmm_shapes[0][::2] != bmm_shapes[1][:2]:
        bmm(batch1, batch2)  # raises
    of_one_dtype(SAME_DTYPE, tensor(input), tensor(batch2))
    return _plus(input, tensordot(batch1, batch2, ([0, 2], [0, 1])), beta, alpha)


def _product_order(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where the cheapest product of matrices i to j, of sizes[i] x sizes[i + 1] and so on, is to be split."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


@with_out
@casting.in_16_bits
def linalg_multi_dot(tensors: Any) -> Any:
    """Product of two or more matrices in the cheapest order.

    Args:
        tensors: sequence of matrices of one dtype; the first and the last may be vectors.

    Raises:
        RuntimeError: for fewer than two tensors, or sizes that do not fit.

    Example:
        >>> tg.linalg.multi_dot([tg.ones(2, 30), tg.ones(30, 4), tg.ones(4)])
        tensor([120., 120.])
    """
    xs = [tensor(t) for t in tensors]
    n = len(xs)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    for i, x in enumerate(xs):
        allowed = (1, 2) if i in (0, n - 1) else (2,)
        if len(shape_of(x)) not in allowed:
            text = "1D or 2D" if i in (0, n - 1) else "2D"
            raise RuntimeError(f"multi_dot(): tensor {i} must be {text} but got {len(shape_of(x))}D")
    first, last = len(shape_of(xs[0])) == 1, len(shape_of(xs[-1])) == 1
    xs[0] = reshape(xs[0], (1, -1)) if first else xs[0]
    xs[-1] = reshape(xs[-1], (-1, 1)) if last else xs[-1]
    for i, (x, y) in enumerate(itertools.pairwise(xs)):
        if shape_of(x)[1] != shape_of(y)[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(shape_of(x))} and {list(shape_of(y))} cannot be "
                "multiplied"
            )
    split = _product_order([shape_of(xs[0])[0], *[shape_of(x)[1] for x in xs]])

    def product(i: int, j: int) -> Any:
        return xs[i] if i == j else matmul(product(i, split[i, j]), product(split[i, j] + 1, j))

    r = product(0, n - 1)
    shape = shape_of(r)
    return reshape(r, shape[int(first) : 2 - int(last)]) if first or last else r


@with_out
def chain_matmul(*matrices: Any) -> Any:
    """Product of the matrices, given one by one, in the cheapest order: linalg.multi_dot(matrices).

    Args:
        matrices: matrices of one dtype; of one alone the result is a copy.

    Raises:
        RuntimeError: for sizes that do not fit.

    Example:
        >>> tg.chain_matmul(tg.ones(2, 30), tg.ones(30, 4), tg.ones(4, 1))
        tensor([[120.],
                [120.]])
    """
    return TABLE["clone"].call(tensor(matrices[0])) if len(matrices) == 1 else linalg_multi_dot(matrices)


@with_out
def linalg_matmul(input: Any, other: Any) -> Any:
    """`matmul` under the name of linalg: input @ other.

    Args:
        input: tensor (.., n, k) or vector (k,).
        other: tensor (.., k, m) or vector (k,) of the same dtype.

    Example:
        >>> tg.linalg.matmul(tg.tensor([[1, 2], [3, 4]]), tg.tensor([1, 10]))
        tensor([21, 43])
    """
    return matmul(input, other)


@with_out
@with_grad_fn_name("UnsafeViewBackward0")
def kron(input: Any, other: Any) -> Any:
    """Kronecker product: blocks input[i, j, ..] * other.

    Args:
        input, other: tensors of any shape; the one of fewer dimensions gets dimensions of size 1 in front.

    Returns:
        Tensor of their common dtype whose sizes are the products of theirs.

    Example:
        >>> tg.kron(tg.tensor([[1, 10]]), tg.tensor([[1, 2], [3, 4]]))
        tensor([[ 1,  2, 10, 20],
                [ 3,  4, 30, 40]])
    """
    x, y = promoted_in_full([tensor(input), tensor(other)])
    rank = max(len(shape_of(x)), len(shape_of(y)))
    a, b = ((1,) * (rank - len(shape_of(t))) + shape_of(t) for t in (x, y))
    x = TABLE["reshape"].call(x, tuple([k for n in a for k in (n, 1)]))
    y = TABLE["reshape"].call(y, tuple([k for n in b for k in (1, n)]))
    return TABLE["reshape"].call(mul(x, y), tuple([n * m for n, m in zip(a, b, strict=True)]))


@with_grad_fn_name("TraceBackward0")
@casting.in_float32
def trace(input: Any) -> Any:
    """Sum of a matrix's diagonal.

    Args:
        input: matrix of any dtype.

    Returns:
        0-dim tensor; of integers in int64.

    Raises:
        RuntimeError: for other numbers of dimensions.

    Example:
        >>> tg.trace(tg.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    x = tensor(input)
    if len(shape_of(x)) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(shape_of(x))}")
    return TABLE["diagonal"].call(x, 0, 0, 1).sum()


def linalg_diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """A view of the diagonals of matrices, as the last dimension.

    Args:
        A: tensor of at least two dimensions.
        offset: which diagonal: 0 (default) the main one, above it positive, below it negative.
        dim1, dim2: the dimensions of rows and columns, default the last two.

    Example:
        >>> tg.linalg.diagonal(tg.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return diagonal(tensor(A), offset, dim1, dim2)


def _powers(x: Any, n: int) -> Any:
    """1, x, .., x^(n-1) along a new last dimension."""
    shape = shape_of(x)
    if n == 0:
        return fixed_like(np.zeros((*shape, 0), x._d.dtype), x)
    ones = fixed_like(np.ones((*shape, 1), x._d.dtype), x)
    if n == 1:
        return ones
    factors = [ones, expand(unsqueeze(x, -1), (*shape, n - 1))]
    return cat(factors, -1).cumprod(len(shape))


@with_out
def linalg_vander(x: Any, *, N: int | None = None) -> Any:
    """Vandermonde matrices: row i holds 1, x_i, .., x_i^(N-1).

    Args:
        x: tensor (.., n).
        N: number of columns, default n.

    Returns:
        Tensor (.., n, N).

    Raises:
        RuntimeError: if N is not greater than 1.

    Example:
        >>> tg.linalg.vander(tg.tensor([2, 3]), N=4)
        tensor([[ 1,  2,  4,  8],
                [ 1,  3,  9, 27]])
    """
    x = tensor(x)
    x = x if shape_of(x) else reshape(x, (1,))
    N = shape_of(x)[-1] if N is None else N
    if N <= 1:
        raise RuntimeError("N must be greater than 1.")
    return _powers(x, N)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix of a vector: powers N-1, .., 1, 0 of its elements in the columns.

    Args:
        x: vector (n,).
        N: number of columns, default n.
        increasing: whether the powers are 0, 1, .., N-1.

    Returns:
        Matrix (n, N).

    Raises:
        RuntimeError: if x is no vector, or N negative.

    Example:
        >>> tg.vander(tg.tensor([2, 3]), 4)
        tensor([[ 8,  4,  2,  1],
                [27,  9,  3,  1]])
    """
    x = _ranked("vander", x, 1)
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")
    r = _powers(x, shape_of(x)[0] if N is None else N)
    return r if increasing else flip(r, (1,))


@with_out
@with_grad_fn_name("LinalgCrossBackward0")
def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """Vector product of 3-vectors along a dimension, the others broadcast.

    Args:
        input, other: tensors of as many dimensions and one dtype, of size 3 along `dim`.
        dim: the dimension, by default the first of size 3.

    Raises:
        RuntimeError: for another size, number of dimensions or dtype.

    Example:
        >>> tg.cross(tg.tensor([1, 0, 0]), tg.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    x, y = tensor(input), tensor(other)
    of_one_dtype("cross(): inputs must have the same dtype, but got", x, y)
    a, b = shape_of(x), shape_of(y)
    if len(a) != len(b):
        raise RuntimeError(f"inconsistent tensors dimensions input: {len(a)} other: {len(b)}. In cross().")
    if dim is None:
        dim = next((d for d, n in enumerate(a) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    d = dim_of(dim, len(a))
    if a[d] != 3 or b[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {a[d]} and {b[d]}")
    (x1, x2), (y1, y2) = ([TABLE["roll"].call(t, (k,), (d,)) for k in (-1, 1)] for t in (x, y))  # one and two positions on
    return sub(mul(x1, y2), mul(x2, y1))


@with_out
@numpy_names
def linalg_cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """Vector product of 3-vectors along a dimension, the others broadcast.

    Args:
        input, other: tensors of as many dimensions and one dtype, of size 3 along `dim`.
        dim: the dimension, default the last.

    Raises:
        RuntimeError: for another size, number of dimensions or dtype.

    Example:
        >>> tg.linalg.cross(tg.tensor([[1, 0, 0]]), tg.tensor([[0, 1, 0], [0, 0, 1]]))
        tensor([[ 0,  0,  1],
                [ 0, -1,  0]])
    """
    return cross(input, other, dim)


MODES = {
    "use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": True, "donot_use_mm_for_euclid_dist": False,
}  # fmt: skip


@casting.in_float32
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """p-norm distances between all rows of x1 and x2; batches broadcast.

    The derivative is 0 at coincident points, to any order.

    Args:
        x1: float tensor (.., n, d).
        x2: float tensor (.., m, d) of the same dtype.
        p: the norm, from 0 to inf, default 2.
        compute_mode: whether Euclidean distances come from one matrix product (by default for more than 25 rows); what would
            cancel in it is computed from the difference all the same.

    Returns:
        Tensor (.., n, m).

    Raises:
        RuntimeError: for integers, complex numbers, different dtypes, a negative p, or sizes that do not fit.

    Example:
        >>> tg.cdist(tg.tensor([[0.0, 0.0]]), tg.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    x, y = tensor(x1), tensor(x2)
    a, b = shape_of(x), shape_of(y)
    for name, shape in (("X1", a), ("X2", b)):
        if len(shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {len(shape)}D")
    if a[-1] != b[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a[-1]} X2: {b[-1]}")
    for name, t in (("X1", x), ("X2", y)):
        if not is_floating(t._d.dtype):
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {errors.dtype_name(t._d.dtype)}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode is not None and compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    _same("cdist", x, y)
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise errors.broadcast_mismatch("cdist", a[:-2], b[:-2]) from None
    if p != 2 or not math.prod(batch) * a[-2] * b[-2] * a[-1]:
        before = next_slot()
        return set_grad_fn_name("CdistBackward0", _distances(unsqueeze(x, -2), unsqueeze(y, -3), p), before)
    by_product = None if compute_mode is None else MODES[compute_mode]
    if by_product is None:
        by_product = a[-2] > 25 or b[-2] > 25
    return _cdist_op(expand(x, (*batch, *a[-2:])), expand(y, (*batch, *b[-2:])), by_product)


def _distances(x: Any, y: Any, p: float) -> Any:
    d = sub(x, y)
    return reduce.norm(d, p, -1) if shape_of(d)[-1] else reduce.sum(d, -1)


@with_grad_fn_name("PdistBackward0")
@casting.in_float32
def pdist(input: Any, p: float = 2.0) -> Any:
    """p-norm distances between every two rows of a matrix, in the order (0, 1), (0, 2), .., (n-2, n-1).

    The derivative is 0 at coincident rows, to any order.

    Args:
        input: float matrix (n, d).
        p: the norm, from 0 to inf, default 2.

    Returns:
        Vector of n (n - 1) / 2 distances.

    Raises:
        RuntimeError: for a tensor that is not a matrix, or a negative p.

    Example:
        >>> tg.pdist(tg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]), p=1)
        tensor([7., 1., 6.])
    """
    x = tensor(input)
    if len(shape_of(x)) != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {len(shape_of(x))}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    i, j = [fixed(a)._d for a in np.triu_indices(shape_of(x)[0], 1)]
    return _distances(TABLE["index_select"].call(x, (i,)), TABLE["index_select"].call(x, (j,)), p)

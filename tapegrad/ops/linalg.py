"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..core.op import TABLE
from .define import define
from .elementwise import mul, sub
from .operands import operand, promoted, refused, tensor
from .samples import cases
from .shape import dim_of, reshape, shape_of


def _matmul_forward(x: Any, y: Any) -> Any:
    if x.shape[-1] == 1 and x.size * y.size:
        return x * y  # an outer product: BLAS takes four times as long over it
    return np.matmul(x, y)


_matmul = define(
    "matmul",
    "bilinear",
    _matmul_forward,
    (
        lambda xp, g, ans, x, y: xp.matmul(g, xp.conj(xp.mT(y))),
        lambda xp, g, ans, x, y: xp.matmul(xp.conj(xp.mT(x)), g),
    ),
    arity=2,
    display="Mm",
    samples=cases(
        ((2, 3), (3, 4), ()),
        ((5, 2, 3), (3, 2), ()),
        ((2, 3), (4, 3, 1), ()),
        ((2, 1, 2, 2), (3, 2, 1), ()),
        ((0, 3), (3, 2), ()),
        ((2, 0), (0, 2), ()),
        complex_too=True,
    ),
)


def _flat(xp: Any, x: Any) -> Any:
    return x if len(x.shape) == 2 else xp.reshape(x, (-1, x.shape[-1]))


def _linear_forward(x: Any, w: Any, b: Any) -> Any:
    if x.ndim < 2 or w.ndim != 2 or x.dtype is not w.dtype:
        raise TypeError("for _checked_linear to sort out")
    r = np.matmul(x, w.T)
    r += b
    return r


# x @ w.T + b as one entry: the bias is added in place
_linear = define(
    "linear",
    "general",
    _linear_forward,
    (
        lambda xp, g, ans, x, w, b: xp.matmul(g, xp.conj(w)),
        lambda xp, g, ans, x, w, b: xp.matmul(xp.mT(_flat(xp, g)), xp.conj(_flat(xp, x))),
        lambda xp, g, ans, x, w, b: g,
    ),
    arity=3,
    display="Addmm",
    samples=cases(
        ((2, 3), (4, 3), (4,), ()),
        ((5, 2, 3), (1, 3), (1,), ()),
        ((0, 3), (2, 3), (2,), ()),
        complex_too=True,
    ),
)


def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """Matrix product over the last two dimensions, the others broadcast; 1-D operands are vectors."""
    if out is not None:
        return out.resize_as_result_(matmul(input, other))
    x, y = operand(input, True), operand(other, True)
    if x is NotImplemented:
        return refused("matmul", 0, input)
    if y is NotImplemented:
        return refused("matmul", 1, other)
    x, y = tensor(x), tensor(y)
    a, b = x._d.shape, y._d.shape
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    if x._d.dtype is not y._d.dtype:
        raise errors.dtype_mismatch("matmul", x._d.dtype, y._d.dtype)
    inner = b[0] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise errors.matmul_mismatch("matmul", a, b)
    if len(a) == 1:
        x = reshape(x, (1, a[0]))
    if len(b) == 1:
        y = reshape(y, (b[0], 1))
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
    return reshape(r, shape)


def rmatmul(other: Any, input: Any) -> Any:
    """`input @ other` for an operand on the left that is no tensor."""
    return matmul(input, other)


def _ranked(name: str, x: Any, rank: int) -> Any:
    x = tensor(x)
    if len(shape_of(x)) != rank:
        raise RuntimeError(f"{name}: expected a {rank}-D tensor, but got a tensor of shape {shape_of(x)}")
    return x


def mm(input: Any, mat2: Any) -> Any:
    """Product of two matrices."""
    return matmul(_ranked("mm", input, 2), _ranked("mm", mat2, 2))


def bmm(input: Any, mat2: Any) -> Any:
    """Products of two batches of matrices, (B, n, k) and (B, k, m)."""
    return matmul(_ranked("bmm", input, 3), _ranked("bmm", mat2, 3))


def mv(input: Any, vec: Any) -> Any:
    """Product of a matrix and a vector."""
    return matmul(_ranked("mv", input, 2), _ranked("mv", vec, 1))


def dot(input: Any, tensor: Any) -> Any:
    """Inner product of two vectors, without conjugation."""
    x, y = _ranked("dot", input, 1), _ranked("dot", tensor, 1)
    if shape_of(x) != shape_of(y):
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(shape_of(x))} and src {list(shape_of(y))} to have the same "
            "number of elements. In dot()."
        )
    return matmul(x, y)


def outer(input: Any, vec2: Any) -> Any:
    """Outer product of two vectors."""
    x, y = _ranked("outer", input, 1), _ranked("outer", vec2, 1)
    return reshape(x, (-1, 1)) * reshape(y, (1, -1))


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.T + bias: (..., in), (out, in), (out,) give (..., out)."""
    if bias is None:
        return _checked_linear(input, weight, None)
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
    if not a or len(b) != 2 or a[-1] != b[1]:
        raise errors.matmul_mismatch("linear", a if len(a) == 2 else (int(np.prod(a[:-1])), *a[-1:]), b[::-1])
    if x._d.dtype is not w._d.dtype:
        raise errors.dtype_mismatch("linear", x._d.dtype, w._d.dtype)
    if bias is None:
        return matmul(x, TABLE["mT"].call(w))
    if len(a) == 1:
        return reshape(_linear(reshape(x, (1, a[0])), w, tensor(bias)), (b[0],))
    return _linear(x, w, tensor(bias))


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2)."""
    product = mm(mat1, mat2)
    scaled = product if alpha == 1 else product * alpha
    return scaled + (input if beta == 1 else tensor(input) * beta)


def kron(input: Any, other: Any) -> Any:
    """Kronecker product: blocks input[i, j, ..] * other."""
    x, y = promoted([tensor(input), tensor(other)])
    rank = max(len(shape_of(x)), len(shape_of(y)))
    a, b = ((1,) * (rank - len(shape_of(t))) + shape_of(t) for t in (x, y))
    x = TABLE["reshape"].call(x, tuple([k for n in a for k in (n, 1)]))
    y = TABLE["reshape"].call(y, tuple([k for n in b for k in (1, n)]))
    return TABLE["reshape"].call(mul(x, y), tuple([n * m for n, m in zip(a, b, strict=True)]))


def trace(input: Any) -> Any:
    """Sum of a matrix's diagonal."""
    x = tensor(input)
    if len(shape_of(x)) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got a tensor with {len(shape_of(x))} dimensions")
    return TABLE["sum"].call(TABLE["diagonal"].call(x, 0, 0, 1), None, False)


def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """Vector product of 3-vectors along `dim` (by default the first dimension of size 3), the others broadcast."""
    x, y = promoted([tensor(input), tensor(other)])
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
    (x1, x2), (y1, y2) = ([TABLE["roll"].call(t, (k,), (d,)) for k in (-1, 1)] for t in (x, y))  # one and two places on
    return sub(mul(x1, y2), mul(x2, y1))

"""scipy.linalg, whose functions take boxes."""

import numpy as _np
import scipy.linalg as _linalg

import tapegrad as _tg
from autograd import numpy as _anp
from autograd.extend import defjvp as _defjvp
from autograd.extend import defjvp_argnums as _defjvp_argnums
from autograd.extend import defvjp as _defvjp
from autograd.extend import defvjp_argnums as _defvjp_argnums
from autograd.extend import primitive as _primitive
from autograd.numpy.numpy_wrapper import wrap_namespace as _wrap_namespace
from autograd.tracer import recorded as _recorded

_wrap_namespace(_linalg.__dict__, globals())

# solve_triangular, sqrtm, solve_sylvester, solve_banded and expm have derivatives; det, inv and pinv are NumPy's.


def _triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    a, b = (x if isinstance(x, _tg.Tensor) else _tg.from_numpy(_np.array(x)) for x in (a, b))
    if a.dtype != b.dtype:
        common = _tg.promote_types(a.dtype, b.dtype)
        a, b = a.to(common), b.to(common)
    if trans not in (0, "N"):
        a, lower = (a.mT.conj() if trans in (2, "C") else a.mT), not lower
    x = _tg.linalg.solve_triangular(a, b if b.dim() > 1 else b.unsqueeze(-1), upper=not lower, unitriangular=unit_diagonal)
    return x if b.dim() > 1 else x.squeeze(-1)


solve_triangular = _recorded(_linalg.solve_triangular, _triangular)
expm = _recorded(_linalg.expm, _tg.linalg.matrix_exp)
det, inv, pinv = _anp.linalg.det, _anp.linalg.inv, _anp.linalg.pinv


def _real_as(target, x):
    return _anp.real(x) if not _anp.iscomplexobj(target) else x


solve_sylvester = _primitive(_linalg.solve_sylvester)
sqrtm = _primitive(_linalg.sqrtm)
solve_banded = _primitive(_linalg.solve_banded)

_defvjp(sqrtm, lambda ans, A: lambda g: _real_as(A, solve_sylvester(_anp.transpose(ans), _anp.transpose(ans), g)))
_defjvp(sqrtm, lambda dA, ans, A: solve_sylvester(ans, ans, dA))


def _sylvester_jvp(argnums, tangents, ans, args, kwargs):
    moved = dict(zip(argnums, tangents, strict=True))
    right = moved.get(2, 0.0) - _anp.zeros(_np.shape(ans))
    right = right - _anp.dot(moved[0], ans) if 0 in moved else right
    right = right - _anp.dot(ans, moved[1]) if 1 in moved else right
    return solve_sylvester(args[0], args[1], right)


def _sylvester_vjp(argnums, ans, args, kwargs):
    a, b, _ = args

    def vjp(g):
        w, x = solve_sylvester(_anp.transpose(a), _anp.transpose(b), g), _anp.transpose(ans)
        found = {0: lambda: -_anp.dot(w, x), 1: lambda: -_anp.dot(x, w), 2: lambda: w}
        return [found[i]() for i in argnums]

    return vjp


_defjvp_argnums(solve_sylvester, _sylvester_jvp)
_defvjp_argnums(solve_sylvester, _sylvester_vjp)


def _band(l_and_u, n):
    """Of the places in band storage: row and column in the matrix, and whether they are in it."""
    lower, upper = l_and_u
    columns = _np.broadcast_to(_np.arange(n), (lower + upper + 1, n))
    rows = columns + _np.arange(-upper, lower + 1)[:, None]
    inside = (rows >= 0) & (rows < n)
    return _np.where(inside, rows, 0), columns, inside


def _transposed(l_and_u, ab):
    """The transposed matrix in band storage."""
    lower, upper = l_and_u
    rows, columns, inside = _band((upper, lower), _np.shape(ab)[1])
    return (upper, lower), ab[_np.where(inside, upper + columns - rows, 0), rows] * inside


def _banded_solution(l_and_u, ab, g):
    return solve_banded(*_transposed(l_and_u, ab), g)


def _banded_vjp(ans, l_and_u, ab, b):
    rows, columns, inside = _band(l_and_u, _np.shape(ab)[1])

    def vjp(g):
        products = -_banded_solution(l_and_u, ab, g)[rows] * ans[columns]
        return (products if products.ndim == 2 else _anp.sum(products, -1)) * inside

    return vjp


_defvjp(solve_banded, None, _banded_vjp, lambda ans, l_and_u, ab, b: lambda g: _banded_solution(l_and_u, ab, g))

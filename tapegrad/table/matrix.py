"""Functions of matrices: solvers, inverses, determinants, exponential, norms; composed of records and factorisations."""

from __future__ import annotations

from typing import Any

from ..core.op import Op
from ..kernels import lapack
from ..kernels.matrix import _slogdet
from . import batching
from .decompose import mh_of
from .define import define
from .samples import matrix as samples

# ------------------------------------------------------------------------------------------------------------- records
# Solvers take (A, B) as one sequence, so that both cotangents come from one solution.


def _fitted(xp: Any, ts: list[Any], xs: Any, wanted: list[bool]) -> list[Any]:
    return [xp.sum_to(t, x.shape) if want and t.shape != x.shape else t for t, x, want in zip(ts, xs, wanted, strict=True)]


def _d_solve(xp: Any, g: Any, ans: Any, xs: Any, known: Any, wanted: list[bool]) -> Any:
    gb = xp.solve([mh_of(xp, xs[0]), g], known and known.turned())
    ga = -xp.matmul(gb, mh_of(xp, ans)) if wanted[0] else None
    return _fitted(xp, [ga, gb if wanted[1] else None], xs, wanted)


def _d_solve_triangular(xp: Any, g: Any, ans: Any, xs: Any, upper: bool, unit: bool, wanted: list[bool]) -> Any:
    gb = xp.solve_triangular([mh_of(xp, xs[0]), g], not upper, unit)
    ga = None
    if wanted[0]:
        ga = -xp.matmul(gb, mh_of(xp, ans))
        ga = xp.triu(ga, int(unit)) if upper else xp.tril(ga, -int(unit))
    return _fitted(xp, [ga, gb if wanted[1] else None], xs, wanted)


def _d_pinv(xp: Any, g: Any, ans: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    # of matrices near a, of the same rank (Golub and Pereyra, 1973)
    p, h, gh = ans, mh_of(xp, ans), mh_of(xp, g)
    left, right = xp.matmul(xp.matmul(gh, p), h), xp.matmul(xp.matmul(h, p), gh)
    t = -xp.matmul(xp.matmul(h, g), h) + left - xp.matmul(a, xp.matmul(p, left))
    return t + right - xp.matmul(xp.matmul(right, p), a)


def _d_exp_derivative(xp: Any, g: Any, ans: Any, xs: Any, wanted: list[bool]) -> Any:
    # <g, D^k exp(a)[e1, .., ek]> is D^(k+1) of the trace of exp, symmetric in g and all directions
    a, *directions = [mh_of(xp, x) for x in xs]
    ts = [xp.matrix_exp_derivative([a, *directions, g]) if wanted[0] else None]
    for i, want in enumerate(wanted[1:]):
        others = [*directions[:i], g, *directions[i + 1 :]]
        ts.append(xp.matrix_exp_derivative([a, *others]) if want else None)
    return ts


def _column(xp: Any, x: Any) -> Any:
    """x with two dimensions of size 1 behind."""
    return xp.reshape(x, (*x.shape, 1, 1))


def _d_cofactor(xp: Any, g: Any, ans: Any, xs: Any, wanted: list[bool]) -> Any:
    c = xp.conj(g)
    a, *directions = xs
    ts = [xp.conj(xp.cofactor([a, *directions, c])) if wanted[0] else None]
    for i, want in enumerate(wanted[1:]):
        others = [*directions[:i], c, *directions[i + 1 :]]
        ts.append(xp.conj(xp.cofactor([a, *others])) if want else None)
    return ts


def _d_slogdet(xp: Any, gs: Any, ans: Any, a: Any, real: bool) -> Any:
    gsign, g = gs
    if real:
        return None if g is None else _column(xp, g) * mh_of(xp, xp.inverse(a))
    turn = None if gsign is None else xp.to_complex(xp.imag(xp.conj(gsign) * ans[0])) * -1j
    g = turn if g is None else xp.to_complex(g) if turn is None else xp.to_complex(g) + turn
    return _column(xp, g) * mh_of(xp, xp.inverse(a))


# ---------------------------------------------------------------------------------------------- the same forwards


def _j_equation(xp: Any, ts: Any, ans: Any, xs: Any, solve: Any, ta: Any) -> Any:
    if ta is None:
        return solve([xs[0], ts[1]])
    of_matrix = xp.matmul(ta, ans)
    return solve([xs[0], -of_matrix if ts[1] is None else ts[1] - of_matrix])


def _j_solve(xp: Any, ts: Any, ans: Any, xs: Any, known: Any) -> Any:
    return _j_equation(xp, ts, ans, xs, lambda pair: xp.solve(pair, known), ts[0])


def _j_solve_triangular(xp: Any, ts: Any, ans: Any, xs: Any, upper: bool, unit: bool) -> Any:
    ta = ts[0]
    if ta is not None:
        ta = xp.triu(ta, int(unit)) if upper else xp.tril(ta, -int(unit))
    return _j_equation(xp, ts, ans, xs, lambda pair: xp.solve_triangular(pair, upper, unit), ta)


def _j_pinv(xp: Any, ts: Any, ans: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    p, h, (t,) = ans, mh_of(xp, ans), ts
    th = mh_of(xp, t)
    left, right = xp.matmul(xp.matmul(p, h), th), xp.matmul(xp.matmul(th, h), p)
    r = left - xp.matmul(xp.matmul(left, a), p) - xp.matmul(xp.matmul(p, t), p)
    return r + right - xp.matmul(p, xp.matmul(a, right))


MANY = 4  # orders of a series up to which directions may multiply


def _of_series(xp: Any) -> bool:
    """Whether a text runs on series of many terms."""
    return vars(xp).get("order", 0) > MANY  # type: ignore[no-any-return]


def _j_det(xp: Any, ts: Any, ans: Any, a: Any) -> Any:
    if _of_series(xp):  # not at a singular matrix: there the work doubles with each term
        return ans * _trace_product(xp, xp.mT(xp.inverse(a)), ts[0])
    return _trace_product(xp, xp.cofactor([a]), ts[0])


def _j_cofactor(xp: Any, ts: Any, ans: Any, xs: Any) -> Any:
    if len(xs) > 1 or not _of_series(xp):
        return _along_directions("cofactor")(xp, ts, ans, xs)
    h = xp.mT(xp.inverse(xs[0]))
    return _column(xp, _trace_product(xp, h, ts[0])) * ans - xp.matmul(xp.matmul(ans, xp.mT(ts[0])), h)


def _along_directions(name: str) -> Any:
    """Of a record that takes a matrix and directions: linear in each of these, and one more for the matrix."""

    def jvp(xp: Any, ts: Any, ans: Any, xs: Any) -> Any:
        run, total = getattr(xp, name), None
        for i, t in enumerate(ts):
            if t is not None:
                part = run([*xs[:i], t, *xs[i + 1 :]] if i else [*xs, t])
                total = part if total is None else total + part
        return total

    return jvp


def _trace_product(xp: Any, x: Any, y: Any) -> Any:
    """Sum of the products of the elements."""
    r = len(x.shape)
    return xp.sum(x * y, (r - 2, r - 1), False)


def _j_slogdet(xp: Any, ts: Any, ans: Any, a: Any, real: bool) -> list[Any]:
    t = _trace_product(xp, xp.mT(xp.inverse(a)), ts[0])
    return [None, t] if real else [ans[0] * xp.to_complex(xp.imag(t)) * 1j, xp.real(t)]


def _several_equations(op: Op, n: int, args: list[Any], batched: list[bool], params: tuple[Any, ...]) -> Any:
    of_one = batched[0] and isinstance(params[0], lapack.Factors)
    return batching.equation(op, n, args, batched, (None,) if of_one else params)


_solve = define(
    "solve", "general", lambda xs, known: lapack.solve(xs[0], xs[1], known), (_d_solve,),
    jax="linalg.solve", saves="xs ans", arity=-1,
    singular=True, zero_blocks="matrices", display="LinalgSolveEx", batch=_several_equations, jvp=_j_solve,
    samples=samples.SOLVE,
)  # fmt: skip
_solve_triangular = define(
    "solve_triangular", "general", lambda xs, upper, unit: lapack.solve_triangular(xs[0], xs[1], upper, unit),
    (_d_solve_triangular,),
    jax="linalg.solve_triangular", saves="xs ans", arity=-1, singular=True, zero_blocks="matrices",
    display="LinalgSolveTriangular", batch=batching.equation, jvp=_j_solve_triangular, samples=samples.SOLVE_TRIANGULAR,
)  # fmt: skip
_inverse = define(
    "inverse", "general", lapack.inverse,
    (lambda xp, g, ans, a: -xp.matmul(xp.matmul(mh_of(xp, ans), g), mh_of(xp, ans)),), jax="linalg.inverse", saves="ans",
    singular=True, zero_blocks="matrices", display="LinalgInvEx", batch=batching.leading,
    jvp=lambda xp, ts, ans, a: -xp.matmul(xp.matmul(ans, ts[0]), ans), samples=samples.INVERSE,
)  # fmt: skip
_pinv = define(
    "pinv", "general", lapack.pinv, (_d_pinv,), saves="a ans",
    singular=True, zero_blocks="matrices", display="LinalgPinv", batch=batching.leading, jvp=_j_pinv, samples=samples.PINV,
)  # fmt: skip


def _exp_coefficient(xp: Any, k: int, a: Any) -> Any:
    """Coefficient k of the exponential of a series: a block of that of the block Toeplitz matrix of its coefficients."""
    n, rank = a.shape[-1], a.ndim
    nothing = a.c[0] * 0.0
    row = [nothing if (c := a.get(j)) is None else c for j in range(k + 1)]
    whole = xp.cat([xp.cat([*[nothing] * i, *row[: k + 1 - i]], rank - 1) for i in range(k + 1)], rank - 2)
    return xp.index(xp.matrix_exp(whole), (Ellipsis, slice(0, n), slice(k * n, None)))


_matrix_exp = define(
    "matrix_exp", "general", lambda a: lapack.matrix_exp([a]),
    (lambda xp, g, ans, a: xp.matrix_exp_derivative([mh_of(xp, a), g]),),
    jax="linalg.matrix_exp", saves="a", display="LinalgMatrixExp",
    batch=batching.leading, jvp=lambda xp, ts, ans, a: xp.matrix_exp_derivative([a, ts[0]]), series=_exp_coefficient,
    samples=samples.MATRIX_EXP,
)  # fmt: skip
define(
    "matrix_exp_derivative", "general", lapack.matrix_exp, (_d_exp_derivative,),
    jax="linalg.matrix_exp_derivative", saves="xs", arity=-1, batch=batching.last,
    jvp=_along_directions("matrix_exp_derivative"), samples=samples.MATRIX_EXP_DERIVATIVE,
    doc="""Derivative of matrix_exp at the first matrix in the direction of the second.""",
)  # fmt: skip
_det = define(
    "det", "general", lambda xp, a: xp.linalg.det(a), (lambda xp, g, ans, a: _column(xp, g) * xp.conj(xp.cofactor([a])),),
    saves="a", singular=True,
    display="LinalgDet", batch=batching.leading,
    jvp=_j_det, samples=samples.DET,
)  # fmt: skip
define(
    "cofactor", "general", lapack.cofactor, (_d_cofactor,),
    jax="determinant.cofactor", saves="xs", arity=-1, batch=batching.last,
    jvp=_j_cofactor, samples=samples.cofactors,
    doc="""Cofactors: det(x) * inverse(x).mT, of singular matrices too.""",
)  # fmt: skip
_slogdet_op = define(
    "slogdet", "general", _slogdet, (_d_slogdet,),
    jax="linalg.slogdet", saves="a ans[0]", outputs=2,
    singular=True, zero_blocks="matrices",
    display="LinalgSlogdet", batch=batching.leading, jvp=_j_slogdet, samples=samples.SLOGDET,
)  # fmt: skip

# the number of singular values (or eigenvalues) that count as not zero
_rank = define(
    "rank", "constant", lambda xp, s, atol, rtol: xp.asarray(lapack.is_nonzero(xp, s, atol, rtol).sum(-1)),
    batch=batching.leading, samples=samples.RANK,
)  # fmt: skip

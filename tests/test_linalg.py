"""Linear algebra: identities, derivatives of losses that do not depend on a gauge, special matrices, errors, results."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import testing

L = tg.linalg
REAL, COMPLEX = np.float64, np.complex128


def random(*shape, dtype=REAL, seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if dtype is COMPLEX else x


def hermitian(*shape, dtype=REAL, seed=0):
    x = random(*shape, dtype=dtype, seed=seed)
    return x + x.swapaxes(-1, -2).conj()


def positive(*shape, dtype=REAL):
    x = random(*shape, dtype=dtype)
    return x @ x.swapaxes(-1, -2).conj() + np.eye(shape[-1])


def regular(*shape, dtype=REAL, seed=0):
    return random(*shape, dtype=dtype, seed=seed) + 3 * np.eye(shape[-1])


def mh(x):
    return x.mT.conj()


def own(x):
    return (x + mh(x)) / 2


def gradient(f, x, cotangent=None):
    x = tg.tensor(x, requires_grad=True)
    y = f(x)
    (g,) = tg.autograd.grad(y, x, cotangent)
    return g.numpy()


BOTH = pytest.mark.parametrize("dtype", [REAL, COMPLEX])

# ---------------------------------------------------------------------------------------------------------- derivatives

MATRIX_NORMS = ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)

# Losses of complex vectors do not depend on their phases.
FUNCTIONS = {
    "cholesky": (lambda a: L.cholesky(own(a)), positive(3, 3)),
    "cholesky complex": (lambda a: L.cholesky(own(a)), positive(2, 3, 3, dtype=COMPLEX)),
    "cholesky upper": (lambda a: L.cholesky(own(a), upper=True), positive(3, 3, dtype=COMPLEX)),
    "qr wide": (lambda a: L.qr(a), random(2, 4)),
    "qr wide complex": (lambda a: L.qr(a), random(2, 2, 4, dtype=COMPLEX)),
    "qr r": (lambda a: L.qr(a, "r")[1], random(4, 2)),
    "qr complete": (lambda a: L.qr(a, "complete"), random(3, 3)),
    "eigh complex": (lambda a: spectral(L.eigh(own(a))), hermitian(3, 3, dtype=COMPLEX)),
    "eigh upper": (lambda a: spectral(L.eigh(own(a), "U")), hermitian(2, 3, 3, dtype=COMPLEX)),
    "eigvalsh": (lambda a: L.eigvalsh(own(a)), hermitian(3, 3, dtype=COMPLEX)),
    "eig complex": (lambda a: L.eig(a)[0], random(3, 3, dtype=COMPLEX)),
    "eig vectors": (lambda a: L.eig(a)[1].abs(), random(3, 3, dtype=COMPLEX)),
    "eigvals real": (lambda a: L.eigvals(a).abs(), random(3, 3)),
    "svd complex": (lambda a: singular(L.svd(a, False)), random(3, 2, dtype=COMPLEX)),
    "svd wide complex": (lambda a: singular(L.svd(a, False)), random(2, 3, dtype=COMPLEX)),
    "svd full": (lambda a: null_space(L.svd(a)), random(4, 2, dtype=COMPLEX)),
    "svd full wide": (lambda a: null_space(L.svd(mh(a))), random(2, 5)),
    "svd square complex": (lambda a: singular(L.svd(a)), random(2, 3, 3, dtype=COMPLEX)),
    "svdvals": (lambda a: L.svdvals(a), random(3, 4, dtype=COMPLEX)),
    "torch.svd": (lambda a: (tg.svd(a)[0].abs(), tg.svd(a)[2].abs()), random(3, 2, dtype=COMPLEX)),
    "lu": (lambda a: L.lu(a)[1:], random(2, 3, 3, dtype=COMPLEX)),
    "lu tall": (lambda a: L.lu(a)[1:], random(4, 2)),
    "lu wide": (lambda a: L.lu(a)[1:], random(2, 4, dtype=COMPLEX)),
    "lu_solve": (lambda a, b: tg.lu_solve(b, *tg.lu(a)), regular(3, 3), random(3, 2)),
    "lu_solve adjoint": (
        lambda a, b: L.lu_solve(*L.lu_factor(a), b, left=False, adjoint=True),
        regular(3, 3, dtype=COMPLEX), random(2, 3, dtype=COMPLEX),
    ),
    "solve right": (lambda a, b: L.solve(a, b, left=False), regular(3, 3, dtype=COMPLEX), random(2, 3, dtype=COMPLEX)),
    "solve vector": (L.solve, regular(3, 3), random(3)),
    "solve vectors": (L.solve, regular(2, 3, 3), random(2, 3)),
    "solve broadcast": (L.solve, regular(3, 3), random(2, 3, 1)),
    "solve_triangular right": (
        lambda a, b: L.solve_triangular(a, b, upper=False, left=False, unitriangular=True), regular(3, 3), random(2, 3),
    ),
    "triangular_solve": (
        lambda a, b: tg.triangular_solve(b, a, upper=False, transpose=True)[0], regular(3, 3), random(3, 2),
    ),
    "cholesky_solve": (lambda a, b: tg.cholesky_solve(b, a.triu(), upper=True), regular(3, 3), random(3, 2)),
    "cholesky_inverse": (lambda a: tg.cholesky_inverse(a.tril()), regular(3, 3, dtype=COMPLEX)),
    "lstsq tall": (lambda a, b: L.lstsq(a, b, driver="gelsd")[:2], random(4, 2), random(4, 3)),
    "lstsq wide": (lambda a, b: L.lstsq(a, b)[0], random(2, 4), random(2, 3)),
    "pinv hermitian": (lambda a: L.pinv(own(a), hermitian=True), hermitian(3, 3, dtype=COMPLEX)),
    "pinv of low rank": (lambda a, b: L.pinv(a @ b), random(4, 2), random(2, 3)),
    "slogdet": (lambda a: tuple(L.slogdet(a)), random(2, 3, 3, dtype=COMPLEX)),
    "logdet": (tg.logdet, positive(3, 3, dtype=COMPLEX)),
    "matrix_power": (lambda a: L.matrix_power(a, 5), random(3, 3)),
    "matrix_power negative": (lambda a: L.matrix_power(a, -3), regular(3, 3)),
    "matrix_power 1": (lambda a: L.matrix_power(a, 1), random(3, 3)),
    "cond": (L.cond, regular(3, 3)),
    "cond fro": (lambda a: L.cond(a, "fro"), regular(3, 3)),
    "tensorinv": (lambda a: L.tensorinv(a, 1), random(4, 2, 2)),
    "tensorsolve": (L.tensorsolve, random(2, 3, 6), random(2, 3)),
    "tensorsolve dims": (lambda a, b: L.tensorsolve(a, b, (0, 2)), random(2, 6, 3), random(6)),
    "householder_product": (L.householder_product, random(4, 3, dtype=COMPLEX), random(2, dtype=COMPLEX)),
    "ormqr": (lambda a, t, c: tg.ormqr(a, t, c, False, True), random(3, 2), random(2), random(4, 3)),
    "multi_dot": (lambda a, b, c, d: L.multi_dot([a, b, c, d]), random(3), random(3, 4), random(4, 2), random(2)),
    "chain_matmul": (tg.chain_matmul, random(2, 3), random(3, 4), random(4, 2)),
    "vecdot": (L.vecdot, random(2, 3, dtype=COMPLEX), random(3, dtype=COMPLEX)),
    "vander": (lambda x: L.vander(x, N=4), np.array([[0.0, 2.0], [-1.0, 0.5]])),
    "cross": (L.cross, random(2, 3, dtype=COMPLEX), random(1, 3, dtype=COMPLEX)),
    "baddbmm": (lambda c, a, b: tg.baddbmm(c, a, b, beta=2, alpha=3), random(1, 4), random(2, 3, 2), random(2, 2, 4)),
    "addbmm": (lambda c, a, b: tg.addbmm(c, a, b, alpha=3), random(3, 4), random(2, 3, 2), random(2, 2, 4)),
    "addmv": (lambda c, a, b: tg.addmv(c, a, b, beta=2), random(3), random(3, 2), random(2)),
    "addr": (lambda c, a, b: tg.addr(c, a, b, beta=2), random(3, 2), random(3), random(2)),
    "vdot": (tg.vdot, random(3, dtype=COMPLEX), random(3, dtype=COMPLEX, seed=1)),
    "inner": (tg.inner, random(2, 3), random(4, 3)),
    "cdist": (tg.cdist, random(2, 3, 2), random(4, 2)),
    **{f"cdist {p}": (lambda x, y, p=p: tg.cdist(x, y, p), random(2, 3, 2), random(4, 2) + 7) for p in (0.5, 1, 3, np.inf)},
    "pdist": (lambda x: tg.pdist(x, 3), random(4, 2)),
    **{f"norm {o}": (lambda x, o=o: L.matrix_norm(x, o), random(2, 3, 4)) for o in MATRIX_NORMS},
    **{f"norm of vectors {o}": (lambda x, o=o: L.norm(x, o, 1), random(2, 3)) for o in (0.5, 1, 2, 3, -1, np.inf, -np.inf)},
}  # fmt: skip


def spectral(result):
    w, v = result
    return w, v.abs(), v @ (v * w.sin().unsqueeze(-2)).mT.conj()


def singular(result):
    u, s, vh = result
    k = s.shape[-1]
    return s, u[..., :k] @ vh[..., :k, :], u.abs(), (u[..., :k] * s.sin().unsqueeze(-2)) @ vh[..., :k, :]


def null_space(result):
    u, s, vh = result
    k = s.shape[-1]
    return s, u[..., k:] @ mh(u[..., k:]), u[..., :k] @ vh


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_to_second_order(name):
    f, *inputs = FUNCTIONS[name]
    testing.check_grads(f, inputs, order=2)


@pytest.mark.parametrize("rank", [3, 2, 1, 0])
@BOTH
def test_det_of_any_rank_to_third_order(rank, dtype):
    a = random(3, rank, dtype=dtype) @ random(rank, 3, dtype=dtype, seed=1)
    testing.check_grads(L.det, a, order=3)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_determinants_to_third_order(n):
    testing.check_grads(L.det, random(2, n, n), order=3)


def test_third_derivative_of_det_two_below_full_rank():
    """d^3 det / da11 da22 da33 is 1 anywhere."""
    a = tg.tensor(np.diag([2.0, 0.0, 0.0]), requires_grad=True)
    g = tg.autograd.grad(L.det(a), a, create_graph=True)[0]
    h = tg.autograd.grad(g[0, 0], a, create_graph=True)[0]
    k = tg.autograd.grad(h[1, 1], a)[0]
    assert k[2, 2].item() == pytest.approx(1.0)


@pytest.mark.parametrize("name,a", [
    ("matrix_exp", random(2, 3, 3)), ("inv", regular(3, 3)), ("cholesky", positive(3, 3)), ("eigvalsh", hermitian(3, 3)),
    ("svdvals", random(3, 2)),
])  # fmt: skip
def test_third_order(name, a):
    f = getattr(L, name)
    testing.check_grads((lambda x: f(own(x))) if name in ("cholesky", "eigvalsh") else f, a, order=3)


def test_matrix_exp_of_large_and_nilpotent_matrices():
    a = np.array([[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(tg.matrix_exp(tg.tensor(a)).numpy(), [[1, 1], [0, 1]])
    turn = np.array([[0.0, -40.0], [40.0, 0.0]])
    expected = [[np.cos(40), -np.sin(40)], [np.sin(40), np.cos(40)]]
    np.testing.assert_allclose(tg.matrix_exp(tg.tensor(turn)).numpy(), expected, atol=1e-12)
    mixed = np.stack([turn, a])  # each matrix is scaled by itself
    np.testing.assert_array_equal(tg.matrix_exp(tg.tensor(mixed))[1].numpy(), [[1, 1], [0, 1]])


# --------------------------------------------------------------------------------------- repeated and vanishing values


def repeated(values, seed=0):
    q = np.linalg.qr(random(len(values), len(values), seed=seed))[0]
    return q @ np.diag(values) @ q.T, q


def lower_projector(a, count):
    v = L.eigh(a)[1][..., :count]
    return v @ v.mT


@pytest.mark.parametrize("exact", [True, False])
def test_projector_on_a_repeated_eigenvalue(exact):
    """The projector on the space of two equal eigenvalues does not depend on the vectors chosen in it."""
    a, _ = repeated([1.0, 1.0, 3.0, 4.0])
    a = np.diag([1.0, 1.0, 3.0, 4.0]) if exact else (a + a.T) / 2
    w = random(4, 4)

    def loss(a):
        return (lower_projector(own(a), 2) * tg.tensor(w)).sum()

    for seed in (1, 2):
        v = hermitian(4, 4, seed=seed)
        step = 1e-6
        numeric = (loss(tg.tensor(a + step * v)) - loss(tg.tensor(a - step * v))).item() / (2 * step)
        assert (gradient(loss, a) * v).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-6)


def test_second_order_of_repeated_eigenvalues_is_nan_and_not_wrong():
    """The cotangents of the values hold only the diagonal of what is needed there."""
    x = tg.tensor(np.diag([1.0, 1.0, 3.0, 4.0]), requires_grad=True)
    (g,) = tg.autograd.grad((lower_projector(own(x), 2) * tg.tensor(random(4, 4))).sum(), x, create_graph=True)
    (h,) = tg.autograd.grad((g * tg.tensor(hermitian(4, 4, seed=1))).sum(), x)
    assert np.isnan(h.numpy()).any()


def test_symmetric_functions_of_repeated_eigenvalues():
    for values in ([2.0, 2.0, 2.0], [1.0, 1.0, 3.0]):
        a, _ = repeated(values)
        np.testing.assert_allclose(gradient(lambda a: L.eigvalsh(a).exp().sum(), (a + a.T) / 2), matrix_function(a, np.exp))
        np.testing.assert_allclose(gradient(lambda a: L.eigh(a)[0].exp().sum(), (a + a.T) / 2), matrix_function(a, np.exp))


def matrix_function(a, f):
    w, v = np.linalg.eigh(a)
    return (v * f(w)) @ v.T


def test_polar_factor_where_singular_values_repeat():
    """U V^H of 2 Q, Q orthogonal, by finite differences."""
    q = np.linalg.qr(random(3, 3))[0]
    w = tg.tensor(random(3, 3, seed=4))

    def loss(a):
        u, _, vh = L.svd(a)
        return ((u @ vh) * w).sum()

    g, v = gradient(loss, 2 * q), random(3, 3, seed=5)
    numeric = (loss(tg.tensor(2 * q + 1e-6 * v)) - loss(tg.tensor(2 * q - 1e-6 * v))).item() / 2e-6
    assert (g * v).sum() == pytest.approx(numeric, rel=1e-6)


def test_nuclear_norm_of_repeated_and_zero_singular_values():
    np.testing.assert_allclose(gradient(lambda a: L.matrix_norm(a, "nuc"), 2 * np.eye(3)), np.eye(3), atol=1e-15)
    g = gradient(lambda a: L.matrix_norm(a, "nuc"), np.zeros((2, 2)))
    assert np.isfinite(g).all()


def test_singular_vectors_of_a_matrix_of_low_rank():
    """The leading vectors of a matrix of rank 1 have a derivative, though other singular values are 0."""
    a = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    w = tg.tensor(random(3, 2))

    def loss(a):
        u, s, vh = L.svd(a, False)
        return (u[:, :1] @ vh[:1] * w).sum() + s[0]

    g, v = gradient(loss, a), random(3, 2, seed=2)
    numeric = (loss(tg.tensor(a + 1e-6 * v)) - loss(tg.tensor(a - 1e-6 * v))).item() / 2e-6
    assert (g * v).sum() == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize("loss", [
    lambda w, v: v[0, 1],  # depends on the vectors chosen
    lambda w, v: (v * w.exp()) @ v.mT,  # has a derivative that the cotangents do not determine
    lambda w, v: ((v * w.exp()) @ v.mT)[0, 1],
])  # fmt: skip
def test_undetermined_gradients_are_nan(loss):
    def total(a):
        y = loss(*L.eigh(a))
        return y if not y.ndim else y.sum()

    assert np.isnan(gradient(total, np.diag([2.0, 2.0, 3.0]))).any()


@pytest.mark.parametrize("f", [
    lambda a: L.eigh(a)[1].sum().real, lambda a: L.svd(a)[0].sum().real, lambda a: L.eig(a)[1].sum().real,
])  # fmt: skip
def test_losses_that_depend_on_a_phase_raise(f):
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        gradient(f, hermitian(3, 3, dtype=COMPLEX))


def test_gradients_of_hermitian_matrices_are_spread_over_both_triangles():
    """Only one triangle is read; what is not Hermitian is mirrored."""
    a = hermitian(3, 3)
    broken = np.tril(a) + 7 * np.triu(np.ones((3, 3)), 1)
    np.testing.assert_allclose(L.eigvalsh(tg.tensor(broken)).numpy(), L.eigvalsh(tg.tensor(a)).numpy(), atol=1e-14)
    np.testing.assert_allclose(L.eigvalsh(tg.tensor(broken.T), "U").numpy(), L.eigvalsh(tg.tensor(a)).numpy(), atol=1e-14)
    for x in (a, broken):
        g = gradient(lambda x: L.eigvalsh(x)[0], x)
        np.testing.assert_allclose(g, g.T, atol=1e-15)
    p = positive(3, 3)
    broken = np.tril(p)
    np.testing.assert_allclose(L.cholesky(tg.tensor(broken)).numpy(), np.linalg.cholesky(p), atol=1e-14)
    g = gradient(lambda x: L.cholesky(x).sum(), broken)
    np.testing.assert_allclose(g, g.T, atol=1e-14)


# ------------------------------------------------------------------------------------------------------------ identities


@BOTH
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (70, 50)])
def test_factors_multiply_to_the_matrix(shape, dtype):
    a = random(*shape, dtype=dtype)
    t = tg.tensor(a)
    p, lower, upper = L.lu(t)
    u, s, vh = L.svd(t, full_matrices=False)
    q, r = L.qr(t)
    qc, rc = L.qr(t, "complete")
    unpacked = tg.lu_unpack(*L.lu_factor(t))
    products = [p @ lower @ upper, (u * s.to(t.dtype).unsqueeze(-2)) @ vh, q @ r, qc @ rc,
                unpacked.P @ unpacked.L @ unpacked.U]  # fmt: skip
    for product in products:
        np.testing.assert_allclose(product.numpy(), a, atol=1e-12)
    assert qc.shape[-1] == shape[-2] and not np.triu(lower.numpy(), 1).any() and not np.tril(upper.numpy(), -1).any()


@BOTH
def test_lstsq(dtype):
    a, b = random(2, 4, 3, dtype=dtype), random(2, 4, 2, dtype=dtype)
    result = L.lstsq(tg.tensor(a), tg.tensor(b), driver="gelsd")
    for k in range(2):
        x, residuals, rank, s = np.linalg.lstsq(a[k], b[k])
        np.testing.assert_allclose(result.solution[k].numpy(), x, atol=1e-12)
        np.testing.assert_allclose(result.residuals[k].numpy(), residuals, atol=1e-12)
        np.testing.assert_allclose(result.singular_values[k].numpy(), s, atol=1e-12)
        assert result.rank[k].item() == rank
    low = random(4, 2) @ random(2, 3)
    assert L.lstsq(tg.tensor(low), tg.tensor(random(4, 1))).rank.item() == 2


def test_matrix_rank_and_pinv_tolerances():
    a = tg.tensor(np.diag([4.0, 1.0, 1e-3]))
    assert L.matrix_rank(a).item() == 3
    assert L.matrix_rank(a, atol=0.01).item() == 2
    assert L.matrix_rank(a, rtol=0.5).item() == 1
    assert L.matrix_rank(a, hermitian=True, rtol=tg.tensor(0.5)).item() == 1
    np.testing.assert_allclose(L.pinv(a, rtol=0.01).numpy(), np.diag([0.25, 1, 0]), atol=1e-15)
    np.testing.assert_allclose(L.pinv(a, atol=2.0).numpy(), np.diag([0.25, 0, 0]), atol=1e-15)
    np.testing.assert_allclose(tg.pinverse(a).numpy(), np.diag([0.25, 1, 1e3]), rtol=1e-12)


@pytest.mark.parametrize(
    ("atol", "rank"), [(0.0, 1), (-1.0, 1), (1e-20, 2), (tg.tensor(0.0), 1), (tg.tensor([0.0, 1e-20]), [1, 2])]
)
@pytest.mark.parametrize("hermitian", [False, True])
def test_only_an_absolute_tolerance_above_0_replaces_that_of_rounding(atol, rank, hermitian):
    a = tg.tensor(np.diag([1.0, 1e-18]))
    assert L.matrix_rank(a, atol=atol, hermitian=hermitian).tolist() == rank
    inverse = L.pinv(a, atol=atol, hermitian=hermitian).diagonal(dim1=-2, dim2=-1)
    np.testing.assert_allclose(inverse.numpy()[..., 1], 1e18 * (np.array(rank) - 1), rtol=1e-12)


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3.5, np.inf])
@pytest.mark.parametrize("mode", [None, "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_cdist(p, mode):
    x, y = random(2, 30, 3), random(5, 3)
    expected = np.linalg.norm(x[:, :, None] - y[None, None], p, axis=-1)
    np.testing.assert_allclose(tg.cdist(tg.tensor(x), tg.tensor(y), p, mode).numpy(), expected, rtol=1e-10)


def test_cdist_of_coincident_points_by_products():
    """What cancels in |x|^2 - 2 x y + |y|^2 is computed from the difference: exactly 0 at coincident points."""
    x = tg.tensor(random(30, 3) + 100, dtype=tg.float32, requires_grad=True)
    d = tg.cdist(x, x)
    assert not d.diagonal().any()
    exact = np.linalg.norm((x.detach().double().unsqueeze(1) - x.detach().double()).numpy(), axis=-1)
    np.testing.assert_allclose(d.detach().numpy(), exact, rtol=1e-5)
    (g,) = tg.autograd.grad(d.sum(), x, create_graph=True)
    (h,) = tg.autograd.grad((g * g).sum(), x)
    assert np.isfinite(g.detach().numpy()).all() and np.isfinite(h.numpy()).all()


def test_empty_matrices():
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        x = tg.zeros(*shape, dtype=tg.float64)
        assert tuple(L.det(x).shape) == shape[:-2] and (L.det(x) == 1).all()
        for f in (L.inv, L.cholesky, L.matrix_exp, L.pinv, lambda x: L.matrix_power(x, -2)):
            assert tuple(f(x).shape) == shape
        assert tuple(L.eigh(x)[0].shape) == shape[:-1]
        assert tuple(L.solve(x, tg.zeros(*shape[:-1], 2, dtype=tg.float64)).shape) == (*shape[:-1], 2)
    u, s, vh = L.svd(tg.zeros(0, 3))
    assert (tuple(u.shape), tuple(s.shape), vh.tolist()) == ((0, 0), (0,), np.eye(3).tolist())
    assert tuple(tg.cdist(tg.zeros(0, 3), tg.zeros(2, 3)).shape) == (0, 2)
    assert tg.cdist(tg.zeros(2, 0), tg.zeros(2, 0)).tolist() == [[0, 0], [0, 0]]
    assert tg.pdist(tg.zeros(1, 3)).tolist() == []


def test_float32_stays_float32():
    a = tg.tensor(positive(3, 3), dtype=tg.float32, requires_grad=True)
    for f in (
        L.cholesky, L.inv, L.det, L.matrix_exp, L.pinv, L.svdvals, L.eigvalsh, L.cond, tg.logdet,
        lambda a: L.solve(a, a), lambda a: L.qr(a)[1], lambda a: L.lu(a)[2], lambda a: L.eigh(a)[1], lambda a: L.svd(a)[0],
        lambda a: tg.cdist(a, a + 1), lambda a: L.lstsq(a, a)[0], lambda a: L.eig(a)[0].abs(), lambda a: L.matrix_norm(a, 2),
    ):  # fmt: skip
        y = f(a)
        (g,) = tg.autograd.grad(y.sum(), a, create_graph=True)
        assert (y.dtype, g.dtype) == (tg.float32, tg.float32)


# ----------------------------------------------------------------------------------------- singular matrices, nan, errors


def test_singular_matrices():
    zero, mixed = tg.zeros(3, 3), tg.stack([tg.eye(2), tg.tensor([[1.0, 2.0], [2.0, 4.0]])])
    for call, text in (
        (lambda: L.inv(zero), "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the "
         "input matrix is singular."),
        (lambda: L.inv(mixed), r"linalg.inv: \(Batch element 1\): The diagonal element 2 is zero"),
        (lambda: L.solve(mixed, mixed), r"torch.linalg.solve: \(Batch element 1\): The solver failed because the input"),
        (lambda: L.cholesky(-tg.eye(2)), "linalg.cholesky: The factorization could not be completed because the input is "
         r"not positive-definite \(the leading minor of order 1 is not positive-definite\)."),
        (lambda: L.cholesky_ex(mixed, check_errors=True), r"\(Batch element 1\).*leading minor of order 2"),
        (lambda: L.svd(tg.full((2, 2), float("nan"))), "linalg.svd: The algorithm failed to converge because the input "
         "matrix contained non-finite values."),
    ):  # fmt: skip
        with pytest.raises(L.LinAlgError, match=text):
            call()
    assert issubclass(L.LinAlgError, RuntimeError)
    assert L.inv_ex(mixed).info.tolist() == [0, 2]
    assert L.solve_ex(zero, tg.ones(3)).info.item() == 1
    assert L.cholesky_ex(-tg.eye(2)).info.item() == 1
    assert L.lu_factor_ex(zero).info.item() == 1
    with pytest.raises(RuntimeError, match=r"linalg.lu_factor: U\[1,1\] is zero"):
        L.lu_factor(zero)
    assert L.slogdet(zero).logabsdet.item() == -np.inf and L.slogdet(zero).sign.item() == 0
    assert L.cond(zero, 1).item() == np.inf
    assert L.solve_triangular(tg.zeros(2, 2), tg.ones(2, 1), upper=True)[1].item() == np.inf


def test_nan_in_one_matrix_stays_there():
    x = tg.eye(2).repeat(2, 1, 1)
    x[1, 0, 0] = float("nan")
    for f in (L.inv, L.svdvals, L.eigvalsh, L.det, L.matrix_exp, L.pinv, lambda x: L.cholesky_ex(x)[0]):
        y = f(x).numpy()
        assert np.isfinite(y[0]).all() and np.isnan(y[1]).any(), f


ERRORS = {
    "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices": lambda: L.inv(tg.ones(2, 3)),
    "linalg.det: The input tensor A must have at least 2 dimensions.": lambda: L.det(tg.ones(2)),
    "linalg.eigh: Expected a floating point or complex tensor as input. Got Long": lambda: L.eigh(tg.ones(2, 2).long()),
    "linalg.inv: Low precision dtypes not supported. Got Half": lambda: L.inv(tg.ones(2, 2).half()),
    "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x2)": lambda: L.solve(
        tg.eye(2), tg.ones(3, 2)
    ),
    "linalg.solve: Expected A and B to have the same dtype, but found A of type Float and B of type Double":
        lambda: L.solve(tg.eye(2), tg.ones(2, 2).double()),
    "qr received unrecognized mode 'x' but expected one of 'reduced' (default), 'r', or 'complete'": lambda: L.qr(
        tg.ones(2, 2), "x"
    ),
    "Expected UPLO argument to be 'L' or 'U', but got X": lambda: L.eigh(tg.eye(2), "X"),
    "linalg.matrix_norm: Order 3 not supported.": lambda: L.matrix_norm(tg.eye(2), 3),
    "linalg.matrix_norm: dim must be a 2-tuple. Got 0": lambda: L.norm(tg.eye(2), "fro", 0),
    "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.":
        lambda: L.norm(tg.ones(2, 2, 2), 2),
    "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation does not have an identity":
        lambda: L.vector_norm(tg.zeros(0), float("inf")),
    "multi_dot(): expected at least 2 tensors but got 1": lambda: L.multi_dot([tg.ones(2)]),
    "multi_dot(): tensors 0 and 1 with shapes [2, 2] and [3, 3] cannot be multiplied": lambda: L.multi_dot(
        [tg.ones(2, 2), tg.ones(3, 3)]
    ),
    "cdist only supports at least 2D tensors, X1 got: 1D": lambda: tg.cdist(tg.ones(2), tg.ones(2, 2)),
    "X1 and X2 must have the same number of columns. X1: 3 X2: 2": lambda: tg.cdist(tg.ones(2, 3), tg.ones(2, 2)),
    "cdist only supports non-negative p values": lambda: tg.cdist(tg.ones(2, 2), tg.ones(2, 2), -1),
    "torch.linalg.lstsq: input.size(-2) should match other.size(-2)": lambda: L.lstsq(tg.ones(2, 2), tg.ones(3, 3)),
    "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1.": lambda: tg.addmm(
        tg.ones(3, 3), tg.ones(2, 2), tg.ones(2, 2)
    ),
    "Expected size for first two dimensions of batch2 tensor to be: [1, 3] but got: [2, 3].": lambda: tg.bmm(
        tg.ones(1, 2, 3), tg.ones(2, 3, 2)
    ),
    "1D tensors expected, but got 2D and 1D tensors": lambda: tg.dot(tg.ones(2, 2), tg.ones(3)),
    "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]": lambda: (
        L.householder_product(tg.ones(2, 3), tg.ones(2))
    ),
    "pdist only supports 2D tensors, got: 3D": lambda: tg.pdist(tg.ones(2, 2, 2)),
    "N must be greater than 1.": lambda: L.vander(tg.ones(2), N=1),
    "linalg.lu_factor: LU without pivoting is not implemented on the CPU": lambda: L.lu_factor(tg.eye(2), pivot=False),
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    with pytest.raises(RuntimeError) as info:
        ERRORS[text]()
    assert str(info.value).startswith(text)


def test_complete_qr_of_tall_matrices_has_no_derivative():
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        gradient(lambda a: L.qr(a, "complete")[1].sum(), random(3, 2))


# ------------------------------------------------------------------------------------------------- names, results, out


def test_named_results():
    a = tg.eye(2)
    for result, text in (
        (L.svd(a), "torch.return_types.linalg_svd(\nU="), (tg.svd(a), "torch.return_types.svd(\nU="),
        (L.eigh(a), "torch.return_types.linalg_eigh(\neigenvalues="), (L.qr(a), "torch.return_types.linalg_qr(\nQ="),
        (L.slogdet(a), "torch.return_types.linalg_slogdet(\nsign="), (a.slogdet(), "torch.return_types.slogdet(\nsign="),
        (L.lstsq(a, a), "torch.return_types.linalg_lstsq(\nsolution="),
    ):  # fmt: skip
        assert repr(result).startswith(text)
    assert L.eigh(a).eigenvalues.tolist() == [1, 1]


def test_methods_and_out():
    a, out = tg.eye(2) * 2, tg.empty(0)
    assert a.det().item() == 4 and a.inverse().tolist() == [[0.5, 0], [0, 0.5]]
    assert L.inv(a, out=out) is out and out.tolist() == [[0.5, 0], [0, 0.5]]
    q, r = tg.empty(0), tg.empty(0)
    assert L.qr(a, out=(q, r)).R is r
    assert a.addmm_(a, a).tolist() == [[6, 0], [0, 6]]


def test_addmm_does_not_read_its_input_for_beta_0():
    nan = tg.full((2, 2), float("nan"))
    assert tg.addmm(nan, tg.eye(2), tg.eye(2), beta=0).tolist() == [[1, 0], [0, 1]]


def test_svd_lowrank_and_pca():
    a = random(20, 3) @ random(3, 8)
    u, s, v = tg.svd_lowrank(tg.tensor(a), q=3)
    np.testing.assert_allclose(((u * s) @ v.mT).numpy(), a, atol=1e-10)
    centred = a - a.mean(0)
    u, s, v = tg.pca_lowrank(tg.tensor(a), q=3)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(centred, compute_uv=False)[:3], atol=1e-10)
    u, s, v = tg.svd_lowrank(tg.tensor(a.T.copy()), q=3)
    np.testing.assert_allclose(((u * s) @ v.mT).numpy(), a.T, atol=1e-10)


def test_multi_dot_takes_the_cheapest_order():
    from tapegrad.functions.linalg import _product_order

    sizes = [30, 35, 15, 5, 10, 20, 25]  # of a textbook (Cormen et al., 15.2)
    split = _product_order(sizes)
    assert split[0, 5] == 2 and split[0, 2] == 0 and split[3, 5] == 4


def test_lapack_fallbacks_agree_with_numpy():
    from tapegrad.kernels import lapack

    for n, k in itertools.product((1, 3), (1, 2)):
        a, b = regular(2, n, n), random(n, k)
        for upper in (True, False):
            triangle = np.triu(a) if upper else np.tril(a)
            np.testing.assert_allclose(lapack.solve_triangular(a, b, upper, False), np.linalg.solve(triangle, b), atol=1e-12)
        np.testing.assert_allclose(lapack._substitute(np.triu(a), b), np.linalg.solve(np.triu(a), b), atol=1e-12)
        np.testing.assert_allclose(lapack._solve_singular(a[0], b), np.linalg.solve(a[0], b), atol=1e-12)


@pytest.mark.parametrize("upper", [True, False])
def test_no_stride_of_a_triangular_solution_is_negative(upper):
    """PyTorch's tensors have none, and matrix products of arrays that have are slower and rounded otherwise."""
    for a, b in [((3, 3), (3, 2)), ((2, 3, 3), (3, 2))]:
        x = L.solve_triangular(tg.tensor(regular(*a)), tg.tensor(random(*b)), upper=upper)
        assert min(x.stride()) > 0


@BOTH
@pytest.mark.parametrize("n", [3, 20])
def test_routes_through_scipy_agree(n, dtype, monkeypatch):
    """From a size on LAPACK is called through SciPy, where that is installed."""
    from tapegrad.kernels import lapack

    a, b = regular(2, n, n, dtype=dtype), random(2, n, 3, dtype=dtype)

    def results():
        x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
        outputs = [L.solve(x, y), *L.lu(x)[1:], L.solve_triangular(x, y, upper=True), L.solve_triangular(x, y, upper=False)]
        total = sum((o * o.conj()).real.sum() for o in outputs)
        gradients = tg.autograd.grad(total, [x, y], create_graph=True)
        second = tg.autograd.grad(sum((g * g.conj()).real.sum() for g in gradients), [x, y])
        return [t.detach().numpy() for t in (*outputs, *gradients, *second)]

    with_scipy = results()
    monkeypatch.setattr(lapack, "scipy_lapack", lambda: None)
    for r, expected in zip(results(), with_scipy, strict=True):
        np.testing.assert_allclose(r, expected, rtol=1e-8, atol=1e-10)


MASKED = {
    "logdet": lambda a: L.slogdet(a).logabsdet,
    "inv": lambda a: L.inv_ex(a).inverse.sum((-2, -1)),
    "solve": lambda a: L.solve_ex(a, a + 1).result.sum((-2, -1)),
    "solve_triangular": lambda a: L.solve_triangular(a, a + 1, upper=True).sum((-2, -1)),
    "cholesky": lambda a: L.cholesky_ex(own(a)).L.sum((-2, -1)),
    "eigh": lambda a: L.eigh(own(a)).eigenvectors[..., 0, 1],
    "svd": lambda a: L.svd(a).U[..., 0, 0],
}


@pytest.mark.parametrize("name", MASKED)
def test_a_matrix_that_the_loss_does_not_use_gets_gradient_0(name):
    """Strong zero: an infinite derivative at one matrix of a batch does not reach it through a mask."""
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    bad = {"cholesky": -np.eye(2), "eigh": np.eye(2), "svd": np.eye(2)}.get(name, np.zeros((2, 2)))
    a = tg.tensor(np.stack([good, bad]), requires_grad=True)

    def loss(a):
        return tg.where(tg.tensor([True, False]), MASKED[name](a), 0.0).sum()

    (g,) = tg.autograd.grad(loss(a), a, create_graph=True)
    expected = gradient(lambda x: MASKED[name](x).sum(), good[None])
    np.testing.assert_allclose(g.detach().numpy()[0], expected[0], rtol=1e-12)
    assert not g.detach()[1].any()
    if name not in ("inv", "solve", "solve_triangular"):  # their derivatives are matrix products, in which 0 * inf is nan
        (h,) = tg.autograd.grad((g * g).sum(), a)
        assert np.isfinite(h.numpy()).all() and not h[1].any()


def test_lobpcg_gives_the_ends_of_the_spectrum():
    a = tg.diag(tg.arange(1.0, 10.0, dtype=tg.float64))
    values, vectors = tg.lobpcg(a, 2)
    assert values.tolist() == pytest.approx([9, 8]) and tg.allclose(a @ vectors, vectors * values)
    assert tg.lobpcg(a, k=2, largest=False)[0].tolist() == pytest.approx([1, 2])
    assert tg.lobpcg(a, X=tg.ones(9, 3).double())[0].tolist() == pytest.approx([9, 8, 7])
    b = tg.diag(tg.tensor([4.0] + [1.0] * 8, dtype=tg.float64))
    values, vectors = tg.lobpcg(a, 9, B=b)
    assert values[-1] == pytest.approx(0.25) and tg.allclose(a @ vectors, b @ vectors * values)
    a.requires_grad_()
    (g,) = tg.autograd.grad(tg.lobpcg(a, 1)[0].sum(), a)
    assert g.nonzero().tolist() == [[8, 8]] and g[8, 8] == 1
    with pytest.raises(ValueError, match="the number of eigenpairs k=10 must be between 1 and 9"):
        tg.lobpcg(a, 10)


@pytest.mark.parametrize("upper", [False, True])
def test_the_triangle_of_a_cholesky_factor_that_is_not_read_has_a_gradient(upper):
    factor = tg.tensor([[1.0, 0.0], [1.0, 2.0]], requires_grad=True)  # a factor of [[1, 1], [1, 5]]
    own = factor.mT if upper else factor
    tg.cholesky_inverse(own, upper)[0, 0].backward()
    assert factor.grad.tolist() == [[-2.5, 1.25], [0.5, -0.25]]
    b = tg.tensor([[1.0], [0.0]])
    (g,) = tg.autograd.grad(tg.cholesky_solve(b, own, upper)[0, 0], factor, create_graph=True)
    assert g.tolist() == [[-2.5, 1.25], [0.5, -0.25]]
    with_rest = tg.tensor([[1.0, 7.0], [1.0, 2.0]], requires_grad=True)  # what is not read has no influence
    own = with_rest.mT if upper else with_rest
    (h,) = tg.autograd.grad(tg.cholesky_solve(b, own, upper)[0, 0], with_rest, create_graph=True)
    assert h.tolist() == g.tolist()
    assert tg.allclose(*(tg.autograd.grad((k**2).sum(), x)[0] for k, x in ((g, factor), (h, with_rest))))
    tangent = tg.func.jvp(lambda x: tg.cholesky_solve(b, x, upper), (own.detach(),), (tg.ones(2, 2),))[1]
    assert tangent[0, 0].item() == g.sum().item()


def test_multi_dot_of_vectors_at_the_ends():
    rng = np.random.default_rng(0)
    v, a, b, w = rng.normal(size=3), rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=5)
    for given in ([a, b], [v, a, b], [a, b, w], [v, a, b, w]):
        got = L.multi_dot([tg.tensor(x) for x in given]).numpy()
        np.testing.assert_allclose(got, np.linalg.multi_dot(given), strict=True)


def test_vander_of_few_columns():
    x = tg.tensor([2.0, 3.0])
    assert tg.vander(x, 0).shape == (2, 0) and tg.vander(x, 1).tolist() == [[1.0], [1.0]]
    assert tg.vander(x, 2, increasing=True).tolist() == [[1.0, 2.0], [1.0, 3.0]]

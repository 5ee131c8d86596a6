"""Cases of NumPy's further functions on tensors; `test_numpy` runs them. A case is (arguments, keywords)."""

import numpy as np

RNG = np.random.default_rng(11)
M = RNG.uniform(0.2, 2.0, (3, 4))
S = RNG.uniform(-2.0, 2.0, (3, 3))
P = S @ S.T + np.eye(3)
STACK = np.stack([P, 2 * P + np.eye(3)])
T3 = RNG.uniform(0.5, 2.0, (2, 3, 4))
V = RNG.uniform(0.2, 2.0, 3)
W = RNG.uniform(0.5, 1.5, 4)
L6 = np.array([0.3, 1.2, 0.7, 1.9, 1.1, 0.4])
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
HOLES = np.where(MASK, M, np.nan)
HOLES[:, 0] = M[:, 0]


class Out:
    """Stands for out= of the result's shape and dtype."""


class Refused:
    """Stands for a value that a keyword is refused with."""

    def __init__(self, value):
        self.value = value


def c(*args, **kwargs):
    return args, kwargs


def line(*more):
    return [c(M), c(L6, 4), c(M, n=6, axis=0), c(L6, norm="ortho"), c(M, None, 1, "forward"), *more]


def grid(*more):
    return [
        c(M),
        c(T3, (2, 4), (1, 2)),
        c(T3, s=(3, 2), axes=(0, 2)),
        c(M, norm="ortho"),
        c(T3, axes=(1, 2), norm="forward"),
        *more,
    ]


FFT = {
    **{f: line(c(L6, out=Out())) for f in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)},
    **{f: grid(c(M, out=Out())) for f in (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2)},
    **{f: grid(c(M, out=Out())) for f in (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn)},
    np.fft.fftshift: [c(M), c(V), c(M, axes=0), c(T3, (1, 2))],
    np.fft.ifftshift: [c(M), c(V), c(M, axes=0), c(T3, (1, 2))],
}
LINALG = {
    np.linalg.cholesky: [c(P), c(STACK), c(P, upper=True)],
    np.linalg.det: [c(S), c(STACK)],
    np.linalg.slogdet: [c(S), c(STACK)],
    np.linalg.inv: [c(S), c(STACK)],
    np.linalg.pinv: [c(M), c(M.T), c(M, 1e-10), c(M, rtol=1e-9), c(P, hermitian=True), c(T3)],
    np.linalg.solve: [c(S, V), c(S, M), c(STACK, S), c(STACK, V)],
    np.linalg.lstsq: [c(M.T, W), c(M.T, M.T), c(M, V), c(M.T, W, rcond=1e-9), c(M, M, None)],
    np.linalg.eig: [c(P)],
    np.linalg.eigh: [c(P), c(P, UPLO="U"), c(STACK)],
    np.linalg.eigvals: [c(P), c(S)],
    np.linalg.eigvalsh: [c(P), c(P, UPLO="U")],
    np.linalg.svd: [
        c(M, full_matrices=False),
        c(S),
        c(M, compute_uv=False),
        c(P, hermitian=Refused(True)),
        c(T3, False),
    ],
    np.linalg.svdvals: [c(M), c(T3)],
    np.linalg.qr: [c(M.T), c(S, mode="r"), c(S, "complete"), c(S, mode=Refused("raw"))],
    np.linalg.matrix_power: [c(S, 3), c(S, n=0), c(S, -2), c(STACK, 2)],
    np.linalg.matrix_rank: [c(M), c(STACK), c(M, tol=0.5), c(P, hermitian=True), c(M, rtol=0.1)],
    np.linalg.multi_dot: [c([M, M.T, S]), c([W, M.T, V]), c([M, M.T], out=Refused(np.zeros((3, 3))))],
    np.linalg.cond: [c(S), c(S, "fro"), c(S, p=1)],
    np.linalg.tensorinv: [c(RNG.uniform(0.5, 2.0, (2, 2, 4))), c(P.reshape(3, 1, 3), ind=1)],
    np.linalg.tensorsolve: [c(P.reshape(3, 3), V), c(P.reshape(3, 1, 3), V[:, None]), c(P, V, axes=(0,))],
    np.linalg.matrix_norm: [c(S), c(T3, keepdims=True), c(S, ord=1), c(S, ord="nuc")],
    np.linalg.vector_norm: [c(M), c(V, ord=3), c(M, axis=1, keepdims=True), c(T3, axis=(0, 2), ord=1), c(M, keepdims=True)],
    np.linalg.diagonal: [c(S), c(T3, offset=1)],
    np.linalg.trace: [c(S), c(T3, offset=1), c(S, dtype=np.float32)],
    np.linalg.cross: [c(V, V[::-1]), c(S, S.T, axis=0)],
    np.linalg.outer: [c(V, W)],
    np.linalg.matmul: [c(S, M), c(STACK, S)],
    np.linalg.vecdot: [c(S, S.T), c(M, M, axis=0)],
    np.linalg.matrix_transpose: [c(T3)],
    np.linalg.tensordot: [c(T3, M), c(M, W, axes=1), c(T3, T3, axes=([0, 2], [0, 2]))],
}
NAN_REDUCED = [
    c(HOLES), c(HOLES, 1), c(HOLES, axis=0, keepdims=True), c(HOLES, axis=1, out=Out()), c(HOLES, dtype=np.float32),
]  # fmt: skip
NAN_FULL = [*NAN_REDUCED, c(HOLES, initial=2.0), c(HOLES, where=MASK), c(HOLES, 0, None, None)]
NAN_EXTREME = [
    c(HOLES), c(HOLES, 1), c(HOLES, axis=0, keepdims=True), c(HOLES, axis=1, out=Out()), c(HOLES, initial=1.0),
    c(HOLES, initial=0.5, where=MASK), c(np.array([[np.nan, np.nan], [1.0, np.nan]]), axis=1),
]  # fmt: skip
NAN_PLACE = [c(HOLES), c(HOLES, 1), c(HOLES, axis=0, keepdims=True), c(HOLES, axis=1, out=Out())]
NAN_MOMENT = [*NAN_REDUCED, c(HOLES, where=MASK), c(HOLES, axis=1, where=MASK[:, :1] | MASK)]
NAN_SPREAD = [
    *NAN_REDUCED, c(HOLES, ddof=1), c(HOLES, axis=1, correction=1), c(HOLES, where=MASK),
    c(HOLES, axis=1, mean=np.nanmean(HOLES, 1, keepdims=True)),
]  # fmt: skip
QUANTILES = [
    c(M, 0.3), c(M, [0.1, 0.5]), c(M, 0.25, axis=1), c(T3, 0.5, (0, 2), keepdims=True), c(M, 0.4, axis=0, out=Out()),
    c(V, 0.3, method="lower"), c(V, 0.3, method="nearest"), c(V, 0.7, method="midpoint"),
    c(V, 0.3, method=Refused("weibull")), c(V, 0.45, overwrite_input=False), c(V, 0.3, weights=Refused(V)),
]  # fmt: skip


def percents(cases):
    return [((args[0], np.multiply(args[1], 100.0), *args[2:]), kwargs) for args, kwargs in cases]


RANGE = [
    c(1.0, V), c(V, 2 * V, 5), c(V, 9.0, num=4, endpoint=False), c(V, V + 2.0, 3, axis=1), c(V, 4.0, dtype=np.float32),
]  # fmt: skip
COUNTS = np.array([0, 2, 2, 1])

ROUTINES = {
    np.vsplit: [c(T3, 2), c(M, [1, 2])],
    np.hsplit: [c(M, 2), c(W, [1, 3])],
    np.dsplit: [c(T3, 2), c(T3, [1])],
    np.atleast_3d: [c(V), c(M, V[0])],
    np.dstack: [c([V, V]), c([M, 2 * M])],
    np.block: [c([[S, V[:, None]], [W]]), c([V, W]), c([[[T3]], [[T3]]]), c(M), c([V[0], V])],
    np.fliplr: [c(M)],
    np.flipud: [c(M)],
    np.rot90: [c(M), c(M, 2), c(T3, k=-1, axes=(1, 2))],
    np.rollaxis: [c(T3, 2), c(T3, 0, 3), c(T3, axis=-1, start=1), c(T3, 1, -1)],
    np.matrix_transpose: [c(T3)],
    np.broadcast_arrays: [c(V[:, None], W), c(M, W), c(M, W, subok=Refused(True))],
    np.resize: [c(M, (2, 3)), c(V, 7), c(V, new_shape=(2, 2))],
    np.diagflat: [c(M[:2, :2]), c(V, k=1), c(V, -2)],
    np.vander: [c(V), c(V, 2), c(V, N=4, increasing=True)],
    np.insert: [
        c(V, 1, 0.5), c(M, 1, W, axis=0), c(M, [0, 2], 3.0, 1), c(V, [2, 0], [0.1, 0.2]), c(V, slice(0, 2), 0.5),
        c(M, obj=-1, values=V, axis=1), c(V, [1, 1], [0.1, 0.2]), c(M, [1], W[None], axis=0), c(M, 2, 0.5),
    ],
    np.delete: [c(V, 1), c(M, [0, 2], 1), c(M, obj=slice(0, 1), axis=0), c(M, [1, 5])],
    np.pad: [
        c(V, 2), c(M, 1), c(M, ((1, 0), (0, 2))), c(V, (1, 2), "edge"), c(M, (1, 2), mode="reflect"), c(V, 2, "symmetric"),
        c(M, 1, mode="wrap"), c(M, ((1, 2), (0, 1)), constant_values=((1.0, 2.0), (3.0, 4.0))), c(V, 1, constant_values=9.0),
        c(V, 1, mode=Refused("mean")), c(V, 1, kwargs=Refused(1)),
    ],
    np.trim_zeros: [
        c(np.array([0.0, 1.0, 0.0, 2.0, 0.0])), c(np.array([0.0, 1.0, 0.0]), trim="f"), c(np.diag([0.0, 1.0, 0.0]), axis=0),
    ],
    np.select: [c([M > 1.5, M > 0.8], [M, 2 * M]), c([M > 1.0], [M], default=-1.0), c([MASK, ~MASK], [M, 0.5])],
    np.choose: [
        c(np.array([0, 1, 0]), [V, 2 * V]), c(np.array([0, 3, -1]), [V, 2 * V], mode="wrap"),
        c(np.array([0, 3, 1]), [V, 0.5], mode="clip"), c(np.array([1, 1, 0]), [V, 2 * V], out=Out()),
    ],
    np.compress: [c([True, False, True], V), c([False, True, True], M, axis=0), c([True, False, True], M, 1, out=Out())],
    np.extract: [c(MASK, M), c(np.array([1, 0, 2]), V)],
    np.argwhere: [c(np.floor(M))],
    np.flatnonzero: [c(np.floor(M))],
    np.partition: [
        c(L6, 2), c(M, 1, axis=0), c(M, 3, None), c(L6, (1, 3)), c(L6, 1, kind=Refused("other")),
        c(L6, 1, order=Refused("f")),
    ],
    np.argpartition: [
        c(L6, 2), c(M, 1, axis=0), c(M, 3, None), c(L6, 1, kind=Refused("other")), c(L6, 1, order=Refused("f")),
    ],
    np.searchsorted: [c(np.sort(L6), V), c(np.sort(L6), 0.7, side="right"), c(L6, V, sorter=np.argsort(L6))],
    np.digitize: [c(V, np.sort(L6)), c(V, np.sort(L6), right=True)],
    np.isin: [
        c(V, V[:2]), c(M, [1.0], invert=True), c(V, V, assume_unique=True, kind="sort"),
    ],
    np.bincount: [c(COUNTS), c(COUNTS, W), c(COUNTS, weights=W, minlength=5)],
    np.unique: [
        c(np.array([2.0, 1.0, 2.0])), c(np.array([2.0, 1.0, 2.0]), return_index=True, return_inverse=True),
        c(np.array([[2.0, 1.0], [2.0, 1.0]]), return_counts=True, axis=0), c(np.array([2.0, 1.0]), equal_nan=False),
        c(np.array([2.0, 1.0]), sorted=True),
        c(np.array([[2.0, 1.0]]), False, True),
    ],
    np.unique_values: [c(V)],
    np.unique_counts: [c(np.array([2.0, 1.0, 2.0]))],
    np.unique_inverse: [c(np.array([[2.0, 1.0, 2.0]]))],
    np.unique_all: [c(np.array([[2.0, 1.0, 2.0]]))],
    np.angle: [c(V), c(S, deg=True)],
    np.real_if_close: [c(V), c(V, tol=10)],
    np.sinc: [c(V), c(S)],
    np.i0: [c(V), c(S)],
    np.fix: [c(3 * S), c(3 * S, out=Out())],
    np.unwrap: [c(np.array([0.1, 4.0, 7.5, 0.2])), c(4 * M, axis=0), c(4 * V, discont=4.0), c(9 * V, period=5.0)],
    np.interp: [
        c(V, np.sort(L6), L6), c(3 * V, np.sort(L6), L6, left=-1.0, right=7.0), c(0.9, np.sort(L6), L6),
        c(V, np.sort(L6), L6, period=Refused(2.0)),
    ],
    np.polyval: [c(W, V), c(W, M)],
    np.linspace: [*RANGE, c(V, 3.0, 4, retstep=True), c(V, 2.0, device="cpu")],
    np.logspace: [*RANGE, c(V, 1.0, 3, base=2.0)],
    np.geomspace: RANGE,
    np.vdot: [c(V, V), c(S, S.T)],
    np.convolve: [c(L6, V), c(V, L6, "same"), c(L6, V, mode="valid"), c(L6, W, "same"), c(L6, W, "full")],
    np.correlate: [c(L6, V), c(V, L6, "same"), c(L6, V, mode="full"), c(L6, W, "same"), c(V, L6), c(V, L6, "full")],
    np.nansum: NAN_FULL,
    np.nanprod: NAN_FULL,
    np.nancumsum: [c(HOLES), c(HOLES, 1), c(HOLES, axis=0, out=Out()), c(HOLES, dtype=np.float32)],
    np.nancumprod: [c(HOLES), c(HOLES, 1), c(HOLES, axis=0, out=Out()), c(HOLES, dtype=np.float32)],
    np.nanmax: NAN_EXTREME,
    np.nanmin: NAN_EXTREME,
    np.nanargmax: NAN_PLACE,
    np.nanargmin: NAN_PLACE,
    np.nanmean: NAN_MOMENT,
    np.nanvar: NAN_SPREAD,
    np.nanstd: NAN_SPREAD,
    np.quantile: QUANTILES,
    np.percentile: percents(QUANTILES),
    np.nanquantile: QUANTILES,
    np.nanpercentile: percents(QUANTILES),
    np.nanmedian: [
        c(HOLES), c(HOLES, 1), c(HOLES, axis=0, keepdims=True), c(HOLES, axis=1, out=Out()), c(V, overwrite_input=False),
    ],
    np.cov: [
        c(M), c(M, rowvar=False), c(V, 2 * V), c(M, bias=True), c(M, ddof=0), c(M, fweights=COUNTS), c(M, aweights=W),
        c(M, dtype=np.float64), c(M, y=2 * M),
    ],
    np.corrcoef: [c(M), c(M, rowvar=False), c(V, V[::-1]), c(M, dtype=np.float64), c(M, y=2 * M[::-1])],
    np.trapezoid: [c(M), c(M, dx=0.5), c(M, np.sort(W)), c(M, x=np.sort(V), axis=0)],
    np.gradient: [c(L6), c(M), c(M, axis=1), c(M, 0.5, 2.0), c(M, np.sort(V), np.sort(W)), c(L6, edge_order=2), c(M, 0.5)],
    np.ediff1d: [c(L6), c(M), c(V, to_end=[0.5], to_begin=0.1)],
    np.array_equiv: [c(M, M), c(M, W)],
    np.iscomplex: [c(M)],
    np.isreal: [c(M)],
    np.iscomplexobj: [c(M)],
    np.isrealobj: [c(M)],
    np.isneginf: [c(np.array([1.0, -np.inf])), c(V, out=Out())],
    np.isposinf: [c(np.array([1.0, np.inf])), c(V, out=Out())],
}  # fmt: skip


def newer(name, *cases):
    """Cases of a function that not every NumPy 2 has."""
    function = getattr(np, name, None)
    return {function: list(cases)} if function else {}


ROUTINES |= newer("unstack", c(T3), c(M, axis=1))
ROUTINES |= newer("astype", c(M, np.float32), c(M, np.float64, copy=False), c(M, np.float32, device="cpu"))
for _name in ("cumulative_sum", "cumulative_prod"):
    ROUTINES |= newer(_name, c(V), c(M, axis=1), c(M, axis=0, include_initial=True), c(V, dtype=np.float32), c(V, out=Out()))

# Functions of Hermitian matrices read one triangle: they are differentiated behind a symmetrisation.
HERMITIAN = {np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh}
# Eigenvectors are compared up to their sign.
SIGNED = {np.linalg.eig, np.linalg.eigh, np.linalg.svd}
# A small step changes which elements are chosen; the gradient of eigenvectors needs a phase.
STEPS = {np.trim_zeros, np.unique, np.unique_counts, np.unique_inverse, np.unique_all, np.linalg.eig}

# Written into in place: (function, arguments after the target); compared, and differentiated by the values.
IN_PLACE = [
    (np.copyto, M, (2 * M,), {}), (np.copyto, M, (W,), {"where": MASK, "casting": "unsafe"}),
    (np.putmask, M, (MASK, V), {}), (np.place, M, (MASK, V), {}), (np.put, M, ([0, 5], V[:2]), {}),
    (np.put, M, ([13, -1], V), {"mode": "wrap"}), (np.put, M, ([99], V[:1]), {"mode": "clip"}),
    (np.fill_diagonal, S, (V,), {}), (np.fill_diagonal, T3[0].T.copy(), (0.5,), {"wrap": True}),
]  # fmt: skip

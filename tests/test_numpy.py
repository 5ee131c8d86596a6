"""NumPy's functions on tensors against NumPy: each keyword is honoured with NumPy's meaning or refused."""

import inspect
import math
import pathlib
import re
import warnings

import numpy as np
import pytest
from numpy_cases import FFT, HERMITIAN, IN_PLACE, LINALG, ROUTINES, SIGNED, STEPS, Out, Refused, c

import tapegrad as tg
from tapegrad.numpy.arguments import FUNCTIONS, LATER, name_of
from tapegrad.numpy.reductions import REDUCTIONS, SCANS
from tapegrad.numpy.ufuncs import UFUNCS

RNG = np.random.default_rng(5)
M = RNG.uniform(0.2, 2.0, (3, 4))
S = RNG.uniform(-2.0, 2.0, (3, 3))
T3 = RNG.uniform(0.5, 2.0, (2, 3, 4))
V = RNG.uniform(0.2, 2.0, 3)
W = RNG.uniform(0.5, 1.5, 4)
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
INF = float("inf")


def reductions(*more, dtype=True, extreme=False, initial=True):
    cases = [
        c(M),
        c(M, axis=1),
        c(T3, (0, 2)),
        c(M, axis=-1, keepdims=True),
        c(M, keepdims=True),
        c(M, axis=0, out=Out()),
        c(M, ()),
        c(T3, axis=(0, -1), keepdims=True),
    ]
    if dtype:
        cases += [c(M, dtype=np.float32), c(M, dtype=float), c(M.astype(np.float32), 0, np.float64)]
    if initial:
        cases += [c(M, initial=1.5), c(M, axis=0, where=MASK, initial=1.25), c(M, axis=1, initial=0.5, keepdims=True)]
    if not extreme:
        cases += [c(M, where=MASK), c(M, axis=1, where=MASK, keepdims=True), c(M, axis=0, where=MASK[:, :1])]
    return cases + list(more)


SPREADS = [
    *reductions(
        c(M, 0, ddof=1),
        c(M, axis=0, correction=1),
        c(M, where=MASK, ddof=1),
        c(M, mean=np.mean(M)),
        c(M, axis=0, mean=np.mean(M, axis=0, keepdims=True), ddof=2),
    ),
]
SPREADS = [(args, kwargs) for args, kwargs in SPREADS if "initial" not in kwargs and args[1:] != ((),)]
LIKES = [
    c(M),
    c(M, dtype=np.float32),
    c(M, shape=(2, 5)),
    c(M, order=Refused("F")),
    c(M, subok=Refused(False)),
    c(M, device="cpu"),
    c(M.T, np.int64),
]
JOINS = [
    c([M, M]),
    c((M, 2 * M)),
    c([M, M.astype(np.float32)]),
    c([M, M], dtype=np.float32),
    c([M, M], dtype=np.float64, casting="no"),
    c([M, M], dtype=np.float32, casting="unsafe"),
]
SCAN = [c(M), c(M, axis=1), c(M, 0, out=Out()), c(M, dtype=np.float32), c(M, -1, float)]
PLACE = [c(S), c(S, 1), c(S, axis=0, keepdims=True), c(S, keepdims=True), c(S, axis=1, out=Out())]

CASES = {
    np.sum: reductions(),
    np.prod: reductions(),
    np.mean: reductions(initial=False),
    np.max: reductions(dtype=False, extreme=True),
    np.min: reductions(dtype=False, extreme=True),
    np.amax: reductions(dtype=False, extreme=True),
    np.amin: reductions(dtype=False, extreme=True),
    np.all: reductions(dtype=False, initial=False),
    np.any: reductions(dtype=False, initial=False),
    np.var: SPREADS,
    np.std: SPREADS,
    np.ptp: [c(M), c(M, 1), c(M, axis=0, keepdims=True), c(M, axis=0, out=Out())],
    np.average: [
        c(M),
        c(M, 1),
        c(M, weights=M + 1),
        c(M, axis=1, weights=W),
        c(M, axis=0, weights=[1.0, 2.0, 3.0], keepdims=True),
        c(M, axis=0, weights=V, returned=True),
        c(M, returned=True),
        c(T3, axis=(2, 0), weights=T3[:, 0].T),
    ],
    np.median: [
        c(V),
        c(M),
        c(M, 1),
        c(S, axis=0, keepdims=True),
        c(T3, (0, 2)),
        c(M, out=Out()),
        c(M, overwrite_input=False),
        c(np.array([1.0, np.nan, 2.0])),
        c(M, keepdims=True),
    ],
    np.count_nonzero: [c(np.floor(M)), c(np.floor(M), 1), c(np.floor(M), axis=0, keepdims=True)],
    np.argmax: PLACE,
    np.argmin: PLACE,
    np.cumsum: SCAN,
    np.cumprod: SCAN,
    np.linalg.norm: [
        c(V),
        c(S),
        c(T3),
        c(V, 1),
        c(V, INF),
        c(V, -INF),
        c(V, 3),
        c(V, 2.5),
        c(V, 0),
        c(V, 2),
        c(V, -1),
        *[c(S, ord) for ord in (None, "fro", 1, -1, INF, -INF)],
        c(T3, 1, (0, 2)),
        c(T3, INF, (2, 0)),
        c(T3, -1, axis=(1, 2), keepdims=True),
        c(T3, axis=(0, 1)),
        c(S, axis=1),
        c(S, 1, axis=0, keepdims=True),
        c(T3, keepdims=True),
        c(S, 2),
        c(S, "nuc"),
        c(S, -2),
    ],
    np.concatenate: [*JOINS, c([M, M], 1), c([M, V], axis=None), c([M, M], out=Out()), c([[[1.0, 2.0, 3.0, 0.1]], M])],
    np.stack: [*JOINS, c([M, M], axis=-1), c([V, V], out=Out())],
    np.vstack: [*JOINS, c([V, V]), c([M, W])],
    np.hstack: [*JOINS, c([V, V, 2 * V]), c([V[0], V])],
    np.column_stack: [c([V, V]), c([V, M])],
    np.append: [c(M, V), c(M, M, axis=1), c(V, [0.1, 0.2]), c(M, M, 0)],
    np.atleast_1d: [c(V[0]), c(M), c(V, V[0])],
    np.atleast_2d: [c(V[0]), c(V), c(M, V)],
    np.array_split: [c(W, 3), c(M, [1, 2], axis=1), c(M, 5, 1)],
    np.split: [c(W, 2), c(M, [1, 3], axis=1), c(M, 3), c(W, [3, 1]), c(W, [-1])],
    np.reshape: [
        c(M, (4, 3)),
        c(M, -1),
        c(M, (2, 6), order="F"),
        c(M, shape=(6, 2)),
        c(M, (2, -1), "F"),
        c(M, (4, 3), copy=True),
        c(M, (4, 3), copy=Refused(False)),
        c(M, (4, 3), order=Refused("A")),
    ],
    np.ravel: [c(M), c(M, order="F"), c(M.T, "C"), c(M, order=Refused("K"))],
    np.transpose: [c(T3), c(T3, (1, 0, 2)), c(T3, axes=(2, -2, 0))],
    np.swapaxes: [c(T3, 0, 2), c(T3, axis1=-1, axis2=1)],
    np.moveaxis: [c(T3, 0, -1), c(T3, source=[0, 1], destination=[2, 0])],
    np.squeeze: [c(T3[:1]), c(M[:, :1], axis=1), c(M[:1, :1], (0, 1))],
    np.expand_dims: [c(M, 0), c(M, axis=(0, -1)), c(V, axis=-1)],
    np.broadcast_to: [c(W, (3, 4)), c(V[0], 3), c(W, shape=(2, 4)), c(W, (3, 4), subok=Refused(True))],
    np.tile: [c(V, 2), c(M, reps=(2, 1, 3)), c(A=V, reps=(2,))],
    np.repeat: [c(M, 2), c(M, 3, axis=1), c(M, [1, 0, 2], 0), c(V, repeats=np.array([2, 1, 0]))],
    np.meshgrid: [c(V, W), c(V, W, indexing="ij"), c(V, W, V, sparse=True), c(V, W, copy=False), c(V)],
    np.flip: [c(M), c(M, 0), c(M, axis=(0, 1))],
    np.roll: [c(M, 1), c(M, shift=-2, axis=1), c(M, (1, 2), axis=(0, 1)), c(M, 1, axis=(0, 1)), c(M, (1, 1), axis=0)],
    np.tril: [c(S), c(S, k=1), c(V)],
    np.triu: [c(S), c(S, -1), c(T3, k=1), c(V)],
    np.diag: [c(V), c(S, 1), c(V, k=-1)],
    np.diagonal: [c(S), c(S, offset=1), c(T3, axis1=1, axis2=2), c(T3, -1, 2, 0)],
    np.shape: [c(M)],
    np.ndim: [c(M)],
    np.size: [c(M), c(M, axis=1)],
    np.where: [c(MASK, M, 0.0), c(MASK, 1.0, M), c(MASK, M, [0.1, 0.2, 0.3, 0.4]), c(MASK.astype(float))],
    np.clip: [
        c(S, -1.0, 1.0),
        c(S, a_min=None, a_max=0.5),
        c(S, min=0.1),
        c(S, max=0.5, min=-0.5),
        c(S, -1, V),
        c(S, 0.0, 1.0, out=Out()),
        c(S, [0.1, 0.2, 0.3], None),
        c(S, 0.0, 1.0, dtype=Refused(np.float32)),
        c(S, 0.0, 1.0, where=Refused(True)),
    ],
    np.take_along_axis: [
        c(M, np.argsort(M, 1), 1),
        c(M, np.array([[0], [1], [2]]), axis=-1),
        c(M, np.array([3, 1]), axis=None),
    ],
    np.take: [
        c(M, [0, 5]),
        c(M, np.array([[0, 1], [2, -1]]), axis=1),
        c(M, 1, axis=0),
        c(M, [4, -5], axis=0, mode="wrap"),
        c(M, [7, -5], axis=1, mode="clip"),
        c(M, [0, 1], out=Out()),
        c(M, indices=[1], axis=0),
    ],
    np.sort: [
        c(M),
        c(M, 0),
        c(M, axis=None),
        c(M, kind="stable"),
        c(M, stable=True),
        c(M, descending=True),
        c(M, order=Refused("f")),
    ],
    np.argsort: [
        c(M),
        c(M, 0),
        c(M, axis=None),
        c(M, kind="stable"),
        c(M, stable=True),
        c(M, descending=True),
        c(np.round(M), 0, descending=True, stable=True),
        c(np.array([1.0, np.nan, 2.0]), descending=True),
        c(M, order=Refused("f")),
    ],
    np.nonzero: [c(np.floor(M))],
    np.diff: [
        c(M),
        c(M, 2),
        c(M, n=0),
        c(M, axis=0),
        c(V, prepend=0.1),
        c(M, axis=1, append=M[:, :1]),
        c(V, prepend=V, append=1.0),
    ],
    np.dot: [c(V, S), c(S, S), c(T3, W), c(T3, M.T), c(V, V), c(V, 2.0), c(S, V, out=Out()), c(M[:, :3], T3), c(V, T3)],
    np.inner: [c(V, V), c(M, T3), c(T3, W), c(V, 2.0)],
    np.outer: [c(V, W), c(M, V), c(V, W, out=Out())],
    np.tensordot: [c(T3, M, axes=2), c(T3, T3, axes=([0, 2], [0, 2])), c(V, W, 0), c(M, W, axes=(1, 0)), c(M, W, 1)],
    np.einsum: [
        c("ij,kj->ik", M, M),
        c("ii", S),
        c("ij->", M),
        c(M, [0, 1], W, [1], [0]),
        c("ij,j", M, W, optimize=True),
        c("ij->ji", M, out=Out()),
        c("ij->i", M.astype(np.float32), dtype=np.float64),
        c("ij", M, order=Refused("F")),
        c("ij", M, casting=Refused("no")),
        c("...j->...", T3),
    ],
    np.kron: [c(V, W), c(M, S), c(V, M)],
    np.trace: [c(S), c(S, offset=1), c(T3, axis1=1, axis2=2), c(S, dtype=np.float32), c(T3, 0, 2, 0, out=Out())],
    np.cross: [c(V, V[::-1]), c(S, S.T), c(S, V), c(S, S.T, axis=0), c(S, S.T, axisa=0, axisb=1, axisc=0)],
    np.zeros_like: LIKES,
    np.ones_like: LIKES,
    np.empty_like: LIKES,
    np.full_like: [
        c(M, 2.5),
        c(M, fill_value=V[0], dtype=np.float32),
        c(M, 3, shape=(2,)),
        c(M, 1, order=Refused("F")),
        c(M, 1, subok=Refused(False)),
        c(M, 1, device="cpu"),
    ],
    np.copy: [c(M), c(M, order=Refused("F")), c(M, subok=Refused(True))],
    np.real: [c(M)],
    np.imag: [c(M)],
    np.round: [c(3 * M), c(100 * M, decimals=1), c(100 * M, -1), c(M, out=Out())],
    np.around: [c(3 * M), c(100 * M, decimals=1), c(100 * M, -1), c(M, out=Out())],
    np.isclose: [
        c(M, M + 1e-9),
        c(M, M + 0.1, rtol=0.1),
        c(M, M + 0.1, atol=0.2),
        c(np.array([np.nan]), np.array([np.nan]), equal_nan=True),
    ],
    np.allclose: [
        c(M, M + 1e-9),
        c(M, M + 0.1, rtol=0.1),
        c(M, M + 0.1, atol=0.2),
        c(np.array([np.nan]), np.array([np.nan]), equal_nan=True),
    ],
    np.array_equal: [c(M, M), c(M, M + 1), c(np.array([np.nan]), np.array([np.nan]), equal_nan=True)],
    np.nan_to_num: [
        c(np.array([1.0, np.nan, INF, -INF])),
        c(np.array([np.nan, INF, -INF]), nan=2.0, posinf=3.0, neginf=-3.0),
        c(M, copy=Refused(False)),
    ],
}
CASES |= FFT | LINALG | ROUTINES
ROWS = [(f, args, kwargs) for f, cases in CASES.items() for args, kwargs in cases]


def is_float(value):
    return isinstance(value, np.ndarray | np.float64) and np.asarray(value).dtype == np.float64


def as_tensors(value, made, tracked):
    """The case's float64 arrays (also in lists) as tensors, listed in made."""
    if isinstance(value, list | tuple):
        return type(value)([as_tensors(v, made, tracked) for v in value])
    if is_float(value) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        t = tg.tensor(value, requires_grad=tracked)
        made.append(t)
        return t
    return value


def flat_results(value):
    if isinstance(value, list | tuple):
        return [r for v in value for r in flat_results(v)]
    return [value]


def compare(got, want, text):
    got, want = flat_results(got), flat_results(want)
    assert len(got) == len(want), text
    for g, w in zip(got, want, strict=True):
        g = g.detach().numpy() if isinstance(g, tg.Tensor) else np.asarray(g)
        assert g.shape == np.shape(w), f"{text}: {g.shape} for {np.shape(w)}"
        assert g.dtype == np.asarray(w).dtype or g.dtype.kind in "iu", f"{text}: {g.dtype} for {np.asarray(w).dtype}"
        tolerance = 2e-6 if g.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=text)


def scalar(results):
    """A number that depends on every float element of the results."""
    total = 0.0
    for k, r in enumerate(flat_results(results)):
        untracked = isinstance(r, tg.Tensor) and not r.requires_grad
        kind = "" if untracked else str(r.dtype).removeprefix("torch.") if hasattr(r, "dtype") else ""
        if kind not in ("float64", "complex128"):
            continue
        weights = np.arange(math.prod(r.shape)).reshape(tuple(r.shape)) + 1.0 + k
        for part in (r.real, 2.0 * r.imag) if kind == "complex128" else (r,):
            total = total + (part * weights).sum()
    return total


def shifted(value, place, step, count):
    """The case with element `place` of its float64 arrays (in order) moved by step."""
    if isinstance(value, list | tuple):
        return type(value)([shifted(v, place, step, count) for v in value])
    if is_float(value):
        a = np.array(value, order="C")
        first, count[0] = count[0], count[0] + a.size
        if first <= place < count[0]:
            a.reshape(-1)[place - first] += step
        return a
    return value


def check_gradient(call, args, kwargs, text):
    made = []
    results = call(*as_tensors(args, made, True), **{k: as_tensors([v], made, True)[0] for k, v in kwargs.items()})
    if not all(np.isfinite(t.detach().numpy()).all() for t in made):
        return
    total = scalar(results)
    if not isinstance(total, tg.Tensor):
        return
    total.backward()
    got = np.concatenate([np.zeros(t.numel()) if t.grad is None else t.grad.numpy().reshape(-1) for t in made])
    for place in range(0, got.size, max(got.size // 5, 1)):
        sides = []
        for step in (1e-6, -1e-6):
            count = [0]
            moved = shifted(args, place, step, count)
            sides.append(scalar(call(*moved, **{k: shifted([v], place, step, count)[0] for k, v in kwargs.items()})))
        slope = (sides[0] - sides[1]) / 2e-6
        assert abs(slope - got[place]) < 1e-5 * max(1, abs(slope)), f"{text}: element {place} has {got[place]} for {slope}"


def label(value):
    return name_of(value) if callable(value) else None


OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.1.0"
NEWER = {np.reshape: {"shape", "copy"}, np.clip: {"min", "max"}}  # keywords of NumPy 2.1


def lacking(function, kwargs):
    """Keywords that this NumPy's function does not have yet."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return set()
    return set() if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) else kwargs.keys() - parameters.keys()


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # NumPy 2.5
@pytest.mark.parametrize(("function", "args", "kwargs"), ROWS, ids=label)
def test_function(function, args, kwargs):
    text = f"{name_of(function)}{kwargs}"
    refused = [v for v in [*args, *kwargs.values()] if isinstance(v, Refused)]
    kwargs = {k: v.value if isinstance(v, Refused) else v for k, v in kwargs.items()}
    args = tuple([v.value if isinstance(v, Refused) else v for v in args])
    plain = {k: v for k, v in kwargs.items() if not isinstance(v, Out)}
    newer = NEWER.get(function, set()) & kwargs.keys() if OLD_NUMPY and function in NEWER else lacking(function, kwargs)
    if newer:
        with pytest.raises(TypeError):
            function(*args, **plain)
        pytest.skip(f"NumPy {np.__version__} has no {newer}")
    if refused:
        made = []
        keyword = next((k for k, v in kwargs.items() if v is refused[0].value), "ord")
        with pytest.raises(TypeError, match=f"numpy.{function.__name__.replace('.', '.')}|{name_of(function)}") as caught:
            function(*as_tensors(args, made, True), **kwargs)
        assert keyword in str(caught.value)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = function(*args, **plain)
        made = []
        tensors = as_tensors(args, made, True)
        given = {k: as_tensors([v], made, True)[0] for k, v in plain.items()}
        got = function(*tensors, **given)
    if function is np.empty_like:
        assert got.shape == want.shape and got.numpy().dtype == want.dtype
        return
    if function in SIGNED:
        got, want = ([abs(r) for r in flat_results(v)] for v in (got, want))
    compare(got, want, text)
    if "out" in kwargs:
        target = tg.zeros(np.shape(want), dtype=tg.tensor(np.asarray(want)).dtype)
        assert function(*tensors, **given, out=target) is target
        compare(target, want, text)
        made = []
        array = np.zeros(np.shape(want), np.asarray(want).dtype)
        assert function(*as_tensors(args, made, False), **plain, out=array) is array
        compare(array, want, text)
        if target.requires_grad:
            with pytest.raises(RuntimeError, match="cannot carry the result's gradient"):
                function(*tensors, **given, out=array)
        with pytest.raises((ValueError, TypeError)):
            function(*tensors, **given, out=tg.zeros((*np.shape(want), 7), dtype=tg.float64))
        return
    if function in STEPS or kwargs.get("hermitian"):
        return
    call = behind_symmetry(function) if function in HERMITIAN else function
    if function in SIGNED:
        call = up_to_sign(call)
    if all(np.asarray(w).dtype != np.float32 for w in flat_results(want)) and "float32" not in str([t.dtype for t in made]):
        check_gradient(call, args, plain, text)


def behind_symmetry(function):
    return lambda a, *args, **kwargs: function((a + a.swapaxes(-1, -2)) * 0.5, *args, **kwargs)


def up_to_sign(function):
    return lambda *args, **kwargs: [abs(r) for r in flat_results(function(*args, **kwargs))]


@pytest.mark.parametrize(("function", "target", "args", "kwargs"), IN_PLACE, ids=label)
def test_in_place(function, target, args, kwargs):
    def call(target, *args, **kwargs):
        target = target * 1.0
        function(target, *args, **kwargs)
        return target

    text = name_of(function)
    made = []
    want = call(target, *args, **kwargs)
    tensors = as_tensors((target, *args), made, True)
    got = call(*tensors, **kwargs)
    compare(got, want, text)
    check_gradient(call, (target, *args), kwargs, text)


VARIADIC = {
    np.where: set(), np.atleast_1d: set(), np.atleast_2d: set(), np.atleast_3d: set(), np.broadcast_arrays: set(),
    np.einsum: {"dtype", "order", "casting"}, np.copyto: {"casting", "where"},
}  # fmt: skip


@pytest.mark.parametrize("function", list(FUNCTIONS), ids=name_of)
def test_every_row_and_keyword_has_a_case(function):
    """Each of NumPy's parameters is given in a case, by name or by place."""
    cases = CASES.get(function) or [((t, *args), kwargs) for f, t, args, kwargs in IN_PLACE if f is function]
    given = set()
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for args, kwargs in cases:
        given |= set(names[: len(args)]) | set(kwargs)
    wanted = {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)} | VARIADIC.get(function, set())
    wanted -= {"interpolation"} | ({"bias", "ddof"} if function is np.corrcoef else set())  # gone from later versions
    assert wanted <= given, f"no case gives {sorted(wanted - given)}"


# ------------------------------------------------------------------------------------------------------------- ufuncs

BITS = {
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.gcd, np.lcm, np.left_shift, np.right_shift,
}  # fmt: skip
SEVERAL = (np.divmod, np.modf, np.frexp)  # results
ROWS_OF = {np.matmul, np.vecdot, *[getattr(np, name) for name in ("matvec", "vecmat") if hasattr(np, name)]}  # signatures
SMALL = {np.arcsin, np.arccos, np.arctanh}


def ufunc_inputs(ufunc):
    if ufunc in BITS:
        values = [np.array([[1, 6, 3], [12, 5, 9]]), np.array([3, 5, 9])]
    elif ufunc in SMALL:
        values = [np.array([[0.1, -0.5, 0.3], [0.7, 0.2, -0.8]])]
    elif ufunc in ROWS_OF:
        return [S, S.T.copy()]
    elif ufunc is np.ldexp:
        return [np.array([[1.3, 2.7, 1.6], [3.2, 1.1, 2.2]]), np.array([1, -2, 3])]
    else:
        values = [np.array([[1.3, 2.7, 1.6], [3.2, 1.1, 2.2]]), np.array([1.5, 0.7, 1.2])]
    return values[: ufunc.nin]


def tensors_of(values, tracked=True):
    return [tg.tensor(v, requires_grad=tracked and v.dtype.kind == "f") for v in values]


@pytest.mark.parametrize("ufunc", SEVERAL, ids=name_of)
def test_ufunc_of_several_results(ufunc):
    values, text = ufunc_inputs(ufunc), name_of(ufunc)
    compare(ufunc(*tensors_of(values)), ufunc(*values), text)
    check_gradient(ufunc, tuple(values), {}, text)
    with pytest.raises(TypeError, match=f"{text} does not support out="):
        ufunc(*tensors_of(values), out=(tg.zeros(2, 3), tg.zeros(2, 3)))


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS if u not in SEVERAL], ids=name_of)
def test_ufunc(ufunc):
    values, text = ufunc_inputs(ufunc), name_of(ufunc)
    xs, want = tensors_of(values), ufunc(*values)
    compare(ufunc(*xs), want, text)
    check_gradient(ufunc, tuple(values), {}, text)
    for target in (tg.zeros(want.shape, dtype=tg.tensor(want).dtype), (tg.zeros(want.shape, dtype=tg.tensor(want).dtype),)):
        result = ufunc(*xs, out=target)
        assert result is (target[0] if isinstance(target, tuple) else target)
        compare(result, want, text)
    if ufunc.nin == 2:
        compare(ufunc(values[0], xs[1]), want, text)
        compare(ufunc(xs[0], values[1].tolist()), want, text)
    array = np.zeros(want.shape, want.dtype)
    ufunc(*tensors_of(values, tracked=False), out=array)
    compare(array, want, text)
    with pytest.raises(ValueError, match="out= has shape"):
        ufunc(*xs, out=tg.zeros((7, 7), dtype=tg.tensor(want).dtype))
    if want.dtype == np.float64:
        with pytest.raises(TypeError, match=f"{text}: cannot cast"):
            ufunc(*xs, out=tg.zeros(want.shape, dtype=tg.int64))
    # keywords
    assert ufunc(*xs, casting="same_kind", order="K", subok=True).shape == want.shape
    for keyword, value in (("casting", "no"), ("order", "F"), ("subok", False), ("signature", "d->d")):
        with pytest.raises(TypeError, match=f"{text} does not support {keyword}="):
            ufunc(*xs, **{keyword: value})
    if ufunc in ROWS_OF:
        for keyword, value in (("axes", [(0, 1), (0, 1), (0, 1)]), ("keepdims", True), ("axis", 0)):
            with pytest.raises(TypeError):
                ufunc(*xs, **{keyword: value})
        return
    compare(ufunc(*xs, where=True), want, text)
    mask = np.array([[True, False, True], [False, True, True]])
    start = np.ones(want.shape, want.dtype)
    expected = ufunc(*values, where=mask, out=start.copy())
    compare(ufunc(*xs, where=mask, out=tg.tensor(start)), expected, text)
    with pytest.raises(TypeError, match=f"{text} does not support where= without out="):
        ufunc(*xs, where=mask)
    if ufunc is np.ldexp:  # its loops have two dtypes
        return
    for dtype in (np.float32, float, bool, np.int64):
        try:
            expected = ufunc(*values, dtype=dtype)
        except TypeError:
            with pytest.raises(TypeError):
                ufunc(*xs, dtype=dtype)
            continue
        compare(ufunc(*xs, dtype=dtype), expected, text)


@pytest.mark.parametrize("ufunc", list(REDUCTIONS), ids=name_of)
def test_reduce(ufunc):
    cases = [c(M), c(M, axis=None), c(M, axis=1), c(T3, axis=(0, 2)), c(M, keepdims=True), c(M, 1, np.float64), c(V)]
    if ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        cases += [c(M, dtype=np.float32), c(M, initial=1.5), c(M, where=MASK, initial=0.75)]
    for args, kwargs in cases:
        if ufunc in (np.logical_and, np.logical_or) and len(args) > 1:
            continue
        want, text = ufunc.reduce(*args, **kwargs), f"{name_of(ufunc)}.reduce{kwargs}"
        compare(ufunc.reduce(tg.tensor(args[0]), *args[1:], **kwargs), want, text)
        if want.dtype == np.float64:
            check_gradient(ufunc.reduce, args, kwargs, text)
        target = tg.zeros(want.shape, dtype=tg.tensor(np.asarray(want)).dtype)
        assert ufunc.reduce(tg.tensor(args[0]), *args[1:], **kwargs, out=target) is target
        compare(target, want, text)


@pytest.mark.parametrize("ufunc", list(SCANS), ids=name_of)
def test_accumulate(ufunc):
    for args, kwargs in (c(M), c(M, axis=1), c(M, dtype=np.float32), c(V)):
        want, text = ufunc.accumulate(*args, **kwargs), f"{name_of(ufunc)}.accumulate{kwargs}"
        compare(ufunc.accumulate(tg.tensor(args[0]), **kwargs), want, text)
        if want.dtype == np.float64:
            check_gradient(ufunc.accumulate, args, kwargs, text)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum], ids=name_of)
def test_reduceat(ufunc):
    for args, kwargs in (c(M, [0, 2]), c(M, [1, 0, 2], 1), c(W, [0, 2, 1, 3]), c(M, [0], axis=1)):
        want, text = ufunc.reduceat(*args, **kwargs), f"{name_of(ufunc)}.reduceat{kwargs}"
        compare(ufunc.reduceat(tg.tensor(args[0]), *args[1:], **kwargs), want, text)
        check_gradient(ufunc.reduceat, args, kwargs, text)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.maximum, np.minimum], ids=name_of)
def test_at(ufunc):
    def call(x, indices, values):
        x = x * 1.0
        ufunc.at(x, indices, values)
        return x

    for indices, values in (([0, 2, 0], M), (([0, 1, 0], [3, 1, 3]), V), (slice(0, 2), W), (1, W)):
        values = values[:, None] * np.ones(4) if values is V and isinstance(indices, list) else values
        want, text = call(M, indices, values), f"{name_of(ufunc)}.at"
        compare(call(tg.tensor(M), indices, tg.tensor(values)), want, text)
        check_gradient(call, (M, indices, values), {}, text)


def test_outer():
    for ufunc in (np.add, np.multiply, np.maximum, np.less):
        compare(ufunc.outer(tg.tensor(M), tg.tensor(V)), ufunc.outer(M, V), name_of(ufunc))
    check_gradient(np.multiply.outer, (M, V), {}, "outer")


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: np.spacing(x), r"numpy\.spacing is not recorded for tensors: its gradient would be lost\."),
        (lambda x: np.power.at(x, 0, 1.0), r"numpy\.power\.at is not recorded .*Use x\[indices\] = values"),
        (lambda x: np.arctan2.reduceat(x, [0, 1]), r"numpy\.arctan2\.reduceat is not recorded"),
        (lambda x: np.subtract.reduce(x), r"numpy\.subtract\.reduce is not recorded"),
        (lambda x: np.histogram(x), r"numpy\.histogram is not recorded for tensors: its gradient would be lost"),
        (lambda x: np.apply_along_axis(np.sum, 0, x), r"numpy\.apply_along_axis is not recorded"),
        (lambda x: np.pad(x, 1, mode="mean"), r"numpy\.pad does not support mode='mean'"),
        (lambda x: np.roots(x[0]), r"numpy\.roots is not recorded .*docs/numpy\.md"),
        (lambda x: np.array([x[0], x[1]]), "Can't call numpy"),
    ],
)
def test_refused(call, text):
    with pytest.raises(RuntimeError if "Can't" in text else TypeError, match=text):
        call(tg.tensor(S, requires_grad=True))


def test_untracked_tensors_run_on_arrays():
    np.testing.assert_allclose(np.histogram(tg.tensor(S))[0], np.histogram(S)[0])
    np.testing.assert_allclose(np.roots(tg.tensor(V)), np.roots(V))
    np.testing.assert_allclose(np.pad(tg.tensor(V), 1, mode="mean"), np.pad(V, 1, mode="mean"))


def test_errors_of_numpy_stay():
    t = tg.tensor(M)
    for call in (
        lambda x: np.max(x, where=MASK),
        lambda x: np.squeeze(x, 0),
        lambda x: np.split(x, 2),
        lambda x: np.var(x, ddof=1, correction=1),
        lambda x: np.linalg.norm(x, 5),
        lambda x: np.tensordot(x, x, 1),
        lambda x: np.broadcast_to(x, (-1, 4)),
    ):
        with pytest.raises(ValueError):
            call(t)


def test_copies_do_not_share_memory():
    x = tg.tensor(M)
    for f in (np.copy, np.positive, np.conjugate, np.array):
        y = f(x)
        y[...] = 0
        assert (x.numpy() == M).all()


def test_arrays_and_lists_among_operands_keep_the_gradient():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    np.stack([x[0] * 2, x[1], 1.0]).sum().backward()
    assert x.grad.tolist() == [2.0, 1.0]
    y = tg.tensor([1.0, 2.0], dtype=tg.float64, requires_grad=True)
    z = np.concatenate([[y[0], y[1]], [0.1], np.ones(1), y])
    assert z.tolist() == [1.0, 2.0, 0.1, 1.0, 1.0, 2.0]
    z.sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


def test_integers():
    i = tg.tensor([[1, 2], [3, 6]])
    assert np.mean(i).item() == 3.0 and np.var(i).item() == 3.5 and np.median(i).item() == 2.5
    assert np.sum(i, dtype=float).dtype == tg.float64 and np.cumsum(i).tolist() == [1, 3, 6, 12]


# -------------------------------------------------------------------------------------------------------------- the page


def test_page_is_complete():
    page = (pathlib.Path(__file__).parent.parent / "docs" / "numpy.md").read_text()
    for heading, table in (("Functions", FUNCTIONS), ("Ufuncs", UFUNCS)):
        section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.S | re.M).group(1)
        listed = next(p for p in section.split("\n\n") if p.strip().startswith("`"))
        later = {*LATER} if table is FUNCTIONS else {"matvec", "vecmat"}  # of NumPy 2.1 and 2.2
        names = {name_of(f).removeprefix("numpy.") for f in table}
        assert re.findall(r"`([\w.]+)`", listed) == sorted(names | later)

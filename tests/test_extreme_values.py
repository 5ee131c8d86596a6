"""The cost of a call follows from sizes, not from values; see `extreme_values`. Caches are bounded."""

import ast
import importlib
import pathlib
import re
import sys

import extreme_values
import numpy as np
import pytest

import tapegrad as tg

posix = pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX's")
PACKAGE = pathlib.Path(tg.__file__).parent


def faults(group, every):
    """Calls with no end, or that fail; not those that are slow, which the machine's load decides."""
    return [o for o in extreme_values.outcomes(group, every=every) if o.text and not o.text.startswith("takes")]


@posix
def test_calls_that_once_had_no_end():
    pytest.importorskip("ml_dtypes")
    assert not faults("quick", 211)


@posix
@pytest.mark.exhaustive
@pytest.mark.parametrize(("group", "every"), [("orders", 7), ("draws", 3), ("solvers", 7), ("sizes", 1),
                                              ("functions", 97), ("distributions", 29)])  # fmt: skip
def test_extreme_values(group, every):
    pytest.importorskip("scipy")
    pytest.importorskip("ml_dtypes")
    assert not faults(group, every)


@posix
def test_faults_are_found():
    case = extreme_values.Case("spoilt", lambda n: {}[n] if n else None, ((0, 1),))
    lines = []
    extreme_values.run_case(case, 1, 0, lines.append)
    assert [line.split("\t")[-1] for line in lines if line.startswith("done")] == ["", "KeyError: 1"]


def test_every_special_function_and_distribution_is_a_case():
    pytest.importorskip("scipy")
    names = {case.name for group in extreme_values.GROUPS.values() for case in group()}
    apart = {"multigammaln", "softmax", "log_softmax", "logsumexp"}  # of whole rows; another name of mvlgamma
    assert set(tg.special.__all__) - names == apart & set(tg.special.__all__)
    kinds = {n for n in tg.distributions.__all__ if isinstance(getattr(tg.distributions, n), type)
             and issubclass(getattr(tg.distributions, n), tg.distributions.Distribution)}  # fmt: skip
    assert kinds - set(extreme_values.KINDS) == extreme_values.FAMILIES


# ------------------------------------------------------------------------------------------------------------ the values


@pytest.mark.parametrize(
    ("order", "q", "value"),
    [
        (1000, -3.5, 2.1430172143725346e301),  # 2 * 2**1000 but for the parts of other poles
        (2, -3.5, (np.pi**2 / 2) + 4 + 4 / 9 + 4 / 25 + 4 / 49),
        (3, -0.5, 0.4143983221171600),
        (31, -3.5, 5.640003384520928e-21),
        (1001, -0.5, 1.5**-1001),
        (1e300, 2.0, 0.0),
        (1e30, 1.0, 1.0),
    ],
)
def test_zeta(order, q, value):
    found = tg.special.zeta(tg.tensor(float(order), dtype=tg.float64), tg.tensor(q, dtype=tg.float64)).item()
    np.testing.assert_allclose(found, value, rtol=4e-13)


def test_chebyshev_polynomials_of_any_degree():
    x = tg.tensor([0.5, 1.0, -1.0, 2.0, -2.0, np.inf], dtype=tg.float64)
    n = 10**18  # 4 more than a multiple of 6
    assert tg.special.chebyshev_polynomial_t(x, n).tolist() == pytest.approx([-0.5, 1, 1, np.inf, np.inf, np.inf])
    degrees = tg.tensor([0, 1, 5, -3, n])
    found = tg.special.chebyshev_polynomial_t(tg.full((5,), 0.5, dtype=tg.float64), degrees)
    assert found.tolist() == pytest.approx([1, 0.5, 0.5, 0, -0.5])
    u = tg.special.chebyshev_polynomial_u(tg.tensor([0.3], dtype=tg.float64), 200).item()
    assert u == pytest.approx(np.sin(201 * np.arccos(0.3)) / np.sin(np.arccos(0.3)), rel=1e-11)
    for function, degree in ((tg.special.chebyshev_polynomial_t, np.inf), (tg.special.legendre_polynomial_p, 10**6)):
        with pytest.raises(ValueError, match="expects degrees up to"):
            function(x, degree)


def test_von_mises_of_large_concentrations():
    for k in (1e4, 1e18, 1e100):
        tg.manual_seed(0)
        angles = tg.distributions.VonMises(tg.zeros(2000, dtype=tg.float64), tg.full((2000,), k, dtype=tg.float64)).sample()
        if k < 1e30:  # beyond, the angles round to those of 0
            assert angles.std().item() == pytest.approx(k**-0.5, rel=0.06, abs=5e-16)


@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_truncated_normal_numbers_far_out():
    for a, b, mean in ((50.0, 1e18, 50.02), (-1e18, -50.0, -50.02), (1e5, np.inf, 1e5 + 1e-5)):
        x = tg.nn.init.trunc_normal_(tg.empty(4000, dtype=tg.float64), 0.0, 1.0, a, b)
        assert a <= x.min() and x.max() <= b
        assert (x.mean() - (a if a > 0 else b)).item() == pytest.approx(mean - (a if a > 0 else b), rel=0.07)
    with pytest.raises(ValueError, match="0 < std"):
        tg.nn.init.trunc_normal_(tg.empty(2), 0.0, -1.0)


def test_singular_values_of_an_infinite_matrix_end():
    m = tg.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [np.inf, 0.0, 0.0]])
    with pytest.raises(tg.linalg.LinAlgError, match="non-finite"):
        tg.linalg.svd(m)
    assert tg.linalg.svdvals(m).isnan().all()


# ---------------------------------------------------------------------------------------------------------------- caches

# Caches without a bound, and why their keys are finitely many.
WITHOUT_BOUND = {
    "kernels/accumulate.py _csc_array": "no arguments",
    "kernels/devices.py library": "texts of messages in the source",
    "kernels/devices.py devices": "kinds of devices",
    "kernels/devices.py device_of": "devices",
    "kernels/fft.py _library": "no arguments",
    "kernels/gaussian.py _erf_table": "two dtypes",
    "kernels/gaussian.py _erfc_table": "two dtypes",
    "kernels/gaussian.py _ndtr_table": "two dtypes",
    "kernels/gaussian.py _erfinv_table": "no arguments",
    "kernels/memory.py keep_freed_memory": "no arguments",
    "kernels/random.py largest_integer": "dtypes",
    "kernels/random.py _bounds": "dtypes",
    "kernels/random.py renew_locks_in_children": "no arguments",
    "kernels/random.py functools.cache(trials.bound)": "lives for one call, at most as many as it draws",
    "kernels/lapack.py scipy_lapack": "no arguments",
    "dtypes.py _promote": "dtypes and ranks 0 to 2",
    "later.py above": "names in a table of the source",
    "tensor/methods.py _in_place": "functions of the package",
    "functions/names.py lines_of": "forms in a table of the source",
    "functions/grad_fn_names.py renamed_op": "records, their nodes' names and up to MOST_HIDDEN_SLOTS",
    "io/writer.py functools.cache(Name)": "globals that the pickle of tensors may name",
    "table/control.py _variant": "records of control flow, and outputs that a body has",
    "table/linalg.py _matmul_by_rules": "no arguments",
    "table/linalg.py _linear_by_rules": "no arguments",
}
# Dicts and sets of modules that begin empty: what bounds them.
FILLED = {
    "KEPT": "MOST_KEPT",
    "CHECKED": "REMEMBERED",
    "PROGRAMS": "MOST",
    "_ONE": "dtypes",
    "FUNCTIONS": "source",
    "LATER": "source",
    "METHODS": "source",
    "HALF": "dtypes",
    "NONE": "constant",
    "NOTHING": "constant",
    "NO_PORTS": "constant",
    "OPEN": "contexts that are open",
    "MODES": "source",
    "_KL_REGISTRY": "register_kl",
    "_KL_MEMOIZE": "pairs of classes",
    "_replaced": "drop-ins",
    "_undo": "drop-ins",
    "_first": "drop-ins",
    "_claimed": "drop-ins",
    "_assigned": "drop-ins",
    "PENDING_CLASSES": "pending_class_of",
    "_KEYS": "definitions",
    "_COUNTS": "definitions",
    "LAWS": "source",
    "REGISTERED": "registrations",
    "FOUND": "records",
    "TYPES": "source",
    "DIRECT": "source",
    "PUBLIC": "source",
    "SAFE": "add_safe_globals",
    "device_array_types": "JAX's class",
    "EMPTIED": "records",
    "WATCHED_LEAVES": "living leaves",
    "LEAVES": "living leaves",
    "DEVICE_ARRAYS": "living tensors",
    "RUNNING": "running functions",
    "CALLS": "records",
    "BACKWARD": "records",
    "_global_optimizer_pre_hooks": "registered hooks",
    "_global_optimizer_post_hooks": "registered hooks",
}


EMPTY = r"\{\}|(set|dict|OrderedDict)\(\)"


def trees(pattern):
    """Files in which a line has the pattern, parsed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_dropins" in path.parts:  # of an installed package
            continue
        text = path.read_text()
        if re.search(pattern, text, re.MULTILINE):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(text)


def caches():
    """(file and name, bound) of every functools.cache and lru_cache."""
    for file, tree in trees(r"\b(functools\.cache|lru_cache)\b"):
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if name not in ("cache", "lru_cache") or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                continue
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) != "functools":
                continue
            if name == "cache" and isinstance(node, ast.Name):
                continue  # a variable: the package imports lru_cache by name, but never cache
            call = parents[node]
            bound = None
            if isinstance(call, ast.Call) and call.func is node and name == "lru_cache":
                arguments = [*call.args, *[k.value for k in call.keywords if k.arg == "maxsize"]]
                bound = ast.unparse(arguments[0]) if arguments else "128"
                bound = "128" if bound == "len" else bound  # jit/guards.py wants the type of a cache
            owner = next((p for p in (call, parents.get(call)) if isinstance(p, ast.FunctionDef)), None)
            yield f"{file} {owner.name if owner else ast.unparse(call)}", None if bound == "None" else bound


def test_caches_have_a_bound_or_finitely_many_keys():
    found = dict(caches())
    assert len(found) > 40
    assert {name for name, bound in found.items() if bound is None} == set(WITHOUT_BOUND)


def test_containers_of_modules_are_known():
    """Dicts and sets that a module begins empty: each is bounded by something that does not grow with calls."""
    names = set()
    for _, tree in trees(rf"^\w.*= ({EMPTY})"):
        for node in tree.body:
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and value and re.fullmatch(EMPTY, ast.unparse(value)):
                names.add(ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target))
    assert names == set(FILLED)


def test_bounded_dicts_stay_small():
    reduce = importlib.import_module("tapegrad.kernels.reduce")
    x = tg.ones(2, 3)
    for n in range(1, 200):
        tg.ones(3, n).argmax(0)
        tg.ones(n, 3).sort(0)
    assert len(reduce.KEPT) <= reduce.MOST_KEPT and x.shape == (2, 3)
    special = importlib.import_module("tapegrad.kernels.special")
    for order in range(90):
        special._erfcx_table(order)
    assert special._erfcx_table.cache_info().currsize <= 64

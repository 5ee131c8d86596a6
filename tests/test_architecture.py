"""The house rules: imports point downwards, stubs are current, the public page is complete."""

import ast
import pathlib
import subprocess
import sys

import pytest

import tapegrad
from tapegrad import _stubs

ROOT = pathlib.Path(tapegrad.__file__).parent
# A module imports only from lines above its own (DESIGN section 4).
LAYERS = [
    {"dialect"},
    {"errors"},
    {"dtypes"},
    {"core"},
    {"levels"},
    {"programs"},
    {"kernels"},
    {"table"},
    {"functions"},
    {"tensor"},
    {"special", "linalg", "fft", "masked", "sparse", "cuda", "random", "amp", "comparison"},
    {"numpy"},
    {"func"},
    {"autograd"},
    {"nn"},
    {"optim"},
    {"distributions"},
    {"jit"},
    {"utils"},
    {"serialization"},
    {"testing"},
    {"custom"},
    {"_places"},
    {"compat", "moved"},
    {"__main__"},
]
EVERYWHERE = {"__init__", "_stubs", "_methods"}


def layer_of(name):
    return next((i for i, names in enumerate(LAYERS) if name in names), None)


def imports_of(path):
    """Top-level names within the package that a file imports."""
    depth = len(path.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level == depth:
                names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
                yield from names
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tapegrad."):
            yield node.module.split(".")[1]


FILES = [p for p in ROOT.rglob("*.py") if "_dropins" not in p.parts]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in EVERYWHERE:
        return
    assert layer_of(own) is not None, f"{own} has no place in the layers"
    for name in set(imports_of(path)) - EVERYWHERE:
        assert layer_of(name) is not None and layer_of(name) <= layer_of(own), (
            f"{path.name} imports {name}, which is above it"
        )


def names_of_instructions(tree):
    """What a file imports, reads or calls that decodes instructions or makes functions of code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            yield from names & {"dis", "opcode"}
        elif isinstance(node, ast.Attribute) and node.attr in ("co_code", "_co_code_adaptive"):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("CodeType", "FunctionType"):
            yield node.func.attr


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_instruction_is_decoded_and_no_code_copied(path):
    """`compat` alone reads instructions: nothing else tells it whether an import wants a name."""
    found = set(names_of_instructions(ast.parse(path.read_text())))
    assert found == ({"opcode", "co_code"} if path.name == "compat.py" else set())


@pytest.mark.parametrize("name", sorted(_stubs.pages()))
def test_stub_is_current(name):
    assert (ROOT / name).read_text() == _stubs.pages()[name], "run: python -m tapegrad._stubs"


def test_public_functions_have_docstrings():
    missing = [n for n, v in vars(tapegrad).items() if not n.startswith("_") and callable(v) and not v.__doc__]
    assert not missing


def test_importing_needs_numpy_alone():
    code = (
        "import sys; import tapegrad; "
        "bad = {m.split('.')[0] for m in sys.modules} & {'jax', 'torch', 'scipy', 'ml_dtypes', 'pytest', 'hypothesis'}; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_function_of_the_table_shadows_a_builtin_inside_its_module():
    """`max(n, 1)` in a module that defines its own `max` would run the tensor op: such modules say builtins.max."""
    shadowed = {"sum", "max", "min", "all", "any", "abs", "round", "pow"}
    for path in [*(ROOT / "table").glob("*.py"), *(ROOT / "functions").glob("*.py")]:
        tree = ast.parse(path.read_text())
        own = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        own |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own & shadowed:
                caller = next(
                    n.name
                    for n in tree.body
                    if isinstance(n, ast.FunctionDef | ast.Assign | ast.Expr)
                    and n.lineno <= node.lineno <= n.end_lineno
                    and isinstance(n, ast.FunctionDef)
                )
                assert caller == node.func.id, (
                    f"{path.name}:{node.lineno} calls its own {node.func.id} instead of the builtin"
                )

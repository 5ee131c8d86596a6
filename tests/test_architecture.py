"""Rules of the structure: imports point downwards, stubs are current, public functions have docstrings."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

import tapegrad
from tapegrad.core.op import TABLE
from tapegrad.functions import names
from tapegrad.table.define import define

try:
    from tapegrad import _stubs
except ImportError:  # an installed package has the stubs, but not what writes them
    PAGES = {}
else:
    PAGES = _stubs.pages()

ROOT = pathlib.Path(tapegrad.__file__).parent
# A module imports only from lines above its own (DESIGN section 4).
LAYERS = [
    {"dialect"},
    {"errors"},
    {"dtypes"},
    {"core"},
    {"floats"},
    {"levels"},
    {"programs"},
    {"kernels"},
    {"table"},
    {"functions"},
    {"tensor"},
    {"special", "linalg", "fft", "masked", "sparse", "cuda", "random", "amp"},
    {"numpy"},
    {"func"},
    {"autograd"},
    {"nn"},
    {"optim"},
    {"distributions"},
    {"jit"},
    {"utils"},
    {"io"},
    {"serialization"},
    {"testing"},
    {"custom"},
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
    """The drop-ins' finder alone reads instructions: nothing else tells it whether an import wants a name."""
    found = set(names_of_instructions(ast.parse(path.read_text())))
    assert found == ({"opcode", "co_code"} if path == ROOT / "compat" / "finder.py" else set())


def test_the_drawing_shows_every_room():
    drawing = (pathlib.Path(__file__).parent.parent / "docs" / "rooms.svg").read_text()
    names = set(re.findall(r"\w+", " ".join(re.findall(r'<text class="name"[^>]*>([^<]*)<', drawing))))
    assert {p.parent.name for p in ROOT.glob("*/__init__.py") if not p.parent.name.startswith("_")} <= names


@pytest.mark.parametrize("name", sorted(PAGES))
def test_stub_is_current(name):
    assert (ROOT / name).read_text() == PAGES[name], "run: python -m tapegrad._stubs"


def test_public_functions_have_docstrings():
    missing = [n for n, v in vars(tapegrad).items() if not n.startswith("_") and callable(v) and not v.__doc__]
    assert not missing


SPACES = {
    "tg": tapegrad, "linalg": tapegrad.linalg, "special": tapegrad.special, "fft": tapegrad.fft,
    "functional": tapegrad.nn.functional,
}  # fmt: skip


@pytest.mark.parametrize("line", names.LINES, ids=lambda line: f"{line.family}.{line.name}")
def test_a_public_name_is_where_its_line_says(line):
    for place in line.places:
        if place in SPACES:
            assert getattr(SPACES[place], line.name) is line.resolve()
        elif place == "Tensor":
            assert getattr(tapegrad.Tensor, line.name) is line.resolve()
        elif place == "tg_":
            assert getattr(tapegrad, line.name + "_") is getattr(tapegrad.Tensor, line.name + "_")
        elif place in names.OPERATORS:
            assert getattr(tapegrad.Tensor, names.OPERATORS[place]) is line.resolve()
        elif place in names.IN_PLACE_OPERATORS:
            method = getattr(tapegrad.Tensor, names.IN_PLACE_OPERATORS[place])
            assert method is getattr(tapegrad.Tensor, line.name + "_")
        else:
            assert getattr(tapegrad.Tensor, line.name + "_").__doc__


def test_no_name_stands_twice_in_a_place():
    for place in [*SPACES, "Tensor", *names.OPERATORS]:
        shown = [line.name if place not in names.OPERATORS else place for line in names.at(place)]
        assert len(set(shown)) == len(shown), place


def test_every_function_of_functions_that_is_public_has_a_line():
    for place, module in SPACES.items():
        own = {n for n, v in vars(module).items() if getattr(v, "__module__", "").startswith("tapegrad.functions.")}
        lines = {line.name for line in names.at(place)} | {line.name + "_" for line in names.at("tg_")}
        classes = {n for n in own if isinstance(getattr(module, n), type)}
        assert own - classes - lines <= {"default_generator"}


def test_a_record_alone_makes_a_reduction_public():
    """One line in the table of names gives a record with the parameters (dims, keepdim) its function and method."""
    summed = define(
        "summed_squares", "general", lambda xp, x, dims, keepdim: xp.sum(x * x, axis=dims, keepdims=keepdim),
        (lambda xp, g, ans, x, dims, keepdim: 2.0 * xp.conj(x) * xp.spread(g, x.shape, dims, keepdim),),
        params=("dims", "keepdim"), saves="x", doc="Sum of the squares.",
    )  # fmt: skip
    try:
        (line,) = names.read("reduce:\n    summed_squares  tg Tensor\n")
        function = line.resolve()
    finally:
        del TABLE["summed_squares"]
    assert callable(summed) and (function.__name__, function.__doc__) == ("summed_squares", "Sum of the squares.")
    x = tapegrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert function(x, -1, True).tolist() == [[5.0], [25.0]] and function(x, axis=0).tolist() == [10.0, 20.0]
    function(x).backward()
    assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("text", ["reduce:\n sum nowhere\n", "reduce:\n sum\n"])
def test_a_line_of_names_without_a_known_place_is_refused(text):
    with pytest.raises(ValueError, match="no such place"):
        names.read(text)


def test_a_name_without_function_and_record_says_so():
    (line,) = names.read("reduce:\n    nothing  tg\n")
    with pytest.raises(LookupError, match="no function of this name"):
        line.resolve()


def test_records_are_made_in_the_table_alone():
    """And changed nowhere; what users define makes records of its own."""
    makers, changers = set(), set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Op":
                makers.add(name)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith("table.define"):
                makers |= {name for alias in node.names if alias.name in ("define", "unary", "binary")}
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Attribute) and ast.unparse(target.value).startswith("TABLE["):
                    changers.add(name)
    assert {m for m in makers if not m.startswith("table/")} == {"custom.py", "autograd/function.py"}
    assert not changers


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

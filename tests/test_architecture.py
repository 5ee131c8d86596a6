"""Rules of the structure: imports point downwards, stubs are current, public functions have docstrings."""

import ast
import functools
import pathlib
import pickle
import re
import subprocess
import sys
import types

import numpy as np
import pytest

import tapegrad
from tapegrad.core.op import TABLE
from tapegrad.functions import names
from tapegrad.later import ABOVE, above, fill
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
    {"homes", "later", "dialect", "contexts", "stack"},
    {"errors"},
    {"dtypes"},
    {"refcount"},
    {"slots"},
    {"core"},
    {"modes"},
    {"floats"},
    {"levels"},
    {"programs"},
    {"kernels"},
    {"table"},
    {"functions"},
    {"tensor"},
    {"special", "linalg", "fft", "masked", "sparse", "cuda", "random", "amp", "overrides"},
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
    {"viz"},
    {"examples"},
    {"compat", "moved"},
    {"__main__"},
]
EVERYWHERE = {"__init__", "_stubs", "_methods"}


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def layer_of(name):
    return next((i for i, names in enumerate(LAYERS) if name in names), None)


def imports_of(path):
    """Top-level names within the package that a file imports."""
    depth = len(path.relative_to(ROOT).parts)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level == depth:
                names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
                yield from names
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tapegrad."):
            yield node.module.split(".")[1]


FILES = [p for p in ROOT.rglob("*.py") if "_dropins" not in p.parts]
ROOMS = {}
for _path in FILES:
    ROOMS.setdefault(_path.relative_to(ROOT).parts[0].removesuffix(".py"), []).append(_path)


@pytest.mark.parametrize("own", sorted(ROOMS))
def test_imports_point_downwards(own):
    assert own in EVERYWHERE or layer_of(own) is not None, f"{own} has no place in the layers"
    for path, name in [(p, n) for p in ROOMS[own] for n in set(imports_of(p)) - EVERYWHERE if own not in EVERYWHERE]:
        assert layer_of(name) is not None and layer_of(name) <= layer_of(own), (
            f"{path.name} imports {name}, which is above it"
        )


LONG = 1000


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_long_file_says_why_it_is_one(room):
    for path in ROOMS[room]:
        text = path.read_text()
        if text.count("\n") > LONG:
            assert "One file over 1,000 lines, since" in (ast.get_docstring(ast.parse(text)) or ""), path


CODE = {"co_code", "_co_code_adaptive", "co_positions", "co_lines", "co_linetable"}
# What is read of code objects besides names and constants, and why that cannot be misread.
READS_OF_CODE = {
    "compat/finder.py": ({"opcode", "co_code"}, "nothing else tells whether an import wants a name"),
    "core/source.py": ({"co_lines"}, "the line of an instruction, as the interpreter gives it, for messages"),
    "jit/numbers.py": (
        {"getframeinfo"},
        "which call runs now, found by the standard library; where that does not know, the trace ends at the number",
    ),
}


def reads_of_code(tree):
    """What a file imports, reads or calls that decodes instructions, finds places of theirs or makes functions of code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            yield from names & {"dis", "opcode"}
        elif isinstance(node, ast.Attribute) and node.attr in CODE:
            yield node.attr
        elif isinstance(node, ast.BinOp | ast.Subscript) and "f_lasti" in ast.unparse(node):
            yield "f_lasti" * (not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("CodeType", "FunctionType", "getframeinfo"):
            yield node.func.attr


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_instruction_is_decoded_and_no_code_copied(room):
    found = {path.relative_to(ROOT).as_posix(): set(reads_of_code(parsed(path))) - {""} for path in ROOMS[room]}
    assert {n: s for n, s in found.items() if s} == {n: READS_OF_CODE[n][0] for n in found if n in READS_OF_CODE}


def test_the_drawing_shows_every_room():
    drawing = (pathlib.Path(__file__).parent.parent / "docs" / "rooms.svg").read_text()
    names = set(re.findall(r"\w+", " ".join(re.findall(r'<text class="name"[^>]*>([^<]*)<', drawing))))
    assert {p.parent.name for p in ROOT.glob("*/__init__.py") if not p.parent.name.startswith("_")} <= names
    shown = set(re.findall(r"\w+", " ".join(re.findall(r"<text[^>]*>([^<]*)<", drawing))))
    assert set().union(*LAYERS) <= shown


def test_the_pages_say_where_each_file_of_no_room_is():
    page = (pathlib.Path(__file__).parent.parent / "docs" / "how_it_works.md").read_text()
    table = page[page.index("## Where things are") : page.index("## Families written by hand")]
    listed = {text.rpartition("/")[2] for text in re.findall(r"`([\w/]+\.py)`", table)}
    assert {p.name for p in ROOT.glob("*.py")} - {"__init__.py"} <= listed


def reads_entries_by_position(tree):
    """`e[5]` of an entry `e` that is handed to a backward function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "e" in [a.arg for a in node.args.args]:
            yield from [n for n in ast.walk(node) if isinstance(n, ast.Subscript) and ast.unparse(n.value) == "e"]


def test_entries_are_read_by_position_where_core_says():
    found = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in FILES
        if "core" not in path.relative_to(ROOT).parts and any(reads_entries_by_position(parsed(path)))
    }
    text = (ROOT / "core" / "entry.py").read_text().partition("those outside core are in")[2].partition("\n\n")[0]
    others, _, of_table = text.replace("\n", " ").partition(", and of the table in ")
    listed = set(re.findall(r"\w+/\w+", others)) | {f"table/{n}" for n in set(re.findall(r"\w+", of_table)) - {"and"}}
    assert found == listed - {""}


# ----------------------------------------------------------------------------------------------- modules asked for by name

# Calls that run upwards, by a name of `later.ABOVE` or of a module: what programs of PyTorch's or NumPy's expect of a tensor
# or a module, whose answer is written with rooms above. The import order cannot hold them; nothing else may call upwards.
UPWARDS = {
    "tensor/protocols.py": {
        "above('numpy_ufunc')": "np.sin(t): NumPy asks the tensor, and its functions on tensors are the room numpy",
        "above('numpy_function')": "np.sum(t), as well",
        "above('numpy_namespace')": "t.__array_namespace__() is that room",
        "above('to_sparse')": "the method of dense tensors gives a class that is built on them",
        "above('sparse_mask')": "as well",
        "above('html')": "a notebook asks the tensor how to show it, and drawings and tables are the room viz",
    },
    "tensor/connection.py": {"above('html')": "a notebook asks the tape"},
    "tensor/graph.py": {"above('html')": "a notebook asks the grad_fn"},
    "nn/module.py": {
        "above('compile_module')": "module.compile(): a program for modules needs modules",
        "above('html')": "a notebook asks the module",
    },
    "tensor/overriding.py": {
        "importlib.import_module(PACKAGE + suffix)": "public pages show functions that ask, once a class can answer",
        "sys.modules[PACKAGE + m]": "the same pages",
    },
}
# What else is found by name, and stands no higher than who asks.
BY_NAME = {
    "functions/names.py": {"load(f'functions.{self.family}')": "the module of a line of the table of names"},
    "io/reader.py": {"importlib.import_module('.'.join([PACKAGE, *parts]))": "a file names what it holds"},
    "jit/compiled.py": {"sys.modules.get(module)": "the module of the user's function"},
    "jit/guards.py": {"sys.modules.get(module)": "the same", "sys.modules[name]": "modules that are loaded, to compare"},
    "kernels/devices.py": {"importlib.import_module(BACKEND)": "within kernels, where JAX is there"},
    "kernels/jax/forwards.py": {"importlib.import_module(f'.{module}', __package__)": "within kernels"},
    "nn/modules.py": {"sys.modules[f'{__name__}.{_name}']": "within nn"},
    "tensor/einops.py": {
        "sys.modules['tapegrad']": "einops asks for the package, when it is used",
        "sys.modules[BACKENDS]": "a module of einops",
    },
    "tensor/tape_text.py": {"sys.modules['IPython']": "names of cells, where a notebook runs"},
    "tensor/connection.py": {"load('tensor.tape_text')": "within tensor, when a tape is printed"},
    "utils/__init__.py": {"importlib.import_module('.data', __name__)": "within utils"},
    "viz/report.py": {"importlib.import_module(f'rich.{name}')": "another package, where it is installed"},
}
LOADERS = {"importlib.import_module", "import_module", "__import__", "sys.modules.get"}
FREE = {"later", "compat", "moved", "__main__", "_stubs"}  # what loads, and what stands above everything


def asked_by_name(tree):
    """Modules that a file asks for by a name that the imports do not show: all but constant names of other packages."""
    of_later = imported_from_later(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else "."
            of_package = str(name).startswith((".", "tapegrad"))
            function = ast.unparse(node.func)
            if (function in LOADERS and of_package) or function in of_later:
                yield ast.unparse(node)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
            yield ast.unparse(node)


def imported_from_later(tree):
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "later"]
    return {a.asname or a.name for node in nodes for a in node.names} & {"above", "load"}


@pytest.mark.parametrize("room", sorted(set(ROOMS) - FREE))
def test_what_is_asked_for_by_name_is_listed(room):
    found = {path.relative_to(ROOT).as_posix(): set(asked_by_name(parsed(path))) for path in ROOMS[room]}
    listed = {n: set(UPWARDS.get(n, {})) | set(BY_NAME.get(n, {})) for n in found}
    assert found == listed


def test_each_name_of_above_is_asked_for_from_below():
    asked = {call: path for path, calls in UPWARDS.items() for call in calls if call.startswith("above")}
    assert set(asked) == {f"above({name!r})" for name in ABOVE}
    for name, target in ABOVE.items():
        assert callable(above(name)) or isinstance(above(name), types.ModuleType)
        assert layer_of(target.partition(".")[0]) > layer_of(asked[f"above({name!r})"].partition("/")[0])


# ------------------------------------------------------------------------------------------- slots filled at import

PROTOCOLS = {
    "kernels/backend.py": "connect_arrays",
    "levels/connection.py": "connect_levels",
    "tensor/connection.py": "connect_facade",
}
CHANGES = {
    "append", "add", "update", "extend", "insert", "setdefault", "remove", "discard", "pop", "clear", "register",
    "__setitem__", "__setattr__",
}  # fmt: skip
# What else a module changes, while it is imported, of what it imports: each hides a call that then runs upwards.
KNOWN_SLOTS: dict[str, dict[str, str]] = {
    "autograd/function.py": {"EMPTIED.update": "what a pass leaves of the entries of its own record, which it defines here"},
    "autograd/__init__.py": dict.fromkeys(
        ["backward.__doc__", "grad.__doc__"], "the public texts, for which core has no room"
    ),
    "kernels/numpy.py": {"MODES[_extobj_contextvar]": "NumPy's error state, which functions switch while they run"},
    "kernels/devices.py": {"device._resolve": "what an index of a device means, JAX knows"},
    "numpy/routines.py": dict.fromkeys(
        [
            "METHODS['at']",
            "METHODS['reduceat']",
            "REDUCTIONS[np.logaddexp]",
            "SCANS[np.logaddexp]",
            "UFUNCS[getattr(np, _name)]",
        ],
        "within numpy: rows of functions that are written with others",
    ),
}


def executed_at_import(body):
    """Statements that run when a module is imported, those in blocks and classes too."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for field in ("body", "orelse", "finalbody"):
                yield from executed_at_import(getattr(node, field, None) or [])
            for handler in getattr(node, "handlers", []):
                yield from executed_at_import(handler.body)


def root_of(node):
    """The name at the beginning of `a.b[c].d`, and whether anything follows it."""
    deep = False
    while isinstance(node, ast.Attribute | ast.Subscript):
        node, deep = node.value, True
    return (node.id, deep) if isinstance(node, ast.Name) else (None, deep)


def imported_names(tree):
    """Names that stand for modules of the package or what these define."""
    names = set()
    for node in executed_at_import(tree.body):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "tapegrad"):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or "tapegrad" for alias in node.names if alias.name.split(".")[0] == "tapegrad"}
    return names


@functools.cache
def functions_with_globals(path):
    return [
        function.name
        for function in parsed(path).body
        if isinstance(function, ast.FunctionDef) and any(isinstance(n, ast.Global) for n in ast.walk(function))
    ]


def setters(path, tree):
    """Imported functions that set globals of their module: `from .record import adopt`, `record.adopt`."""
    for node in executed_at_import(tree.body):
        if not (isinstance(node, ast.ImportFrom) and node.level):
            continue
        folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        for alias in node.names:
            for file, prefix in (
                (folder.with_suffix(".py"), ""),
                (folder / f"{alias.name}.py", (alias.asname or alias.name) + "."),
            ):
                if not file.is_file():
                    continue
                for name in functions_with_globals(file):
                    if prefix:
                        yield prefix + name
                    elif name == alias.name:
                        yield alias.asname or alias.name


def slots_filled_by(path):
    """What the module at a path changes, when it is imported, of other modules of the package or their objects."""
    tree = ast.parse(path.read_text())
    foreign, setting = imported_names(tree), set(setters(path, tree))
    for node in executed_at_import(tree.body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
            for target in targets:
                for part in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                    name, deep = root_of(part)
                    if deep and name in foreign:
                        yield ast.unparse(part)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            name, deep = root_of(call.func)
            if (isinstance(call.func, ast.Attribute) and call.func.attr in CHANGES and name in foreign) or ast.unparse(
                call.func
            ) in setting:
                yield ast.unparse(call.func)
            elif name in ("setattr", "delattr") and call.args and root_of(call.args[0])[0] in foreign:
                yield f"{name}({ast.unparse(call.args[0])})"


@pytest.mark.exhaustive
@pytest.mark.parametrize("room", sorted(ROOMS))
def test_slots_of_other_modules_are_filled_by_protocols_alone(room):
    found = {path.relative_to(ROOT).as_posix(): sorted(set(slots_filled_by(path))) for path in ROOMS[room]}
    assert {name: slots for name, slots in found.items() if slots} == {
        n: sorted(KNOWN_SLOTS[n]) for n in found if n in KNOWN_SLOTS
    }


@pytest.mark.exhaustive
def test_each_protocol_is_connected_once():
    found = {}
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in PROTOCOLS.values():
                found.setdefault(path.relative_to(ROOT).as_posix(), []).append(ast.unparse(node.func).rpartition(".")[2])
    assert found == {path: [name] for path, name in PROTOCOLS.items()}


@pytest.mark.parametrize(
    "text, slots",
    [
        ("from .core import record\nrecord.services.save = print", ["record.services.save"]),
        ("from .core.tape import HOOKS\nHOOKS.append(print)", ["HOOKS.append"]),
        ("from .core import record as r\nif r:\n    a, r.x[1] = 1, 2", ["r.x[1]"]),
        ("from . import dtypes\ndtypes.set_default_dtype(None)", ["dtypes.set_default_dtype"]),
        ("from .dtypes import set_default_dtype as use\nuse(None)", ["use"]),
        ("from .core import record\nsetattr(record.Box, 'x', 1)", ["setattr(record.Box)"]),
        ("from .core import record\ndef f():\n    record.x = 1\nown = {}\nown['x'] = record.Box", []),
    ],
)
def test_slots_are_seen(text, slots, tmp_path, monkeypatch):
    path = ROOT / "not_there.py"
    read = pathlib.Path.read_text
    monkeypatch.setattr(pathlib.Path, "read_text", lambda self, *args: text if self == path else read(self, *args))
    assert list(slots_filled_by(path)) == slots


@pytest.mark.parametrize("name", sorted(PAGES))
def test_stub_is_current(name):
    if name.startswith("numpy/") and np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip(f"NumPy {np.__version__} has fewer functions than the stub, which is made with a newer one")
    assert (ROOT / name).read_text() == PAGES[name], "run: python -m tapegrad._stubs"


# ------------------------------------------------------------------------------------------------ the essential path

GRADIENT = """
import sys
import tapegrad as tg

x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
tg.Tensor.__mul__, tg.Tensor.sum  # imported when they are first asked for

def program():
    y = x * x
    y.sum().backward()

def files_of_calls():
    files = set()
    sys.settrace(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    program()
    sys.settrace(None)
    return {name.rpartition("/core/")[2] for name in files if "/tapegrad/core/" in name.replace(chr(92), "/")}

print(*sorted(files_of_calls()))  # the first pass of the process, which makes the tape and the backward functions
program()
print(*sorted(files_of_calls()))  # adds to a gradient that is there
x.grad = None
print(*sorted(files_of_calls()))
"""
CORE_LINES, ESSENTIAL_LINES = 4500, 1200


def test_core_is_reverse_mode_alone():
    assert sum(len(path.read_text().splitlines()) for path in (ROOT / "core").glob("*.py")) <= CORE_LINES


def test_the_essential_path_is_read_in_an_hour():
    """Every file of core in which one gradient runs a function: few lines together, all of them in the walk-through."""
    done = subprocess.run([sys.executable, "-c", GRADIENT], check=True, capture_output=True, text=True)
    first, *others = [set(line.split()) for line in done.stdout.splitlines()]
    assert len(others) == 2 and all(files and files <= first for files in others)
    assert sum(len((ROOT / "core" / name).read_text().splitlines()) for name in first) <= ESSENTIAL_LINES
    page = ROOT.parent / "docs" / "how_it_works.md"
    if page.exists():  # not beside an installed package
        text = page.read_text()
        walk = text[text.index("## One gradient, file by file") : text.index("## The table")]
        assert {name for name in first if f"`core/{name}`" not in walk} == set()


def test_public_functions_have_docstrings():
    named = {n: getattr(tapegrad, n) for n in dir(tapegrad)}
    missing = [n for n, v in named.items() if callable(v) and not v.__doc__]
    assert not missing


SPACES = {
    "tg": tapegrad, "linalg": tapegrad.linalg, "special": tapegrad.special, "fft": tapegrad.fft,
    "functional": tapegrad.nn.functional,
}  # fmt: skip


@pytest.mark.parametrize("family", sorted({line.family for line in names.LINES}))
def test_a_public_name_is_where_its_line_says(family):
    for line, form in [(n, form) for n in names.LINES if n.family == family for form in n.forms]:
        if form in SPACES:
            assert getattr(SPACES[form], line.name) is line.resolve()
        elif form == "Tensor":
            assert getattr(tapegrad.Tensor, line.name) is line.resolve()
        elif form == "tg_":
            assert getattr(tapegrad, line.name + "_") is getattr(tapegrad.Tensor, line.name + "_")
        elif form in names.OPERATORS:
            function = line.resolve()
            assert getattr(tapegrad.Tensor, names.OPERATORS[form]) is getattr(function, "operator", function)
        elif form in names.IN_PLACE_OPERATORS:
            method = getattr(tapegrad.Tensor, names.IN_PLACE_OPERATORS[form])
            assert method is getattr(tapegrad.Tensor, line.name + "_")
        else:
            assert getattr(tapegrad.Tensor, line.name + "_").__doc__


@pytest.mark.parametrize("owner", [tapegrad, tapegrad.Tensor])
def test_public_functions_can_be_pickled(owner):
    """All but methods of sparse tensors, which say that this one is not sparse."""
    values = {name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")}
    functions = [
        f for f in values.values() if isinstance(f, types.FunctionType) and "_raises.<locals>" not in f.__qualname__
    ]
    assert len(functions) > 400
    assert [f for f in functions if pickle.loads(pickle.dumps(f)) is not f] == []


def test_no_name_stands_twice_in_a_form():
    for form in [*SPACES, "Tensor", *names.OPERATORS]:
        shown = [line.name if form not in names.OPERATORS else form for line in names.at(form)]
        assert len(set(shown)) == len(shown), form


def test_every_function_of_functions_that_is_public_has_a_line():
    for form, module in SPACES.items():
        fill(module)
        own = {n for n, v in vars(module).items() if getattr(v, "__module__", "").startswith("tapegrad.functions.")}
        lines = {line.name for line in names.at(form)} | {line.name + "_" for line in names.at("tg_")}
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
    with pytest.raises(ValueError, match="no such form"):
        names.read(text)


def test_a_name_without_function_and_record_says_so():
    (line,) = names.read("reduce:\n    nothing  tg\n")
    with pytest.raises(LookupError, match="no function of this name"):
        line.resolve()


def test_records_are_made_in_the_table_alone():
    """And changed nowhere. What users define makes records of its own: `custom` one for each operation, and `Function`,
    whose rules are the user's methods, one for all."""
    makers, changers = set(), set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Op":
                makers.add(name)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith("table.define"):
                makers |= {name for alias in node.names if alias.name in ("define", "unary", "binary")}
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Attribute) and ast.unparse(target.value).startswith("TABLE["):
                    changers.add(name)
    assert {m for m in makers if not m.startswith("table/")} == {"custom.py", "autograd/function.py"}
    assert not changers


# Operations that are known by name outside the table, as docs/how_it_works.md lists them with reasons: where, how often.
NAMED = {
    "core/reverse.py": 1, "functions/inplace.py": 1, "kernels/jax/eager.py": 1, "levels/laplacian.py": 1,
    "levels/taylor.py": 5, "programs/subprogram.py": 1,
}  # fmt: skip


def asks_for_names_of_operations(tree):
    """Comparisons with `op.name`, and look-ups by it in other places than the table."""
    for node in ast.walk(tree):
        parts = [node.left] if isinstance(node, ast.Compare) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts = node.args if node.func.attr == "get" and ast.unparse(node.func.value) != "TABLE" else []
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) != "TABLE":
            parts = [node.slice]
        yield from [p for p in parts if re.fullmatch(r"(op|op_of\(\w+\))\.name", ast.unparse(p))]


def test_few_operations_are_known_by_name_outside_the_table():
    found = {}
    for path in [p for p in FILES if p.relative_to(ROOT).parts[0] != "table"]:
        found[path.relative_to(ROOT).as_posix()] = len(list(asks_for_names_of_operations(parsed(path))))
    assert {name: count for name, count in found.items() if count} == NAMED
    page = ROOT.parent / "docs" / "how_it_works.md"
    assert not page.exists() or [n for n in (*NAMED, "floats/functions.py") if f"`{n}`" not in page.read_text()] == []


def test_importing_needs_numpy_alone():
    code = (
        "import sys; import tapegrad; "
        "bad = {m.split('.')[0] for m in sys.modules} & {'jax', 'torch', 'scipy', 'ml_dtypes', 'pytest', 'hypothesis'}; "
        "assert not bad, bad; "
        "bad = [m for m in sys.modules if m.startswith(('tapegrad.viz', 'tapegrad.tensor.tape_text'))]; assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_function_of_the_table_shadows_a_builtin_inside_its_module():
    """`max(n, 1)` in a module that defines its own `max` would run the tensor op: such modules say builtins.max."""
    shadowed = {"sum", "max", "min", "all", "any", "abs", "round", "pow"}
    for path in [*(ROOT / "table").glob("*.py"), *(ROOT / "functions").glob("*.py")]:
        tree = parsed(path)
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

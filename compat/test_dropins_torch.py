"""The drop-in beside PyTorch: where classes say they are, the modules, the list of what is absent, the parity page."""

import importlib
import importlib.util
import pathlib
import subprocess
import sys

import pytest

from tapegrad import compat

torch = pytest.importorskip("torch")

HERE = pathlib.Path(__file__).parent
MODULES = (HERE.parent / "tests" / "torch_modules.txt").read_text().split()
NEEDS_A_PACKAGE = {"torch.utils.tensorboard"}


def test_pytorch_is_not_shadowed_unless_asked():
    import torch as before

    with pytest.raises(ImportError, match=r"torch is already imported, from .*torch.*install\('torch', replace=True\)"):
        compat.install("torch")
    with compat.installed("torch", replace=True):
        import torch as within

        assert within.__version__.endswith("+tapegrad") and torch.ones(1).sum().item() == 1.0
    import torch as after

    assert after is before is torch and sys.modules["torch.nn"] is torch.nn
    code = "import tapegrad, torch; print(torch.__version__)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == torch.__version__


NAMESPACES = (
    "torch", "torch.autograd", "torch.autograd.forward_ad", "torch.autograd.function", "torch.autograd.graph",
    "torch.distributions", "torch.distributions.constraints", "torch.distributions.transforms", "torch.nn",
    "torch.nn.modules.batchnorm", "torch.nn.modules.conv", "torch.nn.modules.dropout", "torch.nn.modules.instancenorm",
    "torch.nn.modules.loss", "torch.nn.modules.padding", "torch.nn.modules.pooling", "torch.nn.modules.rnn",
    "torch.nn.parameter", "torch.nn.utils.parametrize", "torch.nn.utils.prune", "torch.nn.utils.rnn", "torch.optim",
    "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.checkpoint", "torch.utils.data",
)  # fmt: skip
ELSEWHERE = {  # classes that are, for the program, the ones PyTorch has under another name
    ("torch.optim.lr_scheduler", "_LRScheduler"),
    ("torch.nn.parameter", "UninitializedTensorMixin"),
    ("torch", "StorageBase"),
}


def drop_in(name):
    with compat.installed("torch", replace=True):
        return importlib.import_module(name)


def shown(module):
    return {n: v for n in dir(module) if not n.startswith("__") and isinstance(v := getattr(module, n, None), type)}


@pytest.mark.parametrize("name", NAMESPACES)
def test_classes_print_as_pytorchs(name):
    theirs = {n: str(v) for n, v in shown(importlib.import_module(name)).items() if v.__module__.startswith("torch")}
    with compat.installed("torch", replace=True):
        found = shown(importlib.import_module(name))
        ours = {n: str(v) for n, v in found.items() if not isinstance(v, compat.Absent)}
    common = theirs.keys() & ours.keys()
    assert common and {(n, ours[n]) for n in common if ours[n] != theirs[n] and (name, n) not in ELSEWHERE} == set()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_pytorch_has_the_modules_that_programs_import(name):
    if name in NEEDS_A_PACKAGE:
        pytest.importorskip("tensorboard")
    importlib.import_module(name)


def page_of(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
def test_the_list_of_absent_names_is_current():
    maker = page_of(HERE / "make_absent.py")
    rows = [line.split("\t") for line in maker.TABLE.read_text().splitlines()]
    listed = {module: names for module, _, names in rows if module not in maker.SINGLE}
    assert set(listed) == {m for package in maker.REASONS for m in maker.modules(package)}, (
        "run: python compat/make_absent.py"
    )
    for module, names in listed.items():  # but those that need packages which were not there when it was written, or are not
        found = maker.names(module)
        assert not names or not found or names.split() == found, f"{module}: run python compat/make_absent.py"


@pytest.mark.filterwarnings("ignore")
def test_the_parity_page_is_current():
    maker = page_of(HERE.parent / "docs" / "make_parity.py")
    assert (HERE.parent / "docs" / "parity.md").read_text() == maker.page(), "run: python docs/make_parity.py"


VERSIONS = ["1.8", "2.13", "2.13.0", "2.2", "10", "2.13.1", (2, 0), (2, 13, 0), (3,)]


@pytest.mark.parametrize("other", VERSIONS, ids=str)
def test_versions_compare_as_pytorchs(other):
    from torch.torch_version import TorchVersion

    ours = drop_in("torch.torch_version").TorchVersion
    v = "2.13.0"
    for compared in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(ours(v), compared)(other) == getattr(TorchVersion(v), compared)(other)


TREES = [
    "T.tree_flatten({'b': [1, (2, None)], 'a': 3})[0]",
    "T.tree_map(lambda x: x + 1, [1, (2,), {'a': 3}])",
    "T.tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])",
    "T.tree_leaves(None)",
    "T.tree_leaves((1, [2]), is_leaf=lambda x: isinstance(x, list))",
    "T.tree_map_only(int, str, [1, 2.0])",
    "T.tree_all(bool, [1, 0])",
    "T.tree_flatten([1, 2])[1].num_leaves",
    "T.tree_unflatten([1, 2], T.tree_flatten([1, 2])[1])",
    "T.tree_map(lambda x, y: x, [1], [1, 2])",
    "T.tree_map(lambda x, y: x, [1], (1,))",
]


@pytest.mark.parametrize("program", TREES)
def test_trees_are_pytorchs(program):
    def outcome(tree):
        try:
            return eval(program, {"T": tree})
        except ValueError as e:
            return str(e)[:30]

    assert outcome(drop_in("torch.utils._pytree")) == outcome(importlib.import_module("torch.utils._pytree"))


FOREACH = [
    "_foreach_add(a, b)", "_foreach_add(a, 2)", "_foreach_add(a, b, alpha=2)", "_foreach_mul(a, [2.0, 3.0])",
    "_foreach_norm(a)", "_foreach_norm(a, 1)", "_foreach_addcdiv(a, b, b, value=0.5)",
    "_foreach_addcmul(a, b, b, [1.0, 2.0])", "_foreach_addcmul(a, b, b, 3.0)", "_foreach_lerp(a, b, 0.5)",
    "_foreach_maximum(a, b)", "_foreach_pow(2.0, a)", "_foreach_pow(a, 2)", "_foreach_max(b)", "_foreach_add_(a, b)",
    "_foreach_copy_(b, a)", "_foreach_zero_(a)", "_foreach_addcdiv_(a, b, b, -0.1)", "_foreach_clamp_min_(a, 1.5)",
    "_foreach_lerp_(a, b, weight=0.25)",
]  # fmt: skip


def test_operations_on_lists_are_pytorchs():
    def outcome(library, program):
        a = [library.tensor([1.0, 2.0]), library.tensor([3.0])]
        b = [library.tensor([4.0, 5.0]), library.tensor([6.0])]
        result = eval(f"library.{program}", {"library": library, "a": a, "b": b})
        return str((a, b, None if program.split("(")[0].endswith("_") else result))

    theirs = [outcome(torch, p) for p in FOREACH]
    with compat.installed("torch", replace=True):
        page = importlib.import_module("torch")
        assert [outcome(page, p) for p in FOREACH] == theirs
        assert not hasattr(page, "_foreach_nothing")

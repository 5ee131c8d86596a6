"""The three seed documents, row by row: `import tapegrad as torch`, `import tapegrad as flow`."""

import importlib
import sys

import pytest
import seeds

import tapegrad
from tapegrad import compat

SUBMODULES = ("nn", "nn.functional", "autograd")


@pytest.fixture
def torch_names(monkeypatch):
    """`import torch.nn as nn` in a row means tapegrad's."""
    monkeypatch.setitem(sys.modules, "torch", tapegrad)
    for sub in SUBMODULES:
        monkeypatch.setitem(sys.modules, f"torch.{sub}", importlib.import_module(f"tapegrad.{sub}"))


@pytest.mark.parametrize("item", seeds.ITEMS, ids=lambda item: item["id"])
def test_row(item, torch_names):
    got = seeds.execute(seeds.snippet(item), tapegrad)
    assert seeds.matches(seeds.expected(item), got), f"{item['claim']}\nexpected: {seeds.expected(item)}\ngot: {got}"


@pytest.fixture(scope="module", params=["torch", "oneflow"])
def dropin(request):
    """A drop-in, under its name and as `torch`, which the rows import."""
    name = request.param
    before = {m: module for m, module in sys.modules.items() if m.partition(".")[0] == "torch"}
    with compat.installed(name, replace=True):
        library = importlib.import_module(name)
        sys.modules["torch"] = library
        for sub in SUBMODULES:
            sys.modules[f"torch.{sub}"] = importlib.import_module(f"{name}.{sub}")
        yield library
        for m in [m for m in sys.modules if m.partition(".")[0] == "torch"]:
            del sys.modules[m]
        sys.modules.update(before)


@pytest.mark.parametrize("item", seeds.ITEMS, ids=lambda item: item["id"])
def test_row_on_a_drop_in(item, dropin):
    got, wanted = seeds.execute(seeds.snippet(item), dropin), seeds.expected(item)
    if dropin.__name__ == "oneflow":
        got, wanted = seeds.oneflow_form(got), seeds.ONEFLOW.get(item["id"], wanted)
    assert got is not None and seeds.matches(wanted, got), f"{item['claim']}\nexpected: {wanted}\ngot: {got}"


def test_there_are_135_rows():
    assert len({item["id"] for item in seeds.ITEMS}) == 135

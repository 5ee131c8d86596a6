"""The programs of the three tutorials, row by row: `import tapegrad as torch`, `import tapegrad as flow`."""

import importlib
import sys

import pytest
import tutorial_rows as rows

import tapegrad
from tapegrad import compat

SUBMODULES = ("nn", "nn.functional", "autograd")


@pytest.fixture
def torch_names(monkeypatch):
    """`import torch.nn as nn` in a row means tapegrad's."""
    monkeypatch.setitem(sys.modules, "torch", tapegrad)
    for sub in SUBMODULES:
        monkeypatch.setitem(sys.modules, f"torch.{sub}", importlib.import_module(f"tapegrad.{sub}"))


@pytest.mark.parametrize("item", rows.ITEMS, ids=lambda item: item["id"])
def test_row(item, torch_names):
    got = rows.execute(rows.snippet(item), tapegrad)
    assert rows.matches(rows.expected(item), got), f"{item['claim']}\nexpected: {rows.expected(item)}\ngot: {got}"


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


@pytest.mark.parametrize("item", rows.ITEMS, ids=lambda item: item["id"])
def test_row_on_a_drop_in(item, dropin):
    got, wanted = rows.execute(rows.snippet(item), dropin), rows.expected(item)
    if dropin.__name__ == "oneflow":
        got, wanted = rows.oneflow_form(got), rows.ONEFLOW.get(item["id"], wanted)
    assert got is not None and rows.matches(wanted, got), f"{item['claim']}\nexpected: {wanted}\ngot: {got}"


def test_there_are_135_rows():
    assert len({item["id"] for item in rows.ITEMS}) == 135

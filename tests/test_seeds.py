"""The three seed documents, row by row: `import tapegrad as torch`, `import tapegrad as flow`."""

import sys

import pytest
import seeds

import tapegrad


@pytest.fixture(autouse=True)
def torch_names(monkeypatch):
    """`import torch.nn as nn` in a row means tapegrad's."""
    monkeypatch.setitem(sys.modules, "torch", tapegrad)
    monkeypatch.setitem(sys.modules, "torch.nn", tapegrad.nn)
    monkeypatch.setitem(sys.modules, "torch.nn.functional", tapegrad.nn.functional)
    monkeypatch.setitem(sys.modules, "torch.autograd", tapegrad.autograd)


@pytest.mark.parametrize("item", seeds.ITEMS, ids=lambda item: item["id"])
def test_row(item):
    got = seeds.execute(seeds.snippet(item), tapegrad)
    assert seeds.matches(seeds.expected(item), got), f"{item['claim']}\nexpected: {seeds.expected(item)}\ngot: {got}"


def test_there_are_135_rows():
    assert len({item["id"] for item in seeds.ITEMS}) == 135

"""Which reverse passes succeed, one after the other over the same graph, and with which gradients, as in PyTorch."""

import passes
import pytest
import torch

import tapegrad as tg


def agree(ours, theirs):
    if isinstance(theirs, list):
        return type(ours) is list and len(ours) == len(theirs) and all(map(agree, ours, theirs))
    return ours == pytest.approx(theirs, rel=1e-7) if isinstance(theirs, float) else ours == theirs


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("block", [*range(10), *[pytest.param(i, marks=pytest.mark.exhaustive) for i in range(10, 100)]])
def test_random_passes(block):
    refused = 0
    for seed in range(30 * block, 30 * block + 30):
        steps = passes.make(seed)
        theirs = passes.run(torch, steps)
        assert agree(passes.run(tg, steps), theirs), seed
        refused += "second time" in theirs
    assert refused

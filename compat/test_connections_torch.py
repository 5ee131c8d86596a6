"""What requires grad, and which derivatives can be taken again, on PyTorch's sample inputs (opinfo.py).

The derivative of a constant derivative is 0, or an error: PyTorch says which, for each operation. Compared are whether
results require grad, whether their gradients do, and what there is of the second and third order: what PyTorch can
differentiate can be differentiated here. More is no difference there.
"""

import itertools
import warnings

import numpy as np
import opinfo
import pytest
import torch
from test_opinfo import MISSING
from torch.utils._pytree import tree_map

import tapegrad as tg

SAMPLES = 6  # of a row
NONE, CONSTANT, TRACKED = range(3)  # what a gradient is; an exception is None in place of a list of these
ONE_ELEMENT = "PyTorch's formula for one element has no history"
NO_ZEROS = "the gradient is 0; PyTorch's formula leaves it undefined"
ONE_NODE = "all three gradients come from one recorded operation"
FORMULA = "PyTorch's gradients are constants, silently"
DIVIDES = (
    "a place that receives one value: PyTorch divides the result by it, so that zeros have zeros for derivatives for ever"
)
KNOWN = {
    "cumprod": ({"gradient"}, ONE_ELEMENT),
    "linalg.det": ({"gradient"}, ONE_ELEMENT),
    "linalg.vander": ({"gradient"}, ONE_ELEMENT),
    "nn.functional.linear_cross_entropy:chunked": ({"gradient"}, FORMULA),
    "nn.functional.linear_cross_entropy:chunked_none": ({"gradient"}, FORMULA),
    "native_group_norm": ({"gradient"}, ONE_NODE),
    "nn.functional.group_norm": ({"gradient"}, ONE_NODE),
    "norm": ({"gradient"}, NO_ZEROS),
    "linalg.norm": ({"gradient"}, NO_ZEROS),
    "linalg.norm:subgradients_at_zero": ({"gradient"}, NO_ZEROS),
    "linalg.vector_norm": ({"gradient"}, NO_ZEROS),
    "linalg.householder_product": ({"gradient"}, NO_ZEROS),
    "zero_": ({"gradient"}, "a tensor that is overwritten lets go of its history, and so of the memory"),
    "index_reduce:prod": ({"second", "third"}, DIVIDES),
    "scatter_reduce:prod": ({"second", "third"}, DIVIDES),
}
OUT_OF_SCOPE = {"chalf", "max_pool2d_with_indices_backward", "to_sparse"}  # test_opinfo.REASONS has the reasons


def kind_of(g):
    return NONE if g is None else TRACKED if g.requires_grad else CONSTANT


def real_sum(tensors):
    return sum((t.real if t.is_complex() else t).sum() for t in tensors)


def connections(library, kind, function, leaves, process):
    """{quantity: list of what the results and gradients are}; a gradient that raises is None."""
    values = opinfo.flat(process(function()), kind)
    found = {"output": [kind_of(v) for v in values]}
    outputs = [y for y in values if opinfo.is_tracked(y)]
    rng = np.random.default_rng(1)
    seeds = [opinfo.make(library, opinfo.random_like(rng, y), False) for y in outputs]
    sources = [("", outputs)]
    for order in ("gradient", "second", "third") if leaves and outputs else ():
        following = []
        for name, ys in sources:
            given = (ys, leaves, seeds) if order == "gradient" else (real_sum(ys), leaves)
            try:
                gs = library.autograd.grad(*given, create_graph=True, allow_unused=True)
            except (RuntimeError, NotImplementedError):
                found[order + name] = None
                continue
            found[order + name] = [kind_of(g) for g in gs]
            tracked = [(i, g) for i, g in enumerate(gs) if kind_of(g) == TRACKED]
            if order == "gradient":
                following += [(f" of gradient {i}", [g]) for i, g in tracked]
            elif tracked:
                following.append((name, [g for _, g in tracked]))
        sources = following
    return found


def of_theirs(op, sample):
    def call():
        return opinfo.wrapped(op, op.op, False)(sample.input, *sample.args, **sample.kwargs)

    torch.manual_seed(0)
    return connections(torch, torch.Tensor, call, opinfo.leaves_of(sample), opinfo.process_of(sample, False))


def of_ours(op, sample):
    ours = opinfo.Ours(op, sample)
    tg.manual_seed(0)
    return connections(tg, tg.Tensor, ours.call, ours.leaves, ours.process)


def differs(quantity, theirs, ours):
    if theirs is None:
        return False
    if quantity in ("output", "gradient"):
        return ours != theirs
    return ours is None or any(a < b for a, b in zip(ours, theirs, strict=True))


def compared(row):
    """{quantity: first example of what differs} over the first samples of each dtype."""
    op = opinfo.INFOS[row.name, row.variant]
    found = {}
    for dtype in (torch.float64, torch.complex128) if row.complex else (torch.float64,):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for k, sample in enumerate(itertools.islice(opinfo.samples(op, dtype), SAMPLES)):
            sample.input, sample.args, sample.kwargs = tree_map(opinfo.own_leaf, (sample.input, sample.args, sample.kwargs))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs, ours = of_theirs(op, sample), of_ours(op, sample)
            for name, there in theirs.items():
                quantity = name.partition(" ")[0]
                if differs(quantity, there, ours.get(name)):
                    found.setdefault(quantity, (str(dtype), k, name, there, ours.get(name)))
    return found


@pytest.mark.parametrize("row", opinfo.some(r for r in opinfo.rows() if r.title not in MISSING), ids=lambda row: row.title)
def test_what_requires_grad(row):
    if row.title in OUT_OF_SCOPE:
        with pytest.raises((AttributeError, NotImplementedError, TypeError)):
            compared(row)
        return
    found = compared(row)
    known, _ = KNOWN.get(row.title, (set(), ""))
    assert {k: v for k, v in found.items() if k not in known} == {}
    assert known <= set(found), f"these no longer differ: {known - set(found)}"


def test_exceptions_are_rows():
    assert KNOWN.keys() <= {row.title for row in opinfo.rows()}

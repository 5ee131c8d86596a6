"""Nodes of one call: those that a call of each of PyTorch's operations leaves in the graph, on its own first samples.

`node_counts.tsv` lists the operations of which the nodes differ in number, with both numbers on the first sample where they
do: they are made of other operations here. `python -m compat.test_node_counts_torch` writes it anew.
"""

import csv
import itertools
import sys
import warnings
from pathlib import Path

import torch

import tapegrad as tg

sys.path.append(str(Path(__file__).parent))
import opinfo

TABLE = Path(__file__).with_name("node_counts.tsv")
SAMPLES = 4


def nodes(results):
    """How many nodes of operations lead to results."""
    todo = {t.grad_fn for t in results if t.grad_fn is not None}
    found = set()
    while todo:
        node = todo.pop()
        found.add(node)
        todo |= {n for n, _ in node.next_functions if n is not None and "AccumulateGrad" not in n.name()} - found
    return len(found)


def hermitian(sample):
    """The sample, its matrix made exactly Hermitian if only rounding keeps it from it: cholesky_ex averages others first."""
    x = sample.input
    if isinstance(x, torch.Tensor) and x.ndim > 1 and x.shape[-1] == x.shape[-2] and torch.allclose(x, x.mH):
        sample.input = ((x + x.mH) / 2).detach().requires_grad_(x.requires_grad)
    return sample


def ours(function, sample):
    leaves = []
    args, kwargs = opinfo.converted([sample.input, *sample.args], leaves), opinfo.converted(sample.kwargs, leaves)
    tg.manual_seed(0)
    return nodes(opinfo.flat(function(*args, **kwargs), tg.Tensor))


def theirs(op, sample):
    torch.manual_seed(0)
    return nodes(opinfo.flat(op.op(sample.input, *sample.args, **sample.kwargs), torch.Tensor))


def difference(row):
    """The number here and there, on the first sample where they differ; None if they never do."""
    op = opinfo.INFOS[row.name, row.variant]
    function = opinfo.of_tapegrad(op)
    if function is None:
        return None
    for sample in itertools.islice(op.sample_inputs("cpu", torch.float64, requires_grad=True), SAMPLES):
        try:
            pair = ours(function, hermitian(sample)), theirs(op, sample)
        except Exception:  # what is refused is another test's
            continue
        if pair[0] != pair[1]:
            return pair
    return None


def differences():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {row.title: pair for row in opinfo.rows() if (pair := difference(row)) is not None}


def listed():
    with open(TABLE, newline="") as f:
        return {r["name"]: (int(r["here"]), int(r["there"])) for r in csv.DictReader(f, delimiter="\t")}


def test_one_node_where_pytorch_has_one():
    assert differences() == listed()


if __name__ == "__main__":
    lines = [f"{name}\t{here}\t{there}" for name, (here, there) in differences().items()]
    TABLE.write_text("\n".join(["name\there\tthere", *lines]) + "\n")

"""vmap over PyTorch's own sample inputs (opinfo.py), row by row: it agrees with a loop, and it does not loop itself.

Every row that still runs its samples one by one is named with its reason, strictly.
"""

import itertools
import warnings

import numpy as np
import opinfo
import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import tapegrad as tg

N = 3  # of a batch
SAMPLES = 6  # of a row, spread over all
LOOPED = "vmap: this line asks"


def copies(t):
    """A batch of tensors like t: of its values, scaled a little where that keeps them valid."""
    if t.is_floating_point() or t.is_complex():
        return tg.stack([t, t * 0.875, t * 0.75])
    return tg.stack([t] * N)


def results(f, leaves):
    tg.manual_seed(0)
    return tuple(opinfo.flat(f(*leaves), tg.Tensor))


def examine(row):
    """(number of samples, what differs, the lines that made vmap loop) of a row."""
    op = opinfo.INFOS[row.name, row.variant]
    function = opinfo.of_tapegrad(op)
    if function is None:
        return 0, [], set()
    samples = list(op.sample_inputs("cpu", torch.float64, requires_grad=False))
    differs, lines, count = [], set(), 0
    for sample in samples[:: max(1, len(samples) // SAMPLES)]:
        process = opinfo.process_of(sample, True)
        given = opinfo.converted((sample.input, sample.args, dict(sample.kwargs)), [])
        everything, spec = tree_flatten(given)
        at = [i for i, v in enumerate(everything) if isinstance(v, tg.Tensor)]
        batches = [copies(everything[i]) for i in at]

        def f(*leaves):
            args = list(everything)
            for i, t in zip(at, leaves, strict=True):
                args[i] = t
            x, more, kwargs = tree_unflatten(args, spec)
            return process(function(x, *more, **kwargs))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                rows = [results(f, [b[i].clone() for b in batches]) for i in range(N)]
                expected = [np.stack([opinfo.array_of(t) for t in column]) for column in zip(*rows, strict=True)]
            except (RuntimeError, ValueError, IndexError, np.linalg.LinAlgError):
                continue  # no such batch
            if not at or not expected:
                continue
            caught.clear()
            count += 1
            got = tg.func.vmap(lambda *leaves: results(f, leaves), randomness="same")(*batches)
        text = opinfo.unequal([opinfo.array_of(t) for t in got], expected)
        if text:
            differs.append(text)
        lines |= {f"{w.filename.rpartition('/')[2]}:{w.lineno}" for w in caught if str(w.message).startswith(LOOPED)}
    return count, differs, lines

"""PyTorch's own sample inputs in forward and Taylor mode.

Tangents are compared with PyTorch's forward mode, where it has one, and with our reverse mode (which `opinfo` compares with
PyTorch's): <J v, w> = <v, J' w>; series with nested forward mode.
`python -m compat.forward [-v] [pattern ..]` prints a line a row that differs.
"""

import itertools
import re
import sys
import time
import warnings

import numpy as np
import opinfo
import torch
from opinfo import INFOS, Ours, array_of, flat, is_tracked, leaves_of, of_tapegrad, process_of, random_like, unequal, wrapped
from torch.autograd import forward_ad
from torch.utils._pytree import tree_map

import tapegrad as tg

ORDER, SERIES = 3, 3  # order of series, and how many samples of a row they run on
LARGE = 400  # numbers that a sample for series may have
# What PyTorch says where it has no forward derivative
LACKING = "forward AD|forward-mode|not implemented|derivative|functorch|doesn't support|does not support|Not supported"


def tangents_of_torch(op, sample, seeds):
    """Tangents of the outputs in PyTorch's forward mode; None where it has none."""
    leaves = leaves_of(sample)
    with forward_ad.dual_level():
        duals = {id(x): forward_ad.make_dual(x.detach(), torch.from_numpy(v)) for x, v in zip(leaves, seeds, strict=True)}

        def dual(v):
            return duals.get(id(v), v) if isinstance(v, torch.Tensor) else v

        first, args, kwargs = tree_map(dual, (sample.input, sample.args, sample.kwargs))
        torch.manual_seed(0)
        try:
            result = process_of(sample, False)(wrapped(op, op.op, False)(first, *args, **kwargs))
            parts = [forward_ad.unpack_dual(y) for y in flat(result, torch.Tensor)]
        except (RuntimeError, NotImplementedError) as e:
            if re.search(LACKING, str(e)):
                return None
            raise
        found = [p for p in parts if p.primal.is_floating_point() or p.primal.is_complex()]
        return [np.zeros_like(array_of(p.primal)) if p.tangent is None else array_of(p.tangent) for p in found]


def function_of(ours):
    """The sample as a function of its tracked tensors, to the outputs that can have a derivative."""

    def f(*xs):
        tg.manual_seed(0)
        source = iter(xs)

        def argument(v):
            if not isinstance(v, tg.Tensor):
                return v
            return next(source) if v.requires_grad else v.clone()  # which a function may write into

        first, args, kwargs = tree_map(argument, ours.given)
        values = flat(ours.process(ours.function(first, *args, **kwargs)), tg.Tensor)
        return tuple([y for y in values if y.is_floating_point() or y.is_complex()])

    return f


def checked_tangents(op, sample, ours, seeds):
    """{quantity: what differs in forward mode, in words, or None}."""
    f = function_of(ours)
    xs = tuple([x.detach() for x in ours.leaves])
    ys, ts = tg.func.jvp(f, xs, tuple(map(tg.tensor, seeds)))
    for y, t in zip(ys, ts, strict=True):
        if (y.shape, y.dtype) != (t.shape, t.dtype):
            return {"adjoint": f"tangent {t.dtype}{list(t.shape)} for {y.dtype}{list(y.shape)}"}
    got = [array_of(t) for t in ts]
    theirs = tangents_of_torch(op, sample, seeds) if op.supports_forward_ad else None
    return {"jvp": unequal(got, theirs), "adjoint": not_adjoint(f, xs, ys, got, seeds)}


def not_adjoint(f, xs, ys, got, seeds):
    """How forward mode disagrees with reverse mode, in words."""
    rng = np.random.default_rng(1)
    ws = [np.asarray(random_like(rng, y)) for y in ys]
    pulled = tg.func.vjp(f, *xs)[1](tuple(map(tg.tensor, ws)))
    left = sum(np.vdot(w, t).real for w, t in zip(ws, got, strict=True))
    gs = [array_of(g) for g in pulled]
    right = sum(np.vdot(g, v).real for g, v in zip(gs, seeds, strict=True))
    size = sum(np.abs(a * b).sum() for a, b in zip([*ws, *gs], [*got, *seeds], strict=True))
    eps = max([8 * tg.finfo(y.dtype).eps for y in (*xs, *ys)])
    if not (abs(left - right) <= max(1e-7, eps) * max(1.0, np.nan_to_num(size)) or np.isnan([left, right]).all()):
        return f"<J v, w> is {left:.10g}, <v, J' w> is {right:.10g}"
    return None


def checked_series(ours, seeds):
    """What differs between Taylor mode and nested forward mode along a curve, in words."""
    f = function_of(ours)
    xs = tuple([x.detach() for x in ours.leaves])
    vs, zeros = [0.5 * tg.tensor(v) for v in seeds], [tg.zeros_like(x) for x in xs]
    ws = [0.5 * v.flip(0) if v.ndim else v for v in vs]
    series = [[v, 2 * w, *[z] * (ORDER - 2)] for v, w, z in zip(vs, ws, zeros, strict=True)]
    _, terms = tg.func.jet(f, xs, series)

    def derivatives(t):
        return [f(*[x + t * v + t * t * w for x, v, w in zip(xs, vs, ws, strict=True)])]

    for _ in range(ORDER):
        derivatives = with_next(derivatives)
    nested = derivatives(tg.tensor(0.0, dtype=tg.float64))
    for k in range(1, ORDER + 1):
        text = unequal([array_of(c[k - 1]) for c in terms], [array_of(t) for t in nested[k]])
        if text:
            return f"order {k}: {text}"
    return None


def with_next(derivatives):
    """A function that gives a list of derivatives, and one order more."""

    def further(t):
        values, tangents = tg.func.jvp(derivatives, (t,), (tg.ones_like(t),))
        return [*values, tangents[-1]]

    return further


def examine(row, verbose=False):
    """{(dtype, sample number, quantity): what differs} over all samples; None if tapegrad lacks the operation."""
    op = INFOS[row.name, row.variant]
    if of_tapegrad(op) is None:
        return None
    found = {}
    for dtype in (torch.float64, torch.complex128) if row.complex else (torch.float64,):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        series = 0
        for k, sample in enumerate(opinfo.samples(op, dtype)):
            texts = {}
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    sample.input, sample.args, sample.kwargs = tree_map(
                        opinfo.own_leaf, (sample.input, sample.args, sample.kwargs)
                    )
                    ours = Ours(op, sample)
                    if not ours.leaves:
                        continue
                    tg.manual_seed(0)
                    if not any(map(is_tracked, flat(ours.process(ours.call()), tg.Tensor))):
                        continue
                    rng = np.random.default_rng(3)
                    seeds = [np.asarray(random_like(rng, x)) for x in ours.leaves]
                    texts |= checked_tangents(op, sample, ours, seeds)
                    if series < SERIES and 0 < sum(x.numel() for x in ours.leaves) <= LARGE:
                        series += 1
                        texts["jet"] = checked_series(ours, seeds)
            except Exception as e:
                texts["error"] = f"{type(e).__name__}: {e}"[:300]
                if verbose:
                    import traceback

                    traceback.print_exc(limit=-4)
            for quantity, text in texts.items():
                if text is not None:
                    found[str(dtype).removeprefix("torch."), k, quantity] = text
                    if verbose:
                        print("    ", dtype, k, quantity, text, "|", repr(sample.summary())[:400])
    return found


def main(arguments):
    verbose = "-v" in arguments
    patterns = [a for a in arguments if a != "-v"]
    for row in opinfo.rows():
        if patterns and not any(re.fullmatch(p, row.title) for p in patterns):
            continue
        start = time.process_time()
        found = examine(row, verbose)
        took = time.process_time() - start
        if found or took > 5:
            print(f"{row.title}  {len(found)}  {took:.1f} s")
            for key, text in itertools.islice(found.items(), 3):
                print("    ", *key, text)
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

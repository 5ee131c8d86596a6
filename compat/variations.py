"""PyTorch's sample inputs in other dtypes and without elements, through both libraries: what comes out, or that it raises.

PyTorch crashes on some of these inputs: the comparisons of an operation run in a process of their own, up to the crash.
"""

import itertools
import os
import pickle
import re
import signal
import warnings

import numpy as np
import torch
from opinfo import INFOS, converted, flat, of_tapegrad
from torch.utils._pytree import tree_flatten, tree_unflatten

import tapegrad as tg

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
LEFT_OUT = re.compile(
    r"sparse|to_sparse|_flash|_efficient|_segment|torch.ops|max_pool2d_with_indices_backward|bmm:triton|chalf"
)
# PyTorch says that it has no kernel for a dtype: no difference if there is one here
NO_KERNEL = re.compile(r"not implemented for|ot supported (on|for)|MKL FFT|no support|Low precision dtypes")
SECONDS = 120


def title_of(name, variant):
    return f"{name}:{variant}" if variant else name


def operations():
    """{title: operation} of what both libraries have."""
    return {
        title_of(*key): op
        for key, op in INFOS.items()
        if op.supported_dtypes("cpu") and not LEFT_OUT.match(title_of(*key)) and of_tapegrad(op) is not None
    }


def samples(op, tracked, most):
    """The first samples that differ in ranks or kinds of arguments: their leaves, and how they are put together."""
    dtypes = op.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in dtypes else next(iter(dtypes))
    torch.manual_seed(0)
    seen = set()
    for s in op.sample_inputs("cpu", dtype, requires_grad=tracked and dtype.is_floating_point and op.supports_autograd):
        leaves, spec = tree_flatten((s.input, s.args, s.kwargs))
        form = tuple(v.dim() if isinstance(v, torch.Tensor) else type(v) for v in leaves)
        if form not in seen:
            seen.add(form)
            yield leaves, spec
        if len(seen) == most:
            return


def positions_of(leaves):
    return [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor)]


def in_dtypes(leaves):
    """(label, leaves): all tensors in each dtype, and each tensor in one while the others have another."""

    def cast(wanted):
        return [v.detach().to(getattr(torch, wanted[i])) if i in wanted else v for i, v in enumerate(leaves)]

    positions = positions_of(leaves)
    for a in DTYPES:
        yield a, cast(dict.fromkeys(positions, a))
    for k, p in enumerate(positions if len(positions) > 1 else ()):
        for a, b in itertools.permutations(DTYPES, 2):
            yield f"{k}:{a}, others {b}", cast({**dict.fromkeys(positions, b), p: a})
        for a in DTYPES:
            yield f"{k}:{a}", cast({p: a})


def without_elements(leaves):
    """(label, leaves): every size, and every dimension of every tensor, as 0; tensors of shapes (0,) and ()."""
    positions = positions_of(leaves)
    shapes = {i: tuple(leaves[i].shape) for i in positions}
    choices = [
        {i: tuple(0 if n == size else n for n in s) for i, s in shapes.items()} for size in {*sum(shapes.values(), ())}
    ]
    for i in positions:
        for d in range(len(shapes[i])):
            choices.append({**shapes, i: (*shapes[i][:d], 0, *shapes[i][d + 1 :])})
        choices += [{**shapes, i: s} for s in ((0,), ())]
    for d in range(-4, 4):
        choices.append({i: tuple(0 if d in (k, k - len(s)) else n for k, n in enumerate(s)) for i, s in shapes.items()})
    choices += [dict.fromkeys(positions, (0,)), dict.fromkeys(positions, ()), {i: (0,) * len(s) for i, s in shapes.items()}]
    for wanted in {tuple(sorted(c.items())): c for c in choices}.values():
        yield str(list(wanted.values())), [shaped(v, wanted[i]) if i in wanted else v for i, v in enumerate(leaves)]


def shaped(t, shape):
    if tuple(t.shape) == shape:
        return t
    return torch.zeros(shape, dtype=t.dtype).requires_grad_(t.requires_grad)


def dtype_name(t):
    return "torch.complex64" if t.dtype is getattr(torch, "complex32", None) else str(t.dtype)  # NumPy has no complex32


def outcome(function, *arguments):
    """What a function gives, or the text of its error."""
    try:
        return function(*arguments)
    except Exception as error:
        return str(error).split("\n")[0] or type(error).__name__


def described(results):
    return [(dtype_name(t), tuple(t.shape)) for t in results]


def gradients(results, library, leaves):
    """[(dtype, shape)] of the gradients, those of zeros where there is none; None if nothing is tracked."""
    tracked = [t.abs().sum() for t in results if t.requires_grad]
    if not tracked or not leaves:
        return None
    found = library.autograd.grad(tracked, leaves, allow_unused=True)
    return described(x if g is None else g for g, x in zip(found, leaves, strict=True))


def compared(op, variants, tracked, most):
    """(label, PyTorch's outcome, ours) of the variants that differ. Which results require grad is compared elsewhere."""
    ours = of_tapegrad(op)
    for leaves, spec in samples(op, tracked, most):
        for label, changed in variants(leaves):
            value, args, kwargs = tree_unflatten(changed, spec)
            mine = []
            own, own_args, own_kwargs = converted((value, args, kwargs), mine)
            theirs = outcome(lambda: flat(op.op(value, *args, **kwargs), torch.Tensor))
            got = outcome(lambda: flat(ours(own, *own_args, **own_kwargs), tg.Tensor))
            found = [v if isinstance(v, str) else described(v) for v in (theirs, got)]
            if differ(*found):
                yield label, *found
            elif tracked and not isinstance(theirs, str):
                given = [v for v in changed if isinstance(v, torch.Tensor) and v.requires_grad]
                found = outcome(gradients, theirs, torch, given), outcome(gradients, got, tg, mine)
                if None not in found and differ(*found):
                    yield label, *found


def differ(theirs, got):
    raised = isinstance(theirs, str), isinstance(got, str)
    return raised[0] != raised[1] or (not raised[0] and theirs != got)


def in_a_process(rows):
    """The rows of an iterator, from a copy of this process: as many as it gives before it crashes."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(SECONDS)
        try:
            with os.fdopen(writer, "wb") as f:
                for row in rows:
                    pickle.dump(row, f)
                    f.flush()
        finally:  # whatever happens, the copy does not go on with the tests
            os._exit(0)
    os.close(writer)
    found = []
    with os.fdopen(reader, "rb") as f:
        while True:
            try:
                found.append(pickle.load(f))
            except EOFError:
                break
    os.waitpid(child, 0)
    return found


def kind_of(theirs, got):
    """What a difference is: "accepted" here, "refused" here, or another "result"; None for a kernel that PyTorch lacks."""
    if isinstance(theirs, str):
        return None if NO_KERNEL.search(theirs) else "accepted"
    return "refused" if isinstance(got, str) else "result"


def differences(op, variants, tracked=False, most=2):
    """{kind: (label, PyTorch's outcome, ours) of the first variant that differs so}."""
    torch.set_num_threads(1)
    found = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label, theirs, got in in_a_process(compared(op, variants, tracked, most)):
            if kind := kind_of(theirs, got):
                found.setdefault(kind, (label, theirs, got))
    return found

"""PyTorch's own sample inputs run through both libraries: value, vjp and second-order vjp in float64 and complex128.

`python -m compat.opinfo [-v] [-s] [pattern ..]` prints a line a row of `rows.tsv` that matches: its state and the first
thing that differs; with -s its float32 errors beside PyTorch's. A row counts as covered when every sample agrees in every
quantity.
"""

import csv
import functools
import itertools
import os
import re
import sys
import types
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map

import tapegrad as tg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

RTOL, ATOL = 1e-7, 1e-8  # against the largest element: factorisations and sums in another order
UNIT = float(np.finfo(np.float32).eps)
STEP = 1e-6  # of finite differences, where PyTorch has no double backward
NO_DOUBLE_BACKWARD = {("nn.functional.linear_cross_entropy", "chunked")}  # PyTorch's gradients are constants, silently
# What PyTorch says where its double backward fails
NOT_DIFFERENTIABLE = "not implemented|does not require grad|derivative|support automatic differentiation|undefined Tensor"
LEFT_OUT = re.compile(r"sparse|_flash_|_efficient_|_native_|_unsafe_|_segment_reduce")


class Row(NamedTuple):
    name: str
    variant: str
    complex: bool

    @property
    def title(self):
        return f"{self.name}:{self.variant}" if self.variant else self.name


def rows():
    with open(Path(__file__).with_name("rows.tsv"), newline="") as f:
        return [Row(r["name"], r["variant"], r["complex"] == "1") for r in csv.DictReader(f, delimiter="\t")]


INFOS = {(op.name, op.variant_test_name): op for op in op_db}


# -------------------------------------------------------------------------------------------- PyTorch's programs on tapegrad


def seeded(function, *args, **kwargs):
    """What the test functions of random operations call: the operation behind a fixed seed."""
    tg.manual_seed(42)
    return function(*args, **kwargs)


def rebound(function):
    """A Python function of PyTorch's test suite in which `torch` is tapegrad."""
    names = {**function.__globals__, "torch": tg, "wrapper_set_seed": seeded}
    for name in function.__code__.co_names:
        helper = names.get(name)
        if isinstance(helper, types.FunctionType) and helper.__module__.startswith("torch.testing") and helper is not seeded:
            names[name] = rebound(helper) if helper is not function else helper
    copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def of_tapegrad(op):
    """The operation in tapegrad, under PyTorch's name; None if there is none."""
    if op.name == "sparse.mm":  # whose samples are compressed sparse tensors
        return None
    function = op.op
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        return rebound(function)
    for owner in (tg, tg.Tensor):
        try:
            function = functools.reduce(getattr, op.name.removeprefix("torch.").split("."), owner)
        except AttributeError:
            continue
        if callable(function):  # not a dtype, nor a property
            return function
    return None


def converted(value, leaves):
    """A sample's argument for tapegrad; tensors that require gradient are appended to `leaves`."""

    def convert(v):
        if isinstance(v, torch.Tensor):
            array = v.detach().resolve_conj().resolve_neg()
            if array.dtype is torch.bfloat16:
                t = tg.tensor(array.float().numpy()).to(tg.bfloat16)
            else:
                t = laid_out(array)
            if v.requires_grad:
                leaves.append(t.requires_grad_())
            return t
        if isinstance(v, torch.dtype):
            return getattr(tg, str(v).removeprefix("torch."))
        if isinstance(v, torch.device):
            return str(v)
        if isinstance(v, torch.Size):
            return tuple(v)
        if isinstance(v, torch.nn.PairwiseDistance):
            return functools.partial(tg.nn.functional.pairwise_distance, p=v.norm, eps=v.eps, keepdim=v.keepdim)
        return v

    return tree_map(convert, value)


def laid_out(t):
    """A tensor of the same values: of the same strides in a copy of the block of which it is a part, if it is one."""
    block = t.new_empty(0).set_(t.untyped_storage())
    if block.numel() > t.numel() > 0:
        return tg.tensor(block.numpy()).as_strided(t.shape, t.stride(), t.storage_offset()).detach()
    return tg.from_numpy(np.array(t.numpy(), order="K"))


def tensors(value, kind):
    return [t for t in tree_flatten(value)[0] if isinstance(t, kind)] if not isinstance(value, kind) else [value]


def flat(result, kind):
    """The tensors of a result, in order; named tuples and lists taken apart."""
    if isinstance(result, kind):
        return [result]
    if isinstance(result, list | tuple):
        return [t for r in result for t in flat(r, kind)]
    return []


def array_of(t):
    if t is None:
        return None
    if isinstance(t, torch.Tensor):
        t = t.detach().resolve_conj().resolve_neg()
        if t._is_zerotensor():
            return np.zeros(t.shape, str(t.dtype).removeprefix("torch."))
        return (t.float() if t.dtype is torch.bfloat16 else t).numpy()
    return np.asarray(t.detach().float().numpy() if t.dtype is tg.bfloat16 else t.detach().numpy())


class Run(NamedTuple):
    """One library's results on one sample."""

    value: list
    vjp: list
    second: list | None


def random_like(rng, t):
    """Random numbers of t's dtype, the same in single and double precision."""
    a = array_of(t)
    values = rng.standard_normal(a.shape).astype(np.float32)
    return (values + 1j * rng.standard_normal(a.shape).astype(np.float32) if a.dtype.kind == "c" else values).astype(a.dtype)


def is_tracked(t):
    return t.requires_grad and (t.is_floating_point() or t.is_complex())


def identity(x):
    return x


def run(library, kind, function, leaves, process, second, perturb=identity):
    """Value, vjp and second-order vjp of function() for random cotangents; `second` False leaves the last one out."""
    result = function()
    values = flat(process(result), kind)
    tracked = [y for y in values if is_tracked(y)]
    if not leaves or not tracked:
        return Run([array_of(v) for v in values], [], [])
    rng = np.random.default_rng(1)
    seeds = [make(library, perturb(random_like(rng, y))) for y in tracked]
    grad = library.autograd.grad
    gs = list(grad(tracked, leaves, seeds, create_graph=second, allow_unused=True))
    first = Run([array_of(v) for v in values], [array_of(g) for g in gs], None)
    if not second:
        return first
    directions = [make(library, random_like(rng, x), False) for x in leaves]
    total = sum((d.conj() * g).real.sum() for d, g in zip(directions, gs, strict=True) if g is not None)
    if not getattr(total, "requires_grad", False):
        return first._replace(second=[])
    return first._replace(second=[array_of(g) for g in grad(total, [*leaves, *seeds], allow_unused=True)])


def make(library, array, tracked=True):
    t = library.from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    return t.requires_grad_() if tracked else t


def unequal(ours, theirs):
    """What differs between two lists of arrays, in words; an absent gradient counts as 0."""
    if ours is None or theirs is None:
        return None
    for i, (a, b) in enumerate(itertools.zip_longest(ours, theirs)):
        if a is None and b is None:
            continue
        a, b = (np.zeros_like(b) if a is None else a), (np.zeros_like(a) if b is None else b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{i}: {a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
        finite = np.abs(b[np.isfinite(b)]) if b.dtype.kind in "fc" else np.zeros(0)
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        eps = max(float(np.finfo(b.dtype).eps) / 2.2e-16, 1.0) if b.dtype.kind in "fc" else 1.0
        if not np.allclose(a, b, rtol=RTOL * eps**0.5, atol=ATOL * scale * eps**0.5, equal_nan=True):
            with np.errstate(all="ignore"):
                worst = np.nanmax(np.abs(a.astype(complex) - b)) if a.size else 0
            return f"{i}: off by {worst:.3g}; {short(a)} for {short(b)}"
    return None


def short(a):
    text = np.array2string(a, precision=6, threshold=12, edgeitems=2).replace("\n", " ")
    return text if len(text) < 160 else text[:160] + ".."


def numerical_second(function_of, leaves, process, second):
    """Whether our second-order vjp agrees with central differences of our first-order vjp, in a random direction."""
    rng = np.random.default_rng(2)
    us = [random_like(rng, x) for x in leaves]
    expected = 0.0
    for sign in (1, -1):
        moved = [
            tg.from_numpy(np.array(array_of(x) + sign * STEP * u)).requires_grad_() for x, u in zip(leaves, us, strict=True)
        ]
        gs = run(tg, tg.Tensor, lambda moved=moved: function_of(moved), moved, process, False)
        rng2 = np.random.default_rng(1)
        values = flat(process(function_of(moved)), tg.Tensor)
        for y in values:
            if is_tracked(y):
                random_like(rng2, y)
        ds = [random_like(rng2, x) for x in leaves]
        expected += sign * sum(np.vdot(d, g).real for d, g in zip(ds, gs.vjp, strict=True) if g is not None)
    expected /= 2 * STEP
    got = sum(np.vdot(g, u).real for g, u in zip(second, us, strict=False) if g is not None)
    if abs(got - expected) > 1e-4 * max(1.0, abs(expected)):
        return f"finite differences give {expected:.8g}, the second-order vjp {got:.8g}"
    return None


def own_leaf(v):
    """The argument; for a view of a tracked tensor, taken while nothing was recorded, a leaf with a gradient of its own."""
    if isinstance(v, torch.Tensor) and v.requires_grad and v._is_view():
        return v.detach().requires_grad_()
    return v


def process_of(sample, ours):
    """What PyTorch does to a result before it is compared: picks what does not depend on a gauge."""
    process = sample.output_process_fn_grad
    if process is None or "lambda x: x" in repr(getattr(process, "__qualname__", "")):
        return identity
    return rebound(process) if ours and isinstance(process, types.FunctionType) else process


def leaves_of(sample):
    everything = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    return [t for t in everything if isinstance(t, torch.Tensor) and t.requires_grad]


# Of a Hermitian or triangular matrix one triangle is read: PyTorch tests gradients of such operations through a wrapper
# that makes the argument of its kind, since what the other triangle gets is a convention.
KINDS_OF_MATRIX = {"gradcheck_wrapper_hermitian_input", "gradcheck_wrapper_triangular_input_real_positive_diagonal"}


def wrapped(op, function, ours):
    """The operation, behind PyTorch's wrapper for matrices of a kind."""
    wrapper = op.gradcheck_wrapper
    if wrapper.__name__ not in KINDS_OF_MATRIX:
        return function
    return functools.partial(rebound(wrapper) if ours else wrapper, function)


class Ours:
    """A sample as a call of tapegrad's operation."""

    def __init__(self, op, sample):
        self.function = wrapped(op, of_tapegrad(op), True)
        self.process = process_of(sample, True)
        self.leaves = []
        self.given = converted((sample.input, sample.args, dict(sample.kwargs)), self.leaves)

    def call(self, moved=None):
        arguments = self.given
        if moved is not None:
            source = iter(moved)
            arguments = tree_map(lambda v: next(source) if isinstance(v, tg.Tensor) and v.requires_grad else v, arguments)
        return self.function(arguments[0], *arguments[1], **arguments[2])

    def run(self, second):
        tg.manual_seed(0)
        return run(tg, tg.Tensor, self.call, self.leaves, self.process, second)


def run_theirs(op, sample, second, perturb=identity):
    def call():
        return wrapped(op, op.op, False)(sample.input, *sample.args, **sample.kwargs)

    torch.manual_seed(0)
    return run(torch, torch.Tensor, call, leaves_of(sample), process_of(sample, False), second, perturb)


def check(op, sample):
    """{quantity: what differs} of one sample."""
    sample.input, sample.args, sample.kwargs = tree_map(own_leaf, (sample.input, sample.args, sample.kwargs))
    numeric = not op.supports_gradgrad or (op.name, op.variant_test_name) in NO_DOUBLE_BACKWARD
    try:
        expected = run_theirs(op, sample, not numeric)
    except (RuntimeError, NotImplementedError) as e:
        if not re.search(NOT_DIFFERENTIABLE, str(e)):
            raise
        numeric = True
        expected = run_theirs(op, sample, False)
    ours = Ours(op, sample)
    got = ours.run(True)
    found = {}
    for quantity in ("value", "vjp", "second"):
        text = unequal(getattr(got, quantity), getattr(expected, quantity))
        if text:
            found[quantity] = text
    if numeric and got.second and all(x.dtype in (tg.float64, tg.complex128) for x in ours.leaves):
        text = numerical_second(ours.call, ours.leaves, ours.process, got.second)
        if text:
            found["second"] = text
    return found


# ---------------------------------------------------------------------------------------------------------- single precision


def relative_error(got, expected):
    """Largest error against the largest element; None where shapes or non-finite places differ, or nothing is finite."""
    worst = 0.0
    for a, b in itertools.zip_longest(got, expected):
        if a is None or b is None or b.dtype.kind not in "fc" or not b.size:
            continue
        finite = np.isfinite(b)
        if a.shape != b.shape or not finite.any() or not np.isfinite(a[finite]).all():
            return None
        scale = np.abs(b[finite]).max()
        worst = max(worst, float(np.abs(a[finite] - b[finite]).max() / scale)) if scale else worst
    return worst


def doubled(v):
    wide = isinstance(v, torch.Tensor) and v.dtype is torch.float32
    return v.detach().double().requires_grad_(v.requires_grad) if wide else v


def rounded(v):
    """doubled() of a float32 tensor whose elements are moved by one unit of float32."""
    wide = doubled(v)
    return wide if wide is v else torch.from_numpy(moved(wide.detach().numpy())).requires_grad_(v.requires_grad)


def moved(a):
    """An array whose elements are moved by one unit of float32, up or down."""
    return np.asarray(a * (1 + UNIT * np.random.choice([-1, 1], a.shape)))


def worse(errors):
    """Whether the first error is more than twice the second; two units of float32 are no error."""
    ours, theirs = errors
    return ours > 2 * theirs + 2 * UNIT


def single_precision(row):
    """{quantity: (our error, PyTorch's)} in float32 against PyTorch's float64: the largest over the row's samples.

    A sample on which we are worse does not count if rounding its numbers, or the cotangents, changes the exact result as
    much: then terms cancel, and whose sum comes out nearer is luck. Nor does one that PyTorch refuses.
    """
    op = INFOS[row.name, row.variant]
    worst = {}
    for sample in samples(op, torch.float32) if torch.float32 in op.supported_dtypes("cpu") else ():
        sample.input, sample.args, sample.kwargs = tree_map(own_leaf, (sample.input, sample.args, sample.kwargs))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exact, theirs = run_theirs(op, sample.transform(doubled), False), run_theirs(op, sample, False)
            except RuntimeError:
                continue
            ours = Ours(op, sample).run(False)
        for quantity in ("value", "vjp"):
            right, *single = (getattr(r, quantity) for r in (exact, ours, theirs))
            errors = [relative_error(r, right) for r in single]
            if None in errors or (worse(errors) and errors[0] <= sensitivity(op, sample, quantity, right)):
                continue
            worst[quantity] = tuple(map(max, worst.get(quantity, (0.0, 0.0)), errors))
    return worst


def sensitivity(op, sample, quantity, right):
    """How much the exact result changes when the sample's numbers are rounded: the most of a few tries."""
    changes = []
    for seed in range(5):
        np.random.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run_theirs(op, sample.transform(rounded), False, moved)
        changes.append(relative_error(getattr(result, quantity), right) or 0.0)
    return max(changes)


def some(cases):
    """Every second of the cases of a long comparison; all of them where the variable COMPAT_ALL is set."""
    return [*cases] if os.environ.get("COMPAT_ALL") else [*cases][::2]


def samples(op, dtype):
    torch.manual_seed(0)
    return op.sample_inputs("cpu", dtype, requires_grad=dtype in op.supported_backward_dtypes(torch.device("cpu").type))


def examine(row, verbose=False):
    """{(dtype, sample number, quantity): what differs} over all samples; None if tapegrad lacks the operation."""
    op = INFOS[row.name, row.variant]
    if of_tapegrad(op) is None:
        return None
    found = {}
    for dtype in (torch.float64, torch.complex128) if row.complex else (torch.float64,):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for k, sample in enumerate(samples(op, dtype)):
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    texts = check(op, sample)
            except Exception as e:
                texts = {"error": f"{type(e).__name__}: {e}"[:300]}
                if verbose:
                    import traceback

                    traceback.print_exc(limit=-4)
            for quantity, text in texts.items():
                found[str(dtype).removeprefix("torch."), k, quantity] = text
                if verbose:
                    print("    ", dtype, k, quantity, text, "|", repr(sample.summary())[:400])
    return found


def print_single(row):
    if of_tapegrad(INFOS[row.name, row.variant]) is not None:
        try:
            worst = single_precision(row)
        except Exception as e:
            worst = f"{type(e).__name__}: {e}"[:200]
        bad = isinstance(worst, str) or any(map(worse, worst.values()))
        print("WORSE" if bad else "fine ", row.title, worst)


def main(arguments):
    verbose = "-v" in arguments
    single = "-s" in arguments
    patterns = [a for a in arguments if a not in ("-v", "-s")]
    covered = total = 0
    for row in rows():
        if patterns and not any(re.fullmatch(p, row.title) or re.fullmatch(p, row.name) for p in patterns):
            continue
        if single:
            print_single(row)
            continue
        total += 1
        found = examine(row, verbose)
        covered += found == {}
        if found is None:
            print(f"missing  {row.title}")
        elif found:
            key, text = next(iter(found.items()))
            print(f"differs  {row.title}  {len(found)}  {' '.join(map(str, key))}: {text}")
        elif patterns:
            print(f"agrees   {row.title}")
        sys.stdout.flush()
    print(f"{covered} of {total} rows agree")


if __name__ == "__main__":
    main(sys.argv[1:])

"""vmap over PyTorch's own sample inputs (opinfo.py), row by row: values and gradients are those of a loop, without a loop.

Every row that still runs some samples one after the other is named with its reason, strictly.
"""

import warnings

import numpy as np
import opinfo
import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import tapegrad as tg

N = 3  # of a batch
SAMPLES = 6  # of a row, or somewhat more, spread over all
LOOPED = "vmap: this line asks"
SHAPE = "the shape of the result depends on values"
TOLERANCES = "tolerances that differ between matrices of a batch are parameters"
POLYNOMIALS = [
    *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
]  # fmt: skip
LEFT_OUT = {
    "chalf", "max_pool2d_with_indices_backward", "sparse.sampled_addmm", "sparse.mm:reduce", "to_sparse", "empty_like",
    "new_empty", "new_empty_strided",
}  # fmt: skip
DTYPES = (torch.float64, torch.complex128, torch.int64)  # the first that an operation takes
LOOPS = {
    "narrow": "a tensor says where the part begins",
    "tensor_split": "a tensor says where the parts begin",
    "repeat_interleave": SHAPE,
    "nn.functional.one_hot": "without num_classes, " + SHAPE,
    "nn.functional.fractional_max_pool2d": "_random_samples say where the windows begin",
    **dict.fromkeys(("item", "allclose", "equal"), "the result is a Python value"),
    **dict.fromkeys(("nonzero", "argwhere", "nonzero_static"), "of a number, " + SHAPE),
    **dict.fromkeys(("unique", "unique_consecutive", "bincount"), SHAPE),
    **dict.fromkeys(("histc", "histogram", "histogramdd"), "the edges follow from the values"),
    **dict.fromkeys(("linspace:tensor_overload", "logspace:tensor_overload"), "tensors say where the row begins and ends"),
    **dict.fromkeys([f"special.{p}" for p in POLYNOMIALS], "tensors say how often the recursion runs"),
    "geqrf": "LAPACK's reflectors, which have no record",
    "linalg.matrix_rank": TOLERANCES,
    "linalg.pinv": TOLERANCES,
}


# With randomness="same" what is drawn may not depend on a sample, as in PyTorch.
REFUSED = {"nn.functional.rrelu", "normal", "normal:number_mean", "bernoulli", "multinomial"}


def usable(row):
    """Whether an operation is there, and takes a tensor."""
    op = opinfo.INFOS[row.name, row.variant]
    if row.title in LEFT_OUT or opinfo.of_tapegrad(op) is None:
        return False
    return row in opinfo.rows() or any(tensors_of(s) for s in op.sample_inputs("cpu", first_dtype(op)))


def first_dtype(op):
    return next((d for d in DTYPES if op.supports_dtype(d, "cpu")), DTYPES[0])


def tensors_of(sample):
    everything = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    return [v for v in everything if isinstance(v, torch.Tensor)]


# The differentiable ones, and the others
KNOWN = {(row.name, row.variant) for row in opinfo.rows()}
OTHERS = [opinfo.Row(*name, False) for name in opinfo.INFOS if name not in KNOWN]
ROWS = [row for row in [*opinfo.rows(), *OTHERS] if usable(row)]


def copies(t):
    """A batch of tensors like t: of its values, scaled a little where that keeps them valid."""
    if t.is_floating_point() or t.is_complex():
        return tg.stack([t, t * 0.875, t * 0.75])
    return tg.stack([t] * N)


def calls(row):
    """Functions of tensors alone, and batches of these."""
    op = opinfo.INFOS[row.name, row.variant]
    function = opinfo.of_tapegrad(op)
    samples = list(op.sample_inputs("cpu", first_dtype(op), requires_grad=False))
    for sample in samples[:: max(1, len(samples) // SAMPLES)]:
        process = opinfo.process_of(sample, True)
        given = opinfo.converted((sample.input, sample.args, dict(sample.kwargs)), [])
        everything, spec = tree_flatten(given)
        at = [i for i, v in enumerate(everything) if isinstance(v, tg.Tensor)]

        def f(*leaves, everything=everything, spec=spec, at=at, process=process):
            args = list(everything)
            for i, t in zip(at, leaves, strict=True):
                args[i] = t
            x, more, kwargs = tree_unflatten(args, spec)
            tg.manual_seed(0)
            return tuple(opinfo.flat(process(function(x, *more, **kwargs)), tg.Tensor))

        if at:
            yield f, [copies(everything[i]) for i in at]


def gradient(f, batches):
    """The gradient function of a sum of f's results by its floating-point arguments; None if there are none."""
    positions = tuple(i for i, b in enumerate(batches) if b.is_floating_point() or b.is_complex())

    def total(*leaves):
        results = [y for y in f(*leaves) if y.is_floating_point() or y.is_complex()]
        return sum([(y.real if y.is_complex() else y).sum() for y in results], tg.zeros((), dtype=tg.float64))

    return tg.func.grad(total, argnums=positions) if positions else None


def in_a_loop(f, batches):
    """Stacked results of f for each member; None where the members are no valid arguments."""
    try:
        rows = [f(*[b[i].clone() for b in batches]) for i in range(N)]
        return [np.stack([opinfo.array_of(t) for t in column]) for column in zip(*rows, strict=True)]
    except (RuntimeError, ValueError, IndexError, np.linalg.LinAlgError):
        return None


def examine(row):
    """(number of batches that ran, what differs, whether vmap looped) of a row."""
    count, differs, looped = 0, [], False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for f, batches in calls(row):
            for g in (f, gradient(f, batches)):
                expected = None if g is None else in_a_loop(g, batches)
                if not expected:
                    continue
                count += 1
                got = tg.func.vmap(g, randomness="same")(*batches)
                text = opinfo.unequal([opinfo.array_of(t) for t in got], expected)
                differs += [text] if text else []
        looped = any(str(w.message).startswith(LOOPED) for w in caught)
    return count, differs, looped


@pytest.mark.parametrize("row", opinfo.some(ROWS), ids=lambda row: row.title)
def test_row(row):
    if row.title in REFUSED:
        with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
            examine(row)
        return
    count, differs, looped = examine(row)
    assert count
    assert not differs
    assert looped == (row.title in LOOPS)


DRAWS = [
    "rand_like(x)", "randn_like(x * 2)", "randint_like(x, 3, 10)", "rand_like(x[0])", "rand_like(x.t())",
    "rand_like(x.reshape(-1))", "rand_like(x.sum())", "zeros_like(x).normal_()", "empty_like(x).random_(10)",
    "zeros_like(x).bernoulli_(0.5)", "zeros_like(x).cauchy_()", "zeros_like(x).log_normal_()",
    "zeros_like(x).geometric_(0.3)", "bernoulli(x / 2)", "poisson(x)", "normal(x, 1.0)",
    "multinomial(x[0], 2)", "nn.functional.dropout(x)", "nn.functional.gumbel_softmax(x, dim=-1)", "randperm(4)", "randn(2)",
]  # fmt: skip


@pytest.mark.parametrize("expression", DRAWS)
def test_draws(expression):
    def drawn(library, dim):
        library.manual_seed(0)

        def draw(x):
            return eval("library." + expression, {"library": library, "x": x})

        return library.func.vmap(draw, in_dims=dim, randomness="different")(library.ones(2, 3, 4)).numpy()

    for dim in (0, 1, 2, -1):
        np.testing.assert_allclose(drawn(tg, dim), drawn(torch, dim), rtol=1e-5, err_msg=f"in_dims={dim}")

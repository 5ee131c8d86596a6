"""PyTorch's own sample inputs in every dtype: the result's dtype, shape and value are PyTorch's.

What differs is listed, strictly: an entry whose samples all agree fails.
"""

import itertools
import re
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
pytest.importorskip("ml_dtypes")
from compat.opinfo import INFOS, array_of, converted, flat, of_tapegrad, some

DTYPES = ["float16", "bfloat16", "float32", "complex64", "int64", "int32", "uint8", "bool"]
TOLERANCE = {"float16": 1e-2, "bfloat16": 6e-2}  # PyTorch rounds between steps; ours once, at the end
RANDOM = re.compile(
    r".*(rand|empty|dropout|bernoulli|normal|multinomial|cauchy|exponential|geometric|uniform|lowrank|rrelu).*"
)
SAMPLES = 3

HALF, WHOLE = ("float16", "bfloat16"), ("int64", "int32", "uint8")
ALL = tuple(DTYPES)
TIES = "which of equal elements comes first, where the order is not asked to be stable"
STATISTICS = "the statistics beside the result stay in float32, in which they are computed"
NO_COMPLEX32 = "NumPy has no complex32"
# name -> (reason, dtypes)
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "sort": (TIES, (*HALF, "uint8", "bool")), "argsort": (TIES, (*HALF, "uint8", "bool")), "kthvalue": (TIES, WHOLE),
    "topk": (TIES, ("bfloat16", *WHOLE)),
    **dict.fromkeys(("native_group_norm", "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit",
                     "_batch_norm_with_update"), (STATISTICS, HALF)),
    "view_as_complex": (NO_COMPLEX32, ("float16",)), "complex": (NO_COMPLEX32, ("float16",)), "chalf": (NO_COMPLEX32, ALL),
    "matrix_exp": ("PyTorch computes in bfloat16", HALF),
    "grid_sampler_2d": ("PyTorch rounds between steps", ("bfloat16",)),
    "grid_sampler_3d": ("PyTorch rounds between steps", HALF),
    "nn.functional.hinge_embedding_loss": ("PyTorch sums in bfloat16", ("bfloat16",)),
    "nn.functional.soft_margin_loss": ("PyTorch's exp overflows", ("float16",)),
    "nn.functional.margin_ranking_loss": ("PyTorch's bytes wrap around", ("uint8",)),
    **dict.fromkeys(("nn.functional.interpolate:bicubic", "_upsample_bilinear2d_aa"),
                    ("PyTorch rounds between the axes", ("uint8",))),
    "as_strided:partial_views": ("the sample's memory is laid out anew", ("bfloat16",)),
}  # fmt: skip
# Eigenvectors have a free sign or phase; the others are no functions of the library.
SKIPPED = {"linalg.eig", "linalg.eigh", "resize_as_", "to_sparse", "max_pool2d_with_indices_backward"}


def difference(op, ours, sample, dtype):
    """What differs on a sample, or None; PyTorch's refusal of a sample is none."""
    try:
        want = flat(op.op(sample.input, *sample.args, **sample.kwargs), torch.Tensor)
    except (RuntimeError, TypeError, ValueError):
        return None
    try:
        got = flat(ours(*converted((sample.input, *sample.args), []), **converted(sample.kwargs, [])), tg.Tensor)
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    if len(want) != len(got):
        return f"{len(got)} results for {len(want)}"
    for w, g in zip(want, got, strict=True):
        if str(w.dtype) != str(g.dtype) or tuple(w.shape) != tuple(g.shape):
            return f"{g.dtype}{list(g.shape)} for {w.dtype}{list(w.shape)}"
        a, b = array_of(g), array_of(w)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0) if b.dtype.kind in "fc" else 1.0
        tolerance = TOLERANCE.get(dtype, 1e-4)
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return "values"
    return None


def supported(dtype):
    """(title, operation, ours, samples) of what both libraries have."""
    torch_dtype = getattr(torch, dtype)
    for (name, variant), op in INFOS.items():
        skipped = RANDOM.match(name) or name in SKIPPED or torch_dtype not in op.supported_dtypes("cpu")
        ours = None if skipped else of_tapegrad(op)
        if ours is not None:
            samples = itertools.islice(op.sample_inputs("cpu", torch_dtype), SAMPLES)
            yield f"{name}:{variant}" if variant else name, op, ours, samples


@pytest.mark.parametrize("dtype", some(DTYPES))
def test_samples(dtype):
    found = {}
    for title, op, ours, samples in supported(dtype):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            texts = [difference(op, ours, s, dtype) for s in samples]
        text = next((t for t in texts if t is not None), None)
        if text is not None:
            found[title] = text
    listed = {title for title, (_, dtypes) in KNOWN.items() if dtype in dtypes}
    assert found.keys() == listed, {title: found.get(title, "agrees") for title in found.keys() ^ listed}

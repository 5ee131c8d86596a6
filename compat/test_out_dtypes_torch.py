"""`out=` in all dtypes: whether the result may be written into it, and the dtype of what comes back.

What differs is listed, strictly: a name that no longer differs fails.
"""

import functools
import inspect
import itertools
import warnings

import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")
from variations import DTYPES, differ, dtype_name, kind_of, outcome

# Calls of which the first that PyTorch takes is compared
FORMS = [
    lambda f, x: f(x),
    lambda f, x: f(x, x),
    lambda f, x: f(x, 0),
    lambda f, x: f(x, 2),
    lambda f, x: f(x.reshape(2, 2)),
    lambda f, x: f(x.reshape(2, 2), x.reshape(2, 2)),
    lambda f, x: f([x, x]),
]
# PyTorch asks for one dtype; here results are converted as by other writes, never to a lower category
ACCEPTED = """
    abs absolute alias_copy all amax amin any argmax argmin bucketize ceil complex conj_physical detach_copy diag
    diagonal_copy dot dsmm fix float_power floor frac heaviside histc inner inverse isneginf isposinf logcumsumexp matmul
    mm msort multinomial mvlgamma nan_to_num nanmean nanquantile neg negative nonzero norm normal polar quantile
    round searchsorted sgn sign signbit slice_copy slice_scatter spmm squeeze_copy std t_copy tril triu trunc
    unsqueeze_copy var vdot view_as_complex_copy linalg.det linalg.eigvalsh linalg.inv linalg.matmul
    linalg.matrix_norm linalg.multi_dot linalg.norm linalg.pinv linalg.solve linalg.svdvals linalg.vecdot
    linalg.vector_norm special.multigammaln special.round fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ihfft fft.ihfftn
    fft.irfft fft.irfft2 fft.irfftn nn.functional.logsigmoid
"""
# PyTorch lowers the category: uint8 to bool, complex to real
REFUSED = """
    all any chain_matmul logsumexp special.logsumexp
"""


def function(library, name):
    return functools.reduce(getattr, name.split("."), library)


def written(library, name, form, a, b, shape):
    """[(dtype, shape)] of a result of numbers of dtype a, written into dtype b, or the text of the error."""
    out = library.zeros(shape, dtype=getattr(library, b))
    x = library.tensor([1, 2, 3, 5]).to(getattr(library, a))
    result = outcome(form, functools.partial(function(library, name), out=out), x)
    return result if isinstance(result, str) else [(dtype_name(result), tuple(result.shape), result is out)]


def form_of(name):
    """The first call that gives a tensor and takes `out`, and the shape of its result."""
    x = torch.tensor([1.0, 2.0, 3.0, 5.0])
    for form in FORMS:
        result = outcome(form, function(torch, name), x)
        if isinstance(result, torch.Tensor) and not isinstance(
            written(torch, name, form, "float32", dtype_of(result), ()), str
        ):
            return form, tuple(result.shape)
    return None


def dtype_of(t):
    return str(t.dtype).removeprefix("torch.")


def names():
    """Names of functions with `out` in both libraries."""
    for prefix in ("", "linalg.", "special.", "fft.", "nn.functional."):
        ours, theirs = (function(library, prefix[:-1]) if prefix else library for library in (tg, torch))
        for name in sorted(dir(ours)):
            f = getattr(ours, name)
            plain = callable(f) and not inspect.isclass(f) and not name.startswith(("_", "empty"))
            if plain and hasattr(theirs, name) and "out" in inspect.signature(f).parameters:
                yield prefix + name


def found_for(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        form = form_of(name)
        found = {}
        for a, b in itertools.product(DTYPES, DTYPES) if form else ():
            theirs, got = (written(library, name, form[0], a, b, form[1]) for library in (torch, tg))
            if differ(theirs, got) and (kind := kind_of(theirs, got)):
                found.setdefault(kind, (a, b, theirs, got))
        return found


NAMES = list(names())


@pytest.mark.parametrize("name", NAMES)
def test_out(name):
    found = found_for(name)
    listed = {kind for kind, known in (("accepted", ACCEPTED), ("refused", REFUSED)) if name in known.split()}
    assert found.keys() == listed, found


def test_known_differences_are_of_what_is_run():
    assert {*ACCEPTED.split(), *REFUSED.split()} <= {*NAMES}

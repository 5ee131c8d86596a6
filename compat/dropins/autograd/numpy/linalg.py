"""numpy.linalg, whose functions take boxes."""

import numpy as _np

from autograd.numpy import numpy_wrapper as _anp
from autograd.numpy.numpy_wrapper import wrap_namespace as _wrap_namespace
from autograd.tracer import composed as _composed

_wrap_namespace(_np.linalg.__dict__, globals())


def T(x):
    """The last two dimensions exchanged."""
    return _anp.swapaxes(x, -1, -2)


def _dot(a, b):
    return _anp.einsum("...ij,...jk->...ik", a, b)


def _hermitian(x, UPLO):
    """The Hermitian matrix that eigh takes x for: one triangle counts, and the gradient is in that triangle."""
    half, part = (_anp.tril(x), _anp.tril(x, -1)) if UPLO.upper() == "L" else (_anp.triu(x), _anp.triu(x, 1))
    return half + _anp.conj(T(part))


_eigh, _eigvalsh = eigh, eigvalsh  # noqa: F821 (names of numpy.linalg)
eigh = _composed(_np.linalg.eigh, lambda a, UPLO="L": _eigh(_hermitian(a, UPLO), UPLO))
eigvalsh = _composed(_np.linalg.eigvalsh, lambda a, UPLO="L": _eigvalsh(_hermitian(a, UPLO), UPLO))

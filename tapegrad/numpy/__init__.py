"""NumPy's functions on tensors, under NumPy's names and those of the Python array API standard.

Functions take tensors, arrays, numbers and nested lists, and give tensors; all are recorded. Numbers and lists become
float64, int64, complex128 or bool, as in NumPy. NumPy's own functions do the same for tensors.
"""

from ..later import mark as _mark
from . import fft as fft
from . import linalg as linalg
from . import namespace

__all__ = ["fft", "linalg", *namespace.PAGE]
__array_api_version__ = namespace.__array_api_version__
__array_namespace_info__ = namespace.__array_namespace_info__
globals().update(namespace.PAGE)


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()

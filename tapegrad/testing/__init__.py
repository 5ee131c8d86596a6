"""Laws that every record of the op table obeys, for the library's own operations and for users' custom ones.

A law is a function of (op, arrays, params) that raises `LawError` where it is broken; `op` is a record or its name:

    from tapegrad import testing
    testing.check(op)                                # every law on every sample of a record
    testing.vjp("mul", (np.ones(3), np.ones(3)))     # one law on one input
    testing.check_grads(f, inputs, order=2)          # derivatives of any function of tensors

Cotangents and directions are random but fixed by the op's name and the input's shapes, so a failure repeats. Finite
differences are taken in float64, with step 1 where the record is linear or bilinear (they are exact there).
"""

from ..later import mark as _mark
from ..table.samples.common import Sample as Sample
from .check import applicable as applicable
from .check import check as check
from .comparison import assert_allclose as assert_allclose
from .comparison import assert_close as assert_close
from .comparison import make_tensor as make_tensor
from .compiled import compiled as compiled
from .differences import as_function as as_function
from .differences import check_grads as check_grads
from .law import LAWS as LAWS
from .law import LawError as LawError
from .law import samples_of as samples_of
from .law import source as source
from .reverse import broadcasting as broadcasting
from .reverse import connected as connected
from .reverse import dtypes as dtypes
from .reverse import half_dtypes as half_dtypes
from .reverse import linearity as linearity
from .reverse import only_asked as only_asked
from .reverse import purity as purity
from .reverse import recorded as recorded
from .reverse import saves_necessary as saves_necessary
from .reverse import saves_sufficient as saves_sufficient
from .reverse import second_order as second_order
from .reverse import strong_zero as strong_zero
from .reverse import third_order as third_order
from .reverse import unconnected as unconnected
from .reverse import value as value
from .reverse import vjp as vjp
from .running import call as call
from .running import cotangents_for as cotangents_for
from .running import differentiable as differentiable
from .running import forward as forward
from .running import generator as generator
from .running import inner as inner
from .running import is_inexact as is_inexact
from .running import leaf as leaf
from .running import narrowed as narrowed
from .running import random_like as random_like
from .running import same as same
from .running import vjp_of as vjp_of
from .running import wrap_copy as wrap_copy
from .transforms import adjoint as adjoint
from .transforms import jvp as jvp
from .transforms import laplacian as laplacian
from .transforms import mixed_orders as mixed_orders
from .transforms import taylor as taylor
from .transforms import vmap as vmap

__all__ = [
    "LAWS", "LawError", "Sample", "assert_allclose", "assert_close", "check", "check_grads", "make_tensor", "samples_of",
    "saves_necessary",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()

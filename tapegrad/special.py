"""torch.special's names: the operations of `functions.special` and a few others, under the names they have there."""

from __future__ import annotations

from .functions.elementwise import round as round
from .functions.reduce import log_softmax as log_softmax
from .functions.reduce import logsumexp as logsumexp
from .functions.reduce import softmax as softmax
from .functions.special import airy_ai as airy_ai
from .functions.special import bessel_j0 as bessel_j0
from .functions.special import bessel_j1 as bessel_j1
from .functions.special import bessel_y0 as bessel_y0
from .functions.special import bessel_y1 as bessel_y1
from .functions.special import chebyshev_polynomial_t as chebyshev_polynomial_t
from .functions.special import chebyshev_polynomial_u as chebyshev_polynomial_u
from .functions.special import chebyshev_polynomial_v as chebyshev_polynomial_v
from .functions.special import chebyshev_polynomial_w as chebyshev_polynomial_w
from .functions.special import erfcx as erfcx
from .functions.special import hermite_polynomial_h as hermite_polynomial_h
from .functions.special import hermite_polynomial_he as hermite_polynomial_he
from .functions.special import igamma, igammac, mvlgamma
from .functions.special import laguerre_polynomial_l as laguerre_polynomial_l
from .functions.special import legendre_polynomial_p as legendre_polynomial_p
from .functions.special import logit as logit
from .functions.special import modified_bessel_k0 as modified_bessel_k0
from .functions.special import modified_bessel_k1 as modified_bessel_k1
from .functions.special import polygamma as polygamma
from .functions.special import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from .functions.special import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from .functions.special import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from .functions.special import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from .functions.special import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from .functions.special import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w
from .functions.special import sinc as sinc
from .functions.special import spherical_bessel_j0 as spherical_bessel_j0
from .functions.special import xlog1py as xlog1py
from .functions.special import xlogy as xlogy
from .functions.special import zeta as zeta
from .table.elementwise import erf as erf
from .table.elementwise import erfc as erfc
from .table.elementwise import exp2 as exp2
from .table.elementwise import expm1 as expm1
from .table.elementwise import log1p as log1p
from .table.elementwise import ndtr as ndtr
from .table.elementwise import sigmoid
from .table.special import digamma as digamma
from .table.special import entr as entr
from .table.special import erfinv as erfinv
from .table.special import i0 as i0
from .table.special import i0e as i0e
from .table.special import i1 as i1
from .table.special import i1e as i1e
from .table.special import lgamma
from .table.special import log_ndtr as log_ndtr
from .table.special import ndtri as ndtri

psi, gammaln, multigammaln, expit, gammainc, gammaincc = digamma, lgamma, mvlgamma, sigmoid, igamma, igammac
modified_bessel_i0, modified_bessel_i1 = i0, i1


def __dir__() -> list[str]:
    return sorted([n for n in globals() if not n.startswith("_") and n != "annotations"])

"""torch.special's names: the operations of `ops.special` and a few others, under the names they have there."""

from __future__ import annotations

from .ops.elementwise import erf as erf
from .ops.elementwise import erfc as erfc
from .ops.elementwise import exp2 as exp2
from .ops.elementwise import expm1 as expm1
from .ops.elementwise import log1p as log1p
from .ops.elementwise import ndtr as ndtr
from .ops.elementwise import round as round
from .ops.elementwise import sigmoid
from .ops.reduce import log_softmax as log_softmax
from .ops.reduce import logsumexp as logsumexp
from .ops.reduce import softmax as softmax
from .ops.special import airy_ai as airy_ai
from .ops.special import bessel_j0 as bessel_j0
from .ops.special import bessel_j1 as bessel_j1
from .ops.special import bessel_y0 as bessel_y0
from .ops.special import bessel_y1 as bessel_y1
from .ops.special import chebyshev_polynomial_t as chebyshev_polynomial_t
from .ops.special import chebyshev_polynomial_u as chebyshev_polynomial_u
from .ops.special import chebyshev_polynomial_v as chebyshev_polynomial_v
from .ops.special import chebyshev_polynomial_w as chebyshev_polynomial_w
from .ops.special import digamma as digamma
from .ops.special import entr as entr
from .ops.special import erfcx as erfcx
from .ops.special import erfinv as erfinv
from .ops.special import hermite_polynomial_h as hermite_polynomial_h
from .ops.special import hermite_polynomial_he as hermite_polynomial_he
from .ops.special import i0 as i0
from .ops.special import i0e as i0e
from .ops.special import i1 as i1
from .ops.special import i1e as i1e
from .ops.special import igamma, igammac, lgamma, mvlgamma
from .ops.special import laguerre_polynomial_l as laguerre_polynomial_l
from .ops.special import legendre_polynomial_p as legendre_polynomial_p
from .ops.special import log_ndtr as log_ndtr
from .ops.special import logit as logit
from .ops.special import modified_bessel_k0 as modified_bessel_k0
from .ops.special import modified_bessel_k1 as modified_bessel_k1
from .ops.special import ndtri as ndtri
from .ops.special import polygamma as polygamma
from .ops.special import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from .ops.special import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from .ops.special import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from .ops.special import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from .ops.special import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from .ops.special import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w
from .ops.special import sinc as sinc
from .ops.special import spherical_bessel_j0 as spherical_bessel_j0
from .ops.special import xlog1py as xlog1py
from .ops.special import xlogy as xlogy
from .ops.special import zeta as zeta

psi, gammaln, multigammaln, expit, gammainc, gammaincc = digamma, lgamma, mvlgamma, sigmoid, igamma, igammac
modified_bessel_i0, modified_bessel_i1 = i0, i1


def __dir__() -> list[str]:
    return sorted([n for n in globals() if not n.startswith("_") and n != "annotations"])

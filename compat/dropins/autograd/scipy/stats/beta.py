"""The beta distribution."""

import scipy.stats

import autograd.numpy as np
from autograd.scipy import special
from autograd.tracer import composed

_scipy = scipy.stats.beta


def _log_density(x, a, b):
    return special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b)


pdf = composed(_scipy.pdf, lambda x, a, b: np.exp(_log_density(x, a, b)))
logpdf = composed(_scipy.logpdf, _log_density)
cdf = composed(_scipy.cdf, lambda x, a, b: special.betainc(a, b, x))

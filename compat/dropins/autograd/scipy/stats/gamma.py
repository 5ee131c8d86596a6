"""The gamma distribution."""

import scipy.stats

import autograd.numpy as np
from autograd.scipy import special
from autograd.tracer import composed

_scipy = scipy.stats.gamma


def _log_density(x, a):
    return special.xlogy(a - 1.0, x) - x - special.gammaln(a)


pdf = composed(_scipy.pdf, lambda x, a: np.exp(_log_density(x, a)))
logpdf = composed(_scipy.logpdf, _log_density)
cdf = composed(_scipy.cdf, lambda x, a: special.gammainc(a, x))

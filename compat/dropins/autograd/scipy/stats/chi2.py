"""The chi-squared distribution."""

import math

import scipy.stats

import autograd.numpy as np
from autograd.scipy import special
from autograd.tracer import composed

_scipy = scipy.stats.chi2


def _log_density(x, df):
    return special.xlogy(df / 2.0 - 1.0, x) - x / 2.0 - special.gammaln(df / 2.0) - df / 2.0 * math.log(2.0)


pdf = composed(_scipy.pdf, lambda x, df: np.exp(_log_density(x, df)))
logpdf = composed(_scipy.logpdf, _log_density)
cdf = composed(_scipy.cdf, lambda x, df: special.gammainc(df / 2.0, x / 2.0))

"""Student's t distribution."""

import math

import scipy.stats

import autograd.numpy as np
from autograd.scipy import special
from autograd.tracer import composed

_scipy = scipy.stats.t


def _log_density(x, df, loc=0.0, scale=1.0):
    z = (x - loc) / scale
    constant = special.gammaln((df + 1.0) / 2.0) - special.gammaln(df / 2.0) - 0.5 * np.log(df * math.pi) - np.log(scale)
    return constant - (df + 1.0) / 2.0 * np.log1p(z**2 / df)


pdf = composed(_scipy.pdf, lambda x, df, loc=0.0, scale=1.0: np.exp(_log_density(x, df, loc, scale)))
logpdf = composed(_scipy.logpdf, _log_density)
cdf = composed(_scipy.cdf, lambda x, df, loc=0.0, scale=1.0: special.stdtr(df, (x - loc) / scale))
logcdf = composed(_scipy.logcdf, lambda x, df, loc=0.0, scale=1.0: np.log(special.stdtr(df, (x - loc) / scale)))

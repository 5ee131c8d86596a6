"""The normal distribution."""

import math

import scipy.stats

import autograd.numpy as np
from autograd.scipy import special
from autograd.tracer import composed

_scipy = scipy.stats.norm


def _log_density(x, loc=0.0, scale=1.0):
    return -(((x - loc) / scale) ** 2) / 2.0 - np.log(scale) - 0.5 * math.log(2.0 * math.pi)


pdf = composed(_scipy.pdf, lambda x, loc=0.0, scale=1.0: np.exp(_log_density(x, loc, scale)))
logpdf = composed(_scipy.logpdf, _log_density)
cdf = composed(_scipy.cdf, lambda x, loc=0.0, scale=1.0: special.ndtr((x - loc) / scale))
logcdf = composed(_scipy.logcdf, lambda x, loc=0.0, scale=1.0: special.log_ndtr((x - loc) / scale))
sf = composed(_scipy.sf, lambda x, loc=0.0, scale=1.0: special.ndtr((loc - x) / scale))
logsf = composed(_scipy.logsf, lambda x, loc=0.0, scale=1.0: special.log_ndtr((loc - x) / scale))

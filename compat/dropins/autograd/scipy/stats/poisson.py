"""The Poisson distribution."""

import scipy.stats

import autograd.numpy as np
from autograd.scipy import special
from autograd.tracer import composed

_scipy = scipy.stats.poisson


def _log_mass(k, mu):
    whole = np.floor(k)
    return np.where(k == whole, special.xlogy(whole, mu) - special.gammaln(whole + 1.0) - mu, -np.inf)


pmf = composed(_scipy.pmf, lambda k, mu: np.exp(_log_mass(k, mu)))
logpmf = composed(_scipy.logpmf, _log_mass)
cdf = composed(_scipy.cdf, lambda k, mu: special.gammaincc(np.floor(k) + 1.0, mu))

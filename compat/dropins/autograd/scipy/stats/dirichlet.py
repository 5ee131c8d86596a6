"""The Dirichlet distribution."""

import scipy.stats

import autograd.numpy as np
from autograd.scipy import special
from autograd.tracer import composed

_scipy = scipy.stats.dirichlet


def _log_density(x, alpha):
    if np.shape(x)[0] == np.shape(alpha)[0] - 1:
        x = np.concatenate([x, 1.0 - np.sum(x, 0, keepdims=True)])
    constant = special.gammaln(np.sum(alpha)) - np.sum(special.gammaln(alpha))
    return constant + np.sum(special.xlogy(alpha - 1.0, np.transpose(x)), -1)


rvs = _scipy.rvs
pdf = composed(_scipy.pdf, lambda x, alpha: np.exp(_log_density(x, alpha)))
logpdf = composed(_scipy.logpdf, _log_density)

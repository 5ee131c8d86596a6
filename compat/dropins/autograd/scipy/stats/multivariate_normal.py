"""The multivariate normal distribution."""

import math

import numpy as _np
import scipy.stats

import autograd.numpy as np
from autograd.tracer import composed, isbox

_scipy = scipy.stats.multivariate_normal
LOG_2PI = math.log(2.0 * math.pi)


def _matrix(cov, size):
    """The covariance, which may be given as a number or a diagonal, as a matrix."""
    return cov if np.ndim(cov) == 2 else cov * np.eye(size)


def _log_density(x, mean=0.0, cov=1.0, allow_singular=False):
    v = np.atleast_1d(x - mean)
    size = np.shape(cov)[0] if np.ndim(cov) else np.shape(v)[-1]
    v = v[..., None] if np.shape(v)[-1] != size else v  # numbers, each a sample
    cov = _matrix(cov, size)
    if allow_singular:
        return _singular(v, cov)
    solved = np.transpose(np.linalg.solve(cov, np.transpose(np.atleast_2d(v))))
    distance = np.sum(np.reshape(solved, np.shape(v)) * v, -1)
    return -0.5 * (distance + size * LOG_2PI + np.linalg.slogdet(cov)[1])


def _singular(v, cov):
    """The density in the space that a covariance which may be singular spans, as SciPy takes it."""
    if isbox(cov):
        raise NotImplementedError("the density is not differentiable w.r.t. a singular covariance matrix")
    values, vectors = _np.linalg.eigh(cov)
    spanned = values > 1e6 * _np.finfo(float).eps * _np.abs(values).max()
    distance = np.sum(np.dot(v, vectors[:, spanned] / _np.sqrt(values[spanned])) ** 2, -1)
    off = np.sqrt(np.sum(np.dot(v, vectors[:, ~spanned]) ** 2, -1)) >= 1e6 * _np.finfo(float).eps * _np.abs(values).max()
    density = -0.5 * (distance + spanned.sum() * LOG_2PI + _np.log(values[spanned]).sum())
    return np.where(off, -np.inf, density)


def _entropy(mean=None, cov=1.0):
    size = np.shape(cov)[0] if np.ndim(cov) else np.size(mean)
    return 0.5 * (size * (1.0 + LOG_2PI) + np.linalg.slogdet(_matrix(cov, size))[1])


def _density(x, mean=0.0, cov=1.0, allow_singular=False):
    return np.exp(_log_density(x, mean, cov, allow_singular))


pdf = composed(_scipy.pdf, _density)
logpdf = composed(_scipy.logpdf, _log_density)
entropy = composed(_scipy.entropy, _entropy)

"""KL divergences of the gamma, beta and count families and of the multivariate normal; see `pairs`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import linalg
from ..programs.tracing import examined
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exponential import Exponential
from .functions import diag_embed, digamma, where, xlogy
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, half_log_det
from .normal import Normal
from .pairs import (
    register_infinite,
    to_continuous_bernoulli,
    to_exponential,
    to_gumbel,
    to_normal,
    to_uniform,
)
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

MeanLog = Callable[[Any], Any]

# -------------------------------------------------------------------------------- from any p with these expectations


def to_gamma(mean_log: MeanLog) -> Callable[[Any, Any], Any]:
    """KL(p || Gamma) from the mean of p on [0, inf) and mean_log(p), the mean of the logarithm."""

    def divergence(p: Any, q: Any) -> Any:
        a, rate = q.concentration, q.rate
        return rate * p.mean - (a - 1) * mean_log(p) - a * rate.log() + a.lgamma() - p.entropy()

    return divergence


def to_beta(mean_log: MeanLog, mean_log_rest: MeanLog) -> Callable[[Any, Any], Any]:
    """KL(p || Beta) from the means of log(x) and log(1 - x) under p on [0, 1]."""

    def divergence(p: Any, q: Any) -> Any:
        a, b = q._natural_params
        return q._log_normalizer(a, b) - (a - 1) * mean_log(p) - (b - 1) * mean_log_rest(p) - p.entropy()

    return divergence


def _beta_mean_log(p: Any) -> Any:
    return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)


def _beta_mean_log_rest(p: Any) -> Any:
    return digamma(p.concentration0) - digamma(p.concentration1 + p.concentration0)


def _gamma_mean_log(p: Any) -> Any:
    return digamma(p.concentration) - p.rate.log()


def _exponential_mean_log(p: Any) -> Any:
    return -p.rate.log() - euler_constant


def _pareto_mean_log(p: Any) -> Any:
    return p.scale.log() + p.alpha.reciprocal()


def _mean_log_between(low: Any, high: Any) -> Any:
    """The mean of log(x) for x uniform on [low, high]."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


def _uniform_mean_log(p: Any) -> Any:
    return _mean_log_between(p.low, p.high)


register_kl(Beta, Beta)(to_beta(_beta_mean_log, _beta_mean_log_rest))
register_kl(Beta, ContinuousBernoulli)(to_continuous_bernoulli)
register_kl(Beta, Exponential)(to_exponential)
register_kl(Beta, Gamma)(to_gamma(_beta_mean_log))
register_kl(Beta, Normal)(to_normal)
register_kl(Beta, Uniform)(to_uniform)
register_kl(Gamma, Gamma)(to_gamma(_gamma_mean_log))
register_kl(Gamma, Exponential)(to_exponential)
register_kl(Gamma, Normal)(to_normal)
register_kl(Exponential, Gamma)(to_gamma(_exponential_mean_log))


@register_kl(Gamma, Gumbel)
@to_gumbel
def _gamma_gumbel(p: Any, q: Any) -> Any:
    return (q.loc / q.scale - p.concentration * (1 / (p.rate * q.scale)).log1p()).exp()


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    return where(p.alpha <= 1, math.inf, to_gamma(_pareto_mean_log)(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    return where(p.low < 0, math.inf, to_gamma(_uniform_mean_log)(p, q))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    inner = to_beta(_uniform_mean_log, lambda p: _mean_log_between(1 - p.high, 1 - p.low))(p, q)
    return where((p.low < 0) | (p.high > 1), math.inf, inner)


register_infinite(Beta, Pareto)
register_infinite(Exponential, Beta)
register_infinite(Gamma, Beta, ContinuousBernoulli, Pareto, Uniform)
register_infinite(Gumbel, Beta, Gamma)
register_infinite(Laplace, Beta, Gamma)
register_infinite(Normal, Beta, Gamma)
register_infinite(Pareto, Beta)
register_infinite(Poisson, Bernoulli, Binomial)

# ------------------------------------------------------------------------------------------------------------- counts


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Any, q: Any) -> Any:
    if examined(p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * one)


# ------------------------------------------------------------------------------------------------------------ vectors


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    mean_log = digamma(a) - digamma(a.sum(-1, keepdim=True))
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * mean_log).sum(-1)


def _log_det(p: Any) -> Any:
    return p._log_det if isinstance(p, LowRankMultivariateNormal) else 2 * half_log_det(p._unbroadcasted_scale_tril)


def _factors(p: Any) -> list[Any]:
    """Matrices A_i such that the covariance is the sum of A_i @ A_i^T."""
    if isinstance(p, LowRankMultivariateNormal):
        return [p._unbroadcasted_cov_factor, diag_embed(p._unbroadcasted_cov_diag.sqrt())]
    return [p._unbroadcasted_scale_tril]


def _squares(x: Any) -> Any:
    return x.pow(2).sum((-2, -1))


def _trace(q: Any, factor: Any) -> Any:
    """trace(inverse covariance of q @ factor @ factor^T)."""
    if isinstance(q, LowRankMultivariateNormal):
        scaled = factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
        return _squares(scaled) - _squares(q._reduced @ factor)
    return _squares(linalg.solve_triangular(q._unbroadcasted_scale_tril, factor, upper=False))


def _normal_vectors(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        low = "Low Rank " if isinstance(p, LowRankMultivariateNormal) and isinstance(q, LowRankMultivariateNormal) else ""
        raise ValueError(
            f"KL-divergence between two {low}Multivariate Normals with different event shapes cannot be computed: "
            f"{p.event_shape} and {q.event_shape}"
        )
    d = q.loc - p.loc
    low_rank = isinstance(q, LowRankMultivariateNormal)
    distance = q._mahalanobis(d) if low_rank else _batch_mahalanobis(q._unbroadcasted_scale_tril, d)
    trace = sum(_trace(q, factor) for factor in _factors(p))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_normal_vectors)

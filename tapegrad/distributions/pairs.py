"""KL divergences of pairs of families.

If log q(x) is linear in 1, x, x**2 or exp(-x), KL(p || q) = -entropy(p) - E_p[log q(x)] for every p for which these
expectations are known. Other formulas: M. Gil, F. Alajaji and T. Linder, "Rényi divergence measures for commonly used
univariate continuous distributions", Information Sciences 249 (2013); F. Chyzak and F. Nielsen, arXiv:1905.10965 (Cauchy).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..functions.properties import broadcast_shapes
from ..special import xlogy
from .bernoulli import Bernoulli
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .functions import full, where
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, log1pexp


def infinite(p: Any, q: Any) -> Any:
    """inf: p has values outside the support of q."""
    return full(broadcast_shapes(p.batch_shape, q.batch_shape), math.inf, dtype=p.mean.dtype)


def register_infinite(p: type, *qs: type) -> None:
    """Register an infinite divergence of p from each of these types."""
    for q in qs:
        register_kl(p, q)(infinite)


# -------------------------------------------------------------------------------- from any p with these expectations


def to_normal(p: Any, q: Any) -> Any:
    """KL(p || Normal) from the mean and variance of p."""
    distance = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    return distance + q.scale.log() + 0.5 * math.log(2 * math.pi) - p.entropy()


def to_exponential(p: Any, q: Any) -> Any:
    """KL(p || Exponential) from the mean of p on [0, inf)."""
    return q.rate * p.mean - q.rate.log() - p.entropy()


def to_uniform(p: Any, q: Any) -> Any:
    """KL(p || Uniform) from the support of p, an interval."""
    inside = (q.low <= p.support.lower_bound) & (q.high >= p.support.upper_bound)
    return where(inside, (q.high - q.low).log() - p.entropy(), math.inf)


def to_gumbel(mean_of_exp: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """KL(p || Gumbel) from the mean of p and mean_of_exp(p, q) = E_p[exp(-(x - q.loc) / q.scale)]."""
    return lambda p, q: (p.mean - q.loc) / q.scale + mean_of_exp(p, q) + q.scale.log() - p.entropy()


def to_continuous_bernoulli(p: Any, q: Any) -> Any:
    """KL(p || ContinuousBernoulli) from the mean of p on [0, 1]."""
    return -(p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm()) - p.entropy()


for _p in (ContinuousBernoulli, Exponential, Gumbel, Laplace, Pareto, Uniform):
    register_kl(_p, Normal)(to_normal)
for _p in (ContinuousBernoulli, Pareto):
    register_kl(_p, Exponential)(to_exponential)
for _p in (ContinuousBernoulli, Uniform):
    register_kl(_p, Uniform)(to_uniform)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    return where(p.low < 0, math.inf, to_exponential(p, q))


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    return where((p.low < 0) | (p.high > 1), math.inf, to_continuous_bernoulli(p, q))


@register_kl(Exponential, Gumbel)
@to_gumbel
def _exponential_gumbel(p: Any, q: Any) -> Any:
    return (q.loc / q.scale).exp() * p.rate * q.scale / (p.rate * q.scale + 1)


@register_kl(Gumbel, Gumbel)
@to_gumbel
def _gumbel_gumbel(p: Any, q: Any) -> Any:
    return ((q.loc - p.loc) / q.scale + (1 + p.scale / q.scale).lgamma()).exp()


@register_kl(Normal, Gumbel)
@to_gumbel
def _normal_gumbel(p: Any, q: Any) -> Any:
    return ((q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale) ** 2).exp()


@register_kl(Uniform, Gumbel)
@to_gumbel
def _uniform_gumbel(p: Any, q: Any) -> Any:
    return q.scale / (p.high - p.low) * (((q.loc - p.low) / q.scale).exp() - ((q.loc - p.high) / q.scale).exp())


# ------------------------------------------------------------------------------------------------------ of one family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Any, q: Any) -> Any:
    ones = p.probs * (log1pexp(-q.logits) - log1pexp(-p.logits))
    ones = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, ones))
    zeros = (1 - p.probs) * (log1pexp(q.logits) - log1pexp(p.logits))
    return ones + where(p.probs == 1, 0.0, where(q.probs == 1, math.inf, zeros))


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    return where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, terms)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_one_hot(p: Any, q: Any) -> Any:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    normalisers = p._cont_bern_log_norm() + (-p.probs).log1p() - q._cont_bern_log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + normalisers


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Normal, Normal)
def _normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal_half_normal(p: Any, q: Any) -> Any:
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Any, q: Any) -> Any:
    d = p.loc - q.loc
    d = where(d < 0, -d, d)  # abs has derivative 0 at 0, and the second derivative here needs a one-sided slope
    return d / q.scale + p.scale / q.scale * (-d / p.scale).exp() - (p.scale / q.scale).log() - 1


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, result)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


# ----------------------------------------------------------------------------------------------------- of two families


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    d = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * d * d).exp() + d * (math.sqrt(0.5) * d).erf())
    return distance / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    mean_log = (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / width - 1
    result = (q.alpha + 1) * mean_log - (q.alpha * q.scale.pow(q.alpha) * width).log()
    return where(p.low < q.scale, math.inf, result)


register_infinite(ContinuousBernoulli, Pareto)
register_infinite(Exponential, ContinuousBernoulli, Pareto, Uniform)
register_infinite(Gumbel, ContinuousBernoulli, Exponential, Pareto, Uniform)
register_infinite(Laplace, ContinuousBernoulli, Exponential, Pareto, Uniform)
register_infinite(Normal, ContinuousBernoulli, Exponential, Pareto, Uniform)
register_infinite(Pareto, ContinuousBernoulli, Uniform)


# ---------------------------------------------------------------------------------------------------------- composed


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    value, gradients = p._normalizer_and_gradient()
    result = q._log_normalizer(*q._natural_params) - value
    for own, other, gradient in zip(p._natural_params, q._natural_params, gradients, strict=True):
        term = (other - own) * gradient
        result = result - _sum_rightmost(term, term.dim() - len(broadcast_shapes(p.batch_shape, q.batch_shape)))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL(p || q) of transformed distributions needs the same transforms and event shapes")
    missing = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), missing)


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL(p || q) of Independent distributions needs the same reinterpreted_batch_ndims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)

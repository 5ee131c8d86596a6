"""Probability distributions under PyTorch's names (torch.distributions).

A family has `sample` (random values), `rsample` (with the gradient of the parameters, of any order), `log_prob`, and what
exists of `cdf`, `icdf`, `entropy`, `mean`, `mode`, `variance`; `kl_divergence` compares two. From one seed, samples are
those of PyTorch on the CPU.
"""

from . import constraints
from . import pairs as _pairs  # registers the divergences
from .bernoulli import Bernoulli
from .categorical import Categorical
from .cauchy import Cauchy
from .constraint_registry import biject_to, transform_to
from .continuous_bernoulli import ContinuousBernoulli
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .generalized_pareto import GeneralizedPareto
from .geometric import Geometric
from .gumbel import Gumbel
from .half_cauchy import HalfCauchy
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .kumaraswamy import Kumaraswamy
from .laplace import Laplace
from .log_normal import LogNormal
from .logistic_normal import LogisticNormal
from .mixture_same_family import MixtureSameFamily
from .normal import Normal
from .one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from .pareto import Pareto
from .relaxed_bernoulli import RelaxedBernoulli
from .relaxed_categorical import RelaxedOneHotCategorical
from .transformed_distribution import TransformedDistribution
from .transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from .uniform import Uniform
from .weibull import Weibull

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "CatTransform", "Categorical", "Cauchy", "ComposeTransform",
    "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Distribution", "ExpTransform",
    "Exponential", "ExponentialFamily", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
    "Independent", "IndependentTransform", "Kumaraswamy", "Laplace", "LogNormal", "LogisticNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "Weibull", "biject_to",
    "constraints", "identity_transform", "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip

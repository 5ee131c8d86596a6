"""Probability distributions under PyTorch's names (torch.distributions).

A family has `sample` (random values), `rsample` (with the gradient of the parameters, of any order), `log_prob`, and what
exists of `cdf`, `icdf`, `entropy`, `mean`, `mode`, `variance`; `kl_divergence` compares two. From one seed, samples are
those of PyTorch on the CPU.
"""

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .kl import kl_divergence, register_kl
from .normal import Normal

__all__ = ["Distribution", "ExponentialFamily", "Normal", "constraints", "kl_divergence", "register_kl"]

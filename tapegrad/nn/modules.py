"""torch.nn.modules: the module paths of PyTorch's layers that programs import."""

from __future__ import annotations

import sys

from . import activation as activation
from . import adaptive as adaptive
from . import container as container
from . import conv as conv
from . import distance as distance
from . import dropout as dropout
from . import embed as sparse
from . import lazy as lazy
from . import linear as linear
from . import loss as loss
from . import module as module
from . import norm as batchnorm
from . import norm as instancenorm
from . import norm as normalization
from . import pad as padding
from . import pool as pooling
from . import rnn as rnn
from . import transformer as transformer
from .module import Module

__all__ = [
    "Module",
    "activation",
    "adaptive",
    "batchnorm",
    "container",
    "conv",
    "distance",
    "dropout",
    "instancenorm",
    "lazy",
    "linear",
    "loss",
    "module",
    "normalization",
    "padding",
    "pooling",
    "rnn",
    "sparse",
    "transformer",
]  # fmt: skip

for _name in __all__[1:]:  # so that `from torch.nn.modules.loss import ...` finds them
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]

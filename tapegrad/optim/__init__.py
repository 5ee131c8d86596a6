"""Optimizers and learning-rate schedulers, with the names of torch.optim."""

from __future__ import annotations

from . import functional as functional
from . import lr_scheduler as lr_scheduler
from . import scipy as scipy
from . import swa_utils as swa_utils
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import Adadelta, Adagrad, RMSprop, Rprop
from .lbfgs import LBFGS
from .matrix import Adafactor, Muon, SparseAdam
from .optimizer import Optimizer
from .sgd import ASGD, SGD

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "functional", "lr_scheduler", "scipy", "swa_utils",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)

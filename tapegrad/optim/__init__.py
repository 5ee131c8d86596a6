"""Optimizers and learning-rate schedulers, with the names of torch.optim."""

from __future__ import annotations

from ..later import finder, mark, names_of

HOMES = {
    "adam": "Adam AdamW Adamax NAdam RAdam",
    "adaptive": "Adadelta Adagrad RMSprop Rprop",
    "lbfgs": "LBFGS",
    "matrix": "Adafactor Muon SparseAdam",
    "optimizer": "Optimizer",
    "sgd": "ASGD SGD",
}
MODULES = "functional lr_scheduler scipy swa_utils"
__all__ = names_of(HOMES, MODULES)
__getattr__ = finder(globals(), HOMES, MODULES)


def __dir__() -> list[str]:
    return __all__


mark()

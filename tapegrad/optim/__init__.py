"""Optimizers and learning-rate schedules under torch.optim's names."""

from __future__ import annotations

from . import lr_scheduler as lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]

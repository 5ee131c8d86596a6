"""torch.nn.modules: where PyTorch has the files of its layers, as far as programs name them."""

from __future__ import annotations

from . import container as container
from . import lazy as lazy
from . import module as module
from .module import Module as Module

"""A stand-in for torchvision in the record of real programs: seeded images, the few transforms that the programs use.

It says ``import torch`` and so feeds PyTorch and tapegrad alike. Images are uint8 arrays where torchvision has PIL's.
"""

from . import datasets, transforms, utils

__version__ = "0.0+standin"
__all__ = ["datasets", "transforms", "utils"]

"""PyTorch's names on tapegrad."""

from tapegrad import compat

compat.mirror(__name__, "tapegrad")

__version__ = "2.13.0+tapegrad"

"""Utilities: tapegrad's, and exchange with PyTorch."""

from tapegrad import compat

compat.mirror(__name__, "tapegrad.utils")

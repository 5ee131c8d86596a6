"""Layers: tapegrad's, those that OneFlow alone has, and ``Graph``, which runs eagerly."""

from tapegrad import compat

compat.mirror(__name__, "tapegrad.nn")

from ._layers import CombinedMarginLoss, Dropout, PixelShuffle, RMSLayerNorm  # noqa: F401
from .graph import Graph  # noqa: F401

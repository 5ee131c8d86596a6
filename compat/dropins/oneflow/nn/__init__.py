"""Layers: tapegrad's, and ``Graph``, which runs eagerly."""

from tapegrad import compat

compat.mirror(__name__, "tapegrad.nn")

from .graph import Graph  # noqa: F401

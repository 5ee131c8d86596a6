"""numpy.random."""

from tapegrad import compat

compat.mirror(__name__, "numpy.random")

"""autograd's NumPy: NumPy's functions, which give boxes where an argument is one."""

# ruff: noqa: F401 (names for programs)
from autograd.numpy import fft, linalg, numpy_boxes, numpy_vjps, numpy_vspaces, numpy_wrapper, random
from autograd.numpy.numpy_wrapper import *  # noqa: F403
from autograd.numpy.numpy_wrapper import numpy_version as __version__

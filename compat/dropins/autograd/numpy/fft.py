"""numpy.fft, whose functions take boxes."""

import numpy as _np

from autograd.numpy.numpy_wrapper import wrap_namespace as _wrap_namespace

_wrap_namespace(_np.fft.__dict__, globals())

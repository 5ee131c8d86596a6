"""torch.version: the PyTorch whose names are here; no CUDA."""

from torch import __version__ as __version__

debug = False
cuda = hip = xpu = rocm = None
git_version = "Unknown"

"""Drop-ins: programs that say ``import torch`` (or ``oneflow``, ``autograd``) run on tapegrad, unmodified.

    tapegrad.compat.install("torch")
    import torch                      # tapegrad, under PyTorch's names

``python -m tapegrad --as torch program.py`` does the same for a program. Nothing is found under these names before
``install`` and after ``remove``.
"""

from .finder import NAMES
from .finder import Absent as Absent  # this and the next two are for the files of the drop-ins
from .finder import mirror as mirror
from .install import at_removal as at_removal
from .install import install, installed, remove

__all__ = ["NAMES", "install", "installed", "remove"]

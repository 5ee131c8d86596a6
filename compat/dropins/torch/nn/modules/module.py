"""torch.nn.modules.module: Module, the hooks of all modules, and PyTorch's names of two helpers."""

from tapegrad.nn.module import IncompatibleKeys as _IncompatibleKeys  # noqa: F401
from tapegrad.nn.module import indented as _addindent  # noqa: F401

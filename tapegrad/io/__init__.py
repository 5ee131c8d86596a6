"""Files: torch.save's and torch.load's formats both ways, without PyTorch, and .safetensors and .npz by their suffix.

A .pt file is a zip archive of uncompressed records: `data.pkl`, a pickle in which a tensor is a call of
`torch._utils._rebuild_tensor_v2` on a storage, and `data/<key>`, the bytes of each storage. What is known of the format was
found by reading files that PyTorch 2.13 wrote.

`load` interprets the pickle itself: it calls the few functions that rebuild tensors, and nothing that a file names.
"""

from ..later import mark as _mark
from .files import get_unsafe_globals_in_checkpoint, load, save
from .limits import LoadError
from .rebuild import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = [
    "LoadError", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
    "safe_globals", "save",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


_mark()

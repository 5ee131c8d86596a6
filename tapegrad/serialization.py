"""PyTorch's name of `tapegrad.io`: `save`, `load`, and what `load` may use of a file."""

from .io import LoadError as LoadError
from .io import __all__ as __all__
from .io import __dir__ as __dir__
from .io import add_safe_globals as add_safe_globals
from .io import clear_safe_globals as clear_safe_globals
from .io import get_safe_globals as get_safe_globals
from .io import get_unsafe_globals_in_checkpoint as get_unsafe_globals_in_checkpoint
from .io import load as load
from .io import safe_globals as safe_globals
from .io import save as save

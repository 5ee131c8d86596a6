"""torch.nn.modules.module: Module, the hooks of all modules, and PyTorch's names of two helpers."""

import sys as _sys

from tapegrad.nn.hooks import EVERYWHERE as _EVERYWHERE
from tapegrad.nn.hooks import REGISTRATIONS as _REGISTRATIONS
from tapegrad.nn.module import IncompatibleKeys as _IncompatibleKeys  # noqa: F401
from tapegrad.nn.module import indented as _addindent  # noqa: F401

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_TABLES = {f"_global{name}": table for name, table in _EVERYWHERE.items() if not isinstance(table, bool | None)}
_TABLES.update({f"_global_{what}_registration_hooks": table for what, table in _REGISTRATIONS.items()})
globals().update(_TABLES)


class _Hooks(type(_sys.modules[__name__])):
    """A module whose tables of hooks are filled when they are bound anew: programs clear them so."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _TABLES:
            _TABLES[name].clear()
            _TABLES[name].update(value)
        else:
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Hooks

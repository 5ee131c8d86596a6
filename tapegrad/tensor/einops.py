"""einops on tensors. It looks for backends among the subclasses of a class of its own: one is made when it is imported.

einops asks neither a tensor nor the package, so something has to wait for its import: where einops is not imported yet when
the first tensor is made, a finder stands in sys.meta_path from then on until it is.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any

BACKENDS = "einops._backends"


def register(backends: Any) -> None:
    """Give einops its backend for tensors: the one for torch, on tapegrad."""

    class TapegradBackend(backends.TorchBackend):  # type: ignore[misc]
        framework_name = "tapegrad"

        def __init__(self) -> None:
            self.torch = sys.modules["tapegrad"]

    backends.TapegradBackend = TapegradBackend  # a class does not keep its subclasses alive


class _OnImport:
    """Sees to it that `register` is called once the module is imported, and leaves the import system then."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != BACKENDS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            register(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def watch() -> None:
    """Have einops know tensors, now or once it is imported."""
    if BACKENDS in sys.modules:
        register(sys.modules[BACKENDS])
    else:
        sys.meta_path.insert(0, _OnImport())

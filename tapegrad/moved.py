"""Modules of 0.1.0 by their old names, for pickles that name them: each gives what its statements became."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

HOMES = {
    "arrays.dtypes": ("dtypes",),
    "compiler": ("jit",),
    "ops.parts": ("functions.complex_and_bits", "table.complex_and_bits", "kernels.complex_and_bits"),
    "ops.samples": ("table.samples.common",),
    "core.node": ("tensor.graph",),
    "printing": ("tensor.printing",),
    "storage": ("tensor.storage",),
    "settings": ("functions.settings",),
    **dict.fromkeys(("arrays", "ops"), ()),
}


def homes(name: str) -> tuple[str, ...] | None:
    """The modules in which the contents of one of 0.1.0 stand now; None if it is none that has moved."""
    room, _, family = name.partition(".")
    if room == "ops" and family and name not in HOMES and "." not in family:
        return f"functions.{family}", f"table.{family}", f"kernels.{family}"
    if room == "arrays" and family and name not in HOMES and "." not in family:
        return (f"kernels.{family}",)
    return HOMES.get(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last, so only for modules that are not there."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> Any:
        package, _, name = fullname.partition(".")
        if package != __package__ or homes(name) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=name in ("arrays", "ops"))

    def exec_module(self, module: types.ModuleType) -> None:
        places = homes(module.__name__.partition(".")[2]) or ()

        def find(attribute: str) -> Any:
            for place in places:
                try:
                    return getattr(importlib.import_module(f"{__package__}.{place}"), attribute)
                except (ImportError, AttributeError):
                    continue
            raise AttributeError(f"{module.__name__}.{attribute} of 0.1.0 has moved: see CHANGELOG.md")

        module.__dict__["__getattr__"] = find


def watch() -> None:
    """Find modules by the names they had in 0.1.0."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())

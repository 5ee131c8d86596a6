"""Modules of 0.1.0 by their old names, for pickles and programs that name them: each gives what its statements became.

They stand in sys.modules, where an import looks first, so that the import system needs no finder of ours.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

HOMES = {
    "arrays.dtypes": ("dtypes",),
    "comparison": ("testing.comparison",),
    "arrays.kernels": tuple([f"kernels.{name}" for name in ("activations", "gaussian", "softmax", "cumsum", "accumulate")]),
    "compiler": ("jit",),
    "ops.create": ("functions.create", "functions.exchange"),
    "ops.define": ("table.define", "functions.arguments"),
    "ops.elementwise": ("functions.elementwise", "functions.activation", "table.elementwise", "kernels.elementwise"),
    "ops.operands": ("functions.operands", "table.refusals"),
    "ops.parts": ("functions.complex_and_bits", "table.complex_and_bits", "kernels.complex_and_bits"),
    "ops.samples": ("table.samples.common",),
    "ops.shape": (
        "functions.shape", "functions.joining", "functions.copies", "functions.properties", "functions.arguments",
        "functions.operands", "table.shape", "kernels.shape",
    ),
    "core.modes": ("modes",),
    "core.node": ("tensor.graph",),
    "printing": ("tensor.printing",),
    "storage": ("tensor.storage",),
    "settings": ("functions.settings",),
    **dict.fromkeys(("arrays", "ops"), ()),
}  # fmt: skip
ROOMS = {  # a package of 0.1.0: where its modules are now, and their names
    "arrays": (("kernels",), "activations convolution devices kernels lapack memory numpy random shared special"),
    "compiler": (("jit",), "arguments capture compiled entry explain guards keys lower mesh nans writes"),
    "ops": (
        ("functions", "table", "kernels"),
        "activation attention batching casting control conv create curve decompose define dropout einsum elementwise "
        "embed fft index linalg lookup loss matrix native normalize operands parts pool recurrent reduce resample results "
        "sampling scatter shape signal sort special statistics",
    ),
}


def homes(name: str) -> tuple[str, ...]:
    """The modules in which the contents of one of 0.1.0 stand now."""
    room, _, module = name.partition(".")
    return HOMES[name] if name in HOMES else tuple([f"{now}.{module}" for now in ROOMS[room][0]])


class Moved(types.ModuleType):
    """A module of 0.1.0 that is no more."""

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} of 0.1.0, which has moved: see CHANGELOG.md>"

    def __getattr__(self, attribute: str) -> Any:
        package, _, name = self.__name__.partition(".")
        for home in () if attribute.startswith("__") else homes(name):
            try:
                return getattr(importlib.import_module(f"{package}.{home}"), attribute)
            except (ImportError, AttributeError):
                continue
        raise AttributeError(f"{self!r} has no {attribute!r}", name=attribute, obj=self)


def stand_in() -> None:
    """Put the modules of 0.1.0 that are no more where an import finds them."""
    names = [*HOMES, *(f"{room}.{module}" for room, (_, modules) in ROOMS.items() for module in modules.split())]
    for name in names:
        sys.modules.setdefault(f"{__package__}.{name}", Moved(f"{__package__}.{name}"))

"""Pictures and tables of what is recorded: graphs of tensors, the tape, the memory that it holds.

The classes of what `tapegrad.profile` and `tapegrad.summary` give are here, too.
"""

from __future__ import annotations

from ..later import finder, mark, names_of

HOMES = {
    "drawing": "Graph graph",
    "holdings": "HeldLine Memory TapeTable memory tape",
    "layers": "Layer Summary",
    "nodes": "Group Vertex",
    "profiling": "ProfileRow",
}
__all__ = names_of(HOMES)
__getattr__ = finder(globals(), HOMES)


def __dir__() -> list[str]:
    return __all__


mark()

"""What the machine asks of forward transforms. Connected when it is imported."""

from __future__ import annotations

from ..core.connect import connect_levels
from ..floats import scalar
from . import batched_gradient, level, links, undo


class Levels:
    """Implements `core.protocols.LevelProtocol`."""

    run = staticmethod(level.run_at_level)
    view = staticmethod(level.view)
    detached = staticmethod(level.detached_view)
    assign = staticmethod(level.assign)
    relabelled = staticmethod(level.relabelled)
    refresh = staticmethod(level.refresh)
    promote_alias = staticmethod(level.promote_alias)
    remember_value = staticmethod(undo.remember_value)
    remember_gradient = staticmethod(undo.remember_gradient)
    backward_of_floats = staticmethod(scalar.backward_scalar)
    backward_linked = staticmethod(links.backward_linked)
    add_zeros = staticmethod(links.add_zeros)
    reached_by_links = staticmethod(links.reached_by_links)
    fill = staticmethod(links.fill)
    batched_gradient = staticmethod(batched_gradient.batched_gradient)


connect_levels(Levels())

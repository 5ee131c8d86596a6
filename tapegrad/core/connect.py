"""The only place where core is given what the rooms above it implement: one call for each protocol, at import.

What every operation looks up stands in globals of the modules that run it, where a look-up costs least. They are set here.
"""

from __future__ import annotations

from typing import Any

from . import alias, box, factories, general_gradient, gradient, plain_record, protocols, record
from .protocols import ArrayBackend, Facade, LevelProtocol

EACH_OPERATION: tuple[Any, ...] = (alias, box, plain_record, factories, record, gradient, general_gradient)


def connect_arrays(backend: ArrayBackend) -> None:
    """Name what computes on arrays."""
    fill(protocols.arrays, ArrayBackend, backend)
    for module in EACH_OPERATION:
        module.ndarray, module.asarray = backend.type, backend.as_array
        module.F32, module.F64 = module.FLOATS = backend.float32, backend.float64


def connect_levels(levels: LevelProtocol) -> None:
    """Name what runs operations on tensors inside forward transforms."""
    fill(protocols.levels, LevelProtocol, levels)


def connect_facade(facade: Facade) -> None:
    """Name the classes that results are boxed in, and what makes operands of anything else."""
    fill(protocols.facade, Facade, facade)
    for module in EACH_OPERATION:
        module.Tensor, module.Parameter, module.Scalar = facade.Tensor, facade.Parameter, facade.Scalar


def fill(holder: Any, protocol: type, implementation: Any) -> None:
    for name in dir(protocol) + list(protocol.__annotations__):
        if not name.startswith("_"):
            setattr(holder, name, getattr(implementation, name))

"""Compiled functions on more than one device: where arguments, state and results lie on a mesh.

XLA divides one program among the devices (SPMD): it is told how the inputs and results lie, and adds the communication.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any

from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .. import errors
from ..core import alias
from ..core.record import Box, ndarray, peek_data
from ..func import tree
from ..programs.program import Ref
from .lower import Placement

RETURN = "return"  # the name under which `shard` speaks of the result


class Layout:
    """What `mesh` and `shard` say of a function with the given signature.

    Attributes:
        rest: the sharding of all that `shard` does not name: replicated.
        named: specifications by name of an argument, or RETURN.
        tensors: tensors of outside that are named, with their shardings.

    Raises:
        TypeError: if the mesh or a key is of another kind.
        ValueError: for a name that is not an argument, or a specification that does not fit a tensor or the mesh.
    """

    def __init__(self, signature: inspect.Signature, mesh: Any, shard: Any) -> None:
        if not isinstance(mesh, Mesh):
            raise errors.not_a_mesh(type(mesh).__name__)
        self.signature = signature
        self.mesh = Mesh(mesh.devices, mesh.axis_names)  # axes of kind Auto, whatever they were: XLA divides the program
        self.rest = NamedSharding(self.mesh, PartitionSpec())  # type: ignore[no-untyped-call]
        self.named: dict[str, Any] = {}
        self.tensors: list[tuple[Any, Any]] = []
        for key, spec in (shard or {}).items():
            if isinstance(key, str):
                self.named[key] = spec
            elif isinstance(key, Box):
                self.tensors.append((key, self.sharding("a tensor", spec, key)))
            else:
                raise errors.shard_key(type(key).__name__)
        for name in self.named.keys() - {RETURN, *signature.parameters}:
            raise errors.shard_name(name, signature)

    def sharding(self, what: str, spec: Any, array: Any) -> Any:
        """The sharding of one array; `what` it is called in errors."""
        if not is_spec(spec):
            raise errors.shard_spec(what, spec)
        axes, shape = tuple(spec or ()), (peek_data(array) if isinstance(array, Box) else array).shape
        if len(axes) > len(shape):
            raise errors.shard_rank(what, axes, shape)
        for dim, entry in enumerate(axes):
            along = (entry,) if isinstance(entry, str) else entry or ()
            for axis in along:
                if axis not in self.mesh.shape:
                    raise errors.shard_axis(what, axis, self.mesh.axis_names)
            parts = math.prod(self.mesh.shape[axis] for axis in along)
            if shape[dim] % parts:
                raise errors.shard_uneven(what, dim, shape[dim], along, parts)
        return NamedSharding(self.mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]

    # ------------------------------------------------------------------------------------------------ of values of calls

    def of_arguments(self, args: Any, kwargs: Any, tensors: list[Any]) -> list[Any]:
        """Shardings of the arrays among a call's arguments."""
        found: dict[int, Any] = {}
        values = self.signature.bind(*args, **kwargs).arguments
        for name in self.named.keys() & values.keys():
            for what, spec, leaf in leaf_specs(f"the argument {name!r}", self.named[name], values[name]):
                if isinstance(leaf, Box | ndarray):
                    found[id(leaf)] = self.sharding(what, spec, leaf)
        return [found.get(id(t), self.rest) for t in tensors]

    def of_program(self, arguments: list[Any], call: Any) -> Placement:
        """Where the values of a captured program lie: a written value as the one it replaces, a gradient as its tensor."""
        followers = self._followers(call.reachable.optimizers)

        def of(place: Any) -> Any:
            return arguments[place] if type(place) is int else followers.get(id(place()), self.rest)

        program, states = call.program, call.trace.state_inputs.values()
        known = dict(zip(program.arguments, arguments, strict=True))
        known |= {c.input.number: of(c.owner if c.of is None else c.of) for c in states}
        spec = self.named.get(RETURN)
        leaves = zip(leaf_specs("the result", spec, call.result), call.results, strict=True)
        results = [self.sharding(what, own, leaf) for (what, own, leaf), r in leaves if type(r.value) is Ref]
        results += [arguments[c] if type(c) is int else known[c.input.number] for c, _ in call.writes]
        results += [of(place) for place, ref in call.gradients if ref is not None]
        return Placement(known, self.rest, results)

    def _followers(self, optimizers: list[Any]) -> dict[int, Any]:
        """Shardings by id: of named tensors, of memory blocks that they share, of their state in optimizers."""
        found = {}
        for t, sharding in self.tensors:
            moments = [s for o in optimizers for s in o.state.get(t, {}).values()]
            for other in (t, *[s for s in moments if isinstance(s, Box) and peek_data(s).shape == peek_data(t).shape]):
                found[id(other)] = sharding
                if type(other._st) is alias.Alias and not other._st.chain:
                    found[id(other._st.store)] = sharding
        return found


def is_spec(spec: Any) -> bool:
    """Whether it says how one array lies: a PartitionSpec, None (replicated), or a tuple of names of axes."""
    if spec is None or isinstance(spec, PartitionSpec):
        return True
    return isinstance(spec, tuple) and all(
        entry is None or isinstance(entry, str) or (type(entry) is tuple and all(isinstance(axis, str) for axis in entry))
        for entry in spec
    )


def leaf_specs(what: str, spec: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    """For each leaf of a value its name in messages, its specification, and itself; a container may have one specification.

    A container of specifications may leave items out.
    """
    if is_spec(spec):
        yield from ((what, spec, leaf) for leaf in tree.flatten(value)[0])
        return
    found = None if issubclass(type(value), tree.LEAF_TYPES) else tree.children_of(value)
    if found is None or not isinstance(spec, dict | list | tuple):
        raise errors.shard_spec(what, spec)
    keys = found[0] if isinstance(found[0], tuple) else range(found[0])
    specs = spec if isinstance(spec, dict) else dict(enumerate(spec))
    for key in specs.keys() - set(keys):
        raise errors.shard_item(what, key)
    for key, child in zip(keys, found[1], strict=True):
        yield from leaf_specs(f"{what}[{key!r}]", specs.get(key), child)

"""Replacing the parts of a graph that do what a pattern does."""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx._symbolic_trace import symbolic_trace
from torch.fx.graph import Graph
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node
from torch.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced: the pattern's node it was found from, and the graph's node for each of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclasses.dataclass
class ReplacedPatterns:
    """A place that was replaced, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each part of a graph that does what a pattern does; returns the places.

    Args:
        gm: the module whose graph is changed.
        pattern: a function or GraphModule; its parameters stand for any values, and it has to use them.
        replacement: one of the same number of parameters and results.

    Parts of a pattern whose results are used elsewhere, without being returned by it, are left as they are, and of places
    that share a node the first is replaced.
    """
    return [Match(r.anchor, r.nodes_map) for r in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: Sequence[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As replace_pattern, at the places that all filters accept; each is given the match, the graph and the pattern.

    Args:
        ignore_literals: let arguments differ that are no results of nodes.
        replacement_callback: gives the graph that replaces a match, from the arguments of a filter.
        node_name_match: part of a name: a node with it is taken for what the pattern returns.
    """
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    graph, wanted = gm.graph, _graph_of(pattern)
    matches = SubgraphMatcher(wanted, ignore_literals=ignore_literals).match(graph, node_name_match)
    matches = [m for m in matches if all([accepts(m, graph, wanted) for accepts in match_filters or ()])]
    made = _graph_of(replacement, gm) if matches and replacement_callback is None else None
    now: dict[Node, Any] = {}
    done = []
    for match in matches:
        _refer_to(match, now)
        done.append(_replaced(graph, wanted, match, made or replacement_callback(match, graph, wanted), now))  # type: ignore[misc]
    if isinstance(replacement, torch.nn.Module):
        _take_from(replacement, gm)
    gm.recompile()
    return done


def _graph_of(program: Any, gm: GraphModule | None = None) -> Graph:
    """The graph of a program; tensors that a function has of its own become attributes of gm."""
    if isinstance(program, Graph):
        return program
    if isinstance(program, GraphModule):
        return program.graph
    traced = symbolic_trace(program)
    constants = [n for n in traced.graph.nodes if n.op == "get_attr"] if not isinstance(program, torch.nn.Module) else []
    for node in constants if gm is not None else []:
        number = 0
        while hasattr(gm, f"_tensor_constant{number}"):
            number += 1
        gm.register_buffer(f"_tensor_constant{number}", getattr(traced, node.target))  # type: ignore[union-attr]
        node.target = f"_tensor_constant{number}"
    return traced.graph


def _refer_to(match: InternalMatch, now: dict[Node, Any]) -> None:
    """Let a match's inputs be what replaced them meanwhile."""

    def latest(a: Any) -> Any:
        while isinstance(a, Node) and a in now:
            a = now[a]
        return a

    match.placeholder_nodes = [latest(a) for a in match.placeholder_nodes]
    match.nodes_map = {pn: latest(gn) if pn.op == "placeholder" else gn for pn, gn in match.nodes_map.items()}


def _replaced(graph: Graph, wanted: Graph, match: InternalMatch, made: Graph, now: dict[Node, Any]) -> ReplacedPatterns:
    """Put the nodes of a graph where a match is."""
    inputs = [n for n in made.nodes if n.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    values = dict(zip(inputs, match.placeholder_nodes, strict=True))
    place = {node: i for i, node in enumerate(graph.nodes)}
    users = [user for node in match.returning_nodes for user in node.users]
    first = min(users, key=place.__getitem__) if users else max(match.returning_nodes, key=place.__getitem__).next
    with graph.inserting_before(first):
        results = graph.graph_copy(made, values)
    results = results if isinstance(results, (tuple, list)) else (results,)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        now[old] = new
    for node in reversed(wanted.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    if any([isinstance(a, Node) and place[a] > place.get(first, len(place)) for a in match.placeholder_nodes]):
        _sort(graph)
    new_nodes = [n for n in values.values() if isinstance(n, Node) and n not in match.placeholder_nodes]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, new_nodes)


def _sort(graph: Graph) -> None:
    """Put each node after those that it uses, and leave the order otherwise."""
    done: set[Node] = set()

    def put(node: Node) -> None:
        if node not in done:
            done.add(node)
            for used in node.all_input_nodes:
                put(used)
            graph._root.prepend(node)

    for node in list(graph.nodes):
        put(node)


def _take_from(replacement: torch.nn.Module, gm: GraphModule) -> None:
    """Give a module what its graph uses of the module that replaced a part of it, where it has nothing of that name."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        try:
            operator.attrgetter(node.target)(gm)
        except AttributeError:
            gm.add_submodule(node.target, copy.deepcopy(operator.attrgetter(node.target)(replacement)))

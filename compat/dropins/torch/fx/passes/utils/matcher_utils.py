"""Finding the places of a graph that are as another, small graph says."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import torch
from torch.fx.graph import Graph
from torch.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclasses.dataclass
class InternalMatch:
    """A place that is as the pattern.

    Attributes:
        anchors: the nodes of the pattern from which it was found.
        nodes_map: the graph's node, or value, for each node of the pattern.
        placeholder_nodes: the graph's nodes, or values, for the pattern's inputs.
        returning_nodes: the graph's nodes for what the pattern returns.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = dataclasses.field(default_factory=dict)
    placeholder_nodes: list[Any] = dataclasses.field(default_factory=list)
    returning_nodes: list[Node] = dataclasses.field(default_factory=list)
    name_node_map: dict[str, Node] = dataclasses.field(default_factory=dict)

    def matched(self) -> list[Node]:
        """The graph's nodes that do what the pattern does, without its inputs."""
        return [gn for pn, gn in self.nodes_map.items() if pn.op not in ("placeholder", "output")]


class SubgraphMatcher:
    """Finds where a graph does what a pattern does.

    Args:
        pattern: the graph that is looked for.
        match_output: whether what the pattern returns has to be what the graph returns.
        match_placeholder: whether an input of the pattern has to be an input of the graph; otherwise it is anything.
        remove_overlapping_matches: of places that share nodes, give the first only.
        ignore_literals: let arguments that are no nodes differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        for node in pattern.nodes:
            if node.op not in ("output", "placeholder") and not node.users and not node.is_impure():
                raise AssertionError(f"SubgraphMatcher cannot be initialized with an pattern with dead code: {node}")
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        last = [n for n in self.pattern_returning_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else last

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places of the graph, in the order of the nodes that stand for what the pattern returns."""
        found: list[InternalMatch] = []

        def search(anchors: list[Node], nodes: dict[Node, Any]) -> None:
            if not anchors:
                found.append(self._match(nodes))
                return
            for node in graph.nodes:
                tried = dict(nodes)
                if self._agree(anchors[0], node, tried, node_name_match):
                    search(anchors[1:], tried)

        if self.pattern_anchors:
            search(self.pattern_anchors, {})
        taken: set[Node] = set()
        kept: list[InternalMatch] = []
        for match in found:
            nodes = set(match.matched())
            overlaps = self.remove_overlapping_matches and taken & nodes
            if self._contained(match) and not _reenters(nodes) and not overlaps:
                taken |= nodes
                kept.append(match)
        return kept

    def _match(self, nodes: dict[Node, Any]) -> InternalMatch:
        for p in self.pattern_placeholder_nodes:
            if p not in nodes:
                raise RuntimeError(f"a pattern has to use its parameters, and this one does not use {p}")
        inputs = [nodes[p] for p in self.pattern_placeholder_nodes]
        return InternalMatch(self.pattern_anchors, nodes, inputs, [nodes[p] for p in self.pattern_returning_nodes])

    def _alike(self, pn: Node, gn: Node, name: str) -> bool:
        """Whether two nodes do the same, whatever their arguments."""
        if (pn.op == "placeholder" and not self.match_placeholder) or (name and name in gn.name):
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":  # of the same type; tensors have any values
            a, b = [operator.attrgetter(n.target)(n.graph.owning_module) for n in (pn, gn)]
            return isinstance(a, torch.Tensor) and type(a) is type(b)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _agree(self, pn: Any, gn: Any, nodes: dict[Node, Any], name: str = "") -> bool:
        """Whether an argument of the pattern is the graph's, up to the inputs; notes in nodes what stands for what."""
        if isinstance(pn, Node) and isinstance(gn, Node):
            if pn in nodes:
                return nodes[pn] is gn
            if any(gn is other for other in nodes.values()) or not self._alike(pn, gn, name):
                return False
            nodes[pn] = gn
            return pn.op == "placeholder" or self._agree_all([pn.args, pn.kwargs], [gn.args, gn.kwargs], nodes)
        if isinstance(pn, (list, tuple)) and isinstance(gn, (list, tuple)):
            return self._agree_all(pn, gn, nodes)
        if isinstance(pn, dict) and isinstance(gn, dict):
            return list(pn) == list(gn) and self._agree_all(list(pn.values()), list(gn.values()), nodes)
        if isinstance(pn, Node) and pn.op == "placeholder":
            return bool(nodes.setdefault(pn, gn) == gn)
        same = not isinstance(pn, Node) and not isinstance(gn, Node) and type(pn) is type(gn) and bool(pn == gn)
        return same or self.ignore_literals

    def _agree_all(self, pattern: Any, graph: Any, nodes: dict[Node, Any]) -> bool:
        return len(pattern) == len(graph) and all([self._agree(p, g, nodes) for p, g in zip(pattern, graph, strict=True)])

    def _contained(self, match: InternalMatch) -> bool:
        """Whether nothing else uses what the pattern does not return."""
        inside = {gn for pn, gn in match.nodes_map.items() if pn.op != "placeholder"}
        inner = [
            gn for pn, gn in match.nodes_map.items() if pn.op != "placeholder" and pn not in self.pattern_returning_nodes
        ]
        return all([user in inside for gn in inner for user in gn.users])


def _reenters(nodes: set[Node]) -> bool:
    """Whether what uses results of the nodes, from outside, comes back to one of them: they cannot be one step."""
    todo = [user for node in nodes for user in node.users if user not in nodes]
    seen: set[Node] = set()
    while todo:
        node = todo.pop()
        if node in nodes:
            return True
        if node not in seen:
            seen.add(node)
            todo.extend(node.users)
    return False

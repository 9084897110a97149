"""Dead-code removal on a record: what `fx.Graph.eliminate_dead_code` leaves, without torch.

A node lives if something that lives reads it, or if dropping it could be noticed: placeholders, the output, and ops
with an effect. Random ops count as pure here, as they do inside `torch.compile`: Inductor's `fallback_random` is off by
default, and then a random number that nobody reads is not drawn.
"""

from __future__ import annotations

import dataclasses

from aotcli.ir.joint import JointGraph, NodeKind, Tag


def eliminate_dead(graph: JointGraph) -> tuple[JointGraph, frozenset[str]]:
    """`graph` without dead nodes, and the names of those removed (of the outer graph; nested graphs are cleaned too).

    The graph itself comes back where nothing is dead.
    """
    alive = live_nodes(graph)
    nodes = tuple(node for node, lives in zip(graph.nodes, alive, strict=True) if lives)
    nested = tuple((name, eliminate_dead(subgraph)[0]) for name, subgraph in graph.subgraphs)
    unchanged = all(new is old for (_, new), (_, old) in zip(nested, graph.subgraphs, strict=True))
    if len(nodes) == len(graph.nodes) and unchanged:
        return graph, frozenset()
    removed = frozenset(node.name for node, lives in zip(graph.nodes, alive, strict=True) if not lives)
    return dataclasses.replace(graph, nodes=nodes, subgraphs=nested), removed


def live_nodes(graph: JointGraph) -> list[bool]:
    """Whether each node lives, by position."""
    inputs = graph.inputs_of
    alive = [False] * len(graph.nodes)
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        if alive[position] or node.kind is NodeKind.OUTPUT or node.is_placeholder or Tag.EFFECTFUL in node.tags:
            alive[position] = True
            for source in inputs[position]:
                alive[source] = True
    return alive

"""Ops that must not run a second time in the backward, whatever is asked for: the result would be another one, or the
run itself would be noticed.

Effects and writes, waiting for other processes, random numbers that cannot be drawn again, results whose shape depends
on data (their size was already given a name), and reads of inputs that the step has changed since.
"""

from __future__ import annotations

from aotcli.analysis.mincut_mutation import MutatedReads
from aotcli.analysis.replay import is_replayable
from aotcli.analysis.roles import must_be_in_forward
from aotcli.ir.joint import JointGraph, NodeKind, Tag
from aotcli.ir.partition import Reason
from aotcli.ir.tensor import SymbolSpec, identifiers


class Rerun:
    """What may run again in one graph."""

    def __init__(self, graph: JointGraph, mutated: MutatedReads) -> None:
        self._graph = graph
        self._mutated = mutated
        self._random_graphs = {target for target, nested in graph.subgraphs if _draws(nested)}

    def forbidden(self, position: int) -> Reason | None:
        """Why the op at `position` must not run again; None where it may. A random op may where its state can be
        saved; a collective may where the user asks for it, so it is not among these."""
        node = self._graph.nodes[position]
        if position in self._mutated.banned:
            return Reason("mutated input", f"reads {self._mutated.source[position]}, changed in place")
        if self.has_effect(position):
            return Reason("effect", "has an effect")
        if self.is_random(position) and not is_replayable(self._graph, node):
            return Reason("random", "random")
        if self.is_data_dependent(position):
            return Reason("data-dependent shape", "data-dependent shape")
        return None

    def has_effect(self, position: int) -> bool:
        """Whether running the op twice could be noticed."""
        node = self._graph.nodes[position]
        return Tag.EFFECTFUL in node.tags or Tag.WITH_EFFECTS in node.tags or must_be_in_forward(node)

    def is_random(self, position: int) -> bool:
        """Whether the op draws random numbers, itself or in a graph nested in it."""
        graph = self._graph
        if Tag.RANDOM in graph.nodes[position].tags:
            return True
        attributes = (graph.nodes[source] for source in graph.inputs_of[position])
        return any(node.kind is NodeKind.ATTR and node.target in self._random_graphs for node in attributes)

    def is_data_dependent(self, position: int) -> bool:
        """Whether a symbol appears here that no argument mentions: the op itself has made it."""
        graph = self._graph
        if not graph.symbols or isinstance(graph.nodes[position].value, SymbolSpec):
            return False
        own = graph.symbol_names.intersection(identifiers(graph.nodes[position].value))
        known = {name for source in graph.inputs_of[position] for name in identifiers(graph.nodes[source].value)}
        bound = {node.binds for node in graph.placeholders}
        return bool(own - known - bound)


def _draws(graph: JointGraph) -> bool:
    """Whether a nested graph holds a random op, at any depth."""
    return any(Tag.RANDOM in node.tags for node in graph.nodes) or any(_draws(nested) for _, nested in graph.subgraphs)

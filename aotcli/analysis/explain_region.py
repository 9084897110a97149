"""A region under a plan, seen from its memory: what the plan does with each allocation, and who reads it where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.analysis.op_names import node_label
from aotcli.analysis.patterns import GETITEM
from aotcli.analysis.roles import FORWARD_INPUT_KINDS
from aotcli.analysis.wishes import Made, made_values
from aotcli.ir.difference import Fate
from aotcli.ir.explanation import Place
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, Ref, Tag
from aotcli.ir.partition import Category, Partition, SavedValue

_FREE_TAGS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})


@dataclass(frozen=True)
class PlannedRegion:
    """A joint graph and a plan of it. Names of the graph are understood after common subexpressions were merged."""

    graph: JointGraph
    partition: Partition

    @cached_property
    def all_made(self) -> tuple[Made, ...]:
        """All memory that the forward makes."""
        return made_values(self.graph)

    @cached_property
    def made(self) -> tuple[Made, ...]:
        """The same without what another op's result stands for."""
        nodes, replaced = self.graph.nodes, self.partition.replaced
        return tuple(each for each in self.all_made if nodes[each.maker].name not in replaced)

    @cached_property
    def made_by(self) -> dict[str, Made]:
        """The memory that a value lies in, by name; ops that return tuples are not here."""
        return {name: each for each in self.made for name in self.names(each)}

    @cached_property
    def saved(self) -> dict[str, SavedValue]:
        return {value.name: value for value in self.partition.saved}

    @cached_property
    def forward(self) -> frozenset[str]:
        return frozenset(self.partition.forward_nodes)

    @cached_property
    def backward(self) -> frozenset[str]:
        return frozenset(self.partition.backward_nodes)

    @cached_property
    def recomputed(self) -> frozenset[str]:
        return frozenset(self.partition.recomputed)

    @cached_property
    def backward_half(self) -> dict[str, Node]:
        """The backward's nodes by name, in run order; their arguments name what is left after merging."""
        return {node.name: node for node in cut(self.graph, decision_of(self.partition)).backward.nodes}

    @cached_property
    def backward_users(self) -> dict[str, list[str]]:
        users: dict[str, list[str]] = {}
        for node in self.backward_half.values():
            for name in node.refs:
                users.setdefault(name, []).append(node.name)
        return users

    @cached_property
    def gradients(self) -> dict[str, str]:
        """For each node that the backward returns, the name of what it is the gradient of."""
        primals = [node for node in self.graph.nodes if node.kind in PRIMAL_KINDS]
        pairs = zip(self.graph.backward_outputs, primals, strict=False)
        return {self.standing(out.name): node.origin or node.name for out, node in pairs if isinstance(out, Ref)}

    def under(self, partition: Partition) -> PlannedRegion:
        """The same region under another plan."""
        if partition is self.partition:
            return self
        region = PlannedRegion(self.graph, partition)
        region.__dict__["all_made"] = self.all_made  # the graph's, whatever the plan
        return region

    def standing(self, name: str) -> str:
        """The node that stands for `name` after merging."""
        while name in self.partition.replaced:
            name = self.partition.replaced[name]
        return name

    def names(self, made: Made) -> list[str]:
        """What the values on some memory are called after merging, each once."""
        return list(dict.fromkeys(self.standing(self.graph.nodes[position].name) for position in made.members))

    def saved_values(self, made: Made) -> list[SavedValue]:
        """The saved values on some memory."""
        return [self.saved[name] for name in self.names(made) if name in self.saved]

    def fate(self, made: Made) -> Fate:
        """What the plan does with some memory."""
        saved = self.saved_values(made)
        if saved:
            return Fate.SAVED if saved[0].category is Category.ACTIVATION else Fate.KEPT
        return self.fate_of(self.standing(self.graph.nodes[made.maker].name))

    def fate_of(self, name: str) -> Fate:
        """What the plan does with a node, by name."""
        if name in self.saved:
            return Fate.SAVED if self.saved[name].category is Category.ACTIVATION else Fate.KEPT
        if name in self.recomputed:
            return Fate.RECOMPUTED
        if name in self.forward or self.graph[name].kind in FORWARD_INPUT_KINDS:
            return Fate.FORWARD
        return Fate.BACKWARD if name in self.backward or self.graph[name].is_placeholder else Fate.UNUSED

    def place(self, name: str) -> Place:
        """A node as a reader knows it."""
        return place_of(self.graph, self.graph[name])


def place_of(graph: JointGraph, node: Node) -> Place:
    """Where a node comes from; a part of a tuple goes by the op that made the tuple."""
    target = graph[node.refs[0]].target if node.target == GETITEM and node.refs else node.target
    return Place(node.name, node_label(graph, node), target, node.module, node.source)


def is_free(node: Node) -> bool:
    """Whether a node computes nothing: a view, or a part of a tuple."""
    return node.target == GETITEM or not node.tags.isdisjoint(_FREE_TAGS)


def readable(graph: JointGraph, names: Sequence[str]) -> tuple[Place, ...]:
    """Places of nodes by name."""
    return tuple(place_of(graph, graph[name]) for name in names)

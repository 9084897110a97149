"""A planned region as rules look at it: what is saved, what the backward has anyway, and who reads what there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import Half, cut
from aotcli.analysis.layers import SavedTensor, group_storages
from aotcli.analysis.mincut_mutation import MutatedReads, mutated_reads
from aotcli.analysis.rerun import Rerun
from aotcli.analysis.roles import classify
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.partition import Category, Partition
from aotcli.ir.tensor import TensorSpec

GETITEM = "operator.getitem"
LASTING_KINDS = frozenset({NodeKind.PARAM, NodeKind.BUFFER})
_MUST_SAVE = "must save"
_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})


class PlannedRegion:
    """One region with its plan. `partition` is None where its annotations allow none."""

    def __init__(self, graph: JointGraph, partition: Partition | None) -> None:
        self.graph = graph
        self.partition = partition

    @cached_property
    def tensors(self) -> tuple[SavedTensor, ...]:
        """Saved activations by storage, in the forward's order, without those that must be saved: who asked for that
        has decided."""
        if self.partition is None:
            return ()
        saved = sorted(self.partition.saved, key=lambda value: self.graph.index[value.name])
        groups = group_storages(self.graph, [value for value in saved if value.category is Category.ACTIVATION])
        return tuple(
            each for each in groups if each.nbytes and all(value.reason.rule != _MUST_SAVE for value in each.values)
        )

    @cached_property
    def saved(self) -> frozenset[str]:
        """Names of the values that the forward hands to the backward."""
        return frozenset(value.name for value in self.partition.saved) if self.partition is not None else frozenset()

    def holds(self, node: Node) -> bool:
        """Whether the backward has a value in any case: it is saved, computed again, or a parameter or buffer that the
        step does not change. A view that is saved keeps what it looks at."""
        value = node.value
        if isinstance(value, TensorSpec) and value.storage in self._held_storages:
            return True
        return node.name in self._held

    @cached_property
    def _held(self) -> frozenset[str]:
        computed = self.partition.recomputed if self.partition is not None else ()
        lasting = (node.name for node in self.graph.placeholders if node.kind in LASTING_KINDS)
        return self.saved.union(computed, lasting) - frozenset(self.graph.mutated)

    @cached_property
    def _held_storages(self) -> frozenset[int]:
        values = [self.graph[name].value for name in self._held]
        return frozenset(value.storage for value in values if isinstance(value, TensorSpec) and value.storage >= 0)

    @cached_property
    def rerun(self) -> Rerun:
        """What must not run twice."""
        return Rerun(self.graph, self._mutated)

    @cached_property
    def _mutated(self) -> MutatedReads:
        return mutated_reads(self.graph, classify(self.graph))

    def changed_input(self, name: str) -> Node:
        """The input that a value reads and that the step changes in place."""
        return self.graph[self._mutated.source[self.graph.index[name]]]

    @cached_property
    def backward(self) -> Half:
        """The backward as it runs. Only where there is a plan."""
        assert self.partition is not None
        return cut(self.graph, decision_of(self.partition)).backward

    @cached_property
    def readers(self) -> Mapping[str, tuple[Node, ...]]:
        """For each value, the nodes of the backward that read it."""
        found: dict[str, list[Node]] = {}
        for node in self.backward.nodes:
            for name in node.refs:
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def reads(self, node: Node) -> tuple[Node, ...]:
        """What a node reads, common subexpressions merged as in the plan."""
        replaced: Mapping[str, str] = self.partition.replaced if self.partition is not None else {}
        return tuple(self.graph[replaced.get(name, name)] for name in node.refs)


def is_view(node: Node) -> bool:
    """Whether a node computes nothing: a view, or a part of a tuple. `_unsafe_view` is one that torch lists nowhere."""
    return node.target in (GETITEM, "aten._unsafe_view.default") or not _VIEWS.isdisjoint(node.tags)

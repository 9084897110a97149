"""A trace and its plans in numbers: what the text, Markdown and comparison views show. Pure; torch-free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from aotcli.analysis.op_names import op_label
from aotcli.ir.joint import JointGraph, NodeKind, Tag
from aotcli.ir.partition import Category, Partition, SavedKind
from aotcli.ir.tensor import TensorSpec
from aotcli.ir.trace import Trace

_BACKWARD_TAGS = frozenset({"is_backward", "must_be_in_backward"})
_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})


@dataclass(frozen=True)
class Plan:
    """What one strategy decides for every region of a trace, in the trace's order. Bytes by unique storage.

    `label` is the strategy with the options that were given: ``mincut:aggressive=true``. `usage` holds the lines that
    make a training script train by such plans.
    """

    strategy: str
    options: Mapping[str, object]
    partitions: tuple[Partition, ...]
    label: str
    usage: tuple[str, ...] = ()

    @property
    def saved_bytes(self) -> int:
        return sum(each.saved_bytes for each in self.partitions)

    @property
    def saved_input_bytes(self) -> int:
        return sum(each.saved_input_bytes for each in self.partitions)

    @property
    def saved_output_bytes(self) -> int:
        return sum(each.saved_output_bytes for each in self.partitions)

    @property
    def recompute_flops(self) -> int:
        return sum(each.recompute_flops for each in self.partitions)

    @property
    def forward_flops(self) -> int:
        return sum(each.forward_flops for each in self.partitions)

    @property
    def backward_flops(self) -> int:
        return sum(each.backward_flops for each in self.partitions)

    @property
    def forward_ops(self) -> int:
        return sum(len(each.forward_nodes) for each in self.partitions)

    @property
    def backward_ops(self) -> int:
        return sum(len(each.backward_nodes) for each in self.partitions)

    @property
    def recomputed_ops(self) -> int:
        return sum(len(each.recomputed) for each in self.partitions)

    @property
    def peak_bytes(self) -> int:
        """The largest peak of any region: regions of one step need not be alive together."""
        return max((each.peak_bytes for each in self.partitions), default=0)

    @cached_property
    def saved_tensors(self) -> int:
        """Storages of activations."""
        return sum(count_storages(each, Category.ACTIVATION) for each in self.partitions)

    @property
    def unknown_flops(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(op for each in self.partitions for op in each.unknown_flops))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for each in self.partitions for note in each.notes))


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan that saves less: how to ask for it, and what it costs. `arguments` are command-line words."""

    arguments: str
    saved_bytes: int
    recompute_flops: int
    recomputed: RecomputeSummary


@dataclass(frozen=True, slots=True)
class RecomputeSummary:
    """What the backward runs again: `ops` that compute (views, which are free, are counted in `views`), how many of
    them are pointwise, and the compute-intensive ones by label."""

    ops: int
    views: int
    pointwise: int
    intensive: tuple[tuple[str, int], ...]

    @property
    def intensive_ops(self) -> int:
        return sum(count for _, count in self.intensive)


@dataclass(frozen=True, slots=True)
class JointCounts:
    """Nodes of a joint graph: placeholders, ops before and after the loss, and their FLOPs."""

    nodes: int
    ops: int
    forward_ops: int
    backward_ops: int
    forward_flops: int
    backward_flops: int
    unknown_flops: tuple[tuple[str, int], ...]


def count_storages(partition: Partition, category: Category) -> int:
    """Different storages among the saved tensors of a category."""
    tensors = [v for v in partition.saved if v.category is category and v.kind is SavedKind.TENSOR]
    shared = {value.storage for value in tensors if value.storage >= 0}
    return len(shared) + sum(1 for value in tensors if value.storage < 0)


def summarize_recomputed(graph: JointGraph, recomputed: Sequence[str]) -> RecomputeSummary:
    """Counts what a plan runs again; names that the graph does not have (a plan's own nodes) count as ops."""
    views = pointwise = 0
    intensive: Counter[str] = Counter()
    for name in recomputed:
        position = graph.index.get(name)
        if position is None:
            continue
        node = graph.nodes[position]
        # PyTorch's list of compute-intensive ops lacks some kinds of attention; their FLOPs tell (None: an op
        # that computes, by no known formula).
        if Tag.COMPUTE_INTENSIVE in node.tags or node.flops != 0:
            intensive[op_label(node.target)] += 1
        elif not _VIEWS.isdisjoint(node.tags) or node.target == "operator.getitem":
            views += 1
        elif Tag.POINTWISE in node.tags:
            pointwise += 1
    return RecomputeSummary(len(recomputed) - views, views, pointwise, tuple(intensive.most_common()))


def merge_recomputed(parts: Sequence[RecomputeSummary]) -> RecomputeSummary:
    intensive: Counter[str] = Counter()
    for part in parts:
        intensive.update(dict(part.intensive))
    return RecomputeSummary(
        sum(part.ops for part in parts),
        sum(part.views for part in parts),
        sum(part.pointwise for part in parts),
        tuple(intensive.most_common()),
    )


def summarize_plan_recomputed(trace: Trace, plan: Plan) -> RecomputeSummary:
    pairs = zip(trace.regions, plan.partitions, strict=True)
    return merge_recomputed([summarize_recomputed(graph, partition.recomputed) for graph, partition in pairs])


def backward_marks(graph: JointGraph) -> tuple[bool, ...]:
    """Whether each node belongs to the backward: tagged so by tracing, or reached by a tangent."""
    marks: list[bool] = []
    for position, node in enumerate(graph.nodes):
        if node.kind is NodeKind.OP:
            reached = any(marks[source] for source in graph.inputs_of[position])
            marks.append(reached or node.partitioner_tag in _BACKWARD_TAGS)
        else:
            marks.append(node.kind in (NodeKind.TANGENT, NodeKind.BACKWARD_SEED))
    return tuple(marks)


def count_joint(graph: JointGraph) -> JointCounts:
    """Counts of one region. FLOPs leave out ops without a formula, which are counted by name."""
    marks = backward_marks(graph)
    ops = [0, 0]
    flops = [0, 0]
    unknown: Counter[str] = Counter()
    for node, backward in zip(graph.nodes, marks, strict=True):
        if node.kind is not NodeKind.OP:
            continue
        ops[backward] += 1
        if node.flops is None:
            unknown[node.packet] += 1
        else:
            flops[backward] += node.flops
    return JointCounts(
        nodes=len(graph.nodes),
        ops=sum(ops),
        forward_ops=ops[False],
        backward_ops=ops[True],
        forward_flops=flops[False],
        backward_flops=flops[True],
        unknown_flops=tuple(sorted(unknown.items())),
    )


def placeholder_bytes(graph: JointGraph, kind: NodeKind) -> int:
    """Bytes of a region's parameters, buffers or inputs, by unique storage."""
    sizes: dict[int, int] = {}
    loose = 0
    for node in graph.nodes:
        if node.kind is kind and isinstance(node.value, TensorSpec):
            if node.value.storage < 0:
                loose += node.value.storage_nbytes
            else:
                sizes[node.value.storage] = node.value.storage_nbytes
    return loose + sum(sizes.values())

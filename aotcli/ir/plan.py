"""A plan: which values of which graph are saved, as a file can hold it and as it can be applied again.

Values are named by their position in the canonical order of the fingerprinted graph; names and rules are for reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.errors import RecordError
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.tensor import TensorSpec, tensor_leaves
from aotcli.ir.trace import Trace

Option = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class PlannedValue:
    """One saved value. `id` is its canonical position; `nbytes` is what saving it costs; `rule` is why it is saved.

    `ordinal` counts the nodes of the same module and op that come before it in canonical order. `category` is whose
    bytes they are (`Category`), "" in files that do not say it.
    """

    id: int
    name: str
    kind: str
    nbytes: int
    rule: str
    reason: str
    module: str | None = None
    ordinal: int = 0
    category: str = ""


@dataclass(frozen=True, slots=True)
class PlanRegion:
    """The plan of one region. `replaced` pairs canonical positions: the first is computed as the second.

    `words` are the distinct descriptions of the graph's nodes (op and value), `sequence` the number of each node's, in
    canonical order: they tell where another graph differs.
    """

    name: str
    fingerprint: str
    saved_bytes: int
    saved: tuple[PlannedValue, ...]
    replaced: tuple[tuple[int, int], ...] = ()
    keep_order: bool = False
    drop_dead_collectives: bool = False
    words: tuple[str, ...] = ()
    sequence: tuple[int, ...] = ()
    order: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one strategy decided for every region of one model. `options` are those of the strategy, sorted by name."""

    model: str
    torch: str
    strategy: str
    level: str
    device: str
    regions: tuple[PlanRegion, ...]
    options: tuple[tuple[str, Option], ...] = ()
    notes: tuple[str, ...] = ()


def plan_of(trace: Trace, partitions: Sequence[Partition]) -> Plan:
    """The plan that `partitions`, one for each region of `trace`, amount to.

    Raises RecordError where they are not: another count, other graphs, or more than one strategy.
    """
    if len(partitions) != len(trace.regions):
        raise RecordError(
            f"{len(partitions)} partitions do not make a plan for {len(trace.regions)} regions",
            why="a plan has one partition for each region",
            fix="partition the whole trace",
        )
    if len({partition.strategy for partition in partitions}) > 1:
        raise RecordError("a plan file holds the plan of one strategy", fix="give --strategy once")
    first = partitions[0] if partitions else None
    return Plan(
        model=trace.model.name,
        torch=trace.environment.torch,
        strategy="" if first is None else first.strategy,
        level=trace.settings.level,
        device=trace.environment.device,
        regions=tuple(_region(graph, each) for graph, each in zip(trace.regions, partitions, strict=True)),
        options=() if first is None else tuple(sorted((key, _option(value)) for key, value in first.options.items())),
    )


def _option(value: object) -> Option:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _region(graph: JointGraph, partition: Partition) -> PlanRegion:
    if partition.fingerprint != graph.fingerprint:
        raise RecordError(
            f"the partition of {graph.name} was made for another graph",
            why=f"it is for {partition.fingerprint}, and the graph is {graph.fingerprint}",
            fix="partition this trace again",
        )
    order = canonical_order(graph)
    place = {graph.nodes[position].name: rank for rank, position in enumerate(order)}
    described = [describe_node(graph.nodes[position]) for position in order]
    words = {text: number for number, text in enumerate(dict.fromkeys(described))}
    ordinals = module_ordinals(graph, order)
    return PlanRegion(
        name=graph.name,
        fingerprint=graph.fingerprint,
        saved_bytes=partition.saved_bytes,
        saved=tuple(
            PlannedValue(
                value.id,
                value.name,
                str(value.kind),
                value.nbytes,
                value.reason.rule,
                value.reason.text,
                value.module,
                ordinals[value.id],
                str(value.category),
            )
            for value in partition.saved
        ),
        replaced=tuple(sorted((place[old], place[new]) for old, new in partition.replaced.items())),
        keep_order=partition.keep_order,
        drop_dead_collectives=partition.drop_dead_collectives,
        words=tuple(words),
        sequence=tuple(words[text] for text in described),
        order=partition.order,
    )


def describe_node(node: Node) -> str:
    """What a node is, in words that hold no names: ``aten.mm.default float32[4, 8]``."""
    return " ".join([describe_op(node), *(_describe_tensor(leaf) for leaf in tensor_leaves(node.value))])


def describe_op(node: Node) -> str:
    """The op, or the kind of a node that is none."""
    if node.kind in PRIMAL_KINDS:
        return "primal"
    return node.target if node.kind is NodeKind.OP else str(node.kind)


def _describe_tensor(spec: TensorSpec) -> str:
    # Names of symbols differ between two captures of one model.
    return f"{spec.dtype}[{', '.join('?' if isinstance(dim, str) else str(dim) for dim in spec.shape)}]"


def module_ordinals(graph: JointGraph, order: Sequence[int]) -> list[int]:
    """For each canonical position, how many nodes before it have the same module and op."""
    seen: dict[tuple[str | None, str], int] = {}
    found: list[int] = []
    for position in order:
        node = graph.nodes[position]
        key = (node.module, describe_op(node))
        found.append(seen.get(key, 0))
        seen[key] = found[-1] + 1
    return found


def first_difference(graph: JointGraph, region: PlanRegion) -> str:
    """Where `graph` first differs from the graph that was planned, in canonical order, as a phrase."""
    if not region.sequence or max(region.sequence) >= len(region.words):
        return f"the plan is for graph {region.fingerprint}, and this one is {graph.fingerprint}"
    order = canonical_order(graph)
    for rank, (number, position) in enumerate(zip(region.sequence, order, strict=False)):
        node = graph.nodes[position]
        here = describe_node(node)
        if here != region.words[number]:
            place = f" in {node.module}" if node.module else ""
            return f"node {rank} is {here} ({node.name}{place}), and the plan has {region.words[number]} there"
    if len(order) != len(region.sequence):
        return f"it has {len(order)} nodes, and the plan's has {len(region.sequence)}"
    return "the ops are the same, with other arguments, strides, aliases or static inputs"


def decision_from_plan(graph: JointGraph, region: PlanRegion) -> Decision:
    """The decision that `region` holds, in the names of `graph`.

    Raises RecordError where `graph` is not the one that was planned.
    """
    if region.fingerprint != graph.fingerprint:
        raise RecordError(
            f"the plan for {region.name} is for another graph",
            why=f"first difference: {first_difference(graph, region)}",
            fix="make the plan again with `aotcli partition MODEL -o FILE`",
        )
    order = canonical_order(graph)
    ids = [value.id for value in region.saved] + [number for pair in region.replaced for number in pair]
    if not all(0 <= number < len(order) for number in ids):
        raise RecordError(
            f"the plan for {region.name} names nodes that the graph does not have",
            why=f"the graph has {len(order)} nodes",
            fix="the plan is damaged: make it again with `aotcli partition MODEL -o PLAN`",
        )
    names = [graph.nodes[position].name for position in order]
    return Decision(
        saved=tuple((names[value.id], Reason(value.rule, value.reason)) for value in region.saved),
        replaced={names[old]: names[new] for old, new in region.replaced},
        keep_order=region.keep_order,
        drop_dead_collectives=region.drop_dead_collectives,
        order=region.order,
    )

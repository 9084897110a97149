"""A plan: which values of which graph are saved, as a file can hold it and as it can be applied again.

Values are named by their position in the canonical order of the fingerprinted graph; names and rules are for reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.errors import RecordError
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.trace import Trace

Option = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class PlannedValue:
    """One saved value. `id` is its canonical position; `nbytes` is what saving it costs; `rule` is why it is saved."""

    id: int
    name: str
    kind: str
    nbytes: int
    rule: str
    reason: str
    module: str | None = None


@dataclass(frozen=True, slots=True)
class PlanRegion:
    """The plan of one region. `replaced` pairs canonical positions: the first is computed as the second."""

    name: str
    fingerprint: str
    saved_bytes: int
    saved: tuple[PlannedValue, ...]
    replaced: tuple[tuple[int, int], ...] = ()
    keep_order: bool = False
    drop_dead_collectives: bool = False


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
        raise RecordError(f"{len(partitions)} partitions do not make a plan for {len(trace.regions)} regions")
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
        raise RecordError(f"the partition of {graph.name} was made for another graph")
    place = {graph.nodes[position].name: rank for rank, position in enumerate(canonical_order(graph))}
    return PlanRegion(
        name=graph.name,
        fingerprint=graph.fingerprint,
        saved_bytes=partition.saved_bytes,
        saved=tuple(
            PlannedValue(
                value.id, value.name, str(value.kind), value.nbytes, value.reason.rule, value.reason.text, value.module
            )
            for value in partition.saved
        ),
        replaced=tuple(sorted((place[old], place[new]) for old, new in partition.replaced.items())),
        keep_order=partition.keep_order,
        drop_dead_collectives=partition.drop_dead_collectives,
    )


def decision_from_plan(graph: JointGraph, region: PlanRegion) -> Decision:
    """The decision that `region` holds, in the names of `graph`.

    Raises RecordError where `graph` is not the one that was planned.
    """
    if region.fingerprint != graph.fingerprint:
        raise RecordError(
            f"the plan for {region.name} is for another graph",
            why=f"it is for {region.fingerprint}, and this one is {graph.fingerprint}",
            fix="make the plan again with `aotcli partition MODEL -o FILE`",
        )
    order = canonical_order(graph)
    ids = [value.id for value in region.saved] + [number for pair in region.replaced for number in pair]
    if not all(0 <= number < len(order) for number in ids):
        raise RecordError(f"the plan for {region.name} names nodes that the graph does not have")
    names = [graph.nodes[position].name for position in order]
    return Decision(
        saved=tuple((names[value.id], Reason(value.rule, value.reason)) for value in region.saved),
        replaced={names[old]: names[new] for old, new in region.replaced},
        keep_order=region.keep_order,
        drop_dead_collectives=region.drop_dead_collectives,
    )

"""A baseline: what was accepted of a model, as a file of the repository that every command on records can read.

It is the record of the captured step (schema "aotcli.trace") with one object more, ``baseline``: which strategy
planned it, what the plan costs, which values it saves, with which aotcli, and the reason why it was accepted. None of
that is in a fingerprint. The decision is kept as canonical positions, by reason; so it can be assembled again as it was
accepted, whatever today's planner would decide, and for strategies that cannot plan a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.errors import RecordError
from aotcli.ir.check import Figures
from aotcli.ir.document import Json, Place, parse
from aotcli.ir.fields import from_json, to_json
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.privacy import scrubbed
from aotcli.ir.serial import TRACE_SCHEMA, dump_trace, load_trace
from aotcli.ir.tensor import tensor_leaves
from aotcli.ir.trace import Trace

KEY = "baseline"
_RENEW = "restore it from version control, or accept it anew"


@dataclass(frozen=True, slots=True)
class SavedBy:
    """The values that one rule saved, by canonical position."""

    rule: str
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AcceptedRegion:
    """The decision for one region. `merged` are canonical positions of common subexpressions, and `into` those of the
    nodes that stand for them; the rest is as in `Decision`."""

    saved: tuple[SavedBy, ...]
    merged: tuple[int, ...] = ()
    into: tuple[int, ...] = ()
    keep_order: bool = False
    drop_dead_collectives: bool = False
    order: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was accepted: `name` of the baseline, `model` as the configuration spells it, `strategy` with its options.

    `reason` is the user's, "" in one that nobody has accepted yet. `test` is the id of the test that keeps this
    baseline, "" for one of `aotcli check`. `aotcli` is the version that planned.
    """

    name: str
    model: str
    strategy: str
    aotcli: str
    figures: Figures
    regions: tuple[AcceptedRegion, ...]
    reason: str = ""
    test: str = ""


@dataclass(frozen=True)
class Baseline:
    """A captured step and what was accepted of it; `accepted` is None for a plain record put in a baseline's place.

    `note` says so where a newer aotcli wrote it.
    """

    trace: Trace
    accepted: Accepted | None = None
    note: str = ""


def accept_regions(trace: Trace, partitions: Sequence[Partition]) -> tuple[AcceptedRegion, ...]:
    """The decisions behind `partitions`, one for each region of `trace`."""
    return tuple(_region(graph, each) for graph, each in zip(trace.regions, partitions, strict=True))


def _region(graph: JointGraph, partition: Partition) -> AcceptedRegion:
    place = {graph.nodes[position].name: rank for rank, position in enumerate(canonical_order(graph))}
    by_reason: dict[Reason, list[int]] = {}
    for value in partition.saved:
        by_reason.setdefault(value.reason, []).append(value.id)
    pairs = sorted((place[old], place[new]) for old, new in partition.replaced.items())
    return AcceptedRegion(
        saved=tuple(SavedBy(reason.rule, reason.text, tuple(sorted(ids))) for reason, ids in _in_order(by_reason)),
        merged=tuple(old for old, _ in pairs),
        into=tuple(new for _, new in pairs),
        keep_order=partition.keep_order,
        drop_dead_collectives=partition.drop_dead_collectives,
        order=partition.order,
    )


def _in_order(by_reason: dict[Reason, list[int]]) -> list[tuple[Reason, list[int]]]:
    return sorted(by_reason.items(), key=lambda item: (item[0].rule, item[0].text))


def accepted_decision(graph: JointGraph, region: AcceptedRegion) -> Decision:
    """The decision of `region` in the names of `graph`.

    Raises RecordError where it names nodes that the graph does not have.
    """
    order = canonical_order(graph)
    numbers = [*(number for group in region.saved for number in group.ids), *region.merged, *region.into]
    if not all(0 <= number < len(order) for number in numbers) or len(region.merged) != len(region.into):
        raise RecordError(
            "the baseline is damaged", why="its plan names nodes that its graph does not have", fix=_RENEW
        )
    if not _merges_are_sound(graph, order, region):
        raise RecordError("the baseline is damaged", why="its plan merges ops that are not the same", fix=_RENEW)
    names = [graph.nodes[position].name for position in order]
    reasons = {number: Reason(group.rule, group.text) for group in region.saved for number in group.ids}
    in_order = sorted(reasons, key=order.__getitem__)
    return Decision(
        saved=tuple((names[number], reasons[number]) for number in in_order),
        replaced={names[old]: names[new] for old, new in zip(region.merged, region.into, strict=True)},
        keep_order=region.keep_order,
        drop_dead_collectives=region.drop_dead_collectives,
        order=region.order,
    )


def _merges_are_sound(graph: JointGraph, order: Sequence[int], region: AcceptedRegion) -> bool:
    """Whether each merged op is like the one that stands for it, which comes earlier and is not merged itself."""
    merged = set(region.merged)
    for old, new in zip(region.merged, region.into, strict=True):
        first, second = graph.nodes[order[new]], graph.nodes[order[old]]
        if new in merged or order[new] >= order[old] or second.kind is not NodeKind.OP or first.kind is not NodeKind.OP:
            return False
        if (first.target, len(tensor_leaves(first.value))) != (second.target, len(tensor_leaves(second.value))):
            return False
    return True


def dump_baseline(baseline: Baseline) -> str:
    """`baseline` as the text of a record. Raises VerificationError where a graph cannot be written."""
    beside: dict[str, Json] = {}
    if baseline.accepted is not None:
        beside[KEY] = to_json(scrubbed(baseline.accepted))
    return dump_trace(baseline.trace, source=baseline.trace.settings.with_source, beside=beside)


def load_baseline(text: str) -> Baseline:
    """The baseline in the text of a record. Raises RecordError where it is damaged, no record, or too new."""
    trace = load_trace(text)
    document, note = parse(text, TRACE_SCHEMA)
    if KEY not in document:
        return Baseline(trace, note=note)
    accepted = from_json(Accepted, document[KEY], Place(KEY))
    if len(accepted.regions) != len(trace.regions):
        raise Place(KEY).error(f"it has a plan for {len(accepted.regions)} regions of {len(trace.regions)}")
    return Baseline(trace, accepted, note)

"""The difference between two planned steps.

    diff_plans(
        left: DiffSide,                  # DiffSide(trace, plan, name="old.aot.json")
        right: DiffSide,
        pairs: Sequence[RegionPair] | None = None,
    ) -> Difference                      # aotcli/ir/difference.py

`pairs` are `pair_regions(left.trace.regions, right.trace.regions)`, found where they are not given: to compare several
plans of the same two traces, find them once. `Difference.contributors` are the rows of saved tensors that differ,
largest change first, with module, line, shape and bytes on both sides; their `delta_bytes` add up to
`Difference.saved_delta_bytes`. `diff_plans(right, left)` is `diff_plans(left, right).mirrored()`.

The change of saved bytes has two parts. One strategy, the *yardstick*, plans both graphs: what it saves more on the
right than on the left is what the graph changed. The rest is what the two plans decide otherwise. Where one strategy
made both plans with the same options, it is its own yardstick, and all of the change is the graph's; where the graphs
are equal, all of it is the decision's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from aotcli.analysis.diff_environment import environment_changes
from aotcli.analysis.diff_fates import fate_changes
from aotcli.analysis.diff_places import find_places
from aotcli.analysis.diff_regions import RegionPair, pair_regions
from aotcli.analysis.diff_rewrites import rewrites
from aotcli.analysis.diff_saved import fold_pairs, pair_tensors
from aotcli.analysis.diff_side import PlannedRegion
from aotcli.analysis.diff_ties import find_ties
from aotcli.analysis.diff_values import value_changes
from aotcli.analysis.diff_yardstick import Judge, Yardsticks, yardsticks
from aotcli.analysis.summary import Plan
from aotcli.ir.difference import (
    Cause,
    Confidence,
    Difference,
    FateChange,
    Order,
    RegionDifference,
    Rewrite,
    SavedChange,
    SideInfo,
    SideTotals,
    ValueChange,
)
from aotcli.ir.joint import JointGraph
from aotcli.ir.pairing import Match, Pairing
from aotcli.ir.partition import Partition
from aotcli.ir.trace import Trace

_NO_GRAPH = JointGraph((), 0, "")
_NO_PARTITION = Partition("", "", "", {}, (), (), (), (), 0, 0, 0, 0, 0, 0, (), 0)


@dataclass(frozen=True)
class DiffSide:
    """A trace and the plan for its regions. `name` is how the user named it; `sketched` is the number of nodes of the
    graph of a plan file, which has no more of it (aotcli/analysis/diff_planfile.py); None for what has its graph."""

    trace: Trace
    plan: Plan
    name: str = ""
    sketched: int | None = None

    def region(self, position: int) -> PlannedRegion:
        """The region at `position` as planned; an empty one for -1."""
        return _region(self.trace, self.plan, position)


def _region(trace: Trace, plan: Plan, position: int) -> PlannedRegion:
    if position < 0:
        return PlannedRegion(_NO_GRAPH, _NO_PARTITION)
    return PlannedRegion(trace.regions[position], plan.partitions[position])


def diff_plans(left: DiffSide, right: DiffSide, pairs: Sequence[RegionPair] | None = None) -> Difference:
    """What differs; see the head of this file. Near-linear in nodes, where the pairs are given."""
    if pairs is None:
        pairs = pair_regions(left.trace.regions, right.trace.regions)
    unknown = _unknown(left, right)
    comparable = not unknown and not all(pair.same_graph for pair in pairs)
    yardstick = yardsticks((left.trace.regions, left.plan), (right.trace.regions, right.plan)) if comparable else None
    rows = [_compare(left, right, pair, number, yardstick) for number, pair in enumerate(pairs)]
    saved = [row for each in rows for row in each.saved]
    by_rows = sum(row.delta_bytes for row in saved if row.cause is Cause.GRAPH)
    graph_bytes = by_rows if yardstick is None else yardstick.delta_bytes
    return Difference(
        left=_side_info(left),
        right=_side_info(right),
        environment=environment_changes(left.trace, right.trace, brief=bool(unknown)),
        regions=tuple(_region_difference(left, right, pair) for pair in pairs),
        saved=tuple(sorted(saved, key=_order)),
        fates=tuple(sorted((row for each in rows for row in each.fates), key=_order)),
        rewrites=tuple(sorted((row for each in rows for row in each.rewrites), key=_order)),
        values=tuple(sorted((row for each in rows for row in each.values), key=_order)),
        graph_bytes=graph_bytes,
        decision_bytes=right.plan.saved_bytes - left.plan.saved_bytes - graph_bytes,
        yardstick="" if yardstick is None else yardstick.label,
        unknown=unknown,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """What differs in one region."""

    saved: Sequence[SavedChange]
    fates: Sequence[FateChange] = ()
    rewrites: Sequence[Rewrite] = ()
    values: Sequence[ValueChange] = ()


def _compare(left: DiffSide, right: DiffSide, pair: RegionPair, number: int, yardstick: Yardsticks | None) -> _Rows:
    there, here = left.region(pair.left), right.region(pair.right)
    measured = None
    if yardstick is not None:
        measured = (
            there if yardstick.left is left.plan else _region(left.trace, yardstick.left, pair.left),
            here if yardstick.right is right.plan else _region(right.trace, yardstick.right, pair.right),
        )
    judge = Judge(pair.same_graph, measured)
    places = None if pair.same_graph or pair.partial else find_places(there.graph, here.graph, pair.pairing)
    tensors = pair_tensors(there, here, pair.pairing, places)
    causes = [judge.tensor(each) for each in tensors]
    saved = fold_pairs(tensors, causes, find_ties(there.graph, here.graph, tensors, causes), number)
    if pair.partial:
        return _Rows(saved)
    return _Rows(
        saved,
        fate_changes(there, here, pair.pairing, judge.cause, number),
        [] if places is None else rewrites(places, number),
        value_changes(there.graph, here.graph, pair.pairing, number),
    )


def _unknown(left: DiffSide, right: DiffSide) -> tuple[str, ...]:
    names = [side.name or side.plan.label for side in (left, right) if side.sketched is not None]
    if not names:
        return ()
    verb = "is a plan file and holds" if len(names) == 1 else "are plan files and hold"
    return (f"{' and '.join(sorted(names))} {verb} no graph: only what is saved is compared",)


def _order(row: SavedChange | FateChange | Rewrite | ValueChange) -> Order:
    return row.order


def _side_info(side: DiffSide) -> SideInfo:
    trace, plan = side.trace, side.plan
    totals = SideTotals(
        saved_bytes=plan.saved_bytes,
        saved_tensors=plan.saved_tensors,
        saved_input_bytes=plan.saved_input_bytes,
        nodes=sum(len(graph.nodes) for graph in trace.regions) if side.sketched is None else side.sketched,
    )
    if side.sketched is None:
        totals = replace(
            totals,
            parameters=trace.model.parameters,
            forward_ops=plan.forward_ops,
            backward_ops=plan.backward_ops,
            recomputed_ops=plan.recomputed_ops,
            forward_flops=plan.forward_flops,
            backward_flops=plan.backward_flops,
            recompute_flops=plan.recompute_flops,
            peak_bytes=plan.peak_bytes,
        )
    environment = trace.environment
    return SideInfo(
        name=side.name or trace.model.name,
        model=trace.model.name,
        strategy=plan.label,
        torch=environment.torch,
        device=environment.device,
        level=trace.settings.level,
        totals=totals,
    )


def _region_difference(left: DiffSide, right: DiffSide, pair: RegionPair) -> RegionDifference:
    there = left.trace.regions[pair.left] if pair.left >= 0 else _NO_GRAPH
    here = right.trace.regions[pair.right] if pair.right >= 0 else _NO_GRAPH
    return RegionDifference(
        left=there.name if pair.left >= 0 else "",
        right=here.name if pair.right >= 0 else "",
        same_graph=pair.same_graph,
        confidence=_confidence(pair.pairing),
        left_nodes=len(there.nodes),
        right_nodes=len(here.nodes),
        partial=pair.partial,
    )


def _confidence(pairing: Pairing) -> Confidence:
    counts = dict.fromkeys(Match, 0)
    for match in chain(pairing.match):
        if match is not None:
            counts[match] += 1
    return Confidence(
        exact=counts[Match.EXACT],
        wired=counts[Match.WIRED],
        near=counts[Match.NEAR],
        aligned=counts[Match.ALIGNED],
        changed=counts[Match.CHANGED],
        left_unpaired=sum(position < 0 for position in pairing.right_of),
        right_unpaired=sum(position < 0 for position in pairing.left_of),
    )

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
from dataclasses import dataclass
from itertools import chain

from aotcli.analysis.diff_environment import environment_changes
from aotcli.analysis.diff_fates import fate_changes
from aotcli.analysis.diff_regions import RegionPair, pair_regions
from aotcli.analysis.diff_rewrites import rewrites
from aotcli.analysis.diff_saved import TensorPair, fold_pairs, pair_tensors
from aotcli.analysis.diff_side import PlannedRegion
from aotcli.analysis.diff_ties import find_ties
from aotcli.analysis.diff_values import value_changes
from aotcli.analysis.diff_yardstick import Yardsticks, yardsticks
from aotcli.analysis.summary import Plan
from aotcli.ir.difference import (
    Cause,
    Confidence,
    Difference,
    Fate,
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
    """A trace and the plan for its regions. `name` is how the user named it."""

    trace: Trace
    plan: Plan
    name: str = ""

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
    equal = all(pair.same_graph for pair in pairs)
    yardstick = None if equal else yardsticks((left.trace.regions, left.plan), (right.trace.regions, right.plan))
    saved: list[SavedChange] = []
    fates: list[FateChange] = []
    replaced: list[Rewrite] = []
    values: list[ValueChange] = []
    for number, pair in enumerate(pairs):
        there, here = left.region(pair.left), right.region(pair.right)
        judge = _Judge(pair, yardstick, left.trace, right.trace)
        tensors = pair_tensors(there, here, pair.pairing)
        causes = [judge.tensor(each) for each in tensors]
        saved += fold_pairs(tensors, causes, find_ties(there.graph, here.graph, tensors, causes), number)
        fates += fate_changes(there, here, pair.pairing, judge.cause, number)
        values += value_changes(there.graph, here.graph, pair.pairing, number)
        if not pair.same_graph:
            replaced += rewrites(there.graph, here.graph, pair.pairing, number)
    by_rows = sum(row.delta_bytes for row in saved if row.cause is Cause.GRAPH)
    graph_bytes = by_rows if yardstick is None else yardstick.delta_bytes
    return Difference(
        left=_side_info(left),
        right=_side_info(right),
        environment=environment_changes(left.trace, right.trace),
        regions=tuple(_region_difference(left, right, pair) for pair in pairs),
        saved=tuple(sorted(saved, key=_order)),
        fates=tuple(sorted(fates, key=_order)),
        rewrites=tuple(sorted(replaced, key=_order)),
        values=tuple(sorted(values, key=_order)),
        graph_bytes=graph_bytes,
        decision_bytes=right.plan.saved_bytes - left.plan.saved_bytes - graph_bytes,
        yardstick="" if yardstick is None else yardstick.label,
    )


def _order(row: SavedChange | FateChange | Rewrite | ValueChange) -> Order:
    return row.order


class _Judge:
    """Whether a tensor differs because the graph does, or because the plans decide otherwise."""

    def __init__(self, pair: RegionPair, yardstick: Yardsticks | None, left: Trace, right: Trace) -> None:
        self._same_graph = pair.same_graph
        self._measured: tuple[PlannedRegion, PlannedRegion] | None = None
        if yardstick is not None:
            self._measured = _region(left, yardstick.left, pair.left), _region(right, yardstick.right, pair.right)

    def tensor(self, pair: TensorPair) -> Cause:
        left, right = pair.left, pair.right
        if left is None or right is None:
            return Cause.GRAPH
        return self.cause(left.position, right.position, left.fate, right.fate)

    def cause(self, left: int, right: int, left_fate: Fate, right_fate: Fate) -> Cause:
        """Why a pair of nodes, by position, has the fates that it has."""
        if left_fate is right_fate:
            return Cause.GRAPH
        if self._same_graph or self._measured is None:
            return Cause.DECISION
        there, here = self._measured
        saved = [there.fates[left] is Fate.SAVED, here.fates[right] is Fate.SAVED]
        return Cause.GRAPH if saved == [left_fate is Fate.SAVED, right_fate is Fate.SAVED] else Cause.DECISION


def _side_info(side: DiffSide) -> SideInfo:
    trace, plan = side.trace, side.plan
    totals = SideTotals(
        saved_bytes=plan.saved_bytes,
        saved_tensors=plan.saved_tensors,
        saved_input_bytes=plan.saved_input_bytes,
        nodes=sum(len(graph.nodes) for graph in trace.regions),
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

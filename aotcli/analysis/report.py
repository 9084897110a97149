"""All that the HTML report shows of a planned step, computed; aotcli/render/report sets it on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cost import traffic
from aotcli.analysis.cut import cut
from aotcli.analysis.lifetimes import Lifetimes, trace_lifetimes
from aotcli.analysis.op_names import storage_maker
from aotcli.analysis.rollup import Rollup, roll_up
from aotcli.analysis.summary import Plan, summarize_plan_recomputed
from aotcli.ir.difference import Difference
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category, Partition
from aotcli.ir.trace import Trace


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One plan of the trade-off: what it saves, and what that costs.

    `moved_bytes` is what its recomputed ops read and write, each run alone: pointwise ops have no FLOPs, and are not
    free. `cost` is in the trade-off's unit. `arguments` are the command-line words that ask for it. `saved` names, for
    each region, the nodes that make the memory that it saves. `chosen` marks the report's own plan.
    """

    label: str
    arguments: str
    saved_bytes: int
    recomputed_ops: int
    recompute_flops: int
    moved_bytes: int
    peak_bytes: int
    cost: int = 0
    saved: tuple[tuple[str, ...], ...] = ()
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Corner:
    """A corner of the front: no plan is cheaper at these bytes. `arguments` and `saved` as for a point."""

    saved_bytes: int
    cost: int
    arguments: str
    saved: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Saved bytes against the cost of recomputing, in `unit` ("ps" or "FLOP"; `estimate` says by which estimate).

    `corners` go from the most bytes to the fewest: no plan at all lies below the line that joins them. `points` are
    plans of strategies.
    """

    unit: str
    estimate: str
    corners: tuple[Corner, ...]
    points: tuple[FrontPoint, ...]


@dataclass(frozen=True)
class RegionReport:
    """One captured region. `ids[i]` is the canonical position of node i: its name for links, whatever it is called."""

    graph: JointGraph
    partition: Partition
    ids: tuple[int, ...]
    lifetimes: Lifetimes
    rollup: Rollup


@dataclass(frozen=True)
class OtherStep:
    """What the report's plan is compared with; the report's own step is the right side of `difference`.

    `trace` and `plan` are None where the other side is a plan file whose graph is not known. `partners[i]` is the other
    step's region that region i is compared with, -1 for none.
    """

    difference: Difference
    trace: Trace | None = None
    plan: Plan | None = None
    partners: tuple[int, ...] = ()


@dataclass(frozen=True)
class StepReport:
    """A planned step. `trade_off` is None where none was computed, `other` where nothing is compared.

    `command` is the command line that makes this report again; `with_source` shows the text of source lines.
    """

    trace: Trace
    plan: Plan
    regions: tuple[RegionReport, ...]
    trade_off: TradeOff | None = None
    other: OtherStep | None = None
    command: str = ""
    with_source: bool = False


def analyze_regions(trace: Trace, plan: Plan) -> tuple[RegionReport, ...]:
    """Each region of a planned step in detail."""
    return tuple(_region(graph, partition) for graph, partition in zip(trace.regions, plan.partitions, strict=True))


def _region(graph: JointGraph, partition: Partition) -> RegionReport:
    ids = [0] * len(graph.nodes)
    for rank, position in enumerate(canonical_order(graph)):
        ids[position] = rank
    lifetimes = trace_lifetimes(graph, cut(graph, decision_of(partition)))
    return RegionReport(graph, partition, tuple(ids), lifetimes, roll_up(graph, partition))


def front_point(trace: Trace, plan: Plan, arguments: str, *, cost: int = 0, chosen: bool = False) -> FrontPoint:
    """A plan as a point of the trade-off."""
    return FrontPoint(
        label=plan.label,
        arguments=arguments,
        saved_bytes=plan.saved_bytes,
        recomputed_ops=summarize_plan_recomputed(trace, plan).ops,
        recompute_flops=plan.recompute_flops,
        moved_bytes=moved_bytes(trace.regions, plan.partitions),
        peak_bytes=plan.peak_bytes,
        cost=cost,
        saved=tuple(
            storage_makers(graph, [value.name for value in each.saved if value.category is Category.ACTIVATION])
            for graph, each in zip(trace.regions, plan.partitions, strict=True)
        ),
        chosen=chosen,
    )


def storage_makers(graph: JointGraph, names: Iterable[str]) -> tuple[str, ...]:
    """The nodes that made the memory of some values, each once: two views of one are the same saved tensor."""
    return tuple(dict.fromkeys(storage_maker(graph, name).name for name in names))


def moved_bytes(graphs: Sequence[JointGraph], partitions: Sequence[Partition]) -> int:
    """What the ops that run again read and write, each run alone."""
    moved = 0
    for graph, partition in zip(graphs, partitions, strict=True):
        for name in partition.recomputed:
            if name in graph.index:
                each = traffic(graph, graph[name])
                moved += each.read_bytes + each.written_bytes
    return moved


@dataclass(frozen=True, slots=True)
class SumCorner:
    """A corner of several fronts together; `places[i]` is the corner of front i that it consists of."""

    nbytes: int
    cost: int
    places: tuple[int, ...]


def add_fronts(fronts: Sequence[Sequence[tuple[int, int]]]) -> tuple[SumCorner, ...]:
    """The front of several regions together, from the corners (bytes, cost) of each: whatever saves a byte most cheaply
    goes first (the Minkowski sum of convex curves)."""
    steps = [
        (Fraction(b[1] - a[1], a[0] - b[0]), number, place)
        for number, front in enumerate(fronts)
        for place, (a, b) in enumerate(pairwise(front), 1)
        if a[0] > b[0]
    ]
    places = [0] * len(fronts)
    corners = [_sum_corner(fronts, places)]
    for _, number, place in sorted(steps):
        places[number] = place
        corners.append(_sum_corner(fronts, places))
    return tuple(corners)


def _sum_corner(fronts: Sequence[Sequence[tuple[int, int]]], places: Sequence[int]) -> SumCorner:
    chosen = [front[place] for front, place in zip(fronts, places, strict=True) if front]
    return SumCorner(sum(nbytes for nbytes, _ in chosen), sum(cost for _, cost in chosen), tuple(places))

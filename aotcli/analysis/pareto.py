"""The front of one graph as points with everything a reader compares: bytes, cost, peak, and how far from the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from aotcli.analysis.assemble import assemble, with_best_order
from aotcli.analysis.budgeting import Budgeting
from aotcli.analysis.front import Choice
from aotcli.analysis.mixing import fill
from aotcli.analysis.summary import count_storages
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.pareto import ParetoPoint, PointKind
from aotcli.ir.partition import Category, Partition
from aotcli.ir.sizes import enough_text

_MOST_FILLED = 64


def front_points(
    graph: JointGraph, budgeting: Budgeting, *, between: int = 0, progress: Callable[[str], None] | None = None
) -> Iterator[ParetoPoint]:
    """Every corner, and `between` plans at budgets that divide the range of bytes evenly, from the most bytes.

    A plan between that is no cheaper than one with fewer bytes is left out.
    """
    chosen = dict.fromkeys(budgeting.front.corners, PointKind.CORNER)
    most, least = budgeting.front.corners[0].nbytes, budgeting.front.corners[-1].nbytes
    for part in range(1, min(between, _MOST_FILLED) + 1):
        choice = fill(budgeting.tradeoff, budgeting.front, least + (most - least) * part // (between + 1))
        if choice is not None:
            chosen.setdefault(choice, PointKind.BETWEEN)
    best: int | None = None
    kept: list[Choice] = []
    for choice in sorted(chosen, key=lambda each: (each.nbytes, each.cost)):
        if best is None or choice.cost < best:
            best = choice.cost
            kept.append(choice)
    for number, choice in enumerate(reversed(kept), 1):
        if progress is not None:
            progress(f"plan {number} of {len(kept)}")
        yield _point(graph, budgeting, choice, chosen[choice])


def _point(graph: JointGraph, budgeting: Budgeting, choice: Choice, kind: PointKind) -> ParetoPoint:
    decision = with_best_order(graph, budgeting.decision(choice))
    partition = assemble(graph, decision, strategy="budget")
    return _described(partition, kind, f"budget:{enough_text(choice.nbytes)}", choice.cost, budgeting)


def strategy_point(graph: JointGraph, budgeting: Budgeting, partition: Partition, label: str) -> ParetoPoint:
    """Another strategy's plan at the same prices."""
    price = cost_by_name(budgeting)
    cost = sum(price.get(name, 0) for name in partition.recomputed)
    return _described(partition, PointKind.STRATEGY, label, cost, budgeting)


def cost_by_name(budgeting: Budgeting) -> Mapping[str, int]:
    """What running each value of the trade-off once more costs. What neither half needs for itself costs nothing."""
    nodes, costs = budgeting.tradeoff.graph.nodes, budgeting.costs.costs
    found = {nodes[position].name: costs[position] for position in budgeting.tradeoff.positions}
    free = zip(budgeting.tradeoff.positions, budgeting.tradeoff.cost, strict=True)
    found.update({nodes[position].name: 0 for position, cost in free if cost == 0})
    return found


def forward_cost(budgeting: Budgeting, partitions: Iterable[Partition]) -> int:
    """What running the forward of these plans once costs: that of the first."""
    nodes = budgeting.tradeoff.graph.nodes
    index = budgeting.tradeoff.graph.index
    first = next(iter(partitions))
    return sum(
        budgeting.costs.costs[index[name]]
        for name in first.forward_nodes
        if name in index and nodes[index[name]].kind is NodeKind.OP
    )


def _described(partition: Partition, kind: PointKind, label: str, cost: int, budgeting: Budgeting) -> ParetoPoint:
    nbytes = partition.saved_bytes + partition.random_state_bytes
    bound = budgeting.front.least_cost(nbytes)
    return ParetoPoint(
        kind=kind,
        label=label,
        nbytes=nbytes,
        cost=cost,
        recompute_flops=partition.recompute_flops,
        peak_bytes=partition.peak_bytes,
        tensors=count_storages(partition, Category.ACTIVATION),
        recomputed=len(partition.recomputed),
        bound=None if bound is None else float(bound),
    )

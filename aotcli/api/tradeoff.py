"""The trade-off of a step: its proven front, and where the plans of strategies lie beside it."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.report import FrontPoint, TradeOff, add_fronts, front_point
from aotcli.analysis.summary import Plan
from aotcli.api.choice import choose_strategies
from aotcli.errors import PlanImpossibleError
from aotcli.ir.trace import Trace
from aotcli.strategies.budget import Budget

# Plans to show beside the front, as the command line writes them.
_SHOWN = ("save-all", "mincut", "mincut:aggressive", "recompute-all")


def find_trade_off(trace: Trace, plan: Plan) -> TradeOff | None:
    """The front of all regions together, with `plan` and some strategies' plans as points; None where nothing can be
    decided, because there is no backward or what must be saved leaves no choice."""
    if not any(graph.has_backward for graph in trace.regions):
        return None
    budget = Budget()
    try:
        posed = {p: budget.pose(graph) for p, graph in enumerate(trace.regions) if graph.has_backward}
    except PlanImpossibleError:
        return None
    prices = [
        dict(zip((node.name for node in each.tradeoff.graph.nodes), each.costs.costs, strict=True))
        for each in posed.values()
    ]
    corners = add_fronts([[(c.nbytes, c.cost) for c in each.front.corners] for each in posed.values()])
    unit = next(iter(posed.values())).costs.unit
    points = tuple(_points(trace, plan, dict(zip(posed, prices, strict=True))))
    return TradeOff(unit, f"roofline model, {trace.environment.device} profile", corners, points)


def _points(trace: Trace, plan: Plan, prices: dict[int, dict[str, int]]) -> Sequence[FrontPoint]:
    found = [_point(trace, plan, prices, chosen=True)]
    for name in _SHOWN:
        if name != plan.label:
            chosen = choose_strategies(name)[0]
            partitions = tuple(chosen.strategy.plan(graph, None) for graph in trace.regions)
            other = Plan(chosen.strategy.name, chosen.strategy.options, partitions, chosen.label)
            found.append(_point(trace, other, prices))
    return sorted(found, key=lambda point: (-point.saved_bytes, point.cost))


def _point(trace: Trace, plan: Plan, prices: dict[int, dict[str, int]], *, chosen: bool = False) -> FrontPoint:
    cost = sum(price.get(name, 0) for region, price in prices.items() for name in plan.partitions[region].recomputed)
    return front_point(trace, plan, f"--strategy {plan.label}", cost=cost, chosen=chosen)

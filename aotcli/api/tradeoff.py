"""The trade-off of a step: its proven front, and where the plans of strategies lie beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotcli.analysis.budgeting import Budgeting
from aotcli.analysis.front import Choice
from aotcli.analysis.hardware import find_hardware
from aotcli.analysis.pareto import cost_by_name
from aotcli.analysis.report import Corner, FrontPoint, TradeOff, add_fronts, front_point, storage_makers
from aotcli.analysis.summary import Plan
from aotcli.api.choice import choose_strategies
from aotcli.errors import PlanImpossibleError
from aotcli.ir.sizes import enough_text
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
        posed = [budget.pose(graph) if graph.has_backward else None for graph in trace.regions]
    except PlanImpossibleError:
        return None
    prices = [{} if each is None else cost_by_name(each) for each in posed]
    unit = next(each.costs.unit for each in posed if each is not None)
    profile = find_hardware("", trace.environment.device).name
    points = _points(trace, plan, prices)
    return TradeOff(unit, f"roofline model, {profile} profile", _corners(posed), points)


def _corners(posed: Sequence[Budgeting | None]) -> tuple[Corner, ...]:
    """Corners of the front of all regions; at each, what every region saves there."""
    fronts = [[] if each is None else [(c.nbytes, c.cost) for c in each.front.corners] for each in posed]
    saved = [[] if each is None else [_saved(each, choice) for choice in each.front.corners] for each in posed]
    return tuple(
        Corner(
            corner.nbytes,
            corner.cost,
            f"--strategy budget:{enough_text(corner.nbytes)}",
            tuple(names[place] if names else () for names, place in zip(saved, corner.places, strict=True)),
        )
        for corner in add_fronts(fronts)
    )


def _saved(budgeting: Budgeting, choice: Choice) -> tuple[str, ...]:
    """What a choice saves and pays for."""
    tradeoff = budgeting.tradeoff
    positions = [tradeoff.positions[value] for value in sorted(choice.saved) if tradeoff.nbytes[value]]
    return storage_makers(tradeoff.graph, [tradeoff.graph.nodes[position].name for position in positions])


def _points(trace: Trace, plan: Plan, prices: Sequence[Mapping[str, int]]) -> tuple[FrontPoint, ...]:
    found = [_point(trace, plan, prices, chosen=True)]
    for name in _SHOWN:
        if name != plan.label:
            chosen = choose_strategies(name)[0]
            partitions = tuple(chosen.strategy.plan(graph, None) for graph in trace.regions)
            other = Plan(chosen.strategy.name, chosen.strategy.options, partitions, chosen.label)
            found.append(_point(trace, other, prices))
    return tuple(sorted(found, key=lambda point: (-point.saved_bytes, point.cost)))


def _point(trace: Trace, plan: Plan, prices: Sequence[Mapping[str, int]], *, chosen: bool = False) -> FrontPoint:
    pairs = zip(plan.partitions, prices, strict=True)
    cost = sum(price.get(name, 0) for partition, price in pairs for name in partition.recomputed)
    return front_point(trace, plan, f"--strategy {plan.label}", cost=cost, chosen=chosen)

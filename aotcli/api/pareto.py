"""The whole trade-off between what is saved and what is recomputed, for one region of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aotcli.errors import InputError
from aotcli.ir.pareto import ParetoFront
from aotcli.ir.trace import CaptureSettings, Trace
from aotcli.render.page import Page

_BESIDE = ("save-all", "mincut", "recompute-all")
TORCH_BUDGETS = ("0.9", "0.8", "0.7", "0.6", "0.5", "0.4", "0.3", "0.2", "0.1")


@dataclass(frozen=True, repr=False)
class ParetoResult:
    """A front and the trace that it is of. Printing it shows what the command line shows."""

    trace: Trace
    front: ParetoFront
    target: str = field(default="MODEL", kw_only=True)
    cached: bool = field(default=False, kw_only=True)

    def text(self, page: Page | None = None, *, quiet: bool = False) -> str:
        """A plot and a table."""
        from aotcli.render.pareto_text import render_pareto_text

        return render_pareto_text(
            self.trace, self.front, page or Page(), target=self.target, quiet=quiet, cached=self.cached
        )

    def markdown(self) -> str:
        """The table as GitHub-flavoured Markdown."""
        from aotcli.render.pareto_markdown import render_pareto_markdown

        return render_pareto_markdown(self.trace, self.front, target=self.target)

    def json(self) -> str:
        """The points as JSON of schema "aotcli.pareto"."""
        from aotcli.render.pareto_json import render_pareto_json

        return render_pareto_json(self.trace, self.front)

    def svg(self) -> str:
        """The plot as SVG."""
        from aotcli.render.pareto_svg import render_pareto_svg

        return render_pareto_svg(self.trace, self.front)

    def __repr__(self) -> str:
        return self.text()


def pareto(
    model: Any,
    *,
    options: Mapping[str, object] | None = None,
    region: int | None = None,
    between: int = 0,
    with_torch: bool = False,
    cache: bool = True,
    progress: Callable[[str], None] | None = None,
    settings: CaptureSettings | None = None,
    target: str = "MODEL",
) -> ParetoResult:
    """The front of a step: `model` is a trace, or a name as the command line takes it.

    `options` are those of the strategy `budget` (cost, hardware, fused, cse). `region` counts from 1; without it, the
    region that saves most under `mincut`. `between` plans are looked for between the corners. `with_torch` adds
    PyTorch's own budgets, for which the model has to be captured. Raises what `aotcli.trace` and `budget` raise,
    InputError where there is no such region or no backward.
    """
    from aotcli import api
    from aotcli.analysis.pareto import forward_cost, front_points, strategy_point
    from aotcli.strategies.budget import Budget

    report = progress or (lambda _message: None)
    chosen = api.choose_strategies("budget", options)[0].strategy
    assert isinstance(chosen, Budget)
    strategies = [*_BESIDE, *(f"torch-mincut:budget={each}" for each in TORCH_BUDGETS if with_torch)]
    beside = api.partition(
        model,
        strategy=strategies,
        alternatives=False,
        cache=cache,
        progress=progress,
        settings=settings,
        target=target,
    )
    trace = beside.trace
    number = _region(trace, beside.plans[1].partitions, region)
    graph = trace.regions[number]
    report("finding the front")
    budgeting = chosen.pose(graph)
    points = [*front_points(graph, budgeting, between=between, progress=report)]
    plans = [(plan.label, plan.partitions[number]) for plan in beside.plans]
    points += [strategy_point(graph, budgeting, partition, label) for label, partition in plans]
    front = ParetoFront(
        region=number,
        unit=budgeting.costs.unit,
        pricing=chosen.pricing(graph),
        forward_cost=forward_cost(budgeting, [plans[0][1]]),
        eager_bytes=trace.eager.saved_bytes if trace.eager is not None and len(trace.regions) == 1 else None,
        points=tuple(sorted(points, key=lambda point: (-point.nbytes, point.cost))),
        unknown=budgeting.costs.unknown,
    )
    return ParetoResult(trace, front, target=target, cached=beside.cached)


def _region(trace: Trace, partitions: Any, region: int | None) -> int:
    with_backward = [i for i, graph in enumerate(trace.regions) if graph.has_backward]
    if not with_backward:
        raise InputError(
            f"{trace.model.name} has no backward", why="nothing is saved, so there is nothing to trade", fix="--train"
        )
    if region is None:
        return max(with_backward, key=lambda i: partitions[i].saved_bytes)
    if region - 1 not in with_backward:
        known = ", ".join(str(i + 1) for i in with_backward)
        raise InputError(
            f"--region {region}", why=f"regions with a backward are {known}", fix=f"--region {with_backward[0] + 1}"
        )
    return region - 1

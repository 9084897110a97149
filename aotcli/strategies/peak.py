"""The cheapest recomputation with which the step's peak of memory, as predicted, stays below a limit.

Fewer saved bytes do not always mean a lower peak: what is recomputed is live in the backward, beside gradients. So
plans are tried, not derived: every corner of the front (`analysis/front.py`), mixtures at even distances
(`analysis/mixing.py`), and the plans that recompute most a stretch at a time (`analysis/segments.py`). Each is tried in
the orders of `analysis/lower_peak.py` and run on the simulated timeline (`analysis/liveness.py`). The plans tried do
not depend on the limit; so a larger limit never gives a dearer plan, nor a smaller one a higher peak. The peak is that
of the record: live bytes above parameters and inputs, from step start to backward end, without the workspace inside
ops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from aotcli.analysis.assemble import assemble, with_best_order
from aotcli.analysis.budgeting import Budgeting
from aotcli.analysis.cut import cut
from aotcli.analysis.front import Choice
from aotcli.analysis.liveness import simulate
from aotcli.analysis.mixing import fill
from aotcli.analysis.segments import segmented
from aotcli.errors import InputError, PlanImpossibleError, StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision, Partition
from aotcli.ir.sizes import enough_text, parse_size, size_text
from aotcli.strategies._priced import Priced, amount_text, unknown_notes

_CUT_INTO_SEGMENTS = 6  # plans, the dearest ones


@dataclass(frozen=True)
class Peak(Priced):
    """See the module's docstring."""

    name: ClassVar[str] = "peak"
    summary: ClassVar[str] = "keep the predicted peak of memory below a limit at the least cost of recomputing"
    argument: ClassVar[str | None] = "peak"

    peak: str = field(default="", metadata={"help": "a size (24GiB); without one, the lowest peak that is found"})
    mixtures: int = field(default=16, metadata={"help": "how many plans to try between the corners of the front"})

    def __post_init__(self) -> None:
        if self.peak:
            self._limit()
        if not 0 <= self.mixtures <= 256:
            raise StrategyError(
                f"mixtures is {self.mixtures}", why="it counts plans", fix="give a number from 0 to 256"
            )

    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        return assemble(graph, self._decide(graph), strategy=self.name, options=self.options)

    def _limit(self) -> int | None:
        if not self.peak:
            return None
        try:
            return parse_size(self.peak)
        except InputError as error:
            raise StrategyError(f"peak {self.peak!r} is no size", why=error.why, fix="--opt peak=24GiB") from None

    def _decide(self, graph: JointGraph) -> Decision:
        if not graph.has_backward:
            return Decision(saved=())
        budgeting = self.pose(graph)
        tried = [(choice, *self._simulated(graph, budgeting, choice)) for choice in self._candidates(budgeting)]
        limit = self._limit()
        least = min(tried, key=lambda each: (each[2], each[0].cost))
        if limit is not None and least[2] > limit:
            raise PlanImpossibleError(
                f"no plan was found with a peak of at most {size_text(limit)}",
                why=f"the lowest peak of the {len(tried)} plans tried is {enough_text(least[2])}, above parameters and "
                "inputs",
                fix=f"--strategy peak:{enough_text(least[2])}, or a smaller batch",
            )
        fit = [each for each in tried if each[2] <= (least[2] if limit is None else limit)]
        choice, decision, _ = min(fit, key=lambda each: (each[0].cost, each[2], each[0].nbytes))
        cost = amount_text(choice.cost, budgeting.costs.unit)
        said = f"recomputing costs {cost}; of {len(tried)} plans tried, peaks go down to {enough_text(least[2])}"
        return replace(decision, notes=(said, *unknown_notes(budgeting.costs)))

    def _candidates(self, budgeting: Budgeting) -> Iterator[Choice]:
        """Corners and mixtures, then segments of the plans that recompute most; each once."""
        corners = budgeting.front.corners
        most, least = corners[0].nbytes, corners[-1].nbytes
        budgets = [least + (most - least) * part // (self.mixtures + 1) for part in range(1, self.mixtures + 1)]
        mixed = [fill(budgeting.tradeoff, budgeting.front, budget) for budget in budgets]
        plans = [*corners, *(choice for choice in mixed if choice is not None)]
        dearest = sorted(set(plans), key=lambda choice: (-choice.cost, choice.nbytes))[:_CUT_INTO_SEGMENTS]
        yield from dict.fromkeys([*plans, *(each for plan in dearest for each in segmented(budgeting.tradeoff, plan))])

    def _simulated(self, graph: JointGraph, budgeting: Budgeting, choice: Choice) -> tuple[Decision, int]:
        decision = with_best_order(graph, budgeting.decision(choice))
        return decision, simulate(graph, cut(graph, decision)).peak_bytes

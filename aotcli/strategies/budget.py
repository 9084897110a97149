"""The cheapest recomputation that keeps what is saved within a budget, with a proof of how cheap it could be at all.

`analysis/tradeoff.py` says what there is to decide, `analysis/front.py` finds all corners of the front and the bound,
`analysis/mixing.py` the plans between them. A budget is a size (``2GiB``), which is met or refused, or a fraction of
what `mincut` saves, as PyTorch's `activation_memory_budget` is: 1 allows the bytes that `mincut` saves, 0 as few as can
be. Unlike PyTorch's, a random op is recomputed only with the numbers that it drew in the forward, and what must be
saved is saved at every budget.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from aotcli.analysis.assemble import assemble, with_best_order
from aotcli.analysis.budgeting import Budgeting
from aotcli.analysis.front import Choice, Front
from aotcli.analysis.mixing import fill
from aotcli.analysis.tradeoff import Tradeoff
from aotcli.errors import InputError, PlanImpossibleError, StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision, Partition, Reason
from aotcli.ir.sizes import enough_text, parse_size, size_text
from aotcli.strategies._priced import Priced, amount_text, unknown_notes

_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?|\.\d+")


@dataclass(frozen=True)
class Budget(Priced):
    """See the module's docstring."""

    name: ClassVar[str] = "budget"
    summary: ClassVar[str] = "save at most a budget of bytes at the least cost of recomputing, with a proven bound"
    argument: ClassVar[str | None] = "budget"

    budget: str = field(default="1", metadata={"help": "a size (2GiB), or a fraction of what mincut saves, 0 to 1"})

    def __post_init__(self) -> None:
        parse_budget(self.budget)

    def plan(self, graph: JointGraph, live: Any = None) -> Partition:
        decision = self._decide(graph)
        return assemble(graph, with_best_order(graph, decision), strategy=self.name, options=self.options)

    def _decide(self, graph: JointGraph) -> Decision:
        if not graph.has_backward:
            return Decision(saved=())
        budgeting = self.pose(graph)
        allowed = self._allowed_bytes(budgeting)
        choice = fill(budgeting.tradeoff, budgeting.front, allowed)
        if choice is None:
            raise _out_of_reach(budgeting.tradeoff, budgeting.front, allowed)
        return budgeting.decision(choice, _notes(budgeting, choice, allowed))

    def _allowed_bytes(self, budgeting: Budgeting) -> int:
        given = parse_budget(self.budget)
        if isinstance(given, int):
            return given
        least = budgeting.front.corners[-1].nbytes
        usual = max(least, budgeting.mincut_bytes())
        return least + int(given * (usual - least))


def parse_budget(text: str) -> int | Fraction:
    """Bytes of a size, or a fraction in [0, 1]. Raises StrategyError where it is neither."""
    if _NUMBER.fullmatch(text.strip()):
        share = Fraction(text.strip())
        if 0 <= share <= 1:
            return share
        raise StrategyError(
            f"budget {text} is no fraction from 0 to 1",
            why="a bare number is a share of what mincut saves; bytes need a unit",
            fix=f"--budget {text.strip().lstrip('-+')}GiB, if that is meant" if share > 1 else "--budget 0.5",
        )
    try:
        return parse_size(text)
    except InputError as error:
        raise StrategyError(
            f"budget {text!r} is neither a size nor a fraction", why=error.why, fix="--budget 2GiB or --budget 0.5"
        ) from None


def _out_of_reach(tradeoff: Tradeoff, front: Front, allowed: int) -> PlanImpossibleError:
    least = front.corners[-1]
    kept = sorted(least.saved, key=lambda v: -(tradeoff.nbytes[v] or 0))
    forced = [(v, reason) for v in kept if (reason := tradeoff.obliged[v]) is not None and tradeoff.nbytes[v]]
    nodes = tradeoff.graph.nodes
    named = [_named(nodes[tradeoff.positions[v]], reason, tradeoff.nbytes[v] or 0) for v, reason in forced[:3]]
    more = f" and {len(forced) - 3} more" if len(forced) > 3 else ""
    cause = f"what must be saved: {', '.join(named)}{more}" if named else "random ops need their numbers or their state"
    return PlanImpossibleError(
        f"no plan saves as little as {size_text(allowed)}",
        why=f"the least is {size_text(least.nbytes)}; {cause}",
        fix=f"--budget {enough_text(least.nbytes)}, or take the annotations away",
    )


def _named(node: Any, reason: Reason, nbytes: int) -> str:
    where = f" at {node.source}" if node.source else ""
    return f"{node.name}{where} ({size_text(nbytes)}, {reason.text})"


def _notes(budgeting: Budgeting, choice: Choice, allowed: int) -> tuple[str, ...]:
    notes: list[str] = []
    front, unit = budgeting.front, budgeting.costs.unit
    if allowed > front.corners[0].nbytes:
        notes.append("the budget allows more than there is to save: nothing is recomputed that costs anything")
    bound = front.least_cost(allowed)
    if bound is not None and choice.cost:
        gap = 100 * (choice.cost - bound) / bound if bound else Fraction(0)
        cost, least = amount_text(choice.cost, unit), amount_text(float(bound), unit)
        notes.append(
            f"recomputing costs {cost}; no plan within the budget costs less than {least} (gap {float(gap):.2f} %)"
        )
    return (*notes, *unknown_notes(budgeting.costs))

"""How much of a difference is the graph's: one strategy that plans both graphs, whatever planned the two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.assemble import assemble
from aotcli.analysis.diff_saved import TensorPair
from aotcli.analysis.diff_side import PlannedRegion
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.summary import Plan
from aotcli.errors import AotcliError
from aotcli.ir.difference import Cause, Fate
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition

MINCUT = "mincut"
# Strategies whose decisions do not follow from graph and options alone: PyTorch's depend on its version, a plan file
# on the graph that it was made for.
_GIVEN = ("torch", "replay")
_USUAL = Heuristic()


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """Plans of both sides by one strategy, `label`."""

    left: Plan
    right: Plan
    label: str

    @property
    def delta_bytes(self) -> int:
        return self.right.saved_bytes - self.left.saved_bytes


def is_rule(plan: Plan) -> bool:
    """Whether a plan follows from the graph and the strategy's options."""
    return not plan.strategy.startswith(_GIVEN)


def yardsticks(left: tuple[Sequence[JointGraph], Plan], right: tuple[Sequence[JointGraph], Plan]) -> Yardsticks | None:
    """The two plans themselves where one strategy made both, else plans by mincut; None where it cannot plan them."""
    mine, other = left[1], right[1]
    if is_rule(mine) and (mine.strategy, mine.options) == (other.strategy, other.options):
        return Yardsticks(mine, other, mine.label)
    try:
        return Yardsticks(_mincut(*left), _mincut(*right), MINCUT)
    except AotcliError:
        return None


def _mincut(graphs: Sequence[JointGraph], plan: Plan) -> Plan:
    """The plan of mincut at its defaults; `plan` where it is that."""
    if plan.strategy == MINCUT and plan.label == MINCUT:
        return plan
    partitions: list[Partition] = []
    for graph in graphs:
        decision = decide(graph, _USUAL)
        partitions.append(assemble(graph, decision, strategy=MINCUT))
    return Plan(MINCUT, {}, tuple(partitions), MINCUT)


@dataclass(frozen=True, slots=True)
class Judge:
    """Whether something differs because the graph does, or because the plans decide otherwise.

    `measured` is the region on both sides as the yardstick plans it; None where there is none, or no need of one.
    """

    same_graph: bool
    measured: tuple[PlannedRegion, PlannedRegion] | None

    def tensor(self, pair: TensorPair) -> Cause:
        """Why a saved tensor differs."""
        left, right = pair.left, pair.right
        if left is None or right is None:
            return Cause.DECISION if self.same_graph else Cause.GRAPH
        return self.cause(left.position, right.position, left.fate, right.fate)

    def cause(self, left: int, right: int, left_fate: Fate, right_fate: Fate) -> Cause:
        """Why a pair of nodes, by position, has the fates that it has."""
        if left_fate is right_fate:
            return Cause.GRAPH
        if self.same_graph or self.measured is None:
            return Cause.DECISION
        there, here = self.measured
        saved = [there.fates[left] is Fate.SAVED, here.fates[right] is Fate.SAVED]
        return Cause.GRAPH if saved == [left_fate is Fate.SAVED, right_fate is Fate.SAVED] else Cause.DECISION

"""One graph's trade-off, its front, and plans on it as decisions: what the strategies with a limit share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from aotcli.analysis import mincut
from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.front import Choice, Front, choose, find_front
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.rerun_cost import RerunCosts
from aotcli.analysis.tradeoff import Tradeoff, out_of_reach, pose_tradeoff, saved_names
from aotcli.ir.joint import JointGraph, Tag
from aotcli.ir.partition import Decision
from aotcli.ir.tensor import tensor_leaves


@dataclass(frozen=True, slots=True)
class Budgeting:
    """A graph without dead nodes and duplicates (`removed` and `replaced` say which those were), what its ops cost to
    run again, and all corners of its front."""

    removed: frozenset[str]
    replaced: Mapping[str, str]
    costs: RerunCosts
    tradeoff: Tradeoff
    front: Front

    def decision(self, choice: Choice, notes: tuple[str, ...] = ()) -> Decision:
        """A choice as what is saved, by name and with reasons."""
        return Decision(
            saved=saved_names(self.tradeoff, choice.saved, choice.rerun),
            replaced=self.replaced,
            removed=self.removed,
            notes=notes,
        )

    def mincut_bytes(self) -> int:
        """What the published heuristic saves of the same values, in bytes."""
        graph = self.tradeoff.graph
        saved = {name for name, _ in mincut.decide(graph, Heuristic(), cse=False).saved}
        storages = {leaf.storage for name in saved for leaf in tensor_leaves(graph[name].value) if leaf.storage >= 0}
        total = 0
        for position, nbytes in zip(self.tradeoff.positions, self.tradeoff.nbytes, strict=True):
            node = graph.nodes[position]
            if nbytes and (node.name in saved or any(leaf.storage in storages for leaf in tensor_leaves(node.value))):
                total += nbytes
        return total


def least_without_heavy_ops(budgeting: Budgeting) -> Choice | None:
    """The plan that saves fewest bytes among those that run no matrix product, convolution or attention again; None
    where annotations ask for one to run again."""
    tradeoff = budgeting.tradeoff
    nodes = tradeoff.graph.nodes
    heavy = [Tag.COMPUTE_INTENSIVE in nodes[p].tags or nodes[p].flops != 0 for p in tradeoff.positions]
    cost = tuple(None if dear else each for dear, each in zip(heavy, tradeoff.cost, strict=True))
    light = replace(tradeoff, cost=cost)
    if out_of_reach(light) is not None:
        return None
    return choose(light, cost_factor=1, bytes_factor=1 + sum(each or 0 for each in cost))


def pose_budgeting(graph: JointGraph, price: Callable[[JointGraph], RerunCosts], *, cse: bool = True) -> Budgeting:
    """The trade-off of a graph with a backward, every op priced by `price`.

    Raises PlanImpossibleError where there is no plan at all.
    """
    live, removed = eliminate_dead(graph)
    reduced, replaced = eliminate_common(live) if cse else (live, {})
    costs = price(reduced)
    tradeoff = pose_tradeoff(reduced, costs.costs)
    return Budgeting(removed, replaced, costs, tradeoff, find_front(tradeoff))

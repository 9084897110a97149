"""The published min-cut heuristic on a record: which values to save, and the evidence for it.

Problem: of all ways to cut the joint graph in two such that the backward can be computed from what is saved, inputs and
tangents, find the one whose saved values weigh least, where values that are dear to recompute are banned from it.

Source: H. He and S. Yu, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware", MLSys 2023, as
it stands in PyTorch 2.13 (torch/_functorch/partitioners.py, `solve_min_cut`). Bans, weights and the value of the cut
equal PyTorch's; of cuts of equal weight this takes the one that recomputes least. The one departure is about inputs
that the step changes in place (mincut_mutation.py).

    roles.py  which half       mincut_bans.py, mincut_chains.py  what may not be recomputed
    opsets.py  which ops       mincut_weights.py                 what saving costs
    mincut_tags.py  policies   mincut_network.py, flow.py        the cut
"""

from __future__ import annotations

from collections.abc import Iterable

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.mincut_bans import find_bans
from aotcli.analysis.mincut_network import cut_network
from aotcli.analysis.mincut_problem import Heuristic, Problem, pose
from aotcli.analysis.mincut_reasons import saved_reason
from aotcli.analysis.mincut_weights import find_weights
from aotcli.analysis.wishes import NO_WISHES, Wishes
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Decision
from aotcli.ir.tensor import SymbolSpec


def decide(
    graph: JointGraph,
    heuristic: Heuristic,
    *,
    cse: bool = True,
    ignored: Iterable[tuple[str, str]] = (),
    wishes: Wishes = NO_WISHES,
) -> Decision:
    """What to save of `graph`, by name, with reasons; bans, weights and the cut's value as evidence.

    A node is in `weights` if it could be saved. `ignored` are (node, rule) pairs that are left out, to see what a
    reason was worth; `wishes` is what a user wants saved or recomputed. Where nothing needs a backward nothing is
    saved. Raises PlanImpossibleError where annotations and wishes contradict each other, StrategyError for an unknown
    op set or op.
    """
    live, removed = eliminate_dead(graph)
    reduced, replaced = eliminate_common(live) if cse else (live, {})
    problem = pose(reduced, heuristic, ignored, wishes.renamed(replaced))
    if not any(problem.roles.required_backward):
        return Decision(saved=(), replaced=replaced, removed=removed)
    bans = find_bans(problem)
    weights = find_weights(problem)
    found = cut_network(problem, bans, weights)
    nodes = reduced.nodes
    return Decision(
        saved=tuple((nodes[v].name, saved_reason(problem, bans, v)) for v in found.saved if not _asserted(problem, v)),
        replaced=replaced,
        removed=removed,
        bans={nodes[v].name: rule.value for v, rule in enumerate(bans) if rule is not None},
        weights={nodes[v].name: each for v, each in enumerate(weights) if each is not None and _weighed(problem, v)},
        cut_value=found.value,
        notes=_notes(problem),
    )


def _weighed(problem: Problem, position: int) -> bool:
    return not (problem.roles.tangents_closure[position] or problem.policies.must_recompute[position])


def _asserted(problem: Problem, position: int) -> bool:
    """Whether a symbolic bool is read by assertions alone: the forward has checked it already."""
    value = problem.graph.nodes[position].value
    if not isinstance(value, SymbolSpec) or value.kind != "bool":
        return False
    users = problem.graph.users_of[position]
    return bool(users) and all(problem.graph.nodes[user].target == "aten._assert_scalar.default" for user in users)


def _notes(problem: Problem) -> tuple[str, ...]:
    """What the user asked for and does not get."""
    budgets = sorted({node.region_budget for node in problem.graph.nodes if node.region_budget is not None} - {1.0})
    asked = tuple(f"an activation memory budget of {each:g} is set on this region; mincut has none" for each in budgets)
    return asked + tuple(
        f"{problem.graph.nodes[position].name} is not recomputed although its policy asks for it: it reads "
        f"{name}, which the step changes in place"
        for position, name in sorted(problem.mutated.source.items())
        if problem.graph.nodes[position].must_recompute and position in problem.mutated.banned
    )

"""The min-cut heuristic's network: from bans and weights to the values that are saved.

Each node v is an arc v_in → v_out whose capacity is the weight of saving it; a read of v by u is an infinite arc
v_out → u_in. Infinite arcs also join the source to v_in where v must not be recomputed, v_in to the sink where v is
computed in the backward (or the user wants it recomputed), and v_out to the sink where the backward returns v itself.
What a minimum cut separates is saved; what lies on the sink's side is computed in the backward.

Before the flow is computed, every point that an infinite path ties to the source or the sink is merged with it. That
leaves the few nodes where there is a choice, and finds contradictions: a point tied to both.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.analysis.flow import FlowNetwork, minimum_cut
from aotcli.analysis.mincut_bans import Bans
from aotcli.analysis.mincut_conflict import impossible
from aotcli.analysis.mincut_problem import Problem


@dataclass(frozen=True, slots=True)
class SavedCut:
    """Positions of the values in the cut, in graph order, and its capacity."""

    saved: list[int]
    value: int


@dataclass(frozen=True, slots=True)
class _Ties:
    """By position: whether v_in and v_out are tied to the source, and to the sink."""

    source_in: list[bool]
    source_out: list[bool]
    sink_in: list[bool]
    sink_out: list[bool]


def cut_network(problem: Problem, bans: Bans, weights: list[int | None]) -> SavedCut:
    """The minimum cut nearest the sink: of equally heavy sets of saved values, the one that recomputes least.

    Raises PlanImpossibleError where a value can be neither saved nor recomputed and the backward needs it.
    """
    ties = _ties(problem, bans, weights)
    if any(a and b for a, b in zip(ties.source_in, ties.sink_in, strict=True)) or any(
        a and b for a, b in zip(ties.source_out, ties.sink_out, strict=True)
    ):
        raise impossible(problem, bans, weights)
    count = len(bans)
    source, sink = 2 * count, 2 * count + 1
    entry = _merged(range(0, 2 * count, 2), ties.source_in, ties.sink_in, source, sink)
    leave = _merged(range(1, 2 * count, 2), ties.source_out, ties.sink_out, source, sink)
    network = FlowNetwork(2 * count + 2)
    candidates = _before_sink(problem, ties)
    for v in candidates:
        network.add_arc(entry[v], leave[v], weights[v])
        if leave[v] != sink:
            for user in problem.graph.users_of[v]:
                if entry[user] != source:
                    network.add_arc(leave[v], entry[user], None)
    cut = minimum_cut(network, source, sink)
    side = cut.sink_side
    return SavedCut([v for v in candidates if not side[entry[v]] and side[leave[v]]], cut.value)


def _merged(points: range, to_source: list[bool], to_sink: list[bool], source: int, sink: int) -> list[int]:
    """The network's point for each of `points`, which may be its source or its sink."""
    tied = zip(points, to_source, to_sink, strict=True)
    return [source if first else sink if second else point for point, first, second in tied]


def _crossable(problem: Problem) -> list[bool]:
    """Nodes that have an arc of their own: not the output, not computed in the backward by decree."""
    closure, recompute = problem.roles.tangents_closure, problem.policies.must_recompute
    found = [not (inside or forced) for inside, forced in zip(closure, recompute, strict=True)]
    found[-1] = False
    return found


def _ties(problem: Problem, bans: Bans, weights: list[int | None]) -> _Ties:
    graph, roles = problem.graph, problem.roles
    count = len(bans)
    crossable = _crossable(problem)
    ties = _Ties([False] * count, [False] * count, [False] * count, [False] * count)
    source_out, sink_in = ties.source_out.__getitem__, ties.sink_in.__getitem__
    for v in range(count):
        ties.source_in[v] = bans[v] is not None or any(map(source_out, graph.inputs_of[v]))
        ties.source_out[v] = crossable[v] and ties.source_in[v] and weights[v] is None
    for v in range(count - 2, -1, -1):
        if crossable[v]:
            ties.sink_out[v] = roles.required_backward[v] or any(map(sink_in, graph.users_of[v]))
            ties.sink_in[v] = ties.sink_out[v] and weights[v] is None
        else:
            ties.sink_in[v] = True
    return ties


def _before_sink(problem: Problem, ties: _Ties) -> list[int]:
    """Nodes from which some path leads to the sink; the others carry no flow and are never cut."""
    users_of = problem.graph.users_of
    crossable = _crossable(problem)
    reaching = [False] * len(crossable)
    for v in range(len(crossable) - 2, -1, -1):
        reaching[v] = ties.sink_in[v] or ties.sink_out[v] or any(map(reaching.__getitem__, users_of[v]))
    return [v for v in range(len(crossable)) if crossable[v] and reaching[v]]

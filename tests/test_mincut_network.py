"""The contracted network against the whole one, written down arc by arc and solved by networkx."""

from __future__ import annotations

import math
import random

import networkx as nx
import pytest
from builders import random_graph

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.mincut_bans import Bans, find_bans
from aotcli.analysis.mincut_network import cut_network
from aotcli.analysis.mincut_problem import Heuristic, Problem, Rule, pose
from aotcli.analysis.mincut_weights import find_weights
from aotcli.errors import PlanImpossibleError

Weights = list[int | None]


def whole_network(problem: Problem, bans: Bans, weights: Weights) -> nx.DiGraph:
    network = nx.DiGraph()
    network.add_nodes_from(["source", "sink"])
    roles = problem.roles
    for v in range(len(problem.graph.nodes) - 1):
        if bans[v] is not None:
            network.add_edge("source", (v, "in"), capacity=math.inf)
        if roles.tangents_closure[v] or problem.policies.must_recompute[v]:
            network.add_edge((v, "in"), "sink", capacity=math.inf)
            continue
        if roles.required_backward[v]:
            network.add_edge((v, "out"), "sink", capacity=math.inf)
        weight = weights[v]
        network.add_edge((v, "in"), (v, "out"), capacity=math.inf if weight is None else weight)
        for user in problem.graph.users_of[v]:
            network.add_edge((v, "out"), (user, "in"), capacity=math.inf)
    return network


def perturbed(problem: Problem, seed: int) -> tuple[Bans, Weights]:
    """The heuristic's bans and weights, with some more of each that random graphs have too few of."""
    rng = random.Random(seed)
    bans, weights = find_bans(problem), find_weights(problem)
    for v in range(len(bans) - 1):
        if problem.roles.required_forward[v] and rng.random() < 0.1:
            bans[v] = rng.choice([Rule.ALLOWLIST, None])
        if rng.random() < 0.2:
            weights[v] = rng.choice([None, 0, 1, 1])
    return bans, weights


@pytest.mark.parametrize("seed", range(150))
def test_cut_and_ties_equal_networkx(seed: int) -> None:
    graph = random_graph(seed, forward_ops=10 + seed % 30, backward_ops=5 + seed % 20)
    problem = pose(eliminate_common(eliminate_dead(graph)[0])[0], Heuristic())
    bans, weights = perturbed(problem, seed) if seed % 3 else (find_bans(problem), find_weights(problem))
    network = whole_network(problem, bans, weights)
    try:
        value, (_, sink_side) = nx.minimum_cut(network, "source", "sink")
    except nx.NetworkXUnbounded:
        with pytest.raises(PlanImpossibleError):
            cut_network(problem, bans, weights)
        return
    found = cut_network(problem, bans, weights)
    assert found.value == value
    both = [v for v in range(len(bans)) if network.has_edge((v, "in"), (v, "out"))]
    assert found.saved == [v for v in both if (v, "in") not in sink_side and (v, "out") in sink_side]

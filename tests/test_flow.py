"""The minimum cut against networkx, and its choice among equal cuts."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli.analysis.flow import FlowNetwork, infinite_path, minimum_cut
from aotcli.errors import VerificationError

Arcs = list[tuple[int, int, int | None]]


def network(size: int, arcs: Arcs) -> FlowNetwork:
    net = FlowNetwork(size)
    for tail, head, capacity in arcs:
        net.add_arc(tail, head, capacity)
    return net


def oracle(size: int, arcs: Arcs) -> tuple[int, set[int]]:
    """networkx's value and sink side of the cut from node 0 to node size-1; parallel arcs are added up."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    for tail, head, capacity in arcs:
        before = graph.get_edge_data(tail, head, {"capacity": 0})["capacity"]
        graph.add_edge(tail, head, capacity=float("inf") if capacity is None else before + capacity)
    value, (_, sink_side) = nx.minimum_cut(graph, 0, size - 1)
    return value, sink_side


def random_arcs(rng: random.Random, size: int, count: int, *, acyclic: bool, infinite: float) -> Arcs:
    arcs: Arcs = []
    for _ in range(count):
        tail, head = rng.sample(range(size), 2)
        if acyclic and tail > head:
            tail, head = head, tail
        endless = rng.random() < infinite and tail != 0 and head != size - 1
        arcs.append((tail, head, None if endless else rng.choice([0, 1, 2, 3, 7, 10**12])))
    return arcs


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_value_and_cut_equal_networkx(seed: int, acyclic: bool) -> None:
    rng = random.Random(seed)
    size = rng.randint(2, 14)
    arcs = random_arcs(rng, size, rng.randint(0, 40), acyclic=acyclic, infinite=0.3)
    cut = minimum_cut(network(size, arcs), 0, size - 1)
    value, sink_side = oracle(size, arcs)
    assert cut.value == value
    # networkx returns the cut nearest the sink too, so that even ties agree.
    assert {node for node in range(size) if cut.sink_side[node]} == sink_side
    crossing = [c for tail, head, c in arcs if not cut.sink_side[tail] and cut.sink_side[head]]
    assert None not in crossing
    assert sum(crossing) == cut.value


def test_of_equal_cuts_the_one_nearest_the_sink_is_returned() -> None:
    arcs = [(0, 1, 5), (1, 2, 5), (2, 3, 5)]
    assert minimum_cut(network(4, arcs), 0, 3).sink_side == (False, False, False, True)
    assert minimum_cut(network(4, arcs[::-1]), 0, 3).sink_side == (False, False, False, True)


def test_capacities_above_two_to_the_sixty_four_are_exact() -> None:
    big = 2**70
    cut = minimum_cut(network(4, [(0, 1, big + 1), (1, 2, None), (0, 2, big), (2, 3, 2 * big + 3)]), 0, 3)
    assert cut.value == 2 * big + 1


def test_a_source_without_arcs_gives_an_empty_cut() -> None:
    cut = minimum_cut(network(3, [(1, 2, 4)]), 0, 2)
    assert (cut.value, cut.sink_side) == (0, (False, True, True))


def test_an_infinite_path_is_found_and_refused() -> None:
    net = network(5, [(0, 1, None), (1, 2, 3), (1, 3, None), (3, 4, None), (2, 4, None)])
    assert infinite_path(net, 0, 4) == [0, 1, 3, 4]
    with pytest.raises(VerificationError, match="infinite"):
        minimum_cut(net, 0, 4)
    assert infinite_path(network(3, [(0, 1, None), (1, 2, 3)]), 0, 2) is None


def test_a_long_chain_needs_no_recursion() -> None:
    size = 30_000
    arcs: Arcs = [(v, v + 1, 2 if v == 777 else 3) for v in range(size - 1)]
    cut = minimum_cut(network(size, arcs), 0, size - 1)
    assert cut.value == 2
    assert cut.sink_side.index(True) == 778

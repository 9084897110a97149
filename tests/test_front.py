"""The front of saved bytes against recompute cost: exact on small graphs, bounded and reached on larger ones."""

from __future__ import annotations

import random
from itertools import chain, combinations

import pytest
from builders import layered, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.front import Choice, Front, find_front, walk
from aotcli.analysis.mixing import fill
from aotcli.analysis.segments import segmented
from aotcli.analysis.tradeoff import Tradeoff, pose_tradeoff
from aotcli.ir.joint import JointGraph


def pose(graph: JointGraph, seed: int = 0) -> Tradeoff:
    """The trade-off of a graph whose ops cost whatever the seed says."""
    graph = eliminate_common(eliminate_dead(graph)[0])[0]
    draw = random.Random(seed)
    return pose_tradeoff(graph, [draw.randrange(0, 50) for _ in graph.nodes])


def every_choice(tradeoff: Tradeoff) -> list[Choice]:
    free = [v for v, nbytes in enumerate(tradeoff.nbytes) if nbytes is not None and tradeoff.cost[v] is not None]
    subsets = chain.from_iterable(combinations(free, count) for count in range(len(free) + 1))
    return list({walk(tradeoff, lambda v, chosen=chosen: v in chosen) for chosen in map(frozenset, subsets)})


def lower_hull(choices: list[Choice]) -> list[tuple[int, int]]:
    """Corners of the lower left convex hull as (bytes, cost), from the most bytes."""
    best: dict[int, int] = {}
    for choice in choices:
        best[choice.nbytes] = min(choice.cost, best.get(choice.nbytes, choice.cost))
    hull: list[tuple[int, int]] = []
    for point in sorted(best.items()):
        if hull and point[1] >= hull[-1][1]:
            continue  # more bytes and no cheaper
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull[::-1]


def _turns_up(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def points(front: Front) -> list[tuple[int, int]]:
    return [(corner.nbytes, corner.cost) for corner in front.corners]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), ops=st.integers(2, 9))
def test_corners_are_those_of_all_plans(seed: int, ops: int) -> None:
    tradeoff = pose(random_graph(seed, ops, 4, checkpoints=False), seed)
    assert points(find_front(tradeoff)) == lower_hull(every_choice(tradeoff))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.floats(0, 1))
def test_no_plan_is_below_the_bound(seed: int, share: float) -> None:
    tradeoff = pose(random_graph(seed, 8, 4, checkpoints=False), seed)
    front = find_front(tradeoff)
    most, least = front.corners[0].nbytes, front.corners[-1].nbytes
    budget = least + int(share * (most - least))
    bound = front.least_cost(budget)
    assert bound is not None
    within = [each for each in every_choice(tradeoff) if each.nbytes <= budget]
    assert min(each.cost for each in within) >= bound
    filled = fill(tradeoff, front, budget)
    assert filled is not None
    assert filled.nbytes <= budget
    assert filled.cost >= bound


@pytest.mark.parametrize("seed", range(20))
def test_a_larger_budget_is_never_bounded_higher(seed: int) -> None:
    front = find_front(pose(random_graph(seed, 40, 20), seed))
    most = front.corners[0].nbytes
    bounds = [front.least_cost(most * part // 10) for part in range(11)]
    known = [bound for bound in bounds if bound is not None]
    assert known == sorted(known, reverse=True)
    assert bounds[-1] == front.corners[0].cost


def test_equal_layers_are_mixed_within_one_op_of_the_bound() -> None:
    graph = layered(8)
    tradeoff = pose_tradeoff(graph, [10 if "mm" in node.target else 1 for node in graph.nodes])
    front = find_front(tradeoff)
    most = front.corners[0].nbytes
    for budget in range(0, most + 1, most // 24):
        filled, bound = fill(tradeoff, front, budget), front.least_cost(budget)
        assert filled is not None
        assert bound is not None
        assert bound <= filled.cost < bound + 10, budget


def test_below_the_least_there_is_no_plan() -> None:
    tradeoff = pose(layered(3))
    front = find_front(tradeoff)
    assert front.corners[-1].nbytes == 0
    assert fill(tradeoff, front, -1) is None
    assert front.least_cost(-1) is None


@pytest.mark.parametrize("seed", range(20))
def test_segments_add_bytes_and_never_ops(seed: int) -> None:
    tradeoff = pose(random_graph(seed, 60, 30, checkpoints=False), seed)
    for corner in find_front(tradeoff).corners:
        for cut in segmented(tradeoff, corner):
            assert cut.rerun <= corner.rerun
            assert cut.cost <= corner.cost
            assert cut.saved != corner.saved


def test_a_deep_stack_falls_into_segments() -> None:
    graph = layered(16)
    tradeoff = pose_tradeoff(graph, [10 if "mm" in node.target else 1 for node in graph.nodes])
    least = find_front(tradeoff).corners[-1]
    sizes = [cut.nbytes for cut in segmented(tradeoff, least)]
    assert len(sizes) > 2
    assert sizes == sorted(sizes)

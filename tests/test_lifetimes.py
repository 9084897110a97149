"""Lifetimes of allocations: they add up to the timeline, and each knows what it is for."""

from __future__ import annotations

from itertools import accumulate

import pytest
from builders import layered, random_graph, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.analysis.lifetimes import Lifetimes, Use, trace_lifetimes
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition
from aotcli.strategies import load_strategy


def plan(graph: JointGraph, strategy: str) -> Partition:
    return load_strategy(strategy).plan(graph)


def lifetimes(graph: JointGraph, strategy: str = "mincut") -> Lifetimes:
    return trace_lifetimes(graph, cut(graph, decision_of(plan(graph, strategy))))


def summed(found: Lifetimes) -> list[int]:
    """Live bytes at each step, from the allocations alone."""
    changes = [0] * (len(found.timeline.names) + 1)
    for each in found.allocations:
        changes[each.born] += each.nbytes
        changes[each.dies + 1] -= each.nbytes
    return list(accumulate(changes))[:-1]


@pytest.mark.parametrize("strategy", ["save-all", "mincut", "recompute-all"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_what_lives_adds_up_to_the_timeline(strategy: str, seed: int) -> None:
    found = lifetimes(random_graph(seed, checkpoints=False), strategy)
    assert summed(found) == list(found.timeline.live_bytes)


def test_what_is_live_at_the_peak_is_the_peak() -> None:
    found = lifetimes(layered(6))
    live = found.live_at(found.timeline.peak_at)
    assert sum(each.nbytes for each in live) == found.timeline.peak_bytes
    assert [each.nbytes for each in live] == sorted((each.nbytes for each in live), reverse=True)


@pytest.mark.parametrize("strategy", ["save-all", "mincut", "recompute-all"])
def test_saved_allocations_are_the_partitions(strategy: str) -> None:
    graph = layered(4)
    partition = plan(graph, strategy)
    found = trace_lifetimes(graph, cut(graph, decision_of(partition)))
    assert sum(each.nbytes for each in found.allocations if each.use is Use.SAVED) == partition.saved_bytes


def test_uses() -> None:
    graph = two_matmuls()
    found = lifetimes(graph, "recompute-all")
    uses = {each.name: each.use for each in found.allocations}
    assert uses["tangents_1"] is Use.TANGENT
    steps = found.timeline.forward_steps
    again = [each for each in found.allocations if each.use is Use.RECOMPUTED]
    assert again
    assert all(each.born >= steps and each.name in found.timeline.names[:steps] for each in again)
    gradients = [each for each in found.allocations if each.use is Use.GRADIENT]
    assert all(each.dies == len(found.timeline.names) - 1 for each in gradients)
    assert {each.nbytes for each in gradients} == {8 * 16 * 4, 16 * 4 * 4}

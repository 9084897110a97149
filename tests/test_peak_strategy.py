"""The peak strategy: limits are kept, larger ones never cost more, and what cannot be reached is said."""

from __future__ import annotations

import pytest
from builders import layered, random_graph
from hypothesis import given
from hypothesis import strategies as st

from aotcli.errors import PlanImpossibleError, StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition
from aotcli.ir.sizes import enough_text, parse_size
from aotcli.strategies import load_strategy


def plan(graph: JointGraph, peak: str = "", **options: object) -> Partition:
    return load_strategy("peak", {"peak": peak, "cost": "flops", **options}).plan(graph)


def lowest(graph: JointGraph) -> int:
    return plan(graph).peak_bytes


@pytest.mark.parametrize("graph", [layered(8), *(random_graph(seed, 30, 20, checkpoints=False) for seed in range(6))])
def test_limits_are_kept_and_larger_ones_cost_no_more(graph: JointGraph) -> None:
    least = lowest(graph)
    most = load_strategy("save-all").plan(graph).peak_bytes
    limits = [least + (max(most, least) - least) * part // 8 for part in range(9)]
    plans = [plan(graph, f"{limit}B") for limit in limits]
    assert all(each.peak_bytes <= limit for each, limit in zip(plans, limits, strict=True))
    flops = [each.recompute_flops for each in plans]
    assert flops == sorted(flops, reverse=True)


def test_recomputing_lowers_the_peak_of_a_deep_stack() -> None:
    graph = layered(12, width=8, batch=256)
    assert lowest(graph) < load_strategy("save-all").plan(graph).peak_bytes


def test_more_mixtures_are_never_worse() -> None:
    graph = layered(8)
    assert plan(graph, mixtures=32).peak_bytes <= plan(graph, mixtures=0).peak_bytes


def test_out_of_reach_says_what_is_reached() -> None:
    graph = layered(6)
    with pytest.raises(PlanImpossibleError) as caught:
        plan(graph, "1B")
    assert enough_text(lowest(graph)) in caught.value.why
    assert plan(graph, enough_text(lowest(graph))).peak_bytes == lowest(graph)


@pytest.mark.parametrize("options", [{"peak": "24"}, {"peak": "much"}, {"peak": "1GiB", "mixtures": 1000}])
def test_bad_options(options: dict[str, object]) -> None:
    with pytest.raises(StrategyError) as caught:
        load_strategy("peak", options)
    assert caught.value.fix


@given(st.integers(0, 1 << 50))
def test_a_roomy_size_is_enough_and_little_more(nbytes: int) -> None:
    assert nbytes <= parse_size(enough_text(nbytes)) <= nbytes * 1.01 + 1

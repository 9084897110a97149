"""The budget strategy: bytes are met, ends are ends, more bytes never cost more, and what cannot be had is said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from builders import layered, random_graph, sample_trace, two_matmuls
from graph_builder import GraphBuilder

from aotcli import partition
from aotcli.analysis.budgeting import least_without_heavy_ops
from aotcli.analysis.hardware import PROFILES, find_hardware
from aotcli.analysis.rerun_cost import flop_costs, roofline_costs
from aotcli.errors import InputError, PlanImpossibleError, StrategyError
from aotcli.ir.joint import JointGraph, Tag
from aotcli.ir.partition import Partition
from aotcli.strategies import load_strategy
from aotcli.strategies.budget import Budget, parse_budget

SHARES = ("0", "0.1", "0.25", "0.5", "0.75", "0.9", "1")


def plan(graph: JointGraph, budget: str, **options: object) -> Partition:
    return load_strategy("budget", {"budget": budget, **options}).plan(graph)


def kept_bytes(partition: Partition) -> int:
    return partition.saved_bytes + partition.random_state_bytes


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cost", ["flops", "roofline"])
def test_bytes_are_met_at_every_size(seed: int, cost: str) -> None:
    graph = random_graph(seed, 30, 20, checkpoints=False)
    most, least = kept_bytes(plan(graph, "1TiB", cost=cost)), kept_bytes(plan(graph, "0", cost=cost))
    for part in range(11):
        allowed = least + (most - least) * part // 10
        assert kept_bytes(plan(graph, f"{allowed}B", cost=cost)) <= allowed


@pytest.mark.parametrize("seed", range(12))
def test_a_share_allows_at_most_what_mincut_saves(seed: int) -> None:
    graph = random_graph(seed, 30, 20, checkpoints=False)
    mincut = load_strategy("mincut").plan(graph).saved_bytes
    assert kept_bytes(plan(graph, "1")) <= max(mincut, kept_bytes(plan(graph, "0")))


def test_nothing_saves_less_than_a_budget_of_zero() -> None:
    graph = layered(6)
    assert plan(graph, "0").saved_bytes <= load_strategy("recompute-all").plan(graph).saved_bytes


def test_more_bytes_never_cost_more() -> None:
    graph = layered(8)
    flops = [plan(graph, share, cost="flops").recompute_flops for share in SHARES]
    assert flops == sorted(flops, reverse=True)
    assert flops[0] > flops[-1]


def test_what_must_be_saved_is_saved_at_every_budget() -> None:
    graph = must_save()
    for share in SHARES:
        assert "add" in {value.name for value in plan(graph, share).saved}


def test_out_of_reach_names_the_least_and_who_forces_it() -> None:
    with pytest.raises(PlanImpossibleError) as caught:
        plan(must_save(), "100B")
    text = str(caught.value)
    assert "512B" in text
    assert "add at net.py:7" in text
    assert "--budget 512B" in text


def must_save() -> JointGraph:
    """Two additions and a product that the backward reads; the first is to be saved whatever it costs."""
    g = GraphBuilder()
    w, x = g.param("w", (8, 16)), g.input("x", (8, 16))
    t = g.tangent("t", (8, 16))
    a = g.pointwise("aten.add.Tensor", x, w, name="add", checkpoint="MUST_SAVE", source="net.py:7")
    b = g.pointwise("aten.exp.default", a)
    gb = g.pointwise("aten.mul.Tensor", t, b)
    ga = g.pointwise("aten.mul.Tensor", gb, a)
    return g.build([b], [ga, None])


def test_a_budget_above_all_says_so() -> None:
    assert any("more than there is to save" in note for note in plan(two_matmuls(), "1TiB").notes)


@pytest.mark.parametrize(
    ("text", "expected"), [("0.5", Fraction(1, 2)), ("1", Fraction(1)), ("2GiB", 2 << 30), ("512 B", 512)]
)
def test_budgets_that_parse(text: str, expected: object) -> None:
    assert parse_budget(text) == expected


@pytest.mark.parametrize(
    ("text", "fix"),
    [("2", "2GiB"), ("-0.5", "0.5"), ("much", "0.5"), ("2 parsecs", "2GiB"), ("", "0.5"), ("nan", "0.5")],
)
def test_budgets_that_do_not(text: str, fix: str) -> None:
    with pytest.raises(StrategyError) as caught:
        load_strategy("budget", {"budget": text})
    assert fix in caught.value.fix


def test_fused_chains_are_charged_once() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (1024, 1024)), g.tangent("t", (1024, 1024))
    chain = x
    for _ in range(4):
        chain = g.pointwise("aten.exp.default", chain, tags={Tag.POINTWISE, Tag.FUSIBLE})
    graph = g.build([chain], [g.pointwise("aten.mul.Tensor", t, chain)])
    alone = sum(roofline_costs(graph, PROFILES["h100"], fused=False).costs)
    fused = sum(roofline_costs(graph, PROFILES["h100"], fused=True).costs)
    assert fused < alone / 3


def test_unknown_flops_are_named_and_dear() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (8, 8)), g.tangent("t", (8, 8))
    y = g.matmul(x, x, (8, 8))
    z = g.op("mine.secret.default", y, shape=(8, 8), flops=None)
    graph = g.build([z], [g.matmul(t, z, (8, 8))])
    found = flop_costs(graph)
    assert found.unknown == ("mine.secret.default",)
    assert found.costs[graph.index["secret"]] == max(node.flops or 0 for node in graph.nodes)
    assert any("mine.secret.default" in note for note in plan(graph, "1TiB").notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bytes_per_s = 1e12\nlaunch_s = 1e-6\n", "lacks flops_per_s"),
        ("bytes_per_s = -1\nlaunch_s = 1e-6\n[flops_per_s]\nfloat32 = 1e12\n", "bytes_per_s is -1"),
        ("bytes_per_s = 1\nlaunch_s = 1e-6\n[flops_per_s]\nfloat16 = 1e12\n", "lacks flops_per_s.float32"),
        ("bytes_per_s = 1\nlaunch_s = 1e-6\nspeed = 3\n[flops_per_s]\nfloat32 = 1e12\n", "unknown key 'speed'"),
        ("bytes_per_s =", "is no TOML"),
    ],
)
def test_hardware_files_that_do_not_fit(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        find_hardware(str(path), "cpu")
    assert said in caught.value.what
    assert caught.value.fix


def test_hardware_of_a_file_is_used(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("bytes_per_s = 1e12\nlaunch_s = 1e-6\n[flops_per_s]\nfloat32 = 1e12\nbfloat16 = 2e12\n")
    found = find_hardware(str(path), "cuda")
    assert (found.name, found.flops_of("bfloat16"), found.flops_of("float64")) == ("mine", 2e12, 1e12)


def test_unknown_hardware_names_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        find_hardware("h10", "cuda")
    assert "h100" in caught.value.fix


def test_a_matmul_that_must_run_again_leaves_no_plan_without_matmuls() -> None:
    g = GraphBuilder()
    w, x, t = g.param("w", (8, 8)), g.input("x", (8, 8)), g.tangent("t", (8, 8))
    y = g.matmul(x, w, (8, 8), checkpoint="MUST_RECOMPUTE")
    z = g.pointwise("aten.exp.default", y)
    graph = g.build([z], [g.pointwise("aten.mul.Tensor", t, y), None])
    strategy = load_strategy("budget")
    assert isinstance(strategy, Budget)
    assert least_without_heavy_ops(strategy.pose(graph)) is None
    assert "mm" in plan(graph, "1TiB").recomputed
    assert partition(sample_trace(graph)).saved_bytes == 0

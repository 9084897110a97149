"""What differs between two planned steps: every kind of change on small records, and that no rule knows a side."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pytest
from builders import GraphBuilder, layered, random_graph, sample_trace, two_matmuls, with_fingerprint
from diff_builders import difference, planned, stack, stack_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli import api
from aotcli.analysis.assemble import assemble
from aotcli.analysis.diff import DiffSide, diff_plans
from aotcli.analysis.diff_places import layer_of
from aotcli.analysis.diff_regions import RegionPair, pair_regions, same_graphs
from aotcli.analysis.summary import Plan
from aotcli.ir.difference import Aspect, Cause, Difference, Fate, Growth, SavedChange
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.pairing import Match, Pairing
from aotcli.ir.partition import Decision, Reason
from aotcli.ir.trace import Environment, GraphBreak, Trace

KIB = 1 << 10
Row = TypeVar("Row")


def by_growth(found: Difference, growth: Growth) -> list[SavedChange]:
    return [row for row in found.contributors if row.growth is growth]


def one(rows: Sequence[Row]) -> Row:
    (row,) = rows
    return row


class TestNothing:
    def test_a_step_and_itself(self) -> None:
        found = difference(stack(), stack())
        assert found.is_empty
        assert found.same_graph
        assert found.same_saved
        assert (found.saved_delta_bytes, found.graph_bytes, found.decision_bytes) == (0, 0, 0)
        assert found.yardstick == ""
        assert {row.growth for row in found.saved} == {Growth.SAME}
        assert found.confidence.exact == len(stack().nodes)

    def test_other_names_and_lines_are_no_difference(self) -> None:
        graph = stack()
        nodes = [replace(node, source="moved.py:99", module=f"model.{node.module}") for node in graph.nodes]
        assert difference(graph, replace(graph, nodes=tuple(nodes))).is_empty

    def test_a_step_without_a_node_or_a_region(self) -> None:
        nothing = sample_trace(with_fingerprint(JointGraph((), 0, "aten")), breaks=())
        for left, right in ((nothing, nothing), (replace(nothing, regions=()), replace(nothing, regions=()))):
            found = difference(left, right)
            assert found.is_empty
            assert found.saved == ()
        against = difference(nothing, stack())
        assert against.saved_delta_bytes == against.right.totals.saved_bytes > 0
        assert {row.growth for row in against.saved} == {Growth.ADDED}

    def test_a_step_without_a_backward(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        forward_only = g.build([g.pointwise("aten.exp.default", x)])
        assert difference(forward_only, forward_only).is_empty
        assert not difference(forward_only, two_matmuls()).same_graph


class TestGraphs:
    def test_another_op_in_every_layer(self) -> None:
        found = difference(stack(12), stack(12, act="silu"))
        assert found.saved_delta_bytes == 0
        row = one(found.contributors)
        assert row.left is not None
        assert row.right is not None
        assert (row.count, row.left.what, row.right.what, row.growth) == (12, "gelu", "silu", Growth.SAME)
        rewrite = one(found.rewrites)
        assert (rewrite.count, rewrite.left.forward, rewrite.right.forward) == (12, (("gelu", 1),), (("silu", 1),))
        assert (rewrite.left.backward, rewrite.right.backward) == ((("gelu backward", 1),), (("silu backward", 1),))
        assert (rewrite.left.module, rewrite.right.module, rewrite.whole) == ("h.*", "h.*", False)

    def test_an_op_that_was_decomposed(self) -> None:
        found = difference(stack(12), stack(12, act="decomposed"))
        rewrite = one(found.rewrites)
        assert rewrite.count == 12
        assert rewrite.left.forward == (("gelu", 1),)
        assert dict(rewrite.right.forward) == {"mul": 3, "erf": 1, "add": 1}
        assert found.right.totals.forward_ops == found.left.totals.forward_ops + 4 * 12

    def test_an_op_more_in_every_layer(self) -> None:
        found = difference(stack(12), stack(12, extra=True))
        rewrite = one(found.rewrites)
        assert (rewrite.count, rewrite.left.empty, rewrite.right.forward) == (12, True, (("clamp min", 1),))
        assert len(rewrite.right.names) == 2 * 12  # its backward with it
        assert found.confidence.left_unpaired == 0

    @pytest.mark.parametrize("gone", [0, 5, 11])
    def test_a_layer_less(self, gone: int) -> None:
        layers = [i for i in range(12) if i != gone]
        found = difference(stack(12), stack(layers))
        removed = by_growth(found, Growth.REMOVED)
        assert sum(row.delta_bytes for row in found.contributors) == found.saved_delta_bytes == -80 * KIB
        assert {row.right_fate for row in removed if row.left and row.left.what != "add"} == {Fate.ABSENT}
        whole = [row for row in found.rewrites if row.whole]
        assert [(row.left.module, row.count) for row in whole] == [(f"h.{gone}", 1)]
        assert not found.values

    def test_every_dtype(self) -> None:
        found = difference(stack(12), stack(12, dtype="bfloat16"))
        assert found.rewrites == ()
        change = one(found.values)
        assert (change.aspect, change.left_value, change.right_value) == (Aspect.DTYPE, ("float32",), ("bfloat16",))
        assert change.count == len([n for n in stack(12).nodes if n.kind is not NodeKind.OUTPUT])
        assert (change.left.module, change.left.what) == ("", "")
        assert {row.growth for row in found.contributors} == {Growth.SHRANK}
        assert 2 * found.right.totals.saved_bytes == found.left.totals.saved_bytes

    def test_another_batch(self) -> None:
        found = difference(stack(3), stack(3, batch=32))
        change = one(found.values)
        assert (change.aspect, change.left_value, change.right_value) == (Aspect.SHAPE, (64,), (32,))
        assert {row.growth for row in found.contributors} == {Growth.SHRANK}
        assert {row.cause for row in found.saved} == {Cause.GRAPH}

    def test_another_constant(self) -> None:
        found = difference(stack(4, extra=True), _clamped_at(stack(4, extra=True), -2))
        change = one(found.values)
        assert (change.aspect, change.left_value, change.right_value) == (
            Aspect.ARGUMENTS,
            ("%", "-1"),
            ("%", "-2"),
        ) or (
            change.left_value,
            change.right_value,
        ) == (("-1",), ("-2",))
        assert (change.count, change.right.what, change.right.module) == (4, "clamp min", "h.*")
        assert found.same_saved

    def test_another_device(self) -> None:
        graph = stack(2)
        moved = with_fingerprint(replace(graph, nodes=tuple(_on_cuda(node) for node in graph.nodes)))
        change = one(difference(graph, moved).values)
        assert (change.aspect, change.left_value, change.right_value) == (Aspect.DEVICE, ("cpu",), ("cuda",))

    def test_another_policy_of_checkpointing(self) -> None:
        graph = stack(4)
        tagged = [
            replace(n, checkpoint="MUST_RECOMPUTE") if n.target == "aten.gelu.default" else n for n in graph.nodes
        ]
        found = difference(graph, replace(graph, nodes=tuple(tagged)))
        assert found.same_graph  # policies are no part of the fingerprint
        change = one(found.values)
        assert (change.aspect, change.count, change.right_value) == (Aspect.POLICY, 4, ("MUST_RECOMPUTE",))
        assert found.graph_bytes == 0
        assert found.decision_bytes == found.saved_delta_bytes < 0
        flip = one(found.flips)
        assert (flip.count, flip.left_fate, flip.right_fate) == (4, Fate.SAVED, Fate.RECOMPUTED)

    def test_traced_at_another_size(self) -> None:
        found = difference(_dynamic(4), _dynamic(8))
        assert found.same_graph
        assert [(each.what, each.left, each.right) for each in found.environment] == [("symbol s77", "4", "8")]
        assert found.graph_bytes == found.saved_delta_bytes > 0
        assert one(found.values).aspect is Aspect.SHAPE


def _clamped_at(graph: JointGraph, limit: int) -> JointGraph:
    nodes = [
        replace(node, args=(node.args[0], limit)) if node.target == "aten.clamp_min.default" else node
        for node in graph.nodes
    ]
    return with_fingerprint(replace(graph, nodes=tuple(nodes)))


def _on_cuda(node: Node) -> Node:
    if isinstance(node.value, tuple) or node.value is None:
        return node
    return replace(node, value=replace(node.value, device="cuda"))


def _dynamic(hint: int) -> JointGraph:
    g = GraphBuilder()
    g.symint("s77", hint=hint)
    x, w = g.input("x", ("s77", 8)), g.param("w", (8, 8))
    t = g.tangent("tangents_1", ("s77", 8))
    h = g.op("aten.mm.default", x, w, shape=("s77", 8), tags={Tag.COMPUTE_INTENSIVE}, module="fc")
    y = g.pointwise("aten.gelu.default", h)
    gh = g.pointwise("aten.gelu_backward.default", t, h)
    tags = {Tag.VIEW, Tag.VIEW_SCHEMA, Tag.RECOMPUTABLE}
    xt = g.op("aten.t.default", x, shape=(8, "s77"), stride=(1, 8), storage_of=x, tags=tags, backward=True)
    gw = g.op("aten.mm.default", xt, gh, shape=(8, 8), tags={Tag.COMPUTE_INTENSIVE})
    return g.build([y], [None, None, gw])


class TestDecisions:
    def test_two_strategies_on_one_graph(self) -> None:
        found = difference(stack(), stack(), "mincut", "recompute-all")
        assert found.same_graph
        assert found.yardstick == ""
        assert found.graph_bytes == 0
        assert found.decision_bytes == found.saved_delta_bytes == -found.left.totals.saved_bytes
        assert {(row.growth, row.cause, row.right_fate) for row in found.saved} == {
            (Growth.REMOVED, Cause.DECISION, Fate.RECOMPUTED)
        }
        assert {row.left_fate for row in found.flips} == {Fate.SAVED}
        assert sum(row.count for row in found.flips) == sum(row.count for row in found.saved)
        assert found.rewrites == found.values == ()

    def test_graph_and_decision_together(self) -> None:
        left, right = stack(12), stack(11)
        found = difference(left, right, "mincut", "recompute-all")
        assert found.yardstick == "mincut"
        assert found.graph_bytes == difference(left, right).saved_delta_bytes < 0
        assert found.graph_bytes + found.decision_bytes == found.saved_delta_bytes
        gone = [row for row in found.saved if row.left is not None and row.left.module.startswith("h.11")]
        assert {(row.cause, row.right_fate) for row in gone} == {(Cause.GRAPH, Fate.ABSENT)}
        rerun = [row for row in found.saved if row.left is not None and row.left.module in ("h.*", "h.*.fc")]
        assert {(row.cause, row.right_fate) for row in rerun} == {(Cause.DECISION, Fate.RECOMPUTED)}

    def test_one_strategy_is_its_own_yardstick(self) -> None:
        found = difference(stack(4), stack(3), "save-all", "save-all")
        assert found.yardstick == "save-all"
        assert found.decision_bytes == 0

    def test_a_tie(self) -> None:
        """One plan saves h, the other exp(h): as many bytes, one op apart."""
        g = GraphBuilder()
        x, w = g.input("x", (4, 8)), g.param("w", (8, 8))
        t = g.tangent("tangents_1", (4, 8))
        h = g.matmul(x, w, (4, 8), module="fc")
        e = g.pointwise("aten.exp.default", h)
        y = g.pointwise("aten.sin.default", e)
        gy = g.pointwise("aten.mul.Tensor", t, e)
        graph = g.build([y], [gy, None])
        trace = stack_trace(graph)
        sides = [DiffSide(trace, _saving(trace, name), name) for name in (h.name, e.name)]
        found = diff_plans(*sides)
        assert [(row.growth, row.tie, row.cause) for row in found.contributors] == [
            (Growth.REMOVED, True, Cause.DECISION),
            (Growth.ADDED, True, Cause.DECISION),
        ]
        assert found.saved_delta_bytes == 0

    def test_what_is_kept_anyway_costs_nothing(self) -> None:
        """On the right the saved value is a result of the step too."""
        left, right = _relu(returned=False), _relu(returned=True)
        row = one(difference(left, right).contributors)
        assert (row.growth, row.right_fate, row.right_bytes) == (Growth.REMOVED, Fate.KEPT, 0)


def _saving(trace: Trace, name: str) -> Plan:
    """The plan that saves the value `name` alone."""
    decision = Decision(saved=((name, Reason("test", "test")),))
    partitions = tuple(assemble(graph, decision, strategy=name) for graph in trace.regions)
    return Plan(name, {}, partitions, name)


def _relu(*, returned: bool) -> JointGraph:
    g = GraphBuilder()
    x, w = g.input("x", (4, 8)), g.param("w", (8, 8))
    t = g.tangent("tangents_1", (4, 8))
    h = g.matmul(x, w, (4, 8), module="fc")
    y = g.pointwise("aten.sin.default", h)
    gy = g.pointwise("aten.mul.Tensor", t, h)
    return g.build([y, h] if returned else [y], [gy, None])


class TestRegions:
    def test_regions_are_paired_by_fingerprint_before_place(self) -> None:
        first, second = two_matmuls(), layered(3)
        pairs = pair_regions([first, second], [second, first])
        assert [(pair.left, pair.right, pair.same_graph) for pair in pairs] == [(0, 1, True), (1, 0, True)]

    def test_a_graph_break_more(self) -> None:
        second = replace(stack(2, act="silu"), name="region1")
        whole, parts = stack_trace(stack(6)), stack_trace(stack(4), second)
        parts = replace(parts, breaks=(GraphBreak("print", "net.py:3"),))
        found = difference(whole, parts)
        assert ("graph breaks", "0", "1") in [(each.what, each.left, each.right) for each in found.environment]
        assert [(region.left, region.right) for region in found.regions] == [("region0", "region0"), ("", "region1")]
        assert {row.region for row in found.saved if row.growth is Growth.ADDED} == {1}
        assert sum(row.delta_bytes for row in found.saved) == found.saved_delta_bytes

    def test_regions_that_share_nothing_are_not_one(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        t = g.tangent("tangents_1", (4, 4))
        other = g.build([g.pointwise("aten.exp.default", x)], [g.pointwise("aten.neg.default", t)])
        found = difference(stack_trace(stack(2), other), stack_trace(stack(2)))
        assert [(region.left != "", region.right != "") for region in found.regions] == [(True, True), (True, False)]

    def test_layers_of_module_paths(self) -> None:
        assert [layer_of(path) for path in ("h.3.fc", "h.3", "", None, "fc", "a.1.b.2.c")] == [
            *("h.3", "h.3", "", "", "", "a.1.b.2"),
        ]


class TestEnvironment:
    def test_what_was_traced_differently(self) -> None:
        left = stack_trace()
        right = replace(
            left,
            environment=Environment(torch="2.14.0", device="cuda", cuda="13.0"),
            train=False,
            settings=replace(left.settings, overrides=(("layers", "2"),), autocast="bfloat16", with_torch=True),
        )
        found = difference(left, right)
        assert {each.what: (each.left, each.right) for each in found.environment} == {
            "torch": ("2.13.0+cpu", "2.14.0"),
            "device": ("cpu", "cuda"),
            "CUDA": ("none", "13.0"),
            "mode": ("train", "eval"),
            "autocast": ("none", "bfloat16"),
            "layers": ("default", "2"),
        }
        assert found.is_empty  # the graphs are the same


# Two sides of equal standing.


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.sampled_from(["mincut", "save-all", "recompute-all"]))
def test_mirrored_on_random_graphs(first: int, second: int, strategy: str) -> None:
    """Whatever the graphs and however they are paired, the difference of B to A is that of A to B, mirrored."""
    graphs = [random_graph(seed, 12, 12, checkpoints=False) for seed in (first, second)]
    left, right = planned(graphs[0], "mincut", "left"), planned(graphs[1], strategy, "right")
    pairing = _random_pairing(*graphs, seed=first)
    pairs = [RegionPair(0, 0, pairing, same_graphs(*graphs) and first == second)]
    found = diff_plans(left, right, pairs)
    assert diff_plans(right, left, [pair.mirrored() for pair in pairs]) == found.mirrored()
    assert found.mirrored().mirrored() == found
    assert sum(row.delta_bytes for row in found.saved) == found.saved_delta_bytes
    assert found.graph_bytes + found.decision_bytes == found.saved_delta_bytes


def _random_pairing(left: JointGraph, right: JointGraph, seed: int) -> Pairing:
    """Some nodes of one kind paired at random, the output among them."""
    rng = random.Random(seed)
    right_of, left_of = [-1] * len(left.nodes), [-1] * len(right.nodes)
    for i, node in enumerate(left.nodes):
        free = [j for j, other in enumerate(right.nodes) if left_of[j] < 0 and other.kind is node.kind]
        if free and (rng.random() < 0.7 or node.kind is NodeKind.OUTPUT):
            right_of[i] = rng.choice(free)
            left_of[right_of[i]] = i
    match = tuple(Match.ALIGNED if j >= 0 else None for j in right_of)
    return Pairing(tuple(right_of), tuple(left_of), match)


VERSIONS = {
    "base": stack(6),
    "silu": stack(6, act="silu"),
    "decomposed": stack(6, act="decomposed"),
    "extra": stack(6, extra=True),
    "layer": stack([0, 1, 3, 4, 5]),
    "bfloat16": stack(6, dtype="bfloat16"),
    "batch": stack(6, batch=16),
}


@pytest.mark.parametrize("first", VERSIONS)
@pytest.mark.parametrize("second", VERSIONS)
def test_mirrored_between_versions(first: str, second: str) -> None:
    left, right = planned(VERSIONS[first], name="left"), planned(VERSIONS[second], name="right")
    found = diff_plans(left, right)
    assert diff_plans(right, left) == found.mirrored()
    assert found.is_empty == (first == second)
    assert sum(row.delta_bytes for row in found.saved) == found.saved_delta_bytes
    counts = [sum(row.count for row in found.saved if side(row) is Fate.SAVED) for side in (_left_fate, _right_fate)]
    assert counts == [found.left.totals.saved_tensors, found.right.totals.saved_tensors]


def _left_fate(row: SavedChange) -> Fate:
    return row.left_fate


def _right_fate(row: SavedChange) -> Fate:
    return row.right_fate


def test_several_regions_mirrored() -> None:
    left = planned(stack_trace(stack(2), two_matmuls(), layered(2)), name="left")
    right = planned(stack_trace(two_matmuls(), stack(2, act="silu")), name="right")
    assert diff_plans(right, left) == diff_plans(left, right).mirrored()


def test_two_plans_of_one_trace_need_the_pairs_once() -> None:
    trace = stack_trace(stack(2))
    pairs = pair_regions(trace.regions, trace.regions)
    left, right = planned(trace, "mincut"), planned(trace, "save-all")
    assert diff_plans(left, right, pairs) == diff_plans(left, right)


def test_views_of_one_storage_are_no_difference() -> None:
    """One plan saves a product, the other a view of it: as much memory, the same tensor."""
    g = GraphBuilder()
    x, w = g.input("x", (4, 8)), g.param("w", (8, 8))
    t = g.tangent("tangents_1", (4, 8))
    h = g.matmul(x, w, (4, 8), module="fc")
    v = g.view(h, (8, 4))
    y = g.pointwise("aten.sin.default", h)
    gy = g.pointwise("aten.mul.Tensor", t, g.view(v, (4, 8)))
    trace = stack_trace(g.build([y], [gy, None]))
    assert {Tag.VIEW} <= trace.regions[0][v.name].tags
    found = diff_plans(DiffSide(trace, _saving(trace, h.name), "h"), DiffSide(trace, _saving(trace, v.name), "v"))
    assert found.same_saved
    assert one(found.saved).growth is Growth.SAME


def test_the_api_compares_traces_and_plans() -> None:
    trace = stack_trace(stack(2))
    result = api.diff(trace, api.partition(trace, strategy="recompute-all"))
    assert result.difference.right.totals.saved_bytes == 0
    assert result.differs()
    assert result.differs("saved")
    assert not result.differs("graph")
    assert not api.diff(trace, trace).differs()
    assert dataclasses.is_dataclass(result.difference)

"""From decision to partition: bytes by storage, whose they are, who reads what, what runs again."""

from __future__ import annotations

import dataclasses

import pytest
from builders import GraphBuilder, layered, two_matmuls

from aotcli.analysis.assemble import assemble, decision_of
from aotcli.analysis.cost import count_flops, count_ops, traffic
from aotcli.analysis.cut import cut
from aotcli.errors import VerificationError
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category, Decision, Partition, Reason, SavedKind

WHY = Reason("test", "the test says so")


def assembled(graph: JointGraph, *saved: str, **fields: object) -> Partition:
    decision = Decision(saved=tuple((name, WHY) for name in saved), **fields)  # type: ignore[arg-type]
    return assemble(graph, decision, strategy="test", options={"a": 1})


def test_saved_values_are_described_as_the_graph_has_them() -> None:
    graph = two_matmuls()
    partition = assembled(graph, "primals_2", "primals_3", "relu")
    weight, x, relu = partition.saved
    assert (relu.name, relu.op, relu.module, relu.source) == ("relu", "aten.relu.default", "act", "net.py:4")
    assert (relu.kind, relu.category, relu.nbytes, relu.is_input) == (SavedKind.TENSOR, Category.ACTIVATION, 128, False)
    assert relu.users == ("t", "threshold_backward")
    assert relu.reason == WHY
    assert (weight.category, weight.op, weight.is_input) == (Category.PARAMETER, "param", True)
    assert x.category is Category.INPUT
    assert (partition.saved_bytes, partition.saved_input_bytes, partition.saved_output_bytes) == (128, 256 + 64, 0)
    order = canonical_order(graph)
    assert [graph.nodes[order[value.id]].name for value in partition.saved] == ["primals_2", "primals_3", "relu"]


def test_partition_names_what_it_was_made_of() -> None:
    graph = two_matmuls(level="inductor")
    partition = assembled(graph, "primals_2", "primals_3", "relu", cut_value=7.0, notes=("look",))
    assert (partition.fingerprint, partition.level) == (graph.fingerprint, "inductor")
    assert (partition.strategy, partition.options) == ("test", {"a": 1})
    assert (partition.cut_value, partition.notes) == (7.0, ("look",))


def test_views_of_one_storage_are_counted_once_and_a_view_of_a_parameter_is_the_parameters() -> None:
    g = GraphBuilder()
    w, t = g.param("w", (8, 4)), g.tangent("tangents_1", (4, 8))
    wt = g.view(w, (4, 8), target="aten.t.default", name="wt")
    y = g.pointwise("aten.sin.default", wt, name="y")
    left = g.op("aten.slice.Tensor", y, 0, 0, 2, shape=(2, 8), storage_of=y, name="left")
    right = g.op("aten.slice.Tensor", y, 0, 2, 4, shape=(2, 8), storage_of=y, name="right")
    out = g.pointwise("aten.exp.default", g.op("aten.cat.default", [left, right], shape=(4, 8)))
    grad = g.op("aten.cat.default", [left, right, wt, t], shape=(12, 8))
    partition = assembled(g.build([out], [grad]), "wt", "left", "right")
    by_name = {value.name: value for value in partition.saved}
    assert (by_name["left"].nbytes, by_name["right"].nbytes) == (128, 0)
    assert by_name["left"].storage == by_name["right"].storage
    assert by_name["wt"].category is Category.PARAMETER
    assert not by_name["wt"].is_input
    assert (partition.saved_bytes, partition.saved_input_bytes) == (128, 128)


def test_a_saved_value_on_an_outputs_storage_costs_nothing_more() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent("tangents_1", (4, 4))
    y = g.pointwise("aten.sin.default", x, name="y")
    partition = assembled(g.build([y], [g.pointwise("aten.mul.Tensor", t, y)]), "y")
    assert partition.saved[0].category is Category.OUTPUT
    assert (partition.saved_bytes, partition.saved_output_bytes) == (0, 64)


def test_duplicates_that_were_merged_have_one_storage() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent("tangents_1", (4, 4))
    first, again = (g.pointwise("aten.sin.default", x, name=name) for name in ("first", "again"))
    flat = g.view(again, (16,), name="flat")
    out = g.pointwise("aten.exp.default", first)
    grad = g.op("aten.cat.default", [first, flat, t], shape=(48,))
    partition = assembled(g.build([out], [grad]), "first", "flat", replaced={"again": "first"})
    assert [value.nbytes for value in partition.saved] == [64, 0]
    assert partition.saved_bytes == 64


def test_sizes_and_objects_cost_no_bytes() -> None:
    g = GraphBuilder()
    n = g.symint("s0", hint=4, placeholder="n")
    handle = g.opaque("handle")
    x, t = g.input("x", ("s0", 4)), g.tangent("tangents_1", ("s0", 4))
    y = g.pointwise("aten.sin.default", x, name="y")
    grad = g.op("aten.foo.default", t, n, handle, y, shape=("s0", 4))
    out = g.pointwise("aten.exp.default", y)
    partition = assembled(g.build([out], [None, None, grad]), "n", "handle", "y")
    assert [(value.name, value.kind, value.nbytes) for value in partition.saved] == [
        ("y", SavedKind.TENSOR, 64),
        ("handle", SavedKind.OPAQUE, 0),
        ("n", SavedKind.SYMINT, 0),
    ]


def test_a_size_that_only_a_shape_mentions_says_why_it_is_saved() -> None:
    g = GraphBuilder()
    g.symint("s0", hint=4, placeholder="n")
    x, t = g.input("x", ("s0", 4)), g.tangent("tangents_1", ("s0", 4))
    y = g.pointwise("aten.sin.default", x, name="y")
    graph = g.build([g.pointwise("aten.exp.default", y)], [None, g.pointwise("aten.mul.Tensor", t, y)])
    size = assembled(graph, "y").saved[-1]
    assert (size.name, size.reason.rule) == ("n", "size")


def test_recomputed_ops_and_their_flops() -> None:
    graph = two_matmuls()
    partition = assembled(graph, "primals_1", "primals_2", "primals_3")
    assert partition.recomputed == ("mm", "relu")
    assert partition.recompute_flops == graph["mm"].flops
    assert partition.forward_flops == sum(graph[name].flops or 0 for name in ("mm", "mm_1"))
    assert partition.backward_flops == partition.recompute_flops + sum(
        graph[name].flops or 0 for name in ("mm_2", "mm_3", "mm_4")
    )


def test_ops_without_a_formula_are_named_not_counted_as_zero() -> None:
    graph = two_matmuls()
    nodes = tuple(dataclasses.replace(node, flops=None) if node.name == "relu" else node for node in graph.nodes)
    partition = assembled(dataclasses.replace(graph, nodes=nodes), "primals_2", "primals_3", "relu")
    assert partition.unknown_flops == ("aten.relu.default",)


def test_a_partition_can_be_cut_again() -> None:
    graph = layered(3)
    for keep_order in (False, True):
        primals = [node.name for node in graph.placeholders if not node.name.startswith("tangents")]
        partition = assembled(graph, *primals, "add", keep_order=keep_order)
        halves = cut(graph, decision_of(partition))
        assert tuple(node.name for node in halves.forward.nodes) == partition.forward_nodes
        assert tuple(node.name for node in halves.backward.nodes) == partition.backward_nodes


def test_an_impossible_decision_is_refused() -> None:
    with pytest.raises(VerificationError):
        assembled(two_matmuls(), "primals_2")


def test_counts_of_ops_leave_out_getitems() -> None:
    g = GraphBuilder()
    pair = g.op("aten.var_mean.correction", g.input("x", (4, 8)), shapes=[(4, 1), (4, 1)])
    out = g.pointwise("aten.mul.Tensor", g.getitem(pair, 0), g.getitem(pair, 1))
    graph = g.build([g.pointwise("aten.mul.Scalar", out, 2)])
    assert count_ops(graph.nodes) == {"aten.mul": 2, "aten.var_mean": 1}
    assert count_flops(graph.nodes).flops == 0


def test_traffic_reads_arguments_and_writes_results_but_views_move_nothing() -> None:
    graph = two_matmuls()
    moved = traffic(graph, graph["mm"])
    assert (moved.read_bytes, moved.written_bytes) == (2 * 8 * 4 + 8 * 16 * 4, 2 * 16 * 4)
    view = traffic(graph, graph["t"])
    assert (view.read_bytes, view.written_bytes) == (0, 0)
    assert traffic(graph, graph["primals_1"]).read_bytes == 0

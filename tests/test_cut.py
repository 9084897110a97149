"""The torch-free cut on small graphs: what each half holds, in which order, and what is handed over."""

from __future__ import annotations

import pytest
from builders import GraphBuilder, layered, random_graph, two_matmuls

from aotcli.analysis.cut import Halves, cut, half_graph
from aotcli.errors import VerificationError
from aotcli.ir.joint import JointGraph, NodeKind, Ref, Tag
from aotcli.ir.partition import Decision, Reason
from aotcli.ir.verify import verify_graph

WHY = Reason("test", "the test says so")


def decide(*names: str, **fields: object) -> Decision:
    return Decision(saved=tuple((name, WHY) for name in names), **fields)  # type: ignore[arg-type]


def ops(halves: Halves) -> tuple[list[str], list[str]]:
    return [node.name for node in halves.forward.nodes], [node.name for node in halves.backward.nodes]


def test_halves_take_and_return_what_the_runtime_expects() -> None:
    halves = cut(two_matmuls(), decide("primals_2", "primals_3", "relu"))
    assert halves.forward.inputs == ("primals_1", "primals_2", "primals_3")
    assert halves.forward.outputs == (Ref("mm_1"), Ref("primals_2"), Ref("primals_3"), Ref("relu"))
    assert halves.backward.inputs == ("primals_2", "primals_3", "relu", "tangents_1")
    assert halves.backward.outputs == (Ref("mm_4"), Ref("mm_2"), None)
    forward, backward = ops(halves)
    assert forward == ["mm", "relu", "mm_1"]
    assert backward == ["t", "mm_2", "t_1", "mm_3", "threshold_backward", "t_2", "mm_4"]


def test_what_is_not_saved_is_recomputed() -> None:
    forward, backward = ops(cut(two_matmuls(), decide("primals_1", "primals_2", "primals_3")))
    assert forward == ["mm", "relu", "mm_1"]
    assert backward[:3] == ["mm", "relu", "t"]


def test_saved_values_that_the_backward_never_reads_are_dropped() -> None:
    halves = cut(two_matmuls(), decide("primals_1", "primals_2", "primals_3", "mm", "relu", "mm_1"))
    assert halves.saved_tensors == ("primals_2", "primals_3", "relu")


def test_recomputed_nodes_move_down_to_their_reader_unless_the_order_is_kept() -> None:
    graph = layered(2)
    saved = ("primals_1", "primals_2", "primals_3", "add")  # the second matmul runs again
    _, moved = ops(cut(graph, decide(*saved)))
    _, kept = ops(cut(graph, decide(*saved, keep_order=True)))
    assert sorted(moved) == sorted(kept)
    assert kept[:2] == ["mm", "mm_1"]
    assert moved[:2] == ["mm_1", "gelu_backward"]
    assert moved.index("mm") == moved.index("gelu_backward_1") - 1


def test_getitems_stand_behind_the_tuple_that_they_take_apart() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 8)), g.tangent("tangents_1", (4, 8))
    pair = g.op("aten.var_mean.correction", x, shapes=[(4, 1), (4, 1)])
    other = g.pointwise("aten.sin.default", x)
    var, mean = g.getitem(pair, 0, name="var"), g.getitem(pair, 1, name="mean")
    out = g.pointwise("aten.add.Tensor", other, g.pointwise("aten.mul.Tensor", var, mean, shape=(4, 1)))
    graph = g.build([out], [g.pointwise("aten.mul.Tensor", t, x)])
    forward, _ = ops(cut(graph, decide("x")))
    assert forward == ["var_mean", "var", "mean", "sin", "mul", "add"]


def test_getitem_of_a_getitem_stays_where_its_parent_was() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    inner = (g.spec((4,)), g.spec((4,)))
    nested = g.op("higher_order.with_effects", x, value=((inner), g.spec((4,))))
    filler = g.pointwise("aten.sin.default", x)
    first = g.op("operator.getitem", nested, 0, value=inner, name="first")
    filler2 = g.pointwise("aten.cos.default", filler)
    leaf = g.op("operator.getitem", first, 1, value=inner[1], name="leaf")
    out = g.pointwise("aten.add.Tensor", leaf, filler2)
    graph = g.build([out], [g.pointwise("aten.mul.Tensor", t, x)])
    forward, _ = ops(cut(graph, decide("x")))
    assert forward == ["with_effects", "first", "sin", "leaf", "cos", "add"]


def test_tensors_without_version_check_come_after_the_checked_ones() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    loose = g.pointwise("aten.sin.default", x, tags={Tag.NO_VERSION_CHECK}, name="loose")
    checked = g.pointwise("aten.cos.default", x, name="checked")
    grad = g.pointwise("aten.mul.Tensor", g.pointwise("aten.mul.Tensor", t, loose), checked)
    halves = cut(g.build([g.pointwise("aten.add.Tensor", loose, checked)], [grad]), decide("loose", "checked"))
    assert halves.saved_tensors == ("checked", "loose")
    assert halves.version_checked == 1


def symbolic() -> JointGraph:
    g = GraphBuilder()
    n = g.symint("s7", hint=4, placeholder="n")
    g.symint("s3", hint=6, placeholder="m")
    x = g.input("x", ("s7", "s3"))
    t = g.tangent("tangents_1", ("s7", "s3"))
    double = g.op("operator.mul", n, 2, value=g.value(n).__class__("int", "2*s7", 8), name="double")
    wide = g.op("aten.cat.default", [x, x], shape=("2*s7", "s3"), name="wide")
    out = g.op("aten.slice.Tensor", wide, 0, 0, n, shape=("s7", "s3"))
    grad = g.op("aten.expand.default", t, [double, -1], shape=("2*s7", "s3"))
    gx = g.op("aten.mul.Tensor", grad, wide, shape=("2*s7", "s3"))
    return g.build([out], [None, None, gx])


def test_symbols_of_saved_shapes_are_saved_with_definitions_first() -> None:
    halves = cut(symbolic(), decide("double", "wide"))
    # The backward reads neither n nor m, but its compiler must know s7 (of `double`) and s3 (of `wide`).
    assert halves.saved_symints == ("n", "m", "double")
    assert halves.backward.inputs == ("n", "m", "double", "wide", "tangents_1")
    assert halves.forward.outputs[1:] == (Ref("wide"), Ref("n"), Ref("m"), Ref("double"))


def test_what_must_be_in_one_half_is_not_in_the_other() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    count = g.buffer("count", (4,), mutated=True)
    y = g.pointwise("aten.sin.default", x)
    g.op("aten.copy_.default", count, y, shape=(4,), storage_of=count, tags={Tag.MUTABLE, Tag.EFFECTFUL}, name="fw")
    grad = g.pointwise("aten.mul.Tensor", t, y)
    g.op("aten.copy_.default", count, grad, shape=(4,), storage_of=count, tags={Tag.MUTABLE, Tag.EFFECTFUL}, name="bw")
    forward, backward = ops(cut(g.build([y], [grad, None]), decide("sin", "count")))
    assert forward == ["sin", "fw"]
    assert backward == ["mul", "bw"]


def test_ops_with_effects_stay_and_dead_code_goes() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    y = g.pointwise("aten.sin.default", x)
    g.op("aten._assert_async.msg", y, "finite", tags={Tag.IMPURE, Tag.EFFECTFUL}, name="check")
    g.op("aten.bernoulli.p", y, 0.5, shape=(4,), tags={Tag.RANDOM, Tag.IMPURE}, name="unread")
    forward, _ = ops(cut(g.build([y], [g.pointwise("aten.mul.Tensor", t, x)]), decide("x")))
    assert forward == ["sin", "check"]


def collective() -> JointGraph:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    tags = {Tag.COLLECTIVE}
    reduced = g.op("_c10d_functional.all_reduce.default", x, "sum", "0", shape=(4,), tags=tags, name="reduce")
    waiting = {Tag.COLLECTIVE, Tag.IMPURE, Tag.EFFECTFUL}
    target = "_c10d_functional.wait_tensor.default"
    g.op(target, reduced, shape=(4,), tags=waiting, name="wait")
    y = g.pointwise("aten.sin.default", x)
    return g.build([y], [g.pointwise("aten.mul.Tensor", t, x)])


def test_a_collective_that_is_only_waited_for_is_not_saved() -> None:
    assert cut(collective(), decide("x", "reduce")).saved == ("x",)


def test_dead_collectives_are_dropped_when_the_decision_says_so() -> None:
    kept, _ = ops(cut(collective(), decide("x")))
    dropped, _ = ops(cut(collective(), decide("x", drop_dead_collectives=True)))
    assert kept == ["reduce", "wait", "sin"]
    assert dropped == ["sin"]


def test_backward_state_is_handed_over_as_an_input_not_saved() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    state = g.opaque("state", "backward_state", "BackwardState")
    grad = g.op("higher_order.trace_wrapped", t, state, shape=(4,))
    halves = cut(g.build([g.pointwise("aten.sin.default", x)], [grad, None]), decide("state"))
    assert halves.saved == ()
    assert halves.backward.inputs == ("tangents_1", "state")


def test_merged_subexpressions_are_read_through_what_stands_for_them() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 2)), g.tangent("tangents_1", (4, 2))
    first = g.pointwise("aten.sin.default", x, name="first")
    again = g.pointwise("aten.sin.default", x, name="again")
    flat = g.view(again, (8,), name="flat")
    out = g.pointwise("aten.mul.Tensor", first, first)
    grad = g.pointwise("aten.mul.Tensor", t, g.view(flat, (4, 2), name="back"))
    graph = g.build([out], [grad])
    halves = cut(graph, decide("first", replaced={"again": "first"}))
    assert ops(halves) == (["first", "mul"], ["flat", "back", "mul_1"])
    assert halves.backward.nodes[0].args[0] == Ref("first")
    assert graph["again"].value.storage in halves.merged_storages  # type: ignore[union-attr]


def test_a_plan_that_lacks_a_value_says_which_and_why() -> None:
    with pytest.raises(VerificationError) as caught:
        cut(two_matmuls(), decide("primals_2", "primals_3"))
    assert "mm_4" in caught.value.what
    assert "primals_1 (mm_4 <- " in caught.value.why
    assert "neither saved nor an input" in caught.value.why


def test_a_graph_without_backward_is_all_forward() -> None:
    g = GraphBuilder()
    graph = g.build([g.pointwise("aten.sin.default", g.input("x", (4,)))])
    halves = cut(graph, decide())
    assert ops(halves) == (["sin"], [])
    assert halves.forward.outputs == (Ref("sin"),)
    assert halves.backward.inputs == ()


def test_a_half_is_a_graph_that_can_be_printed_nested_graphs_included() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    inner = GraphBuilder()
    body = inner.build([inner.pointwise("aten.sin.default", inner.input("arg", (4,)))])
    unused = g.subgraph("only_backward", body)
    attribute = g.subgraph("body", body)
    y = g.op("higher_order.invoke_subgraph", attribute, "body", x, shape=(4,))
    grad = g.op("higher_order.invoke_subgraph", unused, "only_backward", t, shape=(4,))
    graph = g.build([y], [g.pointwise("aten.mul.Tensor", grad, y)])
    halves = cut(graph, decide("invoke_subgraph"))
    forward, backward = half_graph(graph, halves.forward, "forward"), half_graph(graph, halves.backward, "backward")
    for each in (forward, backward):
        verify_graph(each)
    assert dict(forward.subgraphs) == {"body": body}
    assert dict(backward.subgraphs) == {"only_backward": body}
    assert backward["invoke_subgraph"].kind is NodeKind.INPUT
    assert backward["invoke_subgraph"].args == ()


@pytest.mark.parametrize("seed", range(40))
def test_halves_of_random_graphs_read_only_what_they_have(seed: int) -> None:
    graph = random_graph(seed, 30, 30)
    names = [node.name for node in graph.nodes if node.partitioner_tag != "is_backward" and node.kind is NodeKind.OP]
    savable = [name for name in names if not isinstance(graph[name].value, tuple)]
    primals = [node.name for node in graph.placeholders if node.kind is not NodeKind.TANGENT]
    for keep_order in (False, True):
        decision = decide(*primals, *savable[seed % 3 :: 3], keep_order=keep_order)
        halves = cut(graph, decision)
        for half in (halves.forward, halves.backward):
            known = set(half.inputs)
            for node in half.nodes:
                assert known.issuperset(node.refs)
                assert node.name not in known
                known.add(node.name)
            assert known.issuperset(each.name for each in half.outputs if isinstance(each, Ref))
        read = {name for node in halves.backward.nodes for name in node.refs}
        read |= {each.name for each in halves.backward.outputs if isinstance(each, Ref)}
        assert read.issuperset(halves.saved_tensors)

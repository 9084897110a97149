"""Dead code and common subexpressions on records."""

from __future__ import annotations

import dataclasses

import pytest
from builders import GraphBuilder, layered, random_graph

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.ir.joint import Const, JointGraph, Mapping, Node, NodeKind, Ref, Tag
from aotcli.ir.verify import verify_graph


def merged(g: GraphBuilder, *results: Ref) -> dict[str, str]:
    """What elimination replaces when a sum of `results` is returned."""
    total = results[0]
    for each in results[1:]:
        total = g.pointwise("aten.add.Tensor", total, each, shape=(4,))
    graph, replaced = eliminate_common(g.build([g.pointwise("aten.neg.default", total, shape=(4,))]))
    verify_graph(graph)
    return replaced


@pytest.fixture
def g() -> GraphBuilder:
    return GraphBuilder()


def test_equal_ops_become_the_first_and_readers_follow(g: GraphBuilder) -> None:
    x = g.input("x", (4,))
    a = g.pointwise("aten.relu.default", x)
    b = g.pointwise("aten.relu.default", x)
    c = g.pointwise("aten.exp.default", a)
    d = g.pointwise("aten.exp.default", b)
    assert merged(g, c, d) == {b.name: a.name, d.name: c.name}


def test_a_graph_without_duplicates_comes_back_itself() -> None:
    g = GraphBuilder()
    graph = g.build([g.pointwise("aten.relu.default", g.input("x", (4,)))])
    assert eliminate_common(graph)[0] is graph


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), (0.0, False), (Const("dtype", "torch.int"), "torch.int")])
def test_arguments_that_differ_in_type_keep_ops_apart(g: GraphBuilder, pair: tuple[object, object]) -> None:
    x = g.input("x", (4,))
    assert merged(g, *(g.pointwise("aten.add.Scalar", x, value) for value in pair)) == {}


@pytest.mark.parametrize("pair", [(1, 1), (0.5, 0.5), ([1, 2], [1, 2]), (None, None), ("a", "a")])
def test_equal_arguments_merge(g: GraphBuilder, pair: tuple[object, object]) -> None:
    x = g.input("x", (4,))
    assert len(merged(g, *(g.pointwise("aten.add.Scalar", x, value) for value in pair))) == 1


def test_keyword_arguments_count(g: GraphBuilder) -> None:
    x = g.input("x", (4,))
    ops = [g.pointwise("aten.var.correction", x, kwargs={"correction": c}) for c in (0, 1, 0)]
    assert merged(g, *ops) == {ops[2].name: ops[0].name}


def test_ops_whose_hash_collides_are_not_remembered(g: GraphBuilder) -> None:
    # Python hashes -1 and -2 alike, and torch remembers one op for each hash: the second -2 finds -1 there.
    assert hash(-1) == hash(-2)
    x = g.input("x", (4,))
    ops = [g.pointwise("aten.sum.dim_IntList", x, [dim]) for dim in (-1, -2, -2, -1)]
    assert merged(g, *ops) == {ops[3].name: ops[0].name}


def test_random_ops_and_empty_stay(g: GraphBuilder) -> None:
    x = g.input("x", (4,))
    assert merged(g, *(g.op("aten.rand_like.default", x, shape=(4,), tags={Tag.NO_CSE}) for _ in range(2))) == {}


def test_results_that_share_storage_with_an_output_stay(g: GraphBuilder) -> None:
    x = g.input("x", (4,))
    a, b = (g.pointwise("aten.relu.default", x) for _ in range(2))
    view = g.view(b, (2, 2))
    graph, replaced = eliminate_common(g.build([a, view]))
    assert replaced == {}
    assert len(graph.nodes) == 5


def test_a_mutation_between_keeps_ops_apart_and_the_later_one_stands_for_what_follows(g: GraphBuilder) -> None:
    x = g.input("x", (4,))
    before = g.pointwise("aten.relu.default", x)
    g.op("aten.add_.Tensor", x, 1, shape=(4,), storage_of=x, tags={Tag.MUTABLE, Tag.NO_CSE})
    after = [g.pointwise("aten.relu.default", x) for _ in range(2)]
    assert merged(g, before, *after) == {after[1].name: after[0].name}


@pytest.mark.parametrize(
    ("target", "separates"),
    [
        ("operator.setitem", False),
        ("torch._set_grad_enabled", True),
        ("profiler.enter", True),
        ("torch.copy_", True),
        ("operator.and_", True),  # torch goes by the name, and this is what its name says
        ("higher_order.auto_functionalized", False),
        ("operator.__iadd__", False),
        ("operator.mul", False),
    ],
)
def test_functions_without_a_schema_mutate_by_name(g: GraphBuilder, target: str, separates: bool) -> None:
    x = g.input("x", (4,))
    a = g.pointwise("aten.relu.default", x)
    g.op(target, x)
    b = g.pointwise("aten.relu.default", x)
    assert (merged(g, a, b) == {}) is separates


def test_arguments_inside_dicts_are_renamed(g: GraphBuilder) -> None:
    x = g.input("x", (4,))
    a, b = (g.pointwise("aten.relu.default", x) for _ in range(2))
    kernel = g.op("higher_order.kernel", kwargs={"kwargs": Mapping((("in", b),))}, shape=(4,))
    graph, _ = eliminate_common(g.build([kernel]))
    assert graph[kernel.name].refs == (a.name,)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    """Every node that is left reads what stands for what it read, and nothing can be merged a second time."""
    graph = eliminate_dead(random_graph(seed))[0]
    reduced, replaced = eliminate_common(graph)
    verify_graph(reduced)
    assert set(graph.index) - set(reduced.index) == set(replaced)
    for node in reduced.nodes:
        assert node.refs == tuple(dict.fromkeys(replaced.get(name, name) for name in graph[node.name].refs))
    # A mutation is no duplicate, and no hashes collide in these graphs.
    assert eliminate_common(reduced)[1] == {}


def test_dead_nodes_go_with_what_only_they_read() -> None:
    g = GraphBuilder()
    x, unused = g.input("x", (4,)), g.input("unused", (4,))
    dead = g.pointwise("aten.exp.default", g.pointwise("aten.relu.default", x))
    y = g.pointwise("aten.neg.default", x)
    graph, removed = eliminate_dead(g.build([y]))
    assert removed == {"relu", dead.name}
    assert unused.name in graph.index


def test_ops_with_effects_live_and_random_ones_do_not() -> None:
    g = GraphBuilder()
    x = g.input("x", (4,))
    g.op("aten._assert_async.msg", x, "bad", name="check", tags={Tag.IMPURE, Tag.EFFECTFUL})
    g.op("aten.rand_like.default", x, name="noise", shape=(4,), tags={Tag.IMPURE, Tag.RANDOM})
    assert eliminate_dead(g.build([x]))[1] == {"noise"}


def test_nested_graphs_are_cleaned() -> None:
    inner = GraphBuilder()
    a = inner.input("a", (4,))
    inner.pointwise("aten.exp.default", a)
    nested = inner.build([a])
    g = GraphBuilder()
    body = g.subgraph("body", nested)
    call = g.op("higher_order.invoke_subgraph", body, g.input("x", (4,)), shape=(4,))
    graph, removed = eliminate_dead(g.build([call]))
    assert removed == frozenset()
    assert [node.name for node in dict(graph.subgraphs)["body"].nodes] == ["a", "output"]


def test_a_graph_without_dead_nodes_comes_back_itself() -> None:
    graph = layered(2)
    cleaned, removed = eliminate_dead(graph)
    assert (cleaned is graph) is (not removed)
    again, _ = eliminate_dead(cleaned)
    assert again is cleaned


def test_callers_graphs_are_never_changed() -> None:
    graph = random_graph(3)
    copy = dataclasses.replace(graph, nodes=tuple(dataclasses.replace(node) for node in graph.nodes))
    eliminate_common(eliminate_dead(graph)[0])
    assert graph == copy
    assert isinstance(graph, JointGraph)
    assert isinstance(graph.nodes[0], Node)
    assert graph.nodes[-1].kind is NodeKind.OUTPUT

"""What holds of every pairing, on random graphs, edited ones, and odd ones."""

from __future__ import annotations

from typing import Any

import pytest
from builders import GraphBuilder, count_calls, layered, random_graph, two_matmuls
from graph_edits import (
    GETITEM,
    bypassed,
    edit_cost,
    inserted_at_random,
    recast,
    replaced,
    scrambled,
    with_shuffled_modules,
    with_shuffled_primals,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from small_transformer import Variant, transformer

from aotcli.analysis.matching import match_graphs
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind
from aotcli.ir.pairing import Match, Pairing

SEEDS = st.integers(0, 10**6)
SIZES = st.sampled_from([(1, 0), (1, 1), (4, 2), (12, 9), (40, 40)])
EDITS = {
    "scrambled": scrambled,
    "inserted": lambda graph, seed: inserted_at_random(graph, 0.1, seed),
    "replaced": lambda graph, seed: replaced(graph, 0.2, seed),
    "bypassed": lambda graph, seed: bypassed(graph, 0.1, seed),
    "recast": lambda graph, _seed: recast(graph, "bfloat16"),
    "primals": with_shuffled_primals,
    "modules": with_shuffled_modules,
}


def check(left: JointGraph, right: JointGraph) -> Pairing:
    """The pairing, after a look at all that is promised of any."""
    pairing = match_graphs(left, right)
    assert match_graphs(right, left) == pairing.mirrored()
    assert match_graphs(left, right) == pairing
    assert (len(pairing.right_of), len(pairing.left_of)) == (len(left.nodes), len(right.nodes))
    for i, j in enumerate(pairing.right_of):
        assert (pairing.match[i] is None) == (j < 0)
        if j >= 0:
            assert pairing.left_of[j] == i
            check_pair(left.nodes[i], right.nodes[j], pairing.match[i])
            if left.nodes[i].target == GETITEM:
                assert pairing.right_of[left.inputs_of[i][0]] == right.inputs_of[j][0]
    assert sum(i >= 0 for i in pairing.left_of) == pairing.paired
    return pairing


def check_pair(node: Node, other: Node, match: Match | None) -> None:
    assert node.kind is other.kind or {node.kind, other.kind} <= PRIMAL_KINDS
    if node.kind is NodeKind.OP:
        other_op = node.target != other.target or (node.target == GETITEM and node.args[1] != other.args[1])
        assert other_op == (match is Match.CHANGED)
    else:
        assert match is not Match.CHANGED


@settings(max_examples=60, deadline=None)
@given(SEEDS, SIZES, st.lists(st.sampled_from(sorted(EDITS)), max_size=3))
def test_an_edited_graph(seed: int, size: tuple[int, int], edits: list[str]):
    graph = random_graph(seed, *size)
    edited = scrambled(graph, seed)
    for number, name in enumerate(edits):
        edited = edited.then(lambda g, name=name, number=number: EDITS[name](g, seed + number))  # type: ignore[misc]
    check(graph, edited.graph)


@settings(max_examples=30, deadline=None)
@given(SEEDS, SEEDS, SIZES, SIZES)
def test_two_graphs_that_have_nothing_to_do_with_each_other(
    first: int, second: int, size: tuple[int, int], other: tuple[int, int]
):
    check(random_graph(first, *size), random_graph(second, *other))


@settings(max_examples=60, deadline=None)
@given(SEEDS, SIZES)
def test_the_same_graph_told_otherwise_is_exact(seed: int, size: tuple[int, int]):
    graph = random_graph(seed, *size)
    right = scrambled(graph, seed).graph
    pairing = check(graph, right)
    assert set(pairing.match) == {Match.EXACT}
    assert edit_cost(graph, right, pairing.right_of) == 0


@settings(max_examples=30, deadline=None)
@given(SEEDS, SIZES)
def test_with_itself_a_graph_is_paired_place_by_place(seed: int, size: tuple[int, int]):
    graph = random_graph(seed, *size)
    assert match_graphs(graph, graph).right_of == tuple(range(len(graph.nodes)))


# Odd graphs.


def nothing() -> JointGraph:
    return JointGraph((), 0, "aten")


def only_output() -> JointGraph:
    return GraphBuilder().build(fingerprinted=False)


def one_input(shape: tuple[int, ...] = (2,)) -> JointGraph:
    g = GraphBuilder()
    return g.build([g.input("x", shape)], fingerprinted=False)


def without_output() -> JointGraph:
    return JointGraph(one_input().nodes[:-1], 0, "aten")


def forward_only() -> JointGraph:
    g = GraphBuilder()
    x = g.input("x", (2, 4))
    return g.build([g.pointwise("aten.relu.default", x)], fingerprinted=False)


def symbolic(size: str = "s0") -> JointGraph:
    g = GraphBuilder()
    g.symint(size, hint=7)
    x = g.input("x", (size, 4))
    doubled = g.op("aten.cat.default", [x, x], shape=(f"2*{size}", 4))
    flat = g.view(doubled, (f"8*{size}",))
    return g.build([flat], fingerprinted=False)


def nested(inner: str = "aten.relu.default", name: str = "graph_0") -> JointGraph:
    body = GraphBuilder(name=name)
    inner_graph = body.build([body.pointwise(inner, body.input("a", (4,)))])
    g = GraphBuilder()
    x = g.input("x", (4,))
    made = g.op("higher_order.checkpoint", g.subgraph(name, inner_graph), x, shape=(4,))
    return g.build([made], fingerprinted=False)


def self_read() -> JointGraph:
    """A value read twice by one op, and dead code."""
    g = GraphBuilder()
    x = g.input("x", (4,))
    g.pointwise("aten.exp.default", x)
    return g.build([g.pointwise("aten.mul.Tensor", x, x)], fingerprinted=False)


def nameless() -> JointGraph:
    """Two parameters of one name, and one of none."""
    g = GraphBuilder()
    a, b, c = (g.param(f"p{i}", (4, 4), origin="w" if i else None) for i in range(3))
    x = g.pointwise("aten.add.Tensor", a, b)
    return g.build([g.pointwise("aten.mul.Tensor", x, c)], [None] * 3, fingerprinted=False)


ODD = [
    nothing,
    only_output,
    one_input,
    without_output,
    forward_only,
    symbolic,
    nested,
    self_read,
    nameless,
    two_matmuls,
]


@pytest.mark.parametrize("left", ODD)
@pytest.mark.parametrize("right", ODD)
def test_odd_graphs(left: Any, right: Any):
    pairing = check(left(), right())
    if left is right:
        assert None not in pairing.match


def test_an_empty_graph_pairs_nothing():
    assert match_graphs(nothing(), layered(2)).paired == 0
    assert match_graphs(nothing(), nothing()) == Pairing((), (), ())


def test_other_names_of_symbols_are_no_difference():
    pairing = check(symbolic("s0"), symbolic("s77"))
    assert set(pairing.match) == {Match.EXACT}


def test_a_size_that_became_symbolic_leaves_the_node_what_it_was():
    g = GraphBuilder()
    x = g.input("x", (7, 4))
    fixed = g.build([g.view(g.op("aten.cat.default", [x, x], shape=(14, 4)), (56,))], fingerprinted=False)
    moving = symbolic()
    pairing = check(fixed, moving)
    assert -1 not in pairing.right_of
    assert [moving.nodes[j].kind for j, i in enumerate(pairing.left_of) if i < 0] == [NodeKind.INPUT]  # the size


def test_nested_graphs_are_paired_by_what_they_hold_and_by_their_reader():
    same = check(nested(name="graph_0"), nested(name="another"))
    assert set(same.match) == {Match.EXACT}
    other = check(nested(), nested("aten.tanh.default"))
    assert None not in other.match
    assert Match.CHANGED not in other.match  # the node that reads the graph is the same; the graph is for others to say


def test_a_parameter_may_have_become_a_buffer():
    def graph(*, buffer: bool) -> JointGraph:
        g = GraphBuilder()
        w = (g.buffer if buffer else g.param)("w", (4, 4), origin="fc.w")
        other = g.param("b", (4, 4), origin="fc.b")
        return g.build([g.pointwise("aten.add.Tensor", w, other)], [None, None], fingerprinted=False)

    pairing = check(graph(buffer=False), graph(buffer=True))
    assert None not in pairing.match


def test_what_takes_a_tuple_apart_goes_with_the_tuple():
    """`check` holds that for every pair; here the tuple has gone and a tuple of another kind has come."""

    def graph(target: str, count: int) -> JointGraph:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        parts = g.op(target, x, shapes=[(4, 4)] * count)
        ends = [g.pointwise("aten.relu.default", g.getitem(parts, i)) for i in range(2)]
        return g.build(ends, fingerprinted=False)

    check(graph("aten.topk.default", 2), graph("aten.frexp.Tensor", 2))
    check(graph("aten.topk.default", 2), graph("aten.unbind.int", 3))


def test_the_work_grows_as_the_graph_does():
    def work(layers: int) -> int:
        left = transformer(Variant(layers=tuple(range(layers))))
        right = scrambled(transformer(Variant(layers=tuple(range(layers)), attention="by hand"))).graph
        return count_calls(lambda: match_graphs(left, right))

    assert work(48) < 2.4 * work(24)


@pytest.mark.parametrize("shape", ["chain", "fan"])
def test_the_work_grows_as_a_chain_or_a_fan_does(shape: str):
    def graph(size: int) -> JointGraph:
        g = GraphBuilder()
        x = end = g.input("x", (4, 4))
        made = [x]
        for _ in range(size):
            end = g.pointwise("aten.relu.default", end if shape == "chain" else x)
            made.append(end)
        out = end if shape == "chain" else g.op("aten.cat.default", made, shape=(4, 4))
        return g.build([out], fingerprinted=False)

    def work(size: int) -> int:
        left, right = graph(size), graph(size - 1)
        return count_calls(lambda: match_graphs(left, right))

    assert work(1600) < 2.4 * work(800)

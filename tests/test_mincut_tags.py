"""Checkpoint policies, and the saves that a graph forces."""

from __future__ import annotations

import pytest
from builders import GraphBuilder

from aotcli.analysis import mincut_tags as tags
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.mincut_tags import checkpoint_policies
from aotcli.ir.joint import JointGraph, Ref, Tag

SHAPE = (4, 4)


@pytest.fixture
def g() -> GraphBuilder:
    builder = GraphBuilder()
    builder.input("x", SHAPE)
    builder.tangent(shape=SHAPE)
    return builder


X, T = Ref("x"), Ref("tangents_1")


def forced(graph: JointGraph, **options: bool) -> dict[str, str]:
    policies = checkpoint_policies(graph, **options)
    assert not any(save and again for save, again in zip(policies.must_save, policies.must_recompute, strict=True))
    assert [i for i, each in enumerate(policies.must_save) if each] == sorted(policies.cause)
    return {graph.nodes[i].name: cause for i, cause in policies.cause.items()}


def block(g: GraphBuilder, value: Ref, number: int, **fields: object) -> Ref:
    """Two ops of a checkpointed block."""
    fields = {"checkpoint": "PREFER_RECOMPUTE", "ac_graph_id": number, **fields}
    return g.pointwise("aten.cos.default", g.pointwise("aten.sin.default", value, **fields), **fields)


def test_policies_of_the_user(g: GraphBuilder) -> None:
    policies = ("MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE", None)
    values = [g.pointwise("aten.sin.default", X, checkpoint=policy) for policy in policies]
    found = checkpoint_policies(graph := g.build(values))
    at = [graph.index[value.name] for value in values]
    assert [found.must_save[i] for i in at] == [True, False, False, False, False]
    assert [found.must_recompute[i] for i in at] == [False, False, True, True, False]


def test_the_value_between_two_blocks_is_saved(g: GraphBuilder) -> None:
    first = block(g, X, 1)
    second = block(g, first, 2)
    assert forced(g.build([second])) == {first.name: tags.BLOCK_BOUNDARY}


def test_a_value_that_an_earlier_block_reads_is_no_boundary(g: GraphBuilder) -> None:
    second = block(g, X, 2)
    assert forced(g.build([block(g, second, 1)])) == {}


def test_an_op_between_two_blocks_is_boundary_enough(g: GraphBuilder) -> None:
    between = g.pointwise("aten.neg.default", block(g, X, 1))
    assert forced(g.build([block(g, between, 2)])) == {}


def test_a_hook_on_a_blocks_result_saves_it(g: GraphBuilder) -> None:
    last = g.pointwise("aten.cos.default", block(g, X, 1), checkpoint="MUST_RECOMPUTE", tags={Tag.BACKWARD_HOOK})
    inside = g.pointwise("aten.sin.default", X, checkpoint="MUST_RECOMPUTE", tags={Tag.BACKWARD_HOOK})
    g.pointwise("aten.exp.default", inside, checkpoint="MUST_RECOMPUTE", name="reader")
    assert forced(g.build([last, Ref("reader")])) == {last.name: tags.BACKWARD_HOOK}


def test_what_a_block_reads_is_saved_on_request(g: GraphBuilder) -> None:
    before = g.pointwise("aten.exp.default", X)
    graph = g.build([block(g, before, 1)])
    assert forced(graph) == {}
    assert forced(graph, save_block_inputs=True) == {before.name: tags.BLOCK_INPUT}


def test_an_unlabelled_part_of_a_blocks_tuple_is_no_input_of_it(g: GraphBuilder) -> None:
    pair = g.op("aten.topk.default", X, 2, shapes=[SHAPE, SHAPE], ac_graph_id=1)
    part = g.getitem(pair, 0)
    assert forced(g.build([block(g, part, 1)]), save_block_inputs=True) == {}


def test_collectives(g: GraphBuilder) -> None:
    target = "_c10d_functional.all_reduce.default"
    plain = g.op(target, X, "sum", "0", shape=SHAPE, tags={Tag.COLLECTIVE})
    again = g.op(target, X, "sum", "1", shape=SHAPE, tags={Tag.COLLECTIVE}, checkpoint="MUST_RECOMPUTE")
    graph = g.build([plain, again], [g.pointwise("aten.mul.Tensor", T, plain)])
    assert forced(graph) == {plain.name: tags.COLLECTIVE}
    graph = g.build([plain], [g.pointwise("aten.mul.Tensor", T, plain)])
    decision = decide(graph, Heuristic())
    assert decision.bans[plain.name] == "must save"
    assert [(name, reason.text) for name, reason in decision.saved] == [(plain.name, "collective")]


def test_results_of_ops_with_effects(g: GraphBuilder) -> None:
    token = g.input("token", ())
    nested = (g.spec(()), (g.spec(SHAPE), g.spec(SHAPE)))
    call = g.op("higher_order.with_effects", token, X, value=nested, tags={Tag.WITH_EFFECTS})
    first, results = g.getitem(call, 0), g.getitem(call, 1)
    parts = [g.getitem(results, i) for i in range(2)]
    backward = g.op("higher_order.with_effects", token, T, value=nested, tags={Tag.WITH_EFFECTS})
    graph = g.build([*parts, first], [g.getitem(backward, 0)])
    assert forced(graph) == dict.fromkeys((ref.name for ref in (first, *parts)), tags.EFFECT)


def test_what_both_halves_write_into_an_input(g: GraphBuilder) -> None:
    new = g.pointwise("aten.neg.default", X)
    later = g.pointwise("aten.mul.Tensor", T, X)
    g.op("aten.copy_.default", X, new, shape=SHAPE, partitioner_tag="must_be_in_forward")
    graph_forward_only = g.build([new], [later])
    assert forced(graph_forward_only) == {}
    g.op("aten.copy_.default", X, later, shape=SHAPE, partitioner_tag="must_be_in_backward")
    assert forced(g.build([new], [later])) == {new.name: tags.WRITTEN_TWICE}


def test_a_must_save_is_a_reason_of_its_own(g: GraphBuilder) -> None:
    value = g.pointwise("aten.sin.default", X, checkpoint="MUST_SAVE")
    graph = g.build([g.pointwise("aten.neg.default", value)], [g.pointwise("aten.mul.Tensor", T, value)])
    decision = decide(graph, Heuristic())
    assert [(name, reason.rule, reason.text) for name, reason in decision.saved] == [
        (value.name, "must save", "checkpoint policy")
    ]
    changed = decide(graph, Heuristic(), ignored=[(value.name, "must save")])
    assert value.name not in changed.bans


def test_a_checkpointed_block_is_recomputed_from_its_input(g: GraphBuilder) -> None:
    fields = {"checkpoint": "MUST_RECOMPUTE", "ac_graph_id": 1}
    product = g.matmul(X, X, SHAPE, **fields)
    value = g.pointwise("aten.sin.default", product, **fields)
    graph = g.build([g.pointwise("aten.neg.default", value)], [g.pointwise("aten.mul.Tensor", T, value)])
    decision = decide(graph, Heuristic())
    assert {name for name, _ in decision.saved} == {"x"}
    assert not {product.name, value.name} & decision.weights.keys()

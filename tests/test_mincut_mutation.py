"""Reads of inputs that the step changes in place are never recomputed."""

from __future__ import annotations

import dataclasses

import pytest
from builders import GraphBuilder

from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.ir.joint import JointGraph, Tag

WIDE, NARROW = (64, 8), (8,)


def decaying(*, view: bool = False, backward_reads: bool = False, checkpoint: str | None = None) -> JointGraph:
    """y = (x * w) * (buf * 2); buf *= 0.5, with the gradient of w; `view` reads buf through a view."""
    g = GraphBuilder()
    w = g.param("w", NARROW)
    buf = g.buffer("buf", NARROW, mutated=True)
    x = g.input("x", WIDE)
    t = g.tangent(shape=WIDE)
    product = g.pointwise("aten.mul.Tensor", x, w, name="product")
    read = g.view(buf, NARROW) if view else buf
    double = g.pointwise("aten.mul.Tensor", read, 2, name="double", checkpoint=checkpoint)
    y = g.pointwise("aten.mul.Tensor", product, double)
    new = g.pointwise("aten.mul.Tensor", buf, 0.5, name="new")
    g.op("aten.copy_.default", buf, new, shape=NARROW, storage_of=buf, name="copy_",
         tags={Tag.MUTABLE, Tag.IMPURE, Tag.EFFECTFUL}, partitioner_tag="must_be_in_forward")  # fmt: skip
    scaled = g.pointwise("aten.mul.Tensor", t, double)
    if backward_reads:
        scaled = g.pointwise("aten.mul.Tensor", scaled, read)
    gw = g.op("aten.sum.dim_IntList", g.pointwise("aten.mul.Tensor", scaled, x), [0], shape=NARROW)
    return g.build([y], [gw, None, None])


def saved(graph: JointGraph) -> set[str]:
    return {name for name, _ in decide(graph, Heuristic()).saved}


@pytest.mark.parametrize("view", [False, True])
def test_the_first_op_after_the_read_is_saved_instead_of_the_buffer(view: bool) -> None:
    graph = decaying(view=view)
    decision = decide(graph, Heuristic())
    assert {name for name, _ in decision.saved} == {"x", "double"}
    assert dict(decision.saved)["double"].rule == "mutated input"
    assert dict(decision.saved)["double"].text == "reads buf, changed in place"
    assert {name for name, rule in decision.bans.items() if rule == "mutated input"} >= {"double", "new"}
    assert "buf" not in decision.weights
    # Were the buffer not changed, it would be saved: it lives across steps and costs nothing.
    unchanged = decide(dataclasses.replace(graph, mutated=()), Heuristic())
    assert saved(dataclasses.replace(graph, mutated=())) == {"x", "buf"}
    assert "double" not in unchanged.bans
    assert decision.cut_value > unchanged.cut_value


def test_leaving_the_rule_out_saves_the_buffer() -> None:
    pairs = [("double", "mutated input"), ("buf", "mutated input")]
    assert {name for name, _ in decide(decaying(), Heuristic(), ignored=pairs).saved} == {"x", "buf"}


@pytest.mark.parametrize("view", [False, True])
def test_what_the_backward_itself_reads_is_saved(view: bool) -> None:
    decision = decide(decaying(view=view, backward_reads=True), Heuristic())
    assert {name for name, _ in decision.saved} >= {"x", "double"}
    assert "buf" in decision.weights
    assert decision.bans["double"] == "mutated input"


def test_a_view_that_nothing_but_the_forward_reads_cannot_be_saved() -> None:
    decision = decide(decaying(view=True), Heuristic())
    assert "view" not in decision.weights


def test_another_rule_keeps_its_name() -> None:
    nodes = [
        dataclasses.replace(node, target="aten.mm.default", tags=frozenset()) if node.name == "double" else node
        for node in decaying().nodes
    ]
    graph = dataclasses.replace(decaying(), nodes=tuple(nodes))
    assert dict(decide(graph, Heuristic()).saved)["double"].text == "matmul"
    without = [("double", "allowlist"), ("double", "materialized in backward")]
    assert decide(graph, Heuristic(), ignored=without).bans["double"] == "mutated input"


def test_a_checkpoint_policy_does_not_make_the_recomputation_right() -> None:
    decision = decide(decaying(checkpoint="MUST_RECOMPUTE"), Heuristic())
    assert {name for name, _ in decision.saved} == {"x", "double"}
    assert decision.notes == (
        "double is not recomputed although its policy asks for it: it reads buf, which the step changes in place",
    )


def test_an_op_that_only_the_backward_needs_runs_in_the_forward() -> None:
    g = GraphBuilder()
    buf = g.buffer("buf", NARROW, mutated=True)
    x, t = g.input("x", NARROW), g.tangent(shape=NARROW)
    mask = g.pointwise("aten.sign.default", buf)
    y = g.pointwise("aten.neg.default", x)
    new = g.pointwise("aten.mul.Tensor", buf, 0.5)
    gx = g.pointwise("aten.mul.Tensor", t, mask)
    graph = g.build([y, new], [None, gx])
    assert saved(graph) == {mask.name}


def test_a_tuple_made_from_a_changed_buffer_is_saved_in_parts() -> None:
    g = GraphBuilder()
    mean = g.buffer("mean", NARROW, mutated=True)
    x, t = g.input("x", WIDE), g.tangent(shape=WIDE)
    normed = g.op("aten.batch_norm.default", x, mean, shapes=[WIDE, NARROW])
    out, scale = g.getitem(normed, 0), g.getitem(normed, 1)
    gx = g.op("aten.batch_norm_backward.default", t, x, scale, shape=WIDE)
    graph = g.build([g.pointwise("aten.neg.default", out)], [None, gx])
    assert saved(graph) == {"x", scale.name}

"""Roles of nodes: small graphs by hand, and random ones against the definitions."""

from __future__ import annotations

import dataclasses

import pytest
from builders import GraphBuilder, random_graph, two_matmuls

from aotcli.analysis.roles import NEVER, Roles, classify
from aotcli.errors import StrategyError
from aotcli.ir.joint import JointGraph, NodeKind, Ref, Tag


def names(graph: JointGraph, flags: tuple[bool, ...]) -> set[str]:
    return {node.name for node, flag in zip(graph.nodes, flags, strict=True) if flag}


def test_two_matmuls() -> None:
    graph = two_matmuls()
    roles = classify(graph)
    assert names(graph, roles.required_forward) == {"primals_1", "primals_2", "primals_3", "mm", "relu", "mm_1"}
    assert names(graph, roles.tangents_closure) == {
        "tangents_1", "mm_2", "mm_3", "threshold_backward", "mm_4", "output",
    }  # fmt: skip
    assert names(graph, roles.unclaimed) == {"t", "t_1", "t_2"}
    order = {node.name: place for node, place in zip(graph.nodes, roles.forward_order, strict=True)}
    assert [order[name] for name in ("primals_1", "primals_3", "mm", "mm_1", "mm_2")] == [0, 2, 3, 5, -1]
    distance = dict(zip(graph.index, roles.dist_from_backward, strict=True))
    assert (distance["relu"], distance["mm"], distance["primals_1"], distance["t"]) == (1, 2, 3, 0)
    assert distance["mm_1"] == NEVER  # only the output reads it


def test_a_gradient_that_no_tangent_reaches_is_required_but_not_in_the_closure() -> None:
    g = GraphBuilder()
    x = g.input("x", (4,))
    t = g.tangent(shape=(4,))
    mask = g.pointwise("aten.relu.default", x)
    y = g.pointwise("aten.neg.default", x)
    graph = g.build([y], [mask, t])
    roles = classify(graph)
    position = graph.index[mask.name]
    assert roles.required_backward[position]
    assert not roles.tangents_closure[position]
    assert not roles.required_forward[position]
    assert not roles.unclaimed[position]


def test_ops_with_effects_stay_in_the_forward_and_random_ones_do_not() -> None:
    g = GraphBuilder()
    x = g.input("x", (4,))
    t = g.tangent(shape=(4,))
    noise = g.op("aten.rand.default", [4], shape=(4,), tags={Tag.RANDOM, Tag.IMPURE})
    check = g.op("aten._assert_async.msg", x, "bad", tags={Tag.IMPURE, Tag.EFFECTFUL})
    y = g.pointwise("aten.neg.default", x)
    gx = g.pointwise("aten.mul.Tensor", t, noise)
    graph = g.build([y], [gx])
    roles = classify(graph)
    assert roles.required_forward[graph.index[check.name]]
    assert roles.unclaimed[graph.index[noise.name]]


@pytest.mark.parametrize(("tag", "in_backward"), [("must_be_in_backward", True), ("must_be_in_forward", False)])
def test_pinned_ops(tag: str, in_backward: bool) -> None:
    g = GraphBuilder()
    x = g.input("x", (4,))
    g.tangent(shape=(4,))
    y = g.pointwise("aten.neg.default", x)
    copy = g.op("aten.copy_.default", x, y, shape=(4,), tags={Tag.MUTABLE}, partitioner_tag=tag)
    graph = g.build([y, copy], [None])
    roles = classify(graph)
    position = graph.index[copy.name]
    assert roles.tangents_closure[position] is in_backward
    assert roles.required_forward[position] is not in_backward


def test_a_mutation_traced_in_the_backward_is_pinned_there() -> None:
    g = GraphBuilder()
    x = g.input("x", (4,))
    y = g.pointwise("aten.neg.default", x)
    copy = g.op("aten.copy_.default", x, y, shape=(4,), tags={Tag.MUTABLE}, backward=True)
    graph = g.build([y, copy], [])
    roles = classify(graph)
    assert roles.tangents_closure[graph.index[copy.name]]
    assert roles.required_forward[graph.index["x"]]


def test_an_output_that_needs_tangents_is_refused() -> None:
    g = GraphBuilder()
    t = g.tangent(shape=(4,))
    bad = g.pointwise("aten.neg.default", t)
    with pytest.raises(StrategyError, match="only the backward can compute"):
        classify(g.build([bad], []))


def test_a_kernel_that_writes_an_input_in_the_backward_stands_for_that_input() -> None:
    from aotcli.ir.joint import Mapping

    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    wrapped = Mapping((("out", x), ("grad", t)))
    kernel = g.op(
        "higher_order.triton_kernel_wrapper_functional", shapes=[(4,), (4,)], kwargs={"kwargs": wrapped}, name="kernel"
    )
    written = g.op("operator.getitem", kernel, "out", shape=(4,))
    seen = g.view(written, (2, 2))
    roles = classify(g.build([seen], [None]))
    assert roles.required_forward[0]


def reference_roles(graph: JointGraph) -> dict[str, set[str]]:
    """The definitions, by names and fixed points."""
    nodes = {node.name: node for node in graph.nodes}
    closure = {name for name, node in nodes.items() if node.kind is NodeKind.TANGENT}
    starts = {NodeKind.PARAM, NodeKind.BUFFER, NodeKind.INPUT, NodeKind.SEED}
    for node in graph.nodes:
        if set(node.refs) & closure:
            closure.add(node.name)
    valid = {name for name, node in nodes.items() if node.kind in starts}
    for node in graph.nodes:
        if node.kind is NodeKind.OP and set(node.refs) <= valid:
            valid.add(node.name)
    needed = {out.name for out in graph.forward_outputs if isinstance(out, Ref)}
    needed |= {name for name, node in nodes.items() if node.kind in starts}
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed |= set(node.refs)
    backward = closure | {out.name for out in graph.backward_outputs if isinstance(out, Ref)}
    forward = needed & valid
    return {
        "required_forward": forward,
        "required_backward": backward,
        "tangents_closure": closure,
        "unclaimed": set(nodes) - forward - backward,
    }


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    graph = random_graph(seed)
    roles = classify(graph)
    expected = reference_roles(graph)
    assert {field: names(graph, getattr(roles, field)) for field in expected} == expected
    check_distances(graph, roles)


def check_distances(graph: JointGraph, roles: Roles) -> None:
    """Each distance is one more than the nearest reader's."""
    for position, node in enumerate(graph.nodes):
        readers = graph.users_of[position]
        if node.kind is NodeKind.OUTPUT:
            assert roles.dist_from_backward[position] == NEVER
        elif not roles.required_forward[position]:
            assert roles.dist_from_backward[position] == 0
        else:
            nearest = min([roles.dist_from_backward[reader] for reader in readers], default=NEVER)
            assert roles.dist_from_backward[position] == min(nearest + 1, NEVER)


def test_roles_are_frozen() -> None:
    roles = classify(two_matmuls())
    with pytest.raises(dataclasses.FrozenInstanceError):
        roles.unclaimed = ()  # type: ignore[misc]

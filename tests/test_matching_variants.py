"""Pairings of a transformer's step with variants of it, against the truth: every pair that there is, and no other."""

from __future__ import annotations

from collections import Counter

import pytest
from builders import GraphBuilder
from graph_edits import by_name, edit_cost, score, scrambled
from small_transformer import Variant, transformer

from aotcli.analysis.matching import match_graphs
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.pairing import Match, Pairing

LAYERS = tuple(range(12))
ONE_LAYER_LESS = (0, 1, 2, *range(4, 12))
FLAT = pytest.mark.parametrize("flat", [False, True], ids=["modules", "no modules"])


def gone(graph: JointGraph, pairing: Pairing) -> list[str]:
    return [node.name for node, partner in zip(graph.nodes, pairing.right_of, strict=True) if partner < 0]


def layers_of(names: list[str]) -> Counter[str]:
    return Counter(name.split(".")[1] if name.startswith("h.") else name for name in names)


@FLAT
@pytest.mark.parametrize(
    "change",
    [
        {"inserted": "aten.clone.default"},
        {"attention": "by hand"},
        {"norm": "by hand"},
        {"activation": "silu"},
        {"dtype": "bfloat16"},
        {"batch": 5},
        {"prefix": "wrapper.model."},
        {"inserted": "aten._to_copy.default", "dtype": "bfloat16"},
        {"attention": "by hand", "batch": 3},
        {"attention": "by hand", "prefix": "model."},
        {"inserted": "aten.clone.default", "prefix": "model."},
        {"attention": "by hand", "norm": "by hand", "activation": "silu", "dtype": "bfloat16", "batch": 4},
    ],
    ids=lambda change: ", ".join(f"{key} {value}" for key, value in change.items()),
)
def test_finds_every_pair_and_no_other_in_both_directions(change: dict[str, object], flat: bool):
    left = transformer(Variant(flat=flat))
    right = transformer(Variant(flat=flat, **change))  # type: ignore[arg-type]
    for first, second in ((left, right), (right, left)):
        edited = by_name(first, second).then(lambda graph: scrambled(graph, seed=1))
        found = score(match_graphs(first, edited.graph), edited.truth)
        assert (found.right, found.found) == (found.true, found.true)


def test_the_same_graph_is_exact_throughout():
    graph = transformer()
    edited = scrambled(graph)
    pairing = match_graphs(graph, edited.graph)
    assert pairing.right_of == edited.truth
    assert set(pairing.match) == {Match.EXACT}


def test_a_new_dtype_leaves_all_pairs_exact():
    pairing = match_graphs(transformer(), transformer(Variant(dtype="bfloat16")))
    assert set(pairing.match) == {Match.EXACT}


def test_an_op_in_every_layer_is_all_that_has_no_partner():
    right = transformer(Variant(inserted="aten.clone.default"))
    pairing = match_graphs(right, transformer())
    new = [node.target for node, partner in zip(right.nodes, pairing.right_of, strict=True) if partner < 0]
    assert new == ["aten.clone.default"] * 24  # one in the forward and one in the backward of each layer


def test_another_activation_is_a_changed_op_and_nothing_else():
    left = transformer()
    pairing = match_graphs(left, transformer(Variant(activation="silu")))
    changed = [node.target for node, match in zip(left.nodes, pairing.match, strict=True) if match is Match.CHANGED]
    assert Counter(changed) == {"aten.gelu.default": 12, "aten.gelu_backward.default": 12}
    assert None not in pairing.match


def test_one_op_for_five_leaves_the_one_and_the_five_without_partners():
    left, right = transformer(), transformer(Variant(norm="by hand"))
    pairing = match_graphs(left, right)
    assert {name.rpartition(".")[2] for name in gone(left, pairing)} == {"norm", "y", "mean", "rstd"}
    new = Counter(name.rpartition(".")[2] for name in gone(right, pairing.mirrored()))
    assert new == dict.fromkeys(["mean5", "rstd5", "sub5", "scaled5", "affine5"], 25)


@FLAT
def test_a_layer_that_is_gone_is_gone_alone_whatever_the_others_are_called(flat: bool):
    left = transformer(Variant(flat=flat))
    size = sum(node.name.startswith("h.3.") for node in left.nodes)
    for prefix in ("", "model."):
        right = transformer(Variant(layers=ONE_LAYER_LESS, renumbered=True, flat=flat, prefix=prefix))
        edited = by_name(left, right).then(scrambled)
        pairing = match_graphs(left, edited.graph)
        names = gone(left, pairing)
        assert len(set(layers_of(names))) == 1
        assert len(names) == size
        assert -1 not in pairing.left_of
        # Twelve equal layers: to call another one the missing one is as true, if it takes no more edits.
        assert edit_cost(left, edited.graph, pairing.right_of) <= edit_cost(left, edited.graph, edited.truth)


def test_a_layer_that_is_gone_is_found_by_its_name():
    left = transformer()
    edited = by_name(left, transformer(Variant(layers=ONE_LAYER_LESS))).then(scrambled)
    assert match_graphs(left, edited.graph).right_of == edited.truth


def test_a_layer_that_is_new_is_new_alone():
    left, right = transformer(Variant(layers=ONE_LAYER_LESS)), transformer()
    pairing = match_graphs(left, right)
    assert gone(left, pairing) == []
    assert set(layers_of(gone(right, pairing.mirrored()))) == {"3"}


def test_a_layer_less_and_other_ops_in_all_the_others():
    left = transformer()
    right = transformer(Variant(layers=LAYERS[:-1], activation="silu", dtype="bfloat16"))
    edited = by_name(left, right).then(scrambled)
    pairing = match_graphs(left, edited.graph)
    assert pairing.right_of == edited.truth
    assert set(layers_of(gone(left, pairing))) == {"11"}


def twins(count: int, *, broken: bool = False) -> JointGraph:
    """Branches that nothing tells apart, of two ops each, summed; the last may have another second op."""
    g = GraphBuilder()
    x = g.input("x", (4, 4))
    ends = []
    for branch in range(count):
        first = g.pointwise("aten.relu.default", x)
        other = broken and branch == count - 1
        ends.append(g.pointwise("aten.tanh.default" if other else "aten.exp.default", first))
    return g.build([g.op("aten.cat.default", ends, shape=(4 * count, 4))], fingerprinted=False)


def test_equals_are_paired_so_that_branches_stay_whole():
    left = twins(6)
    for seed in range(5):
        right = scrambled(left, seed).graph
        pairing = match_graphs(left, right)
        assert None not in pairing.match
        assert edit_cost(left, right, pairing.right_of) == 0


def test_of_equals_that_are_fewer_one_branch_is_left():
    left, right = twins(6), scrambled(twins(5)).graph
    pairing = match_graphs(left, right)
    assert [left.nodes[i].target for i, partner in enumerate(pairing.right_of) if partner < 0] == [
        "aten.relu.default",
        "aten.exp.default",
    ]
    # Those two, and the concatenation that reads one less.
    assert edit_cost(left, right, pairing.right_of) == 3


def test_of_equals_the_one_that_changed_is_the_one():
    left, right = twins(6), scrambled(twins(6, broken=True)).graph
    pairing = match_graphs(left, right)
    assert Counter(pairing.match)[Match.CHANGED] == 1
    assert edit_cost(left, right, pairing.right_of) == 1


def test_parameters_of_equal_shape_go_by_their_names():
    """Nothing but the name tells two unused parameters apart."""

    def graph(names: list[str]) -> JointGraph:
        g = GraphBuilder()
        for name in names:
            g.param(f"p{name}", (4, 4), origin=f"fc.{name}")
        x = g.input("x", (4, 4))
        return g.build([g.pointwise("aten.relu.default", x)], [None] * 4, fingerprinted=False)

    left, right = graph(["a", "b", "c"]), graph(["c", "a", "b"])
    pairing = match_graphs(left, right)
    params = [i for i, node in enumerate(left.nodes) if node.kind is NodeKind.PARAM]
    assert [left.nodes[i].origin for i in params] == [right.nodes[pairing.right_of[i]].origin for i in params]

"""Pairings of graphs with random edits of them: precision and recall against the truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from builders import layered
from graph_edits import (
    GETITEM,
    Edited,
    Score,
    bypassed,
    edit_cost,
    inserted,
    inserted_at_random,
    recast,
    replaced,
    score,
    scrambled,
    with_shuffled_modules,
    with_shuffled_primals,
)
from small_transformer import Variant, transformer

from aotcli.analysis.matching import match_graphs
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.pairing import Match

GRAPHS: dict[str, Callable[[], JointGraph]] = {
    "transformer": cache(transformer),
    "no modules": cache(lambda: transformer(Variant(flat=True))),
    "layered": cache(lambda: layered(12)),
}
SEEDS = range(2)
each_graph = pytest.mark.parametrize("name", GRAPHS)
each_seed = pytest.mark.parametrize("seed", SEEDS)


def found(graph: JointGraph, edited: Edited) -> Score:
    after = edited.then(scrambled)
    return score(match_graphs(graph, after.graph), after.truth)


@each_graph
@each_seed
def test_other_names_another_order_and_other_modules_are_no_difference(name: str, seed: int):
    graph = GRAPHS[name]()
    edits = [scrambled(graph, seed), with_shuffled_primals(graph, seed), with_shuffled_modules(graph, seed)]
    for edited in edits:
        after = edited.then(lambda g: scrambled(g, seed))
        pairing = match_graphs(graph, after.graph)
        assert set(pairing.match) <= {Match.EXACT, Match.WIRED}
        assert edit_cost(graph, after.graph, pairing.right_of) == 0


@each_graph
@each_seed
@pytest.mark.parametrize("share", [0.01, 0.1])
def test_finds_ops_that_were_inserted(name: str, seed: int, share: float):
    graph = GRAPHS[name]()
    result = found(graph, inserted_at_random(graph, share, seed))
    assert (result.right, result.found) == (result.true, result.true)


@each_graph
@each_seed
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_an_op_that_was_replaced_is_still_the_same_node(name: str, seed: int, share: float):
    graph = GRAPHS[name]()
    edited = replaced(graph, share, seed)
    result = found(graph, edited)
    assert result.precision >= 0.98
    assert result.recall >= 0.98
    pairing = match_graphs(graph, edited.graph)
    changed = sum(a.target != b.target for a, b in zip(graph.nodes, edited.graph.nodes, strict=True))
    assert pairing.match.count(Match.CHANGED) >= 0.95 * changed


@each_graph
@each_seed
def test_an_op_that_was_replaced_by_one_that_is_in_the_graph_too(name: str, seed: int):
    graph = GRAPHS[name]()
    targets = sorted({node.target for node in graph.nodes if node.kind is NodeKind.OP and node.target != GETITEM})
    result = found(graph, replaced(graph, 0.1, seed, targets))
    assert result.precision >= 0.98
    assert result.recall >= 0.98


@each_graph
def test_another_dtype_throughout_pairs_everything(name: str):
    graph = GRAPHS[name]()
    edited = recast(graph, "bfloat16").then(scrambled)
    pairing = match_graphs(graph, edited.graph)
    assert pairing.right_of == edited.truth
    assert set(pairing.match) == {Match.EXACT}


@each_graph
@each_seed
def test_ops_that_are_gone(name: str, seed: int):
    graph = GRAPHS[name]()
    result = found(graph, bypassed(graph, 0.05, seed))
    assert result.precision >= 0.98
    assert result.recall >= 0.98


@each_graph
@each_seed
def test_all_of_that_together(name: str, seed: int):
    graph = GRAPHS[name]()
    edited = recast(graph, "bfloat16").then(lambda g: inserted_at_random(g, 0.03, seed))
    edited = edited.then(lambda g: replaced(g, 0.05, seed)).then(lambda g: bypassed(g, 0.03, seed))
    result = found(graph, edited)
    assert result.precision >= 0.97
    assert result.recall >= 0.97


@each_seed
def test_modules_whose_names_lie_do_not_mislead(seed: int):
    graph = GRAPHS["transformer"]()
    edited = with_shuffled_modules(graph, seed).then(lambda g: inserted_at_random(g, 0.01, seed))
    result = found(graph, edited)
    assert (result.right, result.found) == (result.true, result.true)


def test_one_more_of_the_same_op_costs_one_node():
    """Two equal ops in a row: either may be called the new one."""
    graph = layered(3)
    gelus = {node.name for node in graph.nodes if node.target == "aten.gelu.default"}
    edited = inserted(graph, gelus, "aten.gelu.default").then(scrambled)
    pairing = match_graphs(graph, edited.graph)
    assert -1 not in pairing.right_of
    assert edit_cost(graph, edited.graph, pairing.right_of) <= edit_cost(graph, edited.graph, edited.truth)

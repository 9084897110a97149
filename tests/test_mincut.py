"""The min-cut heuristic on small records: what it saves, why, and what a reason is worth."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest
from builders import GraphBuilder, layered, random_graph, two_matmuls

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic, Rule
from aotcli.analysis.roles import classify
from aotcli.errors import PlanImpossibleError, StrategyError
from aotcli.ir.joint import JointGraph, Ref, Tag
from aotcli.ir.partition import Decision, SavedKind
from aotcli.ir.tensor import SymbolSpec
from aotcli.strategies import load_strategy
from aotcli.strategies.mincut import MinCut

PLAIN = Heuristic()


def saved(decision: Decision) -> dict[str, tuple[str, str]]:
    return {name: (reason.rule, reason.text) for name, reason in decision.saved}


def test_two_matmuls() -> None:
    decision = decide(two_matmuls(), PLAIN)
    assert saved(decision) == {
        "primals_2": ("primal", "parameter"),
        "relu": ("materialized in backward", "feeds bwd matmul"),
        "t_2": ("cut", "view of input"),  # lighter than the input itself, which is farther from the backward
    }
    assert decision.bans == {
        "primals_1": "primal",
        "primals_2": "primal",
        "primals_3": "primal",
        "mm": "compute intensive",
        "mm_1": "compute intensive",
        "relu": "materialized in backward",
    }
    # relu is one edge from the backward, and read by an op that cannot fuse it: its bytes times 1.1.
    assert decision.weights["relu"] == int(2 * 16 * 4 * 1.1)
    assert decision.weights["primals_1"] == 0
    assert decision.cut_value == decision.weights["relu"] + decision.weights["t_2"]


def test_weights_grow_with_distance_and_double_for_what_is_never_materialized() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 8)), g.tangent(shape=(4, 8))
    chain = [g.pointwise("aten.sin.default", x)]
    for _ in range(120):
        chain.append(g.pointwise("aten.sin.default", chain[-1]))
    gx = g.pointwise("aten.mul.Tensor", t, chain[-1])
    weights = decide(g.build([chain[-1]], [gx]), PLAIN, cse=False).weights
    assert weights[chain[-1].name] == int(128 * 1.1)  # the output reads it: materialized
    for back, name in enumerate([ref.name for ref in reversed(chain[:-1])]):
        assert weights[name] == int(128 * 1.1 ** min(back + 2, 100)) * 2
    assert weights["x"] == int(128 * 1.1**100)


def test_a_chain_is_saved_where_it_is_smallest() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 64)), g.tangent(shape=(4, 64))
    small = g.pointwise("aten.cos.default", x, dtype="bool", shape=(4, 64))
    wide = g.pointwise("aten.sin.default", small, shape=(4, 64), dtype="float32")
    gx = g.pointwise("aten.mul.Tensor", t, wide)
    decision = decide(g.build([g.pointwise("aten.neg.default", wide)], [gx]), PLAIN)
    assert saved(decision) == {small.name: ("cut", "cut: min bytes")}


def test_of_equally_heavy_values_the_one_nearest_the_backward_is_saved() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 64)), g.tangent(shape=(4, 64))
    # Nothing weighs more for being one edge farther when sizes are this small: int(1 x 1.1) is int(1 x 1.21).
    first = g.op("aten.sum.default", x, shape=(), dtype="bool", tags={Tag.RECOMPUTABLE})
    second = g.op("aten.isnan.default", first, shape=(), dtype="bool", tags={Tag.RECOMPUTABLE})
    y = g.op("aten.mul.Tensor", x, second, shape=(4, 64), tags={Tag.RECOMPUTABLE})
    gx = g.op("aten.mul.Tensor", t, second, shape=(4, 64), tags={Tag.RECOMPUTABLE, Tag.FUSIBLE})
    graph = g.build([y], [gx])
    without = [(first.name, Rule.REDUCTION), (second.name, Rule.MATERIALIZED), (first.name, Rule.MATERIALIZED)]
    decision = decide(graph, PLAIN, ignored=without)
    assert decision.weights[first.name] == decision.weights[second.name] == 1
    assert list(saved(decision)) == [second.name]


def test_parts_of_a_tuple_are_saved_for_the_tuples_reason() -> None:
    g = GraphBuilder()
    q, t = g.input("q", (4, 8)), g.tangent(shape=(4, 8))
    both = g.op("aten._scaled_dot_product_flash_attention.default", q, q, q, shapes=[(4, 8), (4, 1)], tags={Tag.RANDOM})
    out, lse = g.getitem(both, 0), g.getitem(both, 1)
    view = g.view(out, (8, 4))
    gq = g.op("aten._scaled_dot_product_flash_attention_backward.default", t, view, lse, shape=(4, 8))
    decision = decide(g.build([view], [gq]), PLAIN)
    reasons = saved(decision)
    assert set(reasons) <= {out.name, view.name, lse.name}
    assert set(reasons.values()) == {("random", "attention")}
    assert both.name not in decision.weights


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("aten.bmm.default", "matmul"),
        ("aten.convolution.default", "convolution"),
        ("higher_order.flex_attention", "attention"),
        ("aten.cumsum.default", "not recomputable"),
    ],
)
def test_what_an_unlisted_op_is_called(target: str, text: str) -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 64)), g.tangent(shape=(4, 64))
    y = g.op(target, x, shape=(4, 64))
    decision = decide(g.build([y], [g.pointwise("aten.mul.Tensor", t, y)]), PLAIN)
    assert saved(decision)[y.name] == ("allowlist", text)


def test_a_gradient_that_the_backward_returns_as_it_is() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    sign = g.pointwise("aten.sign.default", x, dtype="bool", shape=(4,))
    decision = decide(g.build([g.pointwise("aten.neg.default", x)], [sign, t]), PLAIN)
    assert saved(decision) == {sign.name: ("needed by backward", "returned by backward")}
    y = g.pointwise("aten.neg.default", sign)
    decision = decide(g.build([y], [sign, t]), PLAIN)
    assert saved(decision) == {sign.name: ("materialized in backward", "is a gradient")}


def symbolic_graph() -> JointGraph:
    g = GraphBuilder()
    s = g.symint("s0", hint=8)
    x, t = g.input("x", ("s0", 4)), g.tangent(shape=("s0", 4))
    double = g.op("operator.mul", s, 2, value=SymbolSpec("int", "2*s0", 16), tags={Tag.RECOMPUTABLE, Tag.FUSIBLE})
    ratio = g.op("torch.sym_float", s, value=SymbolSpec("float", "s0", 8.0), tags={Tag.RECOMPUTABLE, Tag.FUSIBLE})
    small = g.op("operator.lt", s, 4, value=SymbolSpec("bool", "s0 < 4", False), tags={Tag.RECOMPUTABLE, Tag.FUSIBLE})
    y = g.pointwise("aten.mul.Tensor", x, ratio)
    gx = g.op("aten.expand.default", t, [double, ratio, small], shape=("s0", 4))
    return g.build([y], [None, gx])


def test_symbols_weigh_one_and_floats_four() -> None:
    decision = decide(symbolic_graph(), PLAIN)
    weights = decision.weights
    assert (weights["s0_in"], weights["mul"], weights["sym_float"], weights["lt"]) == (1, 1, 4, 1)
    assert "sym_float" not in decision.bans
    assert decision.cut_value == 1
    assert saved(decision) == {"s0_in": ("primal", "symbolic size")}
    kinds = {value.name: value.kind for value in MinCut().plan(symbolic_graph()).saved}
    assert kinds["s0_in"] is SavedKind.SYMINT


def test_a_symbolic_bool_that_only_checks_read_is_not_saved() -> None:
    g = GraphBuilder()
    s = g.symint("u0", hint=8)
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    unlisted = g.op("custom.positive.default", s, value=SymbolSpec("bool", "u0 > 0", True))
    g.op("aten._assert_scalar.default", unlisted, "positive", tags={Tag.IMPURE, Tag.EFFECTFUL}, backward=True,
         partitioner_tag="must_be_in_backward")  # fmt: skip
    y = g.pointwise("aten.neg.default", x)
    decision = decide(g.build([y], [None, t]), PLAIN)
    assert unlisted.name in decision.weights
    assert unlisted.name not in saved(decision)


def test_opaque_values_are_free() -> None:
    g = GraphBuilder()
    state, x, t = g.opaque("state", "backward_state"), g.input("x", (4,)), g.tangent(shape=(4,))
    y = g.pointwise("aten.neg.default", x)
    gx = g.op("custom.hook.default", t, state, shape=(4,))
    decision = decide(g.build([y], [None, gx]), PLAIN)
    assert decision.cut_value == 0
    assert saved(decision) == {"state": ("primal", "backward state")}


def test_a_nested_graph_cannot_be_saved() -> None:
    inner = GraphBuilder()
    nested = inner.build([inner.input("a", (4,))])
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    body = g.subgraph("body", nested)
    y = g.op("higher_order.invoke_subgraph", body, x, shape=(4,))
    gx = g.op("higher_order.invoke_subgraph", body, t, shape=(4,))
    decision = decide(g.build([y], [gx]), PLAIN)
    assert body.name not in decision.weights
    assert decision.saved == ()


def test_without_a_backward_nothing_is_saved() -> None:
    g = GraphBuilder()
    x = g.input("x", (4,))
    decision = decide(g.build([g.pointwise("aten.neg.default", x)]), PLAIN)
    assert decision.saved == ()
    assert decision.cut_value is None


def test_a_budget_that_is_not_followed_is_mentioned() -> None:
    graph = two_matmuls()
    nodes = tuple(dataclasses.replace(node, region_budget=0.5) for node in graph.nodes)
    assert decide(dataclasses.replace(graph, nodes=nodes), PLAIN).notes == (
        "an activation memory budget of 0.5 is set on this region; mincut has none",
    )
    assert decide(graph, PLAIN).notes == ()


def test_names_of_removed_and_merged_nodes_are_reported() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    a, b = (g.pointwise("aten.sin.default", x) for _ in range(2))
    dead = g.pointwise("aten.cos.default", x)
    y = g.pointwise("aten.neg.default", a)
    graph = g.build([y], [g.pointwise("aten.mul.Tensor", t, b)])
    decision = decide(graph, PLAIN)
    assert decision.replaced == {b.name: a.name}
    assert decision.removed == {dead.name}
    assert decide(graph, PLAIN, cse=False).replaced == {}


@pytest.mark.parametrize("graph", [two_matmuls(), layered(3), *(random_graph(seed) for seed in range(25))])
def test_the_backward_can_be_computed_from_what_is_saved(graph: JointGraph) -> None:
    """Walk back from the backward: every path ends at a saved value before it meets a banned node."""
    decision = decide(graph, PLAIN)
    reduced = eliminate_common(eliminate_dead(graph)[0])[0]
    roles = classify(reduced)
    kept = {name for name, _ in decision.saved}
    pending = [i for i in range(len(reduced.nodes)) if roles.tangents_closure[i]]
    pending += [reduced.index[out.name] for out in reduced.backward_outputs if isinstance(out, Ref)]
    seen: set[int] = set()
    while pending:
        position = pending.pop()
        node = reduced.nodes[position]
        if position in seen or node.name in kept or node.name == "output":
            continue
        seen.add(position)
        assert node.name not in decision.bans or roles.tangents_closure[position]
        pending += reduced.inputs_of[position]
    assert decision.cut_value == sum(decision.weights[name] for name in kept)


@pytest.mark.parametrize("graph", [two_matmuls(), layered(3), *(random_graph(seed) for seed in range(25))])
def test_leaving_out_a_stated_reason_changes_the_decision(graph: JointGraph) -> None:
    decision = decide(graph, PLAIN)
    order = [graph.index[name] for name, _ in decision.saved]
    assert all(a < b for a, b in pairwise(order))
    for name, reason in decision.saved:
        changed = decide(graph, PLAIN, ignored=[(name, reason.rule)])
        if reason.rule in (Rule.CUT, Rule.NEEDED):
            assert name not in {each for each, _ in changed.saved}
            assert changed.cut_value >= decision.cut_value
        else:
            assert sum(rule == reason.rule for rule in changed.bans.values()) < list(decision.bans.values()).count(
                reason.rule
            )
            assert changed != decision


def test_leaving_out_every_reason_of_a_value_recomputes_it() -> None:
    without: list[tuple[str, str]] = []
    for _ in range(3):
        decision = decide(two_matmuls(), PLAIN, ignored=without)
        if "relu" not in decision.bans:
            break
        without.append(("relu", decision.bans["relu"]))
    assert without == [("relu", "materialized in backward")]
    # It may be recomputed now, but the matmul before it weighs more.
    assert saved(decision)["relu"] == ("cut", "cut: min bytes")
    decision = decide(two_matmuls(), PLAIN, ignored=[*without, ("relu", "cut")])
    assert "relu" not in saved(decision)
    assert saved(decision)["mm"] == ("compute intensive", "matmul")


def test_ties_and_order_do_not_depend_on_how_sets_iterate() -> None:
    graph = random_graph(5)
    assert len({repr(decide(dataclasses.replace(graph), PLAIN)) for _ in range(3)}) == 1


# Annotations that contradict each other.


def impossible_graph() -> JointGraph:
    g = GraphBuilder()
    x, t = g.input("x", (4, 8)), g.tangent(shape=(4, 8))
    pair = g.op("aten.topk.default", x, 2, shapes=[(4, 2), (4, 2)], checkpoint="MUST_SAVE", source="net.py:12")
    first = g.getitem(pair, 0, checkpoint="MUST_RECOMPUTE", source="net.py:13")
    gx = g.op("aten.mul.Tensor", t, first, shape=(4, 8))
    return g.build([g.pointwise("aten.neg.default", first)], [gx])


def test_an_impossible_pair_of_annotations_is_named() -> None:
    with pytest.raises(PlanImpossibleError) as raised:
        decide(impossible_graph(), PLAIN)
    error = raised.value
    assert error.exit_code == 1
    assert "topk (aten.topk.default at net.py:12)" in error.what
    assert "topk cannot be saved (it is a tuple)" in error.why
    assert "getitem must be recomputed (checkpoint policy MUST_RECOMPUTE)" in error.why
    assert "MUST_SAVE on topk (aten.topk.default at net.py:12)" in error.fix
    assert "MUST_RECOMPUTE on getitem (operator.getitem at net.py:13)" in error.fix


def test_a_value_that_was_excluded_from_saving_by_hand_is_named() -> None:
    with pytest.raises(PlanImpossibleError, match="relu") as raised:
        decide(two_matmuls(), PLAIN, ignored=[("relu", Rule.CUT)])
    assert "threshold_backward is computed in the backward from it" in raised.value.why


def test_an_unsaveable_result_of_the_backward_is_named() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent(shape=(4,))
    mask = g.pointwise("aten.sign.default", x, checkpoint="MUST_SAVE")
    graph = g.build([g.pointwise("aten.neg.default", mask)], [mask, t])
    with pytest.raises(PlanImpossibleError) as raised:
        decide(graph, PLAIN, ignored=[(mask.name, Rule.NEEDED)])
    assert "is returned by the backward" in raised.value.why


# The strategy.


def test_options_come_from_the_command_line() -> None:
    strategy = load_strategy("mincut", {"op-set": "nvfuser", "cse": "no", "max-distance": "7", "aggressive": "true"})
    assert strategy == MinCut(op_set="nvfuser", cse=False, max_distance=7, aggressive=True)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(StrategyError, match="max-distance is -1"):
        MinCut(max_distance=-1)
    with pytest.raises(StrategyError, match="op set 'tvm'"):
        decide(two_matmuls(), Heuristic(op_set="tvm"))
    with pytest.raises(StrategyError, match="not the name of an op"):
        decide(two_matmuls(), Heuristic(recomputable_ops="aten.mul,,x y"))


@pytest.mark.parametrize("seed", range(10))
def test_plans_of_random_graphs_are_verified(seed: int) -> None:
    partition = MinCut().plan(random_graph(seed))
    assert partition.strategy == "mincut"
    assert partition.cut_value is not None

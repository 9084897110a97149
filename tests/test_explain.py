"""Explanations: what a pattern means, who needs a value, what decided, what doing otherwise costs; all held against the
plan that they are about."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from builders import GraphBuilder, layered, random_graph, sample_trace, two_matmuls
from golden_text import check_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from test_mincut_bans import chains
from test_policy import norm_graph

import aotcli
from aotcli.analysis.explain_find import find
from aotcli.analysis.explain_region import PlannedRegion, is_free
from aotcli.analysis.explain_rules import _materialized, evidence, rule_facts
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.mincut_weights import MAX_EXPONENT
from aotcli.analysis.wishes import made_values
from aotcli.api.explain import ExplanationResult, explain
from aotcli.errors import InputError, PlanImpossibleError
from aotcli.ir.difference import Fate
from aotcli.ir.explanation import Explanation, Quantity, SourceKind
from aotcli.ir.joint import JointGraph, Tag
from aotcli.ir.partition import Partition
from aotcli.ir.policy import Action, PolicyRule
from aotcli.render.explain_words import fact_text
from aotcli.render.page import Page
from aotcli.strategies import load_strategy
from aotcli.strategies._replan import replan

FUSIBLE = {Tag.RECOMPUTABLE, Tag.FUSIBLE}
SHAPE = (8, 8)


def explained(graph: JointGraph, *args: Any, **options: Any) -> ExplanationResult:
    return explain(sample_trace(graph), *args, **{"top": 1000, **options})


def by_name(result: ExplanationResult) -> dict[str, Explanation]:
    return {name: each for each in result.explanations for name in each.names}


# What a pattern means.


def blocks() -> JointGraph:
    return layered(3)


def meant(graph: JointGraph, pattern: str) -> list[str]:
    """Names of the makers that a pattern means, as a wish would have them."""
    from aotcli.analysis.wishes import match_rules

    found = match_rules(graph, find([graph], pattern).rules)
    return [graph.nodes[maker].name for maker in sorted(m for own in found.makers for m in own)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("mm_1", ["mm_1"]),  # a node, though an op is called mm as well
        ("h.1", ["mm_1", "gelu_1", "add_1"]),  # a module with what lies inside
        ("h.*.fc", ["mm", "mm_1", "mm_2"]),
        ("h.1.gelu", ["gelu_1"]),  # an op of the module itself
        ("h.1.mm", ["mm_1"]),  # or, where it has none such, of what lies inside
        ("**.gelu", ["gelu", "gelu_1", "gelu_2"]),
        ("aten.gelu*", ["gelu", "gelu_1", "gelu_2"]),
        ("gelu_*", ["gelu_1", "gelu_2"]),
        ("net.py:7", ["mm", "mm_1", "mm_2"]),
        ("h.1@512B", ["mm_1", "gelu_1", "add_1"]),
        ("h.*.gelu@>1B", ["gelu", "gelu_1", "gelu_2"]),
        ("region0:h.0.fc", ["mm"]),
        (" h.0.fc ", ["mm"]),
    ],
)
def test_what_patterns_mean(pattern: str, names: list[str]) -> None:
    assert meant(blocks(), pattern) == names


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("h.1.fcc", "h.1.fc"),
        ("gellu", "gelu"),
        ("h.9", "near are h.2"),
        ("net.py:77", "net.py:7"),
        ("h.0.fc.wieght", "h.0.fc.weight"),
        ("h.*@>1GiB", "near are h.*"),
        ("", "`aotcli partition`"),
        ("region7:mm", "`aotcli partition`"),
    ],
)
def test_a_pattern_that_matches_nothing_says_what_is_near(pattern: str, near: str) -> None:
    with pytest.raises(InputError, match="matches nothing") as caught:
        find([blocks()], pattern)
    assert near in caught.value.fix
    assert not pattern or "modules are h.*.fc, h.*" in caught.value.why or pattern == "region7:mm"


def test_names_that_several_regions_have_are_all_shown_and_told_apart() -> None:
    trace = sample_trace(two_matmuls(), dataclasses.replace(two_matmuls(), name="region1"))
    both = explain(trace, "relu")
    assert [each.region for each in both.explanations] == ["region0", "region1"]
    assert "Several regions have a relu: region1:relu means that one alone" in both.text()
    assert "relu of act: saved, 128 B, 50.0 % of all (region1)" in both.text()
    (one,) = explain(trace, "region1:relu").explanations
    assert one.region == "region1"
    with pytest.raises(InputError, match="names a region") as caught:
        explain(trace, recompute=["region1:relu"])
    assert caught.value.fix == "--recompute relu"


def test_an_empty_graph_has_nothing_to_explain() -> None:
    for trace in (sample_trace(regions=()), sample_trace(GraphBuilder().build([]))):
        result = explain(trace)
        assert result.explanations == ()
        assert "nothing" in result.text().lower()
        assert json.loads(result.json())["explanations"] == []
        assert "nothing" in result.markdown()
        with pytest.raises(InputError, match="matches nothing"):
            explain(trace, "h.0")


# What becomes of values.


def test_every_kind_of_value_says_what_becomes_of_it() -> None:
    graph = norm_graph()
    result = explain(sample_trace(graph), "h.0.ln")
    assert {each.place.name: each.fate for each in result.explanations} == {"out": Fate.SAVED, "mean": Fate.SAVED}
    fates = {name: explain(sample_trace(graph), name).explanations[0].fate for name in ("w", "x", "t", "gw", "norm")}
    assert fates["w"] is Fate.FORWARD
    assert fates["t"] is Fate.BACKWARD
    assert fates["gw"] is Fate.BACKWARD
    kept = explain(sample_trace(two_matmuls()), "fc2.weight").explanations[0]
    assert kept.fate is Fate.KEPT
    assert kept.notes == ("a parameter: in memory anyway",)
    assert [reader.place.name for reader in kept.readers] == ["mm_3"]


def test_a_value_that_the_backward_does_without_says_what_it_gets_instead() -> None:
    (hidden,) = explain(sample_trace(two_matmuls()), "mm").explanations
    assert hidden.fate is Fate.FORWARD
    assert [place.name for place in hidden.leads_to] == ["relu"]
    text = explain(sample_trace(two_matmuls()), "mm").text(Page(200))
    assert "the backward does not read it; it gets relu of act (relu), computed from it" in text


def test_merged_and_dead_values() -> None:
    g = GraphBuilder()
    x, w, t = g.input("x", (4, 4)), g.param("w", (4, 4)), g.tangent("t", (4, 4))
    first, second = (g.matmul(x, w, (4, 4), name=name) for name in ("first", "second"))
    g.pointwise("aten.neg.default", x, name="dead")
    grads = [g.pointwise("aten.mul.Tensor", t, value) for value in (first, second)]
    trace = sample_trace(g.build([g.pointwise("aten.add.Tensor", first, second)], grads))
    assert explain(trace, "second").explanations[0].names == ("first",)
    assert explain(trace, "dead").explanations[0].fate is Fate.UNUSED


def test_repeated_layers_are_one_explanation() -> None:
    result = explained(layered(12))
    (gelu_input,) = [each for each in result.explanations if each.place.what == "mm"]
    assert (gelu_input.count, gelu_input.modules, gelu_input.total_bytes) == (12, "h.*.fc", 12 * 512)
    assert explain(sample_trace(layered(12)), top=1).hidden == len(result.explanations) - 1


# What is said is so.


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_explanations_of_random_graphs_agree_with_the_plan(seed: int) -> None:
    graph = random_graph(seed)
    trace = sample_trace(graph)
    try:
        result = explain(trace, "**", top=1000)
    except PlanImpossibleError:
        return
    (partition,) = result.plan.partitions
    recomputed, saved = set(partition.recomputed), {value.name: value for value in partition.saved}
    region = PlannedRegion(graph, partition)
    for each in result.explanations:
        for name in each.saved_as:
            assert saved[name].reason == each.reason
        for reader in each.readers:
            assert reader.place.name in partition.backward_nodes or reader.place.name in region.gradients
            assert reader.place.name not in recomputed
            assert all(is_free(graph[via.name]) or via.name in recomputed for via in reader.via)
        if each.weight is not None and each.weight.weight is not None:
            check_weight(each, partition)
        if each.fate is Fate.RECOMPUTED:
            check_chain(each, graph, partition)


def check_weight(each: Explanation, partition: Partition) -> None:
    weight = each.weight
    assert weight is not None
    assert weight.exponent == max(1, min(weight.distance, MAX_EXPONENT))
    expected = int(weight.nbytes * 1.1**weight.exponent) * (2 if weight.doubled else 1)
    assert partition.weights[each.saved_as[0]] == weight.weight == (0 if weight.free else expected)


def check_chain(each: Explanation, graph: JointGraph, partition: Partition) -> None:
    """All that runs again is there, runs on what is there, and what it starts from is saved or is there anyway."""
    chain = each.chain
    assert chain is not None
    names = [place.name for place in chain.ops]
    assert set(names) <= set(partition.recomputed)
    assert chain.flops == sum(graph[name].flops or 0 for name in names)
    order = {name: place for place, name in enumerate(partition.backward_nodes)}
    assert names == sorted(names, key=order.__getitem__)
    for source in chain.sources:
        assert source.kind is not SourceKind.SAVED or source.reason
        assert source.place.name not in names


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_annotation_that_is_printed_turns_the_decision_round(seed: int) -> None:
    """Written into a policy file, read again and planned: the values are treated otherwise, and bytes, FLOPs and peak
    are those that the explanation promised."""
    graph = random_graph(seed)
    trace = sample_trace(graph)
    try:
        result = explain(trace, "**", top=1000)
    except PlanImpossibleError:
        return
    for each in result.explanations:
        if each.flip is None or each.flip.change is None:
            continue
        wish = {"recompute" if each.fate is Fate.SAVED else "save": each.flip.patterns}
        change = explain(trace, **wish).change
        assert change == each.flip.change
        partition = planned_from_file(explain(trace, **wish).policy_text(), graph)
        assert partition.saved_bytes == change.after.saved_bytes
        assert partition.recompute_flops == change.after.recompute_flops
        assert partition.peak_bytes == change.after.peak_bytes
        flipped = PlannedRegion(graph, partition)
        makers = {graph.nodes[made.maker].name: made for made in made_values(graph)}
        assert all(flipped.fate(makers[name]) is not each.fate for name in each.names)


def planned_from_file(text: str, graph: JointGraph) -> Partition:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.toml"
        path.write_text(text, encoding="utf-8")
        return load_strategy(f"policy:{path}").plan(graph)


def test_the_annotation_means_these_values_and_no_other_saved_ones() -> None:
    result = explained(layered(12))
    patterns = {each.place.what: each.flip.patterns for each in result.explanations if each.flip is not None}
    assert patterns["mm"] == ("h.*.fc",)
    assert all(len(each) == 1 for each in patterns.values()), "one pattern for twelve layers"
    one = explain(sample_trace(layered(12)), "h.3.fc").explanations[0]
    assert one.flip is not None
    assert one.flip.patterns == ("h.3.fc",)


def test_what_cannot_be_turned_round_says_why() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent("t", (4, 4))
    drawn = g.op("aten.bernoulli.p", x, 0.5, shape=(4, 4), tags={Tag.RANDOM}, kwargs={"generator": 1}, name="drawn")
    y = g.pointwise("aten.neg.default", drawn)
    graph = g.build([y], [g.pointwise("aten.mul.Tensor", t, drawn)])
    for strategy in ("mincut", "save-all"):
        (each,) = explained(graph, strategy=strategy).explanations
        assert each.flip is not None
        assert each.flip.change is None
        assert "may not run again (random)" in each.flip.obstacle
        assert "not possible: " in explained(graph, strategy=strategy).text()


# Each rule with what it looked at.


class Step:
    """x → value → y with a backward that reads `value`."""

    def __init__(self) -> None:
        self.g = GraphBuilder()
        self.x = self.g.input("x", SHAPE)
        self.t = self.g.tangent(shape=SHAPE)

    def explained(self, value: Any, reader: str = "aten.mul.Tensor", **options: Any) -> Explanation:
        y = self.g.pointwise("aten.neg.default", value, shape=SHAPE)
        gx = self.g.op(reader, self.t, value, shape=SHAPE, tags=FUSIBLE if reader == "aten.mul.Tensor" else set())
        return by_name(explained(self.g.build([y], [gx]), options=options))[value.name]


@pytest.fixture
def step() -> Step:
    return Step()


def amounts(each: Explanation) -> list[tuple[int, Quantity]]:
    return [(amount.value, amount.quantity) for fact in each.facts for amount in fact.amounts]


def sentence(each: Explanation) -> str:
    return "; ".join(fact_text(fact) for fact in each.facts)


def test_facts_of_a_compute_intensive_op(step: Step) -> None:
    each = step.explained(step.g.matmul(step.x, step.g.param("w", SHAPE), SHAPE, name="value"))
    assert each.reason is not None
    assert each.reason.rule == "compute intensive"
    assert amounts(each) == [(1024, Quantity.FLOPS)]
    assert sentence(each) == "aten.mm is on the list of compute-intensive ops; running it costs 1.02 kFLOP"
    assert each.without_rule == "saved all the same (materialized in backward)"


def test_facts_of_an_op_that_is_not_listed(step: Step) -> None:
    each = step.explained(step.g.op("aten.cumsum.default", step.x, 1, shape=SHAPE, name="value"))
    assert sentence(each) == "aten.cumsum is not among the ops that may be recomputed"


def test_facts_of_a_value_that_exists_in_the_backward_anyway(step: Step) -> None:
    each = step.explained(step.g.pointwise("aten.relu.default", step.x, name="value"), reader="aten.mm.default")
    assert sentence(each) == "the backward's mm reads it and cannot fuse with what makes it"
    assert each.readers[0].place.name == "mm"
    assert each.readers[0].gradient_of == "x"


def test_facts_of_a_reduction(step: Step) -> None:
    wide = step.g.matmul(step.x, step.g.param("w", (8, 64)), (8, 64))
    step.g.op("aten.sum.dim_IntList", wide, [1], shape=(8, 1), tags=FUSIBLE, name="sum")
    reduced = step.g.pointwise("aten.amax.default", wide, shape=(8, 8), name="value")
    each = step.explained(reduced)
    assert each.reason is not None
    assert each.reason.rule == "reduction"
    (read, _), (made, _) = amounts(each)
    assert (read, made) == (2048, 256)
    assert made * 4 < read


def test_facts_of_distance(step: Step) -> None:
    value = step.g.pointwise("aten.relu.default", step.x, name="value")
    each = step.explained(value, max_distance=0)
    assert each.reason is not None
    assert each.reason.rule == "distance"
    assert sentence(each) == "its distance from the backward is 1 ops, and the limit 0"


def test_facts_of_a_checkpoint_policy(step: Step) -> None:
    each = step.explained(step.g.pointwise("aten.relu.default", step.x, name="value", checkpoint="MUST_SAVE"))
    assert sentence(each) == "checkpoint policy asks for it"
    assert each.without_rule


def test_facts_of_an_input_that_is_changed() -> None:
    g = GraphBuilder()
    x, t = g.input("x", SHAPE), g.tangent("t", SHAPE)
    scale = g.buffer("scale", SHAPE, mutated=True)
    doubled = g.pointwise("aten.mul.Tensor", scale, 2, name="doubled")
    y = g.pointwise("aten.mul.Tensor", x, doubled, name="y")
    changed = g.pointwise("aten.mul.Tensor", scale, 0.5, name="changed")
    graph = g.build([changed, y], [g.pointwise("aten.mul.Tensor", t, doubled), None])
    each = by_name(explained(graph))["doubled"]
    assert sentence(each) == "it reads scale, which the step changes in place afterwards"
    assert each.flip is not None
    assert "doubled may not run again (reads scale, changed in place)" in each.flip.obstacle


def test_braces_in_names_are_words_and_no_amounts() -> None:
    g = GraphBuilder()
    x, t = g.input("x", SHAPE), g.tangent("t", SHAPE)
    value = g.matmul(x, g.param("w", SHAPE), SHAPE, name="value", module="odd{0}name")
    wide = g.view(value, (64,), name="{}")
    y = g.pointwise("aten.neg.default", value)
    graph = g.build([y], [g.op("aten.mm.default", wide, t, shape=SHAPE, module="odd{0}name")])
    (each,) = explained(graph).explanations
    assert each.place.module == "odd{0}name"
    found = evidence(graph, Heuristic(), cse=True)
    assert found is not None
    (fact,) = _materialized(found.problem, graph.index["value"])
    assert (
        fact_text(fact)
        == "the backward's mm of odd{0}name reads it as {} and cannot fuse with what makes it, nor can 1 more"
    )


def test_a_cut_says_that_no_rule_decided(step: Step) -> None:
    """A mask weighs a fourth of what it is made from, and either will do for the backward."""
    wide = step.g.matmul(step.x, step.g.param("w", SHAPE), SHAPE)
    mask = step.g.pointwise("aten.le.Scalar", wide, 0, dtype="bool", name="mask")
    y = step.g.pointwise("aten.where.self", mask, 0, wide, shape=SHAPE)
    result = explained(step.g.build([y], [step.g.pointwise("aten.where.self", mask, 0, step.t, shape=SHAPE)]))
    (each,) = result.explanations
    assert each.place.name == "mask"
    assert each.reason is not None
    assert (each.reason.rule, each.facts, each.without_rule) == ("cut", (), "")
    assert each.flip is not None
    assert each.flip.change is not None
    (instead,) = each.flip.change.newly_saved
    assert instead.names == (wide.name,)
    assert each.flip.change.after.cut_value > each.flip.change.before.cut_value  # type: ignore[operator]
    text = result.text(Page(200))
    assert "cut: no rule bars it from running again" in text
    assert "instead  to be saved: mm, 256 B" in text
    assert "costs    192 B net" in text


def test_facts_of_a_value_that_is_read_far_apart() -> None:
    g = GraphBuilder()
    x, w, t = g.input("x", SHAPE), g.param("w", SHAPE), g.tangent("t", SHAPE)
    stream = g.pointwise("aten.sin.default", x, name="stream")
    near = g.pointwise("aten.cos.default", stream)
    far = g.pointwise("aten.add.Tensor", g.matmul(near, w, SHAPE), stream, name="far")
    grad = t
    for value in (stream, near, far):
        grad = g.pointwise("aten.mul.Tensor", grad, value)
    each = by_name(explained(g.build([g.pointwise("aten.neg.default", far)], [grad, None])))["far"]
    assert sentence(each) == "stream is read by cos, and here again after mm, which no kernel spans"


def test_facts_of_a_long_chain() -> None:
    graph, chain = chains(250)
    found = evidence(graph, Heuristic(), cse=False)
    assert found is not None
    banned = chain[101].name
    (fact,) = rule_facts(found, banned, banned)
    assert fact_text(fact) == "the chain of fusible ops that leads here is one op wide and more than 100 long"
    assert rule_facts(found, chain[100].name, chain[100].name) == ()


# Wishes.


def test_wishes_show_what_changes() -> None:
    result = explain(sample_trace(layered(4)), recompute=["h.*.fc"])
    change = result.change
    assert change is not None
    usual = aotcli.partition(sample_trace(layered(4)), alternatives=False)
    assert change.before.saved_bytes == usual.saved_bytes
    assert change.freed_bytes == usual.saved_bytes - result.plan.saved_bytes == 4 * 512
    (row,) = [row for row in change.rows if row.of_saved]
    assert (row.before, row.after, row.count, row.module) == (Fate.SAVED, Fate.RECOMPUTED, 4, "h.*.fc")
    assert result.explanations == (), "without a pattern the change is what was asked for"
    assert explain(sample_trace(layered(4)), "h.0.fc", recompute=["h.*.fc"]).explanations[0].fate is Fate.RECOMPUTED


@pytest.mark.parametrize("strategy", ["mincut", "save-all", "recompute-all", "budget:0.5"])
def test_wishes_hold_under_every_strategy(strategy: str) -> None:
    trace = sample_trace(layered(4))
    usual = explain(trace, "h.1.fc", strategy=strategy).explanations[0]
    wish = {"recompute": ["h.1.fc"]} if usual.fate is Fate.SAVED else {"save": ["h.1.fc"]}
    found = explain(trace, "h.1.fc", strategy=strategy, **wish).explanations[0]
    assert found.fate is not usual.fate
    assert usual.flip is not None
    assert usual.flip.change is not None
    text = explain(trace, "h.1.fc", strategy=strategy).text()
    assert (f"-s {strategy}" in text) is (strategy != "mincut")


def test_a_plan_file_is_amended_and_not_made_anew(tmp_path: Path) -> None:
    """What PyTorch's own plans and plan files save stays saved but for the wish."""
    graph = layered(4)
    partition = load_strategy("save-all").plan(graph)
    usual = {value.name for value in partition.saved}
    trace = sample_trace(graph)
    aotcli.save(aotcli.partition(trace, strategy="save-all"), tmp_path / "plan.aot.json")
    strategy = load_strategy(f"replay:{tmp_path / 'plan.aot.json'}")
    rule = PolicyRule(Action.RECOMPUTE, module="h.1.fc", label="--recompute h.1.fc")
    amended = replan(strategy, graph, partition, [rule])
    assert {value.name for value in amended.saved} == usual - {"mm_1"}
    assert amended.recomputed == ("mm_1",)
    back = replan(strategy, graph, amended, [PolicyRule(Action.SAVE, module="h.1.fc", label="--save h.1.fc")])
    assert {value.name for value in back.saved} == usual


@pytest.mark.parametrize(
    ("wishes", "what"),
    [
        ({"save": ["h.0.fc"], "recompute": ["h.*.fc"]}, "--save h.0.fc and --recompute h.*.fc mean the same value"),
        ({"save": ["h.0.fc.weight"]}, "--save h.0.fc.weight: nothing there is the forward's to save"),
        ({"recompute": ["nowhere"]}, "'nowhere' matches nothing"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(wishes: dict[str, list[str]], what: str) -> None:
    with pytest.raises(InputError) as caught:
        explain(sample_trace(layered(2)), **wishes)
    assert what in caught.value.what


def test_a_wish_that_is_granted_already_says_so() -> None:
    result = explain(sample_trace(two_matmuls()), recompute=["fc1"])
    assert result.change is not None
    assert result.change.rows == ()
    assert "The plan is so already" in result.text()
    assert "The plan is so already" in result.markdown()


def written(folder: Path, result: ExplanationResult) -> str:
    (folder / "p.toml").write_text(result.policy_text(), encoding="utf-8")
    return str(folder / "p.toml")


def test_what_is_written_as_a_policy(tmp_path: Path) -> None:
    trace = sample_trace(layered(4))
    asked = explain(trace, "h.0.fc", recompute=["h.*.gelu@512B"], save=["h.1.fc"])
    rules = [(rule.action, rule.conditions) for rule in asked.policy]
    assert rules == [
        (Action.SAVE, "module h.1.fc"),
        (Action.RECOMPUTE, "module h.* itself, op gelu, from 512B, up to 512B"),
    ]
    flips = explain(trace, "h.0.fc").policy
    assert [(rule.action, rule.conditions) for rule in flips] == [(Action.RECOMPUTE, "module h.0.fc")]
    both = explain(trace, "**", recompute=["h.0.fc"])
    assert {each.fate for each in both.explanations} >= {Fate.SAVED, Fate.RECOMPUTED}
    plain = explain(trace, "**", strategy="policy", options={"policy": written(tmp_path, both)})
    assert {rule.action for rule in dataclasses.replace(plain, rules=()).policy} == {Action.RECOMPUTE}
    with pytest.raises(InputError, match="no rule to write"):
        explain(trace, "x").policy_text()


# How it looks.


def shown() -> ExplanationResult:
    return explain(sample_trace(layered(12, level="inductor")), target="blocks.py")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_golden_text(width: int) -> None:
    check_golden(f"explain-{width}.txt", shown().text(Page(width)))


def test_golden_in_ascii() -> None:
    text = shown().text(Page(80, unicode=False))
    assert text.isascii()
    check_golden("explain-ascii.txt", text)


def test_golden_change() -> None:
    result = explain(sample_trace(layered(12)), "h.0.mm", recompute=["h.*.fc"], target="blocks.py")
    check_golden("explain-change.txt", result.text(Page(80)))
    check_golden("explain-change.md", result.markdown())


def test_golden_of_what_is_not_decided() -> None:
    graph = norm_graph()
    texts = [explain(sample_trace(graph), name, target="net.py").text(Page(80)) for name in ("w", "t", "gw", "y")]
    check_golden("explain-others.txt", "\n".join(texts))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_of_prose_is_wider_than_the_page(width: int) -> None:
    page = Page(width)
    for seed in range(8):
        for line in explained(random_graph(seed)).text(page).splitlines():
            assert len(line) <= width or "aotcli " in line


def test_json_holds_what_was_found() -> None:
    result = explain(sample_trace(layered(4)), "h.*.fc", recompute=["h.1.fc"])
    document = json.loads(result.json())
    assert (document["schema"], document["schema_version"]) == ("aotcli.explanation", "1.0")
    assert document["wishes"] == [{"action": "recompute", "module": "h.1.fc", "submodules": True}]
    assert document["change"]["freed_bytes"] == 512
    for written, each in zip(document["explanations"], result.explanations, strict=True):
        assert written["fate"] == each.fate.value
        assert written["names"] == list(each.names)
        assert written["total_bytes"] == each.total_bytes
        if each.flip is not None and each.flip.change is not None:
            assert written["flip"]["change"]["after"]["saved_bytes"] == each.flip.change.after.saved_bytes
        if written["chain"] is not None:
            assert written["chain"]["estimate"]["assuming"]["fused"] is False


def test_an_estimate_says_what_it_assumes_and_is_left_out_where_nothing_is_known() -> None:
    text = shown().text()
    assert "estimate " in text
    assert text.count("(op by op at 1 TFLOP/s, 100 GB/s)") == len(lines_with(text, "estimate "))
    g = GraphBuilder(device="mtia")
    x, w, t = g.input("x", SHAPE), g.param("w", SHAPE), g.tangent("t", SHAPE)
    value = g.matmul(x, w, SHAPE)
    graph = g.build([g.pointwise("aten.neg.default", value)], [g.pointwise("aten.mul.Tensor", t, value), None])
    (each,) = explained(graph).explanations
    assert each.chain is not None
    assert each.chain.estimate is None
    assert "estimate" not in explained(graph).text()


def lines_with(text: str, words: str) -> list[str]:
    return list(" ".join(text.split()).split(words)[1:])


def test_partition_names_a_value_to_ask_about() -> None:
    text = aotcli.partition(sample_trace(layered(3)), target="blocks.py").text()
    (line,) = [line for line in text.splitlines() if line.startswith("Why:")]
    pattern = line.split()[-1]
    assert line == f"Why:     aotcli explain blocks.py {pattern}"
    largest = max(by_name(explained(layered(3))).values(), key=lambda each: each.total_bytes)
    found = explain(sample_trace(layered(3)), pattern).explanations[0]
    assert found.fate is Fate.SAVED
    assert found.place.what == largest.place.what


def union(groups: Iterable[Iterable[str]]) -> set[str]:
    return {name for group in groups for name in group}


def test_the_largest_are_all_saved_activations() -> None:
    for seed in range(10):
        result = explained(random_graph(seed))
        total = sum(each.total_bytes for each in result.explanations)
        assert total == result.plan.saved_bytes
        assert len(union(each.names for each in result.explanations)) == sum(e.count for e in result.explanations)

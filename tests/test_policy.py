"""Policy files, the patterns in them, and what their rules do to a plan."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
from builders import GraphBuilder, layered, random_graph, two_matmuls
from hypothesis import given, settings
from hypothesis import strategies as st

from aotcli.analysis.cse import eliminate_common
from aotcli.analysis.dce import eliminate_dead
from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic
from aotcli.analysis.patterns import matches_line, matches_module, matches_op
from aotcli.analysis.wishes import Wishes, made_values, match_rules, match_wrapped
from aotcli.errors import ConfigError, InputError, PlanImpossibleError, StrategyError
from aotcli.ir.joint import JointGraph, Ref, Tag
from aotcli.ir.partition import Partition
from aotcli.ir.policy import Action, PolicyRule, parse_policy, policy_text, read_policy
from aotcli.ir.sizes import parse_size, size_text
from aotcli.strategies import load_strategy, strategy_class
from aotcli.strategies.policy import Policy

SAVE, RECOMPUTE = Action.SAVE, Action.RECOMPUTE


def planned(graph: JointGraph, *rules: PolicyRule, **options: Any) -> Partition:
    """The plan of a graph under rules, as the strategy makes it from a file with these rules."""
    from aotcli.analysis.assemble import assemble

    return assemble(graph, Policy(**options).decide(graph, rules), strategy="policy")


def saved(partition: Partition) -> set[str]:
    return {value.name for value in partition.saved}


# The file.

texts = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=12)
sizes = st.one_of(st.none(), st.integers(0, 1 << 45))


@st.composite
def rules(draw: st.DrawFn) -> PolicyRule:
    optional = st.one_of(st.none(), texts)
    module, low, high = draw(optional), draw(sizes), draw(sizes)
    if low is not None and high is not None and low > high:
        low, high = high, low
    fields = {"op": draw(optional), "line": draw(optional), "name": draw(optional), "min_bytes": low, "max_bytes": high}
    if module is None and not any(value is not None for value in fields.values()):
        module = "h"
    submodules = True if module is None else draw(st.booleans())
    return PolicyRule(draw(st.sampled_from(list(Action))), module=module, submodules=submodules, **fields)


@given(st.lists(rules(), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_is_written_is_read_again(given_rules: list[PolicyRule]) -> None:
    read = parse_policy(tomllib.loads(policy_text(given_rules, ["a comment"])), "p.toml")
    assert [dataclasses.replace(rule, label="") for rule in read] == given_rules
    assert [rule.label for rule in read] == [f"rule {number} of p.toml" for number in range(1, len(read) + 1)]


@given(st.integers(0, 1 << 60))
def test_sizes_are_written_so_that_they_read_back_exactly(nbytes: int) -> None:
    assert parse_size(size_text(nbytes)) == nbytes


@pytest.mark.parametrize(
    ("text", "nbytes"), [("2GiB", 2 << 30), (" 1.5 MiB", 3 << 19), ("200 kB", 200_000), ("512 b", 512), ("1TB", 10**12)]
)
def test_sizes_as_people_write_them(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "12", "MiB", "-1MiB", "1 mib 2", "1XiB", "1e3MiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("", "holds no rule", "[[rule]]"),
        ("[[rules]]\n", "unknown key 'rules'", "did you mean 'rule'?"),
        ("[rule]\naction = 'save'\n", "rule is a table", "[[rule]]"),
        ("rule = [1]\n", "rule 1 of p.toml is no table", "[[rule]]"),
        ("[[rule]]\nmodul = 'h'\naction = 'save'\n", "rule 1 of p.toml has an unknown key 'modul'", "'module'"),
        ("[[rule]]\nmodule = 'h'\n", "rule 1 of p.toml has no action", 'action = "recompute"'),
        ("[[rule]]\nmodule = 'h'\naction = 'recompte'\n", "action is 'recompte'", "did you mean 'recompute'?"),
        ("[[rule]]\naction = 'save'\n", "has no condition", 'module = "**"'),
        ("[[rule]]\nmodule = 3\naction = 'save'\n", "module is 3", "module ="),
        ("[[rule]]\nop = ''\naction = 'save'\n", "op is ''", "op ="),
        ("[[rule]]\nmin_bytes = '12'\naction = 'save'\n", "min_bytes is '12'", "12MiB"),
        ("[[rule]]\nmin_bytes = true\naction = 'save'\n", "min_bytes is True", "1MiB"),
        ("[[rule]]\nmin_bytes = 3\nmax_bytes = 2\naction = 'save'\n", "min_bytes is above max_bytes", "exchange"),
        ("[[rule]]\nop = 'mm'\nsubmodules = false\naction = 'save'\n", "submodules is False", ""),
        ("[[rule\n", "no valid TOML", "correct it"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said_with_the_way_to_mend_it(
    text: str, what: str, fix: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_policy(path)
    assert what in caught.value.what
    assert fix in caught.value.fix


def test_a_policy_that_is_not_there_or_not_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StrategyError, match="there is no policy file"):
        load_strategy(f"policy:{tmp_path / 'none.toml'}")
    with pytest.raises(StrategyError, match="needs a policy file"):
        load_strategy("policy").plan(two_matmuls())
    with pytest.raises(ConfigError, match="cannot be read"):
        read_policy(tmp_path)


# Patterns.


@pytest.mark.parametrize(
    ("pattern", "path", "own", "inside"),
    [
        ("h.*", "h.0", True, True),
        ("h.*", "h.0.fc", False, True),
        ("h.*", "h", False, False),
        ("h.1", "h.11", False, False),
        ("h.[01].ln?", "h.1.ln2", True, True),
        ("ln*", "ln1.x", False, True),
        ("**.fc", "fc", True, True),
        ("**.fc", "h.0.fc", True, True),
        ("h.**", "h", True, True),
        ("h.**.fc", "h.1.mlp.fc", True, True),
        ("h.**.fc", "h.1.mlp", False, False),
        ("**", "", True, True),
        ("(model)", "", True, True),
        ("(model)", "h", False, False),
        ("h.+", "h.+", True, True),
        ("h.*", None, False, False),
        ("**", None, True, True),
    ],
)
def test_globs_over_modules(pattern: str, path: str | None, own: bool, inside: bool) -> None:
    assert matches_module(pattern, path, submodules=False) is own
    assert matches_module(pattern, path) is inside


def test_ops_go_by_all_their_names_and_parts_of_a_tuple_by_the_op_that_made_it() -> None:
    g = GraphBuilder()
    x = g.input("x", (4, 4))
    pair = g.op("aten.native_layer_norm.default", x, shapes=[(4, 4), (4, 1), (4, 1)])
    norm, mean = g.getitem(pair, 0, name="norm"), g.getitem(pair, 1, name="mean")
    graph = g.build([norm, mean])
    for pattern in ("aten.native_layer_norm.default", "aten.native_layer_norm", "native_layer_norm", "*norm*"):
        assert matches_op(pattern, graph, graph["norm"]), pattern
        assert matches_op(pattern, graph, graph["native_layer_norm"]), pattern
    assert matches_op("layer norm mean", graph, graph["mean"])
    assert not matches_op("layer norm mean", graph, graph["norm"])
    assert not matches_op("operator.getitem", graph, graph["norm"])


def test_lines_go_by_the_end_of_their_path() -> None:
    assert matches_line("net.py:3", "models/net.py:3")
    assert matches_line("models/net.py:*", "models/net.py:3")
    assert not matches_line("net.py:3", "net.py:33")
    assert not matches_line("et.py:3", "net.py:3")
    assert not matches_line("net.py:3", None)


# Rules and memory.


def norm_graph() -> JointGraph:
    """A layer norm (a tuple), a view of its first result, a matmul, and the backward that reads all of them."""
    g = GraphBuilder()
    w, x, t = g.param("w", (8, 8)), g.input("x", (4, 8)), g.tangent("t", (4, 8))
    pair = g.op("aten.native_layer_norm.default", x, name="norm", shapes=[(4, 8), (4, 1)], module="h.0.ln")
    out, mean = g.getitem(pair, 0, name="out", module="h.0.ln"), g.getitem(pair, 1, name="mean", module="h.0.ln")
    flat = g.view(out, (8, 4), name="flat", module="h.0.fc", source="m/net.py:7")
    y = g.matmul(out, w, (4, 8), name="y", module="h.0.fc")
    gw = g.matmul(flat, t, (8, 8), name="gw")
    gx = g.pointwise("aten.mul.Tensor", g.pointwise("aten.mul.Tensor", t, y, name="gy"), mean, name="gx")
    return g.build([y], [gw, gx])


def test_memory_is_told_by_what_makes_it() -> None:
    graph = norm_graph()
    names = [node.name for node in graph.nodes]
    made = [(names[m.maker], names[m.op], m.nbytes, [names[p] for p in m.members]) for m in made_values(graph)]
    assert made == [
        ("out", "norm", 128, ["out", "flat"]),
        ("mean", "norm", 16, ["mean"]),
        ("y", "y", 128, ["y"]),
    ]


@pytest.mark.parametrize(
    ("rule", "makers"),
    [
        (PolicyRule(SAVE, module="h.*"), ["out", "mean", "y"]),
        (PolicyRule(SAVE, module="h.*", submodules=False), []),
        (PolicyRule(SAVE, module="h.0.fc"), ["y"]),  # not the view of what another module made
        (PolicyRule(SAVE, module="h.0.fc", op="view"), ["out"]),  # but where the view is named
        (PolicyRule(SAVE, name="flat"), ["out"]),
        (PolicyRule(SAVE, name="norm"), ["out", "mean"]),  # an op stands for all its results
        (PolicyRule(SAVE, op="native_layer_norm"), ["out", "mean"]),
        (PolicyRule(SAVE, op="native_layer_norm", max_bytes=16), ["mean"]),
        (PolicyRule(SAVE, min_bytes=17), ["out", "y"]),
        (PolicyRule(SAVE, min_bytes=128, max_bytes=128, op="mm"), ["y"]),
        (PolicyRule(SAVE, line="net.py:7", op="*"), ["out"]),
        (PolicyRule(SAVE, name="gw"), []),  # the backward's
        (PolicyRule(SAVE, name="w"), []),  # a parameter
    ],
)
def test_what_a_rule_means(rule: PolicyRule, makers: list[str]) -> None:
    graph = norm_graph()
    matched = match_rules(graph, [rule])
    assert [graph.nodes[maker].name for maker in matched.makers[0]] == makers
    assert set(matched.wishes.save) == set(makers)
    assert bool(matched.notes) is not bool(makers)


def test_the_first_rule_that_matches_has_the_value_and_rules_without_any_are_noted() -> None:
    graph = norm_graph()
    given_rules = [
        PolicyRule(RECOMPUTE, op="mm", label="rule 1 of p.toml"),
        PolicyRule(SAVE, module="h.0.fc", label="rule 2 of p.toml"),
        PolicyRule(SAVE, module="h.1", label="rule 3 of p.toml"),
    ]
    matched = match_rules(graph, given_rules)
    assert set(matched.wishes.recompute) == {"y"}
    assert not matched.wishes.save
    assert matched.notes == (
        "rule 2 of p.toml (save module h.0.fc) matches only what earlier rules have in region0",
        "rule 3 of p.toml (save module h.1) matches nothing in region0",
    )


def test_a_module_around_the_model_is_looked_through_where_nothing_matches_otherwise() -> None:
    graph = layered(2)
    nodes = tuple(
        dataclasses.replace(node, module=f"module.model.{node.module}" if node.module else node.module)
        for node in graph.nodes
    )
    wrapped = dataclasses.replace(graph, nodes=nodes)
    about_fc = [PolicyRule(RECOMPUTE, module="h.*.fc")]
    assert match_wrapped(wrapped, about_fc).wishes == match_rules(graph, about_fc).wishes
    assert match_wrapped(wrapped, [PolicyRule(SAVE, module="module.model.h.0.fc")]).makers[0], "as it is, first"
    assert match_wrapped(wrapped, [PolicyRule(SAVE, module="nowhere")]).notes


# What rules do.


def test_without_a_match_the_plan_is_that_of_mincut() -> None:
    for seed in range(20):
        graph = random_graph(seed)
        usual, found = load_strategy("mincut").plan(graph), planned(graph, PolicyRule(SAVE, module="nowhere"))
        assert found.saved == usual.saved
        assert found.recomputed == usual.recomputed
        assert found.cut_value == usual.cut_value


def wish_of(graph: JointGraph, maker: int, action: Action) -> PolicyRule:
    return PolicyRule(action, name=graph.nodes[maker].name)


@given(st.integers(0, 10_000), st.data())
@settings(max_examples=120, deadline=None)
def test_what_is_asked_for_is_so_or_refused_by_name(seed: int, data: st.DataObject) -> None:
    # Nothing can be asked of what is dead, and of duplicates only what is asked of them all.
    graph, _ = eliminate_common(eliminate_dead(random_graph(seed))[0])
    made = made_values(graph)
    chosen = data.draw(st.lists(st.sampled_from(made), max_size=4, unique_by=lambda each: each.maker)) if made else []
    wishes = [(each, data.draw(st.sampled_from(list(Action)))) for each in chosen]
    asked = [wish_of(graph, each.maker, action) for each, action in wishes]
    try:
        partition = planned(graph, *asked)  # ends in the verifier
    except PlanImpossibleError as error:
        refused = error.fix
    else:
        refused = ""
    if refused:
        assert any(str(rule) in refused for rule in asked)
        return
    names = [node.name for node in graph.nodes]
    for each, action in wishes:
        if action is RECOMPUTE:
            assert saved(partition).isdisjoint(names[member] for member in each.members)
        else:
            assert names[each.op] not in partition.recomputed or _unclaimed(graph, each.op)


def _unclaimed(graph: JointGraph, position: int) -> bool:
    from aotcli.analysis.roles import classify

    return not classify(graph).required_forward[position]


@given(st.integers(0, 10_000), st.data())
@settings(max_examples=120, deadline=None)
def test_a_wish_never_costs_more_than_the_checkpoint_tag(seed: int, data: st.DataObject) -> None:
    """The tag MUST_RECOMPUTE runs the op again even where nothing needs it; the wish only bars the value from being
    saved."""
    graph, _ = eliminate_dead(random_graph(seed, checkpoints=False))
    made = [each for each in made_values(graph) if Tag.RANDOM not in graph.nodes[each.op].tags]
    if not made:
        return
    chosen = data.draw(st.sampled_from(made))
    names = [node.name for node in graph.nodes]
    inside = {chosen.op, *chosen.members}
    tagged = dataclasses.replace(
        graph,
        nodes=tuple(
            dataclasses.replace(node, checkpoint="MUST_RECOMPUTE") if position in inside else node
            for position, node in enumerate(graph.nodes)
        ),
    )
    try:
        forced = decide(tagged, Heuristic()).cut_value
    except PlanImpossibleError:
        return
    rule = PolicyRule(RECOMPUTE, name=names[chosen.maker])
    wished = decide(graph, Heuristic(), wishes=Wishes(recompute={names[chosen.maker]: rule})).cut_value
    assert (wished or 0) <= (forced or 0)


def test_recompute_is_never_forced_to_run() -> None:
    """Nothing of the backward reads the value: it is not saved, and not computed there either."""
    g = GraphBuilder()
    x, w, t = g.input("x", (4, 4)), g.param("w", (4, 4)), g.tangent("t", (4, 4))
    h = g.matmul(x, w, (4, 4), name="h")
    y = g.pointwise("aten.neg.default", h, name="y")
    graph = g.build([y], [g.matmul(t, x, (4, 4)), None])
    partition = planned(graph, PolicyRule(RECOMPUTE, name="h"), PolicyRule(RECOMPUTE, name="y"))
    assert partition.recomputed == ()
    assert saved(partition) == {"x"}


def test_a_value_that_is_not_saved_is_not_saved_as_a_view_either() -> None:
    graph = norm_graph()
    usual = load_strategy("mincut").plan(graph)
    assert saved(usual) & {"out", "flat"}
    partition = planned(graph, PolicyRule(RECOMPUTE, module="h.0.ln"))
    assert saved(partition).isdisjoint({"out", "flat", "mean"})
    assert {"norm", "out"} <= set(partition.recomputed)


def test_saving_a_part_of_a_tuple_saves_it_whatever_its_checkpoint_says() -> None:
    graph = norm_graph()
    nodes = tuple(
        dataclasses.replace(node, checkpoint="PREFER_RECOMPUTE") if node.name in ("norm", "out", "mean") else node
        for node in graph.nodes
    )
    tagged = dataclasses.replace(graph, nodes=nodes)
    assert "norm" in load_strategy("mincut").plan(tagged).recomputed
    partition = planned(tagged, PolicyRule(SAVE, name="mean", label="rule 1 of p.toml"))
    assert "norm" not in partition.recomputed
    reasons = {value.name: (value.reason.rule, value.reason.text) for value in partition.saved}
    assert reasons["mean"] == ("must save", "rule 1 of p.toml")


def test_recompute_goes_before_a_must_save_of_the_model() -> None:
    graph = two_matmuls()
    nodes = tuple(dataclasses.replace(n, checkpoint="MUST_SAVE") if n.name == "mm" else n for n in graph.nodes)
    tagged = dataclasses.replace(graph, nodes=nodes)
    partition = planned(tagged, PolicyRule(RECOMPUTE, module="act"), PolicyRule(RECOMPUTE, module="fc1"))
    assert set(partition.recomputed) == {"mm", "relu"}


def test_rules_that_contradict_each_other_are_both_named() -> None:
    rules_of_one_op = [
        PolicyRule(SAVE, op="native_layer_norm", max_bytes=16, label="rule 1 of p.toml"),
        PolicyRule(RECOMPUTE, op="native_layer_norm", label="rule 2 of p.toml"),
    ]
    with pytest.raises(PlanImpossibleError) as caught:
        planned(norm_graph(), *rules_of_one_op)
    assert all(str(rule) in caught.value.fix for rule in rules_of_one_op)
    assert "norm cannot be saved (it is a tuple)" in caught.value.why


def effects(target: str, **fields: Any) -> JointGraph:
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent("t", (4, 4))
    op = g.op(target, x, 0.5, shape=(4, 4), name="op", **fields)
    return g.build([op], [g.pointwise("aten.mul.Tensor", t, op)])


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (effects("mylib.write.default", tags={Tag.EFFECTFUL, Tag.IMPURE}), "has an effect"),
        (effects("aten.bernoulli.p", tags={Tag.RANDOM}, kwargs={"generator": 1}), "random"),
        (effects("aten.copy_.default", tags={Tag.MUTABLE}), "has an effect"),
    ],
    ids=["effect", "random", "mutation"],
)
def test_what_must_not_run_twice_is_refused(graph: JointGraph, reason: str) -> None:
    with pytest.raises(PlanImpossibleError) as caught:
        planned(graph, PolicyRule(RECOMPUTE, name="op", label="rule 1 of p.toml"))
    assert f"op may not run again ({reason})" in caught.value.why
    assert "rule 1 of p.toml" in caught.value.fix


def test_a_random_op_with_a_state_runs_again() -> None:
    partition = planned(effects("aten.bernoulli.p", tags={Tag.RANDOM}), PolicyRule(RECOMPUTE, name="op"))
    assert partition.recomputed == ("op",)
    assert partition.random_state_bytes == 5056


def test_a_read_of_an_input_that_the_step_changes_is_never_run_again() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent("t", (4, 4))
    scale = g.buffer("scale", (4, 4), mutated=True)
    doubled = g.pointwise("aten.mul.Tensor", scale, 2, name="doubled")
    y = g.pointwise("aten.mul.Tensor", x, doubled, name="y")
    changed = g.pointwise("aten.mul.Tensor", scale, 0.5, name="changed")
    graph = g.build([changed, y], [g.pointwise("aten.mul.Tensor", t, doubled), None])
    with pytest.raises(PlanImpossibleError, match="doubled"):
        planned(graph, PolicyRule(RECOMPUTE, name="doubled"))


def test_a_duplicate_that_is_merged_carries_its_wish_to_the_one_that_stands() -> None:
    g = GraphBuilder()
    x, w, t = g.input("x", (4, 4)), g.param("w", (4, 4)), g.tangent("t", (4, 4))
    first, second = (g.matmul(x, w, (4, 4), name=name) for name in ("first", "second"))
    grads = [g.pointwise("aten.mul.Tensor", t, value) for value in (first, second)]
    graph = g.build([g.pointwise("aten.add.Tensor", first, second)], grads)
    assert saved(load_strategy("mincut").plan(graph)) == {"first"}
    partition = planned(graph, PolicyRule(RECOMPUTE, name="second"))
    assert partition.recomputed == ("first",)


def test_the_options_of_mincut_are_options_of_policy(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[[rule]]\nmodule = "h.0.fc"\naction = "recompute"\n', encoding="utf-8")
    graph = layered(3)
    calm, eager = (
        load_strategy(f"policy:{path}", {"aggressive": flag, "cse": "false"}).plan(graph) for flag in ("false", "true")
    )
    assert calm.options["policy"] == str(path)
    assert "mm" in calm.recomputed
    assert set(calm.recomputed) < set(eager.recomputed)
    assert strategy_class("policy").argument == "policy"


def test_modules_of_nodes_that_tracing_left_without_are_told_first(tmp_path: Path) -> None:
    graph = layered(2)
    bare = tuple(dataclasses.replace(n, module=None) if n.target == "aten.gelu.default" else n for n in graph.nodes)
    path = tmp_path / "p.toml"
    path.write_text('[[rule]]\nmodule = "h.0"\nop = "gelu"\naction = "save"\n', encoding="utf-8")
    partition = load_strategy(f"policy:{path}").plan(dataclasses.replace(graph, nodes=bare))
    assert partition.notes == ()
    assert isinstance(graph.forward_outputs[0], Ref)

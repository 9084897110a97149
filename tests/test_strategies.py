"""The registry of strategies, their options, and the rules of save-all and recompute-all on small graphs."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from builders import GraphBuilder, layered, random_graph, two_matmuls

import aotcli.strategies
from aotcli.errors import PlanImpossibleError, StrategyError
from aotcli.ir.joint import JointGraph, Ref, Tag
from aotcli.ir.partition import Partition
from aotcli.ir.tensor import SymbolSpec
from aotcli.strategies import Strategy, describe_strategies, load_strategy, strategy_class, strategy_names
from aotcli.strategies._options import option_infos, parse_options

FOLDER = Path(aotcli.strategies.__file__).parent
OWN = tuple(sorted(path.stem.replace("_", "-") for path in FOLDER.glob("*.py") if not path.stem.startswith("_")))
# Those that plan a record without being told more.
TORCH_FREE = ("mincut", "recompute-all", "save-all")


def saved(partition: Partition) -> dict[str, str]:
    """What is saved, and by which rule."""
    return {value.name: value.reason.rule for value in partition.saved}


# The registry.


def test_files_are_strategies_by_their_stem() -> None:
    assert strategy_names() == OWN
    assert {*TORCH_FREE, "torch-default", "torch-mincut"} <= set(OWN)


@pytest.mark.parametrize("name", OWN)
def test_every_strategy_loads_by_its_name_and_describes_itself(name: str) -> None:
    strategy = load_strategy(name)
    assert strategy.name == name
    (info,) = [each for each in describe_strategies() if each.name == name]
    assert info.summary
    assert info.needs_live == name.startswith("torch-")
    assert all(option.help for option in info.options), "an option without help"
    assert [option.name.replace("-", "_") for option in info.options] == list(strategy.options)


def test_default_is_an_alias_of_save_all() -> None:
    assert strategy_class("default") is strategy_class("save-all")
    assert load_strategy("default").name == "save-all"


def test_loading_and_describing_need_no_torch() -> None:
    code = (
        "import sys; from aotcli.strategies import *;"
        "[load_strategy(n) for n in strategy_names()]; describe_strategies(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_value_after_the_name_sets_the_main_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy_class("mincut"), "argument", "max_distance")
    assert load_strategy("mincut:7").options["max_distance"] == 7
    with pytest.raises(StrategyError, match="no value after a colon"):
        load_strategy("save-all:7")
    with pytest.raises(StrategyError, match="there is no strategy 'reply'"):
        load_strategy("reply:plan.aot.json")


def test_an_unknown_strategy_is_answered_with_the_nearest_and_the_list() -> None:
    with pytest.raises(StrategyError) as caught:
        load_strategy("min-cut")
    assert caught.value.fix == "did you mean 'mincut'?"
    assert all(name in caught.value.why for name in OWN)
    with pytest.raises(StrategyError, match="defaults") as caught:
        load_strategy("defaults")
    assert "'default'" in caught.value.fix


# Options.


@dataclasses.dataclass(frozen=True)
class Sample(Strategy):
    name: ClassVar[str] = "sample"
    summary: ClassVar[str] = "for tests"

    flag: bool = False
    count: int = 3
    share: float | None = None
    colour: Literal["red", "blue"] = "red"
    ops: tuple[str, ...] = ()
    max_distance: int = 1

    def plan(self, graph: JointGraph, live: object = None) -> Partition:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("flag", "yes", True),
        ("flag", "0", False),
        ("count", "12", 12),
        ("share", "0.5", 0.5),
        ("share", "none", None),
        ("colour", "blue", "blue"),
        ("ops", "aten.mm, aten.bmm", ("aten.mm", "aten.bmm")),
        ("max-distance", "9", 9),
        ("max_distance", "9", 9),
    ],
)
def test_texts_become_values_of_the_fields_type(name: str, text: str, value: object) -> None:
    assert parse_options(Sample, {name: text}) == {name.replace("-", "_"): value}


def test_values_that_are_no_text_are_taken_as_they_are() -> None:
    assert parse_options(Sample, {"share": 0.25, "ops": ("a",)}) == {"share": 0.25, "ops": ("a",)}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("count", "many", "int"),
        ("flag", "maybe", "true or false"),
        ("colour", "bleu", "red|blue"),
        ("share", "x", "float"),
    ],
)
def test_a_text_of_the_wrong_type_says_what_the_option_takes(name: str, text: str, expected: str) -> None:
    with pytest.raises(StrategyError) as caught:
        parse_options(Sample, {name: text})
    assert repr(text) in caught.value.what
    assert expected in caught.value.why


def test_an_unknown_option_is_answered_with_the_nearest_and_the_list() -> None:
    with pytest.raises(StrategyError) as caught:
        parse_options(Sample, {"max-distanse": "1"})
    assert caught.value.fix == "did you mean 'max-distance'?"
    assert "flag, count, share, colour, ops, max-distance" in caught.value.why
    with pytest.raises(StrategyError, match="no option"):
        load_strategy("save-all", {"budget": "1"})


def test_options_are_listed_with_type_and_default() -> None:
    kinds = {info.name: (info.kind, info.default) for info in option_infos(Sample)}
    assert kinds["colour"] == ("red|blue", "red")
    assert kinds["share"] == ("float or none", None)
    assert kinds["ops"] == ("str,...", ())


def test_a_budget_outside_its_range_is_refused() -> None:
    with pytest.raises(StrategyError, match="outside 0 to 1"):
        load_strategy("torch-mincut", {"budget": "1.5"})


# Strategies from elsewhere.

OWN_FILE = """
from dataclasses import dataclass
from aotcli.analysis.assemble import assemble
from aotcli.ir.partition import Decision, Reason
from aotcli.strategies import Strategy

@dataclass(frozen=True)
class Mine(Strategy):
    name = "mine"
    summary = "saves the inputs"
    twice: bool = False
    def plan(self, graph, live=None):
        saved = tuple((n.name, Reason("mine", "mine")) for n in graph.placeholders if not n.name.startswith("tangents"))
        return assemble(graph, Decision(saved=saved), strategy=self.name, options=self.options)

ready = Mine(twice=True)
def partition(gm, joint_inputs, *, num_fwd_outputs, **rest):
    raise RuntimeError
number = 3
"""


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(OWN_FILE, encoding="utf-8")
    return path


def test_a_strategy_of_ones_own_comes_from_a_file(own_file: Path) -> None:
    strategy = load_strategy(f"{own_file}:Mine", {"twice": "true"})
    assert strategy.options == {"twice": True}
    assert strategy.plan(two_matmuls()).recomputed == ("mm", "relu")
    assert load_strategy(f"{own_file}:ready").options == {"twice": True}
    assert load_strategy(f"{own_file}:ready", {"twice": "no"}).options == {"twice": False}


def test_a_partition_function_of_ones_own_needs_the_live_model(own_file: Path) -> None:
    name = f"{own_file}:partition"
    strategy = load_strategy(name)
    assert strategy.needs_live
    with pytest.raises(StrategyError, match="needs the live model"):
        strategy.plan(two_matmuls())
    with pytest.raises(StrategyError, match="takes no options"):
        load_strategy(name, {"a": "1"})


@pytest.mark.parametrize(
    ("text", "attribute", "message"),
    [
        (OWN_FILE, "Mime", "did you mean 'Mine'"),
        (OWN_FILE, "number", "neither a strategy nor a partition function"),
        ("1 / 0", "Mine", "ZeroDivisionError"),
        ("def (", "Mine", "SyntaxError"),
    ],
)
def test_a_file_without_a_strategy_says_so(tmp_path: Path, text: str, attribute: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StrategyError) as caught:
        load_strategy(f"{path}:{attribute}")
    assert message in str(caught.value)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(StrategyError, match="there is no file"):
        load_strategy(f"{tmp_path}/none.py:Mine")


def test_entry_points_are_listed_and_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    group = aotcli.strategies.ENTRY_POINT_GROUP
    points = {
        "theirs": EntryPoint("theirs", "test_strategies:Sample", group),
        "broken": EntryPoint("broken", "no_such_module:Thing", group),
        "mincut": EntryPoint("mincut", "test_strategies:Sample", group),
    }
    monkeypatch.setattr(aotcli.strategies, "_entry_points", lambda: points)
    assert strategy_names() == (*OWN, "theirs", "broken")
    assert type(load_strategy("theirs", {"count": "4"})).__name__ == "Sample"
    assert load_strategy("mincut").summary != Sample.summary, "ours come first"
    assert [info.origin for info in describe_strategies() if info.name == "theirs"] == ["test_strategies:Sample"]
    with pytest.raises(StrategyError, match="cannot be loaded"):
        load_strategy("broken")


@pytest.mark.parametrize("name", ["torch-default", "torch-mincut"])
def test_references_say_that_a_record_is_not_enough(name: str) -> None:
    with pytest.raises(StrategyError) as caught:
        load_strategy(name).plan(two_matmuls())
    assert f"aotcli partition MODEL --strategy {name}" in caught.value.fix


@pytest.mark.parametrize("name", TORCH_FREE)
def test_plans_of_random_graphs_are_sound(name: str) -> None:
    for seed in range(60):
        load_strategy(name).plan(random_graph(seed, 25, 25))  # planning ends in the verifier


@pytest.mark.parametrize("name", TORCH_FREE)
def test_a_graph_without_backward_saves_nothing(name: str) -> None:
    g = GraphBuilder()
    graph = g.build([g.pointwise("aten.sin.default", g.input("x", (4,)))])
    partition = load_strategy(name).plan(graph)
    assert partition.saved == ()
    assert partition.forward_nodes == ("sin",)


# save-all.


def test_save_all_saves_what_the_backward_reads_and_recomputes_nothing() -> None:
    partition = load_strategy("save-all").plan(layered(3))
    assert partition.recomputed == ()
    assert set(saved(partition)) == {*(f"primals_{i}" for i in (2, 3, 4)), "mm", "add", "mm_1", "add_1", "mm_2"}


def test_save_all_saves_sizes_instead_of_a_tensor_of_which_only_sizes_are_read() -> None:
    g = GraphBuilder()
    g.symint("s0", hint=4, placeholder="n")
    x, t = g.input("x", ("s0", 4)), g.tangent("tangents_1", ("s0", 4))
    y = g.pointwise("aten.sin.default", x, name="y")
    size = g.sym_size(y, 0, "s0", name="size", backward=True)
    out = g.pointwise("aten.exp.default", y, name="out")
    grad = g.op("aten.expand.default", t, [size, 4], shape=("s0", 4))
    partition = load_strategy("save-all").plan(g.build([out], [None, grad]))
    assert saved(partition) == {"n": "size", "size": "size"}


def test_save_all_saves_elements_not_tuples() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent("tangents_1", (4, 4))
    pair = g.op("aten.native_dropout.default", x, 0.5, True, shapes=[(4, 4), (4, 4)], tags={Tag.RANDOM})
    out, mask = g.getitem(pair, 0, name="dropped"), g.getitem(pair, 1, name="mask")
    partition = load_strategy("save-all").plan(g.build([out], [g.pointwise("aten.mul.Tensor", t, mask)]))
    assert saved(partition) == {"mask": "read by backward"}


def test_save_all_recomputes_what_checkpointing_asks_for_and_saves_the_blocks_input() -> None:
    g = GraphBuilder()
    w, t = g.param("w", (4, 4)), g.tangent("tangents_1", (4, 4))
    before = g.pointwise("aten.exp.default", w, name="before")
    policy = {"checkpoint": "PREFER_RECOMPUTE", "ac_graph_id": 1}
    inside = g.pointwise("aten.sin.default", before, name="inside", **policy)
    kept = g.pointwise("aten.cos.default", inside, name="kept", checkpoint="MUST_SAVE", ac_graph_id=1)
    last = g.pointwise("aten.tanh.default", kept, name="last", **policy)
    grad = t
    for value in (last, inside, kept):
        grad = g.pointwise("aten.mul.Tensor", grad, value)
    partition = load_strategy("save-all").plan(g.build([g.pointwise("aten.exp.default", last)], [grad]))
    assert saved(partition) == {"before": "must save", "kept": "must save"}
    assert set(partition.recomputed) == {"inside", "last"}


def test_save_all_does_not_save_truth_values_that_are_only_asserted() -> None:
    g = GraphBuilder()
    n = g.symint("s0", hint=4, placeholder="n")
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    fits = g.op("operator.le", n, 8, value=SymbolSpec("bool", "s0 <= 8", True), name="fits")
    tags = {Tag.IMPURE, Tag.EFFECTFUL}
    g.op("aten._assert_scalar.default", fits, "too large", tags=tags, name="check")
    graph = g.build([g.pointwise("aten.sin.default", x)], [None, g.pointwise("aten.mul.Tensor", t, x)])
    partition = load_strategy("save-all").plan(graph)
    assert set(saved(partition)) == {"n", "x"}  # not `fits`: the check runs again from n


def test_save_all_refuses_a_value_of_no_known_kind() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    pair = g.op("aten.foo.default", x, shapes=[(4,), (4,)], name="pair")
    grad = g.op("aten.bar.default", t, pair, shape=(4,))
    with pytest.raises(StrategyError, match="cannot save pair"):
        load_strategy("save-all").plan(g.build([g.pointwise("aten.sin.default", x)], [grad]))


# recompute-all.


def recompute(*outputs: Ref, g: GraphBuilder, gradients: list[Ref | None], **options: object) -> Partition:
    return load_strategy("recompute-all", options).plan(g.build(list(outputs), gradients))


def test_recompute_all_saves_inputs_only() -> None:
    partition = load_strategy("recompute-all").plan(layered(3))
    assert set(saved(partition).values()) == {"primal"}
    assert partition.saved_bytes == 0
    assert partition.recomputed == ("mm", "gelu", "add", "mm_1", "gelu_1", "add_1", "mm_2")


def test_random_values_are_saved_element_by_element() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4, 4)), g.tangent("tangents_1", (4, 4))
    pair = g.op("aten.native_dropout.default", x, 0.5, True, shapes=[(4, 4), (4, 4)], tags={Tag.RANDOM})
    out, mask = g.getitem(pair, 0, name="dropped"), g.getitem(pair, 1, name="mask")
    flat = g.view(out, (16,), name="flat")
    grad = g.op("aten.foo.default", t, mask, flat, shape=(4, 4))
    partition = recompute(g.pointwise("aten.exp.default", flat), g=g, gradients=[grad])
    assert saved(partition) == {"dropped": "random", "mask": "random"}
    assert partition.recomputed == ("flat",)


def test_random_ops_that_checkpointing_asks_to_rerun_are_rerun_with_a_note() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    noise = g.op("aten.rand_like.default", x, shape=(4,), tags={Tag.RANDOM}, checkpoint="MUST_RECOMPUTE", name="noise")
    grad = g.pointwise("aten.mul.Tensor", t, g.pointwise("aten.sin.default", noise))
    partition = recompute(g.pointwise("aten.exp.default", noise), g=g, gradients=[grad])
    assert partition.recomputed == ("noise",)
    assert [note.split(" op")[0] for note in partition.notes] == ["1 random"]


def test_a_random_op_that_only_the_backward_reads_is_not_moved_into_the_forward() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    noise = g.op("aten.rand_like.default", x, shape=(4,), tags={Tag.RANDOM}, name="noise")
    grad = g.pointwise("aten.mul.Tensor", t, noise)
    partition = recompute(g.pointwise("aten.exp.default", x), g=g, gradients=[grad])
    assert saved(partition) == {"x": "primal"}
    assert "noise" not in partition.forward_nodes
    assert "noise" in partition.backward_nodes


def test_a_nested_graph_that_draws_is_random() -> None:
    inner = GraphBuilder()
    drawn = inner.op("aten.rand_like.default", inner.input("arg", (4,)), shape=(4,), tags={Tag.RANDOM})
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    body = g.subgraph("body", inner.build([drawn]))
    y = g.op("higher_order.invoke_subgraph", body, "body", x, value=(g.spec((4,)),), name="call")
    out = g.getitem(y, 0, name="out")
    grad = g.pointwise("aten.mul.Tensor", t, out)
    assert saved(recompute(g.pointwise("aten.exp.default", out), g=g, gradients=[grad])) == {"out": "random"}


def test_collectives_effects_and_demands_are_saved() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    wide = g.pointwise("aten.sin.default", x, name="wide")
    seen = g.view(wide, (2, 2), name="seen", checkpoint="MUST_SAVE")
    reduced = g.op("_c10d_functional.all_reduce.default", x, shape=(4,), tags={Tag.COLLECTIVE}, name="reduced")
    logged = g.op("mylib.log.default", x, shape=(4,), tags={Tag.IMPURE, Tag.EFFECTFUL}, name="logged")
    asked = g.pointwise("aten.cos.default", x, name="asked", checkpoint="MUST_SAVE")
    grad = t
    for value in (seen, reduced, logged, asked):
        grad = g.op("aten.mul.Tensor", grad, value, shape=(4,))
    out = g.op("aten.cat.default", [seen, reduced, logged, asked], shape=(16,))
    assert saved(recompute(out, g=g, gradients=[grad])) == {
        "wide": "must save",  # saving a view keeps what it looks at
        "reduced": "collective",
        "logged": "effect",
        "asked": "must save",
    }


def test_a_read_of_an_input_that_the_step_changes_is_not_repeated() -> None:
    g = GraphBuilder()
    x, scale, t = g.input("x", (4,)), g.buffer("scale", (4,), mutated=True), g.tangent("tangents_1", (4,))
    seen = g.view(scale, (4,), name="seen")
    doubled = g.pointwise("aten.mul.Tensor", seen, 2, name="doubled")
    y = g.pointwise("aten.mul.Tensor", x, g.pointwise("aten.sin.default", doubled, name="sin"), name="y")
    halved = g.pointwise("aten.mul.Tensor", scale, 0.5, name="halved")
    tags = {Tag.MUTABLE, Tag.IMPURE, Tag.EFFECTFUL}
    g.op("aten.copy_.default", scale, halved, shape=(4,), storage_of=scale, tags=tags, name="write")
    grad = g.pointwise("aten.mul.Tensor", t, Ref("sin"))
    partition = recompute(y, g=g, gradients=[grad, None])
    assert saved(partition) == {"doubled": "mutated input"}
    assert partition.recomputed == ("sin",)


def test_numbers_are_saved_and_floats_made_again() -> None:
    g = GraphBuilder()
    n = g.symint("s0", hint=4, placeholder="n")
    x, t = g.input("x", ("s0",)), g.tangent("tangents_1", ("s0",))
    double = g.op("operator.mul", n, 2, value=SymbolSpec("int", "2*s0", 8), name="double")
    share = g.op("operator.truediv", 1, double, value=SymbolSpec("float", "1/(2*s0)", 0.125), name="share")
    grad = g.op("aten.mul.Scalar", t, share, shape=("s0",))
    out = g.op("aten.mul.Scalar", x, share, shape=("s0",))
    partition = recompute(out, g=g, gradients=[None, grad])
    assert saved(partition) == {"n": "size", "double": "size"}
    assert partition.recomputed == ("share",)


def test_what_has_a_shape_of_its_own_making_is_saved() -> None:
    g = GraphBuilder()
    g.symint("u0", hint=4, placeholder="unused")
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    graph_symbol = g.op("aten.nonzero.default", x, shape=("u0", 1), dtype="int64", name="nonzero")
    grad = g.op("aten.index_put.default", t, [graph_symbol], shape=(4,))
    graph = g.build([g.op("aten.index.Tensor", x, [graph_symbol], shape=("u0",))], [None, grad])
    # As data-dependent symbols are: no placeholder binds it.
    nodes = tuple(dataclasses.replace(n, binds=None) if n.name == "unused" else n for n in graph.nodes)
    partition = load_strategy("recompute-all").plan(dataclasses.replace(graph, nodes=nodes))
    assert saved(partition) == {"nonzero": "data-dependent shape"}


def test_duplicates_are_merged_first_unless_told_not_to() -> None:
    def graph() -> JointGraph:
        g = GraphBuilder()
        x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
        first, again = (g.pointwise("aten.sin.default", x, name=name) for name in ("first", "again"))
        out = g.pointwise("aten.exp.default", first)
        return g.build([out], [g.pointwise("aten.mul.Tensor", g.pointwise("aten.mul.Tensor", t, first), again)])

    merged = load_strategy("recompute-all").plan(graph())
    assert merged.replaced == {"again": "first"}
    assert merged.recomputed == ("first",)
    assert load_strategy("recompute-all", {"cse": "no"}).plan(graph()).replaced == {}


def test_a_tuple_that_can_be_neither_saved_nor_rerun_is_named() -> None:
    g = GraphBuilder()
    x, t = g.input("x", (4,)), g.tangent("tangents_1", (4,))
    pair = g.op("aten.native_dropout.default", x, shapes=[(4,), (4,)], tags={Tag.RANDOM}, name="pair")
    out = g.getitem(pair, 0)
    with pytest.raises(PlanImpossibleError, match="pair"):
        recompute(out, g=g, gradients=[g.op("aten.foo.default", t, pair, shape=(4,))])

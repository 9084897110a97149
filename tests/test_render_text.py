"""The views of traces and plans as text, Markdown and code, on small records: golden files at fixed widths."""

from __future__ import annotations

import dataclasses
import re

import pytest
from builders import GraphBuilder, layered, sample_trace, two_matmuls
from golden_text import check_golden

from aotcli import api
from aotcli.errors import InputError, StrategyError
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Category
from aotcli.ir.trace import CaptureSettings, EagerSaved, Environment, GraphBreak, ModelInfo, Trace
from aotcli.render.code import joint_code, render_code, value_text
from aotcli.render.page import Page
from aotcli.render.saved_table import RowOptions, cut_rows, natural, select_rows
from aotcli.render.trace_text import render_trace_text, settings_text

ANSI = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = (60, 80, 120, 200)


def blocks_trace() -> Trace:
    """Twelve equal blocks, a region of its own size in MiB, as a capture of a small GPT would be."""
    return sample_trace(
        layered(12, width=512, batch=1024, level="inductor"),
        model=ModelInfo("blocks", "blocks.py", 3_145_728, 12 << 20, 0, 2 << 20, ("float32",), ("x f32[1024,512]",)),
        loss=True,
        breaks=(),
        eager=EagerSaved(50 << 20, 12 << 20, 25),
    )


def broken_trace() -> Trace:
    """Two regions, the second without a backward."""
    second = dataclasses.replace(forward_only(), name="region1")
    return sample_trace(
        two_matmuls(),
        second,
        breaks=(GraphBreak("call to builtin print: a reason that says at some length what has happened", "net.py:9"),),
        mutations=("buffer bn.running_mean", "input x"),
        side_effects=("global counter",),
        notes=("traced on real tensors: data-dependent",),
        settings=CaptureSettings(level="aten", tensors="real", overrides=(("layers", "2"),), inputs=("f32[2,8]",)),
        eager=None,
        tensors="real",
    )


def forward_only() -> JointGraph:
    g = GraphBuilder()
    x = g.input("x", (4, 4))
    return g.build([g.pointwise("aten.exp.default", x, module="act", source="net.py:2")])


def attention_trace() -> Trace:
    """Views of one storage, an op that differs by device, symbolic sizes, and a value that is also a result."""
    g = GraphBuilder(level="aten")
    n = g.symint("s77", hint=4)
    x = g.input("x", ("s77", 8))
    w = g.param("w", (8, 24), origin="qkv.weight")
    t = g.tangent("tangents_1", ("s77", 8))
    qkv = g.matmul(x, w, ("s77", 24), module="qkv", module_type="Linear", source="net.py:3")
    q, k, v = (g.view(qkv, ("s77", 8), target="aten.slice.Tensor", module="", source="net.py:4") for _ in range(3))
    flash = "aten._scaled_dot_product_flash_attention.default"
    pair = g.op(flash, q, k, v, shapes=[("s77", 8), ("s77", 1)], module="", source="net.py:5", flops=None)
    out = g.getitem(pair, 0, module="", source="net.py:5")
    lse = g.getitem(pair, 1, module="", source="net.py:5")
    backward = "aten._scaled_dot_product_flash_attention_backward.default"
    gq = g.op(backward, t, q, k, v, out, lse, n, shape=("s77", 8), module="", source="net.py:5")
    gw = g.matmul(g.view(x, (8, "s77"), target="aten.t.default", backward=True), gq, (8, 24), module="qkv")
    return sample_trace(g.build([out], [None, None, gw]), breaks=())


def result(trace: Trace, *strategies: str, **options: object) -> api.PartitionResult:
    return api.partition(trace, strategy=list(strategies), options=options, target="blocks.py")


class TestGolden:
    @pytest.mark.parametrize("width", WIDTHS)
    def test_partition(self, width: int) -> None:
        check_golden(f"partition-{width}.txt", result(blocks_trace(), "mincut").text(Page(width)))

    def test_partition_in_ascii(self) -> None:
        text = result(blocks_trace(), "mincut").text(Page(80, unicode=False))
        text.encode("ascii")
        check_golden("partition-ascii.txt", text)

    def test_partition_flat(self) -> None:
        text = result(blocks_trace(), "save-all").text(Page(80), RowOptions(flat=True, sort="order"))
        check_golden("partition-flat.txt", text)

    def test_partition_all(self) -> None:
        check_golden("partition-all.txt", result(attention_trace(), "mincut").text(Page(80), RowOptions(every=True)))

    def test_partition_of_several_regions(self) -> None:
        check_golden("partition-regions.txt", result(broken_trace(), "save-all").text(Page(80)))

    def test_comparison(self) -> None:
        text = result(blocks_trace(), "mincut", "save-all", "recompute-all").text(Page(80))
        check_golden("comparison.txt", text)

    def test_trace(self) -> None:
        check_golden("trace.txt", render_trace_text(blocks_trace(), Page(80), next_steps=["aotcli partition x"]))

    def test_trace_of_several_regions(self) -> None:
        check_golden("trace-regions.txt", render_trace_text(broken_trace(), Page(80), verbose=True))

    def test_joint_code(self) -> None:
        check_golden("code-joint.txt", render_code(joint_code(two_matmuls()), Page(80)))

    def test_halves_as_code(self) -> None:
        trace = sample_trace(two_matmuls(), breaks=())
        codes = [api.graph_code(trace, half, strategy="recompute-all")[0] for half in ("forward", "backward")]
        check_golden("code-halves.txt", "\n".join(render_code(code, Page(80)) for code in codes))

    def test_markdown(self) -> None:
        check_golden("partition.md", result(blocks_trace(), "mincut").markdown())

    def test_markdown_of_several(self) -> None:
        check_golden("comparison.md", result(blocks_trace(), "mincut", "save-all").markdown())


class TestWidth:
    @pytest.mark.parametrize("width", [60, 72, 80, 100, 119, 200])
    @pytest.mark.parametrize("strategies", [("mincut",), ("save-all",), ("mincut", "save-all", "recompute-all")])
    @pytest.mark.parametrize("color", [False, True])
    def test_no_line_is_wider_than_the_page(self, width: int, strategies: tuple[str, ...], color: bool) -> None:
        for trace in (blocks_trace(), broken_trace(), attention_trace()):
            text = result(trace, *strategies).text(Page(width, color))
            commands = ("  aotcli ", "         model = ")
            lines = [line for line in ANSI.sub("", text).splitlines() if not line.startswith(commands)]
            assert [line for line in lines if len(line) > width] == []

    @pytest.mark.parametrize("width", [60, 80, 200])
    def test_no_line_of_a_trace_is_either(self, width: int) -> None:
        for trace in (blocks_trace(), broken_trace(), attention_trace()):
            lines = render_trace_text(trace, Page(width), verbose=True).splitlines()
            assert [line for line in lines if len(line) > width] == []

    def test_color_changes_nothing_else(self) -> None:
        found = result(blocks_trace(), "mincut")
        assert ANSI.sub("", found.text(Page(80, color=True))) == found.text(Page(80))


class TestPartition:
    def test_the_verdict_comes_first(self) -> None:
        lines = result(blocks_trace(), "save-all").text().splitlines()
        verdict = next(i for i, line in enumerate(lines) if line.startswith("Saved for backward"))
        assert verdict <= 4
        assert "eager saves 50.0 MiB" in lines[verdict]

    def test_eager_not_measured(self) -> None:
        assert "eager not measured" in result(broken_trace(), "save-all").text()

    def test_nothing_is_saved_without_a_backward(self) -> None:
        trace = sample_trace(forward_only(), breaks=())
        text = result(trace, "mincut").text()
        assert "Saved for backward  nothing: no input or parameter needs a gradient" in text
        assert "forward only" in text

    def test_rows_hold_every_saved_byte(self) -> None:
        found = result(blocks_trace(), "mincut")
        (partition,) = found.plan.partitions
        rows = select_rows(found.trace.regions[0], partition, RowOptions())
        assert sum(row.nbytes for row in (*rows.shown, *rows.rest)) == found.saved_bytes

    def test_a_cheaper_plan_is_named_with_its_command(self) -> None:
        found = result(blocks_trace(), "save-all")
        assert found.alternative is not None
        assert found.alternative.saved_bytes < found.saved_bytes
        text = found.text()
        assert f"  aotcli partition blocks.py {found.alternative.arguments}\n" in text
        assert found.alternative.arguments == "--strategy budget --budget 24MiB"
        again = api.partition(found.trace, strategy="mincut:aggressive")
        assert again.saved_bytes == found.alternative.saved_bytes

    def test_nothing_cheaper_is_named_where_there_is_nothing(self) -> None:
        assert result(blocks_trace(), "recompute-all").alternative is None

    @pytest.mark.parametrize(
        ("strategy", "arguments"),
        [
            ("mincut", 'strategy="mincut", backend="inductor"'),
            ("mincut:aggressive", 'strategy="mincut", backend="inductor", aggressive=True'),
            ("default", 'strategy="default", backend="inductor"'),
            ("recompute-all:cse=false", 'strategy="recompute-all", backend="inductor", cse=False'),
        ],
    )
    def test_the_lines_to_paste(self, strategy: str, arguments: str) -> None:
        text = result(blocks_trace(), strategy).text()
        assert f"Use it:  import aotcli\n         model = aotcli.compile(model, {arguments})\n" in text

    def test_quiet_leaves_the_advice_out(self) -> None:
        text = result(blocks_trace(), "save-all").text(quiet=True)
        assert "Use it" not in text
        assert "Could be less" not in text
        assert "Note" not in text

    def test_cached_captures_say_so(self) -> None:
        found = dataclasses.replace(result(blocks_trace(), "mincut"), cached=True)
        assert " · cached" in found.text().replace("\n     ", " · ")

    def test_a_trace_of_the_cpu_says_what_cuda_could_change(self) -> None:
        text = result(attention_trace(), "save-all").text(Page(200))
        assert "traced on cpu: on CUDA other kernels may run for 1 attention op; " in text
        cuda = dataclasses.replace(attention_trace(), environment=Environment("2.13.0", "cuda", "H200"))
        assert "other kernels" not in result(cuda, "save-all").text(Page(200))

    def test_kept_values_are_named_apart(self) -> None:
        found = result(attention_trace(), "save-all")
        (partition,) = found.plan.partitions
        kinds = {value.category for value in partition.saved}
        assert {Category.ACTIVATION, Category.INPUT, Category.OUTPUT} <= kinds
        text = found.text(Page(120))
        assert "results of the step" in text
        assert "inputs" in text

    def test_unknown_flops_are_named(self) -> None:
        assert "FLOPs unknown for" in result(attention_trace(), "save-all").text(Page(120))

    def test_names_from_a_record_cannot_steer_the_terminal(self) -> None:
        graph = two_matmuls()
        nodes = tuple(
            dataclasses.replace(node, module=node.module and "\x1b[2J", source="a\x07.py:1") for node in graph.nodes
        )
        trace = sample_trace(dataclasses.replace(graph, nodes=nodes), breaks=(), notes=("\x1b]0;title\x07",))
        found = result(trace, "save-all")
        texts = [found.text(), found.text(Page(200)), found.markdown(), render_trace_text(trace, Page())]
        texts.append(render_code(joint_code(trace.regions[0]), Page()))
        assert not any("\x1b" in text or "\x07" in text for text in texts)


class TestRows:
    def test_limit_and_all(self) -> None:
        found = result(blocks_trace(), "save-all")
        (graph,), (partition,) = found.trace.regions, found.plan.partitions
        every = select_rows(graph, partition, RowOptions(flat=True, every=True))
        assert len(every.shown) == len([v for v in partition.saved if v.category is Category.ACTIVATION])
        assert every.rest == ()
        few = select_rows(graph, partition, RowOptions(flat=True, limit=3))
        assert (len(few.shown), len(few.rest)) == (3, len(every.shown) - 3)
        assert select_rows(graph, partition, RowOptions(limit=0)).shown == ()

    def test_sorting(self) -> None:
        found = result(blocks_trace(), "save-all")
        (graph,), (partition,) = found.trace.regions, found.plan.partitions

        def names(sort: str) -> list[str]:
            rows = select_rows(graph, partition, RowOptions(flat=True, every=True, sort=sort))
            return [row.values[0].name for row in rows.shown]

        order = [value.name for value in partition.saved if value.category is Category.ACTIVATION]
        assert names("order") == order
        assert names("name") == sorted(order, key=natural)
        assert sorted(names("module")) == sorted(order)
        assert sorted(names("bytes")) == sorted(order)

    def test_numbers_in_names_sort_as_numbers(self) -> None:
        assert sorted(["mul_10", "mul_2", "mul", "add_1"], key=natural) == ["add_1", "mul", "mul_2", "mul_10"]

    def test_one_row_is_not_worth_hiding(self) -> None:
        rows = select_rows(*_single(), RowOptions()).shown
        assert len(cut_rows([*rows, *rows, *rows], 2).rest) == 0
        assert len(cut_rows([*rows, *rows, *rows], 1).rest) == 2


def _single() -> tuple[JointGraph, object]:
    found = result(sample_trace(layered(1), breaks=()), "save-all")
    return found.trace.regions[0], found.plan.partitions[0]


class TestComparison:
    def test_equal_plans_are_said_to_be_equal(self) -> None:
        assert (
            "mincut and mincut:max-distance=500 save the same values"
            in result(blocks_trace(), "mincut", "mincut:max-distance=500").text()
        )

    def test_differences_add_up(self) -> None:
        from aotcli.render.comparison_text import saved_only_by

        found = result(blocks_trace(), "mincut", "recompute-all")
        (first,), (second,) = (plan.partitions for plan in found.plans)
        only_first = sum(value.nbytes for value in saved_only_by(first, second))
        only_second = sum(value.nbytes for value in saved_only_by(second, first))
        assert first.saved_bytes - only_first == second.saved_bytes - only_second


class TestCode:
    def test_every_op_is_marked_and_placed(self) -> None:
        text = render_code(joint_code(two_matmuls()), Page())
        ops = [line for line in text.splitlines() if " = aten." in line]
        assert {line[0] for line in ops} == {"F", "B"}
        assert all("net.py:" in line for line in ops)

    def test_nested_graphs_are_indented_before_their_use(self) -> None:
        inner = GraphBuilder(name="body")
        a = inner.input("a", (4, 4))
        nested = inner.build([inner.pointwise("aten.exp.default", a)], fingerprinted=False)
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        wrapped = g.op("higher_order.wrap", g.subgraph("body", nested), x, shape=(4, 4))
        lines = render_code(joint_code(g.build([wrapped], fingerprinted=False)), Page()).splitlines()
        start = next(i for i, line in enumerate(lines) if line.strip() == "def body(")
        assert lines[start].startswith("      def")
        assert any("self.body" in line for line in lines[start:])

    def test_values(self) -> None:
        g = GraphBuilder()
        assert value_text(g.spec((8, "s7"), "bfloat16") if g.symint("s7", hint=2) else None) == "bf16[8, s7]"
        assert value_text((g.spec((1,)), None)) == "(f32[1], None)"

    def test_an_unknown_graph(self) -> None:
        with pytest.raises(InputError, match="there is no graph 'jiont'"):
            api.graph_code(blocks_trace(), "jiont")


def test_settings_that_are_not_defaults_are_named() -> None:
    assert settings_text(CaptureSettings()) == "level inductor, all others at their defaults"
    settings = CaptureSettings(level="aten", dynamic=True, seed=3, overrides=(("layers", "2"),), loss=False)
    assert settings_text(settings) == "level aten, dynamic, seed 3, loss False, layers=2"


class TestChoosingStrategies:
    @pytest.mark.parametrize(
        ("text", "name", "options"),
        [
            ("mincut", "mincut", {}),
            ("mincut:aggressive", "mincut", {"aggressive": "true"}),
            ("mincut:aggressive=true,max-distance=5", "mincut", {"aggressive": "true", "max-distance": "5"}),
            ("mincut:recomputable-ops=add,mul,cse=false", "mincut", {"recomputable-ops": "add,mul", "cse": "false"}),
            ("my/file.py:NAME", "my/file.py:NAME", {}),
            ("my/file.py:NAME:a=1", "my/file.py:NAME", {"a": "1"}),
        ],
    )
    def test_options_in_the_name(self, text: str, name: str, options: dict[str, object]) -> None:
        assert api.parse_strategy(text) == (name, options)

    @pytest.mark.parametrize("text", ["mincut:", "mincut:=3", "mincut:,aggressive"])
    def test_options_that_do_not_parse(self, text: str) -> None:
        with pytest.raises(StrategyError, match="is no option"):
            api.parse_strategy(text)

    def test_shared_options_go_to_those_that_have_them(self) -> None:
        first, second = api.choose_strategies(["mincut", "save-all"], {"aggressive": True})
        assert first.strategy.options["aggressive"] is True
        assert "aggressive" not in second.strategy.options

    def test_an_option_that_none_has(self) -> None:
        with pytest.raises(StrategyError, match="'bugdet'"):
            api.choose_strategies(["mincut", "save-all"], {"bugdet": "1"})
        with pytest.raises(StrategyError, match="'bugdet'"):
            api.choose_strategies("mincut", {"bugdet": "1"})

    def test_a_strategy_that_needs_the_model_says_what_to_run(self) -> None:
        with pytest.raises(StrategyError) as caught:
            api.partition(blocks_trace(), strategy="torch-mincut")
        assert caught.value.fix == "aotcli partition blocks.py --strategy torch-mincut"

"""Every rule of lint on graphs made by hand: one where it fires, some where it must not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from builders import GraphBuilder, layered, sample_trace, two_matmuls

from aotcli import api
from aotcli.api.lint import lint
from aotcli.errors import InputError, PlanImpossibleError
from aotcli.ir.finding import Finding
from aotcli.ir.joint import Const, JointGraph, Ref, Tag
from aotcli.ir.trace import GraphBreak
from aotcli.strategies import Strategy

BF16 = Const("dtype", "torch.bfloat16")
F32 = Const("dtype", "torch.float32")
BLOCK: dict[str, Any] = {"module": "h.0", "module_type": "Block", "source": "net.py:8"}


def findings(*graphs: JointGraph, strategy: str = "mincut", **options: Any) -> list[Finding]:
    trace = sample_trace(*graphs, breaks=())
    return list(lint(trace, strategy=strategy, min_bytes=0, **options).findings)


def codes(*graphs: JointGraph, strategy: str = "mincut", **options: Any) -> list[str]:
    return [finding.rule for finding in findings(*graphs, strategy=strategy, **options)]


def cast(g: GraphBuilder, value: Ref, dtype: Const, **fields: Any) -> Ref:
    return g.pointwise(
        "prims.convert_element_type.default", value, dtype, dtype=dtype.text.removeprefix("torch."), **fields
    )


def linear_backward(g: GraphBuilder, t: Ref, left: Ref, right: Ref, shape: tuple[int, int], dtype: str) -> list[Ref]:
    """Gradients of left @ right for a tangent of `shape`: what makes mincut save both sides."""
    rows, inner, columns = shape[0], g.value(left).shape[1], shape[1]  # type: ignore[union-attr]
    lt = g.view(left, (inner, rows), target="aten.t.default", backward=True)
    rt = g.view(right, (columns, inner), target="aten.t.default", backward=True)
    return [g.matmul(lt, t, (inner, columns), dtype=dtype), g.matmul(t, rt, (rows, inner), dtype=dtype)]


class TestCheapToRecompute:
    def test_an_activation_between_two_matmuls(self) -> None:
        (finding,) = findings(layered(5, width=32, batch=64))
        assert (finding.rule, finding.module, finding.what, finding.count) == ("AOT002", "h.*", "add", 4)
        assert finding.nbytes == 4 * 64 * 32 * 4
        assert finding.detail == "gelu, add would make it again from mm of h.*.fc, which the backward has anyway"

    def test_not_where_its_source_is_not_there(self) -> None:
        assert codes(two_matmuls()) == []  # the relu is saved, and the product that it was made from is not

    @pytest.mark.parametrize(
        ("fields", "fires"),
        [
            ({}, True),
            ({"tags": (Tag.RANDOM, Tag.RANDOM_OP)}, False),
            ({"tags": {Tag.COMPUTE_INTENSIVE}}, False),
            ({"flops": 64}, False),
            ({"flops": None}, False),
            ({"checkpoint": "MUST_SAVE"}, False),
        ],
        ids=str,
    )
    def test_not_what_is_dear_random_or_asked_for(self, fields: dict[str, Any], fires: bool) -> None:
        g = GraphBuilder()
        w, x, t = g.param("w", (16, 16)), g.input("x", (8, 16)), g.tangent(shape=(8, 16))
        tags = {Tag.POINTWISE, *fields.pop("tags", ())}
        u = g.op("aten.gelu.default", x, shape=(8, 16), tags=tags, **BLOCK, **fields)
        y = g.matmul(u, w, (8, 16))
        gw, gu = linear_backward(g, t, u, w, (8, 16), "float32")
        graph = g.build([y], [gw, g.pointwise("aten.gelu_backward.default", gu, x)])
        assert ("AOT002" in codes(graph)) is fires

    @pytest.mark.parametrize(("length", "fires"), [(12, True), (13, False)])
    def test_not_by_a_long_chain(self, length: int, fires: bool) -> None:
        g = GraphBuilder()
        w, x, t = g.param("w", (16, 16)), g.input("x", (8, 16)), g.tangent(shape=(8, 16))
        u = g.pointwise("aten.sin.default", x)
        for _ in range(length - 1):
            u = g.pointwise("aten.sin.default", u)
        gw, gu = linear_backward(g, t, u, w, (8, 16), "float32")
        gx = g.op("aten.special.default", gu, x, shape=(8, 16))  # so that x is saved anyway
        assert ("AOT002" in codes(g.build([g.matmul(u, w, (8, 16))], [gw, gx]))) is fires

    def test_an_input_that_would_have_to_be_saved_is_counted(self) -> None:
        def graph(width: int) -> JointGraph:
            g = GraphBuilder()
            w, x, t = g.param("w", (16, 16)), g.input("x", (8, width)), g.tangent(shape=(8, 16))
            u = g.pointwise("aten.sin.default", x, shape=(8, 16))
            gw, gu = linear_backward(g, t, u, w, (8, 16), "float32")
            return g.build([g.matmul(u, w, (8, 16))], [gw, gu])

        assert codes(graph(16)) == []
        (finding,) = findings(graph(1))
        assert finding.nbytes == 8 * 16 * 4 - 8 * 1 * 4


class TestParameterCopy:
    def graph(self, dtype: str = "float32", *, of_input: bool = False) -> JointGraph:
        g = GraphBuilder()
        w = g.input("w", (16, 16), dtype) if of_input else g.param("w", (16, 16), dtype, origin="fc.weight")
        x, t = g.input("x", (8, 16), "bfloat16"), g.tangent(shape=(8, 16), dtype="bfloat16")
        low = cast(g, w, BF16, module="fc", module_type="Linear", source="net.py:3")
        y = g.matmul(x, low, (8, 16), dtype="bfloat16")
        gw, gx = linear_backward(g, t, x, low, (8, 16), "bfloat16")
        return g.build([y], [gw, gx])

    def test_a_cast_weight(self) -> None:
        (finding,) = findings(self.graph())
        assert (finding.rule, finding.module, finding.nbytes) == ("AOT003", "fc", 16 * 16 * 2)
        assert finding.detail == "a bf16 copy of fp32 parameter weight, which is there anyway"
        assert "hold the parameter in bfloat16" in finding.remedy.text

    def test_not_a_cast_input(self) -> None:
        assert "AOT003" not in codes(self.graph(of_input=True))

    def test_a_weight_quantized_to_fp8(self) -> None:
        g = GraphBuilder()
        w = g.param("w", (16, 16), origin="fc.weight")
        x, t = g.input("x", (8, 16)), g.tangent(shape=(8, 16))
        scale = g.op("aten.amax.default", g.pointwise("aten.abs.default", w), shape=(), tags={Tag.RECOMPUTABLE})
        scaled = g.pointwise("aten.div.Tensor", w, scale)
        spec = dataclasses.replace(g.spec((16, 16), "uint8"), dtype="float8_e4m3fn")
        low = g.op("prims.convert_element_type.default", scaled, value=spec, tags={Tag.POINTWISE, Tag.RECOMPUTABLE})
        y = g.matmul(x, low, (8, 16))
        back = g.op("aten.t.default", low, value=dataclasses.replace(spec, stride=(1, 16)), backward=True)
        gx = g.matmul(t, back, (8, 16))
        (finding,) = [each for each in findings(g.build([y], [None, gx])) if each.rule == "AOT003"]
        assert finding.detail.startswith("a float8_e4m3fn copy of fp32 parameter weight")
        assert finding.remedy.text == "quantize it again in the backward"

    def test_it_is_not_reported_twice(self) -> None:
        assert codes(self.graph()) == ["AOT003"]  # though casting again is cheap, and AOT002 would say so
        assert codes(self.graph(), select=("AOT002",)) == []

    def test_not_a_parameter_that_the_step_changes(self) -> None:
        graph = self.graph()
        assert "AOT003" not in codes(dataclasses.replace(graph, mutated=("w",)))


class TestWideCopy:
    def test_a_value_that_was_cast_up(self) -> None:
        g = GraphBuilder()
        w, x = g.param("w", (16, 16), "bfloat16"), g.input("x", (8, 16), "bfloat16")
        v, t = g.param("v", (16, 16)), g.tangent(shape=(8, 16))
        h = g.matmul(x, w, (8, 16), dtype="bfloat16", module="h.0.fc", module_type="Linear", source="net.py:3")
        wide = cast(g, h, F32, **BLOCK)
        y = g.matmul(wide, v, (8, 16))
        gv, gh = linear_backward(g, t, wide, v, (8, 16), "float32")
        low = cast(g, gh, BF16)
        xt = g.view(x, (16, 8), target="aten.t.default", backward=True)
        graph = g.build([y], [g.matmul(xt, low, (16, 16), dtype="bfloat16"), None, gv])
        (finding,) = findings(graph)
        assert (finding.rule, finding.module, finding.dtype) == ("AOT004", "h.0", "float32")
        assert finding.nbytes == 8 * 16 * (4 - 2)
        assert finding.detail == "cast up from bf16 mm of h.*.fc, which would do"

    def graph_of_sine(self, *, read: str) -> JointGraph:
        """sin(x) in fp32, of which the backward reads the cast down, itself, or both."""
        g = GraphBuilder()
        w, x, t = g.param("w", (16, 16), "bfloat16"), g.input("x", (8, 16)), g.tangent(shape=(8, 16), dtype="bfloat16")
        s = g.op("aten.sin.default", x, shape=(8, 16), tags={Tag.POINTWISE, Tag.RANDOM}, **BLOCK)
        y = g.matmul(cast(g, s, BF16), w, (8, 16), dtype="bfloat16")
        low = cast(g, s, BF16, backward=True) if read != "itself" else None
        gradients: list[Ref | None] = [None, None]
        if low is not None:
            lt = g.view(low, (16, 8), target="aten.t.default", backward=True)
            gradients[0] = g.matmul(lt, t, (16, 16), dtype="bfloat16")
        if read != "cast":
            wide = cast(g, t, F32)
            gradients[1] = g.pointwise("aten.mul.Tensor", wide, s)
        return g.build([y], gradients)

    @pytest.mark.parametrize(("read", "fires"), [("cast", True), ("itself", False), ("both", False)])
    def test_a_value_of_which_only_the_cast_down_is_read(self, read: str, fires: bool) -> None:
        graph = self.graph_of_sine(read=read)
        hits = lint(sample_trace(graph, breaks=()), strategy=SaveSines(), min_bytes=0).findings
        assert any(each.rule == "AOT004" for each in hits) is fires
        if fires:
            assert hits[0].detail == "the backward reads nothing of it but its cast to bf16"
            assert hits[0].nbytes == 8 * 16 * (4 - 2)

    def test_not_what_was_computed_in_fp32(self) -> None:
        assert "AOT004" not in codes(layered(2))


class SaveSines(Strategy):
    """Saves the results of sin, and what else the backward needs and cannot compute from them."""

    name = "sines"
    summary = "for this test"
    kept_op = "aten.sin.default"

    def plan(self, graph: JointGraph, live: Any = None) -> Any:
        from aotcli.analysis.assemble import assemble
        from aotcli.ir.partition import Decision, Reason

        kept = [node.name for node in graph.nodes if node.target == self.kept_op]
        given = [node.name for node in graph.placeholders if node.kind.value in ("param", "input")]
        names = sorted([*kept, *given], key=graph.index.__getitem__)
        return assemble(graph, Decision(tuple((name, Reason("test", "test")) for name in names)), strategy="sines")


class TestShapeOnly:
    def pooled(self, *, values_too: bool = False) -> JointGraph:
        g = GraphBuilder()
        x, t = g.input("x", (2, 4, 8, 8)), g.tangent(shape=(2, 4, 4, 4))
        c = g.op("aten.convolution.default", x, shape=(2, 4, 8, 8), tags={Tag.COMPUTE_INTENSIVE}, **BLOCK)
        pool = g.op("aten.avg_pool2d.default", c, [2, 2], shape=(2, 4, 4, 4))
        back = g.op("aten.avg_pool2d_backward.default", t, c, [2, 2], shape=(2, 4, 8, 8), module="pool")
        if values_too:
            back = g.pointwise("aten.threshold_backward.default", back, c, 0)
        return g.build([pool], [back])

    def test_the_input_of_a_pooling(self) -> None:
        (finding,) = findings(self.pooled())
        assert (finding.rule, finding.what, finding.nbytes) == ("AOT005", "convolution", 2 * 4 * 8 * 8 * 4)
        assert finding.detail == "avg pool2d backward of pool reads its sizes and none of its elements"
        assert "torch.ops.aten.avg_pool2d_backward(grad, x, ...)" in finding.remedy.lines

    def test_not_where_another_op_reads_it(self) -> None:
        assert codes(self.pooled(values_too=True)) == []

    @pytest.mark.parametrize(
        ("mask", "at_input", "fires"),
        [
            ((True, False, False), True, True),
            ((True, True, False), True, False),
            ((False, True, False), True, False),
            ((False, True, False), False, True),
        ],
        ids=str,
    )
    def test_the_input_of_a_frozen_convolution(self, mask: tuple[bool, ...], at_input: bool, fires: bool) -> None:
        g = GraphBuilder()
        x, t = g.input("x", (2, 4, 8, 8)), g.tangent(shape=(2, 4, 8, 8))
        given = g.input("given", (2, 4, 8, 8))
        made = g.op("aten.bernoulli.p", x, 0.5, shape=(2, 4, 8, 8), tags={Tag.RANDOM, Tag.RANDOM_OP}, **BLOCK)
        pair = (made, given) if at_input else (given, made)
        rest = ([4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, list(mask))
        shapes = [(2, 4, 8, 8), (2, 4, 8, 8), (4,)]
        back = g.op("aten.convolution_backward.default", t, *pair, *rest, shapes=shapes)
        gradient = g.getitem(back, mask.index(True), backward=True)
        y = g.op("aten.convolution.default", *pair, shape=(2, 4, 8, 8), tags={Tag.COMPUTE_INTENSIVE})
        assert codes(g.build([y], [gradient, None])) == (["AOT005"] if fires else [])

    def test_what_is_only_passed_on_counts_as_unread(self) -> None:
        g = GraphBuilder()
        x, t = g.input("x", (2, 8)), g.tangent(shape=(2, 4))
        made = g.op("aten.bernoulli.p", x, 0.5, shape=(2, 8), tags={Tag.RANDOM, Tag.RANDOM_OP}, **BLOCK)
        scaled = g.pointwise(
            "aten.mul.Tensor", g.view(made, (2, 8)), g.op("aten.sum.default", t, shape=()), shape=(2, 8)
        )
        gradient = g.op("aten.reflection_pad1d_backward.default", t, scaled, [1, 1], shape=(2, 8))
        (finding,) = findings(g.build([g.pointwise("aten.neg.default", made)], [gradient]))
        assert finding.rule == "AOT005"
        assert finding.detail == "reflection pad1d backward reads its sizes and none of its elements"

    def test_what_the_backward_returns_is_read(self) -> None:
        g = GraphBuilder()
        x, t = g.input("x", (8, 8)), g.tangent(shape=(8, 8))
        made = g.op("aten.bernoulli.p", x, 0.5, shape=(8, 8), tags={Tag.RANDOM, Tag.RANDOM_OP})
        zeros = g.op("aten.zeros_like.default", made, shape=(8, 8), backward=True)
        gradient = g.pointwise("aten.add.Tensor", t, zeros)
        assert (
            codes(g.build([g.pointwise("aten.neg.default", made)], [gradient, g.view(made, (64,), backward=True)]))
            == []
        )


class TestSavedTwice:
    def graph(self, copy: str) -> JointGraph:
        """A product whose backward reads a value and what was made of it."""
        g = GraphBuilder()
        w, x, t = g.param("w", (16, 16)), g.input("x", (8, 16)), g.tangent(shape=(8, 16))
        h = g.matmul(x, w, (8, 16), **BLOCK)
        other = {
            "view": lambda: g.view(h, (16, 8), target="aten.t.default"),
            "clone": lambda: g.op("aten.clone.default", h, shape=(8, 16), tags={Tag.POINTWISE}, **BLOCK),
            "cast": lambda: cast(g, h, BF16, **BLOCK),
            "sine": lambda: g.pointwise("aten.sin.default", h, **BLOCK),
        }[copy]()
        y = g.matmul(other, w, (16, 16) if copy == "view" else (8, 16))
        read = g.op("aten.special.default", t, h, shape=(8, 16))
        read_too = g.op("aten.special.default", t, other, shape=(8, 16))
        return g.build([y, h if copy == "never" else y], [read, read_too])

    @pytest.mark.parametrize(
        ("copy", "expected", "detail"),
        [
            ("view", [], ""),
            ("clone", ["AOT006"], "a copy of mm, which the backward has as well"),
            ("cast", ["AOT006"], "a cast to bf16 of mm, which the backward has as well"),
            ("sine", ["AOT002"], "sin would make it again from mm, which the backward has anyway"),
        ],
    )
    def test_copies_and_casts_but_not_views(self, copy: str, expected: list[str], detail: str) -> None:
        found = findings(self.graph(copy))
        assert [each.rule for each in found] == expected
        if found:
            assert found[0].detail == detail

    def test_two_copies_of_what_is_not_saved(self) -> None:
        g = GraphBuilder()
        w, x, t = g.param("w", (16, 16)), g.input("x", (8, 16)), g.tangent(shape=(8, 16))
        h = g.matmul(x, w, (8, 16), **BLOCK)
        whole = g.op("aten.clone.default", h, shape=(8, 16), tags={Tag.POINTWISE}, **BLOCK)
        low = cast(g, h, BF16, **BLOCK)
        gradients = [g.op("aten.special.default", t, each, shape=(8, 16)) for each in (whole, low)]
        found = findings(g.build([g.pointwise("aten.neg.default", each) for each in (whole, low)], gradients))
        # The fp32 copy has all there is; the cast can be made from it, and not the other way round.
        assert [(each.rule, each.values) for each in found] == [("AOT006", (low.name,))]

    def test_parts_of_one_value_are_no_copies_of_each_other(self) -> None:
        g = GraphBuilder()
        w, x, t = g.param("w", (16, 16)), g.input("x", (8, 16)), g.tangent(shape=(8, 8))
        h = g.matmul(x, w, (8, 16), **BLOCK)
        parts = [
            g.op(
                "aten.clone.default", g.view(h, (8, 8), target="aten.slice.Tensor"), shape=(8, 8), tags={Tag.POINTWISE}
            )
            for _ in range(2)
        ]
        gradients = [g.op("aten.special.default", t, each, shape=(8, 8)) for each in parts]
        assert "AOT006" not in codes(g.build([g.pointwise("aten.neg.default", h)], gradients), options={"cse": "no"})


class TestKeptByView:
    def graph(self, part: int, *, copied: bool = False) -> JointGraph:
        """A product of which the backward reads the first `part` columns of 16."""
        g = GraphBuilder()
        w, x, t = g.param("w", (16, 16)), g.input("x", (8, 16)), g.tangent(shape=(8, part))
        h = g.matmul(x, w, (8, 16), **BLOCK)
        view = g.view(h, (8, part), target="aten.slice.Tensor", **BLOCK)
        if copied:
            view = g.op("aten.clone.default", view, shape=(8, part), tags={Tag.POINTWISE}, **BLOCK)
        y = g.pointwise("aten.neg.default", view)
        return g.build([y], [g.op("aten.special.default", t, view, shape=(8, 16)), None])

    def test_a_small_part_of_a_saved_value(self) -> None:
        (finding,) = findings(self.graph(2))
        assert (finding.rule, finding.what, finding.nbytes) == ("AOT008", "mm", 8 * 14 * 4)
        assert finding.detail == "the backward reads no more than slice of 8×2, which keeps all of it"

    def test_not_half_of_it_nor_a_copy(self) -> None:
        assert codes(self.graph(8)) == []
        assert codes(self.graph(2, copied=True)) == []


class TestGraphBreak:
    def test_reason_line_and_remedy(self) -> None:
        reasons = (
            ("Failed to trace builtin operator: Dynamo does not know how to trace builtin operator `print`", "print"),
            ("Unsupported Tensor.item() call with capture_scalar_outputs=False: ...", "capture_scalar_outputs"),
            ("Skip calling `torch.compiler.disable()`d function: Skip calling function", "torch.compiler.disable"),
            ("something nobody has heard of", "TORCH_LOGS=graph_breaks"),
        )
        trace = sample_trace(two_matmuls(), breaks=tuple(GraphBreak(reason, "net.py:9") for reason, _ in reasons))
        found = lint(trace).findings
        assert [each.rule for each in found] == ["AOT007"] * 4
        for finding, (reason, remedy) in zip(found, reasons, strict=True):
            assert (finding.detail, finding.source) == (reason, "net.py:9")
            assert remedy in " ".join([finding.remedy.text, *finding.remedy.lines])

    def test_the_same_break_in_every_layer_is_one_finding(self) -> None:
        breaks = (GraphBreak("call to print", "net.py:9"), GraphBreak("call to print", "net.py:12"))
        found = lint(sample_trace(two_matmuls(), breaks=breaks[:1] * 12 + breaks[1:])).findings
        assert [(each.source, each.count) for each in found] == [("net.py:9", 12), ("net.py:12", 1)]

    def test_a_long_reason_is_cut(self) -> None:
        (finding,) = lint(sample_trace(two_matmuls(), breaks=(GraphBreak("Heading: " + "long " * 90, None),))).findings
        assert finding.detail == "Heading"

    def test_no_break_no_finding(self) -> None:
        assert codes(two_matmuls()) == []

    def test_what_crosses_is_said(self) -> None:
        trace = sample_trace(two_matmuls(), two_matmuls(), breaks=(GraphBreak("call to print", "net.py:9"),))
        assert any("are handed are kept for the backward" in note for note in lint(trace).report.notes)


def contradiction(*, parts: str | None = "MUST_RECOMPUTE", layers: int = 1) -> JointGraph:
    """topk that must be saved, and its parts, which must not."""
    g = GraphBuilder()
    x, t = g.input("x", (4, 8)), g.tangent(shape=(4, 8))
    for layer in range(layers):
        block = {"module": f"h.{layer}", "module_type": "Block"}
        pair = g.op(
            "aten.topk.default", x, 8, shapes=[(4, 8), (4, 8)], checkpoint="MUST_SAVE", source="net.py:12", **block
        )
        first = g.getitem(pair, 0, checkpoint=parts, source="net.py:13", **block)
        x = g.pointwise("aten.sin.default", first)
        t = g.op("aten.mul.Tensor", t, first, shape=(4, 8))
    return g.build([x], [t])


class TestImpossibleAnnotations:
    def test_both_lines_are_named(self) -> None:
        (finding,) = findings(contradiction())
        assert (finding.rule, finding.values, finding.source) == ("AOT001", ("topk", "getitem"), "net.py:12")
        assert [(place.what, place.source) for place in finding.places] == [
            ("MUST_SAVE on topk", "net.py:12"),
            ("MUST_RECOMPUTE on topk [0]", "net.py:13"),
        ]
        assert "cannot be saved (it is a tuple)" in finding.detail

    @pytest.mark.parametrize("strategy", ["mincut", "save-all"])
    def test_whose_plan_it_is_does_not_matter(self, strategy: str) -> None:
        trace = sample_trace(contradiction(), breaks=())
        with pytest.raises(PlanImpossibleError, match=r"net\.py:12"):
            api.partition(trace, strategy=strategy)
        result = lint(trace, strategy=strategy)
        assert [each.rule for each in result.findings] == ["AOT001"]
        assert f"1 finding; {strategy} has no plan" in result.text()

    def test_in_every_layer(self) -> None:
        (finding,) = findings(contradiction(layers=3))
        assert (finding.module, finding.count) == ("h.*", 3)

    def test_annotations_that_agree(self) -> None:
        assert codes(contradiction(parts="MUST_SAVE")) == []
        assert codes(contradiction(parts=None)) == []

    def test_the_plan_of_another_strategy_may_exist(self) -> None:
        result = lint(sample_trace(contradiction(), breaks=()), strategy=SavesInputs(), min_bytes=0)
        assert [each.rule for each in result.findings] == ["AOT001"]
        assert result.report.saved_bytes == 0

    def test_other_regions_are_looked_at_all_the_same(self) -> None:
        trace = sample_trace(contradiction(), layered(3, width=32, batch=64), breaks=())
        result = lint(trace, min_bytes=0)
        assert {each.rule for each in result.findings} == {"AOT001", "AOT002"}
        assert any("a part of the step has no plan" in note for note in result.report.notes)

    def test_a_tuple_that_a_rule_of_the_heuristic_keeps(self) -> None:
        g = GraphBuilder()
        x, t = g.input("x", (4, 8)), g.tangent(shape=(4, 8))
        tags = {Tag.COMPUTE_INTENSIVE}
        pair = g.op("aten.attention.default", x, shapes=[(4, 8), (4, 8)], tags=tags, source="net.py:5")
        first = g.getitem(pair, 0, checkpoint="MUST_RECOMPUTE", source="net.py:6")
        graph = g.build([g.pointwise("aten.neg.default", first)], [g.op("aten.mul.Tensor", t, first, shape=(4, 8))])
        (finding,) = findings(graph)
        assert [place.source for place in finding.places] == ["net.py:5", "net.py:6"]
        assert finding.remedy.lines == ('node.meta["recompute"] = CheckpointPolicy.PREFER_SAVE  # attention [0]',)

    def changed_in_place(self, policy: str | None) -> JointGraph:
        g = GraphBuilder()
        x, b, t = g.input("x", (4,)), g.buffer("b", (4,), mutated=True, origin="scale"), g.tangent(shape=(4,))
        doubled = g.pointwise("aten.mul.Tensor", b, 2, checkpoint=policy, source="net.py:7", name="doubled")
        y = g.pointwise("aten.mul.Tensor", x, doubled)
        halved = g.pointwise("aten.mul.Tensor", b, 0.5)
        tags = {Tag.MUTABLE, Tag.EFFECTFUL, Tag.IMPURE}
        g.op(
            "aten.copy_.default",
            b,
            halved,
            shape=(4,),
            tags=tags,
            source="net.py:9",
            partitioner_tag="must_be_in_forward",
        )
        return g.build([y], [g.pointwise("aten.mul.Tensor", t, doubled), None])

    def test_recomputing_what_reads_a_changed_input(self) -> None:
        (finding,) = findings(self.changed_in_place("MUST_RECOMPUTE"))
        assert (finding.rule, finding.values) == ("AOT001", ("doubled",))
        assert [(place.what, place.source) for place in finding.places] == [
            ("MUST_RECOMPUTE on mul", "net.py:7"),
            ("scale is changed", "net.py:9"),
        ]
        assert codes(self.changed_in_place(None)) == []

    def test_another_reason_for_no_plan_is_an_error(self) -> None:
        with pytest.raises(PlanImpossibleError, match="for no reason of yours"):
            lint(sample_trace(layered(2)), strategy=NeverPlans())


class SavesInputs(SaveSines):
    """Saves what the step is given, and computes all else again, whatever the annotations say."""

    kept_op = ""


class NeverPlans(Strategy):
    name = "never"
    summary = "for this test"

    def plan(self, graph: JointGraph, live: Any = None) -> Any:
        raise PlanImpossibleError("for no reason of yours")


class TestChoosing:
    @pytest.mark.parametrize(
        ("select", "ignore", "expected"),
        [
            ((), (), 8),
            (("AOT",), (), 8),
            (("AOT00",), ("AOT002", "AOT003"), 6),
            (("AOT002",), (), 1),
            (("AOT002",), ("AOT",), 1),
            ((), ("AOT00",), None),
            (("AOT002",), ("AOT002",), None),
        ],
        ids=str,
    )
    def test_the_longer_beginning_counts(
        self, select: tuple[str, ...], ignore: tuple[str, ...], expected: int | None
    ) -> None:
        trace = sample_trace(layered(3), breaks=())
        if expected is None:
            with pytest.raises(InputError, match="no rule is left"):
                lint(trace, select=select, ignore=ignore)
        else:
            assert len(lint(trace, select=select, ignore=ignore).report.rules) == expected

    @pytest.mark.parametrize(("text", "fix"), [("AOT03", "did you mean AOT003?"), ("E501", "--list-rules"), ("", "")])
    def test_an_unknown_rule(self, text: str, fix: str) -> None:
        with pytest.raises(InputError) as raised:
            lint(sample_trace(layered(2)), select=(text,))
        assert raised.value.what == f"--select {text}: there is no such rule"
        assert fix in raised.value.fix

    def test_small_findings_are_counted(self) -> None:
        trace = sample_trace(layered(3, width=32, batch=64), breaks=())
        result = lint(trace)
        assert (result.findings, result.exit_code) == ((), 0)
        assert (result.report.small, result.report.small_bytes) == (1, 2 * 64 * 32 * 4)
        assert "1 finding with less than 1MiB at stake not shown (16.0 KiB" in result.text()
        assert lint(trace, min_bytes=16 << 10).exit_code == 1

    def test_a_step_without_backward(self) -> None:
        g = GraphBuilder()
        x = g.input("x", (4, 4))
        assert codes(g.build([g.pointwise("aten.exp.default", x)])) == []

    def test_every_strategy_that_plans_records(self) -> None:
        for strategy in ("save-all", "mincut", "mincut:aggressive", "recompute-all"):
            found = findings(layered(3, width=32, batch=64), strategy=strategy)
            assert {each.rule for each in found} <= {"AOT002"}
            assert bool(found) is (strategy in ("save-all", "mincut")), strategy


class TestPolicy:
    def test_under_its_rules_the_values_are_not_saved(self) -> None:
        trace = sample_trace(layered(3, width=32, batch=64), breaks=())
        result = lint(trace, min_bytes=0)
        plan = result.report.policy
        assert plan is not None
        assert plan.saved_bytes == api.partition(trace).saved_bytes - result.report.nbytes
        assert plan.recompute_flops == 0

    def test_there_is_none_where_nothing_can_be_recomputed(self) -> None:
        result = lint(sample_trace(contradiction(), breaks=()))
        assert result.report.policy is None
        with pytest.raises(InputError, match="nothing to put into a policy"):
            result.policy()

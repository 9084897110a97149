"""The views of a difference: text at several widths, Markdown, annotations, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from diff_builders import difference, stack, stack_trace
from golden_text import check_golden

from aotcli.ir.difference import Aspect, Confidence, Difference, Fate, Growth, ValueChange
from aotcli.ir.trace import Environment
from aotcli.render.diff_folders import render_folders_github, render_folders_markdown, render_folders_text
from aotcli.render.diff_github import MOST_ANNOTATIONS, annotation, render_diff_github
from aotcli.render.diff_json import render_diff_json, render_folders_json
from aotcli.render.diff_markdown import render_diff_markdown
from aotcli.render.diff_rows import DiffRows, shown_changes
from aotcli.render.diff_text import render_diff_text
from aotcli.render.diff_words import bytes_pair, cause_text, signed_bytes, value_text, verdict_text
from aotcli.render.page import Page

WORDS = ("old.aot.json", "new.aot.json")


def named(found: Difference) -> Difference:
    """The difference of two files; how surely nodes were paired is not what these tests are about."""
    sure = Confidence(exact=90, wired=5, near=1, aligned=2, changed=2, left_unpaired=3, right_unpaired=4)
    found = replace(found, regions=tuple(replace(region, confidence=sure) for region in found.regions))
    left, right = replace(found.left, name=WORDS[0]), replace(found.right, name=WORDS[1])
    return replace(found, left=left, right=right)


def two_changes() -> Difference:
    """A layer less, another activation, another torch."""
    right = replace(stack_trace(stack(11, act="silu", width=512)), environment=Environment("2.14.0", "cpu"))
    return named(difference(stack_trace(stack(12, width=512)), right))


CASES: dict[str, Callable[[], Difference]] = {
    "same": lambda: named(difference(stack(), stack())),
    "activation": lambda: named(difference(stack(12), stack(12, act="silu"))),
    "layer": lambda: named(difference(stack(12), stack(11))),
    "dtype": lambda: named(difference(stack(12), stack(12, dtype="bfloat16"))),
    "strategies": lambda: named(difference(stack(12), stack(12), "mincut", "recompute-all")),
    "graph-and-decision": lambda: named(difference(stack(12), stack(11), "mincut", "recompute-all")),
    "several": two_changes,
}


def text(found: Difference, width: int = 80, rows: DiffRows | None = None) -> str:
    return render_diff_text(found, Page(width), rows or DiffRows(), WORDS)


class TestText:
    @pytest.mark.parametrize("name", CASES)
    def test_golden(self, name: str) -> None:
        check_golden(f"diff-{name}.txt", text(CASES[name]()))

    @pytest.mark.parametrize("width", [60, 200])
    def test_other_widths(self, width: int) -> None:
        check_golden(f"diff-several-{width}.txt", text(two_changes(), width))

    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.parametrize("width", [60, 80, 120])
    def test_no_line_is_wider_than_the_page(self, name: str, width: int) -> None:
        lines = text(CASES[name](), width).splitlines()
        commands = [line for line in lines if line.startswith("Every row: ")]
        assert max(len(line) for line in lines if line not in commands) <= width

    def test_ascii(self) -> None:
        found = render_diff_text(two_changes(), Page(80, unicode=False), DiffRows(), WORDS)
        found.encode("ascii")
        check_golden("diff-ascii.txt", found)

    def test_every_row(self) -> None:
        check_golden("diff-all.txt", text(CASES["strategies"](), rows=DiffRows(every=True)))

    def test_only_one_half(self) -> None:
        found = two_changes()
        saved, graph = text(found, rows=DiffRows(only="saved")), text(found, rows=DiffRows(only="graph"))
        assert "Saved for backward" in saved
        assert "Graph " not in saved
        assert "Saved for backward" not in graph
        assert "11 × h.*: gelu became silu" in graph

    def test_a_limit(self) -> None:
        found = text(CASES["strategies"](), rows=DiffRows(limit=1))
        assert "2 more" in found
        assert "Every row: aotcli diff old.aot.json new.aot.json --all" in found

    def test_color(self) -> None:
        colored = render_diff_text(two_changes(), Page(80, color=True), DiffRows())
        assert "\x1b[" in colored
        assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render_diff_text(two_changes(), Page(80), DiffRows())

    def test_names_from_files_are_shown_without_control_characters(self) -> None:
        found = CASES["layer"]()
        assert "\x1b" not in text(replace(found, left=replace(found.left, name="a\x1b[31m", model="m\x07")))


class TestWords:
    def test_bytes(self) -> None:
        assert bytes_pair(6 << 30, 7 << 30) == "6.00 → 7.00 GiB"
        assert bytes_pair(512, 2 << 20) == "512 B → 2.0 MiB"
        assert bytes_pair(1 << 30, (1 << 30) + 1) == "1.00 GiB"
        assert [signed_bytes(n) for n in (0, 1024, -2048)] == ["0 B", "+1.0 KiB", "−2.0 KiB"]

    def test_equal_bytes_say_so_and_name_what_lies_outside(self) -> None:
        found = difference(stack(4, extra=True), stack(4, extra=True))
        slower = replace(found.right.totals, backward_flops=1_000_000)
        shown = replace(found, right=replace(found.right, totals=slower), regions=())
        shown = replace(shown, values=(_any_value(),))
        assert verdict_text(shown).startswith("equal: ")
        assert "what differs lies outside" in verdict_text(shown)
        assert "backward " in text(shown)

    def test_equal_bytes_in_other_tensors(self) -> None:
        assert "that are not all the same" in verdict_text(CASES["activation"]())

    def test_causes(self) -> None:
        assert cause_text(CASES["layer"]()) == "the graph changed; mincut planned both sides"
        assert cause_text(CASES["strategies"]()) == "the graph is the same, mincut and recompute-all decide differently"
        both = cause_text(CASES["graph-and-decision"]())
        assert both == "−80.0 KiB: the graph changed (mincut on both); −864.0 KiB: decided differently"
        assert cause_text(CASES["same"]()) == ""

    def test_pytorch_deciding_otherwise_about_one_graph(self) -> None:
        found = CASES["strategies"]()
        torch = replace(found, left=replace(found.left, strategy="torch"), right=replace(found.right, strategy="torch"))
        assert cause_text(torch) == "the graph is the same, PyTorch's partitioner decided differently"

    @pytest.mark.parametrize(
        ("aspect", "left", "right", "expected"),
        [
            (Aspect.DTYPE, ("float32",), ("bfloat16",), "dtype f32 → bf16 in 3 values"),
            (Aspect.SHAPE, (64,), (32,), "shape 64 → 32 in 3 values"),
            (Aspect.SHAPE, (64,), (64,), "3 values: traced at other sizes"),
            (Aspect.WIRING, (), (), "3 ops: reads other values"),
            (Aspect.ARGUMENTS, ("0.1",), ("0.2",), "arguments 0.1 → 0.2 in 3 values"),
            (Aspect.POLICY, ("none",), ("MUST_SAVE",), "policy none → MUST_SAVE in 3 values"),
        ],
    )
    def test_values(
        self, aspect: Aspect, left: tuple[int | str, ...], right: tuple[int | str, ...], expected: str
    ) -> None:
        row = replace(_any_value(), aspect=aspect, left_value=left, right_value=right)
        empty = replace(row.left, module="", what="")
        assert value_text(replace(row, left=empty, right=empty)) == expected


def _any_value() -> ValueChange:
    (row,) = difference(stack(4), stack(4, dtype="bfloat16")).values
    return replace(row, count=3)


def test_tensors_that_changed_their_dtype_alike_are_one_row() -> None:
    found = CASES["dtype"]()
    (row,) = shown_changes(found)
    assert row.count == found.left.totals.saved_tensors
    assert row.delta_bytes == found.saved_delta_bytes
    assert row.how == "was f32"


class TestMarkdown:
    @pytest.mark.parametrize("name", ["same", "several"])
    def test_golden(self, name: str) -> None:
        check_golden(f"diff-{name}.md", render_diff_markdown(CASES[name](), DiffRows()))

    def test_names_cannot_break_the_table(self) -> None:
        found = CASES["layer"]()
        evil = replace(found, left=replace(found.left, name="a|b`<script>`"))
        assert "<script>" not in render_diff_markdown(evil, DiffRows())


class TestGithub:
    def test_golden(self) -> None:
        check_golden("diff-github.txt", render_diff_github(named(difference(stack(11), stack(12))), DiffRows()))

    def test_no_more_annotations_than_github_shows(self) -> None:
        found = difference(stack(1), stack(2, act="decomposed", extra=True), "recompute-all", "save-all")
        assert len(render_diff_github(found, DiffRows()).splitlines()) <= MOST_ANNOTATIONS

    def test_what_the_syntax_takes_for_itself(self) -> None:
        line = annotation("warning", "a: b, c", "50 %\nmore", file="net.py", line="3")
        assert line == "::warning file=net.py,line=3,title=a%3A b%2C c::50 %25%0Amore\n"
        assert annotation("notice", "t", "m", line="x") == "::notice title=t::m\n"

    def test_nothing(self) -> None:
        assert "no difference" in render_diff_github(CASES["same"](), DiffRows())


class TestJson:
    @pytest.mark.parametrize("name", CASES)
    def test_the_shape_of_the_data(self, name: str) -> None:
        found = CASES[name]()
        document = json.loads(render_diff_json(found))
        assert list(document) == [
            *("schema", "schema_version", "left", "right", "is_empty", "same_graph", "same_saved", "environment"),
            *("saved_delta_bytes", "graph_bytes", "decision_bytes", "yardstick", "unknown", "regions", "confidence"),
            *("saved", "fates", "rewrites", "values"),
        ]
        assert (document["schema"], document["schema_version"]) == ("aotcli.diff", "1.0")
        assert document["is_empty"] == (name == "same")
        assert sum(row["delta_bytes"] for row in document["saved"]) == document["saved_delta_bytes"]
        assert document["graph_bytes"] + document["decision_bytes"] == document["saved_delta_bytes"]
        for row in document["saved"]:
            assert row["change"] in set(Growth)
            assert row["left"] or row["right"]
            for side in (row["left"], row["right"]):
                assert side is None or (side["fate"] in set(Fate) and isinstance(side["nbytes"], int))
                assert side is None or len(side["names"]) >= row["count"]
        for row in document["rewrites"]:
            assert {"count", "whole", "region", "left", "right"} == set(row)
        for side in ("left", "right"):
            assert document[side]["saved_bytes"] == getattr(found, side).totals.saved_bytes

    def test_folders(self) -> None:
        document = json.loads(render_folders_json({"a": CASES["layer"]()}, [("b", "new")]))
        assert document["schema"] == "aotcli.diff-folders"
        assert document["missing"] == [{"name": "b", "folder": "new"}]
        assert list(document["differences"]) == ["a"]


class TestFolders:
    def found(self) -> dict[str, Difference]:
        return {"gpt": CASES["layer"](), "mlp": CASES["same"]()}

    def test_text(self) -> None:
        missing = [("big", "old"), ("small", "new")]
        check_golden("diff-folders.txt", render_folders_text(self.found(), Page(80), DiffRows(), missing, {}))

    def test_markdown(self) -> None:
        shown = render_folders_markdown(self.found(), DiffRows(), [("big", "old")])
        assert "**2 records compared, 1 differs, 1 on one side only**" in shown
        assert shown.count("### Saved for backward") == 1

    def test_github(self) -> None:
        shown = render_folders_github(self.found(), DiffRows(), [("big", "old")])
        assert "::warning title=big::not in old" in shown
        assert shown.count("::notice") == 1

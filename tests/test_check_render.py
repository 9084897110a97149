"""Checks as text, Markdown, JSON, annotations and XML: what a reader sees, and what no name can break out of."""

from __future__ import annotations

import dataclasses
import json
import re
import xml.etree.ElementTree as ET

import pytest
from builders import layered, sample_trace
from check_runs import all_kinds, better, error, failed, new, ok
from golden_text import check_golden
from hypothesis import given
from hypothesis import strategies as st

from aotcli import api
from aotcli.analysis.diff import DiffSide, diff_plans
from aotcli.ir.check import (
    Acceptance,
    CheckRun,
    Contributor,
    Failure,
    FigureBreach,
    Figures,
    ModelCheck,
    Quantity,
    Structure,
    StructureBreach,
    Tolerance,
)
from aotcli.render.check_github import MOST_ANNOTATIONS, defuse, render_check_github
from aotcli.render.check_graph import graph_changes
from aotcli.render.check_json import render_check_json
from aotcli.render.check_junit import render_check_junit
from aotcli.render.check_markdown import render_check_markdown
from aotcli.render.check_text import render_accepted_text, render_check_text, render_model_text
from aotcli.render.check_words import delta_text, select_contributors, step_text, tolerance_text
from aotcli.render.page import Page

MIB = 1 << 20
# Text as files that others wrote may hold it: control characters, commands to a CI runner, markup.
HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "::error::x",
            "\n::set-env name=a::b",
            "a%0A::x",
            "##[error]x",
            "]]>",
            "<a>&\"'",
            "\x00\x1b[31m",
            "\ud800",
            "| x |",
        ]
    ),
)


def nowhere(source: str) -> None:
    return None


def here(source: str) -> tuple[str, int]:
    file, _, line = source.rpartition(":")
    return file, int(line)


class TestText:
    @pytest.mark.parametrize("width", [60, 80, 120])
    def test_all_kinds(self, width: int) -> None:
        check_golden(f"check-{width}.txt", render_check_text(all_kinds(), Page(width)))

    def test_ascii(self) -> None:
        text = render_check_text(all_kinds(), Page(80, unicode=False))
        text.encode("ascii")
        check_golden("check-ascii.txt", text)

    def test_only_commands_are_wider_than_the_page(self) -> None:
        for width in (60, 80, 100):
            for line in render_check_text(all_kinds(), Page(width)).splitlines():
                assert len(line) <= width or "aotcli" in line, line

    def test_quiet_leaves_verdicts(self) -> None:
        text = render_check_text(all_kinds(), Page(80), quiet=True)
        assert "aotcli accept" not in text
        assert "note:" not in text
        assert "+4608.0" in text
        assert text.splitlines()[0].startswith("ok")

    def test_nothing_but_a_line_for_what_is_well(self) -> None:
        text = render_check_text(CheckRun((ok(),)), Page(80))
        assert text == "ok    mlp  saved 576.0 KiB (same) · peak 2.0 MiB (same)\n1 checked in 2.5 s\n"

    def test_a_figure_that_did_not_grow_has_no_signs(self) -> None:
        rows = (Contributor(3 * MIB, 2, "h.*", "mm", (2, 3), "float32", "net.py:1"),)
        breach = FigureBreach(Quantity.SAVED, 3 * MIB, 2 * MIB, 3 * MIB, contributors=rows)
        text = render_model_text(dataclasses.replace(failed(), breaches=(breach,)), Page(80))
        assert "3.0 MiB (as in the baseline)   1.0 MiB over the limit 2.0 MiB" in text
        assert "+3.0" not in text

    def test_flops(self) -> None:
        rows = (Contributor(2_000_000, 1, "fc", "mm", (2, 3), "float32", "net.py:1"),)
        breach = FigureBreach(Quantity.RECOMPUTE, 3_000_000, 10, 1_000_000, Tolerance(), rows)
        text = render_model_text(dataclasses.replace(failed(), breaches=(breach,)), Page(80))
        assert "rerun  1.00 → 3.00 MFLOP   +2.00 MFLOP (+200.0 %), limit +0 %" in text
        assert re.search(r"^ +\+2\.00 M  1  fc", text, re.MULTILINE)

    def test_many_rows_are_cut(self) -> None:
        rows = tuple(Contributor((100 - i) * MIB, 1, f"m{i}", "mm", (2,), "float32") for i in range(50))
        breach = dataclasses.replace(failed().breaches[0], contributors=rows)
        text = render_model_text(dataclasses.replace(failed(), breaches=(breach,)), Page(80))
        assert "42 more" in text
        assert f"+{sum(100 - i for i in range(8, 50)):.1f}" in text

    def test_the_first_difference_where_there_is_no_better_word(self) -> None:
        breach = StructureBreach(Structure.EXACT, Structure.IGNORE, "one thing is another")
        text = render_model_text(dataclasses.replace(failed(), breaches=(breach,)), Page(80))
        assert "graph: one thing is another" in text

    def test_accepted(self) -> None:
        before, now = Figures(2 * MIB, 0, 0), Figures(3 * MIB, 0, 0)
        accepted = (
            Acceptance("a", ".aotcli/a.aot.json", 5000, now, None, ""),
            Acceptance("b", ".aotcli/b.aot.json", 5000, now, before, "one layer more"),
        )
        assert render_accepted_text(accepted, Page(80)) == (
            "accepted a  saved 3.0 MiB\n"
            "  .aotcli/a.aot.json, 4.9 KiB\n"
            "accepted b  saved 2.0 → 3.0 MiB  +1.0 MiB (+50.0 %)\n"
            "  .aotcli/b.aot.json, 4.9 KiB: one layer more\n"
            "\n"
            "Next:  git add .aotcli/a.aot.json .aotcli/b.aot.json\n"
        )


class TestWords:
    @pytest.mark.parametrize(
        ("before", "now", "step", "delta"),
        [
            (2 * MIB, 3 * MIB, "2.0 → 3.0 MiB", "+1.0 MiB (+50.0 %)"),
            (MIB // 2, 3 * MIB, "512.0 KiB → 3.0 MiB", "+2.5 MiB (+500.0 %)"),
            (3 * MIB, 3 * MIB + 4, "3.0 → 3.0 MiB", "+4 B (under +0.1 %)"),
            (0, 10, "0 → 10 B", "+10 B (from nothing)"),
            (10, 0, "10 → 0 B", "−10 B (−100.0 %)"),
            (5, 5, "5 → 5 B", "same"),
        ],
    )
    def test_changes(self, before: int, now: int, step: str, delta: str) -> None:
        assert step_text(Quantity.SAVED, before, now) == step
        assert delta_text(Quantity.SAVED, before, now) == delta

    def test_tolerances(self) -> None:
        assert tolerance_text(Quantity.SAVED, Tolerance(amount=64 * MIB)) == "+64.0 MiB"
        assert tolerance_text(Quantity.RECOMPUTE, Tolerance(amount=2_000_000)) == "+2.00 MFLOP"
        assert tolerance_text(Quantity.SAVED, Tolerance()) == "+0 %"

    @given(st.lists(st.integers(-(10**12), 10**12), max_size=40), st.integers(1, 12))
    def test_rows_shown_and_left_add_up(self, amounts: list[int], most: int) -> None:
        rows = [Contributor(amount, 1, "m", "mm") for amount in sorted(amounts, key=abs, reverse=True)]
        found = select_contributors(rows, most)
        assert len(found.shown) + found.rest == len(rows)
        assert sum(row.amount for row in found.shown) + found.rest_amount == sum(amounts)
        assert len(found.shown) <= most + 1
        assert found.rest != 1

    def test_the_graph_in_phrases(self) -> None:
        sides = []
        for graph in (layered(3), layered(4)):
            trace = sample_trace(graph, breaks=())
            sides.append(DiffSide(trace, api.partition(trace, alternatives=False).plan))
        assert graph_changes(diff_plans(*sides))
        assert graph_changes(diff_plans(sides[0], sides[0])) == []
        assert graph_changes(None) == []


class TestMarkdown:
    def test_all_kinds(self) -> None:
        check_golden("check.md", render_check_markdown(all_kinds()))

    def test_names_make_no_markup(self) -> None:
        check = dataclasses.replace(failed(), notes=("a | b\n# c <script>", "`x`"))
        text = render_check_markdown(CheckRun((check,)))
        assert "<script>" not in text
        assert "a \\| b" in text

    def test_a_command_does_not_leave_its_fence(self) -> None:
        check = dataclasses.replace(failed(), look_command="aotcli diff 'a\n````\n# b' c")
        lines = render_check_markdown(CheckRun((check,))).splitlines()
        assert [line for line in lines if line.startswith("````")] == ["````sh", "````"]


class TestJson:
    def test_it_holds_everything(self) -> None:
        document = json.loads(render_check_json(all_kinds()))
        assert (document["schema"], document["schema_version"], document["exit_code"]) == ("aotcli.check", "1.0", 2)
        assert [each["verdict"] for each in document["models"]] == ["ok", "fail", "new", "better", "error"]
        gpt = document["models"][1]
        assert gpt["before"]["saved_bytes"] == 6537781252
        assert [each["rule"] for each in gpt["breaches"]] == [
            "saved_bytes.growth",
            "peak_bytes.growth",
            "forbid_ops",
            "structure",
        ]
        saved = gpt["breaches"][0]
        assert sum(row["amount"] for row in saved["contributors"]) == saved["now"] - saved["before"]
        assert gpt["limits"]["figures"][0] == {"quantity": "saved_bytes", "max": 1 << 40, "growth": "+1 %"}
        assert document["orphans"] == [".aotcli/old.aot.json"]

    def test_times_are_left_out_so_that_equal_runs_are_equal(self) -> None:
        assert render_check_json(CheckRun((ok(),))) == render_check_json(
            CheckRun((dataclasses.replace(ok(), elapsed_s=99.0),))
        )


COMMAND = re.compile(r"::(error|notice) ((?:[a-z]+=[^,:\n]*,?)+)::([^\n]*)")


class TestGithub:
    def test_all_kinds(self) -> None:
        check_golden("check-github.txt", render_check_github(all_kinds(), "report\n", here))

    def test_lines_of_the_model(self) -> None:
        text = render_check_github(CheckRun((failed(),)), "", here)
        found = [dict(pair.split("=") for pair in match[2].split(",")) for match in COMMAND.finditer(text)]
        assert [(each["file"], each.get("line")) for each in found] == [
            ("gpt.py", "14"),
            ("gpt.py", "14"),
            ("gpt.py", "14"),
            ("pyproject.toml", None),
        ]

    def test_a_line_that_is_not_the_repositorys_falls_back_to_the_configuration(self) -> None:
        text = render_check_github(CheckRun((failed(),)), "", nowhere)
        assert text.count("file=pyproject.toml") == 4

    def test_no_more_than_ten_and_each_model_first(self) -> None:
        many = tuple(
            dataclasses.replace(failed(), model=dataclasses.replace(failed().model, name=f"m{i}")) for i in range(7)
        )
        lines = render_check_github(CheckRun(many), "", here).splitlines()
        assert len(lines) == MOST_ANNOTATIONS
        assert {f"m{i}" for i in range(7)} <= {re.findall(r"title=(m\d)", line)[0] for line in lines[:7]}
        assert "19 more findings" in lines[-1]

    def test_exactly_ten_are_all_shown(self) -> None:
        many = tuple(new() for _ in range(10))
        assert "more findings" not in render_check_github(CheckRun(many), "", here)

    @given(HOSTILE, HOSTILE, HOSTILE)
    def test_nothing_breaks_out_of_its_command(self, name: str, note: str, source: str) -> None:
        check = hostile(name, note, source)
        report = render_check_text(CheckRun((check, error())), Page(80))
        text = render_check_github(CheckRun((check,)), report, lambda source: (source, 3))
        for line in text.split("\n"):
            assert "##[" not in line
            if line.lstrip().startswith("::"):
                assert COMMAND.fullmatch(line), line

    @given(st.text())
    def test_a_report_holds_no_command(self, text: str) -> None:
        for line in defuse(text).split("\n"):
            assert not line.lstrip().startswith("::")
            assert "##[" not in line

    def test_escaping_is_that_of_the_toolkit(self) -> None:
        failure = Failure("100 % of a:b, c\nnext", "", "", 2)
        check = dataclasses.replace(error(), failure=failure)
        assert render_check_github(CheckRun((check,)), "", here) == (
            "::error file=pyproject.toml,title=lost could not be checked::100 %25 of a:b, c%0Anext\n"
        )


def hostile(name: str, note: str, source: str) -> ModelCheck:
    """A failed check whose every text somebody else chose."""
    row = Contributor(5, 1, name, note, (2,), "float32", source)
    base = failed()
    return dataclasses.replace(
        base,
        model=dataclasses.replace(base.model, name=name, config=source),
        breaches=(dataclasses.replace(base.breaches[0], contributors=(row,)),),
        notes=(note,),
        reason=note,
        accept_command=f"aotcli accept {name}",
    )


class TestJunit:
    def test_all_kinds(self) -> None:
        check_golden("check-junit.xml", render_check_junit(all_kinds()))

    def test_counts(self) -> None:
        root = ET.fromstring(render_check_junit(all_kinds()))
        assert (root.attrib["failures"], root.attrib["errors"], root.attrib["time"]) == ("5", "1", "21.200")
        assert int(root.attrib["tests"]) == len(root.findall(".//testcase"))
        assert int(root.attrib["failures"]) == len(root.findall(".//failure"))
        assert [suite.attrib["name"] for suite in root] == ["mlp", "gpt", "unet", "resnet", "lost"]

    def test_every_demand_is_a_case(self) -> None:
        suite = ET.fromstring(render_check_junit(CheckRun((failed(),))))[0]
        cases = {case.attrib["name"]: case.find("failure") is not None for case in suite.iter("testcase")}
        assert cases == {
            "saved_bytes.max": False,
            "saved_bytes.growth": True,
            "peak_bytes.growth": True,
            "forbid_ops": True,
            "structure": True,
        }

    @given(HOSTILE, HOSTILE, HOSTILE)
    def test_it_is_xml_whatever_names_hold(self, name: str, note: str, source: str) -> None:
        check = hostile(name, note, source)
        failure = dataclasses.replace(error(), failure=Failure(name, note, source, 2))
        root = ET.fromstring(render_check_junit(CheckRun((check, failure))).encode("utf-8"))
        assert len(root) == 2

    def test_a_better_model_passes(self) -> None:
        root = ET.fromstring(render_check_junit(CheckRun((better(),))))
        assert (root.attrib["failures"], root.attrib["errors"]) == ("0", "0")

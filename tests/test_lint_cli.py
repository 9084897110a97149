"""`aotcli lint` on records: options, formats, files, exit codes, configuration; docs/lint.md against the registry."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import pytest
from builders import GraphBuilder, layered, sample_trace, two_matmuls
from golden_text import check_golden
from test_lint_rules import contradiction
from typer.testing import CliRunner, Result

from aotcli import api
from aotcli.api.lint import lint, rule_infos
from aotcli.cli.main import app
from aotcli.errors import AotcliError
from aotcli.ir.joint import Const
from aotcli.ir.trace import GraphBreak, ModelInfo, Trace
from aotcli.render.page import Page

ROOT = Path(__file__).parents[1]
CODES = [info.code for info in rule_infos()]


def blocks_trace() -> Trace:
    """Twelve blocks with 11 values worth recomputing, 1.4 MiB together, and a graph break."""
    return sample_trace(
        layered(12, width=64, batch=512, level="inductor"),
        model=ModelInfo("blocks", "blocks.py", 49_152, 196_608, 0, 131_072, ("float32",), ("x f32[512,64]",)),
        breaks=(GraphBreak("Call to `torch._dynamo.graph_break()`: User-inserted graph break.", "net.py:4"),),
        loss=True,
    )


def many_trace() -> Trace:
    """Weights of many shapes, each cast to bfloat16."""
    g = GraphBuilder(level="inductor")
    x, t = g.input("x", (8, 16), "bfloat16"), g.tangent(shape=(8, 16), dtype="bfloat16")
    gradients = []
    for number in range(12):
        width = 16 * (number + 1)
        w = g.param(f"w{number}", (width, 16), origin=f"experts.{number}.up_projection.weight")
        owner = {"module": f"experts.{number}.up_projection", "module_type": "Linear", "source": f"net.py:{number + 1}"}
        dtype = Const("dtype", "torch.bfloat16")
        low = g.pointwise("prims.convert_element_type.default", w, dtype, dtype="bfloat16", **owner)
        x = g.matmul(g.matmul(x, low, (8, width), dtype="bfloat16"), low, (8, 16), dtype="bfloat16")
        t = g.matmul(g.matmul(t, low, (8, width), dtype="bfloat16"), low, (8, 16), dtype="bfloat16")
        gradients.append(None)
    return sample_trace(g.build([x], [t, *gradients]), breaks=())


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("COLUMNS", "NO_COLOR", "CI", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    api.save(blocks_trace(), "blocks.aot.json")
    api.save(sample_trace(two_matmuls(), breaks=()), "clean.aot.json")
    api.save(sample_trace(contradiction(layers=2), breaks=()), "conflict.aot.json")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["lint", *arguments], input=stdin)


def report(*arguments: str) -> dict[str, object]:
    return json.loads(run(*arguments, "--format", "json").stdout)


def found(*arguments: str) -> list[str]:
    return [finding["rule"] for finding in report(*arguments)["findings"]]  # type: ignore[union-attr, index]


def failure(*arguments: str) -> AotcliError:
    result = run(*arguments)
    assert isinstance(result.exception, AotcliError), (result.output, result.exception)
    assert result.stdout == ""
    return result.exception


class TestOutcome:
    def test_findings_are_exit_code_1(self) -> None:
        result = run("blocks.aot.json")
        assert result.exit_code == 1
        assert "2 findings, 1.4 MiB at stake" in result.stdout

    def test_none_is_exit_code_0(self) -> None:
        result = run("clean.aot.json")
        assert result.exit_code == 0
        assert "No findings; mincut saves" in result.stdout

    def test_annotations_without_a_plan_are_findings_not_an_error(self) -> None:
        result = run("conflict.aot.json")
        assert result.exit_code == 1
        assert "net.py:12  MUST_SAVE on topk  ×2" in result.stdout
        assert "net.py:13  MUST_RECOMPUTE on topk [0]" in result.stdout

    def test_a_step_with_nothing_in_it(self) -> None:
        empty = sample_trace(GraphBuilder().build([], []), breaks=())
        for trace in (empty, dataclasses.replace(empty, regions=())):
            result = lint(trace, min_bytes=0)
            assert (result.exit_code, "No findings; mincut saves 0 B" in result.text()) == (0, True)
            assert json.loads(result.json())["findings"] == []

    def test_a_record_from_standard_input(self) -> None:
        assert run("-", stdin=Path("clean.aot.json").read_text()).exit_code == 0

    @pytest.mark.parametrize(
        ("arguments", "what", "fix"),
        [
            (("absent.aot.json",), "cannot be read", ""),
            (("blocks.aot.json", "--select", "AOT03"), "--select AOT03: there is no such rule", "AOT003"),
            (("blocks.aot.json", "--ignore", "E501"), "--ignore E501: there is no such rule", "--list-rules"),
            (("blocks.aot.json", "--ignore", "AOT"), "no rule is left", ""),
            (("blocks.aot.json", "--min-bytes", "24"), "--min-bytes 24", "24MiB"),
            (("blocks.aot.json", "--min-bytes", "lots"), "--min-bytes lots", "24MiB"),
            (("blocks.aot.json", "--strategy", "mincutt"), "no strategy 'mincutt'", "mincut"),
            (("blocks.aot.json", "--format", "junit"), "--format junit", "--format"),
            (("blocks.aot.json", "--level", "aten"), "does not go with a record", "trace the model again"),
            (("blocks.aot.json", "-o", "report.xyz"), "does not say which format", "--format"),
        ],
        ids=str,
    )
    def test_bad_input(self, arguments: tuple[str, ...], what: str, fix: str) -> None:
        error = failure(*arguments)
        assert error.exit_code == 2
        assert what in error.what
        assert fix in error.fix


class TestChoosing:
    def test_select_and_ignore(self) -> None:
        assert found("blocks.aot.json") == ["AOT002", "AOT007"]
        assert found("blocks.aot.json", "--select", "AOT007") == ["AOT007"]
        assert found("blocks.aot.json", "--select", "AOT002,AOT007", "--ignore", "AOT007") == ["AOT002"]
        assert found("blocks.aot.json", "--ignore", "AOT007", "--ignore", "AOT002") == []

    def test_min_bytes(self) -> None:
        assert found("blocks.aot.json", "--min-bytes", "2MiB") == ["AOT007"]
        assert found("blocks.aot.json", "--min-bytes", "0") == ["AOT002", "AOT007"]

    def test_another_strategy(self) -> None:
        assert report("blocks.aot.json", "--strategy", "recompute-all")["strategy"] == "recompute-all"
        assert found("blocks.aot.json", "--strategy", "mincut:aggressive") == ["AOT007"]

    def test_the_rules_are_listed(self) -> None:
        text = run("--list-rules").stdout
        for info in rule_infos():
            assert f"{info.code}  {info.name}" in text


class TestConfiguration:
    def configure(self, text: str) -> None:
        Path("pyproject.toml").write_text(f"[tool.aotcli.lint]\n{text}")

    def test_keys(self) -> None:
        self.configure('select = ["AOT00"]\nignore = "AOT007"\nmin-bytes = "1KiB"')
        assert found("blocks.aot.json") == ["AOT002"]
        assert report("blocks.aot.json")["min_bytes"] == 1024

    def test_the_command_line_comes_first(self) -> None:
        self.configure('ignore = "AOT007"\nmin-bytes = 1048576000')
        assert found("blocks.aot.json") == []
        assert found("blocks.aot.json", "--ignore", "AOT001", "--min-bytes", "1MiB") == ["AOT002", "AOT007"]

    @pytest.mark.parametrize(
        ("text", "what", "fix"),
        [
            ("selct = 'AOT002'", "unknown key 'selct'", "did you mean 'select'?"),
            ("min_bytes = 1", "unknown key 'min_bytes'", "did you mean 'min-bytes'?"),
            ("select = 2", "select is [2]", "correct select"),
            ("min-bytes = 1.5", "min-bytes is 1.5", "write min-bytes"),
            ("min-bytes = true", "min-bytes is True", "write min-bytes"),
            ("min-bytes = '24'", "min-bytes is '24'", "24MiB"),
            ("select = 'AOT9'", "--select AOT9: there is no such rule", ""),
        ],
    )
    def test_what_is_not_understood_is_refused(self, text: str, what: str, fix: str) -> None:
        self.configure(text)
        error = failure("blocks.aot.json")
        assert (what in error.what or what.replace("[2]", "2") in error.what, fix in error.fix) == (True, True), error

    def test_a_table_is_needed(self) -> None:
        Path("pyproject.toml").write_text("[tool.aotcli]\nlint = 1")
        assert "lint is 1" in failure("blocks.aot.json").what


class TestText:
    @pytest.mark.parametrize("width", [60, 80, 200])
    def test_at_widths(self, width: int) -> None:
        check_golden(f"lint-{width}.txt", lint(blocks_trace(), target="blocks.py").text(Page(width)))

    def test_ascii(self) -> None:
        text = lint(blocks_trace(), target="blocks.py").text(Page(80, unicode=False))
        text.encode("ascii")
        check_golden("lint-ascii.txt", text)

    def test_a_contradiction(self) -> None:
        check_golden("lint-conflict.txt", lint(sample_trace(contradiction(layers=2), breaks=())).text(Page(80)))

    def test_many_findings(self) -> None:
        result = lint(many_trace(), min_bytes=0)
        assert len(result.findings) == 12
        text = result.text(Page(80))
        check_golden("lint-many.txt", text)
        assert "and 4 more, 5.0 KiB: --all lists them" in text
        assert "more" not in result.text(Page(80), every=True)

    @pytest.mark.parametrize("width", [60, 80])
    def test_no_line_is_wider_than_the_page(self, width: int) -> None:
        for trace in (blocks_trace(), many_trace(), sample_trace(contradiction(), breaks=())):
            lines = lint(trace, min_bytes=0).text(Page(width)).splitlines()
            # Commands and code are to be copied whole.
            assert [line for line in lines if len(line) > width and not line.startswith("       ")] == []

    def test_quiet_leaves_notes_and_commands_out(self) -> None:
        text = run("blocks.aot.json", "-q").stdout
        assert "--write-policy" not in text
        assert "fix:" in text

    def test_names_of_others_reach_no_terminal_raw(self) -> None:
        trace = sample_trace(two_matmuls(), breaks=(GraphBreak("a\x1b[31mb", "n\x07et.py:9"),))
        assert "\x1b" not in lint(trace).text()
        assert "\x07" not in lint(trace).text()
        assert "\x1b" not in lint(trace).markdown()


class TestOtherFormats:
    def test_json(self) -> None:
        document = report("blocks.aot.json")
        assert (document["schema"], document["schema_version"], document["exit_code"]) == ("aotcli.lint", "1.0", 1)
        first = document["findings"][0]  # type: ignore[index]
        assert (first["rule"], first["module"], first["count"], first["nbytes"]) == ("AOT002", "h.*", 11, 11 * 131_072)
        assert len(first["values"]) == 11
        assert {"module": "h.*", "op": "aten.add", "action": "recompute"}.items() <= first["policy_rules"][0].items()
        assert document["at_stake_bytes"] == 11 * 131_072
        assert document["policy"]["saved_bytes"] == document["saved_bytes"] - 11 * 131_072  # type: ignore[index]

    def test_markdown(self) -> None:
        check_golden("lint.md", run("blocks.aot.json", "--format", "markdown").stdout)

    def test_annotations_stand_on_lines_of_the_repository(self) -> None:
        Path("net.py").write_text("")
        Path("pyproject.toml").write_text("")
        lines = [line for line in run("blocks.aot.json", "-f", "github").stdout.splitlines() if line.startswith("::")]
        assert lines[0].startswith("::warning file=net.py,line=9,title=AOT002 cheap to recompute::h.*  add")
        assert lines[1].startswith("::warning file=net.py,line=4,title=AOT007 graph break::")
        assert "%0Afix: " in lines[0]

    def test_the_summary_of_a_job(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
        run("blocks.aot.json", "-f", "github")
        assert (tmp_path / "summary.md").read_text().startswith("### aotcli lint: blocks\n")

    def test_what_is_not_in_the_repository_is_not_pointed_at(self) -> None:
        lines = [line for line in run("blocks.aot.json", "-f", "github").stdout.splitlines() if line.startswith("::")]
        assert lines[0].startswith("::warning title=AOT002 cheap to recompute::")

    def test_at_most_ten_annotations(self) -> None:
        result = lint(many_trace(), min_bytes=0)
        lines = [line for line in result.github(lambda source: None).splitlines() if line.startswith("::")]
        assert len(lines) == 10
        assert lines[-1].endswith("::3 more findings stand in the log of this step")

    def test_annotations_without_a_plan_are_errors(self) -> None:
        text = lint(sample_trace(contradiction(), breaks=())).github(lambda source: ("net.py", int(source[7:])))
        assert "\n::error file=net.py,line=12,title=AOT001 impossible annotations::" in text

    def test_no_text_of_a_record_is_a_command_to_the_runner(self) -> None:
        reason = "x\n::error::gotcha %0A::set-output name=a::b"
        trace = sample_trace(two_matmuls(), breaks=(GraphBreak(reason, "::warning::net.py:9"),))
        text = lint(trace).github(lambda source: None)
        commands = [line for line in text.splitlines() if line.lstrip().startswith(("::", "##["))]
        assert [line.split(" ", 1)[0] for line in commands] == ["::warning"]
        assert "%250A" in commands[0]


class TestFiles:
    def test_the_name_means_the_format(self) -> None:
        for name, start in (("r.json", "{"), ("r.md", "<!-- written by aotcli -->"), ("r.txt", "# written by aotcli")):
            assert run("blocks.aot.json", "-o", name).exit_code == 1
            assert Path(name).read_text().startswith(start)
            assert run("blocks.aot.json", "-o", name).exit_code == 1  # its own file, replaced

    def test_github_into_a_file(self) -> None:
        assert run("blocks.aot.json", "--format", "github", "-o", "annotations.txt").exit_code == 1
        assert "::warning " in Path("annotations.txt").read_text()

    def test_a_file_of_somebody_else_stays(self) -> None:
        Path("mine.md").write_text("mine")
        assert "was not written by aotcli" in failure("blocks.aot.json", "-o", "mine.md").what
        assert "was not written by aotcli" in failure("blocks.aot.json", "--write-policy", "mine.md").what
        assert Path("mine.md").read_text() == "mine"
        assert run("blocks.aot.json", "-o", "mine.md", "--force").exit_code == 1

    def test_a_policy_that_partition_takes(self) -> None:
        before = report("blocks.aot.json")
        result = run("blocks.aot.json", "--write-policy", "lint.toml")
        assert result.exit_code == 1
        text = Path("lint.toml").read_text()
        assert text.startswith("# written by aotcli\n# what lint found in blocks")
        assert tomllib.loads(text)["rule"][0]["action"] == "recompute"
        plan = CliRunner().invoke(
            app, ["partition", "blocks.aot.json", "--strategy", "policy:lint.toml", "--format", "json"]
        )
        saved = json.loads(plan.stdout)["regions"][0]["saved_bytes"]
        assert saved == before["policy"]["saved_bytes"]  # type: ignore[index]
        assert found("blocks.aot.json", "--strategy", "policy:lint.toml", "--min-bytes", "0") == ["AOT007"]
        assert run("blocks.aot.json", "--write-policy", "lint.toml").exit_code == 1  # its own file, replaced

    def test_no_policy_where_nothing_can_be_computed_again(self) -> None:
        result = run("clean.aot.json", "--write-policy", "lint.toml")
        assert (result.exit_code, Path("lint.toml").exists()) == (0, False)
        assert "lint.toml was not written" in result.stderr


class TestDocumentation:
    TEXT = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")

    def test_every_rule_has_a_section_and_every_section_a_rule(self) -> None:
        headings = re.findall(r"^## (AOT\d+) (.+)$", self.TEXT, re.MULTILINE)
        assert headings == [(info.code, info.name) for info in rule_infos()]

    @pytest.mark.parametrize("code", CODES)
    def test_every_section_has_an_example_and_a_remedy(self, code: str) -> None:
        section = self.TEXT.partition(f"## {code} ")[2].partition("\n## ")[0]
        assert "```" in section
        assert "**Remedy.**" in section

    def test_every_option_is_named(self) -> None:
        for option in ("select", "ignore", "min-bytes", "strategy", "format", "write-policy", "list-rules"):
            assert f"--{option}" in self.TEXT, option
        for key in ("select", "ignore", "min-bytes"):
            assert f"{key} = " in self.TEXT, key

    def test_codes_are_unique_and_names_are_short(self) -> None:
        assert len(set(CODES)) == len(CODES)
        assert all(re.fullmatch(r"AOT\d{3}", code) for code in CODES)
        assert all(len(info.name) <= 30 for info in rule_infos())

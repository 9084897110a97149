"""Where results go: formats, files that may and may not be replaced, and files that cannot be written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from builders import layered, sample_trace
from typer.testing import CliRunner, Result

from aotcli import api
from aotcli.cli.main import app
from aotcli.errors import AotcliError


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "net.aot.json"
    api.save(sample_trace(layered(3), breaks=()), path)
    return path


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)


def failure(result: Result) -> AotcliError:
    assert isinstance(result.exception, AotcliError), result.output
    assert result.exception.exit_code == 2
    return result.exception


class TestFormats:
    @pytest.mark.parametrize(
        ("name", "start"),
        [
            ("plan.json", '{\n  "schema": "aotcli.partition",\n  "schema_version": "1.0",'),
            ("plan.md", "<!-- written by aotcli -->\n### Saved for backward: net"),
            ("plan.markdown", "<!-- written by aotcli -->\n### Saved for backward: net"),
            ("plan.txt", "# written by aotcli\nnet  model, no loss"),
        ],
    )
    def test_the_name_says_which(self, record: Path, name: str, start: str) -> None:
        result = run("partition", record, "-o", name)
        assert result.exit_code == 0, result.output
        assert Path(name).read_text().startswith(start)
        assert result.stdout == ""
        assert result.stderr == f"wrote {name}\n"

    def test_format_beats_the_name(self, record: Path) -> None:
        assert run("partition", record, "-o", "plan.md", "--format", "json").exit_code == 0
        assert json.loads(Path("plan.md").read_text())["schema"] == "aotcli.partition"

    def test_a_name_that_says_nothing(self, record: Path) -> None:
        error = failure(run("partition", record, "-o", "plan.xyz"))
        assert "does not say which format" in error.what
        assert "--format" in error.fix
        assert not Path("plan.xyz").exists()

    def test_an_unknown_format(self, record: Path) -> None:
        assert "--format yaml" in failure(run("partition", record, "--format", "yaml")).what

    def test_a_plan_file(self, record: Path) -> None:
        from aotcli.ir.serial import read_plan

        result = run("partition", record, "--strategy", "save-all", "-o", "plan.aot.json")
        assert result.exit_code == 0, result.output
        assert "Saved for backward" in result.stdout
        plan = read_plan("plan.aot.json")
        assert plan.strategy == "save-all"

    def test_a_plan_file_of_several_plans(self, record: Path) -> None:
        error = failure(run("partition", record, "-s", "mincut", "-s", "save-all", "-o", "plan.aot.json"))
        assert error.what == "a plan file holds one plan"
        assert not Path("plan.aot.json").exists()

    def test_a_plan_file_is_no_record(self, record: Path) -> None:
        run("partition", record, "-o", "plan.aot.json")
        error = failure(run("show", "plan.aot.json"))
        assert "plan" in str(error)

    def test_quiet_writes_no_note(self, record: Path) -> None:
        assert run("partition", record, "-q", "-o", "plan.json").stderr == ""


class TestReplacing:
    @pytest.mark.parametrize("name", ["plan.json", "plan.md", "plan.txt", "plan.aot.json"])
    def test_own_files_are_replaced(self, record: Path, name: str) -> None:
        assert run("partition", record, "-o", name, "--strategy", "save-all").exit_code == 0
        first = Path(name).read_bytes()
        assert run("partition", record, "-o", name, "--strategy", "recompute-all").exit_code == 0
        assert Path(name).read_bytes() != first

    @pytest.mark.parametrize("name", ["plan.json", "README.md", "plan.txt", "plan.aot.json"])
    def test_others_are_not(self, record: Path, name: str) -> None:
        Path(name).write_text("# aotcli\nmine\n")
        error = failure(run("partition", record, "-o", name))
        assert "was not written by aotcli" in error.what
        assert "--force" in error.fix
        assert Path(name).read_text() == "# aotcli\nmine\n"
        assert run("partition", record, "-o", name, "--force").exit_code == 0
        assert "mine" not in Path(name).read_text()

    def test_an_empty_file_is_nobodys(self, record: Path) -> None:
        Path("plan.md").touch()
        assert run("partition", record, "-o", "plan.md").exit_code == 0

    def test_nothing_half_written_is_left(self, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        error = failure(run("partition", record, "-o", "plan.md"))
        assert (error.what, error.why) == ("plan.md cannot be written", "No space left on device")
        assert [path.name for path in Path().iterdir() if path.name.endswith((".part", ".tmp", ".md"))] == []

    def test_a_folder_that_is_not_there(self, record: Path) -> None:
        error = failure(run("partition", record, "-o", "no/such/plan.md"))
        assert "mkdir -p no/such" in error.fix

    def test_a_folder_in_the_files_place(self, record: Path) -> None:
        Path("plan.md").mkdir()
        assert "is a folder" in failure(run("partition", record, "-o", "plan.md")).what


class TestReading:
    def test_a_record_on_standard_input(self, record: Path) -> None:
        result = run("partition", "-", stdin=record.read_text())
        assert result.exit_code == 0, result.output
        assert "Saved for backward" in result.stdout
        assert "net  model" in run("show", "-", stdin=record.read_text()).stdout

    def test_a_compressed_record(self, record: Path) -> None:
        api.save(api.load(record), "net.aot.json.gz")
        assert run("partition", "net.aot.json.gz").stdout == run("partition", record).stdout.replace(
            str(record), "net.aot.json.gz"
        )

    def test_no_such_record(self, record: Path) -> None:
        error = failure(run("show", "absent.aot.json"))
        assert "absent.aot.json" in error.what
        assert error.fix

    @pytest.mark.parametrize("cut", [0, 1, 200, -2])
    def test_a_truncated_record(self, record: Path, cut: int) -> None:
        Path("cut.aot.json").write_text(record.read_text()[:cut])
        for command in ("show", "partition"):
            error = failure(run(command, "cut.aot.json"))
            assert error.what

    def test_a_newer_record(self, record: Path) -> None:
        text = record.read_text().replace('"schema_version": "1.0"', '"schema_version": "2.0"', 1)
        Path("new.aot.json").write_text(text)
        assert "version 2.0" in failure(run("show", "new.aot.json")).what

    def test_a_slightly_newer_record_is_read_with_a_note(self, record: Path) -> None:
        text = record.read_text().replace('"schema_version": "1.0"', '"schema_version": "1.7"', 1)
        Path("new.aot.json").write_text(text)
        result = run("show", "new.aot.json")
        assert result.exit_code == 0
        assert "1.7" in result.stdout

    def test_something_else(self, record: Path) -> None:
        Path("other.json").write_text('{"a": 1}')
        assert failure(run("show", "other.json")).what

    def test_capture_options_do_not_go_with_a_record(self, record: Path) -> None:
        error = failure(run("partition", record, "--level", "aten"))
        assert "--level does not go with a record" in error.what

    def test_tracing_a_record(self, record: Path) -> None:
        assert "aotcli show" in failure(run("trace", record)).fix

"""`aotcli check` and `aotcli accept` on records: exit codes, files, advice. In this process; torch is not needed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders import layered, sample_trace

from aotcli import api
from aotcli.api.baselines import BaselineStore, new_baseline
from aotcli.cli.main import run
from aotcli.ir.trace import Environment


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def aotcli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*arguments: str) -> Result:
        code = run(list(arguments))
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return call


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose only model is a record."""
    monkeypatch.chdir(tmp_path)
    for name in ("CI", "COLUMNS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    api.save(sample_trace(layered(3), breaks=()), tmp_path / "net.aot.json")
    (tmp_path / "pyproject.toml").write_text('[tool.aotcli.check.models.net]\nmodel = "net.aot.json"\n')
    return tmp_path


def test_one_that_fails_hides_none(folder: Path, aotcli: Callable[..., Result]) -> None:
    with (folder / "pyproject.toml").open("a") as file:
        file.write('[tool.aotcli.check.models.lost]\nmodel = "lost.aot.json"\n')
    result = aotcli("check")
    assert result.returncode == 2
    assert "new   net " in result.stdout
    assert "ERROR lost" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr
    assert aotcli("check", "net").returncode == 1


def test_a_damaged_baseline(folder: Path, aotcli: Callable[..., Result]) -> None:
    aotcli("check")
    aotcli("accept", "--all")
    (folder / ".aotcli" / "net.aot.json").write_text("{")
    result = aotcli("check")
    assert result.returncode == 2
    assert "ERROR net" in result.stdout
    assert 'aotcli accept net --reason "..."' in result.stdout


def test_several_files_at_once(folder: Path, aotcli: Callable[..., Result]) -> None:
    result = aotcli("check", "-f", "github", "-o", "r.xml", "-o", "r.md", "-o", "r.json", "-o", "r.txt", "-o", "new")
    assert result.returncode == 1
    assert "::error file=pyproject.toml,title=net has no baseline::keep it: aotcli accept net\n" in result.stdout
    assert ET.fromstring((folder / "r.xml").read_text()).attrib["failures"] == "1"
    assert (folder / "r.md").read_text().startswith("<!-- written by aotcli -->\n### aotcli check")
    assert json.loads((folder / "r.json").read_text())["models"][0]["verdict"] == "new"
    assert "no baseline yet" in (folder / "r.txt").read_text()
    assert (folder / "new" / "net.new.aot.json").is_file()
    again = aotcli("check", "-o", "r.xml", "-o", "r.md", "-o", "r.json", "-o", "r.txt", "-q")
    assert again.returncode == 1


def test_a_file_of_somebody_else(folder: Path, aotcli: Callable[..., Result]) -> None:
    (folder / "notes.md").write_text("mine")
    result = aotcli("check", "-o", "notes.md")
    assert result.returncode == 2
    assert (folder / "notes.md").read_text() == "mine"
    assert result.stdout == ""  # refused before anything was done


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (("check", "nett"), "did you mean 'net'?"),
        (("check", "-f", "html"), "--format"),
        (("check", "-o", "report.pdf"), "add --format"),
        (("check", "-o", "a/", "-o", "b/"), "leave one out"),
        (("accept",), "check first: aotcli check"),
        (("accept", "--all"), "check first: aotcli check"),
        (("accept", "--all", "net"), "leave one of them out"),
        (("accept", "../net"), "give it another name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_usage(folder: Path, aotcli: Callable[..., Result], arguments: tuple[str, ...], fix: str) -> None:
    result = aotcli(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert fix in result.stderr
    assert "Traceback" not in result.stderr


def test_without_a_configuration(folder: Path, aotcli: Callable[..., Result]) -> None:
    (folder / "pyproject.toml").unlink()
    result = aotcli("check")
    assert result.returncode == 2
    assert "[tool.aotcli.check.models.NAME]" in result.stderr


def test_what_is_not_to_be_committed(folder: Path, aotcli: Callable[..., Result]) -> None:
    (folder / ".git").mkdir()
    assert ".aotcli/*.new.aot.json" in aotcli("check").stderr
    assert aotcli("check", "-q").stderr == ""
    (folder / ".gitignore").write_text(".aotcli/*.new.aot.json\n")
    assert aotcli("check").stderr == ""


def test_a_folder_is_made_even_where_nothing_is_new(folder: Path, aotcli: Callable[..., Result]) -> None:
    aotcli("check")
    aotcli("accept", "net")
    result = aotcli("check", "-o", "report/", "-o", "report/junit.xml")
    assert result.returncode == 0
    assert [path.name for path in (folder / "report").iterdir()] == ["junit.xml"]


def test_a_folder_that_is_missing_is_told_before_models_are_captured(
    folder: Path, aotcli: Callable[..., Result]
) -> None:
    result = aotcli("check", "-o", "deep/down/junit.xml")
    assert (result.returncode, result.stdout) == (2, "")
    assert "mkdir -p deep/down" in result.stderr


def test_the_summary_of_a_job_is_added_to(
    folder: Path, aotcli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = folder / "summary.md"
    summary.write_text("earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    aotcli("check", "--format", "github")
    assert summary.read_text().startswith("earlier\n### aotcli check: 1 checked, 1 without a baseline\n")
    aotcli("check")  # another format leaves it alone
    assert summary.read_text().count("### aotcli check") == 1
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "absent" / "summary.md"))
    result = aotcli("check", "--format", "github")
    assert result.returncode == 1
    assert "summary of the job could not be written" in result.stderr


def test_lines_are_named_from_the_workspace(
    folder: Path, aotcli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project is a folder of the repository: GitHub wants paths from the repository."""
    project = folder / "sub" / "project"
    project.mkdir(parents=True)
    for name in ("pyproject.toml", "net.aot.json"):
        (folder / name).rename(project / name)
    (project / "net.py").write_text("# the file that records name\n" * 9)
    (project / "pyproject.toml").write_text(
        '[tool.aotcli.check.models.net]\nmodel = "net.aot.json"\nsaved_bytes = { max = "1B" }\n'
    )
    monkeypatch.chdir(project)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder))
    assert "::error file=sub/project/net.py,line=7,title=net%3A saved" in aotcli("check", "-f", "github").stdout
    (project / "net.py").unlink()
    assert "::error file=sub/project/pyproject.toml,title=net%3A saved" in aotcli("check", "-f", "github").stdout


def test_strict_env_from_the_command_line(folder: Path, aotcli: Callable[..., Result]) -> None:
    with (folder / "pyproject.toml").open("a") as file:
        file.write('structure = "exact"\n')
    aotcli("check")
    aotcli("accept", "net")
    other = sample_trace(layered(2), breaks=(), environment=Environment("2.12.0", "cpu"))
    api.save(other, folder / "net.aot.json")
    result = aotcli("check")
    assert result.returncode == 0
    assert "baseline of another environment: torch 2.13.0 → 2.12.0" in result.stdout
    assert "not enforced" in result.stdout
    assert aotcli("check", "--strict-env").returncode == 1


def test_a_test_keeps_its_baseline(folder: Path, aotcli: Callable[..., Result]) -> None:
    """What a test wrote is accepted like any other, and is nobody's orphan."""
    trace = sample_trace(layered(3), breaks=())
    store = BaselineStore(folder / ".aotcli")
    plan = api.partition(trace, alternatives=False).plan
    store.write_new("tested", new_baseline(trace, plan, name="tested", model="Net", test="tests/test_net.py::test_it"))
    assert aotcli("accept", "tested").returncode == 0
    aotcli("check")
    aotcli("accept", "net")
    result = aotcli("check")
    assert (result.returncode, "tested" in result.stdout) == (0, False)
    store.path("old").write_bytes(store.path("net").read_bytes())
    assert "no model has .aotcli/old.aot.json" in aotcli("check").stdout
    assert "old" not in aotcli("check", "net").stdout

"""`aotcli report` as a user types it: names, formats, files that are not its own, and commands that give it again."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import layered, sample_trace
from report_pages import embedded
from typer.testing import CliRunner, Result

from aotcli import api
from aotcli.cli.main import app
from aotcli.errors import AotcliError
from aotcli.ir.trace import CaptureSettings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    graph = layered(3)
    nodes = tuple(dataclasses.replace(node, code="h = fc(x)" if node.source else None) for node in graph.nodes)
    settings = CaptureSettings(level="aten", with_source=True)
    trace = sample_trace(dataclasses.replace(graph, nodes=nodes), breaks=(), settings=settings)
    api.save(trace, tmp_path / "net.aot.json")
    return Path("net.aot.json")


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)], input=stdin)


def failure(result: Result) -> AotcliError:
    assert isinstance(result.exception, AotcliError), result.output
    assert result.exception.exit_code == 2
    return result.exception


def written(path: str = "net.html") -> dict[str, Any]:
    return embedded(Path(path).read_text(encoding="utf-8"))


def test_writes_a_page(record: Path) -> None:
    result = run(record, "-o", "net.html")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "wrote net.html\n")
    assert written()["verdict"]["command"] == "aotcli report net.aot.json --strategy mincut"


def test_piped_it_goes_to_standard_output(record: Path) -> None:
    result = run(record, "--no-front")
    assert result.stdout.startswith("<!doctype html>\n<!-- written by aotcli")
    assert result.stdout.endswith("</html>\n")
    assert [path.name for path in Path().iterdir()] == ["net.aot.json"]


def test_from_standard_input(record: Path) -> None:
    result = run("-", "-o", "net.html", stdin=record.read_text())
    assert result.exit_code == 0, result.output
    assert written()["verdict"]["model"] == "net"


def test_the_data_alone(record: Path) -> None:
    result = run(record, "-o", "net.json")
    assert result.exit_code == 0
    assert json.loads(Path("net.json").read_text())["schema"] == "aotcli.report"
    assert json.loads(run(record, "--format", "json").stdout) == json.loads(Path("net.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "what", "fix"),
    [
        (
            ("-o", "net.pdf"),
            "-o net.pdf: the name does not say which format is meant",
            "add --format, or write -o net.html",
        ),
        (("--format", "htm"), "--format htm", "--format html"),
        (("--strategy", "mincutt"), "there is no strategy 'mincutt'", "did you mean 'mincut'?"),
        (("--against", "absent.aot.json"), "absent.aot.json cannot be read", "make it with"),
        (("--against", "@nonsense"), "there is no strategy 'nonsense'", ""),
        (("--opt", "aggressive"), "--opt aggressive", "write --opt aggressive=true"),
        (("--device", "cuda"), "--device does not go with a record", "leave it out"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_cannot_be(record: Path, arguments: tuple[str, ...], what: str, fix: str) -> None:
    error = failure(run(record, *arguments))
    assert error.what == what
    assert fix in error.fix
    assert [path.name for path in Path().iterdir()] == ["net.aot.json"]


def test_a_file_of_somebody_else_stays(record: Path) -> None:
    Path("net.html").write_text("<!doctype html>\n<title>mine</title>")
    assert failure(run(record, "-o", "net.html")).what == "net.html exists and was not written by aotcli"
    assert "mine" in Path("net.html").read_text()
    assert run(record, "-o", "net.html", "--force").exit_code == 0
    assert run(record, "-o", "net.html").exit_code == 0


def test_a_folder_is_no_file(record: Path) -> None:
    Path("net.html").mkdir()
    assert failure(run(record, "-o", "net.html")).what == "net.html is a folder"
    assert failure(run(record, "--against", ".")).what == ". is a folder"


def test_a_record_without_regions(record: Path) -> None:
    api.save(dataclasses.replace(sample_trace(), regions=()), "empty.aot.json")
    assert failure(run("empty.aot.json", "-o", "net.html")).what == "there is nothing to report"


def test_source_text_where_it_is_asked_for(record: Path) -> None:
    run(record, "-o", "net.html")
    assert "h = fc(x)" not in Path("net.html").read_text()
    assert run(record, "-o", "net.html", "--with-source").exit_code == 0
    assert "h = fc(x)" in written()["strings"]
    assert written()["verdict"]["command"].endswith("--with-source")


def test_source_text_that_is_not_there(record: Path) -> None:
    api.save(sample_trace(layered(2), breaks=()), "bare.aot.json")
    result = run("bare.aot.json", "--with-source", "-o", "net.html")
    assert "no source text: the record holds none" in result.stderr


def test_options_and_the_other_side_are_in_the_command(record: Path) -> None:
    assert (
        run(record, "-s", "mincut", "--opt", "aggressive=true", "--against", "@save-all", "-o", "net.html").exit_code
        == 0
    )
    command = "aotcli report net.aot.json --strategy mincut --opt aggressive=true --against @save-all"
    assert written()["verdict"]["command"] == command
    assert written()["changes"]["left"] == "@save-all (net, save-all)"


def test_no_path_of_this_machine_is_in_it(record: Path, tmp_path: Path) -> None:
    assert run(tmp_path / record, "--against", tmp_path / record, "-o", "net.html").exit_code == 0
    assert str(tmp_path) not in Path("net.html").read_text()
    assert written()["verdict"]["command"] == "aotcli report net.aot.json --strategy mincut --against net.aot.json"


def test_needs_no_torch_and_no_browser(record: Path) -> None:
    code = (
        "import sys\nfrom aotcli.cli.main import run\n"
        f"assert run(['report', {str(record)!r}, '--against', '@recompute-all', '-o', 'net.html']) == 0\n"
        "assert not {'torch', 'playwright', 'networkx'} & sys.modules.keys()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)

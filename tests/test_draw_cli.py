"""`aotcli draw` as a user runs it: files, pipes, terminals, options, bad input."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders import layered, sample_trace, two_matmuls

from aotcli import api
from aotcli.cli import main

AOTCLI = [sys.executable, "-m", "aotcli"]


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


Draw = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    api.save(sample_trace(layered(3)), tmp_path / "net.aot.json")
    api.save(sample_trace(two_matmuls(), layered(2)), tmp_path / "two.aot.json")
    return tmp_path


@pytest.fixture
def draw(folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Draw:
    """`aotcli draw` in this process, in the folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("CI", "true")

    def run_here(*arguments: str) -> Done:
        capfdbinary.readouterr()
        code = main.run(["draw", *arguments])
        return Done(code, *capfdbinary.readouterr())

    return run_here


def run(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """The same in a process of its own."""
    environment = {**os.environ, "NO_COLOR": "1", "CI": "true", **(env or {})}
    return subprocess.run([*AOTCLI, "draw", *arguments], cwd=folder, capture_output=True, env=environment, check=False)


def refused(done: Done, *texts: str, code: int = 2) -> None:
    message = done.stderr.decode()
    assert done.returncode == code, message
    assert done.stdout == b""
    assert "Traceback" not in message
    for text in ("error: ", *texts):
        assert text in message


def test_piped_it_writes_to_standard_output(folder: Path) -> None:
    done = run(folder, "net.aot.json")
    assert done.returncode == 0
    assert done.stderr == b""
    ET.fromstring(done.stdout)
    assert sorted(path.name for path in folder.iterdir()) == ["net.aot.json", "two.aot.json"]


def test_piped_into_ascii_it_stays_utf8(folder: Path) -> None:
    done = run(folder, "net.aot.json", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert "×" in done.stdout.decode("utf-8")


@pytest.mark.parametrize("name", ["out.svg", "out.dot", "out.gv"])
def test_the_output_says_which_format(folder: Path, draw: Draw, name: str) -> None:
    done = draw("net.aot.json", "-o", name)
    assert done.stderr.decode() == f"wrote {name}\n"
    assert ("digraph" in (folder / name).read_text(encoding="utf-8")) == (not name.endswith("svg"))
    # What aotcli wrote may be replaced, what it did not may not.
    assert draw("net.aot.json", "-o", name, "--depth", "1").returncode == 0
    (folder / name).write_text("mine\n", encoding="utf-8")
    refused(draw("net.aot.json", "-o", name), "was not written by aotcli", "--force")
    assert (folder / name).read_text(encoding="utf-8") == "mine\n"
    assert draw("net.aot.json", "-o", name, "--force").returncode == 0


def test_png_files_are_our_own_too(folder: Path, draw: Draw) -> None:
    pytest.importorskip("resvg_py")
    for _ in range(2):
        assert draw("net.aot.json", "-o", "out.png").returncode == 0
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")
    (folder / "out.png").write_bytes(b"\x89PNG\r\n\x1a\n of somebody else")
    refused(draw("net.aot.json", "-o", "out.png"), "was not written by aotcli")


def test_a_terminal_gets_a_file_and_its_name(folder: Path) -> None:
    parent, child = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "CI": "true", "TERM": "dumb"}
    command = [*AOTCLI, "draw", "net.aot.json", "-q"]
    done = subprocess.run(command, cwd=folder, stdout=child, stderr=child, env=environment, check=False)
    os.close(child)
    shown = os.read(parent, 4096).decode()
    os.close(parent)
    assert done.returncode == 0
    assert shown.strip() == "net-mincut.svg"
    ET.fromstring((folder / "net-mincut.svg").read_text(encoding="utf-8"))


def test_several_regions_get_a_file_each(folder: Path, draw: Draw) -> None:
    assert draw("two.aot.json", "-o", "out.svg").returncode == 0
    assert sorted(path.name for path in folder.glob("*.svg")) == ["out-region0.svg", "out-region1.svg"]
    refused(draw("two.aot.json"), "2 pictures do not fit", "--region region0")
    assert draw("two.aot.json", "--region", "1").returncode == 0
    refused(draw("two.aot.json", "--region", "region7"), "--region region7", "region0, region1")


def test_views_of_one_record_differ(draw: Draw) -> None:
    """Each option shows something of its own."""
    views = (
        (),
        ("--depth", "0"),
        ("--unfold",),
        ("--expand", "h.*.fc"),
        ("--collapse", "h.*"),
        ("--focus", "gelu_1", "--radius", "1"),
        ("--only", "forward"),
        ("--only", "backward"),
        ("--only", "joint"),
        ("--only", "saved"),
        ("--show", "params,inputs"),
        ("--strategy", "recompute-all"),
        ("--strategy", "mincut:aggressive=true"),
        ("--against", "@save-all"),
        ("--against", "two.aot.json@save-all", "--region", "0"),
    )
    pictures = [draw("net.aot.json", *view) for view in views]
    for view, done in zip(views, pictures, strict=True):
        assert done.returncode == 0, (view, done.stderr)
    assert len({done.stdout for done in pictures}) >= len(views) - 1


BAD = {
    "unknown format": (("--format", "jpeg"), ("--format jpeg", "svg, png, dot")),
    "unknown suffix": (("-o", "out.jpeg"), ("does not say which format",)),
    "focus on nothing": (("--focus", "gelux"), ("--focus gelux", "did you mean")),
    "pattern of nothing": (("--expand", "h.*.fcc"), ("--expand h.*.fcc", "fix:")),
    "unknown part": (("--only", "forwards"), ("--only forwards", "did you mean --only forward?")),
    "unknown thing to show": (("--show", "weights"), ("--show weights", "params, inputs, views")),
    "unknown engine": (("--engine", "neato"), ("--engine neato",)),
    "negative depth": (("--depth", "-1"), ("--depth -1",)),
    "unknown strategy": (("--strategy", "minicut"), ("minicut",)),
    "strategy that needs the model": (("--strategy", "torch-mincut"), ("cannot plan a record",)),
    "against nothing": (("--against", "no.aot.json"), ("no.aot.json cannot be read",)),
    "folder": (("-o", "."), (". is a folder",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(draw: Draw, case: str) -> None:
    arguments, texts = BAD[case]
    if case == "folder":
        arguments = ("-o", ".", "--format", "svg")
    refused(draw("net.aot.json", *arguments), *texts)


def test_no_record_and_a_plan_for_a_record(folder: Path, draw: Draw) -> None:
    refused(draw("none.aot.json"), "none.aot.json cannot be read")
    api.save(api.partition(api.load(folder / "net.aot.json")), folder / "plan.aot.json")
    refused(draw("plan.aot.json"), "plan")


def test_a_plan_file_to_draw_against(folder: Path, draw: Draw) -> None:
    api.save(api.partition(api.load(folder / "net.aot.json"), strategy="save-all"), folder / "plan.aot.json")
    assert draw("net.aot.json", "--against", "plan.aot.json").returncode == 0
    refused(draw("two.aot.json", "--region", "0", "--against", "plan.aot.json"), "is a plan for another graph")


def test_a_missing_folder_leaves_nothing_behind(folder: Path, draw: Draw) -> None:
    refused(draw("net.aot.json", "-o", "no/such/out.svg"), "cannot be written", "mkdir -p")
    assert not list(folder.glob("**/*.svg"))


def test_records_are_drawn_without_torch(folder: Path) -> None:
    code = (
        "import sys; from aotcli.cli.main import run; code = run(['draw', 'net.aot.json', '-o', 'x.svg']);"
        "assert code == 0; assert 'torch' not in sys.modules, 'torch was imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_two_runs_write_equal_bytes(folder: Path) -> None:
    first, second = (run(folder, "net.aot.json", env={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2"))
    assert first == second

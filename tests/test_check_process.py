"""`aotcli check` and `aotcli accept` as processes: the whole cycle on a real model, on records without torch, and in
the files of examples/ci."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from builders import layered, sample_trace

from aotcli import api

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "ci"
BIN = Path(sys.executable).parent

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 256)
        self.out = nn.Linear(256, 64)

    def forward(self, x):
        x = torch.relu(self.fc(x))
        return self.out(x)

model = Net
inputs = (torch.ones(32, 64),)
loss = lambda output: output.square().mean()
"""
CHANGED = MODEL.replace("torch.relu(self.fc(x))", "torch.relu(self.fc(x)) * torch.sigmoid(self.fc(-x))")
LINE = CHANGED.splitlines().index("        x = torch.relu(self.fc(x)) * torch.sigmoid(self.fc(-x))") + 1
CONFIG = """
[tool.aotcli.check.models.net]
model = "model.py"
saved_bytes = { growth = "1%" }
structure = "exact"
"""
KEPT = ("COLUMNS", "NO_COLOR", "CI", "TERM", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "MAKEFLAGS", "MAKELEVEL")


def run(folder: Path, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in KEPT}
    environment = {
        **kept,
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        **changes,
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def aotcli(folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-m", "aotcli", *arguments, **changes)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / ".aotcli").glob("*"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a model whose baseline was accepted. Captures of both versions of the model end in its cache, so
    that torch is needed twice."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(CONFIG)
    (folder / "requirements.txt").write_text("# torch and aotcli are installed already\n")
    (folder / "model.py").write_text(MODEL)
    first = aotcli(folder, "check")
    assert (first.returncode, first.stderr) == (1, ""), first.stderr
    assert "no baseline yet" in first.stdout
    accepted = aotcli(folder, "accept", "net")
    assert accepted.returncode == 0, accepted.stderr
    return folder


@pytest.fixture
def changed(project: Path) -> Iterator[Path]:
    """The same project with a model that saves more; as it was afterwards."""
    baseline = (project / ".aotcli" / "net.aot.json").read_bytes()
    (project / "model.py").write_text(CHANGED)
    yield project
    (project / "model.py").write_text(MODEL)
    (project / ".aotcli" / "net.aot.json").write_bytes(baseline)
    (project / ".aotcli" / "net.new.aot.json").unlink(missing_ok=True)


class TestCycle:
    def test_ok(self, project: Path) -> None:
        result = aotcli(project, "check")
        assert (result.returncode, result.stderr) == (0, "")
        assert re.fullmatch(r"ok    net  saved \S+ KiB \(same\)\n1 checked in .* s\n", result.stdout)
        assert files(project) == ["net.aot.json"]

    def test_a_breach_is_accepted(self, changed: Path) -> None:
        result = aotcli(changed, "check")
        assert result.returncode == 1
        assert result.stdout.startswith("FAIL  net  saved  ")
        assert f"model.py:{LINE}" in result.stdout
        assert "40.0 → 112.0 KiB   +72.0 KiB (+180.0 %), limit +1 %" in result.stdout
        assert files(changed) == ["net.aot.json", "net.new.aot.json"]
        (accept,) = re.findall(r"intended\?  (.*)", result.stdout)
        (look,) = re.findall(r"look:      (.*)", result.stdout)
        assert run(changed, *shlex.split(look)).returncode == 0
        refused = aotcli(changed, "accept", "net")
        assert refused.returncode == 2
        assert "no reason was given" in refused.stderr
        done = run(changed, *shlex.split(accept))
        assert (done.returncode, done.stderr) == (0, "")
        assert files(changed) == ["net.aot.json"]
        assert json.loads((changed / ".aotcli" / "net.aot.json").read_text())["baseline"]["reason"] == "why"
        assert aotcli(changed, "check").returncode == 0
        assert aotcli(changed, "accept", "net", "--reason", "again").returncode == 2

    def test_in_ci_nothing_is_written_but_the_folder(self, changed: Path, tmp_path: Path) -> None:
        before = (changed / ".aotcli" / "net.aot.json").read_bytes()
        result = aotcli(changed, "check", CI="true")
        assert result.returncode == 1
        assert files(changed) == ["net.aot.json"]
        assert "aotcli check net; aotcli accept net" in result.stdout
        result = aotcli(changed, "check", "-o", f"{tmp_path}/new/", CI="true")
        assert result.returncode == 1
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["net.new.aot.json"]
        assert files(changed) == ["net.aot.json"]
        assert (changed / ".aotcli" / "net.aot.json").read_bytes() == before


class TestExamples:
    def test_the_workflow(self, project: Path, tmp_path: Path) -> None:
        assert self.steps(project, tmp_path) == [0, 0]
        assert (tmp_path / "summary.md").read_text().startswith("### aotcli check: 1 checked\n")

    def test_the_workflow_with_a_breach(self, changed: Path, tmp_path: Path) -> None:
        assert self.steps(changed, tmp_path) == [0, 1]
        report = changed / "aotcli-report"
        assert sorted(path.name for path in report.iterdir()) == ["junit.xml", "net.new.aot.json"]
        root = ET.fromstring((report / "junit.xml").read_text())
        assert root.attrib["failures"] == "2"
        assert f"::error file=model.py,line={LINE},title=net%3A saved" in self.printed
        assert "**FAIL** | net" in (tmp_path / "summary.md").read_text()

    def steps(self, folder: Path, tmp_path: Path) -> list[int]:
        """The exit codes of the workflow's commands, run as the runner runs them."""
        workflow = yaml.safe_load((EXAMPLES / "github.yml").read_text())
        assert workflow[True] == {"pull_request": None}  # `on` is a boolean to YAML 1.1
        (job,) = workflow["jobs"].values()
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", each) for each in uses)
        codes: list[int] = []
        self.printed = ""
        summary = tmp_path / "summary.md"
        for step in job["steps"]:
            if "run" in step:
                result = run(
                    folder,
                    "bash",
                    "-e",
                    "-c",
                    step["run"],
                    CI="true",
                    GITHUB_STEP_SUMMARY=str(summary),
                    GITHUB_WORKSPACE=str(folder),
                )
                codes.append(result.returncode)
                self.printed += result.stdout
        return codes

    def test_the_hook(self, project: Path) -> None:
        assert self.hook(project) == 0

    def test_the_hook_with_a_breach(self, changed: Path) -> None:
        assert self.hook(changed) == 1

    def hook(self, folder: Path) -> int:
        (repository,) = yaml.safe_load((EXAMPLES / "pre-commit-config.yaml").read_text())["repos"]
        (hook,) = repository["hooks"]
        assert (repository["repo"], hook["language"], hook["pass_filenames"]) == ("local", "system", False)
        return run(folder, *shlex.split(hook["entry"])).returncode

    def test_the_rules(self, changed: Path) -> None:
        make = ("make", "-f", str(EXAMPLES / "Makefile"))
        failed = run(changed, *make, "check")
        assert failed.returncode != 0
        assert "FAIL  net" in failed.stdout
        assert run(changed, *make, "accept", "REASON=a gate").returncode == 0
        passed = run(changed, *make, "check", "MODELS=net")
        assert passed.returncode == 0, passed.stdout + passed.stderr


class TestRecords:
    """Models that are records need no torch: here it is one that cannot be imported."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "shadow" / "torch").mkdir(parents=True)
        (tmp_path / "shadow" / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
        api.save(sample_trace(layered(3), breaks=()), tmp_path / "net.aot.json")
        (tmp_path / "pyproject.toml").write_text('[tool.aotcli.check.models.net]\nmodel = "net.aot.json"\n')
        return tmp_path

    def aotcli(self, folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        path = f"{folder / 'shadow'}{os.pathsep}{ROOT}"
        return aotcli(folder, *arguments, PYTHONPATH=path, **changes)

    def test_the_cycle_without_torch(self, folder: Path) -> None:
        assert self.aotcli(folder, "check").returncode == 1
        assert self.aotcli(folder, "accept", "--all").returncode == 0
        assert self.aotcli(folder, "check").returncode == 0
        api.save(sample_trace(layered(4), breaks=()), folder / "net.aot.json")
        result = self.aotcli(folder, "check")
        assert result.returncode == 1
        assert "saved  2.5 → 3.5 KiB   +1.0 KiB (+40.0 %), limit +0 %" in result.stdout
        assert self.aotcli(folder, "accept", "net", "-r", "a layer more").returncode == 0
        assert self.aotcli(folder, "check").returncode == 0

    def test_without_torch_a_model_is_an_environment_problem(self, folder: Path) -> None:
        (folder / "shadow" / "torch" / "__init__.py").write_text("raise ModuleNotFoundError('torch', name='torch')")
        (folder / "model.py").write_text(MODEL)
        with (folder / "pyproject.toml").open("a") as file:
            file.write('[tool.aotcli.check.models.own]\nmodel = "model.py"\n')
        result = self.aotcli(folder, "check")
        assert result.returncode == 3
        assert "new   net " in result.stdout
        assert "torch is not installed" in result.stdout

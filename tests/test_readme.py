"""The pages are true: commands run as they stand there and print what is said, options and fields exist.

`python tests/test_readme.py` (`make readme`) writes the outputs anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FIGURES = re.compile(r"(?<=^<!-- figures -->\n).*?(?=^<!-- end of figures -->$)", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\|.*\|\n", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# Options of other programs that pages mention.
NOT_OURS = {"--aotcli-new"}  # of pytest, through the plugin
TORCH_OF_OUTPUTS = "2.13."


def in_a_copy(folder: Path) -> dict[str, str]:
    """Copy what commands read into `folder`; the environment to run them in, 80 columns wide and without history."""
    shutil.copytree(ROOT / "sample_models", folder / "sample_models", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ".aotcli", folder / ".aotcli")
    shutil.copy(ROOT / "pyproject.toml", folder)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AOTCLI", "PYTEST", "COV"))}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
    }


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Standard output of one shell command, without spaces at the ends of lines."""
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout[-2000:]}{result.stderr[-2000:]}"
    return "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())


def rewritten(text: str) -> str:
    """The page with what its commands print now, and the figures that were measured last."""
    text = FIGURES.sub(lambda _: "".join(TABLE.findall(RESULTS.read_text(encoding="utf-8"))), text)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "aotcli"
        folder.mkdir()
        environment = in_a_copy(folder)

        def block(match: re.Match[str]) -> str:
            commands = [line for line in match[1].splitlines() if line.startswith("$ ")]
            parts = [f"{line}\n{run(line[2:], folder, environment)}" for line in commands]
            return "```console\n" + "".join(parts) + "```"

        return CONSOLE.sub(block, text)


def test_commands_print_what_the_readme_says() -> None:
    text = README.read_text(encoding="utf-8")
    now = rewritten(text)
    if not version("torch").startswith(TORCH_OF_OUTPUTS):
        pytest.skip(f"every command ran; outputs are those of torch {TORCH_OF_OUTPUTS}x")
    assert now == text, "run `make readme` and look at the difference"


def test_python_of_the_readme_runs(tmp_path: Path) -> None:
    environment = in_a_copy(tmp_path)
    blocks = PYTHON.findall(README.read_text(encoding="utf-8"))
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        (tmp_path / f"block{number}.py").write_text(block)
        run(f"python block{number}.py", tmp_path, environment)
    assert (tmp_path / "layers.aot.json").exists()
    assert "Saved for backward" in run("aotcli partition block0.py --strategy mincut", tmp_path, environment)


def test_the_record_is_described_field_by_field(tmp_path: Path) -> None:
    environment = in_a_copy(tmp_path)
    run("aotcli trace sample_models/mlp.py -o mlp.aot.json", tmp_path, environment)
    record = json.loads((tmp_path / "mlp.aot.json").read_text())
    plan = json.loads(run("aotcli partition mlp.aot.json --format json", tmp_path, environment))
    found = {*record, *record["model"], *record["environment"], *record["eager"], *record["regions"][0]}
    found |= {key for table in ("specs", "places", "templates") for entry in record[table].values() for key in entry}
    found |= {*plan, *plan["regions"][0], *plan["regions"][0]["saved"][0]}
    words = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs" / "record.md").read_text(encoding="utf-8")))
    assert found <= words, sorted(found - words)


def helps() -> dict[str, str]:
    """What `--help` prints, by command."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}

    def ask(*arguments: str) -> str:
        command = [sys.executable, "-m", "aotcli", *arguments, "--help"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT).stdout

    top = ask()
    names = re.findall(r"^│ ([a-z]+)\s", top, re.MULTILINE)
    assert len(names) > 4, top
    return {"": top, **{name: ask(name) for name in names}}


def mentioned(page: Path) -> Iterator[str]:
    """Pieces of code on a page."""
    return (match[0] for match in CODE.finditer(page.read_text(encoding="utf-8")))


def test_options_and_commands_match_the_help() -> None:
    found = helps()
    options = {option for text in found.values() for option in OPTION.findall(text)} | NOT_OURS
    for page in PAGES:
        used = {option for code in mentioned(page) for option in OPTION.findall(code)}
        assert used <= options, f"{page.name}: {sorted(used - options)}"
        commands = {name for code in mentioned(page) for name in re.findall(r"(?<!from )\baotcli ([a-z]+)\b", code)}
        assert commands <= set(found), f"{page.name}: {sorted(commands - set(found))}"
    in_readme = {name for code in mentioned(README) for name in re.findall(r"(?<!from )\baotcli ([a-z]+)\b", code)}
    assert set(found) - {""} <= in_readme, "a command that the README does not mention"


def test_the_demo_is_the_command_of_the_readme() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "aotcli partition sample_models/gpt.py --strategy mincut" in makefile
    assert 'model = "sample_models/gpt.py"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "$ aotcli partition --strategy mincut\n" in README.read_text(encoding="utf-8")


def test_make_targets_that_the_readme_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`?make ([a-z]+)\b(?!s)", " ".join(mentioned(README))))
    assert named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")

"""`aotcli explain` as people type it: which word is the model, what is written where, and what is refused."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from builders import layered, sample_trace, two_matmuls
from test_policy import norm_graph
from typer.testing import CliRunner, Result

from aotcli import api
from aotcli.cli.main import app
from aotcli.errors import AotcliError, PlanImpossibleError
from aotcli.ir.policy import read_policy

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("COLUMNS", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    api.save(sample_trace(layered(12, width=64, batch=32)), "net.aot.json")
    api.save(sample_trace(two_matmuls()), "two.aot.json")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments], input=stdin)


def ok(*arguments: str, stdin: str | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def failure(*arguments: str) -> AotcliError:
    result = run(*arguments)
    assert isinstance(result.exception, AotcliError), (result.output, result.exception)
    return result.exception


def test_the_largest_values_come_first_and_every_command_it_prints_works() -> None:
    text = ok("net.aot.json")
    assert "mm of h.*.fc ×12: saved, 96.0 KiB, 52.2 % of all" in text
    commands = [line.partition("flip")[2].split() for line in text.splitlines() if line.startswith("  flip")]
    assert len(commands) == 2
    for _, _, *arguments in commands:
        assert "with the wish" in ok(*(argument.strip("'") for argument in arguments))


def test_a_record_may_come_from_standard_input() -> None:
    assert "mm of h.0.fc: saved" in ok("-", "h.0.fc", stdin=Path("net.aot.json").read_text("utf-8"))


def test_one_word_is_a_pattern_where_the_project_has_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `partition` prints is `aotcli explain h.0.mm`: the model is the project's own."""
    from aotcli.cli import target as targets

    command = importlib.import_module("aotcli.cli.commands.explain")
    seen: list[str | None] = []

    def find_target(model: str | None, given: object, note: object) -> object:
        seen.append(model)
        return real("net.aot.json", given, note)

    real = targets.find_target
    monkeypatch.setattr(targets, "find_target", find_target)
    assert "mm of h.3.fc: saved" in ok("h.3.fc")
    assert "add of h.* ×11: saved" in ok("net.py:9")
    assert seen == [None, None]
    Path("pyproject.toml").write_text('[tool.aotcli.models]\nnet = "net.py"\n', encoding="utf-8")
    Path("model").write_text("", encoding="utf-8")
    for word in ("net.aot.json", "model.py", "model.py:NAME", "hf:gpt2", "pack.age:NAME", "net", "model", "-"):
        assert command._means_model(word), word
    for word in ("h.0.mm", "h.*.attn", "mm_3", "net.py:9", "**@>1MiB"):
        assert not command._means_model(word), word


def test_formats_and_output_files() -> None:
    document = json.loads(ok("net.aot.json", "h.0.fc", "--format", "json"))
    assert document["explanations"][0]["names"] == ["mm"]
    for name, start in (
        ("x.json", "{"),
        ("x.md", "<!-- written by aotcli -->\n### Why: net"),
        ("x.txt", "# written by"),
    ):
        for _ in range(2):  # its own files are replaced
            assert ok("net.aot.json", "-o", name) == ""
        assert Path(name).read_text("utf-8").startswith(start)
    Path("mine.md").write_text("mine", encoding="utf-8")
    assert "was not written by aotcli" in failure("net.aot.json", "-o", "mine.md").what
    assert Path("mine.md").read_text("utf-8") == "mine"
    assert "one of text, json, markdown" in failure("net.aot.json", "--format", "svg").why


def test_top_and_quiet() -> None:
    assert ok("net.aot.json", "--top", "1").count(" saved, ") == 1
    assert "1 more kind of value: --top 2" in ok("net.aot.json", "--top", "1")
    assert "--write-policy" not in ok("net.aot.json", "-q")
    assert run("net.aot.json", "--top", "0").exit_code == 2


def test_a_policy_is_written_and_planned_by() -> None:
    ok("net.aot.json", "--recompute", "h.*.fc", "--save", "h.0.gelu", "--write-policy", "p.toml")
    assert Path("p.toml").read_text("utf-8").startswith("# written by aotcli\n# aotcli partition net.aot.json -")
    assert [rule.conditions for rule in read_policy("p.toml")] == ["module h.0 itself, op gelu", "module h.*.fc"]
    planned = CliRunner().invoke(app, ["partition", "net.aot.json", "--policy", "p.toml", "--format", "json"])
    (region,) = json.loads(planned.stdout)["regions"]
    wished = json.loads(ok("net.aot.json", "--recompute", "h.*.fc", "--save", "h.0.gelu", "--format", "json"))
    assert region["saved_bytes"] == wished["change"]["after"]["saved_bytes"]
    by_name = CliRunner().invoke(app, ["partition", "net.aot.json", "-s", "policy:p.toml", "--format", "json"])
    assert json.loads(by_name.stdout)["regions"] == [region]
    explained = ok("net.aot.json", "h.0.fc", "--policy", "p.toml")
    assert "-s policy:policy=p.toml" in " ".join(explained.split())
    ok("net.aot.json", "--recompute", "h.*.fc", "--write-policy", "p.py")
    compile(Path("p.py").read_text("utf-8"), "p.py", "exec")
    Path("mine.toml").write_text("mine = 1", encoding="utf-8")
    assert "was not written by aotcli" in failure("net.aot.json", "--write-policy", "mine.toml").what


def test_a_policy_that_is_explained_can_be_written_as_checkpoints() -> None:
    Path("p.toml").write_text('[[rule]]\nmodule = "h.*.fc"\naction = "recompute"\n', encoding="utf-8")
    ok("net.aot.json", "--policy", "p.toml", "--write-policy", "p.py")
    text = Path("p.py").read_text("utf-8")
    assert "    recompute module h.*.fc\n" in text
    assert "ops.aten.mm.default: RECOMPUTE" in text


@pytest.mark.parametrize(
    ("arguments", "what", "fix"),
    [
        (("none.aot.json",), "none.aot.json cannot be read", "aotcli trace MODEL -o FILE"),
        (("net.aot.json", "h.1.fcc"), "'h.1.fcc' matches nothing", "near are h.1.fc"),
        (
            ("net.aot.json", "--save", "h.0.fc.weight"),
            "--save h.0.fc.weight: nothing there is the forward's",
            "explain",
        ),
        (("net.aot.json", "--save", "gelu_backward"), "nothing there is the forward's to save", "says what it is"),
        (("net.aot.json", "--recompute", "h.0@7"), "'7' is no size", "7MiB"),
        (("net.aot.json", "--write-policy", "p.yaml"), "does not say what to write", "p.toml"),
        (("net.aot.json", "--policy", "none.toml"), "there is no policy file none.toml", "--write-policy"),
        (("net.aot.json", "-s", "policy"), "policy needs a policy file", "--policy FILE.toml"),
        (("net.aot.json", "-s", "torch-mincut"), "torch-mincut cannot plan a record", "--strategy torch-mincut"),
        (("net.aot.json", "--level", "aten"), "--level does not go with a record", "trace the model again"),
        (("net.aot.json", "x", "--write-policy", "p.toml"), "there is no rule to write", "--recompute PATTERN"),
    ],
)
def test_bad_input_says_what_to_do(arguments: tuple[str, ...], what: str, fix: str) -> None:
    error = failure(*arguments)
    assert what in error.what
    assert fix in error.fix
    assert error.exit_code == 2
    assert not Path("p.toml").exists()


def test_an_unknown_key_of_a_policy_is_refused_in_words() -> None:
    Path("p.toml").write_text('[[rule]]\nmodul = "h.*"\naction = "save"\n', encoding="utf-8")
    error = failure("net.aot.json", "--policy", "p.toml")
    assert (error.what, error.fix) == ("rule 1 of p.toml has an unknown key 'modul'", "did you mean 'module'?")


def test_wishes_that_cannot_be_are_findings() -> None:
    Path("p.toml").write_text(
        '[[rule]]\nop = "mm"\nmodule = "h.0"\naction = "recompute"\n'
        '[[rule]]\nmodule = "h.*"\nop = "*"\naction = "recompute"\n',
        encoding="utf-8",
    )
    assert run("net.aot.json", "--policy", "p.toml").exit_code == 0
    api.save(sample_trace(norm_graph()), "norm.aot.json")
    Path("p.toml").write_text(
        '[[rule]]\nop = "native_layer_norm"\nmax_bytes = 16\naction = "save"\n'
        '[[rule]]\nop = "native_layer_norm"\naction = "recompute"\n',
        encoding="utf-8",
    )
    error = failure("norm.aot.json", "--policy", "p.toml")
    assert isinstance(error, PlanImpossibleError)
    assert error.exit_code == 1
    assert "rule 1 of p.toml" in error.fix
    assert "rule 2 of p.toml" in error.fix


def test_a_record_with_two_values_of_one_name_is_refused() -> None:
    text = Path("two.aot.json").read_text("utf-8")
    assert text.count('"relu"') >= 2
    Path("double.aot.json").write_text(text.replace('"relu"', '"mm"'), encoding="utf-8")
    error = failure("double.aot.json", "mm")
    assert error.exit_code == 2
    assert "the record is damaged at regions[0].nodes" in error.what


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "aotcli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})


def test_in_a_process_of_its_own() -> None:
    fine = process("explain", "net.aot.json", "h.*.fc", "--recompute", "h.0.fc")
    assert fine.returncode == 0, fine.stderr
    assert "mm of h.* ×11" not in fine.stdout
    assert "saved, now" not in fine.stderr
    bad = process("explain", "net.aot.json", "nowhere")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.startswith("error: 'nowhere' matches nothing\n")
    assert "Traceback" not in bad.stderr


def test_no_torch_is_imported_for_a_record() -> None:
    lines = (
        "import sys",
        "from aotcli.cli.main import run",
        "assert run(['explain', 'net.aot.json', 'h.0', '--recompute', 'h.*.fc', '--write-policy', 'p.py']) == 0",
        "assert run(['explain', 'net.aot.json', '-s', 'save-all', '--write-policy', 'p.toml']) == 0",
        "assert run(['partition', 'net.aot.json', '--policy', 'p.toml']) == 0",
        "assert 'torch' not in sys.modules",
    )
    command = [sys.executable, "-c", "\n".join(lines)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr

"""`aotcli diff` on files: what it takes, what it refuses, how it ends."""

from __future__ import annotations

import dataclasses
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from builders import sample_trace
from diff_builders import stack, stack_trace
from typer.testing import CliRunner, Result

from aotcli import api
from aotcli.cli.main import app
from aotcli.errors import AotcliError
from aotcli.ir.trace import TorchRegion, Trace


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("COLUMNS", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    api.save(stack_trace(stack(4)), "old.aot.json")
    api.save(stack_trace(stack(4, act="silu")), "new.aot.json")
    api.save(stack_trace(stack(3)), "less.aot.json")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["diff", *arguments], input=stdin)


def ok(*arguments: str, stdin: str | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def failure(*arguments: str) -> AotcliError:
    result = run(*arguments)
    assert isinstance(result.exception, AotcliError), (result.output, result.exception)
    assert result.exception.exit_code == 2
    return result.exception


def document(*arguments: str) -> dict[str, object]:
    return json.loads(ok(*arguments, "--format", "json"))


class TestSides:
    def test_a_record_and_itself(self) -> None:
        shown = ok("old.aot.json", "old.aot.json")
        assert "No difference: the same graph" in shown
        assert "Every row" not in shown

    def test_two_records(self) -> None:
        shown = ok("old.aot.json", "new.aot.json")
        assert "4 × h.*: gelu became silu" in shown
        assert "equal: " in shown

    def test_strategies_of_the_sides(self) -> None:
        found = document("old.aot.json", "old.aot.json@recompute-all")
        assert (found["left"]["strategy"], found["right"]["strategy"]) == ("mincut", "recompute-all")
        assert found["decision_bytes"] == found["saved_delta_bytes"] < 0

    def test_options_of_a_strategy(self) -> None:
        found = document("old.aot.json@mincut:aggressive=true,max-distance=9", "old.aot.json")
        assert found["left"]["strategy"] == "mincut:aggressive,max-distance=9"

    def test_one_strategy_for_both(self) -> None:
        found = document("old.aot.json", "less.aot.json@recompute-all", "--strategy", "save-all")
        assert (found["left"]["strategy"], found["right"]["strategy"]) == ("save-all", "recompute-all")

    def test_a_file_whose_name_has_an_at(self) -> None:
        Path("old@home.aot.json").write_bytes(Path("old.aot.json").read_bytes())
        assert document("old@home.aot.json", "old.aot.json@mincut")["left"]["name"] == "old@home.aot.json"
        assert document("old@home.aot.json@save-all", "old.aot.json")["left"]["strategy"] == "save-all"

    def test_standard_input_and_compressed_records(self) -> None:
        Path("old.aot.json.gz").write_bytes(gzip.compress(Path("old.aot.json").read_bytes()))
        assert document("old.aot.json.gz", "new.aot.json")["same_graph"] is False
        text = Path("old.aot.json").read_text()
        assert "No difference" in ok("-", "old.aot.json", stdin=text)
        assert json.loads(ok("new.aot.json", "-", "-f", "json", stdin=text))["right"]["name"] == "stdin"

    def test_folders(self) -> None:
        for folder, names in (("a", ("old", "less")), ("b", ("old", "new"))):
            Path(folder).mkdir()
            for name in names:
                Path(folder, f"{name}.aot.json").write_bytes(Path(f"{name}.aot.json").read_bytes())
        Path("b/notes.json").write_text("{}")
        shown = ok("a", "b")
        assert "1 record compared, none differ, 2 on one side only" in shown
        assert "not in b: less" in shown
        assert "not in a: new" in shown
        assert run("a", "b", "--exit-code").exit_code == 1
        assert run("a", "a", "--exit-code").exit_code == 0
        planned = document("a@save-all", "b@recompute-all")
        assert planned["schema"] == "aotcli.diff-folders"
        assert planned["differences"]["old"]["right"]["strategy"] == "recompute-all"


class TestPlanFiles:
    @pytest.fixture(autouse=True)
    def _plans(self) -> None:
        for name, strategy in (("old", "mincut"), ("old", "recompute-all"), ("less", "save-all")):
            api.save(api.partition(api.load(f"{name}.aot.json"), strategy=strategy), f"{name}-{strategy}.aot.json")

    def test_a_plan_and_the_record_that_it_was_made_from(self) -> None:
        assert "No difference" in ok("old.aot.json", "old-mincut.aot.json")
        found = document("old.aot.json", "old-recompute-all.aot.json")
        assert found == {**document("old.aot.json", "old.aot.json@recompute-all"), "right": found["right"]}
        assert found["right"]["name"] == "old-recompute-all.aot.json"

    @pytest.mark.parametrize("other", ["less-save-all.aot.json", "old-recompute-all.aot.json"])
    def test_two_plans(self, other: str) -> None:
        found = document("old-mincut.aot.json", other)
        assert found["unknown"]
        assert found["left"]["forward_ops"] is None
        assert sum(row["delta_bytes"] for row in found["saved"]) == found["saved_delta_bytes"] < 0
        assert found["same_graph"] == other.startswith("old")
        assert found["values"] == found["rewrites"] == []
        shown = ok("old-mincut.aot.json", other)
        assert "plan files and hold no graph" in shown.replace("\n             ", " ")

    def test_a_plan_for_another_graph(self) -> None:
        found = document("old.aot.json", "less-save-all.aot.json")
        assert found["right"]["nodes"] == len(stack(3).nodes)
        assert found["left"]["forward_ops"] > 0
        assert found["right"]["forward_ops"] is None
        kept = [row for row in found["saved"] if row["change"] == "same"]
        assert {row["left"]["module"] for row in kept} >= {"h.*.fc"}
        mirrored = document("less-save-all.aot.json", "old.aot.json")
        assert mirrored["saved_delta_bytes"] == -found["saved_delta_bytes"]

    def test_a_plan_is_not_planned_again(self) -> None:
        error = failure("old-mincut.aot.json@save-all", "old.aot.json")
        assert "is a plan file" in error.what
        assert "@save-all" in error.fix


class TestOutput:
    def test_exit_code(self) -> None:
        assert run("old.aot.json", "new.aot.json").exit_code == 0
        assert run("old.aot.json", "new.aot.json", "--exit-code").exit_code == 1
        assert run("old.aot.json", "old.aot.json", "--exit-code").exit_code == 0
        arguments = ("old.aot.json", "old.aot.json@recompute-all", "--exit-code")
        assert run(*arguments, "--only", "saved").exit_code == 1
        assert run(*arguments, "--only", "graph").exit_code == 0

    def test_a_difference_of_environment_alone_is_none(self) -> None:
        trace = stack_trace(stack(4))
        api.save(dataclasses.replace(trace, notes=("something",), train=False), "eval.aot.json")
        result = run("old.aot.json", "eval.aot.json", "--exit-code")
        assert result.exit_code == 0
        assert "mode train → eval" in result.stdout

    @pytest.mark.parametrize(("name", "first"), [("d.json", "{"), ("d.md", "<!-- written"), ("d.txt", "# written")])
    def test_files(self, name: str, first: str) -> None:
        result = run("old.aot.json", "new.aot.json", "-o", name)
        assert result.exit_code == 0
        assert result.stdout == ""
        assert Path(name).read_text().startswith(first)
        assert run("old.aot.json", "new.aot.json", "-o", name).exit_code == 0  # its own file
        Path("mine.md").write_text("mine")
        assert "was not written by aotcli" in failure("old.aot.json", "new.aot.json", "-o", "mine.md").what
        assert Path("mine.md").read_text() == "mine"

    def test_annotations(self) -> None:
        shown = ok("less.aot.json", "old.aot.json", "--format", "github")
        assert shown.startswith("::notice title=less.aot.json → old.aot.json::")
        assert "::warning file=net.py,line=7," in shown

    def test_rows(self) -> None:
        arguments = ("old.aot.json", "old.aot.json@recompute-all")
        assert "2 more" in ok(*arguments, "--limit", "1")
        assert "more" not in ok(*arguments, "--all")
        assert "Every row" not in ok(*arguments, "-q")

    def test_the_command_for_every_row_is_one(self) -> None:
        shown = ok("old.aot.json", "old.aot.json@recompute-all")
        (command,) = [line.partition(": ")[2] for line in shown.splitlines() if line.startswith("Every row")]
        assert command == "aotcli diff old.aot.json old.aot.json@recompute-all --all"
        assert ok(*command.split()[2:])


class TestTorchDecisions:
    def held(self, trace: Trace, strategy: str) -> Trace:
        """A record as `trace --with-torch` makes it, with what a strategy of ours decides as PyTorch's decision."""
        (partition,) = api.partition(trace, strategy=strategy).plan.partitions
        saved = sorted((value.name for value in partition.saved), key=trace.regions[0].index.__getitem__)
        region = TorchRegion(partition.saved_bytes, tuple(saved), tuple(sorted(partition.replaced.items())))
        return dataclasses.replace(trace, torch_decision=(region,))

    def test_pytorch_decided_differently_about_one_graph(self) -> None:
        """The graph is the same in both versions, what PyTorch saves is not."""
        trace = stack_trace(stack(4))
        newer = dataclasses.replace(trace, environment=dataclasses.replace(trace.environment, torch="2.14.0"))
        api.save(self.held(trace, "recompute-all"), "a.aot.json")
        api.save(self.held(newer, "save-all"), "b.aot.json")
        found = document("a.aot.json", "b.aot.json")
        assert (found["left"]["strategy"], found["right"]["strategy"]) == ("torch", "torch")
        assert found["same_graph"] is True
        assert found["decision_bytes"] == found["saved_delta_bytes"] > 0
        shown = ok("a.aot.json", "b.aot.json")
        assert shown.index("torch 2.13.0") < shown.index("Saved for backward")
        assert "PyTorch's partitioner decided differently" in shown
        assert "No difference" in ok("a.aot.json@mincut", "b.aot.json@mincut")
        assert document("a.aot.json", "b.aot.json", "--strategy", "mincut")["saved_delta_bytes"] == 0

    def test_graph_and_decision_apart(self) -> None:
        api.save(self.held(stack_trace(stack(4)), "recompute-all"), "a.aot.json")
        api.save(self.held(stack_trace(stack(5)), "save-all"), "b.aot.json")
        found = document("a.aot.json", "b.aot.json")
        ours = document("a.aot.json@mincut", "b.aot.json@mincut")
        assert found["yardstick"] == "mincut"
        assert found["graph_bytes"] == ours["saved_delta_bytes"] > 0
        assert found["decision_bytes"] == found["saved_delta_bytes"] - found["graph_bytes"] > 0

    def test_only_one_side_holds_it(self) -> None:
        api.save(self.held(stack_trace(stack(4)), "recompute-all"), "a.aot.json")
        assert document("a.aot.json", "old.aot.json")["left"]["strategy"] == "mincut"
        assert document("a.aot.json@torch", "old.aot.json")["left"]["saved_bytes"] == 0

    def test_a_record_without_it(self) -> None:
        error = failure("old.aot.json@torch", "new.aot.json")
        assert "does not hold PyTorch's own decision" in error.what
        assert error.fix == "aotcli trace net.py --with-torch -o old.aot.json"

    def test_pytorch_failed(self) -> None:
        trace = dataclasses.replace(stack_trace(stack(4)), torch_decision=(TorchRegion(failure="it raised"),))
        api.save(trace, "a.aot.json")
        assert document("a.aot.json", "a.aot.json")["left"]["strategy"] == "mincut"
        assert failure("a.aot.json@torch", "old.aot.json").why == "it raised"


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "what"),
        [
            (["old.aot.json", "gone.aot.json"], "gone.aot.json cannot be read"),
            (["old.aot.json@mincutt", "new.aot.json"], "there is no strategy 'mincutt'"),
            (["old.aot.json@torch-mincut", "new.aot.json"], "cannot plan a record"),
            (["old.aot.json@", "new.aot.json"], "does not say what to compare"),
            (["@mincut", "new.aot.json"], "does not say what to compare"),
            (["old.aot.json", "new.aot.json", "--strategy", "nope"], "there is no strategy 'nope'"),
            (["old.aot.json", "new.aot.json", "--only", "bytes"], "--only bytes"),
            (["old.aot.json", "new.aot.json", "--all", "--limit", "3"], "--all and --limit"),
            (["old.aot.json", "new.aot.json", "--format", "junit"], "--format junit"),
            (["old.aot.json", "new.aot.json", "--level", "aten"], "--level does not go with records"),
            (["old.aot.json", "."], ". is a folder"),
            (["-", "-"], "standard input holds one record"),
        ],
    )
    def test_what_is_refused(self, arguments: list[str], what: str) -> None:
        error = failure(*arguments)
        assert what in error.what
        assert error.fix or error.why

    def test_folders_without_records(self) -> None:
        Path("empty").mkdir()
        assert "neither empty nor empty holds a record" in failure("empty", "empty").what

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("", "bad.aot.json: the record is damaged"),
            ('{"schema": "aotcli.trace", "schema_version": "1.0"', "bad.aot.json: the record is damaged"),
            ('{"schema": "aotcli.trace", "schema_version": "2.0"}', "bad.aot.json: the record is of version 2.0"),
            ('{"schema": "aotcli.plan", "schema_version": "9.1"}', "bad.aot.json: the record is of version 9.1"),
            ('{"schema": "other"}', "bad.aot.json: this is not a trace of aotcli"),
            ("[1, 2]", "bad.aot.json: the record is damaged"),
        ],
    )
    def test_a_damaged_or_newer_record_is_named(self, text: str, what: str) -> None:
        Path("bad.aot.json").write_text(text)
        for arguments in (("bad.aot.json", "old.aot.json"), ("old.aot.json", "bad.aot.json")):
            assert failure(*arguments).what.startswith(what)

    def test_a_newer_minor_version_is_read_with_a_note(self) -> None:
        text = Path("old.aot.json").read_text().replace('"schema_version": "1.0"', '"schema_version": "1.9"')
        Path("newer.aot.json").write_text(text)
        assert "No difference" in ok("newer.aot.json", "old.aot.json")

    def test_two_nodes_of_one_name(self) -> None:
        """A row that goes back in the count of its stem: the record is refused, and it says which."""
        data = json.loads(Path("old.aot.json").read_text())
        template = next(name for name, each in data["templates"].items() if each.get("op") == "aten.gelu.default")
        data["templates"][template]["jump"] = True
        text = json.dumps(data)
        Path("twice.aot.json").write_text(text)
        error = failure("twice.aot.json", "old.aot.json")
        assert error.what.startswith("twice.aot.json: the record is damaged")

    def test_a_decision_about_another_graph(self) -> None:
        api.save(
            dataclasses.replace(stack_trace(stack(4)), torch_decision=(TorchRegion(saved=("gelu_99",)),)),
            "odd.aot.json",
        )
        error = failure("odd.aot.json", "old.aot.json")
        assert "damaged at torch_decision[0]" in error.what
        assert "gelu_99" in error.why

    def test_an_empty_graph(self) -> None:
        nothing = dataclasses.replace(sample_trace(stack(1)), regions=(), breaks=())
        api.save(nothing, "empty.aot.json")
        assert "No difference" in ok("empty.aot.json", "empty.aot.json")
        assert document("empty.aot.json", "old.aot.json")["left"]["nodes"] == 0


def test_records_are_compared_without_torch() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['aotcli', 'diff', 'old.aot.json', 'new.aot.json@recompute-all']\n"
        "from aotcli.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code in (0, None)\n"
        "assert 'torch' not in sys.modules\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Saved for backward" in result.stdout


def test_the_program_ends_as_documented() -> None:
    """One real process: a finding is exit 1, and what was found stands on standard output alone."""
    command = [sys.executable, "-m", "aotcli", "diff", "old.aot.json", "new.aot.json", "--exit-code"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == ""
    assert "gelu became silu" in result.stdout

"""The commands on records: what they print, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import layered, sample_trace, two_matmuls
from typer.testing import CliRunner, Result

from aotcli import __version__, api
from aotcli.cli.main import app
from aotcli.errors import AotcliError
from aotcli.strategies import strategy_class, strategy_names

# Those that plan a record by their name alone.
RUNNABLE = [
    each for each in strategy_names() if not strategy_class(each).needs_live and not strategy_class(each).argument
]


@pytest.fixture(autouse=True)
def _record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("COLUMNS", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    api.save(sample_trace(layered(12, width=64, batch=32), breaks=()), "net.aot.json")
    api.save(sample_trace(two_matmuls(), two_matmuls()), "two.aot.json")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def ok(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def failure(*arguments: str) -> AotcliError:
    result = run(*arguments)
    assert isinstance(result.exception, AotcliError), (result.output, result.exception)
    return result.exception


def document(*arguments: str) -> dict[str, object]:
    return json.loads(ok("partition", *arguments, "--format", "json"))


class TestGeneral:
    def test_version(self) -> None:
        assert ok("--version") == f"aotcli {__version__}\n"

    def test_every_command_has_help(self) -> None:
        commands = [each.name or each.callback.__name__ for each in app.registered_commands] + ["cache"]
        assert {"trace", "show", "partition", "strategies", "doctor", "cache"} <= set(commands)
        for command in commands:
            assert f"Usage: aotcli {command}" in ok(command, "--help")

    def test_an_unknown_command_or_option_is_a_usage_error(self) -> None:
        assert run("partiton").exit_code == 2
        result = run("partition", "net.aot.json", "--stratgy", "mincut")
        assert result.exit_code == 2
        assert "--strategy" in result.stderr

    def test_an_unknown_color(self) -> None:
        assert "--color maybe" in failure("strategies", "--color", "maybe").what


class TestPartition:
    def test_the_shape_of_the_data(self) -> None:
        plan = document("net.aot.json", "--strategy", "mincut")
        assert list(plan) == [
            *("schema", "schema_version", "model", "torch", "device", "level", "strategy", "options"),
            *("eager_saved_bytes", "regions"),
        ]
        assert (plan["schema"], plan["schema_version"], plan["strategy"]) == ("aotcli.partition", "1.0", "mincut")
        (region,) = plan["regions"]
        assert {
            *("fingerprint", "joint_nodes", "forward_ops", "backward_ops", "forward_flops", "backward_flops"),
            *("recompute_flops", "peak_bytes", "saved_bytes", "saved_input_bytes", "cut_value", "recomputed", "saved"),
        } <= set(region)
        for saved in region["saved"]:
            assert {
                *("id", "name", "op", "shape", "dtype", "nbytes", "storage", "kind", "module", "source", "rule"),
                *("reason", "users", "is_input"),
            } <= set(saved)

    @pytest.mark.parametrize("strategy", RUNNABLE)
    def test_bytes_add_up(self, strategy: str) -> None:
        for record in ("net.aot.json", "two.aot.json"):
            for region in document(record, "--strategy", strategy)["regions"]:
                totals = {"saved_bytes": 0, "saved_input_bytes": 0, "saved_output_bytes": 0}
                for saved in region["saved"]:
                    inputs = ("parameter", "buffer", "input")
                    key = "saved_input_bytes" if saved["category"] in inputs else f"saved_{saved['category']}_bytes"
                    totals[key.replace("_activation", "")] += saved["nbytes"]
                assert totals == {key: region[key] for key in totals}

    def test_the_strategies_without_a_cut_have_no_cut_value(self) -> None:
        assert "cut_value" not in document("net.aot.json", "--strategy", "save-all")["regions"][0]

    def test_several_strategies(self) -> None:
        comparison = document("net.aot.json", "--strategy", "mincut", "--strategy", "save-all")
        assert comparison["schema"] == "aotcli.comparison"
        assert [plan["strategy"] for plan in comparison["plans"]] == ["mincut", "save-all"]
        text = ok("partition", "net.aot.json", "-s", "mincut", "-s", "save-all")
        assert "mincut" in text.splitlines()[3]
        assert "save-all" in text.splitlines()[3]

    def test_mincut_is_the_default(self) -> None:
        assert document("net.aot.json")["strategy"] == "mincut"

    def test_an_alias(self) -> None:
        assert document("net.aot.json", "--strategy", "default")["strategy"] == "save-all"

    @pytest.mark.parametrize(
        ("arguments", "option", "value"),
        [
            (["--aggressive"], "aggressive", True),
            (["--no-cse"], "cse", False),
            (["--max-distance", "7"], "max_distance", 7),
            (["--op-set", "nvfuser"], "op_set", "nvfuser"),
            (["--recomputable-ops", "add,gelu"], "recomputable_ops", "add,gelu"),
            (["--opt", "aggressive=yes"], "aggressive", True),
            (["--opt", "max-distance=3"], "max_distance", 3),
        ],
    )
    def test_options_reach_the_strategy(self, arguments: list[str], option: str, value: object) -> None:
        assert document("net.aot.json", *arguments)["options"][option] == value

    def test_options_in_the_strategys_name(self) -> None:
        plan = document("net.aot.json", "--strategy", "mincut:aggressive,max-distance=9")
        assert (plan["options"]["aggressive"], plan["options"]["max_distance"]) == (True, 9)

    @pytest.mark.parametrize(
        ("arguments", "what"),
        [
            (["--strategy", "mincutt"], "there is no strategy 'mincutt'"),
            (["--opt", "agressive=1"], "no option 'agressive'"),
            (["--opt", "aggressive=maybe"], "'maybe' is no value"),
            (["--opt", "aggressive"], "--opt aggressive"),
            (["--budget", "0.5"], "no option 'budget'"),
            (["--strategy", "save-all", "--aggressive"], "no option 'aggressive'"),
            (["--strategy", "save-all", "--strategy", "mincut", "--budget", "0.5"], "'budget'"),
            (["--max-distance", "-1"], "max-distance"),
            (["--op-set", "nvfusr"], "nvfusr"),
            (["--sort", "size"], "--sort size"),
            (["--all", "--limit", "3"], "--all and --limit"),
            (["--strategy", "torch-mincut"], "cannot plan a record"),
        ],
    )
    def test_what_is_refused(self, arguments: list[str], what: str) -> None:
        error = failure("partition", "net.aot.json", *arguments)
        assert what in error.what
        assert error.exit_code == 2
        assert error.fix or error.why

    def test_a_near_strategy_is_offered(self) -> None:
        assert "did you mean 'mincut'?" in failure("partition", "net.aot.json", "--strategy", "mincutt").fix

    def test_rows(self) -> None:
        flat = ok("partition", "net.aot.json", "--strategy", "save-all", "--flat", "--limit", "4")
        rows = [line for line in flat.splitlines() if " h." in line and "32×64" in line]
        assert len(rows) == 4
        assert "more" in flat
        every = ok("partition", "net.aot.json", "--strategy", "save-all", "--flat", "--all")
        assert len([line for line in every.splitlines() if " h." in line and "32×64" in line]) >= 23

    def test_the_width(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert max(map(len, ok("partition", "net.aot.json").splitlines()[:8])) <= 80
        monkeypatch.setenv("COLUMNS", "200")
        assert "why it is saved   line" in ok("partition", "net.aot.json")

    def test_color_only_when_asked_for_off_a_terminal(self) -> None:
        assert "\x1b" not in ok("partition", "net.aot.json")
        assert "\x1b[1m" in ok("partition", "net.aot.json", "--color", "always")

    def test_a_strategy_from_a_file(self) -> None:
        Path("own.py").write_text(
            "from dataclasses import dataclass\n"
            "from typing import ClassVar\n"
            "from aotcli.strategies.save_all import SaveAll\n\n"
            "@dataclass(frozen=True)\n"
            "class Own(SaveAll):\n"
            "    name: ClassVar[str] = 'own'\n"
            "    knob: int = 1\n"
        )
        assert document("net.aot.json", "--strategy", "own.py:Own", "--opt", "knob=3")["options"] == {"knob": 3}

    def test_the_configured_strategies(self) -> None:
        Path("pyproject.toml").write_text('[tool.aotcli]\nstrategy = ["save-all", "recompute-all"]\n')
        comparison = document("net.aot.json")
        assert [plan["strategy"] for plan in comparison["plans"]] == ["save-all", "recompute-all"]
        assert document("net.aot.json", "--strategy", "mincut")["strategy"] == "mincut"


class TestShow:
    def test_summary(self) -> None:
        text = ok("show", "net.aot.json")
        assert "Joint graph" in text
        assert "aotcli partition net.aot.json --strategy mincut" in text
        assert "Next:" not in ok("show", "net.aot.json", "-q")

    def test_code(self) -> None:
        assert "def joint_region0(" in ok("show", "net.aot.json", "--graph", "joint")
        backward = ok("show", "net.aot.json", "--graph", "backward", "--strategy", "recompute-all")
        assert any(line.startswith("R ") for line in backward.splitlines())
        assert "there is no graph" in failure("show", "net.aot.json", "--graph", "middle").what

    def test_every_region_is_printed(self) -> None:
        assert ok("show", "two.aot.json", "--graph", "joint").count("def joint_region0(") == 2


class TestOthers:
    def test_strategies(self) -> None:
        text = ok("strategies")
        for name in strategy_names():
            assert name in text
        assert "max-distance=1000" in text
        assert "(also default)" in text

    def test_doctor(self) -> None:
        result = run("doctor")
        assert result.exit_code == 0
        for part in (
            "python",
            "torch",
            "networkx",
            "typer",
            "rich",
            "pydot",
            "transformers",
            "timm",
            "graphviz",
            "cuda",
        ):
            assert part in result.stdout

    def test_cache(self) -> None:
        assert "0 captures" in ok("cache", "info")
        assert "deleted 0 captures" in ok("cache", "clear")

    def test_completion_of_strategies(self) -> None:
        from aotcli.cli.commands.partition import complete_strategy

        assert complete_strategy("min") == ["mincut"]
        assert set(complete_strategy("")) == set(strategy_names())

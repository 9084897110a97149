"""The pytest plugin: tests within tests, on records made by hand; a real model and real processes in a few."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import aotcli
from aotcli.api.baselines import check_name
from aotcli.api.testing import baseline_name, parse_demand, parse_growth
from aotcli.cli.main import app
from aotcli.errors import InputError
from aotcli.ir.check import Quantity

pytest_plugins = ("pytester",)

TESTS = Path(__file__).parent
TORCH_SIDE = ("aotcli.__main__", "aotcli.capture", "aotcli.lowering", "aotcli.validation", "aotcli.strategies.torch")
HEAD = """
import pytest
from builders import layered, sample_trace

def step(layers=3, **sizes):
    return sample_trace(layered(layers, **{"width": 64, "batch": 256, **sizes}), breaks=())
"""
# Three layers save 3 x 64 KiB of products and 2 x 64 KiB between them.
SAVED_BYTES = 5 * 65536


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """pytester forgets the modules that a run within imports; a second import would make other classes of one name."""
    for info in pkgutil.walk_packages(aotcli.__path__, "aotcli."):
        if not info.name.startswith(TORCH_SIDE):
            importlib.import_module(info.name)


def write(pytester: pytest.Pytester, body: str, name: str = "test_net") -> None:
    # Another name each time would be another baseline, so that a module is imported anew by hand.
    sys.modules.pop(name, None)
    (pytester.path / f"{name}.py").write_text(HEAD + body)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-q", *arguments)


def baselines(pytester: pytest.Pytester) -> list[str]:
    return sorted(path.name for path in (pytester.path / ".aotcli").glob("*"))


def accept(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["accept", *arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


PLAIN = """
def test_memory(aot_graph):
    figures = aot_graph.check(step({layers}))
    assert figures.saved_bytes == {saved}
"""


def plain(layers: int = 3) -> str:
    return PLAIN.format(layers=layers, saved=(2 * layers - 1) * 65536)


class TestBaselines:
    def test_the_first_run_says_how_to_keep_what_it_found(self, pytester: pytest.Pytester) -> None:
        write(pytester, plain())
        result = run(pytester)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            ["new*test_net.test_memory*saved 320.0 KiB*no baseline yet", "*keep it:*aotcli accept test_net.test_memory"]
        )
        assert baselines(pytester) == ["test_net.test_memory.new.aot.json"]

    def test_accepted_held_to_and_changed(self, pytester: pytest.Pytester) -> None:
        write(pytester, plain())
        run(pytester)
        assert "accepted test_net.test_memory" in accept("test_net.test_memory")
        assert baselines(pytester) == ["test_net.test_memory.aot.json"]
        run(pytester).assert_outcomes(passed=1)
        write(pytester, plain(4))
        result = run(pytester)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "FAIL*test_net.test_memory*saved*320.0 → 448.0 KiB*+128.0 KiB (+40.0 %)*",
                "*+64.0*h.3.fc*mm*256×64*net.py:7*",
                "*intended?*aotcli accept test_net.test_memory --reason*",
            ]
        )
        accept("test_net.test_memory", "--reason", "a fourth layer")
        run(pytester).assert_outcomes(passed=1)

    def test_a_failure_shows_no_line_of_ours(self, pytester: pytest.Pytester) -> None:
        write(pytester, plain())
        text = run(pytester).stdout.str()
        for word in ("Traceback", "pytest_plugin.py", "testing.py", "During handling", ">  ", "def test_memory"):
            assert word not in text, word

    def test_in_ci_nothing_is_written(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        write(pytester, plain())
        result = run(pytester)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*keep it:*pytest test_net.py::test_memory; aotcli accept test_net.test_memory"])
        assert not (pytester.path / ".aotcli").exists()
        run(pytester, "--aotcli-new", "artefacts").assert_outcomes(failed=1)
        assert [path.name for path in (pytester.path / "artefacts").iterdir()] == ["test_net.test_memory.new.aot.json"]
        assert not (pytester.path / ".aotcli").exists()

    def test_an_improvement_is_named_and_is_no_failure(self, pytester: pytest.Pytester) -> None:
        write(pytester, plain())
        run(pytester)
        accept("test_net.test_memory")
        write(pytester, plain(2))
        result = run(pytester)
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(
            [
                "test_net.test_memory is better than its baseline: saved 320.0 → 192.0 KiB*",
                "  hold it: aotcli accept test_net.test_memory --reason*",
            ]
        )

    def test_a_damaged_baseline(self, pytester: pytest.Pytester) -> None:
        write(pytester, plain())
        (pytester.path / ".aotcli").mkdir()
        (pytester.path / ".aotcli" / "test_net.test_memory.aot.json").write_text("{")
        result = run(pytester)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["ERROR*test_net.test_memory*", "*fix:*"])

    def test_a_test_from_a_folder_below(self, pytester: pytest.Pytester) -> None:
        (pytester.path / "unit").mkdir()
        (pytester.path / "unit" / "test_deep.py").write_text(HEAD + plain())
        run(pytester, "unit").assert_outcomes(failed=1)
        assert baselines(pytester) == ["unit.test_deep.test_memory.new.aot.json"]

    def test_growth_structure_and_ops(self, pytester: pytest.Pytester) -> None:
        def body(layers: int, demanded: str) -> str:
            return f"def test_memory(aot_graph):\n    aot_graph.check(step({layers}), {demanded})\n"

        write(pytester, body(3, ""))
        run(pytester)
        accept("test_net.test_memory")
        for demanded, passes in (
            ('growth="50 %"', True),
            ('growth="200 KiB"', True),
            ("growth=0.39", False),
            ('growth="1 GiB", structure="exact"', False),
            ('growth="1 GiB", forbid_ops=["aten.gelu*"]', False),
        ):
            write(pytester, body(4, demanded))
            run(pytester).assert_outcomes(passed=int(passes), failed=int(not passes))

    def test_several_checks_in_one_test(self, pytester: pytest.Pytester) -> None:
        body = """
def test_two(aot_graph):
    aot_graph.check(step(2), name="small", baseline=False)
    aot_graph.check(step(3), name="large", baseline=True)
def test_twice(aot_graph):
    aot_graph.check(step(2), baseline=False)
    aot_graph.check(step(3), baseline=False)
"""
        write(pytester, body)
        result = run(pytester)
        result.assert_outcomes(failed=2)
        result.stdout.fnmatch_lines(
            ["*keep it:*aotcli accept test_net.test_two--large", "test_net.test_twice was checked before in this test*"]
        )
        assert baselines(pytester) == ["test_net.test_two--large.new.aot.json"]


class TestLimits:
    @pytest.mark.parametrize(
        ("mark", "passes"),
        [
            ("limit_saved('320 KiB')", True),
            ("limit_saved('319 KiB')", False),
            ("limit_saved(327680)", True),
            ("limit_peak('1 GiB')", True),
            ("limit_peak('64 KiB')", False),
            ("limit_recompute('0 FLOP')", True),
            ("limit_recompute('5 %')", True),
        ],
    )
    def test_one_limit_needs_no_baseline(self, pytester: pytest.Pytester, mark: str, passes: bool) -> None:
        write(pytester, f"@pytest.mark.{mark}\n" + plain().lstrip())
        result = run(pytester)
        result.assert_outcomes(passed=int(passes), failed=int(not passes))
        assert baselines(pytester) == []
        if not passes:
            text = result.stdout.str()
            assert "over the limit" in text
            assert "h.*.fc" in text
            assert "net.py:7" in text
            assert "accept" not in text

    @pytest.mark.parametrize(("limit", "passes"), [("40 %", True), ("10 %", False), ("400 kFLOP", False)])
    def test_recomputed_flops(self, pytester: pytest.Pytester, limit: str, passes: bool) -> None:
        body = f"""
@pytest.mark.limit_recompute({limit!r})
def test_memory(aot_graph):
    aot_graph.check(step(3), strategy="recompute-all")
"""
        write(pytester, body)
        run(pytester).assert_outcomes(passed=int(passes), failed=int(not passes))

    def test_limits_and_a_baseline(self, pytester: pytest.Pytester) -> None:
        write(pytester, plain())
        run(pytester)
        accept("test_net.test_memory")
        write(pytester, "@pytest.mark.limit_saved('1 GiB')\n" + plain(4).lstrip())
        result = run(pytester)
        result.assert_outcomes(failed=1)  # it is far below the limit, and above the baseline that was accepted
        result.stdout.fnmatch_lines(["*320.0 → 448.0 KiB*"])

    def test_the_nearest_mark_counts(self, pytester: pytest.Pytester) -> None:
        body = """
@pytest.mark.limit_saved('1 KiB')
class TestNet:
    @pytest.mark.limit_saved('1 GiB')
    def test_memory(self, aot_graph):
        aot_graph.check(step())
    def test_other(self, aot_graph):
        aot_graph.check(step())
"""
        write(pytester, body)
        run(pytester).assert_outcomes(passed=1, failed=1)

    @pytest.mark.parametrize(
        ("mark", "message", "fix"),
        [
            ("limit_saved('24')", "limit_saved('24'): '24' is no size", "write 24MiB, if that is meant"),
            ("limit_saved('24 Mebi')", "limit_saved('24 Mebi'): '24 Mebi' is no size", "write 24MiB, for instance"),
            ("limit_peak('5 %')", "limit_peak('5 %'): '5 %' is no size", "write 24MiB"),
            ("limit_recompute('1 GiB')", "limit_recompute('1 GiB'): '1 GiB' is no number of FLOPs", "write 2.5 GFLOP"),
            ("limit_saved(2.5)", "limit_saved(2.5): 2.5 is no amount", 'write "24 MiB"'),
            ("limit_saved", "the mark limit_saved takes one amount", "write it as limit_saved(size)"),
            ("limit_saved('1 B', '2 B')", "the mark limit_saved takes one amount", "write it as"),
            ("limit_saved(most='1 B')", "the mark limit_saved takes one amount", "write it as"),
        ],
        ids=str,
    )
    def test_a_bad_mark_gives_one_message(self, pytester: pytest.Pytester, mark: str, message: str, fix: str) -> None:
        write(pytester, f"@pytest.mark.{mark}\n" + plain().lstrip())
        result = run(pytester)
        result.assert_outcomes(errors=1)
        lines = result.stdout.lines
        start = next(i for i, line in enumerate(lines) if "ERROR at setup of test_memory" in line)
        assert lines[start + 1] == message
        assert f"fix: {fix}" in "\n".join(lines[start : start + 4])
        assert "During handling" not in result.stdout.str()

    def test_a_mark_without_the_fixture(self, pytester: pytest.Pytester) -> None:
        write(pytester, "@pytest.mark.limit_saved('1 GiB')\ndef test_memory(): pass\n")
        result = run(pytester)
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["the mark limit_saved has no effect: this test does not use the fixture*"])

    def test_a_mark_on_a_class_is_for_those_that_take_the_fixture(self, pytester: pytest.Pytester) -> None:
        body = """
@pytest.mark.limit_saved('1 GiB')
class TestNet:
    def test_memory(self, aot_graph):
        aot_graph.check(step())
    def test_other(self): pass
"""
        write(pytester, body)
        run(pytester).assert_outcomes(passed=2)

    def test_a_limit_and_no_check(self, pytester: pytest.Pytester) -> None:
        write(pytester, "@pytest.mark.limit_saved('1 GiB')\ndef test_memory(aot_graph): pass\n")
        result = run(pytester)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["this test has limits and checks nothing"])

    def test_marks_are_known(self, pytester: pytest.Pytester) -> None:
        write(pytester, "@pytest.mark.limit_saved('1 GiB')\n" + plain().lstrip())
        run(pytester, "--strict-markers").assert_outcomes(passed=1)
        text = pytester.runpytest_inprocess("--markers").stdout.str()
        for mark in ("limit_saved(size)", "limit_peak(size)", "limit_recompute(amount)"):
            assert f"@pytest.mark.{mark}" in text

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("growth='much'", "'much' is no size"),
            ("growth=5", "growth=5"),
            ("structure='equal'", "structure='equal'"),
            ("strategy='mincutt'", "there is no strategy 'mincutt'"),
            ("levl='aten'", "there is no capture setting 'levl'"),
        ],
    )
    def test_bad_arguments(self, pytester: pytest.Pytester, arguments: str, message: str) -> None:
        model = "len, ()" if "levl" in arguments else "step()"
        write(pytester, f"def test_memory(aot_graph):\n    aot_graph.check({model}, {arguments})\n")
        result = run(pytester)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"{message}*".replace("[", "[[]"), "  fix: *"])


class TestNames:
    @pytest.mark.parametrize(
        ("test", "part", "name"),
        [
            ("tests/test_net.py::test_memory", None, "tests.test_net.test_memory"),
            ("test_net.py::TestNet::test_memory", None, "test_net.TestNet.test_memory"),
            ("test_net.py::test_memory[bf16]", None, "test_net.test_memory-bf16"),
            ("test_net.py::test_memory[bf16-2]", "decoder", "test_net.test_memory-bf16-2--decoder"),
        ],
    )
    def test_plain(self, test: str, part: str | None, name: str) -> None:
        assert baseline_name(test, part) == name

    @given(st.text(max_size=200), st.text(max_size=200))
    def test_any_id_makes_a_name_of_its_own(self, left: str, right: str) -> None:
        names = [baseline_name(f"test_net.py::test_memory[{text}]") for text in (left, right)]
        for name in names:
            check_name(name)
        assert (names[0] == names[1]) is (left == right)

    def test_ids_that_look_alike(self) -> None:
        ids = [f"t.py::test_a{rest}" for rest in ("[x]", "-x", "[x/y]", "[x y]", "[x-y]", "[x--y]", "[x.y]", "")]
        ids += ["t/test_a.py::b", "t.test_a.py::b", "t.py::test_a::b"]
        names = {baseline_name(each) for each in ids} | {baseline_name(each, "y") for each in ids}
        assert len(names) == 2 * len(ids)

    def test_a_long_id(self) -> None:
        ids = [f"t.py::test_a[{'x' * 300}{end}]" for end in "ab"]
        assert len({baseline_name(each) for each in ids}) == 2
        assert all(len(baseline_name(each)) <= 110 for each in ids)


class TestAmounts:
    def test_demands(self) -> None:
        assert parse_demand(Quantity.SAVED, "1.5 MiB").most == 3 << 19
        assert parse_demand(Quantity.RECOMPUTE, "2.5 GFLOP").most == 2_500_000_000
        assert parse_demand(Quantity.RECOMPUTE, "5 %").share == parse_growth("5%").share == parse_growth(0.05).share

    @pytest.mark.parametrize("value", [True, None, -1, 1.5, "", "%", "nan", "-1 MiB"])
    def test_nonsense(self, value: object) -> None:
        for quantity in Quantity:
            with pytest.raises(InputError):
                parse_demand(quantity, value)


MODEL = """
import pytest
import torch
from torch import nn

def loss(output):
    return output.mean()

def test_model(aot_graph):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    figures = aot_graph.check(model, (torch.ones(4, 8),), loss=loss, level="aten", baseline=False)
    assert figures.saved_bytes == 4 * 16 * 4 * 2
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())

def test_inputs_that_do_not_fit(aot_graph):
    aot_graph.check(nn.Linear(4, 4), (torch.ones(2, 3),), loss=loss)
"""


class TestModels:
    def test_a_model_object(self, pytester: pytest.Pytester) -> None:
        (pytester.path / "test_model.py").write_text(MODEL)
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q")
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines(["the model raised when it was called", "  why: RuntimeError: mat1 and mat2*"])
        text = result.stdout.str()
        for word in ("Traceback", "During handling", "torch.__trace"):
            assert word not in text, word

    def test_the_example_of_the_documentation(self, pytester: pytest.Pytester) -> None:
        text = (TESTS.parent / "docs" / "pytest.md").read_text(encoding="utf-8")
        (pytester.path / "test_example.py").write_text(text.partition("```python\n")[2].partition("```")[0])
        net = "from torch import nn\n\ndef Net():\n    return nn.Sequential(nn.Linear(64, 64), nn.GELU())\n"
        (pytester.path / "net.py").write_text(net)
        pytester.syspathinsert()
        pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q").assert_outcomes(passed=1, failed=1)


class TestProcesses:
    def process(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = (
            "import sys, pytest\n"
            f"code = pytest.main({list(arguments)!r})\n"
            "loaded = [name for name in ('torch', 'aotcli.pytest_plugin', 'aotcli.api') if name in sys.modules]\n"
            "print('LOADED', *loaded)\n"
            "sys.exit(code)\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    def test_start_up_imports_pytest_alone(self, pytester: pytest.Pytester) -> None:
        """The entry point of the installed package loads the plugin, and the plugin loads nothing."""
        write(pytester, plain())
        (pytester.path / "test_net.py").write_text("def test_memory(aot_graph): pass\ndef test_other(): pass\n")
        collected = self.process(pytester.path, "--co", "-q")
        assert collected.stdout.splitlines()[-1] == "LOADED aotcli.pytest_plugin", collected.stdout + collected.stderr
        others = self.process(pytester.path, "-q", "-k", "other")
        assert others.returncode == 0
        assert others.stdout.splitlines()[-1] == "LOADED aotcli.pytest_plugin"

    def test_several_workers_keep_baselines_apart(self, pytester: pytest.Pytester) -> None:
        pytest.importorskip("xdist")
        body = """
@pytest.mark.parametrize("layers", [2, 3, 4, 5])
def test_many(aot_graph, layers):
    aot_graph.check(step(layers))

@pytest.mark.xdist_group("one")
def test_of_a_group(aot_graph):
    aot_graph.check(step(2))
"""
        write(pytester, body)
        arguments = ("-q", "-n", "2", "-p", "no:cacheprovider", "--dist", "loadgroup")
        first = self.process(pytester.path, *arguments)
        assert "5 failed" in first.stdout, first.stdout + first.stderr
        names = [f"test_net.test_many-{layers}" for layers in (2, 3, 4, 5)] + ["test_net.test_of_a_group"]
        assert baselines(pytester) == [f"{name}.new.aot.json" for name in names]
        accept("--all")
        second = self.process(pytester.path, *arguments)
        assert "5 passed" in second.stdout, second.stdout + second.stderr
        assert baselines(pytester) == [f"{name}.aot.json" for name in names]

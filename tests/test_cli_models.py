"""The commands on real models: what they show, what they say where a model cannot be traced, and what they remember."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import aotcli
from aotcli import api
from aotcli.cli.main import app, run
from aotcli.errors import AotcliError

SAMPLES = Path(__file__).parents[1] / "sample_models"

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = torch.nn.functional.gelu(block(x))
        return x

def model(width: int = 16):
    return Net(width)

def inputs(width: int = 16):
    return (torch.randn(4, width),)

def loss(output):
    return output.square().mean()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("COLUMNS", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def ok(*arguments: str) -> Result:
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def failure(*arguments: str) -> AotcliError:
    result = invoke(*arguments)
    assert isinstance(result.exception, AotcliError), (result.output, result.exception)
    assert result.stdout == ""
    return result.exception


class TestTrace:
    def test_summary_and_record(self) -> None:
        result = ok("trace", "net.py", "-o", "net.aot.json")
        assert "net  model + loss, train · 816 params f32 · x f32[4,16] · cpu" in result.stdout
        assert "aotcli partition net.aot.json --strategy mincut" in result.stdout
        assert result.stderr == "wrote net.aot.json\n"
        shown = ok("show", "net.aot.json").stdout
        assert shown == result.stdout

    def test_settings_reach_the_capture(self) -> None:
        options = ["--level", "aten", "--set", "width=8", "--dtype", "bfloat16", "--eval", "--no-loss", "--seed", "3"]
        text = ok("trace", "net.py", *options, "--tensors", "real").stdout
        for part in ("model, no loss, eval", "params bf16", "x bf16[4,8]", "level aten", "real", "seed 3", "width=8"):
            assert part in text.replace("\n     ", " · "), part

    def test_dynamic(self) -> None:
        ok("trace", "net.py", "--dynamic", "-o", "net.aot.json")
        (graph,) = api.load("net.aot.json").regions
        assert graph.symbols

    def test_inputs_on_the_command_line(self) -> None:
        assert "x f32[7,16]" in ok("trace", "net.py", "--input", "f32[7,16]").stdout

    def test_code(self) -> None:
        text = ok("trace", "net.py", "--graph", "backward").stdout
        assert text.lstrip().startswith("def backward_region0(")
        assert "net.py:" in text

    def test_code_as_pytorch_would_cut_it(self) -> None:
        ours = ok("trace", "net.py", "--graph", "backward", "--strategy", "mincut").stdout
        theirs = ok("trace", "net.py", "--graph", "backward", "--strategy", "torch-mincut").stdout
        assert theirs == ours

    def test_what_can_be_refused_is_refused_before_the_capture(self) -> None:
        Path("raises.py").write_text("1 / 0")
        Path("mine.txt").write_text("mine")
        assert "no graph" in failure("trace", "raises.py", "--graph", "middle").what
        assert "no strategy" in failure("trace", "raises.py", "--graph", "forward", "-s", "nonsense").what
        for command in ("trace", "partition"):
            assert "was not written by aotcli" in failure(command, "raises.py", "-o", "mine.txt").what

    def test_progress_with_v(self) -> None:
        assert "capturing" in ok("trace", "net.py", "-v", "--no-cache").stderr
        assert ok("trace", "net.py", "--no-cache").stderr == ""

    def test_a_script(self) -> None:
        Path("train.py").write_text(
            NET + "\nif __name__ == '__main__':\n    import sys\n    net = torch.compile(model(int(sys.argv[1])))\n"
            "    net(*inputs(int(sys.argv[1]))).sum().backward()\n"
        )
        result = ok("trace", "--level", "aten", "--", "python", "train.py", "8")
        assert "Joint graph" in result.stdout
        assert "Next:  aotcli trace -o step.aot.json -- python train.py 8" in result.stdout
        error = failure("trace", "net.py", "--", "python", "train.py")
        assert "both a model (net.py) and a script" in error.what

    def test_a_script_that_is_none(self) -> None:
        assert failure("trace", "--", "python", "absent.py").exit_code == 2

    def test_options_that_a_script_would_ignore(self) -> None:
        error = failure("trace", "--set", "width=3", "--", "python", "net.py")
        assert "--set does not go with a script" in error.what


class TestPartition:
    def test_the_view(self) -> None:
        text = ok("partition", "net.py").stdout
        lines = text.splitlines()
        assert lines[3].startswith("Saved for backward  ")
        assert "eager saves" in lines[3]
        assert "blocks.*" in text
        assert "Use it:  import aotcli" in text

    @pytest.mark.parametrize("level", ["inductor", "aten"])
    def test_bytes_and_backward_ops_have_an_owner_and_a_line(self, level: str) -> None:
        trace = aotcli.trace(str(SAMPLES / "attention.py"), level=level, cache=False)
        for graph in trace.regions:
            result = api.partition(trace, strategy="save-all", alternatives=False)
            for partition in result.plan.partitions:
                owned = [v.nbytes for v in partition.saved if v.module is not None and v.source is not None]
                assert sum(owned) >= 0.99 * sum(value.nbytes for value in partition.saved)
                backward = [graph[name] for name in partition.backward_nodes]
                placed = [node for node in backward if node.module is not None and node.source is not None]
                assert len(placed) >= 0.95 * len(backward)

    def test_the_references_run_on_a_model(self) -> None:
        text = ok("partition", "net.py", "-s", "mincut", "-s", "torch-mincut").stdout
        assert "mincut and torch-mincut save the same values" in text
        assert "saved" in ok("partition", "net.py", "-s", "torch-mincut", "--budget", "0.5").stdout.lower()

    def test_a_second_run_is_cached_until_the_file_changes(self) -> None:
        header = slice(0, 3)
        first = ok("partition", "net.py").stdout
        assert "cached" not in "".join(first.splitlines()[header])
        again = ok("partition", "net.py").stdout
        assert "cached" in "".join(again.splitlines()[header])
        assert "cached" not in ok("partition", "net.py", "--no-cache").stdout
        assert "1 capture" in ok("cache", "info").stdout
        Path("net.py").write_text(NET.replace("range(3)", "range(2)"))
        assert "cached" not in ok("partition", "net.py").stdout
        assert "deleted" in ok("cache", "clear").stdout

    def test_without_a_model_the_last_one(self) -> None:
        assert failure("partition").exit_code == 2
        ok("trace", "net.py", "--set", "width=8")
        result = ok("partition", "--strategy", "save-all")
        assert result.stderr == "model: net.py (last traced just now)\n"
        assert "x f32[4,8]" in result.stdout
        assert "  aotcli partition --strategy" in result.stdout

    def test_without_a_model_the_projects(self) -> None:
        Path("pyproject.toml").write_text('[tool.aotcli]\nmodel = "net.py"\nset = { width = 4 }\n')
        result = ok("partition")
        assert result.stderr.startswith("model: net.py (pyproject.toml of ")
        assert "x f32[4,4]" in result.stdout

    def test_a_forward_only_model(self) -> None:
        text = ok("partition", str(SAMPLES / "inference.py")).stdout
        assert "nothing" in text

    def test_graph_breaks_are_all_shown(self) -> None:
        text = ok("trace", str(SAMPLES / "graph_break.py")).stdout
        assert "Graph break" in text
        assert text.count("region") >= 3


class TestBadInput:
    """Each gives one message with a fix, exit code 2, no traceback, and nothing on standard output."""

    CASES = (
        ("absent.py", None, "absent.py"),
        ("raises.py", "1 / 0", "ZeroDivisionError"),
        ("syntax.py", "def", "syntax"),
        ("empty.py", "", "model"),
        ("no_inputs.py", "import torch\nmodel = torch.nn.Linear(2, 2)", "inputs"),
        ("signature.py", "import torch\nmodel = torch.nn.Linear(2, 2)\ninputs = (torch.ones(2), 3, 4)", "forward"),
        ("shape.py", "import torch\nmodel = torch.nn.Linear(2, 2)\ninputs = (torch.ones(3),)", ""),
        ("no_tensor.py", "def model(x):\n    return 3\nimport torch\ninputs = (torch.ones(2),)", "tensor"),
        (
            "unknown_type.py",
            (
                "import torch\nclass Out:\n    def __init__(self, x):\n        self.x = x\n"
                "class Net(torch.nn.Linear):\n    def forward(self, x):\n        return Out(super().forward(x))\n"
                "model = Net(2, 2)\ninputs = (torch.ones(2),)"
            ),
            "Out",
        ),
    )

    @pytest.mark.parametrize(("name", "code", "word"), CASES, ids=[case[0] for case in CASES])
    def test_models(self, name: str, code: str | None, word: str, capsys: pytest.CaptureFixture[str]) -> None:
        if code is not None:
            Path(name).write_text(code)
        for command in ("trace", "partition"):
            error = failure(command, name, "--no-cache")
            assert error.exit_code == 2
            assert word.lower() in str(error).lower()
        assert run(["trace", name, "--no-cache"]) == 2
        assert "\n  fix: " in capsys.readouterr().err

    @pytest.mark.parametrize(
        "options",
        [
            ["--input", "f32[2"],
            ["--input", "q99[2]"],
            ["--set", "width"],
            ["--set", "widht=3"],
            ["--level", "atne"],
            ["--tensors", "fak"],
            ["--dtype", "float31"],
            ["--autocast", "nonsense"],
            ["--device", "toaster"],
        ],
        ids=" ".join,
    )
    def test_options(self, options: list[str]) -> None:
        error = failure("partition", "net.py", *options)
        assert error.exit_code == 2
        assert error.fix or error.why

    def test_what_depends_on_data_needs_real_tensors(self) -> None:
        Path("data.py").write_text(
            "import torch\n"
            "class Net(torch.nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.fc = torch.nn.Linear(64, 400)\n"
            "        self.steps = int(self.fc.weight.abs().sum().item() > 0)\n"
            "    def forward(self, x):\n"
            "        return self.fc(x) * self.steps\n"
            "model = Net\n"
            "inputs = (torch.ones(2, 64),)\n"
        )
        text = ok("trace", "data.py").stdout
        assert "traced on real tensors" in text
        error = failure("trace", "data.py", "--tensors", "fake")
        assert "fake" in error.what
        assert "--tensors" in error.fix

    def test_no_file_is_left_behind(self, folder: Path) -> None:
        Path("raises.py").write_text("1 / 0")
        before = sorted(path.name for path in folder.iterdir())
        failure("trace", "raises.py", "-o", "out.aot.json")
        after = sorted(path.name for path in folder.iterdir() if path.name not in ("cache", "__pycache__"))
        assert after == [name for name in before if name not in ("cache", "__pycache__")]

    def test_the_exit_code_of_the_program(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["partition", "absent.py"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: ")


class TestApi:
    def test_a_model_object(self) -> None:
        import torch

        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU())
        trace = aotcli.trace(model, torch.randn(2, 8), loss=lambda out: out.mean(), name="tiny")
        assert trace.model.name == "tiny"
        assert trace.loss
        result = aotcli.partition(trace, strategy="save-all")
        assert repr(result) == result.text()
        assert json.loads(result.json())["model"] == "tiny"
        again = aotcli.partition(model, torch.randn(2, 8), strategy="torch-mincut", loss=lambda out: out.mean())
        assert again.plan.strategy == "torch-mincut"

    def test_save_and_load(self) -> None:
        trace = aotcli.trace("net.py", level="aten")
        aotcli.save(trace, "net.aot.json.gz")
        assert aotcli.load("net.aot.json.gz") == trace
        aotcli.save(aotcli.partition(trace), "plan.aot.json")
        assert '"schema": "aotcli.plan"' in Path("plan.aot.json").read_text()[:200]

    @pytest.mark.parametrize(
        ("call", "word"),
        [
            (lambda: aotcli.trace(3), "is no model"),
            (lambda: aotcli.trace(len), "inputs are missing"),
            (lambda: aotcli.trace("net.py", (1,)), "names a model"),
            (lambda: aotcli.trace("net.py", levle="aten"), "'levle'"),
            (lambda: aotcli.partition("net.py", strategy=[]), "no strategy"),
        ],
    )
    def test_what_is_refused(self, call: object, word: str) -> None:
        with pytest.raises(AotcliError, match=word):
            call()

    def test_the_lines_to_paste_run(self) -> None:
        import torch

        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
        for level in ("aten", "inductor"):
            trace = aotcli.trace(model, torch.randn(2, 8), level=level)
            for strategy in ("mincut:aggressive", "save-all", "recompute-all:cse=false"):
                names = {"model": model}
                exec("\n".join(aotcli.partition(trace, strategy=strategy).plan.usage), names)  # noqa: S102
                names["model"](torch.randn(2, 8)).sum().backward()

    def test_a_trace_shows_itself_briefly(self) -> None:
        assert len(repr(aotcli.trace("net.py"))) < 400

    def test_names_are_offered(self) -> None:
        assert {"trace", "partition", "save", "load", "compile", "Partitioner"} <= set(dir(aotcli))
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = aotcli.nonsense

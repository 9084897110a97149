"""A user's own script: its first step is recorded, and it is stopped there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from aotcli.capture.script import capture_script, input_name, parse_command  # noqa: E402
from aotcli.errors import CaptureError, WorkloadError  # noqa: E402
from aotcli.ir.joint import NodeKind  # noqa: E402
from aotcli.ir.trace import CaptureSettings, Trace  # noqa: E402

HEAD = "import torch, sys\nfrom torch import nn\nx = torch.ones(4, 8)\n"
LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10 ** 6):
    compiled(x).sum().backward()
    print("after backward", step)
    optimizer.step()
    print("after step", step)
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)


def record(code: str, *arguments: str, level: str = "aten") -> Trace:
    Path("train.py").write_text(HEAD + code)
    return capture_script(("python", "train.py", *arguments), CaptureSettings(level=level))


@pytest.mark.parametrize("level", ["aten", "inductor"])
def test_the_first_step_is_recorded_and_the_script_stopped(level: str, capfd: pytest.CaptureFixture[str]) -> None:
    code = "model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 2))\n"
    before = torch.compile
    trace = record(
        code + "print(sys.argv, __name__)\ncompiled = torch.compile(model)\n" + LOOP, "--lr", "1", level=level
    )
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == ["['train.py', '--lr', '1'] __main__", "after backward 0"]
    assert torch.compile is before
    assert sys.argv[0] != "train.py"
    (graph,) = trace.regions
    assert (graph.has_backward, graph.level, trace.tensors, trace.train) == (True, level, "real", True)
    origins = [node.origin for node in graph.placeholders if node.kind is NodeKind.PARAM]
    assert sorted(str(each) for each in origins) == ["0.bias", "0.weight", "3.bias", "3.weight"]
    assert (trace.model.name, trace.model.spec, trace.model.parameters) == ("train", "-- python train.py", 178)
    assert trace.model.inputs == ("args.0 f32[4,8]",)
    assert (trace.loss, trace.eager) == (False, None)


def test_a_compiled_function_with_the_loss_inside() -> None:
    trace = record(
        "model = nn.Linear(8, 8)\n@torch.compile(backend='aot_eager', dynamic=False)\ndef loss(batch):\n"
        "  return nn.functional.mse_loss(model(batch['x']), batch['y'])\n"
        "for i in range(10 ** 6):\n  loss({'x': x, 'y': x + 1}).backward()\n"
        "  with torch.no_grad():\n    for p in model.parameters(): p -= p.grad\n"
    )
    assert trace.loss
    assert trace.regions[0].nodes[-2].source in ("train.py:6", "train.py:7")
    assert (trace.model.parameters, trace.model.inputs) == (72, ("batch.x f32[4,8]", "batch.y f32[4,8]"))


BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
    def forward(self, x): return self.fc(x).relu()
model = nn.Sequential(Block(), Block(), Block())
"""


def test_blocks_compiled_one_by_one_are_all_recorded() -> None:
    trace = record(BLOCK + "for block in model: block.compile(mode='max-autotune')\ncompiled = model\n" + LOOP)
    assert [graph.has_backward for graph in trace.regions] == [True] * 3


def test_a_check_before_training_does_not_end_the_recording() -> None:
    code = BLOCK + "compiled = torch.compile(model)\nwith torch.no_grad():\n  for i in range(3): compiled(x)\n"
    trace = record(code + LOOP.replace("for step", "compiled.train()\nfor step"))
    assert [graph.has_backward for graph in trace.regions] == [False, True]


def test_accumulated_gradients_end_the_step_at_the_second_forward(capfd: pytest.CaptureFixture[str]) -> None:
    code = (
        BLOCK
        + "compiled = torch.compile(model)\nfor i in range(10 ** 6):\n  compiled(x).sum().backward()\n  print(i)\n"
    )
    assert len(record(code).regions) == 1
    assert capfd.readouterr().err.split() == ["0"]


def test_inference_ends_after_a_few_calls() -> None:
    code = BLOCK + "compiled = torch.compile(model)\nwith torch.inference_mode():\n  while True: compiled(x)\n"
    trace = record(code)
    assert ([graph.has_backward for graph in trace.regions], trace.train) == ([False], False)


def test_two_models_are_both_recorded_before_the_script_is_stopped() -> None:
    code = BLOCK + "other = nn.Linear(8, 1)\none, two = torch.compile(model), torch.compile(other)\n"
    code += "a, b = (torch.optim.SGD(each.parameters()) for each in (model, other))\n"
    code += "while True:\n  two(one(x).detach()).sum().backward()\n  b.step()\n  one(x).sum().backward()\n  a.step()\n"
    assert len(record(code).regions) == 2


def test_graph_breaks_give_several_regions_with_reasons() -> None:
    code = "@torch.compile\ndef f(x):\n  y = x.sin()\n  torch._dynamo.graph_break()\n  return y.cos()\n"
    trace = record(code + "f(x.requires_grad_())")
    assert len(trace.regions) == 2
    assert trace.breaks


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        ("model = nn.Linear(8, 8)\ncompiled = model\n" + LOOP, CaptureError, "model = torch.compile(model)"),
        ("print('done')", CaptureError, "train compiles nothing"),
        (BLOCK + "torch.compile(model)\ncompiled = model\n" + LOOP, CaptureError, "compiled: Sequential"),
        (
            "def f():\n  raise ValueError('no data')\nf()",
            WorkloadError,
            "ValueError: no data\n  at train.py:5: raise Value",
        ),
        ("x = (", WorkloadError, "train.py:4"),
        ("sys.exit('usage: ...')", WorkloadError, "exit status usage: ..."),
        ("torch.compile(lambda x: x @ x)(x)", WorkloadError, "RuntimeError"),
    ],
)
def test_faults_of_scripts(code: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        record(code)
    assert text in str(caught.value)
    assert caught.value.exit_code == 2  # type: ignore[attr-defined]


def test_command_lines() -> None:
    Path("t.py").touch()
    for words in (("t.py", "a"), ("python", "t.py", "a"), ("/usr/bin/python3.12", "-u", "t.py", "a")):
        script = parse_command(words)
        assert (script.target, script.module, script.arguments) == ("t.py", False, ("a",))
    module = parse_command(("python", "-m", "pkg.train", "--x"))
    assert (module.target, module.module, module.arguments, module.name) == ("pkg.train", True, ("--x",), "train")
    for words, text in (
        ((), "no script"),
        (("python",), "no script"),
        (("torchrun", "t.py"), "torchrun is no Python script"),
        (("python", "-c", "1"), "-c is no Python script"),
        (("python", "absent.py"), "no such file: absent.py"),
    ):
        with pytest.raises(WorkloadError, match=text):
            parse_command(words)


def test_names_of_inputs() -> None:
    assert input_name("L['batch']['x']") == "batch.x"
    assert input_name("L['args'][0]") == "args.0"
    assert input_name("L['self'].table") == "table"
    assert input_name("L['x']") == "x"


def test_what_compiled_code_prints_goes_to_stderr_too() -> None:
    Path("train.py").write_text(HEAD + "import os\nos.system('echo from a child')\ntorch.compile(torch.sin)(x)")
    code = (
        "from aotcli.capture.script import capture_script; from aotcli.ir.trace import CaptureSettings\n"
        "t = capture_script(('train.py',), CaptureSettings(level='aten')); print(len(t.regions))"
    )
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "1\n"
    assert "from a child" in done.stderr

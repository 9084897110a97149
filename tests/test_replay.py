"""Plan files: what a capture planned is applied to the same step inside `torch.compile`, and to nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from samples import LEVELS, ROOT, SAMPLES, SMALL, capture_sample
from steps import run_step, sample_step

import aotcli
from aotcli.errors import StrategyError
from aotcli.strategies import load_strategy

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def regions_inside(sample: str, level: str) -> list[Any]:
    """The regions that a partitioner is handed when the real step is compiled at `level`; no code is generated."""
    from aotcli.capture import torch_private
    from aotcli.lowering.partitioner import live_region

    found: list[Any] = []

    def partition(gm: Any, joint_inputs: Any, *, num_fwd_outputs: int, **rest: Any) -> Any:
        static = tuple(rest.get("static_lifetime_input_indices") or ())
        found.append(live_region(gm, joint_inputs, num_fwd_outputs, static, level).graph)
        partitioner = aotcli.Partitioner("mincut")
        return partitioner(gm, joint_inputs, num_fwd_outputs=num_fwd_outputs, compiler=level, **rest)

    def compiler(gm: Any, _inputs: Any) -> Any:
        return torch_private.boxed(gm.forward)

    make = torch_private.inductor_backend if level == "inductor" else torch_private.aten_backend
    backend = make(partition, compiler, compiler)
    module, args, kwargs = sample_step(sample)
    run_step(module, args, kwargs, lambda step: torch.compile(step, backend=backend))
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_capture_and_the_compiler_see_one_graph(sample: str, level: str, captured: Any) -> None:
    shown = [region.graph.fingerprint for region in captured(sample, level).regions if region.graph.has_backward]
    assert [graph.fingerprint for graph in regions_inside(sample, level)] == shown


SMALL_GPT = [part for pair in SMALL["gpt"] for part in ("--set", "=".join(pair))]


def aotcli_command(*words: str, expected: int = 0) -> tuple[str, str]:
    """What a command line in a process of its own writes to stdout and stderr."""
    result = subprocess.run(
        [sys.executable, "-m", "aotcli", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == expected, result.stdout + result.stderr
    return result.stdout, result.stderr


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of recompute-all for the small GPT, at level aten."""
    path = tmp_path_factory.mktemp("plans") / "gpt.aot.json"
    aotcli_command(
        "partition",
        "sample_models/gpt.py",
        *SMALL_GPT,
        "--level",
        "aten",
        "--strategy",
        "recompute-all",
        "-o",
        str(path),
    )
    return path


def split_names(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    from aotcli.lowering import partitioner

    made: list[Any] = []
    original = partitioner.carry_out

    def noting(*args: Any, **rest: Any) -> Any:
        result = original(*args, **rest)
        made.append(result[1])
        return result

    monkeypatch.setattr(partitioner, "carry_out", noting)
    return made


def test_a_plan_is_applied_by_another_command_and_in_training(plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = aotcli_command(
        "partition", "sample_models/gpt.py", *SMALL_GPT, "--level", "aten", "-s", f"replay:{plan_file}", "-f", "json"
    )
    planned = [value["name"] for value in json.loads(plan_file.read_text("utf-8"))["regions"][0]["saved"]]
    assert f"replay:{plan_file}" in text or '"replay"' in text

    made = split_names(monkeypatch)
    module, args, kwargs = sample_step("gpt")
    eager = run_step(module, args, kwargs)
    compiled = run_step(module, args, kwargs, lambda m: aotcli.compile(m, strategy=f"replay:{plan_file}"))
    assert not eager.differences(compiled)
    (partition,) = made
    assert [value.name for value in partition.saved] == planned


def test_a_plan_is_refused_for_another_graph_level_or_device(plan_file: Path, tmp_path: Path) -> None:
    def refusal(path: Path, *words: str) -> str:
        return aotcli_command("partition", "sample_models/gpt.py", "-s", f"replay:{path}", *words, expected=2)[1]

    assert "level aten, and this graph is at level inductor" in refusal(plan_file, *SMALL_GPT).replace("\n", " ")
    wider = [word.replace("width=128", "width=64") for word in SMALL_GPT]
    text = " ".join(refusal(plan_file, *wider, "--level", "aten").split())
    assert "first difference: node 0 is primal float32[1000, 64]" in text
    assert "the plan has primal float32[1000, 128] there" in text
    elsewhere = tmp_path / "cuda.aot.json"
    elsewhere.write_text(plan_file.read_text("utf-8").replace('"device": "cpu"', '"device": "cuda"'), "utf-8")
    deeper = [word.replace("layers=2", "layers=3") for word in SMALL_GPT]
    assert "made on cuda, and this graph is on cpu" in " ".join(refusal(elsewhere, *deeper, "--level", "aten").split())


def test_a_plan_is_refused_inside_the_compiler_too(plan_file: Path) -> None:
    module, args, kwargs = sample_step("mlp")
    with pytest.raises(Exception, match="first difference: node 0"):
        aotcli.compile(module, strategy=f"replay:{plan_file}")(*args, **kwargs)
    with pytest.raises(StrategyError, match="there is no plan file"):
        aotcli.compile(module, strategy="replay:nowhere.aot.json")
    with pytest.raises(StrategyError, match="needs a plan file"):
        load_strategy("replay").plan(capture_sample("mlp", "aten").regions[0].graph)


def test_force_match_pairs_values_by_module(tmp_path: Path, captured: Any) -> None:
    """A plan for two layers on three: the two that it knows are saved as planned, the third is recomputed."""
    from aotcli.api import partition, save

    overrides = dict(SMALL["gpt"])
    path = tmp_path / "two.aot.json"
    two = partition(captured("gpt", "aten").trace, strategy="save-all")
    save(two, path)
    three = aotcli.trace(
        str(ROOT / "sample_models" / "gpt.py"),
        level="aten",
        overrides=tuple({**overrides, "layers": "3", "batch": "3"}.items()),
        cache=False,
    )
    with pytest.raises(StrategyError, match="force_match"):
        partition(three, strategy=f"replay:{path}")
    (found,) = partition(three, strategy=f"replay:{path}", options={"force_match": True}).plans[0].partitions
    modules = {value.module for value in found.saved if not value.is_input}
    assert any(module and module.startswith("h.1") for module in modules)
    assert not any(module and module.startswith("h.2") for module in modules)
    assert any("saved values of the plan were found by module path" in note for note in found.notes)
    assert {value.reason.rule for value in found.saved} >= {"read by backward"}


def test_force_match_on_the_same_model_finds_everything_inside_the_compiler(
    plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = split_names(monkeypatch)
    module, args, kwargs = sample_step("gpt")
    eager = run_step(module, args, kwargs)
    step = partial(aotcli.compile, strategy=f"replay:{plan_file}", force_match=True)
    assert not eager.differences(run_step(module, args, kwargs, step))
    assert made


def test_replay_needs_no_torch(plan_file: Path, tmp_path: Path) -> None:
    record = tmp_path / "gpt.aot.json"
    aotcli_command("trace", "sample_models/gpt.py", *SMALL_GPT, "--level", "aten", "-o", str(record))
    code = (
        f"import sys; from aotcli.api import load, partition; partition(load({str(record)!r}), strategy="
        f"'replay:{plan_file}', alternatives=False); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_region_called_twice_is_one_graph_in_a_capture_and_in_the_compiler(tmp_path: Path) -> None:
    class Repeated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(8, 8)

        @torch.compiler.nested_compile_region
        def block(self, x: Any) -> Any:
            return torch.nn.functional.gelu(self.fc(x)).sin()

        def forward(self, x: Any) -> Any:
            return self.block(self.block(x)).cos()

    net, x = Repeated(), torch.randn(4, 8)
    path = tmp_path / "nested.aot.json"
    aotcli.save(aotcli.partition(net, (x,), strategy="recompute-all", level="aten", tensors="real"), path)
    torch._dynamo.reset()
    eager = run_step(net, (x,), {})
    assert not eager.differences(run_step(net, (x,), {}, partial(aotcli.compile, strategy=f"replay:{path}")))

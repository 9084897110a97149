"""PyTorch's own decision in a record: what torch-mincut plans, written down, read again, and told to nobody."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from diff_builders import stack, stack_trace
from samples import LEVELS, ROOT

from aotcli import api
from aotcli.analysis.assemble import assemble
from aotcli.errors import RecordError, StrategyError
from aotcli.ir.partition import SavedKind
from aotcli.ir.serial import dump_trace, load_trace
from aotcli.ir.torch_plan import decision_of_torch
from aotcli.ir.trace import CaptureSettings, TorchRegion
from aotcli.strategies import load_strategy

DECISION = TorchRegion(saved_bytes=8, saved=("x", "mm"), replaced=(("mm_1", "mm"),), budget=0.5, notes=("a note",))


class TestRecord:
    def test_round_trip(self) -> None:
        trace = dataclasses.replace(stack_trace(stack(2)), torch_decision=(DECISION,))
        assert load_trace(dump_trace(trace)) == trace

    def test_records_without_it_are_as_they_were(self) -> None:
        assert "torch_decision" not in dump_trace(stack_trace(stack(2)))

    def test_anonymous_records_hold_no_sentence(self) -> None:
        trace = dataclasses.replace(stack_trace(stack(2)), torch_decision=(dataclasses.replace(DECISION, failure="f"),))
        settings = dataclasses.replace(trace.settings, anonymize=True)
        text = dump_trace(dataclasses.replace(trace, settings=settings))
        assert "a note" not in text
        (region,) = load_trace(text).torch_decision
        assert (region.saved, region.replaced) == (DECISION.saved, DECISION.replaced)
        assert region.failure.startswith("anon_")

    def test_paths_are_cut(self) -> None:
        trace = stack_trace(stack(2))
        failed = TorchRegion(failure="RuntimeError: in /home/somebody/net.py")
        assert "somebody" not in dump_trace(dataclasses.replace(trace, torch_decision=(failed,)))

    @pytest.mark.parametrize(
        ("decision", "why"),
        [
            ((DECISION, DECISION), "another number of regions"),
            ((TorchRegion(saved=("mm_77",)),), "mm_77"),
            ((TorchRegion(replaced=(("mm", "gone"),)),), "gone"),
        ],
    )
    def test_a_decision_that_does_not_fit_is_damage(self, decision: tuple[TorchRegion, ...], why: str) -> None:
        trace = dataclasses.replace(stack_trace(stack(2)), torch_decision=decision)
        with pytest.raises(RecordError) as caught:
            load_trace(dump_trace(trace))
        assert why in caught.value.why

    def test_a_value_of_another_type_is_damage(self) -> None:
        text = dump_trace(dataclasses.replace(stack_trace(stack(2)), torch_decision=(DECISION,)))
        data = json.loads(text)
        data["torch_decision"][0]["saved"] = [1]
        with pytest.raises(RecordError, match="torch_decision"):
            load_trace(json.dumps(data))

    def test_a_failure_is_no_decision(self) -> None:
        with pytest.raises(StrategyError) as caught:
            decision_of_torch(stack(2), TorchRegion(failure="it raised"))
        assert caught.value.why == "it raised"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sample", ["mlp", "graph_break", "selective_checkpoint"])
def test_it_is_what_torch_mincut_plans(sample: str, level: str, captured) -> None:
    """The same saved values and the same order, from the record alone."""
    from aotcli.capture.torch_decision import torch_decisions

    capture = captured(sample, level)
    decisions = torch_decisions(capture.regions)
    trace = load_trace(dump_trace(dataclasses.replace(capture.trace, torch_decision=decisions)))
    strategy = load_strategy("torch-mincut")
    for graph, region, live in zip(trace.regions, trace.torch_decision, capture.regions, strict=True):
        planned = strategy.plan(live.graph, live)
        ours = assemble(graph, decision_of_torch(graph, region), strategy="torch")
        assert not region.failure
        assert region.saved_bytes == ours.saved_bytes == planned.saved_bytes
        assert [value.name for value in ours.saved] == [value.name for value in planned.saved]
        assert {value.kind for value in ours.saved} <= set(SavedKind)
        assert (ours.backward_nodes, ours.peak_bytes) == (planned.backward_nodes, planned.peak_bytes)


def test_a_step_without_a_backward_has_an_empty_decision(captured) -> None:
    from aotcli.capture.torch_decision import torch_decisions

    (decision,) = torch_decisions(captured("inference", "aten").regions)
    assert decision == TorchRegion()


def test_what_pytorch_cannot_split_is_told_in_the_record(captured, monkeypatch: pytest.MonkeyPatch) -> None:
    from aotcli.capture import torch_decision
    from aotcli.capture import torch_private_split as private

    def failing(budget: float) -> object:
        def partition(*args: object, **options: object) -> object:
            raise RuntimeError("no cut")

        return partition

    monkeypatch.setattr(private, "min_cut_partition_function", failing)
    (decision,) = torch_decision.torch_decisions(captured("mlp", "aten").regions)
    assert decision.saved == ()
    assert "RuntimeError: no cut" in decision.failure


def test_the_budget_that_the_user_set(captured) -> None:
    from torch._functorch import config

    from aotcli.capture.torch_decision import torch_decisions

    with config.patch(activation_memory_budget=0.0):
        (decision,) = torch_decisions(captured("mlp", "aten").regions)
    (usual,) = torch_decisions(captured("mlp", "aten").regions)
    assert (decision.budget, usual.budget) == (0.0, 1.0)
    assert decision.saved_bytes < usual.saved_bytes


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    spec, file = str(ROOT / "sample_models" / "mlp.py"), tmp_path / "mlp.aot.json"
    command = [sys.executable, "-m", "aotcli", "trace", spec, "--no-cache", "--with-torch", "-o", str(file)]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "its own partitioner saves" in shown.stdout
    trace = api.trace(spec, with_torch=True, cache=False)
    assert file.read_text() == dump_trace(trace)
    (region,) = trace.torch_decision
    assert region.saved_bytes > 0


def test_a_script_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))\n"
        "step = torch.compile(model)\n"
        "optimizer = torch.optim.SGD(model.parameters())\n"
        "step(torch.randn(4, 8)).sum().backward()\n"
        "optimizer.step()\n"
    )
    monkeypatch.chdir(tmp_path)
    trace = api.trace_script(("python", "train.py"), settings=CaptureSettings(with_torch=True))
    (region,) = trace.torch_decision
    assert region.saved
    assert not region.failure

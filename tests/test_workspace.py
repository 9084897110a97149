"""Predicted peaks against the allocator: within 1 % where activations exceed 50 MiB and 8 times the largest op."""

from __future__ import annotations

from typing import Any

import pytest
from builders import two_matmuls
from samples import ROOT

from aotcli.analysis.cut import cut
from aotcli.analysis.liveness import simulate
from aotcli.analysis.workspace import may_need_workspace, timeline_with_workspace, workspace_key
from aotcli.ir.tensor import tensor_leaves
from aotcli.strategies import load_strategy

MIB = 1 << 20

LARGE = {
    "gpt": (("layers", "4"), ("width", "256"), ("batch", "4"), ("seq", "256"), ("vocab", "2000")),
    "resnet": (("width", "32"), ("batch", "20"), ("size", "64")),
    "unet": (("width", "16"), ("batch", "8"), ("size", "64")),
}


def test_keys_say_what_workspace_depends_on() -> None:
    graph = two_matmuls()
    assert workspace_key(graph, graph["mm"]) != workspace_key(graph, graph["mm_1"])
    assert may_need_workspace(graph["mm"])
    assert not may_need_workspace(graph["relu"])
    assert "mm" not in workspace_key(graph, graph["mm"]).removeprefix("aten.mm")


def test_workspace_counts_while_its_op_runs_and_not_after() -> None:
    graph = two_matmuls()
    partition = load_strategy("save-all").plan(graph)
    plain = timeline_with_workspace(graph, partition, {})
    assert plain.peak_bytes == partition.peak_bytes
    with_scratch = timeline_with_workspace(graph, partition, {workspace_key(graph, graph["mm_1"]): 1000})
    at = plain.names.index("mm_1")
    assert with_scratch.live_bytes[at] == plain.live_bytes[at] + 1000
    assert with_scratch.live_bytes[at + 1 :] == plain.live_bytes[at + 1 :]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """`compiled(sample, strategy)`: the region, its plan and the measured peak of a real step."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("AOTCLI_CACHE_DIR", str(tmp_path))
    import aotcli
    from aotcli.capture.workload import build, load_workload
    from aotcli.ir.trace import CaptureSettings
    from aotcli.lowering import partitioner
    from aotcli.validation.allocator import measure_peak

    made: list[Any] = []
    original = partitioner.carry_out

    def noting(*args: Any, **rest: Any) -> Any:
        result = original(*args, **rest)
        made.append((args[1], result[1]))
        return result

    monkeypatch.setattr(partitioner, "carry_out", noting)

    def run(sample: str, strategy: str) -> tuple[Any, Any, int]:
        torch._dynamo.reset()
        made.clear()
        settings = CaptureSettings(tensors="real", overrides=LARGE[sample])
        built = build(load_workload(str(ROOT / "sample_models" / f"{sample}.py"), settings), settings, fake=False)
        step = aotcli.compile(built.step, strategy=strategy)

        def train() -> None:
            outputs = step(*built.args, **built.kwargs)
            outputs = [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if o.requires_grad]
            torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])

        for _ in range(2):  # the second time, with kernels that the first has set up
            for parameter in built.step.parameters():
                parameter.grad = None
            peak = measure_peak(train, torch.device("cpu"))
        ((live, partition),) = made
        return live, partition, peak

    return run


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["save-all", "mincut", "recompute-all"])
@pytest.mark.parametrize("sample", LARGE)
def test_the_predicted_peak_is_the_measured_one(sample: str, strategy: str, compiled: Any) -> None:
    from aotcli.lowering.workspace import known_workspace

    live, partition, measured = compiled(sample, strategy)
    graph = live.graph
    workspace = known_workspace(live)
    predicted = timeline_with_workspace(graph, partition, workspace).peak_bytes
    largest = max(leaf.storage_nbytes for node in graph.nodes if not node.is_placeholder for leaf in leaves(node))
    assert measured > 50 * MIB, "too small to say anything"
    assert measured > 8 * largest
    assert predicted == pytest.approx(measured, rel=0.01)
    assert known_workspace(live) == workspace, "kept, and not measured again"


def leaves(node: Any) -> Any:
    return tensor_leaves(node.value)


def test_convolutions_need_scratch_memory_and_pointwise_ops_none(captured: Any) -> None:
    pytest.importorskip("torch")
    from aotcli.lowering.workspace import measure_workspace

    region = captured("batchnorm", "aten").regions[0]
    found = measure_workspace(region)
    assert any(key.startswith("aten.convolution") and nbytes > 0 for key, nbytes in found.items())
    assert not any("relu" in key.partition("(")[0] for key in found)
    assert measure_workspace(region, dict.fromkeys(found, 7)) == dict.fromkeys(found, 7), "what is known is not rerun"


def test_states_of_replayed_random_ops_are_held_until_they_are_used(captured: Any) -> None:
    region = captured("dropout", "aten").regions[0]
    partition = load_strategy("recompute-all").plan(region.graph)
    assert partition.random_state_bytes > 0
    from aotcli.analysis.assemble import decision_of

    timeline = simulate(region.graph, cut(region.graph, decision_of(partition)))
    assert timeline.held_bytes >= partition.random_state_bytes

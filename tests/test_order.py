"""The order of the backward: PyTorch's, unless another one needs less memory at its peak, as predicted and measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import GraphBuilder
from samples import ROOT, SAMPLES

from aotcli.analysis.assemble import decision_of, with_best_order
from aotcli.analysis.cut import cut
from aotcli.analysis.liveness import simulate
from aotcli.analysis.lower_peak import ORDERS, reordered
from aotcli.strategies import load_strategy


def topological(nodes: Any, given: set[str]) -> bool:
    seen = set(given)
    for node in nodes:
        if not seen.issuperset(node.refs):
            return False
        seen.add(node.name)
    return True


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_order_runs_the_same_ops_each_after_its_arguments(sample: str, captured: Any) -> None:
    for region in captured(sample, "aten").regions:
        graph = region.graph
        if not graph.has_backward:
            continue
        decision = decision_of(load_strategy("recompute-all").plan(graph))
        plain = cut(graph, replace(decision, order="")).backward
        for order in ORDERS:
            backward = cut(graph, replace(decision, order=order)).backward
            assert sorted(node.name for node in backward.nodes) == sorted(node.name for node in plain.nodes)
            assert topological(backward.nodes, set(backward.inputs))
        best = with_best_order(graph, replace(decision, order=""))
        peaks = {
            order: simulate(graph, cut(graph, replace(decision, order=order))).peak_bytes for order in ("", *ORDERS)
        }
        assert peaks[best.order] == min(peaks.values())
        assert best.order == "" or peaks[best.order] < peaks[""]


def test_inductor_keeps_pytorchs_order(captured: Any) -> None:
    for region in captured("several_outputs", "inductor").regions:
        assert load_strategy("recompute-all").plan(region.graph).order == ""


def test_a_branch_is_finished_before_the_next_one_begins() -> None:
    """Two wide results, each reduced: breadth first both are live at once."""
    g = GraphBuilder()
    x, t = g.input("primals_1", (4,)), g.tangent("tangents_1", (4,))
    wide = [g.op("aten.outer.default", x, i, shape=(1000,), name=f"wide{i}") for i in range(2)]
    narrow = [g.op("aten.amax.default", each, shape=(4,), name=f"narrow{i}") for i, each in enumerate(wide)]
    both = g.pointwise("aten.add.Tensor", *narrow, name="both")
    gradient = g.pointwise("aten.mul.Tensor", t, both, name="gradient")
    graph = g.build([g.pointwise("aten.sin.default", x)], [gradient])
    ops = [graph.index[name] for name in ("wide0", "wide1", "narrow0", "narrow1", "both", "gradient")]
    found = reordered(graph, "depth-first", ops, graph.inputs_of, {graph.index["tangents_1"]})
    names = [graph.nodes[p].name for p in found]
    assert names in (
        ["wide0", "narrow0", "wide1", "narrow1", "both", "gradient"],
        ["wide1", "narrow1", "wide0", "narrow0", "both", "gradient"],
    )


def test_a_lower_prediction_is_a_lower_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    import aotcli
    from aotcli.capture.workload import build, load_workload
    from aotcli.ir.trace import CaptureSettings
    from aotcli.lowering import partitioner
    from aotcli.strategies import recompute_all
    from aotcli.validation.allocator import measure_peak

    settings = CaptureSettings(tensors="real", overrides=(("batch", "512"), ("width", "1024"), ("classes", "160")))
    built = build(load_workload(str(ROOT / "sample_models" / "several_outputs.py"), settings), settings, fake=False)
    plans: list[Any] = []
    original = partitioner.carry_out

    def noting(*args: Any, **rest: Any) -> Any:
        result = original(*args, **rest)
        plans.append(result[1])
        return result

    monkeypatch.setattr(partitioner, "carry_out", noting)

    def measured() -> int:
        torch._dynamo.reset()
        step = aotcli.compile(built.step, strategy="recompute-all")

        def run() -> None:
            outputs = [output for output in step(*built.args, **built.kwargs) if output.requires_grad]
            torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])

        for _ in range(2):
            for parameter in built.step.parameters():
                parameter.grad = None
            peak = measure_peak(run, torch.device("cpu"))
        return peak

    ours = measured()
    monkeypatch.setattr(recompute_all, "with_best_order", lambda graph, decision: decision)
    pytorchs = measured()
    assert plans[0].order != ""
    assert plans[1].order == ""
    assert plans[0].peak_bytes < plans[1].peak_bytes
    assert ours < pytorchs

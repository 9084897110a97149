"""On every sample model, at both levels, every ban, its rule, every weight and the cut's value equal PyTorch's.

Regions that change an input are left out where PyTorch is wrong about them: there only the nodes that the change
concerns may differ (test_mutated_gradients.py shows the wrong gradients).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from comparison import compare, evidence_of

from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic, Rule
from aotcli.capture.recorder import LiveRegion
from aotcli.capture.trace import capture
from aotcli.capture.workload import load_workload
from aotcli.ir.trace import CaptureSettings

SAMPLES = Path(__file__).parents[2] / "sample_models"
SMALLER = {
    "gpt": ("layers=2", "width=128", "batch=2", "seq=64", "vocab=1000"),
    "resnet": ("width=16", "classes=10", "batch=2", "size=64"),
    "unet": ("width=8", "size=32"),
}
"""Sizes that keep the tests fast; the graphs stay as they are, but for the number of layers of the GPT."""


@pytest.mark.parametrize("level", ["aten", "inductor"])
@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.py")))
def test_a_sample(name: str, level: str) -> None:
    pairs = tuple(tuple(each.split("=")) for each in SMALLER.get(name, ()))
    settings = CaptureSettings(level=level, overrides=pairs)  # type: ignore[arg-type]
    for region in capture(load_workload(f"{SAMPLES / name}.py", settings), settings).regions:
        if region.graph.mutated:
            compare_apart_from_mutation(region)
        else:
            compare(region)


def compare_apart_from_mutation(region: LiveRegion) -> None:
    """Bans and weights differ from torch's by the reads of changed inputs, and by nothing else."""
    decision, evidence = decide(region.graph, Heuristic()), evidence_of(region)
    assert evidence is not None
    ours = {name for name, rule in decision.bans.items() if rule != Rule.MUTATED}
    assert ours == evidence.bans.keys()
    assert len(ours) < len(decision.bans)
    weighed = {name: weight for name, weight in evidence.weights.items() if weight != float("inf")}
    assert decision.weights.items() <= weighed.items()
    assert set(region.graph.mutated) <= weighed.keys() - decision.weights.keys()

"""On every sample model, at both levels, every ban, its rule, every weight and the cut's value equal PyTorch's.

Regions that change an input are left out where PyTorch is wrong about them: there only the nodes that the change
concerns may differ (test_mutated_gradients.py shows the wrong gradients).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from comparison import compare, evidence_of
from samples import LEVELS, SAMPLES

from aotcli.analysis.mincut import decide
from aotcli.analysis.mincut_problem import Heuristic, Rule
from aotcli.capture.recorder import LiveRegion


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample(sample: str, level: str, captured: Callable[[str, str], Any]) -> None:
    for region in captured(sample, level).regions:
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

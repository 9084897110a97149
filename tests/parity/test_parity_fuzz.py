"""On a hundred random training steps every ban, its rule, every weight and the cut's value equal PyTorch's: with the
options as they are by default, and with one of the settings that PyTorch has too."""

from __future__ import annotations

import pytest
from comparison import compare
from fuzz import random_step

from aotcli.analysis.mincut_problem import Heuristic
from aotcli.capture.trace import capture
from aotcli.capture.workload import object_workload
from aotcli.ir.trace import CaptureSettings

SETTINGS = (
    (Heuristic(aggressive=True), {"aggressive_recomputation": True}),
    (Heuristic(max_distance=3), {"max_dist_from_bw": 3}),
    (Heuristic(), {"cse": False}),
    (
        Heuristic(aggressive=True, ban_non_builtin=True),
        {"aggressive_recomputation": True, "is_non_builtin_to_include": True},
    ),
    (Heuristic(max_distance=0), {"max_dist_from_bw": 0}),
)


@pytest.mark.parametrize("seed", range(100))
def test_a_random_step(seed: int) -> None:
    step, inputs = random_step(seed)
    settings = CaptureSettings(level="inductor" if seed % 2 else "aten")
    captured = capture(object_workload(step, inputs, name="fuzz"), settings)
    assert captured.regions
    for region in captured.regions:
        assert not region.graph.mutated
        compare(region)
        heuristic, config = SETTINGS[seed // 2 % len(SETTINGS)]
        compare(region, heuristic, **config)

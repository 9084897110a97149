"""On a hundred random training steps every ban, its rule, every weight and the cut's value equal PyTorch's."""

from __future__ import annotations

import pytest
from comparison import compare
from fuzz import random_step

from aotcli.capture.trace import capture
from aotcli.capture.workload import object_workload
from aotcli.ir.trace import CaptureSettings


@pytest.mark.parametrize("seed", range(100))
def test_a_random_step(seed: int) -> None:
    step, inputs = random_step(seed)
    settings = CaptureSettings(level="inductor" if seed % 2 else "aten")
    captured = capture(object_workload(step, inputs, name="fuzz"), settings)
    assert captured.regions
    for region in captured.regions:
        assert not region.graph.mutated
        compare(region)

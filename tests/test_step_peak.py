"""The bounds on the peak of a step of several regions."""

from __future__ import annotations

import pytest
from builders import layered, two_matmuls

from aotcli.analysis.liveness import Timeline
from aotcli.analysis.step_peak import RegionMemory, bound_step_peak, region_memory
from aotcli.analysis.workspace import timeline_with_workspace
from aotcli.strategies import load_strategy


def region(forward: tuple[int, ...], backward: tuple[int, ...], *, held: int, saved: int, made: int) -> RegionMemory:
    live = (*forward, *backward)
    names = tuple(f"op{i}" for i in range(len(live)))
    peak = max(live)
    return RegionMemory(Timeline(names, live, len(forward), held, peak, live.index(peak)), saved, made)


def test_what_others_hold_is_added_to_each_region() -> None:
    first = region((10, 30), (40, 20), held=25, saved=20, made=5)
    second = region((8, 50), (60, 10), held=30, saved=24, made=7)
    bounds = bound_step_peak([first, second])
    # Low: the second's backward above what the first saved, without its own outputs: 20 + 60 − 6.
    assert bounds.low_bytes == 74
    # High: the second's backward above all that the first holds, outputs included: 25 + 60.
    assert bounds.high_bytes == 85


def test_gradients_and_outputs_of_later_regions_may_still_be_there() -> None:
    first = region((10,), (100,), held=5, saved=5, made=1)
    second = region((10,), (20,), held=9, saved=2, made=30)
    assert bound_step_peak([first, second]).high_bytes == 100 + 30 + (9 - 2)
    assert bound_step_peak([first, second]).low_bytes == 100


@pytest.mark.parametrize("strategy", ["save-all", "recompute-all"])
@pytest.mark.parametrize("graph", [two_matmuls(), layered(4)], ids=["two_matmuls", "layered"])
def test_of_one_region_the_bounds_are_its_own_peak_but_for_its_outputs(graph: object, strategy: str) -> None:
    partition = load_strategy(strategy).plan(graph)  # type: ignore[arg-type]
    timeline = timeline_with_workspace(graph, partition, {})  # type: ignore[arg-type]
    memory = region_memory(graph, partition, timeline)  # type: ignore[arg-type]
    bounds = bound_step_peak([memory])
    assert memory.unsaved_output_bytes >= 0
    assert memory.gradient_bytes > 0
    assert bounds.high_bytes == timeline.peak_bytes
    assert bounds.high_bytes - memory.unsaved_output_bytes <= bounds.low_bytes <= bounds.high_bytes


def test_without_regions_there_is_no_peak() -> None:
    assert bound_step_peak([]).high_bytes == 0

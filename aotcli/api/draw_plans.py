"""What is drawn: a step with the plan of each region, and the one that it is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aotcli.analysis.diff import DiffSide
from aotcli.analysis.scene_build import SceneOptions
from aotcli.analysis.summary import Plan
from aotcli.api.result import PartitionResult
from aotcli.errors import InputError
from aotcli.ir.partition import Partition
from aotcli.ir.trace import CaptureSettings, Trace

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PlannedStep:
    """A trace and the plan of each region; no plan where the joint graph alone is drawn."""

    trace: Trace
    partitions: tuple[Partition | None, ...]
    label: str
    words: str = ""


def plan_step(
    model: Any,
    inputs: Any,
    strategy: str,
    options: Mapping[str, object] | None,
    view: SceneOptions,
    cache: bool,
    progress: Progress | None,
    settings: CaptureSettings | None,
    trace_options: Mapping[str, Any],
) -> PlannedStep:
    from aotcli import api

    if view.only == "joint":
        found = model.trace if isinstance(model, PartitionResult) else model
        if not isinstance(found, Trace):
            found = api.trace(model, inputs, cache=cache, progress=progress, settings=settings, **trace_options)
        return PlannedStep(found, (None,) * len(found.regions), "")
    if not isinstance(model, PartitionResult):
        model = api.partition(
            model,
            inputs,
            strategy=strategy,
            options=options,
            alternatives=False,
            cache=cache,
            progress=progress,
            settings=settings,
            **trace_options,
        )
    return PlannedStep(model.trace, model.plan.partitions, model.plan.label)


def plan_other(
    against: Trace | PartitionResult | str,
    mine: PlannedStep,
    strategy: str,
    cache: bool,
    progress: Progress | None,
    settings: CaptureSettings | None,
) -> PlannedStep:
    """The other step of a comparison, planned."""
    from aotcli import api
    from aotcli.api.diff_sides import Source, as_sides, is_record_name, read_source, split_reference

    if isinstance(against, PartitionResult):
        return replace(_from_result(against), words=against.trace.model.name)
    if isinstance(against, Trace):
        result = api.partition(against, strategy=strategy, alternatives=False)
        return replace(_from_result(result), words=against.model.name)
    path, own = ("", against[1:]) if against.startswith("@") and len(against) > 1 else split_reference(against)
    if not path:
        source = Source(mine.trace.model.name, own, content=mine.trace)
    elif is_record_name(path):
        source = read_source(path, own)
    else:
        source = Source(path, own, spec=path, settings=settings or CaptureSettings(), cache=cache)
    ours = Plan(mine.label, {}, tuple(each for each in mine.partitions if each is not None), mine.label)
    left = Source(mine.trace.model.name, content=mine.trace, result=ours)
    _, side = as_sides(left, source, strategy, progress)
    if not isinstance(side, DiffSide):
        raise InputError(
            f"{path} is a plan for another graph",
            why="a plan file holds no graph, so only the graph that it was made for can be drawn with it",
            fix="give the record that the plan was made from",
        )
    return PlannedStep(side.trace, side.plan.partitions, side.plan.label, against)


def _from_result(result: PartitionResult) -> PlannedStep:
    return PlannedStep(result.trace, result.plan.partitions, result.plan.label)

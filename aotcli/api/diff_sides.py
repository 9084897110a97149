"""What the two sides of a comparison are: records, plan files, models, traces in hand, each with a strategy.

gpt.aot.json                     a record, planned by mincut (or by what both sides were asked for)
gpt.aot.json@recompute-all       the same record, planned by a strategy
gpt.aot.json@torch               what PyTorch decided when it was captured (`aotcli trace --with-torch`)
plan.aot.json                    a plan file: decided already
gpt.py@mincut:aggressive=true    a model, captured now
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from aotcli.analysis.assemble import assemble
from aotcli.analysis.diff import DiffSide
from aotcli.analysis.diff_planfile import Sketch, apply_plan, sketch
from aotcli.analysis.summary import Plan
from aotcli.errors import InputError, RecordError, StrategyError
from aotcli.ir.files import STDIN, read_text
from aotcli.ir.plan import Plan as PlanFile
from aotcli.ir.serial import load_plan, load_trace
from aotcli.ir.torch_plan import decision_of_torch
from aotcli.ir.trace import CaptureSettings, Trace

Progress = Callable[[str], None]
TORCH = "torch"
DEFAULT = "mincut"
_PLAN_FILE = re.compile(r'\A\s*\{\s*"schema"\s*:\s*"aotcli\.plan"')
_RECORD_SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True)
class Source:
    """One side before it is planned. `content` is a trace, a plan file, or None for a model that is to be captured by
    `spec` and `settings`; `shown` is how a message names it."""

    shown: str
    strategy: str | None = None
    content: Trace | PlanFile | None = None
    spec: str = ""
    settings: CaptureSettings = field(default_factory=CaptureSettings)
    cache: bool = True
    result: Plan | None = None

    @property
    def words(self) -> str:
        """This side as a word of a command line."""
        path = STDIN if self.shown == "stdin" else self.shown
        return shlex.quote(path if self.strategy is None else f"{path}@{self.strategy}")


def split_reference(text: str) -> tuple[str, str | None]:
    """``PATH@STRATEGY`` as its two parts; a path that exists, with its @, is no such thing.

    Raises InputError where a part is empty.
    """
    if "@" not in text or Path(text).exists():
        return text, None
    path, _, strategy = text.rpartition("@")
    if not path or not strategy:
        raise InputError(
            f"{text!r} does not say what to compare",
            why="before the @ stands a record or a model, after it a strategy",
            fix="write gpt.aot.json@recompute-all, or leave the @ out",
        )
    return path, strategy


def is_record_name(path: str) -> bool:
    """Whether a path means a record or a plan file, and no model."""
    return path == STDIN or path.endswith(_RECORD_SUFFIXES)


def read_source(path: str | PathLike[str], strategy: str | None = None) -> Source:
    """A record or a plan file. Raises RecordError, with the path, where it is neither."""
    shown = "stdin" if str(path) == STDIN else str(path)
    text = read_text(path)
    try:
        content = load_plan(text) if _PLAN_FILE.match(text) else load_trace(text)
    except RecordError as error:
        raise RecordError(f"{shown}: {error.what}", why=error.why, fix=error.fix) from None
    if strategy is not None and isinstance(content, PlanFile):
        raise InputError(
            f"{shown} is a plan file, and {strategy} would plan it again",
            why="what it saves is decided already",
            fix=f"leave @{strategy} out, or give the record that the plan was made from",
        )
    return Source(shown, strategy, content)


def as_sides(
    left: Source, right: Source, strategy: str | None = None, progress: Progress | None = None
) -> tuple[DiffSide | Sketch, DiffSide | Sketch]:
    """Both sides, captured and planned; `strategy` plans those that name none of their own.

    Where neither is said, PyTorch's own decisions are compared if both sides are records that hold one, and plans by
    mincut otherwise. Raises what capturing and planning raise.
    """
    usual = strategy or (TORCH if _both_hold_torch(left, right) else DEFAULT)
    sides: list[DiffSide | None] = [_planned(source, usual, progress) for source in (left, right)]
    return _completed(left, sides[0], sides[1]), _completed(right, sides[1], sides[0])


def _both_hold_torch(left: Source, right: Source) -> bool:
    for source in (left, right):
        trace = source.content
        if source.strategy is not None or source.result is not None or not isinstance(trace, Trace):
            return False
        if not trace.torch_decision or any(region.failure for region in trace.torch_decision):
            return False
    return True


def _planned(source: Source, usual: str, progress: Progress | None) -> DiffSide | None:
    """A side that has a graph; None for a plan file."""
    from aotcli import api

    if isinstance(source.content, PlanFile):
        return None
    strategy = source.strategy or usual
    if source.result is not None:
        assert source.content is not None
        return DiffSide(source.content, source.result, source.shown)
    trace = source.content
    if trace is None and strategy == TORCH:
        settings = replace(source.settings, with_torch=True)
        trace = api.find_trace(source.spec, settings, cache=source.cache, progress=progress).trace
    if trace is not None and strategy == TORCH:
        return DiffSide(trace, torch_plan(trace, source.shown), source.shown)
    found = api.partition(
        source.spec if trace is None else trace,
        strategy=strategy,
        alternatives=False,
        cache=source.cache,
        progress=progress,
        settings=source.settings,
    )
    return DiffSide(found.trace, found.plan, source.shown)


def torch_plan(trace: Trace, shown: str) -> Plan:
    """PyTorch's own decision, as the record of a capture holds it.

    Raises InputError where it holds none, StrategyError where PyTorch failed.
    """
    if not trace.torch_decision:
        spec = trace.model.spec
        raise InputError(
            f"{shown} does not hold PyTorch's own decision",
            why="it is recorded when a model is traced, where it is asked for",
            fix=f"aotcli trace {spec} --with-torch -o {'FILE.aot.json' if shown == 'stdin' else shown}",
        )
    pairs = zip(trace.regions, trace.torch_decision, strict=True)
    partitions = tuple(assemble(graph, decision_of_torch(graph, each), strategy=TORCH) for graph, each in pairs)
    return Plan(TORCH, {}, partitions, TORCH)


def _completed(source: Source, side: DiffSide | None, other: DiffSide | None) -> DiffSide | Sketch:
    """A plan file as a full side where the other side has the graph that it was made for."""
    if side is not None:
        return side
    assert isinstance(source.content, PlanFile)
    if not source.content.regions:
        raise StrategyError(f"the plan {source.shown} holds no region", fix="make it again")
    applied = None if other is None else apply_plan(source.content, other.trace)
    return sketch(source.content) if applied is None else DiffSide(*applied, source.shown)

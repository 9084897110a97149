"""The HTML report of a planned step: what `aotcli report` writes and `aotcli.report` returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from aotcli.analysis.diff import DiffSide, diff_plans
from aotcli.analysis.diff_planfile import Sketch, pair_sketches
from aotcli.analysis.diff_regions import pair_regions
from aotcli.analysis.report import OtherStep, StepReport, analyze_regions
from aotcli.analysis.summary import Plan
from aotcli.api.diff_sides import Source, as_sides, is_record_name, read_source, split_reference
from aotcli.api.result import PartitionResult
from aotcli.errors import InputError
from aotcli.ir.trace import CaptureSettings, Trace

Progress = Callable[[str], None]
Comparable = Trace | PartitionResult | str | PathLike[str]
_UNFIT = re.compile(r"[^\w.=,+-]+")


@dataclass(frozen=True, repr=False)
class ReportResult:
    """A report, and the ways to keep it."""

    report: StepReport

    @property
    def file_name(self) -> str:
        """What its file would be called: ``gpt-mincut.html``."""
        parts = [_UNFIT.sub("-", each).strip("-.") for each in (self.report.trace.model.name, self.report.plan.label)]
        return f"{'-'.join(part for part in parts if part)[:80]}.html"

    def html(self) -> str:
        """The whole file: it loads nothing, and works from disk."""
        from aotcli import __version__
        from aotcli.render.report.page import render_report_html

        return render_report_html(self.report, __version__)

    def json(self) -> str:
        """The data behind it, as JSON of schema "aotcli.report"."""
        from aotcli.render.report.document import document_text, report_document

        return document_text(report_document(self.report)) + "\n"

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the file. Raises OutputError where `path` holds somebody else's file (unless `force`), or cannot be
        written."""
        from aotcli.ir.files import write_text

        write_text(self.html(), path, force=force)

    def __repr__(self) -> str:
        from aotcli.render.report.page import summary_text

        return f"<Report: {summary_text(self.report)} .save(PATH) writes it.>"


def report(
    model: Any,
    inputs: Any = None,
    *,
    strategy: str = "mincut",
    options: Mapping[str, object] | None = None,
    against: Comparable | None = None,
    front: bool = True,
    with_source: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
    settings: CaptureSettings | None = None,
    command: str = "",
    **trace_options: Any,
) -> ReportResult:
    """The report of one planned step.

    `model` is a `Trace`, the result of `aotcli.partition` (its first plan), or what `aotcli.trace` takes; then
    `strategy` and `options` say how to plan it. `against` is another step, as in `aotcli.diff`. `front` computes the
    trade-off curve; `with_source` shows the text of source lines where the trace has it. `command` is the command line
    that makes the report again.

    Raises InputError where there is no region, and what `aotcli.partition` and `aotcli.diff` raise.
    """
    from aotcli import api

    if isinstance(model, PartitionResult):
        planned = model
    else:
        extra: dict[str, Any] = {} if isinstance(model, Trace) else {"settings": settings, **trace_options}
        planned = api.partition(
            model,
            inputs,
            strategy=strategy,
            options=options,
            alternatives=False,
            cache=cache,
            progress=progress,
            **extra,
        )
    return ReportResult(
        _report(planned.trace, planned.plan, against, progress, front=front, with_source=with_source, command=command)
    )


def _report(
    trace: Trace,
    plan: Plan,
    against: Comparable | None,
    progress: Progress | None,
    *,
    front: bool,
    with_source: bool,
    command: str,
) -> StepReport:
    from aotcli.api.tradeoff import find_trade_off

    if not trace.regions:
        raise InputError("there is nothing to report", why="the record has no region", fix="trace the model again")
    say = progress or (lambda message: None)
    other = None if against is None else _compare(against, trace, plan, progress)
    if front:
        say("computing the trade-off")
    trade_off = find_trade_off(trace, plan) if front else None
    say("adding up")
    return StepReport(trace, plan, analyze_regions(trace, plan), trade_off, other, command, with_source)


def _compare(against: Comparable, trace: Trace, plan: Plan, progress: Progress | None) -> OtherStep:
    """The report's step is the right side: what there is now, beside what there was."""
    ours = Source("this report", content=trace, result=plan)
    theirs = _source(against, trace)
    if Path(theirs.shown).is_absolute():  # reports are handed on
        theirs = replace(theirs, shown=Path(theirs.shown).name)
    left, right = as_sides(theirs, ours, plan.label if theirs.strategy is None else None, progress)
    assert isinstance(right, DiffSide)
    if progress is not None:
        progress("comparing")
    if isinstance(left, Sketch):
        pairs = pair_sketches(left, trace)
        return OtherStep(diff_plans(DiffSide(left.trace, left.plan, theirs.shown, sketched=True), right, pairs))
    pairs = pair_regions(left.trace.regions, right.trace.regions)
    partners = {pair.right: pair.left for pair in pairs if pair.right >= 0}
    found = tuple(partners.get(place, -1) for place in range(len(trace.regions)))
    return OtherStep(diff_plans(left, right, pairs), left.trace, left.plan, found)


def _source(against: Comparable, like: Trace) -> Source:
    """The other side. A model is captured as the report's own step was."""
    if isinstance(against, Trace):
        return Source(against.model.name, content=against)
    if isinstance(against, PartitionResult):
        return Source(against.trace.model.name, content=against.trace, result=against.plan)
    if not isinstance(against, str | PathLike):
        raise InputError(
            f"a {type(against).__name__} cannot be compared",
            fix="give a trace (aotcli.trace), a plan (aotcli.partition), or the name of a record or model",
        )
    if str(against).startswith("@"):  # the same step, planned otherwise
        return Source(str(against), str(against)[1:], content=like)
    path, strategy = split_reference(str(against))
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder", fix="give one record in it")
    if is_record_name(path):
        return read_source(path, strategy)
    settings = CaptureSettings() if like.settings.anonymize else like.settings
    return Source(path, strategy, spec=path, settings=settings)

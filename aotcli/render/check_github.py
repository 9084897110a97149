"""A check for GitHub Actions: workflow commands that become annotations on the lines of the model.

A line that starts with ``::`` is a command to the runner. So what a message or a path holds is escaped as the runner's
own toolkit does it (``%``, line ends; in properties ``:`` and ``,`` too), and a line of the report that looks like a
command is defused. The runner shows ten annotations of a kind for a step and drops the rest: here are no more than ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from aotcli.ir.check import Breach, CheckRun, Contributor, FigureBreach, ModelCheck, StructureBreach, Verdict
from aotcli.render.check_graph import structure_lines
from aotcli.render.check_words import LABELS, amount_text, breach_label, breach_text, gain_text, shape_cell
from aotcli.render.page import plain

MOST_ANNOTATIONS = 10
_MOST_ROWS = 5
_COMMAND = re.compile(r"^(\s*)(::|##\[)", re.MULTILINE)

Locate = Callable[[str], tuple[str, int] | None]
"""From ``file:line`` of a record to the file in the repository and the line; None where it is not the repository's."""


@dataclass(frozen=True, slots=True)
class _Annotation:
    level: str  # error or notice
    title: str
    message: str
    place: tuple[str, int | None] | None


def render_check_github(run: CheckRun, report: str, locate: Locate) -> str:
    """`report` (the text view), then at most ten annotations: one for each model first, the largest breaches first."""
    first: list[_Annotation] = []
    further: list[_Annotation] = []
    for check in run.models:
        found = _annotations(check, locate)
        first += found[:1]
        further += found[1:]
    found = sorted(first, key=lambda each: each.level) + further
    more = len(found) - MOST_ANNOTATIONS
    if more > 0:
        rest = f"{more + 1} more findings stand in the log of this step and in the summary of the job"
        found = [*found[: MOST_ANNOTATIONS - 1], _Annotation("error", "aotcli check", rest, None)]
    return defuse(report) + "".join(f"{_command(each)}\n" for each in found)


def _annotations(check: ModelCheck, locate: Locate) -> list[_Annotation]:
    config = _config_place(check, locate)
    name = plain(check.name)
    if check.failure is not None:
        parts = (check.failure.what, check.failure.why, check.failure.fix)
        return [_Annotation("error", f"{name} could not be checked", "\n".join(p for p in parts if p), config)]
    if check.breaches:
        return [_of_breach(check, breach, locate, config) for breach in check.breaches]
    if check.verdict is Verdict.NEW:
        return [_Annotation("error", f"{name} has no baseline", f"keep it: {check.accept_command}", config)]
    if check.verdict is Verdict.BETTER:
        text = "\n".join(f"{LABELS[gain.quantity]} {gain_text(gain)}" for gain in check.gains)
        return [_Annotation("notice", f"{name} is better", f"{text}\nhold it: {check.accept_command}", config)]
    return []


def _config_place(check: ModelCheck, locate: Locate) -> tuple[str, int | None]:
    """The file that sets the limits. It lies in the project's folder, which is not always the repository's."""
    found = locate(f"{check.model.config.rpartition('/')[2]}:1")
    return (check.model.config if found is None else found[0], None)


def _of_breach(check: ModelCheck, breach: Breach, locate: Locate, config: tuple[str, int | None]) -> _Annotation:
    grown = [row for row in breach.contributors if row.amount > 0 and not row.gone]
    places = (locate(row.source) for row in grown if row.source is not None)
    place = next((place for place in places if place is not None), None)
    structure = structure_lines(check) if isinstance(breach, StructureBreach) else []
    lines = [breach_text(breach), *structure, *(_row_text(breach, row) for row in breach.contributors[:_MOST_ROWS])]
    lines.append(f"intended? {check.accept_command}")
    title = f"{plain(check.name)}: {breach_label(breach)} breaks {breach.rule}"
    return _Annotation("error", title, "\n".join(plain(line) for line in lines), place or config)


def _row_text(breach: Breach, row: Contributor) -> str:
    amount = ""
    if isinstance(breach, FigureBreach):
        sign = ("+" if row.amount > 0 else "−") if breach.grew else ""
        amount = f"{sign}{amount_text(breach.quantity, abs(row.amount))} "
    gone = " (gone)" if row.gone else ""
    return f"{amount}{row.count} × {row.what} {shape_cell(row)} in {row.module}{gone}"


def _command(each: _Annotation) -> str:
    properties: list[str] = []
    if each.place is not None:
        file, line = each.place
        properties.append(f"file={_property(file)}")
        if line is not None:
            properties.append(f"line={line}")
    properties.append(f"title={_property(each.title)}")
    return f"::{each.level} {','.join(properties)}::{_data(each.message)}"


def _data(text: str) -> str:
    return plain(text.replace("##[", "## [").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def defuse(report: str) -> str:
    """`report` with no line that the runner would take for a command, and nothing in its older form anywhere."""
    return _COMMAND.sub(r"\1| \2", report.replace("##[", "## ["))

"""A check for GitHub Actions: annotations on the lines of the model, below the report (aotcli/render/github.py)."""

from __future__ import annotations

from aotcli.ir.check import Breach, CheckRun, Contributor, FigureBreach, ModelCheck, StructureBreach, Verdict
from aotcli.render.check_graph import structure_lines
from aotcli.render.check_words import LABELS, amount_text, breach_label, breach_text, gain_text, shape_cell
from aotcli.render.github import MOST_ANNOTATIONS, Annotation, Locate, annotation_line, defuse
from aotcli.render.page import plain

_MOST_ROWS = 5


def render_check_github(run: CheckRun, report: str, locate: Locate) -> str:
    """`report` (the text view), then at most ten annotations: one for each model first, the largest breaches first."""
    first: list[Annotation] = []
    further: list[Annotation] = []
    for check in run.models:
        found = _annotations(check, locate)
        first += found[:1]
        further += found[1:]
    found = sorted(first, key=lambda each: each.level) + further
    more = len(found) - MOST_ANNOTATIONS
    if more > 0:
        rest = f"{more + 1} more findings stand in the log of this step and in the summary of the job"
        found = [*found[: MOST_ANNOTATIONS - 1], Annotation("error", "aotcli check", rest, None)]
    return defuse(report) + "".join(f"{annotation_line(each)}\n" for each in found)


def _annotations(check: ModelCheck, locate: Locate) -> list[Annotation]:
    config = _config_place(check, locate)
    name = plain(check.name)
    if check.failure is not None:
        parts = (check.failure.what, check.failure.why, check.failure.fix)
        return [Annotation("error", f"{name} could not be checked", "\n".join(p for p in parts if p), config)]
    if check.breaches:
        return [_of_breach(check, breach, locate, config) for breach in check.breaches]
    if check.verdict is Verdict.NEW:
        return [Annotation("error", f"{name} has no baseline", f"keep it: {check.accept_command}", config)]
    if check.verdict is Verdict.BETTER:
        text = "\n".join(f"{LABELS[gain.quantity]} {gain_text(gain)}" for gain in check.gains)
        return [Annotation("notice", f"{name} is better", f"{text}\nhold it: {check.accept_command}", config)]
    return []


def _config_place(check: ModelCheck, locate: Locate) -> tuple[str, int | None]:
    """The file that sets the limits. It lies in the project's folder, which is not always the repository's."""
    found = locate(f"{check.model.config.rpartition('/')[2]}:1")
    return (check.model.config if found is None else found[0], None)


def _of_breach(check: ModelCheck, breach: Breach, locate: Locate, config: tuple[str, int | None]) -> Annotation:
    grown = [row for row in breach.contributors if row.amount > 0 and not row.gone]
    places = (locate(row.source) for row in grown if row.source is not None)
    place = next((place for place in places if place is not None), None)
    structure = structure_lines(check) if isinstance(breach, StructureBreach) else []
    lines = [breach_text(breach), *structure, *(_row_text(breach, row) for row in breach.contributors[:_MOST_ROWS])]
    lines.append(f"intended? {check.accept_command}")
    title = f"{plain(check.name)}: {breach_label(breach)} breaks {breach.rule}"
    return Annotation("error", title, "\n".join(plain(line) for line in lines), place or config)


def _row_text(breach: Breach, row: Contributor) -> str:
    amount = ""
    if isinstance(breach, FigureBreach):
        sign = ("+" if row.amount > 0 else "−") if breach.grew else ""
        amount = f"{sign}{amount_text(breach.quantity, abs(row.amount))} "
    gone = " (gone)" if row.gone else ""
    return f"{amount}{row.count} × {row.what} {shape_cell(row)} in {row.module}{gone}"

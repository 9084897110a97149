"""Findings as annotations of GitHub Actions, on the lines of the model, below the text view."""

from __future__ import annotations

from aotcli.ir.finding import Finding, LintReport
from aotcli.render.github import MOST_ANNOTATIONS, Annotation, Locate, annotation_line, defuse
from aotcli.render.lint_text import finding_title
from aotcli.render.page import plain
from aotcli.render.units import bytes_text

_NO_PLAN = "error"
_USUAL = "warning"


def render_lint_github(report: LintReport, text: str, locate: Locate) -> str:
    """`text` (the text view), then at most ten annotations: what allows no plan first, then by bytes at stake."""
    order = sorted(report.findings, key=lambda finding: (not finding.places, -finding.nbytes))
    found = [_annotation(finding, locate) for finding in order]
    more = len(found) - MOST_ANNOTATIONS
    if more > 0:
        rest = f"{more + 1} more findings stand in the log of this step"
        found = [*found[: MOST_ANNOTATIONS - 1], Annotation(_USUAL, "aotcli lint", rest, None)]
    return defuse(text) + "".join(f"{annotation_line(each)}\n" for each in found)


def _annotation(finding: Finding, locate: Locate) -> Annotation:
    sources = [finding.source, *(place.source for place in finding.places)]
    places = (locate(source) for source in sources if source is not None)
    lines = [f"{finding_title(finding)}{_bytes(finding)}".strip(), finding.detail]
    lines += [f"{place.source}: {place.what}" for place in finding.places]
    lines += [f"fix: {finding.remedy.text}", *finding.remedy.lines]
    return Annotation(
        _NO_PLAN if finding.places else _USUAL,
        f"{finding.rule} {finding.name}",
        "\n".join(plain(line) for line in lines if line),
        next((place for place in places if place is not None), None),
    )


def _bytes(finding: Finding) -> str:
    return f", {bytes_text(finding.nbytes)} at stake" if finding.nbytes else ""

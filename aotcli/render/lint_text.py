"""What `aotcli lint` prints: the verdict, findings by rule with their remedy, and what one saves without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aotcli.ir.finding import Finding, LintReport, Remedy, RuleInfo
from aotcli.ir.sizes import size_text
from aotcli.ir.trace import Trace
from aotcli.render.header import header_lines
from aotcli.render.page import Column, Page, plain, table
from aotcli.render.partition_text import labelled
from aotcli.render.units import (
    bytes_text,
    change_text,
    column_bytes,
    column_unit,
    count_text,
    dtype_text,
    magnitude_text,
    plural,
    shape_text,
)

MOST_FINDINGS = 8
_DETAIL_INDENT = 9
POLICY_FILE = "lint.toml"


@dataclass(frozen=True, slots=True)
class LintView:
    """How to show a report. `target` is how the command line named model and settings, for commands to copy; `every`
    lists all findings of a rule; `quiet` leaves notes and next steps out; `cached` says that the trace is an earlier
    one."""

    target: str = "MODEL"
    every: bool = False
    quiet: bool = False
    cached: bool = False


def render_lint_text(trace: Trace, report: LintReport, page: Page, view: LintView) -> str:
    """The findings of one plan."""
    lines = [*header_lines(page, trace, cached=view.cached), "", page.style(verdict_text(report), "bold")]
    for rule in report.rules:
        findings = [finding for finding in report.findings if finding.rule == rule.code]
        if findings:
            lines += ["", *_rule(page, rule, findings, view)]
    if not view.quiet:
        lines += _notes(page, report)
        lines += _next_steps(page, report, view)
    return page.finish(lines)


def verdict_text(report: LintReport) -> str:
    """``5 findings, 20.3 MiB at stake of 69.9 MiB that mincut saves``."""
    count = plural(len(report.findings), "finding") if report.findings else "No findings"
    if report.saved_bytes is None:
        return f"{count}; {report.strategy} has no plan"
    if not report.nbytes:
        return f"{count}; {report.strategy} saves {bytes_text(report.saved_bytes)}"
    saved = f"{bytes_text(report.saved_bytes)} that {report.strategy} saves"
    return f"{count}, {bytes_text(report.nbytes)} at stake of {saved}"


def render_rules_text(rules: Sequence[RuleInfo], page: Page) -> str:
    """What `--list-rules` prints."""
    lines: list[str] = []
    for rule in rules:
        head = f"{rule.code}  {rule.name}"
        lines += [page.style(head, "bold"), *page.wrap(rule.summary, 8)]
    return page.finish([*lines, "", "docs/lint.md describes each, with an example."])


def finding_title(finding: Finding) -> str:
    """``h.*  gelu  8×1024×3072 f32  ×12``: what a finding is about, on one line."""
    parts = [finding.module, finding.what]
    if finding.shape is not None:
        parts.append(f"{shape_text(finding.shape)} {dtype_text(finding.dtype)}".strip())
    if finding.count > 1:
        parts.append(f"×{count_text(finding.count)}")
    return "  ".join(part for part in parts if part)


def line_text(finding: Finding) -> str:
    """``gpt.py:26 +2``: the first line, and how many more there are."""
    if finding.source is None:
        return ""
    return finding.source if finding.sources <= 1 else f"{finding.source} +{finding.sources - 1}"


def _rule(page: Page, rule: RuleInfo, findings: Sequence[Finding], view: LintView) -> list[str]:
    nbytes = sum(finding.nbytes for finding in findings)
    heading = f"{page.style(rule.code, 'bold', 'yellow')}  {page.style(rule.name, 'bold')}"
    lines = [f"{heading}  {bytes_text(nbytes)}" if nbytes else heading]
    # One row more is shorter than a line that says "1 more".
    kept = len(findings) if view.every or len(findings) <= MOST_FINDINGS + 1 else MOST_FINDINGS
    shown = findings[:kept]
    by_remedy = [[each for each in shown if each.remedy == remedy] for remedy in _remedies(shown)]
    blocks = _tables(page, by_remedy) if shown[0].shape is not None else [_list(page, group) for group in by_remedy]
    for group, block in zip(by_remedy, blocks, strict=True):
        lines += [*block, *_remedy(page, group[0].remedy)]
    if kept < len(findings):
        rest = sum(finding.nbytes for finding in findings[kept:])
        lines.append(f"  and {len(findings) - kept} more, {bytes_text(rest)}: --all lists them")
    return lines


def _remedies(findings: Sequence[Finding]) -> list[Remedy]:
    return list(dict.fromkeys(finding.remedy for finding in findings))


def _tables(page: Page, groups: Sequence[Sequence[Finding]]) -> list[list[str]]:
    """One table, in as many blocks as there are groups."""
    findings = [finding for group in groups for finding in group]
    unit, unit_bytes = column_unit(max(finding.nbytes for finding in findings))
    columns = [
        Column(unit.rjust(7), right=True),
        Column("n", right=True),
        Column("module", minimum=9, style="cyan"),
        Column("what", minimum=8),
        Column("shape", minimum=12),
        Column("line", minimum=14, style="dim", keep_end=True),
    ]
    rows = [
        [
            column_bytes(finding.nbytes, unit_bytes),
            count_text(finding.count),
            finding.module,
            finding.what,
            f"{shape_text(finding.shape or ())} {dtype_text(finding.dtype)}",
            line_text(finding),
        ]
        for finding in findings
    ]
    head, *body = table(page, columns, rows)
    lines = iter(body)
    blocks = [_with_details(page, group, lines) for group in groups]
    return [[head, *blocks[0]], *blocks[1:]]


def _with_details(page: Page, findings: Sequence[Finding], rows: Iterator[str]) -> list[str]:
    """Rows, with what was found below the last of those that say the same."""
    lines: list[str] = []
    for position, finding in enumerate(findings):
        lines.append(next(rows))
        if finding.detail not in [each.detail for each in findings[position + 1 : position + 2]]:
            lines += page.wrap(plain(finding.detail), _DETAIL_INDENT)
    return lines


def _list(page: Page, findings: Sequence[Finding]) -> list[str]:
    """Findings that are about lines, not about tensors."""
    lines: list[str] = []
    for finding in findings:
        places = [(place.source or "?", place.what) for place in finding.places] or [(line_text(finding) or "?", "")]
        times = f"  ×{finding.count}" if finding.count > 1 else ""
        for source, what in places:
            lines += page.wrap(plain(f"{source}  {what}".rstrip() + times), 4, "  ")
            times = ""
        lines += page.wrap(plain(finding.detail), _DETAIL_INDENT)
    return lines


def _remedy(page: Page, remedy: Remedy) -> list[str]:
    lines = page.wrap(plain(remedy.text), 7, "  fix:")
    lines[0] = lines[0].replace("fix:", page.style("fix:", "green"), 1)
    return [*lines, *(f"       {plain(line)}" for line in remedy.lines)]


def _notes(page: Page, report: LintReport) -> list[str]:
    notes = list(report.notes)
    if report.small:
        what = plural(report.small, "finding")
        notes.append(
            f"{what} with less than {size_text(report.min_bytes)} at stake not shown "
            f"({bytes_text(report.small_bytes)} together): --min-bytes 0 shows them"
        )
    return ["", *(line for note in notes for line in labelled(page, "Note", plain(note)))] if notes else []


def _next_steps(page: Page, report: LintReport, view: LintView) -> list[str]:
    plan = report.policy
    if plan is None or report.saved_bytes is None:
        return []
    text = f"{bytes_text(plan.saved_bytes)} saved ({change_text(plan.saved_bytes, report.saved_bytes)})"
    text += " by a policy that computes these again"
    if plan.recompute_flops:
        text += f", {magnitude_text(plan.recompute_flops, 'FLOP')} with them"
    return [
        "",
        *labelled(page, "Instead", text),
        f"  aotcli lint {view.target} --write-policy {POLICY_FILE}",
        f"  aotcli partition {view.target} --strategy policy:{POLICY_FILE}",
    ]

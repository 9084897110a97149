"""Findings as GitHub-flavoured Markdown, for pull requests and job summaries."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.ir.finding import Finding, LintReport, Remedy, RuleInfo
from aotcli.ir.trace import Trace
from aotcli.render.lint_text import line_text, verdict_text
from aotcli.render.markdown import escape
from aotcli.render.page import plain
from aotcli.render.units import bytes_text, change_text, count_text, dtype_text, shape_text


def render_lint_markdown(trace: Trace, report: LintReport) -> str:
    """The findings of one plan: the verdict, a table for each rule, its remedies."""
    lines = [f"### aotcli lint: {escape(trace.model.name)}", "", f"**{escape(verdict_text(report))}**"]
    for rule in report.rules:
        findings = [finding for finding in report.findings if finding.rule == rule.code]
        if findings:
            lines += ["", *_rule(rule, findings)]
    if report.policy is not None and report.saved_bytes is not None:
        after = report.policy.saved_bytes
        change = change_text(after, report.saved_bytes)
        lines += ["", f"Without what can be computed again: {bytes_text(after)} saved ({change})."]
    lines += [line for note in report.notes for line in ("", f"> {escape(note)}")]
    return "\n".join(lines) + "\n"


def _rule(rule: RuleInfo, findings: Sequence[Finding]) -> list[str]:
    lines = [f"#### {rule.code} {rule.name}", ""]
    if findings[0].shape is None:
        for finding in findings:
            places = [f"`{plain(place.source or '?')}` {escape(place.what)}" for place in finding.places]
            where = "; ".join(places) or f"`{plain(finding.source or '?')}`"
            times = f" ×{finding.count}" if finding.count > 1 else ""
            lines.append(f"- {where}{times}: {escape(finding.detail)}")
    else:
        lines += ["| bytes | n | module | what | shape | line | |", "|--:|--:|---|---|---|---|---|"]
        lines += [_row(finding) for finding in findings]
    return [*lines, *(line for remedy in dict.fromkeys(each.remedy for each in findings) for line in _fix(remedy))]


def _row(finding: Finding) -> str:
    shape = f"{shape_text(finding.shape or ())} {dtype_text(finding.dtype)}"
    cells = [bytes_text(finding.nbytes), count_text(finding.count), escape(finding.module), escape(finding.what)]
    return f"| {' | '.join([*cells, shape, escape(line_text(finding)), escape(finding.detail)])} |"


def _fix(remedy: Remedy) -> list[str]:
    lines = ["", f"Fix: {escape(remedy.text)}"]
    return [*lines, "", "```", *(plain(line) for line in remedy.lines), "```"] if remedy.lines else lines

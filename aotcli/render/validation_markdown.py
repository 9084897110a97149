"""A validation as GitHub-flavoured Markdown, for pull requests and job summaries."""

from __future__ import annotations

from aotcli.ir.outcome import CheckResult, Validation
from aotcli.render.header import SEPARATOR
from aotcli.render.markdown import escape
from aotcli.render.validation_text import figure_text, header_texts, verdict, verdict_text


def render_validation_markdown(validation: Validation) -> str:
    """A table for each strategy."""
    lines = [f"### Validated: {escape(validation.model)}", "", escape(SEPARATOR.join(header_texts(validation)))]
    for strategy in validation.strategies:
        lines += ["", f"**{verdict(strategy).value}** `{strategy.label}`: {verdict_text(strategy)}", ""]
        lines += ["| result | check | measured | why |", "|---|---|--:|---|"]
        lines += [_row(check) for check in strategy.checks]
        lines += [f"- Note: {escape(note)}" for note in strategy.notes and ("", *strategy.notes)]
    if validation.notes:
        lines += ["", *(f"- Note: {escape(note)}" for note in validation.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _row(check: CheckResult) -> str:
    reason = "<br>".join(escape(text) for text in dict.fromkeys((check.reason, *check.details)))
    return f"| {check.outcome.value} | {escape(check.check)} | {escape(figure_text(check))} | {reason} |"

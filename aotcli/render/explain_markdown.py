"""Explanations as GitHub-flavoured Markdown, for issues and pull requests."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.summary import Plan
from aotcli.ir.explanation import Change, Explanation
from aotcli.ir.trace import Trace
from aotcli.render.explain_words import ALREADY_SO, FATE_WORDS, details, headline
from aotcli.render.header import SEPARATOR, device_text, step_text
from aotcli.render.markdown import escape
from aotcli.render.units import bytes_text, change_text, count_text, dtype_text, magnitude_text, plural, shape_text

_COMMANDS = frozenset({"flip"})


def render_explain_markdown(
    trace: Trace, plan: Plan, explanations: Sequence[Explanation], change: Change | None, target: str
) -> str:
    """A heading for each kind of value, and a list of what is known about it."""
    parts = [step_text(trace), "train" if trace.train else "eval", device_text(trace), f"level {trace.settings.level}"]
    lines = [f"### Why: {escape(trace.model.name)}", "", escape(SEPARATOR.join(parts))]
    if change is not None:
        lines += ["", *_change(change)]
    several = len(trace.regions) > 1
    for explanation in explanations:
        lines += ["", f"#### {escape(headline(explanation, plan.saved_bytes, several))}", ""]
        for label, text in details(explanation, target):
            shown = f"`{text}`" if label in _COMMANDS and text.startswith("aotcli ") else escape(text)
            lines.append(f"- {label + ': ' if label else ''}{shown}")
    if not explanations and change is None:
        lines += ["", "There is nothing to explain."]
    return "\n".join(lines) + "\n"


def _change(change: Change) -> list[str]:
    before, after = change.before, change.after
    freed = f"{bytes_text(before.saved_bytes)} → {bytes_text(after.saved_bytes)}"
    ops = f"{plural(before.recomputed_ops, 'op')} → {plural(after.recomputed_ops, 'op')}"
    flops = f"{magnitude_text(before.recompute_flops, 'FLOP')} → {magnitude_text(after.recompute_flops, 'FLOP')}"
    lines = [
        f"**Saved {freed}** ({change_text(after.saved_bytes, before.saved_bytes)})",
        "",
        f"- Peak (lower bound): {bytes_text(before.peak_bytes)} → {bytes_text(after.peak_bytes)}",
        f"- To rerun: {ops}, {flops}",
        *(f"- Note: {escape(note)}" for note in change.notes),
    ]
    if not change.rows:
        return [*lines, "", ALREADY_SO]
    lines += [
        "",
        "| size | n | module | what | shape | was | is |",
        "|--:|--:|---|---|---|---|---|",
    ]
    for row in change.rows:
        shape = f"{shape_text(row.shape)} {dtype_text(row.dtype)}"
        cells = [bytes_text(row.nbytes), count_text(row.count), escape(row.module), escape(row.what), escape(shape)]
        lines.append(f"| {' | '.join([*cells, FATE_WORDS[row.before], FATE_WORDS[row.after]])} |")
    return lines

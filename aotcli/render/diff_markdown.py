"""A difference as GitHub-flavoured Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from aotcli.ir.difference import Difference, SideInfo
from aotcli.render.diff_rows import DiffRows, shown_changes, tie_note
from aotcli.render.diff_words import (
    cause_text,
    confidence_text,
    environment_text,
    fate_texts,
    outside_text,
    rewrite_text,
    same_text,
    signed_bytes,
    value_text,
    values_by_interest,
    verdict_text,
)
from aotcli.render.markdown import escape
from aotcli.render.units import count_text, dtype_text, plural

Row = TypeVar("Row")
_LIST_LIMIT = 10
_HEAD = ("| change | n | module | what | shape | dtype | how | line |", "|--:|--:|---|---|---|---|---|---|")


def render_diff_markdown(difference: Difference, rows: DiffRows) -> str:
    """The view of the terminal as a section of Markdown."""
    left, right = difference.left, difference.right
    lines = [f"### Saved for backward: {escape(left.name)} → {escape(right.name)}", ""]
    lines += [f"- before: {_side(left)}", f"- after: {_side(right)}"]
    if difference.environment:
        lines.append(f"- environment: {escape(environment_text(difference))}")
    lines.append("")
    if difference.is_empty:
        return "\n".join([*lines, f"**No difference**: {escape(same_text(difference))}"]) + "\n"
    if rows.saved:
        lines += _saved(difference, rows)
    if rows.graph and not difference.unknown:
        lines += _graph(difference, rows)
    lines += [f"- note: {escape(note)}" for note in difference.unknown]
    return "\n".join(lines).rstrip() + "\n"


def _side(side: SideInfo) -> str:
    parts = [side.model, side.strategy, f"level {side.level}", side.device, f"torch {side.torch}"]
    return escape(" · ".join([*parts, plural(side.totals.nodes, "node")]))


def _saved(difference: Difference, rows: DiffRows) -> list[str]:
    lines = [f"**{verdict_text(difference)}**"]
    cause = cause_text(difference)
    lines += ["", escape(cause)] if cause else []
    changes = shown_changes(difference)
    kept = rows.count(len(changes))
    if kept:
        lines += [
            "",
            "| change | n | module | what | shape | dtype | how | line |",
            "|--:|--:|---|---|---|---|---|---|",
        ]
    for each in changes[:kept]:
        cells = [signed_bytes(each.delta_bytes), count_text(each.count), escape(each.module), escape(each.what)]
        cells += [each.shape, dtype_text(each.dtype), escape(each.how), escape(each.source)]
        lines.append(f"| {' | '.join(cells)} |")
    if len(changes) > kept:
        rest = signed_bytes(sum(each.delta_bytes for each in changes[kept:]))
        lines += ["", f"and {len(changes) - kept} more rows, {rest} together"]
    note = tie_note(difference)
    lines += ["", *([f"- {note}"] if note else [])]
    lines += [f"- flips: {escape(text)}" for text in fate_texts(difference.flips)]
    lines += [f"- moves: {escape(text)}" for text in fate_texts(difference.moves)]
    return [*lines, *(f"- {escape(text)}" for text in outside_text(difference))]


def _graph(difference: Difference, rows: DiffRows) -> list[str]:
    lines = _list("values", values_by_interest(difference.values), value_text, rows)
    lines += _list("graph", difference.rewrites, rewrite_text, rows)
    return [*lines, f"- matched: {escape(confidence_text(difference))}"]


def _list(label: str, found: Sequence[Row], text: Callable[[Row], str], rows: DiffRows) -> list[str]:
    kept = rows.count(len(found), _LIST_LIMIT)
    lines = [f"- {label}: {escape(text(row))}" for row in found[:kept]]
    return lines if len(found) == kept else [*lines, f"- {label}: {len(found) - kept} more"]

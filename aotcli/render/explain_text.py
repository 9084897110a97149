"""Explanations for a terminal: what a wish changes first, then value by value, then the next commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aotcli.analysis.summary import Plan
from aotcli.ir.explanation import Change, ChangeRow, Explanation
from aotcli.ir.trace import Trace
from aotcli.render.explain_words import ALREADY_SO, FATE_WORDS, details, headline
from aotcli.render.header import header_lines
from aotcli.render.page import Column, Page, plain, table
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

_LABEL_WIDTH = 11
_MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class ExplainView:
    """How explanations are shown: what was asked about, how much is hidden, the change under wishes, the words that
    name the model on a command line; `quiet` leaves notes and next commands out."""

    pattern: str | None = None
    hidden: int = 0
    change: Change | None = None
    target: str = "MODEL"
    quiet: bool = False
    cached: bool = False


def render_explain_text(
    trace: Trace, plan: Plan, explanations: Sequence[Explanation], page: Page, view: ExplainView
) -> str:
    """The header, the change under wishes, and the explanations."""
    lines = [*header_lines(page, trace, cached=view.cached)]
    if view.change is not None:
        lines += ["", *change_lines(page, view.change)]
        if not view.quiet:
            lines += [line for note in view.change.notes for line in _labelled(page, "Note", note)]
    several = len(trace.regions) > 1
    for explanation in explanations:
        lines += ["", page.style(plain(headline(explanation, plan.saved_bytes, several)), "bold")]
        last = ""
        for label, text in details(explanation, view.target):
            lines += _labelled(page, "" if label == last else label, text)
            last = label
    if not explanations and view.change is None:
        lines += ["", _nothing(trace)]
    if not view.quiet:
        lines += _next_steps(page, plan, explanations, view)
    return page.finish(lines)


def _labelled(page: Page, label: str, text: str) -> list[str]:
    lines = page.wrap(plain(text), _LABEL_WIDTH, f"  {label}")
    head = page.style(f"  {label}", "dim") if label else ""
    return [head + lines[0][len(label) + 2 :] if label else lines[0], *lines[1:]]


def _nothing(trace: Trace) -> str:
    if not any(graph.nodes for graph in trace.regions):
        return "There is nothing to explain: the graph is empty."
    if not any(graph.has_backward for graph in trace.regions):
        return "Nothing is saved: no input or parameter needs a gradient."
    return "No activation is saved."


def change_lines(page: Page, change: Change) -> list[str]:
    """The totals before and after, and what is treated otherwise."""
    rows = [
        _total("saved", bytes_text, change.before.saved_bytes, change.after.saved_bytes),
        _total("peak (lower bound)", bytes_text, change.before.peak_bytes, change.after.peak_bytes),
        _total("ops to rerun", count_text, change.before.recomputed_ops, change.after.recomputed_ops),
        _total("their FLOPs", _flops, change.before.recompute_flops, change.after.recompute_flops),
    ]
    columns = [Column(""), Column("plan", right=True), Column("with the wish", right=True), Column("", right=True)]
    return [*table(page, columns, rows, gap=3), "", *_change_table(page, change)]


def _total(label: str, words: Callable[[int], str], before: int, after: int) -> tuple[str, str, str, str]:
    return label, words(before), words(after), change_text(after, before)


def _flops(flops: int) -> str:
    return magnitude_text(flops, "FLOP")


def _change_table(page: Page, change: Change) -> list[str]:
    if not change.rows:
        return [ALREADY_SO]
    rows = [row for row in change.rows if row.of_saved][:_MOST_ROWS] or list(change.rows[:_MOST_ROWS])
    unit, unit_bytes = column_unit(max(row.nbytes for row in rows))
    usual = Counter(row.dtype for row in rows).most_common(1)[0][0]
    columns = [
        Column(unit.rjust(7), right=True),
        Column("n", right=True),
        Column("module", minimum=9, style="cyan"),
        Column("what", minimum=9),
        Column(f"shape {dtype_text(usual)}", minimum=10),
        Column("was"),
        Column("is"),
    ]
    lines = table(page, columns, [_change_cells(row, unit_bytes, usual) for row in rows])
    rest = change.rows[len(rows) :]
    if rest:
        lines += page.wrap(f"and {plural(sum(row.count for row in rest), 'value')} more: {_fates(rest)}", 2)
    return lines


def _change_cells(row: ChangeRow, unit_bytes: int, usual: str) -> tuple[str, ...]:
    return (
        column_bytes(row.nbytes, unit_bytes),
        count_text(row.count),
        row.module,
        row.what,
        shape_text(row.shape) + (f" {dtype_text(row.dtype)}" if row.dtype != usual else ""),
        FATE_WORDS[row.before],
        FATE_WORDS[row.after],
    )


def _fates(rows: Sequence[ChangeRow]) -> str:
    """``80 forward only, now recomputed``."""
    counts: dict[str, int] = {}
    for row in rows:
        words = f"{FATE_WORDS[row.before]}, now {FATE_WORDS[row.after]}"
        counts[words] = counts.get(words, 0) + row.count
    return "; ".join(f"{count_text(count)} {words}" for words, count in counts.items())


def _next_steps(page: Page, plan: Plan, explanations: Sequence[Explanation], view: ExplainView) -> list[str]:
    lines: list[str] = []
    regions = {each.region for each in explanations if each.place.name == view.pattern}
    if len(regions) > 1:
        lines.append(f"Several regions have a {view.pattern}: {max(regions)}:{view.pattern} means that one alone")
    if view.hidden:
        kinds = "1 more kind of value" if view.hidden == 1 else f"{view.hidden} more kinds of values"
        lines.append(f"{kinds}: --top {len(explanations) + view.hidden}")
    if view.change is not None:
        text = "Keep it: add --write-policy FILE.toml (for --strategy policy) or FILE.py (for checkpointing)"
        lines += page.wrap(text, 0)
    elif any(each.flip is not None and each.flip.change is not None for each in explanations):
        words = ["aotcli explain", view.target, *([shlex.quote(view.pattern)] if view.pattern is not None else [])]
        command = " ".join(word for word in words if word)
        text = f"All flips as a file: {command} --write-policy FILE.toml, or FILE.py for checkpointing"
        wrapped = page.wrap(text, 2)
        lines += [wrapped[0].strip(), *wrapped[1:]]
    return ["", *lines] if lines else []

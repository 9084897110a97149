"""A difference for a terminal: what was compared, what saving costs now and why, what the graph did, how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.ir.difference import Difference, Fate, SideInfo
from aotcli.render.diff_rows import DiffRows, ShownChange, shown_changes, tie_note
from aotcli.render.diff_words import (
    cause_text,
    confidence_text,
    environment_text,
    fate_text,
    fate_texts,
    is_free_rewrite,
    outside_text,
    rewrite_text,
    same_text,
    value_text,
    values_by_interest,
    verdict_text,
)
from aotcli.render.header import SEPARATOR, flow
from aotcli.render.page import DEFAULT_WIDTH, Column, Page, plain, table
from aotcli.render.partition_text import labelled
from aotcli.render.saved_table import WIDE
from aotcli.render.units import column_bytes, column_unit, count_text, dtype_text, plural

_LIST_LIMIT = 6


def render_diff_text(difference: Difference, page: Page, rows: DiffRows, words: Sequence[str] = ()) -> str:
    """The whole view. `words` name the two sides on a command line, for the next steps; without them there are none."""
    lines = [*side_lines(page, difference), ""]
    if difference.is_empty:
        verdict = "No difference: "
        first, *rest = page.wrap(same_text(difference), len(verdict), verdict)
        styled = page.style(verdict.strip(), "bold", "green") + first[len(verdict.strip()) :]
        return page.finish([*lines, styled, *rest])
    if rows.saved:
        lines += saved_lines(page, difference, rows)
    if rows.graph and not difference.unknown:
        lines += ["", *graph_lines(page, difference, rows)] if rows.saved else graph_lines(page, difference, rows)
    for note in difference.unknown:
        lines += labelled(page, "Note", plain(note))
    if words:
        lines += _next_steps(difference, rows, words)
    return page.finish(lines)


def side_lines(page: Page, difference: Difference) -> list[str]:
    """The two sides, A and B, what they have in common, and what was traced differently."""
    parts = [_side_parts(side) for side in (difference.left, difference.right)]
    common = [mine for mine, other in zip(*parts, strict=True) if mine == other]
    names = [page.fit(page.text(side.name), page.width // 2) for side in (difference.left, difference.right)]
    width = max(map(len, names))
    lines: list[str] = []
    for letter, name, own in zip("AB", names, parts, strict=True):
        head = f"{letter}  {page.style(name, 'bold')}" + " " * (width - len(name) + 2)
        lines += flow(page, [part for part in own if part not in common] or ["the same"], width + 5, head)
    if common:
        lines += flow(page, common, width + 5, "   both".ljust(width + 5))
    if difference.environment:
        lines += labelled(page, "Environment", plain(environment_text(difference)))
    return lines


def _side_parts(side: SideInfo) -> list[str]:
    parts = [side.model, side.strategy, plural(side.totals.nodes, "node"), f"level {side.level}", side.device]
    return [plain(part) for part in (*parts, f"torch {side.torch.partition('+')[0]}")]


# What is saved.


def saved_lines(page: Page, difference: Difference, rows: DiffRows) -> list[str]:
    """The verdict, its causes, and the tensors behind it; then flips and moves."""
    delta = difference.saved_delta_bytes
    color = "red" if delta > 0 else "green"
    label = page.style("Saved for backward", "bold")
    wrapped = page.wrap(verdict_text(difference), 20)
    lines = [f"{label}  {page.style(wrapped[0].strip(), 'bold', color) if delta else wrapped[0].strip()}", *wrapped[1:]]
    cause = cause_text(difference)
    lines += labelled(page, "Why", cause) if cause else []
    changes = shown_changes(difference)
    if changes:
        lines += ["", *_table(page, changes, rows)]
        note = tie_note(difference)
        lines += page.wrap(note, 2) if note else []
    below = _fate_lines(page, difference, rows)
    outside = outside_text(difference)
    below += labelled(page, "Besides", SEPARATOR.join(outside)) if outside else []
    return [*lines, "", *below] if below else lines


def _fate_lines(page: Page, difference: Difference, rows: DiffRows) -> list[str]:
    """Flips and moves, and ops that run again or no longer do; one line for each kind of op with --all."""
    others = [row for row in difference.fates if not row.is_flip and not row.is_move and Fate.SAVED not in row.fates]
    lines: list[str] = []
    for label, found in (("Flips", difference.flips), ("Moves", difference.moves), ("Reruns", others)):
        texts = [fate_text(row) for row in found] if rows.every else fate_texts(found)
        lines += _list(page, label, texts, rows, noun="changes")
    return lines


def _table(page: Page, changes: Sequence[ShownChange], rows: DiffRows) -> list[str]:
    kept = rows.count(len(changes))
    shown, rest = changes[:kept], changes[kept:]
    unit, unit_bytes = column_unit(max((abs(each.delta_bytes) for each in shown), default=0))
    wide = page.width >= WIDE
    dtypes = {dtype_text(each.dtype) for each in shown}
    one = dtypes.pop() if len(dtypes) == 1 else ""
    columns = [
        Column(unit.rjust(8), right=True),
        Column("n", right=True),
        Column("module", minimum=8, style="cyan"),
        Column("what", minimum=9),
        Column(f"shape {one}".strip(), minimum=11),
        Column("how", minimum=15 if page.width >= DEFAULT_WIDTH else 11),
        Column("line", minimum=16 if wide else 8, style="dim", keep_end=True),
    ]
    body = [_cells(each, unit_bytes, one, wide) for each in shown]
    if rest:
        delta, count = sum(each.delta_bytes for each in rest), sum(each.count for each in rest)
        head = [signed_column(delta, unit_bytes), count_text(count), "", f"{len(rest)} more"]
        body.append([*head, "", "--all to list", ""])
    return table(page, columns, body)


def _cells(change: ShownChange, unit_bytes: int, dtype: str, wide: bool) -> list[str]:
    own = dtype_text(change.dtype)
    shape = change.shape if own == dtype else f"{change.shape} {own}".strip()
    line = change.source if wide else change.source.partition(" ")[0].rpartition("/")[2]
    cells = [signed_column(change.delta_bytes, unit_bytes), count_text(change.count), change.module, change.what]
    return [*cells, shape, change.how, line]


def signed_column(nbytes: int, unit_bytes: int) -> str:
    """A change as a bare number of a column's unit, always with a sign; nothing is ``=``."""
    if not nbytes:
        return "="
    return f"{'+' if nbytes > 0 else '−'}{column_bytes(abs(nbytes), unit_bytes)}"


def _list(page: Page, label: str, texts: Sequence[str], rows: DiffRows, *, noun: str) -> list[str]:
    """Texts one below the other under a label, cut with how many more there are."""
    kept = rows.count(len(texts), _LIST_LIMIT)
    lines: list[str] = []
    for number, text in enumerate(texts[:kept]):
        lines += labelled(page, "" if number else label, plain(text))
    if len(texts) > kept:
        lines += labelled(page, "" if kept else label, f"and {len(texts) - kept} more {noun} (--all)")
    return lines


# The graph.


def graph_lines(page: Page, difference: Difference, rows: DiffRows) -> list[str]:
    """Changed, added and removed ops; then how surely nodes were paired."""
    lines = _regions(page, difference)
    if difference.same_graph and not difference.values:
        return [*lines, *labelled(page, "Graph", f"the same: {confidence_text(difference)}")]
    costly = [row for row in difference.rewrites if not is_free_rewrite(row)]
    free = [] if len(costly) == len(difference.rewrites) else [_views_text(difference)]
    shown = difference.rewrites if rows.every else costly
    texts = [rewrite_text(row) for row in shown]
    lines += _list(
        page, "Values", [value_text(row) for row in values_by_interest(difference.values)], rows, noun="changes"
    )
    lines += _list(page, "Graph", texts if rows.every else [*texts, *free], rows, noun="changes")
    if not difference.values and not difference.rewrites:
        lines += labelled(page, "Graph", "the same ops; what differs is aliasing, or the order of effects")
    return [*lines, *labelled(page, "Matched", confidence_text(difference))]


def _views_text(difference: Difference) -> str:
    """Views that changed and nothing with them: they cost nothing, so their number will do."""
    nodes = sum(row.nodes for row in difference.rewrites if is_free_rewrite(row))
    return f"{plural(nodes, 'view')} added, removed or replaced, which costs nothing"


def _regions(page: Page, difference: Difference) -> list[str]:
    """Regions that only one side has, where there are several."""
    lines: list[str] = []
    for region in difference.regions:
        if not region.left or not region.right:
            which = "removed" if not region.right else "added"
            nodes = plural(region.left_nodes + region.right_nodes, "node")
            lines += labelled(page, "Region", f"{region.left or region.right} {which} ({nodes})")
    return lines


def _next_steps(difference: Difference, rows: DiffRows, words: Sequence[str]) -> list[str]:
    hidden = len(shown_changes(difference)) > rows.count(len(shown_changes(difference)))
    hidden = hidden or bool(difference.fates) or len(difference.rewrites) > _LIST_LIMIT
    if rows.every or not hidden:
        return []
    return ["", f"Every row: aotcli diff {' '.join(words)} --all"]

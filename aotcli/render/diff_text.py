"""A difference for a terminal: what was compared, what saving costs now and why, what the graph did, how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from aotcli.ir.difference import Difference, SideInfo
from aotcli.render.diff_rows import (
    DiffRows,
    ShownChange,
    cause_text,
    confidence_text,
    environment_text,
    fate_text,
    outside_text,
    rewrite_text,
    shown_changes,
    tie_note,
    value_text,
    verdict_text,
)
from aotcli.render.header import SEPARATOR, flow
from aotcli.render.page import Column, Page, plain, table
from aotcli.render.partition_text import labelled
from aotcli.render.saved_table import WIDE
from aotcli.render.units import bytes_text, column_bytes, column_unit, count_text, dtype_text, plural

Row = TypeVar("Row")
_LIST_LIMIT = 6


def render_diff_text(difference: Difference, page: Page, rows: DiffRows, *, quiet: bool = False) -> str:
    """The whole view. `quiet` leaves the next steps out."""
    lines = side_lines(page, difference)
    lines += [""]
    if difference.is_empty:
        lines += [page.style("No difference", "bold", "green") + f": {_same_text(difference)}"]
        return page.finish(lines)
    if rows.saved:
        lines += saved_lines(page, difference, rows)
    if rows.graph:
        lines += ["", *graph_lines(page, difference, rows)]
    for note in difference.unknown:
        lines += labelled(page, "Note", plain(note))
    if not quiet and rows.only is None:
        lines += _next_steps(page, difference, rows)
    return page.finish(lines)


def _same_text(difference: Difference) -> str:
    totals = difference.left.totals
    what = (
        f"the same graph, {bytes_text(totals.saved_bytes)} saved in the same {plural(totals.saved_tensors, 'tensor')}"
    )
    if difference.unknown:
        what = f"{bytes_text(totals.saved_bytes)} saved in the same {plural(totals.saved_tensors, 'tensor')}"
    return what


def side_lines(page: Page, difference: Difference) -> list[str]:
    """The two sides, then what was traced differently."""
    sides = difference.left, difference.right
    width = max(len(plain(side.name)) for side in sides)
    indent = min(width + 3, max(24, page.width // 2))
    lines: list[str] = []
    for sign, side in zip("−+", sides, strict=True):
        name = page.fit(page.text(plain(side.name)), indent - 3)
        head = f"{sign} {page.style(name, 'bold')} " + " " * (indent - 3 - len(name))
        lines += flow(page, [plain(part) for part in _side_parts(side)], indent, head)
    if difference.environment:
        lines += labelled(page, "Environment", plain(environment_text(difference)))
    return lines


def _side_parts(side: SideInfo) -> list[str]:
    parts = [side.model, side.strategy, f"level {side.level}", side.device, f"torch {side.torch.partition('+')[0]}"]
    return [*parts, f"{count_text(side.totals.nodes)} nodes"]


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
    flips = _list(page, "Flips", difference.flips, fate_text, rows, noun="ops")
    moves = _list(page, "Moves", difference.moves, fate_text, rows, noun="ops")
    others = [row for row in difference.fates if not row.is_flip and not row.is_move]
    other_lines = _list(page, "Elsewhere", others, fate_text, rows, noun="ops")
    outside = labelled(page, "Besides", SEPARATOR.join(texts)) if (texts := outside_text(difference)) else []
    below = [*flips, *moves, *other_lines, *outside]
    return [*lines, "", *below] if below else lines


def _table(page: Page, changes: Sequence[ShownChange], rows: DiffRows) -> list[str]:
    kept = rows.count(len(changes))
    shown, rest = changes[:kept], changes[kept:]
    unit, unit_bytes = column_unit(max((abs(each.delta_bytes) for each in shown), default=0))
    wide = page.width >= WIDE
    columns = [
        Column(unit.rjust(8), right=True),
        Column("n", right=True),
        Column("module", minimum=9, style="cyan"),
        Column("what", minimum=10),
        Column("shape", minimum=12),
        Column("dtype"),
        Column("how", minimum=9),
        Column("line", minimum=9 if not wide else 16, style="dim", keep_end=True),
    ]
    body = [
        [
            signed_column(each.delta_bytes, unit_bytes),
            count_text(each.count),
            each.module,
            each.what,
            each.shape,
            dtype_text(each.dtype),
            each.how,
            each.source,
        ]
        for each in shown
    ]
    if rest:
        delta = sum(each.delta_bytes for each in rest)
        count = sum(each.count for each in rest)
        more = [
            signed_column(delta, unit_bytes),
            count_text(count),
            "",
            f"{len(rest)} more",
            "",
            "",
            "--all to list",
            "",
        ]
        body.append(more)
    return table(page, columns, body)


def signed_column(nbytes: int, unit_bytes: int) -> str:
    """A change as a bare number of a column's unit, always with a sign; nothing is ``=``."""
    if not nbytes:
        return "="
    return f"{'+' if nbytes > 0 else '−'}{column_bytes(abs(nbytes), unit_bytes)}"


def _list(
    page: Page, label: str, found: Sequence[Row], text: Callable[[Row], str], rows: DiffRows, *, noun: str
) -> list[str]:
    """Rows one below the other under a label, cut with how many more there are."""
    kept = rows.count(len(found), _LIST_LIMIT)
    lines: list[str] = []
    for number, row in enumerate(found[:kept]):
        lines += labelled(page, label if not number else "", plain(text(row)))
    if len(found) > kept:
        lines += labelled(page, label if not kept else "", f"and {len(found) - kept} more kinds of {noun} (--all)")
    return lines


# The graph.


def graph_lines(page: Page, difference: Difference, rows: DiffRows) -> list[str]:
    """Changed, added and removed ops; then how surely nodes were paired."""
    if difference.unknown:
        return []
    lines = _regions(page, difference)
    if difference.same_graph and not difference.values:
        return [*lines, *labelled(page, "Graph", "the same on both sides, by fingerprint")]
    lines += _list(page, "Values", difference.values, value_text, rows, noun="changes")
    lines += _list(page, "Graph", difference.rewrites, rewrite_text, rows, noun="changes")
    if not difference.values and not difference.rewrites:
        lines += labelled(page, "Graph", "the same ops; what differs is aliasing, or the order of effects")
    return [*lines, *labelled(page, "Matched", confidence_text(difference))]


def _regions(page: Page, difference: Difference) -> list[str]:
    """Regions that only one side has, where there are several."""
    lines: list[str] = []
    for region in difference.regions:
        if not region.left or not region.right:
            which = "removed" if not region.right else "added"
            nodes = plural(region.left_nodes + region.right_nodes, "node")
            lines += labelled(page, "Region", f"{region.left or region.right} {which} ({nodes})")
    return lines


def _next_steps(page: Page, difference: Difference, rows: DiffRows) -> list[str]:
    del page
    hidden = len(shown_changes(difference)) > rows.count(len(shown_changes(difference)))
    more = "aotcli diff A B --all" if hidden else ""
    return ["", f"More: {more}"] if more else []

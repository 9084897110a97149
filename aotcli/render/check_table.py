"""The rows that make a breach, as a table: how much, how many, which module, what, its shape, and the line."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.ir.check import Breach, Contributor, FigureBreach, OpBreach, Quantity
from aotcli.render.check_words import amount_text, line_cell, select_contributors, shape_cell
from aotcli.render.page import Column, Page, table
from aotcli.render.units import column_bytes, column_unit, count_text

_MOST_ROWS = 8
_TITLES = {
    Quantity.SAVED: "saved for the backward",
    Quantity.PEAK: "live at the peak",
    Quantity.RECOMPUTE: "computed again in the backward",
}


def breach_tables(page: Page, breaches: Sequence[Breach], indent: int) -> list[str]:
    """A table for each breach that has rows, each after an empty line; one for each figure, whatever its limits."""
    shown: dict[str, Breach] = {}
    for breach in breaches:
        if breach.contributors:
            shown.setdefault(_title(breach), breach)
    lines: list[str] = []
    margin = " " * indent
    narrow = Page(page.width - indent, page.color, page.unicode)
    for title, breach in shown.items():
        lines.append("")
        if len(shown) > 1 or (isinstance(breach, FigureBreach) and breach.quantity is not Quantity.SAVED):
            lines.append(margin + page.style(title, "bold"))
        lines += [margin + line for line in _table(narrow, breach)]
    return lines


def _title(breach: Breach) -> str:
    if isinstance(breach, FigureBreach):
        return _TITLES[breach.quantity]
    return breach.op if isinstance(breach, OpBreach) else ""


def _table(page: Page, breach: Breach) -> list[str]:
    rows = select_contributors(breach.contributors, _MOST_ROWS)
    figure = breach if isinstance(breach, FigureBreach) else None
    unit, unit_bytes = column_unit(max(abs(row.amount) for row in rows.shown))
    head = "" if figure is None else unit if figure.quantity.in_bytes else "FLOP"
    amounts = [_amount(figure, row.amount, unit_bytes) for row in rows.shown]
    body = [_cells(amount, row) for amount, row in zip(amounts, rows.shown, strict=True)]
    if rows.rest:
        body.append([_amount(figure, rows.rest_amount, unit_bytes), "", "", f"{rows.rest} more", "", ""])
    columns = [
        Column(head, right=True),
        Column("n", right=True),
        Column("module", minimum=8, style="cyan"),
        Column("what", minimum=8),
        Column("shape", minimum=10),
        Column("line", minimum=9, style="dim", keep_end=True),
    ]
    if figure is None:
        return table(page, columns[1:], [row[1:] for row in body])
    return table(page, columns, body)


def _cells(amount: str, row: Contributor) -> list[str]:
    return [amount, count_text(row.count), row.module, row.what, shape_cell(row), line_cell(row)]


def _amount(breach: FigureBreach | None, amount: int, unit_bytes: int) -> str:
    """``+4608.0``; without a sign where the rows make up the figure itself."""
    if breach is None:
        return ""
    sign = ("+" if amount > 0 else "−") if breach.grew and amount else ""
    if breach.quantity.in_bytes:
        return f"{sign}{column_bytes(abs(amount), unit_bytes)}"
    return f"{sign}{amount_text(breach.quantity, abs(amount)).removesuffix('FLOP').rstrip()}"

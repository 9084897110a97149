"""The records of two folders: a table of all, then the details of those that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotcli.ir.difference import Difference
from aotcli.render.diff_github import annotation, render_diff_github
from aotcli.render.diff_markdown import render_diff_markdown
from aotcli.render.diff_rows import DiffRows
from aotcli.render.diff_text import render_diff_text
from aotcli.render.diff_words import bytes_pair, signed_bytes
from aotcli.render.markdown import escape
from aotcli.render.page import Column, Page, plain, table
from aotcli.render.units import change_text, plural

Missing = Sequence[tuple[str, str]]
"""(name of a record, folder that lacks it)."""


def render_folders_text(
    differences: Mapping[str, Difference],
    page: Page,
    rows: DiffRows,
    missing: Missing,
    words: Mapping[str, tuple[str, str]],
) -> str:
    """One line for each record, then those that differ one by one. `words` name the sides for the next steps."""
    changed = {name: each for name, each in differences.items() if rows.differs(each)}
    lines = [page.style(_verdict(differences, changed, missing), "bold"), ""]
    columns = [
        Column("record", minimum=10, style="bold"),
        Column("saved", right=True),
        Column("change", right=True),
        Column("%", right=True),
        Column("graph"),
    ]
    lines += table(page, columns, [_cells(name, each) for name, each in differences.items()])
    lines += [plain(text) for text in _missing_texts(missing)]
    text = page.finish(lines)
    for name, each in changed.items():
        text += page.finish(["", page.style(plain(name), "bold")])
        text += render_diff_text(each, page, rows, words.get(name, ()))
    return text


def _verdict(differences: Mapping[str, Difference], changed: Mapping[str, Difference], missing: Missing) -> str:
    differ = f"{len(changed) or 'none'} {'differs' if len(changed) == 1 else 'differ'}"
    text = f"{plural(len(differences), 'record')} compared, {differ}"
    return f"{text}, {len(missing)} on one side only" if missing else text


def _cells(name: str, difference: Difference) -> list[str]:
    left, right = difference.left.totals.saved_bytes, difference.right.totals.saved_bytes
    change = change_text(right, left)
    graph = "same" if difference.same_graph else "changed"
    return [name, bytes_pair(left, right), signed_bytes(right - left), change, graph]


def _missing_texts(missing: Missing) -> list[str]:
    return [f"not in {folder}: {name}" for name, folder in missing]


def render_folders_markdown(differences: Mapping[str, Difference], rows: DiffRows, missing: Missing) -> str:
    changed = {name: each for name, each in differences.items() if rows.differs(each)}
    lines = [f"**{_verdict(differences, changed, missing)}**", ""]
    lines += ["| record | saved | change | % | graph |", "|---|--:|--:|--:|---|"]
    lines += [f"| {' | '.join(escape(cell) for cell in _cells(name, each))} |" for name, each in differences.items()]
    lines += ["", *(f"- {escape(text)}" for text in _missing_texts(missing)), ""]
    return "\n".join(lines) + "\n".join(render_diff_markdown(each, rows) for each in changed.values())


def render_folders_github(differences: Mapping[str, Difference], rows: DiffRows, missing: Missing) -> str:
    """The annotations of every record that differs; a warning for each that is missing."""
    changed = [each for each in differences.values() if rows.differs(each)]
    texts = [render_diff_github(each, rows) for each in changed]
    return "".join([*texts, *(annotation("warning", name, f"not in {folder}") for name, folder in missing)])

"""A difference as annotations of a GitHub workflow: a notice with the verdict, a warning on each line that saves more.

GitHub shows ten annotations of a step at most. The format is that of its workflow commands.
"""

from __future__ import annotations

from aotcli.ir.difference import Difference
from aotcli.render.diff_rows import DiffRows, shown_changes
from aotcli.render.diff_words import cause_text, rewrite_text, same_text, verdict_text
from aotcli.render.units import bytes_text, plural

MOST_ANNOTATIONS = 10


def render_diff_github(difference: Difference, rows: DiffRows) -> str:
    """One line for each annotation."""
    title = f"{difference.left.name} → {difference.right.name}"
    if difference.is_empty:
        return annotation("notice", title, f"no difference: {same_text(difference)}")
    parts = [f"saved for backward: {verdict_text(difference)}"] if rows.saved else []
    parts += [cause for cause in (cause_text(difference),) if cause and rows.saved]
    if rows.graph:
        parts += [f"graph: {rewrite_text(row)}" for row in difference.rewrites[:3]]
    lines = [annotation("notice", title, "\n".join(parts))]
    changes = [each for each in shown_changes(difference) if each.delta_bytes > 0 and each.source] if rows.saved else []
    for each in changes[: MOST_ANNOTATIONS - 1]:
        file, _, line = each.source.partition(" ")[0].rpartition(":")
        what = f"{plural(each.count, 'tensor')}: {each.module} {each.what} {each.shape} ({each.how})"
        lines.append(annotation("warning", f"saves {bytes_text(each.delta_bytes)} more", what, file=file, line=line))
    return "".join(lines)


def annotation(kind: str, title: str, message: str, *, file: str = "", line: str = "") -> str:
    """One workflow command, with what its syntax takes for itself escaped."""
    fields = [("file", file), ("line", line if file and line.isdigit() else ""), ("title", title)]
    properties = ",".join(f"{key}={_property(value)}" for key, value in fields if value)
    return f"::{kind} {properties}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

"""The page that text is set on: its width, whether it has colour, whether it has more than ASCII; and tables on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DEFAULT_WIDTH = 80
MIN_WIDTH = 60

_ASCII = {
    "×": "x",
    "·": "-",
    "−": "-",
    "→": "->",
    "≈": "~",
    "≥": ">=",
    "≤": "<=",
    "…": "...",
    "λ": "lambda",
    "µ": "u",
    "●": "*",
    "○": "o",
    "—": "-",
}
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
# A number and its unit stay on one line.
_BREAK = re.compile(r" (?!(?:[KMGT]iB|B|[kMGTPE]?FLOP|%)(?![A-Za-z]))")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_BUT_STYLES = re.compile(r"(?!\x1b\[[0-9;]*m)[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Page:
    """Where text goes. `width` in columns; `color` allows ANSI styles; without `unicode`, text is ASCII."""

    width: int = DEFAULT_WIDTH
    color: bool = False
    unicode: bool = True

    def style(self, text: str, *names: str) -> str:
        if not self.color or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[name] for name in names)}m{text}\x1b[0m"

    def text(self, text: str) -> str:
        """`text` as this page can show it: no control characters, and ASCII where the page wants it."""
        text = plain(text)
        return text if self.unicode else to_ascii(text)

    def finish(self, lines: Iterable[str]) -> str:
        """The lines as one text: no trailing blanks, no control characters but our styles, ASCII where the page
        wants it."""
        control = _CONTROL_BUT_STYLES if self.color else _CONTROL
        text = "\n".join(control.sub("?", line).rstrip() for line in lines).rstrip("\n") + "\n"
        return text if self.unicode else to_ascii(text)

    def fit(self, text: str, width: int | None = None) -> str:
        """`text` cut to `width` columns (the page's, where None) with an ellipsis."""
        return fit(text, self.width if width is None else width, self.unicode)

    def wrap(self, text: str, indent: int, first: str = "") -> list[str]:
        """`text` on lines that start `indent` columns in; `first` stands in the first line's indent."""
        room = max(20, self.width - indent)
        lines: list[str] = []
        current = ""
        for word in (self.fit(each, room) for each in _BREAK.split(text)):
            if current and len(current) + 1 + len(word) > room:
                lines.append(current)
                current = word
            else:
                current = f"{current} {word}" if current else word
        lines.append(current)
        head = first.ljust(indent)
        return [head + lines[0]] + [" " * indent + line for line in lines[1:]]


def plain(text: str) -> str:
    """`text` without control characters: names and error texts come from files that others wrote."""
    return _CONTROL.sub("?", text)


def to_ascii(text: str) -> str:
    """`text` in ASCII: the signs that aotcli prints have spellings, anything else becomes ``?``."""
    for sign, spelling in _ASCII.items():
        text = text.replace(sign, spelling)
    return text.encode("ascii", "replace").decode("ascii")


def visible_length(text: str) -> int:
    """Columns that `text` takes, styles left out."""
    return len(_ESCAPE.sub("", text))


def fit(text: str, width: int, unicode: bool = True) -> str:
    """`text`, cut at its end with an ellipsis where it is wider than `width`."""
    if len(text) <= width:
        return text
    ellipsis = "…" if unicode else "..."
    return text[: max(0, width - len(ellipsis))] + ellipsis


def fit_end(text: str, width: int, unicode: bool = True) -> str:
    """`text`, cut at its start with an ellipsis where it is wider than `width`."""
    return text if len(text) <= width else fit(text[::-1], width, unicode)[::-1]


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column. Where the page is too narrow, the widest column above its `minimum` gives way first; text is
    cut at its end, or with `keep_end` (for ``file:line``) at its start."""

    header: str
    right: bool = False
    minimum: int = 0  # 0: never narrower than its content
    style: str = ""
    keep_end: bool = False


def table(page: Page, columns: Sequence[Column], rows: Sequence[Sequence[str]], gap: int = 2) -> list[str]:
    """Lines of a table that fits the page: numbers to the right, text to the left, no line wrapped."""
    rows = [[page.text(cell) for cell in row] for row in rows]
    widths = [
        max([len(column.header), *(len(row[position]) for row in rows)]) for position, column in enumerate(columns)
    ]
    excess = sum(widths) + gap * (len(columns) - 1) - page.width
    while excess > 0:
        shrinkable = [i for i, column in enumerate(columns) if column.minimum and widths[i] > column.minimum]
        if not shrinkable:
            break
        widest = max(shrinkable, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1
    lines = [_line(page, columns, widths, [column.header for column in columns], gap, header=True)]
    lines += [_line(page, columns, widths, row, gap) for row in rows]
    return lines


def _line(
    page: Page, columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str], gap: int, header: bool = False
) -> str:
    parts: list[str] = []
    for column, width, cell in zip(columns, widths, cells, strict=True):
        cut = fit_end if column.keep_end and not header else fit
        text = cut(cell, width, page.unicode)
        blanks = " " * (width - len(text))
        style = "dim" if header else column.style
        styled = page.style(text, style) if style else text
        parts.append(blanks + styled if column.right else styled + blanks)
    return (" " * gap).join(parts).rstrip()


def spread(page: Page, left: str, right: str) -> list[str]:
    """`left` and `right` at the two ends of a line, or on two lines where they do not fit."""
    room = page.width - visible_length(left) - visible_length(right)
    if room >= 2:
        return [left + " " * min(room, 8) + right]
    return [left, right]

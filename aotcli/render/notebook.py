"""What a notebook shows: a picture that cannot disturb the page around it, or a small table. Names are escaped."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape


def picture_html(svg: str, title: str) -> str:
    """The SVG as an image of its own: its styles and ids stay inside."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f'<img alt="{escape(title)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def table_html(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A title and rows of name and value."""
    body = "".join(f"<tr><th style='text-align:left'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f"<div><strong>{escape(title)}</strong><table>{body}</table></div>"

"""What a notebook shows: text, and a picture that cannot disturb the page around it. Names are escaped."""

from __future__ import annotations

import base64
from html import escape


def picture_html(svg: str, title: str) -> str:
    """The SVG as an image of its own: its styles and ids stay inside."""
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f'<img alt="{escape(title)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def text_html(text: str) -> str:
    """Text as it stands on a terminal."""
    return f'<pre style="line-height:1.25">{escape(text)}</pre>'

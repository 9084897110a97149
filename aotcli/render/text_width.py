"""How wide a text is, without a font: the advance widths of Helvetica, which Arial and Liberation Sans share."""

from __future__ import annotations

from functools import lru_cache

# Adobe's font metrics of Helvetica, in thousandths of the font's size, for the characters from space to tilde.
_WIDTHS = (
    (278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278)
    + (556,) * 10
    + (278, 278, 584, 584, 584, 556, 1015)
    + (667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833)
    + (722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611)
    + (278, 278, 278, 469, 556, 333)
    + (556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833)
    + (556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500)
    + (334, 260, 334, 584)
)
_OTHERS = {"×": 584, "·": 278, "−": 584, "≥": 549, "±": 584}
_WIDE = 1000  # arrows, the ellipsis, ideographs: as wide as the font is high
_BOLD = 1.07
_FIRST = ord(" ")


@lru_cache(maxsize=8192)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels that `text` takes at a font size in pixels."""
    total = 0
    for char in text:
        position = ord(char) - _FIRST
        total += _WIDTHS[position] if 0 <= position < len(_WIDTHS) else _OTHERS.get(char, _WIDE)
    return total * size / 1000 * (_BOLD if bold else 1.0)


def fit_width(text: str, size: float, width: float, *, bold: bool = False) -> str:
    """`text`, cut at its end with an ellipsis where it is wider than `width` pixels."""
    if text_width(text, size, bold=bold) <= width:
        return text
    room = width - text_width("…", size, bold=bold)
    used, kept = 0.0, 0
    for char in text:
        used += text_width(char, size, bold=bold)
        if used > room:
            break
        kept += 1
    return text[:kept].rstrip() + "…"

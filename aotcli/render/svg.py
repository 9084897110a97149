"""A drawing as SVG: one text, nothing to fetch, no script. Names of models and modules are escaped everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from aotcli.analysis.scene import Box, BoxKind, Change, LinkKind, Side
from aotcli.render.layout.drawing import DETAIL_SIZE, LABEL_SIZE, Drawing, PlacedBox, PlacedLink, Point
from aotcli.render.page import plain
from aotcli.render.scene_text import box_title
from aotcli.render.svg_legend import legend, legend_size
from aotcli.render.svg_style import (
    CHANGE_COLORS,
    FAINT,
    INK,
    LINK_CLASSES,
    LINK_COLORS,
    PAPER,
    look_of,
    num,
    outline,
    style_sheet,
)
from aotcli.render.text_width import fit_width, text_width

MARK = '<?xml version="1.0" encoding="utf-8"?>\n<!-- written by aotcli -->'
MARGIN = 12.0
LEAST_WIDTH = 480.0
_TITLE_SIZE = 16.0
_LINE = 15.0
_COLUMN_HEAD = 16.0
_CASED = 2.0
_HEAD_ROOM = 60.0
_NOTHING = "nothing to draw: there is no op that computes anything"


@dataclass(frozen=True, slots=True)
class Caption:
    """The header: a title, and lines of totals below it."""

    title: str
    lines: tuple[str, ...] = ()


def render_svg(drawing: Drawing, caption: Caption, *, with_legend: bool = True) -> str:
    """The whole picture: header, graph, legend."""
    lines = _wrapped(caption, max(drawing.width, LEAST_WIDTH))
    head = _TITLE_SIZE + 8 + _LINE * len(lines) + 10 + _COLUMN_HEAD
    width = max(drawing.width, LEAST_WIDTH)
    foot = legend_size(drawing.scene, width) if with_legend else 0.0
    full_width, full_height = width + 2 * MARGIN, head + drawing.height + foot + 2 * MARGIN
    shift = MARGIN + ((width - drawing.width) / 2 if drawing.boxes else 0.0)
    size = f'width="{num(full_width)}" height="{num(full_height)}"'
    view = f'viewBox="0 0 {num(full_width)} {num(full_height)}" role="img"'
    parts = [
        f"{MARK}\n",
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view}>\n',
        f"<title>{escape(caption.title)}</title><style>{style_sheet()}</style>\n",
        _markers(),
        f'<rect width="100%" height="100%" fill="{PAPER}"/>\n',
        _header(caption.title, lines),
        f'<g transform="translate({num(shift)} {num(MARGIN + head)})">\n',
        *_column_heads(drawing),
        *_frames(drawing),
        *_links(drawing),
        *_frame_labels(drawing),
        *_boxes(drawing),
        *([] if drawing.boxes else [f'<text font-size="11">{_NOTHING}</text>\n']),
        "</g>\n",
    ]
    if with_legend:
        parts.append(legend(drawing.scene, MARGIN, MARGIN + head + drawing.height, width))
    parts.append("</svg>\n")
    return "".join(parts)


def escape(text: str) -> str:
    """`text` for XML, in elements and in attributes."""
    text = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").encode("utf-8", "replace").decode("utf-8")


def _wrapped(caption: Caption, width: float) -> list[str]:
    """Header lines broken at the separators where they are wider than the picture."""
    found: list[str] = []
    for line in caption.lines:
        current = ""
        for part in line.split(" · "):
            longer = f"{current} · {part}" if current else part
            if current and text_width(longer, DETAIL_SIZE + 1) > width:
                found.append(current)
                current = part
            else:
                current = longer
        found.append(fit_width(current, DETAIL_SIZE + 1, width))
    return found


def _header(title: str, lines: Sequence[str]) -> str:
    y = MARGIN + _TITLE_SIZE
    large = f'font-size="{num(_TITLE_SIZE)}" font-weight="bold"'
    parts = [f'<text x="{num(MARGIN)}" y="{num(y)}" {large}>{escape(title)}</text>\n']
    for line in lines:
        y += _LINE + 1
        parts.append(f'<text x="{num(MARGIN)}" y="{num(y)}" font-size="11">{escape(line)}</text>\n')
    return "".join(parts)


def _markers() -> str:
    parts = ["<defs>"]
    for kind, name in LINK_CLASSES.items():
        if kind is LinkKind.READ:
            continue
        parts.append(
            f'<marker id="{name}" viewBox="0 0 6 6" refX="5.4" refY="3" markerWidth="6" markerHeight="6"'
            ' markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 .4L6 3L0 5.6Z" fill="{LINK_COLORS[kind]}"/></marker>'
        )
    return "".join([*parts, "</defs>\n"])


def _column_heads(drawing: Drawing) -> list[str]:
    """What the columns are, above the boxes that stand highest."""
    middles: dict[str, float] = {}
    texts = {Side.FORWARD: "forward ↓", Side.SAVED: "saved", Side.BACKWARD: "backward ↑"}
    for side, text in texts.items():
        placed = [p for p, box in zip(drawing.boxes, drawing.scene.boxes, strict=True) if box.side is side]
        if placed:
            middles[text] = sum(p.x + p.width / 2 for p in placed) / len(placed)
    # Graphviz keeps no columns.
    if any(right - left < _HEAD_ROOM for left, right in pairwise(sorted(middles.values()))):
        return []
    style = f'y="-7" font-size="11" text-anchor="middle" fill="{FAINT}"'
    return [f'<text x="{num(middle)}" {style}>{text}</text>\n' for text, middle in middles.items()]


def _frames(drawing: Drawing) -> list[str]:
    return [
        f'<rect class="f" id="{escape(drawing.scene.groups[frame.group].id)}" x="{num(frame.x)}" y="{num(frame.y)}"'
        f' width="{num(frame.width)}" height="{num(frame.height)}" rx="6"/>\n'
        for frame in drawing.frames
    ]


def _frame_labels(drawing: Drawing) -> list[str]:
    """Labels above the links, which they would be hidden by: at the frame's outer corner, where fewest links pass."""
    found: list[str] = []
    for frame in drawing.frames:
        outer_right = drawing.scene.groups[frame.group].side is Side.BACKWARD
        x = frame.x + (frame.width - 6 if outer_right else 6)
        anchor = ' text-anchor="end"' if outer_right else ""
        found.append(f'<text class="ft" x="{num(x)}" y="{num(frame.y + 11)}"{anchor}>{escape(frame.text)}</text>\n')
    return found


def _links(drawing: Drawing) -> list[str]:
    parts: list[str] = []
    # Saved links lie below the others: they are broad.
    ordered = sorted(drawing.links, key=lambda placed: drawing.scene.links[placed.link].kind is not LinkKind.SAVED)
    for placed in ordered:
        parts += _link(drawing, placed)
    return parts


def _link(drawing: Drawing, placed: PlacedLink) -> list[str]:
    link = drawing.scene.links[placed.link]
    name = LINK_CLASSES[link.kind]
    color = CHANGE_COLORS.get(link.change)
    styles = [f"stroke:{color}"] if color else []
    # A saved value's way to its reader ends in an arrow, the way to the value itself does not.
    target = drawing.scene.boxes[drawing.scene.box_index[link.target]]
    into_value = link.kind is LinkKind.SAVED and target.side is Side.SAVED
    styles += ["marker-end:none"] if into_value else []
    style = f' style="{";".join(styles)}"' if styles else ""
    width = f' stroke-width="{num(placed.width)}"' if placed.width != 1.0 else ""
    parts: list[str] = []
    for points in (placed.points, placed.far_points):
        if not points:
            continue
        path = _bezier(points) if placed.bezier else curve(points)
        if placed.width >= _CASED:  # a pale rim keeps broad links apart where they lie side by side
            parts.append(f'<path class="lk" stroke="{PAPER}" stroke-width="{num(placed.width + 2)}" d="{path}"/>\n')
        parts.append(f'<path class="lk {name}"{width}{style} d="{path}"/>\n')
    parts += [
        f'<text class="s" x="{num(stub.x)}" y="{num(stub.y)}">{escape(stub.text)}</text>\n' for stub in placed.stubs
    ]
    return parts


def curve(points: Sequence[Point]) -> str:
    """Path data through knots: straight down, or an S with vertical ends."""
    x, y = points[0]
    parts = [f"M{num(x)} {num(y)}"]
    for nx, ny in points[1:]:
        if abs(nx - x) < 0.05:
            parts.append(f"V{num(ny)}")
        else:
            middle = (y + ny) / 2
            parts.append(f"C{num(x)} {num(middle)} {num(nx)} {num(middle)} {num(nx)} {num(ny)}")
        x, y = nx, ny
    return "".join(parts)


def _bezier(points: Sequence[Point]) -> str:
    (x, y), *rest = points
    return f"M{num(x)} {num(y)}C" + " ".join(f"{num(px)} {num(py)}" for px, py in rest)


def _boxes(drawing: Drawing) -> list[str]:
    return [_box(box, placed) for box, placed in zip(drawing.scene.boxes, drawing.boxes, strict=True)]


def _box(box: Box, placed: PlacedBox) -> str:
    look = look_of(box)
    heavy = " m" if box.kind is BoxKind.MODULE else ""
    shape = outline(look.shape, placed.x, placed.y, placed.width, placed.height)
    faded = ' opacity=".6"' if box.change is Change.REMOVED else ""
    parts = [f'<g id="{escape(box.id)}"{faded}><title>{escape_lines(box_title(box))}</title>']
    if box.change is not Change.SAME:
        ring = outline(look.shape, placed.x - 3, placed.y - 3, placed.width + 6, placed.height + 6)
        parts.append(f'{ring} fill="none" stroke="{CHANGE_COLORS[box.change]}" stroke-width="2"/>')
    parts.append(f'{shape} class="{look.name}{heavy}"/>')
    x = placed.x + placed.width / 2
    if box.kind is BoxKind.SAVED:
        parts.append(_text("d", x, placed.y + 12, placed.lines[0], DETAIL_SIZE, bold=False))
        parts.append(_text("b", x, placed.y + 23, placed.lines[1], DETAIL_SIZE, bold=True))
    elif len(placed.lines) == 1:
        y = placed.y + placed.height / 2 + DETAIL_SIZE * 0.36
        parts.append(_text("d", x, y, placed.lines[0], DETAIL_SIZE, bold=False))
    else:
        parts.append(_text("l", x, placed.y + 12, placed.lines[0], LABEL_SIZE, bold=True))
        parts.append(_text("d", x, placed.y + 23, placed.lines[1], DETAIL_SIZE, bold=False))
    parts.append("</g>\n")
    return "".join(parts)


def _text(name: str, x: float, y: float, text: str, size: float, *, bold: bool) -> str:
    """Text that is as wide as was measured, whatever font the viewer has."""
    if not text:
        return ""
    width = text_width(text, size, bold=bold)
    return (
        f'<text class="{name}" x="{num(x)}" y="{num(y)}" textLength="{num(width)}"'
        f' lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )


def escape_lines(lines: Sequence[str]) -> str:
    """Lines of a tooltip."""
    return "\n".join(escape(line) for line in lines)


__all__ = ["INK", "Caption", "curve", "escape", "render_svg"]

"""How pictures look: colours, outlines and shapes, and the shapes' outlines as SVG path data.

Safe for the colour-blind: hues are those of Okabe and Ito (2008), and whatever a hue says, a shape or an outline says
as well. Forward boxes have round corners, backward ones cut corners, what is recomputed has cut corners and a dashed
outline, saved values are pills, modules have a heavier outline than ops.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.analysis.scene import Box, BoxKind, Change, LinkKind, Side

FONT = "Helvetica,Arial,'Liberation Sans',Lato,'DejaVu Sans',sans-serif"
INK = "#1c2024"
FAINT = "#5b6470"
PAPER = "#ffffff"

BLUE, VERMILION, GREEN, GOLD, PURPLE, GREY = "#0072b2", "#c04f00", "#00795a", "#9a7400", "#8a4a76", "#6b7280"


@dataclass(frozen=True, slots=True)
class Look:
    """A class of boxes: its name in the style sheet, fill, outline, dashes, and its shape."""

    name: str
    fill: str
    outline: str
    shape: str  # round, cut, pill, slant, tab
    dashes: str = ""


FORWARD = Look("fw", "#e6f1f9", BLUE, "round")
BACKWARD = Look("bw", "#fcecdf", VERMILION, "cut")
RECOMPUTED = Look("re", "#e2f5ee", GREEN, "cut", "4 2.5")
SAVED = Look("sv", "#fff6cf", GOLD, "pill")
PARAM = Look("pa", "#f1f2f4", GREY, "tab")
INPUT = Look("in", "#f1f2f4", GREY, "slant")
END = Look("en", "#ffffff", INK, "pill")
LOOKS = (FORWARD, BACKWARD, RECOMPUTED, SAVED, PARAM, INPUT, END)

# Differences between two graphs: a second outline, and a sign before the label.
CHANGE_COLORS = {
    Change.ADDED: GREEN,
    Change.REMOVED: VERMILION,
    Change.CHANGED: PURPLE,
    Change.NOW_SAVED: GOLD,
    Change.NOW_RECOMPUTED: BLUE,
}

LINK_COLORS = {
    LinkKind.FLOW: "#4f86ad",
    LinkKind.GRADIENT: "#cc7a45",
    LinkKind.SAVED: "#d3ae3b",
    LinkKind.READ: "#9aa1ab",
}
LINK_CLASSES = {LinkKind.FLOW: "lf", LinkKind.GRADIENT: "lg", LinkKind.SAVED: "ls", LinkKind.READ: "lr"}
LINK_DASHES = {LinkKind.READ: "1.5 2.5"}


def look_of(box: Box) -> Look:
    """How a box looks."""
    if box.kind is BoxKind.SAVED:
        return SAVED
    if box.kind is BoxKind.PARAM:
        return PARAM
    if box.kind is BoxKind.INPUT:
        return INPUT
    if box.kind in (BoxKind.RESULT, BoxKind.TANGENT):
        return END
    if box.recomputed:
        return RECOMPUTED
    return FORWARD if box.side is Side.FORWARD else BACKWARD


def outline(shape: str, x: float, y: float, width: float, height: float) -> str:
    """A shape as an SVG element without its end: ``<rect …``, ``<path …``."""
    if shape in ("round", "pill"):
        radius = 5 if shape == "round" else min(height / 2, 11)
        return f'<rect x="{num(x)}" y="{num(y)}" width="{num(width)}" height="{num(height)}" rx="{num(radius)}"'
    cut = 5.0
    right, bottom = x + width, y + height
    if shape == "cut":
        corners = [
            (x + cut, y),
            (right - cut, y),
            (right, y + cut),
            (right, bottom - cut),
            (right - cut, bottom),
            (x + cut, bottom),
            (x, bottom - cut),
            (x, y + cut),
        ]
    elif shape == "slant":
        corners = [(x + cut, y), (right, y), (right - cut, bottom), (x, bottom)]
    else:
        corners = [(x, y), (right - 2 * cut, y), (right, y + 2 * cut), (right, bottom), (x, bottom)]
    return f'<path d="M{"L".join(f"{num(px)} {num(py)}" for px, py in corners)}Z"'


def num(value: float) -> str:
    """A coordinate in as few characters as one decimal allows."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def style_sheet() -> str:
    """CSS of all classes."""
    rules = [
        f"text{{font-family:{FONT};fill:{INK}}}",
        ".l{font-size:12px;font-weight:bold;text-anchor:middle}",
        ".d{font-size:10px;text-anchor:middle}",
        ".b{font-size:10px;font-weight:bold;text-anchor:middle}",
        f".s{{font-size:10px;fill:{FAINT}}}",
        ".f{fill:none;stroke:#aab2bd;stroke-width:1}",
        f".ft{{font-size:10px;fill:{FAINT};stroke:{PAPER};stroke-width:3;paint-order:stroke}}",
        ".lk{fill:none}",
        ".m{stroke-width:1.8}",
    ]
    for look in LOOKS:
        dashes = f";stroke-dasharray:{look.dashes}" if look.dashes else ""
        rules.append(f".{look.name}{{fill:{look.fill};stroke:{look.outline}{dashes}}}")
    for kind, name in LINK_CLASSES.items():
        dashes = f";stroke-dasharray:{LINK_DASHES[kind]}" if kind in LINK_DASHES else ""
        end = "" if kind is LinkKind.READ else f";marker-end:url(#{name})"
        rules.append(f".{name}{{stroke:{LINK_COLORS[kind]}{dashes}{end}}}")
    return "".join(rules)

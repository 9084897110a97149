"""The legend of a picture: only what the picture has."""

from __future__ import annotations

from aotcli.analysis.scene import BoxKind, Change, LinkKind, Scene
from aotcli.render.scene_text import CHANGE_SIGNS
from aotcli.render.svg_style import (
    BACKWARD,
    CHANGE_COLORS,
    END,
    FORWARD,
    INPUT,
    LINK_COLORS,
    PARAM,
    RECOMPUTED,
    SAVED,
    Look,
    look_of,
    num,
    outline,
)
from aotcli.render.text_width import text_width

_SIZE = 10.0
_ROW = 18.0
_SAMPLE = 22.0
_TOP = 14.0

_WORDS: tuple[tuple[Look, str], ...] = (
    (FORWARD, "forward"),
    (BACKWARD, "backward"),
    (RECOMPUTED, "recomputed"),
    (SAVED, "saved: shape, bytes"),
    (PARAM, "parameters"),
    (INPUT, "input"),
    (END, "start or end"),
)
_HEAVY = "module: heavy outline"
_LINK_WORDS = {
    LinkKind.FLOW: "forward data",
    LinkKind.GRADIENT: "gradient",
    LinkKind.SAVED: "saved, the broader the more bytes",
    LinkKind.READ: "read",
}

Item = tuple[str, str]


def legend_size(scene: Scene, width: float) -> float:
    """Pixels that the legend takes below the graph."""
    return _TOP + _ROW * len(_rows(_items(scene), width))


def legend(scene: Scene, x: float, y: float, width: float) -> str:
    """The legend with its top left corner at (x, y)."""
    parts: list[str] = []
    for row, items in enumerate(_rows(_items(scene), width)):
        left, middle = x, y + _TOP + _ROW * row + _ROW / 2
        for sample, text in items:
            parts.append(f'<g transform="translate({num(left)} {num(middle)})">{sample}')
            parts.append(f'<text class="s" x="{num(_SAMPLE + 5)}" y="3.5">{text}</text></g>\n')
            left += _width(text)
    return "".join(parts)


def _width(text: str) -> float:
    return _SAMPLE + 5 + text_width(text, _SIZE) + 16


def _rows(items: list[Item], width: float) -> list[list[Item]]:
    rows: list[list[Item]] = []
    left = width + 1
    for item in items:
        if left + _width(item[1]) - 16 > width:
            rows.append([])
            left = 0.0
        rows[-1].append(item)
        left += _width(item[1])
    return rows


def _items(scene: Scene) -> list[Item]:
    looks = {look_of(box).name for box in scene.boxes}
    items = [(_box_sample(look), text) for look, text in _WORDS if look.name in looks]
    if any(box.kind is BoxKind.MODULE for box in scene.boxes):
        items.append((_heavy_sample(), _HEAVY))
    kinds = {link.kind for link in scene.links}
    items += [(_link_sample(kind), text) for kind, text in _LINK_WORDS.items() if kind in kinds]
    changes = {box.change for box in scene.boxes} - {Change.SAME}
    items += [
        (_change_sample(change), f"{CHANGE_SIGNS[change]}{change}") for change in CHANGE_COLORS if change in changes
    ]
    return items


def _box_sample(look: Look) -> str:
    return f'{outline(look.shape, 0, -6, _SAMPLE, 12)} class="{look.name}"/>'


def _heavy_sample() -> str:
    return f'{outline("round", 0, -6, _SAMPLE, 12)} fill="none" stroke="#6b7280" stroke-width="1.8"/>'


def _link_sample(kind: LinkKind) -> str:
    width = 4 if kind is LinkKind.SAVED else 1.2
    dashes = ' stroke-dasharray="1.5 2.5"' if kind is LinkKind.READ else ""
    return f'<path d="M0 0H{num(_SAMPLE)}" stroke="{LINK_COLORS[kind]}" stroke-width="{num(width)}"{dashes}/>'


def _change_sample(change: Change) -> str:
    ring = outline("round", 0, -6, _SAMPLE, 12)
    return f'{ring} fill="none" stroke="{CHANGE_COLORS[change]}" stroke-width="2"/>'

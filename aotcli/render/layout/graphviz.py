"""A drawing from what Graphviz says (`dot -Tjson`) about a graph that aotcli/render/dot.py wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aotcli.analysis.scene import Side
from aotcli.render.layout.drawing import Drawing, Frame, PlacedBox, PlacedLink, Point
from aotcli.render.scene_text import group_text

_POINTS_PER_INCH = 72.0


def drawing_of(own: Drawing, layout: Mapping[str, Any]) -> Drawing:
    """`own` with Graphviz's places. One point of Graphviz's is one pixel; its y runs up.

    Raises KeyError or ValueError where the layout is not of that drawing.
    """
    _, _, width, height = (float(each) for each in layout["bb"].split(","))
    objects: Sequence[Mapping[str, Any]] = layout.get("objects", ())
    places = {each["name"]: each for each in objects if "pos" in each}
    boxes = tuple(_box(old, places[box.id], height) for box, old in zip(own.scene.boxes, own.boxes, strict=True))
    names = {each["_gvid"]: each["name"] for each in objects}
    splines = {(names[each["tail"]], names[each["head"]]): each["pos"] for each in layout.get("edges", ())}
    links = tuple(_link(own, placed, splines, height) for placed in own.links)
    frames = tuple(
        _frame(own, int(each["name"].removeprefix("cluster_")), each["bb"], height)
        for each in objects
        if each["name"].startswith("cluster_") and "bb" in each
    )
    return replace(own, width=width, height=height, boxes=boxes, links=links, frames=frames)


def _box(old: PlacedBox, place: Mapping[str, Any], height: float) -> PlacedBox:
    x, y = (float(each) for each in place["pos"].split(","))
    return replace(old, x=round(x - old.width / 2, 1), y=round(height - y - old.height / 2, 1))


def _link(own: Drawing, placed: PlacedLink, splines: Mapping[tuple[str, str], str], height: float) -> PlacedLink:
    link = own.scene.links[placed.link]
    index = own.scene.box_index
    ends = [own.scene.boxes[index[each]] for each in (link.source, link.target)]
    climbs = all(box.side is Side.BACKWARD for box in ends)
    text = splines[(link.target, link.source) if climbs else (link.source, link.target)]
    points = _spline(text, height)
    return PlacedLink(placed.link, points[::-1] if climbs else points, placed.width, bezier=True)


def _spline(text: str, height: float) -> tuple[Point, ...]:
    """Control points of cubic Bézier curves; the tips of arrows, marked s and e, replace the ends."""
    start: Point | None = None
    end: Point | None = None
    points: list[Point] = []
    for part in text.replace("\\\n", "").split(";")[0].split():
        kind, rest = (part[0], part[2:]) if part[0] in "se" else ("", part)
        x, y = (float(each) for each in rest.split(","))
        point = (round(x, 1), round(height - y, 1))
        if kind == "s":
            start = point
        elif kind == "e":
            end = point
        else:
            points.append(point)
    points[0], points[-1] = start or points[0], end or points[-1]
    return tuple(points)


def _frame(own: Drawing, group: int, bounds: str, height: float) -> Frame:
    left, bottom, right, top = (float(each) for each in bounds.split(","))
    text = group_text(own.scene.groups[group])
    return Frame(group, left, round(height - top, 1), right - left, top - bottom, text)

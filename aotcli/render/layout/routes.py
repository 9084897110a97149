"""Links as curves: out of a box's lower edge, straight through the ranks that they pass, into the next box's upper
edge. Links of one box edge stand side by side, in the order in which they lead away, so that they do not cross there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from aotcli.analysis.scene import Link, LinkKind, Scene
from aotcli.render.layout.drawing import DETAIL_SIZE, PlacedBox, PlacedLink, Point, Stub
from aotcli.render.layout.layered import Layers, Route
from aotcli.render.text_width import text_width

LEAST_STROKE = 1.0
MOST_STROKE = 6.0
_PORT_GAP = 9.0
_CORNER = 7.0


def stroke_width(link: Link, largest: int) -> float:
    """Saved links by the square root of their bytes; others thin."""
    if link.kind is not LinkKind.SAVED or largest <= 0:
        return LEAST_STROKE
    return round(LEAST_STROKE + (MOST_STROKE - LEAST_STROKE) * math.sqrt(link.nbytes / largest), 1)


def place_links(
    scene: Scene,
    layers: Layers,
    boxes: Sequence[PlacedBox],
    centres: Sequence[float],
    widths: Sequence[float],
    tops: Sequence[float],
    row_heights: Sequence[float],
) -> tuple[PlacedLink, ...]:
    """A curve for each link, in the order of the scene's links."""
    largest = max((link.nbytes for link in scene.links if link.kind is LinkKind.SAVED), default=0)
    ports = _ports(layers, boxes, centres)
    stubbed: set[int] = set()
    placed: list[PlacedLink] = []
    for route in layers.routes:
        points = _curve(route.nodes, route, ports, layers, boxes, centres, tops, row_heights)
        far = _curve(route.far, route, ports, layers, boxes, centres, tops, row_heights)
        stubs: list[Stub] = []
        for node in (route.nodes[-1], *route.far[:1]):
            text = layers.stub_text.get(node)
            if text is not None and node not in stubbed:
                stubbed.add(node)
                rank = layers.rank[node]
                width = text_width(text, DETAIL_SIZE)
                y = tops[rank] + row_heights[rank] / 2 + DETAIL_SIZE * 0.35
                stubs.append(Stub(round(centres[node] - width / 2, 1), round(y, 1), round(width, 1), text))
        if route.up:
            points, far = (far[::-1], points[::-1]) if far else (points[::-1], far)
        width = stroke_width(scene.links[route.link], largest)
        placed.append(PlacedLink(route.link, points, width, far, tuple(stubs)))
    return tuple(sorted(placed, key=lambda each: each.link))


def _ports(layers: Layers, boxes: Sequence[PlacedBox], centres: Sequence[float]) -> dict[tuple[int, int, bool], float]:
    """Where each link leaves or enters a box: x by (link, box, whether at the lower edge)."""
    at: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for route in layers.routes:
        for nodes in (route.nodes, route.far):
            if not nodes:
                continue
            if nodes[0] < layers.boxes:
                at.setdefault((nodes[0], True), []).append((centres[nodes[1]], route.link))
            if nodes[-1] < layers.boxes:
                at.setdefault((nodes[-1], False), []).append((centres[nodes[-2]], route.link))
    ports: dict[tuple[int, int, bool], float] = {}
    for (box, lower), ends in at.items():
        ends.sort()
        placed = boxes[box]
        gap = min(_PORT_GAP, (placed.width - 10) / max(1, len(ends)))
        start = placed.x + placed.width / 2 - gap * (len(ends) - 1) / 2
        for position, (_, link) in enumerate(ends):
            ports[link, box, lower] = start + gap * position
    _straighten(layers, boxes, at, ports)
    return ports


def _straighten(
    layers: Layers,
    boxes: Sequence[PlacedBox],
    at: dict[tuple[int, bool], list[tuple[float, int]]],
    ports: dict[tuple[int, int, bool], float],
) -> None:
    """A link that is alone at one of its ends goes straight where the other end lets it."""
    for route in layers.routes:
        top, bottom = route.nodes[0], route.nodes[-1]
        if len(route.nodes) != 2 or bottom >= layers.boxes:
            continue
        upper, lower = (route.link, top, True), (route.link, bottom, False)
        for moving, box, fixed in ((lower, bottom, upper), (upper, top, lower)):
            placed, x = boxes[box], ports[fixed]
            alone = len(at[box, box == top]) == 1
            if alone and placed.x + _CORNER < x < placed.x + placed.width - _CORNER:
                ports[moving] = x
                break


def _curve(
    nodes: Sequence[int],
    route: Route,
    ports: dict[tuple[int, int, bool], float],
    layers: Layers,
    boxes: Sequence[PlacedBox],
    centres: Sequence[float],
    tops: Sequence[float],
    row_heights: Sequence[float],
) -> tuple[Point, ...]:
    """From top to bottom. A passing link is straight for the height of its row."""
    points: list[Point] = []
    for position, node in enumerate(nodes):
        if node < layers.boxes:
            # Straight to the edge of the row: boxes beside this one may be higher.
            box, rank = boxes[node], layers.rank[node]
            if position == 0:
                x = ports[route.link, node, True]
                points += [(x, box.y + box.height), (x, tops[rank] + row_heights[rank])]
            else:
                x = ports[route.link, node, False]
                points += [(x, tops[rank]), (x, box.y)]
            continue
        rank = layers.rank[node]
        top, bottom = tops[rank], tops[rank] + row_heights[rank]
        text = layers.stub_text.get(node)
        if text is not None:
            middle = (top + bottom) / 2
            points.append((centres[node], middle - 8 if position else middle + 8))
            continue
        points += [(centres[node], top), (centres[node], bottom)]
    return tuple((round(x, 1), round(y, 1)) for x, y in _thinned(points))


def _thinned(points: list[Point]) -> list[Point]:
    """Without the knots of a straight line down."""
    kept: list[Point] = []
    for position, point in enumerate(points):
        inner = 0 < position < len(points) - 1
        if inner and abs(points[position - 1][0] - point[0]) < 0.05 and abs(points[position + 1][0] - point[0]) < 0.05:
            continue
        kept.append(point)
    return kept

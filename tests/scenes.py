"""Scenes and drawings for tests, and what must hold for any of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from aotcli.analysis.scene import Scene
from aotcli.analysis.scene_build import SceneOptions, build_scene
from aotcli.ir.joint import JointGraph
from aotcli.ir.partition import Partition
from aotcli.ir.serial import read_trace
from aotcli.ir.trace import Trace
from aotcli.render.layout.drawing import Drawing, PlacedBox
from aotcli.strategies import load_strategy

RECORDS = Path(__file__).parent / "records"
SVG = "{http://www.w3.org/2000/svg}"


@cache
def record(name: str) -> Trace:
    """A sample model as it was captured once, with its full size: gpt (12 layers), unet, attention."""
    return read_trace(RECORDS / f"{name}.aot.json.gz")


@cache
def plan(graph: JointGraph, strategy: str = "mincut") -> Partition:
    return load_strategy(strategy).plan(graph)


def scene_of(graph: JointGraph, strategy: str = "mincut", **options: Any) -> Scene:
    return build_scene(graph, plan(graph, strategy), SceneOptions(**options))


def record_scene(name: str, strategy: str = "mincut", **options: Any) -> Scene:
    trace = record(name)
    return scene_of(trace.regions[0], strategy, **{"loss": trace.loss, **options})


def ids(scene: Scene) -> set[str]:
    return {box.id for box in scene.boxes}


def check_scene(scene: Scene) -> None:
    """Ids are unique, links lead from box to box, groups are there and outer ones come first."""
    assert len(ids(scene)) == len(scene.boxes)
    for link in scene.links:
        assert link.source in ids(scene)
        assert link.target in ids(scene)
        assert link.source != link.target
    seen: set[str] = set()
    for group in scene.groups:
        assert group.parent is None or group.parent in seen
        seen.add(group.id)
    assert {box.group for box in scene.boxes} <= {None, *seen}


def overlap(one: PlacedBox, other: PlacedBox) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def check_drawing(drawing: Drawing) -> None:
    """No two boxes overlap, all lie inside the picture, every link is drawn from its maker to its reader, and no curve
    passes through a box that it does not belong to."""
    for position, box in enumerate(drawing.boxes):
        assert box.x >= -0.1
        assert box.y >= -0.1
        assert box.x + box.width <= drawing.width + 0.2
        assert box.y + box.height <= drawing.height + 0.2
        assert not any(overlap(box, other) for other in drawing.boxes[:position])
    index = drawing.scene.box_index
    assert [each.link for each in drawing.links] == list(range(len(drawing.scene.links)))
    for placed in drawing.links:
        link = drawing.scene.links[placed.link]
        ends = index[link.source], index[link.target]
        first, last = placed.points[0], (placed.far_points or placed.points)[-1]
        for end, (x, y) in zip(ends, (first, last), strict=True):
            box = drawing.boxes[end]
            assert box.x - 0.2 <= x <= box.x + box.width + 0.2
            assert min(abs(y - box.y), abs(y - box.y - box.height)) < 0.2
        for piece in (placed.points, placed.far_points):
            for x, y in sampled(piece):
                for number, box in enumerate(drawing.boxes):
                    inside = box.x + 1 < x < box.x + box.width - 1 and box.y + 1 < y < box.y + box.height - 1
                    assert not inside or number in ends


def sampled(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """Points along the curve through knots, as drawing.py describes it."""
    found: list[tuple[float, float]] = list(points[:1])
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        for step in range(1, 9):
            t = step / 8
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            found.append((a * x1 + b * x1 + c * x2 + d * x2, a * y1 + b * middle + c * middle + d * y2))
    return found


def svg_texts(svg: str) -> list[str]:
    """The texts of a picture; fails where it is no XML."""
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]

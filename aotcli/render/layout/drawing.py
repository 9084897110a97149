"""A scene with coordinates: what the SVG writer, the canvas of the HTML report and the PNG writer draw.

    from aotcli.analysis.scene_build import SceneOptions, build_scene
    from aotcli.render.layout import draw_scene

    scene = build_scene(graph, partition, SceneOptions())
    drawing = draw_scene(scene)

Everything is in pixels at 96 per inch, x to the right, y down, (0, 0) the top left corner of the graph (a header or a
legend is the writer's own). Boxes never overlap. Two texts never overlap.

* `drawing.boxes[i]` belongs to `scene.boxes[i]`: `x, y` is its top left corner; `lines` are its texts, already
  fitted to its width: the first is the label (font size LABEL_SIZE), the second the detail (DETAIL_SIZE).
* `drawing.links` follow true direction, first point at the source. `points` are knots of a smooth curve: between two
  knots draw a cubic Bézier curve whose inner points are (x1, (y1+y2)/2) and (x2, (y1+y2)/2), that is with vertical
  ends; a curve drawn so touches no box but its own two. `width` is the stroke for its bytes.
  `link` is the position in `scene.links`.
* Where a link would be very long it is cut: `points` then hold the piece at its source, `far_points` the piece at its
  target, and `stubs` name the other end ("→ proj", "← fc") at the loose ends.
* Graphviz's links (`bezier`, only with `--engine dot`) hold control points instead: 1 + 3 n points of n cubic curves.
* `drawing.frames` are the open modules: one for each group of the scene whose boxes leave no other box inside; outer
  ones first. `frame.group` is the position in `scene.groups`. To collapse a group in a viewer, draw its frame as one
  box and leave out the boxes, frames and links inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.analysis.scene import Scene

LABEL_SIZE = 12.0
DETAIL_SIZE = 10.0
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box's rectangle and texts."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stub:
    """The loose end of a link that was cut: `text` names the other end, its baseline starts at (x, y)."""

    x: float
    y: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class PlacedLink:
    """A link's curve; see the module's docstring."""

    link: int
    points: tuple[Point, ...]
    width: float
    far_points: tuple[Point, ...] = ()
    stubs: tuple[Stub, ...] = ()
    bezier: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle around an open module's boxes of one side; `text` is its label, set in its top left corner."""

    group: int
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True)
class Drawing:
    """A scene with coordinates."""

    scene: Scene
    width: float
    height: float
    boxes: tuple[PlacedBox, ...]
    links: tuple[PlacedLink, ...]
    frames: tuple[Frame, ...]

"""The graph's picture as columns: boxes, links and frames with their coordinates, in whole pixels.

`views` holds the folded view, then the one of each layer where that is another. A view's boxes stand in rows, whose
tops and bottoms are `rows`; `boxes.row` says in which. `inner` are drawings of boxes that can be opened, shared by
both views. Knots of links are x and y in turn, each as its distance from the knot before;
aotcli/render/layout/drawing.py says what curve they stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aotcli.analysis.report import StepReport
from aotcli.analysis.scene import Box, BoxKind, Change, Group, LinkKind, Scene, Side
from aotcli.analysis.scene_compare import merge_steps
from aotcli.analysis.scene_step import Step, step_of
from aotcli.ir.joint import JointGraph
from aotcli.render.layout.drawing import Drawing, PlacedBox, Point
from aotcli.render.report.nest import Nest, NestBuilder, is_of_other
from aotcli.render.report.strings import Strings
from aotcli.render.scene_text import group_text

_KINDS = tuple(BoxKind)
_SIDES = tuple(Side)
_LINK_KINDS = tuple(LinkKind)
_CHANGES = tuple(Change)


def picture_document(report: StepReport, place: int, strings: Strings) -> dict[str, Any]:
    """The picture of one region."""
    region = report.regions[place]
    builder = NestBuilder(_step(report, place), region.partition, loss=report.trace.loss)
    nests = [builder.folded()]
    if any(box.count > 1 for box in nests[0].scene.boxes):
        nests.append(builder.unfolded())
    return {
        "kinds": [kind.value for kind in _KINDS],
        "sides": [side.value for side in _SIDES],
        "link_kinds": [kind.value for kind in _LINK_KINDS],
        "changes": [change.value for change in _CHANGES],
        "views": [_view(nest, region.graph, strings) for nest in nests],
        "inner": [_inner(drawing, strings) for drawing in builder.inner],
    }


def _step(report: StepReport, place: int) -> Step:
    """What is drawn: the region's step, with the other's where that has a region to compare it with."""
    region, other = report.regions[place], report.other
    mine = (region.graph, region.partition)
    if other is None or other.trace is None or other.plan is None or other.partners[place] < 0:
        return step_of(*mine)
    theirs = other.partners[place]
    return merge_steps(mine, (other.trace.regions[theirs], other.plan.partitions[theirs]))


def _view(nest: Nest, graph: JointGraph, strings: Strings) -> dict[str, Any]:
    drawing = nest.drawing
    rows, row_of = _rows(drawing.boxes)
    return {
        "width": round(drawing.width),
        "height": round(drawing.height),
        "rows": [value for row in rows for value in row],
        "boxes": {
            **_boxes(drawing, strings),
            **_holdings(drawing.scene, graph, strings),
            "row": row_of,
            "inner": list(nest.inner),
            "leaf_counts": [len(leaves) for leaves in nest.leaves],
            **_leaves(nest, graph),
        },
        "links": {
            **_links(drawing),
            **_lists("source_ends", [ends[0] for ends in nest.ends]),
            **_lists("target_ends", [ends[1] for ends in nest.ends]),
        },
        "groups": _groups(drawing.scene.groups, strings),
        "frames": _frames(drawing),
    }


def _leaves(nest: Nest, graph: JointGraph) -> dict[str, list[int]]:
    """The nodes behind each box inside each box."""
    found = [
        [] if is_of_other(box) else _places(names, graph)
        for box, leaves in zip(nest.scene.boxes, nest.leaves, strict=True)
        for names in leaves
    ]
    return {"leaves": [len(nodes) for nodes in found], "leaf_nodes": [node for nodes in found for node in nodes]}


def _places(names: Iterable[str], graph: JointGraph) -> list[int]:
    return [graph.index[name] for name in names if name in graph.index]


def _inner(drawing: Drawing, strings: Strings) -> dict[str, Any]:
    return {
        "width": round(drawing.width),
        "height": round(drawing.height),
        "boxes": _boxes(drawing, strings),
        "links": _links(drawing),
    }


def _boxes(drawing: Drawing, strings: Strings) -> dict[str, Any]:
    """What a box looks like, and where it stands."""
    boxes, placed = drawing.scene.boxes, drawing.boxes
    return {
        "kind": [_KINDS.index(box.kind) for box in boxes],
        "side": [_SIDES.index(box.side) for box in boxes],
        "again": [int(box.recomputed) for box in boxes],
        "change": [_CHANGES.index(box.change) for box in boxes],
        "label": [strings.number(each.lines[0] if each.lines else "") for each in placed],
        "detail": [strings.number(each.lines[1] if len(each.lines) > 1 else None) for each in placed],
        "x": [round(each.x) for each in placed],
        "y": [round(each.y) for each in placed],
        "w": [round(each.width) for each in placed],
        "h": [round(each.height) for each in placed],
    }


def _holdings(scene: Scene, graph: JointGraph, strings: Strings) -> dict[str, Any]:
    """What a box stands for."""
    number = {group.id: place for place, group in enumerate(scene.groups)}
    nodes = [[] if is_of_other(box) else _places(box.all_members, graph) for box in scene.boxes]
    return {
        "title": [strings.number(_title(box)) for box in scene.boxes],
        "type": [strings.number(box.module_type) for box in scene.boxes],
        "group": [number.get(box.group, -1) if box.group is not None else -1 for box in scene.boxes],
        "count": [box.count for box in scene.boxes],
        "layers": [strings.number(box.layers or None) for box in scene.boxes],
        "ops": [box.ops for box in scene.boxes],
        "nbytes": [box.nbytes for box in scene.boxes],
        "flops": [box.flops for box in scene.boxes],
        "was": [strings.number(box.was or None) for box in scene.boxes],
        **_lists("nodes", nodes),
    }


def _title(box: Box) -> str:
    """Which part of the model a box is."""
    where = box.module or "(model)"
    if box.kind is BoxKind.MODULE:
        return where
    return box.label if box.kind in (BoxKind.TANGENT, BoxKind.RESULT, BoxKind.INPUT) else f"{box.label} of {where}"


def _links(drawing: Drawing) -> dict[str, Any]:
    index = drawing.scene.box_index
    links = [drawing.scene.links[each.link] for each in drawing.links]
    return {
        "source": [index[link.source] for link in links],
        "target": [index[link.target] for link in links],
        "kind": [_LINK_KINDS.index(link.kind) for link in links],
        "nbytes": [link.nbytes for link in links],
        "values": [link.values for link in links],
        "change": [_CHANGES.index(link.change) for link in links],
        "width": [round(each.width, 1) for each in drawing.links],
        **_lists("knots", [_flat(each.points) for each in drawing.links]),
        **_lists("far_knots", [_flat(each.far_points) for each in drawing.links]),
    }


def _flat(points: Iterable[Point]) -> list[int]:
    """Each knot as its distance from the one before, the first from the origin: small numbers are short texts."""
    flat: list[int] = []
    last_x = last_y = 0
    for x, y in points:
        flat += (round(x) - last_x, round(y) - last_y)
        last_x, last_y = round(x), round(y)
    return flat


def _lists(name: str, parts: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """A list of lists as two columns."""
    return {name: [value for part in parts for value in part], f"{name}_counts": [len(part) for part in parts]}


def _groups(groups: Sequence[Group], strings: Strings) -> dict[str, Any]:
    number = {group.id: place for place, group in enumerate(groups)}
    return {
        "path": [strings.number(group.path) for group in groups],
        "label": [strings.number(group_text(group)) for group in groups],
        "side": [_SIDES.index(group.side) for group in groups],
        "count": [group.count for group in groups],
        "parent": [number[group.parent] if group.parent is not None else -1 for group in groups],
    }


def _frames(drawing: Drawing) -> dict[str, list[int]]:
    return {
        "group": [frame.group for frame in drawing.frames],
        "x": [round(frame.x) for frame in drawing.frames],
        "y": [round(frame.y) for frame in drawing.frames],
        "w": [round(frame.width) for frame in drawing.frames],
        "h": [round(frame.height) for frame in drawing.frames],
    }


def _rows(boxes: Sequence[PlacedBox]) -> tuple[list[tuple[int, int]], list[int]]:
    """Bands of boxes whose heights overlap, top down, as (top, bottom); and the band of each box."""
    rows: list[list[int]] = []
    row_of = [0] * len(boxes)
    for place in sorted(range(len(boxes)), key=lambda each: boxes[each].y):
        box = boxes[place]
        top, bottom = round(box.y), round(box.y + box.height)
        if rows and top < rows[-1][1]:
            rows[-1][1] = max(rows[-1][1], bottom)
        else:
            rows.append([top, bottom])
        row_of[place] = len(rows) - 1
    return [(top, bottom) for top, bottom in rows], row_of

"""Own layered layout on the hairpin form; aotcli/render/layout/drawing.py says what comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from aotcli.analysis.scene import Box, BoxKind, LinkKind, Scene
from aotcli.render.layout.columns import place_columns
from aotcli.render.layout.drawing import DETAIL_SIZE, LABEL_SIZE, Drawing, PlacedBox
from aotcli.render.layout.frames import Margins, frame_margins, place_frames
from aotcli.render.layout.hairpin import layer
from aotcli.render.layout.layered import Layers
from aotcli.render.layout.ordering import order_ranks
from aotcli.render.layout.routes import place_links, stroke_width
from aotcli.render.scene_text import box_lines
from aotcli.render.text_width import fit_width, text_width

MOST_BOX_WIDTH = 190.0
LEAST_BOX_WIDTH = 44.0
RANK_GAP = 13.0
MOST_EXTRA_GAP = 12.0
FAR_SIDEWARDS = 60.0
PADDING = 6.0
PASSING_WIDTH = 5.0
LINE_HEIGHTS = (16.0, 27.0)


def draw_scene(scene: Scene) -> Drawing:
    """Places for every box, link and group of a scene."""
    usual = usual_dtype(scene)
    texts = [box_texts(box, usual) for box in scene.boxes]
    layers = layer(scene)
    chains = group_chains(scene)
    rows = order_ranks(layers, chains)
    widths, heights = _sizes(layers, texts)
    margins = frame_margins(scene, layers)
    centres = place_columns(layers, rows, widths, chains)
    tops = _tops(rows, heights, margins, _row_gaps(scene, layers, centres))
    left = min((centre - width / 2 for centre, width in zip(centres, widths, strict=True)), default=0.0)
    left -= margins.side
    boxes = tuple(
        PlacedBox(
            round(centres[i] - widths[i] / 2 - left, 1),
            round(_box_top(i, layers, rows, heights, tops), 1),
            round(widths[i], 1),
            round(heights[i], 1),
            texts[i],
        )
        for i in range(len(scene.boxes))
    )
    row_heights = [max((heights[node] for node in row), default=0.0) for row in rows]
    centres = [centre - left for centre in centres]
    links = place_links(scene, layers, boxes, centres, widths, tops, row_heights)
    frames = place_frames(scene, boxes)
    width = max((c + w / 2 for c, w in zip(centres, widths, strict=True)), default=0.0) + margins.side
    height = tops[-1] + row_heights[-1] + margins.below[-1] if rows else 0.0
    return Drawing(scene, round(width, 1), round(height, 1), boxes, links, frames)


def usual_dtype(scene: Scene) -> str:
    """The dtype of most bytes: it goes without saying."""
    counts: Counter[str] = Counter()
    for box in scene.boxes:
        if box.value is not None:
            counts[box.value.dtype] += box.nbytes
    return counts.most_common(1)[0][0] if counts else ""


def group_chains(scene: Scene) -> list[tuple[int, ...]]:
    """For each group, the groups around it and itself, outermost first."""
    number = {group.id: position for position, group in enumerate(scene.groups)}
    chains: list[tuple[int, ...]] = []
    for position, group in enumerate(scene.groups):
        chains.append((*(chains[number[group.parent]] if group.parent is not None else ()), position))
    return chains


def box_texts(box: Box, usual: str) -> tuple[str, ...]:
    """A box's lines, cut where they would make it wider than a box may be."""
    lines = box_lines(box, usual)
    small = box.kind is BoxKind.SAVED
    return tuple(
        fit_width(
            line, DETAIL_SIZE if small or i else LABEL_SIZE, MOST_BOX_WIDTH - 2 * PADDING, bold=not small and not i
        )
        for i, line in enumerate(lines)
    )


def _sizes(layers: Layers, texts: Sequence[tuple[str, ...]]) -> tuple[list[float], list[float]]:
    widths: list[float] = []
    heights: list[float] = []
    for lines in texts:
        single = len(lines) == 1
        sizes = [
            text_width(line, DETAIL_SIZE if i or single else LABEL_SIZE, bold=not i and not single)
            for i, line in enumerate(lines)
        ]
        widths.append(max(LEAST_BOX_WIDTH, max(sizes) + 2 * PADDING))
        heights.append(LINE_HEIGHTS[len(lines) - 1])
    for node in range(layers.boxes, len(layers.rank)):
        text = layers.stub_text.get(node)
        widths.append(PASSING_WIDTH if text is None else text_width(text, DETAIL_SIZE) + 4)
        heights.append(0.0 if text is None else LINE_HEIGHTS[0])
    return widths, heights


def _row_gaps(scene: Scene, layers: Layers, centres: Sequence[float]) -> list[float]:
    """Room below each rank: more where broad links lead sidewards through it."""
    largest = max((link.nbytes for link in scene.links if link.kind is LinkKind.SAVED), default=0)
    load = [0.0] * layers.ranks
    for route in layers.routes:
        width = stroke_width(scene.links[route.link], largest)
        for upper, lower in pairwise(route.nodes):
            if abs(centres[upper] - centres[lower]) > FAR_SIDEWARDS:
                load[layers.rank[upper]] += width
    return [RANK_GAP + min(MOST_EXTRA_GAP, max(0.0, each - 2.0) * 0.6) for each in load]


def _tops(
    rows: Sequence[Sequence[int]], heights: Sequence[float], margins: Margins, gaps: Sequence[float]
) -> list[float]:
    tops: list[float] = []
    y = 0.0
    for rank, row in enumerate(rows):
        y += margins.above[rank]
        tops.append(y)
        y += max((heights[node] for node in row), default=0.0) + margins.below[rank] + gaps[rank]
    return tops


def _box_top(
    box: int, layers: Layers, rows: Sequence[Sequence[int]], heights: Sequence[float], tops: Sequence[float]
) -> float:
    """Boxes stand in the middle of their row."""
    row = layers.rank[box]
    tallest = max(heights[node] for node in rows[row])
    return tops[row] + (tallest - heights[box]) / 2


__all__ = ["Drawing", "box_texts", "draw_scene", "group_chains", "usual_dtype"]

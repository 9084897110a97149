"""How well and how fast pictures are laid out: crossings against Graphviz, and time on large graphs.

Graphviz is given the same boxes, sizes and links, in the hairpin form and with a time limit, as in
`aotcli draw --engine dot`; once with the clusters that aotcli draws as frames and once without. Both drawings are
measured by one yardstick: curves sampled into short lines; crossings of links that share no box; links that pass
through a box that is not their own.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from aotcli import api
from aotcli.analysis.scene import Scene
from aotcli.analysis.scene_build import SceneOptions, build_scene
from aotcli.api.draw_engine import place_with_dot
from aotcli.ir.trace import CaptureSettings, Trace
from aotcli.render.layout import draw_scene
from aotcli.render.layout.drawing import Drawing, Point
from benchmarks.measure import ROOT, Figure, aotcli, elapsed, report, spread

SAMPLES = tuple(sorted(path.stem for path in (ROOT / "sample_models").glob("*.py")))
TIME_LIMIT_S = 30.0
MOST_RATIO = 1.5
MOST_LAYOUT_S = 3.0
MOST_DRAW_S = 5.0
MOST_BYTES = 2e6
LEAST_NODES = 17_000
LARGE = ("hf:benchmarks/llama.json", "--dtype", "bfloat16", "--set", "batch=1", "--set", "seq=4096")
# As a picture shows a step at first, and op by op (equal layers as one).
VIEWS = {"default": SceneOptions(), "op by op": SceneOptions(depth=99, expand=("*", "(model)"))}
ROUNDS = 3


@dataclass(frozen=True)
class Quality:
    """Crossings of links, and links through boxes."""

    crossings: int
    through: int

    def __add__(self, other: Quality) -> Quality:
        return Quality(self.crossings + other.crossings, self.through + other.through)


@dataclass(frozen=True)
class Segment:
    """A short piece of a link, upper end first."""

    link: int
    x1: float
    y1: float
    x2: float
    y2: float


def quality(drawing: Drawing) -> Quality:
    """What a reader trips over in a drawing."""
    segments = sorted(_segments(drawing), key=lambda each: each.y1)
    index = drawing.scene.box_index
    ends = [{index[link.source], index[link.target]} for link in drawing.scene.links]
    crossings = 0
    active: list[Segment] = []
    for each in segments:
        active = [other for other in active if other.y2 >= each.y1]
        crossings += sum(ends[each.link].isdisjoint(ends[other.link]) and _cross(each, other) for other in active)
        active.append(each)
    through: set[tuple[int, int]] = set()
    for number, box in enumerate(drawing.boxes):
        for each in segments:
            if each.y1 > box.y + box.height:
                break
            middle_x, middle_y = (each.x1 + each.x2) / 2, (each.y1 + each.y2) / 2
            inside = box.x + 1 < middle_x < box.x + box.width - 1 and box.y + 1 < middle_y < box.y + box.height - 1
            if inside and number not in ends[each.link]:
                through.add((each.link, number))
    return Quality(crossings, len(through))


def _segments(drawing: Drawing) -> Iterator[Segment]:
    for placed in drawing.links:
        for points in (placed.points, placed.far_points):
            line = list(_bezier(points) if placed.bezier else _knots(points)) if points else []
            for (x1, y1), (x2, y2) in pairwise(line):
                yield Segment(placed.link, x1, y1, x2, y2) if y1 <= y2 else Segment(placed.link, x2, y2, x1, y1)


def _knots(points: tuple[Point, ...]) -> Iterator[Point]:
    """Points of the curve through knots (aotcli/render/layout/drawing.py)."""
    yield points[0]
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        if abs(x1 - x2) < 0.05:
            yield x2, y2
        else:
            yield from _cubic((x1, y1), (x1, middle), (x2, middle), (x2, y2))


def _bezier(points: tuple[Point, ...]) -> Iterator[Point]:
    yield points[0]
    for at in range(0, len(points) - 3, 3):
        yield from _cubic(*points[at : at + 4])


def _cubic(a: Point, b: Point, c: Point, d: Point) -> Iterator[Point]:
    steps = max(2, min(12, math.ceil(math.dist(a, d) / 8)))
    for step in range(1, steps + 1):
        t = step / steps
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        yield (
            sum(w * p[0] for w, p in zip(weights, (a, b, c, d), strict=True)),
            sum(w * p[1] for w, p in zip(weights, (a, b, c, d), strict=True)),
        )


def _cross(one: Segment, other: Segment) -> bool:
    if max(one.x1, one.x2) < min(other.x1, other.x2) or max(other.x1, other.x2) < min(one.x1, one.x2):
        return False

    def side(s: Segment, x: float, y: float) -> float:
        return (s.x2 - s.x1) * (y - s.y1) - (s.y2 - s.y1) * (x - s.x1)

    return (
        side(one, other.x1, other.y1) * side(one, other.x2, other.y2) < 0
        and side(other, one.x1, one.y1) * side(other, one.x2, one.y2) < 0
    )


def compare(scene: Scene) -> tuple[Quality, Quality | None]:
    """Our drawing's quality and Graphviz's; None where it does not finish."""
    own = draw_scene(scene)
    placed, notes = place_with_dot(own, TIME_LIMIT_S)
    return quality(own), None if notes else quality(placed)


def scenes(trace: Trace, view: SceneOptions) -> Iterator[Scene]:
    for graph, partition in zip(trace.regions, api.partition(trace, alternatives=False).plan.partitions, strict=True):
        fits = view if any(node.module for node in graph.nodes) else dataclasses.replace(view, expand=())
        yield build_scene(graph, partition, fits)


def quality_figures() -> list[Figure]:
    traces = {name: api.trace(str(ROOT / "sample_models" / f"{name}.py")) for name in SAMPLES}
    figures: list[Figure] = []
    for view, options in VIEWS.items():
        ours = theirs = free = Quality(0, 0)
        unfinished: list[str] = []
        worst: list[str] = []
        for name, trace in traces.items():
            for scene in scenes(trace, options):
                own, other = compare(scene)
                if other is None:
                    unfinished.append(f"{name} ({len(scene.boxes)} boxes)")
                    continue
                _, loose = compare(_without_groups(scene))
                ours, theirs, free = ours + own, theirs + other, free + (loose or other)
                worst.append(f"{name} {own.crossings}/{other.crossings}")
        kept = ours.crossings <= MOST_RATIO * theirs.crossings and ours.through <= MOST_RATIO * theirs.through
        figures.append(
            Figure(
                f"Crossings and links through boxes at most {MOST_RATIO} × Graphviz's on the same graph, {view}",
                f"{ours.crossings} against {theirs.crossings}; {ours.through} against {theirs.through}",
                kept,
                f"all regions of {len(SAMPLES)} samples together, ours/theirs by sample: {', '.join(worst)}; without"
                f" clusters Graphviz has {free.crossings} and {free.through}; it did not finish in {TIME_LIMIT_S:g} s"
                f" on {', '.join(unfinished) or 'none'}",
            )
        )
    return figures


def _without_groups(scene: Scene) -> Scene:
    boxes = tuple(dataclasses.replace(box, group=None) for box in scene.boxes)
    return Scene(scene.name, boxes, scene.links, (), scene.totals, scene.strategy)


def large_figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        record, picture = Path(folder) / "llama.aot.json.gz", Path(folder) / "llama.svg"
        settings = CaptureSettings(dtype="bfloat16", overrides=(("batch", "1"), ("seq", "4096")))
        trace = api.trace("hf:benchmarks/llama.json", settings=settings)
        api.save(trace, record)
        draws = [aotcli("draw", record, "-o", picture).seconds for _ in range(ROUNDS)]
        size = picture.stat().st_size
    (graph,) = trace.regions
    partition = api.partition(trace, alternatives=False).plan.partitions[0]
    every = SceneOptions(depth=99, expand=("*", "(model)"), fold=False, show=frozenset({"views"}))
    scene = build_scene(graph, partition, every)
    if len(scene.boxes) < LEAST_NODES:
        raise AssertionError(f"the benchmark wants {LEAST_NODES:,} boxes and got {len(scene.boxes):,}")
    layouts = [elapsed(lambda: draw_scene(scene)) for _ in range(ROUNDS)]
    return [
        Figure(
            f"{LEAST_NODES:,} unfolded nodes are laid out under {MOST_LAYOUT_S:g} s",
            f"{median(layouts):.2f} s for {len(scene.boxes):,} boxes and {len(scene.links):,} links",
            median(layouts) < MOST_LAYOUT_S,
            f"{spread(layouts)} of processor time; Llama of 80 layers, every op and view a box of its own",
        ),
        Figure(
            f"A record of {len(graph.nodes):,} nodes is drawn under {MOST_DRAW_S:g} s and {MOST_BYTES / 1e6:g} MB",
            f"{median(draws):.2f} s, {size / 1e3:.0f} kB",
            median(draws) < MOST_DRAW_S and size < MOST_BYTES,
            f"`aotcli draw llama.aot.json.gz -o llama.svg`, {spread(draws)}, {ROUNDS} runs",
        ),
    ]


def main() -> None:
    if shutil.which("dot") is None:
        raise RuntimeError("this benchmark compares with Graphviz: apt install graphviz")
    # Large ones first: the sweeps of the collector over all samples would be timed with them.
    large = large_figures()
    report([*quality_figures(), *large])


if __name__ == "__main__":
    main()

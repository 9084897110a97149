"""The drawing of the report's graph: a base drawing, and inside it the drawings of boxes that can be opened.

The base is laid out as a whole, so that the backward climbs beside the forward. A box of several ops has an inner
drawing, laid out by itself; opening the box puts that drawing, in a frame, in the box's place, and the viewer moves
what lies right of it in its row and what lies below. So any set of open boxes has a picture, and all that has to be
kept is one drawing of each box. Equal layers have equal inner drawings, which are kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aotcli.analysis.scene import Box, BoxKind, Change, Link, Scene, Side
from aotcli.analysis.scene_build import SceneOptions, scene_of_step
from aotcli.analysis.scene_step import Step
from aotcli.ir.partition import Partition
from aotcli.render.layout import draw_scene
from aotcli.render.layout.drawing import Drawing

FOLDED_LIMIT = 250
UNFOLDED_LIMIT = 6000
_EVERY_MODULE = ("*", "(model)")
_ALL = 1 << 20


@dataclass(frozen=True)
class Nest:
    """One view of a region.

    For box i of `drawing`, `inner[i]` is the number of its inner drawing, -1 where it has none, and `leaves[i]` the
    nodes behind each box of that drawing. `ends[k]` are, for link k, the inner boxes at its source and at its target.
    """

    drawing: Drawing
    inner: tuple[int, ...]
    leaves: tuple[tuple[tuple[str, ...], ...], ...]
    ends: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @property
    def scene(self) -> Scene:
        return self.drawing.scene


class NestBuilder:
    """Makes nests that share their inner drawings, `inner`. `step` is the region's, merged with another where two are
    compared; `loss` says that the forward's result is the loss."""

    def __init__(self, step: Step, partition: Partition, *, loss: bool = False) -> None:
        self.inner: list[Drawing] = []
        self._step = step
        self._partition = partition
        self._loss = loss
        self._known: dict[object, int] = {}

    def folded(self) -> Nest:
        """Equal layers as one, with as many levels of modules open as give a picture that can be read."""
        return self._nest(self._scene(fold=True, limit=FOLDED_LIMIT), self._finest(fold=True))

    def unfolded(self) -> Nest:
        """Each layer by itself."""
        return self._nest(self._scene(fold=False, limit=UNFOLDED_LIMIT), self._finest(fold=False))

    def _scene(self, *, fold: bool, limit: int) -> Scene:
        return scene_of_step(self._step, self._partition, SceneOptions(fold=fold, limit=limit, loss=self._loss))

    def _finest(self, *, fold: bool) -> Scene:
        """Every op in a box of its own."""
        modules = _EVERY_MODULE if any(unit.module for unit in self._step.units) else _EVERY_MODULE[1:]
        options = SceneOptions(depth=_ALL, expand=modules, fold=fold, loss=self._loss)
        return scene_of_step(self._step, self._partition, options)

    def _nest(self, base: Scene, finest: Scene) -> Nest:
        holder = _holders(base, finest)
        parts: list[list[int]] = [[] for _ in base.boxes]
        for leaf, box in enumerate(holder):
            if box >= 0:
                parts[box].append(leaf)
        inside = _inner_links(base, finest, holder)
        inner: list[int] = []
        leaves: list[tuple[tuple[str, ...], ...]] = []
        for box, part in zip(base.boxes, parts, strict=True):
            opens = len(part) > 1 and box.kind in (BoxKind.OP, BoxKind.MODULE)
            inner.append(self._drawing(finest, part, inside.get(box.id, [])) if opens else -1)
            leaves.append(tuple(finest.boxes[leaf].all_members for leaf in part) if opens else ())
        return Nest(draw_scene(base), tuple(inner), tuple(leaves), _ends(base, finest, holder, parts))

    def _drawing(self, finest: Scene, part: Sequence[int], links: Sequence[Link]) -> int:
        """The number of the drawing of some boxes of the finest scene; equal ones are drawn once."""
        number = {finest.boxes[leaf].id: str(place) for place, leaf in enumerate(part)}
        boxes = [_anonymous(finest.boxes[leaf], number) for leaf in part]
        inner = [replace(link, source=number[link.source], target=number[link.target]) for link in links]
        key = (*((box.side, box.label, box.kind, box.value) for box in boxes), *inner)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.inner)
            self.inner.append(draw_scene(Scene(finest.name, tuple(boxes), tuple(inner))))
        return found


def _anonymous(box: Box, number: dict[str, str]) -> Box:
    """A box as it stands in an inner drawing: without what differs from layer to layer."""
    value = None if box.value is None else replace(box.value, storage=-1)
    return replace(box, id=number[box.id], group=None, members=(), all_members=(), value=value, nbytes=0)


def is_of_other(box: Box) -> bool:
    """Whether a box stands for nodes of the other step of a comparison, which may have the names of this one's."""
    return box.change is Change.REMOVED or (box.kind is BoxKind.SAVED and box.change is Change.NOW_RECOMPUTED)


def _key(box: Box, name: str) -> tuple[Side, bool, str, bool, str]:
    """What a node is found by: it may run in both halves, and be saved, and a result."""
    kind = "" if box.kind in (BoxKind.OP, BoxKind.MODULE) else box.kind.value
    return box.side, box.recomputed, kind, is_of_other(box), name


def _holders(base: Scene, finest: Scene) -> list[int]:
    """For each box of the finest scene, the box of the base that it is part of; -1 for one that is cut by it."""
    places = {_key(box, name): place for place, box in enumerate(base.boxes) for name in box.all_members}
    found: list[int] = []
    for box in finest.boxes:
        holders = {places.get(_key(box, name), -1) for name in box.all_members}
        found.append(holders.pop() if len(holders) == 1 else -1)
    return found


def _inner_links(base: Scene, finest: Scene, holder: Sequence[int]) -> dict[str, list[Link]]:
    """Links of the finest scene within one box of the base, by that box."""
    index = finest.box_index
    found: dict[str, list[Link]] = {}
    for link in finest.links:
        source, target = holder[index[link.source]], holder[index[link.target]]
        if source == target >= 0:
            found.setdefault(base.boxes[source].id, []).append(link)
    return found


def _ends(
    base: Scene, finest: Scene, holder: Sequence[int], parts: Sequence[Sequence[int]]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """For each link of the base, which inner boxes of its two boxes it stands for."""
    index = finest.box_index
    place = {leaf: number for part in parts for number, leaf in enumerate(part)}
    found: dict[tuple[str, str], tuple[dict[int, None], dict[int, None]]] = {}
    for link in finest.links:
        source, target = index[link.source], index[link.target]
        if holder[source] < 0 or holder[target] < 0 or holder[source] == holder[target]:
            continue
        key = (base.boxes[holder[source]].id, base.boxes[holder[target]].id)
        sources, targets = found.setdefault(key, ({}, {}))
        sources[place[source]] = None
        targets[place[target]] = None
    empty: tuple[dict[int, None], dict[int, None]] = ({}, {})
    return tuple(
        (tuple(pair[0]), tuple(pair[1])) for pair in (found.get((x.source, x.target), empty) for x in base.links)
    )

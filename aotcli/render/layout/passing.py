"""Links through the ranks that they pass: a node on each, or, where that would be too many, two labelled stubs."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.scene import Scene
from aotcli.render.layout.layered import Arc, Layers, Route

MOST_RANKS = 30
_FEWER_RANKS = (20, 12, 8, 5, 3)
_MOST_DUMMIES_PER_BOX = 4


class Router:
    """Lays links from rank to rank, with a node on each rank that they pass."""

    def __init__(self, scene: Scene, layers: Layers) -> None:
        self._scene = scene
        self._layers = layers
        self._parents = self._group_chains()
        self._shared: dict[tuple[int, bool, bool], int] = {}

    def _group_chains(self) -> list[tuple[int, ...]]:
        number = {group.id: position for position, group in enumerate(self._scene.groups)}
        chains: list[tuple[int, ...]] = []
        for position, group in enumerate(self._scene.groups):
            parent = chains[number[group.parent]] if group.parent is not None else ()
            chains.append((*parent, position))
        return chains

    def route(self, arcs: Sequence[Arc]) -> None:
        limit = self._longest(arcs)
        fan: dict[tuple[int, bool], int] = {}
        for arc in arcs:
            if self._span(arc) > limit:
                for end in ((arc.top, True), (arc.bottom, False)):
                    fan[end] = fan.get(end, 0) + 1
        for arc in arcs:
            if self._span(arc) > limit:
                self._cut(arc, fan)
            else:
                group = self._common_group(arc.top, arc.bottom)
                lane = self._lane(arc)
                ranks = range(self._layers.rank[arc.top] + 1, self._layers.rank[arc.bottom])
                passing = [self._node(rank, lane, group) for rank in ranks]
                self._layers.routes.append(Route(arc.link, [arc.top, *passing, arc.bottom], arc.up, arc.weight))

    def _span(self, arc: Arc) -> int:
        return self._layers.rank[arc.bottom] - self._layers.rank[arc.top]

    def _longest(self, arcs: Sequence[Arc]) -> int:
        """How many ranks a link may span: fewer where long links would outnumber the boxes."""
        spans = [self._span(arc) for arc in arcs]
        most = _MOST_DUMMIES_PER_BOX * len(self._scene.boxes) + 200
        for limit in (MOST_RANKS, *_FEWER_RANKS):
            if sum(span - 1 for span in spans if span <= limit) <= most:
                return limit
        return _FEWER_RANKS[-1]

    def _lane(self, arc: Arc) -> int:
        top, bottom = self._layers.lane[arc.top], self._layers.lane[arc.bottom]
        return top if top == bottom else 1

    def _node(self, rank: int, lane: int, group: int) -> int:
        layers = self._layers
        layers.rank.append(rank)
        layers.lane.append(lane)
        layers.group.append(group)
        return len(layers.rank) - 1

    def _common_group(self, a: int, b: int) -> int:
        """The innermost group that holds both boxes."""
        first, second = self._layers.group[a], self._layers.group[b]
        if first == second or first < 0 or second < 0:
            return first if first == second else -1
        same = -1
        for ours, theirs in zip(self._parents[first], self._parents[second], strict=False):
            if ours != theirs:
                break
            same = ours
        return same

    def _cut(self, arc: Arc, fan: dict[tuple[int, bool], int]) -> None:
        upper = self._stub(arc.top, arc.bottom, fan, below=True, leaving=not arc.up)
        lower = self._stub(arc.bottom, arc.top, fan, below=False, leaving=arc.up)
        route = Route(arc.link, [arc.top, upper], arc.up, arc.weight, far=[lower, arc.bottom])
        self._layers.routes.append(route)

    def _stub(self, box: int, other: int, fan: dict[tuple[int, bool], int], *, below: bool, leaving: bool) -> int:
        """The loose end beside `box`. Many that leave one box the same way are one."""
        layers = self._layers
        count = fan[box, below]
        key = (box, below, leaving)
        if count > 1 and key in self._shared:
            return self._shared[key]
        node = self._node(layers.rank[box] + (1 if below else -1), layers.lane[box], layers.group[box])
        name = self._scene.boxes[other].label if count == 1 else f"{count} boxes"
        layers.stub_text[node] = f"→ {name}" if leaving else f"← {name}"
        self._shared[key] = node
        return node

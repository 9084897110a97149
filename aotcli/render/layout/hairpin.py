"""The hairpin: a step as layers, forward running down, backward climbing beside it.

A plain layered layout of a joint graph is as high as forward and backward together, and every saved value spans most of
it. Here links between backward boxes are turned round for ranking, so that the backward's last box stands at the top,
beside the forward's first: saved values become short. The turned graph has no cycle where the scene has none: forward,
saved values, backward from last to first is a topological order. A link that runs against that order (folding can make
one) is turned as well.

Ranks are longest paths from the top; then the forward is pulled down towards its readers, and what hangs off a source
(constants, bias gradients) towards its user. Links over more ranks than `MOST_RANKS` are cut into stubs. Linear in
boxes, links and the ranks that links pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise

from aotcli.analysis.scene import Link, LinkKind, Scene, Side

MOST_RANKS = 30
_FEWER_RANKS = (20, 12, 8, 5, 3)
_MOST_DUMMIES_PER_BOX = 4
_MOST_CHOICE = 40  # ranks looked at for a saved value
_LANES = {Side.FORWARD: 0, Side.SAVED: 1, Side.BACKWARD: 2}
_WEIGHTS = {LinkKind.FLOW: 4, LinkKind.GRADIENT: 4, LinkKind.SAVED: 2, LinkKind.READ: 1}


@dataclass(slots=True)
class Route:
    """A link's way from its upper to its lower end: nodes, one on each rank. `up` says that the link itself runs
    upwards. A cut link has two ways, the second in `far`."""

    link: int
    nodes: list[int]
    up: bool
    weight: int
    far: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class Layers:
    """Nodes on ranks: the scene's boxes first (their numbers are positions in `scene.boxes`), then what stands for the
    links that pass a rank. `lane` is 0 for forward, 1 between, 2 for backward; `group` is the number of the innermost
    group in `scene.groups`, -1 outside all. `stub_text` names the other end of a cut link, by node."""

    rank: list[int]
    lane: list[int]
    group: list[int]
    routes: list[Route]
    stub_text: dict[int, str]
    boxes: int

    @property
    def ranks(self) -> int:
        return max(self.rank, default=-1) + 1


def layer(scene: Scene) -> Layers:
    """Boxes on ranks, and links as chains from rank to rank."""
    order = _down_order(scene)
    arcs = _arcs(scene, order)
    rank = _ranks(scene, [*arcs, *_run_order(scene, order)], order)
    groups = {group.id: number for number, group in enumerate(scene.groups)}
    layers = Layers(
        rank=rank,
        lane=[_LANES[box.side] for box in scene.boxes],
        group=[groups.get(box.group, -1) if box.group is not None else -1 for box in scene.boxes],
        routes=[],
        stub_text={},
        boxes=len(scene.boxes),
    )
    _Router(scene, layers).route(arcs)
    return layers


@dataclass(frozen=True, slots=True)
class _Arc:
    """A link between two boxes, upper end first."""

    link: int
    top: int
    bottom: int
    up: bool
    weight: int


def _down_order(scene: Scene) -> list[int]:
    """Boxes from top to bottom: the forward as it runs, saved values, the backward from its end to its start.

    A box runs before those that read it; of boxes that could be next, the first in the scene is. In a circle of boxes
    the first in the scene comes first.
    """
    index = scene.box_index
    readers: list[list[int]] = [[] for _ in scene.boxes]
    missing = [0] * len(scene.boxes)
    for link in scene.links:
        source, target = index[link.source], index[link.target]
        if scene.boxes[source].side is scene.boxes[target].side:
            readers[source].append(target)
            missing[target] += 1
    order: list[int] = []
    ready = [box for box, count in enumerate(missing) if count == 0]
    heapify(ready)
    done = [False] * len(scene.boxes)
    first = 0
    while len(order) < len(scene.boxes):
        if ready:
            box = heappop(ready)
        else:  # a circle
            while done[first]:
                first += 1
            box = first
        if done[box]:
            continue
        done[box] = True
        order.append(box)
        for reader in readers[box]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heappush(ready, reader)
    sides: dict[Side, list[int]] = {side: [] for side in Side}
    for box in order:
        sides[scene.boxes[box].side].append(box)
    return sides[Side.FORWARD] + sides[Side.SAVED] + sides[Side.BACKWARD][::-1]


def _arcs(scene: Scene, order: Sequence[int]) -> list[_Arc]:
    place = {box: position for position, box in enumerate(order)}
    index = scene.box_index
    arcs: list[_Arc] = []
    for number, link in enumerate(scene.links):
        source, target = index[link.source], index[link.target]
        up = place[source] > place[target]
        top, bottom = (target, source) if up else (source, target)
        arcs.append(_Arc(number, top, bottom, up, _WEIGHTS[link.kind]))
    return arcs


def _run_order(scene: Scene, order: Sequence[int]) -> list[_Arc]:
    """Arcs that are not drawn, where nothing but saved values is: from each box of a side to the next, so that the
    picture is a hairpin all the same."""
    if any(link.kind is not LinkKind.SAVED for link in scene.links):
        return []
    sides = [[box for box in order if scene.boxes[box].side is side] for side in (Side.FORWARD, Side.BACKWARD)]
    return [_Arc(-1, top, bottom, False, 1) for boxes in sides for top, bottom in pairwise(boxes)]


def _ranks(scene: Scene, arcs: Sequence[_Arc], order: Sequence[int]) -> list[int]:
    above: list[list[_Arc]] = [[] for _ in scene.boxes]
    below: list[list[_Arc]] = [[] for _ in scene.boxes]
    for arc in arcs:
        above[arc.bottom].append(arc)
        below[arc.top].append(arc)
    rank = [0] * len(scene.boxes)
    for box in order:
        rank[box] = max((rank[arc.top] + 1 for arc in above[box]), default=0)
    _pull_forward(scene, below, above, order, rank)
    for _ in range(2):
        for box in reversed(order):
            if _pull(below[box]) > _pull(above[box]):
                rank[box] = max(rank[box], min(rank[arc.bottom] for arc in below[box]) - 1)
        for box in order:
            if above[box] and _pull(above[box]) > _pull(below[box]):
                rank[box] = max(rank[arc.top] for arc in above[box]) + 1
    _spread_saved(scene, below, above, rank)
    used = {old: new for new, old in enumerate(sorted(set(rank)))}
    return [used[each] for each in rank]


def _spread_saved(scene: Scene, below: list[list[_Arc]], above: list[list[_Arc]], rank: list[int]) -> None:
    """Saved values over the ranks between maker and readers, few on one: the column between is as wide as its fullest
    rank. Those with the least choice first; of equally full ranks the one nearest the readers."""
    choices: list[tuple[int, int, int, int]] = []
    for box, node in enumerate(scene.boxes):
        if node.side is Side.SAVED:
            first = max((rank[arc.top] + 1 for arc in above[box]), default=rank[box])
            last = min((rank[arc.bottom] - 1 for arc in below[box]), default=rank[box])
            choices.append((last - first, box, first, max(first, last)))
    load: dict[int, int] = {}
    for _, box, first, last in sorted(choices):
        last = min(last, first + _MOST_CHOICE)
        best = min(range(last, first - 1, -1), key=lambda each: load.get(each, 0))
        rank[box] = best
        load[best] = load.get(best, 0) + 1


def _pull(arcs: Sequence[_Arc]) -> int:
    return sum(arc.weight for arc in arcs)


def _pull_forward(
    scene: Scene, below: list[list[_Arc]], above: list[list[_Arc]], order: Sequence[int], rank: list[int]
) -> None:
    """Forward boxes and saved values as low as their readers in the backward allow; what leads to none of these stays
    just below what it reads."""
    bound: list[int | None] = [None] * len(rank)
    for box in reversed(order):
        if scene.boxes[box].side is Side.BACKWARD:
            bound[box] = rank[box]
        else:
            limits = [limit - 1 for arc in below[box] if (limit := bound[arc.bottom]) is not None]
            bound[box] = min(limits) if limits else None
    for box in order:
        limit = bound[box]
        if scene.boxes[box].side is not Side.BACKWARD:
            lowest = max((rank[arc.top] + 1 for arc in above[box]), default=0)
            rank[box] = lowest if limit is None else max(lowest, limit)


class _Router:
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

    def route(self, arcs: Sequence[_Arc]) -> None:
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

    def _span(self, arc: _Arc) -> int:
        return self._layers.rank[arc.bottom] - self._layers.rank[arc.top]

    def _longest(self, arcs: Sequence[_Arc]) -> int:
        """How many ranks a link may span: fewer where long links would outnumber the boxes."""
        spans = [self._span(arc) for arc in arcs]
        most = _MOST_DUMMIES_PER_BOX * len(self._scene.boxes) + 200
        for limit in (MOST_RANKS, *_FEWER_RANKS):
            if sum(span - 1 for span in spans if span <= limit) <= most:
                return limit
        return _FEWER_RANKS[-1]

    def _lane(self, arc: _Arc) -> int:
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

    def _cut(self, arc: _Arc, fan: dict[tuple[int, bool], int]) -> None:
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


def link_ends(scene: Scene, link: Link) -> tuple[int, int]:
    """Positions of a link's boxes."""
    return scene.box_index[link.source], scene.box_index[link.target]

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
from heapq import heapify, heappop, heappush
from itertools import pairwise

from aotcli.analysis.scene import Link, LinkKind, Scene, Side
from aotcli.render.layout.layered import Arc, Layers
from aotcli.render.layout.passing import Router

_MOST_CHOICE = 40  # ranks looked at for a saved value
_LANES = {Side.FORWARD: 0, Side.SAVED: 1, Side.BACKWARD: 2}
_WEIGHTS = {LinkKind.FLOW: 4, LinkKind.GRADIENT: 4, LinkKind.SAVED: 2, LinkKind.READ: 1}


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
    Router(scene, layers).route(arcs)
    return layers


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


def _arcs(scene: Scene, order: Sequence[int]) -> list[Arc]:
    place = {box: position for position, box in enumerate(order)}
    index = scene.box_index
    arcs: list[Arc] = []
    for number, link in enumerate(scene.links):
        source, target = index[link.source], index[link.target]
        up = place[source] > place[target]
        top, bottom = (target, source) if up else (source, target)
        arcs.append(Arc(number, top, bottom, up, _WEIGHTS[link.kind]))
    return arcs


def _run_order(scene: Scene, order: Sequence[int]) -> list[Arc]:
    """Arcs that are not drawn, where nothing but saved values is: from each box of a side to the next, so that the
    picture is a hairpin all the same."""
    if any(link.kind is not LinkKind.SAVED for link in scene.links):
        return []
    sides = [[box for box in order if scene.boxes[box].side is side] for side in (Side.FORWARD, Side.BACKWARD)]
    return [Arc(-1, top, bottom, False, 1) for boxes in sides for top, bottom in pairwise(boxes)]


def _ranks(scene: Scene, arcs: Sequence[Arc], order: Sequence[int]) -> list[int]:
    above: list[list[Arc]] = [[] for _ in scene.boxes]
    below: list[list[Arc]] = [[] for _ in scene.boxes]
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


def _spread_saved(scene: Scene, below: list[list[Arc]], above: list[list[Arc]], rank: list[int]) -> None:
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


def _pull(arcs: Sequence[Arc]) -> int:
    return sum(arc.weight for arc in arcs)


def _pull_forward(
    scene: Scene, below: list[list[Arc]], above: list[list[Arc]], order: Sequence[int], rank: list[int]
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


def link_ends(scene: Scene, link: Link) -> tuple[int, int]:
    """Positions of a link's boxes."""
    return scene.box_index[link.source], scene.box_index[link.target]

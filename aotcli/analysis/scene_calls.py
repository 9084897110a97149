"""Modules that are called more than once: one box for each call, where one box for all would close a circle.

A shared pooling layer between the levels of a U-Net reads what it fed: drawn as one box, level 1 leads to level 2 and
back. Such circles are found as strongly connected boxes (Tarjan, 1972); within them an op of a module belongs to the
next call when it reads, by way of other modules, what an earlier call made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotcli.analysis.scene import BoxKind, Side
from aotcli.analysis.scene_groups import Layers, carried
from aotcli.analysis.scene_open import Openness, Place
from aotcli.analysis.scene_step import Step

_MOST_WORK = 2_000_000

_Call = tuple[int, int]
"""A module's box, by number, in one of equal layers, by number."""


def split_calls(step: Step, openness: Openness, places: Sequence[Place]) -> list[Place]:
    """The places, those of modules in circles told apart by call."""
    number = {place: position for position, place in enumerate(dict.fromkeys(places))}
    box = [number[place] for place in places]
    circles = _circles(step, box, len(number))
    modules = {position for place, position in number.items() if place.kind is BoxKind.MODULE}
    if not circles & modules:
        return list(places)
    layers = _LayerNumbers(openness)
    layer = [layers.of(unit.module) for unit in step.units]
    calls: dict[int, int] = {}
    sources: list[list[int]] = [[] for _ in step.units]
    for source, reader in step.flows:
        if box[source] in circles and box[reader] in circles:
            sources[reader].append(source)
    budget = _MOST_WORK
    made: list[dict[_Call, int]] = [{} for _ in step.units]
    for position, own in enumerate(zip(box, layer, strict=True)):
        if own[0] not in circles:
            continue
        latest: dict[_Call, int] = {}
        for source in sources[position]:
            budget -= len(made[source]) + 1
            for call, count in made[source].items():
                if count > latest.get(call, -1) and not layers.carried(call[1], own[1]):
                    latest[call] = count
        if budget < 0:
            return list(places)
        if own[0] in modules:
            inside = [made[s].get(own, 0) for s in sources[position] if box[s] == own[0]]
            outside = [made[s][own] + 1 for s in sources[position] if box[s] != own[0] and own in made[s]]
            latest[own] = calls[position] = max([*inside, *outside], default=0)
        made[position] = latest
    return _numbered(places, calls)


class _LayerNumbers:
    """Numbers of the layers that modules are in, and which of them are different layers of one run."""

    def __init__(self, openness: Openness) -> None:
        self._of: dict[str, int] = {}
        self._layers: dict[Layers, int] = {}
        self._carried: dict[tuple[int, int], bool] = {}
        for path, shown in openness.places.items():
            self._of[path] = self._layers.setdefault(shown.layers, len(self._layers))
        self._list = list(self._layers)

    def of(self, path: str) -> int:
        return self._of[path]

    def carried(self, source: int, target: int) -> bool:
        """Whether a flow between these leaves one of some equal layers for another."""
        if source == target:
            return False
        known = self._carried.get((source, target))
        if known is None:
            known = self._carried[source, target] = carried(self._list[source], self._list[target])
        return known


def _numbered(places: Sequence[Place], calls: Mapping[int, int]) -> list[Place]:
    """Places with the number of their call, the forward's first call being 1: the backward runs the last one first."""
    last: dict[Place, int] = {}
    for position, call in calls.items():
        last[places[position]] = max(last.get(places[position], 0), call)
    found = list(places)
    for position, call in calls.items():
        place = places[position]
        if last[place]:
            number = last[place] - call if place.side is Side.BACKWARD and not place.recomputed else call
            found[position] = replace(place, part=("call", number + 1)) if number else place
    return found


def _circles(step: Step, box: Sequence[int], count: int) -> set[int]:
    """Boxes that lie on a circle of boxes."""
    following: list[dict[int, None]] = [{} for _ in range(count)]
    for source, reader in step.flows:
        if box[source] != box[reader]:
            following[box[source]][box[reader]] = None
    group = _strong([list(each) for each in following])
    sizes = Counter(group)
    return {position for position in range(count) if sizes[group[position]] > 1}


def _strong(following: Sequence[Sequence[int]]) -> list[int]:
    """The strongly connected component of each node (Tarjan's algorithm, without recursion)."""
    count = len(following)
    index, low, group = [-1] * count, [0] * count, [-1] * count
    stack: list[int] = []
    time = 0
    for root in range(count):
        if index[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = time
                time += 1
                stack.append(node)
            for position in range(at, len(following[node])):
                other = following[node][position]
                if index[other] < 0:
                    work += [(node, position + 1), (other, 0)]
                    break
                if group[other] < 0:
                    low[node] = min(low[node], index[other])
            else:
                if low[node] == index[node]:
                    while True:
                        member = stack.pop()
                        group[member] = node
                        if member == node:
                            break
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
    return group

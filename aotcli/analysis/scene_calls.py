"""Modules that are called more than once: one box for each call, where one box for all would close a circle.

A shared pooling layer between the levels of a U-Net reads what it fed: drawn as one box, level 1 leads to level 2 and
back. Such circles are found as strongly connected boxes (Tarjan, 1972); within them an op of a module belongs to the
next call when it reads, by way of other modules, what an earlier call made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotcli.analysis.hierarchy import Shown
from aotcli.analysis.scene import BoxKind, Side
from aotcli.analysis.scene_open import Openness, Place
from aotcli.analysis.scene_step import Step

_MOST_WORK = 2_000_000

_Call = tuple[Place, tuple[tuple[str, str], ...]]


def split_calls(step: Step, openness: Openness, places: Sequence[Place]) -> list[Place]:
    """The places, those of modules in circles told apart by call."""
    circles = _circles(step, places)
    if not circles:
        return list(places)
    layers = {path: shown.layers for path, shown in openness.places.items()}
    calls: dict[int, int] = {}
    sources: list[list[int]] = [[] for _ in step.units]
    for source, reader in step.flows:
        sources[reader].append(source)
    budget = _MOST_WORK
    made: list[dict[_Call, int]] = [{} for _ in step.units]
    for position, unit in enumerate(step.units):
        place = places[position]
        if place not in circles:
            continue
        latest: dict[_Call, int] = {}
        for source in sources[position]:
            for call, number in made[source].items():
                if number > latest.get(call, -1):
                    latest[call] = number
            budget -= len(made[source]) + 1
        if budget < 0:
            return list(places)
        if place.kind is BoxKind.MODULE:
            own: _Call = (place, layers.get(unit.module, Shown("").layers))
            inside = [made[s].get(own, 0) for s in sources[position] if places[s] == place]
            outside = [made[s][own] + 1 for s in sources[position] if places[s] != place and own in made[s]]
            number = max([*inside, *outside], default=0)
            latest[own] = number
            calls[position] = number
        made[position] = latest
    return _numbered(places, calls)


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
            found[position] = replace(place, part=("call", number + 1))
    return found


def _circles(step: Step, places: Sequence[Place]) -> set[Place]:
    """Boxes that lie on a circle of boxes."""
    number = {place: position for position, place in enumerate(dict.fromkeys(places))}
    following: list[dict[int, None]] = [{} for _ in number]
    for source, reader in step.flows:
        ours, theirs = number[places[source]], number[places[reader]]
        if ours != theirs:
            following[ours][theirs] = None
    group = _strong([list(each) for each in following])
    sizes: dict[int, int] = {}
    for each in group:
        sizes[each] = sizes.get(each, 0) + 1
    return {place for place, position in number.items() if sizes[group[position]] > 1}


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

"""Ties: two plans of equal graphs that save, in one place, different tensors of the same size.

A minimum cut is often not the only one. Where one plan saves x and another y, of as many bytes and a few ops apart,
neither is better, and a reader need not look for a reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.diff_saved import TensorPair
from aotcli.ir.difference import Cause
from aotcli.ir.joint import JointGraph, NodeKind

_MOST_HOPS = 8
_MOST_VISITED = 200


def find_ties(
    left: JointGraph, right: JointGraph, pairs: Sequence[TensorPair], causes: Sequence[Cause]
) -> frozenset[int]:
    """Positions in `pairs` of what is saved on one side only and balanced by one that is saved on the other only."""
    swapped = [
        number
        for number, (pair, cause) in enumerate(zip(pairs, causes, strict=True))
        if cause is Cause.DECISION and pair.delta_bytes
    ]
    gains = {number for number in swapped if pairs[number].delta_bytes > 0}
    losses = {number for number in swapped if pairs[number].delta_bytes < 0}
    found: list[tuple[int, list[tuple[int, int]], int, int]] = []
    for number in swapped:
        others = losses if number in gains else gains
        alike = {n for n in others if pairs[n].delta_bytes == -pairs[number].delta_bytes}
        for other, hops in _near(left, right, pairs, number, alike):
            found.append((hops, sorted((pairs[number].place, pairs[other].place)), number, other))
    ties: set[int] = set()
    for _, _, number, other in sorted(found):
        if number not in ties and other not in ties:
            ties |= {number, other}
    return frozenset(ties)


def _near(
    left: JointGraph, right: JointGraph, pairs: Sequence[TensorPair], start: int, wanted: set[int]
) -> list[tuple[int, int]]:
    """Those of `wanted` that are few ops away from `start` in either graph, with the number of ops."""
    if not wanted:
        return []
    found: dict[int, int] = {}
    for graph, side in ((left, "left"), (right, "right")):
        places = {_position(pairs[number], side): number for number in wanted}
        distances = _distances(graph, _position(pairs[start], side))
        for place, number in places.items():
            if place in distances:
                found[number] = min(found.get(number, _MOST_HOPS), distances[place])
    return list(found.items())


def _position(pair: TensorPair, side: str) -> int:
    chosen = pair.left if side == "left" else pair.right
    return -1 if chosen is None else chosen.position


def _distances(graph: JointGraph, start: int) -> dict[int, int]:
    """Ops within a few steps of `start`, along and against the flow; never through placeholders."""
    distances = {start: 0}
    frontier = [start]
    while frontier and len(distances) < _MOST_VISITED and distances[frontier[0]] < _MOST_HOPS:
        following: list[int] = []
        for position in frontier:
            for near in (*graph.inputs_of[position], *graph.users_of[position]):
                if near not in distances and graph.nodes[near].kind is NodeKind.OP:
                    distances[near] = distances[position] + 1
                    following.append(near)
        frontier = following
    return distances

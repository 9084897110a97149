"""Three columns, forward, saved values and backward, beside each other; within each, groups clear of other boxes.

Each column is placed by itself (coordinates.py), from the links inside it: so its main chain stands upright. Then boxes
that share ranks with a group but do not belong to it are moved out of the group's rectangle, outwards, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from aotcli.render.layout.coordinates import place_nodes
from aotcli.render.layout.layered import Layers

NODE_GAP = 12.0
PASSING_GAP = 4.0
LANE_GAP = 18.0
GROUP_GAP = 6.0
_CLEARING_ROUNDS = 3
_MOST_CLEARED = 1500
_MOST_CLEARING = 300.0  # pixels: what would have to move further stays
_FAR = 1e9
_WEIGHTS = (1.0, 2.0, 8.0)

Chains = Sequence[tuple[int, ...]]


def place_columns(
    layers: Layers, rows: Sequence[Sequence[int]], widths: Sequence[float], chains: Chains
) -> list[float]:
    """The centre of each node; the leftmost edge of all is at 0."""
    centres = [0.0] * len(layers.rank)
    right = [-_FAR] * len(rows)
    above, below = _neighbours(layers)
    home = [_home(layers, node) for node in range(len(layers.rank))]
    for lane in (0, 1, 2):
        column = [[node for node in row if layers.lane[node] == lane] for row in rows]
        if not any(column):
            continue
        _place_column(column, layers, widths, chains, above, below, centres, home)
        starts, ends = _contour(column, layers, widths, chains, centres)
        shift = max(end - start for end, start in zip(right, starts, strict=True)) + LANE_GAP
        shift = shift if shift > -_FAR / 2 else 0.0
        for row in column:
            for node in row:
                centres[node] += shift
        right = [max(end, own + shift) for end, own in zip(right, ends, strict=True)]
    left = min((centre - width / 2 for centre, width in zip(centres, widths, strict=True)), default=0.0)
    return [centre - left for centre in centres]


def _contour(
    column: list[list[int]], layers: Layers, widths: Sequence[float], chains: Chains, centres: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Where a column begins and ends on each rank, frames of groups included."""
    starts = [min((centres[n] - widths[n] / 2 for n in row), default=_FAR) for row in column]
    ends = [max((centres[n] + widths[n] / 2 for n in row), default=-_FAR) for row in column]
    sides: dict[int, tuple[float, float]] = {}
    for row in column:
        for node in row:
            group = layers.group[node]
            if node < layers.boxes and group >= 0:
                left, right = centres[node] - widths[node] / 2, centres[node] + widths[node] / 2
                low, high = sides.get(group, (left, right))
                sides[group] = min(low, left), max(high, right)
    for group in sorted(sides, key=lambda each: -len(chains[each])):  # inner ones first
        left, right = sides[group]
        for outer in chains[group][:-1]:
            low, high = sides.get(outer, (left, right))
            sides[outer] = min(left, low), max(right, high)
    for which, (first, last) in _group_spans(column, layers, chains):
        left, right = sides[which][0] - GROUP_GAP, sides[which][1] + GROUP_GAP
        for rank in range(first, last + 1):
            starts[rank], ends[rank] = min(starts[rank], left), max(ends[rank], right)
    return starts, ends


def _place_column(
    column: list[list[int]],
    layers: Layers,
    widths: Sequence[float],
    chains: Chains,
    above: list[list[tuple[int, float]]],
    below: list[list[tuple[int, float]]],
    centres: list[float],
    home: Sequence[float],
) -> None:
    gaps = [_gaps(row, layers, widths, chains) for row in column]
    place_nodes(column, gaps, above, below, centres, home)
    # In large graphs groups run through each other: there is nothing to gain.
    spans = _group_spans(column, layers, chains) if len(layers.rank) <= _MOST_CLEARED else []
    for _ in range(_CLEARING_ROUNDS if spans else 0):
        moved = [_clear(which, span, column, layers, widths, chains, centres) for which, span in spans]
        if not any(moved):
            break


def _home(layers: Layers, node: int) -> float:
    """How strongly a node is drawn to the middle of its column: saved values hold on to little else."""
    if layers.lane[node] != 1:
        return 0.0
    return 6.0 if node < layers.boxes else 0.5


def _gaps(row: Sequence[int], layers: Layers, widths: Sequence[float], chains: Chains) -> list[float]:
    """How far the centre of each node is from the one before, at least."""
    found = [0.0] if row else []
    for left, right in pairwise(row):
        gap = NODE_GAP if left < layers.boxes or right < layers.boxes else PASSING_GAP
        ours, theirs = layers.group[left], layers.group[right]
        if ours != theirs:
            first = set(chains[ours]) if ours >= 0 else set[int]()
            second = set(chains[theirs]) if theirs >= 0 else set[int]()
            gap += GROUP_GAP * len(first ^ second)
        found.append((widths[left] + widths[right]) / 2 + gap)
    return found


def _neighbours(layers: Layers) -> tuple[list[list[tuple[int, float]]], list[list[tuple[int, float]]]]:
    """Who a node is linked to in its own column, on the rank above and on the rank below, and how strongly."""
    above: list[list[tuple[int, float]]] = [[] for _ in layers.rank]
    below: list[list[tuple[int, float]]] = [[] for _ in layers.rank]
    for route in layers.routes:
        for nodes in (route.nodes, route.far):
            for upper, lower in pairwise(nodes):
                if layers.lane[upper] == layers.lane[lower]:
                    passing = (upper >= layers.boxes) + (lower >= layers.boxes)
                    weight = route.weight * _WEIGHTS[passing]
                    below[upper].append((lower, weight))
                    above[lower].append((upper, weight))
    return above, below


def _group_spans(column: list[list[int]], layers: Layers, chains: Chains) -> list[tuple[int, tuple[int, int]]]:
    """First and last rank of each group with boxes in this column, innermost groups first."""
    spans: dict[int, tuple[int, int]] = {}
    for rank, row in enumerate(column):
        for node in row:
            if node < layers.boxes and layers.group[node] >= 0:
                for group in chains[layers.group[node]]:
                    first, _ = spans.get(group, (rank, rank))
                    spans[group] = (first, rank)
    return sorted(spans.items(), key=lambda item: -len(chains[item[0]]))


def _clear(
    which: int,
    span: tuple[int, int],
    column: list[list[int]],
    layers: Layers,
    widths: Sequence[float],
    chains: Chains,
    centres: list[float],
) -> bool:
    """Move boxes outside a group out of its rectangle; whether any had to be."""

    def inside(node: int) -> bool:
        return layers.group[node] >= 0 and which in chains[layers.group[node]]

    rows = [column[rank] for rank in range(span[0], span[1] + 1)]
    members = [node for row in rows for node in row if node < layers.boxes and inside(node)]
    left = min(centres[node] - widths[node] / 2 for node in members) - GROUP_GAP * 2
    right = max(centres[node] + widths[node] / 2 for node in members) + GROUP_GAP * 2
    middle = (left + right) / 2
    moved = False
    for row in rows:
        ours = [position for position, node in enumerate(row) if inside(node)]
        if ours:
            before, after = ours[0], ours[-1] + 1
        else:
            before = after = sum(centres[node] < middle for node in row)
        moved |= _shift(row[:before], layers, widths, centres, limit=left, leftwards=True)
        moved |= _shift(row[after:], layers, widths, centres, limit=right, leftwards=False)
    return moved


def _shift(
    nodes: Sequence[int],
    layers: Layers,
    widths: Sequence[float],
    centres: list[float],
    *,
    limit: float,
    leftwards: bool,
) -> bool:
    """Move one end of a row outwards until its boxes are beyond `limit`."""
    boxes = [node for node in nodes if node < layers.boxes]
    if not boxes:
        return False
    if leftwards:
        nearest = max(boxes, key=lambda node: centres[node])
        excess = centres[nearest] + widths[nearest] / 2 - limit
        moving, sign = [node for node in nodes if centres[node] <= centres[nearest]], -1.0
    else:
        nearest = min(boxes, key=lambda node: centres[node])
        excess = limit - (centres[nearest] - widths[nearest] / 2)
        moving, sign = [node for node in nodes if centres[node] >= centres[nearest]], 1.0
    if not 0.01 < excess < _MOST_CLEARING:
        return False
    for node in moving:
        centres[node] += sign * excess
    return True

"""Horizontal places: every node near its neighbours, in the given order, at least so far apart.

Sweeps place each row at the weighted mean of what it is linked to, and move apart what would overlap by as little as
possible: that is isotonic regression of the wanted places less the space that must lie to the left, solved exactly by
pooling adjacent violators (Ayer and others, 1955). Nodes that stand for a passing link hold to each other most, so long
links are straight.
"""

from __future__ import annotations

from collections.abc import Sequence

_SMALL = 1500
_SWEEPS_SMALL = 40
_SWEEPS_LARGE = 8

Rows = Sequence[Sequence[int]]
Neighbours = Sequence[Sequence[tuple[int, float]]]


def place_nodes(
    rows: Rows,
    gaps: Sequence[Sequence[float]],
    above: Neighbours,
    below: Neighbours,
    centre: list[float],
    home: Sequence[float],
) -> None:
    """Write the centre of each node of `rows` into `centre`.

    `gaps[r][i]` is how far the centre of the i-th node of row r must be from the one before (0 for the first). `above`
    and `below` give each node's neighbours with weights, `home` how strongly it is drawn to the middle, 0.
    """
    count = sum(len(row) for row in rows)
    spaces = [_running(each) for each in gaps]
    for row, space in zip(rows, spaces, strict=True):
        middle = space[-1] / 2 if space else 0.0
        for node, offset in zip(row, space, strict=True):
            centre[node] = offset - middle
    sweeps = _SWEEPS_SMALL if count <= _SMALL else _SWEEPS_LARGE
    numbered = list(zip(rows, spaces, strict=True))
    for sweep in range(sweeps):
        last = sweep >= sweeps - 4
        ordered = numbered if sweep % 2 == 0 else numbered[::-1]
        near = above if sweep % 2 == 0 else below
        for row, space in ordered:
            _place_row(row, space, centre, home, (above, below) if last else (near,))


def _running(gaps: Sequence[float]) -> list[float]:
    total = 0.0
    found: list[float] = []
    for gap in gaps:
        total += gap
        found.append(total)
    return found


def _place_row(
    row: Sequence[int],
    space: Sequence[float],
    centre: list[float],
    home: Sequence[float],
    sides: Sequence[Neighbours],
) -> None:
    """Pool adjacent violators over wanted centre less the space to the left."""
    means: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for position, node in enumerate(row):
        pull, total = 0.0, home[node]
        for side in sides:
            for other, weight in side[node]:
                pull += weight * centre[other]
                total += weight
        if total:
            wanted, weight = pull / total, total
        else:
            wanted, weight = centre[node], 0.05
        mean, size = wanted - space[position], 1
        while means and means[-1] > mean:
            before = weights.pop()
            mean = (mean * weight + means.pop() * before) / (weight + before)
            weight += before
            size += sizes.pop()
        means.append(mean)
        weights.append(weight)
        sizes.append(size)
    position = 0
    for mean, size in zip(means, sizes, strict=True):
        for _ in range(size):
            centre[row[position]] = mean + space[position]
            position += 1

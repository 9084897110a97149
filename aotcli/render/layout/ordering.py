"""The order of nodes on each rank: few crossings, forward left of backward, groups in one piece.

Sweeps down and up sort every rank by the mean place of its neighbours on the rank before (Sugiyama, Tagawa and Toda,
1981); then neighbours are exchanged while that removes crossings (the transpose step of Gansner, Koutsofios, North and
Vo, 1993). The best order seen is kept. Large graphs get fewer sweeps.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

from aotcli.render.layout.layered import Layers

# Sweeps and rounds of exchanges for graphs of at most so many nodes; larger ones get sweeps only.
_EFFORTS = ((1500, 32, 8), (8000, 16, 4))
_SWEEPS_LARGE = 6

Rows = list[list[int]]


def order_ranks(layers: Layers, chains: Sequence[tuple[int, ...]]) -> Rows:
    """Nodes of each rank from left to right. `chains` are the groups around each group, outermost first."""
    return _Orderer(layers, chains).best()


class _Orderer:
    def __init__(self, layers: Layers, chains: Sequence[tuple[int, ...]]) -> None:
        self._lane = layers.lane
        self._chain = [chains[group] if group >= 0 else () for group in layers.group]
        count = len(layers.rank)
        self._above: list[list[int]] = [[] for _ in range(count)]
        self._below: list[list[int]] = [[] for _ in range(count)]
        for route in layers.routes:
            for nodes in (route.nodes, route.far):
                for upper, lower in pairwise(nodes):
                    self._below[upper].append(lower)
                    self._above[lower].append(upper)
        self._rows: Rows = [[] for _ in range(layers.ranks)]
        for node, rank in enumerate(layers.rank):
            self._rows[rank].append(node)
        self._place = [0.0] * count
        efforts = [effort for most, *effort in _EFFORTS if count <= most]
        self._sweeps, self._rounds = efforts[0] if efforts else (_SWEEPS_LARGE, 0)

    def best(self) -> Rows:
        for row in self._rows:
            row.sort(key=lambda node: (self._lane[node], self._chain[node]))
            self._settle(row)
        best, fewest = [list(row) for row in self._rows], self._crossings() if self._rounds else 0
        for sweep in range(self._sweeps):
            self._sweep(down=sweep % 2 == 0)
            if not self._rounds:
                continue
            self._transpose(even=sweep % 4 >= 2)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self._rows], crossings
        return best if self._rounds else self._rows

    def _settle(self, row: list[int]) -> None:
        """Places are fractions of the row's length, so that a group's mean over rows says something."""
        for position, node in enumerate(row):
            self._place[node] = position

    def _sweep(self, *, down: bool) -> None:
        rows = self._rows if down else self._rows[::-1]
        neighbours = self._above if down else self._below
        place = self._place
        for row in rows:
            wanted: dict[int, float] = {}
            for node in row:
                near = neighbours[node]
                wanted[node] = sum(place[each] for each in near) / len(near) if near else place[node]
            row[:] = self._sorted(row, wanted)
            self._settle(row)

    def _sorted(self, row: list[int], wanted: dict[int, float]) -> list[int]:
        """By lane; within a lane groups in one piece, groups and loose nodes by their wanted places."""
        lanes: tuple[list[int], list[int], list[int]] = ([], [], [])
        for node in row:
            lanes[self._lane[node]].append(node)
        return [node for members in lanes if members for node in self._grouped(members, wanted, 0)]

    def _grouped(self, nodes: list[int], wanted: dict[int, float], depth: int) -> list[int]:
        if len(nodes) < 2:
            return nodes
        chain = self._chain
        first = chain[nodes[0]]
        for node in nodes:
            if chain[node] is not first:
                break
        else:
            return sorted(nodes, key=wanted.__getitem__)
        parts: dict[int, list[int]] = {}
        keyed: list[tuple[float, int, list[int]]] = []
        for node in nodes:
            if len(chain[node]) > depth:
                parts.setdefault(chain[node][depth], []).append(node)
            else:
                keyed.append((wanted[node], len(keyed), [node]))
        for members in parts.values():
            mean = sum(wanted[node] for node in members) / len(members)
            keyed.append((mean, len(keyed), self._grouped(members, wanted, depth + 1)))
        keyed.sort()
        return [node for _, _, members in keyed for node in members]

    # Crossings, for small graphs.

    def _crossings(self) -> int:
        return sum(self._between(row) for row in self._rows)

    def _between(self, row: Sequence[int]) -> int:
        """Crossings of the links from a row to the one below: inversions among their lower ends."""
        total = 0
        seen: list[float] = []
        for node in row:
            ends = sorted(self._place[lower] for lower in self._below[node])
            for end in ends:
                total += len(seen) - bisect_right(seen, end)
            for end in ends:
                insort(seen, end)
        return total

    def _transpose(self, *, even: bool) -> None:
        for turn in range(self._rounds):
            rows = self._rows if turn % 2 == 0 else self._rows[::-1]
            improved = [self._exchange(row, equals=even and turn == 0) for row in rows]
            if not any(improved):
                return

    def _exchange(self, row: list[int], *, equals: bool) -> bool:
        """Exchange neighbours where that removes crossings; with `equals`, also where it costs none."""
        improved = False
        for position in range(len(row) - 1):
            left, right = row[position], row[position + 1]
            if self._lane[left] != self._lane[right] or self._chain[left] != self._chain[right]:
                continue
            gain = self._pair(left, right) - self._pair(right, left)
            if gain > 0 or (equals and gain == 0):
                row[position], row[position + 1] = right, left
                self._place[left], self._place[right] = position + 1, position
                improved |= gain > 0
        return improved

    def _pair(self, left: int, right: int) -> int:
        """Crossings between the links of two neighbours in this order."""
        total = 0
        for near in (self._above, self._below):
            ends = [self._place[each] for each in near[right]]
            for each in near[left]:
                here = self._place[each]
                total += sum(here > end for end in ends)
        return total

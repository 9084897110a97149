"""A longest common subsequence of two sequences of numbers.

E. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1 (1986): the greedy algorithm, after what
only one side has is set aside. Where the sequences differ much, the search stops at a bounded number of edits, keeps
the furthest path it has, and starts again from there: time stays near linear, and the result may be shorter than the
longest.
"""

from __future__ import annotations

from collections.abc import Sequence

_MOST_WORK = 1_000_000  # steps of the search before it settles for less
_LEAST_EDITS = 32
_NOWHERE = -1


def common_subsequence(left: Sequence[int], right: Sequence[int]) -> list[tuple[int, int]]:
    """Places (in `left`, in `right`) of equal numbers, rising on both sides."""
    shared = set(left) & set(right)
    ours = [place for place, token in enumerate(left) if token in shared]
    theirs = [place for place, token in enumerate(right) if token in shared]
    a, b = [left[place] for place in ours], [right[place] for place in theirs]
    found: list[tuple[int, int]] = []
    work = _MOST_WORK
    x = y = 0
    while x < len(a) and y < len(b):
        path = _Path(a[x:], b[y:])
        end_x, end_y = path.search(max(_LEAST_EDITS, int(work**0.5)))
        found += [(ours[x + i], theirs[y + j]) for i, j in path.matches(end_x, end_y)]
        x, y = x + end_x, y + end_y
        work = max(0, work - len(path.reached) ** 2)
    return found


class _Path:
    """`reached[d]` is, by diagonal i - j, the largest i that d edits lead to."""

    def __init__(self, a: Sequence[int], b: Sequence[int]) -> None:
        self._a = a
        self._b = b
        self.reached: list[dict[int, int]] = []

    def search(self, most_edits: int) -> tuple[int, int]:
        """Where the furthest path ends: at both ends, unless that takes more than `most_edits`."""
        a, b = self._a, self._b
        rows, columns = len(a), len(b)
        for edits in range(most_edits + 1):
            current: dict[int, int] = {}
            for diagonal in range(-min(edits, columns), min(edits, rows) + 1):
                if (edits - diagonal) % 2:
                    continue
                i = self._start(edits, diagonal)
                if i == _NOWHERE:
                    continue
                j = i - diagonal
                while i < rows and j < columns and a[i] == b[j]:
                    i += 1
                    j += 1
                current[diagonal] = i
            self.reached.append(current)
            if current.get(rows - columns) == rows:
                return rows, columns
        last = self.reached[-1]
        best = max(last, key=lambda diagonal: (2 * last[diagonal] - diagonal, -abs(diagonal)))
        return last[best], last[best] - best

    def _start(self, edits: int, diagonal: int) -> int:
        """The largest i on a diagonal just after the last of `edits` edits."""
        if edits == 0:
            return 0
        before = self.reached[edits - 1]
        skipped_right = before.get(diagonal + 1, _NOWHERE)
        if skipped_right - diagonal > len(self._b):
            skipped_right = _NOWHERE
        skipped_left = before.get(diagonal - 1, _NOWHERE - 1) + 1
        if skipped_left > len(self._a):
            skipped_left = _NOWHERE
        return max(skipped_right, skipped_left)

    def matches(self, x: int, y: int) -> list[tuple[int, int]]:
        """The matches on the path that ends at (x, y), in order."""
        found: list[tuple[int, int]] = []
        diagonal = x - y
        for edits in range(len(self.reached) - 1, -1, -1):
            i = self.reached[edits][diagonal]
            start = self._start(edits, diagonal)
            found += [(each, each - diagonal) for each in range(i - 1, start - 1, -1)]
            if edits:
                diagonal += 1 if self.reached[edits - 1].get(diagonal + 1, _NOWHERE) == start else -1
        return found[::-1]

"""A longest common subsequence of two sequences of numbers.

What only one side has is set aside first. Where nothing then occurs twice, the longest rising subsequence of places is
found by patience sorting. Otherwise: E. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1
(1986), the greedy algorithm. Where the sequences differ much, its search stops at a bounded number of edits, keeps the
furthest path it has, and starts again from there: time stays near linear, and the result may fall short of the longest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

_MOST_WORK = 500_000  # steps of the search before it settles for less
_LEAST_EDITS = 32
_NOWHERE = -1

Places = tuple[int, int]
"""A place in the left sequence and one in the right, of equal numbers."""


def common_subsequence(left: Sequence[int], right: Sequence[int]) -> list[Places]:
    """Places (in `left`, in `right`) of equal numbers, rising on both sides."""
    shared = set(left) & set(right)
    ours = [place for place, token in enumerate(left) if token in shared]
    theirs = [place for place, token in enumerate(right) if token in shared]
    if len(ours) == len(theirs) == len(shared):
        return _rising(left, right, ours, theirs)
    a, b = [left[place] for place in ours], [right[place] for place in theirs]
    found: list[Places] = []
    work = _MOST_WORK
    x = y = 0
    while x < len(a) and y < len(b):
        path = _Path(a[x:], b[y:])
        end_x, end_y = path.search(max(_LEAST_EDITS, int(work**0.5)))
        found += [(ours[x + i], theirs[y + j]) for i, j in path.matches(end_x, end_y)]
        x, y = x + end_x, y + end_y
        work = max(0, work - len(path.reached) ** 2)
    return found


def common_between(anchors: Sequence[Places], left: Sequence[int], right: Sequence[int]) -> list[Places]:
    """`anchors`, which are rising places in both, and a common subsequence of what lies between each two of them."""
    found: list[Places] = []
    start = (0, 0)
    for end in (*anchors, (len(left), len(right))):
        if start[0] < end[0] and start[1] < end[1]:
            new = common_subsequence(left[start[0] : end[0]], right[start[1] : end[1]])
            found += [(start[0] + i, start[1] + j) for i, j in new]
        found.append(end)
        start = end[0] + 1, end[1] + 1
    return found[:-1]


def _rising(left: Sequence[int], right: Sequence[int], ours: Sequence[int], theirs: Sequence[int]) -> list[Places]:
    """The same where every token occurs once on either side."""
    place_of = {right[place]: place for place in theirs}
    ends: list[int] = []  # the smallest right place that ends a rising sequence of each length
    members: list[int] = []  # which of `ours` that is
    before: list[int] = []  # for each of `ours`, the one before it in its sequence
    for index, place in enumerate(ours):
        other = place_of[left[place]]
        length = bisect_left(ends, other)
        before.append(members[length - 1] if length else _NOWHERE)
        if length == len(ends):
            ends.append(other)
            members.append(index)
        else:
            ends[length], members[length] = other, index
    found: list[Places] = []
    index = members[-1] if members else _NOWHERE
    while index != _NOWHERE:
        found.append((ours[index], place_of[left[ours[index]]]))
        index = before[index]
    return found[::-1]


class _Path:
    """`reached[d]` is, by diagonal i - j from -d to d in steps of 2, the largest i that d edits lead to; `started[d]`
    is that i before the matches that follow the last edit."""

    def __init__(self, a: Sequence[int], b: Sequence[int]) -> None:
        self._a = a
        self._b = b
        self.reached: list[list[int]] = []
        self.started: list[list[int]] = []

    def search(self, most_edits: int) -> tuple[int, int]:
        """Where the furthest path ends: at both ends, unless that takes more than `most_edits`."""
        a, b = self._a, self._b
        rows, columns = len(a), len(b)
        for edits in range(most_edits + 1):
            self.started.append(self._starts(edits))
            current = list(self.started[edits])
            for index, i in enumerate(current):
                if i != _NOWHERE:
                    j = i - 2 * index + edits
                    while i < rows and j < columns and a[i] == b[j]:
                        i += 1
                        j += 1
                    current[index] = i
            self.reached.append(current)
            place = rows - columns + edits
            if 0 <= place <= 2 * edits and place % 2 == 0 and current[place // 2] == rows:
                return rows, columns
        last = len(self.reached) - 1
        ends = [(i, i - 2 * index + last) for index, i in enumerate(self.reached[last]) if i != _NOWHERE]
        return max(ends, key=lambda end: (sum(end), -abs(end[0] - end[1])))

    def _starts(self, edits: int) -> list[int]:
        """By diagonal, the largest i just after the last of `edits` edits."""
        if not edits:
            return [0]
        before = self.reached[edits - 1]
        rows, most = len(self._a), len(self._b) - edits
        # From the diagonal above, something on the right is skipped; from the one below, something on the left.
        above = [i if i - 2 * index <= most else _NOWHERE for index, i in enumerate(before)]
        below = [i + 1 if _NOWHERE < i < rows else _NOWHERE for i in before]
        return [*map(max, [*above, _NOWHERE], [_NOWHERE, *below])]

    def matches(self, x: int, y: int) -> list[Places]:
        """The matches on the path that ends at (x, y), in order."""
        found: list[Places] = []
        diagonal = x - y
        i = x
        for edits in range(len(self.reached) - 1, 0, -1):
            index = (diagonal + edits) // 2
            start = self.started[edits][index]
            found += [(each, each - diagonal) for each in range(i - 1, start - 1, -1)]
            before = self.reached[edits - 1]
            skipped_right = index < edits and before[index] == start
            diagonal += 1 if skipped_right else -1
            i = start if skipped_right else start - 1
        found += [(each, each) for each in range(i - 1, -1, -1)]
        return found[::-1]

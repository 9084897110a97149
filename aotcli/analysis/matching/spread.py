"""From pairs to their neighbours: what reads, or is read by, both halves of a pair in the same place is a pair too.

The surest candidate goes first, whenever it is found:

1. users all of whose inputs are pairs, and the same ones;
2. inputs all of whose users are pairs, and the same ones; gradients of a pair of primals;
3. lone users (no other free user of either half has that label and place) and other inputs, by how many of their
   neighbours are pairs in the same place, less the inputs that are not.

So a wave runs from the inputs of the graph downward until something differs, and only then up from its outputs: of
twelve equal layers of which one is gone, it is one whole layer that stays over, and not the end of one and the
beginning of the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from aotcli.analysis.matching.board import Board, Both, Scope
from aotcli.analysis.matching.side import Side
from aotcli.ir.pairing import Match

_MOST_NEIGHBOURS = 16
"""Of a node with more inputs, or users, not all are looked at."""


class Wave:
    """Pairs free nodes of equal label in a scope, outward from pairs.

    Candidates that are not sure are queued by their score and the order of finding.
    """

    def __init__(self, board: Board, labels: Both, scope: Scope) -> None:
        self._board = board
        self._labels = labels
        self._users = scope.left_users, scope.right_users
        self._inside = _within(board.left, scope.left), _within(board.right, scope.right)
        self._down: deque[tuple[int, int]] = deque()
        self._up: deque[tuple[int, int]] = deque()
        self._other: list[tuple[int, int, int, int]] = []
        self._count = 0

    def spread(self, start: Iterable[int], how: Match) -> int:
        """Pair neighbours of the pairs of the left nodes `start`, their neighbours, and so on; how many were found."""
        for i in start:
            self._visit(i, self._board.left.mate[i])
        found = 0
        while (pair := self._surest()) is not None:
            self._board.pair(*pair, how)
            self._visit(*pair)
            found += 1
        return found

    def _surest(self) -> tuple[int, int] | None:
        """The next pair to make."""
        while self._down or self._up:
            pair = self._down.popleft() if self._down else self._up.popleft()
            if self._is_free(*pair) and self._board.may_pair(*pair) and not self._board.contradicted(*pair):
                return pair
        while self._other:
            score, order, a, b = heappop(self._other)
            if not self._is_free(a, b) or not self._board.may_pair(a, b) or self._board.contradicted(a, b):
                continue
            now = self._score(a, b)
            if now >= -score:
                return a, b
            # Pairs found since then speak against it.
            if now >= 0:
                heappush(self._other, (-now, order, a, b))
        return None

    def _visit(self, i: int, j: int) -> None:
        """Queue the free neighbours of a pair."""
        left, right = self._board.left, self._board.right
        for a, b in zip(left.inputs[i], right.inputs[j], strict=False):
            if self._are_alike(a, b):
                if self._all_users_agree(a, b):
                    self._up.append((a, b))
                else:
                    self._queue(a, b)
        a, b = left.returns.gradient.get(i), right.returns.gradient.get(j)
        if a is not None and b is not None and self._are_alike(a, b):
            self._up.append((a, b))
        lone, settled = self._free_users(left, 0, i)
        if lone:
            others, also_settled = self._free_users(right, 1, j)
            for key, a in settled.items():
                b = also_settled.get(key, -1)
                if a >= 0 and b >= 0 and self._are_alike(a, b):
                    self._down.append((a, b))
            for key, a in lone.items():
                b = others.get(key, -1)
                if a >= 0 and b >= 0 and self._are_alike(a, b):
                    self._queue(a, b)

    def _queue(self, a: int, b: int) -> None:
        score = self._score(a, b)
        if score >= 0:
            self._count += 1
            heappush(self._other, (-score, self._count, a, b))

    def _is_free(self, a: int, b: int) -> bool:
        return self._board.left.mate[a] < 0 and self._board.right.mate[b] < 0

    def _are_alike(self, a: int, b: int) -> bool:
        same = self._labels[0][a] == self._labels[1][b]
        return same and self._is_free(a, b) and bool(self._inside[0][a] and self._inside[1][b])

    def _free_users(self, side: Side, which: int, node: int) -> tuple[dict[object, int], dict[object, int]]:
        """Free users by label and place, and those whose inputs are all pairs by label and inputs; -1 for several."""
        lone: dict[object, int] = {}
        settled: dict[object, int] = {}
        labels = self._labels[which]
        for user, place in self._users[which][node]:
            if side.mate[user] < 0:
                key: tuple[int, ...] = (labels[user], place)
                lone[key] = -1 if key in lone else user
                inputs = [side.anchor[source] for source in side.inputs[user][: _MOST_NEIGHBOURS + 1]]
                if all(inputs) and len(inputs) <= _MOST_NEIGHBOURS:
                    key = (labels[user], *inputs)
                    settled[key] = -1 if key in settled else user
        return lone, settled

    def _all_users_agree(self, a: int, b: int) -> bool:
        """Whether all users are pairs, and no input of one of the two alone is."""
        left, right = self._board.left, self._board.right
        ours, theirs = self._users[0][a], self._users[1][b]
        if len(ours) != len(theirs) or len(ours) > _MOST_NEIGHBOURS:
            return False
        if any(left.anchor[x] != right.anchor[y] for x, y in zip(left.inputs[a], right.inputs[b], strict=False)):
            return False
        mine = {(left.anchor[user], place) for user, place in ours}
        return all(anchor for anchor, _ in mine) and mine == {(right.anchor[user], place) for user, place in theirs}

    def _score(self, a: int, b: int) -> int:
        left, right = self._board.left, self._board.right
        score = 0
        for x, y in zip(left.inputs[a][:_MOST_NEIGHBOURS], right.inputs[b], strict=False):
            if left.anchor[x] or right.anchor[y]:
                score += 1 if left.anchor[x] == right.anchor[y] else -1
        theirs = {(right.anchor[user], place) for user, place in self._users[1][b][:_MOST_NEIGHBOURS]}
        for user, place in self._users[0][a][:_MOST_NEIGHBOURS]:
            score += left.anchor[user] != 0 and (left.anchor[user], place) in theirs
        return score


def _within(side: Side, free: Sequence[int]) -> bytearray:
    inside = bytearray(len(side.mate))
    for node in free:
        inside[node] = 1
    return inside

"""From pairs to their neighbours: what reads, or is read by, both halves of a pair in the same place is a pair too."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from aotcli.analysis.matching.board import Board, Both, Scope
from aotcli.analysis.matching.side import Side, Users
from aotcli.ir.pairing import Match


def spread(board: Board, labels: Both, scope: Scope, start: Iterable[int], how: Match) -> int:
    """Pair free neighbours of equal label, from the pairs of the left nodes `start` onward; how many were found.

    Arguments go by their place. Users do where just one user of either half has that label and place.
    """
    wave = _Wave(board, labels, scope, how)
    wave.queue.extend(start)
    while wave.queue:
        i = wave.queue.popleft()
        wave.visit(i, board.left.mate[i])
    return wave.found


class _Wave:
    def __init__(self, board: Board, labels: Both, scope: Scope, how: Match) -> None:
        self._board = board
        self._left_labels, self._right_labels = labels
        self._left_users, self._right_users = scope.left_users, scope.right_users
        self._how = how
        self._inside = _within(board.left, scope.left), _within(board.right, scope.right)
        self.queue: deque[int] = deque()
        self.found = 0

    def visit(self, i: int, j: int) -> None:
        left, right = self._board.left, self._board.right
        for a, b in zip(left.inputs[i], right.inputs[j], strict=False):
            if left.mate[a] < 0 and right.mate[b] < 0:
                self._try(a, b)
        a, b = left.returns.gradient.get(i), right.returns.gradient.get(j)
        if a is not None and b is not None and left.mate[a] < 0 and right.mate[b] < 0:
            self._try(a, b)
        ours = self._lone(left, self._left_users, self._left_labels, i)
        if ours:
            theirs = self._lone(right, self._right_users, self._right_labels, j)
            for key, a in ours.items():
                b = theirs.get(key, -1)
                if a >= 0 and b >= 0 and left.mate[a] < 0 and right.mate[b] < 0:
                    self._try(a, b)

    def _try(self, a: int, b: int) -> None:
        board = self._board
        if self._left_labels[a] != self._right_labels[b] or not (self._inside[0][a] and self._inside[1][b]):
            return
        if board.may_pair(a, b) and not board.contradicted(a, b):
            board.pair(a, b, self._how)
            self.found += 1
            self.queue.append(a)

    def _lone(self, side: Side, users: Users, labels: Sequence[int], node: int) -> dict[tuple[int, int], int]:
        """Free users by label and place; -1 where there are several."""
        known: dict[tuple[int, int], int] = {}
        for user, place in users[node]:
            if side.mate[user] < 0:
                key = (labels[user], place)
                known[key] = -1 if key in known else user
        return known


def _within(side: Side, free: Iterable[int]) -> bytearray:
    inside = bytearray(len(side.mate))
    for node in free:
        inside[node] = 1
    return inside

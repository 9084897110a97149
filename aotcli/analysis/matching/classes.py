"""Classes of nodes with equal colours: one node on either side is a pair; as many on both sides are a tie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aotcli.analysis.matching.board import Board, Both, Scope
from aotcli.analysis.matching.spread import spread
from aotcli.ir.pairing import Match

_MOST_TRIED = 8
"""Of a tie, how many partners are tried for a node before it is left for later."""


def pair_unique(board: Board, colours: Both, scope: Scope, how: Match) -> int:
    """Pair the free nodes whose colour one node of either side has; how many were found."""
    found = 0
    for ours, theirs in _classes(board, colours, scope):
        if len(ours) == len(theirs) == 1 and board.may_pair(ours[0], theirs[0]):
            board.pair(ours[0], theirs[0], how)
            found += 1
    return found


def pair_equal(board: Board, colours: Both, scope: Scope, how: Match) -> int:
    """`pair_unique`, then the ties: nodes with as many equals on the other side. Which of them is paired with which is
    a free choice the first time; what follows from a choice is settled before the next."""
    found = pair_unique(board, colours, scope, how)
    for ours, theirs in _classes(board, colours, scope):
        if len(ours) == len(theirs):
            found += _pair_tied(board, colours, scope, (ours, theirs), how)
    return found


def _pair_tied(board: Board, colours: Both, scope: Scope, tied: tuple[list[int], list[int]], how: Match) -> int:
    found = 0
    waiting = tied[1]
    for i in tied[0]:
        if board.left.mate[i] >= 0:
            continue
        waiting = [j for j in waiting if board.right.mate[j] < 0] if found else waiting
        for j in waiting[:_MOST_TRIED]:
            if board.right.mate[j] < 0 and board.may_pair(i, j) and not board.contradicted(i, j):
                board.pair(i, j, how)
                found += 1 + spread(board, colours, scope, [i], how)
                break
    return found


def mostly_equal(colours: Both, scope: Scope) -> bool:
    """Whether more than half the free nodes have an equal on the other side."""
    ours = Counter(colours[0][node] for node in scope.left)
    theirs = Counter(colours[1][node] for node in scope.right)
    return 2 * (ours & theirs).total() > min(len(scope.left), len(scope.right))


def _classes(board: Board, colours: Both, scope: Scope) -> Sequence[tuple[list[int], list[int]]]:
    """Free nodes of equal colour, in graph order, where both sides have some."""
    classes: dict[int, tuple[list[int], list[int]]] = {}
    for node in scope.left:
        if board.left.mate[node] < 0:
            classes.setdefault(colours[0][node], ([], []))[0].append(node)
    for node in scope.right:
        if board.right.mate[node] < 0:
            both = classes.get(colours[1][node])
            if both is not None:
                both[1].append(node)
    return [both for both in classes.values() if both[1]]

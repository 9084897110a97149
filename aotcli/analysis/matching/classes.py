"""Classes of nodes with equal colours: one node on either side is a pair; as many on both sides are a tie."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from aotcli.analysis.matching.board import Board, Both, Scope
from aotcli.analysis.matching.colours import Coloured
from aotcli.analysis.matching.side import Side
from aotcli.analysis.matching.spread import Wave
from aotcli.ir.pairing import Match

_MOST_TRIED = 8
"""Of a tie, how many partners are tried for a node before it is left for later."""


def pair_unique(board: Board, coloured: Coloured, how: Match) -> int:
    """Pair the free nodes whose colour one node of either side has; how many were found."""
    ours = _lone(board.left, coloured.colours[0], coloured.scope.left)
    theirs = _lone(board.right, coloured.colours[1], coloured.scope.right)
    found = 0
    for colour, i in ours.items():
        j = theirs.get(colour, -1)
        if i >= 0 and j >= 0 and board.may_pair(i, j):
            board.pair(i, j, how)
            found += 1
    return found


def pair_equal(board: Board, coloured: Coloured, how: Match) -> int:
    """`pair_unique`, then the ties: nodes with as many equals on the other side. Which of them is paired with which is
    a free choice the first time; what follows from a choice is settled before the next."""
    found = pair_unique(board, coloured, how)
    colours, scope = coloured.colours, board.still_free(coloured.scope)
    tied = _tied(colours, scope)
    if tied:
        wave = Wave(board, colours, scope)
        found += sum(_pair_tied(board, wave, each, how) for each in tied)
    return found


def _pair_tied(board: Board, wave: Wave, tied: tuple[list[int], list[int]], how: Match) -> int:
    found = 0
    waiting = deque(tied[1])
    for i in tied[0]:
        if board.left.mate[i] >= 0:
            continue
        tries = 0
        while waiting and tries < _MOST_TRIED:
            j = waiting.popleft()
            if board.right.mate[j] >= 0:
                continue
            if board.may_pair(i, j) and not board.contradicted(i, j):
                board.pair(i, j, how)
                found += 1 + wave.spread([i], how)
                break
            waiting.append(j)
            tries += 1
    return found


def equally_labelled(labels: Both, scope: Scope) -> bool:
    """Whether every label is that of as many free nodes on either side."""
    if len(scope.left) != len(scope.right):
        return False
    return Counter([labels[0][node] for node in scope.left]) == Counter([labels[1][node] for node in scope.right])


def mostly_equal(coloured: Coloured) -> bool:
    """Whether more than half the free nodes have an equal on the other side."""
    scope = coloured.scope
    ours = Counter([coloured.colours[0][node] for node in scope.left])
    theirs = Counter([coloured.colours[1][node] for node in scope.right])
    return 2 * (ours & theirs).total() > min(len(scope.left), len(scope.right))


def _lone(side: Side, colours: Sequence[int], nodes: Sequence[int]) -> dict[int, int]:
    """The free node of each colour, or -1 where there are several."""
    found: dict[int, int] = {}
    for node in nodes:
        if side.mate[node] < 0:
            colour = colours[node]
            found[colour] = -1 if colour in found else node
    return found


def _tied(colours: Both, scope: Scope) -> list[tuple[list[int], list[int]]]:
    """Nodes of equal colour, in graph order, where either side has as many."""
    scope = scope.shared(colours)
    classes: dict[int, tuple[list[int], list[int]]] = {}
    for node in scope.left:
        classes.setdefault(colours[0][node], ([], []))[0].append(node)
    for node in scope.right:
        classes[colours[1][node]][1].append(node)
    return [both for both in classes.values() if len(both[0]) == len(both[1])]

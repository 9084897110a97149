"""Nodes whose op has changed: what neighbours that are pairs leave free between them.

First regions that have the same shape on both sides, whatever their ops are; then, one by one, nodes of which most
neighbours are pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotcli.analysis.matching.board import Board, Scope
from aotcli.analysis.matching.classes import pair_equal, pair_unique
from aotcli.analysis.matching.colours import neighbourhoods, two_sided
from aotcli.analysis.matching.columns import GETITEM
from aotcli.analysis.matching.levels import Level
from aotcli.analysis.matching.side import Side, Users
from aotcli.ir.joint import NodeKind
from aotcli.ir.pairing import Match

_RADIUS = 2
_MOST_USERS = 64
"""A node with more free users says little of any of them."""


def pair_regions(board: Board, level: Level) -> None:
    """Pair what has the same surroundings up to pairs, by labels that leave the op out."""
    scope = board.scope(forward=False)
    labels = level.labels(scope)
    pair_equal(board, two_sided(board, labels, scope), Match.CHANGED)
    for coloured in reversed(neighbourhoods(board, labels, board.still_free(scope), _RADIUS)):
        pair_unique(board, coloured, Match.CHANGED)


def pair_voted(board: Board) -> None:
    """Pair free ops of which more than half the neighbours are pairs."""
    while _pair_voted(board, board.scope(forward=False)):
        pass


def _pair_voted(board: Board, scope: Scope) -> int:
    ranked: list[tuple[float, int, int, int]] = []
    for i in scope.left:
        if not _may_change(board.left, i):
            continue
        for j in dict.fromkeys(_neighbours_of_neighbours(board, scope, i)):
            if not _may_change(board.right, j) or board.left.backward[i] != board.right.backward[j]:
                continue
            share = board.agreed(i, j) / max(_degree(board.left, i), _degree(board.right, j))
            if share > 0.5:
                alike = _likeness(board, i, j)
                ranked.append((-share, -alike, i, j))
    found = 0
    for _, _, i, j in sorted(ranked):
        if board.left.mate[i] < 0 and board.right.mate[j] < 0:
            board.pair(i, j, Match.CHANGED)
            found += 1
    return found


def _may_change(side: Side, node: int) -> bool:
    return side.nodes[node].kind is NodeKind.OP and side.nodes[node].target != GETITEM


def _neighbours_of_neighbours(board: Board, scope: Scope, i: int) -> Iterator[int]:
    """Free right nodes next to the partners of the neighbours of `i`."""
    left, right = board.left, board.right
    for source in left.inputs[i]:
        if left.mate[source] >= 0:
            yield from _free_users(right, scope.right_users, left.mate[source])
    for user, place in scope.left_users[i]:
        partner = left.mate[user]
        if partner >= 0 and place < len(right.inputs[partner]):
            other = right.inputs[partner][place]
            if right.mate[other] < 0:
                yield other


def _free_users(side: Side, users: Users, node: int) -> Sequence[int]:
    free = [user for user, _ in users[node] if side.mate[user] < 0]
    return free if len(free) <= _MOST_USERS else ()


def _degree(side: Side, node: int) -> int:
    returned = len(side.returns.outputs.get(node, ())) + len(side.returns.primals.get(node, ()))
    return max(1, len(side.inputs[node]) + len({user for user, _ in side.users[node]}) + returned)


def _likeness(board: Board, i: int, j: int) -> int:
    ours, theirs = board.left.columns, board.right.columns
    return (ours.shape[i] == theirs.shape[j]) + (ours.dtype[i] == theirs.dtype[j]) + (ours.op[i] == theirs.op[j])

"""How sure each pair is, once all are known."""

from __future__ import annotations

from aotcli.analysis.matching.board import Board
from aotcli.ir.joint import NodeKind
from aotcli.ir.pairing import Match


def grade(board: Board) -> None:
    """Call pairs by what can be said of them at the end, where that is more than what was known when they were found.

    Another op is CHANGED. The same op is WIRED where all inputs are pairs in the same places, or all users are. What
    the two outputs say of each other is that all else is equal, or not.
    """
    left, right = board.left, board.right
    for i, how in enumerate(board.match):
        if how is None or how is Match.EXACT:
            continue
        j = left.mate[i]
        if left.nodes[i].kind is NodeKind.OUTPUT:
            all_equal = len(left.nodes) == len(right.nodes) and all(each is Match.EXACT for each in board.match[:i])
            board.match[i] = Match.EXACT if all_equal else Match.WIRED
        elif left.columns.op[i] != right.columns.op[j]:
            board.match[i] = Match.CHANGED
        elif _same_inputs(board, i, j) or _same_users(board, i, j):
            board.match[i] = Match.WIRED
        elif how is Match.CHANGED:
            board.match[i] = Match.NEAR


def _same_inputs(board: Board, i: int, j: int) -> bool:
    ours = [board.left.anchor[node] for node in board.left.inputs[i]]
    return bool(ours) and all(ours) and ours == [board.right.anchor[node] for node in board.right.inputs[j]]


def _same_users(board: Board, i: int, j: int) -> bool:
    ours = {(board.left.anchor[user], place) for user, place in board.left.users[i]}
    theirs = {(board.right.anchor[user], place) for user, place in board.right.users[j]}
    return bool(ours) and ours == theirs and all(anchor for anchor, _ in ours)

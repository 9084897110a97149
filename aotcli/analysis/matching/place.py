"""Nodes by their place: the sequences of nodes of one module and phase, in canonical order, are aligned."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.matching.align import common_between, common_subsequence
from aotcli.analysis.matching.board import Board, Both, Scope, drop_doubtful
from aotcli.analysis.matching.side import Side
from aotcli.ir.pairing import Match


def align_groups(board: Board, labels: Both, groups: Both, scope: Scope, *, bridged: bool) -> int:
    """Pair free nodes of equal label that have the same place in a group; how many were found.

    Pairs that have been found take part in the alignment, so that what lies between two pairs stays between them.
    `bridged` is that of `Board.is_doubtful`.
    """
    ours = _sequences(board.left, groups[0], scope.left)
    theirs = _sequences(board.right, groups[1], scope.right)
    new: list[tuple[int, int]] = []
    for group, mine in ours.items():
        others = theirs.get(group)
        if others is None:
            continue
        pairs = common_subsequence([board.left.anchor[i] for i in mine], [board.right.anchor[j] or 1 for j in others])
        tokens = _tokens(board.left, labels[0], mine), _tokens(board.right, labels[1], others)
        for x, y in common_between(pairs, *tokens):
            i, j = mine[x], others[y]
            if board.left.mate[i] < 0 and board.may_pair(i, j):
                board.pair(i, j, Match.ALIGNED)
                new.append((i, j))
    return drop_doubtful(board, new, bridged=bridged)


def _sequences(side: Side, groups: Sequence[int], free: Sequence[int]) -> dict[int, list[int]]:
    """By group, all nodes of the groups that have free nodes."""
    wanted: dict[int, list[int]] = {groups[node]: [] for node in free}
    if wanted:
        for node in side.order:
            members = wanted.get(groups[node])
            if members is not None:
                members.append(node)
    return wanted


def _tokens(side: Side, labels: Sequence[int], members: Sequence[int]) -> list[int]:
    """Pairs are negative numbers, labels are not."""
    return [side.anchor[node] or labels[node] for node in members]

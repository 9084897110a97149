"""A free node in the place of one that was paired too soon.

Of two nodes of one graph that are equally like a node of the other, the better half of a pair is the one with more
neighbours that are pairs with the other's neighbours, or may become pairs. There are few rounds: what may become a pair
does not always.
"""

from __future__ import annotations

from collections.abc import Iterator

from aotcli.analysis.matching.board import Board, Both
from aotcli.analysis.matching.side import Side
from aotcli.ir.joint import NodeKind

_MOST_USERS = 64
_ROUNDS = 8


def exchange(board: Board, groups: Both) -> int:
    """Exchange halves of pairs for free nodes that fit better; how many were. `groups` are equal for nodes of one
    module and phase."""
    found = 0
    for _ in range(_ROUNDS):
        scope = board.scope(forward=False)
        new = 0
        for node in scope.left:
            choices = [(board.right.mate[j], (node, j)) for j in _alike(board.left, board.right, node)]
            new += _exchange(board, groups, choices)
        for node in scope.right:
            new += _exchange(board, groups, [(i, (i, node)) for i in _alike(board.right, board.left, node)])
        if not new:
            break
        found += new
    return found


def _exchange(board: Board, groups: Both, choices: list[tuple[int, tuple[int, int]]]) -> bool:
    """Of choices of a pair to part (by its left node) and a pair to make, take the one that gains most."""
    best, gain = None, 0
    for old, new in choices:
        before, after = (old, board.left.mate[old]), new
        if _likeness(board, groups, after) >= _likeness(board, groups, before):
            gained = _fit(board, *after) - _fit(board, *before)
            if gained > gain:
                best, gain = (old, new), gained
    if best is None:
        return False
    how = board.match[best[0]]
    assert how is not None
    board.part(best[0])
    board.pair(*best[1], how)
    return True


def _fit(board: Board, i: int, j: int) -> int:
    """Two for each neighbour that is a pair, one for each that may become one: free on both sides, and of one op."""
    left, right = board.left, board.right
    inputs = zip(left.inputs[i][:_MOST_USERS], right.inputs[j], strict=False)
    hopes = sum(not left.anchor[a] and not right.anchor[b] and _same_op(left, right, a, b) for a, b in inputs)
    wanted = {(right.columns.op[user], place) for user, place in right.users[j][:_MOST_USERS] if not right.anchor[user]}
    users = {(left.columns.op[user], place) for user, place in left.users[i][:_MOST_USERS] if not left.anchor[user]}
    return 2 * board.agreed(i, j) + hopes + len(users & wanted)


def _same_op(left: Side, right: Side, a: int, b: int) -> bool:
    return left.columns.op[a] == right.columns.op[b]


def _alike(own: Side, other: Side, node: int) -> list[int]:
    """Paired ops of the other graph that are to partners of a node's neighbours what the node is to the neighbours."""
    if own.nodes[node].kind is not NodeKind.OP:
        return []
    op = own.columns.op[node]
    near = dict.fromkeys(_near(own, other, node))
    return [each for each in near if other.mate[each] >= 0 and other.columns.op[each] == op]


def _near(own: Side, other: Side, node: int) -> Iterator[int]:
    for place, source in enumerate(own.inputs[node]):
        if own.mate[source] >= 0:
            users = other.users[own.mate[source]]
            if len(users) <= _MOST_USERS:
                yield from (user for user, at in users if at == place)
    for user, place in own.users[node][:_MOST_USERS]:
        partner = own.mate[user]
        if partner >= 0 and place < len(other.inputs[partner]):
            yield other.inputs[partner][place]


def _likeness(board: Board, groups: Both, pair: tuple[int, int]) -> int:
    i, j = pair
    ours, theirs = board.left.columns, board.right.columns
    alike = 4 * (ours.op[i] == theirs.op[j]) + 2 * (groups[0][i] == groups[1][j])
    return alike + (ours.shape[i] == theirs.shape[j])

"""The pairs found so far, and how well a pair fits with the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aotcli.analysis.matching.side import Side, Users
from aotcli.ir.joint import PLACEHOLDER_KINDS, PRIMAL_KINDS, NodeKind
from aotcli.ir.pairing import Match

Both = tuple[Sequence[int], Sequence[int]]
"""A number for each node of the left graph, and of the right one."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of the graphs is looked at: the nodes that are free there, in graph order, and who uses whom."""

    left: list[int]
    right: list[int]
    left_users: Users
    right_users: Users

    def shared(self, colours: Both) -> Scope:
        """The nodes whose colour both sides have."""
        both = {colours[0][node] for node in self.left} & {colours[1][node] for node in self.right}
        left = [node for node in self.left if colours[0][node] in both]
        right = [node for node in self.right if colours[1][node] in both]
        return Scope(left, right, self.left_users, self.right_users)


class Board:
    """Two sides and the pairs between them."""

    def __init__(self, left: Side, right: Side) -> None:
        self.left = left
        self.right = right
        self.match: list[Match | None] = [None] * len(left.nodes)

    def scope(self, *, forward: bool) -> Scope:
        """All that is free, or what of it the forward has."""
        left, right = self.left, self.right
        if not forward:
            return Scope(_free(left), _free(right), left.users, right.users)
        return Scope(
            [node for node in _free(left) if not left.backward[node]],
            [node for node in _free(right) if not right.backward[node]],
            left.forward_users,
            right.forward_users,
        )

    def still_free(self, scope: Scope) -> Scope:
        left = [node for node in scope.left if self.left.mate[node] < 0]
        right = [node for node in scope.right if self.right.mate[node] < 0]
        return Scope(left, right, scope.left_users, scope.right_users)

    def pair(self, i: int, j: int, how: Match) -> None:
        self.left.mate[i], self.right.mate[j] = j, i
        self.left.anchor[i] = self.right.anchor[j] = -1 - i
        self.match[i] = how

    def part(self, i: int) -> None:
        """Undo a pair."""
        j = self.left.mate[i]
        self.left.mate[i] = self.right.mate[j] = -1
        self.left.anchor[i] = self.right.anchor[j] = 0
        self.match[i] = None

    def may_pair(self, i: int, j: int) -> bool:
        """Whether two nodes are of kinds that may be one. What takes a tuple apart goes where the tuple goes."""
        left, right = self.left.nodes[i].kind, self.right.nodes[j].kind
        if left is not right and not (left in PRIMAL_KINDS and right in PRIMAL_KINDS):
            return False
        a, b = self.left.item_of.get(i), self.right.item_of.get(j)
        if a is None or b is None:
            return a is b
        if self.left.mate[a] >= 0 or self.right.mate[b] >= 0:
            return self.left.mate[a] == b
        ours, theirs = self.left.columns, self.right.columns
        return ours.op[a] == theirs.op[b] or ours.shape[a] == theirs.shape[b]

    def contradicted(self, i: int, j: int) -> bool:
        """Whether some input of the two, in the same place, has been paired with something else on both sides."""
        ours, theirs = self.left.anchor, self.right.anchor
        for a, b in zip(self.left.inputs[i], self.right.inputs[j], strict=False):
            if ours[a] != theirs[b] and ours[a] and theirs[b]:
                return True
        return False

    def support(self, i: int, j: int) -> tuple[int, int]:
        """How many neighbours of two nodes are pairs in the same place, and how many are pairs but elsewhere."""
        agreed = against = 0
        ours, theirs = self.left.anchor, self.right.anchor
        for a, b in zip(self.left.inputs[i], self.right.inputs[j], strict=False):
            if ours[a] and theirs[b]:
                agreed += ours[a] == theirs[b]
                against += ours[a] != theirs[b]
        reading = {theirs[user] for user, _ in self.right.users[j]} - {0}
        for user in dict.fromkeys(user for user, _ in self.left.users[i]):
            if ours[user]:
                agreed += ours[user] in reading
                against += ours[user] not in reading
        left, right = self.left.returns, self.right.returns
        agreed += len({*left.outputs.get(i, ())} & {*right.outputs.get(j, ())})
        agreed += len({ours[p] for p in left.primals.get(i, ())} & {theirs[p] for p in right.primals.get(j, ())} - {0})
        gradients = left.gradient.get(i), right.gradient.get(j)
        if gradients[0] is not None and gradients[1] is not None and ours[gradients[0]]:
            agreed += ours[gradients[0]] == theirs[gradients[1]]
        return agreed, against


def is_placeholder(side: Side, node: int) -> bool:
    return side.nodes[node].kind in PLACEHOLDER_KINDS


def _free(side: Side) -> list[int]:
    return [node for node, mate in enumerate(side.mate) if mate < 0]


def drop_unsupported(board: Board, pairs: Iterable[tuple[int, int]]) -> int:
    """Part those of `pairs` that no neighbour speaks for, or more speak against; how many stay."""
    kept = list(pairs)
    while True:
        doubtful = [pair for pair in kept if _is_doubtful(board, *pair)]
        if not doubtful:
            return len(kept)
        for i, _ in doubtful:
            board.part(i)
        gone = set(doubtful)
        kept = [pair for pair in kept if pair not in gone]


def _is_doubtful(board: Board, i: int, j: int) -> bool:
    agreed, against = board.support(i, j)
    if agreed == 0 and board.left.nodes[i].kind is NodeKind.OP:
        return bool(against or board.left.inputs[i] or board.left.users[i])
    return against > agreed

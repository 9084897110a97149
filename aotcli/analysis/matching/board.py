"""The pairs found so far, and how well a pair fits with the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aotcli.analysis.matching.side import Side, Users
from aotcli.ir.joint import PRIMAL_KINDS, NodeKind
from aotcli.ir.pairing import Match

Both = tuple[Sequence[int], Sequence[int]]
"""A number for each node of the left graph, and of the right one."""

_MOST_USERS = 16


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

    def agreed(self, i: int, j: int) -> int:
        """How many neighbours of two nodes are pairs in the same place."""
        left, right = self.left, self.right
        ours, theirs = left.anchor, right.anchor
        pairs = zip(left.inputs[i], right.inputs[j], strict=False)
        count = sum([ours[a] == theirs[b] != 0 for a, b in pairs])
        reading = {theirs[user] for user, _ in right.users[j]} - {0}
        count += len({ours[user] for user, _ in left.users[i]} & reading)
        count += len({*left.returns.outputs.get(i, ())} & {*right.returns.outputs.get(j, ())})
        primals = {theirs[primal] for primal in right.returns.primals.get(j, ())} - {0}
        count += len({ours[primal] for primal in left.returns.primals.get(i, ())} & primals)
        a, b = left.returns.gradient.get(i), right.returns.gradient.get(j)
        return count + (a is not None and b is not None and ours[a] == theirs[b] != 0)

    def is_doubtful(self, i: int, j: int, *, bridged: bool) -> bool:
        """Whether no neighbour of two nodes speaks for them, or more inputs speak against.

        Neighbours speak for them where they are pairs in the same place; if `bridged`, also where one free node lies
        between on one side. Inputs speak against them that are pairs with others.
        """
        left, right = self.left, self.right
        for_it, against = self.agreed(i, j), 0
        for a, b in zip(left.inputs[i], right.inputs[j], strict=False):
            if left.anchor[a] != right.anchor[b]:
                near = bridged and (_reads(right, b, left.anchor[a]) or _reads(left, a, right.anchor[b]))
                for_it += near
                against += left.anchor[a] != 0 != right.anchor[b] and not near
        if bridged and for_it == 0:
            for_it += _is_read(left, i, right, j) or _is_read(right, j, left, i)
        if for_it == 0 and left.nodes[i].kind is NodeKind.OP:
            return bool(against or left.inputs[i] or right.inputs[j] or left.users[i] or right.users[j])
        return against > for_it


def _reads(side: Side, node: int, anchor: int) -> bool:
    """Whether a free node reads the one that is paired as `anchor`."""
    return anchor != 0 and side.anchor[node] == 0 and anchor in [side.anchor[each] for each in side.inputs[node]]


def _is_read(side: Side, node: int, other: Side, partner: int) -> bool:
    """Whether a free user of `node` is read by the partner of a user of `partner`."""
    wanted = {other.anchor[user] for user, _ in other.users[partner]} - {0}
    for user, _ in side.users[node][:_MOST_USERS]:
        if side.anchor[user] == 0 and not wanted.isdisjoint([side.anchor[each] for each, _ in side.users[user]]):
            return True
    return False


def _free(side: Side) -> list[int]:
    return [node for node, mate in enumerate(side.mate) if mate < 0]


def drop_doubtful(board: Board, pairs: Iterable[tuple[int, int]], *, bridged: bool) -> int:
    """Part the doubtful among `pairs`; how many stay."""
    kept = list(pairs)
    while True:
        doubtful = [pair for pair in kept if board.is_doubtful(*pair, bridged=bridged)]
        if not doubtful:
            return len(kept)
        for i, _ in doubtful:
            board.part(i)
        gone = set(doubtful)
        kept = [pair for pair in kept if pair not in gone]

"""Hashes of a node's surroundings, exact: colour refinement (Weisfeiler and Leman, 1968) over both graphs at once.

A colour is a number for all that is known of a node's label and of its neighbours' colours, so equal colours mean equal
surroundings, and nothing collides. A node that has been paired has its pair for a colour: what lies behind it does
not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.analysis.matching.board import Board, Both, Scope
from aotcli.analysis.matching.columns import Numbers
from aotcli.analysis.matching.side import Side, Users


def two_sided(board: Board, labels: Both, scope: Scope) -> Both:
    """Colours of the free nodes by all that leads to them from pairs and all that follows from them up to pairs."""
    numbers = Numbers()
    sides = (
        (board.left, labels[0], scope.left, scope.left_users),
        (board.right, labels[1], scope.right, scope.right_users),
    )
    left, right = (_two_sided(side, own, free, users, numbers) for side, own, free, users in sides)
    return left, right


def _two_sided(side: Side, labels: Sequence[int], free: Sequence[int], users: Users, numbers: Numbers) -> list[int]:
    up = list(side.anchor)
    for node in free:
        up[node] = numbers.of((labels[node], *[up[source] for source in side.inputs[node]]))
    down = list(side.anchor)
    returns = side.returns
    for node in reversed(free):
        below = sorted([(down[user], place) for user, place in users[node]])
        returned = returns.outputs.get(node)
        primals = returns.primals.get(node)
        gradients = None if primals is None else tuple(sorted([up[primal] for primal in primals]))
        down[node] = numbers.of(("down", labels[node], tuple(below), returned, gradients))
    both = list(side.anchor)
    for node in free:
        both[node] = numbers.of(("both", up[node], down[node]))
    return both


def neighbourhoods(board: Board, labels: Both, scope: Scope, radius: int) -> list[Both]:
    """Colours of the free nodes by what lies within a distance of 1, 2, … `radius`."""
    numbers = Numbers()
    left, right = list(board.left.anchor), list(board.right.anchor)
    for colours, own, free in ((left, labels[0], scope.left), (right, labels[1], scope.right)):
        for node in free:
            colours[node] = numbers.of(own[node])
    found: list[Both] = []
    for _ in range(radius):
        left = _widened(board.left, left, scope.left, scope.left_users, numbers)
        right = _widened(board.right, right, scope.right, scope.right_users, numbers)
        found.append((left, right))
    return found


def _widened(side: Side, colours: list[int], free: Sequence[int], users: Users, numbers: Numbers) -> list[int]:
    wider = list(colours)
    for node in free:
        above = tuple([colours[source] for source in side.inputs[node]])
        below = tuple(sorted([(colours[user], place) for user, place in users[node]]))
        wider[node] = numbers.of((colours[node], above, below))
    return wider

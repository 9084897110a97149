"""Hashes of a node's surroundings, exact: colour refinement (Weisfeiler and Leman, 1968) over both graphs at once.

A colour is a number for all that is known of a node's label and of its neighbours' colours, so equal colours mean equal
surroundings, and nothing collides. A node that has been paired has its pair for a colour: what lies behind it does
not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.matching.board import Board, Both, Scope
from aotcli.analysis.matching.columns import Numbers
from aotcli.analysis.matching.side import Side, Users


@dataclass(frozen=True, slots=True)
class Coloured:
    """Colours of the free nodes, and those nodes whose label both sides have: only they can find a partner."""

    colours: Both
    scope: Scope


def two_sided(board: Board, labels: Both, scope: Scope) -> Coloured:
    """Colours by all that leads to a node from pairs and all that follows from it up to pairs."""
    numbers = Numbers()
    inner = scope.shared(labels)
    left = _two_sided(board.left, labels[0], (scope.left, inner.left), scope.left_users, numbers)
    right = _two_sided(board.right, labels[1], (scope.right, inner.right), scope.right_users, numbers)
    return Coloured((left, right), inner)


def _two_sided(
    side: Side, labels: Sequence[int], free: tuple[Sequence[int], Sequence[int]], users: Users, numbers: Numbers
) -> list[int]:
    up = _by_label(side, labels, free[0], numbers)
    down = list(up)
    for node in free[1]:
        up[node] = numbers.of((labels[node], *[up[source] for source in side.inputs[node]]))
    returns = side.returns
    for node in reversed(free[1]):
        below = [(down[user], place) for user, place in users[node]]
        below.sort()
        returned = returns.outputs.get(node)
        primals = returns.primals.get(node)
        gradients = None if primals is None else tuple(sorted([up[primal] for primal in primals]))
        down[node] = numbers.of(("down", labels[node], tuple(below), returned, gradients))
    for node in free[1]:
        up[node] = up[node] << 32 | down[node]
    return up


def _by_label(side: Side, labels: Sequence[int], free: Sequence[int], numbers: Numbers) -> list[int]:
    colours = list(side.anchor)
    for node in free:
        colours[node] = numbers.of(labels[node])
    return colours


def neighbourhoods(board: Board, labels: Both, scope: Scope, radius: int) -> list[Coloured]:
    """Colours by what lies within a distance of 1, 2, … `radius`. A node whose colour one side alone has is not
    looked at further."""
    numbers = Numbers()
    left = _by_label(board.left, labels[0], scope.left, numbers)
    right = _by_label(board.right, labels[1], scope.right, numbers)
    found: list[Coloured] = []
    for _ in range(radius):
        scope = scope.shared((left, right))
        if not scope.left:
            break
        left = _widened(board.left, left, scope.left, scope.left_users, numbers)
        right = _widened(board.right, right, scope.right, scope.right_users, numbers)
        found.append(Coloured((left, right), scope))
    return found


def _widened(side: Side, colours: list[int], free: Sequence[int], users: Users, numbers: Numbers) -> list[int]:
    wider = list(colours)
    for node in free:
        above = tuple([colours[source] for source in side.inputs[node]])
        below = [(colours[user], place) for user, place in users[node]]
        below.sort()
        wider[node] = numbers.of((colours[node], above, tuple(below)))
    return wider

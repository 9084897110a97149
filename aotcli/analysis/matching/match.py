"""Pairs of nodes of two joint graphs: what a diff, a check or a picture of a change rests on.

In the order of how sure each step is:

1. equal surroundings: one exact hash over all that leads to a node and all that follows from it (colours.py);
2. parameters, buffers and inputs by name, once the modules of the two models have been paired (modules.py);
3. outward from pairs, through arguments and lone users (spread.py);
4. equal neighbourhoods, of falling radius (colours.py);
5. place in the sequence of one module and phase (place.py);
6. what is left between pairs has another op (changed.py);
7. halves of pairs give way to free nodes that fit better (exchange.py).

Steps 3 to 5 are taken for labels of falling strictness (levels.py): with shape, dtype and constants first, the op alone
last. They are taken for the forward alone first: the backward follows from it, so that most of what the backward reads
is known by the time that it is looked at. Each step costs about as much as the nodes that are still free.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

from aotcli.analysis.matching.board import Board, Both, Scope
from aotcli.analysis.matching.changed import pair_regions, pair_voted
from aotcli.analysis.matching.classes import equally_labelled, mostly_equal, pair_equal, pair_unique
from aotcli.analysis.matching.colours import neighbourhoods, two_sided
from aotcli.analysis.matching.columns import Numbers
from aotcli.analysis.matching.exchange import exchange
from aotcli.analysis.matching.grade import grade
from aotcli.analysis.matching.levels import Level, Levels, read_levels
from aotcli.analysis.matching.place import align_groups
from aotcli.analysis.matching.side import Side, first_of, read_side
from aotcli.analysis.matching.spread import Wave
from aotcli.ir.joint import JointGraph, NodeKind
from aotcli.ir.pairing import Match, Pairing

_RADIUS = 4
_ROUNDS = 4


def match_graphs(left: JointGraph, right: JointGraph) -> Pairing:
    """Pair the nodes of `left` with those of `right`, each at most once: placeholders with placeholders, ops with ops,
    the output with the output. Names of nodes play no part, and `match_graphs(right, left)` is the mirror of it."""
    with _without_collection():
        return _match_either_way(left, right)


@contextmanager
def _without_collection() -> Generator[None]:
    """No garbage collection while tables of numbers grow and nothing is dropped: it would take a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _match_either_way(left: JointGraph, right: JointGraph) -> Pairing:
    numbers = Numbers()
    sides = read_side(left, numbers), read_side(right, numbers)
    # Among equals a choice may fall to what comes first: the graphs are put in an order of their own.
    first = first_of(*sides, numbers)
    if first is None:
        positions = tuple(range(len(left.nodes)))
        return Pairing(positions, positions, (Match.EXACT,) * len(positions))
    if first is sides[0]:
        return _match(sides[0], sides[1])
    return _match(sides[1], sides[0]).mirrored()


def _match(left: Side, right: Side) -> Pairing:
    board = Board(left, right)
    _pair_outputs(board)
    levels = read_levels(left, right)
    if equally_labelled((left.columns.op, right.columns.op), board.scope(forward=False)):
        for level in levels.same:
            _pair_exactly(board, level)
    _pair_named(board, levels.same[0].groups)
    for forward in (True, False):
        for level in levels.same:
            _pair_locally(board, level, board.scope(forward=forward))
    _pair_leftovers(board, levels)
    if exchange(board, levels.same[0].groups) + _part_items(board):
        _pair_leftovers(board, levels)
        _part_items(board)
    grade(board)
    return Pairing(tuple(left.mate), tuple(right.mate), tuple(board.match))


def _pair_outputs(board: Board) -> None:
    i, j = len(board.left.nodes) - 1, len(board.right.nodes) - 1
    if i >= 0 and j >= 0 and board.left.nodes[i].kind is board.right.nodes[j].kind is NodeKind.OUTPUT:
        board.pair(i, j, Match.ALIGNED)


def _pair_exactly(board: Board, level: Level) -> None:
    scope = board.scope(forward=False)
    labels = level.labels(scope)
    if not scope.left or not equally_labelled(labels, scope):
        return
    coloured = two_sided(board, labels, scope)
    # Modules and names of parameters are given up only where that explains most of the graph.
    if level.placed or mostly_equal(coloured):
        pair_equal(board, coloured, Match.EXACT)


def _pair_named(board: Board, groups: Both) -> None:
    """Pair placeholders that have a name in the model, by module and name, whatever their shape."""
    found: dict[tuple[int, str], tuple[list[int], list[int]]] = {}
    for place, side in enumerate((board.left, board.right)):
        for node, leaf in enumerate(side.columns.leaf):
            if leaf is not None and side.mate[node] < 0:
                found.setdefault((groups[place][node], leaf), ([], []))[place].append(node)
    for ours, theirs in found.values():
        if len(ours) == len(theirs) == 1:
            board.pair(ours[0], theirs[0], Match.WIRED)


def _pair_locally(board: Board, level: Level, scope: Scope) -> None:
    labels = level.labels(scope)
    for _ in range(_ROUNDS):
        scope = board.still_free(scope)
        inner = scope.shared(labels)
        if not inner.left:
            return
        if not pair_equal(board, two_sided(board, labels, scope), Match.WIRED) + _spread(board, labels, inner):
            break
    for coloured in reversed(neighbourhoods(board, labels, scope, _RADIUS)):
        pair_unique(board, coloured, Match.NEAR)
    _pair_placed(board, level, labels, scope, bridged=False)


def _pair_placed(board: Board, level: Level, labels: Both, scope: Scope, *, bridged: bool) -> None:
    inner = board.still_free(scope).shared(labels)
    _spread(board, labels, inner)
    if align_groups(board, labels, level.groups, board.still_free(inner), bridged=bridged):
        _spread(board, labels, board.still_free(inner))


def _pair_leftovers(board: Board, levels: Levels) -> None:
    """Regions of equal shape whose ops are others; then what one inserted node has cut off; then single nodes."""
    pair_regions(board, levels.changed)
    for level in levels.same:
        scope = board.scope(forward=False)
        _pair_placed(board, level, level.labels(scope), scope, bridged=True)
    pair_voted(board)


def _part_items(board: Board) -> int:
    """Part what takes tuples apart that are no pair; how many there were."""
    left, right = board.left, board.right
    paired = [(node, source) for node, source in left.item_of.items() if left.mate[node] >= 0]
    lost = [node for node, source in paired if left.mate[source] != right.item_of[left.mate[node]]]
    for node in lost:
        board.part(node)
    return len(lost)


def _spread(board: Board, labels: Both, scope: Scope) -> int:
    """From all pairs next to the nodes of a scope, but the output: its arguments have no places in common."""
    left = board.left
    near = bytearray(len(left.nodes))
    for node in scope.left:
        if left.mate[node] < 0:
            for source in left.inputs[node]:
                near[source] = 1
            for user, _ in left.users[node]:
                near[user] = 1
            for primal in left.returns.primals.get(node, ()):
                near[primal] = 1
    start = [node for node, mate in enumerate(left.mate) if near[node] and mate >= 0]
    return Wave(board, labels, scope).spread(start, Match.WIRED)

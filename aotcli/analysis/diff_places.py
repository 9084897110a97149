"""Where two graphs differ: nodes without a partner and pairs of different ops, gathered into places.

A *place* is what belongs together: nodes that read one another, or come from one line of one module, within one layer
(the module path up to its last number). Places of the two sides are one where they hang on the same paired node. So the
forward and the backward of one change are one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from aotcli.analysis.summary import backward_marks
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.pairing import Pairing


def layer_of(path: str | None) -> str:
    """The layer that a module belongs to: its path up to the last number, "" where there is none."""
    parts = (path or "").split(".")
    while parts and not parts[-1].isdigit():
        parts.pop()
    return ".".join(parts)


class PlaceSide:
    """One graph, and which of its nodes have no equal in the other."""

    def __init__(self, graph: JointGraph, odd: set[int]) -> None:
        self.graph = graph
        self.odd = odd
        self.own_layers = {position: layer_of(graph.nodes[position].module) for position in odd}
        self.layers = self._adopted()

    def _adopted(self) -> dict[int, str]:
        """The layer of each odd node. One in no layer, such as the sum of two gradients, goes with its odd neighbours
        where they are of one layer."""
        layers = dict(self.own_layers)
        for position in sorted(self.odd):
            if not layers[position]:
                near = (*self.graph.inputs_of[position], *self.graph.users_of[position])
                found = {self.own_layers[each] for each in near if each in self.odd} - {""}
                if len(found) == 1:
                    layers[position] = found.pop()
        return layers

    @cached_property
    def backward(self) -> tuple[bool, ...]:
        return backward_marks(self.graph)

    @cached_property
    def layer_sizes(self) -> Counter[str]:
        """Ops of each layer."""
        modules = Counter(node.module for node in self.graph.nodes if node.kind is NodeKind.OP)
        sizes: Counter[str] = Counter()
        for module, count in modules.items():
            sizes[layer_of(module)] += count
        return sizes


@dataclass(frozen=True, slots=True)
class Place:
    """Positions of one place on both sides, in order."""

    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """All places of two graphs."""

    left: PlaceSide
    right: PlaceSide
    places: tuple[Place, ...]


def find_places(left: JointGraph, right: JointGraph, pairing: Pairing) -> Places:
    """Gather what has no equal into places. Linear in nodes and edges, but for sorting."""
    changed = [
        (there, here)
        for there, here in enumerate(pairing.right_of)
        if here >= 0 and _is_changed(left.nodes[there], right.nodes[here])
    ]
    mine = PlaceSide(left, _unpaired(left, pairing.right_of) | {p for p, _ in changed})
    other = PlaceSide(right, _unpaired(right, pairing.left_of) | {q for _, q in changed})
    return Places(mine, other, tuple(_places(mine, other, pairing, changed)))


def _unpaired(graph: JointGraph, partners: Sequence[int]) -> set[int]:
    """Positions of nodes without a partner; what a graph returns is no op."""
    return {p for p, q in enumerate(partners) if q < 0 and graph.nodes[p].kind is not NodeKind.OUTPUT}


def _is_changed(node: Node, other: Node) -> bool:
    return node.kind is not other.kind or (node.kind is NodeKind.OP and node.target != other.target)


def _places(left: PlaceSide, right: PlaceSide, pairing: Pairing, changed: Sequence[tuple[int, int]]) -> list[Place]:
    offset = len(left.graph.nodes)
    joined = _Sets([*left.odd, *(offset + position for position in right.odd)])
    for there, here in changed:
        joined.join(there, offset + here)
    for side, shift in ((left, 0), (right, offset)):
        for a, b in _within(side):
            joined.join(shift + a, shift + b)
    for a, b in _across(left, right, pairing):
        joined.join(a, offset + b)
    members: dict[int, tuple[list[int], list[int]]] = {}
    for position in sorted(left.odd):
        members.setdefault(joined.find(position), ([], []))[0].append(position)
    for position in sorted(right.odd):
        members.setdefault(joined.find(offset + position), ([], []))[1].append(position)
    return [Place(tuple(mine), tuple(other)) for mine, other in members.values()]


def _within(side: PlaceSide) -> Iterator[tuple[int, int]]:
    """Odd nodes of one side that belong together: one reads the other, or both come from one line of one module."""
    lines: dict[tuple[str, str | None, str], int] = {}
    for position in side.odd:
        node = side.graph.nodes[position]
        for source in side.graph.inputs_of[position]:
            if source in side.odd and side.layers[source] == side.layers[position]:
                yield source, position
        if node.source is not None and node.module is not None:
            yield lines.setdefault((side.layers[position], node.module, node.source), position), position


def _across(left: PlaceSide, right: PlaceSide, pairing: Pairing) -> Iterator[tuple[int, int]]:
    """Odd nodes of the two sides that read, or are read by, the same paired node, within one layer."""
    if not left.odd or not right.odd:
        return
    layers = _layer_pairs(left, right, pairing)
    inputs, users = left.graph.inputs_of, left.graph.users_of
    for back, neighbours_left, neighbours_right in (
        (inputs, users, right.graph.users_of),
        (users, inputs, right.graph.inputs_of),
    ):
        for there in sorted({near for position in left.odd for near in back[position]}):
            here = pairing.right_of[there]
            if here < 0:
                continue
            mine = [p for p in neighbours_left[there] if p in left.odd]
            other = [p for p in neighbours_right[here] if p in right.odd] if mine else []
            first: dict[tuple[str, str], tuple[int, int]] = {}
            for a, b in _same_layer(left, right, mine, other, layers):
                key = left.layers[a], right.layers[b]
                known = first.setdefault(key, (a, b))
                yield a, known[1]
                yield known[0], b


def _same_layer(
    left: PlaceSide, right: PlaceSide, mine: Sequence[int], other: Sequence[int], layers: set[tuple[str, str]]
) -> Iterator[tuple[int, int]]:
    """Pairs that reach every node which has one of its own layer on the other side; no more than twice as many."""
    by_layer: dict[str, list[int]] = {}
    for b in other:
        by_layer.setdefault(right.layers[b], []).append(b)
    reached: set[str] = set()
    for a in mine:
        for layer, positions in by_layer.items():
            if (left.layers[a], layer) in layers:
                yield a, positions[0]
                if layer not in reached:
                    reached.add(layer)
                    yield from ((a, b) for b in positions[1:])


def _layer_pairs(left: PlaceSide, right: PlaceSide, pairing: Pairing) -> set[tuple[str, str]]:
    """Which layer is which: the one that most of its paired ops lie in, seen from both sides; layers of one name where
    neither has pairs."""
    nodes, others = left.graph.nodes, right.graph.nodes
    modules = Counter(
        (nodes[there].module, others[here].module)
        for there, here in enumerate(pairing.right_of)
        if here >= 0 and nodes[there].kind is NodeKind.OP
    )
    votes: Counter[tuple[str, str]] = Counter()
    for (mine, other), count in modules.items():
        votes[layer_of(mine), layer_of(other)] += count
    best: list[dict[str, tuple[int, str]]] = [{}, {}]
    for (mine, other), count in votes.items():
        best[0][mine] = max(best[0].get(mine, (0, "")), (count, other))
        best[1][other] = max(best[1].get(other, (0, "")), (count, mine))
    found = {(mine, other) for mine, (_, other) in best[0].items()}
    found |= {(mine, other) for other, (_, mine) in best[1].items()}
    unknown = {*left.layers.values()} - best[0].keys(), {*right.layers.values()} - best[1].keys()
    return found | {(layer, layer) for layer in unknown[0] | unknown[1]}


class _Sets:
    """Disjoint sets of integers."""

    def __init__(self, members: Sequence[int]) -> None:
        self._parent = {member: member for member in members}

    def find(self, member: int) -> int:
        root = member
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[member] != root:
            self._parent[member], member = root, self._parent[member]
        return root

    def join(self, a: int, b: int) -> None:
        self._parent[self.find(a)] = self.find(b)

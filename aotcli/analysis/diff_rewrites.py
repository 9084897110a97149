"""Ops that became others: nodes without a partner and pairs of different ops, gathered into places, folded by layer.

A *place* is what belongs together: nodes that read one another, or come from one line of one module, within one layer
(the module path up to its last number). Places of the two sides are one where they hang on the same paired node. So the
forward and the backward of one change are one place, and twelve layers that changed alike are one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from aotcli.analysis.diff_saved import folded_modules
from aotcli.analysis.diff_side import is_free
from aotcli.analysis.layers import layer_pattern
from aotcli.analysis.op_names import op_label
from aotcli.analysis.summary import backward_marks
from aotcli.ir.difference import Rewrite, RewriteSide
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.pairing import Pairing

_PLACEHOLDERS = {
    NodeKind.PARAM: "parameter",
    NodeKind.BUFFER: "buffer",
    NodeKind.INPUT: "input",
    NodeKind.TANGENT: "tangent",
    NodeKind.SEED: "seed",
    NodeKind.BACKWARD_SEED: "seed",
    NodeKind.ATTR: "constant",
}


def layer_of(path: str | None) -> str:
    """The layer that a module belongs to: its path up to the last number, "" where there is none."""
    parts = (path or "").split(".")
    last = max((position for position, part in enumerate(parts) if part.isdigit()), default=-1)
    return ".".join(parts[: last + 1])


class _Side:
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
        return Counter(layer_of(node.module) for node in self.graph.nodes if node.kind is NodeKind.OP)


@dataclass(frozen=True, slots=True)
class _Place:
    """Positions of one place on both sides, in order."""

    left: tuple[int, ...]
    right: tuple[int, ...]


def rewrites(left: JointGraph, right: JointGraph, pairing: Pairing, region: int) -> list[Rewrite]:
    """Rows of places, folded by repeated layer. Linear in nodes and edges, but for a sort."""
    changed = [
        (there, here)
        for there, here in enumerate(pairing.right_of)
        if here >= 0 and _is_changed(left.nodes[there], right.nodes[here])
    ]
    mine = _Side(left, {p for p, q in enumerate(pairing.right_of) if q < 0} | {p for p, _ in changed})
    other = _Side(right, {q for q, p in enumerate(pairing.left_of) if p < 0} | {q for _, q in changed})
    groups: dict[tuple[object, ...], list[_Place]] = {}
    for place in _places(mine, other, pairing, changed):
        groups.setdefault((_signature(mine, place.left), _signature(other, place.right)), []).append(place)
    return [_row(mine, other, group, region) for group in groups.values()]


def _is_changed(node: Node, other: Node) -> bool:
    return node.kind is not other.kind or (node.kind is NodeKind.OP and node.target != other.target)


def _places(left: _Side, right: _Side, pairing: Pairing, changed: Sequence[tuple[int, int]]) -> list[_Place]:
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
    return [_Place(tuple(mine), tuple(other)) for mine, other in members.values()]


def _within(side: _Side) -> Iterator[tuple[int, int]]:
    """Odd nodes of one side that belong together: one reads the other, or both come from one line of one module."""
    lines: dict[tuple[str | None, str], int] = {}
    for position in side.odd:
        node = side.graph.nodes[position]
        for source in side.graph.inputs_of[position]:
            if source in side.odd and side.layers[source] == side.layers[position]:
                yield source, position
        if node.source is not None and node.module is not None:
            yield lines.setdefault((node.module, node.source), position), position


def _across(left: _Side, right: _Side, pairing: Pairing) -> Iterator[tuple[int, int]]:
    """Odd nodes of the two sides that read, or are read by, the same paired node, within one layer."""
    layers = _layer_pairs(left, right, pairing)
    for neighbours_left, neighbours_right in (
        (left.graph.users_of, right.graph.users_of),
        (left.graph.inputs_of, right.graph.inputs_of),
    ):
        for there, here in enumerate(pairing.right_of):
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
    left: _Side, right: _Side, mine: Sequence[int], other: Sequence[int], layers: set[tuple[str, str]]
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


def _layer_pairs(left: _Side, right: _Side, pairing: Pairing) -> set[tuple[str, str]]:
    """Which layer is which: the one that most of its paired ops lie in, seen from both sides; layers of one name where
    neither has pairs."""
    votes: Counter[tuple[str, str]] = Counter()
    for there, here in enumerate(pairing.right_of):
        if here >= 0 and left.graph.nodes[there].kind is NodeKind.OP:
            votes[layer_of(left.graph.nodes[there].module), layer_of(right.graph.nodes[here].module)] += 1
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


# Rows.


def _label(node: Node) -> str:
    return op_label(node.target) if node.kind is NodeKind.OP else _PLACEHOLDERS.get(node.kind, node.kind.value)


def _labels(side: _Side, positions: Sequence[int], *, backward: bool) -> tuple[tuple[str, int], ...]:
    """Labels of what computes, in graph order, with counts; views only where there is nothing else."""
    chosen = [p for p in positions if side.backward[p] is backward]
    costly = [p for p in chosen if not is_free(side.graph.nodes[p])]
    return tuple(Counter(_label(side.graph.nodes[p]) for p in costly or chosen).items())


def _signature(side: _Side, positions: Sequence[int]) -> tuple[object, ...]:
    """What places of one row have in common: the module and the ops of the forward; those of the backward differ from
    layer to layer where gradients are summed, so they count only where there is nothing else."""
    modules = sorted({layer_pattern(module) for p in positions if (module := side.graph.nodes[p].module) is not None})
    forward = sorted(_labels(side, positions, backward=False))
    return tuple(modules), tuple(forward or sorted(_labels(side, positions, backward=True)))


def _row(left: _Side, right: _Side, places: Sequence[_Place], region: int) -> Rewrite:
    mine = _side(left, sorted(place.left for place in places))
    other = _side(right, sorted(place.right for place in places))
    at = min(place.left[:1] or (-1,) for place in places)[0], min(place.right[:1] or (-1,) for place in places)[0]
    whole = _is_whole(left, places, 0) if other.empty else _is_whole(right, places, 1) if mine.empty else False
    return Rewrite(len(places), mine, other, at, whole, region)


def _is_whole(side: _Side, places: Sequence[_Place], number: int) -> bool:
    """Whether each place is all of one layer."""
    for place in places:
        positions = (place.left, place.right)[number]
        ops = [p for p in positions if side.graph.nodes[p].kind is NodeKind.OP]
        layers = Counter(layer for p in ops if (layer := side.own_layers[p]))
        if len(layers) != 1 or side.layer_sizes[next(iter(layers))] != layers.total():
            return False
    return True


def _side(side: _Side, places: Sequence[tuple[int, ...]]) -> RewriteSide:
    nodes = side.graph.nodes
    first = places[0]
    everything = [position for place in places for position in place]
    return RewriteSide(
        module=_module(side, places) if everything else "",
        forward=_labels(side, first, backward=False),
        backward=_labels(side, first, backward=True),
        names=tuple(nodes[position].name for position in everything),
        flops=sum(nodes[position].flops or 0 for position in everything),
        source=next((nodes[position].source for position in first if nodes[position].source), None),
        free=bool(everything) and all(is_free(nodes[position]) for position in everything),
    )


def _module(side: _Side, places: Sequence[tuple[int, ...]]) -> str:
    """The module that encloses each place, all of them under one name."""
    enclosing: list[str | None] = []
    for place in places:
        paths = [path for position in place if (path := side.graph.nodes[position].module) is not None]
        layered = [path for path in paths if layer_of(path)]
        enclosing.append(_common(layered or paths) if paths else None)
    return folded_modules(enclosing)


def _common(paths: Sequence[str]) -> str:
    """The longest path that all of them start with."""
    common = paths[0].split(".")
    for path in paths[1:]:
        parts = path.split(".")
        length = 0
        while length < min(len(common), len(parts)) and common[length] == parts[length]:
            length += 1
        common = common[:length]
    return ".".join(common)

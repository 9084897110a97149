"""Pairs of nodes of two joint graphs: by what leads to them and follows from them, then by place in their module."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.pairing import Match, Pairing
from aotcli.ir.tensor import tensor_leaves


def match_graphs(left: JointGraph, right: JointGraph) -> Pairing:
    """Pair the nodes of `left` with those of `right`, each at most once, placeholders with placeholders and ops with
    ops. Names of nodes play no part. `match_graphs(right, left)` is the mirror of it."""
    found = _Pairs(len(left.nodes), len(right.nodes))
    numbers: dict[Hashable, int] = {}
    labels = [[numbers.setdefault(_label(node), len(numbers)) for node in graph.nodes] for graph in (left, right)]
    found.pair_alike([_two_sided(graph, own, numbers) for graph, own in zip((left, right), labels, strict=True)])
    found.pair_alike(labels, Match.ALIGNED)
    return Pairing(tuple(found.right_of), tuple(found.left_of), tuple(found.match))


class _Pairs:
    def __init__(self, left: int, right: int) -> None:
        self.right_of = [-1] * left
        self.left_of = [-1] * right
        self.match: list[Match | None] = [None] * left

    def pair_alike(self, keys: Sequence[Sequence[int]], how: Match = Match.EXACT) -> None:
        """Pair free nodes of equal key, in order."""
        places: dict[int, list[int]] = {}
        for j, key in enumerate(keys[1]):
            if self.left_of[j] < 0:
                places.setdefault(key, []).append(j)
        for found in places.values():
            found.reverse()
        for i, key in enumerate(keys[0]):
            if self.right_of[i] < 0 and places.get(key):
                j = places[key].pop()
                self.right_of[i], self.left_of[j], self.match[i] = j, i, how


def _label(node: Node) -> Hashable:
    what = node.target if node.kind is NodeKind.OP else (node.origin or "")
    consts = node.args[1:] if node.target == "operator.getitem" else ()
    specs = tuple((leaf.shape, leaf.dtype) for leaf in tensor_leaves(node.value))
    return (node.kind, what, consts, node.module, node.partitioner_tag == "is_backward", specs)


def _two_sided(graph: JointGraph, labels: Sequence[int], numbers: dict[Hashable, int]) -> list[int]:
    up: list[int] = []
    for position, inputs in enumerate(graph.inputs_of):
        up.append(numbers.setdefault(("up", labels[position], *(up[i] for i in inputs)), len(numbers)))
    down = [0] * len(up)
    for position in reversed(range(len(up))):
        users = tuple(sorted(down[user] for user in graph.users_of[position]))
        down[position] = numbers.setdefault(("down", labels[position], users), len(numbers))
    return [numbers.setdefault(("both", a, b), len(numbers)) for a, b in zip(up, down, strict=True)]

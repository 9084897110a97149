"""One of the two graphs under comparison: how it is wired, and what of it has been paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.matching.columns import GETITEM, Columns, Numbers, read_columns
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind, Ref

Users = Sequence[Sequence[tuple[int, int]]]
"""For each node its users, each with the place of the node among the user's inputs."""

_BACKWARD_TAGS = ("is_backward", "must_be_in_backward")
_BACKWARD_KINDS = (NodeKind.TANGENT, NodeKind.BACKWARD_SEED)


@dataclass(frozen=True, slots=True)
class Returns:
    """Who is returned as what: `outputs` gives, by node, its places among the forward's outputs, `primals` the primals
    whose gradient it is, and `gradient`, by primal, the node that is its gradient."""

    outputs: dict[int, tuple[int, ...]]
    primals: dict[int, tuple[int, ...]]
    gradient: dict[int, int]


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """A graph to be paired. The output node is nobody's user: what is returned is found in `returns`.

    `order` are the positions in canonical order, so that the order of independent nodes does not matter. `anchor` is a
    negative number for a node that has been paired, the same for its partner, and 0 for one that is free; `mate` is
    the partner, or -1. Both change as pairs are found. `item_of` gives, for what takes a tuple apart, the tuple.
    """

    nodes: Sequence[Node]
    inputs: Sequence[Sequence[int]]
    users: Users
    forward_users: Users
    backward: list[bool]
    returns: Returns
    order: Sequence[int]
    columns: Columns
    item_of: dict[int, int]
    anchor: list[int]
    mate: list[int]


def read_side(graph: JointGraph, numbers: Numbers) -> Side:
    inputs = graph.inputs_of
    backward: list[bool] = []
    for node, sources in zip(graph.nodes, inputs, strict=True):
        tagged = node.partitioner_tag in _BACKWARD_TAGS or node.kind in _BACKWARD_KINDS
        backward.append(tagged or (node.kind is NodeKind.OP and any(map(backward.__getitem__, sources))))
    users: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
    for position, sources in enumerate(inputs):
        if graph.nodes[position].kind is NodeKind.OUTPUT:
            continue
        for place, source in enumerate(sources):
            users[source].append((position, place))
    return Side(
        nodes=graph.nodes,
        inputs=inputs,
        users=users,
        forward_users=[_forward(own, backward) for own in users],
        backward=backward,
        returns=_returns(graph),
        order=canonical_order(graph),
        columns=read_columns(graph, numbers),
        item_of=_items(graph),
        anchor=[0] * len(users),
        mate=[-1] * len(users),
    )


def _items(graph: JointGraph) -> dict[int, int]:
    nodes = enumerate(graph.nodes)
    return {place: graph.inputs_of[place][0] for place, node in nodes if node.target == GETITEM and node.refs}


def _forward(users: list[tuple[int, int]], backward: Sequence[bool]) -> Sequence[tuple[int, int]]:
    """Those of a node's users that belong to the forward."""
    kept = [each for each in users if not backward[each[0]]]
    return users if len(kept) == len(users) else kept or ()


def _returns(graph: JointGraph) -> Returns:
    outputs: dict[int, tuple[int, ...]] = {}
    primals: dict[int, tuple[int, ...]] = {}
    gradient: dict[int, int] = {}
    for place, out in enumerate(graph.forward_outputs):
        if isinstance(out, Ref):
            node = graph.index[out.name]
            outputs[node] = (*outputs.get(node, ()), place)
    positions = [position for position, node in enumerate(graph.nodes) if node.kind in PRIMAL_KINDS]
    for primal, out in zip(positions, graph.backward_outputs, strict=False):
        if isinstance(out, Ref):
            node = graph.index[out.name]
            primals[node] = (*primals.get(node, ()), primal)
            gradient[primal] = node
    return Returns(outputs, primals, gradient)


def first_of(left: Side, right: Side, numbers: Numbers) -> Side | None:
    """One of the two, the same whichever comes first; None where nothing that is looked at differs."""
    if len(left.nodes) != len(right.nodes):
        return min(left, right, key=lambda side: len(side.nodes))
    ours, theirs = left.columns, right.columns
    numbered = (ours.op, theirs.op), (ours.form, theirs.form), (ours.shape, theirs.shape), (ours.dtype, theirs.dtype)
    for mine, other in numbered:
        for a, b in zip(mine, other, strict=True):
            if a != b:
                return left if repr(numbers.key(a)) < repr(numbers.key(b)) else right
    plain = [_plain(side) for side in (left, right)]
    if plain[0] == plain[1]:
        return None
    return left if repr(plain[0]) < repr(plain[1]) else right


def _plain(side: Side) -> tuple[object, ...]:
    """All of a side that is the same in every process and is not in its numbered columns."""
    types = [node.module_type for node in side.nodes]
    columns = side.columns
    return (columns.module, columns.leaf, types, side.inputs, side.backward, side.order, side.returns)

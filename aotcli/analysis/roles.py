"""Which half of the step each node belongs to (torch's `classify_nodes`, 2.13), and how far it is from the backward.

* tangents closure: tangents, ops pinned to the backward, and everything computed from them: the backward proper;
* required backward: that, and the gradients that the backward returns even where no tangent reaches them;
* required forward: what is left of the graph when it may start from primals and forward seeds only and must end in the
  forward's outputs; ops with an effect stay;
* unclaimed: neither, for instance a mask that only the backward reads though no tangent reaches it.

Distance from the backward counts edges: 0 for a node that the forward does not need, 1 for one that such a node reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from aotcli.errors import StrategyError
from aotcli.ir.joint import PRIMAL_KINDS, Arg, JointGraph, Mapping, Node, NodeKind, Ref, Tag

FORWARD_INPUT_KINDS = PRIMAL_KINDS | {NodeKind.SEED}
"""Placeholders that the forward is given."""

NEVER = 10**9
"""Distance of a node from which no path leads to the backward."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles by position. `forward_order` numbers the required forward nodes from 0; elsewhere it is -1."""

    required_forward: tuple[bool, ...]
    required_backward: tuple[bool, ...]
    tangents_closure: tuple[bool, ...]
    unclaimed: tuple[bool, ...]
    forward_order: tuple[int, ...]
    dist_from_backward: tuple[int, ...]


def must_be_in_backward(node: Node) -> bool:
    """Whether tracing pinned the node to the backward, or it mutates something there."""
    if node.partitioner_tag == "must_be_in_backward":
        return True
    return node.partitioner_tag == "is_backward" and Tag.MUTABLE in node.tags


def must_be_in_forward(node: Node) -> bool:
    """Whether tracing pinned the node to the forward, or it mutates something there."""
    if node.partitioner_tag == "must_be_in_forward":
        return True
    return node.partitioner_tag not in ("is_backward", "must_be_in_backward") and Tag.MUTABLE in node.tags


def classify(graph: JointGraph) -> Roles:
    """Roles of all nodes.

    Raises StrategyError where an output of the forward can only be computed from tangents.
    """
    pinned = [must_be_in_backward(node) for node in graph.nodes]
    closure = _tangents_closure(graph, pinned)
    backward = list(closure)
    for out in graph.backward_outputs:
        if isinstance(out, Ref):
            backward[graph.index[out.name]] = True
    forward = _required_forward(graph, pinned)
    order: list[int] = []
    count = 0
    for required in forward:
        order.append(count if required else -1)
        count += required
    return Roles(
        required_forward=tuple(forward),
        required_backward=tuple(backward),
        tangents_closure=tuple(closure),
        unclaimed=tuple(not (f or b) for f, b in zip(forward, backward, strict=True)),
        forward_order=tuple(order),
        dist_from_backward=tuple(_distances(graph, forward)),
    )


def _tangents_closure(graph: JointGraph, pinned: list[bool]) -> list[bool]:
    users = graph.users_of
    closure = [node.kind is NodeKind.TANGENT or there for node, there in zip(graph.nodes, pinned, strict=True)]
    for position in range(len(closure)):
        if closure[position]:
            for user in users[position]:
                closure[user] = True
    return closure


def _required_forward(graph: JointGraph, pinned: list[bool]) -> list[bool]:
    inputs = graph.inputs_of
    valid = [False] * len(graph.nodes)
    available = valid.__getitem__
    for position, node in enumerate(graph.nodes):
        kind = node.kind
        if kind is NodeKind.OP:
            valid[position] = not pinned[position] and all(map(available, inputs[position]))
        else:
            valid[position] = kind in FORWARD_INPUT_KINDS or (kind is NodeKind.ATTR and not pinned[position])
    required = [False] * len(graph.nodes)
    for position in _forward_results(graph, valid):
        required[position] = True
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        kept = valid[position] and (node.kind in FORWARD_INPUT_KINDS or Tag.EFFECTFUL in node.tags)
        if required[position] or kept:
            required[position] = True
            for source in inputs[position]:
                required[source] = True
    return required


def _forward_results(graph: JointGraph, valid: list[bool]) -> list[int]:
    """Positions of what the forward returns. An output that only the backward can compute but that is, by meaning, an
    input written in place is replaced by that input."""
    positions: list[int] = []
    for out in graph.forward_outputs:
        if not isinstance(out, Ref):
            continue
        position = graph.index[out.name]
        if not valid[position]:
            position = _written_input(graph, graph.nodes[position], valid)
        positions.append(position)
    return positions


def _written_input(graph: JointGraph, node: Node, valid: list[bool]) -> int:
    candidates: list[Arg] = []
    if node.target == "aten.copy_.default" and must_be_in_backward(node):
        candidates.append(node.args[0])
    if node.target in ("aten.view.default", "aten.reshape.default") and isinstance(node.args[0], Ref):
        candidates.append(_functionalized_argument(graph, graph[node.args[0].name]))
    candidates.append(_functionalized_argument(graph, node))
    for candidate in candidates:
        if isinstance(candidate, Ref) and valid[graph.index[candidate.name]]:
            return graph.index[candidate.name]
    raise StrategyError(
        f"the forward returns {node.name} ({node.target}), which only the backward can compute",
        why="it depends on tangents or is pinned to the backward",
        fix="capture the model again; if this stays, report the model",
    )


def _functionalized_argument(graph: JointGraph, node: Node) -> Arg:
    """The argument of a functionalized kernel that a getitem stands for: getitem(kernel(kwargs={k: x}), k) is x."""
    if node.target != "operator.getitem" or not isinstance(node.args[0], Ref):
        return None
    wrapped = dict(graph[node.args[0].name].kwargs).get("kwargs")
    return dict(wrapped.items).get(str(node.args[1])) if isinstance(wrapped, Mapping) else None


def _distances(graph: JointGraph, forward: list[bool]) -> list[int]:
    users = graph.users_of
    distance = [0] * len(graph.nodes)
    for position in range(len(graph.nodes) - 1, -1, -1):
        if graph.nodes[position].kind is NodeKind.OUTPUT:
            distance[position] = NEVER
        elif forward[position]:
            nearest = NEVER - 1
            for user in users[position]:
                if distance[user] < nearest:
                    nearest = distance[user]
            distance[position] = nearest + 1
    return distance

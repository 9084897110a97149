"""Common-subexpression elimination on a record, with the rules of torch's `fx_graph_cse` (2.13).

Of several ops that compute the same thing from the same inputs the first stays and stands for the others. Kept apart:

* placeholders, constants, random ops and `aten.empty` (their tag is NO_CSE);
* ops whose result shares its storage with an output: eager returns separate tensors there;
* ops between which something is mutated: a counter of mutations seen so far must be equal;
* arguments that Python calls equal but that differ in type: 1, 1.0 and True.

torch finds candidates by a hash of the arguments and compares only with the first op of that hash, so an op whose hash
collides with a different one (Python hashes -1 and -2 alike) is neither merged nor remembered. Both tools must leave
the same nodes, so this module does that too. torch's exception for unbacked symbols never applies (it asks whether a
value is a sympy symbol, and values are SymInts), so there is none here.
"""

from __future__ import annotations

import dataclasses

from aotcli.ir.joint import Arg, Const, JointGraph, Mapping, Node, NodeKind, Ref, Slice, Tag, map_refs
from aotcli.ir.tensor import TensorSpec

_Key = tuple[str, tuple[object, ...]]

_EFFECT_WORDS = frozenset({"set", "enter", "exit", "seed"})


def eliminate_common(graph: JointGraph) -> tuple[JointGraph, dict[str, str]]:
    """`graph` with duplicates merged, and for each node removed the name of the one that stands for it.

    The graph itself comes back where there are no duplicates.
    """
    kept_apart = _aliases_of_outputs(graph)
    seen = _Seen()
    stands_for: dict[str, str] = {}
    nodes: list[Node] = []
    inputs: list[tuple[int, ...]] = []
    place_of: list[int] = []  # in the new graph, of each old node or of what stands for it
    merged = [False] * len(graph.nodes)
    region = 0
    for position, node in enumerate(graph.nodes):
        region += _mutates(node)
        old_inputs = graph.inputs_of[position]
        read = tuple([place_of[source] for source in old_inputs])
        if any(map(merged.__getitem__, old_inputs)):
            node, read = _renamed(node, stands_for), tuple(dict.fromkeys(read))
        place = len(nodes)
        if node.kind is NodeKind.OP and Tag.NO_CSE not in node.tags and position not in kept_apart:
            place = seen.first_like(node, read, region, place)
        place_of.append(place)
        if place < len(nodes):
            merged[position] = True
            stands_for[node.name] = nodes[place].name
        else:
            nodes.append(node)
            inputs.append(read)
    if not stands_for:
        return graph, stands_for
    return graph.with_nodes(tuple(nodes), tuple(inputs)), stands_for


class _Seen:
    """The ops met so far, each with its place in the new graph and the count of mutations before it.

    The arguments of an op are looked at only once there is a second op with its target and inputs.
    """

    def __init__(self) -> None:
        self._alone: dict[tuple[str, tuple[int, ...]], tuple[Node, int, int] | None] = {}
        self._first: dict[_Key, tuple[Node, int, int]] = {}

    def first_like(self, node: Node, read: tuple[int, ...], region: int, place: int) -> int:
        """The place of the op that stands for `node`, or `place` where it stands for itself."""
        group = (node.target, read)
        if group not in self._alone:
            self._alone[group] = (node, place, region)
            return place
        alone = self._alone[group]
        if alone is not None:
            self._first[_hash_key(alone[0])] = alone
            self._alone[group] = None
        key = _hash_key(node)
        if key not in self._first:
            self._first[key] = (node, place, region)
            return place
        first, first_place, first_region = self._first[key]
        if first.args != node.args or first.kwargs != node.kwargs:
            return place
        if first_region == region:
            return first_place
        self._first[key] = (node, place, region)  # with a mutation between, this one stands for those that follow
        return place


def _renamed(node: Node, rename: dict[str, str]) -> Node:
    return dataclasses.replace(
        node,
        args=tuple(map_refs(arg, rename) for arg in node.args),
        kwargs=tuple((key, map_refs(arg, rename)) for key, arg in node.kwargs),
    )


def _aliases_of_outputs(graph: JointGraph) -> set[int]:
    """Positions of the nodes whose storage is that of some output."""
    if not graph.nodes or graph.nodes[-1].kind is not NodeKind.OUTPUT:
        return set()
    returned: set[int] = set()
    for position in graph.inputs_of[-1]:
        value = graph.nodes[position].value
        if isinstance(value, TensorSpec) and value.storage >= 0:
            returned.add(value.storage)
    return {
        position
        for position, node in enumerate(graph.nodes)
        if isinstance(node.value, TensorSpec) and node.value.storage in returned
    }


def _mutates(node: Node) -> bool:
    """Whether a node changes something, judged by its schema, or by its name where it has none (operator.setitem has
    none; `torch._C._set_grad_enabled` neither)."""
    if node.kind is not NodeKind.OP:
        return False
    if Tag.MUTABLE in node.tags:
        return True
    if node.target.count(".") == 2 or node.target.startswith("higher_order.auto_functionalized"):
        return False
    name = node.target.rpartition(".")[2]
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or not _EFFECT_WORDS.isdisjoint(name.split("_")) or dict(node.kwargs).get("out") is not None


def _hash_key(node: Node) -> _Key:
    leaves: list[object] = []
    for arg in node.args:
        _add_leaves(arg, leaves)
    for _, arg in node.kwargs:
        _add_leaves(arg, leaves)
    return node.target, tuple(leaves)


def _add_leaves(arg: Arg, leaves: list[object]) -> None:
    """Append what torch would hash: the type of each leaf, and its value or, for numbers, Python's hash of it."""
    if isinstance(arg, Ref):
        leaves.append(arg.name)
    elif isinstance(arg, (bool, int, float)):
        leaves.append((type(arg), hash(arg)))
    elif isinstance(arg, tuple):
        for part in arg:
            _add_leaves(part, leaves)
    elif isinstance(arg, Mapping):
        for _, part in arg.items:
            _add_leaves(part, leaves)
    elif isinstance(arg, Slice):
        for part in (arg.start, arg.stop, arg.step):
            _add_leaves(part, leaves)
    elif isinstance(arg, Const):
        leaves.append(arg)
    else:
        leaves.append((type(arg), arg))

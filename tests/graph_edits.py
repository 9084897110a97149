"""Edits of joint graphs that know which node became which: the truth that a pairing is held to."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind, Ref, Tag, map_refs
from aotcli.ir.pairing import Pairing
from aotcli.ir.tensor import TensorSpec, Value


@dataclass(frozen=True)
class Edited:
    """A graph made from another: `truth[i]` is what became of node i of the first, -1 where it is gone."""

    graph: JointGraph
    truth: tuple[int, ...]

    def then(self, edit: Callable[[JointGraph], Edited]) -> Edited:
        """One more edit on top."""
        after = edit(self.graph)
        return Edited(after.graph, tuple(-1 if j < 0 else after.truth[j] for j in self.truth))


def by_name(left: JointGraph, right: JointGraph) -> Edited:
    """Two graphs whose equal names mean equal nodes."""
    return Edited(right, tuple(right.index.get(node.name, -1) for node in left.nodes))


def _rewired(node: Node, rename: dict[str, str]) -> Node:
    args = tuple(map_refs(arg, rename) for arg in node.args)
    return replace(node, args=args, kwargs=tuple((key, map_refs(arg, rename)) for key, arg in node.kwargs))


def _edited(graph: JointGraph, nodes: Sequence[Node]) -> Edited:
    """`graph` with other nodes; those that kept their name are the same ones."""
    edited = replace(graph, nodes=tuple(nodes), fingerprint="")
    return by_name(graph, edited)


def scrambled(graph: JointGraph, seed: int = 0) -> Edited:
    """The same graph with other names of nodes and storages, in another topological order."""
    rng = random.Random(seed)
    order = _some_order(graph, rng)
    numbers = list(range(len(order)))
    rng.shuffle(numbers)
    rename = {graph.nodes[old].name: f"n{number}" for old, number in zip(order, numbers, strict=True)}
    storages: dict[int, int] = {}
    nodes: list[Node] = []
    for old in order:
        node = graph.nodes[old]
        target = rename[node.name] if node.is_placeholder else node.target
        fresh = replace(node, name=rename[node.name], target=target, value=_restored(node.value, storages))
        nodes.append(_rewired(fresh, rename))
    truth = [0] * len(order)
    for new, old in enumerate(order):
        truth[old] = new
    names = {"static_inputs": graph.static_inputs, "mutated": graph.mutated}
    renamed = {key: tuple(rename[name] for name in each) for key, each in names.items()}
    return Edited(replace(graph, nodes=tuple(nodes), fingerprint="", **renamed), tuple(truth))


def _some_order(graph: JointGraph, rng: random.Random) -> list[int]:
    """A random topological order. Placeholders stay where they are, and so do ops whose order is meaning."""
    ordered = {Tag.RANDOM, Tag.IMPURE, Tag.EFFECTFUL, Tag.MUTABLE, Tag.COLLECTIVE}
    order = [position for position, node in enumerate(graph.nodes) if node.is_placeholder]
    waiting = {position: len(inputs) for position, inputs in enumerate(graph.inputs_of)}
    fixed = [position for position, node in enumerate(graph.nodes) if node.tags & ordered]
    after = dict(pairwise(fixed))
    for second in after.values():
        waiting[second] += 1
    ready: list[int] = []

    def release(position: int) -> None:
        followers = [*graph.users_of[position], *([after[position]] if position in after else [])]
        for user in followers:
            waiting[user] -= 1
            if waiting[user] == 0 and graph.nodes[user].kind is not NodeKind.OUTPUT:
                ready.append(user)

    ready += [p for p, node in enumerate(graph.nodes) if waiting[p] == 0 and not node.is_placeholder]
    for position in tuple(order):
        release(position)
    ready = [p for p in dict.fromkeys(ready) if graph.nodes[p].kind is not NodeKind.OUTPUT]
    while ready:
        position = ready.pop(rng.randrange(len(ready)))
        order.append(position)
        release(position)
    return [*order, *(p for p, node in enumerate(graph.nodes) if node.kind is NodeKind.OUTPUT)]


def _restored(value: Value, storages: dict[int, int]) -> Value:
    if isinstance(value, tuple):
        return tuple(_restored(part, storages) for part in value)
    if isinstance(value, TensorSpec) and value.storage >= 0:
        return replace(value, storage=storages.setdefault(value.storage, len(storages)))
    return value


def inserted(graph: JointGraph, after: Collection[str], target: str = "aten.clone.default") -> Edited:
    """An op after each of the nodes `after`, between it and all that reads it."""
    nodes: list[Node] = []
    rename: dict[str, str] = {}
    for node in graph.nodes:
        node = _rewired(node, rename)
        nodes.append(node)
        if node.name in after:
            new = f"inserted after {node.name}"
            tags = frozenset({Tag.POINTWISE, Tag.RECOMPUTABLE, Tag.FUSIBLE})
            nodes.append(
                replace(
                    node,
                    name=new,
                    kind=NodeKind.OP,
                    target=target,
                    args=(Ref(node.name),),
                    kwargs=(),
                    tags=tags,
                    flops=0,
                )
            )
            rename[node.name] = new
    return _edited(graph, nodes)


def inserted_at_random(graph: JointGraph, share: float, seed: int = 0) -> Edited:
    """`inserted` after a share of the ops whose value is one tensor."""
    rng = random.Random(seed)
    names = [node.name for node in graph.nodes if node.kind is NodeKind.OP and isinstance(node.value, TensorSpec)]
    return inserted(graph, set(rng.sample(names, round(share * len(names)))))


def replaced(graph: JointGraph, share: float, seed: int = 0) -> Edited:
    """A share of the ops become some other op, with the same arguments and users."""
    rng = random.Random(seed)
    names = [node.name for node in graph.nodes if node.kind is NodeKind.OP and node.target != "operator.getitem"]
    chosen = set(rng.sample(names, round(share * len(names))))
    others = ("aten.alpha.default", "aten.beta.default", "aten.gamma.default")
    return _edited(
        graph, [replace(node, target=rng.choice(others)) if node.name in chosen else node for node in graph.nodes]
    )


def recast(graph: JointGraph, dtype: str) -> Edited:
    """All floating-point tensors in another dtype."""

    def cast(value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(cast(part) for part in value)
        return replace(value, dtype=dtype) if isinstance(value, TensorSpec) and "float" in value.dtype else value

    return _edited(graph, [replace(node, value=cast(node.value)) for node in graph.nodes])


def without(graph: JointGraph, gone: Collection[str], instead: dict[str, str]) -> Edited:
    """Without the nodes `gone`; what read one of them reads `instead`. Gradients of primals that are gone go too."""
    primals = [node.name for node in graph.nodes if node.kind in PRIMAL_KINDS]
    nodes = [_rewired(node, instead) for node in graph.nodes if node.name not in gone]
    forward = graph.num_forward_outputs
    outputs = nodes[-1].args[0]
    assert isinstance(outputs, tuple)
    kept = [out for name, out in zip(primals, outputs[forward:], strict=True) if name not in gone]
    nodes[-1] = replace(nodes[-1], args=((*outputs[:forward], *kept),))
    static = tuple(name for name in graph.static_inputs if name not in gone)
    return (
        _edited(replace(graph, static_inputs=static), nodes)
        if False
        else by_name(graph, replace(graph, nodes=tuple(nodes), static_inputs=static, fingerprint=""))
    )


@dataclass(frozen=True)
class Score:
    """How a pairing compares with the truth: right pairs over found pairs, and over true pairs."""

    right: int
    found: int
    true: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else 1.0


def score(pairing: Pairing, truth: Sequence[int]) -> Score:
    right = sum(found == true >= 0 for found, true in zip(pairing.right_of, truth, strict=True))
    return Score(right, pairing.paired, sum(true >= 0 for true in truth))


def edit_cost(left: JointGraph, right: JointGraph, right_of: Sequence[int]) -> int:
    """Nodes of one side only, ops that changed, and arguments that a pair reads on one side only."""
    paired = [(i, j) for i, j in enumerate(right_of) if j >= 0]
    cost = len(left.nodes) + len(right.nodes) - 2 * len(paired)
    for i, j in paired:
        ours = [right_of[source] for source in left.inputs_of[i]]
        theirs = list(right.inputs_of[j])
        if left.nodes[i].kind is NodeKind.OUTPUT:
            ours, theirs = sorted(ours), sorted(theirs)
        cost += left.nodes[i].kind is NodeKind.OP and left.nodes[i].target != right.nodes[j].target
        cost += ours != theirs
    return cost

"""Edits of joint graphs that know which node became which: the truth that a pairing is held to."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from aotcli.ir.joint import PRIMAL_KINDS, Arg, Const, JointGraph, Node, NodeKind, Ref, Tag, map_refs
from aotcli.ir.pairing import Pairing
from aotcli.ir.tensor import Dim, SymbolSpec, TensorSpec, Value

GETITEM = "operator.getitem"
STRANGE_OPS = ("aten.alpha.default", "aten.beta.default", "aten.gamma.default")
_POINTWISE = frozenset({Tag.POINTWISE, Tag.RECOMPUTABLE, Tag.FUSIBLE})
_ORDERED = frozenset({Tag.RANDOM, Tag.IMPURE, Tag.EFFECTFUL, Tag.MUTABLE, Tag.COLLECTIVE})


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


def _edited(graph: JointGraph, nodes: Sequence[Node]) -> Edited:
    """`graph` with other nodes; those that kept their name are the same ones."""
    return by_name(graph, replace(graph, nodes=tuple(nodes), fingerprint=""))


def _rewired(node: Node, rename: dict[str, str]) -> Node:
    args = tuple(map_refs(arg, rename) for arg in node.args)
    return replace(node, args=args, kwargs=tuple((key, map_refs(arg, rename)) for key, arg in node.kwargs))


def _ops(graph: JointGraph) -> list[Node]:
    """Ops with one tensor for a value."""
    return [node for node in graph.nodes if node.kind is NodeKind.OP and isinstance(node.value, TensorSpec)]


def _sample(graph: JointGraph, share: float, rng: random.Random) -> set[str]:
    names = [node.name for node in _ops(graph) if node.target != GETITEM]
    return set(rng.sample(names, round(share * len(names))))


# The same graph, told otherwise.


def scrambled(graph: JointGraph, seed: int = 0) -> Edited:
    """The same graph in another topological order; names of nodes are dealt out anew among them, so that each lies,
    symbols and storages have other names and numbers."""
    rng = random.Random(seed)
    order = _some_order(graph, rng)
    names = [node.name for node in graph.nodes]
    dealt = rng.sample(names, len(names))
    rename = dict(zip(names, dealt, strict=True))
    symbols = {symbol.name: f"u{number}" for number, symbol in enumerate(graph.symbols)}
    storages: dict[int, int] = {}
    nodes: list[Node] = []
    for old in order:
        node = graph.nodes[old]
        target = rename[node.name] if node.is_placeholder else node.target
        binds = None if node.binds is None else _resymboled(node.binds, symbols)
        value = _revalued(node.value, symbols, storages)
        nodes.append(_rewired(replace(node, name=rename[node.name], target=target, value=value, binds=binds), rename))
    nodes = [replace(node, args=tuple(_renamed_symbols(arg, symbols) for arg in node.args)) for node in nodes]
    truth = [0] * len(order)
    for new, old in enumerate(order):
        truth[old] = new
    fresh = replace(
        graph,
        nodes=tuple(nodes),
        fingerprint="",
        static_inputs=tuple(rename[name] for name in graph.static_inputs),
        mutated=tuple(rename[name] for name in graph.mutated),
        symbols=tuple(replace(symbol, name=symbols[symbol.name]) for symbol in graph.symbols),
    )
    return Edited(fresh, tuple(truth))


def _some_order(graph: JointGraph, rng: random.Random) -> list[int]:
    """A random topological order. Placeholders stay where they are, and so do ops whose order is meaning."""
    outputs = {position for position, node in enumerate(graph.nodes) if node.kind is NodeKind.OUTPUT}
    order = [position for position, node in enumerate(graph.nodes) if node.is_placeholder]
    waiting = [len(inputs) for inputs in graph.inputs_of]
    fixed = [position for position, node in enumerate(graph.nodes) if node.tags & _ORDERED]
    after = dict(pairwise(fixed))
    for second in after.values():
        waiting[second] += 1
    ready = [p for p, node in enumerate(graph.nodes) if not waiting[p] and not node.is_placeholder and p not in outputs]

    def release(position: int) -> None:
        for user in (*graph.users_of[position], *([after[position]] if position in after else [])):
            waiting[user] -= 1
            if waiting[user] == 0 and user not in outputs:
                ready.append(user)

    for position in tuple(order):
        release(position)
    while ready:
        position = ready.pop(rng.randrange(len(ready)))
        order.append(position)
        release(position)
    return [*order, *sorted(outputs)]


def _resymboled(text: str, symbols: dict[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda found: symbols.get(found[0], found[0]), text)


def _renamed_symbols(arg: Arg, symbols: dict[str, str]) -> Arg:
    if isinstance(arg, tuple):
        return tuple(_renamed_symbols(part, symbols) for part in arg)
    if isinstance(arg, Const) and arg.kind == "symbol":
        return replace(arg, text=_resymboled(arg.text, symbols))
    return arg


def _revalued(value: Value, symbols: dict[str, str], storages: dict[int, int]) -> Value:
    def dims(given: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(_resymboled(dim, symbols) if isinstance(dim, str) else dim for dim in given)

    if isinstance(value, tuple):
        return tuple(_revalued(part, symbols, storages) for part in value)
    if isinstance(value, TensorSpec):
        storage = value.storage if value.storage < 0 else storages.setdefault(value.storage, len(storages))
        return replace(value, shape=dims(value.shape), stride=dims(value.stride), storage=storage)
    return replace(value, expr=_resymboled(value.expr, symbols)) if isinstance(value, SymbolSpec) else value


def with_shuffled_primals(graph: JointGraph, seed: int = 0) -> Edited:
    """The parameters and inputs in another order, and with them their gradients."""
    rng = random.Random(seed)
    primals = [node for node in graph.nodes if node.kind in PRIMAL_KINDS]
    order = rng.sample(range(len(primals)), len(primals))
    rest = [node for node in graph.nodes if node.kind not in PRIMAL_KINDS]
    forward, backward = graph.forward_outputs, graph.backward_outputs
    if backward:
        rest[-1] = replace(rest[-1], args=((*forward, *(backward[place] for place in order)),))
    return _edited(graph, [*(primals[place] for place in order), *rest])


def with_shuffled_modules(graph: JointGraph, seed: int = 0) -> Edited:
    """The paths of modules dealt out anew among them, in parameters' names too."""
    rng = random.Random(seed)
    paths = sorted({node.module for node in graph.nodes if node.module})
    deal = dict(zip(paths, rng.sample(paths, len(paths)), strict=True))

    def shuffled(node: Node) -> Node:
        owner, dot, leaf = (node.origin or "").rpartition(".")
        origin = f"{deal.get(owner, owner)}.{leaf}" if dot else node.origin
        return replace(node, module=deal.get(node.module or "", node.module), origin=origin)

    return _edited(graph, [shuffled(node) for node in graph.nodes])


# Other graphs.


def inserted(graph: JointGraph, after: Collection[str], target: str = "aten.clone.default") -> Edited:
    """An op after each of the nodes `after`, between it and all that reads it."""
    nodes: list[Node] = []
    rename: dict[str, str] = {}
    for each in graph.nodes:
        node = _rewired(each, rename)
        nodes.append(node)
        if node.name in after:
            new = f"after {node.name}"
            while new in graph.index:
                new += ", again"
            fresh = replace(node, name=new, kind=NodeKind.OP, target=target, args=(Ref(node.name),), kwargs=())
            nodes.append(replace(fresh, tags=_POINTWISE, flops=0))
            rename[node.name] = new
    return _edited(graph, nodes)


def inserted_at_random(graph: JointGraph, share: float, seed: int = 0, target: str = "aten.clone.default") -> Edited:
    """`inserted` after a share of the ops."""
    return inserted(graph, _sample(graph, share, random.Random(seed)), target)


def replaced(graph: JointGraph, share: float, seed: int = 0, targets: Sequence[str] = STRANGE_OPS) -> Edited:
    """A share of the ops become some other op, with the same arguments and users."""
    rng = random.Random(seed)
    chosen = _sample(graph, share, rng)

    def other(node: Node) -> Node:
        return replace(node, target=rng.choice([each for each in targets if each != node.target]))

    return _edited(graph, [other(node) if node.name in chosen else node for node in graph.nodes])


def bypassed(graph: JointGraph, share: float, seed: int = 0) -> Edited:
    """A share of the ops that have the shape of their first argument are gone: what read them reads that."""
    rng = random.Random(seed)
    chosen = _sample(graph, share, rng)
    rename: dict[str, str] = {}
    nodes: list[Node] = []
    for each in graph.nodes:
        node = _rewired(each, rename)
        source = graph[each.refs[0]].value if each.name in chosen and each.refs else None
        if isinstance(source, TensorSpec) and isinstance(node.value, TensorSpec) and source.shape == node.value.shape:
            rename[node.name] = node.refs[0]
        else:
            nodes.append(node)
    return _edited(graph, nodes)


def recast(graph: JointGraph, dtype: str) -> Edited:
    """All floating-point tensors in another dtype."""

    def cast(value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(cast(part) for part in value)
        return replace(value, dtype=dtype) if isinstance(value, TensorSpec) and "float" in value.dtype else value

    return _edited(graph, [replace(node, value=cast(node.value)) for node in graph.nodes])


# How well a pairing does.


@dataclass(frozen=True)
class Score:
    """Right pairs, all that were found, and all that there are in truth."""

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
    """How many edits a pairing stands for: nodes of one side only, pairs with different ops, and pairs that read
    different nodes. Where equals are interchangeable several pairings cost the same, and none is truer."""
    paired = [(i, j) for i, j in enumerate(right_of) if j >= 0]
    cost = len(left.nodes) + len(right.nodes) - 2 * len(paired)
    for i, j in paired:
        node, other = left.nodes[i], right.nodes[j]
        if node.kind is NodeKind.OUTPUT:
            continue
        cost += node.kind is NodeKind.OP and node.target != other.target
        cost += [right_of[source] for source in left.inputs_of[i]] != list(right.inputs_of[j])
    return cost

"""Checks of a partition against its graph: both halves can run on what they are handed, and the bytes add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from aotcli.errors import VerificationError
from aotcli.ir.excerpt import excerpt
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import PRIMAL_KINDS, Arg, JointGraph, NodeKind, arg_refs
from aotcli.ir.partition import Category, Partition, SavedKind, SavedValue
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, tensor_leaves

_CATEGORIES = {
    NodeKind.PARAM: Category.PARAMETER,
    NodeKind.BUFFER: Category.BUFFER,
    NodeKind.INPUT: Category.INPUT,
}
_TOTALS = (
    ("saved_bytes", (Category.ACTIVATION,)),
    ("saved_input_bytes", (Category.PARAMETER, Category.BUFFER, Category.INPUT)),
    ("saved_output_bytes", (Category.OUTPUT,)),
)

Fault = tuple[str, tuple[str, ...]]
"""What is wrong, and the names of the nodes to show."""


def verify_partition(graph: JointGraph, partition: Partition) -> None:
    """Check that `partition` is a split of `graph` that can run; time is near-linear in nodes and arguments.

    The forward reads primals, seeds and what it computed before; the backward reads saved values, tangents, its seeds
    and what it computed before; `recomputed` is what both compute; each saved value is as the graph has it, is read,
    and carries its storage's bytes if it is the first on that storage; totals add up. Raises VerificationError with
    the neighbourhood of the first fault.
    """
    for check in (_identity, _names, _forward, _backward, _saved, _bytes, _flops):
        for what, names in check(graph, partition):
            shown = excerpt(graph, [graph.index[name] for name in names if name in graph.index])
            about = f"the {partition.strategy} partition of {graph.name}"
            raise VerificationError(
                f"{about} is wrong: {what}" + (f"\n{shown}" if shown else ""),
                why="a fault in the strategy, or in the cut of the graph",
                fix="report it with the trace (`aotcli trace ... -o trace.aot.json`) and the strategy's options",
            )


def _identity(graph: JointGraph, partition: Partition) -> Iterator[Fault]:
    if partition.fingerprint != graph.fingerprint:
        yield f"it was made for graph {partition.fingerprint}, not {graph.fingerprint}", ()
    if partition.level != graph.level:
        yield f"it was made at level {partition.level}, not {graph.level}", ()


def _names(graph: JointGraph, partition: Partition) -> Iterator[Fault]:
    """Everything named exists, once, and is an op where ops are listed."""
    lists = (
        ("forward", partition.forward_nodes),
        ("backward", partition.backward_nodes),
        ("recomputed", partition.recomputed),
        ("saved", tuple(value.name for value in partition.saved)),
        ("replaced", (*partition.replaced.keys(), *partition.replaced.values())),
    )
    for what, names in lists:
        for name in names:
            if name not in graph.index:
                yield f"{name} in its {what} nodes does not exist", ()
            elif what in ("forward", "backward") and graph[name].kind is not NodeKind.OP:
                yield f"{name} in its {what} nodes is no op", (name,)
        if what != "replaced" and len(set(names)) < len(names):
            double = next(name for i, name in enumerate(names) if name in names[:i])
            yield f"{double} stands twice in its {what} nodes", (double,)


def _resolved(replaced: Mapping[str, str], name: str) -> str:
    """The node that stands for `name` after common subexpressions are merged."""
    steps = 0
    while name in replaced and steps <= len(replaced):
        name = replaced[name]
        steps += 1
    return name


def _constants(graph: JointGraph) -> set[str]:
    return {node.name for node in graph.nodes if node.kind is NodeKind.ATTR}


def _run(
    graph: JointGraph, half: str, names: Sequence[str], outputs: Iterable[Arg], ready: set[str], partition: Partition
) -> Iterator[Fault]:
    """Walk one half in its order and check that what each node reads is there by then."""
    replaced = partition.replaced
    own = set(names)
    for name in names:
        for read in graph[name].refs:
            source = _resolved(replaced, read)
            if source not in ready:
                why = "is computed only later" if source in own else "is neither handed to it nor computed there"
                yield f"the {half} runs {name}, which reads {source}, but {source} {why}", (name, source)
        ready.add(name)
    for arg in outputs:
        for read in arg_refs(arg):
            source = _resolved(replaced, read)
            if source not in ready:
                yield f"the {half} returns {source}, which it neither is handed nor computes", (source,)


def _forward(graph: JointGraph, partition: Partition) -> Iterator[Fault]:
    kinds = PRIMAL_KINDS | {NodeKind.SEED}
    ready = {node.name for node in graph.nodes if node.kind in kinds} | _constants(graph)
    outputs = graph.outputs if not graph.has_backward else graph.forward_outputs
    yield from _run(graph, "forward", partition.forward_nodes, outputs, ready, partition)
    for value in partition.saved:
        if value.name not in ready:
            yield f"{value.name} is saved, but the forward does not have it", (value.name,)


def _backward(graph: JointGraph, partition: Partition) -> Iterator[Fault]:
    if not graph.has_backward:
        if partition.backward_nodes or partition.saved:
            yield "the graph has no backward, but something is saved or run for it", ()
        return
    kinds = {NodeKind.TANGENT, NodeKind.BACKWARD_SEED}
    ready = {node.name for node in graph.nodes if node.kind in kinds} | _constants(graph)
    ready.update(value.name for value in partition.saved)
    # BackwardState objects are inputs of the step that the backward is handed as they are.
    ready.update(node.name for node in graph.placeholders if _is_backward_state(node.value))
    yield from _run(graph, "backward", partition.backward_nodes, graph.backward_outputs, ready, partition)
    forward = set(partition.forward_nodes)
    both = {name for name in partition.backward_nodes if name in forward}
    if both != set(partition.recomputed):
        odd = sorted(both ^ set(partition.recomputed))
        yield f"recomputed nodes are not those that run in both halves: {odd[0]}", (odd[0],)
    saved = {value.name for value in partition.saved}
    for name in partition.backward_nodes:
        if name in saved:
            yield f"{name} is saved and computed again", (name,)


def _is_backward_state(value: object) -> bool:
    return isinstance(value, OpaqueSpec) and value.kind == "backward_state"


def _saved(graph: JointGraph, partition: Partition) -> Iterator[Fault]:
    """Each saved value is what the graph has, is numbered canonically, and is read as its users say."""
    if not partition.saved:
        return
    order = canonical_order(graph)
    readers: dict[str, list[str]] = {value.name: [] for value in partition.saved}
    for name in partition.backward_nodes:
        for read in dict.fromkeys(_resolved(partition.replaced, each) for each in graph[name].refs):
            if read in readers:
                readers[read].append(name)
    returned = {_resolved(partition.replaced, name) for arg in graph.backward_outputs for name in arg_refs(arg)}
    for value in partition.saved:
        node = graph[value.name]
        if not 0 <= value.id < len(order) or graph.nodes[order[value.id]].name != value.name:
            yield f"{value.name} has the number {value.id}, which is another node's", (value.name,)
        if value.value != node.value or (value.module, value.source) != (node.module, node.source):
            yield f"{value.name} is not described as the graph has it", (value.name,)
        if value.kind is not _saved_kind(value):
            yield f"{value.name} is saved as a {value.kind}", (value.name,)
        if value.is_input != (node.kind in PRIMAL_KINDS):
            yield f"{value.name} is marked {'' if value.is_input else 'not '}as an input", (value.name,)
        if set(value.users) != set(readers[value.name]):
            yield f"the users of {value.name} are {readers[value.name]}, not {list(value.users)}", (value.name,)
        if value.kind is SavedKind.TENSOR and not value.users and value.name not in returned:
            yield f"{value.name} is saved, but the backward does not read it", (value.name,)


def _saved_kind(value: SavedValue) -> SavedKind:
    if isinstance(value.value, SymbolSpec):
        return SavedKind.SYMINT
    return SavedKind.OPAQUE if isinstance(value.value, OpaqueSpec) else SavedKind.TENSOR


def _bytes(graph: JointGraph, partition: Partition) -> Iterator[Fault]:
    """The first saved value on a storage carries its bytes and later ones none; categories; totals."""
    merged = _merged_storages(graph, partition.replaced)
    owners = _owners(graph, merged)
    counted: set[int] = set()
    totals = dict.fromkeys(Category, 0)
    for value in partition.saved:
        nbytes = 0
        category = Category.NONE
        for leaf in tensor_leaves(value.value):
            storage = _root(merged, leaf.storage)
            if category is Category.NONE:
                own = _CATEGORIES.get(graph[value.name].kind, Category.ACTIVATION)
                category = owners.get(storage, own)
            if storage < 0 or storage not in counted:
                nbytes += leaf.storage_nbytes
                counted.add(storage)
        if value.nbytes != nbytes:
            yield f"saving {value.name} costs {nbytes} bytes, not {value.nbytes}", (value.name,)
        if value.category is not category:
            yield f"{value.name} is {category} memory, not {value.category}", (value.name,)
        totals[category] += nbytes
    for field, categories in _TOTALS:
        told = {
            "saved_bytes": partition.saved_bytes,
            "saved_input_bytes": partition.saved_input_bytes,
            "saved_output_bytes": partition.saved_output_bytes,
        }[field]
        total = sum(totals[category] for category in categories)
        if told != total:
            yield f"its {field} are {total}, not {told}", ()


def _merged_storages(graph: JointGraph, replaced: Mapping[str, str]) -> dict[int, int]:
    """Storages that became one when common subexpressions were merged."""
    merged: dict[int, int] = {}
    for name in replaced:
        old, new = tensor_leaves(graph[name].value), tensor_leaves(graph[_resolved(replaced, name)].value)
        for left, right in zip(old, new, strict=False):
            source, target = _root(merged, left.storage), _root(merged, right.storage)
            if source != target and source >= 0 and target >= 0:
                merged[source] = target
    return merged


def _root(merged: Mapping[int, int], storage: int) -> int:
    while storage in merged:
        storage = merged[storage]
    return storage


def _owners(graph: JointGraph, merged: Mapping[int, int]) -> dict[int, Category]:
    """Whose each storage is, where it is no activation's: an input's first, then a forward output's."""
    owners: dict[int, Category] = {}
    for arg in graph.forward_outputs:
        for name in arg_refs(arg):
            owners.update((_root(merged, leaf.storage), Category.OUTPUT) for leaf in tensor_leaves(graph[name].value))
    for node in graph.placeholders:
        if node.kind in _CATEGORIES:
            kind = _CATEGORIES[node.kind]
            owners.update((_root(merged, leaf.storage), kind) for leaf in tensor_leaves(node.value))
    owners.pop(-1, None)
    return owners


def _flops(graph: JointGraph, partition: Partition) -> Iterator[Fault]:
    told = (partition.forward_flops, partition.backward_flops, partition.recompute_flops)
    if min(told) < 0 or partition.recompute_flops > min(told[:2]):
        yield f"FLOPs of forward, backward and recomputation cannot be {told}", ()
    if partition.peak_bytes < 0:
        yield f"its peak is {partition.peak_bytes} bytes", ()

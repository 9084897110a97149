"""From a strategy's decision to a full partition: halves, bytes by storage, FLOPs, predicted peak; then verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotcli.analysis.cost import count_flops
from aotcli.analysis.cut import Halves, cut
from aotcli.analysis.liveness import simulate
from aotcli.analysis.lower_peak import ORDERS
from aotcli.analysis.replay import state_nbytes
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind, Tag, arg_refs
from aotcli.ir.partition import Category, Decision, Partition, Reason, SavedKind, SavedValue
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, tensor_leaves
from aotcli.ir.verify import verify_partition

_CATEGORIES = {
    NodeKind.PARAM: Category.PARAMETER,
    NodeKind.BUFFER: Category.BUFFER,
    NodeKind.INPUT: Category.INPUT,
}
_SIZE = Reason("size", "symbol of a saved shape")


def assemble(
    graph: JointGraph, decision: Decision, *, strategy: str, options: Mapping[str, object] | None = None
) -> Partition:
    """The partition of `graph` that `decision` leads to.

    Saved values stand in the order in which the forward returns them: tensors, opaque values, symints. Raises
    VerificationError where the decision cannot be carried out.
    """
    halves = cut(graph, decision)
    forward, backward = _ops(halves.forward.nodes), _ops(halves.backward.nodes)
    in_forward = {node.name for node in forward}
    recomputed = [node for node in backward if node.name in in_forward]
    forward_flops, backward_flops = count_flops(forward), count_flops(backward)
    saved = _saved_values(graph, decision, halves)
    partition = Partition(
        fingerprint=graph.fingerprint,
        level=graph.level,
        strategy=strategy,
        options=dict(options or {}),
        saved=saved,
        recomputed=tuple(node.name for node in recomputed),
        forward_nodes=tuple(node.name for node in forward),
        backward_nodes=tuple(node.name for node in backward),
        saved_bytes=_total(saved, Category.ACTIVATION),
        saved_input_bytes=_total(saved, Category.PARAMETER, Category.BUFFER, Category.INPUT),
        saved_output_bytes=_total(saved, Category.OUTPUT),
        forward_flops=forward_flops.flops,
        backward_flops=backward_flops.flops,
        recompute_flops=count_flops(recomputed).flops,
        unknown_flops=tuple(dict.fromkeys((*forward_flops.unknown, *backward_flops.unknown))),
        peak_bytes=simulate(graph, halves).peak_bytes,
        cut_value=decision.cut_value,
        replaced=decision.replaced,
        bans=decision.bans,
        weights=decision.weights,
        notes=decision.notes,
        keep_order=decision.keep_order,
        drop_dead_collectives=decision.drop_dead_collectives,
        order=decision.order,
        random_state_bytes=sum(state_nbytes(node) for node in recomputed if Tag.RANDOM in node.tags),
    )
    verify_partition(graph, partition)
    return partition


def with_best_order(graph: JointGraph, decision: Decision) -> Decision:
    """`decision` with the order of the backward that has the lowest predicted peak; PyTorch's where none is lower.

    Only at level aten, whose ops run one by one as they stand: Inductor schedules its kernels itself.
    """
    if graph.level != "aten" or not graph.has_backward:
        return decision
    peak = simulate(graph, cut(graph, decision)).peak_bytes
    best = decision
    for order in ORDERS:
        candidate = replace(decision, order=order)
        found = simulate(graph, cut(graph, candidate)).peak_bytes
        if found < peak:
            peak, best = found, candidate
    return best


def decision_of(partition: Partition) -> Decision:
    """The decision behind a partition, as far as cutting the graph again needs it."""
    return Decision(
        saved=tuple((value.name, value.reason) for value in partition.saved),
        replaced=partition.replaced,
        bans=partition.bans,
        weights=partition.weights,
        cut_value=partition.cut_value,
        keep_order=partition.keep_order,
        drop_dead_collectives=partition.drop_dead_collectives,
        order=partition.order,
        notes=partition.notes,
    )


def _ops(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.kind is NodeKind.OP]


def _total(saved: Sequence[SavedValue], *categories: Category) -> int:
    return sum(value.nbytes for value in saved if value.category in categories)


def _saved_values(graph: JointGraph, decision: Decision, halves: Halves) -> tuple[SavedValue, ...]:
    """Saved values with what each adds: the first one on a storage carries its bytes, later ones 0."""
    reasons = dict(decision.saved)
    ids = _canonical_ids(graph, halves.saved)
    users = _backward_users(halves)
    owners = _storage_owners(graph, halves.merged_storages)
    counted: set[int] = set()
    values: list[SavedValue] = []
    for name in halves.saved:
        node = graph[name]
        kind, category, nbytes, storage = _storage_of(node, halves.merged_storages, owners, counted)
        values.append(
            SavedValue(
                id=ids[name],
                name=name,
                op=node.target if node.kind is NodeKind.OP else node.kind.value,
                kind=kind,
                category=category,
                value=node.value,
                nbytes=nbytes,
                storage=storage,
                module=node.module,
                module_type=node.module_type,
                source=node.source,
                reason=reasons.get(name, _SIZE),
                users=tuple(users.get(name, ())),
                is_input=node.kind in PRIMAL_KINDS,
            )
        )
    return tuple(values)


def _storage_of(
    node: Node, merged: Mapping[int, int], owners: Mapping[int, Category], counted: set[int]
) -> tuple[SavedKind, Category, int, int]:
    """Kind, category, bytes and storage of a saved value; marks its storage as counted."""
    if isinstance(node.value, SymbolSpec):
        return SavedKind.SYMINT, Category.NONE, 0, -1
    if isinstance(node.value, OpaqueSpec):
        return SavedKind.OPAQUE, Category.NONE, 0, -1
    leaves = tensor_leaves(node.value)
    storages = [merged.get(leaf.storage, leaf.storage) for leaf in leaves]
    nbytes = 0
    for leaf, storage in zip(leaves, storages, strict=True):
        if storage < 0 or storage not in counted:
            nbytes += leaf.storage_nbytes
            counted.add(storage)
    storage = storages[0] if storages else -1
    own = _CATEGORIES.get(node.kind, Category.ACTIVATION)
    return SavedKind.TENSOR, owners.get(storage, own), nbytes, storage


def _storage_owners(graph: JointGraph, merged: Mapping[int, int]) -> dict[int, Category]:
    """Whose each storage is, where it is not an activation's: a placeholder's first, then a forward output's."""
    owners: dict[int, Category] = {}
    for arg in graph.forward_outputs:
        for name in arg_refs(arg):
            for leaf in tensor_leaves(graph[name].value):
                owners[merged.get(leaf.storage, leaf.storage)] = Category.OUTPUT
    for node in graph.placeholders:
        if node.kind in _CATEGORIES:
            owners.update(dict.fromkeys((leaf.storage for leaf in tensor_leaves(node.value)), _CATEGORIES[node.kind]))
    owners.pop(-1, None)
    return owners


def _canonical_ids(graph: JointGraph, names: Sequence[str]) -> dict[str, int]:
    """Positions of nodes in the canonical order, by name."""
    if not names:
        return {}
    wanted = {graph.index[name]: name for name in names}
    return {wanted[p]: place for place, p in enumerate(canonical_order(graph)) if p in wanted}


def _backward_users(halves: Halves) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for node in halves.backward.nodes:
        for name in node.refs:
            users.setdefault(name, []).append(node.name)
    return users

"""What it would take to compute saved values again in the backward, from what the backward has anyway.

From the values back to the first ones that the backward has: those are read, all between is run again. There is no such
chain where something on it must not run twice, or costs FLOPs: a product, a convolution, an attention.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from aotcli.analysis.cost import traffic
from aotcli.analysis.layers import SavedTensor
from aotcli.analysis.lint._region import PlannedRegion, is_view
from aotcli.ir.joint import Node, NodeKind, Tag
from aotcli.ir.tensor import TensorSpec, tensor_leaves

_DEAR_TAGS = frozenset({Tag.RANDOM, Tag.RANDOM_OP, Tag.COLLECTIVE, Tag.NON_BUILTIN, Tag.COMPUTE_INTENSIVE})
_CHEAP_TAGS = frozenset({Tag.POINTWISE, Tag.RECOMPUTABLE})
_CHEAP_NAMES = (
    "native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit_functional _fused_rms_norm "
    "_softmax _log_softmax embedding index cat constant_pad_nd repeat"
)
_UNTAGGED_CHEAP_OPS = frozenset(f"aten.{name}" for name in _CHEAP_NAMES.split())
"""Ops that torch does not tag as recomputable, and that take one or two passes over what they read."""


_SMALL = 8
"""How many times smaller a value is than the tensor that it is on the way to."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Ops to run again, views left out, in the forward's order; what they read; and the bytes that they move, were each
    run alone. `extra_bytes` are of what may be saved for it: inputs of the step, and small results on the way."""

    ops: tuple[Node, ...]
    sources: tuple[Node, ...]
    moved_bytes: int
    extra_bytes: int


def find_chain(
    region: PlannedRegion, tensor: SavedTensor, most_ops: int = 64, *, given: Collection[str] = ()
) -> Chain | None:
    """How to have a saved tensor without saving it, `given` being saved instead; None where that is dear, not allowed,
    or takes more than `most_ops`."""
    graph = region.graph
    pending = [graph[value.name] for value in tensor.values]
    seen = {node.name for node in pending}
    ops: list[Node] = []
    sources: list[Node] = []
    for node in pending:
        is_input = node.kind is NodeKind.INPUT and node.name not in graph.mutated
        if (is_input or node.name in given or region.holds(node)) and not _is_on(tensor, node):
            sources.append(node)
            continue
        if not _is_cheap(node) or region.rerun.forbidden(graph.index[node.name]) is not None:
            return None
        if not is_view(node):
            ops.append(node)
            if len(ops) > most_ops:
                return None
        for source in region.reads(node):
            if source.name not in seen:
                seen.add(source.name)
                pending.append(source)
    ops.sort(key=lambda node: graph.index[node.name])
    moved = [traffic(graph, node) for node in ops]
    inputs = [node for node in sources if node.kind is NodeKind.INPUT and not region.holds(node)]
    small = [node for node in ops if is_small(node, tensor)]
    return Chain(
        tuple(ops),
        tuple(sources),
        sum(each.read_bytes + each.written_bytes for each in moved),
        sum(leaf.storage_nbytes for node in (*inputs, *small) for leaf in tensor_leaves(node.value)),
    )


def is_small(node: Node, tensor: SavedTensor) -> bool:
    """Whether a value on the way to a tensor is so much smaller that it may well be saved: a norm's mean."""
    nbytes = max((leaf.storage_nbytes for leaf in tensor_leaves(node.value)), default=0)
    return nbytes * _SMALL <= tensor.spec.storage_nbytes


def _is_on(tensor: SavedTensor, node: Node) -> bool:
    """Whether a value is the saved tensor, or a view of it."""
    if any(node.name == value.name for value in tensor.values):
        return True
    return isinstance(node.value, TensorSpec) and node.value.storage == tensor.spec.storage >= 0


def _is_cheap(node: Node) -> bool:
    """Whether running the op again costs no more than the memory that it moves."""
    if node.kind is not NodeKind.OP or not _DEAR_TAGS.isdisjoint(node.tags) or node.flops != 0:
        return False
    if node.checkpoint == "MUST_SAVE":
        return False
    return is_view(node) or not _CHEAP_TAGS.isdisjoint(node.tags) or node.packet in _UNTAGGED_CHEAP_OPS

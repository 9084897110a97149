"""Facts about an op that planning needs and only torch knows, as tags of the record.

The sets recomputable, fusible, compute-intensive, view and random are those of the installed torch's partitioner
(`get_default_op_list` in torch/_functorch/partitioners.py); the rest comes from op schemas and tags.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import fx

from aotcli.capture import torch_private
from aotcli.ir.joint import Tag


def packet_of(target: Any) -> Any:
    """The op without its overload, or the target itself."""
    return target.overloadpacket if isinstance(target, torch_private.OpOverload) else target


@functools.cache
def _op_sets() -> dict[Tag, frozenset[Any]]:
    sets = torch_private.partitioner_op_sets()
    return {
        Tag.RECOMPUTABLE: sets["recomputable"],
        Tag.FUSIBLE: sets["fusible"],
        Tag.COMPUTE_INTENSIVE: sets["compute_intensive"],
        Tag.VIEW: sets["view"],
        Tag.RANDOM_OP: sets["random_op"],
        Tag.NO_CSE: torch_private.ops_never_merged(),
    }


@functools.cache
def _pointwise(packet: Any) -> bool:
    if not isinstance(packet, torch_private.OpOverloadPacket):
        return False
    return any(torch.Tag.pointwise in getattr(packet, name).tags for name in packet.overloads())


@functools.cache
def target_tags(target: Any) -> frozenset[Tag]:
    """Tags that follow from the op alone."""
    packet = packet_of(target)
    tags = {tag for tag, members in _op_sets().items() if packet in members}
    if isinstance(target, torch_private.OpOverload):
        schema = target._schema
        if _pointwise(packet):
            tags.add(Tag.POINTWISE)
        if schema.is_mutable:
            tags.add(Tag.MUTABLE)
        if any(ret.alias_info is not None and not ret.alias_info.is_write for ret in schema.returns):
            tags.add(Tag.VIEW_SCHEMA)
        if target.namespace == "_c10d_functional":
            tags.add(Tag.COLLECTIVE)
        if torch.Tag.nondeterministic_seeded in target.tags:
            tags.add(Tag.RANDOM)
        if not torch_private.is_builtin_op(target):
            tags.add(Tag.NON_BUILTIN)
    elif target is torch.ops.higher_order.triton_kernel_wrapper_functional:
        tags.add(Tag.NON_BUILTIN)
    return frozenset(tags)


def _dropout_is_off(node: fx.Node) -> bool:
    """Whether a seeded op draws nothing because its dropout_p is 0 (attention without dropout)."""
    if not isinstance(node.target, torch_private.OpOverload):
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    if "dropout_p" not in names:
        return False
    position = names.index("dropout_p")
    value = node.kwargs.get("dropout_p")
    if value is None:
        value = node.args[position] if position < len(node.args) else 0.0
    return isinstance(value, (int, float)) and value == 0


class NodeTags:
    """Reads the tags of call_function nodes, remembering for each op whether it is impure."""

    def __init__(self) -> None:
        self._impure: dict[Any, frozenset[Tag]] = {}

    def of(self, node: fx.Node) -> frozenset[Tag]:
        """All tags of one node."""
        tags = target_tags(node.target) | self._impurity(node)
        if Tag.RANDOM in tags and _dropout_is_off(node):
            tags -= {Tag.RANDOM}
        if torch_private.is_with_effects(node):
            tags |= {Tag.WITH_EFFECTS}
        return tags | meta_tags(node)

    def _impurity(self, node: fx.Node) -> frozenset[Tag]:
        if not isinstance(node.target, torch_private.OpOverload):
            return _impurity(node)  # of a higher-order op, the arguments may decide
        if node.target not in self._impure:
            self._impure[node.target] = _impurity(node)
        return self._impure[node.target]


def _impurity(node: fx.Node) -> frozenset[Tag]:
    impure = {Tag.IMPURE} if node.is_impure() else set[Tag]()
    return frozenset(impure | {Tag.EFFECTFUL} if node.is_impure(impure_random=False) else impure)


def meta_tags(node: fx.Node) -> frozenset[Tag]:
    """Tags that tracing wrote into a node's meta."""
    tags: set[Tag] = set()
    if node.meta.get("saved_tensor_with_no_vc_check", False):
        tags.add(Tag.NO_VERSION_CHECK)
    if node.meta.get("has_backward_hook", False):
        tags.add(Tag.BACKWARD_HOOK)
    return frozenset(tags)

"""What a trace cannot say about another device: attention, convolution and random ops differ from device to device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotcli.analysis.op_names import storage_maker
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.partition import Category, Partition

ATTENTION = "attention"
CONVOLUTION = "convolution"
RANDOM = "random"


@dataclass(frozen=True, slots=True)
class DeviceSensitivity:
    """`ops` nodes of one kind choose their kernel by device; `saved_bytes` of the plan were made by them."""

    kind: str
    ops: int
    saved_bytes: int


def device_kind(node: Node) -> str | None:
    """Which kind of device-dependent op of the forward a node is, if any; its gradient's kernel follows."""
    if node.kind is not NodeKind.OP or "backward" in node.target:
        return None
    if "dot_product" in node.target and "attention" in node.target:
        return ATTENTION
    if node.target.startswith(("aten.convolution", "aten._convolution", "aten.cudnn_convolution", "aten.mkldnn_conv")):
        return CONVOLUTION
    return RANDOM if Tag.RANDOM in node.tags else None


def device_sensitivities(
    graphs: Sequence[JointGraph], partitions: Sequence[Partition]
) -> tuple[DeviceSensitivity, ...]:
    """The kinds of device-dependent ops in some regions, with the saved bytes that hang on them, largest first."""
    ops: dict[str, int] = {}
    saved: dict[str, int] = {}
    for graph in graphs:
        for node in graph.nodes:
            if (kind := device_kind(node)) is not None:
                ops[kind] = ops.get(kind, 0) + 1
    for graph, partition in zip(graphs, partitions, strict=True):
        for value in partition.saved:
            if value.category is not Category.ACTIVATION or value.name not in graph.index:
                continue
            maker = storage_maker(graph, value.name)
            if maker.target == "operator.getitem" and maker.refs:
                maker = graph[maker.refs[0]]
            if (kind := device_kind(maker)) is not None:
                saved[kind] = saved.get(kind, 0) + value.nbytes
    found = [DeviceSensitivity(kind, count, saved.get(kind, 0)) for kind, count in ops.items()]
    return tuple(sorted(found, key=lambda each: (-each.saved_bytes, each.kind)))

"""The nodes of a region as columns."""

from __future__ import annotations

from typing import Any

from aotcli.analysis.op_names import node_label
from aotcli.analysis.report import RegionReport
from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag
from aotcli.ir.partition import Category
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec, Value, tensor_leaves
from aotcli.render.report.strings import Strings
from aotcli.render.units import dtype_text, shape_text

# Bits of the column `flags`; the script has the same (data.js).
FORWARD = 1  # runs in the forward
BACKWARD = 2  # runs in the backward
SAVED = 4  # an activation that is saved
KEPT = 8  # handed to the backward, and in memory anyway
VIEW = 16
PLACEHOLDER = 32
RANDOM = 64
RESULT = 128  # returned by the forward
GRADIENT = 256  # returned by the backward
UNUSED = 512  # in neither half: dead, or the same as another node
_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})


def nodes_document(region: RegionReport, strings: Strings) -> dict[str, Any]:
    """Columns over all nodes but the output. `inputs` are distances back to the nodes that each reads."""
    graph = region.graph
    nodes = [node for node in graph.nodes if node.kind is not NodeKind.OUTPUT]
    flags = _flags(region)
    count = strings.number
    return {
        "name": [node.name for node in nodes],
        "id": list(region.ids[: len(nodes)]),
        "label": [count(node_label(graph, node)) for node in nodes],
        "target": [count(node.target if node.kind is NodeKind.OP else node.kind.value) for node in nodes],
        "module": [count(node.module) for node in nodes],
        "module_type": [count(node.module_type) for node in nodes],
        "line": [count(node.source) for node in nodes],
        "shape": [count(value_text(node.value)) for node in nodes],
        "nbytes": [sum(leaf.nbytes for leaf in tensor_leaves(node.value)) for node in nodes],
        "flops": [node.flops for node in nodes],
        "flags": [flags[position] for position in range(len(nodes))],
        "inputs": [p - source for p in range(len(nodes)) for source in graph.inputs_of[p]],
        "input_counts": [len(graph.inputs_of[p]) for p in range(len(nodes))],
        "replaced": _replaced(graph, region),
    }


def _flags(region: RegionReport) -> list[int]:
    graph, partition = region.graph, region.partition
    flags = [_own_flags(node) for node in graph.nodes]
    for names, flag in (
        (partition.forward_nodes, FORWARD),
        (partition.backward_nodes, BACKWARD),
        ([value.name for value in partition.saved if value.category is Category.ACTIVATION], SAVED),
        ([value.name for value in partition.saved if value.category is not Category.ACTIVATION], KEPT),
    ):
        for name in names:
            if name in graph.index:
                flags[graph.index[name]] |= flag
    if graph.nodes and graph.nodes[-1].kind is NodeKind.OUTPUT:
        from aotcli.ir.joint import arg_refs

        for outputs, flag in ((graph.forward_outputs, RESULT), (graph.backward_outputs, GRADIENT)):
            for arg in outputs:
                for name in arg_refs(arg):
                    flags[graph.index[name]] |= flag
    for position, node in enumerate(graph.nodes):
        if node.kind is NodeKind.OP and not flags[position] & (FORWARD | BACKWARD):
            flags[position] |= UNUSED
    return flags


def _own_flags(node: Node) -> int:
    flags = 0
    if not _VIEWS.isdisjoint(node.tags) or node.target == "operator.getitem":
        flags |= VIEW
    if node.is_placeholder:
        flags |= PLACEHOLDER
    if Tag.RANDOM in node.tags:
        flags |= RANDOM
    return flags


def _replaced(graph: JointGraph, region: RegionReport) -> list[list[int]]:
    """Pairs: a node that was found to compute the same as another, and that other."""
    pairs = region.partition.replaced.items()
    return [[graph.index[old], graph.index[new]] for old, new in pairs if old in graph.index and new in graph.index]


def value_text(value: Value) -> str:
    """``f32 8×1024``, ``int s77``, ``f32 4×8, i64 4×8``; empty where a node has no value."""
    if isinstance(value, TensorSpec):
        return f"{dtype_text(value.dtype)} {shape_text(value.shape)}"
    if isinstance(value, SymbolSpec):
        return f"{value.kind} {value.expr}"
    if isinstance(value, OpaqueSpec):
        return value.type_name
    if isinstance(value, tuple):
        return ", ".join(text for text in map(value_text, value) if text)
    return ""

"""Comparing modules that torch made with halves that our cut made, node by node, nested graphs included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aotcli.analysis.cut import Half
from aotcli.ir.joint import JointGraph, Node, NodeKind, Ref
from aotcli.ir.tensor import SymbolSpec, TensorSpec, Value


def record_of(module: Any, level: str) -> JointGraph:
    """A module as a record."""
    from aotcli.capture.origins import Origins
    from aotcli.capture.snapshot import SnapshotContext, snapshot_joint

    output = module.graph.find_nodes(op="output")[0].args[0]
    context = SnapshotContext(Origins({}, Path.cwd()), level)
    return snapshot_joint(
        module, context, num_forward_outputs=len(output), static_indices=(), primals={}, has_backward=False
    )


def described(node: Node) -> tuple[Any, ...]:
    return node.name, node.kind, node.target, node.args, node.kwargs, without_storage(node.value)


def without_storage(value: Value) -> Any:
    """A value's shape, stride, dtype and device: storages are numbered in each record anew."""
    if isinstance(value, TensorSpec):
        return value.shape, value.stride, value.dtype, value.device
    if isinstance(value, tuple):
        return tuple(without_storage(part) for part in value)
    return value.expr if isinstance(value, SymbolSpec) else value


def assert_same(half: Half, module: Any, graph: JointGraph, where: str) -> None:
    """`module` has the placeholders, nodes, order, arguments, results and outputs of `half`."""
    record = record_of(module, graph.level)
    assert [node.name for node in record.placeholders] == list(half.inputs), f"{where}: inputs"
    ours = list(half.nodes)
    theirs = [node for node in record.nodes if node.kind in (NodeKind.OP, NodeKind.ATTR)]
    assert [node.name for node in theirs] == [node.name for node in ours], f"{where}: order"
    for left, right in zip(theirs, ours, strict=True):
        assert described(left) == described(right), f"{where}: {left.name}"
    assert record.outputs == half.outputs, f"{where}: outputs"
    nested = dict(graph.subgraphs)
    for target, inner in record.subgraphs:
        assert_same_graph(inner, nested[target], f"{where}: {target}")


def assert_same_graph(left: JointGraph, right: JointGraph, where: str) -> None:
    assert [described(node) for node in left.nodes] == [described(node) for node in right.nodes], where
    assert dict(left.subgraphs).keys() == dict(right.subgraphs).keys(), where
    for target, inner in left.subgraphs:
        assert_same_graph(inner, dict(right.subgraphs)[target], f"{where}: {target}")


def names(outputs: tuple[Any, ...]) -> list[str]:
    return [each.name for each in outputs if isinstance(each, Ref)]

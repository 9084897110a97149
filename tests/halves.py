"""Comparing modules that torch made with halves that our cut made, node by node, nested graphs included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aotcli.analysis.cut import Half
from aotcli.ir.joint import Arg, JointGraph, Node, NodeKind

Described = tuple[str, str, str, Arg, Arg]
"""Name, kind, target, arguments and keyword arguments of a node, in the words of a record."""

_KINDS = {"call_function": NodeKind.OP, "get_attr": NodeKind.ATTR}


def of_module(module: Any) -> tuple[list[str], list[Described], Arg]:
    """Placeholders, nodes and outputs of a module, read as a snapshot reads them."""
    from aotcli.capture.origins import Origins
    from aotcli.capture.snapshot import SnapshotContext, _Reader, target_text

    read = _Reader(module, SnapshotContext(Origins({}, Path.cwd()), "aten")).arg
    inputs: list[str] = []
    nodes: list[Described] = []
    outputs: Arg = ()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "output":
            outputs = read(tuple(node.args[0]))
        else:
            kwargs = tuple((key, read(each)) for key, each in node.kwargs.items())
            args = () if node.op == "get_attr" else read(node.args)
            nodes.append((node.name, _KINDS[node.op], target_text(node.target), args, kwargs))
    return inputs, nodes, outputs


def of_record(nodes: tuple[Node, ...]) -> list[Described]:
    return [
        (node.name, node.kind, node.target, node.args, node.kwargs)
        for node in nodes
        if node.kind in (NodeKind.OP, NodeKind.ATTR)
    ]


def assert_same(half: Half, module: Any, graph: JointGraph, where: str) -> None:
    """`module` has the placeholders, nodes, order, arguments and outputs of `half`."""
    inputs, nodes, outputs = of_module(module)
    assert inputs == list(half.inputs), f"{where}: inputs"
    ours = of_record(half.nodes)
    assert [name for name, *_ in nodes] == [name for name, *_ in ours], f"{where}: order"
    assert nodes == ours, where
    assert outputs == half.outputs, f"{where}: outputs"
    for target in {node.target for node in half.nodes if node.kind is NodeKind.ATTR}:
        assert_same_nested(getattr(module, target), dict(graph.subgraphs)[target], f"{where}: {target}")


def assert_same_nested(module: Any, graph: JointGraph, where: str) -> None:
    inputs, nodes, outputs = of_module(module)
    assert inputs == [node.name for node in graph.placeholders], where
    assert nodes == of_record(graph.nodes), where
    assert outputs == graph.outputs, where
    for target, inner in graph.subgraphs:
        assert_same_nested(getattr(module, target), inner, f"{where}: {target}")


def assert_same_modules(left: Any, right: Any, where: str) -> None:
    """Two modules have the same nodes in the same order, nested graphs included."""
    assert of_module(left) == of_module(right), where
    for node in left.graph.find_nodes(op="get_attr"):
        inner = getattr(left, node.target)
        if type(inner).__name__.endswith("GraphModule"):
            assert_same_modules(inner, getattr(right, node.target), f"{where}: {node.target}")

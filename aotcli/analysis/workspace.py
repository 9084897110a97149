"""Scratch memory inside ops: what a timeline adds to live bytes while an op runs.

An op may allocate more than it returns (a convolution about twice its result). How much is measured once for each
distinct op, shapes, dtypes and device, by running it (aotcli/lowering/workspace.py), and looked up here by key.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut
from aotcli.analysis.liveness import Timeline, simulate
from aotcli.ir.joint import Arg, Const, JointGraph, Node, NodeKind, Ref, Slice, Tag
from aotcli.ir.joint import Mapping as MappingArg
from aotcli.ir.partition import Partition
from aotcli.ir.tensor import SymbolSpec, TensorSpec, Value

_NONE_NEEDED = frozenset({Tag.POINTWISE, Tag.VIEW, Tag.VIEW_SCHEMA, Tag.COLLECTIVE, Tag.EFFECTFUL})


def may_need_workspace(node: Node) -> bool:
    """Whether an op could allocate more than its result. Pointwise ops and views never do."""
    return node.kind is NodeKind.OP and node.target.startswith("aten.") and not node.tags & _NONE_NEEDED


def workspace_key(graph: JointGraph, node: Node) -> str:
    """An op with all that its workspace depends on: layouts, dtypes and device types of tensors, other arguments."""
    args = [_text(graph, arg) for arg in node.args]
    args += [f"{key}={_text(graph, arg)}" for key, arg in node.kwargs]
    return f"{node.target}({', '.join(args)})"


def timeline_with_workspace(graph: JointGraph, partition: Partition, workspace: Mapping[str, int]) -> Timeline:
    """The timeline of a partition with the workspaces of its ops, by `workspace_key`, in bytes. Ops that `workspace`
    does not know count for nothing, so that without any the peak is a lower bound."""
    scratch: dict[str, int] = {}
    for node in graph.nodes:
        if may_need_workspace(node):
            nbytes = workspace.get(workspace_key(graph, node), 0)
            if nbytes:
                scratch[node.name] = nbytes
    return simulate(graph, cut(graph, decision_of(partition)), scratch)


def _text(graph: JointGraph, arg: Arg) -> str:
    if isinstance(arg, Ref):
        return _value(graph[arg.name].value)
    if isinstance(arg, tuple):
        return f"[{', '.join(_text(graph, part) for part in arg)}]"
    if isinstance(arg, Slice):
        return f"{_text(graph, arg.start)}:{_text(graph, arg.stop)}:{_text(graph, arg.step)}"
    if isinstance(arg, MappingArg):
        return ", ".join(f"{key}: {_text(graph, part)}" for key, part in arg.items)
    return arg.text if isinstance(arg, Const) else repr(arg)


def _value(value: Value) -> str:
    if isinstance(value, TensorSpec):
        shape = value.shape if value.hint is None else value.hint
        stride = [dim if isinstance(dim, int) else "?" for dim in value.stride]
        return f"{value.dtype}{[*shape]}{stride}@{value.device.partition(':')[0]}"
    if isinstance(value, SymbolSpec):
        return str(value.hint)
    if isinstance(value, tuple):
        return f"({', '.join(_value(part) for part in value)})"
    return "-"

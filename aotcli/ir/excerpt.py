"""A few nodes of a graph as short code, for messages that must show where a fault is."""

from __future__ import annotations

from collections.abc import Sequence

from aotcli.ir.joint import Arg, Const, JointGraph, Mapping, Node, NodeKind, Ref, Slice
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec, Value

_AROUND = 2
_MOST_INPUTS = 4
_WIDTH = 110


def excerpt(graph: JointGraph, positions: Sequence[int]) -> str:
    """The nodes at `positions`, marked, with two neighbours on each side and the nodes that they read."""
    marked = {position for position in positions if 0 <= position < len(graph.nodes)}
    shown: set[int] = set()
    index = graph.index
    for position in marked:
        shown.update(range(max(0, position - _AROUND), min(len(graph.nodes), position + _AROUND + 1)))
        shown.update([index[name] for name in graph.nodes[position].refs if name in index][:_MOST_INPUTS])
    lines: list[str] = []
    last = -1
    for position in sorted(shown):
        if position > last + 1:
            lines.append("      ...")
        mark = ">" if position in marked else " "
        lines.append(f"{mark}{position:6d}  {node_text(graph.nodes[position])}"[:_WIDTH])
        last = position
    return "\n".join(lines)


def node_text(node: Node) -> str:
    """``mm: float32[2, 4] = aten.mm.default(x, w)  # net.py:3``."""
    where = f"  # {node.source}" if node.source else ""
    if node.kind is NodeKind.OUTPUT:
        return f"return {', '.join(_arg_text(arg) for arg in node.args)}"
    if node.is_placeholder:
        return f"{node.name}: {_value_text(node.value)}  # {node.kind.value}"
    args = [_arg_text(arg) for arg in node.args] + [f"{key}={_arg_text(arg)}" for key, arg in node.kwargs]
    return f"{node.name}: {_value_text(node.value)} = {node.target}({', '.join(args)}){where}"


def _arg_text(arg: Arg) -> str:
    if isinstance(arg, Ref):
        return arg.name
    if isinstance(arg, Const):
        return arg.text
    if isinstance(arg, tuple):
        return f"[{', '.join(_arg_text(part) for part in arg)}]"
    if isinstance(arg, Slice):
        return f"{_arg_text(arg.start)}:{_arg_text(arg.stop)}:{_arg_text(arg.step)}"
    if isinstance(arg, Mapping):
        return f"{{{', '.join(f'{key}: {_arg_text(part)}' for key, part in arg.items)}}}"
    return repr(arg)


def _value_text(value: Value) -> str:
    if isinstance(value, TensorSpec):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, SymbolSpec):
        return f"{value.kind} {value.expr}"
    if isinstance(value, OpaqueSpec):
        return value.type_name
    if isinstance(value, tuple):
        return f"({', '.join(_value_text(part) for part in value)})"
    return "None"

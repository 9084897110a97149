"""A graph as readable code: one line per node, marked F or B, with dtype, shape, module and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aotcli.analysis.assemble import decision_of
from aotcli.analysis.cut import cut, half_graph
from aotcli.analysis.summary import backward_marks
from aotcli.ir.joint import Arg, Const, JointGraph, Node, NodeKind, Ref, Slice
from aotcli.ir.joint import Mapping as MappingArg
from aotcli.ir.partition import Partition
from aotcli.ir.tensor import OpaqueSpec, SymbolSpec, TensorSpec, Value
from aotcli.render.page import Page, plain
from aotcli.render.units import dtype_text

_INDENT = "    "
_COMMENT_COLUMN = 72


@dataclass(frozen=True, slots=True)
class GraphCode:
    """What to print: a function's name, its nodes (placeholders first, the output last), a mark for each node, the
    graphs that its higher-order ops refer to, and which of its placeholders are values that the forward saved."""

    name: str
    nodes: Sequence[Node]
    marks: Mapping[str, str]
    subgraphs: Sequence[tuple[str, JointGraph]] = ()
    saved: frozenset[str] = frozenset()


def joint_code(graph: JointGraph) -> GraphCode:
    """A region's joint graph: F for the forward, B for the backward, a blank for placeholders."""
    marks = {
        node.name: ("B" if backward else "F")
        for node, backward in zip(graph.nodes, backward_marks(graph), strict=True)
        if node.kind in (NodeKind.OP, NodeKind.ATTR)
    }
    return GraphCode(f"joint_{graph.name}", graph.nodes, marks, graph.subgraphs)


def half_code(graph: JointGraph, partition: Partition, half: str) -> GraphCode:
    """The "forward" or "backward" that `partition` cuts off: F, B, and R for what the backward runs again."""
    halves = cut(graph, decision_of(partition))
    cut_off = half_graph(graph, halves.forward if half == "forward" else halves.backward, f"{half}_{graph.name}")
    marks = {node.name: "F" if half == "forward" else "B" for node in cut_off.nodes}
    if half == "backward":
        marks |= dict.fromkeys(partition.recomputed, "R")
    saved = frozenset(halves.saved if half == "backward" else ())
    return GraphCode(cut_off.name, cut_off.nodes, marks, cut_off.subgraphs, saved)


def render_code(code: GraphCode, page: Page) -> str:
    """The graph as Python-like text. Lines may be longer than the page: code is not cut."""
    return page.finish(_function_lines(code, page, 0))


def _function_lines(code: GraphCode, page: Page, depth: int) -> Iterator[str]:
    # The mark comes first, so that `grep '^B'` finds the backward.
    inputs = [node for node in code.nodes if node.is_placeholder]
    rest = [node for node in code.nodes if not node.is_placeholder]
    margin = "  " + _INDENT * depth
    yield f"{margin}def {identifier(code.name)}("
    for node in inputs:
        what = "saved" if node.name in code.saved else node.kind.value
        note = _comment([what, node.origin or node.module or "", node.source or ""])
        yield _aligned(f"{margin}{_INDENT}{node.name}: {value_text(node.value)},", note, page)
    yield f"{margin}):"
    nested = dict(code.subgraphs)
    for node in rest:
        if node.kind is NodeKind.ATTR and node.target in nested:
            inner = nested.pop(node.target)
            inner_marks = {each.name: code.marks.get(node.name, "F") for each in inner.nodes}
            inner_code = GraphCode(node.target, inner.nodes, inner_marks, inner.subgraphs)
            yield from _function_lines(inner_code, page, depth + 1)
        yield _node_line(node, code.marks.get(node.name, " "), depth, page)


def _node_line(node: Node, mark: str, depth: int, page: Page) -> str:
    margin = _INDENT * (depth + 1)
    if node.kind is NodeKind.OUTPUT:
        return f"  {margin}return {arg_text(node.args[0] if len(node.args) == 1 else node.args)}"
    style = {"B": "yellow", "F": "green", "R": "red"}.get(mark)
    shown = page.style(mark, style) if style else mark
    text = f"{margin}{node.name}: {value_text(node.value)} = {call_text(node)}"
    return f"{shown} {_aligned(text, _comment([node.module or '', node.source or '', node.checkpoint or '']), page)}"


def _aligned(text: str, comment: str, page: Page) -> str:
    text = plain(text)
    return f"{text.ljust(_COMMENT_COLUMN)}{page.style(comment, 'dim')}" if comment else text


def _comment(parts: Sequence[str]) -> str:
    shown = [plain(part) for part in parts if part]
    return f"  # {'  '.join(shown)}" if shown else ""


def call_text(node: Node) -> str:
    """``aten.mm.default(view, permute)``; an attribute as ``self.name``."""
    if node.kind is NodeKind.ATTR:
        return f"self.{node.target}"
    arguments = [arg_text(arg) for arg in node.args] + [f"{key}={arg_text(arg)}" for key, arg in node.kwargs]
    if node.target == "operator.getitem" and len(node.args) == 2:
        return f"{arguments[0]}[{arguments[1]}]"
    return f"{node.target}({', '.join(arguments)})"


def arg_text(arg: Arg) -> str:
    """An argument as Python would write it; references by name."""
    if isinstance(arg, Ref):
        return arg.name
    if isinstance(arg, Const):
        return arg.text
    if isinstance(arg, Slice):
        return f"slice({arg_text(arg.start)}, {arg_text(arg.stop)}, {arg_text(arg.step)})"
    if isinstance(arg, MappingArg):
        return "{" + ", ".join(f"{key!r}: {arg_text(part)}" for key, part in arg.items) + "}"
    if isinstance(arg, tuple):
        return "[" + ", ".join(arg_text(part) for part in arg) + "]"
    return repr(arg)


def value_text(value: Value) -> str:
    """``f32[8192, 768]``; ``(f32[8], i64[8])`` for several; ``int s77`` for a symbol."""
    if isinstance(value, TensorSpec):
        return f"{dtype_text(value.dtype)}[{', '.join(str(dim) for dim in value.shape)}]"
    if isinstance(value, SymbolSpec):
        return f"{value.kind} {value.expr}"
    if isinstance(value, OpaqueSpec):
        return value.type_name
    if isinstance(value, tuple):
        return "(" + ", ".join(value_text(part) for part in value) + ")"
    return "None"


def identifier(name: str) -> str:
    """`name` as something that may follow ``def``."""
    return "".join(char if char.isalnum() or char == "_" else "_" for char in name)

"""Checks at the stage boundaries: a graph, or a partition of one, that contradicts itself is shown where it does."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from aotcli.errors import VerificationError
from aotcli.ir.excerpt import excerpt
from aotcli.ir.joint import PRIMAL_KINDS, JointGraph, Node, NodeKind
from aotcli.ir.tensor import OpaqueSpec, TensorSpec, Value, tensor_leaves
from aotcli.ir.verify_partition import verify_partition

__all__ = ["verify_graph", "verify_partition"]

_GETITEM = "operator.getitem"
_BYTE_LIMIT = 1 << 62

Fault = tuple[str, tuple[int, ...]]
"""What is wrong, and the positions of the nodes to show."""


def verify_graph(graph: JointGraph) -> None:
    """Check that `graph` is a joint graph; time is linear in nodes and arguments.

    Names are unique, every reference is to an earlier node, placeholders stand first and one OUTPUT last, values that
    are read exist, tensors of one storage agree on its size and fit into it, and what `graph` names (static and mutated
    inputs, symbols, nested graphs) is there. Raises VerificationError with the neighbourhood of the first fault.
    """
    for check in (_order, _signature, _values, _storages, _nested):
        for what, positions in check(graph):
            shown = excerpt(graph, positions)
            raise VerificationError(
                f"{graph.name} is not a valid joint graph: {what}" + (f"\n{shown}" if shown else ""),
                why="a fault in aotcli, or in a record that was edited by hand",
                fix="report it with the trace (`aotcli trace ... -o trace.aot.json`)",
            )
    for _, inner in graph.subgraphs:
        verify_graph(inner)


def _order(graph: JointGraph) -> Iterator[Fault]:
    """Unique names, references to earlier nodes, placeholders first, one output, last."""
    if not graph.nodes or graph.nodes[-1].kind is not NodeKind.OUTPUT:
        yield "its last node is not the output", (len(graph.nodes) - 1,)
    seen: set[str] = set()
    body = False
    for position, node in enumerate(graph.nodes):
        if node.name in seen:
            yield f"two nodes are named {node.name}", (graph.index[node.name], position)
        seen.add(node.name)
        if not node.is_placeholder:
            body = True
        elif body:
            yield f"placeholder {node.name} stands after the first op", (position,)
        if node.kind is NodeKind.OUTPUT and position != len(graph.nodes) - 1:
            yield "it has an output before its end", (position,)
    try:
        ordered = all(max(inputs, default=-1) < position for position, inputs in enumerate(graph.inputs_of))
    except KeyError:
        ordered = False
    if not ordered:
        yield from _bad_references(graph)


def _bad_references(graph: JointGraph) -> Iterator[Fault]:
    for position, node in enumerate(graph.nodes):
        for name in node.refs:
            if graph.index.get(name, position) >= position:
                why = "stands later" if name in graph.index else "does not exist"
                yield f"{node.name} reads {name}, which {why}", (position,)


def _signature(graph: JointGraph) -> Iterator[Fault]:
    """Output count, level, static and mutated inputs, symbols."""
    last = len(graph.nodes) - 1
    if not 0 <= graph.num_forward_outputs <= len(graph.outputs):
        yield f"{graph.num_forward_outputs} forward outputs of {len(graph.outputs)} outputs", (last,)
    if not graph.has_backward and graph.num_forward_outputs != len(graph.outputs):
        yield f"no backward, but {len(graph.backward_outputs)} backward outputs", (last,)
    if graph.level not in ("inductor", "aten"):
        yield f"level {graph.level!r} is neither inductor nor aten", ()
    for names, what in ((graph.static_inputs, "static input"), (graph.mutated, "mutated input")):
        for name in names:
            position = graph.index.get(name)
            if position is None:
                yield f"{what} {name} does not exist", ()
            elif graph.nodes[position].kind not in PRIMAL_KINDS:
                yield f"{what} {name} is no input", (position,)
        if len(set(names)) < len(names):
            yield f"a {what} is named twice", ()
    if len(graph.symbol_names) < len(graph.symbols):
        yield "two symbols have the same name", ()


def _values(graph: JointGraph) -> Iterator[Fault]:
    """Placeholders and whatever an op reads have values; each value is consistent in itself."""
    layouts: dict[tuple[object, ...], str] = {}
    for position, node in enumerate(graph.nodes):
        if node.is_placeholder:
            if node.value is None and graph.users_of[position]:
                yield f"{node.name} is read but has no value", (position, graph.users_of[position][0])
            if node.args or node.kwargs:
                yield f"placeholder {node.name} has arguments", (position,)
        elif node.kind is NodeKind.OP:
            yield from _op_values(graph, position, node)
        for leaf in tensor_leaves(node.value):
            layout = (leaf.shape, leaf.stride, leaf.nbytes, leaf.storage_nbytes, leaf.hint, leaf.storage < 0)
            fault = layouts.get(layout)
            if fault is None:
                fault = layouts[layout] = _spec_fault(leaf)
            if fault:
                yield f"{node.name}: {fault}", (position,)


def _op_values(graph: JointGraph, position: int, node: Node) -> Iterator[Fault]:
    inputs = graph.inputs_of[position]
    for source in inputs:
        read = graph.nodes[source]
        if read.value is None and read.kind is NodeKind.OP:
            yield f"{node.name} reads {read.name}, which has no value", (position, source)
    if node.target == _GETITEM and len(inputs) == 1 and len(node.args) == 2:
        parts, number = graph.nodes[inputs[0]].value, node.args[1]
        if isinstance(parts, tuple) and type(number) is int:
            if not -len(parts) <= number < len(parts):
                yield f"{node.name} takes item {number} of {len(parts)}", (position, inputs[0])
            elif not _same_layout(parts[number], node.value):
                yield f"{node.name} differs from the item it takes", (position, inputs[0])


def _same_layout(left: Value, right: Value) -> bool:
    if isinstance(left, TensorSpec) and isinstance(right, TensorSpec):
        return (left.shape, left.dtype, left.storage) == (right.shape, right.dtype, right.storage)
    return type(left) is type(right)


def _spec_fault(spec: TensorSpec) -> str:
    """What is wrong with one tensor, or nothing."""
    symbolic = any(isinstance(dim, str) for dim in spec.shape)
    if symbolic != (spec.hint is not None):
        return "a shape has a hint if and only if it has symbols"
    sizes = spec.sizes
    if len(sizes) != len(spec.shape) or len(spec.stride) not in (0, len(sizes)):
        return f"shape {spec.shape}, stride {spec.stride} and hint {spec.hint} differ in length"
    if min(sizes, default=0) < 0 or not 0 <= spec.nbytes < _BYTE_LIMIT or not 0 <= spec.storage_nbytes < _BYTE_LIMIT:
        return "a size is out of range"
    numel = prod(sizes)
    if spec.nbytes % numel if numel else spec.nbytes:
        return f"{spec.nbytes} bytes do not divide among {numel} elements"
    if spec.storage < 0 or not numel or any(isinstance(step, str) for step in spec.stride):
        return ""
    reach = 1 + sum((size - 1) * int(step) for size, step in zip(sizes, spec.stride, strict=False))
    needed = reach * (spec.nbytes // numel)
    if needed > spec.storage_nbytes:
        return f"it reaches over {needed} bytes of a storage of {spec.storage_nbytes}"
    return ""


def _storages(graph: JointGraph) -> Iterator[Fault]:
    """Tensors of one storage agree on its bytes and its device."""
    first: dict[int, tuple[TensorSpec, int]] = {}
    for position, node in enumerate(graph.nodes):
        for leaf in tensor_leaves(node.value):
            if leaf.storage < 0:
                continue
            known, where = first.setdefault(leaf.storage, (leaf, position))
            if (known.storage_nbytes, known.device) != (leaf.storage_nbytes, leaf.device):
                there = f"{known.storage_nbytes} bytes on {known.device} at {graph.nodes[where].name}"
                here = f"{leaf.storage_nbytes} on {leaf.device} at {node.name}"
                yield f"storage {leaf.storage} has {there}, {here}", (where, position)


def _nested(graph: JointGraph) -> Iterator[Fault]:
    """Graphs of higher-order ops exist, once each, and are referred to."""
    names = [name for name, _ in graph.subgraphs]
    attributes: set[str] = set()
    for position, node in enumerate(graph.nodes):
        if node.kind is NodeKind.ATTR:
            attributes.add(node.target)
            if isinstance(node.value, OpaqueSpec) and node.value.kind == "graph" and node.target not in names:
                yield f"{node.name} refers to a nested graph {node.target} that is not there", (position,)
    for name in names:
        if name not in attributes:
            yield f"no node refers to the nested graph {name}", ()
    if len(set(names)) < len(names):
        yield "two nested graphs have the same name", ()

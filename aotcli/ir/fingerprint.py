"""A canonical order of a joint graph's nodes, and a hash of the graph in that order.

Canonical form: placeholders in their order (it is the calling convention), then every node in post-order of a
depth-first walk from the outputs, following arguments from left to right; what the outputs do not reach comes last.
Arguments are ordered, so the walk meets no ties, and two graphs have the same canonical form exactly when a renaming of
nodes and symbols and a reordering of independent nodes turns one into the other.

Left out of the hash: names, module paths, source lines, whether a primal is a parameter, a buffer or an input (that it
is static is in), device numbers, traced sizes of symbols, tags and policies. The order of ops with effects or
randomness is meaning, not layout: their ordinal is hashed, and so is how many mutations of a storage came before each
read of it. Storages enter by alias topology alone: numbered by first appearance.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from aotcli.ir.joint import (
    PRIMAL_KINDS,
    Arg,
    Const,
    JointGraph,
    Mapping,
    Node,
    NodeKind,
    Ref,
    Slice,
    Tag,
)
from aotcli.ir.tensor import Dim, OpaqueSpec, SymbolSpec, TensorSpec, Value, tensor_leaves

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_ORDERED = frozenset({Tag.RANDOM, Tag.IMPURE, Tag.EFFECTFUL, Tag.MUTABLE, Tag.COLLECTIVE, Tag.WITH_EFFECTS})
_HEX_DIGITS = 32


def fingerprint(graph: JointGraph) -> str:
    """The graph's identity: 32 hexadecimal digits of the SHA-256 of its canonical form."""
    text = _CanonicalText(_all_symbols(graph)).of(graph)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:_HEX_DIGITS]


def canonical_order(graph: JointGraph) -> tuple[int, ...]:
    """Positions of the nodes in canonical order, which is topological; the output is last.

    Neither names nor the order of independent nodes matter. Only among nodes that nothing reads, that have no effect
    and that compute the same expression does the position in the graph break the tie.
    """
    inputs = graph.inputs_of
    order: list[int] = []
    seen = bytearray(len(graph.nodes))
    for position, node in enumerate(graph.nodes):
        if node.is_placeholder:
            seen[position] = 1
            order.append(position)
    last = len(graph.nodes) - 1
    has_output = last >= 0 and graph.nodes[last].kind is NodeKind.OUTPUT
    if has_output:
        seen[last] = 1
        for source in inputs[last]:
            _walk(source, inputs, seen, order)
    for position, node in enumerate(graph.nodes):
        if not seen[position] and node.tags & _ORDERED:
            _walk(position, inputs, seen, order)
    if len(order) + has_output < len(graph.nodes):
        for position in _unread(graph, seen, order):
            _walk(position, inputs, seen, order)
    if has_output:
        order.append(last)
    return tuple(order)


def _walk(start: int, inputs: Sequence[Sequence[int]], seen: bytearray, order: list[int]) -> None:
    """Append `start` and all that it reads to `order`, each after its inputs."""
    if seen[start]:
        return
    seen[start] = 1
    stack = [(start, iter(inputs[start]))]
    while stack:
        position, rest = stack[-1]
        for source in rest:
            if not seen[source]:
                seen[source] = 1
                stack.append((source, iter(inputs[source])))
                break
        else:
            order.append(position)
            stack.pop()


def _unread(graph: JointGraph, seen: bytearray, order: list[int]) -> list[int]:
    """Nodes that are left and that nothing reads, sorted by the expression that they compute."""
    writer = _CanonicalText(_all_symbols(graph))
    labels = {position: f"%{rank}" for rank, position in enumerate(order)}
    roots: list[tuple[str, int]] = []
    for position, node in enumerate(graph.nodes):
        if position in labels or node.kind is NodeKind.OUTPUT:
            continue
        text = writer.expression(node, [labels[source] for source in graph.inputs_of[position]])
        labels[position] = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        if not graph.users_of[position]:
            roots.append((labels[position], position))
    return [position for _, position in sorted(roots)]


def _all_symbols(graph: JointGraph) -> frozenset[str]:
    nested = [_all_symbols(inner) for _, inner in graph.subgraphs]
    return graph.symbol_names.union(*nested)


class _CanonicalText:
    """Writes graphs in canonical form; symbols are numbered by first appearance, across nested graphs."""

    def __init__(self, symbols: frozenset[str]) -> None:
        self._symbols = symbols
        self._symbol_numbers: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._storages: dict[int, int] = {}
        self._specs: dict[tuple[object, ...], str] = {}

    def of(self, graph: JointGraph) -> str:
        order = canonical_order(graph)
        outer = self._labels, self._storages
        self._labels = {graph.nodes[position].name: f"%{rank}" for rank, position in enumerate(order)}
        self._storages = {}
        notes = _order_notes(graph)
        attributes: dict[str, int] = {}
        nested: list[str] = []
        lines = [self._header(graph)]
        for position in order:
            node = graph.nodes[position]
            if node.kind is NodeKind.ATTR:
                if node.target not in attributes:
                    attributes[node.target] = len(attributes)
                    nested += [self.of(inner) for name, inner in graph.subgraphs if name == node.target]
                lines.append(f"attr {attributes[node.target]} {self._value(node.value)}")
            else:
                lines.append(f"{self._node(node)}{notes.get(position, '')}")
        self._labels, self._storages = outer
        return "\n".join((*lines, *nested, "end"))

    def _header(self, graph: JointGraph) -> str:
        static = [self._labels[name] for name in graph.static_inputs]
        mutated = [self._labels[name] for name in graph.mutated]
        return f"{graph.level} {graph.num_forward_outputs} {graph.has_backward} {static} {mutated}"

    def expression(self, node: Node, inputs: Sequence[str]) -> str:
        """A node by what its inputs compute, for nodes that have no place in the order yet."""
        self._labels = dict(zip(node.refs, inputs, strict=True))
        return self._node(node, aliases=False)

    def _node(self, node: Node, *, aliases: bool = True) -> str:
        value = self._value(node.value) if aliases else str(len(tensor_leaves(node.value)))
        if node.is_placeholder:
            binds = "" if node.binds is None else self._expression(node.binds)
            # Inside a compiler nothing tells a parameter from an input but that it is static, which the header says.
            kind = "primal" if node.kind in PRIMAL_KINDS else node.kind
            return f"{kind} {binds} {value}"
        args = ",".join([self._arg(arg) for arg in node.args])
        kwargs = ",".join([f"{key}={self._arg(arg)}" for key, arg in node.kwargs]) if node.kwargs else ""
        target = "" if node.kind is NodeKind.OUTPUT else node.target
        return f"{node.kind} {target}({args};{kwargs}) {value}"

    def _arg(self, arg: Arg) -> str:
        if isinstance(arg, Ref):
            return self._labels[arg.name]
        if isinstance(arg, tuple):
            return f"[{','.join([self._arg(part) for part in arg])}]"
        if isinstance(arg, Const):
            return f"{arg.kind}:{self._constant(arg)}"
        if isinstance(arg, Slice):
            return f"slice({self._arg(arg.start)},{self._arg(arg.stop)},{self._arg(arg.step)})"
        if isinstance(arg, Mapping):
            return "{" + ",".join([f"{key!r}:{self._arg(part)}" for key, part in arg.items]) + "}"
        return repr(arg)

    def _constant(self, const: Const) -> str:
        if const.kind == "symbol":
            return self._expression(const.text)
        return _device_type(const.text) if const.kind == "device" else repr(const.text)

    def _value(self, value: Value) -> str:
        if value is None:
            return "-"
        if isinstance(value, tuple):
            return f"({','.join([self._value(part) for part in value])})"
        if isinstance(value, TensorSpec):
            number = value.storage
            if number >= 0:
                number = self._storages.setdefault(number, len(self._storages))
            return f"{self._spec(value)}@{number}"
        if isinstance(value, SymbolSpec):
            return f"{value.kind} {self._expression(value.expr)}"
        return _opaque(value)

    def _spec(self, spec: TensorSpec) -> str:
        key = (spec.shape, spec.stride, spec.dtype, spec.device)
        text = self._specs.get(key)
        if text is None:
            shape, stride = ([self._dim(dim) for dim in dims] for dims in (spec.shape, spec.stride))
            text = f"{spec.dtype}{shape}{stride}{_device_type(spec.device)}"
            self._specs[key] = text
        return text

    def _dim(self, dim: Dim) -> str:
        return self._expression(dim) if isinstance(dim, str) else str(dim)

    def _expression(self, text: str) -> str:
        return _IDENTIFIER.sub(self._symbol, text)

    def _symbol(self, match: re.Match[str]) -> str:
        name = match[0]
        if name not in self._symbols:
            return name
        return self._symbol_numbers.setdefault(name, f"${len(self._symbol_numbers)}")


def _opaque(value: OpaqueSpec) -> str:
    return f"{value.kind} {value.type_name}"


def _device_type(device: str) -> str:
    return device.partition(":")[0]


def _order_notes(graph: JointGraph) -> dict[int, str]:
    """What of the graph's order is meaning: the ordinal of ops with effects, and which mutations a read comes after."""
    notes: dict[int, str] = {}
    ordinal = 0
    versions: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if versions:
            read = [_version(graph.nodes[source].value, versions) for source in graph.inputs_of[position]]
            if any(read):
                notes[position] = f" after {read}"
        if node.tags & _ORDERED:
            notes[position] = f"{notes.get(position, '')} effect {ordinal}"
            ordinal += 1
        if Tag.MUTABLE in node.tags:
            for source in graph.inputs_of[position]:
                for leaf in tensor_leaves(graph.nodes[source].value):
                    versions[leaf.storage] = versions.get(leaf.storage, 0) + 1
    return notes


def _version(value: Value, versions: dict[int, int]) -> int:
    return sum(versions.get(leaf.storage, 0) for leaf in tensor_leaves(value))

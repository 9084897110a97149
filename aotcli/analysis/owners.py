"""Whose node is it: module and line for nodes that tracing left without.

Decompositions, pattern replacements and gradient accumulation make nodes with no module stack; on a hand-written
attention they hold a tenth of all saved bytes. They are given an owner from their neighbours, in this order:

1. a parameter or buffer belongs to the module that its qualified name starts with;
2. a node that reads a parameter, straight or through views, belongs to that parameter's module;
3. otherwise to the module that encloses the owners of its inputs; then, for what is left, of its users.

An enclosing module is the longest common prefix of paths that is a module some node was traced in (a `ModuleList` runs
no code, so it owns nothing), down to "", the model itself. What tracing wrote is never changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from aotcli.ir.joint import JointGraph, Node, NodeKind, Tag

_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})


@dataclass(frozen=True, slots=True)
class Owner:
    """Module path ("" is the model itself), its class, and ``file:line``; None where nothing is known."""

    module: str | None
    module_type: str | None
    source: str | None


def with_owners(graph: JointGraph) -> JointGraph:
    """`graph` with every owner that can be told filled in, nested graphs included. The fingerprint stays: it holds
    no names."""
    owners = assign_owners(graph)
    nodes = tuple(
        node
        if (node.module, node.module_type, node.source) == (owner.module, owner.module_type, owner.source)
        else dataclasses.replace(node, module=owner.module, module_type=owner.module_type, source=owner.source)
        for node, owner in zip(graph.nodes, owners, strict=True)
    )
    subgraphs = tuple((target, with_owners(nested)) for target, nested in graph.subgraphs)
    return dataclasses.replace(graph, nodes=nodes, subgraphs=subgraphs)


def assign_owners(graph: JointGraph) -> tuple[Owner, ...]:
    """The owner of each node, by position. Linear in nodes and edges."""
    types = _module_types(graph)
    modules = _modules(graph, frozenset(types))
    sources = _sources(graph, modules)
    return tuple(
        Owner(module, node.module_type or (types.get(module) if module is not None else None), source)
        for node, module, source in zip(graph.nodes, modules, sources, strict=True)
    )


def _module_types(graph: JointGraph) -> dict[str, str | None]:
    """Every module path that some node was traced in, with its class where known."""
    types: dict[str, str | None] = {"": None}
    for node in graph.nodes:
        if node.module is not None and types.get(node.module) is None:
            types[node.module] = node.module_type
    return types


def _modules(graph: JointGraph, known: frozenset[str]) -> list[str | None]:
    modules = [_traced_module(node) for node in graph.nodes]
    inputs_of, users_of = graph.inputs_of, graph.users_of
    parameter_of = _parameter_readers(graph)
    missing = [p for p, node in enumerate(graph.nodes) if modules[p] is None and node.kind is not NodeKind.OUTPUT]
    for position in missing:
        node = graph.nodes[position]
        read = {modules[parameter_of[i]] for i in inputs_of[position] if i in parameter_of} - {None}
        if node.is_placeholder or node.kind is NodeKind.ATTR:
            continue  # inputs and constants have no inputs: their users tell
        modules[position] = read.pop() if len(read) == 1 else _enclosing(_owned(modules, inputs_of[position]), known)
    for position in reversed(missing):
        if modules[position] is None:
            modules[position] = _enclosing(_owned(modules, users_of[position]), known)
    # A source that only its users could place may now place what else reads it.
    for position in missing:
        if modules[position] is None:
            modules[position] = _enclosing(_owned(modules, inputs_of[position]), known)
    return modules


def _traced_module(node: Node) -> str | None:
    if node.module is None and node.kind in (NodeKind.PARAM, NodeKind.BUFFER) and node.origin:
        return node.origin.rpartition(".")[0]
    return node.module


def _parameter_readers(graph: JointGraph) -> dict[int, int]:
    """Positions of parameters, buffers and views of them, each with the position of the parameter or buffer."""
    found: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if node.kind in (NodeKind.PARAM, NodeKind.BUFFER):
            found[position] = position
        elif not _VIEWS.isdisjoint(node.tags):
            inputs = graph.inputs_of[position]
            if len(inputs) == 1 and inputs[0] in found:
                found[position] = found[inputs[0]]
    return found


def _owned(modules: list[str | None], positions: Iterable[int]) -> list[str]:
    return list({module: None for p in positions if (module := modules[p]) is not None})


def _enclosing(paths: list[str], known: frozenset[str]) -> str | None:
    """The innermost known module that encloses all of `paths`; None where there are none."""
    if len(paths) <= 1:
        return paths[0] if paths else None
    common = paths[0].split(".")
    for path in paths[1:]:
        parts = path.split(".")
        length = 0
        while length < min(len(common), len(parts)) and common[length] == parts[length]:
            length += 1
        common = common[:length]
    while common and ".".join(common) not in known:
        common = common[:-1]
    return ".".join(common)


def _sources(graph: JointGraph, modules: list[str | None]) -> list[str | None]:
    """Lines: from the nearest neighbour in the same module, else from any neighbour; inputs before users."""
    sources = [node.source for node in graph.nodes]
    missing = [p for p, node in enumerate(graph.nodes) if sources[p] is None and node.kind is not NodeKind.OUTPUT]
    for same_module in (True, False):
        for order, neighbours in ((missing, graph.inputs_of), (missing[::-1], graph.users_of)):
            for position in order:
                if sources[position] is None:
                    sources[position] = _neighbour_source(position, neighbours[position], sources, modules, same_module)
    return sources


def _neighbour_source(
    position: int,
    neighbours: tuple[int, ...],
    sources: list[str | None],
    modules: list[str | None],
    same_module: bool,
) -> str | None:
    for neighbour in neighbours:
        if sources[neighbour] is not None and (not same_module or modules[neighbour] == modules[position]):
            return sources[neighbour]
    return None

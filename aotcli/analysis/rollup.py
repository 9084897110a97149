"""What is saved and what is run again, added up by module and by source line.

A saved tensor belongs to the module that made its memory and to the line of the value that is saved, as in the table
of aotcli/analysis/layers.py; a recomputed op to its own module and line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aotcli.analysis.cost import traffic
from aotcli.analysis.layers import group_storages, layer_pattern
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.partition import Category, Partition


@dataclass(frozen=True, slots=True)
class Sums:
    """Totals of one module or line. `moved_bytes` is what the ops that run again read and write, each run alone."""

    saved_bytes: int = 0
    saved_tensors: int = 0
    recomputed_ops: int = 0
    recompute_flops: int = 0
    moved_bytes: int = 0
    forward_flops: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.saved_bytes + other.saved_bytes,
            self.saved_tensors + other.saved_tensors,
            self.recomputed_ops + other.recomputed_ops,
            self.recompute_flops + other.recompute_flops,
            self.moved_bytes + other.moved_bytes,
            self.forward_flops + other.forward_flops,
        )


_NOTHING = Sums()


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """A module and all that it holds. `path` has ``*`` for layer numbers where layers were taken together; `count` is
    how many modules the row stands for; `parent` is the position of the enclosing module's row, -1 for the model's.
    """

    path: str
    module_type: str | None
    depth: int
    parent: int
    count: int
    sums: Sums


@dataclass(frozen=True, slots=True)
class LineRow:
    """A source line, ``file:line``; None gathers what has no line. `code` is its text where the record has it."""

    source: str | None
    code: str | None
    sums: Sums


@dataclass(frozen=True, slots=True)
class Rollup:
    """One region, added up. Modules stand in the forward's order, each before what it holds; lines by saved bytes."""

    modules: tuple[ModuleRow, ...]
    layers: tuple[ModuleRow, ...]
    lines: tuple[LineRow, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """One thing to add up, and where it belongs."""

    module: str | None
    source: str | None
    sums: Sums


def roll_up(graph: JointGraph, partition: Partition) -> Rollup:
    """The rollup of one region. Linear in nodes times the depth of modules."""
    items = [*_saved_items(graph, partition), *_recomputed_items(graph, partition), *_forward_items(graph, partition)]
    own: dict[str | None, Sums] = {}
    lines: dict[str | None, Sums] = {}
    for item in items:
        own[item.module] = own.get(item.module, _NOTHING) + item.sums
        lines[item.source] = lines.get(item.source, _NOTHING) + item.sums
    types: dict[str | None, str | None] = {
        node.module: node.module_type for node in graph.nodes if node.module is not None and node.module_type
    }
    code = {node.source: node.code for node in graph.nodes if node.source is not None and node.code is not None}
    rows = [LineRow(source, code.get(source) if source else None, sums) for source, sums in lines.items()]
    wanted = [row for row in rows if row.sums.saved_bytes or row.sums.recomputed_ops]
    return Rollup(
        _module_rows(graph, own, types, together=False),
        _module_rows(graph, own, types, together=True),
        tuple(sorted(wanted, key=lambda row: (-row.sums.saved_bytes, -row.sums.moved_bytes))),
    )


def _saved_items(graph: JointGraph, partition: Partition) -> list[_Item]:
    values = [value for value in partition.saved if value.category is Category.ACTIVATION]
    return [
        _Item(
            tensor.path,
            tensor.values[0].source,
            Sums(saved_bytes=tensor.nbytes, saved_tensors=1),
        )
        for tensor in group_storages(graph, values)
    ]


def _recomputed_items(graph: JointGraph, partition: Partition) -> list[_Item]:
    items: list[_Item] = []
    for name in partition.recomputed:
        position = graph.index.get(name)
        if position is None:
            continue
        node = graph.nodes[position]
        moved = traffic(graph, node)
        moved_bytes = moved.read_bytes + moved.written_bytes
        if not moved_bytes and not node.flops:
            continue  # a view: nothing runs
        sums = Sums(recomputed_ops=1, recompute_flops=node.flops or 0, moved_bytes=moved_bytes)
        items.append(_Item(node.module, node.source, sums))
    return items


def _forward_items(graph: JointGraph, partition: Partition) -> list[_Item]:
    items: list[_Item] = []
    for name in partition.forward_nodes:
        position = graph.index.get(name)
        if position is not None:
            node = graph.nodes[position]
            items.append(_Item(node.module, node.source, Sums(forward_flops=node.flops or 0)))
    return items


def _module_rows(
    graph: JointGraph, own: Mapping[str | None, Sums], types: Mapping[str | None, str | None], *, together: bool
) -> tuple[ModuleRow, ...]:
    """Rows of a tree of modules, each with what its inner modules hold; with `together`, equal layers in one row."""
    totals: dict[str | None, Sums] = {}
    members: dict[str | None, set[str]] = {}
    kinds: dict[str | None, str | None] = {}
    for path in _in_order(graph.nodes, own):
        for prefix in _prefixes(path):
            key = layer_pattern(prefix) if together and prefix else prefix
            totals[key] = totals.get(key, _NOTHING) + own[path]
            if prefix is not None:
                members.setdefault(key, set()).add(prefix)
                kinds.setdefault(key, types.get(prefix))
    return _as_tree(totals, members, kinds)


def _in_order(nodes: Sequence[Node], own: Mapping[str | None, Sums]) -> list[str | None]:
    """Modules in the order in which the forward reaches them; what has none comes last."""
    seen = dict.fromkeys(node.module for node in nodes if node.kind is NodeKind.OP and node.module in own)
    seen |= dict.fromkeys(own)
    return [path for path in seen if path is not None] + [path for path in seen if path is None]


def _prefixes(path: str | None) -> list[str | None]:
    """``""``, ``h``, ``h.0``, ``h.0.fc`` of ``h.0.fc``."""
    if path is None:
        return [None]
    parts = path.split(".") if path else []
    return ["", *(".".join(parts[: i + 1]) for i in range(len(parts)))]


def _as_tree(
    totals: Mapping[str | None, Sums], members: Mapping[str | None, set[str]], kinds: Mapping[str | None, str | None]
) -> tuple[ModuleRow, ...]:
    children: dict[str | None, list[str]] = {}
    for path in totals:
        if path:
            children.setdefault(path.rpartition(".")[0], []).append(path)
    rows: list[ModuleRow] = []
    stack: list[tuple[str, int, int]] = [("", 0, -1)] if "" in totals else []
    while stack:
        path, depth, parent = stack.pop()
        rows.append(ModuleRow(path, kinds.get(path), depth, parent, len(members.get(path, ())), totals[path]))
        place = len(rows) - 1
        stack += [(child, depth + 1, place) for child in reversed(children.get(path, []))]
    if None in totals:
        rows.append(ModuleRow("?", None, 0, -1, 1, totals[None]))
    return tuple(rows)

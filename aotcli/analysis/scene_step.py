"""A step's ops as they run, one unit for each op of each half, and what passes between them: what scenes are folded
from.

Views and results taken out of a tuple are seen through, unless asked for: who reads a view reads what it is a view of.
Ops on sizes, small constants that are not saved, and nested graphs are left out. Linear in nodes and edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from aotcli.analysis.scene import Change, Side
from aotcli.analysis.summary import backward_marks
from aotcli.ir.joint import JointGraph, Node, NodeKind, Ref, Tag
from aotcli.ir.partition import Partition, SavedKind, SavedValue
from aotcli.ir.tensor import SymbolSpec, tensor_leaves

ENDS = frozenset({Change.ADDED, Change.REMOVED})
"""Changes of what only one of two graphs has."""

_VIEWS = frozenset({Tag.VIEW, Tag.VIEW_SCHEMA})
_RANDOM = frozenset({Tag.RANDOM, Tag.RANDOM_OP, Tag.IMPURE, Tag.EFFECTFUL})
_SMALL_BYTES = 64 * 1024
_GETITEM = "operator.getitem"
_SUM = "aten.add.Tensor"


@dataclass(frozen=True, slots=True)
class Unit:
    """One op in one half. `module` is the path of the module that it is drawn in; `recomputed`: the forward runs it,
    too. `change` and `was` say how it differs from another graph that is drawn with it."""

    node: Node
    side: Side
    recomputed: bool = False
    module: str = ""
    change: Change = Change.SAME
    was: str = ""


@dataclass(frozen=True, slots=True)
class SavedFlow:
    """A saved value, the unit that makes it (None where that is not drawn), and the units that read it. `graph` is the
    graph of a value that only another graph saves, with which this one is drawn."""

    value: SavedValue
    maker: int | None
    readers: tuple[int, ...]
    change: Change = Change.SAME
    graph: JointGraph | None = None


@dataclass(frozen=True)
class Step:
    """Units in run order, the forward's first. `flows` are pairs of units (source, reader); `reads` pairs of a
    placeholder's name and a reader; `results` pairs of a unit and whether it is a result of the forward."""

    graph: JointGraph
    units: tuple[Unit, ...]
    flows: tuple[tuple[int, int], ...]
    saved: tuple[SavedFlow, ...]
    reads: tuple[tuple[str, int], ...]
    results: tuple[tuple[int, bool], ...]


def is_view(node: Node) -> bool:
    """Whether a node only gives another name to memory that there is."""
    return node.target == _GETITEM or not _VIEWS.isdisjoint(node.tags)


def is_hidden(node: Node, *, views: bool) -> bool:
    """Whether a picture has no box for an op: sizes never, views and small constants not without `views`."""
    if node.kind is not NodeKind.OP or isinstance(node.value, SymbolSpec):
        return True
    return not views and (is_view(node) or _is_small_constant(node))


def step_of(graph: JointGraph, partition: Partition | None, *, views: bool = False) -> Step:
    """The units of a region: of both halves of `partition`, or of the joint graph where it is None."""
    tracer = _Tracer(graph, partition, views=views)
    if partition is None:
        marks = backward_marks(graph)
        nodes = [(node, Side.BACKWARD if back else Side.FORWARD) for node, back in zip(graph.nodes, marks, strict=True)]
        for node, side in nodes:
            if node.kind is NodeKind.OP:
                tracer.run(node, side)
        tracer.finish(Side.BACKWARD, graph.backward_outputs)
        tracer.finish(Side.FORWARD, graph.forward_outputs)
        return tracer.step(())
    for name in partition.forward_nodes:
        tracer.run(graph[name], Side.FORWARD)
    tracer.finish(Side.FORWARD, graph.forward_outputs if graph.has_backward else graph.outputs)
    tracer.enter_backward(partition)
    recomputed = frozenset(partition.recomputed)
    for name in partition.backward_nodes:
        tracer.run(graph[name], Side.BACKWARD, recomputed=name in recomputed)
    if graph.has_backward:
        tracer.finish(Side.BACKWARD, graph.backward_outputs)
    return tracer.step(partition.saved)


class _Tracer:
    """Follows names to what they stand for: a unit (its number), a placeholder or saved value (its name), or None."""

    def __init__(self, graph: JointGraph, partition: Partition | None, *, views: bool) -> None:
        self._graph = graph
        self._replaced: Mapping[str, str] = partition.replaced if partition is not None else {}
        self._views = views
        self._units: list[Unit] = []
        self._flows: list[tuple[int, int]] = []
        self._reads: list[tuple[str, int]] = []
        self._results: list[tuple[int, bool]] = []
        self._known: dict[str, int | str | None] = {node.name: node.name for node in graph.nodes if node.is_placeholder}
        self._forward: dict[str, int | str | None] = {}
        self._readers: dict[str, list[int]] = {}
        self._saved = frozenset(value.name for value in partition.saved) if partition is not None else frozenset[str]()

    def enter_backward(self, partition: Partition) -> None:
        """From here on only what is saved is known of the forward."""
        self._forward = self._known
        placeholders = {name: name for name, found in self._known.items() if found == name}
        saved = [value.name for value in partition.saved if value.kind is not SavedKind.SYMINT]
        self._readers = {name: [] for name in saved if isinstance(self._forward.get(name), int)}
        # A saved view of a placeholder is that placeholder.
        self._known = {**placeholders, **{name: self._forward.get(name) for name in saved}}
        self._known.update({name: name for name in self._readers})

    def run(self, node: Node, side: Side, *, recomputed: bool = False) -> None:
        """The next op in run order."""
        if node.kind is not NodeKind.OP or isinstance(node.value, SymbolSpec):
            return
        sources = dict.fromkeys(found for name in node.refs if (found := self._find(name)) is not None)
        if not self._views and is_view(node) and sources:
            self._known[node.name] = next(iter(sources))
            return
        if not self._views and _is_small_constant(node) and node.name not in self._saved:
            return
        number = len(self._units)
        self._units.append(Unit(node, side, recomputed, node.module or ""))
        self._known[node.name] = number
        for source in sources:
            if isinstance(source, int):
                self._flows.append((source, number))
            elif source in self._readers:
                self._readers[source].append(number)
            else:
                self._reads.append((source, number))

    def finish(self, side: Side, outputs: Sequence[object]) -> None:
        """What a half returns."""
        for out in outputs:
            found = self._find(out.name) if isinstance(out, Ref) else None
            if isinstance(found, int):
                self._results.append((found, side is Side.FORWARD))

    def _find(self, name: str) -> int | str | None:
        while name in self._replaced:
            name = self._replaced[name]
        return self._known.get(name)

    def step(self, saved: Sequence[SavedValue]) -> Step:
        flows: list[SavedFlow] = []
        for value in saved:
            maker = self._forward.get(value.name)
            readers = tuple(self._readers.get(value.name, ()))
            if value.kind is not SavedKind.SYMINT and isinstance(maker, int):
                flows.append(SavedFlow(value, maker, readers))
        results = tuple(dict.fromkeys(self._results))
        units = _constants_owned(_sums_owned(self._units, self._flows), self._flows)
        return Step(self._graph, tuple(units), tuple(self._flows), tuple(flows), tuple(self._reads), results)


def _is_small_constant(node: Node) -> bool:
    """``full``, ``iota`` and the like: reads nothing, and what it makes is small."""
    nbytes = sum(leaf.nbytes for leaf in tensor_leaves(node.value))
    return not node.refs and nbytes <= _SMALL_BYTES and _RANDOM.isdisjoint(node.tags)


def _sums_owned(units: list[Unit], flows: list[tuple[int, int]]) -> list[Unit]:
    """Sums of gradients each in one module, though tracing gives them none, or that of whatever ran before: the one
    that holds all inputs; or within it the one that holds an input and a reader. So every layer of a residual stream
    has its own two sums, though one of them adds what comes from the layer after it."""
    sources: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {}
    for source, reader in flows:
        sources.setdefault(reader, []).append(source)
        readers.setdefault(source, []).append(reader)
    known = {unit.module for unit in units}
    owned = list(units)
    for position, unit in enumerate(units):
        if unit.side is not Side.BACKWARD or unit.node.target != _SUM or unit.recomputed:
            continue
        paths = [owned[each].module for each in sources.get(position, ())]
        inside = [_within(path, unit.module) for path in paths]
        if len(paths) < 2 or unit.module in paths or (any(inside) and not all(inside)):
            continue  # a sum that the module itself computes
        around = _common(paths, known)
        others = [owned[each].module for each in readers.get(position, ()) if units[each].node.target != _SUM]
        inner = {_common((path, reader), known) for path in paths for reader in others}
        around = max((path for path in (around, *inner) if _within(path, around)), key=len)
        owned[position] = replace(unit, module=around)
    return owned


def _within(path: str, around: str) -> bool:
    return not around or path == around or path.startswith(f"{around}.")


def _constants_owned(units: list[Unit], flows: list[tuple[int, int]]) -> list[Unit]:
    """Ops that read nothing (``iota``, ``full``) in the module that holds all their readers."""
    reads = {reader for _, reader in flows}
    paths: dict[int, list[str]] = {}
    for source, reader in flows:
        if source not in reads and not units[source].node.refs:
            paths.setdefault(source, []).append(units[reader].module)
    known = {unit.module for unit in units}
    owned = list(units)
    for position, around in paths.items():
        owned[position] = replace(units[position], module=_common(around, known))
    return owned


def _common(paths: Sequence[str], known: AbstractSet[str]) -> str:
    """The innermost known module that holds all of them."""
    common = paths[0].split(".")
    for path in paths[1:]:
        parts = path.split(".")
        same = 0
        while same < min(len(common), len(parts)) and common[same] == parts[same]:
            same += 1
        common = common[:same]
    while common and ".".join(common) not in known:
        common.pop()
    return ".".join(common)

"""A plan file as a side of a difference. It names what is saved and holds no graph, so nothing else can be compared.

Where the other side has the graph that the plan was made for, the plan is applied to it, and the side is a full one.
Otherwise the side is a *sketch*: a graph of the saved values alone. Its values are found in another graph by their
canonical position where the fingerprints are equal, else by module path, op, and how many such ops come before in that
module, as `--strategy replay` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aotcli.analysis.assemble import assemble
from aotcli.analysis.diff_regions import RegionPair
from aotcli.analysis.summary import Plan
from aotcli.ir.fingerprint import canonical_order
from aotcli.ir.joint import JointGraph, Node, NodeKind
from aotcli.ir.pairing import Match, Pairing
from aotcli.ir.partition import Category, Partition, Reason, SavedKind, SavedValue
from aotcli.ir.plan import Plan as PlanFile
from aotcli.ir.plan import PlannedValue, PlanRegion, decision_from_plan, describe_op, module_ordinals
from aotcli.ir.tensor import TensorSpec
from aotcli.ir.trace import CaptureSettings, Environment, ModelInfo, Trace

_TENSOR = re.compile(r"(\w+)\[([^\]]*)\]")
_Key = tuple[str | None, str, int]


@dataclass(frozen=True)
class Sketch:
    """A plan file as a trace of graphs that hold the saved values alone, and the plan for them."""

    trace: Trace
    plan: Plan
    file: PlanFile

    @property
    def nodes(self) -> int:
        """Nodes of the graphs that the plan was made for."""
        return sum(len(region.sequence) for region in self.file.regions)


def apply_plan(file: PlanFile, trace: Trace) -> tuple[Trace, Plan] | None:
    """The trace as the plan's, and the plan as the file has it; None where the trace has other graphs.

    Software and device are those of the plan file.
    """
    regions = {region.fingerprint: region for region in file.regions}
    if {graph.fingerprint for graph in trace.regions} != set(regions) or len(regions) != len(trace.regions):
        return None
    options = dict(file.options)
    partitions = tuple(
        assemble(
            graph,
            decision_from_plan(graph, regions[graph.fingerprint]),
            strategy=file.strategy,
            options=options,
        )
        for graph in trace.regions
    )
    environment = replace(trace.environment, torch=file.torch, device=file.device)
    plan = Plan(f"replay:{file.strategy}", options, partitions, file.strategy)
    return replace(trace, environment=environment), plan


def sketch(file: PlanFile) -> Sketch:
    """The saved values of a plan file as graphs of their own."""
    graphs = tuple(_graph(region, file.level) for region in file.regions)
    trace = Trace(
        model=ModelInfo(file.model, file.model),
        environment=Environment(torch=file.torch, device=file.device),
        settings=CaptureSettings(level=file.level, device=file.device),
        regions=graphs,
    )
    pairs = zip(file.regions, graphs, strict=True)
    partitions = tuple(_partition(region, graph, file) for region, graph in pairs)
    return Sketch(trace, Plan(f"replay:{file.strategy}", dict(file.options), partitions, file.strategy), file)


def _costly(region: PlanRegion) -> tuple[PlannedValue, ...]:
    """The values that a plan pays for: of several views of one storage, the first."""
    return tuple(value for value in region.saved if value.nbytes or value.kind != SavedKind.TENSOR)


def _graph(region: PlanRegion, level: str) -> JointGraph:
    nodes = tuple(_node(value, region, number) for number, value in enumerate(_costly(region)))
    return JointGraph(nodes, 0, level, name=region.name, fingerprint=region.fingerprint)


def _word(value: PlannedValue, region: PlanRegion) -> tuple[str, str]:
    """Op and tensors of a saved value, as the plan describes them."""
    known = value.id < len(region.sequence) and region.sequence[value.id] < len(region.words)
    op, _, tensors = (region.words[region.sequence[value.id]] if known else "unknown").partition(" ")
    return op, tensors


def _node(value: PlannedValue, region: PlanRegion, number: int) -> Node:
    op, tensors = _word(value, region)
    spec: TensorSpec | None = None
    found = _TENSOR.search(tensors)
    if value.kind == SavedKind.TENSOR and found is not None:
        extents = (text.strip() for text in found[2].split(",") if text.strip())
        shape = tuple(int(text) if text.isdigit() else text for text in extents)
        spec = TensorSpec(shape, (), found[1], "", value.nbytes, number, value.nbytes)
    kind = NodeKind.INPUT if op == "primal" else NodeKind.OP
    return Node(value.name, kind, op, value=spec, module=value.module)


def _partition(region: PlanRegion, graph: JointGraph, file: PlanFile) -> Partition:
    saved: list[SavedValue] = []
    for number, (value, node) in enumerate(zip(_costly(region), graph.nodes, strict=True)):
        category = Category(value.category) if value.category in set(Category) else Category.ACTIVATION
        saved.append(
            SavedValue(
                id=value.id,
                name=value.name,
                op=node.target,
                kind=SavedKind(value.kind),
                category=category if node.kind is NodeKind.OP or value.category else Category.INPUT,
                value=node.value,
                nbytes=value.nbytes,
                storage=number,
                module=value.module,
                module_type=None,
                source=None,
                reason=Reason(value.rule, value.reason),
                users=(),
                is_input=node.kind is NodeKind.INPUT,
            )
        )
    names = tuple(node.name for node in graph.nodes)
    empty = Partition(region.fingerprint, file.level, file.strategy, {}, (), (), (), (), 0, 0, 0, 0, 0, 0, (), 0)
    return replace(empty, saved=tuple(saved), forward_nodes=names, saved_bytes=region.saved_bytes)


# Finding the saved values of one side in the other.


@dataclass(frozen=True, slots=True)
class _Places:
    """Positions in a graph by canonical position, and by module, op and ordinal."""

    ids: Mapping[int, int]
    keys: Mapping[_Key, int]


def pair_sketches(left: Sketch | Trace, right: Sketch | Trace) -> tuple[RegionPair, ...]:
    """Pairs of regions, at least one side of which is a sketch: by fingerprint, else by their place in the step."""
    mine, other = _regions(left), _regions(right)
    fingerprints = [graph.fingerprint for graph in other]
    pairs: list[RegionPair] = []
    taken: set[int] = set()
    for i, graph in enumerate(mine):
        j = fingerprints.index(graph.fingerprint) if graph.fingerprint in fingerprints else i
        if j >= len(other) or j in taken:
            pairs.append(RegionPair(i, -1, _unpaired(len(graph.nodes), 0), partial=True))
            continue
        taken.add(j)
        same = graph.fingerprint == other[j].fingerprint
        pairing = _pair(_places(left, i), _places(right, j), len(graph.nodes), len(other[j].nodes), by_id=same)
        pairs.append(RegionPair(i, j, pairing, same, partial=True))
    missing = [j for j in range(len(other)) if j not in taken]
    return (*pairs, *(RegionPair(-1, j, _unpaired(0, len(other[j].nodes)), partial=True) for j in missing))


def _regions(side: Sketch | Trace) -> Sequence[JointGraph]:
    return side.trace.regions if isinstance(side, Sketch) else side.regions


def _unpaired(left: int, right: int) -> Pairing:
    return Pairing((-1,) * left, (-1,) * right, (None,) * left)


def _places(side: Sketch | Trace, position: int) -> _Places:
    if isinstance(side, Sketch):
        region = side.file.regions[position]
        saved = _costly(region)
        keys = {(value.module, _word(value, region)[0], value.ordinal): i for i, value in enumerate(saved)}
        return _Places({value.id: i for i, value in enumerate(saved)}, keys)
    graph = side.regions[position]
    order = canonical_order(graph)
    ordinals = module_ordinals(graph, order)
    keys = {
        (graph.nodes[p].module, describe_op(graph.nodes[p]), ordinal): p
        for p, ordinal in zip(order, ordinals, strict=True)
    }
    return _Places(dict(enumerate(order)), keys)


def _pair(left: _Places, right: _Places, left_count: int, right_count: int, *, by_id: bool) -> Pairing:
    if by_id:
        found = {left.ids[each]: right.ids[each] for each in left.ids.keys() & right.ids.keys()}
    else:
        found = {left.keys[each]: right.keys[each] for each in left.keys.keys() & right.keys.keys()}
    left_of = {here: there for there, here in found.items()}
    how = Match.EXACT if by_id else Match.ALIGNED
    return Pairing(
        tuple(found.get(i, -1) for i in range(left_count)),
        tuple(left_of.get(j, -1) for j in range(right_count)),
        tuple(how if i in found else None for i in range(left_count)),
    )
